// SPDX-License-Identifier: Apache-2.0
// The official SDKs of Anthropic and OpenAI read streams of aimock, and the bytes are recorded on the way. `stead run`
// then gets the same bytes in pieces of one to seven, and must understand what the SDK understood. aimock cuts text
// between UTF-16 units, so its streams also have characters whose halves are in two events.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { main, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { LLMock } = load("@copilotkit/aimock");
const { Anthropic } = load("@anthropic-ai/sdk");
const { OpenAI } = load("openai");

const KEY = "sk-peer-secret";
const SECONDS = 120;

const WORDS = "Grüße, 世界: \u{1F469}\u200D\u{1F680} e\u0301, \"a\\b\"\n\u2028 and \u{1F600}\u{1F600} at the end";
const NESTED = { pattern: "**/*.{md,txt}", meta: { deep: [{ a: [1, -2.5, 1e21, null] }, WORDS], "k\n\"ß\"": {} } };

const scenarios = {
  "a text": { content: WORDS, usage: { input_tokens: 1234, output_tokens: 56 } },
  "a text and two calls": {
    content: `I look: ${WORDS}`,
    toolCalls: [
      { id: "call_a", name: "glob", arguments: JSON.stringify(NESTED) },
      { id: "call_b", name: "ls", arguments: JSON.stringify({ path: "/" }) },
    ],
    usage: { input_tokens: 70000, output_tokens: 1 },
  },
  "calls with empty arguments": {
    toolCalls: [
      { id: "call_a", name: "ls", arguments: "" },
      { id: "call_b", name: "ls", arguments: "{}" },
      { id: "call_c", name: "glob", arguments: JSON.stringify({ pattern: "" }) },
    ],
  },
  "a thought before a text": { content: WORDS, reasoning: `Hm, ${WORDS}` },
  "a text cut by its limit": { content: WORDS, finishReason: "length", usage: { input_tokens: 9, output_tokens: 4 } },
};
const LAST = "That is all.";

// What each SDK makes of a stream: `ask` gives its own final value, `read` the parts of it that Stead has, too.
const message = (scenario) => [{ role: "user", content: scenario }];
const call = (id, name, text) => ({ id, name, input: JSON.parse(text || "{}") });
const sdks = {
  anthropic: {
    ask: (url, scenario) => new Anthropic({ apiKey: KEY, baseURL: url, maxRetries: 0 }).messages
      .stream({ model: "m", max_tokens: 1000, messages: message(scenario) }).finalMessage(),
    read: (final) => ({
      text: final.content.filter((b) => b.type === "text").map((b) => b.text).join(""),
      thoughts: final.content.filter((b) => b.type === "thinking").map((b) => [b.thinking, b.signature]),
      calls: final.content.filter((b) => b.type === "tool_use").map(({ id, name, input }) => ({ id, name, input })),
      usage: { input_tokens: final.usage.input_tokens, output_tokens: final.usage.output_tokens },
      stop: { end_turn: "done", tool_use: "done", max_tokens: "cut" }[final.stop_reason],
      response_id: final.id,
    }),
  },
  openai: {
    ask: (url, scenario) => new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 }).chat.completions
      .stream({ model: "m", messages: message(scenario), stream_options: { include_usage: true } })
      .finalChatCompletion(),
    read: (final) => ({
      text: final.choices[0].message.content ?? "",
      calls: (final.choices[0].message.tool_calls ?? []).map((c) => call(c.id, c.function.name, c.function.arguments)),
      usage: { input_tokens: final.usage.prompt_tokens, output_tokens: final.usage.completion_tokens },
      stop: { stop: "done", tool_calls: "done", length: "cut" }[final.choices[0].finish_reason],
      response_id: final.id,
    }),
  },
  "openai-responses": {
    ask: (url, scenario) => new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 }).responses
      .stream({ model: "m", input: scenario }).finalResponse(),
    read: (final) => ({
      text: final.output_text,
      calls: final.output.filter((i) => i.type === "function_call").map((c) => call(c.call_id, c.name, c.arguments)),
      usage: { input_tokens: final.usage.input_tokens, output_tokens: final.usage.output_tokens },
      stop: { completed: "done", incomplete: "cut" }[final.status],
      response_id: final.id,
    }),
  },
};

// The same parts of an answer in Stead's log; thoughts of Anthropic only, since they have no one place with the others.
function logged(entry, provider) {
  const blocks = (type) => entry.content.filter((b) => b.type === type);
  return {
    text: blocks("text").map((b) => b.text).join(""),
    ...(provider === "anthropic" && { thoughts: blocks("thinking").map((b) => [b.thinking, b.signature]) }),
    calls: blocks("tool_use").map(({ type, ...rest }) => rest),
    usage: entry.usage,
    stop: entry.stop,
    response_id: entry.response_id,
  };
}

async function serve(handle, run) {
  const server = createServer(handle);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    return await run(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

// Asks aimock with the SDK through a proxy: {final, bytes, type}.
async function record(provider, scenario) {
  const mock = new LLMock({ port: 0, chunkSize: 5 });
  const chunks = [];
  let type;
  for (const [name, answer] of Object.entries(scenarios))
    mock.on({ userMessage: name, predicate: (r) => r.messages.at(-1).content === name }, answer);
  mock.on({ userMessage: LAST }, { content: LAST, usage: { input_tokens: 3, output_tokens: 4 } });
  await mock.start();
  const proxy = (req, res) => {
    const { host, ...headers } = req.headers;
    req.pipe(request(mock.url + req.url, { method: req.method, headers }, (answer) => {
      type = answer.headers["content-type"];
      res.writeHead(answer.statusCode, { "content-type": type });
      answer.on("data", (chunk) => chunks.push(chunk)).pipe(res);
    }));
  };
  try {
    const final = await serve(proxy, (url) => sdks[provider].ask(url, scenario));
    return { heard: sdks[provider].read(final), bytes: Buffer.concat(chunks), type };
  } finally {
    await mock.stop();
  }
}

// Sends recorded bytes in pieces of one to seven bytes; gives the places of the cuts.
async function trickle(res, { bytes, type }) {
  const cuts = [];
  res.socket.setNoDelay(true);
  res.writeHead(200, { "content-type": type });
  for (let at = 0, n = 1; at < bytes.length; n = n % 7 + 1) {
    res.write(bytes.subarray(at, at + n));
    cuts.push(at += n);
    await turn();
  }
  res.end();
  return cuts;
}

// Runs Stead on recorded answers, one for each call of the model: {result, entries, cuts}.
async function replay(provider, dir, recordings) {
  const cuts = [], waiting = [...recordings];
  const answer = (req, res) => req.resume().on("end", async () => {
    const next = waiting.shift();
    if (next)
      cuts.push(await trickle(res, next));
    else
      res.writeHead(400).end("asked too often");
  });
  const result = await serve(answer, (url) => new Promise((done, fail) => execFile(process.env.STEAD,
    ["--store", `disk:${dir}/store`, "run", "-m", `${provider}:m`, "--base-url", url, "--json", "go"],
    { env: { PATH: process.env.PATH, HOME: dir, OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY } },
    (e, out, err) => e ? fail(new Error(err)) : done(JSON.parse(out)))));
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  const entries = log.trim().split("\n").map((l) => JSON.parse(l)).filter((e) => e.role === "assistant");
  return { result, entries, cuts };
}

for (const provider of Object.keys(sdks))
  for (const scenario of Object.keys(scenarios))
    test(`${provider}: ${scenario}: Stead understands what the SDK does`, async (_, dir) => {
      const first = await record(provider, scenario);
      const recordings = first.heard.calls.length ? [first, await record(provider, LAST)] : [first];
      const { result, entries, cuts } = await replay(provider, dir, recordings);
      const heard = recordings.map((r) => r.heard);
      const sum = (key) => heard.reduce((n, h) => n + h.usage[key], 0);

      assert.deepEqual(entries.map((e) => logged(e, provider)), heard);
      assert.equal(result.answer, heard.at(-1).text);
      assert.equal(result.cut ?? false, heard.at(-1).stop === "cut");
      assert.deepEqual((result.steps[0]?.calls ?? []).map((c) => c.name), heard[0].calls.map((c) => c.name));
      assert.deepEqual([result.usage.input_tokens, result.usage.output_tokens, result.usage.model_calls],
        [sum("input_tokens"), sum("output_tokens"), heard.length]);
      assert.equal(cuts.length, heard.length);
      if (heard[0].text)
        assert.ok(cuts[0].some((at) => (first.bytes[at] & 0xC0) === 0x80), "no cut is within a character");
    }, SECONDS);

main();
