// SPDX-License-Identifier: Apache-2.0
// The tasks of TASKS.yaml, in columns by their status.
import { useState } from "preact/hooks";
import { Columns, type Card, type Column } from "../columns.tsx";
import { attempt, currentWorkspace, done, failed, may } from "../state.ts";
import { Badge, Button, Dialog, Empty, Head, Show, useLoad, useRefresh } from "../ui.tsx";
import { ago, fullTime } from "../format.ts";

interface Task {
	id: string;
	short_id: string;
	type: string;
	status: Status;
	priority: string;
	description: string;
	created_at: string;
	deadline?: string;
	notes?: string;
}
type Status = "pending" | "in_progress" | "awaiting_check" | "completed" | "failed" | "cancelled";

const columns: Column[] = [
	{ key: "pending", title: "To do" }, { key: "in_progress", title: "In progress", tone: "blue" }, { key: "awaiting_check", title: "To check", tone: "amber" },
	{ key: "completed", title: "Done", tone: "green" }, { key: "failed", title: "Failed", tone: "red" }, { key: "cancelled", title: "Cancelled" },
];
export const priorityTone: Record<string, string> = { urgent: "red", high: "amber", normal: "plain", low: "plain" };

function NewTask({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
	const ws = currentWorkspace();
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		try {
			const { task } = await ws.tool("create_task", { description: String(form.get("description")), priority: form.get("priority") as "normal" });
			done("Added the task", () => ws.tool("update_task", { task_id: String((task as { id: string }).id), status: "cancelled" }).then(onDone));
			onDone();
			onClose();
		} catch (error) {
			failed(error);
		}
	};
	return (
		<Dialog title="New task" onClose={onClose}>
			<form class="stack" onSubmit={submit}>
				<label class="field"><span>What to do</span><textarea name="description" required autofocus rows={4} /></label>
				<label class="field"><span>Priority</span><select name="priority">{["normal", "low", "high", "urgent"].map((one) => <option key={one}>{one}</option>)}</select></label>
				<div class="row end"><Button kind="quiet" onClick={onClose}>Cancel</Button><Button kind="main" type="submit">Add</Button></div>
			</form>
		</Dialog>
	);
}

export function Tasks() {
	const ws = currentWorkspace(), [adding, setAdding] = useState(false), writable = may("update_task");
	const list = useLoad(`tasks ${ws.name}`, (signal) => ws.tool("list_tasks", {}, signal));
	useRefresh(list.reload);
	const set = (id: string, status: Status) => ws.tool("update_task", { task_id: id, status }).then(list.reload);
	const move = (card: Card, column: Column) => void attempt(async () => {
		await set(card.id, column.key as Status);
		done(`Moved to ${column.title}`, () => set(card.id, card.column as Status));
	});
	const add = may("create_task") && <Button kind="main" icon="plus" onClick={() => setAdding(true)}>Task</Button>;
	return (
		<div class="screen full">
			<Head title="Tasks" sub={<>Work that continues after a conversation, kept in TASKS.yaml.{writable && <span class="by-keys"> Drag a card, or press Alt with an arrow key.</span>}</>} actions={add} />
			<Show of={list}>
				{(data) => {
					const tasks = data.tasks as unknown as Task[];
					if (!tasks.length) return <Empty icon="task" title="No tasks" text="Agents add work to come back to. Add a task yourself, and an agent finds it at its next heartbeat." action={add} />;
					return <Columns label="Tasks by status" columns={columns.filter((one) => one.key !== "cancelled" || tasks.some((task) => task.status === "cancelled"))} onMove={writable ? move : undefined} cards={tasks.map((task) => ({
						id: task.id, column: task.status, label: task.description,
						content: (
							<>
								<span class="card-title">{task.description}</span>
								<span class="card-meta"><Badge tone={priorityTone[task.priority]}>{task.priority}</Badge><Badge>{task.type}</Badge>{task.deadline && <span title={fullTime(task.deadline)}>due {ago(task.deadline)}</span>}<span>{ago(task.created_at)}</span></span>
							</>
						),
					}))} />;
				}}
			</Show>
			{adding && <NewTask onDone={list.reload} onClose={() => setAdding(false)} />}
		</div>
	);
}
