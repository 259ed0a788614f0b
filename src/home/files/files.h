/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file tools and the dialects share: argument helpers, the line pager, the edit engine, diffs, the search for
 * the nearest text, and the native handlers themselves (a dialect calls them with translated arguments).
 */
#ifndef STEAD_HOME_FILES_FILES_H
#define STEAD_HOME_FILES_FILES_H

#include "base/base64.h"
#include "text/diff.h"
#include "tool/call.h"

/* Refusals (files_common.c). */
/* After ERR_CONFLICT: tells the version that is there now. */
void explain_conflict(struct call *call, struct wpath path, struct outcome *ret);
/* "It begins with:" and up to five lines of the file. */
struct str first_lines(struct call *call, struct store *store, struct wpath path);

/* True when files that .gitignore ignores, and .git, are left out: in a directory of the person's own, unless `all` is
   set. */
bool files_use_ignore(struct call *call, const struct jv *args);

/* The pager (pager.c): a window of lines of a file of any size, in bounded memory and bounded work. */
struct page_req {
	uint64_t offset, limit; /* lines */
	size_t bytes_max;       /* the window ends at the line that reaches this */
	size_t line_cut;        /* bytes of a line that are given */
	const char *number;     /* printf format of one line number before each line ("%6llu\t"); NULL: none */
	bool plain_cuts;        /* no note where a line was cut */
};

struct page_cut {
	uint64_t line; /* 1-based */
	uint64_t byte_offset, left;
};

#define PAGE_CUTS_MAX 20

struct page {
	struct str content;
	uint64_t lines;       /* in content */
	uint64_t total_lines; /* as far as counted */
	bool total_known;     /* false: the file is so large that counting ended early */
	bool binary;          /* then content is empty */
	struct store_stat stat;
	struct page_cut cuts[PAGE_CUTS_MAX];
	size_t cut_count; /* in all; the first PAGE_CUTS_MAX are kept */
};

int page_read(struct ctx *ctx, struct store *store, struct wpath path, const struct page_req *req, struct page *ret,
	      struct err *err);

/* Text in other encodings (foreign.c): *ret_text is UTF-8 and the name of the encoding is returned, "latin-1" or
   "utf-16". NULL: the bytes are not text. */
const char *foreign_text(struct arena *arena, struct str bytes, struct str *ret_text);
/* The media type by the name of a file, such as "image/png"; NULL: not known. */
const char *mime_of_name(struct str name);

/* The nearest text (nearest.c): lines for the model that show where `bytes` comes closest to `wanted`, with the
   difference and the reason if it is a plain one (white space, line endings, case). Empty when nothing is near. */
struct str nearest_text(struct arena *arena, struct str bytes, struct str wanted);

/* The edit engine (edit.c), on bytes in memory. */
struct edit {
	struct str old_text, new_text;
	bool replace_all;
};

#define EDIT_LINES_MAX 50

struct edit_report {
	uint64_t replaced;              /* in all edits */
	uint64_t lines[EDIT_LINES_MAX]; /* 1-based, where the text was found, in the text as it was then */
	size_t line_count;              /* in lines[] */
	bool crlf;                      /* an edit was matched by CRLF in place of LF */
};

/* Applies all or nothing. On failure `ret_detail` may get lines for the model. */
int edit_apply(struct arena *arena, struct str bytes, const struct edit *edits, size_t count, struct str what,
	       struct str *ret_bytes, struct edit_report *ret_report, struct str *ret_detail, struct err *err);

/* Reads a file, changes its text and writes it; repeated when another writer came between, unless `cond` asks for a
   version. */
struct file_change {
	int (*change)(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err);
	void *arg;
	struct store_cond cond;
	bool dry_run;
	struct str before, after; /* filled in, as is `stat`: the file as it is afterwards */
	struct store_stat stat;
};
int file_change(struct call *call, struct wpath path, struct file_change *change, struct err *err);

/* Text put before line `line` (1-based), with the file's own line ending; line = lines + 1 appends. */
int insert_apply(struct arena *arena, struct str bytes, uint64_t line, struct str text, struct str *ret_bytes,
		 struct err *err);

/* Native handlers. */
int tool_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_read_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_read_files(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_file_info(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_exists(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_write_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_append_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_edit_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_insert_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_delete_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_move_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_copy_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_clear_files(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_glob(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
int tool_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

void render_ls(const struct jv *args, const struct jv *value, struct buf *text);
void render_read_file(const struct jv *args, const struct jv *value, struct buf *text);
void render_read_files(const struct jv *args, const struct jv *value, struct buf *text);
void render_file_info(const struct jv *args, const struct jv *value, struct buf *text);
void render_exists(const struct jv *args, const struct jv *value, struct buf *text);
void render_written(const struct jv *args, const struct jv *value, struct buf *text);
void render_edit(const struct jv *args, const struct jv *value, struct buf *text);
void render_removed(const struct jv *args, const struct jv *value, struct buf *text);
void render_moved(const struct jv *args, const struct jv *value, struct buf *text);
void render_glob(const struct jv *args, const struct jv *value, struct buf *text);
void render_grep(const struct jv *args, const struct jv *value, struct buf *text);

#endif
