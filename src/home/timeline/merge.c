/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging a fork into its parent.
 *
 * What the fork changed is what its own log says since it was last merged: theirs is the fork now, base is the fork as
 * it was at that last merge (at the first: before its first change, which is the parent at the fork's revision), ours
 * is the parent now. That is what git takes as a base too, and it makes a second merge bring only what is new.
 *
 * First everything is decided, then the conflicts are counted, then the changes are made, each under the condition that
 * the parent's file is still the one that was compared; if it has changed, the file is decided again. All changes carry
 * one call, so that an undo takes the merge back as a whole.
 *
 * fork.json gets the intent (up to which revision, by which call) before the first change and the end after the last. A
 * merge that was cut off is taken up by the next: a path that the call did change in the parent's log is merged, the
 * others are not. What a merge leaves (conflicts, paths outside the tool root) stays in `pending` with the revision
 * that is its base.
 */
#include "text/merge.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "revisions/revisions.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define TRIES_MAX 16

enum fate { FATE_UNCHANGED, FATE_TAKE, FATE_MERGE, FATE_REMOVE, FATE_KEEP, FATE_CONFLICT, FATE_LEFT };

/* One of the three contents of a path. */
struct side {
	bool exists, is_dir;
	bool kept;     /* its bytes can be read */
	uint32_t mode; /* permissions; 0: not known */
	uint64_t size, hash[2];
	struct str bytes;   /* ptr NULL: more than MERGE_FILE_MAX */
	struct str version; /* ours: for the condition */
};

struct item {
	struct wpath path, logged;
	uint64_t since; /* the fork's revision that is the base */
	enum fate fate;
	bool had_base, has_ours, has_theirs, over_dir;
	struct str version; /* of ours; ptr NULL: absent */
	struct str text;    /* FATE_MERGE: the content; FATE_CONFLICT: with markers, or ptr NULL */
	const char *why;
	uint32_t mode; /* FATE_TAKE: permissions that the fork gave it; 0: as they are */
	bool made;     /* with the others, as a group */
};

struct merge {
	struct workspace *ws, *fork;
	struct ctx ctx; /* with the call */
	const struct merge_req *req;
	struct store *fork_home; /* the fork's directory, durable */
	struct fork_info info;
	struct wpath root;    /* in the fork's log, of what is '/' in `ws` */
	uint64_t until, head; /* of the fork; of the parent */
	struct item *items;
	size_t count, cap;
	struct strmap *index;   /* logged path -> item + 1 */
	struct jv *pending;     /* as it will be */
	struct jv *interrupted; /* {path: 1} that a merge that was cut off did bring */
	uint64_t left;
};

/* --- reading a side --- */

struct taking {
	struct hash_stream *hash;
	struct buf bytes;
	uint64_t size;
};

static int take_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct taking *t = arg;

	(void)err;
	hash_stream_add(t->hash, str_n(bytes, len));
	t->size += len;
	buf_add(&t->bytes, str_n(bytes, len)); /* past its ceiling it only says so */
	return 0;
}

static void taking_begin(struct taking *t, struct arena *arena)
{
	*t = (struct taking){.hash = hash_stream_new()};
	buf_init(&t->bytes, arena, MERGE_FILE_MAX);
}

static void taking_end(struct taking *t, struct side *side)
{
	hash_stream_end(t->hash, side->hash);
	side->exists = side->kept = true;
	side->size = t->size;
	if (!t->bytes.overflow)
		side->bytes = t->bytes.ptr ? buf_str(&t->bytes) : STR("");
}

static int side_past(struct merge *m, struct ctx *ctx, struct wpath logged, uint64_t number, struct side *ret,
		     struct err *err)
{
	struct store *revisions = workspace_revisions(m->fork);
	struct taking t;
	struct sink sink = {.push = take_push, .arg = &t};
	struct rev_state state;
	int r = revisions_state(revisions, ctx, logged, number, &state, err);

	*ret = (struct side){0};
	if (r || !state.exists)
		return r;
	taking_begin(&t, ctx->arena);
	r = revisions_read(revisions, ctx, logged, number, STORE_WHOLE, &sink, &state, err);
	taking_end(&t, ret);
	ret->kept = r == 0;
	ret->mode = state.mode;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int side_now(struct merge *m, struct ctx *ctx, struct wpath path, struct side *ret, struct err *err)
{
	struct store *files = workspace_files(m->ws);
	struct taking t;
	struct sink sink = {.push = take_push, .arg = &t};
	struct store_stat stat;
	int r = store_stat(files, ctx, path, &stat, err);

	*ret = (struct side){0};
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 && stat.kind == STORE_DIR)
		ret->is_dir = true;
	if (r || ret->is_dir)
		return r;
	taking_begin(&t, ctx->arena);
	r = store_read_stream(files, ctx, path, STORE_WHOLE, &sink, &stat, err);
	taking_end(&t, ret);
	ret->version = stat.version;
	ret->mode = stat.mode;
	if (r == -ERR_NOT_FOUND)
		*ret = (struct side){0};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool same(const struct side *a, const struct side *b)
{
	if (a->exists != b->exists)
		return false;
	return !a->exists ||
	       (a->kept && b->kept && a->size == b->size && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1]);
}

static bool is_text(const struct side *s)
{
	return s->kept && s->bytes.ptr && utf8_valid(s->bytes) &&
	       (s->bytes.len == 0 || !memchr(s->bytes.ptr, 0, s->bytes.len));
}

/* --- deciding --- */

static enum fate conflict(struct item *it, const char *why)
{
	it->why = why;
	return FATE_CONFLICT;
}

/* Both changed it. `scratch` is the arena that holds the sides. */
static enum fate decide_both(struct merge *m, struct item *it, struct arena *scratch, const struct side *base,
			     const struct side *ours, const struct side *theirs)
{
	struct merge_labels labels = {.ours = workspace_name(m->ws), .base = STR("base"), .theirs = m->req->name};
	struct str before = base->exists ? base->bytes : STR("");
	struct buf out;
	size_t conflicts;

	if (!ours->exists || !theirs->exists)
		return conflict(it, ours->exists ? "changed here, removed in the fork"
						 : "removed here, changed in the fork");
	if (!is_text(ours) || !is_text(theirs) || (base->exists && !is_text(base)))
		return conflict(it, base->exists && !base->kept ? "both changed it, and its earlier content is not kept"
								: "both changed it, and it is not text");
	buf_init(&out, scratch, MERGE_FILE_MAX * 4);
	conflicts = merge_lines(scratch, before, ours->bytes, theirs->bytes, &labels, &out);
	if (out.overflow)
		return conflict(it, "both changed it, and it is too large to be merged");
	if (!conflicts || out.len <= TOOL_TEXT_MAX)
		it->text = out.ptr ? arena_str(m->ctx.arena, buf_str(&out)) : STR("");
	if (!conflicts)
		return FATE_MERGE;
	return conflict(it, base->exists ? "both changed the same lines" : "both made it, with different content");
}

static int decide(struct merge *m, struct item *it, struct err *err)
{
	ARENA_SCOPE struct arena *scratch = arena_new();
	struct ctx ctx = m->ctx;
	struct side base, ours, theirs;
	int r = ctx_check(&m->ctx, err);

	ctx.arena = scratch;
	if (r == 0)
		r = side_past(m, &ctx, it->logged, it->since, &base, err);
	if (r == 0)
		r = side_past(m, &ctx, it->logged, m->until, &theirs, err);
	if (r == 0)
		r = side_now(m, &ctx, it->path, &ours, err);
	if (r)
		return r;
	it->had_base = base.exists;
	it->has_ours = ours.exists;
	it->has_theirs = theirs.exists;
	it->over_dir = ours.is_dir && theirs.exists;
	it->version = ours.exists ? arena_str(m->ctx.arena, ours.version) : STR_NONE;
	it->text = STR_NONE;
	it->mode = !base.exists || base.mode != theirs.mode ? theirs.mode : 0;
	if (it->mode && base.mode && same(&ours, &theirs) && ours.mode != theirs.mode)
		it->fate = FATE_TAKE; /* the fork changed its permissions */
	else if (same(&base, &theirs) || same(&ours, &theirs))
		it->fate = FATE_UNCHANGED;
	else if (same(&ours, &base))
		it->fate = theirs.exists ? FATE_TAKE : FATE_REMOVE;
	else
		it->fate = decide_both(m, it, scratch, &base, &ours, &theirs);
	if (it->fate == FATE_CONFLICT && m->req->prefer == MERGE_OURS)
		it->fate = FATE_KEEP;
	else if (it->fate == FATE_CONFLICT && m->req->prefer == MERGE_THEIRS)
		it->fate = theirs.exists ? FATE_TAKE : FATE_REMOVE;
	if (it->fate == FATE_TAKE && !theirs.kept)
		it->fate = conflict(it, "the fork's content is no longer kept");
	return 0;
}

/* --- what there is to decide --- */

static void leave(struct merge *m, struct wpath logged, uint64_t since)
{
	jv_set_key(m->ctx.arena, m->pending, logged.s, jv_int(m->ctx.arena, (int64_t)since));
}

static uint64_t base_of(struct merge *m, struct wpath logged)
{
	const struct jv *pending = jv_get_key(m->info.pending, logged.s);

	if (jv_get_key(m->interrupted, logged.s))
		return m->info.merging;
	return pending && pending->type == JV_INT && pending->u.i >= 0 ? (uint64_t)pending->u.i : m->info.merged;
}

static bool is_asked_for(const struct merge *m, struct wpath path)
{
	bool asked = !m->req->paths;

	for (size_t i = 0; i < m->req->path_count && !asked; i++)
		asked = wpath_within(path, m->req->paths[i]);
	return asked;
}

/* Takes a path of the fork's log in, once. */
static void add_path(struct merge *m, struct wpath logged)
{
	struct wpath root = m->root, path;
	struct err ignored;
	bool added;
	size_t *at = strmap_put(m->index, logged.s, &added);

	if (!added)
		return;
	path = wpath_within(logged, root) ? wpath_relative(logged, root) : WPATH_ROOT;
	if (!is_asked_for(m, path)) {
		leave(m, logged, base_of(m, logged));
		return;
	}
	if (wpath_is_root(path) || store_stat(workspace_files(m->ws), &m->ctx, path, NULL, &ignored) == -ERR_DENIED) {
		m->left++;
		leave(m, logged, base_of(m, logged));
		return;
	}
	ARENA_ROOM(m->ctx.arena, m->items, m->count, m->cap);
	m->items[m->count++] = (struct item){.path = path, .logged = logged, .since = base_of(m, logged)};
	*at = m->count;
}

/* Which paths the merge that was cut off did bring: those that its call changed in the parent. */
static int find_interrupted(struct merge *m, struct err *err)
{
	struct rev_query q = {.call_id = m->info.call};
	struct revision *found;
	size_t count;
	int r;

	m->interrupted = jv_object(m->ctx.arena);
	if (!m->info.merging || !m->info.call.len)
		return 0;
	r = revisions_query(workspace_revisions(m->ws), &m->ctx, &q, &found, &count, NULL, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct wpath logged = found[i].path; /* in the parent's log: there '/' may be elsewhere */

		r = wpath_join(m->ctx.arena, m->root, wpath_relative(logged, workspace_root(m->ws)), &logged, err);
		jv_set_key(m->ctx.arena, m->interrupted, logged.s, jv_bool(m->ctx.arena, true));
		jv_set_key(m->ctx.arena, m->info.pending, logged.s, jv_int(m->ctx.arena, (int64_t)m->info.merging));
	}
	return r;
}

static int collect(struct merge *m, struct err *err)
{
	struct rev_query q = {.since = m->info.merged, .until = m->until};
	struct revision *found = NULL;
	size_t count = 0;
	int r = find_interrupted(m, err);

	if (r == 0 && m->until > m->info.merged)
		r = revisions_query(workspace_revisions(m->fork), &m->ctx, &q, &found, &count, NULL, err);
	for (size_t i = 0; r == 0 && i < count; i++)
		add_path(m, found[i].path);
	for (const struct jv_member *p = jv_first(m->info.pending); r == 0 && p; p = p->next) {
		struct wpath logged;

		r = wpath_parse(p->key, &logged, err);
		if (r == 0)
			add_path(m, logged);
	}
	return r;
}

/* --- files where directories are, and the other way --- */

static bool is_removed(struct merge *m, struct wpath path)
{
	struct wpath logged;
	struct err ignored;
	size_t *at = wpath_join(m->ctx.arena, m->root, path, &logged, &ignored) == 0 ? strmap_find(m->index, logged.s)
										     : NULL;

	return at && *at && m->items[*at - 1].fate == FATE_REMOVE;
}

/* A file may replace a directory when everything in it is removed. */
static int check_below(struct merge *m, struct item *it, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;

	do {
		int r = store_list(workspace_files(m->ws), &m->ctx, it->path, &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++) {
			if (!is_removed(m, page.entries[i].path)) {
				it->fate = conflict(it, "a file in the fork, a directory here");
				return 0;
			}
		}
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

static int check_above(struct merge *m, struct item *it, struct err *err)
{
	for (size_t i = 1; i < it->path.s.len; i++) {
		struct wpath part = {str_first(it->path.s, i)};
		struct store_stat stat;
		int r;

		if (it->path.s.ptr[i] != '/')
			continue;
		r = store_stat(workspace_files(m->ws), &m->ctx, part, &stat, err);
		if (r == -ERR_NOT_FOUND)
			return 0;
		if (r)
			return r;
		if (stat.kind == STORE_FILE && !is_removed(m, part))
			it->fate = conflict(it, "below a directory in the fork that is a file here");
		if (stat.kind == STORE_FILE)
			return 0;
	}
	return 0;
}

static int decide_all(struct merge *m, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->count; i++)
		r = decide(m, &m->items[i], err);
	for (size_t i = 0; r == 0 && i < m->count; i++) {
		struct item *it = &m->items[i];

		if (it->fate == FATE_TAKE && it->over_dir)
			r = check_below(m, it, err);
		else if (it->fate == FATE_TAKE && !it->has_ours)
			r = check_above(m, it, err);
	}
	return r;
}

/* --- making the changes --- */

/* The fork's bytes, in pieces. */
struct theirs_source {
	struct merge *m;
	struct wpath logged;
	uint64_t offset;
};

static int theirs_pull(void *arg, void *bytes, size_t cap, size_t *ret_len, struct err *err)
{
	struct theirs_source *t = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = t->m->ctx;
	struct taking taken;
	struct sink sink = {.push = take_push, .arg = &taken};
	struct side piece = {0};
	struct rev_state state;
	int r;

	ctx.arena = arena;
	cap = cap < STREAM_CHUNK ? cap : STREAM_CHUNK;
	taking_begin(&taken, arena);
	r = revisions_read(workspace_revisions(t->m->fork), &ctx, t->logged, t->m->until,
			   (struct store_range){t->offset, cap}, &sink, &state, err);
	taking_end(&taken, &piece);
	if (r)
		return r;
	memcpy(bytes, piece.bytes.ptr, piece.bytes.len);
	t->offset += piece.bytes.len;
	*ret_len = piece.bytes.len;
	return 0;
}

static int theirs_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct theirs_source *)arg)->offset = 0;
	return 0;
}

static int make_change(struct merge *m, const struct item *it, struct err *err)
{
	struct store *files = workspace_files(m->ws);
	struct store_cond cond = {.kind = it->version.ptr ? STORE_VERSION : STORE_ABSENT, .version = it->version};
	struct theirs_source theirs = {.m = m, .logged = it->logged};
	struct source source = {.pull = theirs_pull, .rewind = theirs_rewind, .arg = &theirs, .mode = it->mode};

	switch (it->fate) {
	case FATE_REMOVE:
		return store_remove(files, &m->ctx, it->path, false, cond, NULL, err);
	case FATE_MERGE:
		return store_write(files, &m->ctx, it->path, it->text, cond, NULL, err);
	case FATE_TAKE:
		return store_write_stream(files, &m->ctx, it->path, &source, cond, NULL, err);
	case FATE_UNCHANGED:
	case FATE_KEEP:
	case FATE_CONFLICT:
	case FATE_LEFT:
		break;
	}
	return 0;
}

/* Makes one change; if the parent's file has changed, it is decided again. */
static int apply(struct merge *m, struct item *it, struct err *err)
{
	int r = 0;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		r = make_change(m, it, err);
		if (r == -ERR_DENIED) {
			it->fate = FATE_LEFT;
			return 0;
		}
		if (r == -ERR_INVALID) {
			it->fate = conflict(it, "a file on one side, a directory on the other");
			return 0;
		}
		if (r != -ERR_CONFLICT && r != -ERR_EXISTS && r != -ERR_NOT_FOUND)
			return r;
		r = decide(m, it, err);
		if (r)
			return r;
	}
	return err_set(err, ERR_CONFLICT, "merge: \"%.*s\" keeps changing; merge again later", STR_ARG(it->path.s));
}

static bool is_write(const struct item *it)
{
	return it->fate == FATE_TAKE || it->fate == FATE_MERGE;
}

static struct store_group_item group_item(struct merge *m, const struct item *it)
{
	struct store_group_item change = {
		.op = it->fate == FATE_REMOVE ? STORE_OP_REMOVE : STORE_OP_WRITE,
		.path = it->path,
		.cond = {.kind = it->version.ptr ? STORE_VERSION : STORE_ABSENT, .version = it->version}};
	struct theirs_source *theirs;
	struct source *source;

	if (it->fate == FATE_REMOVE)
		return change;
	change.source = source = ARENA_NEW(m->ctx.arena, struct source);
	if (it->fate == FATE_MERGE) {
		source->bytes = it->text;
		return change;
	}
	theirs = ARENA_NEW(m->ctx.arena, struct theirs_source);
	*theirs = (struct theirs_source){.m = m, .logged = it->logged};
	*source = (struct source){.pull = theirs_pull, .rewind = theirs_rewind, .arg = theirs, .mode = it->mode};
	return change;
}

/* On disk all changes are one group. What is left of it, because somebody changed a file, is made one by one. */
static void apply_group(struct merge *m)
{
	struct store_group group = {.items = ARENA_ARRAY(m->ctx.arena, struct store_group_item, m->count + 1)};
	struct item **of = ARENA_ARRAY(m->ctx.arena, struct item *, m->count + 1);
	struct err ignored;

	for (int writes = 0; writes < 2; writes++)
		for (size_t i = 0; i < m->count; i++) {
			struct item *it = &m->items[i];

			if (writes ? !is_write(it) : it->fate != FATE_REMOVE)
				continue;
			of[group.count] = it;
			group.items[group.count++] = group_item(m, it);
		}
	if (group.count > 1)
		(void)store_group(workspace_files(m->ws), &m->ctx, &group, &ignored);
	for (size_t i = 0; i < group.count; i++)
		of[i]->made = group.items[i].made;
}

/* Removals first: a file may take the place of a directory, and the other way. */
static int apply_all(struct merge *m, struct err *err)
{
	int r = 0;

	if (!workspace_is_remote(m->ws))
		apply_group(m);
	for (size_t i = 0; r == 0 && i < m->count; i++)
		if (m->items[i].fate == FATE_REMOVE && !m->items[i].made)
			r = apply(m, &m->items[i], err);
	for (size_t i = 0; r == 0 && i < m->count; i++)
		if (is_write(&m->items[i]) && !m->items[i].made)
			r = apply(m, &m->items[i], err);
	return r;
}

static size_t count_fate(const struct merge *m, enum fate fate)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += m->items[i].fate == fate;
	return n;
}

/* Writes fork.json if nobody else did since it was read. */
static int write_state(struct merge *m, struct err *err)
{
	int r = fork_write(&m->ctx, m->fork_home, &m->info, err);

	return r == -ERR_CONFLICT ? err_set(err, ERR_CONFLICT,
					    "merge: \"%.*s\" was merged by someone else at the same time; merge again",
					    STR_ARG(m->req->name))
				  : r;
}

static int carry_out(struct merge *m, struct err *err)
{
	bool changes = count_fate(m, FATE_UNCHANGED) + count_fate(m, FATE_CONFLICT) < m->count;
	int r = 0;

	if (changes) {
		m->info.merging = m->until;
		m->info.call = m->ctx.actor.call_id;
		r = write_state(m, err);
	}
	if (r == 0)
		r = apply_all(m, err);
	for (size_t i = 0; r == 0 && i < m->count; i++) {
		if (m->items[i].fate == FATE_CONFLICT || m->items[i].fate == FATE_LEFT)
			leave(m, m->items[i].logged, m->items[i].since);
		m->left += m->items[i].fate == FATE_LEFT;
	}
	if (r)
		return r;
	if (!changes && m->info.merged == m->until && jv_equal(m->info.pending, m->pending) && !m->info.merging)
		return 0;
	m->info.merged = m->until;
	m->info.pending = m->pending;
	m->info.merging = 0;
	return write_state(m, err);
}

/* --- the answer --- */

static struct jv *where(struct arena *arena, struct str workspace, uint64_t number, bool exists)
{
	struct jv *v;

	if (!exists)
		return jv_null(arena);
	v = jv_object(arena);
	jv_set_str(arena, v, "workspace", workspace);
	jv_set_int(arena, v, "revision", (int64_t)number);
	return v;
}

static struct jv *conflict_value(struct merge *m, const struct item *it)
{
	struct arena *arena = m->ctx.arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "path", it->path.s);
	jv_set_str(arena, v, "why", str_of(it->why));
	jv_set(arena, v, "base",
	       it->since ? where(arena, m->req->name, it->since, it->had_base)
			 : where(arena, m->info.parent, m->info.dir.len ? m->info.dir_revision : m->info.revision,
				 it->had_base));
	jv_set(arena, v, "ours", where(arena, m->info.parent, m->head, it->has_ours));
	jv_set(arena, v, "theirs", where(arena, m->req->name, m->until, it->has_theirs));
	if (it->text.ptr)
		jv_set_str(arena, v, "text", it->text);
	return v;
}

static struct jv *report(struct merge *m, bool applied)
{
	static const char *const how[FATE_LEFT + 1] = {
		[FATE_TAKE] = "taken", [FATE_MERGE] = "merged", [FATE_REMOVE] = "removed", [FATE_KEEP] = "kept"};
	struct arena *arena = m->ctx.arena;
	struct jv *v = jv_object(arena), *merged = jv_array(arena), *conflicts = jv_array(arena);

	for (size_t i = 0; i < m->count; i++) {
		const struct item *it = &m->items[i];
		struct jv *one;

		if (it->fate == FATE_CONFLICT)
			jv_push(arena, conflicts, conflict_value(m, it));
		if (!how[it->fate])
			continue;
		one = jv_object(arena);
		jv_set_str(arena, one, "path", it->path.s);
		jv_set_str(arena, one, "how", str_of(how[it->fate]));
		jv_push(arena, merged, one);
	}
	jv_set_str(arena, v, "fork", m->req->name);
	jv_set_str(arena, v, "workspace", m->info.parent);
	jv_set_bool(arena, v, "applied", applied);
	jv_set(arena, v, "merged", merged);
	jv_set(arena, v, "conflicts", conflicts);
	jv_set_int(arena, v, "unchanged", (int64_t)count_fate(m, FATE_UNCHANGED));
	jv_set_int(arena, v, "left", (int64_t)m->left);
	jv_set_int(arena, v, "revision", (int64_t)m->head);
	if (applied)
		jv_set_str(arena, v, "call", m->ctx.actor.call_id);
	return v;
}

/* --- the fork's side --- */

/* Has a file that another program put into the fork recorded, so that the log alone tells what the fork changed. */
static int adopt(struct merge *m, struct store *origin, struct wpath path, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = m->ctx;
	struct str before;
	int r;

	ctx.arena = arena;
	r = store_read(origin, &ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &before, NULL, err);
	if (r == -ERR_TOO_LARGE)
		before = STR_NONE;
	else if (r && r != -ERR_NOT_FOUND && r != -ERR_INVALID)
		return r;
	return revisions_adopt(workspace_revisions(m->fork), &ctx, path, r == 0 || r == -ERR_TOO_LARGE, before, err);
}

static int adopt_below(struct merge *m, struct store *own, struct store *origin, struct wpath dir, struct err *err)
{
	bool top = wpath_is_root(dir);
	struct store_list_req req = {.recursive = !top, .limit = STORE_PAGE_MAX};
	struct store_page page;
	int r = 0;

	do {
		r = store_list(own, &m->ctx, dir, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct wpath path = page.entries[i].path;

			if (top && str_starts(path.s, STR(".stead")))
				continue;
			if (page.entries[i].stat.kind == STORE_DIR)
				r = adopt_below(m, own, origin, path, err);
			else if (!revisions_knows(workspace_revisions(m->fork), path))
				r = adopt(m, origin, path, err);
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* What other programs did in the fork's directory goes into its log; then `until` is all there is. */
static int look_at_fork(struct merge *m, struct err *err)
{
	struct store *revisions = workspace_revisions(m->fork);
	struct store *origin = store_at_revision_new(workspace_shared(m->ws), m->info.revision);
	struct store_mount own_files = {.at = m->root, .read_only = true};
	struct store *own =
		store_prefix_new(store_share(workspace_store_of(m->ws, false)), (struct wpath){m->req->name});
	uint64_t noticed;
	int r = revisions_notice(revisions, &m->ctx, WPATH_ROOT, &noticed, err);

	if (m->info.dir.len) {
		own_files.store = store_at_revision_new(workspace_revisions(m->ws), m->info.dir_revision);
		origin = store_mounts_new(origin, &own_files, 1);
	}
	if (r == 0)
		r = adopt_below(m, own, origin, WPATH_ROOT, err);
	if (r == 0)
		r = revisions_head(revisions, &m->ctx, &m->until, err);
	store_destroy(own);
	store_destroy(origin);
	return r;
}

static int check_fork(struct merge *m, struct err *err)
{
	struct str name = m->req->name;
	bool is_fork;
	int r;

	if (!workspace_name_ok(name))
		return workspace_bad_name(name, err);
	r = store_stat(workspace_store_of(m->ws, false), &m->ctx, (struct wpath){name}, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no workspace \"%.*s\"; 'stead list' shows the existing ones", STR_ARG(name));
	if (r == 0)
		r = fork_read(&m->ctx, m->fork_home, &m->info, &is_fork, err);
	if (r)
		return r;
	if (!is_fork)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a fork, so it cannot be merged; the tool fork creates one",
			       STR_ARG(name));
	if (!str_eq(m->info.parent, workspace_name(m->ws)))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a fork of \"%.*s\", not of \"%.*s\"; merge it there",
			       STR_ARG(name), STR_ARG(m->info.parent), STR_ARG(workspace_name(m->ws)));
	if (!str_eq(m->info.dir, workspace_own_dir(m->ws)))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a fork of %s%.*s; merge it there", STR_ARG(name),
			       m->info.dir.len ? "the directory " : "the workspace, not of ",
			       STR_ARG(m->info.dir.len ? m->info.dir : workspace_own_dir(m->ws)));
	m->root = m->info.dir.len ? (struct wpath){STR("files")} : workspace_root(m->ws);
	return 0;
}

static int merge_fork(struct merge *m, struct jv **ret, struct err *err)
{
	bool applies;
	size_t conflicts;
	int r = look_at_fork(m, err);

	if (r == 0)
		r = collect(m, err);
	if (r == 0)
		r = decide_all(m, err);
	if (r)
		return r;
	conflicts = count_fate(m, FATE_CONFLICT);
	applies = !m->req->dry_run && (conflicts == 0 || m->req->partial);
	if (applies)
		r = carry_out(m, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(m->ws), &m->ctx, &m->head, err);
	if (r)
		return r;
	*ret = report(m, applies);
	if (conflicts && !m->req->dry_run && !m->req->partial)
		return err_set(
			err, ERR_CONFLICT,
			"merge: %zu of the fork's files conflict%s with \"%.*s\", so nothing was merged; merge the "
			"rest with partial, or settle the conflicts with prefer; after resolving them by hand, prefer "
			"ours",
			conflicts, conflicts == 1 ? "s" : "", STR_ARG(m->info.parent));
	return 0;
}

int fork_merge(struct workspace *ws, struct ctx *ctx, const struct merge_req *req, struct jv **ret, struct err *err)
{
	struct merge_req own = *req;
	struct merge m = {.ws = ws, .ctx = *ctx, .req = &own};
	int r;

	(void)fork_find(ws, ctx, req->name, &own.name);
	m.pending = jv_object(ctx->arena);
	m.index = strmap_new(ctx->arena);
	if (!m.ctx.actor.call_id.len)
		m.ctx.actor.call_id = arena_printf(ctx->arena, "merge-%016llx", (unsigned long long)random_u64());
	m.fork_home = store_prefix_new(store_share(workspace_store_of(ws, true)), (struct wpath){own.name});
	r = check_fork(&m, err);
	if (r == 0)
		r = workspace_open_sibling(ws, own.name, &m.fork, err);
	if (r == 0)
		r = merge_fork(&m, ret, err);
	workspace_close(m.fork);
	store_destroy(m.fork_home);
	return r;
}
