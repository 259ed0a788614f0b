/* SPDX-License-Identifier: Apache-2.0 */
/* Like the outbox, a file: the turn that asks and the process that has the channels need not be in one place. */
#include "home/channels/followups.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/channels/inbox.h"

#define DIR      "channels/followups"
#define FILE_MAX (256 * KIB)

static struct wpath path_of(struct arena *arena, struct str channel, struct str chat)
{
	struct str name = arena_printf(arena, "%.*s:%.*s", STR_ARG(channel), STR_ARG(chat));

	return (struct wpath){arena_printf(arena, DIR "/%.*s.json", STR_ARG(workspace_encode_id(arena, name)))};
}

struct edit {
	const struct followup *add; /* NULL: none */
	struct str remove;          /* the id of one that was started; empty: none */
	bool resets;
};

static int read_state(struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	*ret = jv_object(arena);
	return text.len ? jv_parse(arena, text, ret, err) : 0;
}

static struct jv *pending_of(struct arena *arena, const struct followup *f)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "id", f->id);
	jv_set_str(arena, v, "prompt", f->prompt);
	jv_set_int(arena, v, "due", f->due);
	jv_set_int(arena, v, "depth", f->depth);
	return v;
}

static int change(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct edit *e = arg;
	struct followup f = e->add ? *e->add : (struct followup){0};
	struct jv *state;
	const struct jv *pending;
	struct buf text;
	int r = read_state(arena, before, &state, err);

	if (r)
		return r;
	pending = jv_get(state, "pending");
	if (e->add) {
		f.depth = jv_get_int(state, "depth", 0) + 1;
		if (pending)
			return err_set(err, ERR_EXISTS,
				       "a follow-up is already waiting in this chat; only one is possible");
		if (f.depth > FOLLOWUP_DEPTH_MAX)
			return err_set(err, ERR_QUOTA,
				       "this would be follow-up %lld in a row, and %d are allowed; end your turn and "
				       "wait for the person",
				       (long long)f.depth, FOLLOWUP_DEPTH_MAX);
		jv_set_str(arena, state, "channel", f.channel);
		jv_set_str(arena, state, "chat", f.chat);
		jv_set(arena, state, "pending", pending_of(arena, &f));
	} else if (e->remove.len && str_eq(jv_get_str(pending, "id"), e->remove)) {
		jv_set_int(arena, state, "depth", jv_get_int(pending, "depth", 1));
		jv_remove(state, "pending");
	} else if (e->resets && jv_get_int(state, "depth", 0)) {
		jv_set_int(arena, state, "depth", 0);
	} else {
		return 0;
	}
	buf_init(&text, arena, FILE_MAX);
	jv_write_pretty(&text, state);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE, "the prompt has more than %zu KiB", FILE_MAX / KIB);
	*ret_after = buf_str(&text);
	return 0;
}

static int edit(struct workspace *ws, struct ctx *ctx, struct wpath path, struct edit *e, struct err *err)
{
	struct store_change c = {.max = FILE_MAX, .create = e->add != NULL, .change = change, .arg = e};
	int r = store_change(workspace_home(ws), ctx, path, &c, NULL, NULL, NULL, err);

	return r == -ERR_NOT_FOUND ? 0 : r;
}

int followup_add(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat, struct str prompt,
		 int64_t delay_s, struct followup *ret, struct err *err)
{
	struct followup f = {.channel = channel,
			     .chat = chat,
			     .id = arena_printf(ctx->arena, "followup-%016llx", (unsigned long long)random_u64()),
			     .prompt = prompt,
			     .due = clock_real_ns() / NS_PER_S + delay_s};
	struct edit e = {.add = &f};
	int r = edit(ws, ctx, path_of(ctx->arena, channel, chat), &e, err);

	if (r == 0)
		*ret = f;
	return r;
}

int followup_reset(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat, struct err *err)
{
	struct edit e = {.resets = true};

	return edit(ws, ctx, path_of(ctx->arena, channel, chat), &e, err);
}

static int read_one(struct workspace *ws, struct ctx *ctx, struct wpath path, struct followup *ret, struct err *err)
{
	struct str bytes;
	struct jv *state;
	const struct jv *pending;
	int r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, FILE_MAX, &bytes, NULL, err);

	if (r)
		return r;
	if (read_state(ctx->arena, bytes, &state, err) != 0)
		return channels_set_aside(ws, ctx, path, err);
	pending = jv_get(state, "pending");
	*ret = (struct followup){.channel = jv_get_str(state, "channel"),
				 .chat = jv_get_str(state, "chat"),
				 .id = jv_get_str(pending, "id"),
				 .prompt = jv_get_str(pending, "prompt"),
				 .due = jv_get_int(pending, "due", INT64_MAX),
				 .depth = jv_get_int(pending, "depth", 1)};
	return 0;
}

int followups_each(struct workspace *ws, struct ctx *ctx, int64_t now,
		   bool (*start)(void *arg, const struct followup *followup), void *arg, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct followup f;

		r = read_one(ws, ctx, page.entries[i].path, &f, err);
		if (r == 0 && f.due <= now && start(arg, &f)) {
			struct edit e = {.remove = f.id};

			r = edit(ws, ctx, page.entries[i].path, &e, err);
		}
	}
	return r;
}
