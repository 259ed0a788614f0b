/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving, copying, and removing directories.
 *
 * A move is a pair of records: one path is gone, the other is there. Both are logged at once, and whoever completes one
 * of them completes the other (recover.c).
 *
 * A directory is moved and removed file by file, each on the condition that it still is what was logged. To rename the
 * directory as a whole would be faster, and would carry off a file that another process has written since. The records
 * are logged in batches, so that memory does not grow with the directory. A move that needs several of them is noted
 * first, so that the rest is made after a kill (moves.c).
 */
#include "base/limits.h"
#include "revisions/layer.h"
#include "store/list_stream.h"

#define TRIES_MAX 1000
#define BATCH_MAX 512

/* The records of a move that was logged. */
#define REV_PAIR(two) ((struct rev_record *[]){(two)[0].record, (two)[1].record})

/* The state of a draft's path before it, as a condition. */
static struct store_cond cond_before(const struct rev_draft *d)
{
	return (struct store_cond){.kind = d->before.exists ? STORE_VERSION : STORE_ABSENT,
				   .version = d->before.version};
}

/* --- removing --- */

/* What the files of a page are. With a journal a look would be a request: what the list says is enough for the first
   try, and after that they are looked at together. */
static int look_page(struct revisions *rv, struct ctx *ctx, const struct store_page *page, bool is_first,
		     struct look **ret, struct err *err)
{
	struct look *looks = ARENA_ARRAY(ctx->arena, struct look, page->count);
	struct wpath *paths = ARENA_ARRAY(ctx->arena, struct wpath, page->count);
	int r = 0;

	*ret = looks;
	for (size_t i = 0; i < page->count; i++)
		paths[i] = page->entries[i].path;
	if (rv->journal && !is_first)
		return look_all(rv, ctx, paths, page->count, looks, err);
	if (rv->journal)
		r = revlog_refresh(rv->log, ctx, err);
	for (size_t i = 0; r == 0 && i < page->count; i++)
		if (revisions_records(paths[i]) &&
		    (!rv->journal || !look_agrees(rv, ctx, paths[i], &page->entries[i].stat, &looks[i])))
			r = look_at(rv, ctx, paths[i], &looks[i], err);
	return r;
}

/* The drafts for what exists of the listed files. */
static int draft_removals(struct revisions *rv, struct ctx *ctx, const struct store_page *page, bool is_first,
			  struct rev_draft *drafts, size_t *ret_count, struct err *err)
{
	struct look *looks;
	size_t n = 0;
	int r = look_page(rv, ctx, page, is_first, &looks, err);

	for (size_t i = 0; r == 0 && i < page->count; i++) {
		struct wpath path = page->entries[i].path;
		struct look l = looks[i];

		if (!revisions_records(path) || !l.state.exists)
			continue;
		r = look_hold(rv, ctx, path, &l, err);
		drafts[n++] = (struct rev_draft){.op = REV_REMOVE, .path = path, .before = l.state, .base = l.base};
	}
	*ret_count = n;
	return r;
}

/* Logs drafts and makes them in one step; a move has two of them. */
static int make_drafts(struct revisions *rv, struct ctx *ctx, struct rev_draft *drafts, size_t count, bool is_move,
		       struct err *err)
{
	size_t each = is_move ? 2 : 1;
	struct journal_item *items = ARENA_ARRAY(ctx->arena, struct journal_item, count);
	struct rev_step step = {.change = JOURNAL_GROUP,
				.path = WPATH_ROOT,
				.version = STR(""),
				.items = items,
				.item_count = count / each};
	int r;

	for (size_t i = 0; i < count; i += each) {
		const struct rev_draft *from = &drafts[i], *last = &drafts[i + each - 1];

		items[i / each] = (struct journal_item){.change = is_move ? JOURNAL_MOVE : JOURNAL_REMOVE,
							.path = last->path,
							.cond = cond_before(last),
							.version = STR("")};
		drafts[i].made = STR("");
		if (!is_move)
			continue;
		items[i / each].from = from->path;
		items[i / each].from_cond = cond_before(from);
		items[i / each].version = drafts[i + 1].made = arena_str(ctx->arena, from->before.version);
	}
	r = revlog_append_step(rv->log, ctx, drafts, count, &step, err);
	/* nothing was made: the next try looks at what is there */
	return r && step.refused && r != -ERR_INVALID
		       ? err_set(err, ERR_CONFLICT, "files changed while they were being %s; try again",
				 is_move ? "moved" : "removed")
		       : r;
}

/* Logs a batch of removals and makes them. Those that another writer was faster with are left for another try. */
static int remove_batch(struct revisions *rv, struct ctx *ctx, const struct store_page *page, bool is_first,
			uint64_t *count, struct err *err)
{
	struct rev_draft *drafts = ARENA_ARRAY(ctx->arena, struct rev_draft, page->count);
	bool again = false;
	size_t n;
	int r = draft_removals(rv, ctx, page, is_first, drafts, &n, err);

	if (r == 0 && n && make_groups(rv)) {
		r = make_drafts(rv, ctx, drafts, n, false, err);
		*count += r == 0 ? n : 0;
		return r;
	}
	if (r == 0 && n)
		r = revisions_log(rv, ctx, drafts, n, err);
	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct store_stat unused = {0};
		uint64_t one = 1;
		struct store_call call = {.op = STORE_OP_REMOVE,
					  .path = drafts[i].path,
					  .cond = {.kind = STORE_VERSION, .version = drafts[i].before.version},
					  .ret_stat = &unused,
					  .ret_count = &one};

		r = make_logged(rv, ctx, &call, &drafts[i].record, 1, err);
		*count += r == 0;
		again = again || r == -ERR_CONFLICT;
		for (size_t j = i + 1; r && r != -ERR_CONFLICT && j < n; j++)
			make_abort(rv, ctx, &drafts[j].record, 1);
		if (r && r != -ERR_CONFLICT)
			return r;
	}
	return again ? err_set(err, ERR_CONFLICT, "files changed while they were being removed; try again") : 0;
}

int tree_remove(struct revisions *rv, struct ctx *ctx, struct wpath path, uint64_t *ret_count, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = rv->base.inner,
						    .dir = path,
						    .req = {.recursive = true, .limit = BATCH_MAX},
						    .is_layer = true,
						    .ctx = *ctx};
	int r;

	*ret_count = 0;
	pthread_rwlock_wrlock(&rv->tree);
	while ((r = list_pages_next(&pages, err)) > 0) { /* after the last batch the directory is gone */
		int tries = 0;

		do
			r = remove_batch(rv, &pages.ctx, &pages.page, tries == 0, ret_count, err);
		while (r == -ERR_CONFLICT && tries++ < TRIES_MAX); /* another writer was first */
		if (r)
			break;
		revisions_pause(rv);
	}
	pthread_rwlock_unlock(&rv->tree);
	return r == 0 && *ret_count == 0 && !wpath_is_root(path) ? store_not_found(err) : r;
}

/* --- moving --- */

/* The two drafts for one moved file, whose ends were looked at: `from` is gone, `to` is there. */
static int draft_looked(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to,
			struct rev_draft two[2], struct look *ret_from, struct look *ret_to, struct err *err)
{
	int r = look_hold(rv, ctx, from, ret_from, err);

	if (r == 0 && !ret_to->is_dir)
		r = look_hold(rv, ctx, to, ret_to, err);
	if (r)
		return r;
	two[0] = (struct rev_draft){
		.op = REV_MOVE, .path = from, .other = to.s, .before = ret_from->state, .base = ret_from->base};
	two[1] = (struct rev_draft){
		.op = REV_MOVE, .path = to, .other = from.s, .before = ret_to->state, .base = ret_to->base};
	two[0].first_seen = two[1].first_seen = ret_from->first;
	two[1].after = ret_from->state;
	two[1].after.version = STR_NONE;
	return 0;
}

static int draft_move(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to,
		      struct rev_draft two[2], struct look *ret_from, struct look *ret_to, struct err *err)
{
	int r = look_at(rv, ctx, from, ret_from, err);

	if (r == 0)
		r = look_at(rv, ctx, to, ret_to, err);
	return r ? r : draft_looked(rv, ctx, from, to, two, ret_from, ret_to, err);
}

static struct store_call call_of(const struct rev_draft two[2], struct store_stat *ret_stat)
{
	return (struct store_call){.op = STORE_OP_MOVE,
				   .path = two[0].path,
				   .to = two[1].path,
				   .cond = cond_before(&two[0]),
				   .to_cond = cond_before(&two[1]),
				   .ret_stat = ret_stat};
}

/* What a move or copy of one file needs, besides its conditions. */
static int check_ends(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, const struct look *from,
		      const struct look *to, struct err *err)
{
	int r = 0;

	if (!to->is_dir)
		r = store_cond_check(wanted->to_cond, to->state.exists, to->state.version, err);
	if (r)
		return r;
	if (from->is_dir)
		return store_refuse(REFUSE_DIR, wanted->path.s, err);
	if (!from->state.exists)
		return store_not_found(err);
	if (to->is_dir)
		return store_refuse(REFUSE_DIR, wanted->to.s, err);
	return look_refuse_below_file(rv, ctx, wanted->to, err);
}

static int move_file(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, struct err *err)
{
	struct rev_draft two[2];
	struct store_call call;
	struct rev_step step;
	struct look from, to;
	int r = draft_move(rv, ctx, wanted->path, wanted->to, two, &from, &to, err);

	if (r == 0)
		r = store_cond_check(wanted->cond, from.state.exists, from.state.version, err);
	if (r == 0)
		r = check_ends(rv, ctx, wanted, &from, &to, err);
	if (r)
		return r;
	call = call_of(two, wanted->ret_stat);
	if (make_step(rv, ctx, &call, &step))
		r = revlog_append_step(rv->log, ctx, two, 2, &step, err);
	else
		r = revisions_log(rv, ctx, two, 2, err);
	if (r == 0 && step.made)
		*wanted->ret_stat = step.stat;
	return r || step.made ? r : make_logged(rv, ctx, &call, REV_PAIR(two), 2, err);
}

/* The move of a directory. */
struct moving {
	struct wpath from, to;
	bool is_rest;   /* of a move that was killed */
	uint64_t until; /* then: files with newer records stay */
	uint64_t moved;
};

/* Where the listed files go, and what is there. */
static int look_targets(struct revisions *rv, struct ctx *ctx, const struct store_page *page, const struct moving *m,
			struct wpath **ret_paths, struct look **ret_looks, struct err *err)
{
	struct wpath *paths = ARENA_ARRAY(ctx->arena, struct wpath, page->count);
	struct look *looks = ARENA_ARRAY(ctx->arena, struct look, page->count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < page->count; i++)
		r = wpath_join(ctx->arena, m->to, wpath_relative(page->entries[i].path, m->from), &paths[i], err);
	if (r == 0 && rv->journal)
		r = look_all(rv, ctx, paths, page->count, looks, err);
	for (size_t i = 0; r == 0 && !rv->journal && i < page->count; i++)
		r = look_at(rv, ctx, paths[i], &looks[i], err);
	*ret_paths = paths;
	*ret_looks = looks;
	return r;
}

/* The listed files, as drafts of their moves; those that are gone are left out. A file in the target was made after the
   move began: then the rest stays where it is. */
static int draft_moves(struct revisions *rv, struct ctx *ctx, const struct store_page *page, const struct moving *m,
		       bool is_first, struct rev_draft *drafts, size_t *ret_count, struct err *err)
{
	struct look *looks, *targets;
	struct wpath *paths;
	size_t n = 0;
	int r = look_page(rv, ctx, page, is_first, &looks, err);

	if (r == 0)
		r = look_targets(rv, ctx, page, m, &paths, &targets, err);
	for (size_t i = 0; r == 0 && i < page->count; i++) {
		struct wpath from = page->entries[i].path, to = paths[i];
		struct look l = looks[i], target = targets[i];

		r = draft_looked(rv, ctx, from, to, drafts + n, &l, &target, err);
		if (r || !l.state.exists)
			continue;
		if (m->is_rest && (l.base > m->until || target.is_dir || target.state.exists))
			continue;
		if (target.is_dir || target.state.exists)
			r = err_set(err, ERR_EXISTS,
				    ERR_PATH " was created while the directory was being moved; move the rest again",
				    STR_ARG(to.s));
		n += 2;
	}
	*ret_count = n;
	return r;
}

/* The store has failed in a batch. If a part of it is made, the rest is completed: now, in the other way that helpers
   use, or else by whoever looks at these paths next. Otherwise none of it is made. */
static int end_moves(struct revisions *rv, struct ctx *ctx, const struct rev_draft *drafts, size_t count, bool any,
		     int result)
{
	for (size_t i = 0; i < count && !any; i += 2)
		make_abort(rv, ctx, REV_PAIR(drafts + i), 2);
	for (size_t i = 0; i < count && any; i++) {
		struct err ignored;

		if (recover_record(rv, ctx, drafts[i].record, &ignored))
			return result;
	}
	return any ? 0 : result;
}

/* Another writer was faster with a file, or something is in the way of it: that says nothing of the other files. */
static bool is_of_one_file(int r)
{
	return r == -ERR_CONFLICT || r == -ERR_EXISTS || r == -ERR_INVALID;
}

/* Makes the moves of a batch, which are in the log. Each one stands for itself, since helpers may have made any of them
   by now. */
static int move_logged(struct revisions *rv, struct ctx *ctx, const struct rev_draft *drafts, size_t count,
		       uint64_t *moved, struct err *err)
{
	uint64_t before = *moved;
	int failed = 0;

	for (size_t i = 0; i < count; i += 2) {
		struct store_stat unused;
		struct store_call call = call_of(drafts + i, &unused);
		struct err why;
		bool gave_up;
		int r = make_try(rv, ctx, &call, REV_PAIR(drafts + i), 2, &gave_up, &why);

		if (is_of_one_file(r) && !gave_up)
			r = make_abort_or_find(rv, ctx, REV_PAIR(drafts + i), 2, &unused, r, &why);
		*moved += r == 0;
		if (r && failed == 0)
			*err = why;
		failed = failed ? failed : r;
		if (r && !is_of_one_file(r))
			return end_moves(rv, ctx, drafts + i, count - i, *moved > before, failed);
	}
	if (failed && *moved > before)
		return err_set(err, ERR_CONFLICT, "files changed while they were being moved; try again");
	return failed;
}

static int move_batch(struct revisions *rv, struct ctx *ctx, const struct store_page *page, bool is_first,
		      struct moving *m, struct err *err)
{
	struct rev_draft *drafts = ARENA_ARRAY(ctx->arena, struct rev_draft, 2 * page->count);
	size_t count;
	int r = draft_moves(rv, ctx, page, m, is_first, drafts, &count, err);

	if (r == 0 && count && make_groups(rv)) {
		r = make_drafts(rv, ctx, drafts, count, true, err);
		m->moved += r == 0 ? count / 2 : 0;
		return r;
	}
	if (r == 0 && count)
		r = revisions_log(rv, ctx, drafts, count, err);
	return r ? r : move_logged(rv, ctx, drafts, count, &m->moved, err);
}

/* A directory replaces nothing. On disk an empty directory may be there, and counts as nothing. */
static int refuse_taken(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = wanted->to, .ret_stat = &stat};
	struct err ignored;

	if (store_forward(rv->base.inner, ctx, &get, &ignored) != 0)
		return look_refuse_below_file(rv, ctx, wanted->to, err);
	if (stat.kind == STORE_DIR)
		return look_empty_dir(rv, ctx, wanted->to) ? 0 : store_refuse(REFUSE_DIR, wanted->to.s, err);
	if (wanted->to_cond.kind != STORE_ANY && store_cond_check(wanted->to_cond, true, stat.version, err))
		return -(int)err->kind;
	return store_refuse(REFUSE_FILE_TARGET, wanted->to.s, err);
}

/* The first batch is about to be made: if there will be another one, the move is noted. */
static int note_move(struct revisions *rv, struct ctx *ctx, const struct moving *m, size_t count,
		     struct wpath *ret_note, struct err *err)
{
	return m->is_rest || ret_note->s.ptr || count < BATCH_MAX ? 0
								  : moves_begin(rv, ctx, m->from, m->to, ret_note, err);
}

static int move_files(struct revisions *rv, struct ctx *ctx, struct moving *m, struct err *err)
{
	LIST_PAGES_SCOPE struct list_pages pages = {.store = rv->base.inner,
						    .dir = m->from,
						    .req = {.recursive = true, .limit = BATCH_MAX},
						    .is_layer = true,
						    .ctx = *ctx};
	struct wpath note = {STR_NONE};
	int r;

	while ((r = list_pages_next(&pages, err)) > 0) {
		int tries = 0;

		r = note_move(rv, ctx, m, pages.page.count, &note, err);
		if (r)
			break;
		do
			r = move_batch(rv, &pages.ctx, &pages.page, tries == 0, m, err);
		while (r == -ERR_CONFLICT && tries++ < TRIES_MAX); /* another writer was first */
		if (r)
			break;
		revisions_pause(rv);
	}
	if (note.s.ptr)
		moves_end(rv, ctx, note);
	return r;
}

static int move_tree(struct revisions *rv, struct ctx *ctx, const struct store_call *wanted, struct err *err)
{
	struct moving m = {.from = wanted->path, .to = wanted->to};
	int r = rv->journal ? moves_resume(rv, ctx, err) : 0;

	if (r == 0)
		r = refuse_taken(rv, ctx, wanted, err);
	if (r == 0)
		r = move_files(rv, ctx, &m, err);
	*wanted->ret_stat = (struct store_stat){.kind = STORE_DIR};
	return r == 0 && m.moved == 0 ? store_not_found(err) : r; /* others were faster with all of them */
}

int tree_move_rest(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to, uint64_t until,
		   struct err *err)
{
	struct moving m = {.from = from, .to = to, .is_rest = true, .until = until};
	int r = move_files(rv, ctx, &m, err);

	return r == -ERR_NOT_FOUND ? 0 : r; /* all of it was moved */
}

/* One try: a file or a directory. */
static int move_once(struct revisions *rv, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct store_stat stat;
	struct store_call get = {.op = STORE_OP_STAT, .path = call->path, .ret_stat = &stat};
	int r = store_forward(rv->base.inner, ctx, &get, err);

	if (r == -ERR_NOT_FOUND && store_cond_check(call->cond, false, STR_NONE, err))
		return -(int)err->kind; /* the version that is wanted is gone */
	if (r)
		return r == -ERR_NOT_FOUND ? store_not_found(err) : r;
	if (stat.kind == STORE_FILE)
		return move_file(rv, ctx, call, err);
	if (call->cond.kind != STORE_ANY)
		return store_refuse(call->cond.kind == STORE_VERSION ? REFUSE_DIR_VERSION : REFUSE_DIR, call->path.s,
				    err);
	return move_tree(rv, ctx, call, err);
}

int revisions_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		   struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_call call = {
		.op = STORE_OP_MOVE, .path = from, .to = to, .cond = cond, .to_cond = to_cond, .ret_stat = ret_stat};
	bool is_conditional = cond.kind != STORE_ANY || to_cond.kind == STORE_VERSION, again = true;
	int r;

	if (!revisions_records(from) || !revisions_records(to))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	for (int tries = 0; r == 0 && again && tries < TRIES_MAX; tries++) {
		struct err why;

		pthread_rwlock_wrlock(&rv->tree);
		r = move_once(rv, ctx, &call, &why);
		pthread_rwlock_unlock(&rv->tree);
		again = (r == -ERR_CONFLICT && (tries == 0 || !is_conditional)) ||
			(r == -ERR_EXISTS && to_cond.kind != STORE_ABSENT && tries < 10);
		if (r)
			*err = why;
		if (r == 0 || !again)
			return r;
		r = 0;
	}
	return r ? r : -(int)err->kind;
}

/* --- copying --- */

/* Writes the bytes that were looked at. */
static int copy_kept(struct revisions *rv, struct ctx *ctx, struct rev_draft *d, const struct look *from,
		     struct store_stat *ret_stat, struct err *err)
{
	struct source source = {0};
	struct store_call call = {
		.op = STORE_OP_WRITE, .path = d->path, .cond = cond_before(d), .source = &source, .ret_stat = ret_stat};
	int r = content_source(rv, ctx, d->record, &from->state, &source, err);

	source.mode = from->state.mode;
	return r ? make_abort_or_find(rv, ctx, &d->record, 1, ret_stat, r, err)
		 : make_logged(rv, ctx, &call, &d->record, 1, err);
}

/* A disk copies the file itself, which may be faster, and gives the copy its name only if the source is still the same.
   If it is not, and elsewhere, the bytes that are kept are written. */
static int make_copy(struct revisions *rv, struct ctx *ctx, struct rev_draft *d, const struct look *from,
		     struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {.op = STORE_OP_COPY,
				  .path = {d->other},
				  .to = d->path,
				  .cond = {.version = from->state.version},
				  .to_cond = cond_before(d),
				  .ret_stat = ret_stat};

	if (!rv->journal && make_or_find(rv, ctx, &call, &d->record, 1, err) == 0)
		return 0;
	return copy_kept(rv, ctx, d, from, ret_stat, err);
}

static int copy_once(struct revisions *rv, struct ctx *ctx, struct store_call *wanted, struct err *err)
{
	struct rev_draft two[2];
	struct look from, to;
	int r = draft_move(rv, ctx, wanted->path, wanted->to, two, &from, &to, err);

	if (r == 0)
		r = check_ends(rv, ctx, wanted, &from, &to, err);
	if (r)
		return r;
	two[1].op = REV_COPY;
	two[1].after.owner = (struct store_owner){0}; /* a copy belongs to whoever makes it */
	two[1].other_base = from.base;
	r = revisions_log(rv, ctx, &two[1], 1, err);
	return r ? r : make_copy(rv, ctx, &two[1], &from, wanted->ret_stat, err);
}

int revisions_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		   struct store_stat *ret_stat, struct err *err)
{
	struct revisions *rv = revisions_of(s);
	REV_PINNED struct revisions *pin = revisions_pin(rv);
	struct store_call call = {
		.op = STORE_OP_COPY, .path = from, .to = to, .to_cond = to_cond, .ret_stat = ret_stat};
	bool again = true;
	int r;

	if (!revisions_records(to))
		return store_forward(s->inner, ctx, &call, err);
	r = revisions_ready(rv, ctx, err);
	if (r)
		return r;
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		pthread_rwlock_wrlock(&rv->tree);
		r = copy_once(rv, ctx, &call, err);
		pthread_rwlock_unlock(&rv->tree);
		again = (r == -ERR_CONFLICT && (tries == 0 || to_cond.kind == STORE_ANY)) ||
			(r == -ERR_EXISTS && to_cond.kind == STORE_ANY);
	}
	return r;
}
