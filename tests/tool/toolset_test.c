/* SPDX-License-Identifier: Apache-2.0 */
/* The set itself: what is offered, what configuration takes away, and that the reference page says the same. */
#include "tool/tool_fix.h"

#include "allocations.h"
#include "tool/family.h"

/* An agent.yaml that sets up every tool that needs it. */
#define EVERYTHING                                                                                                     \
	"channel: {type: telegram}\n"                                                                                  \
	"browser: {enabled: true, program: /bin/sh}\n"                                                                 \
	"media: {speak: {command: [x]}, transcribe: {command: [x]}, pdf: {command: [x]}}\n"                            \
	"code: {functions: {one: {code: x}}}\n"                                                                        \
	"web: {fetch: {enabled: true}, search: {provider: json, url: \"http://127.0.0.1/{query}\"}}\n"

static void write_home(struct bench *b, const char *path, struct str text)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, text, (struct store_cond){0},
			     NULL, &err),
		 err);
}

/* A disk workspace whose tools.json is `config`; opening the set again gives `kind`. */
static void reopen_with(struct bench *b, struct str config, const char *dialect, enum err_kind kind, struct err *err)
{
	struct workspace_opts opts = {.name = STR("test"), .relaxed = true};
	int r;

	bench_open_disk(b, dialect);
	write_home(b, "tools.json", config);
	bench_stop(b);
	opts.store_url = arena_printf(b->arena, "disk:%s", b->dir);
	CHECK_OK(workspace_open(&opts, &b->ws, err), *err);
	test_defer(workspace_close, b->ws);
	r = toolset_new(b->ws, str_of(dialect), &b->set, err);
	if (r == 0)
		test_defer(toolset_destroy, b->set);
	CHECK_INT(r, -(int)kind);
}

TEST(every_dialect_has_tools_whose_schemas_are_sound_and_named_once)
{
	for (size_t d = 0; toolset_dialect(d); d++) {
		struct err err = {0};
		struct bench b;

		bench_open(&b, toolset_dialect(d));
		CHECK(toolset_count(b.set) > 0);
		for (size_t i = 0; i < toolset_count(b.set); i++) {
			const struct tool_info *info = toolset_at(b.set, i);

			CHECK(info->title.len && info->description.len);
			CHECK_STR(jv_get_str(info->input_schema, "type"), STR("object"));
			CHECK_OK(schema_compile(info->input_schema, &err), err);
			if (info->output_schema)
				CHECK_OK(schema_compile(info->output_schema, &err), err);
			CHECK(toolset_find(b.set, info->name) == info);
		}
		CHECK(toolset_at(b.set, toolset_count(b.set)) == NULL);
		bench_close(&b);
	}
}

TEST(an_unknown_tool_or_dialect_names_what_there_is)
{
	struct bench b;
	struct err err = {0};
	struct toolset *none;

	bench_open(&b, "native");
	CHECK_ERR(toolset_call(b.set, &b.ctx, STR("read_fil"), NULL, &b.result, &err), err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(err.msg), STR("did you mean \"read_file\""));
	CHECK_ERR(toolset_new(b.ws, STR("klingon"), &none, &err), err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(err.msg), STR("openpaw"));
	refused(&b, "read_file", "{'pth':'x','path':'y'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("path"));
	bench_close(&b);
}

TEST(deny_wins_over_allow_and_follows_a_tool_into_every_dialect)
{
	struct bench b;
	struct err err = {0};

	reopen_with(&b, STR("{\"allow\":[\"read_file\",\"write_file\"],\"deny\":[\"write_file\"]}"), "native", ERR_NONE,
		    &err);
	CHECK_INT(toolset_count(b.set), 1);
	CHECK(toolset_find(b.set, STR("read_file")) != NULL);
	bench_close(&b);
	reopen_with(&b, STR("{\"deny\":[\"write_file\"]}"), "openpaw", ERR_NONE, &err);
	CHECK(toolset_find(b.set, STR("overwrite_file")) == NULL);
	CHECK(toolset_find(b.set, STR("edit_file")) == NULL);
	bench_close(&b);
	reopen_with(&b, STR("{\"deny\":[\"delete_file\"]}"), "anthropic-memory", ERR_NONE, &err);
	CHECK_INT(toolset_count(b.set), 0);
	bench_close(&b);
	reopen_with(&b, STR("{\"allow\":[\"group:artifacts\"]}"), "native", ERR_NONE, &err);
	CHECK_INT(toolset_count(b.set), 5);
	bench_close(&b);
}

TEST(a_name_that_no_tool_has_stops_the_start)
{
	struct bench b;
	struct err err = {0};

	reopen_with(&b, STR("{\"deny\":[\"write_fil\"]}"), "native", ERR_INVALID, &err);
	CHECK_HAS(str_of(err.msg), STR("write_file"));
	bench_close(&b);
}

TEST(a_cancelled_call_is_a_result_that_says_so)
{
	struct bench b;
	struct cancel cancel = {true};

	bench_open(&b, "native");
	b.ctx.cancel = &cancel;
	refused(&b, "ls", "{}", ERR_CANCELLED);
	bench_close(&b);
}

TEST(a_set_parses_no_schema_before_a_tool_is_looked_at)
{
	struct bench b;
	struct toolset *set;
	struct err err = {0};
	size_t before, made, parsed;

	bench_open(&b, "native");
	before = allocation_bytes;
	CHECK_OK(toolset_new(b.ws, STR("native"), &set, &err), err);
	test_defer(toolset_destroy, set);
	made = allocation_bytes - before;
	before = allocation_bytes;
	for (size_t i = 0; i < toolset_count(set); i++)
		toolset_at(set, i);
	parsed = allocation_bytes - before;
	printf("# a set is %zu KiB, its schemas are %zu KiB\n", made / 1024, parsed / 1024);
	CHECK(parsed > 4 * made);
	before = allocation_count;
	for (size_t i = 0; i < toolset_count(set); i++)
		toolset_at(set, i);
	CHECK_INT(allocation_count - before, 0); /* and each of them once */
	bench_close(&b);
}

/* --- the reference page --- */

static void describe_type(const struct jv *schema, struct buf *out)
{
	const struct jv *type = jv_get(schema, "type"), *words = jv_get(schema, "enum"),
			*choices = jv_get(schema, "anyOf");

	for (const struct jv_member *m = jv_first(choices); m; m = m->next) {
		buf_add(out, m == jv_first(choices) ? STR("") : STR(" or "));
		describe_type(m->value, out);
	}
	for (const struct jv_member *m = jv_first(words); m; m = m->next)
		buf_printf(out, "%s`%.*s`", m == jv_first(words) ? "" : ", ", STR_ARG(jv_str_of(m->value)));
	for (const struct jv_member *m = jv_first(type); m; m = m->next)
		buf_printf(out, "%s%.*s", m == jv_first(type) ? "" : " or ", STR_ARG(jv_str_of(m->value)));
	if (!choices && !words)
		buf_add(out, !type ? STR("any") : str_is(jv_str_of(type), "array") ? STR("list") : jv_str_of(type));
}

static bool is_required(const struct jv *schema, struct str key)
{
	for (const struct jv_member *m = jv_first(jv_get(schema, "required")); m; m = m->next)
		if (str_eq(jv_str_of(m->value), key))
			return true;
	return false;
}

static void describe_tool(const struct tool_info *t, struct buf *out)
{
	buf_printf(out, "#### `%.*s`\n\n%.*s\n\n", STR_ARG(t->name), STR_ARG(t->description));
	buf_printf(out, "%s%s%s\n\n", t->traits & TOOL_READS_ONLY ? "Reads only." : "Changes files.",
		   t->traits & TOOL_DESTRUCTIVE ? " May destroy what is there." : "",
		   t->traits & TOOL_IDEMPOTENT ? " Calling it again changes nothing more." : "");
	if (jv_count(jv_get(t->input_schema, "properties")))
		buf_lit(out, "| argument | type | |\n|---|---|---|\n");
	for (const struct jv_member *m = jv_first(jv_get(t->input_schema, "properties")); m; m = m->next) {
		buf_printf(out, "| `%.*s`%s | ", STR_ARG(m->key), is_required(t->input_schema, m->key) ? " *" : "");
		describe_type(m->value, out);
		buf_printf(out, " | %.*s |\n", STR_ARG(jv_get_str(m->value, "description")));
	}
	if (t->output_schema) {
		buf_lit(out, "\nResult:");
		for (const struct jv_member *m = jv_first(jv_get(t->output_schema, "properties")); m; m = m->next)
			buf_printf(out, "%s `%.*s`%s", m == jv_first(jv_get(t->output_schema, "properties")) ? "" : ",",
				   STR_ARG(m->key), is_required(t->output_schema, m->key) ? "" : "?");
		buf_char(out, '\n');
	}
	buf_char(out, '\n');
}

/* The part of the page that follows the mark is written from the tables: STEAD_GOLDEN=write does it. */
TEST(the_reference_page_says_what_the_table_says)
{
	static const char mark[] = "<!-- the rest of this page is written from the tool tables -->\n";
	struct bench b;
	struct buf page, want;
	char path[300], chunk[4096];
	size_t n, at;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tools.md", DOCS_DIR);
	bench_open_disk(&b, "native");
	write_home(&b, "agent.yaml", STR(EVERYTHING)); /* so that every tool is offered */
	bench_reopen(&b, (struct workspace_opts){0}, "native");
	buf_init(&page, b.arena, (size_t)1 << 20);
	f = fopen(path, "rb");
	CHECK(f != NULL);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&page, str_n(chunk, n));
	fclose(f);
	at = str_find(buf_str(&page), str_of(mark), 0);
	CHECK(at != SIZE_MAX);
	buf_init(&want, b.arena, (size_t)1 << 20);
	buf_add(&want, str_n(page.ptr, at + sizeof(mark) - 1));
	buf_char(&want, '\n');
	for (size_t i = 0; families[i]; i++) {
		CHECK(families[i]->about != NULL);
		buf_printf(&want, "### %s\n\n%s\n\n", families[i]->name, families[i]->about);
		for (const struct tool *t = families[i]->tools; t && t->name; t++)
			describe_tool(toolset_find(b.set, str_of(t->name)), &want);
	}
	want.len--;
	if (getenv("STEAD_GOLDEN")) {
		f = fopen(path, "wb");
		CHECK(f && fwrite(want.ptr, 1, want.len, f) == want.len && fclose(f) == 0);
	} else {
		CHECK(page.len == want.len && memcmp(page.ptr, want.ptr, want.len) == 0);
	}
	bench_close(&b);
}
