/* SPDX-License-Identifier: Apache-2.0 */
/* The agent in the library: turns, tools of the program, and names that are taken. */
#include <stdlib.h>

#include "lib/lib_fix.h"
#include "temp_dir.h"

static const char schema[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],"
			     "\"additionalProperties\":false}";

/* "replay:FILE" with a model that calls `tool` and then answers. */
static const char *model_that_calls(const char *tool)
{
	static char model[512];
	char *path = model + strlen("replay:");
	FILE *f;

	snprintf(model, sizeof model, "replay:%s/answers", temp_dir_new());
	f = fopen(path, "we");
	CHECK(f != NULL);
	fprintf(f,
		"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\","
		"\"name\":\"%s\","
		"\"input\":{\"a\":4}}]}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"done\"}\n",
		tool);
	CHECK_INT(fclose(f), 0);
	return model;
}

static int square(void *arg, const char *arguments, char **ret_text)
{
	int *calls = arg, a = 0;

	++*calls;
	if (sscanf(arguments, "{\"a\":%d}", &a) != 1)
		return -1;
	*ret_text = malloc(32);
	return !*ret_text || snprintf(*ret_text, 32, "%d", a * a) < 0;
}

static void take_event(void *arg, const char *json)
{
	if (strstr(json, "\"event\":\"result\"") && strstr(json, "16"))
		++*(int *)arg;
}

TEST(a_tool_of_the_program_is_called_by_the_agent)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	int calls = 0, results = 0;
	struct stead_tool tool = {.size = sizeof tool,
				  .name = "square",
				  .description = "Squares.",
				  .input_schema = schema,
				  .call = square,
				  .arg = &calls};
	struct stead_agent_options options = {
		.size = sizeof options, .model = model_that_calls("square"), .tools = &tool, .tool_count = 1};
	struct stead_turn turn = {
		.size = sizeof turn, .session = "s", .text = "Go", .event = take_event, .arg = &results};
	struct stead_agent *agent;
	char *answer = NULL, *json = NULL;

	CHECK_DONE(stead_agent_open(stead, &options, &agent, &error), error);
	CHECK_DONE(stead_agent_run(agent, NULL, &turn, &answer, &json, &error), error);
	CHECK_STR(str_of(answer), STR("done"));
	CHECK_HAS(str_of(json), STR("\"output\":\"16\""));
	CHECK_INT(calls, 1);
	CHECK_INT(results, 1);
	stead_free(answer);
	stead_free(json);
	stead_agent_close(agent);
	stead_close(stead);
}

TEST(names_of_the_workspace_are_reserved_and_all_are_named)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	struct stead_tool tools[2] = {{.size = sizeof tools[0],
				       .name = "read_file",
				       .description = "x",
				       .input_schema = schema,
				       .call = square},
				      {.size = sizeof tools[1],
				       .name = "spawn_agent",
				       .description = "x",
				       .input_schema = schema,
				       .call = square}};
	struct stead_agent_options options = {
		.size = sizeof options, .model = model_that_calls("x"), .tools = tools, .tool_count = 2};
	struct stead_agent *agent;

	CHECK_INT(stead_agent_open(stead, &options, &agent, &error), STEAD_EXISTS);
	CHECK_HAS(str_of(error.message), STR("read_file, spawn_agent"));
	stead_close(stead);
}

TEST(a_tool_whose_name_no_provider_takes_is_refused)
{
	struct stead *stead = open_memory();
	struct stead_error error = {0};
	struct stead_tool tool = {
		.size = sizeof tool, .name = "square root", .description = "x", .input_schema = schema, .call = square};
	struct stead_agent_options options = {
		.size = sizeof options, .model = model_that_calls("x"), .tools = &tool, .tool_count = 1};
	struct stead_agent *agent;

	CHECK_INT(stead_agent_open(stead, &options, &agent, &error), STEAD_INVALID);
	CHECK_HAS(str_of(error.message), STR("the name of the tool \"square root\" is not 1 to 64 letters"));
	stead_close(stead);
}
