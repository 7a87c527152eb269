/* SPDX-License-Identifier: Apache-2.0
 *
 * trace/select: a trace without some kinds of events is as if they had not been recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/merge.h>

#include "../analyze/scene.h"
#include "../base/failing.h"
#include "rich.h"

#define WITHOUT(kind) (1u << OPS_EVENT_##kind)

/* Makes an operator in a range in an operator, with memory in each. */
static struct ops_trace *nested(void)
{
	struct ops_builder *b = scene_open();

	scene_op(b, 0, "outer", 0, 100);
	scene_range(b, 0, "range", 10, 90);
	scene_op(b, 0, "inner", 20, 50);
	scene_memory(b, 0, 5, 64, 0);
	scene_memory(b, 0, 30, -64, 0);
	return scene_close(b);
}

static struct ops_trace *select_from(struct ops_trace *take_trace, uint32_t left_out)
{
	struct ops_trace *selected;

	assert_int_equal(ops_trace_select(take_trace, left_out, &selected, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(selected, NULL), OPS_OK);
	ops_trace_unref(take_trace);
	return selected;
}

static size_t memory_count(const struct ops_trace *trace)
{
	size_t count;

	ops_trace_memory(trace, &count);
	return count;
}

static void the_tree_closes_over_what_is_gone(void **state)
{
	struct ops_trace *trace = select_from(nested(), WITHOUT(USER_ANNOTATION));
	const struct ops_events *events = ops_trace_events(trace);

	(void)state;
	assert_int_equal(events->count, 2);
	assert_int_equal(events->parent[1], 0);
	assert_int_equal(events->self_ns[0], 70);
	assert_int_equal(memory_count(trace), 2);
	ops_trace_unref(trace);
}

static void memory_is_left_out_by_its_own_bit(void **state)
{
	struct ops_trace *trace = select_from(nested(), OPS_SELECT_MEMORY);

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 3);
	assert_int_equal(memory_count(trace), 0);
	ops_trace_unref(trace);
}

static size_t role_count(const struct ops_trace *trace)
{
	size_t count;

	ops_trace_roles(trace, &count);
	return count;
}

/* Counters are not events, and roles of storages belong to memory. */
static void other_rows_stay(void **state)
{
	struct ops_trace *trace, *rich = scene_close(rich_builder());
	const struct ops_counter_record *counters, *kept;
	size_t count, kept_count;

	(void)state;
	trace = select_from(scene_close(rich_builder()), WITHOUT(USER_ANNOTATION));
	counters = ops_trace_counters(rich, &count);
	kept = ops_trace_counters(trace, &kept_count);
	assert_true(count > 0);
	assert_int_equal(kept_count, count);
	for (size_t i = 0; i < count; i++) {
		assert_float_equal(kept[i].value, counters[i].value, 0);
		assert_int_equal(kept[i].time_ns, counters[i].time_ns);
		assert_string_equal(ops_trace_string(trace, kept[i].name).bytes, ops_trace_string(rich, counters[i].name).bytes);
	}
	assert_true(role_count(rich) > 0);
	assert_int_equal(role_count(trace), role_count(rich));
	ops_trace_unref(trace);
	trace = select_from(rich, OPS_SELECT_MEMORY);
	assert_int_equal(role_count(trace), 0);
	ops_trace_counters(trace, &kept_count);
	assert_int_equal(kept_count, count);
	ops_trace_unref(trace);
}

static void nothing_may_stay(void **state)
{
	struct ops_trace *trace = select_from(nested(), WITHOUT(CPU_OP) | WITHOUT(USER_ANNOTATION) | OPS_SELECT_MEMORY);

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 0);
	ops_trace_unref(trace);
}

static void select_ops(void *context)
{
	struct ops_trace *selected = NULL;
	struct ops_error error;
	enum ops_code code = ops_trace_select(context, WITHOUT(USER_ANNOTATION), &selected, &error);

	assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !selected));
	ops_trace_unref(selected);
}

static void survives_failing_allocations(void **state)
{
	struct ops_trace *trace = nested();

	(void)state;
	fail_each(select_ops, trace);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_closes_over_what_is_gone),
		cmocka_unit_test(memory_is_left_out_by_its_own_bit),
		cmocka_unit_test(other_rows_stay),
		cmocka_unit_test(nothing_may_stay),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
