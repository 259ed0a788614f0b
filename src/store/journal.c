/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal over a store that has only files: S3, and whatever else has no operations of its own for it.
 *
 *   <journal>/<number, 20 digits>                  one entry
 *   <journal>/gathered/<first>-<last>              many of them, for those who come late
 *   <journal>/gathered/cut-<number>                entries before that number are not kept
 *
 * Adding is one request: the object of the next number, made under the condition "absent". Two writers that both think
 * they are next cannot both make it. Reading on is one request for each entry, and one that finds nothing at the end.
 * A reader that is far behind, or does not know the end, lists first and reads the gathered objects.
 *
 * Gathered objects hold aligned runs of 64, 1,024 or 16,384 entries. Whoever has the bytes of a whole run in memory
 * anyway writes it, under the condition "absent": all who do so write the same bytes, and a killed writer
 * leaves a whole object or none. An object that was gathered goes with the next cut.
 *
 * The one danger is a number that is free again because its object went: a process that slept since it was the last
 * would create it again. So an object stays for an hour after it ceased to be the newest (by the store's own clock),
 * and a process that has not confirmed the end for ten minutes lists before it trusts a number, and after it made one.
 * Empty objects in place of those that went were rejected: they cost a request for each entry, and stay for ever.
 */
#include "store/journal.h"

#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"

#define STALE_NS     (600 * NS_PER_S)
#define GATHER_BYTES (16 * MIB) /* a gathered object has no more */
#define DIGITS       20
#define SURVEY_TRIES 8
#define POLL_MIN_NS  INT64_C(20000000)
#define POLL_MAX_NS  NS_PER_S

static const uint64_t runs[] = {16384, 1024, 64}; /* largest first */

/* --- names --- */

static struct wpath entry_path(struct arena *arena, struct wpath journal, uint64_t number)
{
	return (struct wpath){arena_printf(arena, "%.*s/%020llu", STR_ARG(journal.s), (unsigned long long)number)};
}

static struct wpath run_path(struct arena *arena, struct wpath journal, uint64_t first, uint64_t last)
{
	return (struct wpath){arena_printf(arena, "%.*s/gathered/%020llu-%020llu", STR_ARG(journal.s),
					   (unsigned long long)first, (unsigned long long)last)};
}

static struct wpath cut_path(struct arena *arena, struct wpath journal, uint64_t number)
{
	return (struct wpath){
		arena_printf(arena, "%.*s/gathered/cut-%020llu", STR_ARG(journal.s), (unsigned long long)number)};
}

static struct wpath gathered_path(struct arena *arena, struct wpath journal)
{
	return (struct wpath){arena_printf(arena, "%.*s/gathered", STR_ARG(journal.s))};
}

static bool number_parse(struct str s, uint64_t *ret)
{
	uint64_t n = 0;

	if (s.len != DIGITS)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		uint64_t digit = (uint64_t)(s.ptr[i] - '0');

		if (s.ptr[i] < '0' || s.ptr[i] > '9' || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return n > 0;
}

static bool is_fresh(int64_t known_ns)
{
	int64_t age = clock_real_ns() - known_ns;

	return known_ns && age >= 0 && age < STALE_NS;
}

/* --- what there is --- */

struct run {
	uint64_t first, last;
	struct wpath path;
};

struct survey {
	struct run *runs;
	size_t run_count, run_cap;
	uint64_t cut;                     /* entries before it are not kept; 1: nothing was cut */
	uint64_t loose_first, loose_last; /* 0: there is none */
	uint64_t first, last;
	int64_t newest_ns; /* of all objects that were seen */
	int64_t known_ns;  /* before it was looked */
};

static void survey_name(struct survey *sv, struct ctx *ctx, const struct store_entry *e)
{
	struct str name = wpath_name(e->path);
	struct run run = {.path = e->path};

	if (str_starts(name, STR("cut-")) && number_parse(str_from(name, 4), &run.first)) {
		sv->cut = run.first > sv->cut ? run.first : sv->cut;
		return;
	}
	if (name.len != 2 * DIGITS + 1 || name.ptr[DIGITS] != '-' ||
	    !number_parse(str_first(name, DIGITS), &run.first) ||
	    !number_parse(str_from(name, DIGITS + 1), &run.last) || run.last < run.first)
		return;
	if (sv->run_count == sv->run_cap) {
		size_t cap = sv->run_cap ? sv->run_cap * 2 : 32;

		sv->runs = arena_grow(ctx->arena, sv->runs, sv->run_cap * sizeof(run), cap * sizeof(run));
		sv->run_cap = cap;
	}
	sv->runs[sv->run_count++] = run;
}

/* The run that has `number` and reaches furthest, or NULL. */
static const struct run *run_with(const struct survey *sv, uint64_t number)
{
	const struct run *best = NULL;

	for (size_t i = 0; i < sv->run_count; i++)
		if (sv->runs[i].first <= number && number <= sv->runs[i].last &&
		    (!best || sv->runs[i].last > best->last))
			best = &sv->runs[i];
	return best;
}

static uint64_t last_gathered(const struct survey *sv)
{
	uint64_t last = 0;

	for (size_t i = 0; i < sv->run_count; i++)
		last = sv->runs[i].last > last ? sv->runs[i].last : last;
	return last;
}

static int survey_gathered(struct store *s, struct ctx *ctx, struct wpath journal, struct survey *sv, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .never_file = true};
	struct store_page page;

	do {
		int r = store_list(s, ctx, gathered_path(ctx->arena, journal), &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			survey_name(sv, ctx, &page.entries[i]);
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

static void survey_loose(struct survey *sv, const struct store_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		uint64_t number;

		if (!number_parse(wpath_name(page->entries[i].path), &number))
			continue;
		if (!sv->loose_first)
			sv->loose_first = number;
		sv->loose_last = number;
		if (page->entries[i].stat.mtime_ns > sv->newest_ns)
			sv->newest_ns = page->entries[i].stat.mtime_ns;
	}
}

/* Looks at the names of all gathered objects, and at the first and the last entry that is not gathered. */
static int survey(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t after, struct survey *sv,
		  struct err *err)
{
	struct store_list_req req = {.limit = 1000, .never_file = true};
	struct store_page page;
	uint64_t from;
	int r;

	*sv = (struct survey){.cut = 1, .known_ns = clock_real_ns()};
	r = survey_gathered(s, ctx, journal, sv, err);
	if (r)
		return r;
	from = last_gathered(sv) > after ? last_gathered(sv) : after;
	do {
		r = store_list(s, ctx, journal, &req, &page, err);
		if (r && r != -ERR_NOT_FOUND)
			return r;
		if (r)
			break;
		survey_loose(sv, &page);
		req.after = page.next;
		/* entries that were gathered but not yet removed need not be listed */
		if (page.next.ptr && sv->loose_last < from)
			req.after = entry_path(ctx->arena, journal, from).s;
		req.limit = STORE_PAGE_MAX;
	} while (page.next.ptr);
	sv->last = last_gathered(sv) > sv->loose_last ? last_gathered(sv) : sv->loose_last;
	sv->first = sv->loose_first ? sv->loose_first : sv->last + 1;
	for (size_t i = 0; i < sv->run_count; i++)
		sv->first = sv->runs[i].first < sv->first ? sv->runs[i].first : sv->first;
	if (sv->first < sv->cut)
		sv->first = sv->cut < sv->last ? sv->cut : sv->last;
	return 0;
}

/* --- reading --- */

struct reading {
	struct store *s;
	struct ctx *ctx;
	struct wpath journal;
	uint64_t after; /* the next wanted entry comes after it */
	size_t max_bytes, bytes;
	struct journal_page *page;
	size_t cap;
	bool full;
};

static void take(struct reading *rd, struct str bytes)
{
	struct journal_page *p = rd->page;

	if (p->count && bytes.len > rd->max_bytes - (rd->bytes < rd->max_bytes ? rd->bytes : rd->max_bytes)) {
		rd->full = true;
		return;
	}
	ARENA_ROOM(rd->ctx->arena, p->entries, p->count, rd->cap);
	p->entries[p->count++] = (struct journal_entry){++rd->after, bytes};
	rd->bytes += bytes.len;
}

/* Takes the next entry from its own object; ERR_NOT_FOUND: it has none (or no longer). */
static int take_loose(struct reading *rd, struct err *err)
{
	struct str bytes;
	int r = store_read_file(rd->s, rd->ctx, entry_path(rd->ctx->arena, rd->journal, rd->after + 1),
				JOURNAL_ENTRY_MAX, &bytes, NULL, err);

	if (r == 0)
		take(rd, bytes);
	return r;
}

/* Cuts off the next "<number> <length>\n" and its bytes. False: it is not whole. */
static bool run_next(struct str *rest, uint64_t *ret_number, struct str *ret_bytes)
{
	struct str head, number;
	int64_t n, len;

	if (!str_cut(rest, '\n', &head) || !str_cut(&head, ' ', &number) || !str_to_i64(number, &n) ||
	    !str_to_i64(head, &len) || n <= 0 || len < 0 || (uint64_t)len > rest->len)
		return false;
	*ret_number = (uint64_t)n;
	*ret_bytes = str_first(*rest, (size_t)len);
	*rest = str_from(*rest, (size_t)len);
	return true;
}

static int take_run(struct reading *rd, const struct run *run, struct err *err)
{
	struct str rest, bytes;
	uint64_t number, at = run->first;
	int r = store_read(rd->s, rd->ctx, run->path, STORE_WHOLE, JOURNAL_ENTRY_MAX, &rest, NULL, err);

	if (r)
		return r;
	for (; at <= run->last && !rd->full; at++) {
		if (!run_next(&rest, &number, &bytes) || number != at)
			return err_set(err, ERR_CORRUPT, ERR_PATH " does not hold the entries that its name says",
				       STR_ARG(run->path.s));
		if (number == rd->after + 1)
			take(rd, bytes);
	}
	return 0;
}

/* One object after the other until one is not there. */
static int follow(struct reading *rd, struct err *err)
{
	int r = 0;

	while (r == 0 && !rd->full)
		r = take_loose(rd, err);
	rd->page->last = rd->after + rd->full;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Writes the aligned runs that `entries` has whole and `sv` has not. Failing does no harm. */
static void gather(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_entry *entries,
		   size_t count, const struct survey *sv)
{
	size_t i = 0;

	while (i < count) {
		size_t step = 1;

		for (size_t k = 0; k < COUNT(runs) && step == 1; k++) {
			struct store_cond absent = {.kind = STORE_ABSENT};
			uint64_t first = entries[i].number, last = first + runs[k] - 1;
			const struct run *have = sv ? run_with(sv, first) : NULL;
			struct err ignored;
			struct buf out;

			if (first % runs[k] != 1 || count - i < runs[k] || (have && have->last >= last))
				continue;
			buf_init(&out, ctx->arena, GATHER_BYTES);
			for (size_t j = i; j < i + runs[k] && !out.overflow; j++) {
				buf_printf(&out, "%llu %zu\n", (unsigned long long)entries[j].number,
					   entries[j].bytes.len);
				buf_add(&out, entries[j].bytes);
			}
			if (out.overflow)
				continue;
			store_write(s, ctx, run_path(ctx->arena, journal, first, last), buf_str(&out), absent, NULL,
				    &ignored);
			step = runs[k];
		}
		i += step;
	}
}

/* From a list. What goes away between the list and the reading was gathered or cut: then the list is made again. */
static int read_listed(struct reading *rd, struct survey *sv, struct err *err)
{
	int r = -ERR_NOT_FOUND;

	for (int tries = 0; r == -ERR_NOT_FOUND && tries < SURVEY_TRIES && rd->page->count == 0; tries++) {
		r = survey(rd->s, rd->ctx, rd->journal, rd->after, sv, err);
		if (r)
			return r;
		rd->page->first = sv->first;
		rd->page->last = sv->last;
		if (rd->after + 1 < sv->first)
			return err_set(err, ERR_NOT_FOUND,
				       "entries after %llu are no longer kept; the oldest entry is %llu",
				       (unsigned long long)rd->after, (unsigned long long)sv->first);
		while (r == 0 && !rd->full && rd->after < sv->last) {
			const struct run *run = run_with(sv, rd->after + 1);

			r = run ? take_run(rd, run, err) : take_loose(rd, err);
		}
	}
	if (r == -ERR_NOT_FOUND && rd->page->count)
		r = 0; /* the next reading continues there */
	if (r == 0)
		gather(rd->s, rd->ctx, rd->journal, rd->page->entries, rd->page->count, sv);
	return r;
}

/* False: the call ends before. */
static bool pause_ns(struct ctx *ctx, int64_t ns)
{
	int64_t end = clock_monotonic_ns() + ns, left;
	struct err ignored;

	while ((left = end - clock_monotonic_ns()) > 0) {
		struct timespec t = {.tv_nsec = left < 10000000 ? left : 10000000};

		if (ctx_check(ctx, &ignored))
			return false;
		nanosleep(&t, NULL);
	}
	return true;
}

/* Asks again and again, less often as time goes by. */
static int poll_next(struct reading *rd, int64_t wait_ns, struct err *err)
{
	int64_t end = clock_monotonic_ns() + wait_ns, delay = POLL_MIN_NS;
	int r = 0;

	while (r == 0 && rd->page->count == 0) {
		int64_t left = end - clock_monotonic_ns();

		if (left <= 0)
			break;
		if (!pause_ns(rd->ctx, left < delay ? left : delay))
			return ctx_check(rd->ctx, err);
		delay = delay * 3 / 2 < POLL_MAX_NS ? delay * 3 / 2 : POLL_MAX_NS;
		r = follow(rd, err);
	}
	return r;
}

int store_journal_read_generic(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			       struct journal_page *ret_page, struct err *err)
{
	struct reading rd = {.s = s,
			     .ctx = ctx,
			     .journal = journal,
			     .after = req->after,
			     .max_bytes = req->max_bytes,
			     .page = ret_page};
	struct survey sv;
	int r;

	*ret_page = (struct journal_page){0};
	r = is_fresh(req->known_ns) ? follow(&rd, err) : read_listed(&rd, &sv, err);
	if (r == 0 && ret_page->count == 0 && ret_page->last <= req->after && req->wait_ns > 0)
		r = poll_next(&rd, req->wait_ns, err);
	return r;
}

/* --- adding --- */

bool store_journal_has(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t after, struct str bytes)
{
	struct journal_read req = {.after = after, .max_bytes = 1};
	struct journal_page page;
	struct err ignored;

	return store_journal_read(s, ctx, journal, &req, &page, &ignored) == 0 && page.count &&
	       page.entries[0].number == after + 1 && str_eq(page.entries[0].bytes, bytes);
}

static int overtaken(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_add *add, bool listed,
		     struct journal_added *ret, struct err *err)
{
	struct journal_read req = {.after = add->after, .max_bytes = 8 * MIB, .known_ns = listed ? 0 : clock_real_ns()};
	struct err ignored;

	ret->overtaken = true;
	if (store_journal_read_generic(s, ctx, journal, &req, &ret->news, &ignored))
		ret->news = (struct journal_page){0};
	return err_set(err, ERR_CONFLICT, "entry %llu already exists; read on and add after the last one",
		       (unsigned long long)(add->after + 1));
}

/* The object could not be made, or nobody knows. If nobody knows and it is there with these bytes, it was made after
   all. When the store says that another one was there before, that is certain, even if the other one has the same
   bytes: two processes may log the same change at the same time. */
static int look_after(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_add *add, int r,
		      struct journal_added *ret, struct err *err)
{
	struct err own = *err;
	struct str bytes;
	int got;

	if (r == -ERR_EXISTS)
		return overtaken(s, ctx, journal, add, false, ret, err);
	got = store_read(s, ctx, entry_path(ctx->arena, journal, add->after + 1), STORE_WHOLE, JOURNAL_ENTRY_MAX,
			 &bytes, NULL, err);
	if (got == 0 && str_eq(bytes, add->bytes))
		return 0;
	if (got == 0)
		return overtaken(s, ctx, journal, add, false, ret, err);
	*err = own;
	return r;
}

/* True when a number that was just used had been used before: its object had gone. */
static bool was_used(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t number)
{
	struct survey sv;
	struct err ignored;

	return survey(s, ctx, journal, number, &sv, &ignored) == 0 && (run_with(&sv, number) || number < sv.cut);
}

static void gather_recent(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_add *add)
{
	uint64_t number = add->after + 1;
	struct journal_entry *all;

	if (number % 64 || add->recent_count < 63)
		return;
	all = ARENA_ARRAY(ctx->arena, struct journal_entry, 64);
	memcpy(all, add->recent + add->recent_count - 63, 63 * sizeof(*all));
	all[63] = (struct journal_entry){number, add->bytes};
	for (size_t i = 0; i < 64; i++)
		if (all[i].number != number - 63 + i)
			return;
	gather(s, ctx, journal, all, 64, NULL);
}

int store_journal_add_generic(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_add *add,
			      struct journal_added *ret_added, struct err *err)
{
	struct wpath path = entry_path(ctx->arena, journal, add->after + 1);
	struct store_cond absent = {.kind = STORE_ABSENT};
	int64_t known_ns = add->known_ns;
	struct store_stat stat;
	int r = 0;

	if (add->change != JOURNAL_ALONE)
		return err_set(err, ERR_UNSUPPORTED, "the %s store cannot change a file and its journal in one step",
			       s->ops->name);
	if (!is_fresh(known_ns)) {
		struct survey sv;

		r = survey(s, ctx, journal, add->after, &sv, err);
		if (r)
			return r;
		if (sv.last != add->after)
			return overtaken(s, ctx, journal, add, true, ret_added, err);
		known_ns = sv.known_ns;
	}
	r = store_write(s, ctx, path, add->bytes, absent, &stat, err);
	if (r)
		return look_after(s, ctx, journal, add, r, ret_added, err);
	if (!is_fresh(known_ns) && was_used(s, ctx, journal, add->after + 1)) {
		struct store_cond ours = {.kind = STORE_VERSION, .version = stat.version};
		struct err ignored;

		store_remove(s, ctx, path, false, ours, NULL, &ignored);
		return overtaken(s, ctx, journal, add, true, ret_added, err);
	}
	gather_recent(s, ctx, journal, add);
	return 0;
}

/* --- cutting --- */

struct cutting {
	struct store *s;
	struct ctx *ctx;
	struct wpath journal;
	uint64_t before;
	int64_t old_ns; /* only what is older goes */
	const struct survey *sv;
};

static void drop(struct cutting *c, const struct store_entry *e)
{
	struct store_cond same = {.kind = STORE_VERSION, .version = e->stat.version};
	struct err ignored;

	store_remove(c->s, c->ctx, e->path, false, same, NULL, &ignored);
}

/* A gathered object goes when all in it was cut, or when a larger one has it. */
static bool run_is_spent(const struct cutting *c, const struct run *run)
{
	const struct run *larger = run_with(c->sv, run->first);

	return run->last < c->before || (larger && larger->last > run->last);
}

static void drop_gathered(struct cutting *c, const struct store_entry *e)
{
	struct survey one = {0};
	uint64_t number;
	struct str name = wpath_name(e->path);

	survey_name(&one, c->ctx, e);
	if (one.run_count
		    ? run_is_spent(c, &one.runs[0])
		    : str_starts(name, STR("cut-")) && number_parse(str_from(name, 4), &number) && number < c->before)
		drop(c, e);
}

static void drop_loose(struct cutting *c, const struct store_entry *e)
{
	uint64_t number;

	if (number_parse(wpath_name(e->path), &number) && (number < c->before || run_with(c->sv, number)) &&
	    number < c->sv->last && e->stat.mtime_ns < c->old_ns)
		drop(c, e);
}

/* Every object of a directory of the journal, lowest first: what goes leaves no gap. */
static int for_each(struct cutting *c, struct wpath dir, void (*visit)(struct cutting *c, const struct store_entry *e),
		    struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page;
	int r;

	do {
		r = ctx_check(c->ctx, err);
		if (r == 0)
			r = store_list(c->s, c->ctx, dir, &req, &page, err);
		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			if (page.entries[i].stat.kind == STORE_FILE)
				visit(c, &page.entries[i]);
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

int store_journal_cut_generic(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, int64_t grace_ns,
			      struct err *err)
{
	struct cutting c = {.s = s, .ctx = ctx, .journal = journal};
	struct survey sv;
	int r = survey(s, ctx, journal, 0, &sv, err);

	if (r || sv.last == 0)
		return r;
	c.before = before < sv.last ? before : sv.last;
	c.old_ns = sv.newest_ns - grace_ns;
	c.sv = &sv;
	if (c.before > sv.cut)
		r = store_write(s, ctx, cut_path(ctx->arena, journal, c.before), STR(""), (struct store_cond){0}, NULL,
				err);
	else
		c.before = sv.cut;
	if (r == 0)
		r = for_each(&c, gathered_path(ctx->arena, journal), drop_gathered, err);
	if (r == 0)
		r = for_each(&c, journal, drop_loose, err);
	return r;
}
