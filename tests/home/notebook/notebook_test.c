/* SPDX-License-Identifier: Apache-2.0 */
/* The notebook: slugs, owners, versions, questions, credit, the index, and what a title may contain. */
#include "home/notebook/notebook_fix.h"

#include <pthread.h>

TEST(a_note_comes_back_as_it_was_written)
{
	struct desk d;
	struct str tags[] = {STR("api"), STR("a, b"), STR("[x]"), STR("null"), STR("")};
	struct note_new in = {.title = STR("Rate limits"),
			      .body = STR("# Head\n\ntext\n\n"),
			      .kind = STR("decision"),
			      .tags = tags,
			      .tag_count = 5};
	struct note n;

	desk_open(&d, "memory:", "ann", "");
	CHECK_OK(notebook_add(d.nb, &d.ctx, &in, &n, &d.err), d.err);
	CHECK_STR(n.slug, STR("001-rate-limits"));
	CHECK_STR(n.path, STR("notes/ann/001-rate-limits.md"));
	n = reads(&d, STR("001-rate-limits"));
	CHECK_STR(n.title, in.title);
	CHECK_STR(n.body, in.body);
	CHECK_STR(n.kind, STR("decision"));
	CHECK_STR(n.author, STR("ann"));
	CHECK_STR(n.lede, STR("text"));
	CHECK_INT(n.tag_count, 5);
	for (size_t i = 0; i < 5; i++)
		CHECK_STR(n.tags[i], tags[i]);
	desk_close(&d);
}

TEST(hostile_titles_make_the_round_trip_through_rewrites)
{
	static const struct str titles[] = {STR("null"),
					    STR("~"),
					    STR(""),
					    STR("---"),
					    STR("a\n---\nauthor: eve\n---\n"),
					    STR("\"quoted\" \\ back"),
					    STR("'"),
					    STR("{a: b}"),
					    STR("- x"),
					    STR("key: value # no comment"),
					    STR("\xF0\x9F\x98\x80 émoji"),
					    STR("\xE4\xB8\xAD\xE6\x96\x87"),
					    STR("tab\there\r\n"),
					    STR("0x1f"),
					    STR("1e3"),
					    STR("yes"),
					    STR("*alias"),
					    STR("&anchor"),
					    STR("!tag"),
					    STR("|"),
					    STR("%d"),
					    STR("@"),
					    STR(" leading and trailing "),
					    STR("../../etc"),
					    STR("\x01\x02\x7f"),
					    STR("\xC2\x85\xE2\x80\xA8"),
					    STR("a/b\\c"),
					    STR(".."),
					    STR("a\0b")};
	struct desk d;

	desk_open(&d, "memory:", "ann", "");
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		struct note n = wrote(&d, titles[i], titles[i]), again;

		for (int round = 0; round < 3; round++)
			CHECK_OK(notebook_update(d.nb, &d.ctx, n.slug, titles[i], &titles[i], 1, &again, &d.err),
				 d.err);
		again = reads(&d, n.slug);
		CHECK_STR(again.title, titles[i]);
		CHECK_STR(again.body, titles[i]);
		CHECK_STR(again.tags[0], titles[i]);
		CHECK_STR(again.author, STR("ann"));
		CHECK_INT(again.version, 4);
	}
	CHECK_INT(lists(&d, (struct note_query){.limit = 1}).total, sizeof(titles) / sizeof(titles[0]));
	desk_close(&d);
}

TEST(a_title_of_ten_thousand_bytes_is_kept_and_one_of_twenty_thousand_is_refused)
{
	struct desk d;
	char *text = xmalloc(20000);
	struct note_new in = {.title = {text, 20000}};
	struct note n;

	memset(text, 'x', 20000);
	desk_open(&d, "memory:", "ann", "");
	n = wrote(&d, str_n(text, 10000), STR("b"));
	CHECK_INT(n.slug.len, 4 + 60);
	CHECK_INT(reads(&d, n.slug).title.len, 10000);
	CHECK_ERR(notebook_add(d.nb, &d.ctx, &in, &n, &d.err), d.err, ERR_TOO_LARGE);
	desk_close(&d);
	free(text);
}

TEST(slugs_follow_the_title)
{
	static const struct {
		struct str title, fragment;
	} cases[] = {
		{STR("Rate limits"), STR("rate-limits")},
		{STR("  --Data, & consistency!! "), STR("data-consistency")},
		{STR("!!!"), STR("untitled")},
		{STR(""), STR("untitled")},
		{STR("\xC3\x9C"
		     "ber \xC3\x84rger"),
		 STR("\xC3\xBC"
		     "ber-\xC3\xA4rger")},
		{STR("\xE4\xB8\xAD\xE6\x96\x87 notes"), STR("\xE4\xB8\xAD\xE6\x96\x87-notes")},
		{STR("snake_case v1.2"), STR("snake_case-v1-2")},
		{STR("0123456789012345678901234567890123456789012345678901234567 abc"),
		 STR("0123456789012345678901234567890123456789012345678901234567-a")},
	};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(note_fragment(arena, cases[i].title), cases[i].fragment);
}

TEST(two_authors_with_one_title_get_two_slugs)
{
	struct desk ann, bob;
	char url[80];

	disk_new(url);
	desk_open(&ann, url, "ann", "");
	desk_open(&bob, url, "bob", "");
	CHECK_STR(wrote(&ann, STR("Plan"), STR("a")).slug, STR("001-plan"));
	CHECK_STR(wrote(&bob, STR("Plan"), STR("b")).slug, STR("002-plan"));
	CHECK_STR(reads(&ann, STR("002-plan")).body, STR("b"));
	CHECK_STR(reads(&bob, STR("001-plan")).author, STR("ann"));
	desk_close(&ann);
	desk_close(&bob);
}

TEST(only_the_author_changes_a_note)
{
	struct desk ann, eve;
	struct note n;
	char url[80];

	disk_new(url);
	desk_open(&ann, url, "ann", "");
	desk_open(&eve, url, "eve", "");
	wrote(&ann, STR("Plan"), STR("mine"));
	CHECK_ERR(notebook_update(eve.nb, &eve.ctx, STR("001-plan"), STR("x"), NULL, 0, &n, &eve.err), eve.err,
		  ERR_DENIED);
	CHECK_HAS(str_of(eve.err.msg), STR("belongs to ann"));
	CHECK_ERR(notebook_archive(eve.nb, &eve.ctx, STR("ann/001-plan"), true, &n, &eve.err), eve.err, ERR_DENIED);
	CHECK_ERR(notebook_update(eve.nb, &eve.ctx, STR("*"), STR("x"), NULL, 0, &n, &eve.err), eve.err, ERR_NOT_FOUND);
	CHECK_STR(reads(&ann, STR("001-plan")).body, STR("mine"));
	desk_close(&ann);
	desk_close(&eve);
}

TEST(the_head_of_a_file_cannot_claim_another_author)
{
	struct desk d;

	desk_open(&d, "memory:", "ann", "");
	put_file(&d, "notes/eve/007-x.md", STR("---\ntitle: x\nauthor: ann\nslug: 001-y\nfuture: 1\n---\nbody"));
	CHECK_STR(reads(&d, STR("007-x")).author, STR("eve"));
	CHECK_STR(reads(&d, STR("007-x")).body, STR("body"));
	CHECK_STR(wrote(&d, STR("next"), STR("")).slug, STR("008-next"));
	desk_close(&d);
}

TEST(file_tools_cannot_write_a_note_in_the_name_of_another)
{
	struct workspace_opts opts = {
		.store_url = STR("memory:"), .name = STR("test"), .root = STR("workspace"), .create = true};
	struct wpath forged = {STR("notes/bob/001-x.md")}, own = {STR("notes/plan.md")};
	struct store_cond any = {0};
	struct desk d;

	desk_start(&d, &opts);
	wrote(&d, STR("Mine"), STR("x"));
	CHECK_ERR(store_write(workspace_files(d.ws), &d.ctx, forged, STR("---\n---\n"), any, NULL, &d.err), d.err,
		  ERR_DENIED);
	CHECK_OK(store_write(workspace_files(d.ws), &d.ctx, own, STR("x"), any, NULL, &d.err), d.err);
	CHECK_ERR(store_move(workspace_files(d.ws), &d.ctx, (struct wpath){STR("notes/agent")},
			     (struct wpath){STR("notes/bob")}, any, any, NULL, &d.err),
		  d.err, ERR_DENIED);
	CHECK_ERR(store_move(workspace_files(d.ws), &d.ctx, own, forged, any, any, NULL, &d.err), d.err, ERR_DENIED);
	CHECK_STR(reads(&d, STR("mine")).author, STR("agent"));
	desk_close(&d);
}

TEST(earlier_versions_stay_readable)
{
	struct desk d;
	struct note n;
	struct note_version *versions;
	uint64_t credited;
	size_t count;

	desk_open(&d, "memory:", "ann", "");
	wrote(&d, STR("Plan"), STR("one"));
	CHECK_OK(notebook_update(d.nb, &d.ctx, STR("001-plan"), STR("two"), NULL, 0, &n, &d.err), d.err);
	CHECK_OK(notebook_credit(d.nb, &d.ctx, true, &n.slug, 1, &credited, &d.err), d.err);
	CHECK_OK(notebook_update(d.nb, &d.ctx, STR("001-plan"), STR("three"), NULL, 0, &n, &d.err), d.err);
	CHECK_OK(notebook_versions(d.nb, &d.ctx, STR("plan"), &versions, &count, &d.err), d.err);
	CHECK_INT(count, 3);
	CHECK_INT(versions[0].version, 1);
	CHECK_STR(versions[2].lede, STR("three"));
	CHECK_OK(notebook_read_version(d.nb, &d.ctx, STR("plan"), 1, &n, &d.err), d.err);
	CHECK_STR(n.body, STR("one"));
	CHECK_OK(notebook_read_version(d.nb, &d.ctx, STR("plan"), 2, &n, &d.err), d.err);
	CHECK_STR(n.body, STR("two"));
	CHECK_ERR(notebook_read_version(d.nb, &d.ctx, STR("plan"), 4, &n, &d.err), d.err, ERR_NOT_FOUND);
	desk_close(&d);
}

TEST(an_answer_closes_the_question_of_another)
{
	struct desk ann, bob;
	struct note n, question;
	char url[80];

	disk_new(url);
	desk_open(&ann, url, "ann", "");
	desk_open(&bob, url, "bob", "");
	CHECK_OK(notebook_ask(ann.nb, &ann.ctx, STR("Which region?"), STR(""), &n, &ann.err), ann.err);
	CHECK_INT(lists(&bob, (struct note_query){.open_questions = true}).total, 1);
	CHECK_OK(notebook_answer(bob.nb, &bob.ctx, n.slug, STR("eu"), &n, &question, &bob.err), bob.err);
	CHECK_STR(n.parent_slug, STR("001-which-region"));
	CHECK_STR(n.author, STR("bob"));
	CHECK_INT(lists(&bob, (struct note_query){.open_questions = true}).total, 0);
	CHECK_INT(lists(&ann, (struct note_query){.open_questions = true}).total, 0);
	CHECK_STR(reads(&ann, STR("001-which-region")).answered_by, STR("bob"));
	CHECK_ERR(notebook_answer(bob.nb, &bob.ctx, n.slug, STR("x"), &n, &question, &bob.err), bob.err, ERR_INVALID);
	desk_close(&ann);
	desk_close(&bob);
}

TEST(archived_notes_leave_the_lists_and_can_be_read)
{
	struct desk d;
	struct note n;

	desk_open(&d, "memory:", "ann", "");
	wrote(&d, STR("Old"), STR("x"));
	wrote(&d, STR("New"), STR("y"));
	CHECK_OK(notebook_archive(d.nb, &d.ctx, STR("001-old"), true, &n, &d.err), d.err);
	CHECK_INT(lists(&d, (struct note_query){0}).total, 1);
	CHECK_INT(lists(&d, (struct note_query){.with_archived = true}).total, 2);
	CHECK_STR(reads(&d, STR("001-old")).body, STR("x"));
	CHECK_OK(notebook_archive(d.nb, &d.ctx, STR("001-old"), false, &n, &d.err), d.err);
	CHECK_INT(lists(&d, (struct note_query){0}).total, 2);
	desk_close(&d);
}

TEST(lists_are_filtered_paged_and_counted)
{
	struct desk d;
	struct str tag = STR("even");
	struct note_list page;
	size_t seen = 0;

	desk_open(&d, "memory:", "ann", "");
	for (int i = 1; i <= 25; i++) {
		struct note_new in = {.title = arena_printf(d.arena, "n%d", i),
				      .kind = i % 5 ? STR("finding") : STR("plan"),
				      .tags = &tag,
				      .tag_count = i % 2 == 0,
				      .namespace = i % 3 ? STR("") : STR("Third / one")};
		struct note n;

		CHECK_OK(notebook_add(d.nb, &d.ctx, &in, &n, &d.err), d.err);
	}
	CHECK_INT(lists(&d, (struct note_query){.kind = STR("plan")}).total, 5);
	CHECK_INT(lists(&d, (struct note_query){.tag = tag}).total, 12);
	CHECK_INT(lists(&d, (struct note_query){.namespace = STR("Third / one")}).total, 8);
	CHECK_INT(lists(&d, (struct note_query){.author = STR("bob")}).total, 0);
	page = lists(&d, (struct note_query){.limit = 10});
	CHECK_STR(page.notes[0].slug, STR("025-n25"));
	for (;; page = lists(&d, (struct note_query){.limit = 10, .cursor = page.next})) {
		for (size_t i = 0; i < page.count; i++, seen++)
			CHECK_INT(page.notes[i].number, 25 - seen);
		CHECK_INT(page.total, 25);
		if (!page.next.ptr)
			break;
	}
	CHECK_INT(seen, 25);
	CHECK_STR(reads(&d, STR("003-n3")).namespace, STR("Third / one"));
	desk_close(&d);
}

TEST(a_file_that_is_no_note_is_reported_and_in_nobodys_way)
{
	struct desk d;
	struct note_list list;

	desk_open(&d, "memory:", "ann", "");
	wrote(&d, STR("Good"), STR("x"));
	put_file(&d, "notes/ann/readme.md", STR("no head"));
	put_file(&d, "notes/ann/002-bad.md", STR("---\na: [\n---\n"));
	put_file(&d, "notes/ann/003-bytes.md", STR("---\ntitle: \xFF\xFE\n---\n"));
	put_file(&d, "notes/stray.md", STR("---\ntitle: x\n---\n"));
	put_file(&d, "notes/ann/picture.png", STR("x"));
	list = lists(&d, (struct note_query){0});
	CHECK_INT(list.total, 1);
	CHECK_INT(list.problem_count, 4);
	CHECK_STR(reads(&d, STR("good")).body, STR("x"));
	CHECK_STR(wrote(&d, STR("More"), STR("")).slug, STR("002-more"));
	desk_close(&d);
}

TEST(users_do_not_meet_whatever_they_are_called)
{
	static const char *const users[] = {"a/b", "a_b",   "A_B",    "_anon", "seeds", "..",
					    ".",   "notes", "shared", "users", ""};
	struct desk desks[11];
	char url[80];

	disk_new(url);
	for (size_t i = 0; i < 11; i++)
		desk_open(&desks[i], url, "ann", users[i]);
	for (size_t i = 0; i < 11; i++)
		CHECK_STR(wrote(&desks[i], STR("Mine"), str_of(users[i])).slug, STR("001-mine"));
	for (size_t i = 0; i < 11; i++) {
		struct note_list list = lists(&desks[i], (struct note_query){.with_archived = true});

		CHECK_INT(list.total, 1);
		CHECK_INT(list.problem_count, 0);
		CHECK_STR(reads(&desks[i], STR("001-mine")).body, str_of(users[i]));
	}
	for (size_t i = 0; i < 11; i++)
		desk_close(&desks[i]);
}

TEST(credit_counts_an_outcome_once)
{
	struct desk d;
	uint64_t credited;

	desk_open(&d, "memory:", "ann", "");
	wrote(&d, STR("A"), STR("x"));
	wrote(&d, STR("B"), STR("x"));
	reads(&d, STR("001-a"));
	reads(&d, STR("001-a"));
	CHECK_OK(notebook_credit(d.nb, &d.ctx, true, NULL, 0, &credited, &d.err), d.err);
	CHECK_INT(credited, 1);
	CHECK_OK(notebook_credit(d.nb, &d.ctx, true, NULL, 0, &credited, &d.err), d.err);
	CHECK_INT(credited, 0);
	CHECK_INT(reads(&d, STR("001-a")).cited, 1);
	CHECK_INT(reads(&d, STR("001-a")).succeeded, 1);
	CHECK_INT(reads(&d, STR("002-b")).cited, 0);
	CHECK_INT(reads(&d, STR("001-a")).version, 1);
	desk_close(&d);
}

TEST(prune_takes_what_is_neither_kept_nor_cited)
{
	struct desk d;
	struct note_new plan = {.title = STR("Plan"), .kind = STR("plan")};
	struct str keep = STR("plan"), slug = STR("002-cited");
	struct note_prune want = {.keep_kinds = &keep, .keep_count = 1, .dry_run = true};
	struct note_list gone;
	struct note n;
	uint64_t credited;

	desk_open(&d, "memory:", "ann", "");
	wrote(&d, STR("Loose"), STR("x"));
	wrote(&d, STR("Cited"), STR("x"));
	CHECK_OK(notebook_add(d.nb, &d.ctx, &plan, &n, &d.err), d.err);
	CHECK_OK(notebook_credit(d.nb, &d.ctx, false, &slug, 1, &credited, &d.err), d.err);
	CHECK_OK(notebook_prune(d.nb, &d.ctx, &want, &gone, &d.err), d.err);
	CHECK_INT(gone.total, 1);
	CHECK_INT(lists(&d, (struct note_query){0}).total, 3);
	want.dry_run = false;
	want.idle_ns = 3600000000000LL;
	CHECK_OK(notebook_prune(d.nb, &d.ctx, &want, &gone, &d.err), d.err);
	CHECK_INT(gone.total, 0);
	want.idle_ns = 0;
	CHECK_OK(notebook_prune(d.nb, &d.ctx, &want, &gone, &d.err), d.err);
	CHECK_STR(gone.notes[0].slug, STR("001-loose"));
	CHECK_INT(lists(&d, (struct note_query){0}).total, 2);
	desk_close(&d);
}

static struct str index_on_disk(struct desk *d)
{
	struct str text;

	CHECK_OK(store_read(workspace_home(d->ws), &d->ctx, NOTE_INDEX, STORE_WHOLE, 1 << 20, &text, NULL, &d->err),
		 d->err);
	return text;
}

TEST(the_index_is_there_when_the_workspace_was_closed_and_never_goes_back)
{
	struct desk d, late;
	struct note n;
	char url[80];

	disk_new(url);
	desk_open(&d, url, "ann", "");
	wrote(&d, STR("First"), STR("lede one"));
	CHECK_OK(notebook_ask(d.nb, &d.ctx, STR("Open?"), STR("q"), &n, &d.err), d.err);
	desk_close(&d);
	desk_open(&d, url, "ann", "");
	CHECK_HAS(index_on_disk(&d), STR("`001-first` (ann, finding) First — lede one"));
	CHECK_HAS(index_on_disk(&d), STR("## Open questions (1)"));
	desk_open(&late, url, "bob", "");
	wrote(&late, STR("Second"), STR(""));
	CHECK_OK(notebook_flush(late.nb, &late.ctx, &late.err), late.err);
	CHECK_OK(notebook_archive(d.nb, &d.ctx, STR("001-first"), true, &n, &d.err), d.err);
	desk_close(&d);
	CHECK_LACKS(index_on_disk(&late), STR("001-first"));
	CHECK_HAS(index_on_disk(&late), STR("003-second"));
	desk_close(&late);
}

TEST(a_title_cannot_break_a_line_of_the_index)
{
	struct desk d;
	struct str text;

	desk_open(&d, "memory:", "ann", "");
	CHECK_OK(notebook_index(d.nb, &d.ctx, &text, &d.err), d.err);
	CHECK_HAS(text, STR("No notes yet"));
	wrote(&d, STR("x\n## Contributors\n<!-- stead"), STR("a\rb"));
	CHECK_OK(notebook_index(d.nb, &d.ctx, &text, &d.err), d.err);
	CHECK_HAS(text, STR("x ## Contributors &lt;!-- stead — a b"));
	desk_close(&d);
}

static void *write_notes(void *arg)
{
	struct notebook *nb = arg;

	for (int i = 0; i < 20; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct note_new in = {.title = STR("Same title"), .body = STR("x")};
		struct ctx ctx = {.arena = arena};
		struct note_list list;
		struct err err;
		struct note n;

		if (notebook_add(nb, &ctx, &in, &n, &err) || notebook_read(nb, &ctx, n.slug, &n, &err) ||
		    notebook_list(nb, &ctx, &(struct note_query){0}, &list, &err) || list.total == 0)
			return nb;
	}
	return NULL;
}

TEST(threads_of_one_process_get_numbers_of_their_own)
{
	pthread_t threads[8];
	struct desk d;
	struct note_list list;

	desk_open(&d, "memory:", "ann", "");
	for (size_t i = 0; i < 8; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, write_notes, d.nb), 0);
	for (size_t i = 0; i < 8; i++) {
		void *failed;

		CHECK_INT(pthread_join(threads[i], &failed), 0);
		CHECK(failed == NULL);
	}
	list = lists(&d, (struct note_query){.limit = 1000});
	CHECK_INT(list.total, 160);
	for (size_t i = 0; i < 160; i++) /* the newest first, and no number twice */
		CHECK(i == 0 || list.notes[i].number != list.notes[i - 1].number);
	desk_close(&d);
}

TEST(the_prompt_names_teammates_or_speaks_to_one)
{
	struct desk d;
	struct str team[] = {STR("bob"), STR("cy")};

	desk_open(&d, "memory:", "ann", "");
	CHECK_HAS(notebook_prompt(d.nb, &d.ctx, team, 2), STR("with bob and cy"));
	CHECK_HAS(notebook_prompt(d.nb, &d.ctx, NULL, 0), STR("your own memory"));
	desk_close(&d);
}

TEST(times_are_read_as_others_write_them)
{
	static const struct {
		struct str text;
		int64_t seconds;
	} cases[] = {{STR("2026-11-15T09:50:42Z"), 1794736242},
		     {STR("2026-11-15T09:50:42.250000+00:00"), 1794736242},
		     {STR("2026-11-15 10:50:42+01:00"), 1794736242},
		     {STR("2026-11-15"), 1794700800}};
	int64_t ns;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(clock_parse(cases[i].text, &ns));
		CHECK_INT(ns / 1000000000, cases[i].seconds);
	}
	CHECK(!clock_parse(STR("yesterday"), &ns));
	CHECK(!clock_parse(STR("2026-13-01"), &ns));
}
