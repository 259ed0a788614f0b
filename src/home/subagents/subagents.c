/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of subagents. A key that is misspelt would silently give an agent more tools or another model than its
 * author meant, so a wrong value is a refusal of that file, and an unknown key a warning with the nearest known one.
 *
 * "---" ends the head only as a line of its own, so a value may have it.
 */
#include "home/subagents/subagents.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "text/frontmatter.h"

#define STEPS_DEFAULT 10
#define STEPS_MAX     10000
#define NAMES_MAX     500

/* --- keys --- */

static const struct key {
	const char *name, *to;
} keys[] = {
	{"description", "description"},
	{"name", "name"},
	{"workspace", "workspace"},
	{"workspace.mode", "workspace.mode"},
	{"workspace.path", "workspace.path"},
	{"workspaceMode", "workspace.mode"},
	{"workspacePath", "workspace.path"},
	{"model", "model"},
	{"steps", "steps"},
	{"maxIters", "steps"},
	{"max_iters", "steps"},
	{"temperature", "temperature"},
	{"top_p", "top_p"},
	{"topP", "top_p"},
	{"variant", "variant"},
	{"mode", "mode"},
	{"hidden", "hidden"},
	{"expose_to_user", "expose_to_user"},
	{"exposeToUser", "expose_to_user"},
	{"tools", "tools"},
	{"skills", "skills"},
};
#define KEYS (sizeof keys / sizeof keys[0])

static void warn_unknown(struct arena *arena, struct str key, struct jv *warnings)
{
	const char *names[KEYS], *nearest;

	for (size_t i = 0; i < KEYS; i++)
		names[i] = keys[i].name;
	nearest = str_nearest(key, names, KEYS);
	jv_push(arena, warnings,
		jv_str(arena, nearest ? arena_printf(arena, "unknown key \"%.*s\"; did you mean \"%s\"?",
						     STR_ARG(utf8_first(key, 60)), nearest)
				      : arena_printf(arena, "unknown key \"%.*s\"", STR_ARG(utf8_first(key, 60)))));
}

/* All keys by one name each; a nested `workspace` is the same as its dotted keys. */
static int flatten(struct arena *arena, const struct jv *head, struct jv *flat, struct jv *warnings, const char *prefix,
		   struct err *err)
{
	for (const struct jv_member *m = jv_first(head); m; m = m->next) {
		struct str key = prefix ? arena_printf(arena, "%s.%.*s", prefix, STR_ARG(m->key)) : m->key;
		size_t i = 0;

		while (i < KEYS && !str_is(key, keys[i].name))
			i++;
		if (i == KEYS) {
			warn_unknown(arena, key, warnings);
			continue;
		}
		if (str_is(key, "workspace") && m->value->type == JV_OBJECT) {
			int r = flatten(arena, m->value, flat, warnings, "workspace", err);

			if (r)
				return r;
			continue;
		}
		if (jv_get(flat, keys[i].to))
			return err_set(err, ERR_INVALID, "line %u: %s is given twice", m->key_line, keys[i].to);
		jv_set(arena, flat, keys[i].to, m->value);
	}
	return 0;
}

/* --- values --- */

__attribute__((format(printf, 3, 4))) static int wrong(struct err *err, const struct jv *v, const char *fmt, ...)
{
	char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return err_set(err, ERR_INVALID, "line %u: %s", v->line, text);
}

static int take_text(struct arena *arena, const struct jv *flat, const char *key, struct jv *out, struct err *err)
{
	const struct jv *v = jv_get(flat, key);

	if (jv_is_null(v))
		return 0;
	if (v->type != JV_STR || !str_trim(v->u.s).len)
		return wrong(err, v, "%s is not text", key);
	jv_set_str(arena, out, key, str_trim(v->u.s));
	return 0;
}

static int take_word(struct arena *arena, const struct jv *flat, const char *key, const char *words, struct str usual,
		     struct jv *out, const char *to, struct err *err)
{
	const struct jv *v = jv_get(flat, key);
	struct str all = str_of(words), word;

	while (str_cut(&all, ' ', &word))
		if (jv_is_null(v) ? str_eq(word, usual) : str_eq_nocase(jv_str_of(v), word)) {
			jv_set_str(arena, out, to, word);
			return 0;
		}
	return wrong(err, v, "%s is not one of: %s", key, words);
}

static int take_number(struct arena *arena, const struct jv *flat, const char *key, double most, struct jv *out,
		       struct err *err)
{
	const struct jv *v = jv_get(flat, key);
	double d;

	if (jv_is_null(v))
		return 0;
	if (v->type != JV_INT && v->type != JV_REAL)
		return wrong(err, v, "%s is not a number", key);
	d = v->type == JV_INT ? (double)v->u.i : v->u.d;
	if (!(d >= 0 && d <= most))
		return wrong(err, v, "%s is not between 0 and %g", key, most);
	jv_set(arena, out, key, jv_copy(arena, v));
	return 0;
}

static int take_steps(struct arena *arena, const struct jv *flat, struct jv *out, struct err *err)
{
	const struct jv *v = jv_get(flat, "steps");

	if (!jv_is_null(v) && (v->type != JV_INT || v->u.i < 1 || v->u.i > STEPS_MAX))
		return wrong(err, v, "steps is not a number from 1 to %d", STEPS_MAX);
	jv_set_int(arena, out, "steps", jv_is_null(v) ? STEPS_DEFAULT : v->u.i);
	return 0;
}

static int take_bool(struct arena *arena, const struct jv *flat, const char *key, struct jv *out, struct err *err)
{
	const struct jv *v = jv_get(flat, key);

	if (!jv_is_null(v) && v->type != JV_BOOL)
		return wrong(err, v, "%s is neither true nor false", key);
	jv_set_bool(arena, out, key, !jv_is_null(v) && v->u.b);
	return 0;
}

/* A list, or "a, b". */
static int take_names(struct arena *arena, const struct jv *flat, const char *key, struct jv *out, struct err *err)
{
	const struct jv *v = jv_get(flat, key);
	struct jv *list = jv_array(arena);
	struct str rest = jv_str_of(v), part;

	if (jv_is_null(v))
		return 0;
	if (v->type != JV_STR && v->type != JV_ARRAY)
		return wrong(err, v, "%s is neither a list nor names separated by commas", key);
	while (v->type == JV_STR && str_cut(&rest, ',', &part))
		if (str_trim(part).len)
			jv_push(arena, list, jv_str(arena, str_trim(part)));
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		if (m->value->type != JV_STR || !str_trim(m->value->u.s).len)
			return wrong(err, m->value, "%s has an item that is not a name", key);
		jv_push(arena, list, jv_str(arena, str_trim(m->value->u.s)));
	}
	if (jv_count(list) > NAMES_MAX)
		return wrong(err, v, "%s has more than %d names", key, NAMES_MAX);
	jv_set(arena, out, key, list);
	return 0;
}

/* Where it works: a path of its own, the workspace itself, or a place below agents/. */
static int take_workspace(struct arena *arena, const struct jv *flat, struct str id, struct jv *out, struct err *err)
{
	const struct jv *mode = jv_get(flat, "workspace") ? jv_get(flat, "workspace") : NULL;
	struct jv *w = jv_object(arena), *place = jv_object(arena);
	struct wpath path;
	struct str text;
	int r;

	if (mode) /* "workspace: shared" */
		jv_set(arena, place, "workspace.mode", jv_copy(arena, mode));
	else if (jv_get(flat, "workspace.mode"))
		jv_set(arena, place, "workspace.mode", jv_copy(arena, jv_get(flat, "workspace.mode")));
	r = take_word(arena, place, "workspace.mode", "isolated shared fork", STR("isolated"), w, "mode", err);
	if (r == 0)
		r = take_text(arena, flat, "workspace.path", place, err);
	text = jv_get_str(place, "workspace.path");
	if (r == 0 && text.len) {
		r = wpath_parse_lenient(arena, text, &path, err);
		if (r)
			return err_prefix(err, "workspace.path");
		jv_set_str(arena, w, "path", path.s);
	}
	if (r)
		return r;
	if (!str_is(jv_get_str(w, "mode"), "isolated") || (text.len && wpath_is_root(path)))
		jv_set_str(arena, w, "root", STR("."));
	else if (text.len)
		jv_set_str(arena, w, "root", path.s);
	else
		jv_set_str(arena, w, "root",
			   arena_printf(arena, "agents/%.*s/workspace", STR_ARG(workspace_encode_id(arena, id))));
	jv_set(arena, out, "workspace", w);
	return 0;
}

/* --- a file --- */

static int take_all(struct arena *arena, const struct jv *flat, struct str id, struct jv *out, struct err *err)
{
	static const char *const texts[] = {"description", "model", "variant"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof texts / sizeof texts[0]; i++)
		r = take_text(arena, flat, texts[i], out, err);
	if (r == 0 && !jv_get(out, "description"))
		r = err_set(err, ERR_INVALID, "the head has no description; say what the subagent is for");
	if (r == 0)
		r = take_workspace(arena, flat, id, out, err);
	if (r == 0)
		r = take_steps(arena, flat, out, err);
	if (r == 0)
		r = take_number(arena, flat, "temperature", 2, out, err);
	if (r == 0)
		r = take_number(arena, flat, "top_p", 1, out, err);
	if (r == 0)
		r = take_word(arena, flat, "mode", "primary subagent all", STR("subagent"), out, "mode", err);
	if (r == 0)
		r = take_bool(arena, flat, "hidden", out, err);
	if (r == 0)
		r = take_bool(arena, flat, "expose_to_user", out, err);
	if (r == 0)
		r = take_names(arena, flat, "tools", out, err);
	return r ? r : take_names(arena, flat, "skills", out, err);
}

static bool id_ok(struct str id)
{
	if (!id.len || id.len > 64 || !utf8_valid(id) || id.ptr[0] == '.' || id.ptr[0] == '_')
		return false;
	return wpath_name_ok(id);
}

int subagent_parse(struct arena *arena, struct str id, struct str text, struct jv **ret, struct err *err)
{
	struct jv *out = jv_object(arena), *flat = jv_object(arena), *warnings = jv_array(arena);
	struct frontmatter fm;
	int r;

	if (!id_ok(id))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a valid name for a subagent; use 1 to 64 characters",
			       STR_ARG(utf8_first(id, 80)));
	if (str_starts(text, STR("\xEF\xBB\xBF")))
		text = str_from(text, 3);
	r = frontmatter_parse(arena, text, &fm, err);
	if (r == 0 && !fm.has_head)
		r = err_set(err, ERR_INVALID, "the file does not begin with a head between \"---\" lines");
	jv_set_str(arena, out, "id", id);
	if (r == 0)
		r = flatten(arena, fm.head, flat, warnings, NULL, err);
	if (r == 0)
		r = take_all(arena, flat, id, out, err);
	if (r)
		return r;
	if (jv_get(jv_get(out, "workspace"), "path")) {
		if (str_trim(fm.body).len)
			jv_push(arena, warnings,
				jv_str(arena,
				       STR("the file's text is not used, because workspace.path has an AGENTS.md")));
	} else if (str_trim(fm.body).len) {
		jv_set_str(arena, out, "prompt", str_trim(fm.body));
	} else {
		jv_push(arena, warnings, jv_str(arena, STR("there is no system prompt after the head")));
	}
	if (jv_count(warnings))
		jv_set(arena, out, "warnings", warnings);
	*ret = out;
	return 0;
}

/* --- all of them --- */

static void add_file(struct workspace *ws, struct ctx *ctx, struct wpath path, bool with_prompt, struct jv *list,
		     struct jv *problems)
{
	struct str name = wpath_name(path), text;
	struct jv *one, *p;
	struct err err;

	if (store_read(workspace_home(ws), ctx, path, STORE_WHOLE, SUBAGENT_FILE_MAX, &text, NULL, &err) == 0 &&
	    subagent_parse(ctx->arena, str_first(name, name.len - 3), text, &one, &err) == 0) {
		if (!with_prompt)
			jv_remove(one, "prompt");
		jv_push(ctx->arena, list, one);
		return;
	}
	p = jv_object(ctx->arena);
	jv_set_str(ctx->arena, p, "path", path.s);
	jv_set_str(ctx->arena, p, "problem", err_text(ctx->arena, &err));
	jv_push(ctx->arena, problems, p);
}

int subagents_list(struct workspace *ws, struct ctx *ctx, bool with_prompt, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = SUBAGENTS_MAX};
	struct jv *v = jv_object(ctx->arena), *list = jv_array(ctx->arena), *problems = jv_array(ctx->arena);
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR("subagents")}, &req, &page, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	for (size_t i = 0; i < page.count; i++)
		if (page.entries[i].stat.kind == STORE_FILE && str_ends(page.entries[i].path.s, STR(".md")) &&
		    wpath_name(page.entries[i].path).ptr[0] != '.')
			add_file(ws, ctx, page.entries[i].path, with_prompt, list, problems);
	jv_set(ctx->arena, v, "subagents", list);
	if (jv_count(problems))
		jv_set(ctx->arena, v, "problems", problems);
	*ret = v;
	return 0;
}

int subagent_get(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret, struct err *err)
{
	struct wpath path = {arena_printf(ctx->arena, "subagents/%.*s.md", STR_ARG(id))}, agents;
	struct str text, own;
	int r = id_ok(id) ? 0 : -ERR_NOT_FOUND;

	if (r == 0)
		r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, SUBAGENT_FILE_MAX, &text, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no subagent \"%.*s\"; list_subagents shows them",
			       STR_ARG(utf8_first(id, 80)));
	if (r == 0)
		r = subagent_parse(ctx->arena, id, text, ret, err);
	if (r)
		return r;
	own = jv_get_str(jv_get(*ret, "workspace"), "path");
	if (!own.ptr)
		return 0;
	agents = (struct wpath){own.len ? arena_printf(ctx->arena, "%.*s/AGENTS.md", STR_ARG(own)) : STR("AGENTS.md")};
	r = store_read(workspace_home(ws), ctx, agents, STORE_WHOLE, SUBAGENT_FILE_MAX, &text, NULL, err);
	if (r == 0)
		jv_set_str(ctx->arena, *ret, "prompt", text);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

void subagents_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct jv *list;
	struct err err;

	if (subagents_list(ws, ctx, false, &list, &err) != 0) {
		finding_error(findings, "subagents", &err, "look at the directory subagents/");
		return;
	}
	finding_problems(findings, "subagents", jv_get(list, "problems"),
			 "correct the file; it is left out until then");
	if (jv_count(jv_get(list, "subagents")))
		finding_add(findings, "subagents",
			    arena_printf(ctx->arena, "%zu are declared", jv_count(jv_get(list, "subagents"))), NULL);
}
