/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools/list and tools/call. The list is rendered once per form and then copied out, since it is most of what a client
 * waits for at its start. A call's result goes from where the tool left it straight into the output buffer.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/strmap.h"
#include "mcp/server.h"

/* Many clients never ask for a second page, so one holds every tool that any dialect has. */
#define PAGE         ((size_t)200)
#define TTL_TOOLS_MS 300000
/* Progress that comes faster than a person reads it only costs. */
#define PROGRESS_EVERY_NS 50000000

/* More tools than this are listed tersely: a model pays for each word in every request. */
#define MANY_TOOLS 60

/* How tools are listed. */
struct listing {
	enum form form;
	bool structured;
	struct arena *arena;
	struct strmap *told; /* of many tools: what was said of arguments, by name; else NULL */
};

/* Hints that differ from what the protocol takes for granted: a tool that writes, may destroy and reaches out. Of many
   tools only whether they change something. */
static void write_annotations(struct buf *buf, const struct tool_info *tool, const struct listing *l)
{
	bool reads = tool->traits & TOOL_READS_ONLY;

	if (l->told) {
		if (reads)
			buf_lit(buf, ",\"annotations\":{\"readOnlyHint\":true}");
		return;
	}
	buf_lit(buf, ",\"annotations\":{");
	if (tool->title.len && l->form == FORM_PLAIN) {
		buf_lit(buf, "\"title\":");
		jv_write_string(buf, tool->title);
		buf_char(buf, ',');
	}
	if (reads)
		buf_lit(buf, "\"readOnlyHint\":true,");
	if (!reads && !(tool->traits & TOOL_DESTRUCTIVE))
		buf_lit(buf, "\"destructiveHint\":false,");
	if (!reads && tool->traits & TOOL_IDEMPOTENT)
		buf_lit(buf, "\"idempotentHint\":true,");
	buf_printf(buf, "\"openWorldHint\":%s}", tool->traits & TOOL_OPEN_WORLD ? "true" : "false");
}

/* True for what a schema says in as many words as it would mean by its absence: nothing is required, and (as for
   every tool here) unknown arguments are refused. A model pays for each of them in every request. */
static bool says_nothing(const struct jv_member *m)
{
	return (str_is(m->key, "required") && m->value->type == JV_ARRAY && !jv_count(m->value)) ||
	       (str_is(m->key, "additionalProperties") && m->value->type == JV_BOOL);
}

/* Whether this was said of an argument of the same name before. */
static bool was_told(const struct listing *l, struct str name, struct str text)
{
	bool added;

	strmap_put(l->told, arena_printf(l->arena, "%.*s %.*s", STR_ARG(name), STR_ARG(text)), &added);
	return !added;
}

/* Of many tools: bounds, which a failed call would name, and a description that an argument of the same name had
   before, word for word. */
static bool is_left_out(const struct listing *l, struct str name, const struct jv_member *m)
{
	static const char *const bounds[] = {"minimum",  "maximum",  "minLength", "maxLength",
					     "minItems", "maxItems", "pattern"};

	if (!l->told || m->value->type == JV_OBJECT)
		return false; /* an object is an argument of that name */
	for (size_t i = 0; i < COUNT(bounds); i++)
		if (str_is(m->key, bounds[i]))
			return true;
	if (!str_is(m->key, "description") || !name.len)
		return false;
	return was_told(l, name, jv_str_of(m->value));
}

/* The elements of a list, as described before for an argument of the same name. */
static bool are_told_elements(const struct listing *l, struct str name, const struct jv_member *m)
{
	struct buf text;

	if (!l->told || !str_is(m->key, "items") || !jv_get(m->value, "properties"))
		return false;
	buf_init(&text, l->arena, JSON_LEN_MAX);
	jv_write(&text, m->value);
	return was_told(l, name, buf_str(&text));
}

/* `name`: of the argument that the schema is for; empty: it is for a whole tool. */
static void write_schema(struct buf *buf, const struct listing *l, struct str name, const struct jv *schema)
{
	bool first = true;

	if (schema->type != JV_OBJECT) {
		jv_write(buf, schema);
		return;
	}
	buf_char(buf, '{');
	for (const struct jv_member *m = jv_first(schema); m; m = m->next) {
		if (says_nothing(m) || is_left_out(l, name, m))
			continue;
		if (!first)
			buf_char(buf, ',');
		first = false;
		jv_write_string(buf, m->key);
		buf_char(buf, ':');
		if (are_told_elements(l, name, m))
			buf_lit(buf, "{\"type\":\"object\"}");
		else
			write_schema(buf, l, m->key, m->value);
	}
	buf_char(buf, '}');
}

static void write_tool(struct buf *buf, const struct tool_info *tool, const struct listing *l)
{
	buf_lit(buf, "{\"name\":");
	jv_write_string(buf, tool->name);
	if (tool->title.len && l->form != FORM_PLAIN && !l->told) {
		buf_lit(buf, ",\"title\":");
		jv_write_string(buf, tool->title);
	}
	buf_lit(buf, ",\"description\":");
	jv_write_string(buf, tool->description);
	buf_lit(buf, ",\"inputSchema\":");
	write_schema(buf, l, STR_NONE, tool->input_schema);
	if (tool->output_schema && l->structured && l->form != FORM_PLAIN) {
		buf_lit(buf, ",\"outputSchema\":");
		jv_write(buf, tool->output_schema);
	}
	write_annotations(buf, tool, l);
	/* Clients that load tools when they are needed load this one at once. */
	if (tool->traits & TOOL_FIRST)
		buf_lit(buf, ",\"_meta\":{\"anthropic/alwaysLoad\":true}");
	buf_char(buf, '}');
}

static const struct tool_cache *tool_cache_get(struct server *s, enum form form)
{
	struct tool_cache *cache = &s->tools[form];
	size_t count = toolset_count(s->set);
	struct listing l = {.form = form, .structured = s->opts.structured};

	if (cache->starts)
		return cache;
	l.arena = arena_new();
	l.told = count > MANY_TOOLS && !l.structured ? strmap_new(l.arena) : NULL;
	buf_init(&cache->text, NULL, JSON_LEN_MAX);
	cache->starts = xcalloc(count + 1, sizeof(*cache->starts));
	for (size_t i = 0; i < count; i++) {
		cache->starts[i] = cache->text.len;
		write_tool(&cache->text, toolset_at(s->set, i), &l);
		buf_char(&cache->text, ',');
	}
	cache->starts[count] = cache->text.len;
	arena_destroy(l.arena);
	return cache;
}

void tool_cache_release(struct tool_cache *cache)
{
	buf_release(&cache->text);
	free(cache->starts);
}

/* A cursor is the index of the first tool of its page. */
static bool parse_cursor(const struct jv *cursor, size_t count, size_t *ret_first)
{
	int64_t first;

	*ret_first = 0;
	if (jv_is_null(cursor))
		return true;
	if (!str_to_i64(jv_str_of(cursor), &first) || first < 0 || (size_t)first > count)
		return false;
	*ret_first = (size_t)first;
	return true;
}

void method_tools_list(struct request *req)
{
	const struct tool_cache *cache = tool_cache_get(req->server, req->form);
	size_t count = toolset_count(req->server->set), first, last;
	struct buf *buf;

	if (!parse_cursor(jv_get(req->params, "cursor"), count, &first)) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "the cursor does not belong to this list; start without one");
		return;
	}
	last = count - first > PAGE ? first + PAGE : count;
	buf = reply_begin(req);
	if (!buf)
		return;
	buf_lit(buf, "\"tools\":[");
	if (last > first)
		buf_add(buf,
			str_n(cache->text.ptr + cache->starts[first], cache->starts[last] - cache->starts[first] - 1));
	buf_char(buf, ']');
	if (last < count)
		buf_printf(buf, ",\"nextCursor\":\"%zu\"", last);
	if (req->form == FORM_MODERN)
		buf_printf(buf, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", TTL_TOOLS_MS);
	reply_end(req, buf, 1);
}

/* Sends what a long call reports, strictly rising and not too often. */
struct progress_state {
	struct request *req;
	const struct jv *token;
	int64_t sent_ns;
	uint64_t sent;
	bool any;
};

static void report(void *arg, uint64_t done, uint64_t total, struct str what)
{
	struct progress_state *p = arg;
	int64_t now = clock_monotonic_ns();
	struct buf *buf;

	if (p->any && (done <= p->sent || now - p->sent_ns < PROGRESS_EVERY_NS))
		return;
	if (atomic_load(&p->req->cancel.requested))
		return;
	p->any = true;
	p->sent = done;
	p->sent_ns = now;
	buf = out_begin(&p->req->server->out);
	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
	jv_write(buf, p->token);
	buf_lit(buf, ",\"progress\":");
	buf_u64(buf, done);
	if (total) {
		buf_lit(buf, ",\"total\":");
		buf_u64(buf, total);
	}
	if (what.len) {
		buf_lit(buf, ",\"message\":");
		jv_write_string(buf, what);
	}
	buf_lit(buf, "}}\n");
	out_end(&p->req->server->out, true);
}

/* The members of the structured result. The content of a file that was read is in it and is the text too: that was
   escaped already, to [start, start + len) of the same buffer, and is copied from there. */
static void write_members(struct buf *buf, const struct tool_result *result, size_t start, size_t len)
{
	for (const struct jv_member *m = jv_first(result->value); m; m = m->next) {
		struct str s = jv_str_of(m->value);

		if (m != jv_first(result->value))
			buf_char(buf, ',');
		jv_write_string(buf, m->key);
		buf_char(buf, ':');
		if (s.len && s.ptr == result->text.ptr && s.len == result->text.len && buf_reserve(buf, len))
			buf_add(buf, str_n(buf->ptr + start, len));
		else
			jv_write(buf, m->value);
	}
}

static void write_media(struct request *req, struct buf *buf, const struct media *media)
{
	if (!str_starts(media->mime, STR("image/")) && !str_starts(media->mime, STR("audio/"))) {
		buf_lit(buf, "{\"type\":\"resource\",\"resource\":{\"uri\":");
		jv_write_string(buf, uri_format(req->arena, media->path));
		buf_lit(buf, ",\"mimeType\":");
		jv_write_string(buf, media->mime);
		buf_lit(buf, ",\"blob\":\"");
		buf_add(buf, media->data);
		buf_lit(buf, "\"}},");
		return;
	}
	buf_printf(buf, "{\"type\":\"%s\",\"data\":\"", str_starts(media->mime, STR("audio/")) ? "audio" : "image");
	buf_add(buf, media->data);
	buf_lit(buf, "\",\"mimeType\":");
	jv_write_string(buf, media->mime);
	buf_lit(buf, "},");
}

static void write_result(struct request *req, const struct tool_result *result)
{
	struct buf *buf = reply_begin(req);
	size_t text_start, text_len;

	if (!buf)
		return;
	buf_lit(buf, "\"content\":[");
	if (result->media.mime.len)
		write_media(req, buf, &result->media);
	buf_lit(buf, "{\"type\":\"text\",\"text\":");
	text_start = buf->len;
	jv_write_string(buf, result->text);
	text_len = buf->len - text_start;
	buf_lit(buf, "}]");
	if (result->is_error) {
		buf_lit(buf, ",\"isError\":true");
		req->failed = &result->err;
	}
	if (result->value && result->value->type == JV_OBJECT && req->form != FORM_PLAIN &&
	    req->server->opts.structured) {
		buf_lit(buf, ",\"structuredContent\":{");
		write_members(buf, result, text_start, text_len);
		buf_char(buf, '}');
	}
	reply_end(req, buf, 1);
}

/* The names that tools give to arguments which are paths. */
static bool names_path(struct str name)
{
	static const char *const others[] = {"from", "to", "source", "destination", "file", "file_name", "filename"};

	if (str_ends(name, STR("path")))
		return true;
	for (size_t i = 0; i < COUNT(others); i++)
		if (str_is(name, others[i]))
			return true;
	return false;
}

bool tools_call_apart(struct request *req)
{
	const struct tool_info *tool = toolset_find(req->server->set, jv_get_str(req->params, "name"));
	const struct jv *args = jv_get(req->params, "arguments");

	if (!tool)
		return false;
	if (!(tool->traits & TOOL_READS_ONLY)) {
		for (const struct jv_member *m = jv_first(args); m; m = m->next)
			if (names_path(m->key))
				order_add(req, jv_str_of(m->value));
		return true;
	}
	req->waits = (tool->traits & TOOL_LONG) && jv_get_int(args, "wait_ms", 0) > 0;
	return (tool->traits & TOOL_LONG) || req->server->remote;
}

bool tools_call_is_quick(struct request *req)
{
	const struct tool_info *tool = toolset_find(req->server->set, jv_get_str(req->params, "name"));

	return tool && (tool->traits & TOOL_READS_ONLY) && !(tool->traits & TOOL_LONG) && !req->server->remote;
}

int mcp_check_session(const struct toolset *set, const struct ctx *ctx, struct str name, struct err *err)
{
	const char *enter = toolset_name_of(set, STR("plan_enter"));

	if (ctx->actor.session.len || !enter || !str_is(name, enter))
		return 0;
	return err_set(err, ERR_INVALID,
		       "plan mode belongs to a session, and this request has none; connect with initialize and send "
		       "the Mcp-Session-Id");
}

/* As tool_timeouts in agent.yaml says, for this tool or for all; else by the limit for stores on servers. 0: none. */
static int64_t deadline_of(struct server *s, struct str name)
{
	const struct tool_info *tool = NULL;
	const struct jv *given = NULL;
	double seconds;

	if (!s->timeouts && !s->remote)
		return 0;
	given = jv_get_key(jv_get(s->timeouts, "overrides"), name);
	if (!given)
		given = jv_get(s->timeouts, "default_seconds");
	if (!given && !s->remote)
		return 0;
	if (given)
		seconds = given->type == JV_INT ? (double)given->u.i : given->u.d;
	else if ((tool = toolset_find(s->set, name)) && tool->traits & TOOL_READS_ONLY)
		seconds = MCP_READ_SECONDS;
	else
		seconds = MCP_CHANGE_SECONDS;
	return clock_monotonic_ns() + (int64_t)((seconds < 1e6 ? seconds : 1e6) * (double)NS_PER_S);
}

void method_tools_call(struct request *req)
{
	const struct jv *name = jv_get(req->params, "name"), *args = jv_get(req->params, "arguments");
	const struct jv *token = jv_get(jv_get(req->params, "_meta"), "progressToken");
	struct progress_state state = {.req = req, .token = token};
	struct progress progress = {.report = report, .arg = &state};
	struct ctx ctx = request_ctx(req);
	struct tool_result result = {0};
	struct err err;
	int r;

	if (!name || name->type != JV_STR || (!jv_is_null(args) && args->type != JV_OBJECT)) {
		reply_error(req, RPC_INVALID_PARAMS, NULL,
			    "params must have \"name\", a string, and may have "
			    "\"arguments\", an object");
		return;
	}
	if (token && (token->type == JV_STR || token->type == JV_INT))
		ctx.progress = &progress;
	ctx.deadline_ns = deadline_of(req->server, name->u.s);
	r = mcp_check_session(req->server->set, &ctx, name->u.s, &err);
	if (r)
		result = (struct tool_result){.is_error = true, .err = err, .text = str_of(err.msg)};
	if (!r && toolset_call(req->server->set, &ctx, name->u.s, jv_is_null(args) ? NULL : args, &result, &err) != 0)
		reply_error(req, RPC_INVALID_PARAMS, NULL, "%s", err.msg);
	else
		write_result(req, &result);
}
