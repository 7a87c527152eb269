/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory by event. A record belongs to every event on the thread that reported it whose closed interval contains its time
 * (unlike in torch, which does not compare the threads). With the records of each track summed up in time order, an event's
 * total is the difference of two sums; its self usage is the total minus the totals of its direct children. A failed allocation
 * has no usage.
 *
 *     track 0   records  +8   +4      -8        sums  0  8  12  4
 *                         │    │       │
 *               event  ├──┼────┼───┤   │        12 - 0 = 12
 */
#include <opstrobe/internal/analyze.h>

#include "analyze/device.h"
#include "analyze/device_times.h"
#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/search.h"
#include "base/sum.h"

struct usage {
	int64_t time_ns;
	int64_t cpu; /* sums of all records of the track up to and including this one */
	int64_t device;
};

/* The records of all tracks, one track after another: those of track t are at start[t] … start[t + 1]. */
struct usages {
	struct usage *items;
	size_t *start;
	size_t *at; /* by track: position of the first record that the walk over the rows has not passed */
};

static void usages_release(struct usages *usages)
{
	ops_free(usages->items);
	ops_free(usages->start);
	ops_free(usages->at);
}

/* Returns false if out of memory. */
static bool usages_init(struct usages *usages, const struct ops_trace *trace)
{
	size_t count, track_count;
	const struct ops_memory_record *records = ops_trace_memory(trace, &count);

	ops_trace_tracks(trace, &track_count);
	usages->items = ops_realloc_array(NULL, count, sizeof(*usages->items));
	usages->start = ops_alloc_zeroed(track_count + 2, sizeof(*usages->start));
	usages->at = ops_realloc_array(NULL, track_count + 1, sizeof(*usages->at));
	if (!usages->items || !usages->start || !usages->at)
		return false;
	for (size_t i = 0; i < count; i++)
		usages->start[records[i].track + 1] += !records[i].out_of_memory;
	for (size_t track = 0; track < track_count; track++) {
		usages->start[track + 1] += usages->start[track];
		usages->at[track] = usages->start[track];
	}
	for (size_t i = 0; i < count; i++) {
		const struct ops_memory_record *record = &records[i];
		size_t *at = &usages->at[record->track];
		struct usage sum = {0};

		if (record->out_of_memory)
			continue;
		if (*at > usages->start[record->track])
			sum = usages->items[*at - 1];
		sum.time_ns = record->time_ns;
		sum.cpu = ops_sum(sum.cpu, ops_device_is_host(record->device_type) ? record->bytes : 0);
		sum.device = ops_sum(sum.device, ops_device_is_accelerator(record->device_type) ? record->bytes : 0);
		usages->items[(*at)++] = sum;
	}
	for (size_t track = 0; track < track_count; track++)
		usages->at[track] = usages->start[track];
	return true;
}

/* Returns the first record of the track from `low` on that is later than `time_ns`. Most events contain few records, so
 * the search doubles its steps before it bisects. */
static size_t first_after(const struct usages *usages, size_t low, size_t end, int64_t time_ns)
{
	size_t step = 1, high;

	while (low + step <= end && usages->items[low + step - 1].time_ns <= time_ns) {
		low += step;
		step *= 2;
	}
	high = low + step <= end ? low + step - 1 : end;
	OPS_LOWER_BOUND(low, high, mid, usages->items[mid].time_ns <= time_ns);
	return low;
}

static void costs_attribute(struct ops_event_costs *costs, const struct ops_events *events, struct usages *usages)
{
	for (size_t row = 0; row < events->count; row++) {
		uint32_t track = events->track[row];
		size_t start = usages->start[track], end = usages->start[track + 1];
		size_t *at = &usages->at[track];
		struct usage before = {0}, last;
		size_t after;

		/* Rows are in order of start, so the first record of each only moves forward. */
		while (*at < end && usages->items[*at].time_ns < events->start_ns[row])
			++*at;
		after = first_after(usages, *at, end, events->end_ns[row]);
		if (after == *at)
			continue; /* already zero */
		if (*at > start)
			before = usages->items[*at - 1];
		last = usages->items[after - 1];
		costs->cpu_memory[row] = ops_difference(last.cpu, before.cpu);
		costs->device_memory[row] = ops_difference(last.device, before.device);
	}
}

/* Asynchronous events have no self usage, just as they have no self time. */
static void costs_subtract_children(struct ops_event_costs *costs, const struct ops_events *events)
{
	for (size_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (!ops_event_visible(events, row) || (events->flags[row] & OPS_EVENT_ASYNC))
			continue;
		costs->self_cpu_memory[row] = ops_sum(costs->self_cpu_memory[row], costs->cpu_memory[row]);
		costs->self_device_memory[row] = ops_sum(costs->self_device_memory[row], costs->device_memory[row]);
		if (parent == OPS_NONE)
			continue;
		costs->self_cpu_memory[parent] = ops_difference(costs->self_cpu_memory[parent], costs->cpu_memory[row]);
		costs->self_device_memory[parent] =
			ops_difference(costs->self_device_memory[parent], costs->device_memory[row]);
	}
}

enum ops_code ops_event_costs_init(struct ops_event_costs *costs, const struct ops_trace *trace, bool with_flops,
				   struct ops_error *error)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_event_costs made = {.with_flops = with_flops};
	struct usages usages = {0};
	size_t memory_count;
	bool ok = true;

	ops_trace_memory(trace, &memory_count);
	if (memory_count > 0 && events->count > 0) {
		made.cpu_memory = ops_alloc_zeroed(events->count, sizeof(int64_t));
		made.device_memory = ops_alloc_zeroed(events->count, sizeof(int64_t));
		made.self_cpu_memory = ops_alloc_zeroed(events->count, sizeof(int64_t));
		made.self_device_memory = ops_alloc_zeroed(events->count, sizeof(int64_t));
		ok = made.cpu_memory && made.device_memory && made.self_cpu_memory && made.self_device_memory &&
		     usages_init(&usages, trace);
		if (ok) {
			costs_attribute(&made, events, &usages);
			costs_subtract_children(&made, events);
		}
		usages_release(&usages);
	}
	if (!ok || !ops_device_times(&made, trace)) {
		ops_event_costs_release(&made);
		return ops_fault_memory(error);
	}
	*costs = made;
	return OPS_OK;
}

void ops_event_costs_release(struct ops_event_costs *costs)
{
	ops_free(costs->cpu_memory);
	ops_free(costs->device_memory);
	ops_free(costs->self_cpu_memory);
	ops_free(costs->self_device_memory);
	ops_free(costs->launcher);
	ops_free(costs->device_time);
	ops_free(costs->self_device_time);
	ops_free(costs->legacy);
	*costs = (struct ops_event_costs){0};
}
