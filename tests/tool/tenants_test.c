/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of one workspace attack each other through every tool that there is, with arguments made from each tool's own
 * schema: a tool that is added later is attacked too. What one wrote, anywhere, never shows in what another reads.
 *
 * STEAD_TENANTS and STEAD_ATTEMPTS set the numbers; the default is a short run.
 */
#include <sys/resource.h>

#include "base/clock.h"
#include "tool/tool_fix.h"
#include "workspace/workspace.h"

struct tenant {
	struct workspace *ws;
	struct toolset *set;
	char user[48];
};

struct field {
	struct workspace *ws; /* opened once, for nobody */
	struct toolset *set;
	struct tenant *tenants;
	size_t count;
	uint64_t seed, answered, leaks;
	const struct tenant *self;
	bool reads_only;
};

/* Every word that a tenant writes has its number between these; no tenant ever writes another's. */
#define MARK_BEGIN "qz"
#define MARK_END   "zq"

static uint64_t roll(struct field *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

static const char *pick(struct field *f, const char *const *words, size_t n)
{
	return words[roll(f) % n];
}

static struct str own_mark(struct arena *arena, struct field *f)
{
	return arena_printf(arena, MARK_BEGIN "%zu" MARK_END, (size_t)(f->self - f->tenants));
}

/* A place or a name: one's own, another's, or a way out. */
static struct str some_name(struct arena *arena, struct field *f)
{
	static const char *const names[] = {"a.md",
					    "notes/a.md",
					    "001-secret",
					    "secret",
					    "MEMORY.md",
					    "TASKS.yaml",
					    "memory/x.md",
					    "skills/s/SKILL.md",
					    "s1",
					    "agents/a",
					    "plans/PLAN.md",
					    "WORKSPACE.md",
					    ".stead/rev",
					    "users",
					    "",
					    ".",
					    "1",
					    "head",
					    "uploads",
					    "knowledge",
					    "subagents/x",
					    "research",
					    "001",
					    "default",
					    "memory",
					    "overwrite",
					    "create",
					    "pending",
					    "utf-8",
					    "finding"};
	static const char *const ways[] = {"../%s",      "../../users/%s", "users/%s", "/%s",
					   "%s/../../x", "..%%2f%s",       "%s/*"};
	const char *name = pick(f, names, sizeof(names) / sizeof(names[0]));
	const struct tenant *other = &f->tenants[roll(f) % f->count];
	char text[300];

	if (roll(f) % 4 == 0)
		return own_mark(arena, f);
	if (roll(f) % 5 == 0)
		name = arena_printf(arena, "%s/%s", other->user, name).ptr;
	if (roll(f) % 3)
		return str_of(name);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), pick(f, ways, sizeof(ways) / sizeof(ways[0])), name);
#pragma GCC diagnostic pop
	return arena_str(arena, str_of(text));
}

/* A value that fits the schema most of the time. */
static struct jv *some_value(struct arena *arena, struct field *f, const struct jv *schema, int depth)
{
	struct str type = jv_get_str(schema, "type");
	const struct jv *words = jv_get(schema, "enum"), *choice = jv_get(schema, "anyOf");
	struct jv *v;

	if (choice && jv_count(choice))
		return some_value(arena, f, jv_at(choice, roll(f) % jv_count(choice)), depth + 1);
	if (words && jv_count(words))
		return jv_copy(arena, jv_at(words, roll(f) % jv_count(words)));
	if (str_is(type, "integer"))
		return jv_int(arena, (int64_t)(roll(f) % 4 + 1));
	if (str_is(type, "boolean"))
		return jv_bool(arena, roll(f) % 2);
	if (str_is(type, "array")) {
		v = jv_array(arena);
		for (size_t n = roll(f) % 2 + 1; n && depth < 4; n--)
			jv_push(arena, v, some_value(arena, f, jv_get(schema, "items"), depth + 1));
		return v;
	}
	if (str_is(type, "object")) {
		const struct jv *properties = jv_get(schema, "properties");

		v = jv_object(arena);
		for (const struct jv_member *m = jv_first(properties); m && depth < 4; m = m->next)
			if (roll(f) % 3 || depth)
				jv_set_key(arena, v, m->key, some_value(arena, f, m->value, depth + 1));
		return v;
	}
	return jv_str(arena, some_name(arena, f));
}

/* True when the text has a mark that is not the tenant's own. */
static bool has_foreign(struct field *f, struct str text)
{
	size_t at = 0;

	while ((at = str_find(text, STR(MARK_BEGIN), at)) != SIZE_MAX) {
		size_t number = 0, digits = 0;

		for (at += 2; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++, digits++)
			number = number * 10 + (size_t)(text.ptr[at] - '0');
		if (digits && str_starts(str_from(text, at), STR(MARK_END)) && number != (size_t)(f->self - f->tenants))
			return true;
	}
	return false;
}

static void attack_once(struct field *f, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	const struct tool_info *info;
	struct tool_result result;
	struct err err = {0};
	struct jv *args = jv_object(arena);
	struct buf json;

	f->self = &f->tenants[roll(f) % f->count];
	info = toolset_at(f->self->set, roll(f) % toolset_count(f->self->set));
	if (str_is(info->name, "fork") || str_is(info->name, "merge"))
		return; /* they open other workspaces for the user */
	for (const struct jv_member *m = jv_first(jv_get(info->input_schema, "properties")); m; m = m->next) {
		bool must = false;

		for (const struct jv_member *q = jv_first(jv_get(info->input_schema, "required")); q; q = q->next)
			must = must || str_eq(jv_str_of(q->value), m->key);
		if (must || roll(f) % 3 == 0)
			jv_set_key(arena, args, m->key, some_value(arena, f, m->value, 0));
	}
	CHECK_OK(toolset_call(f->self->set, &ctx, info->name, args, &result, &err), err);
	f->answered += !result.is_error;
	buf_init(&json, arena, 64 << 20);
	if (result.value)
		jv_write(&json, result.value);
	if (!has_foreign(f, result.text) && !has_foreign(f, buf_str(&json)))
		return;
	f->leaks++;
	buf_clear(&json);
	jv_write(&json, args);
	printf("# %s saw another's with %.*s %.*s: %.*s\n", f->self->user, STR_ARG(info->name), STR_ARG(buf_str(&json)),
	       STR_ARG(str_first(result.text, 500)));
}

static void write_own(struct field *f, struct arena *arena, const char *tool, const char *key, const char *where)
{
	struct ctx ctx = {.arena = arena};
	struct tool_result result;
	struct err err = {0};
	struct jv *args = jv_object(arena);

	jv_set_str(arena, args, "content", own_mark(arena, f));
	if (key)
		jv_set_str(arena, args, key, str_of(where));
	if (toolset_find(f->self->set, str_of(tool)))
		CHECK_OK(toolset_call(f->self->set, &ctx, str_of(tool), args, &result, &err), err);
}

static void open_workspace(struct field *f, const char *url)
{
	struct workspace_opts opts = {.store_url = str_of(url), .name = STR("test"), .create = true, .relaxed = true};
	struct err err = {0};

	CHECK_OK(workspace_open(&opts, &f->ws, &err), err);
	CHECK_OK(toolset_new(f->ws, STR("native"), &f->set, &err), err);
}

static void open_tenant(struct field *f, size_t i)
{
	static const char *const odd[] = {"a/b", "a_b", "A_B", "..", "users", "notes", "a%2fb", "a~2fb"};
	struct tenant *t = &f->tenants[i];
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err = {0};

	if (i < sizeof(odd) / sizeof(odd[0]))
		snprintf(t->user, sizeof(t->user), "%s", odd[i]);
	else
		snprintf(t->user, sizeof(t->user), "user%zu", i);
	CHECK_OK(workspace_open_for(f->ws, str_of(t->user), STR("a"), STR_NONE, &t->ws, &err), err);
	t->set = toolset_for(f->set, t->ws);
	f->self = t;
	write_own(f, arena, "write_file", "path", "a.md");
	write_own(f, arena, "note", "title", "secret");
	write_own(f, arena, "memory_save", NULL, NULL);
}

static size_t number(const char *name, size_t fallback)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : fallback;
}

TEST(nothing_of_one_tenant_shows_in_what_another_reads_by_any_tool)
{
	struct field f = {.count = number("STEAD_TENANTS", 30),
			  .seed = number("STEAD_TEST_SEED", random_u64() % 1000000 + 1)};
	size_t attempts = number("STEAD_ATTEMPTS", 3000), tools;
	char url[300];
	struct arena *arena = arena_new();
	struct rusage usage;

	printf("# seed %llu\n", (unsigned long long)f.seed);
	f.seed = f.seed * 0x9e3779b97f4a7c15ULL | 1;
	snprintf(url, sizeof(url), "disk:%s", temp_dir_new());
	f.tenants = xcalloc(f.count, sizeof(*f.tenants));
	open_workspace(&f, url);
	for (size_t i = 0; i < f.count; i++)
		open_tenant(&f, i);
	getrusage(RUSAGE_SELF, &usage);
	tools = toolset_count(f.tenants[0].set);
	for (size_t i = 0; i < attempts; i++) {
		attack_once(&f, arena);
		arena_reset(arena);
	}
	printf("# %zu tenants (%ld KiB when all were open), %zu tools, %zu attempts, %llu answered\n", f.count,
	       usage.ru_maxrss, tools, attempts, (unsigned long long)f.answered);
	CHECK_INT(f.leaks, 0);
	CHECK(f.answered > attempts / 10);
	for (size_t i = 0; i < f.count; i++) {
		toolset_destroy(f.tenants[i].set);
		workspace_close(f.tenants[i].ws);
	}
	toolset_destroy(f.set);
	workspace_close(f.ws);
	free(f.tenants);
	arena_destroy(arena);
}
