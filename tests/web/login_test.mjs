// SPDX-License-Identifier: Apache-2.0
// `stead servers login`: a person opens the printed address in Chromium, signs in at an authorization server, and the
// server of tools.json can be used. Both servers are one here, on loopback; it checks what OAuth asks of a client.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { check, equal, finish, openPage, scratch, stead, test } from "./harness.mjs";

const codes = new Map();
let base, refused = 0;

async function body(request) {
	let text = "";
	for await (const chunk of request) text += chunk;
	return text;
}
const json = (response, value, status = 200) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));

const form = (query) => `<!doctype html><title>Sign in</title><form method="post" action="/sign-in?${query.replaceAll("&", "&amp;")}">
<label>Name <input name="name"></label><button name="answer" value="yes">Allow</button><button name="answer" value="no">Deny</button></form>`;

function back(query, answer) {
	const to = new URL(query.get("redirect_uri"));
	const code = `code-${codes.size}`;
	codes.set(code, { challenge: query.get("code_challenge"), redirect: to.href });
	if (answer === "yes") to.searchParams.set("code", code);
	else to.searchParams.set("error", "access_denied");
	to.searchParams.set("state", query.get("state"));
	return to.href;
}

function token(response, asked) {
	const code = codes.get(asked.get("code")), verifier = asked.get("code_verifier") ?? "";
	const fits = code && createHash("sha256").update(verifier).digest("base64url") === code.challenge && asked.get("redirect_uri") === code.redirect;
	codes.delete(asked.get("code"));
	if (fits) json(response, { access_token: "granted", token_type: "Bearer", expires_in: 3600 });
	else json(response, { error: "invalid_grant" }, 400);
}

function answerCall(response, call) {
	const results = {
		initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "mail", version: "1" } },
		"tools/list": { tools: [{ name: "read_mail", description: "Reads mail.", inputSchema: { type: "object" } }] },
	};
	if (call.id === undefined) return response.writeHead(202).end();
	const result = results[call.method];
	return json(response, result ? { jsonrpc: "2.0", id: call.id, result } : { jsonrpc: "2.0", id: call.id, error: { code: -32601, message: "no such method" } });
}

const server = createServer(async (request, response) => {
	const url = new URL(request.url, base), text = await body(request);
	if (url.pathname === "/mcp" && request.headers.authorization !== "Bearer granted") {
		refused++;
		response.writeHead(401, { "WWW-Authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` }).end();
	} else if (url.pathname === "/mcp") request.method === "POST" ? answerCall(response, JSON.parse(text)) : response.writeHead(405).end();
	else if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) json(response, { resource: `${base}/mcp`, authorization_servers: [base] });
	else if (url.pathname === "/.well-known/oauth-authorization-server")
		json(response, {
			issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, registration_endpoint: `${base}/register`,
			response_types_supported: ["code"], grant_types_supported: ["authorization_code"], code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"],
		});
	else if (url.pathname === "/register") json(response, { ...JSON.parse(text), client_id: "stead" }, 201);
	else if (url.pathname === "/authorize") response.writeHead(200, { "Content-Type": "text/html" }).end(form(url.searchParams.toString()));
	else if (url.pathname === "/sign-in") response.writeHead(302, { Location: back(url.searchParams, new URLSearchParams(text).get("answer")) }).end();
	else if (url.pathname === "/token") token(response, new URLSearchParams(text));
	else response.writeHead(404).end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
base = `http://127.0.0.1:${server.address().port}`;

/** A workspace with the server, and a login that was begun in it: what it prints, and its end. */
async function begin(name) {
	const store = `disk:${scratch}/${name}`;
	stead(store, ["init", "mail"]);
	writeFileSync(`${scratch}/${name}/mail/tools.json`, JSON.stringify({ mcpServers: { mail: { type: "http", url: `${base}/mcp` } } }));
	const env = { ...process.env, STEAD_STORE: store, STEAD_WORKSPACE: "mail", HOME: `${scratch}/${name}-home`, XDG_STATE_HOME: `${scratch}/${name}-home/state` };
	mkdirSync(env.HOME);
	const run = spawn(process.env.STEAD, ["servers", "login", "mail"], { env });
	let out = "", said = "";
	run.stdout.on("data", (chunk) => (out += chunk));
	const address = await new Promise((found, failed) => {
		run.stderr.on("data", (chunk) => {
			said += chunk;
			const line = /^http.*\n/m.exec(said);
			if (line) found(line[0].trim());
		});
		run.on("exit", () => failed(new Error(`the login ended: ${said}`)));
	});
	const over = new Promise((ended) => run.on("close", (code) => ended({ code, out, said })));
	return { address, over, env };
}

await test("a person who signs in at the printed address can use the server", async () => {
	const { address, over, env } = await begin("allowed");
	const page = await openPage(address);
	await page.getByLabel("Name").fill("ada");
	await page.getByRole("button", { name: "Allow" }).click();
	await page.getByText("You can close this page").waitFor();
	const { code, out, said } = await over;
	equal(code, 0, said);
	check(out.includes("is ready to use"), out);
	const before = refused;
	const list = await new Promise((done) => {
		const run = spawn(process.env.STEAD, ["servers", "show", "mail"], { env });
		let text = "";
		run.stdout.on("data", (chunk) => (text += chunk));
		run.stderr.on("data", (chunk) => (text += chunk));
		run.on("close", () => done(text));
	});
	check(list.includes("read_mail"), list);
	equal(refused, before, "requests that were refused after the login");
});

await test("a person who denies it is told so, and nothing is kept", async () => {
	const { address, over } = await begin("denied");
	const page = await openPage(address);
	await page.getByRole("button", { name: "Deny" }).click();
	await page.getByText("You can close this page").waitFor();
	const { code, said } = await over;
	check(code !== 0 && said.includes("access_denied"), said);
});

server.close();
server.closeAllConnections();
await finish();
