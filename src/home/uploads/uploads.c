/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upload is written once under the first free name, on the condition that the name is still free. Its text is made
 * afterwards by a converter (convert.c).
 */
#include "home/uploads/uploads.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/uploads/convert.h"
#include "text/zone.h"
#include "workspace/workspace_parts.h"

#define DIR        "uploads"
#define STEM_MAX   ((size_t)100)
#define ENDING_MAX ((size_t)16)
#define NAMES_MAX  1000
#define LIST_MOST  10000

/* --- names --- */

static const struct {
	const char *ending, *mime;
} types[] = {
	{"txt", "text/plain"},
	{"md", "text/markdown"},
	{"csv", "text/csv"},
	{"html", "text/html"},
	{"htm", "text/html"},
	{"json", "application/json"},
	{"xml", "application/xml"},
	{"pdf", "application/pdf"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"odt", "application/vnd.oasis.opendocument.text"},
	{"doc", "application/msword"},
	{"rtf", "application/rtf"},
	{"epub", "application/epub+zip"},
	{"zip", "application/zip"},
	{"gz", "application/gzip"},
	{"png", "image/png"},
	{"jpg", "image/jpeg"},
	{"jpeg", "image/jpeg"},
	{"gif", "image/gif"},
	{"webp", "image/webp"},
	{"tiff", "image/tiff"},
	{"tif", "image/tiff"},
	{"svg", "image/svg+xml"},
	{"mp3", "audio/mpeg"},
	{"ogg", "audio/ogg"},
	{"oga", "audio/ogg"},
	{"wav", "audio/wav"},
	{"m4a", "audio/mp4"},
	{"flac", "audio/flac"},
	{"mp4", "video/mp4"},
	{"webm", "video/webm"},
	{"mov", "video/quicktime"},
};
#define TYPES (sizeof types / sizeof types[0])

/* The part after the last dot; empty when there is none, or nothing before it. */
static struct str ending_of(struct str name)
{
	size_t dot = str_rfind_char(name, '.');

	return dot > 0 && dot < name.len ? str_from(name, dot + 1) : STR_NONE;
}

/* By the ending; "application/octet-stream" when nothing is known. */
static struct str upload_mime(struct str name)
{
	struct str ending = ending_of(name);

	for (size_t i = 0; i < TYPES; i++)
		if (str_eq_nocase(ending, str_of(types[i].ending)))
			return str_of(types[i].mime);
	return STR("application/octet-stream");
}

static struct str ending_for(struct str mime)
{
	for (size_t i = 0; i < TYPES; i++)
		if (str_eq_nocase(mime, str_of(types[i].mime)))
			return str_of(types[i].ending);
	return STR_NONE;
}

static char kept_char(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + 32);
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
		return c;
	return c == ' ' || c == '.' ? '_' : 0;
}

struct str upload_safe_name(struct arena *arena, struct str name, struct str mime)
{
	struct str ending = ending_of(name), stem = name;
	struct buf out;
	size_t letters = 0;

	if (ending.len && ending.len <= ENDING_MAX && !memchr(ending.ptr, '/', ending.len))
		stem = str_first(name, name.len - ending.len - 1);
	else
		ending = STR_NONE;
	buf_init(&out, arena, STEM_MAX + ENDING_MAX + 2);
	for (size_t i = 0; i < stem.len && out.len < STEM_MAX; i++) {
		char c = kept_char(stem.ptr[i]);

		if (c)
			buf_char(&out, c);
		letters += c && c != '_' && c != '-';
	}
	if (!letters) {
		buf_clear(&out);
		buf_lit(&out, "upload");
	}
	if (!ending.len)
		ending = ending_for(mime);
	if (ending.len)
		buf_char(&out, '.');
	for (size_t i = 0; i < ending.len; i++) {
		char c = kept_char(ending.ptr[i]);

		if (c && c != '_' && c != '-')
			buf_char(&out, c);
	}
	if (out.len && out.ptr[out.len - 1] == '.')
		out.len--;
	return buf_str(&out);
}

/* "report.pdf", "report(1).pdf", … */
static struct str nth_name(struct arena *arena, struct str name, unsigned n)
{
	struct str ending = ending_of(name);
	struct str stem = ending.len ? str_first(name, name.len - ending.len - 1) : name;

	if (!n)
		return name;
	return arena_printf(arena, "%.*s(%u)%s%.*s", STR_ARG(stem), n, ending.len ? "." : "", STR_ARG(ending));
}

int upload_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	struct wpath relative;
	int r = wpath_parse_lenient(arena, text, &relative, err);

	if (r == 0 && wpath_within(relative, (struct wpath){STR(DIR)}))
		relative = wpath_relative(relative, (struct wpath){STR(DIR)});
	if (r)
		return r;
	return wpath_join(arena, (struct wpath){STR(DIR)}, relative, ret, err);
}

/* --- writing --- */

/* A source that ends with an error when it gives more than was said. */
struct bounded {
	const struct source *inner;
	uint64_t left, size;
};

static int bounded_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct bounded *b = arg;
	int r = b->inner->pull(b->inner->arg, buf, cap, ret_len, err);

	if (r == 0 && *ret_len > b->left)
		return err_set(err, ERR_CONFLICT, "the file grew while it was being read; send it again");
	if (r == 0)
		b->left -= *ret_len;
	return r;
}

static int bounded_rewind(void *arg, struct err *err)
{
	struct bounded *b = arg;

	b->left = b->size;
	return b->inner->rewind(b->inner->arg, err);
}

static int write_first_free(struct workspace *ws, struct ctx *ctx, struct str dir, struct str name,
			    const struct source *source, struct wpath *ret_path, struct err *err)
{
	for (unsigned n = 0; n <= NAMES_MAX; n++) {
		struct wpath path = {
			arena_printf(ctx->arena, "%.*s/%.*s", STR_ARG(dir), STR_ARG(nth_name(ctx->arena, name, n)))};
		struct store_cond absent = {.kind = STORE_ABSENT};
		int r = store_stat(workspace_home(ws), ctx, path, NULL, err);

		if (r == 0)
			continue;
		if (r == -ERR_NOT_FOUND)
			r = n && source->rewind ? source->rewind(source->arg, err) : 0;
		if (r == 0)
			r = store_write_stream(workspace_home(ws), ctx, path, source, absent, NULL, err);
		if (r == 0)
			*ret_path = path;
		if (r != -ERR_EXISTS)
			return r;
	}
	return err_set(err, ERR_EXISTS, "%.*s has %d files with names like %.*s; give this one another name",
		       STR_ARG(dir), NAMES_MAX, STR_ARG(name));
}

/* --- text of it --- */

static bool matches(struct str rule, struct str ending, struct str mime)
{
	if (str_starts(rule, STR(".")))
		return str_eq_nocase(str_from(rule, 1), ending);
	if (str_ends(rule, STR("/*")))
		return mime.len >= rule.len - 1 &&
		       str_eq_nocase(str_first(mime, rule.len - 1), str_first(rule, rule.len - 1));
	return str_eq_nocase(rule, mime);
}

static const struct jv *converter_for(struct workspace *ws, struct str name, struct str mime)
{
	const struct config *config = workspace_config(ws);
	const struct jv *all = jv_get(jv_get(config->document, "uploads"), "converters");

	if (!config_has_processor(config, str_starts(mime, STR("audio/")) ? "whisper" : "docling", true))
		return NULL;
	for (const struct jv_member *c = jv_first(all); c; c = c->next)
		for (const struct jv_member *m = jv_first(jv_get(c->value, "match")); m; m = m->next)
			if (matches(jv_str_of(m->value), ending_of(name), mime))
				return c->value;
	return NULL;
}

/* Never fails but for the end of the call: what went wrong is a note. */
static int make_text(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct wpath path,
		     struct jv *value, struct err *err)
{
	struct str name = wpath_name(path), ending = ending_of(name), output = jv_get_str(converter, "output");
	struct str stem = ending.len ? str_first(name, name.len - ending.len - 1) : name, text = STR_NONE;
	struct jv *sibling = jv_object(ctx->arena);
	struct source source = {0};
	struct wpath to;
	int r = upload_convert(ws, ctx, converter, path, ending, &text, err);

	source.bytes = text;
	if (r == 0)
		r = write_first_free(
			ws, ctx, wpath_parent(path).s,
			arena_printf(ctx->arena, "%.*s.%s", STR_ARG(stem), str_is(output, "txt") ? "txt" : "md"),
			&source, &to, err);
	if (r == -ERR_CANCELLED)
		return r;
	if (r) {
		jv_set_str(ctx->arena, value, "note",
			   arena_printf(ctx->arena, "it could not be converted to text: %.*s; the file is kept",
					STR_ARG(err_text(ctx->arena, err))));
		return 0;
	}
	jv_set_str(ctx->arena, sibling, "path", to.s);
	jv_set_int(ctx->arena, sibling, "size", (int64_t)text.len);
	jv_set(ctx->arena, value, "text", sibling);
	return 0;
}

/* --- the whole --- */

/* A name as one line that can be part of a message. */
static struct str shown_name(struct arena *arena, struct str name)
{
	struct buf out;

	buf_init(&out, arena, 256);
	for (size_t i = 0; i < name.len && out.len < 200; i++)
		buf_char(&out, (unsigned char)name.ptr[i] < 32 || name.ptr[i] == 127 ? ' ' : name.ptr[i]);
	return utf8_valid(name) ? utf8_first(buf_str(&out), 200) : STR("(no text)");
}

static struct str receipt(struct arena *arena, const struct jv *v)
{
	struct buf text;
	struct str sibling = jv_get_str(jv_get(v, "text"), "path"), note = jv_get_str(v, "note");

	buf_init(&text, arena, 4 * KIB);
	buf_printf(&text, "[File received: %.*s (%lld bytes, %.*s)]\n[Saved to: %.*s]",
		   STR_ARG(jv_get_str(v, "original_name")), (long long)jv_get_int(v, "size", 0),
		   STR_ARG(jv_get_str(v, "mime")), STR_ARG(jv_get_str(v, "path")));
	if (sibling.len)
		buf_printf(&text, "\n[Its text: %.*s]", STR_ARG(sibling));
	if (note.len)
		buf_printf(&text, "\n[%.*s]", STR_ARG(note));
	return buf_str(&text);
}

static int check_size(struct workspace *ws, const struct upload *upload, struct err *err)
{
	uint64_t max;

	if (!config_size(jv_get(jv_get(workspace_config(ws)->document, "uploads"), "max_size"), (uint64_t)50 * MIB,
			 &max))
		max = 0; /* larger than any store */
	if (!max || upload->size <= max)
		return 0;
	return err_set(err, ERR_TOO_LARGE, "the file has %llu bytes; at most %llu are accepted (uploads.max_size)",
		       (unsigned long long)upload->size, (unsigned long long)max);
}

int upload_save(struct workspace *ws, struct ctx *ctx, const struct upload *upload, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str day = zone_date(arena, workspace_config(ws)->timezone, clock_real_ns());
	struct str mime = upload->mime.len && upload->mime.len < 128 && utf8_valid(upload->mime)
				  ? shown_name(arena, upload->mime)
				  : upload_mime(upload->name);
	struct str name = upload_safe_name(arena, upload->name, mime);
	struct bounded bounded = {&upload->source, upload->size, upload->size};
	struct source source = {.pull = bounded_pull, .rewind = bounded_rewind, .arg = &bounded};
	struct jv *v = jv_object(arena);
	const struct jv *converter;
	struct wpath path;
	int r = check_size(ws, upload, err);

	if (r == 0)
		r = write_first_free(ws, ctx, arena_printf(arena, DIR "/%.*s", STR_ARG(day)), name,
				     upload->source.pull ? &source : &upload->source, &path, err);
	if (r)
		return r;
	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "name", wpath_name(path));
	jv_set_str(arena, v, "original_name", shown_name(arena, upload->name));
	jv_set_int(arena, v, "size", (int64_t)upload->size);
	jv_set_str(arena, v, "mime", mime);
	converter = converter_for(ws, name, mime);
	if (converter)
		r = make_text(ws, ctx, converter, path, v, err);
	jv_set_str(arena, v, "receipt", receipt(arena, v));
	*ret = v;
	return r;
}

/* --- the list --- */

static int add_day(struct workspace *ws, struct ctx *ctx, struct wpath dir, size_t limit, struct jv *files,
		   bool *ret_more, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = LIST_MOST};
	struct store_page page;
	int r = store_list(workspace_home(ws), ctx, dir, &req, &page, err);

	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct jv *f = jv_object(ctx->arena);

		if (jv_count(files) >= limit) {
			*ret_more = true;
			break;
		}
		jv_set_str(ctx->arena, f, "path", page.entries[i].path.s);
		jv_set_int(ctx->arena, f, "size", (int64_t)page.entries[i].stat.size);
		jv_set_str(ctx->arena, f, "modified", workspace_time(ws, ctx->arena, page.entries[i].stat.mtime_ns));
		jv_push(ctx->arena, files, f);
	}
	return r;
}

int upload_list(struct workspace *ws, struct ctx *ctx, struct str day, size_t limit, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = LIST_MOST};
	struct jv *v = jv_object(ctx->arena), *files = jv_array(ctx->arena);
	struct store_page page = {0};
	struct wpath dir;
	bool more = false;
	int r = 0;

	if (day.len) {
		r = upload_path(ctx->arena, day, &dir, err);
		if (r == 0)
			r = add_day(ws, ctx, dir, limit, files, &more, err);
	} else {
		r = store_list(workspace_home(ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);
		for (size_t i = page.count; r == 0 && i-- > 0;)
			if (page.entries[i].stat.kind == STORE_DIR)
				r = add_day(ws, ctx, page.entries[i].path, limit, files, &more, err);
	}
	if (r == -ERR_NOT_FOUND)
		r = 0;
	jv_set(ctx->arena, v, "files", files);
	jv_set_bool(ctx->arena, v, "more", more);
	*ret = v;
	return r;
}
