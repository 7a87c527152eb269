/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a trace that are spans, in order of the file, and their times.
 */
#include "analyze/events/event_table.h"

#include <math.h>
#include <string.h>

#include "analyze/device_times.h"
#include "base/alloc.h"
#include "base/json_walk.h"
#include "base/sum.h"
#include "base/text.h"
#include "trace/kinds.h"

#define NS_PER_US 1000

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Returns the number of a row's stream, which is not negative; -1 for rows of the host. Kernels that Triton compiled
 * are operators with the stream that they launch on; for HTA they run on it. Kernels in old files have the stream only
 * as their thread. */
static int64_t stream_of(const struct event_table *table, uint32_t row)
{
	const struct ops_trace *trace = table->trace;
	struct ops_string json;
	double number;
	size_t count;
	int64_t tid;

	if (!table->policy->streams_by_argument && !ops_event_on_device(trace, row))
		return -1;
	if (ops_event_arg(trace, row, "stream", &json) && ops_json_parse_number(json, &number) && number >= 0 && number < 9e15)
		return (int64_t)number;
	if (table->policy->streams_by_argument || !ops_kind_is_work(ops_trace_events(trace)->kind[row]))
		return -1;
	tid = ops_trace_tracks(trace, &count)[ops_trace_events(trace)->track[row]].tid;
	return tid > 0 ? tid : 0;
}

static int64_t floor_us(int64_t ns)
{
	int64_t rest = ns % NS_PER_US;

	return ns - (rest < 0 ? rest + NS_PER_US : rest);
}

/* Rounds to whole microseconds like HTA, which shrinks an event to the whole microseconds inside it. */
static void round_row(struct event_row *row)
{
	int64_t start = floor_us(row->ts_ns + NS_PER_US - 1);
	int64_t end = floor_us(event_end(row));

	row->ts_ns = start;
	row->dur_ns = end - start;
}

/* Returns true if a row has a duration and a category: instants have no duration, marks no category. */
static bool is_span(const struct ops_trace *trace, uint32_t row)
{
	uint8_t kind = ops_trace_events(trace)->kind[row];

	return kind != OPS_EVENT_CPU_INSTANT && kind != OPS_EVENT_MARK && kind != OPS_EVENT_TRACE &&
	       ops_event_category(trace, row).size > 0;
}

/* Matches rows on a stream that are not work: allocations, and nodes of CUDA graphs that wait or record the time. */
static bool is_idle(struct ops_string category)
{
	return ops_string_is(category, "graph_host_node") || ops_string_is(category, "graph_event_node") ||
	       ops_string_is(category, "cuda_memory");
}

/* Device work runs on a stream. A wait on a stream is not work. */
static bool is_work(const struct ops_trace *trace, const struct event_row *row)
{
	if (row->stream < 0 || row->kind == OPS_EVENT_SYNC || row->kind == OPS_EVENT_GPU_USER_ANNOTATION)
		return false;
	return row->kind != OPS_EVENT_OTHER || !is_idle(ops_event_category(trace, row->source));
}

/* How rows are classified. */
struct row_classes {
	uint8_t *by_name; /* by string: the class and 1; 0: unknown */
	struct ops_map collectives; /* their external ids, for OPS_CLASS_BY_COLLECTIVE */
};

/* Events whose kind does not determine the class are classified by name. */
static uint8_t event_table_class_of(const struct event_table *table, struct row_classes *classes, uint32_t source)
{
	const struct ops_trace *trace = table->trace;
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t kind = events->kind[source];
	uint8_t *known = &classes->by_name[events->name[source]];
	enum ops_class_source by = table->policy->classes;

	if (by == OPS_CLASS_BY_COLLECTIVE && kind == OPS_EVENT_KERNEL)
		return events->id && ops_map_find(&classes->collectives, events->id[source]) != OPS_NONE ? EVENT_COMMUNICATION : EVENT_COMPUTATION;
	if (by != OPS_CLASS_BY_PREFIX && (kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET || kind == OPS_EVENT_SYNC))
		return (uint8_t)event_class_of(by, kind, (struct ops_string){"", 0});
	if (!*known)
		*known = (uint8_t)(1 + event_class_of(by, kind, ops_trace_string(trace, events->name[source])));
	return *known - 1;
}

static void fill_row(struct event_table *table, uint32_t source, struct row_classes *classes, struct event_row *row)
{
	const struct ops_trace *trace = table->trace;
	const struct ops_events *events = ops_trace_events(trace);
	int64_t base_ns = ops_trace_info(trace)->base_ns;

	*row = (struct event_row){
		.ts_ns = (int64_t)((uint64_t)events->start_ns[source] - (uint64_t)base_ns),
		.dur_ns = ops_difference(events->end_ns[source], events->start_ns[source]),
		.stream = stream_of(table, source),
		.correlation = events->correlation ? events->correlation[source] : -1,
		.step = EVENT_NO_STEP,
		.source = source,
		.index = events->index && events->index[source] != OPS_NONE ? events->index[source] : source,
		.name = events->name[source],
		.track = events->track[source],
		.partner = OPS_NONE,
		.kind = events->kind[source],
		.class_ = event_table_class_of(table, classes, source),
	};
	row->on_device = is_work(trace, row);
}

/* Sorts trace rows in order of the file; a recording keeps its own order. The caller frees the list. Returns false if
 * out of memory. */
static bool file_order(const struct ops_trace *trace, uint32_t **ret_rows)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t room = events->count + 1;
	uint32_t *rows;
	size_t count = 0;

	for (size_t i = 0; events->index && i < events->count; i++)
		if (events->index[i] != OPS_NONE && events->index[i] >= room)
			room = (size_t)events->index[i] + 1;
	rows = ops_alloc_zeroed(room, sizeof(*rows));
	*ret_rows = rows;
	if (!rows)
		return false;
	/* Stores row + 1 at its position, then closes the gaps. Positions are distinct. */
	for (size_t i = 0; i < events->count; i++)
		rows[events->index && events->index[i] != OPS_NONE ? events->index[i] : i] = (uint32_t)i + 1;
	for (size_t i = 0; i < room; i++)
		if (rows[i])
			rows[count++] = rows[i] - 1;
	if (count == events->count)
		return true;
	for (size_t i = 0; i < events->count; i++) /* positions that are not distinct are ignored */
		rows[i] = (uint32_t)i;
	return true;
}

static bool event_table_add_rows(struct event_table *table, const uint32_t *order, struct row_classes *classes)
{
	const struct ops_events *events = ops_trace_events(table->trace);
	int64_t base_ns = ops_trace_info(table->trace)->base_ns;

	table->rows = ops_alloc_zeroed(events->count + 1, sizeof(*table->rows));
	if (!table->rows)
		return false;
	for (size_t i = 0; i < events->count; i++) {
		table->fractional = table->fractional ||
		                    (int64_t)((uint64_t)events->start_ns[i] - (uint64_t)base_ns) % NS_PER_US != 0;
		if (is_span(table->trace, order[i]))
			fill_row(table, order[i], classes, &table->rows[table->count++]);
	}
	return true;
}

bool event_table_build(struct event_table *table, const struct ops_trace *trace, bool round_to_us, enum ops_rules rules)
{
	uint32_t *order = NULL;
	struct row_classes classes = {0};
	bool done;

	*table = (struct event_table){.trace = trace, .policy = ops_policy_of(rules)};
	done = file_order(trace, &order) && (classes.by_name = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1)) &&
	       (table->policy->classes != OPS_CLASS_BY_COLLECTIVE || ops_collective_ids(trace, &classes.collectives)) &&
	       event_table_add_rows(table, order, &classes);
	ops_free(order);
	ops_free(classes.by_name);
	ops_map_release(&classes.collectives);
	for (size_t i = 0; done && round_to_us && table->fractional && i < table->count; i++)
		round_row(&table->rows[i]);
	return done && event_links_build(table) && event_steps_assign(table);
}

void event_table_release(struct event_table *table)
{
	ops_free(table->rows);
	ops_free(table->kept);
	ops_groups_release(&table->launched);
	OPS_ARRAY_RELEASE(&table->steps);
	*table = (struct event_table){0};
}
