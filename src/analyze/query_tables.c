/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of complete traces: views as tables, modules, memory, lines, differences and advice.
 */
#include <string.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>
#include <opstrobe/internal/views.h>

#include "analyze/analysis.h"
#include "analyze/compare/short_name.h"
#include "analyze/flow/data_flow_table.h"
#include "analyze/lines/line_costs.h"
#include "analyze/roofline/roofline.h"
#include "analyze/run_trace.h"
#include "analyze/tables.h"
#include "analyze/time/thread_table.h"
#include "analyze/views/view_tables.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/text.h"

enum ops_code analysis_open_trace(const struct analysis_run *run, size_t i, struct ops_trace **ret_trace)
{
	enum ops_code code = OPS_OK;

	*ret_trace = NULL;
	if (run->ranks[i].trace || run->source)
		code = ops_run_trace(run->ranks, run->source, i, ret_trace, run->error);
	return code || *ret_trace ? code : analysis_fail_not_a_trace(run, i);
}

/* A text written by another function. */
struct query_text {
	char *bytes;
	size_t size;
};

/* Sets it as the answer. */
static enum ops_code use_text(struct analysis_run *run, enum ops_code code, const struct query_text *text)
{
	if (!code)
		run->written = (struct ops_buffer){.bytes = text->bytes, .size = text->size, .capacity = text->size + 1};
	return code;
}

/* Reads the option `limit`; 0: no limit. */
static size_t query_rows(struct analysis_run *run)
{
	int64_t rows = analysis_limit(run);

	return rows < 0 ? 0 : (size_t)rows;
}

/* --- views ---------------------------------------------------------------------------------------------------------- */

/* Returns whether a file is to be left out because it is not a trace, and other files are. */
static bool query_is_other_file(const struct analysis_run *run, size_t i)
{
	bool has_traces = false;

	for (size_t k = 0; !run->source && !has_traces && k < run->count; k++)
		has_traces = run->ranks[k].trace != NULL;
	return has_traces && !run->ranks[i].trace;
}

/* Fills a table from each trace. */
static enum ops_code query_fill_table(struct analysis_run *run, const struct result_declaration *declaration,
                                      unsigned options, run_fill *fill, const void *context)
{
	struct run_rows rows = {.table = &run->result.table, .rules = run->rules, .limit = query_rows(run),
	                        .as_text = run->format == OPS_FORMAT_TEXT || run->format == OPS_FORMAT_MARKDOWN};
	enum ops_code code = run->code;

	rows.limit = rows.limit ? rows.limit : SIZE_MAX;
	rows.table->copies = true;
	if (run->count > 1)
		result_columns(rows.table, &(struct result_column){.name = "worker", .type = RESULT_TEXT, .title = "Trace"}, 1);
	result_declare(rows.table, declaration, options);
	for (size_t i = 0; !code && i < run->count; i++) {
		struct ops_trace *trace = NULL;

		if (query_is_other_file(run, i))
			continue;
		code = analysis_open_trace(run, i, &trace);
		rows.worker = run->count > 1 ? run->ranks[i].name : NULL;
		if (!code)
			code = fill(&rows, trace, context, run->error);
		ops_trace_unref(trace);
	}
	return code;
}

enum ops_code analysis_overview(struct analysis_run *run)
{
	return query_fill_table(run, &table_overview, 0, overview_fill, NULL);
}

enum ops_code analysis_kernels(struct analysis_run *run)
{
	bool on_terminal = run->format == OPS_FORMAT_TEXT && run->columns;
	bool by_operator = analysis_bool(run, "by_operator"), by_category = analysis_bool(run, "by_category");
	enum ops_code code = run->code;

	if (!code && by_operator && by_category)
		code = ops_fault(run->error, OPS_INVALID, "'by_operator' and 'by_category' exclude each other; choose one");
	if (code)
		return code;
	if (by_category) {
		run->result.table.empty = "no kernels: the trace has no device work";
		return query_fill_table(run, &table_kernel_categories, 0, kernel_categories_fill, NULL);
	}
	run->result.table.empty = "no kernels: the trace has no device work";
	code = query_fill_table(run, &table_kernels, by_operator ? VIEW_BY_OPERATOR : 0, kernels_fill, &by_operator);
	if (!code && on_terminal && !readable_name_column(&run->result.table))
		code = ops_fault_memory(run->error);
	if ((run->format == OPS_FORMAT_TEXT || run->format == OPS_FORMAT_MARKDOWN) && result_table_rows(&run->result.table))
		result_table_omit_empty(&run->result.table);
	return code;
}

static enum ops_code write_page(struct analysis_run *run)
{
	unsigned look = run->format == OPS_FORMAT_MARKDOWN ? OPS_VIEWS_MARKDOWN : OPS_VIEWS_COLUMNS(run->columns);
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < run->count; i++) {
		struct ops_trace *trace = NULL;
		struct query_text text = {NULL, 0};

		code = analysis_open_trace(run, i, &trace);
		if (!code)
			code = ops_views_text(trace, run->rules, look, &text.bytes, &text.size, run->error);
		if (!code && run->count > 1)
			ops_buffer_printf(&run->written, "%s%s%s\n\n", i ? "\n" : "", look & OPS_VIEWS_MARKDOWN ? "# " : "",
			                  run->ranks[i].name);
		if (!code)
			ops_buffer_append(&run->written, text.bytes, text.size);
		ops_free(text.bytes);
		ops_trace_unref(trace);
	}
	return code;
}

enum ops_code analysis_views(struct analysis_run *run)
{
	struct query_text text = {NULL, 0};

	if (run->format == OPS_FORMAT_CSV)
		return ops_fault(run->error, OPS_INVALID, "views has no CSV; query its tables: overview, kernels, modules, memory");
	if (run->format != OPS_FORMAT_JSON)
		return write_page(run);
	return use_text(run, ops_run_json(run->source, run->ranks, run->count, run->rules, &text.bytes, &text.size, run->error), &text);
}

/* --- modules, memory, lines ----------------------------------------------------------------------------------------- */

enum ops_code analysis_modules(struct analysis_run *run)
{
	struct ops_module_text_options options = {
		.columns = run->columns, .by_class = analysis_bool(run, "by_class"), .rows_max = query_rows(run)};
	struct ops_module_tree *tree = NULL;
	struct ops_trace *trace = NULL;
	struct query_text text = {NULL, 0};
	enum ops_code code = run->code;

	run->result.table.empty = OPS_MODULES_EMPTY;
	if (code || run->format != OPS_FORMAT_TEXT || run->count > 1)
		return code ? code : query_fill_table(run, &table_modules, 0, modules_fill, &options.by_class);
	code = analysis_open_trace(run, 0, &trace);
	if (!code)
		code = ops_module_tree_new(trace, &tree, run->error);
	if (!code)
		code = use_text(run, ops_module_text(tree, &options, &text.bytes, &text.size, run->error), &text);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
	return code;
}

enum ops_code analysis_memory(struct analysis_run *run)
{
	bool at_peak = ops_string_is(analysis_arg(run, "at_ns"), "null");
	struct ops_trace *trace = NULL;
	int64_t at_ns = at_peak ? 0 : analysis_integer(run, "at_ns");
	struct ops_memory_moment moment = {.at_ns = at_peak ? NULL : &at_ns,
	                                   .steps = ops_string_is(analysis_arg(run, "steps"), "null") ? NULL : analysis_text(run, "steps").bytes};
	struct query_text text = {NULL, 0};
	size_t rows = query_rows(run);
	enum ops_code code = run->code;

	run->result.table.empty = OPS_MEMORY_EMPTY;
	if (code || run->format != OPS_FORMAT_TEXT || run->count > 1)
		return code ? code : query_fill_table(run, &table_memory, 0, memory_fill, &moment);
	code = analysis_open_trace(run, 0, &trace);
	if (!code)
		code = ops_memory_text(trace, rows, run->columns, &moment, &text.bytes, &text.size, run->error);
	code = use_text(run, code, &text);
	ops_trace_unref(trace);
	return code;
}

enum ops_code analysis_lines(struct analysis_run *run)
{
	run->result.table.empty = LINES_EMPTY;
	return query_fill_table(run, &table_lines, LINES_WITH_LIBRARY, lines_fill, NULL);
}

enum ops_code analysis_data_flow(struct analysis_run *run)
{
	run->result.table.empty = "no memory of operators: record with profile_memory=True and record_shapes=True or opstrobe run --memory "
	                          "--record-shapes";
	return query_fill_table(run, &table_data_flow, 0, data_flow_fill, NULL);
}

enum ops_code analysis_threads(struct analysis_run *run)
{
	run->result.table.empty = "no states of threads: only recordings of Opstrobe have them";
	return query_fill_table(run, &table_threads, 0, threads_fill, NULL);
}

/* Parses the names of enum ops_roofline_by. */
static enum ops_code query_roofline_by(const struct analysis_run *run, enum ops_roofline_by *ret_by)
{
	static const char *const names[] = {"\"operator\"", "\"shape\"", "\"kernel\"", "\"line\"", "\"module\""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ops_string_is(analysis_arg(run, "by"), names[i])) {
			*ret_by = (enum ops_roofline_by)i;
			return OPS_OK;
		}
	return ops_fault(run->error, OPS_INVALID, "option 'by' of %s is operator, shape, kernel, line or module", run->analysis->id);
}

enum ops_code analysis_operator_roofline(struct analysis_run *run)
{
	struct ops_string roof = analysis_text(run, "roof");
	struct ops_roofline_options options = {.roof = roof.size ? roof.bytes : NULL};
	enum ops_code code = run->code ? run->code : query_roofline_by(run, &options.by);

	return code ? code : query_fill_table(run, &table_operator_roofline, options.by == OPS_ROOFLINE_SHAPE ? ROOFLINE_BY_SHAPE : 0,
	                                      operator_roofline_fill, &options);
}

/* --- differences and advice ----------------------------------------------------------------------------------------- */

enum ops_code analysis_diff(struct analysis_run *run)
{
	struct ops_diff_options options = {.format = run->format, .columns = run->columns, .rules = run->rules,
	                                   .gate_ratio = analysis_number(run, "gate_percent") / 100};
	struct ops_trace *traces[2] = {NULL, NULL};
	struct query_text text = {NULL, 0};
	enum ops_code code = run->code;

	for (size_t i = 0; !code && i < 2; i++)
		code = analysis_open_trace(run, i, &traces[i]);
	if (!code)
		code = use_text(run, ops_diff(traces[0], traces[1], &options, &text.bytes, &text.size, NULL, run->error), &text);
	ops_trace_unref(traces[0]);
	ops_trace_unref(traces[1]);
	return code;
}

enum ops_code analysis_advise(struct analysis_run *run)
{
	struct ops_adviser *adviser = ops_adviser_new();
	struct query_text text = {NULL, 0};
	enum ops_code code = adviser ? OPS_OK : ops_fault_memory(run->error);

	for (size_t i = 0; !code && i < run->count; i++) {
		struct ops_rank rank = run->ranks[i];
		struct ops_trace *trace = NULL;

		code = analysis_open_trace(run, i, &trace);
		rank.trace = trace;
		if (!code)
			code = ops_adviser_add(adviser, &rank, run->error);
		ops_trace_unref(trace);
	}
	if (!code)
		code = use_text(run, ops_adviser_finish(adviser, run->format, &text.bytes, &text.size, run->error), &text);
	ops_adviser_free(adviser);
	return code;
}

enum ops_code analysis_rules(struct analysis_run *run)
{
	struct query_text text = {NULL, 0};

	return use_text(run, ops_advice_rules(run->format, &text.bytes, &text.size, run->error), &text);
}
