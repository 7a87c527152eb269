/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/pair_times: device time measured by events around operators.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

/* Returns an operator with the measurement of its events, in the form of the text in a trace. */
static struct ops_new_event timed_event(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, const char *ns)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);
	char text[100];

	snprintf(text, sizeof(text), "\"Device time (ns)\":%s", ns);
	event.extra = scene_string(b, text);
	return event;
}

static void timed(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, const char *ns)
{
	struct ops_new_event event = timed_event(b, name, start_ns, end_ns, ns);

	ops_builder_event(b, &event);
}

static struct ops_trace *close_as(struct ops_builder *b, const char *device)
{
	struct ops_trace *trace = scene_close(b);

	assert_int_equal(ops_trace_set_metadata(trace, "device_times_of", 15, device, strlen(device), NULL), OPS_OK);
	return trace;
}

static void expect(const struct ops_trace *trace, const struct ops_event_costs *costs, const char *name, int64_t total_ns,
                   int64_t self_ns, bool legacy)
{
	uint32_t row = scene_row(trace, name);

	assert_int_equal(costs->device_time[row], total_ns);
	assert_int_equal(costs->self_device_time[row], self_ns);
	assert_int_equal(costs->legacy[row], legacy);
	assert_null(costs->launcher);
}

static struct ops_trace *nested(void)
{
	struct ops_builder *b = scene_open();

	timed(b, "outer", 0, 100, "90");
	scene_range(b, 0, "without", 10, 60);
	timed(b, "inner", 20, 40, "30");
	timed(b, "last", 70, 80, "20");
	scene_op(b, 0, "inner", 200, 300);
	return close_as(b, "\"npu\"");
}

static void what_ran_inside_is_not_counted_twice(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	timed(b, "outer", 0, 100, "90");
	scene_range(b, 0, "without", 10, 60);
	timed(b, "inner", 20, 40, "30");
	timed(b, "last", 70, 80, "20");
	timed(b, "short", 200, 300, "5");
	timed(b, "long", 210, 220, "7");
	trace = close_as(b, "\"npu\"");
	costs = scene_costs(trace);
	expect(trace, &costs, "outer", 90, 90 - 30 - 20, true);
	expect(trace, &costs, "without", 30, 0, false);
	expect(trace, &costs, "inner", 30, 30, true);
	expect(trace, &costs, "last", 20, 20, true);
	expect(trace, &costs, "short", 5, -2, true);
	expect(trace, &costs, "long", 7, 7, true);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

/* torch: the parent takes over its only child of the same name with its kernel. */
static void a_folded_operator_hands_its_time_on(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_event_costs costs;
	struct ops_trace *trace;
	uint32_t outer = OPS_NONE;

	(void)state;
	timed(b, "op", 0, 100, "90");
	timed(b, "op", 10, 90, "60");
	timed(b, "op", 20, 80, "50");
	timed(b, "leaf", 30, 40, "15");
	trace = close_as(b, "\"npu\"");
	costs = scene_costs(trace);
	for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++)
		if (ops_trace_events(trace)->parent[row] == OPS_NONE && outer == OPS_NONE)
			outer = row;
	assert_int_equal(costs.device_time[outer], 50);
	assert_int_equal(costs.self_device_time[outer], 35);
	expect(trace, &costs, "leaf", 15, 15, true);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

static void asynchronous_hidden_and_instant_events_have_no_self_time(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event = timed_event(b, "later", 0, 100, "90");
	struct ops_event_costs costs;
	struct ops_trace *trace;

	(void)state;
	event.end_track = 1;
	ops_builder_event(b, &event);
	timed(b, "profiler::_record_function_enter_new", 100, 200, "90");
	timed(b, "zero", 300, 310, "0");
	timed(b, "negative", 310, 320, "-5");
	timed(b, "text", 320, 330, "\"90\"");
	timed(b, "null", 330, 340, "null");
	timed(b, "first", 340, 350, "9223372036854775807");
	timed(b, "second", 350, 360, "99999999999999999999");
	trace = close_as(b, "\"npu\"");
	costs = scene_costs(trace);
	expect(trace, &costs, "later", 0, 0, false);
	expect(trace, &costs, "profiler::_record_function_enter_new", 0, 0, false);
	expect(trace, &costs, "zero", 0, 0, false);
	expect(trace, &costs, "negative", 0, 0, false);
	expect(trace, &costs, "text", 0, 0, false);
	expect(trace, &costs, "null", 0, 0, false);
	expect(trace, &costs, "first", INT64_MAX, INT64_MAX, true);
	expect(trace, &costs, "second", INT64_MAX, INT64_MAX, true);
	ops_event_costs_release(&costs);
	ops_trace_unref(trace);
}

/* torch's key of a group has is_legacy in it. */
static void averages_are_apart_by_whether_they_were_timed(void **state)
{
	struct ops_trace *trace = nested();
	struct ops_averages_options options = {0};
	struct ops_average *rows;
	size_t count, found = 0;

	(void)state;
	assert_int_equal(ops_key_averages(trace, false, &options, &rows, &count, NULL), OPS_OK);
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(ops_average_name(trace, &rows[i]).bytes, "inner") != 0)
			continue;
		assert_int_equal(rows[i].is_legacy, found == 0);
		assert_int_equal(rows[i].self_device_time_total_ns, found == 0 ? 30 : 0);
		assert_int_equal(rows[i].count, 1);
		found++;
	}
	assert_int_equal(found, 2);
	ops_free(rows);
	ops_trace_unref(trace);
}

/* Rows of operators alone, of those that were timed, make the sum at the table's foot. */
static void the_table_has_the_columns_of_the_device(void **state)
{
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	struct ops_averages_options how = {0};
	struct ops_trace *trace = nested();
	struct ops_average_list list;
	struct ops_average *averages;
	char device[OPS_DEVICE_NAME_BYTES], *text;
	struct ops_rows rows;
	struct ops_error error;
	size_t size;

	(void)state;
	options.use_device = ops_trace_device(trace, device);
	assert_string_equal(options.use_device, "npu");
	assert_int_equal(ops_key_averages(trace, false, &how, &averages, &list.count, NULL), OPS_OK);
	list.rows = averages;
	rows = ops_rows_of_averages(&list);
	assert_int_equal(ops_table_text(trace, &rows, &options, &text, &size, &error), OPS_OK);
	assert_non_null(strstr(text, "Self NPU    Self NPU %     NPU total  NPU time avg"));
	assert_non_null(strstr(text, "0.040us        44.44%       0.090us       0.090us"));
	assert_non_null(strstr(text, "Self NPU time total: 0.090us"));
	ops_free(text);
	ops_free(averages);
	ops_trace_unref(trace);
}

/* Any text in a file. */
static void only_a_name_of_a_device_counts(void **state)
{
	static const char *const others[] = {"\"\"", "7", "null", "{}", "[1, 2]"};
	char device[OPS_DEVICE_NAME_BYTES], longest[200];
	struct ops_trace *trace = nested();
	struct ops_event_costs costs;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(ops_trace_set_metadata(trace, "device_times_of", 15, others[i], strlen(others[i]), NULL), OPS_OK);
		assert_null(ops_trace_device(trace, device));
		costs = scene_costs(trace);
		assert_null(costs.legacy);
		assert_null(costs.device_time);
		assert_null(costs.self_device_time);
		ops_event_costs_release(&costs);
	}
	memset(longest, 'x', sizeof(longest));
	longest[0] = longest[sizeof(longest) - 1] = '"';
	assert_int_equal(ops_trace_set_metadata(trace, "device_times_of", 15, longest, sizeof(longest), NULL), OPS_OK);
	assert_int_equal(strlen(ops_trace_device(trace, device)), OPS_DEVICE_NAME_BYTES - 1);
	ops_trace_unref(trace);
}

static void make_costs(void *context)
{
	struct ops_event_costs costs;
	struct ops_error error;

	if (ops_event_costs_init(&costs, context, false, &error) != OPS_OK)
		return;
	assert_int_equal(costs.device_time[scene_row(context, "outer")], 90);
	ops_event_costs_release(&costs);
}

static void survives_failing_allocations(void **state)
{
	struct ops_trace *trace = nested();

	(void)state;
	assert_int_equal(fail_each(make_costs, trace), 3);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ran_inside_is_not_counted_twice),
		cmocka_unit_test(a_folded_operator_hands_its_time_on),
		cmocka_unit_test(asynchronous_hidden_and_instant_events_have_no_self_time),
		cmocka_unit_test(averages_are_apart_by_whether_they_were_timed),
		cmocka_unit_test(the_table_has_the_columns_of_the_device),
		cmocka_unit_test(only_a_name_of_a_device_counts),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
