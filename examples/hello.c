/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C program with a workspace. Build it with an installed libstead:
 *
 *     cc hello.c $(pkg-config --cflags --libs stead) -o hello
 *     ./hello ./workspaces
 */
#include <stdio.h>
#include <stead.h>
#include <string.h>

static void changed(void *arg, const struct stead_event *event)
{
	(void)arg;
	printf("event: %s %s\n", event->operation, event->path);
}

static int show(void *arg, const char *path, const struct stead_stat *stat)
{
	(void)arg;
	printf("%s%s %llu\n", path, stat->is_directory ? "/" : "", (unsigned long long)stat->size);
	return 0;
}

int main(int argc, char **argv)
{
	char store[1024];
	struct stead_options options = {.store = store, .workspace = "hello", .create = 1};
	struct stead_error error;
	struct stead_stat stat;
	struct stead *stead;
	char *text, *data;
	size_t size;

	snprintf(store, sizeof(store), "disk:%s", argc > 1 ? argv[1] : "./workspaces");
	if (stead_open(&options, &stead, &error) != 0)
		goto failed;
	stead_subscribe(stead, changed, NULL);

	/* For a program: bytes in, bytes out. */
	if (stead_write(stead, "notes/hello.md", "# Hello\n", 8, NULL, &stat, &error) != 0 ||
	    stead_read(stead, "notes/hello.md", &data, &size, &error) != 0)
		goto close;
	printf("read %zu bytes: %s", size, data);
	stead_free(data);

	/* For an agent: a tool with JSON arguments, and text that a model can read. */
	if (stead_call(stead, "edit_file",
		       "{\"path\": \"notes/hello.md\", \"old_text\": \"Hello\", \"new_text\": \"Good morning\"}", NULL,
		       NULL, &error) != 0 ||
	    stead_call(stead, "read_file", "{\"path\": \"notes/hello.md\"}", &text, NULL, &error) != 0)
		goto close;
	printf("%s\n", text);
	stead_free(text);
	if (stead_list(stead, "notes", show, NULL, &error) != 0)
		goto close;

	/* An error is a kind and a sentence. The file has changed since `stat` was filled in: */
	if (stead_write(stead, "notes/hello.md", "x", 1, stat.version, NULL, &error) == STEAD_CONFLICT)
		printf("refused, as it should be\n");
	stead_close(stead);
	return 0;
close:
	stead_close(stead);
failed:
	fprintf(stderr, "hello: %s\n", error.message);
	return 1;
}
