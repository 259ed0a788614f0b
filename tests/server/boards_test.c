/* SPDX-License-Identifier: Apache-2.0 */
/* Boards over HTTP. */
#include "client.h"
#include "server/multipart.h"

#define BOARD "/v1/workspaces/demo/boards/main"

static const char *at(struct site *s, const struct jv *item, const char *rest)
{
	return arena_printf(s->arena, BOARD "/items/%.*s%s", STR_ARG(jv_get_str(item, "id")), rest).ptr;
}

static const struct jv *create(struct site *s, const char *body)
{
	struct reply reply = ask(s, "POST", BOARD "/items", NULL, str_of(body));

	CHECK_STATUS(reply, 201);
	return jv_get(json_of(s, reply), "item");
}

TEST(an_item_goes_from_its_brief_to_a_checked_deliverable)
{
	static struct site s;
	const struct jv *item, *d;
	struct reply reply;

	site_start(&s, true);
	item = create(&s,
		      "{\"title\":\"Compare\",\"description\":\"Which?\",\"checks\":[{\"path\":\"artifacts/r.json\","
		      "\"min_size\":3,\"json_schema\":{\"type\":\"object\",\"required\":[\"best\"]}}]}");
	CHECK_STR(get(&s, at(&s, item, "/files/TASK.md")).body, STR("# Compare\n\nWhich?\n"));
	CHECK_STATUS(ask(&s, "PUT", at(&s, item, "/files/artifacts/r.json"), NULL, STR("{\"worst\":1}")), 201);
	reply = ask(&s, "PATCH", at(&s, item, ""), NULL,
		    STR("{\"status\":\"completed\",\"result_summary\":\"The second draft is the better one.\","
			"\"artifacts\":[\"/task/artifacts/r.json\"]}"));
	CHECK_STATUS(reply, 400);
	CHECK_HAS(reply.body, STR("best"));
	CHECK_STATUS(ask(&s, "PUT", at(&s, item, "/files/artifacts/r.json"), NULL, STR("{\"best\":2}")), 200);
	reply = ask(&s, "PATCH", at(&s, item, ""), NULL,
		    STR("{\"status\":\"completed\",\"result_summary\":\"The second draft is the better one.\","
			"\"artifacts\":[{\"path\":\"artifacts/r.json\",\"kind\":\"report\"}]}"));
	CHECK_STATUS(reply, 200);
	d = jv_at(jv_get(jv_get(json_of(&s, reply), "item"), "deliverables"), 0);
	CHECK_INT(jv_get_int(jv_at(jv_get(d, "artifacts"), 0), "size_bytes", 0), 10);
	CHECK_STR(jv_get_str(jv_at(jv_get(d, "artifacts"), 0), "sha256"),
		  STR("fba9d2d1a150540a40f37d5f47fdc4c8fcdf18d41d5ed7376599f1a36f5a0244"));
}

TEST(files_come_with_items_and_comments)
{
	static struct site s;
	static const char form[] =
		"--xx\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nRead this\r\n"
		"--xx\r\nContent-Disposition: form-data; name=\"attachments\"; filename=\"../a b.txt\"\r\n"
		"Content-Type: text/plain\r\n\r\nhello\r\n--xx--\r\n";
	static const char comment[] =
		"--xx\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\nsee file\r\n"
		"--xx\r\nContent-Disposition: form-data; name=\"files\"; filename=\"c.txt\"\r\n\r\n"
		"hi\r\n--xx--\r\n";
	const char *type = "Content-Type: multipart/form-data; boundary=xx\r\n";
	const struct jv *item, *file, *list;
	struct reply reply;

	site_start(&s, true);
	reply = ask(&s, "POST", BOARD "/items", type, str_of(form));
	CHECK_STATUS(reply, 201);
	item = jv_get(json_of(&s, reply), "item");
	CHECK_STR(jv_get_str(item, "title"), STR("Read this"));
	file = jv_at(jv_get(jv_get(item, "metadata"), "attachments"), 0);
	CHECK_STR(jv_get_str(file, "original_name"), STR("../a b.txt"));
	CHECK_STR(jv_get_str(file, "name"), STR("a_b.txt"));
	CHECK_STR(get(&s, at(&s, item, arena_printf(s.arena, "/files%s", jv_get_str(file, "path").ptr + 5).ptr)).body,
		  STR("hello"));
	CHECK_STATUS(ask(&s, "POST", at(&s, item, "/comments"), type, str_of(comment)), 201);
	list = jv_get(json_of(&s, get(&s, at(&s, item, "/comments"))), "comments");
	CHECK_STR(jv_get_str(jv_at(jv_get(jv_get(jv_at(list, 0), "metadata"), "attachments"), 0), "name"),
		  STR("c.txt"));
}

TEST(questions_are_answered_by_people)
{
	static struct site s;
	const struct jv *item;
	struct reply reply;

	site_start(&s, true);
	item = create(&s, "{\"title\":\"Ask\"}");
	CHECK_STATUS(ask(&s, "POST", at(&s, item, "/question"), NULL,
			 STR("{\"questions\":[{\"text\":\"Which?\",\"kind\":\"single_choice\",\"options\":[\"a\",\"b\"]"
			     "}]}")),
		     200);
	CHECK_STATUS(ask(&s, "POST", at(&s, item, "/answer"), NULL,
			 STR("{\"answers\":[{\"question_id\":\"q1\",\"value\":\"c\"}]}")),
		     400);
	reply = ask(&s, "POST", at(&s, item, "/answer"), NULL,
		    STR("{\"answers\":[{\"question_id\":\"q1\",\"value\":\"b\"}]}"));
	CHECK_STATUS(reply, 200);
	CHECK_STR(jv_get_str(jv_get(json_of(&s, reply), "item"), "status"), STR("pending"));
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/demo/tools/answer_approval", NULL, STR("{}")), 404);
}

TEST(the_changes_of_an_item_are_its_events)
{
	static struct site s;
	const struct jv *item, *changes;

	site_start(&s, true);
	create(&s, "{\"title\":\"Another\"}");
	item = create(&s, "{\"title\":\"Watched\"}");
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/files/x.md", NULL, STR("x")), 201);
	CHECK_STATUS(ask(&s, "PUT", at(&s, item, "/files/artifacts/a.md"), NULL, STR("x")), 201);
	CHECK_STATUS(ask(&s, "POST", at(&s, item, "/comments"), NULL, STR("{\"body\":\"well\"}")), 201);
	changes = jv_get(json_of(&s, get(&s, at(&s, item, "/events?since=0&wait=0"))), "changes");
	CHECK_INT(jv_count(changes), 5);
	CHECK_INT(jv_count(jv_get(json_of(&s, get(&s, at(&s, item, "/events?since=0&wait=0&limit=0"))), "changes")), 1);
	CHECK_STR(jv_get_str(jv_at(changes, 0), "path"), STR("/task/TASK.md"));
	CHECK_STR(jv_get_str(jv_at(changes, 1), "path"), STR("item"));
	CHECK_STR(jv_get_str(jv_at(changes, 2), "path"), STR("/task/artifacts/a.md"));
	CHECK_STR(jv_get_str(jv_at(changes, 3), "path"), STR("comments"));
	CHECK_STATUS(get(&s, BOARD "/items/1234567890123456789/events?wait=0"), 404);
}

TEST(an_address_without_a_name_is_none)
{
	static struct site s;
	const char *body;

	site_start(&s, true);
	body = arena_printf(s.arena, "{\"item\":\"%.*s\",\"body\":\"lost\"}",
			    STR_ARG(jv_get_str(create(&s, "{\"title\":\"One\"}"), "id")))
		       .ptr;
	CHECK_STATUS(ask(&s, "POST", BOARD "/items//comments", NULL, str_of(body)), 404);
	CHECK_STATUS(get(&s, "/v1/workspaces//files"), 404);
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/boards//items"), 404);
	CHECK_STATUS(get(&s, "/"), 200);
}

TEST(a_token_that_reads_changes_no_board)
{
	static struct site s;
	const char *writer, *reader;
	struct reply reply;

	site_start(&s, false);
	writer = bearer(&s, site_token(&s, ACCESS_WRITE, "demo", NULL));
	reader = bearer(&s, site_token(&s, ACCESS_READ, "demo", NULL));
	reply = ask(&s, "POST", BOARD "/items", writer, STR("{\"title\":\"x\"}"));
	CHECK_STATUS(reply, 201);
	CHECK_STATUS(ask(&s, "POST", BOARD "/items", reader, STR("{\"title\":\"x\"}")), 403);
	CHECK_STATUS(ask(&s, "GET", BOARD "/items", reader, STR_NONE), 200);
	CHECK_STATUS(ask(&s, "GET", at(&s, jv_get(json_of(&s, reply), "item"), ""), reader, STR_NONE), 200);
	CHECK_STATUS(ask(&s, "PATCH", at(&s, jv_get(json_of(&s, reply), "item"), ""), reader, STR("{}")), 403);
}

TEST(a_preview_is_text_or_base64)
{
	static struct site s;
	const struct jv *v;

	site_start(&s, true);
	ask(&s, "PUT", "/v1/workspaces/demo/files/a.md", NULL, STR("# Hi"));
	ask(&s, "PUT", "/v1/workspaces/demo/files/a.bin", NULL, str_n("\0\1\2", 3));
	v = json_of(&s, get(&s, "/v1/workspaces/demo/preview?path=a.md"));
	CHECK_STR(jv_get_str(v, "content"), STR("# Hi"));
	CHECK_STR(jv_get_str(v, "mime_type"), STR("text/markdown; charset=utf-8"));
	v = json_of(&s, get(&s, "/v1/workspaces/demo/preview?path=a.bin"));
	CHECK_STR(jv_get_str(v, "content_base64"), STR("AAEC"));
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/preview?path=none"), 404);
}

/* --- as clients of Wacht ask --- */

#define WACHT "/ai/actor-projects/demo/board/items"

TEST(clients_of_wacht_find_what_they_expect)
{
	static struct site s;
	const struct jv *item, *v;
	const char *base, *front;
	struct reply reply;

	site_start(&s, true);
	reply = ask(&s, "POST", WACHT, NULL, STR("{\"title\":\"Annotate\",\"description\":\"Mark up.\"}"));
	CHECK_STATUS(reply, 201);
	item = json_of(&s, reply);
	base = arena_printf(s.arena, WACHT "/%.*s", STR_ARG(jv_get_str(item, "id"))).ptr;
	front = arena_printf(s.arena, "/ai/projects/demo/board/items/%.*s", STR_ARG(jv_get_str(item, "id"))).ptr;
	v = json_of(&s, get(&s, arena_printf(s.arena, "%s/filesystem?path=/task/artifacts", front).ptr));
	CHECK_INT(jv_count(jv_get(v, "entries")), 0);
	CHECK_STATUS(get(&s, arena_printf(s.arena, "%s/filesystem?path=/task/none", front).ptr), 404);
	CHECK_STATUS(ask(&s, "PUT", at(&s, item, "/files/artifacts/film.mp4"), NULL, STR("0123456789")), 201);
	v = json_of(&s, get(&s, arena_printf(s.arena, "%s/filesystem?path=/task/artifacts", front).ptr));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "name"), STR("film.mp4"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "entries"), 0), "kind"), STR("file"));
	CHECK_INT(jv_get_int(jv_at(jv_get(v, "entries"), 0), "size_bytes", 0), 10);
	CHECK(!jv_get_bool(jv_at(jv_get(v, "files"), 0), "is_dir", true));
	reply = ask(&s, "GET", arena_printf(s.arena, "%s/filesystem/download?path=artifacts/film.mp4", base).ptr,
		    "Range: bytes=2-4\r\n", STR_NONE);
	CHECK_STATUS(reply, 206);
	CHECK_STR(reply.body, STR("234"));
	CHECK_HAS(head_value(reply.head, "Content-Disposition"), STR("attachment; filename=\"film.mp4\""));
	CHECK_STR(head_value(reply.head, "Cache-Control"), STR("no-store"));
	reply = get(&s, arena_printf(s.arena, "%s/filesystem/download?path=none", base).ptr);
	CHECK_STATUS(reply, 404);
	CHECK_STR(head_value(reply.head, "Content-Disposition"),
		  STR_NONE); /* a page shows the sentence, and saves nothing */
	CHECK_STATUS(get(&s, arena_printf(s.arena, "%s/filesystem/file?path=none", base).ptr), 404);
	CHECK_STATUS(get(&s, arena_printf(s.arena, "%s/filesystem?path=../x", base).ptr), 400);
	v = json_of(&s, get(&s, "/ai/projects/demo/board/items?limit=1"));
	CHECK(!jv_get_bool(v, "has_more", true));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "data"), 0), "title"), STR("Annotate"));
	CHECK_STR(
		jv_get_str(json_of(&s, ask(&s, "POST", arena_printf(s.arena, "%s/cancel", base).ptr, NULL, STR("{}"))),
			   "status"),
		STR("cancelled"));
}

TEST(a_project_names_a_workspace_and_may_name_one_of_its_boards)
{
	static struct site s;
	const struct jv *item, *v;
	const char *base;

	site_start(&s, true);
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/boards/drafts", NULL, STR("{\"title\":\"Drafts\"}")), 200);
	item = json_of(&s,
		       ask(&s, "POST", "/ai/actor-projects/demo:drafts/board/items", NULL, STR("{\"title\":\"One\"}")));
	base = arena_printf(s.arena, "/ai/projects/demo%%3Adrafts/board/items/%.*s", STR_ARG(jv_get_str(item, "id")))
		       .ptr;
	CHECK_STATUS(get(&s, base), 200);
	CHECK_STATUS(get(&s, arena_printf(s.arena, "%s/filesystem", base).ptr), 200);
	CHECK_STATUS(ask(&s, "POST", arena_printf(s.arena, "%s/comments", base).ptr, NULL, STR("{\"body\":\"x\"}")),
		     201);
	v = json_of(&s, get(&s, "/ai/actor-projects/demo:drafts/board/items"));
	CHECK_INT((int64_t)jv_count(jv_get(v, "data")), 1);
	v = json_of(&s, get(&s, WACHT));
	CHECK_INT((int64_t)jv_count(jv_get(v, "data")), 0);
	CHECK_STR(jv_get_str(json_of(&s, get(&s, "/ai/actor-projects/demo:drafts/board")), "title"), STR("Drafts"));
	CHECK_STATUS(get(&s, "/ai/actor-projects/demo:none/board/items"), 404);
}

/* "title title …" of a page. */
static struct str titles_of(struct site *s, const char *target)
{
	const struct jv *page = json_of(s, get(s, target));
	struct buf text;

	buf_init(&text, s->arena, 4096);
	for (const struct jv_member *m = jv_first(jv_get(page, "data")); m; m = m->next) {
		buf_add(&text, jv_get_str(m->value, "title"));
		buf_char(&text, ' ');
	}
	return buf_str(&text);
}

TEST(clients_of_wacht_list_several_statuses_and_what_is_archived)
{
	static const char *const titles[] = {"a", "b", "c", "d"};
	static struct site s;
	const struct jv *v = NULL, *page;

	site_start(&s, true);
	for (size_t i = 0; i < COUNT(titles); i++) {
		v = json_of(&s, ask(&s, "POST", WACHT, NULL, arena_printf(s.arena, "{\"title\":\"%s\"}", titles[i])));
		if (i == 1 || i == 2)
			ask(&s, "POST", arena_printf(s.arena, WACHT "/%.*s/cancel", STR_ARG(jv_get_str(v, "id"))).ptr,
			    NULL, STR("{}"));
		if (i == 2)
			ask(&s, "POST", arena_printf(s.arena, WACHT "/%.*s/archive", STR_ARG(jv_get_str(v, "id"))).ptr,
			    "Content-Type: application/x-www-form-urlencoded\r\n", STR(""));
	}
	CHECK_STR(titles_of(&s, WACHT), STR("d b a "));
	CHECK_STR(titles_of(&s, WACHT "?status=completed,pending"), STR("d a "));
	CHECK_STR(titles_of(&s, WACHT "?archived_only=true"), STR("c "));
	CHECK_STR(titles_of(&s, WACHT "?include_archived=true&status=cancelled"), STR("c b "));
	page = json_of(&s, get(&s, WACHT "?include_archived=true&limit=2"));
	CHECK(jv_get_bool(page, "has_more", false));
	CHECK_STR(titles_of(&s, arena_printf(s.arena, WACHT "?include_archived=true&limit=2&cursor=%.*s",
					     STR_ARG(jv_get_str(page, "next_cursor")))
					.ptr),
		  STR("b a "));
	CHECK_STATUS(get(&s, arena_printf(s.arena, WACHT "/%.*s/filesystem?include_archived=true",
					  STR_ARG(jv_get_str(v, "id")))
				     .ptr),
		     200);
}

TEST(clients_of_wacht_make_threads_by_forms_and_search_them)
{
	static struct site s;
	const struct jv *v;

	site_start(&s, true);
	v = json_of(&s,
		    ask(&s, "POST", "/ai/projects/demo/threads", "Content-Type: multipart/form-data; boundary=xx\r\n",
			STR("--xx\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nTalk\r\n"
			    "--xx\r\nContent-Disposition: form-data; name=\"reusable\"\r\n\r\nfalse\r\n"
			    "--xx\r\nContent-Disposition: form-data; name=\"capability_tags\"\r\n\r\nfilm\r\n"
			    "--xx\r\nContent-Disposition: form-data; name=\"capability_tags\"\r\n\r\nsound\r\n"
			    "--xx--\r\n")));
	CHECK_STR(jv_get_str(v, "title"), STR("Talk"));
	CHECK(!jv_get_bool(v, "reusable", true));
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "capability_tags"), 1)), STR("sound"));
	ask(&s, "POST", "/ai/projects/demo/threads", NULL, STR("{\"title\":\"Plan\"}"));
	CHECK_STR(titles_of(&s, "/ai/projects/demo/threads?limit=100&include_archived=true"), STR("Talk Plan "));
	CHECK_STR(titles_of(&s, "/ai/projects/demo/threads?q=PLA"), STR("Plan "));
	v = json_of(&s, get(&s, "/ai/projects/demo/threads?limit=1"));
	CHECK_STR(titles_of(&s, arena_printf(s.arena, "/ai/projects/demo/threads?limit=1&cursor=%.*s",
					     STR_ARG(jv_get_str(v, "next_cursor")))
					.ptr),
		  STR("Plan "));
}

/* --- threads --- */

#define LANES "/ai/actor-projects/demo/threads"

/* A conversation of the workspace "demo", whose model is a recording of one answer. */
static struct str make_thread(struct site *s)
{
	const char *recording = arena_printf(s->arena, "%s/recording.jsonl", s->dir).ptr;

	write_host_file(recording,
			STR("{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"It is a film.\"}\n"));
	write_host_file(arena_printf(s->arena, "%s/ws/demo/agent.yaml", s->dir).ptr,
			arena_printf(s->arena, "model: \"replay:%s\"\n", recording));
	return jv_get_str(json_of(s, ask(s, "POST", LANES, NULL, STR("{\"title\":\"Talk\"}"))), "id");
}

static struct reply ask_thread(struct site *s, const char *method, struct str id, const char *rest, struct str body)
{
	return ask(s, method, arena_printf(s->arena, "/ai/actor-project-threads/%.*s%s", STR_ARG(id), rest).ptr, NULL,
		   body);
}

static const struct jv *messages_of(struct site *s, struct str id, const char *query)
{
	return json_of(s, ask_thread(s, "GET", id, arena_printf(s->arena, "/messages%s", query).ptr, STR_NONE));
}

TEST(a_thread_is_found_by_its_id_alone_and_has_two_directories)
{
	static struct site s;
	const struct jv *v;
	struct str id;

	site_start(&s, true);
	id = make_thread(&s);
	v = json_of(&s, ask_thread(&s, "GET", id, "", STR_NONE));
	CHECK_STR(jv_get_str(v, "project_id"), STR("demo"));
	CHECK_STR(jv_get_str(v, "thread_purpose"), STR("conversation"));
	v = json_of(&s, ask_thread(&s, "GET", id, "/filesystem", STR_NONE));
	CHECK_INT((int64_t)jv_count(jv_get(v, "files")), 2);
	v = json_of(&s, ask_thread(&s, "GET", id, "/filesystem?path=/workspace", STR_NONE));
	CHECK_INT((int64_t)jv_count(jv_get(v, "entries")), 0);
	CHECK_STATUS(ask_thread(&s, "GET", id, "/filesystem?path=/workspace/none", STR_NONE), 404);
	CHECK_STATUS(ask_thread(&s, "GET", id, "/filesystem?path=/task", STR_NONE), 400);
	CHECK_STATUS(ask_thread(&s, "GET", id, "/filesystem?path=workspace/../../x", STR_NONE), 400);
	CHECK_STATUS(ask_thread(&s, "GET", STR("1882186246335063906"), "", STR_NONE), 404);
	CHECK_STATUS(ask_thread(&s, "GET", STR("..%2f..%2fx"), "", STR_NONE), 404);
	CHECK_STATUS(get(&s, arena_printf(s.arena, "/ai/threads/%.*s/messages", STR_ARG(id)).ptr), 200);
}

TEST(a_thread_of_another_board_is_found_too)
{
	static struct site s, other;
	const struct jv *v;
	struct str id;

	site_start(&s, true);
	make_thread(&s); /* of the board main, and the model */
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/demo/boards/drafts", NULL, STR("{\"title\":\"Drafts\"}")), 200);
	v = json_of(&s, ask(&s, "POST", "/ai/actor-projects/demo:drafts/threads", NULL, STR("{\"title\":\"Talk\"}")));
	id = jv_get_str(v, "id");
	CHECK_STR(jv_get_str(v, "project_id"), STR("demo:drafts"));
	/* a server that has not seen it being made */
	site_join(&other, &s);
	v = json_of(&other, ask_thread(&other, "GET", id, "", STR_NONE));
	CHECK_STR(jv_get_str(v, "project_id"), STR("demo:drafts"));
	CHECK_STATUS(ask_thread(&other, "GET", id, "/filesystem?path=/workspace", STR_NONE), 200);
	CHECK_STATUS(ask_thread(&other, "POST", id, "/update", STR("{\"title\":\"Films\"}")), 200);
	CHECK_HAS(ask(&other, "POST", arena_printf(s.arena, "/ai/threads/%.*s/run", STR_ARG(id)).ptr,
		      "Accept: text/event-stream\r\n", STR("{\"new_message\":{\"message\":\"What is this?\"}}"))
			  .body,
		  STR("It is a film."));
	v = json_of(&other, ask_thread(&other, "GET", id, "", STR_NONE));
	CHECK_STR(jv_get_str(v, "title"), STR("Films"));
	CHECK_STR(jv_get_str(v, "status"), STR("idle"));
}

TEST(a_thread_that_nobody_has_opens_no_workspace)
{
	static struct site s;
	struct str id;

	site_start(&s, true);
	site_make_workspace(&s, "other");
	CHECK_STATUS(ask_thread(&s, "GET", STR("1882186246335063906"), "", STR_NONE), 404);
	CHECK_HAS(get(&s, "/metrics").body, STR("\nstead_workspaces_open 0\n"));
	id = make_thread(&s);
	CHECK_STATUS(ask_thread(&s, "GET", id, "", STR_NONE), 200);
	CHECK_HAS(get(&s, "/metrics").body, STR("\nstead_workspaces_open 1\n"));
}

TEST(a_run_of_a_thread_keeps_its_files_and_its_messages)
{
	static struct site s;
	const char *sent = "{\"execution_type\":{\"new_message\":{\"message\":\"What is this?\","
			   "\"files\":[{\"name\":\"a b.mp4\",\"content\":\"ZmlsbQ==\"}]}}}";
	const struct jv *v, *data;
	struct reply reply;
	struct str id, path;

	site_start(&s, true);
	id = make_thread(&s);
	/* the answer as a stream ends with the turn */
	reply = ask(&s, "POST", arena_printf(s.arena, "/ai/threads/%.*s/run", STR_ARG(id)).ptr,
		    "Accept: text/event-stream\r\n", str_of(sent));
	CHECK_STATUS(reply, 200);
	CHECK_HAS(reply.body, STR("It is a film."));
	data = jv_get(messages_of(&s, id, ""), "data");
	CHECK_INT((int64_t)jv_count(data), 2);
	CHECK_STR(jv_get_str(jv_at(data, 0), "message_type"), STR("user_message"));
	CHECK_STR(jv_get_str(jv_get(jv_at(data, 1), "content"), "response"), STR("It is a film."));
	v = messages_of(&s, id, "?limit=1");
	CHECK(jv_get_bool(v, "has_more", false));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "data"), 0), "message_type"), STR("agent_response"));
	v = messages_of(&s, id,
			arena_printf(s.arena, "?before_id=%.*s", STR_ARG(jv_get_str(jv_at(data, 1), "id"))).ptr);
	CHECK_INT((int64_t)jv_count(jv_get(v, "data")), 1);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "data"), 0), "id"), jv_get_str(jv_at(data, 0), "id"));
	v = messages_of(&s, id, arena_printf(s.arena, "?after_id=%.*s", STR_ARG(jv_get_str(jv_at(data, 0), "id"))).ptr);
	CHECK_INT((int64_t)jv_count(jv_get(v, "data")), 1);
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "data"), 0), "id"), jv_get_str(jv_at(data, 1), "id"));
	v = json_of(&s, ask_thread(&s, "GET", id, "/filesystem?path=uploads", STR_NONE));
	path = jv_get_str(jv_at(jv_get(v, "files"), 0), "path");
	CHECK_HAS(path, STR("_a_b.mp4"));
	reply = ask_thread(&s, "GET", id, arena_printf(s.arena, "/filesystem/file?path=/%.*s", STR_ARG(path)).ptr,
			   STR_NONE);
	CHECK_STR(reply.body, STR("film"));
	CHECK_STR(head_value(reply.head, "Content-Type"), STR("video/mp4"));
	CHECK_STR(jv_get_str(json_of(&s, ask_thread(&s, "GET", id, "", STR_NONE)), "status"), STR("idle"));
	CHECK_STATUS(ask_thread(&s, "POST", id, "/run", STR("{}")), 400);
	CHECK_STR(jv_get_str(json_of(&s, ask_thread(&s, "POST", id, "/run", STR("{\"cancel\":{}}"))), "status"),
		  STR("idle"));
}

TEST(any_server_can_cancel_a_run_of_a_thread)
{
	static struct site s, other;
	struct reply reply;
	struct str id;
	int model, asked;

	site_start(&s, true);
	site_join(&other, &s);
	model = silent_model(&s);
	id = jv_get_str(json_of(&s, ask(&s, "POST", LANES, NULL, STR("{\"title\":\"Talk\"}"))), "id");
	CHECK_STATUS(ask_thread(&s, "POST", id, "/run", STR("{\"new_message\":{\"message\":\"Go\"}}")), 200);
	asked = accept(model, NULL, NULL);
	CHECK(asked >= 0);
	/* a second message is not lost without a word */
	reply = ask_thread(&other, "POST", id, "/run", STR("{\"new_message\":{\"message\":\"Hello?\"}}"));
	CHECK_STATUS(reply, 409);
	CHECK_HAS(reply.body, STR("wait until it is idle, or cancel it"));
	CHECK_STR(jv_get_str(json_of(&other, ask_thread(&other, "POST", id, "/run", STR("{\"cancel\":{}}"))), "status"),
		  STR("cancelled"));
	CHECK_STR(jv_get_str(json_of(&other, ask_thread(&other, "GET", id, "", STR_NONE)), "status"),
		  STR("interrupted"));
	CHECK_STR(jv_get_str(json_of(&other, ask_thread(&other, "POST", id, "/run", STR("{\"cancel\":{}}"))), "status"),
		  STR("idle"));
	close(asked);
	close(model);
}

TEST(a_thread_whose_server_was_killed_can_be_cancelled)
{
	static struct site s;
	struct str id;

	site_start(&s, true);
	id = make_thread(&s);
	CHECK_STATUS(ask(&s, "PATCH", arena_printf(s.arena, BOARD "/threads/%.*s", STR_ARG(id)).ptr, NULL,
			 STR("{\"status\":\"running\"}")),
		     200);
	CHECK_STR(jv_get_str(json_of(&s, ask_thread(&s, "POST", id, "/run", STR("{\"cancel\":{}}"))), "status"),
		  STR("idle"));
	CHECK_STR(jv_get_str(json_of(&s, ask_thread(&s, "GET", id, "", STR_NONE)), "status"), STR("interrupted"));
}

TEST(messages_about_an_item_are_those_of_the_time_that_was_spent_on_it)
{
	static struct site s;
	const struct jv *item;
	struct str id;

	site_start(&s, true);
	id = make_thread(&s);
	item = create(&s, "{\"title\":\"Other\"}");
	ask(&s, "POST", arena_printf(s.arena, "/ai/threads/%.*s/run", STR_ARG(id)).ptr, "Accept: text/event-stream\r\n",
	    STR("{\"new_message\":{\"message\":\"Hello\"}}"));
	CHECK_INT(
		(int64_t)jv_count(jv_get(
			messages_of(&s, id,
				    arena_printf(s.arena, "?board_item_id=%.*s", STR_ARG(jv_get_str(item, "id"))).ptr),
			"data")),
		0);
	CHECK_INT((int64_t)jv_count(jv_get(messages_of(&s, id, ""), "data")), 2);
	CHECK_STATUS(ask_thread(&s, "GET", id, "/messages?board_item_id=1", STR_NONE), 404);
}

TEST(a_lane_keeps_files_below_its_two_directories_and_nowhere_else)
{
	static struct site s;
	const char *base;
	struct str id;

	site_start(&s, true);
	id = make_thread(&s);
	base = arena_printf(s.arena, "/v1/workspaces/demo/boards/main/threads/%.*s/files", STR_ARG(id)).ptr;
	CHECK_STATUS(ask(&s, "PUT", arena_printf(s.arena, "%s/workspace/n.md", base).ptr, NULL, STR("mine")), 201);
	CHECK_STATUS(ask(&s, "PUT", arena_printf(s.arena, "%s/other/n.md", base).ptr, NULL, STR("mine")), 403);
	CHECK_STATUS(ask(&s, "PUT", arena_printf(s.arena, "%s/workspace", base).ptr, NULL, STR("mine")), 400);
	CHECK_STR(get(&s, arena_printf(s.arena, "%s/workspace/n.md", base).ptr).body, STR("mine"));
	CHECK_STATUS(ask(&s, "DELETE", arena_printf(s.arena, "%s/workspace/n.md", base).ptr, NULL, STR_NONE), 204);
}
