/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_info: what a model wants to know before it reads. Counting lines reads at most INFO_READ_MOST bytes, so the
 * answer comes at once for a file of any size; past that the count is "at least".
 */
#include "base/clock.h"
#include "base/utf8.h"
#include "home/files/files.h"

#define INFO_READ_MOST (10 * MIB)

struct survey {
	uint64_t bytes, lines;
	bool ends_open; /* the last byte seen was not a line end */
	bool binary, gave_up;
	char tail[4]; /* an unfinished code point of the chunk before */
	size_t tail_len;
	char head[16];
	size_t head_len;
};

/* UTF-8 over chunk edges: validates all but an unfinished sequence at the end, which waits for the next chunk. */
static bool valid_so_far(struct survey *s, struct str bytes)
{
	char joined[8];
	size_t take = 0, open;

	if (s->tail_len) {
		memcpy(joined, s->tail, s->tail_len);
		while (take < bytes.len && take < 3 && utf8_inside(bytes.ptr[take])) {
			joined[s->tail_len + take] = bytes.ptr[take];
			take++;
		}
		if (!utf8_valid(str_n(joined, s->tail_len + take)))
			return false;
		s->tail_len = 0;
		bytes = str_from(bytes, take);
	}
	open = utf8_unfinished(bytes);
	memcpy(s->tail, bytes.ptr + bytes.len - open, open);
	s->tail_len = open;
	return utf8_valid(str_first(bytes, bytes.len - open));
}

static int survey_push(void *arg, const void *data, size_t len, struct err *err)
{
	struct survey *s = arg;
	struct str bytes = str_n(data, len);
	const char *at = data, *end = at + len;

	if (len == 0)
		return 0;
	if (s->bytes == 0) {
		s->head_len = len < sizeof(s->head) ? len : sizeof(s->head);
		memcpy(s->head, data, s->head_len);
	}
	if (!s->binary)
		s->binary = memchr(data, '\0', len) || !valid_so_far(s, bytes);
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		s->lines++;
		if (++at == end)
			break;
	}
	s->ends_open = end[-1] != '\n';
	s->bytes += len;
	if (s->bytes < INFO_READ_MOST)
		return 0;
	s->gave_up = true;
	return err_set(err, ERR_TOO_LARGE, "seen enough");
}

const char *mime_of_name(struct str name)
{
	static const char *const known[][2] = {{".md", "text/markdown"},      {".txt", "text/plain"},
					       {".json", "application/json"}, {".jsonl", "application/jsonl"},
					       {".yaml", "application/yaml"}, {".yml", "application/yaml"},
					       {".html", "text/html"},        {".css", "text/css"},
					       {".js", "text/javascript"},    {".csv", "text/csv"},
					       {".xml", "application/xml"},   {".svg", "image/svg+xml"},
					       {".pdf", "application/pdf"},   {".png", "image/png"},
					       {".jpg", "image/jpeg"},        {".jpeg", "image/jpeg"},
					       {".gif", "image/gif"},         {".webp", "image/webp"},
					       {".bmp", "image/bmp"},         {".mp3", "audio/mpeg"},
					       {".wav", "audio/wav"},         {".ogg", "audio/ogg"},
					       {".flac", "audio/flac"},       {".mp4", "video/mp4"},
					       {".zip", "application/zip"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (name.len > strlen(known[i][0]) &&
		    str_eq_nocase(str_from(name, name.len - strlen(known[i][0])), str_of(known[i][0])))
			return known[i][1];
	return NULL;
}

/* The bytes decide; the name only chooses among kinds of text, or among binary kinds without a mark of their own. */
static const char *mime_guess(const struct survey *s, struct str name)
{
	struct str head = str_n(s->head, s->head_len);
	const char *named = mime_of_name(name);

	if (str_starts(head, STR("\x89PNG")))
		return "image/png";
	if (str_starts(head, STR("\xFF\xD8\xFF")))
		return "image/jpeg";
	if (str_starts(head, STR("GIF8")))
		return "image/gif";
	if (str_starts(head, STR("%PDF-")))
		return "application/pdf";
	if (str_starts(head, STR("PK\x03\x04")))
		return "application/zip";
	if (str_starts(head, STR("\x1F\x8B")))
		return "application/gzip";
	if (s->binary)
		return named && strncmp(named, "text/", 5) != 0 ? named : "application/octet-stream";
	return named ? named : "text/plain";
}

static const char *advice(const struct survey *s, uint64_t lines)
{
	if (s->binary)
		return "binary: read_file shows images, sounds, Latin-1 and UTF-16; else use encoding base64, by "
		       "byte_offset "
		       "and byte_limit";
	if (s->bytes == 0)
		return "empty: nothing to read";
	if (s->gave_up)
		return "very large: grep for what you need, then read_file by byte_offset around it";
	if (lines > 500)
		return "large: read_file with limit 100 first, or grep";
	return lines < 50 ? "small: read it whole" : "medium: read it whole or in part";
}

static int survey_file(struct call *call, struct wpath path, struct survey *s, struct err *err)
{
	struct sink sink = {.push = survey_push, .arg = s};
	int r = store_read_stream(call->files, call->ctx, path, STORE_WHOLE, &sink, NULL, err);

	if (r && !s->gave_up)
		return r;
	s->binary |= !s->gave_up && s->tail_len > 0;
	return 0;
}

int tool_file_info(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct survey s = {0};
	struct store_stat stat;
	struct wpath path;
	uint64_t lines;
	int r = arg_path(call, args, "path", &path, err);

	if (r == 0)
		r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r == 0 && stat.kind == STORE_FILE)
		r = survey_file(call, path, &s, err);
	if (r)
		return r;
	lines = s.lines + (s.ends_open && !s.gave_up);
	ret->value = value_file(arena, path, &stat);
	jv_set_str(arena, ret->value, "kind", stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	if (stat.kind == STORE_DIR)
		return 0;
	jv_set_str(arena, ret->value, "modified", workspace_time(call->ws, arena, stat.mtime_ns));
	jv_set_bool(arena, ret->value, "is_binary", s.binary);
	if (!s.binary)
		jv_set_int(arena, ret->value, s.gave_up ? "line_count_at_least" : "line_count", (int64_t)lines);
	jv_set_str(arena, ret->value, "mime", str_of(mime_guess(&s, wpath_name(path))));
	jv_set_str(arena, ret->value, "suggested_read", str_of(advice(&s, lines)));
	return 0;
}

void render_file_info(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(value); m; m = m->next) {
		if (m != jv_first(value))
			buf_char(text, '\n');
		buf_add(text, m->key);
		buf_lit(text, ": ");
		if (m->value->type == JV_STR)
			buf_add(text, m->value->u.s);
		else
			jv_write(text, m->value);
	}
}
