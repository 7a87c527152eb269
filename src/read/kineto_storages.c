/* SPDX-License-Identifier: Apache-2.0
 *
 * The storages and roles in Opstrobe's own files (write/chrome_storages.h). An invalid entry ends the list.
 */
#include "read/kineto.h"

#include "base/fault.h"

#define WHOLE_FIELDS 4
#define ROLE_FIELDS 5

static struct ops_json_cursor kineto_storages_elements_of(const struct ops_json_member *array)
{
	return (struct ops_json_cursor){array->value + 1, array->value + array->value_size, NULL};
}

/* Parses an integer from 0 to `high`. */
static bool kineto_storages_parse_number(const struct ops_json_member *value, int64_t high, int64_t *ret_number)
{
	return kineto_integer(value, ret_number) && *ret_number >= 0 && *ret_number <= high;
}

/* Parses [address, bytes], optionally followed by device type and index + 1. */
static bool parse_whole(const struct ops_json_member *array, struct ops_storage *ret_storage)
{
	struct ops_json_cursor cursor = kineto_storages_elements_of(array);
	struct ops_json_member fields[WHOLE_FIELDS];
	int64_t address, bytes, type = 0, index = 0;
	int count = 0;

	if (array->type != '[')
		return false;
	while (count < WHOLE_FIELDS && ops_json_parse_element(&cursor, &fields[count]))
		count++;
	if (count < 2 || !kineto_integer(&fields[0], &address) ||
	    !kineto_storages_parse_number(&fields[1], (int64_t)OPS_STORAGE_BYTES_MAX, &bytes))
		return false;
	if (count > 2 && (count < WHOLE_FIELDS || !kineto_storages_parse_number(&fields[2], 63, &type) ||
	                  !kineto_storages_parse_number(&fields[3], 255, &index)))
		return false;
	*ret_storage = (struct ops_storage){.address = (uint64_t)address, .bytes = (uint64_t)bytes & OPS_STORAGE_BYTES_MAX,
	                                    .device_type = (uint64_t)type & 63, .device_index = (uint64_t)index & 255};
	return true;
}

/* Parses an index in the table, or a complete storage. */
static bool kineto_storages_parse_place(const struct kineto_reader *reader, const struct ops_json_member *value,
                                        struct ops_storage *ret_storage)
{
	int64_t place, count = (int64_t)reader->storages.count;

	if (value->type == '[')
		return parse_whole(value, ret_storage);
	if (!kineto_integer(value, &place) || place == 0 || place > count || place < -count)
		return false;
	*ret_storage = reader->storages.items[(place < 0 ? -place : place) - 1];
	ret_storage->written = place < 0;
	return true;
}

void kineto_read_own_storages(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = kineto_storages_elements_of(array);
	struct ops_json_member row;
	struct ops_storage storage, *added;

	if (reader->storages.count || array->type != '[')
		return;
	while (ops_json_parse_element(&cursor, &row) && parse_whole(&row, &storage)) {
		added = OPS_ARRAY_PUSH(&reader->storages);
		if (!added) {
			reader->code = ops_fault_memory(reader->in->error);
			return;
		}
		*added = storage;
	}
}

static bool kineto_storages_parse_role(struct kineto_reader *reader, const struct ops_json_member *row)
{
	struct ops_json_cursor cursor = kineto_storages_elements_of(row);
	struct ops_json_member fields[ROLE_FIELDS];
	struct ops_role_record record = {0};
	int64_t role, track;

	if (row->type != '[')
		return false;
	for (int i = 0; i < ROLE_FIELDS; i++)
		if (!ops_json_parse_element(&cursor, &fields[i]))
			return false;
	if (!kineto_integer(&fields[0], &record.time_ns) || record.time_ns > KINETO_TIME_MAX ||
	    record.time_ns < -KINETO_TIME_MAX || !kineto_storages_parse_place(reader, &fields[1], &record.storage) ||
	    !kineto_storages_parse_number(&fields[2], OPS_ROLE_TENSOR, &role) || fields[3].type != '"' ||
	    !kineto_storages_parse_number(&fields[4], (int64_t)reader->tracks.count - 1, &track))
		return false;
	record.storage.role = (uint64_t)role & 15;
	record.name = kineto_string(reader, &fields[3]);
	record.track = (uint32_t)track;
	ops_builder_role(reader->builder, &record);
	return true;
}

void kineto_read_own_roles(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = kineto_storages_elements_of(array);
	struct ops_json_member row;

	if (reader->has_roles || array->type != '[')
		return;
	reader->has_roles = true;
	while (ops_json_parse_element(&cursor, &row) && kineto_storages_parse_role(reader, &row))
		;
}

bool kineto_read_storages(struct kineto_reader *reader, const struct ops_json_member *array, uint32_t *ret_string)
{
	struct ops_json_cursor cursor = kineto_storages_elements_of(array);
	struct ops_buffer *list = &reader->scratch;
	struct ops_json_member value;
	struct ops_storage storage;

	if (array->type != '[')
		return false;
	list->size = 0;
	while (ops_json_parse_element(&cursor, &value)) {
		if (!kineto_storages_parse_place(reader, &value, &storage))
			return false;
		ops_buffer_append(list, &storage, sizeof(storage));
	}
	if (list->size == 0 || list->failed)
		return false;
	*ret_string = ops_builder_string(reader->builder, list->bytes, list->size);
	return true;
}
