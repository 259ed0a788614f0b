// SPDX-License-Identifier: Apache-2.0
// Conversations: who said what, and what tools did.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { serverSentEvents } from "../../../clients/typescript/src/index.ts";
import { Icon } from "../icons.tsx";
import { Markdown } from "../markdown.tsx";
import { placeIn } from "../files/viewer.tsx";
import { attempt, currentWorkspace, failed, go, href, isNarrow, may, route, stead } from "../state.ts";
import { Button, Empty, Head, Show, Skeleton, useLoad, useRefresh } from "../ui.tsx";
import { ago, clock, fullTime, plural, textOf } from "../format.ts";
import { Replay } from "./replay.tsx";

interface Session {
	agent: string;
	session: string;
	last_active_at: string;
	messages: number;
	title?: string;
}
interface Entry {
	type: string;
	id: string;
	timestamp: string;
	role?: string;
	content?: unknown;
	name?: string;
	input?: unknown;
	output?: unknown;
	is_error?: boolean;
	turn?: string;
	undone?: string;
	text?: string; /* of a message with files: what was typed */
	problem?: string;
}

/** The words of a message: its content is text, or a list of parts of which some are text. */
function wordsOf(content: unknown): string {
	if (!Array.isArray(content)) return textOf(content ?? "");
	return (content as Array<{ type?: string; text?: string }>).filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n\n");
}

/** What is worth showing: calls have entries of their own, and the bookkeeping of turns has no words. */
const isShown = (entry: Entry): boolean => entry.type === "tool_use" || entry.type === "tool_result" || entry.problem !== undefined || (!/^(request|turn|session)$/.test(entry.type) && wordsOf(entry.content).trim() !== "");

/** The last turn has no end: it runs elsewhere, or was cut off. */
function hasOpenTurn(entries: Entry[]): boolean {
	const last = entries.filter((entry) => entry.turn !== undefined).at(-1)?.turn;
	return last !== undefined && !entries.some((entry) => (entry.type === "turn" && entry.turn === last) || entry.undone === last);
}

const telling = ["path", "from", "query", "pattern", "command", "title", "name", "url", "description"];

/** One line that tells calls of the same tool apart: the argument that says what it was about. */
function aboutCall(input: unknown): string {
	const given = typeof input === "object" && input !== null ? (input as Record<string, unknown>) : {};
	const key = [...telling, ...Object.keys(given)].find((one) => typeof given[one] === "string" && given[one] !== "");
	return key ? firstLine(given[key]) : "";
}
const firstLine = (value: unknown): string => (textOf(value ?? "").split("\n").find((line) => line.trim() !== "") ?? "").trim().slice(0, 160);

function EntryView({ entry }: { entry: Entry }) {
	const ws = currentWorkspace();
	if (entry.type === "tool_use" || entry.type === "tool_result")
		return (
			<details class="tool-entry">
				<summary><Icon name={entry.type === "tool_use" ? "settings" : entry.is_error ? "alert" : "check"} /> {entry.type === "tool_use" ? <span>Called <code>{entry.name}</code></span> : entry.is_error ? <span class="red">Failed</span> : <span>Result</span>}<span class="tool-about">{entry.type === "tool_use" ? aboutCall(entry.input) : firstLine(entry.output)}</span><time class="hint">{clock(entry.timestamp)}</time></summary>
				<pre tabIndex={0}>{textOf(entry.type === "tool_use" ? entry.input : entry.output)}</pre>
			</details>
		);
	if (entry.problem !== undefined) return <p class="hint"><Icon name="alert" /> {entry.problem}</p>;
	return (
		<div class={`message ${entry.role ?? "other"}`}>
			<p class="message-head"><strong>{entry.role ?? entry.type}</strong> <time title={fullTime(entry.timestamp)}>{clock(entry.timestamp)}</time></p>
			<Markdown text={wordsOf(entry.content)} place={placeIn(ws, "")} />
		</div>
	);
}

interface Approval {
	id: string;
	name: string;
	input?: unknown;
	rule: string;
	expires_at?: string;
}

/** Calls that the agent may make only if a person agrees: each with its arguments, for which alone the answer counts. */
function Approvals({ waiting, busy, onDecide }: { waiting: Approval[]; busy: boolean; onDecide: (id: string, decision: "approve" | "deny") => void }) {
	return (
		<>
			{waiting.map((call) => (
				<section key={call.id} class="card ask stack" aria-label="Approval">
					<h2><Icon name="key" /> The agent asks to call <code>{call.name}</code></h2>
					{call.input !== undefined && <pre class="ask-input" tabIndex={0}>{textOf(call.input)}</pre>}
					<p class="hint">Rule: {call.rule}{call.expires_at && <> · open until {clock(call.expires_at)}</>}</p>
					<div class="row end"><Button disabled={busy} onClick={() => onDecide(call.id, "deny")}>Deny</Button><Button kind="main" disabled={busy} onClick={() => onDecide(call.id, "approve")}>Approve</Button></div>
				</section>
			))}
		</>
	);
}

/** Why an answer may not be what the person expects. */
function tellShortfall({ cut, refused, answer, waiting }: { cut?: boolean; refused?: boolean; answer?: string; waiting?: unknown }): void {
	if (cut) failed(new Error("The answer was cut at model.max_tokens"));
	else if (refused) failed(new Error("The provider declined to answer; rephrase your message"));
	else if (answer === "" && !waiting) failed(new Error("The model ended the turn with an empty answer"));
}

/** A text field that says something to the workspace's own agent and shows what it does, as it happens. */
function Talk({ session, open, onBusy, onEnd }: { session: string; open?: boolean; onBusy?: (busy: boolean) => void; onEnd: () => void }) {
	const ws = currentWorkspace(), [shown, setShown] = useState<Entry[]>([]), [busy, setBusy] = useState(false), [doing, setDoing] = useState(""), end = useRef<HTMLDivElement>(null), field = useRef<HTMLTextAreaElement>(null);
	const pending = useLoad(`approvals ${ws.name} ${session}`, async (signal) => {
		const page = await stead.json<{ approvals: Approval[] }>("list_approvals", { path: { workspace: ws.name, session }, signal }).catch(() => null);
		return page?.approvals ?? []; /* a conversation that has not begun has none */
	});
	useRefresh(pending.reload);
	useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [shown, open, pending.data]);
	/** Without a text, the turn that waits goes on. */
	const say = async (text: string) => {
		const now = new Date().toISOString(), all: Entry[] = text ? [{ type: "message", id: "mine", timestamp: now, role: "user", content: text }] : [];
		const show = () => setShown([...all]);
		setBusy(true);
		onBusy?.(true);
		setDoing("");
		show();
		try {
			const answer = await stead.send("send_message", { path: { workspace: ws.name, session }, body: JSON.stringify({ text }), headers: { "Content-Type": "application/json", Accept: "text/event-stream" } });
			for await (const { name, data } of serverSentEvents(answer)) {
				const value = JSON.parse(data) as { text?: string; name?: string; input?: unknown; detail?: string; is_error?: boolean; unsaid?: boolean; cut?: boolean; refused?: boolean; answer?: string; waiting?: unknown }, last = all.at(-1);
				setDoing(name === "again" ? value.text ?? "" : "");
				if (name === "again" && last?.role === "assistant") all.pop(); /* what came so far is void */
				if (name === "note") all.push({ type: "problem", id: `${all.length}`, timestamp: now, problem: value.text ?? "" });
				if (name === "end") tellShortfall(value);
				if (name === "error") throw new Error(value.detail ?? "the turn failed");
				if (value.unsaid && field.current) {
					field.current.value = text;
					failed(new Error("The message was not sent: first decide about the waiting call"));
				}
				if (name === "call") all.push({ type: "tool_use", id: `${all.length}`, timestamp: now, name: value.name, input: value.input });
				else if (name === "result") all.push({ type: "tool_result", id: `${all.length}`, timestamp: now, output: value.text, is_error: value.is_error });
				else if (name === "text" && last?.role === "assistant") all[all.length - 1] = { ...last, content: String(last.content) + (value.text ?? "") };
				else if (name === "text") all.push({ type: "message", id: `${all.length}`, timestamp: now, role: "assistant", content: value.text });
				show();
			}
		} catch (error) {
			failed(error);
			if (text && !(await isSaid(text)) && field.current) field.current.value = text;
		}
		setShown([]);
		setBusy(false);
		onBusy?.(false);
		onEnd();
		pending.reload();
	};
	/** Whether the conversation has the message: a turn that fails has it, one that did not begin has not. */
	const isSaid = async (text: string): Promise<boolean> => {
		const page = await stead.json<{ entries: Entry[] }>("list_messages", { path: { workspace: ws.name, session }, query: { limit: 20 } }).catch(() => null);
		return page?.entries.some((entry) => entry.role === "user" && (entry.text ?? wordsOf(entry.content)) === text) ?? false;
	};
	const decide = (id: string, decision: "approve" | "deny") => void attempt(async () => {
		const left = await stead.json<{ approvals: Approval[] }>("decide_approval", { path: { workspace: ws.name, session }, body: JSON.stringify({ id, decision }), headers: { "Content-Type": "application/json" } });
		if (left.approvals.length) pending.reload();
		else await say("");
	});
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		const form = event.currentTarget as HTMLFormElement, text = String(new FormData(form).get("text")).trim();
		if (!text || busy) return;
		form.reset();
		void say(text);
	};
	return (
		<>
			{shown.map((entry) => <EntryView key={entry.id} entry={entry} />)}
			{!busy && <Approvals waiting={pending.data ?? []} busy={busy} onDecide={decide} />}
			{open && !busy && !pending.data?.length && (
				<section class="card ask stack" aria-label="Open turn">
					<p>The last turn has not ended: it is running elsewhere, or was cut off.</p>
					<div class="row end"><Button onClick={() => void say("")}>Go on</Button></div>
				</section>
			)}
			{busy && <p class="hint" role="status">{doing ? `The model is asked again: ${doing}` : "The agent is working…"}</p>}
			<form class="talk" onSubmit={submit}>
				<label><span class="visually-hidden">Message to the agent</span><textarea ref={field} name="text" class="short" rows={2} required placeholder="Say something to the agent" disabled={busy}
					onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); event.currentTarget.form?.requestSubmit(); } }} /></label>
				<Button kind="main" type="submit" disabled={busy}>Send</Button>
			</form>
			<div ref={end} />
		</>
	);
}

function Transcript({ agent, session, title }: { agent: string; session: string; title?: string }) {
	const ws = currentWorkspace(), [last, setLast] = useState(100);
	const log = useLoad(`${ws.name} ${agent} ${session} ${last}`, (signal) => ws.tool("session_history", { agent, session, last }, signal));
	const entries = (log.data?.entries ?? []) as unknown as Entry[], newest = entries.at(-1)?.id;
	/* Only conversations of the workspace's own agent can be continued. */
	const own = useLoad(`own ${ws.name} ${agent} ${session} ${newest}`, async (signal) => {
		if (!newest || !may("write_file")) return false;
		const page = await stead.json<{ entries: Entry[] }>("list_messages", { path: { workspace: ws.name, session }, query: { limit: 1 }, signal }).catch(() => null);
		return page?.entries.at(-1)?.id === newest;
	});
	const [canTalk, setCanTalk] = useState(false), [replays, setReplays] = useState(false);
	useEffect(() => {
		if (own.data !== undefined) setCanTalk(own.data);
	}, [own.data]);
	/* What a turn does that runs here is shown as it comes, not from the log, too. */
	const busy = useRef(false), refresh = useCallback(() => void (busy.current || log.reload()), [log.reload]);
	useRefresh(refresh);
	return (
		<section class="detail" aria-label="Conversation">
			<header class="file-head">
				{isNarrow.value && <a class="button quiet only-icon" href={href("sessions")} aria-label="Back to the conversations"><Icon name="back" /></a>}
				<div class="head-text"><h2>{title || session}</h2><p class="sub">{title ? `${agent} · ${session}` : agent}</p></div>
				{canTalk && <div class="head-actions"><Button icon={replays ? "chat" : "history"} onClick={() => setReplays(!replays)}>{replays ? "Conversation" : "Replay"}</Button></div>}
			</header>
			<div class="file-body">{replays ? <Replay agent={agent} session={session} /> : <div class="paper transcript">
				<Show of={log}>
					{(data) => (
						<>
							{data.next_cursor && <div class="row center"><Button onClick={() => setLast(Math.min(1000, last * 3))} disabled={last >= 1000}>Show earlier entries</Button></div>}
							{entries.filter(isShown).map((entry) => <EntryView key={entry.id} entry={entry} />)}
						</>
					)}
				</Show>
				{canTalk && <Talk session={session} open={hasOpenTurn(entries)} onBusy={(now) => (busy.current = now)} onEnd={log.reload} />}
			</div>}</div>
		</section>
	);
}

/** A conversation that does not exist before its first message. */
function NewConversation({ onEnd }: { onEnd: (session: string) => void }) {
	const [session] = useState(() => `page-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}`);
	return (
		<section class="detail" aria-label="Conversation">
			<header class="file-head">{isNarrow.value && <a class="button quiet only-icon" href={href("sessions")} aria-label="Back to the conversations"><Icon name="back" /></a>}<div class="head-text"><h2>New conversation</h2><p class="sub">with the agent of this workspace</p></div></header>
			<div class="file-body"><div class="paper transcript"><p class="hint">The agent works in this workspace with its tools. The model is the one in agent.yaml.</p><Talk session={session} onEnd={() => onEnd(session)} /></div></div>
		</section>
	);
}

export function Sessions() {
	const ws = currentWorkspace(), isNew = route.value.rest === "new", [agent = "", ...rest] = route.value.rest.split("/"), chosen = rest.join("/");
	const list = useLoad(`sessions ${ws.name}`, (signal) => ws.tool("session_list", { limit: 500 }, signal));
	useRefresh(list.reload);
	const sessions = (list.data?.sessions ?? []) as Session[];
	const started = (session: string) => void attempt(async () => {
		const made = (await ws.tool("session_list", { limit: 500 })).sessions.find((one) => one.session === session);
		list.reload();
		if (made) go(href("sessions", `${made.agent}/${session}`));
	});
	const talk = may("write_file") && <a class="button main small" href={href("sessions", "new")}><Icon name="plus" /><span>Talk</span></a>;
	const current = isNew ? undefined : chosen ? { agent, session: chosen } : isNarrow.value ? undefined : sessions[0];
	const isEmpty = !!list.data && !sessions.length && !isNew && !current;
	return (
		<div class={isEmpty ? "split is-empty" : "split"}>
			{(!isNarrow.value || (!chosen && !isNew)) && (
				<section class="split-list" aria-label="Conversations">
					<Head title="Sessions" sub={list.data ? plural(list.data.total, "conversation") : "Conversations"} actions={talk} />
					{list.error && <Empty icon="alert" title="The conversations could not be loaded" text={list.error.message} />}
					{list.loading && <div class="pad"><Skeleton /></div>}
					{list.data && !sessions.length && <Empty icon="chat" title="No conversations yet" text={<>What an agent says and does is recorded here. Talk to the agent of this workspace, or let your own runtime record with <code>session_append</code>.</>} action={talk} />}
					{list.data && <ul class="scroll">
						{sessions.map((one) => (
							<li key={`${one.agent}/${one.session}`}>
								<a class="change" href={href("sessions", `${one.agent}/${one.session}`)} aria-current={one.agent === current?.agent && one.session === current.session ? "true" : undefined}>
									<span class="change-icon"><Icon name="chat" /></span>
									<span class="change-main wrap"><strong>{one.title || one.session}</strong><span class="hint">{one.agent} · {plural(one.messages, "message")} · {ago(one.last_active_at)}</span></span>
								</a>
							</li>
						))}
					</ul>}
				</section>
			)}
			{isNew ? <NewConversation onEnd={started} /> : current ? <Transcript key={`${current.agent}/${current.session}`} agent={current.agent} session={current.session} title={sessions.find((one) => one.agent === current.agent && one.session === current.session)?.title} /> : !isNarrow.value && sessions.length > 0 && <section class="detail" aria-label="Conversation"><Empty icon="chat" title="No conversation chosen" text="Choose one on the left." /></section>}
		</div>
	);
}
