/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random attempts to reach another tenant's things through tools. Every tenant's notebook (or whatever a test fills)
 * holds a mark that no other has; tenants_attack() calls random tools with arguments made of everything that names
 * another's things, and looks for a foreign mark in each reply. Reusable for any family: give it the tools and the
 * names to try.
 */
#ifndef STEAD_TESTS_TENANTS_H
#define STEAD_TESTS_TENANTS_H

#include "tool/tool_fix.h"

struct tenant {
	struct workspace *ws;
	struct toolset *set;
	char user[64];
	char mark[40]; /* occurs in this tenant's data only */
};

struct attack {
	const char *const *tools; /* "name key key …": string arguments to fill; NULL at the end */
	const char *const *names; /* what may name a thing: slugs, titles, paths; NULL at the end */
	struct tenant *tenants;
	size_t count;
	uint64_t seed;
	uint64_t attempts, leaks, answered; /* out */
};

static uint64_t attack_random(struct attack *a)
{
	a->seed ^= a->seed << 13;
	a->seed ^= a->seed >> 7;
	a->seed ^= a->seed << 17;
	return a->seed;
}

/* A name as it is, with another's user before it, or in the forms that have led out of a directory elsewhere. */
static struct str attack_name(struct arena *arena, struct attack *a, bool reads_only)
{
	static const char *const forms[] = {
		"%s",  "../%s", "../../users/%s",         "users/%s", "/%s", "%s/../x", "..%%2f%s",
		"*%s", "%s*",   "../../../users/%s/notes"};
	size_t names = 0;
	const char *name, *form = forms[attack_random(a) % (sizeof(forms) / sizeof(forms[0]))];
	struct str user = str_of(a->tenants[attack_random(a) % a->count].user);
	char text[512];

	while (a->names[names])
		names++;
	name = a->names[attack_random(a) % names];
	if (attack_random(a) % 3 == 0)
		name = arena_printf(arena, "%.*s/%s", STR_ARG(user), name).ptr;
	else if (reads_only && attack_random(a) % 5 == 0) /* tenants may read what they wrote themselves */
		name = a->tenants[attack_random(a) % a->count].mark;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), form, name);
#pragma GCC diagnostic pop
	return arena_str(arena, str_of(text));
}

/* One call by a random tenant; true when the reply has another tenant's mark that was not in the call. */
static bool attack_once(struct attack *a, struct arena *arena)
{
	struct tenant *t = &a->tenants[attack_random(a) % a->count];
	struct ctx ctx = {.arena = arena};
	struct tool_result result;
	struct err err = {0};
	struct jv *args = jv_object(arena);
	struct str rest, tool, key, given = STR("");
	const struct tool_info *info;
	size_t tools = 0;

	while (a->tools[tools])
		tools++;
	rest = str_of(a->tools[attack_random(a) % tools]);
	str_cut(&rest, ' ', &tool);
	info = toolset_find(t->set, tool);
	while (str_cut(&rest, ' ', &key)) {
		struct str value = attack_name(arena, a, info && info->traits & TOOL_READS_ONLY);

		given = arena_printf(arena, "%.*s\n%.*s", STR_ARG(given), STR_ARG(value));
		jv_set_key(arena, args, key, jv_str(arena, value));
	}
	if (toolset_call(t->set, &ctx, tool, args, &result, &err))
		return false;
	a->answered += !result.is_error;
	for (size_t i = 0; i < a->count; i++)
		if (&a->tenants[i] != t && str_find(result.text, str_of(a->tenants[i].mark), 0) != SIZE_MAX &&
		    str_find(given, str_of(a->tenants[i].mark), 0) == SIZE_MAX)
			return true;
	return false;
}

static void tenants_attack(struct attack *a, uint64_t attempts)
{
	struct arena *arena = arena_new();

	for (uint64_t i = 0; i < attempts; i++) {
		a->leaks += attack_once(a, arena);
		a->attempts++;
		arena_reset(arena);
	}
	arena_destroy(arena);
}

#endif
