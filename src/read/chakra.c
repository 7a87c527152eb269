/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces of MLCommons Chakra (`.et`; schema/protobuf/et_def.proto): protocol buffers, each preceded by its length as a
 * varint: a GlobalMetadata, then Nodes. A node has a type, the nodes on which it depends, and attributes; times may be missing
 * (execution_nodes.h).
 *
 *     COMP_NODE with is_cpu_op     an host operator
 *     COMP_NODE, COMM_*_NODE, …    device work, on the stream in the attribute `stream`
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "read/execution_nodes.h"
#include "trace/chakra_fields.h"

#define CHAKRA_HOST_PID 1000000 /* differs from all device numbers */
struct chakra_attribute {
	struct ops_string name;
	struct ops_pb_field value; /* number 0: of a kind that is not read */
};

static struct ops_pb_message message_of(struct ops_string bytes)
{
	return (struct ops_pb_message){.at = bytes.bytes, .end = ops_string_end(bytes)};
}

static struct chakra_attribute chakra_read_attribute(struct ops_pb_field field)
{
	struct chakra_attribute attribute = {.name = {"", 0}};
	struct ops_pb_message inside = ops_pb_inside(&field);
	struct ops_pb_field part;

	while (ops_pb_next(&inside, &part)) {
		if (part.number == ATTRIBUTE_NAME && part.type == OPS_PB_BYTES)
			attribute.name = part.bytes;
		else if (part.number == ATTRIBUTE_TEXT ? part.type == OPS_PB_BYTES
		                                       : part.number >= ATTRIBUTE_DOUBLE && part.number <= ATTRIBUTE_BOOL && part.type != OPS_PB_BYTES)
			attribute.value = part;
	}
	return attribute;
}

static int64_t chakra_find_number(struct ops_pb_message node, const char *name, int64_t number)
{
	struct ops_pb_field field;

	while (ops_pb_next(&node, &field))
		if (field.number == NODE_ATTRIBUTE && field.type == OPS_PB_BYTES) {
			struct chakra_attribute attribute = chakra_read_attribute(field);

			if (attribute.value.number && attribute.value.type == OPS_PB_VARINT && ops_string_is(attribute.name, name))
				number = (int64_t)attribute.value.value;
		}
	return number;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static void put_number_of(struct ops_buffer *out, const struct ops_pb_field *value)
{
	uint32_t bits = (uint32_t)value->value;
	float single;
	char text[40], *end = text;

	memcpy(&single, &bits, sizeof(single));
	if (value->type == OPS_PB_VARINT && value->number == ATTRIBUTE_BOOL)
		ops_buffer_append_text(out, value->value ? "true" : "false");
	else if (value->type == OPS_PB_VARINT && (value->number == ATTRIBUTE_UINT32 || value->number == ATTRIBUTE_UINT64))
		end = ops_json_uint_to(text, value->value);
	else if (value->type == OPS_PB_VARINT)
		end = ops_json_int_to(text, (int64_t)value->value);
	else
		end = ops_json_double_to(text, value->type == OPS_PB_FIXED64 ? ops_pb_double_of(value) : (double)single);
	ops_buffer_append(out, text, (size_t)(end - text));
}

/* Uses Kineto's name if there is one; negative numbers and empty texts mean "none". */
static void chakra_put_attribute(struct ops_buffer *out, const struct chakra_attribute *attribute)
{
	static const struct {
		const char *name, *key;
		uint64_t least;
	} known[] = {
		{"rf_id", "Record function id", 1}, {"seq_id", "Sequence number", 0},      {"fw_tid", "Fwd thread id", 1},
		{"pg_name", "Process Group Name", 0}, {"pg_desc", "Process Group Description", 0}, {"pg_size", "Group size", 0},
		{"kernel_backend", "kernel_backend", 0}, {"kernel_file", "kernel_file", 0}, {"comm_size", "comm_size", 0},
		{"tensor_size", "tensor_size", 0},  {"num_ops", "num_ops", 0},             {"comm_src", "comm_src", 0},
		{"comm_dst", "comm_dst", 0},        {"comm_tag", "comm_tag", 0},           {"op_schema", "op_schema", 0},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool is_text = attribute->value.type == OPS_PB_BYTES;

		if (!ops_string_is(attribute->name, known[i].name))
			continue;
		if (is_text ? !attribute->value.bytes.size
		            : attribute->value.type == OPS_PB_VARINT && ((int64_t)attribute->value.value < 0 || attribute->value.value < known[i].least))
			continue;
		ops_buffer_printf(out, ",\"%s\":", known[i].key);
		if (is_text)
			ops_json_string(out, attribute->value.bytes.bytes, attribute->value.bytes.size);
		else
			put_number_of(out, &attribute->value);
	}
}

/* Converts a list as printed by its writer, with the quotes of Python or JSON. */
static struct ops_string json_of(struct ops_buffer *text, struct ops_string list)
{
	size_t start = text->size;

	ops_buffer_append(text, list.bytes, list.size);
	if (text->failed)
		return (struct ops_string){"", 0};
	for (size_t i = start; i < text->size; i++)
		if (text->bytes[i] == '\'')
			text->bytes[i] = '"';
	return ops_json_validate(text->bytes + start, text->size - start, NULL) ? (struct ops_string){"", 0}
	                                                                        : (struct ops_string){text->bytes + start, text->size - start};
}

static void chakra_put_inputs(struct ops_buffer *out, const struct ops_pb_field *field)
{
	struct ops_pb_message message = ops_pb_inside(field);
	struct ops_string parts[4] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
	struct ops_buffer text = {0};
	struct ops_pb_field part;
	struct execution_inputs inputs;
	size_t size = 0;

	while (ops_pb_next(&message, &part))
		if (part.type == OPS_PB_BYTES && part.number >= IO_VALUES && part.number <= IO_TYPES)
			parts[part.number] = part.bytes;
	for (int i = IO_VALUES; i <= IO_TYPES; i++)
		size += parts[i].size;
	if (size && ops_buffer_room(&text, size)) { /* ensures that the texts do not move */
		inputs = (struct execution_inputs){.shapes = json_of(&text, parts[IO_SHAPES]), .types = json_of(&text, parts[IO_TYPES]),
		                                   .values = json_of(&text, parts[IO_VALUES]), .strides = {"", 0}};
		execution_put_inputs(out, &inputs);
	}
	out->failed |= text.failed;
	ops_buffer_release(&text);
}

static void put_id(struct ops_buffer *out, const char *key, size_t place, uint64_t id)
{
	if (place)
		ops_buffer_printf(out, ",%" PRIu64, id);
	else
		ops_buffer_printf(out, ",\"%s\":[%" PRIu64, key, id);
}

/* Ids are packed or come one by one. */
static void put_ids(struct ops_buffer *out, struct ops_pb_message node, uint32_t number, const char *key)
{
	struct ops_pb_field field;
	uint64_t id;
	size_t count = 0;

	while (ops_pb_next(&node, &field)) {
		const char *at = field.bytes.bytes, *end = ops_string_end(field.bytes);

		if (field.number == number && field.type == OPS_PB_VARINT)
			put_id(out, key, count++, field.value);
		while (field.number == number && ops_pb_parse_varint(&at, end, &id))
			put_id(out, key, count++, id);
	}
	ops_buffer_append_text(out, count ? "]" : "");
}

static const char *collective_name(int64_t type)
{
	return type >= 0 && type < (int64_t)CHAKRA_COLLECTIVE_COUNT ? chakra_collectives[type] : NULL;
}

static int64_t type_of_node(struct ops_pb_message node)
{
	struct ops_pb_field field;
	int64_t type = 0;

	while (ops_pb_next(&node, &field))
		if (field.number == NODE_TYPE && field.type == OPS_PB_VARINT && field.value < TYPE_COUNT)
			type = (int64_t)field.value;
	return type;
}

static bool is_host_node(struct ops_pb_message node, int64_t type)
{
	return type == TYPE_METADATA || chakra_find_number(node, "is_cpu_op", 0) != 0;
}

static const char *category_of_node(struct ops_pb_message node, int64_t type, bool is_host)
{
	if (is_host)
		return type == TYPE_METADATA || chakra_find_number(node, "scope", 0) == CHAKRA_SCOPE_USER ? "user_annotation" : "cpu_op";
	return type == TYPE_MEMORY_LOAD || type == TYPE_MEMORY_STORE ? "gpu_memcpy" : "kernel";
}

static void chakra_put_members(struct execution_nodes *nodes, const struct execution_node *item, struct ops_buffer *out)
{
	static const char *const names[TYPE_COUNT] = {"INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",
	                                              "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE", "BATCH_NODE",
	                                              "CHECKPOINT_NODE"};
	struct ops_pb_message node = message_of(item->text), walk = node;
	int64_t type = type_of_node(node);
	bool is_host = is_host_node(node, type);
	struct ops_string name = {"", 0};
	struct ops_pb_field field, inputs = {0};
	const char *collective = type == TYPE_COLLECTIVE ? collective_name(chakra_find_number(node, "comm_type", -1)) : NULL;

	(void)nodes;
	while (ops_pb_next(&walk, &field)) {
		if (field.number == NODE_NAME && field.type == OPS_PB_BYTES)
			name = field.bytes;
		else if (field.number == NODE_INPUTS && field.type == OPS_PB_BYTES)
			inputs = field;
	}
	ops_put_text_member(out, "name", name);
	ops_buffer_printf(out, ",\"cat\":\"%s\",\"args\":{\"node_id\":%" PRIu64 ",\"node_type\":\"%s\"", category_of_node(node, type, is_host),
	                  item->id, names[type]);
	if (!is_host)
		ops_buffer_printf(out, ",\"device\":%" PRId64 ",\"stream\":%" PRId64, item->pid, item->tid);
	ops_buffer_printf(out, ",\"External id\":%" PRIu64, is_host ? item->id : item->parent);
	if (collective)
		ops_buffer_printf(out, ",\"Collective name\":\"%s\"", collective);
	put_ids(out, node, NODE_CTRL_DEPS, "ctrl_deps");
	put_ids(out, node, NODE_DATA_DEPS, "data_deps");
	for (walk = node; ops_pb_next(&walk, &field);)
		if (field.number == NODE_ATTRIBUTE && field.type == OPS_PB_BYTES) {
			struct chakra_attribute attribute = chakra_read_attribute(field);

			chakra_put_attribute(out, &attribute);
		}
	if (inputs.number)
		chakra_put_inputs(out, &inputs);
	ops_buffer_append_text(out, "}");
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

/* Returns the first of a list of ids, which may be packed. */
static uint64_t first_id(const struct ops_pb_field *field)
{
	const char *at = field->bytes.bytes;
	uint64_t id = 0;

	if (field->type != OPS_PB_BYTES)
		return field->value;
	ops_pb_parse_varint(&at, field->bytes.bytes + field->bytes.size, &id);
	return id;
}

/* Returns false if it is malformed or has no usable time. */
static bool chakra_read_node(struct ops_string text, struct execution_node *ret_node)
{
	struct ops_pb_message node = message_of(text), walk = node;
	struct ops_pb_field field;
	uint64_t start_us = 0, duration_us = 0;
	bool has_parent = false;

	*ret_node = (struct execution_node){.text = text};
	while (ops_pb_next(&walk, &field)) {
		if (field.number == NODE_ID && field.type == OPS_PB_VARINT)
			ret_node->id = field.value;
		else if (field.number == NODE_START_US && field.type == OPS_PB_VARINT)
			start_us = field.value;
		else if (field.number == NODE_DURATION_US && field.type == OPS_PB_VARINT)
			duration_us = field.value;
		if (field.number == NODE_CTRL_DEPS && !has_parent) {
			ret_node->parent = first_id(&field);
			has_parent = true;
		}
	}
	if (walk.malformed || start_us > OPS_TIME_MAX_NS / 1000 || duration_us > OPS_TIME_MAX_NS / 1000)
		return false;
	ret_node->start_ns = (int64_t)start_us * 1000;
	ret_node->duration_ns = (int64_t)duration_us * 1000;
	if (is_host_node(node, type_of_node(node))) {
		ret_node->pid = CHAKRA_HOST_PID;
		ret_node->tid = chakra_find_number(node, "tid", 0);
	} else {
		int64_t device = chakra_find_number(node, "device", 0);

		ret_node->pid = device > 0 && device < CHAKRA_HOST_PID ? device : 0;
		ret_node->tid = chakra_find_number(node, "stream", 0);
	}
	return true;
}

static enum ops_code chakra_add_nodes(struct execution_nodes *nodes, struct ops_string file)
{
	struct ops_builder *builder = nodes->in->builder;
	const char *at = file.bytes, *end = ops_string_end(file);

	for (bool is_metadata = true; at < end; is_metadata = false) {
		const char *start = at;
		struct execution_node node;
		uint64_t size;

		if (!ops_pb_parse_varint(&at, end, &size) || size > (uint64_t)(end - at)) {
			ops_builder_notes(builder, OPS_NOTE_TRUNCATED, 1, (uint64_t)(start - file.bytes));
			break;
		}
		if (!is_metadata && !chakra_read_node((struct ops_string){at, (size_t)size}, &node))
			ops_builder_notes(builder, OPS_NOTE_NOT_AN_EVENT, 1, (uint64_t)(start - file.bytes));
		else if (!is_metadata && !OPS_ARRAY_APPEND(&nodes->items, node))
			return ops_fault_memory(nodes->in->error);
		else if (!is_metadata)
			nodes->has_times |= node.start_ns > 0;
		at += size;
	}
	return OPS_OK;
}

/* Returns whether the fields are those of a message: for each number its wire type or, for a list of numbers, either of two. */
static bool has_fields(struct ops_pb_message message, bool is_cut, const char *types, size_t count)
{
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field)) {
		char type = field.number < count ? types[field.number] : '-';

		if (type != (field.type == OPS_PB_VARINT ? 'n' : field.type == OPS_PB_BYTES ? 'b' : '-') &&
		    !(type == 'l' && (field.type == OPS_PB_VARINT || field.type == OPS_PB_BYTES)))
			return false;
	}
	return is_cut || !message.malformed;
}

/* The file begins with a message of metadata, which may be empty, followed by a node with a name. A name may have any characters; if
 * nothing comes before it, zeros show that the file is another one. */
bool ops_is_chakra(const char *head, size_t size)
{
	static const char metadata[] = "-bb", node[] = "-nbnllnnbbbb";
	const char *at = head, *end = head + size;
	struct ops_pb_message message;
	struct ops_pb_field field;
	uint64_t length;
	bool has_name = false, has_metadata;

	if (!size || !ops_pb_parse_varint(&at, end, &length) || length > (uint64_t)(end - at))
		return false;
	if (!has_fields((struct ops_pb_message){.at = at, .end = ops_bytes_end(at, length)}, false, metadata, sizeof(metadata) - 1))
		return false;
	has_metadata = length > 0;
	at += length;
	if (!ops_pb_parse_varint(&at, end, &length) || !length)
		return false;
	message = (struct ops_pb_message){.at = at, .end = length < (uint64_t)(end - at) ? at + length : end};
	if (!has_fields(message, message.end == end, node, sizeof(node) - 1))
		return false;
	while (ops_pb_next(&message, &field))
		has_name |= field.number == NODE_NAME && field.bytes.size &&
			    (has_metadata || memchr(field.bytes.bytes, '\0', field.bytes.size) == NULL);
	return has_name;
}

enum ops_code ops_read_chakra(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct execution_nodes nodes = {.in = reading, .put_members = chakra_put_members};
	struct ops_buffer bytes = {0};
	enum ops_code code = ops_reading_all(reading, &bytes);

	nodes.bytes = bytes.bytes;
	if (!code)
		code = chakra_add_nodes(&nodes, (struct ops_string){bytes.bytes, bytes.size});
	if (!code)
		code = execution_nodes_read(&nodes, ret_trace);
	OPS_ARRAY_RELEASE(&nodes.items);
	ops_buffer_release(&bytes);
	return code;
}
