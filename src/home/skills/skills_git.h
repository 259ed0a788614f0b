/* SPDX-License-Identifier: Apache-2.0 */
/* Skill repositories in Git: git+https://, git+ssh:// and git+file:// URLs of skills.repositories. */
#ifndef STEAD_HOME_SKILLS_SKILLS_GIT_H
#define STEAD_HOME_SKILLS_SKILLS_GIT_H

#include "store/store.h"

struct skills_repository {
	struct str url;  /* git+https://host/team/skills.git */
	struct str ref;  /* a branch or tag; empty: the repository's own choice */
	struct str path; /* the directory of the skills in it; empty: its top */
};

bool skills_git_is(struct str url);
/* The files of the repository as they were at most an hour ago. *ret_late: why they could not be brought up to date
   although an older copy is used; else empty. May take a minute. */
int skills_git_open(struct ctx *ctx, const struct skills_repository *repo, struct store **ret, struct str *ret_late,
		    struct err *err);

#endif
