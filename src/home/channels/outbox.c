/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files instead of a call, because who wants to say something and who can send it are often not the same process: a
 * tool of an MCP client, a schedule on another machine. A name begins with the time, so the order of the names is the
 * order in which things were said.
 */
#include "home/channels/outbox.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/channels/inbox.h"

#define DIR      "channels/outbox"
#define ITEM_MAX (2 * MIB)

struct str channels_name(const struct jv *channel)
{
	struct str name = jv_get_str(channel, "name"), type = jv_get_str(channel, "type");

	return name.len ? name : type.len ? type : STR("telegram");
}

/* The first channel of which `is` holds; NULL: none. */
static const struct jv *find_channel(struct workspace *ws, bool (*is)(const struct jv *channel, struct str word),
				     struct str word)
{
	const struct jv *document = workspace_config(ws)->document, *one = jv_get(document, "channel");

	if (one)
		return is(one, word) ? one : NULL;
	for (const struct jv_member *m = jv_first(jv_get(document, "channels")); m; m = m->next)
		if (is(m->value, word))
			return m->value;
	return NULL;
}

static bool is_named(const struct jv *channel, struct str name)
{
	return !name.len || str_eq(channels_name(channel), name);
}

static bool is_of_type(const struct jv *channel, struct str type)
{
	struct str own = jv_get_str(channel, "type");

	return str_eq(own.len ? own : STR("telegram"), type);
}

bool channels_has(struct workspace *ws, struct str name)
{
	return find_channel(ws, is_named, name) != NULL;
}

struct str channels_find(struct workspace *ws, struct str name)
{
	const struct jv *found = find_channel(ws, is_named, name);

	if (!found)
		found = find_channel(ws, is_of_type, name);
	return found ? channels_name(found) : STR_NONE;
}

bool channels_chat_of(struct str session, struct str *ret_channel, struct str *ret_chat)
{
	size_t colon = str_find_char(session, ':'), end = str_find(session, STR(":conv_"), 0);

	if (end == SIZE_MAX || colon >= end)
		return false;
	*ret_channel = str_first(session, colon);
	*ret_chat = str_n(session.ptr + colon + 1, end - colon - 1);
	return true;
}

int outbox_put(struct workspace *ws, struct ctx *ctx, const struct outbox_item *item, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath path = {arena_printf(arena, DIR "/%020lld-%016llx.json", (long long)clock_real_ns(),
					  (unsigned long long)random_u64())};
	struct jv *v = jv_object(arena);
	struct buf text;

	jv_set_str(arena, v, "channel", item->channel);
	jv_set_str(arena, v, "chat", item->chat);
	jv_set_str(arena, v, "text", item->text);
	if (item->file.len) {
		jv_set_str(arena, v, "file", item->file);
		jv_set_str(arena, v, "file_name", item->file_name);
	}
	if (item->by.len)
		jv_set_str(arena, v, "by", item->by);
	if (item->is_for_agent)
		jv_set_bool(arena, v, "for_agent", true);
	buf_init(&text, arena, ITEM_MAX);
	jv_write_pretty(&text, v);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE, "the message has %zu bytes; send a file instead", item->text.len);
	return store_write(workspace_home(ws), ctx, path, buf_str(&text), (struct store_cond){.kind = STORE_ABSENT},
			   NULL, err);
}

static int read_item(struct workspace *ws, struct ctx *ctx, struct wpath path, struct outbox_item *ret, struct err *err)
{
	struct str bytes;
	struct jv *v;
	int r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, ITEM_MAX, &bytes, NULL, err);

	if (r)
		return r;
	if (jv_parse(ctx->arena, bytes, &v, err) != 0)
		return channels_set_aside(ws, ctx, path, err);
	*ret = (struct outbox_item){.channel = jv_get_str(v, "channel"),
				    .chat = jv_get_str(v, "chat"),
				    .text = jv_get_str(v, "text"),
				    .file = jv_get_str(v, "file"),
				    .file_name = jv_get_str(v, "file_name"),
				    .by = jv_get_str(v, "by"),
				    .is_for_agent = jv_get_bool(v, "for_agent", false)};
	return 0;
}

int outbox_each(struct workspace *ws, struct ctx *ctx, bool (*send)(void *arg, const struct outbox_item *item),
		void *arg, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct outbox_item item = {0};

		r = read_item(ws, ctx, page.entries[i].path, &item, err);
		item.id = wpath_name(page.entries[i].path);
		if (r == 0 && !send(arg, &item))
			return 0; /* the others wait for it, so that the order is kept */
		if (r == 0)
			r = store_remove(workspace_home(ws), ctx, page.entries[i].path, false, (struct store_cond){0},
					 NULL, err);
	}
	return r;
}
