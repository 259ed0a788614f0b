/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock for the table, one per workspace while it is opened: opening may wait for a server, and must delay only
 * those who want the same workspace.
 */
#include "server/tenants.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

#define BUCKETS        1024
#define LOOK_NS        (2 * NS_PER_S)  /* a look takes at most */
#define LOOK_REMOTE_NS (30 * NS_PER_S) /* a look at settings on a server costs three requests */

struct house {
	struct house *next;
	struct str name;
	struct workspace *ws;                                    /* without a user; NULL: not open yet */
	struct toolset *set, *reading, *offers, *offers_reading; /* as in struct tenant */
	pthread_mutex_t opening;
	uint64_t settings;  /* their versions when it was opened */
	int64_t looked_ns;  /* when they were compared last */
	bool is_old;        /* they have changed since, and it is no longer in the table */
	unsigned refs;      /* who opens it or looks at it, and each tenant */
	struct house *look; /* the next that is to be looked at */
};

struct tenants {
	pthread_mutex_t lock;
	struct arena *arena;
	struct workspace_opts like;
	struct toolset_choice choice;
	struct house *houses[BUCKETS];
	struct tenant *tenants[BUCKETS];
	struct tenant *old; /* of houses whose settings have changed: nobody gets them any longer */
	uint64_t count;     /* of tenants */
};

struct tenants *tenants_new(const struct workspace_opts *like, const struct toolset_choice *choice)
{
	struct tenants *t = xcalloc(1, sizeof(*t));

	pthread_mutex_init(&t->lock, NULL);
	t->arena = arena_new();
	t->like = *like;
	t->like.store_url = arena_str(t->arena, like->store_url);
	t->choice = *choice;
	t->choice.sets = arena_str(t->arena, choice->sets);
	return t;
}

static struct house **house_slot(struct tenants *t, struct str name)
{
	struct house **slot = &t->houses[hash_u64(name, 11) % BUCKETS];

	while (*slot && !str_eq((*slot)->name, name))
		slot = &(*slot)->next;
	return slot;
}

static struct tenant **tenant_slot(struct tenants *t, struct str name, struct str user)
{
	struct tenant **slot = &t->tenants[hash_u64(user, hash_u64(name, 11)) % BUCKETS];

	while (*slot && (!str_eq((*slot)->user, user) || !str_eq((*slot)->house->name, name)))
		slot = &(*slot)->next;
	return slot;
}

struct tenant *tenants_find(struct tenants *t, struct str name, struct str user)
{
	struct tenant *tenant;

	pthread_mutex_lock(&t->lock);
	tenant = *tenant_slot(t, name, user);
	if (tenant)
		tenant->refs++;
	pthread_mutex_unlock(&t->lock);
	return tenant;
}

static void house_drop_tools(struct house *house)
{
	toolset_destroy(house->offers_reading);
	toolset_destroy(house->offers);
	toolset_destroy(house->reading);
	toolset_destroy(house->set);
	house->set = house->reading = house->offers = house->offers_reading = NULL;
}

/* The sets of tools; none on failure. */
static int house_open_tools(struct tenants *t, struct house *house, struct workspace *ws, struct err *err)
{
	struct toolset_choice all = {.sets = STR("all"), .read_only = true}, reading = t->choice;
	int r = toolset_new(ws, STR_NONE, &house->set, err);

	reading.read_only = true;
	if (r == 0)
		r = toolset_choose(house->set, &all, &house->reading, err);
	if (r == 0)
		r = toolset_choose(house->set, &t->choice, &house->offers, err);
	if (r == 0)
		r = toolset_choose(house->set, &reading, &house->offers_reading, err);
	if (r)
		house_drop_tools(house);
	return r;
}

static void house_close(struct house *house)
{
	house_drop_tools(house);
	workspace_close(house->ws);
	pthread_mutex_destroy(&house->opening);
	free((char *)house->name.ptr);
	free(house);
}

/* Takes one reference off; returns the house when it is to be closed by the caller. tenants.lock is held. */
static struct house *house_unref(struct tenants *t, struct house *house)
{
	if (--house->refs)
		return NULL;
	if (!house->is_old)
		*house_slot(t, house->name) = house->next;
	return house;
}

static int settings_of(struct workspace *ws, int64_t deadline_ns, uint64_t *ret, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = deadline_ns};

	return workspace_settings_version(ws, &ctx, ret, err);
}

static struct house *house_ref(struct tenants *t, struct str name)
{
	struct house **slot, *house;

	pthread_mutex_lock(&t->lock);
	slot = house_slot(t, name);
	house = *slot;
	if (!house) {
		house = *slot = xcalloc(1, sizeof(*house));
		house->name = str_n(xstrndup(name), name.len);
		pthread_mutex_init(&house->opening, NULL);
	}
	house->refs++;
	pthread_mutex_unlock(&t->lock);
	return house;
}

/* A workspace as the server opens it. */
static int open_named(struct tenants *t, struct str name, struct workspace **ret, int64_t deadline_ns, struct err *err)
{
	struct workspace_opts opts = t->like;

	opts.name = name;
	opts.deadline_ns = deadline_ns;
	return workspace_open(&opts, ret, err);
}

/* house.opening is held. */
static int house_open(struct tenants *t, struct house *house, struct err *err)
{
	int64_t deadline = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS;
	struct workspace *ws;
	int r;

	if (house->ws)
		return 0;
	r = open_named(t, house->name, &ws, deadline, err);
	if (r && err->detail == DETAIL_NO_WORKSPACE) /* clients are not told where the store is */
		return err_set(err, ERR_NOT_FOUND, "there is no workspace \"%.*s\"; GET /v1/workspaces lists them",
			       STR_ARG(house->name));
	if (r)
		return r;
	r = settings_of(ws, deadline, &house->settings, err);
	if (r == 0)
		r = house_open_tools(t, house, ws, err);
	if (r) {
		workspace_close(ws);
		return r;
	}
	pthread_mutex_lock(&t->lock);
	house->looked_ns = clock_monotonic_ns();
	house->ws = ws;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* The handle of one user over an open house; house.opening is held. */
static int tenant_open(struct house *house, struct str user, struct tenant **ret, struct err *err)
{
	struct tenant *tenant = xcalloc(1, sizeof(*tenant));
	int r = 0;

	tenant->house = house;
	tenant->owner = tenants_owner(house->name);
	tenant->ws = house->ws;
	tenant->set = house->set;
	tenant->reading = house->reading;
	tenant->offers = house->offers;
	tenant->offers_reading = house->offers_reading;
	if (user.len)
		r = workspace_open_for(house->ws, user, STR_NONE, STR_NONE, &tenant->ws, err);
	if (r) {
		free(tenant);
		return r;
	}
	tenant->user = str_n(xstrndup(user), user.len);
	if (user.len) {
		tenant->set = toolset_for(house->set, tenant->ws);
		tenant->reading = toolset_for(house->reading, tenant->ws);
		tenant->offers = toolset_for(house->offers, tenant->ws);
		tenant->offers_reading = toolset_for(house->offers_reading, tenant->ws);
	}
	*ret = tenant;
	return 0;
}

static void tenant_close(struct tenant *tenant)
{
	if (tenant->user.len) {
		toolset_destroy(tenant->set);
		toolset_destroy(tenant->reading);
		toolset_destroy(tenant->offers);
		toolset_destroy(tenant->offers_reading);
		workspace_close(tenant->ws);
	}
	free((char *)tenant->user.ptr);
	free(tenant);
}

/* tenants.lock is held. */
static void put_in_table(struct tenants *t, struct tenant *tenant)
{
	struct tenant **slot = tenant->house->is_old ? &t->old : tenant_slot(t, tenant->house->name, tenant->user);

	tenant->next = tenant->house->is_old ? t->old : NULL;
	*slot = tenant;
}

int tenants_get(struct tenants *t, struct str name, struct str user, struct tenant **ret, struct err *err)
{
	struct house *house = house_ref(t, name);
	struct tenant *tenant;
	int r = 0;

	pthread_mutex_lock(&house->opening);
	pthread_mutex_lock(&t->lock);
	tenant = *tenant_slot(t, name, user);
	if (tenant)
		tenant->refs++;
	pthread_mutex_unlock(&t->lock);
	if (!tenant) {
		r = house_open(t, house, err);
		if (r == 0)
			r = tenant_open(house, user, &tenant, err);
		pthread_mutex_lock(&t->lock);
		if (r == 0) {
			tenant->refs = 1;
			put_in_table(t, tenant);
			house->refs++;
			t->count++;
		}
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&house->opening);
	pthread_mutex_lock(&t->lock);
	house = house_unref(t, house);
	pthread_mutex_unlock(&t->lock);
	if (house)
		house_close(house);
	if (r == 0)
		*ret = tenant;
	return r;
}

struct tenant *tenants_share(struct tenants *t, struct tenant *tenant)
{
	pthread_mutex_lock(&t->lock);
	tenant->refs++;
	pthread_mutex_unlock(&t->lock);
	return tenant;
}

void tenants_put(struct tenants *t, struct tenant *tenant)
{
	if (!tenant)
		return;
	pthread_mutex_lock(&t->lock);
	tenant->refs--;
	tenant->used_ns = clock_monotonic_ns();
	pthread_mutex_unlock(&t->lock);
}

bool tenant_is(const struct tenant *a, const struct tenant *b)
{
	return a == b || (str_eq(a->house->name, b->house->name) && str_eq(a->user, b->user));
}

/* Those that are open and due for a look, as a list with a reference to each. */
static struct house *list_to_look(struct tenants *t)
{
	int64_t now = clock_monotonic_ns();
	struct house *list = NULL;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct house *house = t->houses[i]; house; house = house->next)
			if (house->ws && (now - house->looked_ns >= LOOK_REMOTE_NS ||
					  store_can(workspace_home(house->ws), STORE_LOCAL))) {
				house->refs++;
				house->look = list;
				list = house;
			}
	pthread_mutex_unlock(&t->lock);
	return list;
}

/* Takes the house and its tenants out of the tables. tenants.lock is held. */
static void make_old(struct tenants *t, struct house *house)
{
	*house_slot(t, house->name) = house->next;
	house->is_old = true;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct tenant **slot = &t->tenants[i];

		while (*slot) {
			struct tenant *tenant = *slot;

			if (tenant->house != house) {
				slot = &tenant->next;
				continue;
			}
			*slot = tenant->next;
			put_in_table(t, tenant);
		}
	}
}

/* False: with these settings nobody could work, so those who do continue with the old ones. */
static bool can_open(struct tenants *t, struct house *house)
{
	struct workspace *ws;
	struct err err;

	if (open_named(t, house->name, &ws, clock_monotonic_ns() + LOOK_NS, &err) != 0)
		return false;
	workspace_close(ws);
	return true;
}

void tenants_renew(struct tenants *t)
{
	struct house *list = list_to_look(t);
	bool answers = true; /* what does not answer would hold up the rest */

	while (list) {
		struct house *house = list;
		bool has_changed = false;
		uint64_t settings;
		struct err err;

		list = house->look;
		answers = answers && settings_of(house->ws, clock_monotonic_ns() + LOOK_NS, &settings, &err) == 0;
		if (answers && settings != house->settings) {
			has_changed = can_open(t, house);
			house->settings = settings;
		}
		pthread_mutex_lock(&t->lock);
		house->looked_ns = clock_monotonic_ns();
		if (has_changed)
			make_old(t, house);
		house = house_unref(t, house);
		pthread_mutex_unlock(&t->lock);
		if (house)
			house_close(house);
	}
}

/* Moves those that are idle from one list to another. tenants.lock is held. */
static void take_idle_of(struct tenants *t, struct tenant **slot, int64_t until_ns, struct tenant **list)
{
	while (*slot) {
		struct tenant *tenant = *slot;

		if (tenant->refs || tenant->used_ns > until_ns) {
			slot = &tenant->next;
			continue;
		}
		*slot = tenant->next;
		tenant->next = *list;
		*list = tenant;
		t->count--;
	}
}

/* Takes those that are idle out of the table, as a list. */
static struct tenant *take_idle(struct tenants *t, int64_t idle_ns)
{
	int64_t until = clock_monotonic_ns() - idle_ns;
	struct tenant *list = NULL;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		take_idle_of(t, &t->tenants[i], until, &list);
	take_idle_of(t, &t->old, until, &list);
	pthread_mutex_unlock(&t->lock);
	return list;
}

void tenants_sweep(struct tenants *t, int64_t idle_ns)
{
	struct tenant *list = take_idle(t, idle_ns);
	bool any = list;

	while (list) {
		struct tenant *tenant = list;
		struct house *house = tenant->house;

		list = tenant->next;
		tenant_close(tenant);
		pthread_mutex_lock(&t->lock);
		house = house_unref(t, house);
		pthread_mutex_unlock(&t->lock);
		if (house)
			house_close(house);
	}
	if (any) /* what they needed goes back to the system */
		malloc_trim(0);
}

void tenants_destroy(struct tenants *t)
{
	if (!t)
		return;
	tenants_sweep(t, 0);
	pthread_mutex_destroy(&t->lock);
	arena_destroy(t->arena);
	free(t);
}

uint64_t tenants_owner(struct str workspace)
{
	return hash_u64(workspace, 17);
}

uint64_t tenants_count(struct tenants *t)
{
	uint64_t count;

	pthread_mutex_lock(&t->lock);
	count = t->count;
	pthread_mutex_unlock(&t->lock);
	return count;
}
