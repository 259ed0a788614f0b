/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any store as the lower layer of a command's files: a mount without a place on this machine, and a view (fuse/fuse.h)
 * that answers for it. Root makes the mount and hands it to the command's namespace; another user's command makes it in
 * its own namespace and hands the descriptor out (view.c). Nothing is copied, and the start takes as long with a
 * hundred thousand files as with ten. The kernel keeps what it was shown, because the lower layer of an overlay must
 * not change; that is why a workspace with a history is shown at one revision.
 *
 * A few small files of this machine are copied all the same: that is quicker than asking for each.
 */
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/sandbox_internal.h"

#define FEW_FILES 64
#define FEW_BYTES (1 * MIB)

static bool are_few(struct ctx *ctx, struct store *files)
{
	struct store_list_req req = {.recursive = true, .limit = FEW_FILES};
	struct store_page page = {0};
	struct err ignored;
	uint64_t bytes = 0;

	if (!store_is_local(files) || store_list(files, ctx, WPATH_ROOT, &req, &page, &ignored) != 0)
		return false;
	for (size_t i = 0; i < page.count; i++)
		bytes += page.entries[i].stat.size;
	return !page.next.ptr && bytes <= FEW_BYTES;
}

bool lower_is_shown(struct ctx *ctx, const struct sandbox_files *files)
{
	return access("/dev/fuse", R_OK | W_OK) == 0 && !are_few(ctx, files->shown ? files->shown : files->store);
}

static struct fuse_view *view_of(struct ctx *ctx, const struct sandbox_files *files, uid_t uid, gid_t gid, int dev)
{
	struct fuse_opts opts = {.files = files->shown ? files->shown : files->store,
				 .dev = dev,
				 .read_only = true,
				 .is_fixed = true,
				 .uid = uid,
				 .gid = gid,
				 .actor = ctx->actor};

	return fuse_view_new(&opts);
}

struct fuse_view *lower_view(struct ctx *ctx, const struct sandbox_files *files, uid_t uid, gid_t gid, int *ret_tree)
{
	struct err ignored;
	int dev;

	if (!lower_is_shown(ctx, files) || fuse_mount_detached(uid, gid, &dev, ret_tree, &ignored) != 0)
		return NULL;
	return view_of(ctx, files, uid, gid, dev);
}

struct fuse_view *lower_view_of(struct ctx *ctx, const struct sandbox_files *files, int dev)
{
	return view_of(ctx, files, SANDBOX_UID, SANDBOX_UID, dev);
}
