/* SPDX-License-Identifier: Apache-2.0
 *
 * The call graph of a rank: threads, the nesting of their rows, backward work below its step, device work below
 * its launch, and the sums of every node.
 */
#include "analyze/graph/call_graph.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"

/* --- threads -------------------------------------------------------------------------------------------------------- */

/* A track belongs to a device if all its rows are on streams, or if it is numbered like one (GPU 0, stream 0) and has
 * no host code, since annotations are drawn there as well. */
static void find_stream_tracks(struct call_graph *graph)
{
	const struct event_table *table = graph->table;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &graph->thread_count);

	for (size_t t = 0; t < graph->thread_count; t++)
		graph->threads[t].is_stream = true;
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];
		int64_t number;
		const struct ops_track *track = &tracks[row->track];
		bool zero = (track->pid == 0 && !(track->flags & OPS_TRACK_PID_TEXT)) ||
		            (track->tid == 0 && !(track->flags & OPS_TRACK_TID_TEXT));

		graph->threads[row->track].rows++;
		graph->threads[row->track].has_steps |= ops_step_number(event_name(table, row), &number);
		graph->threads[row->track].has_autograd |= ops_string_starts(event_name(table, row), "autograd::");
		if (row->stream == -1 && row->kind != OPS_EVENT_GPU_USER_ANNOTATION && !zero)
			graph->threads[row->track].is_stream = false;
	}
}

/* Finds the thread that has the steps and the one that runs autograd, where these are unambiguous. */
static void find_main_and_autograd_threads(struct call_graph *graph)
{
	uint32_t mains = 0, autograds = 0;

	for (uint32_t t = 0; t < graph->thread_count; t++)
		if (graph->threads[t].has_steps && !graph->threads[t].is_stream && mains++ == 0)
			graph->main = t;
	if (mains != 1)
		graph->main = OPS_NONE;
	for (uint32_t t = 0; t < graph->thread_count; t++)
		if (t != graph->main && graph->threads[t].has_autograd && !graph->threads[t].is_stream && autograds++ == 0)
			graph->autograd = t;
	if (autograds != 1)
		graph->autograd = OPS_NONE;
}

/* --- nesting -------------------------------------------------------------------------------------------------------- */

static int64_t call_graph_end_of(const struct event_row *row)
{
	return row->dur_ns > 0 ? event_end(row) : row->ts_ns;
}

struct interval {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t at;
};

OPS_ORDER(compare_intervals, struct interval, OPS_UP(start_ns) OPS_DOWN(end_ns) OPS_UP(at))

/* Returns true if a row that started earlier and ends at `end_ns` covers more of the interval than it leaves uncovered.
 * An instant at the very end counts as covered. */
static bool call_graph_is_in(const struct interval *interval, int64_t end_ns)
{
	if (interval->end_ns == interval->start_ns)
		return interval->start_ns <= end_ns;
	return interval->start_ns < end_ns && interval->end_ns - end_ns <= end_ns - interval->start_ns;
}

bool call_nest(const struct event_table *table, uint32_t *list, size_t count, uint32_t *parents)
{
	const struct event_row *rows = table->rows;
	struct interval *intervals = ops_realloc_array(NULL, count + 1, sizeof(*intervals));
	bool sorted = true;

	if (!intervals)
		return false;
	for (size_t i = 0; i < count; i++) {
		intervals[i] = (struct interval){rows[list[i]].ts_ns, call_graph_end_of(&rows[list[i]]), list[i]};
		sorted = sorted && (i == 0 || compare_intervals(&intervals[i - 1], &intervals[i]) < 0);
	}
	if (!sorted)
		qsort(intervals, count, sizeof(*intervals), compare_intervals);
	for (size_t i = 0; i < count; i++) {
		uint32_t open = i ? intervals[i - 1].at : OPS_NONE;

		while (open != OPS_NONE && !call_graph_is_in(&intervals[i], call_graph_end_of(&rows[open])))
			open = parents[open];
		list[i] = intervals[i].at;
		parents[list[i]] = open;
	}
	ops_free(intervals);
	return true;
}

static void call_graph_place(struct call_graph *graph, struct call_thread *thread)
{
	thread->first = graph->order_count;
	graph->order_count += thread->count;
	thread->count = 0;
}

/* Groups the host rows by thread, in order of the table. The main thread comes first, since its rows call rows of other
 * threads. */
static void call_graph_gather(struct call_graph *graph)
{
	const struct event_table *table = graph->table;

	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->stream == -1 && !graph->threads[row->track].is_stream)
			graph->threads[row->track].count++;
	}
	if (graph->main != OPS_NONE)
		call_graph_place(graph, &graph->threads[graph->main]);
	for (uint32_t t = 0; t < graph->thread_count; t++)
		if (t != graph->main)
			call_graph_place(graph, &graph->threads[t]);
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];
		struct call_thread *thread = &graph->threads[row->track];

		if (row->stream == -1 && !thread->is_stream)
			graph->order[thread->first + thread->count++] = table->kept[i];
	}
}

static bool call_graph_nest(struct call_graph *graph)
{
	uint32_t *parents = ops_realloc_array(NULL, graph->table->count + 1, sizeof(*parents));
	bool done = parents != NULL;

	for (size_t t = 0; done && t < graph->thread_count; t++) {
		const struct call_thread *thread = &graph->threads[t];

		done = call_nest(graph->table, graph->order + thread->first, thread->count, parents);
	}
	for (size_t i = 0; done && i < graph->order_count; i++)
		graph->nodes[graph->order[i]].parent = parents[graph->order[i]];
	ops_free(parents);
	return done;
}

/* --- backward ------------------------------------------------------------------------------------------------------- */

/* Attaches each top row of autograd's thread to the innermost row of the main thread that contains it and whose name
 * begins with `name`. Top rows follow one another, so candidates that have ended can be dropped. Returns false if out
 * of memory. */
static bool call_graph_attach_backward(struct call_graph *graph, const char *name)
{
	const struct call_thread *main = &graph->threads[graph->main];
	const struct call_thread *autograd = &graph->threads[graph->autograd];
	OPS_ARRAY(uint32_t) open = {0};
	size_t next = 0;

	if (!OPS_ARRAY_RESERVE(&open, main->count))
		return false;
	for (size_t i = 0; i < autograd->count; i++) {
		uint32_t at = graph->order[autograd->first + i];
		const struct event_row *row = &graph->table->rows[at];

		if (graph->nodes[at].parent != OPS_NONE)
			continue;
		for (; next < main->count; next++) {
			uint32_t candidate = graph->order[main->first + next];

			if (graph->table->rows[candidate].ts_ns > row->ts_ns)
				break;
			if (ops_string_starts(event_name(graph->table, &graph->table->rows[candidate]), name))
				open.items[open.count++] = candidate;
		}
		while (open.count &&
		       call_graph_end_of(&graph->table->rows[open.items[open.count - 1]]) < call_graph_end_of(row))
			open.count--;
		if (open.count)
			graph->nodes[at].parent = open.items[open.count - 1];
	}
	OPS_ARRAY_RELEASE(&open);
	return true;
}

static bool join_backward(struct call_graph *graph)
{
	static const char backward[] = "## backward ##";
	const struct call_thread *main;
	bool named = false;

	if (graph->main == OPS_NONE || graph->autograd == OPS_NONE)
		return true;
	main = &graph->threads[graph->main];
	for (size_t i = 0; i < main->count && !named; i++)
		named = ops_string_starts(event_name(graph->table, &graph->table->rows[graph->order[main->first + i]]), backward);
	return call_graph_attach_backward(graph, named ? backward : "ProfilerStep");
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static void set_depths(struct call_graph *graph)
{
	for (size_t i = 0; i < graph->order_count; i++) {
		struct call_node *node = &graph->nodes[graph->order[i]];

		node->depth = node->parent == OPS_NONE ? 0 : graph->nodes[node->parent].depth + 1;
		node->height = 1;
	}
}

static void call_graph_add_kernels(struct call_node *to, const struct call_node *from)
{
	if (!from->kernels)
		return;
	if (!to->kernels || from->first_kernel_ns < to->first_kernel_ns)
		to->first_kernel_ns = from->first_kernel_ns;
	if (!to->kernels || from->last_kernel_ns > to->last_kernel_ns)
		to->last_kernel_ns = from->last_kernel_ns;
	to->kernels += from->kernels;
	to->kernels_ns = ops_sum(to->kernels_ns, from->kernels_ns);
}

/* Rows on streams are children of their launch. */
static void link_kernels(struct call_graph *graph)
{
	const struct event_table *table = graph->table;

	for (size_t i = 0; i < table->kept_count; i++) {
		uint32_t at = table->kept[i];
		const struct event_row *row = &table->rows[at];
		struct call_node own = {.kernels = 1, .first_kernel_ns = row->ts_ns, .last_kernel_ns = event_end(row),
		                        .kernels_ns = row->dur_ns};
		struct call_node *launch;

		if (row->stream == -1 || row->partner == OPS_NONE || graph->nodes[row->partner].depth < 0)
			continue;
		launch = &graph->nodes[row->partner];
		graph->nodes[at].parent = row->partner;
		graph->nodes[at].depth = launch->depth + 1;
		graph->nodes[at].height = 0;
		call_graph_add_kernels(launch, &own);
		graph->linked++;
	}
}

static void call_graph_sum_up(struct call_graph *graph)
{
	for (size_t i = graph->order_count; i-- > 0;) {
		const struct call_node *node = &graph->nodes[graph->order[i]];
		struct call_node *parent;

		if (node->parent == OPS_NONE)
			continue;
		parent = &graph->nodes[node->parent];
		call_graph_add_kernels(parent, node);
		if (parent->height <= node->height)
			parent->height = node->height + 1;
	}
}

/* --- analysis ------------------------------------------------------------------------------------------------------- */

bool call_graph_init(struct call_graph *graph, const struct event_table *table)
{
	*graph = (struct call_graph){.table = table, .main = OPS_NONE, .autograd = OPS_NONE};
	ops_trace_tracks(table->trace, &graph->thread_count);
	graph->nodes = ops_realloc_array(NULL, table->count + 1, sizeof(*graph->nodes));
	graph->order = ops_realloc_array(NULL, table->kept_count + 1, sizeof(*graph->order));
	graph->threads = ops_alloc_zeroed(graph->thread_count + 1, sizeof(*graph->threads));
	if (!graph->nodes || !graph->order || !graph->threads)
		return false;
	for (size_t i = 0; i < table->count; i++)
		graph->nodes[i] = (struct call_node){.parent = OPS_NONE, .depth = -1, .height = -1};
	find_stream_tracks(graph);
	find_main_and_autograd_threads(graph);
	call_graph_gather(graph);
	if (!call_graph_nest(graph) || !join_backward(graph))
		return false;
	set_depths(graph);
	link_kernels(graph);
	call_graph_sum_up(graph);
	return true;
}

void call_graph_release(struct call_graph *graph)
{
	ops_free(graph->nodes);
	ops_free(graph->order);
	ops_free(graph->threads);
	*graph = (struct call_graph){0};
}

int call_graph_compare_parts(const void *a, const void *b)
{
	const struct call_graph_part *left = a, *right = b;

	if (left->op != right->op)
		return left->op < right->op ? -1 : 1;
	if (left->ts_ns != right->ts_ns)
		return left->ts_ns < right->ts_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}
