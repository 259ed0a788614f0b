/* SPDX-License-Identifier: Apache-2.0 */
/* Many users from one handle of libstead: nobody sees what another one has, and the order of closing does not matter.
 */
#include <pthread.h>

#include "lib_fix.h"

#define USERS   1000
#define THREADS 8

static struct stead *open_for(struct stead *of, int number)
{
	struct stead_error error = {0};
	struct stead *stead = NULL;
	char user[32];

	snprintf(user, sizeof user, "user %d", number);
	CHECK_DONE(stead_open_for(of, user, "helper", NULL, &stead, &error), error);
	return stead;
}

/* Bytes by the front door, a file by a tool. */
static void leave_secrets(struct stead *stead, int number)
{
	struct stead_error error = {0};
	char text[32], arguments[128];

	snprintf(text, sizeof text, "secret-%d-", number);
	CHECK_DONE(stead_write(stead, NULL, "secret.md", text, strlen(text), NULL, &error), error);
	snprintf(arguments, sizeof arguments, "{\"path\": \"own-%d.md\", \"content\": \"%s\", \"mode\": \"overwrite\"}",
		 number, text);
	CHECK_DONE(stead_call(stead, NULL, "write_file", arguments, NULL, NULL, &error), error);
}

static int count(void *arg, const char *path, const struct stead_stat *stat)
{
	(void)path;
	(void)stat;
	++*(int *)arg;
	return 0;
}

static void see_only_own(struct stead *stead, int number, int other)
{
	struct stead_error error = {0};
	char *data = NULL, *found = NULL, text[32], path[32], pattern[64];
	int files = 0;

	snprintf(text, sizeof text, "secret-%d-", number);
	CHECK_DONE(stead_read(stead, NULL, "secret.md", &data, NULL, NULL, &error), error);
	CHECK_STR(str_of(data), str_of(text));
	CHECK_DONE(stead_list(stead, NULL, "", count, &files, &error), error);
	CHECK_INT(files, 2);
	snprintf(path, sizeof path, "own-%d.md", other);
	CHECK_INT(stead_stat(stead, NULL, path, NULL, &error), STEAD_NOT_FOUND);
	snprintf(pattern, sizeof pattern, "{\"pattern\": \"secret-[0-9]+-\"}");
	CHECK_DONE(stead_call(stead, NULL, "grep", pattern, &found, NULL, &error), error);
	CHECK_HAS(str_of(found), str_of(text));
	snprintf(text, sizeof text, "secret-%d-", other);
	CHECK(strstr(found, text) == NULL);
	stead_free(found);
	stead_free(data);
}

TEST(a_thousand_users_of_one_handle_see_only_their_own)
{
	static struct stead *users[USERS];
	struct stead *stead = open_memory();
	struct stead_error error;
	int files = 0;

	for (int i = 0; i < USERS; i++) {
		users[i] = open_for(stead, i);
		leave_secrets(users[i], i);
	}
	for (int i = 0; i < USERS; i++)
		see_only_own(users[i], i, (i + 1) % USERS);
	CHECK_DONE(stead_list(stead, NULL, "", count, &files, &error), error);
	CHECK_INT(files, 0);
	for (int i = 0; i < USERS; i++)
		stead_close(users[i]);
	stead_close(stead);
}

static void hear(void *arg, const struct stead_event *event)
{
	(void)event;
	++*(int *)arg;
}

TEST(a_listener_hears_its_own_user_only)
{
	struct stead *stead = open_memory(), *ann = open_for(stead, 1), *bob = open_for(stead, 2);
	struct stead_error error;
	int heard = 0;

	CHECK_DONE(stead_subscribe(ann, hear, &heard, NULL, &error), error);
	CHECK_DONE(stead_write(bob, NULL, "f", "x", 1, NULL, &error), error);
	CHECK_DONE(stead_write(stead, NULL, "f", "x", 1, NULL, &error), error);
	CHECK_INT(heard, 0);
	CHECK_DONE(stead_write(ann, NULL, "f", "x", 1, NULL, &error), error);
	CHECK_INT(heard, 1);
	stead_close(ann);
	stead_close(bob);
	stead_close(stead);
}

TEST(handles_are_closed_in_any_order)
{
	struct stead *stead = open_memory(), *ann = open_for(stead, 1), *bob;
	struct stead_error error;

	stead_close(stead);
	bob = open_for(ann, 2);
	stead_close(ann);
	leave_secrets(bob, 2);
	see_only_own(bob, 2, 1);
	stead_close(bob);
	stead = open_memory(); /* a store in memory went with the last handle */
	CHECK_INT(stead_stat(stead, NULL, "secret.md", NULL, &error), STEAD_NOT_FOUND);
	stead_close(stead);
}

struct worker {
	pthread_t thread;
	struct stead *stead;
	int number;
};

static void *come_and_go(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 20; i++) {
		struct stead *user = open_for(w->stead, w->number);

		leave_secrets(user, w->number);
		stead_close(user);
	}
	return NULL;
}

TEST(users_come_and_go_on_many_threads)
{
	struct worker workers[THREADS];
	struct stead *stead = open_memory();

	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.stead = stead, .number = i};
		CHECK_INT(pthread_create(&workers[i].thread, NULL, come_and_go, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++) {
		struct stead *user = open_for(stead, i);

		see_only_own(user, i, i + 1);
		stead_close(user);
	}
	stead_close(stead);
}
