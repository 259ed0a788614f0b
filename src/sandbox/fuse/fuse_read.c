/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a view shows. The kernel keeps each answer for as long as the answer says, so these are the requests for
 * what it does not know yet: names, attributes, directories, bytes.
 *
 * Bytes come from a file of this machine where the store has one. From a store far away they are read in ranges, which
 * grow while a file is read from one end to the other; what was read in advance is kept with the file, within a limit
 * for all of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "sandbox/fuse/fuse_internal.h"
#include "store/list_stream.h"

#define FDS_MAX      128
#define WINDOW_MIN   (256 * KIB)
#define WINDOW_MAX   (8 * MIB)
#define AHEAD_MAX    (64 * MIB)
#define BLOCKS_SHOWN (UINT64_C(1) << 28) /* of 4 KiB: as much as anybody asks for */

/* --- names and attributes --- */

/* The view's own answer, where the store has none or need not be asked. */
static bool is_ours(const struct fuse_view *v, const struct node *n)
{
	return n->is_known && (v->opts.is_fixed || n->is_new || n->is_staged || !n->path || n->id == FUSE_ROOT_ID);
}

/* What the store says of a path goes to its node, which gets a lookup if `take`. 0 or an errno. */
static int look(struct worker *w, struct wpath path, bool take, struct node **ret)
{
	struct fuse_view *v = w->v;
	struct store_stat stat;
	struct err err;
	struct node *n;
	bool differs = false;
	int r = store_stat(v->opts.files, &w->ctx, path, &stat, &err);

	pthread_mutex_lock(&v->table);
	n = node_find_locked(v, path.s);
	if (r == 0 || (n && n->is_made && err.kind == ERR_NOT_FOUND)) {
		n = take ? node_take_locked(v, path.s) : n;
		differs = n && r == 0 && node_set_locked(n, &stat);
		if (!n)
			err.kind = ERR_NOT_FOUND; /* it got another name */
		r = n ? 0 : -ERR_NOT_FOUND;
	}
	pthread_mutex_unlock(&v->table);
	if (r)
		return err.kind == ERR_DENIED ? ENOENT : errno_of(&err);
	if (differs) {
		pthread_mutex_lock(&n->lock);
		node_drop_bytes(v, n);
		pthread_mutex_unlock(&n->lock);
	}
	*ret = n;
	return 0;
}

void op_lookup(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_view *v = w->v;
	struct node *n = NULL;
	struct wpath path;
	int code = child_path(w, in->nodeid, arg, &path);

	(void)len;
	if (code == 0) {
		pthread_mutex_lock(&v->table);
		n = node_find_locked(v, path.s);
		n = n && is_ours(v, n) ? node_take_locked(v, path.s) : NULL;
		pthread_mutex_unlock(&v->table);
	}
	if (code == 0 && !n) {
		may_wait(w);
		code = look(w, path, true, &n);
	}
	if (code && code != ENOENT && code != EINVAL)
		answer(w, in, code, NULL, 0);
	else
		answer_entry(w, in, code ? NULL : n, NULL); /* that there is nothing is worth remembering too */
}

void op_getattr(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_view *v = w->v;
	struct node *n = node_by_id(v, in->nodeid);
	struct fuse_entry_out entry;
	struct fuse_attr_out out = {0};
	struct wpath path;
	int code = n ? 0 : ESTALE;
	bool ours;

	(void)arg;
	(void)len;
	if (n) {
		pthread_mutex_lock(&v->table);
		ours = is_ours(v, n);
		pthread_mutex_unlock(&v->table);
		if (!ours && node_path(v, w->ctx.arena, n, &path)) {
			may_wait(w);
			code = look(w, path, false, &n);
		}
	}
	if (code == 0) {
		fill_entry(v, n, &entry);
		out.attr_valid = entry.attr_valid;
		out.attr_valid_nsec = entry.attr_valid_nsec;
		out.attr = entry.attr;
	}
	answer(w, in, code, &out, sizeof out);
}

void op_statfs(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_statfs_out out = {.st = {.blocks = BLOCKS_SHOWN,
					     .bfree = BLOCKS_SHOWN,
					     .bavail = BLOCKS_SHOWN,
					     .files = BLOCKS_SHOWN,
					     .ffree = BLOCKS_SHOWN,
					     .bsize = 4096,
					     .frsize = 4096,
					     .namelen = (uint32_t)PATH_NAME_MAX}};

	(void)arg;
	(void)len;
	answer(w, in, 0, &out, sizeof out);
}

/* --- files --- */

void op_open(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_open_in *asked = arg;
	struct fuse_view *v = w->v;
	struct node *n = node_by_id(v, in->nodeid);
	struct fuse_open_out out = {.fh = in->nodeid, .open_flags = FOPEN_KEEP_CACHE};
	bool writes = (asked->flags & O_ACCMODE) != O_RDONLY;
	struct wpath path;
	struct err err;
	int code = n ? 0 : ESTALE;

	(void)len;
	if (v->has_no_open) {
		answer(w, in, ENOSYS, NULL, 0);
		return;
	}
	if (writes && v->opts.read_only)
		code = EROFS;
	if (code == 0 && writes && v->opts.may_change && node_path(v, w->ctx.arena, n, &path) &&
	    v->opts.may_change(v->opts.arg, path, &err) != 0)
		code = errno_of(&err);
	if (code == 0) {
		pthread_mutex_lock(&n->lock);
		n->opens++;
		pthread_mutex_unlock(&n->lock);
	}
	if (!writes)
		out.open_flags |= FOPEN_NOFLUSH;
	answer(w, in, code, &out, sizeof out);
}

struct fetch {
	char *to;
	size_t len, cap;
	int fd; /* a file that has the bytes; -1: they were copied */
	uint64_t fd_offset;
};

static int fetch_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct fetch *f = arg;

	if (len > f->cap - f->len)
		return err_set(err, ERR_INTERNAL, "the store gave more bytes than it was asked for");
	memcpy(f->to + f->len, bytes, len);
	f->len += len;
	return 0;
}

static bool fetch_file(void *arg, int fd, uint64_t offset, uint64_t length)
{
	struct fetch *f = arg;

	(void)length;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	f->fd_offset = offset;
	return f->fd >= 0;
}

static ssize_t read_all(int fd, char *to, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t take_ahead(struct fuse_view *v, struct node *n, uint64_t offset, size_t len, char *to)
{
	uint64_t from = offset - n->ahead_at, have = n->ahead_len - from;
	size_t give = len < have ? len : (size_t)have;

	memcpy(to, n->ahead + from, give);
	if (give == have) /* read to its end: the next range is a larger one */
		node_drop_bytes(v, n);
	return (ssize_t)give;
}

/* How much to ask for: more each time, while reading continues where it stopped. */
static size_t window_of(struct fuse_view *v, struct node *n, uint64_t offset, size_t len)
{
	bool follows = offset && offset == n->ahead_at + n->ahead_window;
	uint64_t window = follows ? n->ahead_window * 2 : len;

	if (follows && window < WINDOW_MIN)
		window = WINDOW_MIN;
	if (window > WINDOW_MAX)
		window = WINDOW_MAX;
	if (window < len || atomic_load(&v->ahead_bytes) > AHEAD_MAX)
		window = len;
	n->ahead_at = offset;
	n->ahead_window = window;
	return (size_t)window;
}

/* The file stays open while more of it is to come. */
static ssize_t use_file(struct fuse_view *v, struct node *n, const struct fetch *f, uint64_t offset, size_t len,
			char *to)
{
	ssize_t got = read_all(f->fd, to, len, f->fd_offset);

	if (got == (ssize_t)len && offset + len < n->size && atomic_load(&v->fds) < FDS_MAX) {
		n->fd = f->fd;
		n->fd_delta = (int64_t)f->fd_offset - (int64_t)offset;
		atomic_fetch_add(&v->fds, 1);
	} else {
		close(f->fd);
	}
	return got;
}

ssize_t read_stored(struct worker *w, struct node *n, uint64_t offset, size_t len, char *to)
{
	struct fuse_view *v = w->v;
	struct fetch f = {.fd = -1};
	struct sink sink = {.push = fetch_push, .take_file = fetch_file, .arg = &f};
	struct store_stat stat;
	struct wpath path;
	struct err err;
	size_t window;
	ssize_t got;

	if (n->fd >= 0)
		return read_all(n->fd, to, len, (uint64_t)((int64_t)offset + n->fd_delta));
	if (n->ahead && offset >= n->ahead_at && offset < n->ahead_at + n->ahead_len)
		return take_ahead(v, n, offset, len, to);
	if (!node_path(v, w->ctx.arena, n, &path))
		return -ESTALE;
	node_drop_bytes(v, n);
	window = window_of(v, n, offset, len);
	f.cap = window;
	f.to = window > len ? xmalloc(window) : to;
	may_wait(w);
	if (store_read_stream(v->opts.files, &w->ctx, path, (struct store_range){offset, window}, &sink, &stat, &err)) {
		got = -errno_of(&err);
		f.len = 0;
	} else if (v->opts.is_fixed && n->version && !str_eq(str_of(n->version), stat.version)) {
		got = -ESTALE; /* not half of one version and half of another */
		f.len = 0;
		if (f.fd >= 0)
			close(f.fd);
	} else if (f.fd >= 0) {
		got = use_file(v, n, &f, offset, len, to);
	} else {
		got = (ssize_t)(f.len < len ? f.len : len);
		if (f.to != to)
			memcpy(to, f.to, (size_t)got);
	}
	if (f.to != to && f.len > len) {
		n->ahead = f.to;
		n->ahead_len = f.len;
		atomic_fetch_add(&v->ahead_bytes, f.len);
	} else if (f.to != to) {
		free(f.to);
	}
	return got;
}

/* With the node's lock. */
static ssize_t read_staged(struct worker *w, struct node *n, uint64_t offset, size_t len, char *to)
{
	struct stage *s = n->stage;
	ssize_t got = 0, more;

	if (offset >= s->size)
		return 0;
	if (len > s->size - offset)
		len = (size_t)(s->size - offset);
	if (offset < s->hole) {
		got = read_stored(w, n, offset, len < s->hole - offset ? len : (size_t)(s->hole - offset), to);
		if (got < 0 || (size_t)got == len || offset + (uint64_t)got < s->hole)
			return got;
	}
	more = read_all(s->fd, to + got, len - (size_t)got, offset + (uint64_t)got);
	return more < 0 ? more : got + more;
}

void op_read(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_read_in *asked = arg;
	struct node *n = node_by_id(w->v, in->nodeid);
	size_t size = asked->size < FUSE_WRITE_MAX ? asked->size : FUSE_WRITE_MAX;
	ssize_t got = -ESTALE;

	(void)len;
	if (n) {
		if (pthread_mutex_trylock(&n->lock) != 0) {
			step_aside(w);
			pthread_mutex_lock(&n->lock);
		}
		got = n->stage ? read_staged(w, n, asked->offset, size, w->out)
			       : read_stored(w, n, asked->offset, size, w->out);
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, got < 0 ? (int)-got : 0, w->out, got < 0 ? 0 : (size_t)got);
}

/* --- directories --- */

void listing_destroy(struct listing *l)
{
	if (l)
		arena_destroy(l->arena);
}

static void list_add(struct listing *l, struct str name, bool is_dir)
{
	ARENA_ROOM(l->arena, l->entries, l->count, l->cap);
	l->entries[l->count++] = (struct listed){arena_str(l->arena, name), is_dir};
}

/* The attributes come with the list: a node has them before it is asked for. */
static void list_page(struct fuse_view *v, struct listing *l, const struct store_page *page)
{
	pthread_mutex_lock(&v->table);
	for (size_t i = 0; i < page->count; i++) {
		const struct store_entry *e = &page->entries[i];
		struct node *n = node_find_locked(v, e->path.s);

		list_add(l, wpath_name(e->path), e->stat.kind == STORE_DIR);
		if (!n && v->forgotten < FUSE_NODES_KEPT) {
			n = node_take_locked(v, e->path.s);
			n->lookups = 0;
			v->forgotten++;
		}
		if (n && !n->is_staged && (!n->is_known || !n->version || str_eq(str_of(n->version), e->stat.version)))
			node_set_locked(n, &e->stat);
	}
	pthread_mutex_unlock(&v->table);
}

/* What only this view has: directories without files, files that are not written yet. */
static void list_extras(struct fuse_view *v, struct listing *l, struct wpath dir)
{
	size_t stored = l->count;

	pthread_mutex_lock(&v->table);
	for (struct node *n = v->extras; n; n = n->next_extra) {
		struct wpath path = {str_n(n->path, n->path_len)};
		bool is_listed = false;

		if (!wpath_eq(wpath_parent(path), dir))
			continue;
		for (size_t i = 2; i < stored && !is_listed; i++)
			is_listed = str_eq(l->entries[i].name, wpath_name(path));
		if (!is_listed)
			list_add(l, wpath_name(path), n->is_dir);
	}
	pthread_mutex_unlock(&v->table);
}

static int list_dir(struct worker *w, struct wpath dir, struct listing **ret)
{
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = w->v->opts.files, .dir = dir, .req = {.limit = 1000}, .ctx = w->ctx};
	struct arena *arena = arena_new();
	struct listing *l = ARENA_NEW(arena, struct listing);
	struct err err;
	int r;

	l->arena = arena;
	list_add(l, STR("."), true);
	list_add(l, STR(".."), true);
	while ((r = list_pages_next(&pages, &err)) > 0)
		list_page(w->v, l, &pages.page);
	if (r < 0 && err.kind != ERR_NOT_FOUND) {
		arena_destroy(arena);
		return errno_of(&err);
	}
	list_extras(w->v, l, dir);
	*ret = l;
	return 0;
}

void op_opendir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE | FOPEN_CACHE_DIR};
	struct node *n = node_by_id(w->v, in->nodeid);

	(void)arg;
	(void)len;
	if (n && !w->v->has_no_opendir) {
		pthread_mutex_lock(&n->lock);
		n->opens++;
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, w->v->has_no_opendir ? ENOSYS : n ? 0 : ESTALE, &out, sizeof out);
}

void op_releasedir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct node *n = node_by_id(w->v, in->nodeid);

	(void)arg;
	(void)len;
	if (n) {
		pthread_mutex_lock(&n->lock);
		if (n->opens && --n->opens == 0) {
			listing_destroy(n->listing);
			n->listing = NULL;
		}
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, 0, NULL, 0);
}

/* An entry with its attributes counts as a lookup; one whose node is not known is given without. */
static void plus_entry(struct fuse_view *v, struct wpath path, struct fuse_entry_out *ret)
{
	struct node *n;

	pthread_mutex_lock(&v->table);
	n = node_find_locked(v, path.s);
	n = n && n->is_known ? node_take_locked(v, path.s) : NULL;
	pthread_mutex_unlock(&v->table);
	if (n)
		fill_entry(v, n, ret);
}

static size_t put_entries(struct worker *w, const struct listing *l, struct wpath dir, uint64_t from, size_t room,
			  bool plus)
{
	size_t used = 0, head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;

	for (uint64_t i = from; i < l->count; i++) {
		struct str name = l->entries[i].name;
		struct fuse_direntplus e = {.dirent = {.off = i + 1,
						       .namelen = (uint32_t)name.len,
						       .type = l->entries[i].is_dir ? DT_DIR : DT_REG}};
		size_t need = FUSE_DIRENT_ALIGN(head + name.len);
		struct wpath path = dir;
		struct err ignored;

		if (used + need > room)
			break;
		if (i >= 2 && wpath_join(w->ctx.arena, dir, (struct wpath){name}, &path, &ignored) != 0)
			continue;
		e.dirent.ino = i < 2 ? FUSE_ROOT_ID : hash_u64(path.s, 0) | 2;
		if (plus && i >= 2)
			plus_entry(w->v, path, &e.entry_out);
		memset(w->out + used, 0, need);
		memcpy(w->out + used, plus ? (const void *)&e : (const void *)&e.dirent, head);
		memcpy(w->out + used + head, name.ptr, name.len);
		used += need;
	}
	return used;
}

void op_readdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_read_in *asked = arg;
	struct fuse_view *v = w->v;
	struct node *n = node_by_id(v, in->nodeid);
	size_t room = asked->size < FUSE_WRITE_MAX ? asked->size : FUSE_WRITE_MAX, used = 0;
	struct listing *fresh = NULL;
	struct wpath dir;
	int code = n ? 0 : ESTALE;

	(void)len;
	if (code == 0 && !node_path(v, w->ctx.arena, n, &dir))
		code = ENOENT;
	if (code == 0) {
		pthread_mutex_lock(&n->lock);
		if (!n->listing || (asked->offset == 0 && !v->opts.is_fixed)) {
			may_wait(w);
			code = list_dir(w, dir, &fresh);
			if (code == 0) {
				listing_destroy(n->listing);
				n->listing = fresh;
			}
		}
		if (code == 0)
			used = put_entries(w, n->listing, dir, asked->offset, room, in->opcode == FUSE_READDIRPLUS);
		if (!used && v->has_no_opendir) { /* the kernel has seen the end, and does not say that it is done */
			listing_destroy(n->listing);
			n->listing = NULL;
		}
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, code, w->out, used);
}
