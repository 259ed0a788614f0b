/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people and agents declare in files: SKILL.md, subagents/<id>.md, tools.json. Beyond "does not crash": whatever
 * is taken keeps the rules of its header, whatever is refused says why, and a patch of a skill is exactly what it says.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "home/skills/skill_patch.h"
#include "home/skills/skills.h"
#include "home/subagents/subagents.h"
#include "home/uploads/uploads.h"
#include "workspace/tools_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libfyaml 0.7.12 forgets a buffer when a quoted string never ends; docs/decisions/0007-libfyaml.md. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml";
}

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void try_skill(struct arena *arena, struct str text)
{
	struct jv *findings = jv_array(arena);
	struct err err = {0};
	struct skill s;

	if (skill_parse(arena, STR("dir"), text, &s, &err) == 0)
		require(s.name.len && utf8_count(s.name) <= 64 && s.description.len && s.head->type == JV_OBJECT);
	else
		require(err.kind != ERR_NONE && err.msg[0]);
	if (skill_check(arena, STR("x"), text, &err) == 0)
		require(skill_parse(arena, STR("x"), text, &s, &err) == 0 && str_is(s.name, "x"));
	skill_scan_text(arena, STR("SKILL.md"), text, findings);
	require(jv_count(findings) <= 100);
}

static void try_patch(struct arena *arena, struct str text)
{
	struct str old_text = str_first(text, text.len / 3), rest = str_from(text, text.len / 3), out;
	const char *level;
	struct err err = {0};

	if (skill_patch(arena, rest, old_text, STR("new"), true, &out, &level, &err) == 0)
		require(str_find(out, STR("new"), 0) != SIZE_MAX);
	else
		require(err.kind != ERR_NONE && err.msg[0]);
}

static void try_subagent(struct arena *arena, struct str text)
{
	struct err err = {0};
	struct jv *v;

	if (subagent_parse(arena, STR("id"), text, &v, &err) == 0) {
		require(jv_get_str(v, "description").len && jv_get_int(v, "steps", 0) >= 1);
		require(jv_get_str(jv_get(v, "workspace"), "root").len);
	} else {
		require(err.kind != ERR_NONE && err.msg[0]);
	}
}

static void try_tools(struct arena *arena, struct str text)
{
	struct err err = {0};
	struct jv *v, *vars = jv_object(arena);

	if (tools_json_read(arena, text, vars, &v, &err) == 0) {
		for (const struct jv_member *m = jv_first(jv_get(v, "mcpServers")); m; m = m->next) {
			require(jv_get_int(m->value, "timeout_ms", 0) > 0);
			require(!jv_get(m->value, "command") != !jv_get(m->value, "url"));
		}
	} else {
		require(err.kind != ERR_NONE && err.msg[0]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);

	try_skill(arena, text);
	try_patch(arena, text);
	try_subagent(arena, text);
	try_tools(arena, text);
	require(wpath_name_ok(upload_safe_name(arena, text, STR_NONE)));
	return 0;
}
