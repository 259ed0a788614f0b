/* SPDX-License-Identifier: Apache-2.0 */
/* Advice that an agent can follow: the names of tools as it knows them, and none that it does not have. */
#include "tool/offered.h"

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Adds the line with the names that the set has; false when it names a tool that the set does not have. */
static bool add_offered(struct buf *out, const struct toolset *set, struct str line)
{
	while (line.len) {
		size_t n = 0;
		struct str word;

		while (n < line.len && is_name_char(line.ptr[n]))
			n++;
		word = str_first(line, n ? n : 1);
		if (str_find_char(word, '_') < word.len && tool_is_native(word)) {
			const char *name = toolset_name_of(set, word);

			if (!name)
				return false;
			buf_add(out, str_of(name));
		} else {
			buf_add(out, word);
		}
		line = str_from(line, word.len);
	}
	return true;
}

struct str offered_lines(struct arena *arena, const struct toolset *set, struct str text)
{
	size_t start = 0;
	bool keeps = true;
	struct buf out;

	buf_init(&out, arena, text.len * 2 + 4096);
	while (text.len) {
		struct str line = str_first(text, str_find_char(text, '\n') + 1);

		if (!str_starts(line, STR("  "))) {
			start = out.len;
			keeps = true;
		}
		if (keeps && !add_offered(&out, set, line)) {
			keeps = false;
			out.len = start;
		}
		text = str_from(text, line.len);
	}
	return out.len ? buf_str(&out) : STR("");
}

/* Adds the parts of a clause, which are separated by ", ", that can be followed. */
static void add_clause(struct buf *out, const struct toolset *set, struct str clause)
{
	size_t start = out->len;

	while (clause.len) {
		size_t end = str_find(clause, STR(", "), 0), before = out->len;
		struct str part = end == SIZE_MAX ? clause : str_first(clause, end);

		clause = end == SIZE_MAX ? STR("") : str_from(clause, end + 2);
		if (out->len > start)
			buf_lit(out, ", ");
		else if (str_starts(part, STR("or ")))
			part = str_from(part, 3);
		if (!add_offered(out, set, part))
			out->len = before;
	}
}

struct str offered_advice(struct arena *arena, const struct toolset *set, struct str sentence)
{
	struct buf out;
	size_t end = str_find(sentence, STR("; "), 0);

	if (end == SIZE_MAX)
		return sentence;
	buf_init(&out, arena, sentence.len * 2 + 4096);
	buf_add(&out, str_first(sentence, end));
	sentence = str_from(sentence, end + 2);
	while (sentence.len) {
		size_t before = out.len;
		struct str clause;

		end = str_find(sentence, STR("; "), 0);
		clause = end == SIZE_MAX ? sentence : str_first(sentence, end);
		sentence = end == SIZE_MAX ? STR("") : str_from(sentence, end + 2);
		buf_lit(&out, "; ");
		add_clause(&out, set, clause);
		if (out.len == before + 2)
			out.len = before;
	}
	return buf_str(&out);
}
