/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the files of a prompt. A file is read when its version is another one than the last time; what is kept of it
 * is what it gives to the prompt (its escaped text, or lines of a list), so a turn in which one file has changed costs
 * that file.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

/* Of the end of a ledger: more than the usual budget has room for. */
#define LEDGER_READ (256 * KIB)
/* A change within the clock tick of the one before may leave the version as it was: what was read that early is read
   once more when something happens to it. */
#define YOUNG_NS INT64_C(50000000)

/* Without blank lines at both ends, and with one newline after it; all blank: nothing. */
static void tidy(struct buf *b)
{
	struct str text = str_trim(buf_str(b));

	if (text.len)
		memmove(b->ptr, text.ptr, text.len);
	b->len = text.len;
	if (b->len)
		buf_char(b, '\n');
}

static int render(const struct prompt_section *s, struct prompt_read *read, struct buf *text, struct err *err)
{
	int r = 0;

	if (!prompt_is_list(s) && read->bytes.len && memchr(read->bytes.ptr, 0, read->bytes.len))
		return err_set(err, ERR_INVALID, "it is not text");
	if (s->read)
		r = s->read(read, text, err);
	else
		prompt_escape(text, prompt_without_comments(read->ctx->arena, read->bytes));
	if (!prompt_is_list(s))
		tidy(text);
	return r;
}

static void set(char **text, struct str to)
{
	free(*text);
	*text = to.ptr ? xstrndup(to) : NULL;
}

/* The end of a file that was cut anywhere: from a whole line on, or of one endless line from a whole character on. */
static struct str from_line(struct str bytes)
{
	size_t end = str_find_char(bytes, '\n'), inside = 0;

	if (end + 1 < bytes.len)
		return str_from(bytes, end + 1);
	while (inside < 3 && inside < bytes.len && ((unsigned char)bytes.ptr[inside] & 0xc0) == 0x80)
		inside++;
	return str_from(bytes, inside);
}

static int read_file(struct prompt_file *f, const struct prompt_section *s, struct prompt_read *read, struct err *err)
{
	struct store_range range = {0, PROMPT_FILE_MAX};
	int64_t now = clock_real_ns();
	struct store_stat stat;
	struct err problem;
	struct buf text;
	int r;

	if (s->form == PROMPT_LEDGER && f->bytes > LEDGER_READ)
		range = (struct store_range){f->bytes - LEDGER_READ, LEDGER_READ};
	read->path = str_of(f->path);
	r = store_read(workspace_home(read->ws), read->ctx, (struct wpath){read->path}, range, PROMPT_FILE_MAX,
		       &read->bytes, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	buf_init(&text, NULL, PROMPT_FILE_MAX * 6);
	if (r) {
		err_set(&problem, ERR_NOT_FOUND, "it was removed while it was read");
	} else {
		if (range.offset)
			read->bytes = from_line(read->bytes);
		r = render(s, read, &text, &problem);
		f->bytes = stat.size;
		f->is_young = stat.mtime_ns > now - YOUNG_NS;
		set(&f->version, stat.version);
	}
	free(f->text);
	f->text = text.ptr;
	f->len = r ? 0 : text.len;
	f->shown.room = 0;
	f->cost = prompt_cost_of(s, (struct str){f->text, f->len});
	f->is_read = true;
	f->is_doubted = false;
	set(&f->problem, r ? err_text(read->ctx->arena, &problem) : STR_NONE);
	return 0;
}

static bool has_changed(const struct prompt_files *files, const char *section)
{
	for (size_t i = 0; section && i < files->section_count; i++)
		if (strcmp(files->sections[i].section->name, section) == 0)
			return files->sections[i].changed;
	return false;
}

int prompt_read_files(struct prompt_files *files, struct workspace *ws, struct ctx *ctx, uint64_t *ret_count,
		      struct err *err)
{
	struct prompt_read read = {.ws = ws, .ctx = ctx};
	uint64_t count = 0;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->section_count; i++) {
		struct prompt_section_state *s = &files->sections[i];
		bool again = has_changed(files, s->section->reads_also);

		read.shared = NULL;
		for (; r == 0 && n < files->count && files->at[n]->section == i; n++) {
			struct prompt_file *f = files->at[n];

			if (f->is_given || (f->is_read && !f->is_doubted && !again))
				continue;
			r = read_file(f, s->section, &read, err);
			s->changed = true;
			count++;
		}
	}
	for (size_t i = 0; r == 0 && i < files->section_count; i++)
		files->sections[i].changed = false;
	*ret_count = count;
	return r;
}
