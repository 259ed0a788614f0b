/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command changed. Over an overlay that is the upper layer, whatever the size of the workspace: a file is a file
 * that was made or changed, a device 0/0 marks a name that was deleted, and a directory can be marked as one that
 * replaced another. Of a copy, it is what differs from the baseline.
 *
 * The command and all that it started are dead when this runs, so nothing changes below our feet. Still nothing here is
 * trusted: no link is followed, nothing but plain files is opened, and names that are not paths are reported.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "sandbox/sandbox_internal.h"
#include "store/list_stream.h"
#include "text/glob.h"

#define DEPTH_MAX   100
#define EXCLUDE_MAX 64

struct walk {
	struct ctx *ctx;
	const struct sandbox_files *files;
	const struct baseline *base; /* NULL: an overlay */
	bool *seen;                  /* of the baseline */
	const struct glob *exclude[EXCLUDE_MAX];
	size_t exclude_count;
	struct changes *out;
};

int open_beneath(int dir, struct str path, int flags)
{
	char text[PATH_LEN_MAX + 1];
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	long fd;

	if (path.len > PATH_LEN_MAX)
		return -ENAMETOOLONG;
	if (path.len)
		memcpy(text, path.ptr, path.len);
	text[path.len] = 0;
	fd = syscall(SYS_openat2, dir, path.len ? text : ".", &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

/* A command may give a file any name, one with a line of its own or with escape sequences of a terminal as well. */
static struct str shown_path(struct arena *arena, struct str path)
{
	struct buf out;
	size_t i = 0;

	buf_init(&out, arena, 4 * path.len + 1);
	while (i < path.len) {
		size_t from = i;
		uint32_t c = utf8_next(path, &i);

		if (c < UTF8_BAD && c >= 0x20 && (c < 0x7f || c >= 0xa0))
			buf_add(&out, str_n(path.ptr + from, i - from));
		else
			for (; from < i; from++)
				buf_printf(&out, "\\x%02x", (unsigned char)path.ptr[from]);
	}
	return out.ptr ? buf_str(&out) : STR("");
}

static void tell(struct changes *c, struct str path, const char *reason)
{
	if (c->told_count == SANDBOX_CHANGES_TOLD)
		return;
	ARENA_ROOM(c->arena, c->told, c->told_count, c->told_cap);
	c->told[c->told_count++] = (struct sandbox_change){
		.outcome = SANDBOX_REFUSED, .path = shown_path(c->arena, path), .reason = str_of(reason)};
}

static int add(struct changes *c, struct found found, struct err *err)
{
	if (c->count == SANDBOX_CHANGES_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the command changed more than %d files; none of the changes were kept",
			       SANDBOX_CHANGES_MAX);
	ARENA_ROOM(c->arena, c->found, c->count, c->cap);
	c->found[c->count++] = found;
	return 0;
}

/* Every file that the store has at or below the path. */
static int add_deleted(struct walk *w, struct str path, struct err *err)
{
	struct wpath parsed = {path};
	struct store_stat stat;
	LIST_PAGES_SCOPE struct list_pages pages = {.store = w->files->store,
						    .dir = parsed,
						    .req = {.recursive = true, .limit = STORE_PAGE_MAX},
						    .ctx = *w->ctx};
	int r = store_stat(w->files->store, w->ctx, parsed, &stat, err);

	if (r)
		return r == -ERR_NOT_FOUND || r == -ERR_DENIED ? 0 : r; /* there is nothing that it may see */
	if (stat.kind == STORE_FILE)
		return add(w->out, (struct found){.path = path, .is_deleted = true}, err);
	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			struct str file = arena_str(w->out->arena, pages.page.entries[i].path.s);

			r = add(w->out, (struct found){.path = file, .is_deleted = true}, err);
			if (r)
				return r;
		}
	return r;
}

static bool is_excluded(const struct walk *w, struct str path)
{
	for (size_t i = 0; i < w->exclude_count; i++)
		if (glob_match(w->exclude[i], path))
			return true;
	return false;
}

/* The path, or a directory above it. */
static bool is_in_excluded(const struct walk *w, struct str path)
{
	for (size_t i = 0; i <= path.len; i++)
		if ((i == path.len || path.ptr[i] == '/') && is_excluded(w, str_first(path, i)))
			return true;
	return false;
}

/* True: the copy is as it was made. */
static bool is_as_copied(struct walk *w, struct str path, const struct stat *st)
{
	const size_t *at = w->base ? strmap_find(w->base->index, path) : NULL;
	const struct copied *c = at ? &w->base->copies[*at - 1] : NULL;

	if (!c)
		return false;
	w->seen[*at - 1] = true;
	return c->size == (uint64_t)st->st_size && c->inode == st->st_ino &&
	       c->changed_ns == clock_of_timespec(st->st_ctim);
}

static int visit_file(struct walk *w, struct str path, const struct stat *st, struct err *err)
{
	struct found f = {.path = path, .size = (uint64_t)st->st_size, .mode = st->st_mode & 0777, .is_seen = true};
	struct err ignored;
	int r = 0;

	if (is_as_copied(w, path, st))
		return 0;
	f.seen = store_stat(w->files->store, w->ctx, (struct wpath){path}, &f.have, &ignored);
	if (f.seen == 0 && f.have.kind == STORE_DIR)
		r = add_deleted(w, path, err);
	return r ? r : add(w->out, f, err);
}

static int walk_into(struct walk *w, int fd, struct str at, unsigned depth, struct err *err);

static int visit_dir(struct walk *w, int fd, struct str path, unsigned depth, struct err *err)
{
	int below = open_beneath(fd, path, O_RDONLY | O_DIRECTORY);
	char mark[4];
	int r = 0;

	if (below >= 0 && !w->base && w->files->is_fixed &&
	    w->files->is_fixed(w->files->hidden_arg, (struct wpath){path})) {
		close(below);
		tell(w->out, path, "its contents can be read but not changed");
		return 0;
	}
	if (below < 0) {
		tell(w->out, path, "its directory cannot be read");
		return 0;
	}
	if (!w->base && fgetxattr(below, "user.overlay.opaque", mark, sizeof mark) == 1 && mark[0] == 'y')
		r = add_deleted(w, path, err); /* what is in it now is added after it, and wins */
	if (r) {
		close(below);
		return r;
	}
	return walk_into(w, below, path, depth + 1, err);
}

static int visit(struct walk *w, struct str at, const char *name, int here, unsigned depth, struct err *err)
{
	struct str path = at.len ? arena_printf(w->out->arena, "%.*s/%s", STR_ARG(at), name)
				 : arena_str(w->out->arena, str_of(name));
	struct wpath parsed;
	struct err ignored;
	struct stat st;
	int r = ctx_check(w->ctx, err);

	if (r)
		return r;
	if (fstatat(here, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	if (wpath_parse(path, &parsed, &ignored) != 0 || depth == DEPTH_MAX) {
		tell(w->out, path, "its name is not a valid path in a workspace");
		return 0;
	}
	if (is_excluded(w, path)) {
		w->out->excluded++;
		if (!w->out->left_out.len && !str_is(str_of(name), "__pycache__")) /* which Python makes again */
			w->out->left_out = shown_path(w->out->arena, path);
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return visit_dir(w, w->out->dir, path, depth, err);
	if (S_ISREG(st.st_mode))
		return visit_file(w, path, &st, err);
	if (!w->base && S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
		return add_deleted(w, path, err);
	tell(w->out, path, S_ISLNK(st.st_mode) ? "links are not kept" : "it is not a plain file");
	return 0;
}

/* Closes `fd`. */
static int walk_into(struct walk *w, int fd, struct str at, unsigned depth, struct err *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		close(fd);
		return err_sys(err, errno, "cannot read what the command changed");
	}
	while (r == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = visit(w, at, e->d_name, fd, depth, err);
	closedir(dir);
	return r;
}

static int by_path(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int c = str_cmp(x->path, y->path);

	return c ? c : (int)y->is_deleted - (int)x->is_deleted;
}

/* Sorted, each path once: a file that was deleted and made again was changed. */
static void settle(struct changes *c)
{
	size_t kept = 0;

	if (c->count)
		qsort(c->found, c->count, sizeof *c->found, by_path);
	for (size_t i = 0; i < c->count; i++) {
		if (kept && str_eq(c->found[kept - 1].path, c->found[i].path))
			kept--;
		c->found[kept++] = c->found[i];
	}
	c->count = kept;
}

static int walk_all(struct walk *w, int dir, struct err *err)
{
	int fd = open_beneath(dir, STR_NONE, O_RDONLY | O_DIRECTORY), r = 0;

	for (size_t i = 0; w->files->exclude && w->files->exclude[i] && i < EXCLUDE_MAX && r == 0; i++)
		r = glob_compile(w->ctx->arena, str_of(w->files->exclude[i]), GLOB_BASENAME,
				 &w->exclude[w->exclude_count++], err);
	if (r == 0 && fd < 0)
		return err_sys(err, -fd, "cannot read what the command changed");
	if (r) {
		close(fd);
		return r;
	}
	w->out->arena = w->ctx->arena;
	w->out->dir = dir;
	return walk_into(w, fd, STR_NONE, 0, err);
}

int changes_of_overlay(struct ctx *ctx, const struct sandbox_files *files, int upper, struct changes *ret,
		       struct err *err)
{
	struct walk w = {.ctx = ctx, .files = files, .out = ret};
	int r = walk_all(&w, upper, err);

	settle(ret);
	return r;
}

int changes_of_copy(struct ctx *ctx, const struct sandbox_files *files, int dir, const struct baseline *base,
		    struct changes *ret, struct err *err)
{
	struct walk w = {.ctx = ctx,
			 .files = files,
			 .base = base,
			 .seen = ARENA_ARRAY(ctx->arena, bool, base->count + 1),
			 .out = ret};
	int r = walk_all(&w, dir, err);

	for (size_t i = 0; r == 0 && i < base->count; i++)
		if (!w.seen[i] && !is_in_excluded(&w, base->copies[i].path))
			r = add(ret, (struct found){.path = base->copies[i].path, .is_deleted = true}, err);
	settle(ret);
	return r;
}
