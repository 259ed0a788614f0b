/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for each day, because then the end of retention is the removal of a file, and a page of history reads one or
 * two of them. A place in the log is a day and a line ("2026-11-18/12"): lines are only added, so it stays the same.
 */
#include "home/channels/chat_log.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "home/channels/outbox.h"

#define DIR            "channels/log"
#define RETENTION_DAYS 30
#define DAY_MAX        (16 * MIB) /* of a file that is read */
#define TEXT_MAX       ((size_t)500)
#define PAGE_MAX       ((size_t)50000)
#define DAY_LEN        ((size_t)10) /* "2026-11-18" */

/* --- settings --- */

static const struct jv *config_of(struct workspace *ws, struct str channel)
{
	const struct jv *document = workspace_config(ws)->document, *one = jv_get(document, "channel");

	if (one)
		return channels_has(ws, channel) ? one : NULL;
	for (const struct jv_member *m = jv_first(jv_get(document, "channels")); m; m = m->next)
		if (str_eq(channels_name(m->value), channel))
			return m->value;
	return NULL;
}

static struct str day_of(struct arena *arena, int64_t ns)
{
	return str_first(clock_format_utc(arena, ns), DAY_LEN);
}

static struct str dir_of(struct arena *arena, struct str channel, struct str chat)
{
	return arena_printf(arena, DIR "/%.*s/%.*s", STR_ARG(workspace_encode_name(arena, channel)),
			    STR_ARG(workspace_encode_name(arena, chat)));
}

/* --- writing --- */

int chat_log_add(struct workspace *ws, struct ctx *ctx, const struct chat_line *line, struct err *err)
{
	struct arena *arena = ctx->arena;
	const struct jv *config = config_of(ws, line->channel);
	int64_t now = clock_real_ns();
	struct jv *v = jv_object(arena);
	struct wpath path;
	struct buf text;

	if (!config || !jv_get_bool(jv_get(config, "channel_log"), "enabled", true))
		return 0;
	jv_set_str(arena, v, "ts", clock_format_utc(arena, now));
	if (line->id.len)
		jv_set_str(arena, v, "msg_id", line->id);
	if (line->user.len)
		jv_set_str(arena, v, "user_id", line->user);
	jv_set_str(arena, v, "display_name", line->name);
	jv_set_str(arena, v, "content", line->text);
	if (line->file.len)
		jv_set_str(arena, v, "attachment", line->file);
	jv_set_str(arena, v, "channel_id", line->chat);
	if (line->is_bot)
		jv_set_bool(arena, v, "is_bot", true);
	buf_init(&text, arena, 4 * MIB);
	jv_write(&text, v);
	buf_char(&text, '\n');
	path.s = arena_printf(arena, "%.*s/%.*s.jsonl", STR_ARG(dir_of(arena, line->channel, line->chat)),
			      STR_ARG(day_of(arena, now)));
	return store_append(workspace_home(ws), ctx, path, buf_str(&text), (struct store_cond){0}, NULL, err);
}

bool chat_log_exists(struct workspace *ws, struct ctx *ctx, struct str channel, struct str chat)
{
	struct err ignored;

	return store_stat(workspace_home(ws), ctx, (struct wpath){dir_of(ctx->arena, channel, chat)}, NULL, &ignored) ==
	       0;
}

/* --- retention --- */

static int list(struct workspace *ws, struct ctx *ctx, struct str dir, struct store_page *ret, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){dir}, &req, ret, err);

	if (r == -ERR_NOT_FOUND)
		*ret = (struct store_page){0};
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int cut_chat(struct workspace *ws, struct ctx *ctx, struct wpath chat, struct str oldest, struct err *err)
{
	struct store_page days;
	int r = list(ws, ctx, chat.s, &days, err);

	for (size_t i = 0; r == 0 && i < days.count; i++)
		if (str_cmp(str_first(wpath_name(days.entries[i].path), DAY_LEN), oldest) < 0)
			r = store_remove(workspace_home(ws), ctx, days.entries[i].path, false, (struct store_cond){0},
					 NULL, err);
	return r;
}

static int cut_channel(struct workspace *ws, struct ctx *ctx, const struct jv *config, int64_t now_ns, struct err *err)
{
	int64_t days = jv_get_int(jv_get(config, "channel_log"), "retention_days", RETENTION_DAYS);
	struct str oldest = day_of(ctx->arena, now_ns - days * 86400 * NS_PER_S);
	struct store_page chats;
	int r = list(ws, ctx,
		     arena_printf(ctx->arena, DIR "/%.*s",
				  STR_ARG(workspace_encode_name(ctx->arena, channels_name(config)))),
		     &chats, err);

	for (size_t i = 0; r == 0 && i < chats.count; i++)
		r = cut_chat(ws, ctx, chats.entries[i].path, oldest, err);
	return r;
}

int chat_log_cut(struct workspace *ws, struct ctx *ctx, int64_t now_ns, struct err *err)
{
	const struct jv *document = workspace_config(ws)->document, *one = jv_get(document, "channel");
	int r = one ? cut_channel(ws, ctx, one, now_ns, err) : 0;

	for (const struct jv_member *m = jv_first(jv_get(document, "channels")); r == 0 && m; m = m->next)
		r = cut_channel(ws, ctx, m->value, now_ns, err);
	return r;
}

/* --- reading --- */

struct page {
	struct workspace *ws;
	struct ctx *ctx;
	const struct chat_query *query;
	struct jv **messages; /* the newest first */
	size_t count, room, size;
	struct str oldest; /* the place of the last one that was taken */
	bool is_full;
};

static bool has_word(struct str text, struct str word)
{
	for (size_t i = 0; i + word.len <= text.len; i++)
		if (str_eq_nocase(str_n(text.ptr + i, word.len), word))
			return true;
	return false;
}

static bool is_wanted(const struct chat_query *q, const struct jv *line)
{
	struct str name = jv_get_str(line, "display_name");

	if (!q->has_bots && jv_get_bool(line, "is_bot", false))
		return false;
	if (q->user.len && !has_word(name, q->user) && !str_eq(jv_get_str(line, "user_id"), q->user))
		return false;
	return has_word(jv_get_str(line, "content"), q->keyword);
}

static struct jv *message_of(struct arena *arena, const struct jv *line)
{
	static const char *const names[][2] = {{"ts", "at"},           {"msg_id", "id"},
					       {"user_id", "user_id"}, {"display_name", "name"},
					       {"content", "text"},    {"attachment", "file"}};
	struct jv *v = jv_object(arena);

	for (size_t i = 0; i < COUNT(names); i++) {
		struct str value = jv_get_str(line, names[i][0]);

		if (value.len || str_is(str_of(names[i][1]), "text"))
			jv_set_str(arena, v, names[i][1], utf8_first(value, TEXT_MAX));
	}
	if (jv_get_bool(line, "is_bot", false))
		jv_set_bool(arena, v, "is_bot", true);
	return v;
}

/* One line of a day. The page is full when there is one more than fits. */
static void take_line(struct page *page, struct str day, size_t number, const struct jv *line)
{
	struct arena *arena = page->ctx->arena;
	struct jv *v;

	if (!line || !is_wanted(page->query, line))
		return;
	v = message_of(arena, line);
	page->size += jv_get_str(v, "text").len + 100;
	if (page->count == page->query->limit || page->size > PAGE_MAX) {
		page->is_full = true;
		return;
	}
	ARENA_ROOM(arena, page->messages, page->count, page->room);
	page->messages[page->count++] = v;
	page->oldest = arena_printf(arena, "%.*s/%zu", STR_ARG(day), number);
}

/* A line; NULL: it is damaged, or says again what an earlier one has. */
static const struct jv *first_of_its_id(struct arena *arena, struct strmap *ids, struct str text)
{
	struct err ignored;
	struct jv *v;
	struct str id;

	if (jv_parse(arena, text, &v, &ignored) != 0)
		return NULL;
	id = jv_get_str(v, "msg_id");
	if (id.len && strmap_find(ids, id))
		return NULL;
	if (id.len)
		strmap_put(ids, id, NULL);
	return v;
}

/* The lines of a day before `end` (0: all), the last one first. */
static int take_day(struct page *page, struct wpath path, size_t end, struct err *err)
{
	struct arena *arena = page->ctx->arena;
	struct strmap *ids = strmap_new(arena);
	const struct jv **lines = NULL;
	struct str bytes, rest, text;
	size_t count = 0, room = 0;
	int r = store_read(workspace_home(page->ws), page->ctx, path, STORE_WHOLE, DAY_MAX, &bytes, NULL, err);

	if (r)
		return r;
	rest = bytes;
	while (str_cut(&rest, '\n', &text)) {
		ARENA_ROOM(arena, lines, count, room);
		lines[count++] = first_of_its_id(arena, ids, text);
	}
	if (end && end - 1 < count)
		count = end - 1;
	for (size_t i = count; i > 0 && !page->is_full; i--)
		take_line(page, str_first(wpath_name(path), DAY_LEN), i, lines[i - 1]);
	return 0;
}

static int parse_place(struct str before, struct str *ret_day, size_t *ret_line, struct err *err)
{
	struct str number = str_from(before, before.len < DAY_LEN + 1 ? before.len : DAY_LEN + 1);
	int64_t line = 0;

	*ret_day = STR_NONE;
	*ret_line = 0;
	if (!before.len)
		return 0;
	if (before.len <= DAY_LEN || before.ptr[DAY_LEN] != '/' || !str_to_i64(number, &line) || line < 1)
		return err_set(err, ERR_INVALID,
			       "\"before\" is \"%.*s\"; give the value of `before` of an earlier result",
			       STR_ARG(utf8_first(before, 60)));
	*ret_day = str_first(before, DAY_LEN);
	*ret_line = (size_t)line;
	return 0;
}

static int no_log(struct page *page, struct err *err)
{
	struct arena *arena = page->ctx->arena;
	struct store_page channels, chats;
	struct err ignored;
	struct buf names;

	buf_init(&names, arena, 300);
	if (list(page->ws, page->ctx, STR(DIR), &channels, &ignored) == 0)
		for (size_t c = 0; c < channels.count; c++)
			if (list(page->ws, page->ctx, channels.entries[c].path.s, &chats, &ignored) == 0)
				for (size_t i = 0; i < chats.count && names.len < 200; i++)
					buf_printf(&names, "%s%.*s:%.*s", names.len ? ", " : "",
						   STR_ARG(wpath_name(channels.entries[c].path)),
						   STR_ARG(wpath_name(chats.entries[i].path)));
	return err_set(err, ERR_NOT_FOUND, "the chat \"%.*s:%.*s\" has no log (only groups have one); %s%.*s",
		       STR_ARG(page->query->channel), STR_ARG(utf8_first(page->query->chat, 60)),
		       names.len ? "there are: " : "nothing is logged yet", STR_ARG(buf_str(&names)));
}

static int read_days(struct page *page, struct str before, size_t line, struct err *err)
{
	struct store_page days;
	int r = list(page->ws, page->ctx, dir_of(page->ctx->arena, page->query->channel, page->query->chat), &days,
		     err);

	if (r == 0 && !days.count)
		r = no_log(page, err);
	for (size_t i = days.count; r == 0 && i > 0 && !page->is_full; i--) {
		struct wpath path = days.entries[i - 1].path;
		int cmp = before.len ? str_cmp(str_first(wpath_name(path), DAY_LEN), before) : -1;

		if (cmp <= 0)
			r = take_day(page, path, cmp == 0 ? line : 0, err);
	}
	return r;
}

int chat_log_read(struct workspace *ws, struct ctx *ctx, const struct chat_query *query, struct jv **ret,
		  struct err *err)
{
	struct arena *arena = ctx->arena;
	struct page page = {.ws = ws, .ctx = ctx, .query = query};
	struct jv *v = jv_object(arena), *messages = jv_array(arena);
	struct str day;
	size_t line;
	int r = parse_place(query->before, &day, &line, err);

	if (r == 0)
		r = read_days(&page, day, line, err);
	if (r)
		return r;
	for (size_t i = page.count; i > 0; i--)
		jv_push(arena, messages, page.messages[i - 1]);
	jv_set_str(arena, v, "channel", query->channel);
	jv_set_str(arena, v, "chat", query->chat);
	jv_set(arena, v, "messages", messages);
	if (page.is_full)
		jv_set_str(arena, v, "before", page.oldest);
	*ret = v;
	return 0;
}
