/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "@path" in a user's message: the file is read when the message arrives and becomes a part of it, so that the model
 * need not ask for it, and so that the conversation has the text as it was then. Only what a file tool could read is
 * read. A name that no file has stays as it is, since "@" has other uses.
 */
#include "agent/agent_internal.h"
#include "base/base64.h"
#include "base/limits.h"
#include "tool/prompt_section.h"

#define LINES_MAX 1000
#define FILES_MAX 20
#define TEXT_MAX  (1 * MIB)
#define IMAGE_MAX (5 * MIB)

static const struct {
	const char *ending, *type;
} images[] = {{".png", "image/png"},
	      {".jpg", "image/jpeg"},
	      {".jpeg", "image/jpeg"},
	      {".gif", "image/gif"},
	      {".webp", "image/webp"}};

static const char *image_type(struct str path)
{
	for (size_t i = 0; i < COUNT(images); i++) {
		size_t len = strlen(images[i].ending);

		if (path.len > len && str_eq_nocase(str_from(path, path.len - len), str_of(images[i].ending)))
			return images[i].type;
	}
	return NULL;
}

static struct str first_lines(struct str text, size_t lines)
{
	size_t i = 0;

	for (; i < text.len && lines; i++)
		lines -= text.ptr[i] == '\n';
	return str_first(text, i);
}

static struct jv *text_block(struct arena *arena, struct str path, struct str bytes, uint64_t size)
{
	struct jv *block = jv_object(arena);
	struct str shown = first_lines(bytes, LINES_MAX);
	bool is_binary = bytes.len && memchr(bytes.ptr, 0, bytes.len); /* no text has a NUL */
	struct buf text;

	buf_init(&text, arena, 8 * MIB);
	buf_lit(&text, "<attached_file path=\"");
	prompt_escape_line(&text, path, PATH_LEN_MAX);
	buf_lit(&text, "\">\n");
	if (is_binary)
		buf_printf(&text, "[a binary file of %llu bytes, whose content is not shown]",
			   (unsigned long long)size);
	else
		prompt_escape(&text, shown);
	if (shown.len < bytes.len && !is_binary)
		buf_printf(&text, "\n[the file continues after line %d]", LINES_MAX);
	buf_lit(&text, "\n</attached_file>");
	jv_set_str(arena, block, "type", STR("text"));
	jv_set_str(arena, block, "text", buf_str(&text));
	return block;
}

static struct jv *image_block(struct arena *arena, const char *type, struct str bytes)
{
	struct jv *block = jv_object(arena), *source = jv_object(arena);

	jv_set_str(arena, source, "type", STR("base64"));
	jv_set_str(arena, source, "media_type", str_of(type));
	jv_set_str(arena, source, "data", base64_encode(arena, bytes));
	jv_set_str(arena, block, "type", STR("image"));
	jv_set(arena, block, "source", source);
	return block;
}

/* NULL: there is no such file, or it cannot be shown. */
static struct jv *attach(struct run *run, struct str name)
{
	struct arena *arena = run->ctx->arena;
	const char *type = image_type(name);
	struct store_stat stat;
	struct wpath path;
	struct str bytes;
	struct err ignored;

	if (wpath_parse_lenient(arena, name, &path, &ignored) != 0 || wpath_is_root(path) ||
	    store_stat(workspace_files(run->agent->ws), run->ctx, path, &stat, &ignored) != 0 ||
	    stat.kind != STORE_FILE ||
	    store_read(workspace_files(run->agent->ws), run->ctx, path,
		       (struct store_range){.offset = 0, .length = type ? IMAGE_MAX + 1 : TEXT_MAX}, IMAGE_MAX + 1,
		       &bytes, NULL, &ignored) != 0)
		return NULL;
	if (type)
		return bytes.len <= IMAGE_MAX ? image_block(arena, type, bytes) : NULL;
	return text_block(arena, path.s, bytes, stat.size);
}

/* A name after '@': up to a blank, without what ends a sentence; it has one of "/.~". */
static struct str name_at(struct str text)
{
	size_t len = 0;
	bool is_path = false;

	while (len < text.len && !strchr(" \t\r\n\"'`()<>", text.ptr[len]))
		is_path |= strchr("/.~", text.ptr[len++]) != NULL;
	while (len && strchr(".,;:!?", text.ptr[len - 1]))
		len--;
	return is_path ? str_first(text, len) : STR_NONE;
}

struct jv *attach_files(struct run *run, struct str text)
{
	struct arena *arena = run->ctx->arena;
	struct jv *content = jv_array(arena), *said = jv_object(arena);
	size_t count = 0;

	jv_set_str(arena, said, "type", STR("text"));
	jv_set_str(arena, said, "text", text);
	jv_push(arena, content, said);
	for (size_t i = 0; i < text.len && count < FILES_MAX; i++) {
		struct str name = STR_NONE;
		struct jv *block;

		if (text.ptr[i] == '@' && (i == 0 || strchr(" \t\r\n(\"'`", text.ptr[i - 1])))
			name = name_at(str_from(text, i + 1));
		block = name.len ? attach(run, name) : NULL;
		if (block) {
			jv_push(arena, content, block);
			count++;
		}
	}
	return count ? content : NULL;
}
