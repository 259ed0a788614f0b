// SPDX-License-Identifier: Apache-2.0
// The routes of task boards, as the screens use them.
import type { Entry } from "../../../clients/typescript/src/index.ts";
import { stead, type Workspace } from "../state.ts";

export interface Artifact {
	path: string;
	kind?: string;
	note?: string;
	size_bytes?: number;
	sha256?: string;
}
export interface Deliverable {
	id: string;
	at: string;
	by_agent_name?: string;
	result_summary: string;
	artifacts: Artifact[];
	checks?: Array<{ path?: string; check: string; ok: boolean; detail?: string; command?: string; exit_code?: number }>;
	findings?: string;
	cautions?: string;
	next?: string;
}
export interface Question {
	id: string;
	text: string;
	kind: string;
	options?: Array<string | { value?: string; label?: string; id?: string }>;
}
export interface Item {
	id: string;
	task_key: string;
	title: string;
	description?: string;
	status: string;
	priority: string;
	created_at: string;
	updated_at: string;
	archived_at?: string;
	child_of?: string;
	deliverables: Deliverable[];
	mounts: Array<{ mount_path: string; s3_relative_key?: string; mode: string; description?: string }>;
	checks?: Array<{ path?: string; command?: string; min_size?: number; matches?: string; json_schema?: unknown }>;
	assignments?: Array<{ id: string; status: string; role?: string; thread_id?: string; result_summary?: string }>;
	pending_question?: { id: string; questions: Question[] };
	pending_approval?: { id?: string; request_message_id?: string; message?: string; tools?: Array<{ tool_name: string; description?: string }> };
}
export interface Comment {
	id: string;
	body: string;
	author: string;
	created_at: string;
	resolved_at?: string;
	resolution_summary?: string;
}

export function columnOf(status: string): string {
	if (status === "completed") return "done";
	if (/^(failed|rejected|cancelled)$/.test(status)) return "ended";
	if (/^(claimed|in_progress)$/.test(status)) return "doing";
	return /^(blocked|needs_clarification|waiting_for_children)$/.test(status) ? "waiting" : "todo";
}

const tones: Record<string, string> = { done: "green", ended: "red", doing: "blue", waiting: "amber", todo: "plain" };
export const statusTone = (status: string): string => tones[columnOf(status)] ?? "plain";

export function boardApi(ws: Workspace, board: string) {
	const path = { workspace: ws.name, board }, of = (item: string) => ({ ...path, item }), headers = { "Content-Type": "application/json" };
	return {
		async boards(): Promise<Array<{ id: string; title: string }>> {
			return (await stead.json<{ boards: Array<{ id: string; title: string }> }>("list_boards", { path })).boards;
		},
		async items(): Promise<Item[]> {
			const all: Item[] = [];
			let cursor: string | undefined;
			do {
				const page = await stead.json<{ items: Item[]; next_cursor?: string }>("list_items", { path, query: { cursor, limit: 200 } });
				all.push(...page.items);
				cursor = page.next_cursor;
			} while (cursor && all.length < 2000);
			return all;
		},
		create: (body: FormData) => stead.json<{ item: Item }>("create_item", { path, body }),
		get: (item: string, signal?: AbortSignal) => stead.json<{ item: Item; journal?: string }>("get_item", { path: of(item), query: { with_journal: true }, signal }),
		update: (item: string, change: Record<string, unknown>) => stead.json("update_item", { path: of(item), body: JSON.stringify(change), headers }),
		archive: (item: string) => stead.json("archive_item", { path: of(item), body: "{}", headers }),
		unarchive: (item: string) => stead.json("unarchive_item", { path: of(item), body: "{}", headers }),
		async comments(item: string, signal?: AbortSignal): Promise<Comment[]> {
			return (await stead.json<{ comments: Comment[] }>("list_comments", { path: of(item), query: { limit: 200 }, signal })).comments;
		},
		comment: (item: string, body: FormData) => stead.json("comment_item", { path: of(item), body }),
		answer: (item: string, body: Record<string, unknown>) => stead.json("answer_question", { path: of(item), body: JSON.stringify(body), headers }),
		approve: (item: string, body: Record<string, unknown>) => stead.json("answer_approval", { path: of(item), body: JSON.stringify(body), headers }),
		async files(item: string, signal?: AbortSignal): Promise<Entry[]> {
			return (await stead.json<{ entries: Entry[] }>("list_item_files", { path: of(item), query: { recursive: true, limit: 1000 }, signal })).entries;
		},
		/** Writes a file that is not there yet. */
		add: (item: string, file: string, content: Blob) => stead.send("write_item_file", { path: { ...of(item), path: file }, headers: { "If-None-Match": "*" }, body: content }),
		remove: (item: string, file: string) => stead.send("delete_item_file", { path: { ...of(item), path: file } }),
		fileUrl: (item: string, file: string) => stead.address("read_item_file", { ...of(item), path: file }),
		link: (item: string, file: string, options = {}) => stead.link("create_item_link", of(item), file, options),
		/** The first bytes of a file. */
		read: (item: string, file: string, most: number, signal?: AbortSignal) => stead.send("read_item_file", { path: { ...of(item), path: file }, headers: { Range: `bytes=0-${most - 1}` }, signal }),
		events: (item: string, signal: AbortSignal) => stead.follow("item_events", of(item), {}, { signal }),
	};
}
export type BoardApi = ReturnType<typeof boardApi>;
