/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs during capture and instantiation; see cupti_graphs.h.
 */
#include "gpu/cupti_graphs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gpu/cuda_devices.h"
#include "gpu/cupti_decoder.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* graphs are created rarely, and slowly */
static OPS_ARRAY(struct ops_activity) made;
static OPS_ARRAY(struct ops_host_function) functions; /* functions called by nodes; their names are looked up at the stop, when no
                                                       * callback waits */
static uint64_t lost;

/* A runtime call makes a driver call. If both are reported, edges are added twice, which is harmless. */
static const struct ops_cupti_callback instantiating[] = {
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v10000},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithFlags_v11040},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_v12000},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_ptsz_v12000},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000},
};
#define INSTANTIATING (sizeof(instantiating) / sizeof(instantiating[0]))

/* The parameters of all these calls have a common prefix. */
typedef cuGraphInstantiateWithFlags_params parameters;
#define SAME_PLACE(type, field) _Static_assert(offsetof(type, field) == offsetof(parameters, hGraph), "parameters of calls")
SAME_PLACE(cuGraphInstantiate_params, hGraph);
SAME_PLACE(cuGraphInstantiate_v2_params, hGraph);
SAME_PLACE(cuGraphInstantiateWithParams_params, hGraph);
SAME_PLACE(cuGraphInstantiateWithParams_ptsz_params, hGraph);
SAME_PLACE(cudaGraphInstantiateWithFlags_v11040_params, graph);
SAME_PLACE(cudaGraphInstantiateWithParams_v12000_params, graph);
SAME_PLACE(cudaGraphInstantiateWithParams_ptsz_v12000_params, graph);
SAME_PLACE(cudaGraphInstantiate_v12000_params, graph);

void ops_cupti_graphs_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber, uint32_t kinds)
{
	static const struct ops_cupti_callback node_callbacks[] = {
		{CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
		{CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
	};
	bool with_edges = kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_GRAPH_DEPENDENCY);

	if (!library->cuptiGetGraphNodeId)
		return;
	if (with_edges || kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_GRAPH_NODE))
		ops_cupti_enable_callbacks(library, subscriber, node_callbacks, sizeof(node_callbacks) / sizeof(node_callbacks[0]));
	if (with_edges)
		ops_cupti_enable_callbacks(library, subscriber, instantiating, INSTANTIATING);
}

/* Adds a node that is a copy of `other` or waits for it; 0: neither. The lock is held. */
static void cupti_graphs_add(enum ops_activity_kind kind, uint64_t node, uint64_t other, int64_t now_ns)
{
	struct ops_activity *added = OPS_ARRAY_PUSH(&made);

	if (added)
		*added = (struct ops_activity){.kind = (uint8_t)kind,
		                               .start_ns = now_ns,
		                               .end_ns = now_ns,
		                               .correlation = node,
		                               .bytes = other,
		                               .thread = (uint32_t)syscall(SYS_gettid)};
	else
		lost++;
}

void ops_cupti_graphs_on_resource(const struct ops_cupti *library, CUpti_CallbackId callback, const void *data, int64_t now_ns)
{
	const CUpti_GraphData *graph = ((const CUpti_ResourceData *)data)->resourceDescriptor;
	uint64_t node, original = 0;

	if (!graph || library->cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS)
		return;
	if (callback == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED &&
	    library->cuptiGetGraphNodeId(graph->originalNode, &original) != CUPTI_SUCCESS)
		return;
	pthread_mutex_lock(&lock);
	cupti_graphs_add(OPS_ACTIVITY_GRAPH_NODE, node, original, now_ns);
	pthread_mutex_unlock(&lock);
}

static void cupti_graphs_add_edges(const struct ops_cupti *library, const struct ops_cuda_edges *edges, int64_t now_ns)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < edges->count; i++) {
		uint64_t from, to;

		if (library->cuptiGetGraphNodeId(edges->from[i], &from) == CUPTI_SUCCESS &&
		    library->cuptiGetGraphNodeId(edges->to[i], &to) == CUPTI_SUCCESS)
			cupti_graphs_add(OPS_ACTIVITY_GRAPH_DEPENDENCY, to, from, now_ns);
		else
			lost++;
	}
	pthread_mutex_unlock(&lock);
}

static void add_host_node(void *library, void *node, uint64_t address)
{
	struct ops_host_function *added = NULL;
	uint64_t id = 0;
	bool known = ((const struct ops_cupti *)library)->cuptiGetGraphNodeId(node, &id) == CUPTI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (known)
		added = OPS_ARRAY_PUSH(&functions);
	if (added)
		*added = (struct ops_host_function){.node = id, .address = address};
	else
		lost++;
	pthread_mutex_unlock(&lock);
}

void ops_cupti_graphs_on_call(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback,
                              const CUpti_CallbackData *data, int64_t now_ns)
{
	struct ops_cuda_edges edges;
	void *graph;

	if (data->callbackSite != CUPTI_API_EXIT || !ops_cupti_is_among(instantiating, INSTANTIATING, domain, callback) ||
	    *(const int *)data->functionReturnValue != CUDA_SUCCESS)
		return;
	graph = ((const parameters *)data->functionParams)->hGraph;
	ops_cuda_graph_host_nodes(graph, add_host_node, (void *)(uintptr_t)library);
	if (ops_cuda_graph_edges(graph, &edges)) {
		cupti_graphs_add_edges(library, &edges, now_ns);
		ops_cuda_edges_release(&edges);
		return;
	}
	pthread_mutex_lock(&lock);
	lost++; /* the number of edges is unknown */
	pthread_mutex_unlock(&lock);
}

/* Returns the text id of the name of the function at an address, if its library exports it; 0: none. */
static uint32_t function_name(struct ops_cupti_decoder *decoder, uint64_t address)
{
	Dl_info found;

	if (!dladdr((const void *)(uintptr_t)address, &found) || (uint64_t)(uintptr_t)found.dli_saddr != address)
		return 0; /* the address is in a function without a name */
	return ops_cupti_kernel_name(decoder, found.dli_sname);
}

void ops_cupti_graphs_flush(struct ops_cupti_decoder *decoder)
{
	struct ops_activities *activities = decoder->activities;
	__typeof__(functions) called;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < made.count; i++)
		ops_activities_add(activities, &made.items[i]);
	called = functions;
	memset(&functions, 0, sizeof(functions));
	activities->lost += lost;
	lost = 0;
	OPS_ARRAY_RELEASE(&made);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < called.count; i++) {
		called.items[i].name = function_name(decoder, called.items[i].address);
		ops_activities_host_function(activities, &called.items[i]);
	}
	OPS_ARRAY_RELEASE(&called);
}
