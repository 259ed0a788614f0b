/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how to look for a pattern, once, from what it is:
 *  - plain texts, or an alternation of them: the literal finder alone;
 *  - an expression of which every match contains one of a few texts: the literal finder, and the automaton (or PCRE2)
 *   only on lines that have one;
 *  - an expression without such texts: the automaton over everything, as long as it is regular;
 *  - the rest (look-around, back references, properties): PCRE2, line by line.
 * PCRE2 is also the judge of what a valid pattern is, and gives the words for an invalid one.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/grep.h"

#include <pcre2.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/limits.h"
#include "text/dfa.h"
#include "text/literal.h"
#include "text/regex.h"

#define MATCH_LIMIT    1000000u
#define HEAP_LIMIT_KIB 20480u
#define JIT_STACK_MAX  (1 * MIB)
#define SLOW_LINE_NS   INT64_C(1000000)
#define SLOW_BUDGET_NS INT64_C(800000000)
/* A longer line is looked at by windows: places where a match may begin. */
#define LINE_AT_ONCE ((size_t)4096)
#define WINDOW_FIRST ((size_t)16)

struct matcher {
	const struct literals *literals; /* NULL: none */
	bool exact;                      /* a literal found is a match */
	bool keep_cr;
	const struct nfa *nfa; /* NULL: PCRE2 decides */
	/* NULL when nobody asks it. Two of them: with PCRE2_MATCH_INVALID_UTF the JIT of PCRE2 10.42 misses matches, so
	   lines that are not UTF-8 go to the interpreter. */
	pcre2_code *code, *code_broken;
};

struct searcher {
	const struct matcher *m;
	struct str text;
	bool has_cr; /* in this text, and it matters */
	struct dfa *dfa;
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	int64_t slow_ns;
};

static int check_pattern(struct str pattern, struct err *err)
{
	if (pattern.len > PATTERN_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the pattern has %zu bytes; at most %zu are allowed", pattern.len,
			       PATTERN_LEN_MAX);
	if (!utf8_valid(pattern))
		return err_set(err, ERR_INVALID, "the pattern is not UTF-8; write other bytes as \\x{…} code points");
	if (memchr(pattern.ptr ? pattern.ptr : "", '\n', pattern.len))
		return err_set(
			err, ERR_INVALID,
			"the pattern has a line break, but lines are searched one by one; search for one of its lines");
	return 0;
}

static int compile_pcre2(struct str pattern, unsigned flags, bool broken, pcre2_code **ret, struct err *err)
{
	uint32_t options =
		PCRE2_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_USE_OFFSET_LIMIT;
	pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
	int code;
	PCRE2_SIZE at;

	if (flags & MATCH_LITERAL) /* PCRE2_LITERAL allows few other options */
		options = PCRE2_UTF | PCRE2_LITERAL | PCRE2_USE_OFFSET_LIMIT;
	if (broken)
		options |= PCRE2_MATCH_INVALID_UTF;
	if (flags & MATCH_NOCASE)
		options |= PCRE2_CASELESS;
	pcre2_set_newline(cc, PCRE2_NEWLINE_LF);
	*ret = pcre2_compile((PCRE2_SPTR)(pattern.ptr ? pattern.ptr : ""), pattern.len, options, &code, &at, cc);
	pcre2_compile_context_free(cc);
	if (!*ret) {
		char text[160] = "";

		pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
		return err_set(
			err, ERR_INVALID,
			"the pattern \"%.*s\" is not a regular expression: %s (at byte %zu); put a backslash before "
			"a character that stands for itself",
			STR_ARG(utf8_first(pattern, 120)), text, (size_t)at);
	}
	return 0;
}

/* Refuses what PCRE2 lets pass but the tree shows to be wrong. */
static int check_tree(const struct re *re, struct err *err)
{
	if (re->has_verb)
		return err_set(err, ERR_INVALID,
			       "the pattern has a \"(*\" verb, which is not offered; write \"\\(\\*\"");
	if (re->names_lf)
		return err_set(err, ERR_INVALID,
			       "the pattern has a line break (\\n), but lines are searched one by one; search for one "
			       "of its lines");
	return 0;
}

static bool is_plain(struct str pattern)
{
	static const char special[] = "\\^$.[|()?*+{";

	for (size_t i = 0; i < pattern.len; i++)
		if (memchr(special, pattern.ptr[i], sizeof(special) - 1))
			return false;
	return pattern.len > 0;
}

/* For a pattern that PCRE2 has to decide. */
static int prepare_pcre2(struct matcher *m, struct str pattern, unsigned flags, struct err *err)
{
	int r = m->code ? 0 : compile_pcre2(pattern, flags, false, &m->code, err);

	if (r == 0)
		r = compile_pcre2(pattern, flags, true, &m->code_broken, err);
	if (r == 0)
		pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE); /* without it the interpreter does the same */
	return r;
}

int matcher_new(struct arena *arena, struct str pattern, unsigned flags, struct matcher **ret, struct err *err)
{
	struct matcher *m = ARENA_NEW(arena, struct matcher);
	bool nocase = flags & MATCH_NOCASE;
	struct str texts[LITERALS_MAX];
	struct re re;
	size_t n;
	int r = check_pattern(pattern, err);

	if (r)
		return r;
	if ((flags & MATCH_LITERAL) || is_plain(pattern)) {
		regex_literal(arena, pattern, nocase, &re);
		flags |= MATCH_LITERAL;
	} else {
		r = compile_pcre2(pattern, flags, false, &m->code, err);
		if (r)
			return r;
		regex_parse(arena, pattern, nocase, &re);
		r = check_tree(&re, err);
	}
	n = r == 0 ? regex_literals(arena, &re, texts, &m->exact) : 0;
	if (n)
		m->literals = literals_new(arena, texts, n, re.nocase);
	m->keep_cr = re.names_cr;
	if (r == 0 && !m->exact)
		m->nfa = nfa_new(arena, &re);
	if (r == 0 && !m->exact && !m->nfa)
		r = prepare_pcre2(m, pattern, flags, err);
	if (r || m->exact || m->nfa) {
		pcre2_code_free(m->code);
		m->code = NULL;
	}
	if (r == 0)
		*ret = m;
	return r;
}

void matcher_destroy(struct matcher *m)
{
	if (!m)
		return;
	pcre2_code_free(m->code);
	pcre2_code_free(m->code_broken);
}

struct searcher *searcher_new(const struct matcher *m)
{
	struct searcher *s = xcalloc(1, sizeof(*s));

	s->m = m;
	if (m->nfa)
		s->dfa = dfa_new(m->nfa);
	if (m->code) {
		s->data = pcre2_match_data_create(1, NULL);
		s->context = pcre2_match_context_create(NULL);
		s->stack = pcre2_jit_stack_create(32 * KIB, JIT_STACK_MAX, NULL);
		if (!s->data || !s->context)
			fatal("out of memory in PCRE2");
		pcre2_set_match_limit(s->context, MATCH_LIMIT);
		pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
		pcre2_jit_stack_assign(s->context, NULL, s->stack);
	}
	return s;
}

void searcher_destroy(struct searcher *s)
{
	if (!s)
		return;
	dfa_destroy(s->dfa);
	pcre2_match_data_free(s->data);
	pcre2_match_context_free(s->context);
	pcre2_jit_stack_free(s->stack);
	free(s);
}

void searcher_begin(struct searcher *s, struct str text)
{
	s->text = text;
	s->has_cr = !s->m->keep_cr && s->m->nfa && !s->m->literals && text.len && memchr(text.ptr, '\r', text.len);
}

static int too_much(struct err *err)
{
	return err_set(
		err, ERR_INVALID,
		"the pattern takes too much work: it nests repetitions, or looks ahead or back too far; simplify it");
}

/* Whether a match begins in [from, last]. */
static int ask_window(struct searcher *s, struct str line, bool valid, size_t from, size_t last)
{
	pcre2_set_offset_limit(s->context, last);
	return pcre2_match(valid ? s->m->code : s->m->code_broken, (PCRE2_SPTR)(line.ptr ? line.ptr : ""), line.len,
			   from, valid ? PCRE2_NO_UTF_CHECK : 0, s->data, s->context);
}

/* The limits of PCRE2 count what happens after one beginning, and a long line has many: a pattern that looks at the
   whole rest of the line each time would take hours. So the beginnings are tried by windows, which grow as long as that
   is quick, and the time is looked at after each. */
static int try_line(struct searcher *s, struct str line, int *ret_n, struct err *err)
{
	size_t from = 0, window = line.len <= LINE_AT_ONCE ? line.len : WINDOW_FIRST;
	int64_t start = clock_monotonic_ns(), before = start;
	bool valid = utf8_valid(line);
	int n = PCRE2_ERROR_NOMATCH;

	while (n == PCRE2_ERROR_NOMATCH && from <= line.len) {
		size_t last = line.len - from > window ? from + window : line.len;
		int64_t now;

		n = ask_window(s, line, valid, from, last);
		now = clock_monotonic_ns();
		if (now - start > SLOW_LINE_NS)
			s->slow_ns += now - before;
		if (s->slow_ns > SLOW_BUDGET_NS)
			return too_much(err);
		if (now - before < SLOW_LINE_NS)
			window *= 4;
		before = now;
		for (from = last + 1; from < line.len && ((unsigned char)line.ptr[from] & 0xC0) == 0x80;)
			from++;
	}
	*ret_n = n;
	return 0;
}

static int ask_pcre2(struct searcher *s, struct str line, struct err *err)
{
	int n = 0, r = try_line(s, line, &n, err);

	if (r)
		return r;
	if (n >= 0)
		return 1;
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	if (n == PCRE2_ERROR_MATCHLIMIT || n == PCRE2_ERROR_DEPTHLIMIT || n == PCRE2_ERROR_HEAPLIMIT ||
	    n == PCRE2_ERROR_JIT_STACKLIMIT)
		return too_much(err);
	return err_set(err, ERR_INTERNAL, "the regular expression engine failed (%d)", n);
}

static int line_matches(struct searcher *s, struct str line, struct err *err)
{
	size_t at;

	if (!s->dfa)
		return ask_pcre2(s, line, err);
	/* an empty line is one, which an empty text is not */
	at = line.len ? dfa_find(s->dfa, line, 0) : dfa_find(s->dfa, STR("\n"), 0);
	return at == DFA_WORK ? too_much(err) : at != DFA_NONE;
}

/* The line around `at`, and the start of the next. */
static struct str line_at(const struct searcher *s, size_t from, size_t at, size_t *ret_next)
{
	const char *text = s->text.ptr;
	const char *before = at > from ? memrchr(text + from, '\n', at - from) : NULL;
	const char *behind = at < s->text.len ? memchr(text + at, '\n', s->text.len - at) : NULL;
	size_t start = before ? (size_t)(before - text) + 1 : from;
	size_t end = behind ? (size_t)(behind - text) : s->text.len;

	*ret_next = behind ? end + 1 : end;
	if (end > start && text[end - 1] == '\r' && !s->m->keep_cr)
		end--;
	return str_n(text + start, end - start);
}

static int next_by_line(struct searcher *s, size_t from, struct str *ret_line, size_t *ret_next, struct err *err)
{
	int r = 0;

	for (; from < s->text.len && r == 0; from = *ret_next) {
		*ret_line = line_at(s, from, from, ret_next);
		r = line_matches(s, *ret_line, err);
	}
	return r;
}

static int next_by_literal(struct searcher *s, size_t from, struct str *ret_line, size_t *ret_next, struct err *err)
{
	int r = 0;

	while (r == 0 && from < s->text.len) {
		size_t at = literals_find(s->m->literals, s->text, from);

		if (at == SIZE_MAX)
			return 0;
		*ret_line = line_at(s, from, at, ret_next);
		r = s->m->exact ? 1 : line_matches(s, *ret_line, err);
		from = *ret_next;
	}
	return r;
}

int searcher_next(struct searcher *s, size_t from, struct str *ret_line, size_t *ret_next, struct err *err)
{
	size_t at;

	if (from >= s->text.len)
		return 0;
	if (s->m->literals)
		return next_by_literal(s, from, ret_line, ret_next, err);
	if (!s->dfa || s->has_cr)
		return next_by_line(s, from, ret_line, ret_next, err);
	at = dfa_find(s->dfa, s->text, from);
	if (at == DFA_NONE)
		return 0;
	if (at == DFA_WORK)
		return too_much(err);
	*ret_line = line_at(s, from, at, ret_next);
	return 1;
}

int pattern_check(struct str pattern, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	pcre2_code *code = NULL;
	struct re re;
	int r = check_pattern(pattern, err);

	if (r == 0)
		r = compile_pcre2(pattern, 0, true, &code, err);
	if (r)
		return r;
	pcre2_code_free(code);
	regex_parse(arena, pattern, false, &re);
	return re.regular
		       ? 0
		       : err_set(err, ERR_INVALID, "the pattern \"%.*s\" looks around or refers back; write it without",
				 STR_ARG(utf8_first(pattern, 120)));
}

bool pattern_found(struct str pattern, struct str text)
{
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	pcre2_code *code = NULL;
	struct err ignored;
	bool found = false;

	if (!data || !context)
		fatal("out of memory in PCRE2");
	pcre2_set_match_limit(context, MATCH_LIMIT);
	pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
	if (compile_pcre2(pattern, 0, true, &code, &ignored) == 0)
		found = pcre2_match(code, (PCRE2_SPTR)(text.ptr ? text.ptr : ""), text.len, 0, 0, data, context) >= 0;
	pcre2_code_free(code);
	pcre2_match_data_free(data);
	pcre2_match_context_free(context);
	return found;
}
