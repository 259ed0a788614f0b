/* SPDX-License-Identifier: Apache-2.0 */
/* Shorthand for the JSON Schema text of tool tables, so that a table reads as a list of arguments. */
#ifndef STEAD_TOOL_SCHEMAS_H
#define STEAD_TOOL_SCHEMAS_H

#define S_OBJ(props, required)                                                                                         \
	"{\"type\":\"object\",\"properties\":{" props "},\"required\":[" required "],\"additionalProperties\":false}"
#define S_NONE               "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"
#define S_STR(name, text)    "\"" name "\":{\"type\":\"string\",\"description\":\"" text "\"}"
#define S_BOOL(name, text)   "\"" name "\":{\"type\":\"boolean\",\"description\":\"" text "\"}"
#define S_INT(name, text)    "\"" name "\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"" text "\"}"
#define S_INT1(name, text)   "\"" name "\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"" text "\"}"
#define S_ANYINT(name, text) "\"" name "\":{\"type\":\"integer\",\"description\":\"" text "\"}"
#define S_STRS(name, text)                                                                                             \
	"\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":50,\"description\":\"" text "\"}"
#define S_ENUM(name, words, text) "\"" name "\":{\"type\":\"string\",\"enum\":[" words "],\"description\":\"" text "\"}"
#define S_LIST(name, item, text)  "\"" name "\":{\"type\":\"array\",\"items\":" item ",\"description\":\"" text "\"}"
#define S_BARE(name, type)        "\"" name "\":{\"type\":\"" type "\"}"

/* Between properties. */
#define AND ","

#define S_PATH       S_STR("path", "path from the tool root, for example notes/plan.md")
#define S_IF_VERSION S_STR("if_version", "act only if the file still has this version; else nothing changes")
#define S_CURSOR     S_STR("cursor", "next_cursor of the page before")

/* What results of one file have in common. */
#define R_FILE S_BARE("path", "string") "," S_BARE("size", "integer") "," S_BARE("version", "string")

#define S_REV(name, text)                                                                                              \
	"\"" name "\":{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},{\"type\":\"string\"}],"                        \
	"\"description\":\"" text ": a number, a checkpoint or head\"}"
#define S_ENCODING S_ENUM("encoding", "\"utf-8\",\"base64\"", "of the content (default utf-8)")

#endif
