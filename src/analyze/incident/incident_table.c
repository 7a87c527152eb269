/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of incidents.
 */
#include <opstrobe/internal/incidents.h>

#include <string.h>

#include "analyze/incident/incident.h"
#include "analyze/result.h"
#include "analyze/tables.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/json_walk.h"

struct incident_row {
	struct ops_string id, when, what, cause, process, place, overhead;
	int64_t pid, step, line, has_trace;
};

#define INCIDENT_FIELD(member) RESULT_FIELD(struct incident_row, member)
static const struct result_column incident_columns[] = {
	{.name = "id", .type = RESULT_TEXT, .title = "Incident", .priority = RESULT_MAJOR, INCIDENT_FIELD(id)},
	{.name = "when", .type = RESULT_TEXT, .title = "When (UTC)", INCIDENT_FIELD(when)},
	{.name = "process", .type = RESULT_TEXT, .title = "Process", INCIDENT_FIELD(process)},
	{.name = "pid", .type = RESULT_INTEGER, .title = "PID", .priority = RESULT_MINOR, INCIDENT_FIELD(pid)},
	{.name = "what", .type = RESULT_TEXT, .title = "What", .priority = RESULT_MAJOR, INCIDENT_FIELD(what)},
	{.name = "cause", .type = RESULT_TEXT, .title = "Cause", .about = "sleep, lock, data_loader, garbage_collection, signal, …",
	 INCIDENT_FIELD(cause)},
	{.name = "where", .type = RESULT_TEXT, .title = "Where", .about = "the line of the program", INCIDENT_FIELD(place)},
	{.name = "overhead", .type = RESULT_TEXT, .title = "Overhead",
	 .about = "what recording added to a step, its 95 % interval, and which detail was switched off to stay within the budget; empty if it was not measured", INCIDENT_FIELD(overhead)},
	{.name = "has_trace", .type = RESULT_FLAG, .title = "Trace", .priority = RESULT_MINOR, .about = "a trace was kept, too",
	 INCIDENT_FIELD(has_trace)},
};
const struct result_declaration table_incidents = RESULT_DECLARATION(
	"incidents", "An incident that the black box kept", incident_columns);

/* Returns a member that is a text, copied into the table's arena by way of the scratch buffer. */
static struct ops_string row_text(struct result_table *table, struct ops_buffer *scratch)
{
	char *copy = ops_arena_copy(&table->arena, ops_buffer_text(scratch), scratch->size);

	table->failed |= scratch->failed || !copy;
	return (struct ops_string){copy, copy ? scratch->size : 0};
}

static struct ops_string row_member(struct result_table *table, struct ops_buffer *scratch, struct ops_string report, const char *key)
{
	struct ops_string value;

	scratch->size = 0;
	if (ops_json_find_member(report, key, &value))
		ops_json_decode_value(scratch, value);
	return row_text(table, scratch);
}

static void add_report(struct result_table *table, struct ops_buffer *scratch, struct ops_string id, struct ops_string report)
{
	struct incident_row row = {.id = id};
	struct ops_string value, where;

	row.what = row_member(table, scratch, report, "title");
	row.cause = row_member(table, scratch, report, "cause_kind");
	row.process = row_member(table, scratch, report, "process");
	row.pid = ops_json_integer_of(report, "pid", 0);
	row.has_trace = ops_json_is_true(report, "has_trace");
	scratch->size = 0;
	incident_moment_append(scratch, ops_json_integer_of(report, "time_ns", 0));
	row.when = row_text(table, scratch);
	scratch->size = 0;
	if (ops_json_find_typed(report, "where", '{', &where)) {
		if (ops_json_find_member(where, "file", &value) && value.size >= 2)
			ops_json_decode(scratch, value.bytes + 1, value.size - 2);
		row.line = ops_json_integer_of(where, "line", 0);
		if (row.line)
			ops_buffer_printf(scratch, ":%lld", (long long)row.line);
	}
	row.place = result_text_or_null(row_text(table, scratch));
	scratch->size = 0;
	if (ops_json_find_member(report, "black_box", &value))
		incident_overhead_append(scratch, value);
	row.overhead = result_text_or_null(row_text(table, scratch));
	result_add(table, &row);
}

enum ops_code ops_incident_table(const struct ops_string *ids, const struct ops_string *reports, size_t count, enum ops_format format,
                                 unsigned columns, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct result result;
	struct ops_buffer scratch = {0}, out = {0};
	enum ops_code code = OPS_OK;

	result_init(&result);
	result.room = columns;
	result_declare(&result.table, &table_incidents, 0);
	for (size_t i = 0; i < count; i++)
		add_report(&result.table, &scratch, ids[i], reports[i]);
	if (!result_write(&result, format, &out))
		code = ops_fault_memory(error);
	ops_buffer_release(&scratch);
	result_release(&result);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
