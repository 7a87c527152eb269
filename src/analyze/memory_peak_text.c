/* SPDX-License-Identifier: Apache-2.0
 *
 * The peak of memory, told: a page of text for people, and the same as JSON.
 */
#include <opstrobe/memory.h>

#include <inttypes.h>
#include <string.h>

#include "analyze/sum.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/escape.h"
#include "base/json.h"

#define STACK_MAX 32 /* frames shown of one allocation in JSON */

struct teller {
	const struct ops_memory_timeline *timeline;
	const struct ops_memory_peak *peak;
	size_t top;
	struct ops_buffer out;
};

static size_t limited(const struct teller *teller, size_t count)
{
	return teller->top && count > teller->top ? teller->top : count;
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

static void put_bytes(struct teller *teller, int64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)bytes;
	size_t unit = 0;

	while (size >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		size /= 1024;
		unit++;
	}
	ops_buffer_printf(&teller->out, unit ? "%9.2f %-3s" : "%9.0f %-3s", size, units[unit]);
}

static void put_share(struct teller *teller, int64_t bytes)
{
	put_bytes(teller, bytes);
	ops_buffer_printf(&teller->out, " %6.2f %%  ",
	                  teller->peak->bytes ? 100.0 * (double)bytes / (double)teller->peak->bytes : 0.0);
}

static void put_string(struct teller *teller, struct ops_string text)
{
	ops_plain_append(&teller->out, text.bytes, text.size);
}

static void put_list(struct teller *teller, const char *title, const struct ops_memory_share *shares, size_t count)
{
	size_t shown = limited(teller, count);

	if (!count)
		return;
	ops_buffer_printf(&teller->out, "\n%s\n", title);
	for (size_t i = 0; i < shown; i++) {
		put_share(teller, shares[i].bytes);
		if (shares[i].name.size)
			put_string(teller, shares[i].name);
		else
			ops_buffer_append_text(&teller->out, "(none)");
		if (shares[i].line)
			ops_buffer_printf(&teller->out, ":%" PRIu32, shares[i].line);
		ops_buffer_printf(&teller->out, "  (%" PRIu32 " block%s)\n", shares[i].blocks, shares[i].blocks == 1 ? "" : "s");
	}
	if (shown < count)
		ops_buffer_printf(&teller->out, "           … and %zu more\n", count - shown);
}

/* What is known of a block, in one line. */
static void put_block(struct teller *teller, uint32_t number)
{
	const struct ops_memory_block *block = &teller->timeline->blocks[number];
	struct ops_string op = ops_memory_operator(teller->timeline, number);
	struct ops_string module = ops_memory_module(teller->timeline, number);
	uint32_t line;
	struct ops_string file = ops_memory_line(teller->timeline, number, &line);

	put_share(teller, block->bytes);
	ops_buffer_append_text(&teller->out, ops_memory_category_name(block->category));
	if (block->name) {
		ops_buffer_append_text(&teller->out, " ");
		put_string(teller, ops_trace_string(teller->timeline->trace, block->name));
	}
	if (op.size) {
		ops_buffer_append_text(&teller->out, "  ");
		put_string(teller, op);
	}
	if (module.size) {
		ops_buffer_append_text(&teller->out, " in ");
		put_string(teller, module);
	}
	if (file.size) {
		ops_buffer_append_text(&teller->out, "  ");
		put_string(teller, file);
		ops_buffer_printf(&teller->out, ":%" PRIu32, line);
	}
	if (block->start_ns == INT64_MIN)
		ops_buffer_append_text(&teller->out, "  (from before the recording)");
	ops_buffer_append_text(&teller->out, "\n");
}

static void put_head(struct teller *teller)
{
	const struct ops_memory_peak *peak = teller->peak;
	const struct ops_trace *trace = teller->timeline->trace;
	char device[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(peak->device, device);
	ops_buffer_printf(&teller->out, "%s of %s:", peak->chosen ? "Memory" : "Peak memory", device);
	put_bytes(teller, peak->bytes);
	if (peak->time_ns >= 0)
		ops_buffer_printf(&teller->out, ", %.3f ms after the start",
		                  (double)ops_difference(peak->time_ns, ops_trace_origin(trace)) / 1e6);
	if (peak->row != OPS_NONE && !peak->chosen) {
		ops_buffer_append_text(&teller->out, ", in ");
		put_string(teller, ops_trace_string(trace, ops_trace_events(trace)->name[peak->row]));
	}
	ops_buffer_append_text(&teller->out, "\n");
	if (peak->before_bytes) {
		ops_buffer_append_text(&teller->out, "Allocated before the recording:");
		put_bytes(teller, peak->before_bytes);
		ops_buffer_append_text(&teller->out, "\n");
	}
	for (unsigned gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1)
		if (teller->timeline->gaps & gap)
			ops_buffer_printf(&teller->out, "Note: %s.\n", ops_memory_gap_text(gap));
}

static void tell(struct teller *teller)
{
	const struct ops_memory_peak *peak = teller->peak;

	put_head(teller);
	if (peak->bytes <= 0)
		return;
	ops_buffer_append_text(&teller->out, "\nBy category\n");
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++) {
		if (peak->by_category[i] == 0)
			continue;
		put_share(teller, peak->by_category[i]);
		ops_buffer_printf(&teller->out, "%s\n", ops_memory_category_name(i));
	}
	put_list(teller, "By module", peak->modules, peak->module_count);
	put_list(teller, "By source line", peak->lines, peak->line_count);
	put_list(teller, "By operator", peak->operators, peak->operator_count);
	put_list(teller, "By shape", peak->shapes, peak->shape_count);
	ops_buffer_append_text(&teller->out, "\nLargest allocations\n");
	for (size_t i = 0; i < limited(teller, peak->block_count); i++)
		put_block(teller, peak->blocks[i]);
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static void put_json_string(struct teller *teller, const char *key, struct ops_string text)
{
	ops_buffer_printf(&teller->out, ", \"%s\": ", key);
	ops_json_string(&teller->out, text.bytes, text.size);
}

static void put_json_list(struct teller *teller, const char *key, const char *name, const struct ops_memory_share *shares,
                          size_t count)
{
	ops_buffer_printf(&teller->out, ", \"%s\": [", key);
	for (size_t i = 0; i < limited(teller, count); i++) {
		ops_buffer_printf(&teller->out, "%s{\"bytes\": %" PRId64 ", \"blocks\": %" PRIu32, i ? ", " : "", shares[i].bytes,
		                  shares[i].blocks);
		put_json_string(teller, name, shares[i].name);
		if (strcmp(name, "file") == 0)
			ops_buffer_printf(&teller->out, ", \"line\": %" PRIu32, shares[i].line);
		ops_buffer_append_text(&teller->out, "}");
	}
	ops_buffer_append_text(&teller->out, "]");
}

/* The names of the Python calls around a row, innermost first. */
static void put_json_stack(struct teller *teller, uint32_t row)
{
	const struct ops_trace *trace = teller->timeline->trace;
	const struct ops_events *e = ops_trace_events(trace);
	size_t count = 0;

	ops_buffer_append_text(&teller->out, ", \"stack\": [");
	for (; row != OPS_NONE && count < STACK_MAX; row = e->parent[row]) {
		struct ops_string name = ops_trace_string(trace, e->name[row]);

		if (e->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
			continue;
		if (count++)
			ops_buffer_append_text(&teller->out, ", ");
		ops_json_string(&teller->out, name.bytes, name.size);
	}
	ops_buffer_append_text(&teller->out, "]");
}

static void put_json_block(struct teller *teller, uint32_t number)
{
	const struct ops_trace *trace = teller->timeline->trace;
	const struct ops_memory_block *block = &teller->timeline->blocks[number];
	struct ops_string event = {"", 0};
	uint32_t line;
	struct ops_string file = ops_memory_line(teller->timeline, number, &line);

	if (block->row != OPS_NONE)
		event = ops_trace_string(trace, ops_trace_events(trace)->name[block->row]);
	ops_buffer_printf(&teller->out, "{\"bytes\": %" PRId64 ", \"category\": \"%s\", \"address\": %" PRIu64 ", \"start_ns\": ",
	                  block->bytes, ops_memory_category_name(block->category), block->address);
	if (block->start_ns == INT64_MIN)
		ops_buffer_append_text(&teller->out, "null");
	else
		ops_buffer_printf(&teller->out, "%" PRId64, block->start_ns);
	put_json_string(teller, "name", ops_trace_string(trace, block->name));
	put_json_string(teller, "event", event);
	put_json_string(teller, "operator", ops_memory_operator(teller->timeline, number));
	put_json_string(teller, "module", ops_memory_module(teller->timeline, number));
	put_json_string(teller, "file", file);
	ops_buffer_printf(&teller->out, ", \"line\": %" PRIu32, line);
	put_json_stack(teller, block->row);
	ops_buffer_append_text(&teller->out, "}");
}

static void tell_json(struct teller *teller)
{
	const struct ops_memory_peak *peak = teller->peak;
	char device[OPS_MEMORY_DEVICE_ROOM];
	bool first = true;

	ops_memory_device_name(peak->device, device);
	ops_buffer_printf(&teller->out, "{\"device\": \"%s\", \"bytes\": %" PRId64 ", \"time_ns\": %" PRId64
	                  ", \"before_bytes\": %" PRId64 ", \"categories\": {",
	                  device, peak->bytes, peak->time_ns, peak->before_bytes);
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
		ops_buffer_printf(&teller->out, "%s\"%s\": %" PRId64, i ? ", " : "", ops_memory_category_name(i),
		                  peak->by_category[i]);
	ops_buffer_append_text(&teller->out, "}");
	put_json_list(teller, "operators", "name", peak->operators, peak->operator_count);
	put_json_list(teller, "modules", "name", peak->modules, peak->module_count);
	put_json_list(teller, "lines", "file", peak->lines, peak->line_count);
	put_json_list(teller, "shapes", "name", peak->shapes, peak->shape_count);
	ops_buffer_append_text(&teller->out, ", \"allocations\": [");
	for (size_t i = 0; i < limited(teller, peak->block_count); i++) {
		ops_buffer_append_text(&teller->out, i ? ", " : "");
		put_json_block(teller, peak->blocks[i]);
	}
	ops_buffer_append_text(&teller->out, "], \"missing\": [");
	for (unsigned gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1) {
		if (!(teller->timeline->gaps & gap))
			continue;
		ops_buffer_append_text(&teller->out, first ? "" : ", ");
		ops_json_string(&teller->out, ops_memory_gap_text(gap), strlen(ops_memory_gap_text(gap)));
		first = false;
	}
	ops_buffer_append_text(&teller->out, "]}");
}

enum ops_code ops_memory_peak_text(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak,
                                   size_t top, bool json, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct teller teller = {timeline, peak, top, {0}};

	(json ? tell_json : tell)(&teller);
	return ops_buffer_give(&teller.out, OPS_OK, ret_text, ret_size, error);
}
