/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cap needs a count, and counting walks a directory: so the stores that count are kept for as long as the workspace
 * is open, those of the most recent items. The lines of lists are kept by path and version; when there are too many,
 * all of them go, and the next lists fill them in again.
 */
#include "home/board/board_state.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "home/board/board_internal.h"

#define LINES      16384 /* a power of two */
#define LINES_MAX  (16 * MIB)
#define STORES_MAX 64

struct line {
	uint64_t key; /* of path and version; 0: free */
	char *text;
	size_t len;
};

struct counted {
	char *dir;
	struct store *store;
	uint64_t used;
};

struct board_state {
	pthread_mutex_t lock;
	struct workspace *ws;
	struct line *lines;
	size_t line_bytes;
	struct store *all; /* boards/ within the cap of the workspace */
	struct quota_limits of_item;
	struct counted stores[STORES_MAX];
	uint64_t clock;
};

static uint64_t size_of(struct workspace *ws, const char *key, uint64_t fallback)
{
	const struct jv *own = jv_get(jv_get(workspace_config(ws)->document, "boards"), key);
	uint64_t size;

	return config_size(own, fallback, &size) ? size : fallback;
}

void *board_state_new(struct workspace *ws)
{
	struct board_state *s = xcalloc(1, sizeof(*s));
	struct quota_limits limits = {.bytes = size_of(ws, "bytes", 0)};

	pthread_mutex_init(&s->lock, NULL);
	s->ws = ws;
	s->of_item = (struct quota_limits){.bytes = size_of(ws, "item_bytes", (uint64_t)1024 * MIB),
					   .files = size_of(ws, "item_files", 10000),
					   .file_size = size_of(ws, "file_size", 0)};
	s->all = store_quota_new(store_prefix_new(store_share(workspace_home(ws)), (struct wpath){STR("boards")}),
				 limits);
	return s;
}

static void forget_lines(struct board_state *s)
{
	for (size_t i = 0; s->lines && i < LINES; i++)
		free(s->lines[i].text);
	free(s->lines);
	s->lines = NULL;
	s->line_bytes = 0;
}

void board_state_destroy(void *state)
{
	struct board_state *s = state;

	forget_lines(s);
	for (size_t i = 0; i < STORES_MAX; i++) {
		store_destroy(s->stores[i].store);
		free(s->stores[i].dir);
	}
	store_destroy(s->all);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* --- lines --- */

static uint64_t line_key(struct str path, struct str version)
{
	return hash_u64(version, hash_u64(path, 0)) | 1;
}

/* Where a key is or would be: two records may want the same place, and the newer one gets it. */
static struct line *line_at(struct board_state *s, uint64_t key)
{
	return &s->lines[(key >> 8) & (LINES - 1)];
}

struct str board_state_find(struct board_state *s, struct arena *arena, struct str path, struct str version)
{
	uint64_t key = line_key(path, version);
	struct str text = STR_NONE;

	if (!version.len)
		return text;
	pthread_mutex_lock(&s->lock);
	if (s->lines && line_at(s, key)->key == key)
		text = arena_str(arena, str_n(line_at(s, key)->text, line_at(s, key)->len));
	pthread_mutex_unlock(&s->lock);
	return text;
}

void board_state_keep(struct board_state *s, struct str path, struct str version, struct str text)
{
	uint64_t key = line_key(path, version);
	struct line *line;

	if (!version.len)
		return;
	pthread_mutex_lock(&s->lock);
	if (s->line_bytes + text.len > LINES_MAX)
		forget_lines(s);
	if (!s->lines)
		s->lines = xcalloc(LINES, sizeof(*s->lines));
	line = line_at(s, key);
	s->line_bytes -= line->len;
	free(line->text);
	*line = (struct line){key, xstrndup(text), text.len};
	s->line_bytes += text.len;
	pthread_mutex_unlock(&s->lock);
}

/* --- stores that count --- */

struct store *board_state_task(struct board_state *s, struct ctx *ctx, struct wpath dir)
{
	struct counted *place = &s->stores[0];
	struct store *found = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < STORES_MAX && !found; i++) {
		if (s->stores[i].store && str_is(dir.s, s->stores[i].dir)) {
			place = &s->stores[i];
			found = place->store;
		} else if (s->stores[i].used < place->used) {
			place = &s->stores[i];
		}
	}
	if (!found) {
		store_destroy(place->store);
		free(place->dir);
		place->dir = xstrndup(dir.s);
		found = store_prefix_new(store_share(s->all),
					 (struct wpath){arena_str(ctx->arena, str_from(dir.s, strlen("boards/")))});
		found = place->store = store_quota_new(found, s->of_item);
	}
	place->used = ++s->clock;
	found = store_share(found);
	pthread_mutex_unlock(&s->lock);
	return found;
}
