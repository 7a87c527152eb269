/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace file, and then every analysis and view of it: alone, as two ranks, and compared with itself. The result is
 * an answer, or an error with a reason. fuzzing.h describes how to run it.
 */
#include <string.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/internal/pack.h>
#include <opstrobe/merge.h>
#include <opstrobe/internal/views.h>

#include "fuzzing.h"

/* Some options that take other ways than the defaults. */
static const struct {
	const char *id, *args;
} more[] = {
	{"queue_length_time_series", "{\"series\":true}"},
	{"memory_bw_time_series", "{\"series\":true}"},
	{"gpu_kernel_breakdown.by_kernel", "{\"num_kernels\":1}"},
	{"user_annotation_breakdown", "{\"use_gpu_annotation\":false}"},
	{"load", "{\"include_last_profiler_step\":true}"},
	{"call_graph", "{\"nodes\":true}"},
	{"call_graph", "{\"event\":1}"},
	{"frequent_cuda_kernel_sequences", "{\"operator_name\":\"a\",\"min_pattern_len\":1}"},
	{"cuda_kernel_launch_stats", "{\"launches\":true}"},
	{"gpu_kernels_with_user_annotations", "{\"kernels\":true}"},
	{"module_kernels", "{\"names\":[\"a\",\"nn.\"]}"},
	{"nccl_collectives", "{\"filter\":\"stream == -1\"}"},
	{"events", "{\"where\":\"dur > 1 and not name.contains('[a-m]x?') or input_dims != grid and `x` in [1, 'y']\"}"},
	{"critical_path", "{\"annotation\":\"ProfilerStep\"}"},
	{"critical_path", "{\"edges\":true,\"add_zero_weight_launch_edges\":true,\"what_if\":{\"a\":0.5}}"},
	{"trace_diff.compare", "{\"whole\":true,\"use_short_name\":true}"},
	{"key_averages", "{\"group_by_input_shape\":true,\"with_flops\":true}"},
};

static void ask(const char *id, const char *args, struct ops_trace *trace)
{
	const struct ops_rank ranks[] = {{.rank = 0, .trace = trace}, {.rank = 1, .trace = trace}};

	for (int way = 0; way < 4; way++) {
		struct ops_analyze_options options = {.format = way & 1 ? OPS_FORMAT_TEXT : OPS_FORMAT_JSON,
		                                      .round_to_us = way & 1, .args = args};
		struct ops_error error = {0};
		char *text = NULL;
		size_t size;

		if (ops_analyze(id, ranks, way < 2 ? 1 : 2, &options, &text, &size, &error))
			expect(error.code != OPS_NO_MEMORY && *error.text, id);
		ops_free(text);
	}
}

static void view(struct ops_trace *trace)
{
	static const char *const tables[] = {"overview", "kernels", "modules", "memory", "lines"};
	const struct ops_rank workers[] = {{.trace = trace, .name = "a_0"}, {.trace = trace, .name = "a_1"}};
	struct ops_error error;
	char *text;
	size_t size;

	expect(ops_run_json(NULL, workers, 2, OPS_RULES_OPSTROBE, &text, &size, &error) == OPS_OK, error.text);
	ops_free(text);
	expect(ops_views_text(trace, OPS_RULES_OPSTROBE, OPS_VIEWS_COLOURS, &text, &size, &error) == OPS_OK, error.text);
	ops_free(text);
	expect(ops_views_text(trace, OPS_RULES_OPSTROBE, OPS_VIEWS_MARKDOWN, &text, &size, &error) == OPS_OK, error.text);
	ops_free(text);
	expect(ops_diff(trace, trace, NULL, &text, &size, NULL, &error) == OPS_OK, error.text);
	ops_free(text);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct ops_run run = {.ranks = workers, .count = 2};
		const struct ops_query_options options = {.size = sizeof(options), .format = OPS_FORMAT_CSV};

		expect(ops_query(&run, tables[i], &options, &text, &size, &error) == OPS_OK, error.text);
		ops_free(text);
	}
}

static void merge(struct ops_trace *trace, struct ops_trace *other)
{
	const struct ops_trace *traces[] = {trace, other};
	struct ops_trace_part parts[] = {{.trace = trace, .whole = true, .rank_name = "0"},
	                                 {.trace = other, .whole = true, .rank_name = "1"}};
	struct ops_clock_shift shifts[2];
	struct ops_trace *merged = NULL;
	struct ops_error error;

	expect(ops_trace_align(traces, 2, shifts, &error) == OPS_OK, error.text);
	if (ops_trace_merge(parts, 2, NULL, &merged, &error) == OPS_OK)
		expect(ops_trace_check(merged, &error) == OPS_OK, error.text);
	ops_trace_unref(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ops_trace *trace = read_bytes(bytes, size), *other = trace ? read_bytes(bytes, size) : NULL;
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	if (!trace)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (strcmp(analyses[i].id, "trace_with_counters") != 0) /* it writes files */
			ask(analyses[i].id, NULL, trace);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		ask(more[i].id, more[i].args, trace);
	view(trace);
	merge(trace, other);
	ops_trace_unref(other);
	ops_trace_unref(trace);
	return 0;
}
