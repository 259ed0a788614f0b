/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not stdio: grep prints millions of lines, and a 256 KiB buffer filled by memcpy costs a tenth of what fwrite with
 * its lock does; and what happens when the reader goes away must be told from a disk that is full.
 */
#include "command/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"

#define PROGRESS_FIRST_NS 500000000
#define PROGRESS_EVERY_NS 100000000
#define BAR_WIDTH         20

static bool wants_color(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void output_init(struct output *out, int fd)
{
	*out = (struct output){.fd = fd, .to_terminal = isatty(fd) == 1, .color = wants_color(fd)};
	out->data = xmalloc(OUTPUT_BUFFER);
}

static void clear_progress(struct output *out)
{
	if (out->drawn && write(STDERR_FILENO, "\r\033[K", 4) < 0)
		out->drawn = false; /* a progress line that cannot be cleared cannot be drawn either */
	out->drawn = false;
}

static void write_all(struct output *out, const char *data, size_t len)
{
	while (len > 0 && !out->gone && !out->sys) {
		ssize_t n = write(out->fd, data, len);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EPIPE) {
			out->gone = true;
		} else if (errno != EINTR) {
			out->sys = errno;
		}
	}
}

void output_flush(struct output *out)
{
	clear_progress(out);
	write_all(out, out->data, out->len);
	out->len = 0;
}

int output_close(struct output *out, struct err *err)
{
	output_flush(out);
	free(out->data);
	out->data = NULL;
	if (out->sys)
		return err_sys(err, out->sys, "write to standard output");
	return 0;
}

char *output_reserve(struct output *out, size_t size)
{
	if (out->to_terminal || size > OUTPUT_BUFFER)
		return NULL;
	if (size > OUTPUT_BUFFER - out->len)
		output_flush(out);
	return out->data + out->len;
}

bool output_add(struct output *out, struct str s)
{
	if (s.len > OUTPUT_BUFFER - out->len)
		output_flush(out);
	if (s.len > OUTPUT_BUFFER) {
		write_all(out, s.ptr, s.len);
	} else if (s.len) {
		memcpy(out->data + out->len, s.ptr, s.len);
		out->len += s.len;
	}
	if (out->to_terminal && s.len && s.ptr[s.len - 1] == '\n')
		output_flush(out);
	return !out->gone && !out->sys;
}

static const char *const codes[] = {
	[TONE_PLAIN] = "\033[0m",  [TONE_BOLD] = "\033[1m",  [TONE_PATH] = "\033[35m", [TONE_NUMBER] = "\033[32m",
	[TONE_DIR] = "\033[1;34m", [TONE_GOOD] = "\033[32m", [TONE_BAD] = "\033[31m",
};

/* U+202A to U+202E and U+2066 to U+2069 turn the order of what is shown around, so that "deny" can be read as "allow".
   The marks of direction of a single letter (U+200E, U+200F, U+061C) cannot. */
static bool turns_order(const char *three)
{
	unsigned char last = (unsigned char)three[2];

	return (three[1] == '\x80' && last >= 0xaa && last <= 0xae) ||
	       (three[1] == '\x81' && last >= 0xa6 && last <= 0xa9);
}

/* The bytes of a control character at `at`: C0, DEL or C1, but not a newline or a tab, or one that turns the order of
   what is shown; 0: there is none. */
static size_t control_at(struct str s, size_t at)
{
	unsigned char c = (unsigned char)s.ptr[at];

	if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
		return 1;
	if (c == 0xe2 && at + 2 < s.len)
		return turns_order(s.ptr + at) ? 3 : 0;
	return c == 0xc2 && at + 1 < s.len && ((unsigned char)s.ptr[at + 1] & 0xe0) == 0x80 ? 2 : 0;
}

/* The bytes of one of our own colours at `at`; 0: there is none. */
static size_t tone_at(struct str s, size_t at)
{
	for (size_t i = 0; s.ptr[at] == '\033' && i < COUNT(codes); i++)
		if (str_starts(str_from(s, at), str_of(codes[i])))
			return strlen(codes[i]);
	return 0;
}

static struct str without_controls(struct arena *arena, struct str s, bool keeps_tones)
{
	struct buf shown;
	size_t done = 0, n;

	buf_init(&shown, arena, s.len * 3 + 1);
	for (size_t i = 0; i < s.len; i += n ? n : 1) {
		n = keeps_tones ? tone_at(s, i) : 0;
		if (n)
			continue;
		n = control_at(s, i);
		if (!n)
			continue;
		buf_add(&shown, str_n(s.ptr + done, i - done));
		buf_lit(&shown, "\xef\xbf\xbd");
		done = i + n;
	}
	if (done == 0)
		return s;
	buf_add(&shown, str_from(s, done));
	return buf_str(&shown);
}

struct str output_shown(struct arena *arena, struct str s)
{
	return without_controls(arena, s, false);
}

bool output_words(struct output *out, struct str s)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	return output_add(out, out->to_terminal ? output_shown(arena, s) : s);
}

struct str format_u64(uint64_t n, char room[20])
{
	size_t at = 20;

	do
		room[--at] = (char)('0' + n % 10);
	while (n /= 10);
	return str_n(room + at, 20 - at);
}

bool output_u64(struct output *out, uint64_t n)
{
	char digits[20];

	return output_add(out, format_u64(n, digits));
}

bool output_printf(struct output *out, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	bool ok = true;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n >= 0) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct str all = str_n(text, (size_t)n);

		ok = output_add(out, out->to_terminal ? without_controls(arena, all, true) : all);
		free(text);
	}
	return ok;
}

void output_json(struct output *out, struct arena *arena, const struct jv *value)
{
	struct buf buf;

	buf_init(&buf, arena, SIZE_MAX / 4);
	jv_write_pretty(&buf, value);
	output_add(out, buf_str(&buf));
}

void output_json_line(struct output *out, struct arena *arena, const struct jv *value)
{
	struct buf buf;

	buf_init(&buf, arena, SIZE_MAX / 4);
	jv_write(&buf, value);
	buf_char(&buf, '\n');
	output_add(out, buf_str(&buf));
}

struct str output_tone(const struct output *out, enum tone tone)
{
	return out->color ? str_of(codes[tone]) : STR("");
}

static void error_json(struct arena *arena, const struct err *err, struct str detail, const char *hint,
		       struct buf *text)
{
	struct jv *document = jv_object(arena), *error = jv_object(arena);

	jv_set_str(arena, error, "kind", str_of(err_kind_name(err->kind)));
	jv_set_str(arena, error, "message", str_of(err->msg));
	if (detail.len)
		jv_set_str(arena, error, "detail", detail);
	if (hint)
		jv_set_str(arena, error, "hint", str_of(hint));
	jv_set(arena, document, "error", error);
	jv_write(text, document);
	buf_char(text, '\n');
}

void output_error(struct output *out, const struct err *err, struct str detail, const char *hint, bool json)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct output to_stderr = {.fd = STDERR_FILENO};
	struct buf text;

	output_flush(out);
	buf_init(&text, arena, 2 * TOOL_TEXT_MAX);
	if (json) {
		error_json(arena, err, detail, hint, &text);
	} else {
		bool color = wants_color(STDERR_FILENO);

		bool shows = isatty(STDERR_FILENO);
		struct str message = str_of(err->msg);

		buf_printf(&text, "%sstead:%s %.*s\n", color ? "\033[31m" : "", color ? "\033[0m" : "",
			   STR_ARG(shows ? output_shown(arena, message) : message));
		buf_add(&text, shows ? output_shown(arena, detail) : detail);
		if (detail.len && detail.ptr[detail.len - 1] != '\n')
			buf_char(&text, '\n');
		if (hint)
			buf_printf(&text, "hint: %s\n", hint);
	}
	write_all(&to_stderr, text.ptr, text.len);
}

static void report(void *arg, uint64_t done, uint64_t total, struct str what)
{
	struct output *out = arg;
	int64_t now = clock_monotonic_ns();
	char line[160];
	int n;

	if (now < out->drawn_ns + PROGRESS_EVERY_NS)
		return;
	out->drawn_ns = now;
	if (total) {
		int full = done >= total ? BAR_WIDTH : (int)(done * BAR_WIDTH / total);

		n = snprintf(line, sizeof(line), "\r\033[K%s [%.*s%.*s] %llu of %llu %.*s", out->verb, full,
			     "====================", BAR_WIDTH - full, "--------------------", (unsigned long long)done,
			     (unsigned long long)total, STR_ARG(utf8_first(what, 40)));
	} else {
		n = snprintf(line, sizeof(line), "\r\033[K%s %llu %.*s", out->verb, (unsigned long long)done,
			     STR_ARG(utf8_first(what, 60)));
	}
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) > 0)
		out->drawn = true;
}

bool output_progress(struct output *out, const char *verb, struct progress *ret)
{
	if (!isatty(STDERR_FILENO))
		return false;
	out->verb = verb;
	out->drawn_ns = clock_monotonic_ns() + PROGRESS_FIRST_NS - PROGRESS_EVERY_NS;
	*ret = (struct progress){.report = report, .arg = out};
	return true;
}

struct str output_size(struct arena *arena, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double n = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024)
		return arena_printf(arena, "%llu B", (unsigned long long)bytes);
	while (n >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1024;
		unit++;
	}
	return arena_printf(arena, "%.1f %s", n, units[unit]);
}
