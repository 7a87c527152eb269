/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled Python stacks: from slots to the metadata of a trace, and from there to what analyses read. Metadata that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/progress.h>
#include <opstrobe/merge.h>

#include "by_hand.h"
#include "base/text.h"
#include "derive/python_samples.h"
#include "running.h"

#define MAIN 101
#define OTHER 777

struct frames {
	struct ops_sample_frame items[4];
	size_t count;
};

/* Adds a sample with a weight of 20 us. */
static struct ops_slot *add_sample(struct ops_recording *recording, struct ops_share *share, uint64_t ticks, int64_t tid,
                                   enum ops_thread_state state, const struct frames *frames)
{
	struct ops_slot *slot = add_slot(recording, share, "sample", ticks, ticks);

	slot->kind = OPS_SLOT_SAMPLE;
	slot->name = 0;
	slot->sequence_nr = tid;
	slot->scope = (uint8_t)state;
	slot->call_line = 20;
	add_payload(share, slot, frames->items, frames->count * sizeof(*frames->items));
	return slot;
}

/* Thread 101 has an operator and four samples, thread 777 one sample. */
static struct ops_recording *sampled_recording(void)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *program = add_share(recording, 1, 1), *sampler = add_share(recording, 2, 0);
	uint32_t main = add_name(sampler, "main", "train.py"), load = add_name(sampler, "Loader.load", "load \"x\".py");
	const struct frames step = {{{main, 7}}, 1}, loads = {{{load, 88}, {main, 9}}, 2};

	add_slot(recording, program, "aten::mm", 1100, 1900);
	add_sample(recording, sampler, 1200, MAIN, OPS_THREAD_RUNNING, &step);
	add_sample(recording, sampler, 1210, OTHER, OPS_THREAD_LOCK, &step);
	add_sample(recording, sampler, 1300, MAIN, OPS_THREAD_SLEEPING, &loads);
	add_sample(recording, sampler, 1400, MAIN, OPS_THREAD_SLEEPING, &loads);
	add_sample(recording, sampler, 1500, MAIN, OPS_THREAD_STATES, &step);
	return recording;
}

static struct ops_python_samples read_samples(const struct ops_trace *trace)
{
	struct ops_python_samples samples;

	assert_true(ops_python_samples_read(&samples, trace));
	return samples;
}

static const struct ops_sampled_function *function_of(const struct ops_python_samples *samples, uint32_t stack)
{
	return &samples->functions.items[samples->stacks.items[stack].function];
}

static void test_samples_of_threads(void **state)
{
	struct ops_trace *trace = read_recording(sampled_recording());
	struct ops_python_samples samples = read_samples(trace);
	const struct ops_python_sample *all = samples.samples.items;
	const struct ops_sampled_stack *inner;

	(void)state;
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	assert_int_equal(samples.samples.count, 5);
	assert_int_equal(samples.stacks.count, 3); /* main:7; main:9, and load below it */
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(all[i].tid, MAIN);
	assert_int_equal(all[4].tid, OTHER);
	assert_int_equal(all[4].state, OPS_THREAD_LOCK);
	assert_int_equal(all[1].time_ns, all[0].time_ns); /* metadata have microseconds */
	assert_int_equal(all[1].weight_ns, 20000);
	assert_int_equal(all[1].state, OPS_THREAD_SLEEPING);
	assert_int_equal(all[1].stack, all[2].stack);
	assert_int_equal(all[3].state, OPS_THREAD_STATES);
	inner = &samples.stacks.items[all[1].stack];
	assert_int_equal(inner->line, 88);
	assert_true(ops_string_is(function_of(&samples, all[1].stack)->name, "Loader.load"));
	assert_true(ops_string_is(function_of(&samples, all[1].stack)->file, "load \"x\".py"));
	assert_int_equal(samples.stacks.items[inner->caller].line, 9);
	assert_int_equal(samples.stacks.items[inner->caller].caller, OPS_NONE);
	ops_python_samples_release(&samples);
	ops_trace_unref(trace);
}

static void test_the_sampling_thread_has_no_track(void **state)
{
	struct ops_trace *trace = read_recording(sampled_recording());
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	(void)state;
	assert_int_equal(count, 1);
	assert_int_equal(tracks[0].tid, MAIN);
	ops_trace_unref(trace);
}

static void test_slots_that_make_no_sense_are_lost(void **state)
{
	struct ops_recording *recording = sampled_recording();
	struct ops_share *sampler = recording->shares;
	const struct frames unknown = {{{99, 1}}, 1}, good = {{{1, 1}}, 1};
	struct ops_python_samples samples;
	struct ops_trace *trace;

	(void)state;
	add_sample(recording, sampler, 1600, MAIN, OPS_THREAD_RUNNING, &unknown);
	add_sample(recording, sampler, 1610, MAIN, OPS_THREAD_RUNNING, &good)->payload_bytes = 6;
	add_sample(recording, sampler, 1620, MAIN, OPS_THREAD_RUNNING, &good)->payload_bytes = 0;
	add_sample(recording, sampler, 1630, MAIN, OPS_THREAD_RUNNING, &good)->payload = UINT16_MAX - 7;
	add_sample(recording, sampler, 1640, MAIN, OPS_THREAD_RUNNING, &good)->payload_bytes = 8 * (OPS_SAMPLE_FRAMES_MAX + 1);
	add_sample(recording, sampler, 1650, MAIN, OPS_THREAD_RUNNING, &good)->scope = OPS_THREAD_STATES + 1;
	trace = read_recording(recording);
	samples = read_samples(trace);
	assert_int_equal(ops_trace_info(trace)->lost, 6);
	assert_int_equal(samples.samples.count, 5);
	ops_python_samples_release(&samples);
	ops_trace_unref(trace);
}

static void test_a_part_has_its_samples(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *program = add_share(recording, 1, 1), *sampler = add_share(recording, 2, 0);
	const struct frames frames = {{{add_name(sampler, "main", "train.py"), 7}}, 1};
	struct ops_trace *trace, *part = NULL;
	struct ops_trace_cut cut = {.from_ns = NS(1000) + 3000, .to_ns = NS(1000) + 6000};
	struct ops_python_samples samples;

	(void)state;
	recording->stop.ticks = START + 10000;
	recording->stop.monotonic_ns = START + 10000;
	recording->stop.wall_ns = WALL + 10000;
	add_slot(recording, program, "aten::mm", 1100, 10900);
	for (uint64_t i = 0; i < 10; i++)
		add_sample(recording, sampler, 1000 + 1000 * i, MAIN, OPS_THREAD_RUNNING, &frames);
	trace = read_recording(recording);
	assert_int_equal(ops_trace_cut(trace, &cut, &part, NULL), OPS_OK);
	samples = read_samples(part);
	assert_int_equal(samples.samples.count, 3);
	ops_python_samples_release(&samples);
	ops_trace_unref(part);
	ops_trace_unref(trace);
}

static void test_flame_graph(void **state)
{
	struct ops_trace *trace = read_recording(sampled_recording());
	struct ops_flame *flame = NULL;
	char *text = NULL;
	size_t size;

	(void)state;
	assert_int_equal(ops_flame_sampled_new(trace, &(struct ops_flame_choices){.keep_waits = true}, &flame, NULL), OPS_OK);
	assert_int_equal(ops_flame_json(flame, OPS_STACKS_SAMPLED, 0, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "\"metric\":\"sampled\",\"total_ns\":100000,"));
	assert_non_null(strstr(text, "{\"name\":\"Loader.load\",\"file\":\"load \\\"x\\\".py\",\"line\":88}"));
	assert_non_null(strstr(text, "{\"name\":\"[sleeping]\",\"file\":null,\"line\":null}"));
	assert_non_null(strstr(text, "{\"name\":\"[lock]\""));
	assert_non_null(strstr(text, "{\"name\":\"thread 777\""));
	ops_free(text);
	ops_flame_free(flame);
	ops_trace_unref(trace);
}

/* What is read is consistent: each stack has a function, and callers before it. */
static void check_metadata(const char *json, size_t expected)
{
	struct ops_trace *trace = read_recording(new_recording());
	struct ops_python_samples samples;
	struct ops_flame *flame = NULL;

	assert_int_equal(ops_trace_set_metadata(trace, "python_samples", 14, json, strlen(json), NULL), OPS_OK);
	samples = read_samples(trace);
	assert_int_equal(samples.samples.count, expected);
	for (size_t i = 0; i < samples.stacks.count; i++) {
		assert_true(samples.stacks.items[i].caller == OPS_NONE || samples.stacks.items[i].caller < i);
		assert_true(samples.stacks.items[i].function < samples.functions.count);
	}
	for (size_t i = 0; i < samples.samples.count; i++)
		assert_true(samples.samples.items[i].stack < samples.stacks.count);
	assert_int_equal(ops_flame_sampled_new(trace, &(struct ops_flame_choices){.keep_waits = true}, &flame, NULL), OPS_OK);
	ops_flame_free(flame);
	ops_python_samples_release(&samples);
	ops_trace_unref(trace);
}

static void test_metadata_that_make_no_sense(void **state)
{
	(void)state;
	check_metadata("3", 0);
	check_metadata("{}", 0);
	check_metadata("{\"start_ns\":-1,\"functions\":[],\"stacks\":[],\"threads\":[]}", 0);
	check_metadata("{\"start_ns\":1,\"functions\":3,\"stacks\":\"\",\"threads\":[3,{},{\"tid\":1}]}", 0);
	/* A stack that calls itself, one of no function, and samples of neither. */
	check_metadata("{\"start_ns\":1,\"functions\":[[\"a\",\"b\"]],\"stacks\":[0,0,1],\"threads\":[{\"tid\":1,\"samples\":[0,1,0,0]}]}", 0);
	check_metadata("{\"start_ns\":1,\"functions\":[[\"a\",\"b\"]],\"stacks\":[-1,1,1],\"threads\":[{\"tid\":1,\"samples\":[0,1,0,0]}]}", 0);
	/* Of five samples one is good: states, times and stacks that do not exist, and one that is cut off. */
	check_metadata("{\"start_ns\":1,\"functions\":[[\"a\",\"b\"],3],\"stacks\":[-1,0,1,0,1,2],\"threads\":[{\"tid\":1,\"samples\":"
	               "[5,1,1,0,4,1,0,0,6,1,9,0,7,1,0,99,9,1]}]}", 1);
}

static void test_each_allocation_fails_once(void **state)
{
	struct ops_trace *trace = read_recording(sampled_recording());
	int failures = 0;

	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct ops_flame *flame = NULL;
		enum ops_code code;

		ops_alloc_fail_at(nth, false);
		code = ops_flame_sampled_new(trace, &(struct ops_flame_choices){.keep_waits = true}, &flame, NULL);
		ops_alloc_fail_at(0, false);
		ops_flame_free(flame);
		if (!code)
			break;
		assert_int_equal(code, OPS_NO_MEMORY);
		failures++;
	}
	assert_true(failures > 5);
	ops_trace_unref(trace);
}

/* --- while it is recorded ------------------------------------------------------------------------------------------------ */

static void record_sample(int64_t tid)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	uint64_t epoch = ops_collector_epoch(collector);
	struct ops_sample_frame frame = {collector->intern(thread, "main", 4, "train.py", 8), 12};
	struct ops_slot *slot = ops_reserve(collector, thread, epoch, sizeof(frame));

	assert_non_null(slot);
	memcpy(ops_slot_payload(thread, slot), &frame, sizeof(frame));
	slot->start_ticks = slot->end_ticks = ops_ticks(collector->tsc);
	slot->sequence_nr = tid;
	slot->call_line = 20000;
	slot->name = slot->forward_thread = 0;
	slot->kind = OPS_SLOT_SAMPLE;
	slot->scope = OPS_THREAD_RUNNING;
	slot->flags = 0;
	ops_publish(thread);
}

static void *observe(void *progress)
{
	uint64_t before;

	ops_recording_observe();
	before = ops_recording_progress();
	for (int i = 0; i < 5000; i++) /* more than a block */
		record_sample(MAIN);
	*(bool *)progress = ops_recording_progress() != before;
	return NULL;
}

/* From the recording file, and without a sign that the program goes on. */
static void test_snapshot(void **state)
{
	struct ops_session *session = start_recording(&(struct ops_record_options){.size = sizeof(struct ops_record_options), .spill_path = path});
	struct ops_python_samples samples;
	struct ops_recording *recording = NULL;
	struct ops_trace *trace;
	bool progress = true;
	pthread_t thread;

	(void)state;
	ops_range_end(begin_named("work"));
	assert_int_equal(pthread_create(&thread, NULL, observe, &progress), 0);
	pthread_join(thread, NULL);
	assert_false(progress);
	trace = snapshot_last(session, 0);
	samples = read_samples(trace);
	assert_int_equal(samples.samples.count, 5000);
	assert_int_equal(samples.stacks.count, 1);
	assert_int_equal(count_flagged(trace, "work", 0), 1);
	ops_python_samples_release(&samples);
	ops_trace_unref(trace);
	report_memory(1, 1); /* a program goes on */
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_OK);
	ops_recording_free(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_of_threads),
		cmocka_unit_test(test_the_sampling_thread_has_no_track),
		cmocka_unit_test(test_slots_that_make_no_sense_are_lost),
		cmocka_unit_test(test_a_part_has_its_samples),
		cmocka_unit_test(test_flame_graph),
		cmocka_unit_test(test_metadata_that_make_no_sense),
		cmocka_unit_test(test_each_allocation_fails_once),
		cmocka_unit_test_setup_teardown(test_snapshot, make_recording_folder, remove_recording_folder),
	};

	setenv("OPSTROBE_CLOCK", "monotonic", 1); /* one tick is one nanosecond */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
