/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets as capabilities. The command has a placeholder; a request to the host that a secret is granted to gets the
 * value here, outside the sandbox, in one header or one query parameter, or wherever its head has the placeholder.
 * An answer that has the value in it (servers echo requests in errors, and redirects repeat queries) gets it masked
 * before the command sees it: as it is, percent-encoded, and in base64. Answers are asked for without compression and
 * as a whole, so that masking sees them; what a server encodes in some other way is not recognized.
 */
#include <stdio.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/http_head.h"
#include "sandbox/net_internal.h"

#define BUNDLE     "/etc/ssl/certs/ca-certificates.crt"
#define BUNDLE_MAX (8 * MIB)
#define SHOWN_AT   "/etc/stead-ca.crt"

/* --- before the run --- */

/* For a query: all but letters, digits and "-._~". */
static struct str encode(struct arena *arena, struct str value)
{
	static const char hex[] = "0123456789ABCDEF";
	struct buf text;

	buf_init(&text, arena, 3 * value.len + 1);
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c)) {
			buf_char(&text, (char)c);
		} else {
			buf_char(&text, '%');
			buf_char(&text, hex[c >> 4]);
			buf_char(&text, hex[c & 15]);
		}
	}
	return buf_str(&text);
}

static void add_mask(struct net *net, struct str text)
{
	if (text.len >= SANDBOX_SECRET_MIN && net->mask_count < COUNT(net->masks))
		net->masks[net->mask_count++] = text;
}

/* In base64 a value looks different at each of three places in what is encoded. Characters that have bits of what is
   before it or after it are not part of the pattern. */
static void add_base64(struct net *net, struct str value)
{
	for (size_t before = 0; before < 3; before++) {
		struct str text = base64_encode(
			net->arena, arena_printf(net->arena, "%.*s%.*s", (int)before, "xx", STR_ARG(value)));
		size_t from = (before * 8 + 5) / 6, to = (before + value.len) * 8 / 6;

		add_mask(net, str_n(text.ptr + from, to - from));
	}
}

int sandbox_secret_check(const struct sandbox_secret *s, struct err *err)
{
	for (size_t i = 0; i < s->value.len; i++)
		if ((unsigned char)s->value.ptr[i] < ' ' || s->value.ptr[i] == 0x7F)
			return err_set(
				err, ERR_INVALID,
				"sandbox.secrets: the value of %.*s has a line break or another control character",
				STR_ARG(s->name));
	if (s->value.len < SANDBOX_SECRET_MIN || s->value.len > SANDBOX_SECRET_MAX)
		return err_set(err, ERR_INVALID,
			       "sandbox.secrets: %.*s must have %d to %d bytes in .env, so that answers can be "
			       "searched for it",
			       STR_ARG(s->name), SANDBOX_SECRET_MIN, SANDBOX_SECRET_MAX);
	if (s->header.len && str_find(s->header, STR("{}"), 0) == SIZE_MAX)
		return err_set(err, ERR_INVALID,
			       "sandbox.secrets: the header of %.*s has no {} for the value; write for example "
			       "\"Authorization: Bearer {}\"",
			       STR_ARG(s->name));
	if (s->header.len && str_find_char(s->header, ':') >= str_find(s->header, STR("{}"), 0))
		return err_set(err, ERR_INVALID, "sandbox.secrets: the header of %.*s has no name before the {}",
			       STR_ARG(s->name));
	return 0;
}

static void prepare_one(struct net *net, const struct sandbox_secret *s, struct net_secret *ret)
{
	struct arena *arena = net->arena;
	size_t colon = str_find_char(s->header, ':'), hole = str_find(s->header, STR("{}"), 0);

	*ret = (struct net_secret){.given = s, .encoded = encode(arena, s->value)};
	ret->placeholder = arena_printf(arena, NET_PLACEHOLDER "%016llx%016llx", (unsigned long long)random_u64(),
					(unsigned long long)random_u64());
	if (s->header.len) {
		struct str before = str_trim(str_n(s->header.ptr + colon + 1, hole - colon - 1));

		ret->header_name = str_trim(str_first(s->header, colon));
		ret->header_value = arena_printf(arena, "%.*s%s%.*s%.*s", STR_ARG(before), before.len ? " " : "",
						 STR_ARG(s->value), STR_ARG(str_from(s->header, hole + 2)));
	}
	add_mask(net, s->value);
	if (!str_eq(ret->encoded, s->value))
		add_mask(net, ret->encoded);
	add_base64(net, s->value);
}

static bool add_file(struct buf *text, const char *path)
{
	FILE *file = fopen(path, "re");
	char bytes[16384];
	size_t n;

	while (file && (n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buf_add(text, str_n(bytes, n));
	if (file)
		fclose(file);
	buf_char(text, '\n');
	return file && !text->overflow;
}

/* What the command trusts: the system's authorities, those of the configuration, and ours. */
static int make_bundle(struct net *net, struct err *err)
{
	struct buf text;

	buf_init(&text, net->arena, BUNDLE_MAX);
	(void)add_file(&text, BUNDLE);
	if (net->given->ca_file && !add_file(&text, net->given->ca_file))
		return err_set(err, ERR_NOT_FOUND, "sandbox.network_ca: the file \"%.200s\" cannot be read",
			       net->given->ca_file);
	if (net->authority)
		buf_add(&text, tls_authority_pem(net->authority));
	buf_char(&text, 0);
	net->bundle = text.ptr;
	return text.overflow ? err_set(err, ERR_TOO_LARGE, "the certificates for the command are too large") : 0;
}

/* Programs look for certificates under different names; those that look in /etc/ssl find them there. */
static void make_env(struct net *net)
{
	static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE",      "REQUESTS_CA_BUNDLE",
					    "PIP_CERT",      "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
					    "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO",   "DENO_CERT"};
	size_t n = 0;

	net->env = ARENA_ARRAY(net->arena, const char *, net->given->secret_count + COUNT(names) + 1);
	for (size_t i = 0; i < net->given->secret_count; i++) {
		struct str name = net->given->secrets[i].name;
		bool known = false;

		for (size_t k = 0; k < i; k++)
			if (str_eq(net->given->secrets[k].name, name)) {
				net->secrets[i].placeholder = net->secrets[k].placeholder;
				known = true;
			}
		if (!known)
			net->env[n++] = arena_printf(net->arena, "%.*s=%.*s", STR_ARG(name),
						     STR_ARG(net->secrets[i].placeholder))
						.ptr;
	}
	for (size_t i = 0; net->bundle && i < COUNT(names); i++)
		net->env[n++] = arena_printf(net->arena, "%s=" SHOWN_AT, names[i]).ptr;
}

static int make_servers(struct net *net, struct err *err)
{
	struct tls_opts opts = {.ca_file = net->given->ca_file, .and_system = true};
	int r = tls_authority_new(&net->authority, err);

	if (r == 0)
		r = tls_config_new(&opts, &net->outside, err);
	for (size_t i = 0; r == 0 && i < net->given->secret_count; i++)
		r = tls_server_new(net->authority, arena_cstr(net->arena, net->given->secrets[i].host),
				   &net->servers[i], err);
	return r ? err_prefix(err, "the certificates for sandbox.secrets") : 0;
}

int net_secrets_prepare(struct net *net, struct err *err)
{
	size_t count = net->given->secret_count;
	int r = 0;

	net->secrets = ARENA_ARRAY(net->arena, struct net_secret, count + 1);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = sandbox_secret_check(&net->given->secrets[i], err);
		if (r == 0)
			prepare_one(net, &net->given->secrets[i], &net->secrets[i]);
	}
	if (r == 0 && count && net->given->host_count)
		r = make_servers(net, err);
	if (r == 0 && net->given->host_count && (net->authority || net->given->ca_file))
		r = make_bundle(net, err);
	if (r == 0)
		make_env(net);
	return r;
}

bool net_has_secret(const struct net *net, struct str host)
{
	for (size_t i = 0; i < net->given->secret_count; i++)
		if (str_eq(net->given->secrets[i].host, host))
			return true;
	return false;
}

/* --- requests --- */

/* True when this connection may have it. */
static bool is_for(const struct conn *c, const struct net_secret *s)
{
	return str_eq(s->given->host, c->name) && (c->is_tls || s->given->plain_http);
}

static void add_replaced(struct buf *ret, struct str text, struct str what, struct str with)
{
	for (size_t at; (at = str_find(text, what, 0)) != SIZE_MAX; text = str_from(text, at + what.len)) {
		buf_add(ret, str_first(text, at));
		buf_add(ret, with);
	}
	buf_add(ret, text);
}

/* `text` with the placeholders of all secrets that are replaced where they are. */
static struct str replace(const struct conn *c, struct str text, bool is_query)
{
	for (size_t i = 0; i < c->net->given->secret_count; i++) {
		const struct net_secret *s = &c->net->secrets[i];
		struct buf out;

		if (!is_for(c, s) || s->given->header.len || s->given->query.len ||
		    str_find(text, s->placeholder, 0) == SIZE_MAX)
			continue;
		buf_init(&out, c->arena, 2 * HEAD_BYTES_MAX);
		add_replaced(&out, text, s->placeholder, is_query ? s->encoded : s->given->value);
		text = buf_str(&out);
	}
	return text;
}

/* "Basic …" has the placeholder in base64. */
static struct str replace_basic(const struct conn *c, struct str value)
{
	struct str plain, changed;

	if (!str_eq_nocase(str_first(value, 6), STR("Basic ")) ||
	    !base64_decode(c->arena, str_trim(str_from(value, 6)), &plain))
		return replace(c, value, false);
	changed = replace(c, plain, false);
	if (changed.ptr == plain.ptr)
		return value;
	return arena_printf(c->arena, "Basic %.*s", STR_ARG(base64_encode(c->arena, changed)));
}

/* The parameters of a query but those called `name`. */
static void add_others(struct buf *ret, struct str query, struct str name, bool *any)
{
	struct str part;

	while (str_cut(&query, '&', &part)) {
		if (!part.len || str_eq(str_first(part, str_find_char(part, '=')), name))
			continue;
		buf_char(ret, *any ? '&' : '?');
		buf_add(ret, part);
		*any = true;
	}
}

static struct str target_of(const struct conn *c, struct str target)
{
	size_t mark = str_find_char(target, '?');
	struct buf out;

	if (mark < target.len)
		target = arena_printf(c->arena, "%.*s?%.*s", STR_ARG(str_first(target, mark)),
				      STR_ARG(replace(c, str_from(target, mark + 1), true)));
	for (size_t i = 0; i < c->net->given->secret_count; i++) {
		const struct net_secret *s = &c->net->secrets[i];
		bool any = false;

		if (!is_for(c, s) || !s->given->query.len)
			continue;
		mark = str_find_char(target, '?');
		buf_init(&out, c->arena, 2 * HEAD_BYTES_MAX);
		buf_add(&out, str_first(target, mark));
		add_others(&out, str_from(target, mark + 1), s->given->query, &any);
		buf_printf(&out, "%c%.*s=%.*s", any ? '&' : '?', STR_ARG(s->given->query), STR_ARG(s->encoded));
		target = buf_str(&out);
	}
	return target;
}

/* Fields that a request to a host with a secret does not have: they would let an answer through that cannot be
   searched, or are set here. */
static bool is_dropped(const struct conn *c, struct str name)
{
	static const char *const dropped[] = {"accept-encoding", "range", "if-range"};

	if (http_head_is_hop(name))
		return true;
	for (size_t i = 0; c->has_secret && i < COUNT(dropped); i++)
		if (str_eq_nocase(name, str_of(dropped[i])))
			return true;
	for (size_t i = 0; i < c->net->given->secret_count; i++)
		if (is_for(c, &c->net->secrets[i]) && c->net->secrets[i].header_name.len &&
		    str_eq_nocase(name, c->net->secrets[i].header_name))
			return true;
	return false;
}

void net_secret_request(struct conn *c, const struct http_head *head, struct buf *ret)
{
	buf_printf(ret, "%.*s %.*s HTTP/1.%d\r\n", STR_ARG(head->method), STR_ARG(target_of(c, head->target)),
		   head->minor);
	for (size_t i = 0; i < head->count; i++)
		if (!is_dropped(c, head->fields[i].name))
			buf_printf(ret, "%.*s: %.*s\r\n", STR_ARG(head->fields[i].name),
				   STR_ARG(replace_basic(c, head->fields[i].value)));
	if (c->has_secret)
		buf_lit(ret, "Accept-Encoding: identity\r\n");
	for (size_t i = 0; i < c->net->given->secret_count; i++)
		if (is_for(c, &c->net->secrets[i]) && c->net->secrets[i].header_name.len)
			buf_printf(ret, "%.*s: %.*s\r\n", STR_ARG(c->net->secrets[i].header_name),
				   STR_ARG(c->net->secrets[i].header_value));
}

/* --- answers --- */

void mask_init(struct mask *mask, const struct net *net, struct arena *arena)
{
	mask->net = net;
	buf_init(&mask->pending, arena, 2 * HEAD_BYTES_MAX + SANDBOX_SECRET_MAX * 4);
}

void mask_text(const struct net *net, char *text, size_t len)
{
	for (size_t i = 0; i < net->mask_count; i++)
		for (size_t at = 0; (at = str_find(str_n(text, len), net->masks[i], at)) != SIZE_MAX;)
			memset(text + at, '*', net->masks[i].len);
}

/* How many bytes at the end could be the beginning of something to mask. */
static size_t doubtful(const struct net *net, struct str text)
{
	size_t most = 0;

	for (size_t i = 0; i < net->mask_count; i++) {
		size_t n = net->masks[i].len - 1 < text.len ? net->masks[i].len - 1 : text.len;

		for (; n > most; n--)
			if (str_eq(str_from(text, text.len - n), str_first(net->masks[i], n)))
				most = n;
	}
	return most;
}

void mask_add(struct mask *mask, struct str bytes, bool is_end, struct str *ret)
{
	buf_add(&mask->pending, bytes);
	mask_text(mask->net, mask->pending.ptr, mask->pending.len);
	*ret = buf_str(&mask->pending);
	if (!is_end)
		ret->len -= doubtful(mask->net, *ret);
}

void mask_used(struct mask *mask, size_t n)
{
	memmove(mask->pending.ptr, mask->pending.ptr + n, mask->pending.len - n);
	mask->pending.len -= n;
}
