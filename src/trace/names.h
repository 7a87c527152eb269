/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of torch's events begin with.
 */
#ifndef OPS_TRACE_NAMES_H
#define OPS_TRACE_NAMES_H

#include <opstrobe/common.h>

#include "base/text.h"

/* What autograd's engine runs around a backward node; the node's name follows. */
#define OPS_ENGINE_PREFIX "autograd::engine::evaluate_function: "
/* A call of a torch.nn.Module; "Linear_0" follows. */
#define OPS_MODULE_PREFIX "nn.Module: "
/* What Lightning's profiler puts around a module; "torch.nn.modules.linear.Linear: net.0" follows. */
#define OPS_LIGHTNING_PREFIX "[pl][module]"

static inline bool ops_is_engine_name(struct ops_string name)
{
	return ops_string_starts(name, OPS_ENGINE_PREFIX);
}

static inline bool ops_is_module_name(struct ops_string name)
{
	return ops_string_starts(name, OPS_MODULE_PREFIX);
}

#endif
