/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: see its header. A file is known by its inode number, which may be used again after it is gone, so a
 * file that is made is always a new node. Wrappers hold one lock around the call and its record: steps are in the order
 * in which they happened.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"

enum act { ACT_NAME, ACT_UNNAME, ACT_RENAME, ACT_BYTES, ACT_SIZE, ACT_MODE, ACT_SYNC, ACT_MARK };

struct step {
	enum act act;
	int node;
	int dir, to_dir;
	char *name, *to_name;
	uint64_t offset, size;
	char *bytes;
	struct timespec time;
	size_t synced_at;             /* the step that syncs this one */
	bool kept, torn, zeros, hole; /* in the state that is being made */
};

struct node {
	ino_t ino;
	bool is_dir;
	mode_t mode;
};

static struct {
	pthread_mutex_t lock;
	bool on;
	dev_t dev;
	struct node *nodes;
	int node_count;
	struct step *steps;
	size_t count;
} rec = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *grow(void *list, size_t count, size_t size)
{
	if (count & (count - 1))
		return list;
	list = realloc(list, (count ? 2 * count : 1) * size);
	if (!list)
		abort();
	return list;
}

static int node_new(const struct stat *st)
{
	rec.nodes = grow(rec.nodes, (size_t)rec.node_count, sizeof(*rec.nodes));
	rec.nodes[rec.node_count] =
		(struct node){.ino = st->st_ino, .is_dir = S_ISDIR(st->st_mode), .mode = st->st_mode & 0777};
	return rec.node_count++;
}

/* -1: it is not below the directory. */
static int node_of(const struct stat *st)
{
	for (int i = rec.node_count; st->st_dev == rec.dev && i-- > 0;)
		if (rec.nodes[i].ino == st->st_ino)
			return i;
	return -1;
}

static int node_of_fd(int fd)
{
	struct stat st;

	return rec.on && fstat(fd, &st) == 0 ? node_of(&st) : -1;
}

static int node_at(int dir, const char *path)
{
	struct stat st;

	return rec.on && fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? node_of(&st) : -1;
}

/* The directory of a path, and in *ret_name what is after the last '/'. */
static int parent_of(int dir, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char text[4096];

	*ret_name = slash ? slash + 1 : path;
	snprintf(text, sizeof(text), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return node_at(dir, text);
}

static struct step *step_new(enum act act, int node)
{
	struct step *s;

	rec.steps = grow(rec.steps, rec.count, sizeof(*rec.steps));
	s = &rec.steps[rec.count++];
	*s = (struct step){.act = act, .node = node, .dir = -1, .to_dir = -1};
	clock_gettime(CLOCK_REALTIME, &s->time);
	return s;
}

static void add_name(int dir, const char *name, int node)
{
	struct step *s = step_new(ACT_NAME, node);

	s->dir = dir;
	s->name = strdup(name);
}

static void add_bytes(int node, uint64_t offset, const void *bytes, size_t len)
{
	struct step *s = step_new(ACT_BYTES, node);

	s->offset = offset;
	s->size = len;
	s->bytes = malloc(len + 1);
	memcpy(s->bytes, bytes, len);
}

void recorder_start(const char *dir)
{
	struct stat st;

	if (stat(dir, &st))
		abort();
	recorder_clear();
	rec.dev = st.st_dev;
	node_new(&st);
	rec.on = true;
}

void recorder_mark(unsigned number)
{
	pthread_mutex_lock(&rec.lock);
	step_new(ACT_MARK, -1)->offset = number;
	pthread_mutex_unlock(&rec.lock);
}

/* Which sync makes a step durable: that of the directory for a name, of the file for the rest. */
static void find_syncs(void)
{
	size_t *next = malloc((size_t)rec.node_count * sizeof(*next)); /* the next sync of each node */

	if (!next)
		abort();
	for (int i = 0; i < rec.node_count; i++)
		next[i] = SIZE_MAX;
	for (size_t i = rec.count; i-- > 0;) {
		struct step *s = &rec.steps[i];
		int node = s->act == ACT_NAME || s->act == ACT_UNNAME ? s->dir
			   : s->act == ACT_RENAME                     ? s->to_dir
								      : s->node;

		s->synced_at = node < 0 ? SIZE_MAX : next[node];
		if (s->act == ACT_SYNC)
			next[s->node] = i;
	}
	free(next);
}

void recorder_stop(void)
{
	pthread_mutex_lock(&rec.lock);
	rec.on = false;
	find_syncs();
	pthread_mutex_unlock(&rec.lock);
}

void recorder_clear(void)
{
	for (size_t i = 0; i < rec.count; i++) {
		free(rec.steps[i].name);
		free(rec.steps[i].to_name);
		free(rec.steps[i].bytes);
	}
	free(rec.steps);
	free(rec.nodes);
	rec.steps = NULL;
	rec.nodes = NULL;
	rec.count = 0;
	rec.node_count = 0;
}

size_t recorder_steps(void)
{
	return rec.count;
}

/* --- wrappers --- */

int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int dir, const char *path, mode_t mode);
ssize_t __real_write(int fd, const void *bytes, size_t len);
int __real_linkat(int dir, const char *path, int to_dir, const char *to, int flags);
int __real_renameat(int dir, const char *path, int to_dir, const char *to);
int __real_renameat2(int dir, const char *path, int to_dir, const char *to, unsigned flags);
int __real_unlinkat(int dir, const char *path, int flags);
int __real_ftruncate64(int fd, off_t size);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_syncfs(int fd);
ssize_t __real_copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags);
int __real_futimens(int fd, const struct timespec times[2]);
int __real_fchmod(int fd, mode_t mode);

int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __wrap_linkat(int dir, const char *path, int to_dir, const char *to, int flags);
int __wrap_rename(const char *path, const char *to);
int __wrap_renameat(int dir, const char *path, int to_dir, const char *to);
int __wrap_renameat2(int dir, const char *path, int to_dir, const char *to, unsigned flags);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_syncfs(int fd);
ssize_t __wrap_copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __wrap_fchmod(int fd, mode_t mode);

static int open_recorded(int dir, const char *path, int flags, mode_t mode)
{
	const char *name;
	struct stat st;
	int fd, parent = -1;
	bool unnamed = (flags & O_TMPFILE) == O_TMPFILE, is_new;

	pthread_mutex_lock(&rec.lock);
	is_new = unnamed || ((flags & O_CREAT) && node_at(dir, path) < 0);
	if (rec.on && is_new)
		parent = unnamed ? node_at(dir, path) : parent_of(dir, path, &name);
	fd = __real_openat64(dir, path, flags, mode);
	if (fd >= 0 && parent >= 0 && fstat(fd, &st) == 0) {
		int node = node_new(&st);

		if (!unnamed)
			add_name(parent, name, node);
	}
	pthread_mutex_unlock(&rec.lock);
	return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_recorded(AT_FDCWD, path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_recorded(dir, path, flags, mode);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	const char *name;
	struct stat st;
	int r, parent;

	pthread_mutex_lock(&rec.lock);
	parent = parent_of(dir, path, &name);
	r = __real_mkdirat(dir, path, mode);
	if (r == 0 && parent >= 0 && fstatat(dir, path, &st, 0) == 0)
		add_name(parent, name, node_new(&st));
	pthread_mutex_unlock(&rec.lock);
	return r;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return __wrap_mkdirat(AT_FDCWD, path, mode);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	ssize_t n;
	int node;

	pthread_mutex_lock(&rec.lock);
	node = node_of_fd(fd);
	n = __real_write(fd, bytes, len);
	if (node >= 0 && n > 0)
		add_bytes(node, (uint64_t)(lseek(fd, 0, SEEK_CUR) - n), bytes, (size_t)n);
	pthread_mutex_unlock(&rec.lock);
	return n;
}

ssize_t __wrap_copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags)
{
	ssize_t n;
	int node;

	pthread_mutex_lock(&rec.lock);
	node = node_of_fd(to);
	n = __real_copy_file_range(from, from_at, to, to_at, len, flags);
	if (node >= 0 && n > 0) {
		off_t end = lseek(to, 0, SEEK_CUR);
		char *bytes = malloc((size_t)n);

		if (!bytes || to_at || pread(to, bytes, (size_t)n, end - n) != n)
			abort();
		add_bytes(node, (uint64_t)(end - n), bytes, (size_t)n);
		free(bytes);
	}
	pthread_mutex_unlock(&rec.lock);
	return n;
}

int __wrap_linkat(int dir, const char *path, int to_dir, const char *to, int flags)
{
	const char *name;
	struct stat st;
	int r, parent;

	pthread_mutex_lock(&rec.lock);
	parent = parent_of(to_dir, to, &name);
	r = __real_linkat(dir, path, to_dir, to, flags);
	if (r == 0 && parent >= 0 && fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		add_name(parent, name, node_of(&st));
	pthread_mutex_unlock(&rec.lock);
	return r;
}

int __wrap_renameat2(int dir, const char *path, int to_dir, const char *to, unsigned flags)
{
	const char *name, *to_name;
	int r, node, from, parent;

	pthread_mutex_lock(&rec.lock);
	node = node_at(dir, path);
	from = parent_of(dir, path, &name);
	parent = parent_of(to_dir, to, &to_name);
	r = __real_renameat2(dir, path, to_dir, to, flags);
	if (r == 0 && node >= 0) {
		struct step *s = step_new(ACT_RENAME, node);

		s->dir = from;
		s->name = strdup(name);
		s->to_dir = parent;
		s->to_name = strdup(to_name);
	}
	pthread_mutex_unlock(&rec.lock);
	return r;
}

int __wrap_renameat(int dir, const char *path, int to_dir, const char *to)
{
	return __wrap_renameat2(dir, path, to_dir, to, 0);
}

int __wrap_rename(const char *path, const char *to)
{
	return __wrap_renameat2(AT_FDCWD, path, AT_FDCWD, to, 0);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	const char *name;
	int r, parent;

	pthread_mutex_lock(&rec.lock);
	parent = parent_of(dir, path, &name);
	r = __real_unlinkat(dir, path, flags);
	if (r == 0 && parent >= 0) {
		struct step *s = step_new(ACT_UNNAME, -1);

		s->dir = parent;
		s->name = strdup(name);
	}
	pthread_mutex_unlock(&rec.lock);
	return r;
}

int __wrap_unlink(const char *path)
{
	return __wrap_unlinkat(AT_FDCWD, path, 0);
}

int __wrap_ftruncate64(int fd, off_t size)
{
	int r, node;

	pthread_mutex_lock(&rec.lock);
	node = node_of_fd(fd);
	r = __real_ftruncate64(fd, size);
	if (r == 0 && node >= 0)
		step_new(ACT_SIZE, node)->size = (uint64_t)size;
	pthread_mutex_unlock(&rec.lock);
	return r;
}

static bool sync_recorded(int fd)
{
	int node;

	pthread_mutex_lock(&rec.lock);
	node = node_of_fd(fd);
	if (node >= 0)
		step_new(ACT_SYNC, node);
	pthread_mutex_unlock(&rec.lock);
	return node >= 0;
}

int __wrap_fsync(int fd)
{
	return sync_recorded(fd) ? 0 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	return sync_recorded(fd) ? 0 : __real_fdatasync(fd);
}

int __wrap_syncfs(int fd)
{
	pthread_mutex_lock(&rec.lock);
	for (int i = 0; rec.on && i < rec.node_count; i++)
		step_new(ACT_SYNC, i);
	pthread_mutex_unlock(&rec.lock);
	return rec.on ? 0 : __real_syncfs(fd);
}

/* The time of a file is that of the last step that is there, which is near enough. */
int __wrap_futimens(int fd, const struct timespec times[2])
{
	return __real_futimens(fd, times);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	int r, node;

	pthread_mutex_lock(&rec.lock);
	node = node_of_fd(fd);
	r = __real_fchmod(fd, mode);
	if (r == 0 && node >= 0)
		step_new(ACT_MODE, node)->size = mode & 0777;
	pthread_mutex_unlock(&rec.lock);
	return r;
}

/* --- states --- */

static const char *const kind_names[CUT_KINDS] = {"none", "all",   "first", "but",   "only",
						  "torn", "zeros", "hole",  "random"};

const char *cut_kind_name(enum cut_kind kind)
{
	return kind_names[kind];
}

/* True when step i was synced before the cut. */
static bool is_synced(size_t i, size_t after)
{
	return rec.steps[i].synced_at < after;
}

static bool is_change(const struct step *s)
{
	return s->act != ACT_SYNC && s->act != ACT_MARK;
}

size_t cut_open_steps(size_t after)
{
	size_t n = 0;

	for (size_t i = 0; i < after; i++)
		n += is_change(&rec.steps[i]) && !is_synced(i, after);
	return n;
}

unsigned cut_mark(size_t after)
{
	unsigned mark = 0;

	for (size_t i = 0; i < after; i++)
		if (rec.steps[i].act == ACT_MARK)
			mark = (unsigned)rec.steps[i].offset;
	return mark;
}

static uint64_t dice(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* Of a step that is not synced; `i` counts them from the first, `n` is their number. */
static void decide(struct step *s, const struct cut *cut, uint64_t i, uint64_t n, uint64_t *state)
{
	bool is_which = n - 1 - i == cut->which;
	uint64_t roll;

	s->kept = true;
	switch (cut->kind) {
	case CUT_NONE:
		s->kept = false;
		break;
	case CUT_FIRST:
		s->kept = i < cut->which;
		break;
	case CUT_BUT:
		s->kept = !is_which;
		break;
	case CUT_ONLY:
		s->kept = is_which;
		break;
	case CUT_TORN:
		s->torn = is_which;
		break;
	case CUT_ZEROS:
		s->zeros = is_which;
		break;
	case CUT_HOLE:
		s->hole = is_which;
		break;
	case CUT_RANDOM:
		roll = dice(state) % 8;
		s->kept = roll < 5;
		s->torn = roll == 2;
		s->zeros = roll == 3;
		s->hole = roll == 4;
		break;
	default:
		break;
	}
}

static void decide_all(const struct cut *cut)
{
	uint64_t i = 0, n = cut_open_steps(cut->after), state = cut->which;

	for (size_t k = 0; k < cut->after; k++) {
		struct step *s = &rec.steps[k];

		s->kept = true;
		s->torn = s->zeros = s->hole = false;
		if (is_change(s) && !is_synced(k, cut->after))
			decide(s, cut, i++, n, &state);
	}
}

struct file {
	char *bytes;
	size_t size, cap;
	mode_t mode;
	struct timespec time;
	char *placed; /* where it was made first */
};

struct name {
	int dir, node;
	const char *name;
};

struct state {
	struct file *files;
	struct name *names;
	size_t name_count;
};

static void file_resize(struct file *f, size_t size)
{
	if (size > f->cap) {
		f->cap = 2 * size;
		f->bytes = realloc(f->bytes, f->cap);
		if (!f->bytes)
			abort();
	}
	if (size > f->size)
		memset(f->bytes + f->size, 0, size - f->size);
	f->size = size;
}

static void put_bytes(struct file *f, const struct step *s)
{
	size_t len = s->torn ? (size_t)s->size / 2 : (size_t)s->size, half = len / 2;

	if (f->size < s->offset + len)
		file_resize(f, (size_t)s->offset + len);
	if (s->zeros)
		memset(f->bytes + s->offset, 0, len);
	else if (s->hole)
		memcpy(f->bytes + s->offset + half, s->bytes + half, len - half);
	else
		memcpy(f->bytes + s->offset, s->bytes, len);
}

static void set_name(struct state *st, int dir, const char *name, int node)
{
	size_t i = 0;

	while (i < st->name_count && (st->names[i].dir != dir || strcmp(st->names[i].name, name) != 0))
		i++;
	if (i == st->name_count) {
		st->names = grow(st->names, st->name_count, sizeof(*st->names));
		st->name_count++;
	}
	st->names[i] = (struct name){dir, node, name};
}

static void drop_name(struct state *st, int dir, const char *name, int node)
{
	for (size_t i = 0; i < st->name_count; i++)
		if (st->names[i].dir == dir && strcmp(st->names[i].name, name) == 0 &&
		    (node < 0 || st->names[i].node == node))
			st->names[i].node = -1;
}

static void take_step(struct state *st, const struct step *s)
{
	if (s->node >= 0)
		st->files[s->node].time = s->time;
	switch (s->act) {
	case ACT_NAME:
		set_name(st, s->dir, s->name, s->node);
		break;
	case ACT_UNNAME:
		drop_name(st, s->dir, s->name, -1);
		break;
	case ACT_RENAME:
		drop_name(st, s->dir, s->name, s->node);
		set_name(st, s->to_dir, s->to_name, s->node);
		break;
	case ACT_BYTES:
		put_bytes(&st->files[s->node], s);
		break;
	case ACT_SIZE:
		file_resize(&st->files[s->node], (size_t)s->size);
		break;
	case ACT_MODE:
		st->files[s->node].mode = (mode_t)s->size;
		break;
	default:
		break;
	}
}

static void replace_all(struct file *f, const char *from, const char *to)
{
	size_t len = from ? strlen(from) : 0;

	for (size_t i = 0; len && i + len <= f->size; i++)
		if (memcmp(f->bytes + i, from, len) == 0)
			memcpy(f->bytes + i, to, len);
}

static void make_file(struct file *f, const char *path)
{
	const struct timespec times[2] = {f->time, f->time};
	int fd;

	if (f->placed) {
		if (link(f->placed, path) != 0)
			abort();
		return;
	}
	fd = __real_openat64(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, f->mode);
	if (fd < 0 || (f->size && __real_write(fd, f->bytes, f->size) != (ssize_t)f->size) ||
	    __real_futimens(fd, times) != 0) {
		perror(path);
		abort();
	}
	close(fd);
	f->placed = strdup(path);
}

/* What has no way from the root is gone. Returns a hash of what there is; `path` NULL: nothing is made. */
static uint64_t make_tree(struct state *st, int dir, const char *path)
{
	uint64_t sum = 0;

	if (path && __real_mkdirat(AT_FDCWD, path, 0755) != 0)
		return 0;
	for (size_t i = 0; i < st->name_count; i++) {
		const struct name *n = &st->names[i];
		char *below = NULL;
		uint64_t one;

		if (n->dir != dir || n->node < 0)
			continue;
		if (path && asprintf(&below, "%s/%s", path, n->name) < 0)
			abort();
		if (rec.nodes[n->node].is_dir) {
			one = make_tree(st, n->node, below) + 1;
		} else {
			struct file *f = &st->files[n->node];

			one = hash_u64(str_n(f->bytes, f->size), 7);
			if (path)
				make_file(f, below);
		}
		sum += hash_u64(str_of(n->name), one);
		free(below);
	}
	return sum;
}

uint64_t cut_make(const struct cut *cut, const char *dir, const char *from, const char *to)
{
	struct state st = {.files = calloc((size_t)rec.node_count, sizeof(*st.files))};
	uint64_t sum;

	for (int i = 0; i < rec.node_count; i++)
		st.files[i] = (struct file){.mode = rec.nodes[i].mode, .bytes = calloc(1, 1), .cap = 1};
	decide_all(cut);
	for (size_t i = 0; i < cut->after; i++)
		if (rec.steps[i].kept)
			take_step(&st, &rec.steps[i]);
	for (int i = 0; i < rec.node_count; i++)
		replace_all(&st.files[i], from, to);
	sum = make_tree(&st, 0, dir);
	for (int i = 0; i < rec.node_count; i++) {
		free(st.files[i].bytes);
		free(st.files[i].placed);
	}
	free(st.files);
	free(st.names);
	return sum;
}

void cut_print(const struct cut *cut)
{
	static const char *const acts[] = {"name", "unname", "rename", "bytes", "size", "mode", "sync", "mark"};

	decide_all(cut);
	for (size_t k = 0; k < cut->after; k++) {
		const struct step *s = &rec.steps[k];

		if (s->act == ACT_MARK || (is_change(s) && !is_synced(k, cut->after)))
			printf("# %c%zu %s node %d dir %d %s %s at %llu, %llu bytes%s%s%s\n", s->kept ? '+' : '-', k,
			       acts[s->act], s->node, s->dir, s->name ? s->name : "", s->to_name ? s->to_name : "",
			       (unsigned long long)s->offset, (unsigned long long)s->size, s->torn ? " torn" : "",
			       s->zeros ? " zeros" : "", s->hole ? " hole" : "");
	}
}
