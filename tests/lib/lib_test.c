/* SPDX-License-Identifier: Apache-2.0 */
/* libstead as an embedder sees it, through its installed header alone: files, tools and events. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib_fix.h"
#include "temp_dir.h"

TEST(what_is_written_is_read_back_byte_for_byte)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	struct stead_stat stat;
	char *data = NULL;
	size_t size = 0;

	CHECK_INT(stead_write(stead, NULL, "a/b.bin", "\0\xff\n", 3, &stat, &error), STEAD_OK);
	CHECK_INT(stat.size, 3);
	CHECK(stat.version[0] != '\0');
	CHECK_INT(stead_read(stead, NULL, "/a//b.bin", &data, &size, NULL, &error), STEAD_OK);
	CHECK_STR(str_n(data, size + 1), str_n("\0\xff\n", 4));
	stead_free(data);
	stead_close(stead);
}

TEST(an_empty_file_reads_as_an_empty_string)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char *data = NULL;
	size_t size = 7;

	CHECK_INT(stead_write(stead, NULL, "empty", NULL, 0, NULL, &error), STEAD_OK);
	CHECK_INT(stead_read(stead, NULL, "empty", &data, &size, NULL, &error), STEAD_OK);
	CHECK_INT(size, 0);
	CHECK_INT(data[0], 0);
	stead_free(data);
	stead_close(stead);
}

static struct stead_call_options only_if(const char *version)
{
	return (struct stead_call_options){.size = sizeof(struct stead_call_options), .if_version = version};
}

TEST(conditions_refuse_with_their_kind)
{
	struct stead *stead = open_memory();
	struct stead_call_options absent = only_if(""), same;
	struct stead_error error;
	struct stead_stat first;

	CHECK_INT(stead_write(stead, &absent, "f", "1", 1, &first, &error), STEAD_OK);
	CHECK_INT(stead_write(stead, &absent, "f", "2", 1, NULL, &error), STEAD_EXISTS);
	same = only_if(first.version);
	CHECK_INT(stead_write(stead, &same, "f", "22", 2, NULL, &error), STEAD_OK);
	CHECK_INT(stead_write(stead, &same, "f", "3", 1, NULL, &error), STEAD_CONFLICT);
	CHECK_INT(error.kind, STEAD_CONFLICT);
	CHECK_HAS(str_of(error.message), STR("f"));
	stead_close(stead);
}

TEST(every_change_may_be_conditional)
{
	struct stead *stead = open_memory();
	struct stead_call_options old, now;
	struct stead_error error;
	struct stead_stat first, second;
	uint64_t files = 0;

	CHECK_DONE(stead_write(stead, NULL, "f", "1", 1, &first, &error), error);
	old = only_if(first.version);
	CHECK_DONE(stead_append(stead, &old, "f", "2", 1, &second, &error), error);
	CHECK_INT(second.size, 2);
	now = only_if(second.version);
	CHECK_INT(stead_append(stead, &old, "f", "3", 1, NULL, &error), STEAD_CONFLICT);
	CHECK_INT(stead_move(stead, &old, "f", "g", 0, NULL, &error), STEAD_CONFLICT);
	CHECK_INT(stead_remove(stead, &old, "f", 0, NULL, &error), STEAD_CONFLICT);
	CHECK_DONE(stead_move(stead, &now, "f", "g", 0, &second, &error), error);
	now = only_if(second.version);
	CHECK_DONE(stead_remove(stead, &now, "g", 0, &files, &error), error);
	CHECK_INT(files, 1);
	stead_close(stead);
}

TEST(a_call_that_takes_no_condition_refuses_one)
{
	struct stead *stead = open_memory();
	struct stead_call_options how = only_if("v");
	struct stead_error error;

	CHECK_INT(stead_read(stead, &how, "f", NULL, NULL, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_stat(stead, &how, "f", NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_list(stead, &how, "", NULL, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_call(stead, &how, "ls", NULL, NULL, NULL, &error), STEAD_INVALID);
	CHECK_HAS(str_of(error.message), STR("if_version"));
	stead_close(stead);
}

TEST(a_move_replaces_only_when_told)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char *data = NULL;

	CHECK_DONE(stead_write(stead, NULL, "a", "new", 3, NULL, &error), error);
	CHECK_DONE(stead_write(stead, NULL, "b", "old", 3, NULL, &error), error);
	CHECK_INT(stead_move(stead, NULL, "a", "b", 0, NULL, &error), STEAD_EXISTS);
	CHECK_DONE(stead_move(stead, NULL, "a", "b", 1, NULL, &error), error);
	CHECK_DONE(stead_read(stead, NULL, "b", &data, NULL, NULL, &error), error);
	CHECK_STR(str_of(data), STR("new"));
	CHECK_INT(stead_stat(stead, NULL, "a", NULL, &error), STEAD_NOT_FOUND);
	stead_free(data);
	stead_close(stead);
}

TEST(a_directory_is_removed_when_told)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	uint64_t files = 0;

	CHECK_DONE(stead_write(stead, NULL, "d/a", "1", 1, NULL, &error), error);
	CHECK_DONE(stead_write(stead, NULL, "d/e/b", "2", 1, NULL, &error), error);
	CHECK_INT(stead_remove(stead, NULL, "d", 0, &files, &error), STEAD_INVALID);
	CHECK_DONE(stead_remove(stead, NULL, "d", 1, &files, &error), error);
	CHECK_INT(files, 2);
	CHECK_INT(stead_remove(stead, NULL, "d", 1, &files, &error), STEAD_NOT_FOUND);
	stead_close(stead);
}

TEST(a_part_is_read_into_the_callers_buffer)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char buffer[8] = "--------";
	size_t size = 4;

	CHECK_DONE(stead_write(stead, NULL, "f", "0123456789", 10, NULL, &error), error);
	CHECK_DONE(stead_read_at(stead, NULL, "f", 3, buffer, &size, &error), error);
	CHECK_STR(str_n(buffer, 8), STR("3456----"));
	CHECK_INT(size, 4);
	size = sizeof buffer;
	CHECK_DONE(stead_read_at(stead, NULL, "f", 8, buffer, &size, &error), error);
	CHECK_STR(str_n(buffer, size), STR("89"));
	size = sizeof buffer;
	CHECK_DONE(stead_read_at(stead, NULL, "f", 100, buffer, &size, &error), error);
	CHECK_INT(size, 0);
	stead_close(stead);
}

TEST(a_bad_path_is_refused_by_every_function)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	struct stead_stat stat;
	char *data;

	CHECK_INT(stead_read(stead, NULL, "../etc/passwd", &data, NULL, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_write(stead, NULL, "a/../../b", "x", 1, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_stat(stead, NULL, "a\nb", &stat, &error), STEAD_INVALID);
	CHECK_INT(stead_list(stead, NULL, "\xff", NULL, NULL, &error), STEAD_INVALID);
	stead_close(stead);
}

static int count_entry(void *arg, const char *path, const struct stead_stat *stat)
{
	int *left = arg;

	CHECK(strlen(path) > 0 && (stat->is_directory || stat->size == 1));
	return --*left == 0;
}

TEST(a_list_goes_over_all_pages_and_ends_when_told)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char path[32];
	int left = 5000;

	for (int i = 0; i < 2500; i++) {
		snprintf(path, sizeof(path), "many/%04d", i);
		CHECK_INT(stead_write(stead, NULL, path, "x", 1, NULL, &error), STEAD_OK);
	}
	CHECK_INT(stead_list(stead, NULL, "many", count_entry, &left, &error), STEAD_OK);
	CHECK_INT(left, 2500);
	left = 10;
	CHECK_INT(stead_list(stead, NULL, "many", count_entry, &left, &error), STEAD_OK);
	CHECK_INT(left, 0);
	stead_close(stead);
}

TEST(a_tool_gives_text_and_json)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char *text = NULL, *json = NULL;

	CHECK_INT(stead_write(stead, NULL, "n.md", "one\ntwo\n", 8, NULL, &error), STEAD_OK);
	CHECK_INT(stead_call(stead, NULL, "read_file", "{\"path\":\"n.md\"}", &text, &json, &error), STEAD_OK);
	CHECK_HAS(str_of(text), STR("two"));
	CHECK_INT(json[0], '{');
	CHECK_HAS(str_of(json), STR("\"version\""));
	stead_free(text);
	stead_free(json);
	stead_close(stead);
}

TEST(a_tool_that_refuses_gives_its_kind_and_its_sentence)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	char *text = NULL, *json = (char *)1;

	CHECK_INT(stead_call(stead, NULL, "read_file", "{\"path\":\"none.md\"}", &text, &json, &error),
		  STEAD_NOT_FOUND);
	CHECK_HAS(str_of(error.message), STR("none.md"));
	CHECK_HAS(str_of(text), STR("none.md"));
	CHECK(json == NULL);
	stead_free(text);
	CHECK_INT(stead_call(stead, NULL, "read_fiel", NULL, NULL, NULL, &error), STEAD_NOT_FOUND);
	CHECK_HAS(str_of(error.message), STR("read_file"));
	CHECK_INT(stead_call(stead, NULL, "read_file", "{", NULL, NULL, &error), STEAD_INVALID);
	CHECK_INT(stead_call(stead, NULL, "read_file", "[1]", NULL, NULL, NULL), STEAD_INVALID);
	stead_close(stead);
}

TEST(the_table_of_tools_is_a_json_array)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	char *json = NULL;

	CHECK_INT(stead_tools(stead, &json, &error), STEAD_OK);
	CHECK_INT(json[0], '[');
	CHECK_HAS(str_of(json), STR("\"name\":\"edit_file\""));
	CHECK_HAS(str_of(json), STR("\"inputSchema\":{"));
	stead_free(json);
	stead_close(stead);
}

struct heard {
	int events;
	char last[64];
};

static void hear(void *arg, const struct stead_event *event)
{
	struct heard *heard = arg;

	heard->events++;
	snprintf(heard->last, sizeof(heard->last), "%s %s %s", event->operation, event->path,
		 event->to ? event->to : "-");
}

TEST(a_listener_hears_changes_until_it_is_taken_away)
{
	struct stead *stead = open_memory();
	struct stead_error error;
	struct heard heard = {0};
	uint64_t handle = 0;

	CHECK_DONE(stead_subscribe(stead, hear, &heard, &handle, &error), error);
	CHECK_INT(stead_write(stead, NULL, "a.md", "x", 1, NULL, &error), STEAD_OK);
	CHECK_STR(str_of(heard.last), STR("write a.md -"));
	CHECK_INT(stead_call(stead, NULL, "move_file", "{\"from\":\"a.md\",\"to\":\"b.md\"}", NULL, NULL, &error),
		  STEAD_OK);
	CHECK_STR(str_of(heard.last), STR("move a.md b.md"));
	stead_unsubscribe(stead, handle);
	stead_unsubscribe(stead, handle); /* twice is harmless */
	heard.events = 0;
	CHECK_INT(stead_write(stead, NULL, "a.md", "x", 1, NULL, &error), STEAD_OK);
	CHECK_INT(heard.events, 0);
	CHECK_DONE(stead_subscribe(stead, hear, &heard, NULL, &error), error);
	CHECK_INT(stead_subscribe(stead, NULL, NULL, NULL, &error), STEAD_INVALID);
	stead_close(stead); /* takes away the one that is left */
}

TEST(opening_fails_with_a_sentence_and_leaves_nothing)
{
	struct stead_options bad_name = in_memory, bad_dialect = in_memory, bad_store = in_memory, missing = in_memory;
	struct stead *stead = NULL;
	struct stead_error error;

	bad_name.workspace = "No Good";
	bad_dialect.dialect = "klingon";
	bad_store.store = "carrier-pigeon:";
	missing.create = 0;
	CHECK_INT(stead_open(&bad_name, &stead, &error), STEAD_INVALID);
	CHECK_INT(stead_open(&bad_dialect, &stead, &error), STEAD_NOT_FOUND);
	CHECK_INT(stead_open(&bad_store, &stead, &error), STEAD_UNSUPPORTED);
	CHECK_INT(stead_open(&missing, &stead, &error), STEAD_NOT_FOUND);
	CHECK(stead == NULL && error.message[0] != '\0');
	stead_close(NULL);
}

TEST(open_and_close_leak_no_descriptor)
{
	char store[300];
	struct stead_options options = {
		.size = sizeof options, .store = store, .workspace = "loop", .create = 1, .relaxed = 1};
	struct stead_error error;
	int before = -1;

	snprintf(store, sizeof(store), "disk:%s", temp_dir_new());
	for (int i = 0; i < 20; i++) {
		struct stead *stead = NULL;
		int fd;

		if (stead_open(&options, &stead, &error) != 0)
			TEST_FAIL("open %d: %s", i, error.message);
		CHECK_INT(stead_write(stead, NULL, "f", "x", 1, NULL, &error), STEAD_OK);
		stead_close(stead);
		fd = open("/dev/null", O_RDONLY);
		close(fd);
		if (i == 0)
			before = fd;
		CHECK_INT(fd, before);
	}
}

TEST(the_library_leaves_signals_alone)
{
	struct sigaction before, after;
	struct stead_error error;
	struct stead *stead;

	sigaction(SIGPIPE, NULL, &before);
	stead = open_memory();
	CHECK_INT(stead_call(stead, NULL, "ls", NULL, NULL, NULL, &error), STEAD_OK);
	stead_close(stead);
	sigaction(SIGPIPE, NULL, &after);
	CHECK(before.sa_handler == after.sa_handler);
}

#define THREADS 8
#define ROUNDS  50

struct worker {
	pthread_t thread;
	struct stead *stead;
	atomic_int *failed;
	int number;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct stead_error error;
	char path[32], args[64], line[32];

	snprintf(path, sizeof(path), "own/%d.md", w->number);
	snprintf(args, sizeof(args), "{\"path\":\"%s\"}", path);
	snprintf(line, sizeof(line), "{\"path\":\"log\",\"content\":\"x\\n\"}");
	for (int i = 0; i < ROUNDS; i++) {
		char *text = NULL, *data = NULL;
		int r = stead_write(w->stead, NULL, path, line, (size_t)(i % 20 + 1), NULL, &error) != 0;

		r |= stead_call(w->stead, NULL, "append_file", line, NULL, NULL, &error) != 0;
		r |= stead_call(w->stead, NULL, "read_file", args, &text, NULL, &error) != 0;
		r |= stead_read(w->stead, NULL, "log", &data, NULL, NULL, &error) != 0;
		r |= stead_call(w->stead, NULL, "grep", "{\"pattern\":\"path\"}", NULL, NULL, &error) != 0;
		stead_free(text);
		stead_free(data);
		if (r)
			atomic_fetch_add(w->failed, 1);
	}
	return NULL;
}

static void count_event(void *arg, const struct stead_event *event)
{
	(void)event;
	atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(eight_threads_share_one_handle_and_lose_nothing)
{
	struct worker workers[THREADS];
	struct stead *stead = open_memory();
	atomic_int failed = 0, events = 0;
	struct stead_error error;
	struct stead_stat log;
	uint64_t handle;

	CHECK_DONE(stead_subscribe(stead, count_event, &events, &handle, &error), error);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.stead = stead, .failed = &failed, .number = i};
		CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	stead_unsubscribe(stead, handle);
	CHECK_INT(failed, 0);
	CHECK_INT(events, 2 * THREADS * ROUNDS);
	CHECK_INT(stead_stat(stead, NULL, "log", &log, &error), STEAD_OK);
	CHECK_INT(log.size, 2 * THREADS * ROUNDS);
	stead_close(stead);
}
