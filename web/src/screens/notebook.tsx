// SPDX-License-Identifier: Apache-2.0
// The notebook: what agents found, decided and asked.
import { useState } from "preact/hooks";
import { Icon, type IconName } from "../icons.tsx";
import { Markdown } from "../markdown.tsx";
import { placeIn } from "../files/viewer.tsx";
import { attempt, currentWorkspace, done, failed, go, href, isNarrow, may, route } from "../state.ts";
import { Badge, Button, Choice, Dialog, Empty, Head, Menu, Show, Skeleton, useLoad, useRefresh } from "../ui.tsx";
import { ago, fullTime } from "../format.ts";

export interface Note {
	slug: string;
	author: string;
	kind: string;
	title: string;
	tags: string[];
	updated: string;
	version: number;
	lede?: string;
	archived?: boolean;
	answered?: boolean;
	answered_by?: string;
	parent_slug?: string;
	content?: string;
}

const icons: Record<string, IconName> = { finding: "search", question: "question", decision: "check", summary: "note", artifact: "file", plan: "task", note: "note" };
const tones: Record<string, string> = { finding: "green", question: "amber", decision: "violet", plan: "blue", summary: "accent" };

function NoteForm({ title, asking, slug, onDone, onClose }: { title: string; asking?: boolean; slug?: string; onDone: (slug: string) => void; onClose: () => void }) {
	const ws = currentWorkspace(), [busy, setBusy] = useState(false);
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement), text = (name: string) => String(form.get(name) ?? "").trim();
		setBusy(true);
		try {
			const made = slug ? await ws.tool("answer_question", { slug, content: text("content") })
				: asking ? await ws.tool("ask_question", { title: text("title"), content: text("content") })
				: await ws.tool("note", { title: text("title"), content: text("content"), kind: text("kind"), tags: text("tags").split(",").map((tag) => tag.trim()).filter(Boolean) });
			done(slug ? "Answered the question" : `Wrote “${made.title}”`, () => ws.tool("archive_note", { slug: made.slug }));
			onDone(made.slug);
			onClose();
		} catch (error) {
			failed(error);
			setBusy(false);
		}
	};
	return (
		<Dialog title={title} onClose={onClose}>
			<form class="stack" onSubmit={submit}>
				{!slug && <label class="field"><span>{asking ? "Question" : "Title"}</span><input name="title" required autofocus /></label>}
				<label class="field"><span>{slug ? "Answer" : "Text, in Markdown"}</span><textarea name="content" required rows={8} autofocus={!!slug} /></label>
				{!slug && !asking && (
					<div class="row">
						<label class="field"><span>Kind</span><select name="kind">{["finding", "decision", "plan", "summary", "note"].map((kind) => <option key={kind}>{kind}</option>)}</select></label>
						<label class="field grow"><span>Tags, with commas</span><input name="tags" /></label>
					</div>
				)}
				<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit" disabled={busy}>{slug ? "Answer" : "Write"}</Button></div>
			</form>
		</Dialog>
	);
}

function NotePane({ slug, onChanged }: { slug: string; onChanged: () => void }) {
	const ws = currentWorkspace(), [answering, setAnswering] = useState(false);
	const note = useLoad(`${ws.name} ${slug}`, (signal) => ws.tool("read_note", { slug_or_title: slug }, signal) as Promise<Note>);
	const archive = (restore: boolean) => attempt(async () => {
		await ws.tool("archive_note", { slug, restore });
		done(restore ? "Brought the note back" : "Archived the note", () => ws.tool("archive_note", { slug, restore: !restore }).then(onChanged));
		onChanged();
		note.reload();
	});
	return (
		<section class="detail" aria-label="Note">
			<Show of={note}>
				{(one) => (
					<>
						<header class="file-head">
							{isNarrow.value && <a class="button quiet only-icon" href={href("notebook")} aria-label="Back to the notes"><Icon name="back" /></a>}
							<div class="head-text">
								<h2>{one.title}</h2>
								<p class="sub"><Badge tone={tones[one.kind]}>{one.kind}</Badge> by {one.author} · <span title={fullTime(one.updated)}>{ago(one.updated)}</span>{one.version > 1 && ` · version ${one.version}`}{one.archived && " · archived"}</p>
							</div>
							<div class="head-actions">
								{one.kind === "question" && !one.answered && may("answer_question") && <Button kind="main" onClick={() => setAnswering(true)}>Answer</Button>}
								{may("archive_note") && <Menu label="Note actions" items={[one.archived ? { icon: "undo", text: "Bring it back", run: () => void archive(true) } : { icon: "trash", text: "Archive", run: () => void archive(false) }]} />}
							</div>
						</header>
						<div class="file-body"><article class="paper">
							{one.answered_by && <p class="note-link"><Icon name="check" /> Answered in <a href={href("notebook", one.answered_by)}>{one.answered_by}</a></p>}
							{one.parent_slug && <p class="note-link"><Icon name="question" /> Answers <a href={href("notebook", one.parent_slug)}>{one.parent_slug}</a></p>}
							<Markdown text={one.content ?? ""} place={placeIn(ws, "")} />
							{one.tags.length > 0 && <p class="tags">{one.tags.map((tag) => <Badge key={tag}>#{tag}</Badge>)}</p>}
						</article></div>
					</>
				)}
			</Show>
			{answering && <NoteForm title="Answer the question" slug={slug} onDone={(made) => { onChanged(); go(href("notebook", made)); }} onClose={() => setAnswering(false)} />}
		</section>
	);
}

type Filter = "all" | "finding" | "decision" | "plan" | "question";

export function Notebook() {
	const ws = currentWorkspace(), slug = route.value.rest, [filter, setFilter] = useState<Filter>("all"), [form, setForm] = useState<"note" | "question" | null>(null);
	const list = useLoad(`${ws.name} ${filter}`, (signal) => ws.tool("list_notes", { limit: 500, ...(filter !== "all" && { kind: filter }) }, signal));
	useRefresh(list.reload);
	const notes = (list.data?.notes ?? []) as Note[], current = slug || (isNarrow.value ? "" : (notes[0]?.slug ?? ""));
	const add = may("note") && <><Button small icon="question" onClick={() => setForm("question")}>Ask</Button><Button small kind="main" icon="plus" onClick={() => setForm("note")}>Note</Button></>;
	return (
		<div class={filter === "all" && list.data && !notes.length && !slug ? "split is-empty" : "split"}>
			{(!isNarrow.value || !slug) && (
				<section class="split-list" aria-label="Notes">
					<Head title="Notebook" sub="What agents found, decided and asked" actions={notes.length > 0 && add} />
					<div class="filter"><Choice<Filter> label="Kind of note" value={filter} onChange={setFilter} options={[["all", "All"], ["finding", "Findings"], ["decision", "Decisions"], ["plan", "Plans"], ["question", "Questions"]]} /></div>
					{list.error && <Empty icon="alert" title="The notes could not be loaded" text={list.error.message} />}
					{list.loading && <div class="pad"><Skeleton /></div>}
					{list.data && !notes.length && <Empty icon="note" title="No notes here yet" text="Agents write down what they find, so that others need not find it again. You can too." action={add} />}
					{list.data && <ul class="scroll">
						{notes.map((note) => (
							<li key={note.slug}>
								<a class="change" href={href("notebook", note.slug)} aria-current={note.slug === current ? "true" : undefined}>
									<span class={`change-icon ${tones[note.kind] ?? ""}`}><Icon name={icons[note.kind] ?? "note"} /></span>
									<span class="change-main wrap"><strong>{note.title}</strong><span class="hint">{note.kind === "question" ? (note.answered ? "answered question" : "open question") : note.kind} by {note.author} · {ago(note.updated)}</span></span>
								</a>
							</li>
						))}
					</ul>}
				</section>
			)}
			{current ? <NotePane key={current} slug={current} onChanged={list.reload} /> : !isNarrow.value && notes.length > 0 && <section class="detail" aria-label="Note"><Empty icon="note" title="No note chosen" text="Choose one on the left." /></section>}
			{form && <NoteForm title={form === "question" ? "Ask a question" : "New note"} asking={form === "question"} onDone={(made) => { list.reload(); go(href("notebook", made)); }} onClose={() => setForm(null)} />}
		</div>
	);
}
