/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of lines of a file. Small files (nearly all) are read in one operation, and when the whole is wanted and no
 * line is too long, the bytes that came from the store are the answer: nothing is copied. Larger ones run through a
 * sink that keeps only the window and counts lines; after SCAN_MOST bytes counting ends and the total is "at least",
 * so that a file of any size costs bounded work. The alternative, an index of line starts per file, would have to be
 * kept in step with every writer for the sake of a few huge files that are better read by byte offset.
 */
#include "home/files/files.h"

#define WHOLE_MOST (1 * MIB)
#define SCAN_MOST  (256 * MIB)
#define SNIFF      ((size_t)8192)

struct pager {
	const struct page_req *req;
	struct page *page;
	struct buf buf;
	uint64_t line;     /* number of the line that is being read, 0-based */
	uint64_t line_pos; /* bytes of it so far */
	uint64_t pos;      /* bytes seen */
	size_t line_start; /* where its text begins in buf */
	bool is_in, full;  /* the line is in the window; the window is closed */
	bool has_nul, gave_up;
};

static void start_line(struct pager *p)
{
	const struct page_req *req = p->req;

	p->is_in = !p->full && p->line >= req->offset && p->line - req->offset < req->limit;
	if (p->is_in && p->buf.len >= req->bytes_max && p->page->lines) {
		p->full = true;
		p->is_in = false;
	}
	if (!p->is_in)
		return;
	if (req->number) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		buf_printf(&p->buf, req->number, (unsigned long long)(p->line + 1));
#pragma GCC diagnostic pop
	}
	p->line_start = p->buf.len;
}

/* Ends the line, with a note where it was cut. `eol` is its line end, kept after the note. */
static void end_line(struct pager *p, uint64_t text_len, struct str eol)
{
	size_t shown;
	uint64_t left;

	if (!p->is_in)
		return;
	p->page->lines++;
	if (text_len > p->req->line_cut) {
		struct str text =
			utf8_first(str_n(p->buf.ptr + p->line_start, p->buf.len - p->line_start), p->req->line_cut);

		shown = text.len;
		left = text_len - shown;
		p->buf.len = p->line_start + shown;
		if (p->page->cut_count < PAGE_CUTS_MAX)
			p->page->cuts[p->page->cut_count] =
				(struct page_cut){p->line + 1, p->pos - eol.len - left, left};
		p->page->cut_count++;
		if (!p->req->plain_cuts)
			buf_printf(&p->buf, " [line cut: %llu more bytes from byte_offset %llu]",
				   (unsigned long long)left, (unsigned long long)(p->pos - eol.len - left));
	}
	buf_add(&p->buf, eol);
}

static void feed(struct pager *p, struct str bytes)
{
	/* four more bytes than shown, so that the cut can fall between code points */
	size_t keep = p->req->line_cut > SIZE_MAX - 4 ? SIZE_MAX : p->req->line_cut + 4;

	while (bytes.len) {
		size_t n = str_find_char(bytes, '\n');
		bool ends = n < bytes.len;

		if (p->line_pos == 0)
			start_line(p);
		if (p->is_in && p->line_pos < keep) {
			struct str part = str_first(bytes, n);

			p->has_nul |= str_find_char(part, '\0') < part.len;
			buf_add(&p->buf, str_first(part, keep - p->line_pos));
		}
		p->line_pos += n;
		p->pos += n + ends;
		if (ends) {
			end_line(p, p->line_pos, STR("\n"));
			p->line++;
			p->line_pos = 0;
		}
		bytes = str_from(bytes, n + ends);
	}
}

static void finish(struct pager *p)
{
	if (p->line_pos) {
		end_line(p, p->line_pos, STR(""));
		p->line++;
	}
	p->page->total_lines = p->line;
	p->page->total_known = !p->gave_up;
	p->page->content = buf_str(&p->buf);
	p->page->binary = p->has_nul || !utf8_valid(p->page->content);
	if (p->page->binary)
		p->page->content = STR("");
}

/* True when the bytes are the answer as they stand. Counts the lines on the way. */
static bool fits_whole(const struct page_req *req, struct str bytes, struct page *page)
{
	const char *at = bytes.ptr, *end = at + bytes.len;

	if (req->offset || req->number || bytes.len > req->bytes_max)
		return false;
	page->lines = 0;
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);

		if (len > req->line_cut || page->lines == req->limit)
			return false;
		page->lines++;
		at = nl ? nl + 1 : end;
	}
	page->total_lines = page->lines;
	page->total_known = true;
	page->content = bytes;
	return true;
}

static int pager_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct pager *p = arg;

	if (p->pos == 0)
		p->has_nul = memchr(bytes, '\0', len < SNIFF ? len : SNIFF) != NULL;
	feed(p, str_n(bytes, len));
	if (p->pos < SCAN_MOST || !(p->full || p->line >= p->req->offset + p->req->limit))
		return p->pos < 4 * SCAN_MOST ? 0 : err_set(err, ERR_TOO_LARGE, "the line is too far into the file");
	p->gave_up = true;
	return err_set(err, ERR_TOO_LARGE, "counted enough");
}

static int read_streamed(struct ctx *ctx, struct store *store, struct wpath path, struct pager *p, struct err *err)
{
	struct sink sink = {.push = pager_push, .arg = p};
	struct store_stat before;
	int r = store_stat(store, ctx, path, &before, err);

	if (r)
		return r;
	r = store_read_stream(store, ctx, path, STORE_WHOLE, &sink, &p->page->stat, err);
	if (r && p->gave_up) {
		p->page->stat = before; /* never newer than the bytes, so a write on its condition is safe */
		r = 0;
	}
	if (r && err->kind == ERR_TOO_LARGE)
		return err_set(err, ERR_TOO_LARGE,
			       "read %.*s: line %llu is more than %zu MiB into the file; read it by byte_offset",
			       STR_ARG(path.s), (unsigned long long)p->req->offset, 4 * SCAN_MOST / MIB);
	return r;
}

int page_read(struct ctx *ctx, struct store *store, struct wpath path, const struct page_req *req, struct page *ret,
	      struct err *err)
{
	struct pager p = {.req = req, .page = ret};
	struct page_req bounded = *req;
	struct str bytes;
	int r;

	*ret = (struct page){0};
	if (bounded.limit > UINT64_MAX - bounded.offset)
		bounded.limit = UINT64_MAX - bounded.offset;
	p.req = &bounded;
	buf_init(&p.buf, ctx->arena, 8 * MIB);
	r = store_read(store, ctx, path, STORE_WHOLE, WHOLE_MOST, &bytes, &ret->stat, err);
	if (r == 0 && fits_whole(&bounded, bytes, ret)) {
		ret->binary = bytes_are_binary(bytes);
		return 0;
	}
	if (r && err->kind != ERR_TOO_LARGE)
		return r;
	*ret = (struct page){.stat = ret->stat};
	if (r == 0) {
		p.has_nul = memchr(bytes.ptr, '\0', bytes.len < SNIFF ? bytes.len : SNIFF) != NULL;
		feed(&p, bytes);
	} else {
		r = read_streamed(ctx, store, path, &p, err);
	}
	if (r == 0)
		finish(&p);
	return r;
}
