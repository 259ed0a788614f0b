/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second thread for quick calls. A client that has many of them in flight would otherwise keep one core busy and
 * leave the others idle. When the leader has read many lines at once, it gives the second half of them to the helper,
 * and answers the first half itself.
 *
 * Nothing of this can be seen from outside. The helper collects its answers, and they follow those of the leader, so
 * answers leave in the order of their requests. It answers calls of tools that only read and are quick; at the first
 * line that is anything else it stops. Before the leader handles a message that is not such a call, or hands one over,
 * it stops the helper; and when it has come to the end of its half, it takes the answers and continues with the lines
 * that are left. A helper stops when it has answered the line that it is at. So the leader never waits for long,
 * however late the helper began.
 */
#include <sched.h>

#include "mcp/server.h"

/* Waking a thread takes as long as several calls do: for fewer lines it does not pay. */
#define LINES_MIN 16
/* The helper stops here, so that memory does not grow with what is asked for. */
#define ANSWERS_MAX (1 * MIB)
#define KEEP_MAX    (256 * KIB)

/* Answers lines until there are none left, or one that is not for it. Returns the rest. */
static struct str answer(struct server *s, struct arena *arena, struct str lines)
{
	struct helper *h = &s->helper;

	while (lines.len && h->out.buf.len < ANSWERS_MAX && !atomic_load(&h->wanted)) {
		size_t len = str_find_char(lines, '\n');
		bool answered =
			len <= s->reader.line_max && server_take_quick(s, arena, &h->out, str_first(lines, len));

		arena_reset(arena);
		if (!answered)
			break;
		lines = str_from(lines, len + 1);
	}
	return lines;
}

static void *help(void *arg)
{
	struct server *s = arg;
	struct helper *h = &s->helper;
	struct arena *arena = arena_new();

	pthread_mutex_lock(&h->lock);
	while (!h->ends) {
		struct str lines = h->lines;

		if (!h->busy) {
			pthread_cond_wait(&h->wake, &h->lock);
			continue;
		}
		h->began = true;
		pthread_mutex_unlock(&h->lock);
		lines = answer(s, arena, lines);
		pthread_mutex_lock(&h->lock);
		h->lines = lines;
		h->busy = false;
		pthread_cond_signal(&h->done);
	}
	pthread_mutex_unlock(&h->lock);
	arena_destroy(arena);
	return NULL;
}

static bool start(struct server *s)
{
	struct helper *h = &s->helper;
	cpu_set_t cores;

	if (h->state == HELPER_NEW)
		h->state = sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) > 1 &&
					   pthread_create(&h->thread, NULL, help, s) == 0
				   ? HELPER_STARTED
				   : HELPER_NONE;
	return h->state == HELPER_STARTED;
}

/* The lines that are given away: the second half of what was read, if all of it are calls of tools by the look of it.
 */
static struct str second_half(const struct rpc_reader *r)
{
	struct str all = str_n(r->buf + r->start, r->end - r->start), rest = all;
	size_t count = 0, half = 0;

	for (;;) {
		size_t len = str_find_char(rest, '\n');

		if (len == rest.len)
			break;
		if (str_find(str_first(rest, len), STR("\"tools/call\""), 0) == SIZE_MAX)
			return STR_NONE;
		rest = str_from(rest, len + 1);
		count++;
	}
	if (count < LINES_MIN)
		return STR_NONE;
	all.len -= rest.len;
	for (size_t i = 0; i < count / 2; i++)
		half += str_find_char(str_from(all, half), '\n') + 1;
	return str_from(all, half);
}

void helper_give(struct server *s)
{
	struct helper *h = &s->helper;
	struct rpc_reader *r = &s->reader;
	struct str lines;

	if (s->remote || s->opts.extra || r->skipping || h->given || h->state == HELPER_NONE)
		return;
	lines = second_half(r);
	if (!lines.len || !start(s))
		return;
	h->end = r->end;
	r->end = (size_t)(lines.ptr - r->buf);
	h->given = true;
	pthread_mutex_lock(&h->lock);
	h->lines = lines;
	h->busy = true;
	h->began = false;
	atomic_store(&h->wanted, false);
	pthread_mutex_unlock(&h->lock);
	pthread_cond_signal(&h->wake);
}

void helper_stop(struct server *s)
{
	struct helper *h = &s->helper;

	if (!h->given)
		return;
	atomic_store(&h->wanted, true);
	pthread_mutex_lock(&h->lock);
	if (!h->began) /* nor will it */
		h->busy = false;
	while (h->busy)
		pthread_cond_wait(&h->done, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void helper_join(struct server *s)
{
	struct helper *h = &s->helper;
	struct buf *out;

	helper_stop(s);
	h->given = false;
	s->reader.start = s->reader.searched = (size_t)(h->lines.ptr - s->reader.buf);
	s->reader.end = h->end;
	out = out_begin(&s->out);
	buf_add(out, buf_str(&h->out.buf));
	out_end(&s->out, false);
	if (h->out.buf.cap > KEEP_MAX)
		buf_release(&h->out.buf);
	buf_clear(&h->out.buf);
}

void helper_init(struct server *s)
{
	struct helper *h = &s->helper;

	out_init(&h->out, -1);
	h->out.collects = true;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, NULL);
	pthread_cond_init(&h->done, NULL);
}

void helper_release(struct server *s)
{
	struct helper *h = &s->helper;

	if (h->state == HELPER_STARTED) {
		pthread_mutex_lock(&h->lock);
		h->ends = true;
		pthread_mutex_unlock(&h->lock);
		pthread_cond_signal(&h->wake);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->done);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
	out_release(&h->out);
}
