/* SPDX-License-Identifier: Apache-2.0
 *
 * The API and its server with many concurrent clients, some of which never finish a request, and with lack of memory. Intended
 * for the sanitizers; the contents of replies are tested over HTTP from Python.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#include "base/alloc.h"
#include "base/json.h"

#define ASKERS 8u
#define ROUNDS 3u

static const char *paths[2];
static const struct ops_api_options traces = {.paths = paths, .path_count = 2};
static char ids[2][16]; /* of the two */

/* A route of each kind; %s is a trace. */
static const char *const routes[] = {
	"traces/%s/timeline", "traces/%s/views?parts=steps", "traces/%s/views?steps=2", "traces/%s/lines", "traces/%s/stacks",
	"traces/%s/modules?steps=1:3", "traces/%s/memory", "traces/%s/memory/curve?device=cpu", "traces/%s/advice",
	"traces/%s/info", "traces/%s/timeline/tiles?tiles=0.20.0,1.12.3", "traces/%s/timeline/search?q=aten",
	"traces/%s/timeline/events/3", "traces/%s/timeline/critical-path", "traces/%s/tables/kernels", "traces/%s/summary",
	"traces/%s/views?parts=top_finding",
	"traces/%s/analyses/idle_time_breakdown?steps=1", "traces/%s/views?steps=99", "traces/%s/none", "traces",
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

static void target_of(size_t route, const char *id, char target[256])
{
	char path[200];

	snprintf(path, sizeof(path), routes[route], id);
	snprintf(target, 256, "/api/v1/%s", path);
}

/* What two traces are called. */
static void learn_ids(void)
{
	struct ops_api *api = NULL;
	struct ops_reply reply;
	struct ops_error error;
	const char *at;

	assert_int_equal(ops_api_new(&traces, &api, &error), OPS_OK);
	assert_int_equal(ops_api_get(api, "/api/v1/traces", &reply, &error), OPS_OK);
	at = reply.body;
	for (size_t i = 0; i < 2; i++) {
		at = strstr(at, "\"id\"");
		assert_non_null(at);
		at = strchr(at + 4, '"');
		assert_non_null(at);
		snprintf(ids[i], sizeof(ids[i]), "%.12s", ++at);
	}
	ops_reply_release(&reply);
	ops_api_free(api);
}

/* --- at once --------------------------------------------------------------------------------------------------------- */

struct asker {
	struct ops_api *api;
	size_t number;
};

static void *request_all(void *context)
{
	struct asker *asker = context;
	struct ops_reply list;
	struct ops_error failed;

	/* Summaries are made at the same time, of traces that are ready and of those that are not. */
	if (ops_api_get(asker->api, "/api/v1/traces?summaries=all", &list, &failed))
		abort();
	ops_reply_release(&list);

	for (size_t i = 0; i < ROUNDS * ROUTES; i++) {
		struct ops_reply reply;
		struct ops_error error;
		char target[256];
		size_t route = (i + asker->number * 5) % ROUTES;

		target_of(route, ids[(i + asker->number) % 2], target);
		if (ops_api_get(asker->api, target, &reply, &error) || (reply.status != 200 && reply.status != 404)) {
			fprintf(stderr, "%s\n", target);
			abort();
		}
		ops_reply_release(&reply);
	}
	return NULL;
}

static void ask_at_once(void **state)
{
	/* Room for neither trace to stay: they are read, given up and read again. */
	struct ops_api_options options = traces;
	struct asker askers[ASKERS];
	pthread_t threads[ASKERS];

	(void)state;
	for (int tight = 0; tight < 2; tight++) {
		struct ops_api *api = NULL;
		struct ops_error error;

		options.memory_bytes = tight ? 1 : 0;
		assert_int_equal(ops_api_new(&options, &api, &error), OPS_OK);
		for (size_t i = 0; i < ASKERS; i++) {
			askers[i] = (struct asker){api, i};
			assert_int_equal(pthread_create(&threads[i], NULL, request_all, &askers[i]), 0);
		}
		for (size_t i = 0; i < ASKERS; i++)
			pthread_join(threads[i], NULL);
		ops_api_free(api);
	}
}

/* --- over HTTP -------------------------------------------------------------------------------------------------------- */

static int connect_to(const struct ops_server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(ops_server_port(server)),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(client >= 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	return client;
}

static void say(int client, const char *text)
{
	assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void ask_over_http(const struct ops_server *server, int client, size_t route)
{
	char target[256], request[512];

	target_of(route % ROUTES, ids[route % 2], target);
	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", target,
	         ops_server_token(server));
	say(client, request);
}

/* Some say nothing, some half of it, some never read, some ask and are gone; others are answered all the same. Then the
 * server stops with all of them there. */
static void odd_clients(void **state)
{
	const struct ops_server_options options = {.size = sizeof(options), .api = traces};
	struct ops_server *server = NULL;
	struct ops_error error;
	int odd[80];

	(void)state;
	if (ops_server_start(&options, &server, &error) == OPS_UNSUPPORTED)
		skip();
	assert_non_null(server);
	for (size_t i = 0; i < 80; i++) {
		odd[i] = connect_to(server);
		if (i % 4 == 1)
			say(odd[i], "GET /api/v1/traces HTTP/1.1\r\nHost: loc");
		for (size_t k = 0; i % 4 == 2 && k < 8; k++)
			ask_over_http(server, odd[i], i + k);
		if (i % 4 == 3) {
			ask_over_http(server, odd[i], i);
			close(odd[i]);
		}
	}
	for (size_t i = 0; i < 2 * ROUTES; i++) {
		int client = connect_to(server);
		char answer[16] = "";

		ask_over_http(server, client, i);
		assert_int_equal(recv(client, answer, 12, MSG_WAITALL), 12);
		assert_true(!strcmp(answer, "HTTP/1.1 200") || !strcmp(answer, "HTTP/1.1 404"));
		close(client);
	}
	ops_server_stop(server);
	for (size_t i = 0; i < 80; i++)
		if (i % 4 != 3)
			close(odd[i]);
}

/* More clients than there are connections, who never end their headers: who has something to ask is heard. */
static void slow_clients(void **state)
{
	const struct ops_server_options options = {.size = sizeof(options), .api = traces};
	const struct timeval patience = {.tv_sec = 20}; /* less than idle connections have */
	struct ops_server *server = NULL;
	struct ops_error error;
	static const char begun[] = "GET /api/v1/traces HTTP/1.1\r\nHost: loc";
	enum { SLOW = 600 };
	static int slow[SLOW];
	struct rlimit files;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < 2048 || setrlimit(RLIMIT_NOFILE, &files))
		skip();
	if (ops_server_start(&options, &server, &error) == OPS_UNSUPPORTED)
		skip();
	for (size_t i = 0; i < SLOW; i++) {
		slow[i] = connect_to(server);
		send(slow[i], begun, strlen(begun), MSG_NOSIGNAL); /* some are gone already */
	}
	for (size_t i = 0; i < ROUTES; i++) {
		int client = connect_to(server);
		char answer[16] = "";

		setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		ask_over_http(server, client, i);
		assert_int_equal(recv(client, answer, 12, MSG_WAITALL), 12);
		close(client);
	}
	ops_server_stop(server);
	for (size_t i = 0; i < SLOW; i++)
		close(slow[i]);
}

/* What a proxy may understand in another way than this server is refused. */
static void repeated_headers(void **state)
{
	static const char *const repeated[] = {"Host: localhost\r\nHost: other", "Host: localhost\r\nContent-Length: 0\r\nContent-Length: 0"};
	const struct ops_server_options options = {.size = sizeof(options), .api = traces};
	struct ops_server *server = NULL;
	struct ops_error error;

	(void)state;
	if (ops_server_start(&options, &server, &error) == OPS_UNSUPPORTED)
		skip();
	for (size_t i = 0; i < 2; i++) {
		int client = connect_to(server);
		char answer[16] = "", request[256];

		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n%s\r\n\r\n", repeated[i]);
		say(client, request);
		assert_int_equal(recv(client, answer, 12, MSG_WAITALL), 12);
		assert_string_equal(answer, "HTTP/1.1 400");
		close(client);
	}
	ops_server_stop(server);
}

/* --- without memory --------------------------------------------------------------------------------------------------- */

/* Every allocation fails once. The client gets an error, or the same reply as with memory. */
static void without_memory(void **state)
{
	struct ops_error error;

	(void)state;
	for (size_t route = 0; route < ROUTES; route++) {
		bool done = false;
		char target[256];

		target_of(route, ids[0], target);
		/* Some allocations are other threads', so the number differs from time to time; steps grow to bound the whole. */
		for (uint64_t nth = 1; !done; nth += 1 + nth / 16) {
			struct ops_api *api = NULL;
			struct ops_reply reply = {0};

			ops_alloc_fail_at(nth, false);
			if (!ops_api_new(&traces, &api, &error) && !ops_api_get(api, target, &reply, &error)) {
				assert_true(reply.status == 200 || reply.status >= 400);
				assert_non_null(reply.body);
			}
			done = ops_alloc_count() < nth;
			ops_alloc_fail_at(0, false);
			ops_reply_release(&reply);
			ops_api_free(api);
		}
	}
}

/* --- with limits ------------------------------------------------------------------------------------------------------ */

static void ask(struct ops_api *api, size_t route, struct ops_reply *ret_reply)
{
	char target[256];

	target_of(route, ids[0], target);
	assert_int_equal(ops_api_get(api, target, ret_reply, NULL), OPS_OK);
}

/* Each route at memory limits from almost nothing to enough: an error that names the limit, until the reply is the one without a
 * limit. */
static void limited_memory(void **state)
{
	struct ops_api_options options = traces;
	struct ops_api *free_api = NULL;
	size_t refused = 0;

	(void)state;
	assert_int_equal(ops_api_new(&traces, &free_api, NULL), OPS_OK);
	for (size_t route = 0; route < ROUTES; route++) {
		struct ops_reply expected, reply = {0};

		ask(free_api, route, &expected);
		for (uint64_t bytes = 1; reply.status != expected.status; bytes += 64 + bytes / 4) {
			struct ops_api *api = NULL;

			ops_reply_release(&reply);
			options.request_memory_bytes = bytes;
			assert_int_equal(ops_api_new(&options, &api, NULL), OPS_OK);
			for (int again = 0; again < 2; again++) { /* a refusal is not kept as a reply */
				ops_reply_release(&reply);
				ask(api, route, &reply);
				if (reply.status == expected.status)
					continue;
				refused++;
				assert_int_equal(reply.status, 503);
				assert_non_null(strstr(reply.body, "--request-memory"));
			}
			ops_api_free(api);
		}
		if (route < ROUTES - 1) { /* the list of traces says which are read */
			assert_int_equal(reply.size, expected.size);
			assert_memory_equal(reply.body, expected.body, expected.size);
		}
		ops_reply_release(&expected);
		ops_reply_release(&reply);
	}
	assert_true(refused > 100);
	ops_api_free(free_api);
}

/* Without CPU time nothing is answered that takes an allocation. */
static void limited_time(void **state)
{
	struct ops_api_options options = traces;
	struct ops_api *api = NULL;

	(void)state;
	options.request_seconds = 1e-9;
	assert_int_equal(ops_api_new(&options, &api, NULL), OPS_OK);
	for (size_t route = 0; route < ROUTES; route++) {
		struct ops_reply reply;

		if (strstr(routes[route], "none"))
			continue; /* there is no such route */
		ask(api, route, &reply);
		assert_int_equal(reply.status, 503);
		assert_non_null(strstr(reply.body, "--request-time"));
		ops_reply_release(&reply);
	}
	ops_api_free(api);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask_at_once), cmocka_unit_test(odd_clients), cmocka_unit_test(slow_clients),
		cmocka_unit_test(repeated_headers), cmocka_unit_test(without_memory),
		cmocka_unit_test(limited_memory), cmocka_unit_test(limited_time)};

	if (count != 3)
		return 2;
	paths[0] = arguments[1];
	paths[1] = arguments[2];
	learn_ids();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
