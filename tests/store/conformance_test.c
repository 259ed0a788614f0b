/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the list of conformance.h over every store. A new backend or layer adds one STACK line. */
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/conformance.h"

static struct store *open_revisions(int form, struct store *inner, struct store *meta)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *s;
	struct err err;

	CHECK_OK(store_revisions_open(inner, meta, form_opts(form), &ctx, &s, &err), err);
	return s;
}

STACK(memory, store_memory_new())
STACK(revisions_in_memory, open_revisions(FORM_SEGMENTS, store_memory_new(), store_memory_new()))
STACK(revisions_in_a_journal, open_revisions(FORM_OBJECTS, store_memory_new(), form_meta(FORM_OBJECTS)))
STACK(revisions_in_one_step, open_revisions(FORM_ONE_STEP, store_memory_new(), store_memory_new()))
STACK(revisions_on_disk, open_revisions(FORM_SEGMENTS, open_disk(true, true), open_disk(true, true)))
STACK(revisions_in_a_journal_on_disk, open_revisions(FORM_OBJECTS, open_disk(true, true), open_disk(true, true)))
STACK(disk, open_disk(false, false))
STACK(disk_with_a_tmp_dir, open_disk(false, true))
STACK(relaxed_disk, open_disk(true, false))
STACK(relaxed_disk_with_a_tmp_dir, open_disk(true, true))
STACK(prefix, store_prefix_new(store_memory_new(), P("a/workspace")))
STACK(prefix_of_the_root, store_prefix_new(store_memory_new(), P("")))
STACK(events, store_events_new(store_memory_new()))
STACK(fault_that_is_not_armed, store_fault_new(store_memory_new()))
STACK(guard, store_guard_new(store_memory_new(), &guard_defaults))
STACK(quota, store_quota_new(store_memory_new(),
			     (struct quota_limits){.bytes = 64 * MIB, .files = 2000, .file_size = 32 * MIB}))

STACK(cache_in_memory, store_cache_new(store_memory_new(), (struct cache_opts){.identity = STR("m"), .bytes = 8 * MIB}))
STACK(cache_on_disk,
      store_cache_new(store_memory_new(),
		      (struct cache_opts){.identity = STR("d"), .bytes = 64 * MIB, .dir = temp_dir_new()}))

static struct store *mounted(void)
{
	struct store_mount mounts[] = {{.at = P("m/one"), .store = store_memory_new()},
				       {.at = P("m/one/deep"), .store = store_memory_new()},
				       {.at = P("n"), .store = store_memory_new()}};

	return store_mounts_new(store_memory_new(), mounts, 3);
}

static enum split_side side_of_test(struct wpath path)
{
	if (wpath_within(path, P("ws/second")))
		return SPLIT_SECOND;
	return wpath_is_root(path) || wpath_eq(path, P("ws")) ? SPLIT_BOTH : SPLIT_FIRST;
}

/* "a" and "d" and everything in them are in the other store. */
static enum split_side side_by_name(struct wpath path)
{
	struct str name = str_first(path.s, str_find_char(path.s, '/'));

	return wpath_is_root(path) ? SPLIT_BOTH : str_is(name, "a") || str_is(name, "d") ? SPLIT_SECOND : SPLIT_FIRST;
}

STACK(split, store_split_new(store_memory_new(), store_memory_new(), side_by_name))
STACK(the_first_of_a_split,
      store_prefix_new(store_split_new(store_memory_new(), store_memory_new(), side_of_test), P("ws/first")))
STACK(the_second_of_a_split,
      store_prefix_new(store_split_new(store_memory_new(), store_memory_new(), side_of_test), P("ws/second/x")))
STACK(the_whole_of_a_split,
      store_prefix_new(store_split_new(store_memory_new(), store_memory_new(), side_of_test), P("ws")))
STACK(mounts_with_none, store_mounts_new(store_memory_new(), NULL, 0))
STACK(the_inside_of_a_mount, store_prefix_new(mounted(), P("m/one/deep/x")))
STACK(the_base_beside_mounts, store_prefix_new(mounted(), P("m/two")))
STACK(overlay_over_nothing, store_overlay_new(store_memory_new(), store_memory_new()))
STACK(overlay_far_away, store_overlay_new(remote_new(store_memory_new(), false), remote_new(store_memory_new(), true)))

/* A lower store with many files, all of which were deleted: the overlay must behave as if it were empty. */
static struct store *overlay_over_deleted(void)
{
	static const char *const paths[] = {"a", "b/a", "d/e/f", "d/b", "c", "x/y/a", "notes/today.md", "e"};
	struct store *lower = store_memory_new(), *s;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		CHECK_OK(store_write(lower, &ctx, P(paths[i]), STR("from the template"), ANY, NULL, &err), err);
	s = store_overlay_new(store_memory_new(), lower);
	CHECK_OK(store_remove(s, &ctx, P("a"), false, ANY, NULL, &err), err);
	CHECK_OK(store_remove(s, &ctx, P("d/e"), true, ANY, NULL, &err), err);
	CHECK_OK(store_remove(s, &ctx, P(""), true, ANY, NULL, &err), err);
	return s;
}

STACK(overlay_over_what_was_deleted, overlay_over_deleted())
STACK(guard_over_events_over_quota_over_a_prefix,
      store_guard_new(store_events_new(store_quota_new(store_prefix_new(open_disk(true, false), P("ws/one")),
						       (struct quota_limits){.bytes = 64 * MIB, .files = 2000})),
		      &guard_defaults))
