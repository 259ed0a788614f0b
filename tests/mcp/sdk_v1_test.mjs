// SPDX-License-Identifier: Apache-2.0
// The server under the official client of the 1.x line, which speaks the handshake revisions.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { main, once, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
const types = load("@modelcontextprotocol/sdk/types.js");

async function connect(server) {
  const client = new Client({ name: "peer", version: "1" });
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

test("the handshake gives the newest legacy version and what is served", async (server) => {
  const { client, close } = await connect(server);
  assert.equal(client.getServerVersion().name, "stead");
  assert.deepEqual(client.getServerCapabilities(), {
    tools: {},
    prompts: {},
    resources: { subscribe: true, listChanged: true },
    completions: {},
  });
  assert.ok(client.getInstructions().length > 20);
  assert.deepEqual(await client.ping(), {});
  await close();
});

test("every tool has a description, a schema and annotations", async (server) => {
  const { client, close } = await connect(server);
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 14);
  for (const t of tools) {
    assert.match(t.name, /^[A-Za-z0-9_./-]{1,64}$/);
    assert.ok(t.description);
    assert.equal(t.inputSchema.type, "object");
    assert.equal(t.annotations.openWorldHint, false);
  }
  assert.equal(tools.find((t) => t.name === "read_file").annotations.readOnlyHint, true);
  assert.notEqual(tools.find((t) => t.name === "delete_file").annotations.destructiveHint, false);
  await close();
});

test("what is written is read back, and structured content fits its schema", async (server) => {
  const { client, close } = await connect(server);
  await client.listTools(); // from here on the client checks structured content against the output schema
  const text = "gr\u00fc\u00df dich\n\u{1F331}\ttab \"quoted\" \\ \u0001\n";
  const written = await write(client, "a/b c.md", text);
  assert.ok(!written.isError, JSON.stringify(written));
  const read = await client.callTool({ name: "read_file", arguments: { path: "a/b c.md" } });
  assert.ok(!read.isError, JSON.stringify(read));
  assert.ok(read.content[0].text.includes("gr\u00fc\u00df dich\n\u{1F331}\ttab \"quoted\" \\ \u0001"));
  assert.equal(typeof read.structuredContent, "object");
  await close();
});

test("a tool that fails is a result, an unknown tool is an error", async (server) => {
  const { client, close } = await connect(server);
  const missing = await client.callTool({ name: "read_file", arguments: { path: "none" } });
  assert.equal(missing.isError, true);
  assert.equal(missing._meta["stead/error"].kind, "not_found");
  const invalid = await client.callTool({ name: "read_file", arguments: { pth: "x" } });
  assert.equal(invalid.isError, true);
  assert.match(invalid.content[0].text, /path/);
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), { code: -32602 });
  assert.equal((await client.listPrompts()).prompts[0].name, "workspace");
  await close();
});

test("files are resources: listed by pages, read as text or bytes, completed", async (server) => {
  const { client, close } = await connect(server);
  await write(client, "docs/one.md", "# one\n");
  await client.callTool({
    name: "write_file",
    arguments: { path: "docs/two.bin", content: "AAH/gA==", encoding: "base64" },
  });
  const { resources } = await client.listResources();
  const uris = resources.map((r) => r.uri);
  assert.ok(uris.includes("stead:///docs/one.md") && uris.includes("stead:///docs/two.bin"), uris.join());
  const one = await client.readResource({ uri: "stead:///docs/one.md" });
  assert.deepEqual(one.contents, [{ uri: "stead:///docs/one.md", mimeType: "text/markdown", text: "# one\n" }]);
  const two = await client.readResource({ uri: "stead:///docs/two.bin" });
  assert.equal(two.contents[0].blob, "AAH/gA==");
  const dir = await client.readResource({ uri: "stead:///docs" });
  assert.deepEqual([dir.contents[0].mimeType, dir.contents[0].text], ["inode/directory", "one.md\ntwo.bin\n"]);
  const { resourceTemplates } = await client.listResourceTemplates();
  const ref = { type: "ref/resource", uri: resourceTemplates[0].uriTemplate };
  const { completion } = await client.complete({ ref, argument: { name: "path", value: "docs/o" } });
  assert.deepEqual(completion, { values: ["docs/one.md"], total: 1, hasMore: false });
  await assert.rejects(client.readResource({ uri: "stead:///none" }), { code: -32002 });
  await close();
});

test("a subscriber hears of a change, and of files that come", async (server) => {
  const { client, close } = await connect(server);
  await write(client, "watched.txt", "1");
  await client.subscribeResource({ uri: "stead:///watched.txt" });
  const updated = once((yes) =>
    client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => yes(n.params.uri)),
  );
  await write(client, "watched.txt", "2");
  assert.equal(await updated, "stead:///watched.txt");
  const listed = once((yes) => client.setNotificationHandler(types.ResourceListChangedNotificationSchema, yes));
  await write(client, "new.txt", "x");
  await listed;
  await client.unsubscribeResource({ uri: "stead:///watched.txt" });
  await close();
});

test("a hundred calls at once are all answered rightly", async (server) => {
  const { client, close } = await connect(server);
  const names = Array.from({ length: 50 }, (_, i) => `n/${i}.txt`);
  await Promise.all(names.map((n) => write(client, n, `text of ${n}`)));
  const read = await Promise.all(
    [...names, ...names].map((n) => client.callTool({ name: "read_file", arguments: { path: n } })),
  );
  read.forEach((r, i) => assert.ok(r.content[0].text.includes(`text of ${names[i % 50]}`)));
  await close();
});

test("progress is reported strictly rising, and a cancelled search ends", async (server) => {
  const { client, close } = await connect(server);
  await Promise.all(Array.from({ length: 20 }, (_, i) => write(client, `p/${i}.txt`, "needle\n".repeat(100))));
  const seen = [];
  const found = await client.callTool({ name: "grep", arguments: { pattern: "needle" } }, undefined, {
    onprogress: (p) => seen.push(p.progress),
  });
  assert.ok(!found.isError);
  assert.ok(seen.every((p, i) => i === 0 || p > seen[i - 1]), seen.join());
  const abort = new AbortController();
  const call = client.callTool({ name: "grep", arguments: { pattern: "needle" } }, undefined, { signal: abort.signal });
  abort.abort("enough");
  await assert.rejects(call);
  assert.deepEqual(await client.ping(), {});
  await close(/^Error: Received a response for an unknown message ID[^\n]*\n$/);
});

await main();
