/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether anything happened in a few directories since the last turn, for the price of one read that finds nothing. The
 * kernel queues an event before the change returns to whoever made it, so what an editor or another process has
 * finished is known. Events only say "look again", so a lost or doubled one does no harm.
 *
 * It is not used on file systems that change without this kernel (network, FUSE), nor when there are no instances or
 * watches left. Then files are looked at one by one at each turn. A file that is changed through another hard link to
 * it, or through mapped memory, is noticed with the next change in its directory.
 */
#include <errno.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/watch.h"
#include "home/prompt/prompt_internal.h"

#define INSTANCES_MAX 32   /* of one process: a person has few, and other programs need them too */
#define DIRS_MAX      8192 /* watches of one workspace: more than its skills can have */

#define COMES_AND_GOES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
#define CHANGES        (COMES_AND_GOES | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

static atomic_int instances;

struct prompt_watch {
	struct watch watch;
	bool full; /* some directories could not be watched */
};

struct prompt_watch *prompt_watch_new(const char *dir)
{
	struct prompt_watch *w;

	if (atomic_load(&instances) >= INSTANCES_MAX || strlen(dir) > PATH_LEN_MAX * 2 || !watch_sees_all(dir))
		return NULL;
	w = xcalloc(1, sizeof *w);
	if (!watch_open(&w->watch, dir)) {
		free(w);
		return NULL;
	}
	atomic_fetch_add(&instances, 1);
	return w;
}

void prompt_watch_destroy(struct prompt_watch *w)
{
	if (!w)
		return;
	atomic_fetch_sub(&instances, 1);
	watch_close(&w->watch);
	free(w);
}

void prompt_watch_begin(struct prompt_watch *w)
{
	w->full = false;
}

static bool is_hidden(const char *name)
{
	return name[0] == '.';
}

void prompt_watch_add(struct prompt_watch *w, struct str path, unsigned depth)
{
	static const struct watch_tree how = {CHANGES | IN_MASK_ADD, DIRS_MAX, is_hidden};
	char below[PATH_LEN_MAX + 1];
	int r = 0;

	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && path.ptr[i] != '/')
			continue;
		snprintf(below, sizeof below, "%.*s", STR_ARG(str_first(path, i)));
		if (i < path.len)
			r = watch_add(&w->watch, below, COMES_AND_GOES | IN_MASK_ADD);
		else
			r = watch_add_tree(&w->watch, below, &how, depth);
		w->full = w->full || (r && r != ENOENT && r != ENOTDIR);
	}
}

/* A file that changed in a directory that is known; anything else that happens is about directories. */
static void take_event(void *arg, const struct inotify_event *e, const char *name)
{
	struct prompt_news *news = arg;
	struct str path = str_of(name);
	bool known = news->count && str_eq(news->paths[news->count - 1], path);

	if (name && (e->name[0] == '.' || ((e->mask & IN_ISDIR) && !(e->mask & COMES_AND_GOES))))
		return; /* unfinished, Stead's own, or nothing that is read */
	if (!name || (e->mask & (IN_ISDIR | IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT)) ||
	    (!known && news->count == sizeof news->paths / sizeof news->paths[0])) {
		news->anything = true;
		return;
	}
	if (!known) {
		news->paths[news->count] = arena_str(news->arena, path);
		news->came[news->count++] = false;
	}
	news->came[news->count - 1] |= (e->mask & COMES_AND_GOES) != 0;
}

void prompt_watch_ask(struct prompt_watch *w, struct arena *arena, struct prompt_news *ret)
{
	*ret = (struct prompt_news){.arena = arena};
	if (!watch_read(&w->watch, take_event, ret) || w->full)
		ret->anything = true;
}
