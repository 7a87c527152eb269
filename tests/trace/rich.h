/* SPDX-License-Identifier: Apache-2.0
 *
 * A small trace with one of everything.
 */
#ifndef OPS_TEST_RICH_H
#define OPS_TEST_RICH_H

#include <string.h>

#include "lists.h"
#include "trace/builder.h"

static inline uint32_t rich_string(struct ops_builder *builder, const char *text)
{
	return ops_builder_string(builder, text, strlen(text));
}

static inline uint32_t rich_inputs(struct ops_builder *builder, int64_t size)
{
	struct list list;

	list_open(&list, 2);
	put_tensor(&list, 6, 1, (const int64_t[]){size, 1});
	put_int(&list, 1);
	return ops_builder_inputs(builder, list.bytes, list.size);
}

static inline uint32_t rich_storages(struct ops_builder *builder, uint64_t address)
{
	const struct ops_storage storages[] = {
		{.address = address, .bytes = 12, .written = 1},
		{.address = UINT64_MAX, .bytes = OPS_STORAGE_BYTES_MAX, .device_type = 1, .device_index = 2},
		{.address = address, .bytes = 12},
	};

	return ops_builder_string(builder, (const char *)storages, sizeof(storages));
}

/* Rows, in the order of the finished trace:
 *
 *     0 step      0………………………………………………1000   annotation, argument text, unfinished
 *     1 linear      10………90                  operator 5, inputs 0
 *     2 linear        20…80                   folded into 1
 *     3 addmm           30…70                 operator 5, inputs 1, overload "out"
 *     4 is_leaf                95…96          hidden
 *     5 AddBackward0              200…300     on track 1, backward of 3
 *     6 load                        250…400   ends on track 1: asynchronous
 *     7 mark                             500  instant
 */
static inline struct ops_builder *rich_builder(void)
{
	struct ops_builder *b = ops_builder_new();
	struct ops_new_event event = {OPS_NEW_EVENT};
	uint32_t linear;

	if (!b)
		return NULL;
	ops_builder_expect(b, 4, 2);
	linear = rich_string(b, "aten::linear");
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 9, .name = rich_string(b, "main")});
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 10, .number = 2});
	ops_builder_track(b, &(struct ops_track){.kind = OPS_TRACK_STREAM, .pid = 0, .tid = 7});
	ops_builder_number_track(b, 0, 1);

	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 500, .end_ns = 500, .name = rich_string(b, "mark"),
	                               .kind = OPS_EVENT_CPU_INSTANT};
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 0, .end_ns = 1000, .name = rich_string(b, "step"),
	                               .flags = OPS_EVENT_UNFINISHED, .kind = OPS_EVENT_USER_ANNOTATION, .scope = 7};
	event.args = rich_string(b, "n=1");
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 10, .end_ns = 90, .name = linear};
	event.sequence_nr = 5;
	event.inputs = rich_inputs(b, 3);
	event.storages = rich_storages(b, 64);
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 20, .end_ns = 80, .name = linear};
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 30, .end_ns = 70, .name = rich_string(b, "aten::addmm"),
	                               .overload = rich_string(b, "out")};
	event.sequence_nr = 5;
	event.inputs = rich_inputs(b, 4);
	event.storages = rich_storages(b, 128);
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 95, .end_ns = 96, .name = rich_string(b, "aten::is_leaf")};
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 200, .end_ns = 300, .track = 1, .scope = 1,
	                               .name = rich_string(b, "AddBackward0"), .forward_thread = 1, .id = 77};
	event.sequence_nr = 5;
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 250, .end_ns = 400, .name = rich_string(b, "load"),
	                               .kind = OPS_EVENT_USER_ANNOTATION, .scope = 7};
	event.end_track = 1;
	ops_builder_event(b, &event);

	for (int64_t i = 2; i-- > 0;) {
		ops_builder_memory(b, &(struct ops_memory_record){.time_ns = 50 + i, .address = 64, .bytes = i ? -8 : 8,
		                                                  .device_index = -1});
		if (i)
			ops_builder_memory_stack(b, rich_string(b, "a.py(1): f;"));
		ops_builder_counter(b, &(struct ops_counter_record){.time_ns = 60 + i, .value = 0.5 + (double)i,
		                                                    .name = rich_string(b, "loss")});
	}
	ops_builder_role(b, &(struct ops_role_record){.time_ns = 5, .name = rich_string(b, "fc.weight"),
	                                              .storage = {.address = 64, .bytes = 12, .role = OPS_ROLE_PARAMETER}});
	ops_builder_role(b, &(struct ops_role_record){.time_ns = 6, .track = 1, .storage = {.role = OPS_ROLE_TENSOR}});
	ops_builder_info(b, &(struct ops_trace_info){.start_ns = 0, .stop_ns = 1000, .pid = 9, .lost = 3,
	                                             .base_ns = 70, .file_events = 12,
	                                             .host_name = "host", .process_name = NULL});
	return b;
}

#endif
