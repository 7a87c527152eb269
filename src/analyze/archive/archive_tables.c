/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of an archive: declared here, computed by the Python package (archiving/answers.py).
 */
#include <opstrobe/internal/archive.h>

#include <string.h>

#include "analyze/result.h"
#include "analyze/tables.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/json_walk.h"

static const struct result_column archive_trace_columns[] = {
	{.name = "job", .type = RESULT_TEXT, .title = "Job"},
	{.name = "run", .type = RESULT_TEXT, .title = "Run", .about = "one execution of the job"},
	{.name = "commit", .type = RESULT_TEXT, .title = "Commit", .about = "revision of the program"},
	{.name = "rank", .type = RESULT_INTEGER, .title = "Rank"},
	{.name = "start", .type = RESULT_TEXT, .title = "Recorded", .about = "when the recording began, UTC"},
	{.name = "duration_us", .type = RESULT_NUMBER, .unit = "us", .title = "Duration"},
	{.name = "steps", .type = RESULT_COUNT, .title = "Steps"},
	{.name = "step_us", .type = RESULT_NUMBER, .unit = "us", .title = "Median step"},
	{.name = "trace", .type = RESULT_TEXT, .title = "Id", .about = "id of the trace: a hash of its file"},
	{.name = "path", .type = RESULT_TEXT, .title = "File", .about = "file that the trace was added from"},
};
const struct result_declaration table_archive_traces =
	RESULT_DECLARATION("archive_traces", "A trace of an archive", archive_trace_columns);

static const struct result_column archive_trend_columns[] = {
	{.name = "key", .type = RESULT_TEXT, .title = "Commit, date or run"},
	{.name = "value", .type = RESULT_NUMBER, .title = "Value", .about = "median of the metric over the traces of the point"},
	{.name = "level", .type = RESULT_NUMBER, .title = "Level", .about = "median of the points between two changes"},
	{.name = "traces", .type = RESULT_COUNT, .title = "Traces"},
	{.name = "before", .type = RESULT_NUMBER, .title = "Before", .about = "the level before, if it changes at this point"},
	{.name = "change", .type = RESULT_CHANGE, .title = "Change", .about = "change of the level at this point, in percent"},
	{.name = "noise", .type = RESULT_NUMBER, .title = "Noise", .about = "standard deviation of the points around a change"},
};
const struct result_declaration table_archive_trend = RESULT_DECLARATION(
	"archive_trend", "A commit, date or run of an archive", archive_trend_columns);

static const struct result_column archive_cause_columns[] = {
	{.name = "key", .type = RESULT_TEXT, .title = "Changed at"},
	{.name = "kind", .type = RESULT_TEXT, .title = "Kind", .about = "operator (self time) or kernel"},
	{.name = "name", .type = RESULT_TEXT, .title = "Name"},
	{.name = "before_ms", .type = RESULT_NUMBER, .unit = "ms", .title = "Before", .about = "time for each step before the change"},
	{.name = "after_ms", .type = RESULT_NUMBER, .unit = "ms", .title = "After", .about = "time for each step after the change"},
	{.name = "difference_ms", .type = RESULT_NUMBER, .unit = "ms", .title = "Difference"},
};
const struct result_declaration table_archive_causes = RESULT_DECLARATION(
	"archive_causes", "An operator or kernel whose time changed most where a metric of an archive changes", archive_cause_columns);

static const struct result_column archive_step_columns[] = {
	{.name = "rank", .type = RESULT_INTEGER, .title = "Rank"},
	{.name = "step", .type = RESULT_INTEGER, .title = "Step"},
	{.name = "dur_us", .type = RESULT_NUMBER, .unit = "us", .title = "Duration"},
	{.name = "start_us", .type = RESULT_NUMBER, .unit = "us", .title = "Start", .about = "since the start of the trace"},
	{.name = "trace", .type = RESULT_TEXT, .title = "Id", .about = "id of the trace"},
};
const struct result_declaration table_archive_steps =
	RESULT_DECLARATION("archive_steps", "A step of a rank in a run of an archive", archive_step_columns);

static const struct result_declaration *const declarations[] = {&table_archive_traces, &table_archive_trend, &table_archive_causes,
                                                                &table_archive_steps};

static void archive_add_cell(struct result_table *table, const struct result_column *column, struct ops_string row,
                             struct ops_buffer *scratch)
{
	struct ops_string value;
	int64_t integer;
	double number;

	scratch->size = 0;
	if (!ops_json_find_member(row, column->name, &value) || !value.size)
		result_null(table);
	else if (column->type == RESULT_TEXT && ops_json_decode_value(scratch, value))
		result_text_copy(table, ops_buffer_text(scratch), scratch->size);
	else if (result_is_number(column->type) && ops_json_double(value.bytes, value.size, &number))
		result_number(table, number);
	else if ((column->type == RESULT_INTEGER || column->type == RESULT_COUNT) && ops_json_parse_integer(value, &integer))
		result_integer(table, integer);
	else
		result_null(table);
}

static const struct result_declaration *archive_find(const char *id)
{
	for (size_t i = 0; i < sizeof(declarations) / sizeof(declarations[0]); i++)
		if (!strcmp(declarations[i]->id, id))
			return declarations[i];
	return NULL;
}

enum ops_code ops_archive_table(const char *id, struct ops_string rows, enum ops_format format, size_t limit, size_t columns, char **ret_text,
                                size_t *ret_size, struct ops_error *error)
{
	const struct result_declaration *declaration = archive_find(id);
	struct ops_json_walk cursor = ops_json_walk(rows.bytes, rows.size);
	struct ops_buffer scratch = {0}, out = {0};
	enum ops_code code = OPS_OK;
	struct ops_string row;
	struct result result;

	if (!declaration)
		return ops_fault(error, OPS_INVALID, "table '%.80s' does not exist", id);
	result_init(&result);
	result.room = columns;
	result.table.empty = declaration == &table_archive_traces ? "no traces" : NULL;
	result_declare(&result.table, declaration, 0);
	while (ops_json_next_element(&cursor, &row))
		for (size_t i = 0; i < declaration->count; i++)
			archive_add_cell(&result.table, &declaration->columns[i], row, &scratch);
	if (limit)
		result_table_cut(&result.table, limit);
	if (scratch.failed || !result_write(&result, format, &out))
		code = ops_fault_memory(error);
	ops_buffer_release(&scratch);
	result_release(&result);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
