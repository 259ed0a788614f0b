/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools over memory. Who calls a tool is an agent, so that what it saves is trusted as an agent's word at most, and it
 * cannot supersede or forget what a person wrote. AgentScope has three of them, with arguments and text of its own.
 */
#include "home/memory/memory_tools.h"

#include "base/limits.h"
#include "home/memory/memory.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

#define SEARCH_DEFAULT 10
#define SEARCH_MOST    50

/* --- native --- */

static int tool_memory_save(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
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
		buf_printf(text, "\n%zu known already", jv_count(jv_get(value, "known")));
	if (jv_count(jv_get(value, "superseded")))
		buf_printf(text, "\n%zu superseded", jv_count(jv_get(value, "superseded")));
}

static int tool_memory_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
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

static int tool_memory_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	int64_t start = jv_get_int(args, "start_line", 1), end = jv_get_int(args, "end_line", -1);
	uint64_t first = start < 0 ? 0 : (uint64_t)start;
	uint64_t last = end < 0 ? first + READ_LINES_DEFAULT - 1 : (uint64_t)end;

	return memory_get(call->ws, call->ctx, jv_get_str(args, "path"), first, last, &ret->value, err);
}

static void write_numbered(struct buf *text, const struct jv *value, const char *format)
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
	write_numbered(text, value, "\t");
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
			   jv_get_bool(m->value, "current", false) ? "" : ", does not hold now");
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
				   jv_get_bool(m->value, "current", false) ? "" : " (does not hold now)");
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
	buf_printf(text, "forgotten; receipt %.*s: %zu file%s changed, %lld contents of %lld revisions removed",
		   STR_ARG(jv_get_str(value, "receipt")), jv_count(jv_get(value, "files")),
		   plural(jv_count(jv_get(value, "files"))), (long long)jv_get_int(past, "contents", 0),
		   (long long)jv_get_int(past, "revisions", 0));
	if (!jv_get_bool(past, "covered", false))
		buf_printf(text, "\nnot all of the past is covered: %.*s", STR_ARG(jv_get_str(past, "why")));
	for (const struct jv_member *m = jv_first(jv_get(value, "mentions")); m; m = m->next)
		buf_printf(text, "\nstill mentioned in %.*s", STR_ARG(jv_str_of(m->value)));
	for (const struct jv_member *m = jv_first(jv_get(value, "derived")); m; m = m->next)
		buf_printf(text, "\nmerged into %.*s, which stays", STR_ARG(jv_str_of(m->value)));
}

/* --- AgentScope --- */

static int scope_save(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("content", "content", NULL);
	size_t n;

	r = tool_memory_save(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_count(jv_get(ret->value, "saved")) + jv_count(jv_get(ret->value, "known"));
	buf_printf(&text, "Saved %zu %s to MEMORY.md", n, n == 1 ? "memory" : "memories");
	text_reply(ret, &text);
	return 0;
}

static int scope_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("query", "query", NULL);
	const struct jv *matches;

	jv_set_int(arena, mapped, "limit", SEARCH_MOST);
	r = tool_memory_search(call, mapped, ret, err);
	if (r)
		return r;
	matches = jv_get(ret->value, "matches");
	if (!jv_count(matches))
		buf_lit(&text, "No matches found in memory files");
	else
		buf_printf(&text, "Found %zu matches:\n", jv_count(matches));
	for (const struct jv_member *m = jv_first(matches); m; m = m->next) {
		struct str rest = jv_get_str(m->value, "text"), line;

		buf_printf(&text, "\nSource: %.*s#%lld: ", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 1));
		for (bool first = true; str_cut(&rest, '\n', &line); first = false) {
			if (!first)
				buf_char(&text, ' ');
			buf_add(&text, line);
		}
	}
	text_reply(ret, &text);
	return 0;
}

static int scope_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", "startLine", "start_line", "endLine", "end_line", NULL);

	r = tool_memory_get(call, mapped, ret, err);
	if (r)
		return r;
	write_numbered(&text, ret->value, " | ");
	text_reply(ret, &text);
	return 0;
}

/* clang-format off */
#define TRUSTS "\"outside\",\"agent\",\"document\",\"person\""
#define FACT_PROPS \
	S_BARE("id", "string") AND S_BARE("text", "string") AND S_BARE("trust", "string") AND \
	S_BARE("current", "boolean") AND S_BARE("path", "string") AND S_BARE("line", "integer") AND \
	S_BARE("user", "string") AND S_BARE("agent", "string") AND S_BARE("session", "string") AND \
	S_BARE("source", "string") AND S_BARE("at", "string") AND S_BARE("from", "string") AND \
	S_BARE("until", "string") AND S_BARE("superseded_by", "string") AND S_BARE("sources", "array") AND \
	S_BARE("supersedes", "array")
#define FACT S_OBJ(FACT_PROPS, "\"id\",\"text\",\"trust\"")
#define MATCH S_OBJ(FACT_PROPS AND S_BARE("snippet", "string") AND S_BARE("score", "number"), "\"path\",\"line\",\"text\"")
#define TEXTS(name, text) S_LIST(name, "{\"type\":\"string\"}", text)

static const struct tool native[] = {
	{.name = "memory_save", .title = "Remember", .group = "memory", .call = tool_memory_save, .render = render_saved,
	 .description =
		"Saves facts to MEMORY.md and to today's ledger: a bullet each, whole sentences that can be understood "
		"later and alone. With supersedes, older facts stop to hold. Who saved it, when and in which session is "
		"kept with each fact.",
	 .input_schema = S_OBJ(
		S_STR("content", "Markdown bullets, one fact each") AND
		S_STR("source", "the tool or document that it comes from") AND
		S_ENUM("trust", TRUSTS, "how far it can be relied on (default and at most agent); outside for what strangers say") AND
		"\"supersedes\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":50,\"description\":\"ids of facts that these replace\"}" AND
		S_STR("valid_from", "when it begins to hold, such as 2026-11-15") AND
		S_STR("valid_until", "when it ceases to hold") AND
		S_BOOL("ledger_only", "only to today's ledger, for the next consolidation (default false)"), "\"content\""),
	 .output_schema = S_OBJ(
		S_LIST("saved", S_OBJ(S_BARE("id", "string") AND S_BARE("text", "string") AND S_BARE("trust", "string"), "\"id\",\"text\",\"trust\""), "what is new") AND
		TEXTS("known", "what was there already") AND
		TEXTS("superseded", "ids") AND
		S_BARE("path", "string") AND S_BARE("ledger", "string"), "\"saved\",\"known\",\"superseded\",\"path\"")},
	{.name = "memory_search", .title = "Search memory", .group = "memory", .call = tool_memory_search,
	 .render = render_matches, .traits = RO,
	 .description =
		"Finds facts in MEMORY.md and the daily ledgers, the best first: words, \"phrases\", -without; any "
		"language; typos are forgiven. Only what holds now, unless all is set.",
	 .input_schema = S_OBJ(
		S_STR("query", "what to look for") AND
		S_INT1("limit", "how many (default 10, at most 50)") AND
		S_BOOL("all", "also what was superseded, has expired or lies in the archive (default false)"), "\"query\""),
	 .output_schema = S_OBJ(
		S_LIST("matches", MATCH, "the best first") AND S_BARE("total", "integer") AND S_BARE("note", "string"),
		"\"matches\",\"total\"")},
	{.name = "memory_get", .title = "Read memory", .group = "memory", .call = tool_memory_get, .render = render_lines,
	 .traits = RO,
	 .description = "Gives lines of MEMORY.md or of a file below memory/, with their provenance.",
	 .input_schema = S_OBJ(
		S_STR("path", "MEMORY.md, memory/2026-11-15.md, …") AND
		S_INT1("start_line", "from this line on (default 1)") AND
		S_INT1("end_line", "to this line (default: 2000 lines)"), "\"path\""),
	 .output_schema = S_OBJ(
		S_BARE("path", "string") AND S_BARE("start_line", "integer") AND S_BARE("end_line", "integer") AND
		S_BARE("total_lines", "integer") AND S_BARE("content", "string"),
		"\"path\",\"start_line\",\"end_line\",\"total_lines\",\"content\"")},
	{.name = "memory_list", .title = "List facts", .group = "memory", .call = tool_memory_list, .render = render_facts,
	 .traits = RO,
	 .description = "Lists the facts of MEMORY.md with their ids and trust.",
	 .input_schema = S_OBJ(
		S_BOOL("all", "also those that do not hold now (default false)") AND
		S_ENUM("trust", TRUSTS, "only those that can be relied on at least so"), ""),
	 .output_schema = S_OBJ(S_LIST("facts", FACT, "in the order of the file") AND S_BARE("total", "integer"),
		"\"facts\",\"total\"")},
	{.name = "memory_consolidate", .title = "Consolidate memory", .group = "memory",
	 .call = tool_memory_consolidate, .render = render_consolidated,
	 .description =
		"Without text: what to merge, MEMORY.md and the ledger entries that are new to it, with ids and a basis. "
		"With text and that basis: replaces MEMORY.md by the merged facts, each a bullet that ends with the ids "
		"it comes from: - fact [m-… m-…]. A bullet without sources is refused; trust is never raised; what was "
		"saved meanwhile and what people wrote stays.",
	 .input_schema = S_OBJ(
		S_STR("text", "the new MEMORY.md: headings and bullets with their sources") AND
		S_STR("basis", "as it was given"), ""),
	 .output_schema = S_OBJ(
		S_BARE("basis", "string") AND S_LIST("facts", FACT, "of MEMORY.md") AND
		S_LIST("entries", FACT, "of ledgers") AND S_BARE("budget_bytes", "integer") AND
		S_BARE("total", "integer") AND S_BARE("merged", "integer") AND S_BARE("kept", "integer") AND S_BARE("dropped", "integer") AND
		S_BARE("bytes", "integer") AND S_BARE("consolidated_at", "string"), "")},
	{.name = "memory_forget", .title = "Forget", .group = "memory", .call = tool_memory_forget,
	 .render = render_forgotten, .traits = TOOL_DESTRUCTIVE | TOOL_LONG,
	 .description =
		"Forgets a fact for good: it goes from MEMORY.md, ledgers and archives, from history and from the index. "
		"Gives a receipt that does not have the words: where it was removed, and their SHA-256. What a person "
		"wrote cannot be forgotten by a tool.",
	 .input_schema = S_OBJ(
		S_STR("id", "the fact's id") AND
		S_STR("text", "or its words, all of them"), ""),
	 .output_schema = S_OBJ(
		S_BARE("receipt", "string") AND TEXTS("sha256", "of the words") AND S_BARE("time", "string") AND
		S_BARE("by", "object") AND TEXTS("ids", "of the facts that went") AND
		S_LIST("files", S_OBJ(S_BARE("path", "string") AND S_BARE("facts", "integer"), "\"path\",\"facts\""), "that were changed") AND
		S_BARE("history", "object") AND S_BARE("index", "string") AND TEXTS("forks", "where it went too") AND
		TEXTS("derived", "facts that were merged from it, and stay") AND
		TEXTS("mentions", "other files that have the words, and stay"),
		"\"receipt\",\"sha256\",\"time\",\"files\",\"history\"")},
	{0},
};

static const struct tool agentscope[] = {
	{.name = "memory_save", .title = "Save memory", .group = "memory", .acts_as = "memory_save", .call = scope_save,
	 .description = "Saves important information to long-term memory (MEMORY.md), as Markdown bullets.",
	 .input_schema = S_OBJ(S_STR("content", "Markdown bullets, one fact each"), "\"content\"")},
	{.name = "memory_search", .title = "Search memory", .group = "memory", .acts_as = "memory_search", .traits = RO,
	 .call = scope_search, .description = "Searches MEMORY.md and the daily ledgers.",
	 .input_schema = S_OBJ(S_STR("query", "what to look for"), "\"query\"")},
	{.name = "memory_get", .title = "Read memory lines", .group = "memory", .acts_as = "memory_get", .traits = RO,
	 .call = scope_get, .description = "Reads lines of a memory file.",
	 .input_schema = S_OBJ(
		S_STR("path", "MEMORY.md or a path below memory/") AND
		S_INT1("startLine", "the first line, from 1") AND
		S_INT1("endLine", "the last line"), "\"path\",\"startLine\",\"endLine\"")},
	{0},
};
/* clang-format on */

const struct tool_group agentscope_memory_tools = {agentscope, COUNT(agentscope)};

const struct family memory_family = {
	.name = "memory",
	.tools = native,
	.search = memory_sources,
	.commands = memory_commands,
};
