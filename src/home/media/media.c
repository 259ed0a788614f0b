/* SPDX-License-Identifier: Apache-2.0 */
/* The input is put into a store in memory, the sandbox shows it to the program as files, and the output is read from
 * that store. So a program that reads hostile sound or Markdown can harm nothing but its own output. */
#include "home/media/media.h"

#include "home/exec/exec.h"
#include "store/stores.h"
#include "tool/tool.h"

#define SAID_SHOWN ((size_t)300)

static const struct jv *section_of(struct workspace *ws, const char *key)
{
	return jv_get(jv_get(workspace_config(ws)->document, "media"), key);
}

bool media_is_on(struct workspace *ws, const char *key)
{
	return jv_get(section_of(ws, key), "command") != NULL;
}

/* `text` with what the names in braces stand for. */
static const char *fill(struct arena *arena, struct str text, const struct str names[3], const struct str values[3])
{
	struct buf out;

	buf_init(&out, arena, 64 * KIB);
	while (text.len) {
		size_t i = 0;

		while (i < 3 && !str_starts(text, names[i]))
			i++;
		buf_add(&out, i < 3 ? values[i] : str_first(text, 1));
		text = str_from(text, i < 3 ? names[i].len : 1);
	}
	return arena_cstr(arena, buf_str(&out));
}

static const char *const *argv_of(struct arena *arena, const struct jv *command, struct str in, struct str out,
				  struct str theme)
{
	const struct str names[3] = {STR("{in}"), STR("{out}"), STR("{theme}")}, values[3] = {in, out, theme};
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(command) + 1);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(command); m; m = m->next)
		argv[n++] = fill(arena, jv_str_of(m->value), names, values);
	return argv;
}

static bool names_out(const struct jv *command)
{
	for (const struct jv_member *m = jv_first(command); m; m = m->next)
		if (str_find(jv_str_of(m->value), STR("{out}"), 0) != SIZE_MAX)
			return true;
	return false;
}

/* What the program made, or why it did not. */
static int take(struct ctx *ctx, const struct media_job *job, struct store *files, const struct sandbox_result *result,
		const char *program, struct str out, bool from_file, struct str *ret, struct err *err)
{
	struct str said = utf8_first(str_trim(sandbox_clean(ctx->arena, result->said.text)), SAID_SHOWN);
	int r;

	if (result->timed_out)
		return err_set(err, ERR_TIMEOUT, "%s (media.%s) did not end within its time limit", program, job->key);
	if (result->exit_code)
		return err_set(err, ERR_UNAVAILABLE, "%s (media.%s) failed with exit code %d%s%.*s", program, job->key,
			       result->exit_code, said.len ? ": " : "", STR_ARG(said));
	if (!from_file) {
		*ret = arena_str(ctx->arena, result->out.text);
		return 0;
	}
	r = store_read(files, ctx, (struct wpath){out}, STORE_WHOLE, job->output_max, ret, NULL, err);
	if (r == -ERR_NOT_FOUND || (r == 0 && !ret->len))
		return err_set(err, ERR_UNAVAILABLE, "%s (media.%s) wrote nothing to {out}", program, job->key);
	return r;
}

int media_run(struct workspace *ws, struct ctx *ctx, const struct media_job *job, struct str *ret, struct err *err)
{
	const struct jv *section = section_of(ws, job->key), *command = jv_get(section, "command");
	struct str out = arena_printf(ctx->arena, "out.%s", job->out);
	bool from_file = names_out(command);
	struct sandbox_result result;
	struct sandbox_job run;
	struct store *files;
	int r;

	if (!command)
		return err_set(err, ERR_UNSUPPORTED, "agent.yaml names no program for this; a person must set media.%s",
			       job->key);
	files = store_memory_new();
	r = store_write(files, ctx, (struct wpath){job->in}, job->bytes, (struct store_cond){0}, NULL, err);
	if (r == 0)
		r = exec_job_on(ws, ctx, files, STR_NONE, NULL, &run, err);
	if (r == 0) {
		run.files.read_only = false;
		run.files.is_hidden = NULL;
		run.argv = argv_of(ctx->arena, command, job->in, out, job->theme);
		run.limits.timeout_ms = jv_get_int(section, "timeout_seconds", 120) * 1000;
		r = sandbox_run(ctx, &run, &result, err);
	}
	if (r == 0) {
		r = take(ctx, job, files, &result, run.argv[0], out, from_file, ret, err);
		sandbox_result_release(&result);
	}
	store_destroy(files);
	return r;
}

/* A name that is safe as one, with the ending of the original. */
static struct str input_name(struct arena *arena, struct str name)
{
	struct str ending = str_from(name, str_rfind_char(name, '.') + 1);

	for (size_t i = 0; i < ending.len; i++)
		if (!((ending.ptr[i] >= 'a' && ending.ptr[i] <= 'z') || (ending.ptr[i] >= '0' && ending.ptr[i] <= '9')))
			return STR("in");
	return ending.len && ending.len <= 8 ? arena_printf(arena, "in.%.*s", STR_ARG(ending)) : STR("in");
}

int media_transcribe(struct workspace *ws, struct ctx *ctx, struct str name, struct str bytes, struct str *ret,
		     struct err *err)
{
	struct media_job job = {.key = "transcribe",
				.in = input_name(ctx->arena, name),
				.bytes = bytes,
				.out = "txt",
				.output_max = TOOL_TEXT_MAX};
	struct err denied;
	int r;

	*ret = STR_NONE;
	if (!media_is_on(ws, "transcribe") || tool_check_allowed(ws, "speech_to_text", &denied) != 0)
		return 0;
	r = media_run(ws, ctx, &job, ret, err);
	if (r == 0)
		*ret = str_trim(sandbox_clean(ctx->arena, *ret));
	return r;
}
