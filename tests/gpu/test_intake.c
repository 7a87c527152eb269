/* SPDX-License-Identifier: Apache-2.0
 *
 * From a collector of device activity to the trace: real threads record ranges and operators and launch work on a toy device; the
 * trace is compared with what they did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <pthread.h>

#include <opstrobe/write.h>

#include "asking.h"
#include "base/alloc.h"
#include "toy_collector.h"

/* --- recording ------------------------------------------------------------------------------------------------------ */

struct toy_run {
	struct run run;
	struct toy toy;
	struct ops_device_collector collector;
};

static void start(struct toy_run *run, uint32_t kinds)
{
	run->collector = toy_collector(&run->toy);
	start_run(&run->run, &run->collector, kinds);
}

static struct ops_recording *stop(struct toy_run *run)
{
	struct ops_recording *recording = stop_run(&run->run);

	assert_int_equal(run->toy.kinds, 0);
	return recording;
}

/* An operator that launches one piece of work, with room around the launch: the toy's clock is not the recorder's, and the
 * two are tied to each other within less than that. */
static void run_operator(struct toy *toy, const char *name, enum ops_activity_kind kind, const char *work)
{
	struct ops_slot *slot = open_operator(name);

	usleep(100);
	toy_launch(toy, kind, work, 1000, 500);
	usleep(100);
	close_operator(slot);
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

static void work_is_tied_to_call_operator_and_annotation(void **state)
{
	struct toy_run run;
	struct ops_range step;
	struct ops_trace *trace;
	const struct ops_events *e;
	uint32_t kernel, copy, annotation, step_row, lonely;

	(void)state;
	start(&run, OPS_ACTIVITY_ALL);
	toy_launch(&run.toy, OPS_ACTIVITY_KERNEL, "lonely", 10, 20);
	step = ops_range_begin("step", 4);
	run_operator(&run.toy, "aten::mm", OPS_ACTIVITY_KERNEL, "gemm");
	run_operator(&run.toy, "aten::copy_", OPS_ACTIVITY_MEMCPY, "Memcpy HtoD (Pageable -> Device)");
	ops_range_end(step);
	trace = checked_trace(stop(&run));
	e = ops_trace_events(trace);

	kernel = find_row(trace, OPS_EVENT_KERNEL, "gemm");
	assert_int_equal(e->end_ns[kernel] - e->start_ns[kernel], 500);
	assert_int_equal(e->id[kernel], e->id[find_row(trace, OPS_EVENT_CPU_OP, "aten::mm")]);
	assert_int_equal(e->kind[launch_of(trace, kernel)], OPS_EVENT_RUNTIME);
	assert_int_equal(e->parent[launch_of(trace, kernel)], find_row(trace, OPS_EVENT_CPU_OP, "aten::mm"));
	assert_int_equal(e->correlation[kernel], e->correlation[launch_of(trace, kernel)]);
	assert_int_equal(ops_trace_tracks(trace, &(size_t){0})[e->track[kernel]].kind, OPS_TRACK_STREAM);
	assert_int_equal(ops_trace_tracks(trace, &(size_t){0})[e->track[kernel]].tid, 7);

	copy = find_row(trace, OPS_EVENT_GPU_MEMCPY, "Memcpy HtoD (Pageable -> Device)");
	assert_int_equal(e->id[copy], e->id[find_row(trace, OPS_EVENT_CPU_OP, "aten::copy_")]);
	assert_arg(trace, copy, "bytes", "4096");
	assert_arg(trace, copy, "memory bandwidth (GB/s)", "8.192");

	step_row = find_row(trace, OPS_EVENT_USER_ANNOTATION, "step");
	annotation = find_row(trace, OPS_EVENT_GPU_USER_ANNOTATION, "step");
	assert_int_equal(e->id[annotation], e->id[step_row]);
	assert_int_equal(e->start_ns[annotation], e->start_ns[kernel] - 1);
	assert_int_equal(e->end_ns[annotation], e->end_ns[copy] + 1);

	lonely = find_row(trace, OPS_EVENT_KERNEL, "lonely");
	assert_int_equal(e->id[lonely], 0);
	assert_int_not_equal(launch_of(trace, lonely), OPS_NONE);
	ops_trace_unref(trace);
}

static void only_requested_members_are_there(void **state)
{
	struct toy_run run;
	struct ops_trace *trace;

	(void)state;
	start(&run, OPS_ACTIVITY_BIT(OPS_ACTIVITY_KERNEL));
	run_operator(&run.toy, "aten::mm", OPS_ACTIVITY_KERNEL, "gemm");
	run_operator(&run.toy, "aten::copy_", OPS_ACTIVITY_MEMCPY, "copy");
	trace = checked_trace(stop(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_RUNTIME), 0);
	assert_int_equal(count_kind(trace, OPS_EVENT_GPU_MEMCPY), 0);
	assert_int_equal(launch_of(trace, find_row(trace, OPS_EVENT_KERNEL, "gemm")), OPS_NONE);
	ops_trace_unref(trace);
}

/* A thread that records nothing but makes a call; with a lock shared with the others, because a collector adds from one thread at
 * a time. */
static void *launch_alone(void *argument)
{
	toy_launch(argument, OPS_ACTIVITY_KERNEL, "of another thread", 100, 100);
	return NULL;
}

static void calls_of_threads_without_records_get_a_track(void **state)
{
	struct toy_run run;
	struct ops_trace *trace;
	const struct ops_events *e;
	pthread_t thread;
	uint32_t call;

	(void)state;
	start(&run, OPS_ACTIVITY_ALL);
	run_operator(&run.toy, "aten::mm", OPS_ACTIVITY_KERNEL, "gemm");
	assert_int_equal(pthread_create(&thread, NULL, launch_alone, &run.toy), 0);
	pthread_join(thread, NULL);
	trace = checked_trace(stop(&run));
	e = ops_trace_events(trace);
	call = launch_of(trace, find_row(trace, OPS_EVENT_KERNEL, "of another thread"));
	assert_int_not_equal(e->track[call], e->track[find_row(trace, OPS_EVENT_CPU_OP, "aten::mm")]);
	assert_int_equal(e->id[call], 0);
	assert_true(ops_trace_tracks(trace, &(size_t){0})[e->track[call]].number > 0);
	ops_trace_unref(trace);
}

static void of_calls_with_one_correlation_the_outer_counts(void **state)
{
	struct toy_run run;
	struct ops_trace *trace;
	const struct ops_events *e;
	int64_t now_ns;

	(void)state;
	start(&run, OPS_ACTIVITY_ALL);
	run.toy.correlation = 5;
	now_ns = toy_clock_ns(NULL);
	toy_add(&run.toy, OPS_ACTIVITY_KERNEL, "gemm", now_ns + 500, now_ns + 600);
	toy_add(&run.toy, OPS_ACTIVITY_DRIVER, "cuLaunchKernel", now_ns + 20, now_ns + 30);
	toy_add(&run.toy, OPS_ACTIVITY_RUNTIME, "cudaLaunchKernel", now_ns + 10, now_ns + 40);
	trace = checked_trace(stop(&run));
	e = ops_trace_events(trace);
	assert_int_equal(launch_of(trace, find_row(trace, OPS_EVENT_KERNEL, "gemm")),
	                 find_row(trace, OPS_EVENT_RUNTIME, "cudaLaunchKernel"));
	assert_int_equal(e->parent[find_row(trace, OPS_EVENT_DRIVER, "cuLaunchKernel")],
	                 find_row(trace, OPS_EVENT_RUNTIME, "cudaLaunchKernel"));
	ops_trace_unref(trace);
}

static void what_was_lost_is_counted(void **state)
{
	struct toy_run run;
	struct ops_trace *trace;

	(void)state;
	start(&run, OPS_ACTIVITY_ALL);
	run.toy.activities->lost = 3;
	trace = checked_trace(stop(&run));
	assert_int_equal(ops_trace_info(trace)->lost, 3);
	ops_trace_unref(trace);
}

static bool clock_is_slow;

/* While it is slow, it answers a millisecond after it has looked. */
static int64_t moody_clock_ns(void *self)
{
	int64_t now_ns = toy_clock_ns(self);

	if (clock_is_slow)
		usleep(1000);
	return now_ns;
}

/* The offset at the start is wrong by half a millisecond, which in so short a session looks like a clock that runs fast. */
static void an_uncertain_reading_does_not_stretch_times(void **state)
{
	struct toy_run run;
	struct ops_trace *trace;
	int64_t start_ns;
	uint32_t row;

	(void)state;
	run.collector = toy_collector(&run.toy);
	run.collector.clock_ns = moody_clock_ns;
	clock_is_slow = true;
	start_run(&run.run, &run.collector, OPS_ACTIVITY_ALL);
	clock_is_slow = false;
	start_ns = toy_clock_ns(NULL);
	toy_add(&run.toy, OPS_ACTIVITY_KERNEL, "gemm", start_ns, start_ns + 100000);
	usleep(5000);
	trace = checked_trace(stop(&run));
	row = find_row(trace, OPS_EVENT_KERNEL, "gemm");
	assert_int_equal(ops_trace_events(trace)->end_ns[row] - ops_trace_events(trace)->start_ns[row], 100000);
	ops_trace_unref(trace);
}

/* Writes the trace, reads it back, and compares what devices have to do with. */
static void a_file_says_the_same(void **state)
{
	char path[] = "/tmp/opstrobe-intake-XXXXXX.json";
	struct toy_run run;
	struct ops_range step;
	struct ops_trace *trace, *back = NULL;
	const struct ops_events *a, *b;
	struct ops_string key, json;
	struct ops_error error;

	(void)state;
	start(&run, OPS_ACTIVITY_ALL);
	step = ops_range_begin("step", 4);
	for (int i = 0; i < 100; i++)
		run_operator(&run.toy, "aten::mm", i % 3 ? OPS_ACTIVITY_KERNEL : OPS_ACTIVITY_MEMSET, "work");
	ops_range_end(step);
	trace = checked_trace(stop(&run));
	close(mkstemps(path, 5));
	if (ops_write_chrome_json(trace, path, NULL, &error) || ops_trace_read(path, NULL, &back, &error))
		fail_msg("%s", error.text);
	unlink(path);
	a = ops_trace_events(trace);
	b = ops_trace_events(back);
	assert_int_equal(a->count, b->count);
	for (uint32_t row = 0; row < a->count; row++) {
		struct ops_string x = {"", 0}, y = {"", 0};

		assert_int_equal(a->start_ns[row], b->start_ns[row]);
		assert_int_equal(a->end_ns[row], b->end_ns[row]);
		assert_int_equal(a->kind[row], b->kind[row]);
		assert_int_equal(a->id[row], b->id[row]);
		assert_int_equal(a->correlation[row], b->correlation[row]);
		assert_int_equal(a->parent[row], b->parent[row]);
		assert_int_equal(launch_of(trace, row), launch_of(back, row));
		if (a->extra[row] != OPS_NONE)
			x = ops_trace_string(trace, a->extra[row]);
		if (b->extra[row] != OPS_NONE)
			y = ops_trace_string(back, b->extra[row]);
		assert_int_equal(x.size, y.size);
		assert_memory_equal(x.bytes, y.bytes, x.size);
	}
	ops_trace_metadata(back, 0, &key, &json);
	assert_string_equal(key.bytes, "deviceProperties");
	assert_string_equal(json.bytes, "[{\"id\":0,\"name\":\"toy\"}]");
	ops_trace_unref(back);
	ops_trace_unref(trace);
}

static enum ops_code refuse(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error)
{
	(void)self;
	(void)kinds;
	(void)activities;
	snprintf(error->text, sizeof(error->text), "no such device");
	return error->code = OPS_STATE;
}

static void a_failing_collector_says_why(void **state)
{
	struct toy toy;
	struct ops_device_collector collector = toy_collector(&toy);
	struct ops_device_session *session = NULL;
	struct ops_error error;

	(void)state;
	collector.start = refuse;
	assert_int_equal(ops_device_start(&collector, OPS_ACTIVITY_ALL, &session, &error), OPS_STATE);
	assert_string_equal(error.text, "cannot record devices with toy: no such device");
	assert_null(session);
}

/* Every allocation of the reader fails once. */
static void without_memory_it_fails_without_leaks(void **state)
{
	enum ops_code code = OPS_NO_MEMORY;

	(void)state;
	for (uint64_t nth = 1; code == OPS_NO_MEMORY; nth++) {
		struct ops_trace *trace = NULL;
		struct toy_run run;
		struct ops_range step;
		struct ops_recording *recording;

		start(&run, OPS_ACTIVITY_ALL);
		step = ops_range_begin("step", 4);
		run_operator(&run.toy, "aten::mm", OPS_ACTIVITY_KERNEL, "gemm");
		run_operator(&run.toy, "aten::copy_", OPS_ACTIVITY_MEMCPY, "copy");
		ops_range_end(step);
		recording = stop(&run);
		ops_alloc_fail_at(nth, false);
		code = ops_trace_from_recording(recording, &trace, NULL);
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || code == OPS_NO_MEMORY);
		if (code)
			ops_recording_free(recording);
		ops_trace_unref(trace);
		assert_true(nth < 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_tied_to_call_operator_and_annotation),
		cmocka_unit_test(only_requested_members_are_there),
		cmocka_unit_test(calls_of_threads_without_records_get_a_track),
		cmocka_unit_test(of_calls_with_one_correlation_the_outer_counts),
		cmocka_unit_test(what_was_lost_is_counted),
		cmocka_unit_test(an_uncertain_reading_does_not_stretch_times),
		cmocka_unit_test(a_file_says_the_same),
		cmocka_unit_test(a_failing_collector_says_why),
		cmocka_unit_test(without_memory_it_fails_without_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
