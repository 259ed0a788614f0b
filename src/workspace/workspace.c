/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a workspace: from a URL, a name and a user to two stores, one for tools and one for Stead itself.
 *
 * All workspaces of a store share one backend; everything else is a stack of layers over views of it, built by
 * compose() below, the only place that knows their order. Opening is part of every start of `stead mcp` and of every
 * command, so it reads three small files and nothing else: no directory is walked, usage is counted when a limit is
 * first touched.
 *
 * Configuration is read from the shared workspace and never from a user's own part of it: what decides which tools
 * there are must not be writable with the tools.
 */
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/fatal.h"
#include "base/hash.h"
#include "base/limits.h"
#include "workspace/fork.h"
#include "workspace/own_dir.h"
#include "workspace/workspace_internal.h"

/* The past as tools see it: a guard over views over the store of a revision. */
struct past_files {
	struct store *at, *files;
};

/* --- where workspaces lie --- */

struct str workspace_default_store(struct arena *arena)
{
	const char *data = env_process("XDG_DATA_HOME"), *home = env_process("HOME");
	struct passwd entry, *found = NULL;
	char *text = arena_alloc_raw(arena, 4096);

	if (data && data[0] == '/')
		return arena_printf(arena, "disk:%s/stead/workspaces", data);
	if ((!home || home[0] != '/') && getpwuid_r(getuid(), &entry, text, 4096, &found) == 0 && found)
		home = found->pw_dir;
	return arena_printf(arena, "disk:%s/.local/share/stead/workspaces", home ? home : "");
}

int workspace_open_store(struct arena *arena, struct str url, bool create, bool relaxed, struct store **ret_store,
			 struct str *ret_dir, struct err *err)
{
	struct place_config config;
	int r = place_read(arena, url, &config, err);

	*ret_dir = STR_NONE;
	return r ? r : place_open_all(arena, &config, create, relaxed, ret_store, ret_dir, err);
}

int workspace_bad_name(struct str name, struct err *err)
{
	return err_set(
		err, ERR_INVALID,
		"the workspace name \"%.*s\" is not allowed; use 2 to 64 lower-case letters, digits, '-' and '_', "
		"beginning with a letter",
		STR_ARG(utf8_first(name, 80)));
}

/* --- files of the home --- */

int workspace_read(struct ctx *ctx, struct store *home, const char *path, size_t max, struct str *ret, struct err *err)
{
	int r = store_read(home, ctx, (struct wpath){str_of(path)}, STORE_WHOLE, max, ret, NULL, err);

	if (r == -ERR_NOT_FOUND)
		*ret = STR_NONE;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int workspace_load_config(struct arena *arena, struct ctx *ctx, struct store *home,
			  const struct config_defaults *defaults, struct config *ret, struct err *err)
{
	struct str agent_yaml, dotenv, tools_json;
	int r = workspace_read(ctx, home, "agent.yaml", YAML_LEN_MAX, &agent_yaml, err);

	if (!r)
		r = workspace_read(ctx, home, ".env", ENV_LEN_MAX, &dotenv, err);
	if (!r)
		r = workspace_read(ctx, home, "tools.json", YAML_LEN_MAX, &tools_json, err);
	return r ? r : config_load(arena, agent_yaml, dotenv, tools_json, defaults, ret, err);
}

int workspace_exists(struct ctx *ctx, struct store *home, bool *ret, struct err *err)
{
	static const char *const marks[] = {"agent.yaml", "AGENTS.md", "AGENT.md", WORKSPACE_MARK};

	*ret = false;
	for (size_t i = 0; !*ret && i < COUNT(marks); i++) {
		int r = store_stat(home, ctx, (struct wpath){str_of(marks[i])}, NULL, err);

		if (r && r != -ERR_NOT_FOUND)
			return r;
		*ret = r == 0;
	}
	return 0;
}

/* --- the stack --- */

/* In the whole workspace other people's parts are not shown, and items of boards are changed by the tools of boards.
   "!x" takes back: a project may have such a name. */
static const char *const whole_hidden[] = {"users", "!*/**/users"};
static const char *const whole_fixed[] = {"boards", "!*/**/boards"};

/* "KEY" or "BOARD/KEY" after "task:". The key of a board's item begins with TASK- or DELEGATE-; any other is a
   directory of tasks/. */
static int parse_task(struct arena *arena, struct str key, struct root *ret, struct str *ret_text, struct err *err)
{
	size_t slash = str_find_char(key, '/');
	bool names_board = slash < key.len;
	struct str board = names_board ? str_first(key, slash) : STR("main");

	if (names_board)
		key = str_from(key, slash + 1);
	ret->of_task = true;
	ret->of_item = str_starts(key, STR("TASK-")) || str_starts(key, STR("DELEGATE-"));
	if (!wpath_name_ok(key) || !wpath_name_ok(board) || (names_board && !ret->of_item))
		return err_set(err, ERR_INVALID,
			       "the root \"task:%.*s\" names no task; write task:KEY or task:BOARD/KEY",
			       STR_ARG(utf8_first(key, 80)));
	*ret_text = ret->of_item ? arena_printf(arena, "boards/%.*s/tasks/%.*s", STR_ARG(board), STR_ARG(key))
				 : arena_printf(arena, "tasks/%.*s", STR_ARG(key));
	return 0;
}

static int parse_root(struct arena *arena, struct str text, struct root *ret, struct err *err)
{
	struct str top;
	int r = 0;

	*ret = (struct root){0};
	if (!text.len)
		text = STR("files");
	if (str_starts(text, STR("task:")))
		r = parse_task(arena, str_from(text, 5), ret, &text, err);
	if (r)
		return r;
	if (str_is(text, "workspace"))
		ret->path = WPATH_ROOT;
	else
		r = wpath_parse_lenient(arena, text, &ret->path, err);
	if (r)
		return err_prefix(err, "the root of the file tools");
	ret->whole = wpath_is_root(ret->path);
	top = str_first(ret->path.s, str_find_char(ret->path.s, '/'));
	if (str_eq_nocase(top, STR(".stead")) || str_eq_nocase(top, STR("users")) ||
	    (str_eq_nocase(top, STR("boards")) && !ret->of_item))
		return err_set(
			err, ERR_DENIED,
			"\"%.*s\" cannot be the root of the file tools; use \"files\", \"workspace\", task:KEY or "
			"another directory, and --user for a user's part",
			STR_ARG(ret->path.s));
	return 0;
}

/* Git runs commands that are configured in there, as the person who uses it next; and it keeps passwords there. */
static const char *const always_fixed[] = {".git"};
static const char *const always_hidden[] = {"**/.git/config"};

static struct store *guarded(const struct workspace *ws, struct store *inner)
{
	const char *hidden[128], *fixed[64];
	struct guard_rules rules = guard_defaults;
	size_t n = 0, fixed_count = 0;

	for (; n < rules.hidden_count && n < COUNT(hidden) - 3; n++)
		hidden[n] = rules.hidden[n];
	if (!ws->with_git)
		hidden[n++] = always_hidden[0];
	if (!ws->own_files) {
		for (size_t i = 0; ws->tool_root.whole && i < COUNT(whole_hidden); i++)
			hidden[n++] = whole_hidden[i];
		for (size_t i = 0; ws->tool_root.whole && i < COUNT(whole_fixed); i++)
			fixed[fixed_count++] = whole_fixed[i];
	}
	rules.refusal = rights_refusal;
	rules.refusal_arg = &ws->rights;
	if (!ws->with_git)
		fixed[fixed_count++] = always_fixed[0];
	rules.fixed = fixed;
	rules.fixed_count = fixed_count;
	rules.hidden = hidden;
	rules.hidden_count = n;
	return store_guard_new(inner, &rules);
}

static bool same_device(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev;
}

/* --- revisions --- */

/* Another one after each start of the machine: what was written before may not have reached the disk. */
static struct str boot_id(struct arena *arena)
{
	char text[64];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;

	if (f)
		fclose(f);
	return arena_str(arena, str_trim(str_n(text, n)));
}

/* Elsewhere than on this machine the log is a journal. Tests of that need no server: STEAD_TEST_JOURNAL. */
static bool log_is_journal(const struct workspace_stores *place)
{
	return env_process("STEAD_TEST_JOURNAL") || !store_is_local(place->base);
}

/* True for files that people may want forgotten: they are kept out of the log. */
static bool is_forgettable(struct wpath path)
{
	if (str_starts(path.s, STR("users/")))
		path.s = str_from(path.s, 6 + str_find_char(str_from(path.s, 6), '/') + 1);
	return str_is(path.s, "MEMORY.md") || str_starts(path.s, STR("memory/"));
}

/* The log is in `dir` of the store that syncs, the mark of a clean end in the same place of the store that does not. */
int workspace_record(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct store *inner,
		     const char *dir, struct store **ret, struct err *err)
{
	struct wpath path = {arena_printf(ctx->arena, "%.*s/%s", STR_ARG(name), dir)};
	struct store *log = store_prefix_new(store_share(place->log_base ? place->log_base : place->base), path);
	struct revisions_opts opts = {.boot_id = boot_id(ctx->arena), .apart = is_forgettable};
	int r;

	if (log_is_journal(place)) {
		opts.journal = true;
		opts.own = str_is(str_of(dir), ".stead/rev") ? (struct wpath){STR(".stead/rev")} : WPATH_ROOT;
	} else {
		opts.scratch = store_prefix_new(store_share(place->base), path);
		opts.log_syncs = place->log_base != NULL;
	}
	r = store_revisions_open(inner, log, opts, ctx, ret, err);

	if (r) {
		store_destroy(inner);
		store_destroy(log);
		store_destroy(opts.scratch);
	}
	return r;
}

int workspace_record_own(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct str dir,
			 const struct store_disk_opts *opts, struct store **ret, struct err *err)
{
	struct str log = arena_printf(ctx->arena, ".stead/own/%s", hash_hex128(ctx->arena, dir).ptr);
	struct store *own;
	int r = store_disk_open(arena_cstr(ctx->arena, dir), opts, &own, err);

	return r ? r : workspace_record(ctx, place, name, own, log.ptr, ret, err);
}

static struct workspace_stores place_of(const struct workspace *ws)
{
	struct workspace_stores place = {.base = ws->base, .log_base = ws->log_base};

	if (ws->sibling) {
		place.known = ws->sibling->actor.workspace;
		place.known_revisions = ws->sibling->shared;
		if (ws->sibling->own_files) {
			place.known_own = ws->sibling->recorded;
			place.known_dir = ws->sibling->own_dir;
		}
	}
	return place;
}

/* What opening is called with. Its deadline and its cancel are those of the options. */
static struct ctx opening(const struct workspace *ws)
{
	return (struct ctx){
		.arena = ws->arena, .actor = ws->actor, .deadline_ns = ws->opts.deadline_ns, .cancel = ws->opts.cancel};
}

static int record(struct workspace *ws, struct store *inner, const char *dir, struct store **ret, struct err *err)
{
	struct ctx ctx = opening(ws);
	struct workspace_stores place = place_of(ws);

	return workspace_record(&ctx, &place, ws->actor.workspace, inner, dir, ret, err);
}

/* A directory of the person's own. The log is kept in the workspace, and so are unfinished writes if a rename can reach
   from there, so that nothing of Stead is ever seen in a project. */
static int open_own_files(struct workspace *ws, struct str dir, struct store **ret, struct err *err)
{
	struct ctx ctx = opening(ws);
	struct workspace_stores place = place_of(ws);
	/* a log on this machine makes up for what was not synced; one elsewhere is not compared with the files at start
	 */
	struct store_disk_opts opts = {.relaxed = store_is_local(ws->base), .keep_links = true};
	const char *path = arena_cstr(ws->arena, dir);
	char *resolved;

	if (memchr(dir.ptr, 0, dir.len))
		return err_set(err, ERR_INVALID, "the directory of files has a NUL character in its name");
	if (ws->dir.ptr && same_device(path, ws->dir.ptr))
		opts.tmp_dir = arena_printf(ws->arena, "%s/.stead/tmp", ws->dir.ptr).ptr;
	resolved = realpath(path, NULL);
	ws->own_files = true;
	ws->own_dir = arena_str(ws->arena, str_of(resolved ? resolved : path));
	ws->place = resolved ? ws->own_dir : dir;
	free(resolved);
	return workspace_record_own(&ctx, &place, ws->actor.workspace, ws->own_dir, &opts, ret, err);
}

/* The workspace over the deployment's templates. */
static struct store *over_templates(const struct workspace *ws, struct store *shared)
{
	struct store *view = store_share(shared);

	return ws->templates ? store_overlay_new(view, store_share(ws->templates)) : view;
}

/* What people wrote for everybody; in AgentScope's layout below what they wrote for this user in a directory of that
   name. */
static struct store *shared_view(const struct workspace *ws, struct store *shared)
{
	struct store *all = workspace_assets_new(over_templates(ws, shared), false), *own;
	struct wpath dir = {ws->actor.user};

	if (ws->opts.layout != LAYOUT_AGENTSCOPE || !rights_may_be_user(dir))
		return all;
	own = store_prefix_new(store_share(shared), dir);
	return store_overlay_new(workspace_assets_new(own, true), all);
}

/* `dir` of what this user has: their own part of the workspace over what people wrote for everybody. Without a user it
   is the workspace itself. Where nothing of that can be (files/, tasks/), their own part is all there is, and an
   overlay would only ask twice. `shared`: the workspace, now or as it was. */
static struct store *user_view(const struct workspace *ws, struct store *shared, struct wpath dir)
{
	struct store *view;

	if (wpath_is_root(ws->user_dir)) {
		view = over_templates(ws, shared);
	} else {
		view = shared == ws->counted ? workspace_user_part(ws)
					     : store_prefix_new(store_share(shared), ws->user_dir);
		if (workspace_may_be_asset(dir))
			view = store_overlay_new(view, shared_view(ws, shared));
	}
	return wpath_is_root(dir) ? view : store_prefix_new(view, dir);
}

/* The stack, outermost first:
 *   guard      outermost: no tool can name .stead/ or .env, while every layer inside still can
 *   events     outside quotas: a refused write did not happen, so there is no event
 *   prefix     the tool root, inside the layers above so that they see the paths that tools name
 *   overlay    a user's own part over the static assets of the workspace, which it never changes; and the workspace
 *              over the deployment's templates. Outside revisions: what shows through is not this workspace's history
 *   quota      of the user, around their part
 *   prefix     the user's part
 *   quota      of the workspace. Inside all that tools and families use, so that every change counts; outside
 *              revisions: a write that does not fit must not cost a record, and what history keeps is counted all the
 *              same. Both are left out when there is no limit
 *   revisions  one log for the workspace, so that a revision number means the same to all its users
 *   overlay    of a fork only: its own directory over its parent at a revision (fork.c)
 *   prefix     the workspace
 *   base       the stores of the deployment, shared by all its workspaces (place.c)
 */
static int compose(struct workspace *ws, const struct workspace_opts *opts, struct err *err)
{
	struct str own = opts->files_dir;
	struct store *files;
	struct root root;
	int r = parse_root(ws->arena, opts->root, &root, err);

	if (!own.len && !ws->is_fork) /* a fork must not work in the directory that its parent works in */
		own = jv_get_str(ws->config.document, "files_dir");
	if (!r)
		r = place_namespace(ws->arena, ws->where.scope, &ws->actor, &ws->user_dir, err);
	if (!r && !ws->of)
		r = record(ws, store_share(ws->raw), ".stead/rev", &ws->shared, err);
	if (r)
		return r;
	ws->tool_root = root;
	ws->counted = ws->of ? ws->of->counted : workspace_counted_new(ws);
	ws->home = user_view(ws, ws->counted, WPATH_ROOT);
	if (own.len && (!opts->root.len || str_is(opts->root, "files"))) {
		r = open_own_files(ws, own, &files, err);
		if (r)
			return opts->files_dir.len ? r : err_prefix(err, "files_dir in agent.yaml");
		ws->recorded = files;
		files = workspace_own_limits(ws, files);
		ws->root = WPATH_ROOT;
	} else {
		files = user_view(ws, ws->counted, root.path);
		ws->recorded = ws->shared;
		r = wpath_join(ws->arena, ws->user_dir, root.path, &ws->root, err);
		if (r)
			return r;
		ws->place =
			arena_printf(ws->arena, "%.*s%s%.*s%s%.*s", STR_ARG(ws->whole), ws->user_dir.s.len ? "/" : "",
				     STR_ARG(ws->user_dir.s), root.path.s.len ? "/" : "", STR_ARG(root.path.s));
	}
	ws->events = store_events_new(files);
	ws->with_git = opts->with_git;
	ws->rights = (struct rights){
		.root = root.path, .person = opts->person, .lent = jv_get(ws->config.document, "agents_may_edit")};
	ws->files = guarded(ws, ws->events);
	return 0;
}

/* --- opening --- */

static int no_workspace(struct workspace *ws, struct err *err)
{
	err_set(err, ERR_NOT_FOUND, "there is no workspace \"%.*s\" in %.*s; create it with: stead init %.*s",
		STR_ARG(ws->actor.workspace), STR_ARG(utf8_first(ws->place, 200)), STR_ARG(ws->actor.workspace));
	return err_detail(err, DETAIL_NO_WORKSPACE);
}

/* The stores of the deployment that the URL names. `dir` is the host's directory of files, when it is one. */
static int open_place(struct workspace *ws, const struct workspace_opts *opts, struct str *ret_dir, struct err *err)
{
	struct place_want want = {.workspace = ws->actor.workspace, .create = opts->create};
	int r = place_read(ws->arena, opts->store_url, &ws->where, err);

	*ret_dir = STR_NONE;
	ws->where.deadline_ns = opts->deadline_ns;
	ws->where.cancel = opts->cancel;
	if (!r)
		r = place_open(ws->arena, &ws->where, &want, &ws->stores, ret_dir, err);
	ws->where.deadline_ns = 0;
	ws->where.cancel = NULL;
	if (!r) {
		ws->base = place_store(ws->stores);
		ws->templates = place_templates(ws->stores);
	}
	return r;
}

struct str workspace_place_shown(struct arena *arena, struct str url, struct str name)
{
	struct str shown = store_url_shown(arena, url);
	size_t path_end = str_find_char(shown, '?');

	if (str_is(shown, "memory:"))
		return arena_printf(arena, "%.*s%.*s", STR_ARG(shown), STR_ARG(name));
	return arena_printf(arena, "%.*s/%.*s%.*s", (int)path_end, shown.ptr, STR_ARG(name),
			    STR_ARG(str_from(shown, path_end)));
}

/* The stores are the sibling's. What stead.yaml says for every workspace may have changed since that was opened. */
static int read_defaults(struct workspace *ws, struct err *err)
{
	struct place_config now;
	int r;

	if (!ws->where.file.ptr)
		return 0;
	r = place_read(ws->arena, arena_printf(ws->arena, "config:%.*s", STR_ARG(ws->where.file)), &now, err);
	if (r == 0)
		ws->where.defaults = now.defaults;
	return r;
}

static int view_workspace(struct workspace *ws, const struct workspace_opts *opts, struct err *err)
{
	struct str dir;
	int r = 0;

	if (ws->sibling) {
		dir = ws->sibling->store_dir;
		ws->where = ws->sibling->where;
		ws->base = ws->sibling->base;
		ws->log_base = ws->sibling->log_base;
		ws->templates = ws->sibling->templates;
		r = read_defaults(ws, err);
	} else {
		r = open_place(ws, opts, &dir, err);
	}
	ws->store_dir = dir;
	if (dir.ptr)
		ws->dir = arena_printf(ws->arena, "%s/%.*s", dir.ptr, STR_ARG(ws->actor.workspace));
	ws->place = dir.ptr ? ws->dir : workspace_place_shown(ws->arena, ws->where.store, ws->actor.workspace);
	ws->whole = ws->place;
	if (!r)
		ws->raw = store_prefix_new(store_share(ws->base), (struct wpath){ws->actor.workspace});
	return r;
}

/* The store that syncs. Only a directory has two ways to be opened. */
static int open_log_base(struct workspace *ws, struct err *err)
{
	if (ws->log_base || ws->sibling)
		return 0;
	return place_durable(ws->stores, &ws->log_base, err);
}

/* A workspace above the deployment's templates gets only the files that the templates lack. */
static int make_from_templates(struct workspace *ws, struct ctx *ctx, const struct init_opts *init, struct err *err)
{
	struct store *durable, *over;
	int r = open_log_base(ws, err);

	if (r)
		return r;
	durable = store_prefix_new(store_share(ws->log_base ? ws->log_base : ws->base),
				   (struct wpath){ws->actor.workspace});
	over = over_templates(ws, durable);
	r = workspace_write_templates(ctx, over, ws->dir, init, jv_array(ctx->arena), err);
	if (!r)
		r = store_write(durable, ctx, (struct wpath){STR(WORKSPACE_MARK)},
				clock_format_utc(ctx->arena, clock_real_ns()), (struct store_cond){0}, NULL, err);
	store_destroy(over);
	store_destroy(durable);
	return r;
}

/* Configuration is the workspace's own, or else the templates'. */
static int load_config(struct workspace *ws, struct ctx *ctx, struct err *err)
{
	struct store *home = over_templates(ws, ws->raw);
	int r = workspace_load_config(ws->arena, ctx, home, &ws->where.defaults, &ws->config, err);

	store_destroy(home);
	return r;
}

/* ERR_NOT_FOUND: the workspace is not there. Users' own stores are mounted in it even then, so more than those mounts
   must be found. */
static int look_for(struct workspace *ws, struct ctx *ctx, struct err *err)
{
	struct store_list_req req = {.limit = 8};
	struct store_page page = {0};
	int r = store_stat(ws->base, ctx, (struct wpath){ws->actor.workspace}, NULL, err);

	if (r || ws->sibling || !jv_count(ws->where.users))
		return r;
	r = store_list(ws->raw, ctx, WPATH_ROOT, &req, &page, err);
	for (size_t i = 0; !r && i < page.count; i++)
		if (!str_is(page.entries[i].path.s, "users"))
			return 0;
	return r ? r : err_set(err, ERR_NOT_FOUND, "there are only stores of users");
}

/* Initialises the workspace if it is missing and may be made. */
static int ensure_exists(struct workspace *ws, struct ctx *ctx, const struct workspace_opts *opts, struct err *err)
{
	struct init_opts init = {.name = ws->actor.workspace};
	struct store *durable;
	bool exists;
	int r = look_for(ws, ctx, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r && !opts->create)
		return no_workspace(ws, err);
	if (!opts->create)
		return 0;
	if (r && ws->templates) /* what templates have counts as there, so nothing may be written: leave a mark */
		return make_from_templates(ws, ctx, &init, err);
	r = fork_is(ctx, ws->raw, &exists, err);
	if (!r && !exists)
		r = workspace_exists(ctx, ws->raw, &exists, err);
	if (r || exists)
		return r;
	r = open_log_base(ws, err);
	if (r)
		return r;
	durable = store_prefix_new(store_share(ws->log_base ? ws->log_base : ws->base),
				   (struct wpath){ws->actor.workspace});
	r = workspace_write_templates(ctx, durable, ws->dir, &init, jv_array(ctx->arena), err);
	store_destroy(durable);
	return r;
}

/* A fork's directory gets its parent's past below it. */
static int stand_on_parent(struct workspace *ws, struct ctx *ctx, struct err *err)
{
	struct workspace_stores place = place_of(ws);
	struct store *raw;
	int r = fork_is(ctx, ws->raw, &ws->is_fork, err);

	if (r || !ws->is_fork)
		return r;
	r = fork_open_raw(ctx, &place, ws->actor.workspace, &raw, err);
	if (r)
		return r;
	store_destroy(ws->raw);
	ws->raw = raw;
	return 0;
}

static int open_stack(struct workspace *ws, const struct workspace_opts *opts, struct err *err)
{
	struct ctx ctx = opening(ws);
	int r = ctx_check(&ctx, err);

	if (!r)
		r = view_workspace(ws, opts, err);
	if (r == -ERR_NOT_FOUND)
		return no_workspace(ws, err);
	if (!r)
		r = ensure_exists(ws, &ctx, opts, err);
	if (!r)
		r = stand_on_parent(ws, &ctx, err);
	if (!r)
		r = load_config(ws, &ctx, err);
	if (!r && !opts->relaxed && !ws->config.relaxed)
		r = open_log_base(ws, err);
	else if (!ws->sibling) /* it may have been needed to make the workspace, which is always durable */
		ws->log_base = NULL;
	return r ? r : compose(ws, opts, err);
}

static struct workspace_opts copy_opts(struct arena *arena, const struct workspace_opts *opts)
{
	struct workspace_opts copy = *opts;

	copy.store_url = arena_str(arena, opts->store_url);
	copy.name = arena_str(arena, opts->name);
	copy.user = arena_str(arena, opts->user);
	copy.agent = arena_str(arena, opts->agent);
	copy.session = arena_str(arena, opts->session);
	copy.files_dir = arena_str(arena, opts->files_dir);
	copy.root = arena_str(arena, opts->root);
	return copy;
}

static int open_temp(struct workspace *ws, struct err *err)
{
	struct str dir;
	bool cleanup;
	int r = workspace_temp_new(ws->arena, ws->opts.store_url, &dir, &cleanup, err);

	if (r)
		return r;
	ws->temp = cleanup ? dir.ptr : NULL;
	ws->opts.store_url = arena_printf(ws->arena, "disk:%s", dir.ptr);
	ws->opts.create = true;
	return 0;
}

/* A place in another system's words may name the workspace, the agent, its teammates, and files to begin with. Without
   it the options stay as they are. */
static int take_spec(struct workspace *ws, struct place_spec *ret, struct err *err)
{
	struct place_config where;
	struct workspace_opts *opts = &ws->opts;
	int r;

	*ret = (struct place_spec){0};
	if (place_is_spec(opts->store_url))
		r = place_spec_parse(ws->arena, opts->store_url, ret, err);
	else if (str_starts(opts->store_url, STR("config:")) && !opts->name.len)
		r = place_read(ws->arena, opts->store_url, &where, err);
	else
		return 0;
	if (r)
		return r;
	if (!place_is_spec(opts->store_url))
		*ret = where.spec;
	else if (workspace_is_temp(ret->store))
		opts->store_url = ret->store;
	if (!opts->name.len)
		opts->name = ret->workspace;
	if (!opts->agent.len)
		opts->agent = ret->author;
	return 0;
}

/* Copies files of this machine to seeds/ of the file area, where they are not yet. */
static int sow(struct workspace *ws, const struct place_spec *spec, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct ctx ctx = opening(ws);
	int r = 0;

	if (spec->teammates)
		ws->config.teammates = spec->teammates;
	for (const struct jv_member *m = jv_first(spec->seeds); m && r == 0; m = m->next) {
		struct str from = jv_str_of(m->value), bytes;
		struct wpath to;

		r = place_host_file(ws->arena, from, TOOL_FILE_MAX, &bytes, err);
		if (r == 0)
			r = wpath_parse(arena_printf(ws->arena, "files/seeds/%.*s",
						     STR_ARG(str_from(from, str_rfind_char(from, '/') == from.len
										    ? 0
										    : str_rfind_char(from, '/') + 1))),
					&to, err);
		if (r == 0)
			r = store_write(ws->home, &ctx, to, bytes, absent, NULL, err);
		if (r == -ERR_EXISTS)
			r = 0;
		if (r)
			return err_prefix(err, "seed");
	}
	return r;
}

static struct workspace *handle_new(void)
{
	struct workspace *ws = xcalloc(1, sizeof *ws);

	ws->arena = arena_new();
	ws->slots_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	pthread_mutex_init(&ws->parts_lock, NULL);
	return ws;
}

static int open_as(const struct workspace_opts *opts, const struct workspace *sibling, struct workspace **ret_ws,
		   struct err *err)
{
	struct place_spec spec = {0};
	struct workspace *ws;
	int r;

	if (opts->name.len && !workspace_name_ok(opts->name))
		return workspace_bad_name(opts->name, err);
	ws = handle_new();
	ws->sibling = sibling;
	ws->opts = copy_opts(ws->arena, opts);
	r = sibling ? 0 : take_spec(ws, &spec, err);
	if (!ws->opts.name.len)
		ws->opts.name = STR("default");
	ws->actor = (struct actor){.workspace = ws->opts.name,
				   .user = ws->opts.user,
				   .agent = ws->opts.agent,
				   .session = ws->opts.session};
	if (!r && workspace_is_temp(ws->opts.store_url) && !sibling)
		r = open_temp(ws, err);
	if (!r)
		r = open_stack(ws, &ws->opts, err);
	if (!r)
		r = sow(ws, &spec, err);
	if (r) {
		workspace_close(ws);
		return r;
	}
	ws->opts.deadline_ns = 0;
	ws->opts.cancel = NULL;
	ws->gc = gc_auto_new(ws);
	*ret_ws = ws;
	return 0;
}

int workspace_open(const struct workspace_opts *opts, struct workspace **ret_ws, struct err *err)
{
	if (opts->files_dir.len && opts->root.len && !str_is(opts->root, "files"))
		return err_set(err, ERR_INVALID,
			       "'/' of the file tools is either your own directory (--files) or a part of the "
			       "workspace (--root %.*s); leave out one of them",
			       STR_ARG(utf8_first(opts->root, 100)));
	return open_as(opts, NULL, ret_ws, err);
}

int workspace_open_for(struct workspace *of, struct str user, struct str agent, struct str session,
		       struct workspace **ret_ws, struct err *err)
{
	struct actor actor = {.user = user, .agent = agent, .session = session};

	return workspace_open_at(of, actor, STR_NONE, ret_ws, err);
}

int workspace_open_at(struct workspace *of, struct actor actor, struct str root, struct workspace **ret_ws,
		      struct err *err)
{
	struct workspace *ws = handle_new();
	int r;

	while (of->of)
		of = (struct workspace *)of->of;
	ws->of = of;
	ws->config = of->config;
	ws->opts = of->opts;
	ws->opts.user = arena_str(ws->arena, actor.user);
	ws->opts.agent = arena_str(ws->arena, actor.agent);
	ws->opts.session = arena_str(ws->arena, actor.session);
	if (root.len)
		ws->opts.root = arena_str(ws->arena, root);
	ws->actor = (struct actor){.workspace = of->actor.workspace,
				   .user = ws->opts.user,
				   .agent = ws->opts.agent,
				   .session = ws->opts.session};
	ws->place = ws->whole = of->whole;
	ws->dir = of->dir;
	ws->store_dir = of->store_dir;
	ws->is_fork = of->is_fork;
	ws->where = of->where;
	ws->base = of->base;
	ws->log_base = of->log_base;
	ws->templates = of->templates;
	ws->raw = of->raw;
	ws->shared = of->shared;
	r = compose(ws, &ws->opts, err);
	if (r) {
		workspace_close(ws);
		return r;
	}
	*ret_ws = ws;
	return 0;
}

int workspace_open_sibling(struct workspace *ws, struct str name, struct workspace **ret_ws, struct err *err)
{
	struct workspace_opts opts = ws->opts;

	opts.name = name;
	opts.files_dir = STR_NONE;
	opts.create = false;
	return open_as(&opts, ws, ret_ws, err);
}

struct store *workspace_store_of(const struct workspace *ws, bool durable)
{
	return durable && ws->log_base ? ws->log_base : ws->base;
}

static void *slot_find(struct workspace *ws, const void *key, void *(*open)(struct workspace *ws),
		       void (*close)(void *state), bool uses_others)
{
	void *state = NULL;

	pthread_mutex_lock(&ws->slots_lock);
	for (size_t i = 0; i < ws->slot_count && !state; i++)
		if (ws->slots[i].key == key)
			state = ws->slots[i].state;
	if (!state) {
		if (ws->slot_count == SLOTS_MAX)
			fatal("more families keep state than a workspace has room for");
		state = open(ws);
		ws->slots[ws->slot_count++] = (struct slot){key, state, close, uses_others};
	}
	pthread_mutex_unlock(&ws->slots_lock);
	return state;
}

void *workspace_slot(struct workspace *ws, const void *key, void *(*open)(struct workspace *ws),
		     void (*close)(void *state))
{
	return slot_find(ws, key, open, close, false);
}

void *workspace_thread_slot(struct workspace *ws, const void *key, void *(*open)(struct workspace *ws),
			    void (*close)(void *state))
{
	return slot_find(ws, key, open, close, true);
}

/* The newest one goes. False: there is none. */
static bool slot_take(struct workspace *ws, bool uses_others, struct slot *ret)
{
	size_t i;

	pthread_mutex_lock(&ws->slots_lock);
	for (i = ws->slot_count; i > 0 && uses_others && !ws->slots[i - 1].uses_others; i--)
		;
	if (i > 0) {
		*ret = ws->slots[i - 1];
		memmove(&ws->slots[i - 1], &ws->slots[i], (ws->slot_count - i) * sizeof ws->slots[0]);
		ws->slot_count--;
	}
	pthread_mutex_unlock(&ws->slots_lock);
	return i > 0;
}

void workspace_close(struct workspace *ws)
{
	struct slot slot;

	if (!ws)
		return;
	while (slot_take(ws, true, &slot) || slot_take(ws, false, &slot))
		slot.close(slot.state);
	pthread_mutex_destroy(&ws->slots_lock);
	gc_auto_end(ws->gc);
	store_destroy(ws->files);
	store_destroy(ws->home);
	workspace_user_parts_end(ws);
	pthread_mutex_destroy(&ws->parts_lock);
	if (!ws->of) {
		store_destroy(ws->counted);
		store_destroy(ws->shared);
		store_destroy(ws->raw);
		place_close(ws->stores);
	}
	if (ws->temp)
		workspace_temp_end(ws->temp);
	arena_destroy(ws->arena);
	free(ws);
}

struct str workspace_name(const struct workspace *ws)
{
	return ws->actor.workspace;
}

enum workspace_layout workspace_layout(const struct workspace *ws)
{
	return ws->opts.layout;
}

const struct env *workspace_env(const struct workspace *ws)
{
	return &ws->where.env;
}

const struct config *workspace_config(const struct workspace *ws)
{
	return &ws->config;
}

struct actor workspace_actor(const struct workspace *ws)
{
	return ws->actor;
}

struct store *workspace_files(struct workspace *ws)
{
	return ws->files;
}

struct store *workspace_home(struct workspace *ws)
{
	return ws->home;
}

int workspace_settings_version(struct workspace *ws, struct ctx *ctx, uint64_t *ret, struct err *err)
{
	static const char *const files[] = {"agent.yaml", "tools.json", ".env"};
	struct store_stat stat;

	*ret = 0;
	for (size_t i = 0; i < COUNT(files); i++) {
		int r = store_stat(ws->home, ctx, (struct wpath){str_of(files[i])}, &stat, err);

		if (r && r != -ERR_NOT_FOUND)
			return r;
		*ret = *ret * 31 + (r ? 0 : hash_u64(stat.version, i));
	}
	return 0;
}

struct store *workspace_events(struct workspace *ws)
{
	return ws->events;
}

struct store *workspace_shared(struct workspace *ws)
{
	return ws->shared;
}

struct store *workspace_unrecorded(struct workspace *ws)
{
	return ws->raw;
}

void workspace_snapshots_changed(struct workspace *ws)
{
	atomic_store(&(ws->of ? ws->of : ws)->snapshots_at_ns, 0);
}

struct wpath workspace_part(const struct workspace *ws)
{
	return ws->user_dir;
}

struct str workspace_boot(struct arena *arena, const struct workspace *ws)
{
	return ws->dir.ptr ? boot_id(arena) : STR("");
}

struct store *workspace_revisions(struct workspace *ws)
{
	return ws->recorded;
}

struct wpath workspace_root(const struct workspace *ws)
{
	return ws->root;
}

bool workspace_root_is_task(const struct workspace *ws)
{
	return ws->tool_root.of_task;
}

struct wpath workspace_user_dir(const struct workspace *ws)
{
	return ws->own_files ? WPATH_ROOT : ws->user_dir;
}

struct str workspace_dir(const struct workspace *ws)
{
	return ws->dir;
}

struct str workspace_url_of(const struct workspace *ws)
{
	return ws->opts.store_url;
}

struct past_files *workspace_files_at(struct workspace *ws, uint64_t number, struct store **ret_files)
{
	struct past_files *past = xcalloc(1, sizeof *past);
	struct store *view;

	past->at = store_at_revision_new(ws->recorded, number);
	if (ws->own_files)
		view = store_share(past->at);
	else
		view = user_view(ws, past->at, ws->tool_root.path);
	past->files = store_readonly_new(guarded(ws, view));
	*ret_files = past->files;
	return past;
}

void workspace_files_at_close(struct past_files *past)
{
	if (!past)
		return;
	store_destroy(past->files);
	store_destroy(past->at);
	free(past);
}

static struct store *leases_in(struct workspace *ws, struct store *of)
{
	ARENA_SCOPE struct arena *arena = arena_new(); /* the workspace's own is not for threads */
	struct str dir = arena_printf(arena, "%.*s/.stead/leases", STR_ARG(ws->actor.workspace));

	return store_prefix_new(store_share(of), (struct wpath){dir});
}

struct store *workspace_leases_new(struct workspace *ws)
{
	return leases_in(ws, workspace_store_of(ws, true));
}

struct store *workspace_brief_leases_new(struct workspace *ws)
{
	return leases_in(ws, workspace_store_of(ws, false));
}

bool workspace_is_remote(const struct workspace *ws)
{
	return place_is_remote(&ws->where);
}

struct wpath workspace_clearable(const struct workspace *ws)
{
	return ws->tool_root.whole && !ws->own_files ? (struct wpath){STR("files")} : WPATH_ROOT;
}

bool workspace_acts_for_person(const struct workspace *ws)
{
	return ws->rights.person;
}

bool workspace_files_are_own(const struct workspace *ws)
{
	return ws->own_files;
}

struct str workspace_own_dir(const struct workspace *ws)
{
	return ws->own_files ? ws->own_dir : STR("");
}

int workspace_make_dir(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct store_stat stat;
	int r = store_stat(ws->files, ctx, path, &stat, err); /* the guard refuses what is not for tools */

	if (r == 0 && stat.kind == STORE_FILE)
		return err_set(err, ERR_EXISTS, "\"%.*s\" is a file; choose another name", STR_ARG(path.s));
	if (r != -ERR_NOT_FOUND)
		return r;
	return ws->own_files ? own_dir_make(ctx->arena, ws->own_dir, path, err) : 0;
}

/* Whether a path of the user's part is one directory of this machine, with no other layer that shows through. */
static bool is_plain_dir(const struct workspace *ws, struct wpath path)
{
	bool has_user = !wpath_is_root(ws->user_dir), one_store = !ws->where.state.len && !jv_count(ws->where.users);

	return ws->dir.ptr && !ws->is_fork && one_store &&
	       !(has_user ? workspace_may_be_asset(path) : ws->templates != NULL);
}

struct str workspace_files_dir(const struct workspace *ws)
{
	return ws->own_files || is_plain_dir(ws, ws->tool_root.path) ? ws->place : STR_NONE;
}

struct str workspace_home_dir(const struct workspace *ws, struct arena *arena, struct wpath path)
{
	if (!is_plain_dir(ws, path))
		return STR_NONE;
	return arena_printf(arena, "%.*s%s%.*s/%.*s", STR_ARG(ws->whole), ws->user_dir.s.len ? "/" : "",
			    STR_ARG(ws->user_dir.s), STR_ARG(path.s));
}

struct str workspace_files_place(const struct workspace *ws)
{
	return ws->place;
}
