/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the files that a prompt is made of. Each section names its own. Finding all of them costs a list of three
 * directories and a stat of a few files, and reads none. When the kernel has named the files that changed, only those
 * are looked at.
 */
#include "base/hash.h"
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

static int by_position(const void *a, const void *b)
{
	const struct prompt_section *x = ((const struct prompt_section_state *)a)->section;
	const struct prompt_section *y = ((const struct prompt_section_state *)b)->section;

	return x->class != y->class ? (int)x->class - (int)y->class : (int)x->position - (int)y->position;
}

void prompt_files_init(struct prompt_files *files)
{
	size_t n = 0;

	for (size_t i = 0; families[i]; i++)
		for (const struct prompt_section *s = families[i]->prompt; s && s->name; s++) {
			files->sections = xrealloc(files->sections, (n + 1) * sizeof *files->sections);
			files->sections[n++] = (struct prompt_section_state){.section = s};
		}
	qsort(files->sections, n, sizeof *files->sections, by_position);
	files->section_count = n;
}

static void file_free(struct prompt_file *file)
{
	free(file->path);
	free(file->version);
	free(file->text);
	free(file->problem);
	free(file);
}

static void free_all(struct prompt_file **at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (at[i])
			file_free(at[i]);
	free(at);
}

void prompt_files_release(struct prompt_files *files)
{
	free_all(files->at, files->count);
	free(files->sections);
}

/* --- what a section calls --- */

static struct prompt_file *add(struct prompt_find *find, struct str path, struct str version)
{
	struct prompt_files *to = find->files;
	struct prompt_file *file = xcalloc(1, sizeof *file);

	if (to->count == to->cap) {
		to->cap = to->cap ? to->cap * 2 : 64;
		to->at = xrealloc(to->at, to->cap * sizeof(struct prompt_file *));
	}
	file->section = find->section;
	file->path = xstrndup(path);
	file->version = xstrndup(version);
	find->count++;
	return to->at[to->count++] = file;
}

void prompt_add_file(struct prompt_find *find, struct str path, const struct store_stat *stat)
{
	add(find, path, stat->version)->bytes = stat->size;
}

void prompt_add_line(struct prompt_find *find, struct str path, struct str version, struct str line)
{
	struct prompt_file *file;

	if (find->count >= PROMPT_LIST_MAX) {
		find->files->sections[find->section].more++;
		return;
	}
	file = add(find, path, version);
	file->is_given = true;
	file->text = xstrndup(line);
	file->len = line.len;
	file->cost = prompt_cost(line);
}

void prompt_add_unusable(struct prompt_find *find, struct str path, struct str why)
{
	struct prompt_file *file = add(find, path, STR(""));

	file->is_given = true;
	file->problem = xstrndup(why);
}

bool prompt_is_hidden(struct str path)
{
	return !path.len || path.ptr[0] == '.' || str_find(path, STR("/."), 0) != SIZE_MAX;
}

/* In the workspace and in the user's part of it. */
static void watch_dir(struct prompt_find *find, struct str dir, unsigned depth)
{
	struct str part = workspace_part(find->ws).s;

	if (!find->watch)
		return;
	prompt_watch_add(find->watch, dir, depth);
	if (part.len)
		prompt_watch_add(find->watch,
				 dir.len ? arena_printf(find->ctx->arena, "%.*s/%.*s", STR_ARG(part), STR_ARG(dir))
					 : part,
				 depth);
}

int prompt_find_file(struct prompt_find *find, struct str path, struct err *err)
{
	size_t slash = str_rfind_char(path, '/');
	struct store_stat stat;
	int r;

	watch_dir(find, slash == path.len ? STR("") : str_first(path, slash), 0);
	r = store_stat(workspace_home(find->ws), find->ctx, (struct wpath){path}, &stat, err);
	if (r == 0 && stat.kind == STORE_FILE)
		prompt_add_file(find, path, &stat);
	return r == -ERR_NOT_FOUND || r == -ERR_DENIED ? 0 : r;
}

int prompt_find_below(struct prompt_find *find, const char *dir, unsigned depth,
		      void (*take)(struct prompt_find *find, const struct store_entry *file), struct err *err)
{
	struct store_list_req req = {.recursive = depth > 0, .limit = 1000};
	size_t seen = 0;
	int r;

	watch_dir(find, str_of(dir), depth);
	do {
		struct store_page page;

		r = store_list(workspace_home(find->ws), find->ctx, (struct wpath){str_of(dir)}, &req, &page, err);
		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			if (page.entries[i].stat.kind == STORE_FILE)
				take(find, &page.entries[i]);
		seen += page.count;
		req.after = page.next;
	} while (req.after.ptr && seen < PROMPT_LOOK_MAX);
	return 0;
}

/* --- all files --- */

/* Takes over the files that have not changed. Both lists are in the order of sections, and a section finds its files in
   the same order each time, so the search seldom goes far. */
static void keep_known(struct prompt_files *files, const struct prompt_files *found)
{
	struct prompt_file **old = files->at;
	size_t from = 0;

	for (size_t n = 0; n < found->count; n++) {
		struct prompt_file *f = found->at[n];
		size_t i;

		while (from < files->count && (!old[from] || old[from]->section < f->section))
			from++;
		for (i = from; i < files->count; i++)
			if (old[i] && (old[i]->section > f->section || strcmp(old[i]->path, f->path) == 0))
				break;
		if (f->is_given || i == files->count || old[i]->section > f->section ||
		    strcmp(old[i]->version, f->version) != 0)
			continue;
		file_free(f);
		found->at[n] = old[i];
		old[i] = NULL;
	}
	for (size_t i = 0; i < files->count; i++)
		if (old[i])
			files->sections[old[i]->section].changed = true;
}

int prompt_find_all(struct prompt_files *files, struct workspace *ws, struct ctx *ctx, struct prompt_watch *watch,
		    bool *ret_unwatched, struct err *err)
{
	struct prompt_files found = {.sections = files->sections, .section_count = files->section_count};
	struct prompt_find find = {.ws = ws, .ctx = ctx, .watch = watch, .files = &found};
	int r = 0;

	if (find.watch)
		prompt_watch_begin(find.watch);
	for (; r == 0 && find.section < found.section_count; find.section++) {
		struct prompt_section_state *s = &found.sections[find.section];

		s->more = find.count = 0;
		if (s->section->find)
			r = s->section->find(&find, err);
		else if (s->section->file)
			r = prompt_find_file(&find, str_of(s->section->file), err);
	}
	if (r) {
		free_all(found.at, found.count);
		return err_prefix(err, "the files of the prompt");
	}
	keep_known(files, &found);
	free_all(files->at, files->count);
	*files = found;
	*ret_unwatched |= find.is_unwatched;
	return 0;
}

void prompt_files_hash(struct arena *arena, const struct prompt_files *files, uint64_t revision, const char *day,
		       uint64_t ret_hash[2])
{
	struct buf all;

	buf_init(&all, arena, 64 * MIB);
	for (size_t i = 0; i < files->count; i++) {
		buf_add(&all, str_of(files->at[i]->path));
		buf_char(&all, '\0');
		buf_add(&all, str_of(files->at[i]->version));
		buf_char(&all, '\0');
	}
	for (size_t i = 0; i < files->section_count; i++) {
		buf_u64(&all, files->sections[i].more);
		buf_char(&all, ' ');
	}
	buf_printf(&all, "%llu %s", (unsigned long long)revision, day);
	hash_u128(buf_str(&all), ret_hash);
}

/* --- some files --- */

/* The path in the home of a path in the workspace's directory. */
static struct str in_home(const struct workspace *ws, struct str path)
{
	struct wpath part = workspace_part(ws);

	return part.s.len && wpath_within((struct wpath){path}, part) && path.len > part.s.len
		       ? str_from(path, part.s.len + 1)
		       : path;
}

static bool is_derived(const struct prompt_files *files, struct str path)
{
	for (size_t i = 0; i < files->section_count; i++)
		if (files->sections[i].section->derived && str_is(path, files->sections[i].section->derived))
			return true;
	return false;
}

static bool look_again(struct prompt_file *file, struct workspace *ws, struct ctx *ctx)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(workspace_home(ws), ctx, (struct wpath){str_of(file->path)}, &stat, &ignored) ||
	    stat.kind != STORE_FILE)
		return false;
	file->is_doubted = file->is_young;
	if (!file->is_given && !str_is(stat.version, file->version)) {
		free(file->version);
		file->version = xstrndup(stat.version);
		file->is_read = false;
	}
	return true;
}

bool prompt_find_changed(struct prompt_files *files, struct workspace *ws, struct ctx *ctx,
			 const struct prompt_news *news)
{
	for (size_t i = 0; i < news->count; i++) {
		struct str path = in_home(ws, news->paths[i]);
		bool known = is_derived(files, path) || !news->came[i];

		for (size_t n = 0; n < files->count; n++) {
			if (!str_is(path, files->at[n]->path))
				continue;
			if (!look_again(files->at[n], ws, ctx))
				return false;
			known = true;
		}
		if (!known)
			return false;
	}
	return true;
}
