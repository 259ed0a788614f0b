// SPDX-License-Identifier: Apache-2.0
// One set of icons: 16 × 16, drawn with lines in the colour of the text.

const paths = {
	home: "M2.5 7.5 8 3l5.5 4.5M4 6.8V13h8V6.8",
	folder: "M2 4.5A1 1 0 0 1 3 3.5h3.2l1.4 1.7H13a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1z",
	file: "M4 2h5l3 3v9H4zM9 2v3h3",
	code: "M5.5 5 2.5 8l3 3M10.5 5l3 3-3 3",
	image: "M2.5 3h11v10h-11zM2.5 11l3.2-3.2 2.6 2.6 2-2 3.2 3.2M10.7 5.8h.01",
	media: "M5 3.5v9l7.5-4.5z",
	table: "M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.5 3v10",
	search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.4 10.4 14 14",
	note: "M3.5 2h7l2 2v10h-9zM6 6h4M6 8.5h4M6 11h2.5",
	memory: "M8 14c-3.5 0-5.5-2.2-5.5-5.2C2.5 5 5 2 8 2s5.5 3 5.5 6.8C13.5 11.8 11.5 14 8 14M8 5v3.5l2 1.5",
	task: "M2.5 3h11v10h-11zM5.3 8.2l2 1.9 3.5-4",
	board: "M2.5 3h3v10h-3zM6.6 3h3v6.5h-3zM10.6 3h3v8h-3z",
	chat: "M2.5 3.5h11v7.5H7L4 13.5V11H2.5z",
	history: "M3 8a5 5 0 1 0 1.6-3.7L3 5.7M3 2.8v2.9h2.9M8 5.3V8l2 1.3",
	pulse: "M1.8 8H5l2-4.5 2.4 9L11.2 8h3",
	fork: "M5 5.4v5.2M5 5.4A1.6 1.6 0 1 0 5 2.2a1.6 1.6 0 0 0 0 3.2M5 13.8a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2M11 5.4a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2M11 5.4c0 3-6 2-6 5.2",
	chart: "M2.5 2.5v11h11M5.5 11V8M8.5 11V5M11.5 11V7",
	settings: "M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4M8 2v1.6M8 12.4V14M2 8h1.6M12.4 8H14M3.8 3.8l1.1 1.1M11.1 11.1l1.1 1.1M12.2 3.8l-1.1 1.1M4.9 11.1l-1.1 1.1",
	chevron: "M6 4l4 4-4 4",
	down: "M4 6l4 4 4-4",
	plus: "M8 3v10M3 8h10",
	close: "M4 4l8 8M12 4l-8 8",
	check: "M3 8.5l3.2 3L13 4.5",
	more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
	edit: "M3 13h2.2L13 5.2 10.8 3 3 10.8zM9.2 4.6l2.2 2.2",
	trash: "M3 4.5h10M6 4.5v-2h4v2M4.3 4.5 5 13.5h6l.7-9",
	download: "M8 2.5v8M4.5 7.2 8 10.7l3.5-3.5M3 13.5h10",
	upload: "M8 10.5v-8M4.5 5.8 8 2.3l3.5 3.5M3 13.5h10",
	move: "M2.5 8h10M9 4.5 12.5 8 9 11.5",
	undo: "M5.5 3 2.5 6l3 3M2.5 6H10a3.5 3.5 0 0 1 0 7H6",
	eye: "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8M8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6",
	menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
	back: "M10 3.5 5.5 8l4.5 4.5",
	sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
	moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6",
	key: "M9.6 9.6a3.6 3.6 0 1 0-3.2-3.2L2 10.8V14h3.2v-1.8H7v-1.8h1.8zM10.9 5.1h.01",
	pin: "M8 14s4.5-4.2 4.5-7.6a4.5 4.5 0 0 0-9 0C3.5 9.8 8 14 8 14M8 8a1.6 1.6 0 1 0 0-3.2A1.6 1.6 0 0 0 8 8",
	question: "M6 6.2a2 2 0 1 1 3 1.8c-.6.4-1 .8-1 1.5M8 11.8h.01M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4",
	link: "M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.9-.9",
	flag: "M4 14V2.5M4 3h8l-1.6 2.8L12 8.6H4",
	alert: "M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.3h.01",
	copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
};

export type IconName = keyof typeof paths;

export function Icon({ name, label }: { name: IconName; label?: string }) {
	return (
		<svg class={`icon icon-${name}`} viewBox="0 0 16 16" role={label ? "img" : undefined} aria-label={label} aria-hidden={label ? undefined : "true"}>
			<path d={paths[name]} />
		</svg>
	);
}

export function iconOf(path: string, kind: string): IconName {
	if (kind === "directory") return "folder";
	const end = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
	if (/^(png|jpe?g|gif|svg|webp|avif)$/.test(end)) return "image";
	if (/^(mp3|wav|ogg|mp4|webm|m4a|mov)$/.test(end)) return "media";
	if (/^(csv|tsv)$/.test(end)) return "table";
	if (/^(md|txt|markdown)$/.test(end)) return "note";
	if (/^(js|ts|tsx|jsx|mjs|py|c|h|cpp|rs|go|java|json|jsonl|ya?ml|toml|sh|html|css|sql|rb|xml)$/.test(end)) return "code";
	return "file";
}
