/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grep and glob as one scan each. A page is cut out of the whole answer on the way: everything is always looked at, so
 * the totals are exact, and a cursor is no more than the last place that was given ("line:path"), so it means the same
 * after a restart, on another replica, or when files have changed in between.
 */
#include "find/find.h"

#include <stdlib.h>

#include "base/limits.h"
#include "find/find_file.h"
#include "text/glob.h"

#define THREADS_MAX 8

/* The globs of a request, and where they are anchored. */
struct filter {
	struct wpath top;
	const struct glob **include, **exclude;
	size_t include_count, exclude_count;
};

struct grep_run {
	struct grep_job job;
	struct filter filter;
	struct looker lookers[THREADS_MAX];
	const struct matcher *matcher;
	bool looker_used[THREADS_MAX];
	grep_emit emit;
	void *arg;
	/* the page */
	struct arena *arena; /* not the call's: hits come from any thread */
	struct grep_line *lines;
	size_t count, cap;
	uint64_t given; /* matching lines, or files */
	size_t bytes;   /* of what was given */
	char last_path[PATH_LEN_MAX + 1];
	size_t last_path_len;
	uint64_t last_line; /* given in any way: decides group_start */
	uint64_t last_match;
};

static int compile_globs(struct arena *arena, const struct str *patterns, size_t count, const struct glob ***ret,
			 struct err *err)
{
	*ret = ARENA_ARRAY(arena, const struct glob *, count + 1);
	for (size_t i = 0; i < count; i++) {
		int r = glob_compile(arena, patterns[i], GLOB_BASENAME, &(*ret)[i], err);

		if (r)
			return r;
	}
	return 0;
}

static bool any_match(const struct glob **globs, size_t count, struct str path)
{
	for (size_t i = 0; i < count; i++)
		if (glob_match(globs[i], path))
			return true;
	return false;
}

static struct str below(struct wpath top, struct str path)
{
	return wpath_relative((struct wpath){path}, top).s;
}

static bool filter_wants_file(const struct filter *f, struct str path)
{
	struct str rel = below(f->top, path);

	return (f->include_count == 0 || any_match(f->include, f->include_count, rel)) &&
	       !any_match(f->exclude, f->exclude_count, rel);
}

static bool filter_wants_dir(const struct filter *f, struct str path)
{
	struct str rel = below(f->top, path);

	if (any_match(f->exclude, f->exclude_count, rel))
		return false;
	for (size_t i = 0; i < f->include_count; i++)
		if (glob_may_match_below(f->include[i], rel))
			return true;
	return f->include_count == 0;
}

static bool want_file(void *arg, struct str path)
{
	return filter_wants_file(&((struct grep_run *)arg)->filter, path);
}

static bool want_dir(void *arg, struct str path)
{
	return filter_wants_dir(&((struct grep_run *)arg)->filter, path);
}

static bool is_page_full(const struct grep_run *g)
{
	const struct grep_req *req = g->job.req;

	return g->given >= req->limit || (req->bytes_max && g->bytes >= req->bytes_max);
}

/* Hands one line to the caller's function, or adds it to the page. */
static int hand_on(struct grep_run *g, struct grep_line *line, struct err *err)
{
	bool same = line->path.len == g->last_path_len && memcmp(line->path.ptr, g->last_path, line->path.len) == 0;

	line->group_start = !same || line->line != g->last_line + 1;
	if (!same) {
		memcpy(g->last_path, line->path.ptr, line->path.len);
		g->last_path_len = line->path.len;
	}
	g->last_line = line->line;
	g->bytes += line->path.len + line->text.len + 8;
	if (line->is_match) {
		g->last_match = line->line;
		g->given++;
	}
	if (g->emit)
		return g->emit(g->arg, line, err);
	ARENA_ROOM(g->arena, g->lines, g->count, g->cap);
	line->path = same && g->count ? g->lines[g->count - 1].path : arena_str(g->arena, line->path);
	line->text = arena_str(g->arena, line->text);
	g->lines[g->count++] = *line;
	return 0;
}

static int give_lines(struct grep_run *g, struct outcome *o, struct err *err)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct hit *h = &o->hits[i];
		struct grep_line line = {
			.path = str_n(o->bytes, o->path_len),
			.line = h->line,
			.is_match = h->is_match,
			.cut = h->cut,
			.text = str_n(o->bytes + h->at, h->len),
		};
		int r;

		/* after the last match of the page, only its own context follows */
		if (is_page_full(g) && (h->is_match || !h->is_after)) {
			atomic_store(&g->job.page_full, true);
			return 0;
		}
		r = hand_on(g, &line, err);
		if (r)
			return r;
	}
	return 0;
}

static int give(void *arg, struct outcome *o, struct err *err)
{
	struct grep_run *g = arg;
	struct grep_line line = {.path = str_n(o->bytes, o->path_len), .is_match = true, .count = o->matches};

	if (atomic_load(&g->job.page_full))
		return 0;
	if (g->job.req->output == GREP_LINES)
		return give_lines(g, o, err);
	if (is_page_full(g)) {
		atomic_store(&g->job.page_full, true);
		return 0;
	}
	return hand_on(g, &line, err);
}

static struct looker *looker_of(struct grep_run *g, unsigned worker)
{
	struct looker *l = &g->lookers[worker];

	if (!g->looker_used[worker]) {
		looker_init(l, &g->job, g->matcher);
		g->looker_used[worker] = true;
	}
	return l;
}

static int visit(void *arg, const struct scan_item *item, struct err *err)
{
	return looker_visit(looker_of(arg, item->worker), item, err);
}

/* "line:path" */
static int parse_cursor(struct grep_run *g, struct str cursor, struct err *err)
{
	struct str rest = cursor, number;
	struct wpath path;
	struct err ignored;
	int64_t line;

	if (cursor.len == 0)
		return 0;
	if (!str_cut(&rest, ':', &number) || !str_to_i64(number, &line) || line < 0 ||
	    wpath_parse(rest, &path, &ignored) != 0 || wpath_is_root(path))
		return err_set(err, ERR_INVALID,
			       "the cursor \"%.*s\" is not the next_cursor of a search; leave it out to start again",
			       STR_ARG(utf8_first(cursor, 80)));
	g->job.cursor_path = path.s;
	g->job.cursor_line = (uint64_t)line;
	return 0;
}

/* A single file: read through the front door, cut into chunks as a scan would. */
struct one_file {
	struct grep_run *run;
	struct scan_item item;
	char *chunk;
	size_t len;
	int ended;
};

static int one_deliver(struct one_file *f, size_t len, bool last, struct err *err)
{
	f->item.data = str_n(f->chunk, len);
	f->item.last = last;
	f->ended = visit(f->run, &f->item, err);
	f->item.offset += len;
	f->len -= len;
	memmove(f->chunk, f->chunk + len, f->len);
	return f->ended;
}

static int one_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct one_file *f = arg;
	const char *from = bytes;

	while (len) {
		size_t n = len < SCAN_CHUNK - f->len ? len : SCAN_CHUNK - f->len;

		memcpy(f->chunk + f->len, from, n);
		f->len += n;
		from += n;
		len -= n;
		if (f->len == SCAN_CHUNK) {
			size_t nl = str_rfind_char(str_n(f->chunk, f->len), '\n');
			int r = one_deliver(f, nl < f->len ? nl + 1 : f->len, false, err);

			if (r == SCAN_SKIP_FILE)
				return err_set(err, ERR_CANCELLED, "the file is binary");
			if (r)
				return r;
		}
	}
	return ctx_check(f->run->job.ctx, err);
}

static int search_file(struct grep_run *g, struct store *store, struct wpath path, struct err *err)
{
	struct one_file f = {.run = g, .item = {.path = path.s}, .chunk = xmalloc(SCAN_CHUNK)};
	struct sink sink = {.push = one_push, .arg = &f};
	int r = store_read_stream(store, g->job.ctx, path, STORE_WHOLE, &sink, NULL, err);

	if (f.ended == SCAN_SKIP_FILE)
		r = 0;
	else if (r == 0)
		r = one_deliver(&f, f.len, true, err);
	free(f.chunk);
	return r < 0 ? r : 0;
}

static int search(struct grep_run *g, struct store *store, struct err *err)
{
	const struct grep_req *req = g->job.req;
	struct store_stat stat;
	struct scan_req scan = {
		.contents = true,
		.use_ignore = req->use_ignore,
		.threads = req->threads > THREADS_MAX ? THREADS_MAX : req->threads,
		.want_file = req->include_count || req->exclude_count ? want_file : NULL,
		.want_dir = req->include_count || req->exclude_count ? want_dir : NULL,
		.visit = visit,
		.arg = g,
	};

	if (!wpath_is_root(req->path)) {
		int r = store_stat(store, g->job.ctx, req->path, &stat, err);

		if (r)
			return r;
		if (stat.kind == STORE_FILE)
			return search_file(g, store, req->path, err);
	}
	return store_scan(store, g->job.ctx, req->path, &scan, err);
}

static void fill_result(struct grep_run *g, struct grep_result *ret)
{
	struct arena *arena = g->job.ctx->arena;
	uint64_t eligible = 0;

	*ret = (struct grep_result){.count = g->count};
	for (size_t i = 0; i < THREADS_MAX; i++) {
		const struct looker *l = &g->lookers[i];

		ret->matches += l->total_matches;
		ret->files += l->files;
		ret->searched += l->searched;
		ret->binary += l->binary;
		ret->unreadable += l->unreadable;
		eligible += l->total_eligible;
	}
	if (eligible > g->given && g->given)
		ret->next = arena_printf(arena, "%llu:%.*s", (unsigned long long)g->last_match, (int)g->last_path_len,
					 g->last_path);
	ret->lines = ARENA_ARRAY(arena, struct grep_line, g->count + 1);
	for (size_t i = 0; i < g->count; i++) {
		ret->lines[i] = g->lines[i];
		ret->lines[i].text = arena_str(arena, g->lines[i].text);
		if (i && g->lines[i].path.ptr == g->lines[i - 1].path.ptr)
			ret->lines[i].path = ret->lines[i - 1].path;
		else
			ret->lines[i].path = arena_str(arena, g->lines[i].path);
	}
}

static int check_req(const struct grep_req *req, struct err *err)
{
	if (req->context > GREP_CONTEXT_MAX)
		return err_set(err, ERR_INVALID, "context is %u lines; at most %d are possible", req->context,
			       GREP_CONTEXT_MAX);
	if (req->limit == 0)
		return err_set(err, ERR_INVALID, "the limit is 0; ask for at least one result");
	return 0;
}

int find_grep(struct store *store, struct ctx *ctx, const struct grep_req *req, grep_emit emit, void *arg,
	      struct grep_result *ret_result, struct err *err)
{
	struct grep_run *g = xcalloc(1, sizeof(*g));
	ARENA_SCOPE struct arena *arena = arena_new();
	struct matcher *matcher = NULL;
	int r = check_req(req, err);

	g->job.req = req;
	g->job.ctx = ctx;
	g->arena = arena;
	g->emit = emit;
	g->arg = arg;
	g->filter = (struct filter){
		.top = req->path, .include_count = req->include_count, .exclude_count = req->exclude_count};
	order_init(&g->job.order, give, g);
	if (r == 0)
		r = parse_cursor(g, req->cursor, err);
	if (r == 0)
		r = compile_globs(arena, req->include, req->include_count, &g->filter.include, err);
	if (r == 0)
		r = compile_globs(arena, req->exclude, req->exclude_count, &g->filter.exclude, err);
	if (r == 0)
		r = matcher_new(arena, req->pattern,
				(req->literal ? MATCH_LITERAL : 0) | (req->ignore_case ? MATCH_NOCASE : 0), &matcher,
				err);
	g->matcher = matcher;
	if (r == 0)
		r = search(g, store, err);
	if (r == 0)
		fill_result(g, ret_result);
	for (size_t i = 0; i < THREADS_MAX; i++)
		if (g->looker_used[i])
			looker_release(&g->lookers[i]);
	matcher_destroy(matcher);
	order_release(&g->job.order);
	free(g);
	return r;
}

struct glob_run {
	const struct glob_req *req;
	struct ctx *ctx;
	const struct glob *glob;
	struct order order;
	glob_emit emit;
	void *arg;
	struct arena *arena;
	struct str *paths;
	size_t count, cap;
	uint64_t total, eligible, given;
	size_t bytes;                /* of the paths given */
	char last[PATH_LEN_MAX + 1]; /* given: the cursor */
	size_t last_len;
};

static bool glob_want_file(void *arg, struct str path)
{
	const struct glob_run *g = arg;

	return glob_match(g->glob, below(g->req->path, path));
}

static bool glob_want_dir(void *arg, struct str path)
{
	const struct glob_run *g = arg;

	return glob_may_match_below(g->glob, below(g->req->path, path));
}

static int give_path(struct glob_run *g, struct str path, struct err *err)
{
	g->total++;
	if (g->req->cursor.len && str_cmp(path, g->req->cursor) <= 0)
		return 0;
	g->eligible++;
	if (g->given >= g->req->limit || (g->req->bytes_max && g->bytes >= g->req->bytes_max))
		return 0;
	g->given++;
	g->bytes += path.len + 1;
	memcpy(g->last, path.ptr, path.len);
	g->last_len = path.len;
	if (g->emit)
		return g->emit(g->arg, path, err);
	ARENA_ROOM(g->arena, g->paths, g->count, g->cap);
	g->paths[g->count++] = arena_str(g->arena, path);
	return 0;
}

static int give_found(void *arg, struct outcome *o, struct err *err)
{
	return give_path(arg, str_n(o->bytes, o->path_len), err);
}

static int glob_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct glob_run *g = arg;
	int r;

	if (order_is_turn(&g->order, item->seq)) {
		r = give_path(g, item->path, err);
		if (r == 0)
			r = order_deliver(&g->order, g->ctx, item->seq, NULL, err);
	} else {
		r = order_deliver(&g->order, g->ctx, item->seq, outcome_new(item->path), err);
	}
	if (r)
		order_fail(&g->order);
	return r;
}

static void fill_glob_result(const struct glob_run *g, struct glob_result *ret)
{
	struct arena *arena = g->ctx->arena;

	*ret = (struct glob_result){.count = g->count, .total = g->total};
	ret->paths = ARENA_ARRAY(arena, struct str, g->count + 1);
	for (size_t i = 0; i < g->count; i++)
		ret->paths[i] = arena_str(arena, g->paths[i]);
	if (g->eligible > g->given)
		ret->next = arena_str(arena, str_n(g->last, g->last_len));
}

/* The directory that the pattern's first elements name, when they have no wildcard. Rules of .gitignore files above it
   count too, so a search that honours them starts further up. */
static struct str fixed_dir(const struct glob_req *req)
{
	struct str pattern = req->pattern;
	size_t end = 0;

	if (req->use_ignore || str_starts(pattern, STR("/")) || str_starts(pattern, STR("./")))
		return STR("");
	for (size_t i = 0; i < pattern.len && !memchr("*?[]{}\\", pattern.ptr[i], 7); i++)
		if (pattern.ptr[i] == '/')
			end = i;
	return str_first(pattern, end);
}

static int scan_glob(struct glob_run *g, struct store *store, const struct scan_req *scan, struct err *err)
{
	struct wpath dir, top = g->req->path;
	struct store_stat stat;
	struct err ignored;
	int r;

	if (wpath_parse(fixed_dir(g->req), &dir, &ignored) != 0 || wpath_is_root(dir) ||
	    wpath_join(g->arena, top, dir, &dir, &ignored) != 0)
		return store_scan(store, g->ctx, top, scan, err);
	r = store_scan(store, g->ctx, dir, scan, err);
	if (r != -ERR_NOT_FOUND && r != -ERR_INVALID)
		return r;
	/* nothing is there, or a file: no match, unless it is the caller's directory that is missing */
	return wpath_is_root(top) ? 0 : store_stat(store, g->ctx, top, &stat, err);
}

int find_glob(struct store *store, struct ctx *ctx, const struct glob_req *req, glob_emit emit, void *arg,
	      struct glob_result *ret_result, struct err *err)
{
	struct glob_run *g;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct scan_req scan = {.use_ignore = req->use_ignore,
				.threads = req->threads,
				.want_file = glob_want_file,
				.want_dir = glob_want_dir,
				.visit = glob_visit};
	int r;

	if (req->limit == 0)
		return err_set(err, ERR_INVALID, "the limit is 0; ask for at least one result");
	g = xcalloc(1, sizeof(*g));
	*g = (struct glob_run){.req = req, .ctx = ctx, .emit = emit, .arg = arg, .arena = arena};
	order_init(&g->order, give_found, g);
	scan.arg = g;
	r = glob_compile(arena, req->pattern, 0, &g->glob, err);
	if (r == 0)
		r = scan_glob(g, store, &scan, err);
	if (r == 0)
		fill_glob_result(g, ret_result);
	order_release(&g->order);
	free(g);
	return r;
}
