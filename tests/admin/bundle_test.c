/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: the round trip, what is left out, and that a broken or hostile one gives a sentence and leaves nothing. */
#include <fcntl.h>
#include <sys/stat.h>

#include "admin/bundle.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "home/memory/memory.h"
#include "home/timeline/history.h"
#include "revisions/line.h"
#include "revisions/revisions.h"
#include "temp_dir.h"
#include "test.h"
#include "text/tar.h"
#include "workspace/workspace_parts.h"

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static const struct store_cond any = {0};
static struct str url;

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	url = arena_printf(arena, "disk:%s", temp_dir_new());
}

static struct workspace *open_in(struct str where, const char *name, bool create)
{
	struct workspace_opts opts = {.store_url = where, .name = str_of(name), .create = create, .relaxed = true};
	struct workspace *ws;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	return ws;
}

static void put(struct store *s, const char *path, struct str text)
{
	CHECK_OK(store_write(s, &ctx, (struct wpath){str_of(path)}, text, any, NULL, &err), err);
}

static int take_bytes(void *arg, const void *bytes, size_t len, struct err *e)
{
	(void)e;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

static struct str export_ws(struct workspace *ws)
{
	struct jv *report;
	struct buf out;
	struct sink sink = {.push = take_bytes, .arg = &out};

	buf_init(&out, arena, 64 * MIB);
	CHECK_OK(bundle_export(ws, &ctx, &sink, &report, &err), err);
	CHECK_INT(jv_get_int(report, "size", -1), out.len);
	CHECK_STR(jv_get_str(report, "sha256"), sha256_hex(arena, buf_str(&out)));
	return buf_str(&out);
}

/* A workspace with a bit of everything: small and large files, appends, a move, a removal, a checkpoint, a secret. */
static struct workspace *make_rich(void)
{
	struct workspace *ws = open_in(url, "one", true);
	char *large = arena_alloc_raw(arena, 200 * KIB);
	struct store *files = workspace_files(ws);
	struct jv *unused;

	memset(large, 'x', 200 * KIB);
	put(files, "a.md", STR("one"));
	put(files, "a.md", STR("two"));
	CHECK_OK(store_append(files, &ctx, (struct wpath){STR("a.md")}, STR(" and more"), any, NULL, &err), err);
	put(files, "large", str_n(large, 200 * KIB));
	large[7] = 'y';
	put(files, "large", str_n(large, 200 * KIB));
	put(files, "gone", STR("bytes \x01\xff"));
	CHECK_OK(history_checkpoint(ws, &ctx, STR("here"), &unused, &err), err);
	CHECK_OK(store_remove(files, &ctx, (struct wpath){STR("gone")}, false, any, NULL, &err), err);
	put(files, "d/\xc3\xa4 name\\with odd parts", STR("odd"));
	put(workspace_shared(ws), ".env", STR("KEY=secret-value"));
	put(workspace_shared(ws), "files/id_rsa", STR("secret-value"));
	return ws;
}

/* A small one, for tests that try many things. */
static struct str small_bundle(void)
{
	struct workspace *ws = open_in(url, "one", true);
	struct str bundle;

	for (int i = 0; i < 3; i++)
		put(workspace_files(ws), "a.md", arena_printf(arena, "text %d", i));
	bundle = export_ws(ws);
	workspace_close(ws);
	return bundle;
}

static int import_into(struct store *base, struct str bundle, const char *name)
{
	struct source source = {.bytes = bundle};
	struct jv *report;

	return bundle_import_into(&ctx, base, &source, str_of(name), &report, &err);
}

static size_t left_in(struct store *base)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;

	CHECK_OK(store_list(base, &ctx, WPATH_ROOT, &req, &page, &err), err);
	return page.count;
}

/* Refused as damaged, with nothing left. */
static void check_refused(struct str bundle, const char *what)
{
	struct store *base = store_memory_new();
	int r = import_into(base, bundle, "");

	if (r != -ERR_CORRUPT || !strstr(err.msg, what))
		TEST_FAIL("%s: got %d, %s", what, r, r ? err.msg : "imported");
	CHECK(!strchr(err.msg, '\n'));
	CHECK_INT(left_in(base), 0);
	store_destroy(base);
}

static int past(struct workspace *ws, const char *path, uint64_t revision, struct str *ret_text)
{
	struct store *files;
	struct past_files *then = workspace_files_at(ws, revision, &files);
	int r = store_read(files, &ctx, (struct wpath){str_of(path)}, STORE_WHOLE, MIB, ret_text, NULL, &err);

	workspace_files_at_close(then);
	return r;
}

TEST(a_round_trip_gives_the_same_bytes_and_the_same_past)
{
	struct workspace *ws, *copy;
	struct str first, second, text, other;
	struct source source;
	struct jv *report;

	set_up();
	other = arena_printf(arena, "disk:%s", temp_dir_new());
	ws = make_rich();
	first = export_ws(ws);
	source = (struct source){.bytes = first};
	CHECK_OK(bundle_import(&ctx, other, &source, STR_NONE, &report, &err), err);
	copy = open_in(other, "one", false);
	second = export_ws(copy);
	CHECK(str_eq(first, second));
	for (uint64_t n = 1; n <= 3; n++) {
		static const char *const want[] = {"one", "two", "two and more"};

		CHECK_OK(past(copy, "a.md", n, &text), err);
		CHECK_STR(text, str_of(want[n - 1]));
	}
	CHECK_OK(past(copy, "gone", 6, &text), err);
	CHECK_STR(text, STR("bytes \x01\xff"));
	CHECK_OK(history_undo(copy, &ctx, &(struct undo_req){.has_since = true, .since = 6}, &report, &err), err);
	CHECK_OK(store_read(workspace_files(copy), &ctx, (struct wpath){STR("gone")}, STORE_WHOLE, MIB, &text, NULL,
			    &err),
		 err);
	workspace_close(copy);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(large_appends_make_the_trip_and_what_was_forgotten_does_not)
{
	struct workspace *ws, *copy;
	struct str first, text, large, other;
	struct memory_save save = {.content = STR("- the vault is behind the mirror\n- it rains"),
				   .caller = TRUST_PERSON};
	struct source source;
	struct jv *report;

	set_up();
	other = arena_printf(arena, "disk:%s", temp_dir_new());
	ws = open_in(url, "one", true);
	large = str_n(arena_alloc(arena, 100 * KIB), 100 * KIB);
	memset((char *)large.ptr, 'l', large.len);
	for (int i = 0; i < 2; i++)
		CHECK_OK(store_append(workspace_files(ws), &ctx, (struct wpath){STR("log")}, large, any, NULL, &err),
			 err);
	CHECK_OK(memory_save(ws, &ctx, &save, &report, &err), err);
	CHECK_OK(memory_forget(ws, &ctx, STR_NONE, STR("the vault is behind the mirror"), TRUST_PERSON, &report, &err),
		 err);
	first = export_ws(ws);
	CHECK_LACKS(first, STR("behind the mirror"));
	CHECK_HAS(first, STR("it rains"));
	source = (struct source){.bytes = first};
	CHECK_OK(bundle_import(&ctx, other, &source, STR_NONE, &report, &err), err);
	copy = open_in(other, "one", false);
	CHECK(str_eq(first, export_ws(copy)));
	CHECK_OK(past(copy, "log", 1, &text), err);
	CHECK_INT(text.len, 100 * KIB);
	workspace_close(copy);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(what_is_imported_is_not_taken_for_an_outside_change)
{
	struct workspace *ws;
	struct str bundle;
	struct source source;
	struct jv *report;
	uint64_t count;

	set_up();
	bundle = small_bundle();
	source = (struct source){.bytes = bundle};
	CHECK_OK(bundle_import(&ctx, url, &source, STR("two"), &report, &err), err);
	CHECK_STR(jv_get_str(report, "workspace"), STR("two"));
	ws = open_in(url, "two", false);
	CHECK_OK(revisions_notice(workspace_revisions(ws), &ctx, WPATH_ROOT, &count, &err), err);
	CHECK_INT(count, 0);
	put(workspace_files(ws), "a.md", STR("new"));
	CHECK_OK(revisions_head(workspace_revisions(ws), &ctx, &count, &err), err);
	CHECK_INT(count, 4);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(secrets_are_in_neither_the_files_nor_the_history)
{
	struct workspace *ws;
	struct str bundle;

	set_up();
	ws = make_rich();
	bundle = export_ws(ws);
	CHECK_HAS(bundle, STR("two and more"));
	CHECK_LACKS(bundle, STR("secret-value"));
	CHECK_LACKS(bundle, STR("id_rsa"));
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(whom_a_file_belonged_to_is_not_carried)
{
	const char *dir = temp_dir_new();
	struct workspace *ws;
	struct str log = STR(".stead/rev/log/0000000000000001.jsonl"), text;

	if (geteuid() != 0 || getenv("STEAD_TEST_JOURNAL"))
		SKIP("only root may give a file away, and a journal has no owners");
	set_up();
	ws = open_in(arena_printf(arena, "disk:%s", dir), "home", true);
	put(workspace_files(ws), "theirs", STR("x"));
	CHECK_INT(chown(arena_printf(arena, "%s/home/files/theirs", dir).ptr, 1234, 4321), 0);
	CHECK_OK(store_remove(workspace_files(ws), &ctx, (struct wpath){STR("theirs")}, false, any, NULL, &err), err);
	CHECK_OK(store_read(workspace_store_of(ws, false), &ctx,
			    (struct wpath){arena_printf(arena, "home/%.*s", STR_ARG(log))}, STORE_WHOLE, MIB, &text,
			    NULL, &err),
		 err);
	CHECK_HAS(text, STR("\"uid\":1234"));
	text = export_ws(ws);
	CHECK_HAS(text, STR("\"path\":\"files/theirs\""));
	CHECK_LACKS(text, STR("\"uid\""));
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(a_workspace_whose_history_was_cut_makes_the_trip_too)
{
	struct rev_retain want = {.limits = {.revisions = 2}, .grace_ns = -1};
	struct store *base = store_memory_new();
	struct rev_retained got;
	struct workspace *ws;
	struct str bundle;

	set_up();
	ws = make_rich();
	put(workspace_files(ws), "a.md", STR("three"));
	CHECK_OK(revisions_retain(workspace_revisions(ws), &ctx, &want, &got, &err), err);
	bundle = export_ws(ws);
	CHECK_OK(import_into(base, bundle, "two"), err);
	store_destroy(base);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(a_workspace_that_exists_is_not_touched)
{
	struct store *base = store_memory_new();
	struct str bundle;

	set_up();
	bundle = small_bundle();
	put(base, "one/agent.yaml", STR("name: mine\n"));
	CHECK_INT(import_into(base, bundle, ""), -ERR_EXISTS);
	CHECK_INT(import_into(base, bundle, "one"), -ERR_EXISTS);
	CHECK_INT(import_into(base, bundle, "../one"), -ERR_INVALID);
	CHECK_INT(left_in(base), 1);
	store_destroy(base);
	arena_destroy(arena);
}

TEST(a_bundle_that_ends_early_is_refused_wherever_it_ends)
{
	struct str bundle;

	set_up();
	bundle = small_bundle();
	for (size_t len = 0; len < bundle.len; len += len % 512 == 511 ? 1 : len % 512 == 1 ? 510 : 1)
		check_refused(str_first(bundle, len), "not a Stead bundle, or it is damaged");
	arena_destroy(arena);
}

TEST(a_bundle_with_one_other_bit_is_refused)
{
	struct str bundle;
	char *bytes;

	set_up();
	bundle = small_bundle();
	bytes = (char *)bundle.ptr;
	for (size_t i = 0; i < bundle.len; i += 11) {
		struct store *base = store_memory_new();

		bytes[i] ^= (char)(1 << i % 8);
		if (import_into(base, bundle, "") == 0)
			TEST_FAIL("byte %zu is not noticed", i);
		CHECK_INT(left_in(base), 0);
		bytes[i] ^= (char)(1 << i % 8);
		store_destroy(base);
	}
	check_refused(STR("not a bundle at all"), "it ends early");
	arena_destroy(arena);
}

/* --- made by someone who means harm: all sums are right --- */

struct forge {
	struct buf out, sums;
};

static void forge_entry(struct forge *f, struct str name, struct str bytes)
{
	static const char zeros[TAR_BLOCK];
	struct tar_entry e = {name, bytes.len, 7};

	tar_header(&f->out, &e);
	buf_add(&f->out, bytes);
	buf_add(&f->out, str_n(zeros, tar_padding(bytes.len)));
	buf_printf(&f->sums, "%.*s  %.*s\n", STR_ARG(sha256_hex(arena, bytes)), STR_ARG(name));
}

static struct forge forge_begin(int files, int contents, int head)
{
	struct forge f;

	buf_init(&f.out, arena, 16 * MIB);
	buf_init(&f.sums, arena, 16 * MIB);
	forge_entry(&f, STR("manifest.json"),
		    arena_printf(arena,
				 "{\"format\":\"stead-bundle\",\"version\":1,\"workspace\":\"evil\",\"files\":%d,"
				 "\"bytes\":0,\"first\":1,\"head\":%d,\"contents\":%d}",
				 files, head, contents));
	return f;
}

static struct str forge_end(struct forge *f)
{
	static const char zeros[TAR_END_LEN];
	struct str sum = sha256_hex(arena, buf_str(&f->sums));

	buf_printf(&f->sums, "# all %.*s\n", STR_ARG(sum));
	forge_entry(f, STR("SHA256SUMS"), buf_str(&f->sums));
	buf_add(&f->out, str_n(zeros, sizeof(zeros)));
	return buf_str(&f->out);
}

TEST(a_forged_bundle_that_keeps_the_rules_is_a_bundle)
{
	struct store *base = store_memory_new();
	struct forge f;

	set_up();
	f = forge_begin(1, 0, 0);
	forge_entry(&f, STR("workspace/agent.yaml"), STR(""));
	CHECK_OK(import_into(base, forge_end(&f), ""), err);
	CHECK_INT(left_in(base), 1);
	store_destroy(base);
	arena_destroy(arena);
}

TEST(names_that_lead_elsewhere_or_to_secrets_are_refused)
{
	static const char *const names[] = {"workspace/../x",
					    "workspace/a/../../x",
					    "workspace//x",
					    "workspace/",
					    "workspace/.env",
					    "workspace/files/.ENV",
					    "workspace/.stead/rev/log/0000000000000001.jsonl",
					    "workspace/.stead/fork.json",
					    "workspace/files/id_rsa",
					    "workspace/a\nb",
					    "workspace/\xff",
					    "/etc/passwd",
					    "../x",
					    "x",
					    "history/x",
					    "history/log/../x",
					    "history/contents/../../x",
					    "history/contents/zz/00000000000000000000000000000"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct forge f;

		set_up();
		f = forge_begin(1, 0, 0);
		forge_entry(&f, str_of(names[i]), STR(""));
		check_refused(forge_end(&f), "not a Stead bundle, or it is damaged");
		arena_destroy(arena);
	}
}

TEST(a_file_that_comes_twice_or_out_of_order_is_refused)
{
	struct forge f;

	set_up();
	f = forge_begin(2, 0, 0);
	forge_entry(&f, STR("workspace/a"), STR(""));
	forge_entry(&f, STR("workspace/a"), STR(""));
	check_refused(forge_end(&f), "out of order");
	f = forge_begin(2, 0, 0);
	forge_entry(&f, STR("workspace/b"), STR(""));
	forge_entry(&f, STR("workspace/a"), STR(""));
	check_refused(forge_end(&f), "out of order");
	arena_destroy(arena);
}

TEST(links_devices_and_directories_are_refused)
{
	for (const char *kind = "123456789gSLKVMNx"; *kind; kind++) {
		struct forge f;
		unsigned sum = 0;
		size_t at;
		char *block;

		set_up();
		f = forge_begin(1, 0, 0);
		at = f.out.len;
		forge_entry(&f, STR("workspace/a"), STR(""));
		block = f.out.ptr + at;
		block[156] = *kind;
		memcpy(block + 157, "/etc/passwd", 11);
		memset(block + 148, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += (unsigned char)block[i];
		snprintf(block + 148, 8, "%06o", sum);
		check_refused(forge_end(&f), "the format of a bundle");
		arena_destroy(arena);
	}
}

TEST(a_size_that_is_not_there_costs_nothing)
{
	struct tar_entry huge = {STR("workspace/a"), (uint64_t)1 << 60, 7}, log = huge;
	struct forge f;

	set_up();
	f = forge_begin(1, 0, 0);
	tar_header(&f.out, &huge);
	check_refused(buf_str(&f.out), "it ends early");
	f = forge_begin(0, 0, 0);
	log.name = STR("history/log/0000000000000001.jsonl");
	tar_header(&f.out, &log);
	check_refused(buf_str(&f.out), "an entry is too large");
	arena_destroy(arena);
}

/* A line of a log, with its sum. */
static struct str logged(const char *text)
{
	struct rev_seq seq = {1, 0};
	struct buf line;

	buf_init(&line, arena, MIB);
	buf_add(&line, str_of(text));
	rev_line_finish(&line, 0, &seq);
	return buf_str(&line);
}

TEST(a_history_that_would_make_other_files_is_refused)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"{\"rev\":1,\"time\":1,\"op\":\"write\",\"path\":\".env\",\"before\":null,"
		 "\"after\":{\"size\":1,\"in\":\"log\"},\"by\":{},\"data\":\"x\"",
		 "a bundle cannot have"},
		{"{\"rev\":1,\"time\":1,\"op\":\"write\",\"path\":\".stead/x\",\"before\":null,"
		 "\"after\":{\"size\":1,\"in\":\"log\"},\"by\":{},\"data\":\"x\"",
		 "a bundle cannot have"},
		{"{\"rev\":1,\"time\":1,\"op\":\"write\",\"path\":\"../x\",\"before\":null,"
		 "\"after\":{\"size\":1,\"in\":\"log\"},\"by\":{},\"data\":\"x\"",
		 "cannot be read"},
		{"{\"rev\":9000000000000000000,\"time\":1,\"op\":\"remove\",\"path\":\"x\",\"before\":null,"
		 "\"after\":null,\"by\":{}",
		 "out of order"},
		{"{\"rev\":1,\"time\":1,\"op\":\"write\",\"path\":\"x\",\"before\":null,"
		 "\"after\":{\"size\":1,\"in\":\"log\",\"mode\":420,\"uid\":1234,\"gid\":0},\"by\":{},\"data\":\"x\"",
		 "which user of this machine"},
		{"{\"horizon\":9000000000000000000", "cannot be read"},
		{"{\"seal\":0", "out of order"},
		{"{\"checkpoint\":\"x\",\"rev\":77,\"time\":1", "a missing revision"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct forge f;

		set_up();
		f = forge_begin(0, 0, 1);
		forge_entry(&f, STR("history/log/0000000000000001.jsonl"), logged(cases[i].line));
		check_refused(forge_end(&f), cases[i].why);
		arena_destroy(arena);
	}
}

TEST(a_content_with_another_name_is_refused)
{
	struct forge f;

	set_up();
	f = forge_begin(0, 1, 0);
	forge_entry(&f,
		    STR("history/contents/01/"
			"00000000000000000000000000000000000000000000000000000000000000"),
		    STR("bytes"));
	check_refused(forge_end(&f), "a content does not match its hash");
	arena_destroy(arena);
}

TEST(a_failure_at_any_step_leaves_nothing)
{
	struct str bundle;
	int r = -1;

	set_up();
	bundle = small_bundle();
	for (uint64_t nth = 1; r && nth < 500; nth++) {
		struct store *memory = store_memory_new();
		struct store *fault = store_fault_new(store_share(memory));

		store_fault_arm(fault, nth, ERR_UNAVAILABLE, false);
		r = import_into(fault, bundle, "");
		if (r && left_in(memory)) /* unless removing is what failed */
			TEST_FAIL("operation %llu: %s", (unsigned long long)nth, err.msg);
		store_destroy(fault);
		store_destroy(memory);
	}
	CHECK_INT(r, 0);
	arena_destroy(arena);
}

TEST(what_a_killed_import_left_goes_with_a_later_one)
{
	struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct source source;
	struct jv *report;
	const char *dir;
	struct store *base;

	set_up();
	source = (struct source){.bytes = small_bundle()};
	dir = url.ptr + 5;
	CHECK_OK(store_open_url(url, NULL, &base, &err), err);
	put(base, ".import-old/a", STR("x"));
	put(base, ".import-new/a", STR("x"));
	CHECK_INT(utimensat(AT_FDCWD, arena_printf(arena, "%s/.import-old/a", dir).ptr, old, 0), 0);
	CHECK_OK(bundle_import(&ctx, url, &source, STR("two"), &report, &err), err);
	CHECK_INT(store_stat(base, &ctx, (struct wpath){STR(".import-old")}, NULL, &err), -ERR_NOT_FOUND);
	CHECK_OK(store_stat(base, &ctx, (struct wpath){STR(".import-new")}, NULL, &err), err);
	store_destroy(base);
	arena_destroy(arena);
}
