/* SPDX-License-Identifier: Apache-2.0
 *
 * fork() during a recording, and processes that end during a recording.
 */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"

static bool leave; /* atomic: the threads end once it is set */

static void *record_until_told(void *unused)
{
	char name[3000];

	memset(name, 'n', sizeof(name));
	while (!__atomic_load_n(&leave, __ATOMIC_RELAXED)) {
		record_ranges(TEXT("there"), 50);
		name[0] = (char)(name[0] + 1);
		ops_instant(name, sizeof(name)); /* interned */
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); /* a child copies the page tables of all this */
	}
	return unused;
}

static void start_threads(pthread_t *threads, int count)
{
	__atomic_store_n(&leave, false, __ATOMIC_RELAXED);
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_until_told, NULL), 0);
}

static void end_threads(pthread_t *threads, int count)
{
	__atomic_store_n(&leave, true, __ATOMIC_RELAXED);
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static int wait_for(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void *record_one(void *unused)
{
	ops_instant("thread of child", 15);
	return unused;
}

/* The code of a child. Returns 0 if everything is as expected. */
static int child_of_session(struct ops_session *inherited, struct ops_range open)
{
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	pthread_t thread;

	if (ops_recording_active())
		return 1;
	ops_session_resume(inherited);
	if (ops_recording_active() || ops_session_stop(inherited, &recording, NULL) != OPS_STATE)
		return 2;
	record_ranges(TEXT("nowhere"), 10);
	if (ops_session_start(NULL, &session, NULL) != OPS_OK)
		return 3;
	record_ranges(TEXT("child"), 2000);
	ops_range_end(open);
	if (pthread_create(&thread, NULL, record_one, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 4;
	if (ops_session_stop(session, &recording, NULL) != OPS_OK)
		return 5;
	if (recording->slot_count != 2001 || recording->lost || recording->share_count != 2)
		return 6;
	if (!find_share(recording, getpid())) /* its main thread has a new id */
		return 7;
	ops_recording_free(recording);
	return 0;
}

static void test_child_has_its_own_session(void **state)
{
	struct ops_session *session = start();
	struct ops_range open = ops_range_begin("open", 4);
	struct ops_recording *recording;
	pid_t child;

	(void)state;
	record_ranges(TEXT("parent"), 3000);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(child_of_session(session, open));
	record_ranges(TEXT("parent"), 3000);
	assert_int_equal(wait_for(child), 0);
	ops_range_end(open);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 6001);
	assert_true(find(recording, TEXT("open")).slot->end_ticks != 0);
	ops_recording_free(recording);
}

/* AddressSanitizer's allocator keeps locked in a child what another thread had locked at the fork, as libc's does
 * not: a child that allocates may wait for ever. With it, a child of several threads allocates nothing. */
#if OPS_ADDRESS_SANITIZER
static int child_of_threads(struct ops_session *inherited, struct ops_range open)
{
	ops_session_resume(inherited);
	ops_range_end(open);
	return ops_recording_active();
}
#else
#define child_of_threads child_of_session
#endif

static void test_fork_while_threads_record(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording;
	pthread_t threads[4];

	(void)state;
	start_threads(threads, 4);
	for (int i = 0; i < 100; i++) {
		struct ops_range open = ops_range_begin("fork", 4);
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			_exit(child_of_threads(session, open));
		ops_range_end(open);
		assert_int_equal(wait_for(child), 0);
	}
	end_threads(threads, 4);
	recording = stop(session);
	assert_int_equal(count_named(recording, TEXT("fork")), 100);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

/* A recording made before the fork is the child's as well. */
static void test_recording_is_inherited(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording;
	pid_t child;

	(void)state;
	record_ranges(TEXT("parent"), 3000);
	recording = stop(session);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		size_t count = count_named(recording, TEXT("parent"));

		ops_recording_free(recording);
		_exit(count != 3000);
	}
	assert_int_equal(wait_for(child), 0);
	assert_int_equal(count_named(recording, TEXT("parent")), 3000);
	ops_recording_free(recording);
}

/* Children of children, each recording while it forks. */
static void test_generations(void **state)
{
	int generation = 0;

	(void)state;
	for (;;) {
		struct ops_session *session = start();
		struct ops_recording *recording;
		pid_t child;

		record_ranges(TEXT("generation"), 10);
		child = generation < 4 ? fork() : -1;
		if (child == 0) {
			generation++;
			continue;
		}
		recording = stop(session);
		if (recording->slot_count != 10 || (child > 0 && wait_for(child) != 0))
			_exit(1);
		ops_recording_free(recording);
		if (generation)
			_exit(0);
		break;
	}
}

/* The process ends while threads record, by return, by exit, and with the session's maker gone. */
static void test_exit_while_recording(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0) {
			pthread_t threads[2];

			start();
			start_threads(threads, 2);
			record_ranges(TEXT("x"), (size_t)i * 1000);
			exit(3);
		}
		assert_int_equal(wait_for(child), 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_has_its_own_session), cmocka_unit_test(test_fork_while_threads_record),
		cmocka_unit_test(test_recording_is_inherited),    cmocka_unit_test(test_generations),
		cmocka_unit_test(test_exit_while_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
