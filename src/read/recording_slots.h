/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal declarations of the reader of recordings: recording.c merges the threads' slots into one order, recording_slots.c
 * converts each slot.
 */
#ifndef OPS_READ_RECORDING_SLOTS_H
#define OPS_READ_RECORDING_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "read/recording_calls.h"
#include "read/recording_coroutines.h"
#include "read/recording_devices.h"
#include "read/recording_modules.h"
#include "read/recording_samples.h"
#include "read/recording_steps.h"
#include "record/recording.h"
#include "trace/builder.h"

/* A thread's interned name, as strings of the trace. */
struct recording_name {
	uint32_t first;
	uint32_t second; /* overload name or argument text; OPS_NONE: none */
	bool wrapper;    /* an event of autograd's engine around a backward node */
};

struct recording_lane {
	struct ops_share *share;
	struct recording_name *names; /* by ops_slot.name - 1 */
	const struct ops_slot *slot; /* the head; in share->blocks */
	uint32_t left;          /* number of slots from the head to the end of its block */
	uint32_t track;
	int64_t start_ns; /* of the head */
	int64_t end_ns;
	struct ops_open_calls calls; /* Python calls */
	int64_t operator_end_ns;     /* of the outermost operator whose call stack was read last */
	struct recording_ranges ranges; /* ranges that may enclose device calls */
	struct recording_turn turn;
	struct recording_borders borders;
	bool unfinished;
	bool cut; /* the head was already open when the window began */
	uint32_t collective; /* description of the head if it is a collective, set when it is read: string id or OPS_NONE */
	bool named_wrapper; /* the head's name is that of a wrapper; set when it is read */
	uint32_t wrapper; /* row of an evaluate_function that the thread's next operator may complete, or OPS_NONE */
};

struct recording_reader {
	struct ops_recording *recording;
	struct ops_builder *builder;
	struct ops_clock_map clock;
	int64_t stop_ns;
	int64_t window_ns; /* start of the window; INT64_MIN: that of the session */
	struct recording_lane *lanes; /* by track; threads with torch's numbers come first */
	size_t lane_count;
	uint32_t *by_number; /* indexes of lanes in order of share->number */
	struct ops_called_functions functions;
	struct recording_lane **heap;
	size_t heap_count;
	struct ops_called_modules modules;
	struct recording_devices devices;
	struct recording_coroutines coroutines;
	struct recording_samples samples;
	uint32_t number_max; /* the highest of torch's thread numbers */
	uint64_t lost;
	struct ops_buffer text; /* scratch */
	bool failed; /* out of memory: the head of the heap was not read */
	bool merged; /* all slots have been read: everything in the builder after `mark` was added by devices */
	bool taken;  /* everything is in the builder */
	struct ops_builder_mark mark;
	struct ops_trace *trace; /* complete except for its metadata; NULL before */
};

static inline bool recording_out_of_memory(const struct recording_reader *reader)
{
	return reader->failed || reader->text.failed || ops_builder_failed(reader->builder);
}

/* Returns the track of a thread by its number in the process; OPS_NONE if it recorded nothing. */
uint32_t recording_track_of(const struct recording_reader *reader, uint32_t number);

/* Adds the lane's head to the builder, or counts it as lost. If out of memory, it can be read again. */
void recording_read_slot(struct recording_reader *reader, struct recording_lane *lane);

#endif
