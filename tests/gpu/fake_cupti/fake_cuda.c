/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's driver without a GPU, as far as the collector uses it: one H100, or FAKE_CUDA_DEVICES of them. The process uses the
 * first FAKE_CUDA_CONTEXTS of them, or all. Waiting fails with FAKE_CUDA_LOST. Graphs have the edges and nodes that a test sets.
 */
#include "fake_cuda.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>
#include <dlfcn.h>

#include "fake_cupti.h"

#define SHOW __attribute__((visibility("default")))

static int number(const char *variable, int default_value)
{
	const char *text = getenv(variable);

	return text ? atoi(text) : default_value;
}

SHOW CUresult CUDAAPI cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGetCount(int *count)
{
	*count = number("FAKE_CUDA_DEVICES", 1);
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDriverGetVersion(int *version)
{
	*version = number("FAKE_CUDA_VERSION", CUDA_VERSION);
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device)
{
	(void)device;
	snprintf(name, (size_t)size, "NVIDIA H100 80GB HBM3");
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = 85018279936;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} known[] = {
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
	};

	(void)device;
	*value = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].attribute == attribute)
			*value = known[i].value;
	return CUDA_SUCCESS;
}

/* --- waiting -------------------------------------------------------------------------------------------------------- */

static int retained[16]; /* by device */
static _Thread_local uint32_t current; /* device + 1; 0: none */

static bool works_on(CUdevice device)
{
	return device < number("FAKE_CUDA_CONTEXTS", number("FAKE_CUDA_DEVICES", 1));
}

SHOW CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = works_on(device);
	return CUDA_SUCCESS;
}

/* On a real one a context would be made, and take memory. */
SHOW CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	if (!works_on(device))
		abort();
	retained[device]++;
	*context = (CUcontext)(uintptr_t)(device + 1);
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	if (--retained[device] < 0)
		abort();
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context)
{
	if (current)
		abort();
	current = (uint32_t)(uintptr_t)context;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context)
{
	*context = (CUcontext)(uintptr_t)current;
	current = 0;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuCtxSynchronize(void)
{
	void *cupti = dlopen(getenv("OPSTROBE_CUPTI"), RTLD_NOW);
	__typeof__(&fake_cupti_synchronize) synchronize =
		cupti ? (__typeof__(synchronize))(uintptr_t)dlsym(cupti, "fake_cupti_synchronize") : NULL;

	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (number("FAKE_CUDA_LOST", 0))
		return CUDA_ERROR_LAUNCH_FAILED;
	if (synchronize)
		synchronize(current - 1);
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuGetErrorName(CUresult result, const char **name)
{
	*name = result == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
	return CUDA_SUCCESS;
}

/* --- graphs --------------------------------------------------------------------------------------------------------- */

static struct {
	CUgraph graph;
	CUgraphNode from;
	CUgraphNode to;
} *edges;
static size_t edge_count;
static CUresult edges_result;

SHOW void fake_cuda_add_edge(uint64_t graph, uint64_t from, uint64_t to)
{
	if ((edge_count & (edge_count - 1)) == 0 && !(edges = realloc(edges, (2 * edge_count + 1) * sizeof(*edges))))
		abort();
	edges[edge_count].graph = (CUgraph)(uintptr_t)graph;
	edges[edge_count].from = (CUgraphNode)(uintptr_t)from;
	edges[edge_count++].to = (CUgraphNode)(uintptr_t)to;
}

SHOW void fake_cuda_fail_edges(int result)
{
	edges_result = (CUresult)result;
}

/* As the header has it, nothing but the number without arrays, and what is too much of them cleared. */
SHOW CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	size_t room = *count, found = 0;

	for (size_t i = 0; i < edge_count; i++) {
		if (edges[i].graph != graph)
			continue;
		if (from && found < room) {
			from[found] = edges[i].from;
			to[found] = edges[i].to;
			data[found] = (CUgraphEdgeData){0};
		}
		found++;
	}
	*count = found;
	return edges_result;
}

#define NODES_MAX 16

static struct {
	CUgraph graph;
	CUgraphNode node;
	CUhostFn function;
} nodes[NODES_MAX];
static size_t node_count;

SHOW void fake_cuda_add_node(uint64_t graph, uint64_t node, void *function)
{
	if (node_count == NODES_MAX)
		abort();
	nodes[node_count].graph = (CUgraph)(uintptr_t)graph;
	nodes[node_count].node = (CUgraphNode)(uintptr_t)node;
	nodes[node_count++].function = (CUhostFn)(uintptr_t)function;
}

SHOW CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *ret_nodes, size_t *count)
{
	size_t room = *count, found = 0;

	for (size_t i = 0; i < node_count; i++) {
		if (nodes[i].graph != graph)
			continue;
		if (ret_nodes && found < room)
			ret_nodes[found] = nodes[i].node;
		found++;
	}
	*count = found;
	return CUDA_SUCCESS;
}

static CUhostFn function_of(CUgraphNode node)
{
	for (size_t i = 0; i < node_count; i++)
		if (nodes[i].node == node)
			return nodes[i].function;
	abort();
}

SHOW CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	*type = function_of(node) ? CU_GRAPH_NODE_TYPE_HOST : CU_GRAPH_NODE_TYPE_KERNEL;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
	if (!function_of(node))
		return CUDA_ERROR_INVALID_VALUE;
	*parameters = (CUDA_HOST_NODE_PARAMS){.fn = function_of(node)};
	return CUDA_SUCCESS;
}
