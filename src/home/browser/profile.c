/* SPDX-License-Identifier: Apache-2.0 */
/* A directory has the id of its process in its name, so that the next browser removes those of processes that were
 * killed. */
#include "home/browser/profile.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_PREFIX "stead-browser-"

bool browser_find_program(struct workspace *ws, char *ret, size_t size)
{
	static const char *const names[] = {"chromium", "chromium-browser", "google-chrome"};
	struct str own = jv_get_str(jv_get(workspace_config(ws)->document, "browser"), "program"),
		   path = str_of(getenv("PATH")), dir;

	if (own.len) {
		snprintf(ret, size, "%.*s", STR_ARG(own));
		return access(ret, X_OK) == 0;
	}
	while (path.len && str_cut(&path, ':', &dir))
		for (size_t i = 0; dir.len && i < COUNT(names); i++) {
			snprintf(ret, size, "%.*s/%s", STR_ARG(dir), names[i]);
			if (access(ret, X_OK) == 0)
				return true;
		}
	return false;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path); /* what cannot be removed is left */
	return 0;
}

void profile_remove(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *temp_root(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && dir[0] == '/' && strlen(dir) < 80 ? dir : "/tmp";
}

/* Those of processes that were killed. */
static void sweep_dirs(void)
{
	DIR *dir = opendir(temp_root());
	struct dirent *entry;
	struct stat st;
	char path[400];

	while (dir && (entry = readdir(dir))) {
		long pid;

		if (strncmp(entry->d_name, DIR_PREFIX, strlen(DIR_PREFIX)) != 0)
			continue;
		pid = strtol(entry->d_name + strlen(DIR_PREFIX), NULL, 10);
		snprintf(path, sizeof(path), "%s/%s", temp_root(), entry->d_name);
		if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH && lstat(path, &st) == 0 &&
		    S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			profile_remove(path);
	}
	if (dir)
		closedir(dir);
}

bool profile_make(char *ret, size_t size)
{
	char path[200];

	sweep_dirs();
	snprintf(ret, size, "%s/" DIR_PREFIX "%ld-XXXXXX", temp_root(), (long)getpid());
	if (!mkdtemp(ret)) {
		ret[0] = '\0';
		return false;
	}
	snprintf(path, sizeof(path), "%s/downloads", ret);
	return mkdir(path, 0700) == 0;
}
