/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the words of other systems. */
#include "workspace/spec.h"

#include "base/limits.h"
#include "text/yaml.h"
#include "workspace/workspace.h"

bool place_is_spec(struct str text)
{
	return str_starts(str_trim(text), STR("{"));
}

/* --- OmniCoreAgent --- */

/* "a/b" as "a" and "b"; "b" alone as `top` and "b". */
static void split(struct str path, struct str top, struct str *ret_above, struct str *ret_name)
{
	size_t cut;

	while (path.len > 1 && str_ends(path, STR("/")))
		path.len--;
	for (cut = path.len; cut > 0 && path.ptr[cut - 1] != '/'; cut--)
		continue;
	*ret_name = str_from(path, cut);
	*ret_above = cut == 0 ? top : cut == 1 ? STR("/") : str_first(path, cut - 1);
}

int place_of_omnicoreagent(struct arena *arena, struct str backend, struct str path, struct str bucket,
			   struct str *ret_store, struct str *ret_name, struct err *err)
{
	struct str above, name;

	if (str_is(backend, "local")) {
		split(path, STR("."), &above, &name);
		*ret_store = arena_printf(arena, "disk:%.*s", STR_ARG(above));
	} else if (str_is(backend, "s3") || str_is(backend, "r2")) {
		while (str_starts(path, STR("/")))
			path = str_from(path, 1);
		split(path, STR(""), &above, &name);
		*ret_store = arena_printf(arena, "%.*s://%.*s%s%.*s", STR_ARG(backend), STR_ARG(bucket),
					  above.len ? "/" : "", STR_ARG(above));
	} else {
		return err_set(err, ERR_INVALID, "the backend of the workspace is \"%.*s\"; expected local, s3 or r2",
			       STR_ARG(utf8_first(backend, 80)));
	}
	*ret_name = name;
	if (workspace_name_ok(name))
		return 0;
	return err_set(err, ERR_INVALID,
		       "the workspace of OmniCoreAgent is called \"%.*s\"; here a name has 2 to 64 lower-case letters, "
		       "digits, "
		       "'-' and '_' and begins with a letter, so rename it, or give --store and --workspace",
		       STR_ARG(utf8_first(name, 80)));
}

/* What a store on a server reads from the environment. */
static const struct {
	const char *key, *variable;
} settings[] = {
	{"aws_access_key_id", "AWS_ACCESS_KEY_ID"},
	{"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"},
	{"aws_region", "AWS_REGION"},
	{"aws_endpoint_url", "AWS_ENDPOINT_URL"},
	{"r2_account_id", "R2_ACCOUNT_ID"},
	{"r2_access_key_id", "R2_ACCESS_KEY_ID"},
	{"r2_secret_access_key", "R2_SECRET_ACCESS_KEY"},
};

static bool add_setting(struct arena *arena, struct str key, struct str value, struct place_spec *ret)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		if (str_is(key, settings[i].key) && ret->env_count < COUNT(ret->env)) {
			ret->env[ret->env_count++] = (struct env_var){settings[i].variable, arena_cstr(arena, value)};
			return true;
		}
	return false;
}

static int unknown_key(struct str key, const char *known, struct err *err)
{
	return err_set(err, ERR_INVALID, "the store has the unknown key \"%.*s\"; known are %s",
		       STR_ARG(utf8_first(key, 60)), known);
}

static int not_text(struct str key, struct err *err)
{
	return err_set(err, ERR_INVALID, "the store's \"%.*s\" is not text", STR_ARG(utf8_first(key, 60)));
}

static int read_omnicoreagent(struct arena *arena, const struct jv *object, struct place_spec *ret, struct err *err)
{
	struct str backend = STR("local"), dir = STR("./workspace"), prefix = STR("workspace"), s3 = STR(""),
		   r2 = STR(""), bucket;
	bool is_local;

	for (const struct jv_member *m = jv_first(object); m; m = m->next) {
		struct str value = jv_str_of(m->value);
		struct str *to = str_is(m->key, "workspace_backend") ? &backend
				 : str_is(m->key, "workspace_dir")   ? &dir
				 : str_is(m->key, "prefix")          ? &prefix
				 : str_is(m->key, "s3_bucket")       ? &s3
				 : str_is(m->key, "r2_bucket_name")  ? &r2
								     : NULL;

		if (m->value->type == JV_NULL)
			continue;
		if (m->value->type != JV_STR)
			return not_text(m->key, err);
		if (to)
			*to = str_trim(value);
		else if (!add_setting(arena, m->key, value, ret))
			return unknown_key(m->key,
					   "workspace_backend, workspace_dir, prefix, s3_bucket, aws_*, "
					   "r2_bucket_name and r2_*",
					   err);
	}
	is_local = str_is(backend, "local");
	bucket = str_is(backend, "r2") ? r2 : s3;
	if (!is_local && !bucket.len && (str_is(backend, "s3") || str_is(backend, "r2")))
		return err_set(err, ERR_INVALID,
			       "workspace_backend is \"%.*s\" and %s is not set; set it to the bucket",
			       STR_ARG(backend), str_is(backend, "r2") ? "r2_bucket_name" : "s3_bucket");
	return place_of_omnicoreagent(arena, backend, is_local ? dir : prefix, bucket, &ret->store, &ret->workspace,
				      err);
}

/* --- Loomflow --- */

/* A text, or a list of texts, as a list. */
static const struct jv *as_list(struct arena *arena, struct jv *v)
{
	struct jv *list;

	if (v->type == JV_ARRAY)
		return v;
	list = jv_array(arena);
	jv_push(arena, list, v);
	return list;
}

static int loomflow_store(struct arena *arena, struct str backend, struct str path, struct str prefix, bool cleanup,
			  struct place_spec *ret, struct err *err)
{
	static const char *const disks[] = {"disk", "local", "filesystem", "fs"};

	if (str_is(backend, "temp")) {
		ret->store = arena_printf(arena, "temp:%.*s%s", STR_ARG(prefix), cleanup ? "" : "?cleanup=false");
		return 0;
	}
	if (str_is(backend, "memory") || str_is(backend, "inmemory")) {
		ret->store = STR("memory:");
		return 0;
	}
	for (size_t i = 0; i < COUNT(disks); i++)
		if (str_is(backend, disks[i]) && path.len) {
			ret->store = arena_printf(arena, "disk:%.*s", STR_ARG(path));
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "the backend of the store is \"%.*s\"%s; expected disk with a path, temp or memory",
		       STR_ARG(utf8_first(backend, 60)), path.len ? "" : " without a path");
}

static int read_loomflow(struct arena *arena, const struct jv *object, struct place_spec *ret, struct err *err)
{
	struct str backend = STR(""), path = STR(""), prefix = STR("");
	bool cleanup = true;

	for (const struct jv_member *m = jv_first(object); m; m = m->next) {
		struct str *to = NULL;

		if (str_is(m->key, "backend") || str_is(m->key, "type") || str_is(m->key, "name"))
			to = &backend;
		else if (str_is(m->key, "path") || str_is(m->key, "url"))
			to = &path;
		else if (str_is(m->key, "prefix"))
			to = &prefix;
		else if (str_is(m->key, "author"))
			to = &ret->author;
		if (to && m->value->type != JV_STR)
			return not_text(m->key, err);
		if (to)
			*to = m->value->u.s;
		else if (str_is(m->key, "cleanup") && m->value->type == JV_BOOL)
			cleanup = m->value->u.b;
		else if (str_is(m->key, "seed") || str_is(m->key, "seed_paths"))
			ret->seeds = as_list(arena, m->value);
		else if (str_is(m->key, "teammates"))
			ret->teammates = as_list(arena, m->value);
		else
			return unknown_key(m->key, "backend, path, prefix, cleanup, seed, author and teammates", err);
	}
	if (!backend.len && path.len)
		backend = STR("disk");
	return loomflow_store(arena, backend, path, prefix, cleanup, ret, err);
}

int place_spec_read(struct arena *arena, const struct jv *object, struct place_spec *ret, struct err *err)
{
	static const char *const loomflow[] = {"backend", "type", "name", "path", "url"};
	struct place_spec spec = {0};
	bool is_loomflow = false;
	int r;

	if (object->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "the store is not an object; write {backend: temp} or a URL");
	for (size_t i = 0; i < COUNT(loomflow); i++)
		is_loomflow |= jv_get(object, loomflow[i]) != NULL;
	r = is_loomflow ? read_loomflow(arena, object, &spec, err) : read_omnicoreagent(arena, object, &spec, err);
	if (r == 0)
		*ret = spec;
	return r;
}

int place_spec_parse(struct arena *arena, struct str text, struct place_spec *ret, struct err *err)
{
	struct jv *object;
	int r = text.len > YAML_LEN_MAX ? err_set(err, ERR_TOO_LARGE, "the store is described by too many bytes")
					: yaml_parse(arena, text, &object, err);

	return r ? err_prefix(err, "the store") : place_spec_read(arena, object, ret, err);
}
