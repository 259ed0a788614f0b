// SPDX-License-Identifier: Apache-2.0
// markdown_to_pdf by Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { main, test } from "../../peers/peer.mjs";
import { listen } from "../../runner/agent_stub.mjs";

// What `stead call markdown_to_pdf` prints, and the PDF as text of which each byte is one character.
function print(dir, yaml, markdown, args = {}) {
  const home = join(dir, "peer");
  mkdirSync(join(home, "files"), { recursive: true });
  writeFileSync(join(home, "agent.yaml"), yaml);
  writeFileSync(join(home, "files", "report.md"), markdown);
  const said = execFileSync(process.env.STEAD, ["call", "markdown_to_pdf", JSON.stringify({ source_path: "report.md", ...args }), "--store", `disk:${dir}`,
    "--workspace", "peer"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  return { said, pdf: readFileSync(join(home, "files", args.output_path ?? "report.pdf"), "latin1") };
}

const on = "browser: {enabled: true}\n";
const title = (text) => `<FEFF${[...text].map((c) => c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")).join("")}>`;

test("headings, tables and links of a Markdown file are in the PDF, and its head is not", (_, dir) => {
  const { said, pdf } = print(dir, on, "---\nsecret: 1\n---\n# Über uns\n\nSee [the site](https://example.com/a).\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n");
  assert.match(said, /^wrote report\.pdf/);
  assert.match(pdf, /^%PDF-1\./);
  assert.ok(pdf.includes(`/Title ${title("Über uns")}`));
  assert.match(pdf, /\/URI \(https:\/\/example\.com\/a\)/);
  for (const kind of ["H1", "Table", "TH", "TD"]) assert.match(pdf, new RegExp(`/S /${kind}\\b`));
}, 60);

test("a long text has many pages, and a theme changes its fonts", (_, dir) => {
  const long = "# Long\n\n" + "A paragraph of a few words that fills a line or so of the page.\n\n".repeat(200);
  const plain = print(dir, on, long).pdf;
  const serif = print(dir, on, long, { theme: "professional", output_path: "out/b.pdf" }).pdf;
  assert.ok(Number(/\/Count (\d+)/.exec(plain)[1]) > 3);
  const fonts = (pdf) => [...pdf.matchAll(/\/BaseFont \/(?:[A-Z]{6}\+)?([\w-]+)/g)].map((m) => m[1]).sort().join();
  assert.notEqual(fonts(plain), fonts(serif));
}, 60);

test("nothing that the text names is loaded, and none of its HTML works", async (_, dir) => {
  const hits = [];
  const { server, url } = await listen((req, res) => {
    hits.push(req.url);
    res.end();
  });
  try {
    const bad = `![p](${url}/picture.png)\n\n<img src="${url}/img.png"><script src="${url}/x.js"></script><link rel=stylesheet href="${url}/x.css">\n\n<iframe src="file:///etc/passwd"></iframe>\n`;
    const { pdf } = print(dir, on + 'web: {allow_addresses: ["127.0.0.1"]}\n', bad);
    assert.doesNotMatch(pdf, /\/Subtype \/Image/);
    assert.deepEqual(hits, []);
  } finally {
    server.close();
  }
}, 60);

test("a program of media.pdf is used where it is set, and neither leaves the tool out", (_, dir) => {
  assert.equal(print(dir, on + "media: {pdf: {command: [sh, -c, 'printf %%PDF-own >{out}']}}\n", "x").pdf, "%PDF-own");
  assert.throws(() => print(dir, "browser: {enabled: false}\n", "x"), (e) => /set media\.pdf or browser\.enabled/.test(e.stderr));
}, 60);

test("no browser and no profile is left", (_, dir) => {
  const temporary = join(dir, "temporary"); // of its own: other tests start browsers at the same time
  mkdirSync(temporary);
  process.env.TMPDIR = temporary;
  print(dir, on, "# x\n");
  assert.deepEqual(readdirSync(temporary).filter((n) => n.startsWith("stead-browser-")), []);
}, 60);

await main();
