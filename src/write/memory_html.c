/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory timeline as a page for a browser: stacked areas by category, and what holds memory at the peak. The page is a single
 * file, light or dark according to the reader's system. The plot has one column for each pixel, however long the timeline; each
 * column shows the moment with the most memory in it, so that no peak is lost.
 */
#include "write/memory_html.h"

#include <inttypes.h>
#include <string.h>

#include <opstrobe/internal/format.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/sink.h"

#define COLUMNS 880
#define HEIGHT 360
#define LEFT 76
#define TOP 14
#define ROWS 15 /* in the list of allocations */

struct column {
	int64_t held[OPS_MEMORY_CATEGORY_COUNT];
	int64_t total;
};

struct page {
	const struct ops_memory_timeline *timeline;
	struct ops_memory_peak peak;
	struct column *columns;
	int64_t start_ns; /* of the plot */
	int64_t length_ns;
	double top_bytes; /* of the scale */
	struct ops_buffer out;
};

/* --- contents of the page ------------------------------------------------------------------------------------------ */

static void find_span(struct page *page)
{
	const struct ops_memory_timeline *timeline = page->timeline;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];

		if (step->time_ns == -1 || !ops_memory_on_device(&timeline->blocks[step->block], page->peak.device))
			continue;
		if (step->time_ns < first)
			first = step->time_ns;
		if (step->time_ns > last)
			last = step->time_ns;
	}
	page->start_ns = first == INT64_MAX ? ops_trace_info(timeline->trace)->start_ns : first;
	page->length_ns = last > first ? last - first : 1;
}

static size_t column_at(const struct page *page, int64_t time_ns)
{
	double at = time_ns <= page->start_ns
	                    ? 0
	                    : (double)(time_ns - page->start_ns) / (double)page->length_ns * (COLUMNS - 1);

	return at >= COLUMNS - 1 ? COLUMNS - 1 : (size_t)at;
}

static struct column sum_column(const int64_t *held)
{
	struct column column = {0};

	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++) {
		column.held[i] = held[i] > 0 ? held[i] : 0;
		column.total += column.held[i];
	}
	return column;
}

static void fill_columns(struct page *page)
{
	const struct ops_memory_timeline *timeline = page->timeline;
	int64_t held[OPS_MEMORY_CATEGORY_COUNT] = {0};
	struct column now = {0};
	size_t at = 0;

	for (size_t i = 0; i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		size_t column = step->time_ns == -1 ? 0 : column_at(page, step->time_ns);

		if (!ops_memory_on_device(&timeline->blocks[step->block], page->peak.device))
			continue;
		while (at < column)
			page->columns[++at] = now;
		ops_memory_apply(timeline, step, held);
		if (i + 1 < timeline->step_count && timeline->steps[i + 1].time_ns == step->time_ns)
			continue;
		now = sum_column(held);
		if (now.total >= page->columns[at].total)
			page->columns[at] = now;
	}
	while (at < COLUMNS - 1)
		page->columns[++at] = now;
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void memory_html_put(struct page *page, const char *text)
{
	ops_buffer_append_text(&page->out, text);
}

static void put_escaped(struct page *page, struct ops_string text)
{
	for (size_t i = 0; i < text.size; i++) {
		char c = text.bytes[i];

		if (c == '<' || c == '>' || c == '&' || c == '"')
			ops_buffer_printf(&page->out, "&#%d;", c);
		else if ((unsigned char)c >= ' ')
			ops_buffer_append(&page->out, &c, 1);
	}
}

static const char *unit_of(double bytes, double *ret_unit)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	for (*ret_unit = 1; bytes >= *ret_unit * 1024 && i + 1 < sizeof(names) / sizeof(names[0]); i++)
		*ret_unit *= 1024;
	return names[i];
}

static void memory_html_put_bytes(struct page *page, int64_t bytes)
{
	ops_buffer_append_text(&page->out, ops_figure_of_bytes(bytes).text);
}

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--ink:#1d2126;--soft:#5c6570;--line:#d9dde2;--back:#fff}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#9aa4af;--line:#343a41;--back:#16191d}}\n"
	"body{font:14px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1000px;margin:28px auto;"
	"padding:0 20px}\n"
	"h1{font-size:20px;margin:0}h2{font-size:15px;margin:26px 0 6px}p{margin:2px 0 14px;color:var(--soft)}\n"
	"svg{width:100%;height:auto;display:block}text{font-size:11px;fill:var(--soft)}\n"
	".grid{stroke:var(--line)}#cursor{stroke:var(--ink);stroke-dasharray:3 3}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:3px 14px 3px 0;text-align:left;"
	"border-bottom:1px solid var(--line);overflow-wrap:anywhere}th{color:var(--soft);font-weight:500}\n"
	".n{text-align:right;white-space:nowrap;min-width:6em}i{display:inline-block;width:11px;height:11px;border-radius:2px;"
	"margin-right:8px}\n";

static void memory_html_put_time(struct page *page, int64_t ns)
{
	char time[OPS_FORMAT_ROOM];

	ops_format_duration(time, (double)ns);
	ops_buffer_printf(&page->out, "%s after the first change", time);
}

static void memory_html_put_head(struct page *page)
{
	static const char *const colours[][2] = {
#define COLOURS(name, title, light, dark) {light, dark},
		OPS_MEMORY_CATEGORIES(COLOURS)
#undef COLOURS
	};
	char device[OPS_MEMORY_DEVICE_ROOM];

	memory_html_put(page,
	                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory timeline</title>\n"
	                "<meta name=\"viewport\" content=\"width=device-width\">\n");
	memory_html_put(page, style);
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		ops_buffer_printf(&page->out, ".c%zu{fill:%s;background:%s}", i, colours[i][0], colours[i][0]);
	memory_html_put(page, "\n@media(prefers-color-scheme:dark){");
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		ops_buffer_printf(&page->out, ".c%zu{fill:%s;background:%s}", i, colours[i][1], colours[i][1]);
	ops_memory_device_title(page->peak.device, device);
	ops_buffer_printf(&page->out, "}\n</style></head><body>\n<h1>Memory timeline of %s</h1>\n<p>The peak is ", device);
	if (page->peak.time_ns >= 0)
		memory_html_put_time(page, page->peak.time_ns - page->start_ns);
	else
		memory_html_put(page, "at the start");
	memory_html_put(page, ": ");
	memory_html_put_bytes(page, page->peak.bytes);
	memory_html_put(page, ". Each column of the plot shows its highest value.");
	for (unsigned gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1)
		if (page->timeline->gaps & gap)
			ops_buffer_printf(&page->out, "<br>Note: %s.", ops_memory_gap_text(gap));
	memory_html_put(page, "</p>\n");
}

/* --- plot ------------------------------------------------------------------------------------------------------------ */

/* Returns a round distance between the grid lines of a scale, for about five lines. */
static double round_step(double length)
{
	double step = 1, unit;

	unit_of(length, &unit);
	while (length / (step * unit) > 6)
		step = length / (step * unit * 2) <= 6 ? step * 2 : length / (step * unit * 5) <= 6 ? step * 5 : step * 10;
	while (length / (step * unit) < 2)
		step /= 2;
	return step * unit;
}

/* Returns the unit of the axis of time, in nanoseconds, and its name. */
static double axis_unit_of(const struct page *page, const char **ret_name)
{
	double length_ns = (double)page->length_ns;

	*ret_name = length_ns >= 1e9 ? "s" : length_ns >= 1e6 ? "ms" : OPS_MICROSECONDS;
	return length_ns >= 1e9 ? 1e9 : length_ns >= 1e6 ? 1e6 : 1e3;
}

static double y_of(const struct page *page, int64_t bytes)
{
	return TOP + HEIGHT - (double)bytes / page->top_bytes * HEIGHT;
}

static void put_scales(struct page *page)
{
	double step = round_step(page->top_bytes), mark = 1e-6, unit, length;
	const char *name = unit_of(page->top_bytes, &unit), *axis;

	length = (double)page->length_ns / axis_unit_of(page, &axis);
	for (double bytes = 0; bytes <= page->top_bytes; bytes += step)
		ops_buffer_printf(&page->out,
		                  "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
		                  "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %s</text>\n",
		                  LEFT, LEFT + COLUMNS, y_of(page, (int64_t)bytes), y_of(page, (int64_t)bytes), LEFT - 8,
		                  y_of(page, (int64_t)bytes) + 4, bytes / unit, name);
	for (int digit = 0; length / mark > 10; digit++) /* factors 1, 2, 5, 10, … */
		mark *= digit % 3 == 1 ? 2.5 : 2;
	for (double at = 0; at <= length; at += mark)
		ops_buffer_printf(&page->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
		                  LEFT + at / length * COLUMNS, TOP + HEIGHT + 18, at);
	ops_buffer_printf(&page->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT + COLUMNS,
	                  TOP + HEIGHT + 34, axis);
}

/* Returns the bytes of the categories below `category` in a column. */
static int64_t below(const struct column *column, size_t category)
{
	int64_t sum = 0;

	for (size_t i = 0; i < category; i++)
		sum += column->held[i];
	return sum;
}

/* Writes the upper edge from left to right, then the lower one back, with corners only at changes. */
static void put_area(struct page *page, size_t category)
{
	bool any = false;

	for (size_t i = 0; i < COLUMNS; i++)
		any |= page->columns[i].held[category] > 0;
	if (!any)
		return;
	ops_buffer_printf(&page->out, "<path class=\"c%zu\" d=\"M%d %.1f", category, LEFT,
	                  y_of(page, below(&page->columns[0], category + 1)));
	for (size_t i = 1; i < COLUMNS; i++) {
		int64_t edge = below(&page->columns[i], category + 1);
		if (edge != below(&page->columns[i - 1], category + 1))
			ops_buffer_printf(&page->out, "H%zuV%.1f", LEFT + i, y_of(page, edge));
	}
	ops_buffer_printf(&page->out, "H%dV%.1f", LEFT + COLUMNS, y_of(page, below(&page->columns[COLUMNS - 1], category)));
	for (size_t i = COLUMNS - 1; i > 0; i--) {
		int64_t edge = below(&page->columns[i - 1], category);
		if (edge != below(&page->columns[i], category))
			ops_buffer_printf(&page->out, "H%zuV%.1f", LEFT + i, y_of(page, edge));
	}
	ops_buffer_printf(&page->out, "H%dZ\"><title>%s</title></path>\n", LEFT, ops_memory_category_title(category));
}

static void put_plot(struct page *page)
{
	ops_buffer_printf(&page->out, "<svg id=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Memory by category over "
	                  "time\">\n", LEFT + COLUMNS + 14, TOP + HEIGHT + 40);
	put_scales(page);
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		put_area(page, i);
	ops_buffer_printf(&page->out, "<line id=\"cursor\" y1=\"%d\" y2=\"%d\" visibility=\"hidden\"/>\n</svg>\n", TOP,
	                  TOP + HEIGHT);
}

/* --- tables ---------------------------------------------------------------------------------------------------------- */

static void put_legend(struct page *page)
{
	memory_html_put(page,
	                "<table id=\"legend\"><tr><th>Category</th><th class=\"n\">At the peak</th><th class=\"n\">Share</th>"
	                "<th class=\"n\" id=\"when\">At the pointer</th></tr>\n");
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++) {
		ops_buffer_printf(&page->out, "<tr><td><i class=\"c%zu\"></i>%s</td><td class=\"n\">", i,
		                  ops_memory_category_title(i));
		memory_html_put_bytes(page, page->peak.by_category[i]);
		ops_buffer_printf(&page->out, "</td><td class=\"n\">%s</td><td class=\"n\"></td></tr>\n",
		                  ops_figure_of_percent(page->peak.bytes ? 100.0 * (double)page->peak.by_category[i] / (double)page->peak.bytes : 0.0).text);
	}
	memory_html_put(page, "</table>\n");
}

static void put_allocations(struct page *page)
{
	const struct ops_memory_timeline *timeline = page->timeline;

	memory_html_put(
		page,
		"<h2>Largest at the peak</h2>\n<table><tr><th class=\"n\">Bytes</th><th>Category</th><th>What</th><th>Module"
		"</th><th>Line</th></tr>\n");
	for (size_t i = 0; i < page->peak.block_count && i < ROWS; i++) {
		uint32_t number = page->peak.blocks[i], line;
		const struct ops_memory_block *block = &timeline->blocks[number];
		struct ops_string file = ops_memory_line(timeline, number, &line);

		memory_html_put(page, "<tr><td class=\"n\">");
		memory_html_put_bytes(page, block->bytes);
		ops_buffer_printf(&page->out, "</td><td>%s</td><td>", ops_memory_category_title(block->category));
		put_escaped(page, block->name ? ops_trace_string(timeline->trace, block->name)
		                              : ops_memory_operator(timeline, number));
		memory_html_put(page, "</td><td>");
		put_escaped(page, ops_memory_module(timeline, number));
		memory_html_put(page, "</td><td>");
		put_escaped(page, file);
		if (line)
			ops_buffer_printf(&page->out, ":%" PRIu32, line);
		memory_html_put(page, "</td></tr>\n");
	}
	memory_html_put(page, "</table>\n");
}

/* Writes the script that shows the values under the pointer. */
static void put_script(struct page *page)
{
	const char *axis;
	double length;

	memory_html_put(page, "<script>\nconst held=[");
	for (size_t i = 0; i < COLUMNS; i++) {
		memory_html_put(page, i ? ",[" : "[");
		for (size_t c = 0; c < OPS_MEMORY_CATEGORY_COUNT; c++)
			ops_buffer_printf(&page->out, c ? ",%" PRId64 : "%" PRId64, page->columns[i].held[c]);
		memory_html_put(page, "]");
	}
	length = (double)page->length_ns / axis_unit_of(page, &axis);
	ops_buffer_printf(&page->out, "],length=%.6f,unit='%s',left=%d;\n", length, axis, LEFT);
	memory_html_put(
		page,
		"const plot=document.getElementById('plot'),cursor=document.getElementById('cursor');\n"
		"const cells=[...document.querySelectorAll('#legend tr')].slice(1).map(r=>r.lastElementChild);\n"
		"const text=b=>{let u=0;while(b>=(u?1023.5:1024)&&u<4){b/=1024;u++}return(u?b.toFixed(b<9.995?2:b<99.95?1:0):b)"
		".toLocaleString('en-US')+' '+"
		"['B','KiB','MiB','GiB','TiB'][u]};\n"
		"plot.onpointermove=e=>{const p=new DOMPoint(e.clientX,e.clientY).matrixTransform("
		"plot.getScreenCTM().inverse()),i=Math.floor(p.x-left);if(i<0||i>=held.length)return;\n"
		"cursor.setAttribute('x1',p.x);cursor.setAttribute('x2',p.x);cursor.setAttribute('visibility','visible');\n"
		"document.getElementById('when').textContent='At '+(i/(held.length-1)*length).toFixed(3)+' '+unit;\n"
		"held[i].forEach((b,c)=>cells[c].textContent=text(b))};\n</script>\n");
}

enum ops_code ops_write_memory_html(struct ops_sink *sink, const struct ops_memory_timeline *timeline,
                                    struct ops_memory_device device, struct ops_error *error)
{
	struct page page = {.timeline = timeline, .columns = ops_alloc_zeroed(COLUMNS, sizeof(*page.columns))};
	enum ops_code code = page.columns ? ops_memory_peak_of(timeline, device, &page.peak, error) : ops_fault_memory(error);

	if (!code) {
		find_span(&page);
		fill_columns(&page);
		page.top_bytes = page.peak.bytes > 0 ? (double)page.peak.bytes * 1.04 : 1024;
		memory_html_put_head(&page);
		put_plot(&page);
		put_legend(&page);
		put_allocations(&page);
		put_script(&page);
		memory_html_put(&page, "</body></html>\n");
		if (page.out.failed)
			code = ops_fault_memory(error);
		else
			ops_sink_write(sink, page.out.bytes, page.out.size);
	}
	ops_buffer_release(&page.out);
	ops_memory_peak_release(&page.peak);
	ops_free(page.columns);
	return code;
}
