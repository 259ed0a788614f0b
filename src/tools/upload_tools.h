/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_TOOLS_UPLOAD_TOOLS_H
#define STEAD_TOOLS_UPLOAD_TOOLS_H

#include "tools/dialect.h"

extern const struct tool_group upload_tools;

#endif
