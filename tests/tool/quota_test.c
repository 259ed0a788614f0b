/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits hold whatever is used to reach them: random calls of every tool that changes something, by several users,
 * until nothing more fits. The files of all families count, and so does what history keeps of their earlier contents;
 * both are measured here from what is stored, not from what Stead counts. What was accepted stays readable.
 */
#include <ftw.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "tool/dialect.h"
#include "tool/tool_fix.h"
#include "workspace/workspace_parts.h"

#define USERS 3
#define FILES 8

struct crowd {
	struct arena *arena;
	struct workspace *ws[USERS]; /* the first is nobody's: the shared workspace */
	struct toolset *set[USERS];
	uint64_t seed, calls, accepted, refused;
	uint32_t sums[USERS][FILES]; /* of the files that write_file wrote; 0: not known */
	const char *dir;
};

/* What history has of the changes below `dir`, in addition to the files. */
struct measured {
	const char *dir;
	uint64_t past, seen;
};

static uint64_t roll(struct crowd *c)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return c->seed;
}

static void crowd_open(struct crowd *c, const char *yaml)
{
	static const char *const names[USERS] = {"", "ann", "bob"};
	const char *dir = temp_dir_new();
	struct workspace_opts opts = {.name = STR("test"), .create = true, .relaxed = true, .agent = STR("bot")};
	struct err err = {0};
	char path[300];
	FILE *f;

	*c = (struct crowd){.arena = arena_new(), .seed = (random_u64() % 1000000 + 1) * 0x9e3779b97f4a7c15ULL | 1};
	test_defer(arena_destroy, c->arena);
	printf("# seed %llu\n", (unsigned long long)c->seed);
	snprintf(path, sizeof path, "%s/test", dir);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/test/agent.yaml", dir);
	CHECK((f = fopen(path, "we")) != NULL);
	fputs(yaml, f);
	fclose(f);
	opts.store_url = arena_printf(c->arena, "disk:%s", dir);
	c->dir = arena_cstr(c->arena, str_of(dir));
	CHECK_OK(workspace_open(&opts, &c->ws[0], &err), err);
	test_defer(workspace_close, c->ws[0]);
	for (size_t i = 1; i < USERS; i++) {
		CHECK_OK(workspace_open_for(c->ws[0], str_of(names[i]), STR("bot"), STR_NONE, &c->ws[i], &err), err);
		test_defer(workspace_close, c->ws[i]);
	}
	for (size_t i = 0; i < USERS; i++) {
		CHECK_OK(toolset_new(c->ws[i], STR("native"), &c->set[i], &err), err);
		test_defer(toolset_destroy, c->set[i]);
	}
}

static struct str some_text(struct crowd *c, struct arena *arena, size_t max)
{
	size_t len = roll(c) % max + 1;
	char *text = arena_alloc(arena, len + 1);

	for (size_t i = 0; i < len; i++)
		text[i] = i % 9 == 8 ? ' ' : (char)('a' + roll(c) % 26);
	return str_n(text, len);
}

static struct jv *some_value(struct crowd *c, struct arena *arena, const struct jv *schema, int depth)
{
	struct str type = jv_get_str(schema, "type");
	const struct jv *words = jv_get(schema, "enum"), *choice = jv_get(schema, "anyOf");
	struct jv *v;

	if (jv_count(choice))
		return some_value(c, arena, jv_at(choice, roll(c) % jv_count(choice)), depth + 1);
	if (jv_count(words))
		return jv_copy(arena, jv_at(words, roll(c) % jv_count(words)));
	if (str_is(type, "integer") || str_is(type, "number"))
		return jv_int(arena, (int64_t)(roll(c) % 3 + 1));
	if (str_is(type, "boolean"))
		return jv_bool(arena, roll(c) % 2);
	if (str_is(type, "array")) {
		v = jv_array(arena);
		if (depth < 4)
			jv_push(arena, v, some_value(c, arena, jv_get(schema, "items"), depth + 1));
		return v;
	}
	if (str_is(type, "object")) {
		v = jv_object(arena);
		for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m && depth < 4; m = m->next)
			jv_set_key(arena, v, m->key, some_value(c, arena, m->value, depth + 1));
		return v;
	}
	if (roll(c) % 2)
		return jv_str(arena, some_text(c, arena, 3000));
	return jv_str(arena, arena_printf(arena, "%c.txt", (char)('p' + roll(c) % 6)));
}

static void count_result(struct crowd *c, const struct tool_result *result)
{
	c->calls++;
	c->accepted += !result->is_error;
	c->refused += result->is_error && result->err.kind == ERR_QUOTA;
}

static void call_any(struct crowd *c, struct arena *arena, size_t who)
{
	const struct tool_info *info = toolset_at(c->set[who], roll(c) % toolset_count(c->set[who]));
	struct ctx ctx = {.arena = arena};
	struct jv *args = jv_object(arena);
	struct tool_result result;
	struct err err = {0};

	if ((info->traits & TOOL_READS_ONLY) || str_is(info->name, "fork") || str_is(info->name, "merge") ||
	    str_is(info->name, "clear_files") || str_is(info->name, "plan_enter"))
		return; /* other workspaces; what takes files away from the others here */
	for (const struct jv_member *m = jv_first(jv_get(info->input_schema, "properties")); m; m = m->next)
		jv_set_key(arena, args, m->key, some_value(c, arena, m->value, 0));
	CHECK_OK(toolset_call(c->set[who], &ctx, info->name, args, &result, &err), err);
	count_result(c, &result);
}

static uint32_t sum_of(struct str text)
{
	uint32_t sum = 2166136261U;

	for (size_t i = 0; i < text.len; i++)
		sum = (sum ^ (unsigned char)text.ptr[i]) * 16777619U;
	return sum | 1;
}

static void write_text(struct crowd *c, struct arena *arena, size_t who, size_t file, struct str text)
{
	struct ctx ctx = {.arena = arena};
	struct jv *args = jv_object(arena);
	struct tool_result result;
	struct err err = {0};

	jv_set_str(arena, args, "path", arena_printf(arena, "known%zu", file));
	jv_set_str(arena, args, "content", text);
	jv_set_str(arena, args, "mode", STR("overwrite"));
	CHECK_OK(toolset_call(c->set[who], &ctx, STR("write_file"), args, &result, &err), err);
	count_result(c, &result);
	if (!result.is_error)
		c->sums[who][file] = sum_of(text);
}

static struct str text_of(struct crowd *c, struct arena *arena, size_t len)
{
	char *text = arena_alloc(arena, len);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + roll(c) % 26);
	return str_n(text, len);
}

/* Every second one has the size of the one before. */
static void write_known(struct crowd *c, struct arena *arena, size_t who)
{
	size_t file = roll(c) % FILES;

	write_text(c, arena, who, file, roll(c) % 2 ? text_of(c, arena, 1000) : some_text(c, arena, 4000));
}

/* The files below `dir`, without Stead's own. */
static void usage_of(struct crowd *c, struct arena *arena, const char *dir, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct ctx ctx = {.arena = arena};
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct err err = {0};

	*ret_bytes = *ret_files = 0;
	do {
		int r = store_list(workspace_shared(c->ws[0]), &ctx, (struct wpath){str_of(dir)}, &req, &page, &err);

		if (r == -ERR_NOT_FOUND)
			return;
		CHECK_OK(r, err);
		for (size_t i = 0; i < page.count; i++)
			if (str_find(page.entries[i].path.s, STR(".stead/"), 0) == SIZE_MAX) {
				*ret_bytes += page.entries[i].stat.size;
				++*ret_files;
			}
		req.after = page.next;
	} while (page.next.ptr);
}

/* Adds what the records say that are new in the log: what was replaced or removed is not in the files now. */
static void measure_past(struct crowd *c, struct arena *arena, struct measured *m)
{
	struct rev_query query = {.since = m->seen, .path = {str_of(m->dir)}};
	struct ctx ctx = {.arena = arena};
	struct revision *list;
	struct err err = {0};
	size_t count;

	CHECK_OK(revisions_query(workspace_shared(c->ws[0]), &ctx, &query, &list, &count, NULL, &err), err);
	for (size_t i = 0; i < count; i++) {
		const struct revision *r = &list[i];
		bool stays = r->op == REV_APPEND || (r->op == REV_MOVE && !r->after.exists);

		m->seen = r->number;
		m->past += stays || !r->before.exists ? 0 : r->before.size;
		m->past += r->op == REV_REMOVE || (stays && r->op == REV_MOVE) ? 0 : REV_RECORD_BYTES;
	}
}

static void check_measured(struct crowd *c, struct arena *arena, struct measured *m, uint64_t bytes_max,
			   uint64_t files_max)
{
	uint64_t bytes, files;

	usage_of(c, arena, m->dir, &bytes, &files);
	measure_past(c, arena, m);
	CHECK(bytes + m->past <= bytes_max);
	CHECK(files <= files_max);
}

static uint64_t host_total;

static int add_host_file(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
	(void)at;
	if (kind == FTW_F && !strstr(path, "/rev/reserve") && !strstr(path, "/rev/index/"))
		host_total += (uint64_t)stat->st_size;
	return 0;
}

/* Everything that the workspace's directory has, in bytes, without the derived index. */
static uint64_t host_bytes(const struct crowd *c)
{
	host_total = 0;
	CHECK(nftw(c->dir, add_host_file, 16, FTW_PHYS) == 0);
	return host_total;
}

static void check_known(struct crowd *c, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct str text;

	for (size_t who = 0; who < USERS; who++)
		for (size_t i = 0; i < FILES; i++) {
			struct wpath path = {arena_printf(arena, "known%zu", i)};

			if (!c->sums[who][i])
				continue;
			CHECK_OK(store_read(workspace_files(c->ws[who]), &ctx, path, STORE_WHOLE, MIB, &text, NULL,
					    &err),
				 err);
			CHECK_INT(sum_of(text), c->sums[who][i]);
		}
}

TEST(no_tool_of_any_family_takes_a_workspace_or_a_user_over_the_limit)
{
	struct measured all = {.dir = ""}, ann = {.dir = "users/ann"};
	struct arena *arena = arena_new();
	struct crowd c;

	crowd_open(&c, "quota: {bytes: 400kB, files: 120, user: {bytes: 120kB, files: 40}}\n");
	for (size_t i = 0; i < 1500; i++) {
		size_t who = roll(&c) % USERS;

		if (roll(&c) % 4 == 0)
			write_known(&c, arena, who);
		else
			call_any(&c, arena, who);
		check_measured(&c, arena, &all, 400000, 120);
		check_measured(&c, arena, &ann, 120000, 40);
		arena_reset(arena);
	}
	check_known(&c, arena);
	printf("# %llu calls, %llu accepted, %llu refused by quota; %llu bytes in all on the disk\n",
	       (unsigned long long)c.calls, (unsigned long long)c.accepted, (unsigned long long)c.refused,
	       (unsigned long long)host_bytes(&c));
	CHECK(host_bytes(&c) <= 2 * 400000); /* what is now is in a file and in the log */
	CHECK(c.refused > 20 && c.accepted > 100);
	arena_destroy(arena);
}

TEST(overwriting_with_the_same_size_ends_at_the_limit)
{
	struct measured all = {.dir = ""};
	struct arena *arena = arena_new();
	struct crowd c;

	crowd_open(&c, "quota: {bytes: 20000}\n");
	for (size_t i = 0; i < 40; i++) {
		write_text(&c, arena, 0, 0, text_of(&c, arena, 1000));
		check_measured(&c, arena, &all, 20000, UINT64_MAX);
		arena_reset(arena);
	}
	CHECK(c.accepted >= 11 && c.accepted <= 13); /* of 1,512 bytes each */
	CHECK_INT(c.accepted + c.refused, 40);
	check_known(&c, arena);
	arena_destroy(arena);
}

TEST(a_content_that_is_present_counts_once)
{
	struct arena *arena = arena_new();
	struct crowd c;

	crowd_open(&c, "quota: {bytes: 20000}\n");
	write_text(&c, arena, 0, 0, text_of(&c, arena, 15000));
	write_text(&c, arena, 0, 1, STR("hi"));
	CHECK_INT(c.accepted, 2);
	arena_destroy(arena);
}

TEST(what_is_in_a_full_workspace_can_be_removed_and_gc_makes_room_for_as_much)
{
	struct rev_retain want = {.limits = {.bytes = 1}, .grace_ns = -1};
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct rev_retained done;
	struct err err = {0};
	struct crowd c;

	crowd_open(&c, "quota: {bytes: 20000}\n");
	write_text(&c, arena, 0, 0, text_of(&c, arena, 19000));
	write_text(&c, arena, 0, 1, text_of(&c, arena, 1000));
	CHECK_INT(c.refused, 1);
	CHECK_OK(store_remove(workspace_files(c.ws[0]), &ctx, (struct wpath){STR("known0")}, false,
			      (struct store_cond){0}, NULL, &err),
		 err);
	c.sums[0][0] = 0;
	write_text(&c, arena, 0, 1, text_of(&c, arena, 1000));
	CHECK_INT(c.refused, 2); /* history keeps it */
	CHECK_OK(revisions_retain(workspace_shared(c.ws[0]), &ctx, &want, &done, &err), err);
	write_text(&c, arena, 0, 1, text_of(&c, arena, 19000));
	CHECK_INT(c.accepted, 2);
	check_known(&c, arena);
	arena_destroy(arena);
}

TEST(a_memory_save_that_does_not_fit_saves_nothing)
{
	struct arena *arena = arena_new();
	uint64_t bytes, files, bytes_then, files_then;
	struct ctx ctx = {.arena = arena};
	struct jv *args = jv_object(arena);
	struct tool_result result;
	struct err err = {0};
	struct crowd c;

	crowd_open(&c, "quota: {bytes: 20000}\n");
	usage_of(&c, arena, "", &bytes, &files);
	jv_set_str(arena, args, "content", text_of(&c, arena, 15000)); /* fits into the ledger, and not into both */
	CHECK_OK(toolset_call(c.set[0], &ctx, STR("memory_save"), args, &result, &err), err);
	CHECK(result.is_error);
	CHECK_INT(result.err.kind, ERR_QUOTA);
	usage_of(&c, arena, "", &bytes_then, &files_then);
	CHECK_INT(bytes_then, bytes);
	CHECK_INT(files_then, files);
	jv_set_str(arena, args, "content", text_of(&c, arena, 5000));
	CHECK_OK(toolset_call(c.set[0], &ctx, STR("memory_save"), args, &result, &err), err);
	CHECK(!result.is_error);
	arena_destroy(arena);
}

TEST(the_history_of_one_user_does_not_keep_another_from_writing)
{
	struct crowd c;
	uint64_t bob;
	struct arena *arena = arena_new();

	crowd_open(&c, "quota: {bytes: 10MB, user: {bytes: 100kB}}\n");
	for (size_t i = 0; i < 300; i++) { /* the files stay small, and what they were adds up */
		write_known(&c, arena, 1);
		arena_reset(arena);
	}
	CHECK(c.refused > 100);
	bob = c.refused;
	write_known(&c, arena, 2);
	CHECK_INT(c.refused, bob);
	arena_destroy(arena);
}
