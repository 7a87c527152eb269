/* SPDX-License-Identifier: Apache-2.0
 *
 * The positions of events and records in a merged trace: the builder sorts what is added to it.
 */
#ifndef OPS_TRACE_MERGE_PLACES_H
#define OPS_TRACE_MERGE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/merge.h>

/* Turns places in order of adding, as refs, into those after sorting. The counts are of all that was added. False when
 * memory is out. */
bool ops_merge_move_refs(const struct ops_trace_part *parts, size_t part_count, size_t event_count, size_t memory_count,
                         uint32_t *refs, size_t ref_count);

#endif
