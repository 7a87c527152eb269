/* SPDX-License-Identifier: Apache-2.0
 *
 * How to implement an analysis (opstrobe/analyses.h): write a function that takes a run and fills a result, and add an
 * entry to analysis_list.h.
 *
 *     traces ─▶ event tables (events/) ─▶ analysis ─▶ result ─▶ text
 */
#ifndef OPS_ANALYZE_ANALYSIS_H
#define OPS_ANALYZE_ANALYSIS_H

#include <opstrobe/internal/analyses.h>

#include "analyze/analysis_list.h"
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
	unsigned columns; /* width of the terminal; 0: any */
	bool round_to_us;
	enum ops_rules rules;
	struct ops_string args; /* members of a checked JSON object */
	struct ops_arena texts; /* values of options that are texts */
	enum ops_code code;     /* the first error of the options that were read */
	struct event_set events;    /* tables of `ranks`, in that order; empty for analyses of files */
	struct result result;
	struct ops_buffer written; /* a page of text, instead of `result` */
	struct ops_error *error;
};

/* Fills run->result. Sets run->error on any failure except lack of memory. */
typedef enum ops_code analysis_function(struct analysis_run *run);

/* --- options: each must be declared by the analysis --------------------------------------------------------------- */

/* Returns the value as JSON: the given one, or the default. */
struct ops_string analysis_arg(const struct analysis_run *run, const char *name);
/* Return the value. If it is of another type, they set run->code to OPS_INVALID and return 0, false or "". An analysis reads its
 * options and then returns run->code if it is set. */
int64_t analysis_integer(struct analysis_run *run, const char *name);
/* An integer that is not negative. */
int64_t analysis_count(struct analysis_run *run, const char *name);
/* The option `limit`: a count, or -1 for null. */
int64_t analysis_limit(struct analysis_run *run);
double analysis_number(struct analysis_run *run, const char *name);
bool analysis_bool(struct analysis_run *run, const char *name);
/* A text that ends with a NUL and lives as long as the run; "" for null. */
struct ops_string analysis_text(struct analysis_run *run, const char *name);
/* A list of such texts; none for null. */
const struct ops_string *analysis_texts(struct analysis_run *run, const char *name, size_t *ret_count);
/* A list of integers, or a single one, which live as long as the run; NULL for null. */
const int64_t *analysis_integers(struct analysis_run *run, const char *name, size_t *ret_count);
/* Returns true if such a list has the number. */
bool analysis_integers_have(const int64_t *list, size_t count, int64_t number);
/* The option `rank`, as an index of run->ranks. */
size_t analysis_rank(struct analysis_run *run);
/* Gets the option `ranks` as indexes of run->ranks, in the order of the option; null selects the lowest rank. The
 * caller frees them. */
enum ops_code analysis_ranks(const struct analysis_run *run, size_t **ret_indexes, size_t *ret_count);
/* Returns the event table of run->ranks[i], as event_set_table() does. Returns NULL after a failure, which the run
 * records. */
const struct event_table *analysis_table(struct analysis_run *run, size_t i);
/* Calls the function with the event table of each rank in the option `ranks`, in the order of the option. If the
 * function returns false, this fails with the code of analysis_failed(). */
typedef bool analysis_rank_function(struct analysis_run *run, const struct event_table *table, const void *context);
enum ops_code analysis_each_rank(struct analysis_run *run, analysis_rank_function *answer, const void *context);
/* Returns the code for an error that options did not cause: a table is not available, or out of memory. */
enum ops_code analysis_failed(const struct analysis_run *run);
/* Writes a rank as the name of a member. */
void analysis_rank_key(struct ops_json_writer *json, int64_t rank);

/* --- columns that tables share -------------------------------------------------------------------------------------- */

#define RANK_COLUMN(row_type) \
	{.name = "rank", .type = RESULT_INTEGER, .priority = RESULT_MAJOR, .title = "Rank", .about = "Rank of the process", \
	 RESULT_FIELD(row_type, rank)}
#define INDEX_COLUMN(row_type) \
	{.name = "index", .type = RESULT_INTEGER, .title = "Index", .about = "Index of the event in the file", \
	 RESULT_FIELD(row_type, index)}
#define TIME_COLUMN(row_type) \
	{.name = "ts", .type = RESULT_MOMENT, .title = "Start", .about = "Time since the first event of the ranks", \
	 RESULT_FIELD(row_type, ts_ns)}
#define STREAM_COLUMN(row_type) \
	{.name = "stream", .type = RESULT_INTEGER, .title = "Stream", .about = "Stream of the device", \
	 RESULT_FIELD(row_type, stream)}
#define DEVICE_COLUMN(row_type) \
	{.name = "device", .type = RESULT_INTEGER, .title = "Device", .about = "Number of the device", \
	 RESULT_FIELD(row_type, device)}

/* Gets trace `i` of the run, for queries of complete traces. Fails for a file that is not a trace. The caller releases the
 * reference. */
enum ops_code analysis_open_trace(const struct analysis_run *run, size_t i, struct ops_trace **ret_trace);

/* --- analyses ----------------------------------------------------------------------------------------------------- */

/* Returns true if a file is a trace. For analyses of files. */
bool analysis_has_events(const struct ops_rank *rank);
/* Fails because file `i` is not a trace. */
enum ops_code analysis_fail_not_a_trace(const struct analysis_run *run, size_t i);
/* Gets the first file that is a trace, with or without events. Fails if there is none. */
enum ops_code analysis_first_trace(const struct analysis_run *run, const struct ops_trace **ret_trace);

#define DECLARE(id, inputs, subject, options, function, ...) analysis_function function;
ANALYSES(DECLARE) MORE_ANALYSES(DECLARE) TABLES(DECLARE)
#undef DECLARE

#endif
