// SPDX-License-Identifier: Apache-2.0
// What the tests of the page share: a server over a new store, a browser, and results in TAP. Every wait ends after ten
// seconds with a failed test.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
export const axeSource = require("axe-core").source;

const { STEAD, SOURCE, CHROMIUM } = process.env;
export const source = SOURCE;
const cleanups = [];
const WAIT_MS = 30_000;

export const scratch = mkdtempSync(join(tmpdir(), "stead-web-"));
cleanups.push(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs the program over the store of a server. */
export function stead(store, args, input) {
	const done = spawnSync(STEAD, args, { env: { ...process.env, STEAD_STORE: store }, input, encoding: "utf8" });
	if (done.status !== 0) throw new Error(`stead ${args.join(" ")}: ${done.stderr}`);
	return done.stdout;
}

/** A store with the sample in it. */
export function sampleStore(name) {
	const store = `disk:${scratch}/${name}`;
	const done = spawnSync(join(SOURCE, "tools/sample"), [STEAD, "sample"], { env: { ...process.env, STEAD_STORE: store }, encoding: "utf8" });
	if (done.status !== 0) throw new Error(`tools/sample: ${done.stderr}`);
	return store;
}

/** A file of answers that a model of the form "replay:FILE" gives; gives that form. */
export function recorded(name, answers) {
	const file = join(scratch, name);
	writeFileSync(file, answers.map((one) => JSON.stringify({ type: "message", role: "assistant", ...(one.content ? one : { content: one }) })).join("\n") + "\n");
	return `replay:${file}`;
}

/** A store with the workspace "sample", whose agent is configured so. */
export function agentStore(name, config) {
	const store = `disk:${scratch}/${name}`;
	stead(store, ["init", "sample"]);
	writeFileSync(join(scratch, name, "sample/agent.yaml"), config);
	return store;
}

/** Serves a store on a free port; gives its address. */
export async function serve(store, ...options) {
	const server = spawn(STEAD, ["serve", "--json", "--listen", "127.0.0.1:0", ...options], { env: { ...process.env, STEAD_STORE: store }, stdio: ["ignore", "pipe", "inherit"] });
	cleanups.push(() => server.kill("SIGTERM"));
	let text = "";
	for await (const chunk of server.stdout) {
		text += chunk;
		if (text.includes("\n")) break;
	}
	return JSON.parse(text).url;
}

let browser;
export async function openPage(url, { width = 1440, height = 900, colorScheme = "light", before } = {}) {
	browser ??= await chromium.launch({
		executablePath: CHROMIUM,
		args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
	});
	const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB" });
	context.setDefaultTimeout(WAIT_MS);
	await context.grantPermissions(["clipboard-read", "clipboard-write"]);
	const page = await context.newPage();
	page.problems = [];
	page.requests = [];
	page.on("console", (message) => {
		if (message.type() === "error" && !/status of (401|404|409|412)/.test(message.text())) page.problems.push(message.text());
	});
	page.on("pageerror", (error) => page.problems.push(error.message));
	page.on("request", (request) => page.requests.push(request.url()));
	await before?.(page);
	await page.goto(url);
	return page;
}

/** Records what the page's main thread does; the function that it gives ends that, and gives the CPU time of the longest task, in milliseconds. */
export async function traceTasks(page) {
	const session = await page.context().newCDPSession(page), events = [];
	session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
	await session.send("Tracing.start", { categories: "toplevel", transferMode: "ReportEvents" });
	return async () => {
		const over = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
		await session.send("Tracing.end");
		await over;
		const mains = new Set(events.filter((one) => one.name === "thread_name" && one.args.name === "CrRendererMain").map((one) => `${one.pid}/${one.tid}`));
		return Math.max(...events.filter((one) => one.name.endsWith("RunTask") && mains.has(`${one.pid}/${one.tid}`)).map((one) => (one.tdur ?? 0) / 1000)).toFixed(1);
	};
}

let count = 0, failures = 0;
/** One fact. The page that it opened must have had no problem of its own. */
export async function test(name, run) {
	count++;
	const only = process.env.ONLY;
	if (only && !new RegExp(only).test(name)) return;
	const started = Date.now();
	let page;
	try {
		page = await run();
		if (page?.problems?.length) throw new Error(`the page reported: ${page.problems.join("; ")}`);
		console.log(`ok ${count} - ${name}`);
		if (process.env.TIMES) console.log(`# ${Date.now() - started} ms`);
	} catch (error) {
		failures++;
		console.log(`not ok ${count} - ${name}`);
		for (const line of String(error.stack ?? error).split("\n")) console.log(`# ${line}`);
	}
	for (const context of browser?.contexts() ?? []) await context.close();
}

export function equal(have, want, what = "value") {
	if (JSON.stringify(have) !== JSON.stringify(want)) throw new Error(`${what} is ${JSON.stringify(have)}, not ${JSON.stringify(want)}`);
}
export function check(condition, what) {
	if (!condition) throw new Error(what);
}
/** Asks until it is true. */
export async function eventually(what, ask) {
	const end = Date.now() + WAIT_MS;
	for (;;) {
		if (await ask()) return;
		if (Date.now() > end) throw new Error(`not within ${WAIT_MS} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}

export async function finish() {
	console.log(`1..${count}`);
	await browser?.close();
	for (const cleanup of cleanups.reverse()) cleanup();
	process.exitCode = failures ? 1 : 0;
}
