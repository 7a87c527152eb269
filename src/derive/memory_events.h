/* SPDX-License-Identifier: Apache-2.0
 *
 * The event that contains each memory record.
 */
#ifndef OPS_DERIVE_MEMORY_EVENTS_H
#define OPS_DERIVE_MEMORY_EVENTS_H

#include <opstrobe/trace.h>

/* Returns, by memory record, the innermost event on its thread whose closed interval contains its time, without hidden and
 * asynchronous events; OPS_NONE: none. The caller frees the list. Returns NULL if out of memory. */
uint32_t *ops_memory_events(const struct ops_trace *trace);

#endif
