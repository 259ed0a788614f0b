/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log as the tools may see it. Paths are turned here and nowhere else, and every path that leaves is put before the
 * guard's rules first, so that no door to the past shows what the door to the present hides.
 *
 * A log is walked by pages, each in memory of its own: what an answer costs is what it keeps, not what was looked at.
 */
#include "home/timeline/history_internal.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "text/diff.h"

/* Of the first page, which is often enough, and of the largest. */
#define PAGE_FIRST 64
#define PAGE       2048

int past_each(struct workspace *ws, struct ctx *ctx, struct rev_query query, past_fn each, void *arg, struct err *err)
{
	return past_each_in(workspace_revisions(ws), ctx, query, each, arg, err);
}

int past_each_in(struct store *log, struct ctx *ctx, struct rev_query query, past_fn each, void *arg, struct err *err)
{
	bool more = true;
	int r = 0;

	query.until_damage = true;
	query.limit = query.limit && query.limit < PAGE_FIRST ? query.limit : PAGE_FIRST;
	for (; r == 0 && more; query.limit = query.limit < PAGE ? query.limit * 2 : PAGE) {
		ARENA_SCOPE struct arena *page = arena_new();
		struct ctx c = *ctx;
		struct revision *found;
		size_t count;

		c.arena = page;
		r = ctx_check(ctx, err);
		if (r == 0)
			r = revisions_query(log, &c, &query, &found, &count, &more, err);
		for (size_t i = 0; r == 0 && i < count; i++)
			r = each(arg, &found[i], err);
		if (r || !more)
			break;
		if (query.newest_first)
			query.until = found[count - 1].number - 1;
		else
			query.since = found[count - 1].number;
	}
	return r == PAST_ENOUGH ? 0 : r;
}

int past_kept(struct workspace *ws, struct ctx *ctx, uint64_t number, struct err *err)
{
	struct rev_state ignored;

	return revisions_state(workspace_revisions(ws), ctx, workspace_root(ws), number, &ignored, err);
}

/* --- what changed --- */

const struct rev_state *past_keep(struct ctx *ctx, const struct rev_state *state)
{
	static const struct rev_state absent;
	struct rev_state *kept;

	if (!state->exists)
		return &absent;
	kept = ARENA_NEW(ctx->arena, struct rev_state);
	*kept = *state;
	kept->version = arena_str(ctx->arena, state->version);
	return kept;
}

struct changes {
	struct workspace *ws;
	struct ctx *ctx;
	struct strmap *index;
	struct past_change *list;
	size_t count, cap;
};

static int add_change(void *arg, const struct revision *r, struct err *err)
{
	struct changes *c = arg;
	struct past_change *one;
	struct wpath shown;
	size_t *at = strmap_find(c->index, r->path.s);

	(void)err;
	if (!at) {
		struct wpath logged = {arena_str(c->ctx->arena, r->path.s)};

		at = strmap_put(c->index, logged.s, NULL);
		if (!past_shown(c->ws, logged, &shown)) {
			*at = SIZE_MAX;
			return 0;
		}
		ARENA_ROOM(c->ctx->arena, c->list, c->count, c->cap);
		*at = c->count++;
		c->list[*at] =
			(struct past_change){.logged = logged,
					     .shown = shown,
					     .before = *past_keep(c->ctx, &r->before),
					     .fixed = store_guard_says(workspace_files(c->ws), shown) == GUARD_FIXED};
	}
	if (*at == SIZE_MAX)
		return 0;
	one = &c->list[*at];
	one->after = r->after;
	one->after.version = str_eq(one->after.version, one->before.version)
				     ? one->before.version
				     : arena_str(c->ctx->arena, r->after.version);
	return 0;
}

static int change_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct past_change *)a)->shown.s, ((const struct past_change *)b)->shown.s);
}

int past_changes(struct workspace *ws, struct ctx *ctx, struct wpath path, uint64_t since, uint64_t until,
		 struct past_change **ret, size_t *ret_count, struct err *err)
{
	struct changes c = {.ws = ws, .ctx = ctx, .index = strmap_new(ctx->arena)};
	struct rev_query q = {.since = since, .until = until, .path = past_logged(ws, ctx, path)};
	int r = past_each(ws, ctx, q, add_change, &c, err);

	if (r)
		return r;
	if (c.count)
		qsort(c.list, c.count, sizeof(*c.list), change_cmp);
	*ret = c.list;
	*ret_count = c.count;
	return 0;
}

bool past_rights_differ(const struct rev_state *a, const struct rev_state *b)
{
	bool modes = a->mode && b->mode, owners = a->owner.kind && b->owner.kind;

	return (modes && a->mode != b->mode) || (owners && !store_owner_eq(a->owner, b->owner));
}

bool past_same(const struct rev_state *a, const struct rev_state *b)
{
	if (a->exists != b->exists || a->size != b->size)
		return false;
	if (!a->exists || (a->version.len && str_eq(a->version, b->version)))
		return true;
	return rev_hash_is_set(&a->hash) && rev_hash_is_set(&b->hash) && rev_hash_cmp(&a->hash, &b->hash) == 0;
}

/* --- bytes --- */

static int collect_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct buf *buf = arg;

	buf_add(buf, str_n(bytes, len));
	if (buf->overflow)
		return err_set(err, ERR_TOO_LARGE, "the file is larger than %zu bytes", buf->max);
	return 0;
}

int past_read(struct workspace *ws, struct ctx *ctx, struct wpath logged, uint64_t number, size_t max,
	      struct str *ret_bytes, struct err *err)
{
	struct buf buf;
	struct sink sink = {.push = collect_push, .arg = &buf};
	struct rev_state state;
	int r;

	buf_init(&buf, ctx->arena, max);
	r = revisions_read(workspace_revisions(ws), ctx, logged, number, STORE_WHOLE, &sink, &state, err);
	*ret_bytes = buf.ptr ? buf_str(&buf) : STR("");
	return r;
}

static bool is_text(struct str s)
{
	return utf8_valid(s) && (s.len == 0 || !memchr(s.ptr, 0, s.len));
}

static void unified(struct ctx *ctx, struct wpath path, const struct past_change *c, struct str old, struct str new,
		    unsigned lines_max, struct jv *value)
{
	struct buf text;

	buf_init(&text, ctx->arena, 2 * DIFF_FILE_MAX + 64 * KIB);
	buf_printf(&text, "--- %.*s\n", STR_ARG(c->before.exists ? path.s : STR("/dev/null")));
	buf_printf(&text, "+++ %.*s\n", STR_ARG(c->after.exists ? path.s : STR("/dev/null")));
	diff_unified(ctx->arena, old, new, STR_NONE, lines_max, &text);
	jv_set_str(ctx->arena, value, "diff", buf_str(&text));
}

int past_diff(struct workspace *ws, struct ctx *ctx, const struct past_change *c, uint64_t from, uint64_t to,
	      unsigned lines_max, struct jv **ret, struct err *err)
{
	struct str old = STR(""), new = STR(""), what = STR("changed");
	bool large = c->before.size > DIFF_FILE_MAX || c->after.size > DIFF_FILE_MAX, text;
	int r = 0;

	*ret = NULL;
	if (past_same(&c->before, &c->after))
		return 0;
	if (!large && c->before.exists)
		r = past_read(ws, ctx, c->logged, from, DIFF_FILE_MAX, &old, err);
	if (r == 0 && !large && c->after.exists)
		r = past_read(ws, ctx, c->logged, to, DIFF_FILE_MAX, &new, err);
	if (r)
		return err_prefix(err, "compare \"%.*s\"", STR_ARG(c->shown.s));
	if (!large && c->before.exists == c->after.exists && str_eq(old, new))
		return 0;
	text = !large && is_text(old) && is_text(new);
	if (!c->before.exists || !c->after.exists)
		what = c->after.exists ? STR("added") : STR("removed");
	else if (!text)
		what = large ? STR("large") : STR("binary");
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "path", c->shown.s);
	jv_set_str(ctx->arena, *ret, "change", what);
	if (text)
		unified(ctx, c->shown, c, old, new, lines_max, *ret);
	return 0;
}
