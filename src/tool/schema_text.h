/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments and results of tools as short texts, so that a tool table reads as a list of arguments:
 *
 *     path!: path from the tool root            a string that must be given, and its description
 *     limit int>=1: lines (default 2000)        integers have bounds: >=1, <=50, =2; so do str (length) and lists
 *     status pending|completed: only these      one of these words
 *     since int>=0 or str: a revision           either of them
 *     owner str?; size int; score num           "?": or null; without a description, ';' separates as well
 *     entries! [{path!; kind!; size int}]       a list of objects
 *
 * The types are str (the default), int, num, bool, obj, list, null, any, [TYPE] and {…}. Properties are separated by
 * newlines or ';'. A description goes to the end of the line, within {} to the next ';' or '}'. An object has no other
 * properties than those named, unless "..." ends its list. Arguments of tools
 * have no "or" and no "?": some model providers refuse alternatives (coerce.h).
 */
#ifndef STEAD_TOOL_SCHEMA_TEXT_H
#define STEAD_TOOL_SCHEMA_TEXT_H

#include "text/jv.h"

/* The JSON Schema of `text`: an object. Its strings are borrowed from `text`. */
int schema_text_parse(struct arena *arena, const char *text, struct jv **ret_schema, struct err *err);

#endif
