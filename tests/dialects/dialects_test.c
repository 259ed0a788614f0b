/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden transcripts, one per dialect: golden/<dialect>.txt has calls ("> tool {arguments}"), each followed by the
 * reply as a model reads it; a failure is marked "!". Lines with "## " are remarks. STEAD_GOLDEN=write rewrites the
 * replies.
 */
#include "tool/tool_fix.h"

static struct str read_host_file(struct arena *arena, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct buf buf;
	char chunk[4096];
	size_t n;

	if (!f)
		TEST_FAIL("%s cannot be read", path);
	buf_init(&buf, arena, (size_t)1 << 24);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&buf, str_n(chunk, n));
	fclose(f);
	return buf.ptr ? buf_str(&buf) : STR("");
}

static void run_line(struct bench *b, struct str line, struct buf *out)
{
	struct str rest = str_from(line, 2), tool;
	struct err err = {0};
	struct jv *args;

	str_cut(&rest, ' ', &tool);
	CHECK_OK(jv_parse(b->arena, rest.ptr ? rest : STR("{}"), &args, &err), err);
	call_jv(b, arena_cstr(b->arena, tool), args);
	buf_add(out, line);
	buf_char(out, '\n');
	if (b->result.is_error)
		buf_lit(out, "! ");
	buf_add(out, b->result.text);
	if (out->ptr[out->len - 1] != '\n')
		buf_char(out, '\n');
	buf_char(out, '\n');
}

static void check_transcript(const char *dialect)
{
	struct bench b;
	struct str rest, line, want;
	struct buf out;
	char path[300];

	snprintf(path, sizeof(path), "%s/%s.txt", GOLDEN_DIR, dialect);
	setenv("STEAD_TEST_CLOCK_NS", "1763200242000000000", 1);
	bench_open(&b, dialect);
	want = rest = read_host_file(b.arena, path);
	buf_init(&out, b.arena, (size_t)1 << 24);
	while (str_cut(&rest, '\n', &line)) {
		if (str_starts(line, STR("> ")))
			run_line(&b, line, &out);
		else if (str_starts(line, STR("## ")))
			buf_printf(&out, "%.*s\n", STR_ARG(line));
	}
	if (getenv("STEAD_GOLDEN")) {
		FILE *f = fopen(path, "wb");

		CHECK(f && fwrite(out.ptr, 1, out.len, f) == out.len && fclose(f) == 0);
	} else {
		CHECK_STR(buf_str(&out), want);
	}
	bench_close(&b);
	unsetenv("STEAD_TEST_CLOCK_NS");
}

TEST(omnicoreagent_answers_as_its_documentation_shows)
{
	check_transcript("omnicoreagent");
}

TEST(openpaw_answers_as_its_documentation_shows)
{
	check_transcript("openpaw");
}

TEST(wacht_answers_as_its_documentation_shows)
{
	check_transcript("wacht");
}

TEST(agentscope_answers_as_its_documentation_shows)
{
	check_transcript("agentscope");
}

TEST(anthropic_memory_answers_word_for_word)
{
	check_transcript("anthropic-memory");
}

TEST(loomflow_answers_as_recorded)
{
	check_transcript("loomflow");
}

TEST(openpaw_cuts_lines_at_2000_characters_and_the_whole_at_100000)
{
	struct bench b;
	struct buf text;

	bench_open(&b, "openpaw");
	buf_init(&text, b.arena, (size_t)1 << 20);
	for (int line = 0; line < 60; line++) {
		for (int i = 0; i < 2001; i++)
			buf_lit(&text, "\xC3\xA9");
		buf_char(&text, '\n');
	}
	put(&b, "f", buf_str(&text));
	good(&b, "read_file", "{'file_path':'f','limit':1}");
	CHECK_INT(utf8_count(b.result.text), 7 + 2000 + sizeof("\n[59 more lines; continue with offset=1]") - 1);
	good(&b, "read_file", "{'file_path':'f'}");
	CHECK(utf8_count(b.result.text) < 100200);
	CHECK_HAS(b.result.text, STR("continue with offset=49"));
	bench_close(&b);
}
