/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of commands and secrets as capabilities, with real programs inside (curl, python3) and real servers on
 * loopback outside. A rule "plain.test=127.0.0.1:PORT" puts a name at one of them.
 */
#include "sandbox_fix.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "sandbox/net_internal.h"

#define SECRET "s3cr3t/value+of=the key"

struct servers {
	const char *dir;
	pid_t pid;
	int stdin_fd;
	int http, https, strange, first, echo;
};
static struct servers servers;

static void servers_end(void)
{
	close(servers.stdin_fd);
	waitpid(servers.pid, NULL, 0);
	temp_dir_remove((char *)servers.dir);
}

static const char *servers_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = NULL;

	CHECK(asprintf(&dir, "%s/stead-test-XXXXXX", tmp ? tmp : "/tmp") > 0 && mkdtemp(dir));
	return dir;
}

/* One set for all tests; it ends when this program does. */
static void servers_start(void)
{
	int in[2], out[2];
	FILE *ports;

	if (servers.pid)
		return;
	CHECK(getenv("STEAD_NET_SERVER") && getenv("STEAD_NET_CLIENT"));
	servers.dir = servers_dir();
	CHECK(servers.dir && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	fflush(stdout);
	servers.pid = fork();
	if (servers.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("python3", "python3", getenv("STEAD_NET_SERVER"), servers.dir, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	servers.stdin_fd = in[1];
	ports = fdopen(out[0], "r");
	CHECK(ports && fscanf(ports, "%d %d %d %d %d", &servers.http, &servers.https, &servers.strange, &servers.first,
			      &servers.echo) == 5);
	fclose(ports);
	atexit(servers_end);
}

/* What the HTTP servers were asked since the last call. */
static struct str asked(struct box *b)
{
	static off_t from;
	char *bytes = arena_alloc(b->arena, 4 * MIB);
	int fd = open(arena_printf(b->arena, "%s/requests.log", servers.dir).ptr, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : pread(fd, bytes, 4 * MIB, from);

	if (fd >= 0)
		close(fd);
	from += n;
	return str_n(bytes, (size_t)n);
}

static struct sandbox_net net;
static struct sandbox_host hosts[SANDBOX_HOSTS_MAX];
static struct sandbox_secret secret;

static void put_client(struct box *b)
{
	FILE *f = fopen(getenv("STEAD_NET_CLIENT"), "r");
	char *text = arena_alloc(b->arena, 64 * KIB);

	CHECK(f && fread(text, 1, 64 * KIB - 1, f) > 0);
	fclose(f);
	put(b, "client.py", text);
}

static void allow(struct box *b, const char *rules)
{
	CHECK_OK(sandbox_hosts_parse(b->arena, str_of(rules), hosts, &net.host_count, &b->err), b->err);
}

/* plain.test at the HTTP and HTTPS servers. */
static void net_init(struct box *b)
{
	servers_start();
	box_on_memory(b, SANDBOX_NAMESPACES);
	put_client(b);
	net = (struct sandbox_net){.hosts = hosts, .ca_file = arena_printf(b->arena, "%s/ca.pem", servers.dir).ptr};
	allow(b, arena_printf(b->arena, "plain.test:80=127.0.0.1:%d,plain.test:443=127.0.0.1:%d", servers.http,
			      servers.https)
			 .ptr);
	b->job.net = &net;
	(void)asked(b);
}

/* api.test too, which gets the secret. */
static void secret_init(struct box *b, const char *header, const char *query)
{
	net_init(b);
	allow(b,
	      arena_printf(b->arena, "api.test:80=127.0.0.1:%d,api.test:443=127.0.0.1:%d", servers.http, servers.https)
		      .ptr);
	secret = (struct sandbox_secret){.name = STR("API_KEY"),
					 .value = STR(SECRET),
					 .host = STR("api.test"),
					 .header = str_of(header),
					 .query = str_of(query)};
	net.secrets = &secret;
	net.secret_count = 1;
}

/* A connection of the log, as "outcome reason"; "none": there is none. */
static struct str logged(struct box *b, const char *host)
{
	for (size_t i = 0; i < b->result.connection_count; i++)
		if (str_is(b->result.connections[i].host, host))
			return arena_printf(b->arena, "%s %.*s",
					    sandbox_net_outcome_name(b->result.connections[i].outcome),
					    STR_ARG(b->result.connections[i].reason));
	return STR("none");
}

static size_t entries_of(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* --- rules --- */

TEST(a_rule_names_a_host_a_pattern_or_an_address)
{
	struct arena *arena = arena_new();
	struct sandbox_host h;
	struct err err;

	test_defer(arena_destroy, arena);
	CHECK_OK(sandbox_host_parse(arena, STR("PyPI.org."), &h, &err), err);
	CHECK_STR(h.name, STR("pypi.org"));
	CHECK_OK(sandbox_host_parse(arena, STR("*.Example.com:8443"), &h, &err), err);
	CHECK(h.is_wild && h.port == 8443);
	CHECK_OK(sandbox_host_parse(arena, STR("192.0.2.7:22"), &h, &err), err);
	CHECK(h.literal == 0xC0000207 && h.port == 22);
	CHECK_OK(sandbox_host_parse(arena, STR("a.test=[::1]:80"), &h, &err), err);
	CHECK_STR(h.address, STR("::1"));
	CHECK_INT(h.address_port, 80);
}

TEST(what_is_not_a_host_is_refused)
{
	static const char *const bad[] = {"",           "a b",      "http://a.test", "a.test:0", "a.test:70000",
					  "*.",         "a.*.test", "a..test",       "[::1]",    "a.test=b",
					  "127.77.0.1", "-\xC3\xA4"};
	struct arena *arena = arena_new();
	struct sandbox_host h;
	struct err err;

	test_defer(arena_destroy, arena);
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK_INT(sandbox_host_parse(arena, str_of(bad[i]), &h, &err), -ERR_INVALID);
}

TEST(a_pattern_allows_names_below_it_and_no_others)
{
	static struct box b;
	static const char *const no[] = {"example.com", "xexample.com", "a.example.com.evil.test",
					 "example.com.evil.test"};

	box_init(&b, SANDBOX_AUTO);
	net = (struct sandbox_net){.hosts = hosts};
	allow(&b, "*.example.com");
	CHECK(net_allows_name(&net, STR("a.example.com")) && net_allows_name(&net, STR("a.b.example.com")));
	for (size_t i = 0; i < COUNT(no); i++)
		CHECK(!net_allows_name(&net, str_of(no[i])));
	CHECK(net_find_host(&net, STR("a.example.com"), 0, 443) && !net_find_host(&net, STR("a.example.com"), 0, 8443));
}

/* --- what is allowed works --- */

TEST(curl_and_python_reach_an_allowed_host)
{
	static struct box b;

	net_init(&b);
	run(&b, "curl -sS http://plain.test/ https://plain.test/ && python3 -c \"import urllib.request as u; "
		"print(u.urlopen('http://plain.test/').read(), u.urlopen('https://plain.test/').read())\"");
	CHECK_STR(b.result.said.text, STR(""));
	CHECK_STR(b.result.out.text, STR("hello\nhello\nb'hello\\n' b'hello\\n'\n"));
	CHECK_STARTS(logged(&b, "plain.test"), STR("ended"));
	CHECK(b.result.connections[0].sent > 0 && b.result.connections[0].received > 0);
}

TEST(bodies_come_and_go_whole)
{
	static struct box b;

	net_init(&b);
	run(&b, "head -c 3000000 /dev/zero >big; curl -sS --data-binary @big http://plain.test/upload; echo; "
		"curl -sS -H 'Transfer-Encoding: chunked' --data-binary @big http://plain.test/upload; rm big; echo; "
		"curl -sS http://plain.test/chunks http://plain.test/end http://plain.test/ | grep -c HTTP; "
		"curl -sSI http://plain.test/ | head -1");
	CHECK_STR(b.result.out.text, STR("3000000 bytes\n3000000 bytes\n2\nHTTP/1.1 200 OK\n"));
}

TEST(a_wild_name_and_an_address_that_rules_name_are_reached)
{
	static struct box b;

	net_init(&b);
	allow(&b, arena_printf(b.arena, "*.wild.test=127.0.0.1:%d,127.0.0.1:%d,192.0.2.9=127.0.0.1:%d", servers.http,
			       servers.http, servers.http)
			  .ptr);
	run(&b,
	    arena_printf(b.arena,
			 "curl -sS http://a.b.wild.test/; curl -sS http://127.0.0.1:%d/; curl -sS http://192.0.2.9/",
			 servers.http)
		    .ptr);
	CHECK_STR(b.result.out.text, STR("hello\nhello\nhello\n"));
}

TEST(other_protocols_pass_on_other_ports)
{
	static struct box b;

	net_init(&b);
	allow(&b, arena_printf(b.arena, "plain.test:%d=127.0.0.1,plain.test:%d=127.0.0.1", servers.first, servers.echo)
			  .ptr);
	run(&b, arena_printf(b.arena, "python3 client.py speaks_first %d; python3 client.py half_closed %d",
			     servers.first, servers.echo)
			.ptr);
	CHECK_STR(b.result.out.text, STR("b'220 I speak first\\r\\n' b'you said hi'\ngot 300000\n"));
}

TEST(requests_after_each_other_and_web_sockets_work)
{
	static struct box b;

	net_init(&b);
	run(&b,
	    "python3 client.py pipelined; curl -sS http://plain.test/upgrade -H 'Upgrade: websocket' -H 'Connection: "
	    "Upgrade'");
	CHECK_HAS(asked(&b), STR("GET /two"));
	CHECK_ENDS(b.result.out.text, STR("raw"));
}

/* --- what is not allowed --- */

TEST(a_name_that_is_not_allowed_does_not_exist)
{
	static struct box b;

	net_init(&b);
	run(&b, "python3 client.py ask_names");
	CHECK_STR(b.result.out.text, STR("(0, '127.77.0.1') (0, '127.77.0.1') (0, None) (3, None) (3, None) (3, None) "
					 "(3, None)\n"));
	CHECK_STARTS(logged(&b, "other.test"), STR("refused the name is not allowed"));
}

TEST(an_address_or_another_port_cannot_be_dialled)
{
	static struct box b;

	net_init(&b);
	run(&b, arena_printf(b.arena, "python3 client.py direct %d", servers.http).ptr);
	CHECK_LACKS(b.result.out.text, STR("hello"));
	CHECK_STR(asked(&b), STR(""));
	CHECK_STARTS(logged(&b, "127.77.0.9"), STR("refused 127.77.0.9:80 is not allowed"));
}

TEST(a_name_that_leads_to_a_private_address_is_refused)
{
	static struct box b;

	net_init(&b);
	allow(&b, arena_printf(b.arena, "127.1:%d", servers.http).ptr);
	run(&b, arena_printf(b.arena,
			     "python3 -c \"exec(open('client.py').read().split('globals()[')[0]); "
			     "print(attempt(talk, (dns('127.1')[1], %d), b'GET / HTTP/1.0\\r\\n\\r\\n'))\"",
			     servers.http)
			.ptr);
	CHECK_LACKS(b.result.out.text, STR("hello"));
	CHECK_STR(asked(&b), STR(""));
	CHECK_STARTS(logged(&b, "127.1"), STR("refused 127.1 leads to an address that is not public"));
}

TEST(no_other_family_or_protocol_leads_outside)
{
	static struct box b;

	net_init(&b);
	run(&b, "python3 client.py families");
	CHECK_LACKS(b.result.out.text, STR("open"));
	CHECK_HAS(b.result.out.text, STR("link"));
}

TEST(tls_for_another_server_is_refused)
{
	static struct box b;

	net_init(&b);
	run(&b,
	    "for n in other.test '' plain.test.evil.test sub.plain.test plain.test; do python3 client.py server_name "
	    "\"$n\"; done");
	CHECK_INT((int)str_find(b.result.out.text, STR("open"), 0),
		  (int)str_rfind_char(str_first(b.result.out.text, str_find(b.result.out.text, STR("open"), 0)), '\n') +
			  1);
	CHECK_STARTS(b.result.out.text, STR("refused "));
	CHECK_INT((int)b.result.connection_count, 5);
	CHECK_STARTS(logged(&b, "plain.test"), STR("refused TLS asks for the server"));
}

TEST(a_request_for_another_host_is_refused)
{
	static struct box b;

	net_init(&b);
	run(&b, "python3 client.py hosts");
	CHECK_LACKS(b.result.out.text, STR("hello"));
	CHECK_STR(asked(&b), STR(""));
	CHECK_INT((int)b.result.connection_count, 12);
}

TEST(no_request_hides_in_another)
{
	static struct box b;
	struct str seen;

	net_init(&b);
	run(&b, "python3 client.py smuggle");
	seen = asked(&b);
	CHECK_LACKS(seen, STR("hidden"));
	CHECK_HAS(seen, STR("GET /g"));
	CHECK_LACKS(seen, STR("h2c"));
	CHECK_HAS(seen, STR("GET /h"));
	CHECK_LACKS(seen, STR("POST /a"));
}

TEST(a_head_that_is_too_large_or_too_slow_ends)
{
	static struct box b;

	net_init(&b);
	net.head_ms = 300;
	run(&b, "python3 client.py huge; python3 client.py slow");
	CHECK_HAS(b.result.out.text, STR("400 Bad Request"));
	CHECK_LACKS(b.result.out.text, STR("hello"));
	CHECK_STR(asked(&b), STR(""));
}

TEST(the_bytes_of_all_connections_are_limited)
{
	static struct box b;

	net_init(&b);
	net.bytes_max = 200000;
	run(&b,
	    "head -c 100000 /dev/zero >big; for i in 1 2 3 4; do curl -sS --data-binary @big http://plain.test/upload; "
	    "done; rm big");
	CHECK_HAS(b.result.out.text, STR("100000 bytes"));
	CHECK_LACKS(b.result.out.text, STR("100000 bytes100000 bytes"));
	CHECK_HAS(logged(&b, "plain.test"), STR("ended"));
}

TEST(nothing_is_left_when_the_command_has_ended)
{
	static struct box b;
	size_t fds, threads;

	net_init(&b);
	run(&b, "true");
	fds = entries_of("/proc/self/fd");
	run(&b, "python3 client.py many 30");
	CHECK_STR(b.result.out.text, STR("30\n"));
	CHECK_INT((int)b.result.connection_count, 30);
	CHECK_INT((int)entries_of("/proc/self/fd"), (int)fds);
	for (int i = 0; i < 1000 && (threads = entries_of("/proc/self/task")) > 3; i++)
		sched_yield(); /* a thread that has given everything back may still be ending */
	CHECK_INT((int)threads, 3);
}

TEST(an_empty_list_allows_nothing)
{
	static struct box b;

	net_init(&b);
	net.host_count = 0;
	run(&b, "curl -sS http://plain.test/");
	CHECK_INT(b.result.exit_code, 6);
}

TEST(a_tier_that_cannot_limit_the_network_refuses_it)
{
	static struct box b;
	const char *argv[] = {"true", NULL};

	net_init(&b);
	b.job.argv = argv;
	b.job.tier = SANDBOX_LOCAL;
	CHECK_INT(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), -ERR_UNSUPPORTED);
}

/* --- secrets --- */

TEST(a_request_gets_the_header_with_the_secret)
{
	static struct box b;

	secret_init(&b, "Authorization: Bearer {}", "");
	run(&b, "curl -sS https://api.test/ -H 'Authorization: mine' -H 'Range: bytes=0-3' --compressed");
	CHECK_STR(b.result.out.text, STR("hello\n"));
	CHECK_HAS(asked(&b), STR("Authorization: Bearer " SECRET "\r\n"));
}

TEST(what_would_hide_an_answer_is_not_asked_for)
{
	static struct box b;
	struct str seen;

	secret_init(&b, "Authorization: Bearer {}", "");
	run(&b, "curl -sS https://api.test/ -H 'Authorization: mine' -H 'Range: bytes=0-3' --compressed; "
		"curl -sS https://api.test/gzip");
	seen = asked(&b);
	CHECK_LACKS(seen, STR("mine"));
	CHECK_LACKS(seen, STR("Range"));
	CHECK_LACKS(seen, STR("gzip\r\n"));
	CHECK_HAS(seen, STR("Accept-Encoding: identity"));
	CHECK_HAS(b.result.out.text, STR("the answer is compressed"));
}

TEST(a_placeholder_is_replaced_in_headers_and_in_the_query)
{
	static struct box b;
	struct str seen;

	secret_init(&b, "", "");
	run(&b,
	    "curl -sS https://api.test/one -H \"X-Key: $API_KEY\"; curl -sS https://api.test/two -u \"me:$API_KEY\"; "
	    "curl -sS \"https://api.test/three?a=1&k=$API_KEY\"");
	seen = asked(&b);
	CHECK_HAS(seen, STR("X-Key: " SECRET "\r\n"));
	CHECK_HAS(seen, STR("Basic bWU6czNjcjN0L3ZhbHVlK29mPXRoZSBrZXk=\r\n"));
	CHECK_HAS(seen, STR("GET /three?a=1&k=s3cr3t%2Fvalue%2Bof%3Dthe%20key HTTP"));
}

TEST(a_parameter_of_the_query_is_set)
{
	static struct box b;

	secret_init(&b, "", "key");
	run(&b, "curl -sS 'https://api.test/x?key=mine&a=1&key'");
	CHECK_HAS(asked(&b), STR("GET /x?a=1&key=s3cr3t%2Fvalue%2Bof%3Dthe%20key HTTP"));
}

TEST(an_answer_that_repeats_the_secret_has_it_masked)
{
	static struct box b;

	secret_init(&b, "", "");
	run(&b, "for p in echo chunks end; do curl -sSi \"https://api.test/$p?k=$API_KEY\" -H \"X-Key: $API_KEY\" "
		"-u \"me:$API_KEY\" -H \"X-A: Basic $(printf m:$API_KEY | base64 -w0)\" -H \"X-B: Basic $(printf "
		"mee:$API_KEY | "
		"base64 -w0)\"; done; curl -sSi -X TRACE https://api.test/echo -H \"X-Key: $API_KEY\" | head -1");
	CHECK_LACKS(b.result.out.text, STR("s3cr3t"));
	CHECK_LACKS(b.result.out.text, STR("czNjcjN0")); /* in base64, at each of three places */
	CHECK_LACKS(b.result.out.text, STR("MzY3IzdC"));
	CHECK_LACKS(b.result.out.text, STR("M2NyM3Qv"));
	CHECK_HAS(b.result.out.text, STR("X-Key: ***********************\n"));
	CHECK_HAS(b.result.out.text, STR("X-Echo: /echo?k=***"));
	CHECK_HAS(b.result.out.text, STR("403 Forbidden"));
}

TEST(another_host_never_gets_the_secret)
{
	static struct box b;
	struct str seen;

	secret_init(&b, "", "");
	run(&b,
	    "curl -sSL \"https://api.test/redirect?k=$API_KEY\" -H \"X-Key: $API_KEY\"; "
	    "curl -sS https://plain.test/ -H \"X-Key: $API_KEY\"; curl -sS http://plain.test/ -H \"X-Key: $API_KEY\"");
	seen = asked(&b);
	CHECK_HAS(seen, STR("Host: plain.test"));
	seen = str_from(seen, str_find(seen, STR("Host: plain.test"), 0));
	CHECK_LACKS(seen, STR("s3cr3t"));
	CHECK_HAS(seen, STR("X-Key: stead-secret-"));
	CHECK_LACKS(b.result.out.text, STR("s3cr3t"));
}

TEST(the_secret_is_not_sent_without_tls_unless_that_is_allowed)
{
	static struct box b;

	secret_init(&b, "X-Key: {}", "");
	run(&b, "curl -sS http://api.test/");
	CHECK_HAS(b.result.out.text, STR("not sent without TLS"));
	CHECK_STR(asked(&b), STR(""));
	secret.plain_http = true;
	run(&b, "curl -sS http://api.test/echo");
	CHECK_HAS(asked(&b), STR("X-Key: " SECRET));
	CHECK_LACKS(b.result.out.text, STR("s3cr3t"));
}

TEST(a_server_that_is_not_trusted_is_asked_nothing)
{
	static struct box b;

	secret_init(&b, "X-Key: {}", "");
	allow(&b, arena_printf(b.arena, "strange.test=127.0.0.1:%d", servers.strange).ptr);
	secret.host = STR("strange.test");
	run(&b, "curl -sSk https://strange.test/");
	CHECK(b.result.exit_code != 0);
	CHECK_STR(asked(&b), STR(""));
	CHECK_HAS(logged(&b, "strange.test"), STR("the server's certificate is not trusted"));
}

TEST(the_secret_is_nowhere_that_the_command_can_look)
{
	static const char *const env[] = {"API_KEY=" SECRET, NULL};
	static struct box b;

	secret_init(&b, "X-Key: {}", "");
	b.job.env = env; /* even where a caller has put it into the environment */
	run(&b, "curl -sSv https://api.test/echo 2>&1; python3 client.py look_around; env; set; kill -SEGV $$");
	CHECK_LACKS(b.result.out.text, STR("s3cr3t"));
	CHECK_LACKS(b.result.said.text, STR("s3cr3t"));
	CHECK_HAS(b.result.out.text, STR("API_KEY=stead-secret-"));
	CHECK_LACKS(content(&b, "copy.txt"), STR("s3cr3t"));
	CHECK_HAS(content(&b, "copy.txt"), STR("stead-secret-"));
	for (size_t i = 0; i < b.result.connection_count; i++)
		CHECK_LACKS(b.result.connections[i].reason, STR("s3cr3t"));
}

TEST(a_secret_that_cannot_be_a_header_is_refused)
{
	static struct box b;
	const char *argv[] = {"true", NULL};

	secret_init(&b, "X-Key: {}", "");
	b.job.argv = argv;
	secret.value = STR("two\r\nlines of it");
	CHECK_INT(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), -ERR_INVALID);
	CHECK(!err_mentions(&b.err, "lines of it"));
}
