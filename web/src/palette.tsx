// SPDX-License-Identifier: Apache-2.0
// The command palette: every screen and action by name, every file by name, and a search over everything, as you type.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { screens } from "./app.tsx";
import { Icon, iconOf, type IconName } from "./icons.tsx";
import { currentWorkspace, go, href, may, paletteOpen, route, theme, workspaces } from "./state.ts";
import { useDebounced, useLoad } from "./ui.tsx";
import { baseName, parentOf } from "./format.ts";
import { hitHref, Snippet, type Hit } from "./screens/hits.tsx";
import { filesActions } from "./files/actions.ts";

interface Entry {
	id: string;
	icon: IconName;
	title: string;
	detail?: string;
	hit?: Hit;
	group: string;
	run: () => void;
}

function commands(): Entry[] {
	const list: Entry[] = screens.map((one) => ({
		id: one.name, icon: one.icon, title: `Go to ${one.title}`, detail: `G ${one.key.toUpperCase()}`, group: "Go to", run: () => go(href(one.name)),
	}));
	list.push({ id: "home", icon: "home", title: "All workspaces", group: "Go to", run: () => go("#/") });
	if (may("write_file")) {
		list.push({ id: "new", icon: "plus", title: "New file…", group: "Actions", run: () => filesActions.ask({ kind: "new", dir: "" }) });
		list.push({ id: "upload", icon: "upload", title: "Upload files…", group: "Actions", run: () => filesActions.pick("") });
	}
	for (const [value, text] of [["light", "Light"], ["dark", "Dark"], ["system", "System"]] as const)
		if (theme.value !== value) list.push({ id: `theme-${value}`, icon: value === "dark" ? "moon" : "sun", title: `Theme: ${text}`, group: "Actions", run: () => (theme.value = value) });
	for (const { name } of workspaces.value ?? [])
		if (name !== route.value.workspace) list.push({ id: `w-${name}`, icon: "home", title: `Switch to ${name}`, group: "Workspaces", run: () => go(href("files", "", {}, name)) });
	return list;
}

/** A pattern that finds names with these words in this order. */
const globOf = (text: string) => `**/*${text.trim().replace(/[\\*?[\]{}]/g, "?").split(/\s+/).map((word) =>
	[...word].map((c) => (c.toLowerCase() !== c.toUpperCase() && c.toLowerCase().length === 1 ? `[${c.toLowerCase()}${c.toUpperCase()}]` : c)).join("")).join("*")}*`;

export function Palette() {
	const ws = currentWorkspace();
	const [text, setText] = useState("");
	const [chosen, setChosen] = useState(0);
	const late = useDebounced(text.trim(), 90);
	const dialog = useRef<HTMLDialogElement>(null), list = useRef<HTMLDivElement>(null);
	/* Before anything else is handled: the key after the one that opened it is already meant for the input. */
	useLayoutEffect(() => {
		if (dialog.current && !dialog.current.open) dialog.current.showModal();
	}, []);
	const found = useLoad(`${ws.name}\n${late}`, async (signal) => {
		if (!late) return { paths: [] as string[], hits: [] as Hit[] };
		const [names, hits] = await Promise.all([
			ws.tool("glob", { pattern: globOf(late), limit: 6 }, signal).catch(() => ({ paths: [] as string[] })),
			ws.tool("search", { query: late, limit: 6 }, signal).catch(() => ({ hits: [] })),
		]);
		return { paths: names.paths, hits: hits.hits as Hit[] };
	});
	const [kept, setKept] = useState<{ paths: string[]; hits: Hit[] }>({ paths: [], hits: [] });
	useEffect(() => {
		if (found.data) setKept(found.data);
	}, [found.data]);
	const entries = useMemo(() => {
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		const out = commands().filter((entry) => words.every((word) => entry.title.toLowerCase().includes(word)));
		if (!words.length) return out;
		for (const path of kept.paths)
			out.push({ id: `f-${path}`, icon: iconOf(path, "file"), title: baseName(path), detail: parentOf(path), group: "Files", run: () => go(href("files", path)) });
		kept.hits.forEach((hit, i) => out.push({ id: `h-${i}`, icon: "search", title: hit.title || hit.path, hit, group: "Contents", run: () => go(hitHref(hit, late)) }));
		if (late) out.push({ id: "all", icon: "search", title: `Search everything for “${text.trim()}”`, group: "Contents", run: () => go(href("search", "", { q: text.trim() })) });
		return out;
	}, [text, kept]);
	useLayoutEffect(() => setChosen(0), [text]);
	useEffect(() => {
		list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
	}, [chosen]);
	const close = () => {
		paletteOpen.value = false;
	};
	const run = (entry: Entry | undefined) => {
		if (!entry) return;
		close();
		entry.run();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key === "ArrowDown") setChosen((n) => Math.min(n + 1, entries.length - 1));
		else if (event.key === "ArrowUp") setChosen((n) => Math.max(n - 1, 0));
		else if (event.key === "Enter") run(entries[chosen]);
		else return;
		event.preventDefault();
	};
	let group = "";
	return (
		<dialog ref={dialog} class="palette" aria-label="Command palette" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
			<div class="palette-input">
				<Icon name="search" />
				<input autofocus value={text} placeholder="Search everything, or type a command" role="combobox" aria-expanded="true" aria-controls="palette-list"
					aria-label="Search or command" aria-activedescendant={`entry-${chosen}`} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
			</div>
			<div class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
				{entries.map((entry, i) => {
					const head = entry.group !== group ? (group = entry.group) : null;
					return [
						head && <div key={`g-${head}`} class="palette-group" role="presentation">{head}</div>,
						<div key={entry.id} id={`entry-${i}`} role="option" aria-selected={i === chosen} class="palette-entry" onPointerMove={() => setChosen(i)} onClick={() => run(entry)}>
							<Icon name={entry.icon} />
							<span class="palette-title">{entry.title}{entry.hit && <small><Snippet text={entry.hit.snippet} /></small>}</span>
							{entry.detail && <span class="palette-detail">{entry.detail}</span>}
						</div>,
					];
				})}
				{!entries.length && <p class="hint pad">Nothing has this name, and nothing contains it.</p>}
			</div>
		</dialog>
	);
}
