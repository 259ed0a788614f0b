/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wacht's tools. The file tools work on /task, the filesystem of one task: of an item of a board, or where there is
 * none of the tool root. Paths are /task/… or relative; for a connection that is bound to a thread also /workspace/…
 * and /uploads/…, the thread's own. Other mounts are not served. Results are objects: success, tool, path, and what the
 * tool adds. Kept: reads by 1-based lines or characters with totals and the SHA-256 of the
 * slice, write_file overwrites, append_file puts a newline between. Not kept: edit_file's rule that the file was read
 * in the same turn; a turn is the caller's, and a change in between is caught by the conditional write instead.
 */
#include "base/sha256.h"
#include "dialects/wacht_board.h"
#include "home/web/web_tools.h"

#define READ_MOST  (100 * KIB)
#define IMAGE_MOST (5 * MIB)

static int task_path(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	return board_task_path(call->ctx->arena, jv_get_str(args, "path"), ret, err);
}

static int task_file(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	int r = task_path(call, args, ret, err);

	if (r == 0 && wpath_is_root(*ret))
		return err_set(err, ERR_INVALID, "/task is a directory; name a file, for example /task/notes.md");
	return r;
}

static struct jv *success(struct call *call, const char *tool, struct wpath path, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;

	ret->value = jv_object(arena);
	jv_set_bool(arena, ret->value, "success", true);
	jv_set_str(arena, ret->value, "tool", str_of(tool));
	jv_set_str(arena, ret->value, "path",
		   wpath_is_root(path) ? STR("/task") : arena_printf(arena, "/task/%.*s", STR_ARG(path.s)));
	return ret->value;
}

/* The lines start … *end (1-based, both there) as far as one reply goes; *end becomes the last one given. */
static struct str line_slice(struct str bytes, int64_t start, int64_t *end)
{
	size_t from = 0, to = 0;

	for (int64_t line = 1; line <= *end; line++) {
		size_t n = str_find_char(str_from(bytes, to), '\n');
		size_t next = to + n + (to + n < bytes.len);

		if (line > start && next - from > READ_MOST) {
			*end = line - 1;
			break;
		}
		from = line == start ? to : from;
		to = next;
	}
	return str_n(bytes.ptr + from, to - from);
}

static int wacht_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	bool by_chars = !jv_is_null(jv_get(args, "start_char")) || !jv_is_null(jv_get(args, "end_char"));
	int64_t start = jv_get_int(args, by_chars ? "start_char" : "start_line", 1);
	int64_t end = jv_get_int(args, by_chars ? "end_char" : "end_line", INT64_MAX);
	struct str bytes, slice;
	uint64_t lines, chars;
	struct wpath path;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, NULL, err);
	if (r)
		return r;
	if (bytes_are_binary(bytes))
		return err_set(err, ERR_UNSUPPORTED, "read_file %.*s: the file is binary (%zu bytes)", STR_ARG(path.s),
			       bytes.len);
	lines = count_lines(bytes);
	chars = utf8_count(bytes);
	if (start < 1 || end < start || (uint64_t)start > (by_chars ? chars : lines) + (bytes.len == 0))
		return err_set(err, ERR_INVALID, "read_file %.*s: the range from %lld on is not in 1 to %llu",
			       STR_ARG(path.s), (long long)start, (unsigned long long)(by_chars ? chars : lines));
	if (by_chars) {
		size_t before = utf8_points(bytes, (size_t)start - 1).len;

		slice = utf8_points(str_from(bytes, before), (size_t)(end - start) + (end != INT64_MAX));
		slice = utf8_first(slice, READ_MOST);
		end = start + (int64_t)utf8_count(slice) - 1;
	} else {
		end = end > (int64_t)lines ? (int64_t)lines : end;
		slice = line_slice(bytes, start, &end);
	}
	v = success(call, "read_file", path, ret);
	jv_set_str(arena, v, "content", slice);
	jv_set_int(arena, v, "total_lines", (int64_t)lines);
	jv_set_int(arena, v, "total_chars", (int64_t)chars);
	jv_set_str(arena, v, "slice_hash", sha256_hex(arena, slice));
	jv_set_int(arena, v, by_chars ? "start_char" : "start_line", start);
	jv_set_int(arena, v, by_chars ? "end_char" : "end_line", end);
	return 0;
}

static int wacht_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str content = jv_get_str(args, "content");
	struct wpath path;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r == 0)
		r = store_write(call->files, call->ctx, path, content.ptr ? content : STR(""), (struct store_cond){0},
				NULL, err);
	if (r)
		return r;
	v = success(call, "write_file", path, ret);
	jv_set_int(arena, v, "lines_written", (int64_t)count_lines(content));
	jv_set_int(arena, v, "total_lines", (int64_t)count_lines(content));
	jv_set_bool(arena, v, "partial", false);
	return 0;
}

static int change_append(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	const struct str *content = arg;
	struct buf buf;

	if (before.len + content->len + 1 > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file would grow past %zu bytes", TOOL_FILE_MAX);
	buf_init(&buf, arena, TOOL_FILE_MAX + 1);
	buf_add(&buf, before);
	if (before.len && before.ptr[before.len - 1] != '\n')
		buf_char(&buf, '\n');
	buf_add(&buf, *content);
	*ret_after = buf.ptr ? buf_str(&buf) : STR("");
	return 0;
}

static int wacht_append(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct str content = jv_get_str(args, "content");
	struct file_change change = {.change = change_append, .arg = &content, .after = content};
	struct wpath path;
	struct jv *v;
	struct board_ref ref;
	int r = task_file(call, args, &path, err);

	if (r == 0 && str_is(path.s, "JOURNAL.md") && wacht_item(call, args, &ref)) {
		r = board_journal_add(call->ws, call->ctx, ref, content, err);
	} else if (r == 0) {
		r = store_write(call->files, call->ctx, path, content.ptr ? content : STR(""), absent, NULL, err);
		if (r && err->kind == ERR_EXISTS)
			r = file_change(call, path, &change, err);
	}
	if (r)
		return r;
	v = success(call, "append_file", path, ret);
	jv_set_int(arena, v, "lines_written", (int64_t)count_lines(content));
	jv_set_int(arena, v, "total_lines", (int64_t)count_lines(change.after));
	jv_set_bool(arena, v, "partial", false);
	return 0;
}

static int wacht_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = args_map(arena, args,
				     (const char *const[]){"old_string", "old_text", "new_string", "new_text",
							   "replace_all", "replace_all", NULL});
	struct wpath path;
	struct str bytes;
	int64_t n;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	if (r)
		return r;
	jv_set_str(arena, mapped, "path", path.s);
	r = tool_edit_file(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_get_int(ret->value, "replaced", 0);
	r = store_read(call->files, call->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, NULL, err);
	v = success(call, "edit_file", path, ret);
	jv_set_int(arena, v, "replacements", n);
	if (r == 0)
		jv_set_int(arena, v, "total_lines", (int64_t)count_lines(bytes));
	return 0;
}

static int wacht_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = args_map(arena, args, (const char *const[]){"cursor", "cursor", NULL});
	struct jv *entries = jv_array(arena), *v;
	struct outcome listed = {0};
	struct wpath path;
	int r = task_path(call, args, &path, err);

	if (r)
		return r;
	jv_set_str(arena, mapped, "path", path.s);
	jv_set_bool(arena, mapped, "details", true);
	r = tool_ls(call, mapped, &listed, err);
	if (r == -ERR_NOT_FOUND && board_dir_is_fixed(path))
		listed.value = jv_object(arena);
	else if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(listed.value, "entries")); m; m = m->next) {
		struct jv *e = jv_object(arena);

		jv_set_str(arena, e, "name", wpath_name((struct wpath){jv_get_str(m->value, "path")}));
		jv_set_str(arena, e, "kind", jv_get_str(m->value, "kind"));
		jv_set_int(arena, e, "size_bytes", jv_get_int(m->value, "size", 0));
		if (jv_get(m->value, "modified"))
			jv_set_str(arena, e, "modified_at", jv_get_str(m->value, "modified"));
		jv_push(arena, entries, e);
	}
	v = success(call, "list_directory", path, ret);
	jv_set(arena, v, "entries", entries);
	jv_set_int(arena, v, "total", jv_get_int(listed.value, "total", jv_get_int(listed.value, "total_at_least", 0)));
	if (jv_get(listed.value, "next_cursor"))
		jv_set_str(arena, v, "next_cursor", jv_get_str(listed.value, "next_cursor"));
	return 0;
}

static int wacht_exists(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct store_stat stat;
	struct wpath path;
	struct jv *v;
	int r = task_path(call, args, &path, err);

	if (r)
		return r;
	r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r && err->kind != ERR_NOT_FOUND)
		return r;
	v = success(call, "exists", path, ret);
	jv_set_bool(arena, v, "exists", r == 0);
	if (r == 0)
		jv_set_str(arena, v, "kind", stat.kind == STORE_DIR ? STR("directory") : STR("file"));
	return 0;
}

static int wacht_execute(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct exec_call what = {.shell = "sh",
				 .command = jv_get_str(args, "command"),
				 .timeout_s = jv_get_int(args, "timeout_seconds", 600),
				 .timeout_max_s = SANDBOX_SECONDS_MAX,
				 .at = "/task"};
	struct buf remarks;
	struct jv *ran;
	int r = exec_call(call, &what, &ran, err);

	if (r)
		return r;
	buf_init(&remarks, arena, MIB);
	jv_remove(ran, "stdout_artifact"); /* no tool of this system reads one */
	jv_remove(ran, "stderr_artifact");
	exec_remarks(ran, &remarks);
	ret->value = jv_object(arena);
	jv_set_bool(arena, ret->value, "success", jv_get_int(ran, "exit_code", 1) == 0);
	jv_set_str(arena, ret->value, "tool", STR("execute_command"));
	jv_set_str(arena, ret->value, "stdout", jv_get_str(ran, "stdout"));
	jv_set_str(arena, ret->value, "stderr", jv_get_str(ran, "stderr"));
	jv_set_int(arena, ret->value, "exit_code", jv_get_int(ran, "exit_code", 1));
	if (jv_get_bool(ran, "truncated", false))
		jv_set_bool(arena, ret->value, "truncated", true);
	if (remarks.len)
		jv_set_str(arena, ret->value, "remarks", buf_str(&remarks));
	if (!jv_get_bool(ran, "saved", true))
		jv_set_str(arena, ret->value, "problem", jv_get_str(ran, "problem"));
	return 0;
}

static int wacht_image(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	static const char *const types[][2] = {{".png", "image/png"},
					       {".jpg", "image/jpeg"},
					       {".jpeg", "image/jpeg"},
					       {".gif", "image/gif"},
					       {".webp", "image/webp"}};
	struct arena *arena = call->ctx->arena;
	const char *type = NULL;
	struct wpath path;
	struct str bytes;
	struct jv *v;
	int r = task_file(call, args, &path, err);

	for (size_t i = 0; r == 0 && i < COUNT(types); i++)
		if (str_ends(path.s, str_of(types[i][0])))
			type = types[i][1];
	if (r == 0 && !type)
		r = err_set(err, ERR_UNSUPPORTED, "read_image %.*s: it is not a png, jpg, gif or webp file",
			    STR_ARG(path.s));
	if (r == 0)
		r = store_read(call->files, call->ctx, path, STORE_WHOLE, IMAGE_MOST, &bytes, NULL, err);
	if (r)
		return r;
	v = success(call, "read_image", path, ret);
	jv_set_str(arena, v, "mime_type", str_of(type));
	jv_set_str(arena, v, "data", base64_encode(arena, bytes));
	return 0;
}

/* The same over the files of an item. */
#define OVER_TASK(tool)                                                                                                \
	static int task_##tool(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)         \
	{                                                                                                              \
		return wacht_over_task(call, args, wacht_##tool, ret, err);                                            \
	}
OVER_TASK(read)
OVER_TASK(write)
OVER_TASK(append)
OVER_TASK(edit)
OVER_TASK(list)
OVER_TASK(exists)
OVER_TASK(image)

/* clang-format off */
#define WHICH   "task_key: another task than the one that the connection is about\nboard_item_id: the same by its id"
#define PATH    "path!: /task/… or relative to it; /workspace/… and /uploads/… are the thread's own\n" WHICH
#define RESULT  "success! bool; tool!; ..."
#define HANDOFF "result_summary: what came of it, at least 30 characters\n" \
		"artifacts [{path!; kind; note}]<=100: files that are the result; needed to complete\n" \
		"findings: one line of at most 200 characters\n" \
		"cautions: one line of at most 200 characters\n" \
		"next: one line of at most 200 characters\n"
#define DONE    "success! bool; tool!; path!"
#define WRITTEN DONE "; lines_written! int; total_lines! int; partial! bool"

static const struct tool tools[] = {
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = task_read,
	 .description = "Reads a text file of the task, whole or by lines or characters, at most 100 KiB at once.",
	 .args =
		PATH "\n"
		"start_line int>=1: first line, from 1\n"
		"end_line int>=1: last line\n"
		"start_char int>=1: first character, from 1\n"
		"end_char int>=1: last character",
	 .result =
		DONE "; content!; total_lines! int; total_chars! int; slice_hash!; "
		"start_line int; end_line int; start_char int; end_char int"},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file",
	 .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, .call = task_write,
	 .description = "Writes a file of the task and replaces its content.",
	 .args =
		PATH "\n"
		"content!: what to write",
	 .result = WRITTEN},
	{.name = "append_file", .title = "Append", .group = "files", .acts_as = "append_file", .call = task_append,
	 .description = "Appends text to a file on a new line, or creates the file.",
	 .args =
		PATH "\n"
		"content!: what to append",
	 .result = WRITTEN},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = task_edit,
	 .description = "Replaces a string that must occur exactly once, or every occurrence with replace_all.",
	 .args =
		PATH "\n"
		"old_string!: the exact string to replace\n"
		"new_string!: the string that replaces it\n"
		"replace_all bool: replace every occurrence (default false)",
	 .result = DONE "; replacements! int; total_lines int"},
	{.name = "list_directory", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = task_list,
	 .description = "Lists a directory of the task.",
	 .args =
		"path: directory (default /task)\n"
		"cursor: next_cursor of the previous page\n" WHICH,
	 .result =
		DONE "\n"
		"entries! [{name!; kind!; size_bytes! int; modified_at}]: in order\n"
		"total! int; next_cursor"},
	{.name = "exists", .title = "Exists", .group = "files", .acts_as = "exists", .traits = RO, .call = task_exists,
	 .description = "Tells whether there is a file or directory at a path.",
	 .args = PATH,
	 .result = DONE "; exists! bool; kind"},
	{.name = "read_image", .title = "Read an image", .group = "files", .acts_as = "read_file", .traits = RO, .call = task_image,
	 .description = "Reads an image of the task, at most 5 MiB.",
	 .args = PATH,
	 .result = DONE "; mime_type!; data!: base64"},
	{.name = "create_project_task", .title = "Create a task", .group = "board", .acts_as = "create_item", .call = wacht_create,
	 .description = "Puts a task on the board, with a filesystem of its own.",
	 .args =
		"title! str>=1<=300\n"
		"description str<=65536: the brief\n"
		"status pending|available|blocked|needs_clarification\n"
		"priority urgent|high|neutral|low\n"
		"child_of: the task that this one is a part of\n"
		"mounts [{mount_path!; s3_relative_key; source; mode ro|rw; description str<=512}]<=16: stores to show below /task\n"
		"checks [{path; min_size int>=0; json_schema obj; matches; command}]<=50: what must be true of files in the end\n"
		"metadata obj",
	 .result = RESULT},
	{.name = "update_project_task", .title = "Update a task", .group = "board", .acts_as = "update_item update_assignment",
	 .call = wacht_update,
	 .description =
		"Changes a task or its status. To complete it, give result_summary and artifacts; every artifact must exist. A lane that "
		"completes ends its own assignment.",
	 .args =
		"status pending|available|claimed|in_progress|completed|blocked|needs_clarification|rejected|failed|cancelled|"
		"waiting_for_children\n"
		HANDOFF
		"title str>=1<=300\n"
		"description str<=65536\n"
		"priority urgent|high|neutral|low\n"
		"metadata obj\n" WHICH,
	 .result = RESULT},
	{.name = "assign_project_task", .title = "Assign a task", .group = "board", .acts_as = "assign_item",
	 .traits = TOOL_IDEMPOTENT, .call = wacht_assign,
	 .description = "Assigns a task to a lane. TASK.md must have a brief of at least 5 lines and 120 characters.",
	 .args =
		"thread_id!: the lane\n"
		"role executor|reviewer|specialist_reviewer|approver|observer|coordinator\n"
		"instructions str<=65536\n"
		"handoff_file_path\n" WHICH,
	 .result = RESULT},
	{.name = "get_project_task", .title = "Show a task", .group = "board", .acts_as = "get_item", .traits = RO, .call = wacht_get,
	 .description = "Shows a task with its assignments, deliverables and the end of its journal.",
	 .args = WHICH,
	 .result = RESULT},
	{.name = "list_threads", .title = "List threads", .group = "board", .acts_as = "list_threads", .traits = RO,
	 .call = wacht_list_threads, .description = "Lists the lanes of the board.", .result = RESULT},
	{.name = "create_thread", .title = "Create a thread", .group = "board", .acts_as = "create_thread",
	 .call = wacht_create_thread,
	 .description = "Creates a lane. It is refused when another lane is responsible for nearly the same.",
	 .args =
		"title! str>=1<=200\n"
		"responsibility! str<=2000: at least 30 characters and 4 words\n"
		"assigned_agent_name! str<=200\n"
		"purpose conversation|coordinator|execution|review\n"
		"capability_tags [str]<=50\n"
		"reusable bool\n"
		"accepts_assignments bool\n"
		"system_instructions: at most 160 words and 1200 characters",
	 .result = RESULT},
	{.name = "update_thread", .title = "Update a thread", .group = "board", .acts_as = "update_thread",
	 .call = wacht_update_thread, .description = "Changes a lane.",
	 .args =
		"thread_id!\n"
		"status idle|running|waiting_for_input|interrupted|completed|failed\n"
		"title str>=1<=200\n"
		"responsibility str<=2000\n"
		"assigned_agent_name str<=200\n"
		"capability_tags [str]<=50\n"
		"reusable bool\n"
		"accepts_assignments bool\n"
		"system_instructions",
	 .result = RESULT},
	{.name = "subscribe_to_task", .title = "Subscribe to a task", .group = "board", .acts_as = "watch_item",
	 .traits = TOOL_IDEMPOTENT, .call = wacht_subscribe,
	 .description = "Tells a lane when a task is completed, blocked or cancelled.",
	 .args = "events [completed|blocked|cancelled]<=3: default all\nthread_id: the lane, when the session is not bound to one\n" WHICH,
	 .result = RESULT},
	{.name = "unsubscribe", .title = "Unsubscribe from a task", .group = "board", .acts_as = "watch_item",
	 .traits = TOOL_IDEMPOTENT, .call = wacht_unsubscribe, .description = "Ends a subscription.",
	 .args = "thread_id: the lane, when the session is not bound to one\n" WHICH,
	 .result = RESULT},
	{.name = "delegate_task", .title = "Delegate a task", .group = "board", .acts_as = "delegate_item", .call = wacht_delegate,
	 .description = "Creates a task for one lane alone.",
	 .args =
		"target_lane_thread_id!\n"
		"title! str>=1<=300\n"
		"description! str<=65536: scope and output, in at least 80 characters and 14 words",
	 .result = RESULT},
	{.name = "ask_user", .title = "Ask the user", .group = "board", .acts_as = "ask_user", .call = wacht_ask,
	 .description = "Asks the user about the task, which waits for the answer.",
	 .args =
		"questions! [{text! str>=1<=4000; id; kind free_text|single_choice|multi_choice|yes_no|number|date|confirm; "
		"options [str]}]>=1<=20\n" WHICH,
	 .result = RESULT},
	{.name = "notify_user", .title = "Notify the user", .group = "board", .acts_as = "notify_user", .call = wacht_notify,
	 .description = "Leaves a notice for the user.",
	 .args = "message! str>=1<=4000\n" WHICH,
	 .result = RESULT},
	{.name = "resolve_user_feedback", .title = "Resolve a comment", .group = "board", .acts_as = "resolve_comment",
	 .traits = TOOL_IDEMPOTENT, .call = wacht_resolve, .description = "Marks a comment of the user as resolved and says how.",
	 .args = "comment_id!\nresolution_summary! str>=1<=4000\n" WHICH,
	 .result = RESULT},
	{.name = "terminate_loop", .title = "Stop", .group = "board", .acts_as = "stop_work", .call = wacht_terminate,
	 .description = "Ends the run. It is refused while something is left undone, and says what.",
	 .args =
		"summary! str>=1<=4000\n"
		"artifacts [{path!; kind; note}]<=100\n"
		"blockers [str]<=100\n"
		"next_actions [str]<=100\n" WHICH,
	 .result = RESULT},
	{.name = "abort_task", .title = "Abort an assignment", .group = "board", .acts_as = "update_assignment", .call = wacht_abort,
	 .description = "Ends the assignment of the lane without a result.",
	 .args = "outcome! blocked|return_to_coordinator\nreason! str<=4000: at least 30 characters\n" WHICH,
	 .result = RESULT},
	{.name = "sleep", .title = "Wait", .traits = RO | TOOL_LONG, .call = wacht_sleep, .description = "Waits for some seconds.",
	 .args = "duration! int>=1<=10: seconds",
	 .result = RESULT},
	{.same_as = "web_search"},
	{.name = "url_content", .title = "Fetch a web page", .group = "web", .acts_as = "web_fetch",
	 .traits = RO | TOOL_OPEN_WORLD | TOOL_LONG, .call = tool_web_fetch, .render = render_web_page,
	 .description = "Fetches an http or https URL and returns it as text; HTML becomes Markdown.",
	 .args = "url!: http:// or https://"},
	{.same_as = "call_function"},
	{.name = "execute_command", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = wacht_execute,
	 .description = "Runs a shell command in a sandbox that sees the task's files at /task, and no network.",
	 .args =
		"command!: the command, for sh\n"
		"timeout_seconds int>=1: default 600, at most 1800",
	 .result = "success! bool; tool!; stdout!; stderr!; exit_code! int; truncated bool; remarks; problem"},
	{0},
};
/* clang-format on */

const struct dialect dialect_wacht = {
	.name = "wacht",
	.root = "task:default",
	.top = "/task",
	.tools = tools,
};
