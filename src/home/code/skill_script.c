/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script of a skill. A skill may be in any store, and is not part of the files that a command sees; so its files go
 * into the sandbox as an archive through the standard input, below /tmp/skill, where they end with the command. The
 * script works in the files of the workspace.
 */
#include "base/limits.h"
#include "home/code/code.h"
#include "home/skills/skills.h"
#include "text/tar.h"

#define PLACE "/tmp/skill"

/* Unpacks what comes in, and becomes the script. $1: its path; $2: a program for it, or empty. */
static const char unpack[] = "mkdir " PLACE " && tar -xf - -C " PLACE " || exit 126\n"
			     "script=" PLACE "/$1 with=$2; shift 2; export SKILL_DIR=" PLACE "\n"
			     "[ -n \"$with\" ] && exec \"$with\" \"$script\" \"$@\" </dev/null\n"
			     "chmod +x \"$script\" && exec \"$script\" \"$@\" </dev/null\n";

static int add_file(struct ctx *ctx, const struct skill *skill, struct str path, struct buf *out, struct str *ret_text,
		    struct err *err)
{
	static const char zeros[TAR_BLOCK] = {0};
	struct tar_entry entry = {.name = path};
	struct wpath whole;
	int r = wpath_join(ctx->arena, skill->dir, (struct wpath){path}, &whole, err);

	if (r == 0)
		r = store_read(skill->store, ctx, whole, STORE_WHOLE, SKILL_ARCHIVE_MAX, ret_text, NULL, err);
	if (r)
		return r;
	entry.size = ret_text->len;
	tar_header(out, &entry);
	buf_add(out, *ret_text);
	buf_add(out, str_n(zeros, tar_padding(entry.size)));
	return 0;
}

/* All files of the skill; *ret_text is the script. */
static int pack(struct ctx *ctx, const struct skill *skill, struct str script, struct buf *out, struct str *ret_text,
		struct err *err)
{
	static const char end[TAR_END_LEN] = {0};
	struct jv *files;
	struct str text;
	int r = skill_files(ctx, skill, &files, err);

	*ret_text = STR_NONE;
	for (const struct jv_member *m = r ? NULL : jv_first(files); m && r == 0; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		r = add_file(ctx, skill, path, out, &text, err);
		if (str_eq(path, script))
			*ret_text = text;
	}
	if (r == 0)
		r = add_file(ctx, skill, STR("SKILL.md"), out, &text, err);
	buf_add(out, str_n(end, sizeof end));
	if (r == 0 && out->overflow)
		r = err_set(err, ERR_TOO_LARGE, "the skill %.*s is larger than %zu MiB", STR_ARG(skill->name),
			    SKILL_ARCHIVE_MAX / MIB);
	if (r == 0 && !ret_text->ptr)
		r = err_set(err, ERR_NOT_FOUND, "the skill %.*s has no script \"%.*s\"; load_skill shows its files",
			    STR_ARG(skill->name), STR_ARG(utf8_first(script, 80)));
	return r;
}

/* The program for a script that does not name one in its first line; NULL: none is known. */
static const char *program_of(struct str script, struct str text)
{
	static const char *const by_ending[][2] = {{".py", "python3"}, {".sh", "sh"},    {".bash", "bash"},
						   {".js", "node"},    {".mjs", "node"}, {".pl", "perl"}};

	if (str_starts(text, STR("#!")))
		return "";
	for (size_t i = 0; i < COUNT(by_ending); i++)
		if (str_ends(script, str_of(by_ending[i][0])))
			return by_ending[i][1];
	return NULL;
}

static int run_packed(struct call *call, const struct skill_script *what, struct str script, struct str text,
		      struct str archive, struct sandbox_result *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const char **argv = ARENA_ARRAY(arena, const char *, jv_count(what->args) + 7);
	const char *with = program_of(script, text);
	struct sandbox_job job;
	size_t n = 0;
	int r = exec_job(call->ws, call->ctx, &job, err);

	if (r == 0 && !code_has_network(call->ws))
		r = exec_net_hosts(call->ctx, &job, STR_NONE, false, err);
	if (r)
		return r;
	if (!with)
		return err_set(err, ERR_INVALID, "\"%.*s\" names no program to run it; begin it with a #! line",
			       STR_ARG(utf8_first(script, 80)));
	argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n++] = unpack;
	argv[n++] = "script";
	argv[n++] = arena_cstr(arena, script);
	argv[n++] = with;
	for (const struct jv_member *m = jv_first(what->args); m; m = m->next)
		argv[n++] = arena_cstr(arena, jv_str_of(m->value));
	job.argv = argv;
	job.input = archive;
	if (what->at)
		job.files.at = what->at;
	job.limits.timeout_ms = (what->timeout_s ? what->timeout_s : CODE_SECONDS_DEFAULT) * 1000;
	return exec_run(call->ws, call->ctx, &job, ret, err);
}

int skill_script_run(struct call *call, const struct skill_script *what, struct jv **ret, struct err *err)
{
	struct ctx *ctx = call->ctx;
	struct str script = what->script, text = STR_NONE;
	const struct skill *skill;
	struct sandbox_result result;
	struct skills skills;
	struct buf archive;
	int r;

	if (what->timeout_s > SANDBOX_SECONDS_MAX)
		return err_set(err, ERR_INVALID,
			       "the time limit is %lld seconds; at most %d are allowed; do it in shorter steps",
			       (long long)what->timeout_s, SANDBOX_SECONDS_MAX);
	r = skills_open_named(call->ws, ctx, what->skill, &skills, err);
	if (r)
		return r;
	if (!str_starts(script, STR("scripts/")))
		script = arena_printf(ctx->arena, "scripts/%.*s", STR_ARG(utf8_first(script, 500)));
	buf_init(&archive, ctx->arena, SKILL_ARCHIVE_MAX);
	skill = skills_find(&skills, what->skill);
	r = skill ? pack(ctx, skill, script, &archive, &text, err)
		  : skills_unknown(ctx->arena, &skills, what->skill, err);
	skills_close(&skills);
	if (r == 0)
		r = run_packed(call, what, script, text, buf_str(&archive), &result, err);
	if (r == 0)
		*ret = exec_value(call->ws, ctx, &result);
	return r;
}
