/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input and files of the host, as the input of commands. */
#ifndef STEAD_COMMAND_INPUT_H
#define STEAD_COMMAND_INPUT_H

#include "base/arena.h"
#include "base/ctx.h"
#include "store/store.h"

/* A descriptor as a source of bytes. */
struct input {
	int fd;
	struct ctx *ctx; /* NULL: progress is not reported */
	uint64_t done;
};
/* `input` must outlive the source. Of a file that can be read again, the source can be rewound. */
struct source input_source(struct input *input);
/* Says on standard error that a person is expected to type, if that is so. */
bool input_announce(int fd);
/* All bytes up to the end of the input. ERR_TOO_LARGE: there are more than `max`. */
int input_read(struct arena *arena, int fd, size_t max, struct str *ret, struct err *err);

#endif
