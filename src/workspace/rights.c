/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of owners. A tool's path is judged by its place in the workspace, not by its place below '/': a dialect or
 * a --root that shows more of the workspace gives no right to change more of it.
 *
 * Only the top of the layout is listed, and stead.yaml, which is people's wherever it is. What is not in the table
 * belongs to the agent: files/, tasks/, plans/, TASKS.yaml, HEARTBEAT.md and whatever a project brings along. Names are
 * compared without regard to case, because on some file systems they are the same.
 */
#include "workspace/rights.h"

#include "base/limits.h"
#include "base/str.h"

static const struct area {
	const char *name;
	enum rights_owner owner;
	bool may_be_lent; /* agents_may_edit may name it: it decides nothing about what an agent may do */
} areas[] = {
	{"AGENT.md", RIGHTS_PEOPLE, true},
	{"AGENTS.md", RIGHTS_PEOPLE, true},
	{"SOUL.md", RIGHTS_PEOPLE, true},
	{"USER.md", RIGHTS_PEOPLE, true},
	{"knowledge", RIGHTS_PEOPLE, true},
	{"uploads", RIGHTS_PEOPLE, true},
	{".openpaw", RIGHTS_PEOPLE, false},
	{"agent.yaml", RIGHTS_PEOPLE, false},
	{"crons", RIGHTS_PEOPLE, false},
	{"skills", RIGHTS_PEOPLE, false},
	{"subagents", RIGHTS_PEOPLE, false},
	{"tools", RIGHTS_PEOPLE, false},
	{"tools.json", RIGHTS_PEOPLE, false},
	{"workflows", RIGHTS_PEOPLE, false},
	{"MEMORY.md", RIGHTS_MEMORY, false},
	{"memory", RIGHTS_MEMORY, false},
	{"agents", RIGHTS_STEAD, false},
	{"artifacts", RIGHTS_STEAD, false},
	{"schedules", RIGHTS_STEAD, false},
	{"dynamic_crons.json", RIGHTS_STEAD, false},
	{"heartbeat_log.jsonl", RIGHTS_STEAD, false},
	{"boards", RIGHTS_STEAD, false},
	{"channels", RIGHTS_STEAD, false},
};

const char *rights_area(size_t index)
{
	return index < COUNT(areas) ? areas[index].name : NULL;
}

static const struct area *area_of(struct wpath path)
{
	struct str top = str_first(path.s, str_find_char(path.s, '/'));

	for (size_t i = 0; i < COUNT(areas); i++)
		if (str_eq_nocase(top, str_of(areas[i].name)))
			return &areas[i];
	return NULL;
}

/* notes/AUTHOR/001-x.md and the versions below notes/AUTHOR/x/: the place of a note says who wrote it. */
static bool is_note(struct str path)
{
	struct str name, part = STR("");
	size_t depth = 0;

	while (str_cut(&path, '/', &name)) {
		if (depth++ == 0 && !str_eq_nocase(name, STR("notes")))
			return false;
		part = name;
	}
	return depth >= 3 && part.ptr[0] >= '0' && part.ptr[0] <= '9';
}

/* boards/BOARD/tasks/KEY/…: what the lanes of an item see as /task, except for the records of what they did. */
static bool is_work_on_item(struct str path)
{
	struct str name;
	size_t depth = 0;

	for (; str_cut(&path, '/', &name); depth++) {
		if (depth == 0 && !str_eq_nocase(name, STR("boards")))
			return false;
		if (depth == 2 && !str_is(name, "tasks"))
			return false;
		if (depth == 4)
			return !str_eq_nocase(name, STR("JOURNAL.md")) && !str_eq_nocase(name, STR("audit"));
	}
	return depth == 4; /* the directory itself */
}

/* Directories of the layout that are the agent's, or that Stead keeps for others. */
static const char *const agent_dirs[] = {"files", "tasks", "plans", "notes", "users"};

bool rights_may_be_user(struct wpath dir)
{
	if (!dir.s.len || dir.s.ptr[0] == '.' || !wpath_name_ok(dir.s) || area_of(dir))
		return false;
	for (size_t i = 0; i < COUNT(agent_dirs); i++)
		if (str_eq_nocase(dir.s, str_of(agent_dirs[i])))
			return false;
	return true;
}

/* NAME/skills/… and NAME/subagents/…: in AgentScope's layout what people wrote for one user. */
static bool is_for_user(struct str path)
{
	struct str user, name;

	return str_cut(&path, '/', &user) && str_cut(&path, '/', &name) &&
	       (str_eq_nocase(name, STR("skills")) || str_eq_nocase(name, STR("subagents"))) &&
	       rights_may_be_user((struct wpath){user});
}

/* agents/AGENT/workspace/…: where a subagent works that has files of its own. */
static bool is_work_of_agent(struct str path)
{
	struct str name;

	return str_cut(&path, '/', &name) && str_eq_nocase(name, STR("agents")) && str_cut(&path, '/', &name) &&
	       str_cut(&path, '/', &name) && str_is(name, "workspace");
}

/* stead.yaml says which tools there are and what they may do, and Stead reads the one in the directory in which
   somebody starts it: any directory, of a project too. */
static bool is_deployment(struct wpath path)
{
	return str_eq_nocase(wpath_name(path), STR("stead.yaml"));
}

enum rights_owner rights_owner_of(struct wpath path)
{
	const struct area *area = area_of(path);

	if (is_deployment(path))
		return RIGHTS_PEOPLE;
	if (is_work_on_item(path.s) || is_work_of_agent(path.s))
		return RIGHTS_AGENT;
	if (area)
		return area->owner;
	if (is_for_user(path.s))
		return RIGHTS_PEOPLE;
	return is_note(path.s) ? RIGHTS_STEAD : RIGHTS_AGENT;
}

static bool is_lent(const struct rights *rights, const struct area *area)
{
	if (!area || !area->may_be_lent)
		return false;
	for (const struct jv_member *m = jv_first(rights->lent); m; m = m->next)
		if (str_is(jv_str_of(m->value), area->name))
			return true;
	return false;
}

const char *rights_refusal(const void *arg, struct wpath path)
{
	const struct rights *rights = arg;
	char text[2 * PATH_LEN_MAX + 2];
	struct wpath whole = path;

	if (!wpath_is_root(rights->root)) {
		int n = snprintf(text, sizeof text, "%.*s%s%.*s", STR_ARG(rights->root.s), path.s.len ? "/" : "",
				 STR_ARG(path.s));

		whole = (struct wpath){str_n(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1)};
	}
	switch (rights_owner_of(whole)) {
	case RIGHTS_AGENT:
		return NULL;
	case RIGHTS_PEOPLE:
		return rights->person || is_lent(rights, area_of(whole))
			       ? NULL
			       : "only people write it, so ask them for the change";
	case RIGHTS_MEMORY:
		return rights->person ? NULL : "only the memory tools change it";
	case RIGHTS_STEAD:
		return "only Stead writes it, as a record of what happens";
	}
	return NULL;
}
