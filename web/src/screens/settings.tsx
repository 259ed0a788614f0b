// SPDX-License-Identifier: Apache-2.0
// How to connect agents and programs, how the page looks, and who is signed in.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { attempt, currentWorkspace, done, failed, hasToken, may, setToken, stead, theme, tokenWanted, tools, type Theme } from "../state.ts";
import { Badge, Button, Choice, Dialog, Head, Kbd, modifier, useLoad } from "../ui.tsx";
import { screens } from "../app.tsx";
import { ago, plural } from "../format.ts";

export function Snippet({ label, text }: { label: string; text: string }) {
	return (
		<figure class="snippet">
			<figcaption>{label}<Button small kind="quiet" icon="copy" onClick={() => void attempt(async () => { await navigator.clipboard.writeText(text); done("Copied"); })}>Copy</Button></figcaption>
			<pre tabIndex={0}><code>{text}</code></pre>
		</figure>
	);
}

function Section({ title, text, children }: { title: string; text?: ComponentChildren; children: ComponentChildren }) {
	return <section class="settings-section"><div><h2>{title}</h2>{text && <p class="hint">{text}</p>}</div><div class="stack">{children}</div></section>;
}

const shortcuts: Array<[string, string]> = [[`${modifier} K`, "Search, or run a command"], ["/", "Search"], [`${modifier} S`, "Save the file"], [`${modifier} Z`, "Undo the last action"], ["↑ ↓ ← →", "Move in the file tree"], ["F2", "Rename the file"], ["Del", "Delete the file"]];

interface Token {
	id: string;
	name?: string;
	access: string;
	workspaces?: string[];
	users?: string[];
	expires?: string;
	expired?: boolean;
	token?: string;
}

function NewToken({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
	const ws = currentWorkspace(), [made, setMade] = useState<Token | null>(null);
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement), days = Number(form.get("days"));
		try {
			const body = { name: String(form.get("name")), access: form.get("access"), ...(form.get("scope") === "this" && { workspaces: [ws.name] }), ...(days > 0 && { expires_days: days }) };
			setMade(await stead.json<Token>("create_token", { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }));
			onDone();
		} catch (error) {
			failed(error);
		}
	};
	return (
		<Dialog title={made ? "The new token" : "New token"} onClose={onClose}>
			{made ? (
				<div class="stack"><p>Copy it now: it is shown only this once.</p><Snippet label={made.name ?? "Token"} text={made.token ?? ""} /><div class="row end"><Button kind="main" onClick={onClose}>Done</Button></div></div>
			) : (
				<form class="stack" onSubmit={submit}>
					<label class="field"><span>Name</span><input name="name" required autofocus autocomplete="off" /></label>
					<div class="row">
						<label class="field grow"><span>May</span><select name="access"><option value="read">read</option><option value="write" selected>read and write</option><option value="admin">administer</option></select></label>
						<label class="field grow"><span>In</span><select name="scope"><option value="this">{ws.name}</option><option value="all">all workspaces</option></select></label>
						<label class="field grow"><span>Ends after (days)</span><input name="days" type="number" min="1" max="36500" placeholder="never" /></label>
					</div>
					<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit">Make it</Button></div>
				</form>
			)}
		</Dialog>
	);
}

/** Only for those who may manage tokens; for others there is nothing here. */
function Tokens() {
	const list = useLoad("tokens", async (signal) => (await stead.json<{ tokens: Token[] }>("list_tokens", { signal })).tokens), [making, setMaking] = useState(false);
	if (!list.data) return null;
	const revoke = (token: Token) => void attempt(async () => {
		await stead.send("revoke_token", { path: { name: token.id } });
		list.reload();
		done(`Revoked ${token.name || token.id}`);
	});
	return (
		<Section title="Tokens" text="Programs and people sign in with these. A revoked token is refused within a second.">
			{list.data.length > 0 && (
				<ul class="list">
					{list.data.map((token) => (
						<li key={token.id} class="list-row">
							<span class="list-main"><strong>{token.name || token.id}</strong> <span class="hint">{token.workspaces?.join(", ") ?? "all workspaces"}{token.users && ` · as ${token.users.join(", ")}`}{token.expires && ` · ${token.expired ? "ended" : "ends"} ${ago(token.expires)}`}</span></span>
							<Badge tone={token.access === "admin" ? "amber" : token.access === "write" ? "blue" : "plain"}>{token.access}</Badge>
							<Button small onClick={() => revoke(token)}>Revoke</Button>
						</li>
					))}
				</ul>
			)}
			<div class="row"><Button icon="key" onClick={() => setMaking(true)}>New token</Button></div>
			{making && <NewToken onDone={list.reload} onClose={() => setMaking(false)} />}
		</Section>
	);
}

export function Settings() {
	const ws = currentWorkspace(), url = location.origin, list = tools.value[ws.name];
	const header = hasToken.value ? ' --header "Authorization: Bearer TOKEN"' : "";
	const config = JSON.stringify({ mcpServers: { [ws.name]: { type: "http", url: `${url}/mcp/${ws.name}`, ...(hasToken.value && { headers: { Authorization: "Bearer TOKEN" } }) } } }, null, 2);
	return (
		<div class="screen settings">
			<Head title="Settings" sub={ws.name} />
			<Section title="Connect an agent" text="Any MCP client can work in this workspace.">
				<Snippet label="Configuration of an MCP client" text={config} />
				<Snippet label="Claude Code" text={`claude mcp add --transport http ${ws.name} ${url}/mcp/${ws.name}${header}`} />
			</Section>
			<Section title="Use it from programs" text={<>Everything on this page is also in the HTTP interface: <a href="openapi.json">openapi.json</a>.</>}>
				<Snippet label="curl" text={`curl ${hasToken.value ? '-H "Authorization: Bearer $TOKEN" ' : ""}${url}/v1/workspaces/${ws.name}/files`} />
			</Section>
			<Section title="Appearance">
				<Choice<Theme> label="Theme" value={theme.value} options={[["system", "System"], ["light", "Light"], ["dark", "Dark"]]} onChange={(value) => (theme.value = value)} />
			</Section>
			<Section title="Keyboard">
				<dl class="keys">
					{[...shortcuts, ...screens.map((one): [string, string] => [`G ${one.key.toUpperCase()}`, one.title])].map(([key, text]) => <div key={key}><dt><Kbd>{key}</Kbd></dt><dd>{text}</dd></div>)}
				</dl>
			</Section>
			<Tokens />
			<Section title="Access">
				<p>{list ? `You may use ${plural(list.length, "tool")}${may("write_file") ? "." : ", and only read: this token may not change anything."}` : "…"}</p>
				{hasToken.value ? <div class="row"><Button onClick={() => { setToken(undefined); tokenWanted.value = ""; }}>Sign out</Button></div> : <p class="hint">The server was started with --open: everybody on this machine may use it without a token.</p>}
			</Section>
		</div>
	);
}
