// SPDX-License-Identifier: Apache-2.0
// The server under the command line of the official inspector.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { main, test } from "../peers/peer.mjs";

const run = promisify(execFile);
const inspector = join(process.env.PEERS, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

// What the inspector prints for one method, as JSON.
async function inspect(server, ...args) {
  const { stdout } = await run(process.execPath, [inspector, "--cli", server.command, ...server.args, ...args], {
    env: process.env,
    timeout: 25000,
  });
  return JSON.parse(stdout);
}

test("the inspector lists and calls tools", async (server) => {
  const { tools } = await inspect(server, "--method", "tools/list");
  assert.ok(tools.some((t) => t.name === "read_file" && t.outputSchema));
  const call = (name, ...pairs) =>
    inspect(server, "--method", "tools/call", "--tool-name", name, ...pairs.flatMap((p) => ["--tool-arg", p]));
  const written = await call("write_file", "path=a.md", "content=hello");
  assert.ok(!written.isError, JSON.stringify(written));
  const read = await call("read_file", "path=a.md");
  assert.match(read.content[0].text, /hello/);
});

test("the inspector lists and reads resources", async (server) => {
  await inspect(server, "--method", "tools/call", "--tool-name", "write_file", "--tool-arg", "path=a.md", "--tool-arg", "content=hello");
  const { resources } = await inspect(server, "--method", "resources/list");
  assert.ok(resources.some((r) => r.uri === "stead:///a.md"));
  const { contents } = await inspect(server, "--method", "resources/read", "--uri", "stead:///a.md");
  assert.equal(contents[0].text, "hello");
  const { resourceTemplates } = await inspect(server, "--method", "resources/templates/list");
  assert.equal(resourceTemplates[0].uriTemplate, "stead:///{+path}");
});

await main();
