/* SPDX-License-Identifier: Apache-2.0 */
/* The example of docs/adding-a-tool.md compiles, runs, and keeps its own schemas. */
#include "tool/schema_text.h"
#include "tool/tool_fix.h"

#include "../../docs/examples/tool_count_words.c"

static int run_example(struct bench *b, const char *path, struct outcome *out, struct err *err)
{
	struct call c = {.ctx = &b->ctx, .ws = b->ws, .files = workspace_files(b->ws)};
	struct jv *args = jv_object(b->arena), *schema;

	jv_set_str(b->arena, args, "path", str_of(path));
	CHECK_OK(schema_text_parse(b->arena, example_count_words.args, &schema, err), *err);
	CHECK_OK(schema_check(schema, args, "arguments", err), *err);
	return example_count_words.call(&c, args, out, err);
}

TEST(the_example_tool_counts_and_fits_its_schema)
{
	struct bench b;
	struct outcome out = {0};
	struct err err = {0};
	struct jv *schema;
	struct buf text;

	bench_open(&b, "native");
	put(&b, "f", STR("one two\n three "));
	put(&b, "bin", STR("\0"));
	CHECK_OK(run_example(&b, "f", &out, &err), err);
	CHECK_OK(schema_text_parse(b.arena, example_count_words.result, &schema, &err), err);
	CHECK_OK(schema_check(schema, out.value, "result", &err), err);
	buf_init(&text, b.arena, 100);
	example_count_words.render(NULL, out.value, &text);
	CHECK_STR(buf_str(&text), STR("3 words in f"));
	CHECK_ERR(run_example(&b, "bin", &out, &err), err, ERR_UNSUPPORTED);
	bench_close(&b);
}
