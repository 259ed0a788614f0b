/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page at "/" and its files. They are embedded in the program, as they are and compressed, so serving them needs no
 * directory, no library and no work. The name of a file below assets/ has a hash of its bytes in it: a browser may keep
 * it for ever. Only "/" is asked for again, and answered with 304 while it is the same.
 *
 * The page shows what agents and strangers wrote. Its policy lets it load scripts and styles from here alone and send
 * requests to no other host, so that a mistake in the page does not become one for its user.
 */
#include "server/page.h"

#include "base/buf.h"
#include "server/server_internal.h"

#define POLICY                                                                                                         \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' "       \
	"blob:; font-src 'self'; connect-src 'self'; frame-src blob:; object-src blob:; base-uri 'none'; "             \
	"form-action 'none'; frame-ancestors 'none'"

bool accepts_gzip(struct str header)
{
	struct str part;

	while (str_cut(&header, ',', &part)) {
		struct str name, weight = part;

		if (!str_cut(&weight, ';', &name) || !str_eq_nocase(str_trim(name), STR("gzip")))
			continue;
		weight = str_trim(weight);
		return !str_is(weight, "q=0") && !str_is(weight, "q=0.0") && !str_is(weight, "q=0.00") &&
		       !str_is(weight, "q=0.000");
	}
	return false;
}

static const struct page_file *page_find(struct str path)
{
	for (const struct page_file *file = page_files; file->path; file++)
		if (str_is(path, file->path))
			return file;
	return NULL;
}

static void answer_page(struct exchange *x, const struct page_file *file, struct str cache)
{
	bool gzip = accepts_gzip(exchange_header(x, "Accept-Encoding"));
	struct str tag = arena_printf(x->arena, "%s%s", file->hash, gzip ? "-gz" : "");
	const struct str *bytes = gzip ? file->gzip : file->bytes;

	exchange_add_header(x, "ETag", arena_printf(x->arena, "\"%.*s\"", STR_ARG(tag)));
	exchange_add_header(x, "Cache-Control", cache);
	exchange_add_header(x, "Vary", STR("Accept-Encoding"));
	exchange_add_header(x, "Content-Security-Policy", STR(POLICY));
	exchange_add_header(x, "Referrer-Policy", STR("no-referrer"));
	exchange_add_header(x, "Cross-Origin-Opener-Policy", STR("same-origin"));
	if (etag_matches(exchange_header(x, "If-None-Match"), tag, true)) {
		answer_empty(x, 304);
		return;
	}
	if (gzip)
		exchange_add_header(x, "Content-Encoding", STR("gzip"));
	exchange_add_header(x, "Content-Type", str_of(content_type(str_of(file->path))));
	if (str_is(x->method, "HEAD"))
		exchange_answer_head(x, 200, bytes->len);
	else
		exchange_answer(x, 200, *bytes);
}

void run_page(struct exchange *x)
{
	answer_page(x, page_find(STR("index.html")), STR("no-cache"));
}

void run_page_asset(struct exchange *x)
{
	struct str path = arena_printf(x->arena, "assets/%.*s", STR_ARG(call_of(x)->rest));
	const struct page_file *file = page_find(path);
	struct err err;

	if (file) {
		answer_page(x, file, STR("public, max-age=31536000, immutable"));
		return;
	}
	err_set(&err, ERR_NOT_FOUND, "the page has no such file; reload the page");
	answer_error(x, &err);
}
