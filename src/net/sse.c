/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of the HTML standard, with a ceiling. It keeps one line and one event; a line that arrives whole is not
   copied. */
#include "net/sse.h"

#include "base/limits.h"

void sse_init(struct sse *sse, sse_take take, void *arg)
{
	*sse = (struct sse){.take = take, .arg = arg, .retry_ms = -1};
	buf_init(&sse->line, NULL, SSE_EVENT_MAX);
	buf_init(&sse->event, NULL, SSE_EVENT_MAX);
	buf_init(&sse->data, NULL, SSE_EVENT_MAX);
	buf_init(&sse->id, NULL, SSE_EVENT_MAX);
	buf_init(&sse->last_id, NULL, SSE_EVENT_MAX);
}

void sse_release(struct sse *sse)
{
	buf_release(&sse->line);
	buf_release(&sse->event);
	buf_release(&sse->data);
	buf_release(&sse->id);
	buf_release(&sse->last_id);
}

void sse_again(struct sse *sse)
{
	buf_clear(&sse->line);
	buf_clear(&sse->event);
	buf_clear(&sse->data);
	buf_clear(&sse->id);
	sse->has_data = sse->after_cr = sse->begun = false;
}

static int too_large(struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "an event of the stream has more than %zu MiB", SSE_EVENT_MAX / MIB);
}

static int dispatch(struct sse *sse, struct err *err)
{
	struct sse_event event = {buf_str(&sse->event), buf_str(&sse->data), buf_str(&sse->id)};
	int r;

	if (event.id.len) {
		buf_clear(&sse->last_id);
		buf_add(&sse->last_id, event.id);
	}
	r = sse->has_data ? sse->take(sse->arg, &event, err) : 0;

	buf_clear(&sse->event);
	buf_clear(&sse->data);
	buf_clear(&sse->id);
	sse->has_data = false;
	return r;
}

static int take_line(struct sse *sse, struct str line, struct err *err)
{
	size_t colon = str_find_char(line, ':');
	struct str field = str_first(line, colon), value = str_from(line, colon + 1);
	int64_t ms;

	if (line.len == 0)
		return dispatch(sse, err);
	if (str_starts(value, STR(" ")))
		value = str_from(value, 1);
	if (str_is(field, "data")) {
		if (sse->has_data)
			buf_char(&sse->data, '\n');
		buf_add(&sse->data, value);
		sse->has_data = true;
	} else if (str_is(field, "event")) {
		buf_clear(&sse->event);
		buf_add(&sse->event, value);
	} else if (str_is(field, "id")) {
		buf_clear(&sse->id);
		buf_add(&sse->id, value);
	} else if (str_is(field, "retry") && str_to_i64(value, &ms) && ms >= 0) {
		sse->retry_ms = ms;
	}
	return sse->data.overflow ? too_large(err) : 0;
}

/* The bytes up to the end of a line, which `rest` loses with them; false: the line is not whole yet. */
static bool cut_line(struct str *rest, struct str *ret, bool *ret_cr)
{
	for (size_t i = 0; i < rest->len; i++)
		if (rest->ptr[i] == '\n' || rest->ptr[i] == '\r') {
			*ret = str_first(*rest, i);
			*ret_cr = rest->ptr[i] == '\r';
			*rest = str_from(*rest, i + 1);
			return true;
		}
	return false;
}

int sse_feed(struct sse *sse, struct str bytes, struct err *err)
{
	struct str line;
	bool cr;
	int r = 0;

	while (r == 0 && bytes.len) {
		if (sse->after_cr && bytes.ptr[0] == '\n')
			bytes = str_from(bytes, 1);
		sse->after_cr = false;
		if (!cut_line(&bytes, &line, &cr))
			break;
		sse->after_cr = cr;
		if (sse->line.len) {
			buf_add(&sse->line, line);
			line = buf_str(&sse->line);
		}
		if (!sse->begun && str_starts(line, STR("\xef\xbb\xbf")))
			line = str_from(line, 3);
		sse->begun = true;
		r = sse->line.overflow ? too_large(err) : take_line(sse, line, err);
		buf_clear(&sse->line);
	}
	if (r == 0)
		buf_add(&sse->line, bytes);
	return r == 0 && sse->line.overflow ? too_large(err) : r;
}
