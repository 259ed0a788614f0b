/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving, listing and reading memory.
 *
 * A fact that is saved goes to the day's ledger first, by an append that never reads the file, and then to the end of
 * MEMORY.md on condition that nobody else wrote. A process that is killed between the two leaves a fact that the next
 * consolidation finds; nothing is lost, and two agents that save at once both keep what they saved. MEMORY.md is kept
 * within its budget, so one more fact costs the same however many were saved before.
 */
#include "home/memory/memory.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/memory/memory_internal.h"
#include "workspace/workspace_parts.h"

#define BYTES_PER_TOKEN 4
#define NS_PER_DAY      INT64_C(86400000000000)
#define TOKENS_DEFAULT  4000

/* --- names, times, places --- */

struct str memory_now(struct arena *arena)
{
	return clock_format_utc(arena, clock_real_ns());
}

struct str memory_day(struct arena *arena, const struct workspace *ws, int back)
{
	return zone_date(arena, workspace_config(ws)->timezone, clock_real_ns() - back * NS_PER_DAY);
}

struct str memory_new_id(struct arena *arena)
{
	return arena_printf(arena, "m-%011llx%05llx", (unsigned long long)(clock_real_ns() / 1000000),
			    (unsigned long long)(random_u64() & 0xfffff));
}

struct str memory_agent(struct workspace *ws, struct ctx *ctx)
{
	struct str agent = ctx->actor.agent.len ? ctx->actor.agent : workspace_actor(ws).agent;

	return agent.len ? agent : STR("default");
}

size_t memory_budget(struct workspace *ws)
{
	const struct jv *memory = jv_get(workspace_config(ws)->document, "memory");
	int64_t tokens = jv_get_int(memory, "max_tokens", TOKENS_DEFAULT);

	return tokens <= 0 || tokens > (int64_t)(FACT_FILE_MAX / 2 / BYTES_PER_TOKEN)
		       ? FACT_FILE_MAX / 2
		       : (size_t)tokens * BYTES_PER_TOKEN;
}

bool memory_is_ledger(struct str path, int64_t *ret_day_ns)
{
	struct str name = wpath_name((struct wpath){path});

	return name.len == 13 && str_ends(name, STR(".md")) && clock_parse(str_first(name, 10), ret_day_ns);
}

struct jv *memory_mark(struct workspace *ws, struct ctx *ctx, struct str id, enum memory_trust trust)
{
	struct arena *arena = ctx->arena;
	struct actor own = workspace_actor(ws), by = ctx->actor;
	struct jv *mark = jv_object(arena);
	struct {
		const char *key;
		struct str said, fallback;
	} const words[] = {
		{"user", by.user, own.user}, {"agent", by.agent, own.agent}, {"session", by.session, own.session}};

	jv_set_str(arena, mark, "id", id);
	jv_set_str(arena, mark, "trust", str_of(memory_trust_name(trust)));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct str word = words[i].said.len ? words[i].said : words[i].fallback;

		if (word.len)
			jv_set_str(arena, mark, words[i].key, utf8_first(word, PATH_NAME_MAX));
	}
	jv_set_str(arena, mark, "at", memory_now(arena));
	return mark;
}

/* --- files --- */

int memory_read(struct workspace *ws, struct ctx *ctx, struct str path, struct str *ret, struct store_stat *ret_stat,
		struct err *err)
{
	int r = store_read(workspace_home(ws), ctx, (struct wpath){path}, STORE_WHOLE, FACT_FILE_MAX, ret, ret_stat,
			   err);

	if (r != -ERR_NOT_FOUND)
		return r;
	*ret = STR_NONE;
	if (ret_stat)
		*ret_stat = (struct store_stat){0};
	return 0;
}

static int add_dir(struct workspace *ws, struct ctx *ctx, const char *dir, struct str *list, size_t *count,
		   struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page;

	do {
		int r = store_list(workspace_home(ws), ctx, (struct wpath){str_of(dir)}, &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count && *count < FACT_FILES_MAX; i++)
			if (page.entries[i].stat.kind == STORE_FILE && str_ends(page.entries[i].path.s, STR(".md")))
				list[(*count)++] = page.entries[i].path.s;
		req.after = page.next;
	} while (page.next.ptr);
	return 0;
}

int memory_files(struct workspace *ws, struct ctx *ctx, bool archives, struct str **ret, size_t *ret_count,
		 struct err *err)
{
	int r;

	*ret = ARENA_ARRAY(ctx->arena, struct str, FACT_FILES_MAX + 1);
	*ret_count = 0;
	(*ret)[(*ret_count)++] = STR(MEMORY_PATH);
	r = add_dir(ws, ctx, "memory", *ret, ret_count, err);
	if (r == 0 && archives)
		r = add_dir(ws, ctx, "memory/archive", *ret, ret_count, err);
	return r;
}

bool memory_is_superseded(const struct parts *parts, struct str id)
{
	for (size_t i = 0; i < parts->count; i++)
		for (const struct jv_member *m = jv_first(jv_get(parts->list[i].fact.mark, "supersedes")); m;
		     m = m->next)
			if (str_eq(jv_str_of(m->value), id))
				return true;
	return false;
}

/* --- saving --- */

struct saving {
	struct workspace *ws;
	struct ctx *ctx;
	const struct memory_save *save;
	enum memory_trust trust;
	struct str *texts;
	struct jv **marks; /* NULL: known already */
	size_t count;
	struct jv *superseded;
};

static bool is_among(const struct jv *ids, struct str id)
{
	for (const struct jv_member *m = jv_first(ids); m; m = m->next)
		if (str_eq(jv_str_of(m->value), id))
			return true;
	return false;
}

static int check_times(const struct memory_save *save, struct err *err)
{
	int64_t from = INT64_MIN, until = INT64_MAX;

	if ((save->from.len && !clock_parse(save->from, &from)) ||
	    (save->until.len && !clock_parse(save->until, &until)))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a valid time; write 2026-11-15 or 2026-11-15T09:30:00Z",
			       STR_ARG(utf8_first(from == INT64_MIN && save->from.len ? save->from : save->until, 60)));
	if (from >= until)
		return err_set(err, ERR_INVALID, "valid_until must be after valid_from; correct one of them");
	return 0;
}

static struct jv *new_mark(struct saving *s)
{
	struct arena *arena = s->ctx->arena;
	struct jv *mark = memory_mark(s->ws, s->ctx, memory_new_id(arena), s->trust);

	if (s->save->source.len)
		jv_set_str(arena, mark, "source", utf8_first(s->save->source, KIB));
	if (s->save->from.len)
		jv_set_str(arena, mark, "from", s->save->from);
	if (s->save->until.len)
		jv_set_str(arena, mark, "until", s->save->until);
	return mark;
}

/* A fact with the same words that holds, and is trusted as much. */
static bool is_known(const struct parts *parts, struct str text, enum memory_trust trust, bool timed)
{
	for (size_t i = 0; i < parts->count && !timed; i++) {
		const struct part *p = &parts->list[i];

		if (p->is_fact && p->fact.trust >= trust && str_eq(p->fact.text, text) &&
		    memory_holds(&p->fact, clock_real_ns()))
			return true;
	}
	return false;
}

/* The facts of one file that give way. */
static int check_superseded_in(struct saving *s, struct str path, struct err *err)
{
	struct arena *arena = s->ctx->arena;
	struct str bytes;
	int r = memory_read(s->ws, s->ctx, path, &bytes, NULL, err);

	for (const struct jv_member *m = jv_first(s->save->supersedes); r == 0 && m; m = m->next) {
		struct part part;

		if (is_among(s->superseded, jv_str_of(m->value)) ||
		    !memory_find(arena, bytes, jv_str_of(m->value), &part))
			continue;
		if (part.fact.trust > s->trust)
			return err_set(err, ERR_DENIED,
				       "fact %.*s has the trust %s, and only a fact of at least that trust can replace "
				       "it; ask the person to change it",
				       STR_ARG(part.fact.id), memory_trust_name(part.fact.trust));
		jv_push(arena, s->superseded, jv_str(arena, part.fact.id));
	}
	return r;
}

/* The facts that give way, looked for where facts are. */
static int check_superseded(struct saving *s, struct err *err)
{
	struct str *files;
	size_t count, wanted = jv_count(s->save->supersedes);
	int r = memory_files(s->ws, s->ctx, true, &files, &count, err);

	for (size_t i = 0; r == 0 && i < count && jv_count(s->superseded) < wanted; i++)
		r = check_superseded_in(s, files[i], err);
	for (const struct jv_member *m = jv_first(s->save->supersedes); r == 0 && m; m = m->next)
		if (!is_among(s->superseded, jv_str_of(m->value)))
			r = err_set(err, ERR_NOT_FOUND,
				    "there is no fact \"%.*s\" to supersede; memory_search shows ids",
				    STR_ARG(utf8_first(jv_str_of(m->value), 80)));
	return r;
}

/* The day's ledger, and what this save adds to it. */
struct ledger {
	struct wpath path;
	struct str day, text;
	bool exists;
};

static int ledger_prepare(struct saving *s, struct ledger *ret, struct err *err)
{
	struct arena *arena = s->ctx->arena;
	struct str now = workspace_time(s->ws, arena, clock_real_ns());
	struct buf text;
	int r;

	ret->day = memory_day(arena, s->ws, 0);
	ret->path = (struct wpath){arena_printf(arena, "memory/%.*s.md", STR_ARG(ret->day))};
	buf_init(&text, arena, FACT_FILE_MAX);
	buf_printf(&text, "\n## %s — %.*s\n\n", s->save->ledger_only ? "Memory Flush" : "Memory Save", STR_ARG(now));
	for (size_t i = 0; i < s->count; i++)
		if (s->marks[i])
			memory_write_fact(&text, s->texts[i], s->marks[i]);
	ret->text = buf_str(&text);
	r = store_stat(workspace_home(s->ws), s->ctx, ret->path, NULL, err);
	ret->exists = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

#define SUPERSEDED_BYTES 200 /* that the mark of a fact grows by, at most */

/* Is there room for both files? A save that fails at the quota must not leave its facts in the ledger alone. What
   MEMORY.md gets is not longer than what the ledger gets, which has a heading. */
static int check_room(struct saving *s, const struct ledger *ledger, struct str memory, struct err *err)
{
	struct quota_need need = {.bytes = ledger->text.len, .changes = 1, .files = !ledger->exists};

	if (!ledger->exists)
		need.bytes += STR("# \n").len + ledger->day.len;
	if (!s->save->ledger_only) {
		need.bytes += ledger->text.len;
		need.changes++;
		need.files += !memory.ptr;
		if (jv_count(s->superseded)) { /* it is written again as a whole */
			need.bytes += memory.len + SUPERSEDED_BYTES * jv_count(s->superseded);
			need.replaced = memory.len;
		}
	}
	return store_quota_check(workspace_home(s->ws), s->ctx, need, err);
}

static int to_ledger(struct saving *s, const struct ledger *ledger, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT}, any = {0};
	struct store *home = workspace_home(s->ws);

	if (!ledger->exists) { /* in one step: a save is in the history with all of its facts or not at all */
		struct str text =
			arena_printf(s->ctx->arena, "# %.*s\n%.*s", STR_ARG(ledger->day), STR_ARG(ledger->text));
		int r = store_write(home, s->ctx, ledger->path, text, absent, NULL, err);

		if (r != -ERR_EXISTS)
			return r;
	}
	return store_append(home, s->ctx, ledger->path, ledger->text, any, NULL, err);
}

/* The line of a fact that gives way. */
static void write_superseded(struct saving *s, struct buf *out, const struct fact *fact)
{
	struct arena *arena = s->ctx->arena;
	struct jv *mark = fact->mark ? jv_copy(arena, fact->mark) : jv_object(arena);
	struct str by = STR_NONE;

	for (size_t i = 0; i < s->count && !by.len; i++)
		if (s->marks[i])
			by = jv_get_str(s->marks[i], "id");
	if (!fact->mark) {
		jv_set_str(arena, mark, "id", fact->id);
		jv_set_str(arena, mark, "trust", str_of(memory_trust_name(fact->trust)));
	}
	jv_set_str(arena, mark, "until", memory_now(arena));
	jv_set_str(arena, mark, "superseded_by", by);
	memory_write_fact(out, fact->text, mark);
}

static int change_memory(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct saving *s = arg;
	struct parts parts;
	struct buf out;

	memory_parse(arena, before, &parts);
	buf_init(&out, arena, 2 * FACT_FILE_MAX);
	if (!before.ptr)
		buf_lit(&out, "# Memory\n\n");
	for (size_t i = 0; i < parts.count; i++) {
		const struct part *p = &parts.list[i];

		if (p->is_fact && !p->fact.superseded && is_among(s->superseded, p->fact.id))
			write_superseded(s, &out, &p->fact);
		else
			buf_add(&out, p->raw);
	}
	if (out.len && out.ptr[out.len - 1] != '\n')
		buf_char(&out, '\n');
	if (parts.count && !parts.list[parts.count - 1].is_fact && str_trim(parts.list[parts.count - 1].raw).len)
		buf_char(&out, '\n'); /* a bullet right below a paragraph would be part of it */
	for (size_t i = 0; i < s->count; i++)
		if (s->marks[i])
			memory_write_fact(&out, s->texts[i], s->marks[i]);
	if (out.overflow)
		return err_set(err, ERR_TOO_LARGE, "MEMORY.md would be larger than %zu bytes; archive some of it",
			       (size_t)FACT_FILE_MAX);
	*ret_after = buf_str(&out);
	return 0;
}

static int to_memory(struct saving *s, struct err *err)
{
	struct store_change change = {.max = FACT_FILE_MAX, .create = true, .change = change_memory, .arg = s};
	struct workspace_changed changed;
	struct jv *ids = jv_array(s->ctx->arena);
	int r = workspace_change(s->ws, s->ctx, (struct wpath){STR(MEMORY_PATH)}, &change, &changed, err);

	if (r || changed.stat.size <= memory_budget(s->ws))
		return r;
	for (size_t i = 0; i < s->count; i++)
		if (s->marks[i])
			jv_push(s->ctx->arena, ids, jv_str(s->ctx->arena, jv_get_str(s->marks[i], "id")));
	r = memory_trim(s->ws, s->ctx, ids, err);
	return r == -ERR_QUOTA ? 0 : r; /* the facts are saved; what is over the budget stays until there is room */
}

static struct jv *report_saved(struct saving *s, const struct jv *known, struct str ledger)
{
	struct arena *arena = s->ctx->arena;
	struct jv *v = jv_object(arena), *saved = jv_array(arena);

	for (size_t i = 0; i < s->count; i++) {
		struct jv *one;

		if (!s->marks[i])
			continue;
		one = jv_object(arena);
		jv_set_str(arena, one, "id", jv_get_str(s->marks[i], "id"));
		jv_set_str(arena, one, "text", s->texts[i]);
		jv_set_str(arena, one, "trust", jv_get_str(s->marks[i], "trust"));
		jv_push(arena, saved, one);
	}
	jv_set(arena, v, "saved", saved);
	jv_set(arena, v, "known", jv_copy(arena, known));
	jv_set(arena, v, "superseded", s->superseded);
	jv_set_str(arena, v, "path", s->save->ledger_only ? ledger : STR(MEMORY_PATH));
	if (ledger.len)
		jv_set_str(arena, v, "ledger", ledger);
	return v;
}

/* Gives every new fact its mark; what is known gets none. */
static struct jv *give_marks(struct saving *s, const struct parts *parts)
{
	struct arena *arena = s->ctx->arena;
	struct jv *known = jv_array(arena);
	bool timed = s->save->from.len || s->save->until.len || jv_count(s->superseded);

	s->marks = ARENA_ARRAY(arena, struct jv *, s->count);
	for (size_t i = 0; i < s->count; i++) {
		bool again = is_known(parts, s->texts[i], s->trust, timed);

		for (size_t k = 0; k < i && !again; k++)
			again = str_eq(s->texts[k], s->texts[i]);
		if (again) {
			jv_push(arena, known, jv_str(arena, s->texts[i]));
			continue;
		}
		s->marks[i] = new_mark(s);
		if (jv_count(s->superseded))
			jv_set(arena, s->marks[i], "supersedes", jv_copy(arena, s->superseded));
	}
	return known;
}

int memory_save(struct workspace *ws, struct ctx *ctx, const struct memory_save *save, struct jv **ret, struct err *err)
{
	struct saving s = {.ws = ws, .ctx = ctx, .save = save, .superseded = jv_array(ctx->arena)};
	struct ledger ledger = {0};
	struct str bytes;
	struct parts parts;
	struct jv *known;
	int r = memory_split(ctx->arena, save->content, &s.texts, &s.count, err);

	s.trust = save->trust && save->trust < save->caller ? save->trust : save->caller;
	if (r == 0 && save->trust > save->caller)
		r = err_set(err, ERR_DENIED,
			    "you cannot give the trust \"%s\"; \"%s\" is the highest that you can give",
			    memory_trust_name(save->trust), memory_trust_name(save->caller));
	if (r == 0)
		r = check_times(save, err);
	if (r == 0 && jv_count(save->supersedes))
		r = check_superseded(&s, err);
	if (r == 0)
		r = memory_read(ws, ctx, STR(MEMORY_PATH), &bytes, NULL, err);
	if (r)
		return r;
	memory_parse(ctx->arena, bytes, &parts);
	known = give_marks(&s, &parts);
	if (jv_count(known) < s.count) {
		r = ledger_prepare(&s, &ledger, err);
		if (r == 0)
			r = check_room(&s, &ledger, bytes, err);
		if (r == 0)
			r = to_ledger(&s, &ledger, err);
		if (r == 0 && !save->ledger_only)
			r = to_memory(&s, err);
	}
	if (r == 0)
		*ret = report_saved(&s, known, ledger.path.s);
	return r;
}

/* --- looking --- */

int memory_list(struct workspace *ws, struct ctx *ctx, bool all, enum memory_trust least, struct jv **ret,
		struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *facts = jv_array(arena);
	int64_t now = clock_real_ns();
	struct parts parts;
	struct str bytes;
	int r = memory_read(ws, ctx, STR(MEMORY_PATH), &bytes, NULL, err);

	if (r)
		return r;
	memory_parse(arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		const struct part *p = &parts.list[i];

		if (p->is_fact && p->fact.trust >= least && (all || memory_holds(&p->fact, now)))
			jv_push(arena, facts, memory_value(arena, p, STR(MEMORY_PATH), now));
	}
	*ret = jv_object(arena);
	jv_set(arena, *ret, "facts", facts);
	jv_set_int(arena, *ret, "total", (int64_t)jv_count(facts));
	return 0;
}

static bool is_memory_path(struct wpath path)
{
	bool below = wpath_within(path, (struct wpath){STR("memory")}) && path.s.len > 6;

	return str_is(path.s, MEMORY_PATH) || (below && str_find(path.s, STR("/."), 0) == SIZE_MAX);
}

int memory_get(struct workspace *ws, struct ctx *ctx, struct str path, uint64_t first, uint64_t last, struct jv **ret,
	       struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath p;
	struct str bytes, rest, line, part = STR("");
	uint64_t n = 0;
	int r = wpath_parse_lenient(arena, path, &p, err);

	if (r)
		return r;
	if (!is_memory_path(p))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a memory file; give MEMORY.md or a path below memory/",
			       STR_ARG(utf8_first(path, 200)));
	if (first < 1 || last < first)
		return err_set(err, ERR_INVALID,
			       "lines are counted from 1, and the last must not come before the first");
	r = store_read(workspace_home(ws), ctx, p, STORE_WHOLE, FACT_FILE_MAX, &bytes, NULL, err);
	if (r)
		return r;
	for (rest = bytes; str_cut(&rest, '\n', &line);) {
		if (rest.len == 0 && line.len == 0 && line.ptr == bytes.ptr + bytes.len)
			break;
		n++;
		if (n == first)
			part.ptr = line.ptr;
		if (n >= first && n <= last)
			part.len = (size_t)(line.ptr + line.len - part.ptr);
	}
	if (first > n)
		return err_set(err, ERR_INVALID, "%.*s has %llu lines; there is no line %llu", STR_ARG(p.s),
			       (unsigned long long)n, (unsigned long long)first);
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "path", p.s);
	jv_set_int(arena, *ret, "start_line", (int64_t)first);
	jv_set_int(arena, *ret, "end_line", (int64_t)(last < n ? last : n));
	jv_set_int(arena, *ret, "total_lines", (int64_t)n);
	jv_set_str(arena, *ret, "content", part);
	return 0;
}
