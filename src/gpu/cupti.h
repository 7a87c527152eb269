/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector for CUDA: activity records of CUPTI, decoded on a separate thread.
 */
#ifndef OPS_GPU_CUPTI_H
#define OPS_GPU_CUPTI_H

#include "gpu/intake.h"

/* The only one of a process; static. Its start returns OPS_UNSUPPORTED without a driver or libcupti,
 * OPS_BUSY while it collects, and OPS_STATE if CUPTI refuses, for example because of another CUDA profiler. A copy may have a
 * struct ops_cuda_sampling as its `self`, which only the start reads. */
const struct ops_device_collector *ops_cupti_collector(void);

#endif
