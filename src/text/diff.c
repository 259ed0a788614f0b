/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unified differences of two texts, for people and models to look at. What both have in common at the front and the
 * back is skipped byte-wise before any line is cut, so the usual edit of a large file costs one pass. The rest is
 * Myers' greedy algorithm, ended at COST_MOST differences: past that, the region is shown as one replacement. That is
 * still a true difference, only not the shortest, and the work stays bounded for any input.
 */
#include "text/diff.h"

#include <limits.h>

#define CONTEXT   3
#define BLOCK     ((size_t)256)
#define COST_MOST 400

uint64_t count_lines(struct str bytes)
{
	const char *p = bytes.ptr, *end = p + bytes.len;
	uint64_t lines = 0;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		lines++;
		if (!nl)
			break;
		p = nl + 1;
	}
	return lines;
}

struct script {
	bool *removed, *added; /* per line of the two sides */
};

struct diff_lines diff_cut_lines(struct arena *arena, struct str text)
{
	struct diff_lines l = {0};

	l.line = ARENA_ARRAY(arena, struct str, count_lines(text) + 1);
	while (text.len) {
		size_t n = str_find_char(text, '\n');

		n += n < text.len;
		l.line[l.count++] = str_first(text, n);
		text = str_from(text, n);
	}
	return l;
}

/* Walks the saved frontiers back and marks what was removed and added. */
static void backtrack(const struct diff_lines *a, const struct diff_lines *b, int *const *trace, int d,
		      struct script *s)
{
	int x = (int)a->count, y = (int)b->count;

	for (; d > 0; d--) {
		const int *v = trace[d - 1] + d; /* frontier of d - 1, index by k */
		int k = x - y;
		bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
		int prev_x = down ? v[k + 1] : v[k - 1], prev_y = prev_x - (down ? k + 1 : k - 1);

		if (down)
			s->added[prev_y] = true;
		else
			s->removed[prev_x] = true;
		x = prev_x;
		y = prev_y;
	}
}

/* False when it takes more than `cost_most` differences. */
static bool myers(struct arena *arena, const struct diff_lines *a, const struct diff_lines *b, int cost_most,
		  struct script *s)
{
	int n = (int)a->count, m = (int)b->count, most = n + m < cost_most ? n + m : cost_most;
	int **trace = ARENA_ARRAY(arena, int *, (size_t)most + 2);

	for (int d = 0; d <= most; d++) {
		int *row = ARENA_ARRAY(arena, int, (size_t)(2 * d + 3)), *v = row + d + 1;
		const int *before = d ? trace[d - 1] + d : NULL; /* its index by k */

		trace[d] = row;
		for (int k = -d; k <= d; k += 2) {
			int x = 0, y;

			if (d > 0)
				x = k == -d || (k != d && before[k - 1] < before[k + 1]) ? before[k + 1]
											 : before[k - 1] + 1;
			y = x - k;
			while (x < n && y < m && str_eq(a->line[x], b->line[y])) {
				x++;
				y++;
			}
			v[k] = x;
			if (x >= n && y >= m) {
				backtrack(a, b, trace, d, s);
				return true;
			}
		}
	}
	return false;
}

void diff_script(struct arena *arena, const struct diff_lines *a, const struct diff_lines *b, int cost_most,
		 bool *removed, bool *added)
{
	size_t most = a->count < b->count ? a->count : b->count, front = 0, back = 0;
	struct diff_lines x, y;
	struct script s;

	while (front < most && str_eq(a->line[front], b->line[front]))
		front++;
	while (back < most - front && str_eq(a->line[a->count - 1 - back], b->line[b->count - 1 - back]))
		back++;
	x = (struct diff_lines){a->line + front, a->count - front - back};
	y = (struct diff_lines){b->line + front, b->count - front - back};
	s = (struct script){removed + front, added + front};
	if (!myers(arena, &x, &y, cost_most, &s)) {
		memset(s.removed, 1, x.count);
		memset(s.added, 1, y.count);
	}
}

struct printer {
	struct buf *out;
	unsigned lines, lines_max;
	uint64_t left_out;
};

static void print_line(struct printer *p, char mark, struct str line)
{
	bool open = line.len == 0 || line.ptr[line.len - 1] != '\n';

	if (p->lines >= p->lines_max) {
		p->left_out++;
		return;
	}
	p->lines++;
	buf_char(p->out, mark);
	if (!open)
		line.len--;
	if (line.len > 500 && p->lines_max != UINT_MAX) {
		buf_add(p->out, utf8_first(line, 500));
		buf_lit(p->out, " [cut]");
	} else {
		buf_add(p->out, line);
	}
	buf_char(p->out, '\n');
	if (open)
		buf_lit(p->out, "\\ No newline at end of file\n");
}

/* One group of changes from (i, j) with its context; ends where 2 * CONTEXT equal lines follow. */
static void print_hunk(struct printer *p, const struct diff_lines *a, const struct diff_lines *b,
		       const struct script *s, size_t *i, size_t *j, uint64_t base)
{
	size_t from = *i > CONTEXT ? *i - CONTEXT : 0, lead = *i - from, x = *i, y = *j, quiet = 0, end_x, end_y;

	while ((x < a->count || y < b->count) && quiet <= 2 * CONTEXT) {
		if (x < a->count && s->removed[x]) {
			x++;
			quiet = 0;
		} else if (y < b->count && s->added[y]) {
			y++;
			quiet = 0;
		} else {
			x++;
			y++;
			quiet++;
		}
	}
	end_x = quiet > CONTEXT ? x - (quiet - CONTEXT) : x;
	end_y = quiet > CONTEXT ? y - (quiet - CONTEXT) : y;
	if (p->lines < p->lines_max)
		buf_printf(p->out, "@@ -%llu,%zu +%llu,%zu @@\n", (unsigned long long)(base + from + (end_x > from)),
			   end_x - from, (unsigned long long)(base + *j - lead + (end_y > *j - lead)),
			   end_y - (*j - lead));
	for (size_t k = from; k < *i; k++)
		print_line(p, ' ', a->line[k]);
	for (x = *i, y = *j; x < end_x || y < end_y;) {
		if (x < end_x && s->removed[x])
			print_line(p, '-', a->line[x++]);
		else if (y < end_y && s->added[y])
			print_line(p, '+', b->line[y++]);
		else
			print_line(p, ' ', a->line[x]), x++, y++;
	}
	*i = end_x;
	*j = end_y;
}

/* Line-wise cut of the common front and back, leaving CONTEXT lines of each. `ret_base`: lines skipped in front. */
static void trim_common(struct str *a, struct str *b, uint64_t *ret_base)
{
	size_t most = a->len < b->len ? a->len : b->len, front = 0, back = 0;
	unsigned keep = 0;

	/* blocks first: nearly all of a large file is common */
	while (most - front >= BLOCK && memcmp(a->ptr + front, b->ptr + front, BLOCK) == 0)
		front += BLOCK;
	while (front < most && a->ptr[front] == b->ptr[front])
		front++;
	while (most - front - back >= BLOCK &&
	       memcmp(a->ptr + a->len - back - BLOCK, b->ptr + b->len - back - BLOCK, BLOCK) == 0)
		back += BLOCK;
	while (back < most - front && a->ptr[a->len - 1 - back] == b->ptr[b->len - 1 - back])
		back++;
	while (front > 0 && (a->ptr[front - 1] != '\n' || ++keep <= CONTEXT))
		front--;
	*ret_base = count_lines(str_first(*a, front));
	keep = 0;
	/* the cut must be after a line end on both sides */
	while (back > 0 && (a->ptr[a->len - back - 1] != '\n' || ++keep <= CONTEXT + 1))
		back--;
	*a = str_n(a->ptr + front, a->len - front - back);
	*b = str_n(b->ptr + front, b->len - front - back);
}

void diff_unified(struct arena *arena, struct str before, struct str after, struct str path, unsigned lines_max,
		  struct buf *out)
{
	struct printer p = {.out = out, .lines_max = lines_max};
	struct script s;
	struct diff_lines a, b;
	uint64_t base;
	size_t i = 0, j = 0;

	if (str_eq(before, after))
		return;
	trim_common(&before, &after, &base);
	a = diff_cut_lines(arena, before);
	b = diff_cut_lines(arena, after);
	s.removed = ARENA_ARRAY(arena, bool, a.count + 1);
	s.added = ARENA_ARRAY(arena, bool, b.count + 1);
	diff_script(arena, &a, &b, COST_MOST, s.removed, s.added);
	if (path.len)
		buf_printf(out, "--- %.*s\n+++ %.*s\n", STR_ARG(path), STR_ARG(path));
	while (i < a.count || j < b.count) {
		if ((i < a.count && s.removed[i]) || (j < b.count && s.added[j])) {
			print_hunk(&p, &a, &b, &s, &i, &j, base);
		} else {
			i++;
			j++;
		}
	}
	if (p.left_out)
		buf_printf(out, "[%llu more lines of the diff are left out]\n", (unsigned long long)p.left_out);
}
