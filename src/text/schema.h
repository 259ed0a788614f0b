/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema 2020-12, the part that tool arguments and configuration need: type, properties, required,
 * additionalProperties, patternProperties-free maps (additionalProperties as a schema), items, enum, const, minimum,
 * maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, minItems, maxItems, uniqueItems, pattern,
 * oneOf/anyOf, $ref to "#/$defs/…"; and what only says something to people: title, description, default, examples,
 * deprecated, readOnly, writeOnly (a secret: never shown), $schema, $id, $comment. A schema with another keyword does
 * not compile, so nothing is silently unchecked.
 */
#ifndef STEAD_TEXT_SCHEMA_H
#define STEAD_TEXT_SCHEMA_H

#include "text/jv.h"

/* Checks that `schema` uses only what schema_check knows. */
int schema_compile(const struct jv *schema, struct err *err);
/* 0, or ERR_INVALID with one sentence that names the place (and its line, when known), what was found, and what was
   expected. An unknown key names the nearest known one. `what` opens the sentence ("arguments", "agent.yaml"). */
int schema_check(const struct jv *schema, const struct jv *value, const char *what, struct err *err);

#endif
