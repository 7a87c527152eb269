/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of a tree of modules (opstrobe/modules.h), for its writers.
 */
#ifndef OPS_ANALYZE_MODULE_TREE_H
#define OPS_ANALYZE_MODULE_TREE_H

#include <opstrobe/internal/modules.h>

#include "analyze/module_costs.h"
#include "base/array.h"

struct ops_module_tree {
	const struct ops_trace *trace;
	OPS_ARRAY(struct ops_module_row) rows;
	OPS_ARRAY(struct ops_module_row) classes;
	struct module_calls calls;
};

#endif
