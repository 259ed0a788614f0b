/* SPDX-License-Identifier: Apache-2.0 */
/* A worker for tests: its calls are scripts of a shell, on standard input. */
#ifndef STEAD_TESTS_WORKER_FIX_H
#define STEAD_TESTS_WORKER_FIX_H

#include "sandbox_fix.h"

static const char worker_program[] =
	"import os, socket\n"
	"talk = socket.socket(fileno=3)\n"
	"talk.send(b'r')\n"
	"while True:\n"
	"    data, fds, _, _ = socket.recv_fds(talk, 16, 4)\n"
	"    if not data: os._exit(0)\n"
	"    if data == b'n': continue\n"
	"    pid = os.fork()\n"
	"    if pid == 0:\n"
	"        talk.detach()\n"
	"        os.close(3)\n"
	"        for n, fd in enumerate(fds): os.dup2(fd, n)\n"
	"        for fd in fds: os.close(fd)\n"
	"        os.setsid()\n"
	"        os.chdir('/workspace')\n"
	"        os.execv('/bin/sh', ['sh', '-c', os.read(0, 60000).decode()])\n"
	"    for fd in fds: os.close(fd)\n"
	"    _, status, used = os.wait4(pid, 0)\n"
	"    talk.send(b'x %d %d %d' % (status, int(used.ru_utime * 1e6), used.ru_maxrss * 1024))\n";

static void worker_init(struct box *b)
{
	static const char *const argv[] = {"python3", "-I", "-c", worker_program, NULL};

	b->job.argv = argv;
	if (sandbox_worker_open(&b->ctx, &b->job, &b->job.worker, &b->err) != 0)
		SKIP("%.150s", b->err.msg);
	test_defer(sandbox_worker_close, b->job.worker);
}

/* In the worker; what would run without it fails. */
static void ask(struct box *b, const char *script)
{
	static const char *const argv[] = {"false", NULL};

	b->job.argv = argv;
	b->job.input = str_of(script);
	CHECK_OK(sandbox_run(&b->ctx, &b->job, &b->result, &b->err), b->err);
}

#endif
