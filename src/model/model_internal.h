/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocols share: the model, and an answer while it arrives. */
#ifndef STEAD_MODEL_MODEL_INTERNAL_H
#define STEAD_MODEL_MODEL_INTERNAL_H

#include "model/model.h"

struct answer;

/* A protocol over HTTP. */
struct wire {
	const char *name, *path; /* the path follows the base URL, which ends with /v1 */
	/* Writes the members of the request but model, stream and options: each with ',' before it. */
	void (*body)(const struct model *m, struct arena *arena, const struct model_request *req, struct buf *out);
	void (*tool)(struct arena *arena, const struct model_tool *tool, struct jv *ret);
	/* Takes one event of the stream. */
	int (*event)(struct answer *s, struct str event, struct str data, struct err *err);
};

extern const struct wire wire_anthropic, wire_chat, wire_responses;

struct model {
	const struct wire *wire; /* NULL: a recording */
	struct model_settings set;
	struct str label, url;
	const char *key_name;
	bool first_party; /* OpenAI itself: it has fields that servers like it lack */
	struct http *http;
	struct arena *arena;        /* of what is above */
	const struct jv *recording; /* assistant messages */
};

/* A part of an answer. */
struct block {
	enum block_kind { BLOCK_TEXT, BLOCK_THINKING, BLOCK_REDACTED, BLOCK_CALL, BLOCK_ITEM } kind;
	struct buf text; /* of a call: its arguments */
	struct buf signature;
	struct str id, name;
	const struct jv *item; /* as it came */
	bool open;             /* not complete yet */
};

#define ANSWER_BLOCKS_MAX 512

struct answer {
	struct arena *arena;
	const struct model *model;
	const struct model_request *req;
	struct block *blocks;
	size_t count, cap;
	size_t bytes; /* of all of them, at most MODEL_ANSWER_MAX */
	struct str id;
	enum model_stop stop;
	struct model_usage usage;
	unsigned half; /* the first half of a surrogate pair whose second is in a later event; 0: none */
	bool done;     /* the end of the answer came */
};

/* The block at `index`, made when it is the next one. NULL: the index is not one that can be, or there are too many. */
struct block *answer_block(struct answer *s, int64_t index, enum block_kind kind);
/* The last block if it is of this kind, else a new one. */
struct block *answer_last(struct answer *s, enum block_kind kind);
/* Adds to a block and shows it. ERR_TOO_LARGE: the answer has too many bytes. */
int answer_add(struct answer *s, struct block *b, struct str text, struct err *err);
/* Parses the data of an event. */
int answer_parse(struct answer *s, struct str data, struct jv **ret, struct err *err);
/* An error that the server reports in its stream or in an answer: {"error": {"type", "code", "message"}} or the like.
   `status` 0: in the stream. */
int model_refusal(const struct model *m, struct arena *arena, int status, struct str body, struct err *err);
/* The answer in its one form. */
void answer_finish(struct answer *s, struct model_answer *ret);

/* Text of the blocks of a message, joined by newlines. */
struct str blocks_text(struct arena *arena, const struct jv *content, const char *type);
/* The name of a tool or the id of a call as providers accept them. A model may have invented another one, and to send
   that back would make every further request of the conversation fail. */
struct str call_word(struct arena *arena, struct str word);
/* A count of tokens that a server states; what is not one is `fallback`. */
uint64_t token_count(const struct jv *usage, const char *key, uint64_t fallback);
/* The arguments of a tool_use as the model wrote them. */
struct str call_arguments(struct arena *arena, const struct jv *block);
/* "data:image/png;base64,…" of an image block. */
struct str image_url(struct arena *arena, const struct jv *block);

int recording_open(struct model *m, struct err *err);
/* The limit of tokens of an answer; 0: none. */
static inline uint64_t model_limit(const struct model *m, const struct model_request *req, uint64_t usual)
{
	uint64_t own = m->set.max_tokens ? m->set.max_tokens : usual;

	return req->max_tokens && (!own || req->max_tokens < own) ? req->max_tokens : own;
}

int recording_ask(struct model *m, struct ctx *ctx, const struct model_request *req, struct model_answer *ret,
		  struct err *err);

#endif
