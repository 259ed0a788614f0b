/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead doctor` on a deployment: stead.yaml, and each store that it names, by itself. Each store is tested for what
 * Stead needs: that it answers, how long that takes, that it honours conditions, and that its clock roughly agrees with
 * ours. The test files are written to .stead/ of the store and removed again. URLs are shown without their passwords.
 */
#include "admin/doctor.h"
#include "base/clock.h"
#include "base/limits.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

#define CLOCK_APART_NS (INT64_C(60) * 1000000000)

struct place_check {
	struct ctx *ctx;
	struct jv *checks;
	const char *key; /* of stead.yaml */
};

static void tell(struct place_check *c, const char *check, struct str detail, const char *fix)
{
	finding_add(&(struct findings){c->ctx->arena, c->checks, STR_NONE},
		    arena_printf(c->ctx->arena, "%s%s%s", c->key, check[0] ? " " : "", check).ptr, detail, fix);
}

static void tell_err(struct place_check *c, const char *check, const struct err *err, const char *fix)
{
	tell(c, check, err_text(c->ctx->arena, err), fix);
}

/* The second create of one name and a write over another version have to be refused. */
static int try_conditions(struct store *s, struct ctx *ctx, struct wpath path, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT}, other = {.kind = STORE_VERSION, .version = STR("other")};
	int r = store_write(s, ctx, path, STR("again\n"), absent, NULL, err);

	if (r == 0 || (r != -ERR_EXISTS && r != -ERR_CONFLICT))
		return r ? r : err_set(err, ERR_UNSUPPORTED, "the store created a file that already existed");
	r = store_write(s, ctx, path, STR("again\n"), other, NULL, err);
	if (r == 0)
		return err_set(err, ERR_UNSUPPORTED, "the store did not refuse a write over another version");
	return r == -ERR_CONFLICT ? 0 : r;
}

static void check_clock(struct place_check *c, int64_t there_ns, int64_t here_ns)
{
	int64_t apart = there_ns - here_ns;

	if (apart > -CLOCK_APART_NS && apart < CLOCK_APART_NS)
		tell(c, "clock", STR("the store's clock is this machine's, within a minute"), NULL);
	else
		tell(c, "clock",
		     arena_printf(c->ctx->arena, "the store's clock is %lld seconds %s of this machine's",
				  (long long)((apart < 0 ? -apart : apart) / 1000000000),
				  apart < 0 ? "behind" : "ahead"),
		     "set the clocks of both (NTP): signatures and the times of files depend on them");
}

static void probe_store(struct place_check *c, struct store *s)
{
	struct arena *arena = c->ctx->arena;
	struct wpath path = {arena_printf(arena, ".stead/doctor-%016llx", (unsigned long long)random_u64())};
	int64_t start = clock_monotonic_ns(), wrote, read;
	struct store_stat stat;
	struct err err, ignored;
	struct str back;
	int r = store_write(s, c->ctx, path, STR("stead doctor was here\n"), (struct store_cond){.kind = STORE_ABSENT},
			    NULL, &err);

	wrote = clock_monotonic_ns();
	if (!r)
		r = store_read(s, c->ctx, path, STORE_WHOLE, KIB, &back, &stat, &err);
	read = clock_monotonic_ns();
	if (r) {
		tell_err(c, r == -ERR_UNSUPPORTED ? "conditions" : "write", &err,
			 "give this user the right to write there, or name another store");
		return;
	}
	tell(c, "latency",
	     arena_printf(arena, "a write takes %.1f ms, a read %.1f ms", (double)(wrote - start) / 1e6,
			  (double)(read - wrote) / 1e6),
	     NULL);
	if (try_conditions(s, c->ctx, path, &err))
		tell_err(c, "conditions", &err, "use a store with conditional writes, or one writer");
	else
		tell(c, "conditions", STR("conditional writes are kept"), NULL);
	check_clock(c, stat.mtime_ns, clock_real_ns());
	store_remove(s, c->ctx, path, false, (struct store_cond){0}, NULL, &ignored);
}

/* Further checks for a store that is a server. */
static void check_server(struct place_check *c, struct store *s, struct str url)
{
	const char *advice = store_redis_advice(s);

	if (advice)
		tell(c, "server", arena_str(c->ctx->arena, str_of(advice)), "change the server's settings as it says");
	if (str_starts(url, STR("postgres")) || str_starts(url, STR("mysql:")) || str_starts(url, STR("mariadb:")))
		tell(c, "schema",
		     arena_printf(c->ctx->arena, "the schema has version %d, as this Stead expects",
				  str_starts(url, STR("postgres")) ? store_postgres_schema_version()
								   : store_mysql_schema_version()),
		     NULL);
}

static void check_store(struct place_check c, const struct place_config *config, struct str url, bool is_read_only)
{
	struct ctx *ctx = c.ctx;
	struct str shown = store_url_shown(ctx->arena, url);
	struct store_list_req req = {.limit = 1};
	struct store_page page;
	struct store *s;
	struct str dir;
	struct err err;
	int r = store_url_is_local(url) ? place_open_one(ctx->arena, config, url, false, false, &s, &dir, &err)
					: store_open_url(url, &config->env, &s, &err);

	if (r == -ERR_NOT_FOUND && !is_read_only) {
		tell(&c, "", arena_printf(ctx->arena, "%.*s does not exist yet", STR_ARG(shown)),
		     "create the first workspace: stead init NAME");
		return;
	}
	if (r) {
		tell_err(&c, "", &err, "correct the URL or its credentials, or start the server");
		return;
	}
	r = store_list(s, ctx, WPATH_ROOT, &req, &page, &err);
	if (r && r != -ERR_NOT_FOUND) {
		tell_err(&c, "", &err, "correct the URL or its credentials, or start the server");
	} else {
		tell(&c, "", arena_printf(ctx->arena, "%.*s answers", STR_ARG(shown)), NULL);
		check_server(&c, s, url);
		if (!is_read_only && !store_url_is_local(url))
			probe_store(&c, s);
	}
	store_destroy(s);
}

bool doctor_check_place(struct ctx *ctx, struct str url, struct jv *checks)
{
	struct place_check c = {.ctx = ctx, .checks = checks, .key = "stead.yaml"};
	struct place_config config;
	struct err err;

	if (place_read(ctx->arena, url, &config, &err)) {
		tell_err(&c, "", &err, "correct it; 'stead schema stead.yaml' has all keys");
		return false;
	}
	if (config.file.ptr)
		tell(&c, "",
		     arena_printf(ctx->arena, "%.*s is right, for %llu %s", STR_ARG(config.file),
				  (unsigned long long)config.replicas, config.replicas == 1 ? "replica" : "replicas"),
		     NULL);
	else if (store_url_is_local(config.store))
		return true;
	check_store((struct place_check){ctx, checks, "store"}, &config, config.store, false);
	if (config.state.len)
		check_store((struct place_check){ctx, checks, "state"}, &config, config.state, false);
	if (config.templates.len)
		check_store((struct place_check){ctx, checks, "templates"}, &config, config.templates, true);
	for (const struct jv_member *m = jv_first(config.users); m; m = m->next)
		if (jv_get_str(m->value, "store").len)
			check_store(
				(struct place_check){ctx, checks,
						     arena_printf(ctx->arena, "users.%.*s.store", STR_ARG(m->key)).ptr},
				&config, jv_get_str(m->value, "store"), false);
	return true;
}
