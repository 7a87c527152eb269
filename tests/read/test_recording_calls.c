/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls of a recording: names, functions, nesting and lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "base/alloc.h"

static struct ops_slot *open_call(uint32_t number, uint32_t line)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	if (!slot)
		return NULL;
	slot->owner = NULL;
	slot->end_ticks = 0;
	slot->sequence_nr = -1;
	slot->name = number;
	slot->call_line = line;
	slot->forward_thread = slot->end_thread = 0;
	slot->kind = OPS_SLOT_PYTHON;
	slot->scope = 0;
	slot->flags = 0;
	slot->start_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	return slot;
}

static void close_call(struct ops_slot *slot)
{
	const struct ops_collector *collector = ops_collector_get();

	if (slot)
		ops_slot_close(slot, ops_ticks(collector->tsc), collector->thread()->number);
}

static bool add_functions(struct ops_recording *recording)
{
	static const struct ops_recorded_function functions[] = {
		{.row_name = "a.py(3): f", .row_name_bytes = 10, .name = "f", .name_bytes = 1, .file = "/x/a.py", .file_bytes = 7,
		 .line = 3},
		{.row_name = "<built-in function len>", .row_name_bytes = 23, .name = "<built-in function len>",
		 .name_bytes = 23},
		{.row_name = "Python GC", .row_name_bytes = 9},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!ops_recording_add_function(recording, &functions[i]))
			return false;
	return true;
}

static uint32_t clock_of_seven(void)
{
	return 7;
}

/* f ─┬─ len ─┬─ range
 *    │       └─ in dropped    (in another f, which was dropped; and a call of no known function)
 *    ├─ Python GC
 *    └─ f, unfinished like the first */
static enum ops_code record(struct ops_trace **ret_trace)
{
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_slot *outer, *inner, *dropped;
	struct ops_range range;
	enum ops_code code = ops_session_start(NULL, &session, NULL);

	if (code)
		return code;
	outer = open_call(1, 0);
	inner = open_call(2, 5);
	ops_set_call_line(clock_of_seven);
	range = ops_range_begin("range", 5);
	ops_set_call_line(NULL);
	ops_range_end(range);
	dropped = open_call(1, 6);
	ops_set_call_line(clock_of_seven);
	range = ops_range_begin("in dropped", 10);
	ops_set_call_line(NULL);
	ops_range_end(range);
	close_call(dropped);
	if (dropped)
		dropped->flags |= OPS_SLOT_DROPPED;
	close_call(inner);
	close_call(open_call(4, 6));
	close_call(open_call(3, 0));
	inner = open_call(1, 8);
	code = ops_session_stop(session, &recording, NULL);
	if (code)
		ops_session_discard(session);
	if (inner)
		ops_slot_close(inner, UINT64_MAX, 0);
	if (outer)
		ops_slot_close(outer, UINT64_MAX, 0);
	if (!code && !add_functions(recording)) {
		ops_recording_free(recording);
		return OPS_NO_MEMORY;
	}
	if (!code && (code = ops_trace_from_recording(recording, ret_trace, NULL)))
		ops_recording_free(recording);
	return code;
}

static void assert_row(const struct ops_trace *trace, uint32_t row, const char *name, uint32_t parent, uint32_t line)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct ops_string text = ops_trace_string(trace, e->name[row]);

	assert_string_equal(text.bytes, name);
	assert_int_equal(e->parent[row], parent);
	assert_int_equal(e->call_line[row], line);
}

static void calls_nest_and_are_named(void **state)
{
	struct ops_trace *trace = NULL;
	const struct ops_events *e;
	struct ops_function_text function;

	(void)state;
	assert_int_equal(record(&trace), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 6);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	assert_row(trace, 0, "a.py(3): f", OPS_NONE, 0);
	assert_row(trace, 1, "<built-in function len>", 0, 5);
	assert_row(trace, 2, "range", 1, 7);
	assert_row(trace, 3, "in dropped", 1, 6); /* 7 is a line of the function that has no row */
	assert_row(trace, 4, "Python GC", 0, 0);
	assert_row(trace, 5, "a.py(3): f", 0, 8);
	assert_int_equal(e->flags[0], OPS_EVENT_UNFINISHED);
	assert_int_equal(e->flags[1], 0);
	assert_int_equal(e->flags[5], OPS_EVENT_UNFINISHED);
	for (uint32_t row = 0, id = 0; row < 6; row++) {
		bool is_range = row == 2 || row == 3;

		assert_int_equal(e->python_id[row], is_range ? OPS_NONE : ++id);
		assert_int_equal(e->python_parent[row], row == 0 || is_range ? OPS_NONE : 1);
	}
	assert_true(ops_event_function(trace, 5, &function));
	assert_int_equal(function.file.size, 7);
	assert_int_equal(function.line, 3);
	assert_int_equal(e->function[0], e->function[5]);
	assert_int_equal(e->function[4], OPS_NONE);
	ops_trace_unref(trace);
}

static void out_of_memory(void **state)
{
	bool done = false;

	(void)state;
	for (uint64_t nth = 1; !done; nth++) {
		struct ops_trace *trace = NULL;
		enum ops_code code;

		ops_alloc_fail_at(nth, false);
		code = record(&trace);
		done = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !trace && !done));
		if (trace)
			assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
		ops_trace_unref(trace);
	}
}

/* Calls of a function, and steps that end in them, near their end or (`begins`) near their start. Times are ticks after the start. */
static void assert_steps(bool begins, const uint64_t expected[4])
{
	const struct ops_collector *collector = ops_collector_get();
	static const uint64_t calls[][2] = {{50, 1000}, {1010, 2000}, {2010, 3000}};
	const uint64_t ends[] = {100, begins ? 1100 : 900, begins ? 2100 : 1900, begins ? 3500 : 2900};
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;
	const struct ops_events *e;
	uint64_t at;
	int64_t found_ns[6] = {0}, call_ns[3][2] = {{0}};
	size_t step = 0, call = 0;

	assert_int_equal(ops_session_start(NULL, &session, NULL), OPS_OK);
	at = ops_ticks(collector->tsc);
	while (ops_ticks(collector->tsc) < at + 4000)
		;
	for (int i = 0; i < 3; i++) {
		struct ops_slot *slot = open_call(1, 0);

		assert_non_null(slot);
		slot->start_ticks = at + calls[i][0];
		ops_slot_close(slot, at + calls[i][1], collector->thread()->number);
		ops_range_add("ProfilerStep#0", 14, at + ends[i], at + ends[i + 1]);
	}
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_true(add_functions(recording));
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 6);
	for (uint32_t row = 0; row < 6; row++) {
		int64_t *times_ns = e->kind[row] == OPS_EVENT_USER_ANNOTATION ? &found_ns[2 * step++] : call_ns[call++];

		times_ns[0] = e->start_ns[row];
		times_ns[1] = e->end_ns[row];
	}
	/* The borders, as 10 times the number of a call and whether it is its start or its end; 0 where it is not moved. */
	for (int i = 0; i < 4; i++) {
		int64_t border_ns = i < 3 ? found_ns[2 * i] : found_ns[5];
		uint64_t is = 0;

		for (uint64_t k = 0; k < 3; k++)
			for (uint64_t side = 0; side < 2; side++)
				is = border_ns == call_ns[k][side] ? 10 * (k + 1) + side : is;
		assert_int_equal(is, expected[i]);
		assert_true(i == 0 || i == 3 || found_ns[2 * i - 1] == found_ns[2 * i]);
	}
	ops_trace_unref(trace);
}

/* The first border has no call around it that ends before the next one. */
static void steps_end_between_calls(void **state)
{
	(void)state;
	assert_steps(false, (const uint64_t[]){0, 11, 21, 31});
}

static uint32_t called_from;

static uint32_t caller(void)
{
	return called_from;
}

/* A range, two operators with another one in each, and an operator whose stack does not exist. */
static void operators_have_call_stacks(void **state)
{
	static const char text[] = "net.py(7): step;train.py(3): main;";
	const struct ops_collector *collector = ops_collector_get();
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;
	const struct ops_events *e;
	struct ops_slot *outer, *inner;
	struct ops_range range;

	(void)state;
	assert_int_equal(ops_session_start(NULL, &session, NULL), OPS_OK);
	called_from = collector->intern(collector->thread(), text, sizeof(text) - 1, NULL, 0);
	assert_int_not_equal(called_from, 0);
	called_from |= OPS_CALL_STACK;
	ops_set_call_line(caller);
	range = ops_range_begin("range", 5);
	ops_set_call_line(NULL);
	for (int i = 0; i < 2; i++) {
		outer = open_call(called_from & ~OPS_CALL_STACK, called_from);
		outer->kind = OPS_SLOT_OP;
		inner = open_call(called_from & ~OPS_CALL_STACK, called_from);
		inner->kind = OPS_SLOT_OP;
		close_call(inner);
		close_call(outer);
	}
	outer = open_call(called_from & ~OPS_CALL_STACK, OPS_CALL_STACK | 99);
	outer->kind = OPS_SLOT_OP;
	close_call(outer);
	ops_range_end(range);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_true(add_functions(recording));
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 5);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	for (uint32_t row = 0; row < 5; row++) {
		uint32_t line;
		struct ops_string file = ops_event_line(trace, row, &line);
		bool is_inner = row == 2 || row == 4;

		assert_true((e->call_stack[row] == OPS_NONE) == is_inner);
		if (!is_inner)
			assert_string_equal(ops_trace_string(trace, e->call_stack[row]).bytes, text);
		assert_int_equal(line, 7);
		assert_memory_equal(file.bytes, "net.py", file.size);
	}
	ops_trace_unref(trace);
}

/* The call that fetches the first batch begins the first step. The last step ends outside of calls. */
static void steps_of_batches_begin_between_calls(void **state)
{
	(void)state;
	assert_steps(true, (const uint64_t[]){10, 20, 30, 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_nest_and_are_named),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(steps_end_between_calls),
		cmocka_unit_test(operators_have_call_stacks),
		cmocka_unit_test(steps_of_batches_begin_between_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
