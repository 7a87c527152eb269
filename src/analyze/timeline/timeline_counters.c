/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of the timeline: live memory and utilization of each device, and the counters of the trace. Each is a list
 * of values in order of time. The minimum and maximum of each block make ranges of any length cheap.
 */
#include <math.h>
#include <stdlib.h>

#include <opstrobe/internal/memory.h>

#include "analyze/device.h"
#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/search.h"

#define UTILIZATION_BUCKETS 2000

/* --- adding a counter ----------------------------------------------------------------------------------------------- */

/* Allocates the times of `count` values, which the timeline owns. */
static int64_t *timeline_counters_add_times(struct ops_timeline *timeline, size_t count)
{
	int64_t **slot = OPS_ARRAY_PUSH(&timeline->counter_times);

	if (!slot)
		return NULL;
	*slot = ops_realloc_array(NULL, count + 1, sizeof(**slot));
	return *slot;
}

static bool summarise(struct timeline_counter *counter)
{
	size_t blocks = (counter->count + TIMELINE_BLOCK - 1) / TIMELINE_BLOCK;

	counter->block_min = ops_realloc_array(NULL, blocks + 1, sizeof(double));
	counter->block_max = ops_realloc_array(NULL, blocks + 1, sizeof(double));
	if (!counter->block_min || !counter->block_max)
		return false;
	counter->min = counter->max = counter->count ? counter->values[0] : 0;
	for (size_t i = 0; i < counter->count; i++) {
		double *min = &counter->block_min[i / TIMELINE_BLOCK], *max = &counter->block_max[i / TIMELINE_BLOCK];
		double value = counter->values[i];

		*min = i % TIMELINE_BLOCK && *min < value ? *min : value;
		*max = i % TIMELINE_BLOCK && *max > value ? *max : value;
		counter->min = value < counter->min ? value : counter->min;
		counter->max = value > counter->max ? value : counter->max;
	}
	return true;
}

/* Takes ownership of the values and the label, which are NULL if out of memory. */
static bool timeline_counters_add_counter(struct ops_timeline *timeline, const struct timeline_counter *take)
{
	struct timeline_counter *counter = OPS_ARRAY_PUSH(&timeline->counters);

	if (!counter) {
		ops_free(take->values);
		ops_free(take->label);
		return false;
	}
	*counter = *take;
	return counter->values && counter->label && summarise(counter);
}

/* Terminates the label with a NUL. */
static char *finish_label(struct ops_buffer *label)
{
	ops_buffer_append(label, "", 1);
	if (!label->failed)
		return label->bytes;
	ops_buffer_release(label);
	return NULL;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct memory_series {
	struct ops_memory_device device;
	size_t count;
	uint64_t allocated_max;
	uint64_t reserved_max;
};

#define DEVICES_MAX 256

static struct memory_series *find_series(struct memory_series *all, size_t *count, const struct ops_memory_record *record)
{
	for (size_t i = 0; i < *count; i++)
		if (all[i].device.type == record->device_type && all[i].device.index == record->device_index)
			return &all[i];
	if (*count == DEVICES_MAX)
		return NULL;
	all[*count] = (struct memory_series){.device = {record->device_type, record->device_index}};
	return &all[(*count)++];
}

static bool timeline_counters_is_of(const struct ops_memory_record *record, const struct memory_series *series)
{
	return !record->out_of_memory && record->device_type == series->device.type &&
	       record->device_index == series->device.index;
}

/* Returns the group of the process for host memory, else the group of the device. */
static uint32_t memory_group(const struct ops_timeline *timeline, struct ops_memory_device device)
{
	return ops_device_is_host(device.type)
	               ? timeline_find_group(timeline, TIMELINE_PROCESS, ops_trace_info(timeline->trace)->pid)
	               : timeline_find_group(timeline, TIMELINE_DEVICE, device.index);
}

static bool add_memory_counter(struct ops_timeline *timeline, struct ops_memory_device device, const char *what,
                               struct timeline_counter counter)
{
	struct ops_buffer label = {0};
	char name[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_title(device, name);
	ops_buffer_printf(&label, "%s memory%s", name, what);
	counter.unit = TIMELINE_BYTES;
	counter.group = memory_group(timeline, device);
	counter.label = finish_label(&label);
	return timeline_counters_add_counter(timeline, &counter);
}

/* Adds the live bytes of a device. Their maximum is the peak that every view of memory shows. Several changes at the
 * same time make one value. */
static bool add_live_memory(struct ops_timeline *timeline, const struct memory_series *series,
                            const struct ops_memory_timeline *memory)
{
	int64_t *times = timeline_counters_add_times(timeline, memory->step_count);
	struct timeline_counter counter = {.times_ns = times};
	double held = 0;

	counter.values = ops_realloc_array(NULL, memory->step_count + 1, sizeof(double));
	for (size_t i = 0; times && counter.values && i < memory->step_count; i++) {
		const struct ops_memory_step *step = &memory->steps[i];
		const struct ops_memory_block *block = &memory->blocks[step->block];
		int64_t time_ns = step->action == OPS_MEMORY_PREEXISTING ? 0 : timeline_since(timeline, step->time_ns);

		if (!ops_memory_on_device(block, series->device) || step->action == OPS_MEMORY_INCREMENT_VERSION)
			continue;
		held += step->action == OPS_MEMORY_DESTROY ? -(double)block->bytes : (double)block->bytes;
		counter.count += counter.count == 0 || times[counter.count - 1] != time_ns;
		times[counter.count - 1] = time_ns;
		counter.values[counter.count - 1] = held;
	}
	if (!times || !counter.values) {
		ops_free(counter.values);
		return false;
	}
	return add_memory_counter(timeline, series->device, "", counter);
}

static bool add_reserved_memory(struct ops_timeline *timeline, const struct memory_series *series)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(timeline->trace, &count);
	int64_t *times = timeline_counters_add_times(timeline, series->count);
	struct timeline_counter counter = {.times_ns = times};

	counter.values = ops_realloc_array(NULL, series->count + 1, sizeof(double));
	for (size_t i = 0; times && counter.values && i < count; i++) {
		if (!timeline_counters_is_of(&records[i], series))
			continue;
		times[counter.count] = timeline_since(timeline, records[i].time_ns);
		counter.values[counter.count++] = (double)records[i].total_reserved;
	}
	if (!times || !counter.values) {
		ops_free(counter.values);
		return false;
	}
	return add_memory_counter(timeline, series->device, ", reserved by the allocator", counter);
}

static bool add_memory_series(struct ops_timeline *timeline, const struct memory_series *series, size_t count)
{
	struct ops_memory_timeline *memory = NULL;
	bool done = ops_memory_timeline_new((struct ops_trace *)timeline->trace, &memory, NULL) == OPS_OK;

	for (size_t i = 0; done && i < count; i++) {
		if (series[i].allocated_max)
			done = add_live_memory(timeline, &series[i], memory);
		if (done && series[i].reserved_max)
			done = add_reserved_memory(timeline, &series[i]);
	}
	ops_memory_timeline_free(memory);
	return done;
}

/* Old traces do not record the device of memory. */
static bool timeline_counters_add_memory(struct ops_timeline *timeline)
{
	size_t count, series_count = 0;
	const struct ops_memory_record *records = ops_trace_memory(timeline->trace, &count);
	struct memory_series *all = ops_realloc_array(NULL, DEVICES_MAX, sizeof(*all));
	bool done = all != NULL;

	for (size_t i = 0; done && i < count; i++) {
		struct memory_series *series = records[i].out_of_memory ? NULL : find_series(all, &series_count, &records[i]);

		if (!series)
			continue;
		series->count++;
		if (records[i].total_allocated > series->allocated_max)
			series->allocated_max = records[i].total_allocated;
		if (records[i].total_reserved > series->reserved_max)
			series->reserved_max = records[i].total_reserved;
	}
	if (done && series_count)
		done = add_memory_series(timeline, all, series_count);
	ops_free(all);
	return done;
}

/* --- utilization of devices ----------------------------------------------------------------------------------------- */

struct utilization {
	uint32_t group;
	double *busy_ns;  /* by bucket */
	int64_t until_ns; /* end of the time that has been counted */
	bool any;
};

/* Adds the range [from, to) to the buckets that it overlaps. */
static void add_busy(struct utilization *of, int64_t from_ns, int64_t to_ns, int64_t bucket_ns)
{
	if (from_ns < of->until_ns)
		from_ns = of->until_ns;
	if (to_ns > of->until_ns)
		of->until_ns = to_ns;
	while (from_ns < to_ns) {
		int64_t bucket = from_ns / bucket_ns, end_ns = (bucket + 1) * bucket_ns;

		if (end_ns > to_ns)
			end_ns = to_ns;
		of->busy_ns[bucket] += (double)(end_ns - from_ns);
		from_ns = end_ns;
	}
}

static bool add_utilization_counter(struct ops_timeline *timeline, struct utilization *of, const int64_t *times,
                                    size_t buckets, int64_t bucket_ns)
{
	struct timeline_counter counter = {.group = of->group, .unit = TIMELINE_RATIO, .times_ns = times, .count = buckets};
	struct ops_buffer label = {0};

	for (size_t i = 0; i < buckets; i++)
		of->busy_ns[i] /= (double)bucket_ns;
	counter.values = of->busy_ns;
	of->busy_ns = NULL;
	ops_buffer_append_text(&label, "utilization");
	counter.label = finish_label(&label);
	return timeline_counters_add_counter(timeline, &counter);
}

/* Computes the share of time in which any kernel of a device runs, in equal parts of the trace. */
static bool count_kernels(struct ops_timeline *timeline, struct utilization *groups, size_t buckets, int64_t bucket_ns)
{
	const struct ops_events *events = timeline->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t track = events->kind[row] == OPS_EVENT_KERNEL ? timeline_track_of(timeline, row) : OPS_NONE;
		struct utilization *of = track == OPS_NONE ? NULL : &groups[timeline->tracks.items[track].group];

		if (!of)
			continue;
		if (!of->busy_ns)
			of->busy_ns = ops_alloc_zeroed(buckets + 1, sizeof(double));
		if (!of->busy_ns)
			return false;
		of->any = true;
		add_busy(of, timeline_start(timeline, row), timeline_end(timeline, row), bucket_ns);
	}
	return true;
}

static bool add_utilizations(struct ops_timeline *timeline)
{
	size_t count = timeline->groups.count;
	struct utilization *groups = ops_alloc_zeroed(count + 1, sizeof(*groups));
	int64_t bucket_ns = timeline->duration_ns / UTILIZATION_BUCKETS + 1;
	size_t buckets = (size_t)(timeline->duration_ns / bucket_ns) + 1;
	int64_t *times = timeline_counters_add_times(timeline, buckets);
	bool done = groups && times;

	for (size_t i = 0; done && i < buckets; i++)
		times[i] = (int64_t)i * bucket_ns;
	done = done && count_kernels(timeline, groups, buckets, bucket_ns);
	for (size_t i = 0; groups && i < count; i++) {
		groups[i].group = (uint32_t)i;
		done = done && (!groups[i].any || add_utilization_counter(timeline, &groups[i], times, buckets, bucket_ns));
		ops_free(groups[i].busy_ns);
	}
	ops_free(groups);
	return done;
}

/* --- counters of the trace ------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_records, struct ops_counter_record, OPS_UP(track) OPS_UP(name) OPS_UP(series) OPS_UP(time_ns))

static bool same_series(const struct ops_counter_record *a, const struct ops_counter_record *b)
{
	return a->track == b->track && a->name == b->name && a->series == b->series;
}

static uint32_t group_of_source(const struct ops_timeline *timeline, uint32_t source)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(timeline->trace, &count)[source];

	if (track->flags & OPS_TRACK_PID_TEXT)
		return timeline_find_group(timeline, TIMELINE_OTHER_GROUP, track->pid);
	if (track->kind == OPS_TRACK_STREAM)
		return timeline_find_group(timeline, TIMELINE_DEVICE, track->pid);
	return timeline_find_group(timeline, TIMELINE_PROCESS, track->pid);
}

/* Adds the records of one counter in order of time. Skips values that are not numbers. */
static bool add_records(struct ops_timeline *timeline, const struct ops_counter_record *records, size_t count)
{
	struct ops_string name = ops_trace_string(timeline->trace, records->name);
	struct ops_string series = ops_trace_string(timeline->trace, records->series);
	struct timeline_counter counter = {.group = group_of_source(timeline, records->track)};
	struct ops_buffer label = {0};
	int64_t *times = timeline_counters_add_times(timeline, count);

	if (!times)
		return false;
	counter.times_ns = times;
	counter.values = ops_realloc_array(NULL, count + 1, sizeof(double));
	for (size_t i = 0; counter.values && i < count; i++) {
		if (!isfinite(records[i].value))
			continue;
		times[counter.count] = timeline_since(timeline, records[i].time_ns);
		counter.values[counter.count++] = records[i].value;
	}
	ops_buffer_append(&label, name.bytes, name.size);
	if (series.size) {
		ops_buffer_append_text(&label, ", ");
		ops_buffer_append(&label, series.bytes, series.size);
	}
	counter.label = finish_label(&label);
	return timeline_counters_add_counter(timeline, &counter);
}

static bool timeline_counters_add_own(struct ops_timeline *timeline)
{
	size_t count;
	const struct ops_counter_record *records = ops_trace_counters(timeline->trace, &count);
	struct ops_counter_record *sorted = ops_realloc_array(NULL, count + 1, sizeof(*sorted));
	bool done = sorted != NULL;
	size_t next;

	for (size_t i = 0; done && i < count; i++)
		sorted[i] = records[i];
	if (done)
		qsort(sorted, count, sizeof(*sorted), compare_records);
	for (size_t i = 0; done && i < count; i = next) {
		for (next = i + 1; next < count && same_series(&sorted[i], &sorted[next]);)
			next++;
		done = add_records(timeline, sorted + i, next - i);
	}
	ops_free(sorted);
	return done;
}

bool timeline_counters_build(struct ops_timeline *timeline)
{
	return add_utilizations(timeline) && timeline_counters_add_memory(timeline) && timeline_counters_add_own(timeline);
}

/* --- results -------------------------------------------------------------------------------------------------------- */

void timeline_counters_write(const struct ops_timeline *timeline, struct ops_json_writer *json)
{
	static const char *const units[] = {"", "bytes", "ratio"};

	ops_json_member_open(json, "counters", '[');
	for (size_t i = 0; i < timeline->counters.count; i++) {
		const struct timeline_counter *counter = &timeline->counters.items[i];

		ops_json_open(json, '{');
		ops_json_member(json, "id", (int64_t)i);
		timeline_write_number(json, "group", counter->group);
		ops_json_member_text(json, "label", counter->label);
		ops_json_member_text(json, "unit", units[counter->unit]);
		ops_json_member_number(json, "min", counter->min);
		ops_json_member_number(json, "max", counter->max);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Returns the first value at or after `time_ns`. */
static size_t find_value(const struct timeline_counter *counter, size_t from, int64_t time_ns)
{
	OPS_LOWER_BOUND(from, counter->count, mid, counter->times_ns[mid] < time_ns);
	return from;
}

static void find_extremes(const struct timeline_counter *counter, size_t from, size_t to, double *ret_min, double *ret_max)
{
	double min = counter->values[from], max = min;

	while (from < to) {
		bool block = from % TIMELINE_BLOCK == 0 && from + TIMELINE_BLOCK <= to;
		double least = block ? counter->block_min[from / TIMELINE_BLOCK] : counter->values[from];
		double most = block ? counter->block_max[from / TIMELINE_BLOCK] : counter->values[from];

		min = least < min ? least : min;
		max = most > max ? most : max;
		from += block ? TIMELINE_BLOCK : 1;
	}
	*ret_min = min;
	*ret_max = max;
}

/* A bin in which the counter has values. */
struct bin {
	int64_t time_ns;
	double min, max, last;
};
typedef OPS_ARRAY(struct bin) bin_list;

static bool find_bins(const struct timeline_counter *counter, const struct ops_tile *tile, bin_list *bins, size_t *ret_first)
{
	int64_t from_ns = (int64_t)(tile->index << tile->level);
	int64_t last_ns = from_ns + (int64_t)((UINT64_C(1) << tile->level) - 1);
	int64_t bin_ns = INT64_C(1) << (tile->level - OPS_TILE_LEVEL_MIN);
	size_t i = find_value(counter, 0, from_ns), next;

	*ret_first = i;
	bins->count = 0;
	for (; i < counter->count && counter->times_ns[i] <= last_ns; i = next) {
		int64_t bin_last_ns = counter->times_ns[i] | (bin_ns - 1);
		struct bin *bin = OPS_ARRAY_PUSH(bins);

		if (!bin)
			return false;
		next = bin_last_ns == INT64_MAX ? counter->count : find_value(counter, i, bin_last_ns + 1);
		*bin = (struct bin){.time_ns = counter->times_ns[i], .last = counter->values[next - 1]};
		find_extremes(counter, i, next, &bin->min, &bin->max);
	}
	return true;
}

static bool write_tile(const struct timeline_counter *counter, const struct ops_tile *tile, struct ops_json_writer *json)
{
	bin_list bins = {0};
	size_t first;
	bool done = find_bins(counter, tile, &bins, &first);

	ops_json_open(json, '{');
	ops_json_member(json, "counter", tile->track);
	ops_json_member(json, "level", tile->level);
	ops_json_member(json, "index", (int64_t)tile->index);
	ops_json_key(json, "before");
	if (done && first)
		ops_json_number(json, counter->values[first - 1]);
	else
		ops_json_null(json);
	OPS_JSON_LIST(json, "time_ns", i, bins.count, ops_json_integer(json, bins.items[i].time_ns));
	OPS_JSON_LIST(json, "min", i, bins.count, ops_json_number(json, bins.items[i].min));
	OPS_JSON_LIST(json, "max", i, bins.count, ops_json_number(json, bins.items[i].max));
	OPS_JSON_LIST(json, "last", i, bins.count, ops_json_number(json, bins.items[i].last));
	ops_json_close(json, '}');
	OPS_ARRAY_RELEASE(&bins);
	return done;
}

enum ops_code ops_timeline_counters(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                    char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = OPS_OK;

	ops_json_open(&json, '{');
	ops_json_member_open(&json, "counters", '[');
	for (size_t i = 0; !code && i < count; i++) {
		if (tiles[i].track >= timeline->counters.count)
			code = ops_fault(error, OPS_INVALID, "counter %u does not exist", tiles[i].track);
		else if (tiles[i].level < OPS_TILE_LEVEL_MIN || tiles[i].level > OPS_TILE_LEVEL_MAX ||
		         tiles[i].index > (uint64_t)INT64_MAX >> tiles[i].level)
			code = ops_fault(error, OPS_INVALID, "tile out of range at level %u", tiles[i].level);
		else if (!write_tile(&timeline->counters.items[tiles[i].track], &tiles[i], &json))
			code = ops_fault_memory(error);
	}
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
