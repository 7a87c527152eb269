/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences between two traces by name: number of runs and total time in the selected steps.
 * A trace without steps is compared completely.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/compare/short_name.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

enum { CONTROL, TEST, SIDES };
static const char *const side_names[SIDES] = {"control", "test"};

struct pair {
	uint32_t name;
	int64_t counts[SIDES];
	int64_t durations[SIDES];
	double squares[SIDES]; /* sums of the squares of its time in each step */
	int64_t step_ns;       /* time in the current step */
};

struct comparison {
	struct analysis_run *run;
	struct ops_intern names;
	OPS_ARRAY(struct pair) pairs;
	struct ops_buffer scratch;
	bool host;
	bool device;
	bool short_names;
	size_t steps[SIDES]; /* number of compared steps */
};

/* --- steps ------------------------------------------------------------------------------------------------------------ */

static bool own_steps(const struct event_table *table, int64_t **ret_steps, size_t *ret_count)
{
	int64_t *steps = ops_alloc_zeroed(table->steps.count + 1, sizeof(*steps));

	*ret_steps = steps;
	*ret_count = 0;
	if (!steps)
		return false;
	for (size_t i = 0; i < table->steps.count; i++)
		if (!ops_step_number(event_name(table, &table->rows[table->steps.items[i]]), &steps[i]))
			steps[i] = EVENT_NO_STEP;
	*ret_count = ops_sort_unique_int64(steps, table->steps.count);
	return true;
}

/* Removes the steps of `steps` that have no row left after a filter. Returns false if out of memory. */
static bool leave_steps(const struct event_table *table, int64_t *steps, size_t *count)
{
	bool *left = ops_alloc_zeroed(*count + 1, sizeof(*left));
	size_t kept = 0;

	for (size_t i = 0; left && i < table->kept_count; i++) {
		const int64_t *step = bsearch(&table->rows[table->kept[i]].step, steps, *count, sizeof(*steps), ops_compare_int64);

		if (step)
			left[step - steps] = true;
	}
	for (size_t i = 0; left && i < *count; i++)
		if (left[i])
			steps[kept++] = steps[i];
	*count = kept;
	ops_free(left);
	return left != NULL;
}

static enum ops_code check_steps(const struct comparison *comparison, int side, const int64_t *own, size_t own_count,
                                 const int64_t *steps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!bsearch(&steps[i], own, own_count, sizeof(*own), ops_compare_int64))
			return ops_fault(comparison->run->error, OPS_INVALID,
			                 "the %s has no step %" PRId64 "; 'opstrobe analyze trace_diff.iterations' lists those it has",
			                 side_names[side], steps[i]);
	return OPS_OK;
}

/* Returns the selected steps: a number, or a list of numbers; null selects the lowest, "all" all but the last, which is
 * often truncated. The caller frees the list. NULL: everything. */
static enum ops_code chosen_steps(const struct comparison *comparison, int side, const struct event_table *table,
                                  int64_t **ret_steps, size_t *ret_count)
{
	static const char *const options[SIDES] = {"control_iteration", "test_iteration"};
	bool all = ops_string_is(analysis_arg(comparison->run, options[side]), "\"all\"");
	size_t own_count, count = 0;
	const int64_t *wanted = all ? NULL : analysis_integers(comparison->run, options[side], &count);
	int64_t *own, *steps;
	enum ops_code code;

	if (comparison->run->code)
		return comparison->run->code;
	if (!own_steps(table, &own, &own_count))
		return ops_fault_memory(comparison->run->error);
	if (!wanted) {
		*ret_steps = own;
		*ret_count = all && own_count > 1 ? own_count - 1 : own_count ? 1 : 0;
		return OPS_OK;
	}
	steps = ops_alloc_zeroed(count + 1, sizeof(*steps));
	*ret_steps = steps;
	if (steps)
		memcpy(steps, wanted, count * sizeof(*steps));
	*ret_count = steps ? ops_sort_unique_int64(steps, count) : 0;
	code = steps ? check_steps(comparison, side, own, own_count, steps, *ret_count)
	             : ops_fault_memory(comparison->run->error);
	ops_free(own);
	return code;
}

/* --- counting --------------------------------------------------------------------------------------------------------- */

static struct pair *trace_diff_pair_of(struct comparison *comparison, struct ops_string name)
{
	struct pair *pair;
	uint32_t id;

	if (comparison->short_names) {
		short_name(name, &comparison->scratch);
		if (comparison->scratch.failed)
			return NULL;
		name = (struct ops_string){ops_buffer_text(&comparison->scratch), comparison->scratch.size};
	}
	id = ops_intern_add(&comparison->names, name.bytes, name.size);
	pair = OPS_ARRAY_AT(&comparison->pairs, id);
	if (pair)
		pair->name = id;
	return pair;
}

/* Rows of the compared steps, one step after another. */
struct chosen {
	const struct event_table *table;
	const struct comparison *comparison;
	int64_t *numbers; /* of the steps */
	size_t steps;
	struct ops_groups rows; /* by step: indexes of kept rows */
	uint32_t *pairs; /* by string of the trace: index of its pair, so that each name is shortened once */
};

static const struct event_row *chosen_row(const struct chosen *chosen, uint32_t kept)
{
	return &chosen->table->rows[chosen->table->kept[kept]];
}

static uint32_t chosen_step_of(const void *context, uint32_t kept)
{
	const struct chosen *chosen = context;
	const struct event_row *row = chosen_row(chosen, kept);
	const int64_t *step = chosen->numbers;

	if (!(row->stream < 0 ? chosen->comparison->host : chosen->comparison->device))
		return OPS_NONE;
	if (chosen->table->steps.count)
		step = bsearch(&row->step, chosen->numbers, chosen->steps, sizeof(*step), ops_compare_int64);
	return step ? (uint32_t)(step - chosen->numbers) : OPS_NONE;
}

static bool trace_diff_add_row(struct comparison *comparison, int side, struct chosen *chosen, const struct event_row *row)
{
	uint32_t *index = &chosen->pairs[row->name];
	struct pair *pair;

	if (*index == OPS_NONE) {
		pair = trace_diff_pair_of(comparison, ops_trace_string(chosen->table->trace, row->name));
		if (!pair)
			return false;
		*index = (uint32_t)(pair - comparison->pairs.items);
	}
	pair = &comparison->pairs.items[*index];
	pair->counts[side]++;
	pair->durations[side] = ops_sum(pair->durations[side], row->dur_ns);
	pair->step_ns = ops_sum(pair->step_ns, row->dur_ns);
	return true;
}

static bool trace_diff_add_rows(struct comparison *comparison, int side, struct chosen *chosen)
{
	for (size_t step = 0; step < chosen->steps; step++) {
		for (size_t i = chosen->rows.first[step]; i < chosen->rows.first[step + 1]; i++)
			if (!trace_diff_add_row(comparison, side, chosen, chosen_row(chosen, chosen->rows.order[i])))
				return false;
		for (size_t i = chosen->rows.first[step]; i < chosen->rows.first[step + 1]; i++) {
			struct pair *pair = &comparison->pairs.items[chosen->pairs[chosen_row(chosen, chosen->rows.order[i])->name]];

			pair->squares[side] += (double)pair->step_ns * (double)pair->step_ns;
			pair->step_ns = 0;
		}
	}
	return true;
}

static enum ops_code add_side(struct comparison *comparison, int side)
{
	struct chosen chosen = {.table = analysis_table(comparison->run, (size_t)side), .comparison = comparison};
	enum ops_code code = chosen.table ? chosen_steps(comparison, side, chosen.table, &chosen.numbers, &chosen.steps)
	                                  : analysis_failed(comparison->run);

	if (!code && !chosen.table->steps.count)
		chosen.steps = 1; /* all rows are one step */
	chosen.pairs = code ? NULL : ops_alloc_none(ops_trace_string_count(chosen.table->trace) + 1);
	if (!code && !(chosen.pairs && ops_groups_init(&chosen.rows, chosen.table->kept_count, chosen.steps, chosen_step_of, &chosen) &&
	               trace_diff_add_rows(comparison, side, &chosen)))
		code = ops_fault_memory(comparison->run->error);
	comparison->steps[side] = chosen.steps;
	ops_groups_release(&chosen.rows);
	ops_free(chosen.numbers);
	ops_free(chosen.pairs);
	return code;
}

static int64_t count_change(const struct pair *pair)
{
	return pair->counts[TEST] - pair->counts[CONTROL];
}

static int64_t duration_change(const struct pair *pair)
{
	return ops_difference(pair->durations[TEST], pair->durations[CONTROL]);
}

static int trace_diff_compare_names(const struct comparison *comparison, const struct pair *left, const struct pair *right)
{
	return ops_string_compare(ops_intern_text(&comparison->names, left->name), ops_intern_text(&comparison->names, right->name));
}

static int trace_diff_by_name(const void *a, const void *b, void *comparison)
{
	return trace_diff_compare_names(comparison, a, b);
}

/* Orders pairs by change, the largest first. */
static int by_change(const void *a, const void *b, void *comparison)
{
	int64_t left = duration_change(a), right = duration_change(b);
	uint64_t left_size = left < 0 ? -(uint64_t)left : (uint64_t)left;
	uint64_t right_size = right < 0 ? -(uint64_t)right : (uint64_t)right;

	return left_size != right_size ? (left_size < right_size ? 1 : -1) : trace_diff_compare_names(comparison, a, b);
}

static enum ops_code trace_diff_compare(struct comparison *comparison, int (*order)(const void *, const void *, void *))
{
	struct ops_string device = analysis_arg(comparison->run, "device_type");
	enum ops_code code = OPS_OK;

	comparison->host = ops_string_is(device, "\"CPU\"") || ops_string_is(device, "\"ALL\"");
	comparison->device = ops_string_is(device, "\"GPU\"") || ops_string_is(device, "\"ALL\"");
	if (!comparison->host && !comparison->device)
		return ops_fault(comparison->run->error, OPS_INVALID, "option 'device_type' must be CPU, GPU or ALL");
	for (int side = 0; !code && side < SIDES; side++)
		code = add_side(comparison, side);
	if (!code)
		OPS_ARRAY_SORT_BY(&comparison->pairs, order, comparison);
	return code;
}

static void trace_diff_release(struct comparison *comparison)
{
	ops_intern_release(&comparison->names);
	OPS_ARRAY_RELEASE(&comparison->pairs);
	ops_buffer_release(&comparison->scratch);
}

/* --- trace_diff.compare ----------------------------------------------------------------------------------------------- */

/* Returns the square of a mean's standard error; NaN for one step. */
static double error_squared(const struct comparison *comparison, const struct pair *pair, int side)
{
	double steps = (double)comparison->steps[side], sum = (double)pair->durations[side];
	double squares = pair->squares[side] - sum * sum / steps;

	return steps > 1 ? (squares > 0 ? squares : 0) / (steps - 1) / steps : (double)NAN;
}

/* Returns NaN without steps. */
static double trace_diff_mean_us(const struct comparison *comparison, const struct pair *pair, int side)
{
	double steps = (double)comparison->steps[side];

	return steps > 0 ? (double)pair->durations[side] / 1e3 / steps : (double)NAN;
}

struct pair_row {
	struct ops_string name;
	int64_t counts[SIDES], durations[SIDES], count_change, duration_change;
	const char *sign;
	double means_us[SIDES], mean_change_us, noise_us;
};

#define PER_STEP 1u
#define PER_STEP_ONLY .option = PER_STEP, .when = "with the option per_step"

static const struct result_column pair_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the events", RESULT_FIELD(struct pair_row, name)},
	{.name = "control_counts", .type = RESULT_COUNT, .title = "Base calls", .about = "Number of events in the first trace",
	 RESULT_FIELD(struct pair_row, counts[CONTROL])},
	{.name = "control_total_duration", .type = RESULT_TIME, .title = "Base total", .about = "Sum of their durations",
	 RESULT_FIELD(struct pair_row, durations[CONTROL])},
	{.name = "test_counts", .type = RESULT_COUNT, .title = "New calls", .about = "Number of events in the second trace",
	 RESULT_FIELD(struct pair_row, counts[TEST])},
	{.name = "test_total_duration", .type = RESULT_TIME, .title = "New total", .about = "Sum of their durations",
	 RESULT_FIELD(struct pair_row, durations[TEST])},
	{.name = "diff_counts", .type = RESULT_COUNT, .title = "Calls change", .about = "New less base",
	 RESULT_FIELD(struct pair_row, count_change)},
	{.name = "diff_duration", .type = RESULT_TIME, .unbounded = true, .title = "Total change", .about = "New less base",
	 RESULT_FIELD(struct pair_row, duration_change)},
	{.name = "counts_change_categories", .type = RESULT_TEXT, .title = "Sign",
	 .about = "+: more events in the second trace; -: fewer; =: as many", RESULT_FIELD(struct pair_row, sign)},
	{.name = "control_duration_per_step", .type = RESULT_NUMBER, .title = "Base per step", .unit = "us", PER_STEP_ONLY,
	 .about = "Total of the first trace by its steps", RESULT_FIELD(struct pair_row, means_us[CONTROL])},
	{.name = "test_duration_per_step", .type = RESULT_NUMBER, .title = "New per step", .unit = "us", PER_STEP_ONLY,
	 .about = "Total of the second trace by its steps", RESULT_FIELD(struct pair_row, means_us[TEST])},
	{.name = "diff_duration_per_step", .type = RESULT_NUMBER, .title = "Change per step", .unit = "us", PER_STEP_ONLY,
	 .about = "New less base", RESULT_FIELD(struct pair_row, mean_change_us)},
	{.name = "noise_per_step", .type = RESULT_NUMBER, .title = "Noise per step", .unit = "us", PER_STEP_ONLY,
	 .about = "Two standard errors of that change; null with a single step", RESULT_FIELD(struct pair_row, noise_us)},
};
const struct result_declaration table_trace_diff =
	RESULT_DECLARATION("trace_diff.compare", "The events of a name, with the option whole; else in top_by_abs_diff_duration",
	                   pair_columns);

static void write_pairs(struct result_table *out, const struct comparison *comparison, bool per_step)
{
	static const char *const signs[] = {"-", "=", "+"};

	out->copies = true;
	result_declare(out, &table_trace_diff, per_step ? PER_STEP : 0);
	for (size_t i = 0; i < comparison->pairs.count; i++) {
		const struct pair *pair = &comparison->pairs.items[i];
		int64_t change = count_change(pair);
		struct pair_row row = {
			.name = ops_intern_text(&comparison->names, pair->name),
			.counts = {pair->counts[CONTROL], pair->counts[TEST]},
			.durations = {pair->durations[CONTROL], pair->durations[TEST]},
			.count_change = change,
			.duration_change = duration_change(pair),
			.sign = signs[(change > 0) - (change < 0) + 1],
			.means_us = {trace_diff_mean_us(comparison, pair, CONTROL), trace_diff_mean_us(comparison, pair, TEST)},
			.noise_us = 2 * sqrt(error_squared(comparison, pair, CONTROL) + error_squared(comparison, pair, TEST)) /
			            1e3,
		};

		row.mean_change_us = row.means_us[TEST] - row.means_us[CONTROL];
		result_add(out, &row);
	}
}

static void trace_diff_write_sums(struct ops_json_writer *json, const struct comparison *comparison)
{
	static const char *const signs[] = {"-", "=", "+"};
	static const char *const keys[SIDES][2] = {{"control_counts", "control_total_duration"},
	                                           {"test_counts", "test_total_duration"}};
	int64_t changes[3] = {0};

	for (size_t i = 0; i < comparison->pairs.count; i++) {
		int64_t change = count_change(&comparison->pairs.items[i]);

		changes[(change > 0) - (change < 0) + 1]++;
	}
	ops_json_member(json, "rows", (int64_t)comparison->pairs.count);
	ops_json_member_open(json, "categories", '{');
	for (int i = 0; i < 3; i++) {
		if (!changes[i])
			continue;
		ops_json_member(json, signs[i], changes[i]);
	}
	ops_json_close(json, '}');
	for (int side = 0; side < SIDES; side++) {
		int64_t counts = 0, durations = 0;

		for (size_t i = 0; i < comparison->pairs.count; i++) {
			counts += comparison->pairs.items[i].counts[side];
			durations = ops_sum(durations, comparison->pairs.items[i].durations[side]);
		}
		ops_json_member(json, keys[side][0], counts);
		ops_json_member_us(json, keys[side][1], durations);
	}
}

#define SUMMARY_NAMES 12

enum ops_code analysis_diff_compare(struct analysis_run *run)
{
	struct comparison comparison = {.run = run};
	struct ops_json_writer *json = &run->result.json;
	struct result_table table = {.rounded = run->result.table.rounded};
	bool whole = analysis_bool(run, "whole"), per_step = analysis_bool(run, "per_step");
	int64_t limit = analysis_limit(run);
	enum ops_code code;

	comparison.short_names = analysis_bool(run, "use_short_name");
	code = run->code;
	if (!code)
		code = trace_diff_compare(&comparison, by_change);
	if (!code && whole) {
		write_pairs(&run->result.table, &comparison, per_step);
	} else if (!code) {
		ops_json_open(json, '{');
		trace_diff_write_sums(json, &comparison);
		ops_json_key(json, "top_by_abs_diff_duration");
		write_pairs(&table, &comparison, per_step);
		result_table_cut(&table, limit < 0 ? SUMMARY_NAMES : (size_t)limit);
		table.total_rows = comparison.pairs.count;
		result_put_table(&run->result, &table);
		ops_json_close(json, '}');
	}
	result_table_release(&table);
	trace_diff_release(&comparison);
	return code;
}

/* --- trace_diff.ops_diff ---------------------------------------------------------------------------------------------- */

enum fate { ADDED, DELETED, INCREASED, DECREASED, UNCHANGED, FATES };

static enum fate fate_of(const struct pair *pair)
{
	int64_t change = count_change(pair);

	if (!pair->counts[CONTROL])
		return ADDED;
	if (!pair->counts[TEST])
		return DELETED;
	return change > 0 ? INCREASED : change < 0 ? DECREASED : UNCHANGED;
}

static void write_fate(struct ops_json_writer *json, const struct comparison *comparison, enum fate fate, int64_t limit)
{
	int64_t count = 0;

	ops_json_open(json, '{');
	for (size_t i = 0; i < comparison->pairs.count; i++)
		count += fate_of(&comparison->pairs.items[i]) == fate;
	ops_json_member(json, "count", count);
	ops_json_member_open(json, "names", '[');
	for (size_t i = 0; i < comparison->pairs.count && limit > 0; i++) {
		struct ops_string name = ops_intern_text(&comparison->names, comparison->pairs.items[i].name);

		if (fate_of(&comparison->pairs.items[i]) != fate)
			continue;
		ops_json_text(json, name.bytes, name.size);
		limit--;
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

enum ops_code analysis_diff_ops(struct analysis_run *run)
{
	static const char *const keys[FATES] = {"added", "deleted", "increased", "decreased", "unchanged"};
	struct comparison comparison = {.run = run};
	struct ops_json_writer *json = &run->result.json;
	int64_t limit = analysis_limit(run);
	enum ops_code code = run->code ? run->code : trace_diff_compare(&comparison, trace_diff_by_name);

	if (!code) {
		ops_json_open(json, '{');
		for (int fate = 0; fate < FATES; fate++) {
			ops_json_key(json, keys[fate]);
			write_fate(json, &comparison, (enum fate)fate, limit < 0 ? INT64_MAX : limit);
		}
		ops_json_close(json, '}');
	}
	trace_diff_release(&comparison);
	return code;
}

/* --- trace_diff.iterations -------------------------------------------------------------------------------------------- */

enum ops_code analysis_diff_iterations(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;

	ops_json_open(json, '{');
	for (int side = 0; side < SIDES; side++) {
		const struct event_table *table = analysis_table(run, (size_t)side);
		int64_t *steps = NULL;
		size_t count;

		if (!table || !own_steps(table, &steps, &count) ||
		    (run->events.where.bytes && !leave_steps(table, steps, &count))) {
			ops_free(steps);
			return analysis_failed(run);
		}
		ops_json_member_open(json, side_names[side], '{');
		ops_json_member_open(json, "ranks", '[');
		ops_json_integer(json, run->ranks[side].rank);
		ops_json_close(json, ']');
		OPS_JSON_LIST(json, "iterations", i, count, ops_json_integer(json, steps[i]));
		ops_json_close(json, '}');
		ops_free(steps);
	}
	ops_json_close(json, '}');
	return OPS_OK;
}
