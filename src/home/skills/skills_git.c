/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills in a Git repository: a shallow clone in the cache of this machine, made by the program git and read as any
 * directory is. A clone is made next to its place and moved there when it is whole, so a reader never sees half of one,
 * and two processes that make it at once do the same work twice and no harm. Libgit2 was not taken: the program is
 * there wherever repositories are used, and it speaks every transport.
 *
 * What a repository holds is read and never run: no hooks, no filters, no submodules, symbolic links as plain files.
 * The program gets no environment but PATH, no terminal and no credentials; a URL may have a token from ${NAME}.
 */
#include "home/skills/skills_git.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/program.h"
#include "store/stores.h"

#define CLONE_MS   60000
#define OUTPUT_MAX ((size_t)64 * KIB)
#define REFRESH_S  3600

bool skills_git_is(struct str url)
{
	return str_starts(url, STR("git+"));
}

static int cache_dir(struct arena *arena, struct str *ret, struct err *err)
{
	const char *cache = env_process("XDG_CACHE_HOME"), *home = env_process("HOME");

	if (cache && cache[0] == '/')
		*ret = arena_printf(arena, "%s/stead/git", cache);
	else if (home && home[0] == '/')
		*ret = arena_printf(arena, "%s/.cache/stead/git", home);
	else
		return err_set(err, ERR_UNAVAILABLE,
			       "there is no directory for the repository's clone; set XDG_CACHE_HOME or HOME");
	return 0;
}

static int make_dirs(struct arena *arena, struct str dir, struct err *err)
{
	char *path = (char *)arena_cstr(arena, dir);

	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return err_sys(err, errno, "the directory \"%s\" cannot be created", path);
		*p = c;
		if (!c)
			return 0;
	}
}

/* The reason that git gave, without the URL's secrets. */
static int clone_failed(struct arena *arena, const struct skills_repository *repo, int r, const struct command_ran *ran,
			struct err *err)
{
	struct str said = r == -ERR_UNAVAILABLE ? str_trim(ran->said) : STR("");
	struct str shown = store_url_shown(arena, repo->url);

	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_UNAVAILABLE, "git is not installed, so \"%.*s\" cannot be read; install it",
			       STR_ARG(shown));
	if (r == -ERR_TIMEOUT)
		return err_set(err, ERR_TIMEOUT, "cloning \"%.*s\" took longer than %d seconds", STR_ARG(shown),
			       CLONE_MS / 1000);
	if (str_find(repo->url, STR("@"), 0) != SIZE_MAX)
		said = STR("check its address and the token");
	return err_set(err, ERR_UNAVAILABLE, "\"%.*s\" cannot be cloned: %.*s", STR_ARG(shown),
		       STR_ARG(utf8_first(said, 200)));
}

static int clone(struct ctx *ctx, const struct skills_repository *repo, struct str into, struct err *err)
{
	struct arena *arena = ctx->arena;
	const char *branch = repo->ref.len ? arena_printf(arena, "--branch=%.*s", STR_ARG(repo->ref)).ptr : "--quiet";
	const char *argv[] = {"git",
			      "-c",
			      "core.hooksPath=/dev/null",
			      "-c",
			      "core.symlinks=false",
			      "-c",
			      "protocol.ext.allow=never",
			      "-c",
			      "init.templateDir=",
			      "clone",
			      "--quiet",
			      "--depth=1",
			      "--single-branch",
			      "--no-tags",
			      "--no-recurse-submodules",
			      branch,
			      "--",
			      arena_cstr(arena, str_from(repo->url, 4)),
			      into.ptr,
			      NULL};
	struct command_run run = {.argv = argv, .dir = "/", .timeout_ms = CLONE_MS, .output_max = OUTPUT_MAX};
	struct command_ran ran = {0};
	int r = command_run(ctx, &run, &ran, err);

	return r ? clone_failed(arena, repo, r, &ran, err) : 0;
}

static void remove_tree(struct ctx *ctx, struct str dir)
{
	const char *argv[] = {"rm", "-rf", "--", dir.ptr, NULL};
	struct command_run run = {.argv = argv, .dir = "/", .timeout_ms = CLONE_MS, .output_max = OUTPUT_MAX};
	struct command_ran ran;
	struct err ignored;

	command_run(ctx, &run, &ran, &ignored);
}

/* Puts a new clone in its place; what was there goes. */
static int refresh(struct ctx *ctx, const struct skills_repository *repo, struct str place, struct err *err)
{
	struct str fresh = arena_printf(ctx->arena, "%s.%016llx", place.ptr, (unsigned long long)random_u64());
	int r = clone(ctx, repo, fresh, err);

	if (r == 0 && rename(fresh.ptr, place.ptr) != 0 &&
	    renameat2(AT_FDCWD, fresh.ptr, AT_FDCWD, place.ptr, RENAME_EXCHANGE) != 0)
		r = err_sys(err, errno, "the clone \"%s\" cannot be moved into place", place.ptr);
	remove_tree(ctx, fresh);
	return r;
}

int skills_git_open(struct ctx *ctx, const struct skills_repository *repo, struct store **ret, struct str *ret_late,
		    struct err *err)
{
	struct arena *arena = ctx->arena;
	struct store_disk_opts opts = {0};
	struct str dir, place;
	struct stat st;
	bool there;
	int r = cache_dir(arena, &dir, err);

	*ret_late = STR("");
	if (r == 0)
		r = make_dirs(arena, dir, err);
	if (r)
		return r;
	place = arena_printf(
		arena, "%s/%s", dir.ptr,
		hash_hex128(arena, arena_printf(arena, "%.*s\n%.*s", STR_ARG(repo->url), STR_ARG(repo->ref))).ptr);
	there = stat(place.ptr, &st) == 0;
	if (!there || clock_real_ns() / 1000000000 - st.st_mtime >= REFRESH_S)
		r = refresh(ctx, repo, place, err);
	if (r && (!there || r == -ERR_CANCELLED))
		return r;
	if (r)
		*ret_late = arena_printf(arena, "%.*s; the earlier copy is used", STR_ARG(err_text(arena, err)));
	if (repo->path.len)
		place = arena_printf(arena, "%s/%.*s", place.ptr, STR_ARG(repo->path));
	return store_disk_open(place.ptr, &opts, ret, err);
}
