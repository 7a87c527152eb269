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

#define WITHOUT(kind) (1u << OPS_EVENT_##kind)

/* An operator in a range in an operator, and memory in each. */
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
		cmocka_unit_test(nothing_may_stay),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
