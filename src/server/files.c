/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files over HTTP. The store is the one that the file tools have, so what they cannot see or change cannot be seen or
 * changed here either; the version of a file is its ETag, and If-Match is the condition of the write.
 *
 * A read of a small file is one call of the store, its bytes in memory. A large one on this machine is sent by the
 * kernel from the open file, which stays what it was even if the file is replaced. From another store a large file
 * comes in pieces, each fetched by a worker when the one before was sent, so that a slow client holds no thread and
 * little memory. If the file changes in between, the answer is cut off, because the rest would be of another version.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "text/jv.h"
#include "tool/call.h"

#define IN_MEMORY     (64 * KIB) /* an answer up to this comes from memory, not from the file */
#define PIECE         (256 * KIB)
#define LIMIT_DEFAULT 1000

/* --- reading --- */

struct got {
	struct exchange *x;
	struct buf bytes;
	int fd;
	uint64_t offset, length;
	bool too_large;
};

static bool take_file(void *arg, int fd, uint64_t offset, uint64_t length)
{
	struct got *got = arg;

	/* bytes that were pushed before are not in this file, or not only */
	if (length <= IN_MEMORY || got->bytes.len)
		return false;
	got->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	got->offset = offset;
	got->length = length;
	return got->fd >= 0;
}

static void *reserve(void *arg, size_t size)
{
	struct got *got = arg;

	return size && size <= PIECE ? buf_reserve(&got->bytes, size) : NULL;
}

static int push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct got *got = arg;

	if (got->bytes.ptr && bytes == got->bytes.ptr + got->bytes.len) {
		got->bytes.len += len;
		return 0;
	}
	got->too_large = got->bytes.len + len > PIECE;
	if (got->too_large)
		return err_set(err, ERR_TOO_LARGE, "the file is sent in pieces");
	buf_add(&got->bytes, str_n(bytes, len));
	return 0;
}

static struct sink sink_of(struct exchange *x, struct got *got)
{
	*got = (struct got){.x = x, .fd = -1};
	buf_init(&got->bytes, x->arena, PIECE + 1);
	return (struct sink){.push = push, .reserve = reserve, .take_file = take_file, .arg = got};
}

/* Large files of other stores, piece by piece. Owned by the stream; two threads never work on one. */
struct fetch {
	struct serve *serve;
	struct tenant *tenant;
	struct store *files;
	struct stream *stream;
	struct arena *arena; /* of the path and the version */
	struct wpath path;
	struct str version;
	uint64_t at, left;
	atomic_uint refs; /* the stream, and a job */
};

static void fetch_unref(struct fetch *f)
{
	if (atomic_fetch_sub(&f->refs, 1) != 1)
		return;
	stream_release(f->stream);
	store_destroy(f->files);
	tenants_put(f->serve->tenants, f->tenant);
	arena_destroy(f->arena);
	free(f);
}

static void fetch_piece(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct fetch *f = arg;
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS};
	struct store_range range = {f->at, f->left < PIECE ? f->left : PIECE};
	struct store_stat stat;
	struct str bytes;
	struct err err;
	bool is_last;
	int r = store_read(f->files, &ctx, f->path, range, PIECE, &bytes, &stat, &err);

	if (r || !str_eq(stat.version, f->version) || bytes.len != range.length) {
		stream_end(f->stream, true);
	} else {
		f->at += bytes.len;
		f->left -= bytes.len;
		is_last = !f->left;
		stream_add(f->stream, bytes); /* from here on another thread may fetch the next piece */
		if (is_last)
			stream_end(f->stream, false);
	}
	fetch_unref(f);
}

static void fetch_drained(void *arg)
{
	struct fetch *f = arg;

	atomic_fetch_add(&f->refs, 1);
	if (!httpd_submit(f->serve->httpd, f->tenant->owner, fetch_piece, f)) {
		stream_end(f->stream, true);
		fetch_unref(f);
	}
}

static void fetch_gone(void *arg)
{
	fetch_unref(arg);
}

static void answer_in_pieces(struct exchange *x, int status, struct wpath path, const struct store_stat *stat,
			     struct store_range range)
{
	struct web_call *call = call_of(x);
	struct fetch *f = xcalloc(1, sizeof(*f));
	struct stream_opts opts = {
		.size = range.length, .pending_max = PIECE, .drained = fetch_drained, .gone = fetch_gone, .arg = f};

	f->serve = call->serve;
	f->tenant = tenants_share(call->serve->tenants, call->tenant);
	f->files = store_share(exchange_files(x));
	f->arena = arena_new();
	f->path.s = arena_str(f->arena, path.s);
	f->version = arena_str(f->arena, stat->version);
	f->at = range.offset;
	f->left = range.length;
	atomic_init(&f->refs, 1);
	f->stream = exchange_answer_stream(x, status, &opts);
}

static struct str etag(struct arena *arena, struct str version)
{
	return arena_printf(arena, "\"%.*s\"", STR_ARG(version));
}

static struct str http_date(struct arena *arena, int64_t real_ns)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t seconds = (time_t)(real_ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return arena_printf(arena, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday, tm.tm_mday,
			    months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void describe_file(struct exchange *x, struct wpath path, const struct store_stat *stat)
{
	bool is_kept = call_of(x)->route->run != run_wacht_download;

	if (call_of(x)->is_attachment)
		exchange_add_header(x, "Content-Disposition", disposition(x->arena, wpath_name(path)));
	exchange_add_header(x, "ETag", etag(x->arena, stat->version));
	exchange_add_header(x, "Last-Modified", http_date(x->arena, stat->mtime_ns));
	exchange_add_header(x, "Content-Type", str_of(content_type(wpath_name(path))));
	exchange_add_header(x, "Accept-Ranges", STR("bytes"));
	exchange_add_header(x, "Cache-Control", is_kept ? STR("private, no-cache") : STR("no-store"));
	/* a page in a workspace must not act with the rights of who looks at it */
	exchange_add_header(x, "Content-Security-Policy", STR("sandbox; default-src 'none'"));
}

static void answer_got(struct exchange *x, int status, struct got *got)
{
	if (got->fd >= 0)
		exchange_answer_file(x, status, got->fd, got->offset, got->length);
	else
		exchange_answer(x, status, got->bytes.ptr ? buf_str(&got->bytes) : STR(""));
}

/* The whole file, or a part of it that exists. `known` is what a stat gave before; kind 0: nothing yet. */
static int answer_file(struct exchange *x, int status, struct wpath path, const struct store_stat *known,
		       struct store_range range, struct err *err)
{
	struct store *files = exchange_files(x);
	struct ctx ctx = exchange_ctx(x);
	struct store_stat stat = *known;
	struct got got;
	struct sink sink = sink_of(x, &got);
	int r = store_read_stream(files, &ctx, path, range, &sink, &stat, err);

	if (got.too_large) {
		r = known->kind ? 0 : store_stat(files, &ctx, path, &stat, err);
		if (r)
			return r;
		describe_file(x, path, &stat);
		range.length = range.length < stat.size - range.offset ? range.length : stat.size - range.offset;
		answer_in_pieces(x, status, path, &stat, range);
		return 0;
	}
	if (r == 0 && known->kind && !str_eq(known->version, stat.version))
		r = err_set(err, ERR_CONFLICT, "the file changed while it was being read; try again");
	if (r) {
		if (got.fd >= 0)
			close(got.fd);
		return r;
	}
	describe_file(x, path, &stat);
	answer_got(x, status, &got);
	return 0;
}

/* True when the request was answered: it has the file already, or wants another version. */
static bool answer_condition(struct exchange *x, struct wpath path, const struct store_stat *stat)
{
	struct str match = exchange_header(x, "If-Match"), none = exchange_header(x, "If-None-Match");
	struct err err;

	if (match.ptr && !etag_matches(match, stat->version, false)) {
		err_set(&err, ERR_CONFLICT, "the file has the version \"%.*s\"", STR_ARG(stat->version));
		answer_problem(x, 412, &err, NULL);
		return true;
	}
	if (!none.ptr || !etag_matches(none, stat->version, true))
		return false;
	describe_file(x, path, stat);
	answer_empty(x, 304);
	return true;
}

static int answer_range(struct exchange *x, struct wpath path, const struct store_stat *stat, struct err *err)
{
	struct str if_range = exchange_header(x, "If-Range"), range = exchange_header(x, "Range");
	struct store_range part = STORE_WHOLE;
	enum range_kind kind = RANGE_WHOLE;

	if (range.ptr && (!if_range.ptr || str_eq(etag_single(if_range), stat->version)))
		kind = range_parse(range, stat->size, &part.offset, &part.length);
	if (kind == RANGE_BEYOND) {
		exchange_add_header(x, "Content-Range",
				    arena_printf(x->arena, "bytes */%llu", (unsigned long long)stat->size));
		err_set(err, ERR_INVALID, "the file has only %llu bytes", (unsigned long long)stat->size);
		answer_problem(x, 416, err, NULL);
		return 0;
	}
	if (kind == RANGE_WHOLE)
		part = STORE_WHOLE;
	else
		exchange_add_header(x, "Content-Range",
				    arena_printf(x->arena, "bytes %llu-%llu/%llu", (unsigned long long)part.offset,
						 (unsigned long long)(part.offset + part.length - 1),
						 (unsigned long long)stat->size));
	return answer_file(x, kind == RANGE_PART ? 206 : 200, path, stat, part, err);
}

/* GET and HEAD. Without conditions and ranges one call of the store is enough. */
int exchange_get_file(struct exchange *x, struct wpath path, struct err *err)
{
	bool is_head = str_is(x->method, "HEAD");
	struct ctx ctx = exchange_ctx(x);
	struct store_stat stat = {0};
	int r;

	if (!is_head && !exchange_header(x, "Range").ptr && !exchange_header(x, "If-Match").ptr &&
	    !exchange_header(x, "If-None-Match").ptr)
		return answer_file(x, 200, path, &stat, STORE_WHOLE, err);
	r = store_stat(exchange_files(x), &ctx, path, &stat, err);
	if (r == 0 && stat.kind == STORE_DIR)
		r = store_refuse(REFUSE_DIR, path.s, err);
	if (r || answer_condition(x, path, &stat))
		return r;
	if (!is_head)
		return answer_range(x, path, &stat, err);
	describe_file(x, path, &stat);
	exchange_answer_head(x, 200, stat.size);
	return 0;
}

void run_file_get(struct exchange *x)
{
	struct wpath path;
	struct err err = {0};
	int r = target_path(x->arena, call_of(x)->rest, &path, &err);

	if (r == 0)
		r = exchange_get_file(x, path, &err);
	if (r)
		answer_error(x, &err);
}

/* --- writing --- */

struct body_source {
	struct exchange *x;
	uint64_t at;
};

static int pull_body(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct body_source *s = arg;
	ssize_t n;

	do
		n = pread(s->x->body_fd, buf, cap, (off_t)s->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "the body of the request cannot be read back");
	s->at += (uint64_t)n;
	*ret_len = (size_t)n;
	return 0;
}

static int rewind_body(void *arg, struct err *err)
{
	struct body_source *s = arg;

	(void)err;
	s->at = 0;
	return 0;
}

/* The condition of a change. A list of versions, or any of them, is settled by a look at the file. */
static int condition_of(struct exchange *x, struct wpath path, struct store_cond *ret, struct err *err)
{
	struct str match = exchange_header(x, "If-Match"), none = exchange_header(x, "If-None-Match");
	struct ctx ctx = exchange_ctx(x);
	struct store_stat stat;
	int r;

	*ret = (struct store_cond){0};
	if (none.ptr && (match.ptr || !str_is(str_trim(none), "*")))
		return err_set(err, ERR_INVALID,
			       "for a change, If-None-Match can only be \"*\", and not together with If-Match");
	if (none.ptr)
		ret->kind = STORE_ABSENT;
	if (!match.ptr)
		return 0;
	*ret = (struct store_cond){.kind = STORE_VERSION, .version = etag_single(match)};
	if (ret->version.ptr)
		return 0;
	r = store_stat(exchange_files(x), &ctx, path, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r || !etag_matches(match, stat.version, false))
		return err_set(err, ERR_CONFLICT,
			       "the file has none of the versions that If-Match names; read it again");
	ret->version = stat.version;
	return 0;
}

/* A condition that was given in a header and does not hold is 412, in any form in which the store says it. */
static void answer_change_error(struct exchange *x, const struct err *err)
{
	bool conditional = exchange_header(x, "If-Match").ptr || exchange_header(x, "If-None-Match").ptr;

	if (conditional && (err->kind == ERR_CONFLICT || err->kind == ERR_EXISTS))
		answer_problem(x, 412, err, NULL);
	else
		answer_error(x, err);
}

/* Without a condition of the client, a file that is not there is written as a new one: so the answer can say that it
   was created, and is right when another request creates it at the same time. */
static int write_body(struct exchange *x, struct wpath path, struct store_cond cond, struct store_stat *ret_stat,
		      bool *ret_created, struct err *err)
{
	struct body_source body = {.x = x};
	struct source source = {.bytes = x->body};
	struct ctx ctx = exchange_change_ctx(x);
	bool asks = cond.kind == STORE_ANY;
	int r;

	if (x->body_fd >= 0)
		source = (struct source){.pull = pull_body, .rewind = rewind_body, .arg = &body};
	if (asks && store_stat(exchange_files(x), &ctx, path, ret_stat, err) == -ERR_NOT_FOUND)
		cond.kind = STORE_ABSENT;
	r = store_write_stream(exchange_files(x), &ctx, path, &source, cond, ret_stat, err);
	if (r == -ERR_EXISTS && asks) {
		cond.kind = STORE_ANY;
		body.at = 0;
		r = store_write_stream(exchange_files(x), &ctx, path, &source, cond, ret_stat, err);
	}
	*ret_created = cond.kind == STORE_ABSENT;
	return r;
}

void run_file_put(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct jv *v = jv_object(x->arena);
	struct store_cond cond = {0};
	struct store_stat stat;
	struct wpath path;
	struct err err = {0};
	bool created = false;
	int r = target_path(x->arena, call->rest, &path, &err);

	if (r == 0)
		r = condition_of(x, path, &cond, &err);
	if (r == 0)
		r = write_body(x, path, cond, &stat, &created, &err);
	if (r) {
		answer_change_error(x, &err);
		return;
	}
	jv_set_str(x->arena, v, "path", path.s);
	jv_set_int(x->arena, v, "size", (int64_t)stat.size);
	jv_set_str(x->arena, v, "version", stat.version);
	exchange_add_header(x, "ETag", etag(x->arena, stat.version));
	answer_json(x, created ? 201 : 200, v);
}

void run_file_delete(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_change_ctx(x);
	struct store_cond cond = {0};
	struct wpath path;
	struct err err = {0};
	bool recursive;
	int r = target_path(x->arena, call->rest, &path, &err);

	if (r == 0)
		r = query_flag(x->arena, x->query, "recursive", &recursive, &err);
	if (r == 0)
		r = condition_of(x, path, &cond, &err);
	if (r == 0)
		r = store_remove(exchange_files(x), &ctx, path, recursive, cond, NULL, &err);
	if (r)
		answer_change_error(x, &err);
	else
		answer_empty(x, 204);
}

/* --- lists --- */

static void write_entry(struct buf *b, struct arena *arena, const struct store_entry *e)
{
	buf_lit(b, "{\"name\":");
	jv_write_string(b, wpath_name(e->path));
	buf_lit(b, ",\"path\":");
	jv_write_string(b, e->path.s);
	if (e->stat.kind == STORE_DIR) {
		buf_lit(b, ",\"kind\":\"directory\"}");
		return;
	}
	buf_lit(b, ",\"kind\":\"file\",\"size\":");
	buf_u64(b, e->stat.size);
	buf_lit(b, ",\"modified\":\"");
	buf_add(b, clock_format_utc(arena, e->stat.mtime_ns));
	buf_lit(b, "\",\"version\":");
	jv_write_string(b, e->stat.version);
	buf_char(b, '}');
}

int files_path(struct exchange *x, struct str text, struct wpath *ret, struct err *err)
{
	if (call_of(x)->route->of_thread)
		return board_thread_path(x->arena, text, ret, err);
	return call_of(x)->task ? board_task_path(x->arena, text, ret, err)
				: wpath_parse_lenient(x->arena, text, ret, err);
}

int query_path(struct exchange *x, struct wpath *ret, struct err *err)
{
	struct str text;
	bool found;
	int r = query_get(x->arena, x->query, "path", &text, &found, err);

	return r ? r : files_path(x, text, ret, err);
}

static int parse_list(struct exchange *x, struct wpath *ret_path, struct store_list_req *ret, struct err *err)
{
	uint64_t limit = LIMIT_DEFAULT;
	bool found;
	int r = query_path(x, ret_path, err);

	*ret = (struct store_list_req){0};
	if (r == 0)
		r = query_flag(x->arena, x->query, "recursive", &ret->recursive, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "cursor", &ret->after, &found, err);
	if (r == 0)
		r = query_number(x->arena, x->query, "limit", STORE_PAGE_MAX, &limit, err);
	ret->limit = limit ? (size_t)limit : 1;
	return r;
}

int exchange_list_files(struct exchange *x, struct file_list *ret, struct err *err)
{
	struct ctx ctx = exchange_ctx(x);
	int r = parse_list(x, &ret->path, &ret->req, err);

	ret->page = (struct store_page){0};
	return r ? r : store_list(exchange_files(x), &ctx, ret->path, &ret->req, &ret->page, err);
}

static struct str render_list(struct exchange *x, const struct file_list *list)
{
	struct buf b;

	buf_init(&b, x->arena, JSON_LEN_MAX);
	buf_lit(&b, "{\"path\":");
	jv_write_string(&b, list->path.s);
	buf_lit(&b, ",\"entries\":[");
	for (size_t i = 0; i < list->page.count; i++) {
		if (i)
			buf_char(&b, ',');
		write_entry(&b, x->arena, &list->page.entries[i]);
	}
	buf_lit(&b, "],\"next\":");
	if (list->page.next.ptr)
		jv_write_string(&b, list->page.next);
	else
		buf_lit(&b, "null");
	buf_char(&b, '}');
	return buf_str(&b);
}

/* Looks for an answer that was kept (lists.h); true when it was given. */
static bool answer_kept_list(struct exchange *x, const struct file_list *list, uint64_t *ret_ticket)
{
	struct web_call *call = call_of(x);
	struct str dir = call->task || list->req.recursive ? STR_NONE : workspace_files_dir(call->tenant->ws), key;

	*ret_ticket = 0;
	if (!dir.len)
		return false;
	dir = arena_printf(x->arena, "%.*s/%.*s", STR_ARG(dir), STR_ARG(list->path.s));
	key = arena_printf(x->arena, "%zu %zu %zu %.*s%.*s%.*s%.*s", call->workspace.len, call->user.len,
			   list->req.limit, STR_ARG(call->workspace), STR_ARG(call->user), STR_ARG(x->query),
			   STR_ARG(dir));
	call->list = lists_begin(call->serve->lists, key, dir.ptr, ret_ticket);
	if (call->list)
		answer_json_text(x, 200, call->list->text);
	return call->list != NULL;
}

void run_file_list(struct exchange *x)
{
	struct file_list list = {0};
	struct ctx ctx = exchange_ctx(x);
	struct str text = STR_NONE;
	struct err err = {0};
	uint64_t ticket = 0;
	int r = parse_list(x, &list.path, &list.req, &err);

	if (r == 0 && answer_kept_list(x, &list, &ticket))
		return;
	if (r == 0)
		r = store_list(exchange_files(x), &ctx, list.path, &list.req, &list.page, &err);
	if (r == 0)
		text = render_list(x, &list);
	lists_end(call_of(x)->serve->lists, ticket, text);
	if (r)
		answer_error(x, &err);
	else
		answer_json_text(x, 200, text);
}

struct str disposition(struct arena *arena, struct str name)
{
	static const char hex[] = "0123456789ABCDEF";
	struct buf plain, coded;

	buf_init(&plain, arena, PATH_NAME_MAX + 1);
	buf_init(&coded, arena, 3 * PATH_NAME_MAX + 1);
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];
		bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    strchr("._-", c) != NULL;

		buf_char(&plain, safe || c == ' ' ? (char)c : '_');
		if (safe) {
			buf_char(&coded, (char)c);
		} else {
			buf_char(&coded, '%');
			buf_char(&coded, hex[c >> 4]);
			buf_char(&coded, hex[c & 15]);
		}
	}
	return arena_printf(arena, "attachment; filename=\"%.*s\"; filename*=UTF-8''%.*s", STR_ARG(buf_str(&plain)),
			    STR_ARG(buf_str(&coded)));
}

/* --- previews --- */

#define PREVIEW_TEXT   (256 * KIB)
#define PREVIEW_BINARY (8 * MIB)

int file_preview(struct exchange *x, struct wpath path, struct jv **ret, struct err *err)
{
	struct arena *arena = x->arena;
	struct ctx ctx = exchange_ctx(x);
	struct store_stat stat;
	struct str bytes, whole;
	struct jv *v = jv_object(arena);
	bool is_text;
	int r = store_read(exchange_files(x), &ctx, path, (struct store_range){0, PREVIEW_TEXT}, PREVIEW_TEXT, &bytes,
			   &stat, err);

	if (r)
		return r;
	is_text = !bytes_are_binary(bytes);
	if (!is_text && stat.size > bytes.len)
		r = store_read(exchange_files(x), &ctx, path, (struct store_range){0, PREVIEW_BINARY}, PREVIEW_BINARY,
			       &bytes, &stat, err);
	if (r)
		return r;
	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "name", wpath_name(path));
	jv_set_str(arena, v, "mime_type", str_of(content_type(wpath_name(path))));
	jv_set_bool(arena, v, "is_text", is_text);
	jv_set_int(arena, v, "size_bytes", (int64_t)stat.size);
	jv_set_str(arena, v, "version", stat.version);
	jv_set_bool(arena, v, "truncated", stat.size > bytes.len);
	whole = is_text && stat.size > bytes.len ? utf8_first(bytes, bytes.len - 3) : bytes; /* no half character */
	if (is_text)
		jv_set_str(arena, v, "content", whole);
	else
		jv_set_str(arena, v, "content_base64", base64_encode(arena, bytes));
	*ret = v;
	return 0;
}

void run_file_preview(struct exchange *x)
{
	struct err err = {0};
	struct wpath path;
	struct jv *v;
	int r = query_path(x, &path, &err);

	if (r == 0)
		r = file_preview(x, path, &v, &err);
	if (r)
		answer_error(x, &err);
	else
		answer_json(x, 200, v);
}
