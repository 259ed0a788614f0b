/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what people type to what the index is asked. Words, "phrases" and -without. A word is widened, at a lower
 * weight, by the regular endings that the index knows, and, when nobody ever wrote it, by near spellings. Quoted words
 * are taken as they stand.
 */
#include "base/limits.h"
#include "base/strmap.h"
#include "home/search/search_internal.h"
#include "text/terms.h"

#define ENDING_WEIGHT 0.5
#define ACCENT_WEIGHT 0.5
#define NEAR_WEIGHT   0.3
#define NEAR_MAX      3
#define FEW           2 /* a word with so few documents may be a misspelling */

struct planner {
	struct arena *arena;
	const struct words_view *view;
	struct search_plan *plan;
	struct strmap *seen;
	uint64_t documents;
	bool exact, widen, too_many;
	/* the piece */
	bool without, quoted;
	int phrase;
	uint32_t first;
	size_t phrase_words;
};

static void add(struct planner *p, struct str term, double weight, int phrase, uint32_t at)
{
	struct words_clause *c;

	if (p->plan->count == SEARCH_WORDS_MAX) {
		p->too_many = true;
		return;
	}
	c = &p->plan->clauses[p->plan->count++];
	*c = (struct words_clause){
		.term = arena_str(p->arena, term), .weight = weight, .phrase = phrase, .at = at, .without = p->without};
}

/* Adds a word once, however often it occurs in the question. */
static bool add_word(struct planner *p, struct str term, double weight)
{
	bool added;

	strmap_put(p->seen, arena_str(p->arena, term), &added);
	if (added)
		add(p, term, weight, -1, 0);
	return added;
}

static uint64_t docs_of(const struct planner *p, struct str term)
{
	uint64_t docs;

	words_idf(p->view, term, &docs);
	return docs;
}

/* --- endings --- */

static void try_form(struct planner *p, struct str stem, const char *ending)
{
	char room[TERM_MAX + 8];
	size_t n = strlen(ending);
	struct str form = str_n(room, stem.len + n);

	if (stem.len < 3 || stem.len > TERM_MAX)
		return;
	memcpy(room, stem.ptr, stem.len);
	memcpy(room + stem.len, ending, n);
	if (docs_of(p, form))
		add_word(p, form, ENDING_WEIGHT);
}

static bool is_vowel(char c)
{
	return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

static void try_forms(struct planner *p, struct str stem)
{
	static const char *const endings[] = {"", "s", "es", "ed", "ing", "e", "er", "d", "ly"};
	char last = stem.ptr[stem.len - 1];

	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
		try_form(p, stem, endings[i]);
	if (last == 'y' || last == 'i') {
		try_form(p, str_first(stem, stem.len - 1), "ies");
		try_form(p, str_first(stem, stem.len - 1), "ied");
		try_form(p, str_first(stem, stem.len - 1), "y");
	}
	if (stem.len > 3 && last == 'e') {
		try_form(p, str_first(stem, stem.len - 1), "ing");
	} else if (stem.len >= 3 && !is_vowel(last) && is_vowel(stem.ptr[stem.len - 2]) && stem.len < TERM_MAX) {
		char room[TERM_MAX + 1];

		memcpy(room, stem.ptr, stem.len);
		room[stem.len] = last;
		try_form(p, str_n(room, stem.len + 1), "ed");
		try_form(p, str_n(room, stem.len + 1), "ing");
	}
}

/* The word without its ending; without a doubled letter before one that goes ("planned"). */
static struct str stem_of(struct str word)
{
	static const struct {
		struct str ending;
		bool doubles;
	} endings[] = {{STR("ing"), true}, {STR("ed"), true}, {STR("ies"), false},
		       {STR("es"), false}, {STR("s"), false}, {STR("ly"), false}};

	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		struct str stem;

		if (!str_ends(word, endings[i].ending) || word.len < endings[i].ending.len + 3)
			continue;
		if (str_is(endings[i].ending, "s") && word.ptr[word.len - 2] == 's')
			continue;
		stem = str_first(word, word.len - endings[i].ending.len);
		if (str_is(endings[i].ending, "ies"))
			stem = str_first(word, word.len - 2); /* "i" stands for "y" */
		if (endings[i].doubles && stem.len > 3 && stem.ptr[stem.len - 1] == stem.ptr[stem.len - 2] &&
		    !is_vowel(stem.ptr[stem.len - 1]))
			stem.len--;
		return stem;
	}
	return word;
}

static bool is_plain(struct str term)
{
	for (size_t i = 0; i < term.len; i++)
		if (term.ptr[i] < 'a' || term.ptr[i] > 'z')
			return false;
	return true;
}

static void add_near(struct planner *p, struct str term)
{
	size_t letters = utf8_count(term);
	struct words_near *near;
	size_t n = 0;

	if (letters >= 4)
		n = words_near(p->view, p->arena, term, letters < 8 ? 1 : 2, NEAR_MAX, &near);
	for (size_t i = 0; i < n; i++)
		add_word(p, near[i].term, NEAR_WEIGHT / near[i].distance);
}

static bool has_digit(struct str term)
{
	for (size_t i = 0; i < term.len; i++)
		if (term.ptr[i] >= '0' && term.ptr[i] <= '9')
			return true;
	return false;
}

static void widen_word(struct planner *p, struct str term)
{
	uint64_t docs = docs_of(p, term);

	if (is_plain(term) && term.len >= 4 && docs * 8 <= p->documents)
		try_forms(p, stem_of(term));
	if (has_digit(term))
		return;
	if (docs == 0 || (p->widen && docs <= FEW))
		add_near(p, term);
	else if (docs <= FEW)
		p->plan->can_widen = true;
}

/* --- pieces --- */

static void take_quoted(void *arg, const struct term *term)
{
	struct planner *p = arg;

	if (term->flags & (TERM_WHOLE | TERM_SINGLE) || term->flags == TERM_EXTRA)
		return;
	if (!p->phrase_words++)
		p->first = term->pos;
	add(p, term->text, 1, p->phrase, term->pos - p->first);
}

static void take_bare(void *arg, const struct term *term)
{
	struct planner *p = arg;
	bool dense = term->flags & TERM_DENSE;

	if (term->flags & TERM_SINGLE)
		return;
	if (p->without) {
		if (!(term->flags & TERM_EXTRA) || dense)
			add(p, term->text, 1, p->phrase, term->pos - p->first);
		return;
	}
	if (!add_word(p, term->text, term->flags == TERM_EXTRA ? ACCENT_WEIGHT : 1) || p->exact || dense)
		return;
	if (!(term->flags & TERM_EXTRA))
		widen_word(p, term->text);
}

static void take_piece(struct planner *p, struct str piece)
{
	p->phrase_words = 0;
	p->first = 0;
	if (p->quoted || p->without) { /* "-a_b" is without the two words next to each other */
		size_t from = p->plan->count;

		terms_each(piece, 0, p->quoted ? take_quoted : take_bare, p);
		p->phrase += p->plan->count > from;
	} else {
		terms_each(piece, 0, take_bare, p);
	}
}

/* Cuts the next piece off: the text between quotes, or up to a blank. */
static bool next_piece(struct planner *p, struct str *rest, struct str *ret)
{
	size_t end;

	while (rest->len && (unsigned char)rest->ptr[0] <= ' ')
		*rest = str_from(*rest, 1);
	if (!rest->len)
		return false;
	p->without = rest->len > 1 && rest->ptr[0] == '-' && (unsigned char)rest->ptr[1] > ' ' && rest->ptr[1] != '-';
	if (p->without)
		*rest = str_from(*rest, 1);
	p->quoted = rest->ptr[0] == '"';
	if (p->quoted)
		*rest = str_from(*rest, 1);
	for (end = 0; end < rest->len; end++)
		if (p->quoted ? rest->ptr[end] == '"' : (unsigned char)rest->ptr[end] <= ' ')
			break;
	*ret = str_first(*rest, end);
	*rest = str_from(*rest, end + p->quoted);
	return true;
}

int search_plan(struct arena *arena, const struct words_view *view, struct str text, bool exact, bool widen,
		struct search_plan *ret, struct err *err)
{
	struct planner p = {
		.arena = arena, .view = view, .plan = ret, .exact = exact, .widen = widen, .seen = strmap_new(arena)};
	struct str piece, rest = text;

	if (text.len > SEARCH_TEXT_MAX)
		return err_set(err, ERR_INVALID, "search: the query has %zu bytes; at most %zu are allowed", text.len,
			       SEARCH_TEXT_MAX);
	*ret = (struct search_plan){.clauses = ARENA_ARRAY(arena, struct words_clause, SEARCH_WORDS_MAX)};
	for (size_t i = 0; i < words_view_count(view); i++)
		p.documents += words_segment_docs(words_view_at(view, i));
	while (next_piece(&p, &rest, &piece))
		take_piece(&p, piece);
	if (p.too_many)
		return err_set(err, ERR_INVALID, "search: the query has more than %d words; use fewer",
			       SEARCH_WORDS_MAX);
	return 0;
}
