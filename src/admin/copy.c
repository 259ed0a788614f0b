/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead copy`: workspaces from one store to another, of any kind.
 *
 * Files are copied as they are, one by one and several at once. What was compared once is noted with both versions in
 * the destination (.stead/copy.jsonl): a second run asks for versions only, which the list gives for one side. Without
 * a note, sizes and then hashes decide. The history cannot be copied as it is stored, since each kind of store keeps it
 * in its own form; its records are transferred in the bundle format and appended to those that the target has. So a
 * later run continues a copy that was interrupted or is out of date.
 *
 * A mark (.stead/copy.json) says what the destination is a copy of. It is written first, so that an interrupted copy is
 * known as one, and it is what keeps two workspaces of one name from being mixed. The destination's history shows
 * whether it was changed since: it has to be the beginning of the source's.
 */
#include "admin/copy.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "revisions/revisions.h"
#include "workspace/fork.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

#define WORKERS     8
#define NOTES_PATH  ".stead/copy.jsonl"
#define MARK_PATH   ".stead/copy.json"
#define NOTES_MAX   (512 * MIB)
#define SMALL       (1 * MIB)
#define NOTES_EVERY 5000

struct note {
	struct str path, from, to; /* versions */
};

struct side {
	struct place_config config;
	struct store *base; /* of all workspaces */
	struct str dir, shown;
};

struct copying {
	struct ctx *ctx;
	const struct copy_req *req;
	struct side *from, *to;
	struct store *source, *target; /* this workspace */
	struct store *log;             /* of the source */
	struct str name, id;
	struct arena *arena; /* of the notes */
	struct strmap *known;
	struct note *notes;
	size_t note_count, note_cap;
	pthread_mutex_t lock; /* of the notes and of what follows */
	uint64_t files, bytes, copied, copied_bytes, same, removed, total;
	const struct store_page *page;
	atomic_size_t next;
	int bad;
	struct err err;
};

static struct store_cond any(void)
{
	return (struct store_cond){0};
}

/* --- notes --- */

static void add_note(struct copying *c, struct str path, struct str from, struct str to)
{
	size_t *at;
	bool added;

	pthread_mutex_lock(&c->lock);
	path = arena_str(c->arena, path);
	at = strmap_put(c->known, path, &added);
	if (added) {
		if (c->note_count == c->note_cap) {
			size_t cap = c->note_cap ? 2 * c->note_cap : 256;

			c->notes = xrealloc(c->notes, cap * sizeof *c->notes);
			c->note_cap = cap;
		}
		*at = c->note_count++;
	}
	c->notes[*at] = (struct note){path, arena_str(c->arena, from), arena_str(c->arena, to)};
	pthread_mutex_unlock(&c->lock);
}

static bool is_noted(struct copying *c, struct str path, struct str from, struct str to)
{
	size_t *at;
	bool same;

	pthread_mutex_lock(&c->lock);
	at = strmap_find(c->known, path);
	same = at && str_eq(c->notes[*at].from, from) && str_eq(c->notes[*at].to, to);
	pthread_mutex_unlock(&c->lock);
	return same;
}

static int read_notes(struct copying *c, struct ctx *ctx, struct err *err)
{
	struct str text, line;
	int r = workspace_read(ctx, c->target, NOTES_PATH, NOTES_MAX, &text, err);

	while (!r && str_cut(&text, '\n', &line)) {
		struct err ignored;
		struct jv *v;

		if (line.len &&
		    jv_parse(ctx->arena, line, &v, &ignored) == 0) /* a line that is torn is a file more to look at */
			add_note(c, jv_get_str(v, "path"), jv_get_str(v, "from"), jv_get_str(v, "to"));
	}
	return r;
}

static int write_notes(struct copying *c, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *c->ctx;
	struct buf b;
	int r;

	ctx.arena = arena;
	buf_init(&b, NULL, NOTES_MAX);
	for (size_t i = 0; i < c->note_count; i++) {
		buf_lit(&b, "{\"path\":");
		jv_write_string(&b, c->notes[i].path);
		buf_lit(&b, ",\"from\":");
		jv_write_string(&b, c->notes[i].from);
		buf_lit(&b, ",\"to\":");
		jv_write_string(&b, c->notes[i].to);
		buf_lit(&b, "}\n");
	}
	r = b.overflow ? 0
		       : store_write(c->target, &ctx, (struct wpath){STR(NOTES_PATH)}, buf_str(&b), any(), NULL, err);
	buf_release(&b);
	return r;
}

/* --- one file --- */

static int hash_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	hash_stream_add(arg, str_n(bytes, len));
	return 0;
}

static int hash_file(struct store *s, struct ctx *ctx, struct wpath path, uint64_t ret_hash[2],
		     struct store_stat *ret_stat, struct err *err)
{
	struct hash_stream *stream = hash_stream_new();
	struct sink sink = {.push = hash_push, .arg = stream};
	int r = store_read_stream(s, ctx, path, STORE_WHOLE, &sink, ret_stat, err);

	hash_stream_end(stream, ret_hash);
	return r;
}

static int has_same_bytes(struct copying *c, struct ctx *ctx, struct wpath path, bool *ret_same,
			  struct store_stat *from, struct store_stat *to, struct err *err)
{
	uint64_t x[2], y[2];
	int r = hash_file(c->source, ctx, path, x, from, err);

	if (!r)
		r = hash_file(c->target, ctx, path, y, to, err);
	*ret_same = !r && x[0] == y[0] && x[1] == y[1];
	return r;
}

/* Copies and reads back. */
static int transfer(struct copying *c, struct ctx *ctx, const struct store_entry *e, struct store_stat *from,
		    struct store_stat *to, struct err *err)
{
	struct source source = {.mode = e->stat.mode};
	struct str back;
	bool same;
	int r;

	if (e->stat.size > SMALL) {
		r = store_copy_between(c->source, ctx, e->path, c->target, e->path, any(), to, err);
		if (!r)
			r = has_same_bytes(c, ctx, e->path, &same, from, to, err);
	} else {
		r = store_read(c->source, ctx, e->path, STORE_WHOLE, 2 * SMALL, &source.bytes, from, err);
		if (!r)
			r = store_write_stream(c->target, ctx, e->path, &source, any(), to, err);
		if (!r)
			r = store_read(c->target, ctx, e->path, STORE_WHOLE, 2 * SMALL, &back, to, err);
		same = !r && str_eq(source.bytes, back);
	}
	if (!r && !same)
		r = err_set(err, ERR_CONFLICT,
			    "\"%.*s\" changed while it was being copied; run the command "
			    "again",
			    STR_ARG(e->path.s));
	return r;
}

static int copy_one(struct copying *c, struct ctx *ctx, const struct store_entry *e, struct err *err)
{
	struct store_stat from = e->stat, to;
	bool same = false;
	int r = store_stat(c->target, ctx, e->path, &to, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (!r && to.kind == STORE_FILE) {
		same = is_noted(c, e->path.s, e->stat.version, to.version);
		if (!same && to.size == e->stat.size) {
			r = has_same_bytes(c, ctx, e->path, &same, &from, &to, err);
			if (r)
				return r == -ERR_NOT_FOUND ? 0 : r;
			if (same)
				add_note(c, e->path.s, from.version, to.version);
		}
	}
	if (!same && !c->req->dry_run) {
		r = transfer(c, ctx, e, &from, &to, err);
		if (r == -ERR_NOT_FOUND) /* removed at the source since it was listed */
			return 0;
		if (r)
			return r;
		add_note(c, e->path.s, from.version, to.version);
	}
	pthread_mutex_lock(&c->lock);
	c->files++;
	c->bytes += e->stat.size;
	c->same += same;
	c->copied += !same;
	c->copied_bytes += same ? 0 : e->stat.size;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* --- all files --- */

/* What is copied file by file: all but Stead's own, and of that what tells what the workspace is (a fork's parent). */
static bool is_copied(struct str path)
{
	static const struct str own[] = {STR(".stead/rev/"),  STR(".stead/own/"),  STR(".stead/leases/"),
					 STR(".stead/tmp/"),  STR(".stead/copy."), STR(".stead/index/"),
					 STR(".stead/cache/")};

	for (size_t i = 0; i < COUNT(own); i++)
		if (str_starts(path, own[i]))
			return false;
	return true;
}

static void *worker(void *arg)
{
	struct copying *c = arg;
	struct arena *arena = arena_new();
	struct ctx ctx = *c->ctx;
	size_t i;

	ctx.arena = arena;
	ctx.progress = NULL;
	while (c->bad == 0 && (i = atomic_fetch_add(&c->next, 1)) < c->page->count) {
		const struct store_entry *e = &c->page->entries[i];
		struct err err;
		int r = is_copied(e->path.s) ? copy_one(c, &ctx, e, &err) : 0;

		if (!r)
			r = ctx_check(&ctx, &err);
		pthread_mutex_lock(&c->lock);
		if (r && !c->bad) {
			c->bad = r;
			c->err = err;
		}
		pthread_mutex_unlock(&c->lock);
		arena_reset(arena);
	}
	arena_destroy(arena);
	return NULL;
}

static int copy_page(struct copying *c, const struct store_page *page, struct err *err)
{
	pthread_t threads[WORKERS];
	unsigned started = 0;

	c->page = page;
	atomic_store(&c->next, 0);
	while (started < WORKERS && started < page->count && pthread_create(&threads[started], NULL, worker, c) == 0)
		started++;
	if (!started && page->count)
		worker(c);
	while (started)
		pthread_join(threads[--started], NULL);
	ctx_progress(c->ctx, c->files, c->total, c->name);
	if (c->bad)
		*err = c->err;
	return c->bad;
}

static int copy_files(struct copying *c, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_list_req req = {.recursive = true, .limit = 200};
	struct workspace_usage usage;
	struct ctx ctx = *c->ctx;
	struct store_page page;
	uint64_t noted = 0;
	char cursor[PATH_LEN_MAX + 2];
	int r = 0;

	ctx.arena = arena;
	if (c->ctx->progress && workspace_count(&ctx, c->source, &usage, err) == 0)
		c->total = usage.files;
	do {
		arena_reset(arena);
		r = store_list(c->source, &ctx, WPATH_ROOT, &req, &page, err);
		if (!r)
			r = copy_page(c, &page, err);
		if (!r && page.next.ptr) {
			memcpy(cursor, page.next.ptr, page.next.len);
			req.after = str_n(cursor, page.next.len);
		}
		if (!r && !c->req->dry_run && c->copied > noted + NOTES_EVERY) {
			noted = c->copied;
			r = write_notes(c, err);
		}
	} while (!r && page.next.ptr);
	return r;
}

/* Removes the files that the source no longer has. */
static int remove_others(struct copying *c, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct ctx ctx = *c->ctx;
	struct store_page page;
	int r;

	ctx.arena = arena;
	do {
		r = store_list(c->target, &ctx, WPATH_ROOT, &req, &page, err);
		for (size_t i = 0; !r && i < page.count; i++) {
			struct wpath path = page.entries[i].path;

			if (!is_copied(path.s))
				continue;
			r = store_stat(c->source, &ctx, path, NULL, err);
			if (r != -ERR_NOT_FOUND)
				continue;
			c->removed++;
			r = c->req->dry_run ? 0 : store_remove(c->target, &ctx, path, false, any(), NULL, err);
		}
		req.after = page.next;
	} while (!r && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* --- history --- */

static bool wants_all(void *arg, struct wpath path)
{
	(void)arg, (void)path;
	return true;
}

/* A blob by way of memory or, when it is large, of a pipe between two threads would be needed: the store pulls, the log
   pushes. Blobs are files that were once written whole, so they are read by their name instead, as files. */
static int put_blobs(struct copying *c, const struct rev_carry *carry, struct err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < carry->blob_count; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = *c->ctx;
		struct rev_hashing *hashing;
		struct sink sink = {.push = rev_hashing_push};
		struct store_stat stat;
		struct wpath path;
		struct str name;

		ctx.arena = arena;
		name = rev_blob_name(arena, &carry->blobs[i].hash);
		path.s = arena_printf(arena, ".stead/rev/blobs/%.*s", STR_ARG(name));
		if (store_stat(c->target, &ctx, path, &stat, err) == 0 && stat.size == carry->blobs[i].size)
			continue;
		r = store_copy_between(c->source, &ctx, path, c->target, path, any(), &stat, err);
		hashing = rev_hashing_begin(&carry->blobs[i].hash);
		sink.arg = hashing;
		if (!r)
			r = store_read_stream(c->target, &ctx, path, STORE_WHOLE, &sink, &stat, err);
		if (!rev_hashing_end(hashing) && !r)
			r = err_set(err, ERR_CORRUPT,
				    "a kept content is damaged (%.*s); 'stead fsck --repair' sets it aside, then copy "
				    "again",
				    STR_ARG(name));
		if (!r)
			r = ctx_check(c->ctx, err);
	}
	return r;
}

static int open_log(struct copying *c, const struct side *side, struct store *view, struct store **ret, struct err *err)
{
	struct workspace_stores place = {.base = side->base};
	struct store *raw;
	bool is_fork;
	int r = fork_is(c->ctx, view, &is_fork, err);

	if (r)
		return r;
	if (is_fork)
		r = fork_open_raw(c->ctx, &place, c->name, &raw, err);
	else
		raw = store_share(view);
	return r ? r : workspace_record(c->ctx, &place, c->name, raw, ".stead/rev", ret, err);
}

/* Looks whether the target's history is the beginning of the source's; where it is not, the target has changes of its
   own. */
static int compare_history(struct copying *c, struct store *log, uint64_t *ret_head, struct err *err)
{
	uint64_t differs;
	int r = revisions_compare(log, c->ctx, c->log, ret_head, &differs, err);

	if (r || !differs)
		return r;
	return err_set(err, ERR_CONFLICT,
		       "the copy in %.*s has been changed since: revision %llu there is not this one's; copying would "
		       "undo that: "
		       "remove that workspace there and copy again, or copy into another store",
		       STR_ARG(c->to->shown), (unsigned long long)differs);
}

/* Appends the records that the target's history lacks. */
static int copy_history(struct copying *c, struct rev_carry *carry, struct err *err)
{
	struct store *log;
	int r = revisions_head(c->log, c->ctx, &carry->until, err);

	carry->wanted = wants_all;
	if (!r && c->req->dry_run)
		return revisions_carry(c->log, c->ctx, carry, err);
	if (!r)
		r = open_log(c, c->to, c->target, &log, err);
	if (r)
		return r;
	r = compare_history(c, log, &carry->since, err);
	if (!r)
		r = revisions_carry(c->log, c->ctx, carry, err);
	if (!r)
		r = put_blobs(c, carry, err);
	if (!r)
		r = revisions_follow(log, c->ctx, c->log, carry, err);
	store_destroy(log);
	return r;
}

/* --- the mark --- */

static int write_mark(struct copying *c, uint64_t head, bool done, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	struct jv *v = jv_object(arena);
	struct buf b;

	jv_set_str(arena, v, "source", c->id);
	jv_set_int(arena, v, "head", (int64_t)head);
	jv_set_bool(arena, v, "done", done);
	buf_init(&b, arena, 4 * KIB);
	jv_write(&b, v);
	return store_write(c->target, c->ctx, (struct wpath){STR(MARK_PATH)}, buf_str(&b), any(), NULL, err);
}

/* True for the directories that a copy made before it was killed, with no mark in them yet. */
static bool is_empty(struct copying *c)
{
	struct store_list_req req = {.recursive = true, .limit = 1};
	struct store_page page;
	struct err ignored;

	return store_list(c->target, c->ctx, WPATH_ROOT, &req, &page, &ignored) == 0 && page.count == 0;
}

/* A workspace of that name is a copy of this one and nothing else, or there is none. */
static int check_target(struct copying *c, struct err *err)
{
	struct store *log;
	struct str text;
	struct jv *v = NULL;
	uint64_t head;
	int r = store_stat(c->to->base, c->ctx, (struct wpath){c->name}, NULL, err);

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = workspace_read(c->ctx, c->target, MARK_PATH, 4 * KIB, &text, err);
	if (!r && text.ptr)
		r = jv_parse(c->ctx->arena, text, &v, err);
	if (r || (!text.ptr && is_empty(c)))
		return r;
	if (!str_eq(jv_get_str(v, "source"), c->id))
		return err_set(
			err, ERR_EXISTS,
			"there is a workspace \"%.*s\" in %.*s that is not a copy of this one; two workspaces are not "
			"mixed: remove or rename it",
			STR_ARG(c->name), STR_ARG(c->to->shown));
	r = open_log(c, c->to, c->target, &log, err);
	if (r)
		return r;
	r = compare_history(c, log, &head, err);
	store_destroy(log);
	return r;
}

/* --- workspaces --- */

static struct jv *describe(struct copying *c, const struct rev_carry *carry)
{
	struct arena *arena = c->ctx->arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", c->name);
	jv_set_int(arena, v, "files", (int64_t)c->files);
	jv_set_int(arena, v, "bytes", (int64_t)c->bytes);
	jv_set_int(arena, v, "copied", (int64_t)c->copied);
	jv_set_int(arena, v, "copied_bytes", (int64_t)c->copied_bytes);
	jv_set_int(arena, v, "same", (int64_t)c->same);
	jv_set_int(arena, v, "removed", (int64_t)c->removed);
	jv_set_int(arena, v, "revisions", (int64_t)carry->revisions);
	jv_set_int(arena, v, "head", (int64_t)carry->head);
	jv_set_int(arena, v, "missing", (int64_t)carry->missing);
	return v;
}

static int copy_all(struct copying *c, struct rev_carry *carry, struct err *err)
{
	struct err notes;
	int r = open_log(c, c->from, c->source, &c->log, err);

	if (!r)
		r = check_target(c, err);
	if (!r)
		r = read_notes(c, c->ctx, err);
	if (!r && !c->req->dry_run)
		r = write_mark(c, 0, false, err);
	if (r)
		return r;
	r = copy_files(c, err);
	if (!c->req->dry_run && write_notes(c, r ? &notes : err) &&
	    !r) /* also of a failed copy: the next run continues it */
		return -(int)err->kind;
	if (!r && c->req->remove)
		r = remove_others(c, err);
	if (!r)
		r = copy_history(c, carry, err);
	return r || c->req->dry_run ? r : write_mark(c, carry->head, true, err);
}

static int copy_workspace(struct ctx *ctx, const struct copy_req *req, struct side *from, struct side *to,
			  struct str name, struct jv *list, struct err *err)
{
	struct copying c = {.ctx = ctx, .req = req, .from = from, .to = to, .name = name, .arena = arena_new()};
	struct rev_carry carry = {0};
	int r;

	c.id = hash_hex128(ctx->arena, arena_printf(ctx->arena, "%.*s\n%.*s", STR_ARG(from->shown), STR_ARG(name)));
	c.known = strmap_new(c.arena);
	c.source = store_prefix_new(store_share(from->base), (struct wpath){name});
	c.target = store_prefix_new(store_share(to->base), (struct wpath){name});
	pthread_mutex_init(&c.lock, NULL);
	r = copy_all(&c, &carry, err);
	if (!r)
		jv_push(ctx->arena, list, describe(&c, &carry));
	pthread_mutex_destroy(&c.lock);
	store_destroy(c.log);
	store_destroy(c.source);
	store_destroy(c.target);
	free(c.notes);
	arena_destroy(c.arena);
	return r ? err_prefix(err, "copy \"%.*s\"", STR_ARG(name)) : 0;
}

static int open_side(struct arena *arena, struct str url, bool create, struct side *ret, struct err *err)
{
	int r = place_read(arena, url, &ret->config, err);

	ret->shown = str_starts(url, STR("config:")) ? url : store_url_shown(arena, ret->config.store);
	return r ? r : place_open_all(arena, &ret->config, create, false, &ret->base, &ret->dir, err);
}

/* --- which workspaces --- */

/* True for what `stead init`, a fork or a first change leaves in a directory. */
static int is_workspace(struct ctx *ctx, struct store *home, bool *ret, struct err *err)
{
	int r = workspace_exists(ctx, home, ret, err);

	if (r || *ret)
		return r;
	r = store_stat(home, ctx, (struct wpath){STR(".stead")}, NULL, err);
	*ret = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* The first workspace in `dir`, which is not one itself; empty: there is none. */
static struct str find_workspace(struct ctx *ctx, struct store *dir)
{
	struct jv *names = jv_array(ctx->arena);
	struct err ignored;

	if (workspace_names(ctx, dir, names, jv_array(ctx->arena), &ignored))
		return STR_NONE;
	for (const struct jv_member *m = jv_first(names); m; m = m->next) {
		struct store *home = store_prefix_new(store_share(dir), (struct wpath){m->value->u.s});
		bool found;
		int r = is_workspace(ctx, home, &found, &ignored);

		store_destroy(home);
		if (r == 0 && found)
			return m->value->u.s;
	}
	return STR_NONE;
}

/* Refuses a directory that is not a workspace, and says where the workspaces are if they are in it. */
static int check_is_workspace(struct ctx *ctx, const struct side *from, struct str name, struct err *err)
{
	struct store *home = store_prefix_new(store_share(from->base), (struct wpath){name});
	struct str inside = STR_NONE;
	bool found;
	int r = is_workspace(ctx, home, &found, err);

	if (r == 0 && !found)
		inside = find_workspace(ctx, home);
	store_destroy(home);
	if (r || found)
		return r;
	if (inside.len)
		return err_set(err, ERR_INVALID,
			       "copy: \"%.*s\" in %.*s is not a workspace but has workspaces in it, such as \"%.*s\"; "
			       "did you mean the store %.*s/%.*s?",
			       STR_ARG(name), STR_ARG(from->shown), STR_ARG(inside), STR_ARG(from->shown),
			       STR_ARG(name));
	return err_set(err, ERR_INVALID,
		       "copy: %.*s is not a store of workspaces: \"%.*s\" in it has none of AGENTS.md, AGENT.md, "
		       "agent.yaml and .stead/; name the directory that has the workspaces, or one workspace with -w",
		       STR_ARG(from->shown), STR_ARG(name));
}

/* A directory of files in which there is no workspace is not a store; an empty one is. */
static int check_is_store(struct ctx *ctx, const struct side *from, struct err *err)
{
	struct store_list_req req = {.limit = 1};
	struct store_page page;
	int r = store_list(from->base, ctx, WPATH_ROOT, &req, &page, err);

	if (r || page.count == 0)
		return r;
	return err_set(
		err, ERR_INVALID,
		"copy: %.*s is not a store of workspaces: it has files, such as \"%.*s\", and no workspace; name the "
		"directory that has the workspaces",
		STR_ARG(from->shown), STR_ARG(page.entries[0].path.s));
}

/* Adds a workspace after its parent, so that a fork finds its parent at the destination. */
static int add_in_order(struct ctx *ctx, struct side *from, struct str name, struct strmap *all, struct jv *ret_names,
			struct err *err)
{
	size_t *is_added = strmap_find(all, name);
	struct store *home;
	struct fork_info info;
	bool is_fork;
	int r;

	if (!is_added || *is_added)
		return 0; /* not to be copied, or added before */
	*is_added = 1;
	home = store_prefix_new(store_share(from->base), (struct wpath){name});
	r = fork_read(ctx, home, &info, &is_fork, err);
	store_destroy(home);
	if (r == 0 && is_fork)
		r = add_in_order(ctx, from, info.parent, all, ret_names, err);
	if (r == 0)
		jv_push(ctx->arena, ret_names, jv_str(ctx->arena, name));
	return r;
}

static int choose_workspaces(struct ctx *ctx, const struct copy_req *req, struct side *from, struct jv *ret_names,
			     struct err *err)
{
	struct jv *found = jv_array(ctx->arena);
	struct strmap *all = strmap_new(ctx->arena);
	int r = 0;

	if (req->workspace.len && !workspace_name_ok(req->workspace))
		return workspace_bad_name(req->workspace, err);
	if (req->workspace.len) {
		r = store_stat(from->base, ctx, (struct wpath){req->workspace}, NULL, err);
		jv_push(ctx->arena, found, jv_str(ctx->arena, req->workspace));
	} else {
		r = workspace_names(ctx, from->base, found, jv_array(ctx->arena), err);
		if (r == 0 && !jv_first(found))
			r = check_is_store(ctx, from, err);
	}
	for (const struct jv_member *m = jv_first(found); m && r == 0; m = m->next) {
		r = check_is_workspace(ctx, from, m->value->u.s, err);
		strmap_put(all, m->value->u.s, NULL);
	}
	for (const struct jv_member *m = jv_first(found); m && r == 0; m = m->next)
		r = add_in_order(ctx, from, m->value->u.s, all, ret_names, err);
	return r;
}

int store_copy_workspaces(struct ctx *ctx, const struct copy_req *req, struct jv **ret_report, struct err *err)
{
	struct jv *names = jv_array(ctx->arena), *list = jv_array(ctx->arena), *report = jv_object(ctx->arena);
	struct side from = {0}, to = {0};
	int r = open_side(ctx->arena, req->from, false, &from, err);

	if (!r)
		r = choose_workspaces(ctx, req, &from, names, err);
	if (!r)
		r = open_side(ctx->arena, req->to, true, &to, err);
	if (!r && str_eq(from.shown, to.shown))
		r = err_set(err, ERR_INVALID, "source and destination are the same store; name another destination");
	for (const struct jv_member *m = jv_first(names); m && !r; m = m->next)
		r = copy_workspace(ctx, req, &from, &to, m->value->u.s, list, err);
	store_destroy(from.base);
	store_destroy(to.base);
	jv_set_bool(ctx->arena, report, "dry_run", req->dry_run);
	jv_set(ctx->arena, report, "workspaces", list);
	if (!r)
		*ret_report = report;
	return r;
}
