/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstead: the C interface over the same workspace and the same tools that the program serves. Nothing is decided
 * here; this directory turns the embedder's C strings into slices, errors into struct stead_error, and results into
 * memory that the embedder owns (malloc). Each call has an arena of its own, so threads share only the workspace, which
 * is thread-safe. This file opens handles, calls tools and forwards events.
 *
 * Handles for further users count on the first one's workspace. The count, and not a rule about the order of closing,
 * keeps it open: a host that ends users on many threads has no such order.
 */
#include <stdlib.h>

#include "base/env.h"
#include "base/fatal.h"
#include "lib/lib_internal.h"
#include "store/stores.h"

struct subscription {
	struct subscription *next;
	uint64_t handle;
	void (*listener)(void *arg, const struct stead_event *event);
	void *arg;
};

const char *stead_version(void)
{
	return STEAD_VERSION;
}

void stead_set_fatal(void (*hook)(const char *message))
{
	fatal_set_hook(hook);
}

void stead_set_environment(const char *(*environment)(const char *name))
{
	env_set_lookup(environment);
}

void stead_free(void *memory)
{
	free(memory);
}

/* --- opening --- */

static int read_options(const struct stead_options *given, struct workspace_opts *ret, struct str *ret_dialect,
			struct err *err)
{
	struct stead_options o = {0};
	int r = given ? lib_take(given, "stead_options", &o, sizeof o, err) : 0;

	if (r)
		return r;
	*ret = (struct workspace_opts){
		.store_url = str_of(o.store),
		.name = str_of(o.workspace),
		.user = str_of(o.user),
		.agent = str_of(o.agent),
		.session = str_of(o.session),
		.root = str_of(o.root),
		.files_dir = str_of(o.files_dir),
		.create = o.create,
		.relaxed = o.relaxed,
		.cancel = o.cancel ? &o.cancel->cancel : NULL,
	};
	*ret_dialect = str_of(o.dialect);
	dialect_opts(*ret_dialect, ret);
	return lib_deadline(o.timeout_ms, &ret->deadline_ns, err);
}

static struct stead *handle_new(struct stead *root, struct workspace *ws, struct toolset *set)
{
	struct stead *stead = xcalloc(1, sizeof(*stead));

	stead->root = root ? root : stead;
	stead->ws = ws;
	stead->set = set;
	pthread_mutex_init(&stead->lock, NULL);
	atomic_fetch_add(&stead->root->refs, 1);
	return stead;
}

int stead_open(const struct stead_options *options, struct stead **ret_stead, struct stead_error *error)
{
	struct workspace_opts opts;
	struct workspace *ws;
	struct toolset *set;
	struct str dialect;
	struct err err = {0};
	int r = read_options(options, &opts, &dialect, &err);

	if (r == 0)
		r = workspace_open(&opts, &ws, &err);
	if (r)
		return lib_end(&err, r, error);
	r = toolset_new(ws, dialect, &set, &err);
	if (r)
		workspace_close(ws);
	else
		*ret_stead = handle_new(NULL, ws, set);
	return lib_end(&err, r, error);
}

int stead_open_for(struct stead *of, const char *user, const char *agent, const char *session, struct stead **ret_stead,
		   struct stead_error *error)
{
	struct workspace *ws;
	struct err err = {0};
	int r = workspace_open_for(of->root->ws, str_of(user), str_of(agent), str_of(session), &ws, &err);

	if (r == 0)
		*ret_stead = handle_new(of->root, ws, toolset_for(of->root->set, ws));
	return lib_end(&err, r, error);
}

static void handle_end(struct stead *stead)
{
	toolset_destroy(stead->set);
	workspace_close(stead->ws);
	pthread_mutex_destroy(&stead->lock);
	free(stead);
}

void stead_close(struct stead *stead)
{
	struct stead *root;

	if (!stead)
		return;
	while (stead->subscriptions)
		stead_unsubscribe(stead, stead->subscriptions->handle);
	root = stead->root;
	if (stead != root)
		handle_end(stead);
	if (atomic_fetch_sub(&root->refs, 1) == 1)
		handle_end(root);
}

/* --- tools --- */

/* A copy for the caller; NULL text gives NULL. */
static int copy_out(struct str s, char **ret, struct err *err)
{
	char *copy = s.ptr ? malloc(s.len + 1) : NULL;

	if (s.ptr && !copy)
		return err_set(err, ERR_TOO_LARGE, "there is not enough memory for a result of %zu bytes; ask for less",
			       s.len);
	if (copy) {
		memcpy(copy, s.ptr, s.len);
		copy[s.len] = '\0';
	}
	*ret = copy;
	return 0;
}

static int json_out(struct arena *arena, const struct jv *value, char **ret, struct err *err)
{
	struct buf buf;

	buf_init(&buf, arena, SIZE_MAX / 4);
	if (value)
		jv_write(&buf, value);
	return copy_out(value ? buf_str(&buf) : STR_NONE, ret, err);
}

static int run_tool(struct lib_call *c, struct stead *stead, const char *tool, const char *arguments,
		    struct tool_result *ret_result)
{
	struct jv *args = NULL;

	if (!tool)
		return err_set(&c->err, ERR_INVALID, "no tool is named; list them with stead_tools()");
	if (arguments && jv_parse(c->ctx.arena, str_of(arguments), &args, &c->err))
		return err_prefix(&c->err, "%.80s: the arguments", tool);
	return toolset_call(stead->set, &c->ctx, str_of(tool), args, ret_result, &c->err);
}

int stead_call(struct stead *stead, const struct stead_call_options *how, const char *tool, const char *arguments,
	       char **ret_text, char **ret_json, struct stead_error *error)
{
	struct tool_result result = {0};
	LIB_CALL c;
	int r = lib_begin_plain(&c, stead, how);

	if (ret_text)
		*ret_text = NULL;
	if (ret_json)
		*ret_json = NULL;
	if (r == 0)
		r = run_tool(&c, stead, tool, arguments, &result);
	if (r == 0 && ret_text)
		r = copy_out(result.text, ret_text, &c.err);
	if (r == 0 && ret_json && !result.is_error)
		r = json_out(c.ctx.arena, result.value, ret_json, &c.err);
	if (r && ret_text) {
		free(*ret_text);
		*ret_text = NULL;
	}
	if (r == 0 && result.is_error)
		return lib_end(&result.err, -(int)result.err.kind, error);
	return lib_end(&c.err, r, error);
}

static struct jv *describe(struct arena *arena, const struct tool_info *info)
{
	struct jv *tool = jv_object(arena);

	jv_set_str(arena, tool, "name", info->name);
	jv_set_str(arena, tool, "title", info->title);
	jv_set_str(arena, tool, "description", info->description);
	jv_set(arena, tool, "inputSchema", jv_copy(arena, info->input_schema));
	if (info->output_schema)
		jv_set(arena, tool, "outputSchema", jv_copy(arena, info->output_schema));
	jv_set_bool(arena, tool, "readOnly", info->traits & TOOL_READS_ONLY);
	jv_set_bool(arena, tool, "destructive", info->traits & TOOL_DESTRUCTIVE);
	jv_set_bool(arena, tool, "idempotent", info->traits & TOOL_IDEMPOTENT);
	return tool;
}

int stead_tools(struct stead *stead, char **ret_json, struct stead_error *error)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *list = jv_array(arena);
	struct err err = {0};

	for (size_t i = 0; i < toolset_count(stead->set); i++)
		jv_push(arena, list, describe(arena, toolset_at(stead->set, i)));
	return lib_end(&err, ret_json ? json_out(arena, list, ret_json, &err) : 0, error);
}

/* --- events --- */

/* The store's event for an embedder: C strings that live as long as the listener runs. */
static void forward(void *arg, const struct store_event *event)
{
	struct subscription *s = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct stead_event out = {
		.operation = store_op_info[event->op].name,
		.path = arena_cstr(arena, event->path.s),
		.to = event->to.s.ptr ? arena_cstr(arena, event->to.s) : NULL,
	};

	s->listener(s->arg, &out);
}

int stead_subscribe(struct stead *stead, void (*listener)(void *arg, const struct stead_event *event), void *arg,
		    uint64_t *ret_handle, struct stead_error *error)
{
	struct subscription *s = listener ? malloc(sizeof(*s)) : NULL;
	struct err err = {0};
	int r = 0;

	if (!listener)
		r = err_set(&err, ERR_INVALID, "subscribe: there is no listener; pass a function");
	else if (!s)
		r = err_set(&err, ERR_TOO_LARGE, "subscribe: there is not enough memory for another listener");
	if (r)
		return lib_end(&err, r, error);
	*s = (struct subscription){.listener = listener, .arg = arg};
	pthread_mutex_lock(&stead->lock);
	s->handle = store_events_listen(workspace_events(stead->ws), forward, s);
	s->next = stead->subscriptions;
	stead->subscriptions = s;
	if (ret_handle)
		*ret_handle = s->handle;
	pthread_mutex_unlock(&stead->lock);
	return STEAD_OK;
}

static struct subscription *take(struct stead *stead, uint64_t handle)
{
	struct subscription **at = &stead->subscriptions, *found;

	pthread_mutex_lock(&stead->lock);
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&stead->lock);
	return found;
}

void stead_unsubscribe(struct stead *stead, uint64_t handle)
{
	struct subscription *s = take(stead, handle);

	if (!s)
		return;
	/* waits for a listener that runs: the lock is free by now, so that one may subscribe or call */
	store_events_unlisten(workspace_events(stead->ws), handle);
	free(s);
}
