/* SPDX-License-Identifier: Apache-2.0 */
/* What an update of Telegram says: who, where, to whom, what. Reading it decides nothing but whether it is admitted. */
#ifndef STEAD_RUNNER_CHANNELS_TELEGRAM_UPDATE_H
#define STEAD_RUNNER_CHANNELS_TELEGRAM_UPDATE_H

#include "text/jv.h"

/* Who the bot is, and who may talk to it. */
struct telegram_rules {
	int64_t me;
	struct str me_name;      /* without '@' */
	const struct jv *config; /* of the channel */
};

struct telegram_update {
	int64_t update, chat, thread, message, sender;
	struct str sender_name;
	struct str text; /* of a message or caption, without the mention of the bot; of a button, its data */
	struct str command, command_args;
	struct str callback;                   /* the id of a press; empty: a message */
	struct str file, file_name, file_type; /* file: its id; empty: none */
	int64_t moved_to;                      /* the group has another id now; 0: it has not */
	bool is_group, is_bot;
	bool is_for_me;   /* said in private, to the bot by name, as an answer to it, or with a trigger */
	bool is_admitted; /* by the lists of the configuration */
};

/* False: it is of a kind that does not count. */
bool telegram_update_read(struct arena *arena, const struct telegram_rules *rules, const struct jv *update,
			  struct telegram_update *ret);

#endif
