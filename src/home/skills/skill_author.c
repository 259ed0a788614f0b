/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills that agents write. Nothing that they write counts by itself: a change goes to a draft below skills/_drafts,
 * which a person promotes. What is refused leaves nothing behind: text is checked and scanned before it is written, and
 * a draft that was made for a change that then failed is removed again. Who did what is in the history of the files.
 *
 * With skills.auto_promote a draft in which the scan finds nothing at all becomes the skill at once.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/skills/skill_patch.h"
#include "home/skills/skills.h"
#include "store/stores.h"
#include "text/frontmatter.h"

#define DRAFTS  "skills/_drafts"
#define ARCHIVE "skills/.archive"

struct work {
	struct workspace *ws;
	struct ctx *ctx;
	const struct skill_edit *edit;
	struct store *home;
	struct wpath draft;
	bool made; /* the draft did not exist before this call */
	struct jv *findings;
	const char *match;
	struct str note;
};

static const struct jv *settings(struct workspace *ws)
{
	return jv_get(workspace_config(ws)->document, "skills");
}

static struct wpath below(struct arena *arena, const char *dir, struct str name)
{
	return (struct wpath){arena_printf(arena, "%s/%.*s", dir, STR_ARG(name))};
}

static struct wpath main_file(struct arena *arena, struct wpath dir)
{
	return (struct wpath){arena_printf(arena, "%.*s/SKILL.md", STR_ARG(dir.s))};
}

static int check_name(struct str name, struct err *err)
{
	if (skill_name_ok(name))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"the skill name \"%.*s\" is not allowed; use 1 to 64 lower-case letters, digits, '-', '_' and '.', "
		"beginning with a letter or digit",
		STR_ARG(utf8_first(name, 80)));
}

static int exists(struct ctx *ctx, struct store *store, struct wpath path, bool *ret, struct err *err)
{
	int r = store_stat(store, ctx, path, NULL, err);

	*ret = r == 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Files other than SKILL.md must be in one of four directories. */
static int support_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	static const struct str dirs[] = {STR("references/"), STR("templates/"), STR("scripts/"), STR("assets/")};
	int r = wpath_parse_lenient(arena, text, ret, err);

	for (size_t i = 0; r == 0 && i < sizeof dirs / sizeof dirs[0]; i++)
		if (str_starts(ret->s, dirs[i]))
			return 0;
	return r ? r
		 : err_set(err, ERR_INVALID,
			   "\"%.*s\" is not in references/, templates/, scripts/ or assets/, where a skill's other "
			   "files belong",
			   STR_ARG(utf8_first(text, 100)));
}

/* --- the scan --- */

static struct str findings_text(struct arena *arena, const struct jv *findings)
{
	struct buf text;

	buf_init(&text, arena, 300);
	for (const struct jv_member *m = jv_first(findings); m; m = m->next)
		buf_printf(&text, "%s%.*s line %lld %.*s (%.*s)", text.len ? "; " : "",
			   STR_ARG(jv_get_str(m->value, "path")), (long long)jv_get_int(m->value, "line", 0),
			   STR_ARG(jv_get_str(m->value, "what")), STR_ARG(jv_get_str(m->value, "class")));
	return utf8_first(buf_str(&text), 290);
}

static int refuse_dangerous(struct arena *arena, const struct jv *findings, const char *then, struct err *err)
{
	if (skill_verdict(findings) != SKILL_DANGEROUS)
		return 0;
	return err_set(err, ERR_DENIED, "the scan found danger: %.*s; %s", STR_ARG(findings_text(arena, findings)),
		       then);
}

static int scan_new(struct work *w, struct str path, struct str text, struct err *err)
{
	if (!jv_get_bool(settings(w->ws), "security_scan", true))
		return 0;
	skill_scan_text(w->ctx->arena, path, text, w->findings);
	return refuse_dangerous(w->ctx->arena, w->findings, "nothing was changed", err);
}

/* All files of a skill. What is too large to be looked at is a finding. */
static int scan_dir(struct ctx *ctx, struct store *store, struct wpath dir, struct jv *findings, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = SKILL_FILES_MAX};
	struct store_page page;
	int r = store_list(store, ctx, dir, &req, &page, err);

	if (r == 0 && page.next.ptr)
		r = err_set(err, ERR_TOO_LARGE, "the skill has more than %d files", SKILL_FILES_MAX);
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str path = wpath_relative(page.entries[i].path, dir).s, text;

		r = store_read(store, ctx, page.entries[i].path, STORE_WHOLE, SKILL_BYTES_MAX, &text, NULL, err);
		if (r == 0)
			skill_scan_text(ctx->arena, path, text, findings);
	}
	return r;
}

/* --- drafts --- */

static int copy_files(struct ctx *ctx, struct store *from, struct wpath from_dir, struct store *to, struct wpath to_dir,
		      struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = SKILL_FILES_MAX};
	struct store_stat stat;
	struct store_page page;
	uint64_t bytes = 0;
	int r = store_list(from, ctx, from_dir, &req, &page, err);

	for (size_t i = 0; r == 0 && i < page.count; i++)
		bytes += page.entries[i].stat.size;
	if (r == 0 && (page.next.ptr || bytes > SKILL_BYTES_MAX))
		r = err_set(err, ERR_TOO_LARGE, "the skill has more than %d files or %zu bytes", SKILL_FILES_MAX,
			    SKILL_BYTES_MAX);
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct wpath target;

		r = wpath_join(ctx->arena, to_dir, wpath_relative(page.entries[i].path, from_dir), &target, err);
		if (r == 0)
			r = store_copy_between(from, ctx, page.entries[i].path, to, target,
					       (struct store_cond){.kind = STORE_ABSENT}, &stat, err);
	}
	return r;
}

static void drop_draft(struct work *w)
{
	struct err ignored;

	if (w->made)
		store_remove(w->home, w->ctx, w->draft, true, (struct store_cond){0}, NULL, &ignored);
}

/* The draft, made of the skill that counts now when there is none. */
static int ensure_draft(struct work *w, struct err *err)
{
	struct skills skills;
	const struct skill *live;
	bool there;
	int r = exists(w->ctx, w->home, main_file(w->ctx->arena, w->draft), &there, err);

	if (r || there)
		return r;
	r = skills_open_named(w->ws, w->ctx, w->edit->name, &skills, err);
	if (r)
		return r;
	live = skills_find(&skills, w->edit->name);
	if (live) {
		w->made = true;
		r = copy_files(w->ctx, live->store, live->dir, w->home, w->draft, err);
	} else {
		r = skills_unknown(w->ctx->arena, &skills, w->edit->name, err);
	}
	skills_close(&skills);
	return r;
}

/* --- actions --- */

static int refuse_taken(struct work *w, struct err *err)
{
	bool draft, taken = false;
	int r = exists(w->ctx, w->home, w->draft, &draft, err);

	if (r == 0 && draft)
		return err_set(err, ERR_EXISTS, "there is already a draft of the skill \"%.*s\"; edit or patch it",
			       STR_ARG(w->edit->name));
	if (r == 0)
		r = skills_taken(w->ws, w->ctx, w->edit->name, &taken, err);
	if (r == 0 && taken)
		r = err_set(err, ERR_EXISTS, "there is already a skill \"%.*s\"; edit or patch it",
			    STR_ARG(w->edit->name));
	return r;
}

static int check_document(struct work *w, struct str text, struct err *err)
{
	int r = skill_check(w->ctx->arena, w->edit->name, text, err);

	return r ? r : scan_new(w, STR("SKILL.md"), text, err);
}

static int do_create(struct work *w, struct err *err)
{
	int r = check_document(w, w->edit->content, err);

	if (r == 0)
		r = refuse_taken(w, err);
	if (r)
		return r;
	r = store_write(w->home, w->ctx, main_file(w->ctx->arena, w->draft), w->edit->content,
			(struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	w->made = r == 0;
	return r;
}

static int do_edit(struct work *w, struct err *err)
{
	int r = check_document(w, w->edit->content, err);

	if (r == 0)
		r = ensure_draft(w, err);
	if (r)
		return r;
	return store_write(w->home, w->ctx, main_file(w->ctx->arena, w->draft), w->edit->content,
			   (struct store_cond){0}, NULL, err);
}

struct patch {
	struct work *w;
	struct str path;
};

static int apply_patch(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct patch *p = arg;
	const struct skill_edit *e = p->w->edit;
	int r = skill_patch(arena, before, e->old_string, e->new_string, e->replace_all, ret_after, &p->w->match, err);

	p->w->findings = jv_array(p->w->ctx->arena);
	if (r)
		return r;
	return str_is(p->path, "SKILL.md") ? check_document(p->w, *ret_after, err)
					   : scan_new(p->w, p->path, *ret_after, err);
}

static int do_patch(struct work *w, struct err *err)
{
	struct patch p = {.w = w, .path = w->edit->file_path.len ? w->edit->file_path : STR("SKILL.md")};
	struct store_change how = {.max = SKILL_FILE_MAX, .change = apply_patch, .arg = &p};
	struct wpath relative = {STR("SKILL.md")}, path;
	int r = str_is(p.path, "SKILL.md") ? 0 : support_path(w->ctx->arena, p.path, &relative, err);

	if (r == 0)
		r = ensure_draft(w, err);
	if (r == 0)
		r = wpath_join(w->ctx->arena, w->draft, relative, &path, err);
	return r ? r : store_change(w->home, w->ctx, path, &how, NULL, NULL, NULL, err);
}

static int write_support(struct work *w, struct str file, struct str content, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = SKILL_FILES_MAX};
	struct store_page page;
	struct wpath relative, path;
	int r = support_path(w->ctx->arena, file, &relative, err);

	if (r == 0 && content.len > SKILL_FILE_MAX)
		r = err_set(err, ERR_TOO_LARGE, "%.*s has %zu bytes; at most %zu are allowed", STR_ARG(relative.s),
			    content.len, SKILL_FILE_MAX);
	if (r == 0)
		r = scan_new(w, relative.s, content, err);
	if (r == 0)
		r = ensure_draft(w, err);
	if (r == 0)
		r = store_list(w->home, w->ctx, w->draft, &req, &page, err);
	if (r == 0 && page.count >= SKILL_FILES_MAX)
		r = err_set(err, ERR_TOO_LARGE, "the skill has %d files already; remove some, or make another skill",
			    SKILL_FILES_MAX);
	if (r == 0)
		r = wpath_join(w->ctx->arena, w->draft, relative, &path, err);
	return r ? r : store_write(w->home, w->ctx, path, content, (struct store_cond){0}, NULL, err);
}

static int do_write_file(struct work *w, struct err *err)
{
	return write_support(w, w->edit->file_path, w->edit->file_content, err);
}

static int do_remove_file(struct work *w, struct err *err)
{
	struct wpath relative, path;
	int r = support_path(w->ctx->arena, w->edit->file_path, &relative, err);

	if (r == 0)
		r = ensure_draft(w, err);
	if (r == 0)
		r = wpath_join(w->ctx->arena, w->draft, relative, &path, err);
	return r ? r : store_remove(w->home, w->ctx, path, false, (struct store_cond){0}, NULL, err);
}

/* --- archiving --- */

/* "20261115T095042Z-1a2b": by time, and never twice. */
static struct str stamp(struct arena *arena)
{
	struct str t = clock_format_utc(arena, clock_real_ns()); /* 2026-11-15T09:50:42Z */

	return arena_printf(arena, "%.4s%.2s%.5s%.2s%.2sZ-%04x", t.ptr, t.ptr + 5, t.ptr + 8, t.ptr + 14, t.ptr + 17,
			    (unsigned)(random_u64() & 0xffff));
}

static int to_archive(struct ctx *ctx, struct store *home, struct wpath dir, struct str name, struct str absorbed_into,
		      struct wpath *ret_to, struct err *err)
{
	struct wpath to = {arena_printf(ctx->arena, ARCHIVE "/%.*s-%.*s", STR_ARG(name), STR_ARG(stamp(ctx->arena)))};
	int r = store_move(home, ctx, dir, to, (struct store_cond){0}, (struct store_cond){.kind = STORE_ABSENT}, NULL,
			   err);

	if (r == 0 && absorbed_into.len)
		r = store_write(
			home, ctx, (struct wpath){arena_printf(ctx->arena, "%.*s/ABSORBED_INTO", STR_ARG(to.s))},
			arena_printf(ctx->arena, "%.*s\n", STR_ARG(absorbed_into)), (struct store_cond){0}, NULL, err);
	*ret_to = to;
	return r;
}

static struct jv *place_value(struct arena *arena, struct str name, struct wpath path, const char *note)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", name);
	jv_set_str(arena, v, "path", path.s);
	if (note)
		jv_set_str(arena, v, "note", str_of(note));
	return v;
}

int skill_archive(struct workspace *ws, struct ctx *ctx, struct str name, struct str absorbed_into, struct jv **ret,
		  struct err *err)
{
	struct store *home = workspace_home(ws);
	struct wpath dir = below(ctx->arena, "skills", name), to;
	bool there;
	int r = check_name(name, err);

	if (r == 0 && absorbed_into.len)
		r = check_name(absorbed_into, err);
	if (r == 0)
		r = exists(ctx, home, dir, &there, err);
	if (r == 0 && !there) {
		dir = below(ctx->arena, DRAFTS, name);
		r = exists(ctx, home, dir, &there, err);
	}
	if (r == 0 && !there)
		r = err_set(
			err, ERR_NOT_FOUND,
			"skills/ has no \"%.*s\", and there is no such draft; remove a skill of another layer in its "
			"own directory",
			STR_ARG(name));
	if (r == 0)
		r = to_archive(ctx, home, dir, name, absorbed_into, &to, err);
	if (r == 0)
		*ret = place_value(ctx->arena, name, to, NULL);
	return r;
}

static int do_delete(struct work *w, struct err *err)
{
	const struct skill_edit *e = w->edit;
	struct wpath to;
	bool draft;
	int r = exists(w->ctx, w->home, w->draft, &draft, err);

	if (r == 0 && e->absorbed_into.len)
		r = check_name(e->absorbed_into, err);
	if (r)
		return r;
	if (draft) {
		r = to_archive(w->ctx, w->home, w->draft, e->name, e->absorbed_into, &to, err);
	} else if (jv_get_bool(settings(w->ws), "auto_promote", false)) {
		struct jv *v;

		r = skill_archive(w->ws, w->ctx, e->name, e->absorbed_into, &v, err);
		to = (struct wpath){r ? STR("") : jv_get_str(v, "path")};
	} else {
		return err_set(
			err, ERR_DENIED,
			"there is no draft \"%.*s\", and only a person can remove a skill that is in use: stead skills "
			"archive %.*s",
			STR_ARG(e->name), STR_ARG(e->name));
	}
	w->note = arena_printf(w->ctx->arena, "archived as %.*s", STR_ARG(to.s));
	return r;
}

/* --- promotion --- */

static int replace_live(struct ctx *ctx, struct store *home, struct str name, struct wpath from, bool keep,
			struct err *err)
{
	struct wpath live = below(ctx->arena, "skills", name), old;
	struct err ignored;
	bool there;
	int r = exists(ctx, home, live, &there, err);

	if (r == 0 && there)
		r = to_archive(ctx, home, live, name, STR_NONE, &old, err);
	if (r)
		return r;
	r = store_move(home, ctx, from, live, (struct store_cond){0}, (struct store_cond){.kind = STORE_ABSENT}, NULL,
		       err);
	if (r && there)
		store_move(home, ctx, old, live, (struct store_cond){0}, (struct store_cond){.kind = STORE_ABSENT},
			   NULL, &ignored);
	else if (there && !keep)
		store_remove(home, ctx, old, true, (struct store_cond){0}, NULL, &ignored);
	return r;
}

int skill_promote(struct workspace *ws, struct ctx *ctx, struct str name, bool force, struct jv **ret, struct err *err)
{
	struct store *home = workspace_home(ws);
	struct wpath draft = below(ctx->arena, DRAFTS, name);
	struct jv *findings = jv_array(ctx->arena);
	struct str text;
	int r = check_name(name, err);

	if (r == 0)
		r = store_read(home, ctx, main_file(ctx->arena, draft), STORE_WHOLE, SKILL_FILE_MAX, &text, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no draft \"%.*s\"; stead skills list shows them",
			       STR_ARG(name));
	if (r == 0)
		r = skill_check(ctx->arena, name, text, err);
	if (r == 0)
		r = scan_dir(ctx, home, draft, findings, err);
	if (r == 0 && !force)
		r = refuse_dangerous(ctx->arena, findings, "read it, then promote it with --force if it is good", err);
	if (r == 0)
		r = replace_live(ctx, home, name, draft, true, err);
	if (r)
		return r;
	*ret = place_value(ctx->arena, name, below(ctx->arena, "skills", name), NULL);
	jv_set_str(ctx->arena, *ret, "verdict", str_of(skill_verdict_name(skill_verdict(findings))));
	jv_set(ctx->arena, *ret, "findings", findings);
	return 0;
}

/* With the gate switched off, a skill in which the scan finds anything still waits for a person. */
static int promote_unasked(struct work *w, bool *ret_done, struct err *err)
{
	struct jv *findings = jv_array(w->ctx->arena);
	int r;

	*ret_done = false;
	if (!jv_get_bool(settings(w->ws), "auto_promote", false))
		return 0;
	r = scan_dir(w->ctx, w->home, w->draft, findings, err);
	if (r || skill_verdict(findings) != SKILL_SAFE)
		return r;
	r = replace_live(w->ctx, w->home, w->edit->name, w->draft, false, err);
	*ret_done = r == 0;
	return r;
}

/* --- the doors --- */

static int finish(struct work *w, struct jv **ret, struct err *err)
{
	struct arena *arena = w->ctx->arena;
	bool deleted = str_is(w->edit->action, "delete"), live = false;
	int r = deleted ? 0 : promote_unasked(w, &live, err);

	if (r)
		return r;
	*ret = place_value(arena, w->edit->name, live ? below(arena, "skills", w->edit->name) : w->draft, NULL);
	jv_set_str(arena, *ret, "action", w->edit->action);
	jv_set_bool(arena, *ret, "draft", !live && !deleted);
	jv_set_str(arena, *ret, "verdict", str_of(skill_verdict_name(skill_verdict(w->findings))));
	if (jv_count(w->findings))
		jv_set(arena, *ret, "findings", w->findings);
	if (w->match)
		jv_set_str(arena, *ret, "match", str_of(w->match));
	if (!w->note.len)
		w->note = live ? STR("it is in use now")
			       : arena_printf(arena,
					      "a draft; it takes effect when a person runs: stead skills promote %.*s",
					      STR_ARG(w->edit->name));
	jv_set_str(arena, *ret, "note", w->note);
	return 0;
}

static struct work work_of(struct workspace *ws, struct ctx *ctx, const struct skill_edit *edit)
{
	return (struct work){.ws = ws,
			     .ctx = ctx,
			     .edit = edit,
			     .home = workspace_home(ws),
			     .draft = below(ctx->arena, DRAFTS, edit->name),
			     .findings = jv_array(ctx->arena)};
}

int skill_manage(struct workspace *ws, struct ctx *ctx, const struct skill_edit *edit, struct jv **ret, struct err *err)
{
	static const struct {
		const char *action;
		int (*run)(struct work *w, struct err *err);
	} actions[] = {
		{"create", do_create},
		{"edit", do_edit},
		{"patch", do_patch},
		{"write_file", do_write_file},
		{"remove_file", do_remove_file},
		{"delete", do_delete},
	};
	int r = check_name(edit->name, err);

	if (r)
		return r;
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
		struct work w;

		if (!str_is(edit->action, actions[i].action))
			continue;
		w = work_of(ws, ctx, edit);
		r = actions[i].run(&w, err);
		if (r)
			drop_draft(&w);
		return r ? r : finish(&w, ret, err);
	}
	return err_set(err, ERR_INVALID,
		       "there is no action \"%.*s\"; use create, edit, patch, write_file, remove_file or delete",
		       STR_ARG(utf8_first(edit->action, 40)));
}

int skill_propose(struct workspace *ws, struct ctx *ctx, struct str name, struct str description, struct str body,
		  const struct jv *scripts, struct jv **ret, struct err *err)
{
	struct jv *head = jv_object(ctx->arena);
	struct skill_edit edit = {.action = STR("propose"), .name = name};
	struct work w;
	struct buf text;
	int r = check_name(name, err);

	if (r)
		return r;
	jv_set_str(ctx->arena, head, "name", name);
	jv_set_str(ctx->arena, head, "description", str_trim(description));
	buf_init(&text, ctx->arena, 2 * SKILL_FILE_MAX);
	frontmatter_write(&text, head, str_trim(body));
	buf_char(&text, '\n');
	edit.content = buf_str(&text);
	w = work_of(ws, ctx, &edit);
	r = do_create(&w, err);
	for (const struct jv_member *m = jv_first(scripts); r == 0 && m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		if (str_find_char(path, '/') >= path.len) /* a bare name is a script's */
			path = arena_printf(ctx->arena, "scripts/%.*s", STR_ARG(path));
		r = write_support(&w, path, jv_get_str(m->value, "content"), err);
	}
	if (r)
		drop_draft(&w);
	return r ? r : finish(&w, ret, err);
}

int skill_drafts(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = SKILLS_MAX};
	struct store *home = workspace_home(ws);
	struct jv *list = jv_array(ctx->arena);
	struct store_page page = {0};
	int r = store_list(home, ctx, (struct wpath){STR(DRAFTS)}, &req, &page, err);

	*ret = list;
	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct wpath dir = page.entries[i].path;
		struct jv *findings = jv_array(ctx->arena), *v = place_value(ctx->arena, wpath_name(dir), dir, NULL);
		struct skill skill;
		struct str text;
		struct err why;

		if (page.entries[i].stat.kind != STORE_DIR)
			continue;
		if (store_read(home, ctx, main_file(ctx->arena, dir), STORE_WHOLE, SKILL_FILE_MAX, &text, NULL, &why) ||
		    skill_parse(ctx->arena, wpath_name(dir), text, &skill, &why) ||
		    scan_dir(ctx, home, dir, findings, &why))
			jv_set_str(ctx->arena, v, "problem", err_text(ctx->arena, &why));
		else
			jv_set_str(ctx->arena, v, "description", skill.description);
		jv_set_str(ctx->arena, v, "verdict", str_of(skill_verdict_name(skill_verdict(findings))));
		jv_push(ctx->arena, list, v);
	}
	return r;
}

int skill_scan(struct workspace *ws, struct ctx *ctx, struct str name, bool draft, struct jv **ret, struct err *err)
{
	struct jv *findings = jv_array(ctx->arena);
	struct wpath dir = below(ctx->arena, DRAFTS, name);
	struct skills skills;
	const struct skill *live;
	int r = draft ? check_name(name, err) : skills_open_named(ws, ctx, name, &skills, err);

	if (r)
		return r;
	if (draft) {
		r = scan_dir(ctx, workspace_home(ws), dir, findings, err);
	} else {
		live = skills_find(&skills, name);
		r = live ? scan_dir(ctx, live->store, live->dir, findings, err)
			 : skills_unknown(ctx->arena, &skills, name, err);
		if (live)
			dir = live->dir;
		skills_close(&skills);
	}
	if (r)
		return r;
	*ret = place_value(ctx->arena, name, dir, NULL);
	jv_set_str(ctx->arena, *ret, "verdict", str_of(skill_verdict_name(skill_verdict(findings))));
	jv_set(ctx->arena, *ret, "findings", findings);
	return 0;
}

/* --- from the host --- */

static int add_from(struct workspace *ws, struct ctx *ctx, struct store *from, struct str dir_name, bool force,
		    struct jv **ret, struct err *err)
{
	struct store *home = workspace_home(ws);
	struct jv *findings = jv_array(ctx->arena);
	struct err ignored;
	struct skill skill;
	struct wpath to;
	struct str text;
	bool there;
	int r = store_read(from, ctx, (struct wpath){STR("SKILL.md")}, STORE_WHOLE, SKILL_FILE_MAX, &text, NULL, err);

	if (r == 0)
		r = skill_parse(ctx->arena, dir_name, text, &skill, err);
	if (r == 0)
		r = check_name(skill.name, err);
	if (r == 0)
		r = scan_dir(ctx, from, WPATH_ROOT, findings, err);
	if (r == 0 && !force)
		r = refuse_dangerous(ctx->arena, findings, "read it, then add it with --force if it is good", err);
	if (r == 0)
		r = exists(ctx, home, below(ctx->arena, "skills", skill.name), &there, err);
	if (r == 0 && there && !force)
		r = err_set(err, ERR_EXISTS, "there is already a skill \"%.*s\"; --force archives it first",
			    STR_ARG(skill.name));
	if (r)
		return r;
	to = (struct wpath){arena_printf(ctx->arena, DRAFTS "/.adding-%016llx", (unsigned long long)random_u64())};
	r = copy_files(ctx, from, WPATH_ROOT, home, to, err);
	if (r == 0)
		r = replace_live(ctx, home, skill.name, to, true, err);
	if (r) {
		store_remove(home, ctx, to, true, (struct store_cond){0}, NULL, &ignored);
		return r;
	}
	*ret = place_value(ctx->arena, skill.name, below(ctx->arena, "skills", skill.name), NULL);
	jv_set_str(ctx->arena, *ret, "verdict", str_of(skill_verdict_name(skill_verdict(findings))));
	jv_set(ctx->arena, *ret, "findings", findings);
	return 0;
}

int skill_add(struct workspace *ws, struct ctx *ctx, struct str host_dir, bool force, struct jv **ret, struct err *err)
{
	struct store_disk_opts opts = {.relaxed = true};
	struct str name;
	struct store *from;
	int r = store_disk_open(arena_cstr(ctx->arena, host_dir), &opts, &from, err);

	if (r)
		return r;
	while (host_dir.len > 1 && host_dir.ptr[host_dir.len - 1] == '/')
		host_dir.len--;
	name = str_from(host_dir, str_rfind_char(host_dir, '/') < host_dir.len ? str_rfind_char(host_dir, '/') + 1 : 0);
	r = add_from(ws, ctx, from, name, force, ret, err);
	store_destroy(from);
	return r;
}
