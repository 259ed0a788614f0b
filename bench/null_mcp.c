/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of the MCP benchmark: a server that does nothing. It finds the id of each line and answers with fixed
 * bytes (1 KiB of text to any tool call), all answers of one read in one write. What it costs is the cost of the pipe,
 * the client and the scheduler; no server can be faster. It is not a parser: it trusts the load generator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_MAX = 4 << 20, OUT_MAX = 4 << 20, TEXT_LEN = 1024 };

static char in[IN_MAX], out[OUT_MAX], text[TEXT_LEN + 1];
static size_t out_len;

static void flush_out(void)
{
	for (size_t done = 0; done < out_len;) {
		ssize_t n = write(STDOUT_FILENO, out + done, out_len - done);

		if (n <= 0)
			exit(1);
		done += (size_t)n;
	}
	out_len = 0;
}

static const char *result_for(const char *line)
{
	if (strstr(line, "\"initialize\""))
		return "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
		       "\"serverInfo\":{\"name\":\"null\",\"version\":\"1\"}}";
	if (strstr(line, "\"tools/list\""))
		return "{\"tools\":[{\"name\":\"read_file\",\"inputSchema\":{\"type\":\"object\"}}]}";
	return NULL;
}

static void answer(const char *line)
{
	const char *id = strstr(line, "\"id\":"), *result = result_for(line);
	int id_len;

	if (!id)
		return; /* a notification */
	id += 5;
	id_len = (int)strcspn(id, ",}");
	if (out_len + 2 * TEXT_LEN > OUT_MAX)
		flush_out();
	if (result)
		out_len += (size_t)snprintf(out + out_len, OUT_MAX - out_len,
					    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", id_len, id, result);
	else
		out_len += (size_t)snprintf(out + out_len, OUT_MAX - out_len,
					    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":"
					    "\"text\",\"text\":\"%s\"}]}}\n",
					    id_len, id, text);
}

int main(void)
{
	size_t have = 0;
	ssize_t n;

	memset(text, 'x', TEXT_LEN);
	while ((n = read(STDIN_FILENO, in + have, IN_MAX - 1 - have)) > 0) {
		char *line = in, *end;

		have += (size_t)n;
		in[have] = '\0';
		while ((end = memchr(line, '\n', have - (size_t)(line - in)))) {
			*end = '\0';
			answer(line);
			line = end + 1;
		}
		have -= (size_t)(line - in);
		memmove(in, line, have);
		flush_out();
	}
	return 0;
}
