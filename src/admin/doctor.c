/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead doctor`: is the place where workspaces lie sound, and is each of them? Every check is a line with what was
 * seen and, when it is not well, what to do. It never fails for what it finds and never hangs: walks are bounded and
 * the whole has a deadline.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "admin/doctor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "sandbox/sandbox.h"
#include "tool/dialect.h"
#include "workspace/fork.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

#define DOCTOR_SECONDS    20
#define WALK_ENTRIES_MAX  100000
#define WALK_DEPTH_MAX    32
#define TEMP_AGE_SECONDS  600
#define DESCRIPTORS_LEAST 1024
/* Findings in one log that are named, and logs of --files that are looked at. */
#define DAMAGES_NAMED 3
#define OWN_LOGS_MAX  50

struct doctor {
	struct ctx *ctx;
	struct jv *checks;
	struct store *base;
	struct str url, dir; /* dir: of a disk store, else ptr NULL */
};

static void report(struct doctor *d, struct str workspace, const char *check, struct str detail, const char *fix)
{
	finding_add(&(struct findings){d->ctx->arena, d->checks, workspace}, check, detail, fix);
}

static struct str sentence(struct doctor *d, const struct err *err)
{
	return err_text(d->ctx->arena, err);
}

/* --- the machine --- */

static void check_openat2(struct doctor *d)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	FD_SCOPE int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);

	if (fd >= 0)
		report(d, STR_NONE, "openat2", STR("the kernel keeps paths within their directory"), NULL);
	else
		report(d, STR_NONE, "openat2",
		       arena_printf(d->ctx->arena, "the kernel refuses openat2: %s", strerror(errno)),
		       "use Linux 5.6 or newer, and allow openat2 in the container's seccomp filter");
}

/* What commands can be kept apart with. What is missing matters only if a workspace asks for it. */
static void check_sandbox(struct doctor *d)
{
	struct sandbox_ability *list;
	size_t count = sandbox_abilities(d->ctx->arena, &list);

	for (size_t i = 0; i < count; i++)
		report(d, STR_NONE, "sandbox",
		       arena_printf(d->ctx->arena, "%s: %s%.*s", list[i].name, list[i].have ? "" : "not here, ",
				    STR_ARG(list[i].detail)),
		       NULL);
}

static void check_descriptors(struct doctor *d)
{
	struct rlimit limit;
	struct str detail;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	detail = arena_printf(d->ctx->arena, "at most %llu files may be open at once",
			      (unsigned long long)limit.rlim_cur);
	report(d, STR_NONE, "descriptors", detail,
	       limit.rlim_cur >= DESCRIPTORS_LEAST ? NULL : "raise the limit: ulimit -n 4096");
}

/* --- the store --- */

static const char *store_fix(const struct doctor *d)
{
	return store_url_is_local(d->url) ? "make the directory, give this user the right to write there, or name "
					    "another store with --store"
					  : "follow the message, or name another store with --store";
}

static int probe(struct doctor *d, struct wpath path, int64_t *ret_ns, struct err *err)
{
	struct str bytes = STR("stead doctor was here\n"), back;
	int64_t start = clock_monotonic_ns();
	int r = store_write(d->base, d->ctx, path, bytes, (struct store_cond){.kind = STORE_ABSENT}, NULL, err);

	*ret_ns = clock_monotonic_ns() - start;
	if (!r)
		r = store_read(d->base, d->ctx, path, STORE_WHOLE, KIB, &back, NULL, err);
	if (!r && !str_eq(back, bytes))
		r = err_set(err, ERR_CORRUPT, "the bytes read back differ from those written");
	return r;
}

/* The store is opened without "relaxed", so that the probe is a write as durable as any. */
static void check_writable(struct doctor *d)
{
	struct wpath path = {arena_printf(d->ctx->arena, ".stead/doctor-%016llx", (unsigned long long)random_u64())};
	struct err err, ignored;
	int64_t ns;
	int r = probe(d, path, &ns, &err);

	if (r)
		report(d, STR_NONE, "write", sentence(d, &err), store_fix(d));
	else
		report(d, STR_NONE, "write",
		       arena_printf(d->ctx->arena, "a durable write takes %.1f ms", (double)ns / 1e6), NULL);
	store_remove(d->base, d->ctx, path, false, (struct store_cond){0}, NULL, &ignored);
}

static bool open_store(struct doctor *d, struct str url)
{
	struct str shown;
	struct err err;
	int r;

	d->url = url.len ? url : workspace_default_store(d->ctx->arena);
	shown = store_url_shown(d->ctx->arena, d->url);
	if (!doctor_check_place(d->ctx, d->url, d->checks))
		return false;
	r = workspace_open_store(d->ctx->arena, d->url, false, false, &d->base, &d->dir, &err);
	if (r == -ERR_NOT_FOUND)
		report(d, STR_NONE, "store", arena_printf(d->ctx->arena, "%.*s does not exist yet", STR_ARG(shown)),
		       "create the first workspace: stead init NAME");
	else if (r)
		report(d, STR_NONE, "store", sentence(d, &err), store_fix(d));
	else if (store_url_is_local(d->url)) /* otherwise it is already reported */
		report(d, STR_NONE, "store", arena_printf(d->ctx->arena, "%.*s is there", STR_ARG(shown)), NULL);
	return r == 0;
}

/* --- unfinished writes of killed processes --- */

struct walk {
	size_t seen, found;
	time_t now;
	struct str first;
	struct arena *arena;
};

static void walk_dir(struct walk *w, int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir)) && w->seen++ < WALK_ENTRIES_MAX) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (strncmp(e->d_name, ".stead-tmp-", 11) == 0) {
			if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    w->now - st.st_mtime > TEMP_AGE_SECONDS && !w->found++)
				w->first = arena_str(w->arena, str_of(e->d_name));
		} else if (depth < WALK_DEPTH_MAX && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)) {
			walk_dir(w, fd, e->d_name, depth + 1);
		}
	}
	closedir(dir);
}

static void check_leftovers(struct doctor *d, struct str workspace)
{
	struct walk w = {.now = (time_t)(clock_real_ns() / 1000000000), .arena = d->ctx->arena};
	struct str dir = arena_printf(d->ctx->arena, "%.*s/%.*s", STR_ARG(d->dir), STR_ARG(workspace));

	if (!d->dir.ptr)
		return;
	walk_dir(&w, AT_FDCWD, dir.ptr, 0);
	if (!w.found)
		report(d, workspace, "leftovers", STR("no unfinished writes"), NULL);
	else
		report(d, workspace, "leftovers",
		       arena_printf(d->ctx->arena, "%zu unfinished writes of ended processes, such as %.*s", w.found,
				    STR_ARG(w.first)),
		       "they are harmless but take space: find . -name '.stead-tmp-*' -mmin +10 -delete");
}

/* --- one workspace --- */

static void check_config(struct doctor *d, struct store *home, struct str workspace,
			 const struct config_defaults *defaults, struct config *config, bool *ret_ok)
{
	struct err err;

	*ret_ok = workspace_load_config(d->ctx->arena, d->ctx, home, defaults, config, &err) == 0;
	if (*ret_ok)
		report(d, workspace, "configuration", STR("agent.yaml, .env and tools.json are valid"), NULL);
	else
		report(d, workspace, "configuration", sentence(d, &err),
		       "correct the line; docs/configuration.md lists all keys");
}

static bool has_file(struct doctor *d, struct store *home, const char *path)
{
	struct store_stat st;
	struct err err;

	return store_stat(home, d->ctx, (struct wpath){str_of(path)}, &st, &err) == 0 && st.kind == STORE_FILE;
}

static void check_identity(struct doctor *d, struct store *home, struct str workspace)
{
	static const char *const wanted[] = {"AGENTS.md", "SOUL.md", "USER.md", "HEARTBEAT.md"};
	struct buf missing;

	buf_init(&missing, d->ctx->arena, KIB);
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (!has_file(d, home, wanted[i]) && !(i == 0 && has_file(d, home, "AGENT.md")))
			buf_printf(&missing, "%s%s", missing.len ? ", " : "", wanted[i]);
	if (!missing.len)
		report(d, workspace, "identity", STR("all identity files exist"), NULL);
	else
		report(d, workspace, "identity",
		       arena_printf(d->ctx->arena, "missing: %.*s", STR_ARG(buf_str(&missing))),
		       "write them, or copy them from a new workspace: stead init NAME");
}

static void check_env_mode(struct doctor *d, struct str workspace)
{
	struct str path = arena_printf(d->ctx->arena, "%.*s/%.*s/.env", STR_ARG(d->dir), STR_ARG(workspace));
	struct stat st;

	if (!d->dir.ptr || lstat(path.ptr, &st) != 0)
		return;
	if (!S_ISREG(st.st_mode))
		report(d, workspace, ".env", STR(".env is not a plain file, so it is not read"),
		       "replace it with a plain file");
	else if (st.st_mode & 077)
		report(d, workspace, ".env",
		       arena_printf(d->ctx->arena, "others on this machine may read .env (mode %03o)",
				    (unsigned)(st.st_mode & 0777)),
		       "chmod 600 .env");
	else
		report(d, workspace, ".env", STR("only its owner may read .env"), NULL);
}

static bool is_installed(struct doctor *d, struct str command)
{
	struct str rest = str_of(getenv("PATH")), dir;

	if (str_find_char(command, '/') < command.len)
		return access(arena_cstr(d->ctx->arena, command), X_OK) == 0;
	while (rest.len && str_cut(&rest, ':', &dir))
		if (access(arena_printf(d->ctx->arena, "%.*s/%.*s", STR_ARG(dir), STR_ARG(command)).ptr, X_OK) == 0)
			return true;
	return false;
}

/* What tools.json comes to: how many names it allows and denies, and each server that is not switched off. */
static void check_tools(struct doctor *d, struct str workspace, const struct config *config)
{
	for (const struct jv_member *m = jv_first(config->mcp_servers); m; m = m->next) {
		struct str command = jv_get_str(m->value, "command"), transport = jv_get_str(m->value, "transport");
		bool off = jv_get_bool(m->value, "disabled", false);
		bool there = off || !command.len || is_installed(d, command);

		report(d, workspace, "MCP server",
		       arena_printf(d->ctx->arena, "%.*s (%.*s)%s%s", STR_ARG(utf8_first(m->key, 64)),
				    STR_ARG(transport), off ? " is switched off" : "",
				    there ? "" : ": its program is not installed"),
		       there ? NULL : "install the program, or give its full path in tools.json");
	}
	if (config->tools_allow || config->tools_deny)
		report(d, workspace, "tools",
		       arena_printf(d->ctx->arena, "%zu allowed by name%s, %zu denied", jv_count(config->tools_allow),
				    jv_count(config->tools_allow) ? "" : " (none: all are)",
				    jv_count(config->tools_deny)),
		       NULL);
}

static void check_quota(struct doctor *d, struct store *home, struct str workspace, const struct config_quota *quota)
{
	struct workspace_usage usage;
	struct err err;
	struct str detail;
	int r = workspace_count(d->ctx, home, &usage, &err);

	if (r && r != -ERR_NOT_FOUND) {
		report(d, workspace, "files", sentence(d, &err), "look at the directory with the machine's own tools");
		return;
	}
	if (r)
		usage = (struct workspace_usage){0};
	detail = arena_printf(d->ctx->arena, "%s%llu file%s, %llu byte%s", usage.partial ? "at least " : "",
			      (unsigned long long)usage.files, usage.files == 1 ? "" : "s",
			      (unsigned long long)usage.bytes, usage.bytes == 1 ? "" : "s");
	if ((quota->bytes && usage.bytes > quota->bytes / 10 * 9) ||
	    (quota->files && usage.files > quota->files / 10 * 9))
		report(d, workspace, "quota",
		       arena_printf(d->ctx->arena, "%.*s: more than nine tenths of what agent.yaml allows",
				    STR_ARG(detail)),
		       "remove files, or raise quota in agent.yaml");
	else
		report(d, workspace, "quota", detail, NULL);
}

/* The fork as a whole in place of its own directory; false when that is not possible. */
static bool check_fork(struct doctor *d, struct str name, struct store **home)
{
	struct workspace_stores place = {.base = d->base};
	struct fork_info info;
	struct store *raw;
	struct err err;
	bool is_fork;
	int r = fork_read(d->ctx, *home, &info, &is_fork, &err);

	if (!r && !is_fork)
		return true;
	if (!r)
		r = fork_open_raw(d->ctx, &place, name, &raw, &err);
	if (r) {
		report(d, name, "fork", sentence(d, &err), "restore the parent: a fork holds only its own changes");
		return false;
	}
	report(d, name, "fork",
	       arena_printf(d->ctx->arena, "a fork of %.*s at revision %llu", STR_ARG(info.parent),
			    (unsigned long long)info.revision),
	       NULL);
	store_destroy(*home);
	*home = raw;
	return true;
}

/* --- history --- */

struct damages {
	struct doctor *d;
	struct str workspace;
	const char *check;
	size_t told;
};

static const char *fsck_fix(struct doctor *d, struct str workspace)
{
	return arena_printf(d->ctx->arena,
			    "run 'stead fsck %.*s', which reads all of it; with --repair it sets aside what is damaged",
			    STR_ARG(workspace))
		.ptr;
}

static void damage_found(void *arg, struct str text)
{
	struct damages *f = arg;

	if (f->told++ < DAMAGES_NAMED)
		report(f->d, f->workspace, f->check, arena_str(f->d->ctx->arena, text), fsck_fix(f->d, f->workspace));
}

/* The end of a log: the rest is left to `stead fsck`, because a look has to cost the same at any length. `log` is NULL
   for a log that is not open, with its files in `meta`. */
static void check_log(struct doctor *d, struct str name, const char *what, struct store *log, struct store *meta)
{
	struct damages damages = {.d = d, .workspace = name, .check = what};
	struct rev_check check = {.end_only = true, .found = damage_found, .arg = &damages};
	struct err err;
	int r = log ? revisions_check(log, d->ctx, &check, &err) : revisions_check_files(meta, d->ctx, &check, &err);

	if (r)
		report(d, name, what, sentence(d, &err), fsck_fix(d, name));
	else if (check.too_large)
		report(d, name, what,
		       arena_printf(d->ctx->arena, "its newest file has %llu bytes, too many to be read here",
				    (unsigned long long)check.too_large),
		       NULL);
	else if (!check.damages)
		report(d, name, what,
		       check.last ? arena_printf(d->ctx->arena, "it is whole where it ends, at revision %llu",
						 (unsigned long long)check.last)
				  : STR("there are no revisions yet"),
		       NULL);
}

/* `home` is the workspace as it is stored. */
static void check_history(struct doctor *d, struct str name, struct store *home)
{
	struct store_list_req req = {.limit = OWN_LOGS_MAX};
	struct workspace_stores place = {.base = d->base};
	struct store *view = store_prefix_new(store_share(d->base), (struct wpath){name}), *log = NULL;
	struct store_page page = {0};
	struct err err;

	if (workspace_record(d->ctx, &place, name, store_share(home), ".stead/rev", &log, &err) != 0)
		report(d, name, "history", sentence(d, &err), fsck_fix(d, name));
	else
		check_log(d, name, "history", log, NULL);
	store_destroy(log);
	if (store_list(view, d->ctx, (struct wpath){STR(".stead/own")}, &req, &page, &err) != 0)
		page.count = 0;
	for (size_t i = 0; i < page.count; i++) {
		struct store *meta = store_prefix_new(store_share(view), page.entries[i].path);

		check_log(d, name, "history of --files", NULL, meta);
		store_destroy(meta);
	}
	store_destroy(view);
}

/* What a start would refuse, and what each family reports. */
static void check_families(struct doctor *d, struct str name)
{
	struct workspace_opts opts = {.store_url = d->url, .name = name};
	struct findings findings = {d->ctx->arena, d->checks, name};
	struct workspace *ws = NULL;
	struct toolset *set = NULL, *offered = NULL;
	struct toolset_choice choice = {0}; /* as tools.sets says */
	struct err err;

	if (workspace_open(&opts, &ws, &err) != 0 || toolset_new(ws, STR_NONE, &set, &err) != 0 ||
	    toolset_choose(set, &choice, &offered, &err) != 0)
		report(d, name, "start", sentence(d, &err), "correct this; until then, nothing can be served");
	for (size_t i = 0; ws && families[i]; i++)
		if (families[i]->check)
			families[i]->check(ws, d->ctx, &findings);
	toolset_destroy(offered);
	toolset_destroy(set);
	workspace_close(ws);
}

/* What the deployment gives every workspace: files that show through below its own, and limits that it does not set. */
static void add_deployment(struct doctor *d, const struct place_config *where, struct store **home)
{
	struct store *templates;
	struct str dir;
	struct err err;

	if (where->templates.len && place_open_one(d->ctx->arena, where, where->templates, false, false, &templates,
						   &dir, &err) == 0) /* else it is reported with the places */
		*home = store_overlay_new(*home, store_readonly_new(templates));
}

static void check_workspace(struct doctor *d, struct str name)
{
	struct store *home = store_prefix_new(store_share(d->base), (struct wpath){name});
	struct place_config where = {0};
	struct config config = {0};
	struct err err;
	bool ok;

	if (ctx_check(d->ctx, &err) != 0) {
		report(d, name, "time", sentence(d, &err), "look at this workspace alone: stead doctor NAME");
	} else if (check_fork(d, name, &home)) {
		check_history(d, name, home);
		if (place_read(d->ctx->arena, d->url, &where, &err) == 0)
			add_deployment(d, &where, &home);
		check_config(d, home, name, &where.defaults, &config, &ok);
		check_identity(d, home, name);
		check_env_mode(d, name);
		check_leftovers(d, name);
		check_tools(d, name, &config);
		check_quota(d, home, name, &config.quota);
		if (ok)
			check_families(d, name);
	}
	store_destroy(home);
}

static void check_all(struct doctor *d)
{
	struct jv *good = jv_array(d->ctx->arena), *bad = jv_array(d->ctx->arena);
	struct err err;

	if (workspace_names(d->ctx, d->base, good, bad, &err) != 0) {
		report(d, STR_NONE, "workspaces", sentence(d, &err), store_fix(d));
		return;
	}
	for (const struct jv_member *m = jv_first(bad); m; m = m->next)
		report(d, STR_NONE, "names",
		       arena_printf(d->ctx->arena, "\"%.*s\" cannot be the name of a workspace",
				    STR_ARG(m->value->u.s)),
		       "rename the directory: 2 to 64 lower-case letters, digits, '-' and '_', beginning with a "
		       "letter");
	if (!jv_count(good))
		report(d, STR_NONE, "workspaces", STR("there is no workspace yet"), "create one: stead init NAME");
	for (const struct jv_member *m = jv_first(good); m; m = m->next)
		check_workspace(d, m->value->u.s);
}

static void check_named(struct doctor *d, struct str name)
{
	struct err err;

	if (!workspace_name_ok(name)) {
		workspace_bad_name(name, &err);
		report(d, name, "name", sentence(d, &err), "choose another name");
	} else if (store_stat(d->base, d->ctx, (struct wpath){name}, NULL, &err) != 0) {
		report(d, name, "workspace", sentence(d, &err),
		       err.kind == ERR_NOT_FOUND
			       ? "create it with 'stead init NAME'; 'stead list' shows the existing workspaces"
			       : store_fix(d));
	} else {
		check_workspace(d, name);
	}
}

int workspace_doctor(struct ctx *ctx, struct str store_url, struct str name, struct jv **ret_checks, struct err *err)
{
	struct ctx own = *ctx;
	struct doctor d = {.ctx = &own, .checks = jv_array(ctx->arena)};

	(void)err; /* problems are reported as checks */
	if (!own.deadline_ns)
		own.deadline_ns = clock_monotonic_ns() + (int64_t)DOCTOR_SECONDS * 1000000000;
	check_openat2(&d);
	check_descriptors(&d);
	check_sandbox(&d);
	if (open_store(&d, store_url)) {
		check_writable(&d);
		if (name.len)
			check_named(&d, name);
		else
			check_all(&d);
		store_destroy(d.base);
	}
	*ret_checks = d.checks;
	return 0;
}
