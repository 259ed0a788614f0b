/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are written. What a program writes goes to a temporary file without a name, the stage, and from there to
 * the store in one piece when the program closes the file or asks for it to be synced: one change, one revision. Bytes
 * that are only added at the end are appended to what the store has, which is then neither read nor written again.
 *
 * Whoever writes last wins, as in any file system; what was there before is in the history.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "sandbox/fuse/fuse_internal.h"
#include "store/stores.h"

/* --- the stage --- */

static int temporary(void)
{
	const char *dir = env_process("TMPDIR");
	int fd = open(dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("stead", MFD_CLOEXEC);
}

static void show_size(struct worker *w, struct node *n, bool written)
{
	pthread_mutex_lock(&w->v->table);
	n->is_staged = true;
	n->size = n->stage->size;
	if (written)
		n->own_mtime_ns = clock_real_ns();
	pthread_mutex_unlock(&w->v->table);
}

int stage_begin(struct worker *w, struct node *n)
{
	int fd;

	if (n->stage)
		return 0;
	fd = temporary();
	if (fd < 0)
		return errno;
	n->stage = xcalloc(1, sizeof *n->stage);
	*n->stage = (struct stage){.fd = fd, .size = n->size, .hole = n->size, .clean = n->size, .asked = n->size};
	show_size(w, n, false);
	return 0;
}

int stage_load(struct worker *w, struct node *n)
{
	struct stage *s = n->stage;
	char *bytes = s->hole ? xmalloc(FUSE_WRITE_MAX) : NULL;
	uint64_t at = 0;
	ssize_t got = 1;

	step_aside(w);
	while (at < s->hole && got > 0) {
		size_t want = s->hole - at < FUSE_WRITE_MAX ? (size_t)(s->hole - at) : FUSE_WRITE_MAX;

		got = read_stored(w, n, at, want, bytes);
		if (got > 0 && pwrite(s->fd, bytes, (size_t)got, (off_t)at) != got)
			got = -ENOSPC;
		if (got > 0)
			at += (uint64_t)got;
	}
	free(bytes);
	if (got < 0)
		return (int)-got;
	s->hole = 0; /* a file that is shorter by now has zeros at its end, as the size says */
	return 0;
}

void stage_drop(struct node *n)
{
	if (!n->stage)
		return;
	close(n->stage->fd);
	free(n->stage);
	n->stage = NULL;
	n->is_staged = false;
}

struct pulled {
	int fd;
	uint64_t begin, at, end;
};

static int stage_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct pulled *p = arg;
	size_t want = p->end - p->at < cap ? (size_t)(p->end - p->at) : cap;
	ssize_t n = want ? pread(p->fd, buf, want, (off_t)p->at) : 0;

	if (n < 0)
		return err_sys(err, errno, "cannot read what was written to the file");
	*ret_len = (size_t)n;
	p->at += (uint64_t)n;
	return 0;
}

static int stage_rewind(void *arg, struct err *err)
{
	struct pulled *p = arg;

	(void)err;
	p->at = p->begin;
	return 0;
}

/* The new state of a node that is in the store now. */
static void commit_done(struct worker *w, struct node *n, const struct store_stat *stat)
{
	int64_t own;

	n->stage->clean = n->stage->size;
	n->stage->is_dirty = false;
	pthread_mutex_lock(&w->v->table);
	own = n->own_mtime_ns;
	n->is_new = false;
	node_extra_locked(w->v, n, n->is_made);
	node_set_locked(n, stat);
	n->own_mtime_ns = own;
	pthread_mutex_unlock(&w->v->table);
	node_drop_bytes(w->v, n);
}

int stage_commit(struct worker *w, struct node *n, struct err *err)
{
	struct stage *s = n->stage;
	struct store *files = w->v->opts.files;
	struct pulled pulled;
	struct source source = {.pull = stage_pull, .rewind = stage_rewind, .arg = &pulled, .mode = n->mode};
	struct store_stat stat = {0};
	struct wpath path;
	int code, r;

	if (!s || !s->is_dirty || !node_path(w->v, w->ctx.arena, n, &path))
		return 0;
	step_aside(w);
	w->ctx.actor.call_id = call_id_new(w->ctx.arena);
	if (s->clean && s->clean < s->size) {
		pulled = (struct pulled){s->fd, s->clean, s->clean, s->size};
		r = store_append_stream(files, &w->ctx, path, &source, (struct store_cond){0}, &stat, err);
	} else {
		code = s->hole ? stage_load(w, n) : 0;
		if (code)
			return err_sys(err, code, "cannot read the part of the file that was not written");
		pulled = (struct pulled){s->fd, 0, 0, s->size};
		r = store_write_stream(files, &w->ctx, path, &source, (struct store_cond){0}, &stat, err);
	}
	if (r == 0)
		commit_done(w, n, &stat);
	return r;
}

/* Would it fit? Asked while it grows, because few programs look at what close() says. */
static int ask_quota(struct worker *w, struct node *n, uint64_t size)
{
	struct stage *s = n->stage;
	struct quota_need need = {.bytes = size - s->clean, .changes = 1, .files = n->is_new, .file_size = size};
	struct err err;

	if (size <= s->asked && s->asked)
		return 0;
	s->asked = size;
	if (store_quota_check(w->v->opts.files, &w->ctx, need, &err) == 0)
		return 0;
	s->asked = 0;
	return errno_of(&err);
}

static int stage_write(struct worker *w, struct node *n, uint64_t offset, const char *bytes, size_t len)
{
	struct stage *s = n->stage;
	int code = offset + len > s->size ? ask_quota(w, n, offset + len) : 0;

	if (code == 0 && offset < s->hole)
		code = stage_load(w, n);
	if (code)
		return code;
	if (offset < s->clean)
		s->clean = 0;
	for (size_t done = 0; done < len;) {
		ssize_t got = pwrite(s->fd, bytes + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno != EINTR)
			return errno;
		done += got > 0 ? (size_t)got : 0;
	}
	if (offset + len > s->size)
		s->size = offset + len;
	s->is_dirty = true;
	show_size(w, n, true);
	return 0;
}

static int stage_truncate(struct worker *w, struct node *n, uint64_t size)
{
	struct stage *s = n->stage;
	int code = 0;

	if (size == s->size)
		return 0;
	if (size > s->size)
		code = ask_quota(w, n, size);
	if (size == 0)
		s->hole = 0;
	if (code == 0 && size < s->hole)
		code = stage_load(w, n);
	if (code)
		return code;
	if (size < s->clean)
		s->clean = 0;
	if (size >= s->hole && ftruncate(s->fd, (off_t)size) != 0)
		return errno;
	s->size = size;
	s->is_dirty = true;
	show_size(w, n, true);
	return 0;
}

/* --- requests --- */

void op_write(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_write_in *asked = arg;
	struct fuse_write_out out = {.size = asked->size};
	struct node *n = node_by_id(w->v, in->nodeid);
	int code = n && asked->size <= len - sizeof *asked ? 0 : EIO;

	if (code == 0) {
		pthread_mutex_lock(&n->lock);
		code = stage_begin(w, n);
		if (code == 0)
			code = stage_write(w, n, asked->offset, (const char *)(asked + 1), asked->size);
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, code, &out, sizeof out);
}

/* Writes what there is to write. 0 or an errno. */
static int commit(struct worker *w, struct node *n)
{
	struct err err;

	return stage_commit(w, n, &err) == 0 ? 0 : errno_of(&err);
}

void op_flush(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct node *n = node_by_id(w->v, in->nodeid);
	int code = n ? 0 : ESTALE;

	(void)arg;
	(void)len;
	if (w->v->has_no_open) {
		answer(w, in, ENOSYS, NULL, 0);
		return;
	}
	if (n) {
		pthread_mutex_lock(&n->lock);
		/* A shell closes a copy of the descriptor before the program has written anything. So an empty file
		   is written when its last descriptor is closed. */
		if (n->stage && n->stage->size)
			code = commit(w, n);
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, code, NULL, 0);
}

void op_fsync(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct node *n = node_by_id(w->v, in->nodeid);
	struct err err;
	int code = n ? 0 : ESTALE;

	(void)arg;
	(void)len;
	step_aside(w);
	if (n) {
		pthread_mutex_lock(&n->lock);
		code = commit(w, n);
		pthread_mutex_unlock(&n->lock);
	}
	if (code == 0 && !w->v->opts.read_only &&
	    store_sync(w->v->opts.syncs ? w->v->opts.syncs : w->v->opts.files, &err) != 0)
		code = errno_of(&err);
	answer(w, in, code, NULL, 0);
}

/* The kernel has seen a file that is not what the store has. */
static void show_loss(struct worker *w, struct node *n, struct wpath path)
{
	struct node *parent;

	step_aside(w);
	notify_inode(w->v, n->id);
	pthread_mutex_lock(&w->v->table);
	parent = node_find_locked(w->v, wpath_parent(path).s);
	pthread_mutex_unlock(&w->v->table);
	if (parent)
		notify_entry(w->v, parent->id, wpath_name(path));
}

/* The last chance of what could not be written when the file was closed; then the store's own state shows again. */
static void end_stage(struct worker *w, struct node *n)
{
	struct wpath path;
	struct err err;
	bool is_lost = false;

	if (stage_commit(w, n, &err) != 0 && node_path(w->v, w->ctx.arena, n, &path)) {
		if (w->v->opts.lost)
			w->v->opts.lost(w->v->opts.arg, path, &err);
		pthread_mutex_lock(&w->v->table);
		n->own_mtime_ns = 0;
		if (n->is_new)
			node_unname_locked(w->v, n);
		pthread_mutex_unlock(&w->v->table);
		is_lost = true;
	}
	pthread_mutex_lock(&w->v->table);
	stage_drop(n);
	pthread_mutex_unlock(&w->v->table);
	if (is_lost)
		show_loss(w, n, path);
}

void op_release(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct node *n = node_by_id(w->v, in->nodeid);

	(void)arg;
	(void)len;
	if (n) {
		pthread_mutex_lock(&n->lock);
		if (n->opens)
			n->opens--;
		if (!n->opens && n->stage)
			end_stage(w, n);
		if (!n->opens)
			node_drop_bytes(w->v, n);
		pthread_mutex_unlock(&n->lock);
	}
	answer(w, in, 0, NULL, 0);
}

void stages_commit(struct worker *w)
{
	struct fuse_view *v = w->v;

	w->ctx.deadline_ns = clock_monotonic_ns() + 60 * NS_PER_S;
	for (size_t i = 0; i < v->slots; i++)
		for (struct node *n = v->by_id[i]; n; n = n->next_by_id)
			if (n->stage)
				end_stage(w, n);
}

/* --- making and changing --- */

/* A node for a file that is about to be written; 0 or an errno. */
static int make_file(struct worker *w, struct wpath path, uint32_t mode, bool exclusive, struct node **ret)
{
	struct fuse_view *v = w->v;
	struct store_stat stat;
	struct err err;
	struct node *n;
	bool exists;
	int code = 0;

	if (v->opts.may_change && v->opts.may_change(v->opts.arg, path, &err) != 0)
		return errno_of(&err);
	may_wait(w);
	exists = store_stat(v->opts.files, &w->ctx, path, &stat, &err) == 0;
	if (!exists && err.kind != ERR_NOT_FOUND)
		return errno_of(&err);
	if (exists && (exclusive || stat.kind == STORE_DIR))
		return stat.kind == STORE_DIR ? EISDIR : EEXIST;
	pthread_mutex_lock(&v->table);
	n = node_take_locked(v, path.s);
	if (exists) {
		node_set_locked(n, &stat);
	} else {
		n->is_dir = n->is_made = false;
		n->is_new = n->is_known = true;
		n->size = 0;
		n->mode = mode & 0777;
		n->own_mtime_ns = clock_real_ns();
		node_extra_locked(v, n, true);
	}
	pthread_mutex_unlock(&v->table);
	pthread_mutex_lock(&n->lock);
	if (!exists) {
		code = stage_begin(w, n);
		if (code == 0)
			n->stage->is_dirty = true;
	}
	pthread_mutex_unlock(&n->lock);
	*ret = n;
	return code;
}

void op_create(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_create_in *asked = arg;
	struct fuse_open_out open = {.open_flags = FOPEN_KEEP_CACHE};
	struct wpath path;
	struct node *n = NULL;
	int code = child_path(w, in->nodeid, (const char *)(asked + 1), &path);

	(void)len;
	if (code == 0)
		code = make_file(w, path, asked->mode, asked->flags & O_EXCL, &n);
	if (code) {
		answer(w, in, code, NULL, 0);
		return;
	}
	pthread_mutex_lock(&n->lock);
	n->opens++;
	pthread_mutex_unlock(&n->lock);
	open.fh = n->id;
	answer_entry(w, in, n, &open);
}

void op_mknod(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_mknod_in *asked = arg;
	struct wpath path;
	struct node *n = NULL;
	int code = S_ISREG(asked->mode) ? child_path(w, in->nodeid, (const char *)(asked + 1), &path) : EPERM;

	(void)len;
	if (code == 0)
		code = make_file(w, path, asked->mode, true, &n);
	if (code == 0) {
		pthread_mutex_lock(&n->lock);
		code = commit(w, n);
		pthread_mutex_lock(&w->v->table);
		stage_drop(n);
		pthread_mutex_unlock(&w->v->table);
		pthread_mutex_unlock(&n->lock);
	}
	if (code)
		answer(w, in, code, NULL, 0);
	else
		answer_entry(w, in, n, NULL);
}

/* The bits of a file are written with its bytes. A store that has none is not asked. */
static int change_mode(struct worker *w, struct node *n, uint32_t mode)
{
	int code;

	if (n->is_dir || !n->mode || (n->mode & 0777) == (mode & 0777))
		return 0;
	code = stage_begin(w, n);
	if (code == 0 && n->stage->hole)
		code = stage_load(w, n);
	if (code)
		return code;
	n->stage->clean = 0;
	n->stage->is_dirty = true;
	pthread_mutex_lock(&w->v->table);
	n->mode = mode & 0777;
	pthread_mutex_unlock(&w->v->table);
	return 0;
}

static void change_time(struct worker *w, struct node *n, const struct fuse_setattr_in *asked)
{
	int64_t at = asked->valid & FATTR_MTIME_NOW
			     ? clock_real_ns()
			     : (int64_t)(asked->mtime % (uint64_t)(INT64_MAX / NS_PER_S)) * NS_PER_S +
				       asked->mtimensec % NS_PER_S;

	pthread_mutex_lock(&w->v->table);
	n->own_mtime_ns = at ? at : 1;
	pthread_mutex_unlock(&w->v->table);
}

static int change_attr(struct worker *w, struct node *n, const struct fuse_setattr_in *asked)
{
	struct wpath path;
	struct err err;
	int code = 0;

	if (asked->valid & (FATTR_SIZE | FATTR_MODE) && w->v->opts.may_change &&
	    node_path(w->v, w->ctx.arena, n, &path) && w->v->opts.may_change(w->v->opts.arg, path, &err) != 0)
		return errno_of(&err);
	if (asked->valid & FATTR_SIZE) {
		code = n->is_dir ? EISDIR : stage_begin(w, n);
		if (code == 0)
			code = stage_truncate(w, n, asked->size);
	}
	if (code == 0 && asked->valid & FATTR_MODE)
		code = change_mode(w, n, asked->mode);
	if (code == 0 && n->stage && !n->opens) {
		code = commit(w, n);
		pthread_mutex_lock(&w->v->table);
		stage_drop(n);
		pthread_mutex_unlock(&w->v->table);
	}
	if (code == 0 && asked->valid & FATTR_MTIME)
		change_time(w, n, asked);
	return code;
}

void op_setattr(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct node *n = node_by_id(w->v, in->nodeid);
	struct fuse_entry_out entry;
	struct fuse_attr_out out = {0};
	int code = n ? 0 : ESTALE;

	(void)len;
	if (n) {
		pthread_mutex_lock(&n->lock);
		code = change_attr(w, n, arg);
		pthread_mutex_unlock(&n->lock);
	}
	if (code == 0) {
		fill_entry(w->v, n, &entry);
		out.attr_valid = entry.attr_valid;
		out.attr_valid_nsec = entry.attr_valid_nsec;
		out.attr = entry.attr;
	}
	answer(w, in, code, &out, sizeof out);
}
