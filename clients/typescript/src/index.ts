// SPDX-License-Identifier: Apache-2.0
// A client for `stead serve`. It has no dependencies and runs wherever fetch() does: browsers, Node, workers.
import { ActorProjects } from "./ai.ts";
import { routes, type Operations, type Tools } from "./generated.ts";

export type { Operations, Tools };
export * from "./ai.ts";
export type ToolName = keyof Tools;
export type ToolArgs<N extends ToolName> = Tools[N]["args"];
export type ToolResult<N extends ToolName> = Tools[N]["result"];

/** A file or directory in a list. */
export interface Entry {
	name: string;
	path: string;
	kind: "file" | "directory";
	size?: number;
	modified?: string;
	version?: string;
}
export interface Page<T> {
	entries: T[];
	next: string | null;
}
export interface Actor {
	user?: string;
	agent?: string;
	session?: string;
	call?: string;
}
/** A workspace in a list; with `forks` also what it is a fork of. */
export interface WorkspaceInfo {
	name: string;
	fork_of?: string;
	fork_revision?: number;
}
/** One change of one path. */
export interface Change {
	revision: number;
	path: string;
	operation: string;
	actor: Actor;
	time: string;
	before?: { size: number; version: string } | null;
	after?: { size: number; version: string } | null;
	from?: string;
	to?: string;
}
export interface Written {
	path: string;
	size: number;
	version: string;
}
/** A tool with its schemas. */
export interface ToolInfo {
	name: string;
	title: string;
	description: string;
	reads_only: boolean;
	destructive: boolean;
}

/** What the server refuses or cannot do. `message` is one sentence that says what to do next; decide by `kind`. */
export class SteadError extends Error {
	readonly status: number;
	readonly kind: string;
	readonly retryable: boolean;
	readonly requestId: string;
	/** The whole problem document. */
	readonly problem: Record<string, unknown>;

	constructor(message: string, status: number, kind: string, retryable = false, requestId = "", problem: Record<string, unknown> = {}) {
		super(message);
		this.name = "SteadError";
		this.status = status;
		this.kind = kind;
		this.retryable = retryable;
		this.requestId = requestId;
		this.problem = problem;
	}
}

export interface SteadOptions {
	/** The address of the server; in a page of the server itself it may be left out. */
	url?: string;
	token?: string;
	/** The user that requests act as, if the token allows it. */
	user?: string;
	/** The workspace whose task board `ai` uses. */
	project?: string;
	fetch?: typeof fetch;
}

type Id = keyof typeof routes;
interface Call {
	path?: Record<string, string>;
	query?: Record<string, string | number | boolean | undefined>;
	headers?: Record<string, string | undefined>;
	body?: BodyInit;
	signal?: AbortSignal | undefined;
}

const encodePath = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** Kinds of answers without a text, such as those to HEAD. */
const kinds: Record<number, string> = { 400: "invalid", 401: "unauthenticated", 403: "denied", 404: "not_found", 409: "conflict", 412: "conflict", 413: "too_large" };

async function problemOf(answer: Response): Promise<SteadError> {
	const text = await answer.text();
	try {
		const p = JSON.parse(text) as Record<string, unknown>;
		return new SteadError(String(p.detail ?? text), answer.status, String(p.kind ?? "internal"), p.retryable === true,
			String(p.request_id ?? ""), p);
	} catch {
		return new SteadError(`the server answered with status ${answer.status}`, answer.status, kinds[answer.status] ?? "unavailable", answer.status >= 500);
	}
}

export class Stead {
	readonly url: string;
	token: string | undefined;
	user: string | undefined;
	/** The task board of the project, under the names of Wacht. */
	readonly ai: ActorProjects;
	private readonly projects = new Map<string, ActorProjects>();
	private readonly fetcher: typeof fetch;

	constructor(options: SteadOptions = {}) {
		this.url = (options.url ?? "").replace(/\/$/, "");
		this.token = options.token;
		this.user = options.user;
		this.ai = new ActorProjects(this, options.project);
		this.fetcher = options.fetch ?? ((...args) => fetch(...args));
	}

	/** The headers that say who is asking. */
	headers(): Record<string, string> {
		const headers: Record<string, string> = {};
		if (this.token) headers.Authorization = `Bearer ${this.token}`;
		if (this.user) headers["Stead-User"] = encodeURIComponent(this.user);
		return headers;
	}

	/** A link to a file of a workspace or of an item. */
	async link(id: Id, of: Record<string, string>, path: string, options: LinkOptions): Promise<string> {
		const made = await this.json<{ url: string }>(id, { path: of, body: JSON.stringify({ path, ...options }), headers: { "Content-Type": "application/json" } });
		return this.url + made.url;
	}

	/** The address of an operation. */
	address(id: Id, path: Record<string, string> = {}, query: Call["query"] = {}): string {
		const target = routes[id][1].replace(/\{(\w+)\}/g, (_, name: string) =>
			name === "path" ? encodePath(path[name] ?? "") : encodeURIComponent(path[name] ?? ""));
		const search = new URLSearchParams();
		for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
		return this.url + target + (search.size ? `?${search}` : "");
	}

	/** Sends a request of an operation; an answer that is an error is thrown. */
	async send(id: Id, call: Call = {}): Promise<Response> {
		const headers = this.headers();
		for (const [name, value] of Object.entries(call.headers ?? {})) if (value !== undefined) headers[name] = value;
		const init: RequestInit = { method: routes[id][0], headers };
		if (call.body !== undefined) init.body = call.body;
		if (call.signal) init.signal = call.signal;
		let answer: Response;
		try {
			answer = await this.fetcher(this.address(id, call.path, call.query), init);
		} catch (error) {
			if (call.signal?.aborted) throw error;
			throw new SteadError("the server cannot be reached; check that it runs", 0, "unavailable", true);
		}
		if (!answer.ok && answer.status !== 304) throw await problemOf(answer);
		return answer;
	}

	async json<T>(id: Id, call: Call = {}): Promise<T> {
		return (await (await this.send(id, call)).json()) as T;
	}

	/** All workspaces that the token is for. */
	async workspaces(options: { forks?: boolean } = {}): Promise<WorkspaceInfo[]> {
		const all: WorkspaceInfo[] = [];
		let cursor: string | undefined;
		do {
			const page = await this.json<{ workspaces: WorkspaceInfo[]; next: string | null }>("list_workspaces", { query: { cursor, ...options } });
			all.push(...page.workspaces);
			cursor = page.next ?? undefined;
		} while (cursor);
		return all;
	}

	createWorkspace(name: string): Promise<{ name: string; created: boolean }> {
		return this.json("create_workspace", { path: { workspace: name } });
	}

	/** The task board of a project: the same object each time. */
	project(name: string): ActorProjects {
		let made = this.projects.get(name);
		if (!made) this.projects.set(name, (made = new ActorProjects(this, name)));
		return made;
	}

	workspace(name: string): Workspace {
		return new Workspace(this, name);
	}

	/** Follows a stream of changes. After a broken connection it goes on where it ended; it ends with the signal. */
	async *follow(id: Id, path: Record<string, string>, query: Call["query"], options: FollowOptions): AsyncGenerator<Change> {
		let since = options.since, pause = 250;
		while (!options.signal.aborted) {
			try {
				const answer = await this.send(id, { path, query: { ...query, since }, signal: options.signal });
				options.onState?.(true);
				pause = 250;
				for await (const event of serverSentEvents(answer)) {
					if (event.name === "error") throw new SteadError(event.data, 410, "not_found");
					if (event.id) since = Number(event.id);
					if (event.data) yield JSON.parse(event.data) as Change;
				}
			} catch (error) {
				if (options.signal.aborted) return;
				if (error instanceof SteadError && !error.retryable) throw error;
			}
			options.onState?.(false);
			await new Promise((resolve) => setTimeout(resolve, pause));
			pause = Math.min(pause * 2, 8000);
		}
	}
}

export interface FollowOptions {
	/** The last revision already seen; without it, changes from now on. */
	since?: number;
	signal: AbortSignal;
	/** Called when the connection is made or lost. */
	onState?: (live: boolean) => void;
}
export interface ReadOptions {
	signal?: AbortSignal;
	/** First and last byte. */
	range?: [number, number];
}
export interface WriteOptions {
	/** Replace only this version. */
	ifVersion?: string;
	/** The file must not exist yet. */
	isNew?: boolean;
	signal?: AbortSignal;
}

export interface LinkOptions {
	/** It works a single time (default: true). */
	once?: boolean;
	/** A browser shows the file instead of saving it (default: false). */
	show?: boolean;
	/** How long it works (default: 600). */
	expires_seconds?: number;
	/** A directory as one file. */
	format?: "zip" | "tar";
}

export class Workspace {
	readonly stead: Stead;
	readonly name: string;

	constructor(stead: Stead, name: string) {
		this.stead = stead;
		this.name = name;
	}

	/** Calls a tool and gives its structured result. */
	async tool<N extends ToolName>(name: N, args: ToolArgs<N>, signal?: AbortSignal): Promise<ToolResult<N>> {
		return (await this.call(name, args as Record<string, unknown>, signal)).result as ToolResult<N>;
	}

	/** Calls a tool by any name; `text` is what a model would read. */
	call(name: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<{ text: string; result?: unknown }> {
		const call: Call = { path: { workspace: this.name, name }, body: JSON.stringify(args), headers: { "Content-Type": "application/json" } };
		if (signal) call.signal = signal;
		return this.stead.json("call_tool", call);
	}

	/** What this client may call. `brief`: without schemas, a tenth of the size. */
	async tools(options: { brief?: boolean } = {}): Promise<ToolInfo[]> {
		return (await this.stead.json<{ tools: ToolInfo[] }>("list_tools", { path: { workspace: this.name }, query: options })).tools;
	}

	/** One page of a directory, or with `recursive` of all files below it. */
	list(path = "", options: { recursive?: boolean; cursor?: string; limit?: number; signal?: AbortSignal } = {}): Promise<Page<Entry>> {
		const { signal, ...query } = options;
		const call: Call = { path: { workspace: this.name }, query: { path: path || undefined, ...query } };
		if (signal) call.signal = signal;
		return this.stead.json("list_files", call);
	}

	/** All entries of a directory, page after page. */
	async *walk(path = "", options: { recursive?: boolean; limit?: number; signal?: AbortSignal } = {}): AsyncGenerator<Entry[]> {
		let cursor: string | undefined;
		do {
			const page: Page<Entry> = await this.list(path, cursor ? { ...options, cursor } : options);
			yield page.entries;
			cursor = page.next ?? undefined;
		} while (cursor);
	}

	/** The address of a file, for links; it works in a browser only if the server was started with --open. */
	fileUrl(path: string): string {
		return this.stead.address("read_file", { workspace: this.name, path });
	}

	/** An address that works without the token: for a download, or with `once: false` for a player that asks for ranges. */
	link(path: string, options: LinkOptions = {}): Promise<string> {
		return this.stead.link("create_link", { workspace: this.name }, path, options);
	}

	read(path: string, options: ReadOptions = {}): Promise<Response> {
		const call: Call = { path: { workspace: this.name, path } };
		if (options.range) call.headers = { Range: `bytes=${options.range[0]}-${options.range[1]}` };
		if (options.signal) call.signal = options.signal;
		return this.stead.send("read_file", call);
	}

	/** A text file with the version to give to write(). */
	async text(path: string, options: ReadOptions = {}): Promise<{ text: string; version: string }> {
		const answer = await this.read(path, options);
		return { text: await answer.text(), version: (answer.headers.get("ETag") ?? "").replaceAll('"', "") };
	}

	async stat(path: string, signal?: AbortSignal): Promise<{ size: number; version: string; modified: string; type: string }> {
		const call: Call = { path: { workspace: this.name, path } };
		if (signal) call.signal = signal;
		const { headers } = await this.stead.send("stat_file", call);
		return {
			size: Number(headers.get("Content-Length") ?? 0),
			version: (headers.get("ETag") ?? "").replaceAll('"', ""),
			modified: headers.get("Last-Modified") ?? "",
			type: headers.get("Content-Type") ?? "",
		};
	}

	write(path: string, body: BodyInit, options: WriteOptions = {}): Promise<Written> {
		const call: Call = {
			path: { workspace: this.name, path }, body,
			headers: { "If-Match": options.ifVersion && `"${options.ifVersion}"`, "If-None-Match": options.isNew ? "*" : undefined },
		};
		if (options.signal) call.signal = options.signal;
		return this.stead.json("write_file", call);
	}

	async remove(path: string, options: { recursive?: boolean; ifVersion?: string } = {}): Promise<void> {
		await this.stead.send("delete_file", {
			path: { workspace: this.name, path }, query: { recursive: options.recursive || undefined },
			headers: { "If-Match": options.ifVersion && `"${options.ifVersion}"` },
		});
	}

	/** Follows changes of files as they are made. */
	events(options: FollowOptions & { path?: string }): AsyncGenerator<Change> {
		return this.stead.follow("events", { workspace: this.name }, { path: options.path }, options);
	}
}

/** The events of a stream; comments are left out. */
export async function* serverSentEvents(answer: Response): AsyncGenerator<{ id: string; name: string; data: string }> {
	if (!answer.body) return;
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "", event = { id: "", name: "", data: "" };
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			const lines = (rest + value).split("\n");
			rest = lines.pop() ?? "";
			for (const line of lines) {
				if (line === "") {
					if (event.data || event.name) yield event;
					event = { id: "", name: "", data: "" };
				} else if (line.startsWith("id:")) event.id = line.slice(3).trim();
				else if (line.startsWith("event:")) event.name = line.slice(6).trim();
				else if (line.startsWith("data:")) event.data += (event.data ? "\n" : "") + line.slice(5).replace(/^ /, "");
			}
		}
	} finally {
		await reader.cancel().catch(() => {});
	}
}
