/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jsonl.h"

#include "base/limits.h"

static struct str line_of(struct arena *arena, const struct jv *object)
{
	struct buf line;

	buf_init(&line, arena, JSON_LEN_MAX);
	jv_write(&line, object);
	buf_char(&line, '\n');
	return line.overflow ? STR_NONE : buf_str(&line);
}

int jsonl_append(struct store *store, struct ctx *ctx, struct wpath path, const struct jv *object,
		 const struct jv *first, struct err *err)
{
	struct str line = line_of(ctx->arena, object), head;
	struct buf both;
	int r = -ERR_EXISTS;

	if (!line.ptr)
		return err_set(err, ERR_TOO_LARGE, "append " ERR_PATH_BARE ": the entry has more than %zu bytes",
			       STR_ARG(path.s), JSON_LEN_MAX);
	if (first && store_stat(store, ctx, path, NULL, err) == -ERR_NOT_FOUND) {
		head = line_of(ctx->arena, first);
		buf_init(&both, ctx->arena, head.len + line.len);
		buf_add(&both, head);
		buf_add(&both, line);
		r = store_write(store, ctx, path, buf_str(&both), (struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	}
	if (r == -ERR_EXISTS)
		r = store_append(store, ctx, path, line, (struct store_cond){0}, NULL, err);
	return r;
}

/* --- from the end --- */

/* Gives the lines of `bytes`, the last first. The first line is left when it may begin before `bytes`. */
static bool give_back(struct arena *arena, struct str bytes, uint64_t offset, bool whole, struct jsonl_back *back,
		      size_t *ret_left)
{
	size_t end = bytes.len;

	while (end) {
		size_t from = end - 1;
		struct jsonl_line line;
		struct jv *value;
		struct err ignored;
		struct str text;

		while (from && bytes.ptr[from - 1] != '\n')
			from--;
		if (from == 0 && !whole)
			break;
		text = str_trim(str_n(bytes.ptr + from, end - from));
		end = from;
		if (!text.len)
			continue;
		if (jv_parse(arena, text, &value, &ignored) || value->type != JV_OBJECT) {
			back->bad++;
			continue;
		}
		line = (struct jsonl_line){value, offset + from};
		if (!back->visit(back->arg, &line))
			return false;
	}
	*ret_left = end;
	return true;
}

int jsonl_read_back(struct store *store, struct ctx *ctx, struct wpath path, struct jsonl_back *back, struct err *err)
{
	size_t window = STREAM_CHUNK;
	struct store_stat stat;
	uint64_t end;
	int r = store_stat(store, ctx, path, &stat, err);

	back->bad = 0;
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	end = back->before && back->before < stat.size ? back->before : stat.size;
	while (end) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = *ctx;
		struct store_range range = {end > window ? end - window : 0, end > window ? window : end};
		struct str bytes;
		size_t left = 0;

		c.arena = arena;
		r = ctx_check(ctx, err);
		if (r == 0)
			r = store_read(store, &c, path, range, window, &bytes, NULL, err);
		if (r)
			return r;
		if (!give_back(arena, bytes, range.offset, range.offset == 0, back, &left))
			return 0;
		if (left == bytes.len && range.offset) { /* one line is longer than the window */
			if (window > JSON_LEN_MAX)
				return err_set(err, ERR_TOO_LARGE,
					       "read " ERR_PATH_BARE ": a line has more than %zu bytes",
					       STR_ARG(path.s), JSON_LEN_MAX);
			window *= 4;
			continue;
		}
		end = range.offset + left;
		window = STREAM_CHUNK;
	}
	return 0;
}

/* --- forward --- */

struct forward {
	bool (*visit)(void *arg, const struct jsonl_line *line);
	void *arg;
	struct buf rest; /* of a line whose end has not come yet */
	uint64_t offset; /* where that line begins */
	bool ended;
};

static void give_line(struct forward *f, struct str text)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jsonl_line line = {.offset = f->offset};
	struct err ignored;
	struct jv *value;

	f->offset += text.len + 1;
	if (f->ended || jv_parse(arena, str_trim(text), &value, &ignored) || value->type != JV_OBJECT)
		return;
	line.value = value;
	f->ended = !f->visit(f->arg, &line);
}

static int take(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct forward *f = arg;
	struct str rest = str_n(bytes, len);

	while (rest.len) {
		size_t n = str_find_char(rest, '\n');

		buf_add(&f->rest, str_first(rest, n));
		if (f->rest.overflow)
			return err_set(err, ERR_TOO_LARGE, "a line has more than %zu bytes", JSON_LEN_MAX);
		if (n == rest.len)
			break;
		give_line(f, buf_str(&f->rest));
		buf_clear(&f->rest);
		rest = str_from(rest, n + 1);
	}
	return 0;
}

int jsonl_read_from(struct store *store, struct ctx *ctx, struct wpath path, uint64_t offset,
		    bool (*visit)(void *arg, const struct jsonl_line *line), void *arg, uint64_t *ret_end,
		    struct err *err)
{
	struct forward f = {.visit = visit, .arg = arg, .offset = offset};
	struct sink sink = {.push = take, .arg = &f};
	struct store_range range = {offset, UINT64_MAX};
	int r;

	buf_init(&f.rest, NULL, JSON_LEN_MAX);
	r = store_read_stream(store, ctx, path, range, &sink, NULL, err);
	buf_release(&f.rest);
	if (r == 0 && ret_end)
		*ret_end = f.offset;
	return r;
}
