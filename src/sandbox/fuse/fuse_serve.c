/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the kernel, read from /dev/fuse and answered. The protocol is spoken here without a library
 * (docs/decisions/0170): it is a dozen requests of fixed form.
 *
 * One thread reads requests and answers what it can from memory. Before a call that may take time it steps aside, and
 * another one reads on; so nothing waits for a slow store but those who asked for it, and a quick answer costs no
 * change of threads. A reader that is killed makes the kernel send an interrupt, which cancels the call of the store.
 * Every call has a deadline as well: nobody waits for ever.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/fuse/fuse_internal.h"

#define CALL_MS    60000
#define READ_ROOM  (64 * 1024) /* of a request, when nothing is written */
#define FOREVER_S  (24 * 3600)
#define BACKGROUND 64

static void *serve(void *arg);

/* --- answers --- */

/* The request is gone when it was interrupted, and everything is when the mount is: there is nothing to do about it. */
void answer(struct worker *w, const struct fuse_in_header *in, int error, const void *bytes, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof out + (error ? 0 : len)), .error = -error, .unique = in->unique};
	struct iovec parts[] = {{&out, sizeof out}, {(void *)bytes, error ? 0 : len}};

	(void)!writev(w->v->opts.dev, parts, parts[1].iov_len ? 2 : 1);
}

static void notify(struct fuse_view *v, int code, const void *what, size_t what_len, struct str name)
{
	struct fuse_out_header out = {.error = code};
	struct iovec parts[] = {{&out, sizeof out}, {(void *)what, what_len}, {(void *)name.ptr, name.len}, {"", 1}};

	out.len = (uint32_t)(sizeof out + what_len + (name.ptr ? name.len + 1 : 0));
	(void)!writev(v->opts.dev, parts, name.ptr ? 4 : 2);
}

void notify_inode(struct fuse_view *v, uint64_t id)
{
	struct fuse_notify_inval_inode_out out = {.ino = id};

	notify(v, FUSE_NOTIFY_INVAL_INODE, &out, sizeof out, STR_NONE);
}

void notify_entry(struct fuse_view *v, uint64_t parent, struct str name)
{
	struct fuse_notify_inval_entry_out out = {.parent = parent, .namelen = (uint32_t)name.len};

	notify(v, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof out, name);
}

int errno_of(const struct err *err)
{
	static const int numbers[ERR_KINDS] = {
		[ERR_INVALID] = EINVAL,    [ERR_NOT_FOUND] = ENOENT,       [ERR_EXISTS] = EEXIST,
		[ERR_CONFLICT] = ESTALE,   [ERR_DENIED] = EACCES,          [ERR_UNAUTHENTICATED] = EACCES,
		[ERR_TOO_LARGE] = EFBIG,   [ERR_UNSUPPORTED] = EOPNOTSUPP, [ERR_RATE_LIMITED] = EAGAIN,
		[ERR_TIMEOUT] = ETIMEDOUT, [ERR_CANCELLED] = EINTR,        [ERR_QUOTA] = EDQUOT};
	int number = (unsigned)err->kind < ERR_KINDS ? numbers[err->kind] : EIO;

	return number ? number : EIO;
}

static void set_valid(const struct fuse_view *v, uint64_t *seconds, uint32_t *nanoseconds)
{
	*seconds = v->opts.is_fixed ? FOREVER_S : (uint64_t)(v->opts.known_ms / 1000);
	*nanoseconds = v->opts.is_fixed ? 0 : (uint32_t)(v->opts.known_ms % 1000 * NS_PER_MS);
}

void fill_entry(struct fuse_view *v, struct node *n, struct fuse_entry_out *ret)
{
	*ret = (struct fuse_entry_out){.nodeid = n ? n->id : 0};
	set_valid(v, &ret->entry_valid, &ret->entry_valid_nsec);
	ret->attr_valid = ret->entry_valid;
	ret->attr_valid_nsec = ret->entry_valid_nsec;
	if (n) {
		pthread_mutex_lock(&v->table);
		node_attr_locked(v, n, &ret->attr);
		pthread_mutex_unlock(&v->table);
	}
}

void answer_entry(struct worker *w, const struct fuse_in_header *in, struct node *n, const struct fuse_open_out *open)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {0};

	fill_entry(w->v, n, &out.entry);
	if (open)
		out.open = *open;
	answer(w, in, 0, &out, open ? sizeof out : sizeof out.entry);
}

int child_path(struct worker *w, uint64_t parent, const char *name, struct wpath *ret)
{
	struct node *n = node_by_id(w->v, parent);
	struct wpath dir, child;
	struct err ignored;

	if (!n || !node_path(w->v, w->ctx.arena, n, &dir))
		return ENOENT;
	if (wpath_parse(str_of(name), &child, &ignored) != 0)
		return EINVAL;
	return wpath_join(w->ctx.arena, dir, child, ret, &ignored) == 0 ? 0 : ENAMETOOLONG;
}

/* --- the beginning --- */

static void op_init(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_init_in *asked = arg;
	const uint32_t usual = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO |
			       FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_ASYNC_DIO;
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION};
	struct fuse_view *v = w->v;

	(void)len;
	if (asked->major != FUSE_KERNEL_VERSION) {
		answer(w, in, 0, &out, sizeof out);
		return;
	}
	if (asked->minor < out.minor)
		out.minor = asked->minor;
	out.flags = asked->flags & (usual | (v->opts.is_fixed ? 0 : FUSE_AUTO_INVAL_DATA));
	v->has_no_opendir = (asked->flags & FUSE_NO_OPENDIR_SUPPORT) != 0;
	/* Where files are written the end of writing must be seen, and who does not ask to open does not say that
	 * either. */
	v->has_no_open = v->opts.read_only && v->has_no_opendir && (asked->flags & FUSE_NO_OPEN_SUPPORT) != 0;
	out.max_readahead = asked->max_readahead < FUSE_WRITE_MAX ? asked->max_readahead : FUSE_WRITE_MAX;
	out.max_write = v->opts.read_only ? 4096 : FUSE_WRITE_MAX;
	out.max_pages = FUSE_WRITE_MAX / 4096;
	out.max_background = BACKGROUND;
	out.congestion_threshold = BACKGROUND * 3 / 4;
	out.time_gran = 1;
	answer(w, in, 0, &out, sizeof out);
}

static void op_forget(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	(void)len;
	node_forget(w->v, in->nodeid, ((const struct fuse_forget_in *)arg)->nlookup);
}

static void op_batch_forget(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_batch_forget_in *batch = arg;
	const struct fuse_forget_one *one = (const void *)(batch + 1);
	size_t room = (len - sizeof *batch) / sizeof *one;

	(void)in;
	for (size_t i = 0; i < batch->count && i < room; i++)
		node_forget(w->v, one[i].nodeid, one[i].nlookup);
}

/* The one who waits for the answer was killed, or does not want to wait any longer. */
static void op_interrupt(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_interrupt_in *what = arg;

	(void)in;
	(void)len;
	pthread_mutex_lock(&w->v->crew);
	for (unsigned i = 0; i < w->v->worker_count; i++)
		if (atomic_load(&w->v->workers[i]->unique) == what->unique)
			atomic_store(&w->v->workers[i]->cancel.requested, true);
	pthread_mutex_unlock(&w->v->crew);
}

static void op_nothing(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	answer(w, in, 0, NULL, 0);
}

static void op_refused(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	answer(w, in, EPERM, NULL, 0);
}

static const struct {
	fuse_op op;
	uint16_t least; /* bytes after the header */
	bool has_name;  /* and names after those: they end with NUL */
	bool writes;    /* refused in a view that is read-only */
} ops[] = {
	[FUSE_LOOKUP] = {op_lookup, 1, .has_name = true},
	[FUSE_FORGET] = {op_forget, .least = sizeof(struct fuse_forget_in)},
	[FUSE_GETATTR] = {op_getattr, .least = 0},
	[FUSE_SETATTR] = {op_setattr, sizeof(struct fuse_setattr_in), .writes = true},
	[FUSE_SYMLINK] = {op_refused, 0, .writes = true},
	[FUSE_MKNOD] = {op_mknod, sizeof(struct fuse_mknod_in) + 1, true, true},
	[FUSE_MKDIR] = {op_mkdir, sizeof(struct fuse_mkdir_in) + 1, true, true},
	[FUSE_UNLINK] = {op_unlink, 1, true, true},
	[FUSE_RMDIR] = {op_rmdir, 1, true, true},
	[FUSE_RENAME] = {op_rename, sizeof(struct fuse_rename_in) + 3, true, true},
	[FUSE_RENAME2] = {op_rename, sizeof(struct fuse_rename2_in) + 3, true, true},
	[FUSE_LINK] = {op_refused, 0, .writes = true},
	[FUSE_OPEN] = {op_open, .least = sizeof(struct fuse_open_in)},
	[FUSE_READ] = {op_read, .least = sizeof(struct fuse_read_in)},
	[FUSE_WRITE] = {op_write, sizeof(struct fuse_write_in), .writes = true},
	[FUSE_STATFS] = {op_statfs, .least = 0},
	[FUSE_RELEASE] = {op_release, .least = sizeof(struct fuse_release_in)},
	[FUSE_FSYNC] = {op_fsync, .least = sizeof(struct fuse_fsync_in)},
	[FUSE_FLUSH] = {op_flush, .least = sizeof(struct fuse_flush_in)},
	[FUSE_INIT] = {op_init, .least = 16},
	[FUSE_OPENDIR] = {op_opendir, .least = sizeof(struct fuse_open_in)},
	[FUSE_READDIR] = {op_readdir, .least = sizeof(struct fuse_read_in)},
	[FUSE_READDIRPLUS] = {op_readdir, .least = sizeof(struct fuse_read_in)},
	[FUSE_RELEASEDIR] = {op_releasedir, .least = sizeof(struct fuse_release_in)},
	[FUSE_FSYNCDIR] = {op_fsync, .least = sizeof(struct fuse_fsync_in)},
	[FUSE_CREATE] = {op_create, sizeof(struct fuse_create_in) + 1, true, true},
	[FUSE_INTERRUPT] = {op_interrupt, .least = sizeof(struct fuse_interrupt_in)},
	[FUSE_DESTROY] = {op_nothing, .least = 0},
	[FUSE_BATCH_FORGET] = {op_batch_forget, .least = sizeof(struct fuse_batch_forget_in)},
};

static void handle(struct worker *w, size_t len)
{
	const struct fuse_in_header *in = (const void *)w->in;
	const void *arg = in + 1;
	size_t rest = len - sizeof *in;

	if (in->opcode >= COUNT(ops) || !ops[in->opcode].op) {
		answer(w, in, ENOSYS, NULL, 0);
		return;
	}
	if (rest < ops[in->opcode].least || (ops[in->opcode].has_name && w->in[len - 1] != 0)) {
		answer(w, in, EIO, NULL, 0);
		return;
	}
	if (w->v->opts.read_only && ops[in->opcode].writes) {
		answer(w, in, EROFS, NULL, 0);
		return;
	}
	atomic_store(&w->is_writing, ops[in->opcode].writes || in->opcode == FUSE_FLUSH || in->opcode == FUSE_FSYNC ||
					     in->opcode == FUSE_RELEASE);
	ops[in->opcode].op(w, in, arg, rest);
}

/* --- threads --- */

static void worker_start(struct fuse_view *v)
{
	struct worker *w = xcalloc(1, sizeof *w);

	w->v = v;
	w->in_cap = sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in) +
		    (v->opts.read_only ? READ_ROOM : FUSE_WRITE_MAX);
	w->in = xmalloc(w->in_cap);
	w->out = xmalloc(FUSE_WRITE_MAX);
	w->ctx = (struct ctx){.arena = arena_new(), .cancel = &w->cancel, .actor = v->opts.actor};
	if (pthread_create(&w->thread, NULL, serve, w) != 0) {
		arena_destroy(w->ctx.arena);
		free(w->in);
		free(w->out);
		free(w);
		return;
	}
	v->workers[v->worker_count++] = w;
}

void step_aside(struct worker *w)
{
	struct fuse_view *v = w->v;

	if (!w->leads)
		return;
	w->leads = false;
	pthread_mutex_unlock(&v->lead);
	if (atomic_load(&v->waiting))
		return;
	pthread_mutex_lock(&v->crew);
	if (v->worker_count < FUSE_THREADS_MAX && !atomic_load(&v->is_ending))
		worker_start(v);
	pthread_mutex_unlock(&v->crew);
}

void may_wait(struct worker *w)
{
	if (!w->v->is_local)
		step_aside(w);
}

/* The next request; 0: there will be none. */
static size_t next_request(struct worker *w)
{
	struct fuse_view *v = w->v;

	while (!atomic_load(&v->is_ending)) {
		struct pollfd fds[] = {{.fd = v->opts.dev, .events = POLLIN}, {.fd = v->stop, .events = POLLIN}};
		ssize_t n = read(v->opts.dev, w->in, w->in_cap);

		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			return (size_t)n;
		if (n < 0 && errno == EAGAIN)
			(void)poll(fds, COUNT(fds), -1);
		else if (n < 0 && errno != EINTR && errno != ENOENT)
			break;
	}
	return 0;
}

/* The mount is gone, or the view ends. */
static void give_up(struct fuse_view *v)
{
	atomic_store(&v->is_ending, true);
	atomic_store(&v->is_over, true);
	(void)eventfd_write(v->over, 1);
	(void)eventfd_write(v->stop, 1);
}

static void *serve(void *arg)
{
	struct worker *w = arg;
	struct fuse_view *v = w->v;
	size_t len;

	for (;;) {
		if (!w->leads) {
			atomic_fetch_add(&v->waiting, 1);
			pthread_mutex_lock(&v->lead);
			atomic_fetch_sub(&v->waiting, 1);
			w->leads = true;
		}
		len = next_request(w);
		if (!len)
			break;
		atomic_store(&w->cancel.requested, false);
		atomic_store(&w->unique, ((const struct fuse_in_header *)(const void *)w->in)->unique);
		w->ctx.deadline_ns = clock_monotonic_ns() + (v->opts.call_ms ? v->opts.call_ms : CALL_MS) * NS_PER_MS;
		handle(w, len);
		atomic_store(&w->unique, 0);
		arena_reset(w->ctx.arena);
	}
	w->leads = false;
	pthread_mutex_unlock(&v->lead);
	give_up(v);
	return NULL;
}

/* --- the view --- */

struct fuse_view *fuse_view_new(const struct fuse_opts *opts)
{
	struct fuse_view *v = xcalloc(1, sizeof *v);

	v->opts = *opts;
	v->started_ns = clock_real_ns();
	v->is_local = store_is_local(opts->files);
	v->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	v->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&v->lead, NULL);
	pthread_mutex_init(&v->crew, NULL);
	nodes_init(v);
	pthread_mutex_lock(&v->crew);
	worker_start(v);
	pthread_mutex_unlock(&v->crew);
	return v;
}

int fuse_view_over_fd(const struct fuse_view *v)
{
	return v->over;
}

static void worker_destroy(struct worker *w)
{
	arena_destroy(w->ctx.arena);
	free(w->in);
	free(w->out);
	free(w);
}

static void join_all(struct fuse_view *v)
{
	atomic_store(&v->is_ending, true);
	(void)eventfd_write(v->stop, 1);
	pthread_mutex_lock(&v->crew);
	for (unsigned i = 0; i < v->worker_count; i++)
		if (!atomic_load(&v->workers[i]->is_writing))
			atomic_store(&v->workers[i]->cancel.requested, true);
	pthread_mutex_unlock(&v->crew);
	for (unsigned i = 0; i < v->worker_count; i++)
		pthread_join(v->workers[i]->thread, NULL);
	if (v->worker_count && !v->opts.read_only) {
		atomic_store(&v->workers[0]->cancel.requested, false);
		stages_commit(v->workers[0]);
	}
	for (unsigned i = 0; i < v->worker_count; i++)
		worker_destroy(v->workers[i]);
	v->worker_count = 0;
}

void fuse_view_end(struct fuse_view *v)
{
	if (!v || v->opts.dev < 0)
		return;
	join_all(v);
	close(v->opts.dev);
	v->opts.dev = -1;
}

void fuse_view_close(struct fuse_view *v)
{
	if (!v)
		return;
	fuse_view_end(v);
	nodes_release(v);
	close(v->over);
	close(v->stop);
	pthread_mutex_destroy(&v->lead);
	pthread_mutex_destroy(&v->crew);
	free(v);
}

bool fuse_view_version(struct fuse_view *v, struct arena *arena, struct wpath path, struct str *ret)
{
	struct node *n;
	bool is_known;

	pthread_mutex_lock(&v->table);
	n = node_find_locked(v, path.s);
	is_known = n && n->is_known;
	if (is_known)
		*ret = arena_str(arena, str_of(n->version));
	pthread_mutex_unlock(&v->table);
	return is_known;
}
