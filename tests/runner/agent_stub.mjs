// SPDX-License-Identifier: Apache-2.0
// What the tests of channels with outside programs share: a model that repeats the message, a workspace with an agent.yaml, and
// `stead up` in it.
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const read = (req) =>
  new Promise((yes, no) => {
    const parts = [];
    req.on("data", (d) => parts.push(d)).on("end", () => yes(Buffer.concat(parts))).on("error", no);
  });

export async function listen(handler) {
  const server = createServer(handler);
  await new Promise((yes) => server.listen(0, "127.0.0.1", yes));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

const text = (content) => (typeof content === "string" ? content : content.map((c) => c.text ?? "").join(""));

// OpenAI's wire format. calls(said, messages) may give a tool call, {name, arguments}, instead of the echo.
export async function startModel(calls = () => undefined) {
  const asked = [];
  const { server, url } = await listen(async (req, res) => {
    const { messages } = JSON.parse(await read(req));
    const said = text(messages.findLast((m) => m.role === "user").content);
    const call = messages.at(-1).role === "user" ? calls(said, messages) : undefined;
    asked.push({ said, messages });
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    const say = (choice, more = {}) => res.write(`data: ${JSON.stringify({ id: "r", choices: [{ index: 0, ...choice }], ...more })}\n\n`);
    if (call)
      say({ delta: { role: "assistant", tool_calls: [{ index: 0, id: `c${asked.length}`, type: "function",
        function: { name: call.name, arguments: JSON.stringify(call.arguments) } }] }, finish_reason: "tool_calls" });
    else {
      const last = messages.at(-1);
      say({ delta: { role: "assistant", content: last.role === "tool" ? `result: ${text(last.content)}` : `echo: ${said}` } });
      say({ delta: {}, finish_reason: "stop" }, { usage: { prompt_tokens: 3, completion_tokens: 2 } });
    }
    res.end("data: [DONE]\n\n");
  });
  return { server, url, asked, yaml: `model: {provider: openai, model: echo, base_url: "${url}/v1"}\n` };
}

// A workspace "test" in a store of its own.
export function makeWorkspace(dir, yaml, env) {
  const store = `disk:${join(dir, "store")}`;
  execFileSync(process.env.STEAD, ["init", "test", "--store", store], { stdio: "pipe" });
  const home = join(dir, "store", "test");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "agent.yaml"), yaml);
  writeFileSync(join(home, ".env"), `OPENAI_API_KEY=none\n${env}`);
  return { store, home };
}

// `stead up` with a listener. Lines of standard output are JSON: the first has the URL.
export async function startUp(store, args = ["--listen", "127.0.0.1:0"]) {
  const child = spawn(process.env.STEAD, ["up", "-w", "test", "--store", store, "--json", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => child.kill("SIGKILL")); // also after a test that failed
  const events = [];
  let rest = "";
  let heard;
  const wake = () => heard?.();
  child.stdout.on("data", (d) => {
    const lines = (rest + d).split("\n");
    rest = lines.pop();
    events.push(...lines.map((l) => JSON.parse(l)));
    wake();
  });
  const until = async (found) => {
    for (;;) {
      const hit = found();
      if (hit) return hit;
      await new Promise((yes) => { heard = yes; setTimeout(yes, 50); });
    }
  };
  const stop = () => new Promise((yes) => { child.once("exit", yes); child.kill("SIGTERM"); });
  const url = args.includes("--listen") ? (await until(() => events.find((e) => e.url))).url : undefined;
  return { child, events, until, stop, url };
}
