/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges that were open while something else ran on their thread. Coroutines take turns on a thread, so what runs while a range
 * is open need not be part of it:
 *
 *     thread   ├─ a (task A) ─────────────────┤
 *                 ├─ b (task B) ─┤                  ← runs while A waits
 *
 * Such a range becomes an asynchronous event on a track of its coroutine, and what remains on the thread nests. So do ranges that
 * a program closes in another order than it should: of two that cut each other the one that began later.
 */
#ifndef OPS_READ_RECORDING_COROUTINES_H
#define OPS_READ_RECORDING_COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/intern.h"
#include "read/slot_values.h"
#include "trace/builder.h"

/* An operator or range that has not ended. */
struct recording_open {
	int64_t start_ns;
	int64_t end_ns;
	uint64_t greenlet; /* in which it began */
	uint64_t context;
	uint32_t row;
	uint32_t coroutine;
	bool can_move; /* a range, or an operator that is held like one, but no step */
	bool is_moved;
};

/* What runs on a thread. */
struct recording_turn {
	int64_t tid;
	uint64_t greenlet;
	uint64_t context;
	uint32_t coroutine; /* OPS_NONE: that of the thread itself */
	OPS_ARRAY(struct recording_open) open; /* in order of their start */
};

/* A range that goes to a separate track. */
struct recording_moved {
	int64_t start_ns;
	int64_t end_ns;
	int64_t tid;        /* of its thread */
	uint32_t row;
	uint32_t coroutine; /* OPS_NONE: none */
};

struct recording_coroutine {
	int64_t tid;      /* of its thread */
	enum { COROUTINE_OF_PROGRAM, COROUTINE_NONE, COROUTINE_FURTHER } kind;
	uint32_t name;    /* string id of what the recording calls it, 0 nothing */
	uint32_t first_track; /* of those for its ranges: index in `tracks` + 1, 0 none */
};

struct recording_coroutine_track {
	uint32_t track;
	uint32_t next; /* index + 1 */
	OPS_ARRAY(int64_t) open_ends_ns; /* of the ranges on it, outermost first */
};

struct recording_coroutines {
	struct ops_builder *builder;
	struct ops_intern keys; /* by thread, greenlet and context: */
	OPS_ARRAY(uint32_t) latest; /* the coroutine that had them last */
	OPS_ARRAY(struct recording_coroutine) items;
	OPS_ARRAY(struct recording_moved) moved;
	OPS_ARRAY(struct recording_coroutine_track) tracks;
};

void recording_coroutines_release(struct recording_coroutines *coroutines);

/* Takes the payload of a slot of kind OPS_SLOT_CONTEXT: from `time_ns` on another coroutine runs on the thread. One that makes no
 * sense changes nothing. False when memory is out, and then it can be taken again. */
bool recording_coroutines_switch(struct recording_coroutines *coroutines, struct recording_turn *turn,
                                 struct ops_payload payload, int64_t time_ns);

/* Takes an operator or range that was added as `row`, in order of their start. There is room for it: the function before it, which
 * is called first, returns false when memory is out. */
bool recording_coroutines_reserve(struct recording_coroutines *coroutines, struct recording_turn *turn);
void recording_coroutines_open(struct recording_coroutines *coroutines, struct recording_turn *turn,
                               const struct ops_new_event *event, uint32_t row, bool is_held);

/* At the end moves the ranges. Their tracks get the numbers after `*number`. False when memory is out, and then it can be called
 * again, with the builder as it was before. */
bool recording_coroutines_finish(struct recording_coroutines *coroutines, int64_t pid, uint32_t *number);

#endif
