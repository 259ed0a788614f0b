/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits hold whatever is used to reach them: random calls of every tool that changes something, by several users,
 * until nothing more fits. The files of all families count, and what was accepted stays readable.
 */
#include "base/clock.h"
#include "base/limits.h"
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

static void write_known(struct crowd *c, struct arena *arena, size_t who)
{
	struct ctx ctx = {.arena = arena};
	struct str text = some_text(c, arena, 4000);
	size_t file = roll(c) % FILES;
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
	struct crowd c;
	uint64_t bytes, files, user_bytes, user_files;
	struct arena *arena = arena_new();

	crowd_open(&c, "quota: {bytes: 400kB, files: 120, user: {bytes: 120kB, files: 40}}\n");
	for (size_t i = 0; i < 1500; i++) {
		size_t who = roll(&c) % USERS;

		if (roll(&c) % 4 == 0)
			write_known(&c, arena, who);
		else
			call_any(&c, arena, who);
		usage_of(&c, arena, "", &bytes, &files);
		usage_of(&c, arena, "users/ann", &user_bytes, &user_files);
		CHECK(bytes <= 400000 && files <= 120);
		CHECK(user_bytes <= 120000 && user_files <= 40);
		arena_reset(arena);
	}
	check_known(&c, arena);
	printf("# %llu calls, %llu accepted, %llu refused by quota; %llu bytes in %llu files\n",
	       (unsigned long long)c.calls, (unsigned long long)c.accepted, (unsigned long long)c.refused,
	       (unsigned long long)bytes, (unsigned long long)files);
	CHECK(c.refused > 20 && c.accepted > 100);
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
