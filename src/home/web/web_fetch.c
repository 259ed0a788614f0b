/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model decides what is fetched, and pages decide what a model asks for next. So a URL is a request by a stranger
 * from inside this machine's network. Each hop is taken alone: the URL is parsed strictly, its name is resolved once,
 * every address is checked, and the connection is pinned to what was checked (net/reach.h, net/http.h). Redirects are
 * followed here, not by the HTTP library, so that the next hop is checked like the first. A client lives for one fetch:
 * no cookie, no connection and no resolved name passes from one call to the next.
 */
#include <iconv.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "home/web/web.h"
#include "net/http.h"
#include "net/reach.h"
#include "net/url.h"
#include "text/html.h"

#define STALL_MS  10000
#define SNIFF_MAX ((size_t)1024) /* where a page may name its character set */

static const struct jv *section_of(struct workspace *ws)
{
	return jv_get(workspace_config(ws)->document, "web");
}

bool web_fetch_is_on(struct workspace *ws)
{
	return jv_get_bool(jv_get(section_of(ws), "fetch"), "enabled", false);
}

struct ctx web_limit(const struct ctx *ctx, const struct jv *section)
{
	int64_t end = clock_monotonic_ns() + jv_get_int(section, "timeout_seconds", 20) * NS_PER_S;
	struct ctx own = *ctx;

	if (!own.deadline_ns || end < own.deadline_ns)
		own.deadline_ns = end;
	return own;
}

int web_reach(struct workspace *ws, struct reach *ret, struct err *err)
{
	const struct jv *list = jv_get(section_of(ws), "allow_addresses");
	int r = 0;

	*ret = (struct reach){0};
	for (const struct jv_member *m = jv_first(list); r == 0 && m; m = m->next)
		r = reach_allow(ret, jv_str_of(m->value), err);
	return r ? err_prefix(err, "web.allow_addresses") : 0;
}

/* --- one hop --- */

struct body {
	struct buf bytes;
	bool is_full;
};

/* Stops the transfer when there is enough. */
static int push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct body *body = arg;
	struct str part = str_first(str_n(bytes, len), WEB_PAGE_MAX - body->bytes.len);

	buf_add(&body->bytes, part);
	if (part.len == len)
		return 0;
	body->is_full = true;
	return err_set(err, ERR_TOO_LARGE, "the page is larger than %zu bytes", WEB_PAGE_MAX);
}

/* No compression was asked for. What is compressed all the same is refused before a byte of it is read: a few of them
   can stand for any number. */
static int check_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	(void)arg;
	(void)status;
	for (size_t i = 0; i < count; i++)
		if (str_is(headers[i].name, "content-encoding") && headers[i].value.len &&
		    !str_eq_nocase(headers[i].value, STR("identity")))
			return err_set(err, ERR_UNSUPPORTED,
				       "the server sent the page compressed (%.*s) without being asked, so it was not "
				       "read; fetch another page",
				       STR_ARG(utf8_first(headers[i].value, 40)));
	return 0;
}

static int get(struct http *http, const struct reach *reach, struct ctx *ctx, const struct url *url, struct body *body,
	       struct http_response *ret, struct err *err)
{
	static const struct http_header headers[] = {
		{STR("Accept"), STR("text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5")},
		{STR("User-Agent"), STR("Stead")},
	};
	struct reach_addresses addresses;
	struct http_request req = {.method = "GET",
				   .url = url_format(ctx->arena, url),
				   .pin = &addresses,
				   .headers = headers,
				   .header_count = COUNT(headers),
				   .push = push,
				   .head = check_head,
				   .arg = body};
	int r = reach_resolve(reach, ctx, url->host, url->port, &addresses, err);

	buf_init(&body->bytes, ctx->arena, WEB_PAGE_MAX);
	if (r == 0)
		r = http_perform(http, ctx, &req, ret, err);
	return r && body->is_full ? 0 : r;
}

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* From `url` to the page, over at most WEB_REDIRECTS_MAX redirects; `url` becomes the last one. */
static int follow(struct http *http, const struct reach *reach, struct ctx *ctx, struct url *url, struct body *body,
		  struct http_response *ret, struct err *err)
{
	for (int hop = 0; hop <= WEB_REDIRECTS_MAX; hop++) {
		struct str location;
		int r = get(http, reach, ctx, url, body, ret, err);

		if (r)
			return r;
		location = http_header_of(ret, "location");
		if (!is_redirect(ret->status) || !location.len)
			return 0;
		r = url_join(ctx->arena, url, location, url, err);
		if (r)
			return err_prefix(err, "the server redirected");
	}
	return err_set(err, ERR_UNAVAILABLE, "more than %d redirects; the last one led to \"%.*s\"", WEB_REDIRECTS_MAX,
		       STR_ARG(utf8_first(url_format(ctx->arena, url), 200)));
}

/* --- what came --- */

static enum err_kind kind_of_status(int status)
{
	if (status == 404 || status == 410)
		return ERR_NOT_FOUND;
	if (status == 401 || status == 403 || status == 451)
		return ERR_DENIED;
	if (status == 429)
		return ERR_RATE_LIMITED;
	return status / 100 == 4 ? ERR_INVALID : ERR_UNAVAILABLE;
}

/* The value of charset=… in a header or in the head of a page; empty: not given. */
static struct str charset_in(struct arena *arena, struct str text)
{
	struct str low = str_lower(arena, text);
	size_t at = str_find(low, STR("charset"), 0), end;

	if (at == SIZE_MAX)
		return STR_NONE;
	low = str_trim(str_from(low, at + 7));
	if (!low.len || low.ptr[0] != '=')
		return STR_NONE;
	low = str_trim(str_from(low, 1));
	while (low.len && (low.ptr[0] == '"' || low.ptr[0] == '\''))
		low = str_from(low, 1);
	for (end = 0; end < low.len && end < 40; end++) {
		char c = low.ptr[end];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("-_.:", c))
			break;
	}
	return str_first(low, end);
}

/* Malformed sequences become U+FFFD, NUL becomes a blank. */
static struct str mend_utf8(struct arena *arena, struct str text)
{
	struct buf out;

	if (utf8_valid(text) && !memchr(text.ptr ? text.ptr : "", 0, text.len))
		return text;
	buf_init(&out, arena, 3 * text.len + 4);
	for (size_t i = 0; i < text.len;) {
		uint32_t c = utf8_next(text, &i);
		char bytes[UTF8_LEN_MAX];

		buf_add(&out, str_n(bytes, utf8_put(bytes, c >= UTF8_BAD ? 0xFFFD : c ? c : ' ')));
	}
	return buf_str(&out);
}

/* An unknown set is read as UTF-8. */
static struct str to_utf8(struct arena *arena, struct str bytes, struct str charset)
{
	size_t room = 3 * bytes.len + 16, left_out = room, left_in = bytes.len;
	char *in = (char *)bytes.ptr, *out, *start;
	iconv_t cd;

	if (!bytes.len || !charset.len || str_is(charset, "utf-8") || str_is(charset, "utf8"))
		return mend_utf8(arena, bytes);
	cd = iconv_open("UTF-8", arena_printf(arena, "%.*s//IGNORE",
					      STR_ARG(str_is(charset, "iso-8859-1") ? STR("windows-1252") : charset))
					 .ptr);
	if (cd == (iconv_t)-1)
		return mend_utf8(arena, bytes);
	start = out = arena_alloc_raw(arena, room);
	iconv(cd, &in, &left_in, &out, &left_out); /* what it cannot convert at the end is left out */
	iconv_close(cd);
	return mend_utf8(arena, str_n(start, room - left_out));
}

static bool is_html(struct str type, struct str bytes)
{
	struct str start = str_trim(str_first(bytes, SNIFF_MAX));

	if (type.len)
		return str_is(type, "text/html") || str_is(type, "application/xhtml+xml");
	return str_starts(start, STR("<!")) || str_starts(start, STR("<html")) || str_starts(start, STR("<HTML"));
}

static bool is_text(struct str type, struct str bytes)
{
	static const char *const types[] = {"application/json", "application/xml", "application/javascript",
					    "application/yaml", "application/toml"};

	if (memchr(bytes.ptr ? bytes.ptr : "", 0, bytes.len < SNIFF_MAX ? bytes.len : SNIFF_MAX))
		return false;
	for (size_t i = 0; i < COUNT(types); i++)
		if (str_is(type, types[i]))
			return true;
	return !type.len || str_starts(type, STR("text/")) || str_ends(type, STR("+json")) ||
	       str_ends(type, STR("+xml"));
}

struct links {
	struct arena *arena;
	const struct url *base;
};

/* Links of pages to pages; scripts, mail and data are left out. */
static struct str absolute(void *arg, struct str href)
{
	const struct links *links = arg;
	struct url url;
	struct err err;

	if (href.len && href.ptr[0] == '#')
		return STR_NONE;
	return url_join(links->arena, links->base, href, &url, &err) ? STR_NONE : url_format(links->arena, &url);
}

static int read_page(struct ctx *ctx, const struct url *url, const struct body *body, struct str content_type,
		     struct web_page *page, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str bytes = buf_str(&body->bytes), charset = charset_in(arena, content_type);
	struct links links = {arena, url};
	struct html_page html = {.link = absolute, .arg = &links};
	struct buf text;

	page->type = str_lower(arena, str_trim(str_first(content_type, str_find_char(content_type, ';'))));
	page->is_cut = body->is_full;
	if (!is_html(page->type, bytes)) {
		if (!is_text(page->type, bytes))
			return err_set(err, ERR_UNSUPPORTED,
				       "\"%.*s\" is %.*s, not text; fetch a page that describes it instead",
				       STR_ARG(utf8_first(page->url, 200)),
				       STR_ARG(page->type.len ? str_first(page->type, 80) : STR("binary data")));
		page->text = utf8_first(to_utf8(arena, bytes, charset), WEB_TEXT_MAX);
		page->is_cut |= body->bytes.len > WEB_TEXT_MAX;
		return 0;
	}
	if (!charset.len)
		charset = charset_in(arena, str_first(bytes, SNIFF_MAX));
	buf_init(&text, arena, WEB_TEXT_MAX);
	html_to_markdown(&text, to_utf8(arena, bytes, charset), &html);
	page->title = html.title;
	page->text = utf8_first(buf_str(&text), text.len);
	page->is_cut |= text.overflow;
	return 0;
}

int web_fetch(struct workspace *ws, struct ctx *ctx, struct str text, struct web_page *ret, struct str *ret_detail,
	      struct err *err)
{
	struct ctx own = web_limit(ctx, jv_get(section_of(ws), "fetch"));
	struct http *http = http_new(&(struct http_opts){.stall_ms = STALL_MS});
	struct http_response response = {0};
	struct body body = {0};
	struct reach reach;
	struct url url;
	int r = web_reach(ws, &reach, err);

	if (r == 0)
		r = url_parse(ctx->arena, text, &url, err);
	if (r == 0)
		r = follow(http, &reach, &own, &url, &body, &response, err);
	http_destroy(http);
	if (r)
		return r;
	*ret = (struct web_page){.url = url_format(ctx->arena, &url), .status = response.status};
	if (response.status / 100 == 2)
		return read_page(ctx, &url, &body, http_header_of(&response, "content-type"), ret, err);
	*ret_detail = utf8_first(mend_utf8(ctx->arena, str_first(response.body, KIB)), 500);
	return err_set(err, kind_of_status(response.status), "the server answered %d for \"%.*s\"", response.status,
		       STR_ARG(utf8_first(ret->url, 200)));
}
