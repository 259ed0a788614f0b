/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XML of S3 answers, read once, with bounds. Not an XML parser for the world: elements, text and the five named
 * entities, character references; what else XML has (comments, declarations) is stepped over or refused.
 */
#ifndef STEAD_STORE_BACKENDS_S3_S3_XML_H
#define STEAD_STORE_BACKENDS_S3_S3_XML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define S3_XML_DEPTH_MAX 16

/* Called when an element ends: its name, the name of its parent ("" for the outermost), how deep (0: the
   outermost), and its text (in the arena; "" when it has elements in it). A failure ends the walk. */
typedef int (*s3_xml_visit)(void *arg, struct str parent, struct str name, unsigned depth, struct str text,
			    struct err *err);
/* ERR_CORRUPT for what is not whole. */
int s3_xml_walk(struct arena *arena, struct str xml, s3_xml_visit visit, void *arg, struct err *err);

/* Of <Error>, or of <Error> in an answer that says 200; all empty when the body has none. */
struct s3_error {
	struct str code, message, region, server_time;
};
void s3_xml_error(struct arena *arena, struct str xml, struct s3_error *ret);

/* An ETag becomes a version, which is kept in places of a fixed size: one that does not fit would look like none. */
int s3_check_etag(struct str etag, struct err *err);

/* The text of the first element of that name; ptr NULL: none. */
struct str s3_xml_text(struct arena *arena, struct str xml, const char *name);

struct s3_object {
	struct str key;  /* decoded */
	struct str etag; /* without quotes */
	uint64_t size;
	int64_t modified_ns; /* whole seconds */
	bool prefix;         /* a common prefix: key ends in '/', the rest is 0 */
};

struct s3_listing {
	struct s3_object *objects; /* in byte order of the key */
	size_t count;
	bool truncated;
	struct str token;
};
/* Of ListObjectsV2 with encoding-type=url. */
int s3_xml_listing(struct arena *arena, struct str xml, struct s3_listing *ret, struct err *err);

struct s3_upload {
	struct str key, id;
	int64_t begun_ns;
};
/* Of ListMultipartUploads with encoding-type=url. */
int s3_xml_uploads(struct arena *arena, struct str xml, struct s3_upload **ret, size_t *ret_count, struct err *err);

/* "2026-11-15T12:00:00.123Z" and "Sun, 15 Nov 2026 12:00:00 GMT"; whole seconds, 0 when it is neither. */
int64_t s3_time(struct str text);

#endif
