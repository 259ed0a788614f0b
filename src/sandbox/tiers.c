/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tiers this machine has. Kernels, containers and security modules refuse single steps in many ways, so nothing
 * is concluded from versions and settings: the set-up is tried once, with a program that does nothing. A tier that is
 * requested but not available is an error that says which step was refused; a weaker one is never taken in its place.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "sandbox/engine.h"
#include "sandbox/sandbox_internal.h"

static const char *const names[SANDBOX_TIERS] = {"auto", "namespaces", "container", "bubblewrap", "landlock", "local"};

struct trial {
	pthread_once_t once;
	bool works;
	struct err err;
};
static struct trial trials[SANDBOX_TIERS], overlay;

const char *sandbox_tier_name(enum sandbox_tier tier)
{
	return (unsigned)tier < SANDBOX_TIERS ? names[tier] : "unknown";
}

int sandbox_tier_parse(struct str name, enum sandbox_tier *ret, struct err *err)
{
	for (unsigned i = 0; i < SANDBOX_TIERS; i++)
		if (str_is(name, names[i])) {
			*ret = (enum sandbox_tier)i;
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "\"%.*s\" is not a tier; use auto, namespaces, container, bubblewrap, landlock or local",
		       STR_ARG(utf8_first(name, 40)));
}

static void try_namespaces(void)
{
	trials[SANDBOX_NAMESPACES].works = sandbox_try(SANDBOX_NAMESPACES, false, &trials[SANDBOX_NAMESPACES].err) == 0;
	overlay.works = trials[SANDBOX_NAMESPACES].works && sandbox_try(SANDBOX_NAMESPACES, true, &overlay.err) == 0;
}

static void try_landlock(void)
{
	trials[SANDBOX_LANDLOCK].works = sandbox_try(SANDBOX_LANDLOCK, false, &trials[SANDBOX_LANDLOCK].err) == 0;
}

static void try_bubblewrap(void)
{
	trials[SANDBOX_BUBBLEWRAP].works = sandbox_try(SANDBOX_BUBBLEWRAP, false, &trials[SANDBOX_BUBBLEWRAP].err) == 0;
}

static void try_container(void)
{
	struct engine engine;

	trials[SANDBOX_CONTAINER].works = engine_open(&engine, &trials[SANDBOX_CONTAINER].err) == 0;
}

static const struct trial *tried(enum sandbox_tier tier)
{
	static pthread_once_t namespaces = PTHREAD_ONCE_INIT, landlock = PTHREAD_ONCE_INIT,
			      bubblewrap = PTHREAD_ONCE_INIT, container = PTHREAD_ONCE_INIT;

	if (tier == SANDBOX_NAMESPACES)
		pthread_once(&namespaces, try_namespaces);
	if (tier == SANDBOX_CONTAINER)
		pthread_once(&container, try_container);
	if (tier == SANDBOX_BUBBLEWRAP)
		pthread_once(&bubblewrap, try_bubblewrap);
	if (tier == SANDBOX_LANDLOCK)
		pthread_once(&landlock, try_landlock);
	return &trials[tier];
}

bool tier_has_overlay(void)
{
	return tried(SANDBOX_NAMESPACES)->works && overlay.works;
}

int sandbox_tier_choose(enum sandbox_tier asked, enum sandbox_tier *ret, struct err *err)
{
	enum sandbox_tier tier = asked == SANDBOX_AUTO ? SANDBOX_NAMESPACES : asked;
	const struct trial *trial = tried(tier);

	if (tier != SANDBOX_LOCAL && !trial->works) {
		*err = trial->err;
		err->kind = ERR_UNSUPPORTED;
		return err_prefix(err, "this machine cannot provide the sandbox tier %s", names[tier]);
	}
	*ret = tier;
	return 0;
}

static struct str why(struct arena *arena, const struct trial *trial, const char *works)
{
	return trial->works ? str_of(works) : err_text(arena, &trial->err);
}

/* Whether files of other stores can be shown, to commands and by `stead mount`. */
static struct sandbox_ability fuse_ability(void)
{
	bool exists = access("/dev/fuse", F_OK) == 0, opens = access("/dev/fuse", R_OK | W_OK) == 0;
	bool helper =
		geteuid() == 0 || access("/usr/bin/fusermount3", X_OK) == 0 || access("/bin/fusermount3", X_OK) == 0;

	if (opens && helper)
		return (struct sandbox_ability){
			"fuse", true, STR("files on servers are shown without copying them, and `stead mount` works")};
	if (opens)
		return (struct sandbox_ability){"fuse", true,
						STR("files on servers are shown without copying them; `stead mount` "
						    "needs the program fusermount3 (package fuse3)")};
	return (struct sandbox_ability){
		"fuse", false,
		exists ? STR("only root may open /dev/fuse: files on servers are copied for each command, and `stead "
			     "mount` is refused; allow users to read and write the device (mode 666)")
		       : STR("no /dev/fuse: files on servers are copied for each command, and `stead mount` is "
			     "refused; load the kernel module fuse, or give the container the device")};
}

size_t sandbox_abilities(struct arena *arena, struct sandbox_ability **ret)
{
	struct sandbox_ability *a = ARENA_ARRAY(arena, struct sandbox_ability, 7);
	const struct trial *own = tried(SANDBOX_NAMESPACES), *weak = tried(SANDBOX_LANDLOCK);
	const struct trial *bwrap = tried(SANDBOX_BUBBLEWRAP), *engine = tried(SANDBOX_CONTAINER);
	int abi = landlock_abi();
	struct cgroup group;

	a[0] = (struct sandbox_ability){"namespaces", own->works,
					why(arena, own, "commands get a machine of their own (the default)")};
	a[1] = (struct sandbox_ability){"overlay", overlay.works,
					overlay.works ? STR("files are shown without copying them")
						      : STR("files are copied for each command")};
	a[2] = (struct sandbox_ability){"landlock", weak->works,
					weak->works ? arena_printf(arena, "version %d; weaker than namespaces", abi)
						    : why(arena, weak, "")};
	cgroup_make(&group, (uint64_t)64 << 20, 16);
	a[3] = (struct sandbox_ability){
		"cgroup", cgroup_has_memory(&group),
		cgroup_has_memory(&group) ? STR("memory is limited for all processes of a command together")
					  : STR("none is delegated to Stead: memory is limited for each process")};
	cgroup_remove(&group);
	a[4] = (struct sandbox_ability){"bubblewrap", bwrap->works,
					why(arena, bwrap, "bwrap works; only used when asked for")};
	a[5] = (struct sandbox_ability){"container", engine->works,
					why(arena, engine, "a container engine answers; only used when asked for")};
	a[6] = fuse_ability();
	*ret = a;
	return 7;
}
