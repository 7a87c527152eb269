/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a trace: which event encloses which on its track, which rows are folded into their parent, and self times.
 * Three passes over rows in order; the parent column itself is the stack.
 */
#include "base/alloc.h"
#include "trace/names.h"
#include "trace/nests.h"
#include "trace/table.h"

#define OUTSIDE (-1) /* temporary value in `self_ns`: the row is not in the tree */

/* Only names of operators are bookkeeping; a user's event with the same name is kept. Sessions and their marks are not events of
 * the program. */
static bool is_hidden(const struct ops_columns *c, size_t row)
{
	return c->kind[row] == OPS_EVENT_TRACE || c->kind[row] == OPS_EVENT_MARK ||
	       (c->name[row] - 1 < OPS_HIDDEN_NAME_COUNT && c->kind[row] == OPS_EVENT_CPU_OP);
}

/* Returns true for a row that only marks a step in which functions begin and end: one that begins in a function and ends after it. The
 * function remains around what runs in it. */
static bool is_mark_of_step(const struct ops_trace *trace, size_t row, uint32_t closed)
{
	const struct ops_columns *c = &trace->columns;

	return c->kind[closed] == OPS_EVENT_PYTHON_FUNCTION && c->kind[row] == OPS_EVENT_USER_ANNOTATION &&
	       ops_string_starts(ops_trace_string(trace, c->name[row]), OPS_STEP_PREFIX);
}

/* Finds parents and hidden rows, and for now counts children in `self_ns`. `top` is the innermost open row of each track. A row
 * that partly overlaps the rows below it closes them, for later rows too. Returns whether there was such a row. */
static bool find_parents(const struct ops_trace *trace, const struct ops_tree *tree, uint32_t *top)
{
	const struct ops_columns *c = &trace->columns;
	bool overlap = false;

	for (size_t row = 0; row < c->count; row++) {
		int64_t start_ns = c->start_ns[row];
		int64_t end_ns = c->end_ns[row];
		uint16_t flags = tree->flags[row] & (uint16_t)~(OPS_EVENT_HIDDEN | OPS_EVENT_FOLDED);
		uint32_t parent, closed = OPS_NONE;

		if (is_hidden(c, row))
			flags |= OPS_EVENT_HIDDEN;
		tree->flags[row] = flags;
		tree->parent[row] = OPS_NONE;
		tree->self_ns[row] = OUTSIDE;
		if (!ops_row_nests(flags | (c->flags[row] & OPS_EVENT_ASYNC), c->kind[row]))
			continue;
		parent = top[c->track[row]];
		while (parent != OPS_NONE && (start_ns >= c->end_ns[parent] || end_ns > c->end_ns[parent])) {
			closed = start_ns < c->end_ns[parent] ? parent : closed;
			parent = tree->parent[parent];
		}
		if (closed != OPS_NONE && is_mark_of_step(trace, row, closed))
			continue;
		overlap |= closed != OPS_NONE;
		if (parent != OPS_NONE)
			tree->self_ns[parent]++;
		tree->parent[row] = parent;
		tree->self_ns[row] = 0;
		top[c->track[row]] = (uint32_t)row;
	}
	return overlap;
}

/* An operator that is the only child of an operator of the same name (a redispatch) is folded into it. Folding changes neither
 * the names nor the numbers of children on which other rows depend, so one pass finds all. Recursion of a user's ranges and
 * functions is not folded. */
static void mark_folded(const struct ops_columns *c, const struct ops_tree *tree)
{
	for (size_t row = 0; row < c->count; row++) {
		uint32_t parent = tree->parent[row];

		if (parent != OPS_NONE && c->name[row] == c->name[parent] && tree->self_ns[parent] == 1 &&
		    c->kind[row] == OPS_EVENT_CPU_OP && c->kind[parent] == OPS_EVENT_CPU_OP)
			tree->flags[row] |= OPS_EVENT_FOLDED;
	}
}

/* Saturated at INT64_MAX: times of a file may be further apart than that. */
static int64_t time_between(int64_t start_ns, int64_t end_ns)
{
	uint64_t time_ns = (uint64_t)end_ns - (uint64_t)start_ns;

	return time_ns > INT64_MAX ? INT64_MAX : (int64_t)time_ns;
}

/* Finds where each row ends that a later row closes: from there on, its time is that of the later row, which ends after it. So no
 * moment of a thread counts in two rows that do not contain each other, as those of coroutines that take turns, or a step and the
 * function in which it begins or ends. `last` has the previous row of each track. */
static void find_ends(const struct ops_columns *c, const struct ops_tree *tree, uint32_t *last, int64_t *ends_ns)
{
	for (size_t row = 0; row < c->count; row++) {
		uint32_t closed = last[c->track[row]];

		ends_ns[row] = c->end_ns[row];
		if (tree->self_ns[row] == OUTSIDE)
			continue;
		for (; closed != tree->parent[row]; closed = tree->parent[closed])
			if (c->start_ns[row] < ends_ns[closed])
				ends_ns[closed] = c->start_ns[row];
		last[c->track[row]] = (uint32_t)row;
	}
}

/* Gives the children of folded rows to the remaining row, and subtracts every child's time from its parent's. Parents come before
 * their children, so theirs are final already. */
static void tree_finalize(const struct ops_columns *c, const struct ops_tree *tree, const int64_t *ends_ns)
{
	for (size_t row = 0; row < c->count; row++) {
		uint32_t parent = tree->parent[row];
		int64_t time_ns;

		if (parent != OPS_NONE && (tree->flags[parent] & OPS_EVENT_FOLDED))
			tree->parent[row] = parent = tree->parent[parent];
		if (tree->self_ns[row] == OUTSIDE || (tree->flags[row] & OPS_EVENT_FOLDED)) {
			tree->self_ns[row] = 0;
			continue;
		}
		time_ns = time_between(c->start_ns[row], ends_ns[row]);
		tree->self_ns[row] = time_ns;
		if (parent != OPS_NONE)
			tree->self_ns[parent] -= time_ns < tree->self_ns[parent] ? time_ns : tree->self_ns[parent];
	}
}

static void forget_rows(uint32_t *of_track, size_t tracks)
{
	for (size_t track = 0; track < tracks; track++)
		of_track[track] = OPS_NONE;
}

bool ops_tree_build(const struct ops_trace *trace, const struct ops_tree *tree)
{
	const struct ops_columns *c = &trace->columns;
	const size_t tracks = trace->tracks.count;
	uint32_t *of_track = ops_realloc_array(NULL, tracks + 1, sizeof(*of_track));
	int64_t *ends_ns = NULL; /* only if rows overlap in part: a column of time and memory */
	bool done = of_track != NULL;

	if (done)
		forget_rows(of_track, tracks);
	if (done && find_parents(trace, tree, of_track)) {
		ends_ns = ops_realloc_array(NULL, c->count, sizeof(*ends_ns));
		done = ends_ns != NULL;
		forget_rows(of_track, tracks);
		if (done)
			find_ends(c, tree, of_track, ends_ns);
	}
	if (done) {
		mark_folded(c, tree);
		tree_finalize(c, tree, ends_ns ? ends_ns : c->end_ns);
	}
	ops_free(of_track);
	ops_free(ends_ns);
	return done;
}
