/* SPDX-License-Identifier: Apache-2.0
 *
 * Begin and end of steps that a recorder detected at their end. An optimizer may step, and a batch be fetched, deep in the calls
 * of a library:
 *
 *     step 0 ──────────────────┐┌─────────────── step 1 ────────────┐┌── as detected
 *     advance ─────────────────┼─────┐ advance ─────────────────────┼─────┐
 *      fetch  forward  optimizer.step│  fetch  forward  optimizer.step
 *
 * Such a step would overlap the calls around its ends in part, so its ends are moved to where the outermost of these calls begins
 * or ends, and calls and steps nest. The first step, which may begin where an optimizer is made, begins no earlier than the call
 * that contains the loop.
 */
#ifndef OPS_READ_RECORDING_STEPS_H
#define OPS_READ_RECORDING_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "record/recording.h"

/* A moment at which a step begins or ends, and the outermost call around it that contains no other border. */
struct recording_border {
	uint64_t ticks;
	uint64_t call_start_ticks, call_end_ticks; /* 0: there is none */
	uint32_t call_name;
	uint8_t call_kind;
};

/* The borders of a thread. Zero-initialized; released with OPS_ARRAY_RELEASE(&borders->list). */
struct recording_borders {
	OPS_ARRAY(struct recording_border) list; /* in order of time */
	uint64_t first_end_ticks; /* end of the outermost call around the first step, which ends in the second one; 0: there is
	                           * none */
	uint64_t loop_ticks;      /* start of the innermost call that begins in the first step and contains the second; 0: there is none */
	bool begins; /* borders move to the begin of calls, because most are near it, as a fetch of a batch is to the call that
	              * makes it */
};

/* Finds the borders of a thread's steps, before any of its blocks is released. Returns false if out of memory. */
bool recording_steps_find(struct recording_borders *borders, const struct ops_share *share);
/* Returns where a border is moved; `ticks` itself for other moments. */
uint64_t recording_steps_move(const struct recording_borders *borders, uint64_t ticks);

#endif
