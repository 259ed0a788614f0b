/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front doors and the dispatch. A front door validates what the type cannot (a write to the root, a move into
 * itself), builds the operation as a value, and hands it to store_forward(), which is also what layers call: one path
 * through the code, so an operation behaves the same from outside and from a layer.
 *
 * The alternative, typed forwarding functions in every layer, was rejected: most of them would only pass their
 * arguments on, and an operation that is added later would be forwarded by accident.
 */
#include "store/store.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "store/journal.h"

const struct store_op_info store_op_info[STORE_OPS] = {
	[STORE_OP_STAT] = {.name = "look up", .reads_only = true},
	[STORE_OP_READ] = {.name = "read", .reads_only = true},
	[STORE_OP_WRITE] = {.name = "write"},
	[STORE_OP_APPEND] = {.name = "append"},
	[STORE_OP_REMOVE] = {.name = "remove"},
	[STORE_OP_MOVE] = {.name = "move"},
	[STORE_OP_COPY] = {.name = "copy"},
	[STORE_OP_LIST] = {.name = "list", .reads_only = true},
	[STORE_OP_SCAN] = {.name = "search", .reads_only = true},
	[STORE_OP_GROUP] = {.name = "change a group"},
	[STORE_OP_JOURNAL_READ] = {.name = "read the journal", .reads_only = true},
	[STORE_OP_JOURNAL_ADD] = {.name = "add to the journal"},
	[STORE_OP_JOURNAL_CUT] = {.name = "cut the journal"},
};

static bool has_typed(const struct store_ops *ops, enum store_op op)
{
	switch (op) {
	case STORE_OP_STAT:
		return ops->stat;
	case STORE_OP_READ:
		return ops->read;
	case STORE_OP_WRITE:
		return ops->write;
	case STORE_OP_APPEND:
		return ops->append;
	case STORE_OP_REMOVE:
		return ops->remove;
	case STORE_OP_MOVE:
		return ops->move;
	case STORE_OP_COPY:
		return ops->copy;
	case STORE_OP_LIST:
		return ops->list;
	case STORE_OP_SCAN:
		return ops->scan;
	case STORE_OP_GROUP:
		return ops->group;
	case STORE_OP_JOURNAL_READ:
		return ops->journal_read;
	case STORE_OP_JOURNAL_ADD:
		return ops->journal_add;
	case STORE_OP_JOURNAL_CUT:
		return ops->journal_cut;
	case STORE_OPS:
		break;
	}
	return false;
}

static int call_typed(struct store *s, struct ctx *ctx, struct store_call *c, struct err *err)
{
	switch (c->op) {
	case STORE_OP_STAT:
		return s->ops->stat(s, ctx, c->path, c->ret_stat, err);
	case STORE_OP_READ:
		return s->ops->read(s, ctx, c->path, c->range, c->sink, c->ret_stat, err);
	case STORE_OP_WRITE:
		return s->ops->write(s, ctx, c->path, c->source, c->cond, c->ret_stat, err);
	case STORE_OP_APPEND:
		return s->ops->append(s, ctx, c->path, c->source, c->cond, c->ret_stat, err);
	case STORE_OP_REMOVE:
		return s->ops->remove(s, ctx, c->path, c->recursive, c->cond, c->ret_count, err);
	case STORE_OP_MOVE:
		return s->ops->move(s, ctx, c->path, c->to, c->cond, c->to_cond, c->ret_stat, err);
	case STORE_OP_COPY:
		return s->ops->copy(s, ctx, c->path, c->to, c->to_cond, c->ret_stat, err);
	case STORE_OP_LIST:
		return s->ops->list(s, ctx, c->path, c->list, c->ret_page, err);
	case STORE_OP_SCAN:
		return s->ops->scan(s, ctx, c->path, c->scan, err);
	case STORE_OP_GROUP:
		return s->ops->group(s, ctx, c->group, err);
	case STORE_OP_JOURNAL_READ:
		return s->ops->journal_read(s, ctx, c->path, c->journal_read, c->ret_journal, err);
	case STORE_OP_JOURNAL_ADD:
		return s->ops->journal_add(s, ctx, c->path, c->to, c->cond, c->journal_add, c->ret_added, err);
	case STORE_OP_JOURNAL_CUT:
		return s->ops->journal_cut(s, ctx, c->path, c->journal_before, err);
	case STORE_OPS:
		break;
	}
	return err_set(err, ERR_INTERNAL, "no such store operation");
}

int store_forward(struct store *s, struct ctx *ctx, struct store_call *c, struct err *err)
{
	if (has_typed(s->ops, c->op))
		return call_typed(s, ctx, c, err);
	if (c->op == STORE_OP_GROUP)
		return store_group_generic(s, ctx, c->group, err);
	if (s->ops->around)
		return s->ops->around(s, ctx, c, err);
	if (c->op == STORE_OP_COPY)
		return store_copy_generic(s, ctx, c->path, c->to, c->to_cond, c->ret_stat, err);
	if (c->op == STORE_OP_SCAN)
		return store_scan_generic(s, ctx, c->path, c->scan, err);
	if (c->op == STORE_OP_JOURNAL_READ)
		return store_journal_read_generic(s, ctx, c->path, c->journal_read, c->ret_journal, err);
	if (c->op == STORE_OP_JOURNAL_ADD)
		return store_journal_add_generic(s, ctx, c->path, c->journal_add, c->ret_added, err);
	if (c->op == STORE_OP_JOURNAL_CUT)
		return store_journal_cut_generic(s, ctx, c->path, c->journal_before, JOURNAL_GRACE_NS, err);
	return err_set(err, ERR_UNSUPPORTED, "the %s store cannot %s", s->ops->name, store_op_info[c->op].name);
}

static int dispatch(struct store *s, struct ctx *ctx, struct store_call *c, struct err *err)
{
	int r = store_forward(s, ctx, c, err);

	if (r)
		err_prefix(err, "%s " ERR_PATH_BARE, store_op_info[c->op].name,
			   STR_ARG(wpath_is_root(c->path) ? STR("/") : c->path.s));
	return r;
}

static int refuse_root(enum store_op op, struct wpath path, struct err *err)
{
	if (wpath_is_root(path))
		return err_set(err, ERR_INVALID, "%s: the root is a directory; name a file", store_op_info[op].name);
	return 0;
}

int store_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat ? ret_stat : &unused};

	return dispatch(s, ctx, &c, err);
}

int store_read_stream(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		      const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_READ,
			       .path = path,
			       .range = range,
			       .sink = sink,
			       .ret_stat = ret_stat ? ret_stat : &unused};
	int r = refuse_root(STORE_OP_READ, path, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

/* Collects a read in the arena; a reserved block is filled by the backend itself. */
struct collect {
	struct arena *arena;
	size_t max;
	char *ptr;
	size_t len, cap;
};

static void *collect_reserve(void *arg, size_t size)
{
	struct collect *c = arg;

	if (size > c->max)
		return NULL; /* push will refuse with the right sentence */
	c->ptr = arena_alloc_raw(c->arena, size + 1);
	c->cap = size + 1;
	return c->ptr;
}

static int collect_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct collect *c = arg;

	if (len > c->max - c->len)
		return err_set(err, ERR_TOO_LARGE, "it has more than %zu bytes; split it, or make it smaller", c->max);
	if (!c->ptr || bytes != c->ptr + c->len || c->len + len + 1 > c->cap) {
		if (c->len + len + 1 > c->cap) {
			size_t cap = c->cap ? c->cap : 4096;

			while (cap < c->len + len + 1)
				cap *= 2;
			c->ptr = arena_grow(c->arena, c->ptr, c->cap, cap);
			c->cap = cap;
		}
		if (len)
			memcpy(c->ptr + c->len, bytes, len);
	}
	c->len += len;
	return 0;
}

static int read_all(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, size_t max,
		    bool skip_dirs, struct str *ret_bytes, struct store_stat *ret_stat, struct err *err)
{
	struct collect c = {.arena = ctx->arena, .max = max};
	struct sink sink = {.push = collect_push, .reserve = collect_reserve, .arg = &c, .skip_dirs = skip_dirs};
	int r = store_read_stream(s, ctx, path, range, &sink, ret_stat, err);

	if (r)
		return r;
	if (!c.ptr)
		c.ptr = arena_alloc(ctx->arena, 1);
	c.ptr[c.len] = '\0';
	if (ret_bytes)
		*ret_bytes = str_n(c.ptr, c.len);
	return 0;
}

int store_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, size_t max,
	       struct str *ret_bytes, struct store_stat *ret_stat, struct err *err)
{
	return read_all(s, ctx, path, range, max, false, ret_bytes, ret_stat, err);
}

int store_read_file(struct store *s, struct ctx *ctx, struct wpath path, size_t max, struct str *ret_bytes,
		    struct store_stat *ret_stat, struct err *err)
{
	return read_all(s, ctx, path, STORE_WHOLE, max, true, ret_bytes, ret_stat, err);
}

int store_write_stream(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
		       struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_WRITE,
			       .path = path,
			       .source = source,
			       .cond = cond,
			       .ret_stat = ret_stat ? ret_stat : &unused};
	int r = refuse_root(STORE_OP_WRITE, path, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

int store_write(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		struct store_stat *ret_stat, struct err *err)
{
	struct source source = {.bytes = bytes};

	return store_write_stream(s, ctx, path, &source, cond, ret_stat, err);
}

int store_append_stream(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_APPEND,
			       .path = path,
			       .source = source,
			       .cond = cond,
			       .ret_stat = ret_stat ? ret_stat : &unused};
	int r = refuse_root(STORE_OP_APPEND, path, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

int store_append(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		 struct store_stat *ret_stat, struct err *err)
{
	struct source source = {.bytes = bytes};

	return store_append_stream(s, ctx, path, &source, cond, ret_stat, err);
}

int store_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
		 uint64_t *ret_count, struct err *err)
{
	uint64_t unused;
	struct store_call c = {.op = STORE_OP_REMOVE,
			       .path = path,
			       .recursive = recursive,
			       .cond = cond,
			       .ret_count = ret_count ? ret_count : &unused};
	int r = recursive ? 0 : refuse_root(STORE_OP_REMOVE, path, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

static int check_two_paths(enum store_op op, struct wpath from, struct wpath to, struct err *err)
{
	int r = refuse_root(op, from, err);

	if (r == 0)
		r = refuse_root(op, to, err);
	if (r)
		return r;
	if (wpath_within(to, from) || wpath_within(from, to))
		return err_set(err, ERR_INVALID, "%s " ERR_PATH_BARE ": the target " ERR_PATH " %s",
			       store_op_info[op].name, STR_ARG(from.s), STR_ARG(to.s),
			       from.s.len == to.s.len  ? "is the same; choose another name"
			       : from.s.len < to.s.len ? "is inside it; choose a place outside"
						       : "contains it; choose a place outside");
	return 0;
}

int store_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
	       struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_MOVE,
			       .path = from,
			       .to = to,
			       .cond = cond,
			       .to_cond = to_cond,
			       .ret_stat = ret_stat ? ret_stat : &unused};
	int r = check_two_paths(STORE_OP_MOVE, from, to, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

int store_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	       struct store_stat *ret_stat, struct err *err)
{
	struct store_stat unused;
	struct store_call c = {.op = STORE_OP_COPY,
			       .path = from,
			       .to = to,
			       .to_cond = to_cond,
			       .ret_stat = ret_stat ? ret_stat : &unused};
	int r = check_two_paths(STORE_OP_COPY, from, to, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

int store_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
	       struct store_page *ret_page, struct err *err)
{
	struct store_call c = {.op = STORE_OP_LIST, .path = path, .list = req, .ret_page = ret_page};

	if (req->limit == 0 || req->limit > STORE_PAGE_MAX)
		return err_set(err, ERR_INVALID, "list: the limit is %zu; give 1 to %d", req->limit, STORE_PAGE_MAX);
	return dispatch(s, ctx, &c, err);
}

int store_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err)
{
	struct store_call c = {
		.op = STORE_OP_JOURNAL_READ, .path = journal, .journal_read = req, .ret_journal = ret_page};
	int r = refuse_root(c.op, journal, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

/* Refuses a file that is made below another one of the same group. */
static int refuse_clash(const struct journal_add *add, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct strmap *made = strmap_new(arena);

	for (size_t i = 0; i < add->item_count; i++)
		if (add->items[i].change != JOURNAL_REMOVE)
			strmap_put(made, add->items[i].path.s, NULL);
	for (size_t i = 0; i < add->item_count; i++) {
		struct wpath dir = wpath_parent(add->items[i].path);

		for (; add->items[i].change != JOURNAL_REMOVE && !wpath_is_root(dir); dir = wpath_parent(dir))
			if (strmap_find(made, dir.s))
				return store_refuse(REFUSE_BELOW_FILE, dir.s, err);
	}
	return 0;
}

static int check_items(const struct journal_add *add, struct err *err)
{
	size_t bytes = 0;
	int r = refuse_clash(add, err);

	for (size_t i = 0; r == 0 && i < add->item_count; i++) {
		r = refuse_root(STORE_OP_JOURNAL_ADD, add->items[i].path, err);
		bytes += add->items[i].content.len;
	}
	if (r == 0 && (add->item_count == 0 || add->item_count > JOURNAL_GROUP_MAX || bytes > JOURNAL_GROUP_BYTES))
		r = err_set(err, ERR_TOO_LARGE,
			    "the group has %zu changes and %zu bytes; one step takes 1 to %d changes and %zu bytes",
			    add->item_count, bytes, JOURNAL_GROUP_MAX, (size_t)JOURNAL_GROUP_BYTES);
	return r;
}

int store_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err)
{
	struct store_call c = {.op = STORE_OP_JOURNAL_ADD,
			       .path = journal,
			       .to = to,
			       .cond = cond,
			       .journal_add = add,
			       .ret_added = ret_added};
	int r = refuse_root(c.op, journal, err);

	if (r == 0 && add->change != JOURNAL_ALONE && add->change != JOURNAL_GROUP)
		r = refuse_root(c.op, to, err);
	if (r == 0 && add->change == JOURNAL_GROUP)
		r = check_items(add, err);
	if (r == 0 && add->bytes.len > JOURNAL_ENTRY_MAX)
		r = err_set(err, ERR_TOO_LARGE, "a journal entry has %zu bytes; at most %zu are allowed",
			    add->bytes.len, JOURNAL_ENTRY_MAX);
	*ret_added = (struct journal_added){0};
	return r ? r : dispatch(s, ctx, &c, err);
}

int store_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	struct store_call c = {.op = STORE_OP_JOURNAL_CUT, .path = journal, .journal_before = before};
	int r = refuse_root(c.op, journal, err);

	return r ? r : dispatch(s, ctx, &c, err);
}

int store_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	struct store_call c = {.op = STORE_OP_SCAN, .path = path, .scan = req};

	return dispatch(s, ctx, &c, err);
}

/* True when a file is written where a directory of removed files was, or below a removed file. */
static bool changes_kinds(const struct store_group *group, size_t removals)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct strmap *gone = strmap_new(arena); /* 1: a file, 2: a directory above one */

	if (removals == 0 || removals == group->count)
		return false;
	for (size_t i = 0; i < removals; i++) {
		struct wpath dir = group->items[i].path;

		*strmap_put(gone, dir.s, NULL) |= 1;
		for (dir = wpath_parent(dir); !wpath_is_root(dir); dir = wpath_parent(dir)) {
			size_t *at = strmap_put(gone, dir.s, NULL);

			if (*at & 2)
				break;
			*at |= 2;
		}
	}
	for (size_t i = removals; i < group->count; i++) {
		struct wpath dir = group->items[i].path;
		size_t *at = strmap_find(gone, dir.s);

		if (at && (*at & 2))
			return true;
		for (dir = wpath_parent(dir); !wpath_is_root(dir); dir = wpath_parent(dir)) {
			at = strmap_find(gone, dir.s);
			if (at && (*at & 1))
				return true;
		}
	}
	return false;
}

static int forward_group(struct store *s, struct ctx *ctx, struct store_group *group, size_t first, size_t count,
			 struct err *err)
{
	struct store_group part = {.items = group->items + first, .count = count, .failed = count};
	struct store_call c = {.op = STORE_OP_GROUP, .group = &part};
	int r = count ? store_forward(s, ctx, &c, err) : 0;

	if (r && part.failed < count)
		group->failed = first + part.failed;
	return r;
}

int store_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	size_t removals = 0, first;
	int r;

	group->failed = group->count;
	for (size_t i = 0; i < group->count; i++)
		group->items[i].made = false;
	while (removals < group->count && group->items[removals].op == STORE_OP_REMOVE)
		removals++;
	first = changes_kinds(group, removals) ? removals : group->count;
	r = forward_group(s, ctx, group, 0, first, err);
	if (r == 0)
		r = forward_group(s, ctx, group, first, group->count - first, err);
	if (r && group->failed < group->count) {
		const struct store_group_item *item = &group->items[group->failed];

		err_prefix(err, "%s " ERR_PATH_BARE, store_op_info[item->op].name, STR_ARG(item->path.s));
	}
	return r;
}

bool store_owner_eq(struct store_owner a, struct store_owner b)
{
	return a.kind == b.kind && (a.kind != STORE_OWNER_IDS || (a.uid == b.uid && a.gid == b.gid));
}

int store_cond_check(struct store_cond cond, bool exists, struct str version, struct err *err)
{
	if (cond.kind == STORE_ABSENT && exists)
		return err_set(err, ERR_EXISTS, "it already exists; overwrite it on purpose, or choose another name");
	if (cond.kind == STORE_VERSION && !exists)
		return err_set(err, ERR_CONFLICT, "it was removed since it was read; look again before you decide");
	if (cond.kind == STORE_VERSION && !str_eq(cond.version, version))
		return err_set(err, ERR_CONFLICT,
			       "it changed since it was read (now version %.*s, not %.*s); read again",
			       STR_ARG(version), STR_ARG(cond.version));
	return cond.still ? cond.still(cond.arg, err) : 0;
}

int store_not_found(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such file or directory; list its parent to see what is there");
}

int store_may_be_dir(struct err *err)
{
	store_not_found(err);
	return err_detail(err, DETAIL_MAY_BE_DIR);
}

int store_refuse(enum store_refusal why, struct str path, struct err *err)
{
	static const char *const sentences[] = {
		[REFUSE_DIR] = "is a directory; name a file",
		[REFUSE_FILE] = "is a file; name a directory",
		[REFUSE_BELOW_FILE] = "is a file, so nothing can be below it",
		[REFUSE_FILE_TARGET] = "is a file; a directory cannot replace it",
		[REFUSE_NOT_RECURSIVE] = "is a directory; remove it recursively",
		[REFUSE_DIR_VERSION] = "is a directory, which has no version; leave the condition out",
	};

	if (why == REFUSE_LONG_PATH)
		return err_set(err, ERR_INVALID, ERR_PATH " would get a path of more than %zu bytes", STR_ARG(path),
			       PATH_LEN_MAX);
	return err_set(err, ERR_INVALID, ERR_PATH " %s", STR_ARG(path), sentences[why]);
}

bool store_can(const struct store *s, enum store_ability ability)
{
	while ((s->inner || s->ops->stands_on) && !((s->ops->cannot | s->ops->can) & ability))
		s = s->inner ? s->inner : s->ops->stands_on(s);
	return s->ops->can & ability;
}

int store_sync(struct store *s, struct err *err)
{
	while (s->inner && !s->ops->sync)
		s = s->inner;
	return s->ops->sync ? s->ops->sync(s, err) : 0;
}

struct store *store_share(struct store *s)
{
	atomic_fetch_add(&s->shares, 1);
	return s;
}

void store_destroy(struct store *s)
{
	while (s && atomic_fetch_sub(&s->shares, 1) == 0) {
		struct store *inner = s->inner;

		s->ops->destroy(s);
		s = inner;
	}
}

/* Compares a and b as if directories ended in '/'. */
int store_entry_cmp(const struct store_entry *a, const struct store_entry *b)
{
	struct str x = a->path.s, y = b->path.s;
	size_t n = x.len < y.len ? x.len : y.len;
	int c = n ? memcmp(x.ptr, y.ptr, n) : 0;
	int cx, cy;

	if (c)
		return c;
	cx = x.len > n ? (unsigned char)x.ptr[n] : a->stat.kind == STORE_DIR ? '/' : -1;
	cy = y.len > n ? (unsigned char)y.ptr[n] : b->stat.kind == STORE_DIR ? '/' : -1;
	return cx - cy;
}
