/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that libstead needs for a large stream, and what happens when there is none. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "lib_fix.h"
#include "memory_use.h"
#include "temp_dir.h"

#define STREAM_SIZE ((uint64_t)256 * MIB)

struct stream {
	uint64_t at, size;
	bool is_wrong;
};

/* Every byte tells of its offset: a piece that is lost, doubled or misplaced shows. */
static unsigned char byte_at(uint64_t at)
{
	return (unsigned char)(at >> (8 * (at % 8)));
}

static ptrdiff_t give(void *arg, void *buffer, size_t room)
{
	struct stream *s = arg;
	size_t n = s->size - s->at < room ? (size_t)(s->size - s->at) : room;

	for (size_t i = 0; i < n; i++)
		((unsigned char *)buffer)[i] = byte_at(s->at + i);
	s->at += n;
	return (ptrdiff_t)n;
}

static int take(void *arg, const void *bytes, size_t count)
{
	struct stream *s = arg;

	for (size_t i = 0; i < count; i++)
		s->is_wrong |= ((const unsigned char *)bytes)[i] != byte_at(s->at + i);
	s->at += count;
	return s->is_wrong;
}

TEST(a_stream_of_256_mib_needs_less_than_32_mib)
{
	char store[300];
	struct stead_options options = {
		.size = sizeof options, .store = store, .workspace = "large", .create = 1, .relaxed = 1};
	struct stream in = {.size = STREAM_SIZE}, out = {.size = STREAM_SIZE};
	struct stead_source source = {.size = sizeof source, .give = give, .arg = &in};
	struct stead_sink sink = {.size = sizeof sink, .take = take, .arg = &out};
	struct stead_error error = {0};
	struct stead *stead = NULL;

	snprintf(store, sizeof store, "disk:%s", temp_dir_new());
	CHECK_DONE(stead_open(&options, &stead, &error), error);
	CHECK_DONE(stead_write_stream(stead, NULL, "large.bin", &source, NULL, &error), error);
	CHECK_DONE(stead_read_stream(stead, NULL, "large.bin", &sink, NULL, &error), error);
	CHECK_INT(out.at, STREAM_SIZE);
	stead_close(stead);
	printf("# %ld KiB at its peak\n", memory_kib("VmHWM"));
	CHECK(memory_kib("VmHWM") < 32 * 1024);
}

static int hook_output;

static void write_message(const char *message)
{
	(void)!write(hook_output, message, strlen(message));
}

/* Users are opened until no memory is left. Ends by abort(). */
static void use_all_memory(void)
{
	struct rlimit limit = {256 * MIB, 256 * MIB}, no_core = {0, 0};
	struct stead *stead = open_memory(), *user;
	struct stead_error error;

	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_AS, &limit);
	while (stead_open_for(stead, "ann", NULL, NULL, &user, &error) == STEAD_OK)
		;
	_exit(1);
}

static void run_out(void (*hook)(const char *message), char *ret_said, size_t room)
{
	int said[2], status = 0;
	ssize_t n;
	pid_t child;

	CHECK_INT(pipe(said), 0);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		hook_output = said[1];
		dup2(said[1], 1);
		dup2(said[1], 2);
		stead_set_fatal(hook);
		use_all_memory();
	}
	close(said[1]);
	n = read(said[0], ret_said, room - 1);
	CHECK(n >= 0);
	ret_said[n] = '\0';
	close(said[0]);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(a_program_is_told_before_memory_exhaustion_ends_it)
{
	char said[256];

	run_out(write_message, said, sizeof said);
	CHECK_HAS(str_of(said), STR("out of memory"));
	run_out(NULL, said, sizeof said);
	CHECK_STR(str_of(said), STR(""));
}

TEST(a_read_without_memory_fails_and_the_program_goes_on)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct rlimit limit = {256 * MIB, 256 * MIB};
		struct stream in = {.size = 200 * MIB};
		struct stead_source source = {.size = sizeof source, .give = give, .arg = &in};
		struct stead_options options = {.size = sizeof options, .store = "temp", .relaxed = 1};
		struct stead_error error = {0};
		struct stead *stead = NULL;
		char *data, *second;
		int r = stead_open(&options, &stead, &error);

		if (r == 0)
			r = stead_write_stream(stead, NULL, "large.bin", &source, NULL, &error);
		setrlimit(RLIMIT_AS, &limit);
		if (r == 0)
			r = stead_read(stead, NULL, "large.bin", &data, NULL, NULL, &error);
		if (r == 0)
			r = stead_read(stead, NULL, "large.bin", &second, NULL, NULL, &error);
		if (r == STEAD_TOO_LARGE)
			r = stead_stat(stead, NULL, "large.bin", NULL, &error) == 0 ? 42 : 1;
		stead_close(stead);
		_exit(r);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(WEXITSTATUS(status), 42);
}
