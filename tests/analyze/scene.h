/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for tests, written event by event.
 */
#ifndef OPS_TEST_SCENE_H
#define OPS_TEST_SCENE_H

#include <string.h>

#include <opstrobe/internal/analyze.h>

#include "../trace/lists.h"
#include "trace/builder.h"

static inline uint32_t scene_string(struct ops_builder *b, const char *text)
{
	return ops_builder_string(b, text, strlen(text));
}

/* Returns a builder with the tracks 0 and 1. */
static inline struct ops_builder *scene_open(void)
{
	struct ops_builder *b = ops_builder_new();

	assert_non_null(b);
	ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
	ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 2, .number = 2});
	return b;
}

static inline struct ops_new_event scene_event(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns,
                                               int64_t end_ns)
{
	return (struct ops_new_event){OPS_NEW_EVENT, .track = track, .name = scene_string(b, name), .start_ns = start_ns,
	                              .end_ns = end_ns};
}

static inline void scene_op(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event event = scene_event(b, track, name, start_ns, end_ns);

	ops_builder_event(b, &event);
}

static inline void scene_range(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct ops_new_event event = scene_event(b, track, name, start_ns, end_ns);

	event.kind = OPS_EVENT_USER_ANNOTATION;
	event.scope = 7;
	ops_builder_event(b, &event);
}

/* An operator on one two-dimensional tensor. */
static inline void scene_op_on(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, int64_t rows,
                               int64_t columns, int64_t stride)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);
	struct list list;

	list_open(&list, 1);
	put_tensor(&list, 6, 2, (const int64_t[]){rows, columns, stride, 1});
	event.inputs = ops_builder_inputs(b, list.bytes, list.size);
	ops_builder_event(b, &event);
}

static inline void scene_memory(struct ops_builder *b, uint32_t track, int64_t time_ns, int64_t bytes,
                                uint8_t device_type)
{
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = time_ns, .bytes = bytes, .track = track,
	                                                  .device_type = device_type, .device_index = -1});
}

static inline void scene_out_of_memory(struct ops_builder *b, uint32_t track, int64_t time_ns, int64_t bytes)
{
	ops_builder_memory(b, &(struct ops_memory_record){.time_ns = time_ns, .bytes = bytes, .track = track,
	                                                  .device_index = -1, .out_of_memory = 1});
}

static inline struct ops_trace *scene_close(struct ops_builder *b)
{
	struct ops_trace *trace;
	struct ops_error error;

	assert_int_equal(ops_builder_finish(b, &trace, &error), OPS_OK);
	return trace;
}

static inline struct ops_event_costs scene_costs(const struct ops_trace *trace)
{
	struct ops_event_costs costs;
	struct ops_error error;

	assert_int_equal(ops_event_costs_init(&costs, trace, false, &error), OPS_OK);
	return costs;
}

/* The row of that name, of which there must be one. */
static inline uint32_t scene_row(const struct ops_trace *trace, const char *name)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t found = OPS_NONE;

	for (uint32_t row = 0; row < events->count; row++) {
		if (strcmp(ops_trace_string(trace, events->name[row]).bytes, name) != 0)
			continue;
		assert_int_equal(found, OPS_NONE);
		found = row;
	}
	assert_int_not_equal(found, OPS_NONE);
	return found;
}

#endif
