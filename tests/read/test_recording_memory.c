/* SPDX-License-Identifier: Apache-2.0
 *
 * Lack of memory while a recording is read: the next attempt results in the same trace as an undisturbed one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../trace/lists.h"
#include "by_hand.h"
#include "compare.h"
#include "record/activities.h"

#define ROUNDS 30

/* --- a recording with all kinds of slots ---------------------------------------------------------------------------- */

static void add_inputs(struct ops_share *share, struct ops_slot *slot, int64_t value)
{
	struct list list;

	list_open(&list, 1);
	put_int(&list, value);
	slot->flags = OPS_SLOT_HAS_INPUTS;
	add_payload(share, slot, list.bytes, list.size);
}

static void add_value(struct ops_share *share, struct ops_slot *slot)
{
	/* One value: "n": 7. */
	static const uint32_t value[] = {1, 1, 'n', OPS_VALUE_INT, 7, 0};

	slot->flags = OPS_SLOT_HAS_VALUES;
	add_payload(share, slot, value, sizeof(value));
}

static void add_memory(struct ops_recording *recording, struct ops_share *share, uint64_t ticks, int64_t bytes)
{
	struct ops_memory_slot *memory = (struct ops_memory_slot *)(void *)add_slot(recording, share, "", ticks, 0);

	*memory = (struct ops_memory_slot){.address = ticks, .time_ticks = ticks, .bytes = bytes, .kind = OPS_SLOT_MEMORY};
}

/* Adds a name with a storage as its second text. */
static uint32_t add_role(struct ops_share *share, const char *tensor, uint64_t address)
{
	struct ops_storage storage = {.address = address, .role = OPS_ROLE_PARAMETER};
	struct ops_name name = {ops_intern_add(&share->texts, tensor, strlen(tensor)),
	                        ops_intern_add(&share->texts, &storage, sizeof(storage))};

	return ops_intern_add(&share->names, &name, sizeof(name)) + 1;
}

/* A step of 30 ticks: an annotation around an operator in a call of Python, memory, a counter and a role. */
static void add_step(struct ops_recording *recording, struct ops_share *share, uint64_t ticks, int64_t number)
{
	char name[32];
	double value = (double)number;
	struct ops_slot *slot;

	snprintf(name, sizeof(name), "step %d of %u", (int)number, share->number);
	add_slot(recording, share, name, ticks, ticks + 28)->kind = OPS_SLOT_RANGE;
	slot = add_slot(recording, share, "", ticks + 1, ticks + 27);
	slot->kind = OPS_SLOT_PYTHON;
	slot->name = 1;
	slot = add_slot(recording, share, "aten::mm", ticks + 2, ticks + 20);
	slot->sequence_nr = number;
	add_inputs(share, slot, number);
	add_memory(recording, share, ticks + 3, 64 + number);
	slot = add_slot(recording, share, "loss", ticks + 4, ticks + 4);
	slot->kind = OPS_SLOT_COUNTER;
	memcpy(&slot->sequence_nr, &value, sizeof(value));
	slot = add_slot(recording, share, "", ticks + 5, ticks + 6);
	slot->kind = OPS_SLOT_ROLE;
	slot->name = add_role(share, name, ticks);
	slot = add_slot(recording, share, "aten::mmBackward", ticks + 21, ticks + 26);
	slot->sequence_nr = number;
	slot->forward_thread = 1;
	slot->scope = 1;
	add_value(share, slot);
}

static uint32_t text(struct ops_activities *activities, const char *bytes)
{
	return ops_activities_text(activities, bytes, strlen(bytes));
}

static void add_activity(struct ops_activities *activities, enum ops_activity_kind kind, const char *name, int64_t start_ns,
                         uint64_t correlation, int32_t stream)
{
	struct ops_activity activity = {
		.kind = (uint8_t)kind,
		.start_ns = start_ns,
		.end_ns = start_ns + 2,
		.correlation = correlation,
		.name = text(activities, name),
		.details = text(activities, "\"grid\":1"),
		.stream = stream,
	};

	ops_activities_add(activities, &activity);
}

/* Samples of both threads, by a third. */
static void add_samples(struct ops_recording *recording)
{
	struct ops_share *share = add_share(recording, 3, 0);

	for (int i = 0; i < ROUNDS; i++) {
		struct ops_slot *slot = add_slot(recording, share, "sample", START + 30 * (uint64_t)i, START + 30 * (uint64_t)i);
		const struct ops_sample_frame frames[] = {{add_name(share, "inner", "a.py"), 7}, {add_name(share, "outer", NULL), (uint32_t)i}};

		slot->kind = OPS_SLOT_SAMPLE;
		slot->sequence_nr = 101 + i % 2;
		add_payload(share, slot, frames, sizeof(frames));
	}
}

/* Calls of both threads, and of one without slots, with what they launch; work of a CUDA graph with an edge; a counter. */
static struct ops_activities *device_activities(void)
{
	struct ops_activities *activities = ops_activities_new();
	uint32_t details = text(activities, "\"graph node id\":1"), other = text(activities, "\"graph node id\":2");

	activities->start = (struct ops_activity_clock){.device_ns = START, .ticks = START};
	activities->stop = (struct ops_activity_clock){.device_ns = STOP, .ticks = STOP};
	assert_true(ops_activities_device(activities, 0, "{\"id\":0}", 8));
	assert_true(ops_activities_metadata(activities, "driver", "1", 1));
	ops_activities_stream(activities, 0, 7, text(activities, "copies"));
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t correlation = (uint64_t)i + 1;

		add_activity(activities, OPS_ACTIVITY_RUNTIME, "cudaLaunchKernel", START + 10 + 30 * i, correlation,
		             i % 3 == 2 ? 999 : 101 + i % 3);
		add_activity(activities, i % 2 ? OPS_ACTIVITY_KERNEL : OPS_ACTIVITY_MEMCPY, "work", STOP - 40 - 20 * i, correlation,
		             7 + i % 4);
	}
	ops_activities_node(activities, details, 1);
	ops_activities_node(activities, other, 2);
	for (uint64_t node = 1; node <= 2; node++)
		ops_activities_add(activities, &(struct ops_activity){.kind = OPS_ACTIVITY_GRAPH_NODE, .start_ns = START + 15,
		                                                      .end_ns = START + 15, .correlation = node, .thread = 101});
	ops_activities_add(activities, &(struct ops_activity){.kind = OPS_ACTIVITY_GRAPH_DEPENDENCY, .start_ns = START + 16,
	                                                      .end_ns = START + 16, .correlation = 2, .bytes = 1, .thread = 101});
	for (int i = 0; i < 2; i++)
		ops_activities_add(activities, &(struct ops_activity){.kind = OPS_ACTIVITY_KERNEL, .start_ns = STOP - 20 + i,
		                                                      .end_ns = STOP - 15 + i, .correlation = 3, .stream = 7,
		                                                      .name = text(activities, "node"),
		                                                      .details = i ? other : details});
	ops_activities_add(activities, &(struct ops_activity){.kind = OPS_ACTIVITY_ENVIRONMENT, .start_ns = START + 50,
	                                                      .end_ns = START + 50, .value = 1.5,
	                                                      .name = text(activities, "power")});
	return activities;
}

static struct ops_recording *full_recording(bool devices)
{
	static const struct ops_recorded_function function = {
		.row_name = "a.py(3): f", .row_name_bytes = 10, .name = "f", .name_bytes = 1, .file = "a.py", .file_bytes = 4, .line = 3};
	struct ops_recording *recording = new_recording();

	assert_true(ops_recording_add_function(recording, &function));
	for (uint32_t number = 1; number <= 2; number++) {
		struct ops_share *share = add_share(recording, number, number);

		for (int i = 0; i < ROUNDS; i++) {
			if (i % 5 == 0)
				add_block(share);
			add_step(recording, share, START + 30 * (uint64_t)i + number, i);
		}
	}
	add_samples(recording);
	if (devices)
		recording->activities = device_activities();
	return recording;
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

static void assert_complete(const struct ops_trace *trace, bool devices)
{
	size_t memory, counters, roles, links;

	ops_trace_memory(trace, &memory);
	ops_trace_counters(trace, &counters);
	ops_trace_roles(trace, &roles);
	ops_trace_links(trace, &links);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	assert_true(ops_trace_events(trace)->count >= (size_t)2 * ROUNDS * 4 + (devices ? 2 * ROUNDS : 0));
	assert_int_equal(memory, 2 * ROUNDS);
	assert_int_equal(roles, 2 * ROUNDS);
	assert_int_equal(counters, 2 * ROUNDS + devices);
	assert_true(links >= ROUNDS);
}

/* Each allocation fails once, alone or with all that follow, and, if `twice`, so does one of the second attempt: the attempt after
 * that gives the undisturbed trace. */
static void check_attempts(bool devices, bool all_after, uint64_t second)
{
	struct ops_trace *expected = read_recording(full_recording(devices));
	int failures = 0;

	assert_complete(expected, devices);
	for (uint64_t nth = 1;; nth++) {
		struct ops_recording *recording = full_recording(devices);
		struct ops_trace *trace = NULL;
		struct ops_error error;
		bool failed;

		ops_alloc_fail_at(nth, all_after);
		failed = ops_trace_from_recording(recording, &trace, &error) != OPS_OK;
		ops_alloc_fail_at(0, false);
		if (failed) {
			assert_null(trace);
			assert_int_equal(error.code, OPS_NO_MEMORY);
			assert_string_equal(error.text, "cannot make a trace of the recording: out of memory");
			failures++;
			ops_alloc_fail_at(second, false);
			failed = ops_trace_from_recording(recording, &trace, &error) != OPS_OK;
			ops_alloc_fail_at(0, false);
			if (failed)
				trace = read_recording(recording);
			failed = true;
		}
		assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
		assert_same_trace(expected, trace);
		assert_int_equal(ops_trace_metadata_count(expected), ops_trace_metadata_count(trace));
		ops_trace_unref(trace);
		if (!failed)
			break;
	}
	assert_true(failures > 40);
	ops_trace_unref(expected);
}

static void test_second_attempt_is_complete(void **state)
{
	(void)state;
	check_attempts(false, false, 0);
	check_attempts(false, true, 0);
	check_attempts(true, false, 0);
	check_attempts(true, true, 0);
}

static void test_third_attempt_is_complete(void **state)
{
	(void)state;
	for (uint64_t second = 1; second < 100; second += 7)
		check_attempts(true, false, second);
}

/* The sanitizer sees leaks. */
static void test_an_unfinished_recording_can_be_freed(void **state)
{
	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct ops_recording *recording = full_recording(true);
		struct ops_trace *trace = NULL;
		bool failed;

		ops_alloc_fail_at(nth, false);
		failed = ops_trace_from_recording(recording, &trace, NULL) != OPS_OK;
		ops_alloc_fail_at(0, false);
		ops_trace_unref(trace);
		if (!failed)
			break;
		ops_recording_free(recording);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_attempt_is_complete),
		cmocka_unit_test(test_third_attempt_is_complete),
		cmocka_unit_test(test_an_unfinished_recording_can_be_freed),
	};

	setenv("OPSTROBE_CLOCK", "monotonic", 1); /* one tick is one nanosecond */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
