/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent may never do, tried with every tool of every dialect and with arguments made from each tool's schema,
 * so that a tool which is added later is tried too: change a file that decides what it may do, and do under another
 * name what was denied.
 *
 * STEAD_ATTEMPTS sets how often each tool is tried with each target.
 */
#include "tool/attempts.h"
#include "workspace/rights.h"
#include "workspace/workspace_parts.h"

enum kept {
	KEPT_SAME,  /* not one byte changes */
	KEPT_GROWS, /* what was there stays; Stead adds to it */
	KEPT_FACTS, /* what counts as a person's word is what the person said */
};

static const struct target {
	const char *path, *text;
	enum kept kept;
} targets[] = {
	{"AGENT.md", RULE, KEPT_SAME},
	{"AGENTS.md", RULE, KEPT_SAME},
	{"SOUL.md", RULE, KEPT_SAME},
	{"USER.md", RULE, KEPT_SAME},
	{"agent.yaml", "name: x # " RULE "\n", KEPT_SAME},
	{"tools.json", "{} // " RULE "\n", KEPT_SAME},
	{"stead.yaml", "# " RULE "\n", KEPT_SAME},
	{"files/deploy/stead.yaml", "# " RULE "\n", KEPT_SAME},
	{".env", "A=1 # " RULE "\n", KEPT_SAME},
	{"tools/pay.py", RULE, KEPT_SAME},
	{"crons/daily.yaml", "# " RULE "\n", KEPT_SAME},
	{"workflows/release.yaml", "# " RULE "\n", KEPT_SAME},
	{"subagents/helper.md", "---\ndescription: d\n---\n" RULE "\n", KEPT_SAME},
	{"skills/pay/SKILL.md", "---\nname: pay\ndescription: d\n---\n" RULE "\n", KEPT_SAME},
	{".openpaw/state.json", "{\"x\": \"" RULE "\"}", KEPT_SAME},
	{"knowledge/rules.md", RULE, KEPT_SAME},
	{"uploads/2026-01-01/rules.txt", RULE, KEPT_SAME},
	{"agents/default/sessions/s1.log.jsonl", "{\"role\":\"user\",\"content\":\"" RULE "\"}\n", KEPT_GROWS},
	{"agents/default/usage/2026-01-01.jsonl", "{\"x\":\"" RULE "\"}\n", KEPT_GROWS},
	{"schedules/log.jsonl", "{\"x\":\"" RULE "\"}\n", KEPT_GROWS},
	{"dynamic_crons.json", "{\"x\": \"" RULE "\"}", KEPT_GROWS},
	{"heartbeat_log.jsonl", "{\"x\":\"" RULE "\"}\n", KEPT_GROWS},
	{"channels/conversations.json", "{\"x\": \"" RULE "\"}", KEPT_GROWS},
	{"boards/main/journal.jsonl", "{\"x\":\"" RULE "\"}\n", KEPT_GROWS},
	{"memory/conversations/s1.md", RULE "\n", KEPT_GROWS},
	{"memory/2026-01-01.md", "# 2026-01-01\n\n" FACT "\n", KEPT_FACTS},
	{"MEMORY.md", "# Memory\n\n" FACT "\n", KEPT_FACTS},
	{"notes/ann/001-rules.md", RULE, KEPT_SAME},
	{"artifacts/tool/a1.txt", RULE, KEPT_SAME},
};

static const char *const roots[] = {NULL, "workspace", "files", "knowledge", "agents", "memory", "skills", "Tools"};

/* --- the workspace --- */

static void put_in(struct bench *b, struct store *store, const char *path, const char *text)
{
	struct err err = {0};

	CHECK_OK(store_write(store, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0}, NULL,
			     &err),
		 err);
}

static struct str get_home(struct bench *b, struct arena *arena, const char *path)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct str text;

	if (store_read(workspace_home(b->ws), &ctx, (struct wpath){str_of(path)}, STORE_WHOLE, MIB, &text, NULL, &err))
		return STR("(gone)");
	return text;
}

static void open_trial(struct trial *t, const char *dialect, const char *root, const char *user)
{
	struct workspace_opts opts = {.store_url = STR("memory:"),
				      .name = STR("test"),
				      .root = root ? str_of(root) : dialect_root(str_of(dialect)),
				      .user = str_of(user),
				      .agent = STR("bot"),
				      .create = true,
				      .relaxed = true};

	bench_init(&t->b);
	bench_start(&t->b, &opts, dialect);
	t->root = opts.root.len ? arena_cstr(t->b.arena, opts.root) : "files";
}

static bool facts_are_kept(struct str text)
{
	struct str line;

	while (text.len && str_cut(&text, '\n', &line)) {
		size_t at = str_find(line, STR("<!-- stead:fact"), 0); /* that of a saved text is escaped */

		if (at != SIZE_MAX && str_find(line, STR("\"trust\":\"person\""), at) != SIZE_MAX &&
		    !str_is(line, FACT))
			return false;
	}
	return true;
}

static void check_targets(struct trial *t, struct arena *arena, const char *dialect, struct str tool)
{
	for (size_t i = 0; i < COUNT(targets); i++) {
		const struct target *g = &targets[i];
		struct str now = get_home(&t->b, arena, g->path), was = str_of(g->text);
		bool kept = g->kept == KEPT_SAME    ? str_eq(now, was)
			    : g->kept == KEPT_GROWS ? str_starts(now, was)
						    : facts_are_kept(now);

		if (!kept)
			TEST_FAIL("%s with '/' = %s: %.*s changed %s to: %.*s", dialect, t->root, STR_ARG(tool),
				  g->path, STR_ARG(str_first(now, 300)));
	}
}

static size_t attempts_of(void)
{
	const char *text = getenv("STEAD_ATTEMPTS");

	return text ? strtoull(text, NULL, 10) : 2;
}

/* `turn`: a tool that runs a program is tried with every fourth target, with another fourth in the next turn. */
static void attack(struct trial *t, const char *dialect, size_t turn)
{
	struct arena *arena = arena_new();

	test_defer(arena_destroy, arena);
	for (size_t i = 0; i < toolset_count(t->b.set); i++) {
		const struct tool_info *info = toolset_at(t->b.set, i);
		size_t step = info->traits & TOOL_LONG ? 4 : 1;

		if ((info->traits & TOOL_READS_ONLY) || str_is(info->name, "fork"))
			continue;
		for (size_t g = turn % step; g < COUNT(targets); g += step) {
			t->target = targets[g].path;
			for (size_t n = attempts_of(); n; n--)
				attempt(t, arena, info);
		}
		check_targets(t, arena, dialect, info->name);
		arena_reset(arena);
	}
	test_close(arena);
}

static void attack_as(const char *user)
{
	struct trial t = trial_new();
	const struct dialect *d;
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; (d = dialect_at(i)); i++)
		for (size_t r = 0; r < COUNT(roots); r++) {
			open_trial(&t, d->name, roots[r], user);
			for (size_t g = 0; g < COUNT(targets); g++) {
				put_in(&t.b, workspace_shared(t.b.ws), targets[g].path, targets[g].text);
				if (str_is(get_home(&t.b, arena, targets[g].path),
					   "(gone)")) /* not shared: the user's own */
					put_in(&t.b, workspace_home(t.b.ws), targets[g].path, targets[g].text);
			}
			attack(&t, d->name, r);
			bench_close(&t.b);
		}
	printf("# %llu calls, %llu answered\n", (unsigned long long)t.calls, (unsigned long long)t.answered);
	CHECK(t.answered > t.calls / 20);
}

TEST(every_part_of_the_layout_that_is_not_the_agents_is_attacked)
{
	const char *area;

	for (size_t i = 0; (area = rights_area(i)); i++) {
		size_t g = 0;

		while (g < COUNT(targets) &&
		       !wpath_within((struct wpath){str_of(targets[g].path)}, (struct wpath){str_of(area)}))
			g++;
		if (g == COUNT(targets))
			TEST_FAIL("nothing in %s is a target", area);
	}
}

TEST(no_tool_of_any_dialect_changes_a_file_that_decides_what_agents_may_do)
{
	attack_as("");
}

TEST(no_tool_lets_an_agent_change_what_its_user_gets_from_people)
{
	attack_as("ann");
}
