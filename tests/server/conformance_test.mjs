// SPDX-License-Identifier: Apache-2.0
// The official conformance suite of MCP against the server with the suite's fixtures, for both eras. A scenario that
// could not test anything passes too, so the number of checks that each must pass is written down here; what does not
// count for a revision is not looked at.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { main, once, test } from "../peers/peer.mjs";

const suite = join(process.env.PEERS, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

const expected = JSON.parse(readFileSync(new URL("conformance_passes.json", import.meta.url)));

async function serve(dir) {
  const store = `disk:${join(dir, "store")}`;
  execFileSync(process.env.STEAD, ["init", "peer", "--store", store], { stdio: "ignore" });
  const child = spawn(process.env.STEAD_CONFORMANCE_SERVER, [store], { stdio: ["pipe", "pipe", "inherit"] });
  const line = await once((yes) => child.stdout.once("data", yes));
  const end = () => new Promise((yes) => (child.once("exit", yes), child.stdin.end()));
  return { url: `${String(line).trim()}/mcp/peer`, end };
}

function run(args, cwd) {
  return new Promise((yes) => {
    const child = spawn(process.execPath, [suite, ...args], { cwd, stdio: ["ignore", "ignore", "inherit"] });
    child.once("exit", yes);
  });
}

// What the frozen requirements of a revision find: the checks that pass, by scenario.
async function passes(version, url, dir) {
  const out = join(dir, "results");
  const code = await run(["server", "--url", url, "--requirements", version, "-o", out], dir);
  const found = {};
  for (const name of Object.keys(expected[version])) {
    const results = readdirSync(out).filter((entry) => entry.startsWith(`server-${name}-20`));
    assert.equal(results.length, 1, `${name} was not run`);
    const checks = JSON.parse(readFileSync(join(out, results[0], "checks.json")));
    const wrong = checks.filter((c) => c.status === "FAILURE" || c.status === "WARNING");
    assert.deepEqual(wrong.map((c) => `${name}: ${c.id}: ${c.errorMessage}`), []);
    found[name] = checks.filter((c) => c.status === "SUCCESS").length;
  }
  assert.equal(code, 0);
  return found;
}

for (const version of Object.keys(expected)) {
  test(`every scenario that counts for ${version} passes all of its checks`, async (_, dir) => {
    const site = await serve(dir);
    const found = await passes(version, site.url, dir);
    assert.equal(await site.end(), 0);
    assert.deepEqual(found, expected[version]);
  }, 120);
}

await main();
