/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: a head that says how many numbers a vector has, then records of one size. Records are appended under a lock
 * of the file, whole; a reader checks each record once, when it enters the reader's table. The mapping is larger than
 * the file, so that it rarely has to move; readers hold it while they use it. The file's size is compared before every
 * use: if a program truncates the file, the vectors are lost, but the process does not crash.
 */
#include "index/vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define MAGIC "STEADVC1"
#define LANES 32u

struct head {
	char magic[8];
	uint32_t dims, record;
	uint64_t sum; /* of the fields before it */
	uint8_t unused[40];
};

struct record {
	uint64_t key[2];
	uint64_t sum; /* of key, norm and values */
	float norm;
	uint32_t unused;
	int8_t values[];
};

/* The key is kept here too, so that a lookup never touches the file. */
struct slot {
	uint64_t key;
	uint32_t record; /* + 1; 0: free */
};

struct vectors {
	int fd;
	char *path; /* NULL: in memory */
	pthread_rwlock_t lock;
	unsigned dims;
	size_t record_size;
	unsigned char *map;
	size_t mapped;
	uint32_t count; /* records looked at */
	struct slot *table;
	size_t mask, held;
};

/* --- arithmetic --- */

int32_t vectors_dot_plain(const int8_t *a, const int8_t *b, size_t n)
{
	int32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static int32_t dot_avx2(const int8_t *a, const int8_t *b, size_t n)
{
	__m256i sum = _mm256_setzero_si256();
	__m128i half;

	for (size_t i = 0; i < n; i += LANES) {
		for (size_t k = i; k < i + LANES; k += 16) {
			__m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(a + k)));
			__m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(b + k)));

			sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
		}
	}
	half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
	half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
	half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
	return _mm_cvtsi128_si32(half);
}

int32_t vectors_dot(const int8_t *a, const int8_t *b, size_t n)
{
	return __builtin_cpu_supports("avx2") ? dot_avx2(a, b, n) : vectors_dot_plain(a, b, n);
}
#else
int32_t vectors_dot(const int8_t *a, const int8_t *b, size_t n)
{
	return vectors_dot_plain(a, b, n);
}
#endif

static size_t padded(unsigned dims)
{
	return (dims + LANES - 1) / LANES * LANES;
}

/* One byte a number, the largest 127. False: not a direction. */
static bool quantize(const float *values, unsigned dims, int8_t *ret, float *ret_norm)
{
	float most = 0;

	for (unsigned i = 0; i < dims; i++) {
		if (!isfinite(values[i]))
			return false;
		most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
	}
	if (most < 1e-20f)
		return false;
	memset(ret, 0, padded(dims));
	for (unsigned i = 0; i < dims; i++)
		ret[i] = (int8_t)lrintf(values[i] / most * 127);
	*ret_norm = sqrtf((float)vectors_dot(ret, ret, padded(dims)));
	return true;
}

bool vectors_probe(struct arena *arena, const float *values, unsigned dims, struct vectors_probe *ret)
{
	int8_t *room = arena_alloc(arena, padded(dims));

	*ret = (struct vectors_probe){.values = room, .dims = dims};
	return quantize(values, dims, room, &ret->norm);
}

/* --- the table --- */

static const struct record *at(const struct vectors *v, uint32_t i)
{
	return (const struct record *)(const void *)(v->map + sizeof(struct head) + i * v->record_size);
}

static uint64_t sum_of(const struct record *record, size_t values)
{
	return hash_u64(str_n((const char *)&record->norm, sizeof record->norm + sizeof record->unused + values),
			record->key[0] ^ (record->key[1] << 1));
}

static uint64_t folded(const uint64_t key[2])
{
	return key[0] ^ (key[1] << 32 | key[1] >> 32);
}

static struct slot *slot_of(const struct vectors *v, uint64_t key)
{
	size_t i = key & v->mask;

	while (v->table[i].record && v->table[i].key != key)
		i = (i + 1) & v->mask;
	return &v->table[i];
}

static void grow_table(struct vectors *v)
{
	struct slot *old = v->table;
	size_t size = old ? v->mask + 1 : 0;

	v->mask = size ? size * 2 - 1 : 1023;
	v->table = xcalloc(v->mask + 1, sizeof *v->table);
	for (size_t i = 0; i < size; i++)
		if (old[i].record)
			*slot_of(v, old[i].key) = old[i];
	free(old);
}

/* --- the file; the lock is held for writing --- */

static void drop(struct vectors *v)
{
	if (v->map)
		munmap(v->map, v->mapped);
	free(v->table);
	v->map = NULL;
	v->table = NULL;
	v->mapped = v->held = v->mask = 0;
	v->count = 0;
	v->dims = 0;
	v->record_size = 0;
}

static bool map_file(struct vectors *v, size_t size)
{
	size_t want = 1 * MIB;
	void *map;

	if (size <= v->mapped)
		return true;
	while (want < size)
		want *= 2;
	map = mmap(NULL, want, PROT_READ, MAP_SHARED, v->fd, 0);
	if (map == MAP_FAILED)
		return false;
	if (v->map)
		munmap(v->map, v->mapped);
	v->map = map;
	v->mapped = want;
	return true;
}

static bool head_ok(struct vectors *v)
{
	struct head h;

	if (pread(v->fd, &h, sizeof h, 0) != (ssize_t)sizeof h || memcmp(h.magic, MAGIC, 8) != 0 || !h.dims ||
	    h.dims > VECTORS_DIMS_MAX || h.record != sizeof(struct record) + padded(h.dims) ||
	    h.sum != hash_u64(str_n((const char *)&h, offsetof(struct head, sum)), 0))
		return false;
	v->dims = h.dims;
	v->record_size = h.record;
	return true;
}

static void take_records(struct vectors *v, size_t size)
{
	size_t records = (size - sizeof(struct head)) / v->record_size;

	records = records < VECTORS_MAX ? records : VECTORS_MAX;
	if (!v->table)
		grow_table(v);
	if (records <= v->count || !map_file(v, sizeof(struct head) + records * v->record_size))
		return;
	for (; v->count < records; v->count++) {
		const struct record *record = at(v, v->count);
		struct slot *slot;

		if (record->sum != sum_of(record, padded(v->dims)) || !(record->norm > 0))
			continue;
		if (v->held * 2 > v->mask)
			grow_table(v);
		slot = slot_of(v, folded(record->key));
		v->held += slot->record == 0;
		*slot = (struct slot){folded(record->key), v->count + 1};
	}
}

static int open_file(const char *path)
{
	return path ? open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)
		    : memfd_create("stead-vectors", MFD_CLOEXEC);
}

/* Looks at the file again. False: it has been replaced. With `held`, nobody else is writing, and a file that is not
   valid is started again. */
static bool look(struct vectors *v, bool held)
{
	struct stat st = {0};
	bool same = true;
	int fd;

	if (fstat(v->fd, &st) == 0 && v->path && st.st_nlink == 0 && (fd = open_file(v->path)) >= 0) {
		drop(v); /* the file was deleted */
		close(v->fd);
		v->fd = fd;
		return false;
	}
	if (v->dims && (size_t)st.st_size < sizeof(struct head) + v->count * v->record_size) {
		drop(v);
		same = false;
	}
	if (!v->dims && st.st_size > 0 && !head_ok(v) && held && ftruncate(v->fd, 0) == 0)
		st.st_size = 0;
	if (v->dims)
		take_records(v, (size_t)st.st_size);
	return same;
}

int vectors_open(const char *path, struct vectors **ret, struct err *err)
{
	int fd = open_file(path);
	struct vectors *v;

	if (fd < 0)
		return err_sys(err, errno, "open the vectors of the search index");
	v = xcalloc(1, sizeof *v);
	v->fd = fd;
	v->path = path ? xstrndup(str_of(path)) : NULL;
	pthread_rwlock_init(&v->lock, NULL);
	flock(fd, LOCK_EX);
	look(v, true);
	flock(fd, LOCK_UN);
	*ret = v;
	return 0;
}

void vectors_forget(struct vectors *v)
{
	pthread_rwlock_wrlock(&v->lock);
	drop(v);
	if (v->path)
		unlink(v->path);
	else if (ftruncate(v->fd, 0) == 0)
		lseek(v->fd, 0, SEEK_SET);
	look(v, false);
	pthread_rwlock_unlock(&v->lock);
}

void vectors_close(struct vectors *v)
{
	if (!v)
		return;
	drop(v);
	close(v->fd);
	free(v->path);
	pthread_rwlock_destroy(&v->lock);
	free(v);
}

bool vectors_refresh(struct vectors *v)
{
	bool same;

	pthread_rwlock_wrlock(&v->lock);
	same = look(v, false);
	pthread_rwlock_unlock(&v->lock);
	return same;
}

unsigned vectors_dims(struct vectors *v)
{
	unsigned dims;

	pthread_rwlock_rdlock(&v->lock);
	dims = v->dims;
	pthread_rwlock_unlock(&v->lock);
	return dims;
}

uint32_t vectors_count(struct vectors *v)
{
	uint32_t count;

	pthread_rwlock_rdlock(&v->lock);
	count = (uint32_t)v->held;
	pthread_rwlock_unlock(&v->lock);
	return count;
}

uint32_t vectors_find(struct vectors *v, const uint64_t key[2])
{
	uint32_t found = 0;

	pthread_rwlock_rdlock(&v->lock);
	if (v->table)
		found = slot_of(v, folded(key))->record;
	pthread_rwlock_unlock(&v->lock);
	return found ? found - 1 : VECTORS_NONE;
}

/* --- adding --- */

static int write_all(int fd, const void *bytes, size_t len, struct err *err)
{
	const char *from = bytes;

	while (len) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(err, errno, "write the vectors of the search index");
		from += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_head(struct vectors *v, unsigned dims, struct err *err)
{
	struct head h = {.magic = MAGIC, .dims = dims, .record = (uint32_t)(sizeof(struct record) + padded(dims))};

	memcpy(h.magic, MAGIC, 8);
	h.sum = hash_u64(str_n((const char *)&h, offsetof(struct head, sum)), 0);
	if (lseek(v->fd, 0, SEEK_END) < 0 || write_all(v->fd, &h, sizeof h, err) != 0)
		return -(int)err->kind;
	v->dims = dims;
	v->record_size = h.record;
	return 0;
}

/* A record that a process left half written is cut off: nobody has it. */
static int trim(struct vectors *v, struct err *err)
{
	off_t size = lseek(v->fd, 0, SEEK_END), whole;

	if (size < (off_t)sizeof(struct head))
		return err_set(err, ERR_CORRUPT, "the vectors of the search index were truncated by another program");
	whole = size - (off_t)(((size_t)size - sizeof(struct head)) % v->record_size);
	if (whole != size && ftruncate(v->fd, whole) != 0)
		return err_sys(err, errno, "cut off a broken record of the vectors");
	return lseek(v->fd, whole, SEEK_SET) < 0 ? err_sys(err, errno, "write the vectors of the search index") : 0;
}

static int add_locked(struct vectors *v, const uint64_t (*keys)[2], const float *values, size_t count, unsigned dims,
		      struct err *err)
{
	struct record *record;
	int r = 0;

	look(v, true);
	if (!v->dims)
		r = write_head(v, dims, err);
	if (!r && v->dims != dims)
		return err_set(err, ERR_INVALID, "the vectors have %u numbers, but the stored ones have %u", dims,
			       v->dims);
	if (!r)
		r = trim(v, err);
	if (r)
		return r;
	record = xcalloc(1, v->record_size);
	for (size_t i = 0; !r && i < count; i++) {
		memcpy(record->key, keys[i], sizeof record->key);
		if (!quantize(values + i * dims, dims, record->values, &record->norm)) {
			r = err_set(err, ERR_INVALID, "a vector has no direction: it is zero or not a number");
			break;
		}
		record->sum = sum_of(record, padded(dims));
		r = write_all(v->fd, record, v->record_size, err);
	}
	free(record);
	look(v, true);
	return r;
}

int vectors_add(struct vectors *v, const uint64_t (*keys)[2], const float *values, size_t count, unsigned dims,
		struct err *err)
{
	int r;

	if (!dims || dims > VECTORS_DIMS_MAX)
		return err_set(err, ERR_INVALID, "a vector has %u numbers; at most %d are allowed", dims,
			       VECTORS_DIMS_MAX);
	pthread_rwlock_wrlock(&v->lock);
	look(v, false); /* before the lock: it may be another file now */
	flock(v->fd, LOCK_EX);
	if (v->count >= VECTORS_MAX)
		r = err_set(err, ERR_TOO_LARGE, "the search index has no room for more vectors");
	else
		r = add_locked(v, keys, values, count, dims, err);
	flock(v->fd, LOCK_UN);
	pthread_rwlock_unlock(&v->lock);
	return r;
}

void vectors_cosines(struct vectors *v, const struct vectors_probe *probe, const uint32_t *records, size_t count,
		     float *ret)
{
	size_t n = padded(probe->dims);
	struct stat st;
	bool ok;

	pthread_rwlock_rdlock(&v->lock);
	ok = v->map && v->dims == probe->dims && fstat(v->fd, &st) == 0 &&
	     (size_t)st.st_size >= sizeof(struct head) + v->count * v->record_size;
	for (size_t i = 0; i < count; i++) {
		const struct record *record = ok && records[i] < v->count ? at(v, records[i]) : NULL;

		ret[i] = record ? (float)vectors_dot(probe->values, record->values, n) / (probe->norm * record->norm)
				: -2;
	}
	pthread_rwlock_unlock(&v->lock);
}
