/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call is synchronous: it sends commands and takes events while it waits, so there is no thread of our own. What
 * is read of a page comes from a script in an isolated world (page.js); what is done to it goes through the browser's
 * input, as a person's clicks and keys would.
 */
#include "home/browser/browser.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "home/browser/cdp.h"
#include "home/browser/profile.h"
#include "home/web/web.h"
#include "net/guard_proxy.h"
#include "net/url.h"

#define LOAD_NS     (15 * NS_PER_S)
#define SETTLE_NS   (250 * NS_PER_MS) /* for a step to set off something, if it does at all */
#define BEGIN_NS    (5 * NS_PER_S)    /* for a download to begin after a click on a link to one */
#define DOWNLOAD_NS (60 * NS_PER_S)

extern const struct str browser_page_script;

struct browser {
	struct workspace *ws;
	pthread_mutex_t lock;
	struct cdp *cdp;
	struct guard_proxy *proxy;
	char dir[128], program[256];
	char target[64], session[64]; /* the tab that is used */
	bool is_loading, is_loaded;
	unsigned downloads;  /* that have not ended */
	bool has_begun;      /* a download has, since the step began */
	struct arena *arena; /* of the call */
};

/* --- the program --- */

static const struct jv *section_of(struct workspace *ws)
{
	return jv_get(workspace_config(ws)->document, "browser");
}

bool browser_is_on(struct workspace *ws)
{
	char program[256];

	return jv_get_bool(section_of(ws), "enabled", false) && browser_find_program(ws, program, sizeof(program));
}

/* --- events --- */

static void on_event(void *arg, struct arena *arena, struct str method, const struct jv *message)
{
	const struct jv *params = jv_get(message, "params");
	struct browser *b = arg;

	if (str_is(method, "Page.javascriptDialogOpening")) {
		struct jv *answer = jv_object(arena);

		jv_set_bool(arena, answer, "accept", false); /* a dialog would stop the page */
		cdp_post(b->cdp, arena, jv_get_str(message, "sessionId"), "Page.handleJavaScriptDialog", answer);
	} else if (str_is(method, "Browser.downloadWillBegin")) {
		b->downloads++;
		b->has_begun = true;
	} else if (str_is(method, "Browser.downloadProgress")) {
		b->downloads -= b->downloads && !str_is(jv_get_str(params, "state"), "inProgress");
	} else if (!str_is(jv_get_str(message, "sessionId"), b->session)) {
		return; /* of another tab */
	} else if (str_is(method, "Page.frameStartedLoading") || str_is(method, "Page.frameStartedNavigating")) {
		b->is_loading = true;
		b->is_loaded = false;
	} else if (str_is(method, "Page.loadEventFired")) {
		b->is_loading = false;
		b->is_loaded = true;
	}
}

/* Nothing has been set off yet. */
static void step_begins(struct browser *b)
{
	b->is_loading = b->is_loaded = b->has_begun = false;
}

/* A load that turns out to be a download does not end as one. */
static bool has_loaded(void *arg)
{
	struct browser *b = arg;

	return b->is_loaded || b->has_begun;
}

static bool begins_to_load(void *arg)
{
	struct browser *b = arg;

	return b->is_loading || b->is_loaded || b->has_begun;
}

static bool begins_to_download(void *arg)
{
	struct browser *b = arg;

	return b->has_begun;
}

static bool has_downloaded(void *arg)
{
	struct browser *b = arg;

	return b->downloads == 0;
}

/* --- start and end, under the lock --- */

static void end_browser(struct browser *b)
{
	cdp_close(b->cdp);
	guard_proxy_stop(b->proxy);
	if (b->dir[0])
		profile_remove(b->dir);
	b->cdp = NULL;
	b->proxy = NULL;
	b->dir[0] = b->target[0] = b->session[0] = '\0';
	step_begins(b);
	b->downloads = 0;
}

static int call(struct browser *b, struct ctx *ctx, const char *method, const struct jv *params, struct jv **ret,
		struct err *err)
{
	return cdp_call(b->cdp, ctx, str_of(b->session), method, params, ret, err);
}

/* The tab becomes the one that is used. */
static int attach(struct browser *b, struct ctx *ctx, struct str target, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *attached = NULL;
	int r;

	jv_set_str(ctx->arena, params, "targetId", target);
	jv_set_bool(ctx->arena, params, "flatten", true);
	r = cdp_call(b->cdp, ctx, STR_NONE, "Target.attachToTarget", params, &attached, err);
	if (r)
		return r;
	snprintf(b->target, sizeof(b->target), "%.*s", STR_ARG(target));
	snprintf(b->session, sizeof(b->session), "%.*s", STR_ARG(jv_get_str(attached, "sessionId")));
	return call(b, ctx, "Page.enable", NULL, NULL, err);
}

static int list_tabs(struct browser *b, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct jv *targets = NULL;
	int r = cdp_call(b->cdp, ctx, STR_NONE, "Target.getTargets", NULL, &targets, err);

	*ret = jv_array(ctx->arena);
	for (const struct jv_member *m = r ? NULL : jv_first(jv_get(targets, "targetInfos")); m; m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "page") && jv_count(*ret) < BROWSER_TABS_MAX)
			jv_push(ctx->arena, *ret, m->value);
	return r;
}

static int set_up(struct browser *b, struct ctx *ctx, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *tabs;
	int r;

	jv_set_str(ctx->arena, params, "behavior", STR("allow"));
	jv_set_str(ctx->arena, params, "downloadPath", arena_printf(ctx->arena, "%s/downloads", b->dir));
	jv_set_bool(ctx->arena, params, "eventsEnabled", true);
	r = cdp_call(b->cdp, ctx, STR_NONE, "Browser.setDownloadBehavior", params, NULL, err);
	if (r == 0)
		r = list_tabs(b, ctx, &tabs, err);
	if (r == 0 && !jv_count(tabs))
		r = err_set(err, ERR_UNAVAILABLE, "the browser has no tab");
	return r ? r : attach(b, ctx, jv_get_str(jv_at(tabs, 0), "targetId"), err);
}

static int start_browser(struct browser *b, struct ctx *ctx, struct err *err)
{
	struct cdp_opts opts = {.program = b->program, .dir = b->dir, .event = on_event, .arg = b};
	struct reach reach;
	int r = web_reach(b->ws, &reach, err);

	if (r)
		return r;
	if (!browser_find_program(b->ws, b->program, sizeof(b->program)))
		return err_set(err, ERR_UNSUPPORTED,
			       "Chromium is not installed; ask the user to install it, or to set browser.program");
	if (!profile_make(b->dir, sizeof(b->dir)))
		return err_sys(err, errno, "a directory for the browser cannot be created");
	r = guard_proxy_start(&reach, &b->proxy, err);
	if (r == 0) {
		opts.proxy_port = guard_proxy_port(b->proxy);
		r = cdp_open(ctx, &opts, &b->cdp, err);
	}
	if (r == 0)
		r = set_up(b, ctx, err);
	if (r)
		end_browser(b);
	return r;
}

struct browser *browser_new(struct workspace *ws)
{
	struct browser *b = xcalloc(1, sizeof(*b));

	b->ws = ws;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void browser_destroy(struct browser *b)
{
	if (!b)
		return;
	end_browser(b);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void browser_end(struct browser *b)
{
	pthread_mutex_lock(&b->lock);
	end_browser(b);
	pthread_mutex_unlock(&b->lock);
}

/* --- the page --- */

/* Calls a function of page.js; `expression` is "snapshot()". */
static int ask_page(struct browser *b, struct ctx *ctx, struct str expression, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *params = jv_object(arena), *tree = NULL, *world = NULL, *answer = NULL;
	const struct jv *thrown;
	int r = call(b, ctx, "Page.getFrameTree", NULL, &tree, err);

	if (r)
		return r;
	jv_set_str(arena, params, "frameId", jv_get_str(jv_get(jv_get(tree, "frameTree"), "frame"), "id"));
	jv_set_str(arena, params, "worldName", STR("stead"));
	r = call(b, ctx, "Page.createIsolatedWorld", params, &world, err);
	if (r)
		return r;
	params = jv_object(arena);
	jv_set_str(arena, params, "expression",
		   arena_printf(arena, "%s\nstead.%.*s", browser_page_script.ptr, STR_ARG(expression)));
	jv_set_int(arena, params, "contextId", jv_get_int(world, "executionContextId", 0));
	jv_set_bool(arena, params, "returnByValue", true);
	r = call(b, ctx, "Runtime.evaluate", params, &answer, err);
	if (r)
		return r;
	thrown = jv_get(jv_get(answer, "exceptionDetails"), "exception");
	if (thrown) {
		struct str text = jv_get_str(thrown, "description");

		text = str_first(text, str_find_char(text, '\n'));
		if (str_starts(text, STR("Error: ")))
			text = str_from(text, 7);
		return err_set(err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(text, 200)));
	}
	*ret = (struct jv *)jv_get(jv_get(answer, "result"), "value");
	return *ret ? 0 : err_set(err, ERR_UNAVAILABLE, "the page gave no answer");
}

static struct str js_text(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, 8 * MIB);
	jv_write_string(&out, text);
	return buf_str(&out);
}

/* Waits until what a step set off has been loaded. */
static int settle(struct browser *b, struct ctx *ctx, struct err *err)
{
	int64_t now = clock_monotonic_ns();
	int r = cdp_wait(b->cdp, ctx, begins_to_load, now + SETTLE_NS, err);

	if (r == 0 && b->is_loading)
		r = cdp_wait(b->cdp, ctx, has_loaded, now + LOAD_NS, err);
	if (r == 0 && b->downloads)
		r = cdp_wait(b->cdp, ctx, has_downloaded, now + DOWNLOAD_NS, err);
	return r;
}

static int navigate(struct browser *b, struct ctx *ctx, struct str text, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *answer = NULL;
	struct str problem;
	struct url url;
	int r = url_parse(ctx->arena, text, &url, err);

	if (r == 0 && !b->cdp)
		r = start_browser(b, ctx, err);
	if (r)
		return r;
	step_begins(b);
	jv_set_str(ctx->arena, params, "url", text);
	r = call(b, ctx, "Page.navigate", params, &answer, err);
	if (r)
		return r;
	problem = jv_get_str(answer, "errorText");
	if (str_is(problem, "net::ERR_TUNNEL_CONNECTION_FAILED"))
		return err_set(err, ERR_DENIED,
			       "\"%.*s\" cannot be reached: its address is not public, or it does not answer",
			       STR_ARG(utf8_first(url.host, 200)));
	if (problem.len && !str_is(problem, "net::ERR_ABORTED")) /* that is a download */
		return err_set(err, ERR_UNAVAILABLE, "\"%.*s\" cannot be shown: %.*s", STR_ARG(utf8_first(text, 200)),
			       STR_ARG(utf8_first(problem, 100)));
	if (!problem.len)
		r = cdp_wait(b->cdp, ctx, has_loaded, clock_monotonic_ns() + LOAD_NS, err);
	return r ? r : settle(b, ctx, err);
}

static int mouse(struct browser *b, struct ctx *ctx, const char *type, const struct jv *at, struct err *err)
{
	struct jv *params = jv_object(ctx->arena);

	jv_set(ctx->arena, params, "x", jv_copy(ctx->arena, jv_get(at, "x")));
	jv_set(ctx->arena, params, "y", jv_copy(ctx->arena, jv_get(at, "y")));
	jv_set_str(ctx->arena, params, "type", str_of(type));
	jv_set_str(ctx->arena, params, "button", STR("left"));
	jv_set_int(ctx->arena, params, "clickCount", 1);
	return call(b, ctx, "Input.dispatchMouseEvent", params, NULL, err);
}

static int click(struct browser *b, struct ctx *ctx, int64_t ref, struct err *err)
{
	struct jv *at;
	int r = ask_page(b, ctx, arena_printf(ctx->arena, "point(%lld)", (long long)ref), &at, err);

	step_begins(b);
	if (r == 0)
		r = mouse(b, ctx, "mousePressed", at, err);
	if (r == 0)
		r = mouse(b, ctx, "mouseReleased", at, err);
	if (r == 0 && jv_get_bool(at, "downloads", false))
		r = cdp_wait(b->cdp, ctx, begins_to_download, clock_monotonic_ns() + BEGIN_NS, err);
	return r;
}

static int press_enter(struct browser *b, struct ctx *ctx, struct err *err)
{
	static const char *const types[] = {"keyDown", "keyUp"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(types); i++) {
		struct jv *params = jv_object(ctx->arena);

		jv_set_str(ctx->arena, params, "type", str_of(types[i]));
		jv_set_str(ctx->arena, params, "key", STR("Enter"));
		jv_set_str(ctx->arena, params, "code", STR("Enter"));
		jv_set_int(ctx->arena, params, "windowsVirtualKeyCode", 13);
		if (i == 0)
			jv_set_str(ctx->arena, params, "text", STR("\r"));
		r = call(b, ctx, "Input.dispatchKeyEvent", params, NULL, err);
	}
	return r;
}

static int type_text(struct browser *b, struct ctx *ctx, const struct browser_step *step, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *ignored;
	int r = ask_page(b, ctx, arena_printf(ctx->arena, "focus(%lld)", (long long)step->ref), &ignored, err);

	step_begins(b);
	jv_set_str(ctx->arena, params, "text", step->text);
	if (r == 0)
		r = call(b, ctx, "Input.insertText", params, NULL, err);
	return r == 0 && step->enters ? press_enter(b, ctx, err) : r;
}

static int go_back(struct browser *b, struct ctx *ctx, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *history = NULL;
	int r = call(b, ctx, "Page.getNavigationHistory", NULL, &history, err);
	int64_t at = jv_get_int(history, "currentIndex", 0);

	if (r)
		return r;
	if (at < 1 || str_is(jv_get_str(jv_at(jv_get(history, "entries"), (size_t)at - 1), "url"), "about:blank"))
		return err_set(err, ERR_INVALID, "there is no previous page; go to a URL instead");
	step_begins(b);
	jv_set_int(ctx->arena, params, "entryId",
		   jv_get_int(jv_at(jv_get(history, "entries"), (size_t)at - 1), "id", 0));
	return call(b, ctx, "Page.navigateToHistoryEntry", params, NULL, err);
}

static int act(struct browser *b, struct ctx *ctx, const struct browser_step *step, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *ignored;

	switch (step->act) {
	case BROWSER_NAVIGATE:
		return navigate(b, ctx, step->text, err);
	case BROWSER_CLICK:
		return click(b, ctx, step->ref, err);
	case BROWSER_TYPE:
		return type_text(b, ctx, step, err);
	case BROWSER_SELECT:
		step_begins(b);
		return ask_page(b, ctx,
				arena_printf(arena, "select(%lld, %.*s)", (long long)step->ref,
					     STR_ARG(js_text(arena, step->text))),
				&ignored, err);
	case BROWSER_SCROLL:
		return ask_page(b, ctx,
				arena_printf(arena, "scroll(%.*s, %.*s)", STR_ARG(js_text(arena, step->text)),
					     STR_ARG(js_text(arena, step->amount))),
				&ignored, err);
	case BROWSER_BACK:
		return go_back(b, ctx, err);
	case BROWSER_SNAPSHOT:
		break;
	}
	return 0;
}

/* --- downloads --- */

static int keep_download(struct browser *b, struct ctx *ctx, const char *name, struct jv *list, struct err *err)
{
	char path[500];
	struct store_stat stat;
	struct stat st;
	struct wpath to;
	struct str bytes;
	FILE *f;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s/downloads/%s", b->dir, name);
	f = fopen(path, "re");
	if (!f)
		return err_sys(err, errno, "a download cannot be read");
	size = fstat(fileno(f), &st) == 0 ? (size_t)st.st_size : 0;
	bytes = str_n(arena_alloc_raw(ctx->arena, size < CHANNEL_FILE_MAX ? size + 1 : 1), size);
	if (size >= CHANNEL_FILE_MAX)
		r = err_set(err, ERR_TOO_LARGE, "the download \"%s\" is larger than %zu MiB", name,
			    CHANNEL_FILE_MAX / MIB);
	else if (fread((char *)bytes.ptr, 1, size, f) != size)
		r = err_set(err, ERR_UNAVAILABLE, "a download cannot be read");
	else
		r = wpath_parse(arena_printf(ctx->arena, "downloads/%s", name), &to, err);
	fclose(f);
	if (r == 0)
		r = store_write(workspace_files(b->ws), ctx, to, bytes, (struct store_cond){0}, &stat, err);
	if (r == 0)
		jv_push(ctx->arena, list, jv_str(ctx->arena, to.s));
	remove(path);
	return r;
}

/* What was downloaded is moved to downloads/ of the files. */
static int keep_downloads(struct browser *b, struct ctx *ctx, struct jv *list, struct err *err)
{
	char path[200];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	snprintf(path, sizeof(path), "%s/downloads", b->dir);
	dir = opendir(path);
	while (dir && r == 0 && (entry = readdir(dir)) && jv_count(list) < BROWSER_DOWNLOADS_MAX)
		if (entry->d_name[0] != '.' && !str_ends(str_of(entry->d_name), STR(".crdownload")))
			r = keep_download(b, ctx, entry->d_name, list, err);
	if (dir)
		closedir(dir);
	return r;
}

/* --- calls --- */

static struct ctx limited(struct browser *b, const struct ctx *ctx)
{
	return web_limit(ctx, section_of(b->ws) ? section_of(b->ws) : NULL);
}

static int need_page(const struct browser *b, struct err *err)
{
	return b->cdp ? 0 : err_set(err, ERR_INVALID, "no page is open; call browser_navigate first");
}

/* After this the browser is of no use: the next navigation starts another one. */
static int lost(struct browser *b, int r)
{
	if (r == -ERR_UNAVAILABLE && b->cdp) {
		struct err ignored;
		struct ctx ctx = {.arena = b->arena, .deadline_ns = clock_monotonic_ns() + 2 * NS_PER_S};

		if (cdp_call(b->cdp, &ctx, STR_NONE, "Browser.getVersion", NULL, NULL, &ignored) != 0)
			end_browser(b);
	}
	return r;
}

int browser_do(struct browser *b, struct ctx *ctx, const struct browser_step *step, struct jv **ret, struct err *err)
{
	struct ctx own = limited(b, ctx);
	struct jv *downloads = jv_array(ctx->arena);
	int r = 0;

	pthread_mutex_lock(&b->lock);
	b->arena = ctx->arena;
	if (step->act != BROWSER_NAVIGATE)
		r = need_page(b, err);
	if (r == 0)
		r = act(b, &own, step, err);
	if (r == 0 && step->act != BROWSER_NAVIGATE && step->act != BROWSER_SNAPSHOT)
		r = settle(b, &own, err);
	if (r == 0)
		r = keep_downloads(b, &own, downloads, err);
	if (r == 0)
		r = ask_page(b, &own, STR("snapshot()"), ret, err);
	if (r == 0 && jv_count(downloads))
		jv_set(ctx->arena, *ret, "downloads", downloads);
	r = lost(b, r);
	pthread_mutex_unlock(&b->lock);
	return r;
}

int browser_picture(struct browser *b, struct ctx *ctx, bool whole_page, struct str *ret_base64, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *answer = NULL;
	struct ctx own = limited(b, ctx);
	int r;

	pthread_mutex_lock(&b->lock);
	b->arena = ctx->arena;
	jv_set_str(ctx->arena, params, "format", STR("png"));
	jv_set_bool(ctx->arena, params, "captureBeyondViewport", whole_page);
	r = need_page(b, err);
	if (r == 0)
		r = call(b, &own, "Page.captureScreenshot", params, &answer, err);
	if (r == 0)
		*ret_base64 = jv_get_str(answer, "data");
	r = lost(b, r);
	pthread_mutex_unlock(&b->lock);
	return r;
}

int browser_tabs(struct browser *b, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct ctx own = limited(b, ctx);
	struct jv *tabs = NULL, *list = jv_array(ctx->arena);
	int64_t index = 0;
	int r;

	pthread_mutex_lock(&b->lock);
	r = need_page(b, err);
	if (r == 0)
		r = list_tabs(b, &own, &tabs, err);
	for (const struct jv_member *m = r ? NULL : jv_first(tabs); m; m = m->next) {
		struct jv *v = jv_object(ctx->arena);

		jv_set_int(ctx->arena, v, "index", index++);
		jv_set_str(ctx->arena, v, "url", jv_get_str(m->value, "url"));
		jv_set_str(ctx->arena, v, "title", jv_get_str(m->value, "title"));
		jv_set_bool(ctx->arena, v, "active", str_is(jv_get_str(m->value, "targetId"), b->target));
		jv_push(ctx->arena, list, v);
	}
	pthread_mutex_unlock(&b->lock);
	*ret = list;
	return r;
}

int browser_switch(struct browser *b, struct ctx *ctx, int64_t index, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *tabs = NULL;
	struct ctx own = limited(b, ctx);
	const struct jv *tab;
	int r;

	pthread_mutex_lock(&b->lock);
	r = need_page(b, err);
	if (r == 0)
		r = list_tabs(b, &own, &tabs, err);
	tab = r || index < 0 ? NULL : jv_at(tabs, (size_t)index);
	if (r == 0 && !tab)
		r = err_set(err, ERR_NOT_FOUND, "there is no tab %lld; browser_tabs lists them", (long long)index);
	if (r == 0) {
		jv_set_str(ctx->arena, params, "targetId", jv_get_str(tab, "targetId"));
		r = cdp_call(b->cdp, &own, STR_NONE, "Target.activateTarget", params, NULL, err);
	}
	if (r == 0)
		r = attach(b, &own, jv_get_str(tab, "targetId"), err);
	pthread_mutex_unlock(&b->lock);
	return r;
}
