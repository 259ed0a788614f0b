/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment of the search index, with its checksum corrected, so that the code after that check is reached:
 * whatever opens is searched in every way, merged and spelled out. And the list of an index's files.
 */
#include "base/hash.h"
#include "home/search/search_disk.h"
#include "index/words_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const struct words_view *view, struct arena *arena, bool phrase)
{
	struct ctx ctx = {.arena = arena};
	struct words_clause clauses[] = {{.term = STR("two"), .weight = 1, .phrase = phrase ? 0 : -1},
					 {.term = STR("three"), .weight = 1, .phrase = phrase ? 0 : -1, .at = 1},
					 {.term = STR("five"), .weight = 1, .phrase = -1, .without = phrase}};
	struct str tag = STR("t");
	struct words_query q = {.clauses = clauses, .count = 3, .areas = 255, .top = 4, .want_total = true};
	struct words_hits hits;
	struct err err;

	for (int i = 0; i < 3; i++) {
		if (i == 1)
			q.kind = STR("note"), q.tags = &tag, q.tag_count = 1, q.under = STR("d");
		if (i == 2)
			q.count = 0, q.want_total = false;
		if (words_search(view, &ctx, &q, &hits, &err) != 0)
			continue;
		for (size_t k = 0; k < hits.count; k++) {
			struct words_doc doc;
			struct str path;

			words_doc_of(view, &hits.hits[k], arena, &doc, &path);
		}
	}
}

static void use(struct words_segment *segment, struct arena *arena)
{
	struct words_segment *twice[] = {segment, segment}, *merged;
	struct words_view *view = words_view_new(twice, 1), *two = words_view_new(twice, 2);
	struct words_near *near;
	struct err err;

	search(view, arena, false);
	search(two, arena, true);
	words_near(view, arena, STR("there"), 2, 3, &near);
	if (words_merge(two, 0, 2, true, NULL, &merged, &err) == 0)
		words_segment_unref(merged);
	words_view_unref(view);
	words_view_unref(two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct index_manifest manifest;
	struct words_segment *segment;
	char *copy = arena_alloc(arena, size + 16);
	struct err err;

	if (size)
		memcpy(copy, data, size);
	index_manifest_parse(arena, str_n(copy, size), &manifest);
	if (size >= sizeof(struct words_head)) {
		struct words_head *head = (struct words_head *)(void *)copy;
		uint64_t texts = head->at[WORDS_TEXTS];

		head->size = size;
		if (texts >= 16 && texts <= size)
			head->sum = hash_u64(str_n(copy + 16, texts - 16), 0);
	}
	if (words_segment_parse(str_n(copy, size), &segment, &err) == 0) {
		use(segment, arena);
		words_segment_unref(segment);
	}
	return 0;
}
