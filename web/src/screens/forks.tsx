// SPDX-License-Identifier: Apache-2.0
// Forks: try something in a copy, and merge it back. A conflict is shown with both sides, and settled part by part.
import { useState } from "preact/hooks";
import { parseConflict, type Part } from "../diff.tsx";
import { Icon, iconOf } from "../icons.tsx";
import { attempt, currentWorkspace, done, href, loadWorkspaces, may, stead } from "../state.ts";
import { Ask, Badge, Button, Empty, Head, Show, useLoad } from "../ui.tsx";
import { plural } from "../format.ts";

interface Conflict {
	path: string;
	why: string;
	text?: string;
}
type Side = "ours" | "theirs" | "both";

/** The text with a choice made for each conflict; null: some are open. */
function resolved(parts: Part[], chosen: Array<Side | undefined>): string | null {
	let text = "", at = 0;
	for (const part of parts) {
		if ("same" in part) {
			text += part.same;
			continue;
		}
		const side = chosen[at++];
		if (!side) return null;
		text += side === "both" ? part.ours + part.theirs : part[side];
	}
	return text;
}

function ConflictView({ conflict, fork, onSettled }: { conflict: Conflict; fork: string; onSettled: (text: string) => Promise<void> }) {
	const ws = currentWorkspace(), parts = parseConflict(conflict.text ?? "");
	const [chosen, setChosen] = useState<Array<Side | undefined>>([]);
	const text = resolved(parts, chosen), choose = (at: number, side: Side) => setChosen((old) => Object.assign([...old], { [at]: side }));
	let number = -1;
	return (
		<section class="conflict" aria-label={`Conflict in ${conflict.path}`}>
			<header><Icon name="alert" /><strong>{conflict.path}</strong><span class="hint">{conflict.why}</span></header>
			{conflict.text === undefined ? <p class="hint pad">This file is not text, so you can only take one side's whole file.</p> : (
				<>
					<div class="conflict-heads"><span>{ws.name}</span><span>{fork}</span></div>
					{parts.map((part, i) => {
						if ("same" in part) return <pre key={i} class="conflict-same" tabIndex={0}>{part.same.split("\n").slice(0, 3).join("\n") + (part.same.split("\n").length > 7 ? "\n⋯\n" : "\n") + part.same.split("\n").slice(3).slice(-4).join("\n")}</pre>;
						const at = ++number;
						return (
							<div key={i} class="conflict-part">
								<div class="sides">
									<pre tabIndex={0} aria-label={`In ${ws.name}`} class={chosen[at] === "ours" || chosen[at] === "both" ? "taken" : ""}>{part.ours || "(removed)"}</pre>
									<pre tabIndex={0} aria-label={`In ${fork}`} class={chosen[at] === "theirs" || chosen[at] === "both" ? "taken" : ""}>{part.theirs || "(removed)"}</pre>
								</div>
								<div class="row" role="group" aria-label="Which side to keep">{(["ours", "theirs", "both"] as const).map((side) => <Button key={side} small pressed={chosen[at] === side} kind={chosen[at] === side ? "main" : "plain"} onClick={() => choose(at, side)}>{`Keep ${side === "both" ? "both" : side === "ours" ? ws.name : fork}`}</Button>)}</div>
							</div>
						);
					})}
					<div class="row end"><Button kind="main" disabled={text === null} onClick={() => text !== null && void attempt(() => onSettled(text))}>Use this</Button></div>
				</>
			)}
		</section>
	);
}

function ForkView({ fork, onChanged }: { fork: string; onChanged: () => void }) {
	const ws = currentWorkspace(), writable = may("merge");
	const plan = useLoad(`merge ${ws.name} ${fork}`, async (signal) => (await ws.call("merge", { fork, dry_run: true }, signal)).result as { merged: Array<{ path: string; how: string }>; conflicts: Conflict[] });
	const merge = (options: { prefer?: "ours" | "theirs"; partial?: boolean }, text: string) => void attempt(async () => {
		const result = await ws.tool("merge", { fork, ...options });
		done(text, result.call ? () => ws.tool("undo", { call: result.call as string }).then(plan.reload) : undefined);
		plan.reload();
		onChanged();
	});
	const settle = (conflict: Conflict, others: number) => async (text: string) => {
		await ws.write(conflict.path, text);
		if (others === 0) merge({ prefer: "ours" }, `Merged ${fork}`);
		else {
			done(`Settled ${conflict.path}`);
			plan.reload();
		}
	};
	return (
		<section class="card fork">
			<header class="row"><Icon name="fork" /><h2>{fork}</h2><span class="spring" /><a class="button small" href={href("files", "", {}, fork)}>Open the fork</a></header>
			<Show of={plan} lines={3}>
				{({ merged, conflicts }) => !merged.length && !conflicts.length ? <p class="hint">Everything in it is already merged.</p> : (
					<>
						{merged.length > 0 && <ul class="fork-files">{merged.map((one) => <li key={one.path}><Icon name={iconOf(one.path, "file")} /><span class="path">{one.path}</span><Badge tone={one.how === "removed" ? "red" : "green"}>{one.how === "taken" ? "from the fork" : one.how}</Badge></li>)}</ul>}
						{conflicts.map((one) => <ConflictView key={one.path} conflict={one} fork={fork} onSettled={settle(one, conflicts.length - 1)} />)}
						{writable && (
							<div class="row end">
								{conflicts.length > 0 && merged.length > 0 && <Button onClick={() => merge({ partial: true }, `Merged ${plural(merged.length, "file")} of ${fork}`)}>Merge the rest</Button>}
								{conflicts.length > 0 && <Button onClick={() => merge({ prefer: "theirs" }, `Merged ${fork}, with its side of the conflicts`)}>Take the fork’s files</Button>}
								{conflicts.length === 0 && <Button kind="main" onClick={() => merge({}, `Merged ${fork}`)}>{`Merge ${plural(merged.length, "file")}`}</Button>}
							</div>
						)}
					</>
				)}
			</Show>
		</section>
	);
}

export function Forks() {
	const ws = currentWorkspace(), [asking, setAsking] = useState(false);
	const list = useLoad(`forks ${ws.name}`, async () => stead.workspaces({ forks: true }));
	const add = may("fork") && <Button kind="main" icon="fork" onClick={() => setAsking(true)}>New fork</Button>;
	return (
		<div class="screen">
			<Head title="Forks" sub="Try something in a copy that costs nothing, and merge what turned out well" actions={add} />
			<Show of={list}>
				{(all) => {
					const own = all.find((one) => one.name === ws.name), forks = all.filter((one) => one.fork_of === ws.name);
					return (
						<>
							{own?.fork_of && <p class="note-link"><Icon name="fork" /> This is a fork of <a href={href("forks", "", {}, own.fork_of)}>{own.fork_of}</a>, made at revision {own.fork_revision}. Merge it there.</p>}
							{!forks.length && <Empty icon="fork" title="No forks of this workspace" text="A fork starts with everything that is here. An agent can work in it, and you decide what comes back." action={add} />}
							<div class="stack">{forks.map((one) => <ForkView key={one.name} fork={one.name} onChanged={() => {}} />)}</div>
						</>
					);
				}}
			</Show>
			{asking && <Ask title="New fork" label="Name" value={`${ws.name}-`} text="The fork is a workspace. Its name has 2 to 64 lower-case letters, digits, hyphens and underscores." action="Fork" onClose={() => setAsking(false)}
				onDone={async (name) => { await ws.tool("fork", { name }); await loadWorkspaces(); list.reload(); done(`Made the fork ${name}`); }} />}
		</div>
	);
}
