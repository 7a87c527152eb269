/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path's graph: which rows of the region take part, the properties of their names, and its edges.
 */
#include "analyze/graph/critical_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limit.h"
#include "base/text.h"
#include "derive/calls.h"

/* --- names ----------------------------------------------------------------------------------------------------------- */

/* Names that HTA treats in a special way: a copy and a query of an event count as waits for a device. */
static const struct {
	const char *name;
	uint16_t what;
} known_names[] = {
	{"cudaHostAlloc", CRITICAL_NAME_LOCK},
	{"cudaLaunchKernel", CRITICAL_NAME_LOCK},
	{"cudaMemcpyAsync", CRITICAL_NAME_LOCK | CRITICAL_NAME_BLOCKING},
	{"cudaEventQuery", CRITICAL_NAME_BLOCKING},
	{"cudaEventRecord", CRITICAL_NAME_RECORD},
	{"Stream Wait Event", CRITICAL_NAME_WAIT},
	{"Event Sync", CRITICAL_NAME_EVENT_SYNC},
	{"Stream Sync", CRITICAL_NAME_STREAM_SYNC},
	{"Context Sync", CRITICAL_NAME_CONTEXT_SYNC},
};

static uint16_t critical_path_classify(const struct critical_path *path, uint32_t name)
{
	struct ops_string string = ops_trace_string(path->table->trace, name);
	unsigned call = ops_call_of(string);
	uint16_t what = CRITICAL_NAME_KNOWN;

	what |= call & OPS_CALL_STARTS_WORK ? CRITICAL_NAME_LAUNCH : 0;
	what |= call & OPS_CALL_BLOCKS ? CRITICAL_NAME_BLOCKING : 0;
	for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++)
		if (ops_string_is(string, known_names[i].name))
			what |= known_names[i].what;
	for (size_t i = 0; i < path->options->loader_count && !ops_limit_reached(); i++)
		if (ops_string_has_part(string, path->options->loaders[i]))
			what |= CRITICAL_NAME_LOADER;
	return what;
}

static bool critical_path_read_names(struct critical_path *path)
{
	const struct event_table *table = path->table;

	path->names = ops_alloc_zeroed(ops_trace_string_count(table->trace) + 1, sizeof(*path->names));
	for (size_t i = 0; path->names && i < table->kept_count; i++) {
		uint32_t name = table->rows[table->kept[i]].name;

		if (!path->names[name])
			path->names[name] = critical_path_classify(path, name);
	}
	return path->names != NULL;
}

/* --- nodes ----------------------------------------------------------------------------------------------------------- */

/* Marks host rows that run in the window, the work that they launched, and all waits of streams. Rows without duration
 * are skipped. */
static void critical_path_mark(const struct critical_path *path, int64_t start_ns, int64_t end_ns, uint8_t *in)
{
	const struct event_table *table = path->table;

	for (size_t i = 0; i < table->kept_count; i++) {
		uint32_t at = table->kept[i];
		const struct event_row *row = &table->rows[at];

		if (row->stream != -1) {
			in[at] |= critical_name_is(path, row, CRITICAL_NAME_WAIT);
			continue;
		}
		if (row->ts_ns < start_ns || row->ts_ns > end_ns || row->dur_ns <= 0)
			continue;
		in[at] = 1;
		if (row->partner != OPS_NONE && table->rows[row->partner].stream != -1)
			in[row->partner] = 1;
		for (uint32_t i = table->launched.first[at]; i < table->launched.first[at + 1]; i++)
			in[table->launched.order[i]] = 1; /* the launch of a graph has several */
	}
}

static bool has_nodes(const struct critical_path *path, const struct event_row *row)
{
	if (row->stream != -1)
		return row->correlation >= 0;
	return row->kind == OPS_EVENT_CPU_OP || row->kind == OPS_EVENT_RUNTIME || row->kind == OPS_EVENT_DRIVER ||
	       critical_name_is(path, row, CRITICAL_NAME_LOADER);
}

static bool critical_path_find_rows(struct critical_path *path)
{
	const struct ops_trace *trace = path->table->trace;
	size_t count, rows = ops_trace_events(trace)->count;
	const struct ops_link *links = ops_trace_links(trace, &count);
	bool dependent = false;

	for (size_t i = 0; !dependent && i < count; i++)
		dependent = links[i].kind == OPS_LINK_DEPENDENCY;
	if (!dependent)
		return true;
	path->row_of = ops_alloc_none(rows + 1);
	for (uint32_t at = 0; path->row_of && at < path->table->count; at++)
		path->row_of[path->table->rows[at].source] = at;
	return path->row_of != NULL;
}

/* Marks the work of a CUDA graph that other work waited for. The waiting work begins later, so one pass over the arrows
 * is enough. */
static void mark_waited_for(const struct critical_path *path, uint8_t *in)
{
	size_t i;
	const struct ops_link *links = ops_trace_links(path->table->trace, &i);

	while (path->row_of && i-- > 0) {
		uint32_t from = path->row_of[links[i].from], to = path->row_of[links[i].to];

		if (links[i].kind == OPS_LINK_DEPENDENCY && from != OPS_NONE && to != OPS_NONE && in[to])
			in[from] = 1;
	}
}

static bool critical_path_clip(struct critical_path *path, int64_t start_ns, int64_t end_ns)
{
	const struct event_table *table = path->table;
	uint8_t *in = ops_alloc_zeroed(table->count + 1, 1);
	bool done = in && OPS_ARRAY_RESERVE(&path->clipped, table->count + 1) &&
	            OPS_ARRAY_RESERVE(&path->events, table->count + 1);

	path->event_of = ops_realloc_array(NULL, table->count + 1, sizeof(*path->event_of));
	done = done && path->event_of && critical_path_find_rows(path);
	if (done) {
		critical_path_mark(path, start_ns, end_ns, in);
		mark_waited_for(path, in);
		for (uint32_t at = 0; at < table->count; at++) {
			path->event_of[at] = OPS_NONE;
			if (!in[at])
				continue;
			path->clipped.items[path->clipped.count++] = at;
			if (!has_nodes(path, &table->rows[at]))
				continue;
			path->event_of[at] = (uint32_t)path->events.count;
			path->events.items[path->events.count++] = at;
		}
	}
	ops_free(in);
	return done;
}

/* --- edges ----------------------------------------------------------------------------------------------------------- */

bool critical_add_edge(struct critical_path *path, uint32_t from, uint32_t to, enum critical_edge_type type,
                       int64_t weight_ns, uint32_t event)
{
	uint64_t key = (uint64_t)from << 32 | to;
	uint32_t fresh = (uint32_t)path->edges.count;
	uint32_t *slot = ops_map_slot(&path->edge_of, key, fresh);
	struct critical_edge *edge;

	if (!slot)
		return false;
	edge = *slot == fresh ? OPS_ARRAY_PUSH(&path->edges) : &path->edges.items[*slot];
	if (edge)
		*edge = (struct critical_edge){from, to, event, (uint8_t)type, weight_ns};
	return edge != NULL;
}

enum critical_bound critical_bound_of(const struct critical_path *path, const struct critical_edge *edge)
{
	const struct event_row *row;

	if (edge->type == CRITICAL_KERNEL)
		return CRITICAL_BOUND_KERNEL_GAP;
	if (edge->type == CRITICAL_LAUNCH)
		return CRITICAL_BOUND_LAUNCH_DELAY;
	if (edge->type != CRITICAL_OPERATOR || edge->event == OPS_NONE)
		return CRITICAL_BOUND_NOTHING;
	row = critical_row(path, edge->event);
	if (row->stream < 0)
		return critical_name_is(path, row, CRITICAL_NAME_LOADER) ? CRITICAL_BOUND_LOADER : CRITICAL_BOUND_HOST;
	return row->class_ == EVENT_COMMUNICATION ? CRITICAL_BOUND_COMMUNICATION : CRITICAL_BOUND_COMPUTE;
}

const char *critical_edge_type_name(enum critical_edge_type type)
{
	static const char *const names[] = {
#define CRITICAL_EDGE_NAME(name, text) text,
		CRITICAL_EDGE_TYPES(CRITICAL_EDGE_NAME)
#undef CRITICAL_EDGE_NAME
	};

	return names[type];
}

const char *critical_bound_name(enum critical_bound bound)
{
	static const char *const names[] = {
#define CRITICAL_BOUND_NAME(name, text) text,
		CRITICAL_BOUNDS(CRITICAL_BOUND_NAME)
#undef CRITICAL_BOUND_NAME
	};

	return names[bound];
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

bool critical_path_init(struct critical_path *path, const struct event_table *table, int64_t start_ns, int64_t end_ns,
                        const struct critical_options *options)
{
	*path = (struct critical_path){.table = table, .options = options, .path_start = OPS_NONE, .path_end = OPS_NONE};
	return critical_path_read_names(path) && critical_path_clip(path, start_ns, end_ns) && critical_host_edges(path) &&
	       critical_queue_find(path) && critical_device_edges(path) && critical_path_search(path, NULL);
}

void critical_path_release(struct critical_path *path)
{
	ops_free(path->names);
	ops_free(path->event_of);
	ops_free(path->stream_of);
	ops_free(path->queue_at_launch);
	ops_free(path->queue_at_start);
	ops_map_release(&path->edge_of);
	ops_map_release(&path->records);
	ops_intern_release(&path->stream_keys);
	OPS_ARRAY_RELEASE(&path->clipped);
	ops_free(path->row_of);
	OPS_ARRAY_RELEASE(&path->events);
	OPS_ARRAY_RELEASE(&path->edges);
	OPS_ARRAY_RELEASE(&path->streams);
	OPS_ARRAY_RELEASE(&path->launches);
	OPS_ARRAY_RELEASE(&path->path);
}
