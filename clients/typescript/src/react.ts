// SPDX-License-Identifier: Apache-2.0
// React hooks over task boards. They follow the server's events, so a component shows a change as it is made, without
// polling. Put <SteadProvider> around them: createElement(SteadProvider, { client }, …).
import { createContext, createElement, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import type { ActorProjects, Notice, TaskComment, TaskDownload, TaskFile, TaskItem } from "./ai.ts";
import type { Stead } from "./index.ts";

const Context = createContext<Stead | null>(null);

export function SteadProvider({ client, children }: { client: Stead; children?: ReactNode }) {
	return createElement(Context.Provider, { value: client }, children);
}

function useAi(projectId?: string): ActorProjects {
	const client = useContext(Context);
	if (!client) throw new Error("put <SteadProvider client={…}> around this component");
	return projectId ? client.project(projectId) : client.ai;
}

/** (taskId), or (projectId, taskId). */
const ids = (first: string, second?: string): [string | undefined, string] => (second === undefined ? [undefined, first] : [first, second]);

interface Loaded<T> {
	data: T | undefined;
	loading: boolean;
	error: Error | null;
	refetch: () => void;
}

/** Loads when `key` changes, and again on refetch(); the old value stays until the new one is there. */
function useLoaded<T>(key: string, load: () => Promise<T>): Loaded<T> {
	const [state, setState] = useState<{ data?: T; error: Error | null; key: string | null }>({ error: null, key: null });
	const [turn, setTurn] = useState(0), latest = useRef(load);
	latest.current = load;
	useEffect(() => {
		let gone = false;
		latest.current().then(
			(data) => !gone && setState({ data, error: null, key }),
			(error: Error) => !gone && setState((old) => ({ ...old, error, key })),
		);
		return () => {
			gone = true;
		};
	}, [key, turn]);
	const refetch = useCallback(() => setTurn((n) => n + 1), []);
	return { data: state.data, error: state.error, loading: state.key !== key, refetch };
}

/** Calls `onChange` after each change of the item. */
function useItemEvents(ai: ActorProjects, taskId: string, onChange: () => void): void {
	useEffect(() => {
		const control = new AbortController();
		void (async () => {
			try {
				for await (const change of ai.followProjectTaskBoardItem(taskId, control.signal)) if (change) onChange();
			} catch {
				/* The item is gone; what is loaded says so. */
			}
		})();
		return () => control.abort();
	}, [ai.project, taskId, onChange]);
}

/** The files of a directory of the item's /task. */
export function useTaskWorkspaceFiles(taskId: string, path = "/task") {
	const ai = useAi();
	const loaded = useLoaded(`${taskId} ${path}`, () => ai.listProjectTaskBoardItemFilesystem(taskId, { path }));
	useItemEvents(ai, taskId, loaded.refetch);
	return { entries: (loaded.data?.entries ?? []) as TaskFile[], loading: loaded.loading, error: loaded.error, refetch: loaded.refetch };
}

export function useProjectTaskBoardItem(first: string, second?: string) {
	const [projectId, taskId] = ids(first, second), ai = useAi(projectId);
	const loaded = useLoaded(`${ai.project} ${taskId}`, async () => {
		const [item, assignments, taskWorkspace] = await Promise.all([
			ai.getProjectTaskBoardItem(taskId), ai.listProjectTaskBoardItemAssignments(taskId), ai.listProjectTaskBoardItemFilesystem(taskId, {}),
		]);
		return { item, assignments: assignments.data, taskWorkspace };
	});
	useItemEvents(ai, taskId, loaded.refetch);
	const { refetch } = loaded;
	const changing = <A extends unknown[], T>(change: (...args: A) => Promise<T>) => async (...args: A): Promise<T> => {
		const result = await change(...args);
		refetch();
		return result;
	};
	return {
		item: loaded.data?.item as TaskItem | undefined,
		assignments: loaded.data?.assignments ?? [],
		taskWorkspace: loaded.data?.taskWorkspace,
		loading: loaded.loading,
		error: loaded.error,
		refetch,
		getTaskWorkspaceFile: (path: string) => ai.getProjectTaskBoardItemFilesystemFile(taskId, { path }),
		listTaskWorkspaceDirectory: (path: string) => ai.listProjectTaskBoardItemFilesystem(taskId, { path }),
		downloadTaskWorkspaceFile: (path: string): Promise<TaskDownload> => ai.downloadProjectTaskBoardItemFilesystemFile(taskId, { path }),
		updateItem: changing((change: Record<string, unknown>) => ai.updateProjectTaskBoardItem(taskId, change)),
		archiveItem: changing(() => ai.archiveProjectTaskBoardItem(taskId)),
		unarchiveItem: changing(() => ai.unarchiveProjectTaskBoardItem(taskId)),
		cancelItem: changing(() => ai.cancelProjectTaskBoardItem(taskId)),
		submitAnswer: changing((answer: Parameters<ActorProjects["answerProjectTaskBoardItem"]>[1]) => ai.answerProjectTaskBoardItem(taskId, answer)),
		submitApproval: changing((approval: Parameters<ActorProjects["approveProjectTaskBoardItem"]>[1]) => ai.approveProjectTaskBoardItem(taskId, approval)),
	};
}

export function useProjectTaskBoardItemComments(first: string, second?: string) {
	const [projectId, taskId] = ids(first, second), ai = useAi(projectId);
	const loaded = useLoaded(`${ai.project} ${taskId}`, () => ai.listProjectTaskBoardItemComments(taskId));
	useItemEvents(ai, taskId, loaded.refetch);
	return {
		comments: (loaded.data?.data ?? []) as TaskComment[],
		loading: loaded.loading,
		error: loaded.error,
		refetch: loaded.refetch,
		createComment: async (body: string, files: Blob[] = []): Promise<TaskComment> => {
			const made = await (files.length ? ai.createProjectTaskBoardItemCommentWithAttachments(taskId, { body }, files) : ai.createProjectTaskBoardItemComment(taskId, { body }));
			loaded.refetch();
			return made;
		},
	};
}

/** The thread's own files at the top, and functions for what is below. */
export function useAgentThreadFilesystem(threadId: string, path = "") {
	const ai = useAi();
	const loaded = useLoaded(`${threadId} ${path}`, () => ai.listThreadFilesystem(threadId, path));
	return {
		entries: (loaded.data?.entries ?? []) as TaskFile[],
		loading: loaded.loading,
		error: loaded.error,
		refetch: loaded.refetch,
		listDirectory: (directory: string) => ai.listThreadFilesystem(threadId, directory),
		getFile: (file: string): Promise<TaskDownload> => ai.getThreadFilesystemFile(threadId, file),
	};
}

export function useNotifications(projectId?: string) {
	const ai = useAi(projectId), [limit, setLimit] = useState(20);
	const loaded = useLoaded(`${ai.project} ${limit}`, () => ai.listNotifications({ limit }));
	const notifications = (loaded.data?.notices ?? []) as Notice[], { refetch } = loaded;
	const mark = async (which: string[]) => {
		await ai.markNotificationsAsRead(which);
		refetch();
	};
	return {
		notifications,
		hasMore: !!loaded.data?.next_cursor,
		loading: loaded.loading,
		error: loaded.error,
		loadMore: () => setLimit((n) => n + 20),
		markAsRead: (id: string) => mark([id]),
		markAllAsRead: () => mark(notifications.filter((one) => !one.is_read).map((one) => one.id)),
		refetch,
	};
}
