/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead fsck`: is the content of a store intact? Where `stead doctor` looks at the machine and at configuration, this
 * reads everything: each workspace's log from its first to its last record, every kept content against its hash, and
 * each file against what the log says that it is.
 *
 * Opening a log completes what a killed process left half done, as every opening does; nothing else is changed unless
 * repair is requested. Outside the workspaces, unfinished uploads and the cache are checked as well. A repair restores
 * only what can be derived: an unrecorded change is recorded, and leftovers of imports are removed. Damaged content
 * cannot be reconstructed; the report says what is lost with it.
 */
#include "admin/copy.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "revisions/revisions.h"
#include "store/lease.h"
#include "tool/family.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

/* Findings of one kind that are named one by one; the rest is counted. */
#define NAMED_MAX 20

struct fsck {
	struct ctx *ctx;
	struct jv *lines;
	struct store *base;
	bool repair;
};

static void tell(struct fsck *f, struct str workspace, const char *check, struct str detail, const char *fix)
{
	finding_add(&(struct findings){f->ctx->arena, f->lines, workspace}, check, detail, fix);
}

static struct str sentence(struct fsck *f, const struct err *err)
{
	return err_text(f->ctx->arena, err);
}

/* --- history --- */

struct damages {
	struct fsck *f;
	struct str name;
	const char *check;
	size_t told;
};

static void damage_found(void *arg, struct str sentence_)
{
	struct damages *d = arg;

	if (d->told++ < NAMED_MAX)
		tell(d->f, d->name, d->check, arena_str(d->f->ctx->arena, sentence_),
		     d->f->repair
			     ? "it was set aside, and the rest can be used"
			     : "restore it from a backup, or set it aside with --repair so that the rest can be used");
}

/* Tells what is damaged in a log and its contents. True: nothing is, or it is repaired. */
static bool check_log(struct fsck *f, struct str name, const char *what, struct store *log, struct store *meta)
{
	struct damages damages = {.f = f, .name = name, .check = what};
	struct rev_check check = {.repair = f->repair, .found = damage_found, .arg = &damages};
	struct arena *arena = f->ctx->arena;
	struct err err;
	int r = log ? revisions_check(log, f->ctx, &check, &err) : revisions_check_files(meta, f->ctx, &check, &err);

	if (r) {
		tell(f, name, what, sentence(f, &err), "restore .stead of this workspace from a backup");
		return false;
	}
	if (check.damages) {
		tell(f, name, what,
		     arena_printf(arena, "%llu place%s damaged%s", (unsigned long long)check.damages,
				  check.damages == 1 ? " is" : "s are", f->repair ? ", and set aside now" : ""),
		     "see the lines above");
		return f->repair;
	}
	tell(f, name, what,
	     check.last ? arena_printf(arena, "revisions %llu to %llu are in order", (unsigned long long)check.first,
				       (unsigned long long)check.last)
			: STR("there are no revisions yet"),
	     NULL);
	tell(f, name, log ? "contents" : "contents of --files",
	     arena_printf(arena, "%llu kept contents are whole%s", (unsigned long long)check.contents,
			  check.aside ? arena_printf(arena, "; %llu more %s set aside by an earlier repair",
						     (unsigned long long)check.aside, check.aside == 1 ? "was" : "were")
						.ptr
				      : ""),
	     NULL);
	return true;
}

/* The logs of directories that were served with --files. */
static void check_own(struct fsck *f, struct str name, struct store *view)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page;
	struct err err;

	if (store_list(view, f->ctx, (struct wpath){STR(".stead/own")}, &req, &page, &err))
		return;
	for (size_t i = 0; i < page.count; i++) {
		struct store *meta = store_prefix_new(store_share(view), page.entries[i].path);

		check_log(f, name, "history of --files", NULL, meta);
		store_destroy(meta);
	}
}

/* --- files --- */

/* 1: the file is not what its last record says; 0: it is, or the record does not tell. */
static int differs(struct fsck *f, struct store *raw, struct store *log, const struct store_entry *e, uint64_t head,
		   struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_hashing *hashing;
	struct rev_state state;
	struct ctx ctx = *f->ctx;
	struct sink sink;
	struct store_stat stat;
	int r;

	ctx.arena = arena;
	if (!revisions_knows(log, e->path))
		return 0;
	r = revisions_state(log, &ctx, e->path, head, &state, err);
	if (r)
		return r == -ERR_CORRUPT ? 0 : r; /* its record is lost, and that was found in the log */
	if (!state.exists || state.size != e->stat.size)
		return 1;
	if (!rev_hash_is_set(&state.hash))
		return 0;
	hashing = rev_hashing_begin(&state.hash);
	sink = (struct sink){.push = rev_hashing_push, .arg = hashing};
	r = store_read_stream(raw, &ctx, e->path, STORE_WHOLE, &sink, &stat, err);
	if (rev_hashing_end(hashing) || r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	return 1;
}

static const char record_fix[] =
	"it was changed without Stead; record the change with --repair (then it can be undone)";

static int compare_files(struct fsck *f, struct str name, struct store *raw, struct store *log, uint64_t head,
			 uint64_t *ret_files, uint64_t *ret_wrong, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct ctx ctx = *f->ctx;
	struct store_page page;
	int r;

	ctx.arena = arena;
	do {
		r = store_list(raw, &ctx, WPATH_ROOT, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct store_entry *e = &page.entries[i];

			if (wpath_within(e->path, (struct wpath){STR(".stead")}))
				continue;
			++*ret_files;
			r = differs(f, raw, log, e, head, err);
			if (r == 1 && ++*ret_wrong <= NAMED_MAX)
				tell(f, name, "files",
				     arena_printf(f->ctx->arena, "\"%.*s\" is not what its last record says",
						  STR_ARG(e->path.s)),
				     f->repair ? "it is recorded now" : record_fix);
			r = r == 1 ? 0 : r;
			if (r == 0)
				r = ctx_check(f->ctx, err);
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* The other way round: what the log says that is there. */
static int find_gone(struct fsck *f, struct str name, struct store *raw, struct store *log, uint64_t *ret_gone,
		     struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_query query = {.newest_first = true};
	struct strmap *seen = strmap_new(arena);
	struct ctx ctx = *f->ctx;
	struct revision *list;
	uint64_t noticed;
	size_t count;
	bool added;
	int r;

	ctx.arena = arena;
	r = revisions_query(log, &ctx, &query, &list, &count, NULL, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		strmap_put(seen, list[i].path.s, &added); /* the newest record of a path tells */
		if (!added || !list[i].after.exists)
			continue;
		r = store_stat(raw, &ctx, list[i].path, NULL, err);
		if (r != -ERR_NOT_FOUND)
			continue;
		if (++*ret_gone <= NAMED_MAX)
			tell(f, name, "files",
			     arena_printf(f->ctx->arena, "\"%.*s\" is gone; revision %llu has it",
					  STR_ARG(list[i].path.s), (unsigned long long)list[i].number),
			     f->repair ? "its removal is recorded now; 'stead restore' brings it back"
				       : "restore it with 'stead restore', or record its removal with --repair");
		r = f->repair ? revisions_notice(log, &ctx, list[i].path, &noticed, err) : 0;
		if (r == 0)
			r = ctx_check(f->ctx, err);
	}
	return r;
}

static void check_files(struct fsck *f, struct str name, struct store *raw, struct store *log, uint64_t head)
{
	uint64_t files = 0, wrong = 0, gone = 0, noticed = 0;
	struct err err;
	int r = compare_files(f, name, raw, log, head, &files, &wrong, &err);

	if (!r)
		r = find_gone(f, name, raw, log, &gone, &err);
	if (!r && wrong && f->repair)
		r = revisions_notice(log, f->ctx, WPATH_ROOT, &noticed, &err);
	if (r)
		tell(f, name, "files", sentence(f, &err), "look at the store with its own tools");
	else if (gone > NAMED_MAX)
		tell(f, name, "files", arena_printf(f->ctx->arena, "%llu files are gone", (unsigned long long)gone),
		     "see the lines above");
	else if ((wrong || gone) && wrong <= NAMED_MAX && !noticed)
		return;
	else if (wrong)
		tell(f, name, "files",
		     arena_printf(f->ctx->arena, "%llu of %llu files are not what their last record says%s",
				  (unsigned long long)wrong, (unsigned long long)files,
				  noticed ? "; this is recorded now" : ""),
		     f->repair ? "nothing more" : record_fix);
	else
		tell(f, name, "files",
		     arena_printf(f->ctx->arena,
				  files == 1 ? "%llu file is what the history says"
					     : "%llu files are what the history says",
				  (unsigned long long)files),
		     NULL);
}

/* --- the rest of a workspace --- */

static void check_leases(struct fsck *f, struct str name, struct store *view)
{
	struct store *leases = store_prefix_new(store_share(view), (struct wpath){STR(".stead/leases")});
	struct store_list_req req = {.limit = 1000};
	struct store_page page;
	struct err err;
	int r = store_list(leases, f->ctx, WPATH_ROOT, &req, &page, &err);

	for (size_t i = 0; !r && i < page.count; i++) {
		struct lease_info info;

		if (lease_show(leases, f->ctx, page.entries[i].path.s, &info, &err) == 0)
			continue;
		tell(f, name, "leases", sentence(f, &err), "remove the file when nobody holds the lease");
	}
	store_destroy(leases);
}

static void check_copy(struct fsck *f, struct str name, struct store *view)
{
	struct str text;
	struct err err;
	struct jv *mark;

	if (workspace_read(f->ctx, view, ".stead/copy.json", 4 * KIB, &text, &err) || !text.ptr ||
	    jv_parse(f->ctx->arena, text, &mark, &err))
		return;
	if (!jv_get_bool(mark, "done", false))
		tell(f, name, "copy", STR("this is an unfinished copy"),
		     "run the same 'stead copy' again: it continues where it stopped");
}

static void check_workspace(struct fsck *f, struct str name)
{
	struct store *view = store_prefix_new(store_share(f->base), (struct wpath){name}), *raw = NULL, *log = NULL;
	struct workspace_stores place = {.base = f->base};
	struct config config;
	uint64_t head;
	struct err err;
	bool is_fork;
	int r = fork_is(f->ctx, view, &is_fork, &err);

	if (!r && is_fork)
		r = fork_open_raw(f->ctx, &place, name, &raw, &err);
	else if (!r)
		raw = store_share(view);
	if (!r && workspace_load_config(f->ctx->arena, f->ctx, raw, NULL, &config, &err) != 0)
		tell(f, name, "configuration", sentence(f, &err), "correct the line");
	if (!r)
		r = workspace_record(f->ctx, &place, name, store_share(raw), ".stead/rev", &log, &err);
	if (r) {
		tell(f, name, "history", sentence(f, &err), "restore .stead of this workspace from a backup");
	} else if (check_log(f, name, "history", log, NULL)) {
		if (revisions_head(log, f->ctx, &head, &err))
			tell(f, name, "history", sentence(f, &err), "restore .stead of this workspace from a backup");
		else
			check_files(f, name, raw, log, head);
	}
	check_own(f, name, view);
	check_leases(f, name, view);
	check_copy(f, name, view);
	store_destroy(log);
	store_destroy(raw);
	store_destroy(view);
}

/* What an import that was killed left at the top of the store. */
static void check_leftovers(struct fsck *f)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page;
	struct err err;

	if (store_list(f->base, f->ctx, WPATH_ROOT, &req, &page, &err))
		return;
	for (size_t i = 0; i < page.count; i++) {
		struct str name = page.entries[i].path.s;

		if (!str_starts(name, STR(".import-")))
			continue;
		if (f->repair &&
		    store_remove(f->base, f->ctx, page.entries[i].path, true, (struct store_cond){0}, NULL, &err) == 0)
			tell(f, STR_NONE, "leftovers",
			     arena_printf(f->ctx->arena, "\"%.*s\" was left by an import; it is removed",
					  STR_ARG(name)),
			     NULL);
		else
			tell(f, STR_NONE, "leftovers",
			     arena_printf(f->ctx->arena, "\"%.*s\" was left by an import", STR_ARG(name)),
			     "remove it with --repair when no import is running");
	}
}

/* --- what belongs to no workspace --- */

/* Uploads that killed processes left in S3: they cost money and are not seen in any list. */
static void check_uploads(struct fsck *f, const struct place_config *config, struct str url)
{
	struct arena *arena = f->ctx->arena;
	struct store *s;
	struct err err;
	uint64_t stale;

	if (!str_starts(url, STR("s3:")) && !str_starts(url, STR("r2:")))
		return;
	if (store_open_url(url, &config->env, &s, &err)) {
		tell(f, STR_NONE, "uploads", sentence(f, &err), "correct the URL or its credentials");
		return;
	}
	if (store_s3_uploads(s, f->ctx, f->repair, &stale, &err))
		tell(f, STR_NONE, "uploads", sentence(f, &err), "let this user list multipart uploads");
	else if (!stale || f->repair)
		tell(f, STR_NONE, "uploads",
		     arena_printf(arena, "%llu unfinished uploads are older than a day%s", (unsigned long long)stale,
				  stale ? "; they are removed" : ""),
		     NULL);
	else
		tell(f, STR_NONE, "uploads",
		     arena_printf(arena, "%llu unfinished uploads are older than a day", (unsigned long long)stale),
		     "remove them with --repair");
	store_destroy(s);
}

static void check_cache(struct fsck *f, const struct place_config *config)
{
	struct arena *arena = f->ctx->arena;
	struct cache_state state;
	struct str found;

	if (!config->cache_bytes || !config->cache_dir.len || store_url_is_local(config->store) ||
	    !store_cache_check(arena_cstr(arena, config->cache_dir), f->repair, &state))
		return;
	found = arena_printf(arena, "%llu files, %.1f of %.1f MiB, in %.*s", (unsigned long long)state.files,
			     (double)state.bytes / 1048576, (double)config->cache_bytes / 1048576,
			     STR_ARG(config->cache_dir));
	if (state.damaged)
		tell(f, STR_NONE, "cache",
		     arena_printf(arena, "%.*s; %llu damaged%s", STR_ARG(found), (unsigned long long)state.damaged,
				  f->repair ? " are removed" : ""),
		     f->repair ? NULL : "they are ignored, and removed when they are read; --repair removes them now");
	else
		tell(f, STR_NONE, "cache", found, NULL);
}

static void check_place(struct fsck *f, struct str url)
{
	struct place_config config;
	struct err err;

	if (place_read(f->ctx->arena, url, &config, &err))
		return; /* it was opened, so it can be read */
	check_uploads(f, &config, config.store);
	if (config.state.len && !str_eq(config.state, config.store))
		check_uploads(f, &config, config.state);
	for (const struct jv_member *m = jv_first(config.users); m; m = m->next)
		check_uploads(f, &config, jv_get_str(m->value, "store"));
	check_cache(f, &config);
}

int store_fsck(struct ctx *ctx, struct str url, struct str workspace, bool repair, struct jv **ret_lines,
	       struct err *err)
{
	struct jv *names = jv_array(ctx->arena), *bad_names = jv_array(ctx->arena);
	struct fsck f = {.ctx = ctx, .lines = jv_array(ctx->arena), .repair = repair};
	struct str dir;
	uint64_t done = 0;
	int r = workspace_open_store(ctx->arena, url, false, false, &f.base, &dir, err);

	if (r)
		return r;
	if (workspace.len)
		jv_push(ctx->arena, names, jv_str(ctx->arena, workspace));
	else
		r = workspace_names(ctx, f.base, names, bad_names, err);
	if (!r && workspace.len)
		r = store_stat(f.base, ctx, (struct wpath){workspace}, NULL, err);
	for (const struct jv_member *m = jv_first(names); !r && m; m = m->next) {
		ctx_progress(ctx, done++, jv_count(names), m->value->u.s);
		check_workspace(&f, m->value->u.s);
		r = ctx_check(ctx, err);
	}
	if (!r && !workspace.len)
		check_leftovers(&f);
	if (!r && !workspace.len)
		check_place(&f, url);
	store_destroy(f.base);
	if (!r)
		*ret_lines = f.lines;
	return r;
}
