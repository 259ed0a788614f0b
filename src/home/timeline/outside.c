/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify over the directories of the file area. An event names a path; when it has been quiet for a moment, each path
 * is looked at once: a path that the log knows is settled (nothing happens when the change was our own), a file that it
 * does not know is recorded as it is. Nothing is decided by the event itself: it only says where to look, so a lost or
 * doubled one does no harm. fanotify was rejected, since it needs privileges to watch a whole file system.
 *
 * The first walk waits until the door has answered its first requests, and the log is opened by the first event.
 */
#include "home/timeline/outside.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "revisions/revisions.h"

#define START_MS   300
#define QUIET_MS   100
#define MISSING_MS 2000 /* until a file area that does not exist yet is looked for again */
#define STACK_SIZE (256 * KIB)

#define EVENTS                                                                                                         \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW |          \
	 IN_EXCL_UNLINK)

struct outside {
	struct workspace *ws;
	char *place; /* host path of the file area */
	int notify, stop;
	pthread_t thread;
	char **dirs; /* by watch number: the path below place; NULL: none */
	size_t dir_cap, dir_count;
	/* What is to be looked at when it is quiet. */
	struct arena *memory;
	struct strmap *dirty;
	struct str *paths;
	bool *was_made; /* created, as far as the events tell */
	size_t count, cap;
	bool lost; /* too much happened: look at everything that is known */
};

/* --- directories --- */

/* What is not the person's text, or is huge and made by machines. */
static bool is_skipped(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
	       strcmp(name, "node_modules") == 0 || strncmp(name, ".stead", 6) == 0;
}

static bool watch_dir(struct outside *o, const char *whole, const char *below)
{
	int wd = inotify_add_watch(o->notify, whole, EVENTS);

	if (wd < 0)
		return errno != ENOSPC && errno != ENOMEM;
	while ((size_t)wd >= o->dir_cap) {
		size_t cap = o->dir_cap ? o->dir_cap * 2 : 64;

		o->dirs = xrealloc(o->dirs, cap * sizeof(char *));
		memset(o->dirs + o->dir_cap, 0, (cap - o->dir_cap) * sizeof(char *));
		o->dir_cap = cap;
	}
	o->dir_count += !o->dirs[wd];
	free(o->dirs[wd]);
	o->dirs[wd] = xstrndup(str_of(below));
	return true;
}

/* Watches a directory and those in it; false when there is no more room for watches. */
static bool watch_tree(struct outside *o, const char *below, unsigned depth)
{
	char whole[PATH_LEN_MAX * 4], sub[PATH_LEN_MAX + 1];
	bool room = true;
	DIR *dir;

	if (o->dir_count >= OUTSIDE_DIRS_MAX || depth > OUTSIDE_DEPTH_MAX)
		return o->dir_count < OUTSIDE_DIRS_MAX;
	if (snprintf(whole, sizeof(whole), "%s%s%s", o->place, below[0] ? "/" : "", below) >= (int)sizeof(whole))
		return true;
	if (!watch_dir(o, whole, below))
		return false;
	dir = opendir(whole);
	for (struct dirent *e; dir && room && (e = readdir(dir));) {
		if (e->d_type != DT_DIR || is_skipped(e->d_name))
			continue;
		if (snprintf(sub, sizeof(sub), "%s%s%s", below, below[0] ? "/" : "", e->d_name) < (int)sizeof(sub))
			room = watch_tree(o, sub, depth + 1);
	}
	if (dir)
		closedir(dir);
	return room;
}

/* --- events --- */

static void add_dirty(struct outside *o, struct str path, bool made)
{
	bool added;
	size_t *at;

	if (o->count >= OUTSIDE_PATHS_MAX) {
		o->lost = true;
		return;
	}
	path = arena_str(o->memory, path);
	at = strmap_put(o->dirty, path, &added);
	if (added) {
		if (o->count == o->cap) {
			o->cap = o->cap ? o->cap * 2 : 64;
			o->paths = xrealloc(o->paths, o->cap * sizeof(*o->paths));
			o->was_made = xrealloc(o->was_made, o->cap * sizeof(*o->was_made));
		}
		*at = o->count;
		o->paths[o->count] = path;
		o->was_made[o->count++] = false;
	}
	o->was_made[*at] = o->was_made[*at] || made;
}

static void take_event(struct outside *o, const struct inotify_event *e)
{
	const char *dir = e->wd >= 0 && (size_t)e->wd < o->dir_cap ? o->dirs[e->wd] : NULL;
	char path[PATH_LEN_MAX + 1];

	o->lost = o->lost || (e->mask & IN_Q_OVERFLOW);
	if (!dir)
		return;
	if (e->mask & IN_IGNORED) {
		free(o->dirs[e->wd]);
		o->dirs[e->wd] = NULL;
		o->dir_count--;
		return;
	}
	if (e->len == 0 || is_skipped(e->name) ||
	    snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", e->name) >= (int)sizeof(path))
		return;
	if ((e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO)))
		watch_tree(o, path, 1);
	add_dirty(o, str_of(path), e->mask & (IN_CREATE | IN_MOVED_TO));
}

static void take_events(struct outside *o)
{
	char buf[16 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(o->notify, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			take_event(o, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}

/* --- looking --- */

/* A file, or (it came or went as a whole) everything below a directory. */
static void look_at(struct outside *o, struct ctx *ctx, struct str shown, bool made)
{
	struct store *rev = workspace_revisions(o->ws);
	struct wpath below, path;
	struct store_stat stat;
	uint64_t count;
	struct err ignored;
	int r;

	if (wpath_parse(shown, &below, &ignored) ||
	    wpath_join(ctx->arena, workspace_root(o->ws), below, &path, &ignored))
		return;
	r = store_stat(rev, ctx, path, &stat, &ignored);
	if (r == 0 && stat.kind == STORE_FILE && !revisions_knows(rev, path)) {
		if (stat.size <= OUTSIDE_FILE_MAX)
			revisions_adopt(rev, ctx, path, !made, STR_NONE, &ignored);
		return;
	}
	if (revisions_knows(rev, path))
		revisions_settle(rev, ctx, path, NULL, &ignored);
	if (r || stat.kind == STORE_DIR)
		revisions_notice(rev, ctx, path, &count, &ignored);
}

static void look_at_all(struct outside *o)
{
	struct store *rev = workspace_revisions(o->ws);
	struct ctx ctx = {.arena = arena_new()};
	uint64_t number;
	struct err ignored;

	if (revisions_head(rev, &ctx, &number, &ignored) == 0) {
		if (o->lost)
			revisions_notice(rev, &ctx, workspace_root(o->ws), &number, &ignored);
		for (size_t i = 0; i < o->count && !o->lost; i++)
			look_at(o, &ctx, o->paths[i], o->was_made[i]);
		revisions_flush(rev, &ctx, &ignored);
	}
	arena_destroy(ctx.arena);
	o->lost = false;
	o->count = 0;
	arena_reset(o->memory);
	o->dirty = strmap_new(o->memory);
}

static void *run(void *arg)
{
	struct outside *o = arg;
	struct pollfd fds[2] = {{.fd = o->stop, .events = POLLIN}, {.fd = o->notify, .events = POLLIN}};
	int timeout = START_MS;

	for (;;) {
		int n = poll(fds, 2, timeout);

		if (fds[0].revents || (n < 0 && errno != EINTR))
			return NULL;
		if (n > 0) {
			take_events(o);
		} else if (n == 0 && (o->count || o->lost)) {
			look_at_all(o);
		} else if (n == 0 && o->dir_count == 0) {
			watch_tree(o, "", 0);
		}
		timeout = o->count || o->lost ? QUIET_MS : o->dir_count ? -1 : MISSING_MS;
	}
}

static void outside_free(struct outside *o)
{
	for (size_t i = 0; i < o->dir_cap; i++)
		free(o->dirs[i]);
	free(o->dirs);
	free(o->paths);
	free(o->was_made);
	free(o->place);
	arena_destroy(o->memory);
	if (o->notify >= 0)
		close(o->notify);
	if (o->stop >= 0)
		close(o->stop);
	free(o);
}

struct outside *outside_start(struct workspace *ws)
{
	struct outside *o;
	struct str place = workspace_files_place(ws);
	pthread_attr_t attr;
	int r;

	if (str_starts(place, STR("memory:")))
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->ws = ws;
	o->place = xstrndup(place);
	o->memory = arena_new();
	o->dirty = strmap_new(o->memory);
	o->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	o->stop = eventfd(0, EFD_CLOEXEC);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = o->notify < 0 || o->stop < 0 || pthread_create(&o->thread, &attr, run, o);
	pthread_attr_destroy(&attr);
	if (r) {
		outside_free(o);
		return NULL;
	}
	return o;
}

void outside_stop(struct outside *o)
{
	uint64_t one = 1;

	if (!o)
		return;
	while (write(o->stop, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(o->thread, NULL);
	outside_free(o);
}
