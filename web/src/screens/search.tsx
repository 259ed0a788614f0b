// SPDX-License-Identifier: Apache-2.0
// Search over everything, as you type.
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../icons.tsx";
import { currentWorkspace, replaceQuery, route } from "../state.ts";
import { Badge, Choice, Empty, Head, Skeleton, useDebounced, useLoad } from "../ui.tsx";
import { ago, plural } from "../format.ts";
import { hitHref, Snippet, type Hit } from "./hits.tsx";

type Area = "all" | "files" | "notes" | "memory" | "sessions" | "knowledge";
const areas: Array<[Area, string]> = [["all", "Everything"], ["files", "Files"], ["notes", "Notes"], ["memory", "Memory"], ["sessions", "Sessions"], ["knowledge", "Knowledge"]];

export function Search() {
	const ws = currentWorkspace();
	const [text, setText] = useState(route.value.query.get("q") ?? "");
	const [area, setArea] = useState<Area>((route.value.query.get("area") as Area | null) ?? "all");
	const late = useDebounced(text.trim(), 120);
	const found = useLoad(`${ws.name}\n${area}\n${late}`, async (signal) =>
		late ? ws.tool("search", { query: late, area: [area], limit: 50 }, signal) : null);
	const [kept, setKept] = useState(found.data);
	useEffect(() => {
		if (found.data !== undefined) setKept(found.data);
	}, [found.data]);
	useEffect(() => replaceQuery({ q: late, area: area === "all" ? undefined : area }), [late, area]);
	const hits = (kept?.hits ?? []) as Hit[];
	return (
		<div class="screen">
			<Head title="Search" sub="Files, notes, memory, conversations and knowledge, in any language and despite misspellings" />
			<div class="search-bar">
				<label class="search-field"><Icon name="search" /><span class="visually-hidden">Search for</span>
					<input type="search" autofocus value={text} placeholder='Words, a "quoted phrase", or -without' onInput={(event) => setText(event.currentTarget.value)} /></label>
				<Choice label="Where to search" value={area} options={areas} onChange={setArea} />
			</div>
			{!late && <Empty icon="search" title="Search everything in this workspace" text="Results appear as you type. Misspelled words and other endings are found too." />}
			{late && !kept && !found.error && <Skeleton slow="The first search reads all files in the workspace. Later ones are fast." />}
			{found.error && <Empty icon="alert" title="The search failed" text={found.error.message} />}
			{late && kept && !found.error && (
				hits.length ? (
					<>
						<p class="hint found" role="status">{plural(kept.total, "passage")}</p>
						<ul class="hits">
							{hits.map((hit, i) => (
								<li key={i}>
									<a class="hit" href={hitHref(hit, late)}>
										<span class="hit-title"><strong>{hit.title || hit.path}</strong><Badge tone={hit.area}>{hit.area}</Badge>{hit.author && <span class="hint">{hit.author}</span>}{hit.time && <span class="hint">{ago(hit.time)}</span>}</span>
										<span class="hit-text"><Snippet text={hit.snippet} /></span>
										<span class="path">{hit.path}</span>
									</a>
								</li>
							))}
						</ul>
					</>
				) : <Empty icon="search" title="Nothing found" text="Try other words, or search everything instead of one place." />
			)}
		</div>
	);
}
