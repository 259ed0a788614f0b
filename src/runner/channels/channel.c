/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows which kinds of channels there are. */
#include "runner/channels/channel.h"

#include <poll.h>

#include "base/clock.h"
#include "home/media/media.h"
#include "home/uploads/uploads.h"

#define LOOK_MS 25

/* The kinds, and the keys of agent.yaml that each acts on besides type and name. */
static const struct kind {
	const char *name, *keys;
	int (*open)(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		    struct channel **ret, struct err *err);
	int (*check)(const struct jv *config, struct arena *arena, const struct channel_post *post,
		     struct channel_receipt *ret, struct err *err);
	int (*check_body)(struct arena *arena, const struct jv *body, struct err *err); /* NULL: any object will do */
} kinds[] = {
	{"telegram",
	 "token base_url allowed_users allowed_groups allow_all mention_required triggers user_aliases "
	 "context_messages channel_log webhook_url webhook_secret",
	 telegram_open, telegram_check, NULL},
	{"webhook", "url secret allowed_users allowed_groups allow_all user_aliases channel_log", webhook_open,
	 webhook_check, webhook_check_body},
};

const struct jv *channel_config(struct workspace *ws, size_t index)
{
	const struct jv *document = workspace_config(ws)->document, *one = jv_get(document, "channel");

	if (one)
		return index == 0 ? one : NULL;
	return jv_at(jv_get(document, "channels"), index);
}

static struct str type_of(const struct jv *config)
{
	struct str type = jv_get_str(config, "type");

	return type.len ? type : STR("telegram");
}

struct str channel_config_name(const struct jv *config)
{
	struct str name = jv_get_str(config, "name");

	return name.len ? name : type_of(config);
}

static const struct kind *kind_of(struct str type)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (str_is(type, kinds[i].name))
			return &kinds[i];
	return NULL;
}

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_of(words), one;

	while (str_cut(&rest, ' ', &one))
		if (str_eq(one, word))
			return true;
	return false;
}

int channel_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		 struct channel **ret, struct err *err)
{
	struct str type = type_of(config);
	const struct kind *kind = kind_of(type);

	if (!kind)
		return err_set(err, ERR_UNSUPPORTED,
			       "there are no channels of type \"%.*s\"; write \"telegram\" or \"webhook\"",
			       STR_ARG(utf8_first(type, 40)));
	for (const struct jv_member *m = jv_first(config); m; m = m->next)
		if (!str_is(m->key, "type") && !str_is(m->key, "name") && !has_word(kind->keys, m->key))
			return err_set(err, ERR_INVALID, "\"%.*s\" has no effect in a channel of type %s; remove it",
				       STR_ARG(utf8_first(m->key, 40)), kind->name);
	return kind->open(ws, config, events, ret, err);
}

/* The kind of the channel of this name, and its settings; NULL: there is none. */
static const struct kind *find_channel(struct workspace *ws, struct str name, const struct jv **ret_config)
{
	const struct jv *config;

	for (size_t i = 0; (config = channel_config(ws, i)); i++) {
		const struct kind *kind = kind_of(type_of(config));

		*ret_config = config;
		if (kind && str_eq(channel_config_name(config), name))
			return kind;
	}
	return NULL;
}

int channel_check(struct workspace *ws, struct str name, struct arena *arena, const struct channel_post *post,
		  struct channel_receipt *ret, struct err *err)
{
	const struct jv *config;
	const struct kind *kind = find_channel(ws, name, &config);

	if (!kind)
		return err_set(err, ERR_NOT_FOUND, "there is no channel \"%.*s\"", STR_ARG(utf8_first(name, 64)));
	return kind->check(config, arena, post, ret, err);
}

int channel_check_body(struct workspace *ws, struct str name, struct arena *arena, const struct jv *body,
		       struct err *err)
{
	const struct jv *config;
	const struct kind *kind = find_channel(ws, name, &config);

	if (body->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "the body must be a JSON object");
	return kind && kind->check_body ? kind->check_body(arena, body, err) : 0;
}

/* The words of speech, also as a file next to it. */
static void add_words(struct workspace *ws, struct ctx *ctx, const struct upload *upload, struct str path,
		      struct buf *text)
{
	struct str words = STR_NONE;
	struct err err = {0};
	int r = media_transcribe(ws, ctx, wpath_name((struct wpath){path}), upload->source.bytes, &words, &err);

	if (r == 0 && words.len)
		r = store_write(workspace_home(ws), ctx,
				(struct wpath){arena_printf(ctx->arena, "%.*s.txt", STR_ARG(path))}, words,
				(struct store_cond){0}, NULL, &err);
	if (r)
		buf_printf(text, "[not transcribed: %.*s]\n", STR_ARG(err_text(ctx->arena, &err)));
	else if (words.len)
		buf_printf(text, "[what is said in it:] %.*s\n", STR_ARG(words));
}

void channel_keep_file(struct workspace *ws, struct ctx *ctx, const struct upload *upload, struct buf *text)
{
	struct jv *saved = NULL;
	struct err err = {0};

	if (upload_save(ws, ctx, upload, &saved, &err) != 0) {
		buf_printf(text, "[a file was sent but could not be stored: %.*s]\n",
			   STR_ARG(err_text(ctx->arena, &err)));
		return;
	}
	buf_printf(text, "%.*s\n", STR_ARG(jv_get_str(saved, "receipt")));
	if (str_starts(upload->mime, STR("audio/")))
		add_words(ws, ctx, upload, jv_get_str(saved, "path"), text);
}

int channel_pause(struct ctx *ctx, int64_t ms, struct err *err)
{
	int64_t until = clock_monotonic_ns() + ms * NS_PER_MS;
	int r = 0;

	while ((r = ctx_check(ctx, err)) == 0 && clock_monotonic_ns() < until)
		poll(NULL, 0, LOOK_MS);
	return r;
}
