// SPDX-License-Identifier: Apache-2.0
// `stead run` against aimock, which speaks the wire formats of the providers: streams, tool calls, and its faults.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, test } from "../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { LLMock } = load("@copilotkit/aimock");

const KEY = "sk-peer-secret";

// Runs Stead and gives {code, out, err}; never throws.
function stead(dir, ...args) {
  const env = { PATH: process.env.PATH, HOME: dir, OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY };
  return new Promise((done) =>
    execFile(process.env.STEAD, ["--store", `disk:${dir}/store`, ...args], { env }, (e, out, err) =>
      done({ code: e ? e.code : 0, out, err })));
}

async function serve(options, run) {
  const mock = new LLMock({ port: 0, chunkSize: 7, ...options });
  mock.on({ userMessage: "write it", hasToolResult: false }, {
    content: "I write.",
    toolCalls: [
      { id: "call_a", name: "write_file", arguments: JSON.stringify({ path: "a.md", content: "héllo\n" }) },
      { id: "call_b", name: "write_file", arguments: JSON.stringify({ path: "b.md", content: "two\n" }) },
    ],
  });
  mock.on({ userMessage: "write it", hasToolResult: true }, { content: "Both files are written." });
  mock.on({ userMessage: "hello" }, { content: "Hello, friend." });
  await mock.start();
  try {
    await run(mock);
  } finally {
    await mock.stop();
  }
}

const providers = [["anthropic", "/v1/messages"], ["openai", "/v1/chat/completions"], ["openai-responses", "/v1/responses"]];

for (const [provider, path] of providers) {
  test(`${provider}: tool calls of one answer run, and their results bring the answer`, (_, dir) =>
    serve({}, async (mock) => {
      const run = await stead(dir, "run", "--model", `${provider}:some-model`, "--base-url", mock.url, "--json", "write it");
      assert.equal(run.code, 0, run.err);
      const result = JSON.parse(run.out);
      assert.equal(result.answer, "Both files are written.");
      assert.deepEqual(result.steps[0].calls.map((c) => [c.name, c.is_error]), [["write_file", false], ["write_file", false]]);
      assert.equal(readFileSync(join(dir, "store/default/files/a.md"), "utf8"), "héllo\n");
      assert.deepEqual(mock.getRequests().map((r) => r.path), [path, path]);
    }));

  test(`${provider}: the answer is streamed as it comes`, (_, dir) =>
    serve({}, async (mock) => {
      const run = await stead(dir, "run", "-m", `${provider}:m`, "--base-url", mock.url, "--stream", "--json", "hello");
      const events = run.out.trim().split("\n").map((l) => JSON.parse(l));
      const pieces = events.filter((e) => e.event === "text").map((e) => e.text);
      assert.ok(pieces.length > 1, run.out);
      assert.equal(pieces.join(""), "Hello, friend.");
      assert.equal(events.at(-1).answer, "Hello, friend.");
    }));

  test(`${provider}: a rate limit and an overload pass`, (_, dir) =>
    serve({}, async (mock) => {
      mock.nextRequestError(429, { message: "slow down", type: "rate_limit_error" });
      const run = await stead(dir, "run", "-m", `${provider}:m`, "--base-url", mock.url, "hello");
      assert.equal(run.code, 0, run.err);
      assert.equal(run.out, "Hello, friend.\n");
    }));
}

// A run that fails and is resumed once the server works.
async function failAndResume(provider, fault, dir) {
  await serve({ chaos: { [fault]: 1 } }, async (mock) => {
    const run = await stead(dir, "run", "-m", `${provider}:m`, "--base-url", mock.url, "hello");
    assert.notEqual(run.code, 0);
    assert.equal(run.out, "");
    assert.ok(!run.err.includes(KEY));
  });
  await serve({}, async (mock) => {
    const run = await stead(dir, "run", "-m", `${provider}:m`, "--base-url", mock.url, "--resume", "--json");
    assert.equal(run.code, 0, run.err);
    assert.equal(JSON.parse(run.out).resumed, true);
  });
  const log = readFileSync(join(dir, "store/default/agents/default/sessions/default.log.jsonl"), "utf8");
  assert.ok(!log.includes(KEY));
}

// The providers at once: most of the time Stead waits before it asks again.
for (const fault of ["disconnectRate", "malformedRate", "dropRate"])
  test(`a server that always fails (${fault}) is an error with every provider, and the turn goes on later`, (_, dir) =>
    Promise.all(providers.map(([provider]) => {
      mkdirSync(join(dir, provider));
      return failAndResume(provider, fault, join(dir, provider));
    })));

main();
