/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of one path take effect in the order in which they came. Calls run on several threads, so without this the
 * second of two writes that a client sends without waiting could be made first. A change that finds an earlier one of
 * the same path in flight is held back, without a thread; the earlier one lets it go when it is done.
 *
 * Only equal paths are compared. Calls that depend on each other in another way (a write below a directory that is
 * being moved) are the client's to order: it waits for the answer of the first.
 */
#include "base/hash.h"
#include "mcp/server.h"
#include "store/wpath.h"

void order_add(struct request *req, struct str path)
{
	struct wpath parsed;
	struct err ignored;

	if (req->change_count == ORDER_PATHS || !path.len ||
	    workspace_path(req->server->ws, req->arena, path, &parsed, &ignored) != 0 || !parsed.s.len)
		return;
	/* equal hashes of two paths hold one of them back for nothing, and do no harm */
	req->changes[req->change_count++] = (struct order_path){.req = req, .hash = hash_u64(parsed.s, 4)};
}

bool order_enter(struct server *s, struct request *req)
{
	struct order *o = &s->order;
	bool may_run;

	if (!req->change_count)
		return true;
	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < req->change_count; i++) {
		struct order_path **slot = &o->bucket[req->changes[i].hash % ORDER_BUCKETS];

		for (; *slot; slot = &(*slot)->next)
			req->held_by += (*slot)->hash == req->changes[i].hash && (*slot)->req != req;
		*slot = &req->changes[i];
	}
	may_run = req->held_by == 0;
	pthread_mutex_unlock(&o->lock);
	return may_run;
}

struct request *order_leave(struct server *s, struct request *req)
{
	struct order *o = &s->order;
	struct request *released = NULL;

	if (!req->change_count)
		return NULL;
	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < req->change_count; i++) {
		struct order_path **slot = &o->bucket[req->changes[i].hash % ORDER_BUCKETS];

		while (*slot != &req->changes[i])
			slot = &(*slot)->next;
		*slot = req->changes[i].next;
		for (struct order_path *p = *slot; p; p = p->next)
			if (p->hash == req->changes[i].hash && p->req != req && --p->req->held_by == 0) {
				p->req->next_in_queue = released;
				released = p->req;
			}
	}
	pthread_mutex_unlock(&o->lock);
	return released;
}
