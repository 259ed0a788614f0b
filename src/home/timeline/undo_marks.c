/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are undone. The log itself says it, so it survives restarts, is the same for all processes, and goes
 * where the log goes (copies, bundles, every kind of store): the changes of an undo have a call id that says what was
 * taken back.
 *
 *   undo:7:ID           the call whose newest revision is 7; of a revision that has no call, that revision
 *   undo:>7:ID          everything after revision 7
 *   undo:session=S:ID   everything that a session did; actor=A: a user or an agent
 *   redo:9:ID           the undo whose newest revision is 9
 *
 * Walking from the newest change back, each mark that is in effect covers older changes, and what is covered is passed
 * over, marks included: an undo that was redone covers nothing. So the first change that is not covered is the next one
 * to undo, and the first undo that is not covered is the next one to redo, unless a change is met before it.
 *
 * A file of its own was rejected: it would have to be kept in step with the log through crashes, copies and retention.
 */
#include "base/strmap.h"
#include "home/timeline/history_internal.h"

static struct str number_key(struct arena *arena, uint64_t number)
{
	return arena_printf(arena, "%llu", (unsigned long long)number);
}

struct str undo_mark_call(struct arena *arena, const struct undo_mark *mark, struct str call_id)
{
	static const char *const before[] = {[UNDO_NUMBER] = "", [UNDO_SINCE] = ">", "session=", "actor="};
	struct str what = mark->what <= UNDO_SINCE ? number_key(arena, mark->number) : mark->name;

	return arena_printf(arena, "%s:%s%.*s:%.*s", mark->is_redo ? "redo" : "undo", before[mark->what], STR_ARG(what),
			    STR_ARG(call_id));
}

static bool parse_what(struct str text, struct undo_mark *ret)
{
	int64_t number;

	if (str_starts(text, STR("session=")) || str_starts(text, STR("actor="))) {
		ret->what = text.ptr[0] == 's' ? UNDO_SESSION : UNDO_ACTOR;
		ret->name = str_from(text, str_find_char(text, '=') + 1);
		return ret->name.len > 0;
	}
	ret->what = str_starts(text, STR(">")) ? UNDO_SINCE : UNDO_NUMBER;
	if (!str_to_i64(str_from(text, ret->what == UNDO_SINCE), &number) || number < 0)
		return false;
	ret->number = (uint64_t)number;
	return true;
}

static bool parse_mark(struct str call_id, struct undo_mark *ret)
{
	struct str text = str_from(call_id, 5);

	*ret = (struct undo_mark){.is_redo = str_starts(call_id, STR("redo:"))};
	if (!ret->is_redo && !str_starts(call_id, STR("undo:")))
		return false;
	return str_find_char(text, ':') < text.len && parse_what(str_first(text, str_find_char(text, ':')), ret);
}

struct undo_walk undo_walk_new(struct arena *arena, bool redo)
{
	return (struct undo_walk){.arena = arena,
				  .redo = redo,
				  .numbers = strmap_new(arena),
				  .calls = strmap_new(arena),
				  .floor = UINT64_MAX};
}

void undo_walk_skip(struct undo_walk *w, uint64_t number)
{
	strmap_put(w->numbers, number_key(w->arena, number), NULL);
}

static void cover(struct undo_walk *w, const struct undo_mark *mark)
{
	if (mark->what == UNDO_NUMBER) {
		undo_walk_skip(w, mark->number);
	} else if (mark->what == UNDO_SINCE) {
		w->floor = mark->number < w->floor ? mark->number : w->floor;
	} else {
		ARENA_ROOM(w->arena, w->names, w->name_count, w->name_cap);
		w->names[w->name_count] = *mark;
		w->names[w->name_count++].name = arena_str(w->arena, mark->name);
	}
}

static bool has_name(struct str encoded, struct str name)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	return name.len && str_eq(workspace_encode_name(arena, name), encoded);
}

static bool is_covered(struct undo_walk *w, const struct revision *r)
{
	const struct actor *a = &r->actor;
	char number[24];
	int len = snprintf(number, sizeof(number), "%llu", (unsigned long long)r->number);

	if (r->number > w->floor || (a->call_id.len && strmap_find(w->calls, a->call_id)))
		return true;
	if (strmap_find(w->numbers, str_n(number, (size_t)len))) {
		if (a->call_id.len) /* the older changes of the same call */
			strmap_put(w->calls, arena_str(w->arena, a->call_id), NULL);
		return true;
	}
	for (size_t i = 0; i < w->name_count; i++) {
		const struct undo_mark *m = &w->names[i];

		if (m->what == UNDO_SESSION ? has_name(m->name, a->session)
					    : has_name(m->name, a->user) || has_name(m->name, a->agent))
			return true;
	}
	return false;
}

enum undo_met undo_walk_meet(struct undo_walk *w, const struct revision *r)
{
	struct undo_mark mark;

	if (is_covered(w, r))
		return UNDO_PASS;
	if (!parse_mark(r->actor.call_id, &mark))
		return UNDO_CHANGE;
	if (w->redo && !mark.is_redo)
		return UNDO_UNDO;
	cover(w, &mark);
	return UNDO_PASS;
}
