// SPDX-License-Identifier: Apache-2.0
// The parts that every screen is made of.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { sentence } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { dismiss, failed, onChange, SteadError, toasts, undoToast } from "./state.ts";

/* --- loading --- */

export interface Loaded<T> {
	data: T | undefined;
	error: Error | null;
	loading: boolean;
	reload: () => void;
}

/** Loads something when `key` changes. While it loads again, the old value stays, so that nothing jumps. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
	const [state, setState] = useState<{ key: string; data?: T; error: Error | null }>({ key: "", error: null });
	const [turn, setTurn] = useState(0);
	const loader = useRef(load);
	loader.current = load;
	useEffect(() => {
		const control = new AbortController();
		loader.current(control.signal).then(
			(data) => !control.signal.aborted && setState({ key, data, error: null }),
			(error: Error) => {
				if (control.signal.aborted) return;
				if (error instanceof SteadError && error.status === 401) failed(error);
				setState((old) => ({ key, data: old.key === key ? old.data : undefined, error }));
			},
		);
		return () => control.abort();
	}, [key, turn]);
	const reload = useCallback(() => setTurn((n) => n + 1), []);
	const fresh = state.key === key;
	return { data: fresh ? state.data : undefined, error: fresh ? state.error : null, loading: !fresh, reload };
}

/** Loads again after changes of files below `path`, at most every 150 ms. */
export function useReloadOnChange(reload: () => void, path = ""): void {
	useEffect(() => {
		let timer = 0;
		const stop = onChange((change) => {
			if (timer || (path && change.path !== path && !change.path.startsWith(path + "/"))) return;
			timer = window.setTimeout(() => {
				timer = 0;
				reload();
			}, 150);
		});
		return () => {
			clearTimeout(timer);
			stop();
		};
	}, [reload, path]);
}

/** Loads again when the page is looked at again, and now and then while it is: for what the feed of files does not tell. */
export function useRefresh(reload: () => void, ms = 10_000): void {
	useEffect(() => {
		const look = () => document.visibilityState === "visible" && reload();
		const timer = setInterval(look, ms);
		document.addEventListener("visibilitychange", look);
		return () => {
			clearInterval(timer);
			document.removeEventListener("visibilitychange", look);
		};
	}, [reload, ms]);
}

/** A value that follows another one after a short rest. */
export function useDebounced<T>(value: T, ms: number): T {
	const [late, setLate] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => setLate(value), ms);
		return () => clearTimeout(timer);
	}, [value, ms]);
	return late;
}

/** Grey lines in place of what is loading. They show up late, so that what is quick does not flicker; `slow` says why it
    takes long, if it does. */
export function Skeleton({ lines = 6, slow }: { lines?: number; slow?: string }) {
	return (
		<div class="skeleton" role="status" aria-label="Loading">
			{Array.from({ length: lines }, (_, i) => <span key={i} class={`w${(i * 7) % 4}`} />)}
			{slow && <p class="hint slow">{slow}</p>}
		</div>
	);
}

/** Shows what was loaded, or why it was not. */
export function Show<T>({ of, children, lines }: { of: Loaded<T>; children: (data: T) => ComponentChildren; lines?: number }) {
	if (of.data !== undefined) return <>{children(of.data)}</>;
	if (of.error) return <Empty icon="alert" title="This could not be loaded" text={of.error.message} action={<Button onClick={of.reload}>Try again</Button>} />;
	return <Skeleton lines={lines} />;
}

/* --- small parts --- */

interface ButtonProps {
	children?: ComponentChildren;
	icon?: IconName;
	kind?: "plain" | "main" | "danger" | "quiet";
	label?: string;
	title?: string;
	disabled?: boolean;
	pressed?: boolean;
	onClick?: (event: MouseEvent) => void;
	type?: "button" | "submit";
	small?: boolean;
}

export function Button({ children, icon, kind = "plain", label, title, disabled, pressed, onClick, type = "button", small }: ButtonProps) {
	return (
		<button class={`button ${kind}${children ? "" : " only-icon"}${small ? " small" : ""}`} type={type} aria-label={label} title={title ?? label} disabled={disabled}
			aria-pressed={pressed} onClick={onClick}>
			{icon && <Icon name={icon} />}
			{children && <span>{children}</span>}
		</button>
	);
}

export function Badge({ children, tone = "plain", icon }: { children: ComponentChildren; tone?: string; icon?: IconName }) {
	return <span class={`badge ${tone}`}>{icon && <Icon name={icon} />}{children}</span>;
}

export function Empty({ icon, title, text, action }: { icon: IconName; title: string; text?: ComponentChildren; action?: ComponentChildren }) {
	return (
		<div class="empty">
			<div class="empty-icon"><Icon name={icon} /></div>
			<h2>{title}</h2>
			{text && <p>{typeof text === "string" ? sentence(text) : text}</p>}
			{action && <div class="row center">{action}</div>}
		</div>
	);
}

export function Kbd({ children }: { children: string }) {
	return <kbd>{children}</kbd>;
}

export const isMac = /mac/i.test(navigator.platform);
export const modifier = isMac ? "⌘" : "Ctrl";

/** The heading of a screen. */
export function Head({ title, sub, actions, back }: { title: ComponentChildren; sub?: ComponentChildren; actions?: ComponentChildren; back?: string }) {
	return (
		<header class="head">
			{back && <a class="button quiet only-icon back" href={back} aria-label="Back"><Icon name="back" /></a>}
			<div class="head-text">
				<h1>{title}</h1>
				{sub && <p class="sub">{sub}</p>}
			</div>
			{actions && <div class="head-actions">{actions}</div>}
		</header>
	);
}

/** Buttons of which one is chosen. */
export function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: Array<[T, string]>; onChange: (value: T) => void }) {
	return (
		<div class="choice" role="radiogroup" aria-label={label}>
			{options.map(([key, text]) => (
				<button key={key} type="button" role="radio" aria-checked={key === value} class={key === value ? "on" : ""} onClick={() => onChange(key)}>{text}</button>
			))}
		</div>
	);
}

/* --- dialogs --- */

/** A dialog in the browser's own top layer: it keeps the focus, and Escape closes it. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
	const ref = useRef<HTMLDialogElement>(null), pressedOutside = useRef(false), [id] = useState(() => Symbol());
	useLayoutEffect(() => {
		dialogs.value = [...dialogs.value, id];
		return () => {
			dialogs.value = dialogs.value.filter((other) => other !== id);
		};
	}, []);
	/* The backdrop is the dialog too, and so is its padding. */
	const isOutside = ({ target, clientX: x, clientY: y }: MouseEvent) => {
		const box = ref.current?.getBoundingClientRect();
		return !!box && target === ref.current && (x < box.left || x > box.right || y < box.top || y > box.bottom);
	};
	useLayoutEffect(() => {
		const dialog = ref.current;
		if (dialog && !dialog.open) dialog.showModal();
	}, []);
	return (
		<dialog ref={ref} class={wide ? "dialog wide" : "dialog"} aria-label={title} onClose={onClose}
			onMouseDown={(event) => { pressedOutside.current = isOutside(event); }} onClick={(event) => pressedOutside.current && isOutside(event) && ref.current?.close()}>
			<div class="dialog-head">
				<h2>{title}</h2>
				<Button kind="quiet" icon="close" label="Close" onClick={() => ref.current?.close()} />
			</div>
			{children}
			{dialogs.value.at(-1) === id && <ToastList />}
		</dialog>
	);
}

interface AskProps {
	title: string;
	text?: ComponentChildren;
	label?: string;
	value?: string;
	action: string;
	danger?: boolean;
	onDone: (value: string) => Promise<unknown> | unknown;
	onClose: () => void;
}

/** Asks for one line of text, or with no `label` for a confirmation. */
export function Ask({ title, text, label, value = "", action, danger, onDone, onClose }: AskProps) {
	const [busy, setBusy] = useState(false);
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		const given = new FormData(event.currentTarget as HTMLFormElement).get("value");
		setBusy(true);
		try {
			await onDone(String(given ?? "").trim());
			onClose();
		} catch (error) {
			failed(error);
			setBusy(false);
		}
	};
	return (
		<Dialog title={title} onClose={onClose}>
			<form onSubmit={submit} class="stack">
				{text && <p>{text}</p>}
				{label && <label class="field"><span>{label}</span><input name="value" defaultValue={value} autofocus required spellcheck={false} autocomplete="off" /></label>}
				<div class="row end">
					<Button kind="quiet" onClick={onClose}>Cancel</Button>
					<Button kind={danger ? "danger" : "main"} type="submit" disabled={busy}>{action}</Button>
				</div>
			</form>
		</Dialog>
	);
}

/** A button that opens a list of actions. */
export function Menu({ label, icon = "more", items }: { label: string; icon?: IconName; items: Array<{ icon: IconName; text: string; danger?: boolean; run: () => void } | null> }) {
	const [open, setOpen] = useState(false);
	const ref = useRef<HTMLDivElement>(null);
	const list = items.filter((item) => item !== null);
	useLayoutEffect(() => {
		if (!open) return;
		const close = (event: Event) => {
			if (!ref.current?.contains(event.target as Node)) setOpen(false);
		};
		document.addEventListener("pointerdown", close);
		const box = ref.current?.querySelector<HTMLElement>("[role=menu]"), left = box?.getBoundingClientRect().left ?? 0;
		if (box && left < 8) box.style.right = `${left - 8}px`; /* it would begin outside of the screen */
		ref.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
		return () => document.removeEventListener("pointerdown", close);
	}, [open]);
	const onKeyDown = (event: KeyboardEvent) => {
		const buttons = [...(ref.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
		const at = buttons.indexOf(document.activeElement as HTMLElement);
		if (event.key === "Escape") {
			setOpen(false);
			ref.current?.querySelector("button")?.focus();
		} else if (event.key === "ArrowDown") buttons[(at + 1) % buttons.length]?.focus();
		else if (event.key === "ArrowUp") buttons[(at + buttons.length - 1) % buttons.length]?.focus();
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	if (!list.length) return null;
	return (
		<div class="menu" ref={ref} onKeyDown={open ? onKeyDown : undefined}>
			<button class="button quiet only-icon" type="button" aria-label={label} title={label} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name={icon} /></button>
			{open && (
				<div class="menu-list" role="menu" aria-label={label}>
					{list.map((item) => (
						<button key={item.text} type="button" role="menuitem" tabIndex={-1} class={item.danger ? "danger" : ""} onClick={() => { setOpen(false); item.run(); }}>
							<Icon name={item.icon} />{item.text}
						</button>
					))}
				</div>
			)}
		</div>
	);
}

/* --- messages --- */

/* Behind an open dialog nothing can be reached or is read out, so the topmost dialog has the messages. */
const dialogs = signal<symbol[]>([]);

export function Toasts() {
	return dialogs.value.length ? null : <ToastList />;
}

function ToastList() {
	return (
		<div class="toasts" role="status" aria-live="polite">
			{toasts.value.map((toast) => (
				<div key={toast.id} class={`toast ${toast.kind}`}>
					<Icon name={toast.kind === "error" ? "alert" : "check"} />
					<span>{toast.text}</span>
					{toast.undo && <button type="button" class="toast-undo" onClick={() => void undoToast(toast)}>Undo</button>}
					<button type="button" class="toast-close" aria-label="Dismiss" onClick={() => dismiss(toast.id)}><Icon name="close" /></button>
				</div>
			))}
		</div>
	);
}

/** Rows of one height, of which only the visible ones exist. */
export function VirtualList({ count, height, row, label, role = "list", onKeyDown, reveal, ...rest }: {
	count: number; height: number; row: (index: number) => ComponentChildren; label: string; role?: "list" | "tree" | "listbox"; onKeyDown?: (event: KeyboardEvent) => void; reveal?: number; id?: string;
}) {
	const ref = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ top: 0, size: 900 });
	useLayoutEffect(() => {
		const box = ref.current;
		if (!box) return;
		const measure = () => setView({ top: box.scrollTop, size: box.clientHeight });
		const observer = new ResizeObserver(measure);
		observer.observe(box);
		box.addEventListener("scroll", measure, { passive: true });
		return () => {
			observer.disconnect();
			box.removeEventListener("scroll", measure);
		};
	}, []);
	useLayoutEffect(() => {
		const box = ref.current;
		if (!box || reveal === undefined || reveal < 0) return;
		const top = reveal * height, end = top + height - box.clientHeight, isNear = Math.abs(top - box.scrollTop) < 2 * box.clientHeight;
		/* What is far away comes to the middle, with what is around it. */
		if (top < box.scrollTop) box.scrollTop = isNear ? top : top - box.clientHeight / 2;
		else if (end > box.scrollTop) box.scrollTop = isNear ? end : top - box.clientHeight / 2;
	}, [reveal]);
	const first = Math.max(0, Math.floor(view.top / height) - 8), last = Math.min(count, Math.ceil((view.top + view.size) / height) + 8);
	const rows = [];
	for (let i = first; i < last; i++) rows.push(row(i));
	return (
		<div class="virtual" ref={ref} role={role} aria-label={label} tabIndex={0} onKeyDown={onKeyDown} {...rest}>
			<div class="virtual-space" role="presentation" style={{ height: `${count * height}px` }}>
				<div class="virtual-rows" role="presentation" style={{ transform: `translateY(${first * height}px)` }}>{rows}</div>
			</div>
		</div>
	);
}

/* --- files of a form --- */

/** Chooses files, and shows their names. Works by keyboard as any input does. */
export function FilePicker({ name, label = "Attach files" }: { name: string; label?: string }) {
	const [names, setNames] = useState<string[]>([]), input = useRef<HTMLInputElement>(null);
	useEffect(() => {
		const form = input.current?.form, clear = () => setNames([]);
		form?.addEventListener("reset", clear);
		return () => form?.removeEventListener("reset", clear);
	}, []);
	return (
		<div class="file-picker">
			<label class="button"><Icon name="upload" /><span>{label}</span><input ref={input} class="visually-hidden" type="file" name={name} multiple onChange={(event) => setNames([...(event.currentTarget.files ?? [])].map((file) => file.name))} /></label>
			<span class="hint" aria-live="polite">{names.join(", ")}</span>
		</div>
	);
}
