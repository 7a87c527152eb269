/* SPDX-License-Identifier: Apache-2.0
 *
 * How slots of recordings become events, with recordings in which every tick is known (by_hand.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../trace/lists.h"
#include "../trace/random.h"
#include "by_hand.h"

/* --- time ----------------------------------------------------------------------------------------------------------- */

static void test_session_times(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_trace *trace;
	const struct ops_trace_info *info;

	(void)state;
	recording->lost = 12;
	trace = read_recording(recording);
	info = ops_trace_info(trace);
	assert_int_equal(info->start_ns, NS(START));
	assert_int_equal(info->stop_ns, NS(STOP));
	assert_int_equal(info->lost, 12);
	assert_true(info->pid > 0);
	assert_int_equal(ops_trace_events(trace)->count, 0);
	ops_trace_unref(trace);
}

/* Open at the stop, closed later, started later, ended before it started. */
static void test_ends(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 1, 0);
	struct ops_trace *trace;
	const struct ops_events *e;
	static const int64_t ends[] = {STOP, STOP, STOP, 1400, STOP, STOP};
	static const bool unfinished[] = {true, true, false, false, true, false};

	(void)state;
	add_slot(recording, share, "open", 1100, 0);
	add_slot(recording, share, "late", 1200, STOP + 5);
	add_slot(recording, share, "just", 1300, STOP);
	add_slot(recording, share, "backwards", 1400, 1399);
	add_slot(recording, share, "after", STOP + 3, 0);
	add_slot(recording, share, "instant after", STOP + 4, STOP + 4)->kind = OPS_SLOT_INSTANT;
	trace = read_recording(recording);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 6);
	for (size_t row = 0; row < 6; row++) {
		assert_int_equal(e->end_ns[row], NS(ends[row]));
		assert_int_equal(e->flags[row] & OPS_EVENT_UNFINISHED, unfinished[row] ? OPS_EVENT_UNFINISHED : 0);
	}
	assert_int_equal(e->start_ns[4], NS(STOP));
	assert_int_equal(e->parent[1], 0);
	assert_int_equal(e->parent[3], 2);
	assert_int_equal(e->parent[4], OPS_NONE); /* everything before it ends where it starts */
	ops_trace_unref(trace);
}

/* --- the merge against a plain sort --------------------------------------------------------------------------------- */

#define SHARES_MAX 9
#define SLOTS_MAX 400

struct expected {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t number; /* of the thread */
	char name[16];
};

static int compare_expected(const void *a, const void *b)
{
	const struct expected *left = a;
	const struct expected *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->end_ns != right->end_ns)
		return left->end_ns > right->end_ns ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* Slots of one thread: ever later, as a thread writes them, in blocks of random length. */
static size_t fill_share(struct random *random, struct ops_recording *recording, struct ops_share *share,
                         struct expected *expected, size_t count)
{
	uint64_t tick = START;

	for (size_t i = 0; i < count; i++) {
		struct expected *slot = &expected[i];
		uint64_t end;

		if (!share->last || share->last->count == BLOCK_SLOTS || random_below(random, 10) == 0)
			add_block(share);
		tick += 1 + random_below(random, 4);
		end = tick + random_below(random, 20);
		*slot = (struct expected){NS((int64_t)tick), NS((int64_t)end), share->number, ""};
		snprintf(slot->name, sizeof(slot->name), "%u.%04zu", share->number, i);
		add_slot(recording, share, slot->name, tick, end);
	}
	return count;
}

static void test_merge_like_a_sort(void **state)
{
	static struct expected expected[SHARES_MAX * SLOTS_MAX];

	(void)state;
	for (uint64_t seed = 0; seed < 150; seed++) {
		struct random random = {seed};
		struct ops_recording *recording = new_recording();
		uint32_t shares = random_below(&random, SHARES_MAX + 1);
		size_t count = 0;
		struct ops_trace *trace;
		const struct ops_events *e;
		size_t track_count;
		const struct ops_track *tracks;

		for (uint32_t i = 0; i < shares; i++)
			count += fill_share(&random, recording, add_share(recording, shares - i, 0), expected + count,
			                    random_below(&random, seed % 10 ? 60 : SLOTS_MAX - 50));
		qsort(expected, count, sizeof(*expected), compare_expected);
		trace = read_recording(recording);
		e = ops_trace_events(trace);
		tracks = ops_trace_tracks(trace, &track_count);
		assert_int_equal(track_count, shares);
		assert_int_equal(e->count, count);
		for (size_t row = 0; row < count; row++) {
			assert_int_equal(e->start_ns[row], expected[row].start_ns);
			assert_int_equal(e->end_ns[row], expected[row].end_ns);
			assert_int_equal(tracks[e->track[row]].number, expected[row].number);
			assert_name(trace, e->name[row], expected[row].name);
		}
		ops_trace_unref(trace);
	}
}

/* A thread whose clock went backwards is sorted all the same. */
static void test_unordered_share(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 1, 0);
	struct ops_trace *trace;

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		add_slot(recording, share, "op", 1500 - i * 10, 1505 - i * 10);
	trace = read_recording(recording);
	for (size_t row = 1; row < 40; row++)
		assert_true(ops_trace_events(trace)->start_ns[row] > ops_trace_events(trace)->start_ns[row - 1]);
	ops_trace_unref(trace);
}

/* --- threads -------------------------------------------------------------------------------------------------------- */

/* Torch's own numbers stay; the others follow behind every number that is in use, also of threads that are not here. */
static void test_thread_numbers(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *plain = add_share(recording, 1, 0);
	struct ops_share *second = add_share(recording, 2, 5);
	struct ops_share *third = add_share(recording, 3, 2);
	struct ops_share *plain_too = add_share(recording, 4, 0);
	struct ops_trace *trace;
	const struct ops_track *tracks;
	size_t count;

	(void)state;
	plain_too->name = strcpy(ops_alloc(7), "worker");
	plain_too->name_size = 6;
	add_slot(recording, plain, "a", 1100, 1200);
	add_slot(recording, second, "b", 1100, 1200);
	add_slot(recording, third, "c", 1100, 1200)->forward_thread = 8;
	trace = read_recording(recording);
	tracks = ops_trace_tracks(trace, &count);
	assert_int_equal(count, 4);
	assert_int_equal(tracks[0].number, 2);
	assert_int_equal(tracks[0].tid, 103);
	assert_int_equal(tracks[1].number, 5);
	assert_int_equal(tracks[2].number, 9);
	assert_int_equal(tracks[2].tid, 101);
	assert_int_equal(tracks[3].number, 10);
	assert_name(trace, tracks[3].name, "worker");
	ops_trace_unref(trace);
}

static void test_end_elsewhere(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *one = add_share(recording, 1, 1);
	struct ops_share *two = add_share(recording, 2, 2);
	struct ops_trace *trace;
	const struct ops_events *e;

	(void)state;
	add_slot(recording, one, "outer", 1050, 1900);
	add_slot(recording, one, "moves", 1100, 1200)->end_thread = 2;
	add_slot(recording, one, "moves to nobody", 1110, 1200)->end_thread = 77;
	add_slot(recording, one, "said so", 1120, 1200)->flags = OPS_SLOT_ASYNC;
	add_slot(recording, one, "unknown end", 1130, 1200)->end_thread = 0;
	add_slot(recording, two, "other", 1150, 1200);
	trace = read_recording(recording);
	e = ops_trace_events(trace);
	for (size_t row = 1; row <= 3; row++) {
		assert_int_equal(e->flags[row], OPS_EVENT_ASYNC);
		assert_int_equal(e->parent[row], OPS_NONE);
		assert_int_equal(e->end_track[row], row == 1);
	}
	assert_int_equal(e->flags[4], 0);
	assert_int_equal(e->parent[4], 0);
	assert_int_equal(e->parent[5], OPS_NONE);
	ops_trace_unref(trace);
}

/* --- what a slot says ----------------------------------------------------------------------------------------------- */

#define WRAPPER "autograd::engine::evaluate_function: AddBackward0"

static struct ops_slot *add_backward(struct ops_recording *recording, struct ops_share *share, uint64_t start,
                                     int64_t sequence_nr)
{
	struct ops_slot *slot = add_slot(recording, share, "AddBackward0", start, start + 5);

	slot->scope = 1;
	slot->sequence_nr = sequence_nr;
	slot->forward_thread = 1;
	return slot;
}

static void inline_name(struct ops_share *share, struct ops_slot *slot, const char *name)
{
	char payload[128] = {0};
	uint32_t size = (uint32_t)strlen(name);

	memcpy(payload, &size, sizeof(size));
	memcpy(payload + sizeof(size), name, size);
	slot->name = 0;
	slot->flags |= OPS_SLOT_NAME_INLINE;
	add_payload(share, slot, payload, sizeof(size) + ((size + 3) & ~3u));
}

/* The wrapper takes what its node says when that is the next operator of its thread; memory between does not matter, nor
 * where a block ends. */
static void test_evaluate_function(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 2, 2);
	struct ops_share *other = add_share(recording, 1, 1);
	struct ops_trace *trace;
	const struct ops_events *e;
	struct ops_memory_slot *memory;

	(void)state;
	add_slot(recording, share, WRAPPER, 1100, 1190); /* 0, followed */
	memory = (struct ops_memory_slot *)(void *)add_slot(recording, share, "", 1105, 0);
	*memory = (struct ops_memory_slot){.time_ticks = 1105, .bytes = 4, .kind = OPS_SLOT_MEMORY};
	add_block(share);
	add_slot(recording, other, "elsewhere", 1107, 1108); /* 1 */
	add_backward(recording, share, 1110, 41);            /* 2 */
	add_slot(recording, share, WRAPPER, 1200, 1290);     /* 3, an operator between */
	add_slot(recording, share, "aten::add", 1201, 1202); /* 4 */
	add_backward(recording, share, 1210, 42);            /* 5 */
	add_slot(recording, share, WRAPPER, 1300, 1390);     /* 6, a range between */
	add_slot(recording, share, "mine", 1301, 1302)->kind = OPS_SLOT_RANGE;
	add_backward(recording, share, 1310, 43);                          /* 8 */
	add_slot(recording, share, WRAPPER, 1400, 1490)->scope = 1;        /* 9, not of scope FUNCTION */
	add_backward(recording, share, 1410, 44);                          /* 10 */
	add_slot(recording, share, WRAPPER, 1500, 1590);                   /* 11, a wrapper again */
	add_slot(recording, share, WRAPPER, 1501, 1580);                   /* 12, followed */
	add_backward(recording, share, 1510, 45);                          /* 13 */
	add_block(share);
	inline_name(share, add_slot(recording, share, "", 1600, 1690), WRAPPER); /* 14, named in place, followed */
	add_backward(recording, share, 1610, 46);                                /* 15 */
	add_slot(recording, share, WRAPPER, 1700, 1790);                         /* 16, the last */
	trace = read_recording(recording);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 17);
	for (size_t row = 0; row < 17; row++) {
		bool takes = row == 0 || row == 12 || row == 14;
		bool node = e->scope[row] == 1 && row != 9;
		int64_t expected = row == 0 ? 41 : row == 12 ? 45 : row == 14 ? 46 : node ? e->sequence_nr[row] : -1;

		assert_int_equal(e->sequence_nr[row], expected);
		assert_int_equal(e->forward_thread[row], takes || node);
	}
	ops_trace_unref(trace);
}

static void test_memory_and_counters(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 1, 1);
	struct ops_share *other = add_share(recording, 2, 0);
	struct ops_trace *trace;
	const struct ops_memory_record *memory;
	const struct ops_counter_record *counters;
	size_t count;
	double value = -1.25;

	(void)state;
	*(struct ops_memory_slot *)(void *)add_slot(recording, share, "", 0, 0) = (struct ops_memory_slot){
		.address = 0xabc, .time_ticks = 1300, .bytes = -64, .total_allocated = 5, .total_reserved = 6,
		.device_index = 1, .device_type = 20, .kind = OPS_SLOT_MEMORY};
	*(struct ops_memory_slot *)(void *)add_slot(recording, other, "", 0, 0) = (struct ops_memory_slot){
		.time_ticks = 1200, .bytes = 1 << 20, .device_index = -1, .kind = OPS_SLOT_OOM};
	memcpy(&add_slot(recording, other, "loss", 1400, 1400)->sequence_nr, &value, sizeof(value));
	other->last->slots[1].kind = OPS_SLOT_COUNTER;
	trace = read_recording(recording);
	memory = ops_trace_memory(trace, &count);
	assert_int_equal(count, 2);
	assert_int_equal(memory[0].time_ns, NS(1200));
	assert_int_equal(memory[0].out_of_memory, 1);
	assert_int_equal(memory[0].track, 1);
	assert_int_equal(memory[0].device_index, -1);
	assert_int_equal(memory[1].address, 0xabc);
	assert_int_equal(memory[1].bytes, -64);
	assert_int_equal(memory[1].total_allocated, 5);
	assert_int_equal(memory[1].total_reserved, 6);
	assert_int_equal(memory[1].device_index, 1);
	assert_int_equal(memory[1].device_type, 20);
	assert_int_equal(memory[1].track, 0);
	counters = ops_trace_counters(trace, &count);
	assert_int_equal(count, 1);
	assert_true(counters[0].value == -1.25);
	assert_int_equal(counters[0].time_ns, NS(1400));
	assert_name(trace, counters[0].name, "loss");
	assert_int_equal(ops_trace_events(trace)->count, 0);
	ops_trace_unref(trace);
}

static void test_names_and_inputs(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 1, 1);
	struct ops_slot *slot;
	struct ops_trace *trace;
	const struct ops_events *e;
	struct list list;
	struct list payload = {.size = 0};

	(void)state;
	list_open(&list, 1);
	put_int(&list, 5);
	slot = add_slot(recording, share, "", 1100, 1110); /* overload and inputs */
	slot->name = add_name(share, "aten::add", "Tensor");
	slot->flags = OPS_SLOT_HAS_INPUTS;
	add_payload(share, slot, list.bytes, list.size);
	slot = add_slot(recording, share, "aten::mul", 1120, 1130); /* the same inputs */
	slot->flags = OPS_SLOT_HAS_INPUTS;
	add_payload(share, slot, list.bytes, list.size);
	slot = add_slot(recording, share, "", 1140, 1150); /* name, arguments and inputs in the payload */
	slot->name = 0;
	slot->kind = OPS_SLOT_RANGE;
	slot->flags = OPS_SLOT_NAME_INLINE | OPS_SLOT_HAS_ARGS | OPS_SLOT_HAS_INPUTS;
	put(&payload, &(uint32_t){5}, 4);
	put(&payload, "in\0er\0\0\0", 8);
	put(&payload, &(uint32_t){4}, 4);
	put(&payload, "x=22", 4);
	put(&payload, list.bytes, list.size);
	add_payload(share, slot, payload.bytes, payload.size);
	slot = add_slot(recording, share, "", 1160, 1170); /* a range whose arguments are interned */
	slot->name = add_name(share, "long", "very long");
	slot->kind = OPS_SLOT_RANGE;
	slot->flags = OPS_SLOT_HAS_ARGS;
	slot = add_slot(recording, share, "takes nothing", 1180, 1190);
	slot->flags = OPS_SLOT_HAS_INPUTS;
	add_payload(share, slot, &(uint32_t){0}, 4);
	trace = read_recording(recording);
	e = ops_trace_events(trace);
	assert_int_equal(e->count, 5);
	assert_int_equal(e->inputs[4], OPS_NONE);
	assert_name(trace, e->name[0], "aten::add");
	assert_name(trace, e->overload[0], "Tensor");
	assert_name(trace, e->overload[1], "");
	assert_int_equal(e->inputs[0], 0);
	assert_int_equal(e->inputs[1], 0);
	assert_int_equal(e->inputs[2], 0);
	assert_int_equal(e->inputs[3], OPS_NONE);
	assert_int_equal(ops_trace_string(trace, e->name[2]).size, 5);
	assert_memory_equal(ops_trace_string(trace, e->name[2]).bytes, "in\0er", 5);
	assert_name(trace, e->args[2], "x=22");
	assert_name(trace, e->args[3], "very long");
	assert_int_equal(e->args[0], OPS_NONE);
	assert_int_equal(e->kind[2], OPS_EVENT_USER_ANNOTATION);
	ops_trace_unref(trace);
}

/* Slots that make no sense are counted as lost, and nothing outside the block is read. */
static void test_nonsense(void **state)
{
	struct ops_recording *recording = new_recording();
	struct ops_share *share = add_share(recording, 1, 1);
	struct ops_slot *slot;
	struct ops_trace *trace;

	(void)state;
	add_slot(recording, share, "good", 1001, 1002);
	add_slot(recording, share, "no such name", 1010, 1020)->name = 1000;
	add_slot(recording, share, "no name", 1030, 1040)->name = 0;
	add_slot(recording, share, "no such kind", 1050, 1060)->kind = 99;
	slot = add_slot(recording, share, "payload outside", 1070, 1080);
	slot->payload = share->last->bytes - 4;
	slot->payload_bytes = 8;
	slot->flags = OPS_SLOT_HAS_INPUTS;
	slot = add_slot(recording, share, "name too long", 1090, 1100);
	slot->flags = OPS_SLOT_NAME_INLINE;
	add_payload(share, slot, &(uint32_t){5}, 4);
	slot = add_slot(recording, share, "bad inputs", 1110, 1120);
	slot->flags = OPS_SLOT_HAS_INPUTS;
	add_payload(share, slot, &(uint32_t){5}, 4);
	slot = add_slot(recording, share, "no payload", 1130, 1140);
	slot->flags = OPS_SLOT_HAS_INPUTS;
	trace = read_recording(recording);
	assert_int_equal(ops_trace_events(trace)->count, 1);
	assert_int_equal(ops_trace_info(trace)->lost, 7);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session_times),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_merge_like_a_sort),
		cmocka_unit_test(test_unordered_share),
		cmocka_unit_test(test_thread_numbers),
		cmocka_unit_test(test_end_elsewhere),
		cmocka_unit_test(test_evaluate_function),
		cmocka_unit_test(test_memory_and_counters),
		cmocka_unit_test(test_names_and_inputs),
		cmocka_unit_test(test_nonsense),
	};

	setenv("OPSTROBE_CLOCK", "monotonic", 1); /* one tick is one nanosecond */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
