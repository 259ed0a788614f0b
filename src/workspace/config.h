/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.yaml, typed and checked. The schema is one JSON Schema document, which the build makes of agent_schema.json and
 * the families' config.json: it checks the file, documents it (`stead schema agent.yaml`), and serves editors. ${VAR}
 * is filled in after parsing, from the workspace's .env and then the environment. Unknown keys are errors that name the
 * nearest known key and the line.
 */
#ifndef STEAD_WORKSPACE_CONFIG_H
#define STEAD_WORKSPACE_CONFIG_H

#include "text/jv.h"

struct config_quota {
	uint64_t bytes, files, file_size; /* 0: unlimited */
};

/* What of the past is kept. */
struct config_history {
	uint64_t revisions, age_days, bytes; /* 0: unlimited */
};

struct config {
	const struct jv *document; /* the whole, checked and expanded: families read their own keys from it */
	struct str name, description, timezone;
	bool relaxed; /* durability: relaxed */
	struct config_quota quota;
	struct config_history history;
	uint64_t prompt_tokens;        /* what a prompt may have */
	const struct jv *prompt_files; /* further files to include, and who shares the notebook: arrays; may be NULL */
	const struct jv *teammates;
	const struct jv *tools_allow, *tools_deny; /* arrays of names, from tools.json and builtins; may be NULL */
	const struct jv *mcp_servers;              /* by name, in the form of tools_json.h; may be NULL */
};

/* `agent_yaml` and `dotenv` may be empty. `vars` of .env are not kept in the config beyond what ${VAR} took. */
int config_load(struct arena *arena, struct str agent_yaml, struct str dotenv, struct str tools_json,
		struct config *ret_config, struct err *err);
/* A size that a schema let through: a number, or one with a unit (1000s for kB, MB, GB; 1024s for KiB, MiB, GiB).
   False: too large to be one. */
bool config_size(const struct jv *v, uint64_t fallback, uint64_t *ret);
/* The JSON Schema texts: of agent.yaml, and of tools.json. */
struct str config_schema(void);
struct str config_tools_schema(void);

#endif
