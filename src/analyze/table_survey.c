/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about all rows that are required before the first is printed: which columns are present, their widths, the
 * sums, and the unit of FLOPs.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analyze/device.h"
#include "analyze/table.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/shapes.h"

#define MARGIN 4 /* width of a column of texts beyond its longest text */

static const char *const flops_units[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
#define FLOPS_UNIT_COUNT (sizeof(flops_units) / sizeof(flops_units[0]))

size_t ops_table_name_length(struct ops_table *t, const struct ops_average *row)
{
	uint32_t *length;

	if (row->key != OPS_KEY_NAME)
		return ops_text_length(ops_average_name(t->trace, row));
	length = &t->name_lengths[row->name];
	if (*length == OPS_NONE)
		*length = (uint32_t)ops_text_length(ops_average_name(t->trace, row));
	return *length;
}

struct ops_string ops_table_shapes_text(struct ops_table *t, uint32_t inputs)
{
	t->scratch.size = 0;
	ops_shapes_append(&t->scratch, t->trace, inputs);
	return (struct ops_string){t->scratch.bytes, t->scratch.size};
}

static size_t shapes_length(struct ops_table *t, uint32_t inputs)
{
	uint32_t *length = &t->shapes_lengths[inputs];

	if (*length == OPS_NONE)
		*length = (uint32_t)ops_table_shapes_text(t, inputs).size;
	return *length;
}

uint32_t ops_table_stack(const struct ops_table *t, const struct ops_average *row)
{
	return t->frames && row->stack_frames > 0 ? ops_stack_of(t->options->stacks, row->first) : 0;
}

size_t ops_table_frame_length(struct ops_table *t, uint32_t name)
{
	uint32_t *length = &t->frame_lengths[name];

	if (*length == OPS_NONE)
		*length = (uint32_t)ops_text_length(ops_stack_text(t->options->stacks, name));
	return *length;
}

static void survey_stack(struct ops_table *t, const struct ops_average *row)
{
	uint32_t chain = ops_table_stack(t, row);

	t->has_stacks |= chain != 0;
	for (uint32_t i = 0; chain != 0 && i < row->stack_frames; i++) {
		size_t length = ops_table_frame_length(t, t->frames[chain].name);

		if (length > t->frame_length_max)
			t->frame_length_max = length;
		chain = t->frames[chain].caller;
	}
}

/* Device work appears as rows of the device, or in the fallback without a device tracer as rows of operators. */
static bool holds_device_time(const struct ops_average *row)
{
	switch (row->device_type) {
	case OPS_DEVICE_CPU:
		return row->is_legacy;
	case OPS_DEVICE_CUDA:
	case OPS_DEVICE_XPU:
	case OPS_DEVICE_MTIA:
	case OPS_DEVICE_PRIVATE_USE_1:
		return !row->is_user_annotation;
	default:
		return false;
	}
}

static void survey_row(struct ops_table *t, const struct ops_average *row)
{
	size_t length = ops_table_name_length(t, row);

	if (length > t->name_length_max)
		t->name_length_max = length;
	t->self_cpu_us += ops_table_us(row->self_cpu_time_total_ns);
	if (holds_device_time(row))
		t->self_device_us += ops_table_us(row->self_device_time_total_ns);
	if (row->flops > 0 && (t->flops_min == 0 || row->flops < t->flops_min))
		t->flops_min = row->flops;
	t->has_overloads |= row->overload != OPS_NONE && ops_trace_string(t->trace, row->overload).size > 0;
	t->has_device_time |= row->self_device_time_total_ns > 0;
	t->has_device_memory |= row->self_device_memory_usage > 0;
	if (row->inputs != OPS_NONE) {
		struct ops_string list = ops_trace_inputs(t->trace, row->inputs);

		t->has_shapes |= ops_inputs_count(list.bytes, list.size) > 0;
		length = shapes_length(t, row->inputs);
		if (length > t->shapes_length_max)
			t->shapes_length_max = length;
	}
	survey_stack(t, row);
}

static size_t text_width(size_t length_max, int64_t width_max)
{
	return (uint64_t)width_max < length_max + MARGIN ? (size_t)width_max : length_max + MARGIN;
}

static void choose_flops_unit(struct ops_table *t)
{
	double thousands = floor(log10((double)t->flops_min) / 3);
	size_t unit = thousands < FLOPS_UNIT_COUNT - 1 ? (size_t)thousands : FLOPS_UNIT_COUNT - 1;

	t->flops_unit = flops_units[unit];
	t->flops_scale = pow(10, -3.0 * (double)unit);
}

enum ops_code ops_table_survey(struct ops_table *t, struct ops_error *error)
{
	const char *device = t->options->use_device ? t->options->use_device : "";
	struct ops_average row;
	size_t chain_count;

	if (t->options->stacks) {
		t->frames = ops_stack_frames(t->options->stacks, &chain_count);
		t->frame_lengths = ops_alloc_none(ops_stack_name_count(t->options->stacks) + 1);
		if (!t->frame_lengths)
			return ops_fault_memory(error);
	}
	t->name_lengths = ops_alloc_none(ops_trace_string_count(t->trace) + 1);
	t->shapes_lengths = ops_alloc_none(ops_trace_inputs_count(t->trace) + 1);
	if (!t->name_lengths || !t->shapes_lengths)
		return ops_fault_memory(error);
	for (size_t i = 0; i < t->rows->count; i++) {
		t->rows->get(t->rows->context, i, &row);
		survey_row(t, &row);
	}
	if (t->has_device_time && !t->options->use_device)
		return ops_fault(error, OPS_STATE, "rows have device times, but no device is named");
	for (size_t i = 0; device[i] && i < sizeof(t->device) - 1; i++)
		t->device[i] = (char)toupper((unsigned char)device[i]);
	t->name_width = text_width(t->name_length_max, t->options->max_name_column_width);
	t->shapes_width = text_width(t->shapes_length_max, t->options->max_shapes_column_width);
	t->source_width = text_width(t->frame_length_max, t->options->max_src_column_width);
	t->has_device_memory = t->has_device_memory && t->options->profile_memory && t->options->use_device;
	if (t->options->with_flops && t->flops_min > 0)
		choose_flops_unit(t);
	return OPS_OK;
}
