/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy, scan and groups for stores that have no better way: written over the store's own stat, read, write and list, so
 * that whatever a layer hides, refuses or translates is hidden, refused and translated here too.
 *
 * The copy pulls: a write asks for bytes and gets them by ranged reads of the source, each checked to be of the version
 * that the copy began with. So it needs one buffer, whatever the size, and no second thread.
 *
 * The scan descends with one-level lists instead of one recursive list: a directory that is not wanted (node_modules)
 * is then never listed, and the .gitignore of a directory is known before its entries are looked at. It uses one
 * thread; backends that can do better (disk) bring their own.
 */
#include "base/limits.h"
#include "store/list_stream.h"
#include "text/ignore.h"

struct copy_source {
	struct store *store;
	struct ctx *ctx;
	struct wpath path;
	struct str version;
	uint64_t offset;
};

struct copy_piece {
	char *ptr;
	size_t len, cap;
};

static int piece_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct copy_piece *p = arg;

	if (len > p->cap - p->len)
		return err_set(err, ERR_INTERNAL, "a read gave more bytes than its range holds");
	if (len)
		memcpy(p->ptr + p->len, bytes, len);
	p->len += len;
	return 0;
}

static int copy_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct copy_source *c = arg;
	struct copy_piece piece = {.ptr = buf, .cap = cap};
	struct sink sink = {.push = piece_push, .arg = &piece};
	struct store_stat stat;
	struct store_call call = {
		.op = STORE_OP_READ, .path = c->path, .range = {c->offset, cap}, .sink = &sink, .ret_stat = &stat};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *c->ctx;
	int r;

	ctx.arena = arena;
	r = store_forward(c->store, &ctx, &call, err);
	if (r)
		return r;
	if (!str_eq(stat.version, c->version))
		return err_set(err, ERR_CONFLICT, ERR_PATH " changed while it was being copied; copy it again",
			       STR_ARG(c->path.s));
	c->offset += piece.len;
	*ret_len = piece.len;
	return 0;
}

static int copy_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct copy_source *)arg)->offset = 0;
	return 0;
}

int store_copy_between(struct store *from_store, struct ctx *ctx, struct wpath from, struct store *to_store,
		       struct wpath to, struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct copy_source c = {.store = from_store, .ctx = ctx, .path = from};
	struct source source = {.pull = copy_pull, .rewind = copy_rewind, .arg = &c};
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = from, .ret_stat = &stat};
	struct store_call put = {
		.op = STORE_OP_WRITE, .path = to, .source = &source, .cond = to_cond, .ret_stat = ret_stat};
	int r = store_forward(from_store, ctx, &get, err);

	if (r)
		return r;
	if (stat.kind == STORE_DIR)
		return err_set(err, ERR_INVALID, ERR_PATH " is a directory; copy its files one by one",
			       STR_ARG(from.s));
	c.version = stat.version;
	source.mode = stat.mode;
	return store_forward(to_store, ctx, &put, err);
}

int store_copy_generic(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		       struct store_stat *ret_stat, struct err *err)
{
	return store_copy_between(s, ctx, from, s, to, to_cond, ret_stat, err);
}

struct scan {
	struct store *store;
	struct ctx *ctx;
	const struct scan_req *req;
	struct wpath top;
	uint64_t seq;
	char *chunk;         /* SCAN_CHUNK bytes, with contents */
	struct arena *files; /* what reading one file needs */
	struct arena *rules; /* of the ignore files */
};

/* One file on its way to the visitor: bytes gather in scan.chunk and leave it by whole lines. */
struct scan_file {
	struct scan *scan;
	struct scan_item item;
	size_t len; /* bytes in the chunk */
	int ended;  /* the visitor's answer that ended the file, 0: none yet */
	struct err err;
};

static int deliver(struct scan_file *f, size_t len, bool last)
{
	f->item.data = str_n(f->scan->chunk, len);
	f->item.last = last;
	f->ended = f->scan->req->visit(f->scan->req->arg, &f->item, &f->err);
	f->item.offset += len;
	f->len -= len;
	if (f->len)
		memmove(f->scan->chunk, f->scan->chunk + len, f->len);
	return f->ended;
}

static int scan_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct scan_file *f = arg;
	struct str rest = str_n(bytes, len);

	while (rest.len) {
		size_t n;

		if (f->len == SCAN_CHUNK) { /* more is there, so this is not the last one */
			size_t line = str_rfind_char(str_n(f->scan->chunk, f->len), '\n');

			if (deliver(f, line < f->len ? line + 1 : f->len, false))
				return err_set(err, ERR_CANCELLED, "the visitor ended the file");
		}
		n = rest.len < SCAN_CHUNK - f->len ? rest.len : SCAN_CHUNK - f->len;
		memcpy(f->scan->chunk + f->len, rest.ptr, n);
		f->len += n;
		rest = str_from(rest, n);
	}
	return 0;
}

/* Reads a file through the visitor. Only an end of the call or the visitor's own error ends the scan. */
static int scan_contents(struct scan *s, struct scan_file *f, struct err *err)
{
	struct sink sink = {.push = scan_push, .arg = f};
	struct store_stat stat;
	struct store_call call = {.op = STORE_OP_READ, .path = {f->item.path}, .sink = &sink, .ret_stat = &stat};
	struct ctx ctx = *s->ctx;
	int r;

	arena_reset(s->files);
	ctx.arena = s->files;
	call.range = (struct store_range){f->item.offset, UINT64_MAX};
	r = store_forward(s->store, &ctx, &call, err);
	if (f->ended)
		return f->ended;
	if (r == 0)
		return deliver(f, f->len, true);
	if (r == -ERR_CANCELLED || r == -ERR_TIMEOUT)
		return r;
	f->len = 0;
	f->item.unreadable = true;
	return deliver(f, 0, true);
}

static int scan_file(struct scan *s, const struct scan_item *item, struct err *err)
{
	struct scan_file f = {.scan = s, .item = *item};
	int r = s->req->contents ? scan_contents(s, &f, err) : deliver(&f, 0, true);

	if (r == SCAN_SKIP_FILE)
		return 0;
	if (f.ended)
		*err = f.err;
	return r;
}

int store_scan_file(struct store *store, struct ctx *ctx, const struct scan_req *req, const struct scan_item *item,
		    char *chunk, struct err *err)
{
	struct scan s = {.store = store, .ctx = ctx, .req = req, .chunk = chunk, .files = ctx->arena};

	return scan_file(&s, item, err);
}

/* The rules of the file `name` in `dir`, put on `parent`. One that is not there or cannot be read has none. */
static const struct ignore *push_rules(struct scan *s, const struct ignore *parent, struct wpath dir, struct str name)
{
	struct wpath path;
	struct store_stat stat;
	char *text = NULL;
	struct copy_piece piece = {0};
	struct sink sink = {.push = piece_push, .arg = &piece};
	struct store_call call = {.op = STORE_OP_READ, .range = {0, IGNORE_LEN_MAX}, .sink = &sink, .ret_stat = &stat};
	struct store_call look = {.op = STORE_OP_STAT, .ret_stat = &stat};
	struct ctx ctx = *s->ctx;
	struct err ignored;

	arena_reset(s->files);
	ctx.arena = s->files;
	if (wpath_join(s->files, dir, (struct wpath){name}, &path, &ignored))
		return parent;
	look.path = call.path = path;
	if (store_forward(s->store, &ctx, &look, &ignored) || stat.kind != STORE_FILE)
		return parent;
	piece.cap = stat.size < IGNORE_LEN_MAX ? (size_t)stat.size : IGNORE_LEN_MAX;
	piece.ptr = text = arena_alloc_raw(s->files, piece.cap + 1);
	call.range.length = piece.cap;
	if (store_forward(s->store, &ctx, &call, &ignored))
		return parent;
	return ignore_push(s->rules, parent, arena_str(s->rules, dir.s), str_n(text, piece.len));
}

/* The rules that hold in the scanned directory's parent: a scan of a part leaves out what one of the whole does. */
static const struct ignore *rules_above(struct scan *s)
{
	struct store_stat stat;
	struct store_call look = {.op = STORE_OP_STAT, .path = {STR(".git")}, .ret_stat = &stat};
	struct ctx ctx = *s->ctx;
	struct err ignored;
	const struct ignore *rules = NULL;

	arena_reset(s->files);
	ctx.arena = s->files;
	if (store_forward(s->store, &ctx, &look, &ignored) == 0)
		rules = push_rules(s, NULL, WPATH_ROOT, STR(IGNORE_EXCLUDE_FILE));
	else
		rules = ignore_outside_repository(s->rules);
	if (wpath_is_root(s->top))
		return rules;
	rules = push_rules(s, rules, WPATH_ROOT, STR(IGNORE_FILE));
	for (size_t i = 0; i < s->top.s.len; i++)
		if (s->top.s.ptr[i] == '/')
			rules = push_rules(s, rules, (struct wpath){str_first(s->top.s, i)}, STR(IGNORE_FILE));
	return rules;
}

static int scan_dir(struct scan *s, struct wpath dir, const struct ignore *rules, struct err *err);

static int scan_entry(struct scan *s, const struct store_entry *e, const struct ignore *rules, struct err *err)
{
	struct scan_item item = {.path = e->path.s, .size = s->req->contents ? e->stat.size : 0};
	bool is_dir = e->stat.kind == STORE_DIR;

	if (s->req->use_ignore && ignore_match(rules, e->path.s, is_dir))
		return 0;
	if (!is_dir && s->req->want_file && !s->req->want_file(s->req->arg, e->path.s))
		return 0;
	if (!is_dir) {
		item.seq = s->seq++;
		return scan_file(s, &item, err);
	}
	if (s->req->want_dir && !s->req->want_dir(s->req->arg, e->path.s))
		return 0;
	return scan_dir(s, e->path, rules, err);
}

/* Depth is bounded by the length of a path. Each level keeps one page. */
static int scan_dir(struct scan *s, struct wpath dir, const struct ignore *rules, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = s->store,
						    .dir = dir,
						    .req = {.limit = 1000, .names_only = !s->req->contents},
						    .is_layer = true,
						    .ctx = *s->ctx};
	int r;

	if (s->req->use_ignore)
		rules = push_rules(s, rules, dir, STR(IGNORE_FILE));
	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			r = scan_entry(s, &pages.page.entries[i], rules, err);
			if (r)
				return r;
		}
	return r == -ERR_NOT_FOUND && dir.s.ptr != s->top.s.ptr ? 0 : r; /* gone since its parent was listed */
}

int store_scan_generic(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	ARENA_SCOPE struct arena *files = arena_new();
	ARENA_SCOPE struct arena *rules = arena_new();
	struct scan scan = {.store = s, .ctx = ctx, .req = req, .top = path, .files = files, .rules = rules};
	int r;

	if (req->contents)
		scan.chunk = xmalloc(SCAN_CHUNK);
	r = scan_dir(&scan, path, req->use_ignore ? rules_above(&scan) : NULL, err);
	free(scan.chunk);
	return r;
}

/* --- groups --- */

/* Each change has memory of its own: a group may have many. */
int store_group_generic(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;

	own.arena = arena;
	for (size_t i = 0; i < group->count; i++) {
		struct store_group_item *item = &group->items[i];
		struct store_stat stat = {0};
		uint64_t count;
		struct store_call call = {.op = item->op,
					  .path = item->path,
					  .source = item->source,
					  .cond = item->cond,
					  .ret_stat = &stat,
					  .ret_count = &count};
		int r;

		arena_reset(arena);
		r = store_forward(s, &own, &call, err);
		if (r) {
			group->failed = i;
			return r;
		}
		item->made = true;
		item->stat = stat;
		item->stat.version = arena_str(ctx->arena, stat.version);
	}
	return 0;
}
