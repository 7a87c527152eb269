/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the reader of recordings: recording.c merges the threads' slots into one order, recording_slots.c converts
 * each slot.
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
#include "read/recording_steps.h"
#include "record/recording.h"
#include "trace/builder.h"

/* A thread's interned name, as strings of the trace. */
struct recording_name {
	uint32_t first;
	uint32_t second; /* overload name or argument text, OPS_NONE when there is none */
	bool wrapper;    /* what the engine runs around a backward node */
};

struct recording_lane {
	struct ops_share *share;
	struct recording_name *names; /* by ops_slot.name - 1 */
	const struct ops_slot *slot; /* the head; lies in share->blocks */
	uint32_t left;          /* slots from the head to the end of its block */
	uint32_t track;
	int64_t start_ns; /* of the head */
	int64_t end_ns;
	struct ops_open_calls calls; /* of Python */
	struct recording_ranges ranges; /* that calls of devices may lie in */
	struct recording_turn turn;
	struct recording_borders borders;
	bool unfinished;
	bool cut; /* the head was open already when the window began */
	uint32_t collective; /* description of the head if it is a collective, set when it is read: string id or OPS_NONE */
	bool named_wrapper; /* the head's name is a wrapper's; set when it is taken */
	uint32_t wrapper; /* row of an evaluate_function that the thread's next operator may complete, or OPS_NONE */
};

struct recording_reader {
	struct ops_recording *recording;
	struct ops_builder *builder;
	struct ops_clock_map clock;
	int64_t stop_ns;
	int64_t window_ns; /* when the window begins; INT64_MIN: with the session */
	struct recording_lane *lanes; /* by track; those with torch's numbers first */
	size_t lane_count;
	uint32_t *by_number; /* lane indexes in order of share->number */
	struct ops_called_functions functions;
	struct recording_lane **heap;
	size_t heap_count;
	struct ops_called_modules modules;
	struct recording_devices devices;
	struct recording_coroutines coroutines;
	uint32_t number_max; /* the highest of torch's thread numbers seen anywhere */
	uint64_t lost;
	struct ops_buffer text; /* scratch */
	bool failed; /* memory is out: the head of the heap was not taken */
	bool merged; /* all slots are taken: what is in the builder beyond `mark` was added by devices */
	bool taken;  /* all is in the builder */
	struct ops_builder_mark mark;
	struct ops_trace *trace; /* complete but for its metadata; NULL before */
};

static inline bool recording_out_of_memory(const struct recording_reader *reader)
{
	return reader->failed || reader->text.failed || ops_builder_failed(reader->builder);
}

/* The track of a thread by its number in the process, OPS_NONE when it recorded nothing. */
uint32_t recording_track_of(const struct recording_reader *reader, uint32_t number);

/* Hands the lane's head to the builder, or counts it as lost. When memory is out, it can be taken again. */
void recording_read_slot(struct recording_reader *reader, struct recording_lane *lane);

#endif
