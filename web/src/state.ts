// SPDX-License-Identifier: Apache-2.0
// What the screens share: the connection, where the user is, preferences, and messages with their undo.
import { computed, effect, signal } from "@preact/signals";
import { Stead, SteadError, type Change, type ToolInfo, type Workspace } from "../../clients/typescript/src/index.ts";
import { sentence } from "./format.ts";

export { SteadError };
export type { Change, Workspace };

/* --- the connection --- */

const TOKEN_KEY = "stead-token";

export const stead = new Stead({ token: sessionStorage.getItem(TOKEN_KEY) ?? undefined });
/** Why the page asks for a token; null: it need not. */
export const tokenWanted = signal<string | null>(null);
/** Goes up with each token: what was loaded with another one is loaded again. */
export const signIns = signal(0);
/** Why the list of workspaces could not be loaded. */
export const loadError = signal<Error | null>(null);
export const hasToken = signal(stead.token !== undefined);

export function setToken(token: string | undefined): void {
	if (token) sessionStorage.setItem(TOKEN_KEY, token);
	else sessionStorage.removeItem(TOKEN_KEY);
	stead.token = token;
	hasToken.value = token !== undefined;
	signIns.value++;
	workspaces.value = null;
	tools.value = {};
}

export const workspaces = signal<Array<{ name: string }> | null>(null);

/** Loads the list of workspaces; asks for a token when the server wants one. */
export async function loadWorkspaces(): Promise<void> {
	try {
		const list = await stead.workspaces();
		list.sort((a, b) => (a.name < b.name ? -1 : 1));
		workspaces.value = list;
		tokenWanted.value = null;
		loadError.value = null;
	} catch (error) {
		if (error instanceof SteadError && error.status === 401) {
			tokenWanted.value = stead.token ? error.message : "";
			return;
		}
		loadError.value = error as Error;
		throw error;
	}
}

/* --- where the user is: "#/w/NAME/SCREEN/REST?QUERY" --- */

export interface Route {
	workspace: string | null;
	screen: string;
	rest: string;
	query: URLSearchParams;
}

function parseHash(hash: string): Route {
	const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
	const parts = path.split("/").map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});
	if (parts[0] !== "w" || !parts[1]) return { workspace: null, screen: parts[0] || "workspaces", rest: "", query: new URLSearchParams(query) };
	return { workspace: parts[1], screen: parts[2] || "files", rest: parts.slice(3).join("/"), query: new URLSearchParams(query) };
}

export const route = signal<Route>(parseHash(location.hash));
addEventListener("hashchange", () => {
	route.value = parseHash(location.hash);
});

/** The address of a screen of the current workspace, or of another. */
export function href(screen: string, rest = "", query: Record<string, string | number | undefined> = {}, workspace = route.peek().workspace): string {
	const search = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") search.set(name, String(value));
	const path = rest ? "/" + rest.split("/").map(encodeURIComponent).join("/") : "";
	return `#/w/${encodeURIComponent(workspace ?? "")}/${screen}${path}${search.size ? `?${search}` : ""}`;
}

export function go(to: string): void {
	location.hash = to;
}

/** The same place with other query values, without a new entry in the browser's history. */
export function replaceQuery(query: Record<string, string | number | undefined>): void {
	const { screen, rest } = route.peek();
	history.replaceState(null, "", href(screen, rest, query));
	route.value = parseHash(location.hash);
}

export const workspace = computed<Workspace | null>(() => (route.value.workspace ? stead.workspace(route.value.workspace) : null));

/** The workspace that a screen below a workspace shows. */
export function currentWorkspace(): Workspace {
	const ws = workspace.value;
	if (!ws) throw new Error("this screen belongs to a workspace");
	return ws;
}

/* --- what may be done --- */

export const tools = signal<Record<string, ToolInfo[]>>({});

/** What goes wrong is shown by loadWorkspaces(), if it is the token or the workspace. */
export async function loadTools(name: string): Promise<void> {
	if (tools.peek()[name]) return;
	try {
		const list = await stead.workspace(name).tools({ brief: true });
		tools.value = { ...tools.peek(), [name]: list };
	} catch (error) {
		if (!(error instanceof SteadError && [401, 403, 404].includes(error.status))) failed(error);
	}
}

/** True when this token may call the tool in this workspace. */
export function may(tool: string): boolean {
	const name = route.value.workspace;
	return name !== null && (tools.value[name] ?? []).some((one) => one.name === tool);
}

/** The same for somebody who is faster than the list of tools: then the server decides. */
export function mayTry(tool: string): boolean {
	const name = route.value.workspace;
	return name !== null && (!tools.value[name] || may(tool));
}

/* --- preferences --- */

export type Theme = "system" | "light" | "dark";

export function stored<T extends string>(key: string, fallback: T) {
	const value = signal<T>((localStorage.getItem(key) as T | null) ?? fallback);
	effect(() => localStorage.setItem(key, value.value));
	return value;
}

export const theme = stored<Theme>("stead-theme", "system");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", (event) => {
	systemDark.value = event.matches;
});
export const isDark = computed(() => (theme.value === "system" ? systemDark.value : theme.value === "dark"));
effect(() => {
	document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
});

const narrow = matchMedia("(max-width: 760px)");
export const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", (event) => {
	isNarrow.value = event.matches;
});

/* --- messages --- */

export interface Toast {
	id: number;
	text: string;
	kind: "done" | "error";
	undo?: () => Promise<unknown>;
}
export const toasts = signal<Toast[]>([]);
let lastToast = 0;
/** The newest thing that Ctrl+Z can take back. */
let lastUndo: Toast | null = null;

export function dismiss(id: number): void {
	toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function show(toast: Omit<Toast, "id">, ms: number): Toast {
	const made = { ...toast, id: ++lastToast };
	toasts.value = [...toasts.value.filter((other) => other.text !== made.text || other.undo).slice(-2), made];
	setTimeout(() => dismiss(made.id), ms);
	return made;
}

/** Says that something was done, and offers to take it back. */
export function done(text: string, undo?: () => Promise<unknown>): void {
	const toast = show({ text, kind: "done", undo }, undo ? 10_000 : 4000);
	if (undo) lastUndo = toast;
}

export function failed(error: unknown): void {
	if (error instanceof DOMException && error.name === "AbortError") return;
	if (error instanceof SteadError && error.status === 401) {
		tokenWanted.value = error.message;
		return;
	}
	show({ text: sentence(error instanceof Error ? error.message : String(error)), kind: "error" }, 12_000);
}

export async function undoToast(toast: Toast | null = lastUndo): Promise<boolean> {
	if (!toast?.undo) return false;
	const undo = toast.undo;
	dismiss(toast.id);
	if (lastUndo === toast) lastUndo = null;
	try {
		await undo();
		show({ text: `Undone: ${toast.text}`, kind: "done" }, 4000);
	} catch (error) {
		failed(error);
	}
	return true;
}

/** Runs an action of the user; what goes wrong is shown. */
export async function attempt<T>(action: () => Promise<T>): Promise<T | undefined> {
	try {
		return await action();
	} catch (error) {
		failed(error);
		return undefined;
	}
}

/** An undo for the newest change at a path: it takes back that one call, whatever came after it elsewhere. */
export async function undoOf(ws: Workspace, path: string): Promise<() => Promise<unknown>> {
	const { revisions } = await ws.tool("history", { path: path || "/", limit: 1 });
	const call = (revisions[0]?.actor as { call?: string } | undefined)?.call;
	return () => (call ? ws.tool("undo", { call }) : Promise.reject(new Error("this change cannot be undone from here; see History")));
}

/* --- live changes --- */

type Listener = (change: Change) => void;
const listeners = new Set<Listener>();
export const live = signal(false);

/** Calls `listener` for every change of files in the current workspace, until the returned function is called. */
export function onChange(listener: Listener): () => void {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

let following: AbortController | null = null;
const followed = computed(() => (tokenWanted.value === null ? route.value.workspace : null));
effect(() => {
	const name = followed.value;
	following?.abort();
	following = null;
	live.value = false;
	if (!name) return;
	const control = (following = new AbortController());
	void (async () => {
		let wasLive = false;
		const onState = (on: boolean) => {
			live.value = on && !control.signal.aborted;
			wasLive ||= live.value;
		};
		try {
			for await (const change of stead.workspace(name).events({ signal: control.signal, onState }))
				for (const listener of [...listeners]) listener(change);
		} catch (error) {
			const status = error instanceof SteadError ? error.status : 0;
			/* Its history was shortened, or it was replaced by an older copy. */
			if (wasLive && (status === 404 || status === 410)) failed(new Error("What changed in the meantime is no longer known. Reload the page to see the current state."));
			else if (status !== 404 && status !== 401) console.error(error);
		}
	})();
});

/* --- overlays --- */

export const paletteOpen = signal(false);
export const sidebarOpen = signal(false);
