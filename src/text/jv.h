/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values in an arena. Parsing is strict and bounded and refuses duplicate keys. A 100 KiB string that is already
 * in memory is not copied on its way out: a string value borrows the bytes it was made from. YAML documents become the
 * same values, with line numbers.
 *
 * Accessors take NULL (an absent value) and give the neutral answer, so `jv_get_str(args, "path")` needs no check.
 */
#ifndef STEAD_TEXT_JV_H
#define STEAD_TEXT_JV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum jv_type { JV_NULL, JV_BOOL, JV_INT, JV_REAL, JV_STR, JV_ARRAY, JV_OBJECT };

struct jv_member;

struct jv {
	enum jv_type type;
	unsigned line : 31;    /* 1-based line in the document it was read from; 0: unknown */
	unsigned from_env : 1; /* ${NAME} was filled in: messages do not show it */
	union {
		bool b;
		int64_t i;
		double d;
		struct str s; /* borrowed, UTF-8 */
		struct {
			struct jv_member *first, *last;
			size_t count;
		} items; /* JV_ARRAY and JV_OBJECT, in order */
	} u;
};

struct jv_member {
	struct str key; /* empty in an array */
	unsigned key_line;
	struct jv *value;
	struct jv_member *next;
};

/* `for (const struct jv_member *m = jv_first(v); m; m = m->next)` */
static inline const struct jv_member *jv_first(const struct jv *v)
{
	return v && (v->type == JV_ARRAY || v->type == JV_OBJECT) ? v->u.items.first : NULL;
}

size_t jv_count(const struct jv *v);
/* The member's value, or NULL. */
const struct jv *jv_get(const struct jv *object, const char *key);
const struct jv *jv_get_key(const struct jv *object, struct str key);
const struct jv *jv_at(const struct jv *array, size_t index);

/* Typed look-ups with a default for an absent (or null) member. A value of another type also gives the default: the
   schema was checked before. */
struct str jv_get_str(const struct jv *object, const char *key);
int64_t jv_get_int(const struct jv *object, const char *key, int64_t fallback);
bool jv_get_bool(const struct jv *object, const char *key, bool fallback);
bool jv_is_null(const struct jv *v);      /* NULL or JV_NULL */
struct str jv_str_of(const struct jv *v); /* the string, or STR_NONE */

/* Building. Strings are borrowed: the bytes must outlive the value. They must be UTF-8 (the writer replaces what is
 * not). */
struct jv *jv_null(struct arena *arena);
struct jv *jv_bool(struct arena *arena, bool b);
struct jv *jv_int(struct arena *arena, int64_t i);
struct jv *jv_real(struct arena *arena, double d);
struct jv *jv_str(struct arena *arena, struct str s);
struct jv *jv_array(struct arena *arena);
struct jv *jv_object(struct arena *arena);
void jv_push(struct arena *arena, struct jv *array, struct jv *value);
/* Adds an empty member at the end, without a look at the keys that are there: for parsers. */
struct jv_member *jv_add(struct arena *arena, struct jv *container);
/* Adds or replaces; `key` is borrowed. */
void jv_set(struct arena *arena, struct jv *object, const char *key, struct jv *value);
void jv_set_key(struct arena *arena, struct jv *object, struct str key, struct jv *value);
void jv_remove(struct jv *object, const char *key);
/* Shorthand: jv_set(…, jv_str(…)) and so on. */
void jv_set_str(struct arena *arena, struct jv *object, const char *key, struct str s);
void jv_set_int(struct arena *arena, struct jv *object, const char *key, int64_t i);
void jv_set_bool(struct arena *arena, struct jv *object, const char *key, bool b);
/* A copy that shares nothing with `v`: it may be changed, and outlives it. */
struct jv *jv_copy(struct arena *arena, const struct jv *v);
bool jv_equal(const struct jv *a, const struct jv *b);

/* One JSON document in `text` and nothing after it. Errors name line and column. Strings are copied to the arena. */
int jv_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err);
/* Compact, one line. Malformed UTF-8 in a string becomes U+FFFD. */
void jv_write(struct buf *buf, const struct jv *v);
/* Indented by two spaces, newline at the end. */
void jv_write_pretty(struct buf *buf, const struct jv *v);
/* One JSON string with quotes. */
void jv_write_string(struct buf *buf, struct str s);

#endif
