/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merge that diff3 makes. Both sides are compared with the base; a line of the base that both kept is stable, and
 * the lines between two stable ones are one chunk. A chunk that one side left alone is taken from the other. So changes
 * in neighbouring lines are a conflict although no line was changed twice: whether they belong together is not for a
 * program to say.
 *
 * Where a difference is too large to be found exactly (MERGE_COST lines), it is taken as one replacement: more may be
 * reported as a conflict then, but nothing is merged wrongly.
 */
#include "text/merge.h"

#include "text/diff.h"

#define MERGE_COST 2000
#define NO_MATCH   SIZE_MAX

struct side {
	struct diff_lines lines;
	size_t *match; /* per line of the base: its index here, or NO_MATCH */
};

/* From the first line to before the second. */
struct span {
	const struct diff_lines *lines;
	size_t from, to;
};

static struct side side_of(struct arena *arena, const struct diff_lines *base, struct str text)
{
	struct side s = {.lines = diff_cut_lines(arena, text)};
	bool *removed = ARENA_ARRAY(arena, bool, base->count + 1);
	bool *added = ARENA_ARRAY(arena, bool, s.lines.count + 1);

	s.match = ARENA_ARRAY(arena, size_t, base->count + 1);
	diff_script(arena, base, &s.lines, MERGE_COST, removed, added);
	for (size_t i = 0, j = 0; i < base->count; i++) {
		while (!removed[i] && added[j])
			j++;
		s.match[i] = removed[i] ? NO_MATCH : j++;
	}
	return s;
}

static bool same(struct span a, struct span b)
{
	if (a.to - a.from != b.to - b.from)
		return false;
	for (size_t i = 0; i < a.to - a.from; i++)
		if (!str_eq(a.lines->line[a.from + i], b.lines->line[b.from + i]))
			return false;
	return true;
}

static void add_span(struct buf *out, struct span s)
{
	for (size_t i = s.from; i < s.to; i++)
		buf_add(out, s.lines->line[i]);
}

static void add_marker(struct buf *out, const char *mark, struct str label, struct str line_end)
{
	if (out->len && out->ptr[out->len - 1] != '\n')
		buf_add(out, line_end); /* the last line of a side that has no end of its own */
	buf_add(out, str_of(mark));
	if (label.len)
		buf_char(out, ' ');
	buf_add(out, label);
	buf_add(out, line_end);
}

static struct str line_end_of(const struct diff_lines *lines)
{
	return lines->count && str_ends(lines->line[0], STR("\r\n")) ? STR("\r\n") : STR("\n");
}

/* True when it is a conflict. */
static bool add_chunk(struct buf *out, struct span base, struct span ours, struct span theirs,
		      const struct merge_labels *labels)
{
	struct str end = line_end_of(ours.lines);

	if (same(theirs, base) || same(ours, theirs)) {
		add_span(out, ours);
		return false;
	}
	if (same(ours, base)) {
		add_span(out, theirs);
		return false;
	}
	add_marker(out, "<<<<<<<", labels->ours, end);
	add_span(out, ours);
	add_marker(out, "|||||||", labels->base, end);
	add_span(out, base);
	add_marker(out, "=======", STR_NONE, end);
	add_span(out, theirs);
	add_marker(out, ">>>>>>>", labels->theirs, end);
	return true;
}

size_t merge_lines(struct arena *arena, struct str base, struct str ours, struct str theirs,
		   const struct merge_labels *labels, struct buf *out)
{
	struct diff_lines b = diff_cut_lines(arena, base);
	struct side o = side_of(arena, &b, ours), t = side_of(arena, &b, theirs);
	size_t i = 0, j = 0, k = 0, conflicts = 0;

	while (i < b.count || j < o.lines.count || k < t.lines.count) {
		size_t next = i, to_j, to_k;

		if (i < b.count && o.match[i] == j && t.match[i] == k) {
			buf_add(out, b.line[i]);
			i++, j++, k++;
			continue;
		}
		while (next < b.count && (o.match[next] == NO_MATCH || t.match[next] == NO_MATCH))
			next++;
		to_j = next < b.count ? o.match[next] : o.lines.count;
		to_k = next < b.count ? t.match[next] : t.lines.count;
		conflicts += add_chunk(out, (struct span){&b, i, next}, (struct span){&o.lines, j, to_j},
				       (struct span){&t.lines, k, to_k}, labels);
		i = next;
		j = to_j;
		k = to_k;
	}
	return conflicts;
}
