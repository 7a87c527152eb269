/* SPDX-License-Identifier: Apache-2.0
 *
 * Which spans cannot be drawn as nested boxes. A viewer's row shows a thread as boxes within boxes; a span that begins
 * inside another and ends after it has no place there, and Perfetto drops it. Asynchronous ranges do this, and ranges
 * that a program closes in another order than it should.
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

/* One bit (base/bits.h) for each row of the trace, set for spans that were marked so that the others nest. `lanes` says for each track
 * on which of `lane_count` rows of the viewer it is shown. NULL when memory is out; freed with ops_free. Linear. */
uint8_t *ops_overlap_marks(const struct ops_trace *trace, const uint32_t *lanes, size_t lane_count);

#endif
