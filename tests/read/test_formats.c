/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of formats other than Chrome JSON, given by their paths, while memory runs out and when reading is cancelled. Their
 * contents are compared in tests/cli.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "../base/failing.h"

/* What a file has when nothing fails. */
static const struct expected {
	const char *name;
	size_t events;
	size_t memory_records;
} files[] = {
	{"perfetto.pftrace", 5, 0}, /* and a counter */
	{"snapshot.pickle", 0, 22},
	{"flight_recorder.pickle", 4, 0},
	{"gpu.xplane.pb", 8, 0},
	{"stacks.speedscope", 6, 0},
	{"stacks.folded", 6, 0},
	{"stacks.pprof", 6, 0},
	{"stacks.perf", 4, 0},
	{"rocprof.json", 11, 0},
	{"chakra.et", 5, 0},
	{"execution.json", 6, 0},
};
#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

static const char *const *paths; /* of the files, in their order */

struct one_file {
	const char *path;
	const struct expected *expected;
};

static void read_once(void *context)
{
	const struct one_file *file = context;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code = ops_trace_read(file->path, NULL, &trace, &error);
	size_t count;

	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	if (code)
		return;
	code = ops_trace_check(trace, &error); /* allocates, too */
	if (code && code != OPS_NO_MEMORY)
		fail_msg("%s", error.text);
	assert_int_equal(ops_trace_events(trace)->count, file->expected->events);
	ops_trace_memory(trace, &count);
	assert_int_equal(count, file->expected->memory_records);
	ops_trace_unref(trace);
}

static void reading_survives_allocation_failures(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		struct one_file file = {paths[i], &files[i]};

		assert_non_null(strstr(paths[i], files[i].name));
		assert_true(fail_each(read_once, &file) > 30);
	}
}

static int cancel(void *context, const struct ops_read_progress *progress)
{
	(void)progress;
	++*(int *)context;
	return 1;
}

static void reading_is_cancelled(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		int calls = 0;
		struct ops_read_options options = {.size = sizeof(options), .progress = cancel, .progress_context = &calls};
		struct ops_trace *trace = NULL;
		struct ops_error error;

		assert_int_equal(ops_trace_read(paths[i], &options, &trace, &error), OPS_STATE);
		assert_int_equal(calls, 1);
		assert_null(trace);
	}
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_survives_allocation_failures),
		cmocka_unit_test(reading_is_cancelled),
	};

	if (count != (int)FILE_COUNT + 1)
		return 77;
	paths = (const char *const *)arguments + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
