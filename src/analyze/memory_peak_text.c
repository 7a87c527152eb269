/* SPDX-License-Identifier: Apache-2.0
 *
 * The peak of memory as text, with a table for each list, and as JSON.
 */
#include <opstrobe/internal/memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "analyze/result.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/escape.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

#define STACK_MAX 32 /* limit on the frames of one allocation in JSON */

struct page {
	const struct ops_memory_timeline *timeline;
	const struct ops_memory_peak *peak;
	size_t top;
	size_t columns;
	struct ops_buffer out;
};

static size_t limited(const struct page *page, size_t count)
{
	return page->top && count > page->top ? page->top : count;
}

/* Formats "train.py:53" in the scratch buffer; null without a file. */
static struct ops_string place_text(struct ops_string file, uint32_t line, struct ops_buffer *scratch)
{
	scratch->size = 0;
	ops_buffer_append(scratch, file.bytes, file.size);
	if (line)
		ops_buffer_printf(scratch, ":%" PRIu32, line);
	return result_text_or_null((struct ops_string){ops_buffer_text(scratch), scratch->size});
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

/* A row of a list: a sum, or a block. */
struct line_row {
	int64_t bytes;
	double percent;
	uint32_t blocks;
	struct ops_string name, category, tensor, operator, module, place;
};

#define LINE_FIELD(member) RESULT_FIELD(struct line_row, member)
#define SIZE_COLUMNS                                                                                                    \
	{.name = "bytes", .type = RESULT_BYTES, .title = "Size", LINE_FIELD(bytes)},                                       \
	{.name = "percent", .type = RESULT_PERCENT, .title = "Share", LINE_FIELD(percent)}

/* The name follows, with its own title. */
static const struct result_column share_columns[] = {
	SIZE_COLUMNS,
	{.name = "blocks", .type = RESULT_COUNT, .title = "Blocks", LINE_FIELD(blocks)},
};

static const struct result_column block_columns[] = {
	SIZE_COLUMNS,
	{.name = "category", .type = RESULT_TEXT, .title = "Largest allocations", LINE_FIELD(category)},
	{.name = "tensor", .type = RESULT_TEXT, .title = "Tensor", LINE_FIELD(tensor)},
	{.name = "operator", .type = RESULT_TEXT, .title = "Operator", LINE_FIELD(operator)},
	{.name = "module", .type = RESULT_TEXT, .priority = RESULT_MINOR, .title = "Module", LINE_FIELD(module)},
	{.name = "line", .type = RESULT_TEXT, .title = "Source line", LINE_FIELD(place)},
};

static double memory_peak_text_percent_of(const struct page *page, int64_t bytes)
{
	return page->peak->bytes ? 100.0 * (double)bytes / (double)page->peak->bytes : 0;
}

/* Writes a table; `all` is the number of rows before truncation. */
static void memory_peak_text_write_table(struct page *page, struct result_table *table, size_t all)
{
	table->total_rows = result_table_rows(table) < all ? all : 0;
	result_table_omit_empty(table);
	ops_buffer_append_text(&page->out, "\n");
	page->out.failed |= !result_table_write(table, OPS_FORMAT_TEXT, page->columns, &page->out);
	result_table_release(table);
}

/* `nothing` is the text of a share without a name. */
static void write_shares(struct page *page, const char *title, const char *nothing, const struct ops_memory_share *shares,
                         size_t count)
{
	struct result_table table = {.copies = true};
	struct ops_buffer scratch = {0};

	if (!count)
		return;
	RESULT_DECLARED(&table, share_columns);
	result_columns(&table, &(struct result_column){.name = "name", .type = RESULT_TEXT, .title = title, LINE_FIELD(name)}, 1);
	for (size_t i = 0; i < limited(page, count); i++) {
		struct ops_string name = place_text(shares[i].name, shares[i].line, &scratch);

		result_add(&table, &(struct line_row){.bytes = shares[i].bytes,
		                                      .percent = memory_peak_text_percent_of(page, shares[i].bytes),
		                                      .blocks = shares[i].blocks,
		                                      .name = name.size ? name : ops_string_of(nothing)});
	}
	table.failed |= scratch.failed;
	memory_peak_text_write_table(page, &table, count);
	ops_buffer_release(&scratch);
}

OPS_ORDER(compare_shares, struct ops_memory_share, OPS_DOWN(bytes) OPS_BY_TEXT(name))

static void memory_peak_text_write_categories(struct page *page)
{
	struct ops_memory_share shares[OPS_MEMORY_CATEGORY_COUNT];
	size_t count = 0;

	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		if (page->peak->by_category[i])
			shares[count++] = (struct ops_memory_share){
				.bytes = page->peak->by_category[i],
				.name = ops_string_of(ops_memory_category_title((enum ops_memory_category)i))};
	qsort(shares, count, sizeof(*shares), compare_shares);
	write_shares(page, "Category", "", shares, count);
}

static void write_blocks(struct page *page)
{
	const struct ops_memory_timeline *timeline = page->timeline;
	struct result_table table = {.copies = true};
	struct ops_buffer scratch = {0};

	RESULT_DECLARED(&table, block_columns);
	for (size_t i = 0; i < limited(page, page->peak->block_count); i++) {
		uint32_t number = page->peak->blocks[i], line = 0;
		const struct ops_memory_block *block = &timeline->blocks[number];
		struct ops_string file = ops_memory_line(timeline, number, &line);

		result_add(&table, &(struct line_row){
					   .bytes = block->bytes,
					   .percent = memory_peak_text_percent_of(page, block->bytes),
					   .category = ops_string_of(
						   ops_memory_category_title((enum ops_memory_category)block->category)),
					   .tensor = result_text_or_null(ops_trace_string(timeline->trace, block->name)),
					   .operator= block->start_ns == INT64_MIN
					           ? ops_string_of("(before the recording)")
					           : result_text_or_null(ops_memory_operator(timeline, number)),
					   .module = result_text_or_null(ops_memory_module(timeline, number)),
					   .place = place_text(file, file.size ? line : 0, &scratch),
				   });
	}
	table.failed |= scratch.failed;
	memory_peak_text_write_table(page, &table, 0);
	ops_buffer_release(&scratch);
}

static void memory_peak_text_append_bytes(struct ops_buffer *out, int64_t bytes)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_bytes(text, bytes);
	ops_buffer_append_text(out, text);
}

/* Writes the current line and empties the buffer. */
static void memory_peak_text_flush(struct page *page, struct ops_buffer *line)
{
	fit_wrap(&page->out, (struct ops_string){ops_buffer_text(line), line->size}, page->columns, 0);
	page->out.failed |= line->failed;
	line->size = 0;
}

static void memory_peak_text_write_head(struct page *page)
{
	const struct ops_memory_peak *peak = page->peak;
	const struct ops_trace *trace = page->timeline->trace;
	char device[OPS_MEMORY_DEVICE_ROOM];
	struct ops_buffer line = {0};

	ops_memory_device_title(peak->device, device);
	ops_buffer_printf(&line, "%s of %s: ", peak->chosen ? "Memory" : "Peak memory", device);
	memory_peak_text_append_bytes(&line, peak->bytes);
	if (peak->time_ns >= 0) {
		char after[OPS_FORMAT_ROOM];

		ops_format_moment(after, ops_difference(peak->time_ns, ops_trace_origin(trace)));
		ops_buffer_printf(&line, ", %s after the start", after);
	}
	if (peak->row != OPS_NONE && !peak->chosen) {
		struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[peak->row]);

		ops_buffer_append_text(&line, ", in ");
		ops_plain_append(&line, name.bytes, name.size);
	}
	memory_peak_text_flush(page, &line);
	if (peak->before_bytes) {
		ops_buffer_append_text(&line, "Allocated before the recording: ");
		memory_peak_text_append_bytes(&line, peak->before_bytes);
		memory_peak_text_flush(page, &line);
	}
	for (unsigned gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1) {
		if (!(page->timeline->gaps & gap))
			continue;
		ops_buffer_printf(&line, "Note: %s.", ops_memory_gap_text(gap));
		memory_peak_text_flush(page, &line);
	}
	ops_buffer_release(&line);
}

static void memory_peak_text_write_text(struct page *page)
{
	const struct ops_memory_peak *peak = page->peak;

	memory_peak_text_write_head(page);
	if (peak->bytes <= 0)
		return;
	memory_peak_text_write_categories(page);
	write_shares(page, "Module", "(outside modules)", peak->modules, peak->module_count);
	write_shares(page, "Source line", "(unknown)", peak->lines, peak->line_count);
	write_shares(page, "Operator", "(outside operators)", peak->operators, peak->operator_count);
	write_shares(page, "Shape", "(unknown)", peak->shapes, peak->shape_count);
	write_blocks(page);
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static void write_share_list(struct ops_json_writer *json, const struct page *page, const char *key,
                             const struct ops_memory_share *shares, size_t count, bool by_line)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < limited(page, count); i++) {
		ops_json_open(json, '{');
		ops_json_member(json, "bytes", shares[i].bytes);
		ops_json_member(json, "blocks", shares[i].blocks);
		ops_json_member_string(json, by_line ? "file" : "name", shares[i].name);
		if (by_line)
			ops_json_member(json, "line", shares[i].line);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Writes the names of the Python calls around a row, innermost first. */
static void memory_peak_text_write_stack(struct ops_json_writer *json, const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t count = 0;

	ops_json_member_open(json, "stack", '[');
	for (; row != OPS_NONE && count < STACK_MAX; row = e->parent[row]) {
		struct ops_string name = ops_trace_string(trace, e->name[row]);

		if (e->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
			continue;
		count++;
		ops_json_text(json, name.bytes, name.size);
	}
	ops_json_close(json, ']');
}

static void write_allocation(struct ops_json_writer *json, const struct ops_memory_timeline *timeline, uint32_t number)
{
	const struct ops_trace *trace = timeline->trace;
	const struct ops_memory_block *block = &timeline->blocks[number];
	struct ops_string event = {"", 0}, file;
	uint32_t line;
	char address[24];

	if (block->row != OPS_NONE)
		event = ops_trace_string(trace, ops_trace_events(trace)->name[block->row]);
	file = ops_memory_line(timeline, number, &line);
	ops_json_open(json, '{');
	ops_json_member(json, "bytes", block->bytes);
	ops_json_member_text(json, "category", ops_memory_category_name((enum ops_memory_category)block->category));
	ops_json_key(json, "address");
	ops_json_raw(json, address, (size_t)snprintf(address, sizeof(address), "%" PRIu64, block->address));
	ops_json_member_if(json, "start_ns", block->start_ns != INT64_MIN, block->start_ns);
	ops_json_member_string(json, "name", ops_trace_string(trace, block->name));
	ops_json_member_string(json, "event", event);
	ops_json_member_string(json, "operator", ops_memory_operator(timeline, number));
	ops_json_member_string(json, "module", ops_memory_module(timeline, number));
	ops_json_member_string(json, "file", file);
	ops_json_member(json, "line", line);
	memory_peak_text_write_stack(json, trace, block->row);
	ops_json_close(json, '}');
}

static void memory_peak_text_write_json(struct page *page)
{
	struct ops_json_writer json = {.out = &page->out};
	const struct ops_memory_peak *peak = page->peak;
	char device[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(peak->device, device);
	ops_json_open(&json, '{');
	ops_json_member_text(&json, "device", device);
	ops_json_member(&json, "bytes", peak->bytes);
	ops_json_member(&json, "time_ns", peak->time_ns);
	ops_json_member(&json, "before_bytes", peak->before_bytes);
	ops_json_member_open(&json, "categories", '{');
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		ops_json_member(&json, ops_memory_category_name((enum ops_memory_category)i), peak->by_category[i]);
	ops_json_close(&json, '}');
	write_share_list(&json, page, "operators", peak->operators, peak->operator_count, false);
	write_share_list(&json, page, "modules", peak->modules, peak->module_count, false);
	write_share_list(&json, page, "lines", peak->lines, peak->line_count, true);
	write_share_list(&json, page, "shapes", peak->shapes, peak->shape_count, false);
	OPS_JSON_LIST(&json, "allocations", i, limited(page, peak->block_count),
	              write_allocation(&json, page->timeline, peak->blocks[i]));
	ops_json_member_open(&json, "missing", '[');
	for (unsigned gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1)
		if (page->timeline->gaps & gap)
			ops_json_word(&json, ops_memory_gap_text(gap));
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
}

enum ops_code ops_memory_peak_text(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak,
                                   size_t top, size_t columns, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct page page = {timeline, peak, top, columns, {0}};

	memory_peak_text_write_text(&page);
	return ops_buffer_detach(&page.out, OPS_OK, ret_text, ret_size, error);
}

enum ops_code ops_memory_peak_json(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak,
                                   size_t top, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct page page = {timeline, peak, top, 0, {0}};

	memory_peak_text_write_json(&page);
	return ops_buffer_detach(&page.out, OPS_OK, ret_text, ret_size, error);
}

static bool memory_peak_text_visit(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	struct page *page = context;

	ops_buffer_append_text(&page->out, page->timeline ? "\n" : "");
	page->timeline = timeline;
	page->peak = peak;
	memory_peak_text_write_text(page);
	return !page->out.failed;
}

enum ops_code ops_memory_text(struct ops_trace *trace, size_t top, size_t columns, const struct ops_memory_moment *moment, char **ret_text,
                              size_t *ret_size, struct ops_error *error)
{
	struct page page = {.top = top, .columns = columns};
	enum ops_code code = ops_memory_each_peak(trace, moment, memory_peak_text_visit, &page, error);

	if (!code && !page.timeline)
		ops_buffer_append_text(&page.out, OPS_MEMORY_EMPTY "\n");
	return ops_buffer_detach(&page.out, code, ret_text, ret_size, error);
}
