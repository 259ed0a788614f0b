/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Python file offers is only known by running it, so it is described in the sandbox, without files or variables,
 * once for each content: an opened workspace remembers the descriptions. The source goes in through standard input, so
 * it does not matter where the workspace is stored.
 *
 * A tool says what it needs in lines "# stead: files=write env=NAME,NAME net=HOST,HOST timeout=60" at the top of its
 * file, or as "rights" of its description. Without them it reads the files and gets no variables and no network.
 */
#include "agent/custom.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/custom_packages.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/exec/exec.h"
#include "home/exec/workers.h"
#include "text/schema.h"

#define HEAD_LINES   20
#define DESCRIBE_MS  20000
#define TIMEOUT_MOST 600

extern const struct str embedded_custom_runner;

enum files_right { FILES_NONE, FILES_READ, FILES_WRITE };

struct rights {
	enum files_right files;
	struct str env; /* names, with commas between them */
	struct str net; /* hosts, with commas between them */
	int64_t timeout_s;
};

struct custom_tool {
	struct str path;       /* tools/x.py */
	struct str source;     /* of a Python file; of an executable: its bytes */
	const struct jv *argv; /* of a program of the machine; NULL: the source is the program */
	bool is_python;
	bool is_warm; /* an interpreter waits for its calls */
	struct rights rights;
};

/* --- descriptions that are remembered --- */

struct described {
	pthread_mutex_t lock;
	struct arena *arena;
	struct jv *by_hash; /* what the runner said of a source */
};

static void *described_open(struct workspace *ws)
{
	struct described *d = xcalloc(1, sizeof(*d));

	(void)ws;
	pthread_mutex_init(&d->lock, NULL);
	d->arena = arena_new();
	d->by_hash = jv_object(d->arena);
	return d;
}

static void described_close(void *state)
{
	struct described *d = state;

	pthread_mutex_destroy(&d->lock);
	arena_destroy(d->arena);
	free(d);
}

static struct described *described_of(struct workspace *ws)
{
	static const char key;

	return workspace_slot(ws, &key, described_open, described_close);
}

/* --- running --- */

static const char *const *environment(struct workspace *ws, struct arena *arena, const struct rights *rights,
				      const char *const *base, struct err *err)
{
	const char **list = ARENA_ARRAY(arena, const char *, 256);
	struct str rest = rights->env, name, value;
	size_t n = 0;

	for (; base && base[n] && n < 128; n++)
		list[n] = base[n];
	list[n++] = "OPENPAW_WORKSPACE_PATH=/workspace";
	while (str_cut(&rest, ',', &name) && n < 250) {
		if (settings_var(ws, arena, arena_cstr(arena, str_trim(name)), &value, err) != 0)
			return NULL;
		if (value.len)
			list[n++] = arena_printf(arena, "%.*s=%.*s", STR_ARG(str_trim(name)), STR_ARG(value)).ptr;
	}
	return list;
}

static int run_job(struct workspace *ws, struct ctx *ctx, const struct custom_tool *tool, const char *const *argv,
		   struct str input, struct sandbox_result *ret, struct err *err)
{
	struct sandbox_job job;
	int r = exec_job(ws, ctx, &job, err);

	*ret = (struct sandbox_result){0};
	if (r)
		return r;
	job.argv = argv;
	job.input = input;
	job.limits.timeout_ms = tool->rights.timeout_s ? tool->rights.timeout_s * 1000 : job.limits.timeout_ms;
	job.limits.output = TOOL_TEXT_MAX;
	job.answer_max = tool->is_python ? TOOL_TEXT_MAX : 0;
	if (tool->rights.files == FILES_NONE)
		job.files = (struct sandbox_files){0};
	job.files.read_only = tool->rights.files != FILES_WRITE;
	job.files.tells_dropped = true;
	r = exec_net_hosts(ctx, &job, tool->rights.net, false, err);
	if (r)
		return r;
	job.env = environment(ws, ctx->arena, &tool->rights, job.env, err);
	if (!job.env)
		return -(int)err->kind;
	r = tool->is_python ? custom_packages(ws, ctx, &job, err) : 0;
	if (r == 0 && tool->is_warm)
		job.worker = exec_worker_take(ws, ctx, &job, tool->path, tool->source, true);
	if (r == 0)
		r = exec_run(ws, ctx, &job, ret, err);
	exec_worker_give(ws, job.worker);
	return r;
}

static int failed_run(const struct custom_tool *tool, struct arena *arena, const struct sandbox_result *result,
		      struct err *err)
{
	struct str said = str_trim(sandbox_clean(arena, result->said.text));

	if (result->timed_out)
		return err_set(err, ERR_TIMEOUT, "%.*s was stopped at its time limit; ask for less in one call",
			       STR_ARG(tool->path));
	return err_set(err, ERR_INVALID, "%.*s failed with exit code %d%s%.*s", STR_ARG(tool->path), result->exit_code,
		       said.len ? ": " : "", STR_ARG(utf8_first(said, 300)));
}

/* The model has to know that what the tool says of its files is not so. */
static struct str with_dropped(struct arena *arena, const struct custom_tool *tool, const struct sandbox_result *result,
			       struct str text)
{
	struct str end = text.len && text.ptr[text.len - 1] != '\n' ? STR("\n") : STR("");
	struct str more = result->dropped > 1
				  ? arena_printf(arena, " and %llu more", (unsigned long long)result->dropped - 1)
				  : STR("");

	if (!result->dropped)
		return text;
	return arena_printf(arena,
			    "%.*s%.*s[not kept: %.*s%.*s; %.*s may only read the files, a person can give it "
			    "files=write]\n",
			    STR_ARG(text), STR_ARG(end), STR_ARG(result->dropped_path), STR_ARG(more),
			    STR_ARG(tool->path));
}

/* Gives the runner's last word: {tools}, {text} or {error}. */
static int run_python(struct workspace *ws, struct ctx *ctx, const struct custom_tool *tool, struct jv *job,
		      struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	const char *argv[] = {"python3", "-c", arena_cstr(arena, embedded_custom_runner), NULL};
	struct sandbox_result result;
	struct buf input;
	struct err ignored;
	int r;

	jv_set_str(arena, job, "file", tool->path);
	jv_set_str(arena, job, "source", tool->source);
	buf_init(&input, arena, 2 * JSON_LEN_MAX);
	jv_write(&input, job);
	r = run_job(ws, ctx, tool, argv, buf_str(&input), &result, err);
	if (r)
		return r;
	if (result.answer_is_cut)
		r = err_set(err, ERR_TOO_LARGE, "%.*s: the result is larger than %zu MiB; write it to a file",
			    STR_ARG(tool->path), TOOL_TEXT_MAX / MIB);
	else if (result.timed_out || jv_parse(arena, result.answer, ret, &ignored) != 0)
		r = failed_run(tool, arena, &result, err);
	else if (jv_get(*ret, "text"))
		jv_set_str(arena, *ret, "text", with_dropped(arena, tool, &result, jv_get_str(*ret, "text")));
	sandbox_result_release(&result);
	return r;
}

static int call_python(const struct agent_tool *t, struct run *run, struct ctx *ctx, const struct jv *args,
		       struct str *ret_text, struct err *err)
{
	const struct custom_tool *tool = t->arg;
	struct jv *job = jv_object(ctx->arena), *answer = NULL;
	int r;

	jv_set_str(ctx->arena, job, "call", t->info.name);
	jv_set(ctx->arena, job, "args", (struct jv *)args);
	r = run_python(run->agent->ws, ctx, tool, job, &answer, err);
	if (r)
		return r;
	if (jv_get_str(answer, "error").len)
		return err_set(err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(jv_get_str(answer, "error"), 400)));
	*ret_text = jv_get_str(answer, "text");
	return 0;
}

static int call_program(const struct agent_tool *t, struct run *run, struct ctx *ctx, const struct jv *args,
			struct str *ret_text, struct err *err)
{
	const struct custom_tool *tool = t->arg;
	struct arena *arena = ctx->arena;
	/* the program comes first on standard input, then its arguments */
	const char *script[] = {"sh",
				"-c",
				"head -c \"$1\" >/tmp/tool && chmod 700 /tmp/tool && exec /tmp/tool",
				"sh",
				arena_printf(arena, "%zu", tool->source.len).ptr,
				NULL};
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(tool->argv) + 1);
	struct sandbox_result result;
	struct buf input;
	size_t n = 0;
	int r;

	for (const struct jv_member *m = jv_first(tool->argv); m; m = m->next)
		argv[n++] = arena_cstr(arena, jv_str_of(m->value));
	buf_init(&input, arena, 2 * JSON_LEN_MAX);
	if (!tool->argv)
		buf_add(&input, tool->source);
	jv_write(&input, args);
	buf_char(&input, '\n');
	r = run_job(run->agent->ws, ctx, tool, tool->argv ? argv : script, buf_str(&input), &result, err);
	if (r)
		return r;
	if (result.exit_code)
		r = failed_run(tool, arena, &result, err);
	*ret_text = with_dropped(arena, tool, &result, sandbox_clean(arena, result.out.text));
	sandbox_result_release(&result);
	return r;
}

/* --- what they declare --- */

static int read_files_right(struct str word, enum files_right *ret, struct err *err)
{
	static const char *const words[] = {"none", "read", "write"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (str_is(word, words[i])) {
			*ret = (enum files_right)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "the right \"files\" must be none, read or write");
}

static bool read_seconds(struct str text, int64_t *ret)
{
	int64_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9' || n > TIMEOUT_MOST)
			return false;
		n = 10 * n + (text.ptr[i] - '0');
	}
	*ret = n;
	return n > 0 && n <= TIMEOUT_MOST;
}

static int read_right(struct str key, struct str value, struct rights *rights, struct err *err)
{
	if (str_is(key, "files"))
		return read_files_right(value, &rights->files, err);
	if (str_is(key, "env")) {
		rights->env = value;
	} else if (str_is(key, "net")) {
		rights->net = value;
	} else if (!str_is(key, "timeout") || !read_seconds(value, &rights->timeout_s)) {
		return err_set(err, ERR_INVALID,
			       "\"%.*s=%.*s\" is not a right; there are files, env, net and timeout (1 to %d)",
			       STR_ARG(utf8_first(key, 40)), STR_ARG(utf8_first(value, 40)), TIMEOUT_MOST);
	}
	return 0;
}

static int head_rights(struct str source, struct rights *rights, struct err *err)
{
	struct str line, word;
	int r = 0;

	for (int i = 0; i < HEAD_LINES && r == 0 && str_cut(&source, '\n', &line); i++) {
		if (!str_starts(line, STR("# stead:")))
			continue;
		line = str_from(line, strlen("# stead:"));
		while (r == 0 && str_cut(&line, ' ', &word)) {
			size_t equals = str_find_char(word, '=');

			if (str_trim(word).len)
				r = read_right(str_first(str_trim(word), equals),
					       str_from(str_trim(word), equals < word.len ? equals + 1 : word.len),
					       rights, err);
		}
	}
	return r;
}

/* --- finding them --- */

struct finding {
	struct agent *agent;
	struct ctx *ctx;
	void (*report)(void *arg, struct str sentence);
	void *arg;
};

static void complain(struct finding *f, struct str path, const struct err *err)
{
	struct arena *arena = f->ctx->arena;

	f->report(f->arg, arena_printf(arena, "the custom tools of %.*s are left out: %.*s", STR_ARG(path),
				       STR_ARG(err_text(arena, err))));
}

static bool name_ok(struct str name)
{
	if (!name.len || name.len > 64)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!((name.ptr[i] >= 'a' && name.ptr[i] <= 'z') || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') ||
		      (name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '_' || name.ptr[i] == '-'))
			return false;
	return true;
}

/* A tool that may reach a host acts outside the workspace, whatever it may do with the files. */
static unsigned traits_of(const struct rights *rights)
{
	if (rights->net.len)
		return TOOL_OPEN_WORLD;
	return rights->files == FILES_WRITE ? 0 : TOOL_READS_ONLY | TOOL_IDEMPOTENT;
}

/* Adds one, from {name, description, input_schema}. */
static int add_tool(struct finding *f, const struct custom_tool *custom, const struct jv *says, struct err *err)
{
	struct arena *arena = f->agent->arena;
	struct custom_tool *kept = ARENA_NEW(arena, struct custom_tool);
	struct str name = arena_str(arena, jv_get_str(says, "name"));
	struct agent_tool tool = {.info = {.name = name,
					   .title = name,
					   .description = arena_str(arena, jv_get_str(says, "description")),
					   .input_schema = agent_keep(arena, jv_get(says, "input_schema")),
					   .traits = traits_of(&custom->rights)},
				  .ends_itself = true,
				  .call = custom->is_python ? call_python : call_program,
				  .arg = kept};

	*kept = *custom;
	if (!name_ok(name))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a valid name for a tool",
			       STR_ARG(utf8_first(name, 80)));
	if (tool_is_native(name))
		return err_set(err, ERR_EXISTS, "the name \"%.*s\" is reserved for a tool of Stead", STR_ARG(name));
	if (!tool.info.input_schema || tool.info.input_schema->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "the tool \"%.*s\" has no input_schema", STR_ARG(name));
	if (schema_compile(tool.info.input_schema, err) != 0)
		return err_prefix(err, "the schema of the tool \"%.*s\"", STR_ARG(name));
	return agent_tool_add(f->agent, &tool, err);
}

/* What the runner says of a file; remembered by content. */
static int describe(struct finding *f, const struct custom_tool *custom, const struct jv **ret, struct err *err)
{
	struct described *d = described_of(f->agent->ws);
	struct custom_tool apart = *custom;
	struct str hash = hash_hex128(f->ctx->arena, custom->source);
	struct jv *answer = NULL;
	struct ctx ctx = *f->ctx;
	int r = 0;

	apart.is_warm = false;
	apart.rights = (struct rights){.files = FILES_NONE, .timeout_s = DESCRIBE_MS / 1000};
	pthread_mutex_lock(&d->lock);
	*ret = jv_get_key(d->by_hash, hash);
	if (!*ret) {
		r = run_python(f->agent->ws, &ctx, &apart, jv_object(ctx.arena), &answer, err);
		if (r == 0) {
			*ret = agent_keep(d->arena, answer);
			jv_set_key(d->arena, d->by_hash, arena_str(d->arena, hash), (struct jv *)*ret);
		}
	}
	pthread_mutex_unlock(&d->lock);
	if (r == 0 && jv_get_str(*ret, "error").len)
		return err_set(err, ERR_INVALID, "%.*s", STR_ARG(utf8_first(jv_get_str(*ret, "error"), 300)));
	return r;
}

static int take_python(struct finding *f, struct custom_tool *custom, struct err *err)
{
	const struct jv *says;
	int r = head_rights(custom->source, &custom->rights, err);

	custom->is_python = custom->is_warm = true;
	if (r == 0)
		r = describe(f, custom, &says, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(says, "tools")); m; m = m->next) {
		struct err own;

		if (add_tool(f, custom, m->value, &own) != 0)
			complain(f, custom->path, &own);
	}
	return 0;
}

static int read_source(struct finding *f, struct str path, struct str *ret, struct err *err)
{
	struct str bytes;
	int r = store_read(workspace_home(f->agent->ws), f->ctx, (struct wpath){path}, STORE_WHOLE, CUSTOM_TOOL_MAX,
			   &bytes, NULL, err);

	if (r == 0)
		*ret = arena_str(f->agent->arena, bytes);
	return r;
}

static int take_description(struct finding *f, struct custom_tool *custom, struct err *err)
{
	struct arena *arena = f->agent->arena;
	struct jv *says;
	struct str file;
	int r = jv_parse(arena, custom->source, &says, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(says, "rights")); m && r == 0; m = m->next) {
		struct buf value;

		buf_init(&value, arena, KIB);
		for (const struct jv_member *i = jv_first(m->value); i; i = i->next)
			buf_printf(&value, "%s%.*s", value.len ? "," : "", STR_ARG(jv_str_of(i->value)));
		if (m->value->type == JV_INT)
			buf_printf(&value, "%lld", (long long)m->value->u.i);
		r = read_right(m->key, m->value->type == JV_STR ? m->value->u.s : buf_str(&value), &custom->rights,
			       err);
	}
	file = jv_get_str(says, "file");
	custom->argv = jv_get(says, "command");
	if (r == 0 && (file.len > 0) == (jv_count(custom->argv) > 0))
		r = err_set(err, ERR_INVALID, "it needs either \"file\", a program in tools/, or \"command\", a list");
	if (r == 0 && file.len && !wpath_name_ok(file))
		r = err_set(err, ERR_INVALID, "\"file\" must name a file in tools/");
	if (r == 0 && file.len)
		r = read_source(f, arena_printf(arena, "tools/%.*s", STR_ARG(file)), &custom->source, err);
	return r ? r : add_tool(f, custom, says, err);
}

static void take_file(struct finding *f, struct str path)
{
	struct custom_tool custom = {.path = arena_str(f->agent->arena, path), .rights = {.files = FILES_READ}};
	struct err err;
	int r = read_source(f, custom.path, &custom.source, &err);

	if (r == 0)
		r = str_ends(path, STR(".py")) ? take_python(f, &custom, &err) : take_description(f, &custom, &err);
	if (r)
		complain(f, path, &err);
}

void custom_tools_add(struct agent *agent, struct ctx *ctx, void (*report)(void *arg, struct str sentence), void *arg)
{
	struct finding f = {agent, ctx, report, arg};
	struct store_list_req req = {.limit = CUSTOM_TOOLS_MAX};
	struct store_page page = {0};
	struct err ignored;

	if (store_list(workspace_home(agent->ws), ctx, (struct wpath){STR("tools")}, &req, &page, &ignored) != 0)
		return;
	for (size_t i = 0; i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path);

		if (page.entries[i].stat.kind == STORE_FILE && name.ptr[0] != '_' && name.ptr[0] != '.' &&
		    (str_ends(name, STR(".py")) || str_ends(name, STR(".json"))))
			take_file(&f, page.entries[i].path.s);
	}
}
