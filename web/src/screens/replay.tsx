// SPDX-License-Identifier: Apache-2.0
// A conversation again from one of its steps, in a fork, next to what it was before.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, iconOf } from "../icons.tsx";
import { currentWorkspace, failed, href, loadWorkspaces, stead } from "../state.ts";
import { Badge, Button } from "../ui.tsx";
import { count, plural, textOf } from "../format.ts";

interface Call {
	name: string;
	input?: unknown;
	output?: string;
	is_error?: boolean;
}
interface Step {
	text?: string;
	calls?: Call[];
}
interface Usage {
	input_tokens: number;
	output_tokens: number;
	cost_usd?: number;
}
interface Report {
	session: string;
	from: number;
	fork: string;
	model: string;
	steps: Array<{ step: number; same: boolean; before?: Step | null; after?: Step | null }>;
	files: string[];
	same: boolean;
	waiting?: Array<{ name: string }>;
	usage_before: Usage;
	usage_after: Usage;
}

const wordsOf = (text: string): string[] => text.split(/(?<=[\s\p{P}])|(?=[\s\p{P}])/u);

/** The text, with the words between its beginning and its end marked where those are the same as in the other text. */
function Marked({ text, other }: { text: string; other: string }) {
	const mine = wordsOf(text), theirs = wordsOf(other);
	let first = 0, last = 0;
	while (first < mine.length && first < theirs.length && mine[first] === theirs[first]) first++;
	while (last < mine.length - first && last < theirs.length - first && mine[mine.length - 1 - last] === theirs[theirs.length - 1 - last]) last++;
	const changed = mine.slice(first, mine.length - last).join("");
	return <>{mine.slice(0, first).join("")}{changed && <mark>{changed}</mark>}{mine.slice(mine.length - last).join("")}</>;
}

/** A part of one side, with what differs marked. Without a counterpart on the other side it is not compared. */
function Part({ title, text, other, bad }: { title: ComponentChildren; text: string; other: string | undefined; bad?: boolean }) {
	return (
		<div class={`replay-part${text === other ? "" : " differs"}`}>
			<p class="hint">{title}{bad && <Badge tone="red">error</Badge>}{text !== other && <Badge tone="amber">{other === undefined ? "only here" : "differs"}</Badge>}</p>
			<pre tabIndex={0}>{other === undefined ? text : <Marked text={text} other={other} />}</pre>
		</div>
	);
}

function Side({ title, step, other }: { title: string; step: Step | null | undefined; other: Step | null | undefined }) {
	const calls = step?.calls ?? [];
	return (
		<section class="stack" aria-label={title}>
			<h4>{title}</h4>
			{!step && <p class="hint">There is no such step.</p>}
			{step?.text && <Part title="Answer" text={step.text} other={other?.text} />}
			{calls.map((call, i) => {
				const theirs = other?.calls?.[i], isSameTool = theirs?.name === call.name;
				return (
					<div key={i} class="stack tight">
						<Part title={<>Calls <code>{call.name}</code></>} text={textOf(call.input ?? {})} other={isSameTool ? textOf(theirs?.input ?? {}) : undefined} />
						{call.output !== undefined && <Part title="Result" text={call.output} other={isSameTool ? theirs?.output : undefined} bad={call.is_error} />}
					</div>
				);
			})}
		</section>
	);
}

const money = (usage: Usage): string => (usage.cost_usd ? `$${usage.cost_usd.toFixed(4)}` : "–");

function Numbers({ before, after }: { before: Usage; after: Usage }) {
	const rows = [["Tokens in", count(before.input_tokens), count(after.input_tokens)], ["Tokens out", count(before.output_tokens), count(after.output_tokens)], ["Cost", money(before), money(after)]];
	return (
		<table class="plain-table replay-numbers">
			<thead><tr><th scope="col">Use</th><th scope="col" class="right">Before</th><th scope="col" class="right">After</th></tr></thead>
			<tbody>{rows.map(([name, a, b]) => <tr key={name}><th scope="row">{name}</th><td class="right">{a}</td><td class="right">{a === b || b === "–" ? b : <mark>{b}</mark>}</td></tr>)}</tbody>
		</table>
	);
}

function Result({ report, agent }: { report: Report; agent: string }) {
	const steps = report.steps.filter((step) => !step.same).length, files = report.files.length, head = useRef<HTMLHeadingElement>(null);
	const what = [steps && plural(steps, "step"), files && plural(files, "file")].filter(Boolean).join(" and ");
	useEffect(() => head.current?.focus(), [report]);
	return (
		<section class="stack" aria-label="Result of the replay">
			<h3 ref={head} tabIndex={-1} class={`replay-verdict ${report.same ? "green" : "amber"}`}><Icon name={report.same ? "check" : "alert"} /> {report.same ? "Nothing differs" : `${what} ${steps + files === 1 ? "differs" : "differ"}`}</h3>
			<p class="hint">
				{report.model === "recorded" ? "The recorded answers were given again" : <>Answered by <code>{report.model}</code></>}, from step {report.from} on. The new run is in the fork{" "}
				<a href={href("sessions", `${agent}/${report.session}`, {}, report.fork)}>{report.fork}</a>.
			</p>
			{report.waiting && <p class="replay-waits"><Icon name="key" /> It stopped at a call of <code>{report.waiting[0]?.name}</code>, which needs approval. The conversation in the fork asks for it.</p>}
			<Numbers before={report.usage_before} after={report.usage_after} />
			{report.files.length > 0 && (
				<section aria-label="Files that differ">
					<h3>Files that differ</h3>
					<ul class="replay-files">
						{report.files.map((path) => (
							<li key={path}>
								<Icon name={iconOf(path, "file")} /><span class="path">{path}</span>
								<a href={href("files", path)} aria-label={`${path} before`}>Before</a><a href={href("files", path, {}, report.fork)} aria-label={`${path} after`}>After</a>
							</li>
						))}
					</ul>
				</section>
			)}
			{report.steps.map(({ step, same, before, after }) => (
				<section key={step} class="replay-step" aria-label={`Step ${step}`}>
					<header><h3>Step {step}</h3><Badge tone={same ? "green" : "amber"}>{same ? "the same" : "different"}</Badge></header>
					{!same && <div class="sides"><Side title="Before" step={before} other={after} /><Side title="After" step={after} other={before} /></div>}
				</section>
			))}
		</section>
	);
}

/** Asks for what is changed, runs it, and shows both runs. The server ends a replay whose page is gone. */
export function Replay({ agent, session }: { agent: string; session: string }) {
	const ws = currentWorkspace(), [report, setReport] = useState<Report | null>(null), [running, setRunning] = useState<AbortController | null>(null);
	useEffect(() => () => running?.abort(), [running]);
	const run = async (given: FormData) => {
		const control = new AbortController(), text = (name: string) => String(given.get(name) ?? "").trim();
		const body = { ...(text("from") && { from: Number(text("from")) }), ...(text("model") && { model: text("model") }), ...(text("prompt") && { prompt: text("prompt") }) };
		setReport(null);
		setRunning(control);
		try {
			const result = await stead.json<Report>("replay_session", { path: { workspace: ws.name, session }, body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal: control.signal });
			setReport(result);
			await loadWorkspaces(); /* there is one more */
		} catch (error) {
			if (!control.signal.aborted) failed(error);
		}
		setRunning(null);
	};
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		if (!running) void run(new FormData(event.currentTarget as HTMLFormElement));
	};
	return (
		<div class="paper broad stack">
			<form class="card stack" aria-label="Replay" onSubmit={submit}>
				<p class="hint">Runs this conversation again in a fork of the workspace, as it was at that step, and compares. This workspace does not change.</p>
				<div class="replay-fields">
					<label class="field"><span>From step</span><input name="from" type="number" min={1} max={1_000_000} placeholder="1" inputMode="numeric" /></label>
					<label class="field"><span>Model</span><input name="model" placeholder="The recorded answers" autocomplete="off" spellcheck={false} aria-describedby="replay-model" /></label>
				</div>
				<p class="hint" id="replay-model">One that agent.yaml names, as <code>provider:model</code>. Without one the recorded answers are given again, or with another prompt the model of agent.yaml answers.</p>
				<details><summary>Another system prompt</summary><label class="field"><span class="visually-hidden">System prompt</span><textarea name="prompt" class="short" rows={4} /></label></details>
				<div class="row end">
					{running && <><span class="hint grow" role="status">Running again; this takes as long as a turn…</span><Button onClick={() => running.abort()}>Cancel</Button></>}
					<Button kind="main" type="submit" disabled={running !== null}>Run</Button>
				</div>
			</form>
			{report && <Result report={report} agent={agent} />}
		</div>
	);
}
