/* SPDX-License-Identifier: Apache-2.0
 *
 * All views of a trace, or of a run's traces, in one JSON object.
 */
#include <opstrobe/internal/views.h>

#include <string.h>

#include "analyze/run_trace.h"
#include "analyze/views/view_distributed.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/fault.h"

static bool view_json_write_members(const struct ops_views *views, struct ops_json_writer *json)
{
	return view_write_overview(views, json) && view_write_steps(views, json) && view_write_gpus(views, json) &&
	       view_write_tensor_cores(views, json) && view_write_operators(views, json) &&
	       view_write_call_stacks(views, json) && view_write_kernels(views, json) && view_write_categories(views, json) &&
	       view_write_memory(views, json) &&
	      	       view_write_modules(views, json) && view_write_communication(views, json) &&
	       view_write_recommendations(views, json);
}

static bool view_json_write_trace(const struct ops_trace *trace, enum ops_rules rules, struct ops_json_writer *json)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, rules, true);
	bool done = views && view_json_write_members(views, json);

	ops_views_release(&own);
	return done;
}

enum ops_code ops_views_json(const struct ops_trace *trace, enum ops_rules rules, char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	bool done;

	ops_json_open(&json, '{');
	done = view_json_write_trace(trace, rules, &json);
	ops_json_close(&json, '}');
	out.failed |= !done;
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

/* --- runs ----------------------------------------------------------------------------------------------------------- */

/* The state of a run's workers while their traces are loaded and released. */
struct run {
	struct view_worker *workers;
	struct view_worker **some; /* workers of one profiling cycle */
	size_t count;
	enum ops_rules rules;
	struct ops_error *error;
};

static bool add_worker(struct run *run, const struct ops_rank *about, const struct ops_trace *trace,
                       struct ops_json_writer *json)
{
	struct ops_views views;
	bool done = ops_views_init(&views, trace, run->rules);

	if (json) {
		ops_json_member_text(json, "worker", about->name);
		ops_json_member_if(json, "span", about->span, about->span);
		done = done && view_json_write_members(&views, json);
	}
	if (!done)
		ops_views_release(&views);
	return done && view_worker_init(&run->workers[run->count++], about, &views);
}

/* Writes each worker's own views to `json`, if given; as a list if there can be several. */
static enum ops_code add_workers(struct run *run, const struct ops_trace_source *source, const struct ops_rank *ranks,
                                 size_t count, struct ops_json_writer *json)
{
	enum ops_code code = OPS_OK;

	run->workers = ops_alloc_zeroed(count + 1, sizeof(*run->workers));
	run->some = ops_alloc_zeroed(count + 1, sizeof(*run->some));
	if (!run->workers || !run->some)
		return ops_fault_memory(run->error);
	for (size_t i = 0; !code && i < count; i++) {
		struct ops_trace *trace = NULL;

		code = ops_run_trace(ranks, source, i, &trace, run->error);
		if (code || !trace) /* a file that is not a trace */
			continue;
		if (json && count > 1)
			ops_json_open(json, '{');
		if (!add_worker(run, &ranks[i], trace, json))
			code = ops_fault_memory(run->error);
		if (json && count > 1)
			ops_json_close(json, '}');
		ops_trace_unref(trace);
	}
	return code;
}

static void view_json_release(struct run *run)
{
	for (size_t i = 0; i < run->count; i++)
		view_worker_release(&run->workers[i]);
	ops_free(run->workers);
	ops_free(run->some);
}

/* Writes the workers of one profiling cycle. */
static bool view_json_write_span(struct run *run, int64_t span, struct ops_json_writer *json)
{
	size_t taken = 0;

	for (size_t i = 0; i < run->count; i++)
		if (run->workers[i].span == span)
			run->some[taken++] = &run->workers[i];
	return view_write_distributed(run->some, taken, json);
}

/* Profiling cycles are in the order of their first worker, which has all of them unless the others continue without
 * it. */
static bool write_distributed(struct run *run, struct ops_json_writer *json)
{
	size_t spans = 0;
	bool done = true;

	while (spans < run->count && strcmp(run->workers[spans].name, run->workers[0].name) == 0)
		spans++;
	ops_json_key(json, "distributed");
	if (spans != 1)
		ops_json_open(json, '[');
	for (size_t i = 0; done && i < spans; i++)
		done = view_json_write_span(run, run->workers[i].span, json);
	if (spans != 1)
		ops_json_close(json, ']');
	return done;
}

enum ops_code ops_run_json(const struct ops_trace_source *source, const struct ops_rank *ranks, size_t count,
                           enum ops_rules rules, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	struct run run = {.rules = rules, .error = error};
	enum ops_code code;

	ops_json_open(&json, '{');
	if (count != 1) {
		ops_json_member_open(&json, "traces", '[');
	}
	code = add_workers(&run, source, ranks, count, &json);
	if (count != 1)
		ops_json_close(&json, ']');
	if (!code && !write_distributed(&run, &json))
		code = ops_fault_memory(error);
	ops_json_close(&json, '}');
	view_json_release(&run);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

enum ops_code ops_distributed_json(const struct ops_rank *ranks, size_t count, char **ret_text, size_t *ret_size,
                                   struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	struct run run = {.error = error};
	bool done = add_workers(&run, NULL, ranks, count, NULL) == OPS_OK;

	for (size_t i = 0; done && i < run.count; i++)
		run.some[i] = &run.workers[i];
	done = done && view_write_distributed(run.some, run.count, &json);
	view_json_release(&run);
	out.failed |= !done;
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
