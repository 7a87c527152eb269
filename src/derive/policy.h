/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the definitions of the reference implementations differ from Opstrobe's: one place for all surfaces. A property
 * that is not set is Opstrobe's definition.
 */
#ifndef OPS_DERIVE_POLICY_H
#define OPS_DERIVE_POLICY_H

#include <stdbool.h>

#include <opstrobe/internal/rules.h>
#include <opstrobe/trace.h>

#include "base/map.h"

/* What the class of device work is taken from. */
enum ops_class_source {
	OPS_CLASS_BY_KIND_AND_NAME, /* derive/work.h */
	OPS_CLASS_BY_COLLECTIVE,    /* a kernel communicates if it has the external id of a collective's call */
	OPS_CLASS_BY_PREFIX,        /* by the beginning of the name, regardless of the kind */
};

struct ops_policy {
	enum ops_class_source classes;
	bool only_marked_steps;    /* no steps are derived */
	bool steps_on_devices;     /* copies of steps on the rows of devices are steps, too */
	bool no_driver_calls;      /* calls of the driver launch nothing, and take no time */
	bool links_by_id;          /* a call belongs to the first operator with its external id, not to the one around it */
	bool drops_overlapping;    /* of operators of a thread that overlap only in part, the later one does not count */
	bool few_collectives;      /* only the five operations of NCCL and Gloo that torch had in 2021 are collectives */
	bool host_calls_count;     /* the host's call of a collective is part of its time, and of communication */
	bool labels_compute;       /* time in a range counts as operators', even if none runs */
	bool breakdown_restarts;   /* if devices are never idle in steps, further categories get their complete time */
	bool few_tensor_operators; /* only the operators of 2021 could use tensor cores */
	bool plugin_names;         /* names for what has none are those of the plugin's code */
	bool streams_by_argument;  /* events with the argument `stream` are on the device */
	bool no_empty_steps;       /* steps without duration have no events */
	bool only_launched_work;   /* device work whose launch is not in the trace belongs to no step */
	bool threads_by_name;      /* critical path: threads are the same one by names of operators */
};

const struct ops_policy *ops_policy_of(enum ops_rules rules);

/* Returns true if a row of the host is a collective by a policy with `few_collectives`. */
bool ops_is_few_collective(struct ops_string name);
/* Finds the external ids of the collectives' calls, for OPS_CLASS_BY_COLLECTIVE. The caller releases the map, also on
 * failure. Returns false if out of memory. */
bool ops_collective_ids(const struct ops_trace *trace, struct ops_map *ret_ids);

#endif
