/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated operations against a reference: a sorted array of files, in which the contract is written down a second
 * time in the plainest way. Every answer of every store is compared with the reference's. A sequence that differs is
 * shrunk to the shortest one that still does, and printed. STEAD_TEST_SEED repeats a run; it is printed at its start.
 *
 * Where a call is wrong in two ways at once, either error is right: the reference gives the set of those allowed.
 */
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/plain_fix.h"
#include "store/store_fix.h"

#define FILES_MAX 64
#define OPS       160
#define BYTES_MAX 40

struct op {
	enum store_op op;
	char path[24], to[24];
	char bytes[BYTES_MAX];
	size_t len;
	int cond, to_cond; /* 0 any, 1 absent, 2 the current version, 3 one that never was */
	bool recursive;
	struct store_range range;
	size_t limit;
};

struct file {
	char path[48];
	char bytes[4096];
	size_t len;
	char version[80];
};

struct model {
	struct file files[FILES_MAX];
	size_t count;
};

struct stack {
	const char *name;
	struct store *(*open)(void);
	bool with_template; /* starts with template_files in it, from a store below */
};

static const char *const template_files[] = {"a/b", "b", "a-/a/a", "a-/b"};

/* Random numbers that are the same everywhere. */
static uint64_t rng_state;

static uint64_t rng(uint64_t below)
{
	rng_state += 0x9E3779B97F4A7C15u;
	uint64_t z = rng_state;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (z ^ (z >> 31)) % below;
}

/* The reference. */

static struct file *m_find(struct model *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->files[i].path, path) == 0)
			return &m->files[i];
	return NULL;
}

static bool m_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (strncmp(path, dir, n) == 0 && path[n] == '/');
}

static bool m_is_dir(const struct model *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (m_below(m->files[i].path, path))
			return true;
	return path[0] == '\0';
}

static struct file *m_add(struct model *m, const char *path)
{
	size_t at = 0;

	if (m->count == FILES_MAX)
		abort();
	while (at < m->count && strcmp(m->files[at].path, path) < 0)
		at++;
	memmove(&m->files[at + 1], &m->files[at], (m->count - at) * sizeof(m->files[0]));
	memset(&m->files[at], 0, sizeof(m->files[at]));
	snprintf(m->files[at].path, sizeof(m->files[at].path), "%s", path);
	m->count++;
	return &m->files[at];
}

static void m_drop(struct model *m, const char *path)
{
	size_t at = (size_t)(m_find(m, path) - m->files);

	memmove(&m->files[at], &m->files[at + 1], (m->count - at - 1) * sizeof(m->files[0]));
	m->count--;
}

/* Errors that are allowed, as bits; bit 0: success. */
#define BIT(kind) (1u << (kind))

static unsigned m_cond(const struct file *f, int cond)
{
	if (cond == 1 && f)
		return BIT(ERR_EXISTS);
	if (cond == 3 || (cond == 2 && !f))
		return BIT(ERR_CONFLICT);
	return 0;
}

static unsigned m_place(struct model *m, const char *path)
{
	unsigned bad = m_is_dir(m, path) ? BIT(ERR_INVALID) : 0;

	for (size_t i = 0; i < m->count; i++)
		if (m_below(path, m->files[i].path))
			bad |= BIT(ERR_INVALID);
	return bad;
}

static unsigned m_source(struct model *m, const char *path, int cond)
{
	struct file *f = m_find(m, path);

	if (f)
		return m_cond(f, cond);
	if (!m_is_dir(m, path))
		return cond >= 2 ? BIT(ERR_CONFLICT) : BIT(ERR_NOT_FOUND);
	return cond ? BIT(ERR_INVALID) | BIT(ERR_CONFLICT) : 0;
}

static bool nested(const char *a, const char *b)
{
	return strcmp(a, b) == 0 || m_below(a, b) || m_below(b, a);
}

static unsigned m_two(struct model *m, const struct op *op)
{
	struct file *to = m_find(m, op->to);
	unsigned bad = m_place(m, op->to) | m_cond(to, op->to_cond);

	if (nested(op->path, op->to))
		return BIT(ERR_INVALID);
	if (op->op == STORE_OP_MOVE)
		bad |= m_source(m, op->path, op->cond);
	else if (!m_find(m, op->path))
		bad |= m_is_dir(m, op->path) ? BIT(ERR_INVALID) : BIT(ERR_NOT_FOUND);
	if (m_is_dir(m, op->path) && to)
		bad |= BIT(ERR_INVALID);
	return bad;
}

static unsigned m_errors(struct model *m, const struct op *op)
{
	bool dir = m_is_dir(m, op->path);
	struct file *f = m_find(m, op->path);

	switch (op->op) {
	case STORE_OP_STAT:
		return f || dir ? 0 : BIT(ERR_NOT_FOUND);
	case STORE_OP_READ:
		return f ? 0 : dir ? BIT(ERR_INVALID) : BIT(ERR_NOT_FOUND);
	case STORE_OP_LIST:
	case STORE_OP_SCAN:
		return dir ? 0 : f ? BIT(ERR_INVALID) : BIT(ERR_NOT_FOUND);
	case STORE_OP_WRITE:
	case STORE_OP_APPEND:
		return m_place(m, op->path) | m_cond(f, op->cond);
	case STORE_OP_REMOVE:
		return m_source(m, op->path, op->cond) | (dir && !op->recursive ? BIT(ERR_INVALID) : 0);
	default:
		return m_two(m, op);
	}
}

/* Running one operation on a store and, if it may succeed, on the reference. */

struct run {
	struct conf c;
	struct model m;
	const struct stack *stack;
	char why[1200];
};

#define DIFFERS(...) (snprintf(r->why, sizeof(r->why), __VA_ARGS__), false)

static void set_version(struct file *f, struct str version)
{
	snprintf(f->version, sizeof(f->version), "%.*s", STR_ARG(version));
}

static struct store_cond cond_of(struct run *r, const char *path, int cond)
{
	struct file *f = m_find(&r->m, path);

	if (cond == 2)
		return VERS(f ? str_of(f->version) : STR("gone"));
	return cond == 3 ? VERS(STR("never")) : cond == 1 ? ABSENT : ANY;
}

/* The store's answer to the operation, and its outputs. */
struct answer {
	int r;
	struct store_stat stat;
	struct str text; /* bytes, or a list */
	uint64_t count;
};

static int list_text(struct run *r, const struct op *op, struct str *ret)
{
	struct store_list_req req = {.recursive = op->recursive, .limit = op->limit};
	struct store_page page;
	struct buf out;

	buf_init(&out, r->c.ctx.arena, MIB);
	do {
		int e = store_list(r->c.s, &r->c.ctx, P(op->path), &req, &page, &r->c.err);

		if (e)
			return e;
		for (size_t i = 0; i < page.count; i++) {
			struct store_entry *x = &page.entries[i];

			buf_printf(&out, "%.*s%s %zu %.*s\n", STR_ARG(x->path.s), x->stat.kind == STORE_DIR ? "/" : "",
				   (size_t)x->stat.size, STR_ARG(x->stat.version));
		}
		req.after = page.next;
	} while (page.next.ptr);
	*ret = buf_str(&out);
	return 0;
}

static int scan_text(struct run *r, const struct op *op, struct str *ret)
{
	struct seen seen = {.order_ok = true};
	struct scan_req req = {.contents = op->recursive, .threads = 1, .visit = seen_visit, .arg = &seen};
	int e;

	if (op->limit % 2)
		return gather(&r->c, op->path, op->recursive, false, ret);
	buf_init(&seen.out, r->c.ctx.arena, MIB);
	e = store_scan(r->c.s, &r->c.ctx, P(op->path), &req, &r->c.err);
	*ret = seen.order_ok ? buf_str(&seen.out) : STR("out of order");
	return e;
}

static struct answer ask(struct run *r, const struct op *op)
{
	struct store_cond cond = cond_of(r, op->path, op->cond), to_cond = cond_of(r, op->to, op->to_cond);
	struct str bytes = str_n(op->bytes, op->len);
	struct ctx *ctx = &r->c.ctx;
	struct store *s = r->c.s;
	struct err *err = &r->c.err;
	struct answer a = {0};

	switch (op->op) {
	case STORE_OP_STAT:
		a.r = store_stat(s, ctx, P(op->path), &a.stat, err);
		break;
	case STORE_OP_READ:
		a.r = store_read(s, ctx, P(op->path), op->range, MIB, &a.text, &a.stat, err);
		break;
	case STORE_OP_WRITE:
		a.r = store_write(s, ctx, P(op->path), bytes, cond, &a.stat, err);
		break;
	case STORE_OP_APPEND:
		a.r = store_append(s, ctx, P(op->path), bytes, cond, &a.stat, err);
		break;
	case STORE_OP_REMOVE:
		a.r = store_remove(s, ctx, P(op->path), op->recursive, cond, &a.count, err);
		break;
	case STORE_OP_MOVE:
		a.r = store_move(s, ctx, P(op->path), P(op->to), cond, to_cond, &a.stat, err);
		break;
	case STORE_OP_COPY:
		a.r = store_copy(s, ctx, P(op->path), P(op->to), to_cond, &a.stat, err);
		break;
	case STORE_OP_LIST:
		a.r = list_text(r, op, &a.text);
		break;
	default:
		a.r = scan_text(r, op, &a.text);
	}
	return a;
}

static struct str m_list_text(struct run *r, const struct op *op)
{
	char last[50] = "";
	struct buf out;

	buf_init(&out, r->c.ctx.arena, MIB);
	for (size_t i = 0; i < r->m.count; i++) {
		struct file *f = &r->m.files[i];
		size_t skip = op->path[0] ? strlen(op->path) + 1 : 0;
		const char *slash = m_below(f->path, op->path) ? strchr(f->path + skip, '/') : NULL;

		if (!m_below(f->path, op->path))
			continue;
		if (op->recursive || !slash) {
			buf_printf(&out, "%s %zu %s\n", f->path, f->len, f->version);
		} else if (strncmp(last, f->path, (size_t)(slash - f->path) + 1) != 0) {
			snprintf(last, sizeof(last), "%.*s/", (int)(slash - f->path), f->path);
			buf_printf(&out, "%s 0 \n", last);
		}
	}
	return buf_str(&out);
}

static struct str m_scan_text(struct run *r, const struct op *op)
{
	struct buf out;

	buf_init(&out, r->c.ctx.arena, MIB);
	for (size_t i = 0; i < r->m.count; i++) {
		struct file *f = &r->m.files[i];

		if (!m_below(f->path, op->path))
			continue;
		buf_printf(&out, "%s%s%s", out.len ? " " : "", f->path, op->recursive && f->len ? ":" : "");
		if (op->recursive)
			buf_add(&out, str_n(f->bytes, f->len));
	}
	return buf_str(&out);
}

static bool check_text(struct run *r, struct str got, struct str want)
{
	return str_eq(got, want) || DIFFERS("gave \"%.*s\", expected \"%.*s\"", STR_ARG(got), STR_ARG(want));
}

/* Applies the operation to the reference and compares the store's outputs. */

static bool apply_put(struct run *r, const struct op *op, const struct answer *a)
{
	struct file *f = m_find(&r->m, op->path);
	const char *from = op->bytes;
	size_t len = op->len;

	if (op->op == STORE_OP_COPY) {
		struct file copy = *m_find(&r->m, op->path);

		f = m_find(&r->m, op->to);
		f = f ? f : m_add(&r->m, op->to);
		memcpy(f->bytes, copy.bytes, copy.len);
		f->len = copy.len;
	} else {
		f = f ? f : m_add(&r->m, op->path);
		if (op->op == STORE_OP_WRITE)
			f->len = 0;
		memcpy(f->bytes + f->len, from, len);
		f->len += len;
	}
	if (a->stat.size != f->len || a->stat.kind != STORE_FILE)
		return DIFFERS("answered with size %zu, expected %zu", (size_t)a->stat.size, f->len);
	if (str_is(a->stat.version, f->version) && f->len != a->stat.size)
		return DIFFERS("kept the version %s", f->version);
	set_version(f, a->stat.version);
	return true;
}

static bool apply_remove(struct run *r, const struct op *op, const struct answer *a)
{
	uint64_t count = 0;

	for (size_t i = r->m.count; i > 0; i--) {
		struct file *f = &r->m.files[i - 1];

		if (strcmp(f->path, op->path) == 0 || m_below(f->path, op->path)) {
			m_drop(&r->m, f->path);
			count++;
		}
	}
	return a->count == count || DIFFERS("removed %zu, expected %zu", (size_t)a->count, (size_t)count);
}

static bool rename_file(struct run *r, struct file moved, const char *to)
{
	struct store_stat st;
	struct file *f;

	if (m_find(&r->m, to))
		m_drop(&r->m, to);
	m_drop(&r->m, moved.path);
	f = m_add(&r->m, to);
	memcpy(f->bytes, moved.bytes, moved.len);
	f->len = moved.len;
	if (store_stat(r->c.s, &r->c.ctx, P(to), &st, &r->c.err))
		return DIFFERS("moved %s, then: %s", moved.path, r->c.err.msg);
	set_version(f, st.version);
	return true;
}

static bool apply_move(struct run *r, const struct op *op)
{
	size_t n = strlen(op->path);
	struct model before = r->m;
	char to[48];

	for (size_t i = 0; i < before.count; i++) {
		struct file *f = &before.files[i];

		if (strcmp(f->path, op->path) != 0 && !m_below(f->path, op->path))
			continue;
		snprintf(to, sizeof(to), "%.20s%.20s", op->to, f->path + n);
		if (!rename_file(r, *f, to))
			return false;
	}
	return true;
}

static bool apply(struct run *r, const struct op *op, const struct answer *a)
{
	struct file *f = m_find(&r->m, op->path);
	size_t from, len;

	switch (op->op) {
	case STORE_OP_STAT:
		if (a->stat.kind != (f ? STORE_FILE : STORE_DIR))
			return DIFFERS("kind is %d", a->stat.kind);
		return check_text(r, a->stat.version, f ? str_of(f->version) : STR(""));
	case STORE_OP_READ:
		from = op->range.offset < f->len ? (size_t)op->range.offset : f->len;
		len = op->range.length < f->len - from ? (size_t)op->range.length : f->len - from;
		return check_text(r, a->text, str_n(f->bytes + from, len)) &&
		       check_text(r, a->stat.version, str_of(f->version));
	case STORE_OP_LIST:
		return check_text(r, a->text, m_list_text(r, op));
	case STORE_OP_SCAN:
		return check_text(r, a->text, m_scan_text(r, op));
	case STORE_OP_REMOVE:
		return apply_remove(r, op, a);
	case STORE_OP_MOVE:
		return apply_move(r, op);
	default:
		return apply_put(r, op, a);
	}
}

/* One operation; then the whole tree is compared. */
static bool step(struct run *r, const struct op *op)
{
	static const struct op all = {.op = STORE_OP_LIST, .recursive = true, .limit = 100};
	unsigned allowed = m_errors(&r->m, op);
	struct answer a = ask(r, op), tree;

	if (allowed && a.r == 0)
		return DIFFERS("succeeded, though it had to fail (%#x)", allowed);
	if (a.r && !(allowed & BIT(r->c.err.kind)))
		return DIFFERS("failed: %s (%s)", r->c.err.msg, err_kind_name(r->c.err.kind));
	if (a.r == 0 && !apply(r, op, &a))
		return false;
	tree = ask(r, &all);
	return tree.r == 0 ? check_text(r, tree.text, m_list_text(r, &all))
			   : DIFFERS("the list failed: %s", r->c.err.msg);
}

/* Sequences. */

static void make_path(char *ret, bool may_be_root)
{
	static const char *const names[] = {"a", "b", "a-"};
	size_t depth = rng(3) + !may_be_root, len = 0;

	ret[0] = '\0';
	depth = depth > 3 ? 3 : depth;
	for (size_t i = 0; i < depth; i++)
		len += (size_t)snprintf(ret + len, 24 - len, "%s%s", i ? "/" : "", names[rng(3)]);
}

static struct op make_op(void)
{
	/* Writes come more often, so that there is something to do. */
	static const enum store_op kinds[] = {STORE_OP_STAT,  STORE_OP_READ, STORE_OP_WRITE,  STORE_OP_WRITE,
					      STORE_OP_WRITE, STORE_OP_COPY, STORE_OP_APPEND, STORE_OP_REMOVE,
					      STORE_OP_MOVE,  STORE_OP_LIST, STORE_OP_SCAN};
	struct op op = {.op = kinds[rng(sizeof(kinds) / sizeof(kinds[0]))]};
	bool may_be_root = op.op == STORE_OP_STAT || op.op == STORE_OP_LIST || op.op == STORE_OP_SCAN;

	op.recursive = rng(2);
	may_be_root |= op.op == STORE_OP_REMOVE && op.recursive && rng(8) == 0;
	make_path(op.path, may_be_root);
	make_path(op.to, false);
	op.len = rng(BYTES_MAX);
	for (size_t i = 0; i < op.len; i++)
		op.bytes[i] = (char)('a' + rng(26));
	op.cond = rng(3) ? 0 : (int)rng(4);
	if (op.cond == 1 && op.op != STORE_OP_WRITE && op.op != STORE_OP_APPEND)
		op.cond = 2;
	op.to_cond = rng(3) == 0;
	op.range = (struct store_range){rng(20), rng(4) ? rng(30) : UINT64_MAX};
	op.limit = 1 + rng(4);
	return op;
}

static void begin(struct run *r, const struct stack *stack)
{
	memset(r, 0, sizeof(*r));
	r->stack = stack;
	r->c.s = stack->open();
	r->c.ctx.arena = arena_new();
	for (size_t i = 0; stack->with_template && i < sizeof(template_files) / sizeof(template_files[0]); i++) {
		struct file *f = m_add(&r->m, template_files[i]);

		f->len = strlen(template_files[i]);
		memcpy(f->bytes, template_files[i], f->len);
		set_version(f, stat_of(&r->c, f->path).version);
	}
}

static void end(struct run *r)
{
	store_destroy(r->c.s);
	arena_destroy(r->c.ctx.arena);
}

/* The number of operations until one differs, 0 when none does. */
static size_t run_ops(struct run *r, const struct stack *stack, const struct op *ops, size_t n)
{
	size_t bad = 0;

	begin(r, stack);
	for (size_t i = 0; i < n && !bad; i++)
		if (!step(r, &ops[i]))
			bad = i + 1;
	end(r);
	return bad;
}

/* Leaves out operations, in ever smaller pieces, as long as the rest still differs. */
static size_t shrink(struct run *r, const struct stack *stack, struct op *ops, size_t n)
{
	struct op fewer[OPS];

	for (size_t piece = n / 2; piece > 0; piece /= 2)
		for (size_t at = 0; at + piece <= n;) {
			size_t bad;

			memcpy(fewer, ops, at * sizeof(ops[0]));
			memcpy(fewer + at, ops + at + piece, (n - at - piece) * sizeof(ops[0]));
			bad = run_ops(r, stack, fewer, n - piece);
			if (!bad) {
				at += piece;
				continue;
			}
			n = bad;
			memcpy(ops, fewer, n * sizeof(ops[0]));
		}
	run_ops(r, stack, ops, n);
	return n;
}

static void print_op(const struct op *op)
{
	static const char *const conds[] = {"any", "absent", "current", "never"};

	printf("#   %s \"%s\" -> \"%s\" cond %s to_cond %s%s len %zu limit %zu\n", store_op_info[op->op].name, op->path,
	       op->to, conds[op->cond], conds[op->to_cond], op->recursive ? " recursive" : "", op->len, op->limit);
}

static void check_stack(const struct stack *stack)
{
	const char *env = getenv("STEAD_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 10) : random_u64() % 1000000;
	static struct run r;

	printf("# %s: seed %llu\n", stack->name, (unsigned long long)seed);
	rng_state = seed;
	for (int round = 0; round < 25; round++) {
		struct op ops[OPS];
		size_t bad;

		for (size_t i = 0; i < OPS; i++)
			ops[i] = make_op();
		bad = run_ops(&r, stack, ops, OPS);
		if (!bad)
			continue;
		bad = shrink(&r, stack, ops, bad);
		for (size_t i = 0; i < bad; i++)
			print_op(&ops[i]);
		TEST_FAIL("%s differs from the contract (seed %llu): %s", stack->name, (unsigned long long)seed, r.why);
	}
}

static void put_template(struct store *lower)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (size_t i = 0; i < sizeof(template_files) / sizeof(template_files[0]); i++)
		CHECK_OK(store_write(lower, &ctx, P(template_files[i]), str_of(template_files[i]), ANY, NULL, &err),
			 err);
}

static struct store *templated(struct store *upper, struct store *lower)
{
	put_template(lower);
	return store_overlay_new(upper, lower);
}

/* What a fork is: over a past that does not change. */
static struct store *forked(struct store *upper, struct store *past)
{
	struct store *lower = remote_new(past, true);

	return templated(upper, lower);
}

/* The files of a fork elsewhere that has its own log. */
static struct store *recorded_fork(struct store *upper)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *past = store_memory_new(), *files = store_prefix_new(store_share(past), P("files")), *fork, *s;
	struct revisions_opts opts = {.journal = true, .own = P(".stead/rev")};
	struct err err;

	put_template(files);
	store_destroy(files);
	fork = store_overlay_new(remote_new(upper, false), remote_new(past, true));
	CHECK_OK(store_revisions_open(fork, store_prefix_new(store_share(fork), P(".stead/rev")), opts, &ctx, &s, &err),
		 err);
	return store_prefix_new(s, P("files"));
}

/* "a" and "b" of a store in which "m/a" is another one: operations cross between the two. */
static struct store *crossing(void)
{
	struct store_mount mount = {.at = P("a"), .store = store_memory_new()};

	return store_mounts_new(store_memory_new(), &mount, 1);
}

#define MODEL(id, expr, template)                                                                                      \
	static struct store *id##_open(void)                                                                           \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	TEST(id##_answers_as_the_model)                                                                                \
	{                                                                                                              \
		static const struct stack stack = {#id, id##_open, template};                                          \
		check_stack(&stack);                                                                                   \
	}

MODEL(memory, store_memory_new(), false)
MODEL(disk, open_disk(true, false), false)
MODEL(prefix, store_prefix_new(store_memory_new(), P("w/x")), false)
MODEL(guard, store_guard_new(store_memory_new(), &guard_defaults), false)
MODEL(quota, store_quota_new(store_memory_new(), (struct quota_limits){.bytes = MIB, .files = 1000}), false)
MODEL(events, store_events_new(store_memory_new()), false)
static struct store *recorded(int form, struct store *inner, struct store *meta)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s;
	struct err err;

	CHECK_OK(store_revisions_open(inner, meta, form_opts(form), &ctx, &s, &err), err);
	return s;
}

MODEL(revisions_in_memory, recorded(FORM_SEGMENTS, store_memory_new(), store_memory_new()), false)
MODEL(revisions_in_a_journal, recorded(FORM_OBJECTS, store_memory_new(), form_meta(FORM_OBJECTS)), false)
MODEL(revisions_in_one_step, recorded(FORM_ONE_STEP, store_memory_new(), store_memory_new()), false)
MODEL(revisions_on_disk, recorded(FORM_SEGMENTS, open_disk(true, false), open_disk(true, false)), false)
MODEL(overlay_over_nothing, store_overlay_new(store_memory_new(), store_memory_new()), false)
MODEL(overlay_over_a_template, templated(store_memory_new(), store_memory_new()), true)
MODEL(overlay_on_disk, templated(open_disk(true, false), open_disk(true, false)), true)
MODEL(overlay_over_a_past, forked(open_disk(true, false), open_disk(true, false)), true)
MODEL(overlay_far_away, templated(remote_new(store_memory_new(), false), store_memory_new()), true)
MODEL(overlay_far_away_over_a_past, forked(remote_new(store_memory_new(), false), store_memory_new()), true)
MODEL(revisions_of_a_fork_far_away, recorded_fork(store_memory_new()), true)
MODEL(revisions_of_a_fork_on_plain_objects, recorded_fork(plain_new(store_memory_new())), true)
MODEL(inside_of_a_mount, store_prefix_new(crossing(), P("a/w")), false)
MODEL(shipped_stack,
      store_guard_new(store_events_new(store_quota_new(store_prefix_new(open_disk(true, false), P("ws/one")),
						       (struct quota_limits){.bytes = 64 * MIB, .files = 2000})),
		      &guard_defaults),
      false)
