/* SPDX-License-Identifier: Apache-2.0 */
/* Leases by hand and from scripts: each command is a process of its own, so the name of the holder is its identity. */
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "command/cli.h"
#include "store/lease.h"

#define NS_PER_S INT64_C(1000000000)

static void print_info(struct cli *cli, const struct lease_info *info, struct jv *list)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", info->name);
	jv_set_str(arena, v, "holder", info->holder);
	jv_set_int(arena, v, "fence", (int64_t)info->fence);
	jv_set_int(arena, v, "ttl_ms", info->ttl_ns / 1000000);
	if (cli->json && list)
		jv_push(arena, list, v);
	else if (cli_json(cli, v))
		return;
	else if (info->holder.len)
		output_printf(&cli->out, "%.*s: held by %.*s, fence %llu, renewed within %g s\n", STR_ARG(info->name),
			      STR_ARG(info->holder), (unsigned long long)info->fence, (double)info->ttl_ns / 1e9);
	else
		output_printf(&cli->out, "%.*s: free, last fence %llu\n", STR_ARG(info->name),
			      (unsigned long long)info->fence);
}

static int show_all(struct cli *cli, struct store *leases, struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct jv *list = jv_array(cli->ctx.arena);
	struct store_page page;
	bool none = true;

	do {
		int r = store_list(leases, &cli->ctx, WPATH_ROOT, &req, &page, err);

		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct lease_info info;

			r = lease_show(leases, &cli->ctx, page.entries[i].path.s, &info, err);
			if (r == 0)
				print_info(cli, &info, list);
			none = none && r;
		}
		if (r)
			return r;
		req.after = page.next;
	} while (page.next.ptr);
	if (!cli_json(cli, list) && none)
		output_add(&cli->out, STR("no leases\n"));
	return 0;
}

static struct str made_up_holder(struct arena *arena)
{
	char host[65] = "host";

	gethostname(host, sizeof host - 1);
	return arena_printf(arena, "%s-%08x", host, (unsigned)random_u64());
}

static int want_of(struct cli *cli, bool acquires, struct lease_want *want, struct err *err)
{
	*want = (struct lease_want){.name = cli->args.operands[0],
				    .holder = args_get(&cli->args, "holder"),
				    .ttl_ns = (int64_t)args_number(&cli->args, "ttl", 30) * NS_PER_S,
				    .wait_ns = (int64_t)args_number(&cli->args, "wait", 0) * NS_PER_S};
	if (!want->holder.len && !acquires)
		return err_set(err, ERR_INVALID, "lease: --holder is missing; give the one that acquired it");
	if (!want->holder.len)
		want->holder = made_up_holder(cli->ctx.arena);
	return 0;
}

/* Opens the leases of the workspace, acts, and prints the lease as it is afterwards. */
static int act(struct cli *cli, bool acquires, int (*then)(struct lease *, struct ctx *, struct err *), struct err *err)
{
	struct lease_want want;
	struct lease_info info;
	struct lease *lease = NULL;
	struct store *leases;
	int r = want_of(cli, acquires, &want, err);

	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r)
		return r;
	leases = workspace_leases_new(cli->ws);
	r = acquires ? lease_acquire(leases, &cli->ctx, &want, &lease, err)
		     : lease_resume(leases, &cli->ctx, &want, args_number(&cli->args, "fence", 0), &lease, err);
	if (r == 0 && then)
		r = then(lease, &cli->ctx, err);
	lease_destroy(lease);
	if (r == 0)
		r = lease_show(leases, &cli->ctx, want.name, &info, err);
	if (r == 0)
		print_info(cli, &info, NULL);
	store_destroy(leases);
	return r;
}

static int run_lease_acquire(struct cli *cli, struct err *err)
{
	return act(cli, true, NULL, err);
}

static int run_lease_renew(struct cli *cli, struct err *err)
{
	return act(cli, false, lease_renew, err);
}

static int run_lease_release(struct cli *cli, struct err *err)
{
	return act(cli, false, lease_release, err);
}

static int run_lease_show(struct cli *cli, struct err *err)
{
	struct lease_info info;
	struct store *leases;
	int r;

	leases = workspace_leases_new(cli->ws);
	if (cli->args.operand_count) {
		r = lease_show(leases, &cli->ctx, cli->args.operands[0], &info, err);
		if (r == 0)
			print_info(cli, &info, NULL);
	} else {
		r = show_all(cli, leases, err);
	}
	store_destroy(leases);
	return r;
}

static const struct action actions[] = {
	{"show", "[NAME]", .opens = CLI_READS, .run = run_lease_show},
	{"acquire", "NAME", .run = run_lease_acquire},
	{"renew", "NAME", .run = run_lease_renew},
	{"release", "NAME", .run = run_lease_release},
	{0},
};

static const struct option options[] = {
	{"holder", 0, "NAME", .help = "a unique name for the holder (default: acquire makes one up)"},
	{"ttl", 0, "SECONDS", .help = "the lease expires if it is not renewed for this long (default: 30)",
	 .max = (uint64_t)(LEASE_TTL_MAX_NS / NS_PER_S)},
	{"wait", 0, "SECONDS", .help = "how long to wait for it (default: 0)", .max = 1000000},
	{"fence", 0, "N", .help = "renew, release: the fence that acquire printed must still be current",
	 .max = INT64_MAX},
	{0},
};

const struct command lease_commands[] = {
	{"lease", "let only one process at a time do something", TOPIC_STORES, .actions = actions, .options = options,
	 .about = "One process at a time holds a lease, among all processes and machines that share the store. A\n"
		  "lease expires if its holder does not renew it for --ttl seconds. To take it over from a holder\n"
		  "that is gone, set --wait to more than the ttl: the lease is watched for that long first. The\n"
		  "fence grows with every acquisition, so that whatever the lease protects can refuse an older\n"
		  "holder. The exit code is 5 if another process holds the lease. 'show' without a name lists all\n"
		  "leases.\n",
	 .examples = "stead lease acquire nightly --holder $HOSTNAME --ttl 60 --wait 90\n"
		     "  acquire it, or take it over from a machine that died\n"
		     "stead lease renew nightly --holder $HOSTNAME\n  keep it\n"
		     "stead lease release nightly --holder $HOSTNAME\n  free it for others\n"},
	{0},
};
