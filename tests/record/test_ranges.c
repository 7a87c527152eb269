/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges, instants, counters and a collector's own slots in a recording.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void test_nothing_without_session(void **state)
{
	struct ops_range range = ops_range_begin("a", 1);
	struct ops_recording *recording;
	struct ops_session *session;

	(void)state;
	assert_null(range.slot);
	assert_false(ops_recording_active());
	ops_range_end(range);
	ops_instant("a", 1);
	ops_counter("a", 1, 1.0);
	session = start();
	assert_true(ops_recording_active());
	recording = stop(session);
	assert_false(ops_recording_active());
	assert_int_equal(recording->slot_count, 0);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

static void test_kinds(void **state)
{
	struct ops_session *session = start();
	struct ops_range outer = ops_range_begin("outer", 5);
	struct ops_range inner = ops_range_begin_args("inner", 5, "{\"n\": 3}", 8);
	struct ops_recording *recording;
	struct found found;

	(void)state;
	ops_instant("now", 3);
	ops_counter("loss", 4, 0.25);
	ops_range_end(inner);
	ops_range_end(outer);
	recording = stop(session);

	assert_int_equal(recording->slot_count, 4);
	assert_int_equal(recording->share_count, 1);
	assert_int_equal(recording->shares->tid, own_tid());
	found = find(recording, TEXT("outer"));
	assert_int_equal(found.slot->kind, OPS_SLOT_RANGE);
	assert_int_equal(found.slot->scope, 7);
	assert_int_equal(found.slot->sequence_nr, -1);
	assert_int_equal(found.slot->end_thread, found.share->number);
	assert_null(found.args.bytes);
	assert_true(found.slot->start_ticks > recording->start.ticks && found.slot->end_ticks < recording->stop.ticks);
	assert_true(found.slot->end_ticks > find(recording, TEXT("inner")).slot->end_ticks);
	found = find(recording, TEXT("inner"));
	assert_int_equal(found.args.size, 8);
	assert_memory_equal(found.args.bytes, "{\"n\": 3}", 8);
	found = find(recording, TEXT("now"));
	assert_int_equal(found.slot->kind, OPS_SLOT_INSTANT);
	assert_true(found.slot->start_ticks == found.slot->end_ticks);
	found = find(recording, TEXT("loss"));
	assert_int_equal(found.slot->kind, OPS_SLOT_COUNTER);
	assert_true(slot_value(found.slot) == 0.25);
	ops_recording_free(recording);
}

static void test_hostile_names(void **state)
{
	const struct text names[] = {
		TEXT("quote\" and \\"), TEXT("a\0b"), TEXT("a\0c"), TEXT("\xff\xfe broken \xc3"),
		TEXT("\xed\xa0\x80 surrogate"), TEXT("\x01\x1f\n"), TEXT("%s%n"),
	};
	const size_t count = sizeof(names) / sizeof(names[0]);
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	for (size_t i = 0; i < count; i++)
		ops_range_end(ops_range_begin_args(names[i].bytes, names[i].size, names[i].bytes, names[i].size));
	ops_instant(NULL, 0);
	ops_range_end(ops_range_begin_args("no args", 7, NULL, 0));
	recording = stop(session);
	for (size_t i = 0; i < count; i++) {
		struct found found = find(recording, names[i]);

		assert_int_equal(found.args.size, names[i].size);
		assert_memory_equal(found.args.bytes, names[i].bytes, names[i].size);
	}
	assert_int_equal(find(recording, TEXT("")).slot->kind, OPS_SLOT_INSTANT);
	assert_int_equal(find(recording, TEXT("no args")).args.size, 0);
	ops_recording_free(recording);
}

/* Sizes around the limit of what goes into a block, and far beyond a block. */
static void test_long_names(void **state)
{
	const size_t sizes[] = {2044, 2045, 2047, 2048, 2049, 65536, 10u << 20};
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	const size_t largest = sizes[sizeof(sizes) / sizeof(sizes[0]) - 1];
	struct ops_session *session = start();
	struct ops_recording *recording;
	char *bytes = malloc(largest);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < largest; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	for (size_t i = 0; i < count; i++) {
		ops_range_end(ops_range_begin(bytes, sizes[i]));
		ops_range_end(ops_range_begin_args("short", 5, bytes, sizes[i]));
	}
	ops_instant(bytes, largest);
	recording = stop(session);
	assert_int_equal(recording->lost, 0);
	assert_int_equal(recording->slot_count, 2 * count + 1);
	for (size_t i = 0; i + 1 < count; i++) {
		struct found found = find(recording, (struct text){bytes, sizes[i]});

		assert_null(found.args.bytes);
	}
	assert_int_equal(count_named(recording, (struct text){bytes, largest}), 2);
	assert_int_equal(count_named(recording, TEXT("short")), count);
	/* Each long text is stored once. */
	assert_int_equal(recording->shares->texts.count, 3 + 1);
	ops_recording_free(recording);
	free(bytes);
}

static struct ops_slot *reserve(size_t payload_bytes)
{
	const struct ops_collector *collector = ops_collector_get();

	return ops_reserve(collector, collector->thread(), ops_collector_epoch(collector), payload_bytes);
}

static void publish_op(struct ops_slot *slot, uint32_t name)
{
	const struct ops_collector *collector = ops_collector_get();

	slot->name = name;
	slot->flags = 0;
	slot->kind = OPS_SLOT_OP;
	slot->start_ticks = slot->end_ticks = ops_ticks(collector->tsc);
	ops_publish(collector->thread());
}

static void test_payload_sizes(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording;
	struct ops_slot *slot;
	size_t seen = 0;

	(void)state;
	assert_null(reserve(OPS_PAYLOAD_MAX + 4));
	slot = reserve(OPS_PAYLOAD_MAX);
	assert_non_null(slot);
	memset(ops_slot_payload(ops_collector_get()->thread(), slot), 0x5a, OPS_PAYLOAD_MAX);
	publish_op(slot, 0);
	slot = reserve(0);
	assert_non_null(slot);
	assert_int_equal(slot->payload, 0);
	publish_op(slot, 0);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 2);
	assert_int_equal(recording->lost, 1);
	slot = &recording->shares->blocks->slots[0];
	for (size_t i = 0; i < OPS_PAYLOAD_MAX; i++)
		seen += ((char *)recording->shares->blocks)[slot->payload + i] == 0x5a;
	assert_int_equal(seen, OPS_PAYLOAD_MAX);
	ops_recording_free(recording);
}

/* Slots may share a payload; the copy of a block that is not full has to bring all of it. */
static void test_shared_payloads(void **state)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_session *session = start();
	struct ops_slot *first = reserve(8);
	const uint16_t shared = first->payload;
	struct ops_recording *recording;
	const struct ops_block *block;

	(void)state;
	memcpy(ops_slot_payload(collector->thread(), first), "earlier", 8);
	publish_op(first, 0);
	for (int i = 0; i < 2; i++) {
		struct ops_slot *slot = reserve(i ? 0 : 400);

		if (i) {
			slot->payload = shared;
			slot->payload_bytes = 8;
		} else {
			memset(ops_slot_payload(collector->thread(), slot), 0x5a, 400);
		}
		publish_op(slot, 0);
	}
	recording = stop(session);
	block = recording->shares->blocks;
	assert_int_equal(block->count, 3);
	assert_true(block->bytes < OPS_BLOCK_BYTES);
	assert_int_equal(block->slots[2].payload, block->slots[0].payload);
	assert_string_equal((const char *)block + block->slots[2].payload, "earlier");
	for (int i = 0; i < 400; i++)
		assert_int_equal(((const char *)block)[block->slots[1].payload + i], 0x5a);
	ops_recording_free(recording);
}

static void test_interning(void **state)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_session *session = start();
	struct ops_thread *thread = collector->thread();
	uint32_t add = collector->intern(thread, "aten::add", 9, "Tensor", 6);
	uint32_t plain = collector->intern(thread, "aten::add", 9, NULL, 0);
	uint32_t empty = collector->intern(thread, "aten::add", 9, "", 0);
	struct ops_recording *recording;
	const struct ops_share *share;

	(void)state;
	assert_true(add && plain && empty && add != plain && plain != empty && add != empty);
	assert_int_equal(collector->intern(thread, "aten::add", 9, "Tensor", 6), add);
	assert_int_equal(collector->intern(thread, "aten::add", 9, NULL, 0), plain);
	publish_op(reserve(0), add);
	publish_op(reserve(0), plain);
	recording = stop(session);
	share = recording->shares;
	assert_int_equal(share->names.count, 3);
	assert_int_equal(share->texts.count, 3);
	assert_int_equal(ops_share_name(share, plain).second, OPS_INTERN_NONE);
	assert_string_equal(share->texts.entries[ops_share_name(share, add).second].bytes, "Tensor");
	ops_recording_free(recording);
	/* A new session has new names. */
	assert_int_equal(collector->intern(thread, "aten::mul", 9, NULL, 0), 0);
	session = start();
	assert_int_equal(collector->intern(thread, "aten::mul", 9, NULL, 0), 1);
	ops_recording_free(stop(session));
}

static void test_memory_slots(void **state)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_session *session = start();
	struct ops_memory_slot record = {
		.address = 0x1000, .bytes = -64, .total_allocated = 1, .total_reserved = UINT64_MAX,
		.device_index = -1, .kind = OPS_SLOT_MEMORY,
	};
	struct ops_recording *recording;

	(void)state;
	for (int i = 0; i < 3000; i++) { /* several blocks; a size of 0 is not an open slot */
		record.bytes = i % 3 - 1;
		record.time_ticks = ops_ticks(collector->tsc);
		record.kind = i % 2 ? OPS_SLOT_MEMORY : OPS_SLOT_OOM;
		memcpy(reserve(0), &record, sizeof(record));
		ops_publish(collector->thread());
	}
	recording = stop(session);
	assert_int_equal(recording->slot_count, 3000);
	assert_memory_equal(&recording->shares->last->slots[recording->shares->last->count - 1], &record, sizeof(record));
	ops_recording_free(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_without_session), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_hostile_names),           cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_payload_sizes),           cmocka_unit_test(test_interning),
		cmocka_unit_test(test_memory_slots),            cmocka_unit_test(test_shared_payloads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
