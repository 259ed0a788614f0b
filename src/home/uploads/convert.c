/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A converter reads what strangers send, and such programs have been taken over by a file before. So it runs in the
 * sandbox, over a store in memory that holds the file and nothing else, without variables of agent.yaml and without
 * anything that earlier commands left. What it gives back is bounded and must be text.
 */
#include "home/uploads/convert.h"

#include "base/limits.h"
#include "home/exec/exec.h"
#include "store/stores.h"

#define SAID_MAX ((size_t)240)
#define OUT      "out"

static struct str replaced(struct arena *arena, struct str text, const char *what, const char *with)
{
	size_t at = str_find(text, str_of(what), 0);

	if (at == SIZE_MAX)
		return text;
	return arena_printf(arena, "%.*s%s%s", STR_ARG(str_first(text, at)), with,
			    arena_cstr(arena, replaced(arena, str_from(text, at + strlen(what)), what, with)));
}

/* {in} and {out} filled in; *ret_writes: the command names {out}, so the program writes the text there. */
static const char *const *command_line(struct arena *arena, const struct jv *command, const char *in, bool *ret_writes)
{
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(command) + 1);
	size_t n = 0;

	*ret_writes = false;
	for (const struct jv_member *m = jv_first(command); m; m = m->next) {
		struct str word = jv_str_of(m->value);

		*ret_writes |= str_find(word, STR("{out}"), 0) != SIZE_MAX;
		argv[n++] = arena_cstr(arena, replaced(arena, replaced(arena, word, "{in}", in), "{out}", "./" OUT));
	}
	return argv;
}

struct heard {
	struct buf out, said;
	struct cancel stop; /* it prints too much */
};

static bool hear(void *arg, bool is_stderr, struct str bytes)
{
	struct heard *h = arg;

	buf_add(is_stderr ? &h->said : &h->out, is_stderr ? str_first(bytes, SAID_MAX - h->said.len) : bytes);
	if (h->out.overflow)
		atomic_store(&h->stop.requested, true);
	return true;
}

/* What it said, as one line that fits into a message. */
static struct str one_line(struct arena *arena, struct str said)
{
	char *out = (char *)arena_str(arena, str_trim(sandbox_clean(arena, said))).ptr;

	for (char *p = out; *p; p++)
		if ((unsigned char)*p < 32)
			*p = ' ';
	return str_of(out);
}

static int verdict(struct arena *arena, const struct sandbox_job *job, const struct sandbox_result *ran,
		   const struct heard *h, struct err *err)
{
	struct str said = one_line(arena, buf_str(&h->said));
	const char *colon = said.len ? ": " : "";

	if (h->out.overflow)
		return err_set(err, ERR_TOO_LARGE, "it printed more than %zu bytes", UPLOAD_TEXT_MAX);
	if (ran->timed_out)
		return err_set(err, ERR_TIMEOUT, "it was killed after %lld seconds",
			       (long long)(job->limits.timeout_ms / 1000));
	if (ran->exit_code == 126 || ran->exit_code == 127)
		return err_set(err, ERR_NOT_FOUND,
			       "the program \"%.100s\" is not installed where the sandbox sees it (sandbox.paths)",
			       job->argv[0]);
	if (ran->signal)
		return err_set(err, ERR_UNAVAILABLE, "it was killed by signal %d%s%.*s", ran->signal, colon,
			       STR_ARG(said));
	return ran->exit_code ? err_set(err, ERR_UNAVAILABLE, "it exited with status %d%s%.*s", ran->exit_code, colon,
					STR_ARG(said))
			      : 0;
}

static int run(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct store *files,
	       const char *const *argv, struct heard *h, struct err *err)
{
	struct sandbox_result ran;
	struct sandbox_job job;
	int r = exec_job(ws, ctx, &job, err);

	if (r)
		return r;
	job.argv = argv;
	job.env = NULL;
	job.keep = NULL;
	job.files = (struct sandbox_files){.store = files};
	job.limits.timeout_ms = 1000 * jv_get_int(converter, "timeout_seconds", 60);
	job.output = hear;
	job.output_arg = h;
	job.stop = &h->stop;
	r = sandbox_run(ctx, &job, &ran, err);
	if (r == 0) {
		r = verdict(ctx->arena, &job, &ran, h, err);
		sandbox_result_release(&ran);
	}
	return r ? err_prefix(err, "%.100s", argv[0]) : 0;
}

/* A link, a device or nothing at all did not come back from the sandbox. */
static int read_out(struct ctx *ctx, struct store *files, struct str *ret, struct err *err)
{
	int r = store_read(files, ctx, (struct wpath){STR(OUT)}, STORE_WHOLE, UPLOAD_TEXT_MAX, ret, NULL, err);

	if (r == -ERR_TOO_LARGE)
		return err_set(err, ERR_TOO_LARGE, "it wrote more than %zu bytes", UPLOAD_TEXT_MAX);
	return r == -ERR_NOT_FOUND ? err_set(err, ERR_UNAVAILABLE, "it wrote no file") : r;
}

int upload_convert(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct wpath path,
		   struct str ending, struct str *ret_text, struct err *err)
{
	struct arena *arena = ctx->arena;
	const char *in = arena_printf(arena, "./in%s%.*s", ending.len ? "." : "", STR_ARG(ending)).ptr;
	struct store *files = store_memory_new();
	struct store_stat stat;
	struct heard h = {0};
	bool writes;
	const char *const *argv = command_line(arena, jv_get(converter, "command"), in, &writes);
	int r = store_copy_between(workspace_home(ws), ctx, path, files, (struct wpath){str_of(in + 2)},
				   (struct store_cond){0}, &stat, err);

	buf_init(&h.out, arena, UPLOAD_TEXT_MAX);
	buf_init(&h.said, arena, SAID_MAX);
	if (r == 0)
		r = run(ws, ctx, converter, files, argv, &h, err);
	*ret_text = h.out.ptr ? buf_str(&h.out) : STR("");
	if (r == 0 && writes)
		r = read_out(ctx, files, ret_text, err);
	if (r == 0 && (!str_trim(*ret_text).len || !utf8_valid(*ret_text) || memchr(ret_text->ptr, 0, ret_text->len)))
		r = err_set(err, ERR_UNAVAILABLE, "%.100s gave no text", argv[0]);
	store_destroy(files);
	return r;
}
