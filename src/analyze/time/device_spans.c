/* SPDX-License-Identifier: Apache-2.0
 *
 * Busy time of devices, by class of work.
 */
#include "analyze/time/device_time.h"

bool device_spans(const struct event_table *table, unsigned classes, struct ops_intervals *ret_spans)
{
	*ret_spans = (struct ops_intervals){0};
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->on_device && (classes >> row->class_ & 1) &&
		    !ops_intervals_push(ret_spans, row->ts_ns, event_end(row)))
			return false;
	}
	ops_intervals_sort(ret_spans);
	return true;
}
