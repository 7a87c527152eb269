/* SPDX-License-Identifier: Apache-2.0
 *
 * The declarations of tables as JSON, from which tools/generate_tables.py generates documents and types.
 */
#include "analyze/tables.h"

#include <string.h>

#include "analyze/relations/relations.h"

static const char *const types[] = {
	[RESULT_INTEGER] = "integer", [RESULT_FLAG] = "flag", [RESULT_COUNT] = "count", [RESULT_BYTES] = "bytes",
	[RESULT_NUMBER] = "number", [RESULT_PERCENT] = "percent", [RESULT_CHANGE] = "change", [RESULT_BAR] = "number",
	[RESULT_TIME] = "time", [RESULT_MOMENT] = "time",
	[RESULT_FIGURE] = "text", [RESULT_TEXT] = "text", [RESULT_JSON] = "json", [RESULT_OBJECT] = "object",
	[RESULT_LIST] = "list",
};

static void tables_write_text(struct ops_json_writer *json, const char *key, const char *text)
{
	if (!text)
		return;
	ops_json_member_text(json, key, text);
}

static void write_column(struct ops_json_writer *json, const struct result_column *column)
{
	ops_json_open(json, '{');
	tables_write_text(json, "name", column->name);
	tables_write_text(json, "type", types[column->type]);
	tables_write_text(json, "title", column->title);
	tables_write_text(json, "unit", column->unit);
	tables_write_text(json, "about", column->about);
	tables_write_text(json, "when", column->when);
	tables_write_text(json, "object", column->object ? column->object->id : NULL);
	ops_json_member_bool(json, "nullable", column->nullable);
	ops_json_close(json, '}');
}

static void write_declaration(struct ops_json_writer *json, const struct result_declaration *declaration)
{
	ops_json_open(json, '{');
	tables_write_text(json, "id", declaration->id);
	tables_write_text(json, "about", declaration->about);
	OPS_JSON_LIST(json, "columns", column, declaration->count, write_column(json, &declaration->columns[column]));
	ops_json_close(json, '}');
}

static void write_declarations(struct ops_json_writer *json, const char *key,
                               const struct result_declaration *const *declarations, size_t count)
{
	OPS_JSON_LIST(json, key, i, count, write_declaration(json, declarations[i]));
}

void relations_json(struct ops_json_writer *json)
{
	ops_json_member(json, "relations_version", RELATIONS_VERSION);
	OPS_JSON_LIST(json, "relations", i, relation_count, write_declaration(json, relations[i].declaration));
}

void result_tables_json(struct ops_json_writer *json)
{
#define ADDRESS(name) &table_##name,
	static const struct result_declaration *const tables[] = {RESULT_TABLES(ADDRESS)};
	static const struct result_declaration *const objects[] = {RESULT_OBJECTS(ADDRESS)};
#undef ADDRESS

	ops_json_open(json, '{');
	write_declarations(json, "tables", tables, sizeof(tables) / sizeof(tables[0]));
	write_declarations(json, "objects", objects, sizeof(objects) / sizeof(objects[0]));
	relations_json(json);
	ops_json_close(json, '}');
}
