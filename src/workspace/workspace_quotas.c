/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a workspace: what its files, their history and its kept sandboxes may take, in all and for each user.
 *
 * The quota layer counts present files by itself. What else takes space is asked for here: history knows what it
 * keeps, and what is kept of sandboxes is listed at most once a minute. All handles of a user share one counted part,
 * which belongs to the workspace that was opened first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/list_stream.h"
#include "workspace/workspace_internal.h"

/* What history keeps in addition to the files. A sum that cannot be brought up to date stays as it was. */
static uint64_t past_bytes(struct store *revisions, struct rev_past *past, bool again)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err ignored;

	revisions_past(revisions, &ctx, again, past, &ignored);
	return past->bytes;
}

static uint64_t own_kept_bytes(void *arg, bool again)
{
	struct workspace *ws = arg;

	return past_bytes(ws->recorded, &ws->own_past, again);
}

#define SNAPSHOTS_NS (60 * NS_PER_S) /* another process may have saved one */

/* What is kept of sandboxes, in all. */
static uint64_t snapshot_bytes(struct workspace *ws, bool again)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	LIST_PAGES_SCOPE struct list_pages pages = {.store = ws->raw,
						    .dir = {STR(".stead/sandbox")},
						    .req = {.recursive = true, .limit = STORE_PAGE_MAX},
						    .ctx = {.arena = arena}};
	int64_t now = clock_monotonic_ns(), at = atomic_load(&ws->snapshots_at_ns);
	uint64_t bytes = 0;
	struct err ignored;

	if (!again && at && now - at < SNAPSHOTS_NS)
		return atomic_load(&ws->snapshots);
	while (list_pages_next(&pages, &ignored) > 0)
		for (size_t i = 0; i < pages.page.count; i++)
			bytes += pages.page.entries[i].stat.size;
	atomic_store(&ws->snapshots, bytes);
	atomic_store(&ws->snapshots_at_ns, now);
	return bytes;
}

static uint64_t all_kept_bytes(void *arg, bool again)
{
	struct workspace *ws = arg;

	return past_bytes(ws->shared, &ws->past, again) + snapshot_bytes(ws, again);
}

/* What history keeps of a user's files. */
static uint64_t user_kept_bytes(void *arg, bool again)
{
	struct user_part *part = arg;

	return past_bytes(part->revisions, &part->past, again);
}

static struct store *new_part(struct workspace *first, struct wpath dir)
{
	const struct config_quota *quota = &first->config.quota;
	struct quota_limits limits = {
		.bytes = quota->user_bytes, .files = quota->user_files, .whose = "the user's", .skips_own = true};
	struct user_part *part = xcalloc(1, sizeof *part);

	part->dir = part->past.dir = (struct wpath){arena_str(first->arena, dir.s)};
	part->revisions = first->shared;
	part->store = store_quota_new(store_prefix_new(store_share(first->counted), part->dir), limits);
	store_quota_count_kept(part->store, user_kept_bytes, part, REV_RECORD_BYTES);
	part->next = first->parts;
	first->parts = part;
	return part->store;
}

struct store *workspace_user_part(const struct workspace *ws)
{
	struct workspace *first = (struct workspace *)(ws->of ? ws->of : ws);
	struct store *found = NULL;

	if (!first->config.quota.user_bytes && !first->config.quota.user_files)
		return store_prefix_new(store_share(first->counted), ws->user_dir);
	pthread_mutex_lock(&first->parts_lock);
	for (const struct user_part *p = first->parts; p && !found; p = p->next)
		if (wpath_eq(p->dir, ws->user_dir))
			found = p->store;
	if (!found)
		found = new_part(first, ws->user_dir);
	pthread_mutex_unlock(&first->parts_lock);
	return store_share(found);
}

void workspace_user_parts_end(struct workspace *ws)
{
	while (ws->parts) {
		struct user_part *part = ws->parts;

		ws->parts = part->next;
		store_destroy(part->store);
		free(part);
	}
}

struct store *workspace_counted_new(struct workspace *ws)
{
	const struct config_quota *quota = &ws->config.quota;
	struct quota_limits limits = {
		.bytes = quota->bytes, .files = quota->files, .file_size = quota->file_size, .skips_own = true};
	struct store *counted = store_quota_new(store_share(ws->shared), limits);

	store_quota_count_kept(counted, all_kept_bytes, ws, REV_RECORD_BYTES);
	return counted;
}

struct store *workspace_own_limits(struct workspace *ws, struct store *files)
{
	const struct config_quota *quota = &ws->config.quota;
	struct store *bounded = store_quota_new(files, (struct quota_limits){.bytes = quota->bytes,
									     .files = quota->files,
									     .file_size = quota->file_size,
									     .whose = "the directory's"});

	store_quota_count_kept(bounded, own_kept_bytes, ws, REV_RECORD_BYTES);
	return bounded;
}
