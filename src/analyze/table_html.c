/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator table as part of another page, such as a notebook: a fragment of HTML without script, in the page's own
 * colours, with a bar for each share. Names may contain anything and are escaped.
 */
#include <opstrobe/internal/analyze.h>

#include <string.h>

#include "analyze/table.h"
#include "base/markup.h"

#define BAR_WIDTH 48
#define TITLE_LETTERS 1000 /* limit on a truncated name's tooltip */
#define FRAMES_MAX 8       /* limit on the frames of a stack */

static const char style[] =
	"<style>"
	".opstrobe{overflow-x:auto}"
	".opstrobe table{table-layout:auto;border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums;color:inherit}"
	".opstrobe :is(th,td){padding:2px 8px;text-align:right;white-space:nowrap;vertical-align:top}"
	".opstrobe thead th{border-bottom:1px solid;font-weight:600}"
	".opstrobe :is(th,td).t{text-align:left;font-family:monospace}.opstrobe tbody th{font-weight:400}"
	".opstrobe svg{vertical-align:middle;margin-right:6px;max-width:none!important}"
	".opstrobe rect{fill:#4a86cf}.opstrobe rect.r{fill:currentColor;opacity:.15}"
	".opstrobe p{font-size:12px;margin:4px 8px}"
	"</style>";

/* --- cells ---------------------------------------------------------------------------------------------------------- */

static bool table_html_is_text(enum ops_table_column column)
{
	return column == OPS_COLUMN_NAME || column == OPS_COLUMN_OVERLOAD || column == OPS_COLUMN_SHAPES ||
	       column == OPS_COLUMN_SOURCE;
}

/* Appends a text, truncated to `letters` characters; the tooltip has all of it. */
static void table_html_append_text(struct ops_table *t, bool is_head, struct ops_string text, int64_t letters)
{
	ops_buffer_append_text(&t->out, is_head ? "<th scope=\"row\" class=\"t\"" : "<td class=\"t\"");
	if (ops_text_length(text) > (size_t)letters) {
		ops_buffer_append_text(&t->out, " title=\"");
		ops_markup_append(&t->out, text.bytes, text.size, TITLE_LETTERS);
		ops_buffer_append_text(&t->out, "\"");
	}
	ops_buffer_append_text(&t->out, ">");
	ops_markup_append(&t->out, text.bytes, text.size, (size_t)letters);
	ops_buffer_append_text(&t->out, is_head ? "</th>" : "</td>");
}

static void table_html_append_stack(struct ops_table *t, const struct ops_average *row)
{
	uint32_t chain = ops_table_stack(t, row);

	ops_buffer_append_text(&t->out, "<td class=\"t\">");
	for (uint32_t i = 0; chain != 0 && i < row->stack_frames && i < FRAMES_MAX; i++) {
		struct ops_string text = ops_stack_text(t->options->stacks, t->frames[chain].name);

		ops_buffer_append_text(&t->out, i ? "<br>" : "");
		ops_markup_append(&t->out, text.bytes, text.size, TITLE_LETTERS);
		chain = t->frames[chain].caller;
	}
	ops_buffer_append_text(&t->out, "</td>");
}

/* Appends the bar of a share, before its figure; none if the total is zero. */
static void append_bar(struct ops_table *t, int64_t part_ns, double total_us)
{
	double width = total_us > 0 ? BAR_WIDTH * ops_table_us(part_ns) / total_us : 0;

	if (total_us <= 0)
		return;
	width = width < 0 ? 0 : width > BAR_WIDTH ? BAR_WIDTH : width;
	ops_buffer_printf(&t->out,
	                  "<svg width=\"%d\" height=\"8\" aria-hidden=\"true\"><rect class=\"r\" width=\"%d\" height=\"8\"/>"
	                  "<rect width=\"%.1f\" height=\"8\"/></svg>",
	                  BAR_WIDTH, BAR_WIDTH, width);
}

static void append_number(struct ops_table *t, enum ops_table_column column, const struct ops_average *row)
{
	char cell[OPS_FORMAT_ROOM];

	ops_table_number(t, column, row, cell);
	ops_buffer_append_text(&t->out, "<td>");
	if (column == OPS_COLUMN_SELF_CPU_SHARE)
		append_bar(t, row->self_cpu_time_total_ns, t->self_cpu_us);
	else if (column == OPS_COLUMN_SELF_DEVICE_SHARE)
		append_bar(t, row->self_device_time_total_ns, t->self_device_us);
	ops_buffer_append_text(&t->out, cell + strspn(cell, " "));
	ops_buffer_append_text(&t->out, "</td>");
}

static void table_html_append_cell(struct ops_table *t, enum ops_table_column column, const struct ops_average *row)
{
	int64_t letters = t->options->max_name_column_width;

	if (column == OPS_COLUMN_NAME)
		table_html_append_text(t, true, ops_average_name(t->trace, row), letters);
	else if (column == OPS_COLUMN_OVERLOAD)
		table_html_append_text(t, false,
		                       row->overload == OPS_NONE ? (struct ops_string){"", 0}
		                                                 : ops_trace_string(t->trace, row->overload),
		                       letters);
	else if (column == OPS_COLUMN_SHAPES)
		table_html_append_text(t, false, ops_table_shapes_text(t, row->inputs), t->options->max_shapes_column_width);
	else if (column == OPS_COLUMN_SOURCE)
		table_html_append_stack(t, row);
	else
		append_number(t, column, row);
}

/* --- table ---------------------------------------------------------------------------------------------------------- */

static void table_html_append_head(struct ops_table *t)
{
	ops_buffer_append_text(&t->out, "<div class=\"opstrobe\">");
	ops_buffer_append_text(&t->out, style);
	ops_buffer_append_text(&t->out, "<table><thead><tr>");
	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		if (!ops_table_has_column(t, column))
			continue;
		ops_table_title(t, column);
		ops_buffer_append_text(&t->out,
		                       table_html_is_text(column) ? "<th scope=\"col\" class=\"t\">" : "<th scope=\"col\">");
		ops_markup_append(&t->out, t->scratch.bytes, t->scratch.size, SIZE_MAX);
		ops_buffer_append_text(&t->out, "</th>");
	}
	ops_buffer_append_text(&t->out, "</tr></thead><tbody>\n");
}

/* Returns the number of rows. */
static size_t table_html_append_rows(struct ops_table *t, const uint32_t *order)
{
	const struct ops_rows *rows = t->rows;
	uint64_t most = t->options->row_limit < 0 ? UINT64_MAX : (uint64_t)t->options->row_limit;
	size_t shown = 0;

	for (size_t n = 0; n < rows->count && shown < most && !t->out.failed; n++) {
		size_t i = order ? order[n] : n;
		struct ops_average row;

		if (t->options->top_level_events_only && rows->has_parent && rows->has_parent(rows->context, i))
			continue;
		rows->get(rows->context, i, &row);
		ops_buffer_append_text(&t->out, "<tr>");
		for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++)
			if (ops_table_has_column(t, column))
				table_html_append_cell(t, column, &row);
		ops_buffer_append_text(&t->out, "</tr>\n");
		shown++;
	}
	return shown;
}

static void table_html_append_foot(struct ops_table *t, size_t shown)
{
	char time[OPS_FORMAT_ROOM];

	ops_format_time(time, t->self_cpu_us, t->unit);
	ops_buffer_printf(&t->out, "</tbody></table><p>Self CPU time total: %s", time);
	if (t->has_device_time) {
		ops_format_time(time, t->self_device_us, t->unit);
		ops_buffer_append_text(&t->out, " · Self ");
		ops_markup_append(&t->out, t->device, strlen(t->device), SIZE_MAX);
		ops_buffer_printf(&t->out, " time total: %s", time);
	}
	if (shown < t->rows->count)
		ops_buffer_printf(&t->out, " · %zu of %zu rows", shown, t->rows->count);
	ops_buffer_append_text(&t->out, "</p></div>");
}

static void write_html(struct ops_table *t, const uint32_t *order)
{
	table_html_append_head(t);
	table_html_append_foot(t, table_html_append_rows(t, order));
}

enum ops_code ops_table_html(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	return ops_table_make(trace, rows, options, write_html, ret_text, ret_size, error);
}
