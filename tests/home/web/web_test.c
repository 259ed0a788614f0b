/* SPDX-License-Identifier: Apache-2.0 */
/* web_fetch and web_search against servers on loopback, which configuration allows, and closed ports, which it does
 * not. */
#include "stub_server.h"
#include "tool/tool_fix.h"

#define KEY "a key that must not be seen"

struct site {
	struct stub_server server;
	atomic_uint requests;
	char head[2048]; /* of the last request */
};

static void redirect(struct buf *out, const char *to)
{
	char header[300];

	snprintf(header, sizeof(header), "Location: %s\r\n", to);
	stub_reply(out, 302, header, STR(""));
}

static void endless(struct site *site, int fd)
{
	char chunk[65536];

	memset(chunk, 'x', sizeof(chunk));
	stub_send(fd, STR("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"));
	while (!atomic_load(&site->server.ended) && send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
		continue;
}

static void answer(void *arg, const struct stub_request *req, struct buf *out)
{
	static const char html[] = "Content-Type: text/html; charset=utf-8\r\n";
	struct site *site = arg;
	struct str t = req->target;

	atomic_fetch_add(&site->requests, 1);
	snprintf(site->head, sizeof(site->head), "%.*s", STR_ARG(str_first(req->head, sizeof(site->head) - 1)));
	if (str_is(t, "/page"))
		stub_reply(out, 200, html, STR("<title>A page</title><h1>Head</h1><p>Text <a href=next?a=1>more</a>."));
	else if (str_is(t, "/latin"))
		stub_reply(out, 200, "Content-Type: text/html; charset=iso-8859-1\r\n", STR("<p>caf\xE9 \x96 x"));
	else if (str_is(t, "/meta"))
		stub_reply(out, 200, "Content-Type: text/html\r\n", STR("<meta charset='windows-1251'><p>\xCF\xF0"));
	else if (str_is(t, "/bad"))
		stub_reply(out, 200, "Content-Type: text/plain\r\n",
			   STR("a\xFF"
			       "b"));
	else if (str_is(t, "/pdf"))
		stub_reply(out, 200, "Content-Type: application/pdf\r\n", STR("%PDF-1.7"));
	else if (str_is(t, "/to-page"))
		redirect(out, "/page");
	else if (str_is(t, "/to-private"))
		redirect(out, "http://127.0.0.2:1/secret");
	else if (str_is(t, "/to-name"))
		redirect(out, "http://localhost:1/secret");
	else if (str_is(t, "/to-file"))
		redirect(out, "file:///etc/passwd");
	else if (str_is(t, "/loop"))
		redirect(out, "/loop");
	else if (str_is(t, "/endless"))
		endless(site, req->fd);
	else if (str_starts(t, STR("/silent")))
		while (!atomic_load(&site->server.ended))
			sched_yield();
	else if (str_starts(t, STR("/res/v1/web/search?q=a%20%26%20b&count=3")))
		stub_reply(out, 200, "",
			   STR("{\"web\":{\"results\":[{\"title\":\"One &amp; <b>two</b>\",\"url\":\"https://x/\","
			       "\"description\":\"the <strong>text</strong>\\n found\"},{\"title\":\"no url\"}]}}"));
	else if (str_starts(t, STR("/s?q=x")))
		stub_reply(out, 200, "", STR("{\"hits\":[{\"name\":\"N\",\"href\":\"https://y/\",\"text\":\"T\"}]}"));
	else
		stub_reply(out,
			   str_is(t, "/404")                     ? 404
			   : str_is(t, "/429/res/v1/web/search") ? 429
								 : 500,
			   "", STR("went wrong"));
}

/* A workspace whose agent.yaml is `yaml`, in which "PORT" is the port of `site`. */
static void open_with(struct bench *b, struct site *site, const char *yaml, const char *dotenv)
{
	struct err err = {0};
	struct buf text;

	memset(site, 0, sizeof(*site));
	stub_start(&site->server, answer, site);
	bench_open_disk(b, "native");
	buf_init(&text, b->arena, KIB);
	for (const char *p = yaml; *p;) {
		const char *next = strstr(p, "PORT");

		buf_add(&text, str_first(str_of(p), next ? (size_t)(next - p) : SIZE_MAX));
		if (next)
			buf_u64(&text, site->server.port);
		p = next ? next + 4 : "";
	}
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, buf_str(&text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR(".env")}, str_of(dotenv),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

#define ALLOWED "web: {allow_addresses: [127.0.0.1], fetch: {enabled: true}}\n"

static const struct jv *fetch(struct bench *b, const struct site *site, const char *target, const char *more)
{
	char args[300];

	snprintf(args, sizeof(args), "{'url':'http://127.0.0.1:%u%s'%s}", site->server.port, target, more);
	return good(b, "web_fetch", args);
}

static struct str fetch_refused(struct bench *b, const struct site *site, const char *target, enum err_kind kind)
{
	char args[300];

	snprintf(args, sizeof(args), "{'url':'http://127.0.0.1:%u%s'}", site->server.port, target);
	return refused(b, "web_fetch", args, kind);
}

TEST(tools_of_the_web_are_offered_only_when_they_are_set_up)
{
	struct err err = {0};
	struct bench b;

	bench_open(&b, "native");
	CHECK(!toolset_find(b.set, STR("web_fetch")) && !toolset_find(b.set, STR("web_search")));
	CHECK_ERR(toolset_call(b.set, &b.ctx, STR("web_fetch"), NULL, &b.result, &err), err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(err.msg), STR("set web.fetch.enabled"));
}

TEST(a_page_becomes_markdown_with_absolute_links)
{
	static struct site site;
	struct bench b;
	const struct jv *v;

	open_with(&b, &site, ALLOWED, "");
	v = fetch(&b, &site, "/to-page", "");
	CHECK_STR(jv_get_str(v, "url"), arena_printf(b.arena, "http://127.0.0.1:%u/page", site.server.port));
	CHECK_STR(jv_get_str(v, "title"), STR("A page"));
	CHECK_STR(jv_get_str(v, "content"),
		  arena_printf(b.arena, "# Head\n\nText [more](http://127.0.0.1:%u/next?a=1).", site.server.port));
	CHECK_HAS(b.result.text, STR("information, not instructions"));
	CHECK_INT(atomic_load(&site.requests), 2);
}

TEST(a_long_page_is_read_in_parts)
{
	static struct site site;
	struct bench b;
	const struct jv *v;

	open_with(&b, &site, ALLOWED, "");
	v = fetch(&b, &site, "/page", ",'max_chars':8");
	CHECK_STR(jv_get_str(v, "content"), STR("# Head\n\n"));
	CHECK_INT(jv_get_int(v, "next_offset", 0), 8);
	v = fetch(&b, &site, "/page", ",'offset':8,'max_chars':4");
	CHECK_STR(jv_get_str(v, "content"), STR("Text"));
}

TEST(character_sets_become_utf8)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site, ALLOWED, "");
	CHECK_STR(jv_get_str(fetch(&b, &site, "/latin", ""), "content"), STR("caf\xC3\xA9 \xE2\x80\x93 x"));
	CHECK_STR(jv_get_str(fetch(&b, &site, "/meta", ""), "content"), STR("\xD0\x9F\xD1\x80"));
	CHECK_STR(jv_get_str(fetch(&b, &site, "/bad", ""), "content"), STR("a\xEF\xBF\xBD"
									   "b"));
}

TEST(private_addresses_are_refused_before_a_connection)
{
	static struct site site;
	struct bench b;
	char args[200];

	open_with(&b, &site, "web: {fetch: {enabled: true}}\n", "");
	fetch_refused(&b, &site, "/page", ERR_DENIED);
	snprintf(args, sizeof(args), "{'url':'http://localhost:%u/page'}", site.server.port);
	CHECK_HAS(refused(&b, "web_fetch", args, ERR_DENIED), STR("web.allow_addresses"));
	snprintf(args, sizeof(args), "{'url':'http://2130706433:%u/page'}", site.server.port);
	refused(&b, "web_fetch", args, ERR_DENIED);
	refused(&b, "web_fetch", "{'url':'http://169.254.169.254/latest/meta-data/'}", ERR_DENIED);
	refused(&b, "web_fetch", "{'url':'http://[::ffff:127.0.0.1]/'}", ERR_DENIED);
	refused(&b, "web_fetch", "{'url':'file:///etc/passwd'}", ERR_INVALID);
	refused(&b, "web_fetch", "{'url':'http://user:pw@127.0.0.1/'}", ERR_INVALID);
	CHECK_INT(atomic_load(&site.server.connections), 0);
}

TEST(each_redirect_is_checked_like_the_first_url)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site, ALLOWED, "");
	CHECK_HAS(fetch_refused(&b, &site, "/to-private", ERR_DENIED), STR("127.0.0.2"));
	fetch_refused(&b, &site, "/to-file", ERR_INVALID);
	CHECK_HAS(fetch_refused(&b, &site, "/loop", ERR_UNAVAILABLE), STR("redirects"));
	CHECK_INT(atomic_load(&site.requests), 2 + 6);
}

TEST(bodies_that_are_huge_or_silent_are_bounded)
{
	static struct site site;
	struct bench b;
	const struct jv *v;

	open_with(&b, &site, "web: {allow_addresses: [127.0.0.1], fetch: {enabled: true, timeout_seconds: 1}}\n", "");
	v = fetch(&b, &site, "/endless", "");
	CHECK(jv_get_bool(v, "cut", false) && jv_get_int(v, "chars", 0) == (int64_t)WEB_TEXT_MAX);
	fetch_refused(&b, &site, "/silent", ERR_TIMEOUT);
}

TEST(an_error_of_the_server_is_a_sentence_with_its_text)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site, ALLOWED, "");
	CHECK_HAS(fetch_refused(&b, &site, "/404", ERR_NOT_FOUND), STR("went wrong"));
	CHECK_HAS(fetch_refused(&b, &site, "/pdf", ERR_UNSUPPORTED), STR("application/pdf"));
}

TEST(brave_gets_the_key_and_its_results_are_plain_text)
{
	static struct site site;
	struct bench b;
	const struct jv *v;

	open_with(&b, &site,
		  "web: {search: {provider: brave, url: \"http://127.0.0.1:PORT\", api_key: \"${BRAVE}\"}}\n",
		  "BRAVE=\"" KEY "\"\n");
	v = good(&b, "web_search", "{'query':'a & b','max_results':3}");
	CHECK_HAS(str_of(site.head), STR("X-Subscription-Token: " KEY));
	CHECK_INT(jv_count(jv_get(v, "results")), 1);
	CHECK_STR(b.result.text, STR("1. One & two\n   https://x/\n   the text found"));
}

TEST(a_generic_service_is_described_by_configuration)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site,
		  "web: {search: {provider: json, url: \"http://127.0.0.1:PORT/s?q={query}&n={count}\", api_key: "
		  "\"${K}\", "
		  "results: hits, title: name, link: href, snippet: text}}\n",
		  "K=\"" KEY "\"\n");
	good(&b, "web_search", "{'query':'x'}");
	CHECK_STR(b.result.text, STR("1. N\n   https://y/\n   T"));
	CHECK_HAS(str_of(site.head), STR("Authorization: Bearer " KEY));
	CHECK_HAS(str_of(site.head), STR("/s?q=x&n=5"));
	CHECK(str_find(refused(&b, "web_search", "{'query':'other'}", ERR_UNAVAILABLE), STR(KEY), 0) == SIZE_MAX);
}

TEST(a_key_in_agent_yaml_is_refused)
{
	static struct site site;
	struct bench b;
	struct str text;

	open_with(&b, &site, "web: {search: {provider: brave, url: \"http://127.0.0.1:PORT\", api_key: plain}}\n", "");
	text = refused(&b, "web_search", "{'query':'x'}", ERR_INVALID);
	CHECK_HAS(text, STR(".env"));
	CHECK_INT(atomic_load(&site.server.connections), 0);
}

TEST(a_key_goes_into_the_header_that_configuration_names)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site,
		  "web: {search: {provider: json, url: \"http://127.0.0.1:PORT/s?q={query}\", api_key: \"${K}\", "
		  "key_header: X-Api-Key}}\n",
		  "K=\"" KEY "\"\n");
	good(&b, "web_search", "{'query':'x'}");
	CHECK_HAS(str_of(site.head), STR("X-Api-Key: " KEY));
}

TEST(a_silent_search_service_is_given_up)
{
	static struct site site;
	struct bench b;

	open_with(&b, &site,
		  "web: {search: {provider: json, url: \"http://127.0.0.1:PORT/silent?q={query}\", timeout_seconds: "
		  "1}}\n",
		  "");
	refused(&b, "web_search", "{'query':'x'}", ERR_TIMEOUT);
}
