/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector for CUDA: CUPTI's activity records, decoded on a separate thread.
 */
#ifndef OPS_GPU_CUPTI_H
#define OPS_GPU_CUPTI_H

#include "gpu/intake.h"

/* Returns the only collector of the process; static. Its start returns OPS_UNSUPPORTED without a driver or libcupti, OPS_BUSY
 * while it is collecting, and OPS_STATE if CUPTI refuses, for example because of another CUDA profiler. `self` of a copy may be a
 * struct ops_cuda_sampling, which only the start reads. */
const struct ops_device_collector *ops_cupti_collector(void);

#endif
