/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring text in tokens and cutting it at the ends of lines. */
#include "home/prompt/prompt_internal.h"
#include "text/tokens.h"

/* Blanks cost a model next to nothing, but not nothing: a token is taken to hold at most so many bytes. */
#define BYTES_PER_TOKEN 16

uint64_t prompt_cost(struct str text)
{
	uint64_t tokens = tokens_estimate(text), least = (text.len + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;

	return tokens > least ? tokens : least;
}

static struct str first_line(struct str text)
{
	return str_first(text, str_find_char(text, '\n') + 1);
}

uint64_t prompt_cost_of(const struct prompt_section *section, struct str text)
{
	uint64_t cost = 0;

	if (!prompt_is_list(section))
		return prompt_cost(text);
	for (struct str line; text.len; text = str_from(text, line.len)) {
		line = first_line(text);
		cost += prompt_cost(prompt_item(line));
	}
	return cost;
}

/* As much of one line as fits: its beginning or its end. */
static struct str cut_line(struct str line, uint64_t max, bool tail)
{
	size_t low = 0, high = line.len < max * BYTES_PER_TOKEN ? line.len : (size_t)max * BYTES_PER_TOKEN;
	struct str best = {line.ptr, 0};

	while (low < high) {
		size_t mid = low + (high - low + 1) / 2, from = line.len - mid;
		struct str part;

		if (tail) {
			while (from < line.len && ((unsigned char)line.ptr[from] & 0xC0) == 0x80)
				from++;
			part = str_from(line, from);
		} else {
			part = utf8_first(line, mid);
		}
		if (prompt_cost(part) <= max) {
			best = part;
			low = mid;
		} else {
			high = mid - 1;
		}
	}
	return best;
}

struct str prompt_first_lines(struct str text, uint64_t max, uint64_t *ret_cost)
{
	uint64_t used = 0;
	size_t end = 0;

	while (end < text.len) {
		struct str line = first_line(str_from(text, end));
		uint64_t cost = prompt_cost(line);

		*ret_cost = end ? used : max;
		if (used + cost > max)
			return end ? str_first(text, end) : cut_line(line, max, false);
		used += cost;
		end += line.len;
	}
	*ret_cost = used;
	return text;
}

struct str prompt_last_lines(struct str text, uint64_t max, uint64_t *ret_cost)
{
	uint64_t used = 0;
	size_t start = text.len;

	while (start > 0) {
		struct str before = str_first(text, start - 1);
		size_t nl = str_rfind_char(before, '\n'), from = nl == before.len ? 0 : nl + 1;
		struct str line = {text.ptr + from, start - from};
		uint64_t cost = prompt_cost(line);

		*ret_cost = start < text.len ? used : max;
		if (used + cost > max)
			return start < text.len ? str_from(text, start) : cut_line(line, max, true);
		used += cost;
		start = from;
	}
	*ret_cost = used;
	return text;
}

size_t prompt_count_lines(struct str text)
{
	size_t lines = 0;

	for (; text.len; lines++)
		text = str_from(text, first_line(text).len);
	return lines;
}
