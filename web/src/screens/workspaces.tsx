// SPDX-License-Identifier: Apache-2.0
// The first screen: all workspaces of the store.
import { useState } from "preact/hooks";
import { Icon } from "../icons.tsx";
import { done, go, hasToken, href, loadWorkspaces, setToken, stead, tokenWanted, workspaces } from "../state.ts";
import { Ask, Button, Empty, Skeleton, useLoad } from "../ui.tsx";
import { plural } from "../format.ts";

export function Workspaces() {
	const [asking, setAsking] = useState(false), [filter, setFilter] = useState("");
	const all = workspaces.value, forks = useLoad(`forks ${all?.length ?? 0}`, async () => new Map((await stead.workspaces({ forks: true })).map((one) => [one.name, one.fork_of])));
	const shown = (all ?? []).filter(({ name }) => name.includes(filter.toLowerCase()));
	const create = async (name: string) => {
		const made = await stead.createWorkspace(name);
		await loadWorkspaces();
		done(made.created ? `Created the workspace ${name}` : `The workspace ${name} already exists`);
		go(href("files", "", {}, name));
	};
	const add = <Button kind="main" icon="plus" onClick={() => setAsking(true)}>New workspace</Button>;
	return (
		<main class="home">
			<header class="home-head">
				<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M7 16.5 16 8l9 8.5M10.5 15v8.5h11V15M14 23.5V19h4v4.5" /></svg>
				<div>
					<h1>Workspaces</h1>
					<p class="sub">{all ? plural(all.length, "workspace") : "Loading"}</p>
				</div>
				<div class="head-actions">
					{hasToken.value && <Button kind="quiet" onClick={() => { setToken(undefined); tokenWanted.value = ""; }}>Sign out</Button>}
					{all && all.length > 0 && add}
				</div>
			</header>
			{all && all.length > 8 && (
				<label class="field"><span class="visually-hidden">Filter by name</span>
					<input placeholder="Filter by name" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
			)}
			{!all && <Skeleton lines={4} />}
			{all && !all.length && (
				<Empty icon="home" title="No workspace yet" text={<>A workspace holds an agent's files. Create the first one here, or with <code>stead init NAME</code>.</>} action={add} />
			)}
			<ul class="cards">
				{shown.map(({ name }) => (
					<li key={name}>
						<a class="card link" href={href("files", "", {}, name)}>
							<span class="mark" aria-hidden="true">{name.slice(0, 1).toUpperCase()}</span>
							<span class="card-name"><strong>{name}</strong>{forks.data?.get(name) && <small>fork of {forks.data.get(name)}</small>}</span>
							<Icon name="chevron" />
						</a>
					</li>
				))}
			</ul>
			{asking && <Ask title="New workspace" label="Name" text="2 to 64 lower-case letters, digits, hyphens and underscores." action="Create" onDone={create} onClose={() => setAsking(false)} />}
		</main>
	);
}
