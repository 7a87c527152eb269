/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of CUDA are worth a row: as with Kineto, those of the runtime but for a few that programs make all the time, and of
 * the driver those that launch, as compiled code does, or manage memory.
 */
#ifndef OPS_GPU_CUPTI_CALLS_H
#define OPS_GPU_CUPTI_CALLS_H

#include "gpu/cupti_library.h"

bool ops_cupti_call_is_shown(CUpti_CallbackDomain domain, CUpti_CallbackId id);
/* Lets CUPTI not record frequent calls that are not shown, so that nobody pays for them. Behind the cuptiActivityEnable of
 * their kind, which switches all of them on. */
void ops_cupti_calls_quieten(const struct ops_cupti *library, CUpti_ActivityKind kind);

#endif
