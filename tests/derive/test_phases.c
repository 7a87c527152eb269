/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases of training: data loading, forward, backward, optimizer, other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../analyze/views/view_scene.h"
#include "derive/phases.h"

#define ENGINE "autograd::engine::evaluate_function: "
#define LOADER(ts, dur) VIEW_ROW("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, ts, dur, "")
#define OPTIMIZER(name, ts, dur) VIEW_ROW("user_annotation", "Optimizer." name, 1, 1, ts, dur, "")
#define OPERATOR(name, tid, ts, dur) VIEW_ROW("cpu_op", name, 1, tid, ts, dur, "")
#define MODULE(name, ts, dur) VIEW_ROW("python_function", "nn.Module: " name, 1, 1, ts, dur, "\"Python module id\":0,\"Python id\":1")
#define FUNCTION(name, ts, dur) VIEW_ROW("python_function", name, 1, 1, ts, dur, "\"Python id\":2")
#define LINK(id, ts, to_tid, to_ts)                                                                \
	"{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":1,\"ts\":" #ts "},"        \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":" #id ",\"pid\":1,\"tid\":" #to_tid       \
	",\"ts\":" #to_ts "},"

/* The phases of some steps of `step_us` each, in microseconds, and that they add up. */
static void expect(const char *rows, int64_t step_us, size_t steps, const int64_t expected[][OPS_PHASE_COUNT])
{
	struct ops_trace *trace = scene_read(rows, "");
	struct ops_interval ranges[4];
	struct ops_phases phases;
	int64_t base_ns = ops_trace_events(trace)->start_ns[0];

	for (size_t i = 0; i < steps; i++)
		ranges[i] = (struct ops_interval){base_ns + (int64_t)i * step_us * 1000, base_ns + (int64_t)(i + 1) * step_us * 1000};
	assert_true(ops_phases_find(&phases, trace, ops_steps_of(trace)));
	for (size_t i = 0; i < steps; i++) {
		int64_t found_ns[OPS_PHASE_COUNT], sum_ns = 0;

		ops_phases_within(&phases, ranges[i], found_ns);
		for (int phase = 0; phase < OPS_PHASE_COUNT; phase++) {
			if (found_ns[phase] != expected[i][phase] * 1000)
				fail_msg("step %zu, %s: %lld ns", i, ops_phase_name((enum ops_phase)phase), (long long)found_ns[phase]);
			sum_ns += found_ns[phase];
		}
		assert_int_equal(sum_ns, step_us * 1000);
	}
	ops_phases_release(&phases);
	ops_trace_unref(trace);
}

#define EXPECT(rows, ...) expect(rows, 100, 1, (const int64_t[][OPS_PHASE_COUNT]){{__VA_ARGS__}})

/* Links say what is forward; what is between two operators of a pass belongs to it. */
static void links_define_the_passes(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) LOADER(0, 10) OPERATOR("aten::linear", 1, 12, 3) OPERATOR("aten::detach", 1, 16, 1)
	               OPERATOR("aten::loss", 1, 18, 2) OPERATOR("aten::item", 1, 21, 1) OPERATOR(ENGINE "LossBackward0", 1, 25, 5)
	                       OPERATOR(ENGINE "AddmmBackward0", 1, 32, 8) OPTIMIZER("step#SGD.step", 45, 15)
	                               OPERATOR("aten::add_", 1, 50, 5) OPTIMIZER("zero_grad#SGD.zero_grad", 60, 2)
	                                       LINK(1, 12, 1, 32) LINK(2, 18, 1, 25),
	       10, 8, 15, 17, 50);
}

/* Modules do so without links; a call of backward() lasts from its beginning to its end. */
static void functions_define_the_passes(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) MODULE("Net_0", 5, 20) OPERATOR("aten::mm", 1, 6, 10)
	               FUNCTION("torch/autograd/graph.py(966): _engine_run_backward", 30, 40) OPERATOR(ENGINE "MmBackward0", 1, 35, 20),
	       0, 20, 40, 0, 40);
}

/* With a device the engine has separate threads; who called backward() waits. */
static void the_engine_has_threads(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) OPERATOR("aten::mm", 1, 5, 10) OPERATOR(ENGINE "MmBackward0", 2, 30, 20)
	               OPERATOR("aten::mm", 2, 31, 10) OPERATOR(ENGINE "AddBackward0", 3, 55, 5) LINK(1, 5, 2, 30),
	       0, 10, 30, 0, 60);
}

/* An optimizer may call a closure with both passes, a backward pass may compute the forward again or step the optimizer. */
static void phases_nest(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) OPTIMIZER("step#LBFGS.step", 0, 100) MODULE("Net_0", 10, 20) OPERATOR(ENGINE "MmBackward0", 1, 40, 20)
	               OPERATOR("aten::add_", 1, 70, 5),
	       0, 20, 20, 60, 0);
	EXPECT(VIEW_STEP(1, 0, 100) MODULE("Net_0", 0, 20) OPERATOR(ENGINE "CheckpointBackward", 1, 30, 50) MODULE("Block_0", 35, 10)
	               OPTIMIZER("step#SGD.step", 60, 10),
	       0, 20, 40, 10, 30);
	/* What a loader's transforms call is data loading. */
	EXPECT(VIEW_STEP(1, 0, 100) LOADER(0, 30) MODULE("Resize_0", 5, 20), 30, 0, 0, 0, 70);
}

/* Inference in two steps: what is between them is in no pass. */
static void passes_end_with_their_step(void **state)
{
	static const int64_t expected[][OPS_PHASE_COUNT] = {{0, 70, 0, 0, 30}, {0, 30, 0, 0, 70}};

	(void)state;
	expect(VIEW_STEP(1, 0, 100) MODULE("Net_0", 10, 20) MODULE("Net_0", 60, 20) VIEW_STEP(2, 100, 100) MODULE("Net_0", 110, 30), 100,
	       2, expected);
}

/* What other threads load ahead does not count as time of the step. */
static void other_threads_load_ahead(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) VIEW_ROW("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 9, 0, 90, "")
	               LOADER(10, 5),
	       5, 0, 0, 0, 95);
}

/* Without modules and links, operators are forward if anything says that there is training; else nothing is known. */
static void operators_alone_say_nothing(void **state)
{
	(void)state;
	EXPECT(VIEW_STEP(1, 0, 100) OPERATOR("aten::mm", 1, 5, 10), 0, 0, 0, 0, 100);
	EXPECT(VIEW_STEP(1, 0, 100) OPERATOR("aten::mm", 1, 5, 10) OPTIMIZER("step#SGD.step", 50, 20) OPERATOR("aten::add_", 1, 55, 5), 0, 10,
	       0, 20, 70);
}

/* Random ranges of every kind: whatever they are, the phases of a step add up to it, and no range overlaps another. */
static void phases_add_up(void **state)
{
	static const char *const names[] = {"enumerate(DataLoader)#_It.__next__", "Optimizer.step#SGD.step", ENGINE "MmBackward0", "aten::mm",
	                                    "DistributedDataParallel.forward"};

	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		char rows[8192];
		size_t size = (size_t)snprintf(rows, sizeof(rows), "%s%s", VIEW_STEP(1, 0, 500), VIEW_STEP(2, 500, 500));
		struct ops_interval steps[2];
		struct ops_phases phases;
		struct ops_trace *trace;
		unsigned next = seed;

		for (int i = 0; i < 40; i++)
			size += (size_t)snprintf(rows + size, sizeof(rows) - size,
			                         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d},",
			                         names[rand_r(&next) % 5], rand_r(&next) % 3, rand_r(&next) % 990, rand_r(&next) % 120);
		trace = scene_read(rows, "");
		for (int i = 0; i < 2; i++)
			steps[i] = (struct ops_interval){ops_trace_info(trace)->base_ns + i * 500000,
			                                 ops_trace_info(trace)->base_ns + (i + 1) * 500000};
		assert_true(ops_phases_find(&phases, trace, ops_steps_of(trace)));
		assert_true(phases.ranges.count > 0);
		for (size_t i = 1; i < phases.ranges.count; i++)
			assert_true(phases.ranges.items[i - 1].end_ns <= phases.ranges.items[i].start_ns);
		for (int i = 0; i < 2; i++) {
			int64_t ns[OPS_PHASE_COUNT], sum_ns = 0;

			ops_phases_within(&phases, steps[i], ns);
			for (int phase = 0; phase < OPS_PHASE_COUNT; phase++) {
				assert_true(ns[phase] >= 0);
				sum_ns += ns[phase];
			}
			assert_int_equal(sum_ns, 500000);
		}
		ops_phases_release(&phases);
		ops_trace_unref(trace);
	}
}

/* Device work belongs to the phase that launches it, whenever it runs. */
static void views_show_phases(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) LOADER(0, 10) VIEW_OP("aten::mm", 10, 20, 5) VIEW_CALL(15, 5, 5, 1)
	                                 VIEW_KERNEL("k", 60, 30, 1) OPERATOR(ENGINE "MmBackward0", 1, 40, 20)
	                                         VIEW_ROW("cuda_runtime", "cudaLaunchKernel", 1, 1, 45, 5, "\"correlation\":2")
	                                                 VIEW_KERNEL("k2", 90, 25, 2) OPTIMIZER("step#SGD.step", 70, 10),
	                         "");

	(void)state;
	assert_has(text, "\"phases\":{\"rows\":[{\"name\":\"1\",\"data_loading\":10,\"forward\":20,\"backward\":20,\"optimizer\":10,"
	                 "\"other\":40,\"total\":100}],");
	assert_has(text, "\"average_pct\":{\"data_loading\":10,\"forward\":20,\"backward\":20,\"optimizer\":10,\"other\":40}");
	assert_has(text, "\"average_operators\":{\"data_loading\":0,\"forward\":20,\"backward\":20,\"optimizer\":0,\"other\":0}");
	assert_has(text, "\"average_device\":{\"data_loading\":0,\"forward\":30,\"backward\":25,\"optimizer\":0,\"other\":0}");
	ops_free(text);
	text = scene_views(VIEW_STEP(1, 0, 100) VIEW_OP("aten::mm", 10, 20, 5), "");
	assert_has(text, "\"phases\":null");
	ops_free(text);
}

static void find_phases(void *context)
{
	const struct ops_trace *trace = context;
	const struct ops_steps *steps = ops_steps_of(trace);
	struct ops_phases phases = {0};

	(void)(steps && ops_phases_find(&phases, trace, steps));
	ops_phases_release(&phases);
}

static void every_allocation_may_fail(void **state)
{
	struct ops_trace *trace = scene_read(VIEW_STEP(1, 0, 100) LOADER(0, 10) MODULE("Net_0", 20, 20) OPTIMIZER("step#SGD.step", 70, 10), "");

	(void)state;
	assert_true(fail_each(find_phases, trace) >= 5);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_define_the_passes),
		cmocka_unit_test(functions_define_the_passes),
		cmocka_unit_test(the_engine_has_threads),
		cmocka_unit_test(phases_nest),
		cmocka_unit_test(passes_end_with_their_step),
		cmocka_unit_test(other_threads_load_ahead),
		cmocka_unit_test(operators_alone_say_nothing),
		cmocka_unit_test(phases_add_up),
		cmocka_unit_test(views_show_phases),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
