/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of skills become one list each time it is asked for: a file that was changed by hand counts at once, and
 * nothing has to be kept in step. A layer costs one list and one read per skill. A skill is nearly always in the
 * directory of its name, so one that is asked for by name is looked for there first, and the list is made only when it
 * is not. The workspace's own layer and the user's are one store, in which the user's files override the workspace's;
 * the version of its SKILL.md says whose a skill is (versions of files that show through begin with "l:").
 */
#include "home/skills/skills.h"

#include <stdlib.h>

#include "base/env.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/skills/skills_git.h"
#include "workspace/workspace_parts.h"

struct layer {
	struct store *store;
	struct wpath dir;
	struct str source;
	bool shows_users; /* what is not shown through is the user's own */
};

struct gather {
	struct ctx *ctx;
	const struct env *env; /* of the deployment: for other stores */
	struct skills *out;
	struct strmap *places; /* name -> place in the list + 1 */
	size_t cap;
	struct str only; /* load the directory of this name and no other; empty: all */
	size_t seen;     /* directories with a SKILL.md, good or not */
};

static void problem(struct gather *g, const struct layer *layer, struct str path, struct str text)
{
	struct arena *arena = g->ctx->arena;
	struct jv *p = jv_object(arena);

	jv_set_str(arena, p, "path", path);
	jv_set_str(arena, p, "source", layer->source);
	jv_set_str(arena, p, "problem", arena_str(arena, text));
	jv_push(arena, g->out->problems, p);
}

static bool is_at_home(const struct skill *skill)
{
	return str_eq(wpath_name(skill->dir), skill->name);
}

/* Layers come from the lowest up: what is already there is replaced. Of two in the same layer, the one in the directory
   of its name counts, or else the first. */
static void put(struct gather *g, const struct layer *layer, struct skill *skill)
{
	struct arena *arena = g->ctx->arena;
	bool added;
	size_t *place = strmap_put(g->places, skill->name, &added);
	const struct skill *other = added ? NULL : &g->out->skills[*place - 1];

	if (other && other->store == layer->store) {
		bool wins = is_at_home(skill);

		problem(g, layer, wins ? other->dir.s : skill->dir.s,
			arena_printf(arena, "%.*s has the same name and takes precedence",
				     STR_ARG(wins ? skill->dir.s : other->dir.s)));
		if (!wins)
			return;
	}
	if (added) {
		ARENA_ROOM(arena, g->out->skills, g->out->count, g->cap);
		*place = ++g->out->count;
	}
	g->out->skills[*place - 1] = *skill;
}

static int load_one(struct gather *g, const struct layer *layer, struct wpath dir, struct err *err)
{
	struct skill skill = {.store = layer->store, .dir = dir, .source = layer->source};
	struct ctx *ctx = g->ctx;
	struct store_stat stat;
	struct wpath path;
	struct str text;
	int r = wpath_join(ctx->arena, dir, (struct wpath){STR("SKILL.md")}, &path, err);

	if (r == 0)
		r = store_read(layer->store, ctx, path, STORE_WHOLE, SKILL_FILE_MAX, &text, &stat, err);
	if (r == -ERR_NOT_FOUND)
		return 0; /* a directory that is not a skill */
	if (r == -ERR_CANCELLED || r == -ERR_TIMEOUT)
		return r;
	g->seen++;
	if (r == 0)
		r = skill_parse(ctx->arena, wpath_name(dir), text, &skill, err);
	if (r) {
		problem(g, layer, dir.s, err_text(g->ctx->arena, err));
		return 0;
	}
	skill.version = stat.version;
	if (layer->shows_users && !str_starts(stat.version, STR("l:")))
		skill.source = STR("user");
	put(g, layer, &skill);
	return 0;
}

static int load_layer(struct gather *g, const struct layer *layer, struct err *err)
{
	struct store_list_req req = {.limit = SKILLS_MAX};
	struct store_page page;
	struct wpath dir;
	int r;

	if (g->only.len) {
		r = wpath_join(g->ctx->arena, layer->dir, (struct wpath){g->only}, &dir, err);
		return r ? 0 : load_one(g, layer, dir, err);
	}
	r = store_list(layer->store, g->ctx, layer->dir, &req, &page, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path);

		if (page.entries[i].stat.kind == STORE_DIR && name.ptr[0] != '_' && name.ptr[0] != '.' &&
		    !str_is(name, "node_modules"))
			r = load_one(g, layer, page.entries[i].path, err);
	}
	if (r == 0 && page.next.ptr)
		problem(g, layer, layer->dir.s,
			arena_printf(g->ctx->arena, "there are more than %d entries; the rest were left out",
				     SKILLS_MAX));
	return r;
}

/* --- other places --- */

/* A directory of the host, or the URL of a store. */
static int open_place(struct gather *g, struct str place, struct store **ret, struct err *err)
{
	struct arena *arena = g->ctx->arena;
	const char *home = env_process("HOME");
	struct store_disk_opts opts = {0};
	size_t scheme = str_find_char(place, ':');

	if (str_starts(place, STR("~/")) && home)
		place = arena_printf(arena, "%s%.*s", home, STR_ARG(str_from(place, 1)));
	if (str_starts(place, STR("/")))
		return store_disk_open(arena_cstr(arena, place), &opts, ret, err);
	if (scheme >= place.len)
		return err_set(err, ERR_INVALID, "\"%.*s\" is neither an absolute path nor the URL of a store",
			       STR_ARG(utf8_first(place, 100)));
	return store_open_url(place, g->env, ret, err);
}

/* A place that cannot be reached is reported; the others are loaded all the same. */
static int load_place(struct gather *g, const struct skills_repository *repo, struct str source, struct err *err)
{
	struct layer layer = {.source = source};
	struct str late = STR("");
	struct store *store;
	size_t before = g->seen;
	int r = skills_git_is(repo->url) ? skills_git_open(g->ctx, repo, &store, &late, err)
					 : open_place(g, repo->url, &store, err);

	if (late.len)
		problem(g, &layer, STR(""), late);
	if (r == 0) {
		layer.store = store_readonly_new(store);
		g->out->opened[g->out->opened_count++] = layer.store;
		r = load_layer(g, &layer, err);
	}
	if (r == 0 && g->seen == before && !g->only.len && skills_git_is(repo->url))
		problem(g, &layer, STR(""),
			STR("none of its directories has a SKILL.md; name the one that holds the skills with "
			    "\"path\""));
	if (r == 0 || r == -ERR_CANCELLED)
		return r;
	problem(g, &layer, STR(""), err_text(g->ctx->arena, err));
	return 0;
}

static int load_places(struct gather *g, const struct jv *settings, struct err *err)
{
	struct str global = jv_get_str(settings, "global_dir");
	size_t n = 0;
	int r = global.len ? load_place(g, &(struct skills_repository){.url = global}, STR("global"), err) : 0;

	for (const struct jv_member *m = jv_first(jv_get(settings, "repositories")); r == 0 && m; m = m->next) {
		struct skills_repository repo = {.url = jv_str_of(m->value)};
		struct str name = jv_get_str(m->value, "name");

		if (++n > SKILL_REPOSITORIES_MAX)
			break; /* the schema says so too */
		if (m->value->type == JV_OBJECT)
			repo = (struct skills_repository){.url = jv_get_str(m->value, "url"),
							  .ref = jv_get_str(m->value, "ref"),
							  .path = jv_get_str(m->value, "path")};
		r = load_place(g, &repo, name.len ? name : arena_printf(g->ctx->arena, "repository%zu", n), err);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct skill *)a)->name, ((const struct skill *)b)->name);
}

/* `only`: see struct gather. */
static int open_layers(struct workspace *ws, struct ctx *ctx, struct str only, struct skills *ret, struct err *err)
{
	struct gather g = {
		.ctx = ctx, .env = workspace_env(ws), .out = ret, .places = strmap_new(ctx->arena), .only = only};
	struct layer own = {.store = workspace_home(ws),
			    .dir = {STR("skills")},
			    .source = STR("workspace"),
			    .shows_users = workspace_actor(ws).user.len > 0};
	int r;

	*ret = (struct skills){.problems = jv_array(ctx->arena)};
	r = load_places(&g, jv_get(workspace_config(ws)->document, "skills"), err);
	if (r == 0)
		r = load_layer(&g, &own, err);
	if (r)
		skills_close(ret);
	else if (ret->count)
		qsort(ret->skills, ret->count, sizeof(*ret->skills), by_name);
	return r;
}

int skills_open(struct workspace *ws, struct ctx *ctx, struct skills *ret, struct err *err)
{
	return open_layers(ws, ctx, STR_NONE, ret, err);
}

int skills_open_named(struct workspace *ws, struct ctx *ctx, struct str name, struct skills *ret, struct err *err)
{
	const struct skill *found;
	int r;

	if (!skill_name_ok(name) || str_is(name, "node_modules"))
		return skills_open(ws, ctx, ret, err);
	r = open_layers(ws, ctx, name, ret, err);
	if (r)
		return r;
	found = skills_find(ret, name);
	if (found && found->store == workspace_home(ws) && str_eq(found->name, name))
		return 0;
	skills_close(ret); /* a layer above it may have one of this name in another directory */
	return skills_open(ws, ctx, ret, err);
}

int skills_taken(struct workspace *ws, struct ctx *ctx, struct str name, bool *ret, struct err *err)
{
	struct skills skills;
	int r = open_layers(ws, ctx, name, &skills, err);

	if (r)
		return r;
	*ret = skills_find(&skills, name) != NULL;
	skills_close(&skills);
	return 0;
}

void skills_close(struct skills *skills)
{
	for (size_t i = 0; i < skills->opened_count; i++)
		store_destroy(skills->opened[i]);
	skills->opened_count = 0;
}

/* --- one of them --- */

const struct skill *skills_find(const struct skills *skills, struct str name)
{
	for (size_t i = 0; i < skills->count; i++)
		if (str_eq(skills->skills[i].name, name))
			return &skills->skills[i];
	for (size_t i = 0; i < skills->count; i++) {
		const struct skill *s = &skills->skills[i];

		if (name.len == s->name.len + 1 + s->source.len && str_starts(name, s->name) &&
		    name.ptr[s->name.len] == '_' && str_ends(name, s->source))
			return s;
	}
	return NULL;
}

int skills_unknown(struct arena *arena, const struct skills *skills, struct str name, struct err *err)
{
	const char **names = ARENA_ARRAY(arena, const char *, skills->count + 1);
	const char *nearest;
	struct buf all;

	if (!skills->count)
		return err_set(err, ERR_NOT_FOUND, "there are no skills");
	buf_init(&all, arena, 300);
	for (size_t i = 0; i < skills->count; i++) {
		names[i] = arena_cstr(arena, skills->skills[i].name);
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	nearest = str_nearest(name, names, skills->count);
	if (nearest)
		return err_set(err, ERR_NOT_FOUND, "there is no skill \"%.*s\"; did you mean \"%s\"?",
			       STR_ARG(utf8_first(name, 80)), nearest);
	return err_set(err, ERR_NOT_FOUND, "there is no skill \"%.*s\"; there are %.*s%s",
		       STR_ARG(utf8_first(name, 80)), STR_ARG(utf8_first(buf_str(&all), 280)),
		       all.overflow ? " …" : "");
}

struct jv *skill_value(struct arena *arena, const struct skill *skill)
{
	static const struct {
		const char *from, *to;
	} more[] = {{"license", "license"},
		    {"compatibility", "compatibility"},
		    {"allowed-tools", "allowed_tools"},
		    {"metadata", "metadata"}};
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", skill->name);
	jv_set_str(arena, v, "description", skill->description);
	jv_set_str(arena, v, "source", skill->source);
	jv_set_str(arena, v, "path", skill->dir.s);
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
		const struct jv *x = jv_get(skill->head, more[i].from);

		if (!jv_is_null(x))
			jv_set(arena, v, more[i].to, jv_copy(arena, x));
	}
	if (jv_count(skill->warnings))
		jv_set(arena, v, "warnings", skill->warnings);
	return v;
}

int skill_files(struct ctx *ctx, const struct skill *skill, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = SKILL_FILES_MAX};
	struct jv *list = jv_array(ctx->arena);
	struct store_page page;
	int r = store_list(skill->store, ctx, skill->dir, &req, &page, err);

	if (r)
		return r;
	for (size_t i = 0; i < page.count; i++) {
		struct str path = wpath_relative(page.entries[i].path, skill->dir).s;
		struct jv *file = jv_object(ctx->arena);

		if (str_is(path, "SKILL.md"))
			continue;
		jv_set_str(ctx->arena, file, "path", path);
		jv_set_int(ctx->arena, file, "size", (int64_t)page.entries[i].stat.size);
		jv_push(ctx->arena, list, file);
	}
	*ret = list;
	return 0;
}

void skills_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct skills skills;
	struct err err;

	if (skills_open(ws, ctx, &skills, &err) != 0) {
		finding_error(findings, "skills", &err, "correct `skills` in agent.yaml");
		return;
	}
	finding_problems(findings, "skills", skills.problems, "correct it; it is left out until then");
	if (skills.count)
		finding_add(findings, "skills", arena_printf(ctx->arena, "%zu can be loaded", skills.count), NULL);
	skills_close(&skills);
}
