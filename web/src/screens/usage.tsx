// SPDX-License-Identifier: Apache-2.0
// The tokens that agents used, by day and by model.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { currentWorkspace, href, isNarrow, stead } from "../state.ts";
import { Choice, Empty, Head, Show, useLoad } from "../ui.tsx";
import { compact, count, shortDay } from "../format.ts";

interface Sum {
	input_tokens?: number;
	output_tokens?: number;
	total_tokens?: number;
	llm_calls?: number;
}
interface Usage extends Sum {
	by_model: Record<string, Sum>;
	by_session: Record<string, Sum>;
	by_day: Record<string, Sum>;
}

const keys = ["input_tokens", "output_tokens", "total_tokens", "llm_calls"] as const;

function add(into: Record<string, Sum>, from: Record<string, Sum>, prefix = ""): void {
	for (const [name, sum] of Object.entries(from)) {
		const old = (into[prefix + name] ??= {});
		for (const key of keys) old[key] = (old[key] ?? 0) + (sum[key] ?? 0);
	}
}

const HEIGHT = 200, LEFT = 48;


/** Bars of two parts for each day. */
function Bars({ days }: { days: Array<[string, Sum]> }) {
	const scroll = useRef<HTMLDivElement>(null);
	/* What does not fit is earlier: the newest days are shown first. */
	useLayoutEffect(() => scroll.current?.scrollTo({ left: scroll.current.scrollWidth }), [days.length]);
	const room = isNarrow.value ? innerWidth - 32 - LEFT : 960, BAR = Math.max(isNarrow.value ? 14 : 28, Math.min(72, Math.floor(room / days.length)));
	const gap = Math.min(8, BAR / 4), every = Math.ceil(46 / BAR);
	const most = Math.max(1, ...days.map(([, sum]) => (sum.input_tokens ?? 0) + (sum.output_tokens ?? 0)));
	const step = 10 ** Math.floor(Math.log10(most)), top = Math.ceil(most / step) * step, width = LEFT + days.length * BAR, y = (value: number) => HEIGHT - (value / top) * (HEIGHT - 8);
	const lines = [0, 0.25, 0.5, 0.75, 1].map((part) => top * part);
	return (
		<div class="table-scroll" ref={scroll} tabIndex={0} role="region" aria-label="Plot">
			<svg class="bars" viewBox={`0 0 ${width} ${HEIGHT + 24}`} width={width} height={HEIGHT + 24} role="img" aria-label={`Tokens by day, ${days.length} days; at most ${count(most)} on one day`}>
				{lines.map((value) => <g key={value}><line x1={LEFT} x2={width} y1={y(value)} y2={y(value)} class="grid" /><text x={LEFT - 8} y={y(value) + 4} text-anchor="end">{compact(value)}</text></g>)}
				{days.map(([day, sum], i) => {
					const input = sum.input_tokens ?? 0, output = sum.output_tokens ?? 0, x = LEFT + i * BAR + gap / 2;
					return (
						<g key={day}>
							<title>{`${day}: ${count(input)} in, ${count(output)} out`}</title>
							<rect x={x} width={BAR - gap} y={y(input)} height={HEIGHT - y(input)} class="bar-in" />
							<rect x={x} width={BAR - gap} y={y(input + output)} height={y(input) - y(input + output)} class="bar-out" />
							{(days.length - 1 - i) % every === 0 && (every > 1 && i === days.length - 1
								? <text x={width} y={HEIGHT + 16} text-anchor="end">{shortDay(day)}</text>
								: <text x={x + (BAR - gap) / 2} y={HEIGHT + 16} text-anchor="middle">{shortDay(day)}</text>)}
						</g>
					);
				})}
			</svg>
		</div>
	);
}

function Table({ title, rows, link }: { title: string; rows: Array<[string, Sum]>; link?: (name: string) => string }) {
	return (
		<section>
			<h3>{title}</h3>
			<div class="table-scroll" tabIndex={0} role="region" aria-label={title}>
				<table class="plain-table">
					<thead><tr><th>Name</th><th class="right">In</th><th class="right">Out</th><th class="right">Calls</th></tr></thead>
					<tbody>{rows.sort((a, b) => (b[1].total_tokens ?? 0) - (a[1].total_tokens ?? 0)).slice(0, 50).map(([name, sum]) => <tr key={name}><td>{link ? <a href={link(name)}>{name}</a> : name}</td><td class="right">{count(sum.input_tokens ?? 0)}</td><td class="right">{count(sum.output_tokens ?? 0)}</td><td class="right">{count(sum.llm_calls ?? 0)}</td></tr>)}</tbody>
				</table>
			</div>
		</section>
	);
}

type Span = "7" | "30" | "365";

export function UsageScreen() {
	const ws = currentWorkspace(), [span, setSpan] = useState<Span>("30");
	const load = useLoad(`usage ${ws.name} ${span}`, async (signal) => {
		const since = new Date(Date.now() - (Number(span) - 1) * 86_400_000).toISOString().slice(0, 10);
		const { sessions } = await ws.tool("session_list", { limit: 1000 }, signal);
		const agents = [...new Set(sessions.map((one) => one.agent))];
		const all = await Promise.all(agents.map(async (agent) => [agent, await stead.json<Usage>("usage", { path: { workspace: ws.name }, query: { agent, since }, signal })] as const));
		const total: Record<string, Sum> = {}, models: Record<string, Sum> = {}, days: Record<string, Sum> = {}, byAgent: Record<string, Sum> = {}, bySession: Record<string, Sum> = {};
		for (const [agent, usage] of all) {
			add(total, { all: usage });
			add(byAgent, { [agent]: usage });
			add(models, usage.by_model);
			add(days, usage.by_day);
			add(bySession, usage.by_session, `${agent}/`);
		}
		return { total: total.all ?? {}, models, days, byAgent, bySession };
	});
	return (
		<div class="screen">
			<Head title="Usage" sub="The model tokens that agents used" actions={<Choice<Span> label="Time" value={span} onChange={setSpan} options={[["7", "7 days"], ["30", "30 days"], ["365", "A year"]]} />} />
			<Show of={load}>
				{({ total, models, days, byAgent, bySession }) => !total.llm_calls ? (
					<Empty icon="chart" title="No usage recorded" text={<>Runtimes report the usage of each model call with <code>session_append</code>; <code>stead up</code> does so automatically.</>}
						action={<a class="button" href={href("settings")}>Connect an agent</a>} />
				) : (
					<>
						<dl class="numbers">
							<div><dt>Tokens in</dt><dd>{compact(total.input_tokens ?? 0)}</dd></div>
							<div><dt>Tokens out</dt><dd>{compact(total.output_tokens ?? 0)}</dd></div>
							<div><dt>Calls</dt><dd>{compact(total.llm_calls ?? 0)}</dd></div>
							<div><dt>Days with use</dt><dd>{Object.keys(days).length}</dd></div>
						</dl>
						<h3>By day <span class="legend"><i class="in" /> in <i class="out" /> out</span></h3>
						<Bars days={Object.entries(days).sort(([a], [b]) => (a < b ? -1 : 1))} />
						<div class="tables">
							<Table title="By agent" rows={Object.entries(byAgent)} />
							<Table title="By model" rows={Object.entries(models)} />
							<Table title="By session" rows={Object.entries(bySession)} link={(name) => href("sessions", name)} />
						</div>
					</>
				)}
			</Show>
		</div>
	);
}
