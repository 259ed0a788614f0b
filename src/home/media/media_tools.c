/* SPDX-License-Identifier: Apache-2.0 */
/* text_to_speech, speech_to_text and markdown_to_pdf. */
#include "base/clock.h"
#include "home/browser/browser.h"
#include "home/media/media.h"
#include "tool/call.h"
#include "tool/family.h"

static bool can_speak(struct workspace *ws)
{
	return media_is_on(ws, "speak");
}

static bool can_transcribe(struct workspace *ws)
{
	return media_is_on(ws, "transcribe");
}

static bool can_print(struct workspace *ws)
{
	return media_is_on(ws, "pdf") || browser_is_on(ws);
}

static int write_result(struct call *call, struct wpath path, struct str bytes, struct outcome *ret, struct err *err)
{
	struct store_stat stat;
	int r = store_write(call->files, call->ctx, path, bytes, (struct store_cond){0}, &stat, err);

	if (r == 0)
		ret->value = value_file(call->ctx->arena, path, &stat);
	return r;
}

static int tool_text_to_speech(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *section = jv_get(jv_get(workspace_config(call->ws)->document, "media"), "speak");
	struct str format = jv_get_str(section, "format"), bytes;
	struct media_job job = {.key = "speak",
				.in = STR("in.txt"),
				.bytes = jv_get_str(args, "text"),
				.out = format.len ? arena_cstr(arena, format) : "wav",
				.output_max = CHANNEL_FILE_MAX};
	struct wpath path = {
		arena_printf(arena, "audio/speech-%lld.%s", (long long)(clock_real_ns() / NS_PER_MS), job.out)};
	int r = jv_get(args, "output_path") ? arg_file(call, args, "output_path", &path, err) : 0;

	if (r == 0)
		r = media_run(call->ws, call->ctx, &job, &bytes, err);
	return r ? r : write_result(call, path, bytes, ret, err);
}

static int tool_speech_to_text(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str bytes, text;
	struct wpath path;
	int r = arg_file(call, args, "file_path", &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, CHANNEL_FILE_MAX, &bytes, NULL, err);
	if (r == 0)
		r = media_transcribe(call->ws, call->ctx, wpath_name(path), bytes, &text, err);
	if (r)
		return r;
	ret->value = jv_object(call->ctx->arena);
	jv_set_str(call->ctx->arena, ret->value, "text", text);
	return 0;
}

static int tool_markdown_to_pdf(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct media_job job = {.key = "pdf",
				.in = STR("in.md"),
				.out = "pdf",
				.theme = jv_get_str(args, "theme"),
				.output_max = CHANNEL_FILE_MAX};
	struct wpath source, path;
	struct str bytes;
	int r = arg_file(call, args, "source_path", &source, err);

	if (!job.theme.len)
		job.theme = STR("minimal");
	if (r == 0)
		r = store_read(call->files, call->ctx, source, STORE_WHOLE, TOOL_FILE_MAX, &job.bytes, NULL, err);
	if (r)
		return r;
	path.s = str_ends(source.s, STR(".md")) ? str_first(source.s, source.s.len - 3) : source.s;
	path.s = arena_printf(arena, "%.*s.pdf", STR_ARG(path.s));
	if (jv_get(args, "output_path"))
		r = arg_file(call, args, "output_path", &path, err);
	if (r == 0 && media_is_on(call->ws, "pdf"))
		r = media_run(call->ws, call->ctx, &job, &bytes, err);
	else if (r == 0)
		r = media_print(call->ws, call->ctx, source, job.bytes, job.theme, &bytes, err);
	if (r == 0 && !str_starts(bytes, STR("%PDF-")))
		r = err_set(err, ERR_UNAVAILABLE, "the program in media.pdf did not write a PDF to {out}");
	return r ? r : write_result(call, path, bytes, ret, err);
}

static void render_file(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "wrote %.*s (", STR_ARG(jv_get_str(value, "path")));
	buf_size(text, (uint64_t)jv_get_int(value, "size", 0));
	buf_char(text, ')');
}

static void render_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_add(text, jv_get_str(value, "text").len ? jv_get_str(value, "text") : STR("no words were found"));
}

/* clang-format off */
#define FILE_RESULT "path!: of the new file\n" "size! int: in bytes\n" "version!: of its content"

static const struct tool tools[] = {
	{.name = "text_to_speech", .title = "Speak a text", .traits = TOOL_LONG, .call = tool_text_to_speech,
	 .render = render_file, .available = can_speak, .setup = "set media.speak in agent.yaml", .needs = "write_file",
	 .description = "Turns text into a sound file.",
	 .args =
		"text! str>=1: what is said\n"
		"output_path: file to write (default: a new one in audio/)",
	 .result = FILE_RESULT},
	{.name = "speech_to_text", .title = "Transcribe speech", .traits = RO | TOOL_LONG, .call = tool_speech_to_text,
	 .render = render_text, .available = can_transcribe, .setup = "set media.transcribe in agent.yaml", .needs = "read_file",
	 .description = "Transcribes a sound file.",
	 .args = "file_path!: path from the tool root",
	 .result = "text!: what is said"},
	{.name = "markdown_to_pdf", .title = "Markdown to PDF", .traits = TOOL_LONG, .call = tool_markdown_to_pdf,
	 .render = render_file, .available = can_print, .setup = "set media.pdf or browser.enabled in agent.yaml", .needs = "read_file write_file",
	 .description = "Makes a PDF of a Markdown file.",
	 .args =
		"source_path!: the Markdown file\n"
		"output_path: file to write (default: the same name with .pdf)\n"
		"theme minimal|professional|technical: how it looks, where the program of media.pdf knows themes (default minimal)",
	 .result = FILE_RESULT},
	{0},
};
/* clang-format on */

const struct family media_family = {
	.name = "media",
	.about = "Speech and PDF, with programs that agent.yaml names; PDF also with Chromium. Each tool is offered "
		 "if its program is set.",
	.tools = tools,
};
