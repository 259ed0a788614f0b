/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "test.h"
#include "text/terms.h"

static void write_term(void *arg, const struct term *term)
{
	struct buf *buf = arg;

	buf_printf(buf, "%s%.*s%s@%u", buf->len ? " " : "", STR_ARG(term->text), term->flags & TERM_EXTRA ? "+" : "",
		   term->pos);
}

/* "word@position", with a '+' where the term is another form of the word there. */
static struct str terms_of(struct arena *arena, const char *text)
{
	struct buf buf;

	buf_init(&buf, arena, 10000);
	terms_each(str_of(text), 0, write_term, &buf);
	return buf_str(&buf);
}

#define CHECK_TERMS(text, want)                                                                                        \
	do {                                                                                                           \
		ARENA_SCOPE struct arena *arena_ = arena_new();                                                        \
		CHECK_STR(terms_of(arena_, text), STR(want));                                                          \
	} while (0)

TEST(words_are_folded_and_numbered)
{
	CHECK_TERMS("Hello, WORLD! 42", "hello@0 world@1 42@2");
	CHECK_TERMS("", "");
	CHECK_TERMS(" ... ", "");
}

TEST(a_possessive_is_the_word_and_a_contraction_is_one_word)
{
	CHECK_TERMS("Anna's dog doesn't bark", "anna@0 dog@1 doesnt@2 bark@3");
}

TEST(identifiers_are_found_whole_and_by_part)
{
	CHECK_TERMS("max_retry", "max@0 retry@1 max_retry+@0");
	CHECK_TERMS("parseHttpRequest", "parse@0 http@1 request@2 parsehttprequest+@0");
	CHECK_TERMS("HTTPServer", "http@0 server@1 httpserver+@0");
	CHECK_TERMS("src/net/http.c:", "src@0 net@1 http@2 c@3 src/net/http.c+@0");
	CHECK_TERMS("v1.2.3 (x86)", "v1@0 2@1 3@2 v1.2.3+@0 x86@3");
}

TEST(accents_may_be_left_out)
{
	CHECK_TERMS("Café naïve", "café@0 cafe+@0 naïve@1 naive+@1");
	CHECK_TERMS("STRAẞE straße", "strasse@0 strasse@1");
	CHECK_TERMS("Йод ΆΛΦΑ", "йод@0 иод+@0 άλφα@1 αλφα+@1");
}

TEST(composed_and_decomposed_text_is_the_same)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(terms_of(arena, "cafe\xCC\x81"), terms_of(arena, "café"));
	CHECK_STR(terms_of(arena, "ﾃｽﾄ"), terms_of(arena, "テスト"));
	CHECK_STR(terms_of(arena, "ＡＢＣ１２"), terms_of(arena, "abc12"));
}

TEST(scripts_without_blanks_give_characters_and_pairs)
{
	CHECK_TERMS("東京都", "東@0 東京+@0 京@1 京都+@1 都@2");
	CHECK_TERMS("가 나다", "가@0 나@1 나다+@1 다@2");
	CHECK_TERMS("API設計v2", "api@0 設@1 設計+@1 計@2 v2@3");
	CHECK_TERMS("ไทย", "ไ@0 ไท+@0 ท@1 ทย+@1 ย@2");
}

TEST(malformed_bytes_are_gaps)
{
	CHECK_TERMS("ab\xFF\xFE"
		    "cd \xE6\x9D",
		    "ab@0 cd@1");
}
