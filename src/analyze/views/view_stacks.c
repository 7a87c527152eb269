/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks: the number of different places from which each operator was called. "call_stacks" counts what the
 * TensorBoard plugin counts: the text that a file has for an operator, which torch no longer writes, or in recordings
 * of Opstrobe the Python functions around it. "python_stacks" counts the latter in every trace that has them.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/frames.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"

struct name {
	struct ops_string text;
	uint64_t stacks;
};

struct stacks {
	struct ops_map pairs; /* pairs of name and stack */
	struct ops_map names; /* from name to the index below */
	OPS_ARRAY(struct name) list;
};

/* Returns the chain of Python functions around each row. Returns NULL if out of memory. */
static uint32_t *number_callers(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t *of_row = ops_python_callers(trace);
	uint32_t *inside = ops_realloc_array(NULL, events->count + 1, sizeof(*inside)); /* by row of a call: its own chain */
	struct ops_frames frames = {0};
	bool ok = ops_frames_init(&frames, trace) && of_row && inside;

	for (size_t row = 0; ok && row < events->count; row++) {
		uint32_t caller = of_row[row], around = caller == OPS_NONE ? 0 : inside[caller];

		inside[row] = around;
		if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			inside[row] = ops_frames_add(&frames, around, events->name[row]);
		ok = inside[row] != OPS_NONE;
		of_row[row] = around ? around : OPS_NONE;
	}
	ops_frames_release(&frames);
	ops_free(inside);
	if (ok)
		return of_row;
	ops_free(of_row);
	return NULL;
}

/* Returns the non-empty texts in a file. Returns NULL if out of memory. */
static uint32_t *number_texts(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t *of_row = ops_realloc_array(NULL, events->count + 1, sizeof(*of_row));

	for (size_t row = 0; of_row && row < events->count; row++) {
		of_row[row] = events->call_stack ? events->call_stack[row] : OPS_NONE;
		if (of_row[row] != OPS_NONE && ops_trace_string(trace, of_row[row]).size == 0)
			of_row[row] = OPS_NONE;
	}
	return of_row;
}

static bool view_stacks_add(const struct ops_views *views, struct stacks *stacks, uint32_t row, uint32_t stack)
{
	uint32_t name = views->events->name[row];
	size_t before = stacks->pairs.count;
	struct name *entry;

	if (!ops_map_add(&stacks->pairs, (uint64_t)name << 32 | stack, 0))
		return false;
	if (stacks->pairs.count == before)
		return true;
	entry = OPS_ARRAY_AT(&stacks->list, ops_map_number(&stacks->names, name));
	if (!entry)
		return false;
	entry->text = view_row_name(views, row);
	entry->stacks++;
	return true;
}

OPS_ORDER(view_stacks_compare, struct name, OPS_BY_TEXT(text))

static void write(const struct stacks *stacks, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_member(json, "operators_with_stacks", (int64_t)stacks->list.count);
	ops_json_member(json, "distinct_stacks", (int64_t)stacks->pairs.count);
	ops_json_member_open(json, "per_operator", '{');
	for (size_t i = 0; i < stacks->list.count; i++) {
		ops_json_key_of(json, stacks->list.items[i].text.bytes, stacks->list.items[i].text.size);
		ops_json_integer(json, (int64_t)stacks->list.items[i].stacks);
	}
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

/* Counts by the number of each row's stack; OPS_NONE: none. */
static bool view_stacks_count(const struct ops_views *views, const uint32_t *of_row, struct ops_json_writer *json)
{
	struct stacks stacks = {.list = {0}};
	bool done = true;

	for (size_t i = 0; done && i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->kept == i && view_is_operator(views, node) && of_row[node->row] != OPS_NONE)
			done = view_stacks_add(views, &stacks, node->row, of_row[node->row]);
	}
	if (done) {
		OPS_ARRAY_SORT(&stacks.list, view_stacks_compare);
		write(&stacks, json);
	}
	ops_map_release(&stacks.pairs);
	ops_map_release(&stacks.names);
	OPS_ARRAY_RELEASE(&stacks.list);
	return done;
}

bool view_write_call_stacks(const struct ops_views *views, struct ops_json_writer *json)
{
	uint32_t *callers = number_callers(views->trace), *texts = NULL;
	size_t functions;
	bool done;

	ops_trace_functions(views->trace, &functions); /* only in recordings */
	texts = functions ? NULL : number_texts(views->trace);
	done = callers && (functions || texts);
	ops_json_key(json, "call_stacks");
	done = done && view_stacks_count(views, functions ? callers : texts, json);
	ops_json_key(json, "python_stacks");
	done = done && view_stacks_count(views, callers, json);
	ops_free(callers);
	ops_free(texts);
	return done;
}
