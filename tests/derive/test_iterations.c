/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations of servers: the rows that begin and continue them, their kinds, and rows that are not iterations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "base/text.h"
#include "derive/steps.h"

#define RUNNER "vllm/v1/worker/gpu_model_runner.py(3380): "
#define WORKER "sglang/srt/managers/tp_worker.py(210): "
#define MODEL "sglang/srt/model_executor/model_runner.py(900): "
#define GRAPH "sglang/srt/model_executor/cuda_graph_runner.py(700): "

#define DEVICE 9 /* as `pid`: a device's copy of a range */

struct row {
	const char *name;
	int start_us, end_us;
	const char *shapes; /* "Input Dims" of an operator */
	int pid;
};

struct made {
	struct ops_trace *trace;
	const struct ops_steps *steps;
};

static const char *category_of(const char *name)
{
	if (strstr(name, ".py("))
		return "python_function";
	if (strncmp(name, "cuda", 4) == 0)
		return "cuda_runtime";
	return strstr(name, "::") ? "cpu_op" : "user_annotation";
}

static struct made make(const struct row *rows, size_t count)
{
	char json[16384] = "{\"traceEvents\": [";
	size_t size = strlen(json);
	struct made made;

	for (size_t i = 0; i < count; i++) {
		size += (size_t)snprintf(json + size, sizeof(json) - size,
		                         "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %d, \"dur\": %d, \"pid\": %d, "
		                         "\"tid\": %d, \"args\": {\"Input Dims\": [%s], \"Input type\": [%s]}}",
		                         i ? ", " : "", rows[i].pid == DEVICE ? "gpu_user_annotation" : category_of(rows[i].name), rows[i].name, rows[i].start_us,
		                         rows[i].end_us - rows[i].start_us, rows[i].pid + 1, rows[i].pid + 1,
		                         rows[i].shapes ? rows[i].shapes : "", rows[i].shapes ? "\"float\", \"\", \"int\"" : "");
		assert_true(size < sizeof(json));
	}
	snprintf(json + size, sizeof(json) - size, "]}");
	assert_int_equal(ops_trace_read_memory(json, strlen(json), NULL, &made.trace, NULL), OPS_OK);
	made.steps = ops_steps_of(made.trace);
	assert_non_null(made.steps);
	return made;
}

#define MAKE(rows) make(rows, sizeof(rows) / sizeof(*(rows)))

static void assert_iteration(const struct made *made, size_t i, int start_us, int end_us, enum ops_iteration_kind kind)
{
	const struct ops_step *step = &made->steps->list.items[i];
	int64_t origin_ns = ops_trace_events(made->trace)->start_ns[0];

	assert_true(i < made->steps->list.count);
	assert_int_equal(made->steps->source, OPS_STEPS_ITERATIONS);
	assert_int_equal((step->start_ns - origin_ns) / 1000, start_us);
	assert_int_equal((step->end_ns - origin_ns) / 1000, end_us);
	assert_int_equal(step->kind, kind);
	assert_int_equal(step->row, OPS_NONE);
}

static void names_say_the_kind(void **state)
{
	static const struct {
		const char *name;
		enum ops_iteration_kind kind;
	} names[] = {
		{"execute_context_1(888_788544)_generation_0(0)", OPS_ITERATION_PREFILL},
		{"execute_context_0(0)_generation_12(12)", OPS_ITERATION_DECODE},
		{"execute_context_2(64)_generation_12(12)", OPS_ITERATION_MIXED},
		{"execute_context_0(0)_generation_0(0)", OPS_ITERATION_IDLE},
		{"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", OPS_ITERATION_DECODE},
		{"execute_new_3_cached_0", OPS_ITERATION_PREFILL},
		{"execute_new_0_cached_5", OPS_ITERATION_UNKNOWN},
		{"execute_new_3_cached_5", OPS_ITERATION_UNKNOWN},
		{"step[decode bs=8]", OPS_ITERATION_DECODE},
		{"step[prefill bs=2 toks=512]", OPS_ITERATION_PREFILL},
		{"step[mixed bs=9 ext=100 dec=8]", OPS_ITERATION_MIXED},
		{"step[idle]", OPS_ITERATION_IDLE},
		{"step[TARGET_VERIFY bs=4]", OPS_ITERATION_DECODE},
		{"step[DLLM_EXTEND bs=4]", OPS_ITERATION_UNKNOWN},
		/* Of other programs. */
		{"execute_query", OPS_ITERATION_NONE},
		{"execute_context_x", OPS_ITERATION_NONE},
		{"step[3]", OPS_ITERATION_NONE},
		{"step[", OPS_ITERATION_NONE},
		{"stepping", OPS_ITERATION_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(ops_iteration_kind_of_name(ops_string_of(names[i].name)), names[i].kind);
}

/* The annotation counts, not the function in it; the sampling behind it belongs to the iteration. */
static void vllm_annotations_are_iterations(void **state)
{
	static const struct row rows[] = {
		{"aten::empty", 0, 1, NULL, 0},
		{"execute_context_1(888)_generation_0(0)", 10, 30, NULL, 0},
		{"execute_context_1(888)_generation_0(0)", 15, 35, NULL, DEVICE},
		{RUNNER "execute_model", 11, 29, NULL, 0},
		{RUNNER "sample_tokens", 31, 36, NULL, 0},
		{"execute_context_0(0)_generation_1(1)", 50, 60, NULL, 0},
		{RUNNER "execute_model", 51, 59, NULL, 0},
		{"aten::empty", 70, 71, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 2);
	assert_iteration(&made, 0, 10, 36, OPS_ITERATION_PREFILL);
	assert_iteration(&made, 1, 50, 60, OPS_ITERATION_DECODE);
	assert_string_equal(made.steps->list.items[1].text, "1");
	ops_trace_unref(made.trace);
}

/* Without annotations, functions show them; calls in the profile run and captures are none. */
static void vllm_functions_without_warm_up(void **state)
{
	static const struct row rows[] = {
		{"vllm/worker/model_runner.py(1100): profile_run", 0, 20, NULL, 0},
		{"vllm/worker/model_runner.py(1600): execute_model", 5, 15, NULL, 0},
		{"vllm/worker/model_runner.py(1600): execute_model", 30, 50, NULL, 0},
		{"cudaStreamBeginCapture", 35, 36, NULL, 0},
		{"cudaStreamEndCapture", 40, 41, NULL, 0},
		{"vllm/worker/model_runner.py(1600): execute_model", 60, 80, NULL, 0},
		{"mine/model_runner.py(7): execute_model", 90, 95, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 1);
	assert_iteration(&made, 0, 60, 80, OPS_ITERATION_UNKNOWN);
	ops_trace_unref(made.trace);
}

/* A capture that is not in a function of the server: only what replays its graph runs. */
static void captured_passes_are_none(void **state)
{
	static const struct row rows[] = {
		{"cudaStreamBeginCapture", 0, 1, NULL, 0}, {"gpu_model_runner: forward", 2, 10, NULL, 0},
		{"cudaStreamEndCapture", 11, 12, NULL, 0}, {"gpu_model_runner: forward", 20, 30, NULL, 0},
		{"cudaStreamBeginCapture", 40, 41, NULL, 0}, {"gpu_model_runner: forward", 42, 50, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 2);
	assert_iteration(&made, 0, 20, 30, OPS_ITERATION_UNKNOWN);
	assert_iteration(&made, 1, 42, 50, OPS_ITERATION_UNKNOWN); /* the end of its capture is unknown */
	ops_trace_unref(made.trace);
}

static void scopes_of_vllm_are_iterations(void **state)
{
	static const struct row rows[] = {
		{"gpu_model_runner: preprocess", 0, 5, NULL, 0}, {"gpu_model_runner: forward", 6, 20, NULL, 0},
		{"gpu_model_runner: sample", 21, 25, NULL, 0},   {"gpu_model_runner: preprocess", 30, 35, NULL, 0},
		{"gpu_model_runner: forward", 36, 50, NULL, 0},
	};
	static const struct row forward[] = {{"gpu_model_runner: forward", 0, 20, NULL, 0}, {"gpu_model_runner: forward", 30, 50, NULL, 0}};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 2);
	assert_iteration(&made, 0, 0, 25, OPS_ITERATION_UNKNOWN);
	ops_trace_unref(made.trace);
	made = MAKE(forward);
	assert_int_equal(made.steps->list.count, 2);
	assert_iteration(&made, 1, 30, 50, OPS_ITERATION_UNKNOWN);
	ops_trace_unref(made.trace);
}

/* In a decode there are as many tokens as sequences. */
static void shapes_of_attention_show_decodes(void **state)
{
	static const struct row rows[] = {
		{RUNNER "execute_model", 0, 20, NULL, 0},
		{"_vllm_fa2_C::varlen_fwd", 5, 6, "[4, 8, 64], [], [5]", 0},
		{"_vllm_fa2_C::varlen_fwd", 8, 9, "[4, 8, 64], [], [5]", 0},
		{RUNNER "execute_model", 30, 50, NULL, 0},
		{"_vllm_fa2_C::varlen_fwd", 35, 36, "[40, 8, 64], [], [5]", 0},
		{RUNNER "execute_model", 60, 80, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 3);
	assert_iteration(&made, 0, 0, 20, OPS_ITERATION_DECODE);
	assert_iteration(&made, 1, 30, 50, OPS_ITERATION_UNKNOWN);
	assert_iteration(&made, 2, 60, 80, OPS_ITERATION_UNKNOWN);
	ops_trace_unref(made.trace);
}

static void sglang_functions_show_the_kind(void **state)
{
	static const struct row rows[] = {
		{GRAPH "capture", 0, 9, NULL, 0},
		{MODEL "forward", 2, 4, NULL, 0},
		{WORKER "forward_batch_generation", 10, 30, NULL, 0},
		{MODEL "forward", 11, 20, NULL, 0},
		{MODEL "forward_extend", 12, 19, NULL, 0},
		{WORKER "forward_batch_generation", 40, 50, NULL, 0},
		{GRAPH "replay", 41, 45, NULL, 0},
		{"sglang/srt/managers/schedule_batch.py(1200): mix_with_running", 52, 53, NULL, 0},
		{WORKER "forward_batch_generation", 60, 70, NULL, 0},
		{MODEL "forward_extend", 61, 65, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 3);
	assert_iteration(&made, 0, 10, 30, OPS_ITERATION_PREFILL);
	assert_iteration(&made, 1, 40, 50, OPS_ITERATION_DECODE);
	assert_iteration(&made, 2, 60, 70, OPS_ITERATION_MIXED);
	ops_trace_unref(made.trace);
}

/* The draft of speculative decoding belongs to the pass before it. Processes count for themselves. */
static void sglang_annotations_are_iterations(void **state)
{
	static const struct row rows[] = {
		{"step[TARGET_VERIFY bs=4]", 0, 20, NULL, 0}, {"step[idle]", 5, 10, NULL, 1},
		{"step[DRAFT_EXTEND_V2 bs=4]", 22, 28, NULL, 0}, {"step[TARGET_VERIFY bs=4]", 30, 40, NULL, 0},
	};
	struct made made = MAKE(rows);

	(void)state;
	assert_int_equal(made.steps->list.count, 3);
	assert_iteration(&made, 0, 0, 28, OPS_ITERATION_DECODE);
	assert_iteration(&made, 1, 5, 10, OPS_ITERATION_IDLE);
	assert_int_equal(made.steps->list.items[1].number, 0);
	assert_iteration(&made, 2, 30, 40, OPS_ITERATION_DECODE);
	ops_trace_unref(made.trace);
}

/* Marks and optimizers come first; a marked step has the kind of what is in it, if that is one. */
static void other_steps_come_first(void **state)
{
	static const struct row marked[] = {
		{"ProfilerStep#3", 0, 20, NULL, 0},  {"execute_context_0(0)_generation_1(1)", 1, 15, NULL, 0},
		{"ProfilerStep#4", 20, 40, NULL, 0}, {"execute_context_1(9)_generation_0(0)", 21, 25, NULL, 0},
		{"execute_context_0(0)_generation_1(1)", 26, 35, NULL, 0}, {"ProfilerStep#5", 40, 50, NULL, 0},
	};
	static const struct row trained[] = {{"execute_context_0(0)_generation_1(1)", 1, 15, NULL, 0}, {"Optimizer.step#Adam.step", 20, 30, NULL, 0}};
	struct made made = MAKE(marked);

	(void)state;
	assert_int_equal(made.steps->source, OPS_STEPS_MARKED);
	assert_int_equal(made.steps->list.count, 3);
	assert_int_equal(made.steps->list.items[0].kind, OPS_ITERATION_DECODE);
	assert_int_equal(made.steps->list.items[1].kind, OPS_ITERATION_UNKNOWN);
	assert_int_equal(made.steps->list.items[2].kind, OPS_ITERATION_NONE);
	ops_trace_unref(made.trace);
	made = MAKE(trained);
	assert_int_equal(made.steps->source, OPS_STEPS_OPTIMIZER);
	assert_int_equal(made.steps->list.items[0].kind, OPS_ITERATION_NONE);
	ops_trace_unref(made.trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_say_the_kind),
		cmocka_unit_test(vllm_annotations_are_iterations),
		cmocka_unit_test(vllm_functions_without_warm_up),
		cmocka_unit_test(captured_passes_are_none),
		cmocka_unit_test(scopes_of_vllm_are_iterations),
		cmocka_unit_test(shapes_of_attention_show_decodes),
		cmocka_unit_test(sglang_functions_show_the_kind),
		cmocka_unit_test(sglang_annotations_are_iterations),
		cmocka_unit_test(other_steps_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
