/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.yaml, typed and checked. The schema is one JSON Schema document, which the build makes of agent_schema.json and
 * of each config.json in a folder whose code acts on keys: it checks the file, documents it (`stead schema
 * agent.yaml`), and serves editors. ${VAR} is filled in after parsing, from the workspace's .env and then the
 * environment. Unknown keys are errors that name the nearest known key and the line.
 */
#ifndef STEAD_WORKSPACE_CONFIG_H
#define STEAD_WORKSPACE_CONFIG_H

#include "text/jv.h"
#include "text/zone.h"

struct config_quota {
	uint64_t bytes, files, file_size; /* of the workspace; 0: unlimited */
	uint64_t user_bytes, user_files;  /* of each user's part */
};

/* What of the past is kept. */
struct config_history {
	uint64_t revisions, age_days, bytes; /* 0: unlimited */
};

/* What holds for every workspace of a deployment unless its own files say otherwise. */
struct config_defaults {
	const struct jv *document; /* keys of agent.yaml, checked; NULL: none */
	const struct jv *vars;     /* for ${VAR}, before the environment; NULL: none */
};

struct config {
	const struct jv *document; /* the whole, checked and expanded: families read their own keys from it */
	struct str name, description, timezone;
	const struct zone *zone; /* NULL: UTC */
	bool relaxed;            /* durability: relaxed */
	struct config_quota quota;
	struct config_history history;
	uint64_t prompt_tokens;        /* what a prompt may have */
	const struct jv *prompt_files; /* further files to include, and who shares the notebook: arrays; may be NULL */
	const struct jv *teammates;
	const struct jv *tools_allow, *tools_deny; /* arrays of names, from tools.json and builtins; may be NULL */
	const struct jv *builtins_allow;           /* the same; NULL: all of them */
	const struct jv *mcp_servers;              /* by name, in the form of tools_json.h; may be NULL */
};

/* `agent_yaml` and `dotenv` may be empty, `defaults` NULL. Objects of the defaults are merged key by key, lists of
   names (allow, deny) are added up, and of anything else the workspace's own value counts. `vars` of .env are not kept
   in the config beyond what ${VAR} took. */
int config_load(struct arena *arena, struct str agent_yaml, struct str dotenv, struct str tools_json,
		const struct config_defaults *defaults, struct config *ret_config, struct err *err);
/* True when agent.yaml may have this key. */
bool config_has_key(struct arena *arena, struct str key);
/* Checks keys of agent.yaml that are in another file. */
int config_check(struct arena *arena, const struct jv *document, const char *file, struct err *err);
/* Whether a builtin that is not a tool is on: one of OpenPaw's processors of messages. It is off if a deny list has it
   or its group "processor", or if builtins.allow has neither, on if that list or builtins.NAME.enabled says so, and
   else as usual. */
bool config_has_processor(const struct config *config, const char *name, bool usual);
/* True when `disable` of agent.yaml names it. */
bool config_disables(const struct config *config, const char *what);
/* A size that a schema let through: a number, or one with a unit (1000s for kB, MB, GB; 1024s for KiB, MiB, GiB).
   False: too large to be one. */
bool config_size(const struct jv *v, uint64_t fallback, uint64_t *ret);
/* The JSON Schema texts: of agent.yaml, and of tools.json. */
struct str config_schema(void);
struct str config_tools_schema(void);

#endif
