/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of the person's own (--files) has what no store knows: empty directories and symbolic links. Links that
 * stay inside are resolved here, at the edge, to the path that they stand for. The store below still refuses every
 * link, so whoever changes one between the two steps gains nothing.
 */
#include "workspace/own_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/stores.h"

#define HOPS_MAX  32
#define QUICK_MAX 4 /* elements of a path: opening it takes four calls */
#define LINKS_MAX 1000
#define DROP_DEEP 64

/* What is at `path`, which has no link on the way (unless O_NOFOLLOW lets it be one itself); -errno. */
static int open_below(struct arena *arena, struct str root, struct str path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int top = open(arena_cstr(arena, root), O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (top < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, top, path.len ? arena_cstr(arena, path) : ".", &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(top);
	return fd;
}

static bool name_is_git(struct str name)
{
	return str_eq_nocase(name, STR(".git"));
}

int own_dir_make(struct arena *arena, struct str root, struct wpath path, struct err *err)
{
	int fd = open(arena_cstr(arena, root), O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	struct str rest = path.s, name;
	int sys = fd < 0 ? errno : 0;

	while (fd >= 0 && rest.len && str_cut(&rest, '/', &name)) {
		const char *text = arena_cstr(arena, name);

		if (name_is_git(name)) {
			close(fd);
			return err_set(err, ERR_DENIED,
				       "\"%.*s\" is in .git, which tools cannot change; use git instead",
				       STR_ARG(path.s));
		}
		next = mkdirat(fd, text, 0777) && errno != EEXIST
			       ? -1
			       : openat(fd, text, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		sys = errno;
		close(fd);
		fd = next;
	}
	if (fd < 0)
		return err_sys(err, sys, "make the directory \"%.*s\"", STR_ARG(path.s));
	close(fd);
	return 0;
}

static bool is_in_git(struct wpath path)
{
	struct str rest = path.s, name;

	while (rest.len && str_cut(&rest, '/', &name))
		if (name_is_git(name))
			return true;
	return false;
}

/* The directory that `path` is in, and its name there. -errno. */
static int open_parent(struct arena *arena, struct str root, struct wpath path, const char **ret_name)
{
	*ret_name = arena_cstr(arena, wpath_name(path));
	return open_below(arena, root, wpath_parent(path).s, O_PATH | O_DIRECTORY);
}

static struct str read_link(struct arena *arena, int dir, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text));

	return n > 0 && (size_t)n < sizeof(text) ? arena_str(arena, str_n(text, (size_t)n)) : STR_NONE;
}

bool own_dir_is_link(struct arena *arena, struct str root, struct wpath path, struct str *ret_target)
{
	const char *name;
	int dir = wpath_is_root(path) ? -1 : open_parent(arena, root, path, &name);

	if (dir < 0)
		return false;
	*ret_target = read_link(arena, dir, name);
	close(dir);
	return ret_target->ptr;
}

/* `target`, as a link in the directory `dir` has it, from the root. False: it leads out. */
static bool join_target(struct arena *arena, struct str root, struct str dir, struct str target, struct str *ret)
{
	struct str at = dir, part;

	if (str_starts(target, STR("/"))) {
		if (!str_starts(target, root) || (target.len > root.len && target.ptr[root.len] != '/'))
			return false;
		target = str_from(target, root.len);
		at = STR("");
	}
	while (target.len && str_cut(&target, '/', &part)) {
		if (!part.len || str_is(part, "."))
			continue;
		if (str_is(part, "..")) {
			size_t slash = str_rfind_char(at, '/');

			if (!at.len)
				return false;
			at = slash < at.len ? str_first(at, slash) : STR("");
		} else {
			at = at.len ? arena_printf(arena, "%.*s/%.*s", STR_ARG(at), STR_ARG(part)) : part;
		}
	}
	*ret = at;
	return true;
}

/* The first element of `path` that is a link: its path, its target and what follows it. False: there is none. */
static bool first_link(struct arena *arena, struct str root, struct str path, struct str *ret_link,
		       struct str *ret_target, struct str *ret_rest)
{
	for (size_t end = 0; end < path.len; end++) {
		end += str_find_char(str_from(path, end), '/');
		*ret_link = str_first(path, end);
		if (own_dir_is_link(arena, root, (struct wpath){*ret_link}, ret_target)) {
			*ret_rest = str_from(path, end);
			return true;
		}
	}
	return false;
}

/* True when it is certain that no element of the path is a link (its last one counts only if `last`). Asks for each
   element by itself, which opens nothing: this is asked before every call that names a file. */
static bool has_no_link(struct arena *arena, struct str root, struct str path, bool last)
{
	char *text = arena_alloc_raw(arena, root.len + path.len + 2), target;
	size_t count = 0;

	memcpy(text, root.ptr, root.len);
	text[root.len] = '/';
	memcpy(text + root.len + 1, path.ptr, path.len);
	text[root.len + path.len + 1] = 0;

	for (char *end = text + root.len + 1, *stop = end + path.len; end < stop; *end++ = '/') {
		ssize_t n;

		end = memchr(end, '/', (size_t)(stop - end));
		end = end ? end : stop;
		if (++count > QUICK_MAX)
			return false;
		if (end == stop && !last)
			return true;
		*end = 0;
		n = readlink(text, &target, 1);
		if (n < 0 && (errno == ENOENT || errno == ENOTDIR || (errno == EINVAL && end == stop)))
			return true;
		if (n >= 0 || errno != EINVAL)
			return false;
	}
	return false;
}

int own_dir_resolve(struct arena *arena, struct str root, struct wpath path, bool last, struct wpath *ret,
		    struct err *err)
{
	struct str at = path.s, link, target, rest, to;

	if (has_no_link(arena, root, at, last)) {
		*ret = path;
		return 0;
	}
	for (int hops = 0; hops < HOPS_MAX; hops++) {
		int fd = open_below(arena, root, at, O_PATH | (last ? 0 : O_NOFOLLOW));

		if (fd >= 0)
			close(fd);
		if (fd != -ELOOP || !first_link(arena, root, at, &link, &target, &rest) || (!last && !rest.len))
			return wpath_parse_lenient(arena, at, ret, err);
		if (!join_target(arena, root, wpath_parent((struct wpath){link}).s, target, &to))
			return err_set(
				err, ERR_DENIED,
				"\"%.*s\" is a symbolic link to %.*s, which is outside the directory; work without it",
				STR_ARG(utf8_first(link, 120)), STR_ARG(utf8_first(target, 120)));
		at = arena_printf(arena, "%.*s%.*s", STR_ARG(to), STR_ARG(rest));
		while (str_starts(at, STR("/")))
			at = str_from(at, 1);
	}
	return err_set(err, ERR_INVALID, "\"%.*s\" goes through too many symbolic links; name the real file",
		       STR_ARG(utf8_first(path.s, 200)));
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The names of the links in `dir`, sorted; their number. */
static size_t link_names(struct arena *arena, DIR *dir, struct str *names)
{
	struct dirent *e;
	size_t n = 0;

	while (n < LINKS_MAX && (e = readdir(dir)))
		if (e->d_type == DT_LNK && utf8_valid(str_of(e->d_name)))
			names[n++] = arena_str(arena, str_of(e->d_name));
	qsort(names, n, sizeof(*names), by_name);
	return n;
}

void own_dir_links(struct arena *arena, struct str root, struct store *files, struct wpath dir, struct jv *list)
{
	int fd = open_below(arena, root, dir.s, O_RDONLY | O_DIRECTORY);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct str *names = ARENA_ARRAY(arena, struct str, LINKS_MAX);
	size_t n = entries ? link_names(arena, entries, names) : 0;

	if (fd >= 0 && !entries)
		close(fd);
	for (size_t i = 0; i < n && jv_count(list) < LINKS_MAX; i++) {
		struct str target = read_link(arena, fd, names[i].ptr);
		struct jv *v = jv_object(arena);
		struct wpath path;
		struct err ignored;

		if (!target.ptr || !utf8_valid(target) ||
		    wpath_join(arena, dir, (struct wpath){names[i]}, &path, &ignored) ||
		    store_guard_says(files, path) == GUARD_HIDDEN)
			continue;
		jv_set_str(arena, v, "path", path.s);
		jv_set_str(arena, v, "kind", STR("link"));
		jv_set_str(arena, v, "target", target);
		jv_push(arena, list, v);
	}
	if (entries)
		closedir(entries);
}

/* Takes `fd`. */
static bool is_bare(int fd, unsigned depth)
{
	DIR *entries = fd < 0 || !depth ? NULL : fdopendir(fd);
	bool bare = entries;
	struct dirent *e;

	if (fd >= 0 && !entries)
		close(fd);
	while (bare && (e = readdir(entries)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && e->d_type != DT_LNK)
			bare = is_bare(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				       depth - 1);
	if (entries)
		closedir(entries);
	return bare;
}

bool own_dir_is_bare(struct arena *arena, struct str root, struct wpath path)
{
	return is_bare(open_below(arena, root, path.s, O_RDONLY | O_DIRECTORY), DROP_DEEP);
}

int own_dir_unlink(struct arena *arena, struct str root, struct wpath path, struct err *err)
{
	const char *name;
	int dir = open_parent(arena, root, path, &name), sys = dir < 0 ? -dir : is_in_git(path) ? EACCES : 0;

	if (!sys && unlinkat(dir, name, 0))
		sys = errno;
	if (dir >= 0)
		close(dir);
	return sys ? err_sys(err, sys, "delete the link \"%.*s\"", STR_ARG(path.s)) : 0;
}

int own_dir_rename(struct arena *arena, struct str root, struct wpath from, struct wpath to, struct err *err)
{
	const char *old_name, *new_name;
	int old_dir = open_parent(arena, root, from, &old_name), new_dir = open_parent(arena, root, to, &new_name);
	int sys = old_dir < 0 ? -old_dir : new_dir < 0 ? -new_dir : is_in_git(from) || is_in_git(to) ? EACCES : 0;

	if (!sys && renameat2(old_dir, old_name, new_dir, new_name, RENAME_NOREPLACE))
		sys = errno;
	if (old_dir >= 0)
		close(old_dir);
	if (new_dir >= 0)
		close(new_dir);
	return sys ? err_sys(err, sys, "move \"%.*s\" to \"%.*s\"", STR_ARG(from.s), STR_ARG(to.s)) : 0;
}

/* Removes the links and empty directories in `name`, and `name` itself if nothing else is in it; true then. Counts the
   links. */
static bool drop(int dir, const char *name, unsigned depth, uint64_t *links)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd >= 0 && !entries)
		close(fd);
	while (entries && (e = readdir(entries))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (e->d_type == DT_LNK)
			*links += unlinkat(fd, e->d_name, 0) == 0;
		else if (e->d_type == DT_DIR && depth && !name_is_git(str_of(e->d_name)))
			drop(fd, e->d_name, depth - 1, links);
	}
	if (entries)
		closedir(entries);
	return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

bool own_dir_drop(struct arena *arena, struct str root, struct wpath path, uint64_t *ret_links)
{
	const char *name;
	int dir = is_in_git(path) ? -1 : open_parent(arena, root, path, &name);
	uint64_t links = 0;
	bool gone = dir >= 0 && drop(dir, name, DROP_DEEP, &links);

	*ret_links = links;
	if (dir >= 0)
		close(dir);
	return gone;
}

/* Moves the links of `name` in `dir` to `new_name` in `to`, and makes its directories there. What is already there
   stays as it is. `name` goes if nothing else is in it. */
static void follow(int dir, const char *name, int to, const char *new_name, unsigned depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), there = -1;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd >= 0 && !entries)
		close(fd);
	if (entries && (mkdirat(to, new_name, 0777) == 0 || errno == EEXIST))
		there = openat(to, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (there >= 0 && (e = readdir(entries))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (e->d_type == DT_LNK)
			renameat2(fd, e->d_name, there, e->d_name, RENAME_NOREPLACE);
		else if (e->d_type == DT_DIR && depth && !name_is_git(str_of(e->d_name)))
			follow(fd, e->d_name, there, e->d_name, depth - 1);
	}
	if (entries)
		closedir(entries);
	if (there >= 0)
		close(there);
	unlinkat(dir, name, AT_REMOVEDIR);
}

void own_dir_follow(struct arena *arena, struct str root, struct wpath from, struct wpath to)
{
	const char *name, *new_name;
	int dir = open_parent(arena, root, from, &name), there = open_parent(arena, root, to, &new_name);

	if (dir >= 0 && there >= 0 && !is_in_git(from) && !is_in_git(to))
		follow(dir, name, there, new_name, DROP_DEEP);
	if (dir >= 0)
		close(dir);
	if (there >= 0)
		close(there);
}
