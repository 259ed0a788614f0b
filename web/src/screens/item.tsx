// SPDX-License-Identifier: Apache-2.0
// One item of a board: its brief, what it waits for, its results with their checks, files, journal and comments. It follows
// the changes of the item as they are made.
import { useEffect, useState } from "preact/hooks";
import { Icon, iconOf } from "../icons.tsx";
import { Markdown } from "../markdown.tsx";
import { kindByName, placeIn, playerLink } from "../files/viewer.tsx";
import { attempt, currentWorkspace, done, failed, hasToken, href, may, SteadError } from "../state.ts";
import { Badge, Button, Dialog, Empty, FilePicker, Menu, Show, useLoad } from "../ui.tsx";
import { ago, baseName, fullTime, plural, size } from "../format.ts";
import { boardApi, columnOf, statusTone, type BoardApi, type Item, type Question } from "./board_api.ts";

const inTask = (path: string) => path.replace(/^\/?task\//, "").replace(/^\/+/, "");

export function ReasonForm({ api, id, status, onDone, onClose }: { api: BoardApi; id: string; status: string; onDone: () => void; onClose: () => void }) {
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		try {
			await api.update(id, { status, result_summary: String(new FormData(event.currentTarget as HTMLFormElement).get("why")) });
			done(`The item is ${status}`, () => api.update(id, { status: "pending" }).then(onDone));
			onDone();
			onClose();
		} catch (error) {
			failed(error);
		}
	};
	return (
		<Dialog title={`Why is it ${status}?`} onClose={onClose}>
			<form class="stack" onSubmit={submit}>
				<label class="field"><span>Reason, for whoever looks at it next (at least 30 characters)</span><textarea name="why" required minLength={30} autofocus rows={4} /></label>
				<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit">Save</Button></div>
			</form>
		</Dialog>
	);
}

export function CompleteForm({ api, id, onDone, onClose }: { api: BoardApi; id: string; onDone: () => void; onClose: () => void }) {
	const files = useLoad(`complete ${id}`, (signal) => api.files(id, signal));
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		try {
			await api.update(id, { status: "completed", result_summary: String(form.get("summary")), artifacts: form.getAll("artifact").map(String) });
			done("Completed the item: all checks passed", () => api.update(id, { status: "pending" }).then(onDone));
			onDone();
			onClose();
		} catch (error) {
			failed(error);
		}
	};
	return (
		<Dialog title="Complete the item" onClose={onClose}>
			<form class="stack" onSubmit={submit}>
				<label class="field"><span>What was achieved (at least 30 characters)</span><textarea name="summary" required minLength={30} autofocus rows={4} /></label>
				<Show of={files} lines={2}>
					{(list) => {
						const own = list.filter((one) => one.kind === "file" && !/^(TASK|JOURNAL)\.md$|^audit\//.test(one.path));
						return (
							<fieldset class="field"><legend>Files that are the result</legend>
								{own.map((one) => <label key={one.path} class="check-label"><input type="checkbox" name="artifact" value={one.path} defaultChecked={one.path.startsWith("artifacts/")} /> <span class="path">{one.path}</span></label>)}
								{!own.length && <p class="hint">There is no file yet. A result needs at least one file: let an agent write it to artifacts/, or add it with Add results.</p>}
							</fieldset>
						);
					}}
				</Show>
				<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit">Check and complete</Button></div>
			</form>
		</Dialog>
	);
}

/** What the server takes as the answer to a question of this kind. */
function valueOf(question: Question, given: FormDataEntryValue[]): unknown {
	const first = String(given[0] ?? "");
	switch (question.kind) {
	case "multi_choice": return given.map(String);
	case "yes_no": case "confirm": return first === "yes";
	case "number": return Number(first);
	default: return first;
	}
}

function QuestionField({ question }: { question: Question }) {
	const options = (question.kind === "yes_no" || question.kind === "confirm" ? ["yes", "no"] : (question.options ?? [])).map((one) => (typeof one === "string" ? { value: one, text: one } : { value: one.id ?? one.value ?? "", text: one.label ?? one.value ?? "" }));
	if (options.length)
		return (
			<fieldset class="field"><legend>{question.text}</legend>
				{options.map((one) => <label key={one.value} class="check-label"><input type={question.kind === "multi_choice" ? "checkbox" : "radio"} name={question.id} value={one.value} required={question.kind !== "multi_choice"} /> {one.text}</label>)}
			</fieldset>
		);
	const type = question.kind === "number" ? "number" : question.kind === "date" ? "date" : "";
	return <label class="field"><span>{question.text}</span>{type ? <input name={question.id} type={type} required step="any" /> : <textarea name={question.id} required rows={3} class="short" />}</label>;
}

function Waiting({ item, api, onDone }: { item: Item; api: BoardApi; onDone: () => void }) {
	const asked = item.pending_question, wanted = item.pending_approval;
	const answer = (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		void attempt(async () => {
			await api.answer(item.id, { answers: asked?.questions.map((one) => ({ question_id: one.id, value: valueOf(one, form.getAll(one.id)) })) });
			done("Sent the answer");
			onDone();
		});
	};
	const approve = (mode: string | null) => void attempt(async () => {
		await api.approve(item.id, { request_message_id: wanted?.request_message_id ?? wanted?.id, approvals: mode ? (wanted?.tools ?? []).map((one) => ({ tool_name: one.tool_name, mode })) : [] });
		done(mode ? "Approved" : "Refused");
		onDone();
	});
	return (
		<>
			{asked && (
				<form class="card ask stack" onSubmit={answer} aria-label="Question">
					<h2><Icon name="question" /> An agent asks</h2>
					{asked.questions.map((one) => <QuestionField key={one.id} question={one} />)}
					{may("update_item") && <div class="row end"><Button kind="main" type="submit">Answer</Button></div>}
				</form>
			)}
			{wanted && (
				<section class="card ask stack" aria-label="Approval">
					<h2><Icon name="key" /> An agent wants to use</h2>
					{wanted.message && <p>{wanted.message}</p>}
					<ul>{(wanted.tools ?? []).map((one) => <li key={one.tool_name}><code>{one.tool_name}</code> {one.description}</li>)}</ul>
					{may("update_item") && <div class="row end"><Button kind="quiet" onClick={() => approve(null)}>Refuse</Button><Button onClick={() => approve("allow_once")}>Allow once</Button><Button kind="main" onClick={() => approve("allow_always")}>Always allow</Button></div>}
				</section>
			)}
		</>
	);
}

/** What a check that passed says about its file; one that failed has a sentence of its own. */
const checkWords: Record<string, string> = { exists: "exists", min_size: "is large enough", json_schema: "fits its schema", matches: "has a line that matches" };

function FileLink({ item, api, path, onOpen }: { item: string; api: BoardApi; path: string; onOpen: (path: string) => void }) {
	const download = () => attempt(async () => {
		const link = document.createElement("a");
		link.download = baseName(path);
		link.href = hasToken.value ? await api.link(item, path) : api.fileUrl(item, path);
		link.click();
	});
	return (
		<span class="file-link">
			<button type="button" class="link-button" onClick={() => onOpen(path)}><Icon name={iconOf(path, "file")} />{path}</button>
			<Button small kind="quiet" icon="download" label={`Download ${baseName(path)}`} onClick={() => void download()} />
		</span>
	);
}

/** Puts files of a person among the results. */
function AddFiles({ id, api, onDone }: { id: string; api: BoardApi; onDone: () => void }) {
	const [busy, setBusy] = useState(false);
	const add = async (input: HTMLInputElement) => {
		const added: string[] = [];
		setBusy(true);
		try {
			for (const file of input.files ?? []) {
				await api.add(id, `artifacts/${file.name}`, file);
				added.push(`artifacts/${file.name}`);
			}
		} catch (error) {
			failed(error);
		}
		input.value = "";
		setBusy(false);
		if (added.length) done(`Added ${added.length === 1 ? added[0] : plural(added.length, "file")}`, () => Promise.all(added.map((path) => api.remove(id, path))).then(onDone));
		onDone();
	};
	return (
		<div class="file-picker">
			<label class="button small"><Icon name="upload" /><span>{busy ? "Adding…" : "Add results"}</span><input class="visually-hidden" type="file" multiple disabled={busy} onChange={(event) => void add(event.currentTarget)} /></label>
		</div>
	);
}

const TEXT_MAX = 1_000_000, PICTURE_MAX = 50_000_000;

function FileDialog({ item, api, path, onClose }: { item: string; api: BoardApi; path: string; onClose: () => void }) {
	const ws = currentWorkspace();
	const file = useLoad(`${item} ${path}`, async (signal): Promise<{ kind: string; url: string; text: string }> => {
		const kind = kindByName(path) ?? "text";
		if (kind === "audio" || kind === "video") return { kind, url: hasToken.value ? await api.link(item, path, playerLink) : api.fileUrl(item, path), text: "" };
		const blob = await (await api.read(item, path, kind === "image" ? PICTURE_MAX : TEXT_MAX, signal).catch((error) => { if (error instanceof SteadError && error.status === 416) return new Response(""); throw error; })).blob();
		if (kind === "image") return { kind, url: URL.createObjectURL(blob), text: "" };
		const text = blob.size < TEXT_MAX ? await blob.text() : "";
		return { kind, url: "", text: text.includes("\0") ? "" : text };
	});
	return (
		<Dialog title={path} wide onClose={onClose}>
			<Show of={file}>
				{({ kind, url, text }) => kind === "video" ? <video class="file-picture" src={url} controls preload="metadata" aria-label={baseName(path)} /> : kind === "audio" ? <audio src={url} controls preload="metadata" aria-label={baseName(path)} /> : url ? <img class="file-picture" src={url} alt={baseName(path)} /> : !text ? <p class="hint">This file is empty, large or not text. Download it to see it.</p>
					: /\.md$/i.test(path) ? <Markdown text={text} place={placeIn(ws, "")} /> : <pre class="file-text" tabIndex={0}>{text}</pre>}
			</Show>
		</Dialog>
	);
}

function Results({ item, api, onOpen }: { item: Item; api: BoardApi; onOpen: (path: string) => void }) {
	if (!item.deliverables.length) return <p class="hint">No deliverables yet.</p>;
	return (
		<>
			{[...item.deliverables].reverse().map((one) => (
				<article key={one.id} class="deliverable">
					<h3>{one.result_summary}</h3>
					<p class="hint">{one.by_agent_name && `${one.by_agent_name} · `}<span title={fullTime(one.at)}>{ago(one.at)}</span></p>
					<ul>{one.artifacts.map((file) => <li key={file.path}><FileLink item={item.id} api={api} path={inTask(file.path)} onOpen={onOpen} /><span class="hint">{file.size_bytes !== undefined && size(file.size_bytes)} {file.note}</span>{file.sha256 && <code class="sum" title={`SHA-256 ${file.sha256}`}>{file.sha256.slice(0, 12)}</code>}</li>)}</ul>
					{(one.checks?.length ?? 0) > 0 && <ul class="checks">{one.checks?.map((check, i) => <li key={i} class={check.ok ? "green" : "red"}><Icon name={check.ok ? "check" : "close"} />{check.command ? <code>{check.command}</code> : <>{baseName(check.path ?? "")} {checkWords[check.check] ?? check.check}</>}{check.detail && ` (${check.detail})`}</li>)}</ul>}
					{(["findings", "cautions", "next"] as const).map((key) => one[key] && <p key={key} class="hint"><strong class="label">{key}</strong>{one[key]}</p>)}
				</article>
			))}
		</>
	);
}

function Comments({ id, api, turn }: { id: string; api: BoardApi; turn: number }) {
	const list = useLoad(`comments ${id}`, (signal) => api.comments(id, signal)), ws = currentWorkspace();
	useEffect(list.reload, [turn]);
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		const form = event.currentTarget as HTMLFormElement, given = new FormData(form), body = new FormData();
		body.set("body", String(given.get("body")));
		for (const file of given.getAll("files")) if (file instanceof File && file.size) body.append("attachments", file);
		void attempt(async () => {
			await api.comment(id, body);
			form.reset();
			list.reload();
		});
	};
	return (
		<section aria-label="Comments"><h2>Comments</h2>
			<Show of={list} lines={2}>
				{(comments) => <ul class="stack">{comments.map((one) => <li key={one.id} class="message"><p class="message-head"><strong>{one.author}</strong> <time title={fullTime(one.created_at)}>{ago(one.created_at)}</time>{one.resolved_at && <Badge tone="green" icon="check">{one.resolution_summary || "resolved"}</Badge>}</p><Markdown text={one.body} place={placeIn(ws, "")} /></li>)}</ul>}
			</Show>
			{may("comment_item") && (
				<form class="stack comment-form" onSubmit={submit}>
					<label class="field"><span>Your comment (it stops the agent that is working on this, and the agent reads it first)</span><textarea name="body" required rows={3} class="short" /></label>
					<div class="row"><FilePicker name="files" /><Button kind="main" type="submit">Comment</Button></div>
				</form>
			)}
		</section>
	);
}

/** Goes up with each change of the item. */
function useItemChanges(api: BoardApi, id: string, board: string): number {
	const [turn, setTurn] = useState(0);
	useEffect(() => {
		const control = new AbortController();
		void (async () => {
			try {
				for await (const change of api.events(id, control.signal)) if (change) setTurn((n) => n + 1);
			} catch (error) {
				if (!control.signal.aborted) console.warn(error);
			}
		})();
		return () => control.abort();
	}, [id, board]);
	return turn;
}

export function ItemView({ id, board }: { id: string; board: string }) {
	const ws = currentWorkspace(), api = boardApi(ws, board), turn = useItemChanges(api, id, board);
	const load = useLoad(`item ${ws.name} ${board} ${id}`, (signal) => api.get(id, signal)), files = useLoad(`files ${ws.name} ${board} ${id}`, (signal) => api.files(id, signal).catch(() => []));
	const [form, setForm] = useState<"complete" | "blocked" | null>(null), [open, setOpen] = useState<string | null>(null);
	const reload = () => {
		load.reload();
		files.reload();
	};
	useEffect(() => {
		if (turn) reload();
	}, [turn]);
	const set = (status: string, before: string) => void attempt(async () => {
		await api.update(id, { status });
		done(`The item is ${status.replaceAll("_", " ")}`, () => api.update(id, { status: before }).then(reload));
		reload();
	});
	const archive = (item: Item) => void attempt(async () => {
		await (item.archived_at ? api.unarchive(id) : api.archive(id));
		done(item.archived_at ? "Back on the board" : "Archived the item", () => (item.archived_at ? api.archive(id) : api.unarchive(id)).then(reload));
		reload();
	});
	const actions = (item: Item) => {
		const column = columnOf(item.status), open = column !== "done" && column !== "ended";
		return (
			<div class="head-actions">
				{open && column !== "doing" && <Button onClick={() => set("in_progress", item.status)}>Start</Button>}
				{open && <Button kind="main" icon="check" onClick={() => setForm("complete")}>Complete…</Button>}
				{!open && <Button icon="undo" onClick={() => set("pending", item.status)}>Reopen</Button>}
				<Menu label="Item actions" items={[
					open ? { icon: "alert", text: "Blocked…", run: () => setForm("blocked") } : null,
					open ? { icon: "close", text: "Cancel the item", run: () => set("cancelled", "pending") } : null,
					{ icon: item.archived_at ? "undo" : "trash", text: item.archived_at ? "Put it back" : "Archive", run: () => archive(item) },
				]} />
			</div>
		);
	};
	if (load.error instanceof SteadError && load.error.kind === "not_found" && !load.data)
		return <div class="screen item"><Empty icon="board" title="This item does not exist" text="It may be on another board, or its number is incomplete." action={<a class="button main" href={href("board")}>Go to the board</a>} /></div>;
	return (
		<div class="screen item">
			<Show of={load}>
				{({ item, journal }) => (
					<>
						<header class="head">
							<a class="button quiet only-icon" href={href("board", "", { board: board === "main" ? undefined : board })} aria-label="Back to the board"><Icon name="back" /></a>
							<div class="head-text"><h1>{item.title}</h1>
								<p class="sub row"><Badge tone={statusTone(item.status)}>{item.status.replaceAll("_", " ")}</Badge>{item.priority !== "neutral" && <Badge>{item.priority}</Badge>}{item.archived_at && <Badge>archived</Badge>}<span class="path nowrap">{item.task_key}</span><span title={fullTime(item.updated_at)}>changed {ago(item.updated_at)}</span></p></div>
							{may("update_item") && actions(item)}
						</header>
						<div class="item-columns">
							<div class="stack wide-gap">
								<Waiting item={item} api={api} onDone={reload} />
								<section aria-label="Brief"><h2>Brief</h2>{item.description ? <Markdown text={item.description} place={placeIn(ws, "")} /> : <p class="hint">It has no description.</p>}</section>
								<section aria-label="Results"><h2>Results</h2><Results item={item} api={api} onOpen={setOpen} /></section>
								<Comments id={id} api={api} turn={turn} />
							</div>
							<aside class="stack wide-gap" aria-label="Details">
								<section><h2>Files</h2>
									<Show of={files} lines={3}>{(list) => { const own = list.filter((one) => one.kind === "file"); return own.length ? <ul class="item-files">{own.map((one) => <li key={one.path}><FileLink item={id} api={api} path={one.path} onOpen={setOpen} /></li>)}</ul> : <p class="hint">No files yet.</p>; }}</Show>
									{may("item_write") && !item.archived_at && <AddFiles id={id} api={api} onDone={reload} />}</section>
								{(item.checks?.length ?? 0) > 0 && <section><h2>Checks</h2><ul class="checks">{item.checks?.map((check, i) => <li key={i}><Icon name="flag" /><span><span class="path">{check.path}</span> {check.command ? <code>{check.command}</code> : check.min_size ? `has at least ${size(check.min_size)}` : check.matches ? `matches ${check.matches}` : check.json_schema ? "fits its schema" : "exists"}</span></li>)}</ul></section>}
								{item.mounts.length > 0 && <section><h2>Mounts</h2><ul class="checks">{item.mounts.map((mount) => <li key={mount.mount_path}><Icon name="link" /><span><span class="path">{mount.mount_path}</span> {mount.mode === "rw" ? "can be written" : "read-only"} {mount.description}</span></li>)}</ul></section>}
								{(item.assignments?.length ?? 0) > 0 && <section><h2>Assignments</h2><ul class="checks">{item.assignments?.map((one) => <li key={one.id}><Icon name="move" /><span>{one.role} <Badge tone={statusTone(one.status)}>{one.status}</Badge> {one.result_summary}</span></li>)}</ul></section>}
								<section><h2>Journal</h2>{journal ? <div class="journal"><Markdown text={journal.replace(/<!--.*?-->/g, "").replace(/^## \[([^\]]+)\]/gm, (_, time: string) => `## ${fullTime(time)}`).replace(/^# Journal\n+.*\n+.*\n/, "")} place={placeIn(ws, "")} /></div> : <p class="hint">Each handoff adds an entry.</p>}</section>
							</aside>
						</div>
						{form === "complete" && <CompleteForm api={api} id={id} onDone={reload} onClose={() => setForm(null)} />}
						{form === "blocked" && <ReasonForm api={api} id={id} status="blocked" onDone={reload} onClose={() => setForm(null)} />}
					</>
				)}
			</Show>
			{open && <FileDialog item={id} api={api} path={open} onClose={() => setOpen(null)} />}
		</div>
	);
}
