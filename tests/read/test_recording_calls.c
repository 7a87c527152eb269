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

static uint32_t tell_seven(void)
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
	ops_set_call_line(tell_seven);
	range = ops_range_begin("range", 5);
	ops_set_call_line(NULL);
	ops_range_end(range);
	dropped = open_call(1, 6);
	ops_set_call_line(tell_seven);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_nest_and_are_named),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
