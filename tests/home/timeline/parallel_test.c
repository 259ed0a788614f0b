/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes and one server with several threads change one small tree through the tools (write, append, edit,
 * move, copy, delete, undo), and are killed at random. Then the log is replayed against a model and against every
 * answer that was given:
 *
 *  - every acknowledged change has its records, once, under its own call, between the revisions at which the call began
 *    and ended; a refused call has none, and a killed one has all of its records or none;
 *  - each record begins with what the one before it left, and leaves what its call asked for;
 *  - what a call read, and that it found nothing, was true at some revision of that time;
 *  - no record is `outside`, and the files are what the last records say.
 *
 * STEAD_TEST_SECONDS makes it longer, STEAD_TEST_PROCESSES sets the number of processes besides the server.
 * STEAD_TEST_STORE names a store, which is left as it is at the end. STEAD_TEST_REDIS, STEAD_TEST_POSTGRES,
 * STEAD_TEST_MARIADB or STEAD_TEST_S3 name a server to run on instead of a disk.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "revisions/revisions.h"
#include "tool/tool_fix.h"

#define PROCESSES_MAX 32
#define THREADS       4
#define ATTEMPTS_MAX  2000000
#define KILL_EVERY    400 /* calls */
#define CALLS_MIN     1000

enum op {
	OP_WRITE,
	OP_APPEND,
	OP_EDIT,
	OP_MOVE,
	OP_MOVE_DIR,
	OP_COPY,
	OP_DELETE,
	OP_DELETE_DIR,
	OP_UNDO,
	OP_READ,
	OPS
};

/* "d" is now a file and now a directory, and moves make more paths. */
static const char *const paths[] = {"a", "b", "d/x", "d/y", "e/x", "e/y", "d", "f/x", "f/y", "e", "f"};
static const char *const dirs[] = {"d", "e", "f"};
#define PATHS     7 /* that calls name */
#define ALL_PATHS 11

/* A call: what it asked for and what the answer was. In memory that outlives its process. */
struct attempt {
	_Atomic int state; /* 1: begun, 2: answered */
	enum op op;
	uint32_t path, to;
	bool failed;
	enum err_kind kind;
	uint64_t before, after; /* the newest revision when it began, and when it ended */
	int64_t removed;
	char read[200]; /* what it read; an edit: what it replaces; refused: why */
};

struct shared {
	_Atomic uint64_t count;
	_Atomic bool stop;
	struct attempt attempts[ATTEMPTS_MAX];
};

static struct shared *shared;
static char url[400], space[40];
static bool directories; /* most calls move "d", make it a file, or write into it */

/* --- workers --- */

struct worker {
	struct workspace *ws;
	struct toolset *set;
	uint64_t seed;
	int role;
};

static uint64_t rng(struct worker *w, uint64_t below)
{
	uint64_t z = w->seed += 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (z ^ (z >> 31)) % below;
}

static uint64_t head_now(struct worker *w, struct ctx *ctx)
{
	uint64_t head = 0;
	struct err err;

	if (revisions_head(workspace_revisions(w->ws), ctx, &head, &err))
		_exit(3);
	return head;
}

static bool call_tool(struct worker *w, struct ctx *ctx, const char *tool, struct jv *args, struct tool_result *result)
{
	struct err err;

	if (toolset_call(w->set, ctx, str_of(tool), args, result, &err)) {
		fprintf(stderr, "%s: %s\n", tool, err.msg);
		_exit(4);
	}
	return !result->is_error;
}

/* The content of a path, if it can be read whole. */
static bool read_path(struct worker *w, struct ctx *ctx, const char *path, struct str *ret, struct tool_result *result)
{
	struct jv *args = jv_object(ctx->arena);

	jv_set_str(ctx->arena, args, "path", str_of(path));
	if (!call_tool(w, ctx, "read_file", args, result))
		return false;
	*ret = jv_get_str(result->value, "content");
	return ret->len < sizeof(shared->attempts[0].read);
}

static void set_content(struct ctx *ctx, struct jv *args, const char *key, char kind, uint64_t index)
{
	jv_set_str(ctx->arena, args, key, arena_printf(ctx->arena, "%c%llu\n", kind, (unsigned long long)index));
}

/* The arguments of a call; returns the tool's name, NULL when there is nothing to do. */
static const char *arguments(struct worker *w, struct ctx *ctx, struct attempt *a, uint64_t index, struct jv *args)
{
	static const char *const tools[OPS] = {"write_file", "write_file",  "edit_file",   "move_file", "move_file",
					       "copy_file",  "delete_file", "delete_file", "undo",      "read_file"};
	struct arena *arena = ctx->arena;
	struct tool_result result;
	struct str text;
	bool two = a->op == OP_MOVE || a->op == OP_MOVE_DIR || a->op == OP_COPY;
	bool is_dir = a->op == OP_MOVE_DIR || a->op == OP_DELETE_DIR;

	if (a->op != OP_UNDO)
		jv_set_str(arena, args, two ? "from" : "path", str_of(is_dir ? dirs[a->path % 3] : paths[a->path]));
	if (two)
		jv_set_str(arena, args, "to", str_of(is_dir ? dirs[a->to % 3] : paths[a->to]));
	if (a->op == OP_MOVE || a->op == OP_COPY)
		jv_set_bool(arena, args, "overwrite", true);
	if (a->op == OP_DELETE_DIR)
		jv_set_bool(arena, args, "recursive", true);
	if (a->op == OP_WRITE || a->op == OP_APPEND) {
		set_content(ctx, args, "content", a->op == OP_WRITE ? 'w' : 'a', index);
		jv_set_str(arena, args, "mode", a->op == OP_WRITE ? STR("overwrite") : STR("append"));
	}
	if (a->op == OP_EDIT) {
		if (!read_path(w, ctx, paths[a->path], &text, &result) || text.len == 0)
			return NULL;
		snprintf(a->read, sizeof(a->read), "%.*s", STR_ARG(text));
		jv_set_str(arena, args, "old_text", text);
		set_content(ctx, args, "new_text", 'e', index);
	}
	return tools[a->op];
}

static enum op choose_op(struct worker *w)
{
	static const enum op often[] = {OP_WRITE, OP_WRITE,    OP_WRITE, OP_APPEND, OP_APPEND, OP_EDIT,
					OP_MOVE,  OP_MOVE,     OP_COPY,  OP_DELETE, OP_DELETE, OP_DELETE_DIR,
					OP_READ,  OP_MOVE_DIR, OP_UNDO,  OP_READ};

	return often[rng(w, COUNT(often))];
}

/* What a call does, and which paths of the table it names. */
static void choose(struct worker *w, struct attempt *a)
{
	a->op = choose_op(w);
	/* "d" may be a directory, and a move of it one of more than two files */
	a->path = (uint32_t)rng(w, a->op == OP_MOVE || a->op == OP_COPY ? PATHS - 1 : PATHS);
	a->to = (a->path + 1 + (uint32_t)rng(w, PATHS - 1)) % PATHS;
	if (a->op == OP_MOVE_DIR && a->path % 3 == a->to % 3)
		a->to++;
}

/* Most workers do one thing: move "d" to "e" or back, make "d" a file, or write into it. */
static void choose_by_role(struct worker *w, struct attempt *a)
{
	uint32_t side = (uint32_t)rng(w, 2);

	if (w->role % 4 == 0)
		*a = (struct attempt){.op = OP_MOVE_DIR, .path = side, .to = 1 - side};
	else if (w->role % 4 == 1)
		*a = (struct attempt){.op = side ? OP_WRITE : OP_DELETE, .path = PATHS - 1};
	else if (w->role % 4 == 2)
		*a = (struct attempt){.op = OP_WRITE, .path = 2 + side};
	else
		choose(w, a);
}

static void work_once(struct worker *w)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	uint64_t index = atomic_fetch_add(&shared->count, 1);
	struct attempt *a = &shared->attempts[index];
	struct ctx ctx = {.arena = arena};
	struct tool_result result = {0};
	struct jv *args = jv_object(arena);
	const char *tool;

	if (index >= ATTEMPTS_MAX) {
		shared->stop = true;
		return;
	}
	if (directories)
		choose_by_role(w, a);
	else
		choose(w, a);
	a->before = head_now(w, &ctx);
	tool = arguments(w, &ctx, a, index, args);
	if (!tool)
		return;
	ctx.actor.call_id = arena_printf(arena, "c%llu", (unsigned long long)index);
	a->state = 1;
	call_tool(w, &ctx, tool, args, &result);
	a->failed = result.is_error;
	a->kind = result.err.kind;
	if (a->failed && a->op != OP_EDIT)
		snprintf(a->read, sizeof(a->read), "%.*s", STR_ARG(result.text));
	if (!a->failed && a->op == OP_DELETE_DIR)
		a->removed = jv_get_int(result.value, "removed", -1);
	if (!a->failed && a->op == OP_READ)
		snprintf(a->read, sizeof(a->read), "%.*s", STR_ARG(jv_get_str(result.value, "content")));
	a->after = head_now(w, &ctx);
	a->state = 2;
}

static void *work(void *arg)
{
	while (!shared->stop)
		work_once(arg);
	return NULL;
}

static struct workspace_opts opts_of(bool create)
{
	/* a kill is not a power cut: without syncs there are more calls; with them, more happens between two steps of
	 * one */
	return (struct workspace_opts){
		.store_url = str_of(url), .name = str_of(space), .create = create, .relaxed = !directories};
}

static _Noreturn void live(int id, uint64_t seed)
{
	struct workspace_opts opts = opts_of(false);
	struct worker w[THREADS] = {{.seed = seed, .role = id}};
	pthread_t threads[THREADS];
	struct err err;

	if (workspace_open(&opts, &w[0].ws, &err) || toolset_new(w[0].ws, STR_NONE, &w[0].set, &err)) {
		fprintf(stderr, "process %d: %s\n", id, err.msg);
		_exit(2);
	}
	for (int i = 1; id == 0 && i < THREADS; i++) {
		w[i] = w[0];
		w[i].seed += (uint64_t)i * 7919;
		w[i].role = i;
		if (pthread_create(&threads[i], NULL, work, &w[i]))
			_exit(2);
	}
	work(&w[0]);
	for (int i = 1; id == 0 && i < THREADS; i++)
		pthread_join(threads[i], NULL);
	toolset_destroy(w[0].set);
	workspace_close(w[0].ws);
	_exit(0);
}

static pid_t start(int id, uint64_t seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		live(id, seed);
	return pid;
}

static void expect_end(pid_t pid, bool killed)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (!(killed && WIFSIGNALED(status)))
		CHECK_INT(status, 0);
}

/* Lets them all work for so long, and for CALLS_MIN calls on a slow server, killing one after every KILL_EVERY calls.
   Returns the number of kills. */
static unsigned run_all(int64_t seconds)
{
	int64_t end = clock_monotonic_ns() + seconds * NS_PER_S;
	struct worker dice = {.seed = (uint64_t)clock_real_ns()};
	uint64_t seed = dice.seed, next = KILL_EVERY;
	const char *given = getenv("STEAD_TEST_PROCESSES");
	int count = 1 + (given ? (int)strtol(given, NULL, 10) : 4); /* the first one is the server */
	pid_t pids[PROCESSES_MAX];
	unsigned kills = 0;

	CHECK(count > 1 && count <= PROCESSES_MAX);
	printf("# seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < count; i++)
		pids[i] = start(i, rng(&dice, UINT64_MAX));
	while ((clock_monotonic_ns() < end || shared->count < CALLS_MIN) && !shared->stop) {
		int victim = (int)rng(&dice, (uint64_t)count);

		if (shared->count < next) {
			poll(NULL, 0, 2);
			continue;
		}
		next = shared->count + KILL_EVERY;
		kill(pids[victim], SIGKILL);
		expect_end(pids[victim], true);
		pids[victim] = start(victim, rng(&dice, UINT64_MAX));
		kills++;
	}
	shared->stop = true;
	for (int i = 0; i < count; i++)
		expect_end(pids[i], false);
	return kills;
}

/* --- the check --- */

/* What a path was after a revision. */
struct then {
	uint64_t revision;
	struct str text; /* ptr NULL: it did not exist */
};

struct model {
	struct arena *arena;
	struct then *past[ALL_PATHS]; /* of each path, oldest first, from revision 0 on */
	size_t count[ALL_PATHS], cap[ALL_PATHS];
	struct strmap *contents; /* every text that there was, by its checksum */
	struct str *texts;
	size_t text_count, text_cap;
	struct str moving; /* what a move takes with it */
	uint16_t *records; /* of each attempt */
	uint64_t *first, *last;
	uint64_t seen[OPS][3]; /* attempts: begun, acknowledged, refused */
};

static size_t path_index(struct str path)
{
	for (size_t i = 0; i < ALL_PATHS; i++)
		if (str_is(path, paths[i]))
			return i;
	TEST_FAIL("a record of \"%.*s\", which no call has named", STR_ARG(path));
}

static struct str text_key(struct model *m, struct str text)
{
	uint64_t sum[2];

	hash_u128(text, sum);
	return arena_printf(m->arena, "%016llx%016llx", (unsigned long long)sum[0], (unsigned long long)sum[1]);
}

static void remember(struct model *m, struct str text)
{
	bool added;
	size_t *at = strmap_put(m->contents, text_key(m, text), &added);

	if (!added)
		return;
	HEAP_ROOM(m->texts, m->text_count, m->text_cap);
	*at = m->text_count;
	m->texts[m->text_count++] = text;
}

static void set_then(struct model *m, size_t path, uint64_t revision, struct str text)
{
	HEAP_ROOM(m->past[path], m->count[path], m->cap[path]);
	m->past[path][m->count[path]++] = (struct then){revision, text};
	if (text.ptr)
		remember(m, text);
}

static struct str text_now(struct model *m, size_t path)
{
	return m->past[path][m->count[path] - 1].text;
}

static void check_state(const struct revision *r, const struct rev_state *s, struct str text, const char *which)
{
	struct rev_hashing *h;
	bool same;

	if (s->exists != (text.ptr != NULL))
		TEST_FAIL("revision %llu (%s %.*s): %s it, the path %s (call %.*s)", (unsigned long long)r->number,
			  rev_op_name(r->op), STR_ARG(r->path.s), which, text.ptr ? "exists" : "does not exist",
			  STR_ARG(r->actor.call_id));
	if (!s->exists)
		return;
	h = rev_hashing_begin(&s->hash);
	rev_hashing_add(h, text);
	same = rev_hashing_end(h);
	if (s->size != text.len || (rev_hash_is_set(&s->hash) && !same))
		TEST_FAIL("revision %llu (%s %.*s): %s it, the path has \"%.*s\", not %llu other bytes (call %.*s)",
			  (unsigned long long)r->number, rev_op_name(r->op), STR_ARG(r->path.s), which, STR_ARG(text),
			  (unsigned long long)s->size, STR_ARG(r->actor.call_id));
}

/* The attempt that a record belongs to. */
static uint64_t attempt_of(const struct revision *r)
{
	struct str id = r->actor.call_id, part;
	int64_t index = -1;

	while (str_cut(&id, ':', &part) && id.len) /* "undo:12:c7" */
		continue;
	id = id.len ? id : part;
	if (r->op == REV_OUTSIDE || id.len < 2 || !str_to_i64(str_from(id, 1), &index) || index < 0 ||
	    (uint64_t)index >= shared->count || shared->attempts[index].state == 0)
		TEST_FAIL("revision %llu (%s %.*s) is of no call: \"%.*s\"", (unsigned long long)r->number,
			  rev_op_name(r->op), STR_ARG(r->path.s), STR_ARG(r->actor.call_id));
	return (uint64_t)index;
}

/* What an undo wrote: a text that there was before. */
static struct str text_of_undo(struct model *m, const struct revision *r)
{
	if (!r->after.exists)
		return STR_NONE;
	for (size_t i = m->text_count; i-- > 0;) {
		struct rev_hashing *h;
		bool same;

		if (m->texts[i].len != r->after.size)
			continue;
		h = rev_hashing_begin(&r->after.hash);
		rev_hashing_add(h, m->texts[i]);
		same = rev_hashing_end(h);
		if (same)
			return m->texts[i];
	}
	TEST_FAIL("revision %llu: an undo brought %.*s something that never was", (unsigned long long)r->number,
		  STR_ARG(r->path.s));
}

/* What the record of a call must leave. */
static struct str text_after(struct model *m, const struct revision *r, uint64_t index, size_t path)
{
	static const enum rev_op ops[OPS] = {REV_WRITE, REV_APPEND, REV_WRITE,  REV_MOVE, REV_MOVE,
					     REV_COPY,  REV_REMOVE, REV_REMOVE, REV_OPS,  REV_OPS};
	struct attempt *a = &shared->attempts[index];
	struct str now = text_now(m, path);
	unsigned long long n = index;

	if (a->op == OP_UNDO)
		return text_of_undo(m, r);
	if (r->op != ops[a->op])
		TEST_FAIL("revision %llu is a %s of %s", (unsigned long long)r->number, rev_op_name(r->op),
			  rev_op_name(ops[a->op]));
	switch (a->op) {
	case OP_WRITE:
		return arena_printf(m->arena, "w%llu\n", n);
	case OP_EDIT: {
		struct str old = str_of(a->read); /* others may have appended to it since */
		size_t at = now.ptr ? str_find(now, old, 0) : now.len;

		return at >= now.len ? STR_NONE
				     : arena_printf(m->arena, "%.*se%llu\n%.*s", STR_ARG(str_first(now, at)), n,
						    STR_ARG(str_from(now, at + old.len)));
	}
	case OP_APPEND:
		return arena_printf(m->arena, "%.*sa%llu\n", STR_ARG(now), n);
	case OP_COPY:
		return text_now(m, path_index(str_from(r->other, 6)));
	case OP_MOVE:
	case OP_MOVE_DIR:
		if (r->after.exists)
			return m->moving;
		m->moving = now;
		return STR_NONE;
	default:
		return STR_NONE;
	}
}

static void replay(struct model *m, const struct revision *r)
{
	uint64_t index = attempt_of(r);
	size_t path = path_index(str_from(r->path.s, 6)); /* without "files/" */
	struct str text;

	check_state(r, &r->before, text_now(m, path), "before");
	text = text_after(m, r, index, path);
	check_state(r, &r->after, text, "after");
	set_then(m, path, r->number, text);
	m->records[index]++;
	if (!m->first[index])
		m->first[index] = r->number;
	m->last[index] = r->number;
}

static bool is_text(struct str have, struct str text)
{
	return (have.ptr != NULL) == (text.ptr != NULL) && str_eq(have, text);
}

static bool is_without(struct str have, struct str text)
{
	return !have.ptr || str_find(have, text, 0) >= have.len;
}

/* True when `fits` for the path at a revision of the call's time. The newest record may have been logged and not made
   when the call began, so the one before it counts as well. */
static bool was(struct model *m, size_t path, const struct attempt *a, bool (*fits)(struct str have, struct str text),
		struct str text)
{
	size_t i = m->count[path], late = 0;

	while (i-- > 0 && late < 2) {
		const struct then *t = &m->past[path][i];

		if (t->revision > a->after)
			continue;
		if (fits(t->text, text))
			return true;
		late += t->revision <= a->before;
	}
	return false;
}

static void check_answer(struct model *m, uint64_t index)
{
	struct attempt *a = &shared->attempts[index];
	uint16_t n = m->records[index];
	bool one =
		a->op == OP_WRITE || a->op == OP_APPEND || a->op == OP_EDIT || a->op == OP_COPY || a->op == OP_DELETE;
	bool good = true;

	m->seen[a->op][0]++;
	if (a->state == 1) /* killed: all or nothing, as far as one file is concerned */
		good = one ? n <= 1 : a->op == OP_MOVE ? n == 0 || n == 2 : true;
	else if (a->failed)
		good = n == 0 || a->op == OP_MOVE_DIR || a->op == OP_DELETE_DIR || a->op == OP_UNDO;
	else if (a->op == OP_DELETE_DIR)
		good = n == a->removed;
	else if (a->op != OP_READ)
		good = one ? n == 1 : a->op == OP_MOVE ? n == 2 : n >= 1;
	if (!good)
		TEST_FAIL("call %llu (operation %d, %s %d): %d records", (unsigned long long)index, (int)a->op,
			  a->state == 1 ? "killed"
			  : a->failed   ? "refused"
					: "acknowledged",
			  (int)a->kind, (int)n);
	if (a->state == 1)
		return;
	m->seen[a->op][a->failed ? 2 : 1]++;
	if (n && (m->first[index] <= a->before || m->last[index] > a->after))
		TEST_FAIL("call %llu ran from revision %llu to %llu, and its records are %llu to %llu",
			  (unsigned long long)index, (unsigned long long)a->before, (unsigned long long)a->after,
			  (unsigned long long)m->first[index], (unsigned long long)m->last[index]);
	if (a->op == OP_READ && !a->failed && !was(m, a->path, a, is_text, str_of(a->read)))
		TEST_FAIL("call %llu read \"%s\" from %s, which it was not at the time", (unsigned long long)index,
			  a->read, paths[a->path]);
	if (a->failed && a->kind == ERR_NOT_FOUND && a->op != OP_UNDO && a->op != OP_MOVE_DIR &&
	    a->op != OP_DELETE_DIR &&
	    !(a->op == OP_EDIT ? was(m, a->path, a, is_without, str_of(a->read))
			       : was(m, a->path, a, is_text, STR_NONE)))
		TEST_FAIL("call %llu (operation %d) did not find %s, which existed all the time from revision %llu to "
			  "%llu: %s",
			  (unsigned long long)index, (int)a->op, paths[a->path], (unsigned long long)a->before,
			  (unsigned long long)a->after, a->read);
}

static void check_files(struct model *m, struct workspace *ws, struct ctx *ctx)
{
	struct store *files = workspace_files(ws);
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	size_t count = 0;
	struct err err;

	for (size_t i = 0; i < ALL_PATHS; i++) {
		struct str bytes = STR_NONE, want = text_now(m, i);
		int r = store_read(files, ctx, (struct wpath){str_of(paths[i])}, STORE_WHOLE, MIB, &bytes, NULL, &err);

		CHECK(want.ptr ? r == 0 : r == -ERR_NOT_FOUND || r == -ERR_INVALID); /* a directory */
		CHECK_STR(bytes, want);
		count += want.ptr != NULL;
	}
	CHECK_OK(store_list(files, ctx, WPATH_ROOT, &req, &page, &err), err);
	CHECK_INT(page.count, count);
}

static void check_all(struct model *m, unsigned kills)
{
	struct workspace_opts opts = opts_of(false);
	struct ctx ctx = {.arena = m->arena};
	struct rev_query query = {.path = {STR("files")}};
	struct workspace *ws;
	struct revision *list;
	uint64_t noticed, acknowledged = 0;
	size_t count;
	struct err err;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	test_defer(workspace_close, ws);
	CHECK_OK(revisions_notice(workspace_revisions(ws), &ctx, WPATH_ROOT, &noticed, &err), err);
	CHECK_INT(noticed, 0);
	CHECK_OK(revisions_query(workspace_revisions(ws), &ctx, &query, &list, &count, NULL, &err), err);
	for (size_t i = 0; i < ALL_PATHS; i++)
		set_then(m, i, 0, STR_NONE);
	for (size_t i = 0; i < count; i++)
		replay(m, &list[i]);
	for (uint64_t i = 0; i < shared->count && i < ATTEMPTS_MAX; i++)
		if (shared->attempts[i].state)
			check_answer(m, i);
	check_files(m, ws, &ctx);
	for (int i = 0; i < OPS; i++)
		acknowledged += m->seen[i][1];
	printf("# %llu calls, %llu acknowledged, %zu revisions, %u kills\n", (unsigned long long)shared->count,
	       (unsigned long long)acknowledged, count, kills);
	for (int i = 0; i < OPS; i++) /* by role, few calls are of the rarer kinds */
		CHECK(m->seen[i][1] > 0 || (directories && i != OP_WRITE));
}

/* The server that the environment names; ptr NULL: none. */
static struct str server_url(struct arena *arena)
{
	static const char *const names[] = {"STEAD_TEST_REDIS", "STEAD_TEST_POSTGRES", "STEAD_TEST_MARIADB"};
	const char *s3 = getenv("STEAD_TEST_S3");

	for (size_t i = 0; i < COUNT(names); i++)
		if (getenv(names[i]))
			return str_of(getenv(names[i]));
	if (!s3)
		return STR_NONE;
	setenv("AWS_ACCESS_KEY_ID", getenv("STEAD_TEST_S3_KEY"), 1);
	setenv("AWS_SECRET_ACCESS_KEY", getenv("STEAD_TEST_S3_SECRET"), 1);
	setenv("AWS_REGION", "us-east-1", 1);
	return arena_printf(arena, "s3://stead-test/%s?create=1&endpoint=%s", space, s3);
}

static void make_place(struct arena *arena)
{
	const char *given = getenv("STEAD_TEST_STORE");
	struct str server;

	snprintf(space, sizeof(space), "parallel-%d%s", (int)getpid(), directories ? "-dirs" : "");
	server = given ? str_of(given) : server_url(arena);
	if (server.ptr)
		snprintf(url, sizeof(url), "%.*s", STR_ARG(server));
	else
		snprintf(url, sizeof(url), "disk:%s", temp_dir_new());
}

static void run_and_check(void)
{
	const char *seconds = getenv("STEAD_TEST_SECONDS");
	struct workspace_opts opts;
	struct model m = {.arena = arena_new()};
	struct workspace *ws;
	struct err err;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(shared != MAP_FAILED);
	test_defer(arena_destroy, m.arena);
	make_place(m.arena);
	opts = opts_of(true);
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	workspace_close(ws);
	m.contents = strmap_new(m.arena);
	m.records = xcalloc(ATTEMPTS_MAX, sizeof(*m.records));
	m.first = xcalloc(ATTEMPTS_MAX, sizeof(*m.first));
	m.last = xcalloc(ATTEMPTS_MAX, sizeof(*m.last));
	check_all(&m, run_all(seconds ? strtol(seconds, NULL, 10) : 5));
	for (size_t i = 0; i < ALL_PATHS; i++)
		free(m.past[i]);
	free(m.texts);
	free(m.records);
	free(m.first);
	free(m.last);
	munmap(shared, sizeof(*shared));
}

TEST(the_log_explains_every_answer_that_processes_and_a_server_gave_on_one_tree)
{
	run_and_check();
}

TEST(the_log_explains_moves_of_directories_onto_what_others_make_files)
{
	directories = true;
	run_and_check();
}
