/* SPDX-License-Identifier: Apache-2.0
 *
 * How the time of each rank's devices divides into idle time, computation and other work. Waits on a device are not
 * work.
 */
#include "analyze/time/device_time.h"

#include <math.h>

struct breakdown {
	int64_t rank, idle_ns, compute_ns, other_ns, kernel_ns;
	double idle_percent, compute_percent, other_percent;
};

static const struct result_column breakdown_columns[] = {
	RANK_COLUMN(struct breakdown),
	{.name = "idle_time(us)", .type = RESULT_TIME, .title = "Idle", .about = "Time without device work",
	 RESULT_FIELD(struct breakdown, idle_ns)},
	{.name = "compute_time(us)", .type = RESULT_TIME, .title = "Compute", .about = "Time with computation",
	 RESULT_FIELD(struct breakdown, compute_ns)},
	{.name = "non_compute_time(us)", .type = RESULT_TIME, .title = "Non-compute",
	 .about = "Time with communication, copies or sets alone", RESULT_FIELD(struct breakdown, other_ns)},
	{.name = "kernel_time(us)", .type = RESULT_TIME, .title = "Total",
	 .about = "Time from the start of the first device work to the end of the last", RESULT_FIELD(struct breakdown, kernel_ns)},
	{.name = "idle_time_pctg", .type = RESULT_PERCENT, .title = "Idle share", .about = "Idle time, of the total",
	 RESULT_FIELD(struct breakdown, idle_percent)},
	{.name = "compute_time_pctg", .type = RESULT_PERCENT, .title = "Compute share", .about = "Compute time, of the total",
	 RESULT_FIELD(struct breakdown, compute_percent)},
	{.name = "non_compute_time_pctg", .type = RESULT_PERCENT, .title = "Non-compute share",
	 .about = "Non-compute time, of the total", RESULT_FIELD(struct breakdown, other_percent)},
};
const struct result_declaration table_temporal_breakdown =
	RESULT_DECLARATION("temporal_breakdown", "A rank", breakdown_columns);

static double temporal_breakdown_percent(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns ? result_round(100.0 * (double)part_ns / (double)whole_ns, 2) : NAN;
}

static void temporal_breakdown_add_row(struct result_table *table, int64_t rank, const struct ops_intervals *all,
                                       int64_t compute_ns)
{
	int64_t kernel_ns = all->count ? all->items[all->count - 1].end_ns - all->items[0].start_ns : 0;
	int64_t idle_ns = kernel_ns - ops_intervals_length(all);
	int64_t other_ns = kernel_ns - compute_ns - idle_ns;

	result_add(table, &(struct breakdown){rank, idle_ns, compute_ns, other_ns, kernel_ns,
	                                      temporal_breakdown_percent(idle_ns, kernel_ns),
	                                      temporal_breakdown_percent(compute_ns, kernel_ns),
	                                      temporal_breakdown_percent(other_ns, kernel_ns)});
}

enum ops_code analysis_temporal_breakdown(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	bool done = true;

	result_declare(table, &table_temporal_breakdown, 0);
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *events = analysis_table(run, i);
		struct ops_intervals all = {0}, compute = {0};

		done = events && device_spans(events, DEVICE_ALL_CLASSES, &all) &&
		       device_spans(events, 1u << EVENT_COMPUTATION, &compute);
		if (done)
			temporal_breakdown_add_row(table, run->ranks[i].rank, &all, ops_intervals_length(&compute));
		ops_intervals_release(&all);
		ops_intervals_release(&compute);
	}
	return done ? OPS_OK : analysis_failed(run);
}

struct overlap {
	int64_t rank;
	double percent;
};

static const struct result_column overlap_columns[] = {
	RANK_COLUMN(struct overlap),
	{.name = "comp_comm_overlap_pctg", .type = RESULT_PERCENT, .title = "Overlapped communication",
	 .about = "Part of the communication time during which computation runs; null without communication",
	 RESULT_FIELD(struct overlap, percent)},
};
const struct result_declaration table_comm_comp_overlap = RESULT_DECLARATION("comm_comp_overlap", "A rank", overlap_columns);

/* Writes the share of communication that overlaps with computation. */
enum ops_code analysis_comm_comp_overlap(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	bool done = true;

	result_declare(table, &table_comm_comp_overlap, 0);
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *events = analysis_table(run, i);
		struct ops_intervals communication = {0}, compute = {0};

		done = events && device_spans(events, 1u << EVENT_COMMUNICATION, &communication) &&
		       device_spans(events, 1u << EVENT_COMPUTATION, &compute);
		if (done)
			result_add(table,
			           &(struct overlap){run->ranks[i].rank,
			                             temporal_breakdown_percent(ops_intervals_common(&communication, &compute),
			                                                        ops_intervals_length(&communication))});
		ops_intervals_release(&communication);
		ops_intervals_release(&compute);
	}
	return done ? OPS_OK : analysis_failed(run);
}
