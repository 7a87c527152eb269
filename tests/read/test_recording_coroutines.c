/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of coroutines that take turns on a thread, and ranges that are closed in the wrong order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "base/alloc.h"

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

/* Thousands of tasks do not make thousands of tracks. */
static void many_coroutines_share_tracks(void **state)
{
	struct ops_session *session = start();
	struct ops_trace *trace;
	char name[16];
	size_t count;

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
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
	assert_int_equal(count, 1 + 100 + 1);
	assert_place(trace, "range 0", "coroutine 1");
	assert_place(trace, "range 299", "further coroutines");
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
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
