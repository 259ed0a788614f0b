/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From chunks of a file to hits. Lines are numbered only where one is given: the newlines between two matches are
 * counted at once. Context is cut out around the match, never twice: `last_given` is the last line that has left, and
 * what the page before has shown is known from its cursor. Once a page is full the file is only counted.
 *
 * Binary is what has a NUL in its first BINARY_PROBE bytes: nothing of it is given. A NUL further on ends the file at
 * that line; what stood before it counts. So the answer does not depend on how a store cuts a file into chunks.
 */
#include "find/find_file.h"

#include <stdlib.h>

#include "base/limits.h"
#include "text/literal.h"

#define BINARY_PROBE (64 * KIB)
#define LINE_MAX_LEN (64 * MIB) /* a longer line is searched in pieces */
#define GIVE_EARLY   (64 * KIB) /* a file that has its turn gives this much before it is done */

void looker_init(struct looker *l, struct grep_job *job, const struct matcher *matcher)
{
	*l = (struct looker){.job = job, .searcher = searcher_new(matcher)};
}

void looker_release(struct looker *l)
{
	searcher_destroy(l->searcher);
	outcome_destroy(l->out);
	free(l->tail.text);
	free(l->hold);
}

static void begin_file(struct looker *l, const struct scan_item *item)
{
	const struct grep_job *job = l->job;
	int c = job->cursor_path.ptr ? str_cmp(item->path, job->cursor_path) : 1;
	bool lines = job->req->output == GREP_LINES;

	l->in_file = true;
	l->path = item->path;
	l->seq = item->seq;
	l->matches = l->eligible = l->stored = 0;
	l->line = 1;
	l->last_given = 0;
	l->after_left = 0;
	l->offset = 0;
	l->tail.len = l->tail.count = 0;
	l->hold_len = 0;
	l->shown_until = c < 0 ? UINT64_MAX : c == 0 ? (lines ? job->cursor_line : UINT64_MAX) : 0;
	l->counts_only = !lines || l->shown_until == UINT64_MAX || atomic_load(&job->page_full);
	l->numbers = !l->counts_only;
}

static void add_hit(struct looker *l, uint64_t line, struct str text, bool is_match, bool is_after)
{
	struct str shown = text.len > l->job->req->line_cut ? utf8_first(text, l->job->req->line_cut) : text;

	if (!l->out)
		l->out = outcome_new(l->path);
	outcome_add(l->out,
		    (struct hit){.line = line, .is_match = is_match, .cut = shown.len < text.len, .is_after = is_after},
		    shown);
	l->last_given = line;
}

/* The line that starts at `at`; *ret_next is the start of the next one. */
static struct str line_from(const struct looker *l, size_t at, size_t *ret_next)
{
	const char *p = l->text.ptr + at, *nl = memchr(p, '\n', l->text.len - at);
	size_t len = nl ? (size_t)(nl - p) : l->text.len - at;

	*ret_next = at + len + (nl != NULL);
	if (len && p[len - 1] == '\r')
		len--;
	return str_n(p, len);
}

/* Gives the lines of context after the last match that come before `end`. */
static void give_after(struct looker *l, size_t end)
{
	while (l->after_left && l->pos < end) {
		size_t next;
		struct str text = line_from(l, l->pos, &next);

		add_hit(l, l->line, text, false, true);
		l->after_left--;
		l->line++;
		l->pos = next;
	}
}

/* Gives the last `n` lines of the chunk before. */
static void give_tail(struct looker *l, size_t n, uint64_t first_line)
{
	struct str rest = str_n(l->tail.text, l->tail.len), text;

	for (size_t i = 0; rest.len && str_cut(&rest, '\n', &text); i++) {
		if (i < l->tail.count - n)
			continue;
		if (text.len && text.ptr[text.len - 1] == '\r')
			text.len--;
		add_hit(l, first_line++, text, false, false);
	}
}

/* The context before the match at `start`, whose number is `line`. */
static void give_before(struct looker *l, size_t start, uint64_t line)
{
	uint64_t context = l->job->req->context, floor = l->last_given, first;
	size_t at = start, n;

	if (l->shown_until && l->shown_until + context > floor)
		floor = l->shown_until + context;
	first = line > context ? line - context : 1;
	if (first <= floor)
		first = floor + 1;
	if (first >= line)
		return;
	for (n = (size_t)(line - first); n && at; n--) {
		const char *nl = at > 1 ? memrchr(l->text.ptr, '\n', at - 1) : NULL;

		at = nl ? (size_t)(nl - l->text.ptr) + 1 : 0;
	}
	if (n > l->tail.count)
		n = l->tail.count;
	if (n)
		give_tail(l, n, first);
	for (first += n; at < start; first++) {
		struct str text = line_from(l, at, &at);

		add_hit(l, first, text, false, false);
	}
}

static void found(struct looker *l, struct str text, size_t next)
{
	size_t start = (size_t)(text.ptr - l->text.ptr);

	l->matches++;
	if (!l->numbers) {
		l->eligible += l->shown_until != UINT64_MAX;
		return;
	}
	give_after(l, start);
	l->line += newline_count(l->text.ptr + l->pos, start - l->pos);
	if (l->line > l->shown_until) {
		l->eligible++;
		if (l->stored++ <= l->job->req->limit) {
			if (l->job->req->context)
				give_before(l, start, l->line);
			add_hit(l, l->line, text, true, false);
			l->after_left = l->job->req->context;
		}
	}
	l->line++;
	l->pos = next;
}

static void tail_add(struct looker *l, struct str line)
{
	struct tail *t = &l->tail;
	size_t cut = l->job->req->line_cut;

	/* a little more than is shown, so that it shows as cut */
	if (cut < line.len && line.len - cut > 4)
		line.len = cut + 4;
	if (t->len + line.len + 1 > t->cap) {
		t->cap = 2 * (t->len + line.len + 1);
		t->text = xrealloc(t->text, t->cap);
	}
	memcpy(t->text + t->len, line.ptr, line.len);
	t->len += line.len;
	t->text[t->len++] = '\n';
	t->count++;
}

static void tail_drop_first(struct tail *t, size_t n)
{
	struct str rest = str_n(t->text, t->len), line;

	for (size_t i = 0; i < n && str_cut(&rest, '\n', &line); i++)
		t->count--;
	if (rest.len)
		memmove(t->text, rest.ptr, rest.len);
	t->len = rest.len;
}

/* Keeps the last lines of a chunk for the next one's first match. */
static void keep_tail(struct looker *l)
{
	size_t at = l->text.len, n = 0, context = l->job->req->context;

	if (!context || l->counts_only)
		return;
	for (; at && n < context; n++) {
		const char *nl = at > 1 ? memrchr(l->text.ptr, '\n', at - 1) : NULL;

		at = nl ? (size_t)(nl - l->text.ptr) + 1 : 0;
	}
	if (l->tail.count + n > context)
		tail_drop_first(&l->tail, l->tail.count + n - context);
	while (at < l->text.len)
		tail_add(l, line_from(l, at, &at));
}

/* Searches l->text, all of which is whole lines. */
static int look(struct looker *l, struct err *err)
{
	struct str line;
	size_t from = 0;
	int r;

	l->pos = 0;
	searcher_begin(l->searcher, l->text);
	while ((r = searcher_next(l->searcher, from, &line, &from, err)) == 1)
		found(l, line, from);
	if (r < 0)
		return r;
	if (l->numbers)
		give_after(l, l->text.len);
	return 0;
}

/* Where the text ends for the search: before the line that has the first NUL, if one has. */
static size_t text_end(struct str text)
{
	const char *nul = text.len ? memchr(text.ptr, '\0', text.len) : NULL, *nl;

	if (!nul)
		return text.len;
	nl = memrchr(text.ptr, '\n', (size_t)(nul - text.ptr));
	return nl ? (size_t)(nl - text.ptr) + 1 : 0;
}

static int end_file(struct looker *l, struct err *err)
{
	const struct grep_job *job = l->job;
	struct outcome *out = l->out;

	l->in_file = false;
	l->out = NULL;
	l->total_matches += l->matches;
	l->files += l->matches > 0;
	l->total_eligible += job->req->output == GREP_LINES ? l->eligible : l->eligible > 0;
	if (l->eligible && job->req->output != GREP_LINES && !atomic_load(&job->page_full))
		out = outcome_new(l->path);
	if (out)
		out->matches = l->matches;
	return order_deliver(&l->job->order, job->ctx, l->seq, out, err);
}

/* One piece of whole lines (or the last one of all). SCAN_SKIP_FILE: the file is over. */
static int look_at_piece(struct looker *l, struct str text, bool last, struct err *err)
{
	size_t probe = l->offset < BINARY_PROBE ? BINARY_PROBE - (size_t)l->offset : 0;
	bool has_nul;
	int r;

	if (probe && text.len && memchr(text.ptr, '\0', probe < text.len ? probe : text.len)) {
		l->binary++;
		return SCAN_SKIP_FILE;
	}
	l->text = text;
	if (text.len > probe)
		l->text.len = text_end(text);
	has_nul = l->text.len < text.len;
	r = look(l, err);
	if (r)
		return r;
	if (has_nul) {
		l->binary++;
		return SCAN_SKIP_FILE;
	}
	l->offset += text.len;
	if (last)
		return 0;
	if (l->numbers && l->pos < text.len)
		l->line += newline_count(text.ptr + l->pos, text.len - l->pos);
	keep_tail(l);
	if (l->out && l->out->len > GIVE_EARLY && order_is_turn(&l->job->order, l->seq)) {
		r = l->job->order.give(l->job->order.arg, l->out, err);
		l->out->len = l->out->path_len;
		l->out->count = 0;
	}
	return r;
}

/* Collects the pieces of a line that is longer than a chunk. True when there is something to search now. */
static bool gather(struct looker *l, struct str data, bool last, struct str *ret_text)
{
	bool whole = last || (data.len && data.ptr[data.len - 1] == '\n');

	if (whole && l->hold_len == 0) {
		*ret_text = data;
		return true;
	}
	if (l->hold_len + data.len > l->hold_cap) {
		l->hold_cap = 2 * (l->hold_len + data.len);
		l->hold = xrealloc(l->hold, l->hold_cap);
	}
	if (data.len)
		memcpy(l->hold + l->hold_len, data.ptr, data.len);
	l->hold_len += data.len;
	if (!whole && l->hold_len < LINE_MAX_LEN)
		return false;
	*ret_text = str_n(l->hold, l->hold_len);
	l->hold_len = 0;
	return true;
}

int looker_visit(struct looker *l, const struct scan_item *item, struct err *err)
{
	struct str text;
	int r = 0;

	if (atomic_load(&l->job->order.failed))
		return err_set(err, ERR_CANCELLED, "the search has ended");
	l->path = item->path;
	if (!l->in_file) {
		begin_file(l, item);
		l->searched += !item->unreadable;
		l->unreadable += item->unreadable;
	} else if (item->unreadable) {
		l->unreadable++;
	}
	if (!item->unreadable && gather(l, item->data, item->last, &text))
		r = look_at_piece(l, text, item->last, err);
	if (r < 0) {
		order_fail(&l->job->order);
		return r;
	}
	if (item->last || r == SCAN_SKIP_FILE) {
		int e = end_file(l, err);

		if (e)
			order_fail(&l->job->order);
		return e ? e : r;
	}
	return 0;
}
