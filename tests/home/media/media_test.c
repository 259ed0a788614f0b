/* SPDX-License-Identifier: Apache-2.0 */
/* Tools whose work is done by programs of agent.yaml, here the shell's own. */
#include "tool/tool_fix.h"

#include "home/media/media.h"

static void open_with(struct bench *b, const char *yaml)
{
	struct err err = {0};

	bench_open_disk(b, "native");
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

#define SH(text) "[sh, -c, '" text "']"

TEST(a_pdf_is_made_next_to_its_source)
{
	struct bench b;

	open_with(&b, "media: {pdf: {command: " SH("(printf %%PDF-1.4,{theme},; cat {in}) >{out}") "}}\n");
	good(&b, "write_file", "{'path':'notes/a.md','content':'# Hello'}");
	good(&b, "markdown_to_pdf", "{'source_path':'notes/a.md'}");
	CHECK_STR(content_of(&b, "notes/a.pdf"), STR("%PDF-1.4,minimal,# Hello"));
	good(&b, "markdown_to_pdf", "{'source_path':'notes/a.md','output_path':'b.pdf','theme':'technical'}");
	CHECK_STR(content_of(&b, "b.pdf"), STR("%PDF-1.4,technical,# Hello"));
}

TEST(speech_is_made_and_read_by_programs)
{
	struct bench b;

	open_with(&b,
		  "media: {speak: {command: " SH("tr a-z A-Z <{in} >{out}") ", format: ogg}, transcribe: {command: " SH(
			  "tr A-Z a-z <{in}") "}}\n");
	good(&b, "text_to_speech", "{'text':'hello','output_path':'h.ogg'}");
	CHECK_STR(jv_get_str(good(&b, "speech_to_text", "{'file_path':'h.ogg'}"), "text"), STR("hello"));
	CHECK(str_starts(jv_get_str(good(&b, "text_to_speech", "{'text':'hello'}"), "path"), STR("audio/speech-")));
}

TEST(a_program_that_fails_is_reported_with_what_it_said)
{
	struct bench b;

	open_with(&b, "media: {pdf: {command: " SH("echo no fonts >&2; exit 3") "}, transcribe: {command: " SH(
			      "true >{out}") "}}\n");
	good(&b, "write_file", "{'path':'a.md','content':'x'}");
	CHECK(str_find(refused(&b, "markdown_to_pdf", "{'source_path':'a.md'}", ERR_UNAVAILABLE),
		       STR("failed with exit code 3: no fonts"), 0) != SIZE_MAX);
	refused(&b, "speech_to_text", "{'file_path':'a.md'}", ERR_UNAVAILABLE);
}

TEST(a_program_that_takes_too_long_is_killed)
{
	struct bench b;

	open_with(&b,
		  "media: {pdf: {command: " SH("sleep 600") ", timeout_seconds: 1}, transcribe: {command: " SH(
			  "sleep 600") ", timeout_seconds: 1}, speak: {command: " SH("sleep 600") ", timeout_seconds: "
												  "1}}\n");
	good(&b, "write_file", "{'path':'a.md','content':'x'}");
	refused(&b, "markdown_to_pdf", "{'source_path':'a.md'}", ERR_TIMEOUT);
	refused(&b, "speech_to_text", "{'file_path':'a.md'}", ERR_TIMEOUT);
	refused(&b, "text_to_speech", "{'text':'x'}", ERR_TIMEOUT);
}

TEST(a_program_sees_its_input_and_nothing_else_of_the_workspace)
{
	struct bench b;

	open_with(&b, "media: {transcribe: {command: " SH("ls -A; cat /workspace/secret.txt; true") "}}\n");
	good(&b, "write_file", "{'path':'secret.txt','content':'hidden'}");
	good(&b, "write_file", "{'path':'voice.ogg','content':'x'}");
	CHECK_STR(jv_get_str(good(&b, "speech_to_text", "{'file_path':'voice.ogg'}"), "text"), STR("in.ogg"));
}

TEST(a_tool_without_a_program_is_not_offered_and_a_builtin_that_is_off_neither)
{
	struct bench b;

	open_with(&b, "media: {pdf: {command: " SH("true") "}, speak: {command: " SH(
			      "true") "}}\nbuiltins: {md2pdf: {enabled: false}}\n");
	CHECK(toolset_find(b.set, STR("text_to_speech")) != NULL);
	CHECK(toolset_find(b.set, STR("markdown_to_pdf")) == NULL);
	CHECK(toolset_find(b.set, STR("speech_to_text")) == NULL);
}
