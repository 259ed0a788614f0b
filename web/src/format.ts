// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.

const sizeFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const countFormat = new Intl.NumberFormat("en");
const compactFormat = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function size(bytes: number): string {
	const units = ["B", "KB", "MB", "GB", "TB"];
	let unit = 0;
	while (bytes >= 1000 && unit < units.length - 1) {
		bytes /= 1000;
		unit++;
	}
	return `${unit ? sizeFormat.format(bytes) : bytes} ${units[unit]}`;
}

export const count = (n: number): string => countFormat.format(n);
export const compact = (n: number): string => compactFormat.format(n);
export const plural = (n: number, one: string, many = one + "s"): string => `${count(n)} ${n === 1 ? one : many}`;

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function ago(time: string | number | Date, now = Date.now()): string {
	const seconds = (new Date(time).getTime() - now) / 1000;
	for (const [unit, length] of [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600], ["minute", 60]] as const)
		if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
	return "just now";
}

/** Dates and times have one form everywhere: the day before the month, and 24 hours. */
const times = "en-GB";

export const fullTime = (time: string | number | Date): string => new Date(time).toLocaleString(times, { dateStyle: "medium", timeStyle: "short" });

/** "Today", "Yesterday", or the date. */
export function day(time: string | number | Date): string {
	const date = new Date(time), today = new Date();
	const start = (d: Date) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
	const days = Math.round((start(today) - start(date)) / 86_400_000);
	if (days === 0) return "Today";
	if (days === 1) return "Yesterday";
	return date.toLocaleDateString(times, { weekday: "long", day: "numeric", month: "long", ...(date.getFullYear() !== today.getFullYear() && { year: "numeric" }) });
}

export const clock = (time: string | number | Date): string => new Date(time).toLocaleTimeString(times, { hour: "2-digit", minute: "2-digit" });
/** "2026-11-20" as "20 Nov". */
export const shortDay = (date: string): string => new Date(date).toLocaleDateString(times, { day: "numeric", month: "short", timeZone: "UTC" });

/** A message of the server as a sentence of the page. One that begins with a name, such as "a.md: …", stays as it is. */
export const sentence = (text: string): string => (/^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text);

/** A value as text: a text as it is, everything else as JSON. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
export const joinPath = (dir: string, name: string): string => (dir ? `${dir}/${name}` : name);

export interface WithActor {
	user?: string;
	agent?: string;
	session?: string;
}
/** Who made a change. */
export function actorName(actor: WithActor | Record<string, unknown> | undefined): string {
	const { user, agent } = (actor ?? {}) as WithActor;
	return agent && user ? `${agent} for ${user}` : (agent ?? user ?? "someone");
}
