/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process when it cannot continue: memory ran out, or the code found a bug in itself. Nothing is printed
 * here, because a library must not; the owner of the process sets a function that does.
 */
#ifndef STEAD_BASE_FATAL_H
#define STEAD_BASE_FATAL_H

/* Gives the sentence to the function, if one is set, and aborts. Allocates nothing. */
__attribute__((format(printf, 1, 2))) _Noreturn void fatal(const char *fmt, ...);
/* Process-wide; NULL: none. */
void fatal_set_hook(void (*hook)(const char *message));

#endif
