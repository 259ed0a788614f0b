/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strmap.h"

#include "base/hash.h"

struct slot {
	struct str key; /* ptr NULL: free */
	uint64_t hash;
	size_t value;
};

struct strmap {
	struct arena *arena;
	struct slot *slots;
	size_t cap, count;
};

size_t strmap_count(const struct strmap *map)
{
	return map->count;
}

struct strmap *strmap_new(struct arena *arena)
{
	struct strmap *map = ARENA_NEW(arena, struct strmap);

	map->arena = arena;
	map->cap = 64;
	map->slots = ARENA_ARRAY(arena, struct slot, map->cap);
	return map;
}

static struct slot *probe(struct slot *slots, size_t cap, struct str key, uint64_t hash)
{
	size_t i = hash & (cap - 1);

	while (slots[i].key.ptr && !(slots[i].hash == hash && str_eq(slots[i].key, key)))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void grow(struct strmap *map)
{
	size_t cap = map->cap * 2;
	struct slot *slots = ARENA_ARRAY(map->arena, struct slot, cap);

	for (size_t i = 0; i < map->cap; i++)
		if (map->slots[i].key.ptr)
			*probe(slots, cap, map->slots[i].key, map->slots[i].hash) = map->slots[i];
	map->slots = slots;
	map->cap = cap;
}

size_t *strmap_put(struct strmap *map, struct str key, bool *ret_added)
{
	uint64_t hash = hash_u64(key, 0);
	struct slot *slot;

	if (map->count * 2 >= map->cap)
		grow(map);
	if (!key.ptr)
		key.ptr = "";
	slot = probe(map->slots, map->cap, key, hash);
	if (ret_added)
		*ret_added = !slot->key.ptr;
	if (!slot->key.ptr) {
		*slot = (struct slot){.key = key, .hash = hash};
		map->count++;
	}
	return &slot->value;
}

size_t *strmap_find(struct strmap *map, struct str key)
{
	struct slot *slot = probe(map->slots, map->cap, key, hash_u64(key, 0));

	return slot->key.ptr ? &slot->value : NULL;
}
