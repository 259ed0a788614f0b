/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving a snapshot: packs with the contents that are new, then the manifest, then the head, which is the step that
 * counts. All of it happens under a lease, so that nobody takes a pack that no head names yet for a left-over. A
 * process that is killed before the last step leaves packs that the next one removes.
 *
 * Commands may run at the same time. Each saves what it changed on top of what is newest then: what another one left
 * at other paths stays, and at the same path the one that ends later wins.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "sandbox/snapshot_internal.h"
#include "store/lease.h"
#include "store/stores.h"
#include "text/jv.h"

#define HEAD        "head.json"
#define LEASE       "lease"
#define LEASE_TTL   (10 * NS_PER_S)
#define LEASE_WAIT  (60 * NS_PER_S)
#define PACKS_MANY  64
#define PACK_FILES  20000
#define ATTEMPTS    5
#define WASTE_SMALL (4 * MIB)

static const struct wpath head_path = {{HEAD, sizeof HEAD - 1}};

static struct wpath manifest_path(struct arena *arena, struct str id)
{
	return (struct wpath){arena_printf(arena, "m-%.*s", STR_ARG(id))};
}

struct wpath snapshot_pack_path(struct arena *arena, struct str hash)
{
	return (struct wpath){arena_printf(arena, "p-%.*s", STR_ARG(hash))};
}

/* --- the head --- */

static int read_head(struct store *store, struct ctx *ctx, struct jv **ret, struct store_cond *ret_cond,
		     struct err *err)
{
	struct store_stat stat;
	struct str text;
	int r = store_read(store, ctx, head_path, STORE_WHOLE, 64 * KIB, &text, &stat, err);

	*ret = NULL;
	*ret_cond = (struct store_cond){.kind = STORE_ABSENT};
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0)
		r = jv_parse(ctx->arena, text, ret, err);
	if (r == 0 && jv_get_str(*ret, "manifest").len != 64)
		r = err_set(err, ERR_CORRUPT, "%s names no manifest", HEAD);
	if (r == 0)
		*ret_cond = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	return r;
}

int snapshot_id(struct store *store, struct ctx *ctx, struct str *ret, struct err *err)
{
	struct store_cond ignored;
	struct jv *head;
	int r = read_head(store, ctx, &head, &ignored, err);

	if (r == 0)
		*ret = jv_get_str(head, "manifest");
	return r;
}

int snapshot_head(struct store *store, struct ctx *ctx, struct snap_head *ret, struct err *err)
{
	struct str text, sum;
	struct jv *head;
	int r = 0;

	for (int i = 0; i < ATTEMPTS; i++) {
		*ret = (struct snap_head){0};
		r = read_head(store, ctx, &head, &ret->cond, err);
		if (r || !head)
			return r;
		ret->id = jv_get_str(head, "manifest");
		r = store_read(store, ctx, manifest_path(ctx->arena, ret->id), STORE_WHOLE, SNAPSHOT_MANIFEST_MAX,
			       &text, NULL, err);
		if (r != -ERR_NOT_FOUND) /* else it was replaced between the two reads */
			break;
	}
	if (r)
		return r == -ERR_NOT_FOUND ? err_set(err, ERR_CORRUPT, "the manifest that %s names is missing", HEAD)
					   : r;
	sum = sha256_hex(ctx->arena, text);
	if (!str_eq(sum, ret->id))
		return err_set(err, ERR_CORRUPT, "its manifest is damaged");
	return manifest_parse(ctx->arena, text, &ret->manifest, err);
}

static int write_head(struct store *store, struct ctx *ctx, const struct jv *about, const struct manifest *m,
		      struct str id, struct store_cond cond, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *head = jv_object(arena);
	struct buf text;

	jv_set_str(arena, head, "manifest", id);
	jv_set_int(arena, head, "files", (int64_t)m->files);
	jv_set_int(arena, head, "bytes", (int64_t)m->bytes);
	jv_set_str(arena, head, "saved", clock_format_utc(arena, clock_real_ns()));
	if (about)
		jv_set(arena, head, "about", jv_copy(arena, about));
	buf_init(&text, arena, 64 * KIB);
	jv_write(&text, head);
	return store_write(store, ctx, head_path, buf_str(&text), cond, NULL, err);
}

int snapshot_show(struct store *store, struct ctx *ctx, struct snapshot_info *ret, struct err *err)
{
	struct store_cond ignored;
	struct jv *head;
	int r = read_head(store, ctx, &head, &ignored, err);

	if (r)
		return r;
	if (!head)
		return err_set(err, ERR_NOT_FOUND, "there is no snapshot");
	*ret = (struct snapshot_info){.id = jv_get_str(head, "manifest"),
				      .files = (uint64_t)jv_get_int(head, "files", 0),
				      .bytes = (uint64_t)jv_get_int(head, "bytes", 0),
				      .saved = jv_get_str(head, "saved"),
				      .about = jv_get(head, "about")};
	return 0;
}

/* --- packs --- */

struct packing {
	struct ctx *ctx;
	const struct sandbox_keep *keep;
	struct store *store;
	struct lease *lease;
	struct manifest *m;
	const struct manifest *delta; /* what is in it is read from the first two, the rest from the others */
	int home, files, old_home, old_files;
};

/* The files of one pack, one after the other. */
struct pack_source {
	const struct packing *p;
	const size_t *members;
	size_t count, at;
	int fd;
};

static int pack_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct pack_source *s = arg;
	const struct packing *p = s->p;
	ssize_t n = 0;

	while (n == 0 && s->at < s->count) {
		struct str path = p->m->entries[s->members[s->at]].path;

		if (s->fd < 0)
			s->fd = manifest_find(p->delta, path) ? snapshot_open(p->home, p->files, path)
							      : snapshot_open(p->old_home, p->old_files, path);
		if (s->fd < 0)
			return err_sys(err, -s->fd, "a file that the command left behind cannot be read");
		n = read(s->fd, buf, cap);
		if (n < 0)
			return err_sys(err, errno, "a file that the command left behind cannot be read");
		if (n == 0) {
			close(s->fd);
			s->fd = -1;
			s->at++;
		}
	}
	*ret_len = (size_t)n;
	return 0;
}

static int pack_rewind(void *arg, struct err *err)
{
	struct pack_source *s = arg;

	(void)err;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->at = 0;
	return 0;
}

static int write_pack(struct packing *p, const size_t *members, size_t count, uint64_t size, struct err *err)
{
	struct arena *arena = p->ctx->arena;
	struct pack_source s = {.p = p, .members = members, .count = count, .fd = -1};
	struct source source = {.pull = pack_pull, .rewind = pack_rewind, .arg = &s};
	struct sha256 sum;
	char *hex = arena_alloc_raw(arena, 65);
	int r;

	if (p->m->pack_count == SNAPSHOT_PACKS_MAX)
		return err_set(err, ERR_TOO_LARGE, "a snapshot may have %d packs", SNAPSHOT_PACKS_MAX);
	sha256_begin(&sum);
	for (size_t i = 0; i < count; i++)
		sha256_add(&sum, p->m->entries[members[i]].hash);
	sha256_end(&sum, hex);
	r = store_write_stream(p->store, p->ctx, snapshot_pack_path(arena, str_n(hex, 64)), &source,
			       (struct store_cond){0}, NULL, err);
	if (s.fd >= 0)
		close(s.fd);
	if (r == 0)
		r = lease_renew(p->lease, p->ctx, err);
	ARENA_ROOM(arena, p->m->packs, p->m->pack_count, p->m->pack_cap);
	p->m->packs[p->m->pack_count++] = (struct snap_pack){str_n(hex, 64), size};
	return r;
}

/* Puts every content that has no place yet into packs; equal ones once. */
static int write_packs(struct packing *p, struct err *err)
{
	struct manifest *m = p->m;
	struct strmap *seen = strmap_new(p->ctx->arena);
	size_t *members = ARENA_ARRAY(p->ctx->arena, size_t, m->count + 1), count = 0;
	uint64_t size = 0;
	int r = 0;

	for (size_t i = 0; i < m->count && r == 0; i++) {
		struct snap_entry *e = &m->entries[i];
		bool added;
		size_t *first;

		if (e->kind != SNAP_FILE || e->pack != SNAP_NEW)
			continue;
		first = strmap_put(seen, e->hash, &added);
		if (!added) {
			e->pack = m->entries[*first].pack;
			e->offset = m->entries[*first].offset;
			continue;
		}
		if (count && (size + e->size > SNAPSHOT_PACK_SIZE || count == PACK_FILES)) {
			r = write_pack(p, members, count, size, err);
			count = 0;
			size = 0;
		}
		*first = i;
		e->pack = m->pack_count;
		e->offset = size;
		size += e->size;
		members[count++] = i;
	}
	return r == 0 && count ? write_pack(p, members, count, size, err) : r;
}

/* Packs that hold mostly what nobody needs are written again. */
static bool is_wasteful(const struct manifest *m)
{
	uint64_t packed = 0;

	for (size_t i = 0; i < m->pack_count; i++)
		packed += m->packs[i].size;
	return packed > 2 * m->bytes + WASTE_SMALL || m->pack_count > PACKS_MANY;
}

static void forget_packs(struct manifest *m)
{
	m->pack_count = 0;
	for (size_t i = 0; i < m->count; i++)
		m->entries[i].pack = SNAP_NEW;
}

/* --- saving --- */

/* "MACHINE PID START RANDOM": which process holds the lease, for those who can see whether it still runs. */
static struct str own_name(struct arena *arena)
{
	return arena_printf(arena, "%.*s %d %s %016llx", STR_ARG(snapshot_machine(arena)), (int)getpid(),
			    snapshot_started(arena, getpid()), (unsigned long long)random_u64());
}

/* A process of this machine that was killed would be waited for in vain. */
static bool is_dead(struct arena *arena, struct str holder)
{
	struct str machine, pid, started;
	int64_t number;

	return str_cut(&holder, ' ', &machine) && str_cut(&holder, ' ', &pid) && str_cut(&holder, ' ', &started) &&
	       str_eq(machine, snapshot_machine(arena)) && str_to_i64(pid, &number) && number > 0 &&
	       number <= INT32_MAX && !str_is(started, snapshot_started(arena, (pid_t)number));
}

static void free_dead(struct store *store, struct ctx *ctx)
{
	struct lease_want want = {.name = STR(LEASE), .ttl_ns = LEASE_TTL};
	struct lease_info info;
	struct lease *lease;
	struct err ignored;

	if (lease_show(store, ctx, STR(LEASE), &info, &ignored) != 0 || !is_dead(ctx->arena, info.holder))
		return;
	want.holder = info.holder;
	if (lease_resume(store, ctx, &want, info.fence, &lease, &ignored) == 0) {
		(void)lease_release(lease, ctx, &ignored);
		lease_destroy(lease);
	}
}

static int acquire(struct store *store, struct ctx *ctx, struct lease **ret, struct err *err)
{
	struct lease_want want = {
		.name = STR(LEASE), .holder = own_name(ctx->arena), .ttl_ns = LEASE_TTL, .wait_ns = LEASE_WAIT};

	free_dead(store, ctx);
	return lease_acquire(store, ctx, &want, ret, err);
}

static void release(struct lease *lease, struct ctx *ctx)
{
	struct err ignored;

	(void)lease_release(lease, ctx, &ignored);
	lease_destroy(lease);
}

/* Removes what the manifest does not name, with the lease held. `m` NULL: all but the head. */
static int sweep(struct store *store, struct ctx *ctx, struct str id, const struct manifest *m, uint64_t *ret_bytes,
		 struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct strmap *named = strmap_new(ctx->arena);
	struct store_page page;
	int r;

	*ret_bytes = 0;
	strmap_put(named, STR(HEAD), NULL);
	strmap_put(named, STR(LEASE), NULL);
	strmap_put(named, manifest_path(ctx->arena, id).s, NULL);
	for (size_t i = 0; m && i < m->pack_count; i++)
		strmap_put(named, snapshot_pack_path(ctx->arena, m->packs[i].hash).s, NULL);
	do {
		r = store_list(store, ctx, WPATH_ROOT, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			const struct store_entry *e = &page.entries[i];

			if (strmap_find(named, e->path.s) || e->stat.kind != STORE_FILE)
				continue;
			r = store_remove(store, ctx, e->path, false, (struct store_cond){0}, NULL, err);
			r = r == -ERR_NOT_FOUND ? 0 : r;
			*ret_bytes += e->stat.size;
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int check_size(const struct packing *p, struct err *err)
{
	uint64_t most = p->keep->size_max ? p->keep->size_max : SNAPSHOT_SIZE_DEFAULT;
	struct quota_need need = {0};

	if (p->m->bytes > most || p->m->count > SNAPSHOT_FILES_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "what commands left behind has %llu MiB in %llu files; at most %llu MiB in %d are "
			       "allowed (sandbox.snapshot_size); the earlier state stays",
			       (unsigned long long)(p->m->bytes / MIB), (unsigned long long)p->m->files,
			       (unsigned long long)(most / MIB), SNAPSHOT_FILES_MAX);
	for (size_t i = 0; i < p->m->count; i++)
		if (p->m->entries[i].kind == SNAP_FILE && p->m->entries[i].pack == SNAP_NEW)
			need.bytes += p->m->entries[i].size;
	return p->keep->quota && need.bytes ? store_quota_check(p->keep->quota, p->ctx, need, err) : 0;
}

/* With the lease held. ERR_CONFLICT: somebody else saved; try again. */
static int save_once(struct packing *p, const struct kept *kept, struct err *err)
{
	struct arena *arena = p->ctx->arena;
	struct manifest *m = ARENA_NEW(arena, struct manifest);
	struct snap_head head;
	struct str text, id;
	uint64_t ignored;
	int r = snapshot_head(p->store, p->ctx, &head, err);

	if (r)
		return r;
	manifest_apply(arena, &head.manifest, p->delta, m);
	p->m = m;
	r = manifest_format(arena, m, &text, err);
	if (r == 0 && str_eq(sha256_hex(arena, text), head.id))
		return 0; /* nothing is new */
	if (r == 0)
		r = check_size(p, err);
	if (r == 0 && is_wasteful(m) && p->old_home >= 0 && str_eq(head.id, kept->id))
		forget_packs(m);
	if (r == 0)
		r = write_packs(p, err);
	if (r == 0)
		r = manifest_format(arena, m, &text, err);
	if (r)
		return r;
	id = sha256_hex(arena, text);
	r = store_write(p->store, p->ctx, manifest_path(arena, id), text, (struct store_cond){0}, NULL, err);
	if (r == 0)
		r = lease_renew(p->lease, p->ctx, err); /* lost: what was written may be gone */
	if (r == 0)
		r = write_head(p->store, p->ctx, p->keep->about, m, id, head.cond, err);
	return r ? r : sweep(p->store, p->ctx, id, m, &ignored, err);
}

/* 1: the changes make another snapshot. */
static int is_new(struct store *store, struct ctx *ctx, const struct manifest *delta, struct err *err)
{
	struct snap_head head;
	struct manifest m;
	struct str text;
	int r = snapshot_head(store, ctx, &head, err);

	if (r)
		return r;
	manifest_apply(ctx->arena, &head.manifest, delta, &m);
	if (!head.id.len)
		return m.count > 0;
	r = manifest_format(ctx->arena, &m, &text, err);
	return r ? r : !str_eq(sha256_hex(ctx->arena, text), head.id);
}

int kept_save(struct ctx *ctx, const struct sandbox_keep *keep, const struct kept *kept, int home, int files,
	      const char *const *exclude, struct err *err)
{
	FD_SCOPE int old = kept->dir ? open(kept->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	FD_SCOPE int old_home = old < 0 ? -1 : openat(old, SNAPSHOT_HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_SCOPE int old_files = old < 0 ? -1 : openat(old, SNAPSHOT_FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct manifest delta;
	struct packing p = {.ctx = ctx,
			    .keep = keep,
			    .store = kept->store,
			    .delta = &delta,
			    .home = home,
			    .files = files,
			    .old_home = old_home,
			    .old_files = old_files};
	int r = snapshot_scan(ctx, kept, home, files, exclude, keep->size_max ? keep->size_max : SNAPSHOT_SIZE_DEFAULT,
			      &delta, err);

	if (r == 0 && kept->is_copied) {
		struct manifest all = delta;

		kept_compare(ctx->arena, kept, &all, &delta);
	}
	if (r == 0 && delta.count)
		r = is_new(kept->store, ctx, &delta, err);
	if (r <= 0)
		return r; /* the usual case: nothing was read and nothing is written */
	r = acquire(kept->store, ctx, &p.lease, err);
	if (r)
		return r;
	r = -ERR_CONFLICT;
	for (int i = 0; i < ATTEMPTS && r == -ERR_CONFLICT; i++)
		r = save_once(&p, kept, err);
	release(p.lease, ctx);
	return r;
}

int kept_finish(struct ctx *ctx, const struct sandbox_job *job, const struct kept *kept, int home, int files,
		struct sandbox_result *ret)
{
	const struct sandbox_keep *keep = job->keep;
	struct sandbox_change *more;
	struct err err = {0};

	if (!keep || keep->read_only)
		return 0;
	ret->left_out = STR_NONE;
	if (job->files.read_only || kept_save(ctx, keep, kept, home, files, job->files.exclude, &err) == 0)
		return 0;
	if (err.kind == ERR_CANCELLED)
		return -ERR_CANCELLED;
	more = ARENA_ARRAY(ctx->arena, struct sandbox_change, ret->change_count + 1);
	if (ret->change_count)
		memcpy(more, ret->changes, ret->change_count * sizeof *more);
	more[ret->change_count++] = (struct sandbox_change){
		.outcome = SANDBOX_REFUSED, .path = STR("/home"), .reason = err_text(ctx->arena, &err)};
	ret->changes = more;
	return 0;
}

/* --- keeping house --- */

int snapshot_sweep(struct store *store, struct ctx *ctx, uint64_t *ret_bytes, struct err *err)
{
	struct snap_head head;
	struct lease *lease;
	int r = acquire(store, ctx, &lease, err);

	if (r)
		return r;
	r = snapshot_head(store, ctx, &head, err);
	if (r == 0)
		r = sweep(store, ctx, head.id, &head.manifest, ret_bytes, err);
	release(lease, ctx);
	return r;
}

int snapshot_drop(struct store *store, struct ctx *ctx, struct err *err)
{
	struct store_cond cond;
	struct lease *lease;
	struct jv *head;
	uint64_t ignored;
	int r = acquire(store, ctx, &lease, err);

	if (r)
		return r;
	r = read_head(store, ctx, &head, &cond, err);
	r = r == -ERR_CORRUPT || r == -ERR_INVALID ? 0 : r; /* a damaged one can be dropped as well */
	if (r == 0)
		r = store_remove(store, ctx, head_path, false, (struct store_cond){0}, NULL, err);
	r = r == -ERR_NOT_FOUND ? 0 : r;
	if (r == 0)
		r = sweep(store, ctx, STR_NONE, NULL, &ignored, err);
	release(lease, ctx);
	return r;
}

int snapshots_each(struct store *store, struct ctx *ctx, struct wpath dir, snapshot_fn each, void *arg, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page;
	int r;

	do {
		r = store_list(store, ctx, dir, &req, &page, err);
		if (r == -ERR_NOT_FOUND)
			return 0;
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct store *one;

			if (page.entries[i].stat.kind != STORE_DIR)
				continue;
			one = store_prefix_new(store_share(store), page.entries[i].path);
			r = each(arg, ctx, wpath_name(page.entries[i].path), one, err);
			store_destroy(one);
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r;
}

static int sweep_one(void *arg, struct ctx *ctx, struct str name, struct store *store, struct err *err)
{
	uint64_t freed;
	int r = snapshot_sweep(store, ctx, &freed, err);

	if (r == 0)
		*(uint64_t *)arg += freed;
	return r ? err_prefix(err, "the kept sandbox %.*s", STR_ARG(str_first(name, 12))) : 0;
}

int snapshots_sweep(struct store *store, struct ctx *ctx, struct wpath dir, uint64_t *ret_bytes, struct err *err)
{
	*ret_bytes = 0;
	return snapshots_each(store, ctx, dir, sweep_one, ret_bytes, err);
}
