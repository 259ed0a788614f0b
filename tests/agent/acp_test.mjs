// SPDX-License-Identifier: Apache-2.0
// `stead acp` with the official SDK of the Agent Client Protocol as the editor.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { main, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { ClientApp, ndJsonStream } = await import(pathToFileURL(load.resolve("@agentclientprotocol/sdk")).href);

const answer = (content) => JSON.stringify({ type: "message", role: "assistant", content }) + "\n";
const use = (id, name, input) => ({ type: "tool_use", id, name, input });

// Starts the agent with these answers of the model; `op` gets the connection and what the client has seen.
async function connect(dir, answers, op, { config = "", permit = "allow_once" } = {}) {
  const project = join(dir, "project");
  mkdirSync(project, { recursive: true });
  writeFileSync(join(dir, "recording"), answers.map(answer).join(""));
  const args = ["--store", `disk:${dir}/store`, "acp", "-m", `replay:${dir}/recording`];
  if (config) {
    mkdirSync(join(dir, "store", "w1"), { recursive: true });
    writeFileSync(join(dir, "store", "w1", "agent.yaml"), config);
    args.push("-w", "w1");
  }
  const child = spawn(process.env.STEAD, args, { stdio: ["pipe", "pipe", "inherit"], env: { PATH: process.env.PATH, HOME: dir } });
  const seen = [], asked = [];
  const app = new ClientApp()
    .onNotification("session/update", ({ params }) => void seen.push(params.update))
    .onRequest("session/request_permission", ({ params }) => {
      asked.push(params);
      return permit === "never" ? new Promise(() => {}) : { outcome: { outcome: "selected", optionId: permit } };
    });
  try {
    return await app.connectWith(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (agent) => {
      const hello = await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
      return op({ agent, hello, seen, asked, project });
    });
  } finally {
    child.stdin.end();
    await new Promise((done) => (child.exitCode !== null ? done() : child.once("exit", done)));
  }
}
const text = (t) => [{ type: "text", text: t }];
const kinds = (seen) => seen.map((u) => u.sessionUpdate);

test("a prompt is answered, and its calls are shown and work in the project", async (_, dir) => {
  await connect(dir, [[use("1", "write_file", { path: "a.txt", content: "hello" })], "Done."], async (c) => {
    assert.equal(c.hello.protocolVersion, 1);
    const { sessionId } = await c.agent.request("session/new", { cwd: c.project, mcpServers: [] });
    const end = await c.agent.request("session/prompt", { sessionId, prompt: text("Write it") });
    assert.equal(end.stopReason, "end_turn");
    assert.equal(readFileSync(join(c.project, "a.txt"), "utf8"), "hello");
    assert.deepEqual(kinds(c.seen), ["available_commands_update", "tool_call", "tool_call_update", "agent_message_chunk"]);
    assert.equal(c.seen[1].kind, "edit");
    assert.equal(c.seen[1].locations[0].path, join(c.project, "a.txt"));
    assert.equal(c.seen[2].status, "completed");
    assert.equal(c.seen[3].content.text, "Done.");
  });
});

test("a turn that was taken back is brought back with its file", async (_, dir) => {
  await connect(dir, [[use("1", "write_file", { path: "a.txt", content: "hello" })], "Done."], async (c) => {
    const { sessionId } = await c.agent.request("session/new", { cwd: c.project, mcpServers: [] });
    const file = join(c.project, "a.txt"), say = (words) => c.agent.request("session/prompt", { sessionId, prompt: text(words) });
    await say("Write it");
    await say("/undo");
    assert.ok(!existsSync(file));
    await say("/redo");
    assert.equal(readFileSync(file, "utf8"), "hello");
    await say("/status");
    assert.match(c.seen.at(-1).content.text, / 1 turn, /);
  });
});

test("a session is loaded by another process with what was said, resumed without, and listed", async (_, dir) => {
  let id;
  await connect(dir, [[use("1", "ls", {})], "First."], async (c) => {
    id = (await c.agent.request("session/new", { cwd: c.project, mcpServers: [] })).sessionId;
    await c.agent.request("session/prompt", { sessionId: id, prompt: text("Look") });
  });
  await connect(dir, ["x", "y", "Second."], async (c) => {
    await c.agent.request("session/load", { sessionId: id, cwd: c.project, mcpServers: [] });
    assert.deepEqual(kinds(c.seen), ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]);
    const end = await c.agent.request("session/prompt", { sessionId: id, prompt: text("And?") });
    assert.equal(end.stopReason, "end_turn");
    assert.equal(c.seen.at(-1).content.text, "Second.");
    const { sessions } = await c.agent.request("session/list", { cwd: c.project });
    assert.deepEqual(sessions.map((s) => s.sessionId), [id]);
    await assert.rejects(c.agent.request("session/resume", { sessionId: "acp-none", cwd: c.project, mcpServers: [] }),
      (e) => e.code === -32002);
  });
});

test("a call that needs approval is asked for in the editor, and a refusal holds", async (_, dir) => {
  const config = "approval_gates:\n  enabled: true\n  tools:\n    write_file: {}\n";
  for (const permit of ["allow_once", "reject_once"]) {
    const at = join(dir, permit);
    mkdirSync(at);
    await connect(at, [[use("1", "write_file", { path: "a.txt", content: "x" })], "Done."], async (c) => {
      const { sessionId } = await c.agent.request("session/new", { cwd: c.project, mcpServers: [] });
      await c.agent.request("session/prompt", { sessionId, prompt: text("Write it") });
      assert.equal(c.asked.length, 1);
      assert.equal(c.asked[0].toolCall.rawInput.path, "a.txt");
      const update = c.seen.find((u) => u.sessionUpdate === "tool_call_update");
      assert.equal(update.status, permit === "allow_once" ? "completed" : "failed");
    }, { config, permit });
  }
});

test("a cancelled prompt ends as cancelled, and the session goes on", async (_, dir) => {
  const config = "approval_gates:\n  enabled: true\n  tools:\n    ls: {}\n";
  await connect(dir, [[use("1", "ls", {})], "Late."], async (c) => {
    const { sessionId } = await c.agent.request("session/new", { cwd: c.project, mcpServers: [] });
    const end = c.agent.request("session/prompt", { sessionId, prompt: text("Look") });
    while (!c.asked.length) await new Promise((go) => setImmediate(go));
    await c.agent.notify("session/cancel", { sessionId });
    assert.equal((await end).stopReason, "cancelled");
    const status = await c.agent.request("session/prompt", { sessionId, prompt: text("/status") });
    assert.equal(status.stopReason, "end_turn");
    assert.match(c.seen.at(-1).content.text, /^Model replay:/);
  }, { config, permit: "never" });
});

test("a to-do list becomes a plan, and unknown methods and sessions are errors", async (_, dir) => {
  await connect(dir, [[use("1", "todo_write", { todos: [{ content: "One", status: "in_progress" }] })], "Done."], async (c) => {
    const { sessionId } = await c.agent.request("session/new", { cwd: c.project, mcpServers: [] });
    await c.agent.request("session/prompt", { sessionId, prompt: text("Plan") });
    const plan = c.seen.find((u) => u.sessionUpdate === "plan");
    assert.deepEqual(plan.entries, [{ content: "One", priority: "medium", status: "in_progress" }]);
    await assert.rejects(c.agent.request("session/prompt", { sessionId: "none", prompt: text("x") }), (e) => e.code === -32002);
    await assert.rejects(c.agent.request("_nothing", {}), (e) => e.code === -32601);
    await assert.rejects(c.agent.request("session/new", { cwd: "relative", mcpServers: [] }), (e) => e.code === -32602);
  });
});

main();
