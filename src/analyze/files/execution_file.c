/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of a trace and their nodes in the execution trace of the same run. They are matched by the id that torch
 * assigns to the operator's call: `rf_id` of a node, "Record function id" in the trace or, in older traces, "External
 * id".
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/json_list.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/arguments.h"

/* Fields of a node in addition to its name. A value is a text, or JSON as it is in the file. */
enum { NODE_SCHEMA, NODE_INPUT_SHAPES, NODE_INPUT_TYPES, NODE_OUTPUT_SHAPES, NODE_OUTPUT_TYPES, NODE_NAME, NODE_FIELDS };
static const char *const fields[NODE_FIELDS] = {"op_schema",     "input_shapes", "input_types",
                                                "output_shapes", "output_types", "et_node_name"};

struct node {
	int64_t id;
	uint32_t texts[NODE_FIELDS]; /* OPS_NONE: not kept */
};

struct nodes {
	OPS_ARRAY(struct node) items;
	struct ops_intern texts;
	struct ops_map by_record; /* by rf_id */
	struct ops_buffer scratch;
	int64_t first_record;
	int64_t last_record;
	unsigned wanted; /* bits of the fields to keep */
};

struct operators {
	const struct ops_trace *trace;
	OPS_ARRAY(uint32_t) rows; /* rows of operators and annotations, in order of the file */
	int64_t first_id;
	int64_t last_id;
};

/* --- nodes ------------------------------------------------------------------------------------------------------------ */

/* Returns the field that a column (a JSON string) names; NODE_FIELDS: none. */
static unsigned field_of(struct ops_string column)
{
	unsigned field = 0;

	while (field < NODE_FIELDS && !ops_string_is(column, fields[field]))
		field++;
	return field;
}

static bool execution_file_keep(struct nodes *nodes, struct node *node, unsigned field, struct ops_string value)
{
	if (!(nodes->wanted & 1u << field))
		return true;
	nodes->scratch.size = 0;
	if (!ops_json_decode_value(&nodes->scratch, value))
		ops_json_clean(&nodes->scratch, value.bytes, value.size, false, NULL);
	if (nodes->scratch.failed)
		return false;
	node->texts[field] = ops_intern_add(&nodes->texts, ops_buffer_text(&nodes->scratch),
	                                    nodes->scratch.size);
	return node->texts[field] != OPS_NONE;
}

/* "inputs" and "outputs" are objects since schema 1.1; before that, they are separate members. */
static bool keep_values(struct nodes *nodes, struct node *node, unsigned shapes, struct ops_string object)
{
	struct ops_json_walk cursor = ops_json_walk(object.bytes, object.size);
	struct ops_string key, value;
	bool kept = true;

	while (kept && object.size && *object.bytes == '{' && ops_json_next_member(&cursor, &key, &value)) {
		if (ops_string_is(key, "shapes"))
			kept = execution_file_keep(nodes, node, shapes, value);
		else if (ops_string_is(key, "types"))
			kept = execution_file_keep(nodes, node, shapes + 1, value);
	}
	return kept;
}

/* Since schema 1.1: a list of {name, type, value}. */
static bool keep_attributes(struct nodes *nodes, struct node *node, struct ops_string list, int64_t *ret_record)
{
	struct ops_json_walk attributes = ops_json_walk(list.bytes, list.size);
	struct ops_string attribute, key, value;
	bool kept = true;

	while (kept && ops_json_next_element(&attributes, &attribute)) {
		struct ops_json_walk members = ops_json_walk(attribute.bytes, attribute.size);
		struct ops_string name = {"", 0}, content = {"", 0};

		while (ops_json_next_member(&members, &key, &value)) {
			if (ops_string_is(key, "name"))
				name = value;
			else if (ops_string_is(key, "value"))
				content = value;
		}
		if (ops_string_is(name, "\"rf_id\""))
			ops_json_parse_integer(content, ret_record);
		else if (ops_string_is(name, "\"op_schema\""))
			kept = execution_file_keep(nodes, node, NODE_SCHEMA, content);
	}
	return kept;
}

static bool keep_member(struct nodes *nodes, struct node *node, struct ops_string key, struct ops_string value,
                        int64_t *ret_record)
{
	if (ops_string_is(key, "id"))
		return ops_json_parse_integer(value, &node->id), true;
	if (ops_string_is(key, "rf_id"))
		return ops_json_parse_integer(value, ret_record), true;
	if (ops_string_is(key, "name"))
		return execution_file_keep(nodes, node, NODE_NAME, value);
	if (ops_string_is(key, "attrs"))
		return keep_attributes(nodes, node, value, ret_record);
	if (ops_string_is(key, "inputs"))
		return keep_values(nodes, node, NODE_INPUT_SHAPES, value);
	if (ops_string_is(key, "outputs"))
		return keep_values(nodes, node, NODE_OUTPUT_SHAPES, value);
	for (unsigned i = 0; i < NODE_NAME; i++)
		if (ops_string_is(key, fields[i]))
			return execution_file_keep(nodes, node, i, value);
	return true;
}

/* The nodes of the process and of its threads are not calls. */
static bool execution_file_is_call(const struct nodes *nodes, const struct node *node)
{
	uint32_t name = node->texts[NODE_NAME];

	return name == OPS_NONE || !ops_string_starts(ops_intern_text(&nodes->texts, name), "[pytorch|profiler|execution_trace|");
}

static enum ops_code execution_file_read_node(void *context, const struct ops_json_member *element, struct ops_error *error)
{
	struct nodes *nodes = context;
	struct ops_json_walk cursor = ops_json_walk(element->value, element->value_size);
	struct ops_string key, value;
	struct node *node;
	uint32_t *slot;
	int64_t record = 0;

	if (element->type != '{')
		return ops_fault(error, OPS_CORRUPT, "an entry of 'nodes' is not an object");
	node = OPS_ARRAY_PUSH(&nodes->items);
	if (!node)
		return ops_fault_memory(error);
	*node = (struct node){.id = -1};
	memset(node->texts, 0xff, sizeof(node->texts));
	while (ops_json_next_member(&cursor, &key, &value))
		if (!keep_member(nodes, node, key, value, &record))
			return ops_fault_memory(error);
	slot = ops_map_slot(&nodes->by_record, (uint64_t)record, 0);
	if (!slot)
		return ops_fault_memory(error);
	*slot = (uint32_t)(nodes->items.count - 1);
	if (execution_file_is_call(nodes, node) && record < nodes->first_record)
		nodes->first_record = record;
	if (execution_file_is_call(nodes, node) && record > nodes->last_record)
		nodes->last_record = record;
	return OPS_OK;
}

static void release_nodes(struct nodes *nodes)
{
	OPS_ARRAY_RELEASE(&nodes->items);
	ops_intern_release(&nodes->texts);
	ops_map_release(&nodes->by_record);
	ops_buffer_release(&nodes->scratch);
}

/* --- operators -------------------------------------------------------------------------------------------------------- */

static int64_t execution_file_record_of(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	int64_t record = ops_argument_integer(trace, row, "Record function id", 0);

	if (record > 0)
		return record;
	return events->id ? (int64_t)events->id[row] : (int64_t)row + 1;
}

struct place {
	uint32_t index;
	uint32_t row;
};

OPS_ORDER(execution_file_compare_places, struct place, OPS_UP(index))

static bool execution_file_find_operators(struct operators *operators)
{
	const struct ops_events *events = ops_trace_events(operators->trace);
	OPS_ARRAY(struct place) places = {0};
	bool found = true;

	for (uint32_t row = 0; row < events->count && found; row++) {
		int64_t id;

		if (events->kind[row] != OPS_EVENT_CPU_OP && events->kind[row] != OPS_EVENT_USER_ANNOTATION)
			continue;
		found = OPS_ARRAY_APPEND(&places, (struct place){events->index ? events->index[row] : row, row});
		id = execution_file_record_of(operators->trace, row);
		if (id < operators->first_id)
			operators->first_id = id;
		if (id > operators->last_id)
			operators->last_id = id;
	}
	OPS_ARRAY_SORT(&places, execution_file_compare_places);
	found = found && OPS_ARRAY_RESERVE(&operators->rows, places.count);
	for (size_t i = 0; i < places.count && found; i++)
		operators->rows.items[operators->rows.count++] = places.items[i].row;
	OPS_ARRAY_RELEASE(&places);
	return found;
}

/* --- result ----------------------------------------------------------------------------------------------------------- */

static const struct node *execution_file_node_of(const struct nodes *nodes, const struct operators *operators, uint32_t row)
{
	uint32_t node = ops_map_find(&nodes->by_record, (uint64_t)execution_file_record_of(operators->trace, row));

	return node == OPS_NONE ? NULL : &nodes->items.items[node];
}

static void execution_file_write_row(struct ops_json_writer *json, const struct nodes *nodes, const struct operators *operators,
                                     uint32_t row, const struct ops_string *columns, size_t column_count)
{
	const struct ops_events *events = ops_trace_events(operators->trace);
	struct ops_string name = ops_trace_string(operators->trace, events->name[row]);
	const struct node *node = execution_file_node_of(nodes, operators, row);

	ops_json_open(json, '[');
	ops_json_integer(json, events->index ? events->index[row] : row);
	ops_json_text(json, name.bytes, name.size);
	ops_json_integer(json, events->id ? (int64_t)events->id[row] : (int64_t)row + 1);
	if (node)
		ops_json_integer(json, node->id);
	else
		ops_json_null(json);
	for (size_t i = 0; i < column_count; i++) {
		unsigned field = field_of(columns[i]);
		bool known = field != NODE_FIELDS && node && node->texts[field] != OPS_NONE;
		struct ops_string text = known ? ops_intern_text(&nodes->texts, node->texts[field]) : (struct ops_string){0};

		if (!known)
			ops_json_null(json);
		else if (field == NODE_NAME || field == NODE_SCHEMA)
			ops_json_text(json, text.bytes, text.size);
		else
			ops_json_raw(json, text.bytes, text.size);
	}
	ops_json_close(json, ']');
}

static void write_answer(struct analysis_run *run, const struct nodes *nodes, const struct operators *operators,
                         int64_t limit)
{
	struct ops_json_writer *json = &run->result.json;
	size_t column_count;
	const struct ops_string *columns = analysis_texts(run, "columns", &column_count);
	bool overlap = operators->rows.count && nodes->first_record <= nodes->last_record &&
	               operators->first_id <= nodes->first_record && operators->last_id >= nodes->last_record;
	size_t correlated = 0;

	for (size_t i = 0; i < operators->rows.count && overlap; i++)
		correlated += execution_file_node_of(nodes, operators, operators->rows.items[i]) != NULL;
	ops_json_open(json, '{');
	ops_json_member(json, "et_nodes", (int64_t)nodes->items.count);
	ops_json_member_bool(json, "imported", overlap);
	ops_json_member(json, "correlated", (int64_t)correlated);
	ops_json_member(json, "supported_rows", (int64_t)operators->rows.count);
	ops_json_member_open(json, "rows", '[');
	for (size_t i = 0; i < operators->rows.count && overlap && (int64_t)i < limit; i++)
		execution_file_write_row(json, nodes, operators, operators->rows.items[i], columns, column_count);
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

/* Uses the first trace and the first execution trace of the files. Without an execution trace, nothing is
 * correlated. */
static enum ops_code read_files(struct analysis_run *run, struct nodes *nodes, const struct ops_trace **ret_trace)
{
	enum ops_code code;

	for (size_t i = 0; i < run->count; i++) {
		if (analysis_has_events(&run->ranks[i])) {
			*ret_trace = *ret_trace ? *ret_trace : run->ranks[i].trace;
		} else if (run->ranks[i].path && !nodes->items.count) {
			code = ops_json_list_read(run->ranks[i].path, "nodes", execution_file_read_node, nodes, run->error);
			if (code && (code != OPS_CORRUPT || nodes->items.count))
				return code;
		}
	}
	return *ret_trace ? OPS_OK : ops_fault(run->error, OPS_CORRUPT, "no file contains a trace with events");
}

enum ops_code analysis_execution_trace(struct analysis_run *run)
{
	struct nodes nodes = {.first_record = INT64_MAX, .last_record = INT64_MIN, .wanted = 1u << NODE_NAME};
	struct operators operators = {.first_id = INT64_MAX, .last_id = INT64_MIN};
	size_t column_count;
	const struct ops_string *columns = analysis_texts(run, "columns", &column_count);
	int64_t limit = analysis_count(run, "limit");
	enum ops_code code = run->code;

	for (size_t i = 0; !code && i < column_count; i++) {
		nodes.wanted |= 1u << field_of(columns[i]);
		if (field_of(columns[i]) == NODE_FIELDS)
			code = ops_fault(run->error, OPS_INVALID, "option 'columns' of execution_trace: unknown column \"%.78s\"", columns[i].bytes);
	}
	if (!code)
		code = read_files(run, &nodes, &operators.trace);
	if (!code && !execution_file_find_operators(&operators))
		code = ops_fault_memory(run->error);
	if (!code)
		write_answer(run, &nodes, &operators, limit);
	OPS_ARRAY_RELEASE(&operators.rows);
	release_nodes(&nodes);
	return code;
}
