/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory over time as JSON, one time range at a time, for drawing.
 */
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/memory.h>

#include "analyze/result.h"
#include "analyze/tables.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/json_writer.h"
#include "base/order.h"
#include "base/sum.h"

static void write_device(struct ops_json_writer *json, struct ops_memory_device device)
{
	char name[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(device, name);
	ops_json_member_text(json, "device", name);
}

/* --- devices and their peaks ---------------------------------------------------------------------------------------- */

static void memory_answers_write_categories(struct ops_json_writer *json)
{
	static const struct {
		const char *name, *light, *dark;
	} categories[] = {
#define CATEGORY(name, title, light, dark) {#name, light, dark},
		OPS_MEMORY_CATEGORIES(CATEGORY)
#undef CATEGORY
	};

	ops_json_member_open(json, "categories", '[');
	for (int i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++) {
		ops_json_open(json, '{');
		ops_json_member_text(json, "name", categories[i].name);
		ops_json_member_text(json, "light", categories[i].light);
		ops_json_member_text(json, "dark", categories[i].dark);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void write_gaps(struct ops_json_writer *json, uint32_t gaps)
{
	ops_json_member_open(json, "gaps", '[');
	for (uint32_t gap = 1; gap <= OPS_MEMORY_NO_ROLES; gap <<= 1) {
		const char *text = ops_memory_gap_text((enum ops_memory_gap)gap);

		if (gaps & gap)
			ops_json_word(json, text);
	}
	ops_json_close(json, ']');
}

static enum ops_code memory_answers_write_peak(const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                                               const struct ops_memory_window *window, struct ops_json_writer *json,
                                               struct ops_error *error)
{
	struct ops_memory_peak peak = {0};
	size_t size = 0, blocks = 0;
	char *text = NULL;
	/* A window of everything includes the memory allocated before the recording. */
	bool all = window->from_ns <= 0 && window->to_ns == INT64_MAX;
	enum ops_code code = ops_memory_peak_within(timeline, device, all ? INT64_MIN : ops_sum(window->origin_ns, window->from_ns),
	                                            ops_sum(window->origin_ns, window->to_ns), &peak, error);

	if (!code)
		code = ops_memory_peak_json(timeline, &peak, window->limit, &text, &size, error);
	for (size_t i = 0; i < timeline->block_count; i++)
		blocks += ops_memory_on_device(&timeline->blocks[i], device);
	ops_json_open(json, '{');
	write_device(json, device);
	ops_json_member(json, "blocks", (int64_t)blocks);
	ops_json_member_if(json, "peak_time_ns", peak.time_ns >= 0, ops_difference(peak.time_ns, window->origin_ns));
	ops_json_key(json, "peak");
	ops_json_raw(json, code ? "null" : text, code ? 4 : size);
	ops_json_close(json, '}');
	ops_free(text);
	ops_memory_peak_release(&peak);
	return code;
}

enum ops_code ops_memory_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                              char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	struct ops_memory_device device;
	enum ops_code code = OPS_OK;
	bool more = ops_memory_next_device(timeline, NULL, &device);

	ops_json_open(&json, '{');
	memory_answers_write_categories(&json);
	write_gaps(&json, timeline->gaps);
	ops_json_member_open(&json, "devices", '[');
	for (int i = 0; !code && more && i < 256; i++) {
		code = memory_answers_write_peak(timeline, device, window, &json, error);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

/* --- curve ---------------------------------------------------------------------------------------------------------- */

struct point {
	int64_t time_ns;
	int64_t held[OPS_MEMORY_CATEGORY_COUNT];
};

struct curve {
	const struct ops_memory_window *window;
	OPS_ARRAY(struct point) points;
	int64_t part_ns; /* length of one part of the window */
	int64_t part;    /* part of the last point; -1: the initial state */
	int64_t most;    /* bytes held at that point */
};

static bool add_point(struct curve *curve, int64_t time_ns, const int64_t *held)
{
	struct point *point = OPS_ARRAY_PUSH(&curve->points);

	if (!point)
		return false;
	point->time_ns = time_ns;
	memcpy(point->held, held, sizeof(point->held));
	return true;
}

/* Processes a time in the window. It becomes the point of its part if no other time of that part has more bytes. */
static bool parse_moment(struct curve *curve, int64_t time_ns, const int64_t *held)
{
	int64_t part = (time_ns - curve->window->from_ns) / curve->part_ns, sum = ops_sum_all(held, OPS_MEMORY_CATEGORY_COUNT);

	if (part == curve->part && sum <= curve->most)
		return true;
	if (part == curve->part)
		curve->points.count--;
	curve->part = part;
	curve->most = sum;
	return add_point(curve, time_ns, held);
}

/* Finds the points: first the bytes held when the window begins, last those when it ends. */
static bool find_points(const struct ops_memory_timeline *timeline, struct curve *curve)
{
	const struct ops_memory_window *window = curve->window;
	int64_t held[OPS_MEMORY_CATEGORY_COUNT] = {0}, last_ns = 0;
	bool done = true, begun = false;

	for (size_t i = 0; done && i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		/* The initial state precedes every window. */
		int64_t time_ns = step->time_ns < window->origin_ns ? -1 : ops_difference(step->time_ns, window->origin_ns);

		if (time_ns > window->to_ns)
			break;
		if (!ops_memory_on_device(&timeline->blocks[step->block], window->device))
			continue;
		if (!begun && time_ns >= window->from_ns) {
			done = add_point(curve, window->from_ns, held);
			begun = true;
		}
		ops_memory_apply(timeline, step, held);
		if (done && begun)
			done = parse_moment(curve, time_ns, held);
		last_ns = time_ns > last_ns ? time_ns : last_ns;
	}
	if (done && !begun)
		done = add_point(curve, window->from_ns, held);
	if (done && window->to_ns > window->from_ns)
		done = add_point(curve, window->to_ns == INT64_MAX ? last_ns : window->to_ns, held);
	return done;
}

/* A walk over the allocator's reports for the window's device. */
struct said {
	const struct ops_memory_record *records;
	size_t count;
	size_t next;
	const struct ops_memory_window *window;
	bool reserved;
	int64_t last; /* -1: none yet */
};

/* Returns the maximum up to a time; without a newer value, the last one. */
static int64_t most_until(struct said *said, int64_t until_ns)
{
	int64_t most = -1;

	for (; said->next < said->count && said->records[said->next].time_ns <= until_ns; said->next++) {
		const struct ops_memory_record *record = &said->records[said->next];
		uint64_t total = said->reserved ? record->total_reserved : record->total_allocated;

		if (record->out_of_memory || record->device_type != said->window->device.type ||
		    record->device_index != said->window->device.index)
			continue;
		/* torch reports a total of 0 for tensors in shared memory, which its allocator does not count. */
		if (!said->reserved && !total && ops_sum(said->last < 0 ? 0 : said->last, record->bytes))
			continue;
		said->last = ops_clamped(total);
		most = said->last > most ? said->last : most;
	}
	return most < 0 ? said->last : most;
}

/* Writes the allocator's values: the first and last in the window, and between points the maximum, so that no peak is
 * lost, including peaks of reserved memory. The second to last value also covers the time before the last. */
static void write_allocator(const struct ops_memory_timeline *timeline, const struct curve *curve, bool reserved,
                            struct ops_json_writer *json)
{
	struct said said = {.window = curve->window, .reserved = reserved, .last = -1};
	size_t points = curve->points.count;

	said.records = ops_trace_memory(timeline->trace, &said.count);
	ops_json_member_open(json, reserved ? "reserved" : "allocated", '[');
	for (size_t i = 0; i < points; i++) {
		const struct point *point = &curve->points.items[i];
		int64_t until_ns = point->time_ns, value;

		if (i > 0 && i + 2 == points && point[1].time_ns - 1 > until_ns)
			until_ns = point[1].time_ns - 1;
		value = most_until(&said, ops_sum(until_ns, curve->window->origin_ns));
		if (i == 0 || i + 1 == points)
			value = said.last;
		if (value < 0)
			ops_json_null(json);
		else
			ops_json_integer(json, value);
	}
	ops_json_close(json, ']');
}

static void memory_answers_write_curve(const struct ops_memory_timeline *timeline, const struct curve *curve,
                                       struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	write_device(json, curve->window->device);
	OPS_JSON_LIST(json, "categories", i, OPS_MEMORY_CATEGORY_COUNT,
	              ops_json_word(json, ops_memory_category_name((enum ops_memory_category)i)));
	OPS_JSON_LIST(json, "time_ns", i, curve->points.count, ops_json_integer(json, curve->points.items[i].time_ns));
	OPS_JSON_LIST(json, "held_bytes", category, OPS_MEMORY_CATEGORY_COUNT, {
		ops_json_open(json, '[');
		for (size_t i = 0; i < curve->points.count; i++)
			ops_json_integer(json, curve->points.items[i].held[category]);
		ops_json_close(json, ']');
	});
	write_allocator(timeline, curve, false, json);
	write_allocator(timeline, curve, true, json);
	ops_json_close(json, '}');
}

enum ops_code ops_memory_curve_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                                    char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct curve curve = {.window = window, .part = -1};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	int64_t last_ns = window->to_ns;
	bool done;

	if (timeline->step_count && last_ns == INT64_MAX)
		last_ns = ops_difference(timeline->steps[timeline->step_count - 1].time_ns, window->origin_ns);
	curve.part_ns = last_ns > window->from_ns ? (last_ns - window->from_ns) / (int64_t)window->limit + 1 : 1;
	done = find_points(timeline, &curve);
	if (done)
		memory_answers_write_curve(timeline, &curve, &json);
	OPS_ARRAY_RELEASE(&curve.points);
	return ops_buffer_detach(&out, done ? OPS_OK : ops_fault_memory(error), ret_text, ret_size, error);
}

/* --- blocks --------------------------------------------------------------------------------------------------------- */

struct sized_block {
	int64_t bytes;
	uint32_t block;
};

OPS_ORDER(memory_answers_compare_sizes, struct sized_block, OPS_DOWN(bytes) OPS_UP(block))

static bool lives_in(const struct ops_memory_block *block, const struct ops_memory_window *window)
{
	return ops_memory_on_device(block, window->device) &&
	       (block->start_ns == INT64_MIN || ops_difference(block->start_ns, window->origin_ns) <= window->to_ns) &&
	       (block->end_ns == INT64_MAX || ops_difference(block->end_ns, window->origin_ns) >= window->from_ns);
}

struct block_row {
	int64_t start_ns, end_ns, bytes, line, row;
	const char *category;
	struct ops_string name, operator, module, file, shape;
};

#define NULLABLE(member) .nullable = true, RESULT_FIELD(struct block_row, member)
static const struct result_column block_columns[] = {
	{.name = "start_ns", .type = RESULT_INTEGER, .about = "Start; null: before the recording", NULLABLE(start_ns)},
	{.name = "end_ns", .type = RESULT_INTEGER, .about = "End; null: not within the recording", NULLABLE(end_ns)},
	{.name = "bytes", .type = RESULT_BYTES, .about = "Size", RESULT_FIELD(struct block_row, bytes)},
	{.name = "category", .type = RESULT_TEXT, .about = "Category of the tensor", RESULT_FIELD(struct block_row, category)},
	{.name = "name", .type = RESULT_TEXT, .about = "Name of the parameter or buffer", NULLABLE(name)},
	{.name = "operator", .type = RESULT_TEXT, .about = "Operator that allocates it", NULLABLE(operator)},
	{.name = "module", .type = RESULT_TEXT, .about = "Module that allocates it", NULLABLE(module)},
	{.name = "file", .type = RESULT_TEXT, .about = "Source file that allocates it", NULLABLE(file)},
	{.name = "line", .type = RESULT_INTEGER, .about = "Line of the file", NULLABLE(line)},
	{.name = "shape", .type = RESULT_TEXT, .about = "Shape and dtype of the first tensor that fills it", NULLABLE(shape)},
	{.name = "row", .type = RESULT_INTEGER, .about = "Event that allocates it", NULLABLE(row)},
};
const struct result_declaration table_block = RESULT_DECLARATION("Block", "A block of memory", block_columns);

static void write_block(const struct ops_memory_timeline *timeline, uint32_t number, int64_t origin_ns,
                        struct ops_json_writer *json)
{
	const struct ops_memory_block *block = &timeline->blocks[number];
	uint32_t line = 0;
	struct ops_string file = ops_memory_line(timeline, number, &line);

	result_object_json(
		&table_block, 0,
		&(struct block_row){
			.start_ns = block->start_ns == INT64_MIN ? RESULT_NULL : ops_difference(block->start_ns, origin_ns),
			.end_ns = block->end_ns == INT64_MAX ? RESULT_NULL : ops_difference(block->end_ns, origin_ns),
			.bytes = block->bytes,
			.category = ops_memory_category_name((enum ops_memory_category)block->category),
			.name = result_text_or_null(ops_trace_string(timeline->trace, block->name)),
			.operator= result_text_or_null(ops_memory_operator(timeline, number)),
			.module = result_text_or_null(ops_memory_module(timeline, number)),
			.file = result_text_or_null(file),
			.line = file.size ? (int64_t)line : RESULT_NULL,
			.shape = result_text_or_null(ops_memory_shape(timeline, number)),
			.row = block->row == OPS_NONE ? RESULT_NULL : (int64_t)block->row,
		},
		json);
}

enum ops_code ops_memory_blocks_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                                     char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct sized_block *sorted = ops_realloc_array(NULL, timeline->block_count + 1, sizeof(*sorted));
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	size_t count = 0;

	if (!sorted)
		return ops_fault_memory(error);
	for (size_t i = 0; i < timeline->block_count; i++)
		if (lives_in(&timeline->blocks[i], window))
			sorted[count++] = (struct sized_block){timeline->blocks[i].bytes, (uint32_t)i};
	qsort(sorted, count, sizeof(*sorted), memory_answers_compare_sizes);
	ops_json_open(&json, '{');
	write_device(&json, window->device);
	ops_json_member(&json, "total", (int64_t)count);
	ops_json_member_open(&json, "blocks", '[');
	for (size_t i = 0; i < count && i < window->limit; i++)
		write_block(timeline, sorted[i].block, window->origin_ns, &json);
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	ops_free(sorted);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
