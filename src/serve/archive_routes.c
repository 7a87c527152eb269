/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes for an archive: its tables, and the traces in it, which are written to files when they are opened.
 */
#include <limits.h>
#include <string.h>

#include <opstrobe/internal/archive.h>

#include "base/fault.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/json_writer.h"
#include "serve/api.h"
#include "serve/archive.h"

/* Asks the archive's process; the question has the parameters of the request. */
static enum ops_code query_archive(struct request *request, const char *question, const char *trace, struct ops_buffer *reply,
                         struct ops_error *error)
{
	struct ops_buffer text = {0};
	struct ops_json_writer json = {.out = &text};
	enum ops_code code;

	ops_json_open(&json, '{');
	ops_json_member_text(&json, "question", question);
	if (trace)
		ops_json_member_text(&json, "trace", trace);
	for (size_t i = 0; i < request->query.parameter_count; i++) {
		ops_json_key_of(&json, request->query.parameters[i].name.bytes, request->query.parameters[i].name.size);
		ops_json_text(&json, request->query.parameters[i].value.bytes, request->query.parameters[i].value.size);
	}
	ops_json_close(&json, '}');
	code = text.failed ? ops_fault_memory(error)
	                   : archive_request(request->api->archive, (struct ops_string){text.bytes, text.size}, reply, error);
	ops_buffer_release(&text);
	return code;
}

/* Without an archive the table is empty. */
static enum ops_code answer_archive_table(struct request *request, const char *id, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_string rows = {"[]", 2};
	struct ops_buffer reply = {0};
	enum ops_code code = OPS_OK;

	if (request->api->archive)
		code = query_archive(request, id, NULL, &reply, error);
	if (!code && reply.size)
		ops_json_find_member((struct ops_string){reply.bytes, reply.size}, "rows", &rows);
	if (!code)
		code = ops_archive_table(id, rows, OPS_FORMAT_JSON, 0, 0, ret_text, ret_size, error);
	ops_buffer_release(&reply);
	return code;
}

static enum ops_code answer_archive(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return answer_archive_table(request, "archive_traces", ret_text, ret_size, error);
}

static enum ops_code answer_trend(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return answer_archive_table(request, "archive_trend", ret_text, ret_size, error);
}

static enum ops_code answer_causes(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return answer_archive_table(request, "archive_causes", ret_text, ret_size, error);
}

static enum ops_code answer_steps(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return answer_archive_table(request, "archive_steps", ret_text, ret_size, error);
}

/* Writes the id that the file has in the list of traces. */
static enum ops_code write_id(struct request *request, const char *path, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer text = {0};
	struct ops_json_writer json = {.out = &text};
	char id[TRACE_ID_SIZE + 1];

	if (!catalog_rescan(request->api->catalog))
		return ops_fault_memory(error);
	if (!catalog_find_id(request->api->catalog, path, id))
		return ops_fault(error, OPS_IO, "'%s' is not in the list of traces", path);
	ops_json_open(&json, '{');
	ops_json_member_text(&json, "id", id);
	ops_json_close(&json, '}');
	return ops_buffer_detach(&text, text.failed ? ops_fault_memory(error) : OPS_OK, ret_text, ret_size, error);
}

static enum ops_code answer_archived(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const char *trace = request->query.segments[4].bytes;
	struct ops_buffer reply = {0}, path = {0};
	struct ops_string value;
	enum ops_code code;

	if (!request->api->archive)
		return request_fail(request, 404, error, "trace '%.80s' does not exist", trace);
	code = query_archive(request, "trace", trace, &reply, error);
	if (code == OPS_INVALID)
		request->status = 404;
	if (!code && ops_json_find_member((struct ops_string){reply.bytes, reply.size}, "path", &value))
		ops_json_decode_value(&path, value);
	ops_buffer_append(&path, "", 1);
	if (!code)
		code = path.failed ? ops_fault_memory(error) : write_id(request, path.bytes, ret_text, ret_size, error);
	ops_buffer_release(&reply);
	ops_buffer_release(&path);
	return code;
}

const struct route archive_routes[] = {
	{.path = "archive", .parameters = "", .answer = answer_archive, .unstable = true},
	{.path = "archive/trend", .parameters = "metric,by,job", .answer = answer_trend, .unstable = true},
	{.path = "archive/causes", .parameters = "metric,by,job,key", .answer = answer_causes, .unstable = true},
	{.path = "archive/steps", .parameters = "job,run", .answer = answer_steps, .unstable = true},
	{.path = "archive/traces/{in_archive}", .parameters = "", .answer = answer_archived, .unstable = true},
	{0},
};
