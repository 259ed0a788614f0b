/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for tests: a fresh one per call, all below one that is removed when the test program ends. */
#ifndef STEAD_TESTS_STORE_DISK_DIR_H
#define STEAD_TESTS_STORE_DISK_DIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char disk_dir_base[200];
static pid_t disk_dir_owner;

static int disk_dir_drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void disk_dir_cleanup(void)
{
	if (getpid() == disk_dir_owner) /* not in children */
		nftw(disk_dir_base, disk_dir_drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* Good until the program ends. */
__attribute__((unused)) static const char *disk_dir_new(void)
{
	static char names[8][256];
	static unsigned count;
	char *name = names[count % 8];

	if (!disk_dir_owner) {
		const char *tmp = getenv("TMPDIR");

		snprintf(disk_dir_base, sizeof(disk_dir_base), "%s/stead-test-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(disk_dir_base)) {
			perror(disk_dir_base);
			abort();
		}
		disk_dir_owner = getpid();
		atexit(disk_dir_cleanup);
	}
	snprintf(name, sizeof(names[0]), "%s/%u", disk_dir_base, count++);
	if (mkdir(name, 0755) < 0)
		abort();
	return name;
}

#endif
