/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command prints, in bounded memory: the beginning and the end, which are what a reader wants, and all of it in
 * a file without a name, up to a limit. A command that prints without end is never blocked and never fills anything.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "sandbox/sandbox_internal.h"

void capture_init(struct capture *c, struct arena *arena, size_t keep)
{
	*c = (struct capture){.head_max = keep - keep / 2, .tail_max = keep / 2, .spill = -1};
	buf_init(&c->head, arena, keep + 1);
	c->tail = arena_alloc_raw(arena, c->tail_max + 1);
}

static void spill(struct capture *c, struct str bytes)
{
	bytes = str_first(bytes, SANDBOX_SPILL_MAX - c->spilled);
	while (c->spill >= 0 && bytes.len) {
		ssize_t n = write(c->spill, bytes.ptr, bytes.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		bytes = str_from(bytes, (size_t)n);
		c->spilled += (uint64_t)n;
	}
}

static void add_tail(struct capture *c, struct str bytes)
{
	if (bytes.len > c->tail_max)
		bytes = str_from(bytes, bytes.len - c->tail_max);
	while (bytes.len) {
		struct str part = str_first(bytes, c->tail_max - c->tail_at);

		memcpy(c->tail + c->tail_at, part.ptr, part.len);
		c->tail_at = (c->tail_at + part.len) % c->tail_max;
		bytes = str_from(bytes, part.len);
	}
}

void capture_add(struct capture *c, struct str bytes)
{
	size_t keep = c->head_max + c->tail_max, room = keep - (c->head.len < keep ? c->head.len : keep);
	struct str first = str_first(bytes, room);

	/* all of it fits in `head` until it does not: only then is there a file and a tail */
	if (c->spill < 0 && bytes.len > room) {
		c->spill = memfd_create("output", MFD_CLOEXEC);
		spill(c, buf_str(&c->head));
		add_tail(c, str_from(buf_str(&c->head), c->head_max));
		c->head.len = c->head.len < c->head_max ? c->head.len : c->head_max;
		first = str_first(bytes, c->head_max - c->head.len);
	} else if (c->spill >= 0) {
		first = STR_NONE;
	}
	c->total += bytes.len;
	buf_add(&c->head, first);
	if (c->spill >= 0) {
		spill(c, bytes);
		add_tail(c, str_from(bytes, first.len));
	}
}

void capture_end(struct capture *c, struct arena *arena, struct sandbox_output *ret)
{
	struct str head = buf_str(&c->head);
	struct buf text, tail;
	uint64_t left;

	*ret = (struct sandbox_output){.bytes = c->total, .whole_fd = c->spill, .is_cut = c->spill >= 0};
	if (c->spill < 0) {
		ret->text = sandbox_clean(arena, head);
		return;
	}
	left = c->total - c->head_max - c->tail_max;
	buf_init(&tail, arena, c->tail_max + 1);
	buf_add(&tail, str_n(c->tail + c->tail_at, c->tail_max - c->tail_at));
	buf_add(&tail, str_n(c->tail, c->tail_at));
	buf_init(&text, arena, 4 * (c->head_max + c->tail_max) + 200);
	buf_add(&text, sandbox_clean(arena, str_first(head, head.len - utf8_unfinished(head))));
	buf_printf(&text, "\n[%llu bytes left out]\n", (unsigned long long)left);
	buf_add(&text, sandbox_clean(arena, utf8_skip_inside(buf_str(&tail))));
	ret->text = buf_str(&text);
}

/* Where an escape sequence that begins at `i` ends. */
static size_t after_escape(struct str s, size_t i)
{
	char kind = i + 1 < s.len ? s.ptr[i + 1] : 0;

	if (kind == '[') { /* parameters, then one letter */
		for (i += 2; i < s.len && (s.ptr[i] < 0x40 || s.ptr[i] > 0x7e) && s.ptr[i] >= 0x20;)
			i++;
		return i < s.len ? i + 1 : i;
	}
	if (kind == ']') { /* a text that ends with BEL or ESC \ on the same line */
		for (i += 2; i < s.len && s.ptr[i] != 7 && s.ptr[i] != 27 && s.ptr[i] != '\n';)
			i++;
		return i < s.len && s.ptr[i] == 7 ? i + 1 : i;
	}
	return i + (kind ? 2 : 1);
}

struct str sandbox_clean(struct arena *arena, struct str s)
{
	struct buf out;
	size_t i = 0;

	buf_init(&out, arena, 3 * s.len + 1);
	while (i < s.len) {
		size_t from = i;
		uint32_t c;

		if (s.ptr[i] == 27) {
			i = after_escape(s, i);
			continue;
		}
		c = utf8_next(s, &i);
		if (c >= UTF8_BAD)
			buf_lit(&out, "\xEF\xBF\xBD");
		else if ((c >= 0x20 && c != 0x7f && (c < 0x80 || c >= 0xa0)) || c == '\n' || c == '\t')
			buf_add(&out, str_n(s.ptr + from, i - from));
	}
	return out.ptr ? buf_str(&out) : STR("");
}
