/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People are known by their number, never by a name, because names can be changed. An empty list admits nobody. A group
 * that is admitted admits its members; a person who is admitted may also talk in other groups. What a person presses is
 * checked like what they write: anybody in a group can press a button.
 */
#include "runner/channels/telegram_update.h"

#include "base/utf8.h"

static bool lists_id(const struct jv *list, int64_t id)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		int64_t n = 0;

		if (m->value->type == JV_INT)
			n = m->value->u.i;
		else
			str_to_i64(jv_str_of(m->value), &n);
		if (n && n == id)
			return true;
	}
	return false;
}

static bool admits(const struct jv *config, const struct telegram_update *u)
{
	if (u->is_bot || !u->sender)
		return false;
	if (jv_get_bool(config, "allow_all", false))
		return true;
	return lists_id(jv_get(config, "allowed_users"), u->sender) ||
	       (u->is_group && lists_id(jv_get(config, "allowed_groups"), u->chat));
}

/* --- the sender --- */

static void read_sender(struct arena *arena, const struct jv *config, const struct jv *from, struct telegram_update *u)
{
	struct str id, alias, first = jv_get_str(from, "first_name"), last = jv_get_str(from, "last_name");

	u->sender = jv_get_int(from, "id", 0);
	u->is_bot = jv_get_bool(from, "is_bot", false);
	id = arena_printf(arena, "%lld", (long long)u->sender);
	alias = jv_str_of(jv_get_key(jv_get(config, "user_aliases"), id));
	if (alias.len)
		u->sender_name = alias;
	else if (first.len)
		u->sender_name = arena_printf(arena, "%.*s%s%.*s", STR_ARG(utf8_first(first, 64)), last.len ? " " : "",
					      STR_ARG(utf8_first(last, 64)));
	else
		u->sender_name = id;
	for (size_t i = 0; i < u->sender_name.len; i++)
		if ((unsigned char)u->sender_name.ptr[i] < ' ')
			u->sender_name = id; /* a name of several lines could pretend to be a message */
}

/* --- to whom --- */

static size_t find_nocase(struct str text, struct str word)
{
	for (size_t i = 0; word.len && i + word.len <= text.len; i++)
		if (str_eq_nocase(str_n(text.ptr + i, word.len), word))
			return i;
	return SIZE_MAX;
}

static bool has_trigger(const struct jv *config, struct str text)
{
	for (const struct jv_member *m = jv_first(jv_get(config, "triggers")); m; m = m->next)
		if (find_nocase(text, jv_str_of(m->value)) != SIZE_MAX)
			return true;
	return false;
}

static bool mentions_by_id(const struct jv *message, int64_t me)
{
	for (const struct jv_member *m = jv_first(jv_get(message, "entities")); m; m = m->next)
		if (jv_get_int(jv_get(m->value, "user"), "id", 0) == me)
			return true;
	return false;
}

/* Takes "@bot" out of the text; true: it was there. */
static bool take_mention(struct arena *arena, struct str me_name, struct str *text)
{
	struct str mention = arena_printf(arena, "@%.*s", STR_ARG(me_name));
	size_t at = me_name.len ? find_nocase(*text, mention) : SIZE_MAX;
	unsigned char after;

	if (at == SIZE_MAX)
		return false;
	after = at + mention.len < text->len ? ascii_lower((unsigned char)text->ptr[at + mention.len]) : ' ';
	if ((after >= 'a' && after <= 'z') || (after >= '0' && after <= '9') || after == '_')
		return false; /* another bot, whose name begins like this one's */
	*text = str_trim(arena_printf(arena, "%.*s%.*s", STR_ARG(str_first(*text, at)),
				      STR_ARG(str_from(*text, at + mention.len))));
	return true;
}

/* "/status@bot now" at the start. False: it is for another bot. */
static bool read_command(const struct telegram_rules *rules, struct telegram_update *u)
{
	struct str word = u->text, name;
	size_t end = 0, at;

	if (!str_starts(word, STR("/")))
		return true;
	while (end < word.len && (unsigned char)word.ptr[end] > ' ')
		end++;
	name = str_n(word.ptr + 1, end - 1);
	at = str_find_char(name, '@');
	if (at < name.len) {
		if (!str_eq_nocase(str_from(name, at + 1), rules->me_name))
			return false;
		u->is_for_me = true;
	}
	u->command = str_first(name, at);
	u->command_args = str_trim(str_from(word, end));
	return true;
}

/* --- files --- */

static void read_file(struct arena *arena, const struct jv *message, struct telegram_update *u)
{
	static const struct {
		const char *key, *name, *type;
	} kinds[] = {{"document", "upload", ""},
		     {"voice", "voice", "audio/ogg"},
		     {"audio", "audio", "audio/mpeg"},
		     {"video", "video", "video/mp4"},
		     {"photo", "photo", "image/jpeg"}};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		const struct jv *file = jv_get(message, kinds[i].key);
		struct str type;

		if (file && file->type == JV_ARRAY) /* sizes of a picture, the largest last */
			file = jv_at(file, jv_count(file) - 1);
		if (!jv_get_str(file, "file_id").len)
			continue;
		u->file = jv_get_str(file, "file_id");
		type = jv_get_str(file, "mime_type");
		u->file_type = type.len ? type : str_of(kinds[i].type);
		u->file_name = jv_get_str(file, "file_name");
		if (!u->file_name.len)
			u->file_name = arena_printf(arena, "%s_%lld", kinds[i].name, (long long)u->message);
		return;
	}
}

/* --- the whole --- */

static bool read_message(struct arena *arena, const struct telegram_rules *rules, const struct jv *message,
			 struct telegram_update *u)
{
	const struct jv *chat = jv_get(message, "chat"), *answered = jv_get(message, "reply_to_message");
	bool is_mentioned;

	u->chat = jv_get_int(chat, "id", 0);
	u->is_group = !str_is(jv_get_str(chat, "type"), "private");
	u->thread = jv_get_bool(message, "is_topic_message", false) ? jv_get_int(message, "message_thread_id", 0) : 0;
	u->message = jv_get_int(message, "message_id", 0);
	u->moved_to = jv_get_int(message, "migrate_to_chat_id", 0);
	u->text = jv_get_str(message, "text");
	if (!u->text.len)
		u->text = jv_get_str(message, "caption");
	u->text = str_trim(u->text);
	read_file(arena, message, u);
	if (!read_command(rules, u))
		return false;
	is_mentioned = mentions_by_id(message, rules->me);
	is_mentioned |= !u->command.len && take_mention(arena, rules->me_name, &u->text);
	u->is_for_me |= !u->is_group || is_mentioned || u->command.len || has_trigger(rules->config, u->text) ||
			(answered && jv_get_int(jv_get(answered, "from"), "id", 0) == rules->me);
	return u->chat && (u->text.len || u->file.len || u->moved_to || is_mentioned);
}

bool telegram_update_read(struct arena *arena, const struct telegram_rules *rules, const struct jv *update,
			  struct telegram_update *ret)
{
	const struct jv *press = jv_get(update, "callback_query"), *message = jv_get(update, "message");
	struct telegram_update u = {.update = jv_get_int(update, "update_id", 0)};

	if (press)
		message = jv_get(press, "message");
	if (!message || message->type != JV_OBJECT || !read_message(arena, rules, message, &u))
		return false;
	read_sender(arena, rules->config, jv_get(press ? press : message, "from"), &u);
	if (press) {
		u.callback = jv_get_str(press, "id");
		u.file = STR_NONE;
		u.text = jv_get_str(press, "data");
		u.command = u.command_args = STR_NONE;
		if (!read_command(rules, &u))
			return false;
		u.is_for_me = true;
	}
	u.is_admitted = admits(rules->config, &u);
	*ret = u;
	return true;
}
