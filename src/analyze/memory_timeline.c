/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a trace: its blocks, and the steps at which memory is allocated, changes category and is freed.
 */
#include "analyze/frames.h"
#include "analyze/memory_flow.h"

#include <stdio.h>
#include <string.h>

#include "analyze/device.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "derive/places.h"

const char *ops_memory_category_name(enum ops_memory_category category)
{
	static const char *const names[] = {
#define NAME(name, title, light, dark) #name,
		OPS_MEMORY_CATEGORIES(NAME)
#undef NAME
	};

	return category < OPS_MEMORY_CATEGORY_COUNT ? names[category] : "";
}

const char *ops_memory_category_title(enum ops_memory_category category)
{
	static const char *const titles[] = {
#define TITLE(name, title, light, dark) title,
		OPS_MEMORY_CATEGORIES(TITLE)
#undef TITLE
	};

	return category < OPS_MEMORY_CATEGORY_COUNT ? titles[category] : "";
}

const char *ops_memory_gap_text(enum ops_memory_gap gap)
{
	switch (gap) {
	case OPS_MEMORY_NO_RECORDS:
		return "no memory was recorded (profile_memory=True): sizes and times are estimated from the tensors of operators";
	case OPS_MEMORY_NO_STORAGES:
		return "without the operators' inputs (record_shapes=True) it is not known which memory is for inputs and which for "
		       "activations: both are unknown";
	case OPS_MEMORY_NO_ROLES:
		return "it is not known which tensors are parameters and optimizer state";
	}
	return "";
}

void ops_memory_device_name(struct ops_memory_device device, char ret_name[OPS_MEMORY_DEVICE_ROOM])
{
	static const char *const names[] = {"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
		                            "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
		                            "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
	const char *name = device.type < sizeof(names) / sizeof(names[0]) ? names[device.type] : "unknown";

	if (device.index < 0)
		snprintf(ret_name, OPS_MEMORY_DEVICE_ROOM, "%s", name);
	else
		snprintf(ret_name, OPS_MEMORY_DEVICE_ROOM, "%s:%d", name, device.index);
}

void ops_memory_device_title(struct ops_memory_device device, char ret_title[OPS_MEMORY_DEVICE_ROOM])
{
	if (device.type == OPS_DEVICE_CUDA || device.type == OPS_DEVICE_HIP || device.type == OPS_DEVICE_XPU)
		snprintf(ret_title, OPS_MEMORY_DEVICE_ROOM, device.index < 0 ? "GPU" : "GPU %d", device.index);
	else if (device.type == OPS_DEVICE_CPU)
		snprintf(ret_title, OPS_MEMORY_DEVICE_ROOM, "CPU");
	else
		ops_memory_device_name(device, ret_title);
}

static bool step_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_memory_step *steps = context;

	return steps[a].time_ns < steps[b].time_ns ||
	       (steps[a].time_ns == steps[b].time_ns && steps[a].action < steps[b].action);
}

static bool sort_steps(struct ops_memory_timeline *timeline)
{
	return timeline->step_count <= INT32_MAX &&
	       ops_sort_stable(&timeline->steps, timeline->step_count, sizeof(*timeline->steps), step_before);
}

/* Makes a step for each value: the first value of a block allocates it, later ones change it. Makes another step for
 * each end. */
static bool make_steps(struct ops_memory_timeline *timeline, const struct memory_flow *flow)
{
	struct ops_memory_step *step;

	timeline->steps = ops_realloc_array(NULL, flow->values.count + flow->blocks.count + 1, sizeof(*timeline->steps));
	if (!timeline->steps)
		return false;
	step = timeline->steps;
	for (size_t i = 0; i < flow->values.count; i++) {
		const struct memory_value *value = &flow->values.items[i];
		const struct ops_memory_block *block = &flow->blocks.items[value->block];

		*step = (struct ops_memory_step){value->time_ns, value->block, value->number, OPS_MEMORY_CREATE,
		                                 value->category, value->category};
		if (value->previous != OPS_NONE) {
			step->action = OPS_MEMORY_INCREMENT_VERSION;
			step->version--;
			step->category = flow->values.items[value->previous].category;
		} else if (block->start_ns == INT64_MIN) {
			step->action = OPS_MEMORY_PREEXISTING;
			step->time_ns = -1;
		}
		if (step->time_ns < block->start_ns)
			step->time_ns = block->start_ns;
		if (step->time_ns > block->end_ns) /* an operator can run longer than the memory that it reads lives */
			step->time_ns = block->end_ns;
		step++;
	}
	for (size_t i = 0; i < flow->blocks.count; i++) {
		const struct ops_memory_block *block = &flow->blocks.items[i];
		const struct memory_value *last = &flow->values.items[flow->lives.items[i].value];

		if (block->end_ns != INT64_MAX)
			*step++ = (struct ops_memory_step){block->end_ns, (uint32_t)i, last->number, OPS_MEMORY_DESTROY,
			                                   last->category, last->category};
	}
	timeline->step_count = (size_t)(step - timeline->steps);
	return sort_steps(timeline);
}

static uint32_t device_key(uint8_t type, int16_t index)
{
	return (uint32_t)type << 16 | (uint16_t)(index + 1);
}

OPS_ORDER(memory_timeline_compare_devices, uint32_t, OPS_ORDER_BY(*left, *right))

/* Lists the devices of the blocks. Returns false if out of memory. */
static bool list_devices(struct ops_memory_timeline *timeline)
{
	OPS_ARRAY(uint32_t) devices = {0};
	struct ops_map known = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < timeline->block_count; i++) {
		uint32_t key = device_key(timeline->blocks[i].device_type, timeline->blocks[i].device_index);

		if (ops_map_find(&known, key) == OPS_NONE)
			ok = ops_map_add(&known, key, 0) && OPS_ARRAY_APPEND(&devices, key);
	}
	ops_map_release(&known);
	timeline->devices = devices.items;
	timeline->device_count = devices.count;
	OPS_ARRAY_SORT(&devices, memory_timeline_compare_devices);
	return ok;
}

static uint32_t memory_timeline_find_gaps(const struct memory_flow *flow)
{
	size_t record_count;

	ops_trace_memory(flow->trace, &record_count);
	return (record_count == 0 ? OPS_MEMORY_NO_RECORDS : 0u) | (flow->events->storages ? 0u : OPS_MEMORY_NO_STORAGES) |
	       (flow->has_roles ? 0u : OPS_MEMORY_NO_ROLES);
}

enum ops_code ops_memory_timeline_new(struct ops_trace *trace, struct ops_memory_timeline **ret_timeline,
                                      struct ops_error *error)
{
	struct memory_flow flow;
	struct ops_places places;
	struct ops_memory_timeline *timeline = ops_alloc_zeroed(1, sizeof(*timeline));
	bool ok = ops_memory_flow_init(&flow, trace) && timeline && ops_memory_categorize(&flow) && make_steps(timeline, &flow);

	ok = ok && ops_places_init(&places, trace);
	if (ok) {
		timeline->trace = ops_trace_ref(trace);
		timeline->places = places.rows;
		timeline->gaps = memory_timeline_find_gaps(&flow);
		timeline->blocks = flow.blocks.items;
		timeline->block_count = flow.blocks.count;
		timeline->shapes = flow.shapes;
		flow.blocks.items = NULL;
		flow.shapes = NULL;
		ok = list_devices(timeline);
	}
	if (ok) {
		*ret_timeline = timeline;
	} else {
		ops_memory_timeline_free(timeline);
	}
	ops_memory_flow_release(&flow);
	return ok ? OPS_OK : ops_fault_memory(error);
}

void ops_memory_timeline_free(struct ops_memory_timeline *timeline)
{
	if (!timeline)
		return;
	ops_trace_unref(timeline->trace);
	ops_free(timeline->blocks);
	ops_free(timeline->devices);
	ops_free(timeline->steps);
	if (timeline->shapes)
		ops_intern_release(timeline->shapes);
	ops_free(timeline->shapes);
	ops_free(timeline);
}

void ops_memory_apply(const struct ops_memory_timeline *timeline, const struct ops_memory_step *step,
                      int64_t held[OPS_MEMORY_CATEGORY_COUNT])
{
	int64_t bytes = timeline->blocks[step->block].bytes;

	if (step->action == OPS_MEMORY_DESTROY || step->action == OPS_MEMORY_INCREMENT_VERSION)
		held[step->category] = (int64_t)((uint64_t)held[step->category] - (uint64_t)bytes);
	if (step->action != OPS_MEMORY_DESTROY)
		held[step->next_category] = (int64_t)((uint64_t)held[step->next_category] + (uint64_t)bytes);
}

bool ops_memory_next_device(const struct ops_memory_timeline *timeline, const struct ops_memory_device *after,
                            struct ops_memory_device *ret_device)
{
	size_t at = 0;

	if (after)
		OPS_LOWER_BOUND(at, timeline->device_count, mid, timeline->devices[mid] <= device_key(after->type, after->index));
	if (at == timeline->device_count)
		return false;
	*ret_device = (struct ops_memory_device){(uint8_t)(timeline->devices[at] >> 16), (int16_t)((int)(uint16_t)timeline->devices[at] - 1)};
	return true;
}
