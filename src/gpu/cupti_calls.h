/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the CUDA calls that get a row. Like Kineto: calls of the runtime, except for a few that programs make very often; of
 * the driver, calls that launch work, which compiled code makes, and calls that manage memory.
 */
#ifndef OPS_GPU_CUPTI_CALLS_H
#define OPS_GPU_CUPTI_CALLS_H

#include "gpu/cupti_library.h"

bool ops_cupti_call_is_shown(CUpti_CallbackDomain domain, CUpti_CallbackId id);
/* Disables recording of frequent calls that are not shown, to avoid their overhead. Must be called after cuptiActivityEnable for
 * their kind, which enables all of them. */
void ops_cupti_calls_quieten(const struct ops_cupti *library, CUpti_ActivityKind kind);

#endif
