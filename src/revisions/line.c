/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the revision log. JSON, so that a person can read what happened with the tools at hand; the content of a
 * small write is in it, as text where possible. The sum at the end covers everything before it and the line's place, so
 * that a line that is changed, missing or in another place is found.
 *
 * A line is cut before it is parsed: ,"data":" cannot occur inside a JSON string (its quotes would be escaped), so the
 * head is found without reading the content, and reading a log costs the heads, not the bytes that were written.
 */
#include "revisions/line.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/hex.h"

#define LOOK_AHEAD 4096 /* lines that may be missing before a good one is taken for bad */

/* The keys of contents, which come last: text, or else base64. What follows each is a quote. */
#define WAS         ",\"was\":"
#define WAS_BASE64  ",\"was64\":"
#define DATA        ",\"data\":"
#define DATA_BASE64 ",\"base64\":"

static const char *const op_names[REV_OPS] = {"write", "append", "remove", "move", "copy", "outside"};

const char *rev_op_name(enum rev_op op)
{
	return op < REV_OPS ? op_names[op] : "unknown";
}

static void write_hash(struct buf *out, const char *key, const struct rev_hash *hash)
{
	char hex[REV_HASH_DIGITS];

	buf_printf(out, ",\"%s\":\"", key);
	buf_add(out, str_n(hex, rev_hash_hex(hash, hex)));
	buf_char(out, '"');
}

/* A mode without an owner is one of a file that belongs to whom the store's top directory belongs to, which is the
   ordinary case. */
static void write_rights(struct buf *out, const struct rev_state *s)
{
	buf_printf(out, ",\"mode\":%u", s->mode);
	if (s->owner.kind == STORE_OWNER_IDS)
		buf_printf(out, ",\"uid\":%u,\"gid\":%u", s->owner.uid, s->owner.gid);
	else if (s->owner.kind == STORE_OWNER_UNKNOWN)
		buf_lit(out, ",\"uid\":null");
}

/* Numbers that cannot be an id say that the owner is not known. */
static struct store_owner parse_owner(const struct jv *v)
{
	const struct jv *uid = jv_get(v, "uid");
	int64_t u = jv_get_int(v, "uid", -1), g = jv_get_int(v, "gid", -1);

	if (!uid)
		return (struct store_owner){.kind = STORE_OWNER_TOP};
	if (u < 0 || g < 0 || u >= UINT32_MAX || g >= UINT32_MAX)
		return (struct store_owner){0};
	return (struct store_owner){.kind = STORE_OWNER_IDS, .uid = (uint32_t)u, .gid = (uint32_t)g};
}

static void write_state(struct buf *out, const char *key, const struct rev_state *s)
{
	static const char *const places[] = {"nowhere", "log", "blob", "prefix", "here"};

	buf_printf(out, ",\"%s\":", key);
	if (!s->exists) {
		buf_lit(out, "null");
		return;
	}
	buf_printf(out, "{\"size\":%llu,\"in\":\"%s\"", (unsigned long long)s->size, places[s->where]);
	if (rev_hash_is_set(&s->hash))
		write_hash(out, "hash", &s->hash);
	if (s->mode)
		write_rights(out, s);
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

static void write_bytes(struct arena *arena, struct buf *out, struct str bytes, const char *text, const char *base64)
{
	if (utf8_valid(bytes)) {
		buf_add(out, str_of(text));
		jv_write_string(out, bytes);
	} else {
		buf_add(out, str_of(base64));
		buf_char(out, '"');
		buf_add(out, base64_encode(arena, bytes));
		buf_char(out, '"');
	}
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
	if (d->before.where == REV_HERE)
		write_bytes(arena, out, d->was, WAS, WAS_BASE64);
	if (d->after.where == REV_PREFIX && d->piece.where == REV_BLOB) {
		write_hash(out, "piece", &d->piece.hash);
		return;
	}
	if (d->after.where != REV_PREFIX && !(d->after.where == REV_LOG && d->after.held_by == 0))
		return;
	write_bytes(arena, out, d->data, DATA, DATA_BASE64);
}

static uint64_t sum_of(struct str bytes, struct rev_seq seq)
{
	return hash_u64(bytes, seq.at * UINT64_C(0x9e3779b97f4a7c15) + seq.line);
}

void rev_line_finish(struct buf *out, size_t start, struct rev_seq *seq)
{
	char hex[16];

	if (out->overflow)
		return;
	hex_u64(sum_of(str_n(out->ptr + start, out->len - start), *seq), hex);
	seq->line++;
	buf_lit(out, ",\"sum\":\"");
	buf_add(out, str_n(hex, 16));
	buf_lit(out, "\"}\n");
}

void rev_line_note(struct buf *out, const char *kind, uint64_t number, struct rev_seq *seq)
{
	size_t start = out->len;

	buf_lit(out, "{\"");
	buf_add(out, str_of(kind));
	buf_lit(out, "\":");
	buf_u64(out, number);
	rev_line_finish(out, start, seq);
}

void rev_line_mark_end(struct buf *out)
{
	if (!out->overflow && out->len > REV_LINE_SUM)
		memcpy(out->ptr + out->len - 1 - REV_LINE_SUM + 2, "end", 3);
}

void rev_line_checkpoint(struct buf *out, const struct rev_checkpoint *c)
{
	buf_lit(out, "{\"checkpoint\":");
	jv_write_string(out, c->name);
	buf_printf(out, ",\"rev\":%llu,\"time\":%lld", (unsigned long long)c->number, (long long)c->time_ns);
}

bool rev_line_next(struct str *rest, struct str *ret_line)
{
	size_t len = str_find_char(*rest, '\n');

	if (len == rest->len)
		return false;
	*ret_line = str_first(*rest, len);
	*rest = str_from(*rest, len + 1);
	return true;
}

bool rev_line_sum(struct str line, uint64_t *ret_sum, bool *ret_end)
{
	struct str end;

	if (line.len < REV_LINE_SUM + 4 || line.ptr[0] != '{')
		return false;
	end = str_from(line, line.len - REV_LINE_SUM);
	*ret_end = str_starts(end, STR(",\"end\":\""));
	if ((!*ret_end && !str_starts(end, STR(",\"sum\":\""))) || !str_ends(end, STR("\"}")))
		return false;
	*ret_sum = 0;
	for (size_t i = 8; i < 24; i++) {
		int digit = hex_digit(end.ptr[i]);

		if (digit < 0 || (end.ptr[i] >= 'A' && end.ptr[i] <= 'F'))
			return false;
		*ret_sum = *ret_sum << 4 | (uint64_t)digit;
	}
	return true;
}

bool rev_line_is_whole(struct str line, struct rev_seq seq)
{
	uint64_t sum;
	bool end;

	return rev_line_sum(line, &sum, &end) && sum_of(str_first(line, line.len - REV_LINE_SUM), seq) == sum;
}

bool rev_line_find(struct str line, struct rev_seq *seq)
{
	struct rev_seq try = *seq;

	for (uint32_t i = 0; i < LOOK_AHEAD; i++, try.line++)
		if (rev_line_is_whole(line, try)) {
			*seq = try;
			return true;
		}
	return false;
}

/* An append that has an end and bad lines may be void all the same: a power cut leaves any part of it. */
size_t rev_append_next(struct str rest, struct rev_seq seq, size_t *ret_void, bool *ret_bad)
{
	struct str all = rest, line;
	struct rev_seq at = seq;
	size_t len = 0;
	bool bad = false;

	*ret_void = 0;
	while (rev_line_next(&rest, &line)) {
		size_t offset = (size_t)(line.ptr - all.ptr);
		bool is_end;
		uint64_t sum;

		if (offset && rev_line_number(line, "torn") == offset && rev_line_is_whole(line, seq)) {
			*ret_void = offset;
			at = seq;
			len = 0;
			bad = false;
		}
		if (len)
			continue; /* it is bad, so all that can still come is the line that says so */
		bad = bad || !rev_line_is_whole(line, at);
		at.line++;
		if (rev_line_sum(line, &sum, &is_end) && is_end) {
			len = (size_t)(rest.ptr - all.ptr) - *ret_void;
			if (!bad)
				break;
		}
	}
	*ret_bad = bad;
	return len;
}

bool rev_append_is_cut_off(struct str rest, struct rev_seq first)
{
	struct str all = rest, line;
	struct rev_seq seq = first;
	bool is_end, good = true;
	uint64_t sum;

	while (rev_line_next(&rest, &line)) {
		if (rev_line_number(line, "torn") == (size_t)(line.ptr - all.ptr)) {
			good = true;
			seq = first;
		}
		good = good && rev_line_is_whole(line, seq);
		seq.line++;
	}
	/* a line whose newline was changed is not the beginning of one */
	return good && !(rest.len && rev_line_sum(str_first(rest, rest.len - 1), &sum, &is_end));
}

uint64_t rev_line_number(struct str line, const char *kind)
{
	size_t len = strlen(kind);
	uint64_t number = 0;

	if (line.len < len + 5 || memcmp(line.ptr, "{\"", 2) != 0 || memcmp(line.ptr + 2, kind, len) != 0 ||
	    memcmp(line.ptr + 2 + len, "\":", 2) != 0)
		return 0;
	for (size_t i = len + 4; i < line.len && line.ptr[i] >= '0' && line.ptr[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(line.ptr[i] - '0');
	return number;
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
		     : str_is(in, "here")   ? REV_HERE
		     : str_is(in, "blob")   ? REV_BLOB
		     : str_is(in, "prefix") ? REV_PREFIX
					    : REV_NOWHERE;
	ret->held_by = (uint64_t)jv_get_int(v, "rev", 0);
	ret->mode = (uint32_t)jv_get_int(v, "mode", 0);
	if (ret->mode)
		ret->owner = parse_owner(v);
	return rev_hash_parse(jv_get_str(v, "hash"), &ret->hash);
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
	if (!ret->r.number || ret->r.op >= REV_OPS || !rev_hash_parse(jv_get_str(v, "piece"), &ret->piece) ||
	    wpath_parse(jv_get_str(v, "path"), &ret->r.path, &ignored) != 0 || wpath_is_root(ret->r.path) ||
	    !parse_state(jv_get(v, "before"), &ret->r.before) || !parse_state(jv_get(v, "after"), &ret->r.after))
		return false;
	if (made) { /* in the same step as its record */
		ret->done = true;
		ret->r.after.version = jv_get_str(v, "made");
	}
	return true;
}

/* Where one of two keys is, with the quote after it; SIZE_MAX: neither is there. */
static size_t find_key(struct str line, struct str text, struct str base64)
{
	size_t at = str_find(line, text, 0);

	return at == SIZE_MAX ? str_find(line, base64, 0) : at;
}

/* Where the record's bytes begin (at the comma before their key), or the sum's comma if it has none. */
static size_t head_end(struct str line)
{
	size_t data = find_key(line, STR(DATA "\""), STR(DATA_BASE64 "\""));
	struct str head = str_first(line, data == SIZE_MAX ? line.len - REV_LINE_SUM : data);
	size_t was = find_key(head, STR(WAS "\""), STR(WAS_BASE64 "\""));

	return was == SIZE_MAX ? head.len : was;
}

/* Lines that say one number under their name. */
static const struct {
	const char *key;
	enum rev_line_kind kind;
} notes[] = {
	{"done", REV_LINE_DONE},       {"abort", REV_LINE_ABORT}, {"help", REV_LINE_HELP}, {"seal", REV_LINE_SEAL},
	{"horizon", REV_LINE_HORIZON}, {"torn", REV_LINE_TORN},   {"lost", REV_LINE_LOST},
};

bool rev_line_parse(struct arena *arena, struct str line, struct rev_line *ret)
{
	struct jv *v;
	struct err ignored;
	struct buf head;

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
	if (jv_get(v, "checkpoint")) {
		ret->kind = REV_LINE_CHECKPOINT;
		ret->text = jv_get_str(v, "checkpoint");
		ret->number = (uint64_t)jv_get_int(v, "rev", 0);
		ret->time_ns = jv_get_int(v, "time", 0);
		return true;
	}
	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (jv_get(v, notes[i].key)) {
			ret->kind = notes[i].kind;
			ret->number = (uint64_t)jv_get_int(v, notes[i].key, 0);
			ret->text = jv_get_str(v, "version");
			return true;
		}
	return false;
}

/* The content under one of two keys. */
static bool bytes_of(struct arena *arena, struct str line, const char *text, const char *base64, struct str *ret)
{
	struct jv *v;
	struct err ignored;
	struct buf object;
	size_t at = head_end(line);
	struct str encoded;

	if (at == line.len - REV_LINE_SUM)
		return false;
	buf_init(&object, arena, line.len + 2);
	buf_char(&object, '{');
	buf_add(&object, str_first(str_from(line, at + 1), line.len - REV_LINE_SUM - at - 1));
	buf_char(&object, '}');
	if (jv_parse(arena, buf_str(&object), &v, &ignored))
		return false;
	*ret = jv_get_str(v, text);
	if (ret->ptr)
		return true;
	encoded = jv_get_str(v, base64);
	return encoded.ptr && base64_decode(arena, encoded, ret);
}

bool rev_line_data(struct arena *arena, struct str line, struct str *ret_data)
{
	return bytes_of(arena, line, "data", "base64", ret_data);
}

bool rev_line_was(struct arena *arena, struct str line, struct str *ret_was)
{
	return bytes_of(arena, line, "was", "was64", ret_was);
}
