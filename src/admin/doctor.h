/* SPDX-License-Identifier: Apache-2.0 */
/* `stead doctor`: checks workspaces and says how to mend them. */
#ifndef STEAD_ADMIN_DOCTOR_H
#define STEAD_ADMIN_DOCTOR_H

#include "tool/family.h"

/* An array of {workspace?, check, ok, detail, fix?}; never fails for what it finds. `name` empty: all workspaces. */
int workspace_doctor(struct ctx *ctx, struct str store_url, struct str name, struct jv **ret_checks, struct err *err);

/* Checks stead.yaml and each store that it names, or the remote store that `url` is. False: it cannot be opened. */
bool doctor_check_place(struct ctx *ctx, struct str url, struct jv *checks);

#endif
