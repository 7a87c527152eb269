/* SPDX-License-Identifier: Apache-2.0
 *
 * How much work waits on each stream: a launch adds to its queue when it is called, and a kernel leaves the queue when
 * it begins.
 */
#include "analyze/launch/launches.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "derive/calls.h"

OPS_ORDER(compare_queues, struct queue, OPS_UP(stream) OPS_UP(device))

static struct queue queue_of(const struct event_table *table, uint32_t row)
{
	size_t count;

	return (struct queue){ops_trace_tracks(table->trace, &count)[table->rows[row].track].pid, table->rows[row].stream};
}

/* Adds a point to the queue that the device work belongs to. */
static bool queues_push(struct queues *queues, const struct event_table *table, struct ops_intern *seen, uint32_t row,
                        uint32_t work, int change)
{
	struct queue queue = queue_of(table, work);
	uint32_t id = ops_intern_add(seen, &queue, sizeof(queue));

	return id != OPS_INTERN_NONE &&
	       OPS_ARRAY_APPEND(&queues->points, (struct queue_point){table->rows[row].ts_ns, row, id, change}) &&
	       (id < queues->queues.count || OPS_ARRAY_APPEND(&queues->queues, queue));
}

/* Collects all launches, then all work that they launched. */
static bool queues_collect(struct queues *queues, const struct event_table *table, struct ops_intern *seen)
{
	const uint8_t *calls = ops_calls_by_name(table->trace);
	bool done = calls;

	for (size_t i = 0; done && i < table->kept_count; i++) {
		uint32_t call = table->kept[i];

		for (uint32_t at = table->launched.first[call]; done && at < table->launched.first[call + 1]; at++)
			if ((calls[table->rows[call].name] & OPS_CALL_STARTS_WORK) && table->rows[table->launched.order[at]].is_kept)
				done = queues_push(queues, table, seen, call, table->launched.order[at], 1);
	}
	for (size_t i = 0; done && i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->on_device && row->partner != OPS_NONE && table->rows[row->partner].is_kept &&
		    (calls[table->rows[row->partner].name] & OPS_CALL_STARTS_WORK))
			done = queues_push(queues, table, seen, table->kept[i], table->kept[i], -1);
	}
	return done;
}

static bool queues_before(const void *context, uint32_t a, uint32_t b)
{
	const struct queue_point *points = context;

	return points[a].ts_ns < points[b].ts_ns;
}

/* Numbers queues by stream and device, orders the points by time, and computes lengths. */
static bool queues_sum_up(struct queues *queues)
{
	size_t count = queues->queues.count;
	struct queue *sorted = ops_alloc_zeroed(count + 1, sizeof(*sorted));
	int64_t *lengths = ops_alloc_zeroed(count + 1, sizeof(*lengths));
	bool done = sorted && lengths && OPS_ARRAY_SORT_STABLE(&queues->points, queues_before);

	if (done && count) {
		memcpy(sorted, queues->queues.items, count * sizeof(*sorted));
		qsort(sorted, count, sizeof(*sorted), compare_queues);
	}
	for (size_t i = 0; done && i < queues->points.count; i++) {
		struct queue_point *point = &queues->points.items[i];
		const struct queue *found =
			bsearch(&queues->queues.items[point->queue], sorted, count, sizeof(*sorted), compare_queues);

		point->queue = (uint32_t)(found - sorted);
		point->length = lengths[point->queue] += point->length;
	}
	if (done && count)
		memcpy(queues->queues.items, sorted, count * sizeof(*sorted));
	ops_free(sorted);
	ops_free(lengths);
	return done;
}

bool queues_build(struct queues *queues, const struct event_table *table)
{
	struct ops_intern seen = {0};
	bool done;

	*queues = (struct queues){{0}, {0}};
	done = queues_collect(queues, table, &seen) && queues_sum_up(queues);
	ops_intern_release(&seen);
	return done;
}

void queues_release(struct queues *queues)
{
	OPS_ARRAY_RELEASE(&queues->points);
	OPS_ARRAY_RELEASE(&queues->queues);
}
