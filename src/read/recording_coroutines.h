/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges that were open while other code ran on their thread. Coroutines take turns on a thread, so what runs while a range is
 * open need not be part of it:
 *
 *     thread   ├─ a (task A) ─────────────────┤
 *                 ├─ b (task B) ─┤                  ← runs while A waits
 *
 * Such a range becomes an asynchronous event on a track of its coroutine, so that the remaining events of the thread nest. The
 * same is done for ranges that a program closes in the wrong order: of two that overlap in part, the one that began later is
 * moved.
 */
#ifndef OPS_READ_RECORDING_COROUTINES_H
#define OPS_READ_RECORDING_COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/intern.h"
#include "read/recording_ranges.h"
#include "trace/builder.h"

/* An operator or range that has not ended. */
struct recording_open {
	int64_t start_ns;
	int64_t end_ns;
	uint64_t greenlet; /* the greenlet in which it began */
	uint64_t context;
	uint32_t row;
	uint32_t coroutine;
	bool can_move; /* it is a range, or an operator that is held like one, but not a step */
	bool is_moved;
};

/* What runs on a thread. */
struct recording_turn {
	int64_t tid;
	uint64_t greenlet;
	uint64_t context;
	uint32_t coroutine; /* OPS_NONE: the thread itself */
	OPS_ARRAY(struct recording_open) open; /* in order of their start */
};

/* A range that is moved to a separate track. */
struct recording_moved {
	int64_t start_ns;
	int64_t end_ns;
	int64_t tid;        /* of its thread */
	uint32_t row;
	uint32_t coroutine; /* OPS_NONE: none */
};

/* A coroutine, or the coroutines of a thread that share tracks. */
struct recording_coroutine {
	int64_t tid;      /* of its thread */
	enum { COROUTINE_OF_PROGRAM, COROUTINE_NONE, COROUTINE_FURTHER } kind;
	uint32_t name;    /* string id of its name in the recording; 0: none */
	uint32_t first_track; /* first track for its ranges: index in `tracks` + 1; 0: none */
	bool is_sharing;  /* first_track is the shared track that it used last, which others may have taken since */
	OPS_ARRAY(uint32_t) shared; /* of COROUTINE_FURTHER: the tracks as a heap, that of the smallest free_ns first */
};

struct recording_coroutine_track {
	uint32_t track;
	uint32_t next;  /* index + 1 */
	uint32_t owner; /* the coroutine whose ranges are on it now */
	int64_t free_ns; /* a shared track is not free before this time */
	OPS_ARRAY(int64_t) open_ends_ns; /* ends of the ranges on it, outermost first */
};

struct recording_coroutines {
	struct ops_builder *builder;
	struct ops_intern keys; /* thread, greenlet and context: */
	OPS_ARRAY(uint32_t) latest; /* by id in `keys`: the latest coroutine with them */
	OPS_ARRAY(struct recording_coroutine) items;
	OPS_ARRAY(struct recording_moved) moved;
	OPS_ARRAY(struct recording_coroutine_track) tracks;
	size_t own_track_count; /* tracks that are not shared */
};

void recording_coroutines_release(struct recording_coroutines *coroutines);

/* From `time_ns` on another coroutine runs on the thread. Returns false if out of memory; then it can be called again. */
bool recording_coroutines_switch(struct recording_coroutines *coroutines, struct recording_turn *turn,
                                 const struct recording_running *running, int64_t time_ns);

/* Adds an operator or range that was added as `row`, in order of their start. The function before it must be called first to
 * reserve room; it returns false if out of memory. */
bool recording_coroutines_reserve(struct recording_coroutines *coroutines, struct recording_turn *turn);
void recording_coroutines_open(struct recording_coroutines *coroutines, struct recording_turn *turn,
                               const struct ops_new_event *event, uint32_t row, bool is_held);

/* Called at the end: moves the ranges. Their tracks get the numbers after `*number`. Returns false if out of memory; then it can
 * be called again, with the builder in its earlier state. */
bool recording_coroutines_finish(struct recording_coroutines *coroutines, int64_t pid, uint32_t *number);

#endif
