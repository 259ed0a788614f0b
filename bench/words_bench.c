/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search over 100,000 notes compared with SQLite's FTS5, in one process and in turns: the same texts, the same
 * questions of one to three words of which any may match, the ten best by BM25. Prints rows of a table. words_bench DIR
 * [NOTES [SECONDS]]      SECONDS: how long 500 notes a second are written while searching (default 10)
 */
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "home/search/search.h"
#include "index/words_format.h"

#define VOCABULARY 60000
#define QUESTIONS  300
#define BUILDS     3

static uint64_t seed = 7;

static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* Words as people use them: the n-th most frequent about 1/n as often as the first. */
static unsigned word(void)
{
	return (unsigned)pow(VOCABULARY, uniform()) - 1;
}

static void spell(struct buf *out, unsigned n)
{
	static const char syllables[][3] = {"ka", "lo", "mi", "nu", "re", "sa", "te", "vo",
					    "za", "bi", "du", "fe", "gi", "ho", "ju", "py"};

	n = n * 2654435761u % 1048576u;
	for (int i = 0; i < 5; i++, n /= 16)
		buf_add(out, str_of(syllables[n % 16]));
}

struct note {
	struct str path, title, body;
};

static struct note *make_notes(struct arena *arena, size_t count)
{
	struct note *notes = ARENA_ARRAY(arena, struct note, count);

	for (size_t i = 0; i < count; i++) {
		struct buf text;
		unsigned words = 20 + (unsigned)(pow(uniform(), 2) * 160);

		buf_init(&text, arena, 1 << 20);
		for (unsigned k = 0; k < 4; k++) {
			spell(&text, word());
			buf_char(&text, ' ');
		}
		notes[i].title = arena_str(arena, str_trim(buf_str(&text)));
		buf_init(&text, arena, 1 << 20);
		for (unsigned k = 0; k < words; k++) {
			spell(&text, word());
			buf_char(&text, k % 12 == 11 ? '\n' : ' ');
		}
		notes[i].body = buf_str(&text);
		notes[i].path = arena_printf(arena, "notes/n%06zu.md", i);
	}
	return notes;
}

struct question {
	struct str terms[3];
	size_t count;
	char match[128];
};

/* Words of the middle: neither in nearly every note nor in none. */
static struct question *make_questions(struct arena *arena)
{
	struct question *q = ARENA_ARRAY(arena, struct question, QUESTIONS);

	for (size_t i = 0; i < QUESTIONS; i++) {
		q[i].count = 1 + i % 3;
		for (size_t k = 0; k < q[i].count; k++) {
			struct buf text;

			buf_init(&text, arena, 1000);
			spell(&text, word());
			q[i].terms[k] = buf_str(&text);
			snprintf(q[i].match + strlen(q[i].match), sizeof q[i].match - strlen(q[i].match), "%s%.*s",
				 k ? " OR " : "", STR_ARG(q[i].terms[k]));
		}
	}
	return q;
}

static double now_ms(void)
{
	return (double)clock_monotonic_ns() / 1e6;
}

static int by_value(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double at(double *times, size_t n, double part)
{
	qsort(times, n, sizeof *times, by_value);
	return times[(size_t)((double)(n - 1) * part)];
}

static void row(const char *what, double ours, double theirs, const char *unit, const char *wanted)
{
	printf("| %s | %.3f %s | %.3f | **%.3g** | %s |\n", what, ours, unit, theirs, ours / theirs, wanted);
	fflush(stdout);
}

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "words_bench: %s\n", what);
	exit(1);
}

/* --- SQLite --- */

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail(sqlite3_errmsg(db));
}

static sqlite3 *fts_build(const char *path, const struct note *notes, size_t count, double *ret_ms)
{
	sqlite3 *db;
	sqlite3_stmt *insert;
	double began = now_ms();

	unlink(path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		fail("cannot open the database");
	run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-262144");
	run(db, "CREATE VIRTUAL TABLE notes USING fts5(title, body); BEGIN");
	sqlite3_prepare_v2(db, "INSERT INTO notes(rowid, title, body) VALUES (?, ?, ?)", -1, &insert, NULL);
	for (size_t i = 0; i < count; i++) {
		sqlite3_bind_int64(insert, 1, (sqlite3_int64)i + 1);
		sqlite3_bind_text(insert, 2, notes[i].title.ptr, (int)notes[i].title.len, SQLITE_STATIC);
		sqlite3_bind_text(insert, 3, notes[i].body.ptr, (int)notes[i].body.len, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			fail(sqlite3_errmsg(db));
		sqlite3_reset(insert);
	}
	sqlite3_finalize(insert);
	run(db, "COMMIT");
	*ret_ms = now_ms() - began;
	return db;
}

static double fts_ask(sqlite3_stmt *select, const struct question *q)
{
	double began = now_ms();

	sqlite3_bind_text(select, 1, q->match, -1, SQLITE_STATIC);
	while (sqlite3_step(select) == SQLITE_ROW)
		(void)sqlite3_column_int64(select, 0);
	sqlite3_reset(select);
	return now_ms() - began;
}

/* --- Stead --- */

static struct words_view *words_build(const char *path, const struct note *notes, size_t count, double *ret_ms)
{
	double began = now_ms();
	struct words_builder *b = words_builder_new();
	struct words_segment *made, *mapped;
	struct words_view *view;
	struct err err;

	for (size_t i = 0; i < count; i++) {
		struct words_doc doc = {
			.title = notes[i].title, .body = notes[i].body, .area = 1, .time_ns = (int64_t)i};

		words_builder_file(b, notes[i].path, STR("v"));
		words_builder_add(b, &doc);
	}
	made = words_builder_finish(b);
	words_builder_destroy(b);
	unlink(path);
	if (words_segment_save(made, path, &err) != 0 || words_segment_open(path, &mapped, &err) != 0)
		fail(err.msg);
	words_segment_unref(made);
	view = words_view_new(&mapped, 1);
	words_segment_unref(mapped);
	*ret_ms = now_ms() - began;
	return view;
}

static void plan(const struct question *q, struct words_clause *clauses, struct words_query *ret)
{
	for (size_t k = 0; k < q->count; k++)
		clauses[k] = (struct words_clause){.term = q->terms[k], .weight = 1, .phrase = -1};
	*ret = (struct words_query){.clauses = clauses, .count = q->count, .areas = 1, .top = 10};
}

static double words_ask(const struct words_view *view, struct arena *arena, const struct question *q,
			struct words_hits *hits)
{
	double began = now_ms();
	struct ctx ctx = {.arena = arena};
	struct words_clause clauses[3];
	struct words_query query;
	struct err err;

	arena_reset(arena);
	plan(q, clauses, &query);
	if (words_search(view, &ctx, &query, hits, &err) != 0)
		fail(err.msg);
	return now_ms() - began;
}

/* Every document, by the formula alone. True when the ten best are the same ones. */
static bool same_as_exact(const struct words_view *view, const struct question *q, const struct words_hits *hits,
			  int64_t *scores)
{
	const struct words_segment *s = view->segments[0];
	double average = (double)view->total_len / (double)view->docs;
	uint32_t docs[WORDS_BLOCK], freqs[WORDS_BLOCK];

	memset(scores, 0, s->head->docs * sizeof *scores);
	for (size_t k = 0; k < q->count; k++) {
		uint64_t have;
		double idf = words_idf(view, q->terms[k], &have);
		uint32_t t = words_term_find(s, q->terms[k]);

		for (uint32_t b = 0; t != WORDS_NONE && b < words_block_count(&s->terms[t]); b++) {
			uint32_t block = s->terms[t].block + b;
			uint32_t n = words_block_read(s, block, words_block_base(s, &s->terms[t], block), docs, freqs);

			for (uint32_t i = 0; i < n; i++)
				scores[docs[i]] +=
					(int64_t)(idf * (WORDS_K1 + 1) * WORDS_ONE * freqs[i] /
						  (freqs[i] + (WORDS_K1 * (1 - WORDS_B) +
							       WORDS_K1 * WORDS_B / average * s->lens[docs[i]])));
		}
	}
	for (size_t i = 0; i < hits->count; i++) {
		uint32_t best = 0;

		for (uint32_t d = 0; d < s->head->docs; d++)
			if (scores[d] >= scores[best]) /* the later note is the newer one */
				best = d;
		if (hits->hits[i].doc != best || hits->hits[i].score != scores[best])
			return false;
		scores[best] = -1;
	}
	return true;
}

static void compare_index(const char *dir, const struct note *notes, size_t count, const struct question *questions)
{
	char path[512];
	double build[2][BUILDS], *ours = malloc(sizeof(double) * QUESTIONS);
	double *theirs = malloc(sizeof(double) * QUESTIONS);
	int64_t *scores = malloc(sizeof *scores * (count + 1));
	struct arena *arena = arena_new();
	struct words_view *view = NULL;
	struct words_hits hits;
	sqlite3_stmt *select;
	sqlite3 *db = NULL;
	size_t same = 0, checked = 0;

	for (int r = 0; r < BUILDS; r++) {
		sqlite3_close(db);
		words_view_unref(view);
		snprintf(path, sizeof path, "%s/fts.db", dir);
		db = fts_build(path, notes, count, &build[1][r]);
		snprintf(path, sizeof path, "%s/words", dir);
		view = words_build(path, notes, count, &build[0][r]);
	}
	row("index build", at(build[0], BUILDS, 0.5), at(build[1], BUILDS, 0.5), "ms", "≤ 1.0");
	sqlite3_prepare_v2(db, "SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY bm25(notes, 3.0, 1.0) LIMIT 10",
			   -1, &select, NULL);
	for (size_t i = 0; i < QUESTIONS; i++) {
		theirs[i] = fts_ask(select, &questions[i]);
		ours[i] = words_ask(view, arena, &questions[i], &hits);
		if (i % 3 == 0) {
			checked++;
			same += same_as_exact(view, &questions[i], &hits, scores);
		}
	}
	row("search, 1-3 words, p50", at(ours, QUESTIONS, 0.5), at(theirs, QUESTIONS, 0.5), "ms", "≤ 0.1");
	row("search, 1-3 words, p99", at(ours, QUESTIONS, 0.99), at(theirs, QUESTIONS, 0.99), "ms", "≤ 0.1");
	printf("| the ten best are those of exact BM25 | %zu of %zu questions | | | all |\n", same, checked);
	sqlite3_finalize(select);
	sqlite3_close(db);
	words_view_unref(view);
	arena_destroy(arena);
	free(ours);
	free(theirs);
	free(scores);
}

/* --- the whole way --- */

static void write_note(struct workspace *ws, struct arena *arena, const char *path, struct str title, struct str body)
{
	struct ctx ctx = {.arena = arena};
	struct str text =
		arena_printf(arena, "---\ntitle: %.*s\nkind: finding\n---\n%.*s", STR_ARG(title), STR_ARG(body));
	struct err err;

	if (store_write(workspace_home(ws), &ctx, (struct wpath){str_of(path)}, text, (struct store_cond){0}, NULL,
			&err))
		fail(err.msg);
}

static double home_ask(struct workspace *ws, struct arena *arena, struct str text, struct search_hits *hits)
{
	struct ctx ctx = {.arena = arena};
	struct search_query query = {.text = text};
	struct err err;
	double began = now_ms();

	if (home_search(ws, &ctx, &query, hits, &err) != 0)
		fail(err.msg);
	return now_ms() - began;
}

struct load {
	struct workspace *ws;
	const struct note *notes;
	size_t count;
	double seconds;
	double slowest;
	size_t written;
};

static void *write_steadily(void *arg)
{
	struct load *load = arg;
	struct arena *arena = arena_new();
	double began = now_ms();

	for (size_t i = 0; now_ms() - began < load->seconds * 1000; i++) {
		double due = began + (double)i * 2, wait = due - now_ms(), t;
		char path[64];

		if (wait > 0)
			nanosleep(&(struct timespec){0, (long)(wait * 1e6)}, NULL);
		snprintf(path, sizeof path, "notes/load%06zu.md", i);
		t = now_ms();
		write_note(load->ws, arena, path, load->notes[i % load->count].title,
			   load->notes[i % load->count].body);
		t = now_ms() - t;
		load->slowest = t > load->slowest ? t : load->slowest;
		load->written = i + 1;
		arena_reset(arena);
	}
	arena_destroy(arena);
	return NULL;
}

static void under_load(struct workspace *ws, const struct note *notes, size_t count, const struct question *q,
		       double seconds)
{
	struct load load = {.ws = ws, .notes = notes, .count = count, .seconds = seconds};
	size_t cap = 200000, n = 0;
	double *times = malloc(cap * sizeof *times), began = now_ms(), most;
	struct arena *arena = arena_new();
	struct search_hits hits;
	pthread_t writer;

	pthread_create(&writer, NULL, write_steadily, &load);
	while (now_ms() - began < seconds * 1000 && n < cap) {
		const struct question *one = &q[n % QUESTIONS];

		times[n++] = home_ask(ws, arena, one->terms[0], &hits);
		arena_reset(arena);
		nanosleep(&(struct timespec){0, 5000000}, NULL);
	}
	pthread_join(writer, NULL);
	most = at(times, n, 1);
	printf("| %.0f notes/s written for %.0f s: search p50, p99, slowest | %.2f, %.2f, %.2f ms | | | p99 ≤ 20 ms, "
	       "all ≤ 100 ms |\n",
	       (double)load.written / seconds, seconds, at(times, n, 0.5), at(times, n, 0.99), most);
	printf("| the slowest write then | %.2f ms | | | ≤ 100 ms |\n", load.slowest);
	free(times);
	arena_destroy(arena);
}

static void whole_way(const char *dir, const struct note *notes, size_t count, const struct question *questions,
		      double seconds)
{
	struct arena *arena = arena_new(), *call = arena_new();
	struct workspace_opts opts = {.store_url = arena_printf(arena, "disk:%s/store", dir),
				      .name = STR("bench"),
				      .create = true,
				      .relaxed = true};
	double *times = malloc(sizeof(double) * QUESTIONS), first, visible[50];
	struct search_hits hits;
	struct workspace *ws;
	struct err err;

	if (workspace_open(&opts, &ws, &err) != 0)
		fail(err.msg);
	for (size_t i = 0; i < count; i++) {
		write_note(ws, call, arena_printf(call, "%.*s", STR_ARG(notes[i].path)).ptr, notes[i].title,
			   notes[i].body);
		arena_reset(call);
	}
	first = home_ask(ws, call, STR("kalo"), &hits);
	printf("| first search: %zu files read, indexed and searched | %.0f ms | | | |\n", count, first);
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct buf text;

		arena_reset(call);
		buf_init(&text, call, 1000);
		for (size_t k = 0; k < questions[i].count; k++)
			buf_printf(&text, "%.*s ", STR_ARG(questions[i].terms[k]));
		times[i] = home_ask(ws, call, buf_str(&text), &hits);
	}
	printf("| `home_search` with endings, total and ten passages, p50, p99 | %.3f, %.3f ms | | | |\n",
	       at(times, QUESTIONS, 0.5), at(times, QUESTIONS, 0.99));
	for (size_t i = 0; i < 50; i++) {
		struct str token = arena_printf(arena, "fresh%zuword", i);

		write_note(ws, call, arena_printf(arena, "notes/fresh%zu.md", i).ptr, token, token);
		visible[i] = home_ask(ws, call, token, &hits);
		if (hits.total != 1)
			fail("a new note was not found");
		arena_reset(call);
	}
	printf("| a new note is found: write returned to hit, p50, slowest | %.2f, %.2f ms | | | ≤ 5 ms |\n",
	       at(visible, 50, 0.5), at(visible, 50, 1));
	under_load(ws, notes, count, questions, seconds);
	workspace_close(ws);
	free(times);
	arena_destroy(call);
	arena_destroy(arena);
}

int main(int argc, char **argv)
{
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
	double seconds = argc > 3 ? strtod(argv[3], NULL) : 10;
	struct arena *arena = arena_new();
	struct note *notes;
	struct question *questions;

	if (argc < 2 || !count)
		fail("words_bench DIR [NOTES [SECONDS]]");
	notes = make_notes(arena, count);
	questions = make_questions(arena);
	compare_index(argv[1], notes, count, questions);
	if (seconds > 0)
		whole_way(argv[1], notes, count, questions, seconds);
	arena_destroy(arena);
	return 0;
}
