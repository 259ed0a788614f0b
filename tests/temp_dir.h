/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for tests. */
#ifndef STEAD_TESTS_TEMP_DIR_H
#define STEAD_TESTS_TEMP_DIR_H

#include <ftw.h>
#include <sys/stat.h>

#include "test.h"

static int temp_dir_drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void temp_dir_remove(char *dir)
{
	nftw(dir, temp_dir_drop, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

/* A new directory, and its name: both go when the test ends. */
__attribute__((unused)) static const char *temp_dir_new(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = NULL;

	if (asprintf(&dir, "%s/stead-test-XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(dir)) {
		perror("a directory for the test");
		abort();
	}
	test_defer(temp_dir_remove, dir);
	return dir;
}

#endif
