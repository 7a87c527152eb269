/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of CUDA graphs as they are made: CUPTI tells of each on the thread that captures it, so the reader finds the operator
 * behind it as it does for calls. A graph that is instantiated has copies of the nodes, which it tells too.
 */
#ifndef OPS_GPU_CUPTI_GRAPHS_H
#define OPS_GPU_CUPTI_GRAPHS_H

#include "gpu/cupti_library.h"
#include "record/activities.h"

/* Asks a subscriber's callback to be told of nodes; where the library cannot, there are none. */
void ops_cupti_graphs_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber);
/* What the callback was told. Any thread. */
void ops_cupti_graphs_told(const struct ops_cupti *library, CUpti_CallbackId callback, const void *data, int64_t now_ns);
/* Adds all nodes since the last time. */
void ops_cupti_graphs_take(struct ops_activities *activities);

#endif
