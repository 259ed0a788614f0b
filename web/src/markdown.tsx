// SPDX-License-Identifier: Apache-2.0
// Markdown as elements. What people and agents wrote never becomes HTML text: a tag in it is shown as it is. It covers
// what notes are written in: headings, lists and check boxes, tables, quotes, code, links, images, emphasis.
import { Fragment, type ComponentChildren, type VNode } from "preact";

export interface MarkdownPlace {
	/** Where a relative link leads; null: nowhere. */
	link: (target: string) => string | null;
	/** The element for a picture of the workspace. */
	image: (target: string, text: string) => ComponentChildren;
}

const DEPTH_MAX = 12;
/** A longer paragraph is shown as it is: the pattern below would take too long for it. */
const PARAGRAPH_MAX = 20_000;

/* --- inside a line --- */

const safeUrl = /^(https?:|mailto:)/i;

function linkTo(place: MarkdownPlace, target: string): { href: string; outside: boolean } | null {
	if (safeUrl.test(target)) return { href: target, outside: true };
	if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return null;
	const href = place.link(target);
	return href ? { href, outside: false } : null;
}

function anchor(place: MarkdownPlace, target: string, children: ComponentChildren): ComponentChildren {
	const to = linkTo(place, target);
	if (!to) return <span>{children}</span>;
	return to.outside ? <a href={to.href} target="_blank" rel="noopener noreferrer">{children}</a> : <a href={to.href}>{children}</a>;
}

const inlinePattern =
	/(`+)([\s\S]*?[^`])\1(?!`)|!\[([^\]]*)\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+"[^"]*")?\s*\)|\[((?:[^[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+"[^"]*")?\s*\)|<(https?:\/\/[^<>\s]+)>|(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])|(\*\*|__)(?=\S)([\s\S]*?\S)\9|(~~)(?=\S)([\s\S]*?\S)\11|(?<![\w*])(\*|_)(?=[^\s*_])([\s\S]*?[^\s*_])\13(?![\w*])|\\([!-/:-@[-`{-~])|( {2,}|\\)\n/;

export function inline(text: string, place: MarkdownPlace, depth = 0): ComponentChildren[] {
	const out: ComponentChildren[] = [];
	while (text) {
		const m = depth < DEPTH_MAX && text.length <= PARAGRAPH_MAX ? inlinePattern.exec(text) : null;
		if (!m) {
			out.push(text);
			break;
		}
		if (m.index) out.push(text.slice(0, m.index));
		const inner = (part: string | undefined) => inline(part ?? "", place, depth + 1);
		if (m[1] !== undefined) out.push(<code>{(m[2] ?? "").trim()}</code>);
		else if (m[4] !== undefined) out.push(safeUrl.test(m[4]) ? anchor(place, m[4], m[3] || m[4]) : place.image(m[4], m[3] ?? ""));
		else if (m[6] !== undefined) out.push(anchor(place, m[6], inner(m[5])));
		else if (m[7] !== undefined || m[8] !== undefined) out.push(anchor(place, (m[7] ?? m[8]) as string, m[7] ?? m[8]));
		else if (m[9] !== undefined) out.push(<strong>{inner(m[10])}</strong>);
		else if (m[11] !== undefined) out.push(<del>{inner(m[12])}</del>);
		else if (m[13] !== undefined) out.push(<em>{inner(m[14])}</em>);
		else if (m[15] !== undefined) out.push(m[15]);
		else out.push(<br />);
		text = text.slice(m.index + m[0].length);
	}
	return out;
}

/* --- blocks --- */

const fence = /^ {0,3}(```+|~~~+)\s*([\w+-]*).*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const rule = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const item = /^( {0,8})([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const tableRule = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function tableAt(lines: string[], at: number, place: MarkdownPlace): { node: VNode; next: number } {
	const head = cells(lines[at] ?? ""), marks = cells(lines[at + 1] ?? ""), body: string[][] = [];
	let next = at + 2;
	while (next < lines.length && (lines[next] ?? "").includes("|") && (lines[next] ?? "").trim()) body.push(cells(lines[next++] ?? ""));
	const align = (i: number) => (/^:.*:$/.test(marks[i] ?? "") ? "center" : /:$/.test(marks[i] ?? "") ? "right" : undefined);
	const node = (
		<div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
			<table>
				<thead><tr>{head.map((cell, i) => <th key={i} class={align(i)}>{inline(cell, place)}</th>)}</tr></thead>
				<tbody>{body.map((row, r) => <tr key={r}>{head.map((_, i) => <td key={i} class={align(i)}>{inline(row[i] ?? "", place)}</td>)}</tr>)}</tbody>
			</table>
		</div>
	);
	return { node, next };
}

function listAt(lines: string[], at: number, place: MarkdownPlace, depth: number): { node: VNode; next: number } {
	const first = item.exec(lines[at] ?? "") as RegExpExecArray;
	const ordered = /\d/.test(first[2] ?? ""), base = (first[1] ?? "").length, entries: Array<{ lines: string[]; loose: boolean }> = [];
	let next = at;
	while (next < lines.length) {
		const line = lines[next] ?? "", m = item.exec(line);
		const current = entries.at(-1);
		if (m && (m[1] ?? "").length <= base + 1 && /\d/.test(m[2] ?? "") === ordered && !rule.test(line)) {
			entries.push({ lines: [m[4] ?? ""], loose: false });
		} else if (!current) break;
		else if (!line.trim()) {
			const after = lines[next + 1] ?? "";
			if (!/^\s{2,}\S/.test(after) && !item.test(after)) break;
			current.lines.push("");
		} else if (/^\s/.test(line)) current.lines.push(line.replace(new RegExp(`^\\s{1,${base + (m ? 2 : 4)}}`), ""));
		else if (lines[next - 1]?.trim() && !m && !heading.test(line) && !fence.test(line)) current.lines.push(line);
		else break;
		next++;
	}
	const items = entries.map((entry, i) => {
		const box = /^\[([ xX])\]\s+/.exec(entry.lines[0] ?? "");
		const own = box ? [(entry.lines[0] ?? "").slice(box[0].length), ...entry.lines.slice(1)] : entry.lines;
		while (own.at(-1) === "") own.pop();
		const content = blocks(own, place, depth + 1, true);
		return box
			? <li key={i} class="check"><input type="checkbox" checked={box[1] !== " "} disabled aria-label={box[1] === " " ? "open" : "done"} /><div>{content}</div></li>
			: <li key={i}>{content}</li>;
	});
	return { node: ordered ? <ol start={Number.parseInt(first[2] ?? "1", 10)}>{items}</ol> : <ul>{items}</ul>, next };
}

function starts(line: string, next: string): boolean {
	return fence.test(line) || heading.test(line) || rule.test(line) || item.test(line) || /^ {0,3}>/.test(line) || (line.includes("|") && tableRule.test(next));
}

function blocks(lines: string[], place: MarkdownPlace, depth: number, tight = false): ComponentChildren[] {
	const out: ComponentChildren[] = [];
	let at = 0;
	while (at < lines.length) {
		const line = lines[at] ?? "";
		let m: RegExpExecArray | null;
		if (!line.trim()) {
			at++;
		} else if ((m = fence.exec(line))) {
			const body: string[] = [], end = m[1] ?? "```";
			for (at++; at < lines.length && !(lines[at] ?? "").trim().startsWith(end); at++) body.push(lines[at] ?? "");
			at++;
			out.push(<pre tabIndex={0} data-language={m[2] || undefined}><code>{body.join("\n")}</code></pre>);
		} else if ((m = heading.exec(line))) {
			const Level = `h${Math.min(6, (m[1] ?? "#").length + 1)}` as "h2";
			out.push(<Level class={`md-h${(m[1] ?? "#").length}`}>{inline(m[2] ?? "", place)}</Level>);
			at++;
		} else if (rule.test(line)) {
			out.push(<hr />);
			at++;
		} else if (/^ {0,3}>/.test(line) && depth < DEPTH_MAX) {
			const body: string[] = [];
			while (at < lines.length && /^ {0,3}>/.test(lines[at] ?? "")) body.push((lines[at++] ?? "").replace(/^ {0,3}> ?/, ""));
			out.push(<blockquote>{blocks(body, place, depth + 1)}</blockquote>);
		} else if (line.includes("|") && tableRule.test(lines[at + 1] ?? "")) {
			const table = tableAt(lines, at, place);
			out.push(table.node);
			at = table.next;
		} else if (item.test(line) && depth < DEPTH_MAX) {
			const list = listAt(lines, at, place, depth);
			out.push(list.node);
			at = list.next;
		} else {
			const body = [line.trimStart()];
			for (at++; at < lines.length && (lines[at] ?? "").trim() && !starts(lines[at] ?? "", lines[at + 1] ?? ""); at++) body.push((lines[at] ?? "").trimStart());
			const text = inline(body.join("\n"), place);
			out.push(tight && out.length === 0 ? <Fragment>{text}</Fragment> : <p>{text}</p>);
		}
	}
	return out;
}

export function Markdown({ text, place }: { text: string; place: MarkdownPlace }) {
	let lines = text.replaceAll("\r\n", "\n").split("\n");
	let front: string[] = [];
	if (lines[0] === "---") {
		const end = lines.indexOf("---", 1);
		if (end > 0) {
			front = lines.slice(1, end);
			lines = lines.slice(end + 1);
		}
	}
	return (
		<div class="markdown">
			{front.length > 0 && <pre class="front" tabIndex={0}><code>{front.join("\n")}</code></pre>}
			{blocks(lines, place, 0)}
		</div>
	);
}
