/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a trace: which launches go onto each, and the length of its queue at each launch and at each start.
 * Work is in the queue from its launch until it starts.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/graph/critical_path.h"
#include "base/alloc.h"
#include "base/order.h"

/* --- streams --------------------------------------------------------------------------------------------------------- */

static bool critical_queue_find_streams(struct critical_path *path)
{
	const struct event_table *table = path->table;
	size_t count;
	bool done;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &count);

	path->stream_of = ops_alloc_none(table->count + 1);
	done = path->stream_of != NULL;
	for (size_t i = 0; done && i < table->kept_count; i++) {
		uint32_t at = table->kept[i];
		const struct event_row *row = &table->rows[at];
		int64_t key[2] = {tracks[row->track].pid, row->stream};

		if (row->stream == -1)
			continue;
		path->stream_of[at] = ops_intern_add(&path->stream_keys, key, sizeof(key));
		done = path->stream_of[at] != OPS_INTERN_NONE;
		if (!done || path->stream_of[at] < path->streams.count)
			continue;
		done = OPS_ARRAY_APPEND(&path->streams, (struct critical_stream){.device = key[0], .stream = key[1],
		                                                                 .last = OPS_NONE});
	}
	return done;
}

uint32_t critical_find_stream(const struct critical_path *path, int64_t device, int64_t stream)
{
	int64_t key[2] = {device, stream};

	return ops_intern_find(&path->stream_keys, key, sizeof(key));
}

/* --- launches -------------------------------------------------------------------------------------------------------- */

OPS_ORDER(critical_queue_compare_launches, struct critical_launch, OPS_UP(stream) OPS_UP(ts_ns) OPS_UP(row) OPS_UP(work))

/* Adds one launch for each piece of work that a call launched. */
static bool critical_queue_add_launches(struct critical_path *path, uint32_t call)
{
	const struct event_table *table = path->table;
	bool done = true;

	for (uint32_t i = table->launched.first[call]; done && i < table->launched.first[call + 1]; i++) {
		uint32_t work = table->launched.order[i];

		if (table->rows[work].stream == -1 || path->stream_of[work] == OPS_NONE)
			continue;
		done = OPS_ARRAY_APPEND(&path->launches, (struct critical_launch){table->rows[call].ts_ns, call, work,
		                                                                  path->stream_of[work], table->rows[call].track});
	}
	return done;
}

static bool critical_queue_find_launches(struct critical_path *path)
{
	const struct event_table *table = path->table;
	bool done = true;

	for (size_t i = 0; done && i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->stream == -1 && row->partner != OPS_NONE && critical_name_is(path, row, CRITICAL_NAME_LAUNCH))
			done = critical_queue_add_launches(path, table->kept[i]);
		if (done && row->stream == -1 && row->correlation >= 0 && critical_name_is(path, row, CRITICAL_NAME_RECORD))
			done = ops_map_add(&path->records, (uint64_t)row->correlation, table->kept[i]);
	}
	OPS_ARRAY_SORT(&path->launches, critical_queue_compare_launches);
	for (size_t i = 0; i < path->launches.count; i++) {
		struct critical_stream *stream = &path->streams.items[path->launches.items[i].stream];

		if (stream->count++ == 0)
			stream->first = i;
	}
	return done;
}

/* --- queues ---------------------------------------------------------------------------------------------------------- */

struct change {
	int64_t ts_ns;
	uint32_t at; /* position in the order: launches first, then starts, each by row */
	uint32_t work;
	bool starts;
};

OPS_ORDER(compare_changes, struct change, OPS_UP(ts_ns) OPS_UP(starts) OPS_UP(at) OPS_UP(work))

/* When one call launches several pieces of work onto a stream, as the launch of a graph does, only the first to start
 * counts in the queue, because the others wait for each other. Launches of one call onto a stream are adjacent. */
static size_t list_changes(const struct critical_path *path, struct change *changes)
{
	const struct event_row *rows = path->table->rows;
	const struct critical_launch *launches = path->launches.items;
	size_t count = 0;

	for (size_t i = 0, next; i < path->launches.count; i = next) {
		uint32_t first = launches[i].work;

		for (next = i + 1; next < path->launches.count && launches[next].row == launches[i].row &&
		                   launches[next].stream == launches[i].stream; next++)
			if (rows[launches[next].work].ts_ns < rows[first].ts_ns)
				first = launches[next].work;
		changes[count++] = (struct change){launches[i].ts_ns, launches[i].row, first, false};
		changes[count++] = (struct change){rows[first].ts_ns, first, first, true};
	}
	return count;
}

static bool count_queues(struct critical_path *path)
{
	struct change *changes = ops_realloc_array(NULL, 2 * path->launches.count + 1, sizeof(*changes));
	size_t count;

	if (!changes)
		return false;
	count = list_changes(path, changes);
	qsort(changes, count, sizeof(*changes), compare_changes);
	for (size_t i = 0; i < count; i++) {
		struct critical_stream *stream = &path->streams.items[path->stream_of[changes[i].work]];
		int32_t *queue = changes[i].starts ? path->queue_at_start : path->queue_at_launch;

		stream->queued += changes[i].starts ? -1 : 1;
		queue[changes[i].work] = (int32_t)stream->queued;
	}
	ops_free(changes);
	return true;
}

bool critical_queue_find(struct critical_path *path)
{
	size_t count = path->table->count + 1;

	path->queue_at_launch = ops_realloc_array(NULL, count, sizeof(*path->queue_at_launch));
	path->queue_at_start = ops_realloc_array(NULL, count, sizeof(*path->queue_at_start));
	if (!path->queue_at_launch || !path->queue_at_start)
		return false;
	for (size_t i = 0; i < count; i++)
		path->queue_at_launch[i] = path->queue_at_start[i] = INT32_MIN;
	return critical_queue_find_streams(path) && critical_queue_find_launches(path) && count_queues(path);
}
