/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured CUDA graphs. CUPTI reports each node on the thread that captures it, so the reader finds the operator of a node like
 * that of a call. An instantiated graph has copies of the nodes, which CUPTI reports too.
 *
 * The dependencies are queried from the driver when a graph is instantiated: CUPTI reports dependencies as they are made, but its
 * headers do not say which of the two nodes waits, or whether captured ones are reported. The query is made when the call
 * returns, and not in the resource callback of the executable graph: the driver may be called in callbacks of calls (CUPTI's own
 * samples synchronise devices there, and cuptiFinalize requires the exit of one), while resources are reported from inside the
 * driver. By then the copies are known, and other threads must not change the graph before the call returns.
 */
#ifndef OPS_GPU_CUPTI_GRAPHS_H
#define OPS_GPU_CUPTI_GRAPHS_H

#include "gpu/cupti_records.h"

/* Enables a subscriber's callbacks for nodes and, if `kinds` has GRAPH_DEPENDENCY, for graphs that are instantiated. Does nothing
 * if the library does not support them. */
void ops_cupti_graphs_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber, uint32_t kinds);
/* Handle the callbacks for a resource and for a call. Any thread. */
void ops_cupti_graphs_on_resource(const struct ops_cupti *library, CUpti_CallbackId callback, const void *data, int64_t now_ns);
void ops_cupti_graphs_on_call(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback,
                              const CUpti_CallbackData *data, int64_t now_ns);
/* Adds all nodes, edges and host functions since the last call to the activities of a decoder. */
void ops_cupti_graphs_flush(struct ops_cupti_decoder *decoder);

#endif
