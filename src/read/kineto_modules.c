/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules in Opstrobe's own files (write/chrome_modules.h). An invalid entry ends the list.
 */
#include "read/kineto.h"

#define FIELDS 11

/* In the order of the file. */
enum { NAME, NUMBER, CLASS, PATH, PARENT, ADDRESS, PARAMETERS, BYTES, OWN_PARAMETERS, OWN_BYTES, ALIASES };

static struct ops_json_cursor kineto_modules_elements_of(const struct ops_json_member *array)
{
	return (struct ops_json_cursor){array->value + 1, array->value + array->value_size, NULL};
}

/* Parses a number below `limit`, or null. */
static bool kineto_modules_parse_id(const struct ops_json_member *value, int64_t limit, uint32_t *ret_id)
{
	int64_t number;

	*ret_id = OPS_NONE;
	if (value->type == OPS_JSON_WORD)
		return true;
	if (!kineto_integer(value, &number) || number < 0 || number >= limit)
		return false;
	*ret_id = (uint32_t)number;
	return true;
}

static bool parse_count(const struct ops_json_member *value, uint64_t *ret_count)
{
	int64_t number;

	if (!kineto_integer(value, &number) || number < 0)
		return false;
	*ret_count = (uint64_t)number;
	return true;
}

static void parse_aliases(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = kineto_modules_elements_of(array);
	struct ops_json_member path;

	while (ops_json_parse_element(&cursor, &path) && path.type == '"')
		ops_builder_module_alias(reader->builder, &(struct ops_module_alias){
								  .module = reader->module_count,
								  .path = kineto_string(reader, &path),
							  });
}

static bool parse_module(struct kineto_reader *reader, const struct ops_json_member *row)
{
	struct ops_json_cursor cursor = kineto_modules_elements_of(row);
	struct ops_json_member fields[FIELDS];
	struct ops_module module = {0};

	if (row->type != '[')
		return false;
	for (int i = 0; i < FIELDS; i++)
		if (!ops_json_parse_element(&cursor, &fields[i]))
			return false;
	if (fields[NAME].type != '"' || fields[CLASS].type != '"' || fields[PATH].type != '"' || fields[ALIASES].type != '[' ||
	    !kineto_modules_parse_id(&fields[NUMBER], OPS_NONE, &module.number) ||
	    !kineto_modules_parse_id(&fields[PARENT], reader->module_count, &module.parent) ||
	    !parse_count(&fields[ADDRESS], &module.address) || !parse_count(&fields[PARAMETERS], &module.parameter_count) ||
	    !parse_count(&fields[BYTES], &module.parameter_bytes) ||
	    !parse_count(&fields[OWN_PARAMETERS], &module.own_parameter_count) ||
	    !parse_count(&fields[OWN_BYTES], &module.own_parameter_bytes))
		return false;
	module.name = kineto_string(reader, &fields[NAME]);
	module.class_name = kineto_string(reader, &fields[CLASS]);
	module.path = kineto_string(reader, &fields[PATH]);
	ops_builder_module(reader->builder, &module);
	parse_aliases(reader, &fields[ALIASES]);
	reader->module_count++;
	return true;
}

void kineto_read_own_modules(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = kineto_modules_elements_of(array);
	struct ops_json_member row;

	if (reader->module_count || array->type != '[')
		return;
	while (ops_json_parse_element(&cursor, &row) && parse_module(reader, &row))
		;
}
