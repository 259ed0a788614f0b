// SPDX-License-Identifier: Apache-2.0
// The browser's tools over MCP, in Chromium, against pages of this process.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { main, test } from "../../peers/peer.mjs";
import { listen } from "../../runner/agent_stub.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

const pages = {
  "/": `<title>Shop</title><h1>Welcome</h1><p>Buy <b>milk</b> here.</p><a href="/next">Next page</a>
    <form action="/found"><label>Search <input name="q"></label><select name="s" aria-label="Size"><option value="s">Small</option>
    <option value="l">Large</option></select><button>Find</button></form><p hidden>secret words</p><script>document.title += "!"</script>`,
  "/next": `<title>Next</title><p>The second page.</p><button onclick="alert(1); this.textContent = 'Pressed'">Press</button>
    <a href="/file.txt" download>Get the file</a><a href="/third" target="_blank">Other tab</a>`,
  "/third": "<title>Third</title><p>In another tab.</p>",
};

// A server of pages, and a client of `stead mcp` whose browser may reach it.
async function scene(dir, more, run) {
  const hits = [];
  const { server, url } = await listen((req, res) => {
    const path = req.url.split("?")[0];
    hits.push(req.url);
    if (path === "/file.txt") return res.writeHead(200, { "Content-Type": "text/plain", "Content-Disposition": "attachment" }).end("contents");
    if (path === "/found") return res.writeHead(200, { "Content-Type": "text/html" }).end(`<p>Query: ${req.url.split("?")[1]}</p>`);
    if (path === "/away") return res.writeHead(302, { Location: `http://127.0.0.2:${server.address().port}/` }).end();
    res.writeHead(pages[path] ? 200 : 404, { "Content-Type": "text/html; charset=utf-8" }).end(pages[path] ?? "none");
  });
  const home = join(dir, "store", "peer");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "agent.yaml"), `browser: {enabled: true}\n${more}`);
  const transport = new StdioClientTransport({ command: process.env.STEAD, stderr: "inherit",
    args: ["mcp", "--structured", "--tools", "all", "--store", `disk:${join(dir, "store")}`, "--workspace", "peer"] });
  const client = new Client({ name: "browser-test", version: "1" });
  await client.connect(transport);
  const use = async (name, args = {}) => {
    const r = await client.callTool({ name: `browser_${name}`, arguments: args }, undefined, { timeout: 60000 });
    return r.isError ? { error: r.content[0].text } : { ...r.structuredContent, text: r.content[0].text, image: r.content.find((c) => c.type === "image") };
  };
  try {
    await run({ use, url, hits, home, client, transport });
  } finally {
    await client.close().catch(() => {});
    server.close();
    server.closeAllConnections();
  }
}

const ref = (page, label) => Number(new RegExp(`\\[(\\d+)\\] [a-z ]+"${label}`).exec(page.content)[1]);
const local = 'web: {allow_addresses: ["127.0.0.1"]}\n';
const browsers = () => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n").filter((l) => /stead-browser-/.test(l) && /--user-data-dir/.test(l));

test("a page is shown as text with numbers, and is clicked, typed into and selected from", (_, dir) =>
  scene(dir, local, async ({ use, url }) => {
    let page = await use("navigate", { url: `${url}/` });
    assert.equal(page.error, undefined);
    assert.equal(page.title, "Shop!");
    assert.match(page.content, /^# Welcome\nBuy milk here\.\n\[1\] link "Next page"/);
    assert.doesNotMatch(page.content, /secret words/);
    assert.match(page.text, /information, not instructions/);
    await use("select", { ref: ref(page, "Size"), value: "Large" });
    page = await use("type", { ref: ref(page, "Search"), text: "oat & rye", press_enter: true });
    assert.equal(page.content, "Query: q=oat+%26+rye&s=l");
    page = await use("back");
    assert.equal(page.title, "Shop!");
    page = await use("click", { ref: ref(page, "Next page") });
    assert.match(page.content, /The second page\./);
    page = await use("click", { ref: ref(page, "Press") });
    assert.match(page.content, /button "Pressed"/);
    assert.match((await use("click", { ref: 99 })).error, /no element 99; take a snapshot/);
  }), 60);

test("downloads go to downloads/, pictures to screenshots/, and tabs can be switched", (_, dir) =>
  scene(dir, local, async ({ use, url, home }) => {
    let page = await use("navigate", { url: `${url}/next` });
    const got = await use("click", { ref: ref(page, "Get the file") });
    assert.deepEqual(got.downloads, ["downloads/file.txt"]);
    assert.equal(readFileSync(join(home, "files", "downloads", "file.txt"), "utf8"), "contents");
    await use("click", { ref: ref(page, "Other tab") });
    const { tabs } = await use("tabs");
    const other = tabs.find((t) => t.url.endsWith("/third"));
    assert.equal(tabs.length, 2);
    page = await use("switch_tab", { index: other.index });
    assert.equal(page.title, "Third");
    const picture = await use("screenshot", { full_page: true });
    assert.match(picture.path, /^screenshots\/\d+\.png$/);
    assert.equal(readFileSync(join(home, "files", picture.path)).subarray(1, 4).toString(), "PNG");
    assert.ok(picture.image);
    assert.match((await use("switch_tab", { index: 7 })).error, /no tab 7/);
  }), 60);

test("private addresses are not reached: by address, by name, by redirect or from a page", (_, dir) =>
  scene(dir, "", async ({ use, url, hits }) => {
    for (const bad of [`${url}/`, url.replace("127.0.0.1", "localhost"), "http://169.254.169.254/latest/", "http://[::1]:9/", "file:///etc/passwd", "chrome://version"]) {
      const page = await use("navigate", { url: bad });
      assert.ok(page.error || /not public/.test(page.content), `${bad}: ${JSON.stringify(page)}`);
    }
    assert.deepEqual(hits, []);
  }), 60);

test("a redirect to a private address ends at the proxy", (_, dir) =>
  scene(dir, local, async ({ use, url, hits }) => {
    const page = await use("navigate", { url: `${url}/away` });
    assert.match(page.content, /127\.0\.0\.2, which is not public/);
    assert.deepEqual(hits.filter((h) => h !== "/favicon.ico"), ["/away"]);
  }), 60);

test("no browser and no profile is left, however the program ends", async (_, dir) => {
  for (const signal of ["close", "SIGKILL"]) {
    let profiles;
    await scene(join(dir, signal), local, async ({ use, url, transport }) => {
      await use("navigate", { url: `${url}/` });
      profiles = browsers().filter((l) => l.includes(`stead-browser-${transport.pid}-`));
      assert.ok(profiles.length > 0);
      if (signal === "SIGKILL") process.kill(transport.pid, "SIGKILL");
      else await use("close");
    });
    const profile = /--user-data-dir=(\S+)/.exec(profiles[0])[1];
    const end = Date.now() + 20000;
    while (browsers().some((l) => l.includes(profile)) && Date.now() < end) await new Promise((yes) => setTimeout(yes, 50));
    assert.deepEqual(browsers().filter((l) => l.includes(profile)), []);
    if (signal === "close") assert.ok(!existsSync(profile));
  }
}, 90);

test("without browser.enabled there are no such tools", async (_, dir) => {
  const home = join(dir, "store", "peer");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "agent.yaml"), "name: x\n");
  const out = execFileSync(process.env.STEAD, ["tools", "--tools", "all", "--store", `disk:${join(dir, "store")}`, "-w", "peer"], { encoding: "utf8" });
  assert.doesNotMatch(out, /browser_/);
  assert.ok(readdirSync(home).length > 0);
});

await main();
