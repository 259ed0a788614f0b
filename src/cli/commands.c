/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and nothing else but looking things up in it. Texts are written for someone who sees Stead for
 * the first time: what it does, then examples that can be pasted.
 */
#include "base/limits.h"
#include "command/args.h"
#include "command/command.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct option common_options[] = {
	{OPT_STORE, 0, "store", "URL",
	 "where workspaces lie: disk:DIR, memory:, s3://, r2://, redis://, postgres:// ($STEAD_STORE; default: your "
	 "data directory)",
	 COMPLETE_NOTHING, NULL},
	{OPT_CONFIG, 0, "config", "FILE",
	 "the deployment that says where everything lies ($STEAD_CONFIG; default: stead.yaml, if it is here)",
	 COMPLETE_HOST_DIR, NULL},
	{OPT_WORKSPACE, 'w', "workspace", "NAME", "the workspace ($STEAD_WORKSPACE; default: default)",
	 COMPLETE_WORKSPACE, NULL},
	{OPT_USER, 0, "user", "NAME", "the user it is opened for ($STEAD_USER)", COMPLETE_NOTHING, NULL},
	{OPT_AGENT, 0, "agent", "NAME", "the agent that acts ($STEAD_AGENT)", COMPLETE_NOTHING, NULL},
	{OPT_SESSION, 0, "session", "ID", "the session that it acts in", COMPLETE_NOTHING, NULL},
	{OPT_DIALECT, 0, "dialect", "NAME", "offer the tools of another system, by their names and habits",
	 COMPLETE_DIALECT, NULL},
	{OPT_ROOT, 0, "root", "ROOT", "what '/' is: files (default), workspace, task:KEY, or a directory of it",
	 COMPLETE_NOTHING, NULL},
	{OPT_FILES, 0, "files", "DIR", "use this directory of yours as the file area", COMPLETE_HOST_DIR, NULL},
	{OPT_RELAXED, 0, "relaxed", NULL, "do not wait for the disk: faster, a power cut may lose the last changes",
	 COMPLETE_NOTHING, NULL},
	{OPT_JSON, 0, "json", NULL, "print JSON; errors too, on stderr", COMPLETE_NOTHING, NULL},
	{OPT_HELP, 'h', "help", NULL, "explain the command", COMPLETE_NOTHING, NULL},
	{OPT_VERSION, 'V', "version", NULL, "print the version", COMPLETE_NOTHING, NULL},
};
const size_t common_option_count = COUNT(common_options);

static const struct option init_options[] = {
	{OPT_MODEL, 0, "model", "PROVIDER:ID", "the model that the agent thinks with", COMPLETE_NOTHING, NULL},
	{OPT_CHANNEL, 0, "channel", "TYPE", "where people talk to it", COMPLETE_NOTHING, NULL},
};
static const struct option mcp_options[] = {
	{OPT_PRINT_CONFIG, 0, "print-config", NULL, "print the block to paste into an MCP client, and end",
	 COMPLETE_NOTHING, NULL},
};
static const struct option ls_options[] = {
	{OPT_LONG, 'l', "long", NULL, "size and time too", COMPLETE_NOTHING, NULL},
};
static const struct option write_options[] = {
	{OPT_MODE, 0, "mode", "MODE", "create (default): the file must not exist; overwrite; append", COMPLETE_WORDS,
	 "create overwrite append"},
	{OPT_IF_VERSION, 0, "if-version", "V", "only when the file still has this version (see 'stead info')",
	 COMPLETE_NOTHING, NULL},
	{OPT_CONTENT, 0, "content", "TEXT", "the content, instead of standard input", COMPLETE_NOTHING, NULL},
};
static const struct option edit_options[] = {
	{OPT_REPLACE_ALL, 'a', "all", NULL, "replace every occurrence, not exactly one", COMPLETE_NOTHING, NULL},
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "show the change, do not make it", COMPLETE_NOTHING, NULL},
	{OPT_IF_VERSION, 0, "if-version", "V", "only when the file still has this version (see 'stead info')",
	 COMPLETE_NOTHING, NULL},
};
static const struct option grep_options[] = {
	{OPT_LITERAL, 'F', "literal", NULL, "the pattern is plain text, not a regular expression", COMPLETE_NOTHING,
	 NULL},
	{OPT_IGNORE_CASE, 'i', "ignore-case", NULL, "upper and lower case are alike", COMPLETE_NOTHING, NULL},
	{OPT_CONTEXT, 'C', "context", "N", "N lines before and after each match", COMPLETE_NOTHING, NULL},
	{OPT_INCLUDE, 'g', "include", "GLOB", "only files that match; may be given more than once", COMPLETE_NOTHING,
	 NULL},
	{OPT_EXCLUDE, 0, "exclude", "GLOB", "no files that match; may be given more than once", COMPLETE_NOTHING, NULL},
	{OPT_COUNT, 'c', "count", NULL, "print path:count for each file that matches", COMPLETE_NOTHING, NULL},
	{OPT_FILES_WITH_MATCHES, 'l', "files-with-matches", NULL, "print only the paths of files that match",
	 COMPLETE_NOTHING, NULL},
	{OPT_ALL, 0, "all", NULL, "with --files: also what .gitignore ignores, and .git", COMPLETE_NOTHING, NULL},
	{OPT_THREADS, 'j', "threads", "N", "how many threads search (default: one per core)", COMPLETE_NOTHING, NULL},
};
static const struct option find_options[] = {
	{OPT_ALL, 0, "all", NULL, "with --files: also what .gitignore ignores, and .git", COMPLETE_NOTHING, NULL},
	{OPT_THREADS, 'j', "threads", "N", "how many threads search (default: one per core)", COMPLETE_NOTHING, NULL},
};
static const struct option search_options[] = {
	{OPT_AREA, 0, "area", "AREA", "only there", COMPLETE_WORDS, "notes memory sessions knowledge files"},
	{OPT_KIND, 0, "kind", "KIND", "only notes of this kind, or lines of this role in a session", COMPLETE_NOTHING,
	 NULL},
	{OPT_TAG, 0, "tag", "TAG", "only what has this tag; may be given more than once", COMPLETE_NOTHING, NULL},
	{OPT_AUTHOR, 0, "author", "NAME", "only by this author", COMPLETE_NOTHING, NULL},
	{OPT_SINCE, 0, "since", "TIME", "not older: 2026-11-15, 2026-11-15T10:00:00Z, or ago: 12h, 7d",
	 COMPLETE_NOTHING, NULL},
	{OPT_UNTIL, 0, "until", "TIME", "not newer, in the same forms", COMPLETE_NOTHING, NULL},
	{OPT_MODE, 0, "mode", "MODE",
	 "text: by words; semantic: by meaning, where an embedder is configured; auto: both", COMPLETE_WORDS,
	 "auto text semantic"},
	{OPT_EXACT, 0, "exact", NULL, "no other endings, no misspellings", COMPLETE_NOTHING, NULL},
	{OPT_LIMIT, 'n', "limit", "N", "at most N hits (default 10, at most 100)", COMPLETE_NOTHING, NULL},
	{OPT_EXPLAIN, 0, "explain", NULL, "show scores, the weight of each word, and what the search cost",
	 COMPLETE_NOTHING, NULL},
};
static const struct option move_options[] = {
	{OPT_FORCE, 'f', "force", NULL, "replace the target when it exists", COMPLETE_NOTHING, NULL},
};
static const struct option rm_options[] = {
	{OPT_RECURSIVE, 'r', "recursive", NULL, "directories too, with all that is in them", COMPLETE_NOTHING, NULL},
};
static const struct option sessions_options[] = {
	{OPT_LIMIT, 'n', "limit", "N", "show: how many entries, from the end (default 50)", COMPLETE_NOTHING, NULL},
};
static const struct option memory_options[] = {
	{OPT_ALL, 'a', "all", NULL, "list, search: also what does not hold now", COMPLETE_NOTHING, NULL},
};
static const struct option usage_options[] = {
	{OPT_SINCE, 0, "since", "TIME", "only from then on, such as 2026-11-15", COMPLETE_NOTHING, NULL},
};
#define KINDS "finding question decision summary artifact plan note"
static const struct option note_options[] = {
	{OPT_CONTENT, 0, "content", "TEXT", "the content, instead of standard input", COMPLETE_NOTHING, NULL},
	{OPT_KIND, 0, "kind", "KIND", "what it is (default: finding)", COMPLETE_WORDS, KINDS},
	{OPT_TAG, 0, "tag", "TAG", "a word to find it by; may be given more than once", COMPLETE_NOTHING, NULL},
};
static const struct option notes_options[] = {
	{OPT_KIND, 0, "kind", "KIND", "list: only of this kind", COMPLETE_WORDS, KINDS},
	{OPT_AUTHOR, 0, "author", "NAME", "list: only by this agent", COMPLETE_NOTHING, NULL},
	{OPT_TAG, 0, "tag", "TAG", "list: only with this tag", COMPLETE_NOTHING, NULL},
	{OPT_LIMIT, 'n', "limit", "N", "list: at most N (default: 50)", COMPLETE_NOTHING, NULL},
	{OPT_ALL, 'a', "all", NULL, "list: archived notes too; show: its versions too", COMPLETE_NOTHING, NULL},
	{OPT_FAILED, 0, "failed", NULL, "credit: it did not help", COMPLETE_NOTHING, NULL},
	{OPT_OLDER_THAN, 0, "older-than", "DAYS", "prune: not used for so long (default: 90)", COMPLETE_NOTHING, NULL},
	{OPT_KEEP, 0, "keep", "KIND", "prune: keep this kind; may be given more than once", COMPLETE_WORDS, KINDS},
	{OPT_DRY_RUN, 0, "dry-run", NULL, "prune: say what would go, let it stay", COMPLETE_NOTHING, NULL},
};
static const struct option tasks_options[] = {
	{OPT_STATUS, 0, "status", "STATUS", "only tasks with it", COMPLETE_WORDS,
	 "pending in_progress awaiting_check completed failed cancelled"},
	{OPT_TYPE, 0, "type", "TYPE", "only of this type", COMPLETE_NOTHING, NULL},
};
static const struct option skills_options[] = {
	{OPT_FORCE, 'f', "force", NULL, "promote, add: although the scan warns, and in place of what is there",
	 COMPLETE_NOTHING, NULL},
};
static const struct option prompt_options[] = {
	{OPT_EXPLAIN, 0, "explain", NULL, "a table of its sections instead: tokens, files, what was cut and why",
	 COMPLETE_NOTHING, NULL},
	{OPT_BUDGET, 0, "budget", "N", "at most N tokens, 1000 to 50000 (default: prompt.max_tokens of agent.yaml)",
	 COMPLETE_NOTHING, NULL},
};
static const struct option fork_options[] = {
	{OPT_AT, 0, "at", "REV", "as it was at this revision: a number or a checkpoint's name (default: as it is)",
	 COMPLETE_NOTHING, NULL},
};
static const struct option merge_options[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "show the change, do not make it", COMPLETE_NOTHING, NULL},
	{OPT_PREFER, 0, "prefer", "SIDE",
	 "settle conflicts with ours (this workspace's file stays) or theirs (the fork's)", COMPLETE_WORDS,
	 "ours theirs"},
	{OPT_PARTIAL, 0, "partial", NULL, "with conflicts: merge the other files all the same", COMPLETE_NOTHING, NULL},
};
static const struct option lease_options[] = {
	{OPT_HOLDER, 0, "holder", "NAME", "who holds it; unlike any other (acquire without it makes one up)",
	 COMPLETE_NOTHING, NULL},
	{OPT_TTL, 0, "ttl", "SECONDS", "it is lost when it is not renewed for so long (default: 30)", COMPLETE_NOTHING,
	 NULL},
	{OPT_WAIT, 0, "wait", "SECONDS", "how long to wait for it (default: 0)", COMPLETE_NOTHING, NULL},
	{OPT_FENCE, 0, "fence", "N", "renew, release: only with the fence that acquire printed", COMPLETE_NOTHING,
	 NULL},
};
static const struct option copy_options[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "say what would be copied, copy nothing", COMPLETE_NOTHING, NULL},
	{OPT_DELETE, 0, "delete", NULL, "remove from the copy what the source has not any more", COMPLETE_NOTHING,
	 NULL},
};
static const struct option fsck_options[] = {
	{OPT_REPAIR, 0, "repair", NULL, "mend what can be derived from the rest", COMPLETE_NOTHING, NULL},
};
static const struct option gc_options[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "say what would go, let it stay", COMPLETE_NOTHING, NULL},
};
static const struct option history_options[] = {
	{OPT_SINCE, 0, "since", "REV", "only what came after this revision", COMPLETE_NOTHING, NULL},
	{OPT_UNTIL, 0, "until", "REV", "only up to this revision", COMPLETE_NOTHING, NULL},
	{OPT_CALL, 0, "call", "ID", "only what this call changed", COMPLETE_NOTHING, NULL},
	{OPT_LIMIT, 'n', "limit", "N", "at most N changes", COMPLETE_NOTHING, NULL},
	{OPT_LONG, 'l', "long", NULL, "the call too, for 'stead undo --call'", COMPLETE_NOTHING, NULL},
};
static const struct option diff_options[] = {
	{OPT_WORDS, 0, "words", NULL, "mark changed words (the default on a terminal)", COMPLETE_NOTHING, NULL},
	{OPT_LINES, 0, "lines", NULL, "whole lines, as patch takes them (the default elsewhere)", COMPLETE_NOTHING,
	 NULL},
};
static const struct option undo_options[] = {
	{OPT_SINCE, 0, "since", "REV", "all changes after this revision", COMPLETE_NOTHING, NULL},
	{OPT_CALL, 0, "call", "ID", "what this call changed (see 'stead history -l')", COMPLETE_NOTHING, NULL},
	{OPT_ACTOR, 0, "actor", "NAME", "what this user or agent changed", COMPLETE_NOTHING, NULL},
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "show what would be undone, change nothing", COMPLETE_NOTHING, NULL},
};
static const struct option watch_options[] = {
	{OPT_SINCE, 0, "since", "REV", "from after this revision on (default: from now on)", COMPLETE_NOTHING, NULL},
	{OPT_ONCE, 0, "once", NULL, "print what there is, and end", COMPLETE_NOTHING, NULL},
};
static const struct option help_options[] = {
	{OPT_MAN, 0, "man", NULL, "print the manual page (roff)", COMPLETE_NOTHING, NULL},
};

#define OPTIONS_OF(array) .options = (array), .option_count = COUNT(array)

const struct command commands[] = {
	{.name = "init",
	 .summary = "make a workspace",
	 .operands = "NAME",
	 .operands_min = 1,
	 .operands_max = 1,
	 .about = "Writes the files that an agent's home starts with: who it is (AGENTS.md, SOUL.md),\n"
		  "whom it works for (USER.md), what it does by itself (HEARTBEAT.md), its settings\n"
		  "(agent.yaml) and its secrets (.env). A name is 2 to 64 of a-z, 0-9, '_' and '-', and\n"
		  "begins with a letter.\n",
	 .examples = "stead init research\n  a workspace in your data directory\n"
		     "stead init --store disk:./agents helper --model anthropic:claude-sonnet-4-5\n"
		     "  one beside your project, with a model\n",
	 OPTIONS_OF(init_options),
	 .run = run_init},
	{.name = "list",
	 .summary = "list the workspaces of a store",
	 .operands = "",
	 .about = "One line each: name, number of files, bytes, last change.\n",
	 .examples = "stead list\n  those in your data directory\n"
		     "stead list --json | jq -r '.[].name'\n  their names, for a script\n",
	 .run = run_list},
	{.name = "doctor",
	 .summary = "check workspaces and say how to mend them",
	 .operands = "[NAME]",
	 .operands_max = 1,
	 .complete = COMPLETE_WORKSPACE,
	 .about = "Checks the store, the configuration and the files, of one workspace or of all. The exit\n"
		  "code is 1 when something is wrong.\n",
	 .examples = "stead doctor\n  everything\nstead doctor research\n  one workspace\n",
	 .run = run_doctor},
	{.name = "mcp",
	 .summary = "serve the workspace to an MCP client (stdio)",
	 .operands = "",
	 .about = "Speaks the Model Context Protocol on standard input and output until the input ends. A\n"
		  "workspace that does not exist is made. Clients start this command themselves:\n"
		  "--print-config prints what to paste into their settings.\n",
	 .examples = "stead mcp --print-config -w research\n  the block for your client's settings\n"
		     "stead mcp --files ~/project\n  serve a directory that you have\n"
		     "stead mcp --dialect anthropic-memory\n  the tools of another system\n",
	 OPTIONS_OF(mcp_options),
	 .run = run_mcp},
	{.name = "call",
	 .summary = "call a tool, as an agent would",
	 .operands = "TOOL [KEY=VALUE... | JSON | -]",
	 .operands_min = 1,
	 .operands_max = 1000,
	 .complete = COMPLETE_TOOL,
	 .about = "Arguments are KEY=VALUE pairs, typed by the tool's schema (a list takes JSON, or the key\n"
		  "more than once), or one JSON object, or '-' for a JSON object on standard input. The text\n"
		  "that a model would read goes to standard output; with --json the structured result.\n",
	 .examples = "stead call write_file path=notes.md content='# Notes'\n  make a file\n"
		     "stead call read_file path=notes.md line_numbers=true\n  read it with line numbers\n"
		     "stead call grep '{\"pattern\": \"budget\", \"include\": [\"*.md\"]}' --json\n"
		     "  arguments as JSON, result as JSON\n",
	 .run = run_call},
	{.name = "tools",
	 .summary = "list the tools that agents get",
	 .operands = "",
	 .about = "Name, arguments (optional ones in brackets) and purpose of each. With --json the whole\n"
		  "table with its schemas, as MCP clients see it.\n",
	 .examples = "stead tools\n  the native tools\nstead tools --dialect openpaw\n  those of another system\n",
	 .run = run_tools},
	{.name = "schema",
	 .summary = "print the JSON Schema of a configuration file",
	 .operands = "agent.yaml|tools.json|stead.yaml",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_WORDS,
	 .words = "agent.yaml tools.json stead.yaml",
	 .about = "For editors that check and complete while you type.\n",
	 .examples = "stead schema agent.yaml > agent.schema.json\n  keep it beside your project\n",
	 .run = run_schema},
	{.name = "ls",
	 .summary = "list files",
	 .operands = "[PATH]",
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "One name per line; directories end in '/'.\n",
	 .examples = "stead ls\n  the root\nstead ls -l notes\n  with size and time\n",
	 OPTIONS_OF(ls_options),
	 .run = run_ls},
	{.name = "cat",
	 .summary = "print files, byte for byte",
	 .operands = "PATH...",
	 .operands_min = 1,
	 .operands_max = 100000,
	 .complete = COMPLETE_PATH,
	 .about = "Any size, any bytes. PATH@REV is the file as it was after a revision. With --json one\n"
		  "object per file, with its version; bytes that are not UTF-8 come as base64.\n",
	 .examples = "stead cat notes.md\n  print it\nstead cat notes.md@12\n  as it was after revision 12\nstead cat "
		     "photo.png > photo.png\n  take it out\n",
	 .run = run_cat},
	{.name = "write",
	 .summary = "write a file from standard input",
	 .operands = "PATH",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "All or nothing: a reader sees the old bytes or the new ones. Directories are made as\n"
		  "needed. Any size, in bounded memory. --if-version alone means --mode overwrite.\n",
	 .examples = "echo hello | stead write notes.md\n  a new file\n"
		     "stead write notes.md --mode append --content 'more'\n  add to it\n"
		     "stead write data.bin --mode overwrite < data.bin\n  replace it\n",
	 OPTIONS_OF(write_options),
	 .run = run_write},
	{.name = "edit",
	 .summary = "replace text in a file",
	 .operands = "PATH OLD NEW",
	 .operands_min = 3,
	 .operands_max = 3,
	 .complete = COMPLETE_PATH,
	 .about = "OLD must occur exactly once, unless --all is given; when it does not, the nearest text\n"
		  "is shown. All other bytes stay as they are.\n",
	 .examples = "stead edit notes.md 'Tuesday' 'Wednesday'\n  one place\n"
		     "stead edit --all --dry-run notes.md colour color\n  show what would change\n",
	 OPTIONS_OF(edit_options),
	 .run = run_edit},
	{.name = "grep",
	 .summary = "search in files",
	 .operands = "PATTERN [PATH]",
	 .operands_min = 1,
	 .operands_max = 2,
	 .complete = COMPLETE_PATH,
	 .about = "Prints path:line:text for every match, in the order of paths; lines of context as\n"
		  "path-line-text, with -- between groups. The pattern is a Perl-like regular expression.\n"
		  "The exit code is 1 when nothing matches. With --json one object per line.\n",
	 .examples = "stead grep 'budget|deadline'\n  everywhere\n"
		     "stead grep -i -C 2 --include '*.md' budget notes\n  in the Markdown files below notes\n"
		     "stead grep --files ~/project -F 'a.b(' src\n  plain text, in a directory of yours\n",
	 OPTIONS_OF(grep_options),
	 .run = run_grep},
	{.name = "search",
	 .summary = "find the best passages in notes, memory, sessions, knowledge and files",
	 .operands = "WORD...",
	 .operands_max = 1000,
	 .about = "Ranked: any word may match, more and rarer words count more. '\"two words\"' must stand\n"
		  "together, -word must not occur. Endings and misspellings are forgiven (--exact: not). Works\n"
		  "in any language. Without words: everything, newest first. The exit code is 1 when nothing\n"
		  "is found.\n",
	 .examples =
		 "stead search deployment plan\n  the ten best\n"
		 "stead search '\"rate limit\" -redis' --area notes --since 7d\n  a phrase, in the notes of a week\n"
		 "stead search 東京 天気 --json\n  for a script\n",
	 OPTIONS_OF(search_options),
	 .run = run_search},
	{.name = "find",
	 .summary = "find files by name",
	 .operands = "GLOB [PATH]",
	 .operands_min = 1,
	 .operands_max = 2,
	 .complete = COMPLETE_PATH,
	 .about = "Prints the paths that match, in order. '*' stays within a directory, '**' crosses\n"
		  "directories: '**/*.md' is every Markdown file. The exit code is 1 when nothing matches.\n",
	 .examples = "stead find '**/*.md'\n  every Markdown file\n"
		     "stead find '*.{yaml,yml}' config\n  directly in config\n",
	 OPTIONS_OF(find_options),
	 .run = run_find},
	{.name = "mv",
	 .summary = "move or rename a file or a directory",
	 .operands = "FROM TO",
	 .operands_min = 2,
	 .operands_max = 2,
	 .complete = COMPLETE_PATH,
	 .about = "TO is the new path itself, not a directory to move into.\n",
	 .examples = "stead mv draft.md notes/final.md\n  rename it\n",
	 OPTIONS_OF(move_options),
	 .run = run_mv},
	{.name = "cp",
	 .summary = "copy a file",
	 .operands = "FROM TO",
	 .operands_min = 2,
	 .operands_max = 2,
	 .complete = COMPLETE_PATH,
	 .about = "TO is the path of the copy itself.\n",
	 .examples = "stead cp notes.md notes-old.md\n  keep a copy\n",
	 OPTIONS_OF(move_options),
	 .run = run_cp},
	{.name = "rm",
	 .summary = "remove files",
	 .operands = "PATH...",
	 .operands_min = 1,
	 .operands_max = 100000,
	 .complete = COMPLETE_PATH,
	 .about = "A directory only with -r. Ends at the first path that cannot be removed.\n",
	 .examples = "stead rm old.md\n  a file\nstead rm -r drafts\n  a directory\n",
	 OPTIONS_OF(rm_options),
	 .run = run_rm},
	{.name = "info",
	 .summary = "show a file's size, time and version",
	 .operands = "PATH",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "The version changes whenever the bytes change; --if-version of other commands takes it.\n",
	 .examples = "stead info notes.md\n  for a person\nstead info --json notes.md\n  for a script\n",
	 .run = run_info},
	{.name = "sessions",
	 .summary = "conversations: list, show, append to, archive",
	 .operands = "[list | show ID | append ID | archive ID]",
	 .operands_max = 2,
	 .complete = COMPLETE_WORDS,
	 .words = "list show append archive",
	 .about = "A session is a log of one JSON object a line, which is never shortened. 'append' takes such\n"
		  "lines from standard input: what a runtime of your own says and does. 'archive' writes what\n"
		  "was said since the last time to memory/conversations/, as Markdown and JSON. --agent says\n"
		  "whose sessions.\n",
	 .examples = "stead sessions\n  all, the newest first\n"
		     "echo '{\"type\":\"message\",\"role\":\"user\",\"content\":\"hello\"}' | stead sessions append "
		     "chat-1\n"
		     "  a message\n"
		     "stead sessions show chat-1\n  its end\n",
	 OPTIONS_OF(sessions_options),
	 .run = run_sessions},
	{.name = "memory",
	 .summary = "what the agent remembers: list, search, save, forget, archive, stats",
	 .operands = "[list | search QUERY | save TEXT | forget FACT | archive | stats]",
	 .operands_max = 2,
	 .complete = COMPLETE_WORDS,
	 .words = "list search save forget archive stats",
	 .about = "Facts are bullets in MEMORY.md and in a ledger for each day below memory/; behind each stands\n"
		  "where it comes from. What you save here is a person's word, unless --agent says whose it is.\n"
		  "'forget' takes an id, or the words of the fact, and gives a receipt: the fact goes from the\n"
		  "files, from history and from the index. 'archive' puts old ledgers and what is over the\n"
		  "budget aside (memory: in agent.yaml).\n",
	 .examples = "stead memory save 'The office closes at six.'\n  a fact\n"
		     "stead memory search office\n  the best first\n"
		     "stead memory --all\n  also what does not hold any more\n",
	 OPTIONS_OF(memory_options),
	 .run = run_memory},
	{.name = "usage",
	 .summary = "tokens that were spent",
	 .operands = "",
	 .about = "Sums up agents/<agent>/token_usage.jsonl, by model. Runtimes add to it with session_append\n"
		  "and entries of type usage.\n",
	 .examples = "stead usage --since 2026-11-15\n  since that day\n",
	 OPTIONS_OF(usage_options),
	 .run = run_usage},
	{.name = "note",
	 .summary = "write a note into the notebook",
	 .operands = "TITLE",
	 .operands_min = 1,
	 .operands_max = 1,
	 .about = "The text comes from standard input, or from --content. The author is --agent. The note is a\n"
		  "file below notes/ with a slug that no other note has.\n",
	 .examples = "stead note 'Rate limits' --content 'The API allows 10 calls a second.' --tag api\n  a finding\n"
		     "stead note 'Use Postgres' --kind decision --agent ann < why.md\n  a decision of ann's\n",
	 OPTIONS_OF(note_options),
	 .run = run_note},
	{.name = "notes",
	 .summary = "look at the notebook, and tidy it",
	 .operands = "[list | show REF | archive SLUG | questions | credit SLUG... | prune | index | prompt "
		     "[TEAMMATE...] | seed FILE...]",
	 .operands_max = 1000,
	 .complete = COMPLETE_WORDS,
	 .words = "list show archive questions credit prune index prompt seed",
	 .about = "list (the default) shows the last updated notes; show takes a slug or part of a title;\n"
		  "archive hides a note of --agent; questions lists the open ones. credit says that notes\n"
		  "helped (or with --failed that they did not), which raises them in searches. prune removes\n"
		  "notes that were not updated or cited for 90 days and were never cited. index prints the\n"
		  "table of contents and writes it to WORKSPACE.md. prompt prints what a model is told about\n"
		  "the notebook. seed copies documents to seeds/ in the file area.\n",
	 .examples = "stead notes --kind decision\n  what was decided\n"
		     "stead notes show rate\n  the note with 'rate' in its title\n"
		     "stead notes prune --older-than 30 --keep decision --dry-run\n  what would go\n",
	 OPTIONS_OF(notes_options),
	 .run = run_notes},
	{.name = "tasks",
	 .summary = "show the task list, or tidy it",
	 .operands = "[list | clean]",
	 .operands_max = 1,
	 .complete = COMPLETE_WORDS,
	 .words = "list clean",
	 .about = "The tasks of TASKS.yaml, the most urgent first. The file may be edited by hand: comments\n"
		  "stay. 'clean' marks as failed what nobody looked after for 48 hours and removes what ended\n"
		  "3 days ago; every change of a task does so too. The times are set in agent.yaml, under\n"
		  "builtins.task_tracker.config (stale_hours, max_age_days; 0: never).\n",
	 .examples = "stead tasks\n  all of them\n"
		     "stead call create_task description='compare the drafts' priority=high\n  a new one\n"
		     "stead call update_task task_id=1a2b status=completed\n  any beginning of the id will do\n",
	 OPTIONS_OF(tasks_options),
	 .run = run_tasks},
	{.name = "skills",
	 .summary = "show skills, and decide about those that agents wrote",
	 .operands = "[list | show NAME [FILE] | scan NAME | promote NAME | archive NAME | add DIR]",
	 .operands_max = 3,
	 .complete = COMPLETE_WORDS,
	 .words = "list show scan promote archive add",
	 .about = "Skills are directories with a SKILL.md. What agents write is a draft in skills/_drafts:\n"
		  "'scan' tells what looks dangerous in it, 'promote' makes it a skill, and archives the one\n"
		  "that it replaces. 'archive' takes a skill away to skills/.archive. 'add' copies a directory\n"
		  "of yours into the workspace. The scan finds carelessness, not enemies: read before you\n"
		  "promote.\n",
	 .examples = "stead skills\n  what there is, drafts too\nstead skills scan report-style\n  look at a draft\n"
		     "stead skills promote report-style\n  from now on it counts\n"
		     "stead skills add ~/skills/pdf\n  one of your own\n",
	 OPTIONS_OF(skills_options),
	 .run = run_skills},
	{.name = "prompt",
	 .summary = "print the prompt that the workspace makes for its agent",
	 .operands = "",
	 .about = "Identity, knowledge, skills, memory, notes, tasks and the plan, as a model is told them before\n"
		  "a conversation. What changes least stands first, so that prompt caches keep the beginning;\n"
		  "text of files cannot end its section. All sections share one budget of tokens.\n",
	 .examples = "stead prompt\n  the prompt\n"
		     "stead prompt --explain\n  what each section takes, and what was left out\n"
		     "stead prompt --session 42 --json\n  with that session's plan, and where a cache may end\n",
	 OPTIONS_OF(prompt_options),
	 .run = run_prompt},
	{.name = "knowledge",
	 .summary = "list what people wrote down for the agent, or show a file of it",
	 .operands = "[list [DIR] | show FILE]",
	 .operands_max = 2,
	 .complete = COMPLETE_WORDS,
	 .words = "list show",
	 .about = "The files below knowledge/, with their titles. KNOWLEDGE.md is the entry: it stands in the\n"
		  "prompt, of the others only this list does. Search them with: stead search --area knowledge.\n",
	 .examples = "stead knowledge\n  all of it\nstead knowledge show api/errors.md\n  one file\n",
	 .run = run_knowledge},
	{.name = "subagents",
	 .summary = "show the subagents that are declared in subagents/",
	 .operands = "[list | show ID]",
	 .operands_max = 2,
	 .complete = COMPLETE_WORDS,
	 .words = "list show",
	 .about = "Each subagents/ID.md says what a subagent is for, its model, tools and where it works; the\n"
		  "text behind the head is its system prompt. A file that is wrong is told of.\n",
	 .examples = "stead subagents\n  those there are, and what is wrong\nstead subagents show reviewer\n  one, "
		     "with its prompt\n",
	 .run = run_subagents},
	{.name = "upload",
	 .summary = "give files of yours to the agent",
	 .operands = "FILE...",
	 .operands_min = 1,
	 .operands_max = 1000,
	 .about = "Copies each file to uploads/YYYY-MM-DD/ under a safe name; a second of that name gets (1).\n"
		  "A program that agent.yaml names for its kind (uploads.converters) makes the text beside it;\n"
		  "when that fails the file is kept, and it is said.\n",
	 .examples = "stead upload report.pdf notes.docx\n  two files\n"
		     "stead call list_uploads\n  what was sent\n",
	 .run = run_upload},
	{.name = "fork",
	 .summary = "make a workspace that stands on this one",
	 .operands = "NEW",
	 .operands_min = 1,
	 .operands_max = 1,
	 .about = "The new workspace has everything that this one has (or had, with --at), and nothing is\n"
		  "copied: it takes the same time for any size. What is changed in either does not show in\n"
		  "the other. 'stead merge' brings the changes of the fork back.\n",
	 .examples = "stead fork try-it\n  a place to try something\n"
		     "stead -w try-it edit plan.md 'in June' 'in May'\n  work there\n"
		     "stead merge try-it\n  keep it\n"
		     "stead fork -w research old --at 120\n  the workspace as it was at revision 120\n",
	 OPTIONS_OF(fork_options),
	 .run = run_fork},
	{.name = "merge",
	 .summary = "bring the changes of a fork back",
	 .operands = "FORK",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_WORKSPACE,
	 .about = "Into the workspace that it is a fork of, file by file. Text is merged by line; a file that\n"
		  "both changed in the same place is a conflict, shown with both sides, and then nothing is\n"
		  "merged (--partial: the other files are). To resolve a conflict, edit the file here and merge\n"
		  "with --prefer ours. The fork stays as it is and can be merged again: then only what is new.\n"
		  "'stead undo' takes a merge back as a whole.\n"
		  "The exit code is 5 when there are conflicts.\n",
	 .examples = "stead merge try-it --dry-run\n  what would change\nstead merge try-it\n  bring it back\n"
		     "stead merge try-it --json | jq '.conflicts[].path'\n  conflicts, for a script\n",
	 OPTIONS_OF(merge_options),
	 .run = run_merge},
	{.name = "history",
	 .summary = "list what was changed, newest first",
	 .operands = "[PATH]",
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "Revision, time, who, operation, change of size and path of every change, of a file or of\n"
		  "all below a directory. What another program changed is operation 'outside'. --session\n"
		  "and --agent show only theirs. With --json an array, one object for each change.\n",
	 .examples = "stead history notes.md\n  what happened to a file\n"
		     "stead history -n 20\n  the last 20 changes\n"
		     "stead history --json --since before-refactor | jq -r '.[].path'\n"
		     "  paths that changed after a checkpoint\n",
	 OPTIONS_OF(history_options),
	 .run = run_history},
	{.name = "diff",
	 .summary = "show what differs between revisions",
	 .operands = "[PATH] REV..REV",
	 .operands_min = 1,
	 .operands_max = 2,
	 .complete = COMPLETE_PATH,
	 .about = "Unified differences, of a file or of all below a directory. REV is a revision's number, a\n"
		  "checkpoint or 'head'; REV alone compares with what is there now; 0 is before everything.\n",
	 .examples = "stead diff 12\n  what changed since revision 12\n"
		     "stead diff notes.md 3..7\n  one file, between two revisions\n"
		     "stead diff 12..head --lines > changes.patch\n  for patch -p0\n",
	 OPTIONS_OF(diff_options),
	 .run = run_diff},
	{.name = "restore",
	 .summary = "bring back a file or directory as it was",
	 .operands = "PATH@REV",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "What did not exist at the revision is removed. A restore is a change like any other, so\n"
		  "'stead undo' takes it back.\n",
	 .examples = "stead restore notes.md@12\n  a file\nstead restore drafts@before-refactor\n"
		     "  a directory, as it was at a checkpoint\nstead restore @12\n  everything\n",
	 .run = run_restore},
	{.name = "undo",
	 .summary = "take back changes",
	 .operands = "",
	 .about = "The last call, whatever it changed, or the changes that an option chooses; --session too\n"
		  "chooses. An undo can be undone. If one of the files was changed by someone else since,\n"
		  "nothing is undone, the difference is shown, and the exit code is 5.\n",
	 .examples = "stead undo\n  the last call\nstead undo --since 12 --dry-run\n"
		     "  what going back to revision 12 would do\nstead undo --session s-42\n"
		     "  all that a session did\n",
	 OPTIONS_OF(undo_options),
	 .run = run_undo},
	{.name = "checkpoint",
	 .summary = "name the present state",
	 .operands = "[NAME]",
	 .operands_max = 1,
	 .about = "The name is taken wherever a revision is; given again, it moves. Without a name, lists\n"
		  "the checkpoints.\n",
	 .examples = "stead checkpoint before-refactor\n  name it\nstead checkpoint\n  list the names\n",
	 .run = run_checkpoint},
	{.name = "watch",
	 .summary = "follow changes as they are made",
	 .operands = "[PATH]",
	 .operands_max = 1,
	 .complete = COMPLETE_PATH,
	 .about = "One line for each change, by whatever process, until it is interrupted. With --json one\n"
		  "object per line. Started again with --since and the last revision that was printed, it\n"
		  "goes on with no gap and no repeat. --once without --since prints all that is kept.\n",
	 .examples = "stead watch\n  from now on\nstead watch notes --since 12 --once --json\n"
		     "  what changed since, for a script\n",
	 OPTIONS_OF(watch_options),
	 .run = run_watch},
	{.name = "export",
	 .summary = "write the workspace to one file",
	 .operands = "FILE|-",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_HOST_DIR,
	 .about = "Files, history and configuration, without secrets (.env, key files): a tar archive with\n"
		  "checksums, which 'stead import' reads, and 'tar -x' too. '-' is standard output. Others may\n"
		  "work on meanwhile: the bundle holds one moment. The same content gives the same bytes.\n",
	 .examples = "stead export -w research research.stead.tar\n  a backup, or a workspace to pass on\n"
		     "stead export - | ssh host stead import -\n  to another machine\n",
	 .run = run_export},
	{.name = "import",
	 .summary = "make a workspace of a bundle",
	 .operands = "FILE|- [NAME]",
	 .operands_min = 1,
	 .operands_max = 2,
	 .complete = COMPLETE_HOST_DIR,
	 .about = "The workspace gets the name it had, or NAME; there must be none of that name. Everything\n"
		  "is checked before it can be seen; a bundle that is damaged leaves nothing behind. Secrets\n"
		  "are not in a bundle: write .env anew.\n",
	 .examples = "stead import research.stead.tar\n  as it was called\n"
		     "stead import research.stead.tar research-2\n  beside it\n",
	 .run = run_import},
	{.name = "gc",
	 .summary = "drop history that is not to be kept any more",
	 .operands = "",
	 .about = "How much of the past is kept stands in agent.yaml under 'history': revisions, age_days\n"
		  "and bytes. The oldest beyond that goes, except what a checkpoint or a fork stands on; the\n"
		  "files themselves are never touched. It runs by itself at most once an hour; others may\n"
		  "write meanwhile.\n",
	 .examples = "stead gc --dry-run\n  what would go\nstead gc --json | jq .freed\n  free it, and say how much\n",
	 OPTIONS_OF(gc_options),
	 .run = run_gc},
	{.name = "copy",
	 .summary = "copy workspaces to another store",
	 .operands = "SOURCE-URL TARGET-URL",
	 .operands_min = 2,
	 .operands_max = 2,
	 .about = "All workspaces, or the one that -w names: files, secrets (.env) and history, between stores\n"
		  "of any kind; config:FILE is the deployment of a stead.yaml. Every file is read back and\n"
		  "compared. Run again, it copies what is missing or different, so a copy that was interrupted\n"
		  "is gone on with. A workspace of that name that is no copy of this one, or a copy that was\n"
		  "worked on since, is not touched. Stop the writers before the last run.\n",
	 .examples = "stead copy disk:./workspaces s3://bucket/agents\n  to a bucket\n"
		     "stead copy -w research disk:./a disk:./b --dry-run\n  what would be copied\n",
	 OPTIONS_OF(copy_options),
	 .run = run_copy},
	{.name = "fsck",
	 .summary = "check that a store is whole",
	 .operands = "[URL]",
	 .operands_max = 1,
	 .about = "Reads everything: each workspace's history in order, every kept content against its hash,\n"
		  "each file against its last record, and what killed processes left. One line for each\n"
		  "finding, with what to do; the exit code is 1 when there is one.\n",
	 .examples = "stead fsck\n  the store of your workspaces\nstead fsck -w research disk:./backup --json\n"
		     "  one workspace of another store\n",
	 OPTIONS_OF(fsck_options),
	 .run = run_fsck},
	{.name = "lease",
	 .summary = "let one process at a time do something",
	 .operands = "acquire|renew|release|show NAME",
	 .operands_min = 1,
	 .operands_max = 2,
	 .complete = COMPLETE_WORDS,
	 .words = "acquire renew release show",
	 .about = "A lease is held by one of all the processes and machines that share the store, and lost\n"
		  "by itself when its holder does not renew it for --ttl seconds. It is taken from a holder\n"
		  "that is gone only after watching it for that long: give --wait more than its ttl. The\n"
		  "fence grows with every acquisition, so that what it protects can refuse an older one.\n"
		  "One that another holds gives exit code 5. 'show' without a name lists all.\n",
	 .examples = "stead lease acquire nightly --holder $HOSTNAME --ttl 60 --wait 90\n"
		     "  get it, or take it over from a machine that died\n"
		     "stead lease renew nightly --holder $HOSTNAME\n  keep it\n"
		     "stead lease release nightly --holder $HOSTNAME\n  others need not wait\n",
	 OPTIONS_OF(lease_options),
	 .run = run_lease},
	{.name = "completion",
	 .summary = "print the completion script of a shell",
	 .operands = "bash|zsh|fish",
	 .operands_min = 1,
	 .operands_max = 1,
	 .complete = COMPLETE_WORDS,
	 .words = "bash zsh fish",
	 .about = "Completes commands, options, workspaces, tools and the paths of the workspace.\n",
	 .examples = "source <(stead completion bash)\n  in ~/.bashrc\n"
		     "stead completion zsh > ~/.zfunc/_stead\n  a directory of $fpath\n"
		     "stead completion fish > ~/.config/fish/completions/stead.fish\n  for fish\n",
	 .run = run_completion},
	{.name = "help",
	 .summary = "explain a command",
	 .operands = "[COMMAND]",
	 .operands_max = 1,
	 .complete = COMPLETE_COMMAND,
	 .about = "The same as 'stead COMMAND --help'.\n",
	 .examples = "stead help grep\n  how to search\nstead help --man | man -l -\n  the manual page\n",
	 OPTIONS_OF(help_options),
	 .run = run_help},
};
const size_t command_count = COUNT(commands);

const struct exit_code exit_codes[] = {
	{0, "done"},
	{1, "nothing matched (grep, find), or doctor or fsck found something wrong"},
	{2, "invalid: the command line, an argument, a path or a file's content"},
	{3, "not found"},
	{4, "exists already"},
	{5, "conflict: the file has another version by now, or was changed since (undo)"},
	{6, "denied"},
	{7, "not authenticated"},
	{8, "too large"},
	{9, "not supported"},
	{10, "rate limited"},
	{11, "timeout"},
	{12, "cancelled"},
	{13, "unavailable: the store cannot be reached now"},
	{14, "corrupt data"},
	{15, "no space: the quota or the disk is full"},
	{16, "an internal error of Stead"},
};
const size_t exit_code_count = COUNT(exit_codes);

int exit_code_of(enum err_kind kind)
{
	static const int codes[ERR_KINDS] = {
		[ERR_NONE] = 0,         [ERR_INVALID] = 2,       [ERR_NOT_FOUND] = 3,       [ERR_EXISTS] = 4,
		[ERR_CONFLICT] = 5,     [ERR_DENIED] = 6,        [ERR_UNAUTHENTICATED] = 7, [ERR_TOO_LARGE] = 8,
		[ERR_UNSUPPORTED] = 9,  [ERR_RATE_LIMITED] = 10, [ERR_TIMEOUT] = 11,        [ERR_CANCELLED] = 12,
		[ERR_UNAVAILABLE] = 13, [ERR_CORRUPT] = 14,      [ERR_QUOTA] = 15,          [ERR_INTERNAL] = 16,
	};

	return kind < ERR_KINDS ? codes[kind] : 16;
}

const struct command *command_find(struct str name)
{
	for (size_t i = 0; i < command_count; i++)
		if (str_is(name, commands[i].name))
			return &commands[i];
	return NULL;
}

int command_unknown(struct str name, struct err *err)
{
	const char *names[COUNT(commands)];
	const char *nearest;

	for (size_t i = 0; i < command_count; i++)
		names[i] = commands[i].name;
	nearest = str_nearest(name, names, command_count);
	if (nearest)
		return err_set(err, ERR_INVALID, "unknown command '%.*s'; did you mean '%s'?",
			       STR_ARG(utf8_first(name, 80)), nearest);
	return err_set(err, ERR_INVALID, "unknown command '%.*s'; 'stead help' shows the commands",
		       STR_ARG(utf8_first(name, 80)));
}
