/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the type multipart/form-data (RFC 7578), which browsers send files in. */
#ifndef STEAD_SERVER_MULTIPART_H
#define STEAD_SERVER_MULTIPART_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct part {
	struct str name;     /* of the field */
	struct str filename; /* ptr NULL: a plain field */
	struct str type;     /* its Content-Type; empty: none is given */
	struct str bytes;    /* of `body` */
};

/* The boundary of a Content-Type; ptr NULL: it is not multipart/form-data, or has no valid boundary. */
struct str multipart_boundary(struct arena *arena, struct str content_type);
/* All parts in their order. ERR_INVALID: malformed; ERR_TOO_LARGE: more than MULTIPART_PARTS_MAX. */
int multipart_parse(struct arena *arena, struct str body, struct str boundary, struct part **ret, size_t *ret_count,
		    struct err *err);

#endif
