/* SPDX-License-Identifier: Apache-2.0
 *
 * The time that no finding explains, as JSON and as text.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
#include "analyze/format.h"
#include "analyze/tables.h"
#include "base/text.h"
#include "derive/program.h"

#define KIND_MIN 0.1  /* minimum share of a line of a kind of time that is named */

struct rest_row {
	struct ops_string file, function, module, modules, operator, operators, waits_for, tensor, unusual, text;
	int64_t line, trace, row;
	double percent, ms, device, python, working, waiting, communication, idle, outside, calls, roof;
};

#define FIELD(member) RESULT_FIELD(struct rest_row, member)

static const struct result_column not_explained_columns[] = {
	{.name = "file", .type = RESULT_TEXT, .nullable = true, .about = "Source file", FIELD(file)},
	{.name = "line", .type = RESULT_INTEGER, .nullable = true, .about = "Line of the file", FIELD(line)},
	{.name = "function", .type = RESULT_TEXT, .nullable = true, .about = "Function of the line", FIELD(function)},
	{.name = "module", .type = RESULT_TEXT, .nullable = true, .about = "Module of the longest event; null if the line has several modules", FIELD(module)},
	{.name = "operator", .type = RESULT_TEXT, .nullable = true, .about = "Longest operator; without lines and modules, the operator or kernel itself",
	 FIELD(operator)},
	{.name = "trace", .type = RESULT_INTEGER, .nullable = true, .about = "Trace of the row; its place among the traces", FIELD(trace)},
	{.name = "row", .type = RESULT_INTEGER, .nullable = true, .about = "Longest event there", FIELD(row)},
	{.name = "percent", .type = RESULT_PERCENT, .about = "Time that no finding explains, of a step", FIELD(percent)},
	{.name = "ms_per_step", .type = RESULT_NUMBER, .unit = "ms", .about = "The same", FIELD(ms)},
	{.name = "device_percent", .type = RESULT_PERCENT, .about = "Part of it in which a device works, of a step", FIELD(device)},
	{.name = "operators_percent", .type = RESULT_PERCENT, .about = "Part in operators", FIELD(working)},
	{.name = "python_percent", .type = RESULT_PERCENT, .about = "Part in Python, and between operators", FIELD(python)},
	{.name = "waiting_percent", .type = RESULT_PERCENT, .about = "Part in which a call waits", FIELD(waiting)},
	{.name = "communication_percent", .type = RESULT_PERCENT, .about = "Part in collectives", FIELD(communication)},
	{.name = "idle_percent", .type = RESULT_PERCENT, .about = "Part in which the device is idle", FIELD(idle)},
	{.name = "outside_percent", .type = RESULT_PERCENT, .about = "Part in which no recorded event of the step runs", FIELD(outside)},
	{.name = "waits_for", .type = RESULT_TEXT, .nullable = true, .about = "State of the thread during most of its waits: ready (for a CPU that the program itself has), gil, lock, io, process, sleeping",
	 FIELD(waits_for)},
	{.name = "operators", .type = RESULT_TEXT, .nullable = true, .about = "Operators with the most of it, with their percentages of a step", FIELD(operators)},
	{.name = "modules", .type = RESULT_TEXT, .nullable = true, .about = "If the line has several modules, those with the most of it, with their percentages of a step",
	 FIELD(modules)},
	{.name = "calls_per_step", .type = RESULT_NUMBER, .about = "Operators that it calls, without their backward passes", FIELD(calls)},
	{.name = "tensor", .type = RESULT_TEXT, .nullable = true, .about = "Largest input of the longest operator", FIELD(tensor)},
	{.name = "percent_of_roof", .type = RESULT_PERCENT, .nullable = true,
	 .about = "Lower bound of the time of its operators, of their time; null: unknown", FIELD(roof)},
	{.name = "unusual", .type = RESULT_TEXT, .nullable = true, .about = "What is unusual about the tensors of its operators", FIELD(unusual)},
	{.name = "text", .type = RESULT_TEXT, .about = "All of this in a sentence or two", FIELD(text)},
};
const struct result_declaration table_not_explained =
	RESULT_DECLARATION("NotExplained", "A line with time that no finding explains", not_explained_columns);

/* --- text ------------------------------------------------------------------------------------------------------------- */

static const char *rest_base(const struct advice_report *report)
{
	return advice_is_per_step(report) ? "a step" : "the recording";
}

void advice_rest_title(const struct advice_report *report, char text[REST_TITLE_ROOM])
{
	char ms[OPS_FORMAT_ROOM];

	ops_format_duration(ms, report->rest.ns);
	snprintf(text, REST_TITLE_ROOM, "Not explained by a finding: %s (%s of %s)", ms, ops_figure_of_percent(report->rest.pct).text, rest_base(report));
}

const char *advice_rest_hint(const struct advice_report *report)
{
	if (report->rest.has_lines)
		return "";
	return report->has & ADVICE_NEEDS_PYTHON ? "" : "Python calls (with_stack=True, opstrobe run --with-stack) would show the lines.";
}

/* Appends "aten::mm 20.0 %, aten::add 10.0 %". */
static void append_parts(const struct advice_rest_part parts[REST_PARTS_MAX], double least_pct, struct ops_buffer *out)
{
	for (int i = 0; i < REST_PARTS_MAX && parts[i].name.size && parts[i].pct >= least_pct; i++) {
		ops_buffer_append_text(out, i ? ", " : "");
		ops_buffer_append(out, parts[i].name.bytes, parts[i].name.size);
		ops_buffer_printf(out, " %s", ops_figure_of_percent(parts[i].pct).text);
	}
}

static void append_kinds(const struct advice_rest_line *line, struct ops_buffer *out)
{
	static const char *const names[] = {
		[REST_DEVICE] = "device work", [REST_OPERATORS] = "operators", [REST_PYTHON] = "Python", [REST_WAITING] = "waiting",
		[REST_COMMUNICATION] = "communication", [REST_IDLE] = "idle device", [REST_OUTSIDE] = "outside of recorded events"};
	static const struct {
		const char *state, *words;
	} states[] = {{"ready", " for a CPU that other threads or child processes of the program have"}, {"gil", " for the GIL"}, {"lock", " for a lock"}, {"io", " for a file or the network"}, {"process", " for a process"},
	              {"sleeping", " for time to pass"}};
	const char *separator = ": ";

	for (int kind = 0; kind < REST_KINDS; kind++) {
		if (line->kinds[kind] < KIND_MIN * line->pct)
			continue;
		ops_buffer_printf(out, "%s%s", separator, names[kind]);
		for (size_t i = 0; kind == REST_WAITING && i < sizeof(states) / sizeof(*states); i++)
			if (ops_string_is(line->waits_for, states[i].state))
				ops_buffer_append_text(out, states[i].words);
		if (line->kinds[kind] < (1 - KIND_MIN) * line->pct)
			ops_buffer_printf(out, " %s", ops_figure_of_percent(line->kinds[kind]).text);
		separator = ", ";
	}
}

/* Appends " Through lightning/pytorch/loops/loop.py:12 in run 20.1 %, …" for a line that calls libraries. */
static void append_libraries(const struct advice_rest_line *line, struct ops_buffer *out)
{
	for (size_t i = 0; i < line->where.through_count; i++) {
		ops_buffer_append_text(out, i ? ", " : " Through ");
		advice_append_through(out, &line->where.through[i]);
		ops_buffer_printf(out, " %s", ops_figure_of_percent(line->through_pct[i]).text);
	}
	ops_buffer_append_text(out, line->where.through_count ? "." : "");
}

void advice_rest_describe(const struct advice_report *report, const struct advice_rest_line *line, struct ops_buffer *out)
{
	ops_buffer_printf(out, "%s of %s", ops_figure_of_percent(line->pct).text, rest_base(report));
	append_kinds(line, out);
	if (line->operators[0].pct >= KIND_MIN * line->pct) {
		ops_buffer_append_text(out, "; ");
		append_parts(line->operators, KIND_MIN * line->pct, out);
	}
	if (line->calls > 0)
		ops_buffer_printf(out, "; %s call%s", ops_figure_of_number(line->calls).text, line->calls == 1 ? "" : "s");
	if (line->tensor.size) {
		ops_buffer_append_text(out, line->calls > 0 ? " on " : "; ");
		ops_buffer_append(out, line->tensor.bytes, line->tensor.size);
	}
	if (line->roof_pct >= 0) /* not NAN */
		ops_buffer_printf(out, "; %s of the roof", ops_figure_of_percent(line->roof_pct).text);
	ops_buffer_append_text(out, ".");
	if (line->modules[0].name.size) {
		ops_buffer_append_text(out, " In ");
		append_parts(line->modules, 0, out);
		ops_buffer_append_text(out, ".");
	}
	append_libraries(line, out);
	if (line->unusual.size) {
		ops_buffer_append_text(out, " ");
		ops_buffer_append(out, line->unusual.bytes, line->unusual.size);
	}
}

/* --- JSON ------------------------------------------------------------------------------------------------------------- */

static double rest_percent(double percent)
{
	return result_round(percent, PERCENT_DECIMALS);
}

static void write_line(const struct advice_report *report, const struct advice_rest_line *line, struct ops_json_writer *json)
{
	struct ops_buffer operators = {0}, modules = {0}, text = {0};
	bool has_row = line->where.row != OPS_NONE;
	struct rest_row row = {
		.file = result_text_or_null(line->where.file), .function = result_text_or_null(line->where.function),
		.module = result_text_or_null(line->where.module), .operator = result_text_or_null(line->where.operator_name),
		.waits_for = result_text_or_null(line->waits_for), .tensor = result_text_or_null(line->tensor),
		.unusual = result_text_or_null(line->unusual), .line = line->where.line ? line->where.line : RESULT_NULL,
		.trace = has_row ? line->where.trace : RESULT_NULL, .row = has_row ? line->where.row : RESULT_NULL,
		.percent = rest_percent(line->pct), .ms = result_round(line->ns / 1e6, 4), .device = rest_percent(line->kinds[REST_DEVICE]),
		.working = rest_percent(line->kinds[REST_OPERATORS]), .python = rest_percent(line->kinds[REST_PYTHON]),
		.waiting = rest_percent(line->kinds[REST_WAITING]), .communication = rest_percent(line->kinds[REST_COMMUNICATION]),
		.idle = rest_percent(line->kinds[REST_IDLE]), .outside = rest_percent(line->kinds[REST_OUTSIDE]),
		.calls = result_round(line->calls, 2), .roof = rest_percent(line->roof_pct)};

	append_parts(line->operators, KIND_MIN * line->pct, &operators);
	append_parts(line->modules, 0, &modules);
	advice_rest_describe(report, line, &text);
	row.operators = result_text_or_null((struct ops_string){ops_buffer_text(&operators), operators.size});
	row.modules = result_text_or_null((struct ops_string){ops_buffer_text(&modules), modules.size});
	row.text = (struct ops_string){ops_buffer_text(&text), text.size};
	json->out->failed |= operators.failed || modules.failed || text.failed;
	result_object_json(&table_not_explained, 0, &row, json);
	ops_buffer_release(&operators);
	ops_buffer_release(&modules);
	ops_buffer_release(&text);
}

void advice_rest_write_json(const struct advice_report *report, struct ops_json_writer *json)
{
	const struct advice_rest *rest = &report->rest;
	const char *hint = advice_rest_hint(report);
	char title[REST_TITLE_ROOM];

	ops_json_key(json, "not_explained");
	if (!advice_rest_is_shown(rest)) {
		ops_json_null(json);
		return;
	}
	advice_rest_title(report, title);
	ops_json_open(json, '{');
	ops_json_member_text(json, "title", title);
	ops_json_member_number(json, "percent", rest->pct);
	ops_json_member_number(json, "explained_percent", rest->explained_pct);
	ops_json_member_number(json, "ms_per_step", rest->ns / 1e6);
	ops_json_member_string_or_null(json, "hint", (struct ops_string){hint, strlen(hint)});
	OPS_JSON_LIST(json, "lines", i, rest->lines.count, write_line(report, &rest->lines.items[i], json));
	ops_json_close(json, '}');
}
