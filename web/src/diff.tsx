// SPDX-License-Identifier: Apache-2.0
// Differences: a unified diff as lines with numbers, and a conflict as two sides.

interface Line {
	kind: "same" | "add" | "del" | "hunk";
	old?: number;
	new?: number;
	text: string;
}

const LINES_MAX = 3000;

export function parseDiff(text: string): { lines: Line[]; added: number; removed: number; more: boolean } {
	const lines: Line[] = [];
	let before = 0, after = 0, added = 0, removed = 0, inHunk = false;
	for (const line of text.replace(/\n$/, "").split("\n")) {
		const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
		if (hunk) {
			before = Number(hunk[1]);
			after = Number(hunk[2]);
			inHunk = true;
			if (lines.length) lines.push({ kind: "hunk", text: (hunk[3] ?? "").trim() });
		} else if (!inHunk || line.startsWith("\\")) {
			continue;
		} else if (line.startsWith("+")) {
			added++;
			lines.push({ kind: "add", new: after++, text: line.slice(1) });
		} else if (line.startsWith("-")) {
			removed++;
			lines.push({ kind: "del", old: before++, text: line.slice(1) });
		} else lines.push({ kind: "same", old: before++, new: after++, text: line.slice(1) });
	}
	return { lines: lines.slice(0, LINES_MAX), added, removed, more: lines.length > LINES_MAX };
}

const words = { add: "added", del: "removed", same: "", hunk: "" };

export function Diff({ text, label }: { text: string; label: string }) {
	const { lines, more } = parseDiff(text);
	if (!lines.length) return <p class="hint pad">The text did not change.</p>;
	return (
		<div class="diff" tabIndex={0} role="region" aria-label={label}>
			<table>
				<tbody>
					{lines.map((line, i) => (
						<tr key={i} class={line.kind}>
							<td class="num">{line.old ?? ""}</td>
							<td class="num">{line.new ?? ""}</td>
							<td class="text">{words[line.kind] && <span class="visually-hidden">{words[line.kind]}: </span>}<span class="sign" aria-hidden="true">{line.kind === "add" ? "+" : line.kind === "del" ? "−" : " "}</span>{line.kind === "hunk" ? "⋯ " + line.text : line.text}</td>
						</tr>
					))}
				</tbody>
			</table>
			{more && <p class="hint pad">Only the first {LINES_MAX} lines are shown.</p>}
		</div>
	);
}

export type Part = { same: string } | { ours: string; base: string; theirs: string };

/** A text with conflict markers, as parts. */
export function parseConflict(text: string): Part[] {
	const parts: Part[] = [];
	let same = "", side: "same" | "ours" | "base" | "theirs" = "same", open = { ours: "", base: "", theirs: "" };
	for (const line of text.split(/(?<=\n)/)) {
		if (side === "same" && line.startsWith("<<<<<<< ")) {
			if (same) parts.push({ same });
			same = "";
			open = { ours: "", base: "", theirs: "" };
			side = "ours";
		} else if (side === "ours" && line.startsWith("||||||| ")) side = "base";
		else if ((side === "ours" || side === "base") && line.startsWith("=======")) side = "theirs";
		else if (side === "theirs" && line.startsWith(">>>>>>> ")) {
			parts.push(open);
			side = "same";
		} else if (side === "same") same += line;
		else open[side] += line;
	}
	if (same) parts.push({ same });
	return parts;
}
