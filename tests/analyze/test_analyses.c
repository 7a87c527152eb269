/* SPDX-License-Identifier: Apache-2.0
 *
 * Every analysis on small, unusual and hostile traces; with each allocation failing once; and the interface of analyses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/read.h>

#include "base/alloc.h"
#include "base/json.h"

#define SPAN(cat, name, pid, tid, ts, dur, args)                                                   \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts        \
	",\"dur\":" dur ",\"args\":{" args "}}"

/* Two steps, a launch of two kernels that overlap, a copy, an annotation, a wait. */
static const char ordinary[] =
	"{\"distributedInfo\":{\"rank\":3},\"traceEvents\":["
	SPAN("user_annotation", "ProfilerStep#5", "1", "1", "100", "100", "") ","
	SPAN("user_annotation", "ProfilerStep#6", "1", "1", "200", "100", "") ","
	SPAN("cuda_runtime", "cudaGraphLaunch", "1", "1", "110", "10", "\"correlation\":1") ","
	SPAN("cuda_runtime", "cudaMemcpyAsync", "1", "1", "130", "5.5", "\"correlation\":2") ","
	SPAN("cuda_runtime", "cudaLaunchKernel", "1", "1", "230", "5", "\"correlation\":3") ","
	SPAN("kernel", "gemm", "0", "7", "140", "20", "\"correlation\":1,\"stream\":7") ","
	SPAN("kernel", "ncclDevKernel_AllReduce", "0", "7", "150", "20", "\"correlation\":1,\"stream\":7") ","
	SPAN("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "0", "7", "180", "0",
	     "\"correlation\":2,\"stream\":7,\"memory bandwidth (GB/s)\":2.5") ","
	SPAN("kernel", "late", "0", "7", "240", "5", "\"correlation\":3,\"stream\":7") ","
	SPAN("gpu_user_annotation", "part", "0", "7", "145", "3", "") ","
	SPAN("graph_host_node", "HostNode", "0", "7", "200", "20", "\"correlation\":1,\"stream\":7") ","
	SPAN("graph_event_node", "EventRecord", "0", "7", "225", "1", "\"correlation\":1,\"stream\":7") ","
	SPAN("cuda_memory", "Memory Allocation (Device)", "0", "7", "228", "0", "\"correlation\":1,\"stream\":7") ","
	SPAN("cuda_sync", "Event Sync", "0", "7", "100", "190", "\"correlation\":9,\"stream\":7") "]}";

static const char *const odd[] = {
	"[]",
	"[" SPAN("kernel", "k", "0", "0", "1", "1", "\"stream\":0") "]",
	/* Times at the ends of what there is. */
	"[" SPAN("kernel", "a", "0", "0", "-3999999999999999", "1", "\"stream\":0,\"correlation\":1") ","
	SPAN("cuda_runtime", "cudaLaunchKernel", "0", "0", "3999999999999999", "1", "\"correlation\":1") ","
	SPAN("user_annotation", "ProfilerStep#999999999999999999999", "0", "0", "3999999999999999", "1", "") ","
	SPAN("user_annotation", "ProfilerStep#1", "0", "0", "-3999999999999999", "3999999999999999", "") "]",
	/* Steps without numbers, streams that are none, bandwidths that are none. */
	"[" SPAN("user_annotation", "ProfilerStep", "0", "0", "1", "1", "") ","
	SPAN("user_annotation", "ProfilerStep#", "0", "0", "1", "1", "") ","
	SPAN("gpu_memcpy", "Memcpy", "0", "0", "1", "1", "\"stream\":\"0x7\",\"correlation\":1e300") ","
	SPAN("gpu_memcpy", "Mem", "0", "0", "1", "1", "\"stream\":1e18,\"memory bandwidth (GB/s)\":\"inf\"") ","
	SPAN("gpu_memset", "Memset", "0", "0", "1", "1", "\"stream\":-5,\"correlation\":-1") "]",
	/* All of one correlation. */
	"[" SPAN("kernel", "a", "0", "1", "1", "1", "\"stream\":1,\"correlation\":1") ","
	SPAN("kernel", "b", "0", "1", "1", "1", "\"stream\":1,\"correlation\":1") ","
	SPAN("cuda_runtime", "cudaLaunchKernel", "0", "0", "1", "0", "\"correlation\":1") ","
	SPAN("cuda_runtime", "cudaLaunchKernel", "0", "0", "1", "0", "\"correlation\":1") "]",
};

static struct ops_trace *read_text(const char *text)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read_memory(text, strlen(text), NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static enum ops_code ask(const char *id, const struct ops_trace *trace, const struct ops_analyze_options *options,
                         char **ret_text, struct ops_error *error)
{
	struct ops_rank ranks[] = {{.rank = 3, .trace = trace}, {.rank = 4, .trace = trace}};
	size_t size;

	return ops_analyze(id, ranks, ops_analysis_find(id)->inputs == OPS_QUERY_PAIR ? 2 : 1, options, ret_text, &size,
	                   error);
}

static void assert_answer(const char *id, const struct ops_trace *trace, const char *args, bool round, const char *expected)
{
	struct ops_analyze_options options = {.args = args, .round_to_us = round};
	struct ops_error error;
	char *text;

	if (ask(id, trace, &options, &text, &error))
		fail_msg("%s: %s", id, error.text);
	assert_string_equal(text, expected);
	ops_free(text);
}

static void test_rank_of_a_trace(void **state)
{
	struct ops_trace *said = read_text(ordinary), *unsaid = read_text("[]");

	(void)state;
	assert_int_equal(ops_trace_rank(said, "rank-7.json"), 3);
	assert_int_equal(ops_trace_rank(unsaid, "dir_9/rank-7.json.gz"), 7);
	assert_int_equal(ops_trace_rank(unsaid, "rank12_a.json"), 12);
	assert_int_equal(ops_trace_rank(unsaid, "worker_4.json"), 4);
	assert_int_equal(ops_trace_rank(unsaid, "trace.json"), -1);
	assert_int_equal(ops_trace_rank(unsaid, NULL), -1);
	ops_trace_unref(said);
	ops_trace_unref(unsaid);
}

/* The second step is left out, with what it launched. Busy are 140…170 and 180. */
static void test_temporal_breakdown(void **state)
{
	struct ops_trace *trace = read_text(ordinary);

	(void)state;
	assert_answer("temporal_breakdown", trace, NULL, false,
	              "{\"table\":{\"columns\":[\"rank\",\"idle_time(us)\",\"compute_time(us)\",\"non_compute_time(us)\","
	              "\"kernel_time(us)\",\"idle_time_pctg\",\"compute_time_pctg\",\"non_compute_time_pctg\"],"
	              "\"rows\":[[3,10,20,10,40,25,50,25]]},\"left_out_step\":6}\n");
	assert_answer("comm_comp_overlap", trace, NULL, false,
	              "{\"table\":{\"columns\":[\"rank\",\"comp_comm_overlap_pctg\"],\"rows\":[[3,50]]},\"left_out_step\":6}\n");
	assert_answer("profiler_steps", trace, NULL, false, "{\"value\":[5],\"left_out_step\":6}\n");
	ops_trace_unref(trace);
}

/* The kernel and the collective overlap; the copy is called before they end, and so did not wait for the host. */
static void test_idle_time(void **state)
{
	struct ops_trace *trace = read_text(ordinary);

	(void)state;
	assert_answer("idle_time_breakdown", trace, "{\"ranks\":[3]}", false,
	              "{\"table\":{\"columns\":[\"rank\",\"stream\",\"idle_category\",\"idle_time\",\"idle_time_ratio\",\"device\"],"
	              "\"rows\":[[3,7,\"kernel_wait\",10,1,0],[3,7,\"other\",0,0,0]]},\"left_out_step\":6}\n");
	ops_trace_unref(trace);
}

/* The call of the copy takes 5.5 us: rounded it ends at 135. */
static void test_rounding(void **state)
{
	struct ops_trace *trace = read_text(
		"[" SPAN("cuda_runtime", "cudaLaunchKernel", "1", "1", "0.5", "2.1", "\"correlation\":2") ","
		SPAN("kernel", "k", "0", "7", "10.25", "0.5", "\"correlation\":2,\"stream\":7") "]");

	(void)state;
	assert_answer("gpu_kernel_breakdown.by_kernel", trace, NULL, false,
	              "{\"table\":{\"columns\":[\"name\",\"sum (us)\",\"max (us)\",\"min (us)\",\"stddev\",\"mean (us)\",\"kernel_type\","
	              "\"rank\"],\"rows\":[[\"k\",0.5,0.5,0.5,0,0.5,\"COMPUTATION\",3]]}}\n");
	assert_answer("gpu_kernel_breakdown.by_kernel", trace, NULL, true,
	              "{\"table\":{\"columns\":[\"name\",\"sum (us)\",\"max (us)\",\"min (us)\",\"stddev\",\"mean (us)\",\"kernel_type\","
	              "\"rank\"],\"rows\":[[\"k\",-1,-1,-1,0,-1,\"COMPUTATION\",3]]}}\n");
	ops_trace_unref(trace);
}

static void assert_refused(const char *id, const char *args, const char *why)
{
	struct ops_analyze_options options = {.args = args};
	struct ops_trace *trace = read_text(ordinary);
	struct ops_error error;
	char *text;

	assert_int_equal(ask(id, trace, &options, &text, &error), OPS_INVALID);
	if (!strstr(error.text, why))
		fail_msg("'%s' where '%s' was expected", error.text, why);
	assert_null(text);
	ops_trace_unref(trace);
}

static void test_refused(void **state)
{
	(void)state;
	assert_null(ops_analysis_find("nonsense"));
	assert_refused("temporal_breakdown", "{\"nonsense\":1}", "has no option 'nonsense'");
	assert_refused("temporal_breakdown", "[1]", "must be a JSON object");
	assert_refused("temporal_breakdown", "{", "options: ");
	assert_refused("temporal_breakdown", "{\"limit\":\"1\"}", "must be a whole number");
	assert_refused("idle_time_breakdown", "{\"ranks\":[5]}", "rank 5 does not exist; the lowest is 3");
	assert_refused("idle_time_breakdown", "{\"ranks\":5}", "must be a list of ranks");
	assert_refused("idle_time_breakdown", "{\"consecutive_kernel_delay\":1e300}", "too large");
	assert_refused("user_annotation_breakdown", "{\"use_gpu_annotation\":1}", "must be true or false");
	assert_refused("trace_with_counters", NULL, "was not read from a file");
}

/* Ids that read or write other files have separate tests. */
static bool is_of_files(const struct ops_query_info *analysis)
{
	return analysis->inputs == OPS_QUERY_FILES || !strcmp(analysis->id, "trace_with_counters");
}

/* For any trace, the result is an answer in JSON, or an error with a reason. */
static void answer_all(const struct ops_trace *trace, bool round)
{
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	for (size_t i = 0; i < count; i++) {
		for (int format = 0; format < 4 && !is_of_files(&analyses[i]); format++) {
			struct ops_analyze_options options = {.format = (enum ops_format)format,
			                                      .round_to_us = round};
			struct ops_error error = {0};
			char *text = NULL;

			if (ask(analyses[i].id, trace, &options, &text, &error))
				assert_true(*error.text);
			else if (!format)
				assert_int_equal(ops_json_validate(text, strlen(text), &error), OPS_OK);
			ops_free(text);
		}
	}
}

static void test_every_analysis_of_odd_traces(void **state)
{
	(void)state;
	for (size_t i = 0; i <= sizeof(odd) / sizeof(odd[0]); i++) {
		struct ops_trace *trace = read_text(i ? odd[i - 1] : ordinary);

		answer_all(trace, false);
		answer_all(trace, true);
		ops_trace_unref(trace);
	}
}

static void test_no_memory(void **state)
{
	struct ops_trace *trace = read_text(ordinary);
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		enum ops_code code = is_of_files(&analyses[i]) ? OPS_OK : OPS_NO_MEMORY;

		for (uint64_t nth = 1; code == OPS_NO_MEMORY; nth++) {
			struct ops_error error;
			char *text = NULL;

			ops_alloc_fail_at(nth, false);
			code = ask(analyses[i].id, trace, NULL, &text, &error);
			ops_alloc_fail_at(0, false);
			ops_free(text);
		}
	}
	ops_trace_unref(trace);
}

static const char *const run[] = {
	ordinary,
	"{\"distributedInfo\":{\"rank\":1},\"traceEvents\":["
	SPAN("user_annotation", "ProfilerStep#7", "1", "1", "90", "100", "") ","
	SPAN("cuda_runtime", "cudaLaunchKernel", "1", "1", "110", "10", "\"correlation\":1") ","
	SPAN("kernel", "ncclDevKernel_AllReduce", "0", "7", "150", "40", "\"correlation\":1,\"stream\":7") "]}",
	"[]",
};
#define RUN_COUNT 3

/* Reads the trace again each time; nothing after `limit` is available. */
static enum ops_code take(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	size_t limit = *(const size_t *)context;

	if (i < limit)
		return ops_trace_read_memory(run[i], strlen(run[i]), NULL, ret_trace, error);
	snprintf(error->text, sizeof(error->text), "gone");
	return error->code = OPS_IO;
}

static enum ops_code analyze_source(const char *id, size_t limit, struct ops_rank_facts *const *facts, char **ret_text,
                                struct ops_error *error)
{
	struct ops_trace_source source = {take, &limit};
	struct ops_analyze_options options = {.source = &source};
	struct ops_rank ranks[RUN_COUNT];
	size_t size;

	for (int64_t i = 0; i < RUN_COUNT; i++)
		ranks[i] = (struct ops_rank){.rank = i, .facts = facts ? facts[i] : NULL};
	return ops_analyze(id, ranks, RUN_COUNT, &options, ret_text, &size, error);
}

/* One trace of a run at a time gives what all at once do, with facts known before and without. */
static void assert_same_from_source(const char *id, const struct ops_rank *ranks, struct ops_rank_facts *const *facts)
{
	struct ops_error error;
	char *held, *taken;
	size_t size;

	assert_int_equal(ops_analyze(id, ranks, RUN_COUNT, NULL, &held, &size, &error), OPS_OK);
	assert_int_equal(analyze_source(id, RUN_COUNT, NULL, &taken, &error), OPS_OK);
	assert_string_equal(held, taken);
	ops_free(taken);
	assert_int_equal(analyze_source(id, RUN_COUNT, facts, &taken, &error), OPS_OK);
	assert_string_equal(held, taken);
	ops_free(taken);
	ops_free(held);
	assert_int_equal(analyze_source(id, 0, NULL, &taken, &error), OPS_IO);
	assert_string_equal(error.text, "gone");
	for (uint64_t nth = 1, code = OPS_NO_MEMORY; code == OPS_NO_MEMORY; nth++) {
		ops_alloc_fail_at(nth, false);
		code = analyze_source(id, RUN_COUNT, facts, &taken, &error);
		ops_alloc_fail_at(0, false);
		ops_free(taken);
	}
}

static void test_one_trace_at_a_time(void **state)
{
	struct ops_rank_facts *facts[RUN_COUNT];
	struct ops_rank ranks[RUN_COUNT];
	struct ops_error error;
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	(void)state;
	for (int64_t i = 0; i < RUN_COUNT; i++) {
		ranks[i] = (struct ops_rank){.rank = i, .trace = read_text(run[i])};
		assert_int_equal(ops_rank_facts_new(ranks[i].trace, false, &facts[i], &error), OPS_OK);
	}
	for (size_t i = 0; i < count; i++)
		if (analyses[i].inputs == OPS_QUERY_RANKS && !is_of_files(&analyses[i]) && strcmp(analyses[i].id, "discovery") != 0)
			assert_same_from_source(analyses[i].id, ranks, facts);
	for (size_t i = 0; i < RUN_COUNT; i++) {
		ops_trace_unref((struct ops_trace *)ranks[i].trace);
		ops_rank_facts_free(facts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_of_a_trace),
		cmocka_unit_test(test_temporal_breakdown),
		cmocka_unit_test(test_idle_time),
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_every_analysis_of_odd_traces),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_one_trace_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
