/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay:FILE, a model that answers with what was recorded: the assistant messages of a session's log (or of any file
 * with such lines), in order. It makes runs that cost nothing and always go the same way: for tests, demonstrations and
 * `stead replay`. A conversation that already has answers of this recording continues after them, so a run that was
 * killed continues where it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "model/model_internal.h"

static int read_file(struct arena *arena, struct str name, struct str *ret, struct err *err)
{
	const char *path = arena_cstr(arena, name);
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "the recording \"%.*s\" cannot be opened", STR_ARG(utf8_first(name, 200)));
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)JSON_LEN_MAX)
		return err_set(err, ERR_INVALID, "the recording \"%.*s\" is not a file of at most %zu MiB",
			       STR_ARG(utf8_first(name, 200)), JSON_LEN_MAX / MIB);
	text = arena_alloc_raw(arena, (size_t)st.st_size + 1);
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	*ret = str_n(text, len);
	return 0;
}

int recording_open(struct model *m, struct err *err)
{
	struct jv *list = jv_array(m->arena), *v;
	struct str rest, line;
	int r = read_file(m->arena, m->set.name, &rest, err);

	for (unsigned number = 1; r == 0 && str_cut(&rest, '\n', &line); number++) {
		if (!str_trim(line).len)
			continue;
		r = jv_parse(m->arena, line, &v, err);
		if (r)
			return err_prefix(err, "the recording \"%.*s\", line %u", STR_ARG(utf8_first(m->set.name, 200)),
					  number);
		if (str_is(jv_get_str(v, "type"), "message") && str_is(jv_get_str(v, "role"), "assistant"))
			jv_push(m->arena, list, v);
	}
	if (r == 0 && !jv_count(list))
		return err_set(err, ERR_INVALID,
			       "the recording \"%.*s\" has no answers: lines {\"type\":\"message\","
			       "\"role\":\"assistant\",\"content\":…}",
			       STR_ARG(utf8_first(m->set.name, 200)));
	m->recording = list;
	return r;
}

static struct jv *content_of(struct arena *arena, const struct jv *message)
{
	const struct jv *content = jv_get(message, "content");
	struct jv *list, *block;

	if (content && content->type == JV_ARRAY)
		return jv_copy(arena, content);
	list = jv_array(arena);
	block = jv_object(arena);
	jv_set_str(arena, block, "type", STR("text"));
	jv_set_str(arena, block, "text", jv_str_of(content));
	if (jv_str_of(content).len)
		jv_push(arena, list, block);
	return list;
}

/* A turn continues after an answer that was paused. */
static enum model_stop stop_of(const struct jv *message)
{
	for (int i = 0; i < MODEL_STOPS; i++)
		if (str_is(jv_get_str(message, "stop"), model_stop_name((enum model_stop)i)))
			return (enum model_stop)i;
	return MODEL_DONE;
}

int recording_ask(struct model *m, struct ctx *ctx, const struct model_request *req, struct model_answer *ret,
		  struct err *err)
{
	const struct jv *message = jv_at(m->recording, req->answered), *usage = jv_get(message, "usage");
	int r = ctx_check(ctx, err);

	if (r)
		return r;
	if (!message)
		return err_set(err, ERR_NOT_FOUND, "the recording \"%.*s\" has %zu answers, and all were given",
			       STR_ARG(utf8_first(m->set.name, 200)), jv_count(m->recording));
	*ret = (struct model_answer){.content = content_of(ctx->arena, message),
				     .id = jv_get_str(message, "response_id"),
				     .stop = stop_of(message),
				     .usage = {.input = (uint64_t)jv_get_int(usage, "input_tokens", 0),
					       .output = (uint64_t)jv_get_int(usage, "output_tokens", 0),
					       .cache_read = (uint64_t)jv_get_int(usage, "cache_read_tokens", 0),
					       .cache_write = (uint64_t)jv_get_int(usage, "cache_write_tokens", 0)},
				     .attempts = 1};
	for (const struct jv_member *b = jv_first(ret->content); b && req->delta; b = b->next)
		if (str_is(jv_get_str(b->value, "type"), "text"))
			req->delta(req->arg, MODEL_TEXT, jv_get_str(b->value, "text"));
	return 0;
}
