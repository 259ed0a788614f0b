/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose sandbox it is that a command finds again: that of its session, its user, its agent, or of everybody. Snapshots
 * are below .stead/sandbox/ of the workspace, where no tool and no command can reach them. The name of one is made from
 * the identity of the caller; nobody can ask for another's.
 */
#include "base/env.h"
#include "base/hash.h"
#include "command/cli.h"
#include "home/exec/exec_internal.h"
#include "store/stores.h"
#include "workspace/workspace.h"
#include "workspace/workspace_parts.h"

#define SCOPES    "none, session, user, agent or global"
#define LIST_MOST 10000

enum scope { KEEP_NONE, KEEP_SESSION, KEEP_USER, KEEP_AGENT, KEEP_GLOBAL, KEEP_SCOPES };
static const char *const scope_names[KEEP_SCOPES] = {"none", "session", "user", "agent", "global"};

static int scope_of(struct str word, enum scope *ret, struct err *err)
{
	for (size_t i = 0; i < KEEP_SCOPES; i++)
		if (str_is(word, scope_names[i])) {
			*ret = (enum scope)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "\"%.*s\" is not a way to keep a sandbox; the ways are  " SCOPES,
		       STR_ARG(utf8_first(word, 40)));
}

/* {"scope", "user"?, "agent"?, "session"?}: what makes it one and the same. */
static struct jv *identity(struct arena *arena, enum scope scope, const struct actor *actor)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "scope", str_of(scope_names[scope]));
	if ((scope == KEEP_SESSION || scope == KEEP_USER) && actor->user.len)
		jv_set_str(arena, v, "user", actor->user);
	if ((scope == KEEP_SESSION || scope == KEEP_AGENT) && actor->agent.len)
		jv_set_str(arena, v, "agent", actor->agent);
	if (scope == KEEP_SESSION)
		jv_set_str(arena, v, "session", actor->session);
	return v;
}

static struct str name_of(struct arena *arena, const struct jv *identity)
{
	struct buf text;

	buf_init(&text, arena, 64 * KIB);
	jv_write(&text, identity);
	return hash_hex128(arena, buf_str(&text));
}

static struct wpath path_of(struct workspace *ws, struct arena *arena, struct str name)
{
	return (struct wpath){
		arena_printf(arena, "%.*s/" SNAPSHOTS_DIR "/%.*s", STR_ARG(workspace_name(ws)), STR_ARG(name))};
}

/* Next to the workspace on disk, with which it goes, else in the cache of the person; NULL: nowhere. */
static const char *cache_of(struct workspace *ws, struct arena *arena, struct str name)
{
	const char *cache = env_process("XDG_CACHE_HOME"), *home = env_process("HOME");
	struct str dir = workspace_dir(ws), key;

	if (dir.ptr)
		return arena_printf(arena, "%.*s/.stead/cache/sandbox/%.*s", STR_ARG(dir), STR_ARG(name)).ptr;
	key = hash_hex128(
		arena, arena_printf(arena, "%.*s\n%.*s", STR_ARG(workspace_url_of(ws)), STR_ARG(workspace_name(ws))));
	if (cache && cache[0] == '/')
		return arena_printf(arena, "%s/stead/sandbox/%s/%.*s", cache, key.ptr, STR_ARG(name)).ptr;
	if (home && home[0] == '/')
		return arena_printf(arena, "%s/.cache/stead/sandbox/%s/%.*s", home, key.ptr, STR_ARG(name)).ptr;
	return NULL;
}

int exec_keep_as(struct workspace *ws, struct ctx *ctx, const struct jv *about, struct sandbox_job *job,
		 struct err *err)
{
	const struct jv *config = jv_get(workspace_config(ws)->document, "sandbox");
	struct sandbox_keep *keep = ARENA_NEW(ctx->arena, struct sandbox_keep);
	struct str name = name_of(ctx->arena, about);

	keep->about = about;
	keep->store = workspace_store_of(ws, true);
	keep->dir = path_of(ws, ctx->arena, name);
	keep->cache = cache_of(ws, ctx->arena, name);
	keep->quota = workspace_home(ws);
	if (!config_size(jv_get(config, "snapshot_size"), SNAPSHOT_SIZE_DEFAULT, &keep->size_max))
		return err_set(err, ERR_INVALID, "agent.yaml: sandbox.snapshot_size is too large");
	if (!keep->cache)
		return err_set(err, ERR_UNAVAILABLE,
			       "there is no directory for what commands leave behind; set XDG_CACHE_HOME or HOME");
	/* users who share a sandbox share its files, so on the host they are one user */
	if (!jv_get(about, "user"))
		job->owner = arena_printf(ctx->arena, "%.*s//%.*s", STR_ARG(workspace_name(ws)), STR_ARG(name));
	job->keep = keep;
	return 0;
}

int exec_keep(struct workspace *ws, struct ctx *ctx, struct str word, struct sandbox_job *job, struct err *err)
{
	struct actor actor = workspace_actor(ws);
	enum scope scope = KEEP_NONE;
	int r = word.len ? scope_of(word, &scope, err) : 0;

	job->keep = NULL;
	if (ctx->actor.session.len)
		actor.session = ctx->actor.session;
	if (r || scope == KEEP_NONE || (scope == KEEP_SESSION && !actor.session.len))
		return r; /* nobody comes back to a command without a session */
	return exec_keep_as(ws, ctx, identity(ctx->arena, scope, &actor), job, err);
}

/* --- all of them --- */

static struct wpath all_of(struct workspace *ws, struct arena *arena)
{
	return (struct wpath){arena_printf(arena, "%.*s/" SNAPSHOTS_DIR, STR_ARG(workspace_name(ws)))};
}

static int for_each(struct cli *cli, snapshot_fn each, void *arg, struct err *err)
{
	return snapshots_each(workspace_store_of(cli->ws, true), &cli->ctx, all_of(cli->ws, cli->ctx.arena), each, arg,
			      err);
}

static int add_one(void *arg, struct ctx *ctx, struct str name, struct store *store, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct snapshot_info info;
	struct jv *list = arg, *v = jv_object(arena);
	int r = snapshot_show(store, ctx, &info, err);

	if (r == -ERR_NOT_FOUND || jv_count(list) == LIST_MOST)
		return 0;
	jv_set_str(arena, v, "id", str_first(name, 12));
	if (r) {
		jv_set_str(arena, v, "problem", err_text(arena, err));
	} else {
		for (const struct jv_member *m = jv_first(info.about); m; m = m->next)
			jv_set_key(arena, v, m->key, jv_copy(arena, m->value));
		jv_set_int(arena, v, "files", (int64_t)info.files);
		jv_set_int(arena, v, "bytes", (int64_t)info.bytes);
		jv_set_str(arena, v, "saved", info.saved);
		jv_set_str(arena, v, "snapshot", info.id);
	}
	jv_push(arena, list, v);
	return r == -ERR_CANCELLED ? r : 0;
}

struct dropping {
	struct workspace *ws;
	const struct args *args; /* ids; with --all every one */
	uint64_t dropped;
};

static int drop_one(void *arg, struct ctx *ctx, struct str name, struct store *store, struct err *err)
{
	struct dropping *d = arg;
	bool wanted = args_has(d->args, "all");
	int r;

	for (size_t i = 0; i < d->args->operand_count; i++)
		wanted |= d->args->operands[i].len >= 6 && str_starts(name, d->args->operands[i]);
	if (!wanted)
		return 0;
	r = snapshot_drop(store, ctx, err);
	if (r == 0) {
		const char *cache = cache_of(d->ws, ctx->arena, name);
		struct err ignored;

		d->dropped++;
		if (cache)
			snapshot_forget(cache);
		(void)store_remove(store, ctx, WPATH_ROOT, true, (struct store_cond){0}, NULL, &ignored);
	}
	return r;
}

/* --- commands --- */

int sandbox_list(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *list = jv_array(arena), *v = jv_object(arena);
	int r = for_each(cli, add_one, list, err);

	if (r)
		return r;
	jv_set(arena, v, "sandboxes", list);
	if (cli_json(cli, v))
		return 0;
	if (!jv_count(list))
		output_printf(&cli->out, "no sandbox is kept; set sandbox.keep in agent.yaml to keep some\n");
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str problem = jv_get_str(m->value, "problem");

		output_printf(&cli->out, "%.*s  ", STR_ARG(jv_get_str(m->value, "id")));
		if (problem.len) {
			output_printf(&cli->out, "%.*s\n", STR_ARG(problem));
			continue;
		}
		output_printf(
			&cli->out, "%.*s, %.*s, saved %.*s", STR_ARG(value_count(arena, m->value, "files", "file")),
			STR_ARG(value_count(arena, m->value, "bytes", "byte")), STR_ARG(jv_get_str(m->value, "saved")));
		for (size_t i = KEEP_SESSION; i < KEEP_GLOBAL; i++) {
			struct str value = jv_get_str(m->value, scope_names[i]);

			if (value.len)
				output_printf(&cli->out, ", %s %.*s", scope_names[i], STR_ARG(value));
		}
		if (str_is(jv_get_str(m->value, "scope"), scope_names[KEEP_GLOBAL]))
			output_printf(&cli->out, ", for everybody");
		else if (str_is(jv_get_str(m->value, "scope"), "tools"))
			output_printf(&cli->out, ", packages of tools");
		for (size_t i = KEEP_USER; i <= KEEP_AGENT; i++)
			if (str_is(jv_get_str(m->value, "scope"), scope_names[i]) &&
			    !jv_get_str(m->value, scope_names[i]).len)
				output_printf(&cli->out, ", %s not named", scope_names[i]);
		output_printf(&cli->out, "\n");
	}
	return 0;
}

int sandbox_drop(struct cli *cli, struct err *err)
{
	struct dropping d = {.ws = cli->ws, .args = &cli->args};
	struct jv *v = jv_object(cli->ctx.arena);
	int r;

	if (!cli->args.operand_count && !args_has(&cli->args, "all"))
		return err_set(err, ERR_INVALID,
			       "sandbox drop: name the ids that `stead sandbox list` shows, or give --all");
	r = for_each(cli, drop_one, &d, err);
	if (r)
		return r;
	if (!d.dropped && !args_has(&cli->args, "all"))
		return err_set(err, ERR_NOT_FOUND,
			       "no kept sandbox has this id; `stead sandbox list` shows them (give at least 6 digits)");
	jv_set_int(cli->ctx.arena, v, "dropped", (int64_t)d.dropped);
	if (!cli_json(cli, v))
		output_printf(&cli->out, "%llu dropped\n", (unsigned long long)d.dropped);
	return 0;
}
