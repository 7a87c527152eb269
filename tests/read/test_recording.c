/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings made by real threads, through the public headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "../trace/lists.h"
#include "../trace/random.h"
#include "base/alloc.h"
#include "record/recording.h"

static struct ops_session *start(void)
{
	struct ops_session *session = NULL;
	struct ops_error error;

	if (ops_session_start(NULL, &session, &error))
		fail_msg("%s", error.text);
	return session;
}

static struct ops_recording *stop(struct ops_session *session)
{
	struct ops_recording *recording = NULL;

	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	return recording;
}

static struct ops_trace *read_trace(struct ops_session *session)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_from_recording(stop(session), &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

/* --- threads that record random things ------------------------------------------------------------------------------ */

#define THREADS 6
#define RECORDS 3000
#define DEPTH_MAX 12

/* What one thread recorded, in order: the depth of each range, as the thread itself saw it. */
struct worker {
	pthread_t thread;
	uint32_t number;
	int64_t tid;
	size_t count;
	uint8_t depth[RECORDS];
	size_t counters;
	size_t instants;
};

/* Opens a range, or an operator with inputs as the torch bridge does. */
static struct ops_slot *open_event(struct random *random, const char *name, int length)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	uint64_t epoch = ops_collector_epoch(collector);
	struct ops_slot *slot;
	struct list list;

	if (random_below(random, 2))
		return ops_range_begin(name, (size_t)length).slot;
	list_open(&list, 1);
	put_int(&list, (int64_t)random_below(random, 20));
	slot = ops_reserve(collector, thread, epoch, list.size);
	slot->owner = NULL;
	slot->end_ticks = 0;
	slot->sequence_nr = -1;
	slot->name = collector->intern(thread, name, (size_t)length, "overload", 8);
	slot->forward_thread = 0;
	slot->kind = OPS_SLOT_OP;
	slot->scope = 0;
	slot->flags = OPS_SLOT_HAS_INPUTS;
	memcpy(ops_slot_payload(thread, slot), list.bytes, list.size);
	slot->start_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	return slot;
}

static void *record(void *argument)
{
	struct worker *worker = argument;
	struct random random = {worker->number};
	struct ops_slot *open[DEPTH_MAX];
	size_t depth = 0;
	char name[32];

	worker->tid = syscall(SYS_gettid);
	while (worker->count < RECORDS || depth) {
		uint32_t what = random_below(&random, 8);

		if (what < 4 && depth < DEPTH_MAX && worker->count < RECORDS) {
			int length = snprintf(name, sizeof(name), "%u.%zu", worker->number, worker->count);

			worker->depth[worker->count++] = (uint8_t)depth;
			open[depth++] = open_event(&random, name, length);
		} else if (what < 6 && depth) {
			ops_range_end((struct ops_range){open[--depth]});
		} else if (what == 6) {
			ops_counter("loss", 4, (double)worker->counters++);
		} else if (what == 7) {
			ops_instant("mark", 4);
			worker->instants++;
		}
	}
	return NULL;
}

/* Returns the depth of a row in the tree. */
static uint8_t depth_of(const struct ops_events *e, size_t row)
{
	uint8_t depth = 0;

	while ((row = e->parent[row]) != OPS_NONE)
		depth++;
	return depth;
}

/* Every event of the worker is there, in its order and at its depth. */
static void assert_worker(const struct ops_trace *trace, const struct worker *worker)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t track_count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &track_count);
	size_t seen = 0;
	size_t instants = 0;
	char name[32];

	for (size_t row = 0; row < e->count; row++) {
		if (tracks[e->track[row]].tid != worker->tid)
			continue;
		if (e->kind[row] == OPS_EVENT_CPU_INSTANT) {
			instants++;
			continue;
		}
		snprintf(name, sizeof(name), "%u.%zu", worker->number, seen);
		assert_string_equal(ops_trace_string(trace, e->name[row]).bytes, name);
		assert_int_equal(depth_of(e, row), worker->depth[seen]);
		assert_int_equal(e->inputs[row] != OPS_NONE, e->kind[row] == OPS_EVENT_CPU_OP);
		seen++;
	}
	assert_int_equal(seen, worker->count);
	assert_int_equal(instants, worker->instants);
}

static void test_threads(void **state)
{
	static struct worker workers[THREADS];
	struct ops_session *session = start();
	struct ops_trace *trace;
	size_t expected = 0;
	size_t count;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i].number = i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, record, &workers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		expected += workers[i].counters;
	}
	trace = read_trace(session);
	ops_trace_counters(trace, &count);
	assert_int_equal(count, expected);
	ops_trace_tracks(trace, &count);
	assert_int_equal(count, THREADS);
	assert_int_equal(ops_trace_inputs_count(trace), 20);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_worker(trace, &workers[i]);
	ops_trace_unref(trace);
}

/* --- ends ----------------------------------------------------------------------------------------------------------- */

static void test_open_at_the_stop(void **state)
{
	struct ops_session *session = start();
	struct ops_range outer = ops_range_begin("outer", 5);
	struct ops_range inner = ops_range_begin("inner", 5);
	struct ops_recording *recording;
	struct ops_trace *trace;
	const struct ops_events *e;

	(void)state;
	ops_range_end(ops_range_begin("closed", 6));
	recording = stop(session);
	ops_range_end(inner); /* after the stop, before the reading */
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	ops_range_end(outer);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 3);
	for (size_t row = 0; row < 2; row++) {
		assert_int_equal(e->flags[row], OPS_EVENT_UNFINISHED);
		assert_int_equal(e->end_ns[row], ops_trace_info(trace)->stop_ns);
	}
	assert_int_equal(e->parent[2], 1);
	assert_int_equal(e->flags[2], 0);
	ops_trace_unref(trace);
}

static void *end_range(void *range)
{
	ops_range_end(*(struct ops_range *)range);
	ops_instant("here", 4);
	return NULL;
}

static void test_ended_elsewhere(void **state)
{
	struct ops_session *session = start();
	struct ops_range range = ops_range_begin("moves", 5);
	struct ops_trace *trace;
	const struct ops_events *e;
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, end_range, &range);
	pthread_join(thread, NULL);
	trace = read_trace(session);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 2);
	assert_int_equal(e->flags[0], OPS_EVENT_ASYNC);
	assert_non_null(e->end_track);
	assert_int_equal(e->end_track[0], e->track[1]);
	ops_trace_unref(trace);
}

/* --- texts ---------------------------------------------------------------------------------------------------------- */

static void test_hostile_names(void **state)
{
	size_t size = 10u << 20;
	char *name = malloc(size);
	struct ops_session *session = start();
	struct ops_trace *trace;
	const struct ops_events *e;

	(void)state;
	memset(name, 0xff, size);
	name[5] = 0;
	ops_range_end(ops_range_begin(name, size));
	ops_range_end(ops_range_begin(name, 300));
	ops_range_end(ops_range_begin_args("", 0, name, size));
	trace = read_trace(session);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 3);
	assert_int_equal(ops_trace_string(trace, e->name[0]).size, size);
	assert_memory_equal(ops_trace_string(trace, e->name[0]).bytes, name, size);
	assert_int_equal(ops_trace_string(trace, e->name[1]).size, 300);
	assert_int_equal(e->name[2], 0);
	assert_memory_equal(ops_trace_string(trace, e->args[2]).bytes, name, size);
	ops_trace_unref(trace);
	free(name);
}

static void test_thread_name(void **state)
{
	struct ops_session *session = start();
	struct ops_trace *trace;
	const struct ops_track *tracks;
	size_t count;

	(void)state;
	ops_instant("x", 1);
	ops_thread_name(0, "loader \"7\"", 10);
	trace = read_trace(session);
	tracks = ops_trace_tracks(trace, &count);
	assert_int_equal(count, 1);
	assert_int_equal(tracks[0].pid, getpid());
	assert_int_equal(tracks[0].tid, syscall(SYS_gettid));
	assert_string_equal(ops_trace_string(trace, tracks[0].name).bytes, "loader \"7\"");
	ops_trace_unref(trace);
}

/* --- values and scripts --------------------------------------------------------------------------------------------- */

/* An operator in a script at these ids; `flags` say what `values` are. */
static void record_scripted(uint16_t flags, const void *values, size_t value_bytes, uint32_t stack, uint32_t hierarchy)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), value_bytes + 8);
	char *at = ops_slot_payload(thread, slot);

	if (value_bytes)
		memcpy(at, values, value_bytes);
	memcpy(at + value_bytes, (uint32_t[]){stack, hierarchy}, 8);
	slot->owner = NULL;
	slot->sequence_nr = -1;
	slot->name = collector->intern(thread, "op", 2, NULL, 0);
	slot->forward_thread = 0;
	slot->kind = OPS_SLOT_OP;
	slot->scope = 0;
	slot->flags = flags | OPS_SLOT_HAS_SCRIPT;
	slot->start_ticks = slot->end_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
}

static uint32_t intern(const char *text)
{
	const struct ops_collector *collector = ops_collector_get();

	return collector->intern(collector->thread(), text, strlen(text), NULL, 0);
}

/* One value: "n": 7. */
static const uint32_t one_value[] = {1, 1, 'n', OPS_VALUE_INT, 7, 0};

static void test_script(void **state)
{
	struct ops_session *session = start();
	const struct ops_events *e;
	struct ops_trace *trace;
	uint32_t stack, hierarchy;

	(void)state;
	stack = intern("a.py(1): f;");
	hierarchy = intern("TOP(\"A\")::f.");
	record_scripted(0, NULL, 0, stack, hierarchy);
	record_scripted(OPS_SLOT_HAS_VALUES, one_value, sizeof(one_value), 0, hierarchy);
	record_scripted(OPS_SLOT_HAS_VALUES, one_value, sizeof(one_value), stack, 0);
	record_scripted(0, NULL, 0, 1000, 0);
	record_scripted(0, NULL, 0, 0, 1000);
	trace = read_trace(session);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 3);
	assert_int_equal(ops_trace_info(trace)->lost, 2);
	assert_string_equal(ops_trace_string(trace, e->call_stack[0]).bytes, "a.py(1): f;");
	assert_string_equal(ops_trace_string(trace, e->extra[0]).bytes, "\"Module Hierarchy\":\"TOP(\\\"A\\\")::f.\"");
	assert_int_equal(e->call_stack[1], OPS_NONE);
	assert_string_equal(ops_trace_string(trace, e->extra[1]).bytes,
	                    "\"n\":7,\"Module Hierarchy\":\"TOP(\\\"A\\\")::f.\"");
	assert_int_equal(e->call_stack[2], e->call_stack[0]);
	assert_string_equal(ops_trace_string(trace, e->extra[2]).bytes, "\"n\":7");
	ops_trace_unref(trace);
}

/* Numbers of each kind keep all their bits. */
static void test_numbers(void **state)
{
	static const struct {
		uint32_t value[6]; /* one value: "n" */
		const char *text;
	} cases[] = {
		{{1, 1, 'n', OPS_VALUE_INT, UINT32_MAX, UINT32_MAX}, "\"n\":-1"},
		{{1, 1, 'n', OPS_VALUE_UINT, UINT32_MAX, UINT32_MAX}, "\"n\":18446744073709551615"},
		{{1, 1, 'n', OPS_VALUE_UINT, 0, 0}, "\"n\":0"},
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	struct ops_session *session = start();
	struct ops_trace *trace;

	(void)state;
	for (size_t i = 0; i < count; i++)
		record_scripted(OPS_SLOT_HAS_VALUES, cases[i].value, sizeof(cases[i].value), 0, 0);
	record_scripted(OPS_SLOT_HAS_VALUES, cases[0].value, sizeof(cases[0].value) - 4, 0, 0); /* its end is missing */
	trace = read_trace(session);
	assert_int_equal(ops_trace_events(trace)->count, count);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(ops_trace_string(trace, ops_trace_events(trace)->extra[i]).bytes, cases[i].text);
	ops_trace_unref(trace);
}

/* The time of a pair is looked up by its number; there is none for a number that is not, or an operator that goes on. */
static void test_pairs(void **state)
{
	static const uint32_t pair_one[] = {1, 1, 'n', OPS_VALUE_PAIR, 1, 0}, pair_two[] = {1, 1, 'n', OPS_VALUE_PAIR, 2, 0},
	                      pair_three[] = {1, 1, 'n', OPS_VALUE_PAIR, 3, 0},
	                      unknown[] = {2, 1, 'n', OPS_VALUE_PAIR, 0, 1u << 31, 1, 'm', OPS_VALUE_INT, 7, 0};
	static const int64_t times_ns[] = {5, INT64_MAX, OPS_COUNT_UNKNOWN};
	const struct ops_collector *collector = ops_collector_get();
	struct ops_session *session = start();
	struct ops_recording *recording;
	const struct ops_events *e;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	record_scripted(OPS_SLOT_HAS_VALUES, pair_one, sizeof(pair_one), 0, 0);
	record_scripted(OPS_SLOT_HAS_VALUES, pair_two, sizeof(pair_two), 0, 0);
	record_scripted(OPS_SLOT_HAS_VALUES, pair_three, sizeof(pair_three), 0, 0);
	record_scripted(OPS_SLOT_HAS_VALUES, unknown, sizeof(unknown), 0, 0);
	record_scripted(OPS_SLOT_HAS_VALUES, pair_one, sizeof(pair_one), 0, 0);
	ops_collector_get()->thread()->block->slots[collector->thread()->reserved_slots - 1].end_ticks = 0;
	recording = stop(session);
	assert_int_equal(ops_recording_set_pair_times(recording, times_ns, 3, &error), OPS_OK);
	assert_int_equal(ops_trace_from_recording(recording, &trace, &error), OPS_OK);
	assert_int_equal(ops_trace_check(trace, &error), OPS_OK);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 5);
	assert_string_equal(ops_trace_string(trace, e->extra[0]).bytes, "\"n\":9223372036854775807");
	assert_int_equal(e->extra[1], OPS_NONE);
	assert_int_equal(e->extra[2], OPS_NONE);
	assert_string_equal(ops_trace_string(trace, e->extra[3]).bytes, "\"m\":7");
	assert_int_equal(e->flags[4], OPS_EVENT_UNFINISHED);
	assert_int_equal(e->extra[4], OPS_NONE);
	ops_trace_unref(trace);
}

/* --- out of memory -------------------------------------------------------------------------------------------------- */

static struct ops_recording *small_recording(void)
{
	struct worker worker = {.number = 3, .count = RECORDS - 150};
	struct ops_session *session = start();

	record(&worker);
	record_scripted(OPS_SLOT_HAS_VALUES, one_value, sizeof(one_value), intern("a.py(1): f;"), intern("TOP(A)::f."));
	return stop(session);
}

static size_t count_records(const struct ops_trace *trace)
{
	size_t counters;

	ops_trace_counters(trace, &counters);
	return ops_trace_events(trace)->count + counters;
}

/* Each allocation of the reading fails once, alone and with all that follow: no trace, and nothing left behind (the sanitizer
 * checks that) but the recording. The second attempt has all events; test_recording_memory.c looks at what they say. */
static void test_out_of_memory(void **state)
{
	(void)state;
	for (int all_after = 0; all_after < 2; all_after++) {
		bool untouched = false;
		int recovered = 0;

		for (uint64_t nth = 1; !untouched; nth++) {
			struct ops_recording *recording = small_recording();
			struct ops_trace *trace = NULL;
			struct ops_error error;
			size_t expected = recording->slot_count;
			bool failed;

			ops_alloc_fail_at(nth, all_after);
			failed = ops_trace_from_recording(recording, &trace, &error) != OPS_OK;
			untouched = ops_alloc_count() < nth;
			ops_alloc_fail_at(0, false);
			if (failed) {
				assert_int_equal(error.code, OPS_NO_MEMORY);
				assert_null(trace);
				assert_false(untouched);
				assert_string_equal(error.text, "cannot make a trace of the recording: out of memory");
				assert_int_equal(ops_trace_from_recording(recording, &trace, &error), OPS_OK);
			}
			assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
			assert_int_equal(count_records(trace), expected);
			recovered += failed;
			ops_trace_unref(trace);
		}
		assert_true(recovered > 10);
	}
}

/* --- ranges that are added when they are over ------------------------------------------------------------------------ */

/* It holds what was recorded since, more than a block of records, and nothing of before. */
static void a_range_that_is_over_holds_what_was_in_it(void **state)
{
	struct ops_session *session = start();
	struct ops_trace *trace;
	const struct ops_events *events;
	uint32_t step = OPS_NONE;
	uint64_t begin, end;
	size_t inside = 0;

	(void)state;
	ops_range_end(ops_range_begin("before", 6));
	begin = ops_ticks(ops_collector_get()->tsc);
	for (int i = 0; i < RECORDS; i++)
		ops_range_end(ops_range_begin("inside", 6));
	end = ops_ticks(ops_collector_get()->tsc);
	ops_range_add("ProfilerStep#0", 14, begin, end);
	ops_range_end(ops_range_begin("behind", 6));
	trace = read_trace(session);
	events = ops_trace_events(trace);
	for (uint32_t row = 0; row < events->count; row++)
		if (ops_trace_string(trace, events->name[row]).bytes[0] == 'P')
			step = row;
	assert_int_equal(step, 1);
	for (size_t row = 0; row < events->count; row++)
		inside += events->parent[row] == step;
	assert_int_equal(inside, RECORDS);
	assert_int_equal(events->parent[0], OPS_NONE);
	assert_int_equal(events->parent[events->count - 1], OPS_NONE);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_that_is_over_holds_what_was_in_it),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_open_at_the_stop),
		cmocka_unit_test(test_ended_elsewhere),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_thread_name),
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
