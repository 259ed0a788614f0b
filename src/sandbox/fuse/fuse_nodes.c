/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a view: the kernel names files by numbers, the store by paths. A number stays the same while the kernel
 * knows it, whatever the file is called. The inode number that programs see is made from the path, so that it is the
 * same in the next mount: git and make compare it.
 *
 * Nodes that the kernel has forgotten are kept, up to a number of them: they hold times that the store does not.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "sandbox/fuse/fuse_internal.h"

#define SLOTS_MIN 1024

static struct node *node_new(struct fuse_view *v, struct str path)
{
	struct node *n = xcalloc(1, sizeof *n);

	n->id = v->next_id++;
	n->path = xstrndup(path);
	n->path_len = path.len;
	n->path_hash = hash_u64(path, 0);
	n->fd = -1;
	pthread_mutex_init(&n->lock, NULL);
	v->node_count++;
	return n;
}

static void put_id(struct fuse_view *v, struct node *n)
{
	struct node **slot = &v->by_id[n->id & (v->slots - 1)];

	n->next_by_id = *slot;
	*slot = n;
}

static void put_path(struct fuse_view *v, struct node *n)
{
	struct node **slot = &v->by_path[n->path_hash & (v->slots - 1)];

	n->next_by_path = *slot;
	*slot = n;
}

static void take_path_out(struct fuse_view *v, struct node *n)
{
	struct node **at = &v->by_path[n->path_hash & (v->slots - 1)];

	while (*at != n)
		at = &(*at)->next_by_path;
	*at = n->next_by_path;
}

/* Twice the room. */
static void grow(struct fuse_view *v)
{
	struct node **old = v->by_id;
	size_t old_slots = v->slots;

	v->slots *= 2;
	free(v->by_path);
	v->by_id = xcalloc(v->slots, sizeof(struct node *));
	v->by_path = xcalloc(v->slots, sizeof(struct node *));
	for (size_t i = 0; i < old_slots; i++)
		for (struct node *n = old[i], *next; n; n = next) {
			next = n->next_by_id;
			put_id(v, n);
			if (n->path)
				put_path(v, n);
		}
	free(old);
}

void nodes_init(struct fuse_view *v)
{
	struct node *root;

	pthread_mutex_init(&v->table, NULL);
	v->slots = SLOTS_MIN;
	v->by_id = xcalloc(v->slots, sizeof(struct node *));
	v->by_path = xcalloc(v->slots, sizeof(struct node *));
	v->next_id = FUSE_ROOT_ID;
	root = node_new(v, STR(""));
	root->lookups = 1;
	root->is_dir = root->is_known = true;
	put_id(v, root);
	put_path(v, root);
}

static void node_destroy(struct fuse_view *v, struct node *n)
{
	node_drop_bytes(v, n);
	stage_drop(n);
	listing_destroy(n->listing);
	pthread_mutex_destroy(&n->lock);
	free(n->path);
	free(n->version);
	free(n);
	v->node_count--;
}

void nodes_release(struct fuse_view *v)
{
	for (size_t i = 0; i < v->slots; i++)
		for (struct node *n = v->by_id[i], *next; n; n = next) {
			next = n->next_by_id;
			node_destroy(v, n);
		}
	free(v->by_id);
	free(v->by_path);
	pthread_mutex_destroy(&v->table);
}

static struct node *by_id_locked(struct fuse_view *v, uint64_t id)
{
	struct node *n = v->by_id[id & (v->slots - 1)];

	while (n && n->id != id)
		n = n->next_by_id;
	return n;
}

struct node *node_by_id(struct fuse_view *v, uint64_t id)
{
	struct node *n;

	pthread_mutex_lock(&v->table);
	n = by_id_locked(v, id);
	pthread_mutex_unlock(&v->table);
	return n;
}

struct node *node_find_locked(struct fuse_view *v, struct str path)
{
	uint64_t hash = hash_u64(path, 0);
	struct node *n = v->by_path[hash & (v->slots - 1)];

	while (n && (n->path_hash != hash || !str_eq(str_n(n->path, n->path_len), path)))
		n = n->next_by_path;
	return n;
}

struct node *node_take_locked(struct fuse_view *v, struct str path)
{
	struct node *n = node_find_locked(v, path);

	if (!n) {
		if (v->node_count >= v->slots)
			grow(v);
		n = node_new(v, path);
		put_id(v, n);
		put_path(v, n);
	} else if (!n->lookups && v->forgotten) {
		v->forgotten--;
	}
	n->lookups++;
	return n;
}

bool node_set_locked(struct node *n, const struct store_stat *stat)
{
	bool differs = !str_eq(str_of(n->version), stat->version), was_known = n->is_known;

	if (differs) {
		n->own_mtime_ns = 0;
		free(n->version);
		n->version = stat->version.len ? xstrndup(stat->version) : NULL;
	}
	n->is_dir = stat->kind == STORE_DIR;
	if (!n->is_staged)
		n->size = stat->size;
	n->mtime_ns = stat->mtime_ns;
	n->mode = stat->mode;
	n->is_known = true;
	return differs && was_known;
}

void node_extra_locked(struct fuse_view *v, struct node *n, bool is_extra)
{
	if (is_extra == (n->extra_at != NULL))
		return;
	if (is_extra) {
		n->next_extra = v->extras;
		if (v->extras)
			v->extras->extra_at = &n->next_extra;
		v->extras = n;
		n->extra_at = &v->extras;
		return;
	}
	*n->extra_at = n->next_extra;
	if (n->next_extra)
		n->next_extra->extra_at = n->extra_at;
	n->extra_at = NULL;
}

void node_unname_locked(struct fuse_view *v, struct node *n)
{
	if (!n->path)
		return;
	take_path_out(v, n);
	node_extra_locked(v, n, false);
	n->is_made = n->is_new = false;
	free(n->path);
	n->path = NULL;
}

static void rename_one(struct fuse_view *v, struct node *n, struct str to)
{
	struct node *there = node_find_locked(v, to);

	if (there && there != n)
		node_unname_locked(v, there);
	take_path_out(v, n);
	free(n->path);
	n->path = xstrndup(to);
	n->path_len = to.len;
	n->path_hash = hash_u64(to, 0);
	put_path(v, n);
}

/* What is below a directory moves with it. */
void node_rename_locked(struct fuse_view *v, struct node *n, struct str to)
{
	struct arena *arena = arena_new();
	struct str from = arena_str(arena, str_n(n->path, n->path_len));

	rename_one(v, n, to);
	for (size_t i = 0; n->is_dir && i < v->slots; i++)
		for (struct node *m = v->by_id[i]; m; m = m->next_by_id)
			if (m->path && m->path_len > from.len && m->path[from.len] == '/' &&
			    memcmp(m->path, from.ptr, from.len) == 0)
				rename_one(v, m, arena_printf(arena, "%.*s%s", STR_ARG(to), m->path + from.len));
	arena_destroy(arena);
}

/* One that nothing needs goes. */
static void forget_one(struct fuse_view *v, struct node *n)
{
	struct node **at = &v->by_id[n->id & (v->slots - 1)];

	if (n->stage || n->is_made || n->is_new || n->id == FUSE_ROOT_ID)
		return;
	if (n->path && v->forgotten < FUSE_NODES_KEPT) {
		v->forgotten++;
		return;
	}
	while (*at != n)
		at = &(*at)->next_by_id;
	*at = n->next_by_id;
	if (n->path)
		take_path_out(v, n);
	node_destroy(v, n);
}

void node_forget(struct fuse_view *v, uint64_t id, uint64_t count)
{
	struct node *n;

	pthread_mutex_lock(&v->table);
	n = by_id_locked(v, id);
	if (n && n->lookups) {
		n->lookups -= count < n->lookups ? count : n->lookups;
		if (!n->lookups)
			forget_one(v, n);
	}
	pthread_mutex_unlock(&v->table);
}

bool node_path(struct fuse_view *v, struct arena *arena, struct node *n, struct wpath *ret)
{
	bool has;

	pthread_mutex_lock(&v->table);
	has = n->path != NULL;
	if (has)
		ret->s = arena_str(arena, str_n(n->path, n->path_len));
	pthread_mutex_unlock(&v->table);
	return has;
}

void node_attr_locked(struct fuse_view *v, struct node *n, struct fuse_attr *ret)
{
	int64_t at = n->own_mtime_ns ? n->own_mtime_ns : n->mtime_ns ? n->mtime_ns : v->started_ns;
	uint64_t size = n->is_dir ? 0 : n->size;
	uint64_t seconds = (uint64_t)(at / NS_PER_S);
	uint32_t part = (uint32_t)(at % NS_PER_S);

	*ret = (struct fuse_attr){.ino = n->id == FUSE_ROOT_ID ? FUSE_ROOT_ID : n->path_hash | 2,
				  .size = size,
				  .blocks = (size + 511) / 512,
				  .atime = seconds,
				  .mtime = seconds,
				  .ctime = seconds,
				  .atimensec = part,
				  .mtimensec = part,
				  .ctimensec = part,
				  .nlink = n->is_dir ? 2
					   : n->path ? 1
						     : 0,
				  .uid = v->opts.uid,
				  .gid = v->opts.gid,
				  .blksize = 4096};
	ret->mode = n->is_dir ? S_IFDIR | 0755 : S_IFREG | (n->mode ? n->mode & 0777 : 0644);
}

void nodes_keep_above(struct fuse_view *v, struct wpath path)
{
	pthread_mutex_lock(&v->table);
	for (struct wpath up = wpath_parent(path); !wpath_is_root(up); up = wpath_parent(up)) {
		struct node *n = node_find_locked(v, up.s);

		if (!n) {
			n = node_take_locked(v, up.s);
			n->lookups = 0;
			v->forgotten++;
		}
		n->is_dir = n->is_known = n->is_made = true;
		node_extra_locked(v, n, true);
	}
	pthread_mutex_unlock(&v->table);
}

void node_drop_bytes(struct fuse_view *v, struct node *n)
{
	if (n->fd >= 0) {
		close(n->fd);
		atomic_fetch_sub(&v->fds, 1);
	}
	n->fd = -1;
	if (n->ahead)
		atomic_fetch_sub(&v->ahead_bytes, n->ahead_len);
	free(n->ahead);
	n->ahead = NULL;
	n->ahead_len = 0;
}
