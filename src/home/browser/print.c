/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A browser for each document, not the one that the agent looks at pages with: that one has the network, cookies and a
 * page that must stay. This one has a proxy at which nobody listens, so a document that names pictures or styles of
 * other machines makes no connection.
 */
#include "home/browser/print.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "base/base64.h"
#include "home/browser/cdp.h"
#include "home/browser/profile.h"

struct printer {
	struct cdp *cdp;
	char program[256], dir[128];
	int fd; /* holds the port of the proxy, and does not listen */
	char session[64];
};

static void on_event(void *arg, struct arena *arena, struct str method, const struct jv *message)
{
	(void)arg;
	(void)arena;
	(void)method;
	(void)message;
}

static int hold_port(struct printer *p, uint16_t *ret, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);

	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&at, len) != 0 ||
	    getsockname(p->fd, (struct sockaddr *)&at, &len) != 0)
		return err_sys(err, errno, "no port is free for the browser");
	*ret = ntohs(at.sin_port);
	return 0;
}

static int call(struct printer *p, struct ctx *ctx, const char *method, const struct jv *params, struct jv **ret,
		struct err *err)
{
	return cdp_call(p->cdp, ctx, str_of(p->session), method, params, ret, err);
}

static int open_tab(struct printer *p, struct ctx *ctx, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *answer = NULL;
	int r;

	jv_set_str(ctx->arena, params, "url", STR("about:blank"));
	r = call(p, ctx, "Target.createTarget", params, &answer, err);
	if (r)
		return r;
	params = jv_object(ctx->arena);
	jv_set_str(ctx->arena, params, "targetId", jv_get_str(answer, "targetId"));
	jv_set_bool(ctx->arena, params, "flatten", true);
	r = call(p, ctx, "Target.attachToTarget", params, &answer, err);
	if (r == 0)
		snprintf(p->session, sizeof(p->session), "%.*s", STR_ARG(jv_get_str(answer, "sessionId")));
	return r;
}

static int start(struct printer *p, struct workspace *ws, struct ctx *ctx, struct err *err)
{
	struct cdp_opts opts = {.program = p->program, .dir = p->dir, .event = on_event};
	int r;

	if (!browser_find_program(ws, p->program, sizeof(p->program)))
		return err_set(err, ERR_UNSUPPORTED,
			       "Chromium is not installed; ask the user to install it, or to set browser.program or "
			       "media.pdf");
	if (!profile_make(p->dir, sizeof(p->dir)))
		return err_sys(err, errno, "a directory for the browser cannot be created");
	r = hold_port(p, &opts.proxy_port, err);
	if (r == 0)
		r = cdp_open(ctx, &opts, &p->cdp, err);
	return r ? r : open_tab(p, ctx, err);
}

static int set_content(struct printer *p, struct ctx *ctx, struct str html, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *tree = NULL;
	int r;

	jv_set_bool(ctx->arena, params, "value", true);
	r = call(p, ctx, "Emulation.setScriptExecutionDisabled", params, NULL, err);
	if (r == 0)
		r = call(p, ctx, "Page.getFrameTree", NULL, &tree, err);
	if (r)
		return r;
	params = jv_object(ctx->arena);
	jv_set_str(ctx->arena, params, "frameId", jv_get_str(jv_get(jv_get(tree, "frameTree"), "frame"), "id"));
	jv_set_str(ctx->arena, params, "html", html);
	return call(p, ctx, "Page.setDocumentContent", params, NULL, err);
}

static int print(struct printer *p, struct ctx *ctx, struct str *ret, struct err *err)
{
	static const char options[] =
		"{\"printBackground\":true,\"paperWidth\":8.27,\"paperHeight\":11.69,\"marginTop\":0.8,"
		"\"marginBottom\":0.8,\"marginLeft\":0.8,\"marginRight\":0.8,\"displayHeaderFooter\":true,"
		"\"headerTemplate\":\"<span></span>\",\"generateTaggedPDF\":true,\"generateDocumentOutline\":true,"
		"\"footerTemplate\":\"<div style='font-size:8px;width:100%;text-align:center;color:#666'>"
		"<span class=pageNumber></span> / <span class=totalPages></span></div>\"}";
	struct jv *params, *answer = NULL;
	int r = jv_parse(ctx->arena, str_of(options), &params, err);

	if (r == 0)
		r = call(p, ctx, "Page.printToPDF", params, &answer, err);
	if (r)
		return r;
	return base64_decode(ctx->arena, jv_get_str(answer, "data"), ret)
		       ? 0
		       : err_set(err, ERR_UNAVAILABLE, "the browser gave no PDF; try again");
}

int browser_print(struct workspace *ws, struct ctx *ctx, struct str html, struct str *ret_pdf, struct err *err)
{
	struct printer p = {.fd = -1};
	int r = start(&p, ws, ctx, err);

	if (r == 0)
		r = set_content(&p, ctx, html, err);
	if (r == 0)
		r = print(&p, ctx, ret_pdf, err);
	cdp_close(p.cdp);
	if (p.fd >= 0)
		close(p.fd);
	if (p.dir[0])
		profile_remove(p.dir);
	return r;
}
