/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a trace grouped by track, each group in the order of the rows, which is that of their starts.
 */
#ifndef OPS_TRACE_TRACK_ROWS_H
#define OPS_TRACE_TRACK_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

struct ops_track_rows {
	uint32_t *rows;
	size_t *first; /* by track: index of its first row; the entry after the last track is the number of rows */
};

/* Groups the rows. Returns false if out of memory; release `*rows` in any case. */
bool ops_track_rows_init(struct ops_track_rows *rows, const struct ops_trace *trace);
void ops_track_rows_release(struct ops_track_rows *rows);

#endif
