/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal .stead/reservations of the store, and what this runner knows of it. An entry is added under the condition
 * that the runner has read all earlier ones, so what it takes was free. Entries are of use until the runs that they
 * name have begun; they are cut after KEEP_S.
 *
 * The alternative, one conditional write for each due time, costs a sync of the disk or a round trip each: ten thousand
 * of them take minutes.
 */
#include "runner/reservations.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/strmap.h"
#include "store/journal.h"
#include "text/jv.h"

#define JOURNAL   ((struct wpath){STR(".stead/reservations")})
#define KEEP_S    (6 * 3600)
#define CUT_EVERY 600
#define TRIES     100
#define ENTRY_MAX (16 * MIB) /* that is believed: ten thousand due times have 1 MB */
#define PAGE_MAX  (32 * MIB)

/* An entry of the journal, for cutting it. */
struct mark {
	uint64_t number;
	int64_t at;
};

struct reservations {
	struct store *base;
	struct arena *arena; /* keys of the map */
	struct str by;
	pthread_mutex_t lock;
	struct strmap *map; /* workspace, NUL, schedule: index into list */
	struct reserved *list;
	size_t count, room;
	uint64_t last; /* entry that was read */
	struct mark *marks;
	size_t mark_count, mark_room;
	int64_t cut_at;
	uint64_t adds;
};

struct reservations *reservations_new(struct store *base, struct str by)
{
	struct reservations *all = xcalloc(1, sizeof *all);

	all->base = base;
	all->arena = arena_new();
	all->by = arena_str(all->arena, by);
	all->map = strmap_new(all->arena);
	pthread_mutex_init(&all->lock, NULL);
	return all;
}

void reservations_destroy(struct reservations *all)
{
	if (!all)
		return;
	pthread_mutex_destroy(&all->lock);
	arena_destroy(all->arena);
	free(all->list);
	free(all->marks);
	free(all);
}

static struct str key_of(struct arena *arena, struct str workspace, struct str schedule)
{
	return arena_printf(arena, "%.*s%c%.*s", STR_ARG(workspace), '\0', STR_ARG(schedule));
}

/* --- what is known, under the lock --- */

static void learn(struct reservations *all, struct str workspace, struct str schedule, const struct reserved *what)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str key = key_of(arena, workspace, schedule);
	size_t *place = strmap_find(all->map, key);

	if (!place) {
		HEAP_ROOM(all->list, all->count, all->room);
		place = strmap_put(all->map, arena_str(all->arena, key), NULL);
		*place = all->count++;
		all->list[*place] = *what;
	} else if (all->list[*place].due < what->due) {
		all->list[*place] = *what;
	}
}

static void mark(struct reservations *all, uint64_t number, int64_t at)
{
	HEAP_ROOM(all->marks, all->mark_count, all->mark_room);
	all->marks[all->mark_count++] = (struct mark){number, at};
	all->last = number;
}

/* An entry is {by, at, due: [[workspace, schedule, due], …]}. What is not in that form was not written by a runner, and
   takes nothing. */
static void take_in(struct reservations *all, struct arena *arena, const struct journal_entry *entry)
{
	struct reserved what = {0};
	struct jv *v = NULL;
	struct err ignored;

	if (entry->bytes.len <= ENTRY_MAX && jv_parse(arena, entry->bytes, &v, &ignored) == 0) {
		what.at = jv_get_int(v, "at", 0);
		what.is_own = str_eq(jv_get_str(v, "by"), all->by);
		for (const struct jv_member *m = jv_first(jv_get(v, "due")); m; m = m->next) {
			const struct jv *due = jv_at(m->value, 2);

			what.due = due && due->type == JV_INT ? due->u.i : 0;
			learn(all, jv_str_of(jv_at(m->value, 0)), jv_str_of(jv_at(m->value, 1)), &what);
		}
	}
	mark(all, entry->number, what.at);
}

static int read_on(struct reservations *all, struct ctx *ctx, struct err *err)
{
	struct journal_page page = {0};
	int r;

	do {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx own = *ctx;
		struct journal_read req = {.after = all->last, .max_bytes = PAGE_MAX};

		own.arena = arena;
		r = store_journal_read(all->base, &own, JOURNAL, &req, &page, err);
		if (r == -ERR_NOT_FOUND && page.first > all->last + 1) { /* what it did not read is cut */
			all->last = page.first - 1;
			page.last = UINT64_MAX;
			r = 0;
			continue;
		}
		for (size_t i = 0; r == 0 && i < page.count; i++)
			take_in(all, arena, &page.entries[i]);
	} while (r == 0 && all->last < page.last && (page.count || page.last == UINT64_MAX));
	return r;
}

int reservations_refresh(struct reservations *all, struct ctx *ctx, struct err *err)
{
	int r;

	pthread_mutex_lock(&all->lock);
	r = read_on(all, ctx, err);
	pthread_mutex_unlock(&all->lock);
	return r;
}

/* --- taking --- */

static bool find(struct reservations *all, struct str workspace, struct str schedule, struct reserved *ret)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const size_t *place = strmap_find(all->map, key_of(arena, workspace, schedule));

	if (place)
		*ret = all->list[*place];
	return place != NULL;
}

bool reservations_find(struct reservations *all, struct str workspace, struct str schedule, struct reserved *ret)
{
	bool found;

	pthread_mutex_lock(&all->lock);
	found = find(all, workspace, schedule, ret);
	pthread_mutex_unlock(&all->lock);
	return found;
}

/* The entry for what is free of the list; ptr NULL: nothing is. */
static struct str entry_of(struct reservations *all, struct arena *arena, struct reservation *list, size_t count,
			   int64_t now)
{
	struct jv *v = jv_object(arena), *due = jv_array(arena);
	struct buf text;

	for (size_t i = 0; i < count; i++) {
		struct reserved known;
		struct jv *one;

		list[i].is_elsewhere = false;
		if (find(all, list[i].workspace, list[i].schedule, &known) && known.due >= list[i].due) {
			list[i].is_elsewhere = !known.is_own;
			continue;
		}
		one = jv_array(arena);
		jv_push(arena, one, jv_str(arena, list[i].workspace));
		jv_push(arena, one, jv_str(arena, list[i].schedule));
		jv_push(arena, one, jv_int(arena, list[i].due));
		jv_push(arena, due, one);
	}
	if (!jv_count(due))
		return STR_NONE;
	jv_set_str(arena, v, "by", all->by);
	jv_set_int(arena, v, "number", (int64_t)++all->adds);
	jv_set_int(arena, v, "at", now);
	jv_set(arena, v, "due", due);
	buf_init(&text, arena, JOURNAL_ENTRY_MAX);
	jv_write(&text, v);
	return buf_str(&text);
}

/* Entries that are of no use any longer. A failure is made up for by the next cut. */
static void cut(struct reservations *all, struct ctx *ctx, int64_t now)
{
	struct err ignored;
	size_t old = 0;

	if (now - all->cut_at < CUT_EVERY)
		return;
	all->cut_at = now;
	while (old + 1 < all->mark_count && all->marks[old].at < now - KEEP_S)
		old++;
	if (!old || store_journal_cut(all->base, ctx, JOURNAL, all->marks[old].number, &ignored) != 0)
		return;
	all->mark_count -= old;
	memmove(all->marks, all->marks + old, all->mark_count * sizeof *all->marks);
}

static int take(struct reservations *all, struct ctx *ctx, struct reservation *list, size_t count, int64_t now,
		struct err *err)
{
	int r = read_on(all, ctx, err);

	for (int i = 0; r == 0 && i < TRIES; i++) {
		struct journal_add add = {.after = all->last, .bytes = entry_of(all, ctx->arena, list, count, now)};
		struct journal_added added = {0};

		if (!add.bytes.ptr)
			return 0;
		r = store_journal_add(all->base, ctx, JOURNAL, WPATH_ROOT, (struct store_cond){0}, &add, &added, err);
		if (r == 0) {
			take_in(all, ctx->arena, &(struct journal_entry){all->last + 1, add.bytes});
			cut(all, ctx, now);
			return 0;
		}
		if (r == -ERR_CONFLICT)
			r = read_on(all, ctx, err);
	}
	return r ? r
		 : err_set(err, ERR_CONFLICT, "other runners were faster %d times; the next look tries again", TRIES);
}

int reservations_take(struct reservations *all, struct ctx *ctx, struct reservation *list, size_t count, int64_t now,
		      struct err *err)
{
	int r;

	pthread_mutex_lock(&all->lock);
	r = take(all, ctx, list, count, now, err);
	pthread_mutex_unlock(&all->lock);
	return r;
}
