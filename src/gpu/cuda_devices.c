/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries CUDA's driver for its devices; see cuda_devices.h.
 */
#include "gpu/cuda_devices.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"

#define NAME_MAX_BYTES 256

typedef CUresult CUDAAPI cuda_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);

static struct {
	__typeof__(&cuInit) init;
	__typeof__(&cuDeviceGetCount) count;
	__typeof__(&cuDeviceGet) get;
	__typeof__(&cuDeviceGetName) name;
	__typeof__(&cuDeviceTotalMem_v2) total_memory;
	__typeof__(&cuDeviceGetAttribute) attribute;
	/* These may be NULL. */
	__typeof__(&cuDriverGetVersion) version;
	__typeof__(&cuDevicePrimaryCtxGetState) context_state;
	__typeof__(&cuDevicePrimaryCtxRetain) retain_context;
	__typeof__(&cuDevicePrimaryCtxRelease_v2) release_context;
	__typeof__(&cuCtxPushCurrent_v2) push_context;
	__typeof__(&cuCtxPopCurrent_v2) pop_context;
	__typeof__(&cuCtxSynchronize) synchronize;
	__typeof__(&cuGetErrorName) error_name;
	__typeof__(&cuGraphGetEdges_v2) edges; /* since CUDA 12.3 */
	cuda_edges *plain_edges;               /* before CUDA 12.3 */
	__typeof__(&cuGraphGetNodes) nodes;
	__typeof__(&cuGraphNodeGetType) node_type;
	__typeof__(&cuGraphHostNodeGetParams) host_parameters;

	const char *missing; /* why the driver cannot be used; NULL if it can */
	pid_t pid;           /* process that initialised it: CUDA does not work in processes forked from it */
	uint32_t devices;    /* number of devices at that time */
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cuda_devices_load(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int count = 0;

	if (!handle) {
		driver.missing = "no driver found (libcuda.so.1)";
		return;
	}
#define FIND(member, function) driver.member = (__typeof__(&function))(uintptr_t)dlsym(handle, #function)
	FIND(init, cuInit);
	FIND(count, cuDeviceGetCount);
	FIND(get, cuDeviceGet);
	FIND(name, cuDeviceGetName);
	FIND(total_memory, cuDeviceTotalMem_v2);
	FIND(attribute, cuDeviceGetAttribute);
	FIND(version, cuDriverGetVersion);
	FIND(context_state, cuDevicePrimaryCtxGetState);
	FIND(retain_context, cuDevicePrimaryCtxRetain);
	FIND(release_context, cuDevicePrimaryCtxRelease_v2);
	FIND(push_context, cuCtxPushCurrent_v2);
	FIND(pop_context, cuCtxPopCurrent_v2);
	FIND(synchronize, cuCtxSynchronize);
	FIND(error_name, cuGetErrorName);
	FIND(edges, cuGraphGetEdges_v2);
	FIND(nodes, cuGraphGetNodes);
	FIND(node_type, cuGraphNodeGetType);
	FIND(host_parameters, cuGraphHostNodeGetParams);
#undef FIND
	driver.plain_edges = (cuda_edges *)(uintptr_t)dlsym(handle, "cuGraphGetEdges");
	if (!driver.init || !driver.count || !driver.get || !driver.name || !driver.total_memory || !driver.attribute)
		driver.missing = "the driver (libcuda.so.1) lacks functions that are needed";
	else if (driver.init(0) != CUDA_SUCCESS)
		driver.missing = "the driver could not be initialised";
	else if (driver.count(&count) == CUDA_SUCCESS && count > 0)
		driver.devices = (uint32_t)count;
	driver.pid = getpid();
}

enum ops_code ops_cuda_device_count(uint32_t *ret_count, struct ops_error *error)
{
	int count = 0;

	pthread_once(&once, cuda_devices_load);
	if (driver.missing)
		return ops_fault(error, OPS_UNSUPPORTED, "%s", driver.missing);
	if (driver.pid != getpid()) {
		*ret_count = driver.devices;
		return ops_fault(error, OPS_UNSUPPORTED, "the process was forked from one that has initialised CUDA");
	}
	if (driver.count(&count) != CUDA_SUCCESS || count < 1)
		return ops_fault(error, OPS_UNSUPPORTED, "the driver reports no device");
	*ret_count = (uint32_t)count;
	return OPS_OK;
}

uint32_t ops_cuda_driver_version(void)
{
	int version = 0;

	pthread_once(&once, cuda_devices_load);
	return !driver.missing && driver.version && driver.version(&version) == CUDA_SUCCESS ? (uint32_t)version : 0;
}

uint32_t ops_cuda_runtime_version(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
	int version = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *handle = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
		__typeof__(&cudaRuntimeGetVersion) get_version =
			handle ? (__typeof__(get_version))(uintptr_t)dlsym(handle, "cudaRuntimeGetVersion") : NULL;

		if (get_version && get_version(&version) == cudaSuccess && version > 0)
			return (uint32_t)version; /* the handle is kept, since it costs nothing; the library stays loaded */
	}
	return 0;
}

/* --- waiting -------------------------------------------------------------------------------------------------------- */

/* Returns whether the process uses a device. If it does not, querying its context would create one, of hundreds of MB. */
static bool is_in_use(CUdevice device)
{
	unsigned flags;
	int active = 0;

	return driver.context_state(device, &flags, &active) == CUDA_SUCCESS && active;
}

static CUresult synchronize(CUdevice device)
{
	CUcontext context, ours;
	CUresult result = driver.retain_context(&context, device);

	if (result != CUDA_SUCCESS)
		return result;
	result = driver.push_context(context);
	if (result == CUDA_SUCCESS) {
		result = driver.synchronize();
		driver.pop_context(&ours);
	}
	driver.release_context(device);
	return result;
}

enum ops_code ops_cuda_synchronize(struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	pthread_once(&once, cuda_devices_load);
	if (driver.missing || driver.pid != getpid() || !driver.context_state || !driver.retain_context ||
	    !driver.release_context || !driver.push_context || !driver.pop_context || !driver.synchronize)
		return OPS_OK;
	for (uint32_t i = 0; i < driver.devices; i++) {
		const char *name = "an unknown error";
		CUdevice device;
		CUresult result;

		if (driver.get(&device, (int)i) != CUDA_SUCCESS || !is_in_use(device))
			continue;
		result = synchronize(device);
		if (result == CUDA_SUCCESS)
			continue;
		if (driver.error_name)
			driver.error_name(result, &name);
		code = ops_fault(error, OPS_STATE, "device %u could not be waited for: %s (%d)", i, name, (int)result);
	}
	return code;
}

/* --- properties ----------------------------------------------------------------------------------------------------- */

static uint32_t cuda_devices_attribute(CUdevice device, CUdevice_attribute which)
{
	int value = 0;

	return driver.attribute(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void put_properties(CUdevice device, uint32_t ordinal, const struct ops_multiprocessor *known,
                           struct ops_buffer *json)
{
	char name[NAME_MAX_BYTES] = "";
	size_t memory = 0;

	if (driver.name(name, sizeof(name) - 1, device) != CUDA_SUCCESS)
		name[0] = '\0';
	driver.total_memory(&memory, device);
	ops_buffer_printf(json, "{\"id\":%u,\"name\":", ordinal);
	ops_json_string(json, name, strlen(name));
	ops_buffer_printf(json, ",\"totalGlobalMem\":%zu,\"computeMajor\":%u,\"computeMinor\":%u", memory, known->compute_major,
	                  known->compute_minor);
	ops_buffer_printf(json, ",\"maxThreadsPerBlock\":%u,\"maxThreadsPerMultiprocessor\":%u,\"regsPerBlock\":%u",
	                  cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), known->threads_max,
	                  cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
	ops_buffer_printf(json, ",\"warpSize\":%u,\"sharedMemPerBlock\":%u,\"numSms\":%u", known->warp_size,
	                  cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), known->count);
	ops_buffer_printf(
		json, ",\"regsPerMultiprocessor\":%u,\"sharedMemPerBlockOptin\":%u,\"sharedMemPerMultiprocessor\":%u}",
		known->registers, cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
		known->shared_bytes);
}

void ops_cuda_device(uint32_t ordinal, struct ops_multiprocessor *ret_device, struct ops_buffer *json)
{
	CUdevice device;

	*ret_device = (struct ops_multiprocessor){0};
	if (driver.get(&device, (int)ordinal) == CUDA_SUCCESS)
		*ret_device = (struct ops_multiprocessor){
			.compute_major = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
			.compute_minor = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
			.count = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
			.warp_size = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
			.threads_max = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
			.registers = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
			.shared_bytes = cuda_devices_attribute(device,
			                                       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
			.shared_reserved_bytes = cuda_devices_attribute(device,
			                                                CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
			.blocks_max = cuda_devices_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
		};
	put_properties(device, ordinal, ret_device, json);
}

/* --- graphs --------------------------------------------------------------------------------------------------------- */

/* The newer function also reports edges of overlapping programmatic launches; the older one fails for graphs with such edges. */
static CUresult get_edges(CUgraph graph, struct ops_cuda_edges *edges, CUgraphEdgeData *data)
{
	CUgraphNode *from = (CUgraphNode *)edges->from, *to = (CUgraphNode *)edges->to;

	return driver.edges ? driver.edges(graph, from, to, data, &edges->count)
	                    : driver.plain_edges(graph, from, to, &edges->count);
}

bool ops_cuda_graph_edges(void *graph, struct ops_cuda_edges *ret_edges)
{
	struct ops_cuda_edges edges = {0};
	CUgraphEdgeData *data = NULL;
	size_t room;
	bool ok;

	pthread_once(&once, cuda_devices_load);
	if (driver.missing || (!driver.edges && !driver.plain_edges) || get_edges(graph, &edges, NULL) != CUDA_SUCCESS)
		return false;
	room = edges.count;
	edges.from = ops_realloc_array(NULL, room + 1, sizeof(*edges.from));
	edges.to = ops_realloc_array(NULL, room + 1, sizeof(*edges.to));
	data = ops_realloc_array(NULL, room + 1, sizeof(*data));
	ok = edges.from && edges.to && data && get_edges(graph, &edges, data) == CUDA_SUCCESS && edges.count <= room;
	ops_free(data);
	if (ok)
		*ret_edges = edges;
	else
		ops_cuda_edges_release(&edges);
	return ok;
}

void ops_cuda_edges_release(struct ops_cuda_edges *edges)
{
	ops_free(edges->from);
	ops_free(edges->to);
	*edges = (struct ops_cuda_edges){0};
}

/* Returns the function that a node calls on the host; 0 for a node on a device. */
static uint64_t host_function(CUgraphNode node)
{
	CUDA_HOST_NODE_PARAMS parameters = {0};
	CUgraphNodeType type;

	return driver.node_type(node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_HOST &&
	                       driver.host_parameters(node, &parameters) == CUDA_SUCCESS
	               ? (uint64_t)(uintptr_t)parameters.fn
	               : 0;
}

void ops_cuda_graph_host_nodes(void *graph, ops_cuda_host_node *callback, void *context)
{
	CUgraphNode *nodes;
	size_t room = 0, count;

	pthread_once(&once, cuda_devices_load);
	if (driver.missing || !driver.nodes || !driver.node_type || !driver.host_parameters ||
	    driver.nodes(graph, NULL, &room) != CUDA_SUCCESS)
		return;
	nodes = ops_realloc_array(NULL, room + 1, sizeof(CUgraphNode));
	count = room;
	if (!nodes || driver.nodes(graph, nodes, &count) != CUDA_SUCCESS || count > room)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t function = host_function(nodes[i]);

		if (function)
			callback(context, nodes[i], function);
	}
	ops_free(nodes);
}
