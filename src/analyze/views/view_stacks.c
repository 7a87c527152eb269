/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks (6): from how many places each operator was called, by the text that files have for it.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/views/view_map.h"
#include "analyze/views/views.h"
#include "base/alloc.h"

struct name {
	struct ops_string text;
	uint64_t stacks;
};

struct stacks {
	struct view_map pairs; /* name and stack */
	struct view_map names; /* → index below */
	OPS_ARRAY(struct name) list;
};

static bool add(struct ops_views *views, struct stacks *stacks, uint32_t row)
{
	uint32_t name = views->events->name[row];
	size_t before = stacks->pairs.count;
	uint32_t *at;

	if (!view_map_add(&stacks->pairs, (uint64_t)name << 32 | views->events->call_stack[row], 0))
		return false;
	if (stacks->pairs.count == before)
		return true;
	at = view_map_slot(&stacks->names, name, (uint32_t)stacks->list.count);
	if (!at)
		return false;
	if (*at == stacks->list.count) {
		struct name *made = OPS_ARRAY_PUSH(&stacks->list);

		if (!made)
			return false;
		*made = (struct name){view_row_name(views, row), 0};
	}
	stacks->list.items[*at].stacks++;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct name *left = a, *right = b;
	size_t shorter = left->text.size < right->text.size ? left->text.size : right->text.size;
	int order = memcmp(left->text.bytes, right->text.bytes, shorter);

	return order ? order : (left->text.size > right->text.size) - (left->text.size < right->text.size);
}

static void write(const struct stacks *stacks, struct ops_json_writer *json)
{
	ops_json_key(json, "call_stacks");
	ops_json_open(json, '{');
	ops_json_key(json, "operators_with_stacks");
	ops_json_integer(json, (int64_t)stacks->list.count);
	ops_json_key(json, "distinct_stacks");
	ops_json_integer(json, (int64_t)stacks->pairs.count);
	ops_json_key(json, "per_operator");
	ops_json_open(json, '{');
	for (size_t i = 0; i < stacks->list.count; i++) {
		ops_json_key_of(json, stacks->list.items[i].text.bytes, stacks->list.items[i].text.size);
		ops_json_integer(json, (int64_t)stacks->list.items[i].stacks);
	}
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

bool view_write_call_stacks(struct ops_views *views, struct ops_json_writer *json)
{
	struct stacks stacks = {0};
	bool done = true;

	for (size_t i = 0; done && views->events->call_stack && i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->kept == i && view_is_operator(views, node) && views->events->call_stack[node->row] != OPS_NONE &&
		    ops_trace_string(views->trace, views->events->call_stack[node->row]).size)
			done = add(views, &stacks, node->row);
	}
	if (done && stacks.list.count)
		qsort(stacks.list.items, stacks.list.count, sizeof(*stacks.list.items), compare);
	if (done)
		write(&stacks, json);
	view_map_release(&stacks.pairs);
	view_map_release(&stacks.names);
	OPS_ARRAY_RELEASE(&stacks.list);
	return done;
}
