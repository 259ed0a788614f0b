/* SPDX-License-Identifier: Apache-2.0 */
/* Search over a workspace: whatever was written is found by the next search, by whomever, however the index fares. */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "home/search/search.h"
#include "temp_dir.h"

struct fix {
	struct arena *arena;
	struct ctx ctx;
	const char *dir;
	struct workspace *ws;
	struct err err;
};

static struct workspace *open_as(struct fix *f, const char *user, bool memory)
{
	struct workspace_opts opts = {.store_url = memory ? STR("memory:") : arena_printf(f->arena, "disk:%s", f->dir),
				      .name = STR("home"),
				      .user = str_of(user),
				      .create = true,
				      .relaxed = true};
	struct workspace *ws;

	CHECK_OK(workspace_open(&opts, &ws, &f->err), f->err);
	return ws;
}

static void setup(struct fix *f)
{
	*f = (struct fix){.arena = arena_new(), .dir = temp_dir_new()};
	test_defer(arena_destroy, f->arena);
	f->ctx.arena = f->arena;
	f->ws = open_as(f, "", false);
}

static void teardown(struct fix *f)
{
	workspace_close(f->ws);
}

static void put(struct fix *f, struct workspace *ws, const char *path, const char *text)
{
	CHECK_OK(store_write(workspace_home(ws), &f->ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &f->err),
		 f->err);
}

static struct search_hits ask_query(struct fix *f, struct workspace *ws, struct search_query q)
{
	struct search_hits hits;

	CHECK_OK(home_search(ws, &f->ctx, &q, &hits, &f->err), f->err);
	return hits;
}

/* Paths, best first, with a blank between. */
static struct str paths_of(struct fix *f, struct search_hits hits)
{
	struct buf buf;

	buf_init(&buf, f->arena, 1 << 20);
	for (size_t i = 0; i < hits.count; i++) {
		buf_add(&buf, i ? STR(" ") : STR(""));
		buf_add(&buf, hits.hits[i].path);
		if (hits.hits[i].id.len)
			buf_printf(&buf, "#%.*s", STR_ARG(hits.hits[i].id));
	}
	return buf_str(&buf);
}

static struct str ask(struct fix *f, struct workspace *ws, const char *text)
{
	return paths_of(f, ask_query(f, ws, (struct search_query){.text = str_of(text)}));
}

TEST(what_was_written_is_found_by_the_next_search)
{
	struct fix f;

	setup(&f);
	CHECK_STR(ask(&f, f.ws, "zebra"), STR(""));
	put(&f, f.ws, "notes/a.md", "---\ntitle: Zoo\n---\na zebra");
	CHECK_STR(ask(&f, f.ws, "zebra"), STR("notes/a.md"));
	put(&f, f.ws, "notes/a.md", "---\ntitle: Zoo\n---\na giraffe");
	CHECK_STR(ask(&f, f.ws, "zebra"), STR(""));
	CHECK_STR(ask(&f, f.ws, "giraffe"), STR("notes/a.md"));
	CHECK_OK(store_remove(workspace_home(f.ws), &f.ctx, (struct wpath){STR("notes/a.md")}, false,
			      (struct store_cond){0}, NULL, &f.err),
		 f.err);
	CHECK_STR(ask(&f, f.ws, "giraffe"), STR(""));
	teardown(&f);
}

TEST(a_file_moved_away_is_found_where_it_went)
{
	struct fix f;

	setup(&f);
	put(&f, f.ws, "files/a.txt", "walrus");
	CHECK_STR(ask(&f, f.ws, "walrus"), STR("files/a.txt"));
	CHECK_OK(store_move(workspace_home(f.ws), &f.ctx, (struct wpath){STR("files/a.txt")},
			    (struct wpath){STR("knowledge/b.txt")}, (struct store_cond){0}, (struct store_cond){0},
			    NULL, &f.err),
		 f.err);
	CHECK_STR(ask(&f, f.ws, "walrus"), STR("knowledge/b.txt"));
	teardown(&f);
}

TEST(every_area_is_searched_and_can_be_chosen)
{
	struct fix f;
	struct search_query q = {.text = STR("heron"), .areas = search_area(STR("memory")) | search_area(STR("files"))};

	setup(&f);
	put(&f, f.ws, "notes/n.md", "heron one");
	put(&f, f.ws, "MEMORY.md", "- heron two");
	put(&f, f.ws, "agents/main/sessions/s1.log.jsonl",
	    "{\"role\":\"user\",\"content\":\"hello\"}\n{\"role\":\"assistant\",\"content\":[{\"text\":\"a "
	    "heron\"}]}\n");
	put(&f, f.ws, "knowledge/birds.md", "# Birds\nheron");
	put(&f, f.ws, "files/x.txt", "heron");
	put(&f, f.ws, "files/.env", "SECRET=heron");
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("heron")}).total, 5);
	CHECK_INT(ask_query(&f, f.ws, q).total, 2);
	q = (struct search_query){.text = STR("heron"), .areas = search_area(STR("sessions"))};
	CHECK_HAS(paths_of(&f, ask_query(&f, f.ws, q)), STR("s1.log.jsonl#"));
	teardown(&f);
}

TEST(filters_leave_out_what_does_not_fit)
{
	struct fix f;
	struct str tag = STR("blue");
	struct search_query q = {.text = STR("otter")};

	setup(&f);
	put(&f, f.ws, "notes/a.md", "---\ntitle: A\nkind: finding\nauthor: ann\ntags: [blue, red]\n---\notter");
	put(&f, f.ws, "notes/b.md", "---\ntitle: B\nkind: decision\nauthor: bob\ntags: [red]\n---\notter");
	put(&f, f.ws, "notes/c.md", "---\ntitle: C\nkind: decision\nauthor: ann\narchived: true\n---\notter");
	CHECK_INT(ask_query(&f, f.ws, q).total, 2);
	q.with_archived = true;
	CHECK_INT(ask_query(&f, f.ws, q).total, 3);
	q.kind = STR("decision");
	CHECK_INT(ask_query(&f, f.ws, q).total, 2);
	q.author = STR("bob");
	CHECK_STR(paths_of(&f, ask_query(&f, f.ws, q)), STR("notes/b.md"));
	q = (struct search_query){.text = STR("otter"), .tags = &tag, .tag_count = 1};
	CHECK_STR(paths_of(&f, ask_query(&f, f.ws, q)), STR("notes/a.md"));
	put(&f, f.ws, "files/sub/d.md", "otter");
	q = (struct search_query){.text = STR("otter"), .under = STR("files/sub")};
	CHECK_STR(paths_of(&f, ask_query(&f, f.ws, q)), STR("files/sub/d.md"));
	q = (struct search_query){.text = STR("otter"), .until_ns = 1000};
	CHECK_INT(ask_query(&f, f.ws, q).total, 0);
	teardown(&f);
}

TEST(a_user_never_sees_what_another_wrote)
{
	struct fix f;
	struct workspace *ann, *bob;

	setup(&f);
	ann = open_as(&f, "ann", false);
	bob = open_as(&f, "bob", false);
	put(&f, f.ws, "knowledge/all.md", "lynx for everybody");
	put(&f, f.ws, "notes/shared.md", "lynx of the workspace");
	put(&f, ann, "notes/own.md", "lynx of ann");
	CHECK_STR(ask(&f, bob, "lynx"), STR("knowledge/all.md"));
	CHECK_STR(ask(&f, ann, "lynx ann"), STR("notes/own.md knowledge/all.md"));
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("lynx")}).total, 2);
	put(&f, bob, "notes/own.md", "lynx of bob");
	put(&f, f.ws, "knowledge/all.md", "nothing");
	CHECK_STR(ask(&f, ann, "lynx"), STR("notes/own.md"));
	CHECK_HAS(ask_query(&f, ann, (struct search_query){.text = STR("lynx")}).hits[0].snippet, STR("of ann"));
	workspace_close(ann);
	workspace_close(bob);
	teardown(&f);
}

TEST(phrases_exclusions_endings_and_misspellings)
{
	struct fix f;

	setup(&f);
	put(&f, f.ws, "notes/a.md", "the rate limit of the gateway is reached");
	put(&f, f.ws, "notes/b.md", "limit the rate of deployments");
	CHECK_STR(ask(&f, f.ws, "\"rate limit\""), STR("notes/a.md"));
	CHECK_STR(ask(&f, f.ws, "rate -gateway"), STR("notes/b.md"));
	CHECK_STR(ask(&f, f.ws, "deploymnet"), STR("notes/b.md"));
	CHECK_STR(ask(&f, f.ws, "gateways"), STR("notes/a.md"));
	CHECK_STR(ask(&f, f.ws, "\"gateways\""), STR(""));
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("gateways"), .exact = true}).total, 0);
	teardown(&f);
}

TEST(a_snippet_shows_the_match_and_marks_it)
{
	struct fix f;
	struct buf text;
	struct search_hits hits;

	setup(&f);
	buf_init(&text, f.arena, 1 << 20);
	for (int i = 0; i < 2000; i++)
		buf_printf(&text, "filler line %d\n", i);
	buf_lit(&text, "the Quokka   smiles\nat everyone\n");
	for (int i = 0; i < 2000; i++)
		buf_printf(&text, "more filler %d\n", i);
	put(&f, f.ws, "notes/a.md", arena_cstr(f.arena, buf_str(&text)));
	hits = ask_query(&f, f.ws, (struct search_query){.text = STR("quokka everyone")});
	CHECK_INT(hits.count, 1);
	CHECK_HAS(hits.hits[0].snippet, STR("the **Quokka** smiles at **everyone**"));
	CHECK(hits.hits[0].snippet.len < 600);
	teardown(&f);
}

TEST(bold_words_of_a_text_are_not_marked_as_matches)
{
	struct fix f;
	struct search_hits hits;

	setup(&f);
	put(&f, f.ws, "notes/a.md", "a **very bold** quokka * and 2 * 3");
	hits = ask_query(&f, f.ws, (struct search_query){.text = STR("quokka")});
	CHECK_HAS(hits.hits[0].snippet, STR("a very bold **quokka** * and 2 * 3"));
	teardown(&f);
}

static void put_many(struct fix *f, int from, int to)
{
	for (int i = from; i < to; i++)
		put(f, f->ws, arena_printf(f->arena, "notes/m%04d.md", i).ptr,
		    arena_printf(f->arena, "---\ntitle: Note %d\n---\ncommon word%d", i, i).ptr);
}

static struct str first_segment(struct fix *f)
{
	struct str dir = arena_printf(f->arena, "%s/home/.stead/index/-", f->dir), found = STR_NONE;
	DIR *d = opendir(dir.ptr);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (str_starts(str_of(e->d_name), STR("s-")))
			found = arena_printf(f->arena, "%s/%s", dir.ptr, e->d_name);
	if (d)
		closedir(d);
	return found;
}

TEST(the_index_on_disk_is_used_again_and_may_be_damaged_or_deleted)
{
	struct fix f;
	struct str segment;
	FILE *file;

	setup(&f);
	put_many(&f, 0, 200);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 200);
	workspace_close(f.ws);
	segment = first_segment(&f);
	CHECK(segment.len > 0);
	f.ws = open_as(&f, "", false);
	CHECK_STR(ask(&f, f.ws, "word77"), STR("notes/m0077.md"));
	workspace_close(f.ws);
	CHECK_STR(first_segment(&f), segment);
	file = fopen(segment.ptr, "r+");
	CHECK(file && fseek(file, 4000, SEEK_SET) == 0 && fputs("damage", file) > 0 && fclose(file) == 0);
	f.ws = open_as(&f, "", false);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 200);
	CHECK_STR(ask(&f, f.ws, "word77"), STR("notes/m0077.md"));
	workspace_close(f.ws);
	CHECK(!str_eq(first_segment(&f), segment));
	CHECK_INT(system(arena_printf(f.arena, "rm -rf %s/home/.stead/index", f.dir).ptr), 0);
	f.ws = open_as(&f, "", false);
	CHECK_STR(ask(&f, f.ws, "word78"), STR("notes/m0078.md"));
	teardown(&f);
}

TEST(an_index_that_is_cut_off_while_it_is_open_is_built_again)
{
	struct fix f;

	setup(&f);
	put_many(&f, 0, 400);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 400);
	workspace_close(f.ws);
	f.ws = open_as(&f, "", false);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 400);
	CHECK_INT(truncate(first_segment(&f).ptr, 0), 0);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 400);
	CHECK_STR(ask(&f, f.ws, "word77"), STR("notes/m0077.md"));
	workspace_close(f.ws);
	f.ws = open_as(&f, "", false);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 400);
	CHECK_INT(truncate(first_segment(&f).ptr, 5000), 0);
	CHECK_STR(ask(&f, f.ws, "word78"), STR("notes/m0078.md"));
	teardown(&f);
}

TEST(a_note_names_the_file_that_is_not_what_its_family_expects)
{
	struct fix f;
	struct search_hits hits;

	setup(&f);
	put(&f, f.ws, "knowledge/good.md", "a lighthouse\n");
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("lighthouse")}).note.len, 0);
	put(&f, f.ws, "notes/bad.md", "---\ntitle: [never closed\n---\na lighthouse\n");
	hits = ask_query(&f, f.ws, (struct search_query){.text = STR("lighthouse")});
	CHECK_INT(hits.total, 2);
	CHECK_STR(hits.note, STR("notes/bad.md could not be parsed, and counts as plain text"));
	put(&f, f.ws, "notes/bad.md", "---\ntitle: closed\n---\na lighthouse\n");
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("lighthouse")}).note.len, 0);
	teardown(&f);
}

TEST(files_that_another_program_changed_are_noticed_when_the_index_is_opened)
{
	struct fix f;
	FILE *file;

	setup(&f);
	put_many(&f, 0, 100);
	CHECK_STR(ask(&f, f.ws, "word42"), STR("notes/m0042.md"));
	workspace_close(f.ws);
	file = fopen(arena_printf(f.arena, "%s/home/notes/m0042.md", f.dir).ptr, "w");
	CHECK(file && fputs("a tapir", file) > 0 && fclose(file) == 0);
	CHECK_INT(unlink(arena_printf(f.arena, "%s/home/notes/m0043.md", f.dir).ptr), 0);
	f.ws = open_as(&f, "", false);
	CHECK_STR(ask(&f, f.ws, "tapir"), STR("notes/m0042.md"));
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 98);
	teardown(&f);
}

TEST(a_forgotten_index_holds_nothing_and_is_built_again)
{
	struct fix f;

	setup(&f);
	put_many(&f, 0, 100);
	CHECK_STR(ask(&f, f.ws, "word42"), STR("notes/m0042.md"));
	workspace_close(f.ws);
	f.ws = open_as(&f, "", false);
	CHECK_STR(ask(&f, f.ws, "word42"), STR("notes/m0042.md"));
	CHECK(first_segment(&f).len > 0);
	home_search_forget(f.ws);
	CHECK_INT(first_segment(&f).len, 0);
	CHECK_STR(ask(&f, f.ws, "word43"), STR("notes/m0043.md"));
	teardown(&f);
}

TEST(another_handle_of_the_same_workspace_sees_the_same)
{
	struct fix f;
	struct workspace *other;

	setup(&f);
	other = open_as(&f, "", false);
	put_many(&f, 0, 100);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common")}).total, 100);
	put(&f, other, "notes/x.md", "an ibis");
	CHECK_STR(ask(&f, f.ws, "ibis"), STR("notes/x.md"));
	workspace_close(f.ws); /* writes its index */
	put(&f, other, "notes/y.md", "an ibis, common too");
	CHECK_INT(ask_query(&f, other, (struct search_query){.text = STR("common")}).total, 101);
	workspace_close(other);
	f.ws = open_as(&f, "", false);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("common ibis")}).total, 102);
	teardown(&f);
}

TEST(pages_follow_each_other_without_gap_or_repeat)
{
	struct fix f;
	struct buf all;

	setup(&f);
	put_many(&f, 0, 37);
	buf_init(&all, f.arena, 1 << 20);
	for (size_t offset = 0; offset < 37; offset += 10) {
		struct search_query q = {.text = STR("common"), .offset = offset};
		struct search_hits hits = ask_query(&f, f.ws, q);

		CHECK_INT(hits.total, 37);
		buf_add(&all, paths_of(&f, hits));
		buf_char(&all, ' ');
	}
	for (int i = 0; i < 37; i++)
		CHECK_HAS(buf_str(&all), arena_printf(f.arena, "m%04d.md ", i));
	CHECK_INT(all.len, 37 * 15);
	teardown(&f);
}

struct writer {
	struct fix *f;
	int number, count;
};

static void *write_notes(void *arg)
{
	struct writer *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (int i = 0; i < w->count; i++) {
		struct wpath path = {arena_printf(arena, "notes/t%d-%04d.md", w->number, i)};

		if (store_write(workspace_home(w->f->ws), &ctx, path, arena_printf(arena, "shared mark%d", i),
				(struct store_cond){0}, NULL, &err) != 0)
			return &w->number;
	}
	return NULL;
}

TEST(searches_beside_writers_lose_nothing)
{
	struct fix f;
	struct writer writers[2];
	pthread_t threads[2];
	uint64_t before = 0;
	void *failed;

	setup(&f);
	for (int i = 0; i < 2; i++) {
		writers[i] = (struct writer){&f, i, 300};
		CHECK_INT(pthread_create(&threads[i], NULL, write_notes, &writers[i]), 0);
	}
	for (int i = 0; i < 100; i++) {
		uint64_t total = ask_query(&f, f.ws, (struct search_query){.text = STR("shared")}).total;

		CHECK(total >= before);
		before = total;
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		CHECK(!failed);
	}
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("shared")}).total, 600);
	CHECK_INT(ask_query(&f, f.ws, (struct search_query){.text = STR("mark299")}).total, 2);
	teardown(&f);
}

TEST(a_workspace_in_memory_is_searched_too)
{
	struct fix f;
	struct workspace *ws;

	setup(&f);
	ws = open_as(&f, "", true);
	put(&f, ws, "notes/a.md", "an okapi");
	for (int i = 0; i < 60; i++) {
		put(&f, ws, arena_printf(f.arena, "notes/b%d.md", i).ptr, "an okapi");
		CHECK_INT(ask_query(&f, ws, (struct search_query){.text = STR("okapi")}).total, i + 2);
	}
	workspace_close(ws);
	teardown(&f);
}

TEST(questions_that_are_too_long_are_refused)
{
	struct fix f;
	struct search_hits hits;
	struct search_query q = {0};
	struct buf text;

	setup(&f);
	buf_init(&text, f.arena, 1 << 20);
	for (int i = 0; i < 400; i++)
		buf_printf(&text, "q%d ", i);
	q.text = buf_str(&text);
	CHECK_ERR(home_search(f.ws, &f.ctx, &q, &hits, &f.err), f.err, ERR_INVALID);
	for (int i = 0; i < 4000; i++)
		buf_printf(&text, "q%d ", i);
	q.text = buf_str(&text);
	CHECK_ERR(home_search(f.ws, &f.ctx, &q, &hits, &f.err), f.err, ERR_INVALID);
	teardown(&f);
}

TEST(times_are_dates_or_how_long_ago)
{
	struct err err;
	int64_t ns;

	CHECK_OK(search_time(STR("1970-01-02"), false, &ns, &err), err);
	CHECK_INT(ns, INT64_C(86400) * 1000000000);
	CHECK_OK(search_time(STR("2026-11-15T10:00:00Z"), false, &ns, &err), err);
	CHECK_INT(ns / 1000000000, 1794736800);
	CHECK_OK(search_time(STR("7d"), false, &ns, &err), err);
	CHECK_ERR(search_time(STR("yesterday"), false, &ns, &err), err, ERR_INVALID);
	CHECK_ERR(search_time(STR("2026-13-01"), false, &ns, &err), err, ERR_INVALID);
}
