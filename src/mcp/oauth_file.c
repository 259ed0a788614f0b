/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for each server, in a directory of the person that only they can read: tokens belong to a person on a machine,
 * not to a workspace, which is copied, bundled and shared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"
#include "mcp/oauth_internal.h"

#define FILE_MAX (256 * KIB)

/* ptr NULL: the person has no directory. */
static struct str directory(struct arena *arena)
{
	const char *state = env_process("XDG_STATE_HOME"), *home = env_process("HOME");

	if (state && state[0] == '/')
		return arena_printf(arena, "%s/stead/logins", state);
	return home && home[0] == '/' ? arena_printf(arena, "%s/.local/state/stead/logins", home) : STR_NONE;
}

static const char *file_of(struct arena *arena, struct str resource)
{
	struct str dir = directory(arena);

	return dir.ptr ? arena_printf(arena, "%.*s/%.*s.json", STR_ARG(dir), STR_ARG(hash_hex128(arena, resource))).ptr
		       : NULL;
}

struct jv *oauth_file_read(struct arena *arena, struct str resource)
{
	const char *path = file_of(arena, resource);
	FD_SCOPE int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char *text = arena_alloc_raw(arena, FILE_MAX);
	struct jv *v;
	struct err ignored;
	ssize_t n = fd >= 0 ? read(fd, text, FILE_MAX) : -1;

	return n > 0 && jv_parse(arena, str_n(text, (size_t)n), &v, &ignored) == 0 && v->type == JV_OBJECT ? v : NULL;
}

static void make_directories(struct arena *arena, struct str dir)
{
	for (size_t i = 1; i <= dir.len; i++)
		if (i == dir.len || dir.ptr[i] == '/')
			mkdir(arena_cstr(arena, str_first(dir, i)), 0700);
}

int oauth_file_write(struct arena *arena, struct str resource, const struct jv *state, struct err *err)
{
	const char *path = file_of(arena, resource), *fresh;
	struct buf text;
	bool ok;
	int fd;

	if (!path)
		return err_set(err, ERR_UNAVAILABLE, "there is no directory for the login; set XDG_STATE_HOME or HOME");
	make_directories(arena, directory(arena));
	fresh = arena_printf(arena, "%s.%ld", path, (long)getpid()).ptr;
	buf_init(&text, arena, FILE_MAX);
	jv_write_pretty(&text, state);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "keep the login in %s", path);
	ok = write(fd, buf_str(&text).ptr, text.len) == (ssize_t)text.len;
	ok = fsync(fd) == 0 && ok;
	close(fd);
	if (!ok || rename(fresh, path) != 0) {
		unlink(fresh);
		return err_sys(err, errno, "keep the login in %s", path);
	}
	return 0;
}

bool oauth_file_remove(struct arena *arena, struct str resource)
{
	const char *path = file_of(arena, resource);

	return path && unlink(path) == 0;
}
