/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns a part to each row, by kind and name, and builds the rest of the model.
 */
#include <string.h>

#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/text.h"
#include "derive/extent.h"
#include "derive/operators.h"
#include "derive/steps.h"
#include "derive/work.h"
#include "trace/derived.h"

/* --- names ---------------------------------------------------------------------------------------------------------- */

/* Returns true if a kernel of that name communicates, whatever launched it. */
static bool view_model_communicates(const struct ops_policy *policy, struct ops_string name)
{
	switch (policy->classes) {
	case OPS_CLASS_BY_COLLECTIVE:
		return false;
	case OPS_CLASS_BY_PREFIX:
		return ops_work_of_prefix(name) == OPS_WORK_COMMUNICATION;
	default:
		return ops_work_of_name(name) == OPS_WORK_COMMUNICATION;
	}
}

static uint16_t name_bits(const struct ops_policy *policy, struct ops_string name)
{
	static const uint16_t collectives[] = {[OPS_COLLECTIVE_DEVICE] = VIEW_NAME_NCCL, [OPS_COLLECTIVE_HOST] = VIEW_NAME_GLOO};
	const struct operator_row *operator = &operator_rows[operator_find(name)];
	uint16_t bits = VIEW_NAME_KNOWN;
	int64_t number;

	if (ops_step_number(name, &number))
		bits |= VIEW_NAME_STEP;
	if (ops_is_batch_name(name))
		bits |= VIEW_NAME_LOADER;
	if (ops_string_starts(name, "Optimizer."))
		bits |= VIEW_NAME_OPTIMIZER | (ops_string_starts(name, "Optimizer.step") ? VIEW_NAME_OPTIMIZER_STEP : 0);
	if (!policy->few_collectives || ops_is_few_collective(name))
		bits |= collectives[ops_collective_of(name)];
	if (ops_string_is(name, "DataParallel.forward"))
		bits |= VIEW_NAME_DP;
	if (ops_string_is(name, "DistributedDataParallel.forward"))
		bits |= VIEW_NAME_DDP;
	if (ops_string_starts(name, "aten::empty"))
		bits |= VIEW_NAME_EMPTY;
	if (ops_string_starts(name, "[pl][profile]"))
		bits |= VIEW_NAME_LIGHTNING_HOOK;
	if (view_model_communicates(policy, name))
		bits |= VIEW_NAME_COMMUNICATES;
	if (operator_fits_tensor_cores(operator))
		bits |= operator->flags & OPERATOR_IN_PLUGIN ? VIEW_NAME_ELIGIBLE : policy->few_tensor_operators ? 0 : VIEW_NAME_ELIGIBLE_SINCE;
	return bits;
}

static uint16_t view_model_name_of(struct ops_views *views, uint32_t string)
{
	if (!views->names[string])
		views->names[string] = name_bits(views->policy, ops_trace_string(views->trace, string));
	return views->names[string];
}

/* --- parts ---------------------------------------------------------------------------------------------------------- */

static uint8_t part_of_operator(const struct ops_views *views, uint16_t name)
{
	if (name & VIEW_NAME_STEP)
		return VIEW_STEP;
	if (name & VIEW_NAME_LOADER)
		return VIEW_LOADER;
	if (name & VIEW_NAME_OPTIMIZER_STEP)
		return VIEW_OPTIMIZER;
	if (views->modules == OPS_MODULES_LIGHTNING && (name & VIEW_NAME_LIGHTNING_HOOK))
		return VIEW_LIGHTNING_HOOK;
	return VIEW_OPERATOR;
}

static uint8_t part_of_function(const struct ops_views *views, uint32_t row)
{
	const struct ops_events *events = views->events;

	if (events->category && events->category[row] != OPS_NONE)
		return VIEW_OLD_PYTHON; /* the kind has only one other category */
	return views->modules == OPS_MODULES_LIGHTNING ? VIEW_NOTHING : VIEW_FUNCTION;
}

static uint8_t part_of(struct ops_views *views, uint32_t row)
{
	uint16_t name = view_model_name_of(views, views->events->name[row]);
	uint8_t part;

	if (ops_is_module_call(views->trace, views->modules, row))
		return VIEW_MODULE;
	switch (views->events->kind[row]) {
	case OPS_EVENT_CPU_OP:
		return part_of_operator(views, name);
	case OPS_EVENT_USER_ANNOTATION:
		part = part_of_operator(views, name);
		return part == VIEW_OPERATOR || part == VIEW_LIGHTNING_HOOK ? VIEW_LABEL : part;
	case OPS_EVENT_GPU_USER_ANNOTATION: /* no host time */
		return views->policy->steps_on_devices && (name & VIEW_NAME_STEP) ? VIEW_STEP : VIEW_DEVICE_LABEL;
	case OPS_EVENT_PYTHON_FUNCTION:
		return part_of_function(views, row);
	case OPS_EVENT_DRIVER: /* also launches kernels */
		return views->policy->no_driver_calls ? VIEW_NOTHING : VIEW_LAUNCH;
	case OPS_EVENT_RUNTIME:
		return VIEW_LAUNCH;
	case OPS_EVENT_KERNEL:
		return VIEW_KERNEL;
	case OPS_EVENT_GPU_MEMCPY:
		return VIEW_COPY;
	case OPS_EVENT_GPU_MEMSET:
		return VIEW_FILL;
	case OPS_EVENT_TRACE:
		return VIEW_WINDOW;
	default:
		return VIEW_NOTHING;
	}
}

static void include_time(struct ops_views *views, int64_t start_ns, int64_t end_ns)
{
	if (views->parsed++ == 0 || start_ns < views->first_ns)
		views->first_ns = start_ns;
	if (views->parsed == 1 || end_ns > views->last_ns)
		views->last_ns = end_ns;
}

/* Records facts about the complete trace that follow from a name. */
static void view_model_mark(struct ops_views *views, uint8_t part, uint16_t name)
{
	views->has_launches |= part == VIEW_LAUNCH;
	views->has_kernels |= part == VIEW_KERNEL;
	views->has_copies |= part == VIEW_COPY || part == VIEW_FILL;
	views->has_modules |= part == VIEW_MODULE;
	if (part == VIEW_OPERATOR || part == VIEW_LABEL) {
		views->has_nccl |= (name & VIEW_NAME_NCCL) != 0;
		views->has_gloo |= (name & VIEW_NAME_GLOO) != 0;
		views->has_dp |= (name & VIEW_NAME_DP) != 0;
		views->has_ddp |= (name & VIEW_NAME_DDP) != 0;
	}
}

static void find_parts(struct ops_views *views)
{
	const struct ops_events *events = views->events;
	const struct ops_memory_record *records;
	size_t count;

	for (uint32_t row = 0; row < events->count; row++) {
		uint8_t part = part_of(views, row);

		views->parts[row] = part;
		/* The TensorBoard plugin does not count driver calls, and this count has to agree with it. */
		if (part == VIEW_NOTHING || events->kind[row] == OPS_EVENT_DRIVER) {
			view_model_mark(views, part, 0);
			continue;
		}
		view_model_mark(views, part, views->names[events->name[row]]);
		include_time(views, events->start_ns[row], events->end_ns[row]);
	}
	views->has_collectives = views->has_nccl || views->has_gloo;
	records = ops_trace_memory(views->trace, &count);
	for (size_t i = 0; i < count; i++)
		if (!records[i].out_of_memory)
			include_time(views, records[i].time_ns, records[i].time_ns);
}

/* --- model ---------------------------------------------------------------------------------------------------------- */

bool ops_views_init(struct ops_views *views, const struct ops_trace *trace, enum ops_rules rules)
{
	const struct ops_events *events = ops_trace_events(trace);

	*views = (struct ops_views){.trace = trace, .policy = ops_policy_of(rules), .events = events, .base_ns = ops_trace_info(trace)->base_ns,
	                            .modules = ops_module_source(trace)};
	views->names = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, sizeof(*views->names));
	views->parts = ops_alloc_zeroed(events->count + 1, sizeof(*views->parts));
	views->node_of = ops_realloc_array(NULL, events->count + 1, sizeof(*views->node_of));
	if (!views->names || !views->parts || !views->node_of)
		return false;
	find_parts(views);
	if (!view_tree_build(views) || !view_launches_link(views) || !view_devices_read(views) ||
	    !view_kernels_describe(views) || !view_collectives_find(views))
		return false;
	view_tree_sum(views);
	return view_steps_find(views);
}

void ops_views_forget_nodes(struct ops_views *views)
{
	ops_free(views->node_of);
	views->node_of = NULL;
	OPS_ARRAY_RELEASE(&views->nodes);
}

static void free_views(void *object)
{
	ops_views_release(object);
	ops_free(object);
}

static size_t view_model_bytes_of(const struct ops_views *views)
{
	return sizeof(*views) + views->events->count * (sizeof(*views->parts) + sizeof(*views->node_of)) +
	       views->nodes.count * sizeof(*views->nodes.items) + views->launches.count * sizeof(*views->launches.items) +
	       views->device_events.count * sizeof(*views->device_events.items);
}

static void view_model_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct ops_views *views = ops_alloc_zeroed(1, sizeof(*views));

	if (views && ops_views_init(views, trace, OPS_RULES_OPSTROBE))
		*ret_made = (struct ops_derived_object){views, free_views, view_model_bytes_of(views)};
	else if (views)
		free_views(views);
}

const struct ops_views *ops_views_open(struct ops_views *own, const struct ops_trace *trace, enum ops_rules rules, bool keep)
{
	*own = (struct ops_views){0};
	if (rules == OPS_RULES_OPSTROBE && (keep || ops_trace_derived(trace, OPS_DERIVED_VIEWS)))
		return ops_trace_derive(trace, OPS_DERIVED_VIEWS, view_model_derive);
	return ops_views_init(own, trace, rules) ? own : NULL;
}

void ops_views_forget_trace(struct ops_views *views)
{
	ops_views_forget_nodes(views);
	ops_free(views->names);
	ops_free(views->parts);
	ops_intern_release(&views->texts);
	views->names = NULL;
	views->parts = NULL;
	views->trace = NULL;
	views->events = NULL;
	views->host_steps = NULL;
	OPS_ARRAY_RELEASE(&views->launches);
	OPS_ARRAY_RELEASE(&views->device_events);
	OPS_ARRAY_RELEASE(&views->kernels);
	ops_groups_release(&views->gpu_kernels);
	ops_map_release(&views->device_of);
	ops_intervals_release(&views->all_kernels);
	for (int i = 0; i < VIEW_TIME_COUNT; i++)
		ops_intervals_release(&views->times[i]);
}

void ops_views_release(struct ops_views *views)
{
	ops_views_forget_trace(views);
	OPS_ARRAY_RELEASE(&views->steps);
	OPS_ARRAY_RELEASE(&views->collectives);
	OPS_ARRAY_RELEASE(&views->devices);
	OPS_ARRAY_RELEASE(&views->gpus);
	OPS_ARRAY_RELEASE(&views->used);
	ops_intervals_release(&views->ranges);
}

bool view_main_track(const struct ops_views *views, uint32_t *ret_track)
{
	bool has_steps = views->host_steps->list.count > 0;

	*ret_track = has_steps ? views->host_steps->list.items[0].track : OPS_NONE;
	return has_steps || (ops_busiest_thread(views->trace, true, ret_track) &&
	                     (*ret_track != OPS_NONE || ops_busiest_thread(views->trace, false, ret_track)));
}
