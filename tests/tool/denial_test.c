/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A denial holds by meaning: with any tool's name denied, in any dialect, no tool that is left does the same. The names
 * come from the tables, and what is left is tried with arguments made from each tool's schema.
 */
#include "tool/attempts.h"

#define SECRET "the combination is 4711"

static void deny(struct trial *t, const char *dialect, const char *name)
{
	struct workspace_opts opts = {
		.store_url = STR("memory:"), .name = STR("test"), .create = true, .relaxed = true};
	struct err err = {0};
	struct jv *list;

	bench_init(&t->b);
	opts.root = dialect_root(str_of(dialect));
	t->root = opts.root.len ? arena_cstr(t->b.arena, opts.root) : "files";
	CHECK_OK(workspace_open(&opts, &t->b.ws, &err), err);
	test_defer(workspace_close, t->b.ws);
	list = jv_array(t->b.arena);
	jv_push(t->b.arena, list, jv_str(t->b.arena, str_of(name)));
	((struct config *)workspace_config(t->b.ws))->tools_deny = list;
	CHECK_OK(toolset_new(t->b.ws, str_of(dialect), &t->b.set, &err), err);
	test_defer(toolset_destroy, t->b.set);
}

/* --- by name --- */

TEST(a_denied_name_is_gone_in_every_dialect_and_so_is_the_native_tool_it_acts_as)
{
	const struct dialect *from, *in;
	size_t denied = 0;

	for (size_t i = 0; (from = dialect_at(i)); i++)
		for (struct tool_walk w = {.dialect = from}; tool_next(&w);)
			for (size_t k = 0; (in = dialect_at(k)); k++) {
				struct trial t = {0};
				struct str powers = str_of(w.tool->acts_as), power;

				deny(&t, in->name, w.tool->name);
				if (toolset_find(t.b.set, str_of(w.tool->name)))
					TEST_FAIL("%s is denied and offered in %s", w.tool->name, in->name);
				while (k == 0 && !w.family && powers.len && str_cut(&powers, ' ', &power))
					if (toolset_find(t.b.set, power))
						TEST_FAIL("%s of %s is denied and %.*s is offered", w.tool->name,
							  from->name, STR_ARG(power));
				bench_close(&t.b);
				denied++;
			}
	printf("# %zu denials\n", denied);
	CHECK(denied > 500);
}

TEST(openpaws_group_of_the_shell_means_the_same_as_the_shell)
{
	static const char *const names[] = {"shell", "group:system", "ls"}, *const tools[] = {"execute", "start_job",
											      "run_code"};

	for (size_t i = 0; i < COUNT(names); i++) {
		bool is_denied = !str_is(str_of(names[i]), "ls");
		struct trial t = {0};

		deny(&t, "native", names[i]);
		for (size_t k = 0; k < COUNT(tools); k++)
			if ((toolset_find(t.b.set, str_of(tools[k])) == NULL) != is_denied)
				TEST_FAIL("%s is denied, and %s", names[i], tools[k]);
		bench_close(&t.b);
	}
}

TEST(a_name_of_a_tool_and_of_a_family_is_denied_as_both)
{
	static const char *const gone[] = {"memory_save", "memory_search", "memory_get", "write_file", "read_file"};
	struct trial t = {0};

	deny(&t, "native", "memory");
	for (size_t i = 0; i < COUNT(gone); i++)
		CHECK(!toolset_find(t.b.set, str_of(gone[i])));
	CHECK(toolset_find(t.b.set, STR("create_task")));
	bench_close(&t.b);
}

TEST(an_allowed_name_allows_its_meaning_and_nothing_else)
{
	const struct dialect *from;

	for (size_t i = 1; (from = dialect_at(i)); i++)
		for (struct tool_walk w = {.dialect = from}; tool_next(&w);) {
			struct trial t = {0};
			struct err err = {0};
			struct config *config;

			if (w.family || !w.tool->acts_as || strchr(w.tool->acts_as, ' ') ||
			    str_is(str_of(w.tool->name), "memory_search")) /* the name of a builtin, too */
				continue;
			deny(&t, "native", "exists");
			if (!toolset_find(t.b.set, str_of(w.tool->acts_as))) { /* it needs a setting */
				bench_close(&t.b);
				continue;
			}
			config = (struct config *)workspace_config(t.b.ws);
			config->tools_allow = config->tools_deny;
			config->tools_deny = NULL;
			((struct jv *)jv_at(config->tools_allow, 0))->u.s = str_of(w.tool->name);
			test_close(t.b.set);
			CHECK_OK(toolset_new(t.b.ws, STR("native"), &t.b.set, &err), err);
			test_defer(toolset_destroy, t.b.set);
			if (!toolset_find(t.b.set, str_of(w.tool->acts_as)))
				TEST_FAIL("%s is allowed and %s is not offered", w.tool->name, w.tool->acts_as);
			for (size_t k = 0; k < toolset_count(t.b.set); k++)
				CHECK(str_is(toolset_at(t.b.set, k)->name, w.tool->acts_as) ||
				      str_is(toolset_at(t.b.set, k)->name, w.tool->name) ||
				      str_is(str_of(w.tool->acts_as), "note"));
			bench_close(&t.b);
		}
}

/* --- by what is left --- */

enum power { POWER_WRITE, POWER_DELETE, POWER_READ };

static const struct {
	const char *name;
	enum power power;
} denials[] = {
	{"write_file", POWER_WRITE},   {"overwrite_file", POWER_WRITE},
	{"write", POWER_WRITE},        {"memory", POWER_WRITE},
	{"group:files", POWER_WRITE},  {"group:files", POWER_READ},
	{"delete_file", POWER_DELETE}, {"memory", POWER_DELETE},
	{"group:files", POWER_DELETE}, {"read_file", POWER_READ},
	{"read", POWER_READ},          {"memory", POWER_READ},
};

static struct str files_of(struct trial *t, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page = {0};
	struct err err = {0};
	struct buf b;

	buf_init(&b, arena, MIB);
	if (store_list(workspace_home(t->b.ws), &ctx, (struct wpath){STR("files")}, &req, &page, &err) == 0)
		for (size_t i = 0; i < page.count; i++)
			buf_printf(&b, "%.*s ", STR_ARG(page.entries[i].path.s));
	return buf_str(&b);
}

static struct str secret_of(struct trial *t, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct str text;

	if (store_read(workspace_home(t->b.ws), &ctx, (struct wpath){STR("files/a.txt")}, STORE_WHOLE, MIB, &text, NULL,
		       &err))
		return STR("(gone)");
	return text;
}

static void put_secret(struct trial *t)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(t->b.ws), &t->b.ctx, (struct wpath){STR("files/a.txt")}, STR(SECRET),
			     (struct store_cond){0}, NULL, &err),
		 err);
}

/* What the call did although its power is denied; NULL: nothing. */
static const char *breach(struct trial *t, struct arena *arena, enum power power, struct str shown)
{
	struct str now = secret_of(t, arena), files = files_of(t, arena);

	switch (power) {
	case POWER_WRITE:
		if (!str_is(now, SECRET) && !str_is(now, "(gone)"))
			return "changed a file";
		return files.len && !str_is(files, "files/a.txt ") ? "made a file" : NULL;
	case POWER_DELETE:
		return str_is(now, "(gone)") ? "removed a file" : NULL;
	case POWER_READ:
		return str_find(shown, STR(SECRET), 0) != SIZE_MAX ? "showed a file" : NULL;
	}
	return NULL;
}

static void try_all(struct trial *t, const char *dialect, const char *name, enum power power)
{
	struct arena *arena = arena_new();

	test_defer(arena_destroy, arena);
	for (size_t round = 0; round < 12; round++)
		for (size_t i = 0; i < toolset_count(t->b.set); i++) {
			const struct tool_info *info = toolset_at(t->b.set, i);
			struct str shown;
			const char *did;

			if (str_is(info->name, "fork") || str_is(info->name, "assemble_prompt") ||
			    str_is(info->name, "sleep"))
				continue; /* another workspace; what people put into the prompt; only waits */
			if (!str_is(secret_of(t, arena), SECRET))
				put_secret(t);
			t->target = "files/a.txt";
			shown = attempt(t, arena, info);
			did = breach(t, arena, power, shown);
			if (did)
				TEST_FAIL("%s is denied in %s, and %.*s %s", name, dialect, STR_ARG(info->name), did);
			arena_reset(arena);
		}
	test_close(arena);
}

TEST(what_a_denial_leaves_does_not_do_the_same)
{
	struct trial t = trial_new();
	const struct dialect *d;

	for (size_t n = 0; n < COUNT(denials); n++)
		for (size_t i = 0; (d = dialect_at(i)); i++) {
			deny(&t, d->name, denials[n].name);
			put_secret(&t);
			try_all(&t, d->name, denials[n].name, denials[n].power);
			bench_close(&t.b);
		}
	printf("# %llu calls, %llu answered\n", (unsigned long long)t.calls, (unsigned long long)t.answered);
	CHECK(t.answered > t.calls / 20);
}
