/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that an agent writes, or that a person has prepared as a function, run in the sandbox over the files. Code that
 * defines run(input) is called with the input, and what it returns is the result; other code runs as a script, and the
 * value of its last expression is shown. The result comes back through a descriptor of its own.
 */
#ifndef STEAD_HOME_CODE_CODE_H
#define STEAD_HOME_CODE_CODE_H

#include "home/exec/exec.h"

struct code_run {
	struct str language; /* "python", "node", "sh", or one of code.interpreters */
	struct str code;
	const struct jv *input; /* NULL: null */
	const struct jv *env;   /* {NAME: value}; NULL: none */
	int64_t timeout_s;      /* 0: CODE_SECONDS_DEFAULT */
	const char *at;         /* where it sees the files; NULL: /workspace */
	bool session;           /* variables and definitions of earlier calls of the session are there. Python alone */
	bool allow_network;     /* the hosts of sandbox.network; else none */
};
/* The value of execute, and: result?, text?, results [{mime, path?, data?}], error? {name, value, traceback}. The first
   image of the results is ret->media. */
/* What code.allow_network says of code that agents write, and of scripts of skills. */
bool code_has_network(struct workspace *ws);
int code_run(struct call *call, const struct code_run *what, struct outcome *ret, struct err *err);
void code_render(const struct jv *args, const struct jv *value, struct buf *text);

/* A function of agent.yaml; ERR_NOT_FOUND names those there are. The input is checked before, the result after it ran.
 */
int code_call(struct call *call, struct str name, const struct jv *input, struct outcome *ret, struct err *err);

/* A JSON Schema from what a person wrote: one already, or a list of fields as Wacht has them: [{name, type (STRING
   INTEGER NUMBER BOOLEAN ARRAY OBJECT), description?, required?, items?, properties?}]. */
int code_schema(struct arena *arena, const struct jv *written, struct jv **ret, struct err *err);

/* A script of a skill, with its arguments. The value of execute. */
struct skill_script {
	struct str skill, script;
	const struct jv *args; /* strings; NULL: none */
	int64_t timeout_s;     /* 0: CODE_SECONDS_DEFAULT */
	const char *at;
};
int skill_script_run(struct call *call, const struct skill_script *what, struct jv **ret, struct err *err);

#endif
