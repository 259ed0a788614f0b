// SPDX-License-Identifier: Apache-2.0
// Task boards: items in columns, moved by dragging or by keyboard. What a status needs, such as a result, is asked for.
import { useState } from "preact/hooks";
import { Columns, type Card, type Column } from "../columns.tsx";
import { attempt, currentWorkspace, done, failed, go, href, may, route } from "../state.ts";
import { Badge, Button, Dialog, Empty, FilePicker, Head, Show, useLoad, useRefresh } from "../ui.tsx";
import { ago, plural } from "../format.ts";
import { boardApi, columnOf, statusTone, type Item } from "./board_api.ts";
import { CompleteForm, ItemView, ReasonForm } from "./item.tsx";

const columns: Column[] = [
	{ key: "todo", title: "To do" }, { key: "doing", title: "In progress", tone: "blue" }, { key: "waiting", title: "Waiting", tone: "amber" },
	{ key: "done", title: "Done", tone: "green" }, { key: "ended", title: "Ended", tone: "red" },
];
/** The status that an item gets in a column, by hand. */
const target: Record<string, string> = { todo: "pending", doing: "in_progress", waiting: "blocked", ended: "cancelled" };
export const itemPriority: Record<string, string> = { urgent: "red", high: "amber", low: "plain" };

function NewItem({ board, onDone, onClose }: { board: string; onDone: () => void; onClose: () => void }) {
	const ws = currentWorkspace(), api = boardApi(ws, board);
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement), text = (name: string) => String(form.get(name) ?? "").trim();
		const body = new FormData();
		body.set("title", text("title"));
		if (text("description")) body.set("description", text("description"));
		body.set("priority", text("priority"));
		const checks = text("checks").split("\n").map((line) => line.trim()).filter(Boolean);
		if (checks.length) body.set("checks", JSON.stringify(checks.map((path) => ({ path }))));
		for (const file of form.getAll("files")) if (file instanceof File && file.size) body.append("attachments", file);
		try {
			const { item } = await api.create(body);
			done(`Added “${item.title}”`, () => api.archive(item.id).then(onDone));
			onDone();
			onClose();
		} catch (error) {
			failed(error);
		}
	};
	return (
		<Dialog title="New item" onClose={onClose}>
			<form class="stack" onSubmit={submit}>
				<label class="field"><span>Title</span><input name="title" required autofocus autocomplete="off" /></label>
				<label class="field"><span>Brief: what to do, and why</span><textarea name="description" rows={5} /></label>
				<label class="field"><span>Files that must exist at the end, one per line</span><textarea name="checks" rows={2} class="short" placeholder="artifacts/report.md" /></label>
				<div class="field"><span>Files for the agent</span><FilePicker name="files" /></div>
				<label class="field"><span>Priority</span><select name="priority">{["neutral", "low", "high", "urgent"].map((one) => <option key={one}>{one}</option>)}</select></label>
				<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit">Add</Button></div>
			</form>
		</Dialog>
	);
}

/** The status that the title of a column says already. */
const usual: Record<string, string> = { todo: "pending", doing: "in_progress", done: "completed" };

function cardOf(item: Item, board: string): Card {
	const result = item.deliverables.at(-1);
	return {
		id: item.id, column: columnOf(item.status), label: item.title, href: href("board", item.id, { board: board === "main" ? undefined : board }),
		content: (
			<>
				<span class="card-title">{item.title}</span>
				{result && <span class="hint clamp">{result.result_summary}</span>}
				<span class="card-meta">
					{item.status !== usual[columnOf(item.status)] && <Badge tone={statusTone(item.status)}>{item.status.replaceAll("_", " ")}</Badge>}
					{item.priority !== "neutral" && <Badge tone={itemPriority[item.priority]}>{item.priority}</Badge>}
					{item.pending_question && <Badge tone="amber" icon="question">asks</Badge>}
					{item.pending_approval && <Badge tone="amber" icon="key">wants approval</Badge>}
					{result && <span>{plural(result.artifacts.length, "file")}</span>}
					<span>{ago(item.updated_at)}</span>
				</span>
			</>
		),
	};
}

export function Board() {
	const ws = currentWorkspace(), board = route.value.query.get("board") ?? "main", chosen = route.value.rest, api = boardApi(ws, board);
	const [adding, setAdding] = useState(false), [moving, setMoving] = useState<{ id: string; status: string } | null>(null);
	const boards = useLoad(`boards ${ws.name}`, () => api.boards());
	const list = useLoad(`board ${ws.name} ${board}`, () => api.items());
	useRefresh(list.reload, 3000);
	if (chosen) return <ItemView key={chosen} id={chosen} board={board} />;
	const set = (id: string, status: string) => api.update(id, { status }).then(list.reload);
	const move = (card: Card, column: Column) => {
		const status = target[column.key], before = target[card.column];
		if (column.key === "done" || column.key === "waiting") return setMoving({ id: card.id, status: status ?? "completed" });
		void attempt(async () => {
			await set(card.id, status ?? "pending");
			done(`Moved to ${column.title}`, before && before !== "blocked" ? () => set(card.id, before) : undefined);
		});
	};
	const add = may("create_item") && <Button kind="main" icon="plus" onClick={() => setAdding(true)}>Item</Button>;
	return (
		<div class="screen full">
			<Head title="Board" sub={<>Work for agents, with its own files and checked results.{may("update_item") && <span class="by-keys"> Drag a card, or press Alt with an arrow key.</span>}</>}
				actions={<>
					{(boards.data?.length ?? 0) > 1 && <label><span class="visually-hidden">Board</span><select class="select" value={board} onChange={(event) => go(href("board", "", { board: event.currentTarget.value }))}>{boards.data?.map((one) => <option key={one.id} value={one.id}>{one.title}</option>)}</select></label>}
					{add}
				</>} />
			<Show of={list}>
				{(items) => items.length ? <Columns label="Items by status" columns={columns} onMove={may("update_item") ? move : undefined} cards={items.map((item) => cardOf(item, board))} />
					: <Empty icon="board" title="Nothing on this board" text={<>Add an item: say what you need, and which files must exist at the end. Agents find it with <code>list_items</code>, and it is done when its checks pass.</>} action={add} />}
			</Show>
			{adding && <NewItem board={board} onDone={list.reload} onClose={() => setAdding(false)} />}
			{moving?.status === "completed" && <CompleteForm api={api} id={moving.id} onDone={list.reload} onClose={() => setMoving(null)} />}
			{moving && moving.status !== "completed" && <ReasonForm api={api} id={moving.id} status={moving.status} onDone={list.reload} onClose={() => setMoving(null)} />}
		</div>
	);
}
