/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prompt for a turn, and what is kept for the next.
 *
 * Whether anything has changed is asked in two steps. The first costs two system calls: has the log of revisions moved
 * (whatever Stead itself changes, in any process, is in it), and did the kernel report something in the directories
 * that the prompt is made of (whatever anybody else changes on this machine). If neither, the last text of this session
 * is given again. Otherwise the files are found again, without being read: the same versions give the same text. Only
 * then are files read, those with another version.
 *
 * Where the workspace is not on a disk of this machine, it changes only through Stead, and the log alone is asked.
 */
#include "home/prompt/prompt.h"

#include <pthread.h>

#include "base/limits.h"
#include "home/prompt/prompt_internal.h"
#include "revisions/revisions.h"

#define SLOTS 8 /* sessions whose last text is kept */

struct slot {
	char *key;
	struct arena *arena; /* of the prompt; NULL: there is none yet */
	struct prompt prompt;
	uint64_t round;   /* in which it was found to be right */
	uint64_t used;    /* the higher, the later */
	uint64_t hash[2]; /* of the files it was made of */
};

struct prompt_kept {
	struct workspace *ws;
	pthread_mutex_t lock;
	struct prompt_watch *watch;
	bool watch_tried;
	bool is_unwatched; /* it has files in several stores, or outside it: they are found at each turn */
	struct prompt_files files;
	char *found_for; /* the key of the slot that `files` were found for; NULL: find all of them */
	uint64_t round;  /* goes up when something may have changed */
	uint64_t head;
	uint64_t uses;
	char day[16];
	struct toolset *native; /* for those who name no tools; NULL: not needed yet */
	struct slot slots[SLOTS];
};

void *prompt_kept_new(struct workspace *ws)
{
	struct prompt_kept *kept = xcalloc(1, sizeof *kept);

	kept->ws = ws;
	kept->is_unwatched = str_starts(workspace_url_of(ws), STR("config:"));
	pthread_mutex_init(&kept->lock, NULL);
	prompt_files_init(&kept->files);
	return kept;
}

static void slot_clear(struct slot *slot)
{
	free(slot->key);
	if (slot->arena)
		arena_destroy(slot->arena);
	*slot = (struct slot){0};
}

void prompt_kept_destroy(void *state)
{
	struct prompt_kept *kept = state;

	for (size_t i = 0; i < SLOTS; i++)
		slot_clear(&kept->slots[i]);
	prompt_files_release(&kept->files);
	prompt_watch_destroy(kept->watch);
	free(kept->found_for);
	toolset_destroy(kept->native);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

/* --- the last text --- */

/* The slot with this key, or the one that was not used for the longest time, emptied. */
static struct slot *slot_get(struct prompt_kept *kept, struct str key)
{
	struct slot *oldest = &kept->slots[0];

	for (size_t i = 0; i < SLOTS; i++) {
		if (kept->slots[i].key && str_is(key, kept->slots[i].key))
			return &kept->slots[i];
		if (kept->slots[i].used < oldest->used)
			oldest = &kept->slots[i];
	}
	slot_clear(oldest);
	oldest->key = xstrndup(key);
	return oldest;
}

static struct prompt copy_prompt(struct arena *arena, const struct prompt *from)
{
	struct prompt to = *from;

	to.text = arena_str(arena, from->text);
	to.sections = ARENA_ARRAY(arena, struct prompt_span, from->count + 1);
	to.problems = ARENA_ARRAY(arena, struct str, from->problem_count + 1);
	for (size_t i = 0; i < from->count; i++) {
		to.sections[i] = from->sections[i];
		to.sections[i].sources = arena_str(arena, from->sections[i].sources);
		to.sections[i].cut = arena_str(arena, from->sections[i].cut);
	}
	for (size_t i = 0; i < from->problem_count; i++)
		to.problems[i] = arena_str(arena, from->problems[i]);
	return to;
}

/* --- whether anything has changed --- */

static void forget_found(struct prompt_kept *kept)
{
	free(kept->found_for);
	kept->found_for = NULL;
}

/* A new round begins unless it is certain that nothing has happened. */
static int ask(struct prompt_kept *kept, struct ctx *ctx, struct prompt_news *news, struct err *err)
{
	struct str day = prompt_today(ctx->arena, kept->ws);
	bool same_day = str_is(day, kept->day);
	uint64_t head;
	int r;

	news->count = 0;
	news->anything = kept->is_unwatched || workspace_dir(kept->ws).ptr;
	if (kept->watch)
		prompt_watch_ask(kept->watch, ctx->arena, news);
	if (news->anything || news->count || !same_day)
		kept->round++;
	if (news->anything || !same_day)
		forget_found(kept);
	for (size_t i = 0; !same_day && i < kept->files.count; i++)
		kept->files.at[i]->is_read = false; /* what a file gives may depend on the day */
	snprintf(kept->day, sizeof kept->day, "%.*s", STR_ARG(day));
	r = revisions_head(workspace_shared(kept->ws), ctx, &head, err);
	if (r) {
		forget_found(kept); /* the news is lost with this call */
		return r;
	}
	if (head != kept->head) {
		kept->round++;
		if (!kept->watch) /* what moved the log may have been a file of the prompt */
			forget_found(kept);
	}
	kept->head = head;
	return 0;
}

static int find_all(struct prompt_kept *kept, struct ctx *ctx, const char *key, bool is_alone, struct err *err)
{
	int r;

	forget_found(kept);
	if (!kept->watch_tried && !(is_alone && kept->uses == 0)) {
		if (workspace_dir(kept->ws).ptr && !kept->is_unwatched)
			kept->watch = prompt_watch_new(workspace_dir(kept->ws).ptr);
		kept->watch_tried = true;
	}
	r = prompt_find_all(&kept->files, kept->ws, ctx, kept->watch, &kept->is_unwatched, err);
	if (r)
		return r;
	if (kept->is_unwatched) {
		prompt_watch_destroy(kept->watch);
		kept->watch = NULL;
	}
	for (size_t i = 0; i < kept->files.count; i++) /* which of them something happened to is not known */
		kept->files.at[i]->is_doubted = kept->files.at[i]->is_young;
	kept->found_for = xstrndup(str_of(key));
	return 0;
}

static bool is_current(const struct slot *slot, const struct prompt_files *files, const uint64_t hash[2])
{
	for (size_t i = 0; i < files->count; i++)
		if (files->at[i]->is_doubted)
			return false;
	return slot->arena && slot->hash[0] == hash[0] && slot->hash[1] == hash[1];
}

static int make(struct prompt_kept *kept, struct ctx *ctx, struct slot *slot, const struct prompt_opts *opts,
		struct err *err)
{
	struct prompt_parts parts;
	struct prompt prompt;
	uint64_t files_read;
	int r = prompt_read_files(&kept->files, kept->ws, ctx, &files_read, err);

	if (r == 0)
		r = prompt_parts_make(kept->ws, ctx, &kept->files, opts->set, &parts, err);
	if (r)
		return r;
	prompt_fit(ctx->arena, &parts, opts->max_tokens, &prompt);
	prompt.files_read = files_read;
	if (slot->arena)
		arena_destroy(slot->arena);
	slot->arena = arena_new();
	slot->prompt = copy_prompt(slot->arena, &prompt);
	return 0;
}

/* Brings the files and then the slot up to date. */
static int refresh(struct prompt_kept *kept, struct ctx *ctx, struct slot *slot, const struct prompt_opts *opts,
		   const struct prompt_news *news, struct err *err)
{
	bool found = kept->found_for && strcmp(slot->key, kept->found_for) == 0 &&
		     prompt_find_changed(&kept->files, kept->ws, ctx, news);
	uint64_t hash[2];
	int r = found ? 0 : find_all(kept, ctx, slot->key, opts->is_alone, err);

	if (r)
		return r;
	/* notes are in the log, and the session has the day */
	prompt_files_hash(ctx->arena, &kept->files, kept->head, kept->day, hash);
	if (!is_current(slot, &kept->files, hash))
		r = make(kept, ctx, slot, opts, err);
	slot->hash[0] = hash[0];
	slot->hash[1] = hash[1];
	return r;
}

static int assemble(struct prompt_kept *kept, struct ctx *ctx, struct str key, const struct prompt_opts *opts,
		    struct prompt *ret, struct err *err)
{
	struct slot *slot = slot_get(kept, key);
	struct prompt_news news;
	int r = ask(kept, ctx, &news, err);

	if (r)
		return r;
	slot->prompt.files_read = 0;
	if (!slot->arena || slot->round != kept->round)
		r = refresh(kept, ctx, slot, opts, &news, err);
	if (r) {
		slot_clear(slot);
		forget_found(kept);
		return r;
	}
	slot->round = kept->round;
	slot->used = ++kept->uses;
	*ret = copy_prompt(ctx->arena, &slot->prompt);
	return 0;
}

/* prompt_kept.lock is held. */
static int native_tools(struct prompt_kept *kept, const struct toolset **ret, struct err *err)
{
	int r = kept->native ? 0 : toolset_new(kept->ws, STR_NONE, &kept->native, err);

	*ret = kept->native;
	return r;
}

int prompt_assemble(struct workspace *ws, struct ctx *ctx, const struct prompt_opts *opts, struct prompt *ret,
		    struct err *err)
{
	struct prompt_kept *kept = family_state(&prompt_family, ws);
	uint64_t max = opts->max_tokens ? opts->max_tokens : workspace_config(ws)->prompt_tokens;
	struct prompt_opts used = {.max_tokens = max, .set = opts->set, .is_alone = opts->is_alone};
	struct actor own = workspace_actor(ws);
	struct buf key;
	int r;

	if (max < PROMPT_TOKENS_MIN || max > PROMPT_TOKENS_MAX)
		return err_set(err, ERR_INVALID, "the budget of a prompt must be %d to %d tokens, not %llu",
			       PROMPT_TOKENS_MIN, PROMPT_TOKENS_MAX, (unsigned long long)max);
	if (config_disables(workspace_config(ws), "workspace_context")) {
		*ret = (struct prompt){.text = STR(""), .max_tokens = max};
		return 0;
	}
	buf_init(&key, ctx->arena, 64 * KIB);
	buf_printf(&key, "%llu %llx ", (unsigned long long)max,
		   opts->set ? (unsigned long long)toolset_hash(opts->set) : 0);
	buf_add(&key, workspace_encode_name(ctx->arena, ctx->actor.agent.len ? ctx->actor.agent : own.agent));
	buf_char(&key, ' ');
	buf_add(&key, workspace_encode_name(ctx->arena, ctx->actor.session.len ? ctx->actor.session : own.session));
	pthread_mutex_lock(&kept->lock);
	r = used.set ? 0 : native_tools(kept, &used.set, err);
	if (r == 0)
		r = assemble(kept, ctx, buf_str(&key), &used, ret, err);
	pthread_mutex_unlock(&kept->lock);
	return r;
}

/* --- as a value --- */

static void add_breakpoint(struct arena *arena, struct jv *list, const struct prompt_span *last, size_t bytes,
			   uint64_t tokens)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "class", str_of(prompt_class_names[last->class]));
	jv_set_str(arena, v, "after", str_of(last->name));
	jv_set_int(arena, v, "bytes", (int64_t)bytes);
	jv_set_int(arena, v, "tokens", (int64_t)tokens);
	jv_push(arena, list, v);
}

static struct jv *section_value(struct arena *arena, const struct prompt_span *s)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", str_of(s->name));
	jv_set_str(arena, v, "class", str_of(prompt_class_names[s->class]));
	jv_set_int(arena, v, "tokens", (int64_t)s->tokens);
	jv_set_int(arena, v, "bytes", (int64_t)s->len);
	jv_set_int(arena, v, "tokens_whole", (int64_t)s->tokens_all);
	if (s->sources.len)
		jv_set_str(arena, v, "sources", s->sources);
	if (s->cut.len)
		jv_set_str(arena, v, "cut", s->cut);
	return v;
}

struct jv *prompt_value(struct arena *arena, const struct prompt *prompt)
{
	struct jv *v = jv_object(arena), *sections = jv_array(arena), *breaks = jv_array(arena), *bad = jv_array(arena);
	uint64_t tokens = 0;

	for (size_t i = 0; i < prompt->count; i++) {
		const struct prompt_span *s = &prompt->sections[i];

		tokens += s->tokens;
		jv_push(arena, sections, section_value(arena, s));
		if (i + 1 == prompt->count || s[1].class != s->class)
			add_breakpoint(arena, breaks, s, s->start + s->len, tokens);
	}
	for (size_t i = 0; i < prompt->problem_count; i++)
		jv_push(arena, bad, jv_str(arena, prompt->problems[i]));
	jv_set_str(arena, v, "text", prompt->text);
	jv_set_int(arena, v, "tokens", (int64_t)prompt->tokens);
	jv_set_int(arena, v, "max_tokens", (int64_t)prompt->max_tokens);
	jv_set(arena, v, "sections", sections);
	jv_set(arena, v, "breakpoints", breaks);
	if (prompt->problem_count)
		jv_set(arena, v, "problems", bad);
	return v;
}
