/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, which the build makes from web/ and embeds (tools/page). */
#ifndef STEAD_SERVER_PAGE_H
#define STEAD_SERVER_PAGE_H

#include "base/str.h"

struct page_file {
	const char *path; /* "assets/main-3f2a.js", or "index.html" for "/" */
	const char *hash; /* of its bytes */
	const struct str *bytes, *gzip;
};
/* Ends with a path of NULL. */
extern const struct page_file page_files[];

/* True when the value of an Accept-Encoding header allows gzip. */
bool accepts_gzip(struct str header);

#endif
