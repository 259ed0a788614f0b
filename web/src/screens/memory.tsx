// SPDX-License-Identifier: Apache-2.0
// Memory: what the agent remembers, where each fact comes from, and how far it is to be trusted.
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../icons.tsx";
import { currentWorkspace, done, may, route } from "../state.ts";
import { Ask, Badge, Button, Empty, Head, Show, useLoad, useRefresh } from "../ui.tsx";
import { ago, fullTime, plural } from "../format.ts";

interface Fact {
	id: string;
	text: string;
	trust: string;
	current?: boolean;
	path?: string;
	line?: number;
	user?: string;
	agent?: string;
	session?: string;
	source?: string;
	at?: string;
	until?: string;
	superseded_by?: string;
}

const tones: Record<string, string> = { person: "green", document: "blue", agent: "plain", outside: "amber" };
const meanings: Record<string, string> = { person: "A person said so", document: "From a document", agent: "An agent concluded it", outside: "From outside: not checked" };

export function Memory() {
	const ws = currentWorkspace(), asked = route.value.query.get("q") ?? "", [text, setText] = useState(asked), [all, setAll] = useState(false), [adding, setAdding] = useState(false), [forgetting, setForgetting] = useState<Fact | null>(null);
	const list = useLoad(`${ws.name} ${all}`, (signal) => ws.tool("memory_list", { all }, signal));
	useRefresh(list.reload);
	useEffect(() => setText(asked), [asked]);
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	const add = may("memory_save") && <Button kind="main" icon="plus" onClick={() => setAdding(true)}>Fact</Button>;
	return (
		<div class="screen">
			<Head title="Memory" sub="What the agent remembers, with the origin of every fact" actions={add} />
			<div class="search-bar">
				<label class="search-field"><Icon name="search" /><span class="visually-hidden">Filter facts</span><input type="search" placeholder="Filter facts" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
				<label class="check-label"><input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> Include facts that no longer apply</label>
			</div>
			<Show of={list}>
				{(data) => {
					const facts = (data.facts as Fact[]).filter((fact) => words.every((word) => `${fact.text} ${fact.source ?? ""} ${fact.agent ?? ""}`.toLowerCase().includes(word)));
					if (!data.facts.length) return <Empty icon="memory" title="Nothing remembered yet" text="Agents save what they should know next time. Add a fact yourself, as a whole sentence that can be understood without context." action={add} />;
					if (!facts.length) return <Empty icon="search" title="No fact has these words" text="Try fewer words, or include facts that no longer apply." />;
					return (
						<>
							<p class="hint found" role="status">{plural(facts.length, "fact")}</p>
							<ul class="list">
								{facts.map((fact) => (
									<li key={fact.id} class={fact.current === false ? "fact past" : "fact"}>
										<div class="fact-text"><p>{fact.text}</p>
											<p class="hint">
												<span title={meanings[fact.trust]}><Badge tone={tones[fact.trust]}>{fact.trust}</Badge></span>
												{fact.source && <span>from {fact.source}</span>}
												{(fact.agent ?? fact.user) && <span>saved by {fact.agent ?? fact.user}</span>}
												{fact.at && <span title={fullTime(fact.at)}>{ago(fact.at)}</span>}
												{fact.superseded_by && <span>replaced by {fact.superseded_by}</span>}
												{fact.path && <span class="path">{fact.path}{fact.line ? `:${fact.line}` : ""}</span>}
											</p></div>
										{may("memory_forget") && <Button small kind="quiet" icon="trash" label={`Forget: ${fact.text.slice(0, 60)}`} onClick={() => setForgetting(fact)} />}
									</li>
								))}
							</ul>
						</>
					);
				}}
			</Show>
			{adding && <Ask title="Remember a fact" label="Fact, as a whole sentence" action="Save" text="It is saved to MEMORY.md. Forget it from the list if it was wrong." onClose={() => setAdding(false)}
				onDone={async (fact) => { await ws.tool("memory_save", { content: `- ${fact}`, source: "the page" }); list.reload(); done("Saved the fact"); }} />}
			{forgetting && <Ask title="Forget this fact?" danger action="Forget" onClose={() => setForgetting(null)}
				text={<>“{forgetting.text}” will be erased from memory, history and the search index. This is the one action here that cannot be undone.</>}
				onDone={async () => { await ws.tool("memory_forget", { id: forgetting.id }); list.reload(); done("Forgot the fact"); }} />}
		</div>
	);
}
