/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upload is written once under the first free name, on the condition that the name is still free. Its text is made
 * afterwards, from a copy in a temporary directory, by a program that sees that copy and nothing else of the workspace;
 * what it gives back is bounded and must be text.
 */
#include "home/uploads/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/program.h"
#include "workspace/workspace_parts.h"
#include "workspace/zone.h"

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
		return err_set(err, ERR_CONFLICT, "the file grew while it was read; send it again");
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
	return err_set(err, ERR_EXISTS, "%.*s has %d files named like %.*s", STR_ARG(dir), NAMES_MAX, STR_ARG(name));
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
	const struct jv *all = jv_get(jv_get(workspace_config(ws)->document, "uploads"), "converters");

	for (const struct jv_member *c = jv_first(all); c; c = c->next)
		for (const struct jv_member *m = jv_first(jv_get(c->value, "match")); m; m = m->next)
			if (matches(jv_str_of(m->value), ending_of(name), mime))
				return c->value;
	return NULL;
}

static int push_fd(void *arg, const void *bytes, size_t len, struct err *err)
{
	const char *p = bytes;

	while (len) {
		ssize_t n = write(*(int *)arg, p, len);

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "the copy for the converter cannot be written");
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int copy_out(struct workspace *ws, struct ctx *ctx, struct wpath path, const char *to, struct err *err)
{
	FD_SCOPE int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct sink sink = {.push = push_fd, .arg = &fd};

	if (fd < 0)
		return err_sys(err, errno, "the copy for the converter cannot be made");
	return store_read_stream(workspace_home(ws), ctx, path, STORE_WHOLE, &sink, NULL, err);
}

static struct str replaced(struct arena *arena, struct str text, const char *what, const char *with)
{
	size_t at = str_find(text, str_of(what), 0);

	if (at == SIZE_MAX)
		return text;
	return arena_printf(arena, "%.*s%s%s", STR_ARG(str_first(text, at)), with,
			    arena_cstr(arena, replaced(arena, str_from(text, at + strlen(what)), what, with)));
}

/* {in} and {out} filled in; *ret_writes: the command names {out}, so the program writes the text there. */
static const char *const *command_line(struct arena *arena, const struct jv *command, const char *in, const char *out,
				       bool *ret_writes)
{
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(command) + 1);
	size_t n = 0;

	*ret_writes = false;
	for (const struct jv_member *m = jv_first(command); m; m = m->next) {
		struct str word = jv_str_of(m->value);

		*ret_writes |= str_find(word, STR("{out}"), 0) != SIZE_MAX;
		argv[n++] = arena_cstr(arena, replaced(arena, replaced(arena, word, "{in}", in), "{out}", out));
	}
	return argv;
}

/* The converter may have put anything there: a link or a device is not followed. */
static int read_out(struct arena *arena, const char *path, struct str *ret, struct err *err)
{
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t done = 0;
	char *bytes;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_UNAVAILABLE, "it wrote no file");
	if ((uint64_t)st.st_size > UPLOAD_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE, "it wrote more than %zu bytes", UPLOAD_TEXT_MAX);
	bytes = arena_alloc_raw(arena, (size_t)st.st_size + 1);
	while (done < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + done, (size_t)st.st_size - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	*ret = str_n(bytes, done);
	return 0;
}

static int run_converter(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct wpath path,
			 const char *dir, struct str *ret_text, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str ending = ending_of(path.s);
	const char *in = arena_printf(arena, "%s/in%s%.*s", dir, ending.len ? "." : "", STR_ARG(ending)).ptr;
	const char *out = arena_printf(arena, "%s/out", dir).ptr;
	bool writes;
	struct command_run run = {.argv = command_line(arena, jv_get(converter, "command"), in, out, &writes),
				  .dir = dir,
				  .timeout_ms = 1000 * jv_get_int(converter, "timeout_seconds", 60),
				  .output_max = UPLOAD_TEXT_MAX};
	struct command_ran ran;
	int r = copy_out(ws, ctx, path, in, err);

	if (r == 0)
		r = command_run(ctx, &run, &ran, err);
	if (r == 0 && writes)
		r = read_out(arena, out, &ran.output, err);
	if (r == 0 &&
	    (!str_trim(ran.output).len || !utf8_valid(ran.output) || memchr(ran.output.ptr, 0, ran.output.len)))
		r = err_set(err, ERR_UNAVAILABLE, "%s gave no text", run.argv[0]);
	if (r == 0)
		*ret_text = ran.output;
	return r;
}

/* Never fails but for the end of the call: what went wrong is a note. */
static int make_text(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct wpath path,
		     struct jv *value, struct err *err)
{
	struct str name = wpath_name(path), ending = ending_of(name), output = jv_get_str(converter, "output");
	struct str stem = ending.len ? str_first(name, name.len - ending.len - 1) : name, dir, text = STR_NONE;
	struct jv *sibling = jv_object(ctx->arena);
	struct source source = {0};
	struct wpath to;
	int r = workspace_temp_new(ctx->arena, STR("temp:stead-upload-"), &dir, err);

	if (r == 0) {
		r = run_converter(ws, ctx, converter, path, dir.ptr, &text, err);
		workspace_temp_end(dir.ptr);
	}
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
			   arena_printf(ctx->arena, "no text was made of it: %.*s; the file is kept",
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
	return err_set(err, ERR_TOO_LARGE, "the file has %llu bytes; at most %llu are taken (uploads.max_size)",
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
		jv_set_str(ctx->arena, f, "modified", clock_format_utc(ctx->arena, page.entries[i].stat.mtime_ns));
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
