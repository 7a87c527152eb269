/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/device_times: attribution of device time to events, and device time in the rows of averages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

#define STREAM 2 /* the third track */

static struct ops_builder *open_with_stream(void)
{
	struct ops_builder *b = scene_open();

	assert_int_equal(ops_builder_track(b, &(struct ops_track){.kind = OPS_TRACK_STREAM, .pid = 0, .tid = 7}), STREAM);
	return b;
}

static uint32_t add_call(struct ops_builder *b, int64_t start_ns, int64_t correlation)
{
	struct ops_new_event event = scene_event(b, 0, "cudaLaunchKernel", start_ns, start_ns + 1);

	event.kind = OPS_EVENT_RUNTIME;
	event.correlation = correlation;
	return ops_builder_event(b, &event);
}

static uint32_t add_work(struct ops_builder *b, const char *name, enum ops_event_kind kind, int64_t start_ns, int64_t end_ns,
                         int64_t correlation, uint64_t id)
{
	struct ops_new_event event = scene_event(b, STREAM, name, start_ns, end_ns);

	event.kind = kind;
	event.correlation = correlation;
	event.id = id;
	return ops_builder_event(b, &event);
}

static void add_operator(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, uint64_t id)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.id = id;
	ops_builder_event(b, &event);
}

static void draw(struct ops_builder *b, uint32_t call, uint32_t work)
{
	ops_builder_link(b, &(struct ops_link){call, work, OPS_LINK_LAUNCH, OPS_NONE});
}

static void nothing_on_a_device(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	char device[OPS_DEVICE_NAME_BYTES];
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "op", 0, 100);
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_null(costs.launcher);
	assert_null(costs.device_time);
	assert_null(costs.self_device_time);
	assert_null(ops_trace_device(trace, device));
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

/* Makes a range around an operator around another one, each of which launches work. */
static struct ops_trace *nested_launches(void)
{
	struct ops_builder *b = open_with_stream();

	scene_range(b, 0, "range", 0, 100);
	add_operator(b, "outer", 10, 60, 1);
	draw(b, add_call(b, 12, 5), add_work(b, "first", OPS_EVENT_KERNEL, 200, 210, 5, 1));
	add_operator(b, "inner", 20, 40, 2);
	draw(b, add_call(b, 22, 6), add_work(b, "second", OPS_EVENT_KERNEL, 210, 240, 6, 2));
	draw(b, add_call(b, 70, 7), add_work(b, "third", OPS_EVENT_GPU_MEMCPY, 240, 340, 7, 0));
	add_work(b, "range", OPS_EVENT_GPU_USER_ANNOTATION, 199, 341, -1, 0);
	return scene_close(b);
}

static void operators_have_the_time_of_what_they_launched(void **state)
{
	struct ops_trace *trace = nested_launches();
	struct ops_event_costs costs = scene_costs(trace);
	uint32_t outer = scene_row(trace, "outer"), inner = scene_row(trace, "inner");
	char device[OPS_DEVICE_NAME_BYTES];

	(void)state;
	assert_string_equal(ops_trace_device(trace, device), "cuda");
	assert_int_equal(costs.launcher[scene_row(trace, "first")], outer);
	assert_int_equal(costs.launcher[scene_row(trace, "second")], inner);
	assert_int_equal(costs.launcher[scene_row(trace, "third")], OPS_NONE);
	assert_int_equal(costs.launcher[outer], OPS_NONE);
	assert_int_equal(costs.self_device_time[outer], 10);
	assert_int_equal(costs.device_time[outer], 40);
	assert_int_equal(costs.self_device_time[inner], 30);
	assert_int_equal(costs.device_time[inner], 30);
	assert_int_equal(costs.device_time[scene_row(trace, "third")], 100);
	assert_int_equal(costs.device_time[0], 40); /* the range: what was launched in operators in it */
	assert_int_equal(costs.self_device_time[0], 0);
	assert_false(ops_event_on_device(trace, outer));
	assert_true(ops_event_on_device(trace, scene_row(trace, "first")));
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void rows_of_a_device_are_apart_and_have_no_time_on_the_cpu(void **state)
{
	struct ops_trace *trace = nested_launches();
	struct ops_averages_options options = {0};
	struct ops_average *rows, total;
	struct ops_event_costs costs = scene_costs(trace);
	uint32_t *refs;
	size_t count, ref_count, ranges = 0;

	(void)state;
	assert_int_equal(ops_key_averages(trace, false, &options, &rows, &count, NULL), OPS_OK);
	for (size_t i = 0; i < count; i++) {
		bool device = rows[i].device_type == 1;

		assert_int_equal(rows[i].cpu_time_total_ns == 0, device);
		if (strcmp(ops_average_name(trace, &rows[i]).bytes, "range") != 0)
			continue;
		ranges++;
		assert_true(rows[i].is_user_annotation);
		assert_int_equal(rows[i].self_device_time_total_ns, device ? 142 : 0);
	}
	assert_int_equal(ranges, 2);
	ops_free(rows);
	assert_int_equal(ops_function_events(trace, &refs, &ref_count, NULL), OPS_OK);
	ops_total_average(trace, &costs, refs, ref_count, &total);
	assert_int_equal(total.self_cpu_time_total_ns, 100);
	assert_int_equal(total.self_device_time_total_ns, 10 + 30 + 10 + 30 + 100 + 142);
	ops_free(refs);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

/* A synchronisation on a stream lasts while the device waits, or works at rows that count already. */
static void waits_are_not_device_time(void **state)
{
	struct ops_builder *b = open_with_stream();
	struct ops_averages_options options = {0};
	struct ops_average *rows, total;
	struct ops_event_costs costs;
	struct ops_trace *trace;
	uint32_t *refs;
	size_t count, ref_count, waits = 0;

	(void)state;
	add_operator(b, "op", 0, 50, 1);
	draw(b, add_call(b, 5, 9), add_work(b, "work", OPS_EVENT_KERNEL, 100, 110, 9, 1));
	draw(b, add_call(b, 20, 10), add_work(b, "Stream Sync", OPS_EVENT_SYNC, 110, 310, 10, 1));
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.self_device_time[scene_row(trace, "Stream Sync")], 0);
	assert_int_equal(costs.self_device_time[scene_row(trace, "op")], 10);
	assert_int_equal(ops_key_averages(trace, false, &options, &rows, &count, NULL), OPS_OK);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(ops_average_name(trace, &rows[i]).bytes, "Stream Sync") != 0)
			continue;
		waits++;
		assert_int_equal(rows[i].self_device_time_total_ns, 0);
		assert_int_equal(rows[i].device_time_total_ns, 0);
	}
	assert_int_equal(waits, 1);
	ops_free(rows);
	assert_int_equal(ops_function_events(trace, &refs, &ref_count, NULL), OPS_OK);
	ops_total_average(trace, &costs, refs, ref_count, &total);
	assert_int_equal(total.self_device_time_total_ns, 10 + 10); /* of the operator, and of the kernel's row */
	ops_free(refs);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void without_flows_correlations_decide_and_without_calls_ids(void **state)
{
	struct ops_builder *b = open_with_stream();
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	add_operator(b, "by call", 0, 10, 1);
	add_call(b, 5, 9);
	add_operator(b, "by id", 20, 30, 2);
	add_call(b, 40, 10); /* in no operator, whatever the id of its work says */
	add_work(b, "first", OPS_EVENT_KERNEL, 100, 101, 9, 2);
	add_work(b, "second", OPS_EVENT_KERNEL, 101, 103, 11, 2);
	add_work(b, "third", OPS_EVENT_GPU_MEMSET, 103, 107, 10, 2);
	add_work(b, "fourth", OPS_EVENT_KERNEL, 107, 115, -1, 3); /* of no operator that there is */
	add_work(b, "waiting", OPS_EVENT_SYNC, 115, 131, -1, 2);
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.launcher[scene_row(trace, "first")], scene_row(trace, "by call"));
	assert_int_equal(costs.launcher[scene_row(trace, "second")], scene_row(trace, "by id"));
	assert_int_equal(costs.launcher[scene_row(trace, "third")], OPS_NONE);
	assert_int_equal(costs.launcher[scene_row(trace, "fourth")], OPS_NONE);
	assert_int_equal(costs.launcher[scene_row(trace, "waiting")], OPS_NONE);
	assert_int_equal(costs.device_time[scene_row(trace, "by call")], 1);
	assert_int_equal(costs.device_time[scene_row(trace, "by id")], 2);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void asynchronous_operators_launch_nothing(void **state)
{
	struct ops_builder *b = open_with_stream();
	struct ops_new_event event = scene_event(b, 0, "later", 0, 100);
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	event.id = 1;
	event.end_track = 1;
	ops_builder_event(b, &event);
	draw(b, add_call(b, 50, 4), add_work(b, "kernel", OPS_EVENT_KERNEL, 200, 300, 4, 1));
	trace = scene_close(b);
	costs = scene_costs(trace);
	assert_int_equal(costs.device_time[scene_row(trace, "later")], 0);
	assert_int_equal(costs.launcher[scene_row(trace, "kernel")], OPS_NONE);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void make_costs(void *context)
{
	struct ops_event_costs costs;
	struct ops_error error;

	if (ops_event_costs_init(&costs, context, false, &error) != OPS_OK)
		return;
	assert_int_equal(costs.device_time[scene_row(context, "outer")], 40);
	ops_event_costs_release(&costs);
}

static void survives_failing_allocations(void **state)
{
	struct ops_trace *trace = nested_launches();

	(void)state;
	assert_in_range(fail_each(make_costs, trace), 3, 20); /* launchers that were found stay with the trace */
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_on_a_device),
		cmocka_unit_test(operators_have_the_time_of_what_they_launched),
		cmocka_unit_test(rows_of_a_device_are_apart_and_have_no_time_on_the_cpu),
		cmocka_unit_test(waits_are_not_device_time),
		cmocka_unit_test(without_flows_correlations_decide_and_without_calls_ids),
		cmocka_unit_test(asynchronous_operators_launch_nothing),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
