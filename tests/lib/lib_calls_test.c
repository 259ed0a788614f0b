/* SPDX-License-Identifier: Apache-2.0 */
/* How libstead is called: the structs that a caller fills in, deadlines, cancels, streams, and what the library reads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib_fix.h"
#include "temp_dir.h"

#define HOW(...) (&(struct stead_call_options){.size = sizeof(struct stead_call_options), __VA_ARGS__})
#define WAIT_60S "{\"since_revision\": 0, \"wait_ms\": 60000}"

TEST(the_version_at_run_time_is_that_of_the_header)
{
	char text[16];

	snprintf(text, sizeof text, "%d.%d.%d", STEAD_VERSION_NUMBER / 10000, STEAD_VERSION_NUMBER / 100 % 100,
		 STEAD_VERSION_NUMBER % 100);
	CHECK_STR(str_of(stead_version()), str_of(STEAD_VERSION));
	CHECK_STR(str_of(text), str_of(STEAD_VERSION));
}

/* --- sizes --- */

TEST(a_struct_without_its_size_is_refused_with_a_sentence)
{
	struct stead *stead = open_memory(), *other = NULL;
	struct stead_options options = in_memory;
	struct stead_error error = {0};

	options.size = 0;
	CHECK_INT(stead_open(&options, &other, &error), STEAD_INVALID);
	CHECK_HAS(str_of(error.message), STR("set it to sizeof(struct stead_options)"));
	options.size = SIZE_MAX / 2;
	CHECK_INT(stead_open(&options, &other, &error), STEAD_INVALID);
	CHECK_INT(stead_stat(stead, &(struct stead_call_options){.timeout_ms = 1}, "f", NULL, &error), STEAD_INVALID);
	CHECK_HAS(str_of(error.message), STR("stead_call_options"));
	CHECK_INT(stead_read_stream(stead, NULL, "f", &(struct stead_sink){0}, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_write_stream(stead, NULL, "f", &(struct stead_source){0}, NULL, &error), STEAD_INVALID);
	CHECK(other == NULL);
	stead_close(stead);
}

TEST(a_newer_struct_is_accepted_until_it_uses_what_is_new)
{
	struct {
		struct stead_call_options known;
		const char *later;
	} newer = {.known.size = sizeof newer};
	struct stead *stead = open_memory();
	struct stead_error error = {0};

	CHECK_DONE(stead_write(stead, &newer.known, "f", "x", 1, NULL, &error), error);
	newer.later = "value";
	CHECK_INT(stead_write(stead, &newer.known, "f", "y", 1, NULL, &error), STEAD_UNSUPPORTED);
	CHECK_HAS(str_of(error.message), STR("stead_call_options uses a field"));
	stead_close(stead);
}

TEST(a_negative_timeout_is_refused)
{
	struct stead *stead = open_memory();
	struct stead_error error;

	CHECK_INT(stead_stat(stead, HOW(.timeout_ms = -1), "f", NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_stat(stead, HOW(.timeout_ms = INT64_MAX), "f", NULL, &error), STEAD_NOT_FOUND);
	stead_close(stead);
}

/* --- deadlines and cancels --- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TEST(a_call_that_waits_ends_at_its_deadline)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	int64_t start = now_ms();

	CHECK_INT(stead_call(stead, HOW(.timeout_ms = 50), "changes", WAIT_60S, NULL, NULL, &error), STEAD_TIMEOUT);
	CHECK(now_ms() - start >= 50 && now_ms() - start < 30000);
	CHECK_HAS(str_of(error.message), STR("out of time"));
	stead_close(stead);
}

TEST(the_end_of_wait_ms_is_an_answer_and_no_timeout)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	char *json = NULL;

	CHECK_DONE(stead_call(stead, HOW(.timeout_ms = 60000), "changes", "{\"since_revision\": 0, \"wait_ms\": 20}",
			      NULL, &json, &error),
		   error);
	CHECK_HAS(str_of(json), STR("\"changes\":[]"));
	stead_free(json);
	stead_close(stead);
}

struct waiter {
	struct stead *stead;
	struct stead_cancel *cancel;
	atomic_int thread_id;
	int result;
};

static void *wait_for_change(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->thread_id, gettid());
	w->result = stead_call(w->stead, HOW(.cancel = w->cancel), "changes", WAIT_60S, NULL, NULL, NULL);
	return NULL;
}

/* Until the thread is asleep, which is where its call waits. */
static void until_it_waits(struct waiter *w)
{
	char path[64], line[128] = "";

	while (!strstr(line, ") S ")) {
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&w->thread_id));
		f = atomic_load(&w->thread_id) ? fopen(path, "r") : NULL;
		if (f && !fgets(line, sizeof line, f))
			line[0] = '\0';
		if (f)
			fclose(f);
		sched_yield();
	}
}

TEST(another_thread_cancels_a_call_that_waits)
{
	struct waiter w = {.stead = open_memory(), .cancel = stead_cancel_new()};
	int64_t start = now_ms();
	struct stead_error error;
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, wait_for_change, &w), 0);
	until_it_waits(&w);
	stead_cancel(w.cancel);
	pthread_join(thread, NULL);
	CHECK_INT(w.result, STEAD_CANCELLED);
	CHECK(now_ms() - start < 30000);
	CHECK_INT(stead_write(w.stead, HOW(.cancel = w.cancel), "f", "x", 1, NULL, &error), STEAD_CANCELLED);
	CHECK_INT(stead_stat(w.stead, NULL, "f", NULL, &error), STEAD_NOT_FOUND);
	stead_close(w.stead);
	stead_cancel_free(w.cancel);
}

TEST(opening_is_cancelled_too)
{
	struct stead_options options = in_memory;
	struct stead_error error;
	struct stead *stead = NULL;

	options.cancel = stead_cancel_new();
	stead_cancel(options.cancel);
	CHECK_INT(stead_open(&options, &stead, &error), STEAD_CANCELLED);
	CHECK(stead == NULL);
	stead_cancel_free(options.cancel);
	options.cancel = NULL;
	options.timeout_ms = -5;
	CHECK_INT(stead_open(&options, &stead, &error), STEAD_INVALID);
}

TEST(a_call_id_is_recorded_with_the_change)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char *json = NULL;

	CHECK_DONE(stead_write(stead, HOW(.call_id = "turn-7"), "f", "x", 1, NULL, &error), error);
	CHECK_DONE(stead_call(stead, NULL, "history", "{\"path\": \"f\"}", NULL, &json, &error), error);
	CHECK_HAS(str_of(json), STR("turn-7"));
	stead_free(json);
	stead_close(stead);
}

/* --- streams --- */

struct stream {
	char bytes[64];
	size_t at, end, piece;
	int answer;
};

static ptrdiff_t give(void *arg, void *buffer, size_t room)
{
	struct stream *s = arg;
	size_t n = s->end - s->at < s->piece ? s->end - s->at : s->piece;

	if (s->answer && s->at)
		return s->answer;
	n = n < room ? n : room;
	memcpy(buffer, s->bytes + s->at, n);
	s->at += n;
	return (ptrdiff_t)n;
}

static int take(void *arg, const void *bytes, size_t count)
{
	struct stream *s = arg;

	if (count > sizeof s->bytes - s->at)
		return -1;
	memcpy(s->bytes + s->at, bytes, count);
	s->at += count;
	return s->answer;
}

TEST(a_stream_is_written_and_read_by_parts)
{
	struct stead *stead = open_memory();
	struct stream in = {.bytes = "0123456789abcdef", .end = 16, .piece = 5}, out = {0};
	struct stead_source source = {.size = sizeof source, .give = give, .arg = &in};
	struct stead_sink sink = {.size = sizeof sink, .take = take, .arg = &out};
	struct stead_error error;
	struct stead_stat stat;

	CHECK_DONE(stead_write_stream(stead, NULL, "f", &source, &stat, &error), error);
	CHECK_INT(stat.size, 16);
	CHECK_DONE(stead_read_stream(stead, NULL, "f", &sink, NULL, &error), error);
	CHECK_STR(str_of(out.bytes), STR("0123456789abcdef"));
	out = (struct stream){0};
	sink.offset = 10;
	sink.length = 3;
	CHECK_DONE(stead_read_stream(stead, NULL, "f", &sink, &stat, &error), error);
	CHECK_STR(str_of(out.bytes), STR("abc"));
	CHECK_INT(stat.size, 16);
	stead_close(stead);
}

TEST(a_stream_that_its_program_ends_changes_nothing)
{
	struct stead *stead = open_memory();
	struct stream in = {.bytes = "new", .end = 3, .piece = 1, .answer = -7}, out = {.answer = 9};
	struct stead_source source = {.size = sizeof source, .give = give, .arg = &in};
	struct stead_sink sink = {.size = sizeof sink, .take = take, .arg = &out};
	struct stead_error error = {0};
	char *data = NULL;

	CHECK_DONE(stead_write(stead, NULL, "f", "old", 3, NULL, &error), error);
	CHECK_INT(stead_write_stream(stead, NULL, "f", &source, NULL, &error), STEAD_CANCELLED);
	CHECK_HAS(str_of(error.message), STR("-7"));
	CHECK_DONE(stead_read(stead, NULL, "f", &data, NULL, NULL, &error), error);
	CHECK_STR(str_of(data), STR("old"));
	CHECK_INT(stead_read_stream(stead, NULL, "f", &sink, NULL, &error), STEAD_CANCELLED);
	stead_free(data);
	stead_close(stead);
}

TEST(a_streamed_write_may_be_conditional)
{
	struct stead *stead = open_memory();
	struct stream in = {.bytes = "new", .end = 3, .piece = 3};
	struct stead_source source = {.size = sizeof source, .give = give, .arg = &in};
	struct stead_error error;

	CHECK_DONE(stead_write(stead, NULL, "f", "old", 3, NULL, &error), error);
	CHECK_INT(stead_write_stream(stead, HOW(.if_version = ""), "f", &source, NULL, &error), STEAD_EXISTS);
	CHECK_INT(stead_write_stream(stead, HOW(.if_version = "other"), "f", &source, NULL, &error), STEAD_CONFLICT);
	stead_close(stead);
}

/* --- what the library reads and writes besides its store --- */

static atomic_int asked; /* how often the process's own environment was read */
static const char *data_home;

/* Takes the place of the one in libc, for the library too. */
__attribute__((visibility("default"))) char *getenv(const char *name)
{
	if (strncmp(name, "FY_", 3) != 0) /* those are libfyaml's own */
		atomic_fetch_add(&asked, 1);
	return NULL;
}

static const char *only_data_home(const char *name)
{
	return strcmp(name, "XDG_DATA_HOME") == 0 ? data_home : NULL;
}

static const char *nothing(const char *name)
{
	(void)name;
	return NULL;
}

static void one_session(const struct stead_options *options)
{
	struct stead_error error = {0};
	struct stead *stead = NULL;

	CHECK_DONE(stead_open(options, &stead, &error), error);
	CHECK_DONE(stead_write(stead, NULL, "notes/plan.md", "launch\n", 7, NULL, &error), error);
	CHECK_DONE(stead_call(stead, NULL, "search", "{\"query\": \"launch\"}", NULL, NULL, &error), error);
	CHECK_DONE(stead_call(stead, NULL, "grep", "{\"pattern\": \"l.unch\"}", NULL, NULL, &error), error);
	CHECK_INT(stead_call(stead, NULL, "read_file", "{\"path\": \"none\"}", NULL, NULL, &error), STEAD_NOT_FOUND);
	CHECK_INT(stead_call(stead, NULL, "nonsense", "{", NULL, NULL, &error), STEAD_INVALID);
	stead_close(stead);
}

TEST(a_program_can_replace_the_environment)
{
	struct stead_options defaults = {.size = sizeof defaults, .create = 1, .relaxed = 1};
	char path[400];

	data_home = temp_dir_new();
	stead_set_environment(only_data_home);
	asked = 0;
	one_session(&defaults);
	CHECK_INT(asked, 0);
	snprintf(path, sizeof path, "%s/stead/workspaces/default/files/notes/plan.md", data_home);
	CHECK_INT(access(path, R_OK), 0);
	stead_set_environment(nothing);
	one_session(&in_memory);
	CHECK_INT(asked, 0);
	stead_set_environment(NULL);
	one_session(&in_memory);
	CHECK(asked > 0); /* so the count can rise */
}

TEST(the_library_prints_nothing)
{
	int out[2], status = -1;
	char byte;
	pid_t child;

	CHECK_INT(pipe(out), 0);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		one_session(&in_memory);
		_exit(0);
	}
	close(out[1]);
	CHECK_INT(read(out[0], &byte, 1), 0);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	close(out[0]);
}
