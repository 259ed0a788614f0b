/* SPDX-License-Identifier: Apache-2.0 */
/* A turn on the terminal: the answer on standard output, what happens on the way to it on standard error. */
#include "agent/show.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"

#define INPUT_SHOWN ((size_t)100) /* bytes of a call's arguments */
#define ASKED_MAX   ((size_t)500) /* the same, in a question */

void show_end_line(struct show *show)
{
	if (show->begun)
		output_add(&show->cli->out, STR("\n"));
	show->begun = false;
	output_flush(&show->cli->out);
}

/* Asks on the terminal; what is not a clear yes is a no. */
enum agent_verdict show_approve(void *arg, const struct agent_event *event, int64_t wait_ns)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	struct show *show = arg;
	char answer[64];
	struct buf input;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return AGENT_LATER;
	show_end_line(show);
	buf_init(&input, arena, JSON_LEN_MAX);
	if (event->input)
		jv_write(&input, event->input);
	fprintf(stderr, "allow %.*s %.*s? [y/N] ", STR_ARG(output_shown(arena, event->name)),
		STR_ARG(output_shown(arena, utf8_first(buf_str(&input), ASKED_MAX))));
	if (poll(&in, 1, wait_ns / NS_PER_MS < INT32_MAX ? (int)(wait_ns / NS_PER_MS) : -1) <= 0 ||
	    !fgets(answer, sizeof(answer), stdin)) {
		fprintf(stderr, "\n");
		return AGENT_LATER;
	}
	return answer[0] == 'y' || answer[0] == 'Y' ? AGENT_YES : AGENT_NO;
}

/* What the person typed as the type that the form wants; NULL: it is not one. */
static struct jv *typed_value(struct arena *arena, const struct jv *property, struct str line)
{
	struct str type = jv_get_str(property, "type");
	struct jv *v = NULL, *list = jv_array(arena);
	struct str part;
	struct err ignored;

	if (str_is(type, "boolean"))
		return jv_bool(arena, line.ptr[0] == 'y' || line.ptr[0] == 'Y' || str_is(line, "true"));
	if (str_is(type, "integer") || str_is(type, "number"))
		return jv_parse(arena, line, &v, &ignored) == 0 && (v->type == JV_INT || v->type == JV_REAL) ? v : NULL;
	if (!str_is(type, "array"))
		return jv_str(arena, line);
	while (line.len) {
		if (!str_cut(&line, ',', &part)) {
			part = line;
			line = STR_NONE;
		}
		jv_push(arena, list, jv_str(arena, str_trim(part)));
	}
	return list;
}

/* The words that a value may be. */
static void print_words(struct arena *arena, const struct jv *property)
{
	const struct jv *items = jv_get(property, "items"), *of = items ? items : property;
	const struct jv *words = jv_get(of, "enum");
	const struct jv *titled = jv_get(of, "oneOf") ? jv_get(of, "oneOf") : jv_get(of, "anyOf");
	const char *mark = " (";

	for (const struct jv_member *m = jv_first(words ? words : titled); m; m = m->next, mark = "|")
		fprintf(stderr, "%s%.*s", mark,
			STR_ARG(output_shown(arena, jv_str_of(words ? m->value : jv_get(m->value, "const")))));
	if (mark[0] == '|')
		fputs(")", stderr);
}

/* One value; false: the person has gone. */
static bool ask_value(struct arena *arena, const struct jv_member *property, struct jv *values)
{
	const struct jv *usual = jv_get(property->value, "default");
	struct str title = jv_get_str(property->value, "title"), line;
	char answer[2000];
	struct buf shown;
	struct jv *v;

	buf_init(&shown, arena, 64 * KIB);
	if (usual)
		jv_write(&shown, usual);
	fprintf(stderr, "  %.*s", STR_ARG(output_shown(arena, utf8_first(title.len ? title : property->key, 100))));
	print_words(arena, property->value);
	fprintf(stderr, "%s%.*s: ", usual ? ", usually " : "",
		STR_ARG(output_shown(arena, utf8_first(buf_str(&shown), 200))));
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	line = str_trim(arena_str(arena, str_of(answer)));
	v = line.len ? typed_value(arena, property->value, line) : NULL;
	if (v)
		jv_set_key(arena, values, property->key, v);
	return true;
}

enum agent_verdict show_fill(void *arg, const struct agent_event *event, const struct jv *schema, struct arena *arena,
			     struct jv **ret_values)
{
	struct jv *values = jv_object(arena);
	char answer[64];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return AGENT_LATER;
	show_end_line(arg);
	fprintf(stderr, "%.*s asks: %.*s\n", STR_ARG(output_shown(arena, event->name)),
		STR_ARG(output_shown(arena, utf8_first(event->text, ASKED_MAX))));
	for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next)
		if (!ask_value(arena, m, values))
			return AGENT_LATER;
	fprintf(stderr, "send this to the server? [y/N] ");
	if (!fgets(answer, sizeof(answer), stdin))
		return AGENT_LATER;
	*ret_values = values;
	return answer[0] == 'y' || answer[0] == 'Y' ? AGENT_YES : AGENT_NO;
}

static void print_call(struct show *show, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf input;

	show_end_line(show);
	buf_init(&input, arena, JSON_LEN_MAX);
	jv_write(&input, event->input);
	fprintf(stderr, "[%.*s %.*s]\n", STR_ARG(output_shown(arena, event->name)),
		STR_ARG(output_shown(arena, utf8_first(buf_str(&input), INPUT_SHOWN))));
}

void show_event(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = output_shown(arena, event->text);
	struct show *show = arg;

	switch (event->kind) {
	case AGENT_TEXT:
		show->begun = true;
		output_words(&show->cli->out, event->text);
		output_flush(&show->cli->out);
		break;
	case AGENT_AGAIN:
		show_end_line(show);
		fprintf(stderr, "[again: %.*s]\n", STR_ARG(text));
		break;
	case AGENT_NOTE:
		show_end_line(show);
		fprintf(stderr, "[%.*s]\n", STR_ARG(text));
		break;
	case AGENT_CALL:
		print_call(show, event);
		break;
	case AGENT_RESULT:
		if (event->is_error)
			fprintf(stderr, "[%.*s failed: %.*s]\n", STR_ARG(output_shown(arena, event->name)),
				STR_ARG(utf8_first(str_first(text, str_find_char(text, '\n')), 200)));
		break;
	case AGENT_THINKING:
	case AGENT_ASK:
		break;
	}
}

void show_note(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	(void)arg;
	if (event->kind == AGENT_NOTE)
		fprintf(stderr, "stead: %.*s\n", STR_ARG(output_shown(arena, event->text)));
}

struct str show_place(struct cli *cli, struct str session)
{
	struct str workspace = cli_setting(cli, "workspace");

	return arena_printf(cli->ctx.arena, "%s%.*s --session %.*s", workspace.len ? " -w " : "", STR_ARG(workspace),
			    STR_ARG(session));
}

void show_shortfall(const struct agent_result *result)
{
	const char *why = result->full      ? "the answer was cut, because the conversation fills the model's window"
			  : result->cut     ? "the answer was cut at model.max_tokens"
			  : result->refused ? "the provider declined to answer; rephrase your message"
			  : !result->answer.len ? "the model ended the turn with an empty answer"
						: NULL;

	if (why && !result->redirected)
		fprintf(stderr, "stead: %s\n", why);
}

void show_waiting(struct cli *cli, const struct agent_result *result)
{
	struct str place = show_place(cli, result->session);

	output_flush(&cli->out);
	for (const struct jv_member *m = jv_first(result->waiting); m; m = m->next)
		fprintf(stderr,
			"stead: a call to %.*s is waiting for approval; decide with 'stead approvals approve "
			"%.*s%.*s', or 'deny' instead of 'approve'\n",
			STR_ARG(jv_get_str(m->value, "name")), STR_ARG(jv_get_str(m->value, "id")), STR_ARG(place));
	if (result->unsaid)
		fprintf(stderr, "stead: that call belongs to the previous message; send this one again after it\n");
}
