/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills: a directory with a SKILL.md (what it is for, then instructions) and files that the instructions point to, as
 * the Agent Skills specification has them. Four layers; of two skills with one name the higher layer's counts:
 *
 *   agent.yaml skills.global_dir      a directory of the host, for all workspaces
 *   agent.yaml skills.repositories    further directories or stores; a later one is higher
 *   skills/ of the workspace
 *   skills/ of the user               (the user's part of the workspace, file by file over the workspace's)
 *
 * Names that begin with '_' or '.' are not skills: skills/_drafts has what agents wrote and nobody has approved yet,
 * skills/.archive what was removed. A skill that cannot be read is reported and left out; it never fails the rest.
 */
#ifndef STEAD_HOME_SKILLS_SKILLS_H
#define STEAD_HOME_SKILLS_SKILLS_H

#include "text/jv.h"
#include "tool/prompt_section.h"

struct skill {
	struct str name, description;
	struct str source; /* "global", a repository's name, "workspace", "user"; of drafts "draft" */
	struct store *store;
	struct wpath dir; /* in `store` */
	struct jv *head;  /* the whole of the frontmatter */
	struct str body;
	struct jv *warnings; /* sentences: it was loaded all the same */
	struct str version;  /* of its SKILL.md */
};

#define SKILL_REPOSITORIES_MAX 32

struct skills {
	struct skill *skills; /* by name */
	size_t count;
	struct jv *problems; /* [{path, source, problem}] */
	struct store *opened[SKILL_REPOSITORIES_MAX + 1];
	size_t opened_count;
};

/* All that count now. The stores stay open until skills_close(); everything else is in the arena. */
int skills_open(struct workspace *ws, struct ctx *ctx, struct skills *ret, struct err *err);
/* The same for who wants the skill of this name: when the workspace has it in the directory of that name, only that one
   is read. */
int skills_open_named(struct workspace *ws, struct ctx *ctx, struct str name, struct skills *ret, struct err *err);
/* Whether a layer has a skill of this name in the directory of that name. */
int skills_taken(struct workspace *ws, struct ctx *ctx, struct str name, bool *ret, struct err *err);
void skills_close(struct skills *skills);
/* By name, or by "<name>_<source>" (AgentScope's id). NULL: none. */
const struct skill *skills_find(const struct skills *skills, struct str name);
/* ERR_NOT_FOUND with the nearest name, or those there are. */
int skills_unknown(struct arena *arena, const struct skills *skills, struct str name, struct err *err);
/* {name, description, source, path, license?, compatibility?, allowed_tools?, metadata?, warnings?} */
struct jv *skill_value(struct arena *arena, const struct skill *skill);
/* Paths of its files but SKILL.md, in the skill: [{path, size}], at most SKILL_FILES_MAX. */
int skill_files(struct ctx *ctx, const struct skill *skill, struct jv **ret, struct err *err);

/* For `stead doctor`. */
void skills_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);

/* --- one document (skill_file.c) --- */

/* Fills name, description, head, body and warnings. `dir_name` is what the directory is called. Lenient: what can be
   understood is loaded with a warning. */
int skill_parse(struct arena *arena, struct str dir_name, struct str text, struct skill *ret, struct err *err);
/* Strict, for what is written: the head has name (equal to `name`) and description, and a body follows. */
int skill_check(struct arena *arena, struct str name, struct str text, struct err *err);
/* ^[a-z0-9][a-z0-9._-]*$, at most 64. */
bool skill_name_ok(struct str name);

/* --- the scan (skill_scan.c) --- */

enum skill_verdict { SKILL_SAFE, SKILL_CAUTION, SKILL_DANGEROUS };

/* Looks for what honest skills seldom have. It finds carelessness, not attacks, and is not a security boundary: the
   permissions of an agent's tools are. Adds {path, line, class, severity, what} to `findings`. */
void skill_scan_text(struct arena *arena, struct str path, struct str text, struct jv *findings);
enum skill_verdict skill_verdict(const struct jv *findings);
const char *skill_verdict_name(enum skill_verdict verdict);

/* --- writing them (skill_author.c) --- */

struct skill_edit {
	struct str action; /* create edit patch write_file remove_file delete */
	struct str name;
	struct str content;                /* create, edit: the whole SKILL.md */
	struct str file_path;              /* patch (default SKILL.md), write_file, remove_file */
	struct str file_content;           /* write_file */
	struct str old_string, new_string; /* patch */
	bool replace_all;
	struct str absorbed_into; /* delete: the skill that has it now */
};

/* An agent's change. It is made in a draft, which is a copy of the skill when there is one, unless
   skills.auto_promote is on and the scan finds nothing. Refused (ERR_DENIED, nothing changed) when the scan says
   DANGEROUS. *ret: {name, action, path, draft, verdict, findings?, match?, note}. */
int skill_manage(struct workspace *ws, struct ctx *ctx, const struct skill_edit *edit, struct jv **ret,
		 struct err *err);
/* `scripts`: [{path, content}], may be NULL. */
int skill_propose(struct workspace *ws, struct ctx *ctx, struct str name, struct str description, struct str body,
		  const struct jv *scripts, struct jv **ret, struct err *err);
/* Drafts: [{name, description?, path, verdict, problem?}]. */
int skill_drafts(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err);
/* A person's: {name, path, verdict, findings}. `draft`: of the draft, else of the skill that counts. */
int skill_scan(struct workspace *ws, struct ctx *ctx, struct str name, bool draft, struct jv **ret, struct err *err);
/* The draft becomes the skill; the one it replaces is archived. ERR_DENIED for a DANGEROUS one without `force`. */
int skill_promote(struct workspace *ws, struct ctx *ctx, struct str name, bool force, struct jv **ret, struct err *err);
/* Takes a skill of the workspace (or, without one, its draft) to skills/.archive. */
int skill_archive(struct workspace *ws, struct ctx *ctx, struct str name, struct str absorbed_into, struct jv **ret,
		  struct err *err);
/* Brings a directory of the host into skills/ (checked, bounded); its name is that of its SKILL.md. */
int skill_add(struct workspace *ws, struct ctx *ctx, struct str host_dir, bool force, struct jv **ret, struct err *err);

/* For the prompt. */
extern const struct prompt_section skills_sections[];

#endif
