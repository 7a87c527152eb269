/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of devices ("deviceProperties") and of kernels (their arguments) in a file. Kernels repeat, so each text
 * of arguments is parsed once. Files give 0 blocks per multiprocessor and 0 occupancy for small kernels, and old files
 * and those of AMD devices omit both. Then they are computed from sizes and device properties.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/json_walk.h"
#include "base/order.h"
#include "base/text.h"

/* --- deviceProperties ----------------------------------------------------------------------------------------------- */

static void parse_size(struct ops_string value, uint32_t *to)
{
	int64_t size;

	if (ops_json_parse_integer(value, &size) && size > 0 && size <= UINT32_MAX)
		*to = (uint32_t)size;
}

/* From Ampere on, the driver reserves a kilobyte of shared memory for each block. */
static void finalize_multiprocessor(struct view_device *device)
{
	struct ops_multiprocessor *multiprocessor = &device->multiprocessor;

	if (device->major >= 8 && device->major < 1000)
		multiprocessor->shared_reserved_bytes = 1024;
	if (device->major > 0 && device->major < 1000 && device->minor >= 0 && device->minor < 10) {
		multiprocessor->compute_major = (uint32_t)device->major;
		multiprocessor->compute_minor = (uint32_t)device->minor;
	}
}

static void parse_multiprocessor(struct ops_multiprocessor *multiprocessor, struct ops_string key, struct ops_string value)
{
	if (ops_string_is(key, "numSms"))
		parse_size(value, &multiprocessor->count);
	else if (ops_string_is(key, "warpSize"))
		parse_size(value, &multiprocessor->warp_size);
	else if (ops_string_is(key, "maxThreadsPerMultiprocessor"))
		parse_size(value, &multiprocessor->threads_max);
	else if (ops_string_is(key, "regsPerMultiprocessor"))
		parse_size(value, &multiprocessor->registers);
	else if (ops_string_is(key, "sharedMemPerMultiprocessor"))
		parse_size(value, &multiprocessor->shared_bytes);
}

static bool view_devices_add_device(struct ops_views *views, struct ops_string object)
{
	struct view_device *device = OPS_ARRAY_PUSH(&views->devices);
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	struct ops_string key, value;

	if (!device)
		return false;
	*device = (struct view_device){.id = (int64_t)views->devices.count - 1, .memory_bytes = -1, .major = -1,
	                               .minor = -1, .sm_count = -1, .warp_size = -1};
	while (ops_json_next_member(&walk, &key, &value)) {
		parse_multiprocessor(&device->multiprocessor, key, value);
		if (ops_string_is(key, "id"))
			ops_json_parse_integer(value, &device->id);
		else if (ops_string_is(key, "name"))
			device->name_json = (struct ops_string){value.bytes, value.size};
		else if (ops_string_is(key, "totalGlobalMem"))
			ops_json_parse_integer(value, &device->memory_bytes);
		else if (ops_string_is(key, "computeMajor"))
			ops_json_parse_integer(value, &device->major);
		else if (ops_string_is(key, "computeMinor"))
			ops_json_parse_integer(value, &device->minor);
		else if (ops_string_is(key, "numSms"))
			ops_json_parse_integer(value, &device->sm_count);
		else if (ops_string_is(key, "warpSize"))
			ops_json_parse_integer(value, &device->warp_size);
	}
	finalize_multiprocessor(device);
	return ops_map_add(&views->device_of, (uint64_t)device->id, (uint32_t)views->devices.count - 1);
}

bool view_devices_read(struct ops_views *views)
{
	struct ops_string object;
	struct ops_json_walk walk;
	struct ops_string json;

	if (!ops_trace_find_metadata(views->trace, "deviceProperties", &json))
		return true;
	walk = ops_json_walk(json.bytes, json.size);
	while (ops_json_next_element(&walk, &object))
		if (object.bytes[0] == '{' && !view_devices_add_device(views, object))
			return false;
	return true;
}

/* --- arguments of kernels ------------------------------------------------------------------------------------------- */

/* Converts "[320,1,1]" to "[320, 1, 1]". */
static bool parse_dimensions(struct ops_views *views, struct ops_string value, uint32_t *ret_text)
{
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	struct ops_buffer text = {0};
	struct ops_string element;
	bool done;

	while (ops_json_next_element(&walk, &element)) {
		ops_buffer_append_text(&text, text.size ? ", " : "[");
		ops_buffer_append(&text, element.bytes, element.size);
	}
	ops_buffer_append_text(&text, text.size ? "]" : "[]");
	done = !text.failed;
	if (done)
		*ret_text = ops_intern_add(&views->texts, text.bytes, text.size);
	ops_buffer_release(&text);
	return done && *ret_text != OPS_INTERN_NONE;
}

static bool parse_kernel_argument(struct ops_views *views, struct view_kernel *kernel, struct ops_string key,
                                  struct ops_string value)
{
	if (ops_string_is(key, "blocks per SM"))
		ops_json_parse_number(value, &kernel->blocks_per_sm);
	else if (ops_string_is(key, "est. achieved occupancy %"))
		ops_json_parse_number(value, &kernel->occupancy_pct);
	else if (ops_string_is(key, "registers per thread"))
		ops_json_parse_integer(value, &kernel->registers);
	else if (ops_string_is(key, "shared memory"))
		ops_json_parse_integer(value, &kernel->shared_memory);
	else if (ops_string_is(key, "device"))
		ops_json_parse_integer(value, &kernel->device);
	else if (ops_string_is(key, "grid"))
		return parse_dimensions(views, value, &kernel->grid);
	else if (ops_string_is(key, "block"))
		return parse_dimensions(views, value, &kernel->block);
	return true;
}

static void parse_sizes(struct ops_string value, uint32_t sizes[3])
{
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	struct ops_string element;

	for (int i = 0; i < 3; i++) {
		int64_t size;

		sizes[i] = 0;
		/* Values above 2^31 are never valid; a block has at most 1024 threads. */
		if (ops_json_next_element(&walk, &element) && ops_json_parse_integer(element, &size) && size > 0 && size <= INT32_MAX)
			sizes[i] = (uint32_t)size;
	}
}

/* In files without the argument `device`, returns the only device. */
static const struct view_device *view_devices_device_of(const struct ops_views *views, int64_t id)
{
	uint32_t at = id < 0 && views->devices.count == 1 ? 0 : ops_map_find(&views->device_of, (uint64_t)id);

	return at == OPS_NONE ? NULL : &views->devices.items[at];
}

/* Properties of a device that a file omits do not limit anything. */
static struct ops_occupancy occupancy_of(const struct view_device *device, const struct view_kernel *kernel,
                                         struct ops_string arguments)
{
	struct ops_multiprocessor multiprocessor = device->multiprocessor;
	struct ops_json_walk walk = ops_json_walk(arguments.bytes, arguments.size);
	struct ops_kernel_shape shape = {{0}, {0}, 0, 0};
	struct ops_string key, value;

	while (ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "grid"))
			parse_sizes(value, shape.grid);
		else if (ops_string_is(key, "block"))
			parse_sizes(value, shape.block);
	}
	if (kernel->registers > 0 && kernel->registers <= UINT16_MAX && multiprocessor.registers)
		shape.registers = (uint32_t)kernel->registers;
	if (kernel->shared_memory > 0 && kernel->shared_memory <= INT32_MAX && multiprocessor.shared_bytes)
		shape.shared_bytes = (uint32_t)kernel->shared_memory;
	if (!multiprocessor.shared_bytes)
		multiprocessor.shared_reserved_bytes = 0;
	if (shape.block[0] > 1024 || shape.block[1] > 1024 || shape.block[2] > 1024)
		shape.block[0] = 0;
	return ops_occupancy_of(&multiprocessor, &shape);
}

/* Multiprocessors of AMD devices allocate registers differently, so only their blocks are counted. */
static void work_out(struct ops_views *views, struct view_kernel *kernel, struct ops_string arguments)
{
	const struct view_device *device = view_devices_device_of(views, kernel->device);
	struct ops_occupancy occupancy;

	kernel->own_blocks_per_sm = kernel->blocks_per_sm;
	kernel->own_occupancy_pct = kernel->occupancy_pct;
	if (!device || (kernel->blocks_per_sm > 0 && kernel->occupancy_pct > 0))
		return;
	occupancy = occupancy_of(device, kernel, arguments);
	if (!(kernel->blocks_per_sm > 0) && occupancy.blocks_a_multiprocessor > 0)
		kernel->own_blocks_per_sm = occupancy.blocks_a_multiprocessor;
	if (!(kernel->occupancy_pct > 0) && occupancy.active_blocks && isfinite(occupancy.percent) && device->warp_size == 32)
		kernel->own_occupancy_pct = occupancy.percent;
	views->worked_out = true;
}

static bool view_devices_add_kernel(struct ops_views *views, struct ops_string arguments)
{
	struct view_kernel kernel = {.blocks_per_sm = (double)NAN, .occupancy_pct = (double)NAN,
	                             .own_blocks_per_sm = (double)NAN, .own_occupancy_pct = (double)NAN, .registers = -1,
	                             .shared_memory = -1, .device = -1, .grid = OPS_NONE, .block = OPS_NONE};
	struct ops_json_walk walk = ops_json_walk(arguments.bytes, arguments.size);
	struct ops_string key, value;

	while (ops_json_next_member(&walk, &key, &value))
		if (!parse_kernel_argument(views, &kernel, key, value))
			return false;
	work_out(views, &kernel, arguments);
	return OPS_ARRAY_APPEND(&views->kernels, kernel);
}

/* Skips the id of the previous event, which keeps lists short. */
static bool view_devices_add_id(void *array, int64_t id)
{
	OPS_ARRAY(int64_t) *ids = array;

	if (ids->count && ids->items[ids->count - 1] == id)
		return true;
	/* Removes duplicates when the list is full, which frees capacity for further ids. */
	if (ids->count >= 4096 && ids->count == ids->capacity) {
		ids->count = ops_sort_unique_int64(ids->items, ids->count);
		if (!OPS_ARRAY_RESERVE(ids, ids->count))
			return false;
	}
	return OPS_ARRAY_APPEND(ids, id);
}

/* In files without the argument `device`, the process is the device. */
static bool view_devices_place(struct ops_views *views, struct view_device_event *event)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(views->trace, &count);
	const struct ops_track *track = &tracks[views->events->track[event->row]];
	int64_t pid = track->flags & OPS_TRACK_PID_TEXT ? 0 : track->pid;

	event->device = views->kernels.items[event->arguments].device;
	if (event->device < 0)
		event->device = pid;
	return view_devices_add_id(&views->used, pid) &&
	       (event->part != VIEW_KERNEL || view_devices_add_id(&views->gpus, event->device));
}

/* Kernels are grouped by device, so that a query for one does not read those of all. */
static uint32_t gpu_of_event(const void *context, uint32_t event)
{
	const struct ops_views *views = context;
	const struct view_device_event *of = &views->device_events.items[event];
	const int64_t *gpu = of->part == VIEW_KERNEL ? bsearch(&of->device, views->gpus.items, views->gpus.count, sizeof(*gpu), ops_compare_int64) : NULL;

	return gpu ? (uint32_t)(gpu - views->gpus.items) : OPS_NONE;
}

bool view_kernels_describe(struct ops_views *views)
{
	const uint32_t *extra = views->events->extra;
	size_t strings = ops_trace_string_count(views->trace) + 1;
	uint32_t *known;
	bool *asked;
	bool done;

	if (!views->device_events.count)
		return true;
	known = ops_alloc_none(strings);
	asked = ops_alloc_zeroed(strings, sizeof(*asked));
	if (!known || !asked) {
		ops_free(known);
		ops_free(asked);
		return false;
	}
	done = view_devices_add_kernel(views, (struct ops_string){"", 0});
	for (size_t i = 0; done && i < views->device_events.count; i++) {
		struct view_device_event *event = &views->device_events.items[i];
		uint32_t name = views->events->name[event->row];
		uint32_t text = extra ? extra[event->row] : OPS_NONE;

		if (event->part == VIEW_KERNEL && !asked[name]) {
			asked[name] = true;
			if (view_kernel_uses_tensor_cores(ops_trace_string(views->trace, name)))
				views->names[name] |= VIEW_NAME_TENSOR_CORES;
		}
		if (text != OPS_NONE && known[text] == OPS_NONE) {
			known[text] = (uint32_t)views->kernels.count;
			done = view_devices_add_kernel(views, ops_trace_string(views->trace, text));
		}
		event->arguments = text == OPS_NONE ? 0 : known[text];
		done = done && view_devices_place(views, event);
	}
	ops_free(known);
	ops_free(asked);
	views->gpus.count = ops_sort_unique_int64(views->gpus.items, views->gpus.count);
	views->used.count = ops_sort_unique_int64(views->used.items, views->used.count);
	return done && ops_groups_init(&views->gpu_kernels, views->device_events.count, views->gpus.count, gpu_of_event, views);
}
