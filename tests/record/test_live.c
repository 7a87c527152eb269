/* SPDX-License-Identifier: Apache-2.0
 *
 * Observing a session while it records: events that have ended are counted once, at any time and whatever the threads do.
 */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/live.h>

#include "base/alloc.h"

static struct ops_live *open_live(void)
{
	struct ops_live *live = NULL;
	struct ops_error error;

	assert_int_equal(ops_live_new(&live, &error), OPS_OK);
	return live;
}

static struct ops_live_row row_of(struct ops_live *live, struct text name)
{
	struct ops_live_state state;

	ops_live_sample(live);
	ops_live_read(live, &state);
	for (size_t i = 0; i < state.row_count; i++)
		if (state.rows[i].name_bytes == name.size && !memcmp(state.rows[i].name, name.bytes, name.size))
			return state.rows[i];
	return (struct ops_live_row){0};
}

static struct ops_range begin(struct text name)
{
	return ops_range_begin(name.bytes, name.size);
}

static void test_what_is_inside(void **state)
{
	struct ops_session *session = start();
	struct ops_live *live = open_live();
	struct ops_range outer = begin(TEXT("outer"));
	struct ops_live_row first, last;

	(void)state;
	record_ranges(TEXT("inner"), 3);
	assert_int_equal(row_of(live, TEXT("inner")).calls, 3);
	assert_int_equal(row_of(live, TEXT("outer")).calls, 0); /* is still open */
	record_ranges(TEXT("inner"), 5000);
	first = row_of(live, TEXT("inner"));
	assert_int_equal(first.calls, 5003);
	assert_int_equal(first.self_ns, first.total_ns);
	ops_range_end(outer);
	last = row_of(live, TEXT("outer"));
	assert_int_equal(last.calls, 1);
	assert_true(last.total_ns >= first.total_ns);
	assert_true(last.self_ns <= last.total_ns - first.total_ns + 1);
	ops_recording_free(stop(session));
	assert_int_equal(row_of(live, TEXT("inner")).calls, 5003);
	session = start();
	record_ranges(TEXT("inner"), 7);
	assert_int_equal(row_of(live, TEXT("inner")).calls, 5010);
	ops_recording_free(stop(session));
	ops_live_free(live);
}

static void test_steps(void **state)
{
	struct ops_session *session = start();
	struct ops_live *live = open_live();
	struct ops_live_state seen;

	(void)state;
	record_ranges(TEXT("Optimizer.step#SGD.step"), 4);
	record_ranges(TEXT("Optimizer.step#Adam.step"), 9);
	ops_live_sample(live);
	ops_live_read(live, &seen);
	assert_int_equal(seen.steps, 4); /* of the optimizer that was first */
	assert_int_equal(seen.step_count, 3);
	record_ranges(TEXT("ProfilerStep#0"), 1);
	record_ranges(TEXT("ProfilerStep#1"), 1);
	ops_live_sample(live);
	ops_live_read(live, &seen);
	assert_int_equal(seen.steps, 2);
	assert_int_equal(seen.step_count, 1);
	record_ranges(TEXT("ProfilerStep#2"), OPS_LIVE_STEPS + 100);
	assert_int_equal(row_of(live, TEXT("ProfilerStep")).calls, OPS_LIVE_STEPS + 102);
	ops_live_read(live, &seen);
	assert_int_equal(seen.step_count, OPS_LIVE_STEPS);
	ops_recording_free(stop(session));
	ops_live_free(live);
}

static atomic_bool enough;

static void *record_on(void *count)
{
	size_t *done = count;

	do {
		struct ops_range range = begin(TEXT("around"));

		record_ranges(TEXT("some"), 50);
		ops_range_end(range);
		*done += 50;
	} while (!atomic_load(&enough));
	return NULL;
}

/* One looks all the time while threads fill blocks, end, and others begin. */
static void test_with_other_threads(void **state)
{
	enum { AT_ONCE = 3, ROUNDS = 20 };
	struct ops_session *session = start();
	struct ops_live *live = open_live();
	size_t total = 0;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		pthread_t threads[AT_ONCE];
		size_t counts[AT_ONCE] = {0};

		atomic_store(&enough, round % 2); /* every other time they end at once */
		for (size_t i = 0; i < AT_ONCE; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, record_on, &counts[i]), 0);
		for (size_t i = 0; i < 20; i++)
			ops_live_sample(live);
		atomic_store(&enough, true);
		for (size_t i = 0; i < AT_ONCE; i++) {
			pthread_join(threads[i], NULL);
			total += counts[i];
		}
	}
	assert_int_equal(row_of(live, TEXT("some")).calls, total);
	assert_int_equal(row_of(live, TEXT("around")).calls, total / 50);
	ops_recording_free(stop(session));
	ops_live_free(live);
}

/* New names each time. */
static void test_many_names(void **state)
{
	struct ops_session *session = start();
	struct ops_live *live = open_live();
	struct ops_live_state seen;
	uint64_t calls = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		char name[32];

		ops_range_end(ops_range_begin(name, (size_t)snprintf(name, sizeof(name), "batch %d", i)));
	}
	ops_live_sample(live);
	ops_live_read(live, &seen);
	for (size_t i = 0; i < seen.row_count; i++)
		calls += seen.rows[i].calls;
	assert_int_equal(calls, 10000);
	assert_true(seen.row_count <= 4096);
	ops_recording_free(stop(session));
	ops_live_free(live);
}

static void test_without_memory(void **state)
{
	struct ops_session *session = start();
	struct ops_live_state seen;
	struct ops_error error;
	bool done = false;

	(void)state;
	for (int i = 0; i < 40; i++) {
		char name[32];

		ops_range_end(ops_range_begin(name, (size_t)snprintf(name, sizeof(name), "batch %d", i)));
	}
	for (uint64_t nth = 1; !done; nth++) {
		struct ops_live *live = NULL;
		uint64_t calls = 0;

		ops_alloc_fail_at(nth, false);
		if (!ops_live_new(&live, &error)) {
			ops_live_sample(live);
			done = ops_alloc_count() < nth;
			ops_alloc_fail_at(0, false);
			ops_live_sample(live);
			ops_live_read(live, &seen);
			for (size_t i = 0; i < seen.row_count; i++)
				calls += seen.rows[i].calls;
			assert_true(calls <= 40);
			if (done)
				assert_int_equal(calls, 40);
		}
		ops_alloc_fail_at(0, false);
		ops_live_free(live);
	}
	ops_recording_free(stop(session));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_inside), cmocka_unit_test(test_steps),          cmocka_unit_test(test_with_other_threads),
		cmocka_unit_test(test_many_names),     cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
