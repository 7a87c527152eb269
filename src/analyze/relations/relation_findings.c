/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `findings`: one row per finding of `opstrobe advise`, in its order.
 */
#include "analyze/advice/advice.h"
#include "analyze/relations/relation_list.h"

#define FINDING (&rows->findings[row->at])
#define PLACE (FINDING->where_count ? FINDING->where[0] : (struct advice_where){.row = OPS_NONE})

RELATION_GETTER(get_finding_rule, cell->text = ops_string_of(FINDING->rule->id))
RELATION_GETTER(get_finding_title, cell->text = ops_string_of(FINDING->rule->title))
RELATION_GETTER(get_finding_severity, cell->text = ops_string_of(advice_severity_name(FINDING->severity)))
RELATION_GETTER(get_finding_confidence, cell->text = ops_string_of(advice_confidence_name(FINDING->confidence)))
RELATION_GETTER(get_finding_gain, cell->number = FINDING->gain_ms)
RELATION_GETTER(get_finding_percent, cell->number = FINDING->gain_pct)
RELATION_GETTER(get_finding_bound, cell->text = ops_string_of(advice_bound_name(FINDING->rule->bound)))
RELATION_GETTER(get_finding_evidence, relation_set_text(cell, FINDING->evidence))
RELATION_GETTER(get_finding_file, relation_set_text(cell, PLACE.file))
RELATION_GETTER(get_finding_line, cell->integer = PLACE.line; cell->is_null = !PLACE.line)
RELATION_GETTER(get_finding_function, relation_set_text(cell, PLACE.function))
RELATION_GETTER(get_finding_module, relation_set_text(cell, PLACE.module))
RELATION_GETTER(get_finding_operator, relation_set_text(cell, PLACE.operator_name))
RELATION_GETTER(get_finding_event, relation_set_id(cell, PLACE.row))

static const struct result_column columns[] = {
	{.name = "rule", .type = RESULT_TEXT, .get = get_finding_rule, .about = "id of the rule"},
	{.name = "title", .type = RESULT_TEXT, .get = get_finding_title, .about = "what the rule is about"},
	{.name = "severity", .type = RESULT_TEXT, .get = get_finding_severity, .about = "high, medium, low or info"},
	{.name = "confidence", .type = RESULT_TEXT, .get = get_finding_confidence, .about = "high, medium or low"},
	{.name = "gain_ms", .type = RESULT_NUMBER, .unit = "ms", .nullable = true, .get = get_finding_gain, .about = "predicted gain for each step"},
	{.name = "gain_percent", .type = RESULT_NUMBER, .unit = "%", .nullable = true, .get = get_finding_percent,
	 .about = "predicted gain as a share of the step"},
	{.name = "gain_bound", .type = RESULT_TEXT, .get = get_finding_bound, .about = "about, at least or at most"},
	{.name = "evidence", .type = RESULT_TEXT, .nullable = true, .get = get_finding_evidence, .about = "what the trace shows"},
	{.name = "file", .type = RESULT_TEXT, .nullable = true, .get = get_finding_file, .about = "file of the most expensive place"},
	{.name = "line", .type = RESULT_INTEGER, .nullable = true, .get = get_finding_line, .about = "number of its line"},
	{.name = "function", .type = RESULT_TEXT, .nullable = true, .get = get_finding_function, .about = "function of the line"},
	{.name = "module", .type = RESULT_TEXT, .nullable = true, .get = get_finding_module, .about = "path of the torch.nn.Module there"},
	{.name = "operator", .type = RESULT_TEXT, .nullable = true, .get = get_finding_operator, .about = "operator there"},
	{.name = "event_id", .type = RESULT_INTEGER, .nullable = true, .get = get_finding_event,
	 .about = "id of the most expensive event there, a row in events"},
};
const struct result_declaration relation_findings_declaration =
	RESULT_DECLARATION("findings", "a finding about the trace, as `opstrobe advise` lists it", columns);

bool relation_findings_open(struct relation_rows *rows)
{
	const struct ops_rank rank = {.trace = rows->trace, .rank = ops_trace_rank(rows->trace, NULL), .name = ""};
	const struct advice_report *report;
	struct ops_error error;

	rows->adviser = ops_adviser_new();
	if (!rows->adviser || ops_adviser_add(rows->adviser, &rank, &error) || advice_finish(rows->adviser, &report, &error))
		return false;
	rows->findings = report->findings.items;
	rows->count = report->findings.count;
	return true;
}
