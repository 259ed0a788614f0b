// SPDX-License-Identifier: Apache-2.0
// The webhook channel of `stead up`, against the library that others sign and check such requests with.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { main, test } from "../peers/peer.mjs";
import { listen, makeWorkspace, read, startModel, startUp } from "./agent_stub.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Webhook } = load("standardwebhooks");

const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
const key = new Webhook(secret);

// A channel, its receiver, and what was received. `answers` are the statuses of the first answers.
async function scene(dir, more, run, answers = [], calls = undefined) {
  const model = await startModel(calls);
  const got = [];
  const refused = [];
  const receiver = await listen(async (req, res) => {
    const body = await read(req);
    const event = key.verify(body, req.headers);
    const status = answers.shift() ?? 204;
    (status < 300 ? got : refused).push({ ...event, header: req.headers["webhook-id"] });
    res.writeHead(status, status === 429 ? { "Retry-After": "1" } : {}).end();
  });
  const yaml = `${model.yaml}channel: {type: webhook, url: "${receiver.url}/in", secret: "\${HOOK}"${more}}\nqueue: {mode: followup}\n`;
  const { store, home } = makeWorkspace(dir, yaml, `HOOK=${secret}\n`);
  const up = await startUp(store);
  let n = 0;
  const post = async (body, { id = `msg_${++n}`, at = new Date(), sign = key, path = "/hooks/test/webhook", change = (x) => x } = {}) => {
    const text = JSON.stringify(body);
    const headers = { "webhook-id": id, "webhook-timestamp": `${Math.floor(at / 1000)}`, "webhook-signature": sign.sign(id, at, text) };
    return (await fetch(up.url + path, { method: "POST", headers, body: change(text) })).status;
  };
  try {
    await run({ post, got, refused, up, home, model });
  } finally {
    await up.stop();
    model.server.close();
    receiver.server.close();
  }
}

const ann = ", allowed_users: [ann]";
const said = (got, text) => () => got.find((e) => e.text?.includes(text));

test("a signed message is answered with a signed message", (_, dir) =>
  scene(dir, ann, async ({ post, got, up }) => {
    assert.equal(await post({ sender: "ann", chat: "room-1", text: "hello" }), 202);
    const answer = await up.until(said(got, "echo: hello"));
    assert.equal(answer.chat, "room-1");
    assert.equal(answer.type, "message");
    assert.equal(answer.workspace, "test");
    assert.equal(answer.id, answer.header);
  }));

test("a message is taken only with the right secret, body, time and channel, and all refusals look the same", (_, dir) =>
  scene(dir, ann, async ({ post, model, up, got }) => {
    const body = { sender: "ann", text: "stolen" };
    const other = new Webhook(`whsec_${Buffer.from("another secret of 32 bytes......").toString("base64")}`);
    const statuses = [
      await post(body, { sign: other }),
      await post(body, { change: (t) => t.replace("stolen", "forged") }),
      await post(body, { at: new Date(Date.now() - 400e3) }),
      await post(body, { at: new Date(Date.now() + 400e3) }),
      await post(body, { path: "/hooks/test/other" }),
      await post(body, { path: "/hooks/nobody/webhook" }),
      (await fetch(`${up.url}/hooks/test/webhook`, { method: "POST", body: JSON.stringify(body) })).status,
    ];
    assert.deepEqual(statuses, Array(7).fill(401));
    assert.equal((await fetch(`${up.url}/v1/workspaces`)).status, 404);
    await post({ sender: "ann", text: "after" });
    await up.until(said(got, "echo: after"));
    assert.deepEqual(model.asked.map((a) => a.said), ["after"]);
  }));

test("a request that is sent again counts once, a command too", (_, dir) =>
  scene(dir, ann, async ({ post, got, up, model, home }) => {
    const at = new Date();
    for (let i = 0; i < 3; i++) assert.equal(await post({ sender: "ann", text: "once" }, { id: "same", at }), 202);
    for (let i = 0; i < 3; i++) assert.equal(await post({ sender: "ann", text: "/help" }, { id: "help", at }), 202);
    await post({ sender: "ann", text: "last" });
    await up.until(said(got, "echo: last"));
    assert.deepEqual(model.asked.map((a) => a.said), ["once", "last"]);
    assert.equal(got.filter((e) => e.text.includes("/status")).length, 1);
    const inbox = join(home, "channels", "inbox");
    await up.until(() => !existsSync(inbox) || readdirSync(inbox).length === 0);
  }));

test("an empty list admits nobody, and says who asked", (_, dir) =>
  scene(dir, "", async ({ post, up, model }) => {
    assert.equal(await post({ sender: "eve", text: "let me in" }), 202);
    const e = await up.until(() => up.events.find((x) => x.event === "problem"));
    assert.match(e.text, /eve.*allowed_users/);
    assert.equal(model.asked.length, 0);
  }));

test("a body that is not a message is refused with a sentence", (_, dir) =>
  scene(dir, ann, async ({ post, up, model, got }) => {
    const bodies = [[1], { text: "x" }, { sender: "a b", text: "x" }, { sender: "ann", chat: "../x", text: "x" }, { sender: "ann" },
      { sender: "ann", text: 7 }, { sender: "ann", files: {} }, { sender: "ann", text: "a\0b" }];
    for (const body of bodies) assert.equal(await post(body), 400, JSON.stringify(body));
    await post({ sender: "ann", text: "after" });
    await up.until(said(got, "echo: after"));
    assert.deepEqual(model.asked.map((a) => a.said), ["after"]);
    assert.ok(up.events.every((e) => e.event !== "problem"));
  }));

test("a receiver that is busy or broken gets the message later, under the same id", (_, dir) =>
  scene(dir, ann, async ({ post, got, refused, up }) => {
    await post({ sender: "ann", text: "again" });
    const answer = await up.until(said(got, "echo: again"));
    assert.equal(refused.length, 2);
    assert.ok(refused.every((e) => e.id === answer.id));
  }, [503, 429]));

test("a file that is sent becomes an upload", (_, dir) =>
  scene(dir, ann, async ({ post, got, up }) => {
    const content_base64 = Buffer.from("hello").toString("base64");
    await post({ sender: "ann", text: "keep", files: [{ name: "a note.txt", mime: "text/plain", content_base64 }] });
    const answer = await up.until(said(got, "keep"));
    assert.match(answer.text, /uploads\/\d{4}-\d\d-\d\d\/a_note\.txt/);
  }));

test("the words of a voice message come with it", (_, dir) =>
  scene(dir, `${ann}}\nmedia: {transcribe: {command: [sh, -c, "tr a-z A-Z <{in}"]}`, async ({ post, got, up }) => {
    const content_base64 = Buffer.from("buy milk").toString("base64");
    await post({ sender: "ann", text: "", files: [{ name: "voice_7.ogg", mime: "audio/ogg", content_base64 }] });
    const answer = await up.until(() => got.find((e) => e.text));
    assert.match(answer.text, /\[what is said in it:\] BUY MILK/);
  }));

test("a call that needs approval waits for a button's text", (_, dir) =>
  scene(dir, `${ann}}\napproval_gates: {enabled: true, tools: {write_file: {require_approval: true}}`, async ({ post, got, up }) => {
    await post({ sender: "ann", text: "write" });
    const question = await up.until(() => got.find((e) => e.buttons));
    assert.deepEqual(question.buttons.map((b) => b.label), ["Approve", "Deny"]);
    await post({ sender: "ann", text: question.buttons[0].text });
    await up.until(said(got, "result: "));
  }, [], (t) => (t === "write" ? { name: "write_file", arguments: { path: "a.txt", content: "x" } } : undefined)));

test("an agent gets the turns that it asks for, one at a time and five in a row", (_, dir) =>
  scene(dir, ann, async ({ post, got, up, model }) => {
    await post({ sender: "ann", text: "begin" });
    await up.until(said(got, "follow-up 6 in a row"));
    const prompts = model.asked.filter((a) => a.messages.at(-1).role === "user").map((a) => a.said);
    assert.deepEqual(prompts, ["begin", ...[1, 2, 3, 4, 5].map((n) => `[follow-up ${n} of at most 5, which you asked for]\ngo on`)]);
    await post({ sender: "ann", text: "once more" });
    await up.until(() => model.asked.filter((a) => a.said.includes("follow-up 1 of")).length >= 3);
  }, [], () => ({ name: "request_followup", arguments: { prompt: "go on" } })));

test("a key that a webhook does not act on is refused", (_, dir) =>
  scene(dir, `${ann}, mention_required: true`, async ({ up }) => {
    const e = await up.until(() => up.events.find((x) => x.event === "problem"));
    assert.match(e.text, /mention_required.*has no effect in a channel of type webhook/);
  }));

await main();
