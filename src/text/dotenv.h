/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .env files and ${VAR}. Lines are NAME=value, optionally `export NAME=value`; '#' comments; single quotes are literal,
 * double quotes know \n \r \t \" \\ \$, and either may span lines. A broken line is an error with its number.
 */
#ifndef STEAD_TEXT_DOTENV_H
#define STEAD_TEXT_DOTENV_H

#include "text/jv.h"

/* An object of strings, in file order; a name given twice takes the last value. */
int dotenv_parse(struct arena *arena, struct str text, struct jv **ret_vars, struct err *err);
/* Replaces ${NAME} in every string value of `v` (after parsing, so a value cannot change the document's shape). A name
   comes from `vars`, then from the process environment; one that neither has is an error with its line. $$ is a '$'. */
int dotenv_expand(struct arena *arena, struct jv *v, const struct jv *vars, struct err *err);

#endif
