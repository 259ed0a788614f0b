/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path that a tool was given means: from '/' of the tools, or as a path of this machine.
 *
 * Models copy absolute paths from the prompt, from errors of programs and from people. One that leads below the
 * workspace is understood; any other is refused with a sentence, never taken for a path of the same name inside.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "workspace/own_dir.h"
#include "workspace/workspace_internal.h"

/* `path` below `dir`; ptr NULL when it is elsewhere. */
static struct str below_dir(struct str path, struct str dir)
{
	while (dir.len > 1 && dir.ptr[dir.len - 1] == '/')
		dir.len--;
	if (!dir.len || !str_starts(path, dir) || (path.len > dir.len && path.ptr[dir.len] != '/'))
		return STR_NONE;
	return str_from(path, dir.len);
}

/* A path of this machine below the workspace, as it is called from '/' of the tools; ptr NULL: it is elsewhere. */
static int below_home(const struct workspace *ws, struct arena *arena, struct str text, struct str *ret,
		      struct err *err)
{
	char *real = realpath(ws->dir.ptr, NULL);
	struct str home = below_dir(text, str_of(real ? real : "")), root = ws->root.s, shown = ws->tool_root.path.s;

	free(real);
	if (!home.ptr && str_starts(ws->dir, STR("/")))
		home = below_dir(text, ws->dir);
	*ret = home;
	if (!home.ptr || !ws->root.s.len)
		return 0;
	*ret = below_dir(home, arena_printf(arena, "/%.*s", STR_ARG(root)));
	if (!ret->ptr && !str_eq(root, shown)) /* what everybody shares */
		*ret = shown.len ? below_dir(home, arena_printf(arena, "/%.*s", STR_ARG(shown))) : home;
	if (ret->ptr)
		return 0;
	return err_set(
		err, ERR_DENIED,
		"\"%.*s\" is not under '/' of the file tools; write the path from there, for example notes/plan.md",
		STR_ARG(utf8_first(text, 200)));
}

struct str workspace_below(const struct workspace *ws, struct str text)
{
	struct str below;

	if (!ws->own_files || !str_starts(text, STR("/")))
		return STR_NONE;
	below = below_dir(text, ws->own_dir);
	if (!below.ptr && str_starts(ws->opts.files_dir, STR("/")))
		below = below_dir(text, ws->opts.files_dir);
	return below;
}

/* Whether "/x/y" is a path of this machine, since the directory has no "x"; "/x" is taken for x. */
static bool is_elsewhere(const struct workspace *ws, struct arena *arena, struct wpath path)
{
	struct str first = str_first(path.s, str_find_char(path.s, '/'));
	struct stat st;

	return first.len < path.s.len &&
	       lstat(arena_printf(arena, "%.*s/%.*s", STR_ARG(ws->own_dir), STR_ARG(first)).ptr, &st) != 0 &&
	       errno == ENOENT;
}

/* What is done about symbolic links in a directory of the person's own. */
enum links {
	LINKS_FOLLOWED,
	LINKS_FOLLOWED_TO_LAST, /* a path that is one itself stays one */
	LINKS_LEFT,             /* nobody asks: the store does not follow them */
};

static int parse_path(const struct workspace *ws, struct arena *arena, struct str text, enum links links,
		      struct wpath *ret, struct err *err)
{
	struct str below = workspace_below(ws, text);
	struct wpath path;
	int r = 0;

	if (!ws->own_files && ws->dir.ptr && str_starts(text, STR("/")))
		r = below_home(ws, arena, text, &below, err);
	if (r)
		return r;
	r = wpath_parse_lenient(arena, below.ptr ? below : text, &path, err);
	if (r == 0 && ws->own_files && !below.ptr && str_starts(text, STR("/")) && is_elsewhere(ws, arena, path))
		return err_set(err, ERR_DENIED, "\"%.*s\" is outside the directory; give a path relative to it",
			       STR_ARG(utf8_first(text, 200)));
	/* a protected name stays one, whatever it leads to: the guard refuses it */
	if (r == 0 && ws->own_files && links != LINKS_LEFT && !wpath_is_root(path) &&
	    store_guard_says(ws->files, path) != GUARD_HIDDEN)
		return own_dir_resolve(arena, ws->own_dir, path, links == LINKS_FOLLOWED, ret, err);
	if (r == 0)
		*ret = path;
	return r;
}

int workspace_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	return parse_path(ws, arena, text, LINKS_FOLLOWED, ret, err);
}

int workspace_link_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
			struct err *err)
{
	return parse_path(ws, arena, text, LINKS_FOLLOWED_TO_LAST, ret, err);
}

int workspace_written_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
			   struct err *err)
{
	return parse_path(ws, arena, text, LINKS_LEFT, ret, err);
}
