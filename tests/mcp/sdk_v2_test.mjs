// SPDX-License-Identifier: Apache-2.0
// The server under the official client of the 2.x line, in each of its three ways to agree on a version.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { main, once, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Client } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

async function connect(server, mode) {
  const client = new Client({ name: "peer", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StdioClientTransport(server);
  let complaints = "";
  client.onerror = (e) => (complaints += `${e}\n`);
  transport.stderr?.on("data", (d) => (complaints += d));
  await client.connect(transport);
  // `late` is the one complaint that is not a fault: an answer that was under way when its request was cancelled.
  const close = async (late) => {
    await client.close();
    if (!late || !late.test(complaints)) assert.equal(complaints, "", "stdout and stderr are clean");
  };
  return { client, close };
}

const write = (client, path, content) =>
  client.callTool({ name: "write_file", arguments: { path, content, mode: "overwrite" } });

for (const [name, mode, version] of [
  ["pinned to the modern revision", { pin: "2026-07-28" }, "2026-07-28"],
  ["left to find out", "auto", "2026-07-28"],
  ["with the handshake", "legacy", "2025-11-25"],
]) {
  test(`${name}: tools, resources and completion`, async (server) => {
    const { client, close } = await connect(server, mode);
    assert.equal(client.getNegotiatedProtocolVersion(), version);
    const { tools } = await client.listTools();
    assert.ok(tools.length >= 14);
    const written = await write(client, "docs/one.md", "# one \u00e9\n");
    assert.ok(!written.isError, JSON.stringify(written));
    const read = await client.callTool({ name: "read_file", arguments: { path: "docs/one.md" } });
    assert.ok(read.content[0].text.includes("# one \u00e9"));
    assert.equal(typeof read.structuredContent, "object");
    const missing = await client.callTool({ name: "read_file", arguments: { path: "none" } });
    assert.equal(missing.isError, true);
    await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), { code: -32602 });
    const { resources } = await client.listResources();
    assert.ok(resources.some((r) => r.uri === "stead:///docs/one.md"));
    const one = await client.readResource({ uri: "stead:///docs/one.md" });
    assert.equal(one.contents[0].text, "# one \u00e9\n");
    const { resourceTemplates } = await client.listResourceTemplates();
    const ref = { type: "ref/resource", uri: resourceTemplates[0].uriTemplate };
    const { completion } = await client.complete({ ref, argument: { name: "path", value: "docs/" } });
    assert.deepEqual(completion.values, ["docs/one.md"]);
    await close();
  });
}

test("a resource that is not there is an invalid parameter in the modern revision", async (server) => {
  const { client, close } = await connect(server, { pin: "2026-07-28" });
  await assert.rejects(client.readResource({ uri: "stead:///none" }), (e) => {
    assert.equal(e.code, -32602);
    assert.equal(e.data.uri, "stead:///none");
    return true;
  });
  await close();
});

test("a listener hears of changes until it closes", async (server) => {
  const { client, close } = await connect(server, { pin: "2026-07-28" });
  await write(client, "watched.txt", "1");
  const updated = once((yes) =>
    client.setNotificationHandler("notifications/resources/updated", (n) => yes(n.params.uri)),
  );
  const listed = once((yes) => client.setNotificationHandler("notifications/resources/list_changed", yes));
  const sub = await client.listen({
    resourcesListChanged: true,
    toolsListChanged: true,
    resourceSubscriptions: ["stead:///watched.txt"],
  });
  assert.deepEqual(sub.honoredFilter, {
    resourcesListChanged: true,
    resourceSubscriptions: ["stead:///watched.txt"],
  });
  await write(client, "watched.txt", "2");
  assert.equal(await updated, "stead:///watched.txt");
  await write(client, "new.txt", "x");
  await listed;
  await sub.close();
  assert.equal(await sub.closed, "local");
  await write(client, "watched.txt", "3");
  await close();
});

test("progress and cancellation work in the modern revision", async (server) => {
  const { client, close } = await connect(server, { pin: "2026-07-28" });
  await Promise.all(Array.from({ length: 20 }, (_, i) => write(client, `p/${i}.txt`, "needle\n".repeat(100))));
  const seen = [];
  const found = await client.callTool(
    { name: "grep", arguments: { pattern: "needle" } },
    { onprogress: (p) => seen.push(p.progress) },
  );
  assert.ok(!found.isError);
  assert.ok(seen.every((p, i) => i === 0 || p > seen[i - 1]), seen.join());
  const abort = new AbortController();
  const call = client.callTool({ name: "grep", arguments: { pattern: "needle" } }, { signal: abort.signal });
  abort.abort("enough");
  await assert.rejects(call);
  assert.ok((await client.listTools()).tools.length);
  await close(/^Error: Received a response for an unknown message ID[^\n]*\n$/);
});

await main();
