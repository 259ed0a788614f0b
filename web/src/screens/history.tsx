// SPDX-License-Identifier: Apache-2.0
// The timeline: every change, what it did, and the way back.
import { useEffect, useState } from "preact/hooks";
import { Diff, parseDiff } from "../diff.tsx";
import { Icon, type IconName } from "../icons.tsx";
import { attempt, currentWorkspace, done, go, href, isNarrow, may, route, undoOf, type Change, type Workspace } from "../state.ts";
import { Ask, Badge, Button, Empty, Head, Show, Skeleton, useLoad, useReloadOnChange } from "../ui.tsx";
import { actorName, baseName, clock, day, fullTime, parentOf, size } from "../format.ts";

const PAGE = 100;

function describe(change: Change): { icon: IconName; tone: string; word: string } {
	if (change.actor.call?.startsWith("undo:")) return { icon: "undo", tone: "plain", word: "undone" };
	if (change.operation === "move" || change.to || change.from) return { icon: "move", tone: "blue", word: "moved" };
	if (!change.after) return { icon: "trash", tone: "red", word: "deleted" };
	if (!change.before) return { icon: "plus", tone: "green", word: "added" };
	return { icon: "edit", tone: "amber", word: change.operation === "outside" ? "changed outside" : "changed" };
}

async function restoreTo(ws: Workspace, path: string, revision: number, text: string): Promise<void> {
	await ws.tool("restore", { path: path || "/", revision: String(revision) });
	done(text, await undoOf(ws, path));
}

function Detail({ change, onDone }: { change: Change; onDone: () => void }) {
	const ws = currentWorkspace(), { path, revision } = change, about = describe(change), writable = may("restore");
	const diff = useLoad(`${ws.name} ${revision} ${path}`, (signal) => ws.tool("diff", { path, from: String(revision - 1), to: String(revision) }, signal));
	const run = (action: () => Promise<void>) => void attempt(async () => {
		await action();
		onDone();
	});
	const undoCall = () => run(async () => {
		const call = change.actor.call;
		if (!call) throw new Error("this change has no call that could be undone; restore the version before it instead");
		await ws.tool("undo", { call });
		done(`Undid the change of ${baseName(path)}`, async () => ws.tool("restore", { path, revision: String(revision) }));
	});
	return (
		<section class="detail" aria-label="Change">
			<header class="file-head">
				{isNarrow.value && <Button kind="quiet" icon="back" label="Back to the list" onClick={() => go(href("history", route.value.rest))} />}
				<div class="head-text">
					<h2>{parentOf(path) && <span class="path">{parentOf(path)}/</span>}{baseName(path)}</h2>
					<p class="sub">{about.word} by {actorName(change.actor)} · {fullTime(change.time)} · revision {revision}</p>
				</div>
				<div class="head-actions">
					{writable && change.after && <Button icon="history" onClick={() => run(() => restoreTo(ws, path, revision, `Restored ${baseName(path)} as of revision ${revision}`))} title="Return the file to its state right after this change">Restore this version</Button>}
					{writable && !change.after && <Button icon="history" kind="main" onClick={() => run(() => restoreTo(ws, path, revision - 1, `Brought back ${baseName(path)}`))}>Bring it back</Button>}
					{writable && change.actor.call && <Button icon="undo" onClick={undoCall} title="Undo everything that this call did">Undo this change</Button>}
					{change.after && <a class="button" href={href("files", path)}><span>Open</span></a>}
				</div>
			</header>
			<div class="file-body">
				<Show of={diff}>
					{(data) => data.files.length ? (
						<>
							{data.files.map((file) => {
								const one = file as { path: string; diff?: string; change?: string };
								const { added, removed } = parseDiff(one.diff ?? "");
								return (
									<div key={one.path}>
										<p class="diff-head"><Badge tone="green">+{added}</Badge> <Badge tone="red">−{removed}</Badge> {change.before && change.after && <span class="hint">{size(change.before.size)} → {size(change.after.size)}</span>}</p>
										{one.diff ? <Diff text={one.diff} label={`Changes of ${one.path}`} /> : <p class="hint pad">The contents cannot be compared: one of them is not text.</p>}
									</div>
								);
							})}
						</>
					) : <p class="hint pad">This change left the contents as they were.</p>}
				</Show>
			</div>
		</section>
	);
}

export function History() {
	const ws = currentWorkspace(), path = route.value.rest, chosen = Number(route.value.query.get("at") ?? 0);
	const [limit, setLimit] = useState(PAGE), [naming, setNaming] = useState(false);
	const list = useLoad(`${ws.name}/${path} ${limit}`, (signal) => ws.tool("history", { path: path || "/", limit }, signal));
	const marks = useLoad(`checkpoints ${ws.name} ${may("checkpoint")}`, async (signal) => (may("checkpoint") ? ((await ws.tool("checkpoint", {}, signal)).checkpoints ?? []) : []));
	const [kept, setKept] = useState(list.data);
	useEffect(() => {
		if (list.data) setKept(list.data);
	}, [list.data]);
	useEffect(() => setKept(undefined), [ws.name, path]);
	useReloadOnChange(list.reload, path);
	const revisions = (kept?.revisions ?? []) as unknown as Change[];
	const current = revisions.find((one) => one.revision === chosen) ?? (isNarrow.value ? undefined : revisions[0]);
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
		if (!step || !current) return;
		const next = revisions[revisions.indexOf(current) + step];
		if (!next) return;
		event.preventDefault();
		go(href("history", path, { at: next.revision }));
		(event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-revision="${next.revision}"]`)?.focus();
	};
	let lastDay = "";
	return (
		<div class={`split${current && chosen ? " has-detail" : ""}${kept && !revisions.length ? " is-empty" : ""}`}>
			{(!isNarrow.value || !chosen) && (
				<section class="split-list" aria-label="Changes">
					<Head title="History" sub={path ? <>of {path} · <a href={href("history")}>show everything</a></> : "Every change, whoever made it"}
						actions={may("checkpoint") && <Button icon="flag" small onClick={() => setNaming(true)}>Checkpoint</Button>} />
					{list.error && !kept && <Empty icon="alert" title="The history could not be loaded" text={list.error.message} />}
					{!kept && !list.error && <div class="pad"><Skeleton /></div>}
					{kept && !revisions.length && <Empty icon="history" title="No changes yet" text="Everything that agents and people do with files is listed here, and can be undone." action={<a class="button" href={href("files")}>Go to the files</a>} />}
					{kept && <div class="scroll" onKeyDown={onKeyDown}>
						<ol class="timeline">
							{revisions.map((one, i) => {
								const about = describe(one), head = day(one.time) !== lastDay ? (lastDay = day(one.time)) : null;
								const mark = (marks.data ?? []).find((m) => m.revision >= one.revision && m.revision < (revisions[i - 1]?.revision ?? Infinity));
								return [
									head && <li key={head} class="day">{head}</li>,
									<li key={one.revision}>
										<a class="change" data-revision={one.revision} href={href("history", path, { at: one.revision })} aria-current={one === current ? "true" : undefined}>
											<span class={`change-icon ${about.tone}`}><Icon name={about.icon} /></span>
											<span class="change-main"><strong>{baseName(one.path)}</strong><span class="hint">{about.word} by {actorName(one.actor)}{parentOf(one.path) && ` in ${parentOf(one.path)}`}</span></span>
											{mark && <Badge tone="blue" icon="flag">{mark.checkpoint}</Badge>}
											<time class="hint" title={fullTime(one.time)}>{clock(one.time)}</time>
										</a>
									</li>,
								];
							})}
						</ol>
						{kept.more && <div class="row center pad"><Button onClick={() => setLimit(limit + 4 * PAGE)}>Show older changes</Button></div>}
					</div>}
				</section>
			)}
			{current ? <Detail key={current.revision} change={current} onDone={list.reload} /> : !isNarrow.value && revisions.length > 0 && <section class="detail" aria-label="Change"><Empty icon="history" title="Nothing chosen" text="Choose a change to see what it did." /></section>}
			{naming && (
				<Ask title="Name the current state" label="Checkpoint" text="A word, such as before-refactor. History and undo accept it instead of a revision." action="Save" onClose={() => setNaming(false)}
					onDone={async (name) => { await ws.tool("checkpoint", { name }); marks.reload(); done(`Made the checkpoint ${name}`); }} />
			)}
		</div>
	);
}
