/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python stack of every event: the Python functions around it in the tree, or the stack that the file has for it.
 *
 * Events in a backward node have the stack of the forward operator that created the node, found by the arrow between
 * the two. (torch takes the first operator of the same sequence number, which can be another one, since earlier
 * operators that created no node have the same number.) A node whose forward operator was not recorded keeps its own
 * stack; one that never had any, such as AccumulateGrad, has none, as with torch.
 */
#include <opstrobe/internal/analyze.h>

#include <string.h>

#include "analyze/frames.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "base/text.h"
#include "derive/backward.h"

struct ops_stacks {
	struct ops_frames frames;
	uint32_t *of_row; /* chain by row */
};

/* Frames that torch omits from stacks, by file and function: the entry of the backward pass, and torch's own tests. */
static bool left_out(struct ops_string frame)
{
	static const char *const words[][2] = {
		{"autograd/__init__", "_make_grads"},
		{"autograd/__init__", "backward"},
		{"torch/tensor", "backward"},
		{"_internal/common_utils", "prof_callable"},
		{"_internal/common_utils", "prof_func_call"},
		{"_internal/common_utils", "prof_meth_call"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (ops_string_contains(frame, words[i][0]) && ops_string_contains(frame, words[i][1]))
			return true;
	return false;
}

/* State of the walk over the rows. */
struct walk {
	struct ops_stacks *stacks;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const uint32_t *forward; /* ops_forward_rows */
	uint32_t *callers; /* ops_python_callers */
	uint32_t *inside;  /* by row of a Python function: its chain, including itself */
	uint8_t *backward; /* bits by row: runs in a backward node */
	uint8_t *skipped;  /* bits by string: omitted names, as far as they are known */
	uint8_t *known;
	uint32_t *texts;   /* by string: the chain of a `call_stack`; OPS_NONE: not computed yet */
};

static bool stack_is_left_out(struct walk *walk, uint32_t name)
{
	if (!ops_bit(walk->known, name)) {
		ops_bit_set(walk->known, name);
		if (left_out(ops_trace_string(walk->trace, name)))
			ops_bit_set(walk->skipped, name);
	}
	return ops_bit(walk->skipped, name);
}

/* Returns the chain of Python functions around a row: the one in its file, else the functions that were open when it
 * began. */
static uint32_t chain_around(struct walk *walk, uint32_t row)
{
	const struct ops_events *events = walk->events;
	uint32_t *chain, text;

	if (!walk->texts || events->call_stack[row] == OPS_NONE)
		return walk->callers[row] == OPS_NONE ? 0 : walk->inside[walk->callers[row]];
	text = events->call_stack[row];
	chain = &walk->texts[text];
	if (*chain == OPS_NONE)
		*chain = ops_frames_add_text(&walk->stacks->frames, 0, ops_trace_string(walk->trace, text), left_out);
	return *chain;
}

/* Returns the stack of a backward node that is called from `around`. */
static uint32_t stack_of_node(const struct walk *walk, uint32_t row, uint32_t around)
{
	if (walk->forward[row] != OPS_NONE)
		return walk->stacks->of_row[walk->forward[row]];
	return walk->events->sequence_nr[row] >= 0 ? around : 0;
}

/* Returns false if out of memory. */
static bool stacks_add_row(struct walk *walk, uint32_t row)
{
	const struct ops_events *events = walk->events;
	uint32_t parent = events->parent[row], around = chain_around(walk, row), stack = around;
	bool is_node = walk->forward[row] != OPS_ROW_PLAIN;
	bool in_node = parent != OPS_NONE && ops_bit(walk->backward, parent);

	if (is_node)
		stack = stack_of_node(walk, row, around);
	else if (in_node)
		stack = walk->stacks->of_row[parent];
	if (is_node || in_node)
		ops_bit_set(walk->backward, row);
	walk->stacks->of_row[row] = stack;
	if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && !stack_is_left_out(walk, events->name[row]))
		around = ops_frames_add(&walk->stacks->frames, around, events->name[row]);
	walk->inside[row] = around;
	return around != OPS_NONE && stack != OPS_NONE;
}

static bool stacks_add_rows(struct ops_stacks *stacks, const struct ops_trace *trace)
{
	struct walk walk = {.stacks = stacks, .trace = trace, .events = ops_trace_events(trace)};
	size_t count = walk.events->count, names = ops_trace_string_count(trace);
	bool ok;

	walk.forward = ops_forward_rows(trace);
	walk.callers = ops_python_callers(trace);
	walk.inside = ops_realloc_array(NULL, count + 1, sizeof(*walk.inside));
	walk.backward = ops_alloc_zeroed(count / 8 + 1, 1);
	walk.skipped = ops_alloc_zeroed(names / 8 + 1, 1);
	walk.known = ops_alloc_zeroed(names / 8 + 1, 1);
	ok = walk.forward && walk.callers && walk.inside && walk.backward && walk.skipped && walk.known;
	if (walk.events->call_stack) {
		walk.texts = ops_alloc_none(names + 1);
		ok = ok && walk.texts;
	}
	for (size_t row = 0; ok && row < count; row++)
		ok = stacks_add_row(&walk, (uint32_t)row);
	ops_free(walk.callers);
	ops_free(walk.inside);
	ops_free(walk.backward);
	ops_free(walk.skipped);
	ops_free(walk.known);
	ops_free(walk.texts);
	return ok;
}

enum ops_code ops_stacks_new(const struct ops_trace *trace, struct ops_stacks **ret_stacks, struct ops_error *error)
{
	struct ops_stacks *stacks = ops_alloc_zeroed(1, sizeof(*stacks));

	if (stacks) {
		stacks->of_row = ops_realloc_array(NULL, ops_trace_events(trace)->count + 1, sizeof(*stacks->of_row));
		if (ops_frames_init(&stacks->frames, trace) && stacks->of_row && stacks_add_rows(stacks, trace)) {
			*ret_stacks = stacks;
			return OPS_OK;
		}
	}
	ops_stacks_free(stacks);
	return ops_fault_memory(error);
}

void ops_stacks_free(struct ops_stacks *stacks)
{
	if (!stacks)
		return;
	ops_frames_release(&stacks->frames);
	ops_free(stacks->of_row);
	ops_free(stacks);
}

uint32_t ops_stack_of(const struct ops_stacks *stacks, uint32_t ref)
{
	return ref & OPS_MEMORY_REF ? 0 : stacks->of_row[ref];
}

const struct ops_frame *ops_stack_frames(const struct ops_stacks *stacks, size_t *ret_count)
{
	*ret_count = stacks->frames.frames.count;
	return stacks->frames.frames.items;
}

struct ops_string ops_stack_text(const struct ops_stacks *stacks, uint32_t name)
{
	return ops_frames_text(&stacks->frames, name);
}

size_t ops_stack_name_count(const struct ops_stacks *stacks)
{
	return ops_frames_name_count(&stacks->frames);
}

bool ops_trace_has_stacks(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);

	return events->call_stack || (events->count > 0 && memchr(events->kind, OPS_EVENT_PYTHON_FUNCTION, events->count));
}

/* --- sources of stacks -------------------------------------------------------------------------------------------- */

typedef OPS_ARRAY(uint32_t) row_list;

static bool push_row(row_list *rows, uint32_t row)
{
	return OPS_ARRAY_APPEND(rows, row);
}

/* Marks the rows, the rows around them, the forward operators of backward nodes among these, the rows around those,
 * … */
static bool mark_rows(const struct ops_trace *trace, row_list *left, uint8_t *marks)
{
	const struct ops_events *events = ops_trace_events(trace);
	const uint32_t *forward = ops_forward_rows(trace);
	uint32_t *callers = ops_python_callers(trace);
	bool ok = forward && callers;

	while (ok && left->count > 0) {
		uint32_t row = left->items[--left->count];

		if (row >= events->count || ops_bit(marks, row)) /* OPS_NONE is a large number */
			continue;
		ops_bit_set(marks, row);
		ok = push_row(left, events->parent[row]) && push_row(left, callers[row]) && push_row(left, forward[row]);
	}
	ops_free(callers);
	return ok;
}

enum ops_code ops_stack_rows(const struct ops_trace *trace, const uint32_t *refs, size_t count, uint32_t **ret_rows,
                             size_t *ret_count, struct ops_error *error)
{
	size_t events = ops_trace_events(trace)->count;
	uint8_t *marks = ops_alloc_zeroed(events / 8 + 1, 1);
	row_list rows = {0};
	bool ok = marks && OPS_ARRAY_RESERVE(&rows, count + 1);

	for (size_t i = 0; ok && i < count; i++)
		ok = push_row(&rows, refs[i]); /* references to memory records are larger than any row */
	ok = ok && mark_rows(trace, &rows, marks);
	for (size_t row = 0; ok && row < events; row++)
		if (ops_bit(marks, row))
			ok = push_row(&rows, (uint32_t)row);
	ops_free(marks);
	if (!ok) {
		OPS_ARRAY_RELEASE(&rows);
		return ops_fault_memory(error);
	}
	*ret_rows = rows.items;
	*ret_count = rows.count;
	return OPS_OK;
}

/* --- innermost frames --------------------------------------------------------------------------------------------- */

/* Collects the names of a chain's innermost frames, at most `most`, innermost first. */
static size_t stacks_collect(const struct ops_stacks *stacks, uint32_t chain, size_t most, uint32_t *ret_names)
{
	const struct ops_frame *frames = stacks->frames.frames.items;
	size_t count = 0;

	for (; chain != 0 && count < most; chain = frames[chain].caller)
		ret_names[count++] = frames[chain].name;
	return count;
}

/* Returns the number of frames of the longest chain; `depths` has one number per chain. */
static uint32_t longest(const struct ops_stacks *stacks, uint32_t *depths)
{
	const struct ops_frame *frames = stacks->frames.frames.items;
	uint32_t most = 0;

	depths[0] = 0;
	for (size_t i = 1; i < stacks->frames.frames.count; i++) {
		depths[i] = depths[frames[i].caller] + 1;
		most = depths[i] > most ? depths[i] : most;
	}
	return most;
}

uint32_t *ops_stack_groups(const struct ops_stacks *stacks, uint32_t innermost)
{
	size_t count = stacks->frames.frames.count;
	uint32_t *groups = ops_realloc_array(NULL, count, sizeof(*groups));
	uint32_t most = groups ? longest(stacks, groups) : 0;
	bool whole = innermost >= most;
	uint32_t *names = ops_realloc_array(NULL, (whole ? 0 : (size_t)innermost) + 1, sizeof(*names));
	struct ops_intern heads = {0};
	bool ok = groups && names;

	for (size_t i = 0; ok && i < count; i++) {
		groups[i] = (uint32_t)i;
		if (!whole)
			groups[i] = ops_intern_add(&heads, names,
			                           stacks_collect(stacks, (uint32_t)i, innermost, names) * sizeof(*names));
		ok = groups[i] != OPS_NONE;
	}
	ops_intern_release(&heads);
	ops_free(names);
	if (ok)
		return groups;
	ops_free(groups);
	return NULL;
}
