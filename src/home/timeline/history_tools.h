/* SPDX-License-Identifier: Apache-2.0 */
/* The history tools, and what read_file and the command line use of them. */
#ifndef STEAD_HOME_TIMELINE_HISTORY_TOOLS_H
#define STEAD_HOME_TIMELINE_HISTORY_TOOLS_H

#include "tool/tool.h"

/* One line for one change. */
void render_revision(const struct jv *revision, struct buf *text);
/* The changes that prevent an undo, with diffs. */
struct str undo_conflicts_text(struct arena *arena, const struct jv *value);

int tool_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_diff(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_restore(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_undo(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_checkpoint(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_changes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

void render_history(const struct jv *args, const struct jv *value, struct buf *text);
void render_diff(const struct jv *args, const struct jv *value, struct buf *text);
void render_restored(const struct jv *args, const struct jv *value, struct buf *text);
void render_undone(const struct jv *args, const struct jv *value, struct buf *text);
void render_checkpoint(const struct jv *args, const struct jv *value, struct buf *text);
void render_changes(const struct jv *args, const struct jv *value, struct buf *text);

#endif
