/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of advice as a table: a row a finding.
 */
#include <math.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/result.h"

static void put(struct result_table *table, const char *text)
{
	result_text(table, (struct ops_string){text, strlen(text)});
}

static void put_place(struct result_table *table, const struct advice_finding *finding)
{
	static const struct advice_where nowhere = {.row = OPS_NONE};
	const struct advice_where *where = finding->where_count ? &finding->where[0] : &nowhere;

	result_text(table, where->file);
	if (where->line)
		result_integer(table, where->line);
	else
		result_null(table);
	result_text(table, where->function);
	result_text(table, where->module);
	result_text(table, where->operator_name);
}

void advice_write_csv(const struct advice_report *report, struct ops_buffer *out)
{
	struct result result;
	struct result_table *table = &result.table;

	result_init(&result);
	RESULT_COLUMNS(table, RESULT_COLUMN("id", TEXT), RESULT_COLUMN("severity", TEXT), RESULT_COLUMN("confidence", TEXT),
	               RESULT_COLUMN("predicted_gain_ms_per_step", NUMBER), RESULT_COLUMN("predicted_gain_percent", PERCENT),
	               RESULT_COLUMN("predicted_gain_bound", TEXT),
	               RESULT_COLUMN("file", TEXT), RESULT_COLUMN("line", INTEGER), RESULT_COLUMN("function", TEXT), RESULT_COLUMN("module", TEXT),
	               RESULT_COLUMN("operator", TEXT), RESULT_COLUMN("title", TEXT), RESULT_COLUMN("evidence", TEXT));
	for (size_t i = 0; i < report->findings.count; i++) {
		const struct advice_finding *finding = &report->findings.items[i];

		put(table, finding->rule->id);
		put(table, advice_severity_name(finding->severity));
		put(table, advice_confidence_name(finding->confidence));
		result_number(table, result_round(finding->gain_ms, 3));
		result_number(table, result_round(finding->gain_pct, 2));
		put(table, advice_bound_name(finding->rule->bound));
		put_place(table, finding);
		put(table, finding->rule->title);
		result_text(table, finding->evidence);
	}
	out->failed |= !result_write(&result, OPS_FORMAT_CSV, out);
	result_release(&result);
}
