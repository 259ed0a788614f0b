/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the log: the records of its end in memory, and the index for all before them.
 *
 * Records in memory are found by their number and by their path. Both tables cover the numbers from `low` on. When they
 * have grown, the settled ones (done or aborted) are moved to a new run of the index and forgotten (table_spill). A
 * record of the index that somebody asks for is read from its line, and stays until the next trim.
 *
 * Records of one path form a chain from the newest to the oldest. In memory each one has the number of the one before;
 * where the chain continues in the index is looked up when it is needed. In the index each record also has a jump to
 * one far before it, chosen so that the number of steps to any earlier record is logarithmic (as in a skip list,
 * without chance: the lengths of the jumps are those of a skew-binary number).
 */
#include "base/hash.h"
#include "base/strmap.h"
#include "revisions/log_internal.h"

#define REOPEN_TRIES  20
#define LARGE_LOCAL   2048
#define LARGE_JOURNAL 16384
#define CLOSE_LOCAL   128
#define CLOSE_JOURNAL 512

/* --- paths --- */

static void slots_grow(struct revlog *log)
{
	size_t cap = log->slot_cap * 2;
	struct path_slot **slots = xcalloc(cap, sizeof(struct path_slot *));

	for (size_t i = 0; i < log->slot_cap; i++) {
		struct path_slot *next;

		for (struct path_slot *s = log->slots[i]; s; s = next) {
			next = s->next;
			s->next = slots[s->hash & (cap - 1)];
			slots[s->hash & (cap - 1)] = s;
		}
	}
	free(log->slots);
	log->slots = slots;
	log->slot_cap = cap;
}

static struct path_slot *slot_find(struct revlog *log, struct str path, bool add)
{
	uint64_t hash = hash_u64(path, 0);
	struct path_slot *slot;

	for (slot = log->slots[hash & (log->slot_cap - 1)]; slot; slot = slot->next)
		if (slot->hash == hash && str_eq(slot->path, path))
			return slot;
	if (!add)
		return NULL;
	if (log->slot_count >= log->slot_cap)
		slots_grow(log);
	slot = ARENA_NEW(log->memory, struct path_slot);
	slot->hash = hash;
	slot->path = arena_str(log->memory, path);
	slot->next = log->slots[hash & (log->slot_cap - 1)];
	log->slots[hash & (log->slot_cap - 1)] = slot;
	log->slot_count++;
	return slot;
}

/* --- records in memory --- */

static void records_room(struct revlog *log, size_t index)
{
	while (index >= log->record_cap) {
		log->record_cap = log->record_cap ? log->record_cap * 2 : 256;
		log->records = xrealloc(log->records, log->record_cap * sizeof(struct rev_record *));
	}
	for (size_t i = log->record_count; i <= index; i++)
		log->records[i] = NULL;
	if (index >= log->record_count)
		log->record_count = index + 1;
}

void table_add(struct revlog *log, struct rev_record *rec)
{
	struct path_slot *slot = slot_find(log, rec->r.path.s, true);
	size_t index = (size_t)(rec->r.number - log->low);

	rec->r.path.s = slot->path;
	records_room(log, index);
	log->records[index] = rec;
	rec->prev = slot->last;
	slot->last = rec->r.number;
}

void table_note_damaged(struct revlog *log, uint64_t number)
{
	struct damage *d = &log->damage;

	HEAP_ROOM(d->numbers, d->count, d->cap);
	d->numbers[d->count++] = number;
}

void table_lose(struct revlog *log, uint64_t until)
{
	for (uint64_t n = revlog_head(log) + 1; n <= until; n++) {
		struct rev_record *rec = ARENA_NEW(log->memory, struct rev_record);

		rec->r.number = n;
		rec->damaged = rec->done = true;
		records_room(log, (size_t)(n - log->low));
		log->records[n - log->low] = rec;
		table_note_damaged(log, n);
	}
}

static void add_lost(struct revlog *log, uint64_t first, uint64_t last)
{
	struct damage *d = &log->damage;

	if (!d->lost_first || first < d->lost_first)
		d->lost_first = first;
	if (last > d->lost_last)
		d->lost_last = last;
}

void table_skip(struct revlog *log, uint64_t number)
{
	records_room(log, (size_t)(number - log->low));
	add_lost(log, number, number);
}

struct rev_record *table_at(struct revlog *log, uint64_t number)
{
	if (number < log->low || number - log->low >= log->record_count)
		return NULL;
	return log->records[number - log->low];
}

void table_unlink(struct revlog *log, struct rev_record *rec)
{
	struct path_slot *slot = slot_find(log, rec->r.path.s, false);
	struct rev_record *later = slot ? table_at(log, slot->last) : NULL;

	if (later == rec) {
		slot->last = rec->prev;
	} else {
		while (later && later->prev != rec->r.number)
			later = table_at(log, later->prev);
		if (later)
			later->prev = rec->prev;
	}
	rec->prev = 0;
	rec->r.aborted = true;
	rec->done = true;
}

void table_lose_open(struct revlog *log)
{
	for (size_t i = 0; i < log->record_count; i++) {
		struct rev_record *rec = log->records[i];

		if (rec && !rec->done && rec->r.number < log->damage.lost_last) {
			table_unlink(log, rec);
			add_lost(log, rec->r.number, rec->r.number);
		}
	}
}

void table_forget(struct revlog *log, uint64_t horizon)
{
	size_t n;

	log->recount = true;
	if (horizon <= log->first)
		return;
	log->first = horizon;
	if (horizon <= log->low)
		return;
	n = horizon - log->low < log->record_count ? (size_t)(horizon - log->low) : log->record_count;
	for (size_t i = 0; i < log->slot_cap; i++)
		for (struct path_slot *s = log->slots[i]; s; s = s->next)
			if (s->last < horizon)
				s->last = 0;
	log->record_count -= n;
	if (log->record_count)
		memmove(log->records, log->records + n, log->record_count * sizeof(struct rev_record *));
	log->low = horizon;
	for (size_t i = 0; i < log->record_count; i++)
		if (log->records[i] && log->records[i]->prev < horizon)
			log->records[i]->prev = 0;
}

struct str table_keep(struct revlog *log, struct str s)
{
	return s.len ? arena_str(log->memory, s) : STR_NONE;
}

static struct str keep_word(struct revlog *log, struct str s, struct str last)
{
	return str_eq(s, last) ? last : table_keep(log, s);
}

void table_keep_record(struct revlog *log, struct rev_record *rec)
{
	struct actor *a = &rec->r.actor;

	rec->r.other = table_keep(log, rec->r.other);
	rec->r.before.version = table_keep(log, rec->r.before.version);
	rec->r.after.version = table_keep(log, rec->r.after.version);
	*a = (struct actor){.workspace = keep_word(log, a->workspace, log->last_actor.workspace),
			    .user = keep_word(log, a->user, log->last_actor.user),
			    .agent = keep_word(log, a->agent, log->last_actor.agent),
			    .session = keep_word(log, a->session, log->last_actor.session),
			    .call_id = keep_word(log, a->call_id, log->last_actor.call_id)};
	log->last_actor = *a;
}

/* --- checkpoints --- */

void checkpoint_put(struct revlog *log, const struct rev_checkpoint *c)
{
	size_t *found = strmap_find(log->mark_names, c->name);
	struct mark *m;

	if (found) {
		m = &log->marks[*found];
		if (c->time_ns <= m->c.time_ns)
			return; /* retention wrote it again while it moved */
	} else {
		struct str name = arena_str(log->names, c->name);

		*strmap_put(log->mark_names, name, NULL) = log->mark_count;
		HEAP_ROOM(log->marks, log->mark_count, log->mark_cap);
		m = &log->marks[log->mark_count++];
		m->c.name = name;
	}
	m->c.number = c->number;
	m->c.time_ns = c->time_ns;
	m->saved = false;
}

/* Those of the index are read when somebody asks. */
static int load_marks(struct revlog *log, struct ctx *ctx, struct err *err)
{
	for (size_t i = 0; i < log->run_count && !log->marks_loaded; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx c = *ctx;
		struct rev_checkpoint *list;
		size_t count, before;
		int r;

		c.arena = arena;
		r = run_checkpoints(log->runs[i], &c, &list, &count, err);
		if (r)
			return r;
		for (size_t k = 0; k < count; k++) {
			before = log->mark_count;
			checkpoint_put(log, &list[k]);
			if (log->mark_count > before)
				log->marks[before].saved = true;
		}
	}
	log->marks_loaded = true;
	return 0;
}

int checkpoint_find(struct revlog *log, struct ctx *ctx, struct str name, struct rev_checkpoint *ret, bool *ret_has,
		    struct err *err)
{
	int r = load_marks(log, ctx, err);
	size_t *found = r ? NULL : strmap_find(log->mark_names, name);

	*ret_has = found;
	if (found)
		*ret = log->marks[*found].c;
	return r;
}

static int mark_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct rev_checkpoint *)a)->name, ((const struct rev_checkpoint *)b)->name);
}

int revlog_checkpoints(struct revlog *log, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count,
		       struct err *err)
{
	struct rev_checkpoint *copy;
	int r = load_marks(log, ctx, err);

	if (r)
		return r;
	copy = ARENA_ARRAY(ctx->arena, struct rev_checkpoint, log->mark_count);
	for (size_t i = 0; i < log->mark_count; i++) {
		copy[i] = log->marks[i].c;
		copy[i].name = arena_str(ctx->arena, copy[i].name);
	}
	if (log->mark_count)
		qsort(copy, log->mark_count, sizeof(*copy), mark_cmp);
	*ret = copy;
	*ret_count = log->mark_count;
	return 0;
}

/* --- the index --- */

void table_init(struct revlog *log)
{
	log->memory = arena_new();
	log->names = arena_new();
	log->mark_names = strmap_new(log->names);
	log->slot_cap = 1024;
	log->slots = xcalloc(log->slot_cap, sizeof(struct path_slot *));
	log->loaded_cap = 64;
	log->loaded = xcalloc(log->loaded_cap, sizeof(struct loaded *));
	log->low = log->first = 1;
}

static void close_runs(struct revlog *log)
{
	for (size_t i = 0; i < log->run_count; i++)
		run_close(log->runs[i]);
	log->run_count = 0;
}

void table_free(struct revlog *log)
{
	close_runs(log);
	arena_destroy(log->memory);
	arena_destroy(log->names);
	free(log->slots);
	free(log->loaded);
	free(log->records);
	free(log->marks);
	free(log->damage.numbers);
	buf_release(&log->window.bytes);
}

/* Another process has merged or cut runs: opens those that there are now. It may do so again between the list and the
   opening, so this is tried several times. False: they do not have what is needed. */
static bool reopen_runs(struct revlog *log, struct ctx *ctx)
{
	struct err ignored;

	for (int tries = 0; tries < REOPEN_TRIES; tries++) {
		close_runs(log);
		if (runs_open(log->run_store, ctx, NULL, log->runs, &log->run_count, &ignored) == 0 && log->run_count &&
		    run_head(log->runs[log->run_count - 1])->last + 1 >= log->low) {
			if (run_head(log->runs[0])->first > log->first)
				log->first = run_head(log->runs[0])->first;
			return true;
		}
	}
	log->index_is_broken = true;
	return false;
}

static int broken_index(struct revlog *log, struct err *err)
{
	log->index_is_broken = true;
	return err_set(err, ERR_CORRUPT, "the index of the revision log is damaged and will be rebuilt; try again");
}

/* The index entry of a number that the index covers. */
static int entry_at(struct revlog *log, struct ctx *ctx, uint64_t number, struct run_entry *ret, struct err *err)
{
	for (int tries = 0; tries <= REOPEN_TRIES; tries++) {
		size_t i = log->run_count;
		int r;

		while (i && number < run_head(log->runs[i - 1])->first)
			i--;
		r = i && number <= run_head(log->runs[i - 1])->last ? run_entry(log->runs[i - 1], ctx, number, ret, err)
								    : -ERR_CORRUPT;
		if (r != -ERR_CORRUPT || log->runs_in_use)
			return r == -ERR_CORRUPT ? err_set(err, ERR_CORRUPT, "the index was changed") : r;
		if (tries == REOPEN_TRIES || !reopen_runs(log, ctx))
			break;
	}
	return broken_index(log, err);
}

static struct loaded **loaded_slot(struct revlog *log, uint64_t number)
{
	return &log->loaded[number * UINT64_C(0x9e3779b97f4a7c15) % log->loaded_cap];
}

static void loaded_add(struct revlog *log, struct loaded *l)
{
	if (log->loaded_count >= log->loaded_cap) {
		struct loaded **old = log->loaded;
		size_t cap = log->loaded_cap;

		log->loaded_cap = cap * 2;
		log->loaded = xcalloc(log->loaded_cap, sizeof(struct loaded *));
		for (size_t i = 0; i < cap; i++)
			for (struct loaded *next, *x = old[i]; x; x = next) {
				struct loaded **to = loaded_slot(log, x->rec.r.number);

				next = x->next;
				x->next = *to;
				*to = x;
			}
		free(old);
	}
	l->next = *loaded_slot(log, l->rec.r.number);
	*loaded_slot(log, l->rec.r.number) = l;
	log->loaded_count++;
}

/* The line of a record of the index; *ret_has: there is one. */
static int load_line(struct revlog *log, struct ctx *ctx, uint64_t number, struct run_entry *ret_entry,
		     struct str *ret_line, bool *ret_has, struct err *err)
{
	int r = entry_at(log, ctx, number, ret_entry, err);

	*ret_has = false;
	if (r || (ret_entry->flags & RUN_NEVER))
		return r;
	r = log_line(log, ctx, number, &ret_entry->place, ret_line, err);
	*ret_has = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r; /* another process has dropped it */
}

/* The record of a line of the index. Strings are in `arena`. */
static int parse_loaded(struct revlog *log, struct arena *arena, const struct run_entry *e, uint64_t number,
			struct str text, struct rev_record *ret, struct err *err)
{
	struct rev_line line;

	if (!rev_line_parse(arena, text, &line) || line.kind != REV_LINE_RECORD)
		return log_damaged(log, number, err);
	*ret = line.record;
	ret->done = ret->in_runs = true;
	ret->r.aborted = (e->flags & RUN_ABORTED) != 0;
	ret->prev = e->prev >= log->first ? e->prev : 0;
	ret->place = e->place;
	return 0;
}

/* A record of the index, from its line. Strings are in `arena`. */
static int load(struct revlog *log, struct ctx *ctx, uint64_t number, struct arena *arena, struct rev_record *ret,
		bool *ret_has, struct err *err)
{
	struct run_entry e;
	struct ctx c = *ctx;
	struct str text;
	int r;

	c.arena = arena;
	r = load_line(log, &c, number, &e, &text, ret_has, err);
	return r || !*ret_has ? r : parse_loaded(log, arena, &e, number, text, ret, err);
}

int revlog_at(struct revlog *log, struct ctx *ctx, uint64_t number, struct rev_record **ret, struct err *err)
{
	struct loaded *l;
	struct rev_record got;
	bool has;
	int r;

	*ret = NULL;
	if (number < log->first || number > revlog_head(log))
		return 0;
	if (number >= log->low) {
		*ret = table_at(log, number);
		return *ret && (*ret)->damaged ? log_damaged(log, number, err) : 0;
	}
	for (l = *loaded_slot(log, number); l; l = l->next)
		if (l->rec.r.number == number) {
			*ret = &l->rec;
			return 0;
		}
	r = load(log, ctx, number, log->memory, &got, &has, err);
	if (r || !has)
		return r;
	l = ARENA_NEW(log->memory, struct loaded);
	l->rec = got;
	loaded_add(log, l);
	*ret = &l->rec;
	return 0;
}

int revlog_get(struct revlog *log, struct ctx *ctx, uint64_t number, struct rev_record *ret, bool *ret_has,
	       struct err *err)
{
	struct rev_record *rec;
	int r;

	*ret_has = false;
	if (number < log->first || number > revlog_head(log))
		return 0;
	if (number < log->low)
		return load(log, ctx, number, ctx->arena, ret, ret_has, err);
	r = revlog_at(log, ctx, number, &rec, err);
	if (r == 0 && rec) {
		*ret = *rec;
		*ret_has = true;
	}
	return r;
}

int revlog_get_with(struct revlog *log, struct ctx *ctx, uint64_t number, struct str text, struct rev_record *ret,
		    bool *ret_has, struct err *err)
{
	struct run_entry e;
	struct str line;
	int r;

	if (!text.len || number < log->first || number >= log->low)
		return revlog_get(log, ctx, number, ret, ret_has, err);
	r = load_line(log, ctx, number, &e, &line, ret_has, err);
	*ret_has = *ret_has && str_find(line, text, 0) < line.len;
	return r || !*ret_has ? r : parse_loaded(log, ctx->arena, &e, number, line, ret, err);
}

struct newest {
	uint64_t *numbers;
	size_t count, cap;
	uint64_t first, low; /* of the log */
};

static void add_newest(void *arg, const struct run_path *path)
{
	struct newest *n = arg;

	if (path->last < n->first || path->last >= n->low)
		return; /* no longer kept, or in memory */
	HEAP_ROOM(n->numbers, n->count, n->cap);
	n->numbers[n->count++] = path->last;
}

static int higher_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

int revlog_newest(struct revlog *log, struct ctx *ctx, uint64_t **ret, size_t *ret_count, struct err *err)
{
	struct newest n = {.first = log->first, .low = log->low};
	int r = 0;

	for (int tries = 0; tries <= REOPEN_TRIES; tries++) {
		n.count = 0;
		r = 0;
		for (size_t i = 0; r == 0 && i < log->run_count; i++)
			r = run_each_path(log->runs[i], ctx, add_newest, &n, err);
		if (r != -ERR_CORRUPT || tries == REOPEN_TRIES || !reopen_runs(log, ctx))
			break;
	}
	if (r) {
		free(n.numbers);
		return r == -ERR_CORRUPT ? broken_index(log, err) : r;
	}
	for (uint64_t number = log->low > log->first ? log->low : log->first; number <= revlog_head(log); number++) {
		HEAP_ROOM(n.numbers, n.count, n.cap);
		n.numbers[n.count++] = number;
	}
	if (n.count)
		qsort(n.numbers, n.count, sizeof(*n.numbers), higher_first);
	*ret = n.numbers;
	*ret_count = n.count;
	return 0;
}

struct searching {
	struct revlog *log;
	struct ctx *ctx;
	struct path_slot *slot;
};

/* A path of the index has the hash of the one that is looked for. */
static int path_found(void *arg, const struct run_path *p, struct err *err)
{
	struct searching *s = arg;
	uint64_t number = p->last;
	struct rev_record *rec;
	struct run_entry e;
	int r;

	/* a run of another process may continue where this one's memory begins */
	while (number >= s->log->low) {
		r = entry_at(s->log, s->ctx, number, &e, err);
		if (r)
			return r;
		number = e.prev;
	}
	if (number < s->log->first || number == 0)
		return 0;
	r = revlog_at(s->log, s->ctx, number, &rec, err);
	if (r || !rec || !str_eq(rec->r.path.s, s->slot->path))
		return r;
	s->slot->older = number;
	if (number == p->last && rec->r.after.exists && !rec->r.after.version.len)
		rec->r.after.version = arena_str(s->log->memory, str_n(p->version, p->version_len));
	return 1;
}

/* Asks the index for the newest record of a path there. */
static int slot_resolve(struct revlog *log, struct ctx *ctx, struct path_slot *slot, struct err *err)
{
	struct searching s = {log, ctx, slot};
	int r = 0;

	for (int tries = 0; tries <= REOPEN_TRIES; tries++) {
		size_t i = log->run_count;

		log->runs_in_use = true;
		for (r = 0; i-- > 0 && r == 0;)
			r = run_lookup(log->runs[i], ctx, slot->hash, path_found, &s, err);
		log->runs_in_use = false;
		if (r != -ERR_CORRUPT || tries == REOPEN_TRIES || !reopen_runs(log, ctx))
			break;
	}
	if (r < 0)
		return r;
	slot->older_known = true;
	if (slot->older < log->first)
		slot->older = 0;
	return 0;
}

struct rev_record *revlog_last_known(struct revlog *log, struct wpath path)
{
	struct path_slot *slot = slot_find(log, path.s, false);

	return slot && slot->last ? table_at(log, slot->last) : NULL;
}

int revlog_last(struct revlog *log, struct ctx *ctx, struct wpath path, struct rev_record **ret, struct err *err)
{
	struct path_slot *slot = slot_find(log, path.s, log->run_count > 0);
	int r = 0;

	*ret = NULL;
	if (!slot)
		return 0;
	if (slot->last) {
		*ret = table_at(log, slot->last);
		return 0;
	}
	if (!slot->older_known)
		r = slot_resolve(log, ctx, slot, err);
	return r || !slot->older ? r : revlog_at(log, ctx, slot->older, ret, err);
}

int revlog_prev(struct revlog *log, struct ctx *ctx, struct rev_record *rec, struct rev_record **ret, struct err *err)
{
	uint64_t prev = rec->prev;
	int r = 0;

	*ret = NULL;
	if (!prev && !rec->in_runs && log->run_count && !rec->r.aborted) {
		struct path_slot *slot = slot_find(log, rec->r.path.s, true);

		if (!slot->older_known)
			r = slot_resolve(log, ctx, slot, err);
		prev = slot->older;
	}
	return r || !prev ? r : revlog_at(log, ctx, prev, ret, err);
}

/* From `number` on back along its path: the oldest entry after `after` in *ret_entry, its number in *number. */
static int walk_back(struct revlog *log, struct ctx *ctx, uint64_t after, uint64_t *number, struct run_entry *ret_entry,
		     struct err *err)
{
	int r = entry_at(log, ctx, *number, ret_entry, err);

	while (r == 0) {
		uint64_t to = ret_entry->jump < *number && ret_entry->jump > after && ret_entry->jump >= log->first
				      ? ret_entry->jump
				      : ret_entry->prev;

		if (to <= after || to < log->first || to == 0)
			break;
		*number = to;
		r = entry_at(log, ctx, to, ret_entry, err);
	}
	return r;
}

/* The lowest number in (low, high] whose line is damaged; 0: there is none. */
static uint64_t unread_between(const struct revlog *log, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < log->damage.count; i++)
		if (log->damage.numbers[i] > low && log->damage.numbers[i] <= high)
			return log->damage.numbers[i];
	return 0;
}

bool revlog_unread_between(const struct revlog *log, uint64_t low, uint64_t high)
{
	return unread_between(log, low, high) != 0;
}

/* The same with numbers whose damaged lines were set aside. */
static uint64_t damaged_between(const struct revlog *log, uint64_t low, uint64_t high)
{
	const struct damage *d = &log->damage;
	uint64_t unread = unread_between(log, low, high), lost = 0;

	if (d->lost_last > low && d->lost_first && d->lost_first <= high)
		lost = d->lost_first > low ? d->lost_first : low + 1;
	return unread && (!lost || unread < lost) ? unread : lost;
}

bool revlog_lost_between(const struct revlog *log, uint64_t low, uint64_t high)
{
	return damaged_between(log, low, high) != 0;
}

bool revlog_is_next(const struct revlog *log, const struct rev_record *at, const struct rev_record *after)
{
	return !damaged_between(log, at->r.number, after->r.number) || after->r.before.held_by == at->r.number ||
	       (at->r.after.version.len && str_eq(at->r.after.version, after->r.before.version)) ||
	       (rev_hash_is_set(&at->r.after.hash) && rev_hash_cmp(&at->r.after.hash, &after->r.before.hash) == 0);
}

int revlog_check_next(struct revlog *log, const struct rev_record *at, const struct rev_record *after, struct err *err)
{
	return revlog_is_next(log, at, after)
		       ? 0
		       : log_damaged(log, damaged_between(log, at->r.number, after->r.number), err);
}

/* A damaged record may have been one of this path. Whether it was shows in the next one: what that was made on. Returns
   the lowest number that is in question; 0: none is. */
static uint64_t lost_of_path(const struct revlog *log, uint64_t number, const struct rev_record *at,
			     const struct rev_record *after)
{
	if (at && after && revlog_is_next(log, at, after))
		return 0;
	return damaged_between(log, at ? at->r.number : 0, after ? after->r.number : at ? number : UINT64_MAX);
}

/* Whether one of the two records tells what was between them, at `number`, though another one of the path may be lost:
   the one before, if nothing was lost until then, or the one after, if nothing was lost since. Then *ret_at is NULL.
   Contents that continue in later records are left out, and what was found after another program's change, whose state
   before is a guess. */
static bool is_told_by_one(const struct revlog *log, uint64_t number, struct rev_record **at,
			   const struct rev_record *after)
{
	if (!after)
		return false;
	if (*at && !damaged_between(log, (*at)->r.number, number))
		return (*at)->r.after.where != REV_PREFIX;
	if (damaged_between(log, number, after->r.number) || after->r.op == REV_OUTSIDE ||
	    after->r.before.where == REV_PREFIX)
		return false;
	*at = NULL;
	return true;
}

static int find(struct revlog *log, struct ctx *ctx, struct wpath path, uint64_t number, struct rev_record **ret_at,
		struct rev_record **ret_after, struct err *err)
{
	struct rev_record *rec;
	struct run_entry e;
	uint64_t n;
	int r = revlog_last(log, ctx, path, &rec, err);

	*ret_at = *ret_after = NULL;
	while (r == 0 && rec && rec->r.number > number && !rec->in_runs) {
		*ret_after = rec;
		r = revlog_prev(log, ctx, rec, &rec, err);
	}
	if (r || !rec)
		return r;
	if (rec->r.number <= number) {
		*ret_at = rec;
		return 0;
	}
	n = rec->r.number;
	r = walk_back(log, ctx, number, &n, &e, err);
	if (r == 0)
		r = revlog_at(log, ctx, n, ret_after, err);
	if (r == 0 && e.prev)
		r = revlog_at(log, ctx, e.prev, ret_at, err);
	return r;
}

int revlog_find(struct revlog *log, struct ctx *ctx, struct wpath path, uint64_t number, struct rev_record **ret_at,
		struct rev_record **ret_after, struct err *err)
{
	int r = find(log, ctx, path, number, ret_at, ret_after, err);
	uint64_t lost = r ? 0 : lost_of_path(log, number, *ret_at, *ret_after);

	return lost ? log_damaged(log, lost, err) : r;
}

int revlog_find_state(struct revlog *log, struct ctx *ctx, struct wpath path, uint64_t number,
		      struct rev_record **ret_at, struct rev_record **ret_after, uint64_t *ret_lost, struct err *err)
{
	int r = find(log, ctx, path, number, ret_at, ret_after, err);

	*ret_lost = r ? 0 : lost_of_path(log, number, *ret_at, *ret_after);
	if (*ret_lost && is_told_by_one(log, number, ret_at, *ret_after))
		*ret_lost = 0;
	return *ret_lost ? log_damaged(log, *ret_lost, err) : r;
}

int revlog_end_of_appends(struct revlog *log, struct ctx *ctx, struct rev_record *record, struct rev_record **ret,
			  struct err *err)
{
	struct rev_record *rec, *end;
	struct run_entry mine, e;
	uint64_t n;
	int r = revlog_last(log, ctx, record->r.path, &rec, err);

	for (end = rec; r == 0 && rec && rec->r.number > record->r.number && !rec->in_runs;) {
		if (rec->r.after.where != REV_PREFIX)
			end = rec;
		r = revlog_prev(log, ctx, rec, &rec, err);
	}
	*ret = end ? end : record;
	if (r || !rec || !rec->in_runs || !record->in_runs || rec->r.number <= record->r.number)
		return r;
	n = rec->r.number;
	r = entry_at(log, ctx, record->r.number, &mine, err);
	if (r == 0)
		r = entry_at(log, ctx, n, &e, err);
	/* the bases grow along the path: finds the oldest record whose base is not that of `record` */
	while (r == 0 && e.base != mine.base) {
		struct run_entry jump, prev;

		*ret = NULL;
		if (e.jump < n && e.jump > record->r.number) {
			r = entry_at(log, ctx, e.jump, &jump, err);
			if (r == 0 && jump.base != mine.base) {
				n = e.jump;
				e = jump;
				continue;
			}
		}
		if (r == 0 && e.prev > record->r.number)
			r = entry_at(log, ctx, e.prev, &prev, err);
		if (r || e.prev <= record->r.number || prev.base == mine.base)
			break;
		n = e.prev;
		e = prev;
	}
	return r || *ret ? r : revlog_at(log, ctx, n, ret, err);
}

struct rev_record **revlog_open_records(struct revlog *log, struct ctx *ctx, size_t *ret_count)
{
	struct rev_record **list = ARENA_ARRAY(ctx->arena, struct rev_record *, log->record_count);
	size_t count = 0;

	for (size_t i = 0; i < log->record_count; i++) {
		struct rev_record *rec = log->records[i];
		struct path_slot *slot;

		if (!rec || rec->done || rec->damaged)
			continue;
		slot = slot_find(log, rec->r.path.s, false);
		if (slot && slot->last == rec->r.number)
			list[count++] = rec;
		else
			rec->done = true; /* a later change of the same path was built on it */
	}
	*ret_count = count;
	return list;
}

/* --- from memory to the index --- */

/* An entry of a run that is being built, or of an older one. */
static int built_entry(struct revlog *log, struct ctx *ctx, const struct run_build *b, uint64_t number,
		       struct run_entry *ret, struct err *err)
{
	if (number < b->head.first)
		return entry_at(log, ctx, number, ret, err);
	*ret = b->entries[number - b->head.first];
	return 0;
}

/* The links of a record whose predecessor is `prev`. */
static int link_entry(struct revlog *log, struct ctx *ctx, const struct run_build *b, uint64_t number, uint64_t prev,
		      bool is_append, struct run_entry *e, struct err *err)
{
	struct run_entry p, j, k;
	int r;

	e->base = e->jump = number;
	e->prev = prev;
	if (!prev)
		return 0;
	r = built_entry(log, ctx, b, prev, &p, err);
	if (r == 0)
		r = built_entry(log, ctx, b, p.jump < log->first ? prev : p.jump, &j, err);
	if (r == 0)
		r = built_entry(log, ctx, b, j.jump < log->first ? prev : j.jump, &k, err);
	if (r)
		return r;
	e->depth = p.depth + 1;
	e->base = is_append ? p.base : number;
	e->jump = p.depth - j.depth == j.depth - k.depth ? j.jump : prev;
	return 0;
}

/* How many records from the first one in memory on can be moved: all that nobody has to touch again. */
static size_t settled(struct revlog *log)
{
	size_t n = 0, last = 0;

	for (; n < log->record_count; n++) {
		struct rev_record *rec = log->records[n];

		if (rec && (!rec->done || rec->damaged || rec->r.after.version.len > RUN_VERSION_MAX))
			break; /* what is damaged stays in memory until it is repaired */
		if (rec)
			last = n + 1; /* the run ends with a record that has a place */
	}
	return last;
}

static int fill_build(struct revlog *log, struct ctx *ctx, struct run_build *b, size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct rev_record *rec = log->records[i], *prev = NULL;
		struct run_entry *e = &b->entries[i];
		struct path_slot *slot;

		if (!rec || rec->r.aborted) {
			e->flags = !rec ? RUN_NEVER : RUN_ABORTED;
			if (rec)
				e->place = rec->place;
			continue;
		}
		r = revlog_prev(log, ctx, rec, &prev, err);
		if (r)
			break;
		e->place = rec->place;
		r = link_entry(log, ctx, b, rec->r.number, prev ? prev->r.number : 0, rec->r.after.where == REV_PREFIX,
			       e, err);
		slot = slot_find(log, rec->r.path.s, false);
		/* its last one among those that move: later ones stay in memory or come after it here */
		while (slot && slot->last >= log->low + count) {
			struct rev_record *later = table_at(log, slot->last);

			if (!later || later->prev == 0)
				break;
			slot->last = later->prev;
		}
		if (slot && slot->last == rec->r.number) {
			struct run_path *p = &b->paths[b->path_count++];

			p->hash = slot->hash;
			p->last = rec->r.number;
			p->version_len = (uint8_t)rec->r.after.version.len;
			if (p->version_len)
				memcpy(p->version, rec->r.after.version.ptr, p->version_len);
		}
	}
	return r;
}

/* Clears the memory, except for the records from index `count` on. */
static void keep_rest(struct revlog *log, size_t count)
{
	struct arena *old = log->memory;
	size_t rest = log->record_count - count;

	log->memory = arena_new();
	memset(log->slots, 0, log->slot_cap * sizeof(struct path_slot *));
	log->slot_count = 0;
	memset(log->loaded, 0, log->loaded_cap * sizeof(struct loaded *));
	log->loaded_count = 0;
	log->last_actor = (struct actor){0};
	log->low += count;
	log->record_count = 0;
	for (size_t i = 0; i < rest; i++) {
		struct rev_record *from = log->records[count + i], *rec;

		records_room(log, i);
		if (!from)
			continue;
		rec = ARENA_NEW(log->memory, struct rev_record);
		*rec = *from;
		log->records[i] = rec;
		if (rec->damaged)
			continue;
		table_keep_record(log, rec);
		rec->r.path.s = arena_str(log->memory, rec->r.path.s);
		if (!rec->r.aborted)
			table_add(log, rec);
	}
	arena_destroy(old);
}

/* Gathers the checkpoints that are not in the index yet. */
static struct rev_checkpoint *fresh_marks(struct revlog *log, struct ctx *ctx, size_t *ret_count)
{
	struct rev_checkpoint *list = ARENA_ARRAY(ctx->arena, struct rev_checkpoint, log->mark_count);
	size_t count = 0;

	for (size_t i = 0; i < log->mark_count; i++)
		if (!log->marks[i].saved)
			list[count++] = log->marks[i].c;
	*ret_count = count;
	return list;
}

/* Whether the revision `older` is one of the path of `newer`. */
static int is_before(void *arg, struct ctx *ctx, uint64_t newer, uint64_t older, bool *ret, struct err *err)
{
	struct revlog *log = arg;

	while (newer > older) {
		struct run_entry e;
		int r = entry_at(log, ctx, newer, &e, err);

		if (r)
			return r;
		newer = e.jump < newer && e.jump >= older ? e.jump : e.prev;
	}
	*ret = newer == older;
	return 0;
}

/* Merges the runs at the end that have become many. Failing only means that there are more of them. */
static void merge_runs(struct revlog *log, struct ctx *ctx)
{
	size_t from = runs_to_merge(log->runs, log->run_count);
	struct run_merge merge = {
		.runs = log->runs + from, .count = log->run_count - from, .is_before = is_before, .arg = log};
	struct err ignored;
	int r;

	if (from >= log->run_count)
		return;
	log->runs_in_use = true;
	r = run_merge(log->run_store, ctx, &merge, &ignored);
	log->runs_in_use = false;
	if (r == 0)
		reopen_runs(log, ctx); /* which removes those that are a part of it */
}

void table_spill(struct revlog *log, struct ctx *ctx, size_t least)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	size_t count = log->run_store && !log->damage.at_end ? settled(log) : 0;
	struct ctx c = *ctx;
	struct run_build b = {0};
	struct err ignored;
	int r;

	if (count < least || count == 0 || log->run_count == RUN_MAX)
		return;
	c.arena = arena;
	b.head = (struct run_head){.first = log->low,
				   .last = log->low + count - 1,
				   .end = log->records[count - 1]->place,
				   .horizon = log->first,
				   .bytes = log->journal.bytes,
				   .lost_first = log->damage.lost_first,
				   .lost_last = log->damage.lost_last};
	b.entries = xcalloc(count, sizeof(*b.entries));
	b.paths = xcalloc(count, sizeof(*b.paths));
	b.checkpoints = fresh_marks(log, &c, &b.checkpoint_count);
	r = fill_build(log, &c, &b, count, &ignored);
	if (r == 0)
		r = run_write(log->run_store, &c, &b, &ignored);
	free(b.entries);
	free(b.paths);
	if (r == 0 && reopen_runs(log, &c) && run_head(log->runs[log->run_count - 1])->last >= b.head.last) {
		for (size_t i = 0; i < log->mark_count; i++)
			log->marks[i].saved = true;
		keep_rest(log, count);
		merge_runs(log, &c);
	} else {
		keep_rest(log, 0);
	}
}

static bool may_shrink(const struct revlog *log)
{
	for (size_t i = 0; i < log->run_count; i++)
		if (run_may_shrink(log->runs[i]))
			return true;
	return false;
}

static bool is_large(const struct revlog *log)
{
	return log->index_is_broken || log->record_count > (log->journal.at ? LARGE_JOURNAL : LARGE_LOCAL) ||
	       log->loaded_count > LARGE_LOCAL || log->slot_count > 4 * LARGE_JOURNAL;
}

bool revlog_is_large(struct revlog *log)
{
	bool large = false;

	if (pthread_mutex_trylock(&log->lock) == 0) { /* if others are busy, one of them will ask again */
		large = is_large(log) || may_shrink(log);
		pthread_mutex_unlock(&log->lock);
	}
	return large;
}

/* Forgets everything and reads the log. Changes that are not done are found again by whoever looks at their paths. */
static void read_again(struct revlog *log, struct ctx *ctx)
{
	struct err ignored;

	table_drop_runs(log, ctx);
	log->record_count = 0;
	keep_rest(log, 0);
	log->low = log->first = 1;
	log->mark_count = 0;
	log->marks_loaded = false;
	arena_reset(log->names);
	log->mark_names = strmap_new(log->names);
	log->journal.entry = 0;
	log->journal.begun = log->journal.skipped = false;
	log->journal.bytes = 0;
	free(log->damage.numbers);
	log->damage = (struct damage){0};
	log->index_is_broken = log_load(log, ctx, &ignored) != 0;
}

void revlog_forget(struct revlog *log)
{
	pthread_mutex_lock(&log->lock);
	log->index_is_broken = true;
	pthread_mutex_unlock(&log->lock);
}

void revlog_trim(struct revlog *log, struct ctx *ctx)
{
	pthread_mutex_lock(&log->lock);
	if (!log->leading && !log->queue && log->index_is_broken) {
		read_again(log, ctx);
	} else if (!log->leading && !log->queue && is_large(log)) {
		size_t before = log->record_count;

		table_spill(log, ctx, log->journal.at ? LARGE_JOURNAL / 2 : LARGE_LOCAL / 2);
		if (log->record_count == before && log->run_store) /* only what was loaded goes */
			keep_rest(log, 0);
	}
	for (size_t i = 0; i < log->run_count && !log->runs_in_use; i++)
		if (run_may_shrink(log->runs[i]))
			run_shrink(log->runs[i]);
	pthread_mutex_unlock(&log->lock);
}

void table_spill_at_close(struct revlog *log, struct ctx *ctx)
{
	table_spill(log, ctx, log->journal.at ? CLOSE_JOURNAL : CLOSE_LOCAL);
}

int table_open_runs(struct revlog *log, struct ctx *ctx, const struct store_page *names, struct err *err)
{
	int r = log->run_store ? runs_open(log->run_store, ctx, names, log->runs, &log->run_count, err) : 0;

	if (r || log->run_count == 0)
		return r;
	log->low = run_head(log->runs[log->run_count - 1])->last + 1;
	log->first = run_head(log->runs[0])->first;
	for (size_t i = 0; i < log->run_count; i++) {
		const struct run_head *h = run_head(log->runs[i]);

		if (h->horizon > log->first)
			log->first = h->horizon;
		if (h->lost_first)
			add_lost(log, h->lost_first, h->lost_last);
	}
	return 0;
}

void table_drop_runs(struct revlog *log, struct ctx *ctx)
{
	close_runs(log);
	if (log->run_store)
		runs_remove_all(log->run_store, ctx);
}

/* The new places of the lines of a segment. */
static void place_lines(struct revlog *log, struct ctx *ctx, uint64_t at, struct run_build *b)
{
	struct rev_seq seq = {at, 0};
	struct str rest, line, all;
	struct err ignored;

	if (store_read(log->meta, ctx, segment_path(ctx->arena, at), STORE_WHOLE, SEGMENT_READ, &rest, NULL, &ignored))
		return;
	for (all = rest; rev_line_next(&rest, &line); seq.line++) {
		uint64_t number = rev_line_number(line, "rev");

		if (number >= b->head.first && number <= b->head.last)
			b->entries[number - b->head.first].place =
				(struct rev_place){at, (uint32_t)(line.ptr - all.ptr), (uint32_t)line.len, seq.line, 0};
	}
}

/* What the run has from the horizon on, as a run of its own. */
static int cut_run(struct revlog *log, struct ctx *ctx, struct run *run, struct run_build *b, struct err *err)
{
	size_t kept = 0;
	int r = 0;

	for (uint64_t n = b->head.first; r == 0 && n <= b->head.last; n++) {
		struct run_entry *e = &b->entries[n - b->head.first];

		r = run_entry(run, ctx, n, e, err);
		if (e->prev < b->head.first)
			e->prev = 0;
		if (e->jump < b->head.first)
			e->jump = e->prev ? e->prev : n;
	}
	if (r == 0)
		r = run_paths(run, ctx, &b->paths, &b->path_count, err);
	for (size_t i = 0; r == 0 && i < b->path_count; i++)
		if (b->paths[i].last >= b->head.first)
			b->paths[kept++] = b->paths[i];
	b->path_count = kept;
	if (r == 0 && b->entries[0].place.offset != REV_IN_JOURNAL)
		place_lines(log, ctx, b->entries[0].place.at, b);
	b->head.end = b->entries[b->head.last - b->head.first].place;
	return r ? r : run_write(log->run_store, ctx, b, err);
}

void table_cut_runs(struct revlog *log, struct ctx *ctx, uint64_t horizon)
{
	size_t old = 0;
	int r = 0;

	while (old < log->run_count && run_head(log->runs[old])->last < horizon)
		old++;
	if (old < log->run_count && run_head(log->runs[old])->first < horizon) {
		struct run_build b = {.head = *run_head(log->runs[old])};
		struct err ignored;

		b.head.first = b.head.horizon = horizon;
		b.entries = xcalloc((size_t)(b.head.last - horizon) + 1, sizeof(*b.entries));
		r = cut_run(log, ctx, log->runs[old], &b, &ignored);
		free(b.entries);
		free(b.paths);
		old++;
	}
	if (r) { /* without an index the log is read */
		log->index_is_broken = true;
		return;
	}
	for (size_t i = 0; i < old; i++)
		run_remove(log->run_store, ctx, run_head(log->runs[i])->first, run_head(log->runs[i])->last);
	if (old && log->run_count && !reopen_runs(log, ctx))
		log->index_is_broken = log->low > log->first;
}
