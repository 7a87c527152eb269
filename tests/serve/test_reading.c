/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of traces while one is being read. The trace is a pipe, so that the test controls the progress.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#include "base/alloc.h"
#include "serve/api.h"
#include "serve/catalog.h"

#define ID_SIZE 12
#define PIECE (2u << 20) /* more than the reader takes at once */

static char folder[] = "/tmp/opstrobe-reading-XXXXXX";
static char path[64];
static const char *const paths[] = {path};
static const struct ops_api_options traces = {.paths = paths, .path_count = 1};

static int make_pipe(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/pipe.pt.trace.json", folder);
	return mkfifo(path, 0600);
}

static int remove_pipe(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static struct ops_api *serve(void)
{
	struct ops_api *api = NULL;
	struct ops_error error;

	assert_int_equal(ops_api_new(&traces, &api, &error), OPS_OK);
	return api;
}

/* Returns the list as JSON, valid until the thread's next call. */
static const char *list(struct ops_api *api)
{
	static _Thread_local char text[2048];
	struct ops_reply reply;
	struct ops_error error;

	assert_int_equal(ops_api_get(api, "/api/v1/traces", &reply, &error), OPS_OK);
	assert_int_equal(reply.status, 200);
	assert_true(reply.size < sizeof(text));
	memcpy(text, reply.body, reply.size + 1);
	ops_reply_release(&reply);
	return text;
}

/* Asks until the list has that in it: reading goes on in another thread. */
static void await(struct ops_api *api, const char *wanted)
{
	while (!strstr(list(api), wanted))
		usleep(1000);
}

/* Returns the number after a name in the list. */
static uint64_t figure(struct ops_api *api, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(list(api), "\"progress\":");
	at = at ? strstr(at, key) : NULL;
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* --- requests for the trace, and waits --------------------------------------------------------------------------------- */

struct asker {
	struct ops_api *api;
	pthread_t thread;
	struct ops_reply reply;
	int fd; /* into the pipe */
};

static void *ask(void *context)
{
	struct asker *asker = context;
	const char *id = strstr(list(asker->api), "\"id\":\"");
	struct ops_error error;
	char target[64];

	snprintf(target, sizeof(target), "/api/v1/traces/%.*s/info", ID_SIZE, id + 6);
	ops_api_get(asker->api, target, &asker->reply, &error);
	return NULL;
}

static void begin(struct asker *asker, struct ops_api *api)
{
	*asker = (struct asker){.api = api};
	assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
	await(api, "\"state\":\"reading\"");
	asker->fd = open(path, O_WRONLY | O_CLOEXEC);
}

static int end(struct asker *asker)
{
	pthread_join(asker->thread, NULL);
	return asker->reply.status;
}

static void release(struct asker *asker)
{
	ops_reply_release(&asker->reply);
	ops_api_free(asker->api);
}

/* --- the pipe --------------------------------------------------------------------------------------------------------- */

static void feed(int fd, const char *text, size_t size)
{
	for (ssize_t written; size; text += written, size -= (size_t)written) {
		written = write(fd, text, size);
		assert_true(written > 0);
	}
}

static void feed_last(const struct asker *asker, const char *text)
{
	feed(asker->fd, text, strlen(text));
	close(asker->fd);
}

/* Events, as many as make a piece, which are read; returns how many. */
static uint64_t feed_piece(const struct asker *asker)
{
	static const char event[] = "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1},";
	uint64_t count = PIECE / (sizeof(event) - 1);

	for (uint64_t i = 0; i < count; i++)
		feed(asker->fd, event, sizeof(event) - 1);
	while (!figure(asker->api, "events"))
		usleep(1000);
	return count;
}

/* --- tests ------------------------------------------------------------------------------------------------------------ */

static void progress_until_ready(void **state)
{
	struct ops_api *api = serve();
	struct asker asker;
	char wanted[32];
	uint64_t count;

	(void)state;
	assert_non_null(strstr(list(api), "\"state\":\"listed\""));
	assert_non_null(strstr(list(api), "\"progress\":null"));
	begin(&asker, api);
	assert_non_null(strstr(list(api), "\"progress\":{\"share\":null,\"bytes\":0,\"events\":0,\"notes\":0}"));
	feed(asker.fd, "[,", 2);
	count = feed_piece(&asker);
	assert_true(figure(api, "bytes") > 100000);
	assert_int_equal(figure(api, "notes"), 1); /* the comma */
	assert_non_null(strstr(list(api), "\"state\":\"reading\""));
	feed_last(&asker, "{}]");
	assert_int_equal(end(&asker), 200);
	assert_non_null(strstr(list(api), "\"state\":\"ready\",\"progress\":null"));
	snprintf(wanted, sizeof(wanted), "\"events\":%" PRIu64, count);
	assert_non_null(strstr(list(api), wanted));
	release(&asker);
}

static void error_is_reported(void **state)
{
	struct asker asker;

	(void)state;
	begin(&asker, serve());
	feed_last(&asker, "[7 8]");
	assert_int_equal(end(&asker), 422);
	assert_non_null(strstr(asker.reply.body, "byte 3: expected ',' or ']'"));
	assert_non_null(strstr(list(asker.api), "\"state\":\"failed\""));
	assert_non_null(strstr(list(asker.api), "byte 3: expected ',' or ']'"));
	release(&asker);
}

static void out_of_memory_is_reported(void **state)
{
	struct asker asker;

	(void)state;
	begin(&asker, serve());
	feed(asker.fd, "[", 1);
	feed_piece(&asker);
	/* Nobody but the reader allocates now. */
	ops_alloc_fail_at(1, false);
	feed_last(&asker, "{\"ph\":\"X\",\"name\":\"new\",\"pid\":2,\"tid\":2,\"ts\":5}]");
	while (!ops_alloc_count())
		usleep(1000);
	ops_alloc_fail_at(0, false);
	assert_int_equal(end(&asker), 422);
	assert_non_null(strstr(list(asker.api), "out of memory"));
	release(&asker);
}

static void *stop(void *api)
{
	ops_api_free(api);
	return NULL;
}

/* What stops does not read to the end. */
static void stops_while_reading(void **state)
{
	struct ops_api *api = serve();
	pthread_t thread;
	int fd;

	(void)state;
	catalog_read_only(api->catalog); /* as a server does, before it is asked */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pthread_create(&thread, NULL, stop, api), 0);
	while (write(fd, "[        ", 9) > 0)
		;
	pthread_join(thread, NULL);
	close(fd);
}

/* A pipe in a folder is not a trace: nobody may ever write to it. */
static void pipes_in_folders_are_passed_over(void **state)
{
	static const char *const folders[] = {folder};
	const struct ops_api_options options = {.paths = folders, .path_count = 1};
	struct ops_api *api = NULL;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_api_new(&options, &api, &error), OPS_OK);
	assert_non_null(strstr(list(api), "\"traces\":[]"));
	ops_api_free(api);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_until_ready),
		cmocka_unit_test(error_is_reported),
		cmocka_unit_test(out_of_memory_is_reported),
		cmocka_unit_test(stops_while_reading),
		cmocka_unit_test(pipes_in_folders_are_passed_over),
	};

	return cmocka_run_group_tests(tests, make_pipe, remove_pipe);
}
