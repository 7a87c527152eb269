/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouping of traces by job.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <opstrobe/read.h>

#include "analyze/ranks/trace_job.h"

/* Returns the job facts of a trace from `start_ms` to `end_ms`, with further members of the file. */
static struct ops_trace_job job_of(const char *members, int start_ms, int end_ms, const char *path)
{
	struct ops_trace_job job;
	struct ops_trace *trace;
	struct ops_error error;
	char *text;
	int size = asprintf(&text,
	                    "{%s\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%d000,\"dur\":1},"
	                    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":%d000,\"dur\":%d000}]}",
	                    members, start_ms, start_ms, end_ms - start_ms);

	assert_true(size > 0);
	if (ops_trace_read_memory(text, (size_t)size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	free(text);
	trace_job_read(trace, path, &job);
	ops_trace_unref(trace);
	return job;
}

#define RANK(rank, world) "\"distributedInfo\":{\"rank\":" #rank ",\"world_size\":" #world "},"

static void test_diagnostics_of_a_trace(void **state)
{
	struct ops_trace_job job = job_of(RANK(3, 8) "\"job\":\"run-7\",", 1, 21, "a.json");

	(void)state;
	assert_int_equal(job.rank, 3);
	assert_int_equal(job.world_size, 8);
	assert_string_equal(job.name, "\"run-7\"");
	assert_int_equal(job.end_ns - job.start_ns, 20000000);
	job = job_of("", 1, 2, "/x/rank-5.json");
	assert_int_equal(job.rank, 5);
	assert_int_equal(job.world_size, -1);
	assert_string_equal(job.name, "");
	job = job_of("", 1, 2, "/x/train.json");
	assert_int_equal(job.rank, -1);
}

static void assert_shared(struct ops_trace_job a, struct ops_trace_job b, bool same_folder, bool shared)
{
	assert_int_equal(ops_trace_job_is_shared(&a, &b, same_folder), shared);
	assert_int_equal(ops_trace_job_is_shared(&b, &a, same_folder), shared);
}

static void test_ranks_of_one_job(void **state)
{
	struct ops_trace_job first = job_of(RANK(0, 2), 0, 50, NULL);

	(void)state;
	assert_shared(first, job_of(RANK(1, 2), 10, 60, NULL), true, true);
	assert_shared(first, job_of(RANK(1, 2), 10, 60, NULL), false, false);
	assert_shared(first, job_of("", 10, 60, "rank1.json"), true, true); /* whose name has the rank */
	assert_shared(first, job_of(RANK(1, 2), 9000, 9050, NULL), true, true); /* clocks differ */
}

static void test_traces_that_only_share_a_folder(void **state)
{
	struct ops_trace_job first = job_of(RANK(0, 2), 0, 50, NULL);

	(void)state;
	assert_shared(first, job_of(RANK(0, 2), 0, 50, NULL), true, false);         /* the same rank */
	assert_shared(first, job_of(RANK(1, 4), 0, 50, NULL), true, false);         /* another number of ranks */
	assert_shared(first, job_of(RANK(1, 2), 20000, 20050, NULL), true, false);  /* another time */
	assert_shared(first, job_of("", 0, 50, "train.json"), true, false);         /* no rank */
	assert_shared(job_of(RANK(0, 1), 0, 50, NULL), job_of("", 0, 50, "rank1.json"), true, false); /* one process */
}

static void test_named_jobs(void **state)
{
	struct ops_trace_job first = job_of(RANK(0, 2) "\"job\":\"a\",", 0, 50, NULL);

	(void)state;
	assert_shared(first, job_of(RANK(1, 2) "\"job\":\"a\",", 0, 50, NULL), false, true);
	assert_shared(first, job_of(RANK(1, 2) "\"job\":\"b\",", 0, 50, NULL), true, false);
	assert_shared(first, job_of(RANK(1, 2), 0, 50, NULL), true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_diagnostics_of_a_trace), cmocka_unit_test(test_ranks_of_one_job),
	                                   cmocka_unit_test(test_traces_that_only_share_a_folder), cmocka_unit_test(test_named_jobs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
