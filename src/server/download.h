/* SPDX-License-Identifier: Apache-2.0 */
/* Files to keep: one file as an attachment, a directory as a zip or tar archive. */
#ifndef STEAD_SERVER_DOWNLOAD_H
#define STEAD_SERVER_DOWNLOAD_H

#include "server/http.h"
#include "store/wpath.h"

struct download {
	struct wpath path;
	bool is_zip;   /* a directory: zip, else tar */
	bool is_shown; /* a file: shown by a browser, not stored */
};
/* "zip", also when it is empty, or "tar". */
int format_parse(struct str text, bool *ret_is_zip, struct err *err);
/* Answers with it. An error is not answered. */
int exchange_download(struct exchange *x, const struct download *what, struct err *err);

#endif
