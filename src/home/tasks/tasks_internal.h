/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of tasks share: where tasks are (task_files.c). */
#ifndef STEAD_HOME_TASKS_TASKS_INTERNAL_H
#define STEAD_HOME_TASKS_TASKS_INTERNAL_H

#include "home/tasks/tasks.h"

#define TASKS_PATH ((struct wpath){STR("TASKS.yaml")})
#define TASKS_DIR  "tasks"
#define TASKS_FULL ((size_t)8 * 1024) /* bytes of TASKS.yaml from which on new tasks get files of their own */

/* The tasks of a file, in its order, with the keys that it has. */
int tasks_parse(struct arena *arena, struct str text, struct jv **ret_tasks, struct err *err);
/* The same for what is at `path`; a missing file has none. */
int tasks_read(struct workspace *ws, struct ctx *ctx, struct wpath path, struct jv **ret_tasks, struct err *err);
/* Of all files. */
int tasks_read_all(struct workspace *ws, struct ctx *ctx, struct jv **ret_tasks, struct err *err);

/* The file of a task that has its own, and its id again. */
struct wpath task_path(struct arena *arena, struct str id);
bool task_file_id(struct wpath path, struct str *ret_id);
/* Visits the files of single tasks in `dir`, which need not exist. */
typedef int (*task_file_fn)(void *arg, const struct store_entry *file, struct str id, struct err *err);
int task_files(struct workspace *ws, struct ctx *ctx, struct wpath dir, task_file_fn visit, void *arg, struct err *err);
/* The file of the task whose id begins with `id`; an id that is exactly that wins. */
int tasks_find(struct workspace *ws, struct ctx *ctx, struct str id, struct wpath *ret_path, struct err *err);

/* Gives each its "short_id"; puts them in the order of their ids. */
void tasks_set_short_ids(struct arena *arena, struct jv **tasks, size_t count);
/* The order of list_tasks: urgent first, then the oldest. */
struct str task_rank(struct arena *arena, const struct jv *task);

#endif
