/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving a mount. The store is the one that the file tools have, with its guard, its quota and its revisions; a view
 * of src/sandbox/fuse shows it. One thread follows the log, and tells the view what other processes have changed, so
 * that the kernel may keep what it knows for long.
 */
#include "home/mount/mount.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "home/timeline/outside.h"
#include "revisions/revisions.h"
#include "sandbox/fuse/fuse.h"
#include "store/stores.h"
#include "tool/family.h"
#include "workspace/past.h"
#include "workspace/workspace_parts.h"

#define FEED_POLL_MS   100
#define FEED_WAIT_MS   1000
#define KNOWN_MS       60000 /* the feed tells what changes */
#define KNOWN_ALONE_MS 1000  /* it does not tell everything */

struct served {
	struct workspace *ws;
	const struct mount_opts *opts;
	struct fuse_view *view;
	struct store *files, *task; /* task: its own, or NULL */
	struct past_files *past;
	struct outside *outside;
	struct cancel stop;
	uint64_t since;
	pthread_t follower;
	bool is_following;
};

/* --- rules --- */

static int may_change(void *arg, struct wpath path, struct err *err)
{
	struct served *s = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct wpath full;
	int r = wpath_join(arena, s->opts->path, path, &full, err);

	if (r == 0 && store_guard_says(workspace_files(s->ws), full) != GUARD_FREE)
		r = err_set(err, ERR_DENIED, "\"%.*s\" is protected and cannot be changed", STR_ARG(path.s));
	return r;
}

/* Of a task, where other stores are mounted, some of them read-only. A write whose condition cannot hold changes
   nothing, and what refuses it otherwise says so before the condition is looked at. */
static int may_change_task(void *arg, struct wpath path, struct err *err)
{
	struct served *s = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &s->stop, .deadline_ns = clock_monotonic_ns() + 10 * NS_PER_S};
	struct store_cond never = {.kind = STORE_VERSION, .version = STR("none")};

	return store_write(s->files, &ctx, path, STR(""), never, NULL, err) == -ERR_DENIED ? -ERR_DENIED : 0;
}

static int make_dir(void *arg, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct served *s = arg;
	struct wpath full;
	int r = wpath_join(ctx->arena, s->opts->path, path, &full, err);

	return r ? r : workspace_make_dir(s->ws, ctx, full, err);
}

static void say_lost(void *arg, struct wpath path, const struct err *err)
{
	struct served *s = arg;
	ARENA_SCOPE struct arena *arena = arena_new();

	if (s->opts->says_lost)
		fprintf(stderr, "stead: \"%.*s\" was closed but could not be written: %s\n", STR_ARG(path.s),
			err_text(arena, err).ptr);
}

/* --- the feed --- */

static void pass_on(struct served *s, const struct revision *rev)
{
	struct wpath path;

	if (rev->own && rev->op != REV_OUTSIDE)
		return; /* made through the mount */
	if (past_shown(s->ws, rev->path, &path) && wpath_within(path, s->opts->path))
		fuse_view_changed(s->view, wpath_relative(path, s->opts->path));
}

static void *follow(void *arg)
{
	struct served *s = arg;
	struct store *revisions = workspace_revisions(s->ws);
	struct arena *arena = arena_new();

	while (!atomic_load(&s->stop.requested)) {
		struct ctx ctx = {.arena = arena,
				  .cancel = &s->stop,
				  .deadline_ns = clock_monotonic_ns() + FEED_WAIT_MS * NS_PER_MS};
		struct rev_query query = {.since = s->since};
		struct revision *list;
		size_t count = 0;
		struct err err;
		bool more;

		arena_reset(arena);
		if (revisions_wait(revisions, &ctx, s->since, FEED_POLL_MS, &err) != 0) {
			if (err.kind != ERR_TIMEOUT)
				(void)poll(NULL, 0, FEED_POLL_MS); /* a store that does not answer is asked again */
			continue;
		}
		ctx.deadline_ns = 0;
		if (revisions_query(revisions, &ctx, &query, &list, &count, &more, &err) != 0)
			continue;
		for (size_t i = 0; i < count; i++) {
			pass_on(s, &list[i]);
			s->since = list[i].number;
		}
	}
	arena_destroy(arena);
	return NULL;
}

/* --- the files --- */

/* The files as tools see them; of a task with mounts, those too. */
static int choose_files(struct served *s, struct ctx *ctx, struct err *err)
{
	struct store_stat stat;
	struct store *files = workspace_files(s->ws);
	uint64_t number;
	int r = 0;

	if (s->opts->at.len) {
		r = past_revision(s->ws, ctx, s->opts->at, &number, err);
		if (r == 0)
			s->past = workspace_files_at(s->ws, number, &files);
	} else {
		r = family_files(s->ws, ctx, &s->task, err);
		files = s->task ? s->task : files;
	}
	if (r)
		return r;
	if (wpath_is_root(s->opts->path)) {
		s->files = store_share(files);
		return 0;
	}
	r = store_stat(files, ctx, s->opts->path, &stat, err);
	if (r == 0 && stat.kind != STORE_DIR)
		r = err_set(err, ERR_INVALID, "\"%.*s\" is a file; a directory can be mounted",
			    STR_ARG(s->opts->path.s));
	if (r == 0)
		s->files = store_prefix_new(store_share(files), s->opts->path);
	return r;
}

static bool is_within(struct str path, struct str dir)
{
	return str_starts(path, dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

/* A process that waits for its own answer waits for ever. */
static int check_place(struct served *s, struct ctx *ctx, struct err *err)
{
	struct str places[] = {workspace_dir(s->ws), workspace_own_dir(s->ws)}, dir = str_of(s->opts->dir);

	if (str_is(dir, "/"))
		return err_set(err, ERR_INVALID,
			       "\"/\" is the root of this machine's files; mount on another directory");
	for (size_t i = 0; i < COUNT(places); i++) {
		char *real = places[i].len ? realpath(arena_cstr(ctx->arena, places[i]), NULL) : NULL;
		bool overlaps = real && (is_within(dir, str_of(real)) || is_within(str_of(real), dir));

		free(real);
		if (overlaps)
			return err_set(
				err, ERR_INVALID,
				"\"%s\" contains the workspace's store or is inside it; mount on another directory",
				s->opts->dir);
	}
	return 0;
}

static void start_view(struct served *s, struct ctx *ctx, int dev)
{
	bool live = !s->past;
	struct fuse_opts opts = {.files = s->files,
				 .dev = dev,
				 .read_only = s->opts->read_only || s->past,
				 .is_fixed = s->past != NULL,
				 .uid = geteuid(),
				 .gid = getegid(),
				 .actor = ctx->actor,
				 .syncs = workspace_revisions(s->ws),
				 .may_change = s->task ? may_change_task : may_change,
				 .make_dir = s->task ? NULL : make_dir,
				 .lost = say_lost,
				 .arg = s};

	if (live)
		s->outside = outside_start(s->ws, 0);
	opts.known_ms = !live || s->task || (store_is_local(s->files) && !s->outside) ? KNOWN_ALONE_MS : KNOWN_MS;
	s->view = fuse_view_new(&opts);
	s->is_following = live && pthread_create(&s->follower, NULL, follow, s) == 0;
}

static void release(struct served *s)
{
	atomic_store(&s->stop.requested, true);
	if (s->is_following)
		pthread_join(s->follower, NULL);
	fuse_view_close(s->view);
	outside_stop(s->outside);
	store_destroy(s->files);
	store_destroy(s->task);
	workspace_files_at_close(s->past);
}

int mount_serve(struct workspace *ws, struct ctx *ctx, const struct mount_opts *opts, int stop,
		void (*ready)(void *arg), void *arg, struct err *err)
{
	struct served s = {.ws = ws, .opts = opts};
	struct str source = arena_printf(ctx->arena, "stead:%.*s@%d", STR_ARG(workspace_name(ws)), (int)getpid());
	struct pollfd fds[2];
	struct err ignored;
	int dev, r = check_place(&s, ctx, err);

	if (r == 0)
		r = choose_files(&s, ctx, err);
	if (r == 0)
		r = revisions_head(workspace_revisions(ws), ctx, &s.since, err);
	if (r == 0)
		r = fuse_mount(opts->dir, source.ptr, opts->read_only || s.past, &dev, err);
	if (r == 0) {
		start_view(&s, ctx, dev);
		ready(arg);
		fds[0] = (struct pollfd){.fd = stop, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = fuse_view_over_fd(s.view), .events = POLLIN};
		while (poll(fds, 2, -1) < 0)
			;
		if (!fds[1].revents && fuse_unmount(opts->dir, false, &ignored) != 0)
			(void)fuse_unmount(opts->dir, true, &ignored);
	}
	release(&s);
	return r;
}

const struct family mount_family = {
	.name = "mount",
	.about = "The files as a file system on this machine.",
	.commands = mount_commands,
};
