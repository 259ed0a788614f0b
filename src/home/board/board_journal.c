/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JOURNAL.md of an item: a section for each handoff, and whatever sections agents and people add.
 *
 * An entry is part of the change that it tells of: it is put into the item's record by the same conditional write, and
 * moved to the file afterwards. Whoever reads the item after a crash moves it first, so nobody sees a completed item
 * whose journal lacks the entry. The marker at its end makes the move repeatable: an entry whose marker is in the file
 * is not added again.
 *
 * Compaction takes the oldest entries out of the file when it has grown large. They go, as they are, to a file in
 * audit/, which is written first; in their place comes a checkpoint with a line for each of them, their cautions, and
 * all markers. Sections that are not entries stay where they are.
 */
#include "base/hash.h"
#include "home/board/board_internal.h"
#include "workspace/workspace_parts.h"

#define DOT        " · "
#define LINE_CUT   ((size_t)300)
#define CHECKPOINT "## Checkpoint" DOT "compacted"

/* --- entries --- */

/* One line: line ends become " | ", blanks are collapsed. */
static void add_line(struct buf *b, const char *name, struct str text)
{
	bool blank = true;

	if (!str_trim(text).len)
		return;
	buf_printf(b, "%s: ", name);
	text = str_trim(text);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '\n') {
			buf_lit(b, " |");
			c = ' ';
			blank = false;
		}
		if (c == '\r' || c == '\t')
			c = ' ';
		if (c != ' ' || !blank)
			buf_char(b, c);
		blank = c == ' ';
	}
	buf_char(b, '\n');
}

/* A name in a heading: it cannot end the heading or look like a part of it. */
static void add_name(struct buf *b, struct str name)
{
	for (size_t i = 0; i < name.len && i < 80; i++)
		buf_char(b, (unsigned char)name.ptr[i] < ' ' ? ' ' : name.ptr[i]);
}

static void add_artifacts(struct buf *b, const struct jv *artifacts)
{
	if (!jv_count(artifacts))
		return;
	buf_lit(b, "artifacts: ");
	for (const struct jv_member *m = jv_first(artifacts); m; m = m->next)
		buf_printf(b, "%.*s%s", STR_ARG(jv_get_str(m->value, "path")), m->next ? ", " : "\n");
}

/* What ends a comment of HTML must not be in a text that comes before a marker. */
static struct str without_markers(struct arena *arena, struct str text)
{
	char *copy;

	if (str_find(text, STR("<!--"), 0) == SIZE_MAX)
		return text;
	copy = (char *)arena_cstr(arena, text);
	for (size_t i = 0; i + 4 <= text.len; i++)
		if (memcmp(copy + i, "<!--", 4) == 0)
			copy[i] = '(';
	return str_n(copy, text.len);
}

void item_journal_queue(struct arena *arena, struct jv *item, const struct handoff *h, struct str name,
			const char *marker_kind, struct str marker_id)
{
	struct jv *queue = (struct jv *)jv_get(item, "journal_queue"), *entry = jv_object(arena);
	struct str marker = arena_printf(arena, "<!-- %s:%.*s -->", marker_kind, STR_ARG(marker_id));
	struct buf b;

	buf_init(&b, arena, JOURNAL_FILE_MAX);
	buf_printf(&b, "## [%.*s]" DOT, STR_ARG(board_now(arena)));
	add_name(&b, without_markers(arena, name));
	buf_printf(&b, DOT "%.*s\n", STR_ARG(h->status));
	add_line(&b, "outcome", without_markers(arena, h->summary));
	add_line(&b, "findings", without_markers(arena, h->findings));
	add_line(&b, "cautions", without_markers(arena, h->cautions));
	add_artifacts(&b, h->artifacts);
	add_line(&b, "next", without_markers(arena, h->next));
	buf_printf(&b, "%.*s\n", STR_ARG(marker));
	if (!queue) {
		queue = jv_array(arena);
		jv_set(arena, item, "journal_queue", queue);
	}
	jv_set_str(arena, entry, "marker", marker);
	jv_set_str(arena, entry, "text", buf_str(&b));
	jv_push(arena, queue, entry);
}

/* --- sections --- */

enum section_kind { SECTION_HEAD, SECTION_ENTRY, SECTION_CHECKPOINT, SECTION_OTHER };

struct section {
	enum section_kind kind;
	struct str text; /* with its heading and line ends */
	struct str time, name, status;
};

/* "## [time] · name · status", with or without the brackets. */
static enum section_kind parse_heading(struct str line, struct section *ret)
{
	struct str rest = str_trim(str_from(line, 3));
	size_t dot = str_find(rest, STR(DOT), 0), last;

	if (str_starts(line, STR(CHECKPOINT)))
		return SECTION_CHECKPOINT;
	if (dot == SIZE_MAX)
		return SECTION_OTHER;
	ret->time = str_first(rest, dot);
	if (str_starts(ret->time, STR("[")) && str_ends(ret->time, STR("]")))
		ret->time = str_n(ret->time.ptr + 1, ret->time.len - 2);
	if (ret->time.len != 20 || ret->time.ptr[10] != 'T' || ret->time.ptr[19] != 'Z')
		return SECTION_OTHER;
	rest = str_from(rest, dot + strlen(DOT));
	last = str_find(rest, STR(DOT), 0);
	if (last == SIZE_MAX)
		return SECTION_OTHER;
	ret->name = str_first(rest, last);
	ret->status = str_from(rest, last + strlen(DOT));
	return SECTION_ENTRY;
}

static size_t cut_sections(struct arena *arena, struct str journal, struct section **ret)
{
	struct section *list = NULL;
	size_t count = 0, cap = 0, at = 0;

	while (at < journal.len) {
		struct str line = str_first(str_from(journal, at), str_find_char(str_from(journal, at), '\n') + 1);

		if (count == 0 || str_starts(line, STR("## "))) {
			ARENA_ROOM(arena, list, count, cap);
			list[count] = (struct section){.text = str_n(line.ptr, 0)};
			if (str_starts(line, STR("## ")))
				list[count].kind = parse_heading(str_trim(line), &list[count]);
			count++;
		}
		list[count - 1].text.len += line.len;
		at += line.len;
	}
	*ret = list;
	return count;
}

/* The value of "name: …" in a section. */
static struct str field_of(struct str section, const char *name)
{
	struct str line;

	while (str_cut(&section, '\n', &line))
		if (str_starts(line, str_of(name)) && str_starts(str_from(line, strlen(name)), STR(": ")))
			return str_from(line, strlen(name) + 2);
	return STR("");
}

static void add_markers(struct buf *b, struct str section)
{
	struct str line;

	while (str_cut(&section, '\n', &line))
		if (str_starts(line, STR("<!-- ")) && str_ends(line, STR(" -->")))
			buf_printf(b, "%.*s\n", STR_ARG(line));
}

static void add_checkpoint(struct buf *b, const struct section *list, size_t count, size_t entries,
			   struct str archive_name, struct str now)
{
	buf_printf(b, CHECKPOINT " %zu entries" DOT "%.*s\n", entries, STR_ARG(now));
	buf_printf(b, "The entries as they were are in %.*s.\n\n", STR_ARG(archive_name));
	for (size_t i = 0, n = 0; i < count && n < entries; i++) {
		struct str outcome = field_of(list[i].text, "outcome"), cautions = field_of(list[i].text, "cautions");

		if (list[i].kind != SECTION_ENTRY)
			continue;
		n++;
		buf_printf(b, "- %.*s" DOT "%.*s" DOT "%.*s: %.*s%s\n", STR_ARG(list[i].time), STR_ARG(list[i].name),
			   STR_ARG(list[i].status), STR_ARG(utf8_first(outcome, LINE_CUT)),
			   outcome.len > LINE_CUT ? "…" : "");
		if (cautions.len)
			buf_printf(b, "  - caution: %.*s\n", STR_ARG(cautions));
	}
	for (size_t i = 0, n = 0; i < count && n < entries; i++)
		if (list[i].kind == SECTION_ENTRY) {
			add_markers(b, list[i].text);
			n++;
		}
	buf_char(b, '\n');
}

struct str item_journal_compact(struct arena *arena, struct str journal, struct str archive_name, struct str now,
				struct str *ret_old)
{
	struct section *list;
	size_t count, entries = 0, moved, n = 0;
	struct buf b, old;
	bool placed = false;

	*ret_old = STR_NONE;
	if (journal.len < JOURNAL_COMPACT_BYTES)
		return journal;
	count = cut_sections(arena, journal, &list);
	for (size_t i = 0; i < count; i++)
		entries += list[i].kind == SECTION_ENTRY;
	if (entries <= JOURNAL_KEPT_ENTRIES)
		return journal;
	moved = entries - JOURNAL_KEPT_ENTRIES;
	buf_init(&b, arena, JOURNAL_FILE_MAX);
	buf_init(&old, arena, JOURNAL_FILE_MAX);
	for (size_t i = 0; i < count; i++) {
		bool goes = list[i].kind == SECTION_ENTRY && n < moved;

		n += list[i].kind == SECTION_ENTRY;
		if (goes && !placed)
			add_checkpoint(&b, list, count, moved, archive_name, now);
		placed = placed || goes;
		buf_add(goes ? &old : &b, list[i].text);
	}
	*ret_old = buf_str(&old);
	return buf_str(&b);
}

struct str item_journal_tail(struct arena *arena, struct str journal)
{
	struct str tail = journal;
	size_t lines = 0, at;
	bool is_cut = journal.len > JOURNAL_TAIL_BYTES;

	if (is_cut) {
		tail = str_from(journal, journal.len - JOURNAL_TAIL_BYTES);
		tail = str_from(tail, str_find_char(tail, '\n') + 1);
	}
	for (at = tail.len; at > 0; at--)
		if (tail.ptr[at - 1] == '\n' && at < tail.len && ++lines == JOURNAL_TAIL_LINES)
			break;
	is_cut = is_cut || at > 0;
	tail = str_from(tail, at);
	return is_cut ? arena_printf(arena, "[Showing tail of journal]\n%.*s", STR_ARG(tail)) : tail;
}

/* --- the file --- */

struct adding {
	struct ctx *ctx;
	const struct item *item;
	const struct jv *queue; /* entries with markers, or: */
	struct str text;        /* a section of somebody's own */
};

static int change_journal(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct adding *a = arg;
	struct str head =
		arena_printf(arena, "# Journal\n\n%.*s: %.*s\n\nEach section is one handoff, the newest last.\n",
			     STR_ARG(item_key(a->item->v)), STR_ARG(jv_get_str(a->item->v, "title")));
	struct buf b;
	bool is_new = false;

	buf_init(&b, arena, JOURNAL_FILE_MAX);
	buf_add(&b, before.len ? before : head);
	if (b.len && b.ptr[b.len - 1] != '\n')
		buf_char(&b, '\n');
	for (const struct jv_member *m = jv_first(a->queue); m; m = m->next) {
		if (str_find(before, jv_get_str(m->value, "marker"), 0) != SIZE_MAX)
			continue;
		buf_printf(&b, "\n%.*s", STR_ARG(jv_get_str(m->value, "text")));
		is_new = true;
	}
	if (a->text.len) {
		buf_printf(&b, "\n%.*s\n", STR_ARG(a->text));
		is_new = true;
	}
	if (b.overflow)
		return err_set(err, ERR_TOO_LARGE,
			       "the journal would exceed %zu bytes; write the rest to a file of the task",
			       (size_t)JOURNAL_FILE_MAX);
	if (is_new)
		*ret_after = buf_str(&b);
	return 0;
}

static struct wpath journal_path(struct arena *arena, const struct item *item)
{
	return board_path(arena, item->board, "tasks/%.*s/JOURNAL.md", STR_ARG(item_key(item->v)));
}

int item_journal_read(struct workspace *ws, struct ctx *ctx, const struct item *item, struct str *ret, struct err *err)
{
	int r = store_read(workspace_home(ws), ctx, journal_path(ctx->arena, item), STORE_WHOLE, JOURNAL_FILE_MAX, ret,
			   NULL, err);

	if (r == -ERR_NOT_FOUND)
		*ret = STR("");
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* The old entries are in audit/ before they leave the journal. Another writer in between: it is done the next time. */
static int compact_file(struct workspace *ws, struct ctx *ctx, const struct item *item, const struct store_stat *stat,
			struct str journal, struct err *err)
{
	struct str name = arena_printf(ctx->arena, "audit/journal-%.*s.md",
				       STR_ARG(str_first(hash_hex128(ctx->arena, journal), 16)));
	struct str old, now = board_now(ctx->arena),
			short_one = item_journal_compact(ctx->arena, journal, name, now, &old);
	struct wpath path =
		board_path(ctx->arena, item->board, "tasks/%.*s/%.*s", STR_ARG(item_key(item->v)), STR_ARG(name));
	int r;

	if (!old.ptr)
		return 0;
	r = store_write(workspace_home(ws), ctx, path, old, (struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	if (r == 0 || r == -ERR_EXISTS)
		r = store_write(workspace_home(ws), ctx, journal_path(ctx->arena, item), short_one,
				(struct store_cond){.kind = STORE_VERSION, .version = stat->version}, NULL, err);
	return r == -ERR_CONFLICT ? 0 : r;
}

static int add_to_journal(struct workspace *ws, struct ctx *ctx, struct adding *a, struct err *err)
{
	struct store_change change = {.max = JOURNAL_FILE_MAX, .create = true, .change = change_journal, .arg = a};
	struct workspace_changed done = {0};
	int r = workspace_change(ws, ctx, journal_path(ctx->arena, a->item), &change, &done, err);

	if (r == 0 && done.after.ptr)
		r = compact_file(ws, ctx, a->item, &done.stat, done.after, err);
	return r;
}

static int clear_queue(struct item_edit *e, struct jv *item, struct err *err)
{
	const struct jv *moved = e->arg, *queue = jv_get(item, "journal_queue");
	struct jv *left = jv_array(e->ctx->arena);

	(void)err;
	for (const struct jv_member *m = jv_first(queue); m; m = m->next) {
		bool was_moved = false;

		for (const struct jv_member *k = jv_first(moved); k; k = k->next)
			was_moved = was_moved || str_eq(jv_get_str(k->value, "marker"), jv_get_str(m->value, "marker"));
		if (!was_moved)
			jv_push(e->ctx->arena, left, jv_copy(e->ctx->arena, m->value));
	}
	e->is_unchanged = jv_count(left) == jv_count(queue);
	if (jv_count(left))
		jv_set(e->ctx->arena, item, "journal_queue", left);
	else
		jv_remove(item, "journal_queue");
	return 0;
}

int item_settle(struct workspace *ws, struct ctx *ctx, struct item *item, struct err *err)
{
	const struct jv *queue = jv_get(item->v, "journal_queue");
	struct adding a = {.ctx = ctx, .item = item, .queue = queue};
	struct item_edit e = {.edit = clear_queue, .arg = (void *)queue};
	int r = 0;

	if (!jv_count(queue) || item->archived)
		return 0;
	r = add_to_journal(ws, ctx, &a, err);
	if (r == 0)
		r = item_edit(ws, ctx, (struct board_ref){item->board, item->id}, &e, err);
	if (r == 0)
		item->v = e.item;
	return r;
}

int board_journal_add(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str text, struct err *err)
{
	struct item item;
	struct adding a = {.ctx = ctx, .item = &item, .text = without_markers(ctx->arena, str_trim(text))};
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0 && item.archived)
		r = err_set(err, ERR_CONFLICT, "the item %.*s is archived; take it back with unarchive_item first",
			    STR_ARG(item_key(item.v)));
	if (r == 0 && !a.text.len)
		r = err_set(err, ERR_INVALID, "there is nothing to add to the journal; give some text");
	return r ? r : add_to_journal(ws, ctx, &a, err);
}

int board_journal_tail(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str *ret, struct err *err)
{
	struct item item;
	struct str journal;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = item_journal_read(ws, ctx, &item, &journal, err);
	if (r == 0)
		*ret = item_journal_tail(ctx->arena, journal);
	return r;
}
