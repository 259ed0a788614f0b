/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From configuration to stores. The stack of one deployment, outermost first:
 *
 *  - mounts: the users' own parts, in the stores that stead.yaml names for them;
 *  - split: what a running system needs (.stead/, agents/, tasks/) in the state store, all else in the files store; the
 *    two are one tree to everything above;
 *  - cache: around each remote store, the bytes of files that were read once;
 *  - the backend, which repeats requests that failed for a passing reason: nothing above it does.
 *
 * Directories are opened twice, as a workspace without stead.yaml does: once without waiting for the disk, for files,
 * and once with, for the log that makes them durable. Every other store is opened once and shared.
 */
#include "workspace/place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/dotenv.h"
#include "text/schema.h"
#include "text/yaml.h"
#include "workspace/embedded.h"
#include "workspace/workspace_parts.h"

#define CONFIG_SCHEME "config:"
#define CACHE_DEFAULT ((uint64_t)1024 * MIB)

struct str place_schema(void)
{
	return embedded_stead_schema;
}

/* --- reading --- */

static int read_host_file(struct arena *arena, const char *path, size_t max, bool may_miss, struct str *ret,
			  struct err *err)
{
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char *text;
	size_t len = 0;

	*ret = STR_NONE;
	if (fd < 0 && errno == ENOENT && may_miss)
		return 0;
	if (fd < 0 && errno == ENOENT) /* not "not found": that is what a workspace may be */
		return err_set(err, ERR_INVALID,
			       "there is no file \"%s\"; name the deployment's stead.yaml with --config", path);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "\"%s\" cannot be read", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "\"%s\" is not a file", path);
	if ((uint64_t)st.st_size > max)
		return err_set(err, ERR_TOO_LARGE, "\"%s\" is larger than %zu bytes", path, max);
	text = arena_alloc_raw(arena, (size_t)st.st_size + 1);
	for (ssize_t n = 1; n && len < (size_t)st.st_size; len += (size_t)n) {
		n = read(fd, text + len, (size_t)st.st_size - len);
		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "\"%s\" cannot be read", path);
		n = n < 0 ? 0 : n;
	}
	*ret = str_n(text, len);
	return 0;
}

static struct str directory_of(struct arena *arena, struct str file)
{
	size_t slash = str_rfind_char(file, '/');

	if (slash == file.len)
		return STR(".");
	return slash ? arena_str(arena, str_first(file, slash)) : STR("/");
}

static struct str path_relative_to(struct arena *arena, struct str file, struct str path)
{
	if (path.len && path.ptr[0] == '/')
		return path;
	if (str_starts(path, STR("./")))
		path = str_from(path, 2);
	return arena_printf(arena, "%.*s/%.*s", STR_ARG(directory_of(arena, file)), STR_ARG(path));
}

/* "disk:./x" in stead.yaml is relative to stead.yaml, wherever the program was started. */
static struct str url_in(struct arena *arena, struct str file, struct str url)
{
	if (!str_starts(url, STR("disk:")))
		return url;
	return arena_printf(arena, "disk:%.*s", STR_ARG(path_relative_to(arena, file, str_from(url, 5))));
}

int place_host_file(struct arena *arena, struct str path, size_t max, struct str *ret, struct err *err)
{
	if (memchr(path.ptr, 0, path.len))
		return err_set(err, ERR_INVALID, "the name of a file has a NUL character");
	if (access(arena_cstr(arena, path), R_OK) != 0)
		return err_sys(err, errno, "\"%.*s\" cannot be read", STR_ARG(utf8_first(path, 200)));
	return read_host_file(arena, arena_cstr(arena, path), max, false, ret, err);
}

static int read_env(struct arena *arena, struct str file, struct jv **ret_vars, struct err *err)
{
	struct str path = path_relative_to(arena, file, STR(".env")), text;
	int r = read_host_file(arena, arena_cstr(arena, path), ENV_LEN_MAX, true, &text, err);

	if (!r)
		r = dotenv_parse(arena, text, ret_vars, err);
	if (r)
		return err_prefix(err, "%.*s", STR_ARG(path));
	return 0;
}

static struct env env_of(struct arena *arena, const struct jv *vars)
{
	struct env_var *list = ARENA_ARRAY(arena, struct env_var, jv_count(vars));
	size_t n = 0;

	for (const struct jv_member *m = jv_first(vars); m; m = m->next)
		list[n++] = (struct env_var){arena_cstr(arena, m->key), arena_cstr(arena, jv_str_of(m->value))};
	return (struct env){list, n};
}

/* What a place in another system's words says of keys and addresses, and after it what .env says. */
static struct env_var *env_list(struct arena *arena, const struct place_spec *spec, const struct env *more)
{
	size_t count = spec->env_count + (more ? more->count : 0), n = spec->env_count;
	struct env_var *list = ARENA_ARRAY(arena, struct env_var, count + 1);

	for (size_t i = 0; i < n; i++)
		list[i] = spec->env[i];
	for (size_t i = 0; more && i < more->count; i++)
		list[n++] = more->vars[i];
	return list;
}

/* Keys of agent.yaml in stead.yaml hold for every workspace. They are taken out of `document`; `quota`, which both
   files have, stays in it too. */
static int take_defaults(struct arena *arena, const char *path, const struct jv *schema, struct jv *document,
			 const struct jv **ret, struct err *err)
{
	const struct jv *own = jv_get(schema, "properties");
	struct jv *defaults = jv_object(arena);

	for (const struct jv_member *m = jv_first(document), *next; m; m = next) {
		next = m->next;
		if (!config_has_key(arena, m->key))
			continue;
		jv_set_key(arena, defaults, m->key, m->value);
		if (!jv_get_key(own, m->key))
			jv_remove(document, arena_cstr(arena, m->key));
	}
	*ret = defaults;
	return config_check(arena, defaults, path, err);
}

static int read_document(struct arena *arena, struct place_config *c, struct jv **ret, struct err *err)
{
	const char *path = arena_cstr(arena, c->file);
	struct jv *vars, *schema;
	struct str text;
	int r = read_host_file(arena, path, YAML_LEN_MAX, false, &text, err);

	if (r)
		return r;
	r = read_env(arena, c->file, &vars, err);
	if (r)
		return r;
	r = yaml_parse(arena, text, ret, err);
	if (!r && (*ret)->type == JV_NULL)
		*ret = jv_object(arena);
	if (!r)
		r = dotenv_expand(arena, *ret, vars, err);
	if (r)
		return err_prefix(err, "%s", path);
	c->env = env_of(arena, vars);
	c->defaults.vars = vars;
	r = jv_parse(arena, embedded_stead_schema, &schema, err);
	if (!r && (*ret)->type == JV_OBJECT)
		r = take_defaults(arena, path, schema, *ret, &c->defaults.document, err);
	return r ? r : schema_check(schema, *ret, path, err);
}

/* --- what cannot work --- */

static int refuse_local(const struct place_config *c, const char *what, const char *key, struct str url,
			struct err *err)
{
	return err_set(err, ERR_INVALID,
		       "%.*s: replicas is %llu, but %s would be stored in \"%.*s\", which only one machine can see, so "
		       "each machine would have its own; set \"%s:\" to a store that all can reach (s3://, redis://, "
		       "postgres:// or mysql://), or replicas to 1",
		       STR_ARG(c->file), (unsigned long long)c->replicas, what, STR_ARG(utf8_first(url, 100)), key);
}

static int check_replicas(struct arena *arena, const struct place_config *c, struct err *err)
{
	struct str state = c->state.len ? c->state : c->store;

	if (c->replicas <= 1)
		return 0;
	if (store_url_is_local(state))
		return refuse_local(c, "runtime state", c->state.len ? "state" : "store", state, err);
	if (store_url_is_local(c->store))
		return refuse_local(c, "files", "store", c->store, err);
	for (const struct jv_member *m = jv_first(c->users); m; m = m->next) {
		struct str url = jv_get_str(m->value, "store");

		if (store_url_is_local(url))
			return refuse_local(c, "a user's files",
					    arena_printf(arena, "users.%.*s.store", STR_ARG(m->key)).ptr, url, err);
	}
	return 0;
}

static int read_cache(struct arena *arena, const struct jv *document, struct place_config *c, struct err *err)
{
	const struct jv *cache = jv_get(document, "cache");
	struct str dir = jv_get_str(cache, "dir");
	const char *own = env_process("XDG_CACHE_HOME"), *home = env_process("HOME");

	if (!config_size(jv_get(cache, "bytes"), CACHE_DEFAULT, &c->cache_bytes))
		return err_set(err, ERR_INVALID, "%.*s: cache.bytes is larger than any disk; write a smaller size",
			       STR_ARG(c->file));
	if (str_is(dir, "memory"))
		c->cache_dir = STR_NONE;
	else if (dir.len)
		c->cache_dir = path_relative_to(arena, c->file, dir);
	else if (own && own[0] == '/')
		c->cache_dir = arena_printf(arena, "%s/stead", own);
	else if (home && home[0] == '/')
		c->cache_dir = arena_printf(arena, "%s/.cache/stead", home);
	return 0;
}

static enum place_scope scope_of(struct str word)
{
	if (str_is(word, "session"))
		return SCOPE_SESSION;
	if (str_is(word, "agent"))
		return SCOPE_AGENT;
	if (str_is(word, "user_or_session"))
		return SCOPE_USER_OR_SESSION;
	return str_is(word, "global") ? SCOPE_GLOBAL : SCOPE_USER;
}

/* A user's store is kept as it will be opened. */
static const struct jv *read_users(struct arena *arena, const struct jv *document, struct str file)
{
	const struct jv *given = jv_get(document, "users");
	struct jv *users = jv_object(arena);

	for (const struct jv_member *m = jv_first(given); m; m = m->next) {
		struct jv *one = jv_object(arena);

		jv_set_str(arena, one, "store", url_in(arena, file, jv_get_str(m->value, "store")));
		jv_set_key(arena, users, m->key, one);
	}
	return users;
}

/* Where the workspaces of a stead.yaml without a store are. */
static int unnamed_store(struct arena *arena, struct place_config *c, struct err *err)
{
	struct str set = str_of(env_process("STEAD_STORE"));

	if (place_is_spec(set) || workspace_is_temp(set))
		return err_set(err, ERR_INVALID,
			       "%.*s names no store, and $STEAD_STORE cannot be used with it; write \"store\" "
			       "into the file",
			       STR_ARG(c->file));
	c->store = set.len && !str_starts(set, STR(CONFIG_SCHEME)) ? workspace_url(arena, set)
								   : workspace_default_store(arena);
	return 0;
}

int place_read(struct arena *arena, struct str url, struct place_config *ret, struct err *err)
{
	struct place_config c = {.replicas = 1};
	struct jv *document;
	int r;

	if (!str_starts(url, STR(CONFIG_SCHEME))) {
		if (place_is_spec(url)) {
			r = place_spec_parse(arena, url, &c.spec, err);
			if (r)
				return r;
			url = c.spec.store;
			c.env = (struct env){env_list(arena, &c.spec, NULL), c.spec.env_count};
		}
		if (workspace_is_temp(url))
			return err_set(err, ERR_INVALID, "a temporary store is always new and empty; name another");
		c.store = url.len ? workspace_url(arena, url) : workspace_default_store(arena);
		r = read_cache(arena, NULL, &c, err);
		*ret = c;
		return r;
	}
	c.file = arena_str(arena, str_from(url, sizeof CONFIG_SCHEME - 1));
	if (!c.file.len || memchr(c.file.ptr, 0, c.file.len) || c.file.len > 4 * PATH_LEN_MAX)
		return err_set(err, ERR_INVALID, "\"config:\" names no file; write \"config:stead.yaml\"");
	r = read_document(arena, &c, &document, err);
	if (r)
		return r;
	c.store = url_in(arena, c.file, jv_get_str(document, "store"));
	if (!c.store.len && jv_get(document, "workspaces_path"))
		c.store = url_in(arena, c.file,
				 arena_printf(arena, "disk:%.*s", STR_ARG(jv_get_str(document, "workspaces_path"))));
	if (jv_get(document, "workspace_config")) {
		if (c.store.len)
			return err_set(err, ERR_INVALID,
				       "%.*s: both \"store\" and \"workspace_config\" say where files are; remove one",
				       STR_ARG(c.file));
		r = place_spec_read(arena, jv_get(document, "workspace_config"), &c.spec, err);
		if (r)
			return err_prefix(err, "%.*s", STR_ARG(c.file));
		c.store = url_in(arena, c.file, c.spec.store);
		c.env = (struct env){env_list(arena, &c.spec, &c.env), c.spec.env_count + c.env.count};
	}
	c.state = url_in(arena, c.file, jv_get_str(document, "state"));
	c.templates = url_in(arena, c.file, jv_get_str(document, "templates"));
	r = c.store.len ? 0 : unnamed_store(arena, &c, err);
	if (r)
		return r;
	c.server = jv_get(document, "server");
	c.replicas = (uint64_t)jv_get_int(document, "replicas", 1);
	c.scope = scope_of(jv_get_str(document, "isolation"));
	c.users = read_users(arena, document, c.file);
	r = read_cache(arena, document, &c, err);
	if (!r)
		r = check_replicas(arena, &c, err);
	if (!r)
		*ret = c;
	return r;
}

uint64_t place_version(struct arena *arena, struct str url)
{
	struct str file = str_from(url, sizeof CONFIG_SCHEME - 1), text;
	struct str files[] = {file, STR_NONE};
	uint64_t version = 1;
	struct err ignored;

	if (!str_starts(url, STR(CONFIG_SCHEME)))
		return 0;
	files[1] = path_relative_to(arena, file, STR(".env"));
	for (size_t i = 0; i < COUNT(files); i++)
		if (read_host_file(arena, arena_cstr(arena, files[i]), YAML_LEN_MAX, true, &text, &ignored) == 0)
			version = version * 31 + hash_u64(text, i);
	return version;
}

bool place_is_remote(const struct place_config *c)
{
	const struct str urls[] = {c->store, c->state, c->templates};

	for (size_t i = 0; i < COUNT(urls); i++)
		if (urls[i].len && !store_url_is_local(urls[i]))
			return true;
	for (const struct jv_member *m = jv_first(c->users); m; m = m->next)
		if (!store_url_is_local(jv_get_str(m->value, "store")))
			return true;
	return false;
}

/* --- namespaces --- */

int place_namespace(struct arena *arena, enum place_scope scope, const struct actor *actor, struct wpath *ret,
		    struct err *err)
{
	/* '@' cannot come from an encoded name, so a user called "session…" meets no session */
	static const char *const marks[] = {
		[SCOPE_USER] = "", [SCOPE_SESSION] = "@session.", [SCOPE_AGENT] = "@agent.", [SCOPE_GLOBAL] = ""};
	const struct str names[] = {[SCOPE_USER] = actor->user,
				    [SCOPE_SESSION] = actor->session,
				    [SCOPE_AGENT] = actor->agent,
				    [SCOPE_GLOBAL] = STR_NONE};

	*ret = WPATH_ROOT;
	if (scope == SCOPE_USER_OR_SESSION)
		scope = actor->user.len ? SCOPE_USER : SCOPE_SESSION;
	if (!names[scope].len)
		return 0;
	return wpath_parse(
		arena_printf(arena, "users/%s%.*s", marks[scope], STR_ARG(workspace_encode_name(arena, names[scope]))),
		ret, err);
}

/* --- opening --- */

/* What a running system needs, in every workspace and in every user's part of one. */
static enum split_side side_of(struct wpath path)
{
	struct str rest = path.s, name;

	if (!str_cut(&rest, '/', &name) || !rest.len)
		return SPLIT_BOTH; /* the root, a workspace */
	str_cut(&rest, '/', &name);
	if (str_is(name, "users")) {
		if (!str_cut(&rest, '/', &name) || !rest.len)
			return SPLIT_BOTH; /* users/, users/ann */
		str_cut(&rest, '/', &name);
	}
	return str_is(name, ".stead") || str_is(name, "agents") || str_is(name, "tasks") ? SPLIT_SECOND : SPLIT_FIRST;
}

static int open_disk(struct arena *arena, struct str url, bool create, bool relaxed, struct store **ret_store,
		     struct str *ret_dir, struct err *err)
{
	struct store_disk_opts opts = {.create = create, .relaxed = relaxed};

	if (memchr(url.ptr, 0, url.len))
		return err_set(err, ERR_INVALID, "the directory of the store has a NUL character");
	*ret_dir = arena_str(arena, str_from(url, 5));
	return store_disk_open(ret_dir->ptr, &opts, ret_store, err);
}

int place_open_one(struct arena *arena, const struct place_config *config, struct str url, bool create, bool relaxed,
		   struct store **ret_store, struct str *ret_dir, struct err *err)
{
	struct cache_opts cache = {.bytes = config->cache_bytes};
	struct ctx limits = {.deadline_ns = config->deadline_ns, .cancel = config->cancel};
	struct store *s;
	int r;

	*ret_dir = STR_NONE;
	if (str_starts(url, STR("disk:")) && url.len > 5)
		return open_disk(arena, url, create, relaxed, ret_store, ret_dir, err);
	r = store_open_url_within(url, &config->env, &limits, &s, err);
	if (r)
		return r;
	if (!store_url_is_local(url)) {
		cache.identity = store_url_shown(arena, url);
		cache.dir = config->cache_dir.len ? arena_cstr(arena, config->cache_dir) : NULL;
		if (cache.bytes)
			s = store_cache_new(s, cache);
	}
	*ret_store = s;
	return 0;
}

/* --- users' own stores --- */

/* A store that is opened when it is first needed. All users' stores are part of a workspace, since opening it may have
   to complete another user's unfinished change; but one that cannot be reached must not close it to the others, and
   most are never needed. */
struct lazy {
	struct store base;
	pthread_mutex_t lock;
	struct arena *arena;
	struct place_config config;
	struct str url;
	bool create, relaxed;
};

static int lazy_around(struct store *store, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct lazy *l = (struct lazy *)store;
	struct store *inner;
	struct str dir;
	int r = 0;

	pthread_mutex_lock(&l->lock);
	l->config.deadline_ns = ctx->deadline_ns;
	l->config.cancel = ctx->cancel;
	if (!store->inner)
		r = place_open_one(l->arena, &l->config, l->url, l->create, l->relaxed, &store->inner, &dir, err);
	inner = store->inner;
	pthread_mutex_unlock(&l->lock);
	return r ? r : store_forward(inner, ctx, call, err);
}

static void lazy_destroy(struct store *store)
{
	struct lazy *l = (struct lazy *)store;

	pthread_mutex_destroy(&l->lock);
	arena_destroy(l->arena);
	free(l);
}

static const struct store_ops lazy_ops = {.name = "user's", .around = lazy_around, .destroy = lazy_destroy};

static struct store *lazy_new(const struct place_config *config, struct str url, bool relaxed)
{
	struct lazy *l = xcalloc(1, sizeof *l);

	l->base.ops = &lazy_ops;
	pthread_mutex_init(&l->lock, NULL);
	l->arena = arena_new();
	l->config = (struct place_config){.cache_bytes = config->cache_bytes,
					  .cache_dir = arena_str(l->arena, config->cache_dir),
					  .env = env_copy(l->arena, &config->env)};
	l->url = arena_str(l->arena, url);
	l->create = true;
	l->relaxed = relaxed;
	return &l->base;
}

/* --- the whole --- */

enum { PART_FILES, PART_STATE, PARTS };

struct place {
	struct arena *arena;
	struct place_config config; /* the strings are the opener's, and outlive this */
	struct str workspace;       /* whose users have their stores mounted; empty: none's */
	struct str urls[PARTS];     /* empty: there is none */
	struct store *parts[PARTS];
	struct store *base, *durable; /* they share the parts */
	struct store *templates;
};

static bool is_disk(struct str url)
{
	return str_starts(url, STR("disk:"));
}

static struct store *with_users(struct place *p, struct store *s, bool relaxed)
{
	size_t count = p->workspace.len && p->config.scope == SCOPE_USER ? jv_count(p->config.users) : 0, n = 0;
	struct store_mount *mounts;

	if (!count)
		return s;
	mounts = ARENA_ARRAY(p->arena, struct store_mount, count);
	for (const struct jv_member *m = jv_first(p->config.users); m; m = m->next) {
		struct str at = arena_printf(p->arena, "%.*s/users/%.*s", STR_ARG(p->workspace),
					     STR_ARG(workspace_encode_name(p->arena, m->key)));
		struct store *own = lazy_new(&p->config, jv_get_str(m->value, "store"), relaxed);

		mounts[n++] = (struct store_mount){.at = {at}, .store = store_prefix_new(own, (struct wpath){at})};
	}
	return store_mounts_new(s, mounts, n);
}

/* Takes the parts over. */
static struct store *put_together(struct place *p, struct store *const parts[PARTS], bool relaxed)
{
	struct store *s = parts[PART_FILES];

	if (parts[PART_STATE])
		s = store_split_new(s, parts[PART_STATE], side_of);
	return with_users(p, s, relaxed);
}

static int open_templates(struct place *p, const struct place_config *c, struct err *err)
{
	struct str dir;
	int r = c->templates.len ? place_open_one(p->arena, c, c->templates, false, true, &p->templates, &dir, err) : 0;

	if (r)
		return err_prefix(err, "templates");
	if (p->templates)
		p->templates = store_readonly_new(p->templates);
	return 0;
}

int place_open(struct arena *arena, const struct place_config *config, const struct place_want *want,
	       struct place **ret_place, struct str *ret_dir, struct err *err)
{
	struct place *p = xcalloc(1, sizeof *p);
	struct store *views[PARTS] = {0};
	int r = 0;

	p->arena = arena_new();
	p->config = *config;
	p->workspace = arena_str(p->arena, want->workspace);
	p->urls[PART_FILES] = arena_str(p->arena, config->store);
	if (!str_eq(config->state, config->store))
		p->urls[PART_STATE] = arena_str(p->arena, config->state);
	*ret_dir = STR_NONE;
	for (size_t i = 0; !r && i < PARTS; i++) {
		struct str dir;

		if (!p->urls[i].len)
			continue;
		r = place_open_one(arena, config, p->urls[i], want->create, true, &p->parts[i], &dir, err);
		if (i == PART_FILES)
			*ret_dir = dir;
		if (!r)
			views[i] = store_share(p->parts[i]);
	}
	if (!r)
		r = open_templates(p, config, err);
	if (r) {
		for (size_t i = 0; i < PARTS; i++)
			store_destroy(views[i]);
		place_close(p);
		return r;
	}
	p->base = put_together(p, views, true);
	*ret_place = p;
	return 0;
}

int place_open_all(struct arena *arena, const struct place_config *config, bool create, bool relaxed,
		   struct store **ret_store, struct str *ret_dir, struct err *err)
{
	struct store *parts[PARTS] = {0};
	struct str dir;
	int r = place_open_one(arena, config, config->store, create, relaxed, &parts[PART_FILES], ret_dir, err);

	if (!r && config->state.len && !str_eq(config->state, config->store))
		r = place_open_one(arena, config, config->state, create, relaxed, &parts[PART_STATE], &dir, err);
	if (r)
		store_destroy(parts[PART_FILES]);
	else
		*ret_store = put_together(&(struct place){0}, parts, relaxed);
	return r;
}

void place_close(struct place *p)
{
	if (!p)
		return;
	store_destroy(p->durable);
	store_destroy(p->base);
	store_destroy(p->templates);
	for (size_t i = 0; i < PARTS; i++)
		store_destroy(p->parts[i]);
	arena_destroy(p->arena);
	free(p);
}

struct store *place_store(struct place *place)
{
	return place->base;
}

struct store *place_templates(struct place *place)
{
	return place->templates;
}

int place_durable(struct place *p, struct store **ret_store, struct err *err)
{
	struct store *views[PARTS] = {0};
	bool any = false;
	struct str dir;
	int r = 0;

	for (size_t i = 0; i < PARTS; i++)
		any |= is_disk(p->urls[i]);
	for (const struct jv_member *m = jv_first(p->config.users); m; m = m->next)
		any |= is_disk(jv_get_str(m->value, "store"));
	if (p->durable || !any) {
		*ret_store = p->durable;
		return 0;
	}
	for (size_t i = 0; !r && i < PARTS; i++) {
		if (!p->urls[i].len)
			continue;
		if (is_disk(p->urls[i]))
			r = open_disk(p->arena, p->urls[i], false, false, &views[i], &dir, err);
		else
			views[i] = store_share(p->parts[i]);
	}
	if (r) {
		for (size_t i = 0; i < PARTS; i++)
			store_destroy(views[i]);
		return r;
	}
	p->durable = put_together(p, views, false);
	*ret_store = p->durable;
	return 0;
}
