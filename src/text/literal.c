/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ways. One literal: its two rarest bytes are compared with 32 places at once, at their distance from each other.
 * Several: three bytes of each ("fingerprint", again the rarest ones) are looked up by their half bytes with a shuffle,
 * which says for 32 places at once in which of eight buckets a literal may start there (known as Teddy, from
 * Hyperscan). What survives is compared in full. Case folds by comparing letters with bit 0x20 set, or by filling both
 * cases in.
 *
 * AVX2 is chosen at run time. Elsewhere one literal is found with memchr() of its rarest byte and several by a table of
 * first bytes: slower, but the same answers.
 */
#include "text/literal.h"
#include "base/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2_BUILD 1
#define AVX2           __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define HAS_AVX2_BUILD 0
#endif

#define BUCKETS     8
#define FINGERPRINT 3

struct one {
	struct str text;                  /* lower case when nocase */
	size_t at, at2;                   /* single: the two rare bytes; several: at is where the fingerprint starts */
	unsigned char b, b2, fold, fold2; /* fold: 0x20 for a letter when nocase */
};

struct literals {
	bool nocase, avx2;
	size_t count, print_len, longest;
	struct one *lits;
	uint8_t bucket_count[BUCKETS];
	uint8_t buckets[BUCKETS][LITERALS_MAX];
	/* [position][half byte]: the buckets that have such a byte there */
	_Alignas(32) uint8_t low[FINGERPRINT][32], high[FINGERPRINT][32];
	bool first[256]; /* without AVX2 */
};

static bool is_letter(unsigned char c)
{
	c |= 0x20;
	return c >= 'a' && c <= 'z';
}

/* Source code and prose, from the most frequent byte down; what is not here is rare. */
static unsigned byte_rarity(unsigned char c)
{
	static const char order[] =
		" etraionsldcpu_fm\thg,b.();-*/0>=vy1:x\"wSETkR2AIC&O|NL3DP<4{}FM[]U8#56BGq'z+79jVHXW!WY%\\KQ?$@~ZJ^`";
	const char *at = c ? memchr(order, c, sizeof(order) - 1) : NULL;

	if (at)
		return 1 + (unsigned)(at - order);
	return c >= 0x80 ? 110 : 120;
}

static unsigned rarity(unsigned char c, bool nocase)
{
	unsigned a = byte_rarity(c), b;

	if (!nocase || !is_letter(c))
		return a;
	b = byte_rarity(c ^ 0x20);
	return a < b ? a : b;
}

unsigned literal_rarity(struct str text, bool nocase)
{
	unsigned sum = 0, best = 0;

	for (size_t i = 0; i < text.len && i < 8; i++)
		sum += 12;
	for (size_t i = 0; i < text.len; i++) {
		unsigned r = rarity((unsigned char)text.ptr[i], nocase);

		best = r > best ? r : best;
	}
	return text.len ? sum + best : 0;
}

static void choose_two(struct one *one, bool nocase)
{
	const unsigned char *p = (const unsigned char *)one->text.ptr;
	size_t best = 0, second;

	for (size_t i = 1; i < one->text.len; i++)
		if (rarity(p[i], nocase) > rarity(p[best], nocase))
			best = i;
	second = best ? 0 : one->text.len - 1;
	for (size_t i = 0; i < one->text.len; i++)
		if (i != best && p[i] != p[best] && rarity(p[i], nocase) > rarity(p[second], nocase))
			second = i;
	one->at = best;
	one->at2 = second;
	one->b = p[best];
	one->b2 = p[second];
	one->fold = nocase && is_letter(one->b) ? 0x20 : 0;
	one->fold2 = nocase && is_letter(one->b2) ? 0x20 : 0;
}

static void choose_window(struct one *one, size_t len, bool nocase)
{
	const unsigned char *p = (const unsigned char *)one->text.ptr;
	unsigned best = 0;

	for (size_t i = 0; i + len <= one->text.len; i++) {
		unsigned sum = 0;

		for (size_t j = 0; j < len; j++)
			sum += rarity(p[i + j], nocase);
		if (sum > best) {
			best = sum;
			one->at = i;
		}
	}
}

static void fill_masks(struct literals *l, const struct one *one, unsigned bucket)
{
	for (size_t i = 0; i < l->print_len; i++) {
		unsigned char c = (unsigned char)one->text.ptr[one->at + i];
		unsigned forms = l->nocase && is_letter(c) ? 2 : 1;

		for (unsigned f = 0; f < forms; f++, c ^= 0x20) {
			uint8_t bit = (uint8_t)(1u << bucket);

			l->low[i][c & 15] |= bit;
			l->low[i][16 + (c & 15)] |= bit;
			l->high[i][c >> 4] |= bit;
			l->high[i][16 + (c >> 4)] |= bit;
			if (i == 0)
				l->first[c] = true;
		}
	}
}

const struct literals *literals_new(struct arena *arena, const struct str *texts, size_t count, bool nocase)
{
	/* AVX2 loads want the tables aligned; an arena promises less */
	char *raw = arena_alloc(arena, sizeof(struct literals) + 32);
	struct literals *l = (struct literals *)(((uintptr_t)raw + 31) & ~(uintptr_t)31);
	size_t shortest = SIZE_MAX;

	l->nocase = nocase;
	l->count = count;
	l->lits = ARENA_ARRAY(arena, struct one, count);
#if HAS_AVX2_BUILD
	l->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
	for (size_t i = 0; i < count; i++) {
		char *copy = arena_alloc_raw(arena, texts[i].len + 1);

		for (size_t j = 0; j < texts[i].len; j++)
			copy[j] = (char)(nocase ? ascii_lower((unsigned char)texts[i].ptr[j])
						: (unsigned char)texts[i].ptr[j]);
		l->lits[i].text = str_n(copy, texts[i].len);
		shortest = texts[i].len < shortest ? texts[i].len : shortest;
		l->longest = texts[i].len > l->longest ? texts[i].len : l->longest;
	}
	l->print_len = shortest < FINGERPRINT ? shortest : FINGERPRINT;
	for (size_t i = 0; i < count; i++) {
		unsigned bucket = (unsigned)(i * BUCKETS / (count < BUCKETS ? BUCKETS : count));

		if (count == 1) {
			choose_two(&l->lits[i], nocase);
			continue;
		}
		choose_window(&l->lits[i], l->print_len, nocase);
		l->buckets[bucket][l->bucket_count[bucket]++] = (uint8_t)i;
		fill_masks(l, &l->lits[i], bucket);
	}
	return l;
}

static bool equal_at(const struct literals *l, const struct one *one, const char *p)
{
	if (!l->nocase)
		return memcmp(p, one->text.ptr, one->text.len) == 0;
	for (size_t i = 0; i < one->text.len; i++)
		if (ascii_lower((unsigned char)p[i]) != (unsigned char)one->text.ptr[i])
			return false;
	return true;
}

/* True when the literal is here with its byte `one->at` at index `i`. */
static bool fits(const struct literals *l, const struct one *one, struct str data, size_t from, size_t i)
{
	return i >= from + one->at && i - one->at + one->text.len <= data.len &&
	       equal_at(l, one, data.ptr + (i - one->at));
}

static size_t find_one_portable(const struct literals *l, struct str data, size_t from)
{
	const struct one *one = &l->lits[0];

	for (size_t i = from + one->at; i < data.len; i++) {
		if (!one->fold) {
			const char *p = memchr(data.ptr + i, one->b, data.len - i);

			if (!p)
				return SIZE_MAX;
			i = (size_t)(p - data.ptr);
		}
		if (((unsigned char)data.ptr[i] | one->fold) == one->b && fits(l, one, data, from, i))
			return i;
	}
	return SIZE_MAX;
}

/* Index `i` has the first byte of some fingerprint. */
static bool fits_any(const struct literals *l, struct str data, size_t from, size_t i, unsigned buckets)
{
	for (; buckets; buckets &= buckets - 1) {
		unsigned b = (unsigned)__builtin_ctz(buckets);

		for (unsigned k = 0; k < l->bucket_count[b]; k++)
			if (fits(l, &l->lits[l->buckets[b][k]], data, from, i))
				return true;
	}
	return false;
}

static size_t find_many_portable(const struct literals *l, struct str data, size_t from)
{
	for (size_t i = from; i < data.len; i++)
		if (l->first[(unsigned char)data.ptr[i]] && fits_any(l, data, from, i, (1u << BUCKETS) - 1))
			return i;
	return SIZE_MAX;
}

#if HAS_AVX2_BUILD
AVX2 static inline unsigned pair_mask(const char *p, const struct one *one, __m256i fold, __m256i fold2, __m256i b,
				      __m256i b2)
{
	__m256i x = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)(const void *)(p + one->at)), fold);
	__m256i y = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)(const void *)(p + one->at2)), fold2);

	return (unsigned)_mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(x, b), _mm256_cmpeq_epi8(y, b2)));
}

/* Places where the literal may start, 32 at a time; the last block overlaps the one before it. */
AVX2 static size_t find_one_avx2(const struct literals *l, struct str data, size_t from)
{
	const struct one *one = &l->lits[0];
	const __m256i b = _mm256_set1_epi8((char)one->b), b2 = _mm256_set1_epi8((char)one->b2);
	const __m256i fold = _mm256_set1_epi8((char)one->fold), fold2 = _mm256_set1_epi8((char)one->fold2);
	size_t starts, i = from;

	if (data.len - from < one->text.len + 31)
		return find_one_portable(l, data, from);
	starts = data.len - one->text.len + 1;
	while (i < starts) {
		unsigned mask;

		for (; i + 64 <= starts; i += 64) {
			unsigned m1 = pair_mask(data.ptr + i, one, fold, fold2, b, b2);
			unsigned m2 = pair_mask(data.ptr + i + 32, one, fold, fold2, b, b2);

			if (m1 | m2) {
				i += m1 ? 0 : 32;
				break;
			}
		}
		if (i + 32 > starts)
			i = starts - 32;
		for (mask = pair_mask(data.ptr + i, one, fold, fold2, b, b2); mask; mask &= mask - 1) {
			size_t at = i + (unsigned)__builtin_ctz(mask);

			if (equal_at(l, one, data.ptr + at))
				return at;
		}
		i += 32;
	}
	return SIZE_MAX;
}

AVX2 static inline __m256i print_mask(const struct literals *l, const char *p, size_t n)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i res = _mm256_set1_epi8((char)0xFF);

	for (size_t k = 0; k < n; k++) {
		__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + k));
		__m256i lo = _mm256_and_si256(x, nibble);
		__m256i hi = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);
		__m256i tlo = _mm256_load_si256((const __m256i *)(const void *)l->low[k]);
		__m256i thi = _mm256_load_si256((const __m256i *)(const void *)l->high[k]);

		res = _mm256_and_si256(res,
				       _mm256_and_si256(_mm256_shuffle_epi8(tlo, lo), _mm256_shuffle_epi8(thi, hi)));
	}
	return res;
}

AVX2 static inline __attribute__((always_inline)) size_t find_many_n(const struct literals *l, struct str data,
								     size_t from, const size_t n)
{
	size_t starts, i = from;

	if (data.len - from < n + 31)
		return find_many_portable(l, data, from);
	starts = data.len - n + 1;
	while (i < starts) {
		__m256i res;
		_Alignas(32) uint8_t hits[32];
		unsigned mask;

		if (i + 32 > starts)
			i = starts - 32;
		res = print_mask(l, data.ptr + i, n);
		if (!_mm256_testz_si256(res, res)) {
			mask = ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(res, _mm256_setzero_si256()));
			_mm256_store_si256((__m256i *)(void *)hits, res);
			for (; mask; mask &= mask - 1) {
				unsigned k = (unsigned)__builtin_ctz(mask);

				if (fits_any(l, data, from, i + k, hits[k]))
					return i + k;
			}
		}
		i += 32;
	}
	return SIZE_MAX;
}

AVX2 static size_t find_many_avx2(const struct literals *l, struct str data, size_t from)
{
	if (l->print_len == 3)
		return find_many_n(l, data, from, 3);
	if (l->print_len == 2)
		return find_many_n(l, data, from, 2);
	return find_many_n(l, data, from, 1);
}

AVX2 static uint64_t newline_count_avx2(const char *p, size_t len)
{
	const __m256i nl = _mm256_set1_epi8('\n');
	uint64_t n = 0;
	size_t i = 0;

	while (i + 32 <= len) {
		__m256i acc = _mm256_setzero_si256();

		/* a byte counts to 255 at most before it is added up */
		for (unsigned k = 0; k < 255 && i + 32 <= len; k++, i += 32)
			acc = _mm256_sub_epi8(
				acc, _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(const void *)(p + i)), nl));
		acc = _mm256_sad_epu8(acc, _mm256_setzero_si256());
		n += (uint64_t)_mm256_extract_epi64(acc, 0) + (uint64_t)_mm256_extract_epi64(acc, 1) +
		     (uint64_t)_mm256_extract_epi64(acc, 2) + (uint64_t)_mm256_extract_epi64(acc, 3);
	}
	for (; i < len; i++)
		n += p[i] == '\n';
	return n;
}
#endif

size_t literals_find(const struct literals *l, struct str data, size_t from)
{
#if HAS_AVX2_BUILD
	if (l->avx2)
		return l->count == 1 ? find_one_avx2(l, data, from) : find_many_avx2(l, data, from);
#endif
	return l->count == 1 ? find_one_portable(l, data, from) : find_many_portable(l, data, from);
}

uint64_t newline_count(const char *p, size_t len)
{
	uint64_t n = 0;

#if HAS_AVX2_BUILD
	if (len >= 64 && __builtin_cpu_supports("avx2"))
		return newline_count_avx2(p, len);
#endif
	for (size_t i = 0; i < len; i++)
		n += p[i] == '\n';
	return n;
}
