/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of a recording: what ended before the window is left out, what was open when it began is cut there, and
 * allocations that lived then come first, so that sums of memory are right from the beginning.
 */
#ifndef OPS_READ_RECORDING_WINDOW_H
#define OPS_READ_RECORDING_WINDOW_H

#include "read/recording_slots.h"

/* When the trace starts. Allocations from before the window are a moment before all events, so that they are in none. */
int64_t recording_window_start_ns(const struct recording_reader *reader);
/* Cuts the head of the lane off at the start of the window. False: it has no part in it. */
bool recording_window_clip(const struct recording_reader *reader, struct recording_lane *lane);
/* Gives the builder the allocations that lived when the window began. The lanes are open. False when memory is out. */
bool recording_window_add_baseline(struct recording_reader *reader);

#endif
