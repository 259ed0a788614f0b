/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container engine (Docker or Podman) on a unix socket of this machine: requests, and the stream of a container's
 * standard streams. What the engine sends is bounded and parsed here.
 */
#ifndef STEAD_SANDBOX_ENGINE_H
#define STEAD_SANDBOX_ENGINE_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct engine {
	char path[sizeof((struct sockaddr_un *)0)->sun_path];
	bool is_podman, is_rootless;
};

/* DOCKER_HOST, else the usual sockets; asks what it is. ERR_UNSUPPORTED: there is none that answers. */
int engine_open(struct engine *engine, struct err *err);

/* One request; `body` may be empty. The answer is in the arena, whatever its status. */
int engine_call(const struct engine *engine, struct arena *arena, const char *method, const char *target,
		struct str body, int64_t timeout_ms, int *ret_status, struct str *ret_body, struct err *err);
/* A request whose connection becomes a stream: the descriptor is the caller's. */
int engine_stream(const struct engine *engine, const char *target, int *ret_fd, struct err *err);
/* The engine's own words for a failure, on one line. */
struct str engine_message(struct arena *arena, struct str body);

/* The head of an answer. 0: more bytes are needed; -1: this is not HTTP; else the bytes of the head. */
struct engine_head {
	int status;
	int64_t length; /* of the body; -1: until the end of the connection */
};
int engine_head_parse(struct str bytes, struct engine_head *ret);

/* Frames of a stream: 8 bytes (which stream, length) and as many bytes as they say. */
struct engine_frames {
	unsigned char head[8];
	size_t have;
	uint32_t left;
};
/* Calls `push` for each piece; false: these are not frames. */
bool engine_frames_take(struct engine_frames *frames, struct str bytes,
			void (*push)(void *arg, bool is_stderr, struct str bytes), void *arg);

#endif
