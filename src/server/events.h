/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes as they happen: a stream of server-sent events, or one answer that waits (long poll), from any revision. A
 * client that waits costs a few hundred bytes and no thread; each workspace that somebody watches has one thread.
 */
#ifndef STEAD_SERVER_EVENTS_H
#define STEAD_SERVER_EVENTS_H

#include <stdint.h>

struct feeds;
struct serve;

struct feeds *feeds_new(struct serve *serve);
/* Ends all streams and answers who waits; nobody can begin to watch any longer. */
void feeds_end(struct feeds *feeds);
/* After feeds_end(), when no request runs: waits for the threads. */
void feeds_destroy(struct feeds *feeds);
uint64_t feeds_watchers(struct feeds *feeds);

#endif
