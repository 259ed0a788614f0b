/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads: files that people send, kept as uploads/YYYY-MM-DD/<safe name> (the date in the workspace's zone), and next
 * to each, when a converter is configured for it, its text. A failed or missing converter is reported; the file is kept
 * all the same.
 */
#ifndef STEAD_HOME_UPLOADS_UPLOADS_H
#define STEAD_HOME_UPLOADS_UPLOADS_H

#include "command/command.h"
#include "text/jv.h"
#include "workspace/workspace.h"

struct upload {
	struct str name;      /* as the sender calls it: anything */
	struct str mime;      /* empty: by the name */
	uint64_t size;        /* of the source; more is not taken */
	struct source source; /* must be able to start again (bytes, or `rewind`) */
};

/* What it is called here: small letters, digits, '_', '-', one dot before the ending; never empty, never a path. */
struct str upload_safe_name(struct arena *arena, struct str name, struct str mime);

/* {path, name, original_name, size, mime, text?: {path, size}, note?, receipt}. ERR_TOO_LARGE over uploads.max_size. */
int upload_save(struct workspace *ws, struct ctx *ctx, const struct upload *upload, struct jv **ret, struct err *err);
/* {files: [{path, size, modified}], next?}: newest day first; `day` (YYYY-MM-DD) or empty: all. */
int upload_list(struct workspace *ws, struct ctx *ctx, struct str day, size_t limit, struct jv **ret, struct err *err);
/* A path below uploads/ (with or without that prefix) as a path of the home. */
int upload_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err);

extern const struct command uploads_commands[];

#endif
