/* SPDX-License-Identifier: Apache-2.0
 *
 * See execution_nodes.h.
 */
#include "read/execution_nodes.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"

/* --- inputs --------------------------------------------------------------------------------------------------------- */

enum input_kind { INPUT_OTHER, INPUT_TENSOR, INPUT_TENSORS, INPUT_SCALAR, INPUT_SCALARS };

static bool execution_nodes_is_scalar(struct ops_string type)
{
	static const char *const names[] = {"Int", "Double", "Bool", NULL};

	return ops_string_starts_any(type, names);
}

/* For a type with its quotes. */
static enum input_kind kind_of_input(struct ops_string type)
{
	static const char *const lists[] = {"\"GenericList[", "\"Tuple["};

	if (ops_string_starts(type, "\"Tensor("))
		return INPUT_TENSOR;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t size = strlen(lists[i]);

		if (ops_string_starts(type, lists[i])) {
			struct ops_string first = {type.bytes + size, type.size - size};

			return ops_string_starts(first, "Tensor(") ? INPUT_TENSORS : execution_nodes_is_scalar(first) ? INPUT_SCALARS : INPUT_OTHER;
		}
	}
	return type.size > 2 && execution_nodes_is_scalar((struct ops_string){type.bytes + 1, type.size - 1}) ? INPUT_SCALAR : INPUT_OTHER;
}

static void put_input_type(struct ops_buffer *out, struct ops_string type)
{
	static const char *const names[] = {"\"\"", "", "\"TensorList\"", "\"Scalar\"", "\"ScalarList\""};
	enum input_kind kind = kind_of_input(type);
	size_t skipped = strlen("\"Tensor(");

	ops_buffer_append_text(out, names[kind]);
	if (kind == INPUT_TENSOR && ops_string_ends(type, ")\"")) {
		ops_buffer_append_text(out, "\"");
		ops_buffer_append(out, type.bytes + skipped, type.size - skipped - 2);
		ops_buffer_append_text(out, "\"");
	} else if (kind == INPUT_TENSOR) {
		ops_buffer_append_text(out, "\"\"");
	}
}

/* Writes sizes or strides, which only tensors have. */
static void put_input_dims(struct ops_buffer *out, struct ops_string type, struct ops_string dims)
{
	enum input_kind kind = kind_of_input(type);

	if (kind == INPUT_TENSOR || kind == INPUT_TENSORS)
		ops_buffer_append(out, dims.bytes, dims.size);
	else
		ops_buffer_append_text(out, "[]");
}

/* Writes a scalar as torch prints it: JSON's true becomes True. */
static void execution_nodes_put_scalar(struct ops_buffer *out, struct ops_string value)
{
	if (ops_string_is(value, "true") || ops_string_is(value, "false"))
		ops_buffer_append_text(out, *value.bytes == 't' ? "True" : "False");
	else if (value.size && strchr("-0123456789", *value.bytes))
		ops_buffer_append(out, value.bytes, value.size);
}

static void put_input_value(struct ops_buffer *out, struct ops_string type, struct ops_string value)
{
	enum input_kind kind = kind_of_input(type);
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size);
	struct ops_string item;
	bool more = false;

	ops_buffer_append_text(out, "\"");
	if (kind == INPUT_SCALAR)
		execution_nodes_put_scalar(out, value);
	if (kind == INPUT_SCALARS && value.bytes[0] == '[') {
		ops_buffer_append_text(out, "[");
		for (; ops_json_next_element(&walk, &item); more = true) {
			ops_buffer_append_text(out, more ? ", " : "");
			execution_nodes_put_scalar(out, item);
		}
		ops_buffer_append_text(out, "]");
	}
	ops_buffer_append_text(out, "\"");
}

/* Writes one of Kineto's four lists; leaves it out if the file lacks its source. */
static void put_input_list(struct ops_buffer *out, const char *key, struct ops_string types, struct ops_string list,
                           void (*put)(struct ops_buffer *out, struct ops_string type, struct ops_string item))
{
	struct ops_json_walk type_walk = ops_json_walk(types.bytes, types.size), walk = ops_json_walk(list.bytes, list.size);
	struct ops_string type, item;

	if (!types.size || types.bytes[0] != '[' || !list.size || list.bytes[0] != '[')
		return;
	ops_buffer_printf(out, ",\"%s\":[", key);
	for (bool more = false; ops_json_next_element(&type_walk, &type) && ops_json_next_element(&walk, &item); more = true) {
		ops_buffer_append_text(out, more ? "," : "");
		put(out, type, item);
	}
	ops_buffer_append_text(out, "]");
}

static void put_type_of_pair(struct ops_buffer *out, struct ops_string type, struct ops_string item)
{
	(void)item;
	put_input_type(out, type);
}

void execution_put_inputs(struct ops_buffer *out, const struct execution_inputs *inputs)
{
	put_input_list(out, "Input Dims", inputs->types, inputs->shapes, put_input_dims);
	put_input_list(out, "Input type", inputs->types, inputs->types, put_type_of_pair);
	put_input_list(out, "Input Strides", inputs->types, inputs->strides, put_input_dims);
	put_input_list(out, "Concrete Inputs", inputs->types, inputs->values, put_input_value);
}

/* --- order ---------------------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_nodes, struct execution_node, OPS_UP(id))

/* Returns the enclosing node; NULL if the file does not have it. A parent that comes after its node, as in a file with a cycle,
 * is ignored. */
static struct execution_node *execution_nodes_parent_of(struct execution_nodes *nodes, const struct execution_node *node)
{
	uint32_t place = ops_map_find(&nodes->places, node->parent);

	return place != OPS_NONE && &nodes->items.items[place] < node ? &nodes->items.items[place] : NULL;
}

/* A node lasts until the last node inside it has ended. */
static void place_nodes(struct execution_nodes *nodes)
{
	for (size_t i = 0; i < nodes->items.count; i++) {
		nodes->items.items[i].start_ns = (int64_t)i;
		nodes->items.items[i].duration_ns = 1;
	}
	for (size_t i = nodes->items.count; i-- > 0;) {
		const struct execution_node *node = &nodes->items.items[i];
		struct execution_node *parent = execution_nodes_parent_of(nodes, node);

		if (parent && node->start_ns + node->duration_ns > parent->start_ns + parent->duration_ns)
			parent->duration_ns = node->start_ns + node->duration_ns - parent->start_ns;
	}
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static void execution_nodes_put_arrow_end(struct ops_buffer *out, const char *phase, size_t number, const struct execution_node *node)
{
	ops_buffer_printf(out, ",\n{\"ph\":\"%s\",\"id\":%zu,\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, phase,
	                  number, node->pid, node->tid);
	ops_put_time_member(out, "ts", node->start_ns);
	ops_buffer_append_text(out, "}");
}

static void put_node_row(struct execution_nodes *nodes, const struct execution_node *node, struct ops_buffer *out)
{
	const struct execution_node *parent = execution_nodes_parent_of(nodes, node);

	ops_buffer_printf(out, "%s{\"ph\":\"X\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, nodes->in->events++ ? ",\n" : "", node->pid, node->tid);
	ops_put_time_member(out, "ts", node->start_ns);
	ops_put_time_member(out, "dur", node->duration_ns);
	nodes->put_members(nodes, node, out);
	ops_buffer_append_text(out, "}");
	if (parent && parent->pid != node->pid) { /* device work, and the operator that launched it */
		execution_nodes_put_arrow_end(out, "s", nodes->next, parent);
		execution_nodes_put_arrow_end(out, "f", nodes->next, node);
	}
	if (!nodes->has_times)
		ops_builder_notes(nodes->in->builder, OPS_NOTE_NO_TIMES, 1, (uint64_t)(node->text.bytes - nodes->bytes));
}

static enum ops_code execution_nodes_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct execution_nodes *nodes = (struct execution_nodes *)(void *)transcoder;

	if (!nodes->next && !nodes->has_ended)
		ops_buffer_append_text(text, "{\"traceEvents\":[");
	while (nodes->next < nodes->items.count && !text->failed && text->size < OPS_TRANSCODED_BYTES)
		put_node_row(nodes, &nodes->items.items[nodes->next++], text);
	if (nodes->next == nodes->items.count && !nodes->has_ended) {
		ops_buffer_append_text(text, "]}");
		nodes->has_ended = true;
	}
	return OPS_OK;
}

enum ops_code execution_nodes_read(struct execution_nodes *nodes, struct ops_trace **ret_trace)
{
	bool done = true;
	enum ops_code code;

	if (nodes->items.count >= OPS_NONE)
		return ops_fault(nodes->in->error, OPS_CORRUPT, "more nodes than can be numbered");
	nodes->transcoder.next = execution_nodes_next;
	OPS_ARRAY_SORT(&nodes->items, compare_nodes);
	for (size_t i = 0; i < nodes->items.count && done; i++)
		done = ops_map_add(&nodes->places, nodes->items.items[i].id, (uint32_t)i);
	if (done && !nodes->has_times)
		place_nodes(nodes);
	code = done ? ops_read_transcoded(nodes->in, &nodes->transcoder, ret_trace) : ops_fault_memory(nodes->in->error);
	ops_map_release(&nodes->places);
	return code;
}
