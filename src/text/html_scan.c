/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner follows the tokenizer of the HTML standard where pages depend on it (raw text, attributes without quotes,
 * references without a semicolon in numbers) and is simpler everywhere else. Each byte is looked at a fixed number of
 * times: what has no end (a comment, a quoted value, a script) goes to the end of the input, once.
 */
#include <stdio.h>

#include "base/utf8.h"
#include "text/html.h"

/* --- character references --- */

/* U+00A0 to U+00FF, in order. */
static const char latin[][7] = {
	"nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",   "ordf",
	"laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",   "acute",  "micro",
	"para",   "middot", "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave",
	"Aacute", "Acirc",  "Atilde", "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",
	"Igrave", "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",
	"times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute",
	"acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil", "egrave", "eacute", "ecirc",  "euml",   "igrave",
	"iacute", "icirc",  "iuml",   "eth",    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide",
	"oslash", "ugrave", "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};

static const struct {
	const char *name;
	uint32_t point;
} named[] = {
	{"amp", '&'},       {"lt", '<'},        {"gt", '>'},       {"quot", '"'},      {"apos", '\''},
	{"hellip", 0x2026}, {"mdash", 0x2014},  {"ndash", 0x2013}, {"lsquo", 0x2018},  {"rsquo", 0x2019},
	{"sbquo", 0x201A},  {"ldquo", 0x201C},  {"rdquo", 0x201D}, {"bdquo", 0x201E},  {"bull", 0x2022},
	{"euro", 0x20AC},   {"trade", 0x2122},  {"larr", 0x2190},  {"uarr", 0x2191},   {"rarr", 0x2192},
	{"darr", 0x2193},   {"harr", 0x2194},   {"minus", 0x2212}, {"le", 0x2264},     {"ge", 0x2265},
	{"ne", 0x2260},     {"infin", 0x221E},  {"asymp", 0x2248}, {"lsaquo", 0x2039}, {"rsaquo", 0x203A},
	{"dagger", 0x2020}, {"thinsp", 0x2009}, {"ensp", 0x2002},  {"emsp", 0x2003},   {"zwnj", 0x200C},
	{"zwj", 0x200D},    {"check", 0x2713},  {"alpha", 0x3B1},  {"beta", 0x3B2},    {"gamma", 0x3B3},
	{"delta", 0x3B4},   {"lambda", 0x3BB},  {"mu", 0x3BC},     {"pi", 0x3C0},      {"sigma", 0x3C3},
	{"omega", 0x3C9},   {"Delta", 0x394},   {"Sigma", 0x3A3},  {"Omega", 0x3A9},
};

static uint32_t point_of_name(struct str name)
{
	for (size_t i = 0; i < COUNT(named); i++)
		if (str_is(name, named[i].name))
			return named[i].point;
	for (size_t i = 0; i < COUNT(latin); i++)
		if (str_is(name, latin[i]))
			return 0xA0 + (uint32_t)i;
	return 0;
}

/* Numbers from 128 to 159 mean Windows-1252 on the web. */
static uint32_t point_of_number(uint64_t n)
{
	static const uint16_t windows[32] = {0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
					     0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0x8D,   0x17D,  0x8F,
					     0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
					     0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};

	if (n >= 128 && n < 160)
		n = windows[n - 128];
	if (n == 0 || n > 0x10FFFF || (n >= 0xD800 && n < 0xE000) || (n < 32 && n != 9 && n != 10) || n == 127)
		return 0xFFFD;
	return (uint32_t)n;
}

static int digit_of(char c, unsigned base)
{
	int d = c >= '0' && c <= '9'   ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : 99;

	return d < (int)base ? d : -1;
}

/* `s` begins after "&#". Returns how many bytes the number takes; 0: it is not one. */
static size_t number_len(struct str s, uint32_t *ret_point)
{
	unsigned base = s.len && (s.ptr[0] == 'x' || s.ptr[0] == 'X') ? 16 : 10;
	size_t i = base == 16, from = i;
	uint64_t n = 0;
	int d;

	for (; i < s.len && (d = digit_of(s.ptr[i], base)) >= 0; i++)
		n = n > 0x10FFFF ? n : n * base + (uint64_t)d;
	if (i == from)
		return 0;
	*ret_point = point_of_number(n);
	return i < s.len && s.ptr[i] == ';' ? i + 1 : i;
}

/* `s` begins after '&'. */
static size_t reference_len(struct str s, uint32_t *ret_point)
{
	size_t i = 0;

	if (s.len > 1 && s.ptr[0] == '#') {
		i = number_len(str_from(s, 1), ret_point);
		return i ? i + 1 : 0;
	}
	while (i < s.len && i < 9 && ((s.ptr[i] | 32) >= 'a' && (s.ptr[i] | 32) <= 'z'))
		i++;
	while (i < s.len && i < 9 && s.ptr[i] >= '0' && s.ptr[i] <= '9')
		i++;
	*ret_point = i < s.len && s.ptr[i] == ';' ? point_of_name(str_first(s, i)) : 0;
	return *ret_point ? i + 1 : 0;
}

void html_decode(struct buf *out, struct str text)
{
	while (text.len) {
		size_t amp = str_find_char(text, '&'), len;
		char bytes[UTF8_LEN_MAX];
		uint32_t point = 0;

		buf_add(out, str_first(text, amp));
		if (amp == text.len)
			return;
		text = str_from(text, amp + 1);
		len = reference_len(text, &point);
		if (len)
			buf_add(out, str_n(bytes, utf8_put(bytes, point)));
		else
			buf_char(out, '&');
		text = str_from(text, len);
	}
}

/* --- tags --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool is_letter(char c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* Where the tag ends whose attributes begin at `i`: at its '>', quotes aside, or at the end of the input. */
static size_t tag_end(struct str s, size_t i)
{
	char quote = 0, before = 0;

	for (; i < s.len; i++) {
		char c = s.ptr[i];

		if (quote) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '>')
			return i;
		if ((c == '"' || c == '\'') && before == '=')
			quote = c;
		if (!is_blank(c))
			before = c;
	}
	return i;
}

static void take_tag(struct html_scan *scan, struct html_token *ret)
{
	struct str s = scan->rest;
	size_t i = 1, n = 0, end;

	ret->kind = HTML_OPEN;
	if (s.ptr[1] == '/') {
		ret->kind = HTML_CLOSE;
		i++;
	}
	for (; i < s.len && !is_blank(s.ptr[i]) && s.ptr[i] != '>' && s.ptr[i] != '/'; i++)
		if (n < sizeof(ret->name) - 1)
			ret->name[n++] = (char)ascii_lower((unsigned char)s.ptr[i]);
	ret->name[n] = 0;
	end = tag_end(s, i);
	ret->attributes = str_n(s.ptr + i, end - i);
	scan->rest = str_from(s, end + 1);
}

static bool is_raw(const char *name)
{
	static const char *const raw[] = {"script", "style",  "textarea", "title",
					  "xmp",    "iframe", "noembed",  "noframes"};

	for (size_t i = 0; i < COUNT(raw); i++)
		if (strcmp(name, raw[i]) == 0)
			return true;
	return false;
}

/* Up to "</name", which stays. */
static bool take_raw(struct html_scan *scan, struct html_token *ret)
{
	struct str s = scan->rest, name = str_of(scan->raw);
	size_t at = 0;

	while ((at = str_find(s, STR("</"), at)) != SIZE_MAX &&
	       !str_eq_nocase(str_first(str_from(s, at + 2), name.len), name))
		at += 2;
	if (at == SIZE_MAX)
		at = s.len;
	scan->raw[0] = 0;
	scan->rest = str_from(s, at);
	*ret = (struct html_token){.kind = HTML_TEXT, .text = str_first(s, at)};
	return at > 0;
}

/* "<!-- … -->", "<!…>", "<?…>" and "</ …>". */
static bool pass_over(struct html_scan *scan)
{
	struct str s = scan->rest;
	size_t end;

	if (s.len < 2 || (s.ptr[1] != '!' && s.ptr[1] != '?' && s.ptr[1] != '/'))
		return false;
	if (s.ptr[1] == '/' && s.len > 2 && is_letter(s.ptr[2]))
		return false;
	if (str_starts(s, STR("<!--"))) {
		end = str_find(s, STR("-->"), 2);
		scan->rest = end == SIZE_MAX ? STR_NONE : str_from(s, end + 3);
		return true;
	}
	scan->rest = str_from(s, str_find_char(s, '>') + 1);
	return true;
}

static bool is_tag(struct str s)
{
	return s.len > 1 && s.ptr[0] == '<' &&
	       (is_letter(s.ptr[1]) || (s.len > 2 && s.ptr[1] == '/' && is_letter(s.ptr[2])));
}

bool html_next(struct html_scan *scan, struct html_token *ret)
{
	size_t end;

	if (scan->raw[0] && take_raw(scan, ret))
		return true;
	while (scan->rest.len && scan->rest.ptr[0] == '<' && pass_over(scan))
		continue;
	if (!scan->rest.len)
		return false;
	*ret = (struct html_token){.kind = HTML_TEXT};
	if (is_tag(scan->rest)) {
		take_tag(scan, ret);
		if (ret->kind == HTML_OPEN && is_raw(ret->name))
			snprintf(scan->raw, sizeof(scan->raw), "%s", ret->name);
		return true;
	}
	end = 1 + str_find_char(str_from(scan->rest, 1), '<'); /* a '<' that begins no tag is text */
	ret->text = str_first(scan->rest, end);
	scan->rest = str_from(scan->rest, end);
	return true;
}

/* --- attributes --- */

/* Cuts the next attribute off; false at the end. */
static bool attribute_cut(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	struct str s = *rest;
	size_t i = 0, n;
	char quote;

	while (i < s.len && (is_blank(s.ptr[i]) || s.ptr[i] == '/'))
		i++;
	for (n = i; n < s.len && !is_blank(s.ptr[n]) && s.ptr[n] != '=' && s.ptr[n] != '/';)
		n++;
	if (n == i && n < s.len)
		n++; /* a stray '=' */
	*ret_name = str_n(s.ptr + i, n - i);
	*ret_value = STR("");
	s = str_from(s, n);
	for (n = 0; n < s.len && is_blank(s.ptr[n]);)
		n++;
	if (n == s.len || s.ptr[n] != '=') {
		*rest = s;
		return ret_name->len > 0;
	}
	for (n++; n < s.len && is_blank(s.ptr[n]);)
		n++;
	s = str_from(s, n);
	quote = s.len && (s.ptr[0] == '"' || s.ptr[0] == '\'') ? s.ptr[0] : 0;
	if (quote) {
		s = str_from(s, 1);
		n = str_find_char(s, quote);
	} else {
		for (n = 0; n < s.len && !is_blank(s.ptr[n]);)
			n++;
	}
	*ret_value = str_first(s, n);
	*rest = str_from(s, quote ? n + 1 : n);
	return true;
}

struct str html_attribute(struct arena *arena, const struct html_token *token, const char *name)
{
	struct str rest = token->attributes, key, value;
	struct buf out;

	while (rest.len && attribute_cut(&rest, &key, &value)) {
		if (!str_eq_nocase(key, str_of(name)))
			continue;
		buf_init(&out, arena, 4 * value.len + 8);
		html_decode(&out, value);
		return out.ptr ? buf_str(&out) : STR("");
	}
	return STR_NONE;
}
