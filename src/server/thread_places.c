/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of Wacht name a thread without its project, because there an id is unique in the whole deployment. Here a
 * thread is a file of one workspace. So it is looked for on the board "main" of the workspaces that the token is for,
 * and where it was found is remembered: an index in the store would be one more thing that can be wrong, and what is
 * remembered is only a place to look first. A token is never told of a thread in a workspace that it is not for.
 *
 * A fork has the threads of its origin under the same ids; the origin is meant.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "store/stores.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define SLOTS 1024

struct place {
	uint64_t key; /* of the thread and the user; 0: free */
	char *workspace;
};

struct thread_places {
	pthread_mutex_t lock;
	struct place slots[SLOTS];
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

/* Takes the workspace if the thread is there. ERR_NOT_FOUND: it is not. */
static int try_workspace(struct exchange *x, struct str name, struct str thread, struct err *err)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct tenant *tenant;
	struct jv *ignored;
	int r = tenants_get(call->serve->tenants, name, call->user, &tenant, err);

	if (r)
		return r;
	r = board_thread_get(tenant->ws, &ctx, STR(""), thread, &ignored, err);
	if (r) {
		tenants_put(call->serve->tenants, tenant);
		return r;
	}
	call->workspace = arena_str(x->arena, name);
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
			    "there are more than %d workspaces to look for the thread in; use a token for fewer, or "
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
		"there is no thread \"%.*s\" in the workspaces that the token is for; check the id, or use a token "
		"for its workspace",
		STR_ARG(utf8_first(thread, 40)));
}

static bool is_digits(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
	return text.len > 0;
}

static int search(struct exchange *x, struct str thread, struct err *err)
{
	struct web_call *call = call_of(x);
	struct str *names, fork = STR_NONE;
	size_t count;
	int r = list_names(x, &names, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = try_workspace(x, names[i], thread, err);
		if (r == 0 && !is_fork(x, names[i]))
			return 0;
		if (r == 0) {
			fork = fork.ptr ? fork : names[i];
			tenants_put(call->serve->tenants, call->tenant);
			call->tenant = NULL;
			call->workspace = STR_NONE;
		}
		/* a workspace that is broken hides its own threads, and no others */
		r = r == -ERR_CANCELLED || r == -ERR_TIMEOUT || r == -ERR_UNAVAILABLE ? r : 0;
	}
	if (r)
		return r;
	return fork.ptr ? try_workspace(x, fork, thread, err) : no_thread(thread, err);
}

int exchange_find_thread(struct exchange *x, struct err *err)
{
	struct web_call *call = call_of(x);
	struct thread_places *places = call->serve->thread_places;
	struct str thread = percent_decode(x->arena, call->thread), known;
	uint64_t key = key_of(thread, call->user);
	int r;

	if (!is_digits(thread))
		return no_thread(thread, err);
	known = place_find(places, x->arena, key);
	if (known.ptr && grant_covers_workspace(&call->grant, known) && try_workspace(x, known, thread, err) == 0)
		return 0;
	r = search(x, thread, err);
	if (r == 0)
		place_keep(places, key, call->workspace);
	return r;
}
