/* SPDX-License-Identifier: Apache-2.0
 *
 * All views of a trace, or of a run's traces, in one JSON object.
 */
#include <opstrobe/views.h>

#include <string.h>

#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/fault.h"

static bool write_members(struct ops_views *views, struct ops_json_writer *json)
{
	return view_write_overview(views, json) && view_write_steps(views, json) && view_write_gpus(views, json) &&
	       view_write_tensor_cores(views, json) && view_write_operators(views, json) &&
	       view_write_call_stacks(views, json) && view_write_kernels(views, json) && view_write_memory(views, json) &&
	       view_write_modules(views, json) && view_write_communication(views, json) &&
	       view_write_recommendations(views, json);
}

static bool write_trace(const struct ops_trace *trace, struct ops_json_writer *json)
{
	struct ops_views views;
	bool done = ops_views_init(&views, trace) && write_members(&views, json);

	ops_views_release(&views);
	return done;
}

/* The text of the buffer, for the caller to free; or the buffer is released. */
static enum ops_code finish(struct ops_buffer *out, bool done, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	ops_buffer_append(out, "", 1);
	if (!done || out->failed) {
		ops_buffer_release(out);
		return ops_fault_memory(error);
	}
	*ret_text = out->bytes;
	*ret_size = out->size - 1;
	return OPS_OK;
}

enum ops_code ops_views_json(const struct ops_trace *trace, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	bool done;

	ops_json_open(&json, '{');
	done = write_trace(trace, &json);
	ops_json_close(&json, '}');
	return finish(&out, done, ret_text, ret_size, error);
}

/* --- runs ----------------------------------------------------------------------------------------------------------- */

static bool write_worker(const struct ops_worker *worker, struct ops_json_writer *json)
{
	ops_json_key(json, "worker");
	ops_json_text(json, worker->name, strlen(worker->name));
	ops_json_key(json, "span");
	if (worker->span)
		ops_json_integer(json, worker->span);
	else
		ops_json_null(json);
	return write_trace(worker->trace, json);
}

static bool write_workers(const struct ops_worker *workers, size_t count, struct ops_json_writer *json)
{
	bool done = true;

	if (count == 1)
		return write_worker(workers, json);
	ops_json_key(json, "traces");
	ops_json_open(json, '[');
	for (size_t i = 0; done && i < count; i++) {
		ops_json_open(json, '{');
		done = write_worker(&workers[i], json);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	return done;
}

/* The workers of one span, gathered in `some`. */
static enum ops_code write_span(const struct ops_worker *workers, size_t count, int64_t span, struct ops_worker *some,
                                struct ops_json_writer *json, struct ops_error *error)
{
	size_t taken = 0, size;
	enum ops_code code;
	char *text;

	for (size_t i = 0; i < count; i++)
		if (workers[i].span == span)
			some[taken++] = workers[i];
	code = ops_distributed_json(some, taken, &text, &size, error);
	if (code)
		return code;
	ops_json_raw(json, text, size);
	ops_free_views(text);
	return OPS_OK;
}

/* Spans in order of their first worker, who has them all unless the others go on without. */
static enum ops_code write_distributed(const struct ops_worker *workers, size_t count, struct ops_json_writer *json,
                                       struct ops_error *error)
{
	struct ops_worker *some = ops_realloc_array(NULL, count + 1, sizeof(*some));
	enum ops_code code = some ? OPS_OK : ops_fault_memory(error);
	size_t spans = 0;

	while (spans < count && strcmp(workers[spans].name, workers[0].name) == 0)
		spans++;
	ops_json_key(json, "distributed");
	if (spans != 1)
		ops_json_open(json, '[');
	for (size_t i = 0; !code && i < spans; i++)
		code = write_span(workers, count, workers[i].span, some, json, error);
	if (spans != 1)
		ops_json_close(json, ']');
	ops_free(some);
	return code;
}

enum ops_code ops_run_json(const struct ops_worker *workers, size_t count, char **ret_text, size_t *ret_size,
                           struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code;

	ops_json_open(&json, '{');
	code = write_workers(workers, count, &json) ? write_distributed(workers, count, &json, error)
	                                            : ops_fault_memory(error);
	ops_json_close(&json, '}');
	if (code) {
		ops_buffer_release(&out);
		return code;
	}
	return finish(&out, true, ret_text, ret_size, error);
}

void ops_free_views(char *text)
{
	ops_free(text);
}
