/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of blocks, bumped. Blocks double up to 1 MiB; a large request gets a block of its own. The largest block of a
 * moderate size is kept by arena_reset(), so that a served call allocates nothing from the system: giving 200 KiB back
 * and getting them again costs more in page faults than reading a file into them.
 */
#include "base/arena.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fatal.h"

#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

#define BLOCK_FIRST ((size_t)16 * 1024)
#define BLOCK_MOST  ((size_t)1024 * 1024)
#define BLOCK_KEEP  ((size_t)512 * 1024)
#define ALIGN       ((size_t)16)

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(16) char bytes[];
};

struct arena {
	struct block *head; /* the block being bumped; older ones follow it */
	size_t next_size;
};

static _Noreturn void out_of_memory(size_t size)
{
	fatal("out of memory (%zu bytes wanted)", size);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory(n * size);
	return p;
}

void *xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

char *xstrndup(struct str s)
{
	char *p = xmalloc(s.len + 1);

	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return p;
}

void arena_give_back(void)
{
	/* Fixed, or they would grow with every large block that is freed. Small calls make no system calls all the
	   same: an arena that is used again keeps a block. */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 512 * 1024);
}

size_t arena_size(const struct arena *arena)
{
	size_t size = 0;

	for (const struct block *b = arena->head; b; b = b->next)
		size += b->size;
	return size;
}

struct arena *arena_new(void)
{
	struct arena *arena = xcalloc(1, sizeof(*arena));

	arena->next_size = BLOCK_FIRST;
	return arena;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
}

void arena_destroy(struct arena *arena)
{
	if (!arena)
		return;
	free_blocks(arena->head);
	free(arena);
}

void arena_reset(struct arena *arena)
{
	struct block *keep = NULL;

	for (struct block *b = arena->head; b && !EACH_ALONE; b = b->next)
		if (b->size <= BLOCK_KEEP && (!keep || b->size > keep->size))
			keep = b;
	while (arena->head) {
		struct block *next = arena->head->next;

		if (arena->head != keep)
			free(arena->head);
		arena->head = next;
	}
	if (keep) {
		keep->used = 0;
		keep->next = NULL;
	}
	arena->head = keep;
	arena->next_size = BLOCK_FIRST;
}

static struct block *add_block(struct arena *arena, size_t size)
{
	struct block *block;

	if (!EACH_ALONE && size < arena->next_size) {
		size = arena->next_size;
		if (arena->next_size < BLOCK_MOST)
			arena->next_size *= 2;
	}
	if (size > SIZE_MAX - sizeof(*block))
		out_of_memory(size);
	block = xmalloc(sizeof(*block) + size);
	block->size = size;
	block->used = 0;
	block->next = arena->head;
	arena->head = block;
	return block;
}

void *arena_alloc_raw(struct arena *arena, size_t size)
{
	struct block *block = arena->head;
	size_t room = size > SIZE_MAX - ALIGN ? size : (size + ALIGN - 1) & ~(ALIGN - 1);
	void *p;

	if (EACH_ALONE || !block || block->size - block->used < room)
		block = add_block(arena, EACH_ALONE ? (size ? size : 1) : room);
	p = block->bytes + block->used;
	block->used += EACH_ALONE ? block->size : room;
	return p;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *p = arena_alloc_raw(arena, size);

	memset(p, 0, size);
	return p;
}

void *arena_alloc_array(struct arena *arena, size_t size, size_t n)
{
	size_t total;

	if (__builtin_mul_overflow(size, n, &total))
		out_of_memory(SIZE_MAX);
	return arena_alloc(arena, total);
}

void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size)
{
	struct block *block = arena->head;
	size_t old_room = (old_size + ALIGN - 1) & ~(ALIGN - 1);
	size_t new_room = (new_size + ALIGN - 1) & ~(ALIGN - 1);
	void *p;

	if (!EACH_ALONE && old && block && (char *)old + old_room == block->bytes + block->used &&
	    block->size - block->used >= new_room - old_room) {
		block->used += new_room - old_room;
		return old;
	}
	p = arena_alloc_raw(arena, new_size);
	if (old)
		memcpy(p, old, old_size);
	return p;
}

struct str arena_str(struct arena *arena, struct str s)
{
	char *p = arena_alloc_raw(arena, s.len + 1);

	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return (struct str){p, s.len};
}

const char *arena_cstr(struct arena *arena, struct str s)
{
	return arena_str(arena, s).ptr;
}

struct str arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	int n;
	char *p;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	p = arena_alloc_raw(arena, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return (struct str){p, (size_t)n};
}
