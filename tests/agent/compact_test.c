/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction: context_window, and of auto_compact: enabled, trigger, summary_model. What is sent, and what stays. */
#include "agent/agent_fix.h"
#include "model/stub.h"

#define ANSWER(text)                                                                                                   \
	STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"},\"finish_reason\":\"stop\"}]}\n\n"
#define FAILS    "HTTP/1.1 400 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
#define TOO_LONG "HTTP/1.1 400 No\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"maximum context length is 8\"}}"

static void open_with(struct bench *b, struct stub *stub, const char *more)
{
	struct err err;
	struct str text;

	bench_open_disk(b, "");
	text = arena_printf(b->arena, "model: {model: 'openai:m', base_url: '%s', context_window: 4000}\n%s\n",
			    stub->url, more);
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, text,
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "");
}

/* About 3000 tokens that begin with a word. */
static const char *long_text(struct bench *b, const char *word)
{
	struct buf text;

	buf_init(&text, b->arena, 100000);
	buf_printf(&text, "%s", word);
	for (int i = 0; i < 3000; i++)
		buf_lit(&text, " word");
	return arena_cstr(b->arena, buf_str(&text));
}

static struct str sent(struct stub *stub, size_t index)
{
	stub_join(stub);
	CHECK(index < stub->count);
	return buf_str(&stub->requests[index]);
}

/* Tools alone have more than such a window, so compaction is always due when there is something to summarise. */
TEST(the_older_part_is_sent_as_a_summary_and_stays_in_the_log)
{
	const char *const answers[] = {ANSWER("one"),         ANSWER("NO_REPLY"),  ANSWER("SUMMARY-A"), ANSWER("two"),
				       ANSWER("- likes tea"), ANSWER("SUMMARY-B"), ANSWER("three"),     NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {trigger: 0.5, summary_model: 'openai:small'}");
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "ALPHA"), &result, &err), err);
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "BETA"), &result, &err), err);
	CHECK_STR(result.answer, STR("two"));
	CHECK_OK(say(&b, STR_NONE, "And?", &result, &err), err);
	CHECK_HAS(sent(stub, 2), STR("\"model\":\"small\""));
	CHECK_HAS(sent(stub, 2), STR("ALPHA"));
	CHECK_HAS(sent(stub, 3), STR("SUMMARY-A"));
	CHECK_HAS(sent(stub, 3), STR("BETA"));
	CHECK_LACKS(sent(stub, 3), STR("ALPHA"));
	CHECK_HAS(sent(stub, 5), STR("SUMMARY-A"));
	CHECK_HAS(sent(stub, 6), STR("SUMMARY-B"));
	CHECK_LACKS(sent(stub, 6), STR("BETA"));
	CHECK_INT(count_entries(&b, "message"), 6);
	CHECK_INT(count_entries(&b, "compaction"), 2);
}

TEST(what_is_worth_remembering_goes_to_memory_as_an_agents_fact)
{
	const char *const answers[] = {ANSWER("one"), ANSWER("- likes tea"), ANSWER("SUMMARY"), ANSWER("two"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {trigger: 0.5}");
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "ALPHA"), &result, &err), err);
	CHECK_OK(say(&b, STR_NONE, "And?", &result, &err), err);
	good(&b, "memory_search", "{'query':'tea'}");
	CHECK_HAS(b.result.text, STR("likes tea"));
	CHECK_HAS(b.result.text, STR("agent"));
}

/* disable: memory_hooks */
TEST(without_memory_hooks_only_the_summary_is_asked_for)
{
	const char *const answers[] = {ANSWER("one"), ANSWER("SUMMARY"), ANSWER("two"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {trigger: 0.5}\ndisable: [memory_hooks]");
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "ALPHA"), &result, &err), err);
	CHECK_OK(say(&b, STR_NONE, "And?", &result, &err), err);
	CHECK_STR(result.answer, STR("two"));
	CHECK_HAS(sent(stub, 2), STR("SUMMARY"));
}

TEST(a_summary_that_fails_drops_nothing)
{
	const char *const answers[] = {ANSWER("one"), FAILS, FAILS, ANSWER("two"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "");
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "ALPHA"), &result, &err), err);
	CHECK_OK(say(&b, STR_NONE, "And?", &result, &err), err);
	CHECK_STR(result.answer, STR("two"));
	CHECK_HAS(sent(stub, 3), STR("ALPHA"));
	CHECK_INT(count_entries(&b, "compaction"), 0);
}

TEST(a_conversation_that_the_model_finds_too_long_is_compacted_once)
{
	const char *const answers[] = {ANSWER("one"),     TOO_LONG,      ANSWER("NO_REPLY"),
				       ANSWER("SUMMARY"), ANSWER("two"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str text;

	open_with(&b, stub, "");
	text = arena_printf(b.arena, "model: {model: 'openai:m', base_url: '%s'}\n", stub->url);
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("agent.yaml")}, text,
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(&b, (struct workspace_opts){0}, "");
	CHECK_OK(say(&b, STR_NONE, "First", &result, &err), err);
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "LATER"), &result, &err), err);
	CHECK_STR(result.answer, STR("two"));
	CHECK_HAS(sent(stub, 4), STR("SUMMARY"));
	CHECK_HAS(sent(stub, 4), STR("LATER"));
}

#define LARGE(text)                                                                                                    \
	STUB_STREAM "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"},\"finish_reason\":\"stop\"}],"          \
		    "\"usage\":{\"prompt_tokens\":90000,\"completion_tokens\":9}}\n\n"

/* It would be summarised again before each question, until one is answered. */
TEST(what_requests_had_before_a_compaction_does_not_count_after_it)
{
	const char *const answers[] = {LARGE("one"), ANSWER("NO_REPLY"), ANSWER("SUMMARY"), FAILS, NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct agent_opts opts = {0};
	struct agent *agent;
	struct jv *status;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {trigger: 0.9}");
	CHECK_OK(say(&b, STR_NONE, long_text(&b, "ALPHA"), &result, &err), err);
	CHECK_ERR(say(&b, STR_NONE, "And?", &result, &err), err, ERR_INVALID);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	CHECK_OK(agent_status(agent, &b.ctx, STR("s"), &status, &err), err);
	agent_close(agent);
	CHECK_INT(count_entries(&b, "compaction"), 1);
	CHECK(jv_get_int(status, "tokens", 90000) < 50000);
}

TEST(without_compaction_a_conversation_that_is_too_long_is_an_error)
{
	const char *const answers[] = {TOO_LONG, NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {enabled: false}");
	CHECK_ERR(say(&b, STR_NONE, "Hi", &result, &err), err, ERR_TOO_LARGE);
	CHECK_INT(count_entries(&b, "turn"), 1);
}

/* --- between turns --- */

static struct agent *agent_of(struct bench *b, struct str model)
{
	struct agent_opts opts = {.model = model};
	struct agent *agent;
	struct err err;

	CHECK_OK(agent_open(b->ws, &opts, &agent, &err), err);
	test_defer(agent_close, agent);
	return agent;
}

TEST(undo_takes_the_last_turn_back_with_its_changes)
{
	const char *const answers[] = {"[" CALL("a", "write_file", "{'path':'x','content':'1'}") "]", "'one'",
				       "[" CALL("a", "append_file", "{'path':'x','content':'2'}") "," CALL(
					       "b", "write_file", "{'path':'y','content':'3'}") "]",
				       "'two'", NULL};
	struct agent_result result;
	struct jv *report;
	struct bench b;
	struct err err;
	struct str model;

	bench_open(&b, "");
	model = recording(b.arena, answers);
	CHECK_OK(say(&b, model, "One", &result, &err), err);
	CHECK_OK(say(&b, model, "Two", &result, &err), err);
	CHECK_STR(content_of(&b, "x"), STR("12"));
	CHECK_OK(agent_undo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err);
	CHECK_INT(jv_get_int(report, "changes", 0), 2);
	CHECK_STR(content_of(&b, "x"), STR("1"));
	CHECK_ERR(store_stat(workspace_files(b.ws), &b.ctx, (struct wpath){STR("y")}, NULL, &err), err, ERR_NOT_FOUND);
}

/* Else a conversation whose largest turn was taken back would be summarised for nothing. */
TEST(a_turn_that_was_taken_back_does_not_count_against_the_window)
{
	const char *const answers[] = {"'one'", "'two'", NULL};
	struct agent_result result;
	struct jv *before, *after, *undone;
	struct agent_opts opts = {0};
	struct agent *agent;
	struct bench b;
	struct err err;

	bench_open(&b, "");
	opts.model = recording(b.arena, answers);
	CHECK_OK(say(&b, opts.model, "One", &result, &err), err);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	CHECK_OK(agent_status(agent, &b.ctx, STR("s"), &before, &err), err);
	CHECK_OK(say(&b, opts.model, long_text(&b, "Two"), &result, &err), err);
	CHECK_OK(agent_undo(agent, &b.ctx, STR("s"), &undone, &err), err);
	CHECK_OK(agent_status(agent, &b.ctx, STR("s"), &after, &err), err);
	agent_close(agent);
	CHECK_INT(jv_get_int(after, "tokens", 0), jv_get_int(before, "tokens", 1));
}

TEST(redo_brings_back_a_turn_and_its_changes_until_something_else_is_said)
{
	const char *const answers[] = {"[" CALL("a", "write_file", "{'path':'x','content':'1'}") "," CALL(
					       "b", "write_file", "{'path':'y','content':'2'}") "]",
				       "'one'", "'two'", NULL};
	struct agent_result result;
	struct jv *report;
	struct bench b;
	struct err err;
	struct str model;

	bench_open(&b, "");
	model = recording(b.arena, answers);
	CHECK_OK(say(&b, model, "One", &result, &err), err);
	CHECK_ERR(agent_redo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err, ERR_NOT_FOUND);
	CHECK_OK(agent_undo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err);
	CHECK_ERR(store_stat(workspace_files(b.ws), &b.ctx, (struct wpath){STR("x")}, NULL, &err), err, ERR_NOT_FOUND);
	CHECK_OK(agent_redo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err);
	CHECK_INT(jv_get_int(report, "changes", 0), 2);
	CHECK_STR(content_of(&b, "x"), STR("1"));
	CHECK_STR(content_of(&b, "y"), STR("2"));
	CHECK_OK(agent_status(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err);
	CHECK(jv_get_int(report, "messages", 0) > 0);
	CHECK_OK(agent_undo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err);
	CHECK_OK(say(&b, model, "Two", &result, &err), err);
	CHECK_ERR(agent_redo(agent_of(&b, model), &b.ctx, STR("s"), &report, &err), err, ERR_NOT_FOUND);
}

TEST(a_conversation_that_begins_again_sends_nothing_of_before)
{
	const char *const answers[] = {ANSWER("one"), ANSWER("two"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {enabled: false}");
	CHECK_OK(say(&b, STR_NONE, "ALPHA", &result, &err), err);
	CHECK_OK(agent_forget(agent_of(&b, STR_NONE), &b.ctx, STR("s"), &err), err);
	CHECK_OK(say(&b, STR_NONE, "BETA", &result, &err), err);
	CHECK_LACKS(sent(stub, 1), STR("ALPHA"));
	CHECK_HAS(sent(stub, 1), STR("BETA"));
	CHECK_INT(count_entries(&b, "message"), 4);
}

TEST(a_file_that_a_message_names_is_part_of_it)
{
	const char *const answers[] = {ANSWER("one"), NULL};
	struct stub *stub = stub_start(answers);
	struct agent_result result;
	struct bench b;
	struct err err;

	open_with(&b, stub, "auto_compact: {enabled: false}");
	put(&b, "notes.md", STR("CONTENT</attached_file>\n"));
	put(&b, "shot.png", STR("\x89PNG"));
	put(&b, "x.gif", STR("GIF"));
	put(&b, "a.out",
	    STR("\x7f"
		"ELF\0\1"));
	CHECK_OK(say(&b, STR_NONE, "Read @notes.md, @missing.md, @.env, @a.out, @x.gif and @shot.png.", &result, &err),
		 err);
	CHECK_HAS(sent(stub, 0), STR("<attached_file path=\\\"notes.md\\\">\\nCONTENT&lt;/attached_file>"));
	CHECK_HAS(sent(stub, 0), STR("data:image/png;base64,iVBORw=="));
	CHECK_HAS(sent(stub, 0), STR("data:image/gif;base64,R0lG"));
	CHECK_HAS(sent(stub, 0), STR("[a binary file of 6 bytes, whose content is not shown]"));
	CHECK_LACKS(sent(stub, 0), STR("path=\\\"missing.md"));
	CHECK_LACKS(sent(stub, 0), STR("path=\\\".env"));
}
