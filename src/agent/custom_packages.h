/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that the Python tools of a workspace need. */
#ifndef STEAD_AGENT_CUSTOM_PACKAGES_H
#define STEAD_AGENT_CUSTOM_PACKAGES_H

#include "home/exec/exec.h"

/* With tools/requirements.txt, the job finds what it names: installed from the wheels in tools/wheels/ when the list or
   a wheel has changed, and kept in the workspace. Without that file nothing happens. */
int custom_packages(struct workspace *ws, struct ctx *ctx, struct sandbox_job *job, struct err *err);

#endif
