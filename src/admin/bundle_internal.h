/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of bundles share: the names and limits of the format. */
#ifndef STEAD_ADMIN_BUNDLE_INTERNAL_H
#define STEAD_ADMIN_BUNDLE_INTERNAL_H

#include "admin/bundle.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "store/stores.h"

#define BUNDLE_FORMAT   "stead-bundle"
#define BUNDLE_VERSION  1
#define BUNDLE_MANIFEST "manifest.json"
#define BUNDLE_FILES    "workspace/"
#define BUNDLE_LOG      "history/log/"
#define BUNDLE_BLOBS    "history/contents/"
#define BUNDLE_SUMS     "SHA256SUMS"
#define BUNDLE_SUM_MARK "# all "

/* A guard over nothing, and whether a path may be in a bundle. */
struct store *bundle_guard(void);
bool bundle_wants(void *guard, struct wpath path);
/* A line of SHA256SUMS. */
void bundle_sum_line(struct buf *out, const char *hex, struct str name);

#endif
