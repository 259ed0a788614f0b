/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, driven so that a request ends when its caller wants it to. A client has a pool of slots; a slot is one
 * multi handle with one easy handle, and its connections stay with it. A request takes the slot that was used last,
 * so as few connections as possible are open and the warm one is taken first. Slots instead of one shared connection
 * cache: no lock is held while bytes move, and nothing depends on what a version of libcurl considers safe to
 * share.
 *
 * The multi interface is used for one request at a time because only it gives the thread back while waiting: the loop
 * in `run` looks at the deadline, the cancel flag and the last time a byte moved; curl_easy_perform() would look once
 * a second.
 *
 * A connection that was kept open may be dead. libcurl notices most of that and sends the request again; what it
 * does not retry (a body half sent) is sent once more here, on a new connection. Every sending is counted, since a
 * request that was sent twice may have been carried out twice.
 */
#include "net/http.h"

#define CURL_DISABLE_TYPECHECK
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/sigpipe.h"
#include "base/utf8.h"
#include "net/dynlib.h"
#include "net/reach.h"

#define CONNECT_MS_DEFAULT 5000
#define STALL_MS_DEFAULT   15000
#define IDLE_MAX           64         /* slots kept for the next request */
#define TOGETHER_MAX       (32 * KIB) /* a body in memory up to this is sent with its head */
#define LOOK_MS            25         /* how often a flag that another thread sets is looked at */

static struct {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_reset) *easy_reset;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_easy_setopt) *setopt;
	__typeof__(curl_easy_getinfo) *getinfo;
	__typeof__(curl_easy_strerror) *strerror;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_cleanup) *multi_cleanup;
	__typeof__(curl_multi_add_handle) *multi_add;
	__typeof__(curl_multi_remove_handle) *multi_remove;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_info_read) *multi_info;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free;
} api;
static struct err api_err; /* why it could not be loaded */
static pthread_once_t api_once = PTHREAD_ONCE_INIT;

static void api_load(void)
{
	const struct dynlib_entry entries[] = {
		{"curl_global_init", &api.global_init},
		{"curl_easy_init", &api.easy_init},
		{"curl_easy_reset", &api.easy_reset},
		{"curl_easy_cleanup", &api.easy_cleanup},
		{"curl_easy_setopt", &api.setopt},
		{"curl_easy_getinfo", &api.getinfo},
		{"curl_easy_strerror", &api.strerror},
		{"curl_multi_init", &api.multi_init},
		{"curl_multi_cleanup", &api.multi_cleanup},
		{"curl_multi_add_handle", &api.multi_add},
		{"curl_multi_remove_handle", &api.multi_remove},
		{"curl_multi_perform", &api.multi_perform},
		{"curl_multi_poll", &api.multi_poll},
		{"curl_multi_info_read", &api.multi_info},
		{"curl_slist_append", &api.slist_append},
		{"curl_slist_free_all", &api.slist_free},
	};

	if (dynlib_load("libcurl.so.4", "libcurl4", entries, COUNT(entries), &api_err) == 0 &&
	    api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		err_set(&api_err, ERR_INTERNAL, "libcurl cannot be started");
}

struct slot {
	CURLM *multi;
	CURL *easy;
	struct slot *next;
};

struct http {
	pthread_mutex_t lock;
	struct slot *idle; /* used last first */
	size_t idle_count;
	unsigned connect_ms, stall_ms;
	char *ca_file; /* NULL: the system's */
	bool path_as_is;
};

/* One request while it runs. */
struct transfer {
	struct http *http;
	struct ctx *ctx;
	const struct http_request *req;
	struct http_response *ret;
	struct slot *slot;
	struct str host; /* as the URL has it, for messages */
	struct curl_slist *headers, *names;
	int64_t deadline_ns; /* the request's own, 0: none */
	int64_t moved_ns;    /* when a byte moved last */
	curl_off_t moved;    /* and how many there were */
	uint64_t taken;      /* of the body, from memory or source */
	/* the answer */
	struct http_header *head;
	size_t head_count, head_cap, head_bytes;
	bool head_done, answered, enough;
	struct buf body;
	bool failed; /* a callback failed and wrote `err` */
	struct err *err;
};

struct http *http_new(const struct http_opts *opts)
{
	struct http *http = xcalloc(1, sizeof(*http));

	pthread_mutex_init(&http->lock, NULL);
	http->connect_ms = opts && opts->connect_ms ? opts->connect_ms : CONNECT_MS_DEFAULT;
	http->stall_ms = opts && opts->stall_ms ? opts->stall_ms : STALL_MS_DEFAULT;
	http->ca_file = opts && opts->ca_file ? xstrndup(str_of(opts->ca_file)) : NULL;
	http->path_as_is = opts && opts->path_as_is;
	return http;
}

static void slot_destroy(struct slot *slot)
{
	if (slot->easy)
		api.easy_cleanup(slot->easy);
	if (slot->multi)
		api.multi_cleanup(slot->multi);
	free(slot);
}

void http_destroy(struct http *http)
{
	if (!http)
		return;
	while (http->idle) {
		struct slot *slot = http->idle;

		http->idle = slot->next;
		slot_destroy(slot);
	}
	pthread_mutex_destroy(&http->lock);
	free(http->ca_file);
	free(http);
}

static struct slot *slot_take(struct http *http)
{
	struct slot *slot;

	pthread_mutex_lock(&http->lock);
	slot = http->idle;
	if (slot) {
		http->idle = slot->next;
		http->idle_count--;
	}
	pthread_mutex_unlock(&http->lock);
	if (slot)
		return slot;
	slot = xcalloc(1, sizeof(*slot));
	slot->multi = api.multi_init();
	slot->easy = api.easy_init();
	if (slot->multi && slot->easy)
		return slot;
	slot_destroy(slot);
	return NULL;
}

static void slot_give(struct http *http, struct slot *slot)
{
	bool keep;

	api.easy_reset(slot->easy);
	pthread_mutex_lock(&http->lock);
	keep = http->idle_count < IDLE_MAX;
	if (keep) {
		slot->next = http->idle;
		http->idle = slot;
		http->idle_count++;
	}
	pthread_mutex_unlock(&http->lock);
	if (!keep)
		slot_destroy(slot);
}

/* "host:port" of a URL, without the user name. */
static struct str host_of(struct str url)
{
	size_t at = str_find(url, STR("://"), 0);
	struct str host = at == SIZE_MAX ? url : str_from(url, at + 3);

	for (size_t i = 0; i < host.len; i++)
		if (host.ptr[i] == '/' || host.ptr[i] == '?' || host.ptr[i] == '#')
			host.len = i;
	at = str_rfind_char(host, '@');
	return str_first(at < host.len ? str_from(host, at + 1) : host, 255);
}

static bool is_loopback(struct str host)
{
	return str_starts(host, STR("127.")) || str_starts(host, STR("[::1]")) || str_is(host, "localhost") ||
	       str_starts(host, STR("localhost:"));
}

static void moved(struct transfer *t)
{
	t->moved_ns = clock_monotonic_ns();
}

/* Called when a connection is there and the request goes out on it, also when it is sent again. */
static int on_sending(void *arg, char *a, char *b, int c, int d)
{
	struct transfer *t = arg;

	(void)a, (void)b, (void)c, (void)d;
	t->ret->sent = true;
	t->ret->requests++;
	moved(t);
	return CURL_PREREQFUNC_OK;
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t cap = size * n, len = 0;

	if (!t->req->source) {
		struct str rest = str_first(str_from(t->req->body, t->taken), cap);

		if (rest.len > 0)
			memcpy(to, rest.ptr, rest.len);
		t->taken += rest.len;
		moved(t);
		return rest.len;
	}
	if (cap > t->req->source->length - t->taken)
		cap = (size_t)(t->req->source->length - t->taken);
	if (cap > 0 && t->req->source->pull(t->req->source->arg, to, cap, &len, t->err) != 0) {
		t->failed = true;
		return CURL_READFUNC_ABORT;
	}
	if (cap > 0 && len == 0) {
		t->failed = true;
		err_set(t->err, ERR_INTERNAL, "a body of %llu bytes for \"%.*s\" ended after %llu",
			(unsigned long long)t->req->source->length, STR_ARG(t->host), (unsigned long long)t->taken);
		return CURL_READFUNC_ABORT;
	}
	t->taken += len;
	moved(t);
	return len;
}

static int on_rewind(void *arg, curl_off_t offset, int origin)
{
	struct transfer *t = arg;

	if (offset != 0 || origin != SEEK_SET)
		return CURL_SEEKFUNC_FAIL;
	t->taken = 0;
	if (!t->req->source)
		return CURL_SEEKFUNC_OK;
	if (t->req->source->rewind && t->req->source->rewind(t->req->source->arg, t->err) == 0)
		return CURL_SEEKFUNC_OK;
	if (!t->req->source->rewind)
		err_set(t->err, ERR_UNAVAILABLE,
			"the connection to \"%.*s\" was cut off, and the body cannot be sent again", STR_ARG(t->host));
	t->failed = true;
	return CURL_SEEKFUNC_FAIL;
}

static struct str header_find(const struct http_header *headers, size_t count, const char *name)
{
	struct str wanted = str_of(name);

	for (size_t i = 0; i < count; i++)
		if (str_eq(headers[i].name, wanted))
			return headers[i].value;
	return STR_NONE;
}

/* Room for the body at once, where the answer says how long it is. */
static void body_begin(struct transfer *t)
{
	size_t max = t->req->body_max ? t->req->body_max : MIB;
	int64_t length = 0;

	if (t->ret->status / 100 != 2)
		max = HTTP_ERROR_BODY_MAX;
	buf_init(&t->body, t->ctx->arena, max);
	if (!t->req->push && str_is(str_of(t->req->method), "HEAD") == false &&
	    str_to_i64(header_find(t->head, t->head_count, "content-length"), &length) && length > 0 &&
	    (uint64_t)length <= max)
		buf_reserve(&t->body, (size_t)length);
}

static bool head_end(struct transfer *t)
{
	if (t->ret->status / 100 == 1)
		return true; /* another head follows */
	t->head_done = true;
	t->ret->headers = t->head;
	t->ret->header_count = t->head_count;
	body_begin(t);
	if (t->req->head && t->ret->status / 100 == 2 &&
	    t->req->head(t->req->arg, t->ret->status, t->head, t->head_count, t->err) != 0) {
		t->failed = true;
		return false;
	}
	return true;
}

static bool head_line(struct transfer *t, struct str line)
{
	size_t colon = str_find_char(line, ':');

	t->head_bytes += line.len;
	if (t->head_count >= HTTP_HEADERS_MAX || t->head_bytes > HTTP_HEAD_MAX) {
		t->failed = true;
		err_set(t->err, ERR_TOO_LARGE, "\"%.*s\" answered with more than %d header fields or %zu KiB of them",
			STR_ARG(t->host), HTTP_HEADERS_MAX, HTTP_HEAD_MAX / KIB);
		return false;
	}
	if (colon == line.len)
		return true; /* not a field: nothing to learn from it */
	ARENA_ROOM(t->ctx->arena, t->head, t->head_count, t->head_cap);
	t->head[t->head_count++] = (struct http_header){str_lower(t->ctx->arena, str_first(line, colon)),
							arena_str(t->ctx->arena, str_trim(str_from(line, colon + 1)))};
	return true;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct str line = str_trim(str_n(bytes, size * n));
	bool ok = true;

	moved(t);
	t->answered = true;
	if (t->head_done) /* a trailer */
		return size * n;
	if (str_starts(line, STR("HTTP/"))) {
		int64_t status = 0;
		struct str rest = str_from(line, str_find_char(line, ' ') + 1);

		t->head_count = t->head_bytes = 0;
		str_to_i64(str_first(rest, str_find_char(rest, ' ')), &status);
		t->ret->status = (int)status;
	} else if (line.len == 0) {
		ok = head_end(t);
	} else {
		ok = head_line(t, line);
	}
	return ok ? size * n : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct str part = str_n(bytes, size * n);

	moved(t);
	t->answered = true;
	if (t->ret->status / 100 != 2) {
		buf_add(&t->body, str_first(part, t->body.max - t->body.len));
		t->enough = t->body.len == t->body.max;
		return t->enough ? 0 : part.len;
	}
	if (t->req->push) {
		t->failed = t->req->push(t->req->arg, part.ptr, part.len, t->err) != 0;
		moved(t);
		return t->failed ? 0 : part.len;
	}
	buf_add(&t->body, part);
	if (!t->body.overflow)
		return part.len;
	t->failed = true;
	err_set(t->err, ERR_TOO_LARGE, "\"%.*s\" answered with more than %zu bytes", STR_ARG(t->host), t->body.max);
	return 0;
}

/* A line break in a header would be a second header. */
static bool header_is_clean(struct http_header header)
{
	for (size_t i = 0; i < header.value.len; i++)
		if ((unsigned char)header.value.ptr[i] < 0x20 && header.value.ptr[i] != '\t')
			return false;
	for (size_t i = 0; i < header.name.len; i++)
		if ((unsigned char)header.name.ptr[i] <= 0x20 || header.name.ptr[i] == ':')
			return false;
	return header.name.len > 0;
}

/* Headers that libcurl would add by itself: Expect before the body, and the content type of a form. */
static struct curl_slist *set_defaults(void)
{
	struct curl_slist *list = api.slist_append(NULL, "Expect:"), *more;

	if (!list)
		return NULL;
	more = api.slist_append(list, "Content-Type:");
	if (!more)
		api.slist_free(list);
	return more;
}

static int set_headers(struct transfer *t)
{
	struct curl_slist *list = set_defaults();

	for (size_t i = 0; list && i < t->req->header_count; i++) {
		struct http_header h = t->req->headers[i];
		const char *line;
		struct curl_slist *more;

		if (!header_is_clean(h)) {
			api.slist_free(list);
			return err_set(t->err, ERR_INVALID,
				       "the header \"%.*s\" for \"%.*s\" has a character that no header may have",
				       STR_ARG(h.name), STR_ARG(t->host));
		}
		line = h.value.len == 0 ? arena_printf(t->ctx->arena, "%.*s;", STR_ARG(h.name)).ptr
					: arena_printf(t->ctx->arena, "%.*s: %.*s", (int)h.name.len, h.name.ptr,
						       (int)h.value.len, h.value.ptr)
						  .ptr;
		more = api.slist_append(list, line);
		if (!more)
			api.slist_free(list);
		list = more;
	}
	if (!list)
		return err_set(t->err, ERR_INTERNAL, "a request to \"%.*s\" cannot be made: out of memory",
			       STR_ARG(t->host));
	t->headers = list;
	return 0;
}

/* Sets the options that are the same for every request of a client. */
static int set_client(struct transfer *t, CURL *easy)
{
	const struct http *http = t->http;
	int r = 0;

	r |= api.setopt(easy, CURLOPT_NOSIGNAL, 1L);
	r |= api.setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a slow name server after the deadline */
	r |= api.setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	r |= api.setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	r |= api.setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	r |= api.setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	r |= api.setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	r |= api.setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	r |= api.setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	r |= api.setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->connect_ms);
	/* Refused, and kept as they are, while the buffers of a request that failed are still there. */
	api.setopt(easy, CURLOPT_BUFFERSIZE, 128L * 1024);
	api.setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 128L * 1024);
	if (http->path_as_is)
		r |= api.setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	if (http->ca_file)
		r |= api.setopt(easy, CURLOPT_CAINFO, http->ca_file);
	if (is_loopback(t->host))
		r |= api.setopt(easy, CURLOPT_PROXY, "");
	return r;
}

/* The last look before a connection: only an address that was checked is opened. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *t = arg;
	const struct reach_addresses *pin = t->req->pin;

	(void)purpose;
	for (size_t i = 0; i < pin->count; i++)
		if (reach_is_same(&address->addr, (const struct sockaddr *)&pin->list[i]))
			return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	t->failed = true;
	err_set(t->err, ERR_DENIED, "\"%.*s\" leads to an unchecked address; no connection was made", STR_ARG(t->host));
	return CURL_SOCKET_BAD;
}

/* "host:port:address,address" takes the place of name resolution. */
static int set_pin(struct transfer *t, CURL *easy)
{
	const struct reach_addresses *pin = t->req->pin;
	size_t colon = str_rfind_char(t->host, ':');
	bool has_port = colon < t->host.len && t->host.ptr[t->host.len - 1] != ']';
	char address[INET6_ADDRSTRLEN];
	struct buf line;
	int r = 0;

	buf_init(&line, t->ctx->arena, 8 * KIB);
	buf_char(&line, '+'); /* forgotten after a while, as what a resolver says */
	buf_add(&line, t->host);
	if (!has_port)
		buf_printf(&line, ":%s", str_starts(t->req->url, STR("https:")) ? "443" : "80");
	for (size_t i = 0; i < pin->count; i++) {
		const struct sockaddr_storage *a = &pin->list[i];
		bool v6 = a->ss_family == AF_INET6;

		inet_ntop(a->ss_family,
			  v6 ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
			     : (const void *)&((const struct sockaddr_in *)a)->sin_addr,
			  address, sizeof(address));
		buf_printf(&line, v6 ? "%c[%s]" : "%c%s", i ? ',' : ':', address);
	}
	t->names = api.slist_append(NULL, arena_cstr(t->ctx->arena, buf_str(&line)));
	r |= t->names ? 0 : 1;
	if (t->host.len && t->host.ptr[0] != '[') /* an IPv6 address needs no resolution */
		r |= api.setopt(easy, CURLOPT_RESOLVE, t->names);
	r |= api.setopt(easy, CURLOPT_PROXY, "");
	r |= api.setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	r |= api.setopt(easy, CURLOPT_OPENSOCKETDATA, t);
	return r;
}

static int set_request(struct transfer *t, bool fresh)
{
	CURL *easy = t->slot->easy;
	const struct http_request *req = t->req;
	struct str method = str_of(req->method);
	uint64_t length = req->source ? req->source->length : req->body.len;
	int r = set_client(t, easy);

	r |= api.setopt(easy, CURLOPT_URL, arena_cstr(t->ctx->arena, req->url));
	r |= api.setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	r |= api.setopt(easy, CURLOPT_FRESH_CONNECT, (long)fresh);
	if (str_is(method, "HEAD")) {
		r |= api.setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (!req->source && length > 0 && length <= TOGETHER_MAX) {
		/* Head and body leave in one piece, and the other side wakes up once. */
		r |= api.setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
		r |= api.setopt(easy, CURLOPT_POSTFIELDS, req->body.ptr);
		r |= api.setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
	} else if (length > 0 || str_is(method, "PUT") || str_is(method, "POST")) {
		r |= api.setopt(easy, CURLOPT_UPLOAD, 1L);
		r |= api.setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)length);
		r |= api.setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
	} else {
		r |= api.setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
	}
	r |= api.setopt(easy, CURLOPT_READFUNCTION, on_read);
	r |= api.setopt(easy, CURLOPT_READDATA, t);
	r |= api.setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
	r |= api.setopt(easy, CURLOPT_SEEKDATA, t);
	r |= api.setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	r |= api.setopt(easy, CURLOPT_HEADERDATA, t);
	r |= api.setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	r |= api.setopt(easy, CURLOPT_WRITEDATA, t);
	r |= api.setopt(easy, CURLOPT_PREREQFUNCTION, on_sending);
	r |= api.setopt(easy, CURLOPT_PREREQDATA, t);
	if (req->pin && !t->names)
		r |= set_pin(t, easy);
	if (r)
		return err_set(t->err, ERR_INTERNAL, "libcurl refuses to make a request to \"%.*s\"", STR_ARG(t->host));
	return 0;
}

/* Whether to stop waiting; *ret_wait_ms is how long to wait at most if not. */
static int look(struct transfer *t, int *ret_wait_ms)
{
	int64_t now, next;
	curl_off_t up = 0;

	if (ctx_check(t->ctx, t->err) != 0)
		return err_prefix(t->err, "while waiting for \"%.*s\"", STR_ARG(t->host));
	now = clock_monotonic_ns();
	if (t->deadline_ns && now >= t->deadline_ns)
		return err_set(t->err, ERR_TIMEOUT, "\"%.*s\" did not answer within %lld ms", STR_ARG(t->host),
			       (long long)t->req->timeout_ms);
	next = now + 1000 * NS_PER_MS;
	if (t->ret->sent) {
		api.getinfo(t->slot->easy, CURLINFO_SIZE_UPLOAD_T, &up);
		if (up != t->moved) {
			t->moved = up;
			t->moved_ns = now;
		}
		if (now - t->moved_ns >= t->http->stall_ms * NS_PER_MS) {
			err_set(t->err, ERR_TIMEOUT, "\"%.*s\" has been silent for %u ms; check that the server works",
				STR_ARG(t->host), t->http->stall_ms);
			t->err->retryable = true;
			return -ERR_TIMEOUT;
		}
		next = t->moved_ns + t->http->stall_ms * NS_PER_MS;
	}
	if (t->deadline_ns && t->deadline_ns < next)
		next = t->deadline_ns;
	if (t->ctx->deadline_ns && t->ctx->deadline_ns < next)
		next = t->ctx->deadline_ns;
	if (now + LOOK_MS * NS_PER_MS < next)
		next = now + LOOK_MS * NS_PER_MS;
	*ret_wait_ms = (int)((next - now) / NS_PER_MS) + 1;
	return 0;
}

/* Drives the request to its end: 0 and libcurl's verdict, or the reason to give it up. */
static int run(struct transfer *t, CURLcode *ret_code)
{
	for (;;) {
		int running = 0, queued = 0, wait_ms = 0, r;
		CURLMcode m = api.multi_perform(t->slot->multi, &running);
		const CURLMsg *msg = api.multi_info(t->slot->multi, &queued);

		if (m != CURLM_OK)
			return err_set(t->err, ERR_INTERNAL, "libcurl gave up on a request to \"%.*s\"",
				       STR_ARG(t->host));
		if (msg && msg->msg == CURLMSG_DONE) {
			*ret_code = msg->data.result;
			return 0;
		}
		r = look(t, &wait_ms);
		if (r != 0)
			return r;
		api.multi_poll(t->slot->multi, NULL, 0, wait_ms, NULL);
	}
}

/* libcurl's verdict as an error. */
static int fail(struct transfer *t, CURLcode code)
{
	struct str h = t->host;
	struct err *err = t->err;

	switch (code) {
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_LOGIN_DENIED:
		if (t->ret->sent)
			return err_set(err, ERR_UNAVAILABLE, "\"%.*s\" does not answer in HTTP; check the address",
				       STR_ARG(h));
		return err_set(err, ERR_INVALID,
			       "the URL of \"%.*s\" is not valid; write http:// or https://, without a user name",
			       STR_ARG(h));
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(err, ERR_DENIED,
			       "the certificate of \"%.*s\" is not trusted; name the file of its certificate "
			       "authority, or replace the certificate",
			       STR_ARG(h));
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		err_set(err, ERR_UNAVAILABLE, "the name of \"%.*s\" cannot be resolved; check the name and the network",
			STR_ARG(h));
		break;
	case CURLE_COULDNT_CONNECT:
		err_set(err, ERR_UNAVAILABLE, "nothing answers at \"%.*s\"; check the address and that the server runs",
			STR_ARG(h));
		break;
	case CURLE_OPERATION_TIMEDOUT:
		err_set(err, ERR_UNAVAILABLE, "\"%.*s\" did not accept a connection within %u ms", STR_ARG(h),
			t->http->connect_ms);
		break;
	case CURLE_OUT_OF_MEMORY: /* what libcurl says of a header that is longer than it takes */
		return err_set(err, ERR_UNAVAILABLE, "\"%.*s\" sends headers that are too long; check the address",
			       STR_ARG(h));
	case CURLE_WEIRD_SERVER_REPLY:
		return err_set(err, ERR_UNAVAILABLE, "\"%.*s\" does not answer in HTTP; check the address", STR_ARG(h));
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		err_set(err, ERR_UNAVAILABLE, "\"%.*s\" closed the connection before its answer was complete",
			STR_ARG(h));
		break;
	default:
		err_set(err, ERR_UNAVAILABLE, "a request to \"%.*s\" failed: %s", STR_ARG(h), api.strerror(code));
	}
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

/* Once over one connection. *ret_again: the connection was an old one that turned out to be dead. */
static int attempt(struct transfer *t, bool fresh, bool *ret_again)
{
	CURLcode code = CURLE_OK;
	long opened = 0;
	int r = set_request(t, fresh);

	*ret_again = false;
	if (r != 0)
		return r;
	t->moved = 0;
	moved(t);
	if (api.multi_add(t->slot->multi, t->slot->easy) != CURLM_OK)
		return err_set(t->err, ERR_INTERNAL, "libcurl does not accept a request to \"%.*s\"", STR_ARG(t->host));
	r = run(t, &code);
	api.getinfo(t->slot->easy, CURLINFO_NUM_CONNECTS, &opened);
	api.multi_remove(t->slot->multi, t->slot->easy);
	if (r != 0)
		return r;
	if (t->failed)
		return -(int)t->err->kind;
	if (code == CURLE_OK || t->enough)
		return 0;
	*ret_again = (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING) &&
		     !t->answered && opened == 0 && t->ret->requests == 1;
	return fail(t, code);
}

static int perform(struct transfer *t)
{
	bool again = false;
	int r = set_headers(t);

	if (r == 0)
		r = attempt(t, false, &again);
	if (r != 0 && again && (t->taken == 0 || on_rewind(t, 0, SEEK_SET) == CURL_SEEKFUNC_OK))
		r = attempt(t, true, &again);
	api.slist_free(t->headers);
	api.slist_free(t->names);
	if (r != 0)
		return r;
	t->ret->headers = t->head;
	t->ret->header_count = t->head_count;
	t->ret->body = buf_str(&t->body);
	return 0;
}

int http_perform(struct http *http, struct ctx *ctx, const struct http_request *req, struct http_response *ret,
		 struct err *err)
{
	struct transfer t = {.http = http, .ctx = ctx, .req = req, .ret = ret, .host = host_of(req->url), .err = err};
	struct sigpipe held;
	int r;

	*ret = (struct http_response){0};
	pthread_once(&api_once, api_load);
	if (api_err.kind != ERR_NONE) {
		*err = api_err;
		return -(int)err->kind;
	}
	r = ctx_check(ctx, err);
	if (r != 0)
		return r;
	t.deadline_ns = req->timeout_ms > 0 ? clock_monotonic_ns() + req->timeout_ms * NS_PER_MS : 0;
	t.slot = slot_take(http);
	if (!t.slot)
		return err_set(err, ERR_INTERNAL, "libcurl cannot create a handle for \"%.*s\"", STR_ARG(t.host));
	sigpipe_hold(&held); /* a TLS connection that the other side closed */
	r = perform(&t);
	slot_give(http, t.slot);
	sigpipe_release(&held);
	return r;
}

struct str http_header_of(const struct http_response *response, const char *name)
{
	return header_find(response->headers, response->header_count, name);
}

void http_encode(struct buf *out, struct str text, bool keep_slash)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
		    c == '.' || c == '_' || c == '~' || (keep_slash && c == '/')) {
			buf_char(out, (char)c);
		} else {
			buf_char(out, '%');
			buf_char(out, "0123456789ABCDEF"[c >> 4]);
			buf_char(out, "0123456789ABCDEF"[c & 15]);
		}
	}
}
