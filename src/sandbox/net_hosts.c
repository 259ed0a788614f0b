/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules: which names and ports. Names are compared as whole labels, in small letters, byte by byte; a name that
 * could be read in two ways (a NUL, a port in it, a letter beyond ASCII) is not a name.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "sandbox/net_internal.h"

static int bad_host(struct err *err, struct str text)
{
	return err_set(err, ERR_INVALID,
		       "\"%.*s\" is not a host; write a name such as \"pypi.org\", \"*.example.com\" or "
		       "\"example.com:8443\", or an IPv4 address",
		       STR_ARG(utf8_first(text, 100)));
}

static bool read_port(struct str text, uint16_t *ret)
{
	int64_t n;

	if (!str_to_i64(text, &n) || n < 1 || n > 65535)
		return false;
	*ret = (uint16_t)n;
	return true;
}

/* "host:port" or "host"; an IPv6 address only in brackets. */
static bool split_port(struct str *text, uint16_t *ret_port)
{
	size_t colon = str_rfind_char(*text, ':');

	*ret_port = 0;
	if (text->len && text->ptr[0] == '[') {
		size_t end = str_find_char(*text, ']');
		struct str rest = str_from(*text, end + 1);

		if (end >= text->len || (rest.len && (rest.ptr[0] != ':' || !read_port(str_from(rest, 1), ret_port))))
			return false;
		*text = str_n(text->ptr + 1, end - 1);
		return true;
	}
	if (colon >= text->len)
		return true;
	if (!read_port(str_from(*text, colon + 1), ret_port))
		return false;
	*text = str_first(*text, colon);
	return true;
}

static int read_address(struct arena *arena, struct str text, struct sandbox_host *ret, struct err *err)
{
	struct reach probe = {0};

	if (!split_port(&text, &ret->address_port) || str_find_char(text, '/') < text.len ||
	    reach_allow(&probe, text, err) != 0)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not an address; write for example \"10.0.0.7\" or \"10.0.0.7:8443\"",
			       STR_ARG(utf8_first(text, 80)));
	ret->address = arena_str(arena, text);
	return 0;
}

int sandbox_host_parse(struct arena *arena, struct str text, struct sandbox_host *ret, struct err *err)
{
	struct str all = text, name = str_first(text, str_find_char(text, '='));
	char clean[DNS_NAME_MAX + 1];
	struct in_addr address;
	size_t len;
	int r = 0;

	*ret = (struct sandbox_host){0};
	if (name.len < text.len)
		r = read_address(arena, str_from(text, name.len + 1), ret, err);
	if (r)
		return r;
	if (!name.len || name.ptr[0] == '[' || !split_port(&name, &ret->port))
		return bad_host(err, all);
	if (str_is(name, "*")) {
		ret->is_wild = true;
		return 0;
	}
	ret->is_wild = str_starts(name, STR("*."));
	if (!dns_name_clean(str_from(name, ret->is_wild ? 2 : 0), clean, &len))
		return bad_host(err, all);
	ret->name = arena_str(arena, str_n(clean, len));
	if (str_is(ret->name, "localhost"))
		ret->literal = INADDR_LOOPBACK; /* what the command's own /etc/hosts says */
	else if (!ret->is_wild && inet_pton(AF_INET, ret->name.ptr, &address) == 1)
		ret->literal = ntohl(address.s_addr);
	if (ret->literal >> 16 == NET_FIRST_ADDRESS >> 16 || (ret->literal && ret->is_wild))
		return bad_host(err, all);
	return 0;
}

int sandbox_hosts_parse(struct arena *arena, struct str text, struct sandbox_host *list, size_t *count, struct err *err)
{
	struct str part;
	int r = 0;

	while (r == 0 && str_cut(&text, ',', &part)) {
		if (!str_trim(part).len)
			continue;
		if (*count == SANDBOX_HOSTS_MAX)
			return err_set(err, ERR_TOO_LARGE, "at most %d hosts may be allowed", SANDBOX_HOSTS_MAX);
		r = sandbox_host_parse(arena, str_trim(part), &list[*count], err);
		if (r == 0)
			(*count)++;
	}
	return r;
}

bool net_host_has_port(const struct sandbox_host *host, uint16_t port)
{
	return host->port ? host->port == port : port == 80 || port == 443;
}

static bool matches(const struct sandbox_host *host, struct str name)
{
	if (!host->is_wild)
		return str_eq(host->name, name);
	if (!host->name.len)
		return true;
	return name.len > host->name.len + 1 && str_ends(name, host->name) &&
	       name.ptr[name.len - host->name.len - 1] == '.';
}

const struct sandbox_host *net_find_host(const struct sandbox_net *rules, struct str name, uint32_t literal,
					 uint16_t port)
{
	for (size_t i = 0; i < rules->host_count; i++) {
		const struct sandbox_host *host = &rules->hosts[i];

		if (net_host_has_port(host, port) &&
		    (literal ? host->literal == literal : !host->literal && matches(host, name)))
			return host;
	}
	return NULL;
}

bool net_allows_name(const struct sandbox_net *rules, struct str name)
{
	for (size_t i = 0; i < rules->host_count; i++)
		if (!rules->hosts[i].literal && matches(&rules->hosts[i], name))
			return true;
	return false;
}

bool sandbox_net_reaches(const struct sandbox_net *rules, struct str host)
{
	for (size_t i = 0; i < rules->host_count; i++)
		if (matches(&rules->hosts[i], host))
			return true;
	return false;
}

const char *sandbox_net_outcome_name(enum sandbox_net_outcome outcome)
{
	static const char *const names[] = {"ended", "refused", "failed"};

	return names[outcome];
}
