/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consolidation, budgets and archives. Stead calls no model: the caller asks what is new (memory_pending), rewrites
 * MEMORY.md in its own words, and submits it (memory_consolidate). This file ensures that such a text cannot make
 * memory say more than its sources did:
 *
 *  - every bullet names facts that exist, at least one of which still holds;
 *  - it gets the lowest trust among them, and, when its words are not those of a source, no more than an agent's;
 *  - what a person wrote and no bullet names stays, and so does what was saved while the text was being written: the
 *    write is conditional, and made again over what is there then.
 *
 * How far ledgers were taken in is kept by user (each has a home) and by agent, as the length of each ledger: they only
 * grow, so nothing is merged twice and nothing between two runs is missed. A time would do neither.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/memory/memory_internal.h"

#define STATE_MAX    (4 * MIB)
#define HEADING_MAX  60
#define TRIES_MAX    100
#define DAYS_DEFAULT 90
#define NS_PER_DAY   (INT64_C(86400) * 1000000000)

/* --- the state: {"agents":{"<agent>":{"at":…,"ledgers":{"memory/2026-11-15.md":1234},"pending":{…}}}} --- */

static struct jv *parse_state(struct arena *arena, struct str bytes)
{
	struct jv *state;
	struct err ignored;

	/* an unreadable state starts empty: the ledgers are then merged once more */
	if (!bytes.len || jv_parse(arena, bytes, &state, &ignored) || state->type != JV_OBJECT)
		state = jv_object(arena);
	return state;
}

static struct jv *member(struct arena *arena, struct jv *object, struct str key)
{
	struct jv *v = (struct jv *)jv_get_key(object, key);

	if (!v || v->type != JV_OBJECT) {
		v = jv_object(arena);
		jv_set_key(arena, object, key, v);
	}
	return v;
}

static int read_state(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct str bytes;
	int r = memory_read(ws, ctx, STR(MEMORY_STATE), &bytes, NULL, err);

	if (r == 0)
		*ret = parse_state(ctx->arena, bytes);
	return r;
}

struct state_change {
	void (*apply)(void *arg, struct arena *arena, struct jv *state);
	void *arg;
};

static int change_state_text(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct state_change *c = arg;
	struct jv *state = parse_state(arena, before);
	struct buf out;

	(void)err;
	c->apply(c->arg, arena, state);
	buf_init(&out, arena, STATE_MAX);
	jv_write_pretty(&out, state);
	*ret_after = buf_str(&out);
	return 0;
}

static int change_state(struct workspace *ws, struct ctx *ctx,
			void (*apply)(void *arg, struct arena *arena, struct jv *state), void *arg, struct err *err)
{
	struct state_change c = {apply, arg};
	struct store_change change = {.max = STATE_MAX, .create = true, .change = change_state_text, .arg = &c};

	return store_change(workspace_home(ws), ctx, (struct wpath){STR(MEMORY_STATE)}, &change, NULL, NULL, NULL, err);
}

struct shift {
	struct str ledger;
	uint64_t at, len;
};

static void shift_in(struct arena *arena, struct jv *ledgers, const struct shift *s)
{
	const struct jv *v = jv_get_key(ledgers, s->ledger);
	uint64_t mark = v && v->type == JV_INT ? (uint64_t)v->u.i : 0;

	if (mark > s->at)
		jv_set_key(arena, ledgers, arena_str(arena, s->ledger),
			   jv_int(arena, (int64_t)(mark - s->at < s->len ? s->at : mark - s->len)));
}

static void apply_shift(void *arg, struct arena *arena, struct jv *state)
{
	for (const struct jv_member *m = jv_first(jv_get(state, "agents")); m; m = m->next) {
		shift_in(arena, member(arena, m->value, STR("ledgers")), arg);
		if (jv_get(m->value, "pending"))
			shift_in(arena, member(arena, member(arena, m->value, STR("pending")), STR("ledgers")), arg);
	}
}

int memory_shift_marks(struct workspace *ws, struct ctx *ctx, struct str ledger, uint64_t at, uint64_t len,
		       struct err *err)
{
	struct shift s = {ledger, at, len};
	struct jv *state;
	int r = read_state(ws, ctx, &state, err);

	return r || !jv_count(jv_get(state, "agents")) ? r : change_state(ws, ctx, apply_shift, &s, err);
}

/* --- what is new --- */

struct pending {
	struct workspace *ws;
	struct ctx *ctx;
	struct str agent, basis;
	struct jv *known, *ledgers; /* ids of MEMORY.md; how long each ledger is */
};

static bool has_id(const struct jv *ids, struct str id)
{
	for (const struct jv_member *m = jv_first(ids); m; m = m->next)
		if (str_eq(jv_str_of(m->value), id))
			return true;
	return false;
}

static void apply_pending(void *arg, struct arena *arena, struct jv *state)
{
	struct pending *p = arg;
	struct jv *own = member(arena, member(arena, state, STR("agents")), p->agent), *v = jv_object(arena);

	jv_set_str(arena, v, "basis", p->basis);
	jv_set(arena, v, "known", p->known);
	jv_set(arena, v, "ledgers", p->ledgers);
	jv_set(arena, own, "pending", v);
}

/* The facts of a ledger after the watermark `from`. *ret_end: its length in whole lines. */
static int ledger_facts(struct workspace *ws, struct ctx *ctx, struct str path, uint64_t from, struct parts *ret,
			uint64_t *ret_end, struct err *err)
{
	struct str bytes;
	size_t end;
	int r = memory_read(ws, ctx, path, &bytes, NULL, err);

	if (r)
		return r;
	end = str_rfind_char(bytes, '\n');
	*ret_end = end < bytes.len ? end + 1 : 0;
	if (from > *ret_end)
		from = *ret_end;
	memory_parse(ctx->arena, str_first(str_from(bytes, (size_t)from), (size_t)(*ret_end - from)), ret);
	return 0;
}

static uint64_t mark_of(const struct jv *ledgers, struct str path)
{
	const struct jv *v = jv_get_key(ledgers, path);

	return v && v->type == JV_INT && v->u.i > 0 ? (uint64_t)v->u.i : 0;
}

/* Ledger facts that are not in MEMORY.md; their values go to `entries`. */
static int gather(struct pending *p, const struct jv *marks, struct jv *entries, struct err *err)
{
	struct arena *arena = p->ctx->arena;
	int64_t now = clock_real_ns(), day;
	struct str *files;
	size_t count;
	int r = memory_files(p->ws, p->ctx, false, &files, &count, err);

	for (size_t i = 1; r == 0 && i < count; i++) {
		struct parts parts;
		uint64_t end;

		if (!memory_is_ledger(files[i], &day))
			continue;
		r = ledger_facts(p->ws, p->ctx, files[i], mark_of(marks, files[i]), &parts, &end, err);
		if (r)
			break;
		jv_set_key(arena, p->ledgers, files[i], jv_int(arena, (int64_t)end));
		for (size_t k = 0; k < parts.count; k++)
			if (parts.list[k].is_fact && !has_id(p->known, parts.list[k].fact.id))
				jv_push(arena, entries, memory_value(arena, &parts.list[k], files[i], now));
	}
	return r;
}

int memory_pending(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct pending p = {.ws = ws,
			    .ctx = ctx,
			    .agent = memory_agent(ws, ctx),
			    .basis = str_from(memory_new_id(arena), 2),
			    .known = jv_array(arena),
			    .ledgers = jv_object(arena)};
	struct jv *state, *list, *entries = jv_array(arena);
	const struct jv *own;
	int r = read_state(ws, ctx, &state, err);

	if (r == 0)
		r = memory_list(ws, ctx, true, 0, &list, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(list, "facts")); m; m = m->next)
		jv_push(arena, p.known, jv_str(arena, jv_get_str(m->value, "id")));
	own = jv_get_key(jv_get(state, "agents"), p.agent);
	r = gather(&p, jv_get(own, "ledgers"), entries, err);
	if (r == 0)
		r = change_state(ws, ctx, apply_pending, &p, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "basis", p.basis);
	jv_set(arena, *ret, "facts", (struct jv *)jv_get(list, "facts"));
	jv_set(arena, *ret, "entries", entries);
	jv_set_int(arena, *ret, "budget_bytes", (int64_t)memory_budget(ws));
	if (jv_get_str(own, "at").len)
		jv_set_str(arena, *ret, "consolidated_at", jv_get_str(own, "at"));
	return 0;
}

/* --- replacing MEMORY.md --- */

/* Makes `ret_after` of what is there, and says which facts leave it. */
typedef int (*rewrite_fn)(void *arg, const struct parts *now, struct buf *after, struct buf *dropped, struct err *err);

static int put_aside(struct workspace *ws, struct ctx *ctx, struct str dropped, struct err *err)
{
	struct buf text;
	struct store_cond any = {0};

	buf_init(&text, ctx->arena, 2 * FACT_FILE_MAX);
	buf_printf(&text, "\n## Left MEMORY.md — %.*s\n\n", STR_ARG(memory_now(ctx->arena)));
	buf_add(&text, dropped);
	return store_append(workspace_home(ws), ctx, (struct wpath){STR(MEMORY_ARCHIVE)}, buf_str(&text), any, NULL,
			    err);
}

/* What leaves is in the archive before it is gone from MEMORY.md. */
static int rewrite(struct workspace *ws, struct ctx *ctx, rewrite_fn make, void *arg, struct str *ret_after,
		   struct err *err)
{
	struct str put = STR_NONE;
	int r = -ERR_CONFLICT;

	for (int tries = 0; r == -ERR_CONFLICT && tries < TRIES_MAX; tries++) {
		struct store_cond same = {.kind = STORE_ABSENT};
		struct buf after, dropped;
		struct store_stat stat;
		struct parts parts;
		struct str bytes;

		r = memory_read(ws, ctx, STR(MEMORY_PATH), &bytes, &stat, err);
		if (r)
			return r;
		memory_parse(ctx->arena, bytes, &parts);
		buf_init(&after, ctx->arena, FACT_FILE_MAX);
		buf_init(&dropped, ctx->arena, 2 * FACT_FILE_MAX);
		r = make(arg, &parts, &after, &dropped, err);
		if (r == 0 && after.overflow)
			r = err_set(err, ERR_TOO_LARGE,
				    "MEMORY.md would be larger than %zu bytes; merge more facts into one",
				    (size_t)FACT_FILE_MAX);
		*ret_after = after.len ? buf_str(&after) : STR("");
		if (r || (bytes.ptr && str_eq(bytes, *ret_after)))
			return r;
		if (dropped.len && !str_eq(put, buf_str(&dropped))) {
			r = put_aside(ws, ctx, buf_str(&dropped), err);
			put = buf_str(&dropped);
		}
		if (bytes.ptr)
			same = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
		if (r == 0)
			r = store_write(workspace_home(ws), ctx, (struct wpath){STR(MEMORY_PATH)}, *ret_after, same,
					NULL, err);
		r = r == -ERR_EXISTS ? -ERR_CONFLICT : r;
	}
	return r;
}

/* --- the budget --- */

/* Which of two facts leaves first: what does not hold, then the oldest, then what supersedes others, and last what a
   person wrote. */
enum { RANK_OVER, RANK_USUAL, RANK_SUPERSEDES, RANK_PERSON };
struct leaver {
	size_t index;
	int rank;
	int64_t at_ns;
};

static int rank_of(const struct fact *f, int64_t now)
{
	if (f->trust == TRUST_PERSON)
		return RANK_PERSON;
	if (!memory_holds(f, now))
		return RANK_OVER;
	return jv_count(jv_get(f->mark, "supersedes")) ? RANK_SUPERSEDES : RANK_USUAL;
}

static int leaver_cmp(const void *a, const void *b)
{
	const struct leaver *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank - y->rank;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* With a list of ids: those, and what people wrote. */
static bool stays(const struct jv *keep, const struct fact *f)
{
	return keep && (f->trust == TRUST_PERSON || has_id(keep, f->id));
}

/* Moves parts from `after` to `dropped` until the rest has at most `budget` bytes. Returns how many. `keep`: see
 * stays().
 */
static uint64_t fit(struct arena *arena, struct parts *parts, size_t budget, const struct jv *keep, struct buf *after,
		    struct buf *dropped)
{
	struct leaver *order = ARENA_ARRAY(arena, struct leaver, parts->count + 1);
	bool *gone = ARENA_ARRAY(arena, bool, parts->count + 1);
	size_t count = 0, bytes = 0;
	int64_t now = clock_real_ns();
	uint64_t left = 0;

	for (size_t i = 0; i < parts->count; i++) {
		const struct fact *f = &parts->list[i].fact;
		int64_t at = 0;

		bytes += parts->list[i].raw.len;
		if (!parts->list[i].is_fact)
			continue;
		clock_parse(f->at, &at);
		if (!stays(keep, f))
			order[count++] = (struct leaver){i, rank_of(f, now), at};
	}
	if (count)
		qsort(order, count, sizeof(*order), leaver_cmp);
	for (size_t i = 0; i < count && bytes > budget; i++) {
		const struct part *p = &parts->list[order[i].index];

		if (order[i].rank == RANK_PERSON && !p->fact.mark && i + 1 == count)
			break; /* the last thing that a person wrote */
		gone[order[i].index] = true;
		bytes -= p->raw.len;
		buf_add(dropped, p->raw);
		if (p->raw.len && p->raw.ptr[p->raw.len - 1] != '\n')
			buf_char(dropped, '\n');
		left++;
	}
	for (size_t i = 0; i < parts->count; i++)
		if (!gone[i])
			buf_add(after, parts->list[i].raw);
	return left;
}

struct trimming {
	struct ctx *ctx;
	size_t budget;
	const struct jv *keep; /* NULL: anything may leave */
	uint64_t facts;
};

static int trim(void *arg, const struct parts *now, struct buf *after, struct buf *dropped, struct err *err)
{
	struct trimming *t = arg;
	struct parts parts = *now;

	(void)err;
	t->facts = fit(t->ctx->arena, &parts, t->budget, t->keep, after, dropped);
	if (!t->keep || dropped->len >= t->budget)
		return 0;
	after->len = dropped->len = 0; /* it is not worth writing the file again */
	for (size_t i = 0; i < now->count; i++)
		buf_add(after, now->list[i].raw);
	return 0;
}

int memory_trim(struct workspace *ws, struct ctx *ctx, const struct jv *keep, struct err *err)
{
	struct trimming t = {.ctx = ctx, .budget = memory_budget(ws) / 3, .keep = keep};
	struct str after;

	return rewrite(ws, ctx, trim, &t, &after, err);
}

static int archive_ledger(struct workspace *ws, struct ctx *ctx, struct str path, struct err *err)
{
	struct store *home = workspace_home(ws);
	struct store_cond any = {0}, absent = {.kind = STORE_ABSENT}, same = {.kind = STORE_VERSION};
	struct wpath from = {path}, to = {arena_printf(ctx->arena, "memory/archive/%.*s", STR_ARG(str_from(path, 7)))};
	struct store_stat stat;
	struct str bytes;
	int r = store_move(home, ctx, from, to, any, absent, NULL, err);

	if (r == -ERR_NOT_FOUND)
		return 0; /* another process is at the same work */
	if (r != -ERR_EXISTS)
		return r;
	r = store_read(home, ctx, from, STORE_WHOLE, FACT_FILE_MAX, &bytes, &stat, err);
	if (r == 0)
		r = store_append(home, ctx, to, bytes, any, NULL, err);
	same.version = stat.version;
	return r ? r : store_remove(home, ctx, from, false, same, NULL, err);
}

int memory_archive(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	const struct jv *config = jv_get(workspace_config(ws)->document, "memory");
	int64_t days = jv_get_int(config, "ledger_days", DAYS_DEFAULT), now = clock_real_ns(), day;
	struct trimming t = {.ctx = ctx, .budget = memory_budget(ws)};
	uint64_t ledgers = 0;
	struct str *files, after = STR("");
	size_t count;
	int r = memory_files(ws, ctx, false, &files, &count, err);

	for (size_t i = 1; r == 0 && days > 0 && i < count; i++)
		if (memory_is_ledger(files[i], &day) && now - day > days * NS_PER_DAY) {
			r = archive_ledger(ws, ctx, files[i], err);
			ledgers += r == 0;
		}
	if (r == 0)
		r = rewrite(ws, ctx, trim, &t, &after, err);
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "ledgers", (int64_t)ledgers);
	jv_set_int(ctx->arena, *ret, "facts", (int64_t)t.facts);
	jv_set_int(ctx->arena, *ret, "bytes", (int64_t)after.len);
	return 0;
}

/* --- consolidation --- */

struct merging {
	struct workspace *ws;
	struct ctx *ctx;
	struct str text;
	const struct jv *known; /* ids of MEMORY.md when it began */
	struct parts *ledgers;  /* facts that were shown with it */
	size_t ledger_count;
	/* Out, of the last try. */
	uint64_t facts, merged, kept, dropped;
};

static const struct part *find_part(const struct parts *parts, struct str id, struct str text)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *p = &parts->list[i];

		if (p->is_fact && (id.len ? str_eq(p->fact.id, id) : str_eq(p->fact.text, text)))
			return p;
	}
	return NULL;
}

/* By id, or with an empty id by its words. */
static const struct part *find_source(const struct merging *m, const struct parts *now, struct str id, struct str text)
{
	const struct part *p = find_part(now, id, text);

	for (size_t i = 0; !p && i < m->ledger_count; i++)
		p = find_part(&m->ledgers[i], id, text);
	return p;
}

/* Cuts "[m-1 p-2]" off the end of the text, and adds its ids. */
static void take_cited(struct arena *arena, struct str *text, struct jv *ids)
{
	size_t open = str_rfind_char(*text, '[');
	struct str inside, word;
	struct jv *found = jv_array(arena);
	char *flat;

	if (open == text->len || !str_ends(*text, STR("]")))
		return;
	inside = str_from(*text, open + 1);
	inside = arena_str(arena, str_first(inside, inside.len - 1));
	flat = (char *)inside.ptr;
	for (size_t i = 0; i < inside.len; i++)
		flat[i] = flat[i] == ',' || flat[i] == '\n' ? ' ' : flat[i];
	while (str_cut(&inside, ' ', &word)) {
		if (word.len && !memory_id_is(word))
			return;
		if (word.len)
			jv_push(arena, found, jv_str(arena, word));
	}
	if (!jv_count(found))
		return;
	for (const struct jv_member *m = jv_first(found); m; m = m->next)
		jv_push(arena, ids, m->value);
	*text = str_trim(str_first(*text, open));
}

/* What the sources of a bullet allow it to be. */
struct sourced {
	struct str text;
	struct jv *ids;
	const struct part *same; /* a source with the very words */
	enum memory_trust trust;
	struct str from, until;
	bool holds;
};

static void add_source(struct sourced *s, const struct part *p, int64_t now)
{
	int64_t a, b;

	if (p->fact.trust < s->trust)
		s->trust = p->fact.trust;
	if (str_eq(p->fact.text, s->text) && !s->same)
		s->same = p;
	if (!memory_holds(&p->fact, now))
		return;
	s->holds = true;
	if (clock_parse(p->fact.from, &a) && (!clock_parse(s->from, &b) || a > b))
		s->from = p->fact.from;
	if (clock_parse(p->fact.until, &a) && (!clock_parse(s->until, &b) || a < b))
		s->until = p->fact.until;
}

static int find_sources(const struct merging *m, const struct parts *now, const struct part *bullet,
			struct sourced *ret, struct err *err)
{
	struct arena *arena = m->ctx->arena;
	const struct part *p;

	*ret = (struct sourced){.text = bullet->fact.text, .ids = jv_array(arena), .trust = TRUST_PERSON};
	if (bullet->fact.mark) {
		jv_push(arena, ret->ids, jv_str(arena, bullet->fact.id));
		for (const struct jv_member *s = jv_first(jv_get(bullet->fact.mark, "sources")); s; s = s->next)
			if (find_source(m, now, jv_str_of(s->value), STR_NONE))
				jv_push(arena, ret->ids, jv_str(arena, jv_str_of(s->value)));
	}
	take_cited(arena, &ret->text, ret->ids);
	if (!jv_count(ret->ids)) {
		p = find_source(m, now, STR_NONE, ret->text);
		if (p)
			jv_push(arena, ret->ids, jv_str(arena, p->fact.id));
	}
	if (!jv_count(ret->ids) || !ret->text.len)
		return err_set(
			err, ERR_INVALID,
			"line %zu has no source; end each bullet with the ids it comes from, such as [m-… m-…]: %.*s",
			bullet->line, STR_ARG(utf8_first(ret->text, 80)));
	for (const struct jv_member *id = jv_first(ret->ids); id; id = id->next) {
		p = find_source(m, now, jv_str_of(id->value), STR_NONE);
		if (!p)
			return err_set(err, ERR_INVALID, "line %zu: there is no fact \"%.*s\" among those to be merged",
				       bullet->line, STR_ARG(utf8_first(jv_str_of(id->value), 80)));
		add_source(ret, p, clock_real_ns());
	}
	if (!ret->holds)
		return err_set(err, ERR_INVALID, "line %zu comes only from facts that no longer apply; leave it out",
			       bullet->line);
	return 0;
}

/* One bullet of the new text as it is written. */
static int write_merged(struct merging *m, const struct parts *now, const struct part *bullet, struct buf *out,
			struct jv *used, struct err *err)
{
	struct arena *arena = m->ctx->arena;
	struct sourced s;
	struct jv *mark;
	int r = find_sources(m, now, bullet, &s, err);

	if (r)
		return r;
	for (const struct jv_member *id = jv_first(s.ids); id; id = id->next)
		jv_push(arena, used, id->value);
	m->facts++;
	if (s.same && jv_count(s.ids) == 1) { /* taken as it is */
		memory_write_fact(out, s.same->fact.text, s.same->fact.mark);
		return 0;
	}
	m->merged++;
	if (!s.same && s.trust > TRUST_AGENT)
		s.trust = TRUST_AGENT;
	mark = memory_mark(m->ws, m->ctx, memory_new_id(arena), s.trust);
	jv_set_str(arena, mark, "source", STR("consolidation"));
	jv_set(arena, mark, "sources", s.ids);
	if (s.from.len)
		jv_set_str(arena, mark, "from", s.from);
	if (s.until.len)
		jv_set_str(arena, mark, "until", s.until);
	memory_write_fact(out, memory_normal(arena, s.text), mark);
	return 0;
}

/* Text other than facts: headings, and what was there before. */
static int write_between(const struct parts *now, const struct part *p, struct buf *out, struct err *err)
{
	struct str line = str_trim(p->raw);
	bool ok = line.len == 0 || (line.ptr[0] == '#' && line.len <= HEADING_MAX);

	for (size_t i = 0; i < now->count && !ok; i++)
		ok = !now->list[i].is_fact && str_eq(str_trim(now->list[i].raw), line);
	if (!ok)
		return err_set(
			err, ERR_INVALID,
			"line %zu is not a bullet and was not there before; write facts as bullets with their sources: "
			"%.*s",
			p->line, STR_ARG(utf8_first(line, 80)));
	buf_add(out, p->raw);
	if (p->raw.len && p->raw.ptr[p->raw.len - 1] != '\n')
		buf_char(out, '\n');
	return 0;
}

/* Facts that the new text does not have: they stay, or leave. */
static void keep_or_drop(struct merging *m, const struct parts *now, const struct jv *used, struct buf *after,
			 struct buf *dropped)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct part *p = &now->list[i];
		bool stays;

		if (!p->is_fact || has_id(used, p->fact.id))
			continue;
		stays = !has_id(m->known, p->fact.id) || (p->fact.trust == TRUST_PERSON && !p->fact.superseded);
		m->kept += stays;
		m->dropped += !stays;
		buf_add(stays ? after : dropped, p->raw);
		if (p->raw.ptr[p->raw.len - 1] != '\n')
			buf_char(stays ? after : dropped, '\n');
	}
}

static int merge(void *arg, const struct parts *now, struct buf *after, struct buf *dropped, struct err *err)
{
	struct merging *m = arg;
	struct arena *arena = m->ctx->arena;
	struct jv *used = jv_array(arena);
	struct parts new_parts;
	struct buf whole;
	int r = 0;

	m->facts = m->merged = m->kept = m->dropped = 0;
	buf_init(&whole, arena, FACT_FILE_MAX);
	memory_parse(arena, m->text, &new_parts);
	for (size_t i = 0; r == 0 && i < new_parts.count; i++)
		r = new_parts.list[i].is_fact ? write_merged(m, now, &new_parts.list[i], &whole, used, err)
					      : write_between(now, &new_parts.list[i], &whole, err);
	if (r)
		return r;
	keep_or_drop(m, now, used, &whole, dropped);
	if (whole.overflow)
		return err_set(err, ERR_TOO_LARGE,
			       "MEMORY.md would be larger than %zu bytes; merge more facts into one",
			       (size_t)FACT_FILE_MAX);
	memory_parse(arena, buf_str(&whole), &new_parts);
	m->dropped += fit(arena, &new_parts, memory_budget(m->ws), NULL, after, dropped);
	return 0;
}

static void apply_merged(void *arg, struct arena *arena, struct jv *state)
{
	struct pending *p = arg;
	struct jv *own = member(arena, member(arena, state, STR("agents")), p->agent);

	const struct jv *pending = jv_get(own, "pending");
	bool same = str_eq(jv_get_str(pending, "basis"), p->basis);

	/* prefer the offsets in the file: a fact that was forgotten since then has moved them */
	jv_set_str(arena, own, "at", memory_now(arena));
	jv_set(arena, own, "ledgers", same ? jv_copy(arena, jv_get(pending, "ledgers")) : p->ledgers);
	if (same)
		jv_remove(own, "pending");
}

/* The ledger facts that were shown with the basis; all of them while it is being found, which is never less. */
static int load_ledgers(struct merging *m, const struct jv *ledgers, struct err *err)
{
	int r = 0;

	m->ledgers = ARENA_ARRAY(m->ctx->arena, struct parts, jv_count(ledgers) + 1);
	for (const struct jv_member *l = jv_first(ledgers); r == 0 && l; l = l->next) {
		uint64_t end;

		r = ledger_facts(m->ws, m->ctx, l->key, 0, &m->ledgers[m->ledger_count++], &end, err);
	}
	return r;
}

int memory_consolidate(struct workspace *ws, struct ctx *ctx, struct str text, struct str basis, struct jv **ret,
		       struct err *err)
{
	struct arena *arena = ctx->arena;
	struct pending p = {.ws = ws, .ctx = ctx, .agent = memory_agent(ws, ctx), .basis = basis};
	struct merging m = {.ws = ws, .ctx = ctx, .text = text};
	const struct jv *pending;
	struct str after;
	struct jv *state;
	int r = read_state(ws, ctx, &state, err);

	if (r)
		return r;
	pending = jv_get(jv_get_key(jv_get(state, "agents"), p.agent), "pending");
	if (!basis.len || !str_eq(jv_get_str(pending, "basis"), basis))
		return err_set(err, ERR_CONFLICT,
			       "this basis is out of date; call without text for what is pending now, and merge that");
	if (!utf8_valid(text) || text.len > FACT_FILE_MAX)
		return err_set(err, ERR_INVALID, "the new MEMORY.md is not UTF-8 text of at most %zu bytes",
			       (size_t)FACT_FILE_MAX);
	m.known = jv_get(pending, "known");
	p.ledgers = jv_copy(arena, jv_get(pending, "ledgers"));
	r = load_ledgers(&m, p.ledgers, err);
	if (r == 0)
		r = rewrite(ws, ctx, merge, &m, &after, err);
	if (r == 0)
		r = change_state(ws, ctx, apply_merged, &p, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set_int(arena, *ret, "total", (int64_t)m.facts);
	jv_set_int(arena, *ret, "merged", (int64_t)m.merged);
	jv_set_int(arena, *ret, "kept", (int64_t)m.kept);
	jv_set_int(arena, *ret, "dropped", (int64_t)m.dropped);
	jv_set_int(arena, *ret, "bytes", (int64_t)after.len);
	jv_set_str(arena, *ret, "consolidated_at", memory_now(arena));
	return 0;
}

/* --- figures --- */

int memory_stats(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena), *list, *by = jv_object(arena), *state;
	struct str *files;
	int64_t counts[TRUST_PERSON + 1] = {0}, current = 0, ledgers = 0, bytes = 0, archived = 0, day;
	struct store_stat stat = {0};
	size_t count;
	int r = memory_list(ws, ctx, true, 0, &list, err);

	if (r == 0)
		r = memory_files(ws, ctx, true, &files, &count, err);
	if (r == 0)
		r = read_state(ws, ctx, &state, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (store_stat(workspace_home(ws), ctx, (struct wpath){files[i]}, &stat, err))
			continue;
		if (i == 0)
			jv_set_int(arena, v, "bytes", (int64_t)stat.size);
		else if (str_starts(files[i], STR("memory/archive/")))
			archived++;
		else if (memory_is_ledger(files[i], &day)) {
			ledgers++;
			bytes += (int64_t)stat.size;
		}
	}
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(list, "facts")); m; m = m->next) {
		counts[memory_trust_of(jv_get_str(m->value, "trust"))]++;
		current += jv_get_bool(m->value, "current", false);
	}
	for (int t = TRUST_PERSON; t >= TRUST_OUTSIDE; t--)
		jv_set_int(arena, by, memory_trust_name((enum memory_trust)t), counts[t]);
	jv_set_int(arena, v, "budget_bytes", (int64_t)memory_budget(ws));
	jv_set_int(arena, v, "facts", (int64_t)jv_count(jv_get(list, "facts")));
	jv_set_int(arena, v, "current", current);
	jv_set(arena, v, "by_trust", by);
	jv_set_int(arena, v, "ledgers", ledgers);
	jv_set_int(arena, v, "ledger_bytes", bytes);
	jv_set_int(arena, v, "archived", archived);
	state = (struct jv *)jv_get_key(jv_get(state, "agents"), memory_agent(ws, ctx));
	if (jv_get_str(state, "at").len)
		jv_set_str(arena, v, "consolidated_at", jv_get_str(state, "at"));
	*ret = v;
	return 0;
}
