// SPDX-License-Identifier: Apache-2.0
// The Telegram channel of `stead up` against a server of the Bot API by others, by long poll and by webhook. That server keeps neither
// an update until it is confirmed nor a secret of a webhook, so a gate before it adds what the real service does: it sends the secret,
// and now and then an update twice or an error.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { main, test } from "../peers/peer.mjs";
import { listen, makeWorkspace, read, startModel, startUp } from "./agent_stub.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const TelegramServer = load("telegram-test-api");
const token = "123:secret";
const secret = "a-secret-of-the-webhook";

async function freePort() {
  const { server, url } = await listen(() => {});
  await new Promise((yes) => server.close(yes));
  return Number(new URL(url).port);
}

// Forwards to the mock. `faults` maps a method to statuses that its first calls get.
async function gate(api, faults, seen) {
  return listen(async (req, res) => {
    const body = await read(req);
    if (req.url === "/deliver") {
      const update = JSON.stringify({ ...JSON.parse(body), update_id: ++seen.updates }); // the mock gives the same one to several
      const send = () => fetch(seen.hook.url, { method: "POST", body: update, headers: { "X-Telegram-Bot-Api-Secret-Token": seen.hook.secret_token } });
      await send();
      res.writeHead((await send()).status === 202 ? 200 : 500).end(); // twice: the service does so after a lost answer
      seen.delivered++;
      return;
    }
    const method = req.url.split("/").at(-1);
    const fault = faults[method]?.shift();
    if (fault) {
      const parameters = fault === 429 ? { retry_after: 1 } : undefined;
      res.writeHead(fault, { "Content-Type": "application/json" }).end(JSON.stringify({ ok: false, error_code: fault, description: "as asked", parameters }));
      return;
    }
    const given = body.length ? JSON.parse(body) : {};
    if (method === "setWebhook") {
      seen.hook = { ...given };
      given.url = `http://${req.headers.host}/deliver`;
    }
    const answer = await fetch(api + req.url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) });
    const text = await answer.text();
    if (method === "getUpdates" && JSON.parse(text).result.length === 0) await new Promise((yes) => setTimeout(yes, 20)); // it does not wait itself
    res.writeHead(answer.status, { "Content-Type": "application/json" }).end(text);
  });
}

async function scene(dir, by, faults, run) {
  const model = await startModel();
  const telegram = new TelegramServer({ port: await freePort(), host: "127.0.0.1" });
  await telegram.start();
  const seen = { updates: 0, delivered: 0 };
  const front = await gate(telegram.config.apiURL, faults, seen);
  const port = await freePort();
  const hook = by === "webhook" ? `, webhook_url: "http://127.0.0.1:${port}", webhook_secret: "\${SECRET}"` : "";
  const yaml = `${model.yaml}channel: {type: telegram, token: "\${TOKEN}", base_url: "${front.url}", allowed_users: [42]${hook}}\nqueue: {mode: followup}\n`;
  const { store } = makeWorkspace(dir, yaml, `TOKEN=${token}\nSECRET=${secret}\n`);
  const up = await startUp(store, ["--listen", `127.0.0.1:${port}`]);
  const client = telegram.getClient(token, { userId: 42, chatId: 42, firstName: "Ann", timeout: 20000 });
  if (by === "webhook") await up.until(() => seen.hook);
  const sent = () => telegram.storage.botMessages.map((m) => m.message.text);
  try {
    await run({ client, up, model, sent, seen, port });
  } finally {
    await up.stop();
    await telegram.stop();
    front.server.close();
    front.server.closeAllConnections();
    model.server.close();
    model.server.closeAllConnections();
  }
}

for (const by of ["poll", "webhook"]) {
  test(`by ${by}, each message is answered once and in order, also over errors of the service`, (_, dir) =>
    scene(dir, by, { sendMessage: [429], getUpdates: [500] }, async ({ client, up, sent, seen, model }) => {
      const words = Array.from({ length: 8 }, (_, i) => `word ${i}`);
      for (const [i, word] of words.entries()) {
        await client.sendMessage(client.makeMessage(word));
        // The mock posts the next one while this one is on its way; the service waits for the answer.
        if (by === "webhook") await up.until(() => seen.delivered > i);
      }
      await up.until(() => sent().length >= words.length);
      assert.deepEqual(sent(), words.map((w) => `echo: ${w}`));
      assert.deepEqual(model.asked.map((a) => a.said), words);
    }), 60);

  test(`by ${by}, Markdown arrives as Telegram's HTML and a long answer in parts`, (_, dir) =>
    scene(dir, by, {}, async ({ client, up, sent }) => {
      await client.sendMessage(client.makeMessage("**bold** and `code`"));
      await up.until(() => sent().length >= 1);
      assert.equal(sent()[0], "echo: <b>bold</b> and <code>code</code>");
      await client.sendMessage(client.makeMessage("a paragraph of words. ".repeat(500)));
      await up.until(() => sent().length >= 4);
      assert.ok(sent().every((t) => t.length <= 4096));
      assert.equal(sent().slice(1).join(" ").replaceAll(/\s+/g, " ").trim(), `echo: ${"a paragraph of words. ".repeat(500)}`.trim());
    }), 60);
}

test("an update without the secret is not taken", (_, dir) =>
  scene(dir, "webhook", {}, async ({ client, up, sent, seen, model }) => {
    assert.equal(seen.hook.secret_token, secret);
    const body = JSON.stringify({ update_id: 900, message: client.makeMessage("forged") });
    for (const headers of [{}, { "X-Telegram-Bot-Api-Secret-Token": "a-secret-of-the-webhooK" }, { "X-Telegram-Bot-Api-Secret-Token": "" }])
      assert.equal((await fetch(seen.hook.url, { method: "POST", body, headers })).status, 401);
    await client.sendMessage(client.makeMessage("true"));
    await up.until(() => sent().length >= 1);
    assert.deepEqual(model.asked.map((a) => a.said), ["true"]);
  }));

await main();
