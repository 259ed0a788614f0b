/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as people and models read them. Files that Stead writes for programs have UTC, so that they can be compared and
 * sorted as text; what is shown is in the zone of the workspace, with the offset, so that it is still one instant.
 */
#include "base/clock.h"
#include "workspace/workspace.h"

struct str workspace_time(const struct workspace *ws, struct arena *arena, int64_t real_ns)
{
	const struct zone *zone = workspace_config(ws)->zone;

	return zone ? zone_format(arena, zone, real_ns / NS_PER_S) : clock_format_utc(arena, real_ns);
}

struct str workspace_time_of(const struct workspace *ws, struct arena *arena, struct str text)
{
	int64_t ns;

	if (!workspace_config(ws)->zone || !clock_parse(text, &ns))
		return text;
	return workspace_time(ws, arena, ns);
}

static bool is_one_of(struct str key, const char *const *keys)
{
	while (*keys && !str_is(key, *keys))
		keys++;
	return *keys != NULL;
}

void workspace_times(const struct workspace *ws, struct arena *arena, struct jv *value, const char *const *keys)
{
	if (!workspace_config(ws)->zone || !value || (value->type != JV_OBJECT && value->type != JV_ARRAY))
		return;
	for (struct jv_member *m = (struct jv_member *)jv_first(value); m; m = m->next) {
		if (m->value->type == JV_STR && is_one_of(m->key, keys))
			m->value = jv_str(arena, workspace_time_of(ws, arena, jv_str_of(m->value)));
		else
			workspace_times(ws, arena, (struct jv *)m->value, keys);
	}
}
