/* SPDX-License-Identifier: Apache-2.0
 *
 * The annotation of each piece of device work: the shortest one on its own stream that it overlaps.
 *
 * The work of a stream is visited in order of its start. An annotation that overlaps a piece of work either runs when
 * the work starts, and is then in a heap of open annotations, or begins before the work ends, and is then in a range of
 * the annotations ordered by start. A tree finds the shortest of that range.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/events/event_list.h"
#include "base/alloc.h"
#include "base/heap.h"
#include "base/order.h"
#include "base/search.h"
#include "base/sum.h"
#include "base/text.h"

/* Annotations and work of a rank, each by track and start. */
struct lists {
	const struct event_table *table;
	uint32_t *annotations;
	size_t annotation_count;
	uint32_t *work;
	size_t work_count;
	uint32_t *label; /* by position in `work`: a row; OPS_NONE: none */
};

/* The annotations of one track: a tree to find the shortest, and a heap, both of positions in `rows`. */
struct track {
	const struct event_table *table;
	const uint32_t *rows;
	size_t count;
	uint32_t *tree; /* 2 * count entries, the leaves last; OPS_NONE: none */
	uint32_t *heap;
	size_t heap_count;
};

static bool annotated_kernels_before(const void *context, uint32_t a, uint32_t b)
{
	const struct event_row *rows = context;

	if (rows[a].track != rows[b].track)
		return rows[a].track < rows[b].track;
	return rows[a].ts_ns < rows[b].ts_ns;
}

/* Returns the annotation that applies: the shorter, or of equally short ones the later one in the file. */
static uint32_t shorter(const struct track *track, uint32_t a, uint32_t b)
{
	const struct event_row *left, *right;

	if (a == OPS_NONE || b == OPS_NONE)
		return a == OPS_NONE ? b : a;
	left = &track->table->rows[track->rows[a]];
	right = &track->table->rows[track->rows[b]];
	if (left->dur_ns != right->dur_ns)
		return left->dur_ns < right->dur_ns ? a : b;
	return track->rows[a] > track->rows[b] ? a : b;
}

static void fill_tree(struct track *track)
{
	for (size_t i = 0; i < track->count; i++)
		track->tree[track->count + i] = (uint32_t)i;
	for (size_t i = track->count; i-- > 1;)
		track->tree[i] = shorter(track, track->tree[2 * i], track->tree[2 * i + 1]);
}

/* Returns the shortest annotation of the positions from `first` up to `end`, exclusive. */
static uint32_t shortest_of(const struct track *track, size_t first, size_t end)
{
	uint32_t found = OPS_NONE;

	for (first += track->count, end += track->count; first < end; first /= 2, end /= 2) {
		if (first & 1)
			found = shorter(track, found, track->tree[first++]);
		if (end & 1)
			found = shorter(track, found, track->tree[--end]);
	}
	return found;
}

static bool is_shorter(const void *track, uint32_t a, uint32_t b)
{
	return a != b && shorter(track, a, b) == a;
}

/* Labels the work of one track. */
static void label_track(struct track *track, const uint32_t *work, size_t count, uint32_t *label)
{
	const struct event_row *rows = track->table->rows;
	size_t begun = 0;

	fill_tree(track);
	for (size_t i = 0; i < count; i++) {
		const struct event_row *row = &rows[work[i]];
		size_t low;
		uint32_t found = OPS_NONE;

		for (; begun < track->count && rows[track->rows[begun]].ts_ns <= row->ts_ns; begun++)
			ops_heap_push(track->heap, &track->heap_count, (uint32_t)begun, is_shorter, track);
		while (track->heap_count && event_end(&rows[track->rows[track->heap[0]]]) <= row->ts_ns)
			ops_heap_pop(track->heap, &track->heap_count, is_shorter, track);
		low = begun;
		OPS_LOWER_BOUND(low, track->count, mid, rows[track->rows[mid]].ts_ns < event_end(row));
		if (track->heap_count)
			found = track->heap[0];
		found = shorter(track, found, begun < low ? shortest_of(track, begun, low) : OPS_NONE);
		label[i] = found == OPS_NONE ? OPS_NONE : track->rows[found];
	}
}

static bool label_all(struct lists *lists)
{
	const struct event_row *rows = lists->table->rows;
	uint32_t *room = ops_alloc_zeroed(3 * lists->annotation_count + 1, sizeof(*room));
	size_t at = 0;

	if (!room)
		return false;
	for (size_t i = 0, end; i < lists->work_count; i = end) {
		uint32_t on = rows[lists->work[i]].track;
		struct track track = {.table = lists->table};

		for (end = i; end < lists->work_count && rows[lists->work[end]].track == on;)
			end++;
		while (at < lists->annotation_count && rows[lists->annotations[at]].track < on)
			at++;
		track.rows = lists->annotations + at;
		for (; at < lists->annotation_count && rows[lists->annotations[at]].track == on; at++)
			track.count++;
		track.tree = room;
		track.heap = room + 2 * track.count;
		label_track(&track, lists->work + i, end - i, lists->label + i);
	}
	ops_free(room);
	return true;
}

static bool annotated_kernels_collect(struct lists *lists, const struct event_table *table)
{
	*lists = (struct lists){.table = table};
	lists->annotations = ops_alloc_zeroed(table->kept_count + 1, sizeof(uint32_t));
	lists->work = ops_alloc_zeroed(table->kept_count + 1, sizeof(uint32_t));
	lists->label = ops_alloc_zeroed(table->kept_count + 1, sizeof(uint32_t));
	if (!lists->annotations || !lists->work || !lists->label)
		return false;
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->kind == OPS_EVENT_GPU_USER_ANNOTATION)
			lists->annotations[lists->annotation_count++] = table->kept[i];
		else if (event_is_device_side(table, row))
			lists->work[lists->work_count++] = table->kept[i];
	}
	return ops_sort_rows(lists->annotations, lists->annotation_count, annotated_kernels_before, table->rows) &&
	       ops_sort_rows(lists->work, lists->work_count, annotated_kernels_before, table->rows);
}

static void annotated_kernels_release(struct lists *lists)
{
	ops_free(lists->annotations);
	ops_free(lists->work);
	ops_free(lists->label);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

struct labelled {
	struct ops_string name;
	int64_t rows;
	int64_t dur_ns;
};

OPS_ORDER(annotated_kernels_compare, struct labelled, OPS_BY_TEXT(name))

/* Sums by name. Merges the items in place. */
static size_t annotated_kernels_sum_up(const struct lists *lists, struct labelled *items)
{
	size_t count = 0;

	for (size_t i = 0; i < lists->work_count; i++) {
		const struct event_table *table = lists->table;
		struct ops_string none = {"", 0};

		items[i] = (struct labelled){
			lists->label[i] == OPS_NONE ? none : event_name(table, &table->rows[lists->label[i]]), 1,
			table->rows[lists->work[i]].dur_ns};
	}
	if (lists->work_count)
		qsort(items, lists->work_count, sizeof(*items), annotated_kernels_compare);
	for (size_t i = 0; i < lists->work_count; i++) {
		if (count && !annotated_kernels_compare(&items[i], &items[count - 1])) {
			items[count - 1].rows++;
			items[count - 1].dur_ns = ops_sum(items[count - 1].dur_ns, items[i].dur_ns);
		} else {
			items[count++] = items[i];
		}
	}
	return count;
}

static bool annotated_kernels_write_rank(struct ops_json_writer *json, const struct lists *lists)
{
	struct labelled *items = ops_alloc_zeroed(lists->work_count + 1, sizeof(*items));
	size_t count;

	if (!items)
		return false;
	count = annotated_kernels_sum_up(lists, items);
	analysis_rank_key(json, lists->table->rank);
	ops_json_open(json, '{');
	ops_json_member(json, "rows", (int64_t)lists->work_count);
	for (int times = 0; times < 2; times++) {
		ops_json_member_open(json, times ? "dur_by_annotation" : "rows_by_annotation", '{');
		for (size_t i = 0; i < count; i++) {
			ops_json_key_of(json, items[i].name.bytes, items[i].name.size);
			if (times)
				ops_json_us(json, items[i].dur_ns);
			else
				ops_json_integer(json, items[i].rows);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, '}');
	ops_free(items);
	return true;
}

static void put_work(struct analysis_run *run, const struct lists *lists)
{
	const struct event_table *table = lists->table;

	for (size_t i = 0; i < lists->work_count; i++)
		event_list_put(&run->result.table, &run->events, table, &table->rows[lists->work[i]],
		               lists->label[i] == OPS_NONE ? (struct ops_string){"", 0}
		                                           : event_name(table, &table->rows[lists->label[i]]));
}

static bool is_annotated(const struct event_table *table)
{
	for (size_t row = 0; row < table->count; row++)
		if (table->rows[row].kind == OPS_EVENT_GPU_USER_ANNOTATION)
			return true;
	return false;
}

/* The result is null if there are no annotations on devices. */
enum ops_code analysis_annotated_kernels(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	bool annotated = false, kernels = analysis_bool(run, "kernels");
	enum ops_code code = run->code;

	if (code)
		return code;
	if (kernels)
		result_declare(&run->result.table, &table_events, EVENT_LIST_ANNOTATED);
	ops_json_open(json, '{');
	for (size_t i = 0; !code && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);
		struct lists lists;
		bool done;

		if (!table)
			return analysis_failed(run);
		annotated |= is_annotated(table);
		done = annotated_kernels_collect(&lists, table) && label_all(&lists);
		if (done && kernels)
			put_work(run, &lists);
		else
			done = done && annotated_kernels_write_rank(json, &lists);
		if (!done)
			code = ops_fault_memory(run->error);
		annotated_kernels_release(&lists);
	}
	ops_json_close(json, '}');
	if (!annotated)
		run->result.value.size = 0;
	return code;
}
