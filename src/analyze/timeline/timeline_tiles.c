/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles: the boxes of a time range of a track at one zoom level; docs/http-api.md specifies the format. The work per
 * lane is one search for each bin in which something starts, regardless of the number of events.
 */
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/search.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tiles are written as they lie in memory");

#define MAGIC 0x4c495401u

struct tile_head {
	uint32_t magic;
	uint32_t size;
	uint32_t track;
	uint32_t level;
	double index;
	uint32_t band;
	uint32_t count;
};
_Static_assert(sizeof(struct tile_head) == 32, "the form of tiles is fixed");

struct box {
	int64_t start_ns;
	int64_t end_ns;
	float busy;
	uint32_t row;
	uint32_t count;
	uint32_t depth;
};

struct boxes {
	OPS_ARRAY(struct box) list;
	const struct ops_timeline *timeline;
	int64_t from_ns;
	int64_t last_ns; /* inclusive, since the end may exceed the type's range */
	int64_t bin_ns;
};

/* Returns the first entry of [i, end) that starts at or after `time_ns`; near entries are found faster. */
static size_t find_start(const int64_t *starts, size_t i, size_t end, int64_t time_ns)
{
	size_t step = 1, low = i, high;

	while (low < end && starts[low] < time_ns) {
		i = low + 1;
		low += step;
		step *= 2;
	}
	high = low < end ? low : end;
	OPS_LOWER_BOUND(i, high, mid, starts[mid] < time_ns);
	return i;
}

/* Adds one box for the entries [first, first + count) of a lane. */
static bool add_box(struct boxes *boxes, uint32_t depth, size_t first, size_t count)
{
	const struct ops_timeline *timeline = boxes->timeline;
	struct box *box = OPS_ARRAY_PUSH(&boxes->list);
	int64_t duration_ns;

	if (!box)
		return false;
	*box = (struct box){
		.start_ns = timeline->starts[first],
		.end_ns = timeline_end(timeline, timeline->rows[first + count - 1]),
		.row = timeline->rows[first],
		.count = (uint32_t)count,
		.depth = depth,
	};
	duration_ns = box->end_ns - box->start_ns;
	box->busy = duration_ns ? (float)((double)(timeline->busy_ns[first + count] - timeline->busy_ns[first]) /
	                                  (double)duration_ns)
	                        : 1;
	return true;
}

static bool is_long(const struct boxes *boxes, size_t entry)
{
	return timeline_end(boxes->timeline, boxes->timeline->rows[entry]) - boxes->timeline->starts[entry] >= boxes->bin_ns;
}

/* Of the entries that start in one bin, only the last can be as long as the bin, since they do not overlap. */
static bool add_lane(struct boxes *boxes, uint32_t lane, uint32_t depth)
{
	const struct ops_timeline *timeline = boxes->timeline;
	const int64_t *starts = timeline->starts;
	size_t begin = timeline->lane_first[lane], end = timeline->lane_first[lane + 1];
	size_t i = find_start(starts, begin, end, boxes->from_ns);
	bool done = true;

	if (i > begin && is_long(boxes, i - 1) && timeline_end(timeline, timeline->rows[i - 1]) > boxes->from_ns)
		done = add_box(boxes, depth, i - 1, 1);
	while (done && i < end && starts[i] <= boxes->last_ns) {
		int64_t bin_last_ns = starts[i] | (boxes->bin_ns - 1);
		size_t next = bin_last_ns == INT64_MAX ? end : find_start(starts, i, end, bin_last_ns + 1);
		size_t alone = is_long(boxes, next - 1);

		if (next - i > alone)
			done = add_box(boxes, depth, i, next - i - alone);
		if (done && alone)
			done = add_box(boxes, depth, next - 1, 1);
		i = next;
	}
	return done;
}

/* --- format --------------------------------------------------------------------------------------------------------- */

#define PUT_COLUMN(type, expression)                                                                                   \
	do {                                                                                                           \
		for (size_t i = 0; i < count; i++) {                                                                   \
			const struct box *box = &boxes->list.items[i];                                                 \
			type value = (type)(expression);                                                               \
                                                                                                                       \
			memcpy(at, &value, sizeof(value));                                                             \
			at += sizeof(value);                                                                           \
		}                                                                                                      \
	} while (0)

static bool put_tile(const struct boxes *boxes, const struct ops_tile *tile, struct ops_buffer *out)
{
	const struct ops_events *events = boxes->timeline->events;
	size_t count = boxes->list.count;
	size_t size = sizeof(struct tile_head) + count * 37, padded = (size + 7) & ~(size_t)7;
	struct tile_head head = {MAGIC, (uint32_t)padded, tile->track, tile->level, (double)tile->index, tile->band,
	                         (uint32_t)count};
	char *at = ops_buffer_room(out, padded);

	if (!at)
		return false;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	PUT_COLUMN(double, box->start_ns);
	PUT_COLUMN(double, box->end_ns);
	PUT_COLUMN(float, box->busy);
	PUT_COLUMN(uint32_t, box->row);
	PUT_COLUMN(uint32_t, events->name[box->row]);
	PUT_COLUMN(uint32_t, box->count);
	PUT_COLUMN(uint32_t, box->depth);
	PUT_COLUMN(uint8_t, events->kind[box->row]);
	memset(at, 0, padded - size);
	out->size += padded;
	return true;
}

static bool make_tile(const struct ops_timeline *timeline, const struct ops_tile *tile, struct boxes *boxes,
                      struct ops_buffer *out)
{
	const struct timeline_track *track = &timeline->tracks.items[tile->track];
	uint32_t lane = tile->fold ? track->folded_lane : track->first_lane;
	uint32_t depths = tile->fold ? track->folded_depths : track->depths;
	uint32_t depth = tile->band * OPS_TILE_BAND_DEPTHS, end = depth + OPS_TILE_BAND_DEPTHS;
	bool done = true;

	boxes->list.count = 0;
	boxes->from_ns = (int64_t)(tile->index << tile->level);
	boxes->last_ns = boxes->from_ns + (int64_t)((UINT64_C(1) << tile->level) - 1);
	boxes->bin_ns = INT64_C(1) << (tile->level - OPS_TILE_LEVEL_MIN);
	for (; done && depth < depths && depth < end; depth++)
		done = add_lane(boxes, lane + depth, depth);
	return done && put_tile(boxes, tile, out);
}

static enum ops_code check_tile(const struct ops_timeline *timeline, const struct ops_tile *tile, struct ops_error *error)
{
	if (tile->track >= timeline->tracks.count)
		return ops_fault(error, OPS_INVALID, "track %u does not exist", tile->track);
	if (tile->level < OPS_TILE_LEVEL_MIN || tile->level > OPS_TILE_LEVEL_MAX)
		return ops_fault(error, OPS_INVALID, "level %u does not exist", tile->level);
	if (tile->index > (uint64_t)INT64_MAX >> tile->level)
		return ops_fault(error, OPS_INVALID, "tile out of range at level %u", tile->level);
	if (tile->band > UINT32_MAX / OPS_TILE_BAND_DEPTHS - 1)
		return ops_fault(error, OPS_INVALID, "band %u does not exist", tile->band);
	return OPS_OK;
}

enum ops_code ops_timeline_tiles(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                 char **ret_bytes, size_t *ret_size, struct ops_error *error)
{
	struct boxes boxes = {.timeline = timeline};
	struct ops_buffer out = {0};
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < count; i++) {
		code = check_tile(timeline, &tiles[i], error);
		if (!code && !make_tile(timeline, &tiles[i], &boxes, &out))
			code = ops_fault_memory(error);
	}
	OPS_ARRAY_RELEASE(&boxes.list);
	return ops_buffer_detach(&out, code, ret_bytes, ret_size, error);
}
