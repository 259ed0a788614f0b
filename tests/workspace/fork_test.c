/* SPDX-License-Identifier: Apache-2.0 */
/* Forks and merges: examples of each rule first, then generated histories against a model. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin/doctor.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "text/merge.h"
#include "workspace/fork.h"

struct place {
	const char *dir;
	char url[80];
	struct arena *arena;
	struct ctx ctx;
	struct err err;
};

static struct place place_new(void)
{
	struct place p = {.arena = arena_new()};
	struct init_opts init = {.name = STR("scout")};
	struct jv *made;

	test_defer(arena_destroy, p.arena);
	p.dir = temp_dir_new();
	snprintf(p.url, sizeof p.url, "disk:%s", p.dir);
	p.ctx.arena = p.arena;
	init.store_url = str_of(p.url);
	CHECK_OK(workspace_init(&p.ctx, &init, &made, &p.err), p.err);
	return p;
}

static int try_open(struct place *p, const char *name, const char *user, const char *root, struct workspace **ret)
{
	struct workspace_opts opts = {.store_url = str_of(p->url),
				      .name = str_of(name),
				      .user = str_of(user),
				      .root = str_of(root),
				      .relaxed = true};
	int r = workspace_open(&opts, ret, &p->err);

	if (r == 0)
		test_defer(workspace_close, *ret);
	return r;
}

static struct workspace *open_ws(struct place *p, const char *name)
{
	struct workspace *ws = NULL;

	CHECK_OK(try_open(p, name, "", "", &ws), p->err);
	return ws;
}

static struct wpath at(const char *path)
{
	return (struct wpath){str_of(path)};
}

static void put_bytes(struct place *p, struct workspace *ws, const char *path, struct str bytes)
{
	CHECK_OK(store_write(workspace_files(ws), &p->ctx, at(path), bytes, (struct store_cond){0}, NULL, &p->err),
		 p->err);
}

static void put(struct place *p, struct workspace *ws, const char *path, const char *text)
{
	put_bytes(p, ws, path, str_of(text));
}

static void drop(struct place *p, struct workspace *ws, const char *path)
{
	CHECK_OK(store_remove(workspace_files(ws), &p->ctx, at(path), true, (struct store_cond){0}, NULL, &p->err),
		 p->err);
}

/* ptr NULL: it is not there. */
static struct str get(struct place *p, struct workspace *ws, const char *path)
{
	struct str bytes = STR_NONE;
	int r = store_read(workspace_files(ws), &p->ctx, at(path), STORE_WHOLE, MIB, &bytes, NULL, &p->err);

	if (r && r != -ERR_NOT_FOUND)
		TEST_FAIL("%s", p->err.msg);
	return r ? STR_NONE : bytes;
}

/* All paths, one a line. */
static struct str tree(struct place *p, struct store *s, size_t limit)
{
	struct store_list_req req = {.recursive = true, .limit = limit};
	struct store_page page;
	struct buf b;

	buf_init(&b, p->arena, MIB);
	do {
		CHECK_OK(store_list(s, &p->ctx, WPATH_ROOT, &req, &page, &p->err), p->err);
		for (size_t i = 0; i < page.count; i++)
			buf_printf(&b, "%.*s\n", STR_ARG(page.entries[i].path.s));
		req.after = page.next;
	} while (page.next.ptr);
	return b.ptr ? buf_str(&b) : STR("");
}

static struct workspace *fork_at(struct place *p, struct workspace *ws, const char *name, uint64_t number)
{
	struct jv *made;

	CHECK_OK(fork_create(ws, &p->ctx, str_of(name), number, &made, &p->err), p->err);
	return open_ws(p, name);
}

static struct workspace *fork_now(struct place *p, struct workspace *ws, const char *name)
{
	return fork_at(p, ws, name, FORK_AT_HEAD);
}

static struct jv *merge(struct place *p, struct workspace *ws, const char *name)
{
	struct merge_req req = {.name = str_of(name)};
	struct jv *report = NULL;

	CHECK_OK(fork_merge(ws, &p->ctx, &req, &report, &p->err), p->err);
	return report;
}

static uint64_t head(struct place *p, struct workspace *ws)
{
	uint64_t n = 0;

	CHECK_OK(revisions_head(workspace_revisions(ws), &p->ctx, &n, &p->err), p->err);
	return n;
}

/* --- what a fork shows --- */

TEST(a_fork_is_one_file_and_shows_its_parent)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	struct store *all;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "d/b.md", "b\n");
	fork = fork_now(&p, ws, "try");
	CHECK_STR(get(&p, fork, "d/b.md"), STR("b\n"));
	CHECK_STR(tree(&p, workspace_files(fork), 100), STR("a.md\nd/b.md\n"));
	CHECK_OK(store_disk_open(p.dir, &(struct store_disk_opts){0}, &all, &p.err), p.err);
	CHECK_OK(store_list(all, &p.ctx, at("try"), &req, &page, &p.err), p.err);
	store_destroy(all);
	CHECK_INT(page.count, 1);
}

TEST(what_the_parent_does_later_does_not_show_in_the_fork)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "gone.md", "still\n");
	put(&p, ws, "d/b.md", "b\n");
	fork = fork_now(&p, ws, "try");
	put(&p, ws, "a.md", "changed\n");
	put(&p, ws, "new/n.md", "new\n");
	drop(&p, ws, "gone.md");
	drop(&p, ws, "d");
	CHECK_STR(get(&p, fork, "a.md"), STR("a\n"));
	CHECK_STR(get(&p, fork, "gone.md"), STR("still\n"));
	CHECK_STR(tree(&p, workspace_files(fork), 2), STR("a.md\nd/b.md\ngone.md\n"));
	CHECK_ERR(store_stat(workspace_files(fork), &p.ctx, at("new"), NULL, &p.err), p.err, ERR_NOT_FOUND);
}

/* The names of one directory, as `ls` asks for them: its list is remembered once the clock of the file system has moved
   on. */
static struct str names(struct place *p, struct workspace *ws, const char *dir)
{
	struct store_list_req req = {.limit = 100, .names_only = true};
	struct timespec begin, now;
	struct store_page page;
	struct buf b;

	clock_gettime(CLOCK_REALTIME_COARSE, &begin);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == begin.tv_sec && now.tv_nsec == begin.tv_nsec);
	buf_init(&b, p->arena, MIB);
	for (int i = 0; i < 2; i++) { /* the second time from what is remembered */
		buf_clear(&b);
		CHECK_OK(store_list(workspace_files(ws), &p->ctx, at(dir), &req, &page, &p->err), p->err);
		for (size_t k = 0; k < page.count; k++)
			buf_printf(&b, "%.*s ", STR_ARG(page.entries[k].path.s));
	}
	return buf_str(&b);
}

TEST(the_list_of_a_directory_in_a_fork_follows_the_fork_alone)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork, *other;
	struct str before = STR("d/a.md d/b.md d/e ");

	put(&p, ws, "d/a.md", "a\n");
	put(&p, ws, "d/b.md", "b\n");
	put(&p, ws, "d/e/f.md", "f\n");
	fork = fork_now(&p, ws, "try");
	other = open_ws(&p, "try");
	CHECK_STR(names(&p, fork, "d"), before);
	put(&p, ws, "d/a.md", "changed\n");
	CHECK_STR(names(&p, fork, "d"), before);
	put(&p, ws, "d/new.md", "new\n");
	put(&p, ws, "d/e/new.md", "new\n");
	CHECK_STR(names(&p, fork, "d"), before);
	CHECK_STR(names(&p, fork, "d/e"), STR("d/e/f.md "));
	drop(&p, ws, "d");
	CHECK_STR(names(&p, fork, "d"), before);
	put(&p, other, "d/own.md", "own\n");
	CHECK_STR(names(&p, fork, "d"), STR("d/a.md d/b.md d/e d/own.md "));
	drop(&p, other, "d/e");
	CHECK_STR(names(&p, fork, "d"), STR("d/a.md d/b.md d/own.md "));
}

TEST(what_the_fork_does_does_not_show_in_the_parent)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "d/b.md", "b\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "fork\n");
	drop(&p, fork, "d");
	CHECK_STR(tree(&p, workspace_files(fork), 100), STR("a.md\n"));
	CHECK_STR(get(&p, ws, "a.md"), STR("a\n"));
	CHECK_STR(tree(&p, workspace_files(ws), 100), STR("a.md\nd/b.md\n"));
}

TEST(an_outside_change_of_a_recorded_file_does_not_show_in_the_fork)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	char path[128];
	FILE *f;

	put(&p, ws, "a.md", "a\n");
	fork = fork_now(&p, ws, "try");
	snprintf(path, sizeof path, "%s/scout/files/a.md", p.dir);
	f = fopen(path, "w");
	CHECK(f && fputs("by an editor\n", f) >= 0 && fclose(f) == 0);
	CHECK_STR(get(&p, fork, "a.md"), STR("a\n"));
	put(&p, ws, "a.md", "on top\n"); /* which records the editor's change first */
	CHECK_STR(get(&p, fork, "a.md"), STR("a\n"));
}

TEST(a_fork_at_an_earlier_revision_shows_that_one)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout");
	struct jv *mark;
	uint64_t number;

	put(&p, ws, "a.md", "one\n");
	CHECK_OK(history_checkpoint(ws, &p.ctx, STR("first"), &mark, &p.err), p.err);
	put(&p, ws, "a.md", "two\n");
	CHECK_OK(past_revision(ws, &p.ctx, STR("first"), &number, &p.err), p.err);
	CHECK_STR(get(&p, fork_at(&p, ws, "old", number), "a.md"), STR("one\n"));
	CHECK_STR(tree(&p, workspace_files(fork_at(&p, ws, "before", 0)), 10), STR(""));
}

TEST(a_fork_of_a_fork_shows_both)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *a, *b;

	put(&p, ws, "root.md", "root\n");
	a = fork_now(&p, ws, "aa");
	put(&p, a, "a.md", "a\n");
	b = fork_now(&p, a, "bb");
	put(&p, a, "a.md", "later\n");
	drop(&p, b, "root.md");
	CHECK_STR(get(&p, b, "a.md"), STR("a\n"));
	CHECK_STR(tree(&p, workspace_files(b), 10), STR("a.md\n"));
	CHECK_STR(tree(&p, workspace_files(a), 10), STR("a.md\nroot.md\n"));
}

TEST(stead_s_own_data_and_secrets_do_not_show_through_a_fork)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *whole = NULL;
	struct str bytes;

	put(&p, ws, "a.md", "a\n");
	drop(&p, fork_now(&p, ws, "try"), "a.md");
	CHECK_OK(try_open(&p, "try", "", "workspace", &whole), p.err);
	CHECK_STR(tree(&p, workspace_files(whole), 100),
		  STR("AGENTS.md\nHEARTBEAT.md\nSOUL.md\nUSER.md\nagent.yaml\n"));
	CHECK_ERR(store_read(workspace_files(whole), &p.ctx, at(".env"), STORE_WHOLE, MIB, &bytes, NULL, &p.err), p.err,
		  ERR_DENIED);
	CHECK_ERR(store_read(workspace_home(whole), &p.ctx, at(".stead/rev/log/0000000000000002.jsonl"), STORE_WHOLE,
			     MIB, &bytes, NULL, &p.err),
		  p.err, ERR_NOT_FOUND);
	CHECK_LACKS(tree(&p, workspace_revisions(whole), 100), STR(".stead-gone"));
}

TEST(a_user_has_his_own_part_in_a_fork)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *ann = NULL, *forked = NULL;

	CHECK_OK(try_open(&p, "scout", "ann", "", &ann), p.err);
	put(&p, ann, "mine.md", "mine\n");
	fork_now(&p, ws, "try");
	CHECK_OK(try_open(&p, "try", "ann", "", &forked), p.err);
	CHECK_STR(get(&p, forked, "mine.md"), STR("mine\n"));
	put(&p, forked, "mine.md", "changed\n");
	merge(&p, ann, "try");
	CHECK_STR(get(&p, ann, "mine.md"), STR("changed\n"));
}

TEST(two_users_give_their_forks_the_same_name)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *ann = NULL, *bob = NULL, *forked = NULL;
	struct jv *made, *other;

	CHECK_OK(try_open(&p, "scout", "ann", "", &ann), p.err);
	CHECK_OK(try_open(&p, "scout", "bob", "", &bob), p.err);
	put(&p, ws, "all.md", "all\n");
	put(&p, ann, "mine.md", "mine\n");
	CHECK_OK(fork_create(ann, &p.ctx, STR("try"), FORK_AT_HEAD, &made, &p.err), p.err);
	CHECK_OK(fork_create(bob, &p.ctx, STR("try"), FORK_AT_HEAD, &other, &p.err), p.err);
	CHECK(!str_eq(jv_get_str(made, "workspace"), jv_get_str(other, "workspace")));
	CHECK_OK(try_open(&p, arena_cstr(p.ctx.arena, jv_get_str(made, "workspace")), "ann", "", &forked), p.err);
	put(&p, forked, "mine.md", "changed\n");
	merge(&p, ann, "try");
	CHECK_STR(get(&p, ann, "mine.md"), STR("changed\n"));
}

/* --- making one --- */

TEST(a_fork_needs_a_good_name_that_is_free)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout");
	struct jv *made;

	CHECK_ERR(fork_create(ws, &p.ctx, STR("Bad Name"), FORK_AT_HEAD, &made, &p.err), p.err, ERR_INVALID);
	CHECK_ERR(fork_create(ws, &p.ctx, STR("../x"), FORK_AT_HEAD, &made, &p.err), p.err, ERR_INVALID);
	CHECK_ERR(fork_create(ws, &p.ctx, STR("scout"), FORK_AT_HEAD, &made, &p.err), p.err, ERR_EXISTS);
	CHECK_ERR(fork_create(ws, &p.ctx, STR("late"), 99, &made, &p.err), p.err, ERR_NOT_FOUND);
	fork_now(&p, ws, "try");
	CHECK_ERR(fork_create(ws, &p.ctx, STR("try"), FORK_AT_HEAD, &made, &p.err), p.err, ERR_EXISTS);
}

static void fork_file(struct place *p, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", p->dir, name);
	mkdir(path, 0777);
	snprintf(path, sizeof path, "%s/%s/.stead", p->dir, name);
	mkdir(path, 0777);
	snprintf(path, sizeof path, "%s/%s/.stead/fork.json", p->dir, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(forks_in_a_circle_and_without_a_parent_are_refused)
{
	struct place p = place_new();
	struct workspace *ws;

	fork_file(&p, "aa", "{\"parent\":\"bb\",\"revision\":0}");
	fork_file(&p, "bb", "{\"parent\":\"aa\",\"revision\":0}");
	fork_file(&p, "orphan", "{\"parent\":\"gone\",\"revision\":0}");
	fork_file(&p, "broken", "{\"parent\":7}");
	CHECK_ERR(try_open(&p, "aa", "", "", &ws), p.err, ERR_INVALID);
	CHECK_ERR(try_open(&p, "orphan", "", "", &ws), p.err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(p.err.msg), STR("\"orphan\" is a fork of \"gone\""));
	CHECK_ERR(try_open(&p, "broken", "", "", &ws), p.err, ERR_CORRUPT);
}

TEST(forks_of_forks_end_at_the_ceiling)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout");
	struct jv *made;
	char name[16] = "scout";

	put(&p, ws, "a.md", "deep\n");
	for (int i = 0; i < FORK_DEPTH_MAX; i++) {
		snprintf(name, sizeof name, "f%d", i);
		ws = fork_now(&p, ws, name);
	}
	CHECK_STR(get(&p, ws, "a.md"), STR("deep\n"));
	CHECK_ERR(fork_create(ws, &p.ctx, STR("toodeep"), FORK_AT_HEAD, &made, &p.err), p.err, ERR_INVALID);
}

TEST(list_and_doctor_tell_of_forks)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout");
	struct jv *list, *checks;
	bool told = false;

	fork_now(&p, ws, "try");
	CHECK_OK(workspace_list(&p.ctx, str_of(p.url), &list, &p.err), p.err);
	CHECK_STR(jv_get_str(jv_at(list, 1), "fork_of"), STR("scout"));
	CHECK(!jv_get(jv_at(list, 1), "problem"));
	CHECK_OK(workspace_doctor(&p.ctx, str_of(p.url), STR("try"), &checks, &p.err), p.err);
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		CHECK(jv_get_bool(m->value, "ok", false));
		told |= str_is(jv_get_str(m->value, "check"), "fork");
	}
	CHECK(told);
}

/* --- merging --- */

TEST(a_merge_brings_what_the_fork_made_changed_and_removed)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct jv *report;

	put(&p, ws, "a.md", "1\n2\n3\n4\n5\n");
	put(&p, ws, "gone.md", "x\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "1\n2\n3\n4\nfive\n");
	put(&p, fork, "new.md", "new\n");
	drop(&p, fork, "gone.md");
	put(&p, ws, "a.md", "one\n2\n3\n4\n5\n");
	report = merge(&p, ws, "try");
	CHECK_INT(jv_count(jv_get(report, "merged")), 3);
	CHECK_STR(get(&p, ws, "a.md"), STR("one\n2\n3\n4\nfive\n"));
	CHECK_STR(tree(&p, workspace_files(ws), 10), STR("a.md\nnew.md\n"));
}

TEST(a_second_merge_brings_only_what_is_new)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	uint64_t before;

	put(&p, ws, "a.md", "1\n2\n3\n4\n5\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "1\n2\nthree\n4\n5\n");
	merge(&p, ws, "try");
	put(&p, ws, "a.md", "1\n2\n3 again\n4\n5\n"); /* the parent thinks otherwise */
	before = head(&p, ws);
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 0);
	CHECK_INT(head(&p, ws), before);
	put(&p, fork, "a.md", "1\n2\nthree\n4\nfive\n");
	merge(&p, ws, "try");
	CHECK_STR(get(&p, ws, "a.md"), STR("1\n2\n3 again\n4\nfive\n"));
}

TEST(with_a_conflict_nothing_is_merged)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try")};
	struct jv *report = NULL;
	const struct jv *conflict;

	put(&p, ws, "a.md", "a\n");
	fork = fork_now(&p, ws, "try");
	put(&p, ws, "a.md", "ours\n");
	put(&p, fork, "a.md", "theirs\n");
	put(&p, fork, "new.md", "new\n");
	CHECK_ERR(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err, ERR_CONFLICT);
	conflict = jv_at(jv_get(report, "conflicts"), 0);
	CHECK_STR(jv_get_str(conflict, "text"),
		  STR("<<<<<<< scout\nours\n||||||| base\na\n=======\ntheirs\n>>>>>>> try\n"));
	CHECK(jv_get_int(jv_get(conflict, "theirs"), "revision", 0) >= 2);
	CHECK_STR(tree(&p, workspace_files(ws), 10), STR("a.md\n"));
	CHECK_STR(get(&p, ws, "a.md"), STR("ours\n"));
}

TEST(a_partial_merge_leaves_the_conflicts_for_the_next)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try"), .partial = true};
	struct jv *report;

	put(&p, ws, "a.md", "a\n");
	fork = fork_now(&p, ws, "try");
	put(&p, ws, "a.md", "ours\n");
	put(&p, fork, "a.md", "theirs\n");
	put(&p, fork, "new.md", "new\n");
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_STR(get(&p, ws, "new.md"), STR("new\n"));
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_INT(jv_count(jv_get(report, "conflicts")), 1);
	put(&p, ws, "a.md", "a\n"); /* the parent's change is undone, so the conflict is gone */
	merge(&p, ws, "try");
	CHECK_STR(get(&p, ws, "a.md"), STR("theirs\n"));
}

TEST(a_conflict_is_settled_by_preferring_a_side)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try"), .prefer = MERGE_OURS};
	struct jv *report;

	put(&p, ws, "a.md", "a\n");
	fork = fork_now(&p, ws, "try");
	put(&p, ws, "a.md", "ours and theirs\n"); /* resolved by hand */
	put(&p, fork, "a.md", "theirs\n");
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_STR(get(&p, ws, "a.md"), STR("ours and theirs\n"));
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 0);
	put(&p, fork, "a.md", "theirs again\n");
	req.prefer = MERGE_THEIRS;
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_STR(get(&p, ws, "a.md"), STR("theirs again\n"));
}

TEST(a_removed_and_a_changed_file_are_a_conflict)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try"), .dry_run = true};
	struct jv *report;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "b.md", "b\n");
	fork = fork_now(&p, ws, "try");
	drop(&p, fork, "a.md");
	put(&p, ws, "a.md", "changed\n");
	put(&p, fork, "b.md", "changed\n");
	drop(&p, ws, "b.md");
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_INT(jv_count(jv_get(report, "conflicts")), 2);
	CHECK(jv_is_null(jv_get(jv_at(jv_get(report, "conflicts"), 0), "theirs")));
	CHECK(jv_is_null(jv_get(jv_at(jv_get(report, "conflicts"), 1), "ours")));
}

TEST(binary_files_are_taken_whole_or_are_a_conflict)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try"), .dry_run = true};
	struct jv *report;

	put_bytes(&p, ws, "a.bin", STR("\0a\n"));
	put_bytes(&p, ws, "b.bin", STR("\xFF\n\nb\n"));
	fork = fork_now(&p, ws, "try");
	put_bytes(&p, fork, "a.bin", STR("\0A\n"));
	put_bytes(&p, fork, "b.bin", STR("\xFF\n\nB\n"));
	put_bytes(&p, ws, "b.bin", STR("\xFE\n\nb\n"));
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_STR(jv_get_str(jv_at(jv_get(report, "merged"), 0), "path"), STR("a.bin"));
	CHECK_STR(jv_get_str(jv_at(jv_get(report, "conflicts"), 0), "path"), STR("b.bin"));
	CHECK(!jv_get(jv_at(jv_get(report, "conflicts"), 0), "text"));
}

TEST(a_file_takes_the_place_of_a_directory_and_the_other_way)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;

	put(&p, ws, "x", "file\n");
	put(&p, ws, "y/in", "in a directory\n");
	fork = fork_now(&p, ws, "try");
	drop(&p, fork, "x");
	put(&p, fork, "x/in", "now a directory\n");
	drop(&p, fork, "y");
	put(&p, fork, "y", "now a file\n");
	merge(&p, ws, "try");
	CHECK_STR(get(&p, ws, "x/in"), STR("now a directory\n"));
	CHECK_STR(get(&p, ws, "y"), STR("now a file\n"));
}

TEST(a_file_where_the_parent_has_made_a_directory_is_a_conflict)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork = fork_now(&p, ws, "try");
	struct merge_req req = {.name = STR("try"), .partial = true};
	struct jv *report;

	put(&p, fork, "x", "file\n");
	put(&p, fork, "y/in", "in\n");
	put(&p, ws, "x/in", "in\n");
	put(&p, ws, "y", "file\n");
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_INT(jv_count(jv_get(report, "conflicts")), 2);
	CHECK_STR(tree(&p, workspace_files(ws), 10), STR("x/in\ny\n"));
}

TEST(a_dry_run_changes_nothing)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct merge_req req = {.name = STR("try"), .dry_run = true};
	struct jv *report;
	uint64_t before;

	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "a\n");
	before = head(&p, ws);
	CHECK_OK(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err);
	CHECK_INT(jv_count(jv_get(report, "merged")), 1);
	CHECK_INT(head(&p, ws), before);
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 1);
}

TEST(undo_takes_a_merge_back_as_a_whole)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct undo_req last = {0};
	struct jv *report;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "gone.md", "x\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "b\n");
	put(&p, fork, "new.md", "n\n");
	drop(&p, fork, "gone.md");
	merge(&p, ws, "try");
	CHECK_OK(history_undo(ws, &p.ctx, &last, &report, &p.err), p.err);
	CHECK_STR(tree(&p, workspace_files(ws), 10), STR("a.md\ngone.md\n"));
	CHECK_STR(get(&p, ws, "a.md"), STR("a\n"));
}

TEST(a_merge_that_was_cut_off_is_taken_up_and_not_made_twice)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	struct ctx cut = p.ctx;

	put(&p, ws, "a.md", "a\n");
	put(&p, ws, "b.md", "b\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "a.md", "A\n");
	put(&p, fork, "b.md", "B\n");
	/* what a killed merge leaves: the intent, and the first of its two changes; then the parent goes on */
	fork_file(&p, "try", "{\"parent\":\"scout\",\"revision\":2,\"merging\":{\"until\":2,\"call\":\"merge-cut\"}}");
	cut.actor.call_id = STR("merge-cut");
	CHECK_OK(store_write(workspace_files(ws), &cut, at("a.md"), STR("A\n"), (struct store_cond){0}, NULL, &p.err),
		 p.err);
	put(&p, ws, "a.md", "ours, later\n");
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 1);
	CHECK_STR(get(&p, ws, "a.md"), STR("ours, later\n"));
	CHECK_STR(get(&p, ws, "b.md"), STR("B\n"));
}

TEST(what_another_program_put_into_the_fork_is_merged_too)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork;
	char path[128];
	FILE *f;

	put(&p, ws, "a.md", "a\n");
	fork = fork_now(&p, ws, "try");
	put(&p, fork, "b.md", "b\n");
	snprintf(path, sizeof path, "%s/try/files/a.md", p.dir);
	f = fopen(path, "w");
	CHECK(f && fputs("by an editor\n", f) >= 0 && fclose(f) == 0);
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 2);
	CHECK_STR(get(&p, ws, "a.md"), STR("by an editor\n"));
	CHECK_INT(jv_count(jv_get(merge(&p, ws, "try"), "merged")), 0);
}

TEST(only_the_tool_root_is_merged_and_the_rest_waits)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *whole = NULL, *fork = NULL;
	struct jv *report;

	fork_now(&p, ws, "try");
	CHECK_OK(try_open(&p, "try", "", "workspace", &fork), p.err);
	put(&p, fork, "notes/n.md", "note\n");
	put(&p, fork, "files/f.md", "file\n");
	report = merge(&p, ws, "try");
	CHECK_INT(jv_get_int(report, "left", 0), 1);
	CHECK_OK(try_open(&p, "scout", "", "workspace", &whole), p.err);
	CHECK(!get(&p, whole, "notes/n.md").ptr);
	CHECK_INT(jv_count(jv_get(merge(&p, whole, "try"), "merged")), 1);
	CHECK_STR(get(&p, whole, "notes/n.md"), STR("note\n"));
}

TEST(only_a_fork_of_this_workspace_is_merged)
{
	struct place p = place_new();
	struct workspace *ws = open_ws(&p, "scout"), *fork = fork_now(&p, ws, "try");
	struct merge_req req = {.name = STR("deeper")};
	struct jv *report;

	fork_now(&p, fork, "deeper");
	CHECK_ERR(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err, ERR_INVALID);
	req.name = STR("scout");
	CHECK_ERR(fork_merge(fork, &p.ctx, &req, &report, &p.err), p.err, ERR_INVALID);
	req.name = STR("nobody");
	CHECK_ERR(fork_merge(ws, &p.ctx, &req, &report, &p.err), p.err, ERR_NOT_FOUND);
}

/* --- generated histories against a model --- */

#define FILES  10
#define SPACES 5

static const char *const paths[FILES] = {"a.md",     "b.md",    "d/c.md",      "d/e/f.md", "crlf.txt",
					 "data.bin", "open.md", "\xC3\xBC.md", "z/1",      "z/2"};

/* A workspace as it should be. Contents are in the test's arena; ptr NULL: absent. */
struct model {
	struct workspace *ws;
	char name[8];
	int parent; /* -1: none */
	struct str now[FILES];
	struct str base[FILES]; /* of the next merge: the fork when the path was last settled */
};

struct world {
	struct place p;
	struct model spaces[SPACES];
	int count;
	uint64_t seed;
	unsigned serial, merges, conflicts, undone;
};

static unsigned pick(struct world *w, unsigned n)
{
	w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(w->seed >> 33) % n;
}

/* `old` with some lines changed, or something new. */
static struct str next_content(struct world *w, int file, struct str old)
{
	const char *end = file == 4 ? "\r\n" : "\n";
	struct str rest = old, line;
	struct buf b;

	buf_init(&b, w->p.arena, MIB);
	if (file == 5) {
		buf_printf(&b, "bytes %u", w->serial++);
		buf_add(&b, STR("\0\xFF"));
		return buf_str(&b);
	}
	if (!old.len)
		for (int i = 0; i < 12; i++)
			buf_printf(&b, "line %d of %s \xC3\xA9 %u%s", i, paths[file], w->serial++, end);
	while (str_cut(&rest, '\n', &line)) {
		unsigned what = pick(w, 14);

		if (!rest.len && !line.len)
			break;
		if (what == 0)
			continue;
		if (what == 1)
			buf_printf(&b, "changed %u%s", w->serial++, end);
		else
			buf_add(&b, line), buf_char(&b, '\n');
		if (what == 2)
			buf_printf(&b, "added %u%s", w->serial++, end);
	}
	if (file == 6 && b.len && pick(w, 2))
		b.len--; /* no line end at the end */
	return b.len ? buf_str(&b) : STR("");
}

static void step_change(struct world *w, struct model *m)
{
	int file = (int)pick(w, FILES);

	m->now[file] = next_content(w, file, m->now[file].ptr ? m->now[file] : STR(""));
	put_bytes(&w->p, m->ws, paths[file], m->now[file]);
}

static void step_remove(struct world *w, struct model *m)
{
	int file = (int)pick(w, FILES);

	if (!m->now[file].ptr)
		return;
	drop(&w->p, m->ws, paths[file]);
	m->now[file] = STR_NONE;
}

static void step_move(struct world *w, struct model *m)
{
	int from = (int)pick(w, FILES), to = (int)pick(w, FILES);

	if (!m->now[from].ptr || from == to)
		return;
	CHECK_OK(store_move(workspace_files(m->ws), &w->p.ctx, at(paths[from]), at(paths[to]), (struct store_cond){0},
			    (struct store_cond){0}, NULL, &w->p.err),
		 w->p.err);
	m->now[to] = m->now[from];
	m->now[from] = STR_NONE;
}

static void step_fork(struct world *w, int parent)
{
	struct model *m = &w->spaces[w->count];

	if (w->count == SPACES)
		return;
	*m = w->spaces[parent];
	snprintf(m->name, sizeof m->name, "fork%d", w->count);
	m->ws = fork_now(&w->p, w->spaces[parent].ws, m->name);
	m->parent = parent;
	memcpy(m->base, m->now, sizeof m->base);
	w->count++;
}

static bool same(struct str a, struct str b)
{
	return (a.ptr != NULL) == (b.ptr != NULL) && str_eq(a, b);
}

static bool is_text(struct str s)
{
	return !s.len || (utf8_valid(s) && !memchr(s.ptr, 0, s.len));
}

/* What a merge should make of one path; false: a conflict. */
static bool expect(struct world *w, const struct model *fork, const struct model *parent, int i, struct str *ret)
{
	struct merge_labels labels = {str_of(parent->name), STR("base"), str_of(fork->name)};
	struct str base = fork->base[i], ours = parent->now[i], theirs = fork->now[i];
	struct buf b;

	*ret = ours;
	if (same(base, theirs) || same(ours, theirs))
		return true;
	*ret = theirs;
	if (same(base, ours))
		return true;
	*ret = ours;
	if (!ours.ptr || !theirs.ptr || !is_text(ours) || !is_text(theirs) || !is_text(base))
		return false;
	buf_init(&b, w->p.arena, MIB);
	if (merge_lines(w->p.arena, base.ptr ? base : STR(""), ours, theirs, &labels, &b))
		return false;
	*ret = b.len ? buf_str(&b) : STR("");
	return true;
}

static void step_merge(struct world *w, struct model *fork)
{
	struct model *parent = fork->parent >= 0 ? &w->spaces[fork->parent] : NULL;
	struct merge_req req = {.name = str_of(fork->name), .partial = pick(w, 2)};
	struct str wanted[FILES], before[FILES];
	struct jv *report = NULL;
	unsigned conflicts = 0;
	int r;

	if (!parent)
		return;
	memcpy(before, parent->now, sizeof before);
	for (int i = 0; i < FILES; i++)
		conflicts += !expect(w, fork, parent, i, &wanted[i]);
	r = fork_merge(parent->ws, &w->p.ctx, &req, &report, &w->p.err);
	if (r && !(r == -ERR_CONFLICT && conflicts && !req.partial))
		TEST_FAIL("%s", w->p.err.msg);
	CHECK_INT(jv_count(jv_get(report, "conflicts")), conflicts);
	w->merges++;
	w->conflicts += conflicts > 0;
	if (conflicts && !req.partial)
		return;
	for (int i = 0; i < FILES; i++) {
		struct str unused;

		if (expect(w, fork, parent, i, &unused))
			fork->base[i] = fork->now[i];
	}
	memcpy(parent->now, wanted, sizeof wanted);
	if (jv_count(jv_get(report, "merged")) && pick(w, 4) == 0) {
		struct undo_req undo = {.call_id = jv_get_str(report, "call")};

		CHECK_OK(history_undo(parent->ws, &w->p.ctx, &undo, &report, &w->p.err), w->p.err);
		memcpy(parent->now, before, sizeof before);
		w->undone++;
	}
}

static void check_space(struct world *w, const struct model *m)
{
	unsigned there = 0;
	struct str all;

	for (int i = 0; i < FILES; i++) {
		struct str got = get(&w->p, m->ws, paths[i]);

		there += m->now[i].ptr != NULL;
		if (!same(got, m->now[i]))
			TEST_FAIL("%s of %s is\n%.*s\nexpected\n%.*s", paths[i], m->name, STR_ARG(got),
				  STR_ARG(m->now[i]));
	}
	all = tree(&w->p, workspace_files(m->ws), 1 + pick(w, 4));
	for (size_t i = 0; i < all.len; i++)
		there -= all.ptr[i] == '\n';
	CHECK_INT(there, 0);
}

static void run_world(struct world *w, uint64_t seed, unsigned steps)
{
	w->seed = seed;
	w->count = 1;
	w->spaces[0] = (struct model){.name = "scout", .parent = -1};
	w->spaces[0].ws = open_ws(&w->p, "scout");
	for (unsigned i = 0; i < steps; i++) {
		struct model *m = &w->spaces[pick(w, (unsigned)w->count)];
		unsigned what = pick(w, 20);

		if (what < 11)
			step_change(w, m);
		else if (what < 13)
			step_remove(w, m);
		else if (what < 15)
			step_move(w, m);
		else if (what < 16)
			step_fork(w, (int)(m - w->spaces));
		else
			step_merge(w, m);
		if (i % 4 == 0 || i + 1 == steps)
			for (int k = 0; k < w->count; k++)
				check_space(w, &w->spaces[k]);
	}
}

TEST(generated_forks_edits_and_merges_are_as_the_model_says)
{
	const char *seeds = getenv("STEAD_FORK_SEEDS");
	unsigned merges = 0, conflicts = 0, undone = 0;

	for (uint64_t seed = 1; seed <= (seeds ? strtoull(seeds, NULL, 10) : 15); seed++) {
		struct world w = {.p = place_new()};

		run_world(&w, seed, 80);
		merges += w.merges;
		conflicts += w.conflicts;
		undone += w.undone;
	}
	printf("# %u merges, %u with conflicts, %u undone\n", merges, conflicts, undone);
	CHECK(merges > 50 && conflicts > 10 && undone > 3);
}
