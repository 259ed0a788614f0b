/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps tools away from files that are not theirs: Stead's own files and people's secrets. A hidden path can neither be
 * read nor changed, and lists and scans do not show it; a fixed one can be read but not changed. Hiding a directory
 * hides all in it. Names are compared without regard to (ASCII) case, because ".ENV" is read by the same programs.
 *
 * Every operation passes here, so a look must cost little: nearly all rules are plain names, beginnings or ends of
 * names, and a table of first and last bytes tells for most elements of a path that no rule can concern them. Only
 * rules of another form reach the glob matcher.
 *
 * A directory is removed or moved only if nothing in it is hidden or fixed: it is listed first, and the refusal names
 * the file that prevents it. Emptying the root is the exception: it removes all but what is protected.
 */
#include <stdatomic.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "store/journal.h"
#include "store/list_stream.h"
#include "store/stores.h"
#include "text/glob.h"

enum rule_form {
	RULE_NAME,  /* ".npmrc": an element */
	RULE_START, /* ".stead-tmp-*" */
	RULE_END,   /* "*.pem" */
	RULE_TAIL,  /* "**" + "/.aws/credentials": elements at the end of a path */
	RULE_GLOB,
};

struct rule {
	enum rule_form form;
	bool except;        /* "!": shows again what an earlier rule matched */
	unsigned char byte; /* of a name: the first one, or of RULE_END and RULE_TAIL the last one; lower case */
	struct str text;
	const struct glob *glob;
};

struct rules {
	struct rule *rules;
	size_t count;
	/* By the first and the last byte (lower case) of an element: a bit for each rule that can concern it. Rules
	   from the 64th on share the last bit. */
	uint64_t first[256], last[256];
	uint64_t always; /* rules of free form can concern any element */
};

#define LAST_BIT 63

struct guard {
	struct store base;
	struct arena *arena;
	struct rules hidden, fixed;
	const char *(*refusal)(const void *arg, struct wpath path);
	const void *refusal_arg;
	uint64_t id; /* no other guard of this process has it */
};

static struct guard *guard_of(struct store *s)
{
	return (struct guard *)s;
}

/* Rules. */

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (strchr("*?[]{}\\", s.ptr[i]))
			return false;
	return s.len > 0;
}

static void classify(struct rule *r, struct str text)
{
	struct str tail = str_starts(text, STR("**/")) ? str_from(text, 3) : text;
	bool one = str_find_char(text, '/') == text.len;

	r->text = text;
	if (one && is_plain(text)) {
		r->form = RULE_NAME;
	} else if (one && str_ends(text, STR("*")) && is_plain(str_first(text, text.len - 1))) {
		r->form = RULE_START;
		r->text = str_first(text, text.len - 1);
	} else if (one && str_starts(text, STR("*")) && is_plain(str_from(text, 1))) {
		r->form = RULE_END;
		r->text = str_from(text, 1);
	} else if (tail.len < text.len && is_plain(tail)) {
		r->form = RULE_TAIL;
		r->text = tail;
	} else {
		r->form = RULE_GLOB;
	}
}

/* A pattern that cannot be compiled protects by its exact text: a guard never fails open without a trace. */
static void add_rule(struct arena *arena, struct rules *rules, struct str text)
{
	uint64_t bit = UINT64_C(1) << (rules->count < LAST_BIT ? rules->count : LAST_BIT);
	struct rule *r = &rules->rules[rules->count++];
	struct err err;

	r->except = str_starts(text, STR("!"));
	classify(r, arena_str(arena, str_from(text, r->except)));
	if (r->form == RULE_GLOB && glob_compile(arena, r->text, GLOB_NOCASE | GLOB_BASENAME, &r->glob, &err))
		r->form = RULE_NAME;
	if (r->form == RULE_GLOB) {
		rules->always |= bit;
	} else if (r->form == RULE_NAME || r->form == RULE_START) {
		r->byte = ascii_lower((unsigned char)r->text.ptr[0]);
		rules->first[r->byte] |= bit;
	} else {
		r->byte = ascii_lower((unsigned char)r->text.ptr[r->text.len - 1]);
		rules->last[r->byte] |= bit;
	}
}

static void init_rules(struct arena *arena, struct rules *ret, const char *const *globs, size_t count)
{
	ret->rules = ARENA_ARRAY(arena, struct rule, count ? count : 1);
	for (size_t i = 0; i < count; i++)
		if (globs[i][0] && strcmp(globs[i], "!") != 0)
			add_rule(arena, ret, str_of(globs[i]));
}

static bool starts_nocase(struct str s, struct str start)
{
	return s.len >= start.len && str_eq_nocase(str_first(s, start.len), start);
}

static bool ends_nocase(struct str s, struct str end)
{
	return s.len >= end.len && str_eq_nocase(str_from(s, s.len - end.len), end);
}

static bool rule_matches(const struct rule *r, struct str path, struct str name)
{
	bool at_start = r->form == RULE_NAME || r->form == RULE_START;

	if (r->form != RULE_GLOB &&
	    r->byte != ascii_lower((unsigned char)(at_start ? name.ptr[0] : name.ptr[name.len - 1])))
		return false;
	switch (r->form) {
	case RULE_NAME:
		return str_eq_nocase(name, r->text);
	case RULE_START:
		return starts_nocase(name, r->text);
	case RULE_END:
		return ends_nocase(name, r->text);
	case RULE_TAIL:
		return ends_nocase(path, r->text) &&
		       (path.len == r->text.len || path.ptr[path.len - r->text.len - 1] == '/');
	case RULE_GLOB:
		return glob_match(r->glob, path);
	}
	return true;
}

/* Whether the rules match `path` itself, whose last element is `name`. The last rule that matches decides. */
static bool matches_here(const struct rules *rules, struct str path, struct str name)
{
	uint64_t bits = rules->always | rules->first[ascii_lower((unsigned char)name.ptr[0])] |
			rules->last[ascii_lower((unsigned char)name.ptr[name.len - 1])];

	while (bits) {
		size_t from = LAST_BIT - (size_t)__builtin_clzll(bits);
		size_t i = from == LAST_BIT ? rules->count : from + 1;

		for (; i > from; i--)
			if (rule_matches(&rules->rules[i - 1], path, name))
				return !rules->rules[i - 1].except;
		bits &= ~(UINT64_C(1) << from);
	}
	return false;
}

/* The part of `path` that the rules match (a directory on the way, or all of it), or empty. */
static struct str matched_part(const struct rules *rules, struct str path)
{
	size_t begin = 0;

	if (rules->count == 0)
		return STR("");
	while (begin < path.len) {
		const char *slash = memchr(path.ptr + begin, '/', path.len - begin);
		size_t end = slash ? (size_t)(slash - path.ptr) : path.len;

		if (matches_here(rules, str_first(path, end), str_n(path.ptr + begin, end - begin)))
			return str_first(path, end);
		begin = end + 1;
	}
	return STR("");
}

static int refuse_hidden(const struct guard *g, struct wpath path, struct err *err)
{
	struct str part = matched_part(&g->hidden, path.s);

	if (part.len == 0)
		return 0;
	return err_set(
		err, ERR_DENIED,
		"\"%.*s\" is protected: tools cannot read or change it; ask the user if you need something from it",
		STR_ARG(part));
}

static const char *refusal_of(const struct guard *g, struct wpath path)
{
	return g->refusal ? g->refusal(g->refusal_arg, path) : NULL;
}

static int refuse_fixed(const struct guard *g, struct wpath path, struct err *err)
{
	struct str part = matched_part(&g->fixed, path.s);
	const char *why = part.len ? NULL : refusal_of(g, path);

	if (why)
		return err_set(err, ERR_DENIED, ERR_PATH " can be read but not changed: %s", STR_ARG(path.s), why);
	if (part.len == 0)
		return 0;
	return err_set(err, ERR_DENIED, "\"%.*s\" can be read but not changed; leave it as it is", STR_ARG(part));
}

static bool is_fixed(const struct guard *g, struct wpath path)
{
	return matched_part(&g->fixed, path.s).len || refusal_of(g, path);
}

static bool is_protected(const struct guard *g, struct str path)
{
	return matched_part(&g->hidden, path).len || is_fixed(g, (struct wpath){path});
}

/* Lists. */

static struct str entry_key(struct arena *arena, const struct store_entry *e)
{
	return e->stat.kind == STORE_DIR ? arena_printf(arena, "%.*s/", STR_ARG(e->path.s)) : e->path.s;
}

/* Where to continue after a page that ended at `last`: in a hidden directory, after all of it. */
static struct str go_on_behind(const struct guard *g, struct ctx *ctx, const struct store_entry *last, struct str next)
{
	struct str part = matched_part(&g->hidden, last->path.s);

	if (part.len == 0 || part.len == last->path.s.len)
		return next;
	/* The greatest code point sorts after every name in it. */
	return arena_printf(ctx->arena, "%.*s/\xF4\x8F\xBF\xBF", STR_ARG(part));
}

/* A directory whose shown entries are counted. */
struct guard_count {
	const struct guard *guard;
	struct str dir;
	char path[2 * PATH_LEN_MAX];
};

static bool shows_name(void *arg, struct str name)
{
	struct guard_count *c = arg;
	size_t len = c->dir.len;

	if (len + 1 + name.len > sizeof(c->path))
		return false;
	memcpy(c->path, c->dir.ptr, len);
	if (len)
		c->path[len++] = '/';
	memcpy(c->path + len, name.ptr, name.len);
	return !matches_here(&c->guard->hidden, str_n(c->path, len + name.len), name);
}

/* The question of the list as it is handed down; NULL: none. */
static struct store_count *hand_down_count(const struct guard *g, const struct store_call *call, struct guard_count *of,
					   struct store_count *ret)
{
	const struct store_count *asked = call->list->count;

	if (!asked || asked->counts)
		return NULL;
	of->guard = g;
	of->dir = call->path.s;
	*ret = (struct store_count){.counts = shows_name, .arg = of, .rule = g->id};
	return ret;
}

static int guard_list(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct guard *g = guard_of(s);
	size_t want = call->list->limit + 1, cap = 0; /* one more tells whether there is a next page */
	struct store_page out = {0}, page;
	struct store_list_req req = *call->list;
	struct store_call own = *call;
	struct store_count count = {0};
	struct guard_count of;
	int r;

	own.list = &req;
	own.ret_page = &page;
	req.count = hand_down_count(g, call, &of, &count);
	do {
		req.limit = want - out.count < STORE_PAGE_MAX ? want - out.count : STORE_PAGE_MAX;
		r = store_forward(s->inner, ctx, &own, err);
		if (r)
			return r;
		if (req.count) {
			call->list->count->known = count.known;
			call->list->count->total = count.total;
			call->list->count->skipped = count.skipped;
			req.count = NULL;
		}
		if (out.count + page.count > cap) {
			size_t more = out.count + page.count;

			out.entries = arena_grow(ctx->arena, out.entries, cap * sizeof(out.entries[0]),
						 more * sizeof(out.entries[0]));
			cap = more;
		}
		for (size_t i = 0; i < page.count; i++)
			if (matched_part(&g->hidden, page.entries[i].path.s).len == 0)
				out.entries[out.count++] = page.entries[i];
		out.skipped += page.skipped;
		if (page.next.ptr && page.count)
			req.after = go_on_behind(g, ctx, &page.entries[page.count - 1], page.next);
		else
			req.after = page.next;
	} while (page.next.ptr && out.count < want);
	if (out.count == want)
		out.next = entry_key(ctx->arena, &out.entries[--out.count - 1]);
	*call->ret_page = out;
	return 0;
}

/* Scans. Directories are asked for before what is in them, so only the last element needs a look. */

struct guard_scan {
	const struct guard *guard;
	const struct scan_req *req;
};

static bool last_is_hidden(const struct guard *g, struct str path)
{
	return g->hidden.count && matches_here(&g->hidden, path, wpath_name((struct wpath){path}));
}

static bool scan_want_dir(void *arg, struct str path)
{
	struct guard_scan *s = arg;

	return !last_is_hidden(s->guard, path) && (!s->req->want_dir || s->req->want_dir(s->req->arg, path));
}

static bool scan_want_file(void *arg, struct str path)
{
	struct guard_scan *s = arg;

	return !last_is_hidden(s->guard, path) && (!s->req->want_file || s->req->want_file(s->req->arg, path));
}

static int scan_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct guard_scan *s = arg;

	return s->req->visit(s->req->arg, item, err);
}

static int guard_scan(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct guard_scan arg = {guard_of(s), call->scan};
	struct scan_req req = *call->scan;
	struct store_call own = *call;

	req.want_dir = scan_want_dir;
	req.want_file = scan_want_file;
	req.visit = scan_visit;
	req.arg = &arg;
	own.scan = &req;
	return store_forward(s->inner, ctx, &own, err);
}

/* Directories that are about to go. */

typedef int (*each_file)(struct store *s, struct ctx *ctx, const struct store_call *call,
			 const struct store_entry *entry, struct err *err);

/* Calls `each` for every file below call->path. */
static int for_each_file(struct store *s, struct ctx *ctx, const struct store_call *call, each_file each,
			 struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = s->inner,
						    .dir = call->path,
						    .req = {.recursive = true, .limit = 1000, .names_only = true},
						    .is_layer = true,
						    .ctx = *ctx};
	int r;

	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			r = each(s, &pages.ctx, call, &pages.page.entries[i], err);
			if (r)
				return r;
		}
	return r;
}

/* Checks a file that would be removed, or moved to where it is hidden. */
static int refuse_entry(struct store *s, struct ctx *ctx, const struct store_call *call,
			const struct store_entry *entry, struct err *err)
{
	const struct guard *g = guard_of(s);
	struct wpath target;
	int r;

	if (is_protected(g, entry->path.s))
		return err_set(err, ERR_DENIED,
			       ERR_PATH " is protected, so its directory stays; %s the other files one by one",
			       STR_ARG(entry->path.s), store_op_info[call->op].name);
	if (wpath_is_root(call->to))
		return 0;
	r = wpath_join(ctx->arena, call->to, wpath_relative(entry->path, call->path), &target, err);
	if (r == 0)
		r = refuse_hidden(g, target, err);
	return r ? r : refuse_fixed(g, target, err);
}

static int remove_unprotected(struct store *s, struct ctx *ctx, const struct store_call *call,
			      const struct store_entry *entry, struct err *err)
{
	uint64_t count = 0;
	struct store_call own = {.op = STORE_OP_REMOVE, .path = entry->path, .ret_count = &count};
	int r;

	if (is_protected(guard_of(s), entry->path.s))
		return 0;
	r = store_forward(s->inner, ctx, &own, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	*call->ret_count += count;
	return r;
}

static int count_protected(struct store *s, struct ctx *ctx, const struct store_call *call,
			   const struct store_entry *entry, struct err *err)
{
	(void)ctx;
	(void)call;
	return is_protected(guard_of(s), entry->path.s) ? err_set(err, ERR_DENIED, "protected") : 0;
}

static int clear_root(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	uint64_t count = 0;
	struct store_call own = *call;
	int r = for_each_file(s, ctx, call, count_protected, err);

	if (r == 0)
		return store_forward(s->inner, ctx, call, err);
	if (r != -ERR_DENIED)
		return r;
	own.ret_count = &count;
	r = for_each_file(s, ctx, &own, remove_unprotected, err);
	if (r == 0)
		*call->ret_count = count;
	return r;
}

static int check_tree(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = call->path, .ret_stat = &stat};
	int r = store_forward(s->inner, ctx, &get, err);

	if (r || stat.kind == STORE_FILE)
		return r == -ERR_NOT_FOUND ? 0 : r; /* inner reports it in the right words */
	return for_each_file(s, ctx, call, refuse_entry, err);
}

/* The changes of a group that are made with a journal entry. */
static int check_items(const struct guard *g, const struct journal_add *add, struct journal_added *ret_added,
		       struct err *err)
{
	for (size_t i = 0; i < add->item_count; i++) {
		const struct journal_item *item = &add->items[i];
		bool two = item->change == JOURNAL_MOVE;
		int r = refuse_hidden(g, item->path, err);

		if (r == 0)
			r = refuse_fixed(g, item->path, err);
		if (r == 0 && two)
			r = refuse_hidden(g, item->from, err);
		if (r == 0 && two)
			r = refuse_fixed(g, item->from, err);
		if (r) {
			ret_added->failed = i;
			return r;
		}
	}
	return 0;
}

static int check_paths(const struct guard *g, const struct store_call *call, struct err *err)
{
	bool adds = call->op == STORE_OP_JOURNAL_ADD, is_group = adds && call->journal_add->change == JOURNAL_GROUP;
	bool two = call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY ||
		   (adds && !is_group && call->journal_add->change != JOURNAL_ALONE);
	int r = is_group ? check_items(g, call->journal_add, call->ret_added, err) : 0;

	if (r == 0)
		r = refuse_hidden(g, call->path, err);

	if (r == 0 && two)
		r = refuse_hidden(g, call->to, err);
	if (r == 0 && call->op == STORE_OP_JOURNAL_ADD && call->journal_add->change == JOURNAL_MOVE)
		r = refuse_hidden(g, call->journal_add->from, err);
	if (r == 0 && call->op == STORE_OP_JOURNAL_ADD && call->journal_add->change == JOURNAL_MOVE)
		r = refuse_fixed(g, call->journal_add->from, err);
	if (r || store_op_info[call->op].reads_only)
		return r;
	if (call->op != STORE_OP_COPY) /* which only reads its source */
		r = refuse_fixed(g, call->path, err);
	return r || !two ? r : refuse_fixed(g, call->to, err);
}

static int guard_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r = check_paths(guard_of(s), call, err);

	if (r)
		return r;
	if (call->op == STORE_OP_LIST)
		return guard_list(s, ctx, call, err);
	if (call->op == STORE_OP_SCAN)
		return guard_scan(s, ctx, call, err);
	if (call->op == STORE_OP_REMOVE && call->recursive && wpath_is_root(call->path))
		return clear_root(s, ctx, call, err);
	if (call->op == STORE_OP_MOVE || (call->op == STORE_OP_REMOVE && call->recursive))
		r = check_tree(s, ctx, call, err);
	return r ? r : store_forward(s->inner, ctx, call, err);
}

/* Nothing of a group is made if a part of it is refused. */
static int guard_group(struct store *s, struct ctx *ctx, struct store_group *group, struct err *err)
{
	struct store_call call = {.op = STORE_OP_GROUP, .group = group};

	for (size_t i = 0; i < group->count; i++) {
		struct store_call one = {.op = group->items[i].op, .path = group->items[i].path};
		int r = check_paths(guard_of(s), &one, err);

		if (r) {
			group->failed = i;
			return r;
		}
	}
	return store_forward(s->inner, ctx, &call, err);
}

static void guard_destroy(struct store *s)
{
	struct guard *g = guard_of(s);

	arena_destroy(g->arena);
	free(g);
}

static const struct store_ops guard_ops = {
	.name = "guard",
	.group = guard_group,
	.around = guard_around,
	.destroy = guard_destroy,
};

static const char *const default_hidden[] = {
	/* Files that are named after what is in them; not the source code that deals with it. */
	"credentials*",
	"secrets.*",
	"!*.c",
	"!*.h",
	"!*.cc",
	"!*.cpp",
	"!*.cs",
	"!*.go",
	"!*.java",
	"!*.js",
	"!*.jsx",
	"!*.kt",
	"!*.md",
	"!*.php",
	"!*.py",
	"!*.rb",
	"!*.rs",
	"!*.swift",
	"!*.ts",
	"!*.tsx",
	/* Stead's own. */
	".stead",
	".stead-wh",
	".stead-gone",
	".stead-tmp-*",
	/* Settings with secrets in them; what is meant to be copied and filled in stays visible. */
	".env",
	"*.env",
	".env.*",
	"!.env.example",
	"!.env.sample",
	"!.env.template",
	".envrc",
	/* Keys. */
	"*.pem",
	"*.key",
	"*.p12",
	"*.pfx",
	"*.jks",
	"*.keystore",
	"id_rsa",
	"id_dsa",
	"id_ecdsa",
	"id_ecdsa_sk",
	"id_ed25519",
	"id_ed25519_sk",
	".ssh",
	".gnupg",
	/* Credentials of other programs. */
	"**/.aws/credentials",
	"**/.docker/config.json",
	"**/.kube/config",
	"**/.config/gcloud",
	".git-credentials",
	".netrc",
	"_netrc",
	".npmrc",
	".pypirc",
	".pgpass",
	".htpasswd",
};

const struct guard_rules guard_defaults = {
	.hidden = default_hidden,
	.hidden_count = COUNT(default_hidden),
};

struct store *store_guard_new(struct store *inner, const struct guard_rules *rules)
{
	static atomic_uint_least64_t guards;
	struct guard *g = xcalloc(1, sizeof(*g));

	g->id = atomic_fetch_add(&guards, 1) + 1;
	g->base = (struct store){.ops = &guard_ops, .inner = inner};
	g->arena = arena_new();
	init_rules(g->arena, &g->hidden, rules->hidden, rules->hidden_count);
	init_rules(g->arena, &g->fixed, rules->fixed, rules->fixed_count);
	g->refusal = rules->refusal;
	g->refusal_arg = rules->refusal_arg;
	return &g->base;
}

/* The guard at the top of a stack of layers, or below; NULL: there is none. */
static const struct guard *find_guard(struct store *s)
{
	while (s && s->ops != &guard_ops)
		s = s->inner;
	return s ? guard_of(s) : NULL;
}

enum guard_says store_guard_says(struct store *s, struct wpath path)
{
	const struct guard *g = find_guard(s);

	if (!g)
		return GUARD_FREE;
	if (matched_part(&g->hidden, path.s).len)
		return GUARD_HIDDEN;
	return is_fixed(g, path) ? GUARD_FIXED : GUARD_FREE;
}

int store_guard_check_change(struct store *s, struct wpath path, struct err *err)
{
	const struct guard *g = find_guard(s);
	int r = g ? refuse_hidden(g, path, err) : 0;

	return r || !g ? r : refuse_fixed(g, path, err);
}

uint64_t store_guard_id(struct store *s)
{
	const struct guard *g = find_guard(s);

	return g ? g->id : 0;
}
