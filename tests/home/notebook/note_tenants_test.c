/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of one notebook store attack each other through every note tool: nothing of one reaches another. */
#include "base/clock.h"
#include "home/notebook/tenants.h"

#define TENANTS 40

static const char *const note_tools[] = {"read_note slug_or_title",
					 "read_note slug_or_title",
					 "list_notes",
					 "list_notes author",
					 "list_notes namespace",
					 "list_notes cursor",
					 "list_notes tag",
					 "update_note slug content",
					 "archive_note slug",
					 "answer_question slug content",
					 "list_open_questions",
					 "list_open_questions cursor",
					 "ask_question title content",
					 "note title content namespace",
					 "history path",
					 "read_file path",
					 "ls path",
					 "grep pattern path",
					 NULL};
static const char *const names[] = {"001-secret",
				    "001-secret.md",
				    "notes/ann/001-secret.md",
				    "secret",
				    "001",
				    "ann/001-secret",
				    "users",
				    ".stead/notebook/shared",
				    "WORKSPACE.md",
				    "",
				    ".",
				    "ann",
				    NULL};

static void fill(struct tenant *t, size_t i, const char *url)
{
	static const char *const odd[] = {"a/b", "a_b", "A_B", "..", "users", "notes", "a%2fb", "a~2fb"};
	struct workspace_opts opts = {
		.store_url = str_of(url), .name = STR("test"), .agent = STR("ann"), .create = true, .relaxed = true};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct tool_result result;
	struct err err = {0};
	struct jv *args = jv_object(arena);

	if (i < sizeof(odd) / sizeof(odd[0]))
		snprintf(t->user, sizeof(t->user), "%s", odd[i]);
	else
		snprintf(t->user, sizeof(t->user), "user%zu", i);
	snprintf(t->mark, sizeof(t->mark), "mark%zux%llx", i, 0x9e3779b97f4a7c15ULL * (i + 1));
	opts.user = str_of(t->user);
	CHECK_OK(workspace_open(&opts, &t->ws, &err), err);
	CHECK_OK(toolset_new(t->ws, STR("native"), &t->set, &err), err);
	jv_set_str(arena, args, "title", STR("secret"));
	jv_set_str(arena, args, "content", str_of(t->mark));
	CHECK_OK(toolset_call(t->set, &ctx, STR("note"), args, &result, &err), err);
	CHECK(!result.is_error);
}

TEST(random_attempts_of_tenants_leak_nothing)
{
	const char *ops = getenv("STEAD_MODEL_OPS");
	struct attack a = {.tools = note_tools, .names = names, .count = TENANTS, .seed = random_u64() | 1};
	char url[300];

	snprintf(url, sizeof(url), "disk:%s", temp_dir_new());
	a.tenants = xcalloc(TENANTS, sizeof(*a.tenants));
	for (size_t i = 0; i < TENANTS; i++)
		fill(&a.tenants[i], i, url);
	tenants_attack(&a, ops ? strtoull(ops, NULL, 10) : 4000);
	printf("# %llu attempts, %llu answered\n", (unsigned long long)a.attempts, (unsigned long long)a.answered);
	CHECK(a.answered > a.attempts / 10);
	CHECK_INT(a.leaks, 0);
	for (size_t i = 0; i < TENANTS; i++) {
		toolset_destroy(a.tenants[i].set);
		workspace_close(a.tenants[i].ws);
	}
	free(a.tenants);
}

TEST(the_attack_notices_a_leak)
{
	struct attack a = {.tools = (const char *const[]){"list_notes", NULL}, .names = names, .count = 2, .seed = 1};
	struct tenant tenants[2];
	struct err err = {0};

	a.tenants = tenants;
	fill(&tenants[0], 20, "memory:");
	tenants[1] = tenants[0]; /* another name for the same notebook */
	CHECK_OK(toolset_new(tenants[0].ws, STR("native"), &tenants[1].set, &err), err);
	snprintf(tenants[1].mark, sizeof(tenants[1].mark), "unlike");
	tenants_attack(&a, 20);
	CHECK(a.leaks > 0);
	toolset_destroy(tenants[0].set);
	toolset_destroy(tenants[1].set);
	workspace_close(tenants[0].ws);
}
