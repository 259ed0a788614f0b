/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify over the directories of the file area. An event names a path; when it has been quiet for a moment, each path
 * is looked at once: a path that the log knows is settled (nothing happens when the change was our own), a file that it
 * does not know is recorded as it is. Nothing is decided by the event itself: it only says where to look, so a lost or
 * doubled one does no harm. fanotify was rejected, since it needs privileges to watch a whole file system.
 *
 * The log is opened by the first event.
 *
 * Who asks about the past asks this thread to catch up first: what another program did before is then in the log, at
 * the cost of what it did. Only the first such question looks at every known file, because nobody watched before the
 * start. So does the thread itself when more happened than it can list, but then it waits for ten times as long as that
 * took before it does it again.
 */
#include "home/timeline/outside.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "base/watch.h"
#include "revisions/revisions.h"
#include "store/list_stream.h"

#define ANSWER_MS   50 /* how often a waiting call looks whether it was cancelled */
#define FULL_PAUSE  10
#define QUIET_MS    15
#define PATIENCE_MS 50 /* until it looks although it is not quiet */
#define MISSING_MS  50 /* until a file area that cannot be waited for is looked for again */
#define STACK_SIZE  (256 * KIB)

struct outside {
	struct workspace *ws;
	struct watch watch; /* of the file area */
	int start_ms;
	int wake; /* readable: `ending` is set, or somebody asks */
	atomic_bool ending;
	pthread_t thread;
	bool was_missing;       /* there was no file area to watch */
	bool is_awaited;        /* the directory in which it will be made is watched */
	bool has_looked;        /* at every known file, since it watches */
	atomic_bool is_partial; /* not every directory is watched */
	atomic_bool is_blind;   /* when it last answered, nothing was watched */
	int64_t not_before_ns;  /* monotonic: when every known file may be looked at again */
	int64_t first_ns;       /* monotonic: when the first of the paths below came, if there is one */
	pthread_mutex_t lock;   /* of the fields below */
	pthread_cond_t is_done; /* `answered` has grown */
	uint64_t asked, answered;
	/* Paths to look at when it is quiet. */
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

/* As much as there is room for. */
static void watch_tree(struct outside *o, const char *below, unsigned depth)
{
	static const struct watch_tree how = {
		.events = IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE,
		.dirs_max = OUTSIDE_DIRS_MAX,
		.skips = is_skipped,
	};

	int r = watch_add_tree(&o->watch, below, &how, depth);

	if (r && !(r == ENOENT && !*below)) /* a file area that does not exist has nothing to watch */
		o->is_partial = true;
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
	if (!o->count)
		o->first_ns = clock_monotonic_ns();
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

static void take_event(void *arg, const struct inotify_event *e, const char *path)
{
	struct outside *o = arg;
	bool came = e->mask & (IN_CREATE | IN_MOVED_TO);

	o->lost = o->lost || (e->mask & IN_Q_OVERFLOW);
	if (!path || is_skipped(e->name))
		return;
	if ((e->mask & IN_ISDIR) && came)
		watch_tree(o, path, OUTSIDE_DEPTH_MAX - 1);
	add_dirty(o, str_of(path), came);
}

/* --- looking --- */

static bool has_skipped_name(struct str path)
{
	struct str name;
	char copy[PATH_NAME_MAX + 1];

	while (str_cut(&path, '/', &name)) {
		snprintf(copy, sizeof(copy), "%.*s", STR_ARG(name));
		if (is_skipped(copy))
			return true;
	}
	return false;
}

/* Records files below a directory that the log does not know: one that came as a whole, or was filled before it was
   watched. */
static void adopt_below(struct outside *o, struct ctx *ctx, struct wpath dir)
{
	struct store *rev = workspace_revisions(o->ws);
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = rev, .dir = dir, .req = {.recursive = true, .limit = 1000}, .is_layer = true, .ctx = *ctx};
	size_t count = 0;
	struct err ignored;

	while (count < OUTSIDE_PATHS_MAX && list_pages_next(&pages, &ignored) > 0)
		for (size_t i = 0; i < pages.page.count && count < OUTSIDE_PATHS_MAX; i++) {
			const struct store_entry *e = &pages.page.entries[i];

			if (e->stat.size > OUTSIDE_FILE_MAX || revisions_knows(rev, e->path) ||
			    has_skipped_name(wpath_relative(e->path, dir).s))
				continue;
			revisions_adopt(rev, &pages.ctx, e->path, false, STR_NONE, &ignored);
			count++;
		}
}

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
	if (r == 0 && stat.kind == STORE_DIR && made)
		adopt_below(o, ctx, path);
}

/* Every known file. */
static void look_at_known(struct outside *o, struct ctx *ctx)
{
	int64_t start = clock_monotonic_ns(), end;
	struct err ignored;
	uint64_t count;

	revisions_notice(workspace_revisions(o->ws), ctx, workspace_root(o->ws), &count, &ignored);
	end = clock_monotonic_ns();
	o->not_before_ns = end + FULL_PAUSE * (end - start);
}

static void look_at_all(struct outside *o)
{
	struct store *rev = workspace_revisions(o->ws);
	struct ctx ctx = {.arena = arena_new()};
	uint64_t number;
	struct err ignored;

	if (revisions_head(rev, &ctx, &number, &ignored) == 0) {
		if (o->lost)
			look_at_known(o, &ctx);
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

/* The file area has come: nobody has watched what was put into it until now. */
static void take_area(struct outside *o)
{
	struct ctx ctx = {.arena = arena_new()};
	struct err ignored;
	uint64_t number;

	if (revisions_head(workspace_revisions(o->ws), &ctx, &number, &ignored) == 0) {
		adopt_below(o, &ctx, workspace_root(o->ws));
		revisions_flush(workspace_revisions(o->ws), &ctx, &ignored);
	}
	arena_destroy(ctx.arena);
}

/* Watches the file area. An empty workspace and a new fork have none: then what it will be made in is watched, so that
   nothing has to be done until then. */
static void look_for_area(struct outside *o)
{
	o->is_awaited = false;
	watch_tree(o, "", OUTSIDE_DEPTH_MAX);
	if (!o->watch.count) {
		o->was_missing = true;
		o->is_awaited = watch_add_above(&o->watch, IN_CREATE | IN_MOVED_TO);
		watch_tree(o, "", OUTSIDE_DEPTH_MAX); /* it may have been made just before */
	}
	if (o->watch.count && o->was_missing)
		take_area(o);
	o->was_missing = !o->watch.count;
}

static bool must_wait(const struct outside *o)
{
	return o->lost && clock_monotonic_ns() < o->not_before_ns;
}

/* Looks at what happened until now, for those who asked. */
static void answer(struct outside *o)
{
	uint64_t asked;

	pthread_mutex_lock(&o->lock);
	asked = o->asked;
	pthread_mutex_unlock(&o->lock);
	if (asked == o->answered)
		return;
	if (o->watch.count == 0)
		look_for_area(o);
	atomic_store(&o->is_blind, !o->watch.count && !o->is_awaited);
	watch_read(&o->watch, take_event, o);
	o->lost = o->lost || !o->has_looked;
	if (!must_wait(o)) {
		o->has_looked = true;
		look_at_all(o);
	}
	pthread_mutex_lock(&o->lock);
	o->answered = asked;
	pthread_cond_broadcast(&o->is_done);
	pthread_mutex_unlock(&o->lock);
}

/* It is never quiet where a program writes all the time. */
static bool has_waited(const struct outside *o)
{
	return o->count && clock_monotonic_ns() - o->first_ns >= PATIENCE_MS * NS_PER_MS;
}

static int pause_ms(const struct outside *o)
{
	if (must_wait(o))
		return (int)((o->not_before_ns - clock_monotonic_ns()) / NS_PER_MS) + 1;
	if (o->count || o->lost)
		return QUIET_MS;
	return o->watch.count || o->is_awaited ? -1 : MISSING_MS;
}

static void *run(void *arg)
{
	struct outside *o = arg;
	struct pollfd fds[2] = {{.fd = o->wake, .events = POLLIN}, {.fd = o->watch.fd, .events = POLLIN}};
	int timeout = o->start_ms;

	for (;;) {
		int n = poll(fds, 2, timeout);
		uint64_t ignored;

		if (atomic_load(&o->ending) || (n < 0 && errno != EINTR))
			return NULL;
		if (n > 0 && fds[0].revents) {
			if (read(o->wake, &ignored, sizeof(ignored)) > 0)
				answer(o);
		} else if (n > 0) {
			watch_read(&o->watch, take_event, o);
			if (o->watch.count == 0)
				look_for_area(o);
			if (has_waited(o) && !must_wait(o))
				look_at_all(o);
		} else if (n == 0 && (o->count || o->lost)) {
			if (!must_wait(o))
				look_at_all(o);
		} else if (n == 0 && o->watch.count == 0) {
			look_for_area(o);
		}
		timeout = pause_ms(o);
	}
}

static void wake(struct outside *o)
{
	uint64_t one = 1;

	while (write(o->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void outside_free(struct outside *o)
{
	watch_close(&o->watch);
	free(o->paths);
	free(o->was_made);
	arena_destroy(o->memory);
	if (o->wake >= 0)
		close(o->wake);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->is_done);
	free(o);
}

/* --- the watcher of a workspace --- */

/* In a slot of the handle. The lock is held while somebody waits for an answer. */
struct watcher {
	pthread_mutex_t lock;
	struct outside *outside; /* NULL: none */
};

static void *watcher_open(struct workspace *ws)
{
	struct watcher *w = xcalloc(1, sizeof(*w));

	(void)ws;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

static void watcher_close(void *state)
{
	pthread_mutex_destroy(&((struct watcher *)state)->lock);
	free(state);
}

static struct watcher *watcher_of(struct workspace *ws)
{
	static const char key;

	return workspace_slot(ws, &key, watcher_open, watcher_close);
}

static void set_watcher(struct workspace *ws, struct outside *o)
{
	struct watcher *w = watcher_of(ws);

	pthread_mutex_lock(&w->lock);
	w->outside = o;
	pthread_mutex_unlock(&w->lock);
}

static bool ask(struct outside *o, const struct ctx *ctx)
{
	uint64_t mine;
	struct err ignored;
	bool is_watched;

	pthread_mutex_lock(&o->lock);
	mine = ++o->asked;
	wake(o);
	while (o->answered < mine && ctx_check(ctx, &ignored) == 0) {
		struct timespec until = clock_timespec(clock_monotonic_ns() + ANSWER_MS * NS_PER_MS);

		pthread_cond_timedwait(&o->is_done, &o->lock, &until);
	}
	is_watched = o->answered >= mine && !o->is_partial && !o->is_blind;
	pthread_mutex_unlock(&o->lock);
	return is_watched;
}

bool outside_catch_up(struct workspace *ws, const struct ctx *ctx)
{
	struct watcher *w = watcher_of(ws);
	bool is_watched;

	pthread_mutex_lock(&w->lock);
	is_watched = w->outside && ask(w->outside, ctx);
	pthread_mutex_unlock(&w->lock);
	return is_watched;
}

struct outside *outside_start(struct workspace *ws, int start_ms)
{
	struct outside *o;
	struct str place = workspace_files_place(ws);
	pthread_condattr_t monotonic;
	pthread_attr_t attr;
	int r;

	if (str_starts(place, STR("memory:")))
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->ws = ws;
	o->start_ms = start_ms;
	o->memory = arena_new();
	o->dirty = strmap_new(o->memory);
	o->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&o->is_done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = !watch_open(&o->watch, arena_cstr(o->memory, place)) || o->wake < 0 ||
	    pthread_create(&o->thread, &attr, run, o);
	pthread_attr_destroy(&attr);
	if (r) {
		outside_free(o);
		return NULL;
	}
	set_watcher(ws, o);
	return o;
}

void outside_stop(struct outside *o)
{
	if (!o)
		return;
	set_watcher(o->ws, NULL);
	atomic_store(&o->ending, true);
	wake(o);
	pthread_join(o->thread, NULL);
	outside_free(o);
}
