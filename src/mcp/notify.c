/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who hears of changes. A legacy session has one subscription that resources/subscribe adds paths to; each modern
 * subscriptions/listen request is one of its own, which stays in flight until it is cancelled. Changes come from the
 * workspace's events layer, on the thread that made them, so a client hears of a write before or just after its reply;
 * what other processes change comes from follow.c.
 *
 * Whether a write made a new file is known when it had a condition. For the others a small cache of the paths that were
 * seen to exist answers it well enough: a wrong guess costs one list_changed too many, never one too few.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "mcp/server.h"
#include "store/stores.h"

#define SEEN_SLOTS ((size_t)4096)

struct watch {
	struct watch *next;
	struct wpath path; /* its bytes follow this struct */
};

struct subscription {
	struct subscription *next;
	struct request *req; /* NULL: the legacy session */
	bool list_changed;
	struct watch *watches;
};

static void write_meta(struct buf *buf, const struct subscription *sub)
{
	if (!sub->req)
		return;
	buf_lit(buf, "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
	jv_write(buf, sub->req->id);
	buf_char(buf, '}');
}

static void send_updated(struct server *s, const struct subscription *sub, struct wpath path)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str uri = uri_format(arena, path.s);
	struct buf *buf = out_begin(&s->out);

	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":");
	jv_write_string(buf, uri);
	if (sub->req)
		buf_char(buf, ',');
	write_meta(buf, sub);
	buf_lit(buf, "}}\n");
	out_end(&s->out, true);
}

static void send_list_changed(struct server *s, const struct subscription *sub)
{
	struct buf *buf = out_begin(&s->out);

	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"");
	if (sub->req) {
		buf_lit(buf, ",\"params\":{");
		write_meta(buf, sub);
		buf_char(buf, '}');
	}
	buf_lit(buf, "}\n");
	out_end(&s->out, true);
}

/* Remembers that the path exists; true when the change made it, as far as can be told. */
static bool is_new(struct subs *subs, struct wpath path, enum store_cond_kind cond)
{
	uint64_t hash = hash_u64(path.s, 3);
	uint64_t *slot = &subs->seen[hash % SEEN_SLOTS];
	bool known = *slot == hash;

	*slot = hash;
	return cond == STORE_ABSENT || (cond == STORE_ANY && !known);
}

static void tell(struct server *s, struct wpath changed, bool list_changed)
{
	for (struct subscription *sub = s->subs.first; sub; sub = sub->next) {
		for (struct watch *w = sub->watches; w; w = w->next)
			/* what is watched, what was in a directory that went, and directories that got another list */
			if (wpath_within(w->path, changed) || (list_changed && wpath_within(changed, w->path)))
				send_updated(s, sub, w->path);
		if (list_changed && sub->list_changed)
			send_list_changed(s, sub);
	}
}

static void on_change(void *arg, const struct store_event *event)
{
	struct server *s = arg;
	struct subs *subs = &s->subs;

	pthread_mutex_lock(&subs->lock);
	switch (event->op) {
	case STORE_OP_WRITE:
	case STORE_OP_APPEND:
		tell(s, event->path, is_new(subs, event->path, event->cond));
		break;
	case STORE_OP_COPY:
		tell(s, event->to, is_new(subs, event->to, event->cond));
		break;
	case STORE_OP_MOVE:
		memset(subs->seen, 0, SEEN_SLOTS * sizeof(*subs->seen));
		tell(s, event->path, true);
		tell(s, event->to, true);
		break;
	case STORE_OP_REMOVE:
		memset(subs->seen, 0, SEEN_SLOTS * sizeof(*subs->seen));
		tell(s, event->path, true);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&subs->lock);
}

void subs_tell(struct server *s, struct wpath path, bool came_or_went)
{
	pthread_mutex_lock(&s->subs.lock);
	if (came_or_went) /* what is known of it may be wrong now: rather one list_changed too many */
		memset(s->subs.seen, 0, SEEN_SLOTS * sizeof(*s->subs.seen));
	tell(s, path, came_or_went);
	pthread_mutex_unlock(&s->subs.lock);
}

size_t subs_watched(struct server *s, struct arena *arena, struct wpath *ret, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&s->subs.lock);
	for (struct subscription *sub = s->subs.first; sub; sub = sub->next)
		for (struct watch *w = sub->watches; w && n < max; w = w->next)
			ret[n++].s = arena_str(arena, w->path.s);
	pthread_mutex_unlock(&s->subs.lock);
	return n;
}

/* Listens to the store from the first time on that a client may want its notifications. */
static void start(struct server *s)
{
	bool first;

	pthread_mutex_lock(&s->subs.lock);
	first = !s->subs.seen;
	if (first)
		s->subs.seen = xcalloc(SEEN_SLOTS, sizeof(*s->subs.seen));
	pthread_mutex_unlock(&s->subs.lock);
	if (first)
		s->subs.listener = store_events_listen(workspace_events(s->ws), on_change, s);
}

/* False when there are too many; subs.lock is held. */
static bool watch_add(struct subs *subs, struct subscription *sub, struct wpath path)
{
	struct watch *w;
	char *bytes;

	for (w = sub->watches; w; w = w->next)
		if (wpath_eq(w->path, path))
			return true;
	if (subs->count >= MCP_SUBSCRIPTIONS_MAX)
		return false;
	w = xmalloc(sizeof(*w) + path.s.len);
	bytes = (char *)(w + 1);
	if (path.s.len)
		memcpy(bytes, path.s.ptr, path.s.len);
	w->path = (struct wpath){str_n(bytes, path.s.len)};
	w->next = sub->watches;
	sub->watches = w;
	subs->count++;
	return true;
}

static void watch_remove(struct subs *subs, struct watch **slot)
{
	struct watch *w = *slot;

	*slot = w->next;
	free(w);
	subs->count--;
}

static void subscription_destroy(struct subs *subs, struct subscription **slot)
{
	struct subscription *sub = *slot;

	*slot = sub->next;
	while (sub->watches)
		watch_remove(subs, &sub->watches);
	if (sub->req)
		arena_destroy(sub->req->arena);
	free(sub);
}

static struct subscription *session_of(struct subs *subs)
{
	struct subscription *sub = subs->first;

	while (sub && sub->req)
		sub = sub->next;
	if (!sub) {
		sub = xcalloc(1, sizeof(*sub));
		sub->next = subs->first;
		subs->first = sub;
	}
	return sub;
}

void subs_add_session(struct server *s)
{
	start(s);
	pthread_mutex_lock(&s->subs.lock);
	session_of(&s->subs)->list_changed = true;
	pthread_mutex_unlock(&s->subs.lock);
}

void method_subscribe(struct request *req)
{
	struct server *s = req->server;
	struct str uri = jv_get_str(req->params, "uri");
	struct ctx ctx = request_ctx(req);
	struct wpath path;
	struct err err;
	bool added;

	if (uri_parse(req->arena, uri, &path, &err) != 0) {
		reply_store_error(req, uri, &err);
		return;
	}
	start(s);
	follow_start(s, &ctx);
	pthread_mutex_lock(&s->subs.lock);
	added = watch_add(&s->subs, session_of(&s->subs), path);
	pthread_mutex_unlock(&s->subs.lock);
	if (added)
		method_empty(req);
	else
		reply_error(req, RPC_INVALID_PARAMS, NULL, "%d paths are already being watched; unsubscribe from some",
			    MCP_SUBSCRIPTIONS_MAX);
}

void method_unsubscribe(struct request *req)
{
	struct subs *subs = &req->server->subs;
	struct str uri = jv_get_str(req->params, "uri");
	struct wpath path;
	struct err err;

	if (uri_parse(req->arena, uri, &path, &err) != 0) {
		reply_store_error(req, uri, &err);
		return;
	}
	pthread_mutex_lock(&subs->lock);
	for (struct watch **slot = &session_of(subs)->watches; *slot; slot = &(*slot)->next) {
		if (wpath_eq((*slot)->path, path)) {
			watch_remove(subs, slot);
			break;
		}
	}
	pthread_mutex_unlock(&subs->lock);
	method_empty(req);
}

/* The paths that are asked for; answers the request and returns false when one cannot be watched. */
static bool watch_all(struct request *req, struct subscription *sub, const struct jv *uris, struct jv *accepted)
{
	for (const struct jv_member *m = jv_first(uris); m; m = m->next) {
		struct str uri = jv_str_of(m->value);
		struct wpath path;
		struct err err;

		if (uri_parse(req->arena, uri, &path, &err) != 0) {
			reply_store_error(req, uri, &err);
			return false;
		}
		if (!watch_add(&req->server->subs, sub, path)) {
			reply_error(req, RPC_INVALID_PARAMS, NULL,
				    "%d paths are already being watched; end a subscription", MCP_SUBSCRIPTIONS_MAX);
			return false;
		}
		jv_push(req->arena, accepted, m->value);
	}
	return true;
}

static void acknowledge(struct request *req, struct subscription *sub, const struct jv *accepted)
{
	struct buf *buf = out_begin(&req->server->out);

	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
		     "\"notifications\":");
	jv_write(buf, accepted);
	buf_char(buf, ',');
	write_meta(buf, sub);
	buf_lit(buf, "}}\n");
	out_end(&req->server->out, false);
}

/* Stays open: the request is in flight until it is cancelled or the server ends. */
void method_listen(struct request *req)
{
	const struct jv *wanted = jv_get(req->params, "notifications");
	struct jv *accepted = jv_object(req->arena), *paths = jv_array(req->arena);
	struct ctx ctx = request_ctx(req);
	struct server *s = req->server;
	struct subscription *sub;

	if (!wanted || wanted->type != JV_OBJECT) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "params.notifications must be an object that names what to "
			    "listen for, such as {\"resourcesListChanged\":true}");
		return;
	}
	start(s);
	follow_start(s, &ctx);
	sub = xcalloc(1, sizeof(*sub));
	sub->list_changed = jv_get_bool(wanted, "resourcesListChanged", false);
	pthread_mutex_lock(&s->subs.lock);
	sub->next = s->subs.first;
	s->subs.first = sub;
	if (!watch_all(req, sub, jv_get(wanted, "resourceSubscriptions"), paths)) {
		subscription_destroy(&s->subs, &s->subs.first);
	} else if (!req->in_flight && !flights_add(s, req)) {
		reply_error(req, RPC_INTERNAL, NULL, "%d requests are already open; wait for one to end",
			    MCP_IN_FLIGHT_MAX);
		subscription_destroy(&s->subs, &s->subs.first);
	} else if (atomic_load(&req->cancel.requested)) {
		flights_remove(s, req);
		subscription_destroy(&s->subs, &s->subs.first);
	} else {
		sub->req = req;
		*req->ret_kept = true;
		if (sub->list_changed)
			jv_set_bool(req->arena, accepted, "resourcesListChanged", true);
		if (jv_count(paths))
			jv_set(req->arena, accepted, "resourceSubscriptions", paths);
		acknowledge(req, sub, accepted);
	}
	pthread_mutex_unlock(&s->subs.lock);
}

bool subs_cancel(struct server *s, const struct jv *id)
{
	struct subscription **slot = &s->subs.first;
	bool found;

	pthread_mutex_lock(&s->subs.lock);
	while (*slot && !((*slot)->req && jv_equal((*slot)->req->id, id)))
		slot = &(*slot)->next;
	found = *slot != NULL;
	if (found) {
		flights_remove(s, (*slot)->req);
		subscription_destroy(&s->subs, slot);
	}
	pthread_mutex_unlock(&s->subs.lock);
	return found;
}

/* `{"resultType":"complete","_meta":{subscriptionId}}`: the form that a listen request ends with. */
static void send_end(struct server *s, const struct subscription *sub)
{
	struct buf *buf = out_begin(&s->out);

	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"id\":");
	jv_write(buf, sub->req->id);
	buf_lit(buf, ",\"result\":{\"resultType\":\"complete\",");
	write_meta(buf, sub);
	buf_lit(buf, "}}\n");
	out_end(&s->out, false);
}

void subs_release(struct server *s)
{
	struct subs *subs = &s->subs;

	if (subs->seen)
		store_events_unlisten(workspace_events(s->ws), subs->listener);
	while (subs->first) {
		if (subs->first->req) {
			flights_remove(s, subs->first->req);
			send_end(s, subs->first);
		}
		subscription_destroy(subs, &subs->first);
	}
	free(subs->seen);
}
