/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions of events and records in a merged trace after the builder has sorted them.
 */
#ifndef OPS_TRACE_MERGE_PLACES_H
#define OPS_TRACE_MERGE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/merge.h>

/* Replaces refs that are numbers in order of adding by refs after sorting. The counts are those of everything that was added.
 * Returns false if out of memory. */
bool ops_merge_move_refs(const struct ops_trace_part *parts, size_t part_count, size_t event_count, size_t memory_count,
                         uint32_t *refs, size_t ref_count);

#endif
