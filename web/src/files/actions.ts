// SPDX-License-Identifier: Apache-2.0
// What can be done with files, from any screen. Every action can be taken back.
import { signal } from "@preact/signals";
import { currentWorkspace, done, go, href, route, stead, SteadError, undoOf, type Workspace } from "../state.ts";
import { baseName, joinPath, parentOf, plural } from "../format.ts";

export type Question =
	| { kind: "new"; dir: string }
	| { kind: "rename"; path: string; isDir: boolean }
	| { kind: "delete"; path: string; isDir: boolean };

export interface Upload {
	id: number;
	path: string;
	size: number;
	sent: number;
	state: "waiting" | "sending" | "done" | "exists" | "failed";
	error?: string;
	file: File;
	ws: Workspace;
}

const AT_ONCE = 3;
export const question = signal<Question | null>(null);
export const uploads = signal<Upload[]>([]);
let lastId = 0;

function update(id: number, change: Partial<Upload>): void {
	uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...change } : one));
}

/** Sends one file. Only XMLHttpRequest tells how much of a body was sent. */
function send(upload: Upload, replace: boolean): void {
	const request = new XMLHttpRequest();
	request.open("PUT", upload.ws.fileUrl(upload.path));
	for (const [name, value] of Object.entries(stead.headers())) request.setRequestHeader(name, value);
	if (!replace) request.setRequestHeader("If-None-Match", "*");
	request.upload.onprogress = (event) => update(upload.id, { sent: event.loaded });
	request.onload = () => {
		if (request.status < 300) update(upload.id, { state: "done", sent: upload.size });
		else if (request.status === 412) update(upload.id, { state: "exists" });
		else update(upload.id, { state: "failed", error: detailOf(request) });
		next();
	};
	request.onerror = () => {
		update(upload.id, { state: "failed", error: "the server cannot be reached" });
		next();
	};
	update(upload.id, { state: "sending" });
	request.send(upload.file);
}

function detailOf(request: XMLHttpRequest): string {
	try {
		return String((JSON.parse(request.responseText) as { detail?: string }).detail);
	} catch {
		return `the server answered with status ${request.status}`;
	}
}

function next(): void {
	const busy = uploads.value.filter((one) => one.state === "sending").length;
	for (const upload of uploads.value.filter((one) => one.state === "waiting").slice(0, Math.max(0, AT_ONCE - busy))) send(upload, false);
	const open = uploads.value.some((one) => one.state === "waiting" || one.state === "sending");
	const sent = uploads.value.filter((one) => one.state === "done");
	if (open || !sent.length || uploads.value.some((one) => one.state !== "done")) return;
	uploads.value = [];
	const ws = sent[0]?.ws as Workspace;
	done(`Uploaded ${sent.length === 1 ? baseName(sent[0]?.path ?? "") : plural(sent.length, "file")}`, async () => {
		for (const one of sent) await (await undoOf(ws, one.path))();
	});
}

/** The files below what was dropped, directories included. */
async function filesOf(items: DataTransferItemList): Promise<Array<{ path: string; file: File }>> {
	const found: Array<{ path: string; file: File }> = [];
	const visit = async (entry: FileSystemEntry, dir: string): Promise<void> => {
		if (entry.isFile) {
			const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
			found.push({ path: joinPath(dir, entry.name), file });
			return;
		}
		const reader = (entry as FileSystemDirectoryEntry).createReader();
		for (;;) {
			const list = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
			if (!list.length) return;
			for (const one of list) await visit(one, joinPath(dir, entry.name));
		}
	};
	/* The list is empty after the first await. */
	const dropped = [...items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
	for (const { entry, file } of dropped) {
		if (entry) await visit(entry, "");
		else if (file) found.push({ path: file.name, file });
	}
	return found;
}

export const filesActions = {
	ask(asked: Question): void {
		question.value = asked;
	},

	upload(dir: string, files: Array<{ path: string; file: File }>): void {
		const ws = currentWorkspace();
		uploads.value = [
			...uploads.value.filter((one) => one.state !== "done"),
			...files.map(({ path, file }): Upload => ({ id: ++lastId, path: joinPath(dir, path), size: file.size, sent: 0, state: "waiting", file, ws })),
		];
		next();
	},

	async drop(dir: string, transfer: DataTransfer): Promise<void> {
		this.upload(dir, await filesOf(transfer.items));
	},

	/** Lets the user choose files. */
	pick(dir: string): void {
		const input = document.createElement("input");
		input.type = "file";
		input.multiple = true;
		input.onchange = () => this.upload(dir, [...(input.files ?? [])].map((file) => ({ path: file.name, file })));
		input.click();
	},

	replace(upload: Upload): void {
		send(upload, true);
	},

	skip(upload: Upload): void {
		uploads.value = uploads.value.filter((one) => one.id !== upload.id);
		next();
	},

	async create(path: string): Promise<void> {
		const ws = currentWorkspace(), clean = path.replace(/^\/+/, "");
		await ws.write(clean, "", { isNew: true }).catch((error: unknown) => {
			if (error instanceof SteadError && error.status === 412) throw new Error(`${clean} already exists; choose another name`);
			throw error;
		});
		done(`Created ${clean}`, await undoOf(ws, clean));
		go(href("files", clean, { mode: "edit" }));
	},

	async move(from: string, to: string): Promise<void> {
		const ws = currentWorkspace(), clean = to.replace(/^\/+/, "");
		if (clean === from) return;
		await ws.tool("move_file", { from, to: clean });
		done(`Moved ${baseName(from)} to ${clean}`, await undoOf(ws, clean));
		if (route.value.rest === from) go(href("files", clean));
	},

	async remove(path: string, isDir: boolean): Promise<void> {
		const ws = currentWorkspace();
		await ws.remove(path, { recursive: isDir });
		const undo = await undoOf(ws, path);
		done(`Deleted ${baseName(path)}`, undo);
		if (route.value.rest === path || route.value.rest.startsWith(path + "/")) go(href("files", "", {}));
	},

	async download(ws: Workspace, path: string): Promise<void> {
		const link = document.createElement("a");
		link.download = baseName(path);
		link.href = stead.token ? await ws.link(path) : ws.fileUrl(path);
		link.click();
	},

	parentOf,
};
