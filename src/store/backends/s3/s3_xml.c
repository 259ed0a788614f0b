/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader for the few kinds of XML that S3 servers send. It walks the text once, keeps the open elements on a fixed
 * stack and tells a visitor of each element as it ends: the shapes below are then a few comparisons each. A general
 * library was rejected: entity expansion, namespaces and external documents are exactly what must not happen here.
 */
#include "store/backends/s3/s3_xml.h"

#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/utf8.h"

struct walk {
	struct arena *arena;
	struct str rest;
	struct str open[S3_XML_DEPTH_MAX];
	struct str text; /* of the innermost open element, not decoded */
	bool leaf;       /* the innermost open element has no element in it */
	unsigned depth;  /* open elements */
	bool began;
};

static int broken(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the S3 server's answer is not complete XML; is this address an S3 server?");
}

static void add_code_point(struct buf *out, uint32_t c)
{
	char bytes[UTF8_LEN_MAX];

	buf_add(out, str_n(bytes, utf8_put(bytes, c)));
}

/* "#10", "#xA": 0 when it is malformed, or more than Unicode has. */
static uint32_t char_reference(struct str name)
{
	bool hex = name.len > 1 && name.ptr[1] == 'x';
	uint32_t c = 0;

	for (size_t i = hex ? 2 : 1; i < name.len; i++) {
		int d = hex_digit(name.ptr[i]);

		if (d < 0 || (!hex && d > 9))
			return 0;
		c = c * (hex ? 16 : 10) + (uint32_t)d;
		if (c > 0x10FFFF)
			return 0;
	}
	return c;
}

static bool add_entity(struct buf *out, struct str name)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	uint32_t c;

	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i].name)) {
			buf_char(out, known[i].c);
			return true;
		}
	if (name.len < 2 || name.ptr[0] != '#' || (c = char_reference(name)) == 0)
		return false;
	add_code_point(out, c);
	return true;
}

static int decode(struct arena *arena, struct str raw, struct str *ret, struct err *err)
{
	struct buf out;

	if (str_find_char(raw, '&') == raw.len) {
		*ret = arena_str(arena, raw);
		return 0;
	}
	buf_init(&out, arena, raw.len + 1);
	for (size_t i = 0; i < raw.len; i++) {
		size_t end;

		if (raw.ptr[i] != '&') {
			buf_char(&out, raw.ptr[i]);
			continue;
		}
		end = str_find_char(str_from(raw, i), ';');
		if (end > 10 || end == raw.len - i || !add_entity(&out, str_n(raw.ptr + i + 1, end - 1)))
			return broken(err);
		i += end;
	}
	*ret = buf_str(&out);
	return 0;
}

static int end_element(struct walk *w, struct str name, s3_xml_visit visit, void *arg, struct err *err)
{
	struct str text = STR(""), parent = w->depth > 1 ? w->open[w->depth - 2] : STR("");
	int r = 0;

	if (w->depth == 0 || !str_eq(w->open[w->depth - 1], name))
		return broken(err);
	if (w->leaf)
		r = decode(w->arena, w->text, &text, err);
	w->depth--;
	w->leaf = false;
	w->text = STR("");
	return r ? r : visit(arg, parent, name, w->depth, text, err);
}

static int begin_element(struct walk *w, struct str name, struct err *err)
{
	if (w->depth == S3_XML_DEPTH_MAX || (w->depth == 0 && w->began) || name.len == 0)
		return broken(err);
	w->open[w->depth++] = name;
	w->leaf = w->began = true;
	w->text = STR("");
	return 0;
}

/* One "<…>", without its brackets. */
static int one_tag(struct walk *w, struct str tag, s3_xml_visit visit, void *arg, struct err *err)
{
	bool closed = str_ends(tag, STR("/"));
	size_t n = 0;
	int r;

	if (str_starts(tag, STR("?")) || str_starts(tag, STR("!--")))
		return 0;
	if (str_starts(tag, STR("!")))
		return broken(err); /* a DTD or CDATA: no S3 server sends one */
	if (str_starts(tag, STR("/")))
		return end_element(w, str_trim(str_from(tag, 1)), visit, arg, err);
	if (closed)
		tag.len--;
	while (n < tag.len && !strchr(" \t\r\n", tag.ptr[n]))
		n++;
	r = begin_element(w, str_first(tag, n), err);
	return r == 0 && closed ? end_element(w, str_first(tag, n), visit, arg, err) : r;
}

int s3_xml_walk(struct arena *arena, struct str xml, s3_xml_visit visit, void *arg, struct err *err)
{
	struct walk w = {.arena = arena, .rest = xml, .text = STR("")};

	while (w.rest.len) {
		size_t from = str_find_char(w.rest, '<'), end;
		struct str tag;
		int r;

		if (w.depth && w.leaf)
			w.text = str_first(w.rest, from);
		if (from == w.rest.len)
			break;
		w.rest = str_from(w.rest, from + 1);
		if (str_starts(w.rest, STR("!--")))
			end = str_find(w.rest, STR("-->"), 3);
		else
			end = str_find(w.rest, STR(">"), 0);
		if (end == SIZE_MAX)
			return broken(err);
		if (str_starts(w.rest, STR("!--")))
			end += 2;
		tag = str_first(w.rest, end);
		w.rest = str_from(w.rest, end + 1);
		r = one_tag(&w, tag, visit, arg, err);
		if (r)
			return r;
	}
	return w.depth || !w.began ? broken(err) : 0;
}

/* Shapes. */

static int error_visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text, struct err *err)
{
	struct s3_error *e = arg;

	(void)depth;
	(void)err;
	if (!str_is(parent, "Error"))
		return 0;
	if (str_is(name, "Code"))
		e->code = text;
	else if (str_is(name, "Message"))
		e->message = text;
	else if (str_is(name, "Region"))
		e->region = text;
	else if (str_is(name, "ServerTime"))
		e->server_time = text;
	return 0;
}

void s3_xml_error(struct arena *arena, struct str xml, struct s3_error *ret)
{
	struct err ignored;

	*ret = (struct s3_error){0};
	(void)s3_xml_walk(arena, xml, error_visit, ret, &ignored); /* a body that is not XML has no code */
}

struct one_text {
	const char *name;
	struct str text;
};

static int text_visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text, struct err *err)
{
	struct one_text *t = arg;

	(void)parent;
	(void)depth;
	(void)err;
	if (!t->text.ptr && str_is(name, t->name))
		t->text = text;
	return 0;
}

struct str s3_xml_text(struct arena *arena, struct str xml, const char *name)
{
	struct one_text t = {.name = name};
	struct err ignored;

	return s3_xml_walk(arena, xml, text_visit, &t, &ignored) ? STR_NONE : t.text;
}

/* "%2F" and its like; any other '%' stays. A '+' is a space, as servers that encode forms send it. */
static struct str url_decoded(struct arena *arena, struct str text)
{
	char *out = arena_alloc_raw(arena, text.len + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		int byte = percent_byte(text, i);

		out[n++] = byte >= 0 ? (char)byte : text.ptr[i] == '+' ? ' ' : text.ptr[i];
		i += byte >= 0 ? 2 : 0;
	}
	out[n] = '\0';
	return str_n(out, n);
}

static struct str unquoted(struct str etag)
{
	if (etag.len >= 2 && etag.ptr[0] == '"' && etag.ptr[etag.len - 1] == '"')
		return str_n(etag.ptr + 1, etag.len - 2);
	return etag;
}

int s3_check_etag(struct str etag, struct err *err)
{
	size_t len = unquoted(str_starts(etag, STR("W/")) ? str_from(etag, 2) : etag).len;

	if (len > VERSION_BARE_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			       "the S3 server gave an ETag of %zu bytes; Stead works with up to %zu", len,
			       VERSION_BARE_MAX);
	return 0;
}

int64_t s3_time(struct str text)
{
	struct tm tm = {0};
	char z[40];

	if (text.len >= sizeof(z))
		return 0;
	memcpy(z, text.ptr ? text.ptr : "", text.len);
	z[text.len] = '\0';
	if (!strptime(z, "%Y-%m-%dT%H:%M:%S", &tm) && !strptime(z, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return 0;
	return (int64_t)timegm(&tm) * NS_PER_S;
}

struct listing_walk {
	struct arena *arena;
	struct s3_listing *list;
	struct s3_object now;
	size_t cap;
};

static void add_object(struct listing_walk *w, const struct s3_object *object)
{
	struct s3_listing *l = w->list;

	ARENA_ROOM(w->arena, l->objects, l->count, w->cap);
	l->objects[l->count++] = *object;
}

static void object_field(struct listing_walk *w, struct str name, struct str text)
{
	int64_t size;

	if (str_is(name, "Key"))
		w->now.key = url_decoded(w->arena, text);
	else if (str_is(name, "ETag"))
		w->now.etag = unquoted(text);
	else if (str_is(name, "LastModified"))
		w->now.modified_ns = s3_time(text);
	else if (str_is(name, "Size"))
		w->now.size = str_to_i64(text, &size) && size > 0 ? (uint64_t)size : 0;
}

static int listing_visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text,
			 struct err *err)
{
	struct listing_walk *w = arg;

	if (depth == 0 && !str_is(name, "ListBucketResult"))
		return broken(err); /* some page, not a list, which must not be taken for an empty bucket */
	if (str_is(parent, "Contents")) {
		object_field(w, name, text);
		return s3_check_etag(w->now.etag, err);
	}
	if (str_is(parent, "CommonPrefixes") && str_is(name, "Prefix")) {
		add_object(w, &(struct s3_object){.key = url_decoded(w->arena, text), .prefix = true});
	} else if (depth == 1 && str_is(name, "Contents")) {
		add_object(w, &w->now);
		w->now = (struct s3_object){0};
	} else if (depth == 1 && str_is(name, "IsTruncated")) {
		w->list->truncated = str_is(text, "true");
	} else if (depth == 1 && str_is(name, "NextContinuationToken")) {
		w->list->token = text;
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct s3_object *)a)->key, ((const struct s3_object *)b)->key);
}

int s3_xml_listing(struct arena *arena, struct str xml, struct s3_listing *ret, struct err *err)
{
	struct s3_listing list = {0};
	struct listing_walk w = {.arena = arena, .list = &list};
	int r = s3_xml_walk(arena, xml, listing_visit, &w, err);

	if (r)
		return r;
	if (list.count)
		qsort(list.objects, list.count, sizeof(list.objects[0]), by_key);
	*ret = list;
	return 0;
}

struct uploads_walk {
	struct arena *arena;
	struct s3_upload *uploads, now;
	size_t count, cap;
};

static int uploads_visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text,
			 struct err *err)
{
	struct uploads_walk *w = arg;

	(void)err;
	if (depth == 1 && str_is(name, "Upload")) {
		if (w->count == w->cap) {
			size_t more = w->cap ? w->cap * 2 : 16;

			w->uploads = arena_grow(w->arena, w->uploads, w->cap * sizeof(w->now), more * sizeof(w->now));
			w->cap = more;
		}
		w->uploads[w->count++] = w->now;
		w->now = (struct s3_upload){0};
	} else if (str_is(parent, "Upload") && str_is(name, "Key")) {
		w->now.key = url_decoded(w->arena, text);
	} else if (str_is(parent, "Upload") && str_is(name, "UploadId")) {
		w->now.id = text;
	} else if (str_is(parent, "Upload") && str_is(name, "Initiated")) {
		w->now.begun_ns = s3_time(text);
	}
	return 0;
}

int s3_xml_uploads(struct arena *arena, struct str xml, struct s3_upload **ret, size_t *ret_count, struct err *err)
{
	struct uploads_walk w = {.arena = arena};
	int r = s3_xml_walk(arena, xml, uploads_visit, &w, err);

	if (r)
		return r;
	*ret = w.uploads;
	*ret_count = w.count;
	return 0;
}
