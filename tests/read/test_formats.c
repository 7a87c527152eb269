/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of formats that are not JSON: a trace of Perfetto, a memory snapshot and a dump of the flight recorder, given by their paths. What they say is compared
 * in tests/cli/test_formats_in.py.
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

static const char *perfetto, *snapshot, *dump;

/* What the file has when nothing fails. */
struct expected {
	const char *path;
	size_t events;
	size_t memory_records;
};

static void read_once(void *context)
{
	const struct expected *expected = context;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code = ops_trace_read(expected->path, NULL, &trace, &error);
	size_t count;

	assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	if (code)
		return;
	code = ops_trace_check(trace, &error); /* allocates, too */
	if (code && code != OPS_NO_MEMORY)
		fail_msg("%s", error.text);
	assert_int_equal(ops_trace_events(trace)->count, expected->events);
	ops_trace_memory(trace, &count);
	assert_int_equal(count, expected->memory_records);
	ops_trace_unref(trace);
}

static void perfetto_survives_allocation_failures(void **state)
{
	struct expected expected = {perfetto, 5, 0}; /* and a counter */

	(void)state;
	assert_true(fail_each(read_once, &expected) > 30);
}

static void snapshot_survives_allocation_failures(void **state)
{
	struct expected expected = {snapshot, 0, 22};

	(void)state;
	assert_true(fail_each(read_once, &expected) > 30);
}

static void dump_survives_allocation_failures(void **state)
{
	struct expected expected = {dump, 4, 0};

	(void)state;
	assert_true(fail_each(read_once, &expected) > 30);
}

static int cancel(void *context, const struct ops_read_progress *progress)
{
	(void)progress;
	++*(int *)context;
	return 1;
}

static void reading_is_cancelled(void **state)
{
	const char *const paths[] = {perfetto, snapshot, dump};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
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
		cmocka_unit_test(perfetto_survives_allocation_failures),
		cmocka_unit_test(snapshot_survives_allocation_failures),
		cmocka_unit_test(dump_survives_allocation_failures),
		cmocka_unit_test(reading_is_cancelled),
	};

	if (count != 4)
		return 77;
	perfetto = arguments[1];
	snapshot = arguments[2];
	dump = arguments[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
