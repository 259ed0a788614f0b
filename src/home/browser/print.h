/* SPDX-License-Identifier: Apache-2.0 */
/* A page of our own on paper, by a Chromium that lives for one call. */
#ifndef STEAD_HOME_BROWSER_PRINT_H
#define STEAD_HOME_BROWSER_PRINT_H

#include "workspace/workspace.h"

/* The HTML as a PDF of A4 pages with their numbers. No script of it runs and nothing is loaded, from the network or
   from a file. ERR_UNSUPPORTED: there is no Chromium; ERR_UNAVAILABLE: it failed; ERR_TIMEOUT. */
int browser_print(struct workspace *ws, struct ctx *ctx, struct str html, struct str *ret_pdf, struct err *err);

#endif
