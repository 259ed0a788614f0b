/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share: which workspace the options and the environment name, and how tools are called and printed. */
#include "command/cli.h"

#include <unistd.h>

#include "base/fatal.h"
#include "base/hash.h"
#include "tool/family.h"
#include "tool/offered.h"
#include "workspace/spec.h"
#include "workspace/workspace_parts.h"

struct str cli_setting(const struct cli *cli, const char *option)
{
	const char *env = args_option(&cli->args, str_of(option))->env, *set = env ? getenv(env) : NULL;
	struct str config;

	if (args_has(&cli->args, option))
		return args_get(&cli->args, option);
	if (strcmp(option, "store") != 0)
		return str_of(set);
	if (set && *set && !args_has(&cli->args, "config"))
		return str_of(set);
	config = cli_setting(cli, "config");
	if (config.len)
		return arena_printf(cli->ctx.arena, "config:%.*s", STR_ARG(config));
	return access("stead.yaml", F_OK) == 0 ? STR("config:stead.yaml") : STR_NONE;
}

/* The workspace of a directory of the host: its name, and a hash of where it is. */
static struct str directory_workspace(struct arena *arena, struct str dir)
{
	char *real = realpath(arena_cstr(arena, dir), NULL);
	struct str whole = real ? arena_str(arena, str_of(real)) : dir;
	size_t slash = str_rfind_char(whole, '/');
	struct str name = str_from(whole, slash < whole.len ? slash + 1 : 0);
	char slug[33];
	size_t n = 0;

	free(real);
	for (size_t i = 0; i < name.len && n < sizeof(slug) - 1; i++) {
		char c = name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] + 32) : name.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			slug[n++] = c;
		else if (n && slug[n - 1] != '-')
			slug[n++] = '-';
	}
	while (n && slug[n - 1] == '-')
		n--;
	return arena_printf(arena, "files-%.*s%s%.*s", (int)n, slug, n ? "-" : "",
			    STR_ARG(str_first(hash_hex128(arena, whole), 8)));
}

/* Directories of the workspace that are made when something is written to them. */
static bool is_usual_root(struct str root)
{
	return str_is(root, "files") || str_is(root, "workspace") || str_starts(root, STR("task:"));
}

static int check_root(struct cli *cli, struct str root, struct err *err)
{
	struct wpath path;
	int r;

	if (!root.len || is_usual_root(root))
		return 0;
	r = wpath_parse_lenient(cli->ctx.arena, root, &path, err);
	if (r == 0)
		r = store_stat(workspace_home(cli->ws), &cli->ctx, path, NULL, err);
	if (r == 0 || err->kind != ERR_NOT_FOUND)
		return r;
	return err_set(err, ERR_NOT_FOUND,
		       "--root: there is no directory \"%.*s\" in the workspace; name an existing one, or files, "
		       "workspace or task:KEY",
		       STR_ARG(utf8_first(root, 200)));
}

/* A store that is empty at every start. */
static bool is_fleeting(struct str url)
{
	return str_is(url, "memory") || str_is(url, "inmemory") || str_starts(url, STR("memory:")) ||
	       str_is(url, "temp") || str_starts(url, STR("temp:")) || place_is_spec(url);
}

/* The workspace whose name is nearest to one that does not exist, or NULL. */
static const char *near_workspace(struct cli *cli, const struct workspace_opts *opts)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *names = jv_array(arena), *bad = jv_array(arena);
	const char **words, *near = NULL;
	struct store *base;
	struct err ignored;
	struct str dir;
	size_t count = 0;

	if (workspace_open_store(arena, opts->store_url, false, false, &base, &dir, &ignored) != 0)
		return NULL;
	if (workspace_names(&cli->ctx, base, names, bad, &ignored) == 0) {
		words = ARENA_ARRAY(arena, const char *, jv_count(names) + 1);
		for (const struct jv_member *m = jv_first(names); m; m = m->next)
			if (!str_eq(m->value->u.s, opts->name))
				words[count++] = arena_cstr(arena, m->value->u.s);
		near = str_nearest(opts->name, words, count);
	}
	store_destroy(base);
	return near;
}

/* Opens a workspace, and creates it if it is missing. If another one has nearly the same name, the new name may be
   mistyped, and a message says so. */
static int open_or_make(struct cli *cli, struct workspace_opts *opts, struct workspace **ret_ws, struct err *err)
{
	const char *near;
	int r;

	opts->create = false;
	r = workspace_open(opts, ret_ws, err);
	if (r != -ERR_NOT_FOUND)
		return r;
	opts->create = true;
	r = workspace_open(opts, ret_ws, err);
	if (r)
		return r;
	near = near_workspace(cli, opts);
	if (near)
		fprintf(stderr, "stead: created the workspace '%.*s'; there is also '%s'\n", STR_ARG(opts->name), near);
	return 0;
}

static int open_workspace(struct cli *cli, struct workspace_opts *opts, enum cli_use use, struct workspace **ret_ws,
			  struct err *err)
{
	bool is_own = opts->files_dir.len && !opts->name.len;
	int r;

	if (opts->files_dir.len && access(arena_cstr(cli->ctx.arena, opts->files_dir), F_OK))
		return err_set(err, ERR_NOT_FOUND, "--files: there is no directory \"%.*s\"; create it first",
			       STR_ARG(utf8_first(opts->files_dir, 200)));
	if (is_own)
		opts->name = directory_workspace(cli->ctx.arena, opts->files_dir);
	opts->create = use == CLI_SERVES || is_fleeting(opts->store_url) || (use == CLI_CHANGES && is_own) ||
		       (use == CLI_WRITES && (is_own || !opts->name.len || str_is(opts->name, "default")));
	if (use == CLI_SERVES && !is_own && opts->name.len && !is_fleeting(opts->store_url))
		return open_or_make(cli, opts, ret_ws, err);
	r = workspace_open(opts, ret_ws, err);
	if (r != -ERR_NOT_FOUND || use != CLI_READS || !is_own)
		return r;
	/* Nothing is kept for this directory yet, and a command that reads does not begin to. */
	opts->store_url = STR("memory:");
	opts->create = true;
	return workspace_open(opts, ret_ws, err);
}

static const char *missing_hint(struct cli *cli, const struct workspace_opts *opts)
{
	const char *near = opts->name.len ? near_workspace(cli, opts) : NULL;

	if (!near)
		return "'stead list' shows the existing workspaces";
	return arena_printf(cli->ctx.arena, "did you mean '%s'? 'stead list' shows the existing workspaces", near).ptr;
}

static struct workspace_opts opts_of(const struct cli *cli)
{
	return (struct workspace_opts){
		.store_url = cli_setting(cli, "store"),
		.name = cli_setting(cli, "workspace"),
		.user = cli_setting(cli, "user"),
		.agent = cli_setting(cli, "agent"),
		.session = cli_setting(cli, "session"),
		.files_dir = cli_setting(cli, "files"),
		.root = cli_setting(cli, "root"),
		.relaxed = cli->relaxed || args_has(&cli->args, "relaxed"),
	};
}

int cli_open_dir(struct cli *cli, struct str dir, struct workspace **ret_ws, struct err *err)
{
	struct workspace_opts opts = opts_of(cli);

	if (!opts.name.len && !opts.files_dir.len)
		opts.files_dir = dir;
	return open_workspace(cli, &opts, CLI_WRITES, ret_ws, err);
}

int cli_open(struct cli *cli, enum cli_use use, struct err *err)
{
	struct str dialect = cli_setting(cli, "dialect");
	struct workspace_opts opts = opts_of(cli);
	int r = dialect_check(dialect, err);

	if (r == 0 && !opts.files_dir.len)
		r = cli_foreign_place(cli->ctx.arena, dialect, &opts.store_url, &opts.name, err);
	if (r)
		return r;
	opts.person = !opts.agent.len && cli->args.command->by_person;
	opts.with_git = opts.person && cli->with_git;
	dialect_opts(dialect, &opts);
	r = open_workspace(cli, &opts, use, &cli->ws, err);
	if (r == 0) {
		if (str_ends(opts.store_url, STR("?cleanup=false")))
			fprintf(stderr, "stead: the store is kept in %.*s\n", STR_ARG(workspace_dir(cli->ws)));
		cli->ctx.actor = workspace_actor(cli->ws);
		cli->ctx.actor.call_id = call_id_new(cli->ctx.arena); /* one command is one call, and one undo */
		return check_root(cli, cli_setting(cli, "root"), err);
	}
	if (r == -ERR_NOT_FOUND && !opts.files_dir.len && !err->sys)
		cli->hint = missing_hint(cli, &opts);
	return r;
}

struct toolset_choice cli_choice(const struct cli *cli)
{
	return (struct toolset_choice){.sets = cli_setting(cli, "tools"),
				       .read_only = args_has(&cli->args, "read-only")};
}

int cli_choose_tools(struct cli *cli, struct toolset **ret_offered, struct err *err)
{
	struct toolset_choice choice = cli_choice(cli);

	return toolset_choose(cli->set, &choice, ret_offered, err);
}

int cli_open_tools(struct cli *cli, struct str dialect, struct err *err)
{
	return toolset_new(cli->ws, dialect, &cli->set, err);
}

static void print_text(struct cli *cli, struct str text)
{
	output_words(&cli->out, text);
	if (text.len == 0 || text.ptr[text.len - 1] != '\n')
		output_add(&cli->out, STR("\n"));
}

bool cli_json(struct cli *cli, const struct jv *value)
{
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, value);
	return cli->json;
}

static const struct tool *find_tool(const char *name)
{
	for (const struct family *const *f = families; *f; f++)
		for (const struct tool *t = (*f)->tools; t && t->name; t++)
			if (strcmp(t->name, name) == 0)
				return t;
	fatal("bug: a command names the tool %s, which does not exist", name);
}

struct str cli_render(struct cli *cli, const char *tool, const struct jv *value)
{
	struct buf text;

	buf_init(&text, cli->ctx.arena, SIZE_MAX / 4);
	find_tool(tool)->render(NULL, value, &text);
	return buf_str(&text);
}

void cli_print(struct cli *cli, const char *tool, const struct jv *value)
{
	if (!cli_json(cli, value))
		print_text(cli, cli_render(cli, tool, value));
}

void cli_print_list(struct cli *cli, const char *tool, const char *key, struct jv *list)
{
	struct jv *value = jv_object(cli->ctx.arena);

	if (cli_json(cli, list))
		return;
	jv_set(cli->ctx.arena, value, key, list);
	jv_set_int(cli->ctx.arena, value, "total", (int64_t)jv_count(list));
	print_text(cli, cli_render(cli, tool, value));
}

/* Another sentence for the same error. `text` is not part of it. */
static void err_reword(struct err *err, struct str text)
{
	text = utf8_first(text, sizeof(err->msg) - 1);
	memcpy(err->msg, text.ptr, text.len);
	err->msg[text.len] = '\0';
}

int cli_print_result(struct cli *cli, const struct tool_result *result, struct err *err)
{
	struct str text = result->text;

	if (result->is_error) {
		*err = result->err;
		if (cli->set) /* what to do is said in the names of the dialect */
			err_reword(err, offered_advice(cli->ctx.arena, cli->set, str_of(result->err.msg)));
		cli->detail = str_trim(result->detail);
		return -(int)err->kind;
	}
	if (cli->json && !result->value) { /* a dialect that answers in text alone */
		struct jv *value = jv_object(cli->ctx.arena);

		jv_set_str(cli->ctx.arena, value, "text", text);
		cli_json(cli, value);
	} else if (!cli_json(cli, result->value)) {
		print_text(cli, text);
	}
	return 0;
}

static int text_arg(struct cli *cli, struct str key, struct str text, struct jv **ret, struct err *err)
{
	if (!utf8_valid(text))
		return err_set(err, ERR_INVALID, "%s: the argument for '%.*s' is not UTF-8 text",
			       cli->args.command->name, STR_ARG(key));
	*ret = jv_str(cli->ctx.arena, text);
	return 0;
}

/* NULL: the option is not given. */
static int option_arg(struct cli *cli, struct str key, struct str name, struct jv **ret, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	bool is_list = str_ends(name, STR("..."));
	const struct option *option = args_option(&cli->args, is_list ? str_first(name, name.len - 3) : name);
	struct jv *list = jv_array(arena);

	for (size_t i = 0; i < cli->args.option_count; i++) {
		struct str text = cli->args.options[i].value;
		int r = 0;

		if (cli->args.options[i].option != option)
			continue;
		if (!option->value)
			*ret = jv_bool(arena, true);
		else if (option->max)
			*ret = jv_int(arena, (int64_t)args_number(&cli->args, option->name, 0));
		else
			r = text_arg(cli, key, text, ret, err);
		if (r)
			return r;
		jv_push(arena, list, *ret);
	}
	if (is_list)
		*ret = list;
	return 0;
}

int cli_args(struct cli *cli, const char *words, struct jv **ret_args, struct err *err)
{
	struct str rest = str_of(words), word;
	struct jv *args = jv_object(cli->ctx.arena);
	size_t next = 0;

	while (str_cut(&rest, ' ', &word)) {
		size_t eq = str_find(word, STR("=--"), 0);
		struct str key = str_first(word, eq);
		struct jv *value = NULL;
		int r = 0;

		if (eq != SIZE_MAX)
			r = option_arg(cli, key, str_from(word, eq + 3), &value, err);
		else if (next < cli->args.operand_count)
			r = text_arg(cli, key, cli->args.operands[next++], &value, err);
		if (r)
			return r;
		if (value)
			jv_set_key(cli->ctx.arena, args, key, value);
	}
	*ret_args = args;
	return 0;
}

int cli_call(struct cli *cli, const char *tool, const struct jv *args, struct err *err)
{
	enum cli_use use = find_tool(tool)->traits & TOOL_READS_ONLY ? CLI_READS : CLI_WRITES;
	struct tool_result result;
	int r = cli->ws ? 0 : cli_open(cli, use, err);

	if (r == 0 && !cli->set)
		r = cli_open_tools(cli, STR_NONE, err);
	if (r == 0)
		r = toolset_call(cli->set, &cli->ctx, str_of(tool), args, &result, err);
	return r ? r : cli_print_result(cli, &result, err);
}

int cli_tool(struct cli *cli, const char *tool, const char *words, struct err *err)
{
	struct jv *args;
	int r = cli_args(cli, words, &args, err);

	return r ? r : cli_call(cli, tool, args, err);
}

int cli_run(struct cli *cli, struct err *err)
{
	const struct command *c = cli->args.command;
	const struct action *a = cli->args.action;

	enum cli_use opens = a ? a->opens : c->opens;
	int r = opens ? cli_open(cli, opens, err) : 0;

	if (r)
		return r;
	if (a ? a->run : c->run)
		return (a ? a->run : c->run)(cli, err);
	return cli_tool(cli, a ? a->tool : c->tool, a ? a->args : c->args, err);
}

void cli_speak_commands(const struct cli *cli, struct err *err)
{
	static const char *const words[][2] = {
		{"list the tools to see what there is", "'stead tools' lists them"}, /* the one for `call`, too */
		{"list_notes", "'stead notes'"},
		{"search_notes", "'stead search --area notes'"},
		{"read_note", "notes show"},
		{"knowledge_list", "'stead knowledge'"},
		{"memory_search", "'stead memory search'"},
		{"memory_list", "'stead memory'"},
		{"list_tasks", "'stead tasks'"},
		{"list_skills", "'stead skills'"},
		{"session_list", "'stead sessions'"},
		{"list_subagents", "'stead subagents'"},
		{"list_items", "'stead board'"},
		{"get_item", "'stead board show'"},
		{"unarchive_item", "'stead board unarchive'"},
		{"list_boards", "'stead board boards'"},
		{"list_threads", "'stead board threads'"},
		{"list_comments", "'stead board comments'"},
		{"a result_summary", "a --summary"},
		{"artifact, such as [{\"path\":\"/task/artifacts/summary.md\"}]",
		 "--artifact, such as --artifact artifacts/summary.md"},
		{"list_scheduled", "'stead schedule'"},
		{"clear_files", "'stead call clear_files'"},
		{"insert_file", "'stead call insert_file'"},
		{"the tool fork creates one", "'stead fork' creates one"},
		{"tools cannot read or change it; ask the user if you need something from it",
		 "Stead neither shows nor changes it; use an editor"},
		{"the tool \"web_fetch\"", "'stead web fetch'"},
		{"the tool \"web_search\"", "'stead web search'"},
		{"\"from\" is empty", "the path is empty"},
		{"\"to\" is empty", "the new path is empty"},
		{"write a bullet for each fact", "give the text, as in: stead memory save 'The launch is on 3 March.'"},
		{"set recursive", "give -r"},
		{"set overwrite", "give --force"},
		{"set replace_all", "give --all"},
	};
	struct str text = arena_str(cli->ctx.arena, str_of(err->msg));
	size_t at;

	size_t count = cli->args.command && strcmp(cli->args.command->name, "call") == 0 ? 1 : COUNT(words);

	if (!cli->args.command)
		return;
	for (size_t i = 0; i < count; i++)
		if ((at = str_find(text, str_of(words[i][0]), 0)) != SIZE_MAX)
			text = arena_printf(cli->ctx.arena, "%.*s%s%.*s", (int)at, text.ptr, words[i][1],
					    STR_ARG(str_from(text, at + strlen(words[i][0]))));
	err_reword(err, text);
}

int cli_hint(struct cli *cli, int r, enum err_kind kind, const char *text)
{
	if (r == -(int)kind)
		cli->hint = text;
	return r;
}

int cli_open_files(struct cli *cli, enum cli_use use, struct err *err)
{
	int r = cli_open(cli, use, err);

	return r || cli->task ? r : family_files(cli->ws, &cli->ctx, &cli->task, err);
}

struct store *cli_files(struct cli *cli)
{
	return cli->task ? cli->task : workspace_files(cli->ws);
}

int cli_path(struct cli *cli, struct str text, struct wpath *ret, struct err *err)
{
	return workspace_path(cli->ws, cli->ctx.arena, text, ret, err);
}

void cli_show_progress(struct cli *cli, const char *verb)
{
	if (output_progress(&cli->out, verb, &cli->progress))
		cli->ctx.progress = &cli->progress;
}
