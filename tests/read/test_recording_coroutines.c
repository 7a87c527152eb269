/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of coroutines that take turns on a thread, and ranges that are closed in the wrong order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "base/alloc.h"
#include "record/activities.h"
#include "record/recording.h"

#define CHAIN_MAX 3

/* What runs now. */
static struct {
	const char *name;
	uint64_t identities[1 + CHAIN_MAX]; /* the greenlet, then contexts */
	size_t count;
} running;

static void run(const char *name, uint64_t greenlet, uint64_t context, uint64_t outer_context)
{
	running.name = name;
	running.identities[0] = greenlet;
	running.identities[1] = context;
	running.identities[2] = outer_context;
	running.count = 1 + (context != 0) + (outer_context != 0);
}

/* Writes a slot each time, though nothing may have changed. */
static void note(struct ops_thread *thread, uint64_t epoch)
{
	const struct ops_collector *collector = ops_collector_get();
	uint32_t name_bytes = (uint32_t)strlen(running.name);
	size_t padded = (name_bytes + 3) & ~(size_t)3, bytes = running.count * sizeof(uint64_t);
	struct ops_slot *slot = ops_reserve(collector, thread, epoch, sizeof(uint32_t) + padded + bytes);
	char *payload;

	if (!slot)
		return;
	payload = ops_slot_payload(thread, slot);
	memcpy(payload, &name_bytes, sizeof(name_bytes));
	memset(payload + sizeof(uint32_t), 0, padded);
	memcpy(payload + sizeof(uint32_t), running.name, name_bytes);
	memcpy(payload + sizeof(uint32_t) + padded, running.identities, bytes);
	slot->owner = NULL;
	slot->sequence_nr = -1;
	slot->name = 0;
	slot->forward_thread = slot->end_thread = 0;
	slot->kind = OPS_SLOT_CONTEXT;
	slot->scope = 0;
	slot->flags = OPS_SLOT_NAME_INLINE;
	slot->start_ticks = slot->end_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	thread->context = (const void *)(uintptr_t)(running.identities[0] | 1);
}

/* Ranges that begin or end in one nanosecond do not cut each other. */
static void pass_time(void)
{
	struct timespec now;
	long start_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	start_ns = now.tv_nsec;
	while (now.tv_nsec / 1000 == start_ns / 1000)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

static struct ops_range begin(const char *name)
{
	pass_time();
	return ops_range_begin(name, strlen(name));
}

static void end(struct ops_range range)
{
	pass_time();
	ops_range_end(range);
}

static struct ops_session *start(void)
{
	struct ops_session *session = NULL;

	run("", 0, 0, 0);
	ops_set_note_context(note);
	return ops_session_start(NULL, &session, NULL) ? NULL : session;
}

/* Stops the session and returns its trace; NULL if out of memory. */
static struct ops_trace *stop(struct ops_session *session)
{
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;

	ops_set_note_context(NULL);
	if (ops_session_stop(session, &recording, NULL))
		ops_session_discard(session);
	else if (ops_trace_from_recording(recording, &trace, NULL))
		ops_recording_free(recording);
	return trace;
}

static uint32_t find(const struct ops_trace *trace, const char *name)
{
	const struct ops_events *e = ops_trace_events(trace);

	for (uint32_t row = 0; row < e->count; row++)
		if (strcmp(ops_trace_string(trace, e->name[row]).bytes, name) == 0)
			return row;
	fail_msg("no event '%s'", name);
	return OPS_NONE;
}

/* Where an event is shown: "" for a thread. */
static const char *place_of(const struct ops_trace *trace, const char *name, char label[128])
{
	const struct ops_events *e = ops_trace_events(trace);
	uint32_t row = find(trace, name);
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(trace, &count)[e->track[row]];
	char *of;

	assert_int_equal(!!(track->flags & OPS_TRACK_COROUTINE), !!(e->flags[row] & OPS_EVENT_ASYNC));
	if (!(track->flags & OPS_TRACK_COROUTINE))
		return "";
	assert_int_equal(e->self_ns[row], 0);
	assert_int_equal(e->parent[row], OPS_NONE);
	assert_int_equal(track->tid, OPS_COROUTINE_TIDS + track->number);
	snprintf(label, 128, "%s", ops_trace_string(trace, track->name).bytes);
	of = strstr(label, " of thread ");
	assert_non_null(of);
	*of = '\0';
	return label;
}

static void assert_place(const struct ops_trace *trace, const char *name, const char *place)
{
	char label[128];

	assert_string_equal(place_of(trace, name, label), place);
}

static void assert_parent(const struct ops_trace *trace, const char *name, const char *parent)
{
	const struct ops_events *e = ops_trace_events(trace);

	assert_int_equal(e->parent[find(trace, name)], parent ? find(trace, parent) : OPS_NONE);
}

/* thread ├ whole ─────────────────────────────────────────────┤
 * task 1   ├ a ─────────────────────────┤   ├ step ──────────┤
 *            ├ a inner ┤
 * task 2                 ├ b ┤ ├ c ──────────┤
 * in it                         ├ called ┤      (in another context: it is called, c does not wait) */
static struct ops_trace *record_tasks(void)
{
	struct ops_session *session = start();
	struct ops_range whole, a, c, step;

	if (!session)
		return NULL;
	whole = begin("whole");
	run("asyncio Task-1", 0, 11, 0);
	a = begin("a");
	end(begin("a inner"));
	run("asyncio Task-2", 0, 12, 0);
	end(begin("b"));
	c = begin("c");
	run("asyncio Task-2", 0, 13, 12);
	end(begin("called"));
	run("asyncio Task-1", 0, 11, 0);
	end(a);
	step = begin("ProfilerStep#1");
	run("asyncio Task-2", 0, 12, 0);
	end(c);
	run("asyncio Task-1", 0, 11, 0);
	end(step);
	run("", 0, 0, 0);
	end(whole);
	return stop(session);
}

static void ranges_that_wait_stand_apart(void **state)
{
	struct ops_trace *trace = record_tasks();

	(void)state;
	assert_non_null(trace);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_place(trace, "whole", "");
	assert_place(trace, "a", "asyncio Task-1");
	assert_place(trace, "a inner", "");
	assert_parent(trace, "a inner", "whole");
	assert_place(trace, "b", "");
	assert_parent(trace, "b", "whole");
	assert_place(trace, "c", "asyncio Task-2");
	assert_parent(trace, "called", "whole");
	assert_place(trace, "ProfilerStep#1", "");
	assert_parent(trace, "ProfilerStep#1", "whole");
	ops_trace_unref(trace);
}

/* Without the other's records nothing is between. */
static void called_contexts_nest(void **state)
{
	struct ops_session *session = start();
	struct ops_range outer;
	struct ops_trace *trace;

	(void)state;
	run("", 0, 11, 0);
	outer = begin("outer");
	run("", 0, 12, 11);
	end(begin("inner"));
	run("", 0, 11, 0);
	end(outer);
	trace = stop(session);
	assert_place(trace, "outer", "");
	assert_parent(trace, "inner", "outer");
	ops_trace_unref(trace);
}

static void greenlets_wait_too(void **state)
{
	struct ops_session *session = start();
	struct ops_range main_range = begin("main"), one, two;
	struct ops_trace *trace;

	(void)state;
	run("greenlet", 1, 0, 0);
	one = begin("one");
	run("greenlet", 2, 0, 0);
	two = begin("two");
	run("greenlet", 1, 0, 0);
	end(one);
	run("greenlet", 2, 0, 0);
	end(two);
	run("", 0, 0, 0);
	end(main_range);
	trace = stop(session);
	assert_place(trace, "main", ""); /* it switched to them as it would call them */
	assert_place(trace, "one", "greenlet");
	assert_place(trace, "two", "greenlet");
	assert_int_not_equal(ops_trace_events(trace)->track[find(trace, "one")], ops_trace_events(trace)->track[find(trace, "two")]);
	ops_trace_unref(trace);
}

/* a ├────────────┤       of ranges that cut each other the later one, but a step stays
 * b    ├─────────────┤
 * c       ├───┤
 * d             ├──────────┤
 *   step          ├───┤ … ├ next ─┤ */
static void ranges_that_cut_stand_apart(void **state)
{
	struct ops_session *session = start();
	struct ops_range a, b, c, d, epoch, step;
	struct ops_trace *trace;

	(void)state;
	ops_set_note_context(NULL);
	a = begin("a");
	b = begin("b");
	c = begin("c");
	end(c);
	d = begin("d");
	end(a);
	end(b);
	end(d);
	epoch = begin("epoch");
	step = begin("ProfilerStep#1");
	end(epoch);
	end(step);
	trace = stop(session);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_place(trace, "a", "");
	assert_place(trace, "b", "overlapping ranges");
	assert_parent(trace, "c", "a");
	assert_place(trace, "d", "overlapping ranges"); /* on another track than b, which it cuts */
	assert_int_not_equal(ops_trace_events(trace)->track[find(trace, "b")], ops_trace_events(trace)->track[find(trace, "d")]);
	assert_place(trace, "epoch", "overlapping ranges");
	assert_place(trace, "ProfilerStep#1", "");
	ops_trace_unref(trace);
}

/* Memory is used again, so an identity may be that of another coroutine later; what has no name is the same one. */
static void names_distinguish_coroutines(void **state)
{
	static const char *const names[] = {"asyncio Task-1", "", "asyncio Task-1", "asyncio Task-2", ""};
	struct ops_session *session = start();
	struct ops_trace *trace;
	char name[16];

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct ops_range range;

		run(names[i], 0, 11, 0);
		snprintf(name, sizeof(name), "range %d", i);
		range = begin(name);
		run("", 0, 12, 0);
		end(begin("other"));
		run(names[i], 0, 11, 0);
		end(range);
	}
	trace = stop(session);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "range %d", i);
		assert_place(trace, name, i < 3 ? "asyncio Task-1" : "asyncio Task-2");
	}
	ops_trace_unref(trace);
}

static void assert_argument(const struct ops_trace *trace, const char *name, const char *text)
{
	const struct ops_events *e = ops_trace_events(trace);
	uint32_t row = find(trace, name), extra = e->extra ? e->extra[row] : OPS_NONE;

	if (!text)
		assert_int_equal(extra, OPS_NONE);
	else
		assert_string_equal(ops_trace_string(trace, extra).bytes, text);
}

/* Tasks that run one after another do not make thousands of tracks. Those that share one are named by their ranges. */
static void many_coroutines_share_tracks(void **state)
{
	struct ops_session *session = start();
	struct ops_trace *trace;
	char name[16];
	size_t count;

	(void)state;
	for (uint64_t i = 0; i < 1500; i++) {
		struct ops_range range;

		run("", 0, 1000 + i, 0);
		snprintf(name, sizeof(name), "range %d", (int)i);
		range = begin(name);
		run("", 0, 0, 0);
		end(begin("loop"));
		run("", 0, 1000 + i, 0);
		end(range);
	}
	trace = stop(session);
	ops_trace_tracks(trace, &count);
	assert_int_equal(count, 1 + 1000 + 1);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_place(trace, "range 0", "coroutine 1");
	assert_argument(trace, "range 0", NULL);
	assert_place(trace, "range 999", "coroutine 1000");
	assert_place(trace, "range 1499", "further coroutines");
	assert_argument(trace, "range 1499", "\"Coroutine\":\"coroutine 1500\"");
	ops_trace_unref(trace);
}

/* At the same time: each needs a track, and has the ranges of no other coroutine on it. */
static void many_coroutines_at_once(void **state)
{
	enum { COUNT = 1200 };
	struct ops_session *session = start();
	static struct ops_range outer[COUNT], inner[COUNT];
	const struct ops_events *e;
	struct ops_trace *trace;
	char name[24];
	size_t count;

	(void)state;
	for (int part = 0; part < 4; part++)
		for (uint64_t i = 0; i < COUNT; i++) {
			run("", 0, 1000 + i, 0);
			snprintf(name, sizeof(name), "%s %d", part ? "inner" : "outer", (int)i);
			if (part < 2)
				*(part ? &inner[i] : &outer[i]) = begin(name);
			else
				end(part == 2 ? inner[i] : outer[i]);
		}
	trace = stop(session);
	e = ops_trace_events(trace);
	ops_trace_tracks(trace, &count);
	assert_int_equal(count, 1 + COUNT);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	for (int i = 0; i < COUNT; i += 100) {
		uint32_t row;

		snprintf(name, sizeof(name), "outer %d", i);
		row = find(trace, name);
		snprintf(name, sizeof(name), "inner %d", i);
		assert_int_equal(e->track[row], e->track[find(trace, name)]);
	}
	ops_trace_unref(trace);
}

/* --- work of devices ------------------------------------------------------------------------------------------------ */

#define LAUNCHES_MAX 64

static struct {
	int64_t times_ns[LAUNCHES_MAX];
	size_t count;
} launched;

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The call is made by what runs, which has just recorded a slot. */
static void launch(void)
{
	end(begin("call"));
	pass_time();
	launched.times_ns[launched.count++] = monotonic_ns();
	pass_time();
}

static void add_activity(struct ops_activities *activities, enum ops_activity_kind kind, const char *name, int64_t start_ns,
                         uint64_t correlation)
{
	struct ops_activity activity = {
		.kind = (uint8_t)kind,
		.start_ns = start_ns,
		.end_ns = start_ns + 10,
		.correlation = correlation,
		.name = ops_activities_text(activities, name, strlen(name)),
	};

	if (kind == OPS_ACTIVITY_RUNTIME)
		activity.thread = gettid();
	else
		activity.stream = 7;
	ops_activities_add(activities, &activity);
}

/* Stops the session. Each launch has a kernel, on one stream; they run one after another. NULL if out of memory. */
static struct ops_trace *stop_with_work(struct ops_session *session)
{
	struct ops_activities *activities = ops_activities_new();
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;
	int64_t first_ns = monotonic_ns();

	assert_non_null(activities);
	ops_set_note_context(NULL);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	activities->start = (struct ops_activity_clock){.device_ns = launched.times_ns[0], .ticks = (uint64_t)launched.times_ns[0]};
	activities->stop = (struct ops_activity_clock){.device_ns = first_ns, .ticks = (uint64_t)first_ns};
	for (size_t i = 0; i < launched.count; i++) {
		add_activity(activities, OPS_ACTIVITY_RUNTIME, "cudaLaunchKernel", launched.times_ns[i], i + 1);
		add_activity(activities, OPS_ACTIVITY_KERNEL, "kernel", first_ns + 100 * (int64_t)i, i + 1);
	}
	launched.count = 0;
	recording->activities = activities;
	if (ops_trace_from_recording(recording, &trace, NULL))
		ops_recording_free(recording);
	return trace;
}

/* Returns the kernels below the spans of an annotation on the stream: a digit each, spans separated by spaces. */
static const char *covered(const struct ops_trace *trace, const char *name)
{
	static char text[LAUNCHES_MAX];
	const struct ops_events *e = ops_trace_events(trace);
	int64_t first_ns = INT64_MAX;
	size_t at = 0;

	for (uint32_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_KERNEL && e->start_ns[row] < first_ns)
			first_ns = e->start_ns[row];
	for (uint32_t row = 0; row < e->count; row++) {
		if (e->kind[row] != OPS_EVENT_GPU_USER_ANNOTATION || strcmp(ops_trace_string(trace, e->name[row]).bytes, name) != 0)
			continue;
		text[at++] = ' ';
		for (uint32_t work = 0; work < e->count; work++)
			if (e->kind[work] == OPS_EVENT_KERNEL && e->start_ns[work] >= e->start_ns[row] && e->end_ns[work] <= e->end_ns[row])
				text[at++] = (char)('0' + (e->start_ns[work] - first_ns + 50) / 100);
	}
	text[at] = '\0';
	return text + (at > 0);
}

/* thread ├ whole ────────────────────────────────────┤      the digits are launches
 * task 1   ├ a  0 ········├ a inner  3 ┤ ··· 5 ┤ 6
 * task 2          ├ b  1 2 ············ 4 ··········┤ */
static void work_belongs_to_the_range_of_its_coroutine(void **state)
{
	struct ops_session *session = start();
	struct ops_range whole = begin("whole"), a, b, inner;
	struct ops_trace *trace;

	(void)state;
	run("asyncio Task-1", 0, 11, 0);
	a = begin("a");
	launch();
	run("asyncio Task-2", 0, 12, 0);
	b = begin("b");
	launch();
	launch();
	run("asyncio Task-1", 0, 11, 0);
	inner = begin("a inner");
	launch();
	end(inner);
	run("asyncio Task-2", 0, 12, 0);
	launch();
	run("asyncio Task-1", 0, 11, 0);
	launch();
	end(a);
	launch();
	run("asyncio Task-2", 0, 12, 0);
	end(b);
	run("", 0, 0, 0);
	end(whole);
	trace = stop_with_work(session);
	assert_non_null(trace);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	assert_string_equal(covered(trace, "whole"), "0123456");
	assert_string_equal(covered(trace, "a"), "0 3 5");
	assert_string_equal(covered(trace, "a inner"), "3");
	assert_string_equal(covered(trace, "b"), "12 4");
	ops_trace_unref(trace);
}

/* The first greenlet of a thread opens a range after another one: both are around what that one does next. */
static void work_of_a_greenlet_is_in_the_ranges_of_the_first(void **state)
{
	struct ops_session *session = start();
	struct ops_range one, two, first;
	struct ops_trace *trace;

	(void)state;
	run("greenlet", 1, 0, 0);
	one = begin("one");
	launch();
	run("", 0, 0, 0);
	first = begin("first");
	launch();
	run("greenlet", 2, 0, 0);
	two = begin("two");
	launch();
	run("greenlet", 1, 0, 0);
	launch();
	end(one);
	run("", 0, 0, 0);
	end(first);
	run("greenlet", 2, 0, 0);
	launch();
	end(two);
	trace = stop_with_work(session);
	assert_string_equal(covered(trace, "one"), "0 3");
	assert_string_equal(covered(trace, "two"), "2 4");
	assert_string_equal(covered(trace, "first"), "123");
	ops_trace_unref(trace);
}

/* A range that ends before one that began later is around nothing that follows. */
static void work_after_the_end_of_an_overlapping_range(void **state)
{
	struct ops_session *session = start();
	struct ops_range a = begin("a"), b;
	struct ops_trace *trace;

	(void)state;
	launch();
	b = begin("b");
	launch();
	end(a);
	launch();
	end(b);
	trace = stop_with_work(session);
	assert_string_equal(covered(trace, "a"), "01");
	assert_string_equal(covered(trace, "b"), "12");
	ops_trace_unref(trace);
}

static void out_of_memory(void **state)
{
	bool done = false;

	(void)state;
	for (uint64_t nth = 1; !done; nth++) {
		struct ops_trace *trace;

		ops_alloc_fail_at(nth, false);
		trace = record_tasks();
		done = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		if (trace)
			assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_that_wait_stand_apart),
		cmocka_unit_test(called_contexts_nest),
		cmocka_unit_test(greenlets_wait_too),
		cmocka_unit_test(ranges_that_cut_stand_apart),
		cmocka_unit_test(names_distinguish_coroutines),
		cmocka_unit_test(many_coroutines_share_tracks),
		cmocka_unit_test(many_coroutines_at_once),
		cmocka_unit_test(work_belongs_to_the_range_of_its_coroutine),
		cmocka_unit_test(work_of_a_greenlet_is_in_the_ranges_of_the_first),
		cmocka_unit_test(work_after_the_end_of_an_overlapping_range),
		cmocka_unit_test(out_of_memory),
	};

	setenv("OPSTROBE_CLOCK", "monotonic", 1); /* one tick is one nanosecond */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
