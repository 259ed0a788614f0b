/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "text/grep.h"

TEST(a_pattern_finds_what_it_should)
{
	static const struct {
		const char *pattern, *text;
		bool found;
	} cases[] = {
		{"", "", true},
		{"a", "xay", true},
		{"^a", "xa", false},
		{"a$", "ab", false},
		{"^$", "", true},
		{"^a*$", "aaaa", true},
		{"^a*$", "aab", false},
		{"^a+$", "", false},
		{"^ab?c$", "ac", true},
		{"^ab?c$", "abbc", false},
		{"^(ab|cd)+$", "abcdab", true},
		{"^(ab|cd)+$", "abc", false},
		{"^(?:a|b|)$", "", true},
		{"^a{2,3}$", "a", false},
		{"^a{2,3}$", "aaa", true},
		{"^a{2,3}$", "aaaa", false},
		{"^a{2}$", "aa", true},
		{"^a{2,}$", "aaaaa", true},
		{"^a{0}$", "", true},
		{"^[a-z][a-z0-9_-]{1,63}$", "ab-9_", true},
		{"^[a-z][a-z0-9_-]{1,63}$", "a", false},
		{"^[^/ ]+$", "a/b", false},
		{"^[^/ ]+$", "a.b", true},
		{"^\\d+$", "123", true},
		{"^\\D+$", "12", false},
		{"^[\\d.]+$", "1.2", true},
		{"^\\w\\s\\S$", "a b", true},
		{"^.$", "\xC3\xA9", true},
		{"^.$", "\n", false},
		{"^[\xC3\xA0-\xC3\xBC]$", "\xC3\xA9", true},
		{"\\.\\$", "a.$", true},
		{"^(a(b(c)?)?)?$", "ab", true},
		{"^([01]\\d|2[0-3]):[0-5]\\d$", "23:59", true},
		{"^([01]\\d|2[0-3]):[0-5]\\d$", "24:00", false},
		{"a|^b$", "b", true},
		{"a|^b$", "bb", false},
		{"^[]", "]", false},
		{"^[a\\]]+$", "a]", true},
		{"(^a|b)c", "xbc", true},
		{"(^a|b)c", "xac", false},
		{"^[a-z]+$", "one\ntwo", false},
		{"^[a-z]+$", "one\n", false},
		{"^[^/ ]+$", "one\ntwo", true},
		{"\\bword\\b", "a word.", true},
		{"\\bword\\b", "swords", false},
		{"^(?<n>a)$", "a", true},
		{"^(a{2}){3}$", "aaaaaa", true},
		{"^a{999}$", "aaa", false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (pattern_found(str_of(cases[i].pattern), str_of(cases[i].text)) != cases[i].found)
			TEST_FAIL("%s on \"%s\" is not %d", cases[i].pattern, cases[i].text, cases[i].found);
}

TEST(what_is_not_understood_is_refused)
{
	static const char *const bad[] = {
		"(",       ")",      "a)",  "[a", "*a",         "a{2,1}", "(?=a)",  "(?!a)",
		"(?<=a)b", "(a)\\1", "\\1", "\\", "(*COMMIT)a", "a++b",   "(?>a)b", "(((ab){2000}){2000})"};
	struct err err = {0};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (pattern_check(str_of(bad[i]), &err) == 0)
			TEST_FAIL("%s is accepted", bad[i]);
}

/* A matcher that goes back tries 2^20000 ways here: it would never return. */
TEST(no_text_makes_a_pattern_slow)
{
	static char text[20000];

	memset(text, 'a', sizeof text);
	CHECK(!pattern_found(STR("^(a|aa|a*)*(a*)*$b"), str_n(text, sizeof text)));
	CHECK(!pattern_found(STR("^(a+)+b$"), str_n(text, sizeof text)));
	CHECK(!pattern_found(STR("^((a|aa)+)+$b|^(a?){99}a{99}[b]$|^((a+)*)+[bc]$"), str_n(text, sizeof text)));
}
