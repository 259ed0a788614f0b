/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations on a notebook and on a model, a plain array: after every step both agree. Then the same from eight
 * processes at once, each with a model of its own notes: no note is lost, no slug occurs twice, and every text comes
 * back as it was written. STEAD_MODEL_OPS sets the number of steps.
 */
#include <sys/wait.h>

#include "base/strmap.h"
#include "home/notebook/notebook_fix.h"

#define NOTES_MAX 4000
#define PROCESSES 8

struct model_note {
	char *slug, *title, *body;
	size_t title_len, body_len;
	uint64_t version, cited;
	bool archived;
};

struct model {
	struct model_note notes[NOTES_MAX];
	size_t count;
	uint64_t seed;
};

static uint64_t next_random(struct model *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed;
}

/* Text made of the pieces that break heads, lines and slugs. */
static struct str random_text(struct arena *arena, struct model *m, size_t pieces)
{
	static const char *const all[] = {"a",    "Plan ", "\n",     "---",     "\"", "\\",     "'",        ": ",
					  "#",    "[",     "]",      "null",    ", ", "\r",     "\t",       "é",
					  "日本", "😀",     "\x01",   "\n---\n", "~",  "%",      "{{",       "- ",
					  "key:", "|",     "\x7f\n", " ",       ">",  "\u2028", "\xC2\x85", "z"};
	struct buf b;

	buf_init(&b, arena, 1 << 20);
	for (size_t n = next_random(m) % (pieces + 1); n; n--)
		buf_add(&b, str_of(all[next_random(m) % (sizeof(all) / sizeof(all[0]))]));
	return b.len ? buf_str(&b) : STR("");
}

static char *keep(struct str s)
{
	return xstrndup(s);
}

static void model_add(struct desk *d, struct model *m)
{
	struct str title = random_text(d->arena, m, 12), body = random_text(d->arena, m, 60);
	struct note n = wrote(d, title, body);

	m->notes[m->count++] = (struct model_note){.slug = keep(n.slug),
						   .title = keep(title),
						   .body = keep(body),
						   .title_len = title.len,
						   .body_len = body.len,
						   .version = 1};
}

static void model_check(struct desk *d, const struct model_note *want)
{
	struct note n = reads(d, str_of(want->slug));

	CHECK_STR(n.title, str_n(want->title, want->title_len));
	CHECK_STR(n.body, str_n(want->body, want->body_len));
	CHECK_INT(n.version, want->version);
	CHECK_INT(n.cited, want->cited);
	CHECK_INT(n.archived_ns != 0, want->archived);
}

static void model_step(struct desk *d, struct model *m)
{
	uint64_t what = next_random(m) % 10, credited;
	struct model_note *at = m->count ? &m->notes[next_random(m) % m->count] : NULL;
	struct str body, slug;
	struct note n;

	if (!at || (what < 4 && m->count < NOTES_MAX)) {
		model_add(d, m);
		return;
	}
	slug = str_of(at->slug);
	if (what < 6) {
		body = random_text(d->arena, m, 60);
		CHECK_OK(notebook_update(d->nb, &d->ctx, slug, body, NULL, 0, &n, &d->err), d->err);
		free(at->body);
		at->body = keep(body);
		at->body_len = body.len;
		at->version++;
	} else if (what == 6) {
		at->archived = !at->archived;
		CHECK_OK(notebook_archive(d->nb, &d->ctx, slug, at->archived, &n, &d->err), d->err);
	} else if (what == 7) {
		CHECK_OK(notebook_credit(d->nb, &d->ctx, true, &slug, 1, &credited, &d->err), d->err);
		at->cited++;
	}
	model_check(d, at);
}

static void model_end(struct model *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->notes[i].slug);
		free(m->notes[i].title);
		free(m->notes[i].body);
	}
	free(m);
}

static size_t live(const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += !m->notes[i].archived;
	return n;
}

static int steps(int fallback)
{
	const char *text = getenv("STEAD_MODEL_OPS");

	return text ? (int)strtol(text, NULL, 10) : fallback;
}

TEST(random_operations_are_what_a_model_says)
{
	struct model *m = xcalloc(1, sizeof *m);
	struct desk d;
	struct note_list list;

	m->seed = random_u64() | 1;
	printf("# seed %llu\n", (unsigned long long)m->seed);
	desk_open(&d, "memory:", "ann", "");
	for (int i = 0; i < steps(1500); i++) {
		model_step(&d, m);
		if (i % 16 == 0) {
			list = lists(&d, (struct note_query){.limit = 1});
			CHECK_INT(list.total, live(m));
			CHECK_INT(list.problem_count, 0);
		}
		arena_reset(d.arena);
	}
	for (size_t i = 0; i < m->count; i++)
		model_check(&d, &m->notes[i]);
	CHECK_INT(lists(&d, (struct note_query){.with_archived = true}).total, m->count);
	desk_close(&d);
	model_end(m);
}

/* --- processes --- */

static void worker(const char *url, int number, int count)
{
	struct model *m = xcalloc(1, sizeof *m);
	char agent[16];
	struct desk d;

	m->seed = random_u64() | 1;
	snprintf(agent, sizeof(agent), "agent%d", number % 5); /* some share a name */
	desk_open(&d, url, agent, "");
	for (int i = 0; i < count; i++) {
		model_step(&d, m);
		arena_reset(d.arena);
	}
	for (size_t i = 0; i < m->count; i++)
		model_check(&d, &m->notes[i]);
	for (int i = (int)m->count; i < 10; i++)
		model_add(&d, m);
	CHECK(lists(&d, (struct note_query){.with_archived = true}).total >= m->count);
	desk_close(&d);
	_exit(0);
}

TEST(eight_processes_lose_no_note_and_give_no_slug_twice)
{
	struct strmap *seen;
	struct note_list page;
	struct desk d;
	uint64_t files = 0, total;
	pid_t pids[PROCESSES];
	char url[80];

	disk_new(url);
	desk_open(&d, url, "first", "");
	desk_close(&d);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			worker(url, i, steps(1500) / 10);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_INT(status, 0);
	}
	desk_open(&d, url, "last", "");
	seen = strmap_new(d.arena);
	page = lists(&d, (struct note_query){.with_archived = true, .limit = 1000});
	total = page.total;
	CHECK_INT(page.problem_count, 0);
	for (;; page = lists(&d, (struct note_query){.with_archived = true, .limit = 1000, .cursor = page.next})) {
		for (size_t i = 0; i < page.count; i++, files++) {
			bool fresh, number_fresh;

			strmap_put(seen, page.notes[i].slug, &fresh);
			strmap_put(seen, arena_printf(d.arena, "%llu", (unsigned long long)page.notes[i].number),
				   &number_fresh);
			CHECK(fresh && number_fresh);
		}
		if (!page.next.ptr)
			break;
	}
	CHECK_INT(files, total);
	CHECK(total >= PROCESSES * 10);
	desk_close(&d);
}

TEST(counts_of_credit_survive_eight_processes)
{
	struct desk d;
	pid_t pids[PROCESSES];
	struct str slug;
	char url[80];

	disk_new(url);
	desk_open(&d, url, "ann", "");
	wrote(&d, STR("Shared"), STR("x"));
	desk_close(&d); /* no thread of ours may hold a lock while we fork */
	slug = STR("001-shared");
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct desk own;
			uint64_t credited;

			desk_open(&own, url, "eve", "");
			for (int k = 0; k < 25; k++)
				CHECK_OK(notebook_credit(own.nb, &own.ctx, k % 2 == 0, &slug, 1, &credited, &own.err),
					 own.err);
			desk_close(&own);
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_INT(status, 0);
	}
	desk_open(&d, url, "ann", "");
	CHECK_INT(reads(&d, slug).cited, PROCESSES * 25);
	CHECK_INT(reads(&d, slug).succeeded, PROCESSES * 13);
	desk_close(&d);
}
