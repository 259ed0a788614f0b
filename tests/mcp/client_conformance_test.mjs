// SPDX-License-Identifier: Apache-2.0
// The official conformance suite of MCP against the client of servers, for both eras. A scenario that could not test
// anything passes too, so the number of checks that each must pass is written down here; what does not count for a
// revision is not looked at.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { main, test } from "../peers/peer.mjs";

const suite = join(process.env.PEERS, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const expected = JSON.parse(readFileSync(new URL("client_conformance_passes.json", import.meta.url)));

function run(args, cwd) {
  return new Promise((yes) => {
    const child = spawn(process.execPath, [suite, ...args], { cwd, stdio: "ignore" });
    child.once("exit", yes);
  });
}

// What the frozen requirements of a revision find: the checks that pass, by scenario.
async function passes(version, dir) {
  const out = join(dir, "results");
  const code = await run(["client", "--command", process.env.STEAD_CONFORMANCE_CLIENT, "--requirements", version, "-o", out], dir);
  const found = {};
  for (const name of Object.keys(expected[version])) {
    const folder = join(out, dirname(name));
    const results = existsSync(folder) ? readdirSync(folder).filter((e) => e.startsWith(`${basename(name)}-20`)) : [];
    assert.equal(results.length, 1, `${name} was not run`);
    const checks = JSON.parse(readFileSync(join(folder, results[0], "checks.json")));
    const wrong = checks.filter((c) => c.status === "FAILURE" || c.status === "WARNING");
    assert.deepEqual(wrong.map((c) => `${name}: ${c.id}: ${c.errorMessage}`), []);
    found[name] = checks.filter((c) => c.status === "SUCCESS").length;
  }
  assert.equal(code, 0);
  return found;
}

for (const version of Object.keys(expected)) {
  test(`every client scenario that counts for ${version} passes all of its checks`, async (_, dir) => {
    assert.deepEqual(await passes(version, dir), expected[version]);
  }, 120);
}

await main();
