/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of Wacht name a thread without its project, because there an id is unique in the whole deployment. Here a
 * thread is a file of one workspace. So it is looked for on the boards of the workspaces that the token is for, first
 * on the board "main" of each, since most are there; and where it was found is remembered: an index in the store would
 * be one more thing that can be wrong, and what is remembered is only a place to look first. A token is never told of a
 * thread in a workspace that it is not for.
 *
 * An id that nobody has is asked for, too, by mistake or to try. So a workspace is opened only if the file of the
 * thread is there, or if it is a fork, whose threads may be its origin's; and that nobody has an id is remembered for a
 * moment.
 *
 * A fork has the threads of its origin under the same ids; the origin is meant.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "store/stores.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define SLOTS         1024
#define NOWHERE_NS    (2 * NS_PER_S)
#define ID_DIGITS_MAX 20

struct place {
	uint64_t key; /* of the thread and the user; 0: free */
	char *workspace;
};

/* A thread that was not found by those who may see certain workspaces. */
struct nowhere {
	uint64_t key;
	int64_t until_ns;
};

struct thread_places {
	pthread_mutex_t lock;
	struct place slots[SLOTS];
	struct nowhere nowhere[SLOTS];
};

struct thread_places *thread_places_new(void)
{
	struct thread_places *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void thread_places_destroy(struct thread_places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		free(p->slots[i].workspace);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static uint64_t key_of(struct str thread, struct str user)
{
	return hash_u64(user, hash_u64(thread, 23)) | 1;
}

static struct str place_find(struct thread_places *p, struct arena *arena, uint64_t key)
{
	struct place *slot = &p->slots[(key >> 1) % SLOTS];
	struct str workspace = STR_NONE;

	pthread_mutex_lock(&p->lock);
	if (slot->key == key)
		workspace = arena_str(arena, str_of(slot->workspace));
	pthread_mutex_unlock(&p->lock);
	return workspace;
}

static void place_keep(struct thread_places *p, uint64_t key, struct str workspace)
{
	struct place *slot = &p->slots[(key >> 1) % SLOTS];

	pthread_mutex_lock(&p->lock);
	free(slot->workspace);
	*slot = (struct place){key, xstrndup(workspace)};
	pthread_mutex_unlock(&p->lock);
}

static uint64_t nowhere_key(const struct web_call *call, uint64_t key)
{
	for (const struct jv_member *m = jv_first(call->grant.workspaces); m; m = m->next)
		key = hash_u64(jv_str_of(m->value), key);
	return key | 1;
}

static bool is_nowhere(struct thread_places *p, uint64_t key)
{
	const struct nowhere *slot = &p->nowhere[(key >> 1) % SLOTS];
	bool is;

	pthread_mutex_lock(&p->lock);
	is = slot->key == key && clock_monotonic_ns() < slot->until_ns;
	pthread_mutex_unlock(&p->lock);
	return is;
}

static void nowhere_keep(struct thread_places *p, uint64_t key)
{
	pthread_mutex_lock(&p->lock);
	p->nowhere[(key >> 1) % SLOTS] = (struct nowhere){key, clock_monotonic_ns() + NOWHERE_NS};
	pthread_mutex_unlock(&p->lock);
}

void thread_places_keep(struct exchange *x, struct str thread)
{
	struct web_call *call = call_of(x);

	place_keep(call->serve->thread_places, key_of(thread, call->user), call->workspace);
}

/* Takes the workspace if the thread is there. ERR_NOT_FOUND: it is not. */
static int try_workspace(struct exchange *x, struct str name, struct str thread, struct err *err)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct tenant *tenant;
	struct str board;
	int r = tenants_get(call->serve->tenants, name, call->user, &tenant, err);

	if (r)
		return r;
	r = board_of_thread(tenant->ws, &ctx, thread, &board, err);
	if (r) {
		tenants_put(call->serve->tenants, tenant);
		return r;
	}
	call->workspace = arena_str(x->arena, name);
	call->board = arena_str(x->arena, board);
	call->tenant = tenant;
	return 0;
}

static bool is_fork(struct exchange *x, struct str name)
{
	struct store *home = store_prefix_new(store_share(call_of(x)->serve->base), (struct wpath){name});
	struct ctx ctx = exchange_ctx(x);
	struct fork_info info;
	struct err ignored;
	bool is = false;

	if (fork_read(&ctx, home, &info, &is, &ignored) != 0)
		is = false;
	store_destroy(home);
	return is;
}

/* The directory of the boards of a workspace, or of the user's part of it. */
static struct str boards_of(struct exchange *x, struct str name)
{
	struct str user = call_of(x)->user;

	return user.len ? arena_printf(x->arena, "%.*s/users/%.*s/boards", STR_ARG(name),
				       STR_ARG(workspace_encode_name(x->arena, user)))
			: arena_printf(x->arena, "%.*s/boards", STR_ARG(name));
}

static bool board_may_have(struct exchange *x, struct str boards, struct str board, struct str thread)
{
	struct ctx ctx = exchange_ctx(x);
	struct wpath path = {arena_printf(x->arena, "%.*s/%.*s/threads/%.*s.json", STR_ARG(boards), STR_ARG(board),
					  STR_ARG(thread))};
	struct err ignored;

	return store_stat(call_of(x)->serve->base, &ctx, path, NULL, &ignored) != -ERR_NOT_FOUND;
}

/* Users may have stores of their own, so nothing is known without opening the workspace. */
static bool is_elsewhere(const struct web_call *call)
{
	return call->user.len && str_starts(call->serve->opts.store_url, STR("config:"));
}

/* False: the thread is not on the board "main", which is known without opening the workspace. A fork may have it from
   its origin. */
static bool may_have(struct exchange *x, struct str name, struct str thread)
{
	return is_elsewhere(call_of(x)) || board_may_have(x, boards_of(x, name), STR(BOARD_DEFAULT), thread) ||
	       is_fork(x, name);
}

/* The same for all other boards of a workspace that may_have() is not true for. */
static bool others_may_have(struct exchange *x, struct str name, struct str thread)
{
	struct store_list_req req = {.limit = BOARDS_MAX, .names_only = true};
	struct ctx ctx = exchange_ctx(x);
	struct store_page page = {0};
	struct str boards = boards_of(x, name);
	struct err ignored;
	int r = store_list(call_of(x)->serve->base, &ctx, (struct wpath){boards}, &req, &page, &ignored);

	for (size_t i = 0; r == 0 && i < page.count; i++)
		if (page.entries[i].stat.kind == STORE_DIR &&
		    board_may_have(x, boards, wpath_name(page.entries[i].path), thread))
			return true;
	return r != 0 && r != -ERR_NOT_FOUND;
}

/* The names of the workspaces that the token is for. */
static int list_names(struct exchange *x, struct str **ret_names, size_t *ret_count, struct err *err)
{
	struct web_call *call = call_of(x);
	struct store_list_req req = {.limit = SERVER_THREAD_WORKSPACES, .names_only = true};
	struct store_page page = {0};
	struct ctx ctx = exchange_ctx(x);
	struct str *names;
	size_t n = 0;
	int r = 0;

	names = *ret_names = ARENA_ARRAY(x->arena, struct str, SERVER_THREAD_WORKSPACES);
	for (const struct jv_member *m = jv_first(call->grant.workspaces); m && n < SERVER_THREAD_WORKSPACES;
	     m = m->next)
		names[n++] = jv_str_of(m->value);
	if (!call->grant.workspaces)
		r = store_list(call->serve->base, &ctx, WPATH_ROOT, &req, &page, err);
	if (r == 0 && page.next.ptr)
		r = err_set(err, ERR_TOO_LARGE,
			    "there are more than %d workspaces to search for the thread; use a token for fewer, or "
			    "/v1/workspaces/NAME/boards/main/threads/ID",
			    SERVER_THREAD_WORKSPACES);
	for (size_t i = 0; r == 0 && i < page.count; i++)
		if (page.entries[i].stat.kind == STORE_DIR && workspace_name_ok(page.entries[i].path.s))
			names[n++] = page.entries[i].path.s;
	*ret_count = n;
	return r;
}

static int no_thread(struct str thread, struct err *err)
{
	return err_set(
		err, ERR_NOT_FOUND,
		"there is no thread \"%.*s\" in the token's workspaces; check the id, or use a token for its workspace",
		STR_ARG(utf8_first(thread, 40)));
}

static bool is_digits(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
	return text.len > 0;
}

/* Takes the first workspace that has the thread; a fork is only remembered. */
static int search_in(struct exchange *x, const struct str *names, size_t count, struct str thread,
		     bool (*has)(struct exchange *x, struct str name, struct str thread), struct str *fork,
		     struct err *err)
{
	struct web_call *call = call_of(x);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!has(x, names[i], thread))
			continue;
		r = try_workspace(x, names[i], thread, err);
		if (r == 0 && !is_fork(x, names[i]))
			return 0;
		if (r == 0) {
			*fork = fork->ptr ? *fork : names[i];
			tenants_put(call->serve->tenants, call->tenant);
			call->tenant = NULL;
			call->workspace = STR_NONE;
		}
		/* a workspace that is broken hides its own threads, and no others */
		r = r == -ERR_CANCELLED || r == -ERR_TIMEOUT || r == -ERR_UNAVAILABLE ? r : 0;
	}
	return r ? r : no_thread(thread, err);
}

static int search(struct exchange *x, struct str thread, struct err *err)
{
	struct str *names, fork = STR_NONE;
	size_t count;
	int r = list_names(x, &names, &count, err);

	if (r)
		return r;
	r = search_in(x, names, count, thread, may_have, &fork, err);
	if (r == -ERR_NOT_FOUND && !is_elsewhere(call_of(x)))
		r = search_in(x, names, count, thread, others_may_have, &fork, err);
	return r == -ERR_NOT_FOUND && fork.ptr ? try_workspace(x, fork, thread, err) : r;
}

int exchange_find_thread(struct exchange *x, struct err *err)
{
	struct web_call *call = call_of(x);
	struct thread_places *places = call->serve->thread_places;
	struct str thread = percent_decode(x->arena, call->thread), known;
	uint64_t key = key_of(thread, call->user);
	int r;

	if (!is_digits(thread) || thread.len > ID_DIGITS_MAX)
		return no_thread(thread, err);
	known = place_find(places, x->arena, key);
	if (known.ptr && grant_covers_workspace(&call->grant, known) && try_workspace(x, known, thread, err) == 0)
		return 0;
	if (is_nowhere(places, nowhere_key(call, key)))
		return no_thread(thread, err);
	r = search(x, thread, err);
	if (r == 0)
		thread_places_keep(x, thread);
	else if (r == -ERR_NOT_FOUND)
		nowhere_keep(places, nowhere_key(call, key));
	return r;
}
