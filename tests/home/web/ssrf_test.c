/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a URL cannot make web_fetch connect to. Listeners on loopback count connections. The facts about names run in a
 * network of their own, with a name server of the test, a public address on its loopback interface, and no way out.
 */
#include "stub_server.h"
#include "tool/tool_fix.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "net/dns.h"

#define PUBLIC  "93.184.215.14"
#define FETCHES "web: {fetch: {enabled: true, timeout_seconds: 5}}\n"

static void open_with(struct bench *b, const char *yaml)
{
	struct err err = {0};

	bench_open_disk(b, "native");
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

/* Fetches `url`, in which a '*' stands for the port. */
static const struct jv *fetch(struct bench *b, const char *url, uint16_t port)
{
	struct jv *args = jv_object(b->arena);
	struct buf text;

	buf_init(&text, b->arena, KIB);
	for (const char *p = url; *p; p++)
		if (*p == '*')
			buf_u64(&text, port);
		else
			buf_char(&text, *p);
	jv_set_str(b->arena, args, "url", buf_str(&text));
	return call_jv(b, "web_fetch", args);
}

/* One sentence, of the given kind. */
static void fetch_refused(struct bench *b, const char *url, uint16_t port, enum err_kind kind)
{
	fetch(b, url, port);
	if (!b->result.is_error)
		TEST_FAIL("%s was fetched: %.*s", url, STR_ARG(b->result.text));
	if (b->result.err.kind != kind)
		TEST_FAIL("%s failed as %s (%s), expected %s", url, err_kind_name(b->result.err.kind),
			  b->result.err.msg, err_kind_name(kind));
	if (!b->result.text.len || memchr(b->result.text.ptr, '\n', b->result.text.len))
		TEST_FAIL("%s is not answered with one sentence: %.*s", url, STR_ARG(b->result.text));
}

/* --- hosts that are written as addresses --- */

static void secret(void *arg, const struct stub_request *req, struct buf *out)
{
	(void)arg;
	(void)req;
	stub_reply(out, 200, "Content-Type: text/plain\r\n", STR("private"));
}

static const char *const private_urls[] = {
	/* IPv4 in each notation that inet_aton() reads */
	"http://127.0.0.1:*/",
	"http://127.1:*/",
	"http://127.0.1:*/",
	"http://2130706433:*/",
	"http://0x7f000001:*/",
	"http://0X7F000001:*/",
	"http://017700000001:*/",
	"http://0177.0.0.1:*/",
	"http://0x7f.0.0.1:*/",
	"http://0x7f.0x0.0x0.0x1:*/",
	"http://0177.0x0.0.01:*/",
	"http://127.0.0.1.:*/",
	"http://127.1.:*/",
	"http://127.127.127.127:*/",
	"http://0.0.0.0:*/",
	"http://0:*/",
	"http://0x0:*/",
	"http://00000000:*/",
	/* its special networks */
	"http://10.0.0.1/",
	"http://100.64.0.1/",
	"http://169.254.169.254/latest/meta-data/",
	"http://0xa9fea9fe/latest/meta-data/",
	"http://2852039166/latest/meta-data/",
	"http://172.16.0.1/",
	"http://192.168.0.1/",
	"http://192.0.0.192/",
	"http://198.18.0.1/",
	"http://224.0.0.1/",
	"http://255.255.255.255/",
	/* IPv6: loopback, any, mapped, compatible, translated, tunnelled, local */
	"http://[::1]:*/",
	"http://[0:0:0:0:0:0:0:1]:*/",
	"http://[0000:0000:0000:0000:0000:0000:0000:0001]:*/",
	"http://[::]:*/",
	"http://[::ffff:127.0.0.1]:*/",
	"http://[::ffff:7f00:1]:*/",
	"http://[::FFFF:7F00:0001]:*/",
	"http://[0:0:0:0:0:ffff:127.0.0.1]:*/",
	"http://[::ffff:0:127.0.0.1]:*/",
	"http://[::127.0.0.1]:*/",
	"http://[::7f00:1]:*/",
	"http://[64:ff9b::127.0.0.1]:*/",
	"http://[64:ff9b::a9fe:a9fe]/",
	"http://[64:ff9b:1::7f00:1]:*/",
	"http://[2002:7f00:1::]:*/",
	"http://[2002:a9fe:a9fe::1]/",
	"http://[2001:0:7f00:1::]:*/",
	"http://[fe80::1]:*/",
	"http://[fec0::1]/",
	"http://[fc00::1]/",
	"http://[fd00:ec2::254]/latest/meta-data/",
	"http://[ff02::1]/",
	"http://[2001:db8::1]/",
	/* names that every machine has */
	"http://localhost:*/",
	"http://LOCALHOST:*/",
	"http://localhost.:*/",
	/* parts that another parser might take for the host */
	"http://127.0.0.1:*/@example.com/",
	"http://127.0.0.1:*#@example.com/",
	"http://127.0.0.1:*?@example.com/",
	"  http://127.0.0.1:*/  ",
	"HTTP://127.0.0.1:*/",
	"https://127.0.0.1:*/",
};

static const char *const malformed_urls[] = {
	/* user names */
	"http://example.com@127.0.0.1:*/",
	"http://example.com:80@127.0.0.1:*/",
	"http://127.0.0.1:*@example.com/",
	"http://@127.0.0.1:*/",
	"http://example.com%40127.0.0.1:*/",
	/* zones */
	"http://[fe80::1%25lo]:*/",
	"http://[fe80::1%lo]:*/",
	"http://[::1%251]:*/",
	/* percent-encoded hosts, other dots, other digits */
	"http://%31%32%37.0.0.1:*/",
	"http://127%2e0%2e0%2e1:*/",
	"http://loc%61lhost:*/",
	"http://127。0。0。1:*/",
	"http://127．0．0．1:*/",
	"http://①②⑦.⓪.⓪.①:*/",
	"http://１２７.0.0.1:*/",
	"http://ⓛocalhost:*/",
	/* numbers that are not an address */
	"http://127.0.0.1..:*/",
	"http://127.0.0.1.5:*/",
	"http://127.0.0.256:*/",
	"http://256.256.256.256:*/",
	"http://0x7f.0.0.0x:*/",
	"http://4294967297:*/",
	"http://127.0.0.08:*/",
	"http://example.1:*/",
	/* separators, controls and brackets */
	"http://127.0.0.1:*\\@example.com/",
	"http://example.com\\@127.0.0.1:*/",
	"http:\\\\127.0.0.1:*/",
	"http:///127.0.0.1:*/",
	"http:/127.0.0.1:*/",
	"http:127.0.0.1:*/",
	"//127.0.0.1:*/",
	"http://127.0.0.1\t:*/",
	"http://127.0.0.1\r\nHost: x:*/",
	"http://127.0.0.1 :*/",
	"http://[127.0.0.1:*/",
	"http://[::1]x:*/",
	"http://[::1]]:*/",
	"http://[[::1]]:*/",
	"http://[v1.127.0.0.1]:*/",
	"http://127.0.0.1:*:80/",
	"http://127.0.0.1:+80/",
	"http://:*/",
	/* other schemes */
	"file:///etc/passwd",
	"file://127.0.0.1/etc/passwd",
	"ftp://127.0.0.1:*/",
	"gopher://127.0.0.1:*/_x",
	"dict://127.0.0.1:*/x",
	"data:text/plain,x",
	"unix:///run/x.sock",
	"http+unix://127.0.0.1:*/",
};

TEST(no_notation_of_a_private_address_is_connected_to)
{
	static struct stub_server v4, v6;
	struct bench b;

	stub_start(&v4, secret, NULL);
	stub_start_at(&v6, "::1", v4.port, secret, NULL);
	open_with(&b, FETCHES);
	for (size_t i = 0; i < COUNT(private_urls); i++) {
		fetch_refused(&b, private_urls[i], v4.port, ERR_DENIED);
		CHECK_HAS(b.result.text, STR("no connection was made"));
	}
	for (size_t i = 0; i < COUNT(malformed_urls); i++)
		fetch_refused(&b, malformed_urls[i], v4.port, ERR_INVALID);
	CHECK_INT(atomic_load(&v4.connections), 0);
	CHECK_INT(atomic_load(&v6.connections), 0);
}

/* A redirect to what the tables above have, from a page that may be fetched. */
static atomic_size_t redirect_at;
static uint16_t redirect_port;

static const char *redirect_url(size_t i)
{
	return i < COUNT(private_urls) ? private_urls[i] : malformed_urls[i - COUNT(private_urls)];
}

static void redirect(void *arg, const struct stub_request *req, struct buf *out)
{
	(void)arg;
	(void)req;
	buf_lit(out, "HTTP/1.1 302 X\r\nConnection: close\r\nContent-Length: 0\r\nLocation: ");
	for (const char *p = redirect_url(atomic_load(&redirect_at)); *p; p++)
		if (*p == '*')
			buf_u64(out, redirect_port);
		else
			buf_char(out, *p);
	buf_lit(out, "\r\n\r\n");
}

TEST(no_redirect_leads_to_a_private_address)
{
	static struct stub_server first, target;
	size_t fetched = 0;
	struct bench b;

	stub_start_at(&first, "127.0.0.2", 0, redirect, NULL);
	stub_start(&target, secret, NULL);
	redirect_port = target.port;
	open_with(&b, "web: {allow_addresses: [127.0.0.2], fetch: {enabled: true, timeout_seconds: 5}}\n");
	for (size_t i = 0; i < COUNT(private_urls) + COUNT(malformed_urls); i++) {
		const char *url = redirect_url(i);
		bool is_address = i < COUNT(private_urls) || url[0] == '/'; /* "//HOST/" is a legal reference */

		if (strpbrk(url, "\r\n"))
			continue; /* it would end the header */
		atomic_store(&redirect_at, i);
		fetch_refused(&b, "http://127.0.0.2:*/", first.port, is_address ? ERR_DENIED : ERR_INVALID);
		fetched++;
	}
	CHECK_INT(atomic_load(&first.connections), fetched);
	CHECK_INT(atomic_load(&target.connections), 0);
}

/* --- bodies --- */

/* Sends `chunk` until the other side hangs up or the test ends; `gap_ms` apart. */
static void pour(struct stub_server *s, int fd, struct str chunk, int gap_ms)
{
	while (!atomic_load(&s->ended) && send(fd, chunk.ptr, chunk.len, MSG_NOSIGNAL) > 0)
		if (gap_ms && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, gap_ms) > 0)
			return; /* it hung up */
}

static void flood(void *arg, const struct stub_request *req, struct buf *out)
{
	static const char x[65536] = {'x'};
	struct str t = req->target, block = str_n(x, sizeof(x));
	struct stub_server *s = arg;

	(void)out;
	if (str_is(t, "/slow")) {
		stub_send(req->fd, STR("HTTP/1.1 200 X\r\nContent-Type: text/plain\r\n\r\n"));
		pour(s, req->fd, STR("x"), 20);
	} else if (str_is(t, "/slow-head")) {
		stub_send(req->fd, STR("HTTP/1.1 200 X\r\nX-Long: "));
		pour(s, req->fd, STR("x"), 20);
	} else if (str_is(t, "/heads")) {
		stub_send(req->fd, STR("HTTP/1.1 200 X\r\n"));
		pour(s, req->fd, STR("X-More: and more and more and more and more\r\n"), 0);
	} else if (str_is(t, "/404")) {
		stub_send(req->fd, STR("HTTP/1.1 404 X\r\nContent-Type: text/plain\r\n\r\n"));
		pour(s, req->fd, block, 0);
	} else if (str_is(t, "/redirect")) {
		stub_send(req->fd, STR("HTTP/1.1 302 X\r\nLocation: http://127.0.0.1/\r\n\r\n"));
		pour(s, req->fd, block, 0);
	} else {
		stub_send(req->fd, STR("HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
				       "\x1F\x8B\x08"));
		pour(s, req->fd, block, 0);
	}
}

TEST(answers_that_do_not_end_are_given_up)
{
	static const struct {
		const char *url;
		enum err_kind kind;
	} cases[] = {
		{"http://127.0.0.2:*/slow", ERR_TIMEOUT},     {"http://127.0.0.2:*/slow-head", ERR_TIMEOUT},
		{"http://127.0.0.2:*/404", ERR_NOT_FOUND},    {"http://127.0.0.2:*/redirect", ERR_DENIED},
		{"http://127.0.0.2:*/bomb", ERR_UNSUPPORTED},
	};
	static struct stub_server server;
	struct bench b;

	stub_start_at(&server, "127.0.0.2", 0, flood, &server);
	open_with(&b, "web: {allow_addresses: [127.0.0.2], fetch: {enabled: true, timeout_seconds: 1}}\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		fetch(&b, cases[i].url, server.port);
		CHECK(b.result.is_error);
		if (b.result.err.kind != cases[i].kind)
			TEST_FAIL("%s failed as %s: %s", cases[i].url, err_kind_name(b.result.err.kind),
				  b.result.err.msg);
	}
	fetch(&b, "http://127.0.0.2:*/heads", server.port);
	CHECK(b.result.is_error);
}

/* --- names --- */

/* Answers questions for A (and AAAA) of names below "test". */
static struct resolver {
	int fd;
	pthread_t thread;
	atomic_uint rebind_questions; /* for the A of rebind.test */
} resolver;

struct record {
	const char *name;
	const char *addresses[3];
};

static const struct record zone[] = {
	{"good.test", {PUBLIC}},
	{"loopback.test", {"127.0.0.1"}},
	{"metadata.test", {"169.254.169.254"}},
	{"intranet.test", {"10.1.2.3"}},
	{"any.test", {"0.0.0.0"}},
	{"mixed.test", {PUBLIC, "127.0.0.1"}},
	{"mixed-back.test", {"192.168.1.1", PUBLIC}},
	{"mixed6.test", {PUBLIC, "::1"}},
	{"loopback6.test", {"::1"}},
	{"mapped.test", {"::ffff:127.0.0.1"}},
	{"translated.test", {"64:ff9b::7f00:1"}},
	{"local6.test", {"fd00::1"}},
	{"link6.test", {"fe80::1"}},
};

static void add_record(struct buf *out, const char *address)
{
	bool v6 = strchr(address, ':');
	unsigned char bytes[16];
	uint16_t type = v6 ? 28 : DNS_TYPE_A;

	inet_pton(v6 ? AF_INET6 : AF_INET, address, bytes);
	buf_add(out, str_n((const char[]){(char)0xC0, 12, 0, (char)type, 0, 1, 0, 0, 0, 0, 0, v6 ? 16 : 4}, 12));
	buf_add(out, str_n((const char *)bytes, v6 ? 16 : 4));
}

static size_t answer_question(struct str packet, char *ret, size_t size)
{
	const char *const rebound[2][3] = {{PUBLIC}, {"127.0.0.1"}}, *const *addresses = NULL;
	struct dns_query query;
	struct buf out;
	unsigned count = 0;
	size_t len;

	if (!dns_query_parse(packet, &query))
		return 0;
	for (size_t i = 0; i < COUNT(zone); i++)
		if (strcmp(zone[i].name, query.name) == 0)
			addresses = zone[i].addresses;
	if (strcmp(query.name, "rebind.test") == 0)
		addresses = rebound[query.type == DNS_TYPE_A ? atomic_fetch_add(&resolver.rebind_questions, 1) > 0 : 0];
	buf_init(&out, NULL, size);
	buf_add(&out, str_first(packet, query.question_end));
	for (size_t i = 0; addresses && i < 3 && addresses[i]; i++)
		if ((strchr(addresses[i], ':') ? 28 : DNS_TYPE_A) == query.type) {
			add_record(&out, addresses[i]);
			count++;
		}
	len = out.len;
	memcpy(ret, out.ptr, len);
	buf_release(&out);
	ret[2] = (char)0x85;
	ret[3] = (char)(0x80 | (addresses ? DNS_OK : DNS_NO_NAME));
	memset(ret + 6, 0, 6);
	ret[7] = (char)count;
	return len;
}

static void *resolve(void *arg)
{
	char in[DNS_PACKET_MAX], out[DNS_PACKET_MAX];
	struct sockaddr_in from;

	(void)arg;
	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(resolver.fd, in, sizeof(in), 0, (struct sockaddr *)&from, &len);
		size_t size = n > 0 ? answer_question(str_n(in, (size_t)n), out, sizeof(out)) : 0;

		if (size)
			sendto(resolver.fd, out, size, 0, (struct sockaddr *)&from, len);
	}
	return NULL;
}

/* `text` takes the place of a file of the system, for this process alone. */
static bool cover(const char *path, const char *text)
{
	char own[] = "/tmp/stead-test-XXXXXX";
	int fd = mkstemp(own);
	bool ok = fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
		  mount(own, path, NULL, MS_BIND, NULL) == 0;

	if (fd >= 0) {
		unlink(own);
		close(fd);
	}
	return ok;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Root of a user namespace of its own, where this process is not root already. */
static bool become_root(void)
{
	char map[64];

	if (geteuid() == 0)
		return true;
	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", map);
}

/* The loopback interface with PUBLIC as a second address. */
static bool bring_up(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING}, more = {.ifr_name = "lo:1"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	inet_pton(AF_INET, PUBLIC, &address.sin_addr);
	memcpy(&more.ifr_addr, &address, sizeof(address));
	ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &up) == 0 && ioctl(fd, SIOCSIFADDR, &more) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool start_resolver(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};

	resolver.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return resolver.fd >= 0 && bind(resolver.fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	       pthread_create(&resolver.thread, NULL, resolve, NULL) == 0;
}

/* Once per process: it stays there. */
static void enter_network(void)
{
	static enum { NOT_TRIED, ENTERED, NOT_PERMITTED } state;

	if (state == NOT_TRIED)
		state = become_root() && unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
					mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
					cover("/etc/resolv.conf", "nameserver 127.0.0.1\noptions attempts:1\n") &&
					cover("/etc/nsswitch.conf", "hosts: files dns\n") &&
					cover("/etc/hosts", "127.0.0.1 localhost\n10.9.8.7 printer\n") && bring_up() &&
					start_resolver()
				? ENTERED
				: NOT_PERMITTED;
	if (state == NOT_PERMITTED)
		SKIP("a network of its own is not permitted here");
	atomic_store(&resolver.rebind_questions, 0);
}

static void open_page(void *arg, const struct stub_request *req, struct buf *out)
{
	uint16_t port = *(uint16_t *)arg;

	if (str_starts(req->target, STR("/to/")))
		buf_printf(out, "HTTP/1.1 302 X\r\nConnection: close\r\nLocation: http://%.*s:%u/\r\n\r\n",
			   STR_ARG(str_from(req->target, 4)), port);
	else
		stub_reply(out, 200, "Content-Type: text/plain\r\n", STR("public"));
}

/* Servers with one port: on a public address, and on loopback. */
static struct pair {
	struct stub_server open, hidden, hidden6;
	uint16_t port;
} pair;

static void pair_start(void)
{
	stub_start_at(&pair.open, PUBLIC, 0, open_page, &pair.port);
	pair.port = pair.open.port;
	stub_start_at(&pair.hidden, "127.0.0.1", pair.port, secret, NULL);
	stub_start_at(&pair.hidden6, "::1", pair.port, secret, NULL);
}

static const char *const private_names[] = {
	"loopback.test",   "metadata.test", "intranet.test", "any.test",       "mixed.test",
	"mixed-back.test", "mixed6.test",   "mapped.test",   "loopback6.test", "translated.test",
	"local6.test",     "link6.test",    "printer",       "localhost",      "Loopback.TEST.",
};

TEST(names_that_lead_to_private_addresses_are_not_connected_to)
{
	struct bench b;

	enter_network();
	pair_start();
	open_with(&b, FETCHES);
	CHECK_STR(jv_get_str(fetch(&b, "http://good.test:*/", pair.port), "content"), STR("public"));
	for (size_t i = 0; i < COUNT(private_names); i++) {
		char url[100];

		snprintf(url, sizeof(url), "http://%s:*/", private_names[i]);
		fetch_refused(&b, url, pair.port, ERR_DENIED);
		CHECK_HAS(b.result.text, STR("no connection was made"));
	}
	CHECK_INT(atomic_load(&pair.open.connections), 1);
	CHECK_INT(atomic_load(&pair.hidden.connections) + atomic_load(&pair.hidden6.connections), 0);
}

TEST(redirects_to_names_of_private_addresses_are_not_followed)
{
	struct bench b;

	enter_network();
	pair_start();
	open_with(&b, FETCHES);
	for (size_t i = 0; i < COUNT(private_names); i++) {
		char url[100];

		snprintf(url, sizeof(url), "http://good.test:*/to/%s", private_names[i]);
		fetch_refused(&b, url, pair.port, ERR_DENIED);
	}
	CHECK_INT(atomic_load(&pair.open.connections), COUNT(private_names));
	CHECK_INT(atomic_load(&pair.hidden.connections) + atomic_load(&pair.hidden6.connections), 0);
}

/* The name server says PUBLIC to the first question and 127.0.0.1 to every later one. */
TEST(a_name_is_asked_for_once_and_the_checked_address_is_connected_to)
{
	struct bench b;

	enter_network();
	pair_start();
	open_with(&b, FETCHES);
	CHECK_STR(jv_get_str(fetch(&b, "http://rebind.test:*/", pair.port), "content"), STR("public"));
	CHECK_INT(atomic_load(&resolver.rebind_questions), 1);
	fetch_refused(&b, "http://rebind.test:*/", pair.port, ERR_DENIED);
	CHECK_INT(atomic_load(&pair.open.connections), 1);
	CHECK_INT(atomic_load(&pair.hidden.connections), 0);
}

/* The redirect asks again, and is checked again. */
TEST(a_name_that_changes_its_address_between_two_hops_is_refused_at_the_second)
{
	struct bench b;

	enter_network();
	pair_start();
	open_with(&b, FETCHES);
	fetch_refused(&b, "http://rebind.test:*/to/rebind.test", pair.port, ERR_DENIED);
	CHECK_INT(atomic_load(&resolver.rebind_questions), 2);
	CHECK_INT(atomic_load(&pair.open.connections), 1);
	CHECK_INT(atomic_load(&pair.hidden.connections), 0);
}
