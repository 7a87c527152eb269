/* SPDX-License-Identifier: Apache-2.0
 *
 * What an analysis of opstrobe/analyses.h is to those who write one: a function that takes a run and fills a result, and a
 * row in the table of analysis.c.
 *
 *     traces ─▶ event tables (events/) ─▶ analysis ─▶ result ─▶ text
 */
#ifndef OPS_ANALYZE_ANALYSIS_H
#define OPS_ANALYZE_ANALYSIS_H

#include <opstrobe/internal/analyses.h>

#include "analyze/events/event_table.h"
#include "analyze/result.h"
#include "analyze/tables.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_walk.h"

struct analysis_run {
	const struct ops_query_info *analysis;
	const struct ops_rank *ranks;
	size_t count;
	const struct ops_trace_source *source;
	enum ops_format format;
	unsigned columns; /* of the terminal; 0: any number */
	bool round_to_us;
	struct ops_string args; /* of an object that is checked */
	struct event_set events;    /* of `ranks`, in that order; none for analyses of files */
	struct result result;
	struct ops_buffer written; /* of a table with a special form: the answer, instead of `result` */
	struct ops_error *error;
};

/* Fills run->result. Any failure but that of memory has set run->error. */
typedef enum ops_code analysis_function(struct analysis_run *run);

/* --- options: each must be one of the analysis's ------------------------------------------------------------------ */

/* The value as JSON: that given, or the default. */
struct ops_string analysis_arg(const struct analysis_run *run, const char *name);
/* OPS_INVALID when the value is of another type. */
enum ops_code analysis_integer(const struct analysis_run *run, const char *name, int64_t *ret_value);
/* A whole number that is not negative. */
enum ops_code analysis_count(const struct analysis_run *run, const char *name, int64_t *ret_value);
/* The option `limit`: a count, or -1 for null. */
enum ops_code analysis_limit(const struct analysis_run *run, int64_t *ret_limit);
enum ops_code analysis_number(const struct analysis_run *run, const char *name, double *ret_value);
enum ops_code analysis_bool(const struct analysis_run *run, const char *name, bool *ret_value);
/* Decoded, into a buffer of the caller's; null is empty. */
enum ops_code analysis_text(const struct analysis_run *run, const char *name, struct ops_buffer *ret_text);
/* Null, a whole number, or a list of them. */
enum ops_code analysis_list(const struct analysis_run *run, const char *name);
/* Null, or a list of texts. */
enum ops_code analysis_texts(const struct analysis_run *run, const char *name);
/* The option `ranks`, as indexes of run->ranks in the order of the option: null is the lowest rank. Freed by the caller. */
enum ops_code analysis_ranks(const struct analysis_run *run, size_t **ret_indexes, size_t *ret_count);
/* The option `rank`: an index of run->ranks. */
enum ops_code analysis_rank(const struct analysis_run *run, size_t *ret_index);
/* The event table of run->ranks[i], as event_set_table says; NULL after a failure, which the run remembers. */
const struct event_table *analysis_table(struct analysis_run *run, size_t i);
/* Answers with the event table of each rank of the option `ranks`, in the order of the option. A function that returns false has failed as
 * analysis_failed says. */
typedef bool analysis_rank_function(struct analysis_run *run, const struct event_table *table, const void *context);
enum ops_code analysis_each_rank(struct analysis_run *run, analysis_rank_function *answer, const void *context);
/* The code to return for an error that options did not cause: a table is not available, or memory is out. */
enum ops_code analysis_failed(const struct analysis_run *run);
/* A rank as a member's name: writes the key. */
void analysis_rank_key(struct ops_json_writer *json, int64_t rank);

/* --- columns of several tables -------------------------------------------------------------------------------------- */

#define RANK_COLUMN(row_type) \
	{.name = "rank", .type = RESULT_INTEGER, .title = "Rank", .about = "Rank of the process", RESULT_FIELD(row_type, rank)}
#define INDEX_COLUMN(row_type) \
	{.name = "index", .type = RESULT_INTEGER, .title = "Index", .about = "Index of the event in the file", \
	 RESULT_FIELD(row_type, index)}
#define TIME_COLUMN(row_type) \
	{.name = "ts", .type = RESULT_TIME, .title = "Start", .about = "Time since the first event of the ranks", \
	 RESULT_FIELD(row_type, ts_ns)}
#define STREAM_COLUMN(row_type) \
	{.name = "stream", .type = RESULT_INTEGER, .title = "Stream", .about = "Stream of the device", \
	 RESULT_FIELD(row_type, stream)}
#define DEVICE_COLUMN(row_type) \
	{.name = "device", .type = RESULT_INTEGER, .title = "Device", .about = "Number of the device", \
	 RESULT_FIELD(row_type, device)}

/* Trace `i` of the run, with a reference that the caller releases: for queries of complete traces. */
enum ops_code analysis_take_trace(const struct analysis_run *run, size_t i, struct ops_trace **ret_trace);

/* --- analyses ----------------------------------------------------------------------------------------------------- */

/* Of the files that an analysis of files gets: whether it is a trace. */
bool analysis_has_events(const struct ops_rank *rank);
/* The first of the files that is a trace, with or without events; a fault when none is. */
enum ops_code analysis_first_trace(const struct analysis_run *run, const struct ops_trace **ret_trace);

analysis_function analysis_discovery;
analysis_function analysis_parse;
analysis_function analysis_load;
analysis_function analysis_events;
analysis_function analysis_profiler_steps;
analysis_function analysis_temporal_breakdown;
analysis_function analysis_kernels_by_type;
analysis_function analysis_kernels_by_name;
analysis_function analysis_comm_comp_overlap;
analysis_function analysis_idle_time;
analysis_function analysis_idle_intervals;
analysis_function analysis_launch_stats;
analysis_function analysis_queue_summary;
analysis_function analysis_queue_series;
analysis_function analysis_full_queue;
analysis_function analysis_memory_summary;
analysis_function analysis_memory_series;
analysis_function analysis_counter_trace;
analysis_function analysis_user_annotations;
analysis_function analysis_annotated_kernels;
analysis_function analysis_operator_launches;
analysis_function analysis_call_graph;
analysis_function analysis_kernel_sequences;
analysis_function analysis_module_kernels;
analysis_function analysis_critical_path;

analysis_function analysis_potential_stragglers;
analysis_function analysis_diff_iterations;
analysis_function analysis_diff_compare;
analysis_function analysis_diff_ops;
analysis_function analysis_cupti_counters;
analysis_function analysis_roofline;
analysis_function analysis_nccl_collectives;
analysis_function analysis_collective_bandwidth;
analysis_function analysis_memory_timeline;
analysis_function analysis_execution_trace;
analysis_function analysis_info;
analysis_function analysis_key_averages;
analysis_function analysis_validate;
analysis_function analysis_whatif;

/* Of complete traces; these have no event tables. */
analysis_function analysis_overview;
analysis_function analysis_kernels;
analysis_function analysis_modules;
analysis_function analysis_memory;
analysis_function analysis_lines;
analysis_function analysis_data_flow;
analysis_function analysis_threads;
analysis_function analysis_operator_roofline;
analysis_function analysis_diff;
analysis_function analysis_advise;
analysis_function analysis_rules;
analysis_function analysis_views;

#endif
