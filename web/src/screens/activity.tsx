// SPDX-License-Identifier: Apache-2.0
// What the agent does by itself: what runs, what is next, what happened, and what it cost today.
import type { ComponentChildren } from "preact";
import { currentWorkspace, href, stead } from "../state.ts";
import { Empty, Head, Show, useLoad, useRefresh, useReloadOnChange } from "../ui.tsx";
import { ago, compact, count, fullTime } from "../format.ts";

interface Run {
	timestamp: string;
	schedule: string;
	outcome: string;
	reason?: string;
	error?: string;
	undelivered?: string;
	session?: string;
	duration_ms?: number;
	count?: number;
}
interface Status {
	running: Array<{ schedule: string; due: string; since: string; by: string }>;
	next: Array<{ schedule: string; at: string; local: string }>;
	recent: Run[];
	conversations: number;
	today: { llm_calls: number; total_tokens: number; cost_usd?: number };
	problems?: Array<{ path: string; problem: string }>;
}

const outcomes: Record<string, string> = { ran: "ran", skipped: "skipped", heartbeat_ok: "nothing to report", error: "failed", missed: "missed" };

function Table({ title, heads, rows, none }: { title: string; heads: string[]; rows: ComponentChildren[][]; none: string }) {
	return (
		<section>
			<h3>{title}</h3>
			{rows.length === 0 ? <p class="hint">{none}</p> : (
				<div class="table-scroll" tabIndex={0} role="region" aria-label={title}>
					<table class="plain-table">
						<thead><tr>{heads.map((head) => <th key={head}>{head}</th>)}</tr></thead>
						<tbody>{rows.map((cells, i) => <tr key={i}>{cells.map((cell, k) => <td key={k}>{cell}</td>)}</tr>)}</tbody>
					</table>
				</div>
			)}
		</section>
	);
}

const When = ({ time }: { time: string }) => <time dateTime={time} title={fullTime(time)}>{ago(time)}</time>;

/** Why it ended so, and where the conversation of the run is. */
function About({ run }: { run: Run }) {
	const why = run.error ?? run.reason ?? run.undelivered ?? (run.outcome === "missed" && run.count ? count(run.count) : undefined);
	return <>{why && <span class={run.error ? "error-text" : undefined}>{why} </span>}{run.session && <a href={href("sessions", `default/${run.session}`)}>conversation</a>}</>;
}

export function Activity() {
	const ws = currentWorkspace();
	const load = useLoad(`activity ${ws.name}`, (signal) => stead.json<Status>("status", { path: { workspace: ws.name }, signal }));
	useReloadOnChange(load.reload);
	useRefresh(load.reload, 15_000);
	return (
		<div class="screen">
			<Head title="Activity" sub="What the agent does on its own, while stead up or stead serve --agents is running" />
			<Show of={load}>
				{({ running, next, recent, conversations, today, problems = [] }) => !running.length && !next.length && !recent.length && !problems.length ? (
					<Empty icon="pulse" title="Nothing runs on its own here" text={<>A file in <code>crons/</code> or <code>heartbeat</code> in <code>agent.yaml</code> gives the agent work at set times.</>} />
				) : (
					<div class="activity stack">
						<dl class="numbers">
							<div><dt>Running</dt><dd>{count(running.length)}</dd></div>
							<div><dt>Conversations</dt><dd>{count(conversations)}</dd></div>
							<div><dt>Model calls today</dt><dd>{compact(today.llm_calls)}</dd></div>
							<div><dt>Tokens today</dt><dd>{compact(today.total_tokens)}</dd></div>
							{today.cost_usd !== undefined && <div><dt>Cost today</dt><dd>{`$${today.cost_usd.toFixed(2)}`}</dd></div>}
						</dl>
						{problems.length > 0 && <Table title="Files left out" heads={["File", "Problem"]} rows={problems.map((one) => [one.path, <span class="error-text">{one.problem}</span>])} none="" />}
						{running.length > 0 && <Table title="Running now" heads={["Schedule", "Since", "By"]} rows={running.map((one) => [one.schedule, <When time={one.since} />, one.by])} none="" />}
						<Table title="Next" heads={["Schedule", "When", "Time"]} rows={next.map((one) => [one.schedule, <When time={one.at} />, one.local.slice(0, 16).replace("T", " ")])} none="Nothing is scheduled." />
						<Table title="Recent" heads={["Schedule", "When", "Outcome", "About it"]} none="Nothing has run yet."
							rows={recent.map((one) => [one.schedule, <When time={one.timestamp} />, outcomes[one.outcome] ?? one.outcome, <About run={one} />])} />
					</div>
				)}
			</Show>
		</div>
	);
}
