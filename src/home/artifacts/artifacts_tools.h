/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the artifact tools, and the parking of any tool's large result. */
#ifndef STEAD_HOME_ARTIFACTS_ARTIFACTS_TOOLS_H
#define STEAD_HOME_ARTIFACTS_ARTIFACTS_TOOLS_H

#include "base/buf.h"
#include "tool/tool.h"

int tool_park_result(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_list_artifacts(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_read_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_tail_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_search_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

void render_list_artifacts(const struct jv *args, const struct jv *value, struct buf *text);
void render_tail_artifact(const struct jv *args, const struct jv *value, struct buf *text);
void render_search_artifact(const struct jv *args, const struct jv *value, struct buf *text);

/* For tools with TOOL_PARKS: when out->text is over the thresholds, parks it and puts the preview in its place. */
int park_outcome(struct call *call, const struct tool *tool, const struct jv *args, struct outcome *out,
		 struct err *err);

#endif
