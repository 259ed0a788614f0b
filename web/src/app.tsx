// SPDX-License-Identifier: Apache-2.0
// The frame around every screen: where you are, where you can go, and the keys that work everywhere.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { sentence } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Palette } from "./palette.tsx";
import {
	attempt, go, href, isNarrow, live, loadError, loadTools, loadWorkspaces, paletteOpen, route, setToken, sidebarOpen, tokenWanted, tools, undoToast, workspaces,
} from "./state.ts";
import { Button, Empty, Kbd, modifier, Skeleton, Toasts } from "./ui.tsx";
import { Workspaces } from "./screens/workspaces.tsx";
import { FileDialogs } from "./files/dialogs.tsx";
import { Files } from "./files/files.tsx";

interface Screen {
	name: string;
	title: string;
	icon: IconName;
	key: string;
	/** Loaded when it is first shown. */
	load: () => Promise<ComponentType>;
}

const now = (component: ComponentType) => () => Promise.resolve(component);
export const screens: Screen[] = [
	{ name: "files", title: "Files", icon: "folder", key: "f", load: now(Files) },
	{ name: "search", title: "Search", icon: "search", key: "s", load: () => import("./screens/search.tsx").then((m) => m.Search) },
	{ name: "history", title: "History", icon: "history", key: "h", load: () => import("./screens/history.tsx").then((m) => m.History) },
	{ name: "notebook", title: "Notebook", icon: "note", key: "n", load: () => import("./screens/notebook.tsx").then((m) => m.Notebook) },
	{ name: "memory", title: "Memory", icon: "memory", key: "m", load: () => import("./screens/memory.tsx").then((m) => m.Memory) },
	{ name: "board", title: "Board", icon: "board", key: "b", load: () => import("./screens/board.tsx").then((m) => m.Board) },
	{ name: "tasks", title: "Tasks", icon: "task", key: "t", load: () => import("./screens/tasks.tsx").then((m) => m.Tasks) },
	{ name: "sessions", title: "Sessions", icon: "chat", key: "c", load: () => import("./screens/sessions.tsx").then((m) => m.Sessions) },
	{ name: "activity", title: "Activity", icon: "pulse", key: "a", load: () => import("./screens/activity.tsx").then((m) => m.Activity) },
	{ name: "forks", title: "Forks", icon: "fork", key: "k", load: () => import("./screens/forks.tsx").then((m) => m.Forks) },
	{ name: "usage", title: "Usage", icon: "chart", key: "u", load: () => import("./screens/usage.tsx").then((m) => m.UsageScreen) },
	{ name: "settings", title: "Settings", icon: "settings", key: ",", load: () => import("./screens/settings.tsx").then((m) => m.Settings) },
];
const loaded = new Map<string, ComponentType>([["files", Files]]);

function ScreenView({ name }: { name: string }) {
	const [, setTurn] = useState(0), [missing, setMissing] = useState("");
	const screen = screens.find((one) => one.name === name);
	const View = loaded.get(name);
	const load = () => screen?.load().then((component) => {
		loaded.set(name, component);
		setTurn((n) => n + 1);
	}, () => setMissing(name));
	/* A server of another version has other files, so the page is loaded as a whole. */
	const again = () => void fetch("healthz").then(() => load()?.then(() => !loaded.has(name) && location.reload()), () => setMissing(name));
	useEffect(() => {
		if (!View) void load();
	}, [name]);
	useEffect(() => {
		if (missing === name && live.value) void load();
	}, [live.value]);
	if (missing === name && !View)
		return <Empty icon="alert" title="This screen could not be loaded" text="The server does not answer, or it was updated since this page was opened." action={<Button onClick={again}>Try again</Button>} />;
	if (!screen) return <Empty icon="question" title="There is no such screen" action={<a class="button" href={href("files")}>Go to the files</a>} />;
	return View ? <View /> : <div class="pad"><Skeleton /></div>;
}

function TokenForm() {
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		const token = String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim();
		setToken(token || undefined);
		void attempt(loadWorkspaces);
	};
	return (
		<main class="token-page">
			<form class="card stack" onSubmit={submit}>
				<h1>Sign in to Stead</h1>
				<p>This server requires a token. Whoever runs it creates one with:</p>
				<pre><code>stead token create NAME</code></pre>
				<label class="field">
					<span>Token</span>
					<input name="token" type="password" required autofocus autocomplete="off" spellcheck={false} />
				</label>
				{tokenWanted.value && <p class="error-text" role="alert">{sentence(tokenWanted.value)}</p>}
				<p class="hint">It is kept only in this tab, and forgotten when you close it.</p>
				<Button kind="main" type="submit">Sign in</Button>
			</form>
		</main>
	);
}

function Switcher() {
	const current = route.value.workspace ?? "";
	return (
		<label class="switcher">
			<span class="mark" aria-hidden="true">{current.slice(0, 1).toUpperCase()}</span>
			<span class="visually-hidden">Workspace</span>
			<select value={current} onChange={(event) => go(href("files", "", {}, event.currentTarget.value))}>
				{!(workspaces.value ?? []).some((one) => one.name === current) && <option value={current}>{current}</option>}
				{(workspaces.value ?? []).map(({ name }) => <option key={name} value={name}>{name}</option>)}
			</select>
			<Icon name="down" />
		</label>
	);
}

function Sidebar() {
	const { screen } = route.value;
	return (
		<>
			{sidebarOpen.value && <div class="scrim" onClick={() => (sidebarOpen.value = false)} />}
			<nav class={sidebarOpen.value ? "sidebar open" : "sidebar"} aria-label="Workspace">
				<div class="sidebar-top">
					<a class="button quiet only-icon" href="#/" aria-label="All workspaces" title="All workspaces"><Icon name="home" /></a>
					<Switcher />
				</div>
				<button type="button" class="search-button" onClick={() => (paletteOpen.value = true)}>
					<Icon name="search" /><span>Search…</span><Kbd>{`${modifier} K`}</Kbd>
				</button>
				<ul>
					{screens.map((one) => (
						<li key={one.name}>
							<a href={href(one.name)} aria-current={one.name === screen ? "page" : undefined} onClick={() => (sidebarOpen.value = false)}>
								<Icon name={one.icon} /><span>{one.title}</span><span class="key" aria-hidden="true">G {one.key.toUpperCase()}</span>
							</a>
						</li>
					))}
				</ul>
				<div class="sidebar-foot" role="status">
					<span class={live.value ? "dot on" : "dot"} />{live.value ? "Live" : "Connecting"}
				</div>
			</nav>
		</>
	);
}

function TopBar() {
	return (
		<div class="topbar">
			<Button kind="quiet" icon="menu" label="Menu" onClick={() => (sidebarOpen.value = true)} />
			<Switcher />
			<Button kind="quiet" icon="search" label="Search or jump to" onClick={() => (paletteOpen.value = true)} />
		</div>
	);
}

let prefix = 0; /* when "g" was pressed: the next key goes to a screen */

function onKey(event: KeyboardEvent) {
	const command = event.ctrlKey || event.metaKey, target = event.composedPath()[0] as HTMLElement;
	const typing = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
	if (command && event.key.toLowerCase() === "k") {
		event.preventDefault();
		if (route.value.workspace) paletteOpen.value = !paletteOpen.value;
		return;
	}
	if (typing || document.querySelector("dialog[open]")) return;
	if (command && event.key === "z" && !event.shiftKey) {
		event.preventDefault();
		void undoToast();
	}
	if (command || event.altKey || !route.value.workspace) return;
	if (event.key === "/") {
		event.preventDefault();
		paletteOpen.value = true;
	} else if (event.key === "g") {
		prefix = Date.now();
		return;
	} else if (Date.now() - prefix < 1500) {
		const screen = screens.find((one) => one.key === event.key);
		if (screen) {
			event.preventDefault();
			go(href(screen.name));
		}
	}
	prefix = 0;
}

export function App() {
	useEffect(() => {
		attempt(loadWorkspaces);
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
	const asked = useRef<string | null>(null), [, setTurn] = useState(0);
	const name = route.value.workspace, wanted = tokenWanted.value !== null;
	/* What may be done decides which buttons there are. A screen waits for it for a moment, so that nothing jumps. */
	const [impatient, setImpatient] = useState("");
	useEffect(() => {
		if (!name || wanted) return;
		void loadTools(name);
		const timer = setTimeout(() => setImpatient(name), 700);
		return () => clearTimeout(timer);
	}, [name, wanted, workspaces.value]);
	/* A workspace that is not in the list may be new: the list is loaded again before it is said to be missing. */
	const listed = !name || !workspaces.value || workspaces.value.some((one) => one.name === name), unknown = !listed && asked.current === name;
	useEffect(() => {
		if (!listed) void attempt(loadWorkspaces).then(() => {
			asked.current = name;
			setTurn((n) => n + 1);
		});
	}, [name, listed]);
	useEffect(() => {
		document.title = name ? `${name} · Stead` : "Stead";
		sidebarOpen.value = false;
	}, [name]);
	if (wanted) return <><TokenForm /><Toasts /></>;
	if (!workspaces.value)
		return loadError.value ? <main class="token-page"><Empty icon="alert" title="The server does not answer" text={loadError.value.message} action={<Button onClick={() => void attempt(loadWorkspaces)}>Try again</Button>} /></main> : null;
	if (name && unknown)
		return <main class="token-page"><Empty icon="home" title={`There is no workspace “${name}”`} text="It may have another name, or this token does not include it." action={<a class="button main" href="#/">All workspaces</a>} /></main>;
	if (!name) return <><Workspaces /><Toasts /></>;
	return (
		<div class="frame">
			<a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
			<Sidebar />
			<div class="main-column">
				{isNarrow.value && <TopBar />}
				<main id="main" tabIndex={-1} key={name}>{(tools.value[name] || impatient === name) && <ScreenView name={route.value.screen} />}</main>
			</div>
			{paletteOpen.value && <Palette />}
			<FileDialogs />
			<Toasts />
		</div>
	);
}
