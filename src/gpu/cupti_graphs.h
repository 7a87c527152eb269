/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs as they are made. CUPTI tells of each node on the thread that captures it, so the reader finds the operator
 * behind it as it does for calls. A graph that is instantiated has copies of the nodes, which it tells too.
 *
 * Which node waits for which is asked of the driver when a graph is instantiated: CUPTI tells of dependencies as they are made,
 * but its headers leave open which of the two nodes waits, and whether captured ones are told. It is asked as the call
 * returns, and not when the executable graph is told of as a resource: in callbacks of calls the driver may be called
 * (CUPTI's own samples synchronise devices there, and cuptiFinalize wants the exit of one), while resources are told of
 * from within the driver. By then the copies were told, and nobody else may change the graph before the call is over.
 */
#ifndef OPS_GPU_CUPTI_GRAPHS_H
#define OPS_GPU_CUPTI_GRAPHS_H

#include "gpu/cupti_records.h"

/* Asks a subscriber's callback to be told of nodes, and of graphs that are instantiated if the set of kinds has
 * GRAPH_DEPENDENCY; where the library cannot, there are none. */
void ops_cupti_graphs_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber, uint32_t kinds);
/* What the callback was told, of a resource and of a call. Any thread. */
void ops_cupti_graphs_told(const struct ops_cupti *library, CUpti_CallbackId callback, const void *data, int64_t now_ns);
void ops_cupti_graphs_called(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback,
                             const CUpti_CallbackData *data, int64_t now_ns);
/* Adds all nodes, edges and functions of the host since the last time to what a decoder has. */
void ops_cupti_graphs_take(struct ops_cupti_decoder *decoder);

#endif
