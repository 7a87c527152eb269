/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of advice as a table, one row per finding.
 */
#include <math.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/tables.h"

struct finding_row {
	const char *id, *severity, *confidence, *bound, *title;
	double gain_ms, gain_percent, gain_lower, gain_upper, measured_percent, measured_lower, measured_upper;
	int64_t line;
	struct ops_string file, function, module, operator, evidence;
};

static const struct result_column finding_columns[] = {
	{.name = "id", .type = RESULT_TEXT, .about = "The rule", RESULT_FIELD(struct finding_row, id)},
	{.name = "severity", .type = RESULT_TEXT, .about = "high, medium or low", RESULT_FIELD(struct finding_row, severity)},
	{.name = "confidence", .type = RESULT_TEXT, .about = "high, medium or low", RESULT_FIELD(struct finding_row, confidence)},
	{.name = "predicted_gain_ms_per_step", .type = RESULT_NUMBER, .unit = "ms",
	 .about = "Time of a step that a change is predicted to save", RESULT_FIELD(struct finding_row, gain_ms)},
	{.name = "predicted_gain_percent", .type = RESULT_PERCENT, .about = "The same, of a step",
	 RESULT_FIELD(struct finding_row, gain_percent)},
	{.name = "predicted_gain_lower_percent", .type = RESULT_PERCENT, .about = "Lower end of its interval",
	 RESULT_FIELD(struct finding_row, gain_lower)},
	{.name = "predicted_gain_upper_percent", .type = RESULT_PERCENT, .about = "Upper end of its interval",
	 RESULT_FIELD(struct finding_row, gain_upper)},
	{.name = "predicted_gain_bound", .type = RESULT_TEXT, .about = "Whether the gain is an estimate, a lower or an upper bound",
	 RESULT_FIELD(struct finding_row, bound)},
	{.name = "measured_gain_percent", .type = RESULT_PERCENT, .unbounded = true, .about = "Time of a step that its fix saved (opstrobe prove)",
	 RESULT_FIELD(struct finding_row, measured_percent)},
	{.name = "measured_gain_lower_percent", .type = RESULT_PERCENT, .unbounded = true, .about = "Lower bound of it",
	 RESULT_FIELD(struct finding_row, measured_lower)},
	{.name = "measured_gain_upper_percent", .type = RESULT_PERCENT, .unbounded = true, .about = "Upper bound of it",
	 RESULT_FIELD(struct finding_row, measured_upper)},
	{.name = "file", .type = RESULT_TEXT, .about = "Source file", RESULT_FIELD(struct finding_row, file)},
	{.name = "line", .type = RESULT_INTEGER, .about = "Line of the file", RESULT_FIELD(struct finding_row, line)},
	{.name = "function", .type = RESULT_TEXT, .about = "Function of the file", RESULT_FIELD(struct finding_row, function)},
	{.name = "module", .type = RESULT_TEXT, .about = "Module", RESULT_FIELD(struct finding_row, module)},
	{.name = "operator", .type = RESULT_TEXT, .about = "Operator", RESULT_FIELD(struct finding_row, operator)},
	{.name = "title", .type = RESULT_TEXT, .about = "What the rule found", RESULT_FIELD(struct finding_row, title)},
	{.name = "evidence", .type = RESULT_TEXT, .about = "The figures behind it", RESULT_FIELD(struct finding_row, evidence)},
};
const struct result_declaration table_findings = RESULT_DECLARATION("advise", "A finding, in CSV", finding_columns);

void advice_write_csv(const struct advice_report *report, struct ops_buffer *out)
{
	static const struct advice_where nowhere = {.row = OPS_NONE};
	struct result result;
	struct result_table *table = &result.table;

	result_init(&result);
	result_declare(table, &table_findings, 0);
	for (size_t i = 0; i < report->findings.count; i++) {
		const struct advice_finding *finding = &report->findings.items[i];

		const struct advice_where *where = finding->where_count ? &finding->where[0] : &nowhere;

		result_add(table, &(struct finding_row){
			.id = finding->rule->id,
			.severity = advice_severity_name(finding->severity),
			.confidence = advice_confidence_name(finding->confidence),
			.gain_ms = result_round(finding->gain_ms, 3),
			.gain_percent = result_round(finding->gain_pct, 2),
			.gain_lower = result_round(finding->lower_pct, 2),
			.gain_upper = result_round(finding->upper_pct, 2),
			.bound = advice_bound_name(finding->bound),
			.measured_percent = finding->proof.is_known ? result_round(finding->proof.gain_pct, 2) : NAN,
			.measured_lower = finding->proof.is_known ? result_round(finding->proof.lower_pct, 2) : NAN,
			.measured_upper = finding->proof.is_known ? result_round(finding->proof.upper_pct, 2) : NAN,
			.file = where->file,
			.line = where->line ? where->line : RESULT_NULL,
			.function = where->function,
			.module = where->module,
			.operator = where->operator_name,
			.title = finding->rule->title,
			.evidence = finding->evidence,
		});
	}
	out->failed |= !result_write(&result, OPS_FORMAT_CSV, out);
	result_release(&result);
}
