/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels and operations that communicate, by their names.
 */
#ifndef OPS_TRACE_COLLECTIVES_H
#define OPS_TRACE_COLLECTIVES_H

#include <stdbool.h>

#include <opstrobe/common.h>

/* Returns true if a kernel of that name exchanges data with other devices. */
bool ops_communicates(struct ops_string kernel);

enum ops_collective {
	OPS_COLLECTIVE_NONE,
	OPS_COLLECTIVE_DEVICE, /* "nccl:all_reduce": kernels on the device perform it */
	OPS_COLLECTIVE_HOST,   /* "gloo:all_reduce": the host performs it */
};

/* Classifies a row of the host by its name: the label that a torch.distributed backend puts around an operation. */
enum ops_collective ops_collective_of(struct ops_string name);

#endif
