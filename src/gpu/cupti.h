/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector for CUDA: activity records of CUPTI, decoded on a thread of its own.
 */
#ifndef OPS_GPU_CUPTI_H
#define OPS_GPU_CUPTI_H

#include "gpu/intake.h"

/* The one there is in a process; static. Its start fails with OPS_UNSUPPORTED where there is no driver or no libcupti,
 * OPS_BUSY while it collects, OPS_STATE when CUPTI refuses, another profiler of CUDA being active, say. A copy may have a
 * struct ops_cuda_sampling as its `self`, which only the start looks at. */
const struct ops_device_collector *ops_cupti_collector(void);

#endif
