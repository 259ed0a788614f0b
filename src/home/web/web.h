/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the web on behalf of a model: pages as Markdown, and search services. Nothing is kept. */
#ifndef STEAD_HOME_WEB_H
#define STEAD_HOME_WEB_H

#include "tool/family.h"
#include "workspace/workspace.h"

struct web_page {
	struct str url;  /* after redirects */
	struct str type; /* as the server says, without parameters */
	struct str title, text;
	int status;
	bool is_cut; /* the page is longer than WEB_PAGE_MAX, or its Markdown than WEB_TEXT_MAX */
};

bool web_fetch_is_on(struct workspace *ws);
/* Fetches one URL. HTML becomes Markdown, other text is returned as it is. ERR_DENIED: an address that may not be
   reached, before any connection to it; ERR_UNSUPPORTED: not text; ERR_TIMEOUT; an error status of the server as the
   kind that fits it, with the start of its answer in *ret_detail. */
int web_fetch(struct workspace *ws, struct ctx *ctx, struct str url, struct web_page *ret, struct str *ret_detail,
	      struct err *err);

bool web_search_is_on(struct workspace *ws);
/* What doctor reports: a search service that cannot be asked as it is configured. */
void web_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);
/* Results as [{title, url, snippet}], at most `count`. */
int web_search(struct workspace *ws, struct ctx *ctx, struct str query, size_t count, struct jv **ret, struct err *err);

/* What web.allow_addresses adds to public addresses. */
struct reach;
int web_reach(struct workspace *ws, struct reach *ret, struct err *err);
/* ctx with the time limit of section.timeout_seconds (of `web`), if that is earlier. */
struct ctx web_limit(const struct ctx *ctx, const struct jv *section);

#endif
