/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared code of the tests of collectors: recording with a collector, and inspecting the trace.
 */
#ifndef OPS_TESTS_GPU_ASKING_H
#define OPS_TESTS_GPU_ASKING_H

#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "gpu/intake.h"

struct run {
	const struct ops_device_collector *collector;
	struct ops_session *session;
	struct ops_device_session *devices;
};

static inline void start_run(struct run *run, const struct ops_device_collector *collector, uint32_t kinds)
{
	struct ops_error error;

	run->collector = collector;
	if (ops_session_start(NULL, &run->session, &error) ||
	    ops_device_start(run->collector, kinds, &run->devices, &error))
		fail_msg("%s", error.text);
}

static inline struct ops_recording *stop_run(struct run *run)
{
	struct ops_recording *recording = NULL;
	struct ops_error error;

	if (ops_session_stop(run->session, &recording, &error) || ops_device_stop(run->devices, recording, &error))
		fail_msg("%s", error.text);
	return recording;
}

static inline struct ops_trace *checked_trace(struct ops_recording *recording)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_from_recording(recording, &trace, &error) || ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

/* Opens an operator as the torch bridge records it. */
static inline struct ops_slot *open_operator(const char *name)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	*slot = (struct ops_slot){.sequence_nr = -1, .kind = OPS_SLOT_OP};
	slot->name = collector->intern(thread, name, strlen(name), NULL, 0);
	slot->start_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	return slot;
}

static inline void close_operator(struct ops_slot *slot)
{
	ops_range_end((struct ops_range){slot});
}

/* Returns the only row of that kind and name. */
static inline uint32_t find_row(const struct ops_trace *trace, enum ops_event_kind kind, const char *name)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t found = OPS_NONE;

	for (uint32_t row = 0; row < events->count; row++) {
		struct ops_string text = ops_trace_string(trace, events->name[row]);

		if (events->kind[row] == kind && text.size == strlen(name) && memcmp(text.bytes, name, text.size) == 0) {
			assert_int_equal(found, OPS_NONE);
			found = row;
		}
	}
	if (found == OPS_NONE)
		fail_msg("no row '%s'", name);
	return found;
}

static inline size_t count_kind(const struct ops_trace *trace, enum ops_event_kind kind)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count = 0;

	for (uint32_t row = 0; row < events->count; row++)
		count += events->kind[row] == kind;
	return count;
}

/* Returns the row of the call that started the work according to a link; OPS_NONE if there is none. */
static inline uint32_t launch_of(const struct ops_trace *trace, uint32_t work)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);
	uint32_t from = OPS_NONE;

	for (size_t i = 0; i < count; i++)
		if (links[i].to == work && links[i].kind == OPS_LINK_LAUNCH)
			from = links[i].from;
	return from;
}

static inline void assert_arg(const struct ops_trace *trace, uint32_t row, const char *key, const char *json)
{
	struct ops_string value;

	if (!ops_event_arg(trace, row, key, &value))
		fail_msg("no argument '%s'", key);
	assert_int_equal(value.size, strlen(json));
	assert_memory_equal(value.bytes, json, value.size);
}

#endif
