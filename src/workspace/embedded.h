/* SPDX-License-Identifier: Apache-2.0 */
/* Files of src/home that the program carries in itself; tools/embed writes the definitions. */
#ifndef STEAD_WORKSPACE_EMBEDDED_H
#define STEAD_WORKSPACE_EMBEDDED_H

#include "base/str.h"

extern const struct str embedded_agent_schema, embedded_stead_schema, embedded_tools_schema;
extern const struct str embedded_agents_md, embedded_soul_md, embedded_user_md, embedded_heartbeat_md;
extern const struct str embedded_agent_yaml, embedded_env;

#endif
