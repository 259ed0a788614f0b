/* SPDX-License-Identifier: Apache-2.0 */
/* Leases by hand and from scripts: each command is a process of its own, so the holder's name carries the identity. */
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
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
	else if (cli->json)
		output_json(&cli->out, arena, v);
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

	do {
		int r = store_list(leases, &cli->ctx, WPATH_ROOT, &req, &page, err);

		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct lease_info info;

			r = lease_show(leases, &cli->ctx, page.entries[i].path.s, &info, err);
			if (r == 0)
				print_info(cli, &info, list);
		}
		if (r)
			return r;
		req.after = page.next;
	} while (page.next.ptr);
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, list);
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
	uint64_t ttl, wait;
	int r = args_number(&cli->args, OPT_TTL, (uint64_t)(LEASE_TTL_MAX_NS / NS_PER_S), 30, &ttl, err);

	if (r == 0)
		r = args_number(&cli->args, OPT_WAIT, 1000000, 0, &wait, err);
	if (r)
		return r;
	*want = (struct lease_want){.name = cli->args.operands[1],
				    .holder = args_get(&cli->args, OPT_HOLDER),
				    .ttl_ns = (int64_t)ttl * NS_PER_S,
				    .wait_ns = (int64_t)wait * NS_PER_S};
	if (!want->holder.len && !acquires)
		return err_set(err, ERR_INVALID, "lease: --holder is missing; give the one that acquired it");
	if (!want->holder.len)
		want->holder = made_up_holder(cli->ctx.arena);
	return 0;
}

static int act(struct cli *cli, struct store *leases, struct str verb, struct err *err)
{
	bool acquires = str_is(verb, "acquire"), releases = str_is(verb, "release");
	struct lease_want want;
	struct lease_info info;
	struct lease *lease = NULL;
	uint64_t fence;
	int r = want_of(cli, acquires, &want, err);

	if (r == 0)
		r = args_number(&cli->args, OPT_FENCE, INT64_MAX, 0, &fence, err);
	if (r == 0)
		r = acquires ? lease_acquire(leases, &cli->ctx, &want, &lease, err)
			     : lease_resume(leases, &cli->ctx, &want, fence, &lease, err);
	if (r == 0 && !acquires)
		r = releases ? lease_release(lease, &cli->ctx, err) : lease_renew(lease, &cli->ctx, err);
	lease_destroy(lease);
	if (r == 0)
		r = lease_show(leases, &cli->ctx, want.name, &info, err);
	if (r == 0)
		print_info(cli, &info, NULL);
	return r;
}

int run_lease(struct cli *cli, struct err *err)
{
	struct str verb = cli->args.operands[0];
	bool shows = str_is(verb, "show"), named = cli->args.operand_count > 1;
	struct lease_info info;
	struct store *leases;
	int r;

	if (!shows && !str_is(verb, "acquire") && !str_is(verb, "renew") && !str_is(verb, "release"))
		return err_set(err, ERR_INVALID, "lease: '%.*s' is not acquire, renew, release or show",
			       STR_ARG(utf8_first(verb, 80)));
	if (!shows && !named)
		return err_set(err, ERR_INVALID, "lease %.*s: the name of the lease is missing", STR_ARG(verb));
	r = cli_open(cli, shows ? CLI_READS : CLI_WRITES, err);
	if (r)
		return r;
	leases = workspace_leases_new(cli->ws);
	if (!shows) {
		r = act(cli, leases, verb, err);
	} else if (!named) {
		r = show_all(cli, leases, err);
	} else {
		r = lease_show(leases, &cli->ctx, cli->args.operands[1], &info, err);
		if (r == 0)
			print_info(cli, &info, NULL);
	}
	store_destroy(leases);
	return r;
}
