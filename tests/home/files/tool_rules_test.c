/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that hold for every store: the same table of calls runs on memory and on disk. After every refused call the
 * tree is as it was before, byte for byte.
 */
#include "tool/tool_fix.h"

#include "base/hash.h"

/* One hash over all paths and bytes. */
static uint64_t snapshot(struct bench *b)
{
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct store_page page;
	struct err err = {0};
	uint64_t sum = 0;

	CHECK_OK(store_list(workspace_files(b->ws), &b->ctx, WPATH_ROOT, &req, &page, &err), err);
	for (size_t i = 0; i < page.count; i++) {
		struct str bytes;

		CHECK_OK(store_read(workspace_files(b->ws), &b->ctx, page.entries[i].path, STORE_WHOLE, (size_t)1 << 30,
				    &bytes, NULL, &err),
			 err);
		sum = hash_u64(page.entries[i].path.s, sum);
		sum = hash_u64(bytes, sum);
	}
	return sum;
}

static void fill(struct bench *b)
{
	put(b, "a.md", STR("alpha\nbeta\n"));
	put(b, "dir/b.md", STR("one\r\ntwo\r\n"));
	put(b, "dir/deep/c.txt", STR("no newline"));
	put(b, "bin", STR("\0\1\2\xFF"));
	put(b, ".hidden", STR("h"));
}

struct refusal {
	const char *tool, *args;
	enum err_kind kind;
};

static const struct refusal refusals[] = {
	/* paths */
	{"read_file", "{'path':'..'}", ERR_INVALID},
	{"read_file", "{'path':'a/../a.md'}", ERR_INVALID},
	{"read_file", "{'path':'%2e%2e/x'}", ERR_NOT_FOUND},
	{"read_file", "{'path':'/etc/passwd'}", ERR_NOT_FOUND},
	{"read_file", "{'path':'~x'}", ERR_INVALID},
	{"read_file", "{'path':'a\\u0001b'}", ERR_INVALID},
	{"read_file", "{'path':''}", ERR_INVALID},
	{"read_file", "{'path':'dir'}", ERR_INVALID},
	{"read_file", "{'path':'a.md/x'}", ERR_NOT_FOUND},
	{"read_file", "{}", ERR_INVALID},
	{"read_file", "{'path':{}}", ERR_INVALID},
	{"read_file", "{'path':'a.md','ofset':1}", ERR_INVALID},
	{"read_file", "{'path':'a.md','offset':-1}", ERR_INVALID},
	{"read_file", "{'path':'a.md','limit':0}", ERR_INVALID},
	{"read_file", "{'path':'a.md','offset':9223372036854775807,'limit':9223372036854775807}", ERR_INVALID},
	{"read_file", "{'path':'a.md','byte_offset':9223372036854775807}", ERR_INVALID},
	{"read_file", "{'path':'a.md','offset':1.5}", ERR_INVALID},
	{"read_file", "{'path':'bin'}", ERR_UNSUPPORTED},
	{"write_file", "{'path':'a.md','content':'x'}", ERR_EXISTS},
	{"write_file", "{'path':'dir','content':'x'}", ERR_INVALID},
	{"write_file", "{'path':'dir','content':'x','mode':'overwrite'}", ERR_INVALID},
	{"write_file", "{'path':'a.md/x','content':'x'}", ERR_INVALID},
	{"write_file", "{'path':'../x','content':'x'}", ERR_INVALID},
	{"write_file", "{'path':'/','content':'x'}", ERR_INVALID},
	{"write_file", "{'path':'notes/','content':'x'}", ERR_INVALID},
	{"append_file", "{'path':'notes/','content':'x'}", ERR_INVALID},
	{"write_file", "{'path':'n','content':'x','mode':'truncate'}", ERR_INVALID},
	{"write_file", "{'path':'n','content':{}}", ERR_INVALID},
	{"write_file", "{'path':'n','content':'x','if_version':'v'}", ERR_INVALID},
	{"write_file", "{'path':'n','content':'x','mode':'overwrite','if_version':'v'}", ERR_CONFLICT},
	{"write_file", "{'path':'n','content':'*','encoding':'base64'}", ERR_INVALID},
	{"append_file", "{'path':'dir','content':'x'}", ERR_INVALID},
	{"edit_file", "{'path':'none','old_text':'a','new_text':'b'}", ERR_NOT_FOUND},
	{"edit_file", "{'path':'a.md','old_text':'zeta','new_text':'b'}", ERR_NOT_FOUND},
	{"edit_file", "{'path':'a.md','old_text':'a','new_text':'b'}", ERR_INVALID},
	{"edit_file", "{'path':'a.md','old_text':'','new_text':'b'}", ERR_INVALID},
	{"edit_file", "{'path':'a.md','old_text':'alpha','new_text':'alpha'}", ERR_INVALID},
	{"edit_file", "{'path':'dir','old_text':'a','new_text':'b'}", ERR_INVALID},
	{"insert_file", "{'path':'a.md','insert_line':0,'insert_text':'x'}", ERR_INVALID},
	{"insert_file", "{'path':'a.md','insert_line':4,'insert_text':'x'}", ERR_INVALID},
	{"insert_file", "{'path':'a.md','insert_line':1,'insert_text':''}", ERR_INVALID},
	{"insert_file", "{'path':'none','insert_line':1,'insert_text':'x'}", ERR_NOT_FOUND},
	{"delete_file", "{'path':'none'}", ERR_NOT_FOUND},
	{"delete_file", "{'path':'dir'}", ERR_INVALID},
	{"delete_file", "{'path':'','recursive':true}", ERR_INVALID},
	{"delete_file", "{'path':'dir','recursive':true,'if_version':'v'}", ERR_INVALID},
	{"move_file", "{'from':'a.md','to':'.hidden'}", ERR_EXISTS},
	{"move_file", "{'from':'a.md','to':'dir'}", ERR_INVALID},
	{"move_file", "{'from':'a.md','to':'dir','overwrite':true}", ERR_INVALID},
	{"move_file", "{'from':'dir','to':'dir/deep/x'}", ERR_INVALID},
	{"move_file", "{'from':'none','to':'x'}", ERR_NOT_FOUND},
	{"copy_file", "{'from':'a.md','to':'a.md'}", ERR_INVALID},
	{"copy_file", "{'from':'a.md','to':'bin'}", ERR_EXISTS},
	{"copy_file", "{'from':'a.md','to':'../x'}", ERR_INVALID},
	{"ls", "{'path':'none'}", ERR_NOT_FOUND},
	{"ls", "{'path':'..'}", ERR_INVALID},
	{"file_info", "{'path':'none'}", ERR_NOT_FOUND},
	{"glob", "{'pattern':''}", ERR_INVALID},
	{"grep", "{'pattern':''}", ERR_INVALID},
	{"grep", "{'pattern':'('}", ERR_INVALID},
	{"grep", "{'pattern':'x','path':'none'}", ERR_NOT_FOUND},
	{"grep", "{'pattern':'x','context':-1}", ERR_INVALID},
	{"read_artifact", "{'artifact_id':'none'}", ERR_NOT_FOUND},
	{"read_artifact", "{'artifact_id':''}", ERR_NOT_FOUND},
	{"read_artifact", "{'artifact_id':'../a.md'}", ERR_NOT_FOUND},
	{"tail_artifact", "{'artifact_id':'none'}", ERR_NOT_FOUND},
	{"search_artifact", "{'artifact_id':'none','query':'x'}", ERR_NOT_FOUND},
};

static void refuse_all(struct bench *b)
{
	uint64_t before;

	fill(b);
	before = snapshot(b);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct str text = refused(b, refusals[i].tool, refusals[i].args, refusals[i].kind);

		CHECK(text.len > 10);
		CHECK_LACKS(text, STR("/tmp/")); /* never a path of the host */
		if (snapshot(b) != before)
			TEST_FAIL("%s %s changed the tree", refusals[i].tool, refusals[i].args);
	}
}

TEST(what_is_refused_on_memory_changes_nothing)
{
	struct bench b;

	bench_open(&b, "native");
	refuse_all(&b);
	bench_close(&b);
}

TEST(what_is_refused_on_disk_changes_nothing)
{
	struct bench b;

	bench_open_disk(&b, "native");
	refuse_all(&b);
	bench_close(&b);
}

/* Wrong types, huge numbers and long texts for every argument of every tool of every dialect: each call ends in a
   result, and one that fails changes nothing. */
static void torment(struct bench *b, const struct tool_info *info)
{
	static const char *const hostile[] = {"null",      "true",   "-1",          "9223372036854775807",
					      "1e308",     "[]",     "{}",          "\"\"",
					      "[[[[1]]]]", "\"..\"", "\"\\u0001\"", "\"\\ud83c\\udf31\""};
	const struct jv *properties = jv_get(info->input_schema, "properties");
	char *big = malloc((size_t)1 << 20);

	memset(big, 'x', (size_t)1 << 20);
	for (const struct jv_member *m = jv_first(properties); m; m = m->next) {
		for (size_t i = 0; i <= sizeof(hostile) / sizeof(hostile[0]); i++) {
			struct jv *args = jv_object(b->arena), *value = NULL;
			uint64_t before = snapshot(b);
			struct err err = {0};

			for (const struct jv_member *n = jv_first(properties); n; n = n->next)
				if (str_is(jv_get_str(n->value, "type"), "string"))
					jv_set_key(b->arena, args, n->key, jv_str(b->arena, STR("a.md")));
			if (i < sizeof(hostile) / sizeof(hostile[0]))
				CHECK_OK(jv_parse(b->arena, arena_printf(b->arena, "[%s]", hostile[i]), &value, &err),
					 err);
			jv_set_key(b->arena, args, m->key,
				   value ? (struct jv *)jv_at(value, 0)
					 : jv_str(b->arena, str_n(big, (size_t)1 << 20)));
			call_jv(b, arena_cstr(b->arena, info->name), args);
			if (b->result.is_error && snapshot(b) != before)
				TEST_FAIL("%.*s failed and changed the tree", STR_ARG(info->name));
		}
	}
	free(big);
}

TEST(hostile_arguments_end_in_a_result_and_a_failure_changes_nothing)
{
	for (size_t d = 0; toolset_dialect(d); d++) {
		struct bench b;

		bench_open(&b, toolset_dialect(d));
		fill(&b);
		for (size_t i = 0; i < toolset_count(b.set); i++)
			torment(&b, toolset_at(b.set, i));
		bench_close(&b);
	}
}

TEST(bytes_that_are_not_utf8_in_arguments_are_refused_or_kept_out_of_paths)
{
	struct bench b;
	struct jv *args;

	bench_open(&b, "native");
	args = jv_object(b.arena);
	jv_set_str(b.arena, args, "path", STR("bad\xFFname"));
	jv_set_str(b.arena, args, "content", STR("x"));
	call_jv(&b, "write_file", args);
	CHECK(b.result.is_error);
	CHECK_INT(b.result.err.kind, ERR_INVALID);
	bench_close(&b);
}

static void search(struct bench *b)
{
	const struct jv *v;

	fill(b);
	v = good(b, "glob", "{'pattern':'**/*.md'}");
	CHECK_INT(jv_get_int(v, "total", 0), 2);
	CHECK_STR(b->result.text, STR("a.md\ndir/b.md"));
	v = good(b, "glob", "{'pattern':'*.md'}");
	CHECK_STR(b->result.text, STR("a.md"));
	v = good(b, "glob", "{'pattern':'dir/**/c.txt'}");
	CHECK_INT(jv_get_int(v, "total", 0), 1);
	v = good(b, "glob", "{'pattern':'**','limit':2}");
	CHECK_INT(jv_get_int(v, "total", 0), 5);
	CHECK_INT(jv_count(jv_get(v, "paths")), 2);
	CHECK(jv_get_str(v, "next_cursor").len > 0);
	v = good(b, "grep", "{'pattern':'^(alpha|two)'}");
	CHECK_INT(jv_get_int(v, "total_matches", 0), 2);
	CHECK_INT(jv_get_int(v, "binary_skipped", 0), 1);
	CHECK_HAS(b->result.text, STR("a.md:1:alpha\ndir/b.md:2:two"));
	v = good(b, "grep", "{'pattern':'ALPHA'}");
	CHECK_INT(jv_get_int(v, "total_matches", 0), 0);
	v = good(b, "grep", "{'pattern':'ALPHA','case_sensitive':false,'context':1}");
	CHECK_HAS(b->result.text, STR("a.md:1:alpha\na.md-2-beta"));
	v = good(b, "grep", "{'pattern':'a','include':'*.md','output':'count'}");
	CHECK_HAS(b->result.text, STR("a.md:2"));
	v = good(b, "grep", "{'pattern':'.','include':['*.txt','*.md'],'exclude':'dir/*','limit':1}");
	CHECK_INT(jv_get_int(v, "total_matches", 0), 2);
	CHECK_HAS(b->result.text, STR("continue with cursor"));
}

TEST(searches_are_counted_ordered_and_paged_on_memory)
{
	struct bench b;

	bench_open(&b, "native");
	search(&b);
	bench_close(&b);
}

TEST(searches_are_counted_ordered_and_paged_on_disk)
{
	struct bench b;

	bench_open_disk(&b, "native");
	search(&b);
	bench_close(&b);
}
