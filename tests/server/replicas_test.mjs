// SPDX-License-Identifier: Apache-2.0
// Three replicas over the same stores, behind a proxy that gives each request to the next of them: over Redis and S3, and
// over PostgreSQL. STEAD_REPLICA_WRITES (default 60) is how many writes are under way while a replica is killed.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { STEAD } = process.env, WRITES = Number(process.env.STEAD_REPLICA_WRITES ?? 60), WAIT_MS = 30_000;
const env = { ...process.env, AWS_ACCESS_KEY_ID: process.env.STEAD_TEST_S3_KEY, AWS_SECRET_ACCESS_KEY: process.env.STEAD_TEST_S3_SECRET, AWS_REGION: "us-east-1" };
for (const name of ["STEAD_STORE", "STEAD_CONFIG", "STEAD_WORKSPACE", "STEAD_USER", "STEAD_AGENT"]) delete env[name];
const check = (ok, what) => { if (!ok) throw new Error(what); };
async function eventually(what, ask) {
	for (const end = Date.now() + WAIT_MS; !(await ask()); await new Promise((resolve) => setTimeout(resolve, 20))) check(Date.now() < end, `not within ${WAIT_MS} ms: ${what}`);
}

/** A deployment: the stead.yaml of packaging/ with these stores, a workspace, a token, three replicas and a proxy. */
class Site {
	constructor(stores) {
		this.dir = mkdtempSync(join(tmpdir(), "stead-replicas-"));
		const yaml = readFileSync(new URL("../../packaging/stead.yaml", import.meta.url), "utf8").replace("/var/cache/stead", "./cache");
		writeFileSync(join(this.dir, "stead.yaml"), yaml.replace(/^(store|state): .*\n/gm, "").concat(stores));
		this.replicas = [];
	}
	stead(...args) {
		const done = spawnSync(STEAD, ["--config", join(this.dir, "stead.yaml"), ...args], { env, encoding: "utf8" });
		check(done.status === 0, `stead ${args.join(" ")}: ${done.stderr}`);
		return done.stdout;
	}
	async replica() {
		const process = spawn(STEAD, ["--config", join(this.dir, "stead.yaml"), "serve", "--json", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
		this.replicas.push({ process, url: "", alive: true });
		let text = "";
		for await (const chunk of process.stdout) if ((text += chunk).includes("\n")) break;
		this.replicas.at(-1).url = JSON.parse(text).url;
		return this.replicas.at(-1);
	}
	async start() {
		this.stead("init", "team");
		this.token = JSON.parse(this.stead("token", "create", "--for", "team", "--json")).token;
		for (let i = 0; i < 3; i++) await this.replica();
		let turn = 0;
		this.proxy = http.createServer((request, answer) => {
			const one = this.replicas[turn++ % 3];
			const out = http.request(one.url + request.url, { method: request.method, headers: request.headers }, (back) => {
				answer.writeHead(back.statusCode, back.headers);
				back.pipe(answer);
			});
			out.on("error", () => answer.headersSent ? answer.destroy() : answer.writeHead(502).end());
			request.pipe(out);
		});
		await new Promise((resolve) => this.proxy.listen(0, "127.0.0.1", resolve));
		this.url = `http://127.0.0.1:${this.proxy.address().port}`;
	}
	/** `to`: a replica, or nothing for the proxy. */
	ask(path, options = {}, to) {
		return fetch(`${to?.url ?? this.url}/v1/workspaces/team/${path}`, { ...options, headers: { Authorization: `Bearer ${this.token}`, ...options.headers }, signal: AbortSignal.timeout(WAIT_MS) });
	}
	async tool(name, args, to) {
		const answer = await this.ask(`tools/${name}`, { method: "POST", body: JSON.stringify(args), headers: { "Content-Type": "application/json" } }, to);
		check(answer.ok, `${name}: ${answer.status} ${await answer.clone().text()}`);
		return (await answer.json()).result;
	}
	close() {
		this.proxy?.closeAllConnections();
		this.proxy?.close();
		for (const one of this.replicas) one.process.kill("SIGKILL");
		rmSync(this.dir, { recursive: true, force: true });
	}
}

async function anyRequestToAnyReplica(site) {
	const written = [];
	for (let i = 0; i < 6; i++) {
		const answer = await site.ask(`files/shared/${i}.txt`, { method: "PUT", body: `text ${i}` });
		check(answer.ok, `PUT: ${answer.status}`);
		written.push(`text ${i}`);
	}
	for (const one of site.replicas) {
		for (const [i, text] of written.entries()) check((await (await site.ask(`files/shared/${i}.txt`, {}, one)).text()) === text, "a replica has another text");
		check((await (await site.ask("files?path=shared", {}, one)).json()).entries.length === 6, "a replica lists other files");
	}
}

async function eventsOfAll(site) {
	const seen = site.replicas.map(() => ""), stop = new AbortController();
	for (const [i, one] of site.replicas.entries()) {
		const answer = await fetch(`${one.url}/v1/workspaces/team/events`, { headers: { Authorization: `Bearer ${site.token}` }, signal: stop.signal });
		(async () => { for await (const chunk of answer.body) seen[i] += Buffer.from(chunk).toString(); })().catch(() => {});
	}
	await eventually("all streams are open", () => seen.every((text) => text.includes("retry")));
	for (const [i, one] of site.replicas.entries()) await site.ask(`files/from-${i}.txt`, { method: "PUT", body: "x" }, one);
	await eventually("every stream has the changes of every replica", () => seen.every((text) => [0, 1, 2].every((i) => text.includes(`"path":"from-${i}.txt"`))));
	stop.abort();
}

/** Nobody's change is lost, whichever replica makes it. */
async function conditionsHold(site) {
	await site.ask("files/counter", { method: "PUT", body: "0" });
	const add = async () => {
		for (let tries = 0; tries < 500; tries++) {
			const now = await site.ask("files/counter"), count = Number(await now.text());
			const answer = await site.ask("files/counter", { method: "PUT", body: String(count + 1), headers: { "If-Match": now.headers.get("etag") } });
			if (answer.ok) return;
			check(answer.status === 412 || answer.status === 409, `PUT: ${answer.status}`);
		}
		throw new Error("no turn came");
	};
	await Promise.all(Array.from({ length: 9 }, add));
	check((await (await site.ask("files/counter")).text()) === "9", "an addition was lost");
}

async function boardsAreShared(site) {
	const { item } = await site.tool("create_item", { title: "Compare", checks: [{ path: "artifacts/r.md" }] });
	await Promise.all(site.replicas.map((one, i) => site.tool("add_journal", { item: item.id, text: `## section ${i}` }, one)));
	await site.tool("item_write", { item: item.id, path: "artifacts/r.md", content: "# Result" }, site.replicas[0]);
	await site.tool("update_item", { item: item.id, status: "completed", result_summary: "The second of the drafts is better.", artifacts: [{ path: "artifacts/r.md" }] }, site.replicas[1]);
	const { journal } = await site.tool("read_journal", { item: item.id, whole: true }, site.replicas[2]);
	for (const part of ["section 0", "section 1", "section 2", "completed"]) check(journal.split(part).length === 2, `"${part}" is not in the journal once: ${journal}`);
}

/** A replica dies while it writes: what was acknowledged is there, the rest is whole or absent, and work continues. */
async function oneIsKilledWhileWriting(site) {
	const text = (i) => `file ${i} `.repeat(2000), acknowledged = new Set(), victim = site.replicas[1];
	let next = 0;
	const writer = async () => {
		while (next < WRITES) {
			const i = next++;
			if (i === Math.floor(WRITES / 3)) victim.process.kill("SIGKILL");
			const answer = await site.ask(`files/killed/${i}.txt`, { method: "PUT", body: text(i) }).catch(() => null);
			if (answer?.ok) acknowledged.add(i);
		}
	};
	await Promise.all(Array.from({ length: 6 }, writer));
	check(acknowledged.size > WRITES / 2 && acknowledged.size < WRITES, `${acknowledged.size} of ${WRITES} writes were acknowledged`);
	for (const one of site.replicas.filter((other) => other !== victim))
		for (let i = 0; i < WRITES; i++) {
			const answer = await site.ask(`files/killed/${i}.txt`, {}, one), body = await answer.text();
			check(answer.status === 404 ? !acknowledged.has(i) : body === text(i), `file ${i}: ${answer.status}, ${body.length} bytes`);
		}
	site.replicas[1] = await site.replica();
	site.replicas.pop();
	check((await site.ask("files/counter", {}, site.replicas[1])).ok, "a new replica takes its place");
	console.log(`# ${acknowledged.size} of ${WRITES} acknowledged`);
}

const run = Date.now().toString(36), deployments = {
	"Redis and S3": `store: "s3://stead-test/${run}?create=1&endpoint=${process.env.STEAD_TEST_S3}"\nstate: "${process.env.STEAD_TEST_REDIS}?prefix=${run}"\n`,
	PostgreSQL: `store: "${process.env.STEAD_TEST_POSTGRES}"\n`,
};
const facts = { "any request to any replica": anyRequestToAnyReplica, "events from all of them": eventsOfAll, "conditions hold between them": conditionsHold, "boards are shared": boardsAreShared, "one is killed while writing": oneIsKilledWhileWriting };
let count = 0, failures = 0;
for (const [stores, yaml] of Object.entries(deployments)) {
	const site = new Site(yaml);
	try {
		await site.start();
		for (const [name, fact] of Object.entries(facts)) {
			const started = Date.now();
			count++;
			try {
				await fact(site);
				console.log(`ok ${count} - ${name}, over ${stores}`);
			} catch (error) {
				failures++;
				console.log(`not ok ${count} - ${name}, over ${stores}\n# ${String(error.stack).replaceAll("\n", "\n# ")}`);
			}
			console.log(`# ${Date.now() - started} ms`);
		}
	} catch (error) {
		failures++;
		console.log(`not ok ${++count} - replicas start over ${stores}\n# ${String(error.stack).replaceAll("\n", "\n# ")}`);
	} finally {
		site.close();
	}
}
console.log(`1..${count}`);
process.exitCode = failures ? 1 : 0;
