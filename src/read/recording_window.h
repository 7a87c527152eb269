/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of a recording: events that ended before the window are left out, those that were open at its start begin there,
 * and allocations that existed then come first, so that sums of memory are right from the beginning.
 */
#ifndef OPS_READ_RECORDING_WINDOW_H
#define OPS_READ_RECORDING_WINDOW_H

#include "read/recording_slots.h"

/* Returns the start of the trace. Allocations from before the window are placed a moment before all events, so that they are in
 * none. */
int64_t recording_window_start_ns(const struct recording_reader *reader);
/* Clips the head of the lane at the start of the window. Returns false if it is not in the window. */
bool recording_window_clip(const struct recording_reader *reader, struct recording_lane *lane);
/* Adds the allocations that existed at the start of the window to the builder. The lanes must be open. Returns false if out of
 * memory. */
bool recording_window_add_baseline(struct recording_reader *reader);

#endif
