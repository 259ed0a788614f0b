/* SPDX-License-Identifier: Apache-2.0 */
/* The disk's scan on real trees: against git's idea of what is ignored, GNU grep's of what matches, and the memory
   store's of both. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "find/find.h"
#include "store/stores.h"
#include "temp_dir.h"

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static struct store *disk, *memory;
static const char *dir;

static uint64_t state;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static void begin(void)
{
	static const struct store_disk_opts opts = {.relaxed = true};

	state = 0x9E3779B97F4A7C15u;
	arena = arena_new();
	test_defer(arena_destroy, arena);
	ctx = (struct ctx){.arena = arena};
	dir = temp_dir_new();
	CHECK_OK(store_disk_open(dir, &opts, &disk, &err), err);
	test_defer(store_destroy, disk);
	memory = store_memory_new();
	test_defer(store_destroy, memory);
}

static void put(const char *path, struct str text)
{
	struct wpath p;

	CHECK_OK(wpath_parse(str_of(path), &p, &err), err);
	CHECK_OK(store_write(disk, &ctx, p, text, (struct store_cond){0}, NULL, &err), err);
	CHECK_OK(store_write(memory, &ctx, p, text, (struct store_cond){0}, NULL, &err), err);
}

/* What a shell command prints, run in the tree; sorted in byte order. */
static struct str shell(const char *command)
{
	struct buf out;
	char line[PATH_LEN_MAX + 256];
	FILE *f;
	size_t n;

	buf_init(&out, arena, 64 * MIB);
	snprintf(line, sizeof(line), "cd '%s' && { %s; } 2>/dev/null | LC_ALL=C sort", dir, command);
	f = popen(line, "r");
	CHECK(f);
	while ((n = fread(line, 1, sizeof(line), f)) > 0)
		buf_add(&out, str_n(line, n));
	pclose(f);
	return buf_str(&out);
}

static struct str all_files(struct store *store, bool use_ignore)
{
	struct glob_req req = {.path = WPATH_ROOT, .pattern = STR("**"), .limit = UINT64_MAX, .use_ignore = use_ignore};
	struct glob_result res;
	struct buf out;

	buf_init(&out, arena, 64 * MIB);
	CHECK_OK(find_glob(store, &ctx, &req, NULL, NULL, &res, &err), err);
	for (size_t i = 0; i < res.count; i++) {
		buf_add(&out, res.paths[i]);
		buf_char(&out, '\n');
	}
	return buf_str(&out);
}

static struct str all_lines(struct store *store, const char *pattern, unsigned threads, unsigned context)
{
	struct grep_req req = {.path = WPATH_ROOT,
			       .pattern = str_of(pattern),
			       .limit = UINT64_MAX,
			       .line_cut = SIZE_MAX,
			       .context = context,
			       .threads = threads};
	struct grep_result res;
	struct buf out;

	buf_init(&out, arena, 64 * MIB);
	CHECK_OK(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err);
	for (size_t i = 0; i < res.count; i++) {
		const struct grep_line *l = &res.lines[i];
		char mark = l->is_match ? ':' : '-';

		buf_add(&out, l->path);
		buf_char(&out, mark);
		buf_u64(&out, l->line);
		buf_char(&out, mark);
		buf_add(&out, l->text);
		buf_char(&out, '\n');
	}
	return buf_str(&out);
}

static void make_tree(unsigned files)
{
	static const char *const words[] = {"alpha", "beta", "foo", "bar",      "\n",       "\n",
					    " ",     "(x)",  "99",  "\xC3\xA9", "gamma_ray"};

	for (unsigned i = 0; i < files; i++) {
		struct buf text;
		char path[64];

		buf_init(&text, arena, 16 * MIB);
		for (unsigned k = 0, n = i % 97 == 5 ? 90000 : pick(200); k < n; k++)
			buf_add(&text, str_of(words[pick(sizeof(words) / sizeof(words[0]))]));
		snprintf(path, sizeof(path), "d%u/e%u%s/f%u.txt", pick(5), pick(4), pick(2) ? "" : ".x", i);
		put(path, buf_str(&text));
	}
}

TEST(grep_finds_what_gnu_grep_finds_however_many_threads_look)
{
	static const char *const patterns[] = {"foo",      "gamma_r",  "[a-z]+_ray", "foo|beta",
					       "^ *alpha", "[0-9]{4}", "bar$",       "(9)\\1"};

	begin();
	make_tree(150);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		char command[128];
		struct str want, one, two;

		snprintf(command, sizeof(command), "LC_ALL=C.UTF-8 grep -rnE '%s' | sed 's/^\\.\\///'", patterns[i]);
		want = shell(command);
		one = all_lines(disk, patterns[i], 1, 0);
		two = all_lines(disk, patterns[i], 4, 0);
		CHECK(want.len > 0);
		CHECK(str_eq(one, two));
		CHECK(str_eq(one, all_lines(memory, patterns[i], 1, 0)));
		/* one is in order of paths and lines, the other sorted as text: compare both sorted */
		{
			FILE *f;
			char path[96];

			snprintf(path, sizeof(path), "%s.lines", dir);
			f = fopen(path, "w");
			CHECK(f && fwrite(one.ptr, 1, one.len, f) == one.len);
			fclose(f);
			snprintf(command, sizeof(command), "cat '%s'", path);
			one = shell(command);
			unlink(path);
		}
		CHECK(str_eq(one, want));
	}
}

TEST(context_is_the_same_from_disk_and_memory)
{
	begin();
	make_tree(100);
	CHECK(str_eq(all_lines(disk, "99gamma", 2, 3), all_lines(memory, "99gamma", 2, 3)));
}

static void make_ignored_tree(void)
{
	static const char *const rules[] = {"*.o",     "build/", "/top",   "a/*.c",  "!keep.o", "**/deep", "x/**",
					    "x/**/y",  "\\#lit", "sp\\ ",  "[a-c]z", "!build/", "*.tmp/",  "/a/b",
					    "d?",      "!/a/b/", "e/**/f", "[!a]q",  "*",       "!*.c",    "!*/",
					    "foo*bar", "/*/n",   "**",     "!k"};
	static const char *const names[] = {"a",   "b",    "x",      "y",     "e",       "f",    "build",
					    "top", "deep", "keep.o", "m.o",   "n.c",     "#lit", "sp ",
					    "az",  "d1",   "bq",     "q.tmp", "foo1bar", "n",    "k"};

	for (unsigned i = 0; i < 120; i++) {
		char path[256] = "", name[64];

		for (unsigned k = 0, depth = 1 + pick(4); k < depth; k++) {
			snprintf(name, sizeof(name), "%s%s", k ? "/" : "",
				 names[pick(sizeof(names) / sizeof(names[0]))]);
			memcpy(path + strlen(path), name, strlen(name) + 1);
		}
		if (pick(6) == 0) {
			struct buf text;

			buf_init(&text, arena, MIB);
			for (unsigned k = 0, n = 1 + pick(4); k < n; k++)
				buf_printf(&text, "%s\n", rules[pick(sizeof(rules) / sizeof(rules[0]))]);
			memcpy(path + strlen(path), "/.gitignore", 12);
			if (pick(4) == 0)
				memcpy(path, ".gitignore", 11);
			(void)store_write(disk, &ctx, (struct wpath){str_of(path)}, buf_str(&text),
					  (struct store_cond){0}, NULL, &err);
		} else {
			/* a name may be a directory already: then this one is left out */
			(void)store_write(disk, &ctx, (struct wpath){str_of(path)}, STR("x\n"), (struct store_cond){0},
					  NULL, &err);
		}
	}
}

TEST(what_is_ignored_is_what_git_ignores)
{
	uint64_t seed = 1;

	for (int round = 0; round < 12; round++) {
		begin();
		state = seed++ * 0x9E3779B97F4A7C15u;
		make_ignored_tree();
		shell("git init -q . && echo 'az' > .git/info/exclude");
		CHECK_STR(all_files(disk, true), shell("git -c core.quotepath=off -c core.excludesfile=/dev/null "
						       "ls-files -co --exclude-standard"));
	}
}

TEST(links_fifos_and_odd_names_are_left_out_and_not_followed)
{
	begin();
	put("real.txt", STR("needle\n"));
	shell("ln -s real.txt link.txt; ln -s /etc dirlink; mkfifo pipe; printf 'needle\\n' > \"$(printf "
	      "'bad\\377')\"; mkdir sub; ln -s ../real.txt sub/l");
	CHECK_STR(all_lines(disk, "needle|root", 2, 0), STR("real.txt:1:needle\n"));
	CHECK_STR(all_files(disk, true), STR("real.txt\n"));
}

TEST(a_file_that_cannot_be_read_is_counted)
{
	struct grep_req req = {.path = WPATH_ROOT, .pattern = STR("x"), .limit = 9, .line_cut = 99};
	struct grep_result res;
	int r;

	begin();
	put("a", STR("x\n"));
	put("b", STR("x\n"));
	shell("chmod 000 a; chmod 755 .");
	if (geteuid() == 0 && seteuid(65534) < 0) /* root may read everything */
		SKIP("root cannot become somebody else here");
	r = find_grep(disk, &ctx, &req, NULL, NULL, &res, &err);
	CHECK(geteuid() == getuid() || seteuid(getuid()) == 0);
	CHECK_OK(r, err);
	CHECK_INT(res.unreadable, 1);
	CHECK_INT(res.matches, 1);
}

static int cancel_soon(void *arg, const struct grep_line *line, struct err *e)
{
	(void)line;
	(void)e;
	atomic_store(&((struct cancel *)arg)->requested, true);
	return 0;
}

TEST(a_search_on_several_threads_can_be_cancelled)
{
	struct grep_req req = {
		.path = WPATH_ROOT, .pattern = STR("a"), .limit = UINT64_MAX, .line_cut = 99, .threads = 4};
	struct grep_result res;
	struct cancel cancel = {false};

	begin();
	make_tree(300);
	ctx.cancel = &cancel;
	CHECK_ERR(find_grep(disk, &ctx, &req, cancel_soon, &cancel, &res, &err), err, ERR_CANCELLED);
}

TEST(a_very_deep_tree_is_walked)
{
	char path[PATH_LEN_MAX + 1];

	begin();
	for (size_t i = 0; i < 1000; i += 2)
		memcpy(path + i, "d/", 2);
	memcpy(path + 1000, "file", 5);
	put(path, STR("needle\n"));
	CHECK(all_lines(disk, "needle", 2, 0).len == 1004 + 10);
}
