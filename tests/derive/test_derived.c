/* SPDX-License-Identifier: Apache-2.0
 *
 * Derived objects of a trace: computed once, shared by threads, and computed again after a change of their input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/read.h>
#include <opstrobe/internal/views.h>

#include "base/alloc.h"
#include "derive/backward.h"
#include "derive/launches.h"
#include "derive/steps.h"
#include "trace/derived.h"

#define THREADS 8

static struct ops_trace *read_trace(void)
{
	static const char json[] =
		"{\"traceEvents\": ["
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":90},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":20},"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":15,\"dur\":5,"
		"\"args\":{\"correlation\":7}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":30,"
		"\"args\":{\"correlation\":7,\"device\":0,\"stream\":7}}]}";
	struct ops_trace *trace;

	assert_int_equal(ops_trace_read_memory(json, strlen(json), NULL, &trace, NULL), OPS_OK);
	return trace;
}

static void views_text(struct ops_trace *trace)
{
	char *text;
	size_t size;

	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	ops_free(text);
}

static void *find_columns(void *trace)
{
	const void **found = ops_alloc_zeroed(3, sizeof(*found));

	found[0] = ops_launchers(trace);
	found[1] = ops_forward_rows(trace);
	found[2] = ops_steps_of(trace);
	return found;
}

static void threads_share_one_object(void **state)
{
	struct ops_trace *trace = read_trace();
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_columns, trace), 0);
	for (int i = 0; i < THREADS; i++) {
		void *found;

		pthread_join(threads[i], &found);
		assert_ptr_equal(((const void **)found)[0], ops_launchers(trace));
		assert_ptr_equal(((const void **)found)[1], ops_forward_rows(trace));
		assert_ptr_equal(((const void **)found)[2], ops_steps_of(trace));
		ops_free(found);
	}
	ops_trace_unref(trace);
}

/* Text, kernels, a diff and advice use one model of the views. */
static void consumers_share_the_views(void **state)
{
	struct ops_trace *trace = read_trace();
	const struct ops_rank rank = {.trace = trace, .name = "worker"};
	struct ops_diff_verdict verdict;
	const void *views;
	char *text;
	size_t size;

	(void)state;
	assert_null(ops_trace_derived(trace, OPS_DERIVED_VIEWS));
	views_text(trace);
	views = ops_trace_derived(trace, OPS_DERIVED_VIEWS);
	assert_non_null(views);
	assert_true(ops_trace_derived_bytes(trace) > 0);
	assert_int_equal(ops_query(&(struct ops_run){.ranks = &rank, .count = 1}, "kernels", NULL, &text, &size, NULL), OPS_OK);
	ops_free(text);
	assert_int_equal(ops_diff(trace, trace, &(struct ops_diff_options){0}, &text, &size, &verdict, NULL), OPS_OK);
	ops_free(text);
	assert_int_equal(ops_advise(&rank, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	ops_free(text);
	assert_ptr_equal(ops_trace_derived(trace, OPS_DERIVED_VIEWS), views);
	ops_trace_unref(trace);
}

/* Traces of several workers meet once: their views do not stay. */
static void views_of_several_workers_do_not_stay(void **state)
{
	struct ops_trace *traces[2] = {read_trace(), read_trace()};
	const struct ops_rank ranks[2] = {{.trace = traces[0], .name = "a"}, {.trace = traces[1], .rank = 1, .name = "b"}};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_query(&(struct ops_run){.ranks = ranks, .count = 2}, "kernels", NULL, &text, &size, NULL), OPS_OK);
	ops_free(text);
	for (int i = 0; i < 2; i++) {
		assert_null(ops_trace_derived(traces[i], OPS_DERIVED_VIEWS));
		assert_non_null(ops_trace_derived(traces[i], OPS_DERIVED_LAUNCHERS));
		ops_trace_unref(traces[i]);
	}
}

static void metadata_ends_the_views(void **state)
{
	static const char key[] = "Framework", json[] = "\"pytorch-lightning\"";
	struct ops_trace *trace = read_trace();
	const uint32_t *launchers;

	(void)state;
	views_text(trace);
	launchers = ops_launchers(trace);
	assert_int_equal(ops_trace_set_metadata(trace, key, strlen(key), json, strlen(json), NULL), OPS_OK);
	assert_null(ops_trace_derived(trace, OPS_DERIVED_VIEWS));
	assert_ptr_equal(ops_launchers(trace), launchers);
	ops_trace_unref(trace);
}

static void without_memory_nothing_is_kept(void **state)
{
	struct ops_trace *trace = read_trace();

	(void)state;
	ops_alloc_fail_at(1, true);
	assert_null(ops_launchers(trace));
	assert_null(ops_steps_of(trace));
	ops_alloc_fail_at(0, false);
	assert_non_null(ops_launchers(trace));
	assert_int_equal(ops_steps_of(trace)->list.count, 1);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_one_object),
		cmocka_unit_test(consumers_share_the_views),
		cmocka_unit_test(views_of_several_workers_do_not_stay),
		cmocka_unit_test(metadata_ends_the_views),
		cmocka_unit_test(without_memory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
