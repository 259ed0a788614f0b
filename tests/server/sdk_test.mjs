// SPDX-License-Identifier: Apache-2.0
// MCP over HTTP under the official clients: the 2.x line in each of its three ways to agree on a version, and the 1.x line.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, once, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const v2 = load("@modelcontextprotocol/client");
const v1 = load("@modelcontextprotocol/sdk/client/index.js");
const v1http = load("@modelcontextprotocol/sdk/client/streamableHttp.js");

// A server with one workspace and one token; ends with the test.
async function serve(dir) {
  const env = { ...process.env, STEAD_STORE: `disk:${join(dir, "store")}` };
  execFileSync(process.env.STEAD, ["init", "peer"], { env, stdio: "ignore" });
  const made = execFileSync(process.env.STEAD, ["token", "create", "--for", "peer", "--json"], { env });
  const token = JSON.parse(made).token;
  const child = spawn(process.env.STEAD, ["serve", "--structured", "--tools", "all", "--listen", "127.0.0.1:0", "--json"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const line = await once((yes) => child.stdout.once("data", yes));
  const end = () => new Promise((yes) => (child.once("exit", yes), child.kill("SIGTERM")));
  return { url: new URL("/mcp/peer", JSON.parse(line).url), headers: { Authorization: `Bearer ${token}` }, end };
}

async function use(client, site) {
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 14);
  const written = await client.callTool({ name: "write_file", arguments: { path: "docs/one.md", content: "# one \u00e9\n" } });
  assert.ok(!written.isError, JSON.stringify(written));
  const read = await client.callTool({ name: "read_file", arguments: { path: "docs/one.md" } });
  assert.ok(read.content[0].text.includes("# one \u00e9"));
  assert.equal(typeof read.structuredContent, "object");
  const missing = await client.callTool({ name: "read_file", arguments: { path: "none" } });
  assert.equal(missing.isError, true);
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), { code: -32602 });
  const one = await client.readResource({ uri: "stead:///docs/one.md" });
  assert.equal(one.contents[0].text, "# one \u00e9\n");
  const found = await Promise.all(
    Array.from({ length: 20 }, () => client.callTool({ name: "grep", arguments: { pattern: "one" } })));
  assert.ok(found.every((f) => f.content[0].text.includes("docs/one.md")));
}

for (const [name, mode, version] of [
  ["pinned to the modern revision", { pin: "2026-07-28" }, "2026-07-28"],
  ["left to find out", "auto", "2026-07-28"],
  ["with the handshake", "legacy", "2025-11-25"],
]) {
  test(`2.x ${name}`, async (_, dir) => {
    const site = await serve(dir);
    const client = new v2.Client({ name: "peer", version: "1" }, { versionNegotiation: { mode } });
    await client.connect(new v2.StreamableHTTPClientTransport(site.url, { requestInit: { headers: site.headers } }));
    assert.equal(client.getNegotiatedProtocolVersion(), version);
    await use(client, site);
    await client.close();
    assert.equal(await site.end(), 0);
  });
}

test("1.x, with notifications on its stream", async (_, dir) => {
  const site = await serve(dir);
  const client = new v1.Client({ name: "peer", version: "1" });
  const transport = new v1http.StreamableHTTPClientTransport(site.url, { requestInit: { headers: site.headers } });
  await client.connect(transport);
  await use(client, site);
  const { ResourceUpdatedNotificationSchema } = load("@modelcontextprotocol/sdk/types.js");
  const updated = once((yes) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, yes));
  await client.subscribeResource({ uri: "stead:///docs/one.md" });
  await fetch(new URL("/v1/workspaces/peer/files/docs/one.md", site.url), { method: "PUT", body: "two", headers: site.headers });
  assert.equal((await updated).params.uri, "stead:///docs/one.md");
  await transport.terminateSession();
  await client.close();
  assert.equal(await site.end(), 0);
});

test("a client without a token is refused", async (_, dir) => {
  const site = await serve(dir);
  const client = new v1.Client({ name: "peer", version: "1" });
  await assert.rejects(client.connect(new v1http.StreamableHTTPClientTransport(site.url)));
  assert.equal(await site.end(), 0);
});

await main();
