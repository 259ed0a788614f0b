/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a workspace. The templates are the files of src/workspace/templates, embedded in the program. Each is written
 * only if the file does not exist, so a directory that already has files (a copied one, a half-made one) is completed
 * and never overwritten. agent.yaml comes last: it marks the workspace as made.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/limits.h"
#include "workspace/embedded.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

static const struct {
	const char *path;
	const struct str *text;
} templates[] = {
	{"AGENTS.md", &embedded_agents_md},       {"SOUL.md", &embedded_soul_md}, {"USER.md", &embedded_user_md},
	{"HEARTBEAT.md", &embedded_heartbeat_md}, {".env", &embedded_env},        {"agent.yaml", &embedded_agent_yaml},
};

/* The lines that stand for @MODEL@ and @CHANNEL@; none when they were not asked for. */
static struct str model_lines(struct arena *arena, struct str model)
{
	if (!model.len)
		return STR("");
	return arena_printf(arena, "model: %.*s\n\n", STR_ARG(model));
}

static struct str channel_lines(struct arena *arena, struct str channel)
{
	static const char telegram[] = "  # token: ${TELEGRAM_BOT_TOKEN}   (set it in .env, then remove the '#')\n";
	static const char webhook[] =
		"  # url: https://chat.example.org/from-agent   (it gets the agent's messages; remove the '#')\n"
		"  # secret: ${WEBHOOK_SECRET}   (set it in .env: echo WEBHOOK_SECRET=whsec_$(openssl rand -base64 "
		"32))\n";

	if (!channel.len)
		return STR("");
	return arena_printf(arena, "channel:\n  type: %.*s\n%s  allowed_users: []\n\n", STR_ARG(channel),
			    str_is(channel, "webhook") ? webhook : telegram);
}

static struct str fill(struct arena *arena, struct str text, struct str mark, struct str value)
{
	size_t at = str_find(text, mark, 0);
	struct buf b;

	if (at == SIZE_MAX)
		return text;
	buf_init(&b, arena, YAML_LEN_MAX);
	buf_add(&b, str_first(text, at));
	buf_add(&b, value);
	buf_add(&b, str_from(text, at + mark.len));
	return buf_str(&b);
}

static struct str agent_yaml(struct arena *arena, const struct init_opts *opts)
{
	struct str text = fill(arena, embedded_agent_yaml, STR("@NAME@"), opts->name);

	text = fill(arena, text, STR("@MODEL@"), model_lines(arena, opts->model));
	return fill(arena, text, STR("@CHANNEL@"), channel_lines(arena, opts->channel));
}

/* Only its owner may read the secrets, where the host knows of owners. */
static void make_private(struct arena *arena, struct str dir)
{
	int ignored = 0;

	if (dir.len)
		ignored = chmod(arena_printf(arena, "%.*s/.env", STR_ARG(dir)).ptr, 0600);
	(void)ignored; /* a file system without modes: `stead doctor` tells */
}

static int write_missing(struct ctx *ctx, struct store *home, const char *path, struct str text, bool *ret_written,
			 struct err *err)
{
	int r = store_write(home, ctx, (struct wpath){str_of(path)}, text, (struct store_cond){.kind = STORE_ABSENT},
			    NULL, err);

	*ret_written = r == 0;
	return r == -ERR_EXISTS ? 0 : r;
}

/* AGENT.md is accepted for AGENTS.md: a workspace that has it needs no other. */
static int has_agent_md(struct ctx *ctx, struct store *home, bool *ret, struct err *err)
{
	int r = store_stat(home, ctx, (struct wpath){STR("AGENT.md")}, NULL, err);

	*ret = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int workspace_write_templates(struct ctx *ctx, struct store *home, struct str dir, const struct init_opts *opts,
			      struct jv *written, struct err *err)
{
	struct str config = agent_yaml(ctx->arena, opts);
	bool has_agent, wrote;
	struct config checked;
	int r = config_load(ctx->arena, config, STR(""), STR(""), NULL, &checked, err);

	if (r) /* of a file that is not there yet, because of the options */
		return err_prefix(err, "%s%s%s", opts->model.len ? "--model" : "",
				  opts->model.len && opts->channel.len ? ", " : "",
				  opts->channel.len ? "--channel" : "");
	r = has_agent_md(ctx, home, &has_agent, err);
	for (size_t i = 0; !r && i < COUNT(templates); i++) {
		bool is_config = templates[i].text == &embedded_agent_yaml;

		if (has_agent && strcmp(templates[i].path, "AGENTS.md") == 0)
			continue;
		r = write_missing(ctx, home, templates[i].path, is_config ? config : *templates[i].text, &wrote, err);
		if (!r && wrote)
			jv_push(ctx->arena, written, jv_str(ctx->arena, str_of(templates[i].path)));
		if (!r && wrote && templates[i].text == &embedded_env)
			make_private(ctx->arena, dir);
	}
	return r;
}

/* The directory of a workspace above the deployment's templates, if there are any: what they have is not written. */
static int open_home(struct ctx *ctx, struct store *base, const struct init_opts *opts, struct store **ret,
		     bool *ret_templates, struct err *err)
{
	struct store *home = store_prefix_new(store_share(base), (struct wpath){opts->name}), *below;
	struct place_config config;
	struct str dir;
	int r = place_read(ctx->arena, opts->store_url, &config, err);

	if (r == 0 && config.templates.len) {
		r = place_open_one(ctx->arena, &config, config.templates, false, false, &below, &dir, err);
		if (r == 0)
			home = store_overlay_new(home, store_readonly_new(below));
	}
	if (r)
		store_destroy(home);
	else
		*ret = home;
	*ret_templates = r == 0 && config.templates.len;
	return r;
}

/* With templates, files that they have count as there: a mark tells that the workspace was made. */
static int mark_made(struct ctx *ctx, struct store *base, struct str name, struct err *err)
{
	struct wpath mark = {arena_printf(ctx->arena, "%.*s/" WORKSPACE_MARK, STR_ARG(name))};

	return store_write(base, ctx, mark, clock_format_utc(ctx->arena, clock_real_ns()), (struct store_cond){0}, NULL,
			   err);
}

/* An agent.yaml of the templates is that of the workspace, so there is no file into which these options could go. */
static int check_options(struct ctx *ctx, struct store *home, const struct init_opts *opts, struct err *err)
{
	struct err ignored;

	if ((!opts->model.len && !opts->channel.len) ||
	    store_stat(home, ctx, (struct wpath){STR("agent.yaml")}, NULL, &ignored) != 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "the deployment's templates have an agent.yaml, which also sets the %s of \"%.*s\"; change it "
		       "there, or leave out --%s and write an agent.yaml in the workspace",
		       opts->model.len ? "model" : "channel", STR_ARG(opts->name),
		       opts->model.len ? "model" : "channel");
}

static int init_in(struct ctx *ctx, struct store *base, struct str dir, const struct init_opts *opts, struct jv *report,
		   struct err *err)
{
	struct store *own = store_prefix_new(store_share(base), (struct wpath){opts->name}), *home = NULL;
	struct jv *written = jv_array(ctx->arena);
	struct str own_dir = dir.ptr ? arena_printf(ctx->arena, "%s/%.*s", dir.ptr, STR_ARG(opts->name)) : STR("");
	struct str place = dir.ptr ? own_dir : workspace_place_shown(ctx->arena, opts->store_url, opts->name);
	bool exists, has_templates = false;
	int r = workspace_exists(ctx, own, &exists, err);

	if (!r && exists)
		r = err_set(err, ERR_EXISTS, "the workspace \"%.*s\" already exists in %.*s; choose another name",
			    STR_ARG(opts->name), STR_ARG(utf8_first(place, 200)));
	if (!r)
		r = open_home(ctx, base, opts, &home, &has_templates, err);
	if (!r && has_templates)
		r = check_options(ctx, home, opts, err);
	if (!r)
		r = workspace_write_templates(ctx, home, own_dir, opts, written, err);
	if (!r && has_templates)
		r = mark_made(ctx, base, opts->name, err);
	store_destroy(home);
	store_destroy(own);
	jv_set_str(ctx->arena, report, "name", opts->name);
	jv_set_str(ctx->arena, report, "place", place);
	jv_set(ctx->arena, report, "written", written);
	return r;
}

int workspace_init(struct ctx *ctx, const struct init_opts *opts, struct jv **ret_report, struct err *err)
{
	struct jv *report = jv_object(ctx->arena);
	struct store *base;
	struct str dir;
	int r;

	if (!workspace_name_ok(opts->name))
		return workspace_bad_name(opts->name, err);
	r = workspace_open_store(ctx->arena, opts->store_url, true, false, &base, &dir, err);
	if (r)
		return r;
	r = init_in(ctx, base, dir, opts, report, err);
	store_destroy(base);
	if (!r)
		*ret_report = report;
	return r;
}

/* --- HEARTBEAT.md --- */

/* True for a line that says nothing: blank, a heading, a rule, a list mark without text. */
static bool says_nothing(struct str line)
{
	line = str_trim(line);
	if (!line.len || line.ptr[0] == '#')
		return true;
	for (size_t i = 0; i < line.len; i++)
		if (!strchr("-*+=_[] >\t", line.ptr[i]))
			return false;
	return true;
}

bool workspace_heartbeat_is_empty(struct str text)
{
	if (str_eq(str_trim(text), str_trim(embedded_heartbeat_md)))
		return true;
	while (text.len) {
		size_t end = str_find_char(text, '\n'), comment = str_find(text, STR("<!--"), 0), close;

		if (comment > end) { /* also when there is none */
			if (!says_nothing(str_first(text, end)))
				return false;
			text = str_from(text, end + 1);
			continue;
		}
		if (!says_nothing(str_first(text, comment)))
			return false;
		/* continue after the comment; one without an end hides the rest, as in a browser */
		close = str_find(text, STR("-->"), comment + 4);
		text = close == SIZE_MAX ? STR("") : str_from(text, close + 3);
	}
	return true;
}
