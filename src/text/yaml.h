/* SPDX-License-Identifier: Apache-2.0 */
/* YAML 1.2 documents as JSON values with line numbers (libfyaml's one file). Aliases are bounded, tags refused. */
#ifndef STEAD_TEXT_YAML_H
#define STEAD_TEXT_YAML_H

#include "text/jv.h"

/* One document. Plain scalars follow the YAML core schema (null, bool, int, float), quoted ones are strings. An empty
   document is JV_NULL. Duplicate keys and text that expands past YAML_LEN_MAX are errors with their line. */
int yaml_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err);

#endif
