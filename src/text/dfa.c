/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree becomes a Thompson automaton over bytes (a code point is one to four of them), and that one becomes a
 * deterministic one on the way: a state is the set of places where the search may be, a missing transition is computed
 * when a byte asks for it. Assertions (^ $ \b) are decided when the next byte is known, so a state keeps its places as
 * they were before these are looked at, with what came before: a line's start, a word's character.
 *
 * The search is for lines, so every newline leads back to the one start state, and a match may end at the first sign of
 * it. When the states take too much room all are dropped and made again.
 */
#include "text/dfa.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/utf8.h"

#define NFA_MAX     20000 /* instructions */
#define CACHE_BYTES (4 * MIB)
#define WORK_MAX    (UINT64_C(150) * 1000 * 1000)
#define ROW_UNKNOWN 0
#define ROW_MATCH   1
#define ROW_FIRST   2
#define FLAG_BOL    1
#define FLAG_WORD   2

enum op { OP_SET, OP_SPLIT, OP_ASSERT, OP_MATCH };

struct inst {
	enum op op;
	uint32_t next, other; /* other: SPLIT's second way, ASSERT's re_kind, SET's set */
};

struct byte_set {
	uint64_t bits[4];
};

struct nfa {
	struct inst *insts;
	uint32_t count, cap, start;
	struct byte_set *sets;
	uint32_t set_count, set_cap;
	bool words; /* has \b or \B */
	uint8_t class_of[256];
	unsigned classes;
	uint8_t sample[256]; /* a byte of each class */
	struct arena *arena;
	bool too_large;
};

static bool set_has(const struct byte_set *s, unsigned c)
{
	return s->bits[c >> 6] >> (c & 63) & 1;
}

static void set_fill(struct byte_set *s, unsigned lo, unsigned hi)
{
	for (unsigned c = lo; c <= hi; c++)
		s->bits[c >> 6] |= 1ull << (c & 63);
}

static uint32_t emit(struct nfa *n, enum op op, uint32_t next, uint32_t other)
{
	if (n->count >= NFA_MAX) {
		n->too_large = true;
		return 0;
	}
	ARENA_ROOM(n->arena, n->insts, n->count, n->cap);
	n->insts[n->count] = (struct inst){op, next, other};
	return n->count++;
}

static uint32_t emit_set(struct nfa *n, const struct byte_set *set, uint32_t next)
{
	uint32_t i = 0;

	while (i < n->set_count && memcmp(&n->sets[i], set, sizeof(*set)) != 0)
		i++;
	if (i == n->set_count) {
		ARENA_ROOM(n->arena, n->sets, n->set_count, n->set_cap);
		n->sets[n->set_count++] = *set;
	}
	return emit(n, OP_SET, next, i);
}

/* A wide class under construction: the ways so far, and the state that follows. */
struct ways {
	struct nfa *n;
	uint32_t entry, next;
	bool any;
};

static void add_way(struct ways *w, uint32_t pc)
{
	w->entry = w->any ? emit(w->n, OP_SPLIT, pc, w->entry) : pc;
	w->any = true;
}

/* A range of code points with encodings of one length in which each byte has its own range. */
static void add_sequence(struct ways *w, uint32_t lo, uint32_t hi)
{
	char a[UTF8_LEN_MAX], b[UTF8_LEN_MAX];
	size_t len = utf8_put(a, lo);
	uint32_t pc = w->next;

	utf8_put(b, hi);
	for (size_t i = len; i-- > 0;) {
		struct byte_set set = {{0}};

		set_fill(&set, (unsigned char)a[i], (unsigned char)b[i]);
		pc = emit_set(w->n, &set, pc);
	}
	add_way(w, pc);
}

/* Cuts a range until its bytes are independent of each other. */
static void add_range(struct ways *w, uint32_t lo, uint32_t hi)
{
	static const uint32_t ends[] = {0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF};

	if (lo > hi || w->n->too_large)
		return;
	for (size_t i = 0; i < COUNT(ends); i++)
		if (lo <= ends[i] && hi > ends[i]) {
			add_range(w, lo, ends[i]);
			add_range(w, ends[i] + 1, hi);
			return;
		}
	if (lo >= 0xD800 && hi <= 0xDFFF)
		return; /* not in UTF-8 */
	for (unsigned i = 1; i < 4 && hi >= 0x80; i++) {
		uint32_t m = (1u << (6 * i)) - 1;

		if ((lo & ~m) == (hi & ~m))
			continue;
		if (lo & m) {
			add_range(w, lo, lo | m);
			add_range(w, (lo | m) + 1, hi);
			return;
		}
		if ((hi & m) != m) {
			add_range(w, lo, (hi & ~m) - 1);
			add_range(w, hi & ~m, hi);
			return;
		}
	}
	add_sequence(w, lo, hi);
}

static uint32_t compile_class(struct nfa *n, const struct re_node *c, uint32_t next)
{
	struct ways w = {.n = n, .next = next};
	struct byte_set ascii = {{0}};
	bool some = false;

	for (size_t i = 0; i < c->count; i++) {
		uint32_t lo = c->ranges[i].lo, hi = c->ranges[i].hi;

		if (lo < 0x80) {
			set_fill(&ascii, lo, hi < 0x7F ? hi : 0x7F);
			some = true;
		}
		add_range(&w, lo < 0x80 ? 0x80 : lo, hi);
	}
	if (some || !w.any) /* an empty class is a set that nothing is in */
		add_way(&w, emit_set(n, &ascii, next));
	return w.entry;
}

static uint32_t compile(struct nfa *n, const struct re_node *node, uint32_t next);

static uint32_t compile_cat(struct nfa *n, const struct re_node *node, uint32_t next)
{
	const struct re_node **kids;
	size_t count = 0, i = 0;

	for (const struct re_node *c = node->first; c; c = c->next)
		count++;
	kids = ARENA_ARRAY(n->arena, const struct re_node *, count + 1);
	for (const struct re_node *c = node->first; c; c = c->next)
		kids[i++] = c;
	while (i-- > 0)
		next = compile(n, kids[i], next);
	return next;
}

static uint32_t compile_repeat(struct nfa *n, const struct re_node *node, uint32_t next)
{
	uint32_t pc = next;

	if (node->max == RE_FOREVER) {
		uint32_t body, split = emit(n, OP_SPLIT, 0, next);

		body = compile(n, node->first, split);
		if (!n->too_large)
			n->insts[split].next = body;
		pc = split;
	} else {
		for (uint32_t i = node->min; i < node->max && !n->too_large; i++)
			pc = emit(n, OP_SPLIT, compile(n, node->first, pc), next);
	}
	for (uint32_t i = 0; i < node->min && !n->too_large; i++)
		pc = compile(n, node->first, pc);
	return pc;
}

/* Places the node before `next`; returns where it starts. */
static uint32_t compile(struct nfa *n, const struct re_node *node, uint32_t next)
{
	uint32_t pc;

	if (n->too_large)
		return 0;
	switch (node->kind) {
	case RE_CLASS:
		return compile_class(n, node, next);
	case RE_CAT:
		return compile_cat(n, node, next);
	case RE_ALT:
		pc = compile(n, node->first, next);
		for (const struct re_node *c = node->first->next; c; c = c->next)
			pc = emit(n, OP_SPLIT, compile(n, c, next), pc);
		return pc;
	case RE_REPEAT:
		return compile_repeat(n, node, next);
	case RE_WORD:
	case RE_NOT_WORD:
		n->words = true;
		return emit(n, OP_ASSERT, next, node->kind);
	case RE_BOL:
	case RE_EOL:
		return emit(n, OP_ASSERT, next, node->kind);
	case RE_EMPTY:
	case RE_ZERO:
	case RE_OPAQUE:
		break;
	}
	return next;
}

static bool is_word(unsigned c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Splits every class into what is in the set and what is not. */
static void refine(struct nfa *n, const struct byte_set *set)
{
	int inside[256];

	for (unsigned i = 0; i < 256; i++)
		inside[i] = -1;
	for (unsigned k = n->classes, c = 0; c < k; c++) {
		bool in = false, out = false;

		for (unsigned b = 0; b < 256; b++)
			if (n->class_of[b] == c) {
				in |= set_has(set, b);
				out |= !set_has(set, b);
			}
		if (in && out)
			inside[c] = (int)n->classes++;
	}
	for (unsigned b = 0; b < 256; b++)
		if (inside[n->class_of[b]] >= 0 && set_has(set, b))
			n->class_of[b] = (uint8_t)inside[n->class_of[b]];
}

static void find_classes(struct nfa *n)
{
	struct byte_set lf = {{0}}, word = {{0}}, inside = {{0}};

	n->classes = 1;
	set_fill(&lf, '\n', '\n');
	refine(n, &lf);
	for (unsigned c = 0; c < 256; c++)
		if (is_word(c))
			set_fill(&word, c, c);
	set_fill(&inside, 0x80, 0xBF);
	if (n->words) {
		refine(n, &word);
		refine(n, &inside);
	}
	for (uint32_t i = 0; i < n->set_count; i++)
		refine(n, &n->sets[i]);
	for (unsigned c = 0; c < 256; c++)
		n->sample[n->class_of[c]] = (uint8_t)c;
}

const struct nfa *nfa_new(struct arena *arena, const struct re *re)
{
	struct nfa *n = ARENA_NEW(arena, struct nfa);

	if (!re->regular)
		return NULL;
	n->arena = arena;
	n->start = compile(n, re->root, emit(n, OP_MATCH, 0, 0));
	if (n->too_large)
		return NULL;
	find_classes(n);
	return n;
}

struct state {
	uint32_t at, len; /* in pool */
	uint8_t flags;
};

struct dfa {
	const struct nfa *nfa;
	uint32_t *rows; /* [state * classes + class]: the next state's row, or ROW_… × classes */
	struct state *states;
	uint32_t count, cap;
	uint32_t *pool;
	size_t pool_len, pool_cap;
	uint32_t *table; /* hash: state, 0: free */
	uint32_t table_mask;
	uint32_t start;
	/* for one step */
	uint32_t *stack, *places, *mark;
	uint32_t place_count, generation;
	uint64_t work;
};

struct dfa *dfa_new(const struct nfa *nfa)
{
	struct dfa *d = xcalloc(1, sizeof(*d));

	d->nfa = nfa;
	d->stack = xmalloc(sizeof(uint32_t) * (4 * (size_t)nfa->count + 16));
	d->places = xmalloc(sizeof(uint32_t) * ((size_t)nfa->count + 4));
	d->mark = xcalloc(nfa->count + 4, sizeof(uint32_t));
	return d;
}

void dfa_destroy(struct dfa *d)
{
	if (!d)
		return;
	free(d->rows);
	free(d->states);
	free(d->pool);
	free(d->table);
	free(d->stack);
	free(d->places);
	free(d->mark);
	free(d);
}

static void grow_states(struct dfa *d)
{
	uint32_t cap = d->cap ? 2 * d->cap : 64;

	d->rows = xrealloc(d->rows, (size_t)cap * d->nfa->classes * sizeof(*d->rows));
	d->states = xrealloc(d->states, cap * sizeof(*d->states));
	d->cap = cap;
	free(d->table);
	d->table_mask = 4 * cap - 1;
	d->table = xcalloc(d->table_mask + 1, sizeof(*d->table));
	for (uint32_t i = ROW_FIRST; i < d->count; i++) {
		struct str key = str_n(d->pool + d->states[i].at, d->states[i].len * sizeof(*d->pool));
		uint32_t h = (uint32_t)hash_u64(key, d->states[i].flags) & d->table_mask;

		while (d->table[h])
			h = (h + 1) & d->table_mask;
		d->table[h] = i;
	}
}

/* The state with the places of d->places (sorted) and the flags; made if it is new. */
static uint32_t intern(struct dfa *d, uint8_t flags)
{
	size_t bytes = d->place_count * sizeof(*d->pool);
	uint32_t h = (uint32_t)hash_u64(str_n(d->places, bytes), flags) & d->table_mask;

	for (; d->table[h]; h = (h + 1) & d->table_mask) {
		const struct state *s = &d->states[d->table[h]];

		if (s->len == d->place_count && s->flags == flags && memcmp(d->pool + s->at, d->places, bytes) == 0)
			return d->table[h];
	}
	if (d->count == d->cap) {
		grow_states(d);
		return intern(d, flags);
	}
	while (d->pool_len + d->place_count > d->pool_cap) {
		d->pool_cap = d->pool_cap ? 2 * d->pool_cap : 4096;
		d->pool = xrealloc(d->pool, d->pool_cap * sizeof(*d->pool));
	}
	d->states[d->count] = (struct state){(uint32_t)d->pool_len, d->place_count, flags};
	memcpy(d->pool + d->pool_len, d->places, bytes);
	d->pool_len += d->place_count;
	memset(d->rows + (size_t)d->count * d->nfa->classes, 0, d->nfa->classes * sizeof(*d->rows));
	d->table[h] = d->count;
	return d->count++;
}

static void start_over(struct dfa *d)
{
	if (!d->cap)
		grow_states(d);
	memset(d->table, 0, (d->table_mask + 1) * sizeof(*d->table));
	d->count = ROW_FIRST;
	d->pool_len = 0;
	d->places[0] = d->nfa->start;
	d->place_count = 1;
	d->start = intern(d, FLAG_BOL);
}

static bool holds(const struct nfa *n, uint32_t kind, uint8_t flags, unsigned byte)
{
	bool before = flags & FLAG_WORD, after = n->words && is_word(byte);

	/* no boundary, nor the lack of one, is inside a character */
	if ((kind == RE_WORD || kind == RE_NOT_WORD) && (byte & 0xC0) == 0x80)
		return false;
	switch (kind) {
	case RE_BOL:
		return flags & FLAG_BOL;
	case RE_EOL:
		return byte == '\n';
	case RE_WORD:
		return before != after;
	default:
		return before == after;
	}
}

static int place_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Where the places of `from` lead over `byte`, into d->places. True when a match ends before it. */
static bool step(struct dfa *d, const struct state *from, unsigned byte)
{
	const struct nfa *n = d->nfa;
	uint32_t seen = ++d->generation, top = 0;
	uint32_t *next_mark = d->stack + 3 * n->count + 8; /* the stack's upper part holds the places that follow */
	uint32_t follow = 0;

	for (uint32_t i = 0; i < from->len; i++)
		d->stack[top++] = d->pool[from->at + i];
	while (top) {
		uint32_t pc = d->stack[--top];
		const struct inst *in = &n->insts[pc];

		if (d->mark[pc] == seen)
			continue;
		d->mark[pc] = seen;
		d->work++;
		if (in->op == OP_MATCH)
			return true;
		if (in->op == OP_SET) {
			if (set_has(&n->sets[in->other], byte))
				next_mark[follow++] = in->next;
			continue;
		}
		if (in->op == OP_SPLIT && d->mark[in->other] != seen)
			d->stack[top++] = in->other;
		if ((in->op == OP_SPLIT || holds(n, in->other, from->flags, byte)) && d->mark[in->next] != seen)
			d->stack[top++] = in->next;
	}
	next_mark[follow++] = n->start; /* a match may begin anywhere */
	qsort(next_mark, follow, sizeof(*next_mark), place_cmp);
	d->place_count = 0;
	for (uint32_t i = 0; i < follow; i++)
		if (i == 0 || next_mark[i] != next_mark[i - 1])
			d->places[d->place_count++] = next_mark[i];
	return false;
}

/* Fills the transition of `state` over `class`; returns the next state. */
static uint32_t make(struct dfa *d, uint32_t state, unsigned class)
{
	unsigned byte = d->nfa->sample[class];
	struct state from = d->states[state];
	uint32_t to;

	if (step(d, &from, byte))
		to = ROW_MATCH;
	else if (byte == '\n')
		to = d->start;
	else
		to = intern(d, d->nfa->words && is_word(byte) ? FLAG_WORD : 0);
	d->rows[(size_t)state * d->nfa->classes + class] = to * d->nfa->classes;
	return to;
}

static bool cache_full(const struct dfa *d)
{
	return (size_t)d->count * d->nfa->classes * sizeof(*d->rows) + d->pool_len * sizeof(*d->pool) > CACHE_BYTES;
}

/* The row to continue with after an unknown transition. When there is no room, all other states are dropped; the one
   that is needed now is rebuilt from its places. */
static uint32_t learn(struct dfa *d, uint32_t row, unsigned class)
{
	uint32_t k = d->nfa->classes, to = make(d, row / k, class);

	if (to < ROW_FIRST || !cache_full(d))
		return to * k;
	memcpy(d->places, d->pool + d->states[to].at, d->states[to].len * sizeof(*d->pool));
	{
		uint32_t len = d->states[to].len, *keep = xmalloc(len * sizeof(*keep));
		uint8_t flags = d->states[to].flags;

		memcpy(keep, d->places, len * sizeof(*keep));
		start_over(d);
		memcpy(d->places, keep, len * sizeof(*keep));
		d->place_count = len;
		free(keep);
		return intern(d, flags) * k;
	}
}

size_t dfa_find(struct dfa *d, struct str data, size_t from)
{
	const uint8_t *p = (const uint8_t *)data.ptr + from, *end = (const uint8_t *)data.ptr + data.len;
	const uint8_t *class_of = d->nfa->class_of;
	uint32_t row, first = ROW_FIRST * d->nfa->classes;

	if (!d->count)
		start_over(d);
	row = d->start * d->nfa->classes;
	for (; p < end; p++) {
		uint32_t next = d->rows[row + class_of[*p]];

		if (next < first) {
			if (next == ROW_UNKNOWN)
				next = learn(d, row, class_of[*p]);
			if (next == ROW_MATCH * d->nfa->classes)
				return (size_t)(p - (const uint8_t *)data.ptr);
			if (d->work > WORK_MAX)
				return DFA_WORK;
		}
		row = next;
	}
	if (data.len == from || data.ptr[data.len - 1] == '\n')
		return DFA_NONE;
	row = learn(d, row, class_of['\n']);
	return row == ROW_MATCH * d->nfa->classes ? data.len : DFA_NONE;
}
