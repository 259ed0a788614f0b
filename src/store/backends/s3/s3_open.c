/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "s3://bucket/prefix?region=…" and the environment to a store. The URL says where, the environment says who: a
 * secret is never part of a URL, which ends up in logs and lists of processes. The names are those that other programs
 * use already (AWS_…, R2_…).
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/backends/s3/s3.h"

#define URL_MAX (4 * KIB)

/* The options that may follow the '?'. */
struct options {
	struct str region, endpoint, account, jurisdiction, sse, sse_key, path_style, create, single_writer;
};

static int one_option(struct str part, bool r2, struct options *o, struct err *err)
{
	static const char *const s3_names[] = {"region", "endpoint", "path_style",    "create",
					       "sse",    "sse_key",  "single_writer", NULL};
	static const char *const r2_names[] = {"account", "jurisdiction",  "endpoint", "path_style",
					       "create",  "single_writer", NULL};
	const struct {
		const char *name;
		struct str *to;
		bool s3, r2;
	} known[] = {{"region", &o->region, true, false},
		     {"endpoint", &o->endpoint, true, true},
		     {"path_style", &o->path_style, true, true},
		     {"create", &o->create, true, true},
		     {"single_writer", &o->single_writer, true, true},
		     {"sse", &o->sse, true, false},
		     {"sse_key", &o->sse_key, true, false},
		     {"account", &o->account, false, true},
		     {"jurisdiction", &o->jurisdiction, false, true}};
	const char *const *names = r2 ? r2_names : s3_names;
	struct str name = str_first(part, str_find_char(part, '='));
	const char *near;
	size_t count = 0;

	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i].name) && (r2 ? known[i].r2 : known[i].s3)) {
			*known[i].to = str_from(part, name.len + 1);
			return 0;
		}
	while (names[count])
		count++;
	near = str_nearest(name, names, count);
	return err_set(err, ERR_INVALID, "the store's URL has an option \"%.*s\" that %s stores do not know%s%s%s",
		       STR_ARG(name), r2 ? "r2" : "s3", near ? "; did you mean \"" : "", near ? near : "",
		       near ? "\"?" : "");
}

static int parse_options(struct str query, bool r2, struct options *o, struct err *err)
{
	struct str part;

	while (str_cut(&query, '&', &part)) {
		int r = part.len ? one_option(part, r2, o, err) : 0;

		if (r)
			return r;
	}
	return 0;
}

static int parse_switch(const char *name, struct str text, bool *ret, struct err *err)
{
	if (!text.ptr)
		return 0;
	if (!str_is(text, "0") && !str_is(text, "1"))
		return err_set(err, ERR_INVALID, "the store's URL has %s=%.*s; write 0 or 1", name, STR_ARG(text));
	*ret = str_is(text, "1");
	return 0;
}

static bool only(struct str text, const char *chars)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(chars, text.ptr[i]) || !text.ptr[i])
			return false;
	return text.len > 0;
}

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

static struct str setting(const struct env *env, const char *name)
{
	const char *value = env_get(env, name);

	return str_of(value ? value : "");
}

static struct str first_of(struct str a, struct str b)
{
	return a.len ? a : b;
}

/* The bucket and the prefix of "bucket/prefix". */
static int parse_place(struct str place, bool r2, const struct env *env, struct s3_conf *conf, struct err *err)
{
	struct str bucket = str_first(place, str_find_char(place, '/')), prefix = str_from(place, bucket.len);
	struct wpath path;
	int r;

	if (str_find_char(place, '@') < place.len)
		return err_set(err, ERR_INVALID, "the store's URL must hold no key or secret; put them into %s",
			       r2 ? "R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY"
				  : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
	bucket = first_of(bucket, setting(env, r2 ? "R2_BUCKET_NAME" : "AWS_S3_BUCKET"));
	if (!only(bucket, NAME_CHARS "._ABCDEFGHIJKLMNOPQRSTUVWXYZ") || bucket.len > 63)
		return err_set(err, ERR_INVALID, "the store's URL names no bucket; write \"%s://BUCKET/PREFIX\"",
			       r2 ? "r2" : "s3");
	while (prefix.len && prefix.ptr[0] == '/')
		prefix = str_from(prefix, 1);
	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	r = wpath_parse(prefix, &path, err);
	if (r)
		return err_prefix(err, "the prefix of the store's URL");
	conf->bucket = xstrndup(bucket);
	conf->prefix = xmalloc(prefix.len + 2);
	snprintf(conf->prefix, prefix.len + 2, "%.*s%s", STR_ARG(prefix), prefix.len ? "/" : "");
	return 0;
}

static int set_endpoint(struct str endpoint, struct s3_conf *conf, struct err *err)
{
	while (str_ends(endpoint, STR("/")))
		endpoint.len--;
	if (!str_starts(endpoint, STR("http://")) && !str_starts(endpoint, STR("https://")))
		return err_set(err, ERR_INVALID, "the endpoint \"%.*s\" is not a URL; write \"https://HOST\"",
			       STR_ARG(endpoint));
	if (str_find_char(str_from(endpoint, 8), '/') < endpoint.len - 8 ||
	    str_find_char(endpoint, '@') < endpoint.len || str_find_char(endpoint, '?') < endpoint.len)
		return err_set(err, ERR_INVALID, "the endpoint must have only a scheme, a host and a port");
	conf->endpoint = xstrndup(endpoint);
	return 0;
}

static int credentials(struct str id, struct str secret, const char *id_name, const char *secret_name,
		       struct s3_conf *conf, struct err *err)
{
	if (!id.len || !secret.len)
		return err_set(err, ERR_UNAUTHENTICATED, "no key for the S3 server; set %s%s%s in the environment",
			       id.len ? "" : id_name, id.len || secret.len ? "" : " and ",
			       secret.len ? "" : secret_name);
	conf->key_id = xstrndup(id);
	conf->secret = xstrndup(secret);
	return 0;
}

static int configure_s3(const struct options *o, const struct env *env, struct s3_conf *conf, struct err *err)
{
	struct str region =
		first_of(o->region, first_of(setting(env, "AWS_REGION"), setting(env, "AWS_DEFAULT_REGION")));
	struct str endpoint =
		first_of(o->endpoint, first_of(setting(env, "AWS_ENDPOINT_URL_S3"), setting(env, "AWS_ENDPOINT_URL")));
	struct str session = setting(env, "AWS_SESSION_TOKEN");
	int r;

	region = first_of(region, STR("us-east-1"));
	if (!only(region, NAME_CHARS) || region.len >= 64)
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a valid region; write one like \"eu-central-1\"",
			       STR_ARG(region));
	if (o->sse.len && !str_is(o->sse, "AES256") && !str_is(o->sse, "aws:kms"))
		return err_set(err, ERR_INVALID, "sse=%.*s is not known; write AES256 or aws:kms", STR_ARG(o->sse));
	conf->region = xstrndup(region);
	conf->aws = !endpoint.len || str_is(endpoint, "https://s3.amazonaws.com");
	conf->path_style = !conf->aws || str_find_char(str_of(conf->bucket), '.') < strlen(conf->bucket);
	if (session.len)
		conf->session = xstrndup(session);
	if (o->sse.len)
		conf->sse = xstrndup(o->sse);
	if (o->sse_key.len)
		conf->sse_key = xstrndup(o->sse_key);
	if (conf->aws)
		endpoint = STR("https://s3.amazonaws.com");
	r = set_endpoint(endpoint, conf, err);
	return r ? r
		 : credentials(setting(env, "AWS_ACCESS_KEY_ID"), setting(env, "AWS_SECRET_ACCESS_KEY"),
			       "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", conf, err);
}

static int configure_r2(const struct options *o, const struct env *env, struct s3_conf *conf, struct err *err)
{
	struct str account = first_of(o->account, setting(env, "R2_ACCOUNT_ID")), area = o->jurisdiction;
	char endpoint[256];
	int r;

	conf->r2 = conf->path_style = true;
	conf->region = xstrndup(STR("auto"));
	if (o->endpoint.len) {
		r = set_endpoint(o->endpoint, conf, err);
	} else {
		if (!only(account, NAME_CHARS) || account.len > 63)
			return err_set(err, ERR_INVALID,
				       "an r2 store needs an account; set R2_ACCOUNT_ID or add account=ID to its URL");
		if (area.len && !str_is(area, "eu") && !str_is(area, "fedramp"))
			return err_set(err, ERR_INVALID, "jurisdiction=%.*s is not known; write eu or fedramp",
				       STR_ARG(area));
		snprintf(endpoint, sizeof(endpoint), "https://%.*s%s%.*s.r2.cloudflarestorage.com", STR_ARG(account),
			 area.len ? "." : "", STR_ARG(area));
		r = set_endpoint(str_of(endpoint), conf, err);
	}
	return r ? r
		 : credentials(setting(env, "R2_ACCESS_KEY_ID"), setting(env, "R2_SECRET_ACCESS_KEY"),
			       "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY", conf, err);
}

int store_s3_open(struct str url, const struct env *env, struct store **ret_store, struct err *err)
{
	bool r2 = str_starts(url, STR("r2://"));
	struct str rest = str_from(url, 5), place = str_first(rest, str_find_char(rest, '?'));
	struct s3_conf conf = {0};
	struct options o = {0};
	int r;

	if (url.len > URL_MAX || !str_starts(url, r2 ? STR("r2://") : STR("s3://")) || !utf8_valid(url))
		return err_set(err, ERR_INVALID, "this is not the URL of an S3 store; write \"s3://BUCKET/PREFIX\"");
	r = parse_options(str_from(rest, place.len + 1), r2, &o, err);
	if (r == 0)
		r = parse_place(place, r2, env, &conf, err);
	if (r == 0)
		r = r2 ? configure_r2(&o, env, &conf, err) : configure_s3(&o, env, &conf, err);
	if (r == 0)
		r = parse_switch("path_style", o.path_style, &conf.path_style, err);
	if (r == 0)
		r = parse_switch("create", o.create, &conf.create, err);
	if (r == 0)
		r = parse_switch("single_writer", o.single_writer, &conf.single_writer, err);
	if (r == 0)
		*ret_store = s3_new(&conf);
	s3_conf_release(&conf);
	return r;
}
