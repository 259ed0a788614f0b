/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What notes there are: a table in memory of everything but the texts, for lists, titles and the index. It is derived.
 * The first look reads all note files, on every core; from then on it follows the log of revisions, so a look costs
 * what was changed since the last one, by whichever process. When more has changed than a full reading would cost, all
 * files are read again.
 *
 * A process that has looked at a large notebook keeps the table in .stead/index when it ends, and the next one begins
 * with that. It is used for an hour at most, since other programs may change notes without a record.
 *
 * A file that is not a note is remembered with what is wrong with it, and never affects the others.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "home/notebook/notebook_internal.h"
#include "revisions/revisions.h"

#define BEHIND_MIN 1000 /* revisions; beyond that (and a quarter of all notes) it is read afresh */
#define WORKERS    8
/* The table on disk: when it is worth having, for how long it is used, and its largest size. */
#define SAVE_NOTES 500
#define SAVE_PART  16 /* so many notes for one change since it was last saved */
#define SAVED_NS   (INT64_C(3600) * 1000000000)
#define SAVED_MAX  (256 * MIB)
#define SAVED_HEAD "stead-notes 1\n"
/* Records that may be in the log while their files are still to be replaced: after a full reading, the files of these
   are read once more. */
#define IN_FLIGHT 256

struct entry {
	struct note n; /* of a problem: path only */
	struct entry *next_path, *next_slug;
	char *why; /* not NULL: why it is not a note */
};

struct catalog {
	struct entry **by_path, **by_slug; /* buckets: chains */
	size_t buckets, used;
	struct entry **order; /* notes only, oldest first */
	size_t count, cap;
	uint64_t revision, number, problems;
	uint64_t saved;     /* the revision of the table on disk; 0: there is none */
	int64_t scanned_ns; /* when all files were read, by whichever process */
};

static struct catalog *catalog_new(void)
{
	struct catalog *c = xcalloc(1, sizeof *c);

	c->buckets = 64;
	c->by_path = xcalloc(c->buckets, sizeof(struct entry *));
	c->by_slug = xcalloc(c->buckets, sizeof(struct entry *));
	return c;
}

static void entry_free(struct entry *e)
{
	free(e->why);
	free(e);
}

void catalog_destroy(struct catalog *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->buckets; i++)
		for (struct entry *e = c->by_path[i], *next; e; e = next) {
			next = e->next_path;
			entry_free(e);
		}
	free(c->by_path);
	free(c->by_slug);
	free(c->order);
	free(c);
}

/* --- entries --- */

static struct str copy_to(char **at, struct str s)
{
	struct str copy = {*at, s.len};

	if (s.len)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return s.ptr ? copy : STR_NONE;
}

#define STRINGS 10
static void strings_of(struct note *n, struct str *ret[STRINGS])
{
	struct str *all[STRINGS] = {&n->path,      &n->slug, &n->author,  &n->title,       &n->kind,
				    &n->namespace, &n->lede, &n->user_id, &n->answered_by, &n->parent_slug};

	memcpy(ret, all, sizeof all);
}

/* A note without its text, in one piece of memory that `alloc` gives. */
static struct note *note_pack(const struct note *n, void *(*alloc)(void *arg, size_t size), void *arg, size_t front)
{
	struct note copy = *n;
	struct str *strings[STRINGS], *tags;
	size_t size = front + n->tag_count * sizeof(struct str);
	char *block, *at;

	strings_of(&copy, strings);
	for (size_t i = 0; i < STRINGS; i++)
		size += strings[i]->len;
	for (size_t i = 0; i < n->tag_count; i++)
		size += n->tags[i].len;
	block = alloc(arg, size);
	tags = (struct str *)(void *)(block + front);
	at = (char *)(tags + n->tag_count);
	for (size_t i = 0; i < STRINGS; i++)
		*strings[i] = copy_to(&at, *strings[i]);
	for (size_t i = 0; i < n->tag_count; i++)
		tags[i] = copy_to(&at, n->tags[i]);
	copy.tags = tags;
	copy.body = copy.run_id = STR_NONE;
	memcpy(block, &copy, sizeof copy);
	return (struct note *)(void *)block;
}

static void *from_heap(void *arg, size_t size)
{
	(void)arg;
	return xmalloc(size);
}

static void *from_arena(void *arg, size_t size)
{
	return arena_alloc_raw(arg, size);
}

struct note note_copy(struct arena *arena, const struct note *n)
{
	return *note_pack(n, from_arena, arena, sizeof(struct note));
}

static struct entry *entry_new(const struct note *n, const char *why)
{
	struct entry *e = (struct entry *)(void *)note_pack(n, from_heap, NULL, sizeof(struct entry));

	e->next_path = e->next_slug = NULL;
	e->why = why ? xstrndup(str_of(why)) : NULL;
	return e;
}

/* --- the table --- */

static int order_cmp(const struct note *a, const struct note *b)
{
	if (a->updated_ns != b->updated_ns)
		return a->updated_ns < b->updated_ns ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return str_cmp(a->path, b->path);
}

static int order_sort(const void *a, const void *b)
{
	return order_cmp(&(*(struct entry *const *)a)->n, &(*(struct entry *const *)b)->n);
}

/* The index of the note, or where it would be inserted. */
static size_t order_find(const struct catalog *c, const struct note *n)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order_cmp(&c->order[middle]->n, n) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t bucket(const struct catalog *c, struct str key)
{
	return (size_t)hash_u64(key, 0) & (c->buckets - 1);
}

static void link_entry(struct catalog *c, struct entry *e)
{
	size_t p = bucket(c, e->n.path), s = bucket(c, e->n.slug);

	e->next_path = c->by_path[p];
	c->by_path[p] = e;
	e->next_slug = NULL;
	if (e->why)
		return;
	e->next_slug = c->by_slug[s];
	c->by_slug[s] = e;
}

static void grow(struct catalog *c)
{
	struct entry **old = c->by_path;
	size_t n = c->buckets;

	free(c->by_slug);
	c->buckets *= 2;
	c->by_path = xcalloc(c->buckets, sizeof(struct entry *));
	c->by_slug = xcalloc(c->buckets, sizeof(struct entry *));
	for (size_t i = 0; i < n; i++)
		for (struct entry *e = old[i], *next; e; e = next) {
			next = e->next_path;
			link_entry(c, e);
		}
	free(old);
}

static void drop(struct catalog *c, struct str path)
{
	struct entry **at = &c->by_path[bucket(c, path)], *e;

	while (*at && !str_eq((*at)->n.path, path))
		at = &(*at)->next_path;
	e = *at;
	if (!e)
		return;
	*at = e->next_path;
	c->used--;
	if (e->why) {
		c->problems--;
	} else {
		size_t place = order_find(c, &e->n);

		memmove(c->order + place, c->order + place + 1, (c->count - place - 1) * sizeof(*c->order));
		c->count--;
		at = &c->by_slug[bucket(c, e->n.slug)];
		while (*at != e)
			at = &(*at)->next_slug;
		*at = e->next_slug;
	}
	entry_free(e);
}

/* `sorted` false: the caller sorts when all have come. */
static void add(struct catalog *c, struct entry *e, bool sorted)
{
	size_t place;

	if (c->used >= c->buckets)
		grow(c);
	link_entry(c, e);
	c->used++;
	if (e->why) {
		c->problems++;
		return;
	}
	if (e->n.number > c->number)
		c->number = e->n.number;
	HEAP_ROOM(c->order, c->count, c->cap);
	place = sorted ? order_find(c, &e->n) : c->count;
	memmove(c->order + place + 1, c->order + place, (c->count - place) * sizeof(*c->order));
	c->order[place] = e;
	c->count++;
}

/* --- reading everything --- */

struct loading {
	pthread_mutex_t lock;
	struct catalog *c;
	struct arena *arenas[WORKERS]; /* of each worker, for one file */
};

static bool want_dir(void *arg, struct str path)
{
	struct str name = wpath_name((struct wpath){path});

	(void)arg;
	return !str_starts(name, STR("."));
}

static bool want_file(void *arg, struct str path)
{
	(void)arg;
	return str_ends(path, STR(".md")) && !str_starts(wpath_name((struct wpath){path}), STR("."));
}

static int visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct loading *l = arg;
	struct arena *arena = l->arenas[item->worker];
	struct note n = {.path = item->path};
	struct err why = {0};
	struct entry *e;
	int r;

	(void)err;
	if (item->offset)
		return SCAN_SKIP_FILE;
	if (item->unreadable)
		r = err_set(&why, ERR_CORRUPT, "the file cannot be read");
	else
		r = note_parse(arena, (struct wpath){item->path}, item->data, 0, &n, &why);
	n.path = item->path;
	e = entry_new(&n, r ? err_text(arena, &why).ptr : NULL);
	arena_reset(arena);
	pthread_mutex_lock(&l->lock);
	add(l->c, e, false);
	pthread_mutex_unlock(&l->lock);
	return SCAN_SKIP_FILE;
}

static int load(struct notebook *nb, struct ctx *ctx, struct catalog *c, struct err *err)
{
	struct loading l = {.c = c};
	struct scan_req req = {.contents = true,
			       .threads = WORKERS,
			       .want_dir = want_dir,
			       .want_file = want_file,
			       .visit = visit,
			       .arg = &l};
	int r;

	pthread_mutex_init(&l.lock, NULL);
	for (size_t i = 0; i < WORKERS; i++)
		l.arenas[i] = arena_new();
	r = store_scan(nb->home, ctx, NOTES_DIR, &req, err);
	for (size_t i = 0; i < WORKERS; i++)
		arena_destroy(l.arenas[i]);
	pthread_mutex_destroy(&l.lock);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (c->count)
		qsort(c->order, c->count, sizeof(*c->order), order_sort);
	return 0;
}

/* --- the table on disk --- */

/* What precedes the strings of an entry. The file is read on the machine that wrote it, by the same version. */
struct saved_entry {
	int64_t times[4];
	uint64_t numbers[5];
	uint32_t answer, tag_count, lens[STRINGS], why_len;
};

struct saved_head {
	char magic[sizeof(SAVED_HEAD) - 1];
	uint16_t entry_size;
	uint64_t hash; /* of what follows it */
	uint64_t revision, count;
	int64_t scanned_ns;
};

static int saved_path(struct notebook *nb, struct ctx *ctx, struct wpath *ret, struct err *err)
{
	struct str user = workspace_actor(nb->ws).user;
	struct str part = user.len ? workspace_encode_name(ctx->arena, user) : STR("-");

	return wpath_parse(arena_printf(ctx->arena, ".stead/index/%.*s/notes", STR_ARG(part)), ret, err);
}

static void save_entry(struct buf *out, struct entry *e)
{
	struct note *n = &e->n;
	struct saved_entry s = {.times = {n->created_ns, n->updated_ns, n->archived_ns, n->last_cited_ns},
				.numbers = {n->number, n->version, n->cited, n->succeeded, n->body_size},
				.answer = n->answer,
				.tag_count = (uint32_t)n->tag_count,
				.why_len = e->why ? (uint32_t)strlen(e->why) : UINT32_MAX};
	struct str *strings[STRINGS];

	strings_of(n, strings);
	for (size_t i = 0; i < STRINGS; i++)
		s.lens[i] = (uint32_t)strings[i]->len;
	buf_add(out, str_n((const char *)&s, sizeof s));
	for (size_t i = 0; i < STRINGS; i++)
		buf_add(out, *strings[i]);
	for (size_t i = 0; i < n->tag_count; i++) {
		uint32_t len = (uint32_t)n->tags[i].len;

		buf_add(out, str_n((const char *)&len, sizeof len));
		buf_add(out, n->tags[i]);
	}
	if (e->why)
		buf_add(out, str_of(e->why));
}

static bool is_worth_saving(const struct catalog *c)
{
	return c->used >= SAVE_NOTES && c->revision - c->saved > c->used / SAVE_PART;
}

void catalog_save(struct notebook *nb)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .actor = workspace_actor(nb->ws)};
	struct catalog *c = nb->catalog;
	struct saved_head head = {.entry_size = sizeof(struct saved_entry)};
	struct wpath path;
	struct err ignored;
	struct buf out;

	if (!c || !is_worth_saving(c) || saved_path(nb, &ctx, &path, &ignored))
		return;
	memcpy(head.magic, SAVED_HEAD, sizeof head.magic);
	head.revision = c->revision;
	head.count = c->used;
	head.scanned_ns = c->scanned_ns;
	buf_init(&out, arena, SAVED_MAX);
	buf_add(&out, str_n((const char *)&head, sizeof head));
	for (size_t i = 0; i < c->buckets; i++)
		for (struct entry *e = c->by_path[i]; e; e = e->next_path)
			save_entry(&out, e);
	if (out.overflow)
		return;
	head.hash = hash_u64(str_from(buf_str(&out), offsetof(struct saved_head, revision)), 0);
	memcpy(out.ptr, &head, sizeof head);
	(void)store_write(workspace_unrecorded(nb->ws), &ctx, path, buf_str(&out), (struct store_cond){0}, NULL,
			  &ignored);
}

static bool take_bytes(struct str *rest, void *to, size_t len)
{
	if (rest->len < len)
		return false;
	memcpy(to, rest->ptr, len);
	*rest = str_from(*rest, len);
	return true;
}

static bool take_str(struct str *rest, size_t len, struct str *ret)
{
	if (rest->len < len)
		return false;
	*ret = str_first(*rest, len);
	*rest = str_from(*rest, len);
	return true;
}

static bool load_entry(struct arena *arena, struct str *rest, struct catalog *c)
{
	struct saved_entry s;
	struct note n = {0};
	struct str *strings[STRINGS], *tags, why = STR_NONE;

	if (!take_bytes(rest, &s, sizeof s) || s.tag_count > rest->len / sizeof(uint32_t))
		return false;
	strings_of(&n, strings);
	for (size_t i = 0; i < STRINGS; i++)
		if (!take_str(rest, s.lens[i], strings[i]))
			return false;
	n.tags = tags = ARENA_ARRAY(arena, struct str, s.tag_count + 1);
	for (size_t i = 0; i < s.tag_count; i++) {
		uint32_t len;

		if (!take_bytes(rest, &len, sizeof len) || !take_str(rest, len, &tags[i]))
			return false;
	}
	if (s.why_len != UINT32_MAX && !take_str(rest, s.why_len, &why))
		return false;
	n.tag_count = s.tag_count;
	n.created_ns = s.times[0], n.updated_ns = s.times[1], n.archived_ns = s.times[2], n.last_cited_ns = s.times[3];
	n.number = s.numbers[0], n.version = s.numbers[1], n.cited = s.numbers[2], n.succeeded = s.numbers[3];
	n.body_size = s.numbers[4];
	n.answer = (enum note_answer)s.answer;
	add(c, entry_new(&n, why.ptr ? arena_cstr(arena, why) : NULL), false);
	return true;
}

/* The table that another process left; NULL: there is none that can be used. */
static struct catalog *catalog_open(struct notebook *nb, struct ctx *ctx, uint64_t revision)
{
	int64_t now = clock_real_ns();
	struct saved_head head;
	struct catalog *c;
	struct wpath path;
	struct str bytes, rest;
	struct err ignored;

	if (saved_path(nb, ctx, &path, &ignored) ||
	    store_read(workspace_unrecorded(nb->ws), ctx, path, STORE_WHOLE, SAVED_MAX, &bytes, NULL, &ignored))
		return NULL;
	rest = bytes;
	if (!take_bytes(&rest, &head, sizeof head) || memcmp(head.magic, SAVED_HEAD, sizeof head.magic) != 0 ||
	    head.entry_size != sizeof(struct saved_entry) || head.revision > revision ||
	    now - head.scanned_ns > SAVED_NS || now < head.scanned_ns ||
	    head.hash != hash_u64(str_from(bytes, offsetof(struct saved_head, revision)), 0))
		return NULL;
	c = catalog_new();
	while (c->used < head.count && load_entry(ctx->arena, &rest, c))
		;
	if (c->used < head.count) {
		catalog_destroy(c);
		return NULL;
	}
	if (c->count)
		qsort(c->order, c->count, sizeof(*c->order), order_sort);
	c->revision = c->saved = head.revision;
	c->scanned_ns = head.scanned_ns;
	return c;
}

/* --- following --- */

static int reload(struct notebook *nb, struct ctx *ctx, struct catalog *c, struct wpath path, struct err *err)
{
	struct note n = {0};
	struct wpath logged;
	int r;

	drop(c, path.s);
	if (!want_file(NULL, path.s) || str_find(path.s, STR("/."), 0) != SIZE_MAX)
		return 0;
	r = wpath_join(ctx->arena, nb->part, path, &logged, err);
	if (!r) /* the record may be older than the file */
		r = revisions_settle(nb->shared, ctx, logged, NULL, err);
	if (!r)
		r = notebook_load(nb, ctx, path, &n, NULL, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == -ERR_CANCELLED || r == -ERR_TIMEOUT || r == -ERR_UNAVAILABLE)
		return r;
	n.path = path.s;
	add(c, entry_new(&n, r ? err_text(ctx->arena, err).ptr : NULL), true);
	return 0;
}

/* ERR_NOT_FOUND: more has changed than reading everything again costs. */
static int follow(struct notebook *nb, struct ctx *ctx, struct catalog *c, uint64_t head, struct err *err)
{
	struct rev_query query = {.since = c->revision, .until = head, .limit = BEHIND_MIN + c->count / 4};
	struct strmap *seen = strmap_new(ctx->arena);
	struct revision *revisions;
	size_t count;
	bool more = false, fresh;
	int r = wpath_join(ctx->arena, nb->part, NOTES_DIR, &query.path, err);

	if (!r)
		r = revisions_query(nb->shared, ctx, &query, &revisions, &count, &more, err);
	if (!r && more)
		return -ERR_NOT_FOUND;
	for (size_t i = 0; !r && i < count; i++) {
		strmap_put(seen, revisions[i].path.s, &fresh);
		if (fresh)
			r = reload(nb, ctx, c, wpath_relative(revisions[i].path, nb->part), err);
	}
	return r;
}

/* Reads all files. */
static int read_all(struct notebook *nb, struct ctx *ctx, uint64_t head, struct err *err)
{
	struct catalog *c = catalog_new();
	int r;

	c->revision = head > IN_FLIGHT ? head - IN_FLIGHT : 0;
	c->scanned_ns = clock_real_ns();
	r = load(nb, ctx, c, err);
	if (!r)
		r = follow(nb, ctx, c, head, err);
	if (r) {
		catalog_destroy(c);
		return r == -ERR_NOT_FOUND ? err_set(err, ERR_UNAVAILABLE,
						     "the notes change faster than they can be read; try again")
					   : r;
	}
	catalog_destroy(nb->catalog);
	nb->catalog = c;
	return 0;
}

int catalog_refresh(struct notebook *nb, struct ctx *ctx, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	uint64_t head;
	int r;

	own.arena = arena;
	r = revisions_head(nb->shared, &own, &head, err);
	if (r)
		return r;
	if (!nb->catalog)
		nb->catalog = catalog_open(nb, &own, head);
	if (nb->catalog && nb->catalog->revision == head)
		return 0;
	r = nb->catalog ? follow(nb, &own, nb->catalog, head, err) : -ERR_NOT_FOUND;
	if (r == -ERR_NOT_FOUND)
		r = read_all(nb, &own, head, err);
	if (!r)
		nb->catalog->revision = head;
	return r;
}

/* --- asking --- */

size_t catalog_count(const struct catalog *c)
{
	return c->count;
}

const struct note *catalog_at(const struct catalog *c, size_t index)
{
	return &c->order[c->count - 1 - index]->n;
}

const struct note *catalog_slug(const struct catalog *c, struct str slug, const struct note *after)
{
	const struct entry *e =
		after ? ((const struct entry *)(const void *)after)->next_slug : c->by_slug[bucket(c, slug)];

	while (e && !str_eq(e->n.slug, slug))
		e = e->next_slug;
	return e ? &e->n : NULL;
}

struct str catalog_cursor(struct arena *arena, const struct note *note)
{
	return arena_printf(arena, "%lld,%llu,%.*s", (long long)note->updated_ns, (unsigned long long)note->number,
			    STR_ARG(note->path));
}

int catalog_seek(const struct catalog *c, struct str cursor, size_t *ret_index, struct err *err)
{
	struct str rest = cursor, time, number;
	int64_t updated, n;

	*ret_index = 0;
	if (!cursor.len)
		return 0;
	if (!str_cut(&rest, ',', &time) || !str_cut(&rest, ',', &number) || !str_to_i64(time, &updated) ||
	    !str_to_i64(number, &n))
		return err_set(err, ERR_INVALID,
			       "the cursor \"%.*s\" is not valid; use next_cursor of the previous page",
			       STR_ARG(utf8_first(cursor, 80)));
	*ret_index =
		c->count - order_find(c, &(struct note){.updated_ns = updated, .number = (uint64_t)n, .path = rest});
	return 0;
}

uint64_t catalog_problems(const struct catalog *c, struct arena *arena, struct note_problem **ret)
{
	size_t n = 0;

	*ret = ARENA_ARRAY(arena, struct note_problem, NOTE_PROBLEMS_SHOWN);
	for (size_t i = 0; c->problems && i < c->buckets && n < NOTE_PROBLEMS_SHOWN; i++)
		for (const struct entry *e = c->by_path[i]; e && n < NOTE_PROBLEMS_SHOWN; e = e->next_path)
			if (e->why)
				(*ret)[n++] = (struct note_problem){arena_str(arena, e->n.path),
								    arena_str(arena, str_of(e->why))};
	return c->problems;
}

uint64_t catalog_revision(const struct catalog *c)
{
	return c->revision;
}

uint64_t catalog_number(const struct catalog *c)
{
	return c->number;
}
