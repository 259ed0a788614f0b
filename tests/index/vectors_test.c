/* SPDX-License-Identifier: Apache-2.0 */
/* The file of vectors: arithmetic, several users of it at once, and what becomes of it in other hands. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "index/vectors.h"
#include "test.h"

#define DIMS 50

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void fill(float *v, uint32_t seed)
{
	for (unsigned i = 0; i < DIMS; i++)
		v[i] = (float)next_random(&seed) / (float)(1 << 23) - 1;
}

static void add(struct vectors *v, uint64_t key)
{
	float values[DIMS];
	uint64_t keys[1][2] = {{key * 0x9e3779b97f4a7c15u, key}};
	struct err err;

	fill(values, (uint32_t)key);
	CHECK_OK(vectors_add(v, (const uint64_t(*)[2])keys, values, 1, DIMS, &err), err);
}

static uint32_t find(struct vectors *v, uint64_t key)
{
	return vectors_find(v, (uint64_t[2]){key * 0x9e3779b97f4a7c15u, key});
}

static struct vectors *open_at(const char *path)
{
	struct vectors *v;
	struct err err;

	CHECK_OK(vectors_open(path, &v, &err), err);
	return v;
}

static void new_path(char *path, size_t size)
{
	int fd;

	snprintf(path, size, "/tmp/vectors_XXXXXX");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
}

TEST(the_quick_sum_of_products_is_the_plain_one)
{
	int8_t a[256], b[256];
	uint32_t seed = 7;

	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 256; i++) {
			a[i] = (int8_t)(next_random(&seed) % 255 - 127);
			b[i] = round == 0 ? 127 : (int8_t)(next_random(&seed) % 255 - 127);
			a[i] = round == 0 ? -127 : a[i];
		}
		for (size_t n = 0; n <= 256; n += 32)
			CHECK_INT(vectors_dot(a, b, n), vectors_dot_plain(a, b, n));
	}
}

TEST(cosines_are_those_of_the_numbers_to_within_a_hundredth)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct vectors *v = open_at(NULL);
	float q[DIMS], d[DIMS];
	struct vectors_probe probe;

	fill(q, 1000);
	CHECK(vectors_probe(arena, q, DIMS, &probe));
	for (uint64_t key = 1; key <= 200; key++) {
		double dot = 0, qq = 0, dd = 0;
		uint32_t record;
		float got;

		add(v, key);
		record = find(v, key);
		vectors_cosines(v, &probe, &record, 1, &got);
		fill(d, (uint32_t)key);
		for (int i = 0; i < DIMS; i++) {
			dot += (double)q[i] * (double)d[i];
			qq += (double)q[i] * (double)q[i];
			dd += (double)d[i] * (double)d[i];
		}
		CHECK(fabs((double)got - dot / sqrt(qq * dd)) < 0.01);
	}
	vectors_close(v);
}

TEST(two_who_have_it_open_see_what_the_other_adds)
{
	char path[64];
	struct vectors *a, *b;

	new_path(path, sizeof path);
	a = open_at(path);
	b = open_at(path);
	for (uint64_t key = 1; key <= 3000; key++)
		add(key % 2 ? a : b, key);
	CHECK(vectors_refresh(a) && vectors_refresh(b));
	CHECK_INT(vectors_count(a), 3000);
	CHECK_INT(vectors_count(b), 3000);
	for (uint64_t key = 1; key <= 3000; key++)
		CHECK(find(a, key) != VECTORS_NONE && find(a, key) == find(b, key));
	CHECK(find(a, 3001) == VECTORS_NONE);
	vectors_close(a);
	vectors_close(b);
	unlink(path);
}

TEST(a_record_that_was_cut_off_is_the_only_one_that_is_lost)
{
	char path[64];
	struct vectors *v;
	off_t size;
	int fd;

	new_path(path, sizeof path);
	v = open_at(path);
	for (uint64_t key = 1; key <= 10; key++)
		add(v, key);
	vectors_close(v);
	fd = open(path, O_WRONLY);
	size = lseek(fd, 0, SEEK_END);
	CHECK_INT(ftruncate(fd, size - 5), 0);
	close(fd);
	v = open_at(path);
	CHECK_INT(vectors_count(v), 9);
	add(v, 11);
	CHECK(find(v, 9) != VECTORS_NONE && find(v, 10) == VECTORS_NONE && find(v, 11) != VECTORS_NONE);
	vectors_close(v);
	unlink(path);
}

TEST(a_file_that_others_cut_off_under_us_is_begun_anew)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char path[64];
	struct vectors *v;
	struct vectors_probe probe;
	float q[DIMS], cosines[2000];
	uint32_t records[2000];

	new_path(path, sizeof path);
	v = open_at(path);
	for (uint64_t key = 1; key <= 2000; key++) {
		add(v, key);
		records[key - 1] = find(v, key);
	}
	fill(q, 5);
	CHECK(vectors_probe(arena, q, DIMS, &probe));
	CHECK_INT(truncate(path, 0), 0);
	vectors_cosines(v, &probe, records, 2000, cosines);
	for (int i = 0; i < 2000; i++)
		CHECK(cosines[i] < -1);
	CHECK(!vectors_refresh(v));
	add(v, 1);
	CHECK_INT(vectors_count(v), 1);
	vectors_close(v);
	unlink(path);
}

TEST(a_file_that_is_deleted_or_forgotten_is_another_one_then)
{
	char path[64];
	struct vectors *a, *b;

	new_path(path, sizeof path);
	a = open_at(path);
	b = open_at(path);
	add(a, 1);
	unlink(path);
	CHECK(!vectors_refresh(a));
	add(a, 2);
	add(b, 3);
	CHECK(vectors_refresh(a));
	CHECK(find(a, 1) == VECTORS_NONE && find(a, 2) != VECTORS_NONE && find(a, 3) != VECTORS_NONE);
	vectors_forget(a);
	CHECK_INT(vectors_count(a), 0);
	CHECK(!vectors_refresh(b));
	CHECK_INT(vectors_count(b), 0);
	vectors_close(a);
	vectors_close(b);
	unlink(path);
}

TEST(what_is_no_direction_or_of_another_length_is_refused)
{
	struct vectors *v = open_at(NULL);
	float values[DIMS] = {0};
	uint64_t keys[1][2] = {{1, 2}};
	struct err err;

	CHECK_INT(vectors_add(v, (const uint64_t(*)[2])keys, values, 1, DIMS, &err), -ERR_INVALID);
	values[3] = NAN;
	CHECK_INT(vectors_add(v, (const uint64_t(*)[2])keys, values, 1, DIMS, &err), -ERR_INVALID);
	add(v, 1);
	values[3] = 1;
	CHECK_INT(vectors_add(v, (const uint64_t(*)[2])keys, values, 1, 40, &err), -ERR_INVALID);
	CHECK_INT(vectors_count(v), 1);
	vectors_close(v);
}

struct crowd {
	struct vectors *v;
	uint64_t from;
};

static void *add_many(void *arg)
{
	struct crowd *c = arg;

	for (uint64_t key = c->from; key < c->from + 500; key++) {
		add(c->v, key);
		CHECK(find(c->v, key) != VECTORS_NONE);
	}
	return NULL;
}

TEST(threads_add_and_find_at_once)
{
	struct vectors *v = open_at(NULL);
	pthread_t threads[4];
	struct crowd crowd[4];

	for (uint64_t i = 0; i < 4; i++) {
		crowd[i] = (struct crowd){v, 1 + i * 500};
		CHECK_INT(pthread_create(&threads[i], NULL, add_many, &crowd[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(vectors_count(v), 2000);
	vectors_close(v);
}
