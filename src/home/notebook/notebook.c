/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes: finding, reading, writing.
 *
 * A slug must be unique in the notebook whoever writes, in however many processes and on however many machines, and
 * writing must cost the same with the hundred-thousandth note as with the first. So the number in a slug comes from a
 * small file that is only replaced on condition that it has not changed: a writer that loses the race reads it again.
 * No lock is held, and a writer that dies leaves at most a gap in the numbers. The file is derived: when it is missing,
 * cannot be read, or is from before the machine's last start (a power cut may have taken it back), the next number is
 * one more than the highest among the names of the files.
 *
 * A change to a note is read, change, write if the version is unchanged; again if another writer was first.
 */
#include <time.h>

#include "base/clock.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "home/notebook/notebook_internal.h"

#define TRIES_MAX 10000
#define CITED_MAX 1000
#define PAUSE_NS  200000

/* Slugs that were read, newest at the end. */
struct cited {
	char *slugs[CITED_MAX];
	size_t count;
};

/* --- the handle --- */

struct notebook *notebook_new(struct workspace *ws)
{
	struct notebook *nb = xcalloc(1, sizeof *nb);
	struct str agent = workspace_actor(ws).agent;
	pthread_condattr_t attr;

	nb->arena = arena_new();
	nb->ws = ws;
	nb->home = workspace_home(ws);
	nb->shared = workspace_shared(ws);
	nb->author = arena_str(nb->arena, agent.len ? agent : STR("agent"));
	nb->author_dir = arena_str(nb->arena, workspace_encode_name(nb->arena, nb->author));
	nb->part = workspace_part(ws);
	nb->counter.s = arena_printf(nb->arena, ".stead/notebook/%.*s",
				     STR_ARG(wpath_is_root(nb->part) ? STR("shared") : nb->part.s));
	pthread_mutex_init(&nb->lock, NULL);
	pthread_mutex_init(&nb->flush_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&nb->flush_wake, &attr);
	pthread_condattr_destroy(&attr);
	return nb;
}

static void forget_cited(struct notebook *nb)
{
	for (size_t i = 0; nb->cited && i < nb->cited->count; i++)
		free(nb->cited->slugs[i]);
	free(nb->cited);
	nb->cited = NULL;
}

void notebook_destroy(struct notebook *nb)
{
	if (!nb)
		return;
	index_end(nb);
	forget_cited(nb);
	catalog_save(nb);
	catalog_destroy(nb->catalog);
	pthread_cond_destroy(&nb->flush_wake);
	pthread_mutex_destroy(&nb->flush_lock);
	pthread_mutex_destroy(&nb->lock);
	arena_destroy(nb->arena);
	free(nb);
}

/* --- numbers --- */

/* The highest number that a file has. */
static int highest(struct notebook *nb, struct ctx *ctx, uint64_t *ret, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct ctx own = *ctx;
	struct store_page page;
	char *after = NULL;
	int r;

	own.arena = arena;
	*ret = 0;
	do {
		r = store_list(nb->home, &own, NOTES_DIR, &req, &page, err);
		for (size_t i = 0; !r && i < page.count; i++) {
			uint64_t n = note_number(wpath_name(page.entries[i].path));

			if (n > *ret)
				*ret = n;
		}
		free(after);
		after = !r && page.next.ptr ? xstrndup(page.next) : NULL;
		req.after = str_of(after);
		arena_reset(arena);
	} while (after);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* "<last number> <boot>\n" */
static bool counter_parse(struct str bytes, struct str boot, uint64_t *ret)
{
	struct str line = str_first(bytes, str_find_char(bytes, '\n')), number;
	int64_t n;

	if (!str_cut(&line, ' ', &number) || !str_to_i64(number, &n) || n < 0 || !str_eq(line, boot))
		return false;
	*ret = (uint64_t)n;
	return true;
}

static void pause_a_little(unsigned tries)
{
	struct timespec t = {0, (long)(random_u64() % (PAUSE_NS * (uint64_t)(tries < 50 ? tries : 50)))};

	nanosleep(&t, NULL);
}

/* Notes that came from elsewhere may have higher numbers, if anybody has looked. */
static uint64_t at_least(struct notebook *nb, uint64_t last)
{
	uint64_t known;

	pthread_mutex_lock(&nb->lock);
	known = nb->catalog ? catalog_number(nb->catalog) : 0;
	pthread_mutex_unlock(&nb->lock);
	return known > last ? known : last;
}

/* A number that nobody else gets. */
static int next_number(struct notebook *nb, struct ctx *ctx, uint64_t *ret, struct err *err)
{
	struct str boot = workspace_boot(ctx->arena, nb->ws), bytes;
	struct store_stat stat;
	uint64_t last;
	int r;

	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		struct store_cond cond = {.kind = STORE_ABSENT};

		r = ctx_check(ctx, err);
		if (r)
			return r;
		r = store_read(nb->shared, ctx, nb->counter, STORE_WHOLE, 4096, &bytes, &stat, err);
		if (r && r != -ERR_NOT_FOUND && r != -ERR_TOO_LARGE)
			return r;
		if (r || !counter_parse(bytes, boot, &last)) {
			uint64_t before = 0;

			if (!r && bytes.len) /* never lower, even after a restart of the machine */
				counter_parse(
					arena_printf(ctx->arena, "%.*s x\n", (int)str_find_char(bytes, ' '), bytes.ptr),
					STR("x"), &before);
			if (!r)
				cond = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
			r = highest(nb, ctx, &last, err);
			if (r)
				return r;
			last = last > before ? last : before;
		} else {
			cond = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
		}
		last = at_least(nb, last);
		r = store_write(nb->shared, ctx, nb->counter,
				arena_printf(ctx->arena, "%llu %.*s\n", (unsigned long long)last + 1, STR_ARG(boot)),
				cond, NULL, err);
		if (!r) {
			*ret = last + 1;
			return 0;
		}
		if (r != -ERR_CONFLICT && r != -ERR_EXISTS)
			return r;
		if (tries > 2)
			pause_a_little(tries);
	}
	return err_set(err, ERR_UNAVAILABLE, "too many others are writing notes right now; try again");
}

/* --- writing --- */

static int check_new(const struct note_new *in, struct err *err)
{
	if (in->title.len > NOTE_TITLE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the title has %zu bytes; at most %zu are allowed; put the rest into the text",
			       in->title.len, NOTE_TITLE_MAX);
	if (in->body.len > NOTE_BODY_MAX)
		return err_set(
			err, ERR_TOO_LARGE,
			"the text has %zu bytes; a note may have at most %zu; write it to a file and note where it is",
			in->body.len, NOTE_BODY_MAX);
	if (in->tag_count > NOTE_TAGS_MAX)
		return err_set(err, ERR_TOO_LARGE, "there are %zu tags; a note has at most %d", in->tag_count,
			       NOTE_TAGS_MAX);
	for (size_t i = 0; i < in->tag_count; i++)
		if (in->tags[i].len > NOTE_TAG_MAX)
			return err_set(err, ERR_TOO_LARGE, "a tag has %zu bytes; at most %zu are kept", in->tags[i].len,
				       NOTE_TAG_MAX);
	if (in->namespace.len > PATH_NAME_MAX || str_ends(in->namespace, STR(".md")))
		return err_set(err, ERR_INVALID,
			       "the namespace \"%.*s\" is not allowed; use a short name that does not end "
			       "with \".md\"",
			       STR_ARG(utf8_first(in->namespace, 80)));
	return 0;
}

static int path_of(struct notebook *nb, struct ctx *ctx, const struct note *n, struct wpath *ret, struct err *err)
{
	struct str namespace = workspace_encode_name(ctx->arena, n->namespace);

	return wpath_parse(arena_printf(ctx->arena, "notes/%.*s/%.*s%s%.*s.md", STR_ARG(nb->author_dir),
					(int)(n->namespace.len ? namespace.len : 0), namespace.ptr,
					n->namespace.len ? "/" : "", STR_ARG(n->slug)),
			   ret, err);
}

static int add_note(struct notebook *nb, struct ctx *ctx, struct note *n, struct err *err)
{
	struct str fragment = note_fragment(ctx->arena, n->title), bytes;
	struct wpath path;
	int r;

	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		r = next_number(nb, ctx, &n->number, err);
		if (r)
			return r;
		n->slug = arena_printf(ctx->arena, "%03llu-%.*s", (unsigned long long)n->number, STR_ARG(fragment));
		n->created_ns = n->updated_ns = clock_real_ns();
		r = path_of(nb, ctx, n, &path, err);
		if (!r)
			r = note_format(ctx->arena, n, NULL, &bytes, err);
		if (!r)
			r = store_write(nb->home, ctx, path, bytes, (struct store_cond){.kind = STORE_ABSENT}, NULL,
					err);
		if (r == -ERR_EXISTS) /* somebody put a file of that name there */
			continue;
		n->path = path.s;
		if (!r)
			index_dirty(nb, n->number);
		return r;
	}
	return err_set(err, ERR_CONFLICT,
		       "no free name for the note was found in %d attempts; see notes/ in the workspace", TRIES_MAX);
}

static void note_begin(struct notebook *nb, struct ctx *ctx, const struct note_new *in, struct note *n)
{
	*n = (struct note){.author = nb->author,
			   .title = in->title,
			   .body = in->body.ptr ? in->body : STR(""),
			   .kind = note_kind(in->kind),
			   .tags = in->tags,
			   .tag_count = in->tag_count,
			   .namespace = in->namespace,
			   .parent_slug = in->parent_slug,
			   .user_id = workspace_actor(nb->ws).user,
			   .run_id = ctx->actor.session,
			   .version = 1,
			   .body_size = in->body.len};
	if (str_is(n->kind, "question"))
		n->answer = NOTE_OPEN;
}

int notebook_add(struct notebook *nb, struct ctx *ctx, const struct note_new *in, struct note *ret, struct err *err)
{
	int r = check_new(in, err);

	if (r)
		return r;
	note_begin(nb, ctx, in, ret);
	return add_note(nb, ctx, ret, err);
}

/* --- reading --- */

int notebook_load(struct notebook *nb, struct ctx *ctx, struct wpath path, struct note *ret, struct jv **ret_head,
		  struct store_stat *ret_stat, struct err *err)
{
	struct store_stat stat;
	struct frontmatter f;
	struct str bytes;
	int r = store_read(nb->home, ctx, path, STORE_WHOLE, NOTE_FILE_MAX, &bytes, &stat, err);

	if (!r)
		r = note_parse(ctx->arena, path, bytes, stat.mtime_ns, ret, err);
	if (!r && ret_head) {
		r = frontmatter_parse(ctx->arena, bytes, &f, err);
		*ret_head = r ? NULL : f.head;
	}
	if (!r && ret_stat)
		*ret_stat = stat;
	if (r && err->kind == ERR_CORRUPT)
		return err_prefix(err, "%.*s", STR_ARG(utf8_first(path.s, 150)));
	return r;
}

static bool there(struct notebook *nb, struct ctx *ctx, struct str author_dir, struct str slug, struct wpath *ret)
{
	struct err err;
	struct wpath path;

	if (wpath_parse(arena_printf(ctx->arena, "notes/%.*s/%.*s.md", STR_ARG(author_dir), STR_ARG(slug)), &path,
			&err) ||
	    store_stat(nb->home, ctx, path, NULL, &err))
		return false;
	*ret = path;
	return true;
}

static int ambiguous(struct str slug, struct str a, struct str b, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "the slug \"%.*s\" names several notes; use \"%.*s/%.*s\" or \"%.*s/%.*s\"",
		       STR_ARG(utf8_first(slug, 80)), STR_ARG(utf8_first(a, 60)), STR_ARG(utf8_first(slug, 80)),
		       STR_ARG(utf8_first(b, 60)), STR_ARG(utf8_first(slug, 80)));
}

/* The slug as it is, in the directory of each author: costs as many looks as there are authors. Notes in a namespace
   are not found here. */
static int find_in_dirs(struct notebook *nb, struct ctx *ctx, struct str slug, struct wpath *ret, bool *ret_found,
			struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page = {0};
	struct str holder = STR("");
	int r;

	*ret_found = false;
	do {
		r = store_list(nb->home, ctx, NOTES_DIR, &req, &page, err);
		for (size_t i = 0; !r && i < page.count; i++) {
			struct str dir = wpath_name(page.entries[i].path);

			if (page.entries[i].stat.kind != STORE_DIR || !there(nb, ctx, dir, slug, ret))
				continue;
			if (*ret_found)
				return ambiguous(slug, holder, dir, err);
			*ret_found = true;
			holder = dir;
		}
		req.after = r ? STR_NONE : page.next;
	} while (req.after.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Titles and slugs, in the catalogue: the slug; a beginning of one; part of a title. */
static int find_in_catalog(struct notebook *nb, struct ctx *ctx, struct str ref, struct wpath *ret, struct err *err)
{
	const struct note *n = catalog_slug(nb->catalog, ref, NULL), *by_prefix = NULL, *by_title = NULL;
	struct str wanted = str_lower(ctx->arena, ref);
	size_t prefixes = 0;

	if (n && catalog_slug(nb->catalog, ref, n))
		return ambiguous(ref, n->author, catalog_slug(nb->catalog, ref, n)->author, err);
	for (size_t i = 0; !n && ref.len && i < catalog_count(nb->catalog); i++) {
		const struct note *at = catalog_at(nb->catalog, i);

		if (str_starts(at->slug, ref) && prefixes++ == 0)
			by_prefix = at;
		if (!by_title && at->title.len >= ref.len &&
		    str_find(str_lower(ctx->arena, at->title), wanted, 0) != SIZE_MAX)
			by_title = at;
	}
	if (!n)
		n = prefixes == 1 ? by_prefix : by_title;
	if (!n)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no note \"%.*s\"; see list_notes, or search_notes for its words",
			       STR_ARG(utf8_first(ref, 100)));
	ret->s = arena_str(ctx->arena, n->path);
	return 0;
}

int notebook_find(struct notebook *nb, struct ctx *ctx, struct str ref, struct wpath *ret, struct err *err)
{
	size_t slash = str_find_char(ref, '/');
	bool found = false;
	int r = 0;

	if (slash < ref.len &&
	    there(nb, ctx, workspace_encode_name(ctx->arena, str_first(ref, slash)), str_from(ref, slash + 1), ret))
		return 0;
	if (note_number(ref) && wpath_name_ok(ref))
		r = find_in_dirs(nb, ctx, ref, ret, &found, err);
	if (r || found)
		return r;
	pthread_mutex_lock(&nb->lock);
	r = catalog_refresh(nb, ctx, err);
	if (!r)
		r = find_in_catalog(nb, ctx, ref, ret, err);
	pthread_mutex_unlock(&nb->lock);
	return r;
}

static void cite(struct notebook *nb, struct str slug)
{
	struct cited *c;

	pthread_mutex_lock(&nb->lock);
	if (!nb->cited)
		nb->cited = xcalloc(1, sizeof *nb->cited);
	c = nb->cited;
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(str_of(c->slugs[i]), slug))
			slug = STR_NONE;
	if (slug.ptr && c->count < CITED_MAX)
		c->slugs[c->count++] = xstrndup(slug);
	pthread_mutex_unlock(&nb->lock);
}

int notebook_read(struct notebook *nb, struct ctx *ctx, struct str ref, struct note *ret, struct err *err)
{
	struct wpath path;
	int r = notebook_find(nb, ctx, ref, &path, err);

	if (!r)
		r = notebook_load(nb, ctx, path, ret, NULL, NULL, err);
	if (!r)
		cite(nb, ret->slug);
	return r;
}

/* --- changing --- */

struct change {
	const struct str *body;
	const struct str *tags;
	size_t tag_count;
	int archive; /* 1: archive, -1: take that back */
	struct str answered_by;
	bool cite, succeed;
};

static void apply(struct note *n, const struct change *c)
{
	int64_t now = clock_real_ns();

	if (c->tags) {
		n->tags = c->tags;
		n->tag_count = c->tag_count;
	}
	if (c->body) {
		n->body = c->body->ptr ? *c->body : STR("");
		n->body_size = n->body.len;
		n->version++;
		n->updated_ns = now;
	}
	if (c->archive)
		n->archived_ns = c->archive > 0 ? (n->archived_ns ? n->archived_ns : now) : 0;
	if (c->answered_by.len) {
		n->answer = NOTE_ANSWERED;
		n->answered_by = c->answered_by;
		n->updated_ns = now;
	}
	n->cited += c->cite;
	n->succeeded += c->succeed;
	if (c->cite)
		n->last_cited_ns = now;
}

static int change_note(struct notebook *nb, struct ctx *ctx, struct wpath path, const struct change *change,
		       struct note *ret, struct err *err)
{
	struct store_stat stat;
	struct str bytes;
	struct jv *head;
	int r;

	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		r = ctx_check(ctx, err);
		if (!r)
			r = notebook_load(nb, ctx, path, ret, &head, &stat, err);
		if (r)
			return r;
		apply(ret, change);
		r = note_format(ctx->arena, ret, head, &bytes, err);
		if (!r)
			r = store_write(nb->home, ctx, path, bytes,
					(struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL, err);
		if (!r)
			index_dirty(nb, 0);
		if (r != -ERR_CONFLICT)
			return r;
		if (tries > 2)
			pause_a_little(tries);
	}
	return err_set(err, ERR_CONFLICT, "too many others are changing the note right now; try again");
}

/* A note of this author. */
static int find_own(struct notebook *nb, struct ctx *ctx, struct str slug, struct wpath *ret, struct err *err)
{
	struct str author, namespace, name;
	int r = notebook_find(nb, ctx, slug, ret, err);

	if (r)
		return r;
	if (!note_path_split(*ret, &author, &namespace, &name) || !str_eq(author, nb->author_dir))
		return err_set(err, ERR_DENIED,
			       "the note \"%.*s\" belongs to %.*s, and only its author can change it; write your own "
			       "note about it",
			       STR_ARG(utf8_first(name, 100)), STR_ARG(author));
	return 0;
}

int notebook_update(struct notebook *nb, struct ctx *ctx, struct str slug, struct str body, const struct str *tags,
		    size_t tag_count, struct note *ret, struct err *err)
{
	struct note_new in = {.body = body, .tags = tags, .tag_count = tags ? tag_count : 0};
	struct change change = {.body = &body, .tags = tags, .tag_count = tag_count};
	struct wpath path;
	int r = check_new(&in, err);

	if (!r)
		r = find_own(nb, ctx, slug, &path, err);
	return r ? r : change_note(nb, ctx, path, &change, ret, err);
}

int notebook_archive(struct notebook *nb, struct ctx *ctx, struct str slug, bool archived, struct note *ret,
		     struct err *err)
{
	struct change change = {.archive = archived ? 1 : -1};
	struct wpath path;
	int r = find_own(nb, ctx, slug, &path, err);

	return r ? r : change_note(nb, ctx, path, &change, ret, err);
}

int notebook_ask(struct notebook *nb, struct ctx *ctx, struct str title, struct str body, struct note *ret,
		 struct err *err)
{
	struct note_new in = {.title = title, .body = body, .kind = STR("question")};

	return notebook_add(nb, ctx, &in, ret, err);
}

int notebook_answer(struct notebook *nb, struct ctx *ctx, struct str slug, struct str body, struct note *ret,
		    struct note *ret_question, struct err *err)
{
	struct note_new in = {.body = body};
	struct change change = {.answered_by = nb->author};
	struct wpath path;
	int r = notebook_find(nb, ctx, slug, &path, err);

	if (!r)
		r = notebook_load(nb, ctx, path, ret_question, NULL, NULL, err);
	if (r)
		return r;
	if (!str_is(ret_question->kind, "question"))
		return err_set(err, ERR_INVALID,
			       "the note \"%.*s\" is a %.*s, not a question; see list_open_questions for those",
			       STR_ARG(utf8_first(ret_question->slug, 100)), STR_ARG(ret_question->kind));
	in.title = arena_printf(ctx->arena, "Answer: %.*s",
				(int)utf8_first(ret_question->title, NOTE_TITLE_MAX - 8).len, ret_question->title.ptr);
	in.parent_slug = ret_question->slug;
	in.namespace = ret_question->namespace;
	r = notebook_add(nb, ctx, &in, ret, err);
	return r ? r : change_note(nb, ctx, path, &change, ret_question, err);
}

/* --- credit --- */

void notebook_cited(struct notebook *nb, struct ctx *ctx, struct str **ret, size_t *ret_count)
{
	pthread_mutex_lock(&nb->lock);
	*ret_count = nb->cited ? nb->cited->count : 0;
	*ret = ARENA_ARRAY(ctx->arena, struct str, *ret_count + 1);
	for (size_t i = 0; i < *ret_count; i++)
		(*ret)[i] = arena_str(ctx->arena, str_of(nb->cited->slugs[i]));
	pthread_mutex_unlock(&nb->lock);
}

int notebook_credit(struct notebook *nb, struct ctx *ctx, bool success, const struct str *slugs, size_t count,
		    uint64_t *ret_credited, struct err *err)
{
	struct change change = {.cite = true, .succeed = success};
	struct strmap *seen = strmap_new(ctx->arena);
	struct str *cited;
	struct note n;
	int r = 0;

	*ret_credited = 0;
	if (!slugs) {
		notebook_cited(nb, ctx, &cited, &count);
		slugs = cited;
		pthread_mutex_lock(&nb->lock);
		forget_cited(nb);
		pthread_mutex_unlock(&nb->lock);
	}
	for (size_t i = 0; !r && i < count; i++) {
		struct wpath path = WPATH_ROOT;
		bool fresh = false;

		r = notebook_find(nb, ctx, slugs[i], &path, err);
		if (!r)
			strmap_put(seen, path.s, &fresh);
		if (!r && fresh) {
			r = change_note(nb, ctx, path, &change, &n, err);
			*ret_credited += r == 0;
		}
	}
	return r;
}
