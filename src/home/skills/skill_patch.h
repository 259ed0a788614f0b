/* SPDX-License-Identifier: Apache-2.0 */
/* The replacement of text in a skill's file. */
#ifndef STEAD_HOME_SKILLS_SKILL_PATCH_H
#define STEAD_HOME_SKILLS_SKILL_PATCH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Replaces `old_text`, which is searched for exactly, then as lines without regard to blanks at their ends, then as
   lines whose runs of blanks count as one. It must occur once, unless `all`. *ret_level: "exact", "trailing_blanks" or
   "blanks". */
int skill_patch(struct arena *arena, struct str text, struct str old_text, struct str new_text, bool all,
		struct str *ret_text, const char **ret_level, struct err *err);

#endif
