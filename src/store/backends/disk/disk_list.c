/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists. The walk keeps one frame per level on the heap, each with the names of its directory. The first page of a
 * directory sorts no more names than it gives; the names of a large one are then kept for the pages that follow
 * (disk_kept.c). Only what is on the page is opened or stat'ed. Only the LIST_FDS innermost frames keep their
 * descriptor; an outer one resolves its path again (with the same refusal of links) when the walk comes back to it.
 */
#include <dirent.h>
#include <errno.h>

#include "store/backends/disk/disk.h"

#define LIST_FDS 32

struct frame {
	int fd; /* -1: to be opened again */
	size_t path_len;
	struct disk_names names;
	size_t at;
	struct disk_stamp stamp; /* of a directory whose names may be kept, else zero */
};

struct walk {
	struct disk *d;
	struct ctx *ctx;
	const struct store_list_req *req;
	struct store_page page;
	size_t page_cap;
	uint64_t skipped_after; /* names after the last entry: of the next page, if there is one */
	char path[PATH_LEN_MAX + 1 + PATH_NAME_MAX + 1]; /* of the innermost frame, with a final '/' unless root */
	struct frame *frames;                            /* heap */
	size_t depth, cap;
};

/* True for what can be listed: below a path of `path_len` bytes. */
static bool is_entry(const struct disk_name_ref *ref, size_t path_len)
{
	return ref->valid && path_len + ref->len <= PATH_LEN_MAX && (ref->type == DT_REG || ref->type == DT_DIR);
}

/* The part of the cursor that is inside the directory; false when the whole directory comes before the cursor. */
static bool cursor_in(const struct walk *w, size_t path_len, struct str *ret_rest)
{
	struct str prefix = str_n(w->path, path_len), after = w->req->after;

	*ret_rest = STR("");
	if (str_starts(after, prefix)) {
		*ret_rest = str_from(after, path_len);
		return true;
	}
	return str_cmp(after, prefix) < 0;
}

/* True when the entry, or something below it, comes after the cursor. */
static bool is_after_cursor(const struct walk *w, const struct disk_names *names, const struct disk_name_ref *ref,
			    struct str cursor)
{
	struct str name = str_n(names->text + ref->at, ref->len);
	int c = str_cmp(name, str_first(cursor, name.len));

	if (c || ref->type != DT_DIR)
		return c ? c > 0 : name.len > cursor.len;
	/* The cursor begins with the name, and the entry counts as "name/". */
	if (cursor.len == name.len)
		return true;
	if (cursor.ptr[name.len] != '/')
		return '/' > (unsigned char)cursor.ptr[name.len];
	return w->req->recursive;
}

static void drop_before_cursor(const struct walk *w, struct disk_names *names, struct str cursor)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (is_after_cursor(w, names, &names->refs[i], cursor))
			names->refs[kept++] = names->refs[i];
	names->count = kept;
}

/* The first of the sorted names that comes after the cursor. */
static size_t find_cursor(const struct walk *w, const struct disk_names *names, struct str cursor)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (is_after_cursor(w, names, &names->refs[mid], cursor))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Whether a list of the directory is likely to continue after this page: the cursor is in it, or it is what is listed.
   A list of one entry only asks whether there is any. */
static bool may_be_paged(const struct walk *w, struct str cursor)
{
	return cursor.len || (w->depth == 0 && w->req->limit > 1);
}

/* Who asks for the number of entries, and of which directory. */
struct counting {
	const struct store_count *asked; /* NULL: nobody */
	size_t path_len;
};

/* Counts the entries, unless that was done for the same question. */
static void count_names(struct walk *w, struct frame *f)
{
	struct store_count *asked = w->req->count, *c = &f->names.counted;

	if (!c->known || c->rule != asked->rule) {
		*c = (struct store_count){.rule = asked->rule, .known = true};
		for (size_t i = 0; i < f->names.count; i++) {
			const struct disk_name_ref *ref = &f->names.refs[i];

			if (!is_entry(ref, f->path_len))
				c->skipped++;
			else if (!asked->counts || asked->counts(asked->arg, str_n(f->names.text + ref->at, ref->len)))
				c->total++;
		}
	}
	asked->known = true;
	asked->total = c->total;
	asked->skipped = c->skipped;
}

/* Corrects the count by a name that came or went, or gives it up if the same question is not asked now. */
static void recount(void *arg, struct disk_names *names, const struct disk_name_ref *ref, int by)
{
	const struct counting *of = arg;
	struct store_count *c = &names->counted;

	if (!c->known || !of->asked || of->asked->rule != c->rule)
		c->known = false;
	else if (!is_entry(ref, of->path_len))
		c->skipped += (uint64_t)(int64_t)by;
	else if (!of->asked->counts || of->asked->counts(of->asked->arg, str_n(names->text + ref->at, ref->len)))
		c->total += (uint64_t)(int64_t)by;
}

/* Names that cannot be kept are not worth sorting beyond this page. */
static int read_names(struct walk *w, struct frame *f, struct str cursor, struct err *err)
{
	bool counts = w->req->count && w->depth == 0 && !w->req->recursive, can_keep;
	struct counting counting = {counts ? w->req->count : NULL, f->path_len};
	int r;

	if (may_be_paged(w, cursor))
		f->stamp = disk_stamp_take(w->d, f->fd);
	if (!disk_kept_take(w->d, f->fd, &f->stamp, recount, &counting, &f->names)) {
		int watch = disk_kept_watch(w->d, f->fd, &f->stamp);

		atomic_fetch_add(&w->d->dirs_read, 1);
		r = disk_names_read(f->fd, false, &f->names, err);
		f->names.watch = watch;
		if (r) {
			disk_kept_drop(w->d, &f->names);
			return r;
		}
	}
	if (counts)
		count_names(w, f);
	can_keep = disk_kept_can(&f->stamp, &f->names);
	if (cursor.len && !can_keep)
		drop_before_cursor(w, &f->names, cursor);
	if (cursor.len && can_keep) {
		disk_names_sort(&f->names);
		f->at = find_cursor(w, &f->names, cursor);
	}
	return 0;
}

/* Takes over `fd`. */
static int push_frame(struct walk *w, int fd, size_t path_len, struct err *err)
{
	struct frame f = {.fd = fd, .path_len = path_len};
	struct str cursor;
	int r;

	if (!cursor_in(w, path_len, &cursor)) {
		close(fd);
		return 0;
	}
	HEAP_ROOM(w->frames, w->depth, w->cap);
	r = read_names(w, &f, cursor, err);
	if (r) {
		close(fd);
		return r;
	}
	w->frames[w->depth++] = f;
	if (w->depth > LIST_FDS) {
		struct frame *outer = &w->frames[w->depth - 1 - LIST_FDS];

		if (outer->fd >= 0)
			close(outer->fd);
		outer->fd = -1;
	}
	return ctx_check(w->ctx, err);
}

/* The names of a directory that is not finished are for the next page; those of one that was listed by itself for the
   next time that somebody looks at it. */
static void pop_frame(struct walk *w)
{
	struct frame *f = &w->frames[--w->depth];

	if (f->fd >= 0)
		close(f->fd);
	if (f->at < f->names.count || !w->req->recursive)
		disk_kept_put(w->d, &f->stamp, &f->names);
	else
		disk_kept_drop(w->d, &f->names);
}

/* The innermost frame's descriptor, opened again when it was given up; -errno when the directory is gone. */
static int frame_fd(struct walk *w, struct frame *f)
{
	if (f->fd < 0)
		f->fd = disk_open_dir(w->d, (struct wpath){str_n(w->path, f->path_len ? f->path_len - 1 : 0)});
	return f->fd;
}

static void add_entry(struct walk *w, size_t path_len, const struct stat *st)
{
	struct store_entry *e;

	ARENA_ROOM(w->ctx->arena, w->page.entries, w->page.count, w->page_cap);
	e = &w->page.entries[w->page.count++];
	e->path.s = arena_str(w->ctx->arena, str_n(w->path, path_len));
	if (w->req->names_only)
		e->stat = (struct store_stat){.kind = S_ISDIR(st->st_mode) ? STORE_DIR : STORE_FILE};
	else
		disk_fill_stat(w->d, w->ctx->arena, st, &e->stat);
}

static void skip(struct walk *w)
{
	if (w->page.count == w->req->limit)
		w->skipped_after++;
	else
		w->page.skipped++;
}

/* Descends. A directory that was removed or swapped for a link in the meantime counts as absent; an unreadable one is
   counted as skipped. */
static int enter(struct walk *w, struct frame *f, const char *name, size_t path_len, struct err *err)
{
	int dir = frame_fd(w, f);
	int fd = dir < 0 ? dir : disk_open_at(dir, name, O_RDONLY | O_DIRECTORY);

	if (fd >= 0) {
		w->path[path_len] = '/';
		return push_frame(w, fd, path_len + 1, err);
	}
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return disk_fail(err, -fd);
	if (fd != -ENOENT)
		skip(w);
	return 0;
}

static void set_next(struct walk *w)
{
	const struct store_entry *e = &w->page.entries[w->page.count - 1];

	w->page.next = e->stat.kind == STORE_DIR ? arena_printf(w->ctx->arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;
}

/* The next name of the frame, in its place in the order. */
static const struct disk_name_ref *next_name(const struct walk *w, struct frame *f)
{
	if (f->at >= f->names.sorted)
		disk_names_sort_first(&f->names, f->at + w->req->limit - w->page.count + 1);
	return &f->names.refs[f->at++];
}

/* 0 or -errno. */
static int lstat_entry(struct disk *d, int dir, const char *name, struct stat *ret)
{
	unsigned round = 0;
	int sys;

	do
		sys = disk_lstat(dir, name, ret);
	while (sys == 0 && disk_is_going(d, ret, round++));
	return sys;
}

/* One name of the innermost frame. *ret_full when the page is and there is more. */
static int visit(struct walk *w, struct frame *f, bool *ret_full, struct err *err)
{
	const struct disk_name_ref *ref = next_name(w, f);
	const char *name = f->names.text + ref->at;
	size_t path_len = f->path_len + ref->len;
	struct stat st = {.st_mode = S_IFDIR};
	int fd;

	if (!is_entry(ref, f->path_len)) {
		skip(w);
		return 0;
	}
	memcpy(w->path + f->path_len, name, ref->len);
	if (ref->type == DT_DIR && w->req->recursive)
		return enter(w, f, name, path_len, err);
	if (w->page.count == w->req->limit) {
		*ret_full = true;
		return 0;
	}
	if (ref->type == DT_REG && w->req->names_only)
		st.st_mode = S_IFREG;
	if (ref->type == DT_REG && !w->req->names_only) {
		fd = frame_fd(w, f);
		if (fd == -EMFILE || fd == -ENFILE)
			return disk_fail(err, -fd);
		if (fd < 0 || lstat_entry(w->d, fd, name, &st) < 0)
			return 0; /* already gone */
		if (!S_ISREG(st.st_mode)) {
			skip(w);
			return 0;
		}
	}
	add_entry(w, path_len, &st);
	return 0;
}

static int run(struct walk *w, struct err *err)
{
	bool full = false;
	int r = 0;

	while (r == 0 && w->depth && !full) {
		struct frame *f = &w->frames[w->depth - 1];

		if (f->at == f->names.count)
			pop_frame(w);
		else
			r = visit(w, f, &full, err);
	}
	if (full)
		set_next(w);
	else
		w->page.skipped += w->skipped_after;
	return r;
}

/* Why a path could not be opened as a directory. */
static int fail_open(const struct disk *d, struct wpath path, int sys, struct err *err)
{
	FD_SCOPE int fd = -1;
	struct stat st;

	if (sys != ENOTDIR)
		return disk_fail(err, sys);
	fd = disk_open_path(d, path, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return store_not_found(err); /* a part of the path is a file */
	if (!S_ISREG(st.st_mode))
		return disk_fail_kind(err, st.st_mode);
	return store_refuse(REFUSE_FILE, path.s, err);
}

int disk_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
	      struct store_page *ret_page, struct err *err)
{
	struct walk w = {.d = disk_of(s), .ctx = ctx, .req = req};
	size_t path_len = path.s.len;
	int r, fd = disk_reserved(path) ? -ENOENT : disk_open_dir(w.d, path);

	if (fd < 0)
		return fail_open(w.d, path, -fd, err);
	if (path_len) {
		memcpy(w.path, path.s.ptr, path_len);
		w.path[path_len++] = '/';
	}
	r = push_frame(&w, fd, path_len, err);
	if (r == 0 && w.depth && !req->recursive && !w.frames[0].names.followed)
		w.page.stamp = disk_stamp_number(&w.frames[0].stamp);
	if (r == 0)
		r = run(&w, err);
	while (w.depth)
		pop_frame(&w);
	free(w.frames);
	if (r == 0)
		*ret_page = w.page;
	return r;
}
