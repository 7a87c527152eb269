/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth of copies and fills over time, by kind. When the last operation of a kind ends, its sum is set to 0 to
 * discard rounding errors.
 */
#include "analyze/launch/launches.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/arguments.h"

#define NS_PER_US 1000

static double bandwidth_of(const struct event_table *table, uint32_t row)
{
	double gbps = ops_argument_number(table->trace, table->rows[row].source, "memory bandwidth (GB/s)", 0);

	return isfinite(gbps) ? gbps : 0;
}

static bool memory_traffic_push(struct traffic *traffic, int64_t ts_ns, uint32_t row, uint32_t kind, double gbps, bool is_end)
{
	struct traffic_point *point = OPS_ARRAY_PUSH(&traffic->points);

	if (point)
		*point = (struct traffic_point){ts_ns, row, kind, gbps, is_end};
	return point;
}

/* Collects all starts, then all ends. */
static bool memory_traffic_collect(struct traffic *traffic, const struct event_table *table, struct ops_intern *kinds)
{
	size_t starts;

	for (size_t i = 0; i < table->kept_count; i++) {
		uint32_t row = table->kept[i], kind;
		struct ops_string text;

		if (!table->rows[row].on_device || table->rows[row].class_ != EVENT_MEMORY)
			continue;
		text = event_memory_kind(event_name(table, &table->rows[row]));
		kind = ops_intern_add(kinds, text.bytes, text.size);
		if (kind == OPS_INTERN_NONE)
			return false;
		if (kind == traffic->kinds.count) {
			if (!OPS_ARRAY_RESERVE(&traffic->kinds, 1))
				return false;
			traffic->kinds.items[traffic->kinds.count++] = text;
		}
		if (!memory_traffic_push(traffic, table->rows[row].ts_ns, row, kind, bandwidth_of(table, row), false))
			return false;
	}
	starts = traffic->points.count;
	for (size_t i = 0; i < starts; i++) {
		struct traffic_point start = traffic->points.items[i];
		int64_t dur_ns = table->rows[start.row].dur_ns;

		if (!memory_traffic_push(traffic, start.ts_ns + (dur_ns ? dur_ns : NS_PER_US), start.row, start.kind,
		                         -start.gbps, true))
			return false;
	}
	return true;
}

static bool memory_traffic_before(const void *context, uint32_t a, uint32_t b)
{
	const struct traffic_point *points = context;

	return points[a].ts_ns < points[b].ts_ns;
}

static bool memory_traffic_sum_up(struct traffic *traffic)
{
	size_t count = traffic->kinds.count;
	double *sums = ops_alloc_zeroed(count + 1, sizeof(*sums));
	int64_t *running = ops_alloc_zeroed(count + 1, sizeof(*running));
	bool done = sums && running && OPS_ARRAY_SORT_STABLE(&traffic->points, memory_traffic_before);

	for (size_t i = 0; done && i < traffic->points.count; i++) {
		struct traffic_point *point = &traffic->points.items[i];

		running[point->kind] += point->is_end ? -1 : 1;
		sums[point->kind] = running[point->kind] ? sums[point->kind] + point->gbps : 0;
		point->gbps = sums[point->kind];
	}
	ops_free(sums);
	ops_free(running);
	return done;
}

bool traffic_build(struct traffic *traffic, const struct event_table *table)
{
	struct ops_intern kinds = {0};
	bool done;

	*traffic = (struct traffic){{0}, {0}};
	done = memory_traffic_collect(traffic, table, &kinds) && memory_traffic_sum_up(traffic);
	ops_intern_release(&kinds);
	return done;
}

void traffic_release(struct traffic *traffic)
{
	OPS_ARRAY_RELEASE(&traffic->points);
	OPS_ARRAY_RELEASE(&traffic->kinds);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static bool before_by_name(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_string *kinds = context;
	return ops_string_compare(kinds[a], kinds[b]) < 0;
}

/* Returns the kinds sorted by name. The caller frees them. Returns NULL if out of memory. */
static uint32_t *sorted_kinds(const struct traffic *traffic)
{
	uint32_t *order = ops_alloc_zeroed(traffic->kinds.count + 1, sizeof(*order));

	for (uint32_t i = 0; order && i < traffic->kinds.count; i++)
		order[i] = i;
	if (order && !ops_sort_rows(order, traffic->kinds.count, before_by_name, traffic->kinds.items)) {
		ops_free(order);
		return NULL;
	}
	return order;
}

struct summary_row {
	int64_t rank;
	struct ops_string name;
	struct description described;
};

#define KIND_COLUMN(row_type)                                                                                           \
	{.name = "name", .type = RESULT_TEXT, .title = "Kind", .about = "Kind of copy or set", RESULT_FIELD(row_type, name)}

static const struct result_column summary_columns[] = {
	RANK_COLUMN(struct summary_row),
	KIND_COLUMN(struct summary_row),
	DESCRIPTION_COLUMNS(struct summary_row, "memory_bw_gbps_", "GB/s", "bandwidth",
	                    "Number of changes of the bandwidth, except to 0"),
};
const struct result_declaration table_memory_summary =
	RESULT_DECLARATION("memory_bw_summary", "A kind of memory copies or sets on a rank", summary_columns);

static bool memory_traffic_write_summary(struct result_table *out, const struct event_table *table,
                                         const struct traffic *traffic)
{
	size_t count = traffic->kinds.count;
	struct numbers *numbers = ops_alloc_zeroed(count + 1, sizeof(*numbers));
	uint32_t *order = sorted_kinds(traffic);
	bool done = numbers && order;

	for (size_t i = 0; done && i < traffic->points.count; i++)
		if (traffic->points.items[i].gbps > 0)
			done = numbers_push(&numbers[traffic->points.items[i].kind], traffic->points.items[i].gbps);
	for (size_t i = 0; done && i < count; i++) {
		struct summary_row row = {table->rank, traffic->kinds.items[order[i]], describe(&numbers[order[i]])};

		if (row.described.count)
			result_add(out, &row);
	}
	for (size_t i = 0; numbers && i < count; i++)
		numbers_release(&numbers[i]);
	ops_free(numbers);
	ops_free(order);
	return done;
}

struct point_row {
	uint32_t index;
	int64_t ts_ns, pid;
	struct ops_string name;
	double gbps;
};

static const struct result_column point_columns[] = {
	INDEX_COLUMN(struct point_row),
	TIME_COLUMN(struct point_row),
	{.name = "pid", .type = RESULT_INTEGER, .title = "Process", .about = "Process in the trace file: the device",
	 RESULT_FIELD(struct point_row, pid)},
	KIND_COLUMN(struct point_row),
	{.name = "memory_bw_gbps", .type = RESULT_NUMBER, .title = "Bandwidth", .unit = "GB/s",
	 .about = "Sum of the running copies or sets of the kind, from this time on", RESULT_FIELD(struct point_row, gbps)},
};
const struct result_declaration table_memory_points =
	RESULT_DECLARATION("memory_bw_time_series.series", "A change of the bandwidth of a kind", point_columns);

static void memory_traffic_write_points(struct analysis_run *run, const struct event_table *table,
                                        const struct traffic *traffic)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &count);
	struct result_table series = {.copies = true};

	result_declare(&series, &table_memory_points, 0);
	for (size_t i = 0; i < traffic->points.count; i++) {
		const struct traffic_point *point = &traffic->points.items[i];

		result_add(&series, &(struct point_row){table->rows[point->row].index, point->ts_ns - run->events.first_ns,
		                                        tracks[table->rows[point->row].track].pid,
		                                        traffic->kinds.items[point->kind], point->gbps});
	}
	ops_json_key(&run->result.json, "series");
	result_put_table(&run->result, &series);
}

static void memory_traffic_write_by_name(struct ops_json_writer *json, const struct traffic *traffic, const uint32_t *order,
                                         const double *values, const char *key)
{
	ops_json_member_open(json, key, '{');
	for (size_t i = 0; i < traffic->kinds.count; i++) {
		ops_json_key_of(json, traffic->kinds.items[order[i]].bytes, traffic->kinds.items[order[i]].size);
		ops_json_number(json, values[order[i]]);
	}
	ops_json_close(json, '}');
}

static bool memory_traffic_write_series(struct analysis_run *run, const struct event_table *table,
                                        const struct traffic *traffic, bool with_points)
{
	struct ops_json_writer *json = &run->result.json;
	uint32_t *order = sorted_kinds(traffic);
	double *counts = ops_alloc_zeroed(2 * traffic->kinds.count + 1, sizeof(*counts)), *most;
	int64_t negative = 0;
	bool done = order && counts;

	most = done ? counts + traffic->kinds.count : NULL;
	for (size_t i = 0; done && i < traffic->points.count; i++) {
		const struct traffic_point *point = &traffic->points.items[i];

		counts[point->kind]++;
		most[point->kind] = fmax(most[point->kind], point->gbps);
		negative += point->gbps < 0;
	}
	if (done) {
		analysis_rank_key(json, table->rank);
		ops_json_open(json, '{');
		ops_json_member(json, "points", (int64_t)traffic->points.count);
		memory_traffic_write_by_name(json, traffic, order, counts, "points_by_name");
		memory_traffic_write_by_name(json, traffic, order, most, "max_by_name");
		ops_json_member(json, "negative_points", negative);
		if (with_points)
			memory_traffic_write_points(run, table, traffic);
		ops_json_close(json, '}');
	}
	ops_free(order);
	ops_free(counts);
	return done;
}

static bool memory_traffic_summarize(struct analysis_run *run, const struct event_table *table, const void *context)
{
	struct traffic traffic;
	bool done = traffic_build(&traffic, table) && memory_traffic_write_summary(&run->result.table, table, &traffic);

	(void)context;
	traffic_release(&traffic);
	return done;
}

static bool memory_traffic_show(struct analysis_run *run, const struct event_table *table, const void *context)
{
	const bool *with_points = context;
	struct traffic traffic;
	bool done = traffic_build(&traffic, table) &&
	            (!traffic.points.count || memory_traffic_write_series(run, table, &traffic, *with_points));

	traffic_release(&traffic);
	return done;
}

enum ops_code analysis_memory_summary(struct analysis_run *run)
{
	result_declare(&run->result.table, &table_memory_summary, 0);
	return analysis_each_rank(run, memory_traffic_summarize, NULL);
}

enum ops_code analysis_memory_series(struct analysis_run *run)
{
	bool series = analysis_bool(run, "series");
	enum ops_code code = run->code;

	if (code)
		return code;
	ops_json_open(&run->result.json, '{');
	code = analysis_each_rank(run, memory_traffic_show, &series);
	ops_json_close(&run->result.json, '}');
	return code;
}
