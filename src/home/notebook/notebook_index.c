/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WORKSPACE.md: the notebook's table of contents for people, and the model's instructions on the notebook.
 *
 * The file is derived and nobody waits for it. A write only marks it as out of date; a thread, which lives while there
 * is something to write, writes it a moment later, once for all writes of that moment, and so does closing the
 * workspace. It is replaced as a whole and never by an older state: each names the revision it shows, and replaces one
 * of an earlier revision only. A process that has not loaded a large notebook as a whole does not do so for the index:
 * it leaves the index out of date until the changes are an eighth of the notebook, so that the cost of a note does not
 * grow with their number. `stead notes index` and notebook_index() are always up to date.
 *
 * It is not recorded: history holds the notes, and two forks would otherwise conflict in it at every merge.
 */
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/strmap.h"
#include "home/notebook/notebook_internal.h"
#include "revisions/revisions.h"

#define INDEX_NOTES     1000 /* shown one by one */
#define INDEX_QUESTIONS 100
#define INDEX_AUTHORS   100
#define INDEX_BYTES     (4 * MIB)
#define TITLE_CHARS     200
#define SMALL           256 /* notes: the whole costs nothing worth saving */
#define BEHIND_PART     8
#define GATHER_NS       200000000LL
#define FLUSHERS_MAX    4
#define MARK            "<!-- stead notebook: revision "

static atomic_int flushers;

/* --- rendering --- */

struct contributor {
	struct str author;
	uint64_t notes;
	int64_t last_ns;
	unsigned kinds; /* bits, in the order of note_kinds */
};

struct summary {
	struct contributor *authors; /* by their last note, newest first */
	size_t author_count, cap;
	struct strmap *places; /* of an author in it */
	uint64_t notes, questions, archived;
};

static void count_note(struct arena *arena, struct summary *s, const struct note *n)
{
	struct contributor *c;
	bool fresh;
	size_t *place = strmap_put(s->places, n->author, &fresh);

	if (fresh) {
		ARENA_ROOM(arena, s->authors, s->author_count, s->cap);
		*place = s->author_count;
		s->authors[s->author_count++] = (struct contributor){.author = n->author, .last_ns = n->updated_ns};
	}
	c = &s->authors[*place];
	c->notes++;
	for (size_t k = 0; note_kinds[k]; k++)
		if (str_is(n->kind, note_kinds[k]))
			c->kinds |= 1U << k;
}

static bool is_open(const struct note *n)
{
	return !n->archived_ns && str_is(n->kind, "question") && n->answer != NOTE_ANSWERED;
}

static struct summary summarise(struct arena *arena, const struct catalog *c)
{
	struct summary s = {.places = strmap_new(arena)};

	for (size_t i = 0; i < catalog_count(c); i++) {
		const struct note *n = catalog_at(c, i);

		if (n->archived_ns) {
			s.archived++;
			continue;
		}
		s.notes++;
		s.questions += is_open(n);
		count_note(arena, &s, n);
	}
	return s;
}

/* One line, with nothing in it that Markdown or a reader could take for the end of it. */
static void add_line(struct buf *b, struct arena *arena, struct str text)
{
	struct str cut = note_cut(arena, text, TITLE_CHARS);

	for (size_t i = 0; i < cut.len; i++) {
		unsigned char c = (unsigned char)cut.ptr[i];

		if (c < 0x20 || c == 0x7F)
			buf_char(b, ' ');
		else if (c == '<')
			buf_lit(b, "&lt;");
		else
			buf_char(b, (char)c);
	}
}

static void add_note_line(struct buf *b, struct arena *arena, const struct note *n, bool full)
{
	buf_printf(b, "- `%.*s` ", STR_ARG(n->slug));
	if (full) {
		buf_printf(b, "(%.*s, %.*s", STR_ARG(n->author), STR_ARG(n->kind));
		for (size_t i = 0; i < n->tag_count; i++) {
			buf_lit(b, " #");
			add_line(b, arena, n->tags[i]);
		}
		buf_lit(b, ") ");
	} else {
		buf_printf(b, "(%.*s) ", STR_ARG(n->author));
	}
	add_line(b, arena, n->title);
	if (n->lede.len) {
		buf_lit(b, " — ");
		add_line(b, arena, n->lede);
	}
	buf_char(b, '\n');
}

static void add_questions(struct buf *b, struct arena *arena, const struct catalog *c, uint64_t total)
{
	size_t shown = 0;

	if (!total)
		return;
	buf_printf(b, "\n## Open questions (%llu)\n\n", (unsigned long long)total);
	for (size_t i = 0; i < catalog_count(c) && shown < INDEX_QUESTIONS; i++)
		if (is_open(catalog_at(c, i))) {
			add_note_line(b, arena, catalog_at(c, i), false);
			shown++;
		}
	if (shown < total)
		buf_printf(b, "\n%llu more: list_open_questions.\n", (unsigned long long)(total - shown));
}

static void add_authors(const struct workspace *ws, struct buf *b, struct arena *arena, const struct summary *s)
{
	buf_lit(b, "\n## Contributors\n\n");
	for (size_t i = 0; i < s->author_count && i < INDEX_AUTHORS; i++) {
		const struct contributor *c = &s->authors[i];
		bool any = false;

		buf_lit(b, "- ");
		add_line(b, arena, c->author);
		buf_printf(b, ": %llu note%s (", (unsigned long long)c->notes, c->notes == 1 ? "" : "s");
		for (size_t k = 0; note_kinds[k]; k++)
			if (c->kinds & 1U << k) {
				buf_printf(b, "%s%s", any ? ", " : "", note_kinds[k]);
				any = true;
			}
		buf_printf(b, "), last %.*s\n", STR_ARG(workspace_time(ws, arena, c->last_ns)));
	}
	if (s->author_count > INDEX_AUTHORS)
		buf_printf(b, "\n%zu more.\n", s->author_count - INDEX_AUTHORS);
}

static void add_notes(struct buf *b, struct arena *arena, const struct catalog *c, uint64_t total)
{
	size_t shown = 0;

	buf_lit(b, "\n## All notes, newest first\n\n");
	for (size_t i = 0; i < catalog_count(c) && shown < INDEX_NOTES; i++)
		if (!catalog_at(c, i)->archived_ns) {
			add_note_line(b, arena, catalog_at(c, i), true);
			shown++;
		}
	if (shown < total)
		buf_printf(b, "\n%llu older notes: list_notes, search_notes.\n", (unsigned long long)(total - shown));
}

static struct str render(const struct workspace *ws, struct arena *arena, const struct catalog *c)
{
	struct summary s = summarise(arena, c);
	struct note_problem *problems;
	uint64_t bad = catalog_problems(c, arena, &problems);
	struct buf b;

	buf_init(&b, arena, INDEX_BYTES);
	buf_printf(&b, MARK "%llu, number %llu -->\n# Notebook of %.*s\n\n", (unsigned long long)catalog_revision(c),
		   (unsigned long long)catalog_number(c), STR_ARG(workspace_name(ws)));
	if (s.notes) {
		buf_printf(&b, "%llu note%s by %zu author%s, last activity %.*s.", (unsigned long long)s.notes,
			   s.notes == 1 ? "" : "s", s.author_count, s.author_count == 1 ? "" : "s",
			   STR_ARG(workspace_time(ws, arena, s.authors[0].last_ns)));
		if (s.archived)
			buf_printf(&b, " %llu archived.", (unsigned long long)s.archived);
		buf_char(&b, '\n');
		add_questions(&b, arena, c, s.questions);
		add_authors(ws, &b, arena, &s);
		add_notes(&b, arena, c, s.notes);
	} else {
		buf_lit(&b, "No notes yet. The first one appears here when an agent writes it with `note`.\n");
	}
	if (bad)
		buf_printf(&b, "\n%llu file%s below notes/ cannot be read as notes, for example %.*s: %.*s.\n",
			   (unsigned long long)bad, bad == 1 ? "" : "s", STR_ARG(problems[0].path),
			   STR_ARG(problems[0].why));
	return buf_str(&b);
}

int notebook_index(struct notebook *nb, struct ctx *ctx, struct str *ret, struct err *err)
{
	int r;

	pthread_mutex_lock(&nb->lock);
	r = catalog_refresh(nb, ctx, err);
	if (!r)
		*ret = render(nb->ws, ctx->arena, nb->catalog);
	pthread_mutex_unlock(&nb->lock);
	return r;
}

/* --- the file --- */

/* The revision and the number that the first line of an index names. */
static bool index_mark(struct str bytes, uint64_t *ret_revision, uint64_t *ret_number)
{
	struct str rest = str_from(bytes, sizeof(MARK) - 1), part;
	int64_t revision, number;

	if (!str_starts(bytes, STR(MARK)) || !str_cut(&rest, ',', &part) || !str_to_i64(part, &revision) ||
	    !str_starts(rest, STR(" number ")))
		return false;
	rest = str_from(rest, 8);
	if (!str_cut(&rest, ' ', &part) || !str_to_i64(part, &number))
		return false;
	*ret_revision = (uint64_t)revision;
	*ret_number = (uint64_t)number;
	return true;
}

static int index_path(struct notebook *nb, struct ctx *ctx, struct wpath *ret, struct err *err)
{
	return wpath_join(ctx->arena, nb->part, NOTE_INDEX, ret, err);
}

/* What the file that is there shows; zeros when there is none. */
static int index_state(struct notebook *nb, struct ctx *ctx, uint64_t *ret_revision, uint64_t *ret_number,
		       struct store_cond *ret_cond, struct err *err)
{
	struct store_range beginning = {0, 200};
	struct store_stat stat;
	struct wpath path;
	struct str bytes;
	int r = index_path(nb, ctx, &path, err);

	*ret_revision = *ret_number = 0;
	*ret_cond = (struct store_cond){.kind = STORE_ABSENT};
	if (!r)
		r = store_read(workspace_unrecorded(nb->ws), ctx, path, beginning, 200, &bytes, &stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	*ret_cond = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	index_mark(bytes, ret_revision, ret_number);
	return 0;
}

int notebook_flush(struct notebook *nb, struct ctx *ctx, struct err *err)
{
	for (;;) {
		uint64_t revision, number, mine;
		struct store_cond cond;
		struct wpath path;
		struct str text;
		int r = index_state(nb, ctx, &revision, &number, &cond, err);

		if (!r)
			r = index_path(nb, ctx, &path, err);
		if (!r)
			r = notebook_index(nb, ctx, &text, err);
		if (r)
			return r;
		if (!index_mark(text, &mine, &number) || (cond.kind == STORE_VERSION && revision >= mine))
			return 0;
		r = workspace_write_derived(nb->ws, ctx, path, text, cond, err);
		if (r != -ERR_CONFLICT && r != -ERR_EXISTS)
			return r;
		r = ctx_check(ctx, err);
		if (r)
			return r;
	}
}

/* --- when --- */

/* True when the whole notebook may be looked at for the index. */
static bool is_due(struct notebook *nb, struct ctx *ctx)
{
	uint64_t revision, number, last, head;
	struct store_cond cond;
	struct err err;
	bool looked_at;

	pthread_mutex_lock(&nb->lock);
	looked_at = nb->catalog != NULL;
	pthread_mutex_unlock(&nb->lock);
	if (looked_at)
		return true;
	if (index_state(nb, ctx, &revision, &number, &cond, &err) || revisions_head(nb->shared, ctx, &head, &err))
		return false;
	pthread_mutex_lock(&nb->flush_lock);
	last = nb->last_number > number ? nb->last_number : number;
	pthread_mutex_unlock(&nb->flush_lock);
	return last <= SMALL || head - revision >= last / BEHIND_PART;
}

static void flush_if_due(struct notebook *nb)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .actor = workspace_actor(nb->ws)};
	struct err err;

	/* What fails here is tried again after the next write; nothing is lost, the notes are there. */
	if (is_due(nb, &ctx))
		(void)notebook_flush(nb, &ctx, &err);
}

/* Writes the index while it is behind, each time after a moment in which more may come. */
static void *flush_while_dirty(void *arg)
{
	struct notebook *nb = arg;

	pthread_mutex_lock(&nb->flush_lock);
	while (nb->dirty && !nb->ending) {
		int64_t until = clock_monotonic_ns() + GATHER_NS;
		struct timespec t = {until / 1000000000, until % 1000000000};

		while (!nb->ending && clock_monotonic_ns() < until)
			pthread_cond_timedwait(&nb->flush_wake, &nb->flush_lock, &t);
		if (nb->ending)
			break;
		nb->dirty = false;
		pthread_mutex_unlock(&nb->flush_lock);
		flush_if_due(nb);
		pthread_mutex_lock(&nb->flush_lock);
	}
	nb->flushing = false;
	atomic_fetch_sub(&flushers, 1);
	pthread_mutex_unlock(&nb->flush_lock);
	return NULL;
}

void index_dirty(struct notebook *nb, uint64_t number)
{
	pthread_mutex_lock(&nb->flush_lock);
	nb->dirty = true;
	if (number > nb->last_number)
		nb->last_number = number;
	if (!nb->flushing && atomic_fetch_add(&flushers, 1) < FLUSHERS_MAX) {
		if (nb->has_flusher)
			pthread_join(nb->flusher, NULL); /* it has ended, or is about to return */
		nb->has_flusher = nb->flushing = pthread_create(&nb->flusher, NULL, flush_while_dirty, nb) == 0;
		if (!nb->flushing)
			atomic_fetch_sub(&flushers, 1);
	} else if (!nb->flushing) {
		atomic_fetch_sub(&flushers, 1);
	}
	pthread_mutex_unlock(&nb->flush_lock);
}

void index_end(struct notebook *nb)
{
	bool dirty;

	pthread_mutex_lock(&nb->flush_lock);
	nb->ending = true;
	dirty = nb->dirty;
	pthread_cond_broadcast(&nb->flush_wake);
	pthread_mutex_unlock(&nb->flush_lock);
	if (nb->has_flusher)
		pthread_join(nb->flusher, NULL);
	if (dirty)
		flush_if_due(nb);
}

/* --- the prompt --- */

struct str notebook_prompt(struct notebook *nb, struct ctx *ctx, const struct str *teammates, size_t count)
{
	struct buf b;

	buf_init(&b, ctx->arena, 64 * KIB);
	if (!count) {
		buf_lit(&b, "## Notebook\n\nYou have a notebook that outlives this conversation. It is your own memory "
			    "across runs.\n- Before you start, use search_notes with the words of the task: you may "
			    "have solved it before.\n- When you learn something that will matter later, write it with "
			    "note: one fact or decision each,\n  with a title that you will find again.\n- Correct a "
			    "note that turned out wrong with update_note.\n- read_note takes a slug or part of a "
			    "title.\n- list_notes shows the newest.\n");
		return buf_str(&b);
	}
	buf_printf(&b, "## Notebook\n\nYou are %.*s. You share a notebook with ", STR_ARG(nb->author));
	for (size_t i = 0; i < count; i++)
		buf_printf(&b, "%s%.*s", i == 0 ? "" : i + 1 == count ? " and " : ", ", STR_ARG(teammates[i]));
	buf_lit(&b, ". They do not see this conversation; what you want them to know goes into a note.\n- Before you "
		    "work, use search_notes to see what the others found and plan.\n- list_notes shows the newest "
		    "notes.\n- Announce what you take on with a note of kind plan, so that nobody does it twice.\n- "
		    "Write what you found with note: short, one topic each. Kinds: finding, question, decision,\n  "
		    "summary, artifact, plan, note.\n- Only the author of a note changes it.\n- Ask with ask_question, "
		    "and answer with answer_question what list_open_questions shows.\n");
	return buf_str(&b);
}
