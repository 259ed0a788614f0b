/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that dies together. What a call parses, lists, reads or formats lives in its arena; nothing is freed one by
 * one. When memory runs out, the process ends (base/fatal.h): in exchange every size that an outsider decides is
 * bounded before it reaches an allocation (base/limits.h). Under AddressSanitizer each allocation is its own block. An
 * arena belongs to one thread at a time.
 */
#ifndef STEAD_BASE_ARENA_H
#define STEAD_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena;

/* For a program, before its first thread: memory that is freed goes back to the system. By default the C library keeps
   what the largest call needed, in each thread. */
void arena_give_back(void);
struct arena *arena_new(void);
void arena_destroy(struct arena *arena);
/* Frees all allocations but keeps one block for the next call. */
void arena_reset(struct arena *arena);
/* Bytes of its blocks. */
size_t arena_size(const struct arena *arena);

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
/* Not zeroed. */
void *arena_alloc_raw(struct arena *arena, size_t size);
/* Grows `old` (may be NULL); in place when it was the last allocation. Never shrinks. The new part is not zeroed. */
void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size);
/* A copy; the copy is NUL-terminated after its length. */
struct str arena_str(struct arena *arena, struct str s);
const char *arena_cstr(struct arena *arena, struct str s);
__attribute__((format(printf, 2, 3))) struct str arena_printf(struct arena *arena, const char *fmt, ...);

#define ARENA_NEW(arena, type)      ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_alloc_array((arena), sizeof(type), (n)))
void *arena_alloc_array(struct arena *arena, size_t size, size_t n);

/* malloc and friends that end the program when memory is gone. Long-lived owners use these with free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrndup(struct str s);

/* Makes room for one more element after the `count` in an array with room for `cap`, which doubles. */
#define ARENA_ROOM(arena, array, count, cap)                                                                           \
	ROOM(array, count, cap, arena_grow((arena), (array), size_, 2 * size_ + new_))
#define HEAP_ROOM(array, count, cap) ROOM(array, count, cap, xrealloc((array), 2 * size_ + new_))
#define ROOM(array, count, cap, grown)                                                                                 \
	do {                                                                                                           \
		if ((count) == (cap)) {                                                                                \
			size_t size_ = (cap) * sizeof(*(array)), new_ = size_ ? 0 : 16 * sizeof(*(array));             \
			(array) = (grown);                                                                             \
			(cap) = (cap) ? 2 * (cap) : 16;                                                                \
		}                                                                                                      \
	} while (0)

/* `ARENA_SCOPE struct arena *a = arena_new();` */
static inline void arena_cleanup(struct arena **arena)
{
	if (*arena)
		arena_destroy(*arena);
}
#define ARENA_SCOPE __attribute__((cleanup(arena_cleanup)))

#endif
