/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the revision log. JSON, so that a person can read what happened with the tools at hand; the content of a
 * small write is in it, as text where possible. The sum at the end covers everything before it.
 *
 * A line is cut before it is parsed: ,"data":" cannot occur inside a JSON string (its quotes would be escaped), so the
 * head is found without reading the content, and reading a log costs the heads, not the bytes that were written.
 */
#include "revisions/line.h"

#include "base/base64.h"
#include "base/hash.h"

#define SUM_LEN 26 /* ,"sum":"0123456789abcdef"} */

static const char *const op_names[REV_OPS] = {"write", "append", "remove", "move", "copy", "outside"};

const char *rev_op_name(enum rev_op op)
{
	return op < REV_OPS ? op_names[op] : "unknown";
}

static void write_hash(struct buf *out, const uint64_t hash[2])
{
	char hex[32];

	hex_u64(hash[0], hex);
	hex_u64(hash[1], hex + 16);
	buf_add(out, str_n(hex, 32));
}

static void write_state(struct buf *out, const char *key, const struct rev_state *s)
{
	static const char *const places[] = {"nowhere", "log", "blob", "prefix"};

	buf_printf(out, ",\"%s\":", key);
	if (!s->exists) {
		buf_lit(out, "null");
		return;
	}
	buf_printf(out, "{\"size\":%llu,\"in\":\"%s\"", (unsigned long long)s->size, places[s->where]);
	if (s->hash[0] || s->hash[1]) {
		buf_lit(out, ",\"hash\":\"");
		write_hash(out, s->hash);
		buf_char(out, '"');
	}
	if (s->version.len) {
		buf_lit(out, ",\"version\":");
		jv_write_string(out, s->version);
	}
	if (s->held_by)
		buf_printf(out, ",\"rev\":%llu", (unsigned long long)s->held_by);
	buf_char(out, '}');
}

static void write_word(struct buf *out, const char *key, struct str s, bool *first)
{
	if (s.len == 0)
		return;
	buf_printf(out, "%s\"%s\":", *first ? "" : ",", key);
	jv_write_string(out, s);
	*first = false;
}

void rev_line_body(struct arena *arena, struct buf *out, const struct rev_draft *d)
{
	bool first = true;

	buf_printf(out, ",\"time\":%lld,\"op\":\"%s\",\"path\":", (long long)d->time_ns, rev_op_name(d->op));
	jv_write_string(out, d->path.s);
	if (d->other.len) {
		buf_lit(out, ",\"other\":");
		jv_write_string(out, d->other);
	}
	write_state(out, "before", &d->before);
	write_state(out, "after", &d->after);
	buf_lit(out, ",\"by\":{");
	write_word(out, "user", d->actor.user, &first);
	write_word(out, "agent", d->actor.agent, &first);
	write_word(out, "session", d->actor.session, &first);
	write_word(out, "call", d->actor.call_id, &first);
	buf_char(out, '}');
	if (d->after.where == REV_PREFIX && d->piece.where == REV_BLOB) {
		buf_lit(out, ",\"piece\":\"");
		write_hash(out, d->piece.hash);
		buf_char(out, '"');
		return;
	}
	if (d->after.where != REV_PREFIX && !(d->after.where == REV_LOG && d->after.held_by == 0))
		return;
	if (utf8_valid(d->data)) {
		buf_lit(out, ",\"data\":");
		jv_write_string(out, d->data);
	} else {
		buf_lit(out, ",\"base64\":\"");
		buf_add(out, base64_encode(arena, d->data));
		buf_char(out, '"');
	}
}

void rev_line_finish(struct buf *out, size_t start)
{
	char hex[16];

	hex_u64(hash_u64(str_n(out->ptr + start, out->len - start), 0), hex);
	buf_lit(out, ",\"sum\":\"");
	buf_add(out, str_n(hex, 16));
	buf_lit(out, "\"}\n");
}

void rev_line_checkpoint(struct buf *out, const struct rev_checkpoint *c)
{
	size_t start = out->len;

	buf_lit(out, "{\"checkpoint\":");
	jv_write_string(out, c->name);
	buf_printf(out, ",\"rev\":%llu,\"time\":%lld", (unsigned long long)c->number, (long long)c->time_ns);
	rev_line_finish(out, start);
}

static bool sum_fits(struct str line)
{
	char hex[16];
	struct str end;

	if (line.len < SUM_LEN + 4 || line.ptr[0] != '{')
		return false;
	end = str_from(line, line.len - SUM_LEN);
	hex_u64(hash_u64(str_first(line, line.len - SUM_LEN), 0), hex);
	return str_starts(end, STR(",\"sum\":\"")) && memcmp(end.ptr + 8, hex, 16) == 0 && str_ends(end, STR("\"}"));
}

bool hex_hash(struct str s, uint64_t ret[2])
{
	ret[0] = ret[1] = 0;
	if (s.len != 32)
		return s.len == 0;
	for (size_t i = 0; i < 32; i++) {
		char c = s.ptr[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 16;

		if (digit > 15)
			return false;
		ret[i / 16] = ret[i / 16] << 4 | digit;
	}
	return true;
}

static bool parse_state(const struct jv *v, struct rev_state *ret)
{
	struct str in = jv_get_str(v, "in");

	*ret = (struct rev_state){0};
	if (jv_is_null(v))
		return true;
	ret->exists = true;
	ret->size = (uint64_t)jv_get_int(v, "size", 0);
	ret->version = jv_get_str(v, "version");
	ret->where = str_is(in, "log")      ? REV_LOG
		     : str_is(in, "blob")   ? REV_BLOB
		     : str_is(in, "prefix") ? REV_PREFIX
					    : REV_NOWHERE;
	ret->held_by = (uint64_t)jv_get_int(v, "rev", 0);
	return hex_hash(jv_get_str(v, "hash"), ret->hash);
}

static bool parse_record(const struct jv *v, struct rev_record *ret)
{
	const struct jv *by = jv_get(v, "by"), *made = jv_get(v, "made");
	struct str op = jv_get_str(v, "op");
	struct err ignored;

	*ret = (struct rev_record){0};
	ret->r.number = (uint64_t)jv_get_int(v, "rev", 0);
	ret->left = (uint64_t)jv_get_int(v, "left", 0);
	ret->r.time_ns = jv_get_int(v, "time", 0);
	while (ret->r.op < REV_OPS && !str_is(op, op_names[ret->r.op]))
		ret->r.op++;
	ret->r.other = jv_get_str(v, "other");
	ret->r.actor = (struct actor){.user = jv_get_str(by, "user"),
				      .agent = jv_get_str(by, "agent"),
				      .session = jv_get_str(by, "session"),
				      .call_id = jv_get_str(by, "call")};
	if (!ret->r.number || ret->r.op >= REV_OPS || !hex_hash(jv_get_str(v, "piece"), ret->piece) ||
	    wpath_parse(jv_get_str(v, "path"), &ret->r.path, &ignored) != 0 || wpath_is_root(ret->r.path) ||
	    !parse_state(jv_get(v, "before"), &ret->r.before) || !parse_state(jv_get(v, "after"), &ret->r.after))
		return false;
	if (made) { /* in the same step as its record */
		ret->done = true;
		ret->r.after.version = jv_get_str(v, "made");
	}
	return true;
}

/* Where the record's bytes begin (at the comma before their key), or the sum's comma if it has none. */
static size_t head_end(struct str line)
{
	size_t data = str_find(line, STR(",\"data\":\""), 0);

	if (data == SIZE_MAX)
		data = str_find(line, STR(",\"base64\":\""), 0);
	return data == SIZE_MAX ? line.len - SUM_LEN : data;
}

bool rev_line_parse(struct arena *arena, struct str line, struct rev_line *ret)
{
	struct jv *v;
	struct err ignored;
	struct buf head;

	if (!sum_fits(line))
		return false;
	buf_init(&head, arena, line.len + 1);
	buf_add(&head, str_first(line, head_end(line)));
	buf_char(&head, '}');
	if (jv_parse(arena, buf_str(&head), &v, &ignored))
		return false;
	*ret = (struct rev_line){0};
	if (jv_get(v, "op")) {
		ret->kind = REV_LINE_RECORD;
		return parse_record(v, &ret->record);
	}
	if (jv_get(v, "done")) {
		ret->kind = REV_LINE_DONE;
		ret->number = (uint64_t)jv_get_int(v, "done", 0);
		ret->text = jv_get_str(v, "version");
	} else if (jv_get(v, "abort")) {
		ret->kind = REV_LINE_ABORT;
		ret->number = (uint64_t)jv_get_int(v, "abort", 0);
	} else if (jv_get(v, "help")) {
		ret->kind = REV_LINE_HELP;
		ret->number = (uint64_t)jv_get_int(v, "help", 0);
	} else if (jv_get(v, "seal")) {
		ret->kind = REV_LINE_SEAL;
		ret->number = (uint64_t)jv_get_int(v, "seal", 0);
	} else if (jv_get(v, "horizon")) {
		ret->kind = REV_LINE_HORIZON;
		ret->number = (uint64_t)jv_get_int(v, "horizon", 0);
	} else if (jv_get(v, "checkpoint")) {
		ret->kind = REV_LINE_CHECKPOINT;
		ret->text = jv_get_str(v, "checkpoint");
		ret->number = (uint64_t)jv_get_int(v, "rev", 0);
		ret->time_ns = jv_get_int(v, "time", 0);
	} else {
		return false;
	}
	return true;
}

bool rev_line_data(struct arena *arena, struct str line, struct str *ret_data)
{
	struct jv *v;
	struct err ignored;
	struct buf object;
	size_t at = head_end(line);
	struct str encoded;

	if (!sum_fits(line) || at == line.len - SUM_LEN)
		return false;
	buf_init(&object, arena, line.len + 2);
	buf_char(&object, '{');
	buf_add(&object, str_first(str_from(line, at + 1), line.len - SUM_LEN - at - 1));
	buf_char(&object, '}');
	if (jv_parse(arena, buf_str(&object), &v, &ignored))
		return false;
	*ret_data = jv_get_str(v, "data");
	if (ret_data->ptr)
		return true;
	encoded = jv_get_str(v, "base64");
	return encoded.ptr && base64_decode(arena, encoded, ret_data);
}
