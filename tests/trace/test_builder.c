/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace contains what was added to the builder, sorted; and a failed allocation leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "rich.h"

static struct ops_trace *rich_trace(void)
{
	struct ops_trace *trace;
	struct ops_error error;

	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static void assert_string(const struct ops_trace *trace, uint32_t id, const char *expected)
{
	struct ops_string string = ops_trace_string(trace, id);

	assert_int_equal(string.size, strlen(expected));
	assert_string_equal(string.bytes, expected);
}

static void test_rows(void **state)
{
	static const char *const names[] = {"step", "aten::linear", "aten::linear", "aten::addmm", "aten::is_leaf",
	                                    "AddBackward0", "load", "mark"};
	static const uint32_t parents[] = {OPS_NONE, 0, 1, 1, OPS_NONE, OPS_NONE, OPS_NONE, OPS_NONE};
	static const int64_t self_ns[] = {920, 40, 0, 40, 0, 100, 0, 0};
	static const uint16_t flags[] = {OPS_EVENT_UNFINISHED, 0, OPS_EVENT_FOLDED, 0, OPS_EVENT_HIDDEN, 0, OPS_EVENT_ASYNC, 0};
	struct ops_trace *trace = rich_trace();
	const struct ops_events *e = ops_trace_events(trace);

	(void)state;
	assert_int_equal(e->count, 8);
	for (size_t row = 0; row < e->count; row++) {
		assert_string(trace, e->name[row], names[row]);
		assert_int_equal(e->parent[row], parents[row]);
		assert_int_equal(e->self_ns[row], self_ns[row]);
		assert_int_equal(e->flags[row], flags[row]);
		assert_int_equal(e->track[row], row == 5);
		assert_int_equal(e->end_track[row], row == 5 || row == 6);
		assert_string(trace, e->overload[row], row == 3 ? "out" : "");
		assert_int_equal(e->id[row], row == 5 ? 77 : 0);
		assert_int_equal(e->sequence_nr[row], row == 1 || row == 3 || row == 5 ? 5 : -1);
		assert_int_equal(e->forward_thread[row], row == 5);
		assert_int_equal(e->inputs[row], row == 1 ? 0 : row == 3 ? 1 : OPS_NONE);
	}
	assert_string(trace, e->args[0], "n=1");
	assert_int_equal(e->args[1], OPS_NONE);
	assert_int_equal(e->scope[5], 1);
	assert_int_equal(e->kind[7], OPS_EVENT_CPU_INSTANT);
	ops_trace_unref(trace);
}

static void test_the_rest(void **state)
{
	struct ops_trace *trace = rich_trace();
	const struct ops_trace_info *info = ops_trace_info(trace);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	const struct ops_memory_record *memory;
	const struct ops_counter_record *counters;
	const struct ops_link *links;

	(void)state;
	assert_int_equal(count, 3);
	assert_int_equal(tracks[0].number, 1);
	assert_string(trace, tracks[0].name, "main");
	assert_string(trace, tracks[1].name, "");
	memory = ops_trace_memory(trace, &count);
	assert_int_equal(count, 2);
	assert_int_equal(memory[0].time_ns, 50);
	assert_int_equal(memory[1].bytes, -8);
	assert_int_equal(ops_trace_memory_stacks(trace)[0], OPS_NONE);
	assert_string(trace, ops_trace_memory_stacks(trace)[1], "a.py(1): f;");
	counters = ops_trace_counters(trace, &count);
	assert_int_equal(count, 2);
	assert_int_equal(counters[0].time_ns, 60);
	assert_true(counters[1].value == 1.5);
	links = ops_trace_links(trace, &count);
	assert_int_equal(count, 1);
	assert_int_equal(links[0].from, 3);
	assert_int_equal(links[0].to, 5);
	assert_int_equal(ops_trace_inputs_count(trace), 2);
	assert_int_equal(info->lost, 3);
	assert_string_equal(info->host_name, "host");
	assert_string_equal(info->process_name, "");
	assert_int_not_equal(ops_trace_find_string(trace, "load", 4), OPS_NONE);
	assert_int_equal(ops_trace_find_string(trace, "nowhere", 7), OPS_NONE);
	assert_true(ops_trace_string_count(trace) > ops_trace_find_string(trace, "load", 4));
	ops_trace_unref(trace);
}

/* Optional columns are there only when somebody needs them. */
static void test_plain_rows(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace;
	const struct ops_events *e;

	(void)state;
	ops_builder_track(builder, &(struct ops_track){.number = 1});
	for (int64_t i = 0; i < 5000; i++)
		ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = i, .end_ns = i + 1});
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 5000);
	assert_null(e->overload);
	assert_null(e->end_track);
	assert_null(e->args);
	assert_null(e->id);
	assert_int_equal(e->start_ns[4999], 4999);
	ops_trace_unref(trace);
}

static void test_strings_and_inputs(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	uint32_t id = ops_builder_string(builder, "a\0b", 3);
	struct ops_trace *trace;
	struct list list;

	(void)state;
	assert_int_equal(ops_builder_string(builder, "", 0), 0);
	assert_int_equal(ops_builder_string(builder, "a\0b", 3), id);
	assert_int_not_equal(ops_builder_string(builder, "a\0c", 3), id);
	assert_int_equal(rich_inputs(builder, 3), 0);
	assert_int_equal(rich_inputs(builder, 4), 1);
	assert_int_equal(rich_inputs(builder, 3), 0);
	list_open(&list, 2); /* a list that says two and has none */
	assert_int_equal(ops_builder_inputs(builder, list.bytes, list.size), OPS_NONE);
	assert_false(ops_builder_failed(builder));
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_inputs_count(trace), 2);
	assert_memory_equal(ops_trace_string(trace, id).bytes, "a\0b", 4);
	ops_trace_unref(trace);
}

static void test_set_sequence(void **state)
{
	struct ops_builder *builder = ops_builder_new();
	struct ops_trace *trace;
	uint32_t row;

	(void)state;
	ops_builder_track(builder, &(struct ops_track){.number = 1});
	ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 5, .end_ns = 6});
	row = ops_builder_event(builder, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 1, .end_ns = 2});
	ops_builder_set_sequence(builder, row, 40, 2);
	assert_int_equal(ops_builder_finish(builder, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->sequence_nr[0], 40);
	assert_int_equal(ops_trace_events(trace)->forward_thread[0], 2);
	assert_int_equal(ops_trace_events(trace)->sequence_nr[1], -1);
	ops_trace_unref(trace);
}

static void test_give_up(void **state)
{
	(void)state;
	ops_builder_free(NULL);
	ops_builder_free(ops_builder_new());
	ops_builder_free(rich_builder());
}

/* Each allocation fails once, alone and with all that follow. */
static void fail_each(bool all_after)
{
	bool made = false;

	for (uint64_t nth = 1; !made; nth++) {
		struct ops_trace *trace = NULL;
		struct ops_builder *builder;
		enum ops_code code = OPS_NO_MEMORY;

		ops_alloc_fail_at(nth, all_after);
		builder = rich_builder();
		if (builder)
			code = ops_builder_finish(builder, &trace, NULL);
		made = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !trace));
		assert_true(code == OPS_OK || !made);
		if (trace)
			assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
		ops_trace_unref(trace);
	}
}

static void test_out_of_memory(void **state)
{
	(void)state;
	fail_each(false);
	fail_each(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_the_rest),
		cmocka_unit_test(test_plain_rows),
		cmocka_unit_test(test_strings_and_inputs),
		cmocka_unit_test(test_set_sequence),
		cmocka_unit_test(test_give_up),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
