/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing, copying and moving. None of it is one step on an S3 server, so each is made of steps after any of which a
 * crash may come, and a second call continues where the first one ended:
 *
 * - A file is moved by a copy on the server and a delete. The copy says where it comes from and from which version
 *   (x-amz-meta-stead-moved), so that the second call knows its own half-done work from a target that was in the way.
 * - A directory is moved file by file, in pages: copy, then delete. Before the first copy a note of the move is written
 *   below S3_OWN; while it is there, the target may already exist, and a source that is gone is a move that was done.
 * - A directory is removed by lists of a thousand deletions; what a crash left is there to be removed again.
 *
 * At every moment each file is at its old place, at its new one, or at both. A target that must be absent is made by a
 * conditional PutObject of the bytes: a copy on the server has no condition that all servers know.
 *
 * A delete under a version looks first and sends If-Match along. Servers that do not know If-Match on a delete (Ceph
 * before 20, R2) leave a moment between look and delete in which another's change goes with it.
 */
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "net/digest.h"
#include "store/backends/s3/s3.h"

#define DELETE_MAX 1000

static int is_own(struct str path, struct err *err)
{
	if (wpath_within((struct wpath){path}, (struct wpath){STR(S3_OWN)}))
		return err_set(err, ERR_INVALID, "the name \"%s\" is reserved for the store; use another name", S3_OWN);
	return 0;
}

/* Deleting. */

static int delete_one(struct s3 *s3, struct ctx *ctx, struct str key, struct str etag, struct err *err)
{
	struct s3_call call = {.method = "DELETE", .key = key};
	struct s3_answer a;
	int r;

	if (etag.len)
		s3_header(&call, "if-match", s3->conf.r2 ? arena_printf(ctx->arena, "\"%.*s\"", STR_ARG(etag)) : etag);
	r = s3_call(s3, ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status == 412)
		return err_set(err, ERR_CONFLICT, "it changed since it was read; read again");
	if (a.http.status == 501 && etag.len) /* no condition on a delete here */
		return delete_one(s3, ctx, key, STR(""), err);
	if (a.http.status >= 300 && a.http.status != 404)
		return s3_refused(s3, &a, err);
	return 0;
}

static void xml_escaped(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '<' || c == '>' || c == '&' || c == '"')
			buf_printf(out, "&#%u;", c);
		else
			buf_char(out, (char)c);
	}
}

/* XML cannot hold control characters, which a key of another program may have. */
static bool xml_can_name(struct str key)
{
	for (size_t i = 0; i < key.len; i++)
		if ((unsigned char)key.ptr[i] < 0x20)
			return false;
	return utf8_valid(key);
}

struct delete_answer {
	struct str code, key;
};

static int delete_visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text, struct err *err)
{
	struct delete_answer *d = arg;

	(void)depth;
	(void)err;
	if (str_is(parent, "Error") && str_is(name, "Code") && !str_is(text, "NoSuchKey"))
		d->code = text;
	if (str_is(parent, "Error") && str_is(name, "Key"))
		d->key = text;
	return 0;
}

/* Up to DELETE_MAX keys in one request. */
static int delete_keys(struct s3 *s3, struct ctx *ctx, const struct str *keys, size_t count, struct err *err)
{
	struct s3_call call = {.method = "POST"};
	struct delete_answer said = {0};
	uint8_t md5[MD5_LEN];
	struct s3_answer a;
	struct buf xml;
	int r;

	if (count == 1)
		return delete_one(s3, ctx, keys[0], STR(""), err);
	buf_init(&xml, ctx->arena, 16 * MIB);
	buf_lit(&xml, "<Delete><Quiet>true</Quiet>");
	for (size_t i = 0; i < count; i++) {
		buf_lit(&xml, "<Object><Key>");
		xml_escaped(&xml, keys[i]);
		buf_lit(&xml, "</Key></Object>");
	}
	buf_lit(&xml, "</Delete>");
	call.body = buf_str(&xml);
	call.query[0] = (struct s3_param){"delete", STR("")};
	r = digest_md5(call.body, md5, err);
	if (r)
		return r;
	s3_header(&call, "content-md5", base64_encode(ctx->arena, str_n(md5, MD5_LEN)));
	r = s3_call(s3, ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status >= 300)
		return s3_refused(s3, &a, err);
	if (a.http.body.len)
		r = s3_xml_walk(ctx->arena, a.http.body, delete_visit, &said, err);
	if (r == 0 && said.code.len)
		r = err_set(err, ERR_UNAVAILABLE, "the S3 server could not delete \"%.*s\" (%.*s); try again",
			    STR_ARG(said.key), STR_ARG(said.code));
	return r;
}

static bool is_own_key(struct s3 *s3, struct str key)
{
	return str_starts(str_from(key, strlen(s3->conf.prefix)), STR(S3_OWN "/"));
}

static int remove_dir(struct s3 *s3, struct ctx *ctx, struct str path, uint64_t *ret_count, struct err *err)
{
	struct str dir_key = s3_dir_key(s3, ctx->arena, path), token = STR("");
	uint64_t count = 0;
	bool any = path.len == 0;
	int r = 0;

	for (;;) {
		struct s3_listing list;
		struct str *keys;
		size_t n = 0;

		r = s3_list(s3, ctx, dir_key, false, STR(""), token, DELETE_MAX, &list, err);
		if (r)
			return r;
		any = any || list.count;
		keys = ARENA_ARRAY(ctx->arena, struct str, list.count + 1);
		for (size_t i = 0; r == 0 && i < list.count; i++) {
			struct str key = list.objects[i].key;

			if (is_own_key(s3, key))
				continue;
			count++;
			if (xml_can_name(key))
				keys[n++] = key;
			else
				r = delete_one(s3, ctx, key, STR(""), err);
		}
		if (r == 0 && n)
			r = delete_keys(s3, ctx, keys, n, err);
		if (r)
			return r;
		token = list.token;
		if (!list.truncated || !token.len)
			break;
	}
	s3_place_gone(s3, path);
	if (!any)
		return store_not_found(err);
	*ret_count = count;
	return 0;
}

/* A file that meets its condition, or a directory (exists false). */
static int find_source(struct s3 *s3, struct ctx *ctx, struct str path, struct store_cond cond, struct s3_head *ret,
		       struct err *err)
{
	bool any;
	int r = s3_head(s3, ctx, s3_key(s3, ctx->arena, path), ret, err);

	if (r)
		return r;
	if (ret->exists)
		return store_cond_check(cond, true, ret->etag, err);
	if (cond.kind == STORE_ANY)
		return 0; /* a directory, or nothing: its list will tell */
	r = s3_any_below(s3, ctx, s3_dir_key(s3, ctx->arena, path), &any, err);
	if (r)
		return r;
	if (any)
		return store_refuse(REFUSE_DIR_VERSION, path, err);
	return cond.kind == STORE_VERSION ? store_cond_check(cond, false, STR(""), err) : store_not_found(err);
}

int s3_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
	      uint64_t *ret_count, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct s3_head head = {0};
	int r = is_own(path.s, err);

	if (r == 0 && !wpath_is_root(path))
		r = find_source(s3, ctx, path.s, cond, &head, err);
	if (r)
		return r;
	if (!head.exists && !recursive) {
		r = s3_absent(s3, ctx, path.s, err);
		if (r == -ERR_INVALID)
			r = store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
		return r;
	}
	if (!head.exists)
		return remove_dir(s3, ctx, path.s, ret_count, err);
	r = delete_one(s3, ctx, s3_key(s3, ctx->arena, path.s), cond.kind == STORE_VERSION ? head.etag : STR(""), err);
	if (r)
		return r;
	s3_place_gone(s3, path.s);
	*ret_count = 1;
	return 0;
}

/* Copying. */

/* On the server; the target is replaced. */
static int copy_object(struct s3 *s3, struct ctx *ctx, struct str from_key, const struct s3_head *from,
		       const struct s3_put *put, struct store_stat *ret_stat, struct err *err)
{
	struct s3_call call = {.method = "PUT", .key = put->key, .expect = from->size / 8};
	struct s3_head head = {.exists = true, .size = from->size, .mtime_ns = put->mtime_ns};
	struct s3_answer a;
	struct buf source;
	int r;

	buf_init(&source, ctx->arena, 16 * KIB);
	buf_printf(&source, "/%s/", s3->conf.bucket);
	http_encode(&source, from_key, true);
	s3_header(&call, "x-amz-copy-source", buf_str(&source));
	s3_header(&call, "x-amz-copy-source-if-match",
		  s3->conf.r2 ? arena_printf(ctx->arena, "\"%.*s\"", STR_ARG(from->etag)) : from->etag);
	s3_header(&call, "x-amz-metadata-directive", STR("REPLACE"));
	s3_meta_headers(s3, ctx->arena, &call, put);
	r = s3_call(s3, ctx, &call, &a, err);
	if (r)
		return r;
	if (a.http.status == 412 || a.http.status == 404) {
		r = err_set(err, ERR_CONFLICT, "it changed while it was being copied; try again");
		err->retryable = true;
		return r;
	}
	if (a.http.status >= 300)
		return s3_refused(s3, &a, err);
	head.etag = s3_xml_text(ctx->arena, a.http.body, "ETag");
	if (head.etag.len > 2 && head.etag.ptr[0] == '"')
		head.etag = str_n(head.etag.ptr + 1, head.etag.len - 2);
	if (!head.mtime_ns)
		head.mtime_ns = s3_time(s3_xml_text(ctx->arena, a.http.body, "LastModified"));
	if (head.etag.len == 0)
		r = s3_head(s3, ctx, put->key, &head, err);
	if (r == 0)
		s3_stat_of(&head, ret_stat);
	return r;
}

/* Through this process: the bytes come here and go back, which lets the target have a condition. */
static int copy_through(struct s3 *s3, struct ctx *ctx, struct str from_key, const struct s3_head *from,
			const struct s3_put *put, struct store_stat *ret_stat, struct err *err)
{
	struct s3_body nothing = {0}, body;
	int r = s3_join(s3, ctx, from_key, from, &nothing, &body, err);

	if (r)
		return r;
	r = s3_put_body(s3, ctx, put, &body, ret_stat, err);
	s3_body_release(&body);
	return r;
}

/* `from` becomes put->key, under put's condition. */
static int copy_file(struct s3 *s3, struct ctx *ctx, struct str from_key, const struct s3_head *from,
		     struct s3_put *put, struct store_stat *ret_stat, struct err *err)
{
	bool has = false;
	int r = 0;

	if (put->cond.kind != STORE_ANY)
		r = s3_conditions(s3, ctx, &has, err);
	if (r)
		return r;
	if (put->cond.kind != STORE_ANY && !has) {
		struct s3_head head;

		r = s3_head(s3, ctx, put->key, &head, err);
		if (r == 0)
			r = store_cond_check(put->cond, head.exists, head.etag, err);
		put->cond = (struct store_cond){0};
		if (r)
			return r;
	}
	if (put->cond.kind != STORE_ANY || from->size > S3_SINGLE_MAX)
		return copy_through(s3, ctx, from_key, from, put, ret_stat, err);
	return copy_object(s3, ctx, from_key, from, put, ret_stat, err);
}

int s3_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
	    struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct str from_key = s3_key(s3, ctx->arena, from.s);
	struct s3_put put = {.key = s3_key(s3, ctx->arena, to.s), .cond = to_cond, .token = s3_token_new(ctx->arena)};
	struct s3_head head;
	int r = is_own(from.s, err);

	if (r == 0)
		r = is_own(to.s, err);
	if (r == 0)
		r = s3_head(s3, ctx, from_key, &head, err);
	if (r == 0 && !head.exists)
		return s3_absent(s3, ctx, from.s, err);
	if (r == 0)
		r = s3_place_check(s3, ctx, to.s, err);
	if (r == 0)
		r = copy_file(s3, ctx, from_key, &head, &put, ret_stat, err);
	if (r == 0)
		s3_place_made(s3, to.s);
	return r;
}

/* Moving. */

struct move {
	struct s3 *s3;
	struct ctx *ctx;
	struct str from, to;
	struct store_cond to_cond;
};

/* "<version>-<hash of the source's key>": the mark of a target that a move made. */
static struct str moved_mark(struct arena *arena, struct str from_key, struct str etag)
{
	char hex[16];

	hex_u64(hash_u64(from_key, 0), hex);
	return arena_printf(arena, "%.*s-%.16s", STR_ARG(etag), hex);
}

static struct str note_key(const struct move *m)
{
	char hex[16];

	hex_u64(hash_u64(m->to, hash_u64(m->from, 0)), hex);
	return s3_own_key(m->s3, m->ctx->arena, "moves/", str_n(arena_str(m->ctx->arena, str_n(hex, 16)).ptr, 16));
}

/* Is a directory on its way from here to there, by a call that did not end? */
static int note_there(const struct move *m, bool *ret_there, struct err *err)
{
	struct s3_head head;
	int r = s3_head(m->s3, m->ctx, note_key(m), &head, err);

	if (r == 0)
		*ret_there = head.exists;
	return r;
}

static int note_write(const struct move *m, struct err *err)
{
	struct s3_put put = {.key = note_key(m), .token = s3_token_new(m->ctx->arena)};
	struct s3_body body = {0};
	struct store_stat ignored;

	body.bytes = arena_printf(m->ctx->arena, "%.*s\n%.*s\n", STR_ARG(m->from), STR_ARG(m->to));
	body.size = body.bytes.len;
	return s3_put_body(m->s3, m->ctx, &put, &body, &ignored, err);
}

/* One file, from the copy to the delete. When the target is this very move's work already, only the delete is left. */
static int move_file(const struct move *m, struct str from_key, const struct s3_head *head, struct str to_key,
		     bool resumed, struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = m->s3;
	struct s3_put put = {.key = to_key,
			     .cond = m->to_cond,
			     .token = s3_token_new(m->ctx->arena),
			     .older = head->tokens,
			     .mtime_ns = head->mtime_ns,
			     .moved = moved_mark(m->ctx->arena, from_key, head->etag)};
	struct s3_head target = {0};
	int r = 0;

	if (resumed)
		r = s3_head(s3, m->ctx, to_key, &target, err);
	if (r == 0 && target.exists && !str_eq(target.moved, put.moved))
		r = err_set(err, ERR_CONFLICT,
			    "a move was interrupted, and its target " ERR_PATH " changed since; remove one of the two",
			    STR_ARG(str_from(to_key, strlen(s3->conf.prefix))));
	if (r == 0 && !target.exists)
		r = copy_file(s3, m->ctx, from_key, head, &put, ret_stat, err);
	else if (r == 0)
		s3_stat_of(&target, ret_stat);
	if (r == -ERR_EXISTS && m->to_cond.kind == STORE_ABSENT && !resumed) {
		struct err first = *err;

		if (s3_head(s3, m->ctx, to_key, &target, err) || !str_eq(target.moved, put.moved)) {
			*err = first;
			return r;
		}
		s3_stat_of(&target, ret_stat);
		r = 0;
	}
	return r ? r : delete_one(s3, m->ctx, from_key, head->etag, err);
}

/* Many files at once. */
struct mover {
	const struct move *m;
	struct ctx ctx;
	pthread_t thread;
	bool running;
	struct s3_listing *list;
	atomic_size_t *next;
	size_t skip; /* of keys: the directory's own */
	struct str to_dir;
	bool resumed;
	int r;
	struct err err;
};

static int move_one(struct mover *mv, const struct s3_object *o)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct move own = *mv->m;
	struct store_stat ignored;
	struct s3_head head;
	struct str to_key;
	int r;

	mv->ctx.arena = arena;
	own.ctx = &mv->ctx;
	to_key = arena_printf(arena, "%.*s%.*s", STR_ARG(mv->to_dir), STR_ARG(str_from(o->key, mv->skip)));
	r = s3_head(own.s3, own.ctx, o->key, &head, &mv->err);
	if (r == 0 && head.exists)
		r = move_file(&own, o->key, &head, to_key, mv->resumed, &ignored, &mv->err);
	return r;
}

static void *mover_run(void *arg)
{
	struct mover *mv = arg;
	size_t i;

	while (mv->r == 0 && (i = atomic_fetch_add(mv->next, 1)) < mv->list->count)
		mv->r = move_one(mv, &mv->list->objects[i]);
	return NULL;
}

static int move_page(const struct move *m, struct s3_listing *list, size_t skip, struct str to_dir, bool resumed,
		     struct err *err)
{
	struct mover movers[S3_LANES] = {0};
	atomic_size_t next = 0;
	int r = 0;

	for (size_t i = 0; i < S3_LANES; i++) {
		movers[i] = (struct mover){.m = m,
					   .ctx = *m->ctx,
					   .list = list,
					   .next = &next,
					   .skip = skip,
					   .to_dir = to_dir,
					   .resumed = resumed};
		movers[i].ctx.progress = NULL;
		movers[i].running = i < list->count && !pthread_create(&movers[i].thread, NULL, mover_run, &movers[i]);
	}
	if (!movers[0].running)
		mover_run(&movers[0]);
	for (size_t i = 0; i < S3_LANES; i++) {
		if (movers[i].running)
			pthread_join(movers[i].thread, NULL);
		if (movers[i].r && r == 0) {
			r = movers[i].r;
			*err = movers[i].err;
		}
	}
	return r;
}

static int check_lengths(const struct move *m, const struct s3_listing *list, size_t skip, struct err *err)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->objects[i].key.len - skip + m->to.len + 1 > PATH_LEN_MAX)
			return err_set(err, ERR_INVALID, "a file in it would get a path of more than %zu bytes",
				       PATH_LEN_MAX);
	return 0;
}

static int move_dir(struct move *m, bool resumed, struct err *err)
{
	struct str from_dir = s3_dir_key(m->s3, m->ctx->arena, m->from);
	struct str to_dir = s3_dir_key(m->s3, m->ctx->arena, m->to);
	bool noted = resumed;

	m->to_cond = (struct store_cond){0}; /* the directory was looked at as a whole */
	for (;;) {
		struct s3_listing list;
		int r = s3_list(m->s3, m->ctx, from_dir, false, STR(""), STR(""), 1000, &list, err);

		if (r == 0)
			r = check_lengths(m, &list, from_dir.len, err);
		if (r)
			return r;
		if (list.count == 0 && !noted)
			return store_not_found(err);
		if (list.count == 0)
			return delete_one(m->s3, m->ctx, note_key(m), STR(""), err);
		if (!noted)
			r = note_write(m, err);
		noted = true;
		if (r == 0)
			r = move_page(m, &list, from_dir.len, to_dir, resumed, err);
		if (r)
			return r;
	}
}

/* A directory may go to `to` when nothing is there, or when this move was begun before. */
static int move_dir_check(const struct move *m, bool *ret_resumed, struct err *err)
{
	struct err first;
	struct s3_head target;
	bool any;
	int r = s3_any_below(m->s3, m->ctx, s3_dir_key(m->s3, m->ctx->arena, m->from), &any, err);

	*ret_resumed = false;
	if (r)
		return r;
	r = any ? s3_place_check(m->s3, m->ctx, m->to, err) : store_not_found(err);
	if (r == 0) {
		r = s3_head(m->s3, m->ctx, s3_key(m->s3, m->ctx->arena, m->to), &target, err);
		if (r == 0 && target.exists && m->to_cond.kind == STORE_ABSENT)
			return store_cond_check(m->to_cond, true, target.etag, err);
		if (r == 0 && target.exists)
			r = store_refuse(REFUSE_FILE_TARGET, m->to, err);
		return r;
	}
	first = *err;
	if (note_there(m, ret_resumed, err) == 0 && *ret_resumed)
		return 0;
	*err = first;
	return r;
}

int s3_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
	    struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct s3 *s3 = s3_of(s);
	struct move m = {.s3 = s3, .ctx = ctx, .from = from.s, .to = to.s, .to_cond = to_cond};
	struct s3_head head;
	bool resumed;
	int r = is_own(from.s, err);

	if (r == 0)
		r = is_own(to.s, err);
	if (r == 0)
		r = find_source(s3, ctx, from.s, cond, &head, err);
	if (r)
		return r;
	if (head.exists) {
		r = s3_place_check(s3, ctx, to.s, err);
		if (r == 0)
			r = move_file(&m, s3_key(s3, ctx->arena, from.s), &head, s3_key(s3, ctx->arena, to.s), false,
				      ret_stat, err);
	} else {
		r = move_dir_check(&m, &resumed, err);
		if (r == 0)
			r = move_dir(&m, resumed, err);
		if (r == 0)
			*ret_stat = (struct store_stat){.kind = STORE_DIR};
	}
	s3_place_gone(s3, from.s);
	s3_place_gone(s3, to.s);
	return r;
}
