/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/query.h: every query in every format, for traces in memory and from a source, and errors of callers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <opstrobe/query.h>
#include <opstrobe/read.h>

#include "base/json.h"

#define ROW(cat, name, tid, ts, dur, args)                                                                                  \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur            \
	",\"args\":{" args "}},"
#define MEMORY(ts, bytes)                                                                                                   \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" #ts                 \
	",\"args\":{\"Addr\":1,\"Bytes\":" #bytes ",\"Device Type\":0,\"Device Id\":-1,\"Total Allocated\":64,\"Total Reserved\":0}},"

/* Two steps in which a module calls an operator that launches a kernel. */
static const char events[] =
	"{\"traceEvents\":["
	ROW("user_annotation", "ProfilerStep#1", 1, 0, 100, "")
	ROW("user_annotation", "ProfilerStep#2", 1, 100, 100, "")
	ROW("python_function", "train.py(3): main", 1, 0, 200, "\"Python id\":1,\"Python parent id\":null")
	ROW("python_function", "nn.Module: Net_0", 1, 10, 50, "\"Python id\":2,\"Python parent id\":1,\"Python module id\":0")
	ROW("cpu_op", "aten::mm", 1, 20, 20, "\"External id\":5")
	ROW("cuda_runtime", "cudaLaunchKernel", 1, 25, 5, "\"correlation\":7,\"External id\":5")
	ROW("kernel", "gemm", 7, 40, 30, "\"correlation\":7,\"External id\":5,\"device\":0,\"stream\":7")
	MEMORY(30, 64)
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}]}";

static struct ops_trace *read_events(void)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read_memory(events, sizeof(events) - 1, NULL, &trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static char *answer(const struct ops_run *run, const char *id, enum ops_format format, const char *args)
{
	const struct ops_query_options options = {.size = sizeof(options), .format = format, .args = args};
	struct ops_error error = {0};
	char *text = NULL;
	size_t size = 0;

	if (ops_query(run, id, &options, &text, &size, &error))
		fail_msg("%s: %s", id, error.text);
	assert_int_equal(size, strlen(text));
	return text;
}

static void assert_answer(const struct ops_run *run, const char *id, enum ops_format format, const char *args,
                          const char *expected)
{
	char *text = answer(run, id, format, args);

	assert_string_equal(text, expected);
	ops_free(text);
}

static void assert_fails(const struct ops_run *run, const char *id, const struct ops_query_options *options,
                         enum ops_code code, const char *why)
{
	struct ops_error error = {0};
	char *text = "untouched";
	size_t size = 9;

	assert_int_equal(ops_query(run, id, options, &text, &size, &error), code);
	assert_string_equal(text, "untouched");
	assert_int_equal(size, 9);
	if (!strstr(error.text, why))
		fail_msg("'%s' is not in '%s'", why, error.text);
}

static void tables_have_rows(void **state)
{
	struct ops_trace *trace = read_events();
	const struct ops_rank ranks[2] = {{.trace = trace}, {.trace = trace, .rank = 1}};
	const struct ops_run one = {.ranks = ranks, .count = 1}, two = {.ranks = ranks, .count = 2};

	(void)state;
	assert_answer(&one, "kernels", OPS_FORMAT_CSV, NULL,
	              "name,calls,total_us,percent,step_us,step_calls,mean_us,min_us,max_us,blocks_per_sm,occupancy_percent,tensor_cores\n"
	              "gemm,1,30,100,15,0.5,30,30,30,,,no\n");
	assert_answer(&two, "lines", OPS_FORMAT_CSV, "{\"limit\": 1}",
	              "worker,self,with_calls,device,allocated,calls,line,function,file,is_library\n"
	              "rank 0,200,200,30,64,1,3,main,train.py,no\nrank 1,200,200,30,64,1,3,main,train.py,no\n");
	assert_answer(&one, "memory", OPS_FORMAT_CSV, "{\"at_ns\": 0}", "device,held_by,name,line,bytes,percent,blocks\ncpu,all,,,0,,\n");
	assert_answer(&one, "gpu_kernel_breakdown.by_type", OPS_FORMAT_JSON, "{\"limit\": 1, \"include_last_profiler_step\": true}",
	              "{\"table\":{\"columns\":[\"kernel_type\",\"sum\",\"percentage\"],\"rows\":[[\"COMPUTATION\",30,100]]}}\n");
	ops_trace_unref(trace);
}

static const struct ops_query_info *query(size_t i)
{
	size_t count;
	const struct ops_query_info *queries = ops_queries(&count);

	return i < count ? &queries[i] : NULL;
}

/* These need files, or a run with several ranks or counters. */
static bool is_for_other_data(const struct ops_query_info *info)
{
	static const char *const others[] = {"trace_with_counters", "execution_trace", "memory_timeline", "critical_path",
	                                     "module_kernels", "frequent_cuda_kernel_sequences"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(info->id, others[i]))
			return true;
	return false;
}

static void every_query_answers_in_every_format(void **state)
{
	struct ops_trace *trace = read_events();
	const struct ops_rank ranks[2] = {{.trace = trace, .path = "a.json"}, {.trace = trace, .rank = 1, .path = "b.json"}};
	const struct ops_query_info *info;
	size_t answered = 0;

	(void)state;
	for (size_t i = 0; (info = query(i)); i++) {
		const struct ops_run run = {.ranks = ranks, .count = info->inputs == OPS_QUERY_PAIR ? 2 : 1};

		assert_ptr_equal(ops_query_find(info->id), info);
		for (int format = OPS_FORMAT_JSON; format <= OPS_FORMAT_MARKDOWN && !is_for_other_data(info); format++) {
			char *text;

			if (!strcmp(info->id, "views") && format == OPS_FORMAT_CSV)
				continue;
			text = answer(&run, info->id, (enum ops_format)format, NULL);
			assert_true(*text && strcmp(text, "{\"value\":null}\n") != 0);
			if (format == OPS_FORMAT_JSON)
				assert_int_equal(ops_json_validate(text, strlen(text), NULL), OPS_OK);
			ops_free(text);
			answered++;
		}
	}
	assert_true(answered > 100); /* also those without data in this trace, in words */
	ops_trace_unref(trace);
}

static size_t taken;

static enum ops_code take(void *context, size_t i, struct ops_trace **ret_trace, struct ops_error *error)
{
	(void)error;
	assert_in_range(i, 0, 1);
	taken++;
	*ret_trace = ops_trace_ref(context);
	return OPS_OK;
}

static void traces_come_from_a_source(void **state)
{
	static const char *const ids[] = {"overview", "kernels", "modules", "memory", "lines", "operator_roofline", "views", "advise", "diff", "temporal_breakdown"};
	struct ops_trace *trace = read_events();
	const struct ops_rank held[2] = {{.trace = trace}, {.trace = trace, .rank = 1}}, empty[2] = {{.rank = 0}, {.rank = 1}};
	const struct ops_trace_source source = {take, trace};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char *expected = answer(&(struct ops_run){.ranks = held, .count = 2}, ids[i], OPS_FORMAT_JSON, NULL);

		taken = 0;
		assert_answer(&(struct ops_run){.ranks = empty, .count = 2, .source = &source}, ids[i], OPS_FORMAT_JSON, NULL, expected);
		assert_true(taken >= 2);
		ops_free(expected);
	}
	ops_trace_unref(trace);
}

/* The struct of a later version. */
struct later_options {
	struct ops_query_options known;
	int unknown;
};

static void wrong_calls_say_why(void **state)
{
	struct ops_trace *trace = read_events();
	const struct ops_rank rank = {.trace = trace}, none = {.trace = NULL};
	const struct ops_run run = {.ranks = &rank, .count = 1};
	struct later_options later = {.known = {.size = sizeof(later), .format = OPS_FORMAT_CSV}};
	char *text;
	size_t size;

	(void)state;
	assert_fails(&run, "nonsense", NULL, OPS_INVALID, "unknown query 'nonsense'");
	assert_fails(NULL, "kernels", NULL, OPS_INVALID, "kernels takes at least one trace");
	assert_fails(&(struct ops_run){.ranks = &none, .count = 1}, "kernels", NULL, OPS_INVALID, "is not a trace");
	assert_fails(&run, "diff", NULL, OPS_INVALID, "diff takes two traces");
	assert_fails(&run, "kernels", &(struct ops_query_options){.format = OPS_FORMAT_CSV}, OPS_INVALID, "'size' is not set");
	assert_fails(&run, "kernels", &(struct ops_query_options){.size = sizeof(struct ops_query_options), .args = "{\"by\": 1}"},
	             OPS_INVALID, "kernels has no option 'by'");
	assert_fails(&run, "modules", &(struct ops_query_options){.size = sizeof(struct ops_query_options), .args = "{\"rules\": \"hta\"}"},
	             OPS_INVALID, "modules has no option 'rules'");
	assert_fails(&run, "kernels", &(struct ops_query_options){.size = sizeof(struct ops_query_options), .format = OPS_FORMAT_BRIEF},
	             OPS_INVALID, "kernels has no brief form");
	assert_fails(&run, "views", &(struct ops_query_options){.size = sizeof(struct ops_query_options), .format = OPS_FORMAT_CSV},
	             OPS_INVALID, "views has no CSV");
	assert_int_equal(ops_query(&run, "kernels", &later.known, &text, &size, NULL), OPS_OK);
	ops_free(text);
	later.unknown = 1;
	assert_fails(&run, "kernels", &later.known, OPS_UNSUPPORTED, "newer version");
	ops_trace_unref(trace);
}

/* Options of a program whose headers are older have fewer members. */
static void an_older_struct_has_defaults(void **state)
{
	struct ops_trace *trace = read_events();
	const struct ops_rank rank = {.trace = trace};
	const struct ops_run run = {.ranks = &rank, .count = 1};
	const struct ops_query_options old = {.size = offsetof(struct ops_query_options, args), .format = OPS_FORMAT_CSV, .args = "no JSON"};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_query(&run, "kernels", &old, &text, &size, NULL), OPS_OK);
	assert_ptr_equal(strstr(text, "name,"), text);
	ops_free(text);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_have_rows),
		cmocka_unit_test(every_query_answers_in_every_format),
		cmocka_unit_test(traces_come_from_a_source),
		cmocka_unit_test(wrong_calls_say_why),
		cmocka_unit_test(an_older_struct_has_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
