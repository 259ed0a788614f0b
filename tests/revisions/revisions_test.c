/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "test.h"

static struct arena *arena;
static struct ctx ctx;
static struct store *inner, *meta, *rev;
static struct err err;
static const struct store_cond any = {0}, absent = {.kind = STORE_ABSENT};

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena, .actor = {.user = STR("ann"), .session = STR("s1"), .call_id = STR("c1")}};
	inner = store_memory_new();
	meta = form_meta(REV_FORM);
	CHECK_OK(store_revisions_open(inner, meta, form_opts(REV_FORM), &ctx, &rev, &err), err);
}

static void tear_down(void)
{
	store_destroy(rev);
	arena_destroy(arena);
}

static struct wpath P(const char *z) {
	return (struct wpath){str_of(z)};
}

static void
put(const char *path, const char *text)
{
	CHECK_OK(store_write(rev, &ctx, P(path), str_of(text), any, NULL, &err), err);
}

static struct str at(const char *path, uint64_t number)
{
	struct store *past = store_at_revision_new(rev, number);
	struct str bytes = STR("(absent)");
	int r = store_read(past, &ctx, P(path), STORE_WHOLE, MIB, &bytes, NULL, &err);

	store_destroy(past);
	if (r && r != -ERR_NOT_FOUND)
		return arena_printf(arena, "(%s)", err.msg);
	return bytes;
}

TEST(every_change_gets_the_next_number_and_says_who)
{
	struct revision *list;
	size_t count;

	set_up();
	put("a", "one");
	put("a", "two");
	CHECK_OK(store_remove(rev, &ctx, P("a"), false, any, NULL, &err), err);
	CHECK_OK(revisions_query(rev, &ctx, &(struct rev_query){.newest_first = true}, &list, &count, NULL, &err), err);
	CHECK_INT(count, 3);
	CHECK_INT(list[0].number, 3);
	CHECK_INT(list[0].op, REV_REMOVE);
	CHECK(!list[0].after.exists && list[0].before.exists);
	CHECK_STR(list[2].actor.user, STR("ann"));
	CHECK_STR(list[1].before.version, list[2].after.version);
	tear_down();
}

TEST(any_file_can_be_read_at_any_revision)
{
	set_up();
	put("a", "one");
	put("a", "two");
	CHECK_OK(store_append(rev, &ctx, P("a"), STR("+more"), any, NULL, &err), err);
	CHECK_OK(store_move(rev, &ctx, P("a"), P("d/b"), any, absent, NULL, &err), err);
	CHECK_OK(store_copy(rev, &ctx, P("d/b"), P("c"), absent, NULL, &err), err);
	CHECK_OK(store_remove(rev, &ctx, P("d"), true, any, NULL, &err), err);
	CHECK_STR(at("a", 0), STR("(absent)"));
	CHECK_STR(at("a", 1), STR("one"));
	CHECK_STR(at("a", 2), STR("two"));
	CHECK_STR(at("a", 3), STR("two+more"));
	CHECK_STR(at("a", 5), STR("(absent)"));
	CHECK_STR(at("d/b", 5), STR("two+more"));
	CHECK_STR(at("c", 6), STR("two+more"));
	CHECK_STR(at("d/b", 7), STR("(absent)"));
	tear_down();
}

/* A number may have been used in vain: for a change that was refused. */
static uint64_t newest(void)
{
	uint64_t head;

	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	return head;
}

TEST(what_was_there_before_the_log_began_is_kept_too)
{
	set_up();
	CHECK_OK(store_write(inner, &ctx, P("old"), STR("ancient"), any, NULL, &err), err);
	put("old", "new");
	CHECK_STR(at("old", 0), STR("ancient"));
	CHECK_STR(at("old", newest()), STR("new"));
	tear_down();
}

TEST(a_change_by_another_program_is_recorded_before_it_is_built_on)
{
	struct revision *list;
	size_t count;

	set_up();
	put("a", "ours");
	CHECK_OK(store_write(inner, &ctx, P("a"), STR("theirs"), any, NULL, &err), err);
	put("a", "ours again");
	CHECK_OK(revisions_query(rev, &ctx, &(struct rev_query){0}, &list, &count, NULL, &err), err);
	CHECK_INT(count, 3);
	CHECK_INT(list[1].op, REV_OUTSIDE);
	CHECK_STR(list[1].actor.user, STR(""));
	CHECK_STR(at("a", 1), STR("ours"));
	CHECK_STR(at("a", list[1].number), STR("theirs"));
	CHECK_STR(at("a", list[2].number), STR("ours again"));
	tear_down();
}

TEST(large_contents_are_blobs_and_equal_ones_are_kept_once)
{
	char *big = malloc(300000);
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;

	set_up();
	memset(big, 'x', 300000);
	CHECK_OK(store_write(rev, &ctx, P("a"), str_n(big, 300000), any, NULL, &err), err);
	CHECK_OK(store_write(rev, &ctx, P("b"), str_n(big, 300000), any, NULL, &err), err);
	put("a", "small");
	CHECK_INT(at("a", 1).len, 300000);
	CHECK_OK(store_list(meta, &ctx, P("blobs"), &req, &page, &err), err);
	CHECK_INT(page.count, 1);
	free(big);
	tear_down();
}

TEST(the_log_is_read_again_at_the_next_start)
{
	struct store *keep_inner, *keep_meta;

	set_up();
	put("a", "one \xFF binary");
	put("a", "two");
	CHECK_OK(revisions_checkpoint(rev, &ctx, STR("before"), 1, &err), err);
	keep_inner = store_share(inner);
	keep_meta = store_share(meta);
	struct store *again;
	struct rev_checkpoint *marks;
	size_t count;

	CHECK_OK(store_revisions_open(keep_inner, keep_meta, form_opts(REV_FORM), &ctx, &again, &err), err);
	struct store *first = rev;
	rev = again;
	CHECK_STR(at("a", 1), STR("one \xFF binary"));
	put("a", "three");
	CHECK_STR(at("a", 2), STR("two"));
	CHECK_OK(revisions_checkpoints(again, &ctx, &marks, &count, &err), err);
	CHECK_INT(count, 1);
	CHECK_STR(marks[0].name, STR("before"));
	store_destroy(again);
	rev = first;
	put("a", "four"); /* the first process goes on, and sees the other's record */
	CHECK_STR(at("a", 3), STR("three"));
	CHECK_STR(at("a", 4), STR("four"));
	tear_down();
}

TEST(conditions_hold_through_the_layer)
{
	struct store_stat stat;

	set_up();
	CHECK_OK(store_write(rev, &ctx, P("a"), STR("1"), absent, &stat, &err), err);
	CHECK_ERR(store_write(rev, &ctx, P("a"), STR("2"), absent, NULL, &err), err, ERR_EXISTS);
	put("a", "2");
	CHECK_ERR(store_write(rev, &ctx, P("a"), STR("3"),
			      (struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL, &err),
		  err, ERR_CONFLICT);
	CHECK_STR(at("a", 2), STR("2"));
	tear_down();
}
