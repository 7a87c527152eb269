/* SPDX-License-Identifier: Apache-2.0
 *
 * What work on a device is for.
 */
#ifndef OPS_DERIVE_WORK_H
#define OPS_DERIVE_WORK_H

#include <stdbool.h>

#include <opstrobe/trace.h>

enum ops_work {
	OPS_WORK_COMPUTE,
	OPS_WORK_COMMUNICATION,
	OPS_WORK_COPY,
	OPS_WORK_SET,
	OPS_WORK_SYNC,  /* a device waits: no work */
	OPS_WORK_OTHER, /* not the device's own: calls and jobs that some devices show on their rows */
};

/* By the name alone, as the names of kernels and copies are. */
enum ops_work ops_work_of_name(struct ops_string name);
/* With the kind of the event (enum ops_event_kind), which says what copies, fills and waits are. */
enum ops_work ops_work_of(uint8_t kind, struct ops_string name);

enum ops_collective {
	OPS_COLLECTIVE_NONE,
	OPS_COLLECTIVE_DEVICE, /* "nccl:all_reduce": kernels carry it out */
	OPS_COLLECTIVE_HOST,   /* "gloo:all_reduce": the host does */
};

/* What a row of the host with this name is: the label that a backend of torch.distributed puts around an operation. */
enum ops_collective ops_collective_of(struct ops_string name);

#endif
