/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory over time, from a file of torch's export_memory_timeline (raw: a list of [time in ns, action, signed
 * bytes, category]), or from the memory records of a trace.
 */
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/memory.h>

#include "analyze/analysis.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_list.h"
#include "base/json_walk.h"
#include "base/sum.h"

/* Names in the order of their numbers. */
/* A point of the curve. */
struct point_row {
	int64_t time_ns;
	int64_t held[OPS_MEMORY_CATEGORY_COUNT];
};

#define CATEGORY_COLUMN(at, name_, of)                                                                                  \
	{.name = (name_), .type = RESULT_BYTES, .title = (name_), .about = "Memory in use of " of, RESULT_FIELD(struct point_row, held[at])}
#define CATEGORIES 1 /* index of the first column of a category */
static const struct result_column point_columns[] = {
	{.name = "time", .type = RESULT_INTEGER, .title = "Time", .unit = "ns", .about = "Time as in the file",
	 RESULT_FIELD(struct point_row, time_ns)},
	CATEGORY_COLUMN(0, "Parameter", "parameters"),
	CATEGORY_COLUMN(1, "Optimizer state", "the optimizer's state"),
	CATEGORY_COLUMN(2, "Input", "inputs"),
	CATEGORY_COLUMN(3, "Temporary", "temporary tensors"),
	CATEGORY_COLUMN(4, "Activation", "activations"),
	CATEGORY_COLUMN(5, "Gradient", "gradients"),
	CATEGORY_COLUMN(6, "Autograd", "autograd's details"),
	CATEGORY_COLUMN(7, "Unknown", "unknown tensors"),
};
const struct result_declaration table_memory_timeline =
	RESULT_DECLARATION("memory_timeline", "A point of the curve, with the option series", point_columns);

struct change {
	int64_t time_ns;
	int64_t bytes;
	uint32_t category;
};

struct timeline {
	OPS_ARRAY(struct change) changes;
	int64_t first_ns; /* earliest time within the recording; INT64_MAX: none */
	/* Results of a walk over the changes. */
	size_t points;
	int64_t held[OPS_MEMORY_CATEGORY_COUNT];
	int64_t most[OPS_MEMORY_CATEGORY_COUNT];
	int64_t first[OPS_MEMORY_CATEGORY_COUNT];
	int64_t peak[OPS_MEMORY_CATEGORY_COUNT];
	int64_t peak_bytes;
	size_t peak_index;
	int64_t peak_ns;
	int64_t last_ns;
};

static bool memory_file_add_change(struct timeline *timeline, int64_t time_ns, int64_t bytes, uint32_t category)
{
	if (!OPS_ARRAY_APPEND(&timeline->changes, (struct change){time_ns, bytes, category}))
		return false;
	if (time_ns >= 0 && time_ns < timeline->first_ns)
		timeline->first_ns = time_ns;
	return true;
}

/* --- source ----------------------------------------------------------------------------------------------------------- */

static enum ops_code read_change(void *context, const struct ops_json_member *element, struct ops_error *error)
{
	struct ops_json_walk cursor = ops_json_walk(element->value, element->value_size);
	struct ops_string slice;
	int64_t values[4];
	size_t count = 0;

	while (element->type == '[' && count < 4 && ops_json_next_element(&cursor, &slice) &&
	       ops_json_parse_integer(slice, &values[count]))
		count++;
	if (count < 4 || values[3] < 0 || values[3] >= OPS_MEMORY_CATEGORY_COUNT)
		return ops_fault(error, OPS_CORRUPT, "an entry is not [time, action, bytes, category]");
	return memory_file_add_change(context, values[0], values[2], (uint32_t)values[3]) ? OPS_OK : ops_fault_memory(error);
}

/* Chooses the first accelerator that has memory, or else the CPU. */
static struct ops_memory_device choose_device(const struct ops_memory_timeline *from)
{
	struct ops_memory_device device = {0, -1};

	for (size_t i = 0; i < from->block_count; i++) {
		const struct ops_memory_block *block = &from->blocks[i];

		if (block->device_type != 0 && (device.type == 0 || block->device_index < device.index))
			device = (struct ops_memory_device){block->device_type, block->device_index};
	}
	return device;
}

static enum ops_code memory_file_read_trace(struct timeline *timeline, const struct ops_trace *trace, struct ops_error *error)
{
	struct ops_memory_timeline *from;
	struct ops_memory_device device;
	enum ops_code code = ops_memory_timeline_new((struct ops_trace *)trace, &from, error);
	bool kept = true;

	if (code)
		return code;
	device = choose_device(from);
	for (size_t i = 0; i < from->step_count && kept; i++) {
		const struct ops_memory_step *step = &from->steps[i];
		const struct ops_memory_block *block = &from->blocks[step->block];

		if (!ops_memory_on_device(block, device))
			continue;
		if (step->action == OPS_MEMORY_DESTROY || step->action == OPS_MEMORY_INCREMENT_VERSION)
			kept = memory_file_add_change(timeline, step->time_ns, -block->bytes, step->category);
		if (kept && step->action != OPS_MEMORY_DESTROY)
			kept = memory_file_add_change(timeline, step->time_ns, block->bytes, step->next_category);
	}
	ops_memory_timeline_free(from);
	return kept ? OPS_OK : ops_fault_memory(error);
}

/* Reads the first file that is a timeline, else the first trace. */
static enum ops_code memory_file_read_run(struct timeline *timeline, const struct analysis_run *run)
{
	enum ops_code code;

	for (size_t i = 0; i < run->count; i++) {
		if (analysis_has_events(&run->ranks[i]) || !run->ranks[i].path)
			continue;
		code = ops_json_list_read(run->ranks[i].path, NULL, read_change, timeline, run->error);
		if (code != OPS_CORRUPT || timeline->changes.count)
			return code;
	}
	for (size_t i = 0; i < run->count; i++)
		if (analysis_has_events(&run->ranks[i]))
			return memory_file_read_trace(timeline, run->ranks[i].trace, run->error);
	return ops_fault(run->error, OPS_CORRUPT, "there is neither a memory timeline nor a trace with events");
}

/* --- curve ------------------------------------------------------------------------------------------------------------ */

/* Advances from change `*at` past all changes of the same time, which form one point of the curve. Memory allocated
 * before the recording is a separate point, at the earliest time of the recording. */
static int64_t next_point(struct timeline *timeline, size_t *at)
{
	int64_t time_ns = timeline->changes.items[*at].time_ns;

	while (*at < timeline->changes.count && timeline->changes.items[*at].time_ns == time_ns) {
		const struct change *change = &timeline->changes.items[(*at)++];

		timeline->held[change->category] = ops_sum(timeline->held[change->category], change->bytes);
	}
	return time_ns >= 0 || timeline->first_ns == INT64_MAX ? time_ns : timeline->first_ns;
}

static void survey(struct timeline *timeline)
{
	memset(timeline->held, 0, sizeof(timeline->held));
	for (size_t at = 0; at < timeline->changes.count; timeline->points++) {
		int64_t time_ns = next_point(timeline, &at);
		int64_t bytes = ops_sum_all(timeline->held, OPS_MEMORY_CATEGORY_COUNT);

		if (timeline->points == 0) {
			memcpy(timeline->first, timeline->held, sizeof(timeline->first));
			memcpy(timeline->most, timeline->held, sizeof(timeline->most));
		}
		if (timeline->points == 0 || bytes > timeline->peak_bytes) {
			memcpy(timeline->peak, timeline->held, sizeof(timeline->peak));
			timeline->peak_bytes = bytes;
			timeline->peak_index = timeline->points;
			timeline->peak_ns = time_ns;
		}
		for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++)
			if (timeline->held[i] > timeline->most[i])
				timeline->most[i] = timeline->held[i];
		if (timeline->points == 0 || time_ns > timeline->last_ns)
			timeline->last_ns = time_ns;
	}
}

/* --- result ----------------------------------------------------------------------------------------------------------- */

static void write_bytes(struct ops_json_writer *json, const char *key, const int64_t *bytes)
{
	ops_json_member_open(json, key, '{');
	for (size_t i = 0; i < OPS_MEMORY_CATEGORY_COUNT; i++) {
		ops_json_member(json, point_columns[CATEGORIES + i].name, bytes[i]);
	}
	ops_json_close(json, '}');
}

/* Writes the points with the numbers in `wanted`, which are ascending, each point as a list. */
static void memory_file_write_points(struct ops_json_writer *json, struct timeline *timeline, const int64_t *wanted, size_t count)
{
	size_t point = 0, at = 0;

	memset(timeline->held, 0, sizeof(timeline->held));
	for (size_t n = 0; n < count; n++) {
		int64_t number = wanted[n];
		char key[32];

		if (number < (int64_t)point || (uint64_t)number >= timeline->points)
			continue;
		while (point <= (size_t)number)
			next_point(timeline, &at), point++;
		snprintf(key, sizeof(key), "point_%lld", (long long)number);
		OPS_JSON_LIST(json, key, i, OPS_MEMORY_CATEGORY_COUNT, ops_json_integer(json, timeline->held[i]));
	}
}

static void memory_file_write_summary(struct ops_json_writer *json, struct timeline *timeline, const int64_t *points, size_t count)
{
	int64_t final[OPS_MEMORY_CATEGORY_COUNT];

	memcpy(final, timeline->held, sizeof(final));
	ops_json_open(json, '{');
	ops_json_member(json, "points", (int64_t)timeline->points);
	if (timeline->points) {
		ops_json_member(json, "t_min", timeline->first_ns == INT64_MAX ? -1 : timeline->first_ns);
		ops_json_member(json, "t_max", timeline->last_ns);
		ops_json_member(json, "peak_index", (int64_t)timeline->peak_index);
		ops_json_member(json, "peak_time", timeline->peak_ns);
		ops_json_member(json, "peak_total_bytes", timeline->peak_bytes);
		write_bytes(json, "peak_by_category", timeline->peak);
		write_bytes(json, "final_by_category", final);
		write_bytes(json, "max_by_category", timeline->most);
		write_bytes(json, "first_by_category", timeline->first);
		memory_file_write_points(json, timeline, points, count);
	}
	ops_json_close(json, '}');
}

static void memory_file_write_series(struct result_table *table, struct timeline *timeline)
{
	result_declare(table, &table_memory_timeline, 0);
	memset(timeline->held, 0, sizeof(timeline->held));
	for (size_t at = 0; at < timeline->changes.count && !table->failed;) {
		struct point_row row = {.time_ns = next_point(timeline, &at)};

		memcpy(row.held, timeline->held, sizeof(row.held));
		result_add(table, &row);
	}
}

enum ops_code analysis_memory_timeline(struct analysis_run *run)
{
	struct timeline timeline = {.first_ns = INT64_MAX};
	bool series = analysis_bool(run, "series");
	size_t point_count;
	const int64_t *points = analysis_integers(run, "points", &point_count);
	enum ops_code code = run->code;

	if (!code)
		code = memory_file_read_run(&timeline, run);
	if (!code && series) {
		memory_file_write_series(&run->result.table, &timeline);
	} else if (!code) {
		survey(&timeline);
		memory_file_write_summary(&run->result.json, &timeline, points, point_count);
	}
	OPS_ARRAY_RELEASE(&timeline.changes);
	return code;
}
