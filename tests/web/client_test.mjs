// SPDX-License-Identifier: Apache-2.0
// The TypeScript client and its React hooks against the real server: the client as Node runs it, the hooks in a browser.
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { check, equal, eventually, finish, openPage, sampleStore, serve, source, stead, test } from "./harness.mjs";

const require = createRequire(import.meta.url), esbuild = require("esbuild");
const client = join(source, "clients/typescript");
const { Stead, SteadError } = await import(join(client, "src/index.ts"));
const { fetchDescription, generate } = await import(join(client, "generate.mjs"));
const store = sampleStore("client"), url = await serve(store, "--open", "--origin", "http://127.0.0.1:1");
const server = new Stead({ url, project: "sample" }), ws = server.workspace("sample");

await test("the client and its hooks have no type errors", async () => {
	const done = spawnSync(process.execPath, [join(source, "web/node_modules/typescript/bin/tsc"), "--noEmit", "-p", join(source, "tests/web")], { encoding: "utf8" });
	equal(done.status, 0, done.stdout);
});

await test("every operation and tool that the client has a type for is as the server describes it", async () => {
	const wanted = generate(...(await fetchDescription(url, "sample"))), have = readFileSync(join(client, "src/generated.ts"), "utf8");
	const parts = (text) => new Map([...text.matchAll(/^\t(?:\/\*\*.*\*\/\n\t)?("?[\w-]+"?): \{\n([\s\S]*?)^\t\};/gm)].map(([, name, body]) => [name, body.replace(/\/\*\*.*?\*\/\s*/g, "")]));
	const now = parts(wanted), changed = [...parts(have)].filter(([name, body]) => now.get(name) !== body).map(([name]) => name);
	check(parts(have).size > 100, "there are types");
	console.log(`# without a type: ${[...now.keys()].filter((name) => !parts(have).has(name)).join(" ") || "none"}`);
	equal(changed, [], "changed in the server; run clients/typescript/generate.mjs");
});

await test("a file is written, replaced on condition, listed, read in part and removed", async () => {
	const first = await ws.write("a b/ü.txt", "hello");
	await ws.write("a b/ü.txt", "hello again", { ifVersion: first.version });
	const conflict = await ws.write("a b/ü.txt", "x", { ifVersion: first.version }).catch((error) => error);
	check(conflict instanceof SteadError && conflict.status === 412 && conflict.message.length > 10, "a conflict is an error with a sentence");
	equal((await ws.list("a b")).entries.map((one) => [one.path, one.size]), [["a b/ü.txt", 11]]);
	equal(await (await ws.read("a b/ü.txt", { range: [6, 10] })).text(), "again");
	await ws.remove("a b", { recursive: true });
	equal((await ws.stat("a b/ü.txt").catch((error) => error)).kind, "not_found");
});

await test("a tool is called, and its error is thrown", async () => {
	const found = await ws.tool("grep", { pattern: "ferr(y|ies)" });
	check(found.total_matches > 3, "lines are found");
	equal((await ws.tool("read_file", { path: "none.md" }).catch((error) => error)).kind, "not_found");
});

await test("events go on after the last one that was seen", async () => {
	const control = new AbortController(), seen = [];
	const { head } = await ws.tool("history", { limit: 1 });
	stead(store, ["-w", "sample", "write", "one.txt", "--content", "1"]);
	for await (const change of ws.events({ since: head, signal: control.signal })) {
		seen.push(change.path);
		if (seen.length === 1) stead(store, ["-w", "sample", "write", "two.txt", "--content", "2"]);
		else control.abort();
	}
	equal(seen, ["one.txt", "two.txt"]);
});

await test("an item is created with mounts refused, files attached, completed and downloaded under the names of Wacht", async () => {
	const { ai } = server, item = await ai.createProjectTaskBoardItemWithAttachments("sample", { title: "Sum up", description: "In one page" }, [new File(["in"], "in.txt")]);
	equal((await ai.listProjectTaskBoardItemFilesystem(item.id, { path: "/task/uploads" })).entries.map((one) => [one.name.replace(/^\d+_/, ""), one.kind, one.size_bytes > 0, one.path.startsWith("uploads/")]), [["in.txt", "file", true, true]]);
	const refused = await ai.createProjectTaskBoardItem("sample", { title: "x", mounts: [{ mount_path: "/task/source", s3_relative_key: "../x", mode: "ro" }] }).catch((error) => error);
	check(refused instanceof SteadError, "a key outside of the mount is refused");
	await server.send("write_item_file", { path: { workspace: "sample", board: "main", item: item.id, path: "artifacts/summary.md" }, body: "# Summary\n" });
	const done = await ai.updateProjectTaskBoardItem(item.id, { status: "completed", result_summary: "The whole study on one page, for the council.", artifacts: ["artifacts/summary.md"] });
	equal([done.status, done.deliverables[0].artifacts[0].path], ["completed", "/task/artifacts/summary.md"]);
	const { body, contentType } = await ai.downloadProjectTaskBoardItemFilesystemFile(item.id, { path: "/task/artifacts/summary.md" });
	equal([await new Response(body).text(), contentType], ["# Summary\n", "text/markdown; charset=utf-8"]);
	await ai.createProjectTaskBoardItemComment(item.id, { body: "Thanks" });
	equal((await ai.listProjectTaskBoardItemComments(item.id)).data.map((one) => one.body), ["Thanks"]);
	await ai.archiveProjectTaskBoardItem(item.id);
	equal((await ai.unarchiveProjectTaskBoardItem(item.id)).status, "completed");
});

await test("a_thread_has_files_and_runs_of_its_own", async () => {
	const { ai } = server, thread = await ai.createAgentThread("sample", { title: "Talk" });
	equal([thread.thread_purpose, thread.status], ["conversation", "idle"]);
	equal((await ai.listProjectThreads("sample")).map((one) => one.id).includes(thread.id), true);
	equal(await ai.runAgentThread(thread.id, { execution_type: { new_message: { message: "Look", files: [{ name: "in.txt", content: btoa("film") }] } } }), { status: "queued" });
	equal((await ai.listThreadFilesystem(thread.id)).entries.map((one) => one.name), ["uploads", "workspace"]);
	const [file] = (await ai.listThreadFilesystem(thread.id, "/uploads")).entries;
	const { body, contentType } = await ai.getThreadFilesystemFile(thread.id, file.path);
	equal([await new Response(body).text(), contentType], ["film", "text/plain; charset=utf-8"]);
	equal(typeof (await ai.listThreadMessages(thread.id, { limit: 5 })).has_more, "boolean");
	equal((await ai.updateAgentThread(thread.id, { title: "Talks" })).title, "Talks");
	equal((await ai.getAgentThread(thread.id)).project_id, "sample");
});
await test("the hooks show an item, its files and its comments as they change", async () => {
	const item = await server.ai.createProjectTaskBoardItem("sample", { title: "Watched" });
	const code = `
		import { createElement as h } from "react";
		import { createRoot } from "react-dom/client";
		import { Stead } from "${client}/src/index.ts";
		import { SteadProvider, useNotifications, useProjectTaskBoardItem, useProjectTaskBoardItemComments, useTaskWorkspaceFiles } from "${client}/src/react.ts";
		const id = location.hash.slice(1);
		function View() {
			const { item, loading, updateItem } = useProjectTaskBoardItem(id), { comments, createComment } = useProjectTaskBoardItemComments("sample", id), { entries } = useTaskWorkspaceFiles(id, "/task/artifacts");
			const { notifications } = useNotifications();
			if (loading && !item) return h("p", null, "loading");
			return h("div", null, h("h1", null, item.title), h("p", { id: "files" }, entries.map((one) => one.name).join()), h("p", { id: "comments" }, comments.map((one) => one.body).join()), h("p", { id: "notices" }, String(notifications.length)),
				h("button", { onClick: () => updateItem({ title: "Renamed" }) }, "rename"), h("button", { onClick: () => createComment("From the hook") }, "comment"));
		}
		createRoot(document.getElementById("root")).render(h(SteadProvider, { client: new Stead({ project: "sample" }) }, h(View)));`;
	const bundle = (await esbuild.build({ stdin: { contents: code, resolveDir: import.meta.dirname }, bundle: true, write: false, format: "esm", alias: { react: join(import.meta.dirname, "node_modules/react") }, define: { "process.env.NODE_ENV": '"production"' } })).outputFiles[0].text;
	// A page of an application with its own server, which passes requests on to Stead.
	const app = createServer(async (request, answer) => {
		if (request.url === "/") return answer.setHeader("Content-Type", "text/html").end('<!doctype html><title>App</title><div id="root"></div><script type="module" src="/app.js"></script>');
		if (request.url === "/app.js") return answer.setHeader("Content-Type", "text/javascript").end(bundle);
		const chunks = [];
		for await (const chunk of request) chunks.push(chunk);
		const reply = await fetch(url + request.url, { method: request.method, body: chunks.length ? Buffer.concat(chunks) : undefined, headers: { "Content-Type": request.headers["content-type"] ?? "" } }).catch(() => null);
		if (!reply) return answer.writeHead(404).end();
		answer.writeHead(reply.status, { "Content-Type": reply.headers.get("content-type") ?? "" });
		answer.flushHeaders();
		try {
			for await (const chunk of reply.body ?? []) answer.write(chunk);
		} catch { /* the page was closed */ }
		answer.end();
	});
	await new Promise((resolve) => app.listen(0, "127.0.0.1", resolve));
	try {
		const page = await openPage(`http://127.0.0.1:${app.address().port}/#${item.id}`);
		await page.getByRole("heading", { name: "Watched" }).waitFor();
		await server.send("write_item_file", { path: { workspace: "sample", board: "main", item: item.id, path: "artifacts/new.md" }, body: "x" });
		await eventually("the new file is shown", async () => (await page.locator("#files").innerText()) === "new.md");
		await page.getByRole("button", { name: "rename" }).click();
		await page.getByRole("heading", { name: "Renamed" }).waitFor();
		await page.getByRole("button", { name: "comment" }).click();
		await eventually("the comment is shown", async () => (await page.locator("#comments").innerText()) === "From the hook");
		page.problems = page.problems.filter((one) => !/404/.test(one)); /* the directory did not exist at first; no icon */
		return page;
	} finally {
		app.closeAllConnections();
		app.close();
	}
});

await finish();
