/* SPDX-License-Identifier: Apache-2.0 */
/* YAML 1.2 documents as JSON values with line numbers (libfyaml's one file). Aliases are bounded, tags refused. */
#ifndef STEAD_TEXT_YAML_H
#define STEAD_TEXT_YAML_H

#include "text/jv.h"

/* One document. Plain scalars follow the YAML core schema (null, bool, int, float), quoted ones are strings. An empty
   document is JV_NULL. Duplicate keys and text that expands past YAML_LEN_MAX are errors with their line. */
int yaml_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err);

/* The members of an object (or the items of an array) as lines, each indented by `columns`. Read again, they give the
   same value. */
void yaml_write(struct buf *buf, const struct jv *object, unsigned columns);

/* True when the text needs no quotes: it begins with a letter and has nothing that any YAML, 1.1 or 1.2, gives a
   meaning to. */
bool yaml_is_plain(struct str s);

/* Changes of a document that leave every other line as it is, comments among them (yaml_edit.c). The document is a
   mapping; `list` is a key of it whose value is a list of mappings, or is missing. ERR_INVALID with the line when the
   text is not such a document. */
/* Item `index` (0 …) becomes `item`; only the keys that differ are written again. index = the number of items: adds
   one. */
int yaml_list_set(struct arena *arena, struct str text, const char *list, size_t index, const struct jv *item,
		  struct str *ret_text, struct err *err);
int yaml_list_remove(struct arena *arena, struct str text, const char *list, size_t index, struct str *ret_text,
		     struct err *err);
/* A key of the document itself gets a scalar value. */
int yaml_set(struct arena *arena, struct str text, const char *key, const struct jv *value, struct str *ret_text,
	     struct err *err);

#endif
