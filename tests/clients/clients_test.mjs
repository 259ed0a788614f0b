// SPDX-License-Identifier: Apache-2.0
// Coding agents by others on a directory served by Stead: Claude Code, Codex, opencode and Gemini CLI, each connected with what
// `stead mcp --print-config` prints and driven by a scripted model on loopback. A test looks at what the model receives. The
// programs are in this directory's node_modules (tools/setup test); they get a home of their own, and a proxy that refuses
// whatever they would like to fetch.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { main, test } from "../peers/peer.mjs";
import { startModel } from "./model.mjs";

const modules = join(import.meta.dirname, "node_modules");
const CODE = 'def hi():\n    print("hello \\"world\\"")\n';
const SCRIPT = [
  ["ls", {}],
  ["write_file", { path: "src/say.py", content: CODE }],
  ["read_file", { path: "src/say.py" }],
  ["edit_file", { path: "src/say.py", old_text: "hello", new_text: "good bye" }],
  ["undo", {}],
  ["read_file", { path: "src/say.py" }],
  ["read_file", { path: "none.py" }],
];

function writeTo(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// A client: its program, how it is set up in its home `at.home`, how it is asked, and variables for it.
const clients = {
  "claude-code": {
    program: [join(modules, "@anthropic-ai/claude-code-linux-x64/claude")],
    args: ["-p", "Do it.", "--allowedTools", "mcp__stead"],
    tools: 11, // those that Stead asks to be loaded at once, and undo, which the model searches for; the others wait
    env: (at) => ({ ANTHROPIC_BASE_URL: at.url, ANTHROPIC_API_KEY: "sk-script", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" }),
    // The printed line is a command.
    configure: (at) =>
      execFileSync(clients["claude-code"].program[0], at.config.trim().split(" ").slice(1), { env: at.env, cwd: at.project }),
  },
  codex: {
    program: [join(modules, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")],
    args: ["exec", "--skip-git-repo-check", "Do it."],
    env: () => ({ SCRIPT_KEY: "sk-script" }),
    configure: (at) =>
      writeTo(join(at.home, ".codex/config.toml"), `
        model = "script"
        model_provider = "script"
        approval_policy = "never"
        sandbox_mode = "danger-full-access"
        check_for_update_on_startup = false
        [analytics]
        enabled = false
        [model_providers.script]
        name = "script"
        base_url = "${at.url}/v1"
        wire_api = "responses"
        env_key = "SCRIPT_KEY"
        ${at.config}`),
  },
  opencode: {
    program: [join(modules, "opencode-linux-x64-baseline/bin/opencode")],
    args: ["run", "Do it."],
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" }),
    configure: (at) =>
      writeTo(join(at.home, ".config/opencode/opencode.json"), JSON.stringify({
        ...JSON.parse(at.config),
        model: "script/script",
        small_model: "script/script",
        share: "disabled",
        provider: {
          script: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${at.url}/v1`, apiKey: "sk-script" },
            models: { script: { name: "script", tool_call: true, limit: { context: 200000, output: 8000 } } },
          },
        },
      })),
  },
  gemini: {
    program: [process.execPath, join(modules, "@google/gemini-cli/bundle/gemini.js")],
    args: ["-p", "Do it.", "--yolo", "-m", "gemini-2.5-pro"],
    env: (at) => ({
      GEMINI_API_KEY: "script",
      GOOGLE_GEMINI_BASE_URL: at.url,
      GEMINI_CLI_NO_RELAUNCH: "true",
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    }),
    configure: (at) =>
      writeTo(join(at.home, ".gemini/settings.json"), JSON.stringify({
        ...JSON.parse(at.config),
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false },
      })),
  },
};

// Runs the client until it ends; gives what it printed. It is killed with the test's time.
function ask(client, at, signal) {
  const [program, ...before] = client.program;
  const child = spawn(program, [...before, ...client.args], {
    env: at.env,
    cwd: at.project,
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  let printed = "";
  child.stdout.on("data", (d) => (printed += d));
  child.stderr.on("data", (d) => (printed += d));
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (code) => done({ code, printed }));
  });
}

async function drive(name, dir, signal) {
  const client = clients[name];
  const model = await startModel(SCRIPT);
  const at = { url: model.url, home: join(dir, "home"), project: join(dir, "project") };
  writeTo(join(at.project, "README.md"), "# A project\n");
  mkdirSync(at.home);
  at.env = {
    PATH: process.env.PATH,
    HOME: at.home,
    NO_PROXY: "127.0.0.1",
    HTTP_PROXY: model.url,
    HTTPS_PROXY: model.url,
    npm_config_registry: model.url,
    ...client.env(at),
  };
  const where = ["--store", `disk:${join(dir, "store")}`, "--files", at.project];
  const stead = (...args) => execFileSync(process.env.STEAD, [...args, ...where], { encoding: "utf8" });
  at.config = stead("mcp", `--print-config=${name}`);
  try {
    client.configure(at);
    const { code, printed } = await ask(client, at, signal);
    assert.equal(code, 0, printed);
    assert.match(printed, /The script has ended/);
    return { ...model, file: readFileSync(join(at.project, "src/say.py"), "utf8"), history: stead("history", "src/say.py") };
  } finally {
    model.close();
  }
}

// What a model must have read, in order. A client may add words of its own around a result.
const EXPECTED = [
  /README\.md/,
  /created src\/say\.py/,
  CODE,
  /\n-    print\("hello \\"world\\""\)\n\+    print\("good bye \\"world\\""\)/,
  /undid 1 change \(1 file\)\nrestored src\/say\.py/,
  CODE,
  /none\.py: there is no such file or directory; list its parent/,
];

if (!existsSync(modules)) {
  console.log("Bail out! tests/clients/node_modules is missing; run tools/setup test");
  process.exit(1);
}

for (const name of Object.keys(clients))
  test(`${name} lists, writes, reads, edits, undoes and meets an error, and its model reads text`, async (_, dir, signal) => {
    const run = await drive(name, dir, signal);
    assert.equal(run.offered.length, clients[name].tools ?? 15);
    assert.equal(run.results.length, SCRIPT.length);
    run.results.forEach((text, i) => {
      const fits = typeof EXPECTED[i] === "string" ? text.includes(EXPECTED[i]) : EXPECTED[i].test(text);
      assert.ok(fits, `${SCRIPT[i][0]}: ${text}`);
    });
    assert.equal(run.file, CODE);
    assert.match(run.history, new RegExp(name.split("-")[0]), "the client's name is in the history");
  }, 120);

await main();
