/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/costs: attribution of memory to events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

enum { CPU = 0, CUDA = 1, MKLDNN = 2, OPENGL = 3, IDEEP = 5, HIP = 6, XPU = 12, PRIVATE_USE_1 = 20 };

static void none_without_records(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "a", 0, 10);
	trace = scene_close(b);
	assert_int_equal(ops_event_costs_init(&costs, trace, true, NULL), OPS_OK);
	assert_null(costs.cpu_memory);
	assert_true(costs.with_flops);
	ops_event_costs_release(&costs);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void by_thread_and_closed_interval(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;
	uint32_t outer, inner, other;

	(void)state;
	scene_op(b, 0, "outer", 10, 100);
	scene_op(b, 0, "inner", 20, 30);
	scene_op(b, 1, "other", 15, 90);
	scene_memory(b, 0, 9, 1000000, CPU);
	scene_memory(b, 0, 10, 1, CPU);
	scene_memory(b, 0, 20, 10, CPU);
	scene_memory(b, 0, 30, -100, CPU);
	scene_memory(b, 1, 30, 2000, CPU);
	scene_memory(b, 0, 31, 10000, CPU);
	scene_memory(b, 0, 100, 100000, CPU);
	scene_memory(b, 0, 101, 1000000, CPU);
	scene_out_of_memory(b, 0, 50, 1 << 30);
	trace = scene_close(b);
	costs = scene_costs(trace);
	outer = scene_row(trace, "outer");
	inner = scene_row(trace, "inner");
	other = scene_row(trace, "other");
	assert_int_equal(costs.cpu_memory[outer], 109911);
	assert_int_equal(costs.cpu_memory[inner], -90);
	assert_int_equal(costs.cpu_memory[other], 2000);
	assert_int_equal(costs.self_cpu_memory[outer], 110001);
	assert_int_equal(costs.self_cpu_memory[inner], -90);
	assert_int_equal(costs.self_cpu_memory[other], 2000);
	assert_int_equal(costs.device_memory[outer], 0);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void by_device(void **state)
{
	static const uint8_t devices[] = {CPU, CUDA, MKLDNN, OPENGL, IDEEP, HIP, XPU, PRIVATE_USE_1};
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;
	int64_t bytes = 1;

	(void)state;
	scene_op(b, 0, "a", 0, 100);
	scene_op(b, 0, "b", 0, 99);
	for (size_t i = 0; i < sizeof(devices); i++, bytes *= 10)
		scene_memory(b, 0, 50, bytes, devices[i]);
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.cpu_memory[0], 10101);
	assert_int_equal(costs.device_memory[0], 11100010);
	assert_int_equal(costs.self_cpu_memory[0], 0);
	assert_int_equal(costs.self_device_memory[0], 0);
	assert_int_equal(costs.self_cpu_memory[1], 10101);
	assert_int_equal(costs.self_device_memory[1], 11100010);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void asynchronous_events_have_none_of_their_own(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event = scene_event(b, 0, "later", 0, 100);
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	event.end_track = 1;
	ops_builder_event(b, &event);
	scene_memory(b, 0, 50, 8, CPU);
	scene_memory(b, 1, 50, 16, CPU);
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.cpu_memory[0], 8);
	assert_int_equal(costs.self_cpu_memory[0], 0);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void children_of_folded_rows_count_for_the_row_that_stays(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "op", 0, 100);
	scene_op(b, 0, "op", 10, 90);
	scene_op(b, 0, "inner", 20, 80);
	scene_memory(b, 0, 5, 1, CPU);
	scene_memory(b, 0, 15, 10, CPU);
	scene_memory(b, 0, 50, 100, CPU);
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.cpu_memory[0], 111);
	assert_int_equal(costs.self_cpu_memory[0], 11);
	assert_int_equal(costs.self_cpu_memory[scene_row(trace, "inner")], 100);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void sums_stop_at_the_ends(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "a", 0, 100);
	scene_op(b, 1, "b", 0, 100);
	for (int64_t i = 0; i < 3; i++) {
		scene_memory(b, 0, 50, INT64_MAX, CPU);
		scene_memory(b, 1, 50, INT64_MIN, CUDA);
	}
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.cpu_memory[scene_row(trace, "a")], INT64_MAX);
	assert_int_equal(costs.device_memory[scene_row(trace, "b")], INT64_MIN);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void make_costs(void *context)
{
	struct ops_event_costs costs = {.with_flops = true};
	struct ops_error error;
	enum ops_code code = ops_event_costs_init(&costs, context, false, &error);

	if (code != OPS_OK) {
		assert_int_equal(code, OPS_NO_MEMORY);
		assert_true(costs.with_flops);
		return;
	}
	assert_int_equal(costs.cpu_memory[0], 8);
	ops_event_costs_release(&costs);
}

static void survives_failing_allocations(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "a", 0, 100);
	scene_memory(b, 0, 50, 8, CPU);
	trace = scene_close(b);
	assert_in_range(fail_each(make_costs, trace), 7, 20);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_without_records),
		cmocka_unit_test(by_thread_and_closed_interval),
		cmocka_unit_test(by_device),
		cmocka_unit_test(asynchronous_events_have_none_of_their_own),
		cmocka_unit_test(children_of_folded_rows_count_for_the_row_that_stays),
		cmocka_unit_test(sums_stop_at_the_ends),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
