/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are matched against the call as it will be made: the tool's name and its server, every argument that names a
 * path or a host, and any argument by its text. A rule with several conditions concerns a call that fulfils all of
 * them. A path is compared in its normal form, so that "./a/../b" cannot pass by a rule for "b"; one that has no normal
 * form matches every rule that asks or denies, since the tool refuses it anyway. The same goes for the host of a URL.
 */
#include "agent/policy.h"

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/url.h"
#include "store/wpath.h"
#include "text/glob.h"

#define RULES_MAX    200
#define WAIT_SECONDS 120.0

struct gate_rule {
	enum gate_effect effect;
	struct str id;
	const struct glob *tool, *server, *path, *host; /* NULL: any */
	const struct jv *arguments;                     /* by name: a pattern; NULL: any */
};

enum gate_mode { MODE_PERMISSIVE, MODE_INTERACTIVE, MODE_STRICT };

struct gates {
	struct arena *arena;
	struct gate_rule rules[RULES_MAX];
	size_t count;
	enum gate_mode mode;
	const struct jv *gated; /* tools of approval_gates; NULL: none */
	int64_t wait_ns;
	bool approve_late;
};

static int compile(struct gates *g, struct str pattern, const struct glob **ret, struct err *err)
{
	int r = pattern.len ? glob_compile(g->arena, pattern, GLOB_NOCASE, ret, err) : 0;

	return r ? err_prefix(err, "agent.yaml: policy") : 0;
}

static enum gate_effect effect_of(struct str name)
{
	return str_is(name, "deny") ? GATE_DENY : str_is(name, "ask") ? GATE_ASK : GATE_ALLOW;
}

static int add_rule(struct gates *g, const struct jv *v, struct err *err)
{
	struct gate_rule *rule = &g->rules[g->count];
	int r;

	if (g->count == RULES_MAX)
		return err_set(err, ERR_TOO_LARGE, "agent.yaml: policy.rules has more than %d rules; remove some",
			       RULES_MAX);
	rule->effect = effect_of(jv_get_str(v, "effect"));
	rule->id = jv_get_str(v, "id");
	rule->arguments = jv_get(v, "arguments");
	if (!rule->id.len)
		rule->id = arena_printf(g->arena, "rule %zu", g->count + 1);
	g->count++;
	r = compile(g, jv_get_str(v, "tool"), &rule->tool, err);
	if (r == 0)
		r = compile(g, jv_get_str(v, "server"), &rule->server, err);
	if (r == 0)
		r = compile(g, jv_get_str(v, "host"), &rule->host, err);
	return r ? r : compile(g, jv_get_str(v, "path"), &rule->path, err);
}

int gates_new(const struct jv *document, struct gates **ret_gates, struct err *err)
{
	const struct jv *policy = jv_get(document, "policy"), *gates = jv_get(document, "approval_gates");
	struct arena *arena = arena_new();
	struct gates *g = ARENA_NEW(arena, struct gates);
	struct str mode = jv_get_str(policy, "mode");
	int r = 0;

	g->arena = arena;
	g->mode = str_is(mode, "strict")        ? MODE_STRICT
		  : str_is(mode, "interactive") ? MODE_INTERACTIVE
						: MODE_PERMISSIVE;
	g->gated = jv_get_bool(gates, "enabled", false) ? jv_get(gates, "tools") : NULL;
	g->wait_ns = settings_ns(jv_get(gates, "timeout_seconds"), WAIT_SECONDS);
	g->approve_late = str_is(jv_get_str(gates, "default_action"), "approve");
	for (const struct jv_member *m = jv_first(jv_get(policy, "rules")); m && r == 0; m = m->next)
		r = add_rule(g, m->value, err);
	if (r)
		gates_destroy(g);
	else
		*ret_gates = g;
	return r;
}

void gates_destroy(struct gates *gates)
{
	if (gates)
		arena_destroy(gates->arena);
}

int64_t gates_wait_ns(const struct gates *gates)
{
	return gates->wait_ns;
}

bool gates_approve_late(const struct gates *gates)
{
	return gates->approve_late;
}

/* --- does a rule concern a call --- */

static bool is_path_key(struct str key)
{
	static const char *const keys[] = {"path",     "from",      "to",       "paths",       "file",
					   "dir",      "directory", "source",   "destination", "file_path",
					   "filename", "old_path",  "new_path", "target"};

	for (size_t i = 0; i < COUNT(keys); i++)
		if (str_is(key, keys[i]))
			return true;
	return false;
}

static bool path_matches(const struct gate_rule *rule, struct str text)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct wpath path;
	struct err ignored;

	if (wpath_parse_lenient(arena, text, &path, &ignored) != 0)
		return rule->effect != GATE_ALLOW;
	return glob_match(rule->path, path.s);
}

/* A URL wherever it is, and the name of a host where one is expected. */
static bool is_host(struct str key, struct str text)
{
	static const char *const keys[] = {"url", "urls", "uri", "host", "hosts", "domain", "domains"};

	if (str_eq_nocase(str_first(text, 7), STR("http://")) || str_eq_nocase(str_first(text, 8), STR("https://")))
		return true;
	for (size_t i = 0; i < COUNT(keys); i++)
		if (str_is(key, keys[i]))
			return true;
	return false;
}

static bool host_matches(const struct gate_rule *rule, struct str text)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct url url;
	struct err ignored;

	if (url_parse(arena, text, &url, &ignored) != 0 &&
	    url_parse(arena, arena_printf(arena, "https://%.*s", STR_ARG(text)), &url, &ignored) != 0)
		return rule->effect != GATE_ALLOW;
	while (url.host.len && url.host.ptr[url.host.len - 1] == '.') /* the same host */
		url.host.len--;
	return glob_match(rule->host, url.host);
}

/* Counts the arguments that name a path, or a host, and those of them that the rule has. */
static void count_places(const struct gate_rule *rule, bool hosts, const struct jv *v, struct str key, size_t *ret_seen,
			 size_t *ret_fit)
{
	if (v->type == JV_STR && (hosts ? is_host(key, v->u.s) : is_path_key(key))) {
		++*ret_seen;
		*ret_fit += hosts ? host_matches(rule, v->u.s) : path_matches(rule, v->u.s);
	}
	for (const struct jv_member *m = jv_first(v); m; m = m->next)
		count_places(rule, hosts, m->value, v->type == JV_OBJECT ? m->key : key, ret_seen, ret_fit);
}

/* An allowing rule needs all paths or hosts of a call, the others one of them. */
static bool places_match(const struct gate_rule *rule, bool hosts, const struct jv *input)
{
	size_t seen = 0, fit = 0;

	count_places(rule, hosts, input, STR_NONE, &seen, &fit);
	return rule->effect == GATE_ALLOW ? seen > 0 && fit == seen : fit > 0;
}

/* In a text that is not a path, '/' is a character like any other. */
static struct str without_slashes(struct arena *arena, struct str text)
{
	struct str copy = arena_str(arena, text);

	for (size_t i = 0; i < copy.len; i++)
		if (copy.ptr[i] == '/')
			((char *)copy.ptr)[i] = ' ';
	return copy;
}

static bool text_matches(struct arena *arena, struct str pattern, struct str text)
{
	const struct glob *glob;
	struct err ignored;

	return glob_compile(arena, pattern, GLOB_NOCASE, &glob, &ignored) == 0 && glob_match(glob, text);
}

/* "*" in a rule that asks or denies matches any text, so that a '/' in a command does not open the gate. */
static bool arguments_match(const struct gate_rule *rule, const struct jv *input)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	for (const struct jv_member *m = jv_first(rule->arguments); m; m = m->next) {
		const struct jv *v = jv_get_key(input, m->key);
		struct str pattern = jv_str_of(m->value);
		struct buf text;

		if (!v)
			return false;
		buf_init(&text, arena, JSON_LEN_MAX);
		if (v->type == JV_STR)
			buf_add(&text, v->u.s);
		else
			jv_write(&text, v);
		if (!text_matches(arena, pattern, buf_str(&text)) &&
		    (rule->effect == GATE_ALLOW ||
		     !text_matches(arena, without_slashes(arena, pattern), without_slashes(arena, buf_str(&text)))))
			return false;
	}
	return true;
}

static bool concerns(const struct gate_rule *rule, const struct tool_info *tool, struct str server,
		     const struct jv *input)
{
	if (rule->tool && !glob_match(rule->tool, tool->name))
		return false;
	if (rule->server && (!server.len || !glob_match(rule->server, server)))
		return false;
	if (rule->path && !places_match(rule, false, input))
		return false;
	if (rule->host && !places_match(rule, true, input))
		return false;
	return !rule->arguments || arguments_match(rule, input);
}

static struct gate by_mode(const struct gates *gates, const struct tool_info *tool)
{
	if (gates->mode == MODE_STRICT)
		return (struct gate){GATE_ASK, STR("mode: strict"), false};
	if (gates->mode == MODE_INTERACTIVE && !(tool->traits & (TOOL_READS_ONLY | TOOL_PLANS)))
		return (struct gate){GATE_ASK, STR("mode: interactive"), false};
	return (struct gate){.effect = GATE_ALLOW};
}

struct gate gates_decide(const struct gates *gates, const struct tool_info *tool, struct str server,
			 const struct jv *input)
{
	const struct jv *gated = jv_get_key(gates->gated, tool->name);
	bool is_gated = gated && jv_get_bool(gated, "require_approval", true);
	struct gate found = {.effect = GATE_ALLOW};

	if (is_gated)
		found = (struct gate){GATE_ASK, STR("approval_gates"), !jv_get_bool(gated, "show_args", true)};
	for (size_t i = 0; i < gates->count; i++) {
		const struct gate_rule *rule = &gates->rules[i];

		if ((!found.rule.len || rule->effect > found.effect) && concerns(rule, tool, server, input)) {
			found.effect = rule->effect;
			found.rule = rule->id;
		}
	}
	return found.rule.len ? found : by_mode(gates, tool);
}
