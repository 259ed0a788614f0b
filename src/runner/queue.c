/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's file is a log: messages that came, batches that were taken, batches that ended. Reading it gives back the
 * state, so there is one way to arrive at a state and a kill at any instant leaves one. When a batch ends and nothing
 * waits, the file is replaced by one line with the ids that were seen last, so it does not grow. Those ids are what
 * makes a message that a channel delivers twice count once.
 *
 * The file is written before memory changes and under the lock, so the order of the file is the order of the session.
 */
#include "runner/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/jsonl.h"

#define DIR       "channels/queue"
#define SEEN_MAX  64
#define KEPT_MAX  ((size_t)80)   /* characters of a dropped message in the line about it */
#define NOTES_MAX ((size_t)8192) /* of all notes that wait for the next batch */

struct message {
	char *id, *text, *origin; /* origin as JSON; NULL: none */
	bool is_system;
	struct message *next;
};

struct session {
	char *name, *path;
	struct message *first, **last;
	size_t count;   /* that wait, those of the taken batch too */
	size_t taken;   /* the first ones, of a batch that has not ended */
	bool is_busy;   /* its turn runs */
	bool was_taken; /* by a process that died, or the turn was cut off */
	int64_t ready_ns;
	enum queue_mode mode; /* QUEUE_MODES: the configured one */
	char *seen[SEEN_MAX]; /* a ring */
	size_t seen_count;
	/* What the next batch of people begins with; NULL: nothing. */
	char *dropped; /* a line about messages that were dropped */
	char *notes;   /* what was said in the chat without the agent of the session */
	char *told;    /* what the taken batch begins with */
	struct session *next;
};

struct queue {
	struct workspace *ws;
	struct queue_opts opts;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct session *sessions; /* in the order of their first message */
	size_t busy;
	uint64_t changes;
};

static const char *const mode_names[QUEUE_MODES] = {"collect", "steer", "followup", "interrupt"};

const char *queue_mode_name(enum queue_mode mode)
{
	return mode < QUEUE_MODES ? mode_names[mode] : "default";
}

bool queue_mode_parse(struct str name, enum queue_mode *ret)
{
	for (size_t i = 0; i < QUEUE_MODES; i++)
		if (str_eq_nocase(name, str_of(mode_names[i]))) {
			*ret = (enum queue_mode)i;
			return true;
		}
	if (!str_eq_nocase(name, STR("default")) && !str_eq_nocase(name, STR("reset")))
		return false;
	*ret = QUEUE_MODES;
	return true;
}

struct queue_opts queue_settings(struct workspace *ws)
{
	const struct jv *document = workspace_config(ws)->document, *c = jv_get(document, "queue");
	struct str drop = jv_get_str(c, "drop_policy");
	struct queue_opts opts = {
		.debounce_ms = jv_get_int(c, "debounce_ms", 1000),
		.cap = (size_t)jv_get_int(c, "cap", 20),
		.drop = str_is(drop, "old")   ? QUEUE_OLD
			: str_is(drop, "new") ? QUEUE_NEW
					      : QUEUE_SUMMARIZE,
		.turns = (size_t)jv_get_int(jv_get(document, "lanes"), "main_concurrency", 4),
	};

	if (!queue_mode_parse(jv_get_str(c, "mode"), &opts.mode))
		opts.mode = QUEUE_COLLECT;
	return opts;
}

/* --- memory --- */

static void message_free(struct message *m)
{
	free(m->id);
	free(m->text);
	free(m->origin);
	free(m);
}

static struct message *pop(struct session *s)
{
	struct message *m = s->first;

	s->first = m->next;
	if (!s->first)
		s->last = &s->first;
	s->count--;
	return m;
}

static void session_free(struct session *s)
{
	while (s->first)
		message_free(pop(s));
	for (size_t i = 0; i < SEEN_MAX; i++)
		free(s->seen[i]);
	free(s->dropped);
	free(s->notes);
	free(s->told);
	free(s->name);
	free(s->path);
	free(s);
}

static bool was_seen(const struct session *s, struct str id)
{
	for (size_t i = 0; i < SEEN_MAX; i++)
		if (s->seen[i] && str_is(id, s->seen[i]))
			return true;
	for (const struct message *m = s->first; m; m = m->next)
		if (str_is(id, m->id))
			return true;
	return false;
}

static void see(struct session *s, struct str id)
{
	char **place = &s->seen[s->seen_count++ % SEEN_MAX];

	free(*place);
	*place = xstrndup(id);
}

static struct session *session_find(struct queue *q, struct str name)
{
	for (struct session *s = q->sessions; s; s = s->next)
		if (str_is(name, s->name))
			return s;
	return NULL;
}

static struct session *session_get(struct queue *q, struct arena *arena, struct str name)
{
	struct session *s = session_find(q, name), **end = &q->sessions;

	if (s)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->name = xstrndup(name);
	s->path = xstrndup(arena_printf(arena, DIR "/%.*s.jsonl", STR_ARG(workspace_encode_name(arena, name))));
	s->last = &s->first;
	s->mode = QUEUE_MODES;
	while (*end)
		end = &(*end)->next;
	*end = s;
	return s;
}

static enum queue_mode mode_of(const struct queue *q, const struct session *s)
{
	return s && s->mode < QUEUE_MODES ? s->mode : q->opts.mode;
}

/* `text` is malloc'd, or NULL. */
static void set_text(char **place, char *text)
{
	free(*place);
	*place = text;
}

/* What the next batch of people begins with; empty: nothing. */
static struct str beginning(struct arena *arena, const struct session *s)
{
	struct buf text;

	buf_init(&text, arena, 2 * NOTES_MAX);
	if (s->notes)
		buf_printf(&text, "%s\n\n", s->notes);
	if (s->dropped)
		buf_printf(&text, "[earlier messages were dropped because too many were waiting: %s]\n\n", s->dropped);
	return buf_str(&text);
}

/* --- the log --- */

static void apply_put(struct session *s, const struct jv *put)
{
	struct message *m = xcalloc(1, sizeof(*m));
	const struct jv *origin = jv_get(put, "origin");
	struct buf text;

	m->id = xstrndup(jv_get_str(put, "id"));
	m->text = xstrndup(jv_get_str(put, "text"));
	m->is_system = jv_get_bool(put, "system", false);
	if (origin) {
		buf_init(&text, NULL, 64 * KIB);
		jv_write(&text, origin);
		m->origin = xstrndup(buf_str(&text));
		buf_release(&text);
	}
	*s->last = m;
	s->last = &m->next;
	s->count++;
}

static void apply_done(struct session *s, uint64_t n)
{
	for (; n > 0 && s->first; n--) {
		struct message *m = pop(s);

		see(s, str_of(m->id));
		message_free(m);
	}
	s->taken = 0;
	s->was_taken = false;
	set_text(&s->told, NULL);
}

/* Where the oldest message of a person is that waits and is not part of a taken batch. */
static struct message **oldest(struct session *s)
{
	struct message **at = &s->first;

	for (size_t i = 0; *at && (i < s->taken || (*at)->is_system); i++)
		at = &(*at)->next;
	return at;
}

static void apply_drop(struct session *s, const struct jv *line)
{
	struct str kept = jv_get_str(line, "kept");
	struct message **at = oldest(s), *m = *at;

	if (!m)
		return;
	*at = m->next;
	if (!*at)
		s->last = at;
	s->count--;
	see(s, str_of(m->id));
	message_free(m);
	if (kept.len)
		set_text(&s->dropped, xstrndup(kept));
}

/* What the turn begins with is its own from now on; what comes while it runs waits for the next one. A message of Stead
   itself, such as a command, is taken as it is. */
static void apply_take(struct session *s, size_t count)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	s->taken = count;
	if (!s->first || s->first->is_system)
		return;
	set_text(&s->told, xstrndup(beginning(arena, s)));
	set_text(&s->dropped, NULL);
	set_text(&s->notes, NULL);
}

/* The newest are kept. */
static void apply_note(struct session *s, struct str note)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str all = note;

	if (s->notes && strlen(s->notes) + note.len < NOTES_MAX)
		all = arena_printf(arena, "%s\n\n%.*s", s->notes, STR_ARG(note));
	set_text(&s->notes, xstrndup(all));
}

/* Each line changes the state in one way, whether it is read or has just been written. */
static void apply(struct session *s, const struct jv *line)
{
	const struct jv *put = jv_get(line, "put");
	struct str mode = jv_get_str(line, "mode");

	if (put)
		apply_put(s, put);
	if (jv_get(line, "drop"))
		apply_drop(s, line);
	if (jv_get(line, "note"))
		apply_note(s, jv_get_str(line, "note"));
	if (jv_get(line, "take"))
		apply_take(s, (size_t)jv_get_int(line, "take", 0));
	if (jv_get(line, "done"))
		apply_done(s, (uint64_t)jv_get_int(line, "done", 0));
	if (mode.len && !queue_mode_parse(mode, &s->mode))
		s->mode = QUEUE_MODES;
	for (const struct jv_member *m = jv_first(jv_get(line, "seen")); m; m = m->next)
		see(s, jv_str_of(m->value));
}

static struct wpath path_of(const struct session *s)
{
	return (struct wpath){str_of(s->path)};
}

/* Writes the line, then does what it says. */
static int record(struct queue *q, struct ctx *ctx, struct session *s, struct jv *line, struct err *err)
{
	struct jv *first = jv_object(ctx->arena);
	int r;

	jv_set_str(ctx->arena, first, "session", str_of(s->name));
	r = jsonl_append(workspace_home(q->ws), ctx, path_of(s), line, first, err);
	if (r == 0)
		apply(s, line);
	return r;
}

/* Nothing waits: one line is enough. */
static int compact(struct queue *q, struct ctx *ctx, struct session *s, struct err *err)
{
	struct jv *line = jv_object(ctx->arena), *seen = jv_array(ctx->arena);
	struct buf text;

	for (size_t i = 0; i < SEEN_MAX; i++) {
		const char *id = s->seen[(s->seen_count + i) % SEEN_MAX];

		if (id)
			jv_push(ctx->arena, seen, jv_str(ctx->arena, str_of(id)));
	}
	jv_set_str(ctx->arena, line, "session", str_of(s->name));
	jv_set(ctx->arena, line, "seen", seen);
	if (s->mode < QUEUE_MODES)
		jv_set_str(ctx->arena, line, "mode", str_of(queue_mode_name(s->mode)));
	if (s->notes)
		jv_set_str(ctx->arena, line, "note", str_of(s->notes));
	buf_init(&text, ctx->arena, MIB);
	jv_write(&text, line);
	buf_char(&text, '\n');
	return store_write(workspace_home(q->ws), ctx, path_of(s), buf_str(&text), (struct store_cond){0}, NULL, err);
}

/* --- opening --- */

struct loading {
	struct queue *queue;
	struct arena *arena;
	struct session *session;
};

static bool load_line(void *arg, const struct jsonl_line *line)
{
	struct loading *l = arg;
	struct str name = jv_get_str(line->value, "session");

	if (name.len)
		l->session = session_get(l->queue, l->arena, name);
	if (l->session)
		apply(l->session, line->value);
	return true;
}

static int load(struct queue *q, struct ctx *ctx, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	int r = store_list(workspace_home(q->ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct loading l = {q, ctx->arena, NULL};

		if (!str_ends(page.entries[i].path.s, STR(".jsonl")))
			continue;
		r = jsonl_read_from(workspace_home(q->ws), ctx, page.entries[i].path, 0, load_line, &l, NULL, err);
		if (l.session)
			l.session->was_taken = l.session->taken > 0;
	}
	return r;
}

int queue_open(struct workspace *ws, struct ctx *ctx, const struct queue_opts *opts, struct queue **ret,
	       struct err *err)
{
	struct queue *q = xcalloc(1, sizeof(*q));
	pthread_condattr_t monotonic;
	int r;

	q->ws = ws;
	q->opts = *opts;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = load(q, ctx, err);
	if (r) {
		queue_close(q);
		return r;
	}
	*ret = q;
	return 0;
}

void queue_close(struct queue *q)
{
	if (!q)
		return;
	while (q->sessions) {
		struct session *s = q->sessions;

		q->sessions = s->next;
		session_free(s);
	}
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void announce(struct queue *q)
{
	q->changes++;
	pthread_cond_broadcast(&q->changed);
}

/* --- putting --- */

static size_t people_waiting(const struct session *s)
{
	const struct message *m = s->first;
	size_t n = 0;

	for (size_t i = 0; m; m = m->next, i++)
		n += i >= s->taken && !m->is_system;
	return n;
}

/* A line for the next batch about messages that were dropped. */
static struct str kept_line(struct arena *arena, struct session *s)
{
	const struct message *m = *oldest(s);
	struct str text = utf8_first(m ? str_of(m->text) : STR(""), KEPT_MAX);
	text = str_first(text, str_find_char(text, '\n'));
	if (!s->dropped)
		return arena_printf(arena, "\"%.*s\"", STR_ARG(text));
	return utf8_first(arena_printf(arena, "%s; \"%.*s\"", s->dropped, STR_ARG(text)), 2 * KIB);
}

static int make_room(struct queue *q, struct ctx *ctx, struct session *s, bool *ret_refused, struct err *err)
{
	*ret_refused = false;
	while (people_waiting(s) >= q->opts.cap) {
		struct jv *line = jv_object(ctx->arena);
		int r;

		if (q->opts.drop == QUEUE_NEW) {
			*ret_refused = true;
			return 0;
		}
		jv_set_bool(ctx->arena, line, "drop", true);
		if (q->opts.drop == QUEUE_SUMMARIZE)
			jv_set_str(ctx->arena, line, "kept", kept_line(ctx->arena, s));
		r = record(q, ctx, s, line, err);
		if (r)
			return r;
	}
	return 0;
}

static int put(struct queue *q, struct ctx *ctx, const struct queue_message *message, int64_t now_ns,
	       enum queue_result *ret, struct err *err)
{
	struct session *s = session_get(q, ctx->arena, message->session);
	struct jv *line = jv_object(ctx->arena), *m = jv_object(ctx->arena);
	bool refused = false, was_idle;
	int r = 0;

	*ret = QUEUE_SEEN;
	if (was_seen(s, message->id))
		return 0;
	if (!message->is_system)
		r = make_room(q, ctx, s, &refused, err);
	*ret = refused ? QUEUE_REFUSED : QUEUE_ADDED;
	if (r || refused)
		return r;
	jv_set_str(ctx->arena, m, "id", message->id);
	jv_set_str(ctx->arena, m, "text", message->text);
	if (message->origin)
		jv_set(ctx->arena, m, "origin", jv_copy(ctx->arena, message->origin));
	if (message->is_system)
		jv_set_bool(ctx->arena, m, "system", true);
	jv_set(ctx->arena, line, "put", m);
	was_idle = s->count == s->taken;
	r = record(q, ctx, s, line, err);
	if (r)
		return r;
	if (message->is_system)
		s->ready_ns = was_idle ? now_ns : s->ready_ns;
	else
		s->ready_ns = mode_of(q, s) == QUEUE_COLLECT ? now_ns + q->opts.debounce_ms * NS_PER_MS : now_ns;
	return 0;
}

int queue_put(struct queue *q, struct ctx *ctx, const struct queue_message *message, int64_t now_ns,
	      enum queue_result *ret, struct err *err)
{
	int r;

	pthread_mutex_lock(&q->lock);
	r = put(q, ctx, message, now_ns, ret, err);
	announce(q);
	pthread_mutex_unlock(&q->lock);
	return r;
}

int queue_note(struct queue *q, struct ctx *ctx, struct str session, struct str note, struct err *err)
{
	struct jv *line = jv_object(ctx->arena);
	int r;

	jv_set_str(ctx->arena, line, "note", utf8_first(note, NOTES_MAX / 2));
	pthread_mutex_lock(&q->lock);
	r = record(q, ctx, session_get(q, ctx->arena, session), line, err);
	pthread_mutex_unlock(&q->lock);
	return r;
}

/* --- taking --- */

/* How many of the first messages make one turn: those that were taken before; else events alone, people together. */
static size_t batch_size(const struct queue *q, const struct session *s)
{
	const struct message *m = s->first;
	size_t n = 0;

	if (s->taken)
		return s->taken;
	if (mode_of(q, s) == QUEUE_FOLLOWUP)
		return 1;
	for (bool system = m->is_system; m && m->is_system == system; m = m->next)
		n++;
	return n;
}

static int fill_batch(const struct session *s, struct ctx *ctx, size_t count, struct queue_batch *ret, struct err *err)
{
	const struct message *m = s->first;
	struct jv *origin = NULL;
	struct buf text;
	int r = 0;

	buf_init(&text, ctx->arena, TOOL_FILE_MAX);
	if (s->taken && s->told)
		buf_add(&text, str_of(s->told));
	else if (!s->taken && m && !m->is_system)
		buf_add(&text, beginning(ctx->arena, s));
	for (size_t i = 0; i < count && m; i++, m = m->next) {
		if (i)
			buf_lit(&text, "\n\n");
		buf_add(&text, str_of(m->text));
		ret->id = arena_str(ctx->arena, str_of(m->id));
		if (m->origin)
			r = jv_parse(ctx->arena, str_of(m->origin), &origin, err);
	}
	ret->session = arena_str(ctx->arena, str_of(s->name));
	ret->text = buf_str(&text);
	ret->origin = origin;
	ret->count = count;
	ret->is_again = s->was_taken;
	return r;
}

static int take(struct queue *q, struct ctx *ctx, struct session *s, struct queue_batch *ret, struct err *err)
{
	size_t count = batch_size(q, s);
	struct jv *line = jv_object(ctx->arena);
	int r = fill_batch(s, ctx, count, ret, err);

	jv_set_int(ctx->arena, line, "take", (int64_t)count);
	if (r == 0 && !s->taken)
		r = record(q, ctx, s, line, err);
	if (r)
		return r;
	s->is_busy = true;
	q->busy++;
	return 0;
}

int queue_take(struct queue *q, struct ctx *ctx, int64_t now_ns, struct queue_batch *ret, bool *ret_taken,
	       int64_t *ret_next_ns, struct err *err)
{
	int r = 0;

	*ret_taken = false;
	*ret_next_ns = INT64_MAX;
	pthread_mutex_lock(&q->lock);
	for (struct session *s = q->sessions; s && !*ret_taken && r == 0 && q->busy < q->opts.turns; s = s->next) {
		if (s->is_busy || !s->count)
			continue;
		if (!s->taken && s->ready_ns > now_ns && !s->first->is_system) {
			*ret_next_ns = s->ready_ns < *ret_next_ns ? s->ready_ns : *ret_next_ns;
			continue;
		}
		r = take(q, ctx, s, ret, err);
		*ret_taken = r == 0;
	}
	pthread_mutex_unlock(&q->lock);
	return r;
}

static struct session *end_turn(struct queue *q, const struct queue_batch *batch)
{
	struct session *s = session_find(q, batch->session);

	if (!s || !s->is_busy)
		return NULL;
	s->is_busy = false;
	q->busy--;
	return s;
}

int queue_done(struct queue *q, struct ctx *ctx, const struct queue_batch *batch, struct err *err)
{
	struct jv *line = jv_object(ctx->arena);
	struct session *s;
	int r = 0;

	pthread_mutex_lock(&q->lock);
	s = end_turn(q, batch);
	jv_set_int(ctx->arena, line, "done", (int64_t)batch->count);
	if (s && s->count == batch->count) {
		apply(s, line);
		r = compact(q, ctx, s, err);
	} else if (s) {
		r = record(q, ctx, s, line, err);
	}
	announce(q);
	pthread_mutex_unlock(&q->lock);
	return r;
}

void queue_release(struct queue *q, const struct queue_batch *batch)
{
	struct session *s;

	pthread_mutex_lock(&q->lock);
	s = end_turn(q, batch);
	if (s)
		s->was_taken = true;
	announce(q);
	pthread_mutex_unlock(&q->lock);
}

size_t queue_waiting(struct queue *q, struct str session)
{
	struct session *s;
	size_t n;

	pthread_mutex_lock(&q->lock);
	s = session_find(q, session);
	n = s ? people_waiting(s) : 0;
	pthread_mutex_unlock(&q->lock);
	return n;
}

/* --- modes --- */

int queue_set_mode(struct queue *q, struct ctx *ctx, struct str session, enum queue_mode mode, struct err *err)
{
	struct jv *line = jv_object(ctx->arena);
	int r;

	jv_set_str(ctx->arena, line, "mode", str_of(queue_mode_name(mode)));
	pthread_mutex_lock(&q->lock);
	r = record(q, ctx, session_get(q, ctx->arena, session), line, err);
	pthread_mutex_unlock(&q->lock);
	return r;
}

enum queue_mode queue_mode_of(struct queue *q, struct str session)
{
	enum queue_mode mode;

	pthread_mutex_lock(&q->lock);
	mode = mode_of(q, session_find(q, session));
	pthread_mutex_unlock(&q->lock);
	return mode;
}

/* --- waiting --- */

uint64_t queue_mark(struct queue *q)
{
	uint64_t mark;

	pthread_mutex_lock(&q->lock);
	mark = q->changes;
	pthread_mutex_unlock(&q->lock);
	return mark;
}

void queue_wait(struct queue *q, uint64_t mark, int64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	int late = 0;

	pthread_mutex_lock(&q->lock);
	while (q->changes == mark && !late)
		late = pthread_cond_timedwait(&q->changed, &q->lock, &until);
	pthread_mutex_unlock(&q->lock);
}

void queue_wake(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	announce(q);
	pthread_mutex_unlock(&q->lock);
}
