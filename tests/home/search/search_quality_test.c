/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well search finds: labelled questions over notes and conversations in the manner of people who talk to an
 * assistant for months (tests/home/search/data). Each question has one note that answers it. Recall at 5 per category,
 * compared with plain grep: the first five files that have the question's words, or any of them.
 */
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "home/search/search.h"
#include "test.h"

#define DOCS_MAX       2000
#define CATEGORIES_MAX 32

struct file {
	struct str path, text;
};

struct set {
	struct arena *arena;
	struct file files[DOCS_MAX];
	size_t count;
	struct workspace *ws;
};

struct category {
	struct str name;
	unsigned questions, found, grepped;
};

static struct str slurp(struct arena *arena, const char *name)
{
	const char *source = getenv("STEAD_SOURCE");
	FILE *f = fopen(arena_printf(arena, "%s/tests/home/search/data/%s", source ? source : ".", name).ptr, "re");
	char *text = arena_alloc(arena, 1 << 20);
	size_t n = f ? fread(text, 1, (1 << 20) - 1, f) : 0;

	CHECK(f != NULL);
	fclose(f);
	return str_n(text, n);
}

static void load(struct set *set)
{
	struct workspace_opts opts = {.store_url = STR("memory:"), .name = STR("home"), .create = true};
	struct ctx ctx;
	struct str text;
	struct err err;

	*set = (struct set){.arena = arena_new()};
	ctx = (struct ctx){.arena = set->arena};
	text = slurp(set->arena, "corpus.txt");
	CHECK_OK(workspace_open(&opts, &set->ws, &err), err);
	while (text.len && set->count < DOCS_MAX) {
		struct file *f = &set->files[set->count++];
		size_t next = str_find(text, STR("\n=== "), 0), line = str_find_char(text, '\n');

		f->path = arena_str(set->arena, str_n(text.ptr + 4, line - 4));
		f->text = str_n(text.ptr + line + 1, (next == SIZE_MAX ? text.len : next + 1) - line - 1);
		CHECK_OK(store_write(workspace_home(set->ws), &ctx, (struct wpath){f->path}, f->text,
				     (struct store_cond){0}, NULL, &err),
			 err);
		text = str_from(text, next == SIZE_MAX ? text.len : next + 1);
	}
	CHECK(set->count > 300);
}

static bool has(struct str text, struct str part)
{
	for (size_t i = 0; part.len && i + part.len <= text.len; i++)
		if (strncasecmp(text.ptr + i, part.ptr, part.len) == 0)
			return true;
	return false;
}

/* The first five files with any (or, with `whole`, all in one piece) of the words. */
static bool grep_finds(const struct set *set, struct str question, struct str want, bool whole)
{
	unsigned given = 0;

	for (size_t i = 0; i < set->count && given < 5; i++) {
		struct str rest = question, word;
		bool matches = whole && has(set->files[i].text, question);

		while (!whole && !matches && str_cut(&rest, ' ', &word)) {
			while (word.len && strchr("?,.'", word.ptr[word.len - 1]))
				word.len--;
			matches = word.len > 3 && has(set->files[i].text, word);
		}
		given += matches;
		if (matches && str_eq(set->files[i].path, want))
			return true;
	}
	return false;
}

static bool search_finds(struct set *set, struct str question, struct str want)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct search_query q = {.text = question, .limit = 5};
	struct search_hits hits;
	struct err err;

	CHECK_OK(home_search(set->ws, &ctx, &q, &hits, &err), err);
	for (size_t i = 0; i < hits.count; i++)
		if (str_eq(hits.hits[i].path, want))
			return true;
	return false;
}

static struct category *category_of(struct category *list, size_t *count, struct str name)
{
	for (size_t i = 0; i < *count; i++)
		if (str_eq(list[i].name, name))
			return &list[i];
	CHECK(*count < CATEGORIES_MAX);
	list[*count].name = name;
	return &list[(*count)++];
}

TEST(questions_find_their_note_among_the_first_five_better_than_grep)
{
	static struct set set;
	struct category list[CATEGORIES_MAX] = {0};
	struct str rest, line;
	size_t count = 0;
	unsigned all = 0, found = 0;

	load(&set);
	rest = slurp(set.arena, "questions.txt");
	while (str_cut(&rest, '\n', &line)) {
		struct str name, path;
		struct category *c;

		if (!str_cut(&line, '\t', &name) || !str_cut(&line, '\t', &path))
			continue;
		c = category_of(list, &count, name);
		c->questions++;
		c->grepped += grep_finds(&set, line, path, false) || grep_finds(&set, line, path, true);
		if (search_finds(&set, line, path))
			c->found++;
		else
			printf("# not found: %.*s (%.*s)\n", STR_ARG(line), STR_ARG(path));
	}
	for (size_t i = 0; i < count; i++) {
		printf("# %-14.*s %3u questions: recall@5 %.3f, grep %.3f\n", STR_ARG(list[i].name), list[i].questions,
		       (double)list[i].found / list[i].questions, (double)list[i].grepped / list[i].questions);
		all += list[i].questions;
		found += list[i].found;
	}
	printf("# in all %u questions: recall@5 %.3f\n", all, (double)found / all);
	CHECK(all >= 200);
	CHECK(found * 100 >= all * 90);
	for (size_t i = 0; i < count; i++) {
		CHECK(list[i].found > list[i].grepped);
		CHECK(list[i].found * 100 >= list[i].questions * 90);
	}
	workspace_close(set.ws);
	arena_destroy(set.arena);
}
