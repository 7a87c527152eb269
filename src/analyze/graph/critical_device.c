/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path's edges to, on and from devices, in order of time. Work starts once it has been launched, its
 * stream has finished the previous work, and the events that it waits for are complete. A synchronising call ends when
 * the work that it waits for ends.
 */
#include <stdlib.h>

#include "analyze/graph/critical_path.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/search.h"
#include "derive/arguments.h"

/* A longer gap on a stream has other causes than the previous work. */
#define KERNEL_GAP_NS INT64_C(1500000)

/* A dependency of device work that must complete before the work starts. */
struct wait {
	uint32_t source; /* event that must complete */
	uint32_t next;   /* next wait of the same work */
};

struct work_item {
	int64_t ts_ns; /* start; end for synchronisation */
	uint32_t row;
};

struct device_walk {
	struct critical_path *path;
	OPS_ARRAY(struct wait) waits;
	uint32_t *waits_of; /* by event */
	struct critical_launch *by_thread; /* launches by stream, calling thread and time */
	uint32_t *waited;   /* by stream: the last work that a synchronisation of the entire device waited for */
};

/* --- lookup ---------------------------------------------------------------------------------------------------------- */

OPS_ORDER(critical_device_compare_items, struct work_item, OPS_UP(ts_ns) OPS_UP(row))

OPS_ORDER(compare_by_thread, struct critical_launch, OPS_UP(stream) OPS_UP(track) OPS_UP(ts_ns) OPS_UP(row))

/* Returns the first launch of a thread onto a stream after a time. */
static const struct critical_launch *launch_after(const struct device_walk *walk, uint32_t stream, uint32_t track,
                                                  int64_t ts_ns)
{
	const struct critical_launch key = {.stream = stream, .track = track, .ts_ns = ts_ns, .row = OPS_NONE};
	size_t low = 0;

	OPS_LOWER_BOUND(low, walk->path->launches.count, mid, compare_by_thread(&walk->by_thread[mid], &key) <= 0);
	if (low == walk->path->launches.count || walk->by_thread[low].stream != stream || walk->by_thread[low].track != track)
		return NULL;
	return &walk->by_thread[low];
}

/* Returns the last launch onto a stream before a time. */
static const struct critical_launch *launch_before(const struct critical_path *path, uint32_t stream, int64_t ts_ns)
{
	const struct critical_stream *on = &path->streams.items[stream];
	size_t low = on->first;

	OPS_LOWER_BOUND(low, on->first + on->count, mid, path->launches.items[mid].ts_ns < ts_ns);
	return low == on->first ? NULL : &path->launches.items[low - 1];
}

/* --- synchronisation ------------------------------------------------------------------------------------------------- */

static int64_t critical_device_of(const struct critical_path *path, const struct event_row *row)
{
	size_t count;

	return ops_trace_tracks(path->table->trace, &count)[row->track].pid;
}

/* Returns the work before the recorded event that a row waits for, as an event of the graph; OPS_NONE if unknown. */
static uint32_t source_of(const struct critical_path *path, const struct event_row *row)
{
	const struct event_table *table = path->table;
	const struct ops_trace *trace = path->table->trace;
	int64_t correlation = ops_argument_integer(trace, row->source, "wait_on_cuda_event_record_corr_id", -1);
	uint32_t record = correlation >= 0 ? ops_map_find(&path->records, (uint64_t)correlation) : OPS_NONE;
	uint32_t stream = critical_find_stream(path, critical_device_of(path, row),
	                                       ops_argument_integer(trace, row->source, "wait_on_stream", -1));
	const struct critical_launch *launch;

	if (record == OPS_NONE || stream == OPS_NONE)
		return OPS_NONE;
	launch = launch_before(path, stream, table->rows[record].ts_ns);
	return launch ? path->event_of[launch->work] : OPS_NONE;
}

static bool critical_device_add_sync(struct critical_path *path, uint32_t source, uint32_t to)
{
	return critical_add_edge(path, 2 * source + 1, to, CRITICAL_SYNC, 0, OPS_NONE);
}

/* Work on the same stream runs in order anyway. */
static bool critical_device_add_wait(struct device_walk *walk, uint32_t event, uint32_t source)
{
	const struct critical_path *path = walk->path;
	struct wait *wait;

	if (path->stream_of[path->events.items[source]] == path->stream_of[path->events.items[event]])
		return true;
	wait = OPS_ARRAY_PUSH(&walk->waits);
	if (!wait)
		return false;
	*wait = (struct wait){source, walk->waits_of[event]};
	walk->waits_of[event] = (uint32_t)walk->waits.count - 1;
	return true;
}

/* The next work that the thread launches onto the stream waits for the source. */
static bool stream_waits(struct device_walk *walk, const struct event_row *row, uint32_t source)
{
	struct critical_path *path = walk->path;
	const struct event_row *call = &path->table->rows[row->partner];
	uint32_t stream = path->stream_of[row - path->table->rows];
	const struct critical_launch *launch = launch_after(walk, stream, call->track, call->ts_ns);
	uint32_t event = launch ? path->event_of[launch->work] : OPS_NONE;

	return event == OPS_NONE || critical_device_add_wait(walk, event, source);
}

static uint32_t event_at(const struct critical_path *path, uint32_t trace_row)
{
	uint32_t row = path->row_of[trace_row];

	return row == OPS_NONE ? OPS_NONE : path->event_of[row];
}

/* Adds the dependencies within launches of CUDA graphs, except where source and dependent overlap, as programmatic
 * launches allow. */
static bool graphs_wait(struct device_walk *walk)
{
	const struct critical_path *path = walk->path;
	size_t count;
	const struct ops_link *links = ops_trace_links(path->table->trace, &count);
	bool done = true;

	for (size_t i = 0; path->row_of && done && i < count; i++) {
		uint32_t source = event_at(path, links[i].from), event = event_at(path, links[i].to);

		if (links[i].kind == OPS_LINK_DEPENDENCY && source != OPS_NONE && event != OPS_NONE &&
		    critical_node_ns(path, 2 * source + 1) <= critical_node_ns(path, 2 * event))
			done = critical_device_add_wait(walk, event, source);
	}
	return done;
}

/* With more streams than this, a synchronisation adds no edge for streams without new work since the last one.
 * Otherwise the graph would grow with the product of streams and calls. */
#define STREAMS_MAX 256u

/* A call waits for all streams of its device, but not for those of other devices. */
static bool device_waits(struct device_walk *walk, uint32_t call, int64_t device)
{
	struct critical_path *path = walk->path;
	bool done = true;

	for (uint32_t s = 0; done && s < path->streams.count; s++) {
		uint32_t last = path->streams.items[s].last;

		if (last == OPS_NONE || path->streams.items[s].device != device || (walk->waited[s] == last && path->streams.count > STREAMS_MAX))
			continue;
		walk->waited[s] = last;
		done = critical_device_add_sync(path, last, 2 * call + 1);
	}
	return done;
}

static bool sync_edges(struct device_walk *walk, uint32_t at)
{
	struct critical_path *path = walk->path;
	const struct event_row *row = &path->table->rows[at];
	uint32_t call = row->partner == OPS_NONE ? OPS_NONE : path->event_of[row->partner];
	uint32_t stream = path->stream_of[at], source;

	if (row->partner == OPS_NONE)
		return true;
	if (critical_name_is(path, row, CRITICAL_NAME_CONTEXT_SYNC))
		return call == OPS_NONE || device_waits(walk, call, critical_device_of(path, row));
	if (critical_name_is(path, row, CRITICAL_NAME_STREAM_SYNC)) {
		uint32_t last = stream == OPS_NONE ? OPS_NONE : path->streams.items[stream].last;

		return call == OPS_NONE || last == OPS_NONE || critical_device_add_sync(path, last, 2 * call + 1);
	}
	if (!critical_name_is(path, row, CRITICAL_NAME_WAIT | CRITICAL_NAME_EVENT_SYNC))
		return true;
	source = source_of(path, row);
	if (source == OPS_NONE)
		return true;
	if (critical_name_is(path, row, CRITICAL_NAME_WAIT))
		return stream == OPS_NONE || stream_waits(walk, row, source);
	return call == OPS_NONE || critical_device_add_sync(path, source, 2 * call + 1);
}

/* --- work ------------------------------------------------------------------------------------------------------------ */

/* Adds edges from everything that the work waits for. Sets `*ret_end_ns` to the end of the last of these. */
static bool wait_edges(struct device_walk *walk, uint32_t event, int64_t *ret_end_ns)
{
	struct critical_path *path = walk->path;
	bool done = true;

	*ret_end_ns = INT64_MIN;
	for (uint32_t w = walk->waits_of[event]; done && w != OPS_NONE; w = walk->waits.items[w].next) {
		uint32_t source = walk->waits.items[w].source;
		int64_t end_ns = critical_node_ns(path, 2 * source + 1);

		if (source == event)
			continue;
		done = critical_device_add_sync(path, source, 2 * event);
		if (end_ns > *ret_end_ns)
			*ret_end_ns = end_ns;
	}
	return done;
}

static bool work_edges(struct device_walk *walk, uint32_t at)
{
	struct critical_path *path = walk->path;
	const struct event_row *row = &path->table->rows[at];
	uint32_t event = path->event_of[at], start = 2 * event;
	uint32_t launch = row->partner == OPS_NONE ? OPS_NONE : path->event_of[row->partner];
	struct critical_stream *stream = &path->streams.items[path->stream_of[at]];
	int64_t source_ns = INT64_MIN, launch_ns = launch == OPS_NONE ? 0 : critical_row(path, launch)->ts_ns;
	int64_t last_ns = stream->last == OPS_NONE ? INT64_MIN : critical_node_ns(path, 2 * stream->last + 1);
	bool done = critical_add_edge(path, start, start + 1, CRITICAL_OPERATOR, row->dur_ns, event) &&
	            wait_edges(walk, event, &source_ns);
	bool delayed = launch != OPS_NONE && path->queue_at_launch[at] == 1 && path->queue_at_start[at] == 0 &&
	               (stream->last == OPS_NONE || last_ns < launch_ns) && source_ns < launch_ns;

	if (done && delayed)
		done = critical_add_edge(path, 2 * launch, start, CRITICAL_LAUNCH, row->ts_ns - launch_ns, OPS_NONE);
	else if (done && stream->last != OPS_NONE && row->ts_ns - last_ns < KERNEL_GAP_NS && source_ns < last_ns)
		done = critical_add_edge(path, 2 * stream->last + 1, start, CRITICAL_KERNEL, row->ts_ns - last_ns, stream->last);
	if (done && !delayed && launch != OPS_NONE && path->options->zero_weight_launches)
		done = critical_add_edge(path, 2 * launch, start, CRITICAL_LAUNCH, 0, OPS_NONE);
	stream->last = event;
	return done;
}

static bool walk_work(struct device_walk *walk)
{
	struct critical_path *path = walk->path;
	const struct event_row *rows = path->table->rows;
	struct work_item *items = ops_realloc_array(NULL, path->clipped.count + 1, sizeof(*items));
	size_t count = 0;
	bool done = items != NULL;

	for (size_t i = 0; done && i < path->clipped.count; i++) {
		uint32_t at = path->clipped.items[i];
		const struct event_row *row = &rows[at];
		bool syncs = row->kind == OPS_EVENT_SYNC;

		/* Work that the step filter removed is on no stream. */
		if (row->correlation >= 0 && (path->stream_of[at] != OPS_NONE || syncs))
			items[count++] = (struct work_item){syncs ? event_end(row) : row->ts_ns, at};
	}
	if (count)
		qsort(items, count, sizeof(*items), critical_device_compare_items);
	for (size_t i = 0; done && i < count; i++)
		done = rows[items[i].row].kind == OPS_EVENT_SYNC ? sync_edges(walk, items[i].row)
		                                                : work_edges(walk, items[i].row);
	ops_free(items);
	return done;
}

bool critical_device_edges(struct critical_path *path)
{
	struct device_walk walk = {.path = path};
	size_t launches = path->launches.count;
	bool done;

	walk.waits_of = ops_alloc_none(path->events.count + 1);
	walk.waited = ops_alloc_none(path->streams.count + 1);
	walk.by_thread = ops_realloc_array(NULL, launches + 1, sizeof(*walk.by_thread));
	done = walk.waits_of && walk.waited && walk.by_thread;
	if (done) {
		for (size_t i = 0; i < launches; i++)
			walk.by_thread[i] = path->launches.items[i];
		qsort(walk.by_thread, launches, sizeof(*walk.by_thread), compare_by_thread);
		done = graphs_wait(&walk) && walk_work(&walk);
	}
	ops_free(walk.waits_of);
	ops_free(walk.waited);
	ops_free(walk.by_thread);
	OPS_ARRAY_RELEASE(&walk.waits);
	return done;
}
