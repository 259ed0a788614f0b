/* SPDX-License-Identifier: Apache-2.0 */
/* What every family gets from the framework. */
#include "tool/family.h"

void *family_state(const struct family *family, struct workspace *ws)
{
	return family->has_threads ? workspace_thread_slot(ws, family, family->open, family->close)
				   : workspace_slot(ws, family, family->open, family->close);
}

int family_files(struct workspace *ws, struct ctx *ctx, struct store **ret, struct err *err)
{
	int r = 0;

	*ret = NULL;
	for (size_t i = 0; r == 0 && !*ret && families[i]; i++)
		if (families[i]->files)
			r = families[i]->files(ws, ctx, ret, err);
	return r;
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
	for (const struct jv_member *m = jv_first(problems); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		if (!path.len) /* all that comes from one place */
			path = jv_get_str(m->value, "source");
		finding_add(
			f, check,
			arena_printf(f->arena, "%.*s: %.*s", STR_ARG(path), STR_ARG(jv_get_str(m->value, "problem"))),
			fix);
	}
}
