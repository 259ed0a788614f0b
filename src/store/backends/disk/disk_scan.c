/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file below a directory, on all cores, begun in list order. One thread walks: it reads a directory, sorts it,
 * and queues its files; the others take from the queue, open, read, and call the visitor. When the queue is full the
 * walker takes one itself, and when the walk is over it is one of them: so with two cores there are two threads, both
 * busy. A small tree is walked and read before a thread would have started, so threads start only when the queue has
 * grown.
 *
 * A file is opened by its one name from its directory's descriptor, which stays open while files of it are queued.
 * Nothing is stat'ed: the directory says what is a file, and a short read says where it ends. No link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "store/backends/disk/disk.h"
#include "text/ignore.h"

#define QUEUE_MAX   512
#define START_AT    24          /* queued files at which threads are worth starting */
#define READ_CHUNK  (256 * KIB) /* stays in a core's cache */
#define THREADS_MAX 8
#define TELL_EVERY  1024 /* files between two progress reports */
#define ENTER_TRIES 2

struct scan_dir {
	int fd;
	atomic_uint refs;
	struct disk_names names;
	struct str path; /* "" or with a final '/'; heap */
};

struct scan_job {
	struct scan_dir *dir;
	uint32_t name; /* in dir->names.refs */
	uint64_t seq;
};

struct scan {
	const struct disk *disk;
	struct ctx *ctx;
	const struct scan_req *req;
	struct wpath top;
	unsigned threads;
	/* the walker's */
	struct arena *arena; /* ignore rules */
	char *rules_text;    /* of the file that is read */
	char path[PATH_LEN_MAX + 2];
	uint64_t seq;
	pthread_t ids[THREADS_MAX];
	unsigned started; /* in addition to the walker */
	struct reader *own;
	/* shared */
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct scan_job queue[QUEUE_MAX];
	unsigned head, count, sleeping;
	bool walked; /* nothing more will be queued */
	atomic_bool failed;
	int result;
	struct err err;
};

/* One thread's. */
struct reader {
	struct scan *scan;
	unsigned worker;
	char *chunk;
	char path[PATH_LEN_MAX + 1];
};

static void dir_release(struct scan_dir *dir)
{
	if (atomic_fetch_sub_explicit(&dir->refs, 1, memory_order_acq_rel) != 1)
		return;
	close(dir->fd);
	disk_names_release(&dir->names);
	free((char *)dir->path.ptr);
	free(dir);
}

static int fail(struct scan *s, int r, const struct err *err)
{
	pthread_mutex_lock(&s->lock);
	if (!s->failed) {
		s->result = r;
		s->err = *err;
		s->failed = true;
	}
	pthread_cond_broadcast(&s->filled);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* Reads to the end of the file or of the room. False when it cannot be read. A regular file's read is short only at its
   end; a file system of another kind may stop at a page, so there it asks again. */
static bool fill(int fd, char *buf, size_t room, size_t *ret_len, bool *ret_end)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, buf + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		len += (size_t)n;
		*ret_len = len;
		*ret_end = len < room;
		if (n == 0 || len == room || (len & 4095) != 0)
			return true;
	}
}

static int visit(struct reader *r, struct scan_item *item, struct str data, bool last, struct err *err)
{
	item->data = data;
	item->last = last;
	return r->scan->req->visit(r->scan->req->arg, item, err);
}

static int64_t changed_at(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? clock_of_timespec(st.st_ctim) : 0;
}

static int read_file(struct reader *r, int fd, struct scan_item *item, struct err *err)
{
	size_t have = 0;

	for (;;) {
		size_t got, cut;
		bool end;
		int v;

		if (!fill(fd, r->chunk + have, READ_CHUNK - have, &got, &end)) {
			item->unreadable = true;
			return visit(r, item, STR_NONE, true, err);
		}
		have += got;
		if (item->offset == 0)
			item->size = have;
		if (r->scan->req->dated)
			item->changed_ns = changed_at(fd);
		if (end)
			return visit(r, item, str_n(r->chunk, have), true, err);
		cut = str_rfind_char(str_n(r->chunk, have), '\n');
		cut = cut < have ? cut + 1 : have;
		v = visit(r, item, str_n(r->chunk, cut), false, err);
		if (v == 0)
			v = ctx_check(r->scan->ctx, err);
		if (v)
			return v;
		item->offset += cut;
		have -= cut;
		memmove(r->chunk, r->chunk + cut, have);
	}
}

/* One file of the queue; gives its directory back. */
static int run_job(struct reader *r, const struct scan_job *job)
{
	const struct disk_name_ref *ref = &job->dir->names.refs[job->name];
	const char *name = job->dir->names.text + ref->at;
	struct scan_item item = {.seq = job->seq, .worker = r->worker};
	struct err err;
	int v = ctx_check(r->scan->ctx, &err);

	if (v == 0) {
		int fd = openat(job->dir->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

		memcpy(r->path, job->dir->path.ptr, job->dir->path.len);
		memcpy(r->path + job->dir->path.len, name, ref->len);
		item.path = str_n(r->path, job->dir->path.len + ref->len);
		if (fd < 0) {
			item.unreadable = true;
			v = visit(r, &item, STR_NONE, true, &err);
		} else {
			v = read_file(r, fd, &item, &err);
			close(fd);
		}
	}
	dir_release(job->dir);
	return v < 0 ? fail(r->scan, v, &err) : 0;
}

/* Takes the first of the queue. `wait`: until there is one or the walk is over. */
static bool take(struct scan *s, bool wait, struct scan_job *ret)
{
	bool got = false;

	pthread_mutex_lock(&s->lock);
	while (wait && s->count == 0 && !s->walked && !s->failed) {
		s->sleeping++;
		pthread_cond_wait(&s->filled, &s->lock);
		s->sleeping--;
	}
	if (s->count && !s->failed) {
		*ret = s->queue[s->head];
		s->head = (s->head + 1) % QUEUE_MAX;
		s->count--;
		got = true;
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

static void *work(void *arg)
{
	struct reader *r = arg;
	struct scan_job job;

	while (take(r->scan, true, &job))
		run_job(r, &job);
	free(r->chunk);
	free(r);
	return NULL;
}

static struct reader *reader_new(struct scan *s, unsigned worker)
{
	struct reader *r = xmalloc(sizeof(*r));

	r->scan = s;
	r->worker = worker;
	r->chunk = xmalloc(READ_CHUNK);
	return r;
}

/* A thread that does not start is one fewer; the walker does all of it if need be. */
static void start_threads(struct scan *s)
{
	while (s->started + 1 < s->threads) {
		struct reader *r = reader_new(s, s->started + 1);

		if (pthread_create(&s->ids[s->started], NULL, work, r) != 0) {
			free(r->chunk);
			free(r);
			s->threads = s->started + 1;
			return;
		}
		s->started++;
	}
}

/* The walker takes one file itself. False when there is none. */
static bool help(struct scan *s)
{
	struct scan_job job;

	if (!take(s, false, &job))
		return false;
	if (!s->own)
		s->own = reader_new(s, 0);
	run_job(s->own, &job);
	return true;
}

/* Queues a file; when there is no room the walker reads the first of them itself. */
static void enqueue(struct scan *s, struct scan_dir *dir, uint32_t name)
{
	unsigned count = QUEUE_MAX;

	while (count == QUEUE_MAX) {
		pthread_mutex_lock(&s->lock);
		if (s->count < QUEUE_MAX) {
			atomic_fetch_add_explicit(&dir->refs, 1, memory_order_relaxed);
			s->queue[(s->head + s->count) % QUEUE_MAX] = (struct scan_job){dir, name, s->seq++};
			count = s->count++;
			if (s->sleeping)
				pthread_cond_signal(&s->filled);
		}
		pthread_mutex_unlock(&s->lock);
		if (count == QUEUE_MAX && !help(s) && s->failed)
			return;
	}
	if (count >= START_AT && s->started + 1 < s->threads)
		start_threads(s);
}

/* Puts the rules of the file `name` in the directory `dir`, if there is one, on those above. */
static const struct ignore *push_rules(struct scan *s, const struct ignore *rules, int dir, const char *name,
				       struct str path)
{
	FD_SCOPE int fd = disk_open_at(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t len;
	bool end;

	if (fd < 0)
		return rules;
	if (!s->rules_text)
		s->rules_text = xmalloc(IGNORE_LEN_MAX);
	if (!fill(fd, s->rules_text, IGNORE_LEN_MAX, &len, &end))
		return rules;
	return ignore_push(s->arena, rules, path, str_n(s->rules_text, len));
}

/* The rules of the directories from the root down to the one above `top`'s entries. */
static const struct ignore *rules_above(struct scan *s)
{
	struct stat st;
	bool repository = disk_lstat(s->disk->root, ".git", &st) == 0;
	const struct ignore *rules = repository ? NULL : ignore_outside_repository(s->arena);

	if (repository)
		rules = push_rules(s, rules, s->disk->root, IGNORE_EXCLUDE_FILE, STR(""));
	for (size_t i = 0; i < s->top.s.len; i++) {
		struct wpath dir = {str_first(s->top.s, i)};
		FD_SCOPE int fd = -1;

		if (i && s->top.s.ptr[i] != '/')
			continue;
		fd = disk_open_dir(s->disk, dir);
		if (fd >= 0)
			rules = push_rules(s, rules, fd, IGNORE_FILE, dir.s);
	}
	return rules;
}

static bool has_name(const struct disk_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (names->refs[i].type == DT_REG && strcmp(names->text + names->refs[i].at, name) == 0)
			return true;
	return false;
}

static int walk(struct scan *s, int fd, size_t path_len, const struct ignore *rules, struct err *err);

static int enter(struct scan *s, struct scan_dir *dir, const char *name, size_t path_len, const struct ignore *rules,
		 struct err *err)
{
	int fd = -1;

	for (int tries = 0; fd < 0 && tries < ENTER_TRIES; tries++) {
		fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 || errno != EMFILE)
			break;
		while (help(s)) /* queued files hold directories open */
			;
	}
	if (fd < 0)
		return 0; /* gone, or not ours to read */
	return walk(s, fd, path_len, rules, err);
}

static int found_file(struct scan *s, struct scan_dir *dir, uint32_t i, size_t path_len, struct err *err)
{
	struct scan_item item = {.path = str_n(s->path, path_len), .last = true};
	int r;

	if (s->req->want_file && !s->req->want_file(s->req->arg, item.path))
		return 0;
	if (s->seq % TELL_EVERY == TELL_EVERY - 1)
		ctx_progress(s->ctx, s->seq, 0, STR("files"));
	if (s->req->contents) {
		enqueue(s, dir, i);
		return 0;
	}
	item.seq = s->seq++;
	r = s->req->visit(s->req->arg, &item, err);
	return r < 0 ? r : 0;
}

static int walk_entry(struct scan *s, struct scan_dir *dir, uint32_t i, const struct ignore *rules, struct err *err)
{
	const struct disk_name_ref *ref = &dir->names.refs[i];
	const char *name = dir->names.text + ref->at;
	size_t len = dir->path.len + ref->len;
	bool is_dir = ref->type == DT_DIR;
	struct str path = {s->path, len};

	if (!ref->valid || len > PATH_LEN_MAX || (!is_dir && ref->type != DT_REG))
		return 0;
	memcpy(s->path + dir->path.len, name, ref->len);
	if (s->req->use_ignore && ignore_match(rules, path, is_dir))
		return 0;
	if (!is_dir)
		return found_file(s, dir, i, len, err);
	if (s->req->want_dir && !s->req->want_dir(s->req->arg, path))
		return 0;
	return enter(s, dir, name, len, rules, err);
}

/* The directory `fd` (taken over), whose path is the first `path_len` bytes of s->path. Depth is bounded by the length
   of a path. */
static int walk(struct scan *s, int fd, size_t path_len, const struct ignore *rules, struct err *err)
{
	struct scan_dir *dir = xcalloc(1, sizeof(*dir));
	char *path = xmalloc(path_len + 2);
	int r = ctx_check(s->ctx, err);

	dir->fd = fd;
	dir->refs = 1;
	memcpy(path, s->path, path_len);
	if (path_len)
		path[path_len] = '/';
	dir->path = str_n(path, path_len ? path_len + 1 : 0);
	if (r == 0)
		r = disk_names_read(fd, false, &dir->names, err);
	if (r == 0) {
		if (s->req->use_ignore && has_name(&dir->names, IGNORE_FILE))
			rules = push_rules(s, rules, fd, IGNORE_FILE, str_n(path, path_len));
		disk_names_sort(&dir->names);
	}
	for (uint32_t i = 0; r == 0 && i < dir->names.count && !s->failed; i++) {
		memcpy(s->path, dir->path.ptr, dir->path.len);
		r = walk_entry(s, dir, i, rules, err);
	}
	dir_release(dir);
	return r;
}

static void finish(struct scan *s)
{
	pthread_mutex_lock(&s->lock);
	s->walked = true;
	pthread_cond_broadcast(&s->filled);
	pthread_mutex_unlock(&s->lock);
	while (help(s))
		;
	for (unsigned i = 0; i < s->started; i++)
		pthread_join(s->ids[i], NULL);
	for (; s->count; s->count--) { /* what an error left behind */
		dir_release(s->queue[s->head].dir);
		s->head = (s->head + 1) % QUEUE_MAX;
	}
	if (s->own)
		free(s->own->chunk);
	free(s->own);
	free(s->rules_text);
}

static unsigned thread_count(unsigned asked)
{
	long cores = asked ? (long)asked : sysconf(_SC_NPROCESSORS_ONLN);

	return cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores;
}

int disk_scan(struct store *store, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct disk *d = disk_of(store);
	int fd = disk_reserved(path) ? -ENOENT : disk_open_dir(d, path), r;
	struct scan *s;

	if (fd == -ENOTDIR) { /* the path is a file, or a part of it is and the path does not exist */
		struct store_stat stat;
		struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &stat};

		r = store_forward(store, ctx, &get, err);
		return r ? r
			 : err_set(err, ERR_INVALID,
				   "it is a file, not a directory; name a directory or read the file");
	}
	if (fd < 0)
		return fd == -ENOENT ? store_not_found(err) : disk_fail(err, -fd);
	s = xcalloc(1, sizeof(*s));
	s->disk = d;
	s->ctx = ctx;
	s->req = req;
	s->top = path;
	s->arena = arena;
	s->threads = thread_count(req->threads);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->filled, NULL);
	if (path.s.len)
		memcpy(s->path, path.s.ptr, path.s.len);
	r = walk(s, fd, path.s.len, req->use_ignore ? rules_above(s) : NULL, err);
	if (r)
		fail(s, r, err);
	finish(s);
	r = s->result;
	if (r)
		*err = s->err;
	pthread_cond_destroy(&s->filled);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return r;
}
