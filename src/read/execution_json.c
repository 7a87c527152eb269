/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces of torch (torch.profiler.ExecutionTraceObserver): {"schema": "1.1.1-chakra.0.0.4", "pid": …, "nodes": […]}. A
 * node is an annotation or a call of an operator with its inputs. It has no times (execution_nodes.h).
 *
 *     since schema 1.1   "ctrl_deps": 4, "inputs": {"values": […], "shapes": […], "types": […]}, "attrs": [{"name": "tid", "value": 1}, …]
 *     before             "parent": 4, "inputs": […], "input_shapes": […], "input_types": […], "tid": 1, …
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "read/execution_nodes.h"

#define SCOPE_USER 7 /* at::RecordScope::USER_SCOPE: an annotation */

static enum ops_code execution_json_fault(const struct execution_nodes *nodes, const char *at, const char *why)
{
	return ops_fault(nodes->in->error, OPS_CORRUPT, "byte %zu: %s", (size_t)(at - nodes->bytes), why);
}

/* Returns the value of an attribute, in either version of the schema. */
static bool execution_json_find_attribute(struct ops_string node, const char *name, struct ops_string *ret_value)
{
	struct ops_string list, entry, key;
	struct ops_json_walk walk;

	if (!ops_json_find_member(node, "attrs", &list))
		return ops_json_find_member(node, name, ret_value);
	walk = ops_json_walk(list.bytes, list.size);
	while (list.bytes[0] == '[' && ops_json_next_element(&walk, &entry)) {
		if (entry.bytes[0] != '{' || !ops_json_find_member(entry, "name", &key) || key.size < 2)
			continue;
		if (ops_string_is((struct ops_string){key.bytes + 1, key.size - 2}, name))
			return ops_json_find_member(entry, "value", ret_value);
	}
	return false;
}

static int64_t find_number(struct ops_string node, const char *name, int64_t number)
{
	struct ops_string value;

	if (execution_json_find_attribute(node, name, &value))
		ops_json_parse_integer(value, &number);
	return number;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static struct execution_inputs execution_json_inputs(struct ops_string node)
{
	struct execution_inputs inputs = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
	struct ops_string object;

	if (!ops_json_find_member(node, "inputs", &object))
		return inputs;
	if (object.bytes[0] != '{') {
		inputs.values = object;
		ops_json_find_member(node, "input_shapes", &inputs.shapes);
		ops_json_find_member(node, "input_types", &inputs.types);
		return inputs;
	}
	ops_json_find_member(object, "values", &inputs.values);
	ops_json_find_member(object, "shapes", &inputs.shapes);
	ops_json_find_member(object, "types", &inputs.types);
	ops_json_find_member(object, "strides", &inputs.strides);
	return inputs;
}

/* Uses Kineto's name if there is one. */
static void execution_json_put_attributes(struct ops_string node, struct ops_buffer *out)
{
	static const struct {
		const char *name, *key;
		int64_t least; /* for numbers: smaller values mean "none" */
	} attributes[] = {
		{"rf_id", "Record function id", 1},
		{"seq_id", "Sequence number", 0},
		{"fw_tid", "Fwd thread id", 1},
		{"kernel_backend", "kernel_backend", 0},
		{"kernel_file", "kernel_file", 0},
		{"collective_name", "Collective name", 0},
		{"pg_name", "Process Group Name", 0},
		{"pg_desc", "Process Group Description", 0},
		{"pg_size", "Group size", 0},
		{"in_msg_nelems", "In msg nelems", 0},
		{"out_msg_nelems", "Out msg nelems", 0},
		{"dtype", "dtype", 0},
	};

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		struct ops_string value;
		int64_t number;

		if (!execution_json_find_attribute(node, attributes[i].name, &value) || value.size < 1)
			continue;
		if (value.bytes[0] == '"' ? value.size == 2 : !ops_json_parse_integer(value, &number) || number < attributes[i].least)
			continue;
		ops_buffer_printf(out, ",\"%s\":", attributes[i].key);
		ops_buffer_append(out, value.bytes, value.size);
	}
}

static void execution_json_put_members(struct execution_nodes *nodes, const struct execution_node *node, struct ops_buffer *out)
{
	struct execution_inputs inputs = execution_json_inputs(node->text);
	struct ops_string name = {"\"\"", 2};

	(void)nodes;
	ops_json_find_member(node->text, "name", &name);
	ops_buffer_append_text(out, ",\"name\":");
	ops_buffer_append(out, name.bytes, name.size);
	ops_buffer_printf(out, ",\"cat\":\"%s\",\"args\":{\"node_id\":%" PRIu64,
	                  find_number(node->text, "scope", 0) == SCOPE_USER ? "user_annotation" : "cpu_op", node->id);
	execution_json_put_attributes(node->text, out);
	execution_put_inputs(out, &inputs);
	ops_buffer_append_text(out, "}");
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

/* The nodes of the process and its threads are not calls. */
static enum ops_code execution_json_add_node(struct execution_nodes *nodes, struct ops_string text, int64_t pid)
{
	struct ops_string value, name;
	int64_t id = -1, parent = 0;

	if (text.bytes[0] != '{')
		return execution_json_fault(nodes, text.bytes, "an entry of 'nodes' is not an object");
	if (!ops_json_find_member(text, "id", &value) || !ops_json_parse_integer(value, &id) || id < 0 ||
	    !ops_json_find_member(text, "name", &name) || name.bytes[0] != '"')
		return execution_json_fault(nodes, text.bytes, "a node without 'id' or 'name'");
	if (ops_json_find_member(text, "ctrl_deps", &value) || ops_json_find_member(text, "parent", &value))
		ops_json_parse_integer(value, &parent);
	if (ops_string_starts(name, "\"[pytorch|profiler|execution_trace|"))
		return OPS_OK;
	if (!OPS_ARRAY_APPEND(&nodes->items, (struct execution_node){.id = (uint64_t)id, .parent = (uint64_t)parent, .text = text, .pid = pid,
	                                                              .tid = find_number(text, "tid", 0)}))
		return ops_fault_memory(nodes->in->error);
	return OPS_OK;
}

static enum ops_code add_nodes(struct execution_nodes *nodes, struct ops_string file)
{
	struct ops_string list, value;
	struct ops_json_walk walk;
	struct ops_error wrong;
	enum ops_code code = OPS_OK;
	int64_t pid;

	if (ops_json_validate(file.bytes, file.size, &wrong))
		return ops_fault(nodes->in->error, OPS_CORRUPT, "an execution trace: %s", wrong.text);
	if (!ops_json_find_typed(file, "nodes", '[', &list))
		return execution_json_fault(nodes, file.bytes, "the file has no list 'nodes'");
	pid = ops_json_integer_of(file, "pid", 0);
	walk = ops_json_walk(list.bytes, list.size);
	while (!code && ops_json_next_element(&walk, &value))
		code = execution_json_add_node(nodes, value, pid);
	return code;
}

bool ops_is_execution_trace(const char *head, size_t size)
{
	struct ops_string text = {head, size};

	return size && head[0] == '{' && ops_string_contains(text, "\"nodes\"") && ops_string_contains(text, "\"schema\"") &&
	       (ops_string_contains(text, "\"ctrl_deps\"") || ops_string_contains(text, "\"rf_id\"")) &&
	       !ops_string_contains(text, "\"traceEvents\"");
}

enum ops_code ops_read_execution_trace(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct execution_nodes nodes = {.in = reading, .put_members = execution_json_put_members};
	struct ops_buffer bytes = {0};
	enum ops_code code = ops_reading_all(reading, &bytes);

	nodes.bytes = bytes.bytes;
	if (!code)
		code = add_nodes(&nodes, (struct ops_string){bytes.bytes, bytes.size});
	if (!code)
		code = execution_nodes_read(&nodes, ret_trace);
	OPS_ARRAY_RELEASE(&nodes.items);
	ops_buffer_release(&bytes);
	return code;
}
