// SPDX-License-Identifier: Apache-2.0
// One file: read, edit, listen, look at. An edit is saved on condition that nobody else changed the file since.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../icons.tsx";
import { Markdown, type MarkdownPlace } from "../markdown.tsx";
import { attempt, currentWorkspace, done, failed, go, hasToken, href, isDark, isNarrow, may, onChange, replaceQuery, route, SteadError, undoOf, type Workspace } from "../state.ts";
import { Button, Choice, Dialog, Empty, Menu, Show, Skeleton, useLoad } from "../ui.tsx";
import { ago, baseName, fullTime, joinPath, parentOf, size } from "../format.ts";
import { filesActions } from "./actions.ts";
import type { Editor } from "./editor.ts";

const TEXT_MAX = 4_000_000;
const PROBE = 8192;

type Kind = "markdown" | "text" | "image" | "audio" | "video" | "pdf" | "csv" | "binary" | "large";
interface Opened {
	kind: Kind;
	size: number;
	modified: string;
	version: string;
	text: string;
}

export function kindByName(path: string): Kind | null {
	const end = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
	if (/^(md|markdown)$/.test(end)) return "markdown";
	if (/^(png|jpe?g|gif|svg|webp|avif|ico|bmp)$/.test(end)) return "image";
	if (/^(mp3|wav|ogg|m4a|flac)$/.test(end)) return "audio";
	if (/^(mp4|webm|mov|mkv)$/.test(end)) return "video";
	if (end === "pdf") return "pdf";
	if (/^(csv|tsv)$/.test(end)) return "csv";
	return null;
}

async function looksBinary(ws: Workspace, path: string, signal: AbortSignal): Promise<boolean> {
	const bytes = new Uint8Array(await (await ws.read(path, { range: [0, PROBE - 1], signal })).arrayBuffer());
	return bytes.includes(0);
}

async function openFile(ws: Workspace, path: string, signal: AbortSignal): Promise<Opened> {
	const stat = await ws.stat(path, signal), named = kindByName(path);
	const opened: Opened = { kind: named ?? "text", size: stat.size, modified: stat.modified, version: stat.version, text: "" };
	if (named && named !== "markdown" && named !== "csv") return opened;
	if (!named && stat.size && (await looksBinary(ws, path, signal))) return { ...opened, kind: "binary" };
	if (stat.size > TEXT_MAX) return { ...opened, kind: "large", text: (await ws.text(path, { range: [0, 199_999], signal })).text };
	return { ...opened, ...(await ws.text(path, { signal })) };
}

/** Long enough for a long film. */
export const playerLink = { once: false, show: true, expires_seconds: 6 * 3600 };

/** How an element gets a file: by its address, as bytes that were fetched first, or by a link that needs no token. */
type Way = "address" | "fetched" | "linked";

/** An address of the file that an element can load. A link is for players: they ask for the ranges that they need. */
export function useFileUrl(ws: Workspace, path: string, version: string, way: Way): string | null {
	const [url, setUrl] = useState<string | null>(way === "address" ? ws.fileUrl(path) : null);
	useEffect(() => {
		if (way === "address") {
			setUrl(`${ws.fileUrl(path)}#${version}`);
			return;
		}
		const control = new AbortController();
		let made = "";
		if (way === "linked") {
			ws.link(path, playerLink).then((link) => control.signal.aborted || setUrl(link)).catch(failed);
			return () => control.abort();
		}
		ws.read(path, { signal: control.signal }).then((answer) => answer.blob()).then((blob) => setUrl((made = URL.createObjectURL(blob)))).catch(failed);
		return () => {
			control.abort();
			if (made) URL.revokeObjectURL(made);
		};
	}, [path, version, way]);
	return url;
}

function Picture({ ws, path, text }: { ws: Workspace; path: string; text: string }) {
	const url = useFileUrl(ws, path, "", hasToken.value ? "fetched" : "address");
	return url ? <img src={url} alt={text} loading="lazy" /> : null;
}

/** Where the links and pictures of a text in the directory `dir` lead. */
export function placeIn(ws: Workspace, dir: string): MarkdownPlace {
	const resolve = (target: string): string | null => {
		const [path = ""] = target.split(/[?#]/);
		if (!path) return null;
		const parts: string[] = [];
		for (const part of (path.startsWith("/") ? path : joinPath(dir, path)).split("/")) {
			if (part === "..") parts.pop();
			else if (part && part !== ".") parts.push(decodeSafely(part));
		}
		return parts.join("/");
	};
	return {
		link: (target) => {
			const path = resolve(target);
			return path ? href("files", path, {}, ws.name) : null;
		},
		image: (target, text) => {
			const path = /^[a-z][a-z0-9+.-]*:/i.test(target) ? null : resolve(target);
			return path ? <Picture ws={ws} path={path} text={text} /> : <span>{text}</span>;
		},
	};
}

function decodeSafely(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function Media({ ws, path, opened }: { ws: Workspace; path: string; opened: Opened }) {
	const isPlayed = opened.kind === "audio" || opened.kind === "video";
	const url = useFileUrl(ws, path, opened.version, opened.kind === "pdf" ? "fetched" : !hasToken.value ? "address" : isPlayed ? "linked" : "fetched");
	if (!url) return <div class="pad"><Skeleton lines={3} /></div>;
	switch (opened.kind) {
	case "image": return <div class="media checkered"><img src={url} alt={baseName(path)} /></div>;
	case "audio": return <div class="media"><audio src={url} controls preload="metadata" aria-label={baseName(path)} /></div>;
	case "video": return <div class="media"><video src={url} controls preload="metadata" aria-label={baseName(path)} /></div>;
	default: return <iframe class="pdf" src={`${url}#navpanes=0&view=FitH`} title={baseName(path)} />;
	}
}

function parseCsv(text: string, separator: string, max: number): string[][] {
	const rows: string[][] = [];
	let row: string[] = [], cell = "", quoted = false;
	for (let i = 0; i < text.length && rows.length < max; i++) {
		const c = text[i];
		if (quoted) {
			if (c !== '"') cell += c;
			else if (text[i + 1] === '"') {
				cell += c;
				i++;
			} else quoted = false;
		} else if (c === '"' && !cell) quoted = true;
		else if (c === separator) {
			row.push(cell);
			cell = "";
		} else if (c === "\n") {
			row.push(cell.replace(/\r$/, ""));
			rows.push(row);
			row = [];
			cell = "";
		} else cell += c;
	}
	if (cell || row.length) rows.push([...row, cell]);
	return rows;
}

function CsvTable({ text, path }: { text: string; path: string }) {
	const max = 1000, rows = parseCsv(text, /\.tsv$/i.test(path) ? "\t" : ",", max + 1), [head = [], ...body] = rows;
	const numeric = head.map((_, i) => body.length > 0 && body.every((row) => !row[i] || !Number.isNaN(Number(row[i]))));
	return (
		<div class="csv table-scroll" tabIndex={0} role="region" aria-label="Table">
			<table>
				<thead><tr>{head.map((cell, i) => <th key={i} class={numeric[i] ? "right" : ""}>{cell}</th>)}</tr></thead>
				<tbody>{body.slice(0, max).map((row, r) => <tr key={r}>{head.map((_, i) => <td key={i} class={numeric[i] ? "right" : ""}>{row[i] ?? ""}</td>)}</tr>)}</tbody>
			</table>
			{rows.length > max && <p class="hint pad">The first {max} rows. Edit or download the file to see all.</p>}
		</div>
	);
}

/* --- editing --- */

/** Texts that were changed and not saved, by workspace and path: moving around loses nothing. */
const drafts = new Map<string, { text: string; version: string }>();
addEventListener("beforeunload", (event) => {
	if (drafts.size) event.preventDefault();
});

/** The editor has the text; `turn` goes up when another text has to replace it. */
function EditorPane({ path, text, turn, editable, onInput, onSave }: { path: string; text: string; turn: number; editable: boolean; onInput: (text: string) => void; onSave: () => void }) {
	const host = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null), calls = useRef({ onInput, onSave });
	const [ready, setReady] = useState(false);
	calls.current = { onInput, onSave };
	useEffect(() => {
		let gone = false;
		import("./editor.ts").then((m) => m.createEditor(host.current as HTMLElement, {
			text, path, editable, dark: isDark.peek(), onInput: (value) => calls.current.onInput(value), onSave: () => calls.current.onSave(),
		})).then((made) => {
			if (gone) return made.destroy();
			editor.current = made;
			setReady(true);
		}, failed);
		return () => {
			gone = true;
			editor.current?.destroy();
			editor.current = null;
		};
	}, [path]);
	useEffect(() => editor.current?.setText(text), [turn, ready]);
	useEffect(() => editor.current?.setOptions({ dark: isDark.value, editable }), [isDark.value, editable, ready]);
	return <div class="editor" ref={host}>{!ready && <div class="pad"><Skeleton /></div>}</div>;
}

function Compare({ mine, theirs, onClose }: { mine: string; theirs: string; onClose: () => void }) {
	return (
		<Dialog title="Both versions" wide onClose={onClose}>
			<div class="sides">
				<section><h3>Yours</h3><pre tabIndex={0}>{mine}</pre></section>
				<section><h3>On the server</h3><pre tabIndex={0}>{theirs}</pre></section>
			</div>
		</Dialog>
	);
}

function TextFile({ path, opened, onReload, actions }: { path: string; opened: Opened; onReload: () => void; actions: (save: ComponentChildren) => ComponentChildren }) {
	const ws = currentWorkspace(), id = `${ws.name}/${path}`, draft = drafts.get(id);
	const [base, setBase] = useState({ text: opened.text, version: draft?.version ?? opened.version });
	const [text, setText] = useState(draft?.text ?? opened.text);
	const [comparing, setComparing] = useState(false), [saving, setSaving] = useState(false), [turn, setTurn] = useState(0);
	const editable = may("write_file") && opened.kind !== "large", dirty = text !== base.text;
	const rendered = opened.kind === "markdown" || opened.kind === "csv";
	const mode = !rendered || route.value.query.get("mode") === "edit" ? "edit" : "read";
	const changed = opened.version !== base.version;
	const takeTheirs = () => {
		setBase({ text: opened.text, version: opened.version });
		setText(opened.text);
		setTurn(turn + 1);
	};
	useEffect(() => {
		if (changed && !dirty) takeTheirs();
	}, [opened.version]);
	useEffect(() => {
		if (dirty) drafts.set(id, { text, version: base.version });
		else drafts.delete(id);
	}, [text, dirty]);
	const save = async (version = base.version) => {
		if (!dirty || saving) return;
		setSaving(true);
		try {
			const written = await ws.write(path, text, { ifVersion: version });
			setBase({ text, version: written.version });
			onReload();
			done(`Saved ${baseName(path)}`, await undoOf(ws, path));
		} catch (error) {
			if (error instanceof SteadError && error.status === 412) onReload();
			else failed(error);
		}
		setSaving(false);
	};
	const controls = (
		<>
			{rendered && <Choice label="How to show the file" value={mode} options={[["read", "Read"], ["edit", editable ? "Edit" : "Source"]]} onChange={(value) => replaceQuery({ mode: value === "edit" ? "edit" : undefined })} />}
			{editable && (dirty || mode === "edit") && <Button kind="main" disabled={!dirty || saving} onClick={() => void save()} title="Ctrl+S">Save</Button>}
		</>
	);
	return (
		<>
			{actions(controls)}
			{changed && dirty && (
				<div class="banner" role="alert">
					<Icon name="alert" />
					<span>This file was changed by someone else while you edited it.</span>
					<span class="row"><Button small onClick={() => setComparing(true)}>Compare</Button><Button small onClick={() => void save(opened.version)}>Keep mine</Button><Button small onClick={takeTheirs}>Take theirs</Button></span>
				</div>
			)}
			{opened.kind === "large" && <div class="banner"><Icon name="alert" /><span>The file has {size(opened.size)}. This is its beginning; download it to see all.</span></div>}
			{mode === "edit" ? <EditorPane path={path} text={text} turn={turn} editable={editable} onInput={setText} onSave={() => void save()} />
				: opened.kind === "csv" ? <div class="file-body"><CsvTable text={text} path={path} /></div>
				: <div class="file-body" tabIndex={-1}><article class="paper">{text.trim() ? <Markdown text={text} place={placeIn(ws, parentOf(path))} /> : <p class="hint">This file is empty. Choose Edit to write something.</p>}</article></div>}
			{comparing && <Compare mine={text} theirs={opened.text} onClose={() => setComparing(false)} />}
		</>
	);
}

/* --- the whole pane --- */

export function FileView({ path }: { path: string }) {
	const ws = currentWorkspace(), writable = may("write_file");
	const opened = useLoad(`${ws.name}/${path}`, (signal) => openFile(ws, path, signal));
	const [gone, setGone] = useState(false);
	useEffect(() => onChange((change) => {
		if (change.path !== path) return;
		setGone(!change.after);
		if (change.after) opened.reload();
	}), [path]);
	const isMissing = gone || (opened.error instanceof SteadError && opened.error.status === 404);
	const bar = (data: Opened | undefined, extra?: ComponentChildren) => (
		<header class="file-head">
			{isNarrow.value && <a class="button quiet only-icon" href={href("files")} aria-label="Back to the files"><Icon name="back" /></a>}
			<div class="head-text">
				<h2 title={path}>{parentOf(path) && <span class="path">{parentOf(path)}/</span>}{baseName(path)}</h2>
				<p class="sub">{data ? <>{size(data.size)} · <span title={fullTime(data.modified)}>changed {ago(data.modified)}</span></> : isMissing ? "missing" : "\u00a0"}</p>
			</div>
			<div class="head-actions">
				{extra}
				{data && <Menu label="File actions" items={[
					{ icon: "history", text: "History", run: () => go(href("history", path)) },
					{ icon: "download", text: "Download", run: () => void attempt(() => filesActions.download(ws, path)) },
					{ icon: "copy", text: "Copy path", run: () => void attempt(async () => { await navigator.clipboard.writeText(path); done("Copied the path"); }) },
					writable ? { icon: "move", text: "Rename or move…", run: () => filesActions.ask({ kind: "rename", path, isDir: false }) } : null,
					writable ? { icon: "trash", text: "Delete…", danger: true, run: () => filesActions.ask({ kind: "delete", path, isDir: false }) } : null,
				]} />}
			</div>
		</header>
	);
	if (isMissing)
		return (
			<section class="file-pane" aria-label="File">
				{bar(undefined)}
				<Empty icon="trash" title="This file does not exist" text="It was deleted or moved, or the address is wrong. If it existed, its history shows when it went, and brings it back."
					action={<a class="button main" href={href("history", path)}>Show its history</a>} />
			</section>
		);
	return (
		<section class="file-pane" aria-label="File">
			{!opened.data && bar(undefined)}
			<Show of={opened}>
				{(data) => {
					if (data.kind === "markdown" || data.kind === "text" || data.kind === "csv" || data.kind === "large")
						return <TextFile path={path} opened={data} onReload={opened.reload} actions={(extra) => bar(data, extra)} />;
					if (data.kind === "binary")
						return <>{bar(data)}<Empty icon="file" title="This file cannot be shown here" text="It is not text, a picture, a sound, a video or a PDF." action={<Button kind="main" icon="download" onClick={() => void attempt(() => filesActions.download(ws, path))}>Download</Button>} /></>;
					return <>{bar(data)}<Media ws={ws} path={path} opened={data} /></>;
				}}
			</Show>
		</section>
	);
}
