/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes for the list of traces, and for the output of the commands `info`, `analyze`, `advise` and `diff`.
 */
#include <string.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/analyses.h>
#include <opstrobe/version.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "serve/api.h"
#include "serve/assets.h"

static enum ops_code answer_server(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	(void)request;
	ops_json_open(&json, '{');
	ops_json_member_text(&json, "name", "opstrobe");
	ops_json_member_text(&json, "version", OPS_VERSION);
	ops_json_member_text(&json, "build", assets_build_id());
	ops_json_key(&json, "viewer");
	ops_json_bool(&json, assets_have_viewer());
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

/* `summaries` is "all", the id of a trace (for those in its directory), or "known". */
static enum ops_code answer_traces(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *summaries = query_find(&request->query, "summaries");
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	if (summaries && strcmp(summaries->bytes, "known") != 0 &&
	    !catalog_summarize(request->api->catalog, strcmp(summaries->bytes, "all") ? summaries->bytes : NULL))
		return ops_fault_memory(error);
	ops_json_open(&json, '{');
	catalog_write(request->api->catalog, summaries != NULL, &json);
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

/* --- the traces of a request ---------------------------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
static struct ops_rank *ranks_of(const struct request *request)
{
	struct ops_rank *ranks = ops_realloc_array(NULL, request->trace_count, sizeof(*ranks));

	for (size_t i = 0; ranks && i < request->trace_count; i++)
		ranks[i] = (struct ops_rank){.trace = request_trace(request, i), .rank = -1, .path = request->traces[i]->path,
		                             .name = request->traces[i]->worker, .span = request->traces[i]->span};
	return ranks;
}

static enum ops_code answer_summary(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return catalog_summary(request->traces[0], ret_text, ret_size, error);
}

/* --- analyses ------------------------------------------------------------------------------------------------------- */

/* Only the command may have an option that names an output directory. */
#define OUTPUT_OPTION "output_dir"

static bool is_offered(const struct ops_query_info *analysis)
{
	return strcmp(analysis->id, "trace_with_counters") != 0; /* it only writes files */
}

static void write_options(const struct ops_query_info *analysis, struct ops_json_writer *json)
{
	ops_json_key(json, "options");
	ops_json_open(json, '[');
	for (const struct ops_query_option *option = analysis->options; option->name; option++) {
		if (!strcmp(option->name, OUTPUT_OPTION))
			continue;
		ops_json_open(json, '{');
		ops_json_member_text(json, "name", option->name);
		ops_json_key(json, "default");
		ops_json_raw(json, option->default_value, strlen(option->default_value));
		ops_json_member_text(json, "summary", option->summary);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static enum ops_code answer_analyses(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	size_t count;
	const struct ops_query_info *analyses = ops_analyses(&count);

	(void)request;
	ops_json_open(&json, '{');
	ops_json_key(&json, "analyses");
	ops_json_open(&json, '[');
	for (size_t i = 0; i < count; i++) {
		if (!is_offered(&analyses[i]))
			continue;
		ops_json_open(&json, '{');
		ops_json_member_text(&json, "id", analyses[i].id);
		ops_json_member_text(&json, "summary", analyses[i].summary);
		ops_json_member_text(&json, "traces", analyses[i].inputs == OPS_QUERY_PAIR ? "pair" : "ranks");
		ops_json_member_bool(&json, "needs_device_work", ops_analysis_needs_device_work(&analyses[i]));
		ops_json_member_bool(&json, "reads_other_files", ops_analysis_reads_other_files(&analyses[i]));
		write_options(&analyses[i], &json);
		ops_json_close(&json, '}');
	}
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

static enum ops_code trace_routes_check_args(const char *args, struct ops_error *error)
{
	struct ops_string value;
	enum ops_code code = ops_json_validate(args, strlen(args), error);

	if (code)
		return ops_fault_context(error, code, "args");
	if (ops_json_find_member(ops_string_of(args), OUTPUT_OPTION, &value))
		return ops_fault(error, OPS_INVALID, "the server does not write files");
	return OPS_OK;
}

static enum ops_code run_analysis(const struct request *request, const char *id, const struct ops_query_options *options,
                                  char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_rank *ranks = ranks_of(request);
	enum ops_code code;

	if (!ranks)
		return ops_fault_memory(error);
	if (ops_query_find(id)->inputs != OPS_QUERY_PAIR)
		ops_number_ranks(ranks, request->trace_count);
	code = ops_query(&(struct ops_run){.ranks = ranks, .count = request->trace_count}, id, options, ret_text, ret_size, error);
	ops_free(ranks);
	return code;
}

static enum ops_code answer_analysis(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *args = query_find(&request->query, "args"), *rounding = query_find(&request->query, "rounding");
	const char *id = request->query.segments[5].bytes;
	const struct ops_query_info *analysis = ops_analysis_find(id);
	struct ops_query_options options = {.size = sizeof(options), .args = args ? args->bytes : NULL};
	enum ops_code code = OPS_OK;

	if (!analysis || !is_offered(analysis))
		return request_fail(request, 404, error, "analysis '%.80s' does not exist", id);
	if (rounding && strcmp(rounding->bytes, "ns") != 0 && strcmp(rounding->bytes, "us") != 0)
		return ops_fault(error, OPS_INVALID, "'rounding' is ns or us");
	options.round_to_us = rounding && !strcmp(rounding->bytes, "us");
	if (args)
		code = trace_routes_check_args(args->bytes, error);
	return code ? code : run_analysis(request, id, &options, ret_text, ret_size, error);
}

static enum ops_code answer_info(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return run_analysis(request, "info", NULL, ret_text, ret_size, error);
}

/* --- advice, differences -------------------------------------------------------------------------------------------- */

static enum ops_code answer_advice(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_rank *ranks = ranks_of(request);
	enum ops_code code;

	if (!ranks)
		return ops_fault_memory(error);
	code = ops_advise(ranks, request->trace_count, OPS_FORMAT_JSON, ret_text, ret_size, error);
	ops_free(ranks);
	return code;
}

static enum ops_code answer_distributed(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_rank *ranks = ranks_of(request);
	enum ops_code code;

	if (!ranks)
		return ops_fault_memory(error);
	code = ops_distributed_json(ranks, request->trace_count, ret_text, ret_size, error);
	ops_free(ranks);
	return code;
}

static enum ops_code answer_diff(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_string *name = query_find(&request->query, "rules");
	struct ops_diff_options options = {.format = OPS_FORMAT_JSON};
	enum ops_code code = ops_rules_parse(name ? name->bytes : NULL, &options.rules, error);

	if (!code && request->trace_count != 2)
		code = ops_fault(error, OPS_INVALID, "'base' is missing");
	return code ? code : ops_diff(request_trace(request, 1), request_trace(request, 0), &options, ret_text, ret_size, NULL, error);
}

const struct route trace_routes[] = {
	{.path = "", .parameters = "", .answer = answer_server},
	{.path = "traces", .parameters = "summaries", .answer = answer_traces, .unstable = true},
	{.path = "analyses", .parameters = "", .answer = answer_analyses},
	{.path = "traces/{id}/summary", .parameters = "", .answer = answer_summary, .slow = true},
	{.path = "traces/{id}/info", .parameters = "", .answer = answer_info, .slow = true},
	{.path = "traces/{ids}/advice", .parameters = "", .answer = answer_advice, .slow = true},
	{.path = "traces/{ids}/distributed", .parameters = "", .answer = answer_distributed, .slow = true, .by_steps = true},
	{.path = "traces/{ids}/analyses/{analysis}", .parameters = "args,rounding", .answer = answer_analysis, .slow = true,
	 .by_steps = true},
	{.path = "traces/{id}/diff", .parameters = "base,rules", .answer = answer_diff, .slow = true, .by_steps = true},
	{0},
};
