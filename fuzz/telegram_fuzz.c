/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from Telegram and what goes there. The input is an update if it is JSON, and the Markdown of an answer in
 * any case. Beyond "does not crash": an update of nobody in the lists is not admitted, no piece is longer than the
 * limit, the pieces end, and the tags of each match.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "runner/channels/telegram_text.h"
#include "runner/channels/telegram_update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_update(struct arena *arena, struct str text)
{
	struct telegram_rules rules = {.me = 7, .me_name = STR("stead_bot")};
	struct telegram_update u;
	struct jv *config, *update;
	struct err err;

	require(jv_parse(arena, STR("{\"allowed_users\":[42],\"triggers\":[\"hey\"]}"), &config, &err) == 0);
	rules.config = config;
	if (jv_parse(arena, text, &update, &err) != 0 || !telegram_update_read(arena, &rules, update, &u))
		return;
	require(u.is_admitted == (u.sender == 42 && !u.is_bot) && u.chat != 0);
	for (size_t i = 0; i < u.sender_name.len; i++)
		require((unsigned char)u.sender_name.ptr[i] >= ' ');
}

/* As many closing tags as opening ones. */
static void check_tags(struct str html)
{
	long open = 0;

	for (size_t i = 0; i + 1 < html.len; i++)
		if (html.ptr[i] == '<')
			open += html.ptr[i + 1] == '/' ? -1 : 1;
	require(open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size), rest = text, piece;
	size_t pieces = 0;

	check_update(arena, text);
	while (telegram_cut(arena, &rest, 256, &piece)) {
		struct buf html;

		require(++pieces <= size && telegram_units(piece) <= 256);
		buf_init(&html, arena, MIB);
		telegram_html(&html, piece);
		check_tags(buf_str(&html));
	}
	return 0;
}
