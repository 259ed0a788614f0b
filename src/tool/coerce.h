/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input schemas name one type for each argument, because some model providers refuse schemas with alternatives. Models
 * still send the others: 5 for "5", "a" for ["a"], null for an argument that they leave out.
 */
#ifndef STEAD_TOOL_COERCE_H
#define STEAD_TOOL_COERCE_H

#include "text/jv.h"

/* `args` with each value in the form that its property names, if it can be read as that without a guess:
 *   an integer, for a string                 its digits
 *   a string, for a list                     a list of it; the list itself when the text is a JSON list
 *   a string, for an object in a list        {"path": it}, if "path" alone must be given
 *   the text of an integer, true or false    the value, for an integer or a boolean
 *   null, for what need not be given         left out
 * Everything else stays as it is, for the check that follows. NULL and null: {}. Borrows from `args`. */
const struct jv *args_coerce(struct arena *arena, const struct jv *schema, const struct jv *args);

#endif
