/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: allocations by operator, the curve, and each allocation with its release. Each device is processed
 * separately, since allocations and releases are paired by address within a device. A record belongs to the innermost
 * operator on its thread. Allocations in a step, a module, a loader or outside of any event have no operator, so they
 * have separate rows, by the name of the event.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/memory.h>

#include "analyze/device.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/around.h"
#include "derive/memory_events.h"

#define CPU_KEY 0
#define LARGEST 10
/* Upper bound on devices. A corrupt file could list more, and each costs a pass over all records. */
#define DEVICES_MAX 256
#define CURVE_POINTS_MAX 10240

struct amounts {
	int64_t increase;
	int64_t count;
	int64_t size;
};

/* Sums for an operator's name on one device. */
struct row {
	uint32_t name;
	uint64_t calls;
	struct amounts self;
	struct amounts all;
};
typedef OPS_ARRAY(struct row) row_list;

struct event {
	uint32_t node; /* node of the allocation, else of the release */
	int64_t size;
	int64_t allocated_ns; /* INT64_MIN: before the trace */
	int64_t freed_ns;     /* INT64_MIN: not in the trace */
};

struct device {
	const struct ops_views *views;
	const struct ops_memory_record *records;
	const uint32_t *owners;
	size_t count;
	int key; /* CPU_KEY, else the type of device and its number; determines the order of output */
	struct amounts *sums; /* by node */
	row_list rows;
	row_list outside; /* records outside of operators; OPS_NONE is the name if nothing runs */
	OPS_ARRAY(struct event) events;
	/* Figures of the curve. */
	uint64_t points;
	const struct ops_memory_record *first, *last;
	uint64_t allocated_max, reserved_max;
	int64_t peak_bytes; /* peak of live bytes, as in `opstrobe memory` */
};

static int view_memory_key_of(const struct ops_memory_record *record)
{
	return record->device_type == OPS_DEVICE_CPU ? CPU_KEY : record->device_type << 16 | (uint16_t)record->device_index;
}

static struct ops_memory_device memory_device(int key)
{
	return (struct ops_memory_device){(uint8_t)(key >> 16), key == CPU_KEY ? -1 : (int16_t)key};
}

static bool view_memory_is_of(const struct device *device, const struct ops_memory_record *record)
{
	return view_memory_key_of(record) == device->key && !record->out_of_memory;
}

/* --- owners --------------------------------------------------------------------------------------------------------- */

static bool view_memory_holds(const void *context, uint32_t row)
{
	return view_holds(context, row);
}

/* Finds by record the innermost node that contains it. Returns false if out of memory. */
static bool find_owners(const struct ops_views *views, size_t count, uint32_t *owners)
{
	uint32_t *rows = ops_memory_events(views->trace), *around = ops_rows_around(views->trace, view_memory_holds, views);

	for (size_t i = 0; rows && around && i < count; i++) {
		uint32_t row = rows[i] == OPS_NONE || view_holds(views, rows[i]) ? rows[i] : around[rows[i]];

		owners[i] = row == OPS_NONE ? OPS_NONE : views->nodes.items[views->node_of[row]].kept;
	}
	ops_free(rows);
	ops_free(around);
	return rows && around;
}

/* Returns the operator that a record belongs to, or OPS_NONE. */
static uint32_t view_memory_operator_of(const struct device *device, size_t record)
{
	uint32_t owner = device->owners[record];

	return owner != OPS_NONE && view_is_operator(device->views, &device->views->nodes.items[owner]) ? owner : OPS_NONE;
}

/* --- statistics ----------------------------------------------------------------------------------------------------- */

static void view_memory_add_record(struct amounts *to, int64_t bytes)
{
	view_add(&to->increase, bytes);
	to->count += bytes > 0;
	view_add(&to->size, bytes > 0 ? bytes : 0);
}

static void add_amounts(struct amounts *to, const struct amounts *from)
{
	view_add(&to->increase, from->increase);
	to->count += from->count;
	view_add(&to->size, from->size);
}

static bool has_amounts(const struct amounts *amounts)
{
	return amounts->increase || amounts->count || amounts->size;
}

static struct row *view_memory_row_of(row_list *rows, struct ops_map *names, uint32_t name)
{
	struct row *row = OPS_ARRAY_AT(rows, ops_map_number(names, name));

	if (row)
		row->name = name;
	return row;
}

/* First sets what each node has itself. Then adds, from the last node to the first, what is inside it. */
static bool view_memory_sum(struct device *device)
{
	const struct ops_views *views = device->views;
	struct view_node *nodes = views->nodes.items;
	struct ops_map names = {0};
	struct row *row = NULL;
	bool done = true;

	memset(device->sums, 0, (views->nodes.count + 1) * sizeof(*device->sums));
	for (size_t i = 0; i < device->count; i++)
		if (view_memory_is_of(device, &device->records[i]) && view_memory_operator_of(device, i) != OPS_NONE)
			view_memory_add_record(&device->sums[device->owners[i]], device->records[i].bytes);
	for (size_t i = 0; done && i < views->nodes.count; i++) {
		if (nodes[i].kept != i || !view_is_operator(views, &nodes[i]))
			continue;
		row = view_memory_row_of(&device->rows, &names, views->events->name[nodes[i].row]);
		done = row != NULL;
		if (!done)
			break;
		row->calls++;
		add_amounts(&row->self, &device->sums[i]);
	}
	for (size_t i = views->nodes.count; i-- > 0;)
		if (nodes[i].kept == i && nodes[i].parent != OPS_NONE)
			add_amounts(&device->sums[nodes[i].parent], &device->sums[i]);
	for (size_t i = 0; done && i < views->nodes.count; i++)
		if (nodes[i].kept == i && view_is_operator(views, &nodes[i]))
			add_amounts(&view_memory_row_of(&device->rows, &names, views->events->name[nodes[i].row])->all,
			            &device->sums[i]);
	ops_map_release(&names);
	return done;
}

static bool sum_outside(struct device *device)
{
	const struct ops_views *views = device->views;
	struct ops_map names = {0};
	bool done = true;

	for (size_t i = 0; done && i < device->count; i++) {
		uint32_t owner = device->owners[i];
		struct row *row;

		if (!view_memory_is_of(device, &device->records[i]) || view_memory_operator_of(device, i) != OPS_NONE)
			continue;
		row = view_memory_row_of(&device->outside, &names,
		                         owner == OPS_NONE ? OPS_NONE : views->events->name[views->nodes.items[owner].row]);
		done = row != NULL;
		if (done)
			view_memory_add_record(&row->self, device->records[i].bytes);
	}
	ops_map_release(&names);
	return done;
}

static struct ops_string view_memory_name_of(const struct ops_views *views, uint32_t name)
{
	return name == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_string(views->trace, name);
}

static int view_memory_compare_rows(const void *a, const void *b, void *context)
{
	const struct ops_views *views = context;
	const struct row *left = a, *right = b;
	struct ops_string x = view_memory_name_of(views, left->name), y = view_memory_name_of(views, right->name);
	int order = (left->self.increase < right->self.increase) - (left->self.increase > right->self.increase);

	return order ? order : ops_string_compare(x, y);
}

/* Removes rows without content. */
static void finalize_rows(struct device *device)
{
	size_t kept = 0;

	for (size_t i = 0; i < device->rows.count; i++)
		if (has_amounts(&device->rows.items[i].self) || has_amounts(&device->rows.items[i].all))
			device->rows.items[kept++] = device->rows.items[i];
	device->rows.count = kept;
	if (kept)
		qsort_r(device->rows.items, kept, sizeof(*device->rows.items), view_memory_compare_rows, (void *)device->views);
	OPS_ARRAY_SORT_BY(&device->outside, view_memory_compare_rows, (void *)device->views);
}

/* --- curve and events ----------------------------------------------------------------------------------------------- */

static void trace_curve(struct device *device)
{
	bool totals = false;

	for (size_t i = 0; i < device->count; i++) {
		const struct ops_memory_record *record = &device->records[i];

		if (!view_memory_is_of(device, record))
			continue;
		totals |= record->total_allocated || record->total_reserved;
		device->points++;
		if (!device->first)
			device->first = record;
		device->last = record;
		if (record->total_allocated > device->allocated_max)
			device->allocated_max = record->total_allocated;
		if (record->total_reserved > device->reserved_max)
			device->reserved_max = record->total_reserved;
	}
	if (!totals) /* torch before 1.10 does not record it */
		device->points = 0;
}

static struct event *view_memory_add_event(struct device *device, size_t record)
{
	struct event *event = OPS_ARRAY_PUSH(&device->events);
	int64_t bytes = device->records[record].bytes;

	if (event)
		*event = (struct event){view_memory_operator_of(device, record),
		                        bytes < 0 && bytes > INT64_MIN ? -bytes : bytes, INT64_MIN, INT64_MIN};
	return event;
}

static bool pair_event(struct device *device, struct ops_map *open, size_t i)
{
	const struct ops_memory_record *record = &device->records[i];
	uint32_t *at = ops_map_slot(open, record->address, OPS_NONE);
	struct event *event;

	if (!at)
		return false;
	if (record->bytes <= 0 && *at != OPS_NONE) {
		device->events.items[*at].freed_ns = record->time_ns;
		*at = OPS_NONE;
		return true;
	}
	event = view_memory_add_event(device, i);
	if (!event)
		return false;
	if (record->bytes > 0) {
		event->allocated_ns = record->time_ns;
		*at = (uint32_t)device->events.count - 1;
	} else {
		event->freed_ns = record->time_ns;
	}
	return true;
}

/* Files of 2021 have no addresses, so nothing can be paired. */
static bool pair_events(struct device *device)
{
	struct ops_map open = {0};
	bool done = true;

	for (size_t i = 0; done && i < device->count; i++)
		if (view_memory_is_of(device, &device->records[i]) && device->records[i].address)
			done = pair_event(device, &open, i);
	ops_map_release(&open);
	return done;
}

static int64_t known_ns(const struct event *event)
{
	return event->allocated_ns == INT64_MIN ? event->freed_ns : event->allocated_ns;
}

OPS_ORDER(view_memory_compare_events, struct event, OPS_DOWN(size) OPS_UP_OF(known_ns))

/* --- output --------------------------------------------------------------------------------------------------------- */

/* Formats "CPU"; "GPU0", the TensorBoard plugin's name of torch's "cuda:0"; and others by torch's name: "XPU0". */
static const char *name_device(int key, char room[OPS_MEMORY_DEVICE_ROOM])
{
	struct ops_memory_device device = memory_device(key);
	size_t size = 0;

	if (device.type == OPS_DEVICE_CUDA)
		snprintf(room, OPS_MEMORY_DEVICE_ROOM, device.index < 0 ? "GPU" : "GPU%d", device.index);
	else
		ops_memory_device_name(device, room);
	for (const char *c = room; *c; c++)
		if (*c != ':')
			room[size++] = (char)toupper((unsigned char)*c);
	room[size] = 0;
	return room;
}

static void write_device_key(const struct device *device, struct ops_json_writer *json)
{
	char room[OPS_MEMORY_DEVICE_ROOM];

	ops_json_key(json, name_device(device->key, room));
}

static void write_default(struct ops_json_writer *json, int key)
{
	char room[OPS_MEMORY_DEVICE_ROOM];

	name_device(key, room);
	ops_json_member_text(json, "default_device", room);
}

static void view_memory_write_rows(const struct device *device, struct ops_json_writer *json)
{
	write_device_key(device, json);
	ops_json_open(json, '[');
	for (size_t i = 0; i < device->rows.count; i++) {
		const struct row *row = &device->rows.items[i];
		struct ops_string name = ops_trace_string(device->views->trace, row->name);
		const struct {
			const char *key;
			int64_t value;
		} members[] = {
			{"calls", (int64_t)row->calls}, {"increase", row->all.increase},
			{"self_increase", row->self.increase}, {"alloc_count", row->all.count},
			{"self_alloc_count", row->self.count}, {"alloc_size", row->all.size},
			{"self_alloc_size", row->self.size},
		};

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", name);
		for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
			ops_json_member(json, members[m].key, members[m].value);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void write_outside(const struct device *device, struct ops_json_writer *json)
{
	write_device_key(device, json);
	ops_json_open(json, '[');
	for (size_t i = 0; i < device->outside.count; i++) {
		const struct row *row = &device->outside.items[i];
		struct ops_string name = view_memory_name_of(device->views, row->name);

		ops_json_open(json, '{');
		ops_json_key(json, "name");
		if (row->name == OPS_NONE)
			ops_json_null(json);
		else
			ops_json_text(json, name.bytes, name.size);
		ops_json_member(json, "increase", row->self.increase);
		ops_json_member(json, "alloc_count", row->self.count);
		ops_json_member(json, "alloc_size", row->self.size);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void write_point(const struct device *device, struct ops_json_writer *json, const char *key,
                        const struct ops_memory_record *record)
{
	ops_json_member_open(json, key, '[');
	ops_json_us(json, record->time_ns - device->views->first_ns);
	ops_json_integer(json, (int64_t)record->total_allocated);
	ops_json_integer(json, (int64_t)record->total_reserved);
	ops_json_close(json, ']');
}

static void view_memory_write_curve(const struct device *device, struct ops_json_writer *json)
{
	write_device_key(device, json);
	ops_json_open(json, '{');
	ops_json_member(json, "points", (int64_t)device->points);
	write_point(device, json, "first", device->first);
	write_point(device, json, "last", device->last);
	ops_json_member(json, "max_allocated", (int64_t)device->allocated_max);
	ops_json_member(json, "max_reserved", (int64_t)device->reserved_max);
	ops_json_close(json, '}');
}

static void view_memory_write_peak(const struct device *device, struct ops_json_writer *json)
{
	char text[64];

	snprintf(text, sizeof(text), "Peak Memory Usage: %.1fKB", (double)device->allocated_max / 1024);
	write_device_key(device, json);
	ops_json_word(json, text);
}

/* Memory that aten::empty allocates counts for its caller. */
static void write_owner(const struct device *device, struct ops_json_writer *json, uint32_t node)
{
	const struct ops_views *views = device->views;
	const struct view_node *owner = node == OPS_NONE ? NULL : &views->nodes.items[node];
	struct ops_string name = owner ? view_row_name(views, owner->row) : (struct ops_string){"<unknown>", 9};
	const struct view_node *parent = owner && owner->parent != OPS_NONE ? &views->nodes.items[owner->parent] : NULL;
	struct ops_buffer text = {0};

	if (parent && (views->names[views->events->name[owner->row]] & VIEW_NAME_EMPTY)) {
		struct ops_string outer = view_row_name(views, parent->row);

		ops_buffer_append(&text, outer.bytes, outer.size);
		ops_buffer_append(&text, " (", 2);
		ops_buffer_append(&text, name.bytes, name.size);
		ops_buffer_append(&text, ")", 1);
		json->out->failed |= text.failed;
		name = (struct ops_string){text.bytes, text.size};
	}
	ops_json_member_string(json, "operator", name);
	ops_buffer_release(&text);
}

static void view_memory_write_time(struct ops_json_writer *json, const char *key, int64_t time_ns, int64_t origin_ns)
{
	ops_json_member_us_if(json, key, !(time_ns == INT64_MIN || origin_ns == INT64_MIN), ops_difference(time_ns, origin_ns));
}

static void view_memory_write_events(const struct device *device, struct ops_json_writer *json)
{
	int64_t origin_ns = device->views->first_ns;
	uint64_t allocated = 0, freed = 0;

	for (size_t i = 0; i < device->events.count; i++) {
		allocated += device->events.items[i].freed_ns == INT64_MIN;
		freed += device->events.items[i].allocated_ns == INT64_MIN;
	}
	write_device_key(device, json);
	ops_json_open(json, '{');
	ops_json_member(json, "rows", (int64_t)device->events.count);
	ops_json_member(json, "paired", (int64_t)(device->events.count - allocated - freed));
	ops_json_member(json, "alloc_only", (int64_t)allocated);
	ops_json_member(json, "free_only", (int64_t)freed);
	ops_json_member_open(json, "largest", '[');
	for (size_t i = 0; i < device->events.count && i < LARGEST; i++) {
		const struct event *event = &device->events.items[i];

		ops_json_open(json, '{');
		write_owner(device, json, event->node);
		ops_json_member(json, "size", event->size);
		view_memory_write_time(json, "alloc_ts", event->allocated_ns, origin_ns);
		view_memory_write_time(json, "free_ts", event->freed_ns, origin_ns);
		view_memory_write_time(json, "duration", event->freed_ns, event->allocated_ns);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

struct memory {
	OPS_ARRAY(struct device) devices;
	uint32_t *owners;
	struct amounts *sums;
	uint64_t records;
};

static void write_stats(const struct memory *memory, struct ops_json_writer *json)
{
	int key = CPU_KEY;

	for (size_t i = memory->devices.count; i-- > 0;)
		if (memory->devices.items[i].key != CPU_KEY && memory->devices.items[i].rows.count)
			key = memory->devices.items[i].key;
	ops_json_member_open(json, "stats", '{');
	write_default(json, key);
	ops_json_member_open(json, "rows", '{');
	for (size_t i = 0; i < memory->devices.count; i++)
		if (memory->devices.items[i].rows.count)
			view_memory_write_rows(&memory->devices.items[i], json);
	ops_json_close(json, '}');
	ops_json_member_open(json, "outside_operators", '{');
	for (size_t i = 0; i < memory->devices.count; i++)
		if (memory->devices.items[i].outside.count)
			write_outside(&memory->devices.items[i], json);
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

static void write_display_points(const struct device *device, struct ops_json_writer *json)
{
	uint64_t points = device->points * 2 - 1;

	write_device_key(device, json);
	ops_json_integer(json, points > CURVE_POINTS_MAX ? CURVE_POINTS_MAX : (int64_t)points);
}

static void write_peak_bytes(const struct device *device, struct ops_json_writer *json)
{
	write_device_key(device, json);
	ops_json_integer(json, device->peak_bytes);
}

static void write_curves(const struct memory *memory, struct ops_json_writer *json, const char *key,
                         void (*write)(const struct device *device, struct ops_json_writer *json))
{
	ops_json_member_open(json, key, '{');
	for (size_t i = 0; i < memory->devices.count; i++)
		if (memory->devices.items[i].points)
			write(&memory->devices.items[i], json);
	ops_json_close(json, '}');
}

static void view_memory_write_all(const struct memory *memory, struct ops_json_writer *json)
{
	int key = CPU_KEY;

	for (size_t i = memory->devices.count; i-- > 0;)
		if (memory->devices.items[i].key != CPU_KEY && memory->devices.items[i].points)
			key = memory->devices.items[i].key;
	ops_json_open(json, '{');
	ops_json_member(json, "records", (int64_t)memory->records);
	write_curves(memory, json, "peaks", write_peak_bytes);
	write_stats(memory, json);
	ops_json_member_open(json, "curve", '{');
	write_default(json, key);
	write_curves(memory, json, "devices", view_memory_write_curve);
	write_curves(memory, json, "display_points", write_display_points);
	write_curves(memory, json, "peak_text", view_memory_write_peak);
	ops_json_close(json, '}');
	ops_json_member_open(json, "events", '{');
	for (size_t i = 0; i < memory->devices.count; i++)
		if (memory->devices.items[i].events.count)
			view_memory_write_events(&memory->devices.items[i], json);
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

OPS_ORDER(compare_devices, struct device, OPS_UP(key))

static bool find_devices(struct memory *memory, const struct ops_memory_record *records, size_t count)
{
	struct ops_map keys = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		int key = view_memory_key_of(&records[i]);
		size_t before = keys.count;

		memory->records += !records[i].out_of_memory;
		if (records[i].out_of_memory || memory->devices.count == DEVICES_MAX)
			continue;
		done = ops_map_add(&keys, (uint64_t)key, 0);
		if (!done || keys.count == before)
			continue;
		done = OPS_ARRAY_APPEND(&memory->devices, (struct device){.records = records, .count = count, .key = key});
	}
	ops_map_release(&keys);
	if (done)
		OPS_ARRAY_SORT(&memory->devices, compare_devices);
	return done;
}

static bool find_peaks(const struct ops_views *views, struct memory *memory)
{
	struct ops_memory_timeline *timeline = NULL;
	bool done = !ops_memory_timeline_new((struct ops_trace *)views->trace, &timeline, NULL);

	for (size_t i = 0; done && i < memory->devices.count; i++) {
		struct device *device = &memory->devices.items[i];
		struct ops_memory_peak peak = {0};

		done = !ops_memory_peak_of(timeline, memory_device(device->key), &peak, NULL);
		device->peak_bytes = peak.bytes;
		ops_memory_peak_release(&peak);
	}
	ops_memory_timeline_free(timeline);
	return done;
}

static bool view_memory_find_owners(const struct ops_views *views, struct memory *memory, const struct ops_memory_record *records,
                                    size_t count)
{
	if (!find_devices(memory, records, count))
		return false;
	memory->owners = ops_realloc_array(NULL, count + 1, sizeof(*memory->owners));
	memory->sums = ops_realloc_array(NULL, views->nodes.count + 1, sizeof(*memory->sums));
	if (!memory->owners || !memory->sums || !find_owners(views, count, memory->owners))
		return false;
	for (size_t i = 0; i < memory->devices.count; i++) {
		struct device *device = &memory->devices.items[i];

		device->views = views;
		device->owners = memory->owners;
		device->sums = memory->sums;
		if (!view_memory_sum(device) || !sum_outside(device) || !pair_events(device))
			return false;
		finalize_rows(device);
		trace_curve(device);
		OPS_ARRAY_SORT(&device->events, view_memory_compare_events);
	}
	return memory->devices.count == 0 || find_peaks(views, memory);
}

bool view_write_memory(const struct ops_views *views, struct ops_json_writer *json)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(views->trace, &count);
	struct memory memory = {0};
	bool done = view_memory_find_owners(views, &memory, records, count);

	ops_json_key(json, "memory");
	if (done && memory.records)
		view_memory_write_all(&memory, json);
	else
		ops_json_null(json);
	for (size_t i = 0; i < memory.devices.count; i++) {
		OPS_ARRAY_RELEASE(&memory.devices.items[i].rows);
		OPS_ARRAY_RELEASE(&memory.devices.items[i].outside);
		OPS_ARRAY_RELEASE(&memory.devices.items[i].events);
	}
	OPS_ARRAY_RELEASE(&memory.devices);
	ops_free(memory.owners);
	ops_free(memory.sums);
	return done;
}
