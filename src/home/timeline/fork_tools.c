/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork and merge as tools: an agent makes a fork, has subagents work in it (each opened on that workspace), and brings
 * the result back. Conflicts come as text with markers, which a model can resolve with the file tools.
 */
#include "home/timeline/fork_tools.h"

#include "home/timeline/history_tools.h"
#include "tool/call.h"
#include "workspace/fork.h"

int tool_fork(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	uint64_t number = FORK_AT_HEAD;
	bool given;
	int r = arg_revision(call, args, "at_revision", &number, &given, err);

	return r ? r
		 : fork_create(call->ws, call->ctx, jv_get_str(args, "name"), given ? number : FORK_AT_HEAD,
			       &ret->value, err);
}

void render_fork(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "made workspace '%.*s', a fork of '%.*s' at revision %lld",
		   STR_ARG(jv_get_str(value, "workspace")), STR_ARG(jv_get_str(value, "parent")),
		   (long long)jv_get_int(value, "revision", 0));
}

int tool_merge(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str prefer = jv_get_str(args, "prefer");
	struct merge_req req = {.name = jv_get_str(args, "fork"),
				.dry_run = jv_get_bool(args, "dry_run", false),
				.partial = jv_get_bool(args, "partial", false),
				.prefer = str_is(prefer, "ours")     ? MERGE_OURS
					  : str_is(prefer, "theirs") ? MERGE_THEIRS
								     : MERGE_NEITHER};
	struct buf text;
	int r = fork_merge(call->ws, call->ctx, &req, &ret->value, err);

	if (r == -ERR_CONFLICT && ret->value) { /* both sides, after the sentence */
		buf_init(&text, call->ctx->arena, 256 * 1024);
		render_merge(args, ret->value, &text);
		ret->detail = buf_str(&text);
		ret->value = NULL;
	}
	return r;
}

void render_merge(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *merged = jv_get(value, "merged"), *conflicts = jv_get(value, "conflicts");
	bool applied = jv_get_bool(value, "applied", false);
	long long left = (long long)jv_get_int(value, "left", 0);

	(void)args;
	if (!jv_count(merged) && !jv_count(conflicts))
		buf_lit(text, "nothing to merge");
	for (const struct jv_member *m = jv_first(merged); m; m = m->next)
		buf_printf(text, "%s%s%.*s: %.*s", m == jv_first(merged) ? "" : "\n", applied ? "" : "would be ",
			   STR_ARG(jv_get_str(m->value, "how")), STR_ARG(jv_get_str(m->value, "path")));
	for (const struct jv_member *m = jv_first(conflicts); m; m = m->next) {
		struct str sides = jv_get_str(m->value, "text");

		buf_printf(text, "%sconflict: %.*s: %.*s\n", text->len ? "\n" : "",
			   STR_ARG(jv_get_str(m->value, "path")), STR_ARG(jv_get_str(m->value, "why")));
		buf_add(text, sides);
	}
	if (left)
		buf_printf(text, "\n%lld changed paths of the fork are outside the tool root and were not merged",
			   left);
}
