/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command changed, written to the store as if a tool had written it: through guard, quota and revisions, under
 * one call id, so that one undo takes all of it back. Before the first write the whole set is looked at: how many files
 * are deleted, and whether all of it fits. After that, each file is written on the condition that it is still what the
 * command saw; all of them as one group, so that a kill does not leave a part of it. A file that somebody else changed
 * in the meantime is merged by lines; where the two changes collide, the other writer's stays and the command's is kept
 * under a name of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "sandbox/sandbox_internal.h"
#include "store/stores.h"
#include "text/merge.h"

/* A group takes memory for each of its changes; more are made as several groups. */
#define GROUP_MAX   10000
#define GROUP_BYTES (4 * MIB)
#define SMALL_MAX   (64 * KIB) /* a larger file is streamed */

struct commit {
	struct ctx *ctx;
	const struct sandbox_files *files;
	const struct baseline *base;
	struct changes *changes;
	struct strmap *others; /* paths that have a revision since the command began; NULL: none has */
	int dir;               /* of the files, on this machine; -1: none */
	struct sandbox_change *done;
	size_t count, cap;
};

static void note(struct commit *c, enum sandbox_outcome outcome, struct str path, struct str reason)
{
	ARENA_ROOM(c->ctx->arena, c->done, c->count, c->cap);
	c->done[c->count++] = (struct sandbox_change){.outcome = outcome, .path = path, .reason = reason};
}

const char *sandbox_outcome_name(enum sandbox_outcome outcome)
{
	static const char *const names[SANDBOX_OUTCOMES] = {"created", "changed",  "deleted",
							    "merged",  "conflict", "refused"};

	return names[outcome];
}

/* --- the new content, as a source --- */

/* The file is open only while it is read: a group may have many. */
struct content {
	int dir, fd; /* fd: -1: not open */
	struct str path;
	uint64_t left, size;
};

static void content_close(struct content *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static int content_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct content *c = arg;
	ssize_t n = 0;

	if (c->fd < 0 && c->left == c->size) {
		int fd = open_beneath(c->dir, c->path, O_RDONLY);

		if (fd < 0)
			return err_sys(err, -fd, "what the command wrote cannot be read");
		c->fd = fd;
	}
	if (cap && c->left && c->fd >= 0)
		n = read(c->fd, buf, cap < c->left ? cap : (size_t)c->left);
	if (n < 0)
		return err_sys(err, errno, "cannot read what the command wrote");
	*ret_len = (size_t)n;
	c->left -= (uint64_t)n;
	if (n == 0)
		content_close(c);
	return 0;
}

static int content_rewind(void *arg, struct err *err)
{
	struct content *c = arg;

	(void)err;
	content_close(c);
	c->left = c->size;
	return 0;
}

static int read_whole(struct arena *arena, int dir, struct str path, struct str *ret)
{
	FD_SCOPE int fd = open_beneath(dir, path, O_RDONLY);
	struct stat st;
	char *bytes;
	size_t done = 0;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > MERGE_FILE_MAX)
		return -1;
	bytes = arena_alloc_raw(arena, (size_t)st.st_size + 1);
	while (done < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + done, (size_t)st.st_size - done);

		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	*ret = str_n(bytes, done);
	return 0;
}

/* --- is it a change at all? --- */

struct compare {
	int fd;
	bool differs;
	char bytes[64 * 1024];
};

static int compare_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct compare *c = arg;
	const char *p = bytes;

	(void)err;
	while (len && !c->differs) {
		ssize_t n = read(c->fd, c->bytes, len < sizeof c->bytes ? len : sizeof c->bytes);

		c->differs = n <= 0 || memcmp(p, c->bytes, (size_t)n) != 0;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* A file that was only touched, or written again as it was, is copied up too. */
static bool is_unchanged(struct commit *c, const struct found *f, const struct store_stat *have)
{
	FD_SCOPE int fd = open_beneath(c->changes->dir, f->path, O_RDONLY);
	struct compare *compare;
	struct sink sink;
	struct err ignored;
	bool same;

	if (fd < 0 || have->kind != STORE_FILE || have->size != f->size || (have->mode && have->mode != f->mode))
		return false;
	compare = xcalloc(1, sizeof *compare);
	compare->fd = fd;
	sink = (struct sink){.push = compare_push, .arg = compare};
	same = store_read_stream(c->files->store, c->ctx, (struct wpath){f->path}, STORE_WHOLE, &sink, NULL,
				 &ignored) == 0 &&
	       !compare->differs;
	free(compare);
	return same;
}

/* What the store has at the path of a change. A change of it after that is found by the condition of the write. */
static int see(struct commit *c, struct found *f)
{
	struct err ignored;

	if (!f->is_seen)
		f->seen = store_stat(c->files->store, c->ctx, (struct wpath){f->path}, &f->have, &ignored);
	f->is_seen = true;
	return f->seen;
}

/* --- did somebody else change it? --- */

static int find_others(struct commit *c, struct err *err)
{
	struct rev_query query = {.since = c->base->head, .path = c->files->root};
	struct revision *list;
	uint64_t head;
	size_t count;
	bool more;
	int r;

	if (!c->files->revisions)
		return 0;
	r = revisions_head(c->files->revisions, c->ctx, &head, err);
	if (r == 0 && head > c->base->head) {
		r = revisions_query(c->files->revisions, c->ctx, &query, &list, &count, &more, err);
		c->others = strmap_new(c->ctx->arena);
		for (size_t i = 0; r == 0 && i < count; i++)
			strmap_put(c->others, wpath_relative(list[i].path, c->files->root).s, NULL);
	}
	return r;
}

/* By a program that does not tell us: then the file itself says when. */
static bool changed_outside(const struct commit *c, struct str path)
{
	char name[PATH_LEN_MAX + 1];
	struct stat st;

	if (c->dir < 0 || path.len > PATH_LEN_MAX)
		return false;
	memcpy(name, path.ptr, path.len);
	name[path.len] = 0;
	return fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && clock_of_timespec(st.st_ctim) > c->base->time_ns;
}

/* The condition under which the change may be made; false: somebody changed the file since the command began. */
static bool expected(const struct commit *c, struct str path, const struct store_stat *have, struct store_cond *ret)
{
	struct str shown;
	const size_t *at = c->base->index ? strmap_find(c->base->index, path) : NULL;

	*ret = (struct store_cond){.kind = STORE_ABSENT};
	if (have)
		*ret = (struct store_cond){.kind = STORE_VERSION, .version = have->version};
	if (c->base->view && !c->files->revisions)
		return fuse_view_version(c->base->view, c->ctx->arena, (struct wpath){path}, &shown) && shown.len
			       ? have && str_eq(shown, have->version)
			       : !have;
	if (c->base->index)
		return at ? have && str_eq(c->base->copies[*at - 1].version, have->version) : !have;
	return !(c->others && strmap_find(c->others, path)) && !changed_outside(c, path);
}

/* --- one file --- */

static int write_from(struct commit *c, const struct found *f, struct wpath to, struct store_cond cond, struct err *err)
{
	struct content content = {.dir = c->changes->dir, .fd = -1, .path = f->path, .left = f->size, .size = f->size};
	struct source source = {
		.pull = content_pull, .rewind = content_rewind, .arg = &content, .mode = f->mode ? f->mode : 0600};
	int r = store_write_stream(c->files->store, c->ctx, to, &source, cond, NULL, err);

	content_close(&content);
	return r;
}

static int push_buf(void *arg, const void *bytes, size_t len, struct err *err)
{
	buf_add(arg, str_n(bytes, len));
	return ((struct buf *)arg)->overflow ? err_set(err, ERR_TOO_LARGE, "too large to be merged") : 0;
}

/* What the command began with. False: not known. */
static bool base_of(struct commit *c, struct str path, struct str *ret)
{
	struct buf text;
	struct sink sink = {.push = push_buf, .arg = &text};
	struct rev_state state;
	struct wpath whole;
	struct err ignored;

	if (c->base->lower >= 0)
		return read_whole(c->ctx->arena, c->base->lower, path, ret) == 0;
	buf_init(&text, c->ctx->arena, MERGE_FILE_MAX);
	if (!c->files->revisions ||
	    wpath_join(c->ctx->arena, c->files->root, (struct wpath){path}, &whole, &ignored) != 0 ||
	    revisions_read(c->files->revisions, c->ctx, whole, c->base->head, STORE_WHOLE, &sink, &state, &ignored) !=
		    0)
		return false;
	*ret = text.ptr ? buf_str(&text) : STR("");
	return true;
}

static bool merge(struct commit *c, const struct found *f, const struct store_stat *have)
{
	struct merge_labels labels = {STR("command"), STR("before"), STR("now")};
	struct store_cond cond = {.kind = STORE_VERSION, .version = have->version};
	struct str base, ours, theirs;
	struct err ignored;
	struct buf out;

	if (!base_of(c, f->path, &base) || read_whole(c->ctx->arena, c->changes->dir, f->path, &ours) != 0 ||
	    store_read(c->files->store, c->ctx, (struct wpath){f->path}, STORE_WHOLE, MERGE_FILE_MAX, &theirs, NULL,
		       &ignored) != 0 ||
	    memchr(base.ptr, 0, base.len) || memchr(ours.ptr, 0, ours.len) || memchr(theirs.ptr, 0, theirs.len))
		return false;
	buf_init(&out, c->ctx->arena, 3 * MERGE_FILE_MAX);
	return merge_lines(c->ctx->arena, base, ours, theirs, &labels, &out) == 0 && !out.overflow &&
	       store_write(c->files->store, c->ctx, (struct wpath){f->path}, out.ptr ? buf_str(&out) : STR(""), cond,
			   NULL, &ignored) == 0;
}

/* The other writer's stays; the command's content gets a name of its own. */
static void keep_both(struct commit *c, const struct found *f)
{
	struct sandbox_change *told;
	struct err err = {0};
	int r = -ERR_EXISTS;

	note(c, SANDBOX_CONFLICT, f->path, STR("it was changed by another writer while the command ran"));
	told = &c->done[c->count - 1];
	if (f->is_deleted)
		return;
	for (unsigned n = 1; r == -ERR_EXISTS && n < 100; n++) {
		struct wpath to;

		told->kept_as = arena_printf(c->ctx->arena, "%.*s.conflict-%u", STR_ARG(f->path), n);
		r = wpath_parse(told->kept_as, &to, &err);
		if (r == 0)
			r = write_from(c, f, to, (struct store_cond){.kind = STORE_ABSENT}, &err);
	}
	if (r) {
		told->kept_as = STR_NONE;
		told->reason = err_text(c->ctx->arena, &err);
	}
}

static int apply(struct commit *c, const struct found *f, struct err *err)
{
	struct wpath path = {f->path};
	struct store_stat have;
	struct store_cond cond;
	struct err why = {0};
	int r = store_stat(c->files->store, c->ctx, path, &have, &why);
	bool exists = r == 0 && have.kind == STORE_FILE;

	if (r && r != -ERR_NOT_FOUND && r != -ERR_DENIED)
		goto refused;
	if (f->is_deleted && !exists)
		return 0;
	if (!expected(c, f->path, exists ? &have : NULL, &cond))
		r = -ERR_CONFLICT;
	else if (f->is_deleted)
		r = store_remove(c->files->store, c->ctx, path, false, cond, NULL, &why);
	else
		r = write_from(c, f, path, cond, &why);
	if (r == -ERR_CONFLICT || r == -ERR_EXISTS) {
		if (exists && !f->is_deleted && merge(c, f, &have))
			note(c, SANDBOX_MERGED, f->path, STR_NONE);
		else
			keep_both(c, f);
		return 0;
	}
	if (r == 0) {
		note(c,
		     f->is_deleted ? SANDBOX_DELETED
		     : exists      ? SANDBOX_CHANGED
				   : SANDBOX_CREATED,
		     f->path, STR_NONE);
		return 0;
	}
refused:
	if (ctx_check(c->ctx, err))
		return -err->kind;
	note(c, SANDBOX_REFUSED, f->path, err_text(c->ctx->arena, &why));
	return 0;
}

/* --- a group of files --- */

struct gathered {
	struct store_group_item *items;
	struct found **of;        /* the same, as they were found */
	struct content *contents; /* of those that are streamed */
	bool *existed;
	size_t count;
	uint64_t bytes;
};

/* Adds a change to the group; one that is not as the command saw it is left for apply(). */
static void gather(struct commit *c, struct gathered *g, struct found *f)
{
	struct store_group_item *item = &g->items[g->count];
	struct content *content = &g->contents[g->count];
	struct source *source;
	int r = see(c, f);
	bool exists = r == 0 && f->have.kind == STORE_FILE;

	*item = (struct store_group_item){.op = f->is_deleted ? STORE_OP_REMOVE : STORE_OP_WRITE, .path = {f->path}};
	if ((r && r != -ERR_NOT_FOUND) || (f->is_deleted && !exists) ||
	    !expected(c, f->path, exists ? &f->have : NULL, &item->cond))
		return;
	*content =
		(struct content){.dir = c->changes->dir, .fd = -1, .path = f->path, .left = f->size, .size = f->size};
	if (!f->is_deleted) {
		item->source = source = ARENA_NEW(c->ctx->arena, struct source);
		source->mode = f->mode ? f->mode : 0600;
		if (f->size > SMALL_MAX) {
			source->pull = content_pull;
			source->rewind = content_rewind;
			source->arg = content;
		} else if (read_whole(c->ctx->arena, c->changes->dir, f->path, &source->bytes) != 0 ||
			   source->bytes.len != f->size) {
			return;
		}
		g->bytes += source->bytes.len;
	}
	g->existed[g->count] = exists;
	g->of[g->count++] = f;
}

/* Makes what was gathered. What cannot be made this way stays as it is. */
static void make_gathered(struct commit *c, struct gathered *g)
{
	struct store_group group = {.items = g->items, .count = g->count};
	struct err ignored;

	(void)store_group(c->files->store, c->ctx, &group, &ignored);
	for (size_t i = 0; i < g->count; i++) {
		content_close(&g->contents[i]);
		if (!g->items[i].made)
			continue;
		g->of[i]->is_made = true;
		note(c,
		     g->items[i].op == STORE_OP_REMOVE ? SANDBOX_DELETED
		     : g->existed[i]                   ? SANDBOX_CHANGED
						       : SANDBOX_CREATED,
		     g->of[i]->path, STR_NONE);
	}
	g->count = 0;
	g->bytes = 0;
}

/* Deletions come first: a file may be where a directory was. */
static int apply_groups(struct commit *c, struct err *err)
{
	struct changes *set = c->changes;
	size_t most = set->count < GROUP_MAX ? set->count : GROUP_MAX;
	struct gathered g = {.items = ARENA_ARRAY(c->ctx->arena, struct store_group_item, most),
			     .of = ARENA_ARRAY(c->ctx->arena, struct found *, most),
			     .contents = ARENA_ARRAY(c->ctx->arena, struct content, most),
			     .existed = ARENA_ARRAY(c->ctx->arena, bool, most)};
	int r = 0;

	for (int deletes = 1; r == 0 && deletes >= 0; deletes--)
		for (size_t i = 0; r == 0 && i < set->count; i++) {
			if (set->found[i].is_deleted != (deletes == 1))
				continue;
			gather(c, &g, &set->found[i]);
			if (g.count == most || g.bytes >= GROUP_BYTES)
				make_gathered(c, &g);
			r = ctx_check(c->ctx, err);
		}
	if (r == 0 && g.count)
		make_gathered(c, &g);
	return r;
}

/* --- the set --- */

/* Leaves out what is not a change; adds up what the rest needs. */
static int weigh(struct commit *c, struct err *err)
{
	struct changes *set = c->changes;
	struct quota_need need = {0}, alone = {0};
	struct str largest = STR_NONE;
	uint64_t deleted = 0, most = c->files->deletions_max;
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct found *f = &set->found[i];
		int r = see(c, f);

		if (r == 0 && !f->is_deleted && is_unchanged(c, f, &f->have))
			continue;
		set->found[kept++] = *f;
		deleted += f->is_deleted;
		need.replaced += r == 0 && f->have.kind == STORE_FILE ? f->have.size : 0;
		if (f->is_deleted)
			continue;
		need.bytes += f->size;
		need.changes++;
		need.files += r != 0;
		if (f->size > need.file_size) {
			need.file_size = f->size;
			largest = f->path;
		}
	}
	set->count = kept;
	if (!most)
		most = SANDBOX_DELETIONS_DEFAULT;
	if (deleted > most)
		return err_set(err, ERR_DENIED,
			       "the command deleted %llu files, and one command may delete %llu "
			       "(sandbox.max_deletions); none of its changes were kept",
			       (unsigned long long)deleted, (unsigned long long)most);
	alone.file_size = need.file_size;
	if (store_quota_check(c->files->store, c->ctx, alone, err) != 0)
		return err_prefix(err, "%.*s", STR_ARG(utf8_first(largest, 200)));
	return store_quota_check(c->files->store, c->ctx, need, err);
}

void changes_count_dropped(struct ctx *ctx, const struct sandbox_files *files, struct changes *changes,
			   struct sandbox_result *result)
{
	struct commit c = {.ctx = ctx, .files = files, .changes = changes, .dir = -1};

	for (size_t i = 0; i < changes->count; i++) {
		struct found *f = &changes->found[i];
		bool exists = see(&c, f) == 0 && f->have.kind == STORE_FILE;

		if (exists ? !f->is_deleted && is_unchanged(&c, f, &f->have) : f->is_deleted)
			continue;
		if (result->dropped++ == 0)
			result->dropped_path = f->path;
	}
}

static int by_path(const void *a, const void *b)
{
	const struct sandbox_change *x = a, *y = b;

	return str_cmp(x->path, y->path);
}

int changes_commit(struct ctx *ctx, const struct sandbox_files *files, const struct baseline *base,
		   struct changes *changes, struct sandbox_result *result, struct err *err)
{
	struct ctx own = *ctx;
	FD_SCOPE int dir = files->dir ? open(files->dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct commit c = {.ctx = &own, .files = files, .base = base, .changes = changes, .dir = dir};
	int r;

	if (!own.actor.call_id.len)
		own.actor.call_id = call_id_new(ctx->arena);
	r = weigh(&c, err);
	if (r == 0)
		r = find_others(&c, err);
	if (r == 0 && changes->count > 1)
		r = apply_groups(&c, err);
	for (int deletes = 1; r == 0 && deletes >= 0; deletes--) /* what is left: alone, or others were first */
		for (size_t i = 0; r == 0 && i < changes->count; i++)
			if (changes->found[i].is_deleted == (deletes == 1) && !changes->found[i].is_made)
				r = apply(&c, &changes->found[i], err);
	for (size_t i = 0; i < changes->told_count; i++)
		note(&c, SANDBOX_REFUSED, changes->told[i].path, changes->told[i].reason);
	if (c.count)
		qsort(c.done, c.count, sizeof *c.done, by_path);
	result->changes = c.done;
	result->change_count = c.count;
	result->excluded = changes->excluded;
	result->left_out = changes->left_out;
	return r;
}
