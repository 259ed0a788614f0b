// SPDX-License-Identifier: Apache-2.0
// Pictures of every screen, for people to look at: with the sample, with an empty workspace and with 100,000 files, on a
// desktop and on a phone, in light and dark; and what opens over a screen. It is not a test:
//   tests/web/run-page build/stead tests/web/pictures.mjs      (PICTURES: the directory, by default /tmp/stead-pictures)
// Each sheet in sheets/ has the same pictures of one kind, smaller.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finish, openPage, sampleStore, scratch, serve, stead, test } from "./harness.mjs";

const directory = process.env.PICTURES ?? "/tmp/stead-pictures";
const only = new RegExp(process.env.SCREENS ?? "");
mkdirSync(join(directory, "sheets"), { recursive: true });
const sizes = { desktop: [1440, 900], phone: [390, 844] };

const store = sampleStore("pictures");
stead(store, ["init", "empty"]);
stead(store, ["init", "large"]);
const many = join(scratch, "pictures/large/files/measurements");
mkdirSync(many, { recursive: true });
for (let i = 0; i < 100_000; i++) writeFileSync(join(many, `station-${String(i).padStart(6, "0")}.txt`), "");
writeFileSync(join(scratch, "pictures/large/files/README.md"), "# Measurements\n\nOne file for each station.\n");
const url = await serve(store, "--open");
const items = JSON.parse(stead(store, ["-w", "sample", "call", "list_items", "{}", "--json"])).items;
const itemOf = (title) => items.find((one) => one.title === title).id;

const screens = ["files", "search", "history", "notebook", "memory", "board", "tasks", "sessions", "activity", "forks", "usage", "settings"];
const full = {
	home: "", files: "files/README.md", editor: "files/src/analyse.py", data: "files/data/measurements.csv", chart: "files/charts/pm25.svg", search: "search?q=ferry", history: "history/report/draft.md",
	notebook: "notebook", memory: "memory", board: "board", item: `board/${itemOf("Find the limits that apply")}`, question: `board/${itemOf("Write the letter to the council")}`, tasks: "tasks", sessions: "sessions/scout/study", activity: "activity", forks: "forks", usage: "usage", settings: "settings",
};
const sets = {
	sample: Object.entries(full).map(([name, rest]) => [name, name === "home" ? `${url}/#/` : `${url}/#/w/sample/${rest}`]),
	empty: screens.map((name) => [name, `${url}/#/w/empty/${name}`]),
	large: [["files", "files/measurements/station-050000.txt"], ["folder", "files"], ["search", "search?q=station-0999"], ["history", "history"]].map(([name, rest]) => [name, `${url}/#/w/large/${rest}`]),
	missing: [["workspace", `${url}/#/w/nothing-here/files`], ["file", `${url}/#/w/sample/files/none.md`], ["item", `${url}/#/w/sample/board/1`]],
};

/** Nothing is loading, and two frames were drawn since. */
async function settle(page) {
	await page.waitForLoadState("load");
	await page.waitForFunction(() => document.fonts.status === "loaded" && [...document.images].every((image) => image.complete));
	await page.waitForFunction(() => !document.querySelector(".skeleton")).catch(() => {}); // a first search of 100,000 files may take longer
	let last = "";
	for (let same = 0; same < 3;) {
		const now = await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(document.body.innerHTML)))));
		same = now === last ? same + 1 : 0;
		last = now;
		await page.waitForTimeout(60);
	}
}

const taken = {};
async function take(page, set, name, size) {
	for (const colorScheme of ["light", "dark"]) {
		await page.emulateMedia({ colorScheme });
		await page.waitForFunction((want) => document.documentElement.dataset.theme === want, colorScheme);
		const path = join(directory, `${set}-${name}-${size}-${colorScheme}.png`);
		await page.screenshot({ path });
		(taken[`${set}-${size}-${colorScheme}`] ??= []).push(path);
	}
}

/** What opens over a screen. */
const overlays = {
	palette: async (page) => { await page.keyboard.press("Control+k"); await page.locator("dialog[open], .palette").first().waitFor(); },
	typed: async (page) => { await page.keyboard.press("Control+k"); await page.locator("dialog[open] input, .palette input").first().fill("draft"); },
	item: async (page) => { await page.goto(`${url}/#/w/sample/board`); await page.getByRole("button", { name: "Item" }).click(); },
	fact: async (page) => { await page.goto(`${url}/#/w/sample/memory`); await page.getByRole("button", { name: "Fact" }).first().click(); },
	note: async (page) => { await page.goto(`${url}/#/w/sample/notebook`); await page.getByRole("button", { name: "Note" }).first().click(); },
	token: async (page) => { await page.goto(`${url}/#/w/sample/settings`); await page.getByRole("button", { name: /token/i }).first().click(); },
	change: async (page) => { await page.goto(`${url}/#/w/sample/history`); await page.locator(".change").first().click(); },
	tree: async (page) => { await page.goto(`${url}/#/w/sample/files`); },
	actions: async (page) => { await page.getByRole("button", { name: "File actions" }).click(); },
	menu: async (page) => { const button = page.getByRole("button", { name: /menu|navigation/i }).first(); if (await button.isVisible()) await button.click(); },
};

for (const [size, [width, height]] of Object.entries(sizes)) {
	for (const [set, list] of Object.entries(sets)) {
		await test(`${set}, ${size}`, async () => {
			const page = await openPage(`${url}/#/`, { width, height });
			for (const [name, address] of list) {
				if (!only.test(`${set}-${name}`)) continue;
				await page.goto(address);
				await settle(page);
				await take(page, set, name, size);
			}
		});
	}
	await test(`overlays, ${size}`, async () => {
		for (const [name, open] of Object.entries(overlays)) {
			if (!only.test(`overlay-${name}`)) continue;
			const page = await openPage(`${url}/#/w/sample/files/README.md`, { width, height });
			await settle(page);
			await page.locator("main").focus();
			await open(page);
			await settle(page);
			await take(page, "overlay", name, size);
		}
	});
}

await test("sheets", async () => {
	for (const [name, paths] of Object.entries(taken)) {
		const wide = name.includes("desktop"), columns = wide ? 2 : 5, rows = wide ? 2 : 2;
		for (let i = 0; i * columns * rows < paths.length; i++) {
			const part = paths.slice(i * columns * rows, (i + 1) * columns * rows);
			const cells = part.map((path) => `<figure><img width="${wide ? 960 : 380}" src="data:image/png;base64,${readFileSync(path).toString("base64")}"><figcaption>${path.split("/").pop()}</figcaption></figure>`);
			const page = await openPage("about:blank", { width: 1940, height: wide ? 1270 : 1730 });
			await page.setContent(`<style>body{margin:0;background:#888;display:grid;grid-template-columns:repeat(${columns},auto);gap:6px;font:14px sans-serif}figure{margin:0}</style>${cells.join("")}`);
			await settle(page);
			await page.screenshot({ path: join(directory, "sheets", `${name}-${i + 1}.png`) });
			await page.context().close();
		}
	}
});

await finish();
