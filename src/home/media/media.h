/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sound and documents by the programs that agent.yaml names: text to speech, speech to text, Markdown to PDF. A program
 * sees its input and nothing else of the workspace, and has no network.
 */
#ifndef STEAD_HOME_MEDIA_MEDIA_H
#define STEAD_HOME_MEDIA_MEDIA_H

#include "workspace/workspace.h"

struct media_job {
	const char *key;   /* "speak", "transcribe", "pdf": of media in agent.yaml */
	struct str in;     /* the name of the input, which may tell the program what it is */
	struct str bytes;  /* its contents */
	const char *out;   /* the ending of the output */
	struct str theme;  /* for {theme} */
	size_t output_max; /* bytes; more is ERR_TOO_LARGE */
};

bool media_is_on(struct workspace *ws, const char *key);
/* ERR_UNSUPPORTED: agent.yaml names no program; ERR_UNAVAILABLE: it failed, with what it said; ERR_TIMEOUT. */
int media_run(struct workspace *ws, struct ctx *ctx, const struct media_job *job, struct str *ret, struct err *err);
/* Markdown as a PDF, by Chromium (home/browser/print.h). The title is that of the first heading, or the file's name. */
int media_print(struct workspace *ws, struct ctx *ctx, struct wpath source, struct str markdown, struct str theme,
		struct str *ret, struct err *err);
/* The words of a sound file. Empty: none are configured, or the tool is denied. */
int media_transcribe(struct workspace *ws, struct ctx *ctx, struct str name, struct str bytes, struct str *ret,
		     struct err *err);

#endif
