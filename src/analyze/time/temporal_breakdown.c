/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time of each rank's devices goes (2): idle, computing, and busy with something else. That something waited on a
 * device is no work of it (flaw 3).
 */
#include "analyze/time/device_time.h"

#include <math.h>

static double percent(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns ? result_round(100.0 * (double)part_ns / (double)whole_ns, 2) : NAN;
}

static void add_row(struct result_table *table, int64_t rank, const struct ops_intervals *all, int64_t compute_ns)
{
	int64_t kernel_ns = all->count ? all->items[all->count - 1].end_ns - all->items[0].start_ns : 0;
	int64_t idle_ns = kernel_ns - ops_intervals_length(all);
	int64_t other_ns = kernel_ns - compute_ns - idle_ns;

	result_integer(table, rank);
	result_time(table, idle_ns);
	result_time(table, compute_ns);
	result_time(table, other_ns);
	result_time(table, kernel_ns);
	result_number(table, percent(idle_ns, kernel_ns));
	result_number(table, percent(compute_ns, kernel_ns));
	result_number(table, percent(other_ns, kernel_ns));
}

enum ops_code analysis_temporal_breakdown(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	bool done = true;

	RESULT_COLUMNS(table, RESULT_COLUMN("rank", INTEGER), RESULT_COLUMN("idle_time(us)", TIME), RESULT_COLUMN("compute_time(us)", TIME),
	               RESULT_COLUMN("non_compute_time(us)", TIME), RESULT_COLUMN("kernel_time(us)", TIME),
	               RESULT_COLUMN("idle_time_pctg", PERCENT), RESULT_COLUMN("compute_time_pctg", PERCENT),
	               RESULT_COLUMN("non_compute_time_pctg", PERCENT));
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *events = analysis_table(run, i);
		struct ops_intervals all = {0}, compute = {0};

		done = events && device_spans(events, DEVICE_ALL_CLASSES, &all) &&
		       device_spans(events, 1u << EVENT_COMPUTATION, &compute);
		if (done)
			add_row(table, run->ranks[i].rank, &all, ops_intervals_length(&compute));
		ops_intervals_release(&all);
		ops_intervals_release(&compute);
	}
	return done ? OPS_OK : analysis_failed(run);
}

/* How much of the communication ran beside computation (4). */
enum ops_code analysis_comm_comp_overlap(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	bool done = true;

	RESULT_COLUMNS(table, RESULT_COLUMN("rank", INTEGER), RESULT_COLUMN("comp_comm_overlap_pctg", PERCENT));
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *events = analysis_table(run, i);
		struct ops_intervals communication = {0}, compute = {0};

		done = events && device_spans(events, 1u << EVENT_COMMUNICATION, &communication) &&
		       device_spans(events, 1u << EVENT_COMPUTATION, &compute);
		if (done) {
			result_integer(table, run->ranks[i].rank);
			result_number(table, percent(ops_intervals_common(&communication, &compute), ops_intervals_length(&communication)));
		}
		ops_intervals_release(&communication);
		ops_intervals_release(&compute);
	}
	return done ? OPS_OK : analysis_failed(run);
}
