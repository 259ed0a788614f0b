/* SPDX-License-Identifier: Apache-2.0 */
/* The page that Chromium prints: the Markdown as HTML, and a style for each theme. The policy in its head is a second
 * lock: nothing is loaded and nothing runs, whatever the Markdown has. */
#include "base/clock.h"
#include "base/limits.h"
#include "home/browser/print.h"
#include "home/media/markdown.h"
#include "home/media/media.h"
#include "text/frontmatter.h"
#include "text/markup.h"

#define PRINT_S 120

static const char style_all[] =
	"body{line-height:1.5;font-size:11pt;overflow-wrap:break-word}h1,h2,h3,h4{line-height:1.2;break-after:avoid}"
	"pre{padding:.6em;white-space:pre-wrap;background:#f4f4f4;font-size:9pt}code{font-family:monospace;font-size:."
	"9em}"
	"table{border-collapse:collapse;margin:1em 0}th,td{border:1px solid #bbb;padding:.25em "
	".6em}tr,pre{break-inside:avoid}"
	"blockquote{margin:1em 0;padding-left:1em;border-left:3px solid #bbb;color:#444}a{color:#1a4f8b}";

static const struct {
	struct str theme;
	const char *style;
} styles[] = {
	{STR("minimal"), "body{font-family:sans-serif}"},
	{STR("professional"), "body{font-family:serif}h1{border-bottom:2px solid "
			      "#1a3a5c;padding-bottom:.2em}h1,h2,h3{color:#1a3a5c}th{background:"
			      "#e8edf3}"},
	{STR("technical"), "body{font-family:sans-serif;font-size:10pt}h1,h2,h3{font-family:monospace}pre{border:1px "
			   "solid #ccc}th{background:"
			   "#eee}"},
};

static struct str title_of(struct arena *arena, struct wpath source, struct str markdown)
{
	struct str rest = markdown, line;

	while (str_cut(&rest, '\n', &line) && !str_trim(line).len)
		continue;
	if (str_starts(line, STR("# ")))
		return arena_str(arena, str_trim(str_from(line, 2)));
	return wpath_name(source);
}

int media_print(struct workspace *ws, struct ctx *ctx, struct wpath source, struct str markdown, struct str theme,
		struct str *ret, struct err *err)
{
	struct frontmatter parts;
	struct ctx own = *ctx;
	int64_t end = clock_monotonic_ns() + PRINT_S * NS_PER_S;
	struct err ignored;
	struct buf html;
	int r;

	if (frontmatter_parse(ctx->arena, markdown, &parts, &ignored) == 0 && parts.has_head)
		markdown = parts.body; /* data about the text, not text */
	buf_init(&html, ctx->arena, 4 * TOOL_FILE_MAX);
	buf_lit(&html,
		"<!doctype html><meta charset=utf-8><meta http-equiv=Content-Security-Policy content=\"default-src "
		"'none'; style-src 'unsafe-inline'\"><title>");
	markup_escape(&html, title_of(ctx->arena, source, markdown));
	buf_printf(&html, "</title><style>%s", style_all);
	for (size_t i = 0; i < COUNT(styles); i++)
		if (str_eq(theme, styles[i].theme))
			buf_add(&html, str_of(styles[i].style));
	buf_lit(&html, "</style><body>");
	r = markdown_to_html(&html, markdown, err);
	if (r)
		return r;
	if (html.overflow || html.len > BROWSER_MESSAGE_MAX / 2)
		return err_set(err, ERR_TOO_LARGE, "\"%.*s\" is too long to print at once; print it in parts",
			       STR_ARG(source.s));
	if (!own.deadline_ns || end < own.deadline_ns)
		own.deadline_ns = end;
	return browser_print(ws, &own, buf_str(&html), ret, err);
}
