// SPDX-License-Identifier: Apache-2.0
// What a search found: where it leads, and the passage with the words that matched.
import { href } from "../state.ts";

export interface Hit {
	path: string;
	area: string;
	file?: string;
	id?: string;
	title: string;
	kind?: string;
	author?: string;
	tags?: string[];
	time?: string;
	score: number;
	snippet: string;
}

/** What only lays out a Markdown text: rules and bars of tables, headings, boxes of lists, fences, targets of links. */
const layout = /\|?(?:\s*:?-{3,}:?\s*\|)+|(?:^|(?<=\s))(?:#{1,6}|>|- \[[ x]\]|```\w*)(?=\s|$)|`/g;
const plain = (text: string) => text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(layout, "").replace(/\s*\|(?:\s*\|)*\s*/g, " · ").replace(/^(…?) · | · (?=…?$)/g, "$1");

/** The words that matched are between ** and **. */
export function Snippet({ text }: { text: string }) {
	return <>{plain(text).split("**").map((part, i) => (i % 2 ? <mark key={i}>{part}</mark> : part))}</>;
}

export function hitHref(hit: Hit, query = ""): string {
	switch (hit.area) {
	case "files": return href("files", hit.file ?? hit.path.replace(/^files\//, ""), { q: query });
	case "notes": return href("notebook", hit.id ?? (hit.path.split("/").pop() ?? "").replace(/\.md$/, ""));
	case "memory": return href("memory", "", { q: query });
	case "sessions": {
		const parts = hit.path.split("/");
		return href("sessions", `${parts[1] ?? ""}/${(parts[3] ?? "").replace(/\.log\.jsonl.*$/, "")}`);
	}
	default: return href("search", "", { q: query });
	}
}
