/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prompt for a turn, and what is kept for the next.
 *
 * Whether anything has changed is asked in two steps. The first costs two system calls: has the log of revisions moved
 * (whatever Stead itself changes, in any process, is in it), and did the kernel report something in the directories
 * that the prompt is made of (whatever anybody else changes on this machine). If neither, the last text of this session
 * is given again. Else the files are looked at, without being read: the same versions give the same text. Only then are
 * files read, those with another version.
 *
 * Where the workspace is not on a disk of this machine, nobody changes it but through Stead, and the log alone tells.
 */
#include "home/prompt/prompt.h"

#include <pthread.h>

#include "base/hash.h"
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"
#include "revisions/revisions.h"

#define SLOTS     8    /* sessions whose last text is kept */
#define AGAIN_MAX 1000 /* looks at single files before one at everything */

struct slot {
	char *key;
	struct arena *arena; /* of the prompt */
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
	struct prompt_files files;
	/* What was found when it was last looked: for which session, and how often it was only looked at again. */
	struct prompt_sweep sweep;
	struct arena *sweep_arena;
	char *sweep_key; /* NULL: look at everything */
	unsigned again;
	uint64_t round; /* goes up when something may have changed */
	uint64_t head;
	uint64_t uses;
	char day[16];
	struct slot *slots; /* SLOTS of them; NULL until the first prompt */
};

void *prompt_kept_new(struct workspace *ws)
{
	struct prompt_kept *kept = xcalloc(1, sizeof *kept);

	kept->ws = ws;
	pthread_mutex_init(&kept->lock, NULL);
	return kept;
}

static void slot_empty(struct slot *slot)
{
	free(slot->key);
	if (slot->arena)
		arena_destroy(slot->arena);
	*slot = (struct slot){0};
}

void prompt_kept_destroy(void *state)
{
	struct prompt_kept *kept = state;

	for (size_t i = 0; kept->slots && i < SLOTS; i++)
		slot_empty(&kept->slots[i]);
	free(kept->slots);
	prompt_files_release(&kept->files);
	prompt_watch_destroy(kept->watch);
	free(kept->sweep_key);
	if (kept->sweep_arena)
		arena_destroy(kept->sweep_arena);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

/* --- the last text --- */

static struct slot *slot_find(struct prompt_kept *kept, struct str key)
{
	for (size_t i = 0; kept->slots && i < SLOTS; i++)
		if (kept->slots[i].key && str_is(key, kept->slots[i].key))
			return &kept->slots[i];
	return NULL;
}

static struct slot *slot_take(struct prompt_kept *kept, struct str key)
{
	struct slot *slot = slot_find(kept, key);

	if (!kept->slots)
		kept->slots = xcalloc(SLOTS, sizeof *slot);
	for (size_t i = 0; !slot && i < SLOTS; i++)
		if (!kept->slots[i].key)
			slot = &kept->slots[i];
	if (!slot) {
		slot = &kept->slots[0];
		for (size_t i = 1; i < SLOTS; i++)
			if (kept->slots[i].used < slot->used)
				slot = &kept->slots[i];
	}
	slot_empty(slot);
	slot->key = xstrndup(key);
	return slot;
}

static struct prompt copy_prompt(struct arena *arena, const struct prompt *from)
{
	struct prompt to = *from;

	to.text = arena_str(arena, from->text);
	to.sections = ARENA_ARRAY(arena, struct prompt_section, from->count + 1);
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

/* Parts of it may lie in several places, templates below it, skills outside of it: then the files are looked at each
 * time. */
static bool is_spread(const struct workspace *ws)
{
	return str_starts(home_url_of(ws), STR("config:")) || prompt_skills_elsewhere(ws);
}

static void forget_sweep(struct prompt_kept *kept)
{
	free(kept->sweep_key);
	kept->sweep_key = NULL;
}

/* A new round begins unless it is certain that nothing has happened. */
static int ask(struct prompt_kept *kept, struct ctx *ctx, struct prompt_news *news, struct err *err)
{
	struct str day = prompt_day(ctx->arena, 0);
	bool same_day = str_is(day, kept->day);
	uint64_t head;
	int r;

	news->count = 0;
	news->anything = is_spread(kept->ws) || home_dir(kept->ws).ptr;
	if (kept->watch)
		prompt_watch_ask(kept->watch, ctx->arena, news);
	if (news->anything || news->count || !same_day)
		kept->round++;
	if (news->anything || !same_day)
		forget_sweep(kept);
	r = revisions_head(home_shared(kept->ws), ctx, &head, err);
	if (r) {
		forget_sweep(kept); /* the news are lost with this call */
		return r;
	}
	if (head != kept->head) {
		kept->round++;
		if (!kept->watch) /* what moved the log may have been a file of the prompt */
			forget_sweep(kept);
	}
	kept->head = head;
	snprintf(kept->day, sizeof kept->day, "%.*s", STR_ARG(day));
	return 0;
}

static bool has_young(const struct prompt_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->pieces[i]->young)
			return true;
	return false;
}

static int look_at_all(struct prompt_kept *kept, struct ctx *ctx, struct str key, struct err *err)
{
	struct prompt_sweep sweep;
	int r;

	forget_sweep(kept);
	if (!kept->watch_tried && home_dir(kept->ws).ptr && !is_spread(kept->ws))
		kept->watch = prompt_watch_new(home_dir(kept->ws).ptr);
	kept->watch_tried = true;
	r = prompt_look(kept->ws, ctx, kept->watch, &sweep, err);
	if (r)
		return r;
	if (kept->sweep_arena)
		arena_destroy(kept->sweep_arena);
	kept->sweep_arena = arena_new();
	kept->sweep = prompt_sweep_copy(kept->sweep_arena, &sweep);
	kept->sweep_key = xstrndup(key);
	kept->again = 0;
	return 0;
}

/* Brings kept->sweep up to date; *ret_hash is of everything that the text is made of. */
static int look(struct prompt_kept *kept, struct ctx *ctx, struct str key, const struct prompt_news *news,
		uint64_t ret_hash[2], struct err *err)
{
	uint64_t files[2];
	bool known = kept->sweep_key && str_is(key, kept->sweep_key) && ++kept->again < AGAIN_MAX;
	int r = 0;

	if (known && news->count) {
		struct ctx own = *ctx;

		own.arena = kept->sweep_arena;
		known = prompt_look_again(kept->ws, &own, news, &kept->sweep);
	}
	if (!known)
		r = look_at_all(kept, ctx, key, err);
	if (r)
		return r;
	prompt_sweep_hash(ctx->arena, &kept->sweep, files);
	/* notes are in the log, and the day is a name of files */
	hash_u128(arena_printf(ctx->arena, "%llu %llu %llu %s", (unsigned long long)files[0],
			       (unsigned long long)files[1], (unsigned long long)kept->head, kept->day),
		  ret_hash);
	return 0;
}

static int make(struct prompt_kept *kept, struct ctx *ctx, struct str key, uint64_t max_tokens, const uint64_t hash[2],
		struct slot **ret, struct err *err)
{
	struct prompt_parts parts;
	struct prompt prompt;
	struct slot *slot;
	int r = prompt_files_update(&kept->files, kept->ws, ctx, &kept->sweep, err);

	if (r == 0)
		r = prompt_parts_make(kept->ws, ctx, &kept->files, &parts, err);
	if (r)
		return r;
	prompt_fit(ctx->arena, &parts, max_tokens, &prompt);
	prompt.files_read = kept->files.read;
	slot = slot_take(kept, key);
	slot->arena = arena_new();
	slot->prompt = copy_prompt(slot->arena, &prompt);
	slot->hash[0] = hash[0];
	slot->hash[1] = hash[1];
	*ret = slot;
	return 0;
}

static int assemble(struct prompt_kept *kept, struct ctx *ctx, struct str key, uint64_t max_tokens, struct prompt *ret,
		    struct err *err)
{
	struct slot *slot = slot_find(kept, key);
	uint64_t files_read = 0, hash[2];
	struct prompt_news news;
	int r = ask(kept, ctx, &news, err);

	if (r)
		return r;
	if (!slot || slot->round != kept->round) {
		r = look(kept, ctx, key, &news, hash, err);
		if (r == 0 &&
		    (!slot || slot->hash[0] != hash[0] || slot->hash[1] != hash[1] || has_young(&kept->files))) {
			r = make(kept, ctx, key, max_tokens, hash, &slot, err);
			files_read = kept->files.read;
		}
		if (r) {
			forget_sweep(kept);
			return r;
		}
	}
	slot->round = kept->round;
	slot->used = ++kept->uses;
	*ret = copy_prompt(ctx->arena, &slot->prompt);
	ret->files_read = files_read;
	return 0;
}

int prompt_assemble(struct workspace *ws, struct ctx *ctx, const struct prompt_opts *opts, struct prompt *ret,
		    struct err *err)
{
	struct prompt_kept *kept = family_state(&prompt_family, ws);
	uint64_t max = opts->max_tokens ? opts->max_tokens : workspace_config(ws)->prompt_tokens;
	struct actor own = workspace_actor(ws);
	struct buf key;
	int r;

	if (max < PROMPT_TOKENS_MIN || max > PROMPT_TOKENS_MAX)
		return err_set(err, ERR_INVALID, "the budget of a prompt is %d to %d tokens, not %llu",
			       PROMPT_TOKENS_MIN, PROMPT_TOKENS_MAX, (unsigned long long)max);
	buf_init(&key, ctx->arena, 64 * KIB);
	buf_u64(&key, max);
	buf_char(&key, ' ');
	buf_add(&key, workspace_encode_name(ctx->arena, ctx->actor.agent.len ? ctx->actor.agent : own.agent));
	buf_char(&key, ' ');
	buf_add(&key, workspace_encode_name(ctx->arena, ctx->actor.session.len ? ctx->actor.session : own.session));
	pthread_mutex_lock(&kept->lock);
	r = assemble(kept, ctx, buf_str(&key), max, ret, err);
	pthread_mutex_unlock(&kept->lock);
	return r;
}

/* --- as a value --- */

static void add_breakpoint(struct arena *arena, struct jv *list, const struct prompt_section *last, size_t bytes,
			   uint64_t tokens)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "class", str_of(prompt_class_names[last->class]));
	jv_set_str(arena, v, "after", str_of(last->name));
	jv_set_int(arena, v, "bytes", (int64_t)bytes);
	jv_set_int(arena, v, "tokens", (int64_t)tokens);
	jv_push(arena, list, v);
}

static struct jv *section_value(struct arena *arena, const struct prompt_section *s)
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
		const struct prompt_section *s = &prompt->sections[i];

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
