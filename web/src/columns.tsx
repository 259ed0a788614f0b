// SPDX-License-Identifier: Apache-2.0
// Columns of cards. A card is moved by dragging it, by keyboard (Alt with the left or right arrow), or by choosing a column.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Badge } from "./ui.tsx";

export interface Column {
	key: string;
	title: string;
	tone?: string;
	/** Cards cannot be put here by hand. */
	closed?: boolean;
}

export interface Card {
	id: string;
	column: string;
	label: string;
	href?: string;
	content: ComponentChildren;
}

/** Where nothing can be dragged, such as on a phone, and for those who would rather choose. */
function Move({ card, columns, onMove }: { card: Card; columns: Column[]; onMove: (card: Card, column: Column) => void }) {
	const choose = (select: HTMLSelectElement) => {
		const column = columns.find((one) => one.key === select.value);
		select.value = "";
		if (column) onMove(card, column);
	};
	return (
		<select class="card-move" aria-label={`Move “${card.label}” to`} title="Move to another column" onChange={(event) => choose(event.currentTarget)}>
			<option value="" hidden>Move</option>
			{columns.filter((one) => one.key !== card.column && !one.closed).map((one) => <option key={one.key} value={one.key}>{one.title}</option>)}
		</select>
	);
}

export function Columns({ label, columns, cards, onMove }: { label: string; columns: Column[]; cards: Card[]; onMove?: (card: Card, column: Column) => void }) {
	const [dragged, setDragged] = useState<string | null>(null), [over, setOver] = useState<string | null>(null);
	/* A card that a key moved is made anew in its column: the focus goes along. */
	const board = useRef<HTMLDivElement>(null), followed = useRef<{ id: string; column: string } | null>(null);
	useLayoutEffect(() => {
		const { id, column } = followed.current ?? {};
		if (!id || cards.find((one) => one.id === id)?.column !== column) return;
		followed.current = null;
		if (document.activeElement === document.body) board.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(id)}"] > :is(a, [role="group"])`)?.focus();
	});
	const move = (id: string | null, column: Column) => {
		const card = cards.find((one) => one.id === id);
		setDragged(null);
		setOver(null);
		if (card && card.column !== column.key && !column.closed) onMove?.(card, column);
	};
	const onKeyDown = (event: KeyboardEvent, card: Card) => {
		const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
		if (!event.altKey || !step || !onMove) return;
		event.preventDefault();
		for (let at = columns.findIndex((one) => one.key === card.column) + step; at >= 0 && at < columns.length; at += step) {
			const column = columns[at] as Column;
			if (column.closed) continue;
			followed.current = { id: card.id, column: column.key };
			return move(card.id, column);
		}
	};
	return (
		<div class="columns" ref={board} role="group" aria-label={label}>
			{columns.map((column) => {
				const own = cards.filter((card) => card.column === column.key), target = dragged !== null && !column.closed;
				return (
					<section key={column.key} class={`column${target && over === column.key ? " over" : ""}`} aria-label={column.title}
						onDragOver={(event) => { if (target) { event.preventDefault(); setOver(column.key); } }} onDragLeave={() => setOver(null)}
						onDrop={(event) => { event.preventDefault(); move(event.dataTransfer?.getData("text/plain") ?? dragged, column); }}>
						<h2><Badge tone={column.tone}>{column.title}</Badge><span class="hint">{own.length}</span></h2>
						<ul>
							{own.map((card) => (
								<li key={card.id} data-card={card.id} class={dragged === card.id ? "board-card dragged" : "board-card"} draggable={!!onMove} onKeyDown={(event) => onKeyDown(event, card)}
									onDragStart={(event) => { setDragged(card.id); event.dataTransfer?.setData("text/plain", card.id); }} onDragEnd={() => setDragged(null)}>
									{onMove && <Move card={card} columns={columns} onMove={onMove} />}
									{card.href ? <a class="card-link" href={card.href} draggable={false}>{card.content}</a> : <div tabIndex={0} role="group" aria-label={card.label}>{card.content}</div>}
								</li>
							))}
						</ul>
						{!own.length && <p class="hint column-empty">{target ? "Drop it here" : "Nothing here"}</p>}
					</section>
				);
			})}
		</div>
	);
}
