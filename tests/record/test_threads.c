/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that start and end while a session runs, and threads that see a stop late.
 */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "record/pool.h"

static pthread_t spawn(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

static void *join(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static void *record_some(void *count)
{
	record_ranges(TEXT("there"), *(size_t *)count);
	return NULL;
}

static void test_threads_that_end(void **state)
{
	const size_t counts[] = {0, 1, 100, 1168, 5000};
	struct ops_session *session = start();
	struct ops_recording *recording;
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		join(spawn(record_some, (void *)&counts[i]));
		count += counts[i];
	}
	recording = stop(session);
	assert_int_equal(recording->share_count, 4);
	assert_int_equal(count_named(recording, TEXT("there")), count);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

/* What a short thread leaves behind is as small as what it recorded. */
static void test_many_short_threads(void **state)
{
	const size_t three = 3;
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	for (int i = 0; i < 1000; i++)
		join(spawn(record_some, (void *)&three));
	assert_true(ops_pool_mapped_bytes() <= 4u << 20);
	recording = stop(session);
	assert_int_equal(recording->share_count, 1000);
	assert_int_equal(recording->slot_count, 3000);
	ops_recording_free(recording);
}

/* --- a thread that runs commands, step by step ------------------------------------------------------------------- */

struct puppet {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	void (*step)(struct puppet *puppet); /* NULL when done */
	int ended;
	/* What steps work on. */
	const struct ops_collector *collector;
	struct ops_thread *recorder;
	struct ops_range range;
	struct ops_slot *slot;
	uint64_t epoch;
	uint32_t name;
	size_t count;
};

static void *run_puppet(void *argument)
{
	struct puppet *puppet = argument;

	pthread_mutex_lock(&puppet->lock);
	while (!puppet->ended) {
		if (puppet->step) {
			puppet->step(puppet);
			puppet->step = NULL;
			pthread_cond_broadcast(&puppet->moved);
		} else {
			pthread_cond_wait(&puppet->moved, &puppet->lock);
		}
	}
	pthread_mutex_unlock(&puppet->lock);
	return NULL;
}

static void puppet_do(struct puppet *puppet, void (*step)(struct puppet *puppet))
{
	pthread_mutex_lock(&puppet->lock);
	puppet->step = step;
	pthread_cond_broadcast(&puppet->moved);
	while (puppet->step)
		pthread_cond_wait(&puppet->moved, &puppet->lock);
	pthread_mutex_unlock(&puppet->lock);
}

static struct puppet *puppet_new(void)
{
	struct puppet *puppet = calloc(1, sizeof(*puppet));

	assert_non_null(puppet);
	puppet->collector = ops_collector_get();
	pthread_mutex_init(&puppet->lock, NULL);
	pthread_cond_init(&puppet->moved, NULL);
	puppet->thread = spawn(run_puppet, puppet);
	return puppet;
}

static void puppet_end(struct puppet *puppet)
{
	pthread_mutex_lock(&puppet->lock);
	puppet->ended = 1;
	pthread_cond_broadcast(&puppet->moved);
	pthread_mutex_unlock(&puppet->lock);
	join(puppet->thread);
}

static void step_instant(struct puppet *puppet)
{
	(void)puppet;
	ops_instant("instant", 7);
}

static void step_begin(struct puppet *puppet)
{
	puppet->range = ops_range_begin("theirs", 6);
}

static void step_end(struct puppet *puppet)
{
	ops_range_end(puppet->range);
}

static void step_see_session(struct puppet *puppet)
{
	puppet->recorder = puppet->collector->thread();
	puppet->epoch = ops_collector_epoch(puppet->collector);
}

static void step_intern(struct puppet *puppet)
{
	puppet->name = puppet->collector->intern(puppet->recorder, "stale", 5, NULL, 0);
}

static void step_reserve(struct puppet *puppet)
{
	puppet->slot = ops_reserve(puppet->collector, puppet->recorder, puppet->epoch, 0);
}

static void step_publish(struct puppet *puppet)
{
	struct ops_slot *slot = puppet->slot;

	slot->name = puppet->name;
	slot->flags = 0;
	slot->kind = OPS_SLOT_OP;
	slot->start_ticks = ops_ticks(puppet->collector->tsc);
	slot->end_ticks = 0;
	ops_publish(puppet->recorder);
}

static void step_close(struct puppet *puppet)
{
	ops_slot_close(puppet->slot, ops_ticks(puppet->collector->tsc), puppet->recorder->number);
}

/* Records until it must not. */
static void step_exhaust(struct puppet *puppet)
{
	for (puppet->count = 0; puppet->count < 5000; puppet->count++) {
		step_reserve(puppet);
		if (!puppet->slot)
			return;
		step_publish(puppet);
		step_close(puppet);
	}
}

static void step_fill(struct puppet *puppet)
{
	(void)puppet;
	record_ranges(TEXT("filler"), 5000);
}

/* --- ranges that cross threads ----------------------------------------------------------------------------------- */

static void test_ended_elsewhere(void **state)
{
	struct puppet *puppet = puppet_new();
	struct ops_session *session = start();
	struct ops_recording *recording;
	struct found found;

	(void)state;
	ops_instant("here", 4);
	puppet_do(puppet, step_begin);
	ops_range_end(puppet->range);
	recording = stop(session);
	found = find(recording, TEXT("theirs"));
	assert_int_equal(found.slot->end_thread, find(recording, TEXT("here")).share->number);
	assert_true(found.slot->end_thread != found.share->number);
	ops_recording_free(recording);
	puppet_end(puppet);
	free(puppet);
}

/* The thread that opened it is gone: closed before the stop, after it, and when the recording is gone too. */
static void test_outlives_its_thread(void **state)
{
	struct ops_range ranges[3];
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct puppet *puppet = puppet_new();

		puppet_do(puppet, step_begin);
		puppet_end(puppet);
		ranges[i] = puppet->range;
		free(puppet);
	}
	ops_range_end(ranges[0]);
	recording = stop(session);
	ops_range_end(ranges[1]);
	assert_int_equal(recording->share_count, 3);
	assert_int_equal(count_named(recording, TEXT("theirs")), 3);
	ops_recording_free(recording);
	ops_range_end(ranges[2]);
	ops_recording_free(stop(start()));
	assert_true(ops_pool_mapped_bytes() <= 4u << 20);
}

static void test_idle_thread_takes_no_part(void **state)
{
	struct puppet *puppet = puppet_new();
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	puppet_do(puppet, step_instant);
	ops_recording_free(stop(session));
	session = start();
	ops_instant("here", 4);
	recording = stop(session);
	assert_int_equal(recording->share_count, 1);
	assert_int_equal(recording->slot_count, 1);
	ops_recording_free(recording);
	puppet_end(puppet);
	free(puppet);
}

/* --- a thread that sees a stop late ------------------------------------------------------------------------------ */

static void test_stop_between_reserve_and_publish(void **state)
{
	struct puppet *puppet = puppet_new();
	struct ops_session *session = start();
	struct ops_recording *recording, *next;

	(void)state;
	puppet_do(puppet, step_instant);
	puppet_do(puppet, step_see_session);
	puppet_do(puppet, step_reserve);
	assert_non_null(puppet->slot);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 1);
	puppet_do(puppet, step_publish);
	session = start();
	puppet_do(puppet, step_instant); /* takes a fresh block: a slot in the old one is open */
	puppet_do(puppet, step_close);
	next = stop(session);
	assert_int_equal(next->slot_count, 1);
	assert_int_equal(count_named(next, TEXT("instant")), 1);
	assert_int_equal(recording->slot_count, 1);
	ops_recording_free(recording);
	ops_recording_free(next);
	puppet_end(puppet);
	free(puppet);
}

/* A name of one session never occurs in a record of the next. */
static void test_stale_session(void **state)
{
	struct puppet *puppet = puppet_new();
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	puppet_do(puppet, step_see_session);
	ops_recording_free(stop(session));
	session = start();
	puppet_do(puppet, step_reserve); /* of the first session, as it thinks; it has no block yet */
	assert_null(puppet->slot);
	puppet_do(puppet, step_intern); /* joins the second one */
	assert_true(puppet->name != 0);
	puppet_do(puppet, step_reserve);
	assert_null(puppet->slot);
	puppet_do(puppet, step_see_session);
	puppet_do(puppet, step_intern);
	puppet_do(puppet, step_reserve);
	assert_non_null(puppet->slot);
	puppet_do(puppet, step_publish);
	puppet_do(puppet, step_close);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 1);
	assert_int_equal(recording->lost, 0);
	assert_int_equal(find(recording, TEXT("stale")).slot->kind, OPS_SLOT_OP);
	ops_recording_free(recording);
	puppet_end(puppet);
	free(puppet);
}

static void test_paused_late(void **state)
{
	struct puppet *puppet = puppet_new();
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	puppet_do(puppet, step_see_session);
	ops_session_pause(session);
	puppet_do(puppet, step_reserve);
	assert_null(puppet->slot);
	puppet_do(puppet, step_intern);
	assert_int_equal(puppet->name, 0);
	ops_session_resume(session);
	puppet_do(puppet, step_begin);
	puppet_do(puppet, step_fill);
	puppet_do(puppet, step_end);
	ops_session_pause(session);
	puppet_do(puppet, step_exhaust); /* has not seen it; at the end of its block at the latest it does */
	assert_in_range(puppet->count, 0, OPS_BLOCK_BYTES / sizeof(struct ops_slot));
	recording = stop(session);
	assert_int_equal(recording->slot_count, 5001 + puppet->count);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
	puppet_end(puppet);
	free(puppet);
}

/* --- the very end of a thread ------------------------------------------------------------------------------------ */

static pthread_key_t late_key;

static void record_late(void *unused)
{
	(void)unused;
	record_ranges(TEXT("late"), 7);
}

static void *end_with_a_destructor(void *unused)
{
	pthread_setspecific(late_key, &late_key);
	record_ranges(TEXT("early"), 2);
	return unused;
}

/* Records of other libraries' thread destructors are kept, in whatever order destructors run. */
static void test_recording_in_a_destructor(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	ops_instant("here", 4); /* the recorder's key is older */
	assert_int_equal(pthread_key_create(&late_key, record_late), 0);
	join(spawn(end_with_a_destructor, NULL));
	recording = stop(session);
	assert_int_equal(count_named(recording, TEXT("early")), 2);
	assert_int_equal(count_named(recording, TEXT("late")), 7);
	assert_int_equal(recording->share_count, 2);
	ops_recording_free(recording);
	pthread_key_delete(late_key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_that_end),
		cmocka_unit_test(test_many_short_threads),
		cmocka_unit_test(test_ended_elsewhere),
		cmocka_unit_test(test_outlives_its_thread),
		cmocka_unit_test(test_idle_thread_takes_no_part),
		cmocka_unit_test(test_stop_between_reserve_and_publish),
		cmocka_unit_test(test_stale_session),
		cmocka_unit_test(test_paused_late),
		cmocka_unit_test(test_recording_in_a_destructor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
