/* SPDX-License-Identifier: Apache-2.0 */
/* Files over HTTP: bytes, versions, conditions, ranges, lists. */
#include "client.h"

#define FILES "/v1/workspaces/demo/files"

static struct reply put(struct site *s, const char *path, const char *extra, struct str bytes)
{
	return ask(s, "PUT", arena_printf(s->arena, FILES "/%s", path).ptr, extra, bytes);
}

static const char *if_match(struct site *s, struct str etag)
{
	return arena_printf(s->arena, "If-Match: %.*s\r\n", STR_ARG(etag)).ptr;
}

static struct str some_bytes(struct site *s, size_t len)
{
	char *bytes = arena_alloc_raw(s->arena, len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	return str_n(bytes, len);
}

TEST(what_was_put_is_what_is_got)
{
	static const size_t sizes[] = {0, 1, 1000, 65536, 65537, 262144, 262145, 3000000};
	static struct site s;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct str bytes = some_bytes(&s, sizes[i]);
		struct reply reply = put(&s, "dir/a%20b%25.bin", NULL, bytes);

		CHECK_STATUS(reply, i ? 200 : 201);
		CHECK_INT(jv_get_int(json_of(&s, reply), "size", -1), (int64_t)sizes[i]);
		CHECK_STR(jv_get_str(json_of(&s, reply), "path"), STR("dir/a b%.bin"));
		reply = get(&s, FILES "/dir/a%20b%25.bin");
		CHECK_STATUS(reply, 200);
		CHECK(str_eq(reply.body, bytes));
	}
}

TEST(a_file_is_created_once)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	reply = put(&s, "a", NULL, STR("one"));
	CHECK_STATUS(reply, 201);
	CHECK_STATUS(put(&s, "a", NULL, STR("two")), 200);
	CHECK_STATUS(put(&s, "a", if_match(&s, head_value(get(&s, FILES "/a").head, "ETag")), STR("three")), 200);
	CHECK_STR(get(&s, FILES "/a").body, STR("three"));
	CHECK_STATUS(ask(&s, "DELETE", FILES "/a", NULL, STR_NONE), 204);
	CHECK_STATUS(put(&s, "a", NULL, STR("four")), 201);
	CHECK_STATUS(put(&s, "a/b", NULL, STR("below a file")), 400);
}

TEST(a_chunked_body_is_a_body)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	wire_open(&w, &s);
	wire_send(&w, STR("PUT " FILES "/c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
			  "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"));
	CHECK_STATUS(wire_read(&w, false), 201);
	CHECK_STR(get(&s, FILES "/c").body, STR("abcdefg"));
}

TEST(a_body_that_breaks_off_changes_nothing)
{
	static struct site s;
	static struct wire w;

	site_start(&s, true);
	put(&s, "a", NULL, STR("before"));
	for (int i = 0; i < 2; i++) {
		wire_open(&w, &s);
		wire_send(&w,
			  i ? STR("PUT " FILES "/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
			    : STR("PUT " FILES "/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
				  "ff\r\n"));
		wire_send(&w, STR("half"));
		test_close(&w);
	}
	CHECK_STR(get(&s, FILES "/a").body, STR("before"));
}

TEST(the_version_is_the_etag)
{
	static struct site s;
	struct reply reply;
	struct str etag;

	site_start(&s, true);
	reply = put(&s, "a", NULL, STR("one"));
	etag = head_value(reply.head, "ETag");
	CHECK_STR(etag, arena_printf(s.arena, "\"%.*s\"", STR_ARG(jv_get_str(json_of(&s, reply), "version"))));
	CHECK_STR(head_value(get(&s, FILES "/a").head, "ETag"), etag);
	reply = ask(&s, "GET", FILES "/a", arena_printf(s.arena, "If-None-Match: \"x\", W/%.*s\r\n", STR_ARG(etag)).ptr,
		    STR_NONE);
	CHECK_STATUS(reply, 304);
	CHECK_STATUS(ask(&s, "GET", FILES "/a", "If-None-Match: \"x\"\r\n", STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", FILES "/a", "If-Match: \"x\"\r\n", STR_NONE), 412);
	reply = ask(&s, "HEAD", FILES "/a", NULL, STR_NONE);
	CHECK_STATUS(reply, 200);
	CHECK_STR(head_value(reply.head, "Content-Length"), STR("3"));
	CHECK_STR(head_value(reply.head, "ETag"), etag);
}

TEST(a_write_holds_its_condition)
{
	static struct site s;
	struct str one, two;

	site_start(&s, true);
	one = head_value(put(&s, "a", "If-None-Match: *\r\n", STR("one")).head, "ETag");
	CHECK_STATUS(put(&s, "a", "If-None-Match: *\r\n", STR("new")), 412);
	two = head_value(put(&s, "a", if_match(&s, one), STR("two")).head, "ETag");
	CHECK_STATUS(put(&s, "a", if_match(&s, one), STR("three")), 412);
	CHECK_STATUS(put(&s, "none", "If-Match: *\r\n", STR("x")), 412);
	CHECK_STATUS(put(&s, "a", "If-Match: *\r\n", STR("any")), 200);
	CHECK_STATUS(put(&s, "a", "If-None-Match: \"x\"\r\n", STR("x")), 400);
	CHECK_STATUS(ask(&s, "DELETE", FILES "/a", if_match(&s, two), STR_NONE), 412);
	CHECK_STR(get(&s, FILES "/a").body, STR("any"));
	CHECK_STATUS(ask(&s, "DELETE", FILES "/a", NULL, STR_NONE), 204);
	CHECK_STATUS(ask(&s, "DELETE", FILES "/a", NULL, STR_NONE), 404);
}

TEST(ranges_are_parts)
{
	static const struct {
		const char *range;
		int status;
		const char *body, *content_range;
	} cases[] = {
		{"bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"bytes=7-", 206, "789", "bytes 7-9/10"},
		{"bytes=-2", 206, "89", "bytes 8-9/10"},
		{"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
		{"bytes=5-99", 206, "56789", "bytes 5-9/10"},
		{"bytes=10-", 416, NULL, "bytes */10"},
		{"bytes=-0", 416, NULL, "bytes */10"},
		{"bytes=3-1", 200, "0123456789", NULL},
		{"bytes=0-1,4-5", 200, "0123456789", NULL},
		{"lines=0-1", 200, "0123456789", NULL},
		{"bytes=99999999999999999999-", 200, "0123456789", NULL},
	};
	static struct site s;

	site_start(&s, true);
	put(&s, "a", NULL, STR("0123456789"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct reply reply = ask(&s, "GET", FILES "/a",
					 arena_printf(s.arena, "Range: %s\r\n", cases[i].range).ptr, STR_NONE);

		CHECK_STATUS(reply, cases[i].status);
		if (cases[i].body)
			CHECK_STR(reply.body, str_of(cases[i].body));
		CHECK_STR(head_value(reply.head, "Content-Range"), str_of(cases[i].content_range));
	}
	CHECK_STATUS(ask(&s, "GET", FILES "/a", "Range: bytes=0-1\r\nIf-Range: \"other\"\r\n", STR_NONE), 200);
}

TEST(a_range_of_a_large_file_is_exact)
{
	static struct site s;
	struct str bytes;
	struct reply reply;

	site_start(&s, true);
	bytes = some_bytes(&s, 2000000);
	put(&s, "big", NULL, bytes);
	reply = ask(&s, "GET", FILES "/big", "Range: bytes=1000001-1900000\r\n", STR_NONE);
	CHECK_STATUS(reply, 206);
	CHECK(str_eq(reply.body, str_first(str_from(bytes, 1000001), 900000)));
}

TEST(a_user_has_files_of_their_own)
{
	static struct site s;
	struct str bytes;

	site_start(&s, true);
	bytes = some_bytes(&s, 1500000);
	CHECK_STATUS(put(&s, "a", "Stead-User: alice\r\n", bytes), 201);
	CHECK_STATUS(put(&s, "a", "Stead-User: bob\r\n", STR("bob's")), 201);
	CHECK_STATUS(get(&s, FILES "/a"), 404);
	CHECK(str_eq(ask(&s, "GET", FILES "/a", "Stead-User: alice\r\n", STR_NONE).body, bytes));
	CHECK_STR(ask(&s, "GET", FILES "/a", "Stead-User: b%6fb\r\n", STR_NONE).body, STR("bob's"));
}

TEST(lists_come_in_pages)
{
	static struct site s;
	const struct jv *v;
	struct str after;

	site_start(&s, true);
	for (int i = 0; i < 5; i++)
		put(&s, arena_printf(s.arena, "d/f%d", i).ptr, NULL, STR("x"));
	put(&s, "e", NULL, STR("12"));
	v = json_of(&s, get(&s, FILES));
	CHECK_INT(jv_count(jv_get(v, "entries")), 2);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "kind"), STR("directory"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 1), "name"), STR("e"));
	CHECK_INT(jv_get_int(jv_at(jv_get(v, "entries"), 1), "size", 0), 2);
	CHECK(jv_is_null(jv_get(v, "next")));
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, FILES "?recursive=true")), "entries")), 6);
	v = json_of(&s, get(&s, FILES "?path=/d/&limit=3"));
	CHECK_INT(jv_count(jv_get(v, "entries")), 3);
	after = jv_get_str(v, "next");
	v = json_of(&s, get(&s, arena_printf(s.arena, FILES "?path=d&limit=3&cursor=%.*s", STR_ARG(after)).ptr));
	CHECK_INT(jv_count(jv_get(v, "entries")), 2);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "path"), STR("d/f3"));
	CHECK_STATUS(get(&s, FILES "?path=none"), 404);
	CHECK_STATUS(get(&s, FILES "?path=../x"), 400);
}

/* 100 files, so that the list is long enough to be kept. */
static void fill(struct site *s, const char *dir, const char *extra)
{
	for (int i = 0; i < 100; i++)
		CHECK_STATUS(put(s, arena_printf(s->arena, "%s/a-name-that-is-long-%d", dir, i).ptr, extra, STR("one")),
			     201);
}

static const struct jv *first_entry(struct site *s, const char *target)
{
	struct reply first = get(s, target), again = get(s, target);

	CHECK_STR(again.body, first.body);
	return jv_at(jv_get(json_of(s, again), "entries"), 0);
}

TEST(a_list_is_right_at_once_after_every_change)
{
	static struct site s;
	struct str version, place;
	const char *file, *dir, *away;
	FILE *f;

	site_start(&s, true);
	fill(&s, "p/d", NULL);
	CHECK_INT(jv_get_int(first_entry(&s, FILES "?path=p/d"), "size", 0), 3);
	put(&s, "p/d/a-name-that-is-long-0", NULL, STR("longer"));
	CHECK_INT(jv_get_int(first_entry(&s, FILES "?path=p/d"), "size", 0), 6);
	put(&s, "p/d/a-before", NULL, STR(""));
	CHECK_STR(jv_get_str(first_entry(&s, FILES "?path=p/d"), "name"), STR("a-before"));
	CHECK_STATUS(ask(&s, "DELETE", FILES "/p/d/a-before", NULL, STR_NONE), 204);
	/* another program: in place with as many bytes, and with the parent moved */
	place = arena_printf(s.arena, "%s/ws/demo/files/p", s.dir);
	file = arena_cstr(s.arena, arena_printf(s.arena, "%.*s/d/a-name-that-is-long-0", STR_ARG(place)));
	version = jv_get_str(first_entry(&s, FILES "?path=p/d"), "version");
	f = fopen(file, "r+");
	CHECK(f && fwrite("LONGER", 1, 6, f) == 6 && fclose(f) == 0);
	CHECK(!str_eq(jv_get_str(first_entry(&s, FILES "?path=p/d"), "version"), version));
	dir = arena_cstr(s.arena, place);
	away = arena_cstr(s.arena, arena_printf(s.arena, "%.*s2", STR_ARG(place)));
	CHECK_INT(rename(dir, away), 0);
	CHECK_STATUS(get(&s, FILES "?path=p/d"), 404);
	CHECK_STATUS(get(&s, FILES "?path=p2/d"), 200);
}

TEST(a_list_that_was_kept_is_only_for_its_user_and_its_request)
{
	static struct site s;

	site_start(&s, true);
	fill(&s, "d", "Stead-User: alice\r\n");
	CHECK_STATUS(ask(&s, "GET", FILES "?path=d", "Stead-User: alice\r\n", STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", FILES "?path=d", "Stead-User: alice\r\n", STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", FILES "?path=d", "Stead-User: bob\r\n", STR_NONE), 404);
	CHECK_STATUS(get(&s, FILES "?path=d"), 404);
	fill(&s, "d", NULL);
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, FILES "?path=d")), "entries")), 100);
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, FILES "?path=d&limit=99")), "entries")), 99);
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, FILES "?path=d&limit=99")), "entries")), 99);
}

TEST(directories_are_removed_only_recursively)
{
	static struct site s;

	site_start(&s, true);
	put(&s, "d/a", NULL, STR("x"));
	CHECK_STATUS(ask(&s, "DELETE", FILES "/d", NULL, STR_NONE), 400);
	CHECK_STATUS(get(&s, FILES "/d"), 400);
	CHECK_STATUS(ask(&s, "DELETE", FILES "/d?recursive=true", NULL, STR_NONE), 204);
	CHECK_STATUS(get(&s, FILES "/d/a"), 404);
}

TEST(protected_files_are_as_absent_as_for_tools)
{
	static const char *const hidden[] = {".env", ".stead/rev/log/x", "sub/.env", "%2estead/x", "id_rsa"};
	static struct site s;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(hidden); i++) {
		CHECK(get(&s, arena_printf(s.arena, FILES "/%s", hidden[i]).ptr).status >= 400);
		CHECK(put(&s, hidden[i], NULL, STR("x")).status >= 400);
	}
}

TEST(a_page_in_a_workspace_is_sandboxed)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	put(&s, "a.html", NULL, STR("<script>alert(1)</script>"));
	reply = get(&s, FILES "/a.html");
	CHECK_STARTS(head_value(reply.head, "Content-Security-Policy"), STR("sandbox"));
	CHECK_STR(head_value(reply.head, "X-Content-Type-Options"), STR("nosniff"));
}

TEST(a_write_is_a_revision_that_can_be_undone)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	put(&s, "a", NULL, STR("one"));
	put(&s, "a", NULL, STR("two"));
	reply = ask(&s, "POST", "/v1/workspaces/demo/tools/undo", NULL, STR("{}"));
	CHECK_STATUS(reply, 200);
	CHECK_STR(get(&s, FILES "/a").body, STR("one"));
}

/* A fork reads its parent's past: from the parent's file, in pieces that are compared with the log, or when that has
   changed from the file that keeps the old content. */
TEST(a_large_file_of_the_past_is_whole)
{
	static struct site s;
	struct str bytes;

	site_start(&s, true);
	bytes = some_bytes(&s, 3000001);
	CHECK_STATUS(put(&s, "big", NULL, bytes), 201);
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/tools/fork", NULL, STR("{\"name\":\"branch\"}")), 200);
	for (int changed = 0; changed < 2; changed++) {
		struct reply reply = get(&s, "/v1/workspaces/branch/files/big");

		CHECK_STATUS(reply, 200);
		CHECK(str_eq(reply.body, bytes));
		reply = ask(&s, "GET", "/v1/workspaces/branch/files/big", "Range: bytes=1000000-2999999\r\n", STR_NONE);
		CHECK_STATUS(reply, 206);
		CHECK(str_eq(reply.body, str_first(str_from(bytes, 1000000), 2000000)));
		CHECK_STATUS(put(&s, "big", NULL, STR("changed")), 200);
	}
}

#define FORM "--q\r\nContent-Disposition: form-data; name=\"f\"; filename=\"%s\"\r\n\r\n%s\r\n--q--\r\n"

static struct reply post_form(struct site *s, const char *query, const char *name, const char *bytes)
{
	return ask(s, "POST", arena_printf(s->arena, "/v1/workspaces/demo/files%s", query).ptr,
		   "Content-Type: multipart/form-data; boundary=q\r\n", arena_printf(s->arena, FORM, name, bytes));
}

TEST(files_of_a_form_are_written_into_a_directory)
{
	static struct site s;
	const struct jv *one;

	site_start(&s, true);
	one = jv_at(jv_get(json_of(&s, post_form(&s, "?path=inbox", "sub/a b.txt", "hello")), "files"), 0);
	CHECK_STR(jv_get_str(one, "path"), STR("inbox/sub/a b.txt"));
	CHECK_STR(get(&s, "/v1/workspaces/demo/files/inbox/sub/a%20b.txt").body, STR("hello"));
	CHECK_STATUS(post_form(&s, "", "a.txt", ""), 201);
}

TEST(names_in_a_form_stay_in_the_directory)
{
	static struct site s;
	static const char *const bad[] = {"../x", "/etc/x", "a/../../x", "", ".", "a//../../x"};

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK_STATUS(post_form(&s, "?path=inbox", bad[i], "x"), 400);
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/files", NULL, STR("{}")), 400);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/files?path=inbox"), 404);
}
