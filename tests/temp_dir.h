/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for tests: a fresh one per call, all below one that is removed when the test program ends. */
#ifndef STEAD_TESTS_TEMP_DIR_H
#define STEAD_TESTS_TEMP_DIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_dir_base[200];
static pid_t temp_dir_owner;

static int temp_dir_drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void temp_dir_cleanup(void)
{
	if (getpid() == temp_dir_owner) /* not in children */
		nftw(temp_dir_base, temp_dir_drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* Good until the program ends. */
__attribute__((unused)) static const char *temp_dir_new(void)
{
	static char names[8][256];
	static unsigned count;
	char *name = names[count % 8];

	if (!temp_dir_owner) {
		const char *tmp = getenv("TMPDIR");

		snprintf(temp_dir_base, sizeof(temp_dir_base), "%s/stead-test-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(temp_dir_base)) {
			perror(temp_dir_base);
			abort();
		}
		temp_dir_owner = getpid();
		atexit(temp_dir_cleanup);
	}
	snprintf(name, sizeof(names[0]), "%s/%u", temp_dir_base, count++);
	if (mkdir(name, 0755) < 0)
		abort();
	return name;
}

#endif
