/* SPDX-License-Identifier: Apache-2.0 */
/* Health, and the numbers of the server in the text format of Prometheus. No number names a tenant. */
#include "base/clock.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "stead.h"

static const struct {
	int64_t micros;
	const char *shown;
} bounds[TIME_BUCKETS] = {{500, "0.0005"}, {1000, "0.001"}, {5000, "0.005"},  {25000, "0.025"},
			  {100000, "0.1"}, {500000, "0.5"}, {2500000, "2.5"}, {10000000, "10"}};

static size_t route_index(const struct route *route)
{
	return route ? (size_t)(route - routes) : ROUTES_MAX;
}

void metrics_count(struct serve *s, const struct exchange *x)
{
	const struct web_call *call = x->state;
	struct route_numbers *n = &s->numbers[route_index(call ? call->route : NULL)];
	int64_t micros = (clock_monotonic_ns() - x->started_ns) / 1000;
	size_t bucket = 0;

	while (bucket < TIME_BUCKETS && micros > bounds[bucket].micros)
		bucket++;
	atomic_fetch_add(&n->micros, (unsigned long long)micros);
	if (x->answer_size != UINT64_MAX)
		atomic_fetch_add(&n->bytes, x->answer_size);
	atomic_fetch_add(&n->by_time[bucket], 1);
	atomic_fetch_add(&n->by_class[x->status / 100 < 6 ? x->status / 100 : 0], 1);
}

static void write_one(struct buf *b, const char *name, const char *kind, const char *help, uint64_t value)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name, (unsigned long long)value);
}

static void write_requests(struct buf *b, struct serve *s)
{
	buf_lit(b, "# HELP stead_http_requests_total Requests answered.\n# TYPE stead_http_requests_total counter\n");
	for (size_t i = 0; i <= ROUTES_MAX; i++) {
		const char *id = i < ROUTES_MAX ? routes[i].id : "none";

		for (size_t c = 0; c < COUNT(s->numbers[i].by_class); c++) {
			unsigned long long n = atomic_load(&s->numbers[i].by_class[c]);

			if (n)
				buf_printf(b, "stead_http_requests_total{route=\"%s\",status=\"%zuxx\"} %llu\n", id, c,
					   n);
		}
		if (i < ROUTES_MAX && !routes[i + 1].path)
			i = ROUTES_MAX - 1;
	}
}

static void write_times(struct buf *b, struct serve *s)
{
	buf_lit(b, "# HELP stead_http_request_seconds Time from the first byte of a request to the end of its answer.\n"
		   "# TYPE stead_http_request_seconds histogram\n");
	for (size_t i = 0; routes[i].path; i++) {
		struct route_numbers *n = &s->numbers[i];
		unsigned long long sum = 0;

		for (size_t t = 0; t <= TIME_BUCKETS; t++) {
			sum += atomic_load(&n->by_time[t]);
			buf_printf(b, "stead_http_request_seconds_bucket{route=\"%s\",le=\"%s\"} %llu\n", routes[i].id,
				   t < TIME_BUCKETS ? bounds[t].shown : "+Inf", sum);
		}
		buf_printf(b, "stead_http_request_seconds_sum{route=\"%s\"} %.6f\n", routes[i].id,
			   (double)atomic_load(&n->micros) / 1e6);
		buf_printf(b, "stead_http_request_seconds_count{route=\"%s\"} %llu\n", routes[i].id, sum);
	}
}

void run_metrics(struct exchange *x)
{
	struct serve *s = x->arg;
	uint64_t bytes = 0;
	struct buf b;

	buf_init(&b, x->arena, 1 * MIB);
	buf_lit(&b, "# HELP stead_info The version.\n# TYPE stead_info gauge\nstead_info{version=\"" STEAD_VERSION
		    "\"} 1\n");
	for (size_t i = 0; i <= ROUTES_MAX; i++)
		bytes += atomic_load(&s->numbers[i].bytes);
	write_one(&b, "stead_http_connections", "gauge", "Open connections.", httpd_connections(s->httpd));
	write_one(&b, "stead_http_waiting", "gauge", "Requests waiting for a thread.", httpd_waiting(s->httpd));
	write_one(&b, "stead_http_sent_bytes_total", "counter", "Bytes in response bodies.", bytes);
	write_one(&b, "stead_workspaces_open", "gauge", "Open workspaces, counted by user.", tenants_count(s->tenants));
	write_one(&b, "stead_events_watchers", "gauge", "Clients waiting for events.", feeds_watchers(s->feeds));
	write_one(&b, "process_start_time_seconds", "gauge", "When the server was started.",
		  (uint64_t)(s->started_ns / NS_PER_S));
	write_requests(&b, s);
	write_times(&b, s);
	exchange_add_header(x, "Content-Type", STR("text/plain; version=0.0.4; charset=utf-8"));
	exchange_answer(x, 200, buf_str(&b));
}

void run_health(struct exchange *x)
{
	exchange_add_header(x, "Content-Type", STR("text/plain; charset=utf-8"));
	exchange_answer(x, 200, STR("ok\n"));
}

void run_ready(struct exchange *x)
{
	struct serve *s = x->arg;
	struct ctx ctx = exchange_ctx(x);
	struct store_list_req req = {.limit = 1};
	struct store_page page;
	struct err err;
	int r;

	ctx.deadline_ns = clock_monotonic_ns() + 5 * NS_PER_S;
	r = store_list(s->base, &ctx, WPATH_ROOT, &req, &page, &err);
	if (r) {
		/* what a store says of itself is not for everybody */
		err_set(&err, ERR_UNAVAILABLE, "the store does not answer");
		answer_error(x, &err);
		return;
	}
	run_health(x);
}
