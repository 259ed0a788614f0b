/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard output in large writes, errors on standard error in one form, colours and progress for terminals only. A
 * closed reader (`| head`) is not an error: further output is dropped and the command ends quietly.
 */
#ifndef STEAD_COMMAND_OUTPUT_H
#define STEAD_COMMAND_OUTPUT_H

#include <stdbool.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/str.h"
#include "text/jv.h"

#define OUTPUT_BUFFER (256 * (size_t)1024)

struct output {
	int fd;
	bool color; /* the terminal wants colours */
	bool gone;  /* the reader has closed its end */
	int sys;    /* errno of a write that failed otherwise */
	char *data;
	size_t len;
	bool to_terminal; /* flushed by the line then */
	bool drawn;       /* the terminal shows a progress line */
	int64_t drawn_ns;
	const char *verb; /* of the progress line: "searched" */
};

void output_init(struct output *out, int fd);
/* Flushes and frees; an error when bytes could not be written (not when the reader went away). */
int output_close(struct output *out, struct err *err);
void output_flush(struct output *out);

/* Room for `size` bytes in the buffer, or NULL (more than the buffer holds, or a terminal, which is flushed by the
   line); then add what was written there to out->len. */
char *output_reserve(struct output *out, size_t size);
/* False when the reader has closed its end: a caller with much output can stop then. */
bool output_add(struct output *out, struct str s);
/* Words of a model, a tool or a server: on a terminal their control characters, with which they could hide, forge or
   turn around what is shown, become U+FFFD; a pipe gets them as they are. */
bool output_words(struct output *out, struct str s);
/* The same as a text, for standard error; `s` itself if it has none. */
struct str output_shown(struct arena *arena, struct str s);
bool output_u64(struct output *out, uint64_t n);
/* Decimal digits, in `room`. */
struct str format_u64(uint64_t n, char room[20]);
/* On a terminal without control characters, but for our own colours: the text may have names and words of others. */
__attribute__((format(printf, 2, 3))) bool output_printf(struct output *out, const char *fmt, ...);
/* As a document, indented. */
void output_json(struct output *out, struct arena *arena, const struct jv *value);
/* On one line. */
void output_json_line(struct output *out, struct arena *arena, const struct jv *value);

/* Colours as escape sequences, or "" when there are none. */
enum tone { TONE_PLAIN, TONE_BOLD, TONE_PATH, TONE_NUMBER, TONE_DIR, TONE_GOOD, TONE_BAD };
struct str output_tone(const struct output *out, enum tone tone);

/* The error on standard error: "stead: sentence", the detail lines and the hint, or as JSON
   {"error":{"kind","message","detail"?,"hint"?}}. */
void output_error(struct output *out, const struct err *err, struct str detail, const char *hint, bool json);

/* Shows ctx_progress() on standard error when that is a terminal; `out` must outlive it. Writes nothing in the first
   half second. Returns false (and leaves `ret` alone) without a terminal. */
bool output_progress(struct output *out, const char *verb, struct progress *ret);

/* "1.5 KiB" */
struct str output_size(struct arena *arena, uint64_t bytes);

#endif
