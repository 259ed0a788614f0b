/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a crash. A record that is not done was logged, perhaps acknowledged, and perhaps not made. There are three
 * cases: the path is as it was before (make the change now), it is as it should be after (note it as done), or it is
 * something else. Something else is either the torn copy of what was to come, after a power cut (make the change now),
 * or another program's work (leave it: the next look records it as an outside change).
 *
 * All of this is conditional on what was looked at, so several processes may recover the same log at once.
 */
#include "base/limits.h"
#include "store/revisions/layer.h"

/* Longer than the kernel keeps dirty pages. */
#define WRITEBACK_NS (INT64_C(120) * 1000000000)

static int visible(struct revisions *rv, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
		   bool *ret_exists, struct err *err)
{
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};
	int r = store_forward(rv->base.inner, ctx, &get, err);

	*ret_exists = r == 0 && ret_stat->kind == STORE_FILE;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool is_before(const struct rev_record *rec, const struct store_stat *stat, bool exists)
{
	if (!rec->r.before.exists)
		return !exists;
	return exists && str_eq(stat->version, rec->r.before.version);
}

/* The change of a record, as a call on the store below. */
static int make_change(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
		       bool exists, struct err *err)
{
	struct store_stat after = {0};
	struct source source;
	uint64_t count;
	struct store_call call = {.path = rec->r.path,
				  .cond = {.kind = exists ? STORE_VERSION : STORE_ABSENT, .version = stat->version},
				  .source = &source,
				  .ret_stat = &after,
				  .ret_count = &count};
	int r;

	if (!rec->r.after.exists) {
		if (!exists)
			return 0;
		call.op = STORE_OP_REMOVE;
	} else if (rec->r.after.where == REV_PREFIX) {
		struct str data;

		call.op = STORE_OP_APPEND;
		r = revlog_read_data(rv->log, ctx, rec, &data, err);
		if (r)
			return r;
		source = (struct source){.bytes = str_from(data, (size_t)(stat->size - rec->r.before.size))};
	} else {
		call.op = STORE_OP_WRITE;
		r = content_source(rv, ctx, rec, &rec->r.after, &source, err);
		if (r)
			return r;
	}
	r = store_forward(rv->base.inner, ctx, &call, err);
	if (r == 0)
		revlog_done(rv->log, rec, after.version);
	return r;
}

struct compare {
	struct str want;
	size_t at;
	bool differs;
};

static int compare_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct compare *c = arg;

	(void)err;
	if (len > c->want.len - c->at || memcmp(bytes, c->want.ptr + c->at, len) != 0)
		c->differs = true;
	else
		c->at += len;
	return 0;
}

/* True when what lies at the path from `offset` on is the beginning of `want`. */
static bool begins(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t offset, struct str want)
{
	struct compare c = {.want = want};
	struct sink sink = {.push = compare_push, .arg = &c};
	struct store_stat stat;
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = {offset, UINT64_MAX}, .sink = &sink, .ret_stat = &stat};
	struct err ignored;

	return store_forward(rv->base.inner, ctx, &read, &ignored) == 0 && !c.differs;
}

/* True when the bytes at `offset` are `want`, whatever follows. */
static bool holds_at(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t offset, struct str want)
{
	struct compare c = {.want = want};
	struct sink sink = {.push = compare_push, .arg = &c};
	struct store_stat stat;
	struct store_call read = {
		.op = STORE_OP_READ, .path = path, .range = {offset, want.len}, .sink = &sink, .ret_stat = &stat};
	struct err ignored;

	return store_forward(rv->base.inner, ctx, &read, &ignored) == 0 && !c.differs && c.at == want.len;
}

/* True when the path holds what an append or a write was to leave, or the torn beginning of it. */
static bool is_torn(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat)
{
	struct str data;
	struct err ignored;

	if (stat->size > rec->r.after.size)
		return false;
	if (rec->r.after.where == REV_PREFIX)
		return stat->size >= rec->r.before.size && revlog_read_data(rv->log, ctx, rec, &data, &ignored) == 0 &&
		       begins(rv, ctx, rec->r.path, rec->r.before.size, data);
	if (stat->size == 0)
		return rec->r.after.size > 0;
	return rec->r.after.where == REV_LOG && rec->r.after.held_by == 0 && stat->size < rec->r.after.size &&
	       revlog_read_data(rv->log, ctx, rec, &data, &ignored) == 0 && begins(rv, ctx, rec->r.path, 0, data);
}

static bool is_after(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, const struct store_stat *stat,
		     bool exists)
{
	struct store_stat now;
	struct err ignored;
	uint64_t hash[2];

	if (!rec->r.after.exists || !exists)
		return rec->r.after.exists == exists;
	if (stat->size != rec->r.after.size)
		return false;
	if (rec->r.after.where == REV_PREFIX)
		return is_torn(rv, ctx, rec, stat); /* all of it, by its size */
	return content_hash_file(rv->base.inner, ctx, rec->r.path, hash, &now, &ignored) == 0 &&
	       hash[0] == rec->r.after.hash[0] && hash[1] == rec->r.after.hash[1];
}

/* Whoever changes the path after our record was logged has first brought our record to its end, and says so in the log.
   Until that line is written, the bytes tell. */
bool recover_took_effect(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct store_stat *ret_stat)
{
	struct store_stat stat = {0};
	struct err ignored;
	struct str data;
	bool exists, done;

	revlog_refresh(rv->log, ctx, &ignored);
	revlog_lock(rv->log);
	done = rec->done;
	if (done)
		stat.version = arena_str(ctx->arena, rec->r.after.version);
	revlog_unlock(rv->log);
	if (!done && visible(rv, ctx, rec->r.path, &stat, &exists, &ignored) == 0) {
		done = is_after(rv, ctx, rec, &stat, exists);
		if (!done && exists && rec->r.after.where == REV_PREFIX && stat.size > rec->r.after.size &&
		    revlog_read_data(rv->log, ctx, rec, &data, &ignored) == 0)
			done = holds_at(rv, ctx, rec->r.path, rec->r.before.size, data);
		if (done)
			revlog_done(rv->log, rec, stat.version);
	}
	stat.kind = STORE_FILE;
	stat.size = stat.size ? stat.size : rec->r.after.size;
	if (done)
		*ret_stat = stat;
	return done;
}

int recover_record(struct revisions *rv, struct ctx *ctx, struct rev_record *rec, struct err *err)
{
	struct store_stat stat = {0};
	bool exists;
	int r = visible(rv, ctx, rec->r.path, &stat, &exists, err);

	if (r)
		return r;
	if (is_after(rv, ctx, rec, &stat, exists)) {
		revlog_done(rv->log, rec, stat.version);
		return 0;
	}
	if (is_before(rec, &stat, exists) || !exists || is_torn(rv, ctx, rec, &stat)) {
		r = make_change(rv, ctx, rec, &stat, exists, err);
		/* whoever was faster did the same, or a later look will tell */
		return r == -ERR_CONFLICT || r == -ERR_EXISTS || r == -ERR_NOT_FOUND ? 0 : r;
	}
	revlog_done(rv->log, rec, STR("unknown"));
	return 0;
}

/* After a power cut: what the newest records say against what the files hold. */
static void doubt_recent(struct revisions *rv)
{
	uint64_t head = revlog_head(rv->log);
	struct rev_record *newest = revlog_at(rv->log, head);

	for (uint64_t n = head; newest && n >= revlog_first(rv->log) && n > 0; n--) {
		struct rev_record *rec = revlog_at(rv->log, n);

		if (rec && rec->r.time_ns < newest->r.time_ns - WRITEBACK_NS)
			break;
		if (rec && !rec->r.aborted)
			rec->done = false;
	}
}

/* The mark names the end of the log and the boot in which all of it was done. It is derived: without it the log is
 * read. */
static struct wpath mark_path(void)
{
	return (struct wpath){STR("revisions-clean")};
}

static struct str read_mark(struct revisions *rv, struct ctx *ctx)
{
	struct str mark = STR_NONE;
	struct err ignored;

	if (!rv->scratch || store_read(rv->scratch, ctx, mark_path(), STORE_WHOLE, 512, &mark, NULL, &ignored))
		return STR_NONE;
	return mark;
}

bool recover_is_clean(struct revisions *rv, struct ctx *ctx)
{
	struct str mark = read_mark(rv, ctx), end, boot, path;
	struct store_stat stat;
	struct err ignored;

	if (!mark.ptr) /* nothing was ever recorded, or nobody closed it */
		return store_stat(rv->meta, ctx, (struct wpath){STR("log")}, &stat, &ignored) == -ERR_NOT_FOUND;
	if (!str_cut(&mark, '\n', &path) || !str_cut(&mark, '\n', &end) || !str_cut(&mark, '\n', &boot))
		return false;
	return str_eq(boot, rv->boot_id) && wpath_name_ok(path) &&
	       store_stat(rv->meta, ctx, (struct wpath){arena_printf(ctx->arena, "log/%.*s", STR_ARG(path))}, &stat,
			  &ignored) == 0 &&
	       str_eq(arena_printf(ctx->arena, "%llu", (unsigned long long)stat.size), end);
}

void recover_mark_clean(struct revisions *rv, struct ctx *ctx)
{
	struct str name;
	struct str mark;
	uint64_t size;
	struct err ignored;

	if (!rv->scratch || !revlog_all_done(rv->log, ctx->arena, &name, &size))
		return;
	mark = arena_printf(ctx->arena, "%.*s\n%llu\n%.*s\n", STR_ARG(name), (unsigned long long)size,
			    STR_ARG(rv->boot_id));
	store_write(rv->scratch, ctx, mark_path(), mark, (struct store_cond){0}, NULL, &ignored);
}

/* True when the machine was started anew since the last mark. Without a mark nobody knows, so it is taken as true. */
static bool booted_since(struct revisions *rv, struct ctx *ctx)
{
	struct str mark = read_mark(rv, ctx), line = STR_NONE;

	if (rv->boot_id.len == 0)
		return false;
	for (int i = 0; i < 3; i++)
		if (!str_cut(&mark, '\n', &line))
			return true;
	return !str_eq(line, rv->boot_id);
}

int recover_all(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	bool doubt = booted_since(rv, ctx);
	struct rev_record **open;
	size_t count = 0;
	int r = 0;

	revlog_lock(rv->log);
	if (doubt)
		doubt_recent(rv);
	open = xcalloc(revlog_head(rv->log) + 1, sizeof(struct rev_record *));
	for (uint64_t n = revlog_first(rv->log); n && n <= revlog_head(rv->log); n++) {
		struct rev_record *rec = revlog_at(rv->log, n);

		if (rec && !rec->done && !rec->next && !rec->r.aborted)
			open[count++] = rec;
		else if (rec && rec->next)
			rec->done = true; /* a later change of the same path was built on it */
	}
	revlog_unlock(rv->log);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = recover_record(rv, ctx, open[i], err);
	free(open);
	return r;
}
