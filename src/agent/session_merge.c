/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead sessions merge`: the turns that a conversation had in a fork come to the end of the same conversation here.
 * Entries are told apart by their ids, so what both have is there once, and merging again adds only what is new. Files
 * are merged by `stead merge`.
 */
#include "agent/agent_commands.h"
#include "agent/agent_internal.h"

static int read_all(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct jv **ret, struct err *err)
{
	struct session_page page;
	struct turn_state state;
	int r = session_history(ws, ctx, ref, 0, AGENT_ENTRIES_MAX, false, &page, err);

	if (r)
		return r;
	transcript_state(page.entries, &state);
	if (state.message && !state.end)
		return err_set(
			err, ERR_CONFLICT,
			"session \"%.*s\" of the workspace \"%.*s\" has a turn that is not finished; finish it with "
			"'stead sessions resume' first",
			STR_ARG(utf8_first(ref.session, 60)), STR_ARG(utf8_first(workspace_name(ws), 60)));
	*ret = page.entries;
	return 0;
}

/* The entries of the fork that this log does not have. */
static struct jv *new_entries(struct arena *arena, const struct jv *here, const struct jv *there)
{
	struct jv *ids = jv_object(arena), *list = jv_array(arena);

	for (const struct jv_member *m = jv_first(here); m; m = m->next)
		if (jv_get_str(m->value, "id").len)
			jv_set_key(arena, ids, jv_get_str(m->value, "id"), jv_bool(arena, true));
	for (const struct jv_member *m = jv_first(there); m; m = m->next) {
		struct str id = jv_get_str(m->value, "id");

		if (id.len && !jv_get_key(ids, id))
			jv_push(arena, list, m->value);
	}
	return list;
}

static int merge(struct cli *cli, struct workspace *fork, struct session_ref ref, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *here, *there, *more, *written, *report = jv_object(arena);
	int64_t turns = 0;
	int r = read_all(cli->ws, &cli->ctx, ref, &here, err);

	if (r == 0)
		r = read_all(fork, &cli->ctx, ref, &there, err);
	if (r)
		return r;
	more = new_entries(arena, here, there);
	for (const struct jv_member *m = jv_first(more); m; m = m->next)
		turns += str_is(jv_get_str(m->value, "type"), "turn");
	if (jv_count(more))
		r = session_append_all(cli->ws, &cli->ctx, ref, more, &written, err);
	if (r)
		return r;
	jv_set_str(arena, report, "session", ref.session);
	jv_set_int(arena, report, "turns", turns);
	jv_set_int(arena, report, "entries", (int64_t)jv_count(more));
	if (!cli_json(cli, report))
		output_printf(&cli->out, "turns added to session %.*s: %lld\n", STR_ARG(ref.session), (long long)turns);
	return 0;
}

int run_sessions_merge(struct cli *cli, struct err *err)
{
	struct session_ref ref = {.agent = workspace_actor(cli->ws).agent, .session = cli->args.operands[0]};
	struct workspace_opts opts = {.store_url = cli_setting(cli, "store"),
				      .name = cli->args.operands[1],
				      .user = cli_setting(cli, "user"),
				      .agent = cli_setting(cli, "agent")};
	struct workspace *fork;
	int r = workspace_open(&opts, &fork, err);

	if (r)
		return r;
	r = merge(cli, fork, ref, err);
	workspace_close(fork);
	return r;
}
