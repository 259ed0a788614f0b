/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search services differ in the URL, in how the key is sent and in where the results are in the answer: a provider is
 * those three things. The URL is written by a person, so it may be on a private network; only the query comes from the
 * model, and it is percent-encoded into it. The key comes from .env: the configuration marks values that did, and
 * a key that is written in agent.yaml is refused, because files of the workspace are copied, shown and kept in history.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "home/web/web.h"
#include "net/http.h"
#include "text/html.h"

#define BRAVE_URL   "https://api.search.brave.com"
#define SNIPPET_MAX ((size_t)600)
#define COUNT_MAX   10

static const struct jv *section_of(struct workspace *ws)
{
	return jv_get(jv_get(workspace_config(ws)->document, "web"), "search");
}

bool web_search_is_on(struct workspace *ws)
{
	return section_of(ws) != NULL;
}

/* What makes one provider different from another. */
struct provider {
	struct str url;                  /* with {query} and {count} */
	struct http_header headers[2];   /* the second carries the key */
	struct str results;              /* a path with dots */
	struct str title, link, snippet; /* members of a result */
};

static struct str or_else(struct str s, struct str fallback)
{
	return s.len ? s : fallback;
}

static int read_provider(struct arena *arena, const struct jv *c, struct provider *ret, struct err *err)
{
	bool brave = !str_is(jv_get_str(c, "provider"), "json");
	const struct jv *key = jv_get(c, "api_key");
	struct str url = jv_get_str(c, "url"), header = jv_get_str(c, "key_header");

	if (key && !key->from_env)
		return err_set(err, ERR_INVALID,
			       "web.search.api_key is written in agent.yaml; write ${NAME} there and set NAME in .env");
	if (brave && !jv_str_of(key).len)
		return err_set(err, ERR_INVALID,
			       "web.search.api_key is missing; write ${BRAVE_API_KEY} and set BRAVE_API_KEY in .env");
	if (!brave && str_find(url, STR("{query}"), 0) == SIZE_MAX)
		return err_set(err, ERR_INVALID,
			       "web.search.url has no {query}; write the URL of a search, such as "
			       "\"https://search.example.com/search?q={query}&format=json\"");
	*ret = (struct provider){
		.url = url,
		.results = or_else(jv_get_str(c, "results"), STR("results")),
		.title = or_else(jv_get_str(c, "title"), STR("title")),
		.link = or_else(jv_get_str(c, "link"), STR("url")),
		.snippet = or_else(jv_get_str(c, "snippet"), STR("content")),
		.headers = {{STR("Accept"), STR("application/json")}},
	};
	if (brave) {
		ret->url = arena_printf(arena, "%.*s/res/v1/web/search?q={query}&count={count}",
					STR_ARG(or_else(url, STR(BRAVE_URL))));
		ret->results = STR("web.results");
		ret->snippet = STR("description");
		header = STR("X-Subscription-Token");
	}
	if (key && header.len)
		ret->headers[1] = (struct http_header){header, jv_str_of(key)};
	else if (key)
		ret->headers[1] = (struct http_header){STR("Authorization"),
						       arena_printf(arena, "Bearer %.*s", STR_ARG(jv_str_of(key)))};
	return 0;
}

static struct str fill_url(struct arena *arena, struct str pattern, struct str query, size_t count)
{
	struct buf out;

	buf_init(&out, arena, URL_LEN_MAX + 3 * SEARCH_TEXT_MAX);
	while (pattern.len) {
		size_t brace = str_find_char(pattern, '{');

		buf_add(&out, str_first(pattern, brace));
		pattern = str_from(pattern, brace);
		if (str_starts(pattern, STR("{query}"))) {
			http_encode(&out, query, false);
			pattern = str_from(pattern, 7);
		} else if (str_starts(pattern, STR("{count}"))) {
			buf_u64(&out, count);
			pattern = str_from(pattern, 7);
		} else if (pattern.len) {
			buf_char(&out, '{');
			pattern = str_from(pattern, 1);
		}
	}
	return buf_str(&out);
}

/* Text on one line: services send <strong> and character references. */
static struct str plain(struct arena *arena, struct str html)
{
	struct html_scan scan = {.rest = str_first(html, 16 * KIB)};
	struct html_token t;
	struct buf out, line;

	buf_init(&out, arena, 64 * KIB);
	buf_init(&line, arena, 64 * KIB);
	while (html_next(&scan, &t))
		if (t.kind == HTML_TEXT)
			html_decode(&out, t.text);
	for (size_t i = 0; i < out.len; i++) {
		if ((unsigned char)out.ptr[i] > ' ')
			buf_char(&line, out.ptr[i]);
		else if (line.len && line.ptr[line.len - 1] != ' ')
			buf_char(&line, ' ');
	}
	return utf8_first(str_trim(buf_str(&line)), SNIPPET_MAX);
}

static struct jv *take_results(struct arena *arena, const struct provider *p, const struct jv *answer, size_t count)
{
	struct str path = p->results, name;
	struct jv *list = jv_array(arena);

	while (path.len && str_cut(&path, '.', &name))
		answer = jv_get_key(answer, name);
	for (const struct jv_member *m = jv_first(answer); m && jv_count(list) < count; m = m->next) {
		struct str url = str_trim(jv_str_of(jv_get_key(m->value, p->link)));
		struct jv *v = jv_object(arena);

		if (!url.len || url.len > URL_LEN_MAX || memchr(url.ptr, '\n', url.len))
			continue;
		jv_set_str(arena, v, "title", plain(arena, jv_str_of(jv_get_key(m->value, p->title))));
		jv_set_str(arena, v, "url", url);
		jv_set_str(arena, v, "snippet", plain(arena, jv_str_of(jv_get_key(m->value, p->snippet))));
		jv_push(arena, list, v);
	}
	return list;
}

static int check_status(int status, struct err *err)
{
	if (status / 100 == 2)
		return 0;
	if (status == 401 || status == 403)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the search service answered %d; check web.search.api_key and the key in .env", status);
	if (status == 429)
		return err_set(err, ERR_RATE_LIMITED,
			       "the search service allows no more searches now; try again later");
	return err_set(err, ERR_UNAVAILABLE, "the search service answered %d", status);
}

void web_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct provider provider;
	struct err err;

	if (section_of(ws) && read_provider(ctx->arena, section_of(ws), &provider, &err))
		finding_error(findings, "web", &err, "correct agent.yaml; web_search fails until then");
}

int web_search(struct workspace *ws, struct ctx *ctx, struct str query, size_t count, struct jv **ret, struct err *err)
{
	const struct jv *section = section_of(ws);
	struct ctx own = web_limit(ctx, section);
	struct http_response response = {0};
	struct http_request req = {.method = "GET", .body_max = WEB_SEARCH_MAX};
	struct provider provider;
	struct jv *answer;
	struct http *http;
	int r = read_provider(ctx->arena, section, &provider, err);

	if (r)
		return r;
	count = count < COUNT_MAX ? count : COUNT_MAX;
	req.url = fill_url(ctx->arena, provider.url, query, count);
	req.headers = provider.headers;
	req.header_count = provider.headers[1].name.len ? 2 : 1;
	http = http_new(NULL);
	r = http_perform(http, &own, &req, &response, err);
	http_destroy(http);
	if (r == 0)
		r = check_status(response.status, err);
	if (r)
		return err_prefix(err, "web search");
	r = jv_parse(ctx->arena, response.body, &answer, err);
	if (r)
		return err_prefix(err, "the search service's answer cannot be read");
	*ret = take_results(ctx->arena, &provider, answer, count);
	return 0;
}
