/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of CUDA graphs; see cupti_graphs.h.
 */
#include "gpu/cupti_graphs.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* capturing is rare, and slow by itself */
static OPS_ARRAY(struct ops_activity) nodes;
static uint64_t lost;

void ops_cupti_graphs_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber)
{
	static const struct ops_cupti_callback told[] = {
		{CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
		{CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
	};

	if (library->cuptiGetGraphNodeId)
		ops_cupti_ask(library, subscriber, told, sizeof(told) / sizeof(told[0]));
}

void ops_cupti_graphs_told(const struct ops_cupti *library, CUpti_CallbackId callback, const void *data, int64_t now_ns)
{
	const CUpti_GraphData *graph = ((const CUpti_ResourceData *)data)->resourceDescriptor;
	struct ops_activity *added;
	uint64_t node, original = 0;

	if (!graph || library->cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS)
		return;
	if (callback == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED &&
	    library->cuptiGetGraphNodeId(graph->originalNode, &original) != CUPTI_SUCCESS)
		return;
	pthread_mutex_lock(&lock);
	added = OPS_ARRAY_PUSH(&nodes);
	if (added)
		*added = (struct ops_activity){.kind = OPS_ACTIVITY_GRAPH_NODE,
		                               .start_ns = now_ns,
		                               .end_ns = now_ns,
		                               .correlation = node,
		                               .bytes = original,
		                               .thread = (uint32_t)syscall(SYS_gettid)};
	else
		lost++;
	pthread_mutex_unlock(&lock);
}

void ops_cupti_graphs_take(struct ops_activities *activities)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nodes.count; i++)
		ops_activities_add(activities, &nodes.items[i]);
	activities->lost += lost;
	lost = 0;
	OPS_ARRAY_RELEASE(&nodes);
	pthread_mutex_unlock(&lock);
}
