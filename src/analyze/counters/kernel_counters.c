/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters of kernels: CUPTI's range profiler writes one row per kernel, with the counters as its arguments,
 * but does not identify the launch. Kernels run one at a time then, so the nth row belongs to the nth launch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/arguments.h"
#include "derive/calls.h"
#include "derive/launches.h"

/* Each counter is a pass of the hardware over every kernel; only a crafted file has more. */
#define COUNTERS_MAX 256
/* Limit on the operators reported around a launch. */
#define STACK_MAX 64

struct kernels {
	const struct event_table *table;
	uint32_t *ranges;   /* rows of counters, by time */
	size_t range_count;
	uint32_t *launches; /* rows of launches, by time */
	size_t launch_count;
	const uint32_t *launchers; /* by row of the trace */
	struct ops_intern counters;
};

static bool kernel_counters_is_counted(const struct event_table *table, const struct event_row *row)
{
	return ops_string_is(ops_event_category(table->trace, row->source), "cuda_profiler_range");
}

static bool kernel_counters_find_rows(struct kernels *kernels)
{
	const struct event_table *table = kernels->table;

	kernels->ranges = ops_alloc_zeroed(table->kept_count + 1, sizeof(*kernels->ranges));
	kernels->launches = ops_alloc_zeroed(table->kept_count + 1, sizeof(*kernels->launches));
	if (!kernels->ranges || !kernels->launches)
		return false;
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (kernel_counters_is_counted(table, row))
			kernels->ranges[kernels->range_count++] = table->kept[i];
		else if (ops_kind_is_call(row->kind) && (ops_call_of(event_name(table, row)) & OPS_CALL_LAUNCH))
			kernels->launches[kernels->launch_count++] = table->kept[i];
	}
	return ops_sort_rows(kernels->ranges, kernels->range_count, event_starts_before, table->rows) &&
	       ops_sort_rows(kernels->launches, kernels->launch_count, event_starts_before, table->rows);
}

static bool kernel_counters_find_counters(struct kernels *kernels)
{
	const struct ops_events *events = ops_trace_events(kernels->table->trace);

	for (size_t i = 0; i < kernels->range_count && events->extra; i++) {
		uint32_t source = kernels->table->rows[kernels->ranges[i]].source;
		struct ops_string extra;
		struct ops_json_walk cursor;
		struct ops_string key, value;

		if (events->extra[source] == OPS_NONE)
			continue;
		extra = ops_trace_string(kernels->table->trace, events->extra[source]);
		cursor = ops_json_walk(extra.bytes, extra.size);
		while (kernels->counters.count < COUNTERS_MAX && ops_json_next_member(&cursor, &key, &value))
			if (ops_intern_add(&kernels->counters, key.bytes, key.size) == OPS_INTERN_NONE)
				return false;
	}
	return true;
}

static bool kernels_init(struct kernels *kernels, const struct event_table *table)
{
	*kernels = (struct kernels){.table = table};
	return kernel_counters_find_rows(kernels) &&
	       (!kernels->range_count ||
	        ((kernels->launchers = ops_launchers(table->trace)) && kernel_counters_find_counters(kernels)));
}

static void kernels_release(struct kernels *kernels)
{
	ops_free(kernels->ranges);
	ops_free(kernels->launches);
	ops_intern_release(&kernels->counters);
}

/* Returns a counter of range `i`; NaN if it has none of that name. */
static double counter(const struct kernels *kernels, size_t i, const char *key)
{
	return ops_argument_number(kernels->table->trace, kernels->table->rows[kernels->ranges[i]].source, key, NAN);
}

/* --- cupti_counters --------------------------------------------------------------------------------------------------- */

/* Finds the operator that made launch `i` and those around it, outermost first. */
static size_t stack_of(const struct kernels *kernels, size_t i, struct ops_string *stack)
{
	const struct ops_trace *trace = kernels->table->trace;
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t row = kernels->launchers[kernels->table->rows[kernels->launches[i]].source];
	size_t count = 0;

	for (; row != OPS_NONE && count < STACK_MAX; row = events->parent[row])
		if (events->kind[row] == OPS_EVENT_CPU_OP)
			stack[count++] = ops_trace_string(trace, events->name[row]);
	for (size_t k = 0; k < count / 2; k++) {
		struct ops_string other = stack[k];

		stack[k] = stack[count - 1 - k];
		stack[count - 1 - k] = other;
	}
	return count;
}

static void kernel_counters_write_stack(struct result_table *out, const struct ops_string *stack, size_t count)
{
	struct ops_buffer text = {0};
	struct ops_json_writer json = {.out = &text};

	if (count) {
		result_text(out, stack[0]);
		result_text(out, stack[count - 1]);
	} else {
		result_null(out);
		result_null(out);
	}
	ops_json_open(&json, '[');
	for (size_t i = 0; i < count; i++)
		ops_json_text(&json, stack[i].bytes, stack[i].size);
	ops_json_close(&json, ']');
	if (text.failed)
		out->failed = true;
	else
		result_text_copy(out, text.bytes, text.size);
	ops_buffer_release(&text);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct ops_intern_entry *)a)->bytes, ((const struct ops_intern_entry *)b)->bytes);
}

struct counter_row {
	int64_t ts_ns, dur_ns;
	struct ops_string name, top, bottom, stack;
};

static const struct result_column counter_columns[] = {
	TIME_COLUMN(struct counter_row),
	{.name = "dur", .type = RESULT_TIME, .title = "Duration", .about = "Duration of all passes of the kernel",
	 RESULT_FIELD(struct counter_row, dur_ns)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the kernel", RESULT_FIELD(struct counter_row, name)},
	{.name = "top_level_op", .type = RESULT_TEXT, .title = "Outermost operator", .about = "Outermost operator that launches it",
	 RESULT_FIELD(struct counter_row, top)},
	{.name = "bottom_level_op", .type = RESULT_TEXT, .title = "Innermost operator", .about = "Innermost operator that launches it",
	 RESULT_FIELD(struct counter_row, bottom)},
	{.name = "op_stack", .type = RESULT_JSON, .title = "Operators", .about = "The operators that launch it, outermost first",
	 RESULT_FIELD(struct counter_row, stack)},
};
const struct result_declaration table_cupti_counters =
	RESULT_DECLARATION("cupti_counters", "A kernel; each counter is a further column", counter_columns);

/* Finds the names of counters in order. They live as long as the table. Returns false if out of memory. */
static bool kernel_counters_write_columns(struct result_table *out, const struct kernels *kernels,
                                          struct ops_intern_entry *counters)
{
	result_declare(out, &table_cupti_counters, 0);
	for (size_t i = 0; i < kernels->counters.count; i++)
		counters[i] = kernels->counters.entries[i];
	qsort(counters, kernels->counters.count, sizeof(*counters), compare_entries);
	for (size_t i = 0; i < kernels->counters.count; i++) {
		counters[i].bytes = ops_arena_copy(&out->arena, counters[i].bytes, counters[i].size);
		if (!counters[i].bytes)
			return false;
		result_column(out, counters[i].bytes, RESULT_NUMBER);
	}
	return true;
}

static bool kernel_counters_write_counters(struct analysis_run *run, const struct kernels *kernels)
{
	struct result_table *out = &run->result.table;
	struct ops_intern_entry counters[COUNTERS_MAX];
	/* A launch that the profiler skipped would shift all later ones, so then no launch is known. */
	bool paired = kernels->range_count == kernels->launch_count;

	if (!kernel_counters_write_columns(out, kernels, counters))
		return false;
	for (size_t i = 0; i < kernels->range_count; i++) {
		const struct event_row *row = &kernels->table->rows[kernels->ranges[i]];
		struct ops_string stack[STACK_MAX];

		result_time(out, row->ts_ns - run->events.first_ns);
		result_time(out, row->dur_ns);
		result_text(out, event_name(kernels->table, row));
		kernel_counters_write_stack(out, stack, paired ? stack_of(kernels, i, stack) : 0);
		for (size_t k = 0; k < kernels->counters.count; k++)
			result_number(out, counter(kernels, i, counters[k].bytes));
	}
	return true;
}

/* Uses the first rank of the option `ranks` that has counters. */
static enum ops_code find_kernels(struct analysis_run *run, struct kernels *kernels)
{
	size_t *indexes, count;
	enum ops_code code = analysis_ranks(run, &indexes, &count);

	*kernels = (struct kernels){0};
	for (size_t i = 0; !code && i < count && !kernels->range_count; i++) {
		const struct event_table *table = analysis_table(run, indexes[i]);

		kernels_release(kernels);
		if (!table || !kernels_init(kernels, table))
			code = analysis_failed(run);
	}
	ops_free(indexes);
	return code;
}

enum ops_code analysis_cupti_counters(struct analysis_run *run)
{
	struct kernels kernels;
	enum ops_code code = find_kernels(run, &kernels);

	if (!code && kernels.range_count && !kernel_counters_write_counters(run, &kernels))
		code = ops_fault_memory(run->error);
	kernels_release(&kernels);
	return code;
}

/* --- roofline --------------------------------------------------------------------------------------------------------- */

struct work {
	uint32_t name;
	int64_t count;
	double operations;
	double bytes;
	double time_ns;
};

/* Returns the number of floating-point operations; a fused multiply-add counts as two. NaN if none were counted. */
static double operations_of(const struct kernels *kernels, size_t i)
{
	static const char *const kinds[] = {"ffma", "hfma", "dfma", "fmul", "fadd", "hmul", "hadd", "dmul", "dadd"};
	double sum = NAN;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		char key[80];
		double value;

		snprintf(key, sizeof(key), "smsp__sass_thread_inst_executed_op_%s_pred_on.sum", kinds[k]);
		value = counter(kernels, i, key) * (k < 3 ? 2 : 1);
		if (!isnan(value))
			sum = isnan(sum) ? value : sum + value;
	}
	return sum;
}

static double kernel_counters_bytes_of(const struct kernels *kernels, size_t i)
{
	double all = counter(kernels, i, "dram__bytes.sum");

	return isnan(all) ? counter(kernels, i, "dram__bytes_read.sum") + counter(kernels, i, "dram__bytes_write.sum") : all;
}

static int most_work_first(const void *a, const void *b)
{
	const struct work *left = a, *right = b;
	double more = isnan(left->operations) ? -1 : left->operations, than = isnan(right->operations) ? -1 : right->operations;

	if (more != than)
		return more < than ? 1 : -1;
	return (left->name > right->name) - (left->name < right->name);
}

struct work_row {
	struct ops_string name;
	int64_t count;
	double operations, bytes, intensity, gflops, gbps;
};

static const struct result_column roofline_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the kernels", RESULT_FIELD(struct work_row, name)},
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of kernels", RESULT_FIELD(struct work_row, count)},
	{.name = "flops", .type = RESULT_NUMBER, .title = "FLOPs", .about = "Floating-point operations",
	 RESULT_FIELD(struct work_row, operations)},
	{.name = "dram_bytes", .type = RESULT_NUMBER, .title = "DRAM", .unit = "bytes", .about = "Bytes read from and written to DRAM",
	 RESULT_FIELD(struct work_row, bytes)},
	{.name = "flops_per_byte", .type = RESULT_NUMBER, .title = "Intensity", .unit = "FLOPs/byte",
	 .about = "Floating-point operations for each byte", RESULT_FIELD(struct work_row, intensity)},
	{.name = "gflops_per_second", .type = RESULT_NUMBER, .title = "Compute", .unit = "GFLOP/s",
	 .about = "Floating-point operations by time; null without the counter of times", RESULT_FIELD(struct work_row, gflops)},
	{.name = "dram_gb_per_second", .type = RESULT_NUMBER, .title = "Bandwidth", .unit = "GB/s",
	 .about = "Bytes by time; null without the counter of times", RESULT_FIELD(struct work_row, gbps)},
};
const struct result_declaration table_roofline = RESULT_DECLARATION("roofline", "The kernels of a name", roofline_columns);

static void write_roofline(struct result_table *out, const struct kernels *kernels, const struct work *works, size_t count)
{
	result_declare(out, &table_roofline, 0);
	for (size_t i = 0; i < count; i++) {
		const struct work *work = &works[i];
		double time_ns = work->time_ns > 0 ? work->time_ns : NAN;

		result_add(out, &(struct work_row){ops_trace_string(kernels->table->trace, work->name), work->count, work->operations,
		                                   work->bytes, work->bytes > 0 ? work->operations / work->bytes : NAN,
		                                   work->operations / time_ns, work->bytes / time_ns});
	}
}

/* Sums by name. The rows' own durations include all passes, so time is known only if it was counted. */
static bool sum_work(struct analysis_run *run, const struct kernels *kernels)
{
	uint32_t *of_name = ops_alloc_zeroed(ops_trace_string_count(kernels->table->trace) + 1, sizeof(*of_name));
	struct work *works = ops_alloc_zeroed(kernels->range_count + 1, sizeof(*works));
	uint32_t count = 0;
	bool done = of_name && works;

	for (size_t i = 0; done && i < kernels->range_count; i++) {
		uint32_t name = kernels->table->rows[kernels->ranges[i]].name;
		struct work *work;

		if (!of_name[name]) {
			works[count].name = name;
			of_name[name] = ++count;
		}
		work = &works[of_name[name] - 1];
		work->count++;
		work->operations += operations_of(kernels, i);
		work->bytes += kernel_counters_bytes_of(kernels, i);
		work->time_ns += counter(kernels, i, "gpu__time_duration.sum");
	}
	if (done) {
		qsort(works, count, sizeof(*works), most_work_first);
		write_roofline(&run->result.table, kernels, works, count);
	}
	ops_free(of_name);
	ops_free(works);
	return done;
}

enum ops_code analysis_roofline(struct analysis_run *run)
{
	struct kernels kernels;
	enum ops_code code = find_kernels(run, &kernels);

	if (!code && kernels.range_count && !sum_work(run, &kernels))
		code = ops_fault_memory(run->error);
	kernels_release(&kernels);
	return code;
}
