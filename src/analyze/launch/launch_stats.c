/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations of launches, of the work that they launch, and of the delay between them.
 */
#include "analyze/launch/launches.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"
#include "derive/calls.h"

#define FIRST_ROWS 5

struct cutoffs {
	double runtime_us;
	double delay_us;
};

/* A launch and a piece of work that it launched, matched by correlation. */
struct pair {
	int64_t correlation;
	uint32_t call;
	uint32_t work;
};

/* A pair as a row of the table. */
struct launch_row {
	int64_t rank, correlation, cpu_ns, gpu_ns, delay_ns;
};

#define LAUNCH_COLUMNS                                                                                                  \
	{.name = "correlation", .type = RESULT_INTEGER, .title = "Correlation",                                            \
	 .about = "Number that the launch call and the device work share", RESULT_FIELD(struct launch_row, correlation)},  \
	{.name = "cpu_duration", .type = RESULT_TIME, .title = "Launch call", .about = "Duration of the launch call",        \
	 RESULT_FIELD(struct launch_row, cpu_ns)},                                                                       \
	{.name = "gpu_duration", .type = RESULT_TIME, .title = "Device work", .about = "Duration of the device work",        \
	 RESULT_FIELD(struct launch_row, gpu_ns)},                                                                       \
	{.name = "launch_delay", .type = RESULT_TIME, .unbounded = true, .title = "Launch delay",                                             \
	 .about = "Time from the end of the call to the start of the work", RESULT_FIELD(struct launch_row, delay_ns)}

static const struct result_column launch_columns[] = {RANK_COLUMN(struct launch_row), LAUNCH_COLUMNS};
const struct result_declaration table_launches =
	RESULT_DECLARATION("cuda_kernel_launch_stats", "A launch, with the option launches", launch_columns);
static const struct result_column first_columns[] = {LAUNCH_COLUMNS};
const struct result_declaration table_first_launches =
	RESULT_DECLARATION("cuda_kernel_launch_stats.first_rows", "A launch: the first of a rank", first_columns);

/* Durations of launches and of the launched work, in microseconds. */
struct launches {
	OPS_ARRAY(struct pair) pairs;
	struct numbers cpu, gpu, delay;
	struct result_table first; /* rows */
	int64_t short_kernels, gpu_shorter, runtime_outliers, delay_outliers;
};

static int64_t delay_of(const struct event_row *call, const struct event_row *work)
{
	int64_t delay_ns = work->ts_ns - event_end(call);

	return delay_ns > 0 ? delay_ns : 0;
}

static bool launch_stats_add(struct launches *launches, const struct event_table *table, const struct pair *pair,
                             const struct cutoffs *cutoffs)
{
	const struct event_row *call = &table->rows[pair->call], *work = &table->rows[pair->work];
	double cpu = (double)call->dur_ns / 1000, gpu = (double)work->dur_ns / 1000;
	double delay = (double)delay_of(call, work) / 1000;

	launches->gpu_shorter += gpu < cpu;
	launches->short_kernels += gpu < cpu && cpu <= cutoffs->runtime_us;
	launches->runtime_outliers += cpu > cutoffs->runtime_us;
	launches->delay_outliers += delay > cutoffs->delay_us;
	return numbers_push(&launches->cpu, cpu) && numbers_push(&launches->gpu, gpu) &&
	       numbers_push(&launches->delay, delay);
}

static bool launch_stats_collect(struct launches *launches, const struct event_table *table, bool memory)
{
	const uint8_t *calls = ops_calls_by_name(table->trace);
	unsigned counted = OPS_CALL_LAUNCH | (memory ? OPS_CALL_COPY | OPS_CALL_SET : 0);
	bool done = calls;

	for (size_t i = 0; done && i < table->kept_count; i++) {
		uint32_t call = table->kept[i];

		if (table->rows[call].stream >= 0 || !(calls[table->rows[call].name] & counted))
			continue;
		for (uint32_t at = table->launched.first[call]; done && at < table->launched.first[call + 1]; at++) {
			uint32_t work = table->launched.order[at];

			if (table->rows[work].is_kept)
				done = OPS_ARRAY_APPEND(&launches->pairs, (struct pair){table->rows[call].correlation, call, work});
		}
	}
	return done;
}

OPS_ORDER(compare_pairs, struct pair, OPS_UP(correlation) OPS_UP(work))

static void put_launch(struct result_table *out, const struct event_table *table, const struct pair *pair)
{
	const struct event_row *call = &table->rows[pair->call], *work = &table->rows[pair->work];

	result_add(out, &(struct launch_row){table->rank, pair->correlation, call->dur_ns, work->dur_ns, delay_of(call, work)});
}

static bool launch_stats_sum_up(struct launches *launches, const struct event_table *table, const struct cutoffs *cutoffs)
{
	bool done = true;

	for (size_t i = 0; done && i < launches->pairs.count; i++) {
		done = launch_stats_add(launches, table, &launches->pairs.items[i], cutoffs);
		if (i < FIRST_ROWS)
			put_launch(&launches->first, table, &launches->pairs.items[i]);
	}
	return done;
}

static void launch_stats_write_figures(struct ops_json_writer *json, const char *key, struct numbers *numbers)
{
	struct description d = describe(numbers);
	const struct {
		const char *key;
		double value;
	} figures[] = {{"sum", d.sum}, {"min", d.min}, {"max", d.max}, {"mean", d.mean}, {"p50", d.half}};

	ops_json_member_open(json, key, '{');
	ops_json_member(json, "count", (int64_t)d.count);
	for (size_t i = 0; d.count && i < sizeof(figures) / sizeof(figures[0]); i++) {
		ops_json_member_number(json, figures[i].key, figures[i].value);
	}
	ops_json_close(json, '}');
}

static void write_launches(struct result *result, struct launches *launches)
{
	struct ops_json_writer *json = &result->json;

	ops_json_open(json, '{');
	ops_json_member(json, "rows", (int64_t)launches->cpu.items.count);
	launch_stats_write_figures(json, "cpu_duration", &launches->cpu);
	launch_stats_write_figures(json, "gpu_duration", &launches->gpu);
	launch_stats_write_figures(json, "launch_delay", &launches->delay);
	ops_json_member(json, "short_kernels", launches->short_kernels);
	ops_json_member(json, "gpu_shorter_than_cpu", launches->gpu_shorter);
	ops_json_member(json, "runtime_outliers", launches->runtime_outliers);
	ops_json_member(json, "launch_delay_outliers", launches->delay_outliers);
	ops_json_key(json, "first_rows");
	result_put_table(result, &launches->first);
	ops_json_close(json, '}');
}

static bool launch_stats_write_sums(struct result *result, const struct event_table *table, struct launches *launches,
                                    const struct cutoffs *cutoffs)
{
	result_declare(&launches->first, &table_first_launches, 0);
	if (!launch_stats_sum_up(launches, table, cutoffs))
		return false;
	analysis_rank_key(&result->json, table->rank);
	write_launches(result, launches);
	return true;
}

struct launch_options {
	struct cutoffs cutoffs;
	bool memory, all;
};

static bool launch_stats_write_rank(struct analysis_run *run, const struct event_table *table, const void *context)
{
	const struct launch_options *options = context;
	struct launches launches = {.first = {.rounded = run->result.table.rounded}};
	bool done = launch_stats_collect(&launches, table, options->memory);

	if (done)
		OPS_ARRAY_SORT(&launches.pairs, compare_pairs);
	for (size_t i = 0; done && options->all && i < launches.pairs.count; i++)
		put_launch(&run->result.table, table, &launches.pairs.items[i]);
	if (!options->all)
		done = done && launch_stats_write_sums(&run->result, table, &launches, &options->cutoffs);
	OPS_ARRAY_RELEASE(&launches.pairs);
	numbers_release(&launches.cpu);
	numbers_release(&launches.gpu);
	numbers_release(&launches.delay);
	result_table_release(&launches.first);
	return done;
}

enum ops_code analysis_launch_stats(struct analysis_run *run)
{
	struct launch_options options = {
		.cutoffs = {analysis_number(run, "runtime_cutoff"), analysis_number(run, "launch_delay_cutoff")},
		.memory = analysis_bool(run, "include_memory_events"), .all = analysis_bool(run, "launches")};
	enum ops_code code = run->code;

	if (code)
		return code;
	if (options.all)
		result_declare(&run->result.table, &table_launches, 0);
	else
		ops_json_open(&run->result.json, '{');
	code = analysis_each_rank(run, launch_stats_write_rank, &options);
	if (!options.all)
		ops_json_close(&run->result.json, '}');
	return code;
}
