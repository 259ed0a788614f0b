/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of stores over what workspace_open() composes: every way in which '/' of the file tools is put together.
 * Where something shows through from below, it is removed first: what is left must be as good as an empty store.
 */
#include "store/conformance.h"
#include "workspace/fork.h"
#include "workspace/workspace.h"

static const char *const below[] = {"a", "b/a", "d/e/f", "d/b", "c", "x/y/a", "notes/today.md", "e"};

static void host_write(const char *dir, const char *path, const char *text)
{
	char name[600], *slash;
	FILE *f;

	snprintf(name, sizeof name, "%s/%s", dir, path);
	for (slash = strchr(name + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		CHECK(mkdir(name, 0755) == 0 || access(name, F_OK) == 0);
		*slash = '/';
	}
	f = fopen(name, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Closed when the case ends. */
static struct workspace *open_ws(const char *url, struct workspace_opts opts)
{
	struct workspace *ws;
	struct err err;

	opts.store_url = str_of(url);
	opts.name = opts.name.len ? opts.name : STR("scout");
	opts.create = opts.relaxed = true;
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	test_defer(workspace_close, ws);
	return ws;
}

static struct store *files_of(const char *url, struct workspace_opts opts)
{
	return workspace_files(open_ws(url, opts));
}

static const char *disk_url(void)
{
	static char url[400];

	snprintf(url, sizeof url, "disk:%s", temp_dir_new());
	return url;
}

static struct store *cleared(struct store *files)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	CHECK_OK(store_stat(files, &ctx, P(below[0]), NULL, &err), err);
	CHECK_OK(store_remove(files, &ctx, WPATH_ROOT, true, ANY, NULL, &err), err);
	return files;
}

/* A deployment whose templates have something in `root`, which a user has skills of and no files. */
static struct store *over_templates(const char *root, const char *user)
{
	const char *dir = temp_dir_new();
	char path[400];

	host_write(dir, "stead.yaml", "store: disk:./store\ntemplates: disk:./templates\n");
	for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
		snprintf(path, sizeof path, "templates/%s/%s", root, below[i]);
		host_write(dir, path, "from the templates\n");
	}
	snprintf(path, sizeof path, "config:%s/stead.yaml", dir);
	return cleared(
		files_of(path, (struct workspace_opts){.root = str_of(root), .user = str_of(user), .person = true}));
}

/* What a user sees of the skills of everybody, which show through below their own. */
static struct store *over_shared(const char *url)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace *shared = open_ws(url, (struct workspace_opts){0});
	struct err err;

	for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
		struct str path = arena_printf(arena, "skills/%s", below[i]);

		CHECK_OK(store_write(workspace_home(shared), &ctx, P(path.ptr), STR("of all"), ANY, NULL, &err), err);
	}
	return cleared(
		files_of(url, (struct workspace_opts){.user = STR("ann"), .root = STR("skills"), .person = true}));
}

static struct store *forked(const char *url)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace *parent = open_ws(url, (struct workspace_opts){0});
	struct jv *made;
	struct err err;

	for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
		CHECK_OK(store_write(workspace_files(parent), &ctx, P(below[i]), STR("of the parent"), ANY, NULL, &err),
			 err);
	CHECK_OK(fork_create(parent, &ctx, STR("branch"), FORK_AT_HEAD, &made, &err), err);
	return cleared(files_of(url, (struct workspace_opts){.name = STR("branch")}));
}

static struct store *own_files(const char *url)
{
	return files_of(url, (struct workspace_opts){.files_dir = str_of(temp_dir_new())});
}

/* The whole workspace is '/', for a person: what was made with it goes first. */
static struct store *whole(const char *url)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace *ws = open_ws(url, (struct workspace_opts){.root = STR("workspace"), .person = true});
	struct store *files = workspace_files(ws);
	struct err err;

	CHECK_OK(store_write(files, &ctx, P(below[0]), STR("x"), ANY, NULL, &err), err);
	return cleared(files);
}

#define WORKSPACE(id, expr)                                                                                            \
	static struct store *id##_open(void)                                                                           \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	TEST(id##_keeps_the_contract)                                                                                  \
	{                                                                                                              \
		conf_run_as(&store_cases, id##_open, true);                                                            \
	}

#define ANN ((struct workspace_opts){.user = STR("ann")})
WORKSPACE(a_workspace_in_memory, files_of("memory:", (struct workspace_opts){0}))
WORKSPACE(a_workspace_on_disk, files_of(disk_url(), (struct workspace_opts){0}))
WORKSPACE(a_users_workspace_in_memory, files_of("memory:", ANN))
WORKSPACE(a_users_workspace_on_disk, files_of(disk_url(), ANN))
WORKSPACE(a_workspace_over_templates, over_templates("files", ""))
WORKSPACE(a_users_skills_over_templates, over_templates("skills", "ann"))
WORKSPACE(a_users_skills_over_the_shared_ones, over_shared(disk_url()))
WORKSPACE(a_fork_on_disk, forked(disk_url()))
WORKSPACE(a_directory_of_the_persons_own, own_files("memory:"))
WORKSPACE(a_directory_of_the_persons_own_with_its_history_on_disk, own_files(disk_url()))
WORKSPACE(the_whole_of_a_workspace, whole("memory:"))
