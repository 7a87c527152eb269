/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over groups of function events. The parts of a group's key are mapped to small dense numbers first: a name to
 * its string id, shapes to the number of their text. For grouping by name alone, finding the group is then one table
 * access.
 */
#include <opstrobe/internal/analyze.h>

#include <string.h>

#include "analyze/device.h"
#include "analyze/frames.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/flops.h"
#include "derive/operators.h"
#include "derive/shapes.h"
#include "derive/steps.h"

#define STEP_NAME "ProfilerStep#"
#define STEP_KEY "ProfilerStep*"

static bool averages_is_step(struct ops_string name)
{
	int64_t number;

	/* torch compares only the beginning of the name. */
	return ops_string_starts(name, STEP_NAME) || ops_step_number(name, &number);
}

struct ops_string ops_average_name(const struct ops_trace *trace, const struct ops_average *row)
{
	struct ops_string name;

	if (row->key == OPS_KEY_MEMORY)
		return ops_string_of("[memory]");
	if (row->key == OPS_KEY_OUT_OF_MEMORY)
		return ops_string_of("[OutOfMemory]");
	if (row->key == OPS_KEY_TOTAL)
		return ops_string_of("Total");
	name = ops_trace_string(trace, row->name);
	return averages_is_step(name) ? ops_string_of(STEP_KEY) : name;
}

static bool is_annotation(uint8_t kind)
{
	return kind == OPS_EVENT_USER_ANNOTATION || kind == OPS_EVENT_GPU_USER_ANNOTATION;
}

/* --- function events ---------------------------------------------------------------------------------------------- */

/* Sets the members of a group that come from its first event. */
static void averages_describe(const struct ops_trace *trace, const struct ops_event_costs *costs, uint32_t ref,
                              struct ops_average *row)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count;

	*row = (struct ops_average){
		.name = OPS_NONE,
		.first = ref,
		.overload = OPS_NONE,
		.inputs = OPS_NONE,
		.device_type = OPS_DEVICE_CPU,
	};
	if (ref & OPS_MEMORY_REF) {
		const struct ops_memory_record *memory = ops_trace_memory(trace, &memory_count);

		row->key = memory[ref & ~OPS_MEMORY_REF].out_of_memory ? OPS_KEY_OUT_OF_MEMORY : OPS_KEY_MEMORY;
		return;
	}
	row->key = OPS_KEY_NAME;
	row->name = events->name[ref];
	row->scope = events->scope[ref];
	row->is_async = (events->flags[ref] & OPS_EVENT_ASYNC) != 0;
	row->is_user_annotation = is_annotation(events->kind[ref]);
	row->is_legacy = costs->legacy && costs->legacy[ref];
	row->device_type = ops_event_on_device(trace, ref) ? OPS_DEVICE_CUDA : OPS_DEVICE_CPU;
}

static void averages_add_memory(const struct ops_memory_record *record, struct ops_average *row)
{
	if (record->out_of_memory)
		return;
	if (ops_device_is_host(record->device_type)) {
		row->cpu_memory_usage = ops_sum(row->cpu_memory_usage, record->bytes);
		row->self_cpu_memory_usage = ops_sum(row->self_cpu_memory_usage, record->bytes);
	} else if (ops_device_is_accelerator(record->device_type)) {
		row->device_memory_usage = ops_sum(row->device_memory_usage, record->bytes);
		row->self_device_memory_usage = ops_sum(row->self_device_memory_usage, record->bytes);
	}
}

/* Adds up function events. Columns are fetched once. */
struct adder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	const struct ops_memory_record *memory;
	const struct ops_event_costs *costs;
	const uint16_t *operators; /* by string id, see derive/operators.h; NULL: look names up */
};

static struct adder adder_of(const struct ops_trace *trace, const struct ops_event_costs *costs)
{
	size_t memory_count, track_count;

	return (struct adder){.trace = trace,
			      .events = ops_trace_events(trace),
			      .tracks = ops_trace_tracks(trace, &track_count),
			      .memory = ops_trace_memory(trace, &memory_count),
			      .costs = costs};
}

static bool averages_on_device(const struct adder *adder, uint32_t row)
{
	return adder->tracks[adder->events->track[row]].kind == OPS_TRACK_STREAM;
}

static void averages_add(const struct adder *adder, uint32_t ref, struct ops_average *row)
{
	const struct ops_events *events = adder->events;
	const struct ops_event_costs *costs = adder->costs;

	row->count++;
	if (ref & OPS_MEMORY_REF) {
		averages_add_memory(&adder->memory[ref & ~OPS_MEMORY_REF], row);
		return;
	}
	if (!averages_on_device(adder, ref)) {
		row->cpu_time_total_ns =
			ops_sum(row->cpu_time_total_ns, ops_difference(events->end_ns[ref], events->start_ns[ref]));
		row->self_cpu_time_total_ns = ops_sum(row->self_cpu_time_total_ns, events->self_ns[ref]);
	}
	if (costs->device_time) {
		row->device_time_total_ns = ops_sum(row->device_time_total_ns, costs->device_time[ref]);
		row->self_device_time_total_ns = ops_sum(row->self_device_time_total_ns, costs->self_device_time[ref]);
	}
	if (costs->cpu_memory) {
		row->cpu_memory_usage = ops_sum(row->cpu_memory_usage, costs->cpu_memory[ref]);
		row->self_cpu_memory_usage = ops_sum(row->self_cpu_memory_usage, costs->self_cpu_memory[ref]);
		row->device_memory_usage = ops_sum(row->device_memory_usage, costs->device_memory[ref]);
		row->self_device_memory_usage = ops_sum(row->self_device_memory_usage, costs->self_device_memory[ref]);
	}
	if (costs->with_flops)
		row->flops = ops_sum(row->flops, ops_torch_flops_of(adder->trace, ref, adder->operators));
}

void ops_average_of_event(const struct ops_trace *trace, const struct ops_event_costs *costs, uint32_t ref,
			  struct ops_average *ret_row)
{
	const struct adder adder = adder_of(trace, costs);

	averages_describe(trace, costs, ref, ret_row);
	ret_row->stack_frames = OPS_ALL_FRAMES;
	if (!(ref & OPS_MEMORY_REF)) {
		ret_row->inputs = adder.events->inputs[ref];
		if (adder.events->overload)
			ret_row->overload = adder.events->overload[ref];
	}
	averages_add(&adder, ref, ret_row);
}

void ops_total_average(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
		       size_t count, struct ops_average *ret_row)
{
	const struct adder adder = adder_of(trace, costs);
	struct ops_average total = {
		.name = OPS_NONE, .first = OPS_NONE, .overload = OPS_NONE, .inputs = OPS_NONE, .key = OPS_KEY_TOTAL};

	if (count > 0)
		total.first = refs[0];
	for (size_t i = 0; i < count; i++)
		averages_add(&adder, refs[i], &total);
	*ret_row = total;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Names are numbered in order of first occurrence. Each has slots in the table of numbers for the combinations of
 * operator or user annotation, host or device, and timed by surrounding events or not. Memory records use two of the
 * last slots. */
#define SLOTS_A_NAME 8
#define SLOT_ANNOTATION 1
#define SLOT_DEVICE 2
#define SLOT_LEGACY 4

/* Identifies a group. Has no padding, because it is hashed. */
struct group_key {
	uint32_t name_number;
	uint32_t overload;
	uint32_t shape;
	uint32_t stack;
};

struct grouping {
	struct adder adder;
	struct ops_averages_options options;
	OPS_ARRAY(struct ops_average) rows; /* by group */
	size_t string_count;
	uint32_t *number_of_slot; /* OPS_NONE for a name that has not occurred yet */
	uint32_t number_count;
	uint32_t step_number[SLOTS_A_NAME]; /* shared by all steps */
	struct ops_shapes shapes;
	uint32_t *stack_groups; /* by chain */
	struct ops_intern keys; /* groups by key, if they are by more than the name */
};

static void grouping_release(struct grouping *g)
{
	OPS_ARRAY_RELEASE(&g->rows);
	ops_free(g->number_of_slot);
	ops_shapes_release(&g->shapes);
	ops_free(g->stack_groups);
	ops_intern_release(&g->keys);
}

/* Returns false if out of memory. The caller must call grouping_release() in any case. */
static bool grouping_init(struct grouping *g)
{
	size_t slots;

	g->string_count = ops_trace_string_count(g->adder.trace);
	slots = (g->string_count + 1) * SLOTS_A_NAME;
	g->number_of_slot = ops_alloc_none(slots);
	if (!g->number_of_slot)
		return false;
	memset(g->step_number, 0xff, sizeof(g->step_number));
	if (g->adder.costs->with_flops && !(g->adder.operators = ops_operators_of(g->adder.trace)))
		return false;
	if (g->options.by_stack_frames &&
	    !(g->stack_groups = ops_stack_groups(g->options.stacks, g->options.by_stack_frames)))
		return false;
	return !g->options.by_input_shape || ops_shapes_init(&g->shapes, g->adder.trace);
}

static uint32_t number_new_slot(struct grouping *g, size_t slot)
{
	size_t string = slot / SLOTS_A_NAME;
	uint32_t *number = &g->number_of_slot[slot];
	struct ops_string name;

	if (string < g->string_count) {
		name = ops_trace_string(g->adder.trace, (uint32_t)string);
		if (averages_is_step(name) || (name.size == strlen(STEP_KEY) && memcmp(name.bytes, STEP_KEY, name.size) == 0))
			number = &g->step_number[slot % SLOTS_A_NAME];
	}
	if (*number == OPS_NONE)
		*number = g->number_count++;
	return g->number_of_slot[slot] = *number;
}

static uint32_t name_number(struct grouping *g, uint32_t ref)
{
	const struct adder *adder = &g->adder;
	size_t slot;

	if (ref & OPS_MEMORY_REF)
		slot = g->string_count * SLOTS_A_NAME + adder->memory[ref & ~OPS_MEMORY_REF].out_of_memory;
	else
		slot = (size_t)adder->events->name[ref] * SLOTS_A_NAME +
		       (is_annotation(adder->events->kind[ref]) ? SLOT_ANNOTATION : 0) +
		       (averages_on_device(adder, ref) ? SLOT_DEVICE : 0) +
		       (adder->costs->legacy && adder->costs->legacy[ref] ? SLOT_LEGACY : 0);
	return g->number_of_slot[slot] != OPS_NONE ? g->number_of_slot[slot] : number_new_slot(g, slot);
}

/* Returns the overload that the options let a row show next to its name; OPS_NONE if there is none. */
static uint32_t shown_overload(const struct grouping *g, uint32_t ref)
{
	const uint32_t *overload = g->adder.events->overload;

	return g->options.by_overload_name && overload && !(ref & OPS_MEMORY_REF) ? overload[ref] : OPS_NONE;
}

static uint32_t shown_inputs(const struct grouping *g, uint32_t ref)
{
	return g->options.by_input_shape && !(ref & OPS_MEMORY_REF) ? g->adder.events->inputs[ref] : OPS_NONE;
}

/* Returns the group of a function event: the index of its row, or of the next row if the group is new. Returns OPS_NONE
 * if out of memory. */
static uint32_t averages_group_of(struct grouping *g, uint32_t ref)
{
	struct group_key key = {.name_number = name_number(g, ref), .overload = shown_overload(g, ref)};
	uint32_t inputs = shown_inputs(g, ref);

	if (!g->options.by_overload_name && !g->options.by_input_shape && !g->options.by_stack_frames)
		return key.name_number;
	if (g->options.by_input_shape && (key.shape = ops_shapes_number(&g->shapes, inputs)) == OPS_NONE)
		return OPS_NONE;
	if (g->options.by_stack_frames)
		key.stack = g->stack_groups[ops_stack_of(g->options.stacks, ref)];
	return ops_intern_add(&g->keys, &key, sizeof(key));
}

/* Returns the row of a function event's group, which is added if it is new. Returns NULL if out of memory. */
static struct ops_average *averages_row_of(struct grouping *g, uint32_t ref)
{
	uint32_t group = averages_group_of(g, ref);
	struct ops_average *row;

	if (group < g->rows.count)
		return &g->rows.items[group];
	row = group != OPS_NONE ? OPS_ARRAY_PUSH(&g->rows) : NULL;
	if (row) {
		averages_describe(g->adder.trace, g->adder.costs, ref, row);
		row->overload = shown_overload(g, ref);
		row->inputs = shown_inputs(g, ref);
		row->stack_frames = g->options.by_stack_frames;
	}
	return row;
}

enum ops_code ops_averages(const struct ops_trace *trace, const struct ops_event_costs *costs, const uint32_t *refs,
			   size_t count, const struct ops_averages_options *options, struct ops_average **ret_rows,
			   size_t *ret_count, struct ops_error *error)
{
	struct grouping g = {.adder = adder_of(trace, costs), .options = *options};
	bool ok = grouping_init(&g);

	for (size_t i = 0; ok && i < count; i++) {
		struct ops_average *row = averages_row_of(&g, refs[i]);

		ok = row != NULL;
		if (ok)
			averages_add(&g.adder, refs[i], row);
	}
	if (ok) {
		*ret_rows = g.rows.items;
		*ret_count = g.rows.count;
		g.rows.items = NULL;
	}
	grouping_release(&g);
	return ok ? OPS_OK : ops_fault_memory(error);
}

enum ops_code ops_key_averages(const struct ops_trace *trace, bool with_flops, const struct ops_averages_options *options,
                               struct ops_average **ret_rows, size_t *ret_count, struct ops_error *error)
{
	struct ops_event_costs costs = {0};
	uint32_t *refs = NULL;
	size_t count = 0;
	enum ops_code code = ops_event_costs_init(&costs, trace, with_flops, error);

	if (!code)
		code = ops_function_events(trace, &refs, &count, error);
	if (!code)
		code = ops_averages(trace, &costs, refs, count, options, ret_rows, ret_count, error);
	ops_free(refs);
	ops_event_costs_release(&costs);
	return code;
}

static void get_average(const void *context, size_t i, struct ops_average *ret_row)
{
	*ret_row = ((const struct ops_average_list *)context)->rows[i];
}

struct ops_rows ops_rows_of_averages(const struct ops_average_list *list)
{
	return (struct ops_rows){.count = list->count, .get = get_average, .context = list};
}

enum ops_code ops_event_list_init(struct ops_event_list *list, const struct ops_trace *trace, bool with_flops,
                                  struct ops_error *error)
{
	enum ops_code code;

	*list = (struct ops_event_list){.trace = trace};
	code = ops_function_events(trace, &list->refs, &list->count, error);
	return code ? code : ops_event_costs_init(&list->costs, trace, with_flops, error);
}

void ops_event_list_release(struct ops_event_list *list)
{
	ops_event_costs_release(&list->costs);
	ops_free(list->refs);
	*list = (struct ops_event_list){0};
}

static void get_event(const void *context, size_t i, struct ops_average *ret_row)
{
	const struct ops_event_list *list = context;

	ops_average_of_event(list->trace, &list->costs, list->refs[i], ret_row);
}

struct ops_rows ops_rows_of_events(const struct ops_event_list *list)
{
	return (struct ops_rows){.count = list->count, .get = get_event, .context = list};
}
