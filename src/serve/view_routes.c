/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of the views of one trace.
 */
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/roofline.h>
#include <opstrobe/internal/views.h>
#include <opstrobe/query.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "serve/api.h"

#define TOP_FINDING "top_finding"

/* --- views ---------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_views(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *name = query_find(&request->query, "rules");
	enum ops_rules rules;
	enum ops_code code = ops_rules_parse(name ? name->bytes : NULL, &rules, error);

	return code ? code : ops_views_json(request_trace(request, 0), rules, ret_text, ret_size, error);
}

/* Finds the member `name` of the object of all views. */
static bool find_part(struct ops_string views, const char *name, size_t size, struct ops_string *ret_value)
{
	struct ops_json_walk walk = ops_json_walk(views.bytes, views.size);
	struct ops_string key;

	while (ops_json_next_member(&walk, &key, ret_value))
		if (key.size == size && !memcmp(key.bytes, name, size))
			return true;
	return false;
}

/* Computing the first finding takes about as much work as all views, so it is only done if a request has `top_finding`. */
static enum ops_code write_top_finding(struct request *request, struct ops_json_writer *json, struct ops_error *error)
{
	struct ops_rank rank = {.rank = -1, .path = request->traces[0]->path, .name = request->traces[0]->worker};
	struct ops_adviser *adviser = ops_adviser_new();
	struct ops_buffer out = {0};
	struct ops_string value;
	char *text = NULL;
	size_t size = 0;
	enum ops_code code = adviser ? request_cut(request, error) : ops_fault_memory(error);

	rank.trace = request_trace(request, 0);
	ops_buffer_append_text(&out, "{}");
	if (!code)
		code = ops_buffer_detach(&out, code, &text, &size, error);
	if (!code)
		code = ops_adviser_add(adviser, &rank, error);
	if (!code)
		code = ops_adviser_add_top(adviser, &text, &size, error);
	ops_adviser_free(adviser);
	ops_buffer_release(&out);
	if (!code && find_part((struct ops_string){text, size}, TOP_FINDING, strlen(TOP_FINDING), &value)) {
		ops_json_member_raw(json, TOP_FINDING, value);
	}
	ops_free(text);
	return code;
}

static enum ops_code view_routes_write_parts(struct request *request, const char *parts, struct ops_json_writer *json,
                                             struct ops_error *error)
{
	struct ops_string value;
	enum ops_code code;

	for (const char *at = parts; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t size = strcspn(at, ",");

		if (size == strlen(TOP_FINDING) && !memcmp(at, TOP_FINDING, size)) {
			code = write_top_finding(request, json, error);
			if (code)
				return code;
			continue;
		}
		if (!find_part((struct ops_string){request->reply->body, request->reply->size}, at, size, &value))
			return ops_fault(error, OPS_INVALID, "unknown part '%.*s'", (int)(size < 80 ? size : 80), at);
		ops_json_key_of(json, at, size);
		ops_json_raw(json, value.bytes, value.size);
	}
	return OPS_OK;
}

static enum ops_code select_views(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *parts = query_find(&request->query, "parts");
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = OPS_OK;

	if (!parts) {
		ops_buffer_append(&out, request->reply->body, request->reply->size);
	} else {
		ops_json_open(&json, '{');
		code = view_routes_write_parts(request, parts->bytes, &json, error);
		ops_json_close(&json, '}');
	}
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_table(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	static const struct {
		const char *name, *query, *option;
	} tables[] = {
		{"overview", "overview", ""},
		{"kernels", "kernels", ""},
		{"kernels_by_operator", "kernels", ", \"by_operator\": true"},
		{"kernels_by_category", "kernels", ", \"by_category\": true"},
		{"modules", "modules", ""},
		{"module_classes", "modules", ", \"by_class\": true"},
		{"memory", "memory", ""},
	};
	const char *name = request->query.segments[5].bytes;
	struct ops_rank worker = {.trace = request_trace(request, 0), .name = request->traces[0]->worker,
	                          .span = request->traces[0]->span};
	struct ops_query_options options = {.size = sizeof(options)};
	int64_t rows = 0;
	char args[80], limit[24];
	enum ops_code code = query_integer(&request->query, "rows", 0, UINT32_MAX, &rows, error);

	snprintf(limit, sizeof(limit), "%lld", (long long)rows);
	for (size_t i = 0; !code && i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(tables[i].name, name) != 0)
			continue;
		snprintf(args, sizeof(args), "{\"limit\": %s%s}", rows ? limit : "null", tables[i].option);
		options.args = args;
		return ops_query(&(struct ops_run){.ranks = &worker, .count = 1}, tables[i].query, &options, ret_text, ret_size, error);
	}
	return code ? code : request_fail(request, 404, error, "table '%.80s' does not exist", name);
}

/* --- roofline ------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_roofline(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	static const char *const kinds[] = {
		[OPS_ROOFLINE_OPERATOR] = "operator", [OPS_ROOFLINE_SHAPE] = "shape", [OPS_ROOFLINE_KERNEL] = "kernel",
		[OPS_ROOFLINE_LINE] = "line", [OPS_ROOFLINE_MODULE] = "module"};
	const struct ops_string *by = query_find(&request->query, "by"), *roof = query_find(&request->query, "roof");
	struct ops_roofline_options options = {.format = OPS_FORMAT_JSON, .roof = roof ? roof->bytes : NULL};
	int kind = 0;
	int64_t rows = 0;
	enum ops_code code = query_integer(&request->query, "rows", 0, UINT32_MAX, &rows, error);

	while (by && kind <= OPS_ROOFLINE_MODULE && strcmp(kinds[kind], by->bytes) != 0)
		kind++;
	if (kind > OPS_ROOFLINE_MODULE)
		return ops_fault(error, OPS_INVALID, "'by' is operator, shape, kernel, line or module");
	options.by = (enum ops_roofline_by)kind;
	options.rows_max = (size_t)rows;
	return code ? code : ops_roofline(request_trace(request, 0), &options, ret_text, ret_size, error);
}

const struct route view_routes[] = {
	{.path = "traces/{id}/views", .parameters = "parts,rules", .answer = answer_views, .select = select_views, .slow = true,
	 .by_steps = true},
	{.path = "traces/{id}/tables/{table}", .parameters = "rows", .answer = answer_table, .slow = true, .by_steps = true},
	{.path = "traces/{id}/roofline", .parameters = "by,roof,rows", .answer = answer_roofline, .slow = true, .by_steps = true},
	{0},
};
