/* SPDX-License-Identifier: Apache-2.0
 *
 * Overview of the input: files and ranks, the contents of each trace, and what the step filter keeps.
 */
#include "analyze/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

/* --- files and ranks ---------------------------------------------------------------------------------------------- */

OPS_ORDER(event_summary_compare_ranks, struct ops_rank, OPS_UP(rank))

enum ops_code analysis_discovery(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	struct ops_rank *ranks = ops_alloc_zeroed(run->count, sizeof(*ranks));

	if (!ranks)
		return ops_fault_memory(run->error);
	memcpy(ranks, run->ranks, run->count * sizeof(*ranks));
	qsort(ranks, run->count, sizeof(*ranks), event_summary_compare_ranks);
	ops_json_open(json, '{');
	for (size_t i = 0; i < run->count; i++) {
		const char *path = ranks[i].path ? ranks[i].path : "";
		const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

		analysis_rank_key(json, ranks[i].rank);
		ops_json_word(json, name);
	}
	ops_json_close(json, '}');
	ops_free(ranks);
	return OPS_OK;
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* All rows, or those in `kept`. */
struct selection {
	const struct event_table *table;
	const uint32_t *kept; /* NULL: all */
	size_t count;
};

static const struct event_row *event_summary_row_at(const struct selection *rows, size_t i)
{
	return &rows->table->rows[rows->kept ? rows->kept[i] : i];
}

struct counted {
	struct ops_string text;
	int64_t number;
	size_t count;
};

OPS_ORDER(compare_counted, struct counted, OPS_BY_TEXT(text) OPS_UP(number))

/* Counts equal items: {"cpu_op": 70, …}. `stamp` fills one item for each row. */
static size_t count_equal(struct counted *items, size_t count)
{
	size_t distinct = 0;

	if (count)
		qsort(items, count, sizeof(*items), compare_counted);
	for (size_t i = 0; i < count; i++) {
		if (distinct && !compare_counted(&items[i], &items[distinct - 1]))
			items[distinct - 1].count++;
		else
			items[distinct++] = (struct counted){items[i].text, items[i].number, 1};
	}
	return distinct;
}

static void event_summary_write_categories(const struct selection *rows, struct counted *items, struct ops_json_writer *json)
{
	size_t distinct;

	for (size_t i = 0; i < rows->count; i++)
		items[i] = (struct counted){
			.text = ops_event_category(rows->table->trace, event_summary_row_at(rows, i)->source)};
	distinct = count_equal(items, rows->count);
	ops_json_member_open(json, "rows_by_cat", '{');
	for (size_t i = 0; i < distinct; i++) {
		ops_json_key_of(json, items[i].text.bytes, items[i].text.size);
		ops_json_integer(json, (int64_t)items[i].count);
	}
	ops_json_close(json, '}');
}

static void event_summary_write_steps(const struct selection *rows, struct counted *items, struct ops_json_writer *json)
{
	size_t distinct;

	for (size_t i = 0; i < rows->count; i++)
		items[i] = (struct counted){.number = event_summary_row_at(rows, i)->step};
	distinct = count_equal(items, rows->count);
	ops_json_member_open(json, "rows_by_iteration", '{');
	for (size_t i = 0; i < distinct; i++) {
		analysis_rank_key(json, items[i].number);
		ops_json_integer(json, (int64_t)items[i].count);
	}
	ops_json_close(json, '}');
}

static void write_streams(const struct selection *rows, struct counted *items, struct ops_json_writer *json)
{
	size_t distinct;

	for (size_t i = 0; i < rows->count; i++)
		items[i] = (struct counted){.number = event_summary_row_at(rows, i)->stream};
	distinct = count_equal(items, rows->count);
	OPS_JSON_LIST(json, "streams", i, distinct, ops_json_integer(json, items[i].number));
}

/* Writes the distinct steps of the rows. Rows outside of steps do not count. */
static void write_iterations(const struct selection *rows, struct counted *items, struct ops_json_writer *json)
{
	size_t distinct;

	for (size_t i = 0; i < rows->count; i++)
		items[i] = (struct counted){.number = event_summary_row_at(rows, i)->step};
	distinct = count_equal(items, rows->count);
	ops_json_member_open(json, "iterations", '[');
	for (size_t i = 0; i < distinct; i++)
		if (items[i].number >= 0)
			ops_json_integer(json, items[i].number);
	ops_json_close(json, ']');
}

static void event_summary_write_links(const struct selection *rows, struct ops_json_writer *json)
{
	int64_t linked = 0, zero = 0;
	size_t link_count;
	const struct ops_link *links = ops_trace_links(rows->table->trace, &link_count);
	int64_t backward = 0;

	for (size_t i = 0; i < rows->count; i++) {
		linked += event_summary_row_at(rows, i)->partner != OPS_NONE;
		zero += event_summary_row_at(rows, i)->partner == OPS_NONE && event_summary_row_at(rows, i)->correlation >= 0;
	}
	ops_json_member_open(json, "index_correlation", '{');
	ops_json_member(json, "linked", linked);
	ops_json_member(json, "zero", zero);
	ops_json_member(json, "minus1", (int64_t)rows->count - linked - zero);
	ops_json_close(json, '}');
	for (size_t i = 0; i < link_count; i++)
		backward += links[i].kind == OPS_LINK_FORWARD_BACKWARD;
	ops_json_member(json, "fwdbwd_pairs", backward);
}

static size_t distinct_names(const struct selection *rows, struct counted *items)
{
	for (size_t i = 0; i < rows->count; i++)
		items[i] = (struct counted){.number = event_summary_row_at(rows, i)->name};
	return count_equal(items, rows->count);
}

static int64_t on_streams(const struct selection *rows)
{
	int64_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += event_summary_row_at(rows, i)->stream != -1;
	return count;
}

struct extent {
	int64_t first_ns, last_start_ns, last_ns, sum_ns;
};

static struct extent extent_of(const struct selection *rows)
{
	struct extent extent = {INT64_MAX, INT64_MIN, INT64_MIN, 0};

	for (size_t i = 0; i < rows->count; i++) {
		const struct event_row *row = event_summary_row_at(rows, i);

		extent.first_ns = row->ts_ns < extent.first_ns ? row->ts_ns : extent.first_ns;
		extent.last_start_ns = row->ts_ns > extent.last_start_ns ? row->ts_ns : extent.last_start_ns;
		extent.last_ns = event_end(row) > extent.last_ns ? event_end(row) : extent.last_ns;
		extent.sum_ns = ops_sum(extent.sum_ns, row->dur_ns);
	}
	return rows->count ? extent : (struct extent){0};
}

/* --- parse -------------------------------------------------------------------------------------------------------- */

/* The columns of an event in HTA's table by default. */
static const char *const columns[] = {
	"bytes", "cat", "collective_name", "correlation", "dur", "end", "external_id", "group_size", "in_msg_nelems",
	"in_split_size", "index", "index_correlation", "input_dims", "input_strides", "input_type", "iteration",
	"memory_bw_gbps", "msg_dtype", "name", "out_msg_nelems", "out_split_size", "pid", "process_rank", "python_id",
	"python_parent_id", "stream", "tid", "ts", "wait_on_cuda_event_record_corr_id", "wait_on_stream"};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))
#define COUNTERS_MAX 256 /* the limit of the analyses of counters */

/* Finds the counters of kernels, which are also columns. Returns false if out of memory. */
static bool event_summary_find_counters(const struct event_table *table, struct ops_intern *names)
{
	const struct ops_events *events = ops_trace_events(table->trace);

	for (size_t i = 0; i < table->count; i++) {
		struct ops_string json;
		struct ops_string key, value;
		struct ops_json_walk walk;

		if (!ops_string_is(ops_event_category(table->trace, table->rows[i].source), "cuda_profiler_range"))
			continue;
		if (!events->extra || events->extra[table->rows[i].source] == OPS_NONE)
			continue;
		json = ops_trace_string(table->trace, events->extra[table->rows[i].source]);
		walk = ops_json_walk(json.bytes, json.size);
		while (names->count < COUNTERS_MAX && ops_json_next_member(&walk, &key, &value))
			if (ops_intern_add(names, key.bytes, key.size) == OPS_INTERN_NONE)
				return false;
	}
	return true;
}

static bool event_summary_write_columns(const struct event_table *table, struct ops_json_writer *json)
{
	struct counted all[COLUMN_COUNT + COUNTERS_MAX];
	struct ops_intern counters = {0};
	bool done = event_summary_find_counters(table, &counters);
	size_t count = 0;

	for (size_t i = 0; i < COLUMN_COUNT; i++)
		all[count++] = (struct counted){.text = {columns[i], strlen(columns[i])}};
	for (size_t i = 0; done && i < counters.count; i++)
		all[count++] = (struct counted){.text = {counters.entries[i].bytes, counters.entries[i].size}};
	count = count_equal(all, count);
	OPS_JSON_LIST(json, "columns", i, count, ops_json_text(json, all[i].text.bytes, all[i].text.size));
	ops_intern_release(&counters);
	return done;
}

enum ops_code analysis_parse(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;

	ops_json_open(json, '{');
	for (size_t i = 0; i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);
		struct selection rows = {table, NULL, table ? table->count : 0};
		struct counted *items = ops_alloc_zeroed(rows.count + 1, sizeof(*items));
		struct extent extent = extent_of(&rows);

		if (!items || !table) {
			ops_free(items);
			return analysis_failed(run);
		}
		analysis_rank_key(json, run->ranks[i].rank);
		ops_json_open(json, '{');
		ops_json_member(json, "rows", (int64_t)rows.count);
		ops_json_member_text(json, "device_type", event_device_type_name(run->events.device, run->events.rules));
		event_summary_write_categories(&rows, items, json);
		ops_json_member(json, "distinct_names", (int64_t)distinct_names(&rows, items));
		ops_json_member_us_if(json, "min_ts", rows.count, extent.first_ns);
		ops_json_member_us_if(json, "max_end", rows.count, extent.last_ns);
		ops_json_member_us(json, "sum_dur", extent.sum_ns);
		ops_json_member(json, "rows_stream_ne_minus1", on_streams(&rows));
		write_streams(&rows, items, json);
		event_summary_write_links(&rows, json);
		event_summary_write_steps(&rows, items, json);
		ops_free(items);
		if (!event_summary_write_columns(table, json))
			return ops_fault_memory(run->error);
		ops_json_close(json, '}');
	}
	ops_json_close(json, '}');
	return OPS_OK;
}

/* --- load --------------------------------------------------------------------------------------------------------- */

/* Adds the names and categories of a rank to the distinct ones of all ranks. */
static bool add_symbols(struct ops_intern *symbols, const struct event_table *table)
{
	bool done = true;

	for (size_t row = 0; done && row < table->count; row++) {
		struct ops_string name = event_name(table, &table->rows[row]);
		struct ops_string category = ops_event_category(table->trace, table->rows[row].source);

		done = ops_intern_add(symbols, name.bytes, name.size) != OPS_INTERN_NONE &&
		       ops_intern_add(symbols, category.bytes, category.size) != OPS_INTERN_NONE;
	}
	return done;
}

static bool write_load(const struct event_set *set, const struct event_table *table, struct ops_json_writer *json)
{
	struct selection rows = {table, table->kept, table->kept_count};
	struct counted *items = ops_alloc_zeroed(rows.count + 1, sizeof(*items));
	struct extent extent = extent_of(&rows);

	if (!items)
		return false;
	analysis_rank_key(json, table->rank);
	ops_json_open(json, '{');
	ops_json_member(json, "rows", (int64_t)rows.count);
	ops_json_member(json, "rows_stream_ne_minus1", on_streams(&rows));
	event_summary_write_categories(&rows, items, json);
	ops_json_member_us_if(json, "max_end", rows.count, extent.last_ns - set->first_ns);
	write_iterations(&rows, items, json);
	ops_json_member_us(json, "trace_duration", extent.last_start_ns - extent.first_ns);
	ops_json_close(json, '}');
	ops_free(items);
	return true;
}

enum ops_code analysis_load(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	struct ops_intern symbols = {0};
	bool done = true;

	ops_json_open(json, '{');
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);

		done = table && add_symbols(&symbols, table) && write_load(&run->events, table, json);
	}
	ops_json_member_us(json, "min_ts", run->events.first_ns);
	ops_json_member(json, "symbols", (int64_t)symbols.count);
	ops_json_member_text(json, "device_type", event_device_type_name(run->events.device, run->events.rules));
	ops_json_close(json, '}');
	ops_intern_release(&symbols);
	return done ? OPS_OK : analysis_failed(run);
}

/* Lists steps that have kept rows. */
enum ops_code analysis_profiler_steps(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	const struct event_set *set = &run->events;
	uint8_t *seen = ops_alloc_zeroed(set->steps.count + 1, 1);

	for (size_t i = 0; seen && i < set->count; i++) {
		const struct event_table *table = analysis_table(run, i);

		if (!table) {
			ops_free(seen);
			return analysis_failed(run);
		}
		for (size_t at = 0; at < table->kept_count; at++)
			seen[event_step_index(set, table->rows[table->kept[at]].step)] = 1;
	}
	if (!seen)
		return ops_fault_memory(run->error);
	ops_json_open(json, '[');
	for (size_t i = 0; i < set->steps.count; i++)
		if (seen[i])
			ops_json_integer(json, set->steps.items[i]);
	ops_json_close(json, ']');
	ops_free(seen);
	return OPS_OK;
}
