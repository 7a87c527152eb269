/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefixes of the names of torch's events.
 */
#ifndef OPS_TRACE_NAMES_H
#define OPS_TRACE_NAMES_H

#include <opstrobe/common.h>

#include "base/text.h"

/* An event of autograd's engine around a backward node; the node's name follows. */
#define OPS_ENGINE_PREFIX "autograd::engine::evaluate_function: "
/* A step; '#' and its number follow. */
#define OPS_STEP_PREFIX "ProfilerStep"
/* All calls of an import, which a recording combines to one row; the module's name follows. */
#define OPS_IMPORT_PREFIX "import "
/* A call of a torch.nn.Module; "Linear_0" follows. */
#define OPS_MODULE_PREFIX "nn.Module: "
/* An event of Lightning's profiler around a module; "torch.nn.modules.linear.Linear: net.0" follows. */
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
