/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of tools that an interface serves, and the one way to call them: find, check the arguments, run, render,
 * park. Schemas are text in the tables and are parsed when a tool is first looked at or called: a program that calls
 * one tool must not pay for eighty, and start-up is measured.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/fatal.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/schema.h"
#include "tool/call.h"
#include "tool/coerce.h"
#include "tool/dialect.h"
#include "tool/offered.h"
#include "tool/schema_text.h"

struct entry {
	struct tool tool;
	const struct family *family; /* NULL for a tool that is another system's own */
	struct tool_info info;
	atomic_bool parsed;
};

struct toolset {
	struct workspace *ws;
	const struct dialect *dialect;
	struct entry *entries;
	size_t count;
	bool hides_contents;  /* read_file is denied: an error shows nothing of a file either */
	bool reads_only;      /* chosen so */
	struct toolset *of;   /* whose entries these are; NULL: its own */
	pthread_mutex_t lock; /* parsing of schemas, and the arena they are in */
	struct arena *arena;
};

static const struct dialect native = {.name = "native"};

const struct dialect *dialect_at(size_t index)
{
	return index == 0 ? &native : dialects[index - 1];
}

const char *toolset_dialect(size_t index)
{
	const struct dialect *d = dialect_at(index);

	return d ? d->name : NULL;
}

static const struct tool *next_native(struct tool_walk *w)
{
	w->tool = w->tool ? w->tool + 1 : NULL;
	while (!w->tool || !w->tool->name) {
		w->family = families[w->next_family];
		if (!w->family)
			return w->tool = NULL;
		w->tool = w->family->tools;
		w->next_family++;
	}
	return w->tool;
}

/* The tables are ours: a name that no native tool has is a bug, not an error. */
static void resolve_same(struct tool_walk *w)
{
	struct tool_walk native_walk = {.dialect = &native};

	while (next_native(&native_walk))
		if (str_is(str_of(w->entry->same_as), native_walk.tool->name)) {
			w->same = *native_walk.tool;
			w->same.result = NULL;
			w->same.acts_as = w->entry->acts_as;
			w->family = native_walk.family;
			w->tool = &w->same;
			return;
		}
	fprintf(stderr, "stead: the dialect %s names a tool %s that does not exist\n", w->dialect->name,
		w->entry->same_as);
	abort();
}

const struct tool *tool_next(struct tool_walk *w)
{
	if (!w->dialect->tools)
		return next_native(w);
	w->entry = w->entry ? w->entry + 1 : w->dialect->tools;
	w->family = NULL;
	w->tool = w->entry->name ? w->entry : NULL;
	if (w->entry->same_as)
		resolve_same(w);
	return w->tool;
}

static const struct dialect *find_dialect(struct str name)
{
	const struct dialect *d;

	if (name.len == 0)
		return &native;
	for (size_t i = 0; (d = dialect_at(i)); i++)
		if (str_is(name, d->name))
			return d;
	return NULL;
}

struct str dialect_root(struct str dialect)
{
	const struct dialect *d = find_dialect(dialect);

	return d ? str_of(d->root) : STR_NONE;
}

void dialect_opts(struct str dialect, struct workspace_opts *opts)
{
	const struct dialect *d = find_dialect(dialect);

	if (!opts->root.len && !opts->files_dir.len)
		opts->root = dialect_root(dialect);
	opts->layout = d ? d->layout : LAYOUT_STEAD;
}

static int unknown_dialect(struct str name, struct err *err)
{
	char list[200] = "";
	size_t len = 0;

	for (size_t i = 0; toolset_dialect(i) && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", toolset_dialect(i));
	return err_set(err, ERR_NOT_FOUND, "there is no dialect \"%.*s\"; the dialects are %s", STR_ARG(name), list);
}

/* A dialect's tool needs every native tool that it acts as. */
static bool can_work(struct workspace *ws, const struct tool *tool)
{
	struct str powers = str_of(tool->acts_as), power;

	if (tool->available && !tool->available(ws))
		return false;
	while (powers.len && str_cut(&powers, ' ', &power))
		for (struct tool_walk w = {.dialect = &native}; next_native(&w);)
			if (w.tool->available && str_is(power, w.tool->name) && !w.tool->available(ws))
				return false;
	return true;
}

int dialect_check(struct str dialect, struct err *err)
{
	return find_dialect(dialect) ? 0 : unknown_dialect(dialect, err);
}

unsigned dialect_traits(struct str dialect, struct str tool)
{
	const struct dialect *d = find_dialect(dialect);

	for (struct tool_walk w = {.dialect = d ? d : &native}; tool_next(&w);)
		if (str_is(tool, w.tool->name))
			return w.tool->traits;
	return 0;
}

int toolset_new(struct workspace *ws, struct str dialect, struct toolset **ret_set, struct err *err)
{
	const struct dialect *d = find_dialect(dialect);
	struct policy policy;
	struct toolset *set;
	size_t count = 0;
	int r;

	if (!d)
		return unknown_dialect(dialect, err);
	r = policy_init(&policy, workspace_config(ws), err);
	if (r)
		return r;
	set = xcalloc(1, sizeof(*set));
	set->ws = ws;
	set->dialect = d;
	set->hides_contents = policy_denies(&policy, "read_file");
	set->arena = arena_new();
	pthread_mutex_init(&set->lock, NULL);
	for (struct tool_walk w = {.dialect = d}; tool_next(&w);)
		count++;
	set->entries = xcalloc(count, sizeof(*set->entries));
	for (struct tool_walk w = {.dialect = d}; tool_next(&w);) {
		struct entry *e = &set->entries[set->count];
		const struct tool *t = w.tool;

		if (!policy_offers(&policy, t, w.family) || !can_work(ws, t))
			continue;
		if (t->traits & TOOL_NEEDS_HOME && workspace_files_are_own(ws))
			continue;
		e->tool = *t;
		e->family = w.family;
		e->info = (struct tool_info){.name = str_of(t->name),
					     .title = str_of(t->title),
					     .description = str_of(t->description),
					     .traits = t->traits};
		set->count++;
	}
	*ret_set = set;
	return 0;
}

struct toolset *toolset_for(struct toolset *of, struct workspace *ws)
{
	struct toolset *set = xcalloc(1, sizeof(*set));

	of = of->of ? of->of : of;
	*set = (struct toolset){.ws = ws,
				.dialect = of->dialect,
				.hides_contents = of->hides_contents,
				.entries = of->entries,
				.count = of->count,
				.of = of};
	return set;
}

/* By its name, its family, or its part of the family. */
static bool is_named(const struct entry *e, struct str word)
{
	if (str_starts(word, STR("group:")))
		word = str_from(word, 6);
	return str_is(word, e->tool.name) || (e->tool.group && str_is(word, e->tool.group)) ||
	       (e->family && str_is(word, e->family->name));
}

static bool is_default(const struct toolset *of, const struct entry *e)
{
	unsigned basic = workspace_files_are_own(of->ws) ? TOOL_BASIC_FILES : TOOL_BASIC;

	return of->dialect->tools || e->tool.traits & basic;
}

static bool is_chosen(const struct toolset *of, const struct entry *e, struct str sets)
{
	struct str word;

	while (str_cut(&sets, ',', &word)) {
		word = str_trim(word);
		if (str_is(word, "all") || (str_is(word, "default") && is_default(of, e)) || is_named(e, word))
			return true;
	}
	return false;
}

/* Adds the names that a choice may have. */
static size_t add_names(const struct dialect *dialect, const char **names, size_t n, size_t max)
{
	for (struct tool_walk w = {.dialect = dialect}; n + 3 < max && tool_next(&w);) {
		names[n++] = w.tool->name;
		if (w.tool->group)
			names[n++] = w.tool->group;
		if (w.family)
			names[n++] = w.family->name;
	}
	return n;
}

/* A name that neither the dialect nor Stead has is refused; one that configuration denies is only left out. */
static int check_words(const struct dialect *dialect, struct str sets, struct err *err)
{
	const char *names[1024] = {"default", "all"};
	size_t n = add_names(dialect, names, 2, COUNT(names));
	struct str word;

	n = add_names(&native, names, n, COUNT(names));
	while (str_cut(&sets, ',', &word)) {
		const char *nearest;
		size_t i = 0;

		word = str_trim(word);
		if (str_starts(word, STR("group:")))
			word = str_from(word, 6);
		while (i < n && !str_is(word, names[i]))
			i++;
		if (i < n || !word.len)
			continue;
		nearest = str_nearest(word, names, n);
		return err_set(err, ERR_INVALID, "there is no tool or toolset \"%.*s\"; %s%s%s",
			       STR_ARG(utf8_first(word, 100)), nearest ? "did you mean \"" : "`stead tools` lists them",
			       nearest ? nearest : "", nearest ? "\"?" : "");
	}
	return 0;
}

int toolset_choice_check(struct str sets, struct err *err)
{
	return check_words(&native, sets, err);
}

/* The words of tools.sets, as one text. */
static struct str configured_sets(struct arena *arena, const struct workspace *ws)
{
	const struct config *config = workspace_config(ws);
	const struct jv *sets = jv_get(jv_get(config->document, "tools"), "sets");
	struct buf text;

	buf_init(&text, arena, 64 * KIB);
	for (const struct jv_member *m = jv_first(sets); m; m = m->next)
		buf_printf(&text, "%s%.*s", text.len ? "," : "", STR_ARG(jv_str_of(m->value)));
	if (text.len)
		return buf_str(&text);
	return jv_count(config->tools_allow) ? STR("all") : STR("default");
}

int toolset_choose(const struct toolset *of, const struct toolset_choice *choice, struct toolset **ret_set,
		   struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str sets = choice->sets.len ? choice->sets : configured_sets(arena, of->ws);
	struct toolset *set;
	int r = check_words(of->dialect, sets, err);

	if (r)
		return err_prefix(err, choice->sets.len ? "--tools" : "tools.sets in agent.yaml");
	set = xcalloc(1, sizeof(*set));
	set->ws = of->ws;
	set->dialect = of->dialect;
	set->hides_contents = of->hides_contents;
	set->reads_only = choice->read_only;
	set->arena = arena_new();
	pthread_mutex_init(&set->lock, NULL);
	set->entries = xcalloc(of->count + 1, sizeof(*set->entries));
	for (size_t i = 0; i < of->count; i++) {
		struct entry *e = &set->entries[set->count];

		if (choice->read_only && !(of->entries[i].tool.traits & TOOL_READS_ONLY))
			continue;
		if (!is_chosen(of, &of->entries[i], sets))
			continue;
		e->tool = of->entries[i].tool;
		e->family = of->entries[i].family;
		e->info = of->entries[i].info;
		e->info.input_schema = e->info.output_schema = NULL;
		set->count++;
	}
	*ret_set = set;
	return 0;
}

void toolset_destroy(struct toolset *set)
{
	if (!set)
		return;
	if (set->of) {
		free(set);
		return;
	}
	pthread_mutex_destroy(&set->lock);
	arena_destroy(set->arena);
	free(set->entries);
	free(set);
}

static const char *fill_words(struct arena *arena, const struct tool *tool)
{
	struct str rest = str_of(tool->args), words;
	struct buf text;
	size_t at;

	if (!tool->words)
		return tool->args ? tool->args : "";
	words = tool->words(arena);
	buf_init(&text, arena, 64 * KIB);
	while ((at = str_find(rest, STR("$WORDS"), 0)) != SIZE_MAX) {
		buf_add(&text, str_first(rest, at));
		buf_add(&text, words);
		rest = str_from(rest, at + strlen("$WORDS"));
	}
	buf_add(&text, rest);
	return arena_cstr(arena, buf_str(&text));
}

/* The tables are ours: a schema that does not parse is a bug, not an error. */
static const struct jv *parse_schema(struct arena *arena, const struct tool *tool, const char *text)
{
	struct jv *schema = NULL;
	struct err err = {0};

	if (schema_text_parse(arena, text, &schema, &err))
		fatal("the table of tool %s is broken: %s", tool->name, err.msg);
	return schema;
}

struct jv *tool_args_schema(struct arena *arena, const struct tool *tool)
{
	return (struct jv *)parse_schema(arena, tool, fill_words(arena, tool));
}

static const struct tool_info *entry_info(struct toolset *set, struct entry *e)
{
	if (atomic_load_explicit(&e->parsed, memory_order_acquire))
		return &e->info;
	set = set->of ? set->of : set;
	pthread_mutex_lock(&set->lock);
	if (!atomic_load_explicit(&e->parsed, memory_order_relaxed)) {
		e->info.input_schema = parse_schema(set->arena, &e->tool, fill_words(set->arena, &e->tool));
		if (e->tool.result)
			e->info.output_schema = parse_schema(set->arena, &e->tool, e->tool.result);
		atomic_store_explicit(&e->parsed, true, memory_order_release);
	}
	pthread_mutex_unlock(&set->lock);
	return &e->info;
}

size_t toolset_count(const struct toolset *set)
{
	return set->count;
}

/* The set is const for callers, although schemas are filled in at first use. */
const struct tool_info *toolset_at(const struct toolset *set, size_t index)
{
	return index < set->count ? entry_info((struct toolset *)set, &set->entries[index]) : NULL;
}

static struct entry *find_entry(const struct toolset *set, struct str name)
{
	for (size_t i = 0; i < set->count; i++)
		if (str_eq(set->entries[i].info.name, name))
			return &set->entries[i];
	return NULL;
}

const struct tool_info *toolset_find(const struct toolset *set, struct str name)
{
	struct entry *e = find_entry(set, name);

	return e ? entry_info((struct toolset *)set, e) : NULL;
}

const char *toolset_top(const struct toolset *set)
{
	return set->dialect->top;
}

uint64_t toolset_hash(const struct toolset *set)
{
	uint64_t hash = hash_u64(str_of(set->dialect->name), 5);

	for (size_t i = 0; i < set->count; i++)
		hash = hash_u64(set->entries[i].info.name, hash);
	return hash;
}

bool tool_is_native(struct str name)
{
	for (struct tool_walk w = {.dialect = &native}; tool_next(&w);)
		if (str_is(name, w.tool->name))
			return true;
	return false;
}

/* A tool of a dialect is a native one when it was made from it, or has its power alone. */
const char *toolset_name_of(const struct toolset *set, struct str name)
{
	struct entry *e = find_entry(set, name);
	bool is_dialect = set->dialect->tools;

	if (e && (!is_dialect || !e->tool.acts_as || str_eq(str_of(e->tool.acts_as), name)))
		return e->tool.name;
	for (size_t i = 0; is_dialect && i < set->count; i++) {
		const struct tool *t = &set->entries[i].tool;

		if (str_eq(str_of(t->acts_as), name))
			return t->name;
	}
	return NULL;
}

/* Whether the dialect has a tool of this name, offered here or not. */
static bool has_tool(const struct dialect *dialect, struct str name, bool *ret_needs_home)
{
	const struct tool *t;

	for (struct tool_walk w = {.dialect = dialect}; (t = tool_next(&w));)
		if (str_is(name, t->name)) {
			*ret_needs_home = t->traits & TOOL_NEEDS_HOME;
			return true;
		}
	return false;
}

static int unknown_tool(const struct toolset *set, struct str name, struct err *err)
{
	const char *names[128];
	const char *nearest;
	bool needs_home;
	size_t n = 0;

	for (struct tool_walk w = {.dialect = &native}; !set->dialect->tools && next_native(&w);)
		if (w.tool->setup && str_is(name, w.tool->name) && !w.tool->available(set->ws))
			return err_set(err, ERR_NOT_FOUND, "the tool \"%s\" is not set up here; %s", w.tool->name,
				       w.tool->setup);
	if (has_tool(set->dialect, name, &needs_home) && needs_home && workspace_files_are_own(set->ws))
		return err_set(err, ERR_NOT_FOUND,
			       "the tool \"%.*s\" works in a workspace, not in a directory opened with --files",
			       STR_ARG(name));
	if (set->reads_only && has_tool(set->dialect, name, &needs_home) &&
	    !(dialect_traits(str_of(set->dialect->name), name) & TOOL_READS_ONLY))
		return err_set(
			err, ERR_NOT_FOUND,
			"the tool \"%.*s\" changes something, and this connection may only read (--read-only, or its "
			"token)",
			STR_ARG(name));
	if (has_tool(set->dialect, name, &needs_home))
		return err_set(err, ERR_NOT_FOUND,
			       "there is no tool \"%.*s\" here: agent.yaml or --tools leaves it out; list the tools to "
			       "see what there is",
			       STR_ARG(name));
	for (size_t i = 0; i < set->count && n < 128; i++)
		names[n++] = set->entries[i].tool.name;
	nearest = str_nearest(name, names, n);
	if (nearest)
		return err_set(err, ERR_NOT_FOUND, "there is no tool \"%.*s\"; did you mean \"%s\"?",
			       STR_ARG(utf8_first(name, 100)), nearest);
	return err_set(err, ERR_NOT_FOUND, "there is no tool \"%.*s\"; list the tools to see what there is",
		       STR_ARG(utf8_first(name, 100)));
}

static void error_result(struct toolset *set, struct ctx *ctx, const struct outcome *out, struct tool_result *ret)
{
	const char *prefix = set->dialect->error_prefix;
	struct buf text;

	ret->is_error = true;
	ret->value = set->hides_contents ? NULL : out->failed_value;
	ret->detail = set->hides_contents ? STR("") : out->detail;
	if (out->text.ptr) {
		ret->text = out->text;
		return;
	}
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	if (prefix)
		buf_add(&text, str_of(prefix));
	buf_add(&text, offered_advice(ctx->arena, set, str_of(ret->err.msg)));
	if (ret->detail.len) {
		buf_char(&text, '\n');
		buf_add(&text, ret->detail);
	}
	ret->text = buf_str(&text);
}

static struct str render(const struct tool *tool, struct ctx *ctx, const struct jv *args, const struct jv *value)
{
	struct buf text;

	buf_init(&text, ctx->arena, 2 * TOOL_TEXT_MAX);
	if (tool->render)
		tool->render(args, value, &text);
	else
		jv_write(&text, value);
	if (text.overflow)
		buf_lit(&text, "\n[cut]");
	return text.ptr ? buf_str(&text) : STR("");
}

/* Who makes the call, and which call it is: undo and history use both. */
static void name_actor(struct workspace *ws, struct ctx *ctx)
{
	struct actor *a = &ctx->actor;

	if (!a->user.len && !a->agent.len && !a->session.len) {
		struct str call_id = a->call_id;

		*a = workspace_actor(ws);
		a->call_id = call_id;
	}
	if (!a->call_id.len)
		a->call_id = call_id_new(ctx->arena);
}

/* Families may refuse a change (plan mode is on). */
static int ask_families(struct call *call, const struct tool *tool, struct err *err)
{
	int r = 0;

	if (tool->traits & (TOOL_READS_ONLY | TOOL_PLANS))
		return 0;
	for (size_t i = 0; r == 0 && families[i]; i++)
		if (families[i]->before_change)
			r = families[i]->before_change(call, tool, err);
	return r;
}

/* Families may replace a result (it is so large that it becomes an artifact). */
static int show_families(struct call *call, const struct tool *tool, const struct jv *args, struct outcome *out,
			 struct err *err)
{
	int r = 0;

	if (!(tool->traits & TOOL_PARKS))
		return 0;
	for (size_t i = 0; r == 0 && families[i]; i++)
		if (families[i]->after_call)
			r = families[i]->after_call(call, tool, args, out, err);
	return r;
}

/* A task that does not exist yet has only the files of its directory. */
static int open_files(struct call *call, struct store **ret_task, struct err *err)
{
	int r = workspace_root_is_task(call->ws) ? family_files(call->ws, call->ctx, ret_task, err) : 0;

	if (*ret_task)
		call->files = *ret_task;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int toolset_call(struct toolset *set, struct ctx *ctx, struct str name, const struct jv *args,
		 struct tool_result *ret_result, struct err *err)
{
	struct ctx own = *ctx;
	struct call call = {.ctx = &own, .ws = set->ws, .files = workspace_files(set->ws), .set = set};
	struct entry *e = find_entry(set, name);
	struct outcome out = {0};
	struct store *task = NULL;
	int r;

	if (!e)
		return unknown_tool(set, name, err);
	if (!(e->tool.traits & TOOL_READS_ONLY))
		name_actor(set->ws, &own);
	args = args_coerce(ctx->arena, entry_info(set, e)->input_schema, args);
	*ret_result = (struct tool_result){0};
	r = schema_check(e->info.input_schema, args, "arguments", &ret_result->err);
	if (r == 0)
		r = ctx_check(ctx, &ret_result->err);
	if (r == 0)
		r = ask_families(&call, &e->tool, &ret_result->err);
	if (r == 0)
		r = open_files(&call, &task, &ret_result->err);
	if (r == 0)
		r = e->tool.call(&call, args, &out, &ret_result->err);
	store_destroy(task);
	if (r == 0 && !out.text.ptr)
		out.text = render(&e->tool, ctx, args, out.value);
	if (r == 0)
		r = show_families(&call, &e->tool, args, &out, &ret_result->err);
	if (r) {
		error_result(set, ctx, &out, ret_result);
		return 0;
	}
	ret_result->value = e->tool.result ? out.value : NULL; /* without a schema there is text alone */
	ret_result->text = out.text;
	ret_result->media = out.media;
	return 0;
}
