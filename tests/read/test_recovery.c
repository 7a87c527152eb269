/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording files of processes that are killed, fork, fill the disk or stop, and damaged files.
 *
 * RECOVERY_KILLS in the environment sets the number of processes to kill (`make soak`: 10,000).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "../trace/random.h"
#include "record/recording.h"
#include "record/spill_format.h"

static char folder[64];
static char path[128];

/* Makes a folder in shared memory, because the disk is not tested. */
static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/dev/shm/opstrobe-test-XXXXXX");
	if (!mkdtemp(folder)) {
		snprintf(folder, sizeof(folder), "/tmp/opstrobe-test-XXXXXX");
		assert_non_null(mkdtemp(folder));
	}
	snprintf(path, sizeof(path), "%s/1.oprec", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	rmdir(folder);
	return 0;
}

static struct ops_session *start_with(struct ops_record_options options)
{
	struct ops_session *session = NULL;
	struct ops_error error;

	options.size = sizeof(options);
	options.spill_path = path;
	if (ops_session_start(&options, &session, &error))
		fail_msg("%s", error.text);
	return session;
}

static struct ops_session *start_keeping(void)
{
	return start_with((struct ops_record_options){.keep_spill = true});
}

static void stop(struct ops_session *session)
{
	struct ops_recording *recording = NULL;

	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	ops_recording_free(recording);
}

static struct ops_trace *recover(struct ops_recovery *ret_recovery)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_recover(path, &trace, ret_recovery, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static bool has_name(const struct ops_trace *trace, size_t row, const char *name, bool whole)
{
	struct ops_string text = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
	size_t size = strlen(name);

	return text.size >= size && (!whole || text.size == size) && memcmp(text.bytes, name, size) == 0;
}

/* Events of that name, or with names that begin so, that have ended, or else those that have not. */
static size_t count_events(const struct ops_trace *trace, const char *name, bool whole, bool unfinished)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count = 0;

	for (size_t i = 0; i < events->count; i++)
		count += has_name(trace, i, name, whole) && !(events->flags[i] & OPS_EVENT_UNFINISHED) == !unfinished;
	return count;
}

static void wait_for(pid_t child, int signal)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (signal)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the child ended with status %d", status);
}

/* --- processes that are killed -------------------------------------------------------------------------------------- */

#define THREADS 3

/* Shared with the child, which counts what it has ended itself. */
struct counts {
	uint64_t ended[THREADS];
	uint64_t instants[THREADS];
	int ready;
};

static struct counts *counts;

static void *record_for_ever(void *number)
{
	size_t thread = (size_t)(uintptr_t)number;
	char name[64], long_name[3000];
	size_t size;

	memset(long_name, 'x', sizeof(long_name));
	for (uint64_t i = 0;; i++) {
		struct ops_range outer, inner;

		size = (size_t)snprintf(name, sizeof(name), "thread %zu", thread);
		outer = ops_range_begin(name, size);
		inner = ops_range_begin_args(name, size, name, size);
		ops_range_end(inner);
		__atomic_add_fetch(&counts->ended[thread], 1, __ATOMIC_RELAXED);
		if (i % 8 == 0) { /* by a name in the log, a new one at first */
			snprintf(long_name, 64, "instant %zu of %04zu", thread, (size_t)i % 1024);
			ops_instant(long_name, sizeof(long_name) - 1);
			__atomic_add_fetch(&counts->instants[thread], 1, __ATOMIC_RELAXED);
		}
		ops_range_end(outer);
		__atomic_add_fetch(&counts->ended[thread], 1, __ATOMIC_RELAXED);
		__atomic_store_n(&counts->ready, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void record_until_killed(int threads)
{
	struct ops_session *session = NULL;
	pthread_t thread;

	if (ops_session_start(&(struct ops_record_options){.size = sizeof(struct ops_record_options), .spill_path = path}, &session, NULL) != OPS_OK)
		_exit(1);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, record_for_ever, (void *)(uintptr_t)i) != 0)
			_exit(2);
	record_for_ever(NULL);
}

/* All that the child says it had ended is there, and of each thread no more than one event that it had not said yet. */
static void check_killed(int threads)
{
	struct ops_recovery recovery;
	struct ops_trace *trace = recover(&recovery);

	assert_false(recovery.is_torn);
	assert_false(recovery.is_running);
	assert_false(recovery.is_stopped);
	assert_int_equal(recovery.end_errno, 0);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	for (int i = 0; i < threads; i++) {
		char name[64];
		size_t found;

		snprintf(name, sizeof(name), "thread %d", i);
		found = count_events(trace, name, true, false);
		assert_in_range(found, counts->ended[i], counts->ended[i] + 1);
		assert_in_range(count_events(trace, name, true, true), 0, 2);
		snprintf(name, sizeof(name), "instant %d of ", i);
		found = count_events(trace, name, false, false);
		assert_in_range(found, counts->instants[i], counts->instants[i] + 1);
	}
	ops_trace_unref(trace);
}

static void test_nothing_ended_is_missing(void **state)
{
	const char *wish = getenv("RECOVERY_KILLS");
	int kills = wish ? atoi(wish) : 150;
	struct random random = {(uint64_t)kills};

	(void)state;
	for (int i = 0; i < kills; i++) {
		int threads = 1 + (int)random_below(&random, THREADS);
		pid_t child;

		memset(counts, 0, sizeof(*counts));
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			record_until_killed(threads);
		while (!__atomic_load_n(&counts->ready, __ATOMIC_RELAXED))
			usleep(100);
		usleep(random_below(&random, i % 10 ? 2000 : 20000));
		assert_int_equal(kill(child, SIGKILL), 0);
		wait_for(child, SIGKILL);
		check_killed(threads);
		assert_int_equal(unlink(path), 0);
	}
}

/* --- names of all kinds --------------------------------------------------------------------------------------------- */

static void note_everything(void)
{
	static const struct ops_text aliases[] = {{"again", 5}};
	const struct ops_recorded_module modules[] = {
		{.parent = UINT32_MAX, .number = UINT32_MAX, .name = {"", 0}, .class_name = {"app.Net", 7}, .path = {"Net", 3}},
		{.parent = 0, .number = UINT32_MAX, .name = {"", 0}, .class_name = {"nn.Linear", 9}, .path = {"head", 4},
		 .aliases = aliases, .alias_count = 1, .parameter_count = 12},
	};
	const uint32_t ids[] = {0, 1};

	assert_true(ops_session_wants_notes());
	ops_session_note_function(1, &(struct ops_recorded_function){"app.py(3): train", 16, "train", 5, "/app.py", 7, 3});
	ops_session_note_modules(modules, ids, 2);
	ops_session_note_module(1, 0, (struct ops_text){"nn.Module: Linear_0", 19}, (struct ops_text){"nn.Linear", 9});
	ops_session_note_module(7, 0, (struct ops_text){"nn.Module: Loss_0", 17}, (struct ops_text){"app.Loss", 8});
	ops_session_note_metadata("torch", 5, "\"2.13\"", 6);
	ops_session_note_metadata("no JSON", 7, "{", 1);
}

static void record_slot(uint8_t kind, uint32_t name, int64_t sequence_nr)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	assert_non_null(slot);
	slot->owner = NULL;
	slot->start_ticks = ops_ticks(collector->tsc);
	slot->sequence_nr = sequence_nr;
	slot->name = name;
	slot->forward_thread = 0;
	slot->end_thread = thread->number;
	slot->kind = kind;
	slot->scope = 0;
	slot->flags = 0;
	slot->end_ticks = slot->start_ticks + 1;
	ops_publish(thread);
}

static void *record_once(void *unused)
{
	ops_instant("on a thread that ends", 21);
	return unused;
}

static void test_explains_itself(void **state)
{
	struct ops_session *session = start_keeping();
	const struct ops_collector *collector = ops_collector_get();
	struct ops_trace *trace;
	struct ops_string json;
	const struct ops_module *modules;
	pthread_t thread;
	size_t count;

	(void)state;
	note_everything();
	ops_thread_name(0, "named", 5);
	record_slot(OPS_SLOT_PYTHON, 1, -1);
	record_slot(OPS_SLOT_MODULE, 0, 1);
	record_slot(OPS_SLOT_MODULE, 0, 7);
	record_slot(OPS_SLOT_OP, collector->intern(collector->thread(), "aten::add", 9, "Tensor", 6), 5);
	assert_int_equal(pthread_create(&thread, NULL, record_once, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	stop(session);
	trace = recover(NULL);
	assert_int_equal(ops_trace_events(trace)->count, 5);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	assert_int_equal(ops_trace_info(trace)->pid, getpid());
	assert_int_equal(count_events(trace, "app.py(3): train", true, false), 1);
	assert_int_equal(count_events(trace, "nn.Module: Linear_0", true, false), 1);
	assert_int_equal(count_events(trace, "nn.Module: Loss_0", true, false), 1);
	assert_int_equal(count_events(trace, "aten::add", true, false), 1);
	assert_int_equal(count_events(trace, "on a thread that ends", true, false), 1);
	modules = ops_trace_modules(trace, &count);
	assert_int_equal(count, 3);
	assert_int_equal(modules[1].parent, 0);
	assert_int_equal(modules[1].parameter_count, 12);
	assert_int_equal(ops_trace_string(trace, modules[2].path).size, 4);
	assert_true(ops_trace_find_metadata(trace, "torch", &json));
	assert_int_equal(json.size, 6);
	assert_false(ops_trace_find_metadata(trace, "no JSON", &json));
	assert_true(ops_trace_find_metadata(trace, "recovered", &json));
	ops_trace_unref(trace);
}

/* Losses are counted in the file, too. */
static void test_counts_losses(void **state)
{
	struct ops_session *session = start_with((struct ops_record_options){.keep_spill = true, .max_bytes = 1 << 17});
	struct ops_trace *trace;

	(void)state;
	for (int i = 0; i < 5000; i++)
		ops_instant("many", 4);
	stop(session);
	trace = recover(NULL);
	assert_int_equal(ops_trace_events(trace)->count + ops_trace_info(trace)->lost, 5000);
	assert_true(ops_trace_info(trace)->lost > 1000);
	ops_trace_unref(trace);
}

/* --- the life of a file --------------------------------------------------------------------------------------------- */

static void test_stop_removes_the_file(void **state)
{
	struct ops_session *session = start_with((struct ops_record_options){0});
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;
	struct stat seen;

	(void)state;
	assert_int_equal(stat(path, &seen), 0);
	assert_int_equal(seen.st_mode & 0777, 0600);
	ops_instant("here", 4);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_int_equal(stat(path, &seen), 0);
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(trace)->count, 1);
	assert_int_equal(stat(path, &seen), -1);
	ops_trace_unref(trace);
	session = start_with((struct ops_record_options){0});
	ops_session_discard(session);
	assert_int_equal(stat(path, &seen), -1);
}

/* The file of a process that writes the trace when it is killed: the blocks were read, and are there still. */
static void test_file_that_is_kept(void **state)
{
	struct ops_session *session = start_keeping();
	struct ops_recording *recording = NULL;
	struct ops_recovery recovery;
	struct ops_trace *trace = NULL, *again;

	(void)state;
	for (int i = 0; i < 5000; i++)
		ops_range_end(ops_range_begin("work", 4));
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_int_equal(ops_trace_from_recording(recording, &trace, NULL), OPS_OK);
	again = recover(&recovery);
	assert_true(recovery.is_stopped);
	assert_int_equal(count_events(trace, "work", true, false), 5000);
	assert_int_equal(count_events(again, "work", true, false), 5000);
	/* Ticks become the same times, as good as clocks are. */
	assert_in_range(ops_trace_events(again)->start_ns[4999] - ops_trace_events(trace)->start_ns[4999] + 1000000, 0, 2000000);
	ops_trace_unref(trace);
	ops_trace_unref(again);
}

/* A range that is open over sessions lies in the file of one that is gone. */
static void test_range_outlives_its_file(void **state)
{
	struct ops_session *session = start_with((struct ops_record_options){0}), *next = NULL;
	struct ops_recording *recording = NULL;
	struct ops_range range = ops_range_begin("open", 4);

	(void)state;
	stop(session);
	assert_int_equal(ops_session_start(NULL, &next, NULL), OPS_OK);
	ops_instant("next", 4);
	ops_range_end(range);
	assert_int_equal(ops_session_stop(next, &recording, NULL), OPS_OK);
	assert_int_equal(recording->slot_count, 1);
	ops_recording_free(recording);
	session = start_with((struct ops_record_options){0});
	ops_instant("last", 4);
	stop(session);
}

static uint64_t free_bytes(void)
{
	struct statvfs seen;

	assert_int_equal(statvfs(folder, &seen), 0);
	return (uint64_t)seen.f_bfree * seen.f_frsize;
}

/* The thread still has a block of the file, which is all that the system keeps of it. */
static void test_removed_file_frees_its_space(void **state)
{
	struct ops_session *session = start_keeping();
	uint64_t before;

	(void)state;
	for (int i = 0; i < 500000; i++)
		ops_instant("much", 4);
	stop(session);
	before = free_bytes();
	assert_true(ops_recording_file_remove(path));
	assert_true(free_bytes() > before + (16 << 20)); /* of 36 MB; others use the disk, too */
	ops_instant("nowhere", 7);
}

static void test_running_process(void **state)
{
	struct ops_session *session = start_keeping();
	struct ops_recovery recovery;
	struct ops_trace *trace;

	(void)state;
	ops_instant("so far", 6);
	trace = recover(&recovery);
	assert_true(recovery.is_running);
	assert_int_equal(count_events(trace, "so far", true, false), 1);
	ops_trace_unref(trace);
	stop(session);
}

/* A child of fork neither closes ranges in the parent's file nor adds to it, and does not keep it locked. */
static void test_fork(void **state)
{
	struct ops_session *session = start_keeping();
	struct ops_range open = ops_range_begin("open", 4);
	struct ops_recovery recovery;
	struct ops_trace *trace;
	int wait_for_end[2];
	pid_t child;

	(void)state;
	for (int i = 0; i < 3000; i++)
		ops_range_end(ops_range_begin("parent", 6));
	assert_int_equal(pipe(wait_for_end), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct ops_session *own = NULL;
		char byte;

		ops_range_end(open);
		ops_instant("nowhere", 7);
		if (ops_session_start(NULL, &own, NULL) != OPS_OK)
			_exit(1);
		ops_instant("child", 5);
		ops_session_discard(own);
		close(wait_for_end[1]);
		_exit(read(wait_for_end[0], &byte, 1) == 0 ? 0 : 2);
	}
	usleep(50000);
	ops_instant("after the fork", 14);
	trace = recover(&recovery);
	assert_int_equal(count_events(trace, "open", true, true), 1);
	assert_int_equal(count_events(trace, "parent", true, false), 3000);
	assert_int_equal(count_events(trace, "child", true, false), 0);
	assert_int_equal(count_events(trace, "nowhere", true, false), 0);
	ops_trace_unref(trace);
	ops_range_end(open);
	stop(session);
	trace = recover(&recovery);
	assert_false(recovery.is_running);
	assert_int_equal(count_events(trace, "open", true, false), 1);
	assert_int_equal(count_events(trace, "after the fork", true, false), 1);
	ops_trace_unref(trace);
	close(wait_for_end[0]);
	close(wait_for_end[1]);
	wait_for(child, 0);
}

/* --- no space ------------------------------------------------------------------------------------------------------- */

#define FULL_EVENTS 200000

/* Records more than fits on the disk: in memory nothing is lost, and the file has what fitted. */
static void record_on_full_disk(int expected_errno)
{
	struct ops_session *session = start_keeping();
	struct ops_recording *recording = NULL;
	struct ops_error error = {0};
	struct ops_recovery recovery;
	struct ops_trace *trace;
	size_t count;

	assert_int_equal(ops_session_spill_problem(session, &error), OPS_OK);
	for (int i = 0; i < FULL_EVENTS; i++)
		ops_range_end(ops_range_begin("work", 4));
	assert_int_equal(ops_session_spill_problem(session, &error), OPS_IO);
	assert_int_equal(error.os_errno, expected_errno);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_int_equal(recording->slot_count, FULL_EVENTS);
	ops_recording_free(recording);
	trace = recover(&recovery);
	assert_int_equal(recovery.end_errno, expected_errno);
	assert_false(recovery.is_torn);
	count = count_events(trace, "work", true, false);
	assert_in_range(count, 20000, FULL_EVENTS - 1);
	ops_trace_unref(trace);
	unlink(path);
}

static void test_limit_of_file_size(void **state)
{
	struct rlimit old, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 5 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	record_on_full_disk(EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
}

/* A small separate disk, if the system lets us mount one. */
static void test_full_disk(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("opstrobe-test", folder, "tmpfs", 0, "size=5m") != 0)
			_exit(77);
		record_on_full_disk(ENOSPC);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_no_folder(void **state)
{
	struct ops_session *session = NULL;
	struct ops_record_options options = {.size = sizeof(options), .spill_path = "/proc/opstrobe.oprec"};
	struct ops_recording *recording = NULL;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_session_start(&options, &session, NULL), OPS_OK);
	assert_int_equal(ops_session_spill_problem(session, &error), OPS_IO);
	assert_non_null(strstr(error.text, "cannot write recording file '/proc/opstrobe.oprec'"));
	assert_false(ops_session_wants_notes());
	ops_instant("in memory", 9);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	assert_int_equal(recording->slot_count, 1);
	ops_recording_free(recording);
}

/* --- damage --------------------------------------------------------------------------------------------------------- */

static char *read_file(size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*ret_size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*ret_size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *ret_size, file), *ret_size);
	fclose(file);
	return bytes;
}

/* Another file of that name: this process has blocks in the one before. */
static void write_file(const char *bytes, size_t size)
{
	FILE *file;

	unlink(path);
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* Returns a valid trace, or NULL after an error with a reason. */
static struct ops_trace *try_to_recover(struct ops_recovery *recovery)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_recover(path, &trace, recovery, &error)) {
		assert_true(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED);
		return NULL;
	}
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static void make_file(void)
{
	struct ops_session *session = start_keeping();

	note_everything();
	record_slot(OPS_SLOT_PYTHON, 1, -1);
	record_slot(OPS_SLOT_MODULE, 0, 1);
	for (int i = 0; i < 3000; i++)
		ops_range_end(ops_range_begin_args("work", 4, "why", 3));
	stop(session);
}

static void test_file_cut_short(void **state)
{
	size_t size, most = 0;
	char *bytes;

	(void)state;
	make_file();
	bytes = read_file(&size);
	for (size_t cut = 0; cut < size; cut += cut < 2 * OPS_BLOCK_BYTES ? 1009 : 20011) {
		struct ops_recovery recovery;
		struct ops_trace *trace;

		write_file(bytes, cut);
		trace = try_to_recover(&recovery);
		assert_true(trace || cut < 1024);
		if (!trace)
			continue;
		assert_true(recovery.is_torn);
		assert_true(count_events(trace, "work", true, false) >= most);
		most = count_events(trace, "work", true, false);
		ops_trace_unref(trace);
	}
	assert_int_equal(most, 3000);
	free(bytes);
}

static void test_flipped_bits(void **state)
{
	struct random random = {1};
	char *bytes;
	size_t size;

	(void)state;
	make_file();
	bytes = read_file(&size);
	for (int i = 0; i < 400; i++) {
		/* In the first units, and there mostly where something is. */
		size_t unit = random_below(&random, 6), within = random_below(&random, i % 2 ? 600 : OPS_BLOCK_BYTES);
		uint32_t flips = 1 + random_below(&random, 4);
		struct ops_trace *trace;

		for (uint32_t k = 0; k < flips; k++)
			bytes[unit * OPS_BLOCK_BYTES + (within + k * 8) % OPS_BLOCK_BYTES] ^= (char)(1 << random_below(&random, 8));
		write_file(bytes, 8 * OPS_BLOCK_BYTES);
		trace = try_to_recover(NULL);
		ops_trace_unref(trace);
		if (!trace) { /* begin again with a good one */
			free(bytes);
			unlink(path);
			make_file();
			bytes = read_file(&size);
		}
	}
	free(bytes);
}

static void test_other_files(void **state)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;
	struct ops_session *session = start_keeping();
	char *bytes;
	size_t size;

	(void)state;
	stop(session);
	assert_int_equal(ops_trace_recover("/dev/shm/no such file", &trace, NULL, &error), OPS_IO);
	assert_int_equal(ops_trace_recover("/dev/null", &trace, NULL, &error), OPS_CORRUPT);
	bytes = read_file(&size);
	((struct ops_spill_header *)(void *)(bytes + sizeof(struct ops_block)))->version++;
	write_file(bytes, size);
	assert_int_equal(ops_trace_recover(path, &trace, NULL, &error), OPS_UNSUPPORTED);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_ended_is_missing, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_explains_itself, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_counts_losses, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_stop_removes_the_file, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_file_that_is_kept, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_range_outlives_its_file, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_removed_file_frees_its_space, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_running_process, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_fork, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_limit_of_file_size, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_full_disk, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_no_folder, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_file_cut_short, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_flipped_bits, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_other_files, make_folder, remove_folder),
	};

	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return counts == MAP_FAILED || cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
