/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_SUBAGENTS_SUBAGENTS_TOOLS_H
#define STEAD_HOME_SUBAGENTS_SUBAGENTS_TOOLS_H

#include "tool/dialect.h"

#endif
