/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgetting: a fact goes from the files, from what forks of this workspace show of them, from the past and from the
 * index, in this order, so that at every instant what is left can be forgotten by doing it again. The past goes last:
 * a fork reads its parent's, until it has a file of its own.
 *
 * A receipt is kept: which facts, from where, when, by whom, and the SHA-256 of the words. Someone who knows the words
 * can show that they were forgotten; nobody else can read them. At the end everything is searched once more, and only
 * then does the receipt say that the words are gone.
 */
#include <pthread.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "home/memory/memory_internal.h"
#include "home/search/search.h"
#include "revisions/revisions.h"
#include "store/jsonl.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define RECEIPTS     "memory/forgotten.jsonl"
#define TEXTS_MAX    16
#define MENTIONS_MAX 100
#define FIND_MIN     12 /* words that are shorter are found as a whole fact only */

struct forgetting {
	struct workspace *ws;
	struct ctx *ctx;
	enum memory_trust caller;
	struct str id;
	struct str texts[TEXTS_MAX], forms[TEXTS_MAX]; /* the words; their form in a file */
	size_t text_count;
	struct jv *ids, *files, *derived, *forks;
	struct rev_redacted past;
};

static void add_id(struct arena *arena, struct jv *ids, struct str id)
{
	for (const struct jv_member *m = jv_first(ids); m; m = m->next)
		if (str_eq(jv_str_of(m->value), id))
			return;
	jv_push(arena, ids, jv_str(arena, arena_str(arena, id)));
}

static bool is_text(const struct forgetting *f, struct str text)
{
	for (size_t i = 0; i < f->text_count; i++)
		if (str_eq(f->texts[i], text))
			return true;
	return false;
}

static void add_text(struct forgetting *f, struct str text)
{
	struct buf form;

	if (is_text(f, text) || f->text_count == TEXTS_MAX)
		return;
	buf_init(&form, f->ctx->arena, FACT_FILE_MAX);
	memory_write_fact(&form, text, NULL);
	f->texts[f->text_count] = arena_str(f->ctx->arena, text);
	f->forms[f->text_count++] = str_n(form.ptr + 2, form.len - 3); /* without bullet and newline */
}

/* True when the bytes of a memory file, or a piece of one, have the words. */
static bool holds(void *arg, struct str bytes)
{
	const struct forgetting *f = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct parts parts;

	for (size_t i = 0; i < f->text_count; i++)
		if (f->texts[i].len >= FIND_MIN &&
		    (str_find(bytes, f->texts[i], 0) != SIZE_MAX || str_find(bytes, f->forms[i], 0) != SIZE_MAX))
			return true;
	memory_parse(arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++)
		if (parts.list[i].is_fact && is_text(f, parts.list[i].fact.text))
			return true;
	return false;
}

/* --- which facts --- */

/* With `by_id`: takes the words of the facts with the id. Else: those with the words, whatever their id. */
static int look_in(struct forgetting *f, struct str path, bool by_id, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	struct parts parts;
	struct str bytes;
	int r = memory_read(f->ws, f->ctx, path, &bytes, NULL, err);

	if (r)
		return r;
	memory_parse(arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		const struct fact *fact = &parts.list[i].fact;

		if (!parts.list[i].is_fact)
			continue;
		if (by_id) {
			if (str_eq(fact->id, f->id))
				add_text(f, fact->text);
			continue;
		}
		if (!is_text(f, fact->text))
			continue;
		if (fact->trust > f->caller)
			return err_set(err, ERR_DENIED,
				       "fact %.*s has the trust %s, so only a person can forget it, with `stead memory "
				       "forget`",
				       STR_ARG(fact->id), memory_trust_name(fact->trust));
		add_id(arena, f->ids, fact->id);
	}
	return 0;
}

static int find_facts(struct forgetting *f, struct err *err)
{
	struct str *files;
	size_t count;
	int r = memory_files(f->ws, f->ctx, true, &files, &count, err);

	for (int pass = f->id.len ? 0 : 1; pass < 2; pass++)
		for (size_t i = 0; r == 0 && i < count; i++)
			r = look_in(f, files[i], pass == 0, err);
	if (r == 0 && !f->text_count)
		r = err_set(err, ERR_NOT_FOUND, "there is no fact \"%.*s\"; memory_search shows ids", STR_ARG(f->id));
	return r;
}

/* --- files --- */

static int drop_facts(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct forgetting *f = arg;
	struct parts parts;
	struct buf out;

	(void)err;
	memory_parse(arena, before, &parts);
	buf_init(&out, arena, before.len + 1);
	for (size_t i = 0; i < parts.count; i++)
		if (!parts.list[i].is_fact || !is_text(f, parts.list[i].fact.text))
			buf_add(&out, parts.list[i].raw);
	if (out.len != before.len)
		*ret_after = out.len ? buf_str(&out) : STR("");
	return 0;
}

/* Watermarks behind what went move; the last first, so that the places before it stay. */
static int shift_marks(struct forgetting *f, struct str path, const struct parts *before, struct err *err)
{
	int r = 0;

	for (size_t i = before->count; r == 0 && i--;)
		if (before->list[i].is_fact && is_text(f, before->list[i].fact.text))
			r = memory_shift_marks(f->ws, f->ctx, path,
					       (uint64_t)(before->list[i].raw.ptr - before->list[0].raw.ptr),
					       before->list[i].raw.len, err);
	return r;
}

static int clean_file(struct forgetting *f, struct str path, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	struct store_change change = {.max = FACT_FILE_MAX, .change = drop_facts, .arg = f};
	struct str before, after;
	struct parts parts;
	struct jv *entry;
	int64_t gone = 0, day;
	int r = store_change(workspace_home(f->ws), f->ctx, (struct wpath){path}, &change, &before, &after, NULL, err);

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	memory_parse(arena, before, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		bool is = parts.list[i].is_fact && is_text(f, parts.list[i].fact.text);

		gone += is;
		for (const struct jv_member *m = jv_first(jv_get(parts.list[i].fact.mark, "sources")); m && !is;
		     m = m->next)
			for (const struct jv_member *id = jv_first(f->ids); id; id = id->next)
				if (str_eq(jv_str_of(m->value), jv_str_of(id->value)))
					add_id(arena, f->derived, parts.list[i].fact.id);
	}
	if (!gone || !after.ptr)
		return 0;
	entry = jv_object(arena);
	jv_set_str(arena, entry, "path", path);
	jv_set_int(arena, entry, "facts", gone);
	jv_push(arena, f->files, entry);
	return memory_is_ledger(path, &day) ? shift_marks(f, path, &parts, err) : 0;
}

static int clean_files(struct forgetting *f, struct err *err)
{
	struct str *files;
	size_t count;
	int r = memory_files(f->ws, f->ctx, true, &files, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = clean_file(f, files[i], err);
	return r;
}

/* --- the past --- */

static bool is_ours(void *arg, struct wpath path)
{
	const struct forgetting *f = arg;
	struct wpath part = workspace_part(f->ws);

	if (!wpath_within(path, part))
		return false;
	path = wpath_relative(path, part);
	return str_is(path.s, MEMORY_PATH) || str_starts(path.s, STR("memory/"));
}

static int clean_past(struct forgetting *f, bool dry_run, struct rev_redacted *ret, struct err *err)
{
	struct rev_redact want = {.wanted = is_ours, .holds = holds, .arg = f, .dry_run = dry_run};

	return revisions_redact(workspace_shared(f->ws), f->ctx, &want, ret, err);
}

static int forget_in(struct forgetting *f, struct err *err);

/* Forks of this workspace: they show its memory until they have their own. */
static int clean_forks(struct forgetting *f, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	struct store *base = workspace_store_of(f->ws, false);
	struct jv *names = jv_array(arena), *unused = jv_array(arena);
	int r = workspace_names(f->ctx, base, names, unused, err);

	for (const struct jv_member *m = jv_first(names); r == 0 && m; m = m->next) {
		struct store *home = store_prefix_new(store_share(base), (struct wpath){jv_str_of(m->value)});
		struct forgetting in = *f;
		struct fork_info info;
		bool is = false;

		r = fork_read(f->ctx, home, &info, &is, err);
		store_destroy(home);
		if (r || !is || !str_eq(info.parent, workspace_name(f->ws)))
			continue;
		r = workspace_open_sibling(f->ws, jv_str_of(m->value), &in.ws, err);
		if (r)
			return err_prefix(err, "the fork \"%.*s\"", STR_ARG(jv_str_of(m->value)));
		in.files = jv_array(arena);
		in.past = (struct rev_redacted){0};
		r = forget_in(&in, err);
		workspace_close(in.ws);
		f->past.revisions += in.past.revisions;
		f->past.contents += in.past.contents;
		f->past.left += in.past.left;
		f->past.waiting += in.past.waiting;
		if (r == 0 && (jv_count(in.files) || in.past.contents))
			add_id(arena, f->forks, jv_str_of(m->value));
	}
	return r;
}

static int forget_in(struct forgetting *f, struct err *err)
{
	struct rev_redacted gone, rest;
	int r = clean_files(f, err);

	if (r == 0)
		r = clean_forks(f, err);
	if (r == 0)
		r = clean_past(f, false, &gone, err);
	if (r == 0)
		r = clean_past(f, true, &rest, err); /* is it so? */
	if (r)
		return r;
	f->past.revisions += gone.revisions;
	f->past.contents += gone.contents;
	f->past.left += rest.left + rest.contents;
	f->past.waiting += rest.waiting;
	home_search_forget(f->ws);
	return 0;
}

/* --- where else the words are --- */

struct mentions {
	const struct forgetting *f;
	struct str json[TEXTS_MAX]; /* their form in a JSON string */
	pthread_mutex_t lock;
	struct jv *paths;
};

static bool want_dir(void *arg, struct str path)
{
	(void)arg;
	return !str_starts(path, STR(".stead")) && !str_is(path, "users");
}

static bool want_file(void *arg, struct str path)
{
	(void)arg;
	return !str_is(path, RECEIPTS);
}

static int visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct mentions *m = arg;

	(void)err;
	for (size_t i = 0; i < m->f->text_count; i++) {
		if (m->f->texts[i].len < FIND_MIN || (str_find(item->data, m->f->texts[i], 0) == SIZE_MAX &&
						      str_find(item->data, m->json[i], 0) == SIZE_MAX))
			continue;
		pthread_mutex_lock(&m->lock);
		if (jv_count(m->paths) < MENTIONS_MAX)
			add_id(m->f->ctx->arena, m->paths, item->path);
		pthread_mutex_unlock(&m->lock);
		return SCAN_SKIP_FILE;
	}
	return 0;
}

static int find_mentions(const struct forgetting *f, struct jv **ret, struct err *err)
{
	struct mentions m = {.f = f, .paths = jv_array(f->ctx->arena)};
	struct scan_req req = {.contents = true,
			       .threads = 1,
			       .want_dir = want_dir,
			       .want_file = want_file,
			       .visit = visit,
			       .arg = &m};
	int r;

	for (size_t i = 0; i < f->text_count; i++) {
		struct buf json;

		buf_init(&json, f->ctx->arena, 8 * FACT_FILE_MAX);
		jv_write_string(&json, f->texts[i]);
		m.json[i] = str_n(json.ptr + 1, json.len - 2);
	}
	pthread_mutex_init(&m.lock, NULL);
	r = store_scan(workspace_home(f->ws), f->ctx, WPATH_ROOT, &req, err);
	pthread_mutex_destroy(&m.lock);
	*ret = m.paths;
	return r;
}

/* --- the receipt --- */

static struct jv *past_value(const struct forgetting *f)
{
	struct arena *arena = f->ctx->arena;
	struct jv *v = jv_object(arena);
	bool covered = f->past.left == 0 && f->past.waiting == 0;

	jv_set_bool(arena, v, "covered", covered);
	jv_set_int(arena, v, "revisions", (int64_t)f->past.revisions);
	jv_set_int(arena, v, "contents", (int64_t)f->past.contents);
	if (f->past.left) {
		jv_set_int(arena, v, "left", (int64_t)f->past.left);
		jv_set_str(arena, v, "why",
			   STR("another file has the same content, the fact was saved again, or its history is older "
			       "than this version of Stead; retention (`stead gc`) drops old history"));
	}
	if (f->past.waiting) {
		jv_set_int(arena, v, "waiting", (int64_t)f->past.waiting);
		jv_set_str(arena, v, "why",
			   STR("contents of superseded writes are less than a minute old; forget the fact again after "
			       "that"));
	}
	return v;
}

static struct jv *receipt_of(const struct forgetting *f, struct jv *mentions)
{
	struct arena *arena = f->ctx->arena;
	struct jv *v = jv_object(arena), *sums = jv_array(arena),
		  *by = memory_mark(f->ws, f->ctx, STR("m-0"), f->caller);

	for (size_t i = 0; i < f->text_count; i++)
		jv_push(arena, sums, jv_str(arena, sha256_hex(arena, f->texts[i])));
	jv_remove(by, "id");
	jv_remove(by, "at");
	jv_set_str(arena, v, "receipt", arena_printf(arena, "r-%.*s", STR_ARG(str_from(memory_new_id(arena), 2))));
	jv_set(arena, v, "sha256", sums);
	jv_set_str(arena, v, "time", memory_now(arena));
	jv_set(arena, v, "by", by);
	jv_set(arena, v, "ids", f->ids);
	jv_set(arena, v, "files", f->files);
	jv_set(arena, v, "history", past_value(f));
	jv_set_str(arena, v, "index", STR("rebuilt"));
	jv_set(arena, v, "forks", f->forks);
	jv_set(arena, v, "derived", f->derived);
	jv_set(arena, v, "mentions", mentions);
	return v;
}

int memory_forget(struct workspace *ws, struct ctx *ctx, struct str id, struct str text, enum memory_trust caller,
		  struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct forgetting f = {.ws = ws,
			       .ctx = ctx,
			       .caller = caller,
			       .id = id,
			       .ids = jv_array(arena),
			       .files = jv_array(arena),
			       .derived = jv_array(arena),
			       .forks = jv_array(arena)};
	struct jv *mentions;
	int r;

	if ((id.len > 0) == (text.len > 0))
		return err_set(err, ERR_INVALID, "name the fact by its id, or by its words");
	if (text.len > FACT_TEXT_MAX || !utf8_valid(text) || (text.len && !memory_normal(arena, text).len))
		return err_set(err, ERR_INVALID, "text must be the exact words of a fact, in UTF-8; or give its id");
	if (text.len)
		add_text(&f, memory_normal(arena, text));
	r = find_facts(&f, err);
	if (r == 0)
		r = forget_in(&f, err);
	if (r == 0 && !jv_count(f.files) && !jv_count(f.forks) && !f.past.contents && !f.past.left && !f.past.waiting)
		r = err_set(
			err, ERR_NOT_FOUND,
			"there is no fact with exactly these words, now or earlier; memory_search finds similar ones");
	if (r == 0)
		r = find_mentions(&f, &mentions, err);
	if (r)
		return r;
	*ret = receipt_of(&f, mentions);
	return jsonl_append(workspace_home(ws), ctx, (struct wpath){STR(RECEIPTS)}, *ret, NULL, err);
}
