/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.yaml, .env and tools.json. The table has a value that is accepted and one that is refused for every key of the
 * schema; a test holds it to be complete, and another holds docs/configuration.md to the schema.
 */
#include <stdio.h>

#include "base/limits.h"
#include "test.h"
#include "text/dotenv.h"
#include "text/schema.h"
#include "workspace/config.h"
#include "workspace/tools_json.h"

/* "NAME" stands for any key of a map. */
static const struct {
	const char *path, *good, *bad;
} keys[] = {
	{"name", "Scout", "\"\""},
	{"description", "\"abc\"", "[1]"},
	{"timezone", "America/Argentina/Buenos_Aires", "Europe/Atlantis"},
	{"durability", "relaxed", "fulx"},
	{"quota", "{}", "\"x\""},
	{"quota.bytes", "10MB", "10 apples"},
	{"quota.files", "5", "-1"},
	{"quota.user", "{}", "\"x\""},
	{"quota.user.bytes", "1MB", "some"},
	{"quota.user.files", "5", "-1"},
	{"history", "{}", "\"x\""},
	{"history.revisions", "1000", "-1"},
	{"history.age_days", "30", "40000"},
	{"history.bytes", "1GiB", "much"},
	{"quota.file_size", "1.5GiB", "-5"},
	{"tools", "{}", "\"x\""},
	{"tools.allow", "[\"read_file\"]", "[\"?\"]"},
	{"tools.deny", "[\"read_file\"]", "[\"?\"]"},
	{"tools.sets", "[\"default\"]", "[\"?\"]"},
	{"builtins", "{}", "\"x\""},
	{"builtins.allow", "[\"read_file\"]", "[\"?\"]"},
	{"builtins.deny", "[\"read_file\"]", "[\"?\"]"},
	{"builtins.NAME", "{}", "{colour: 1}"},
	{"builtins.NAME.enabled", "true", "\"yes\""},
	{"skills", "{}", "\"x\""},
	{"skills.global_dir", "/srv/skills", "skills"},
	{"skills.repositories", "[/srv/a, {url: 's3://b/c', name: team}]", "[{name: team}]"},
	{"skills.auto_promote", "true", "\"yes\""},
	{"skills.security_scan", "false", "\"no\""},
	{"code", "{}", "\"x\""},
	{"code.preload", "[pandas, matplotlib.pyplot]", "['not a module']"},
	{"code.interpreters", "{ruby: [ruby, -e]}", "[ruby]"},
	{"code.interpreters.NAME", "[ruby, -e]", "ruby"},
	{"code.functions", "{double: {code: x}}", "[double]"},
	{"code.functions.NAME", "{code: x}", "{cod: x}"},
	{"code.functions.NAME.type", "CodeRunner", "Other"},
	{"code.functions.NAME.description", "Doubles a number.", "[1]"},
	{"code.functions.NAME.runtime", "node", "[1]"},
	{"code.functions.NAME.code", "x", "\"\""},
	{"code.functions.NAME.input_schema", "[{name: n, type: INTEGER}]", "INTEGER"},
	{"code.functions.NAME.output_schema", "{type: object}", "INTEGER"},
	{"code.functions.NAME.env_variables", "{A: b}", "[A]"},
	{"code.functions.NAME.env_variables.NAME", "b", "[1]"},
	{"code.functions.NAME.timeout_seconds", "5", "0"},
	{"code.functions.NAME.allow_network", "true", "1"},
	{"code.allow_network", "true", "1"},
	{"sandbox", "{}", "\"x\""},
	{"sandbox.tier", "landlock", "none"},
	{"sandbox.image", "debian:12", "\"a b\""},
	{"sandbox.timeout_seconds", "60", "0"},
	{"sandbox.memory", "512MiB", "much"},
	{"sandbox.disk", "1GB", "much"},
	{"sandbox.processes", "10", "0"},
	{"sandbox.max_deletions", "0", "-1"},
	{"sandbox.keep", "session", "always"},
	{"sandbox.snapshot_size", "2GiB", "much"},
	{"sandbox.env", "{LANG: C}", "[LANG]"},
	{"sandbox.env.NAME", "value", "[1]"},
	{"sandbox.network", "[pypi.org, {host: a.test, private: true}]", "[{name: a}]"},
	{"sandbox.network_bytes", "10MB", "much"},
	{"sandbox.network_ca", "/etc/ca.pem", "ca.pem"},
	{"sandbox.secrets", "[{name: KEY, host: a.test, header: 'X: {}'}]", "[{name: KEY}]"},
	{"sandbox.paths", "[/opt/tools]", "[tools]"},
	{"sandbox.exclude", "[node_modules]", "[1]"},
	{"uploads", "{}", "\"x\""},
	{"uploads.max_size", "10MB", "10 apples"},
	{"uploads.converters", "[{match: [.pdf], command: [pdftotext, '{in}', '{out}'], output: txt}]",
	 "[{match: [pdf], command: [x]}]"},
	{"channel", "{}", "\"x\""},
	{"channel.name", "team", "\"a b\""},
	{"channel.type", "telegram", "pigeon"},
	{"channel.token", "abc", "[1]"},
	{"channel.base_url", "\"http://127.0.0.1:1\"", "\"x\""},
	{"browser", "{}", "[1]"},
	{"browser.enabled", "true", "\"yes\""},
	{"browser.program", "/usr/bin/chromium", "chromium"},
	{"browser.timeout_seconds", "1", "0"},
	{"media", "{}", "[1]"},
	{"media.speak", "{}", "[1]"},
	{"media.speak.command", "[espeak-ng, -f, '{in}']", "[]"},
	{"media.speak.format", "ogg", "OGG"},
	{"media.speak.timeout_seconds", "1", "0"},
	{"media.transcribe", "{}", "[1]"},
	{"media.transcribe.command", "[whisper, '{in}']", "[]"},
	{"media.transcribe.timeout_seconds", "1", "0"},
	{"media.pdf", "{}", "[1]"},
	{"media.pdf.command", "[pandoc, '{in}', -o, '{out}']", "[]"},
	{"media.pdf.timeout_seconds", "1", "0"},
	{"channel.webhook_url", "\"https://stead.example.org\"", "\"https://stead.example.org/x\""},
	{"channel.webhook_secret", "abc", "[1]"},
	{"channel.url", "\"http://127.0.0.1:1/in\"", "\"x\""},
	{"channel.secret", "abc", "[1]"},
	{"channel.allowed_users", "[1, '2', ann]", "[\"a b\"]"},
	{"channel.allowed_groups", "[-100, team]", "[\"a:b\"]"},
	{"channel.allow_all", "true", "\"yes\""},
	{"channel.mention_required", "true", "\"yes\""},
	{"channel.triggers", "[butler]", "[1]"},
	{"channel.user_aliases", "{}", "[1]"},
	{"channel.user_aliases.NAME", "Ann", "[1]"},
	{"channel.context_messages", "0", "101"},
	{"channel.channel_log", "{enabled: false}", "true"},
	{"channel.channel_log.enabled", "false", "maybe"},
	{"channel.channel_log.retention_days", "1", "0"},
	{"channels", "[{type: telegram, name: a}]", "[{type: pigeon}]"},
	{"heartbeat.output", "{}", "\"x\""},
	{"heartbeat.output.channel", "team", "[1]"},
	{"heartbeat.output.chat_id", "-5", "[1]"},
	{"heartbeat.output.target_id", "-5", "[1]"},
	{"heartbeat.target_channel", "team", "[1]"},
	{"heartbeat.target_id", "-5", "[1]"},
	{"heartbeat.delivery", "agent", "nobody"},
	{"heartbeat.suppress_ok", "false", "\"no\""},
	{"queue", "{}", "\"x\""},
	{"queue.mode", "steer", "stear"},
	{"queue.debounce_ms", "0", "-1"},
	{"queue.cap", "1", "0"},
	{"queue.drop_policy", "old", "oldest"},
	{"lanes", "{}", "\"x\""},
	{"lanes.main_concurrency", "1", "0"},
	{"lifecycle", "{}", "\"x\""},
	{"lifecycle.notify_startup", "true", "soon"},
	{"lifecycle.notify_shutdown", "true", "1"},
	{"lifecycle.notify_session_ttl", "false", "never"},
	{"session_ttl_minutes", "0", "-1"},
	{"web", "{}", "\"x\""},
	{"web.allow_addresses", "[10.1.0.0/16, '::1']", "[localhost]"},
	{"web.fetch", "{}", "true"},
	{"web.fetch.enabled", "true", "\"yes\""},
	{"web.fetch.timeout_seconds", "30", "0"},
	{"web.search", "{}", "true"},
	{"web.search.provider", "json", "google"},
	{"web.search.url", "\"https://h/?q={query}\"", "\"h\""},
	{"web.search.api_key", "abc", "[1]"},
	{"web.search.key_header", "X-Key", "\"a b\""},
	{"web.search.results", "a.b", "[1]"},
	{"web.search.title", "t", "[1]"},
	{"web.search.link", "l", "[1]"},
	{"web.search.snippet", "s", "[1]"},
	{"web.search.timeout_seconds", "30", "0"},
	{"boards", "{}", "\"x\""},
	{"boards.bytes", "10GB", "10 apples"},
	{"boards.item_bytes", "1MB", "-1"},
	{"boards.item_files", "10", "-1"},
	{"boards.file_size", "1MB", "\"x\""},
	{"boards.mounts", "{}", "[]"},
	{"boards.mounts.NAME", "{url: 'disk:/srv'}", "{ulr: x}"},
	{"boards.mounts.NAME.url", "s3://media", "1"},
	{"boards.mounts.NAME.mode", "rw", "wo"},
	{"disable", "[memory_tools, subagents]", "[session_persistence]"},
	{"plans", "{}", "later"},
	{"plans.directory", "design-docs", "skills"},
	{"plans.per_session", "false", "0"},
	{"notebook", "{}", "[]"},
	{"notebook.keep_last_versions", "3", "-1"},
	{"agents_may_edit", "[USER.md, knowledge]", "[agent.yaml]"},
	{"files_dir", "/srv/project", "project"},
	{"tool_offload", "{}", "\"x\""},
	{"tool_offload.enabled", "true", "\"yes\""},
	{"tool_offload.threshold_tokens", "500", "0"},
	{"tool_offload.threshold_bytes", "4kB", "[4]"},
	{"tool_offload.max_preview_tokens", "150", "-1"},
	{"tool_offload.max_preview_lines", "10", "-1"},
	{"tool_offload.retention_days", "7", "-1"},
	{"prompt", "{}", "\"x\""},
	{"prompt.max_tokens", "16000", "999"},
	{"prompt.context_files", "[\"files/GLOSSARY.md\"]", "[\"\"]"},
	{"prompt.teammates", "[\"researcher\"]", "[\"\"]"},
	{"tool_timeouts", "{}", "\"x\""},
	{"tool_timeouts.default_seconds", "120", "0"},
	{"tool_timeouts.overrides", "{}", "\"x\""},
	{"tool_timeouts.overrides.NAME", "1", "0"},
	{"memory", "{}", "\"x\""},
	{"memory.max_tokens", "2000", "-1"},
	{"memory.ledger_days", "30", "-1"},
	{"embedding", "{url: \"http://127.0.0.1:8080/v1\", model: m}", "{url: \"http://127.0.0.1:8080/v1\"}"},
	{"embedding.url", "\"https://api.example.com/v1\"", "\"?\""},
	{"embedding.model", "\"abc\"", "[1]"},
	{"embedding.api_key", "\"abc\"", "[1]"},
	{"embedding.dimensions", "384", "0"},
	{"embedding.batch", "1", "257"},
	{"embedding.timeout_ms", "600000", "1"},
	{"model", "anthropic:claude-sonnet-4-5", "claude"},
	{"model.provider", "anthropic", "\"?\""},
	{"model.model", "\"openai:x\"", "[1]"},
	{"model.api_key", "\"abc\"", "[1]"},
	{"model.base_url", "\"https://api.example.com/v1\"", "\"?\""},
	{"model.temperature", "0.5", "3"},
	{"model.top_p", "1", "2"},
	{"model.max_tokens", "4096", "0"},
	{"model.context_window", "32000", "10"},
	{"policy", "{}", "\"x\""},
	{"policy.mode", "strict", "loose"},
	{"policy.rules", "[{effect: deny, tool: ls}]", "[{tool: ls}]"},
	{"approval_gates", "{}", "\"x\""},
	{"approval_gates.enabled", "true", "\"yes\""},
	{"approval_gates.timeout_seconds", "120", "0"},
	{"approval_gates.default_action", "approve", "maybe"},
	{"approval_gates.tools", "{}", "\"x\""},
	{"approval_gates.tools.NAME", "{}", "\"x\""},
	{"approval_gates.tools.NAME.require_approval", "false", "\"no\""},
	{"approval_gates.tools.NAME.show_args", "false", "\"no\""},
	{"auto_compact", "{}", "\"x\""},
	{"auto_compact.enabled", "false", "\"no\""},
	{"auto_compact.trigger", "0.5", "2"},
	{"auto_compact.summary_model", "\"openai:x\"", "\"x\""},
	{"model.max_turns", "5", "0"},
	{"model.timeout_seconds", "0.5", "0"},
	{"model.options", "{service_tier: auto}", "[1]"},
	{"model.price", "{input: 3}", "3"},
	{"model.price.input", "3", "-1"},
	{"model.price.output", "15", "-1"},
	{"model.price.cache_read", "0.3", "-1"},
	{"model.price.cache_write", "3.75", "-1"},
	{"model.fallback", "[\"openai:gpt-4.1\", {model: \"ollama:qwen3\"}]", "[gpt]"},
	{"spend", "{max_usd_per_run: 1}", "1"},
	{"spend.max_usd_per_run", "0.5", "0"},
	{"spend.max_usd_per_day", "10", "0"},
	{"spend.max_tokens_per_run", "100000", "0"},
	{"spend.max_tokens_per_day", "1000000", "0"},
	{"subagents", "{max_depth: 2}", "1"},
	{"subagents.enabled", "false", "1"},
	{"subagents.model", "\"openai:gpt-4.1-mini\"", "gpt"},
	{"subagents.max_depth", "3", "4"},
	{"subagents.max_running", "2", "0"},
	{"subagents.max_tasks", "10", "0"},
	{"subagents.max_tokens", "100000", "-1"},
	{"subagents.timeout_seconds", "60", "0"},
	{"heartbeat", "{}", "\"x\""},
	{"heartbeat.enabled", "true", "\"yes\""},
	{"heartbeat.interval_minutes", "30", "0"},
	{"heartbeat.active_hours", "\"08:00-22:00\"", "\"8-22\""},
	{"heartbeat.when", "changed", "never"},
	{"builtins.timestamp", "{}", "\"x\""},
	{"builtins.timestamp.enabled", "true", "\"yes\""},
	{"builtins.docling", "{}", "\"x\""},
	{"builtins.docling.enabled", "false", "\"no\""},
	{"builtins.cron", "{}", "\"x\""},
	{"builtins.cron.enabled", "true", "\"yes\""},
	{"builtins.cron.config", "{}", "\"x\""},
	{"builtins.cron.config.max_tasks", "0", "-1"},
	{"builtins.cron.config.min_interval_seconds", "60", "59"},
	{"builtins.task_tracker", "{}", "\"x\""},
	{"builtins.task_tracker.enabled", "true", "\"yes\""},
	{"builtins.task_tracker.config", "{}", "\"x\""},
	{"builtins.task_tracker.config.stale_hours", "0", "-1"},
	{"builtins.task_tracker.config.max_age_days", "30", "4000"},
};
#define KEYS (sizeof keys / sizeof keys[0])

static int load(struct arena *arena, const char *yaml, struct config *config, struct err *err)
{
	return config_load(arena, str_of(yaml), STR("TOKEN=sk-secret\nUSER_ID=77\n"), STR(""), NULL, config, err);
}

static struct str refusal(struct arena *arena, const char *yaml)
{
	struct config config;
	struct err err = {0};

	if (load(arena, yaml, &config, &err) == 0)
		TEST_FAIL("accepted: %s", yaml);
	return arena_str(arena, str_of(err.msg));
}

/* "a.b" and a value as {a: {b: value}}, with what the object around it cannot do without. */
static const char *document(struct arena *arena, const char *path, const char *value)
{
	struct str rest = str_of(path), key;
	size_t depth = 0;
	struct buf b;

	buf_init(&b, arena, 4096);
	while (str_cut(&rest, '.', &key)) {
		bool in_model = depth == 1 && strncmp(path, "model.", 6) == 0;
		bool in_embedding = depth == 1 && strncmp(path, "embedding.", 10) == 0;

		buf_char(&b, '{');
		depth++;
		if (in_embedding && !str_is(key, "url"))
			buf_lit(&b, "url: \"http://127.0.0.1:8080/v1\", ");
		if ((in_embedding || in_model) && !str_is(key, "model"))
			buf_lit(&b, "model: m, ");
		buf_printf(&b, "%.*s: ", STR_ARG(key));
	}
	buf_add(&b, str_of(value));
	while (depth--)
		buf_char(&b, '}');
	return arena_cstr(arena, buf_str(&b));
}

TEST(every_key_accepts_a_right_value_and_refuses_a_wrong_one)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;

	for (size_t i = 0; i < KEYS; i++) {
		const char *good = document(arena, keys[i].path, keys[i].good);
		struct str first = str_first(str_of(keys[i].path), strcspn(keys[i].path, "."));

		if (load(arena, good, &config, &err) != 0)
			TEST_FAIL("%s is refused: %s", good, err.msg);
		CHECK(jv_get_key(config.document, first) != NULL);
		CHECK_HAS(refusal(arena, document(arena, keys[i].path, keys[i].bad)), STR("agent.yaml line 1"));
	}
}

static const struct jv *schema_of(struct arena *arena)
{
	struct jv *schema;
	struct err err;

	CHECK_OK(jv_parse(arena, config_schema(), &schema, &err), err);
	CHECK_OK(schema_compile(schema, &err), err);
	return schema;
}

static const struct jv *target(const struct jv *root, const struct jv *schema)
{
	struct str ref = jv_get_str(schema, "$ref");

	return ref.ptr ? jv_get_key(jv_get(root, "$defs"), str_from(ref, 8)) : schema;
}

typedef void (*key_visitor)(void *arg, const struct jv *root, struct str path, const struct jv *schema);

/* Visits every key of the schema in order, maps as NAME. Lists of objects only where they are not the single form. */
static void each_key(struct arena *arena, const struct jv *root, const struct jv *at, struct str path,
		     key_visitor visit, void *arg)
{
	const struct jv *schema = target(root, at), *more = jv_get(schema, "additionalProperties");
	struct str dot = path.len ? STR(".") : STR("");

	for (const struct jv_member *m = jv_first(jv_get(schema, "anyOf")); m; m = m->next)
		each_key(arena, root, m->value, path, visit, arg);
	for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next) {
		struct str key = arena_printf(arena, "%.*s%.*s%.*s", STR_ARG(path), STR_ARG(dot), STR_ARG(m->key));

		visit(arg, root, key, m->value);
		each_key(arena, root, m->value, key, visit, arg);
	}
	if (more && more->type == JV_OBJECT) {
		struct str key = arena_printf(arena, "%.*s%.*sNAME", STR_ARG(path), STR_ARG(dot));

		visit(arg, root, key, more);
		each_key(arena, root, more, key, visit, arg);
	}
}

static void must_be_tested(void *arg, const struct jv *root, struct str path, const struct jv *schema)
{
	size_t *count = arg;

	(void)root;
	(void)schema;
	++*count;
	for (size_t i = 0; i < KEYS; i++)
		if (str_is(path, keys[i].path))
			return;
	TEST_FAIL("the key %.*s has no case in the table", STR_ARG(path));
}

TEST(the_table_of_cases_has_every_key_of_the_schema)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct jv *schema = schema_of(arena);
	size_t count = 0;

	each_key(arena, schema, schema, STR(""), must_be_tested, &count);
	CHECK_INT(count, KEYS);
}

/* --- docs/configuration.md --- */

static void write_kind(struct buf *b, const struct jv *root, const struct jv *at)
{
	const struct jv *schema = target(root, at), *list = jv_get(schema, "anyOf");
	const struct jv *low = jv_get(schema, "minimum"), *high = jv_get(schema, "maximum");
	struct str type = jv_get_str(schema, "type");
	size_t n = 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		buf_add(b, n++ ? STR(" or ") : STR(""));
		write_kind(b, root, m->value);
	}
	for (const struct jv_member *m = jv_first(jv_get(schema, "enum")); m; m = m->next)
		buf_printf(b, "%s`%.*s`", n++ ? ", " : "", STR_ARG(jv_str_of(m->value)));
	if (str_is(type, "array")) {
		buf_lit(b, "list of ");
		write_kind(b, root, jv_get(schema, "items"));
	} else if (!list) {
		buf_add(b, str_is(type, "string") && jv_get(schema, "pattern") ? STR("text such as ") : type);
	}
	if (jv_get(schema, "pattern"))
		buf_printf(b, "`%.*s`", STR_ARG(jv_str_of(jv_at(jv_get(schema, "examples"), 0))));
	if (low) {
		buf_lit(b, ", from ");
		jv_write(b, low);
	}
	if (jv_get(schema, "exclusiveMinimum"))
		buf_lit(b, ", above 0");
	if (high) {
		buf_lit(b, " to ");
		jv_write(b, high);
	}
}

static void write_row(void *arg, const struct jv *root, struct str path, const struct jv *schema)
{
	const struct jv *def = jv_get(schema, "default");
	struct buf *b = arg;

	buf_printf(b, "| `%.*s` | ", STR_ARG(path));
	write_kind(b, root, schema);
	buf_lit(b, " | ");
	if (def && def->type == JV_STR)
		buf_printf(b, "`%.*s`", STR_ARG(def->u.s));
	else if (def)
		jv_write(b, def);
	buf_printf(b, " | %.*s%s |\n", STR_ARG(jv_get_str(schema, "description")),
		   jv_get_bool(schema, "writeOnly", false) ? " Never shown." : "");
}

static struct str slurp(struct arena *arena, const char *path)
{
	char *text = arena_alloc(arena, 512 * KIB);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, 512 * KIB, f) : 0;

	if (!f)
		TEST_FAIL("cannot read %s", path);
	fclose(f);
	return str_n(text, n);
}

/* STEAD_UPDATE_GOLDEN=1 writes the table again. */
TEST(the_documentation_has_the_keys_types_and_defaults_of_the_schema)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *source = getenv("STEAD_SOURCE"), *path;
	const struct jv *schema = schema_of(arena);
	size_t from, to;
	struct str text;
	struct buf b;

	CHECK(source != NULL);
	path = arena_printf(arena, "%s/docs/configuration.md", source).ptr;
	text = slurp(arena, path);
	from = str_find(text, STR("<!-- keys -->\n"), 0);
	to = str_find(text, STR("<!-- end of keys -->"), 0);
	CHECK(from != SIZE_MAX && to != SIZE_MAX);
	from += 14;
	buf_init(&b, arena, MIB);
	buf_lit(&b, "| key | type | default | meaning |\n|---|---|---|---|\n");
	each_key(arena, schema, schema, STR(""), write_row, &b);
	if (getenv("STEAD_UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "we");

		CHECK(f != NULL);
		fprintf(f, "%.*s%.*s%.*s", (int)from, text.ptr, (int)b.len, b.ptr, (int)(text.len - to), text.ptr + to);
		fclose(f);
		return;
	}
	if (!str_eq(str_n(text.ptr + from, to - from), buf_str(&b)))
		TEST_FAIL(
			"docs/configuration.md is not what the schema says; run this test with STEAD_UPDATE_GOLDEN=1");
}

/* --- sentences --- */

TEST(a_wrong_line_is_named_with_what_is_expected)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"name: x\nprompt:\n  max_tokens: many\n",
		 "agent.yaml line 3: prompt.max_tokens is \"many\"; expected an integer between 1000 and 50000"},
		{"\n\nqouta: {}\n", "agent.yaml line 3: unknown key \"qouta\"; did you mean \"quota\"?"},
		{"memory:\n  max_token: 1\n", "agent.yaml line 2: unknown key \"memory.max_token\"; did you mean"},
		{"a: 1\na: 2\n", "agent.yaml line 2: the key \"a\" occurs twice"},
		{"tool_offload: {enabled: yes}",
		 "agent.yaml line 1: tool_offload.enabled is \"yes\"; expected true or false"},
		{"x: [", "agent.yaml line"},
		{"just text", "agent.yaml line 1: the whole is \"just text\"; expected an object"},
		{"- a\n- b\n", "agent.yaml line 1: the whole is a list; expected an object"},
		{"timezone: Mars/Olympus", "timezone is \"Mars/Olympus\"; expected a zone of the IANA database"},
		{"timezone: ../../etc/passwd", "expected a string such as \"Europe/Berlin\""},
		{"timezone: Europe", "expected a zone of the IANA database"},
		{"embedding:\n  url: http://x\n", "agent.yaml line 2: \"embedding.model\" is missing"},
		{"name: ${NOT_SET_ANYWHERE}", "agent.yaml line 1: ${NOT_SET_ANYWHERE} is set neither in .env nor"},
		{"quota: {bytes: 999999999999TB}", "quota.bytes is larger than any store"},
		{"name: !!str x", "agent.yaml line 1: the tag"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_HAS(refusal(arena, cases[i][0]), str_of(cases[i][1]));
}

TEST(a_secret_never_gets_into_a_sentence)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;

	CHECK(!strstr(refusal(arena, "prompt: {max_tokens: \"${TOKEN}\"}").ptr, "sk-secret"));
	CHECK(!strstr(refusal(arena, "timezone: ${TOKEN}").ptr, "sk-secret"));
	CHECK(!strstr(refusal(arena, "embedding: {model: m, url: \"${TOKEN} \"}").ptr, "sk-secret"));
	CHECK_ERR(config_load(arena, STR(""), STR("A=1\nsk-secret\n"), STR(""), NULL, &config, &err), err, ERR_INVALID);
	CHECK_STR(str_of(err.msg), STR(".env line 2: expected NAME=value, where NAME has letters, digits and '_'"));
}

TEST(variables_are_filled_in_after_parsing)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;
	struct str vars = STR("EVIL='x\", deny: [ls], y: \"'\nID=77\n");

	CHECK_OK(config_load(arena, STR("name: \"${EVIL}\"\nprompt: {teammates: [\"${ID}\"]}\n"), vars, STR(""), NULL,
			     &config, &err),
		 err);
	CHECK_STR(config.name, STR("x\", deny: [ls], y: \""));
	CHECK(config.tools_deny == NULL);
	CHECK_STR(jv_str_of(jv_at(config.teammates, 0)), STR("77"));
}

TEST(a_key_that_nothing_acts_on_is_refused_with_what_to_use)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"name: x\nworkspace_config: {backend: s3}\n", "agent.yaml line 2: nothing in this version of Stead "
							       "acts on \"workspace_config\"; remove it; say where "
							       "workspaces are stored"},
		{"memory:\n  max_tokens: 1\n  enabled: true\n", "agent.yaml line 3: nothing in this version of Stead "
								"acts on \"memory.enabled\"; remove it; search by"},
		{"builtins: {brave_search: {api_key: x}}", "unknown key \"builtins.brave_search.api_key\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK_HAS(refusal(arena, cases[i][0]), str_of(cases[i][1]));
}

TEST(an_empty_configuration_has_the_defaults)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;

	CHECK_OK(config_load(arena, STR_NONE, STR_NONE, STR_NONE, NULL, &config, &err), err);
	CHECK_STR(config.timezone, STR("UTC"));
	CHECK(!config.relaxed && !config.tools_allow && !config.tools_deny);
	CHECK_INT(config.quota.bytes + config.quota.files + config.quota.file_size, 0);
}

TEST(sizes_are_read_with_their_units)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{"0", 0},
		{"1024", 1024},
		{"10MB", 10000000},
		{"10 MB", 10000000},
		{"10MiB", 10485760},
		{"1.5k", 1500},
		{"2G", 2000000000},
		{"1TiB", 1099511627776},
		{"\"7\"", 7},
		{"7B", 7},
		{"3gib", 3221225472},
	};
	struct config config;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_OK(load(arena, document(arena, "quota.bytes", cases[i].text), &config, &err), err);
		CHECK_INT(config.quota.bytes, cases[i].want);
	}
}

TEST(the_example_of_a_whole_configuration_is_accepted)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;

	CHECK_OK(load(arena,
		      "name: Scout\ndescription: Looks after things\ntimezone: America/Denver\nbuiltins:\n"
		      "  allow: []\n  deny:\n    - elevenlabs\n  shell: {enabled: false}\n  plan: {enabled: true}\n"
		      "embedding: {url: \"http://127.0.0.1:1/v1\", model: m, api_key: \"${TOKEN}\"}\n"
		      "durability: relaxed\n",
		      &config, &err),
		 err);
	CHECK(config.relaxed);
	CHECK_STR(config.name, STR("Scout"));
	CHECK_INT(jv_count(config.tools_deny), 2);
	CHECK_STR(jv_str_of(jv_at(config.tools_deny, 1)), STR("shell"));
}

/* --- tools.json --- */

static int load_tools(struct arena *arena, const char *tools, struct config *config, struct err *err)
{
	return config_load(arena, STR("tools: {deny: [clear_files]}"), STR(""), str_of(tools), NULL, config, err);
}

TEST(tools_json_may_have_comments_and_trailing_commas)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct config config;
	struct err err;

	CHECK_ERR(load_tools(arena,
			     "// which tools\n{\n  \"allow\": [\"ls\", /* all\n of */ \"re//ad*/\" , ],\n"
			     "  \"deny\": [\"grep\"], // \"not this\"\n}\n",
			     &config, &err),
		  err, ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("allow[1] is \"re//ad*/\""));
	CHECK_OK(load_tools(arena, "/* a */{\"allow\": [\"ls\", \"read_file\",], // x\n\"deny\": [\"grep\",],}",
			    &config, &err),
		 err);
	CHECK_INT(jv_count(config.tools_allow), 2);
	CHECK_INT(jv_count(config.tools_deny), 2);
}

TEST(a_broken_tools_json_is_an_error_with_its_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"{\n// c\n\"deny\": [\"a\"\n", "tools.json: not JSON, line"},
		{"{\"deny\": [,]}", "tools.json: not JSON"},
		{"{\"deny\": [\"a\",,]}", "tools.json: not JSON"},
		{"{\"dney\": []}", "tools.json line 1: unknown key \"dney\"; did you mean \"deny\"?"},
		{"{\"deny\": \"a\"}", "tools.json line 1: deny is \"a\"; expected a list"},
		{"{\"mcpServers\": {\"x\": {}}}", "mcpServers.x needs either a \"command\" or a \"url\""},
		{"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"url\": \"https://b\"}}}", "needs either"},
		{"{\"mcpServers\": {\"x\": {\"command\": \"${NOT_SET_ANYWHERE}\"}}}",
		 "${NOT_SET_ANYWHERE} is set neither"},
		{"{} /* open", "tools.json: not JSON"},
		{"[]", "the whole is a list"},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"timeout\": \"soon\"}}}", "such as \"PT30S\""},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"timeout\": \"PT\"}}}", "such as \"PT30S\""},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"timeout\": \"PT0S\"}}}", "such as \"PT30S\""},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"timeout\": \"P99D\"}}}", "such as \"PT30S\""},
		{"{\n\"mcpServers\": {\n\"x\": {\"transport\": \"pigeon\", \"url\": \"https://b\"}}}", "line 3"},
		{"{\n\"mcpServers\": {\n\"x\": {\"transport\": \"stdio\", \"url\": \"https://b\"}}}",
		 "line 3: mcpServers.x is reached by stdio and has no \"command\""},
		{"{\"mcpServers\": {\"x\": {\"transport\": \"sse\", \"type\": \"http\", \"url\": \"https://b\"}}}",
		 "has two transports"},
		{"{\"mcpServers\": {\"../x\": {\"url\": \"https://b\"}}}", "is not a valid name for a server"},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"headers\": {\"A\": \"b\\r\\nC: d\"}}}}",
		 "has a line break"},
		{"{\"mcpServers\": {\"x\": {\"url\": \"https://b\", \"headers\": {\"A b\": \"c\"}}}}",
		 "has an invalid name in"},
		{"{\"mcpServers\": {\"x\": {\"command\": \"c\", \"env\": {\"A=B\": \"c\"}}}}",
		 "has an invalid name in"},
	};
	struct config config;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_ERR(load_tools(arena, cases[i][0], &config, &err), err, ERR_INVALID);
		CHECK_HAS(str_of(err.msg), str_of(cases[i][1]));
	}
}

TEST(servers_of_tools_json_come_in_one_form)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct jv *x, *servers;
	struct jv *vars, *tools;
	struct err err;

	CHECK_OK(dotenv_parse(arena, STR("TOKEN=a\"b\n"), &vars, &err), err);
	CHECK_OK(tools_json_read(
			 arena,
			 STR("{\"mcpServers\": {\n"
			     "\"a\": {\"transport\": \"Streamable-HTTP\", \"url\": \"https://h/mcp\", \"timeout\": "
			     "\"pt1m0.5s\", \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"}, \"queryParams\": "
			     "{\"k\": \"v\"}, \"enableTools\": [\"x\"],},\n"
			     "\"b\": {\"type\": \"STDIO\", \"command\": \"srv\", \"initializationTimeout\": 2.5},\n"
			     "\"c\": {\"transport\": \"SSE\", \"url\": \"http://h\", \"timeout\": \"P1DT1H\"}}}"),
			 vars, &tools, &err),
		 err);
	servers = jv_get(tools, "mcpServers");
	x = jv_get(servers, "a");
	CHECK_STR(jv_get_str(x, "transport"), STR("http"));
	CHECK_INT(jv_get_int(x, "timeout_ms", 0), 60500);
	CHECK_INT(jv_get_int(x, "initialization_timeout_ms", 0), 30000);
	CHECK_STR(jv_get_str(jv_get(x, "headers"), "Authorization"), STR("Bearer a\"b"));
	x = jv_get(servers, "b");
	CHECK_STR(jv_get_str(x, "transport"), STR("stdio"));
	CHECK_INT(jv_get_int(x, "initialization_timeout_ms", 0), 2500);
	CHECK(!jv_get_bool(x, "disabled", true));
	CHECK_INT(jv_get_int(jv_get(servers, "c"), "timeout_ms", 0), 90000000);
}
