/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what a program does to a directory of the disk, and makes from it the states in which a power cut may leave
 * that directory.
 *
 * The program is linked with wrappers of the calls that change files (tests/power/meson.build). A record is a list of
 * steps: a file or directory was made, got or lost a name, got bytes, was synced. A sync is recorded and not done, so
 * recording is fast.
 *
 * A power cut comes after some step. What was synced by then is there: the bytes of a file if the file was synced after
 * them, a name if its directory was. Of everything else a file system may have written any part, in any order, so each
 * other step is there or not; of bytes also only the first ones may be there, or zeros in their place. A rename is one
 * step. That is more than any one file system does.
 */
#ifndef STEAD_TESTS_POWER_RECORDER_H
#define STEAD_TESTS_POWER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on changes below the directory are recorded. It exists and is empty. */
void recorder_start(const char *dir);
/* Marks this place of the record: everything that was promised up to mark `number` has to survive from here on. */
void recorder_mark(unsigned number);
void recorder_stop(void);
/* Forgets the record. */
void recorder_clear(void);
size_t recorder_steps(void);

/* How much of what is not synced is there. */
enum cut_kind {
	CUT_NONE,   /* nothing */
	CUT_ALL,    /* everything */
	CUT_FIRST,  /* the first `which` steps */
	CUT_BUT,    /* everything but the step `which`, counted from the last one */
	CUT_ONLY,   /* only that one */
	CUT_TORN,   /* everything, but of the bytes of that step only the first half */
	CUT_ZEROS,  /* everything, but zeros for its bytes */
	CUT_HOLE,   /* everything, but zeros for the first half of its bytes */
	CUT_RANDOM, /* each step at random, by `which` */
	CUT_KINDS
};

struct cut {
	size_t after; /* steps that came before the power cut */
	enum cut_kind kind;
	uint64_t which;
};

/* How many steps before the cut are not synced. */
size_t cut_open_steps(size_t after);
/* The last mark before the cut. */
unsigned cut_mark(size_t after);
/* Makes the state in `dir`, which does not exist yet. `from` is replaced by `to` in all contents (of the same length;
   NULL: nothing is). Returns a hash of the state; with dir NULL nothing is made. */
uint64_t cut_make(const struct cut *cut, const char *dir, const char *from, const char *to);
const char *cut_kind_name(enum cut_kind kind);
/* Prints the steps up to `after` that are not synced by then. */
void cut_print(const struct cut *cut);

#endif
