/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstead: the C interface over the same workspace and the same tools that the program serves. Nothing is decided
 * here; this file turns the embedder's C strings into slices, errors into struct stead_error, and results into memory
 * that the embedder owns (malloc). Each call has an arena of its own, so threads share only the workspace, which is
 * thread-safe. What an embedder asks to read is as large as he likes: it goes into malloc'd memory, and when there is
 * none the call fails instead of ending his program.
 */
#include "stead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/ctx.h"
#include "store/stores.h"
#include "tool/tool.h"
#include "workspace/workspace.h"

_Static_assert((int)STEAD_INTERNAL == (int)ERR_INTERNAL && (int)STEAD_INVALID == (int)ERR_INVALID,
	       "the kinds are the same numbers inside and outside");
_Static_assert(sizeof(((struct stead_error *)0)->message) == sizeof(((struct err *)0)->msg), "no sentence is cut");

struct subscription {
	struct subscription *next;
	uint64_t handle;
	void (*listener)(void *arg, const struct stead_event *event);
	void *arg;
};

struct stead {
	struct workspace *ws;
	struct toolset *set;
	pthread_mutex_t lock; /* of the list; never held while a listener runs */
	struct subscription *subscriptions;
};

static int give_error(const struct err *err, struct stead_error *ret)
{
	if (ret) {
		ret->kind = (int)err->kind;
		memcpy(ret->message, err->msg, sizeof(ret->message));
	}
	return (int)err->kind;
}

static struct ctx new_call(struct stead *stead)
{
	return (struct ctx){.arena = arena_new(), .actor = workspace_actor(stead->ws)};
}

int stead_open(const struct stead_options *options, struct stead **ret_stead, struct stead_error *error)
{
	static const struct stead_options none;
	const struct stead_options *o = options ? options : &none;
	struct workspace_opts opts = {
		.store_url = str_of(o->store),
		.name = str_of(o->workspace),
		.user = str_of(o->user),
		.agent = str_of(o->agent),
		.session = str_of(o->session),
		.root = str_of(o->root),
		.files_dir = str_of(o->files_dir),
		.create = o->create,
		.relaxed = o->relaxed,
	};
	struct stead *stead = xcalloc(1, sizeof(*stead));
	struct err err = {0};
	int r;

	if (!opts.root.len && !opts.files_dir.len)
		opts.root = dialect_root(str_of(o->dialect));
	r = workspace_open(&opts, &stead->ws, &err);

	if (r == 0 && (r = toolset_new(stead->ws, str_of(o->dialect), &stead->set, &err)) != 0)
		workspace_close(stead->ws);
	if (r) {
		free(stead);
		return give_error(&err, error);
	}
	pthread_mutex_init(&stead->lock, NULL);
	*ret_stead = stead;
	return 0;
}

void stead_close(struct stead *stead)
{
	if (!stead)
		return;
	while (stead->subscriptions)
		stead_unsubscribe(stead, stead->subscriptions->handle);
	toolset_destroy(stead->set);
	workspace_close(stead->ws);
	pthread_mutex_destroy(&stead->lock);
	free(stead);
}

static char *copy_out(struct str s)
{
	return xstrndup(s);
}

static char *json_out(struct arena *arena, const struct jv *value)
{
	struct buf buf;

	buf_init(&buf, arena, SIZE_MAX / 4);
	jv_write(&buf, value);
	return copy_out(buf_str(&buf));
}

static int call(struct stead *stead, struct ctx *ctx, const char *tool, const char *arguments,
		struct tool_result *ret_result, struct err *err)
{
	struct jv *args = NULL;
	int r = arguments ? jv_parse(ctx->arena, str_of(arguments), &args, err) : 0;

	if (r)
		return err_prefix(err, "%.80s: the arguments", tool);
	return toolset_call(stead->set, ctx, str_of(tool), args, ret_result, err);
}

int stead_call(struct stead *stead, const char *tool, const char *arguments, char **ret_text, char **ret_json,
	       struct stead_error *error)
{
	struct ctx ctx = new_call(stead);
	ARENA_SCOPE struct arena *arena = ctx.arena;
	struct tool_result result;
	struct err err = {0};

	if (ret_text)
		*ret_text = NULL;
	if (ret_json)
		*ret_json = NULL;
	if (call(stead, &ctx, tool, arguments, &result, &err) != 0)
		return give_error(&err, error);
	if (ret_text)
		*ret_text = copy_out(result.text);
	if (result.is_error)
		return give_error(&result.err, error);
	if (ret_json)
		*ret_json = result.value ? json_out(arena, result.value) : NULL;
	return 0;
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

	(void)error; /* a table in memory cannot fail; the parameter keeps the form of all functions */
	for (size_t i = 0; i < toolset_count(stead->set); i++)
		jv_push(arena, list, describe(arena, toolset_at(stead->set, i)));
	*ret_json = json_out(arena, list);
	return 0;
}

static void give_stat(const struct store_stat *stat, struct stead_stat *ret)
{
	struct str version = str_first(stat->version, sizeof(ret->version) - 1);

	if (!ret)
		return;
	*ret = (struct stead_stat){
		.is_directory = stat->kind == STORE_DIR, .size = stat->size, .mtime_ns = stat->mtime_ns};
	if (version.len)
		memcpy(ret->version, version.ptr, version.len);
}

/* Collects a file in memory of the embedder's; `failed` when there is none. */
struct collect {
	char *ptr;
	size_t len, cap;
	bool failed;
};

static bool make_room(struct collect *c, size_t more)
{
	size_t cap = c->cap ? c->cap : 4096;
	char *grown;

	if (c->failed || more > SIZE_MAX / 4 - c->len) {
		c->failed = true;
		return false;
	}
	if (c->len + more + 1 <= c->cap)
		return true;
	while (cap < c->len + more + 1)
		cap *= 2;
	grown = realloc(c->ptr, cap);
	if (!grown) {
		c->failed = true;
		return false;
	}
	c->ptr = grown;
	c->cap = cap;
	return true;
}

static void *collect_reserve(void *arg, size_t size)
{
	struct collect *c = arg;

	if (c->ptr || size > SIZE_MAX / 4 || !(c->ptr = malloc(size + 1)))
		return NULL;
	c->cap = size + 1;
	return c->ptr;
}

static int collect_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct collect *c = arg;

	if (bytes != c->ptr + c->len || c->len + len + 1 > c->cap) {
		if (!make_room(c, len))
			return err_set(err, ERR_TOO_LARGE,
				       "there is no memory for %zu bytes more; read it by ranges "
				       "with the tool read_file",
				       len);
		if (len)
			memcpy(c->ptr + c->len, bytes, len);
	}
	c->len += len;
	return 0;
}

int stead_read(struct stead *stead, const char *path, char **ret_data, size_t *ret_size, struct stead_error *error)
{
	struct ctx ctx = new_call(stead);
	ARENA_SCOPE struct arena *arena = ctx.arena;
	struct collect c = {0};
	struct sink sink = {.push = collect_push, .reserve = collect_reserve, .arg = &c};
	struct wpath where;
	struct err err = {0};
	int r = wpath_parse_lenient(arena, str_of(path), &where, &err);

	if (r == 0)
		r = store_read_stream(workspace_files(stead->ws), &ctx, where, STORE_WHOLE, &sink, NULL, &err);
	if (r == 0 && !make_room(&c, 0))
		r = err_set(&err, ERR_TOO_LARGE, "read %.200s: there is no memory for it", path);
	if (r) {
		free(c.ptr);
		return give_error(&err, error);
	}
	c.ptr[c.len] = '\0';
	*ret_data = c.ptr;
	if (ret_size)
		*ret_size = c.len;
	return 0;
}

int stead_write(struct stead *stead, const char *path, const void *data, size_t size, const char *if_version,
		struct stead_stat *ret_stat, struct stead_error *error)
{
	struct ctx ctx = new_call(stead);
	ARENA_SCOPE struct arena *arena = ctx.arena;
	struct store_cond cond = {.kind = !if_version   ? STORE_ANY
					  : *if_version ? STORE_VERSION
							: STORE_ABSENT,
				  .version = str_of(if_version)};
	struct store_stat stat;
	struct wpath where;
	struct err err = {0};
	int r = wpath_parse_lenient(arena, str_of(path), &where, &err);

	if (r == 0)
		r = store_write(workspace_files(stead->ws), &ctx, where, str_n(data, size), cond, &stat, &err);
	if (r)
		return give_error(&err, error);
	give_stat(&stat, ret_stat);
	return 0;
}

int stead_stat(struct stead *stead, const char *path, struct stead_stat *ret_stat, struct stead_error *error)
{
	struct ctx ctx = new_call(stead);
	ARENA_SCOPE struct arena *arena = ctx.arena;
	struct store_stat stat;
	struct wpath where;
	struct err err = {0};
	int r = wpath_parse_lenient(arena, str_of(path), &where, &err);

	if (r == 0)
		r = store_stat(workspace_files(stead->ws), &ctx, where, &stat, &err);
	if (r)
		return give_error(&err, error);
	give_stat(&stat, ret_stat);
	return 0;
}

/* One page, in memory that is given back after it; *ret_after (in `keep`) is where the next one starts. */
static int list_page(struct stead *stead, struct wpath dir, struct arena *keep, struct str *after,
		     int (*entry)(void *arg, const char *path, const struct stead_stat *stat), void *arg,
		     struct err *err)
{
	struct ctx ctx = new_call(stead);
	ARENA_SCOPE struct arena *arena = ctx.arena;
	struct store_list_req req = {.limit = 1000, .after = *after};
	struct store_page page;
	int r = store_list(workspace_files(stead->ws), &ctx, dir, &req, &page, err);

	if (r)
		return r;
	*after = page.next.ptr ? arena_str(keep, page.next) : STR_NONE;
	for (size_t i = 0; i < page.count; i++) {
		struct stead_stat stat;

		give_stat(&page.entries[i].stat, &stat);
		if (entry(arg, arena_cstr(arena, page.entries[i].path.s), &stat) != 0) {
			*after = STR_NONE;
			break;
		}
	}
	return 0;
}

int stead_list(struct stead *stead, const char *path,
	       int (*entry)(void *arg, const char *path, const struct stead_stat *stat), void *arg,
	       struct stead_error *error)
{
	ARENA_SCOPE struct arena *keep = arena_new();
	struct str after = STR_NONE;
	struct wpath where;
	struct err err = {0};
	int r = wpath_parse_lenient(keep, str_of(path ? path : ""), &where, &err);

	do {
		if (r == 0)
			r = list_page(stead, where, keep, &after, entry, arg, &err);
		if (r)
			return give_error(&err, error);
	} while (after.ptr);
	return 0;
}

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

uint64_t stead_subscribe(struct stead *stead, void (*listener)(void *arg, const struct stead_event *event), void *arg)
{
	struct subscription *s = xcalloc(1, sizeof(*s));

	s->listener = listener;
	s->arg = arg;
	pthread_mutex_lock(&stead->lock);
	s->handle = store_events_listen(workspace_events(stead->ws), forward, s);
	s->next = stead->subscriptions;
	stead->subscriptions = s;
	pthread_mutex_unlock(&stead->lock);
	return s->handle;
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

void stead_free(void *memory)
{
	free(memory);
}
