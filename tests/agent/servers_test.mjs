// SPDX-License-Identifier: Apache-2.0
// The agent with the tools of other MCP servers: the official SDK as a server over stdio and over streamable HTTP.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { SSEServerTransport } = load("@modelcontextprotocol/sdk/server/sse.js");
const { z } = load("zod");

const SERVER = `
const { createRequire } = require("node:module");
const load = createRequire(${JSON.stringify(process.env.PEERS + "/package.json")});
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = load("zod");
require("node:fs").writeFileSync(process.env.PID_FILE, String(process.pid));
const server = new McpServer({ name: "adder", version: "1" });
server.registerTool("add", { description: "Adds.", inputSchema: { a: z.number(), b: z.number() } },
  async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) + " " + (process.env.SECRET ?? "none") }] }));
server.registerTool("fail", { description: "Fails.", inputSchema: {} },
  async () => ({ isError: true, content: [{ type: "text", text: "it failed" }] }));
server.registerTool("draw", { description: "Draws.", inputSchema: {} },
  async () => ({ content: [{ type: "text", text: "a dot" }, { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }] }));
server.registerTool("die", { description: "Ends the server.", inputSchema: {} }, async () => process.exit(1));
server.registerTool("grow", { description: "Adds a tool.", inputSchema: {} }, async () => {
  server.registerTool("grown", { description: "Was added.", inputSchema: {} },
    async () => ({ content: [{ type: "text", text: "grown" }] }));
  return { content: [{ type: "text", text: "ok" }] };
});
server.registerTool("slow", { description: "Takes its time.", inputSchema: {} }, async (_, extra) => {
  for (let i = 1; i <= 4; i++) {
    await new Promise((yes) => setTimeout(yes, 150));
    await extra.sendNotification({ method: "notifications/progress",
      params: { progressToken: extra._meta.progressToken, progress: i, total: 4 } });
  }
  return { content: [{ type: "text", text: "slow" }] };
});
server.registerTool("ask", { description: "Asks the model.", inputSchema: {} }, async () => {
  const r = await server.server.createMessage({ maxTokens: 50,
    messages: [{ role: "user", content: { type: "text", text: "What is the capital of France?" } }] });
  return { content: [{ type: "text", text: "the model says " + r.content.text }] };
});
server.registerTool("form", { description: "Asks the person.", inputSchema: {} }, async () => {
  const r = await server.server.elicitInput({ message: "Which name?",
    requestedSchema: { type: "object", properties: { name: { type: "string", default: "Ada" } }, required: ["name"] } });
  return { content: [{ type: "text", text: JSON.stringify(r) }] };
});
server.registerResource("greeting", "test://greeting", { description: "A greeting." },
  async (uri) => ({ contents: [{ uri: uri.href, text: "hello from a resource" }] }));
server.registerPrompt("review", { description: "Reviews.", argsSchema: { file: z.string() } },
  ({ file }) => ({ messages: [{ role: "user", content: { type: "text", text: "Review " + file } }] }));
server.connect(new StdioServerTransport());
`;

function answer(content) {
  return JSON.stringify({ type: "message", role: "assistant", content }) + "\n";
}
const use = (id, name, input) => ({ type: "tool_use", id, name, input });

// A model of OpenAI's protocol on this machine, which says these texts or makes these calls, one after the other.
async function withModel(script, act) {
  const asked = [];
  const http = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk) => (body += chunk));
    req.on("end", () => {
      asked.push(JSON.parse(body));
      const next = script[asked.length - 1];
      const delta = typeof next === "string" ? { content: next }
        : { tool_calls: next.map((c, index) => ({ index, id: c.id, type: "function",
            function: { name: c.name, arguments: JSON.stringify(c.input) } })) };
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`data: ${JSON.stringify({ id: "a", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`);
      res.write(`data: ${JSON.stringify({ id: "a", choices: [{ index: 0, delta: {},
        finish_reason: typeof next === "string" ? "stop" : "tool_calls" }] })}\n\n`);
      res.write(`data: ${JSON.stringify({ id: "a", choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}\n\n`);
      res.end("data: [DONE]\n\n");
    });
  });
  await new Promise((yes) => http.listen(0, "127.0.0.1", yes));
  try {
    return await act(`http://127.0.0.1:${http.address().port}/v1`, asked);
  } finally {
    http.closeAllConnections();
    http.close();
  }
}

// Runs one turn with these answers of the model and gives its result.
function run(dir, answers, servers, extra = "", model = []) {
  const home = join(dir, "store", "default");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  writeFileSync(join(dir, "recording"), answers.map(answer).join(""));
  writeFileSync(join(home, "tools.json"), JSON.stringify({ mcpServers: servers }));
  writeFileSync(join(home, "agent.yaml"), extra);
  return new Promise((done) =>
    execFile(process.env.STEAD, ["--store", `disk:${dir}/store`, "run", ...(model.length ? model : ["-m", `replay:${dir}/recording`]), "--json", "Go"],
      { env: { PATH: process.env.PATH, HOME: dir, SECRET: "not for servers" } },
      (e, out, err) => done({ code: e ? e.code : 0, result: out ? JSON.parse(out) : null, err })));
}

function stdio(dir, more = {}) {
  writeFileSync(join(dir, "server.cjs"), SERVER);
  return { command: process.execPath, args: [join(dir, "server.cjs")], env: { PID_FILE: join(dir, "pid") }, ...more };
}

const alive = (pid) => {
  try {
    process.kill(pid, 0);
    return !execFileSync("ps", ["-o", "stat=", "-p", String(pid)]).toString().startsWith("Z");
  } catch {
    return false;
  }
};

test("a tool of a stdio server is called, its process gets no secrets and ends with the run", async (_, dir) => {
  const { code, result, err } = await run(dir,
    [[use("1", "calc__add", { a: 2, b: 3 }), use("2", "calc__fail", {}), use("3", "calc__none", {})], "done"],
    { calc: stdio(dir) });
  assert.equal(code, 0, err);
  const calls = result.steps[0].calls;
  assert.equal(calls[0].output, "5 none");
  assert.deepEqual([calls[1].output, calls[1].is_error], ["it failed", true]);
  assert.match(calls[2].output, /there is no tool/);
  assert.ok(!alive(Number(readFileSync(join(dir, "pid")))));
});

test("a picture that a server's tool gives is kept for the model", async (_, dir) => {
  const { code, result, err } = await run(dir, [[use("1", "calc__draw", {})], "done"], { calc: stdio(dir) });
  assert.equal(code, 0, err);
  assert.equal(result.steps[0].calls[0].output, "a dot\n[image image/png]");
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  assert.match(log, /"picture":\{"name":"calc__draw","media_type":"image\/png","data":"iVBORw0KGgo="\}/);
});

test("a server that does not start is reported and skipped", async (_, dir) => {
  const { code, result } = await run(dir, [[use("1", "calc__add", { a: 1, b: 1 })], "done"],
    { broken: { command: "/does/not/exist" }, calc: stdio(dir) });
  assert.equal(code, 0);
  assert.equal(result.steps[0].calls[0].output, "2 none");
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  assert.match(log, /"type":"problem".*broken/);
});

test("policy and lists hold for tools of servers", async (_, dir) => {
  const { result } = await run(dir, [[use("1", "calc__add", { a: 1, b: 1 }), use("2", "calc__fail", {})], "done"],
    { calc: stdio(dir, { disableTools: ["fail"] }) },
    "policy: {rules: [{id: no, effect: deny, tool: 'calc__*'}]}\n");
  assert.match(result.steps[0].calls[0].output, /it is denied/);
  assert.match(result.steps[0].calls[1].output, /there is no tool/);
  const listed = await run(dir, [[use("1", "calc__add", { a: 1, b: 1 }), use("2", "calc__fail", {}), use("3", "calc__slow", {})], "done"],
    { calc: stdio(dir) }, "tools: {deny: ['calc__f*']}\ntool_timeouts: {overrides: {calc__slow: 0.2}}\n");
  const outputs = listed.result.steps[0].calls.map((call) => call.output);
  assert.equal(outputs[0], "2 none", listed.err);
  assert.match(outputs[1], /there is no tool/);
  assert.match(outputs[2], /ran out of time/);
});

test("a tool of a server over streamable HTTP is called", async (_, dir) => {
  const server = new McpServer({ name: "web", version: "1" });
  server.registerTool("echo", { description: "Echoes.", inputSchema: { text: z.string() } },
    async ({ text }) => ({ content: [{ type: "text", text: `web: ${text}` }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => "session-1" });
  await server.connect(transport);
  const seen = [];
  const http = createServer((req, res) => {
    seen.push([req.method, req.headers["x-key"], req.headers["mcp-session-id"]]);
    transport.handleRequest(req, res);
  });
  await new Promise((yes) => http.listen(0, "127.0.0.1", yes));
  try {
    const { code, result, err } = await run(dir, [[use("1", "web__echo", { text: "hi" })], "done"],
      { web: { url: `http://127.0.0.1:${http.address().port}/mcp`, headers: { "X-Key": "k" } } });
    assert.equal(code, 0, err);
    assert.equal(result.steps[0].calls[0].output, "web: hi");
    assert.ok(seen.every(([, key]) => key === "k"));
    assert.deepEqual(seen.at(-1), ["DELETE", "k", "session-1"]);
  } finally {
    http.closeAllConnections();
    http.close();
  }
});

test("a server of the old SSE transport is used, also when its transport is not named", async (_, dir) => {
  const transports = {};
  const http = createServer(async (req, res) => {
    const url = new URL(req.url, "http://127.0.0.1");
    if (req.method === "GET" && url.pathname === "/sse") {
      const server = new McpServer({ name: "old", version: "1" });
      server.registerTool("echo", { description: "Echoes.", inputSchema: { text: z.string() } },
        async ({ text }) => ({ content: [{ type: "text", text: `old: ${text}` }] }));
      const transport = new SSEServerTransport("/messages", res);
      transports[transport.sessionId] = transport;
      await server.connect(transport);
    } else if (req.method === "POST" && url.pathname === "/messages") {
      await transports[url.searchParams.get("sessionId")].handlePostMessage(req, res);
    } else {
      res.writeHead(405).end();
    }
  });
  await new Promise((yes) => http.listen(0, "127.0.0.1", yes));
  const url = `http://127.0.0.1:${http.address().port}/sse`;
  try {
    for (const server of [{ url, transport: "sse" }, { url }]) {
      const { code, result, err } = await run(dir, [[use("1", "old__echo", { text: "hi" })], "done"], { old: server });
      assert.equal(code, 0, err);
      assert.equal(result.steps[0].calls[0].output, "old: hi");
    }
  } finally {
    http.closeAllConnections();
    http.close();
  }
});

test("resources and prompts of a server are reached with tools", async (_, dir) => {
  const { result } = await run(dir,
    [[use("1", "server_offers", {}), use("2", "server_resource", { server: "calc", uri: "test://greeting" }),
      use("3", "server_prompt", { server: "calc", name: "review", arguments: { file: "a.c" } }),
      use("4", "server_resource", { server: "none", uri: "x" })], "done"],
    { calc: stdio(dir) });
  const calls = result.steps[0].calls;
  assert.match(calls[0].output, /test:\/\/greeting: A greeting[\s\S]*review file!: Reviews/);
  assert.equal(calls[1].output, "hello from a resource");
  assert.match(calls[2].output, /user:\nReview a\.c/);
  assert.match(calls[3].output, /there is no MCP server "none"/);
});

test("a server that died is started again by the next call, and a change of its tools counts from the next step", async (_, dir) => {
  const { result } = await run(dir,
    [[use("1", "calc__die", {}), use("2", "calc__add", { a: 2, b: 2 }), use("3", "calc__grow", {})],
      [use("4", "calc__grown", {})], "done"],
    { calc: stdio(dir) });
  const calls = [...result.steps[0].calls, ...result.steps[1].calls];
  assert.match(calls[0].output, /ended/);
  assert.equal(calls[1].output, "4 none");
  assert.equal(calls[3].output, "grown");
});

test("progress extends the time of a call, and silence ends it", async (_, dir) => {
  const { result } = await run(dir, [[use("1", "calc__slow", {})], "done"], { calc: stdio(dir, { timeout: "PT0.4S" }) });
  assert.equal(result.steps[0].calls[0].output, "slow");
  writeFileSync(join(dir, "silent.cjs"), "setInterval(() => {}, 1000)");
  const late = await run(dir, [[use("1", "calc__add", { a: 1, b: 1 })], "done"],
    { silent: { command: process.execPath, args: [join(dir, "silent.cjs")], initializationTimeout: "PT0.3S" }, calc: stdio(dir) });
  assert.equal(late.result.steps[0].calls[0].output, "2 none");
});

test("a server asks the model only if it may, and what that costs counts for the turn", async (_, dir) => {
  const script = [[use("1", "calc__ask", {})], "Paris", "done"];
  await withModel(script, async (url, asked) => {
    const { result, err } = await run(dir, [], { calc: stdio(dir, { sampling: true }) }, "", ["-m", "openai:any", "--base-url", url]);
    assert.equal(result.steps[0].calls[0].output, "the model says Paris", err);
    assert.equal(asked[1].max_tokens ?? asked[1].max_completion_tokens, 50);
    const usage = readFileSync(join(dir, "store/default/agents/default/token_usage.jsonl"), "utf8").trim().split("\n").map(JSON.parse);
    assert.equal(usage.at(-1).input_tokens, 30);
  });
  for (const [servers, extra] of [[{ calc: stdio(dir) }, ""],
    [{ calc: stdio(dir, { sampling: true }) }, "policy: {rules: [{id: no, effect: deny, tool: calc__sampling}]}\n"]]) {
    await withModel([script[0], "done"], async (url, asked) => {
      const { result } = await run(dir, [], servers, extra, ["-m", "openai:any", "--base-url", url]);
      assert.equal(result.steps[0].calls[0].is_error, true);
      assert.equal(asked.length, 2);
    });
  }
});

test("a form of a server is cancelled when nobody is there", async (_, dir) => {
  const { result } = await run(dir, [[use("1", "calc__form", {})], "done"], { calc: stdio(dir, { elicitation: true }) });
  assert.equal(result.steps[0].calls[0].output, '{"action":"cancel"}');
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  assert.match(log, /"type":"elicitation".*"server":"calc".*"action":"cancel"/);
});

// A server that keeps to the framing of the protocol and to nothing else.
const ODD = `
const say = (value) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...value }) + "\\n");
const tool = (name, inputSchema) => ({ name, description: "d", inputSchema: inputSchema ?? { type: "object" } });
const calls = { large: { content: [{ type: "text", text: "z".repeat(3_000_000) }] }, bare: { content: "text alone" } };
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") say({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } } });
  else if (method === "tools/list") say({ id, result: { nextCursor: "again", tools: ["large", "bare", "refused", "huge", "silent"].map((name) => tool(name)).concat(tool("broken", { type: "objekt", properties: 7 })) } });
  else if (method !== "tools/call") id !== undefined && say({ id, error: { code: -32601, message: "no" } });
  else if (params.name === "refused") say({ id, error: { code: "x" } });
  else if (params.name === "huge") say({ id, result: { content: [{ type: "text", text: "z".repeat(17_000_000) }] } });
  else if (calls[params.name]) say({ id, result: calls[params.name] });
});
`;

test("nothing of a server that does not keep to the protocol is lost without a word", async (_, dir) => {
  writeFileSync(join(dir, "odd.cjs"), ODD);
  const { result, err } = await run(dir, [["large", "bare", "refused", "huge", "silent", "broken"].map((name) => use(name, `odd__${name}`, {})), "done"],
    { odd: { command: process.execPath, args: [join(dir, "odd.cjs")], timeout: "PT1.5S" } });
  const outputs = result.steps[0].calls.map((call) => call.output);
  assert.match(outputs[0], /OFFLOADED[\s\S]*3000000 bytes/, err);
  assert.equal(outputs[1], '"text alone"');
  assert.match(outputs[2], /refused tools\/call: it gave no reason/);
  assert.match(outputs[3], /answered with more than 16 MiB/);
  assert.match(outputs[4], /did not answer within 1.5 s; timeout in tools.json gives it more time; it may or may not have taken effect$/);
  assert.match(outputs[5], /there is no tool/);
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  assert.equal(log.match(/"type":"problem"/g).length, 1, "one sentence for all tools that are left out");
  assert.match(log, /left out \(and 6 more\)/);
});

test("over HTTP, an answer that is too large and a page in place of an answer are told apart", async (_, dir) => {
  const http = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    const { id, method } = JSON.parse(body || "{}"), say = (result) => res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    if (req.url === "/page") res.writeHead(200, { "content-type": "text/html" }).end("<p>Hello</p>");
    else if (method === "initialize") say({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
    else if (method === "tools/list") say({ tools: [{ name: "huge", inputSchema: { type: "object" } }] });
    else if (method === "tools/call") say({ content: [{ type: "text", text: "z".repeat(17_000_000) }] });
    else res.writeHead(req.method === "POST" && id === undefined ? 202 : 405).end();
  });
  await new Promise((yes) => http.listen(0, "127.0.0.1", yes));
  const at = `http://127.0.0.1:${http.address().port}`;
  try {
    const { result, err } = await run(dir, [[use("1", "web__huge", {})], "done"], { page: { url: `${at}/page` }, web: { url: `${at}/mcp`, protocolVersion: "2025-06-18" } });
    assert.match(result.steps[0].calls[0].output, /answered with more than 16 MiB/, err);
    const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
    assert.match(log, /"problem":"the MCP server \\"page\\" did not answer in MCP/);
  } finally {
    http.closeAllConnections();
    http.close();
  }
});

test("both eras of the protocol are spoken, found out or pinned", async (_, dir) => {
  mkdirSync(join(dir, "data"));
  writeFileSync(join(dir, "data", "a.txt"), "one");
  for (const version of [undefined, "2025-11-25", "2026-07-28"]) {
    const { result, err } = await run(dir, [[use("1", "files__read_file", { path: "a.txt" })], "done"],
      { files: { command: process.env.STEAD, args: ["mcp", "--files", join(dir, "data")], ...(version && { protocolVersion: version }) } });
    assert.match(result.steps[0].calls[0].output, /one/, err);
  }
});

main();
