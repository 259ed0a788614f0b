/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as bytes. A file that is read whole is as large as the embedder likes: it goes into malloc'd memory, and when
 * there is none the call fails instead of ending the process. Streams pass the store's pieces on as they are.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "lib/lib_internal.h"

_Static_assert(sizeof(((struct stead_stat *)0)->version) > VERSION_LEN_MAX, "every version fits, with its NUL");

static void give_stat(const struct store_stat *stat, struct stead_stat *ret)
{
	if (!ret)
		return;
	*ret = (struct stead_stat){
		.is_directory = stat->kind == STORE_DIR, .size = stat->size, .mtime_ns = stat->mtime_ns};
	/* A server whose ETags are longer than any store accepts in a condition: none is better than a part of one. */
	if (stat->version.len && stat->version.len < sizeof(ret->version))
		memcpy(ret->version, stat->version.ptr, stat->version.len);
}

/* The end of a call whose result is a stat. */
static int end_with(struct lib_call *c, int r, const struct store_stat *stat, struct stead_stat *ret,
		    struct stead_error *error)
{
	if (r == 0)
		give_stat(stat, ret);
	return lib_end(&c->err, r, error);
}

int stead_stat(struct stead *stead, const struct stead_call_options *how, const char *path, struct stead_stat *ret_stat,
	       struct stead_error *error)
{
	struct store_stat stat = {0};
	LIB_CALL c;
	int r = lib_begin_plain(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_stat(workspace_files(stead->ws), &c.ctx, c.path, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}

/* --- lists --- */

struct listing {
	struct lib_call *call;
	struct store *files;
	int (*entry)(void *arg, const char *path, const struct stead_stat *stat);
	void *arg;
	struct str after; /* in the arena of the call; ptr NULL: at the end */
};

/* One page, in memory that is given back after it. */
static int list_page(struct listing *l)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = l->call->ctx;
	struct store_list_req req = {.limit = 1000, .after = l->after};
	struct store_page page;
	int r;

	ctx.arena = arena;
	r = store_list(l->files, &ctx, l->call->path, &req, &page, &l->call->err);
	if (r)
		return r;
	l->after = page.next.ptr ? arena_str(l->call->ctx.arena, page.next) : STR_NONE;
	for (size_t i = 0; i < page.count; i++) {
		struct stead_stat stat;

		give_stat(&page.entries[i].stat, &stat);
		if (l->entry && l->entry(l->arg, arena_cstr(arena, page.entries[i].path.s), &stat) != 0) {
			l->after = STR_NONE;
			break;
		}
	}
	return 0;
}

int stead_list(struct stead *stead, const struct stead_call_options *how, const char *path,
	       int (*entry)(void *arg, const char *path, const struct stead_stat *stat), void *arg,
	       struct stead_error *error)
{
	LIB_CALL c;
	struct listing l = {.call = &c, .files = workspace_files(stead->ws), .entry = entry, .arg = arg};
	int r = lib_begin_plain(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path ? path : "");
	if (r == 0)
		r = list_page(&l);
	while (r == 0 && l.after.ptr) {
		r = ctx_check(&c.ctx, &c.err);
		if (r == 0)
			r = list_page(&l);
	}
	return lib_end(&c.err, r, error);
}

/* --- reading --- */

/* Collects a file in memory of the embedder's. */
struct collect {
	char *ptr;
	size_t len, cap;
	bool fixed; /* the memory is the embedder's already: it does not grow */
};

/* Room for `more` bytes and the NUL. */
static bool make_room(struct collect *c, size_t more)
{
	size_t cap = c->cap ? c->cap : 4096;
	char *grown;

	if (more > SIZE_MAX / 4 - c->len)
		return false;
	if (c->len + more + 1 <= c->cap)
		return true;
	while (cap < c->len + more + 1)
		cap *= 2;
	grown = realloc(c->ptr, cap);
	if (!grown)
		return false;
	c->ptr = grown;
	c->cap = cap;
	return true;
}

static void *collect_reserve(void *arg, size_t size)
{
	struct collect *c = arg;

	if (c->fixed)
		return size <= c->cap && c->len == 0 ? c->ptr : NULL;
	if (c->ptr || size > SIZE_MAX / 4 || !(c->ptr = malloc(size + 1)))
		return NULL;
	c->cap = size + 1;
	return c->ptr;
}

static int collect_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct collect *c = arg;

	if (bytes != c->ptr + c->len) {
		if (c->fixed ? len > c->cap - c->len : !make_room(c, len))
			return err_set(err, ERR_TOO_LARGE,
				       "there is not enough memory for %zu more bytes; read it with "
				       "stead_read_stream() or stead_read_at()",
				       len);
		if (len)
			memcpy(c->ptr + c->len, bytes, len);
	}
	c->len += len;
	return 0;
}

int stead_read(struct stead *stead, const struct stead_call_options *how, const char *path, char **ret_data,
	       size_t *ret_size, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct collect data = {0};
	struct sink sink = {.push = collect_push, .reserve = collect_reserve, .arg = &data};
	struct store_stat stat = {0};
	LIB_CALL c;
	int r = lib_begin_plain(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_read_stream(workspace_files(stead->ws), &c.ctx, c.path, STORE_WHOLE, &sink, &stat, &c.err);
	if (r == 0 && !make_room(&data, 0))
		r = err_set(&c.err, ERR_TOO_LARGE, "read %.200s: there is not enough memory for it", path);
	if (r || !ret_data) {
		free(data.ptr);
	} else {
		data.ptr[data.len] = '\0';
		*ret_data = data.ptr;
	}
	if (r == 0 && ret_size)
		*ret_size = data.len;
	return end_with(&c, r, &stat, ret_stat, error);
}

int stead_read_at(struct stead *stead, const struct stead_call_options *how, const char *path, uint64_t offset,
		  void *buffer, size_t *size, struct stead_error *error)
{
	struct collect data = {.ptr = buffer, .cap = *size, .fixed = true};
	struct sink sink = {.push = collect_push, .reserve = collect_reserve, .arg = &data};
	struct store_range range = {offset, *size};
	LIB_CALL c;
	int r = lib_begin_plain(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_read_stream(workspace_files(stead->ws), &c.ctx, c.path, range, &sink, NULL, &c.err);
	if (r == 0)
		*size = data.len;
	return lib_end(&c.err, r, error);
}

/* --- streams --- */

struct reading {
	struct stead_sink to;
	const struct ctx *ctx;
};

/* The deadline holds for a slow embedder as well as for a slow store. */
static int reading_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct reading *reading = arg;
	int r = ctx_check(reading->ctx, err), answer;

	if (r)
		return r;
	answer = reading->to.take(reading->to.arg, bytes, len);
	if (answer)
		return err_set(err, ERR_CANCELLED, "the reading program stopped it (its function returned %d)", answer);
	return 0;
}

int stead_read_stream(struct stead *stead, const struct stead_call_options *how, const char *path,
		      const struct stead_sink *sink, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct store_stat stat = {0};
	LIB_CALL c;
	struct reading reading = {.ctx = &c.ctx};
	struct sink push = {.push = reading_push, .arg = &reading};
	struct store_range range = STORE_WHOLE;
	int r = lib_begin_plain(&c, stead, how);

	if (r == 0)
		r = lib_take(sink, "stead_sink", &reading.to, sizeof reading.to, &c.err);
	if (r == 0 && !reading.to.take)
		r = err_set(&c.err, ERR_INVALID, "struct stead_sink has no function; set `take`");
	if (r == 0)
		r = lib_path(&c, path);
	range.offset = reading.to.offset;
	if (reading.to.length)
		range.length = reading.to.length;
	if (r == 0)
		r = store_read_stream(workspace_files(stead->ws), &c.ctx, c.path, range, &push, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}

struct writing {
	struct stead_source from;
	const struct ctx *ctx;
};

static int writing_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct writing *writing = arg;
	int r = ctx_check(writing->ctx, err);
	ptrdiff_t n;

	if (r)
		return r;
	n = writing->from.give(writing->from.arg, buf, cap);
	if (n < 0)
		return err_set(err, ERR_CANCELLED, "the writing program stopped it (its function returned %td)", n);
	if ((size_t)n > cap)
		return err_set(err, ERR_INVALID,
			       "the function of struct stead_source returned %td bytes for a buffer of %zu", n, cap);
	*ret_len = (size_t)n;
	return 0;
}

static int writing_rewind(void *arg, struct err *err)
{
	struct writing *writing = arg;
	int answer = writing->from.rewind(writing->from.arg);

	if (answer)
		return err_set(err, ERR_CANCELLED, "the writing program cannot start again (its function returned %d)",
			       answer);
	return 0;
}

int stead_write_stream(struct stead *stead, const struct stead_call_options *how, const char *path,
		       const struct stead_source *source, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct store_stat stat = {0};
	LIB_CALL c;
	struct writing writing = {.ctx = &c.ctx};
	struct source pull = {.pull = writing_pull, .arg = &writing};
	int r = lib_begin(&c, stead, how);

	if (r == 0)
		r = lib_take(source, "stead_source", &writing.from, sizeof writing.from, &c.err);
	if (r == 0 && !writing.from.give)
		r = err_set(&c.err, ERR_INVALID, "struct stead_source has no function; set `give`");
	if (r == 0)
		r = lib_path(&c, path);
	if (writing.from.rewind)
		pull.rewind = writing_rewind;
	if (r == 0)
		r = store_write_stream(workspace_files(stead->ws), &c.ctx, c.path, &pull, c.cond, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}

/* --- changing --- */

int stead_write(struct stead *stead, const struct stead_call_options *how, const char *path, const void *data,
		size_t size, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct store_stat stat = {0};
	LIB_CALL c;
	int r = lib_begin(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_write(workspace_files(stead->ws), &c.ctx, c.path, str_n(data, size), c.cond, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}

int stead_append(struct stead *stead, const struct stead_call_options *how, const char *path, const void *data,
		 size_t size, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct store_stat stat = {0};
	LIB_CALL c;
	int r = lib_begin(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_append(workspace_files(stead->ws), &c.ctx, c.path, str_n(data, size), c.cond, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}

int stead_remove(struct stead *stead, const struct stead_call_options *how, const char *path, int recursive,
		 uint64_t *ret_files, struct stead_error *error)
{
	LIB_CALL c;
	int r = lib_begin(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, path);
	if (r == 0)
		r = store_remove(workspace_files(stead->ws), &c.ctx, c.path, recursive, c.cond, ret_files, &c.err);
	return lib_end(&c.err, r, error);
}

int stead_move(struct stead *stead, const struct stead_call_options *how, const char *from, const char *to, int replace,
	       struct stead_stat *ret_stat, struct stead_error *error)
{
	struct store_cond target = {.kind = replace ? STORE_ANY : STORE_ABSENT};
	struct store_stat stat = {0};
	struct wpath source;
	LIB_CALL c;
	int r = lib_begin(&c, stead, how);

	if (r == 0)
		r = lib_path(&c, from);
	source = c.path;
	if (r == 0)
		r = lib_path(&c, to);
	if (r == 0)
		r = store_move(workspace_files(stead->ws), &c.ctx, source, c.path, c.cond, target, &stat, &c.err);
	return end_with(&c, r, &stat, ret_stat, error);
}
