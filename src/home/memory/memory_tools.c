/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools over memory. The caller is always an agent: what it saves is trusted as an agent's word at most, and it cannot
 * supersede or forget what a person wrote.
 */
#include "home/memory/memory_tools.h"

#include "base/limits.h"
#include "home/memory/memory.h"
#include "tool/call.h"
#include "tool/family.h"

#define SEARCH_DEFAULT 10
#define SEARCH_MOST    50

int tool_memory_save(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct memory_save save = {.content = jv_get_str(args, "content"),
				   .source = jv_get_str(args, "source"),
				   .caller = TRUST_AGENT,
				   .trust = memory_trust_of(jv_get_str(args, "trust")),
				   .from = jv_get_str(args, "valid_from"),
				   .until = jv_get_str(args, "valid_until"),
				   .supersedes = jv_get(args, "supersedes"),
				   .ledger_only = jv_get_bool(args, "ledger_only", false)};

	return memory_save(call->ws, call->ctx, &save, &ret->value, err);
}

static void render_saved(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *saved = jv_get(value, "saved");

	(void)args;
	buf_printf(text, "saved %zu fact%s to %.*s", jv_count(saved), plural(jv_count(saved)),
		   STR_ARG(jv_get_str(value, "path")));
	for (const struct jv_member *m = jv_first(saved); m; m = m->next)
		buf_printf(text, "\n%.*s: %.*s", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(utf8_first(jv_get_str(m->value, "text"), 100)));
	if (jv_count(jv_get(value, "known")))
		buf_printf(text, "\n%zu already known", jv_count(jv_get(value, "known")));
	if (jv_count(jv_get(value, "superseded")))
		buf_printf(text, "\n%zu superseded", jv_count(jv_get(value, "superseded")));
}

int tool_memory_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	uint64_t limit = arg_count(args, "limit", SEARCH_DEFAULT, SEARCH_MOST);

	return memory_search(call->ws, call->ctx, jv_get_str(args, "query"), limit ? limit : 1,
			     jv_get_bool(args, "all", false), &ret->value, err);
}

static void render_matches(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *matches = jv_get(value, "matches");

	(void)args;
	for (const struct jv_member *m = jv_first(matches); m; m = m->next) {
		struct str id = jv_get_str(m->value, "id"), until = jv_get_str(m->value, "until");

		buf_printf(text, "%.*s:%lld", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 1));
		if (id.len)
			buf_printf(text, " %.*s (%.*s%s%.*s)", STR_ARG(id), STR_ARG(jv_get_str(m->value, "trust")),
				   until.len ? ", until " : "", STR_ARG(until));
		buf_lit(text, ": ");
		buf_add(text, jv_get_str(m->value, "text"));
		buf_char(text, '\n');
	}
	buf_printf(text, jv_count(matches) ? "%zu match%s" : "nothing in memory matches", jv_count(matches),
		   jv_count(matches) == 1 ? "" : "es");
	if (jv_get_str(value, "note").len)
		buf_printf(text, "\nnote: %.*s", STR_ARG(jv_get_str(value, "note")));
}

int tool_memory_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	int64_t start = jv_get_int(args, "start_line", 1), end = jv_get_int(args, "end_line", -1);
	uint64_t first = start < 0 ? 0 : (uint64_t)start;
	uint64_t last = end < 0 ? first + READ_LINES_DEFAULT - 1 : (uint64_t)end;

	return memory_get(call->ws, call->ctx, jv_get_str(args, "path"), first, last, &ret->value, err);
}

void memory_lines(struct buf *text, const struct jv *value, const char *format)
{
	struct str rest = jv_get_str(value, "content"), line;
	long long n = jv_get_int(value, "start_line", 1);

	for (; str_cut(&rest, '\n', &line); n++) {
		if (n > jv_get_int(value, "start_line", 1))
			buf_char(text, '\n');
		buf_printf(text, "%lld", n);
		buf_add(text, str_of(format));
		buf_add(text, line);
	}
}

static void render_lines(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	memory_lines(text, value, "\t");
}

static int tool_memory_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return memory_list(call->ws, call->ctx, jv_get_bool(args, "all", false),
			   memory_trust_of(jv_get_str(args, "trust")), &ret->value, err);
}

static void render_facts(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *facts = jv_get(value, "facts");

	(void)args;
	for (const struct jv_member *m = jv_first(facts); m; m = m->next) {
		buf_printf(text, "%.*s (%.*s%s): ", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "trust")),
			   jv_get_bool(m->value, "current", false) ? "" : ", does not apply now");
		buf_add(text, jv_get_str(m->value, "text"));
		buf_char(text, '\n');
	}
	buf_printf(text, "%zu fact%s", jv_count(facts), plural(jv_count(facts)));
}

static int tool_memory_consolidate(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str text = jv_get_str(args, "text");

	if (!text.ptr)
		return memory_pending(call->ws, call->ctx, &ret->value, err);
	return memory_consolidate(call->ws, call->ctx, text, jv_get_str(args, "basis"), &ret->value, err);
}

static void render_consolidated(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	if (!jv_get_str(value, "basis").len) {
		buf_printf(text, "MEMORY.md has %lld bytes: %lld facts, %lld of them merged, %lld kept, %lld archived",
			   (long long)jv_get_int(value, "bytes", 0), (long long)jv_get_int(value, "total", 0),
			   (long long)jv_get_int(value, "merged", 0), (long long)jv_get_int(value, "kept", 0),
			   (long long)jv_get_int(value, "dropped", 0));
		return;
	}
	buf_printf(text, "basis %.*s; at most %lld bytes\n", STR_ARG(jv_get_str(value, "basis")),
		   (long long)jv_get_int(value, "budget_bytes", 0));
	for (int i = 0; i < 2; i++) {
		buf_add(text, i ? STR("new entries:\n") : STR("MEMORY.md:\n"));
		for (const struct jv_member *m = jv_first(jv_get(value, i ? "entries" : "facts")); m; m = m->next) {
			buf_lit(text, "- ");
			buf_add(text, jv_get_str(m->value, "text"));
			buf_printf(text, " [%.*s]%s\n", STR_ARG(jv_get_str(m->value, "id")),
				   jv_get_bool(m->value, "current", false) ? "" : " (does not apply now)");
		}
	}
	text->len--;
}

static int tool_memory_forget(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return memory_forget(call->ws, call->ctx, jv_get_str(args, "id"), jv_get_str(args, "text"), TRUST_AGENT,
			     &ret->value, err);
}

static void render_forgotten(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *past = jv_get(value, "history");

	(void)args;
	buf_printf(text,
		   "forgotten; receipt %.*s: %zu file%s changed, %lld earlier content%s of %lld revision%s removed",
		   STR_ARG(jv_get_str(value, "receipt")), jv_count(jv_get(value, "files")),
		   plural(jv_count(jv_get(value, "files"))), (long long)jv_get_int(past, "contents", 0),
		   plural((uint64_t)jv_get_int(past, "contents", 0)), (long long)jv_get_int(past, "revisions", 0),
		   plural((uint64_t)jv_get_int(past, "revisions", 0)));
	if (!jv_get_bool(past, "covered", false))
		buf_printf(text, "\nthe history is not fully covered: %.*s", STR_ARG(jv_get_str(past, "why")));
	for (const struct jv_member *m = jv_first(jv_get(value, "mentions")); m; m = m->next)
		buf_printf(text, "\nstill mentioned in %.*s", STR_ARG(jv_str_of(m->value)));
	for (const struct jv_member *m = jv_first(jv_get(value, "derived")); m; m = m->next)
		buf_printf(text, "\nmerged into %.*s, which is kept", STR_ARG(jv_str_of(m->value)));
}

/* clang-format off */
#define TRUST "trust outside|agent|document|person: "
#define FACT \
	"{id!; text!; trust!; current bool; path; line int; user; agent; session; source; at; from; until; superseded_by; " \
	"sources list; supersedes list}"

static const struct tool native[] = {
	{
		.name = "memory_save", .title = "Remember", .traits = TOOL_BASIC, .call = tool_memory_save, .render = render_saved,
		.description =
			"Saves facts to MEMORY.md and to today's ledger. Write each as a bullet of whole sentences that can be "
			"understood later without context. Facts named in supersedes no longer apply.",
		.args =
			"content!: Markdown bullets, one fact each\n"
			"source: the tool or document that the facts come from\n"
			TRUST "how reliable they are (default and at most agent); outside for what strangers say\n"
			"supersedes [str]<=50: ids of the facts that these replace\n"
			"valid_from: date from which they apply, such as 2026-11-15\n"
			"valid_until: date until which they apply\n"
			"ledger_only bool: save only to today's ledger, for the next consolidation",
		.result =
			"saved! [{id!; text!; trust!}]: new facts\n"
			"known! [str]: facts that were already known\n"
			"superseded! [str]: ids\n"
			"path!; ledger",
	},
	{
		.name = "memory_search", .title = "Search memory", .traits = RO | TOOL_BASIC, .call = tool_memory_search,
		.render = render_matches,
		.description =
			"Finds facts in MEMORY.md and the daily ledgers, best first, despite misspellings: "
			"any word may match, a \"quoted phrase\" must occur, and a -word must not. Finds only facts that "
			"apply now, unless all is set.",
		.args =
			"query!: words\n"
			"limit int>=1: number of facts (default 10, at most 50)\n"
			"all bool: include superseded, expired and archived facts",
		.result =
			"matches! [{id; text!; trust; current bool; path!; line! int; user; agent; session; source; at; from; "
			"until; superseded_by; sources list; supersedes list; snippet; score num}]: best first\n"
			"total! int; note",
	},
	{
		.name = "memory_get", .title = "Read memory", .traits = RO, .call = tool_memory_get, .render = render_lines,
		.description = "Reads lines of MEMORY.md or of a file below memory/, with where each fact comes from.",
		.args =
			"path!: MEMORY.md, memory/2026-11-15.md, …\n"
			"start_line int>=1: first line (default 1)\n"
			"end_line int>=1: last line (default: 2000 lines)",
		.result = "path!; start_line! int; end_line! int; total_lines! int; content!",
	},
	{
		.name = "memory_list", .title = "List facts", .traits = RO, .call = tool_memory_list,
		.render = render_facts,
		.description = "Lists the facts of MEMORY.md with their ids and trust.",
		.args =
			"all bool: include facts that do not apply now\n"
			TRUST "only facts that are at least this reliable",
		.result =
			"facts! [" FACT "]: in the order of the file\n"
			"total! int",
	},
	{
		.name = "memory_consolidate", .title = "Consolidate memory", .call = tool_memory_consolidate,
		.render = render_consolidated,
		.description =
			"Without text: returns what to merge (the facts of MEMORY.md and new ledger entries, with ids) and a "
			"basis. With text and that basis: replaces MEMORY.md with the merged facts, each a bullet that ends "
			"with the ids it comes from: - fact [m-… m-…]. Trust is never raised; facts that people wrote, or that "
			"were saved in the meantime, are kept.",
		.args =
			"text: the new MEMORY.md: headings and bullets with their ids\n"
			"basis: the basis from the call without text",
		.result =
			"basis\n"
			"facts [" FACT "]: of MEMORY.md\n"
			"entries [" FACT "]: of the ledgers\n"
			"budget_bytes int; total int; merged int; kept int; dropped int; bytes int; consolidated_at",
	},
	{
		.name = "memory_forget", .title = "Forget", .traits = TOOL_DESTRUCTIVE | TOOL_LONG,
		.call = tool_memory_forget, .render = render_forgotten,
		.description =
			"Erases a fact from MEMORY.md, ledgers, archives, history and the index, and returns a receipt of what "
			"was removed, without the words. Tools cannot erase what a person wrote.",
		.args =
			"id: the fact's id\n"
			"text: or its exact text",
		.result =
			"receipt!\n"
			"sha256! [str]: hashes of the erased texts\n"
			"time!; by obj\n"
			"ids [str]: ids of the erased facts\n"
			"files! [{path!; facts! int}]: changed files\n"
			"history! obj; index\n"
			"forks [str]: forks where it was erased too\n"
			"derived [str]: facts that were merged from it and are kept\n"
			"mentions [str]: other files that contain the text and are kept",
	},
	{0},
};
/* clang-format on */

const struct family memory_family = {
	.name = "memory",
	.about = "Facts to remember, in MEMORY.md and daily ledgers.",
	.tools = native,
	.search = memory_sources,
	.prompt = memory_sections,
	.commands = memory_commands,
};
