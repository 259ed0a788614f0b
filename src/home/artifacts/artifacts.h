/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifacts: large tool results parked as files under artifacts/ of the workspace, so that a model gets a preview and
 * an id instead of the whole. `<id>.txt|json|xml` holds the bytes, `<id>.meta.json` says where they come from. Ids have
 * the tool, the second (UTC) and 64 random bits, and are written on the condition that nothing is there. Everything is
 * read from the store, so it survives restarts and is seen by every process.
 */
#ifndef STEAD_HOME_ARTIFACTS_ARTIFACTS_H
#define STEAD_HOME_ARTIFACTS_ARTIFACTS_H

#include "base/ctx.h"
#include "store/store.h"
#include "text/jv.h"
#include "text/tokens.h"
#include "workspace/workspace.h"

struct artifacts;

/* The key `tool_offload` of agent.yaml. */
struct offload_config {
	bool enabled;
	uint64_t threshold_tokens, threshold_bytes, max_preview_tokens, max_preview_lines, retention_days;
};

void offload_read(const struct jv *document, struct offload_config *ret);

/* Those of an open workspace. */
struct artifacts *workspace_artifacts(struct workspace *ws);
/* `home` is the whole workspace (workspace_home); both are borrowed. */
struct artifacts *artifacts_new(struct store *home, const struct offload_config *offload);
void artifacts_destroy(struct artifacts *artifacts);
struct store *artifacts_store(struct artifacts *artifacts);

/* True when the text is over a threshold of the configuration, and parking is enabled. */
bool artifacts_too_large(const struct artifacts *artifacts, struct str text);

struct parked {
	struct str id;
	struct str preview;
	uint64_t tokens, bytes, preview_tokens;
	uint64_t lines_left; /* lines of the text that the preview leaves out */
};

/* Parks the text. `args` (what the tool was called with) may be NULL. */
int artifacts_park(struct artifacts *artifacts, struct ctx *ctx, struct str tool_name, const struct jv *args,
		   struct str text, struct parked *ret, struct err *err);

/* A result for a model: when it is too large it is parked, and *text becomes the block that says so, with a preview. */
int artifacts_offload(struct artifacts *artifacts, struct ctx *ctx, struct str tool_name, const struct jv *args,
		      struct str *text, struct err *err);

struct artifact {
	struct str id;
	struct str file; /* name in artifacts/ */
	int64_t time_ns;
	uint64_t size;
};

/* All artifacts, newest first, without reading any. */
int artifacts_list(struct artifacts *artifacts, struct ctx *ctx, struct artifact **ret_list, size_t *ret_count,
		   struct err *err);
/* By id or any unambiguous beginning of one. */
int artifacts_find(struct artifacts *artifacts, struct ctx *ctx, struct str id, struct wpath *ret_path,
		   struct str *ret_id, struct err *err);
/* The side file's object, or NULL when it is missing or broken. */
const struct jv *artifacts_meta(struct artifacts *artifacts, struct ctx *ctx, struct str id);
/* Removes what is older than the retention; does nothing when it ran within the last hour. */
void artifacts_sweep(struct artifacts *artifacts, struct ctx *ctx);

/* The block that tells a model what was parked. */
void parked_block(struct buf *text, struct str tool_name, const struct parked *parked);

#endif
