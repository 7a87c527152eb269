/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries that are not events: memory and counter records, and the ends of links.
 */
#include "read/kineto.h"

#include "base/intern.h"

/* --- memory --------------------------------------------------------------------------------------------------------- */

int64_t kineto_number_arg(const struct kineto_reader *reader, const char *key, int64_t default_value)
{
	const struct ops_json_member *member = kineto_find_arg(reader, key);
	int64_t value;

	if (!member || member->type != OPS_JSON_NUMBER || !ops_json_decimal(member->value, member->value_size, 0,
	                                                                    INT64_MAX, &value))
		return default_value;
	return value;
}

bool kineto_is_memory(const struct kineto_reader *reader, const struct ops_json_member *name)
{
	return name && (KINETO_IS(name->value, name->value_size, "[memory]") ||
	                KINETO_IS(name->value, name->value_size, "[OutOfMemory]")) &&
	       kineto_find_arg(reader, "Bytes");
}

bool kineto_read_memory(struct kineto_reader *reader, const struct kineto_event *e)
{
	struct ops_memory_record record = {.out_of_memory = e->name->value[1] == 'O'};
	struct ops_new_event place = {OPS_NEW_EVENT};
	const struct ops_json_member *stack = kineto_find_arg(reader, "Call stack");

	if (!kineto_read_place(reader, e, &place))
		return true;
	kineto_extend_span(reader, place.start_ns, place.start_ns);
	record.time_ns = place.start_ns;
	record.track = place.track;
	record.address = (uint64_t)kineto_number_arg(reader, "Addr", 0);
	record.bytes = kineto_number_arg(reader, "Bytes", 0);
	record.total_allocated = (uint64_t)kineto_number_arg(reader, "Total Allocated", 0);
	record.total_reserved = (uint64_t)kineto_number_arg(reader, "Total Reserved", 0);
	record.device_type = (uint8_t)kineto_number_arg(reader, "Device Type", 0);
	/* There is one CPU, although some files number it. */
	record.device_index = record.device_type ? (int16_t)kineto_number_arg(reader, "Device Id", -1) : -1;
	ops_builder_memory(reader->builder, &record);
	if (stack && stack->type == '"') {
		kineto_note_text(reader, stack);
		ops_builder_memory_stack(reader->builder, kineto_string(reader, stack));
	}
	return true;
}

/* --- counters and flows --------------------------------------------------------------------------------------------- */

bool kineto_read_counter(struct kineto_reader *reader, const struct kineto_event *e)
{
	struct ops_new_event place = {OPS_NEW_EVENT};
	const struct ops_json_object *object = reader->object;

	if (!kineto_read_place(reader, e, &place))
		return true;
	kineto_extend_span(reader, place.start_ns, place.start_ns);
	for (uint32_t i = 0; i < object->arg_count; i++) {
		const struct ops_json_member *arg = &object->args[i];
		struct ops_counter_record record = {.time_ns = place.start_ns, .name = place.name, .track = place.track};
		/* The scanner does not say whether a key has escapes. */
		struct ops_json_member key = {.value = arg->key, .value_size = arg->key_size, .type = '"', .flags = OPS_JSON_ESCAPED};

		if ((arg->type != OPS_JSON_NUMBER && arg->type != OPS_JSON_WORD && arg->type != '"') ||
		    !ops_json_double(arg->value, arg->value_size, &record.value)) {
			kineto_note(reader, OPS_NOTE_BAD_VALUE);
			continue;
		}
		if (!KINETO_IS(arg->key, arg->key_size, "value"))
			record.series = kineto_string(reader, &key);
		ops_builder_counter(reader->builder, &record);
	}
	return true;
}

static uint64_t flow_id(const struct ops_json_member *id)
{
	int64_t number;

	if (!id)
		return 0;
	if (kineto_integer(id, &number))
		return (uint64_t)number;
	return ops_hash(id->value, id->value_size);
}

bool kineto_read_flow(struct kineto_reader *reader, const struct kineto_event *e, uint8_t phase)
{
	struct kineto_category category = kineto_category_of(reader, e->cat);
	struct ops_new_event place = {OPS_NEW_EVENT};
	struct ops_new_flow flow = {.phase = phase, .kind = category.link_kind, .category = category.link_id,
	                            .row = OPS_NONE};
	int64_t row;

	/* The flows between a recording's operators follow from their sequence numbers. */
	if (reader->recorded && category.link_kind != OPS_LINK_LAUNCH)
		return true;
	if (!kineto_read_place(reader, e, &place))
		return true;
	flow.time_ns = place.start_ns;
	flow.track = place.track;
	flow.id = flow_id(e->id);
	row = reader->own ? kineto_number_arg(reader, "Ev Idx", -1) : -1;
	if (reader->last_row == OPS_NONE)
		flow.row = OPS_NONE;
	else if (row >= 0 && row <= reader->last_row)
		flow.row = (uint32_t)row;
	else if (reader->last_track == flow.track &&
	         reader->last_start_ns == flow.time_ns)
		flow.row = reader->last_row;
	if (flow.kind == OPS_LINK_FORWARD_BACKWARD)
		ops_builder_links_given(reader->builder);
	ops_builder_flow(reader->builder, &flow);
	return true;
}
