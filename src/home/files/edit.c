/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edit engine: replace, insert, and the loop that makes a change of a file's bytes safe. It works on bytes, so line
 * ends, a byte order mark, a missing final newline and everything outside the edit stay as they are.
 *
 * Line ends: a model sees and sends "\n". When the exact text is not found and the file uses CRLF, the text is searched
 * for with CRLF, and the replacement is then written with CRLF as well (docs/decisions/0011). No other difference is
 * tolerated: a match that ignores white space would sometimes edit the wrong place, so a near miss is shown instead of
 * guessed.
 */

#include "home/files/files.h"

/* "\n" as "\r\n"; those that are "\r\n" already stay. */
static struct str to_crlf(struct arena *arena, struct str s)
{
	struct buf buf;

	buf_init(&buf, arena, 2 * s.len + 1);
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '\n' && (i == 0 || s.ptr[i - 1] != '\r'))
			buf_char(&buf, '\r');
		buf_char(&buf, s.ptr[i]);
	}
	return buf.ptr ? buf_str(&buf) : STR("");
}

static struct str to_lf(struct arena *arena, struct str s)
{
	struct buf buf;

	buf_init(&buf, arena, s.len + 1);
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] != '\r' || i + 1 == s.len || s.ptr[i + 1] != '\n')
			buf_char(&buf, s.ptr[i]);
	return buf.ptr ? buf_str(&buf) : STR("");
}

static uint64_t count_hits(struct str bytes, struct str needle)
{
	uint64_t n = 0;

	for (size_t at = str_find(bytes, needle, 0); at != SIZE_MAX; at = str_find(bytes, needle, at + needle.len))
		n++;
	return n;
}

/* The same edit in the file's line ends, when it is found so. */
static uint64_t retry_line_ends(struct arena *arena, struct str bytes, struct edit *edit, bool *ret_crlf)
{
	struct edit other = *edit;
	bool file_crlf = str_find(bytes, STR("\r\n"), 0) != SIZE_MAX;
	uint64_t hits;

	if (str_find_char(edit->old_text, '\n') == edit->old_text.len)
		return 0;
	other.old_text = file_crlf ? to_crlf(arena, edit->old_text) : to_lf(arena, edit->old_text);
	other.new_text = file_crlf ? to_crlf(arena, edit->new_text) : to_lf(arena, edit->new_text);
	hits = count_hits(bytes, other.old_text);
	if (hits) {
		*edit = other;
		*ret_crlf = file_crlf;
	}
	return hits;
}

/* The line (1-based) of each hit, as "4, 19, 77"; at most ten. */
static struct str hit_lines(struct arena *arena, struct str bytes, struct str needle)
{
	struct buf buf;
	uint64_t line = 1;
	size_t from = 0, given = 0;

	buf_init(&buf, arena, 400);
	for (size_t at = str_find(bytes, needle, 0); at != SIZE_MAX; at = str_find(bytes, needle, at + needle.len)) {
		for (; from < at; from++)
			line += bytes.ptr[from] == '\n';
		if (given++ == 10) {
			buf_lit(&buf, ", …");
			break;
		}
		buf_printf(&buf, "%s%llu", given > 1 ? ", " : "", (unsigned long long)line);
	}
	return buf_str(&buf);
}

static int check_edit(const struct edit *edit, struct str what, struct err *err)
{
	if (edit->old_text.len == 0)
		return err_set(err, ERR_INVALID,
			       "edit %.*s: the text to replace is empty; give the existing text, or use insert_file",
			       STR_ARG(what));
	if (str_eq(edit->old_text, edit->new_text))
		return err_set(err, ERR_INVALID,
			       "edit %.*s: the old and the new text are the same; nothing would change", STR_ARG(what));
	return 0;
}

static int not_found(struct arena *arena, struct str bytes, const struct edit *edit, struct str what,
		     struct str *ret_detail, struct err *err)
{
	*ret_detail = nearest_text(arena, bytes, edit->old_text);
	err_set(err, ERR_NOT_FOUND,
		"edit %.*s: the text to replace does not occur; copy it exactly from the file, with its white space",
		STR_ARG(what));
	return err_detail(err, DETAIL_TEXT_ABSENT);
}

static bool is_ascii(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.ptr[i] >= 0x80)
			return false;
	}
	return true;
}

/* A file in Latin-1 or UTF-16 is read as UTF-8, but an edit works on its bytes: only ASCII can replace ASCII in
   Latin-1, and nothing in UTF-16. Fails with the way out where an edit cannot work. */
static int check_encoding(struct arena *arena, struct str bytes, const struct edit *edit, struct str what,
			  struct err *err)
{
	bool is_wide = str_starts(bytes, STR("\xff\xfe")) || str_starts(bytes, STR("\xfe\xff"));
	const char *encoding;
	struct str text;

	if (!is_wide && is_ascii(edit->old_text) && is_ascii(edit->new_text))
		return 0;
	if (!bytes_are_binary(bytes) || bytes.len > READ_FOREIGN_MAX)
		return 0;
	encoding = foreign_text(arena, bytes, &text);
	if (!encoding)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "edit %.*s: the file is %s text, which cannot be edited%s; write the whole text with mode "
		       "\"overwrite\" to store it as UTF-8",
		       STR_ARG(what), is_wide ? "UTF-16" : "Latin-1", is_wide ? "" : " beyond ASCII");
}

static void replace(struct arena *arena, struct str bytes, const struct edit *edit, uint64_t hits,
		    struct str *ret_bytes, struct edit_report *report)
{
	size_t size = bytes.len - (size_t)hits * edit->old_text.len + (size_t)hits * edit->new_text.len;
	char *out = arena_alloc_raw(arena, size + 1), *o = out;
	size_t from = 0, line_from = 0;
	uint64_t line = 1;

	for (uint64_t i = 0; i < hits; i++) {
		size_t at = str_find(bytes, edit->old_text, from);

		if (report->line_count < EDIT_LINES_MAX) {
			for (; line_from < at; line_from++)
				line += bytes.ptr[line_from] == '\n';
			report->lines[report->line_count++] = line;
		}
		memcpy(o, bytes.ptr + from, at - from);
		o += at - from;
		if (edit->new_text.len)
			memcpy(o, edit->new_text.ptr, edit->new_text.len);
		o += edit->new_text.len;
		from = at + edit->old_text.len;
	}
	memcpy(o, bytes.ptr + from, bytes.len - from);
	out[size] = '\0';
	report->replaced += hits;
	*ret_bytes = str_n(out, size);
}

static int apply_one(struct arena *arena, struct str *bytes, struct edit edit, struct str what,
		     struct edit_report *report, struct str *ret_detail, struct err *err)
{
	uint64_t hits;
	int r = check_edit(&edit, what, err);

	if (r == 0)
		r = check_encoding(arena, *bytes, &edit, what, err);
	if (r)
		return r;
	hits = count_hits(*bytes, edit.old_text);
	if (hits == 0)
		hits = retry_line_ends(arena, *bytes, &edit, &report->crlf);
	if (hits == 0)
		return not_found(arena, *bytes, &edit, what, ret_detail, err);
	if (hits > 1 && !edit.replace_all) {
		struct str lines = hit_lines(arena, *bytes, edit.old_text);

		err_set(err, ERR_INVALID,
			"edit %.*s: the text to replace occurs %llu times (lines %.*s); add context or set replace_all",
			STR_ARG(what), (unsigned long long)hits, STR_ARG(lines));
		return err_detail(err, DETAIL_TEXT_REPEATED);
	}
	if (edit.new_text.len > edit.old_text.len &&
	    hits > (TOOL_FILE_MAX - bytes->len) / (edit.new_text.len - edit.old_text.len))
		return err_set(err, ERR_TOO_LARGE, "edit %.*s: the file would grow past %zu bytes; split it",
			       STR_ARG(what), TOOL_FILE_MAX);
	replace(arena, *bytes, &edit, hits, bytes, report);
	return 0;
}

int edit_apply(struct arena *arena, struct str bytes, const struct edit *edits, size_t count, struct str what,
	       struct str *ret_bytes, struct edit_report *ret_report, struct str *ret_detail, struct err *err)
{
	*ret_report = (struct edit_report){0};
	for (size_t i = 0; i < count; i++) {
		int r = apply_one(arena, &bytes, edits[i], what, ret_report, ret_detail, err);

		if (r && count > 1)
			return err_prefix(err, "nothing was changed, because edit %zu of %zu failed", i + 1, count);
		if (r)
			return r;
	}
	*ret_bytes = bytes;
	return 0;
}

int file_change(struct call *call, struct wpath path, struct file_change *change, struct err *err)
{
	struct store_change c = {.max = TOOL_FILE_MAX,
				 .cond = change->cond,
				 .dry_run = change->dry_run,
				 .change = change->change,
				 .arg = change->arg};

	return store_change(call->files, call->ctx, path, &c, &change->before, &change->after, &change->stat, err);
}

/* Where line `line` (1-based) begins, or SIZE_MAX when there are fewer lines. */
static size_t line_start(struct str bytes, uint64_t line)
{
	size_t at = 0;

	while (--line) {
		size_t n = str_find_char(str_from(bytes, at), '\n');

		if (at + n >= bytes.len)
			return SIZE_MAX;
		at += n + 1;
	}
	return at;
}

int insert_apply(struct arena *arena, struct str bytes, uint64_t line, struct str text, struct str *ret_bytes,
		 struct err *err)
{
	size_t first_nl = str_find_char(bytes, '\n');
	bool crlf = first_nl > 0 && first_nl < bytes.len && bytes.ptr[first_nl - 1] == '\r';
	bool ends_open = bytes.len && bytes.ptr[bytes.len - 1] != '\n';
	struct str eol = crlf ? STR("\r\n") : STR("\n");
	uint64_t lines = count_lines(bytes);
	bool at_end = line == lines + 1;
	struct buf buf;
	size_t at;

	if (line == 0 || line > lines + 1)
		return err_set(err, ERR_INVALID, "insert_line is %llu; give 1 to %llu (%llu appends)",
			       (unsigned long long)line, (unsigned long long)(lines + 1),
			       (unsigned long long)(lines + 1));
	at = at_end ? bytes.len : line_start(bytes, line);
	if (crlf)
		text = to_crlf(arena, text);
	if (bytes.len + text.len + 4 > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file would grow past %zu bytes", TOOL_FILE_MAX);
	buf_init(&buf, arena, bytes.len + text.len + 4);
	buf_add(&buf, str_first(bytes, at));
	if (at_end && ends_open)
		buf_add(&buf, eol);
	buf_add(&buf, text);
	/* the text becomes lines of its own; a file without a final newline keeps being one */
	if (!str_ends(text, STR("\n")) && !(at_end && ends_open))
		buf_add(&buf, eol);
	buf_add(&buf, str_from(bytes, at));
	*ret_bytes = buf_str(&buf);
	return 0;
}
