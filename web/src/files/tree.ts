// SPDX-License-Identifier: Apache-2.0
// The model of the file tree. Directories are loaded when they are opened, page after page, and changes from the feed
// are put in their place, so a directory of 100,000 files is listed once.
import { signal, type Signal } from "@preact/signals";
import type { Change, Entry, Workspace } from "../../../clients/typescript/src/index.ts";
import { baseName, parentOf } from "../format.ts";
import { signIns } from "../state.ts";

export interface Node {
	path: string;
	name: string;
	isDir: boolean;
	depth: number;
	size: number;
	modified: string;
	/** When a change of it was last seen, to show it. */
	touched: number;
	/** Directories: what is in it, directories first; null: not loaded. */
	children: Node[] | null;
	open: boolean;
	loading: boolean;
	parent: Node | null;
}

const PAGE = 2000;

function order(a: Pick<Node, "isDir" | "name">, b: Pick<Node, "isDir" | "name">): number {
	return a.isDir !== b.isDir ? (a.isDir ? -1 : 1) : a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** Where the node is among its siblings, or where it belongs. */
function place(list: Node[], node: Pick<Node, "isDir" | "name">): number {
	let low = 0, high = list.length;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (order(list[mid] as Node, node) < 0) low = mid + 1;
		else high = mid;
	}
	return low;
}

function childOf(dir: Node, name: string): Node | null {
	for (const isDir of [true, false]) {
		const list = dir.children ?? [], there = list[place(list, { isDir, name })];
		if (there?.name === name && there.isDir === isDir) return there;
	}
	return null;
}

/** How long changes may be worked on before the page gets a turn. */
const SLICE_MS = 8;

export class Tree {
	readonly root: Node = { path: "", name: "", isDir: true, depth: -1, size: 0, modified: "", touched: 0, children: null, open: true, loading: false, parent: null };
	/** Goes up with every change: who shows the tree reads `rows` again. */
	readonly turn: Signal<number> = signal(0);
	readonly error: Signal<Error | null> = signal(null);
	private flat: Node[] | null = null;
	private waiting: Change[] = [];

	constructor(private readonly ws: Workspace) {
		void this.load(this.root);
	}

	/** The visible nodes, in order. */
	get rows(): Node[] {
		if (this.flat) return this.flat;
		const rows: Node[] = [];
		const add = (list: Node[]) => {
			for (const node of list) {
				rows.push(node);
				if (node.open && node.children) add(node.children);
			}
		};
		add(this.root.children ?? []);
		return (this.flat = rows);
	}

	private changed(): void {
		this.flat = null;
		this.turn.value++;
	}

	private make(parent: Node, entry: { path: string; kind: string; size?: number; modified?: string }, touched = 0): Node {
		return {
			path: entry.path, name: baseName(entry.path), isDir: entry.kind === "directory", depth: parent.depth + 1, size: entry.size ?? 0, modified: entry.modified ?? "",
			touched, children: null, open: false, loading: false, parent,
		};
	}

	async load(dir: Node): Promise<void> {
		if (dir.loading) return;
		dir.loading = true;
		const dirs: Node[] = [], files: Node[] = [];
		try {
			for await (const page of this.ws.walk(dir.path, { limit: PAGE })) {
				for (const entry of page as Entry[]) (entry.kind === "directory" ? dirs : files).push(this.make(dir, entry));
				dir.children = dirs.concat(files);
				this.changed();
			}
			this.error.value = null;
		} catch (error) {
			if (dir === this.root) this.error.value = error as Error;
			else dir.open = false;
		}
		dir.loading = false;
		this.changed();
	}

	find(path: string): Node | null {
		let at: Node = this.root;
		if (!path) return at;
		for (const name of path.split("/")) {
			const next = childOf(at, name);
			if (!next) return null;
			at = next;
		}
		return at;
	}

	async toggle(node: Node, open = !node.open): Promise<void> {
		node.open = open;
		if (open && !node.children) await this.load(node);
		else this.changed();
	}

	/** Opens the directories that lead to a path. */
	async reveal(path: string): Promise<void> {
		let at: Node | null = this.root;
		for (const name of path.split("/").slice(0, -1)) {
			while (at?.loading) await new Promise((resolve) => setTimeout(resolve, 20));
			at = at && childOf(at, name);
			if (!at?.isDir) return;
			if (!at.open) await this.toggle(at, true);
		}
	}

	private put(path: string, kind: "file" | "directory", size: number, modified: string): void {
		const parent = this.find(parentOf(path));
		if (!parent) {
			const above = parentOf(path);
			if (above) this.put(above, "directory", 0, modified);
			return;
		}
		if (!parent.children) return;
		const node = this.make(parent, { path, kind, size, modified }, Date.now());
		const at = place(parent.children, node), there = parent.children[at];
		if (there && there.name === node.name && there.isDir === node.isDir) Object.assign(there, { size, modified, touched: node.touched });
		else parent.children.splice(at, 0, node);
	}

	private take(path: string): void {
		const node = this.find(path), list = node?.parent?.children;
		if (!node || !list) return;
		list.splice(place(list, node), 1);
		/* A directory is gone with its last file. */
		const parent = node.parent;
		if (parent && parent !== this.root && parent.children?.length === 0) this.take(parent.path);
	}

	/** Takes in a change soon. A hundred thousand at once are taken in by and by, so that the page stays quick. */
	apply(change: Change): void {
		this.waiting.push(change);
		if (this.waiting.length === 1) setTimeout(() => this.applySome(), 0);
	}

	private applySome(): void {
		const end = performance.now() + SLICE_MS;
		let at = 0;
		while (at < this.waiting.length && performance.now() < end) {
			const change = this.waiting[at++] as Change;
			if (change.after) this.put(change.path, "file", change.after.size, change.time);
			else this.take(change.path);
		}
		this.waiting.splice(0, at);
		if (this.waiting.length) setTimeout(() => this.applySome(), SLICE_MS);
		this.changed();
	}
}

const trees = new Map<string, Tree>();
/** The tree of a workspace; it stays while the page is open. */
export function treeOf(ws: Workspace): Tree {
	const key = `${signIns.value} ${ws.name}`;
	let tree = trees.get(key);
	if (!tree) trees.set(key, (tree = new Tree(ws)));
	return tree;
}
