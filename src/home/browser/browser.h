/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A browser that an agent uses: pages as text with numbered elements, which are clicked and typed into. It is started
 * by the first navigation, has a profile of its own that is removed with it, and ends with the workspace handle that it
 * belongs to: the turn of an agent, the connection of an MCP client. All its connections go through a proxy that lets
 * only permitted addresses through (net/guard_proxy.h). Thread-safe; one call at a time.
 */
#ifndef STEAD_HOME_BROWSER_BROWSER_H
#define STEAD_HOME_BROWSER_BROWSER_H

#include "text/jv.h"
#include "workspace/workspace.h"

struct browser;

bool browser_is_on(struct workspace *ws);
struct browser *browser_new(struct workspace *ws);
void browser_destroy(struct browser *browser);

/* One step: what is done, and then what there is to see: {url, title, content, cut, downloads?: [path]}. */
enum browser_act {
	BROWSER_NAVIGATE, /* text: the URL */
	BROWSER_SNAPSHOT,
	BROWSER_CLICK,  /* ref */
	BROWSER_TYPE,   /* ref, text, enters */
	BROWSER_SELECT, /* ref, text: the value or the label of an option */
	BROWSER_SCROLL, /* text: "up" or "down"; amount: "page", "half", "end" */
	BROWSER_BACK,
};
struct browser_step {
	enum browser_act act;
	int64_t ref;
	struct str text, amount;
	bool enters;
};
int browser_do(struct browser *browser, struct ctx *ctx, const struct browser_step *step, struct jv **ret,
	       struct err *err);
/* A picture as PNG, in Base64. */
int browser_picture(struct browser *browser, struct ctx *ctx, bool whole_page, struct str *ret_base64, struct err *err);
/* [{index, url, title, active}] */
int browser_tabs(struct browser *browser, struct ctx *ctx, struct jv **ret, struct err *err);
int browser_switch(struct browser *browser, struct ctx *ctx, int64_t index, struct err *err);
void browser_end(struct browser *browser);

#endif
