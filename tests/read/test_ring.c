/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that keep only their last part: the recording is complete from the start of the window, and memory does not grow.
 *
 * RING_EVENTS in the environment sets the number of ranges recorded while memory is checked (`make soak`: 10^8).
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <opstrobe/internal/live.h>

#include "base/sanitizer.h"
#include "record/pool.h"
#include "running.h"

#define MEGABYTE ((uint64_t)1 << 20)

static struct ops_session *start_ring(uint64_t max_bytes, uint64_t ring_ns, const char *spill_path)
{
	const struct ops_record_options options = {
		.size = sizeof(options), .max_bytes = max_bytes, .ring = true, .ring_ns = ring_ns, .spill_path = spill_path};

	return start_recording(&options);
}

static void record_number(unsigned thread, unsigned number)
{
	char name[32];
	size_t size = (size_t)snprintf(name, sizeof(name), "%u:%u", thread, number);

	ops_range_end(ops_range_begin(name, size));
}

/* The range's number, if it is one of the thread; -1: it is not. */
static int64_t number_of(const struct ops_trace *trace, size_t row, unsigned thread)
{
	struct ops_string text = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
	char name[32] = "";
	unsigned of, number;

	memcpy(name, text.bytes, text.size < sizeof(name) ? text.size : 0);
	return sscanf(name, "%u:%u", &of, &number) == 2 && of == thread ? (int64_t)number : -1;
}

struct found {
	size_t count;
	int64_t first;
	int64_t last;
};

/* The numbers of a thread, which follow each other. */
static struct found find_numbers(const struct ops_trace *trace, unsigned thread)
{
	struct found found = {0, -1, -1};

	for (size_t i = 0; i < ops_trace_events(trace)->count; i++) {
		int64_t number = number_of(trace, i, thread);

		if (number < 0)
			continue;
		if (found.count++)
			assert_int_equal(number, found.last + 1);
		else
			found.first = number;
		found.last = number;
	}
	return found;
}

/* --- bounds ---------------------------------------------------------------------------------------------------------- */

#define NUMBERS 50000u

static void test_newest_are_kept(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, path);
	struct ops_recovery recovery;
	struct ops_trace *trace;
	struct ops_error error;
	struct found found;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i++)
		record_number(0, i);
	trace = snapshot_last(session, 0);
	found = find_numbers(trace, 0);
	assert_int_equal(found.last, NUMBERS - 1);
	assert_in_range(found.count, 8000, NUMBERS / 2);
	ops_trace_unref(trace);
	assert_int_equal(ops_trace_recover(path, &trace, &recovery, &error), OPS_OK);
	assert_true(recovery.is_running);
	assert_false(recovery.is_torn);
	/* Every one of them is in the trace or was dropped; of the block that the window begins in, some are in neither. */
	assert_in_range(find_numbers(trace, 0).count + recovery.dropped, NUMBERS - 1, NUMBERS);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* The stop gives the same as a snapshot. */
static void test_stop(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, NULL);
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL, *snapshot;
	struct ops_range outer = begin_named("outer");
	struct ops_error error;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i++)
		record_number(0, i);
	snapshot = snapshot_last(session, 0);
	assert_int_equal(ops_session_stop(session, &recording, &error), OPS_OK);
	assert_int_equal(ops_trace_from_recording(recording, &trace, &error), OPS_OK);
	assert_int_equal(ops_trace_check(trace, &error), OPS_OK);
	assert_int_equal(find_numbers(trace, 0).count, find_numbers(snapshot, 0).count);
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
	ops_range_end(outer);
	ops_trace_unref(trace);
	ops_trace_unref(snapshot);
}

static void test_age(void **state)
{
	struct ops_session *session = start_ring(64 * MEGABYTE, 1, NULL);
	struct ops_trace *trace;
	struct found found;

	(void)state;
	for (unsigned i = 0; i < NUMBERS / 2; i++)
		record_number(0, i);
	usleep(20000); /* beyond the coarsest tick of the clock */
	for (unsigned i = NUMBERS / 2; i < NUMBERS; i++)
		record_number(0, i);
	trace = snapshot_last(session, 0);
	found = find_numbers(trace, 0);
	assert_int_equal(found.last, NUMBERS - 1);
	assert_true(found.first > 0);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* A thread that has not recorded for long keeps its block. */
static void test_what_is_open(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, NULL);
	struct ops_range outer = begin_named("outer"), inner = begin_named("inner");
	struct ops_trace *trace;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i++)
		record_number(0, i);
	ops_range_end(inner);
	trace = snapshot_last(session, 0);
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
	assert_int_equal(count_flagged(trace, "inner", OPS_EVENT_CUT), 1);
	assert_int_equal(find_numbers(trace, 0).last, NUMBERS - 1);
	ops_trace_unref(trace);
	for (unsigned i = NUMBERS; i < 2 * NUMBERS; i++)
		record_number(0, i);
	trace = snapshot_last(session, 0);
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
	assert_int_equal(count_flagged(trace, "inner", OPS_EVENT_CUT), 0);
	ops_range_end(outer);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* When a block is full, a range is open that ends soon afterwards. Such blocks are reused like others: the window has as many ranges
 * as without them. */
static void test_ranges_across_blocks(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, NULL);
	struct ops_trace *trace;
	struct found found;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i += 50) {
		struct ops_range outer = begin_named("outer");

		for (unsigned k = i; k < i + 50; k++)
			record_number(0, k);
		ops_range_end(outer);
	}
	trace = snapshot_last(session, 0);
	found = find_numbers(trace, 0);
	assert_int_equal(found.last, NUMBERS - 1);
	assert_in_range(found.count, 9000, NUMBERS / 2);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* Where all blocks are needed, what does not fit is lost, and said to be. */
static void test_everything_open(void **state)
{
	struct ops_session *session = start_ring(2 * OPS_BLOCK_BYTES, 0, NULL);
	struct ops_range ranges[4000];
	struct ops_trace *trace = NULL;

	(void)state;
	for (size_t i = 0; i < 4000; i++)
		ranges[i] = begin_named("open");
	assert_int_equal(ops_session_snapshot(session, 0, &trace, NULL), OPS_OK);
	assert_in_range(count_flagged(trace, "open", OPS_EVENT_UNFINISHED), 1000, 3999);
	ops_trace_unref(trace);
	for (size_t i = 0; i < 4000; i++)
		ops_range_end(ranges[i]);
	for (unsigned i = 0; i < NUMBERS; i++) /* and from then on there is room again */
		record_number(0, i);
	assert_int_equal(ops_session_snapshot(session, 0, &trace, NULL), OPS_OK);
	assert_int_equal(find_numbers(trace, 0).last, NUMBERS - 1);
	assert_in_range(ops_trace_info(trace)->lost, 1, 3000);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* --- memory ---------------------------------------------------------------------------------------------------------- */

/* What the records of a trace add up to is what they say themselves, at each of them. */
static void check_sums(const struct ops_trace *trace)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(trace, &count);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += (uint64_t)records[i].bytes;
		assert_int_equal(records[i].total_allocated, sum);
	}
	assert_int_equal(sum, total_bytes);
}

#define PARAMETERS 20000u

static void test_live_bytes(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, NULL);
	struct ops_trace *trace;
	size_t count;

	(void)state;
	total_bytes = 0;
	for (uint64_t i = 0; i < PARAMETERS; i++) /* half of them live on, and those that do not are forgotten */
		report_memory(0x100000 + i * 64, 1 + (int64_t)i % 7);
	for (uint64_t i = 0; i < PARAMETERS; i += 2)
		report_memory(0x100000 + i * 64, -(1 + (int64_t)i % 7));
	for (uint64_t i = 0; i < NUMBERS; i++) {
		report_memory(0x10000000 + i % 3 * 64, 100);
		report_memory(0x10000000 + i % 3 * 64, -100);
	}
	trace = snapshot_last(session, 0);
	ops_trace_memory(trace, &count);
	assert_in_range(count, PARAMETERS / 2, NUMBERS);
	check_sums(trace);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* Resident memory does not grow, with names, threads and allocations that are new all the time. */
static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long size, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &size, &resident), 2);
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void record_mixture(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		record_number(0, (unsigned)i);
		if (i % 4 == 0) {
			report_memory(0x1000000 + i % 4096 * 64, 64);
			report_memory(0x1000000 + i % 4096 * 64, -64);
		}
	}
}

static void test_memory_is_flat(void **state)
{
	const char *wish = getenv("RING_EVENTS");
	uint64_t events = wish ? strtoull(wish, NULL, 10) : 300000, before, mapped;
	struct ops_session *session = start_ring(4 * MEGABYTE, 0, NULL);

	(void)state;
	record_mixture(0, 200000);
	before = resident_bytes();
	mapped = ops_pool_mapped_bytes();
	record_mixture(200000, 200000 + events);
	assert_int_equal(ops_pool_mapped_bytes(), mapped);
	assert_true(resident_bytes() < before + 2 * MEGABYTE);
	ops_session_discard(session);
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

#define RING_THREADS 3

static int finish;
static unsigned recorded[RING_THREADS];

static void *record_numbers(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; !__atomic_load_n(&finish, __ATOMIC_RELAXED); i++) {
		record_number(thread, i);
		__atomic_store_n(&recorded[thread], i, __ATOMIC_RELAXED);
		if (i % 64 == 0)
			usleep(200);
	}
	return NULL;
}

static void *record_some(void *unused)
{
	for (unsigned i = 0; i < 100; i++)
		ops_range_end(begin_named("of a thread that ends"));
	return unused;
}

/* Each snapshot has all that its threads had recorded when it began, without gaps, while threads come and go. */
static void test_threads(void **state)
{
	struct ops_session *session = start_ring(8 * MEGABYTE, 0, NULL);
	pthread_t threads[RING_THREADS], other;
	struct ops_live *live = NULL;
	struct ops_live_state seen;
	size_t count = 0;

	(void)state;
	finish = 0;
	memset(recorded, 0, sizeof(recorded));
	assert_int_equal(ops_live_new(&live, NULL), OPS_OK);
	for (size_t i = 0; i < RING_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_numbers, (void *)(uintptr_t)i), 0);
	for (size_t i = 0; i < RING_THREADS; i++)
		while (__atomic_load_n(&recorded[i], __ATOMIC_RELAXED) < 1000 && !__atomic_load_n(&finish, __ATOMIC_RELAXED))
			usleep(100);
	for (unsigned i = 0; i < 2 * NUMBERS; i++) /* the ring goes round */
		record_number(RING_THREADS, i);
	for (int i = 0; i < 20; i++) {
		struct ops_trace *trace;
		unsigned before[RING_THREADS];

		assert_int_equal(pthread_create(&other, NULL, record_some, NULL), 0);
		assert_int_equal(pthread_join(other, NULL), 0);
		for (size_t k = 0; k < RING_THREADS; k++)
			before[k] = __atomic_load_n(&recorded[k], __ATOMIC_RELAXED);
		trace = snapshot_last(session, 0);
		for (unsigned k = 0; k < RING_THREADS; k++) {
			struct found found = find_numbers(trace, k);

			/* A thread that did not run for long may have all its ranges before the window. */
			if (found.count)
				assert_true(found.last >= (int64_t)before[k]);
			count += found.count;
		}
		ops_trace_unref(trace);
		ops_live_sample(live);
		ops_live_read(live, &seen);
	}
	assert_true(seen.records > 0 && count > 0);
	__atomic_store_n(&finish, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < RING_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	ops_live_free(live);
	ops_session_discard(session);
}

/* --- processes ------------------------------------------------------------------------------------------------------- */

#if !OPS_THREAD_SANITIZER
static void test_killed(void **state)
{
	unsigned *ended = mmap(NULL, sizeof(*ended), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(ended != MAP_FAILED);
	for (int i = 0; i < 10; i++) {
		struct ops_recovery recovery;
		struct ops_trace *trace;
		struct ops_error error;
		struct found found;
		int status;
		pid_t child;

		*ended = 0;
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			start_ring(MEGABYTE / 2, 0, path);
			begin_named("outer");
			for (unsigned number = 0;; number++) {
				record_number(0, number);
				report_memory(0x1000 + number % 100 * 64, number % 200 < 100 ? 64 : -64);
				__atomic_store_n(ended, number, __ATOMIC_RELAXED);
			}
		}
		while (__atomic_load_n(ended, __ATOMIC_RELAXED) < 20000 + 1000 * (unsigned)i)
			usleep(100);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (ops_trace_recover(path, &trace, &recovery, &error))
			fail_msg("%s", error.text);
		if (ops_trace_check(trace, &error))
			fail_msg("%s", error.text);
		found = find_numbers(trace, 0);
		assert_false(recovery.is_running);
		assert_false(recovery.is_torn);
		assert_in_range(found.last, *ended, *ended + 1);
		assert_true(found.count > 1000);
		assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
		ops_trace_unref(trace);
		assert_int_equal(unlink(path), 0);
	}
	munmap(ended, sizeof(*ended));
}

/* A file that cannot grow is used as it is. */
static void test_file_that_cannot_grow(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit limit = {4 * MEGABYTE, 4 * MEGABYTE};
		struct ops_session *session;
		struct ops_trace *trace;

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(1);
		session = start_ring(64 * MEGABYTE, 0, path);
		for (unsigned i = 0; i < 2 * NUMBERS; i++)
			record_number(0, i);
		trace = snapshot_last(session, 0);
		_exit(find_numbers(trace, 0).last == 2 * NUMBERS - 1 && !ops_session_spill_problem(session, NULL) ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A child of fork has a separate session, and the parent's ring is not touched by it. */
static void test_fork(void **state)
{
	struct ops_session *session = start_ring(MEGABYTE, 0, path);
	struct ops_range outer = begin_named("outer");
	struct ops_trace *trace;
	pid_t child;
	int status;

	(void)state;
	for (unsigned i = 0; i < NUMBERS; i++)
		record_number(0, i);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct ops_session *own;

		ops_range_end(outer);
		own = start_ring(MEGABYTE, 0, NULL);
		for (unsigned i = 0; i < NUMBERS; i++)
			record_number(1, i);
		trace = snapshot_last(own, 0);
		_exit(find_numbers(trace, 1).last == NUMBERS - 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	trace = snapshot_last(session, 0);
	assert_int_equal(find_numbers(trace, 0).last, NUMBERS - 1);
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
	ops_range_end(outer);
	ops_trace_unref(trace);
	ops_session_discard(session);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_newest_are_kept, make_recording_folder, remove_recording_folder),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_what_is_open),
		cmocka_unit_test(test_ranges_across_blocks),
		cmocka_unit_test(test_everything_open),
		cmocka_unit_test(test_live_bytes),
		cmocka_unit_test(test_memory_is_flat),
		cmocka_unit_test(test_threads),
#if !OPS_THREAD_SANITIZER
		cmocka_unit_test_setup_teardown(test_killed, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_file_that_cannot_grow, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_fork, make_recording_folder, remove_recording_folder),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
