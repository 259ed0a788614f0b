// SPDX-License-Identifier: Apache-2.0
// CodeMirror, loaded with the first text file. It is in a shadow root: there its styles are style sheet objects, which
// the policy of the page allows, and not <style> elements, which it forbids.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting, type LanguageSupport } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export interface EditorOptions {
	text: string;
	path: string;
	editable: boolean;
	dark: boolean;
	onInput: (text: string) => void;
	onSave: () => void;
}

export interface Editor {
	setText: (text: string) => void;
	setOptions: (options: { dark: boolean; editable: boolean }) => void;
	destroy: () => void;
}

async function languageOf(path: string): Promise<LanguageSupport | null> {
	switch (path.slice(path.lastIndexOf(".") + 1).toLowerCase()) {
	case "md": case "markdown": return (await import("@codemirror/lang-markdown")).markdown();
	case "js": case "mjs": case "jsx": return (await import("@codemirror/lang-javascript")).javascript({ jsx: true });
	case "ts": case "tsx": return (await import("@codemirror/lang-javascript")).javascript({ jsx: true, typescript: true });
	case "json": case "jsonl": return (await import("@codemirror/lang-json")).json();
	case "py": return (await import("@codemirror/lang-python")).python();
	case "c": case "h": case "cpp": case "hpp": case "cc": return (await import("@codemirror/lang-cpp")).cpp();
	case "rs": return (await import("@codemirror/lang-rust")).rust();
	case "yaml": case "yml": return (await import("@codemirror/lang-yaml")).yaml();
	case "html": case "xml": case "svg": return (await import("@codemirror/lang-html")).html();
	case "css": return (await import("@codemirror/lang-css")).css();
	default: return null;
	}
}

/* Colours are the variables of the page, which shadow roots inherit. */
const colours = HighlightStyle.define([
	{ tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
	{ tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
	{ tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
	{ tag: [tags.comment, tags.meta, tags.processingInstruction], color: "var(--text-3)" },
	{ tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-function)" },
	{ tag: [tags.typeName, tags.className, tags.tagName, tags.propertyName, tags.attributeName], color: "var(--code-type)" },
	{ tag: tags.heading, fontWeight: "650", color: "var(--text-1)" },
	{ tag: tags.strong, fontWeight: "650" },
	{ tag: tags.emphasis, fontStyle: "italic" },
	{ tag: [tags.link, tags.url], color: "var(--accent-text)" },
]);

const look = EditorView.theme({
	"&": { height: "100%", fontSize: "13px", backgroundColor: "var(--surface)", color: "var(--text-1)" },
	"&.cm-focused": { outline: "none" },
	".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto", fontVariantLigatures: "none" },
	".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
	".cm-line": { padding: "0 16px 0 8px" },
	".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-3)", border: "none", paddingLeft: "8px" },
	".cm-activeLine": { backgroundColor: "var(--hover)" },
	".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--text-2)" },
	".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
	"&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
	".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text-1)", borderColor: "var(--line)" },
	".cm-searchMatch": { backgroundColor: "var(--mark)" },
	".cm-textfield": { backgroundColor: "var(--surface)", color: "var(--text-1)", border: "1px solid var(--line-strong)", borderRadius: "4px" },
	".cm-button": { backgroundImage: "none", backgroundColor: "var(--hover)", border: "1px solid var(--line-strong)", borderRadius: "4px" },
});

export async function createEditor(host: HTMLElement, options: EditorOptions): Promise<Editor> {
	const language = await languageOf(options.path);
	const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
	const editable = new Compartment(), mode = new Compartment();
	const prose = /\.(md|markdown|txt)$/i.test(options.path) || !options.path.includes(".");
	let quiet = false;
	const access = (on: boolean) => [EditorView.editable.of(on), EditorState.readOnly.of(!on)];
	const place = document.createElement("div");
	place.style.height = "100%";
	root.replaceChildren(place);
	const view = new EditorView({
		root, parent: place,
		state: EditorState.create({
			doc: options.text,
			extensions: [
				lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), search({ top: true }),
				indentUnit.of(/\.(c|h|go|ts|tsx)$/.test(options.path) ? "\t" : "  "), EditorState.tabSize.of(4),
				keymap.of([{ key: "Mod-s", run: () => (options.onSave(), true), preventDefault: true }, { key: "Escape", run: (v) => (v.contentDOM.blur(), true) },
					indentWithTab, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
				syntaxHighlighting(colours), look, mode.of(EditorView.darkTheme.of(options.dark)), editable.of(access(options.editable)),
				EditorView.contentAttributes.of({ "aria-label": `Text of ${options.path}`, spellcheck: prose ? "true" : "false" }),
				EditorView.updateListener.of((update) => {
					if (update.docChanged && !quiet) options.onInput(update.state.doc.toString());
				}),
				...(prose ? [EditorView.lineWrapping] : []), ...(language ? [language] : []),
			],
		}),
	});
	if (options.editable) view.focus();
	return {
		setText(text) {
			if (text === view.state.doc.toString()) return;
			quiet = true;
			view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
			quiet = false;
		},
		setOptions({ dark, editable: on }) {
			view.dispatch({ effects: [mode.reconfigure(EditorView.darkTheme.of(dark)), editable.reconfigure(access(on))] });
		},
		destroy() {
			view.destroy();
		},
	};
}
