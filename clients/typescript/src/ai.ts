// SPDX-License-Identifier: Apache-2.0
// Task boards under the names that clients of Wacht use: a project is a workspace, and its board is the board "main".
// A method that needs a project takes it first, or uses the project that the client was made for.
import type { Change, Stead } from "./index.ts";

export interface TaskFile {
	name: string;
	/** Within /task. */
	path: string;
	kind: "file" | "directory";
	size_bytes: number;
	modified_at?: string;
}
export interface TaskFiles {
	entries: TaskFile[];
	mounts: TaskMount[];
	has_more: boolean;
	next_cursor?: string;
}
export interface TaskArtifact {
	path: string;
	kind?: string;
	note?: string;
	size_bytes?: number;
	sha256?: string;
}
export interface TaskDeliverable {
	id: string;
	at: string;
	result_summary: string;
	artifacts: TaskArtifact[];
	checks?: Array<{ path: string; check: string; ok: boolean }>;
	findings?: string;
	cautions?: string;
	next?: string;
}
export interface TaskMount {
	mount_path: string;
	s3_relative_key: string;
	mode: "ro" | "rw";
	description?: string;
}
export interface TaskItem {
	id: string;
	board_id: string;
	task_key: string;
	title: string;
	description?: string;
	status: string;
	priority: string;
	metadata: Record<string, unknown>;
	created_at: string;
	updated_at: string;
	completed_at?: string;
	archived_at?: string;
	state_version: number;
	deliverables: TaskDeliverable[];
	mounts: TaskMount[];
	pending_question?: { id: string; questions: Array<{ id: string; text: string; kind: string; options?: unknown[] }> };
	pending_approval?: Record<string, unknown>;
	[other: string]: unknown;
}
export interface TaskComment {
	id: string;
	body: string;
	author: string;
	created_at: string;
	resolved_at?: string;
	resolution_summary?: string;
}
export interface TaskPage<T> {
	data: T[];
	has_more: boolean;
	next_cursor?: string | null;
}
export interface NewTaskItem {
	title: string;
	description?: string;
	priority?: "urgent" | "high" | "neutral" | "low";
	mounts?: TaskMount[];
	checks?: Array<Record<string, unknown>>;
	metadata?: Record<string, unknown>;
	child_of?: string;
}
export interface TaskDownload {
	body: ReadableStream<Uint8Array> | null;
	contentType: string;
}
/** A lane of the board, or a conversation. */
export interface AgentThread {
	id: string;
	title: string;
	project_id: string;
	thread_purpose: string;
	status: string;
	responsibility?: string;
	execution_state?: { error?: string };
	[other: string]: unknown;
}
export interface NewAgentThread {
	title: string;
	thread_purpose?: "conversation" | "coordinator" | "execution" | "review";
	responsibility?: string;
	system_instructions?: string;
	capability_tags?: string[];
}
export interface ThreadMessage {
	id: string;
	thread_id: string;
	timestamp: string;
	message_type: "user_message" | "agent_response";
	content: { type: string; message?: string; response?: string };
}
export interface ThreadRun {
	execution_type: {
		/** The bytes of files are base64; they are stored in /uploads of the thread. */
		new_message?: { message: string; files?: Array<{ name: string; content: string; content_type?: string }> };
		approval_response?: { request_message_id?: string; approvals: Array<{ tool_name: string; mode: "allow_once" | "allow_always" }> };
		cancel?: Record<string, never>;
	};
}
export interface Notice {
	id: string;
	text?: string;
	is_read: boolean;
	[other: string]: unknown;
}

/** A form: text as it is, other values as JSON, files in the field "attachments". */
function formOf(fields: object, files: Blob[]): FormData {
	const form = new FormData();
	for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.set(name, typeof value === "string" ? value : JSON.stringify(value));
	for (const file of files) form.append("attachments", file);
	return form;
}

/** The server gives the entries of a directory in two forms; the paths are in the second one. */
function withPaths({ files, ...rest }: TaskFiles & { files: Array<{ path: string }> }): TaskFiles {
	return { ...rest, entries: rest.entries.map((entry, i) => ({ ...entry, path: files[i]?.path ?? entry.name })) };
}

const downloadOf = (answer: Response): TaskDownload => ({ body: answer.body, contentType: answer.headers.get("Content-Type") ?? "application/octet-stream" });

/** "/task/artifacts/a.md" and "artifacts/a.md" are the same file. */
const inTask = (path = "") => path.replace(/^\/?task(\/|$)/, "").replace(/^\/+/, "");

export class ActorProjects {
	/** The project that methods use that are not given one. */
	readonly project: string;
	private readonly stead: Stead;

	constructor(stead: Stead, project = "") {
		this.stead = stead;
		this.project = project;
	}

	private path(item = "", project = this.project): Record<string, string> {
		if (!project) throw new Error("name a project: new Stead({ project }), or the first argument");
		return { workspace: project, board: "main", item };
	}

	private async post<T>(id: Parameters<Stead["json"]>[0], path: Record<string, string>, fields: object, files: Blob[] = []): Promise<T> {
		return files.length
			? this.stead.json(id, { path, body: formOf(fields, files) })
			: this.stead.json(id, { path, body: JSON.stringify(fields), headers: { "Content-Type": "application/json" } });
	}

	/** A change whose answer has the item. */
	private async changed(id: Parameters<Stead["json"]>[0], path: Record<string, string>, fields: object, files: Blob[] = []): Promise<TaskItem> {
		return (await this.post<{ item: TaskItem }>(id, path, fields, files)).item;
	}

	async listProjectTaskBoardItems(projectId = this.project, query: { limit?: number; cursor?: string; status?: string } = {}): Promise<TaskPage<TaskItem>> {
		const page = await this.stead.json<{ items: TaskItem[]; next_cursor?: string }>("list_items", { path: this.path("", projectId), query });
		return { data: page.items, has_more: !!page.next_cursor, next_cursor: page.next_cursor };
	}
	createProjectTaskBoardItem(projectId: string, item: NewTaskItem): Promise<TaskItem> {
		return this.changed("create_item", this.path("", projectId), item);
	}
	createProjectTaskBoardItemWithAttachments(projectId: string, item: NewTaskItem, files: Blob[]): Promise<TaskItem> {
		return this.changed("create_item", this.path("", projectId), item, files);
	}
	delegateProjectTask(projectId: string, { target_lane_thread_id, ...task }: { title: string; description: string; target_lane_thread_id: string }): Promise<{ task_key: string; board_item_id: string }> {
		return this.post("delegate_item", this.path("", projectId), { ...task, thread_id: target_lane_thread_id });
	}
	async getProjectTaskBoardItem(taskId: string): Promise<TaskItem> {
		return (await this.stead.json<{ item: TaskItem }>("get_item", { path: this.path(taskId) })).item;
	}
	updateProjectTaskBoardItem(taskId: string, change: Record<string, unknown>): Promise<TaskItem> {
		return this.changed("update_item", this.path(taskId), change);
	}
	updateProjectTaskBoardItemWithAttachments(taskId: string, change: Record<string, unknown>, files: Blob[]): Promise<TaskItem> {
		return this.changed("update_item", this.path(taskId), change, files);
	}
	async listProjectTaskBoardItemAssignments(taskId: string): Promise<TaskPage<Record<string, unknown>>> {
		const item = await this.getProjectTaskBoardItem(taskId);
		return { data: (item.assignments ?? []) as Array<Record<string, unknown>>, has_more: false };
	}
	async listProjectTaskBoardItemFilesystem(taskId: string, options: { path?: string; recursive?: boolean; cursor?: string } = {}): Promise<TaskFiles> {
		return withPaths(await this.stead.json("wacht_list_files", { path: this.path(taskId), query: { ...options } }));
	}
	getProjectTaskBoardItemFilesystemFile(taskId: string, options: { path: string }): Promise<Record<string, unknown>> {
		return this.stead.json("preview_item_file", { path: this.path(taskId), query: { path: inTask(options.path) } });
	}
	async downloadProjectTaskBoardItemFilesystemFile(taskId: string, options: { path: string; signal?: AbortSignal }): Promise<TaskDownload> {
		return downloadOf(await this.stead.send("read_item_file", { path: { ...this.path(taskId), path: inTask(options.path) }, signal: options.signal }));
	}
	archiveProjectTaskBoardItem(taskId: string): Promise<TaskItem> {
		return this.changed("archive_item", this.path(taskId), {});
	}
	unarchiveProjectTaskBoardItem(taskId: string): Promise<TaskItem> {
		return this.changed("unarchive_item", this.path(taskId), {});
	}
	cancelProjectTaskBoardItem(taskId: string): Promise<TaskItem> {
		return this.changed("update_item", this.path(taskId), { status: "cancelled" });
	}
	answerProjectTaskBoardItem(taskId: string, answer: { answers?: Array<{ question_id: string; value: unknown }>; freeform_text?: string }): Promise<TaskItem> {
		return this.changed("answer_question", this.path(taskId), answer);
	}
	approveProjectTaskBoardItem(taskId: string, approval: { request_message_id: string; approvals: Array<{ tool_name: string; mode: "allow_once" | "allow_always" }> }): Promise<TaskItem> {
		return this.changed("answer_approval", this.path(taskId), approval);
	}
	async listProjectTaskBoardItemComments(taskId: string, query: { limit?: number; cursor?: string } = {}): Promise<TaskPage<TaskComment>> {
		const page = await this.stead.json<{ comments: TaskComment[]; next_cursor?: string }>("list_comments", { path: this.path(taskId), query });
		return { data: page.comments, has_more: !!page.next_cursor, next_cursor: page.next_cursor };
	}
	createProjectTaskBoardItemComment(taskId: string, comment: { body: string }): Promise<TaskComment> {
		return this.createProjectTaskBoardItemCommentWithAttachments(taskId, comment, []);
	}
	async createProjectTaskBoardItemCommentWithAttachments(taskId: string, comment: { body: string }, files: Blob[]): Promise<TaskComment> {
		return (await this.post<{ comment: TaskComment }>("comment_item", this.path(taskId), comment, files)).comment;
	}
	async listProjectThreads(projectId = this.project): Promise<AgentThread[]> {
		return (await this.stead.json<{ data: AgentThread[] }>("wacht_threads", { path: this.path("", projectId) })).data;
	}
	createAgentThread(projectId: string, thread: NewAgentThread): Promise<AgentThread> {
		return this.post("wacht_create_thread", this.path("", projectId), thread);
	}
	getAgentThread(threadId: string): Promise<AgentThread> {
		return this.stead.json("wacht_thread", { path: { thread: threadId } });
	}
	updateAgentThread(threadId: string, change: { title?: string; system_instructions?: string }): Promise<AgentThread> {
		return this.post("wacht_update_thread", { thread: threadId }, change);
	}
	/** The last messages, in order. */
	listThreadMessages(threadId: string, query: { limit?: number; before_id?: string; after_id?: string; board_item_id?: string } = {}): Promise<TaskPage<ThreadMessage>> {
		return this.stead.json("wacht_thread_messages", { path: { thread: threadId }, query });
	}
	/** The thread's own files: /workspace and /uploads. */
	async listThreadFilesystem(threadId: string, path = ""): Promise<TaskFiles> {
		return withPaths(await this.stead.json("wacht_thread_files", { path: { thread: threadId }, query: { path } }));
	}
	async getThreadFilesystemFile(threadId: string, path: string): Promise<TaskDownload> {
		return downloadOf(await this.stead.send("wacht_thread_file", { path: { thread: threadId }, query: { path } }));
	}
	/** Starts the run and does not wait for it: the messages and the thread's status tell how it goes. */
	runAgentThread(threadId: string, run: ThreadRun): Promise<{ status: string }> {
		return this.post("wacht_run", { thread: threadId }, run);
	}
	listNotifications(query: { limit?: number; cursor?: string; unread?: boolean } = {}): Promise<{ notices: Notice[]; next_cursor?: string }> {
		return this.stead.json("list_notices", { path: this.path(), query });
	}
	markNotificationsAsRead(ids: string[]): Promise<{ marked: number }> {
		return this.post("read_notices", this.path(), { ids });
	}
	/** The changes of an item, its comments and its files, as they are made. */
	followProjectTaskBoardItem(taskId: string, signal: AbortSignal): AsyncGenerator<Change> {
		return this.stead.follow("item_events", this.path(taskId), {}, { signal });
	}
}
