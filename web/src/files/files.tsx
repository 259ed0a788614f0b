// SPDX-License-Identifier: Apache-2.0
// The files: a tree on the left that follows changes, and the chosen file on the right.
import { useEffect, useState } from "preact/hooks";
import { Icon, iconOf } from "../icons.tsx";
import { currentWorkspace, go, href, isNarrow, may, mayTry, onChange, route } from "../state.ts";
import { Button, Empty, Menu, Show, Skeleton, useLoad, useReloadOnChange, VirtualList } from "../ui.tsx";
import { actorName, ago, baseName, fullTime, parentOf, plural } from "../format.ts";
import { filesActions } from "./actions.ts";
import { treeOf, type Node, type Tree } from "./tree.ts";
import { FileView } from "./viewer.tsx";

const FRESH_MS = 4000;

/** A step to the right for each level, and smaller ones when it is deep, so that there is room for the name. */
const indent = (depth: number) => 8 + Math.min(depth, 6) * 14 + Math.max(0, depth - 6) * 4;

function Row({ node, selected, active, onPick, onDrop, index }: { node: Node; selected: boolean; active: boolean; index: number; onPick: (node: Node, index: number) => void; onDrop: (event: DragEvent, dir: string) => void }) {
	const [over, setOver] = useState(false);
	const dir = node.isDir ? node.path : parentOf(node.path);
	return (
		<div class={`tree-row${selected ? " selected" : ""}${active ? " active" : ""}${over ? " over" : ""}${Date.now() - node.touched < FRESH_MS ? " fresh" : ""}`} role="treeitem"
			id={`node-${index}`} aria-level={node.depth + 1} aria-expanded={node.isDir ? node.open : undefined} aria-selected={selected} style={{ paddingLeft: `${indent(node.depth)}px` }} title={node.path}
			onClick={() => onPick(node, index)} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
			onDrop={(event) => { setOver(false); onDrop(event, dir); }}>
			<span class={node.open ? "twist open" : "twist"}>{node.isDir && <Icon name="chevron" />}</span>
			<Icon name={iconOf(node.name, node.isDir ? "directory" : "file")} />
			<span class="tree-name">{node.name}</span>
			{node.loading && <span class="hint">…</span>}
		</div>
	);
}

function TreePanel({ tree, selected }: { tree: Tree; selected: string }) {
	tree.turn.value;
	const rows = tree.rows, writable = may("write_file");
	const [active, setActive] = useState(-1);
	useEffect(() => {
		if (selected) void tree.reveal(selected);
	}, [selected]);
	const chosen = selected ? rows.findIndex((node) => node.path === selected) : -1;
	useEffect(() => {
		if (chosen >= 0) setActive(chosen);
	}, [chosen]);
	const pick = (node: Node, index: number) => {
		setActive(index);
		if (node.isDir) void tree.toggle(node);
		else go(href("files", node.path));
	};
	const drop = (event: DragEvent, dir: string) => {
		event.preventDefault();
		event.stopPropagation();
		if (event.dataTransfer && mayTry("write_file")) void filesActions.drop(dir, event.dataTransfer);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const node = rows[active];
		if (event.key === "ArrowDown") setActive(Math.min(active + 1, rows.length - 1));
		else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
		else if (event.key === "Home") setActive(0);
		else if (event.key === "End") setActive(rows.length - 1);
		else if (event.key === "PageDown") setActive(Math.min(active + 20, rows.length - 1));
		else if (event.key === "PageUp") setActive(Math.max(active - 20, 0));
		else if (event.key === "ArrowRight" && node?.isDir && !node.open) void tree.toggle(node, true);
		else if (event.key === "ArrowLeft" && node?.isDir && node.open) void tree.toggle(node, false);
		else if (event.key === "ArrowLeft" && node?.parent && node.parent !== tree.root) setActive(rows.indexOf(node.parent));
		else if ((event.key === "Enter" || event.key === " ") && node) pick(node, active);
		else if (event.key === "Delete" && node && writable) filesActions.ask({ kind: "delete", path: node.path, isDir: node.isDir });
		else if (event.key === "F2" && node && writable) filesActions.ask({ kind: "rename", path: node.path, isDir: node.isDir });
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	const target = rows[active], dir = target ? (target.isDir ? target.path : parentOf(target.path)) : "";
	return (
		<section class="tree" aria-label="Files" onDragOver={(event) => event.preventDefault()} onDrop={(event) => drop(event, "")}>
			<header class="tree-head">
				<h1>Files</h1>
				<span class="spring" />
				{writable && <Button kind="quiet" icon="upload" label="Upload files" onClick={() => filesActions.pick(dir)} />}
				{writable && <Button kind="quiet" icon="plus" label="New file" onClick={() => filesActions.ask({ kind: "new", dir })} />}
				{target && writable && (
					<Menu label={`Actions for ${target.name}`} items={[
						{ icon: "move", text: "Rename or move…", run: () => filesActions.ask({ kind: "rename", path: target.path, isDir: target.isDir }) },
						{ icon: "history", text: "History", run: () => go(href("history", target.path)) },
						{ icon: "trash", text: "Delete…", danger: true, run: () => filesActions.ask({ kind: "delete", path: target.path, isDir: target.isDir }) },
					]} />
				)}
			</header>
			{tree.error.value ? <Empty icon="alert" title="The files could not be listed" text={tree.error.value.message} action={<Button onClick={() => void tree.load(tree.root)}>Try again</Button>} />
				: !tree.root.children ? <div class="pad"><Skeleton /></div>
				: !rows.length ? (
					<Empty icon="folder" title="No files yet" text={writable ? "Drop files here, create one, or let an agent write." : "Agents have not written anything yet."}
						action={writable && <><Button kind="main" icon="upload" onClick={() => filesActions.pick("")}>Upload</Button><Button icon="plus" onClick={() => filesActions.ask({ kind: "new", dir: "" })}>New file</Button></>} />
				) : (
					<VirtualList label="File tree" role="tree" count={rows.length} height={isNarrow.value ? 40 : 28} onKeyDown={onKeyDown} reveal={active} id="tree"
						row={(i) => {
							const node = rows[i] as Node;
							return <Row key={node.path} index={i} node={node} selected={node.path === selected} active={i === active} onPick={pick} onDrop={drop} />;
						}} />
				)}
		</section>
	);
}

/** What the right side shows while no file is chosen. */
function Overview({ tree }: { tree: Tree }) {
	const ws = currentWorkspace();
	const recent = useLoad(`recent ${ws.name}`, (signal) => ws.tool("history", { limit: 40 }, signal));
	useReloadOnChange(recent.reload);
	const files = tree.root.children?.filter((node) => !node.isDir).map((node) => node.name) ?? [];
	const first = files.find((name) => /^(readme|welcome|index)\.md$/i.test(name));
	return (
		<div class="screen">
			<h2 class="overview-title">{ws.name}</h2>
			<p class="sub">Choose a file on the left{first && <>, for example <a href={href("files", first)}>{first}</a></>}. Drop files anywhere on the list to upload them.</p>
			<h3>Recent changes</h3>
			<Show of={recent} lines={5}>
				{(data) => {
					const seen = new Set<string>();
					const latest = data.revisions.filter((one) => !seen.has(one.path) && seen.add(one.path)).slice(0, 10);
					return latest.length ? (
						<ul class="list">
							{latest.map((one) => (
								<li key={one.path}>
									<a class="list-row" href={one.after ? href("files", one.path) : href("history", one.path)}>
										<Icon name={one.after ? iconOf(one.path, "file") : "trash"} />
										<span class="list-main"><strong>{baseName(one.path)}</strong> <span class="path">{parentOf(one.path)}</span></span>
										<span class="hint" title={fullTime(one.time)}>{one.after ? (one.before ? "changed" : "added") : "deleted"} by {actorName(one.actor)} {ago(one.time)}</span>
									</a>
								</li>
							))}
						</ul>
					) : <p class="hint">Nothing has changed yet. What agents and people do will be listed here as it happens.</p>;
				}}
			</Show>
		</div>
	);
}

export function Files() {
	const ws = currentWorkspace(), tree = treeOf(ws), selected = route.value.rest;
	const [, tick] = useState(0);
	useEffect(() => {
		let timer = 0;
		const stop = onChange((change) => {
			tree.apply(change);
			clearTimeout(timer);
			timer = window.setTimeout(() => tick((n) => n + 1), FRESH_MS + 50);
		});
		return () => {
			clearTimeout(timer);
			stop();
		};
	}, [tree]);
	const chosen = selected ? tree.find(selected) : null, isDir = chosen?.isDir === true;
	useEffect(() => {
		if (isDir && chosen && !chosen.open) void tree.toggle(chosen, true);
	}, [isDir, chosen]);
	const showFile = selected !== "" && !isDir;
	return (
		<div class={`files${showFile ? " has-file" : ""}`}>
			{(!isNarrow.value || !showFile) && <TreePanel tree={tree} selected={selected} />}
			{showFile ? <FileView key={`${ws.name}/${selected}`} path={selected} /> : !isNarrow.value && <div class="file-pane"><Overview tree={tree} /></div>}
			<span class="visually-hidden" role="status">{tree.root.children ? plural(tree.rows.length, "entry", "entries") : "Loading"}</span>
		</div>
	);
}
