/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcripts, word for word: golden/NAME.jsonl has lines {"client":…} and {"server":…}. Each request waits for its
 * answer; what comes before that belongs to it. STEAD_GOLDEN=write rewrites the server's lines. Versions of files
 * differ from run to run: they are numbered in the order in which they appear.
 */
#include "session.h"

struct transcript {
	struct session session;
	struct arena *arena;
	struct buf got;
	struct str versions[64];
	size_t version_count;
};

static void note_version(struct transcript *t, struct str version)
{
	for (size_t i = 0; i < t->version_count; i++)
		if (str_eq(t->versions[i], version))
			return;
	if (version.len >= 8 && t->version_count < 64)
		t->versions[t->version_count++] = version;
}

/* Members named "version", and "version 12ab…" in a text. */
static void note_versions(struct transcript *t, const struct jv *v)
{
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		struct str s = jv_str_of(m->value);
		size_t at = str_find(s, STR("version "), 0);

		if (str_is(m->key, "version")) {
			note_version(t, s);
		} else if (at != SIZE_MAX) {
			s = str_from(s, at + 8);
			note_version(t, str_first(s, strspn(s.ptr, "0123456789abcdef")));
		}
		note_versions(t, m->value);
	}
}

/* The text with each known version replaced by its number. */
static struct str number_versions(struct transcript *t, struct str text)
{
	for (size_t i = 0; i < t->version_count; i++) {
		size_t at;

		while ((at = str_find(text, t->versions[i], 0)) != SIZE_MAX)
			text = arena_printf(t->arena, "%.*s<v%zu>%s", (int)at, text.ptr, i + 1,
					    text.ptr + at + t->versions[i].len);
	}
	return text;
}

static void record(struct transcript *t, const char *who, const struct jv *message)
{
	struct buf b;

	buf_init(&b, t->arena, 10 * MIB);
	jv_write(&b, message);
	buf_char(&b, '\0');
	note_versions(t, jv_get(jv_get(message, "result"), "structuredContent"));
	note_versions(t, jv_get(jv_get(message, "result"), "content"));
	buf_printf(&t->got, "{\"%s\":%s}\n", who, number_versions(t, str_n(b.ptr, b.len - 1)).ptr);
}

/* Plays the client's part of the transcript. */
static void play(struct transcript *t, struct str script)
{
	struct str line;

	while (str_cut(&script, '\n', &line)) {
		const struct jv *message;
		struct err err = {0};
		struct jv *v, *reply;
		struct buf b;

		CHECK_OK(jv_parse(t->arena, line, &v, &err), err);
		message = jv_get(v, "client");
		if (!message)
			continue;
		record(t, "client", message);
		buf_init(&b, t->arena, 10 * MIB);
		jv_write(&b, message);
		buf_char(&b, '\n');
		session_send(&t->session, buf_str(&b));
		/* a listener is answered by a notification; its result comes at the end */
		while (jv_get(message, "id") && (reply = session_next(&t->session))) {
			record(t, "server", reply);
			if (jv_get(reply, "id") || str_is(jv_get_str(message, "method"), "subscriptions/listen"))
				break;
		}
	}
}

static struct str load(struct arena *arena, const char *path)
{
	static char bytes[4 << 20];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		TEST_FAIL("%s cannot be read", path);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	return str_trim(arena_str(arena, str_n(bytes, n)));
}

static void check_transcript(const char *name)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct transcript t = {.arena = arena};
	struct str path = arena_printf(arena, "%s/%s.jsonl", GOLDEN_DIR, name), want = load(arena, path.ptr), got, a, b;
	const char *mode = getenv("STEAD_GOLDEN");
	struct jv *last;

	setenv("STEAD_TEST_CLOCK_NS", "1790000000000000000", 1);
	buf_init(&t.got, arena, 10 * MIB);
	session_open(&t.session);
	play(&t, want);
	session_finish(&t.session);
	while ((last = session_next(&t.session)))
		record(&t, "server", last);
	got = buf_str(&t.got);
	if (mode && strcmp(mode, "write") == 0) {
		FILE *f = fopen(path.ptr, "we");

		CHECK(f && fwrite(got.ptr, 1, got.len, f) == got.len && fclose(f) == 0);
		want = str_trim(got);
	}
	while (str_cut(&want, '\n', &a)) {
		CHECK(str_cut(&got, '\n', &b));
		CHECK_STR(b, a);
	}
	CHECK_INT(str_trim(got).len, 0);
	session_close(&t.session);
}

TEST(the_legacy_transcript_is_answered_word_for_word)
{
	check_transcript("legacy");
}

TEST(the_modern_transcript_is_answered_word_for_word)
{
	check_transcript("modern");
}

TEST(the_oldest_revision_is_answered_word_for_word)
{
	check_transcript("oldest");
}

TEST(refusals_are_answered_word_for_word)
{
	check_transcript("refusals");
}
