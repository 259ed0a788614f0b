/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running code. An interpreter gets a small runner as its program and the code with its input through its standard
 * input: neither is in a file, where it would be a change, nor in the environment, which is small and which other
 * processes see. The runner answers through descriptor 3. The code runs in the same process as the runner and can forge
 * an answer; that is its own result, which is checked here and not there.
 */
#include "home/code/code.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/exec/workers.h"
#include "text/schema.h"
#include "workspace/workspace.h"

extern const struct str code_python_runner, code_node_runner;

static const struct jv *config_of(struct call *call)
{
	return jv_get(workspace_config(call->ws)->document, "code");
}

bool code_has_network(struct workspace *ws)
{
	return jv_get_bool(jv_get(workspace_config(ws)->document, "code"), "allow_network", false);
}

/* --- the program --- */

static int unknown_language(struct call *call, struct str name, struct err *err)
{
	struct buf list;

	buf_init(&list, call->ctx->arena, 200);
	buf_lit(&list, "python, node, sh");
	for (const struct jv_member *m = jv_first(jv_get(config_of(call), "interpreters")); m; m = m->next)
		buf_printf(&list, ", %.*s", STR_ARG(m->key));
	return err_set(err, ERR_INVALID,
		       "there is no interpreter \"%.*s\"; the interpreters are %.*s, and code.interpreters adds more",
		       STR_ARG(utf8_first(name, 40)), STR_ARG(buf_str(&list)));
}

/* The command line. *ret_runs: the program is a runner of ours, which gets the code through its input. */
static int plan_argv(struct call *call, const struct code_run *what, const char *const **ret, bool *ret_runs,
		     struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *own = jv_get_key(jv_get(config_of(call), "interpreters"), what->language);
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(own) + 5);
	size_t n = 0;

	*ret_runs = false;
	for (const struct jv_member *m = jv_first(own); m; m = m->next)
		argv[n++] = arena_cstr(arena, jv_str_of(m->value));
	if (!own && str_is(what->language, "python")) {
		*ret_runs = true;
		argv[n++] = "python3";
		argv[n++] = "-I";
		argv[n++] = "-c";
		argv[n++] = code_python_runner.ptr;
	} else if (!own && str_is(what->language, "node")) {
		*ret_runs = true;
		argv[n++] = "node";
		argv[n++] = "-e";
		argv[n++] = code_node_runner.ptr;
	} else if (!own && str_is(what->language, "sh")) {
		argv[n++] = "sh";
		argv[n++] = "-c";
	} else if (!own) {
		return unknown_language(call, what->language, err);
	}
	if (!*ret_runs)
		argv[n++] = arena_cstr(arena, what->code);
	*ret = argv;
	return 0;
}

static struct str input_text(struct arena *arena, const struct code_run *what, const char *at, bool runs, bool is_warm,
			     struct str state)
{
	struct jv *v = jv_object(arena);
	struct jv *input = what->input ? jv_copy(arena, what->input) : jv_null(arena);
	struct buf text;

	if (runs) {
		jv_set_str(arena, v, "code", what->code);
		jv_set_str(arena, v, "root", str_of(at ? at : SANDBOX_FILES_AT));
		jv_set(arena, v, "input", input);
		if (state.len)
			jv_set_str(arena, v, "state", state);
		if (is_warm && what->env)
			jv_set(arena, v, "env", jv_copy(arena, what->env));
		input = v;
	}
	buf_init(&text, arena, 8 * (CODE_TEXT_MAX + CODE_INPUT_MAX));
	jv_write(&text, input);
	return buf_str(&text);
}

static int check_input(struct arena *arena, const struct jv *input, struct err *err)
{
	struct buf text;

	buf_init(&text, arena, CODE_INPUT_MAX);
	if (input)
		jv_write(&text, input);
	return text.overflow ? err_set(err, ERR_TOO_LARGE, "the input has more than %d bytes; put it into a file",
				       CODE_INPUT_MAX)
			     : 0;
}

/* The variables of the job, those that drawing needs, and those of the call. */
static const char *const *add_env(struct arena *arena, const char *const *have, const struct jv *more)
{
	static const char *const drawing[] = {"MPLBACKEND=Agg", "MPLCONFIGDIR=/tmp"};
	size_t count = 0, n = 0;
	const char **env;

	while (have && have[count])
		count++;
	env = ARENA_ARRAY(arena, const char *, count + COUNT(drawing) + jv_count(more) + 1);
	for (size_t i = 0; i < COUNT(drawing); i++)
		env[n++] = drawing[i];
	for (size_t i = 0; i < count; i++)
		env[n++] = have[i];
	for (const struct jv_member *m = jv_first(more); m; m = m->next)
		env[n++] = arena_printf(arena, "%.*s=%.*s", STR_ARG(m->key), STR_ARG(jv_str_of(m->value))).ptr;
	return env;
}

static int check_code(const struct code_run *what, struct err *err)
{
	if (what->code.len > CODE_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the code has %zu bytes; at most %d are allowed; put parts of it into files",
			       what->code.len, CODE_TEXT_MAX);
	if (!what->code.len || memchr(what->code.ptr, 0, what->code.len))
		return err_set(err, ERR_INVALID, "there is no code, or it has a NUL character; give the code as text");
	if (what->timeout_s > SANDBOX_SECONDS_MAX)
		return err_set(err, ERR_INVALID,
			       "the time limit is %lld seconds; at most %d are allowed; do it in shorter steps",
			       (long long)what->timeout_s, SANDBOX_SECONDS_MAX);
	return 0;
}

/* --- the answer --- */

static void take_error(struct arena *arena, const struct jv *error, struct jv *value)
{
	struct jv *v = jv_object(arena);
	static const char *const keys[] = {"name", "value", "traceback"};

	if (!error || error->type != JV_OBJECT)
		return;
	for (size_t i = 0; i < COUNT(keys); i++)
		jv_set_str(arena, v, keys[i], sandbox_clean(arena, jv_get_str(error, keys[i])));
	jv_set(arena, value, "error", v);
}

/* The code decides what is in here: take what has the right form, and no more. */
static void take_results(struct call *call, const struct jv *given, struct jv *value, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;
	struct jv *list = jv_array(arena);

	for (const struct jv_member *m = jv_first(given); m && jv_count(list) < CODE_RESULTS_MAX; m = m->next) {
		struct str mime = jv_get_str(m->value, "mime"), text = jv_get_str(m->value, "path"), bytes;
		struct jv *v = jv_object(arena);
		struct wpath path;
		struct err ignored;
		bool is_image = str_is(mime, "image/png") || str_is(mime, "image/jpeg");

		if (!mime.len || mime.len > 100)
			continue;
		jv_set_str(arena, v, "mime", mime);
		if (text.len)
			jv_set_str(arena, v, "path", text);
		if (jv_get_str(m->value, "data").len)
			jv_set_str(arena, v, "data", jv_get_str(m->value, "data"));
		jv_push(arena, list, v);
		if (is_image && !ret->media.mime.len && text.len && wpath_parse(text, &path, &ignored) == 0 &&
		    store_read(call->files, call->ctx, path, STORE_WHOLE, READ_MEDIA_MAX, &bytes, NULL, &ignored) == 0)
			ret->media = (struct media){.mime = mime, .data = base64_encode(arena, bytes)};
	}
	jv_set(arena, value, "results", list);
}

static void take_answer(struct call *call, const struct sandbox_result *result, bool runs, struct jv *value,
			struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;
	struct jv *answer = NULL;
	struct err err;

	jv_set(arena, value, "results", jv_array(arena));
	if (!result->answer.len && !result->answer_is_cut)
		return;
	if (result->answer_is_cut || jv_parse(arena, result->answer, &answer, &err) != 0) {
		jv_set_str(arena, value, "problem",
			   result->answer_is_cut
				   ? arena_printf(arena, "the result is larger than %zu MiB", CODE_ANSWER_MAX / MIB)
				   : STR("what was written to descriptor 3 is not JSON"));
		return;
	}
	if (!runs) {
		jv_set(arena, value, "result", answer);
		return;
	}
	if (answer->type != JV_OBJECT)
		return;
	if (jv_get(answer, "result"))
		jv_set(arena, value, "result", jv_copy(arena, jv_get(answer, "result")));
	if (jv_get_str(answer, "text").len)
		jv_set_str(arena, value, "text", sandbox_clean(arena, jv_get_str(answer, "text")));
	take_error(arena, jv_get(answer, "error"), value);
	take_results(call, jv_get(answer, "results"), value, ret);
}

/* The variables of a session are a file in a home that is kept. Where agent.yaml keeps none, that of the session is, or
   of the user if the caller has no session. *ret_state is the file. */
static int keep_session(struct call *call, const struct code_run *what, struct sandbox_job *job, struct str *ret_state,
			struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str session = call->ctx->actor.session;
	int r = 0;

	if (!session.len)
		session = workspace_actor(call->ws).session;
	*ret_state = STR_NONE;
	if (!what->session)
		return 0;
	if (!str_is(what->language, "python"))
		return err_set(err, ERR_INVALID, "only python has sessions; leave out \"mode\"");
	if (!job->keep)
		r = exec_keep(call->ws, call->ctx, session.len ? STR("session") : STR("user"), job, err);
	*ret_state = arena_printf(arena, "~/.stead-session/%s", hash_hex128(arena, session).ptr);
	return r;
}

/* An interpreter that waits, if the call can be made by one. It has the variables that every call has; a function's own
   come with the call. */
static struct sandbox_worker *take_worker(struct call *call, const struct code_run *what, struct sandbox_job *job)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *modules = jv_get(config_of(call), "preload");
	struct buf list;

	if (!str_is(what->language, "python") || what->session ||
	    jv_get_key(jv_get(config_of(call), "interpreters"), what->language))
		return NULL;
	buf_init(&list, arena, WORKER_INPUT_MAX);
	jv_write(&list, modules ? modules : jv_array(arena));
	return exec_worker_take(call->ws, call->ctx, job, STR("run_code"), buf_str(&list), false);
}

int code_run(struct call *call, const struct code_run *what, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct sandbox_result result;
	struct sandbox_job job;
	const char *const *own;
	struct str state;
	bool runs;
	int r = check_code(what, err);

	if (r == 0)
		r = check_input(arena, what->input, err);
	if (r == 0)
		r = exec_job(call->ws, call->ctx, &job, err);
	if (r == 0 && !what->allow_network)
		r = exec_net_hosts(call->ctx, &job, STR_NONE, false, err);
	if (r == 0)
		r = plan_argv(call, what, &job.argv, &runs, err);
	if (r == 0)
		r = keep_session(call, what, &job, &state, err);
	if (r)
		return r;
	if (what->at)
		job.files.at = what->at;
	job.answer_max = CODE_ANSWER_MAX;
	job.limits.timeout_ms = (what->timeout_s ? what->timeout_s : CODE_SECONDS_DEFAULT) * 1000;
	own = job.env;
	job.env = add_env(arena, own, NULL);
	job.worker = take_worker(call, what, &job);
	if (!job.worker)
		job.env = add_env(arena, own, what->env);
	job.input = input_text(arena, what, job.files.at, runs, job.worker != NULL, state);
	r = exec_run(call->ws, call->ctx, &job, &result, err);
	exec_worker_give(call->ws, job.worker);
	if (r)
		return r;
	ret->value = exec_value(call->ws, call->ctx, &result);
	take_answer(call, &result, runs, ret->value, ret);
	return 0;
}

/* --- functions --- */

static int unknown_function(struct call *call, struct str name, struct err *err)
{
	const struct jv *functions = jv_get(config_of(call), "functions");
	struct buf list;

	buf_init(&list, call->ctx->arena, 300);
	for (const struct jv_member *m = jv_first(functions); m; m = m->next)
		buf_printf(&list, "%s%.*s", list.len ? ", " : "", STR_ARG(m->key));
	if (!list.len)
		return err_set(err, ERR_NOT_FOUND,
			       "there are no functions; a person adds them to code.functions in agent.yaml");
	return err_set(err, ERR_NOT_FOUND, "there is no function \"%.*s\"; the functions are %.*s",
		       STR_ARG(utf8_first(name, 80)), STR_ARG(buf_str(&list)));
}

/* ERR_INVALID when the value is not what the function declares; nothing declared is anything. */
static int check_value(struct arena *arena, const struct jv *function, const char *key, const struct jv *value,
		       const char *what, struct err *err)
{
	const struct jv *written = jv_get(function, key);
	struct jv *schema;
	int r = written ? code_schema(arena, written, &schema, err) : 0;

	if (r)
		return err_prefix(err, "agent.yaml: %s of the function", key);
	return written ? schema_check(schema, value ? value : jv_null(arena), what, err) : 0;
}

int code_call(struct call *call, struct str name, const struct jv *input, struct outcome *ret, struct err *err)
{
	const struct jv *function = jv_get_key(jv_get(config_of(call), "functions"), name);
	struct str runtime = jv_get_str(function, "runtime");
	struct code_run what = {.language = runtime.len ? runtime : STR("python"),
				.code = jv_get_str(function, "code"),
				.input = input,
				.env = jv_get(function, "env_variables"),
				.allow_network = jv_get_bool(function, "allow_network", false),
				.timeout_s = jv_get_int(function, "timeout_seconds", CODE_SECONDS_DEFAULT)};
	const struct jv *result;
	int r;

	if (!function)
		return unknown_function(call, name, err);
	r = check_value(call->ctx->arena, function, "input_schema", input, "input", err);
	if (r == 0)
		r = code_run(call, &what, ret, err);
	if (r)
		return r;
	result = jv_get(ret->value, "result");
	if (!result) {
		if (!jv_get(ret->value, "error"))
			jv_set_str(call->ctx->arena, ret->value, "problem", STR("the function ended without a result"));
		return 0;
	}
	r = check_value(call->ctx->arena, function, "output_schema", result, "the result", err);
	if (r)
		return err_prefix(err, "the function \"%.*s\"", STR_ARG(name));
	return 0;
}
