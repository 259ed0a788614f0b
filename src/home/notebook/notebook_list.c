/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations over the notebook's list of notes: listing, earlier versions, pruning.
 *
 * Earlier versions are not copied anywhere: every change of a note is a revision of its file, and the head of each has
 * the version's number, so numbers stay true when old history goes.
 */
#include "base/clock.h"
#include "home/notebook/notebook_internal.h"
#include "revisions/revisions.h"

#define LIST_DEFAULT  50
#define REVISIONS_MAX 10000

/* --- lists --- */

static bool wanted(const struct note *n, const struct note_query *q)
{
	if ((n->archived_ns && !q->with_archived) || (q->author.len && !str_eq(n->author, q->author)) ||
	    (q->kind.len && !str_eq(n->kind, q->kind)) || (q->namespace.len && !str_eq(n->namespace, q->namespace)))
		return false;
	if (q->open_questions && (!str_is(n->kind, "question") || n->answer == NOTE_ANSWERED))
		return false;
	return !q->tag.len || note_has_tag(n, q->tag);
}

static int list_locked(struct notebook *nb, struct ctx *ctx, const struct note_query *q, size_t limit,
		       struct note_list *ret, struct err *err)
{
	const struct note *last = NULL;
	size_t from;
	int r = catalog_refresh(nb, ctx, err);

	if (!r)
		r = catalog_seek(nb->catalog, q->cursor, &from, err);
	if (r)
		return r;
	for (size_t i = 0; i < catalog_count(nb->catalog); i++) {
		const struct note *n = catalog_at(nb->catalog, i);

		if (!wanted(n, q))
			continue;
		ret->total++;
		if (i < from)
			continue;
		if (ret->count < limit) {
			ret->notes[ret->count++] = note_copy(ctx->arena, n);
			last = n;
		} else if (!ret->next.ptr) {
			ret->next = catalog_cursor(ctx->arena, last);
		}
	}
	ret->problem_count = catalog_problems(nb->catalog, ctx->arena, &ret->problems);
	return 0;
}

int notebook_list(struct notebook *nb, struct ctx *ctx, const struct note_query *query, struct note_list *ret,
		  struct err *err)
{
	size_t limit = query->limit ? query->limit : LIST_DEFAULT;
	int r;

	limit = limit > NOTES_LIST_MAX ? NOTES_LIST_MAX : limit;
	*ret = (struct note_list){.notes = ARENA_ARRAY(ctx->arena, struct note, limit)};
	pthread_mutex_lock(&nb->lock);
	r = list_locked(nb, ctx, query, limit, ret, err);
	pthread_mutex_unlock(&nb->lock);
	return r;
}

/* --- versions --- */

static int to_buf(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct buf *b = arg;

	buf_add(b, str_n(bytes, len));
	return b->overflow ? err_set(err, ERR_TOO_LARGE, "the note was too long then") : 0;
}

/* The note as it was after a revision of its file. */
static int read_at(struct notebook *nb, struct ctx *ctx, struct wpath path, const struct revision *revision,
		   struct note *ret, struct err *err)
{
	struct rev_state state;
	struct buf b;
	struct sink sink = {.push = to_buf, .arg = &b};
	int r;

	buf_init(&b, ctx->arena, NOTE_FILE_MAX);
	r = revisions_read(nb->shared, ctx, revision->path, revision->number, STORE_WHOLE, &sink, &state, err);
	return r ? r : note_parse(ctx->arena, path, buf_str(&b), revision->time_ns, ret, err);
}

struct walk {
	struct revision *revisions; /* of the file, newest first */
	size_t count;
};

static int walk_begin(struct notebook *nb, struct ctx *ctx, struct wpath path, struct walk *ret, struct err *err)
{
	struct rev_query query = {.newest_first = true, .limit = REVISIONS_MAX};
	bool more;
	int r = wpath_join(ctx->arena, nb->part, path, &query.path, err);

	return r ? r : revisions_query(nb->shared, ctx, &query, &ret->revisions, &ret->count, &more, err);
}

/* The oldest version that may be read of a note that has `newest`. */
static uint64_t oldest_kept(const struct notebook *nb, uint64_t newest)
{
	const struct jv *own = jv_get(workspace_config(nb->ws)->document, "notebook");
	uint64_t keep = (uint64_t)jv_get_int(own, "keep_last_versions", 0);

	return keep && newest > keep ? newest - keep + 1 : 1;
}

int notebook_read_version(struct notebook *nb, struct ctx *ctx, struct str ref, uint64_t version, struct note *ret,
			  struct err *err)
{
	struct wpath path;
	struct walk walk;
	struct note now, n;
	int r = notebook_find(nb, ctx, ref, &path, err);

	if (!r)
		r = notebook_load(nb, ctx, path, &now, NULL, NULL, err);
	if (!r && (version == 0 || version > now.version))
		return err_set(err, ERR_NOT_FOUND, "the note \"%.*s\" has versions 1 to %llu, not %llu",
			       STR_ARG(utf8_first(now.slug, 100)), (unsigned long long)now.version,
			       (unsigned long long)version);
	if (!r && version < oldest_kept(nb, now.version))
		return err_set(err, ERR_NOT_FOUND,
			       "the note \"%.*s\" keeps its versions from %llu on, and version %llu is older",
			       STR_ARG(utf8_first(now.slug, 100)), (unsigned long long)oldest_kept(nb, now.version),
			       (unsigned long long)version);
	if (!r && version == now.version) {
		*ret = now;
		return 0;
	}
	if (!r)
		r = walk_begin(nb, ctx, path, &walk, err);
	for (size_t i = 0; !r && i < walk.count; i++) {
		struct err ignored;

		if (!walk.revisions[i].after.exists || read_at(nb, ctx, path, &walk.revisions[i], &n, &ignored))
			continue;
		if (n.version == version) {
			*ret = n;
			return 0;
		}
	}
	return r ? r
		 : err_set(err, ERR_NOT_FOUND,
			   "version %llu of \"%.*s\" is no longer kept; the note is at version %llu now",
			   (unsigned long long)version, STR_ARG(utf8_first(now.slug, 100)),
			   (unsigned long long)now.version);
}

int notebook_versions(struct notebook *nb, struct ctx *ctx, struct str ref, struct note_version **ret,
		      size_t *ret_count, struct err *err)
{
	struct note_version *all;
	uint64_t last = UINT64_MAX;
	struct wpath path;
	struct walk walk;
	struct note n;
	size_t count = 0;
	int r = notebook_find(nb, ctx, ref, &path, err);

	if (!r)
		r = walk_begin(nb, ctx, path, &walk, err);
	if (r)
		return r;
	all = ARENA_ARRAY(ctx->arena, struct note_version, walk.count + 1);
	for (size_t i = 0; i < walk.count; i++) {
		struct err ignored;

		if (!walk.revisions[i].after.exists || read_at(nb, ctx, path, &walk.revisions[i], &n, &ignored) ||
		    n.version >= last)
			continue;
		if (count && n.version < oldest_kept(nb, all[0].version))
			break;
		last = n.version;
		all[count++] =
			(struct note_version){n.version, walk.revisions[i].number, n.updated_ns, n.lede, n.body_size};
	}
	for (size_t i = 0; i < count / 2; i++) {
		struct note_version v = all[i];

		all[i] = all[count - 1 - i];
		all[count - 1 - i] = v;
	}
	*ret = all;
	*ret_count = count;
	return 0;
}

/* --- pruning --- */

static bool may_go(const struct note *n, const struct note_prune *want, int64_t now)
{
	int64_t used = n->updated_ns > n->last_cited_ns ? n->updated_ns : n->last_cited_ns;

	for (size_t i = 0; i < want->keep_count; i++)
		if (str_eq(n->kind, want->keep_kinds[i]))
			return false;
	return n->cited < (want->min_cited ? want->min_cited : 1) && (!want->idle_ns || now - used > want->idle_ns);
}

/* Removes it if it still is what it was when it was looked at. */
static int prune_one(struct notebook *nb, struct ctx *ctx, const struct note *n, const struct note_prune *want,
		     bool *ret_gone, struct err *err)
{
	struct wpath path = {n->path};
	struct store_stat stat;
	struct note now;
	int r = notebook_load(nb, ctx, path, &now, NULL, &stat, err);

	*ret_gone = false;
	if (!r && may_go(&now, want, clock_real_ns())) {
		if (!want->dry_run)
			r = store_remove(nb->home, ctx, path, false,
					 (struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL,
					 err);
		*ret_gone = !r;
	}
	return r == -ERR_NOT_FOUND || r == -ERR_CONFLICT ? 0 : r;
}

int notebook_prune(struct notebook *nb, struct ctx *ctx, const struct note_prune *want, struct note_list *ret,
		   struct err *err)
{
	int64_t now = clock_real_ns();
	struct note *chosen;
	size_t count = 0;
	bool gone;
	int r;

	*ret = (struct note_list){.notes = ARENA_ARRAY(ctx->arena, struct note, NOTES_LIST_MAX)};
	pthread_mutex_lock(&nb->lock);
	r = catalog_refresh(nb, ctx, err);
	chosen = ARENA_ARRAY(ctx->arena, struct note, r ? 1 : catalog_count(nb->catalog) + 1);
	for (size_t i = 0; !r && i < catalog_count(nb->catalog); i++)
		if (may_go(catalog_at(nb->catalog, i), want, now))
			chosen[count++] = note_copy(ctx->arena, catalog_at(nb->catalog, i));
	pthread_mutex_unlock(&nb->lock);
	for (size_t i = 0; !r && i < count; i++) {
		r = prune_one(nb, ctx, &chosen[i], want, &gone, err);
		if (r || !gone)
			continue;
		ret->total++;
		if (ret->count < NOTES_LIST_MAX)
			ret->notes[ret->count++] = chosen[i];
	}
	if (ret->total && !want->dry_run)
		index_dirty(nb, 0);
	return r;
}
