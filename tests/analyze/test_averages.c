/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/averages: keys of groups, sums, and what a group takes from its first event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

/* A trace with its function events and their groups. */
struct grouped {
	struct ops_trace *trace;
	struct ops_event_costs costs;
	uint32_t *refs;
	size_t ref_count;
	struct ops_average *rows;
	size_t count;
};

static struct grouped group(struct ops_builder *take_builder, bool by_input_shape, bool by_overload_name)
{
	struct ops_averages_options options = {.by_input_shape = by_input_shape, .by_overload_name = by_overload_name};
	struct grouped g = {.trace = scene_close(take_builder)};

	assert_int_equal(ops_function_events(g.trace, &g.refs, &g.ref_count, NULL), OPS_OK);
	assert_int_equal(ops_event_costs_init(&g.costs, g.trace, true, NULL), OPS_OK);
	assert_int_equal(ops_averages(g.trace, &g.costs, g.refs, g.ref_count, &options, &g.rows, &g.count, NULL), OPS_OK);
	return g;
}

static void grouped_release(struct grouped *g)
{
	ops_free(g->rows);
	ops_free(g->refs);
	ops_event_costs_release(&g->costs);
	ops_trace_unref(g->trace);
}

static void assert_name(const struct grouped *g, size_t i, const char *name)
{
	struct ops_string found = ops_average_name(g->trace, &g->rows[i]);

	assert_int_equal(found.size, strlen(name));
	assert_memory_equal(found.bytes, name, found.size);
}

static void nothing(void **state)
{
	struct grouped g = group(scene_open(), true, true);
	struct ops_average total;

	(void)state;
	assert_int_equal(g.count, 0);
	ops_total_average(g.trace, &g.costs, g.refs, 0, &total);
	assert_int_equal(total.count, 0);
	assert_int_equal(total.key, OPS_KEY_TOTAL);
	assert_int_equal(total.first, OPS_NONE);
	grouped_release(&g);
}

static void sums_in_order_of_first_occurrence(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_average total;
	struct grouped g;

	(void)state;
	scene_op(b, 0, "b", 0, 100);
	scene_op(b, 0, "a", 10, 40);
	scene_op(b, 0, "a", 50, 60);
	scene_op(b, 1, "b", 60, 61);
	scene_memory(b, 0, 20, 8, 0);
	g = group(b, false, false);
	assert_int_equal(g.count, 2);
	assert_name(&g, 0, "b");
	assert_int_equal(g.rows[0].first, 0);
	assert_int_equal(g.rows[0].count, 2);
	assert_int_equal(g.rows[0].cpu_time_total_ns, 101);
	assert_int_equal(g.rows[0].self_cpu_time_total_ns, 61);
	assert_int_equal(g.rows[0].cpu_memory_usage, 8);
	assert_int_equal(g.rows[0].self_cpu_memory_usage, 0);
	assert_name(&g, 1, "a");
	assert_int_equal(g.rows[1].count, 2);
	assert_int_equal(g.rows[1].cpu_time_total_ns, 40);
	assert_int_equal(g.rows[1].self_cpu_memory_usage, 8);
	ops_total_average(g.trace, &g.costs, g.refs, g.ref_count, &total);
	assert_int_equal(total.count, 4);
	assert_int_equal(total.cpu_time_total_ns, 141);
	assert_int_equal(total.self_cpu_time_total_ns, 101);
	assert_int_equal(total.cpu_memory_usage, 16);
	assert_string_equal(ops_average_name(g.trace, &total).bytes, "Total");
	grouped_release(&g);
}

static void steps_are_one_group(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	scene_range(b, 0, "ProfilerStep#1", 0, 10);
	scene_range(b, 0, "ProfilerStep*", 10, 20);
	scene_range(b, 0, "ProfilerStep#2", 20, 30);
	scene_range(b, 0, "ProfilerStep", 30, 40);
	scene_op(b, 0, "ProfilerStep#3", 40, 50);
	scene_range(b, 0, "a ProfilerStep#3", 50, 60);
	g = group(b, false, false);
	assert_int_equal(g.count, 4);
	assert_name(&g, 0, "ProfilerStep*");
	assert_int_equal(g.rows[0].count, 3);
	assert_name(&g, 1, "ProfilerStep");
	assert_name(&g, 2, "ProfilerStep*");
	assert_int_equal(g.rows[2].is_user_annotation, 0);
	assert_name(&g, 3, "a ProfilerStep#3");
	grouped_release(&g);
}

static void annotations_are_apart_from_operators(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	scene_op(b, 0, "same", 0, 10);
	scene_range(b, 0, "same", 20, 40);
	scene_op(b, 0, "same", 50, 60);
	g = group(b, false, false);
	assert_int_equal(g.count, 2);
	assert_int_equal(g.rows[0].is_user_annotation, 0);
	assert_int_equal(g.rows[0].cpu_time_total_ns, 20);
	assert_int_equal(g.rows[1].is_user_annotation, 1);
	assert_int_equal(g.rows[1].scope, 7);
	assert_int_equal(g.rows[1].cpu_time_total_ns, 20);
	grouped_release(&g);
}

static void shapes_are_compared_without_strides(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	scene_op_on(b, "a", 0, 10, 2, 3, 3);
	scene_op_on(b, "a", 10, 20, 2, 3, 100);
	scene_op_on(b, "a", 20, 30, 3, 2, 2);
	scene_op(b, 0, "a", 30, 40);
	scene_op_on(b, "b", 40, 50, 2, 3, 3);
	scene_op_on(b, "a", 50, 60, 2, 3, 3);
	g = group(b, true, false);
	assert_int_equal(g.count, 4);
	assert_int_equal(g.rows[0].count, 3);
	assert_int_equal(g.rows[0].inputs, ops_trace_events(g.trace)->inputs[0]);
	assert_int_equal(g.rows[1].count, 1);
	assert_int_equal(g.rows[2].inputs, OPS_NONE);
	assert_name(&g, 3, "b");
	grouped_release(&g);
}

static void overloads_are_groups_on_request(void **state)
{
	static const char *const overloads[] = {"Tensor", "", "Scalar", "Tensor"};
	struct grouped g;

	(void)state;
	for (int by_overload_name = 0; by_overload_name < 2; by_overload_name++) {
		struct ops_builder *b = scene_open();

		for (int i = 0; i < 4; i++) {
			struct ops_new_event event = scene_event(b, 0, "a", 10 * i, 10 * i + 5);

			event.overload = scene_string(b, overloads[i]);
			ops_builder_event(b, &event);
		}
		scene_memory(b, 0, 100, 1, 0);
		g = group(b, false, by_overload_name);
		assert_int_equal(g.count, by_overload_name ? 4 : 2);
		if (by_overload_name) {
			assert_int_equal(g.rows[0].count, 2);
			assert_string_equal(ops_trace_string(g.trace, g.rows[0].overload).bytes, "Tensor");
			assert_string_equal(ops_trace_string(g.trace, g.rows[1].overload).bytes, "");
		} else {
			assert_int_equal(g.rows[0].overload, OPS_NONE);
		}
		grouped_release(&g);
	}
}

static void memory_records_are_groups(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_average row;
	struct grouped g;

	(void)state;
	scene_memory(b, 0, 10, 8, 0);
	scene_out_of_memory(b, 0, 20, 1 << 20);
	scene_memory(b, 1, 30, -4, 0);
	scene_memory(b, 1, 40, 16, 1);
	scene_memory(b, 1, 50, 32, 3);
	g = group(b, true, true);
	assert_int_equal(g.count, 2);
	assert_name(&g, 0, "[memory]");
	assert_int_equal(g.rows[0].count, 4);
	assert_int_equal(g.rows[0].cpu_memory_usage, 4);
	assert_int_equal(g.rows[0].self_cpu_memory_usage, 4);
	assert_int_equal(g.rows[0].device_memory_usage, 16);
	assert_int_equal(g.rows[0].cpu_time_total_ns, 0);
	assert_int_equal(g.rows[0].flops, 0);
	assert_name(&g, 1, "[OutOfMemory]");
	assert_int_equal(g.rows[1].cpu_memory_usage, 0);
	ops_average_of_event(g.trace, &g.costs, g.refs[2], &row);
	assert_int_equal(row.key, OPS_KEY_MEMORY);
	assert_int_equal(row.cpu_memory_usage, -4);
	assert_int_equal(row.count, 1);
	grouped_release(&g);
}

static void the_row_of_an_event(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event;
	struct ops_average row;
	struct grouped g;

	(void)state;
	scene_op_on(b, "a", 0, 100, 2, 3, 3);
	event = scene_event(b, 0, "b", 10, 30);
	event.overload = scene_string(b, "out");
	event.end_track = 1;
	event.scope = 1;
	ops_builder_event(b, &event);
	g = group(b, false, false);
	ops_average_of_event(g.trace, &g.costs, 0, &row);
	assert_int_equal(row.first, 0);
	assert_int_equal(row.count, 1);
	assert_int_equal(row.cpu_time_total_ns, 100);
	assert_int_equal(row.self_cpu_time_total_ns, 100);
	assert_int_equal(row.inputs, ops_trace_events(g.trace)->inputs[0]);
	assert_string_equal(ops_trace_string(g.trace, row.overload).bytes, "");
	ops_average_of_event(g.trace, &g.costs, 1, &row);
	assert_string_equal(ops_trace_string(g.trace, row.overload).bytes, "out");
	assert_int_equal(row.is_async, 1);
	assert_int_equal(row.scope, 1);
	assert_int_equal(row.cpu_time_total_ns, 20);
	assert_int_equal(row.self_cpu_time_total_ns, 0);
	assert_int_equal(row.inputs, OPS_NONE);
	grouped_release(&g);
}

/* More groups than the first table of slots has room for. */
static void many_groups(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	for (int64_t i = 0; i < 9000; i++)
		scene_op_on(b, i % 2 ? "a" : "b", i * 10, i * 10 + 5, i / 2 % 1500, i / 2 % 1500, 1);
	g = group(b, true, false);
	assert_int_equal(g.count, 3000);
	for (size_t i = 0; i < g.count; i++) {
		assert_int_equal(g.rows[i].count, 3);
		assert_int_equal(g.rows[i].first, i);
	}
	grouped_release(&g);
}

static void many_overloads(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	for (int64_t i = 0; i < 600; i++) {
		struct ops_new_event event = scene_event(b, 0, "a", i * 10, i * 10 + 5);
		char overload[32];

		/* Strings between them, so that the numbers of the overloads are not in a row. */
		for (int64_t n = 0; n < i * i % 17; n++) {
			snprintf(overload, sizeof(overload), "filler %d %d", (int)i, (int)n);
			scene_string(b, overload);
		}
		snprintf(overload, sizeof(overload), "%d", (int)(i % 300));
		event.overload = scene_string(b, overload);
		ops_builder_event(b, &event);
	}
	g = group(b, true, true);
	assert_int_equal(g.count, 300);
	for (size_t i = 0; i < g.count; i++)
		assert_int_equal(g.rows[i].count, 2);
	grouped_release(&g);
}

static void flops_are_summed_on_request(void **state)
{
	struct ops_average row, total;
	struct grouped g;

	(void)state;
	for (int with_flops = 0; with_flops < 2; with_flops++) {
		struct ops_builder *b = scene_open();

		for (int i = 0; i < 2; i++) {
			struct ops_new_event event = scene_event(b, 0, "aten::mul", 10 * i, 10 * i + 5);
			struct list list;

			list_open(&list, 2);
			put_tensor(&list, 6, 2, (const int64_t[]){3 + i, 4, 4, 1});
			put_double(&list, 0.5);
			event.inputs = ops_builder_inputs(b, list.bytes, list.size);
			ops_builder_event(b, &event);
		}
		g = group(b, false, false);
		assert_int_equal(g.rows[0].flops, 28);
		g.costs.with_flops = with_flops;
		ops_average_of_event(g.trace, &g.costs, 1, &row);
		assert_int_equal(row.flops, with_flops ? 16 : 0);
		ops_total_average(g.trace, &g.costs, g.refs, g.ref_count, &total);
		assert_int_equal(total.flops, with_flops ? 28 : 0);
		grouped_release(&g);
	}
}

static void average_events(void *context)
{
	struct grouped *g = context;
	struct ops_averages_options options = {.by_input_shape = true, .by_overload_name = true};
	struct ops_average *rows = NULL;
	struct ops_error error;
	size_t count = 77;
	enum ops_code code =
		ops_averages(g->trace, &g->costs, g->refs, g->ref_count, &options, &rows, &count, &error);

	if (code != OPS_OK) {
		assert_int_equal(code, OPS_NO_MEMORY);
		assert_null(rows);
		assert_int_equal(count, 77);
		return;
	}
	assert_int_equal(count, g->count);
	assert_memory_equal(rows, g->rows, count * sizeof(*rows));
	ops_free(rows);
}

static void survives_failing_allocations(void **state)
{
	struct ops_builder *b = scene_open();
	struct grouped g;

	(void)state;
	for (int64_t i = 0; i < 1200; i++)
		scene_op_on(b, "a", i * 10, i * 10 + 5, i, 1, 1);
	g = group(b, true, true);
	assert_in_range(fail_each(average_events, &g), 10, 100);
	grouped_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(sums_in_order_of_first_occurrence),
		cmocka_unit_test(steps_are_one_group),
		cmocka_unit_test(annotations_are_apart_from_operators),
		cmocka_unit_test(shapes_are_compared_without_strides),
		cmocka_unit_test(overloads_are_groups_on_request),
		cmocka_unit_test(memory_records_are_groups),
		cmocka_unit_test(the_row_of_an_event),
		cmocka_unit_test(many_groups),
		cmocka_unit_test(many_overloads),
		cmocka_unit_test(flops_are_summed_on_request),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
