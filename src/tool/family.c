/* SPDX-License-Identifier: Apache-2.0 */
/* What every family gets from the framework. */
#include "tool/family.h"

void *family_state(const struct family *family, struct workspace *ws)
{
	return workspace_slot(ws, family, family->open, family->close);
}

void finding_add(const struct findings *f, const char *check, struct str detail, const char *fix)
{
	struct jv *line = jv_object(f->arena);

	if (f->workspace.len)
		jv_set_str(f->arena, line, "workspace", f->workspace);
	jv_set_str(f->arena, line, "check", str_of(check));
	jv_set_bool(f->arena, line, "ok", fix == NULL);
	jv_set_str(f->arena, line, "detail", arena_str(f->arena, detail));
	if (fix)
		jv_set_str(f->arena, line, "fix", str_of(fix));
	jv_push(f->arena, f->list, line);
}

void finding_error(const struct findings *f, const char *check, const struct err *err, const char *fix)
{
	finding_add(f, check, err_text(f->arena, err), fix);
}

void finding_problems(const struct findings *f, const char *check, const struct jv *problems, const char *fix)
{
	for (const struct jv_member *m = jv_first(problems); m; m = m->next)
		finding_add(f, check,
			    arena_printf(f->arena, "%.*s: %.*s", STR_ARG(jv_get_str(m->value, "path")),
					 STR_ARG(jv_get_str(m->value, "problem"))),
			    fix);
}
