/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences by words, for people. A unified difference says which lines were replaced; within such a group the old
 * and the new lines are cut into words, spaces and signs, and compared the same way, so that one changed word in a long
 * paragraph is seen at a glance. It is made from the unified text, so that both forms always show the same change.
 */
#include <ctype.h>

#include "text/diff.h"

#define WORDS_COST 1000
/* Groups larger than this are shown by lines: nobody looks for words in them. */
#define WORDS_BYTES ((size_t)64 * 1024)

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Words, runs of blanks, and single signs; a line end is a token of its own. */
static struct diff_lines cut_words(struct arena *arena, struct str text)
{
	struct diff_lines l = {.line = ARENA_ARRAY(arena, struct str, text.len + 1)};

	while (text.len) {
		size_t n = 1;

		if (is_word(text.ptr[0]))
			while (n < text.len && is_word(text.ptr[n]))
				n++;
		else if (text.ptr[0] == ' ' || text.ptr[0] == '\t')
			while (n < text.len && (text.ptr[n] == ' ' || text.ptr[n] == '\t'))
				n++;
		l.line[l.count++] = str_first(text, n);
		text = str_from(text, n);
	}
	return l;
}

enum side { BOTH, OLD, NEW };

struct writer {
	const struct diff_marks *marks;
	struct buf *out;
	enum side side;
};

static void turn(struct writer *w, enum side side)
{
	if (w->side == side)
		return;
	if (w->side != BOTH)
		buf_add(w->out, str_of(w->side == OLD ? w->marks->old_end : w->marks->new_end));
	if (side != BOTH)
		buf_add(w->out, str_of(side == OLD ? w->marks->old_start : w->marks->new_start));
	w->side = side;
}

/* Marks are closed at the end of each line, so that a cut or a pager loses none. A line end that only the old side has
   is not shown, since the following text is now on the same line. */
static void word(struct writer *w, enum side side, struct str s)
{
	if (s.len == 1 && s.ptr[0] == '\n') {
		turn(w, BOTH);
		if (side != OLD)
			buf_char(w->out, '\n');
		return;
	}
	turn(w, side);
	buf_add(w->out, s);
}

void diff_words(struct arena *arena, struct str before, struct str after, const struct diff_marks *marks,
		struct buf *out)
{
	struct diff_lines a = cut_words(arena, before), b = cut_words(arena, after);
	bool *removed = ARENA_ARRAY(arena, bool, a.count + 1), *added = ARENA_ARRAY(arena, bool, b.count + 1);
	struct writer w = {.marks = marks, .out = out};
	size_t i = 0, j = 0;

	diff_script(arena, &a, &b, WORDS_COST, removed, added);
	while (i < a.count || j < b.count) {
		if (i < a.count && removed[i])
			word(&w, OLD, a.line[i++]);
		else if (j < b.count && added[j])
			word(&w, NEW, b.line[j++]);
		else
			word(&w, BOTH, b.line[j++]), i++;
	}
	turn(&w, BOTH);
	if (out->len && out->ptr[out->len - 1] != '\n')
		buf_char(out, '\n');
}

/* The lines of one sign, without it. */
static struct str take_group(struct arena *arena, struct str *rest, char sign)
{
	struct buf text;

	buf_init(&text, arena, SIZE_MAX / 4);
	while (rest->len && (rest->ptr[0] == sign || rest->ptr[0] == '\\')) {
		size_t n = str_find_char(*rest, '\n');

		n += n < rest->len;
		if (rest->ptr[0] == sign)
			buf_add(&text, str_from(str_first(*rest, n), 1));
		*rest = str_from(*rest, n);
	}
	return text.ptr ? buf_str(&text) : STR("");
}

static void whole_lines(struct str text, const char *start, const char *end, struct buf *out)
{
	struct str line;

	while (text.len && str_cut(&text, '\n', &line)) {
		buf_add(out, str_of(start));
		buf_add(out, line);
		buf_add(out, str_of(end));
		buf_char(out, '\n');
	}
}

void diff_by_words(struct arena *arena, struct str unified, const struct diff_marks *marks, struct buf *out)
{
	bool in_hunk = false;

	while (unified.len) {
		size_t n = str_find_char(unified, '\n');
		struct str line = str_first(unified, n + (n < unified.len));

		if (in_hunk && (line.ptr[0] == '-' || line.ptr[0] == '+')) {
			struct str before = take_group(arena, &unified, '-'), after = take_group(arena, &unified, '+');

			if (before.len && after.len && before.len + after.len <= WORDS_BYTES) {
				diff_words(arena, before, after, marks, out);
			} else {
				whole_lines(before, marks->old_start, marks->old_end, out);
				whole_lines(after, marks->new_start, marks->new_end, out);
			}
			continue;
		}
		if (str_starts(line, STR("@@ ")))
			in_hunk = true;
		if (line.ptr[0] == ' ')
			buf_add(out, str_from(line, 1));
		else if (line.ptr[0] != '\\')
			buf_add(out, line);
		unified = str_from(unified, line.len);
	}
}
