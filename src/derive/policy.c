/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of the rules, and what differs by each; see policy.h.
 */
#include "derive/policy.h"

#include <string.h>

#include "base/fault.h"
#include "base/text.h"
#include "derive/work.h"

const char *const ops_rules_names[] = {"opstrobe", "tensorboard", "hta", NULL};

enum ops_code ops_rules_parse(const char *name, enum ops_rules *ret_rules, struct ops_error *error)
{
	for (int i = 0; ops_rules_names[i]; i++)
		if (!name || !strcmp(name, ops_rules_names[i])) {
			*ret_rules = (enum ops_rules)i;
			return OPS_OK;
		}
	return ops_fault(error, OPS_INVALID, "invalid rules '%.80s' (choose from opstrobe, tensorboard, hta)", name);
}

const struct ops_policy *ops_policy_of(enum ops_rules rules)
{
	static const struct ops_policy policies[] = {
		[OPS_RULES_OPSTROBE] = {.classes = OPS_CLASS_BY_KIND_AND_NAME},
		[OPS_RULES_TENSORBOARD] = {.classes = OPS_CLASS_BY_COLLECTIVE, .only_marked_steps = true,
		                           .steps_on_devices = true, .no_driver_calls = true, .links_by_id = true,
		                           .drops_overlapping = true, .few_collectives = true, .host_calls_count = true,
		                           .labels_compute = true, .breakdown_restarts = true, .few_tensor_operators = true, .plugin_names = true},
		[OPS_RULES_HTA] = {.classes = OPS_CLASS_BY_PREFIX, .only_marked_steps = true, .streams_by_argument = true,
		                   .no_empty_steps = true, .only_launched_work = true, .threads_by_name = true},
	};

	return &policies[rules];
}

bool ops_is_few_collective(struct ops_string name)
{
	static const char *const operations[] = {"broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"};

	if (!ops_string_starts(name, "nccl:") && !ops_string_starts(name, "gloo:"))
		return false;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (ops_string_is((struct ops_string){name.bytes + 5, name.size - 5}, operations[i]))
			return true;
	return false;
}

bool ops_collective_ids(const struct ops_trace *trace, struct ops_map *ret_ids)
{
	const struct ops_events *events = ops_trace_events(trace);

	*ret_ids = (struct ops_map){0};
	for (uint32_t row = 0; events->id && row < events->count; row++) {
		struct ops_string name = ops_trace_string(trace, events->name[row]);

		if ((events->kind[row] != OPS_EVENT_CPU_OP && events->kind[row] != OPS_EVENT_USER_ANNOTATION) || !events->id[row])
			continue;
		if (ops_is_few_collective(name) && ops_collective_of(name) == OPS_COLLECTIVE_DEVICE && !ops_map_slot(ret_ids, events->id[row], row))
			return false;
	}
	return true;
}
