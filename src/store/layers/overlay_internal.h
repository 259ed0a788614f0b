/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the overlay share; overlay.c explains it. */
#ifndef STEAD_STORE_LAYERS_OVERLAY_INTERNAL_H
#define STEAD_STORE_LAYERS_OVERLAY_INTERNAL_H

#include <pthread.h>

#include "base/limits.h"
#include "store/stores.h"

struct overlay_memory;

struct overlay {
	struct store base; /* inner is upper */
	struct store *upper, *lower;
	struct str mark;      /* WHITEOUT, or the name used instead */
	pthread_mutex_t lock; /* held from looking at what lower shows until the change that relies on it is made */
	bool lower_is_fixed;
	struct overlay_memory *memory; /* NULL: upper is on this machine, where to ask costs little */
};

/* What is at a path. kind 0: nothing. */
struct found {
	enum store_kind kind;
	bool in_lower;
	struct store_stat stat;
};

static inline struct overlay *overlay_of(struct store *s)
{
	return (struct overlay *)s;
}

/* overlay.c */
int overlay_refuse_reserved(const struct overlay *o, struct wpath path, struct err *err);
bool overlay_is_reserved(const struct overlay *o, struct str path);
struct str overlay_lower_version(struct arena *arena, struct str version);
struct str overlay_upper_version(struct arena *arena, struct str version);
int overlay_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, const struct sink *sink,
		 struct store_stat *ret_stat, struct err *err);
int overlay_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat, struct err *err);

/* overlay_cover.c: what upper hides of lower. */

/* How old the answer may be. For an upper store on this machine it is always of now. */
enum cover_age {
	COVER_KNOWN,  /* a first look that COVER_NOW will follow */
	COVER_RECENT, /* changes by other processes may be missing for COVER_RECENT_NS */
	COVER_NOW,
};
#define COVER_RECENT_NS (INT64_C(1000) * 1000 * 1000)

struct overlay_memory *overlay_memory_new(void);
void overlay_memory_destroy(struct overlay_memory *memory);

/* The stat of a path in one of the two stores; kind 0: there is nothing. */
int overlay_find_in(struct store *in, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err);
/* The same for lower, which is asked once for each path if it never changes and is far away. */
int overlay_find_below(struct overlay *o, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err);
/* Remembers what lower has; kind 0: nothing. */
void overlay_note_below(struct overlay *o, struct wpath path, const struct store_stat *stat);
/* False: it is not remembered. */
bool overlay_recall_below(struct overlay *o, struct ctx *ctx, struct wpath path, struct store_stat *ret);
/* Whiteouts are fetched before they are used again. */
void overlay_forget_covers(struct overlay *o);
int overlay_put_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, struct err *err);
void overlay_drop_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path);
int overlay_has_whiteout(struct overlay *o, struct ctx *ctx, struct wpath path, bool *ret, struct err *err);
/* Whether lower's entry at `path` is covered: by a whiteout on it or above, by a file of upper on it or above, or (a
   file) by a directory of upper. *ret_clear: there are no whiteouts below it either. */
int overlay_is_covered(struct overlay *o, struct ctx *ctx, struct wpath path, enum store_kind kind, enum cover_age age,
		       bool *ret, bool *ret_clear, struct err *err);
/* What lower shows at `path`; *ret_kind: what it has there, shown or not. */
int overlay_find_lower(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct found *ret,
		       enum store_kind *ret_kind, struct err *err);
/* What shows at `path`. */
int overlay_find(struct overlay *o, struct ctx *ctx, struct wpath path, enum cover_age age, struct found *ret,
		 struct err *err);
/* Whether any file below lower's directory shows. */
int overlay_shows_below(struct overlay *o, struct ctx *ctx, struct wpath dir, enum cover_age age, bool *ret,
			struct err *err);

/* overlay_list.c */
int overlay_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		 struct store_page *ret_page, struct err *err);
/* One page of upper's list, without whiteouts. */
int overlay_list_upper(struct overlay *o, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		       struct store_page *ret_page, struct err *err);

/* overlay_scan.c */
int overlay_scan(struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err);

#endif
