/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packages are installed in the sandbox, by pip, into a home that is kept (sandbox/snapshot.h) and that calls of
 * tools see read-only. There is no network: wheels come from tools/wheels/, which people write and agents cannot. What
 * is installed is known by a hash over the requirements and the wheels, so a change installs again, once for all
 * machines that share the store.
 */
#include "agent/custom_packages.h"

#include "base/hash.h"
#include "base/limits.h"
#include "sandbox/snapshot.h"
#include "store/stores.h"
#include "text/tar.h"
#include "workspace/workspace.h"

#define REQUIREMENTS "tools/requirements.txt"
#define WHEELS       "tools/wheels"
#define PLACE        "/home/.packages"
#define INSTALL_MS   600000
#define PATH_VAR     "PYTHONPATH=" PLACE

/* pip of the machine, or the one that comes with a virtual environment. The old packages go only when the new ones are
   there. */
static const char script[] =
	"mkdir /tmp/w && tar -xf - -C /tmp/w || exit 1\n"
	"pip='python3 -m pip'\n"
	"$pip --version >/dev/null 2>&1 || { python3 -m venv /tmp/v && pip=/tmp/v/bin/pip; } || exit 1\n"
	"$pip install --quiet --disable-pip-version-check --no-cache-dir --no-index --find-links "
	"/tmp/w/tools/wheels --target /tmp/new -r /tmp/w/tools/requirements.txt >&2 || exit 1\n"
	"rm -rf " PLACE " && mkdir -p /tmp/new && cp -r /tmp/new " PLACE "\n";

static int add_file(struct ctx *ctx, struct store *home, struct wpath path, struct buf *out, struct err *err)
{
	static const char zeros[TAR_BLOCK] = {0};
	struct tar_entry entry = {.name = path.s};
	struct str bytes;
	int r = store_read(home, ctx, path, STORE_WHOLE, PACKAGES_MAX, &bytes, NULL, err);

	if (r)
		return r;
	entry.size = bytes.len;
	tar_header(out, &entry);
	buf_add(out, bytes);
	buf_add(out, str_n(zeros, tar_padding(entry.size)));
	return 0;
}

/* The requirements and all wheels as an archive. */
static int pack(struct ctx *ctx, struct store *home, const struct store_page *wheels, struct buf *out, struct err *err)
{
	static const char end[TAR_END_LEN] = {0};
	int r = add_file(ctx, home, (struct wpath){STR(REQUIREMENTS)}, out, err);

	for (size_t i = 0; i < wheels->count && r == 0; i++)
		if (wheels->entries[i].stat.kind == STORE_FILE)
			r = add_file(ctx, home, wheels->entries[i].path, out, err);
	buf_add(out, str_n(end, sizeof end));
	if (r == 0 && out->overflow)
		r = err_set(err, ERR_TOO_LARGE, WHEELS " has more than %zu MiB", PACKAGES_MAX / MIB);
	return r;
}

static int install(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *call, struct str archive,
		   struct err *err)
{
	static const char *const argv[] = {"sh", "-c", script, NULL};
	struct sandbox_result result;
	struct sandbox_job job;
	struct str said;
	size_t at;
	int r = exec_job(ws, ctx, &job, err);

	if (r)
		return r;
	job.argv = argv;
	job.input = archive;
	job.env = NULL;
	job.files = (struct sandbox_files){0};
	job.limits.timeout_ms = INSTALL_MS;
	job.keep = call->keep;
	job.owner = call->owner; /* whose files they are */
	r = exec_run(ws, ctx, &job, &result, err);
	if (r)
		return r;
	said = result.exit_code      ? str_trim(result.said.text)
	       : result.change_count ? result.changes[0].reason /* it could not be kept */
				     : STR_NONE;
	sandbox_result_release(&result);
	if (result.exit_code == 0 && !said.len)
		return 0;
	at = str_rfind_char(said, '\n'); /* pip gives the reason last, after its warnings */
	said = at < said.len ? str_from(said, at + 1) : said;
	return err_set(err, ERR_UNAVAILABLE,
		       "the packages of " REQUIREMENTS " cannot be installed from " WHEELS ": %.*s",
		       STR_ARG(utf8_first(said, 300)));
}

/* Changes whenever the list or a wheel does. */
static struct str hash_of(struct arena *arena, struct str requirements, const struct store_page *wheels)
{
	struct buf text;

	buf_init(&text, arena, MIB);
	buf_add(&text, requirements);
	for (size_t i = 0; i < wheels->count; i++)
		buf_printf(&text, "\n%.*s %.*s", STR_ARG(wheels->entries[i].path.s),
			   STR_ARG(wheels->entries[i].stat.version));
	return hash_hex128(arena, buf_str(&text));
}

/* What is installed, as far as it is; empty: nothing. */
static int installed(struct ctx *ctx, const struct sandbox_keep *keep, struct str *ret, struct err *err)
{
	struct store *one = store_prefix_new(store_share(keep->store), keep->dir);
	struct snapshot_info info;
	int r = snapshot_show(one, ctx, &info, err);

	*ret = r ? STR_NONE : jv_get_str(info.about, "packages");
	store_destroy(one);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static const char *const *add_path(struct arena *arena, const char *const *have)
{
	size_t n = 0;
	const char **env;

	while (have && have[n])
		n++;
	env = ARENA_ARRAY(arena, const char *, n + 2);
	for (size_t i = 0; i < n; i++)
		env[i] = have[i];
	env[n] = PATH_VAR;
	return env;
}

int custom_packages(struct workspace *ws, struct ctx *ctx, struct sandbox_job *job, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct store *home = workspace_home(ws);
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct jv *scope = jv_object(arena), *about;
	struct store_page wheels = {0};
	struct sandbox_keep *keep;
	struct str requirements, want, have;
	struct buf archive;
	int r = store_read(home, ctx, (struct wpath){STR(REQUIREMENTS)}, STORE_WHOLE, 64 * KIB, &requirements, NULL,
			   err);

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = store_list(home, ctx, (struct wpath){STR(WHEELS)}, &req, &wheels, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	jv_set_str(arena, scope, "scope", STR("tools"));
	r = exec_keep_as(ws, ctx, scope, job, err);
	if (r)
		return r;
	want = hash_of(arena, requirements, &wheels);
	about = jv_copy(arena, scope);
	jv_set_str(arena, about, "packages", want);
	keep = ARENA_NEW(arena, struct sandbox_keep);
	*keep = *job->keep;
	keep->about = about;
	job->keep = keep;
	r = installed(ctx, keep, &have, err);
	if (r == 0 && !str_eq(have, want)) {
		buf_init(&archive, arena, PACKAGES_MAX);
		r = pack(ctx, home, &wheels, &archive, err);
		if (r == 0)
			r = install(ws, ctx, job, buf_str(&archive), err);
	}
	keep->read_only = true;
	job->env = add_path(arena, job->env);
	return r;
}
