/* SPDX-License-Identifier: Apache-2.0
 *
 * See track_rows.h.
 */
#include "trace/track_rows.h"

#include "base/alloc.h"

bool ops_track_rows_init(struct ops_track_rows *rows, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t tracks;

	ops_trace_tracks(trace, &tracks);
	rows->rows = ops_realloc_array(NULL, events->count + 1, sizeof(*rows->rows));
	rows->first = ops_alloc_zeroed(tracks + 2, sizeof(*rows->first));
	if (!rows->rows || !rows->first)
		return false;
	for (size_t row = 0; row < events->count; row++)
		rows->first[events->track[row] + 2]++;
	for (size_t i = 2; i < tracks + 2; i++)
		rows->first[i] += rows->first[i - 1];
	for (uint32_t row = 0; row < events->count; row++)
		rows->rows[rows->first[events->track[row] + 1]++] = row;
	return true;
}

void ops_track_rows_release(struct ops_track_rows *rows)
{
	ops_free(rows->rows);
	ops_free(rows->first);
}
