/* SPDX-License-Identifier: Apache-2.0 */
/* A search question, and text that is analysed: planned over a small index, asked, and a passage cut out of itself. */
#include "base/buf.h"
#include "home/search/search_internal.h"
#include "text/terms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(void *arg, const struct term *term)
{
	const struct str *text = arg;

	if (term->text.len > TERM_MAX || (size_t)term->at + term->len > text->len)
		abort();
}

static struct words_view *small_view(void)
{
	static const char *const bodies[] = {"the rate limit of the gateway", "東京都の天気",
					     "parseHttpRequest max_retries café"};
	struct words_builder *b = words_builder_new();
	struct words_segment *segment;
	struct words_view *view;

	for (size_t i = 0; i < 3; i++) {
		struct words_doc doc = {.body = str_of(bodies[i]), .area = 1};

		words_builder_file(b, str_n(&"abc"[i], 1), STR("v"));
		words_builder_add(b, &doc);
	}
	segment = words_builder_finish(b);
	words_builder_destroy(b);
	view = words_view_new(&segment, 1);
	words_segment_unref(segment);
	return view;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct words_view *view;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = arena_str(arena, str_n(data, size));
	struct ctx ctx = {.arena = arena};
	struct search_plan plan;
	struct err err;

	if (!view)
		view = small_view();
	terms_each(text, 0, look, &text);
	for (int i = 0; i < 4; i++) {
		struct words_query q = {.areas = 1, .top = 3, .want_total = true};
		struct words_hits hits;

		if (search_plan(arena, view, text, i & 1, i & 2, &plan, &err) != 0)
			continue;
		q.clauses = plan.clauses;
		q.count = plan.count;
		words_search(view, &ctx, &q, &hits, &err);
		search_snippet(arena, view, &plan, text);
	}
	return 0;
}
