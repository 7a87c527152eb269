/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory by call of a module. Records and units are both in order of time, so one pass over both suffices. It tracks
 * for each thread the innermost open unit and the bytes in use. A record belongs to the units of its thread whose
 * closed interval contains its time, as with events (analyze/costs.c).
 */
#include "analyze/device.h"
#include "analyze/module_costs.h"
#include "base/alloc.h"
#include "base/sum.h"

enum { CPU, DEVICE, MEMORIES };

/* State of an open unit: the bytes that its thread had in use at its start, and the maximum since. */
struct level {
	int64_t start[MEMORIES];
	int64_t most[MEMORIES];
};

struct walk {
	struct module_costs *costs;
	struct level *levels;           /* by unit */
	uint32_t *open;                 /* by track: the innermost open unit; OPS_NONE: none */
	int64_t (*in_use)[MEMORIES];    /* by track */
	size_t track_count;
};

static void close_unit(struct walk *walk, uint32_t track)
{
	uint32_t index = walk->open[track];
	const struct module_unit *unit = &walk->costs->units.items[index];
	const struct level *level = &walk->levels[index];

	for (int memory = 0; memory < MEMORIES; memory++) {
		if (!unit->backward)
			walk->costs->costs[unit->call].peak_bytes[memory] =
				ops_difference(level->most[memory], level->start[memory]);
		if (unit->outer != OPS_NONE && walk->levels[unit->outer].most[memory] < level->most[memory])
			walk->levels[unit->outer].most[memory] = level->most[memory];
	}
	walk->open[track] = unit->outer;
}

/* Opens the unit, after closing the units of its thread that do not contain it. */
static void open_unit(struct walk *walk, uint32_t index)
{
	const struct module_unit *unit = &walk->costs->units.items[index];
	uint32_t track = walk->costs->events->track[unit->event];

	while (walk->open[track] != OPS_NONE && walk->open[track] != unit->outer)
		close_unit(walk, track);
	for (int memory = 0; memory < MEMORIES; memory++)
		walk->levels[index].start[memory] = walk->levels[index].most[memory] = walk->in_use[track][memory];
	walk->open[track] = index;
}

static void module_memory_read_record(struct walk *walk, const struct ops_memory_record *record)
{
	const struct module_costs *costs = walk->costs;
	int memory = ops_device_is_host(record->device_type) ? CPU : DEVICE;
	uint32_t *open = &walk->open[record->track];
	int64_t *in_use = &walk->in_use[record->track][memory];
	const struct module_unit *unit;
	int64_t *self;

	if (record->out_of_memory || (memory == DEVICE && !ops_device_is_accelerator(record->device_type)))
		return;
	while (*open != OPS_NONE && costs->events->end_ns[costs->units.items[*open].event] < record->time_ns)
		close_unit(walk, record->track);
	*in_use = ops_sum(*in_use, record->bytes);
	if (*open == OPS_NONE)
		return;
	if (walk->levels[*open].most[memory] < *in_use)
		walk->levels[*open].most[memory] = *in_use;
	unit = &costs->units.items[*open];
	if (unit->backward)
		return;
	self = costs->costs[unit->call].self;
	self += memory == CPU ? OPS_MODULE_CPU_ALLOCATED : OPS_MODULE_DEVICE_ALLOCATED;
	if (record->bytes > 0)
		self[0] = ops_sum(self[0], record->bytes);
	self[1] = ops_sum(self[1], record->bytes);
}

static void walk_all(struct walk *walk)
{
	const struct module_costs *costs = walk->costs;
	size_t count, next = 0;
	const struct ops_memory_record *records = ops_trace_memory(costs->trace, &count);

	for (uint32_t i = 0; i < costs->units.count; i++) {
		int64_t start_ns = costs->events->start_ns[costs->units.items[i].event];

		while (next < count && records[next].time_ns < start_ns)
			module_memory_read_record(walk, &records[next++]);
		open_unit(walk, i);
	}
	while (next < count)
		module_memory_read_record(walk, &records[next++]);
	for (uint32_t track = 0; track < walk->track_count; track++)
		while (walk->open[track] != OPS_NONE)
			close_unit(walk, track);
}

bool module_costs_add_memory(struct module_costs *costs)
{
	struct walk walk = {.costs = costs};
	size_t records;
	bool ok;

	_Static_assert(OPS_MODULE_CPU_MEMORY == OPS_MODULE_CPU_ALLOCATED + 1, "metrics");
	_Static_assert(OPS_MODULE_DEVICE_MEMORY == OPS_MODULE_DEVICE_ALLOCATED + 1, "metrics");
	ops_trace_memory(costs->trace, &records);
	if (!records)
		return true;
	ops_trace_tracks(costs->trace, &walk.track_count);
	walk.levels = ops_realloc_array(NULL, costs->units.count + 1, sizeof(*walk.levels));
	walk.open = ops_alloc_none(walk.track_count + 1);
	walk.in_use = ops_alloc_zeroed(walk.track_count + 1, sizeof(*walk.in_use));
	ok = walk.levels && walk.open && walk.in_use;
	if (ok)
		walk_all(&walk);
	ops_free(walk.levels);
	ops_free(walk.open);
	ops_free(walk.in_use);
	return ok;
}
