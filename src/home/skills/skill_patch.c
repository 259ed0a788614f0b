/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model quotes the text that it wants to replace from memory, and blanks are what it gets wrong. So lines are
 * compared three times, each time caring less about blanks, and the answer tells which time it was. The work is
 * counted: text of equal lines would cost lines times lines.
 */
#include "home/skills/skill_patch.h"

#include "base/buf.h"
#include "base/limits.h"

#define MATCHES_MAX 1000
#define WORK_MAX    ((size_t)20000000)

enum level { EXACT, TRAILING, BLANKS };
static const char *const level_names[] = {"exact", "trailing_blanks", "blanks"};

struct match {
	size_t from, to;
};

struct search {
	struct str text, old;
	enum level level;
	struct match *found;
	size_t count, work;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct str trim_end(struct str line)
{
	while (line.len && is_blank(line.ptr[line.len - 1]))
		line.len--;
	return line;
}

static struct str skip_blanks(struct str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = str_from(s, 1);
	return s;
}

static bool same_line(struct search *s, struct str a, struct str b)
{
	a = trim_end(a);
	b = trim_end(b);
	s->work += 1 + (a.len < b.len ? a.len : b.len);
	if (s->level == TRAILING)
		return str_eq(a, b);
	a = skip_blanks(a);
	b = skip_blanks(b);
	while (a.len && b.len) {
		if (is_blank(a.ptr[0]) != is_blank(b.ptr[0]))
			return false;
		if (is_blank(a.ptr[0])) {
			a = skip_blanks(a);
			b = skip_blanks(b);
		} else if (a.ptr[0] != b.ptr[0]) {
			return false;
		} else {
			a = str_from(a, 1);
			b = str_from(b, 1);
		}
	}
	return !a.len && !b.len;
}

/* Where the lines of `old` end in the text when they begin at `at`; SIZE_MAX: they are not there. */
static size_t lines_at(struct search *s, size_t at)
{
	struct str rest = s->old, line;
	size_t end = at;

	while (rest.len && str_cut(&rest, '\n', &line)) {
		struct str here = str_from(s->text, at);

		if (at > s->text.len || (at == s->text.len && at > 0 && s->text.ptr[at - 1] == '\n' && line.len))
			return SIZE_MAX;
		here.len = str_find_char(here, '\n');
		if (!same_line(s, here, line))
			return SIZE_MAX;
		end = at + here.len;
		at = end + 1;
	}
	if (str_ends(s->old, STR("\n")) && end < s->text.len)
		end++;
	return end;
}

static void find_exact(struct search *s)
{
	size_t at = 0;

	while (s->count < MATCHES_MAX && (at = str_find(s->text, s->old, at)) != SIZE_MAX) {
		s->found[s->count++] = (struct match){at, at + s->old.len};
		at += s->old.len;
	}
}

static void find_lines(struct search *s)
{
	size_t at = 0;

	while (at < s->text.len && s->count < MATCHES_MAX && s->work < WORK_MAX) {
		size_t end = lines_at(s, at);

		if (end != SIZE_MAX && end > at) {
			s->found[s->count++] = (struct match){at, end};
			at = end;
			if (at < s->text.len && at > 0 && s->text.ptr[at - 1] == '\n')
				continue;
		}
		at += str_find_char(str_from(s->text, at), '\n') + 1;
	}
}

static int refuse(const struct search *s, bool all, struct err *err)
{
	if (s->work >= WORK_MAX)
		return err_set(err, ERR_TOO_LARGE, "the text to replace has too many lines; give fewer");
	if (!s->count)
		return err_set(err, ERR_NOT_FOUND,
			       "the text to replace does not occur, not even with other white space; load the file and "
			       "copy the text from it");
	if (s->count >= MATCHES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the text to replace occurs at least %d times; add lines around it",
			       MATCHES_MAX);
	if (s->count > 1 && !all)
		return err_set(err, ERR_INVALID,
			       "the text to replace occurs %zu times; add lines around it, or set replace_all",
			       s->count);
	return 0;
}

int skill_patch(struct arena *arena, struct str text, struct str old_text, struct str new_text, bool all,
		struct str *ret_text, const char **ret_level, struct err *err)
{
	struct search s = {.text = text, .old = old_text};
	size_t done = 0;
	struct buf out;
	int r;

	if (!str_trim(old_text).len)
		return err_set(err, ERR_INVALID, "old_string is empty; give the text to replace");
	if (str_eq(old_text, new_text))
		return err_set(err, ERR_INVALID, "old_string and new_string are the same; nothing would change");
	s.found = ARENA_ARRAY(arena, struct match, MATCHES_MAX);
	find_exact(&s);
	while (!s.count && s.level < BLANKS && s.work < WORK_MAX) {
		s.level++;
		find_lines(&s);
	}
	r = refuse(&s, all, err);
	if (r)
		return r;
	buf_init(&out, arena, 2 * SKILL_FILE_MAX);
	for (size_t i = 0; i < s.count; i++) {
		buf_add(&out, str_n(text.ptr + done, s.found[i].from - done));
		buf_add(&out, new_text);
		done = s.found[i].to;
	}
	buf_add(&out, str_from(text, done));
	if (out.overflow || out.len > SKILL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file would exceed %zu bytes; move parts of it to references/",
			       SKILL_FILE_MAX);
	*ret_text = buf_str(&out);
	*ret_level = level_names[s.level];
	return 0;
}
