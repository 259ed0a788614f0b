/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Language models with one streaming call: Anthropic Messages, OpenAI Chat Completions and Responses, servers that
 * speak one of these, and a recording. A model is opened once and may be used from many threads.
 *
 * A conversation has one form here, whatever the provider: [{"role": "user"|"assistant", "content": [block …]}], with
 * blocks as Anthropic has them: text, image, thinking, redacted_thinking, tool_use, tool_result; and "reasoning", an
 * item of OpenAI Responses as it came. "wire" of an assistant message names the protocol that it came over, so that
 * what only that protocol understands is not sent over another.
 */
#ifndef STEAD_MODEL_MODEL_H
#define STEAD_MODEL_MODEL_H

#include "base/ctx.h"
#include "text/jv.h"

struct model;

struct model_settings {
	struct str provider, name; /* "anthropic", "claude-sonnet-4-5" */
	struct str base_url;       /* empty: the provider's own */
	struct str api_key;        /* empty: none */
	uint64_t max_tokens;       /* of one answer; 0: the provider's default */
	double temperature, top_p; /* NAN: not sent */
	const struct jv *options;  /* further members of the request, unchanged; NULL: none */
	unsigned retries;          /* after the first attempt */
	unsigned pause_ms;         /* before the first retry, when the server names no time; doubles. 0: 500 */
};

/* Splits "provider:model". False: it has no ':' or an empty part. */
bool model_split(struct str text, struct str *ret_provider, struct str *ret_name);
/* The variable that has the provider's key; NULL: it needs none, or is not known. */
const char *model_key_name(struct str provider);

/* ERR_INVALID with the names of all: there is no such provider. */
int model_check_provider(struct str provider, struct err *err);
/* Copies what it needs of the settings. ERR_INVALID: the provider is not known, or the URL is not one to send a key to.
   ERR_NOT_FOUND: the file of a recording. */
int model_open(const struct model_settings *settings, struct model **ret_model, struct err *err);
void model_close(struct model *model); /* when no call runs; NULL is allowed */
/* "anthropic:claude-sonnet-4-5" */
struct str model_label(const struct model *model);
/* The protocol: "anthropic", "chat", "responses"; "replay" for a recording. */
const char *model_wire(const struct model *model);

struct model_tool {
	struct str name, description;
	const struct jv *schema;
};
/* Tools in the form of the model's protocol, once for many requests. */
struct str model_tools(const struct model *model, struct arena *arena, const struct model_tool *tools, size_t count);

enum model_delta {
	MODEL_TEXT,
	MODEL_THINKING,
	MODEL_AGAIN, /* the call failed and is made again: what it gave so far is void; the text says why */
};

struct model_request {
	const struct str *system; /* parts, those that change least first; each end is a place for a cache breakpoint */
	size_t system_count;
	struct str tools;          /* model_tools(); empty: none */
	const struct jv *messages; /* the first is the user's */
	uint64_t max_tokens;       /* of this answer, if that is less than the settings say; 0: as they say */
	uint64_t answered; /* how many answers of this model the conversation has: a recording continues there */
	/* Called on this thread as the answer comes; may be NULL. */
	void (*delta)(void *arg, enum model_delta kind, struct str text);
	void *arg;
};

enum model_stop {
	MODEL_DONE,    /* the turn is complete, or wants tools: the content says which */
	MODEL_CUT,     /* the answer reached its limit of tokens; a last tool call may be incomplete and is left out */
	MODEL_PAUSED,  /* ask again with this answer at the end */
	MODEL_REFUSED, /* the provider declined; the content is not sent back */
	MODEL_FULL,    /* the context window is full */
	MODEL_STOPS,
};
/* As logs have it: "done", "cut", … */
const char *model_stop_name(enum model_stop stop);

struct model_usage {
	uint64_t input, output;           /* input: all of the prompt, cached or not */
	uint64_t cache_read, cache_write; /* parts of input */
	double cost_usd;                  /* by the prices of the configuration; 0: they are not known */
};

struct model_answer {
	struct jv *content; /* blocks; a tool_use whose arguments are not JSON has "input_text" and "input_error" */
	enum model_stop stop;
	struct model_usage usage;
	struct str id;
	unsigned attempts;
};

/*
 * Asks the model, and asks again after failures that may pass: as often as the settings say, after the time that the
 * server names or a growing one, and not beyond ctx's deadline. Nothing was acted on until it returns.
 * ERR_UNAUTHENTICATED: the key; ERR_TOO_LARGE: the conversation does not fit the model; ERR_QUOTA: no credit;
 * ERR_RATE_LIMITED, ERR_UNAVAILABLE, ERR_TIMEOUT: `retryable`. No message has the key in it.
 */
int model_ask(struct model *model, struct ctx *ctx, const struct model_request *request, struct model_answer *ret,
	      struct err *err);

#endif
