/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_trace_check finds every kind of damage and its position.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "rich.h"
#include "trace/table.h"

static struct ops_trace *rich_trace(void)
{
	struct ops_trace *trace;

	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "k", 1, "[1]", 3, NULL), OPS_OK);
	return trace;
}

static void assert_damage(const struct ops_trace *trace, const char *expected)
{
	struct ops_error error = {0};

	assert_int_equal(ops_trace_check(trace, &error), OPS_CORRUPT);
	if (!strstr(error.text, expected))
		fail_msg("'%s' where '%s' was expected", error.text, expected);
}

/* Puts a wrong value in a place, has it found, and puts the right one back. */
#define DAMAGE(place, wrong, expected)                                                             \
	do {                                                                                       \
		__typeof__(place) right_ = (place);                                                \
		(place) = (wrong);                                                                 \
		assert_damage(trace, expected);                                                    \
		(place) = right_;                                                                  \
		assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);                            \
	} while (0)

static void test_columns(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_columns *c = &trace->columns;

	(void)state;
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	DAMAGE(c->start_ns[3], 5, "event 3: starts before the event above it");
	DAMAGE(c->end_ns[1], 9, "event 1: ends before it starts");
	DAMAGE(c->self_ns[1], 41, "event 1: self time is 41 ns, should be 40");
	DAMAGE(c->self_ns[6], 150, "event 6: self time is 150 ns, should be 0");
	DAMAGE(c->sequence_nr[0], -2, "event 0: sequence number below -1");
	DAMAGE(c->name[4], 1000, "event 4: name is not a string");
	DAMAGE(c->track[4], 3, "event 4: track is not one");
	DAMAGE(c->track[1], 1, "event 1: ends on another track, but is not asynchronous");
	DAMAGE(c->parent[3], 0, "event 3: parent is 0, should be 1");
	DAMAGE(c->parent[3], OPS_NONE, "event 3: parent is -1, should be 1");
	DAMAGE(c->parent[5], 0, "event 5: parent is 0, should be -1");
	DAMAGE(c->inputs[1], 2, "event 1: inputs are not a list");
	DAMAGE(c->forward_thread[5], 2, "link 0: does not end at a backward node");
	DAMAGE(c->sequence_nr[5], 6, "link 0: does not end at a backward node");
	DAMAGE(c->flags[1], 32, "event 1: unknown flag");
	DAMAGE(c->flags[1], OPS_EVENT_UNFINISHED, "event 1: unfinished, but does not end with the session");
	DAMAGE(c->flags[1], OPS_EVENT_HIDDEN, "event 1: hidden flag is wrong");
	DAMAGE(c->flags[4], 0, "event 4: hidden flag is wrong");
	DAMAGE(c->flags[2], 0, "event 2: folded flag is wrong");
	DAMAGE(c->flags[6], 0, "event 6: ends on another track, but is not asynchronous");
	DAMAGE(c->kind[0], OPS_EVENT_KIND_COUNT, "event 0: unknown kind");
	DAMAGE(c->kind[5], OPS_EVENT_CPU_INSTANT, "event 5: an instant that lasts");
	DAMAGE(c->overload[3], 1000, "event 3: overload name is not a string");
	DAMAGE(c->end_track[6], 3, "event 6: end track is not one");
	DAMAGE(c->args[0], 1000, "event 0: argument text is not a string");
	ops_trace_unref(trace);
}

static void test_ties(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_columns *c = &trace->columns;

	(void)state;
	c->start_ns[2] = c->start_ns[1];
	c->end_ns[2] = c->end_ns[1] + 1;
	assert_damage(trace, "event 2: starts with the event above it and is longer");
	ops_trace_unref(trace);
}

static void test_links(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_link *link = &trace->links.items[0];

	(void)state;
	assert_int_equal(trace->links.count, 1);
	DAMAGE(link->kind, (enum ops_link_kind)9, "link 0: unknown kind");
	DAMAGE(link->from, 8, "link 0: end is not an event");
	DAMAGE(link->to, 8, "link 0: end is not an event");
	DAMAGE(link->to, 3, "link 0: points backwards");
	DAMAGE(link->from, 0, "link 0: end is not an operator");
	DAMAGE(link->from, 2, "link 0: does not start at a forward operator");
	trace->links.items = realloc(trace->links.items, 2 * sizeof(*link));
	trace->links.items[1] = trace->links.items[0];
	trace->links.count = 2;
	assert_damage(trace, "link 1: the second from its event");
	trace->links.items[0].from = 1;
	assert_damage(trace, "link 1: the second to its event");
	ops_trace_unref(trace);
}

static void test_records(void **state)
{
	struct ops_trace *trace = rich_trace();
	struct ops_track *tracks = trace->tracks.items;

	(void)state;
	DAMAGE(tracks[1].number, 1, "number 1 is in use");
	DAMAGE(tracks[1].number, 0, "track 1: a thread without number");
	DAMAGE(tracks[2].number, 3, "track 2: a thread without number or a stream with one");
	DAMAGE(tracks[2].kind, (enum ops_track_kind)7, "track 2: unknown kind");
	DAMAGE(tracks[0].name, 1000, "track 0: name is not a string");
	DAMAGE(trace->memory.items[1].time_ns, 49, "memory record 1: earlier than the one above it");
	DAMAGE(trace->memory.items[1].track, 3, "memory record 1: track is not one");
	DAMAGE(trace->memory.items[1].out_of_memory, 2, "memory record 1: unknown flag");
	DAMAGE(trace->counters.items[1].time_ns, 49, "counter record 1: earlier than the one above it");
	DAMAGE(trace->counters.items[1].track, 3, "counter record 1: track is not one");
	DAMAGE(trace->counters.items[1].name, 1000, "counter record 1: name is not a string");
	DAMAGE(trace->info.start_ns, 1001, "the session stops before it starts");
	DAMAGE(trace->metadata.items[0].json[0], '}', "metadata 0: not JSON");
	DAMAGE(trace->inputs.entries[1].size, 7, "input list 1: malformed");
	ops_trace_unref(trace);
}

/* Out of memory is not damage. */
static void test_out_of_memory(void **state)
{
	struct ops_trace *trace = rich_trace();
	enum ops_code code = OPS_NO_MEMORY;

	(void)state;
	for (uint64_t nth = 1; code; nth++) {
		ops_alloc_fail_at(nth, false);
		code = ops_trace_check(trace, NULL);
		assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
	}
	ops_alloc_fail_at(0, false);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
