/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of device work.
 */
#ifndef OPS_DERIVE_WORK_H
#define OPS_DERIVE_WORK_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "trace/collectives.h"

enum ops_work {
	OPS_WORK_COMPUTE,
	OPS_WORK_COMMUNICATION,
	OPS_WORK_COPY,
	OPS_WORK_SET,
	OPS_WORK_SYNC,  /* a wait of the device: not work */
	OPS_WORK_OTHER, /* not work of the device: calls and jobs that some devices show on their rows */
};

/* Classifies by name alone, which suffices for kernels and copies. */
enum ops_work ops_work_of_name(struct ops_string name);
/* Classifies by the kind of the event (enum ops_event_kind), which identifies copies, fills and waits, and by its
 * name. */
enum ops_work ops_work_of(uint8_t kind, struct ops_string name);
/* Classifies as Holistic Trace Analysis does: by the beginning of the name, regardless of the kind. */
enum ops_work ops_work_of_prefix(struct ops_string name);

#endif
