/* SPDX-License-Identifier: Apache-2.0 */
/* What every family gets from the framework. */
#include "tool/family.h"

void *family_state(const struct family *family, struct workspace *ws)
{
	return workspace_slot(ws, family, family->open, family->close);
}
