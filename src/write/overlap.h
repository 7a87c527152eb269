/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds spans that cannot be drawn as nested boxes. A viewer shows a thread as nested boxes in a row; a span that begins inside
 * another and ends after it does not fit, and Perfetto drops it. Asynchronous ranges can do so, and ranges that a program closes
 * in the wrong order.
 *
 *     thread   ├──── outer ────────────┤
 *                ├── load ──┤                  ← marked if it is asynchronous, or a frame and `inner` is not
 *                      ├── inner ──┤           ← marked if `load` is not
 */
#ifndef OPS_WRITE_OVERLAP_H
#define OPS_WRITE_OVERLAP_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* Returns one bit (base/bits.h) for each row of the trace, set for the spans that must be removed so that the others nest.
 * `lanes` has for each track the row of the viewer, of `lane_count`, on which it is shown. Returns NULL if out of memory; freed
 * with ops_free. Linear. */
uint8_t *ops_overlap_marks(const struct ops_trace *trace, const uint32_t *lanes, size_t lane_count);

#endif
