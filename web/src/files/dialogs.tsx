// SPDX-License-Identifier: Apache-2.0
// The questions that actions on files ask, and the progress of uploads.
import { Icon } from "../icons.tsx";
import { baseName, size } from "../format.ts";
import { Ask, Button } from "../ui.tsx";
import { filesActions, question, uploads } from "./actions.ts";

export function FileDialogs() {
	const asked = question.value;
	const close = () => {
		question.value = null;
	};
	return (
		<>
			{asked?.kind === "new" && (
				<Ask title="New file" label="Path" value={asked.dir ? asked.dir + "/" : ""} text="Directories in the path are created as needed." action="Create"
					onDone={(path) => filesActions.create(path)} onClose={close} />
			)}
			{asked?.kind === "rename" && (
				<Ask title={`Rename or move ${baseName(asked.path)}`} label="New path" value={asked.path} action="Move" onDone={(to) => filesActions.move(asked.path, to)} onClose={close} />
			)}
			{asked?.kind === "delete" && (
				<Ask title={`Delete ${baseName(asked.path)}?`} danger action="Delete" text={asked.isDir ? "Everything in it is deleted too. You can undo this." : "You can undo this, now or later from History."}
					onDone={() => filesActions.remove(asked.path, asked.isDir)} onClose={close} />
			)}
			{uploads.value.length > 0 && (
				<section class="uploads" aria-label="Uploads">
					<h2>Uploads</h2>
					<ul>
						{uploads.value.map((one) => (
							<li key={one.id}>
								<span class="upload-name" title={one.path}>{one.path}</span>
								{one.state === "exists" ? (
									<span class="row"><span class="hint">It already exists.</span><Button small onClick={() => filesActions.replace(one)}>Replace</Button><Button small kind="quiet" onClick={() => filesActions.skip(one)}>Skip</Button></span>
								) : one.state === "failed" ? (
									<span class="row"><span class="error-text">{one.error}</span><Button small kind="quiet" onClick={() => filesActions.skip(one)}>Dismiss</Button></span>
								) : one.state === "done" ? <span class="hint row"><Icon name="check" /> {size(one.size)}</span> : (
									<span class="row"><progress max={Math.max(1, one.size)} value={one.sent} aria-label={`Upload of ${one.path}`} /><span class="hint">{size(one.sent)} of {size(one.size)}</span></span>
								)}
							</li>
						))}
					</ul>
				</section>
			)}
		</>
	);
}
