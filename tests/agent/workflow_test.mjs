// SPDX-License-Identifier: Apache-2.0
// Workflows and teams, with a model on this machine that answers by what it is asked.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { main, test } from "../peers/peer.mjs";

// `answer(task, asked, request)` gives a text, a list of calls, or a promise of one; undefined: the model never answers.
async function withModel(answer, act) {
  const tasks = [];
  const http = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk) => (body += chunk));
    req.on("end", async () => {
      const request = JSON.parse(body);
      const said = request.messages.filter((m) => m.role === "user").map((m) => m.content)
        .map((c) => (typeof c === "string" ? c : c.map((b) => b.text ?? "").join("")));
      const results = request.messages.filter((m) => m.role === "tool").map((m) => m.content);
      const task = said[0].split("The task:\n").at(-1);
      tasks.push(task);
      const next = await answer(task, { results, message: said[0], count: tasks.length }, request);
      if (next === undefined) return;
      const delta = typeof next === "string" ? { content: next }
        : { tool_calls: next.map(([name, input], index) => ({ index, id: `c${tasks.length}-${index}`, type: "function",
            function: { name, arguments: JSON.stringify(input) } })) };
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`data: ${JSON.stringify({ id: "a", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`);
      res.write(`data: ${JSON.stringify({ id: "a", choices: [{ index: 0, delta: {},
        finish_reason: typeof next === "string" ? "stop" : "tool_calls" }] })}\n\n`);
      res.end("data: [DONE]\n\n");
    });
  });
  await new Promise((yes) => http.listen(0, "127.0.0.1", yes));
  try {
    return await act(["-m", "openai:any", "--base-url", `http://127.0.0.1:${http.address().port}/v1`], tasks);
  } finally {
    http.closeAllConnections();
    http.close();
  }
}

const home = (dir) => join(dir, "store", "default");

function put(dir, path, text) {
  mkdirSync(dirname(join(home(dir), path)), { recursive: true });
  writeFileSync(join(home(dir), path), text);
}

function stead(dir, args) {
  const child = spawn(process.env.STEAD, ["--store", `disk:${dir}/store`, ...args],
    { env: { PATH: process.env.PATH, HOME: dir, OPENAI_API_KEY: "k" }, stdio: ["ignore", "pipe", "pipe"] });
  const out = { text: "", err: "" };
  child.stdout.on("data", (d) => (out.text += d));
  child.stderr.on("data", (d) => (out.err += d));
  const end = new Promise((yes) => child.once("close", (code, signal) => yes({ code: signal ?? code, ...out })));
  return { child, end };
}

const REPORT = `description: Researches and writes.
steps:
  - parallel:
      - {id: facts, task: "facts about {{input}}"}
      - {id: doubts, task: "doubts about {{input}}"}
  - {id: check, task: "check {{facts}} and {{doubts}}", output: "out/{{run}}.md"}
  - {id: mend, when: {step: check, contains: WRONG}, task: "mend {{check}}"}
  - {id: praise, needs: [check], when: {step: check, lacks: WRONG}, task: "praise {{check}}"}
  - {id: end, needs: [mend, praise], task: "end: {{mend}}{{praise}}"}
answer: "{{end}} in {{check}}"
`;

test("steps run in order, at the same time and on conditions, and their results go on to others and to files", async (_, dir) => {
  put(dir, "workflows/report.yaml", REPORT);
  let both;
  const met = new Promise((yes) => (both = yes));
  let open = 0;
  await withModel(async (task) => {
    if (/^(facts|doubts) about/.test(task)) {
      if (++open === 2) both();
      await met; // each waits until the other is asked, too
    }
    return task.startsWith("check") ? "all WRONG" : `<${task}>`;
  }, async (model, tasks) => {
    const { code, text, err } = await stead(dir, ["workflow", "run", "report", "cats", "--json", ...model]).end;
    assert.equal(code, 0, err);
    const record = JSON.parse(text);
    assert.equal(record.answer, "<end: <mend all WRONG>> in all WRONG");
    assert.equal(record.steps.praise.status, "skipped");
    assert.equal(readFileSync(join(home(dir), "files/out", `${record.id}.md`), "utf8"), "all WRONG");
    assert.deepEqual(tasks.slice(2), ["check <facts about cats> and <doubts about cats>", "mend all WRONG", "end: <mend all WRONG>"]);
  });
});

test("a run that is killed at any question goes on, and steps that are done are not repeated", async (_, dir) => {
  put(dir, "workflows/line.yaml", "steps:\n" + ["one", "two", "three"].map((id) => `  - {id: ${id}, task: ${id}}\n`).join(""));
  let held;
  await withModel(async (task, { count, results }) => {
    if (count === held) return undefined;
    return results.length ? `did ${task}` : [["write_file", { path: `${task}.txt`, content: "x" }]];
  }, async (model, tasks) => {
    for (held = 1; held <= 6; held++) {
      tasks.length = 0;
      const first = stead(dir, ["workflow", "run", "line", ...model]);
      while (tasks.length < held) await new Promise((yes) => setTimeout(yes, 5));
      first.child.kill("SIGKILL");
      const { err } = await first.end;
      const id = /\[run (\w+)\]/.exec(err)[1];
      const { code, text, err: why } = await stead(dir, ["workflow", "resume", id, ...model]).end;
      assert.equal(code, 0, why);
      assert.equal(text, "did three\n");
      assert.equal(tasks.length, 7, `${held}: ${tasks}`); // six questions, and the one that was never answered
    }
  });
});

test("a coordinator gives tasks to its members alone, and all of them share one notebook", async (_, dir) => {
  put(dir, "workflows/team.yaml", "team: {coordinator: editor, members: [writer, critic]}\ntask: Write about {{input}}\n");
  for (const id of ["editor", "writer", "critic", "stranger"])
    put(dir, `subagents/${id}.md`, `---\ndescription: The ${id}.\n---\nYou are the ${id}.\n`);
  const seen = {};
  await withModel(async (task, { results, message }) => {
    seen[task] = message;
    if (task === "Write about owls")
      return results.length ? results.join(" | ")
        : [["spawn_agent", { agent_id: "writer", task: "write" }], ["spawn_agent", { agent_id: "stranger", task: "spy" }]];
    return results.length ? "written" : [["note", { title: "Owls", content: "They hunt at night." }]];
  }, async (model) => {
    const { code, text, err } = await stead(dir, ["workflow", "run", "team", "owls", ...model]).end;
    assert.equal(code, 0, err);
    assert.match(text, /written/);
    assert.match(text, /"stranger" is not a member of the team/);
    assert.match(seen["Write about owls"], /- writer: The writer\.\n- critic: The critic\./);
    assert.match(seen.write, /editor[\s\S]*critic/);
    assert.deepEqual(readdirSync(join(home(dir), "notes")), ["writer"]);
  });
});

test("the agent runs a workflow with a tool, and its steps cannot", async (_, dir) => {
  put(dir, "workflows/greet.yaml", "description: Greets.\nsteps:\n  - {id: hello, task: \"greet {{input}}\"}\n");
  await withModel(async (task, { results }, request) => {
    const has = request.tools.some((t) => t.function.name === "run_workflow");
    if (task === "greet Ada") return `hello Ada ${has}`;
    return results.length ? results[0] : [["run_workflow", { name: "greet", input: "Ada" }]];
  }, async (model) => {
    const { code, text, err } = await stead(dir, ["run", "Please greet Ada", ...model]).end;
    assert.equal(code, 0, err);
    assert.equal(text, "hello Ada false\n");
  });
});

test("a step that fails ends the run or lets it go on, as its workflow says", async (_, dir) => {
  put(dir, "workflows/bad.yaml", "steps:\n  - {id: a, agent: nobody, task: x}\n  - {id: b, task: y}\n");
  put(dir, "workflows/good.yaml", "steps:\n  - {id: a, agent: nobody, task: x, on_failure: continue}\n  - {id: b, task: \"y {{a}}\"}\n");
  await withModel(async (task) => task, async (model) => {
    const bad = await stead(dir, ["workflow", "run", "bad", ...model]).end;
    assert.equal(bad.code, 1);
    assert.match(bad.err, /the step a failed: .*nobody/);
    const good = await stead(dir, ["workflow", "run", "good", ...model]).end;
    assert.equal(good.code, 0, good.err);
    assert.match(good.text, /^y .*nobody/);
  });
});

test("a file that is wrong is reported with its line and hurts no other", async (_, dir) => {
  put(dir, "workflows/good.yaml", "steps:\n  - {id: a, task: x}\n");
  const wrong = {
    "steps:\n  - {id: a, task: x}\n  - {id: a, task: y}\n": /line 3: two steps are called "a"/,
    "steps:\n  - {id: a, task: \"{{b}}\"}\n": /line 2: \{\{b\}\} is neither/,
    "steps:\n  - id: a\n    taks: x\n": /"taks" is not a key here; did you mean "task"/,
    "steps:\n  - {id: a, task: x, needs: [z]}\n": /it needs "z"/,
    "steps:\n  - {id: a, task: x, when: {step: a, is: b}}\n": /"when" names no step before/,
    "task: x\nsteps:\n  - {id: a, task: x}\n": /a task belongs to a step/,
    "- 1\n": /expected an object/,
    "steps: [": /workflows\/wrong\.yaml/,
  };
  for (const [text, message] of Object.entries(wrong)) {
    put(dir, "workflows/wrong.yaml", text);
    const { code, text: out, err } = await stead(dir, ["workflow", "list"]).end;
    assert.equal(code, 0, err);
    assert.match(out, /^good\t1 step\t/);
    assert.match(err, message);
  }
});

main();
