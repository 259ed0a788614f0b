/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of boards is more than a tool: files that come with an item or a comment (multipart/form-data), and what only
 * people decide. Fields of a form are the members of the JSON body; their values are JSON where the tool wants more
 * than text.
 */
#include "base/limits.h"
#include "server/multipart.h"
#include "server/server_internal.h"
#include "text/schema.h"
#include "tool/family.h"
#include "tool/schema_text.h"

/* A request's fields, and the files in it. */
struct form {
	struct jv *fields;
	struct part *parts;
	size_t count;
	struct body_view body;
};

static void form_release(struct form *form)
{
	body_unmap(&form->body);
}

/* A plain field: text, or JSON where it is an object, a list, a number or a flag by the tool's schema. A field of a
   list may also be there several times, once for each text in it. */
static int take_field(struct exchange *x, const struct jv *schema, const struct part *part, struct jv *fields,
		      struct err *err)
{
	struct str key = arena_str(x->arena, part->name), text = arena_str(x->arena, part->bytes);
	const struct jv *property = jv_get_key(jv_get(schema, "properties"), key);
	struct jv *value = jv_str(x->arena, text);
	int r = 0;

	if (!utf8_valid(key) || !utf8_valid(text))
		return err_set(err, ERR_INVALID, "a field of the form is not UTF-8");
	if (str_is(jv_get_str(property, "type"), "array") && !str_starts(str_trim(text), STR("["))) {
		const struct jv *before = jv_get_key(fields, key);
		struct jv *list = before && before->type == JV_ARRAY ? (struct jv *)before : jv_array(x->arena);

		jv_push(x->arena, list, value);
		value = list;
	} else if (property && !str_is(jv_get_str(property, "type"), "string"))
		r = jv_parse(x->arena, text, &value, err);
	if (r)
		return err_prefix(err, "the field \"%.*s\"", STR_ARG(utf8_first(key, 60)));
	jv_set_key(x->arena, fields, key, value);
	return 0;
}

static int form_read(struct exchange *x, const char *tool, struct form *ret, struct err *err)
{
	struct str boundary = multipart_boundary(x->arena, exchange_header(x, "Content-Type"));
	struct jv *schema;
	int r;

	*ret = (struct form){0};
	if (!boundary.ptr)
		return body_json(x, &ret->fields, err);
	r = body_map(x, &ret->body, err);
	if (r == 0)
		r = multipart_parse(x->arena, ret->body.text, boundary, &ret->parts, &ret->count, err);
	if (r == 0)
		r = schema_text_parse(x->arena, tool_named(tool)->args, &schema, err);
	ret->fields = jv_object(x->arena);
	for (size_t i = 0; r == 0 && i < ret->count; i++) {
		if (!ret->parts[i].filename.ptr)
			r = take_field(x, schema, &ret->parts[i], ret->fields, err);
		else if (ret->parts[i].bytes.len > BOARD_ATTACHMENT_MAX)
			r = err_set(err, ERR_TOO_LARGE, "an attachment has at most %zu bytes",
				    (size_t)BOARD_ATTACHMENT_MAX);
		else if (!str_is(ret->parts[i].name, "attachments") && !str_is(ret->parts[i].name, "files"))
			r = err_set(err, ERR_INVALID, "send files in the field \"attachments\"");
	}
	return r;
}

int body_fields(struct exchange *x, const char *tool, struct jv **ret, struct err *err)
{
	struct form form;
	int r = form_read(x, tool, &form, err);

	for (size_t i = 0; r == 0 && i < form.count; i++)
		if (form.parts[i].filename.ptr)
			r = err_set(err, ERR_INVALID, "this address accepts no files; send only the fields");
	*ret = form.fields;
	form_release(&form);
	return r;
}

/* Puts the files into the item, and gives {…metadata, attachments: […]}: those that are already there stay. */
static int attach_files(struct exchange *x, struct board_ref ref, const struct form *form, const struct jv *metadata,
			struct jv **ret, struct err *err)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_change_ctx(x);
	struct jv *list = jv_array(x->arena), *v = metadata ? jv_copy(x->arena, metadata) : jv_object(x->arena), *one;
	int r = 0;

	for (const struct jv_member *m = jv_first(jv_get(v, "attachments")); m; m = m->next)
		jv_push(x->arena, list, m->value);
	for (size_t i = 0; r == 0 && i < form->count; i++) {
		const struct part *part = &form->parts[i];
		struct source source = {.bytes = part->bytes};

		if (!part->filename.ptr || !part->bytes.len)
			continue;
		r = board_item_attach(call->tenant->ws, &ctx, ref, part->filename, part->type, &source, &one, err);
		if (r == 0)
			jv_push(x->arena, list, one);
	}
	jv_set(x->arena, v, "attachments", list);
	*ret = v;
	return r;
}

static bool has_files(const struct form *form)
{
	for (size_t i = 0; i < form->count; i++)
		if (form->parts[i].filename.ptr && form->parts[i].bytes.len)
			return true;
	return false;
}

static void set_target(struct exchange *x, struct jv *args)
{
	struct board_ref ref = exchange_item(x);

	if (ref.board.len)
		jv_set_str(x->arena, args, "board", ref.board);
	if (ref.ref.len)
		jv_set_str(x->arena, args, "item", ref.ref);
}

/* Adds attachments to an item that exists. False: it is answered. */
static bool update_attachments(struct exchange *x, struct board_ref ref, const struct form *form, const struct jv *item,
			       const struct jv **ret)
{
	struct jv *args = jv_object(x->arena), *metadata;
	struct err err = {0};

	if (attach_files(x, ref, form, jv_get(item, "metadata"), &metadata, &err) != 0) {
		answer_error(x, &err);
		return false;
	}
	if (ref.board.len)
		jv_set_str(x->arena, args, "board", ref.board);
	jv_set_str(x->arena, args, "item", ref.ref);
	jv_set(x->arena, args, "metadata", metadata);
	return exchange_call_tool(x, "update_item", args, ret);
}

/* The result, or the member of it that the route names. */
static void answer_part(struct exchange *x, const struct jv *result)
{
	const struct route *route = call_of(x)->route;

	answer_json(x, route_status(route), route->member ? jv_get(result, route->member) : result);
}

static bool start_form(struct exchange *x, const char *tool, struct form *form)
{
	struct err err = {0};

	if (form_read(x, tool, form, &err) == 0)
		return true;
	answer_error(x, &err);
	return false;
}

void run_item_create(struct exchange *x)
{
	struct form form;
	const struct jv *result;
	struct board_ref ref = exchange_item(x);

	if (start_form(x, "create_item", &form)) {
		if (ref.board.len)
			jv_set_str(x->arena, form.fields, "board", ref.board);
		if (exchange_call_tool(x, "create_item", form.fields, &result)) {
			ref.ref = jv_get_str(jv_get(result, "item"), "id");
			if (!has_files(&form) || update_attachments(x, ref, &form, jv_get(result, "item"), &result))
				answer_part(x, result);
		}
	}
	form_release(&form);
}

void run_item_update(struct exchange *x)
{
	struct form form;
	const struct jv *result;

	if (start_form(x, "update_item", &form)) {
		set_target(x, form.fields);
		if (exchange_call_tool(x, "update_item", form.fields, &result) &&
		    (!has_files(&form) ||
		     update_attachments(x, exchange_item(x), &form, jv_get(result, "item"), &result)))
			answer_part(x, result);
	}
	form_release(&form);
}

void run_item_comment(struct exchange *x)
{
	struct form form;
	struct jv *metadata;
	const struct jv *result;
	struct err err = {0};
	bool ok = start_form(x, "comment_item", &form);

	if (ok && has_files(&form)) {
		ok = attach_files(x, exchange_item(x), &form, jv_get(form.fields, "metadata"), &metadata, &err) == 0;
		if (ok)
			jv_set(x->arena, form.fields, "metadata", metadata);
		else
			answer_error(x, &err);
	}
	if (ok) {
		set_target(x, form.fields);
		if (exchange_call_tool(x, "comment_item", form.fields, &result))
			answer_part(x, result);
	}
	form_release(&form);
}

/* --- what only people decide --- */

typedef int (*decide_fn)(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
			 struct jv **ret_item, struct err *err);

static void answer_decision(struct exchange *x, const char *form, decide_fn decide)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_change_ctx(x);
	struct jv *fields, *schema, *item, *v = jv_object(x->arena);
	struct err err = {0};
	int r = body_json(x, &fields, &err);

	if (r == 0)
		r = schema_text_parse(x->arena, form, &schema, &err);
	if (r == 0)
		r = schema_check(schema, fields, "the body of the request", &err);
	if (r == 0)
		r = decide(call->tenant->ws, &ctx, exchange_item(x), fields, &item, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set(x->arena, v, "item", item);
	answer_part(x, v);
}

void run_item_answer(struct exchange *x)
{
	answer_decision(x, "answers [{question_id!; value! any}]<=20\nfreeform_text str<=16000", board_question_answer);
}

void run_item_approval(struct exchange *x)
{
	answer_decision(x, "request_message_id!\napprovals! [{tool_name!; mode! allow_once|allow_always}]<=50",
			board_approval_answer);
}
