/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: names, places, receipts, and converters as real programs. */
#include "tool/tool_fix.h"

#include "base/clock.h"
#include "home/uploads/uploads.h"
#include "text/zone.h"

static bool has(struct str text, const char *part)
{
	return str_find(text, str_of(part), 0) != SIZE_MAX;
}

/* A workspace on disk whose agent.yaml is `yaml`. */
static void open_with(struct bench *b, const char *yaml)
{
	struct err err = {0};

	bench_open_disk(b, "native");
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

TEST(no_name_is_dangerous_after_it_was_made_safe)
{
	static const struct {
		const char *name, *mime, *want;
	} cases[] = {
		{"Report Q3.PDF", "", "report_q3.pdf"},
		{"a.b.c.tar.gz", "", "a_b_c_tar.gz"},
		{"../../etc/passwd", "", "____etcpasswd"},
		{"C:\\Users\\me\\x.docx", "", "cusersmex.docx"},
		{".bashrc", "", "_bashrc"},
		{"..", "", "upload"},
		{"", "", "upload"},
		{"", "application/pdf", "upload.pdf"},
		{"\xE6\x97\xA5\xE6\x9C\xAC.txt", "", "upload.txt"},
		{"-rf *", "", "-rf_"},
		{"x.php\n.jpg", "", "x_php.jpg"},
		{"$(reboot).sh", "", "reboot.sh"},
		{"a.<script>", "", "a.script"},
		{"name.", "", "name_"},
		{"con.txt", "", "con.txt"},
	};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str got;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_STR(upload_safe_name(arena, str_of(cases[i].name), str_of(cases[i].mime)), str_of(cases[i].want));
	for (uint64_t n = 0; n < 20000; n++) { /* any bytes */
		char bytes[24];
		uint64_t r[3] = {random_u64(), random_u64(), random_u64()};

		memcpy(bytes, r, sizeof bytes);
		got = upload_safe_name(arena, str_n(bytes, n % sizeof bytes), STR_NONE);
		CHECK(wpath_name_ok(got) && got.len <= 117 && got.ptr[0] != '.');
		if (n % 1000 == 0)
			arena_reset(arena);
	}
}

TEST(uploads_lie_by_day_and_a_second_of_a_name_gets_a_number)
{
	struct bench b;
	const struct jv *v;
	struct str day;

	bench_open(&b, "native");
	day = zone_date(b.arena, STR("UTC"), clock_real_ns());
	v = good(&b, "save_upload", "{'name':'My Notes.txt','content':'aGVsbG8K'}");
	CHECK_STR(jv_get_str(v, "path"), arena_printf(b.arena, "uploads/%.*s/my_notes.txt", STR_ARG(day)));
	CHECK_STR(b.result.text, arena_printf(b.arena,
					      "[File received: My Notes.txt (6 bytes, text/plain)]\n[Saved to: "
					      "uploads/%.*s/my_notes.txt]",
					      STR_ARG(day)));
	v = good(&b, "save_upload", "{'name':'my notes.TXT','content':'aGVsbG8K'}");
	CHECK_ENDS(jv_get_str(v, "path"), STR("/my_notes(1).txt"));
	v = good(&b, "save_upload", "{'name':'my notes.txt','content':''}");
	CHECK_ENDS(jv_get_str(v, "path"), STR("/my_notes(2).txt"));
	v = good(&b, "list_uploads", "{}");
	CHECK_INT(jv_count(jv_get(v, "files")), 3);
	CHECK(jv_get_bool(good(&b, "list_uploads", "{'limit':2}"), "more", false));
	CHECK_INT(jv_count(jv_get(good(&b, "list_uploads", "{'day':'1999-01-01'}"), "files")), 0);
	v = good(&b, "read_upload", arena_printf(b.arena, "{'path':'%.*s/my_notes.txt'}", STR_ARG(day)).ptr);
	CHECK_STR(jv_get_str(v, "content"), STR("hello\n"));
	refused(&b, "read_upload", "{'path':'../agent.yaml'}", ERR_INVALID);
	refused(&b, "read_upload", "{'path':'agent.yaml'}", ERR_NOT_FOUND);
	refused(&b, "save_upload", "{'name':'x','content':'?'}", ERR_INVALID);
	refused(&b, "save_upload", "{'name':'x'}", ERR_INVALID);
	refused(&b, "save_upload", "{'content':''}", ERR_INVALID);
	refused(&b, "save_upload", "{'path':'none'}", ERR_NOT_FOUND);
	put(&b, "out/Made Here.csv", STR("a,b\n"));
	v = good(&b, "save_upload", "{'path':'out/Made Here.csv'}");
	CHECK_ENDS(jv_get_str(v, "path"), STR("/made_here.csv"));
	bench_close(&b);
}

TEST(a_file_over_the_cap_is_refused_and_leaves_nothing)
{
	struct bench b;

	open_with(&b, "uploads:\n  max_size: 4\n");
	good(&b, "save_upload", "{'name':'x','content':'aGVs'}");
	refused(&b, "save_upload", "{'name':'y','content':'aGVsbG8K'}", ERR_TOO_LARGE);
	CHECK_INT(jv_count(jv_get(good(&b, "list_uploads", "{}"), "files")), 1);
	bench_close(&b);
}

TEST(a_converter_makes_the_text_beside_the_file)
{
	struct bench b;
	const struct jv *v;

	open_with(&b, "uploads:\n  converters:\n"
		      "    - {match: [.up], command: [tr, a-z, A-Z]}\n" /* reads nothing: stdin is empty */
		      "    - {match: [.cp], command: [cp, '{in}', '{out}'], output: txt}\n"
		      "    - {match: ['audio/*'], command: [cat, '{in}']}\n");
	v = good(&b, "save_upload", "{'name':'a b.cp','content':'aGVsbG8K'}");
	CHECK_ENDS(jv_get_str(jv_get(v, "text"), "path"), STR("/a_b.txt"));
	CHECK_HAS(b.result.text, STR("[Its text: uploads/"));
	v = good(&b, "save_upload", "{'name':'a b.cp','content':'aGVsbG8K'}");
	CHECK_ENDS(jv_get_str(jv_get(v, "text"), "path"), STR("/a_b(1).txt"));
	v = good(&b, "save_upload", "{'name':'voice','mime':'audio/ogg','content':'aGVsbG8K'}");
	CHECK_ENDS(jv_get_str(v, "path"), STR("/voice.ogg"));
	CHECK_ENDS(jv_get_str(jv_get(v, "text"), "path"), STR("/voice.md"));
	v = good(&b, "save_upload", "{'name':'x.up','content':'aGVsbG8K'}");
	CHECK_HAS(jv_get_str(v, "note"), STR("gave no text"));
	v = good(&b, "save_upload", "{'name':'x.other','content':'aGVsbG8K'}");
	CHECK(!jv_get(v, "note") && !jv_get(v, "text"));
	bench_close(&b);
}

TEST(builtins_of_openpaw_decide_whether_files_are_converted)
{
	static const struct {
		const char *builtins;
		bool document, sound; /* converted */
	} cases[] = {{"{deny: [docling]}", false, true},
		     {"{docling: {enabled: false}}", false, true},
		     {"{whisper: {enabled: false}}", true, false},
		     {"{deny: [docling, whisper]}", false, false},
		     {"{allow: [file_persistence, docling]}", true, false},
		     {"{deny: [plan]}", true, true}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bench b;
		const struct jv *document, *sound;
		char yaml[300];

		snprintf(yaml, sizeof(yaml),
			 "builtins: %s\nuploads:\n  converters:\n"
			 "    - {match: [.cp, 'audio/*'], command: [cat, '{in}']}\n",
			 cases[i].builtins);
		open_with(&b, yaml);
		document = good(&b, "save_upload", "{'name':'a.cp','content':'aGVsbG8K'}");
		sound = good(&b, "save_upload", "{'name':'a.ogg','mime':'audio/ogg','content':'aGVsbG8K'}");
		CHECK_INT(jv_get(document, "text") != NULL, cases[i].document);
		CHECK_INT(jv_get(sound, "text") != NULL, cases[i].sound);
		bench_close(&b);
	}
}

TEST(a_converter_that_fails_is_told_of_and_the_file_is_kept)
{
	static const struct {
		const char *command, *note;
	} cases[] = {
		{"[no-such-program-here, '{in}']", "\"no-such-program-here\" is not installed"},
		{"[sh, -c, 'echo broken pipe >&2; exit 3']", "exited with status 3: broken pipe"},
		{"[sh, -c, 'sleep 600 & sleep 600']", "killed after 1 seconds"},
		{"[sh, -c, 'exec >&- 2>&-; sleep 600']", "killed"},
		{"[sh, -c, 'kill -9 $$$$']", "signal 9"},
		{"[head, -c, '40000000', /dev/zero]", "printed more than"},
		{"[printf, '\\377\\376']", "gave no text"},
		{"[ln, -s, /etc/passwd, '{out}']", "wrote no file"},
		{"[mkfifo, '{out}']", "wrote no file"},
		{"[sh, -c, 'test -z \"$SECRET\" && ! ls /proc/1/root/etc && exit 9']", "exited with status 9"},
		{"[sh, -c, 'test \"$(ls)\" = in.x && ! ls /root /var/lib && exit 9']", "exited with status 9"},
		{"[/etc/passwd]", "not installed"},
	};

	CHECK_INT(setenv("SECRET", "s3cret", 1), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bench b;
		char yaml[400];
		const struct jv *v;

		snprintf(yaml, sizeof yaml,
			 "uploads:\n  converters:\n    - match: [.x]\n      timeout_seconds: 1\n"
			 "      command: %s\n",
			 cases[i].command);
		open_with(&b, yaml);
		v = good(&b, "save_upload", "{'name':'f.x','content':'aGVsbG8K'}");
		if (!has(jv_get_str(v, "note"), cases[i].note))
			TEST_FAIL("%s: %.*s", cases[i].command, STR_ARG(b.result.text));
		CHECK_INT(jv_count(jv_get(good(&b, "list_uploads", "{}"), "files")), 1);
		bench_close(&b);
	}
}

TEST(the_day_is_that_of_utc_without_a_zone)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	int64_t t;

	CHECK(clock_parse(STR("2026-11-15T23:30:00Z"), &t));
	CHECK_STR(zone_date(arena, STR("UTC"), t), STR("2026-11-15"));
	CHECK_STR(zone_date(arena, STR("../../etc/passwd"), t), STR("2026-11-15"));
}

TEST(the_day_is_that_of_the_zone)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	int64_t t;

	if (access("/usr/share/zoneinfo/Europe/Berlin", R_OK) != 0)
		SKIP("the time zones (tzdata) are not installed");
	CHECK(clock_parse(STR("2026-11-15T23:30:00Z"), &t));
	CHECK_STR(zone_date(arena, STR("Europe/Berlin"), t), STR("2026-11-16"));
}
