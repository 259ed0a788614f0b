/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small file, changed conditionally. A conversation is archived before the file names the next one: after a kill in
 * between, the old one is still the present one, and archiving it again finds nothing new to archive.
 */
#include "runner/conversations.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"

#define FILE_NAME "channels/conversations.json"
#define FILE_MAX  (16 * MIB)

struct edit {
	struct str chat;
	int64_t ttl_minutes;
	bool is_over; /* begin another one in any case */
	struct str summary, model;
	bool sets_model, clears_summary;
	struct conversation *ret;
};

/* "conv_2026-11-16T09-50-42-000000", later than any other of this process. */
static struct str new_id(struct arena *arena)
{
	int64_t now = clock_real_ns();
	char *text = (char *)arena_printf(arena, "conv_%.19s-%06lld", clock_format_utc(arena, now).ptr,
					  (long long)(now % NS_PER_S / 1000))
			     .ptr;

	for (char *p = text; *p; p++)
		*p = *p == ':' ? '-' : *p;
	return str_of(text);
}

static bool is_expired(const struct edit *e, const struct jv *entry)
{
	int64_t last;

	return e->ttl_minutes && clock_parse(jv_get_str(entry, "last_active_at"), &last) &&
	       clock_real_ns() - last > e->ttl_minutes * 60 * NS_PER_S;
}

static struct str session_of(struct arena *arena, struct str chat, struct str id)
{
	return arena_printf(arena, "%.*s:%.*s", STR_ARG(chat), STR_ARG(id));
}

static void fill(struct arena *arena, const struct edit *e, const struct jv *entry)
{
	e->ret->id = arena_str(arena, jv_get_str(entry, "conversation_id"));
	e->ret->session = session_of(arena, e->chat, e->ret->id);
	e->ret->model = arena_str(arena, jv_get_str(entry, "model"));
	e->ret->summary = arena_str(arena, jv_get_str(entry, "summary"));
}

static int change(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct edit *e = arg;
	struct jv *all = jv_object(arena), *entry;
	struct str now = clock_format_utc(arena, clock_real_ns());
	struct buf text;
	int r = before.ptr ? jv_parse(arena, before, &all, err) : 0;

	if (r)
		return err_prefix(err, FILE_NAME);
	entry = (struct jv *)jv_get_key(all, e->chat);
	*e->ret = (struct conversation){.is_expired = entry && is_expired(e, entry)};
	if (!entry || e->is_over) {
		struct str model = jv_get_str(entry, "model");

		entry = jv_object(arena);
		jv_set_str(arena, entry, "conversation_id", new_id(arena));
		jv_set_str(arena, entry, "started_at", now);
		if (model.len)
			jv_set_str(arena, entry, "model", model);
		if (e->summary.len)
			jv_set_str(arena, entry, "summary", e->summary);
		jv_set_key(arena, all, e->chat, entry);
		e->ret->is_fresh = true;
	}
	if (e->sets_model && e->model.len)
		jv_set_str(arena, entry, "model", e->model);
	else if (e->sets_model)
		jv_remove(entry, "model");
	if (e->clears_summary)
		jv_remove(entry, "summary");
	if (!e->ret->is_expired || e->is_over)
		jv_set_str(arena, entry, "last_active_at", now);
	fill(arena, e, entry);
	buf_init(&text, arena, FILE_MAX);
	jv_write_pretty(&text, all);
	*ret_after = buf_str(&text);
	return 0;
}

static int apply(struct workspace *ws, struct ctx *ctx, struct edit *e, struct err *err)
{
	struct store_change c = {.max = FILE_MAX, .create = true, .change = change, .arg = e};

	return store_change(workspace_home(ws), ctx, (struct wpath){STR(FILE_NAME)}, &c, NULL, NULL, NULL, err);
}

int conversation_end(struct workspace *ws, struct ctx *ctx, struct str chat, struct str tag, struct str summary,
		     int64_t *ret_messages, struct err *err)
{
	struct conversation old, next;
	struct edit look = {.chat = chat, .ret = &old};
	struct edit over = {.chat = chat, .is_over = true, .summary = summary, .ret = &next};
	struct jv *report = NULL;
	int r = apply(ws, ctx, &look, err);

	if (r == 0)
		r = session_archive(ws, ctx, (struct session_ref){.session = old.session}, tag, summary, &report, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	*ret_messages = jv_get_int(report, "messages", 0);
	return apply(ws, ctx, &over, err);
}

int conversation_now(struct workspace *ws, struct ctx *ctx, struct str chat, int64_t ttl_minutes,
		     struct conversation *ret, struct err *err)
{
	struct edit e = {.chat = chat, .ttl_minutes = ttl_minutes, .ret = ret};
	int64_t messages;
	int r = apply(ws, ctx, &e, err);

	if (r || !ret->is_expired)
		return r;
	r = conversation_end(ws, ctx, chat, STR("ttl_expired"), STR_NONE, &messages, err);
	e.ttl_minutes = 0;
	if (r == 0)
		r = apply(ws, ctx, &e, err);
	ret->is_expired = ret->is_fresh = true;
	return r;
}

int conversation_began(struct workspace *ws, struct ctx *ctx, struct str chat, struct err *err)
{
	struct conversation ignored;
	struct edit e = {.chat = chat, .clears_summary = true, .ret = &ignored};

	return apply(ws, ctx, &e, err);
}

int conversation_set_model(struct workspace *ws, struct ctx *ctx, struct str chat, struct str model, struct err *err)
{
	struct conversation ignored;
	struct edit e = {.chat = chat, .sets_model = true, .model = model, .ret = &ignored};

	return apply(ws, ctx, &e, err);
}

int conversations_each(struct workspace *ws, struct ctx *ctx,
		       void (*each)(void *arg, struct str chat, struct str session), void *arg, struct err *err)
{
	struct jv *all = NULL;
	struct str text;
	int r = store_read(workspace_home(ws), ctx, (struct wpath){STR(FILE_NAME)}, STORE_WHOLE, FILE_MAX, &text, NULL,
			   err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 && jv_parse(ctx->arena, text, &all, err) != 0)
		return err_prefix(err, FILE_NAME);
	for (const struct jv_member *m = r ? NULL : jv_first(all); m; m = m->next)
		each(arg, m->key, session_of(ctx->arena, m->key, jv_get_str(m->value, "conversation_id")));
	return r;
}
