// SPDX-License-Identifier: Apache-2.0
// The page in a real browser, against the real server.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { agentStore, axeSource, check, equal, eventually, finish, openPage, recorded, sampleStore, scratch, serve, source, stead, test, traceTasks } from "./harness.mjs";

const store = sampleStore("open"), url = await serve(store, "--open");
const at = (screen, rest = "") => `${url}/#/w/sample/${screen}${rest && `/${rest}`}`;
const write = (path, text) => stead(store, ["-w", "sample", "--agent", "scout", "write", path, "--mode", "overwrite"], text);
const read = (path) => stead(store, ["-w", "sample", "cat", path]);

await test("the sources of the page and of the client have no type errors", async () => {
	const done = spawnSync(process.execPath, [join(source, "web/node_modules/typescript/bin/tsc"), "--noEmit", "-p", join(source, "web")], { encoding: "utf8" });
	equal(done.status, 0, done.stdout);
});

await test("the first load is under 300 KB and asks no other host", async () => {
	const sizes = [];
	const page = await openPage(at("files"), { before: (one) => one.on("response", (answer) => sizes.push(answer.allHeaders().then((headers) => Number(headers["content-length"] ?? 0)))) });
	await page.getByRole("treeitem", { name: "README.md" }).waitFor();
	const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
	console.log(`# ${bytes} bytes in ${page.requests.length} requests`);
	check(bytes > 10_000 && bytes < 300_000, `${bytes} bytes were transferred`);
	equal(page.requests.filter((one) => !one.startsWith(url) && !one.startsWith("data:") && !one.startsWith("blob:")), [], "requests to other hosts");
	return page;
});

await test("files of the page are compressed, kept for ever and checked by their version", async () => {
	const html = await fetch(url, { headers: { "Accept-Encoding": "gzip" } }), asset = /assets\/[^"]+\.js/.exec(await html.text())[0];
	equal(html.headers.get("content-encoding"), "gzip");
	equal((await fetch(url, { headers: { "Accept-Encoding": "gzip", "If-None-Match": html.headers.get("etag") } })).status, 304);
	equal((await fetch(url, { headers: { "Accept-Encoding": "gzip;q=0" } })).headers.get("content-encoding"), null);
	check((await fetch(`${url}/${asset}`)).headers.get("cache-control").includes("immutable"), "an asset is immutable");
	check(/script-src 'self';/.test(html.headers.get("content-security-policy")), "scripts come from the server alone");
	equal((await fetch(`${url}/assets/none.js`)).status, 404);
});

await test("an address of a workspace that does not exist says so", async () => {
	const page = await openPage(`${url}/#/w/nothing-here/files`);
	await page.getByRole("heading", { name: "There is no workspace “nothing-here”" }).waitFor();
	await page.getByRole("link", { name: "All workspaces" }).click();
	await page.getByRole("heading", { name: "Workspaces" }).waitFor();
	return page;
});

await test("a folder opens in the tree, and a Markdown file is shown as a document", async () => {
	const page = await openPage(at("files"));
	await page.getByRole("treeitem", { name: "report" }).click();
	await page.getByRole("treeitem", { name: "draft.md" }).click();
	await page.getByRole("heading", { name: "Air quality at the harbour" }).waitFor();
	return page;
});

await test("the tree works by keyboard alone", async () => {
	const page = await openPage(at("files"));
	await page.getByRole("treeitem", { name: "charts" }).waitFor();
	await page.getByRole("tree").focus();
	for (const key of ["ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
	await page.getByRole("treeitem", { name: "pm25.svg" }).waitFor();
	for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
	await page.getByRole("img", { name: "pm25.svg" }).waitFor();
	return page;
});

await test("what a file contains never becomes code of the page", async () => {
	write("hostile.md", '# <img src=x onerror="document.title=1">\n\n<script>document.title = "taken"</script>\n\n[link](javascript:document.title=2) ![p](javascript:3)\n\n[odd](data:text/html,x) **<b>**\n');
	const page = await openPage(at("files", "hostile.md"));
	await page.getByText('<script>document.title = "taken"</script>').waitFor();
	equal(await page.locator(".markdown script, .markdown img, .markdown b").count(), 0, "elements made from the text");
	equal(await page.locator(".markdown a").count(), 0, "links with a scheme that runs code");
	equal(await page.title(), "sample · Stead");
	stead(store, ["-w", "sample", "rm", "hostile.md"]);
	return page;
});

await test("a change by another program appears without a reload", async () => {
	write("live.md", "# Before\n");
	const page = await openPage(at("files", "live.md"));
	await page.getByRole("heading", { name: "Before" }).waitFor();
	await page.getByText("Live", { exact: true }).waitFor();
	write("live.md", "# After\n");
	await page.getByRole("heading", { name: "After" }).waitFor();
	write("brand-new.txt", "x");
	await page.getByRole("treeitem", { name: "brand-new.txt" }).waitFor();
	stead(store, ["-w", "sample", "rm", "brand-new.txt"]);
	await page.getByRole("treeitem", { name: "brand-new.txt" }).waitFor({ state: "detached" });
	return page;
});

await test("an edit is saved with Ctrl+S and taken back with Undo", async () => {
	write("edit.py", "one = 1\n");
	const page = await openPage(at("files", "edit.py"));
	const text = page.locator(".cm-content[contenteditable=true]");
	await text.click();
	await page.keyboard.press("Control+End");
	await page.keyboard.type("two = 2");
	await page.keyboard.press("Control+s");
	await page.getByText("Saved edit.py").waitFor();
	equal(read("edit.py"), "one = 1\ntwo = 2");
	await page.getByRole("button", { name: "Undo" }).click();
	await eventually("the file is as before", () => read("edit.py") === "one = 1\n");
	await eventually("the editor shows it", async () => !(await text.innerText()).includes("two"));
	return page;
});

await test("an edit is not saved over the change of someone else", async () => {
	write("both.txt", "first\n");
	const page = await openPage(at("files", "both.txt"));
	await page.locator(".cm-content[contenteditable=true]").click();
	await page.keyboard.press("Control+Home");
	await page.keyboard.type("mine ");
	write("both.txt", "theirs\n");
	await page.getByText("changed by someone else").waitFor();
	equal(read("both.txt"), "theirs\n");
	await page.getByRole("button", { name: "Keep mine" }).click();
	await eventually("the edit is saved", () => read("both.txt") === "mine first\n");
	return page;
});

await test("files are uploaded with their names, and an existing one is not replaced unasked", async () => {
	const page = await openPage(at("files"));
	await page.getByRole("treeitem", { name: "README.md" }).waitFor();
	const choose = async (files) => {
		const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Upload files" }).click()]);
		await chooser.setFiles(files);
	};
	await choose([{ name: "up one.txt", mimeType: "text/plain", buffer: Buffer.from("1") }, { name: "ü.txt", mimeType: "text/plain", buffer: Buffer.from("2") }]);
	await page.getByText("Uploaded 2 files").waitFor();
	equal(read("up one.txt") + read("ü.txt"), "12");
	await choose([{ name: "up one.txt", mimeType: "text/plain", buffer: Buffer.from("new") }]);
	await page.getByText("It already exists.").waitFor();
	equal(read("up one.txt"), "1");
	await page.getByRole("button", { name: "Replace" }).click();
	await eventually("it is replaced", () => read("up one.txt") === "new");
	return page;
});

await test("a dropped file lands in the folder it was dropped on, also before the page knows its tools", async () => {
	let go;
	const dropped = new Promise((yes) => (go = yes));
	const page = await openPage(at("files"), { before: (one) => one.route("**/v1/workspaces/sample/tools?*", async (route) => { await dropped; await route.continue(); }) });
	const folder = page.getByRole("treeitem", { name: "charts" });
	await folder.waitFor();
	const transfer = await page.evaluateHandle(() => {
		const data = new DataTransfer();
		data.items.add(new File(["dropped"], "dropped.txt", { type: "text/plain" }));
		return data;
	});
	await folder.dispatchEvent("drop", { dataTransfer: transfer });
	go();
	await page.getByText("Uploaded dropped.txt").waitFor();
	equal(read("charts/dropped.txt"), "dropped");
	await page.getByRole("button", { name: "Undo" }).click();
	await eventually("the upload is undone", () => !stead(store, ["-w", "sample", "ls", "charts"]).includes("dropped"));
	return page;
});

await test("a deleted file comes back with Ctrl+Z", async () => {
	write("gone.txt", "still here");
	const page = await openPage(at("files", "gone.txt"));
	await page.getByRole("button", { name: "File actions" }).click();
	await page.getByRole("menuitem", { name: "Delete…" }).click();
	await page.getByRole("button", { name: "Delete", exact: true }).click();
	await page.getByText("Deleted gone.txt").waitFor();
	await page.keyboard.press("Control+z");
	await eventually("the file is back", () => {
		try {
			return read("gone.txt") === "still here";
		} catch {
			return false;
		}
	});
	return page;
});

await test("a search finds passages as it is typed, and leads to them", async () => {
	const page = await openPage(at("search"));
	await page.getByRole("searchbox").fill("auxiliary engines");
	await page.getByRole("link", { name: /draft\.md/ }).click();
	await page.getByRole("heading", { name: "What shore power would change" }).waitFor();
	return page;
});

await test("the command palette finds files by name and contents, and goes to screens", async () => {
	const page = await openPage(at("files"));
	await page.getByRole("treeitem", { name: "README.md" }).waitFor();
	await page.keyboard.press("Control+k");
	await page.keyboard.type("analys");
	await page.getByRole("option", { name: /analyse\.py/ }).first().waitFor();
	await page.keyboard.press("Control+a");
	await page.keyboard.type("go to hist");
	await page.keyboard.press("Enter");
	await page.getByRole("heading", { name: "History" }).waitFor();
	await page.keyboard.press("g");
	await page.keyboard.press("f");
	await page.getByRole("tree").waitFor();
	return page;
});

await test("the history shows what a change did, and restores a version with one click", async () => {
	write("story.md", "one\n");
	write("story.md", "two\n");
	const page = await openPage(at("history", "story.md"));
	await page.locator("tr.add", { hasText: "two" }).waitFor();
	await page.locator("tr.del", { hasText: "one" }).waitFor();
	await page.getByRole("link", { name: /added by/ }).click();
	await page.getByRole("button", { name: "Restore this version" }).click();
	await eventually("the old version is back", () => read("story.md") === "one\n");
	await page.getByRole("button", { name: "Undo", exact: true }).click();
	await eventually("the restore is undone", () => read("story.md") === "two\n");
	return page;
});

await test("pictures, sounds and PDFs are shown", async () => {
	const page = await openPage(at("files", "charts/pm25.svg"));
	await eventually("the picture is loaded", () => page.evaluate(() => document.querySelector(".media img")?.naturalWidth > 0));
	await page.goto(at("files", "interviews/harbour-bell.wav"));
	await eventually("the sound has a length", () => page.evaluate(() => document.querySelector("audio")?.duration === 2));
	await page.goto(at("files", "report/summary.pdf"));
	await page.locator("iframe.pdf").waitFor();
	return page;
});

await test("a directory of 100,000 files scrolls with few rows in the page", async () => {
	const dir = join(scratch, "open/sample/files/many");
	write("zz.txt", "the last of all");
	mkdirSync(dir);
	for (let i = 0; i < 100_000; i++) writeFileSync(join(dir, `file-${String(i).padStart(6, "0")}.txt`), "");
	const page = await openPage(at("settings")), listing = await traceTasks(page);
	await page.goto(at("files"));
	await page.getByRole("treeitem", { name: "many" }).click();
	await eventually("all are listed", () => page.evaluate(() => document.querySelector("#tree").scrollHeight >= 100_000 * 28));
	const listed = await listing(), moving = await traceTasks(page);
	await page.getByRole("tree").focus();
	await page.keyboard.press("End");
	await page.getByRole("treeitem", { name: "zz.txt" }).waitFor();
	for (let i = 0; i < 30; i++) await page.keyboard.press("PageUp");
	await page.evaluate(() => document.querySelector("#tree").scrollTo(0, 1_400_000));
	await page.getByRole("treeitem", { name: "file-050000.txt" }).waitFor();
	check((await page.getByRole("treeitem").count()) < 100, "only the visible rows exist");
	console.log(`# CPU ms of the longest task: ${listed} while it is listed, ${await moving()} while moving`);
	return page;
});

await test("with tokens the page asks for one, keeps it in the tab, and offers only what it allows", async () => {
	const closed = sampleStore("closed");
	const make = (...args) => JSON.parse(stead(closed, ["token", "create", "--json", ...args])).token;
	const admin = make("boss", "--access", "admin"), reader = make("reader", "--access", "read");
	const address = await serve(closed);
	const page = await openPage(`${address}/#/w/sample/files`);
	await page.getByLabel("Token").fill("wrong");
	await page.getByRole("button", { name: "Sign in" }).click();
	await page.getByRole("alert").filter({ hasText: /^This token is unknown/ }).first().waitFor();
	await page.getByLabel("Token").fill(reader);
	await page.getByRole("button", { name: "Sign in" }).click();
	await page.getByRole("treeitem", { name: "README.md" }).click();
	await eventually("the picture is fetched with the token", () => page.evaluate(() => document.querySelector(".markdown img")?.naturalWidth > 0));
	await page.getByRole("radio", { name: "Source" }).waitFor();
	equal(await page.getByRole("button", { name: "Upload files" }).count(), 0, "buttons to upload");
	equal(await page.evaluate(() => [Object.keys(sessionStorage), JSON.stringify(localStorage).includes("stead_")]), [["stead-token"], false]);
	const [played] = await Promise.all([page.waitForResponse((answer) => answer.url().includes("/links/")), page.goto(`${address}/#/w/sample/files/interviews/harbour-bell.wav`)]);
	equal(played.status(), 206, "the answer to a player's request");
	await eventually("the sound has a length", () => page.evaluate(() => document.querySelector("audio")?.duration === 2));
	const [saved] = await Promise.all([page.waitForEvent("download"), (async () => {
		await page.getByRole("button", { name: "File actions" }).click();
		await page.getByRole("menuitem", { name: "Download" }).click();
	})()]);
	equal(saved.suggestedFilename(), "harbour-bell.wav");
	await page.goto(`${address}/#/w/sample/tasks`);
	await page.locator(".board-card").first().waitFor();
	equal(await page.getByText("Drag a card").count(), 0, "words about what this token may not do");
	await page.goto(`${address}/#/w/sample/files`);
	await page.evaluate((token) => sessionStorage.setItem("stead-token", token), admin);
	await page.reload();
	await page.getByRole("button", { name: "Upload files" }).waitFor();
	return page;
});

await test("a note is written, found in the list, archived and brought back", async () => {
	const page = await openPage(at("notebook"));
	await page.getByRole("button", { name: "Note", exact: true }).click();
	await page.getByLabel("Title").fill("Wind matters");
	await page.getByLabel("Text, in Markdown").fill("The values fall with **strong wind**.");
	await page.getByRole("button", { name: "Write" }).click();
	await page.locator(".paper strong", { hasText: "strong wind" }).waitFor();
	await page.getByRole("button", { name: "Note actions" }).click();
	await page.getByRole("menuitem", { name: "Archive" }).click();
	const entry = page.locator(".split-list a", { hasText: "Wind matters" });
	await entry.waitFor({ state: "detached" });
	await page.locator(".toast", { hasText: "Archived" }).getByRole("button", { name: "Undo" }).click();
	await entry.waitFor();
	return page;
});

await test("memory shows where each fact comes from", async () => {
	const page = await openPage(at("memory"));
	const fact = page.locator(".fact", { hasText: "closed on Sundays" });
	await fact.getByText("from data/measurements.csv").waitFor();
	await fact.getByText("saved by scout").waitFor();
	await page.getByRole("searchbox").fill("heavy oil");
	await fact.waitFor({ state: "detached" });
	equal(await page.locator(".fact").count(), 1);
	return page;
});

await test("a filter of facts that fits none says so, and ends with another visit", async () => {
	const page = await openPage(at("memory?q=zebra"));
	await page.getByRole("heading", { name: "No fact has these words" }).waitFor();
	equal(await page.locator("ul.list").count(), 0, "empty lists");
	await page.goto(at("memory"));
	await page.getByText("5 facts").waitFor();
	return page;
});

await test("a list that is empty takes the whole screen, and times have one form", async () => {
	stead(store, ["init", "nothing"]);
	const page = await openPage(`${url}/#/w/nothing/history`);
	for (const [screen, text] of [["history", "No changes yet"], ["notebook", "No notes here yet"], ["sessions", "No conversations yet"]]) {
		await page.goto(`${url}/#/w/nothing/${screen}`);
		const box = await page.getByRole("heading", { name: text }).boundingBox(), all = await page.locator("main").boundingBox();
		check(Math.abs(box.x + box.width / 2 - (all.x + all.width / 2)) < 4, `"${text}" is in the middle`);
		equal(await page.locator(".detail").count(), 0, `empty halves of ${screen}`);
	}
	await page.goto(at("history"));
	check(/\b\d{1,2} [A-Z][a-z]+ \d{4}, \d{2}:\d{2} ·/.test(await page.locator(".detail .sub").innerText()), "the day is before the month, and there are 24 hours");
	return page;
});

await test("a screen that cannot be loaded says so, and is loaded when it can be", async () => {
	const page = await openPage(at("files"));
	await page.getByRole("treeitem", { name: "README.md" }).waitFor();
	await page.route("**/assets/usage*.js", (route) => route.abort());
	await page.goto(at("usage"));
	await page.getByRole("heading", { name: "This screen could not be loaded" }).waitFor();
	await page.unroute("**/assets/usage*.js");
	await page.getByRole("button", { name: "Try again" }).click();
	await page.getByRole("heading", { name: "Usage" }).waitFor();
	page.problems = page.problems.filter((one) => !/ERR_FAILED/.test(one)); // the browser's word for what was held back
	return page;
});

await test("a task is moved by dragging and by keyboard, and back by Undo", async () => {
	const page = await openPage(at("tasks"));
	const column = (name) => page.locator(".column").filter({ has: page.getByRole("heading", { name }) }), card = page.locator(".board-card", { hasText: "Estimate the cost" });
	await card.dragTo(column("Done"));
	await column("Done").getByText("Estimate the cost").waitFor();
	await page.getByRole("button", { name: "Undo" }).click();
	await column("To do").getByText("Estimate the cost").waitFor();
	await card.locator("[tabindex]").focus();
	await page.keyboard.press("Alt+ArrowRight");
	await column("In progress").getByText("Estimate the cost").waitFor();
	return page;
});

await test("a card that is moved by keyboard keeps the focus", async () => {
	const page = await openPage(at("tasks")), title = "Check the values of the park station for gaps";
	const inColumn = (name) => page.waitForFunction(([title, name]) => document.activeElement.ariaLabel === title && document.activeElement.closest("section").ariaLabel === name, [title, name]);
	await page.locator(".board-card[draggable=true]").first().waitFor(); // it is known that this client may move it
	await page.getByRole("group", { name: title }).focus();
	await page.keyboard.press("Alt+ArrowRight");
	await inColumn("In progress");
	await page.keyboard.press("Alt+ArrowRight");
	await inColumn("To check");
	await page.keyboard.press("Alt+ArrowLeft");
	await inColumn("In progress");
	await page.keyboard.press("Alt+ArrowLeft");
	await inColumn("To do");
	return page;
});

await test("a task is moved by choosing a column, as on a phone, where nothing can be dragged", async () => {
	const page = await openPage(at("tasks"), { width: 390, height: 844 });
	const column = (name) => page.locator(".column").filter({ has: page.getByRole("heading", { name }) });
	await page.getByLabel("Move “Check the values of the park station for gaps” to").selectOption({ label: "To check" });
	await column("To check").getByText("Check the values").waitFor();
	await page.getByRole("button", { name: "Undo" }).click();
	await column("To do").getByText("Check the values").waitFor();
	return page;
});

await test("what was typed into a dialog is not lost when a selection ends outside of it", async () => {
	const page = await openPage(at("tasks"));
	await page.getByRole("button", { name: "Task", exact: true }).click();
	const text = page.getByLabel("What to do"), dialog = page.locator("dialog.dialog");
	await text.fill("Write to the port");
	const box = await text.boundingBox(), outer = await dialog.boundingBox();
	await page.mouse.move(box.x + 60, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(outer.x - 40, box.y + 20);
	await page.mouse.up();
	await page.mouse.click(outer.x + 6, outer.y + outer.height - 6); /* its padding */
	equal(await text.inputValue(), "Write to the port");
	await page.mouse.click(outer.x - 40, box.y + 20);
	await dialog.waitFor({ state: "detached" });
	return page;
});

await test("an error in a dialog can be read and closed in front of it, and a menu is within the screen of a phone", async () => {
	const page = await openPage(`${url}/#/`, { width: 390, height: 844 });
	await page.getByRole("button", { name: "New workspace" }).click();
	await page.getByLabel("Name").fill("A B");
	await page.keyboard.press("Enter");
	const toast = page.locator("dialog .toast.error", { hasText: "the workspace name \"A B\" is not allowed" });
	await toast.getByRole("button", { name: "Dismiss" }).click();
	await toast.waitFor({ state: "detached" });
	page.problems.length = 0; /* the refusal */
	await page.keyboard.press("Escape");
	await page.goto(at("board"));
	await page.getByRole("link", { name: /Draw a map/ }).click();
	await page.getByRole("button", { name: "Item actions" }).click();
	const box = await page.getByRole("menu").boundingBox();
	check(box.x >= 0 && box.x + box.width <= 390, `the menu is at ${box.x}, ${box.width} wide`);
	return page;
});

await test("a page says when the changes since it was away are no longer known", async () => {
	let isFirst = true;
	const event = { revision: 999_999, path: "x.md", operation: "write", actor: {}, time: "2026-11-19T10:00:00Z", before: null, after: null };
	const page = await openPage(at("files"), { before: (page) => page.route(/\/events/, (route) => {
		if (!isFirst) return route.continue();
		isFirst = false;
		return route.fulfill({ contentType: "text/event-stream", body: `id: 999999\nevent: change\ndata: ${JSON.stringify(event)}\n\n` });
	}) });
	await page.locator(".toast.error", { hasText: "Reload the page" }).waitFor();
	return page;
});

await test("an item of a board is moved, answered and completed only when its checks pass, and follows changes", async () => {
	const page = await openPage(at("board"));
	const column = (name) => page.locator(".column").filter({ has: page.getByRole("heading", { name }) });
	await page.locator(".board-card", { hasText: "Draw a map" }).dragTo(column("In progress"));
	await column("In progress").getByText("Draw a map").waitFor();
	await page.getByRole("link", { name: /Write the letter/ }).click();
	await page.getByLabel("the whole team").check();
	await page.getByRole("button", { name: "Answer" }).click();
	await page.getByText("An agent asks").waitFor({ state: "detached" });
	await page.getByRole("link", { name: "Back to the board" }).click();
	await page.getByRole("link", { name: /Estimate the cost/ }).click();
	await page.getByRole("heading", { name: "Checks" }).waitFor();
	const id = page.url().split("/").pop(), put = (name, text) => {
		writeFileSync(join(scratch, "artifact"), text);
		stead(store, ["-w", "sample", "board", "put", id, join(scratch, "artifact"), name]);
	};
	put("artifacts/estimate.md", "# Estimate\n\nBetween one and two million.\n");
	await page.getByRole("button", { name: "artifacts/estimate.md", exact: true }).click();
	await page.locator("dialog").getByRole("heading", { name: "Estimate", exact: true }).waitFor();
	await page.keyboard.press("Escape");
	const complete = async () => {
		await page.getByRole("button", { name: "Complete…" }).click();
		await page.getByLabel("What was achieved").fill("It costs between one and two million, with reasons.");
		await page.getByRole("button", { name: "Check and complete" }).click();
	};
	await complete();
	await page.locator(".toast.error", { hasText: "estimate.json" }).waitFor();
	page.problems.length = 0; /* the refusal */
	await page.keyboard.press("Escape");
	await page.getByLabel("Add results").setInputFiles({ name: "estimate.json", mimeType: "application/json", buffer: Buffer.from("[1, 2]") });
	await page.getByRole("button", { name: "artifacts/estimate.json", exact: true }).waitFor();
	await complete();
	await page.getByRole("heading", { name: "It costs between one and two million" }).waitFor();
	await page.locator(".checks .green", { hasText: "estimate.json exists" }).waitFor();
	await page.getByLabel("Your comment").fill("Thank **you**");
	await page.locator(".comment-form input[type=file]").setInputFiles({ name: "invoice.txt", mimeType: "text/plain", buffer: Buffer.from("paid") });
	await page.locator(".file-picker", { hasText: "invoice.txt" }).waitFor();
	await page.getByRole("button", { name: "Comment" }).click();
	await page.locator(".message strong", { hasText: "you" }).waitFor();
	await page.getByRole("button", { name: /uploads\/.*_invoice\.txt$/ }).waitFor();
	check((await page.locator(".file-picker .hint").innerText()) === "", "the names go with the comment");
	return page;
});

await test("a conversation shows what was said and what tools did", async () => {
	const page = await openPage(at("sessions", "scout/study"));
	await page.getByText("Are the peaks at the terminal caused").last().waitFor();
	await page.locator(".tool-entry", { hasText: "edit_file" }).getByText("report/draft.md", { exact: true }).waitFor();
	await page.getByText("Called edit_file").click();
	await page.getByText('"new_text": "five of seven days"').waitFor();
	return page;
});

await test("a message to the agent shows what it does as it happens, and stays in the conversation", async () => {
	const own = `disk:${scratch}/talk`, recording = join(scratch, "recording.jsonl");
	stead(own, ["init", "sample"]);
	writeFileSync(recording, [[{ type: "tool_use", id: "c1", name: "write_file", input: { path: "said.md", content: "# Said\n" } }], "I wrote **said.md**.", "You are welcome."]
		.map((content) => JSON.stringify({ type: "message", role: "assistant", content })).join("\n") + "\n");
	writeFileSync(join(scratch, "talk/sample/agent.yaml"), `model: "replay:${recording}"\n`);
	const page = await openPage(`${await serve(own, "--open")}/#/w/sample/sessions/new`);
	const field = page.getByLabel("Message to the agent");
	await field.fill("Write it down");
	await field.press("Enter");
	await page.locator(".message.assistant strong", { hasText: "said.md" }).waitFor();
	await page.waitForURL(/sessions\/[^/]+\/page-/);
	equal(stead(own, ["-w", "sample", "cat", "said.md"]), "# Said\n");
	await field.fill("Thanks");
	await page.getByRole("button", { name: "Send" }).click();
	await page.getByText("You are welcome.").waitFor();
	await page.getByText("Called write_file").waitFor();
	return page;
});

await test("a call that needs approval waits for a person, and the turn goes on with the answer", async () => {
	const own = `disk:${scratch}/gated`, recording = join(scratch, "gated.jsonl");
	stead(own, ["init", "sample"]);
	writeFileSync(recording, [[{ type: "tool_use", id: "c1", name: "write_file", input: { path: "signed.md", content: "# Signed\n" } }], "It is signed.", [{ type: "tool_use", id: "c2", name: "write_file", input: { path: "second.md", content: "x" } }], "Then not."]
		.map((content) => JSON.stringify({ type: "message", role: "assistant", content })).join("\n") + "\n");
	writeFileSync(join(scratch, "gated/sample/agent.yaml"), `model: "replay:${recording}"\npolicy: {mode: interactive}\n`);
	const page = await openPage(`${await serve(own, "--open")}/#/w/sample/sessions/new`);
	const field = page.getByLabel("Message to the agent"), ask = page.getByRole("region", { name: "Approval" });
	await field.fill("Sign it");
	await field.press("Enter");
	await ask.getByText('"signed.md"').waitFor();
	equal(stead(own, ["-w", "sample", "ls"]).includes("signed.md"), false, "it is written unasked");
	await field.fill("Or not");
	await field.press("Enter");
	await page.getByText("The message was not sent").waitFor();
	equal(await field.inputValue(), "Or not", "what was typed is gone");
	await ask.getByRole("button", { name: "Approve" }).click();
	await page.getByText("It is signed.").waitFor();
	equal(stead(own, ["-w", "sample", "cat", "signed.md"]), "# Signed\n");
	await field.fill("And a second one");
	await field.press("Enter");
	await ask.getByRole("button", { name: "Deny" }).click();
	await page.getByText("Then not.").waitFor();
	equal(stead(own, ["-w", "sample", "ls"]).includes("second.md"), false, "a denied call was made");
	return page;
});

/** A model on this machine: each answer is {text} or {calls}, {status, after} for an error, or {half} for a text that breaks off. */
async function withModel(answers, act) {
	const http = createServer((req, res) => {
		req.resume().on("end", () => {
			const next = answers.shift() ?? { text: "nothing is left" }, event = (delta, reason = null) => `data: ${JSON.stringify({ id: "a", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
			if (next.status) return res.writeHead(next.status, { "content-type": "application/json", ...(next.after && { "retry-after": next.after }) }).end(JSON.stringify({ error: { message: next.why } }));
			res.writeHead(200, { "content-type": "text/event-stream" });
			if (next.half) return res.write(event({ content: next.half }), () => setTimeout(() => res.destroy(), 100));
			if (next.text) return res.end(event({ content: next.text }) + event({}, "stop"));
			return res.end(event({ tool_calls: next.calls.map(([name, input], index) => ({ index, id: `c${index}`, type: "function", function: { name, arguments: JSON.stringify(input) } })) }) + event({}, "tool_calls"));
		});
	});
	await new Promise((done) => http.listen(0, "127.0.0.1", done));
	try {
		return await act(`model: {model: "openai:m", base_url: "http://127.0.0.1:${http.address().port}/v1"}\n`);
	} finally {
		http.closeAllConnections();
		http.close();
	}
}

await test("a turn that waits says why, one that fails is shown once and goes on, and its message is not lost", () =>
	withModel([{ half: "Never mi" }, { status: 429, after: "1", why: "slow down" }, { text: "Here I am." }, { calls: [["write_file", { path: "kept.md", content: "x" }]] }, { status: 401, why: "no" }, { text: "It is done." }], async (config) => {
		const own = agentStore("failing", config), address = await serve(own, "--open"), page = await openPage(`${address}/#/w/sample/sessions/new`);
		const field = page.getByLabel("Message to the agent");
		await field.fill("Hello");
		await field.press("Enter");
		await page.getByRole("status").filter({ hasText: "asked again" }).filter({ hasText: "slow down" }).waitFor();
		equal(await page.getByText("Never mi").count(), 0, "what is void is still shown");
		await page.getByText("Here I am.").waitFor();
		await page.waitForURL(/sessions\/[^/]+\/page-/);
		await field.fill("Write it");
		await field.press("Enter");
		await page.locator(".toast.error", { hasText: "does not accept the key" }).waitFor();
		const goOn = page.getByRole("region", { name: "Open turn" }).getByRole("button", { name: "Go on" });
		await goOn.waitFor();
		equal(await page.getByText("Write it", { exact: true }).count(), 1, "the message");
		equal(await page.getByText("Called write_file").count(), 1, "the call");
		equal(await field.inputValue(), "", "the message is in the conversation, not in the field");
		await goOn.click();
		await page.getByText("It is done.").waitFor();
		await goOn.waitFor({ state: "detached" });
		writeFileSync(join(scratch, "failing/sample/agent.yaml"), "name: x\n");
		const other = await openPage(`${await serve(own, "--open")}/#/w/sample/sessions/new`);
		await other.getByLabel("Message to the agent").fill("Precious words");
		await other.getByLabel("Message to the agent").press("Enter");
		await other.locator(".toast.error", { hasText: "no model is chosen" }).waitFor();
		await eventually("the words are in the field again", async () => (await other.getByLabel("Message to the agent").inputValue()) === "Precious words");
		return page;
	}));

await test("a replay shows both runs side by side, with what differs marked, by keyboard and on a phone", async () => {
	const call = (path, text) => [{ type: "tool_use", id: "c1", name: "write_file", input: { path, content: text } }], usage = { input_tokens: 1200, output_tokens: 40 };
	const first = recorded("replay-one.jsonl", [call("plan.md", "The ferry leaves at noon.\n"), { content: "The plan is written in English.", usage }]);
	const second = recorded("replay-two.jsonl", [call("plan.md", "The ferry leaves at nine.\n"), { content: "The plan is written in Dutch.", usage: { ...usage, output_tokens: 50 } }]);
	const own = agentStore("replayed", `model:\n  provider: replay\n  model: "${first.slice(7)}"\n  fallback: [{model: "${second}", price: {input: 10, output: 100}}]\n`);
	stead(own, ["-w", "sample", "run", "--session", "trip", "Plan it"]);
	const page = await openPage(`${await serve(own, "--open")}/#/w/sample/sessions`, { width: 390, height: 844 });
	await page.getByRole("link", { name: /Plan it/ }).click();
	await page.getByRole("button", { name: "Replay" }).press("Enter");
	await page.getByLabel("From step").press("Enter");
	await page.getByRole("heading", { name: "Nothing differs" }).waitFor();
	await page.getByLabel("Model").fill(second);
	await page.getByLabel("Model").press("Enter");
	await page.getByRole("heading", { name: "2 steps and 1 file differ" }).waitFor();
	const side = (step, name) => page.getByRole("region", { name: `Step ${step}` }).getByRole("region", { name });
	equal(await side(2, "Before").locator("mark").allInnerTexts(), ["English"]);
	equal(await side(2, "After").locator("mark").allInnerTexts(), ["Dutch"]);
	await side(1, "After").locator(".differs", { hasText: "leaves at nine" }).waitFor();
	equal(await page.locator(".replay-numbers mark").allInnerTexts(), ["50", "$0.0170"], "what it used");
	const width = await page.evaluate(() => Math.max(...[...document.querySelectorAll("html, main, .file-body")].map((one) => one.scrollWidth)));
	check(width <= 390, `it is ${width} wide on a phone`);
	await page.evaluate(`(() => { ${axeSource} })()`);
	equal((await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }))).violations.filter((rule) => /serious|critical/.test(rule.impact)).map((rule) => rule.id), [], "violations");
	await page.getByLabel("From step").fill("9");
	await page.getByRole("button", { name: "Run" }).click();
	await page.locator(".toast.error", { hasText: "has 2 steps" }).waitFor();
	await page.getByRole("button", { name: "Conversation" }).click();
	await page.getByText("The plan is written in English.").waitFor();
	equal(stead(own, ["-w", "sample", "cat", "plan.md"]), "The ferry leaves at noon.\n");
	return page;
});

await test("a conflict of a fork is settled side by side and merged", async () => {
	const page = await openPage(at("forks"));
	await page.getByText("both changed the same lines").waitFor();
	await page.getByRole("button", { name: "Keep sample-short" }).click();
	await page.getByRole("button", { name: "Use this" }).click();
	await page.getByText("Everything in it is already merged.").waitFor();
	check(read("report/draft.md").includes("2. Two streets away it was fine.") && read("report/letter.md").includes("council"), "both files are merged");
	return page;
});

await test("usage is plotted by day", async () => {
	const page = await openPage(at("usage"));
	await page.getByRole("img", { name: /Tokens by day, 14 days/ }).waitFor();
	equal(await page.locator(".bar-in").count(), 14);
	return page;
});

/** A schedule, one that cannot be used, and the log of two runs. */
function writeSchedules(name) {
	const home = join(scratch, name, "sample");
	for (const dir of ["crons", "schedules"]) mkdirSync(join(home, dir), { recursive: true });
	writeFileSync(join(home, "crons/daily-report.yaml"), "schedule: '0 9 * * *'\nprompt: Report.\n");
	writeFileSync(join(home, "crons/broken.yaml"), "schedule: '61 9 * * *'\nprompt: Report.\n");
	const runs = [{ timestamp: "2026-11-17T09:00:01Z", schedule: "daily-report", due: "2026-11-17T09:00:00Z", outcome: "ran", session: "daily-report-20261117T090000Z", duration_ms: 900, response: "All is well." },
		{ timestamp: "2026-11-18T09:00:01Z", schedule: "daily-report", due: "2026-11-18T09:00:00Z", outcome: "error", error: "nothing answers at 127.0.0.1" }];
	writeFileSync(join(home, "schedules/log.jsonl"), runs.map((run) => JSON.stringify(run) + "\n").join(""));
}

await test("what the agent does by itself is shown, with what is next, what happened and what cannot be used", async () => {
	const alone = await serve(agentStore("alone", "heartbeat: {enabled: true}\n"), "--open"), page = await openPage(`${alone}/#/w/sample/activity`);
	await page.getByRole("region", { name: "Next" }).getByRole("cell", { name: "heartbeat" }).waitFor();
	writeSchedules("alone");
	await page.reload();
	await page.getByRole("region", { name: "Next" }).getByRole("cell", { name: "daily-report" }).waitFor();
	const before = page.getByRole("region", { name: "Recent" });
	await before.getByRole("cell", { name: "failed" }).waitFor();
	await before.getByText("nothing answers at 127.0.0.1").waitFor();
	await before.getByRole("link", { name: "conversation" }).waitFor();
	await page.getByRole("region", { name: "Files left out" }).getByText("crons/broken.yaml").waitFor();
	return page;
});

await test("a token is made in the settings, shown once, and revoked", async () => {
	const page = await openPage(at("settings"));
	await page.getByRole("button", { name: "New token" }).click();
	await page.getByLabel("Name").fill("robot");
	await page.getByRole("button", { name: "Make it" }).click();
	const secret = await page.locator("dialog code").innerText();
	await page.getByRole("button", { name: "Done" }).click();
	check(!(await page.content()).includes(secret), "the secret is shown once");
	await page.locator(".list-row", { hasText: "robot" }).getByRole("button", { name: "Revoke" }).click();
	await page.locator(".list-row", { hasText: "robot" }).waitFor({ state: "detached" });
	return page;
});

const screens = { home: "", files: "files/README.md", editor: "files/src/analyse.py", search: "search?q=ferry", history: "history/report/draft.md", notebook: "notebook", memory: "memory", board: "board", item: "board/ITEM", tasks: "tasks", sessions: "sessions/scout/study", activity: "activity", forks: "forks", usage: "usage", settings: "settings" };
const ready = { home: ".cards a", files: ".markdown img", editor: ".cm-content", search: ".hit", history: ".diff tr", notebook: ".change", memory: ".fact", board: ".board-card", item: ".deliverable", tasks: ".board-card", sessions: ".message", activity: ".activity", forks: ".fork .row.end, .fork .hint", usage: ".bars", settings: ".snippet" };

// Every screen once per size, in both themes. docs/images has what this writes: STEAD_SCREENSHOTS=docs/images.
const photographed = sampleStore("photographed");
writeSchedules("photographed");
const fresh = await serve(photographed, "--open");
const item = JSON.parse(stead(photographed, ["-w", "sample", "call", "list_items", "{}", "--json"])).items.find((one) => one.title === "Find the limits that apply").id;
const directory = process.env.STEAD_SCREENSHOTS;
if (directory) mkdirSync(directory, { recursive: true });

/** Shows all screens in one page of this size, and lets `look` see each of them in light and dark. */
async function showAll(width, height, look) {
	const page = await openPage(`${fresh}/`, { width, height });
	for (const name of Object.keys(screens)) {
		await page.goto(name === "home" ? `${fresh}/#/` : `${fresh}/#/w/sample/${screens[name].replace("ITEM", item)}`);
		await page.locator(name === "history" && width < 700 ? ".change" : ready[name]).first().waitFor();
		await page.waitForFunction(() => document.fonts.status === "loaded" && [...document.images].every((image) => image.complete));
		for (const colorScheme of ["light", "dark"]) {
			await page.emulateMedia({ colorScheme });
			await page.waitForFunction((want) => document.documentElement.dataset.theme === want, colorScheme);
			await look(page, name, colorScheme);
		}
	}
	return page;
}
const photograph = (page, name, size, colorScheme) => directory && page.screenshot({ path: join(directory, `page-${name}-${size}-${colorScheme}.png`) });

await test("on a phone a title is at the left, with its actions beside or below it", async () => {
	const [item] = JSON.parse(stead(store, ["-w", "sample", "call", "list_items", "{}", "--json"])).items;
	const page = await openPage("about:blank", { width: 390, height: 844 });
	for (const screen of ["history", "notebook", "memory", "tasks", "forks", `board/${item.id}`]) {
		await page.goto("about:blank"); // so that nothing of the screen before is measured
		await page.goto(at(screen));
		const actions = page.locator("main .head-actions").first();
		await actions.locator("button, a").first().waitFor();
		const [title, box] = await page.evaluate(() => ["main h1", "main .head-actions"].map((one) => document.querySelector(one).getBoundingClientRect().toJSON()));
		check(title.x < 80, `the title of ${screen} is at ${title.x}`);
		check(box.x >= title.x + title.width - 1 || box.y >= title.y + title.height, `the actions of ${screen} are over its title`);
		const rows = new Set(await actions.locator(":scope > *").evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().y / 20))));
		equal(rows.size, 1, `rows of the actions of ${screen}`);
	}
	return page;
});

await test("nothing jumps while a screen loads over a slow line, on a desktop and on a phone", async () => {
	const jumps = [];
	for (const [width, height] of [[1440, 900], [390, 844]])
		for (const screen of ["files/src/analyse.py", "history", "notebook", "memory", "board", "tasks", "sessions", "usage"]) {
			const page = await openPage("about:blank", { width, height });
			const line = await page.context().newCDPSession(page);
			await line.send("Network.emulateNetworkConditions", { offline: false, latency: 100, downloadThroughput: 500_000, uploadThroughput: 500_000 });
			await page.addInitScript(() => {
				window.jumped = 0;
				new PerformanceObserver((list) => { for (const one of list.getEntries()) window.jumped += one.value; }).observe({ type: "layout-shift", buffered: true });
			});
			await page.goto(`${url}/#/w/sample/${screen}`);
			await page.locator("main h1, main .cm-content").first().waitFor();
			let loaded = -1, now = 0; // until nothing more was loaded for a while
			while (loaded !== now || (await page.locator(".skeleton").count())) {
				loaded = now;
				await page.waitForTimeout(400);
				now = await page.evaluate(() => performance.getEntriesByType("resource").length);
			}
			const jumped = await page.evaluate(() => window.jumped);
			if (jumped > 0.02) jumps.push(`${screen} at ${width}: ${jumped.toFixed(3)}`);
			await page.context().close();
		}
	equal(jumps, [], "layout shifts");
});

await test("accessibility rules find nothing serious on any screen, in light and dark", async () => {
	const found = [];
	const page = await showAll(1440, 900, async (one, name, colorScheme) => {
		await photograph(one, name, "desktop", colorScheme);
		await one.evaluate(`window.axe ?? (() => { ${axeSource} })()`);
		/* The themes differ in nothing but colours. */
		const rules = colorScheme === "dark" ? { runOnly: { type: "rule", values: ["color-contrast"] } } : {};
		const { violations } = await one.evaluate((options) => window.axe.run(document, { ...options, resultTypes: ["violations"] }), rules);
		for (const rule of violations)
			if (rule.impact === "serious" || rule.impact === "critical") found.push(`${name}, ${colorScheme}: ${rule.id} (${rule.nodes.map((node) => node.target.join(" ")).slice(0, 3)})`);
	});
	equal(found, [], "violations");
	return page;
});

const widthOf = (page) => page.evaluate(() => Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll("main, .screen")].map((one) => one.scrollWidth)));
await test("no screen of a phone scrolls sideways", () => showAll(390, 844, async (page, name, colorScheme) => {
	await photograph(page, name, "phone", colorScheme);
	const width = await widthOf(page);
	check(width <= 390, `${name} is ${width} wide`);
}));

await test("a page of another origin may use the server when it is named, and of no other", async () => {
	const other = createServer((_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>Other</title>"));
	await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
	const origin = `http://127.0.0.1:${other.address().port}`, own = sampleStore("origins");
	const named = await serve(own, "--open", "--origin", origin), unnamed = await serve(own, "--open");
	const page = await openPage(origin);
	const use = (server) => page.evaluate(async (server) => {
		const file = `${server}/v1/workspaces/sample/files/from-elsewhere.md`;
		const written = await fetch(file, { method: "PUT", body: "x", headers: { "If-None-Match": "*" } });
		const missing = await fetch(`${server}/v1/workspaces/sample/files/none.md`);
		return [written.status, !!written.headers.get("ETag"), (await missing.json()).kind];
	}, server).catch(() => "refused");
	equal(await use(named), [201, true, "not_found"]);
	equal(await use(unnamed), "refused");
	page.problems.length = 0; /* the refusal */
	other.close();
	return page;
});

await test("words that are wider than a phone are broken", async () => {
	const own = `disk:${scratch}/words`, word = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamte".repeat(2);
	const call = (tool, args) => stead(own, ["-w", "sample", "call", tool, "-"], JSON.stringify(args));
	stead(own, ["init", "sample"]);
	call("write_file", { path: `deep/${word.slice(0, 100)}.md`, content: `harbour ${word}` });
	call("note", { title: word, content: word });
	call("memory_save", { content: word });
	call("create_item", { title: word, description: word });
	const [{ id }] = JSON.parse(stead(own, ["-w", "sample", "call", "list_items", "{}", "--json"])).items;
	call("ask_user", { item: id, questions: [{ id: "q", kind: "single_choice", text: `${word} ${word}`, options: [word, "no"] }] });
	const url = await serve(own, "--open"), page = await openPage(`${url}/#/`, { width: 390, height: 844 });
	for (const [screen, seen] of [["search?q=harbour", ".hit"], ["memory", ".fact"], ["notebook", ".change"], [`board/${id}`, ".ask"]]) {
		await page.goto(`${url}/#/w/sample/${screen}`);
		await page.locator(seen).first().waitFor();
		const width = await widthOf(page), inside = await page.locator(seen).first().evaluate((one) => one.scrollWidth - one.clientWidth);
		check(width <= 390 && inside <= 1, `${screen} is ${width} wide, and ${inside} too much within`);
	}
	return page;
});

await finish();
