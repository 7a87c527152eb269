/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of stacks, modules and memory.
 */
#include <string.h>

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "serve/api.h"

/* --- stacks --------------------------------------------------------------------------------------------------------- */

/* Reads whether a parameter is the second of its two values; the first is the default. */
static enum ops_code read_flame_switch(const struct request *request, const char *name, const char *first, const char *second,
                                 bool *ret_second, struct ops_error *error)
{
	const struct ops_string *value = query_find(&request->query, name);

	*ret_second = value && !strcmp(value->bytes, second);
	if (value && !*ret_second && strcmp(value->bytes, first) != 0)
		return ops_fault(error, OPS_INVALID, "'%s' is %s or %s", name, first, second);
	return OPS_OK;
}

static enum ops_code read_flame_metric(const struct request *request, enum ops_stack_metric *ret_metric, struct ops_error *error)
{
	static const char *const names[] = {"self_cpu", "self_device", "sampled"}; /* in the order of the enumeration */
	const struct ops_string *value = query_find(&request->query, "metric");
	size_t metric = 0;

	while (value && metric < sizeof(names) / sizeof(names[0]) && strcmp(value->bytes, names[metric]) != 0)
		metric++;
	if (metric == sizeof(names) / sizeof(names[0]))
		return ops_fault(error, OPS_INVALID, "'metric' is self_cpu, self_device or sampled");
	*ret_metric = (enum ops_stack_metric)metric;
	return OPS_OK;
}

static enum ops_code read_flame_choices(const struct request *request, struct ops_flame_choices *ret_choices, int64_t *frames,
                                        struct ops_error *error)
{
	enum ops_code code = query_integer(&request->query, "frames", 1, 200000, frames, error);

	*ret_choices = (struct ops_flame_choices){0};
	if (!code)
		code = read_flame_metric(request, &ret_choices->metric, error);
	if (!code)
		code = read_flame_switch(request, "backward", "under_forward", "as_run", &ret_choices->backward_as_run, error);
	if (!code)
		code = read_flame_switch(request, "wrappers", "fold", "keep", &ret_choices->keep_wrappers, error);
	if (!code)
		code = read_flame_switch(request, "waits", "leave_out", "keep", &ret_choices->keep_waits, error);
	return code;
}

static enum ops_code make_flame(const struct ops_trace *trace, const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                struct ops_error *error)
{
	struct ops_event_list events = {0};
	struct ops_rows rows;
	enum ops_code code;

	if (choices->metric == OPS_STACKS_SAMPLED)
		return ops_flame_sampled_new(trace, choices, ret_flame, error);
	code = ops_event_list_init(&events, trace, false, error);
	rows = ops_rows_of_events(&events);
	if (!code)
		code = ops_flame_new(trace, NULL, &rows, choices, ret_flame, error);
	ops_event_list_release(&events);
	return code;
}

static enum ops_code answer_stacks(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_flame_choices choices;
	struct ops_flame *flame = NULL;
	int64_t frames = 20000;
	enum ops_code code = read_flame_choices(request, &choices, &frames, error);

	if (!code)
		code = make_flame(request_trace(request, 0), &choices, &flame, error);
	if (!code)
		code = ops_flame_json(flame, choices.metric, (size_t)frames, ret_text, ret_size, error);
	ops_flame_free(flame);
	return code;
}

/* Answers with the flame graphs of a step of both traces. */
static enum ops_code answer_stacks_diff(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_flame_choices choices;
	struct ops_flame *flame = NULL;
	int64_t frames = 20000;
	enum ops_code code = read_flame_choices(request, &choices, &frames, error);

	if (!code && request->trace_count != 2)
		code = ops_fault(error, OPS_INVALID, "'base' is missing");
	if (!code && choices.metric == OPS_STACKS_SAMPLED)
		code = ops_fault(error, OPS_INVALID, "sampled stacks of two traces cannot be compared");
	if (!code)
		code = ops_flame_diff_new(request_trace(request, 1), request_trace(request, 0), &choices, &flame, error);
	if (!code)
		code = ops_flame_json(flame, choices.metric, (size_t)frames, ret_text, ret_size, error);
	ops_flame_free(flame);
	return code;
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_modules(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_module_tree *tree = NULL;
	enum ops_code code = ops_module_tree_new(request_trace(request, 0), &tree, error);

	if (!code)
		code = ops_module_json(tree, ret_text, ret_size, error);
	ops_module_tree_free(tree);
	return code;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static int64_t origin_of(const struct served *served)
{
	return ops_timeline_origin(served->timeline);
}

/* Finds the device with that name. */
static enum ops_code tree_routes_find_device(struct request *request, const struct ops_memory_timeline *memory,
                                             struct ops_memory_device *ret_device, struct ops_error *error)
{
	const struct ops_string *wanted = request_need(request, "device", error);
	char name[OPS_MEMORY_DEVICE_ROOM];
	bool more;

	if (!wanted)
		return OPS_INVALID;
	for (more = ops_memory_next_device(memory, NULL, ret_device); more;
	     more = ops_memory_next_device(memory, ret_device, ret_device)) {
		ops_memory_device_name(*ret_device, name);
		if (!strcmp(name, wanted->bytes))
			return OPS_OK;
	}
	return request_fail(request, 404, error, "the trace has no memory of device '%.80s'", wanted->bytes);
}

typedef enum ops_code memory_function(const struct ops_memory_timeline *memory, const struct ops_memory_window *window,
                                      char **ret_text, size_t *ret_size, struct ops_error *error);

/* Parses the window: the requested steps, a range of time, or everything. */
static enum ops_code parse_window(struct request *request, struct ops_memory_window *window, struct ops_error *error)
{
	enum ops_code code = request_stretch(request, request->traces[0]->trace, &window->from_ns, &window->to_ns, error);

	if (!code && query_find(&request->query, "steps")) {
		window->from_ns -= window->origin_ns;
		window->to_ns -= window->origin_ns;
	}
	if (!code)
		code = query_integer(&request->query, "from", 0, INT64_MAX, &window->from_ns, error);
	if (!code)
		code = query_integer(&request->query, "to", window->from_ns, INT64_MAX, &window->to_ns, error);
	return code;
}

static enum ops_code tree_routes_answer_window(struct request *request, const char *limit_name, int64_t limit,
                                               memory_function *answer, char **ret_text, size_t *ret_size,
                                               struct ops_error *error)
{
	struct ops_memory_window window = {.origin_ns = origin_of(request->traces[0]), .to_ns = INT64_MAX};
	const struct ops_memory_timeline *memory;
	enum ops_code code = catalog_memory(request->traces[0], &memory, error);

	if (!code)
		code = tree_routes_find_device(request, memory, &window.device, error);
	if (!code)
		code = parse_window(request, &window, error);
	if (!code)
		code = query_integer(&request->query, limit_name, 1, 10000, &limit, error);
	window.limit = (size_t)limit;
	return code ? code : answer(memory, &window, ret_text, ret_size, error);
}

/* Answers with each device at its peak in a range of time, or at a moment. */
static enum ops_code answer_memory(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_memory_window window = {.origin_ns = origin_of(request->traces[0]), .to_ns = INT64_MAX};
	const struct ops_memory_timeline *memory;
	int64_t top = 20;
	enum ops_code code = query_integer(&request->query, "top", 0, 1000, &top, error);

	if (!code)
		code = parse_window(request, &window, error);
	if (!code && query_find(&request->query, "at")) {
		code = query_integer(&request->query, "at", 0, INT64_MAX, &window.from_ns, error);
		window.to_ns = window.from_ns;
	}
	window.limit = (size_t)top;
	if (!code)
		code = catalog_memory(request->traces[0], &memory, error);
	return code ? code : ops_memory_json(memory, &window, ret_text, ret_size, error);
}

static enum ops_code answer_curve(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return tree_routes_answer_window(request, "points", 1000, ops_memory_curve_json, ret_text, ret_size, error);
}

static enum ops_code answer_blocks(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	return tree_routes_answer_window(request, "limit", 1000, ops_memory_blocks_json, ret_text, ret_size, error);
}

const struct route tree_routes[] = {
	{.path = "traces/{id}/stacks", .parameters = "metric,backward,wrappers,waits,frames", .answer = answer_stacks, .slow = true, .by_steps = true},
	{.path = "traces/{id}/stacks/diff", .parameters = "base,metric,wrappers,waits,frames", .answer = answer_stacks_diff, .slow = true,
	 .by_steps = true},
	{.path = "traces/{id}/modules", .parameters = "", .answer = answer_modules, .slow = true, .by_steps = true},
	{.path = "traces/{id}/memory", .parameters = "top,steps,from,to,at", .answer = answer_memory, .slow = true},
	{.path = "traces/{id}/memory/curve", .parameters = "device,steps,from,to,points", .answer = answer_curve, .slow = true},
	{.path = "traces/{id}/memory/blocks", .parameters = "device,steps,from,to,limit", .answer = answer_blocks, .slow = true},
	{0},
};
