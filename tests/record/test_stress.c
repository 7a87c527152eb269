/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight threads record without a pause while another starts, pauses and stops sessions, and threads start and end. Each thread
 * counts upwards, so that a record missing from the middle of a session is detected.
 */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define SESSIONS 60
#define OPEN_RANGES 16

static bool leave;
static struct ops_slot *open_ranges[OPEN_RANGES]; /* left by one thread, closed by whoever comes next */

static void exchange_range(struct ops_range mine, unsigned i)
{
	struct ops_range theirs = {
		__atomic_exchange_n(&open_ranges[i % OPEN_RANGES], mine.slot, __ATOMIC_ACQ_REL),
	};

	ops_range_end(theirs);
}

static void *count_up(void *argument)
{
	unsigned rounds = *(unsigned *)argument;
	char name[2100];
	double value = 0;

	memset(name, 'x', sizeof(name));
	for (unsigned i = 0; i < rounds && !__atomic_load_n(&leave, __ATOMIC_RELAXED); i++) {
		for (int j = 0; j < 100; j++)
			ops_counter("value", 5, ++value);
		record_ranges(TEXT("range"), 3);
		exchange_range(ops_range_begin("crossing", 8), i);
		name[0] = (char)i;
		ops_instant(name, sizeof(name)); /* interned */
	}
	return NULL;
}

static void *bear_threads(void *unused)
{
	while (!__atomic_load_n(&leave, __ATOMIC_RELAXED)) {
		unsigned rounds = 5;
		pthread_t thread;

		if (pthread_create(&thread, NULL, count_up, &rounds) != 0)
			abort();
		pthread_join(thread, NULL);
	}
	return unused;
}

struct check {
	const struct ops_share *share;
	double last;
	size_t counters;
	size_t gaps;
};

static void check_value(const struct found *found, void *context)
{
	struct check *check = context;
	double value;

	if (found->slot->kind != OPS_SLOT_COUNTER)
		return;
	value = slot_value(found->slot);
	if (found->share == check->share && value != check->last + 1)
		check->gaps++;
	check->share = found->share;
	check->last = value;
	check->counters++;
}

static void wait_for_records(void)
{
	struct timespec moment = {.tv_nsec = 2000000};

	nanosleep(&moment, NULL);
}

static void test_eight_threads(void **state)
{
	unsigned rounds = UINT32_MAX;
	pthread_t threads[THREADS], bearer;
	size_t counters = 0;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, &rounds), 0);
	assert_int_equal(pthread_create(&bearer, NULL, bear_threads, NULL), 0);
	for (int i = 0; i < SESSIONS; i++) {
		struct ops_session *session = i % 3 == 2 ? start_bounded(12 * OPS_BLOCK_BYTES) : start();
		struct ops_recording *recording;
		struct check check = {.share = NULL};

		wait_for_records();
		if (i % 4 == 3) {
			ops_session_pause(session);
			ops_session_resume(session);
			wait_for_records();
		}
		recording = stop(session);
		each_slot(recording, check_value, &check);
		counters += check.counters;
		if (i % 3 != 2)
			assert_int_equal(recording->lost, 0);
		if (!recording->lost && i % 4 != 3)
			assert_int_equal(check.gaps, 0);
		ops_recording_free(recording);
	}
	__atomic_store_n(&leave, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(pthread_join(bearer, NULL), 0);
	for (unsigned i = 0; i < OPEN_RANGES; i++)
		exchange_range((struct ops_range){NULL}, i);
	assert_true(counters > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_eight_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
