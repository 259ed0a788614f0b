/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libFuzzer's main does with -runs=0, for builds without libFuzzer: feeds every file of a corpus directory, in
 * order of name, to the target. So what a fuzzer once found is tried in every test run, with any compiler. A find
 * crashes; the last "# " line names the file that did it.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The bytes are in a block of exactly their size, so that a sanitizer sees a read past the end. */
static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	uint8_t *data;
	size_t size;

	if (!file || fstat(fileno(file), &st) < 0) {
		printf("# cannot read %s\n", path);
		if (file)
			fclose(file);
		return -1;
	}
	size = (size_t)st.st_size;
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, file) != size) {
		printf("# cannot read %s\n", path);
		free(data);
		fclose(file);
		return -1;
	}
	fclose(file);
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int replay_directory(const char *dir)
{
	struct dirent **entries;
	char path[4096];
	int count = scandir(dir, &entries, is_visible, alphasort), bad = 0;

	if (count < 0) {
		printf("# cannot list %s\n", dir);
		return -1;
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		printf("# %s\n", entries[i]->d_name);
		bad += replay_file(path) < 0;
		free(entries[i]);
	}
	free((void *)entries);
	if (count == 0)
		printf("# no corpus in %s\n", dir);
	return bad || count == 0 ? -1 : count;
}

int main(int argc, char **argv)
{
	int r = argc < 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		int count = replay_directory(argv[i]);

		r |= count < 0;
		printf("%s %d - %d inputs of %s are survived\n", count < 0 ? "not ok" : "ok", i, count < 0 ? 0 : count,
		       strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i]);
	}
	printf("1..%d\n", argc - 1);
	return r ? 1 : 0;
}
