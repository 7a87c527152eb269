/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/function_events: which rows and memory records are listed, and their order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "scene.h"

#define MEMORY(i) ((i) | OPS_MEMORY_REF)

static void assert_refs(struct ops_builder *take_builder, const uint32_t *expected, size_t expected_count)
{
	struct ops_trace *trace = scene_close(take_builder);
	uint32_t *refs;
	size_t count;

	assert_int_equal(ops_function_events(trace, &refs, &count, NULL), OPS_OK);
	assert_int_equal(count, expected_count);
	assert_memory_equal(refs, expected, count * sizeof(*refs));
	ops_free(refs);
	ops_trace_unref(trace);
}

static void nothing(void **state)
{
	(void)state;
	assert_refs(scene_open(), (const uint32_t[]){0}, 0);
}

static void hidden_and_folded_rows_are_left_out(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "aten::add", 0, 100);
	scene_op(b, 0, "aten::add", 10, 90); /* folded */
	scene_op(b, 0, "aten::mul", 20, 80);
	scene_op(b, 0, "aten::is_leaf", 110, 120); /* hidden */
	scene_range(b, 0, "aten::is_leaf", 130, 140);
	assert_refs(b, (const uint32_t[]){0, 2, 4}, 3);
}

static void memory_outside_of_events_is_listed(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_memory(b, 0, 5, 1, 0);      /* 0: before everything */
	scene_op(b, 0, "a", 10, 20);
	scene_memory(b, 0, 10, 1, 0);     /* 1: at the start, which counts as inside */
	scene_memory(b, 1, 15, 1, 0);     /* 2: another thread */
	scene_memory(b, 0, 20, 1, 0);     /* 3: at the end, likewise */
	scene_memory(b, 0, 21, 1, 0);     /* 4 */
	scene_memory(b, 1, 25, 1, 0);     /* 5 */
	scene_op(b, 1, "b", 25, 30);
	scene_memory(b, 1, 30, 1, 0);     /* 6 */
	scene_memory(b, 1, INT64_MAX, 1, 0); /* 7 */
	assert_refs(b, (const uint32_t[]){MEMORY(0), 0, MEMORY(2), MEMORY(4), 1, MEMORY(7)}, 6);
}

static void a_short_event_does_not_uncover_a_long_one(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "outer", 0, 100);
	scene_op(b, 0, "inner", 10, 20);
	scene_memory(b, 0, 50, 1, 0);
	scene_memory(b, 0, 101, 1, 0);
	assert_refs(b, (const uint32_t[]){0, 1, MEMORY(1)}, 3);
}

static void bookkeeping_covers_nothing(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "aten::is_leaf", 0, 100);
	scene_memory(b, 0, 50, 1, 0);
	assert_refs(b, (const uint32_t[]){MEMORY(0)}, 1);
}

static void failed_allocations_are_always_listed(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "a", 0, 100);
	scene_out_of_memory(b, 0, 50, 1 << 20);
	scene_op(b, 0, "b", 60, 70);
	assert_refs(b, (const uint32_t[]){0, MEMORY(0), 1}, 3);
}

/* More rows than lie between two looks at the clock. */
static struct ops_trace *many_events(void)
{
	struct ops_builder *b = scene_open();

	for (int64_t i = 0; i < 10000; i++)
		scene_op(b, 0, "a", 10 * i, 10 * i + 5);
	return scene_close(b);
}

static void a_deadline_cuts_the_list_short(void **state)
{
	struct ops_trace *trace = many_events();
	bool complete = true;
	uint32_t *refs;
	size_t count;

	(void)state;
	assert_int_equal(ops_function_events_until(trace, 0, &refs, &count, &complete, NULL), OPS_OK);
	assert_int_equal(count, 0);
	assert_false(complete);
	ops_free(refs);
	assert_int_equal(ops_function_events_until(trace, INT64_MAX - 1, &refs, &count, &complete, NULL), OPS_OK);
	assert_int_equal(count, 10000);
	assert_true(complete);
	ops_free(refs);
	ops_trace_unref(trace);
}

static void list_events(void *context)
{
	struct ops_trace *trace = context;
	struct ops_error error;
	uint32_t *refs = NULL;
	size_t count = 77;
	enum ops_code code = ops_function_events(trace, &refs, &count, &error);

	if (code == OPS_OK) {
		assert_int_equal(count, 2);
		ops_free(refs);
		return;
	}
	assert_int_equal(code, OPS_NO_MEMORY);
	assert_null(refs);
	assert_int_equal(count, 77);
}

static void survives_failing_allocations(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;

	(void)state;
	scene_op(b, 0, "a", 0, 100);
	scene_memory(b, 0, 101, 8, 0);
	trace = scene_close(b);
	assert_in_range(fail_each(list_events, trace), 2, 10);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(hidden_and_folded_rows_are_left_out),
		cmocka_unit_test(memory_outside_of_events_is_listed),
		cmocka_unit_test(a_short_event_does_not_uncover_a_long_one),
		cmocka_unit_test(bookkeeping_covers_nothing),
		cmocka_unit_test(failed_allocations_are_always_listed),
		cmocka_unit_test(a_deadline_cuts_the_list_short),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
