/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of a directory that a command must not see: what the guard hides, and what cannot be a path of a store. Each is
 * marked as deleted in a layer between the directory and the command.
 *
 * An overlay knows no patterns, so the names have to be looked through. That must not cost what the workspace is large:
 * what was found in a directory is kept together with the directory's inode and time of change, which every new name
 * changes. The next command looks at one time for each directory, and reads only directories that are not as they were.
 * The time of a directory that was changed just before it was read says nothing, because clocks of file systems have
 * steps; such a directory is read again. A program that comes back for a third command watches the directories instead
 * (inotify): then nothing is looked at as long as nothing changes.
 *
 * What is kept belongs to one guard (`hidden_key`), because rules are not to be compared; it is a cache and may be
 * lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "sandbox/sandbox_internal.h"

#define HIDDEN_MAX 10000
#define ROOTS_MAX  4
#define NODES_MAX  100000
#define WATCHED    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define STEP_NS    (50 * NS_PER_MS) /* no clock of a file system is coarser */

/* A directory as it was read. Names are on the heap. */
struct node {
	char *name;
	uint64_t inode;
	int64_t changed_ns;
	bool is_settled, is_read;
	int watch; /* 0: it is not watched */
	char **hidden;
	size_t hidden_count, hidden_cap;
	struct node *children; /* by name */
	size_t count, cap;
};

struct root {
	uint64_t key;
	dev_t dev;
	uint64_t inode;
	uint64_t used, looks;
	int notify;             /* 0: nothing is watched */
	unsigned char *changed; /* by the number of a watch */
	size_t changed_cap;
	struct node top;
};

struct look {
	struct ctx *ctx;
	const struct sandbox_files *files;
	struct root *root; /* NULL: nothing is kept */
	int top;           /* the directory itself */
	const char **hidden;
	size_t count, cap, nodes;
	char path[PATH_LEN_MAX + NAME_MAX + 2];
};

static char *copy_name(const char *name)
{
	size_t size = strlen(name) + 1;

	return memcpy(xcalloc(1, size), name, size);
}

static void forget_contents(struct node *n)
{
	for (size_t i = 0; i < n->hidden_count; i++)
		free(n->hidden[i]);
	for (size_t i = 0; i < n->count; i++) {
		forget_contents(&n->children[i]);
		free(n->children[i].name);
	}
	free(n->hidden);
	free(n->children);
	n->hidden = NULL;
	n->children = NULL;
	n->hidden_count = n->hidden_cap = n->count = n->cap = 0;
}

static int add_hidden(struct look *l, struct err *err)
{
	if (l->count == HIDDEN_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "more than %d paths of the workspace are hidden, which is too many to run a command",
			       HIDDEN_MAX);
	ARENA_ROOM(l->ctx->arena, l->hidden, l->count, l->cap);
	l->hidden[l->count++] = arena_cstr(l->ctx->arena, str_of(l->path));
	return 0;
}

/* Puts a name after the directory in l->path; false: it does not fit. */
static bool extend(struct look *l, size_t at, const char *name)
{
	size_t len = strlen(name), from = at ? at + 1 : 0;

	if (from + len >= sizeof l->path)
		return false;
	if (at)
		l->path[at] = '/';
	memcpy(l->path + from, name, len + 1);
	return true;
}

static unsigned char type_of(int fd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	return fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (unsigned char)IFTODT(st.st_mode) : DT_UNKNOWN;
}

/* A name that cannot be a path of a store is hidden from the store's users, so it is from the command. */
static bool must_hide(const struct look *l, unsigned char type)
{
	struct wpath parsed;
	struct err ignored;

	return (type != DT_REG && type != DT_DIR) || wpath_parse(str_of(l->path), &parsed, &ignored) != 0 ||
	       (l->files->is_hidden && l->files->is_hidden(l->files->hidden_arg, parsed));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->name, ((const struct node *)b)->name);
}

/* What was known of a directory of the same name. */
static void take_old(struct node *to, struct node *from)
{
	struct node key = {.name = to->name};
	struct node *old =
		from->count ? bsearch(&key, from->children, from->count, sizeof *from->children, by_name) : NULL;

	if (!old)
		return;
	key = *to;
	*to = *old;
	to->name = key.name;
	to->is_read = false; /* it may be another directory now */
	*old = (struct node){.name = old->name};
}

static void read_entry(struct look *l, struct node *n, struct node *old, int fd, const struct dirent *e, size_t at)
{
	unsigned char type = type_of(fd, e);

	if (type == DT_LNK || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return; /* a link leads to what the command sees */
	if (!extend(l, at, e->d_name) || must_hide(l, type)) {
		HEAP_ROOM(n->hidden, n->hidden_count, n->hidden_cap);
		n->hidden[n->hidden_count++] = copy_name(e->d_name);
	} else if (type == DT_DIR) {
		HEAP_ROOM(n->children, n->count, n->cap);
		n->children[n->count] = (struct node){.name = copy_name(e->d_name)};
		take_old(&n->children[n->count++], old);
	}
}

/* Reads the directory again; what is known of those below it is kept. */
static int read_node(struct look *l, struct node *n, size_t at, struct err *err)
{
	int fd = openat(l->top, at ? l->path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct node old = *n;
	struct dirent *e;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		if (!at)
			return err_sys(err, errno, "cannot read the directory of the workspace");
		forget_contents(n); /* the command cannot open it either, or it is gone */
		n->is_settled = n->is_read = false;
		return 0;
	}
	n->is_read = true;
	n->hidden = NULL;
	n->children = NULL;
	n->hidden_count = n->hidden_cap = n->count = n->cap = 0;
	n->is_settled = fstat(fd, &st) == 0;
	n->inode = st.st_ino;
	n->changed_ns = clock_of_timespec(st.st_ctim);
	if (clock_real_ns() - n->changed_ns < STEP_NS)
		n->is_settled = false;
	while ((e = readdir(dir)))
		read_entry(l, n, &old, fd, e, at);
	closedir(dir);
	l->path[at] = 0;
	if (n->count)
		qsort(n->children, n->count, sizeof *n->children, by_name);
	forget_contents(&old);
	return 0;
}

/* --- watching --- */

static void note_change(struct root *root, int watch)
{
	if (watch > 0 && (size_t)watch < root->changed_cap)
		root->changed[watch] = 1;
	else if (watch < 0) /* more happened than the kernel could tell */
		memset(root->changed, 1, root->changed_cap);
}

static void hear_changes(struct root *root)
{
	_Alignas(struct inotify_event) char bytes[16 * 1024];
	ssize_t n;

	while (root->notify > 0 && (n = read(root->notify, bytes, sizeof bytes)) > 0)
		for (ssize_t i = 0; i < n;) {
			struct inotify_event e;

			memcpy(&e, bytes + i, sizeof e);
			note_change(root, e.wd);
			i += (ssize_t)(sizeof e + e.len);
		}
}

static void begin_watching(struct root *root)
{
	if (root->looks++ != 1)
		return;
	root->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (root->notify < 0)
		root->notify = 0;
}

static void end_watching(struct root *root)
{
	if (root->notify > 0)
		close(root->notify);
	free(root->changed);
}

/* Before the directory is read, so that nothing is missed. */
static void watch(const struct look *l, struct node *n, size_t at)
{
	struct root *root = l->root;
	char path[64];
	FD_SCOPE int fd = -1;
	size_t cap;

	n->watch = 0;
	if (!root || root->notify <= 0)
		return;
	fd = openat(l->top, at ? l->path : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n->watch = fd < 0 ? 0 : inotify_add_watch(root->notify, path, WATCHED);
	if (n->watch < 0)
		n->watch = 0; /* too many: its time of change is looked at */
	if ((size_t)n->watch >= root->changed_cap) {
		cap = 2 * (size_t)n->watch + 64;
		root->changed = xrealloc(root->changed, cap);
		memset(root->changed + root->changed_cap, 0, cap - root->changed_cap);
		root->changed_cap = cap;
	}
	root->changed[n->watch] = 0;
}

static bool is_as_it_was(const struct look *l, struct node *n, size_t at)
{
	struct stat st;

	if (n->watch > 0 && n->is_read && !l->root->changed[n->watch])
		return true;
	watch(l, n, at);
	n->is_read = n->is_settled && fstatat(l->top, at ? l->path : ".", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     st.st_ino == n->inode && clock_of_timespec(st.st_ctim) == n->changed_ns;
	return n->is_read;
}

static int look_into(struct look *l, struct node *n, size_t at, struct err *err)
{
	int r = ++l->nodes % 64 == 0 ? ctx_check(l->ctx, err) : 0;

	if (r == 0 && !is_as_it_was(l, n, at))
		r = read_node(l, n, at, err);
	for (size_t i = 0; r == 0 && i < n->hidden_count; i++)
		if (extend(l, at, n->hidden[i]))
			r = add_hidden(l, err);
	for (size_t i = 0; r == 0 && i < n->count; i++)
		if (extend(l, at, n->children[i].name))
			r = look_into(l, &n->children[i], strlen(l->path), err);
	return r;
}

/* The place in the cache, or another one that has to make way. */
static struct root *root_of(struct root *roots, uint64_t key, const struct stat *st)
{
	static uint64_t uses;
	struct root *oldest = roots;

	for (size_t i = 0; i < ROOTS_MAX; i++) {
		if (roots[i].key == key && roots[i].dev == st->st_dev && roots[i].inode == st->st_ino) {
			roots[i].used = ++uses;
			return &roots[i];
		}
		if (roots[i].used < oldest->used)
			oldest = &roots[i];
	}
	forget_contents(&oldest->top);
	end_watching(oldest);
	*oldest = (struct root){.key = key, .dev = st->st_dev, .inode = st->st_ino, .used = ++uses};
	return oldest;
}

int lower_hidden(struct ctx *ctx, const struct sandbox_files *files, const char *const **ret, size_t *ret_count,
		 struct err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct root roots[ROOTS_MAX];
	FD_SCOPE int top = open(files->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct look l = {.ctx = ctx, .files = files, .top = top};
	struct node alone = {0}, *node = &alone;
	struct stat st;
	bool keeps;
	int r;

	if (top < 0 || fstat(top, &st) != 0)
		return err_sys(err, errno, "cannot open the directory of the workspace");
	keeps = files->hidden_key && pthread_mutex_trylock(&lock) == 0;
	if (keeps) {
		l.root = root_of(roots, files->hidden_key, &st);
		begin_watching(l.root);
		hear_changes(l.root);
		node = &l.root->top;
	}
	r = look_into(&l, node, 0, err);
	if (node == &alone || l.nodes > NODES_MAX)
		forget_contents(node);
	if (keeps)
		pthread_mutex_unlock(&lock);
	*ret = l.hidden;
	*ret_count = l.count;
	return r;
}
