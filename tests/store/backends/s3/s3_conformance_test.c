/* SPDX-License-Identifier: Apache-2.0 */
/* The store contract on a real S3 server; on one without conditional writes with single_writer=1. */
#include "revisions/rev_form.h"
#include "store/backends/s3/s3_fix.h"
#include "store/conformance.h"
#include "store/journal_conformance.h"

static struct store *open_s3(void)
{
	return s3_at(NULL, s3_prefix(), s3_unconditional() ? "&single_writer=1" : "");
}

STACK(s3, open_s3())

TEST(journals_on_s3_keep_their_contract)
{
	conf_run(&journal_cases, open_s3);
}

/* Files and history in one bucket, as a workspace has them: meta is below a prefix of its own. */
static struct store *open_revisions_on_s3(void)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *more = s3_unconditional() ? "&single_writer=1" : "";
	struct store *files = s3_at(NULL, s3_prefix(), more), *meta = s3_at(NULL, s3_prefix(), more), *s;
	struct ctx ctx = {.arena = arena};
	struct err err;

	CHECK_OK(store_revisions_open(files, meta, form_opts(FORM_OBJECTS), &ctx, &s, &err), err);
	return s;
}

STACK(revisions_on_s3, open_revisions_on_s3())
