/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a trace: which event encloses which on its track, which rows are folded into their parent, and self times.
 * Three passes over rows in order; the parent column itself is the stack.
 */
#include "base/alloc.h"
#include "trace/table.h"

#define OUTSIDE (-1) /* temporary value in `self_ns`: the row is not in the tree */

/* Only names of operators are bookkeeping; a user's event with the same name is kept. Sessions and their marks are not events of
 * the program. */
static bool is_hidden(const struct ops_columns *c, size_t row)
{
	return c->kind[row] == OPS_EVENT_TRACE || c->kind[row] == OPS_EVENT_MARK ||
	       (c->name[row] - 1 < OPS_HIDDEN_NAME_COUNT && c->kind[row] == OPS_EVENT_CPU_OP);
}

/* Finds parents and hidden rows, and for now counts children in `self_ns`. `top` is the innermost open row of each track. A row
 * that partly overlaps the rows below it closes them, for later rows too. Returns whether there was such a row. */
static bool find_parents(const struct ops_columns *c, const struct ops_tree *tree, uint32_t *top)
{
	bool overlap = false;

	for (size_t row = 0; row < c->count; row++) {
		int64_t start_ns = c->start_ns[row];
		int64_t end_ns = c->end_ns[row];
		uint16_t flags = tree->flags[row] & (uint16_t)~(OPS_EVENT_HIDDEN | OPS_EVENT_FOLDED);
		uint32_t parent;

		if (is_hidden(c, row))
			flags |= OPS_EVENT_HIDDEN;
		tree->flags[row] = flags;
		if ((flags & OPS_EVENT_HIDDEN) || (c->flags[row] & OPS_EVENT_ASYNC) || c->kind[row] == OPS_EVENT_CPU_INSTANT) {
			tree->parent[row] = OPS_NONE;
			tree->self_ns[row] = OUTSIDE;
			continue;
		}
		parent = top[c->track[row]];
		while (parent != OPS_NONE && (start_ns >= c->end_ns[parent] || end_ns > c->end_ns[parent])) {
			overlap |= start_ns < c->end_ns[parent];
			parent = tree->parent[parent];
		}
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

/* Returns the part of a child's time that no earlier child of its parent covers. Coroutines that take turns on a thread leave
 * ranges that overlap in part. `covered` has, for each row, the end of its children so far; NULL if no events overlap. */
static int64_t share_of_parent(const struct ops_columns *c, size_t row, uint32_t parent, int64_t *covered)
{
	int64_t start_ns = c->start_ns[row];

	if (covered && start_ns < covered[parent])
		start_ns = covered[parent];
	if (c->end_ns[row] <= start_ns)
		return 0;
	if (covered)
		covered[parent] = c->end_ns[row];
	return time_between(start_ns, c->end_ns[row]);
}

/* Gives the children of folded rows to the remaining row, and subtracts every child's time from its parent's. Parents come before
 * their children, so theirs are final already. */
static void tree_finalize(const struct ops_columns *c, const struct ops_tree *tree, int64_t *covered)
{
	for (size_t row = 0; row < c->count; row++) {
		uint32_t parent = tree->parent[row];

		if (covered)
			covered[row] = c->start_ns[row];
		if (parent != OPS_NONE && (tree->flags[parent] & OPS_EVENT_FOLDED))
			tree->parent[row] = parent = tree->parent[parent];
		if (tree->self_ns[row] == OUTSIDE || (tree->flags[row] & OPS_EVENT_FOLDED)) {
			tree->self_ns[row] = 0;
			continue;
		}
		tree->self_ns[row] = time_between(c->start_ns[row], c->end_ns[row]);
		if (parent != OPS_NONE) {
			int64_t share_ns = share_of_parent(c, row, parent, covered);

			tree->self_ns[parent] -= share_ns < tree->self_ns[parent] ? share_ns : tree->self_ns[parent];
		}
	}
}

bool ops_tree_build(const struct ops_trace *trace, const struct ops_tree *tree)
{
	uint32_t *top = ops_realloc_array(NULL, trace->tracks.count + 1, sizeof(*top));
	int64_t *covered = NULL;
	bool overlap;

	if (!top)
		return false;
	for (size_t track = 0; track < trace->tracks.count; track++)
		top[track] = OPS_NONE;
	overlap = find_parents(&trace->columns, tree, top);
	ops_free(top);
	if (overlap && !(covered = ops_realloc_array(NULL, trace->columns.count, sizeof(*covered))))
		return false;
	mark_folded(&trace->columns, tree);
	tree_finalize(&trace->columns, tree, covered);
	ops_free(covered);
	return true;
}
