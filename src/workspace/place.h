/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the workspaces of a deployment are: stead.yaml, read and checked, and the stores that it names, put together.
 * A URL of the form "config:FILE" names such a deployment wherever a store is asked for; any other URL is a deployment
 * of that one store.
 */
#ifndef STEAD_WORKSPACE_PLACE_H
#define STEAD_WORKSPACE_PLACE_H

#include "base/ctx.h"
#include "store/stores.h"
#include "text/jv.h"
#include "workspace/config.h"
#include "workspace/spec.h"

enum place_scope { SCOPE_USER, SCOPE_SESSION, SCOPE_AGENT, SCOPE_GLOBAL, SCOPE_USER_OR_SESSION };

struct place_config {
	struct str file;                    /* stead.yaml; ptr NULL: there is none */
	struct str store, state, templates; /* URLs; state and templates may be empty */
	uint64_t replicas;
	enum place_scope scope;
	uint64_t cache_bytes;   /* 0: no cache */
	struct str cache_dir;   /* empty: in memory */
	struct place_spec spec; /* of a place in the words of another system; zeros: there is none */
	const struct jv *users;
	struct config_defaults defaults; /* what stead.yaml says for every workspace, and the .env file next to it */
	const struct jv *server;         /* settings of `stead serve`; NULL: none */
	struct env env;                  /* of the .env file next to stead.yaml: stores are opened with it */
	/* Of opening alone. */
	int64_t deadline_ns;
	const struct cancel *cancel;
};

/* `url` empty: the person's data directory. Reads and checks the file of "config:FILE"; the .env
   file next to it is in ret->env. ERR_INVALID names line and key, or what cannot work with several replicas and why. */
int place_read(struct arena *arena, struct str url, struct place_config *ret, struct err *err);
/* A number that changes with the contents of the file of "config:FILE" or of the .env file next to it; 0: `url` names
   no file. */
uint64_t place_version(struct arena *arena, struct str url);
/* True when one of its stores is on a server. */
bool place_is_remote(const struct place_config *config);
/* A whole file of this machine. */
int place_host_file(struct arena *arena, struct str path, size_t max, struct str *ret, struct err *err);
/* The JSON Schema text of stead.yaml. */
struct str place_schema(void);

/* All stores of a deployment, open. */
struct place;
struct place_want {
	struct str workspace; /* whose users' own stores are part of it; empty: none are */
	bool create;          /* make directories that are missing */
};
/* Borrows what `config` points to. On ERR_NOT_FOUND (a directory that is missing) *ret_dir is set all the same. */
int place_open(struct arena *arena, const struct place_config *config, const struct place_want *want,
	       struct place **ret_place, struct str *ret_dir, struct err *err);
void place_close(struct place *place);
/* The store of all workspaces. Directories of this machine are not synced in it: the revision log is, below. */
struct store *place_store(struct place *place);
/* The same place with directories synced; NULL when there is no directory in it, since all else is durable anyway. */
int place_durable(struct place *place, struct store **ret_store, struct err *err);
/* The read-only store below every workspace, or NULL. */
struct store *place_templates(struct place *place);
/* All of it as one store that owns the stores below it; without users' own stores and templates. */
int place_open_all(struct arena *arena, const struct place_config *config, bool create, bool relaxed,
		   struct store **ret_store, struct str *ret_dir, struct err *err);
/* Opens one store of a deployment by itself: what checks and moves stores wants. */
int place_open_one(struct arena *arena, const struct place_config *config, struct str url, bool create, bool relaxed,
		   struct store **ret_store, struct str *ret_dir, struct err *err);

/* The directory of this caller's own part of a workspace; the root when there is none. */
int place_namespace(struct arena *arena, enum place_scope scope, const struct actor *actor, struct wpath *ret,
		    struct err *err);

#endif
