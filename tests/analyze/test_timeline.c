/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/timeline: tiles of random traces compared with a count of all events, row by row, and failures for lack of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/failing.h"
#include "analyze/timeline/lane_tree.h"
#include "analyze/timeline/timeline.h"
#include "scene.h"

static uint64_t seed;

static uint64_t next_random(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (seed >> 33) % below;
}

/* Rows of all lengths on two tracks: nested, overlapping, asynchronous, without duration; calls of library functions. */
static struct ops_trace *random_trace(size_t rows, int64_t extent)
{
	struct ops_builder *b = scene_open();

	for (size_t i = 0; i < rows; i++) {
		int64_t start = (int64_t)next_random((uint64_t)extent), longest = extent >> next_random(20);
		struct ops_new_event event = scene_event(b, (uint32_t)next_random(2), next_random(2) ? "a" : "b", 1000 + start,
		                                         1000 + start + (int64_t)next_random((uint64_t)longest + 1));

		event.flags = next_random(10) ? 0 : OPS_EVENT_ASYNC;
		if (next_random(2)) {
			event.name = scene_string(b, "torch/a.py(1): wrap");
			event.kind = OPS_EVENT_PYTHON_FUNCTION;
		}
		ops_builder_event(b, &event);
	}
	return scene_close(b);
}

static struct ops_timeline *timeline_of(const struct ops_trace *trace)
{
	struct ops_timeline *timeline = NULL;

	assert_int_equal(ops_timeline_new(trace, &timeline, NULL), OPS_OK);
	return timeline;
}

/* --- what a tile must have ------------------------------------------------------------------------------------------ */

struct box {
	double start, end;
	uint32_t row, count, depth;
};

struct tile {
	char *bytes;
	uint32_t count;
};

static struct tile get_tile(const struct ops_timeline *timeline, struct ops_tile wanted)
{
	struct tile tile;
	uint32_t size;
	size_t bytes;

	assert_int_equal(ops_timeline_tiles(timeline, &wanted, 1, &tile.bytes, &bytes, NULL), OPS_OK);
	memcpy(&size, tile.bytes + 4, 4);
	assert_int_equal(size, bytes);
	memcpy(&tile.count, tile.bytes + 28, 4);
	return tile;
}

static uint32_t number_at(const struct tile *tile, size_t column, size_t i)
{
	uint32_t number;

	memcpy(&number, tile->bytes + 32 + tile->count * (20 + 4 * column) + 4 * i, 4);
	return number;
}

static struct box box_of(const struct tile *tile, size_t i)
{
	struct box box = {.row = number_at(tile, 0, i), .count = number_at(tile, 2, i), .depth = number_at(tile, 3, i)};

	memcpy(&box.start, tile->bytes + 32 + 8 * i, 8);
	memcpy(&box.end, tile->bytes + 32 + 8 * (tile->count + i), 8);
	return box;
}

static bool is_folded(const struct ops_timeline *timeline, uint32_t row)
{
	return timeline->wrappers->into && timeline->wrappers->into[row] != OPS_NONE;
}

/* Every row of the track is found again: a long one by itself where it has a part in the tile, a short one in the box of its
 * bin and depth. */
static void check_tile(const struct ops_timeline *timeline, struct ops_tile wanted)
{
	struct tile tile = get_tile(timeline, wanted);
	int64_t from = (int64_t)(wanted.index << wanted.level), last = from + (int64_t)((UINT64_C(1) << wanted.level) - 1);
	int64_t bin = INT64_C(1) << (wanted.level - OPS_TILE_LEVEL_MIN);
	uint64_t expected = 0, found = 0;

	for (uint32_t row = 0; row < timeline->events->count; row++) {
		int64_t start = timeline_start(timeline, row), end = timeline_end(timeline, row);
		bool is_long = end - start >= bin;
		bool inside = start <= last && (is_long ? end > from : start >= from);

		if (timeline_track_of(timeline, row) == wanted.track && !(wanted.fold && is_folded(timeline, row)) &&
		    timeline_depth(timeline, row, wanted.fold) / OPS_TILE_BAND_DEPTHS == wanted.band)
			expected += inside;
	}
	for (size_t i = 0; i < tile.count; i++) {
		struct box box = box_of(&tile, i);

		found += box.count;
		assert_int_equal(timeline_depth(timeline, box.row, wanted.fold), box.depth);
		assert_true((double)timeline_start(timeline, box.row) == box.start);
		if (box.count == 1)
			assert_true((double)timeline_end(timeline, box.row) == box.end);
		if (i) {
			struct box before = box_of(&tile, i - 1);

			assert_true(before.depth < box.depth || (before.depth == box.depth && before.end <= box.start));
		}
	}
	assert_int_equal(found, expected);
	ops_free(tile.bytes);
}

static void check_tiles(const struct ops_timeline *timeline)
{
	for (uint32_t track = 0; track < timeline->tracks.count; track++)
		for (uint32_t level = OPS_TILE_LEVEL_MIN; level <= timeline->level_max; level += 3)
			for (int i = 0; i < 4; i++) {
				uint64_t tiles = ((uint64_t)timeline->duration_ns >> level) + 1;
				uint32_t bands = (timeline->tracks.items[track].depths - 1) / OPS_TILE_BAND_DEPTHS + 1;
				struct ops_tile wanted = {track, level, next_random(tiles), (uint32_t)next_random(bands), i % 2};

				check_tile(timeline, wanted);
			}
}

static void test_random_tiles(void **state)
{
	static const int64_t extents[] = {1, 600, 100000, INT64_C(1) << 40};

	(void)state;
	for (seed = 1; seed < 9; seed++) {
		uint64_t own = seed;
		struct ops_trace *trace = random_trace(1 + next_random(400), extents[own % 4]);
		struct ops_timeline *timeline = timeline_of(trace);

		check_tiles(timeline);
		ops_timeline_free(timeline);
		ops_trace_unref(trace);
		seed = own;
	}
}

/* The rows of a lane do not overlap, and a row stands below the one around it. */
static void test_lanes(void **state)
{
	struct ops_trace *trace;
	struct ops_timeline *timeline;

	(void)state;
	seed = 5;
	trace = random_trace(2000, 100000);
	timeline = timeline_of(trace);
	assert_true(timeline->all_lanes > timeline->lane_count);
	for (size_t lane = 0; lane < timeline->all_lanes; lane++)
		for (size_t i = timeline->lane_first[lane] + 1; i < timeline->lane_first[lane + 1]; i++)
			assert_true(timeline_end(timeline, timeline->rows[i - 1]) <= timeline->starts[i]);
	for (uint32_t row = 0; row < timeline->events->count; row++) {
		uint32_t parent = timeline->events->parent[row];

		if (parent != OPS_NONE && timeline->depths[row] != OPS_NONE && timeline->depths[parent] != OPS_NONE)
			assert_true(timeline->depths[row] > timeline->depths[parent]);
		if (parent != OPS_NONE && timeline->depths[row] != OPS_NONE && timeline->depths[parent] != OPS_NONE &&
		    !is_folded(timeline, row) && !is_folded(timeline, parent))
			assert_true(timeline->folded_depths[row] > timeline->folded_depths[parent]);
		if (is_folded(timeline, row))
			assert_int_equal(timeline->folded_depths[row], timeline->folded_depths[timeline->wrappers->into[row]]);
	}
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

/* A call that only passes on leaves its depth to what it calls. */
static void test_wrappers_fold(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event = scene_event(b, 0, "torch/nn/modules/module.py(1): _call_impl", 1000, 2000);
	struct ops_tile wanted = {.level = 10, .index = 0, .fold = true};
	struct ops_timeline *timeline;
	struct ops_trace *trace;
	struct tile tile;
	char *answer;
	size_t size;

	(void)state;
	event.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(b, &event);
	scene_op(b, 0, "aten::linear", 1000, 2000);
	scene_op(b, 0, "aten::addmm", 1010, 1500);
	scene_op(b, 1, "aten::other", 1010, 1500);
	trace = scene_close(b);
	timeline = timeline_of(trace);
	assert_int_equal(timeline->tracks.items[0].depths, 3);
	assert_int_equal(timeline->tracks.items[0].folded_depths, 2);
	assert_int_equal(timeline->tracks.items[1].folded_depths, 1);
	tile = get_tile(timeline, wanted);
	assert_int_equal(tile.count, 2);
	assert_int_equal(box_of(&tile, 0).row, scene_row(trace, "aten::linear"));
	assert_int_equal(box_of(&tile, 0).depth, 0);
	ops_free(tile.bytes);
	assert_int_equal(ops_timeline_event(timeline, scene_row(trace, "aten::linear"), &answer, &size, NULL), OPS_OK);
	assert_non_null(strstr(answer, "\"depth\":1,\"folded_depth\":0,"));
	assert_non_null(strstr(answer, "\"folds_into\":null,\"wrappers\":[{\"row\":0,\"name\":\"torch/nn/modules/module.py(1): "
	                               "_call_impl\",\"duration_ns\":1000}]"));
	ops_free(answer);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

/* Work that overlaps its neighbours, as rounding makes it, uses two lanes in turn and not one more each time. */
static void test_chain_of_overlaps(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_timeline *timeline;
	struct ops_trace *trace;

	(void)state;
	for (int i = 0; i < 1000; i++)
		scene_op(b, 0, "kernel", 1000 + i * 10, 1000 + i * 10 + 11);
	trace = scene_close(b);
	timeline = timeline_of(trace);
	assert_int_equal(timeline->tracks.items[0].depths, 2);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

/* Laying out thousands of events at once takes less than quadratic time. */
static void test_many_at_once(void **state)
{
	struct lane_tree tree = {0};

	(void)state;
	for (int64_t i = 0; i < 200000; i++)
		assert_int_equal(lane_tree_lay(&tree, 0, i, INT64_C(1) << 40), i);
	assert_int_equal(lane_tree_lay(&tree, 77, INT64_C(1) << 40, INT64_MAX), 77);
	assert_int_equal(lane_tree_lay(&tree, 77, INT64_C(1) << 40, INT64_MAX), 78);
	lane_tree_release(&tree);
}

/* --- odd traces ----------------------------------------------------------------------------------------------------- */

static void query_everything(const struct ops_timeline *timeline)
{
	struct ops_window window = OPS_WINDOW_ALL;
	struct ops_search search = {OPS_WINDOW_ALL, "A", 1, OPS_NONE, OPS_NONE, 16, true};
	struct ops_tile tile = {.level = timeline->level_max, .fold = true};
	const uint32_t ids[] = {0};
	char *answer;
	size_t size;

#define ASK(call)                                                                                  \
	do {                                                                                       \
		answer = NULL;                                                                     \
		if (!(call))                                                                       \
			ops_free(answer);                                                 \
	} while (0)
	ASK(ops_timeline_json(timeline, &answer, &size, NULL));
	ASK(ops_timeline_tiles(timeline, &tile, 1, &answer, &size, NULL));
	ASK(ops_timeline_counters(timeline, &tile, 1, &answer, &size, NULL));
	ASK(ops_timeline_event(timeline, 0, &answer, &size, NULL));
	ASK(ops_timeline_search(timeline, &search, &answer, &size, NULL));
	ASK(ops_timeline_range(timeline, &window, &answer, &size, NULL));
	ASK(ops_timeline_flows(timeline, &window, OPS_NONE, UINT32_MAX, &answer, &size, NULL));
	ASK(ops_timeline_calls(timeline, (struct ops_string){"aten::odd", 9}, OPS_NONE, &answer, &size, NULL));
	ASK(ops_timeline_strings(timeline, ids, 1, &answer, &size, NULL));
	ASK(ops_timeline_critical_path(timeline, (struct ops_string){"", 0}, 0, &answer, &size, NULL));
#undef ASK
}

static void test_no_events_and_odd_times(void **state)
{
	static const int64_t times[][2] = {
		{INT64_MIN, INT64_MAX}, {INT64_MIN, INT64_MIN}, {INT64_MAX, INT64_MAX}, {0, INT64_MAX}, {-1, 1}};
	struct ops_trace *trace = scene_close(scene_open());
	struct ops_timeline *timeline = timeline_of(trace);
	struct ops_builder *b = scene_open();

	(void)state;
	query_everything(timeline);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
	for (int i = 0; i < 5; i++)
		scene_op(b, 0, "aten::odd", times[i][0], times[i][1]);
	scene_memory(b, 0, INT64_MAX, 100, 0);
	trace = scene_close(b);
	timeline = timeline_of(trace);
	query_everything(timeline);
	check_tiles(timeline);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

/* Checks that the description has a member with this text. */
static void check_opening(struct ops_builder *b, const char *wanted)
{
	struct ops_trace *trace = scene_close(b);
	struct ops_timeline *timeline = timeline_of(trace);
	size_t size;
	char *answer;

	assert_int_equal(ops_timeline_json(timeline, &answer, &size, NULL), OPS_OK);
	if (!strstr(answer, wanted))
		fail_msg("%s is not in %s", wanted, answer);
	ops_free(answer);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

static void test_opening(void **state)
{
	struct ops_builder *b = scene_open();

	(void)state;
	scene_op(b, 0, "aten::a", 0, 10000);
	scene_range(b, 0, "ProfilerStep#7", 11000, 13000);
	scene_range(b, 0, "ProfilerStep#8", 13000, 15000);
	scene_op(b, 0, "aten::a", 15000, 15100);
	check_opening(b, "\"opening\":{\"steps\":\"7:8\",\"from_ns\":10800,\"to_ns\":15100}");

	b = scene_open();
	scene_op(b, 0, "aten::a", 0, 1000);
	scene_range(b, 0, "ProfilerStep#2", 2000, 4000);
	check_opening(b, "\"opening\":{\"steps\":\"2\",\"from_ns\":1900,\"to_ns\":4000}");

	b = scene_open();
	scene_op(b, 0, "aten::a", 0, 10);
	scene_range(b, 0, "ProfilerStep#2", 20, 4000);
	check_opening(b, "\"opening\":null");

	b = scene_open();
	scene_op(b, 0, "aten::a", 0, 10);
	check_opening(b, "\"opening\":null");
}

/* Operators that overlap in part take their time off the one around them once. */
static void test_range_of_overlapping_children(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_window window = OPS_WINDOW_ALL;
	struct ops_trace *trace;
	struct ops_timeline *timeline;
	char *answer;
	size_t size;

	(void)state;
	scene_op(b, 0, "aten::outer", 0, 1000);
	scene_op(b, 0, "aten::one", 100, 900);
	scene_op(b, 0, "aten::two", 200, 950);
	trace = scene_close(b);
	timeline = timeline_of(trace);
	assert_int_equal(ops_timeline_range(timeline, &window, &answer, &size, NULL), OPS_OK);
	assert_non_null(strstr(answer, "\"name\":\"aten::outer\""));
	assert_non_null(strstr(strstr(answer, "aten::outer"), "\"total_ns\":1000,\"self_ns\":150,"));
	ops_free(answer);
	ops_timeline_free(timeline);
	ops_trace_unref(trace);
}

static void build_and_query(void *context)
{
	struct ops_timeline *timeline = NULL;
	struct ops_error error;
	enum ops_code code = ops_timeline_new(context, &timeline, &error);

	if (code) {
		assert_int_equal(code, OPS_NO_MEMORY);
		return;
	}
	query_everything(timeline);
	ops_timeline_free(timeline);
}

static void test_without_memory(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;

	(void)state;
	scene_range(b, 0, "ProfilerStep#1", 1000, 9000);
	for (int i = 0; i < 5; i++)
		scene_op(b, (uint32_t)i % 2, "aten::a", 1000 + i * 100, 1500 + i * 100);
	scene_memory(b, 0, 1200, 4096, 0);
	ops_builder_counter(b, &(struct ops_counter_record){.time_ns = 1100, .value = 2, .name = scene_string(b, "c")});
	trace = scene_close(b);
	assert_true(fail_each(build_and_query, trace) > 30);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_tiles),      cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_wrappers_fold),
		cmocka_unit_test(test_chain_of_overlaps), cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_no_events_and_odd_times), cmocka_unit_test(test_range_of_overlapping_children),
		cmocka_unit_test(test_opening),           cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
