// SPDX-License-Identifier: Apache-2.0
// The dialect `filesystem` compared with the server that it replaces (npm @modelcontextprotocol/server-filesystem): both get a
// copy of the same tree and the same calls, and their replies are compared. Where a reply differs on purpose, the table says
// how: the order of a listing is each server's own, and only the kind of an error is compared.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, realpathSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

const reference = join(process.env.PEERS, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

function plant(dir) {
  const put = (path, bytes, mode = 0o644) => {
    mkdirSync(join(dir, path, ".."), { recursive: true });
    writeFileSync(join(dir, path), bytes);
    chmodSync(join(dir, path), mode);
    utimesSync(join(dir, path), 1700000000, 1700000000);
  };
  put("README.md", "# Project\n\nOne.\nTwo.\nThree.\n");
  put("bin/run.sh", "#!/bin/sh\necho run\n", 0o755);
  put("src/app.js", "function app() {\n  if (ready) {\n    start();\n  }\n}\n\nfunction stop() {\n  end();\n}\n\nexport { app, stop };\n");
  put("src/deep/er/util.test.js", "test();\n");
  put("src/deep/util.js", "export const one = 1;\n");
  put("src/windows.txt", "one\r\ntwo\r\nthree\r\n");
  put("src/last.txt", "no line end");
  put("docs/fence.md", "before\n```js\ncode\n```\nafter\n");
  put("docs/a name with spaces.txt", "spaces\n");
  put("art/dot.png", PNG);
  put("art/sound.wav", "RIFF....WAVE");
  put("art/data.bin", Buffer.from([0, 1, 2, 255]));
  put("large.txt", "x".repeat(1536));
  put("node_modules/pkg/index.js", "module.exports = 1;\n");
  mkdirSync(join(dir, "empty"));
  symlinkSync("app.js", join(dir, "src/link.js"));
  symlinkSync("../node_modules/pkg", join(dir, "src/pkg"));
  symlinkSync("/etc/hostname", join(dir, "src/outside"));
  return realpathSync(dir);
}

async function connect(command, args) {
  const client = new Client({ name: "peer", version: "1" });
  await client.connect(new StdioClientTransport({ command, args, stderr: "ignore", env: { PATH: process.env.PATH, TZ: "UTC" } }));
  return client;
}

// Two servers over equal trees; run(call) with call(name, args) => [theirs, ours], "DIR" in both directions.
async function sideBySide(dir, run) {
  const places = [plant(join(dir, "theirs")), plant(join(dir, "ours"))];
  const clients = [
    await connect(process.execPath, [reference, places[0]]),
    await connect(process.env.STEAD, ["mcp", "--files", places[1], "--dialect", "filesystem", "--store", `disk:${join(dir, "store")}`]),
  ];
  const call = (name, args) =>
    Promise.all(clients.map(async (client, i) => {
      const filled = JSON.parse(JSON.stringify(args).replaceAll("DIR", places[i]));
      const reply = await client.callTool({ name, arguments: filled });
      return JSON.parse(JSON.stringify({ content: reply.content, isError: reply.isError ?? false }).replaceAll(places[i], "DIR"));
    }));
  try {
    await run(call, places, clients);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

// What is compared of a reply that is not compared byte by byte.
const lines = (reply) => reply.content[0].text.split("\n").sort();
const sorted = (tree) => tree.map((e) => ({ ...e, ...(e.children && { children: sorted(e.children) }) })).sort((a, b) => (a.name < b.name ? -1 : 1));
const tree = (reply) => sorted(JSON.parse(reply.content[0].text));
const failure = (reply) => reply.isError;
const info = (reply) => reply.content[0].text.replace(/(created|accessed): .*/g, "$1").replace(/(isDirectory: true[^]*|^)size: \d+/, "$1size");
// A directory was last modified when each server changed something in it, which may be in different seconds.
const infoOfDir = (reply) => info(reply).replace(/modified: .*/g, "modified");
const sizes = (reply) => lines(reply).filter((line) => !/ (pkg|outside) |^Combined/.test(line)); // theirs tells the size of a file outside
const media = (reply) => JSON.stringify(reply.content[0]).replace(/(stead:\/\/|file:\/\/DIR)\//, "URI/");
// The lines that an edit changes, below the head of the difference and between its fences; how many others are around is not.
const diff = (reply) => reply.content[0].text.split("\n").filter((line) => !/^( |@@)/.test(line));
const each = (reply) => reply.content[0].text.replace(/: Error - .*/g, ": Error");

const CALLS = [
  ["list_allowed_directories", {}],
  ["read_text_file", { path: "DIR/README.md" }],
  ["read_text_file", { path: "README.md" }],
  ["read_text_file", { path: "DIR/src/../README.md" }],
  ["read_text_file", { path: "./src/app.js" }],
  ["read_file", { path: "DIR/docs/a name with spaces.txt" }],
  ["read_text_file", { path: "DIR/README.md", head: 3 }],
  ["read_text_file", { path: "DIR/README.md", head: 300 }],
  ["read_text_file", { path: "DIR/src/last.txt", tail: 1 }],
  ["read_text_file", { path: "DIR/src/last.txt", tail: 5 }],
  ["read_text_file", { path: "DIR/README.md", head: 1, tail: 1 }],
  ["read_text_file", { path: "DIR/src/windows.txt" }],
  ["read_text_file", { path: "DIR/src/link.js" }],
  ["read_text_file", { path: "DIR/src/pkg/index.js" }],
  ["read_text_file", { path: "DIR/none.md" }, failure],
  ["read_text_file", { path: "/etc/passwd" }, failure],
  ["read_text_file", { path: "../../etc/passwd" }, failure],
  ["list_directory", { path: ".." }, failure],
  ["list_directory", { path: "src/../.." }, failure],
  ["list_directory", { path: "DIR/.." }, failure],
  ["list_directory", { path: "DIR/src/.." }, lines],
  ["read_text_file", { path: "DIR/src/outside" }, failure],
  ["read_text_file", { path: "DIR/src" }, failure],
  ["read_media_file", { path: "DIR/art/dot.png" }, media],
  ["read_media_file", { path: "DIR/art/sound.wav" }, media],
  ["read_media_file", { path: "DIR/art/data.bin" }, media],
  ["read_media_file", { path: "DIR/README.md" }, media],
  ["read_multiple_files", { paths: ["DIR/README.md", "src/deep/util.js"] }],
  ["read_multiple_files", { paths: ["DIR/README.md", "DIR/none", "src/link.js"] }, each],
  ["write_file", { path: "DIR/new.txt", content: "new\n" }],
  ["write_file", { path: "new.txt", content: "newer\n" }],
  ["write_file", { path: "DIR/src/link.js", content: "linked\n" }],
  ["read_text_file", { path: "DIR/src/app.js" }],
  ["write_file", { path: "DIR/src/pkg/added.js", content: "added\n" }],
  ["read_text_file", { path: "DIR/node_modules/pkg/added.js" }],
  ["write_file", { path: "DIR/src/outside", content: "no\n" }, failure],
  ["write_file", { path: "/tmp/outside", content: "no\n" }, failure],
  ["write_file", { path: "DIR/src/app.js", content: "function app() {\n  if (ready) {\n    start();\n  }\n}\n\nfunction stop() {\n  end();\n}\n" }],
  ["edit_file", { path: "DIR/README.md", edits: [{ oldText: "Two.", newText: "2." }], dryRun: true }, diff],
  ["read_text_file", { path: "DIR/README.md" }],
  ["edit_file", { path: "README.md", edits: [{ oldText: "One.\nTwo.", newText: "1.\n2." }, { oldText: "Three.", newText: "3." }] }, diff],
  ["read_text_file", { path: "DIR/README.md" }],
  ["edit_file", { path: "DIR/src/app.js", edits: [{ oldText: "start(); ", newText: "begin();" }] }, diff],
  ["read_text_file", { path: "DIR/src/app.js" }],
  ["edit_file", { path: "DIR/src/last.txt", edits: [{ oldText: "line end", newText: "end of line" }] }, diff],
  ["edit_file", { path: "DIR/docs/fence.md", edits: [{ oldText: "code", newText: "more code" }] }, diff],
  ["edit_file", { path: "DIR/README.md", edits: [{ oldText: "nowhere to be found", newText: "x" }] }, failure],
  ["edit_file", { path: "DIR/README.md", edits: [{ oldText: "1.", newText: "one" }, { oldText: "nowhere", newText: "x" }] }, failure],
  ["read_text_file", { path: "DIR/README.md" }],
  ["create_directory", { path: "DIR/made" }],
  ["create_directory", { path: "made" }],
  ["create_directory", { path: "DIR/made/deep/er" }],
  ["list_directory", { path: "DIR" }, lines],
  ["list_directory", { path: "DIR/src" }, lines],
  ["list_directory", { path: "src/pkg" }, lines],
  ["list_directory", { path: "DIR/empty" }],
  ["list_directory", { path: "DIR/README.md" }, failure],
  ["list_directory_with_sizes", { path: "DIR/docs" }, lines],
  ["list_directory_with_sizes", { path: "DIR/src" }, sizes],
  ["list_directory_with_sizes", { path: "DIR" }, lines],
  ["list_directory_with_sizes", { path: "DIR/art", sortBy: "name" }],
  ["list_directory_with_sizes", { path: "DIR/art", sortBy: "size" }],
  ["directory_tree", { path: "DIR/made" }],
  ["directory_tree", { path: "DIR" }, tree],
  ["directory_tree", { path: "DIR/src", excludePatterns: ["*.js"] }, tree],
  ["directory_tree", { path: "DIR", excludePatterns: ["node_modules", "**/*.test.js", "er"] }, tree],
  ["search_files", { path: "DIR", pattern: "**/*.js" }, lines],
  ["search_files", { path: "DIR", pattern: "*.md" }, lines],
  ["search_files", { path: "DIR/src", pattern: "**/util*" }, lines],
  ["search_files", { path: "src", pattern: "deep/**" }, lines],
  ["search_files", { path: "DIR", pattern: "**/*.js", excludePatterns: ["**/deep/**", "node_modules/**"] }, lines],
  ["search_files", { path: "DIR", pattern: "**/nothing" }],
  ["get_file_info", { path: "DIR/bin/run.sh" }, info],
  ["get_file_info", { path: "DIR/src" }, infoOfDir],
  ["get_file_info", { path: "DIR/art/dot.png" }, info],
  ["get_file_info", { path: "DIR/none" }, failure],
  ["move_file", { source: "DIR/new.txt", destination: "DIR/moved.txt" }],
  ["read_text_file", { path: "DIR/moved.txt" }],
  ["move_file", { source: "made", destination: "DIR/remade" }],
  ["directory_tree", { path: "DIR/remade" }, tree],
  ["move_file", { source: "DIR/moved.txt", destination: "DIR/README.md" }, failure],
  ["move_file", { source: "DIR/none", destination: "DIR/some" }, failure],
];

test("an edit that differs in white space keeps the indentation of the file", async (_, dir) => {
  await sideBySide(dir, async (call) => {
    const edits = [{ oldText: "if (ready) {\n  start();\n}", newText: "if (ready) {\n  start();\n  wait();\n}" }];
    await call("edit_file", { path: "DIR/src/app.js", edits });
    const [, ours] = await call("read_text_file", { path: "DIR/src/app.js", head: 6 });
    assert.equal(ours.content[0].text, "function app() {\n  if (ready) {\n    start();\n    wait();\n  }\n}");
  });
});

test("the tools have the names, titles, arguments and hints of the reference server", async (_, dir) => {
  await sideBySide(dir, async (call, places, clients) => {
    const tools = await Promise.all(clients.map(async (client) => (await client.listTools()).tools));
    const shape = (t) => ({
      name: t.name,
      title: t.title ?? t.annotations?.title,
      properties: Object.fromEntries(Object.entries(t.inputSchema.properties ?? {}).map(([k, v]) => [k, v.type.replace("number", "integer")])),
      required: (t.inputSchema.required ?? []).toSorted(),
      reads: t.annotations.readOnlyHint ?? false,
      destroys: !t.annotations.readOnlyHint && (t.annotations.destructiveHint ?? true),
      repeats: !t.annotations.readOnlyHint && (t.annotations.idempotentHint ?? false),
    });
    const [theirs, ours] = tools.map((list) => list.map(shape).sort((a, b) => (a.name < b.name ? -1 : 1)));
    assert.deepEqual(ours, theirs);
  });
});

test("every documented call gets the reply of the reference server", async (_, dir) => {
  await sideBySide(dir, async (call) => {
    const differences = [];
    for (const [name, args, view] of CALLS) {
      const [theirs, ours] = await call(name, args);
      try {
        assert.deepEqual(view ? view(ours) : ours, view ? view(theirs) : theirs);
      } catch (e) {
        differences.push(`${name} ${JSON.stringify(args)}\n  theirs ${JSON.stringify(theirs)}\n  ours   ${JSON.stringify(ours)}`);
      }
    }
    assert.equal(differences.join("\n"), "");
  });
});

await main();
