/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA devices of this process, and graphs, as reported by the driver (libcuda, loaded at run time).
 */
#ifndef OPS_GPU_CUDA_DEVICES_H
#define OPS_GPU_CUDA_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"
#include "base/occupancy.h"

/* Returns the number of devices. OPS_UNSUPPORTED if the driver is missing or not usable, with the reason. In a process that was
 * forked since the first call CUDA does not work: returns the number before the fork. */
enum ops_code ops_cuda_device_count(uint32_t *ret_count, struct ops_error *error);

/* The CUDA version of the driver: 12040 is 12.4; 0 if unknown. */
uint32_t ops_cuda_driver_version(void);

/* The same of the CUDA runtime that the process has loaded. */
uint32_t ops_cuda_runtime_version(void);

/* Waits until all devices that this process works on are done with what they were given. OPS_STATE when one does not get there:
 * it is lost, say. */
enum ops_code ops_cuda_synchronize(struct ops_error *error);

/* Properties of device `ordinal`: the inputs of the occupancy, zero if the driver does not report them, and the JSON object of
 * "deviceProperties", appended to `json`. */
void ops_cuda_device(uint32_t ordinal, struct ops_multiprocessor *ret_device, struct ops_buffer *json);

/* The edges of a graph that nobody else changes: to[i] waits for from[i]. */
struct ops_cuda_edges {
	void **from; /* CUgraphNode */
	void **to;
	size_t count;
};
/* False if the driver does not report them, or memory is out. Else to be released. */
bool ops_cuda_graph_edges(void *graph, struct ops_cuda_edges *ret_edges);
void ops_cuda_edges_release(struct ops_cuda_edges *edges);

/* A node (CUgraphNode) that calls the function at an address of the host. */
typedef void ops_cuda_host_node(void *context, void *node, uint64_t function);
/* Calls `callback` for all such nodes of a graph that no other thread changes, as far as the driver reports them. */
void ops_cuda_graph_host_nodes(void *graph, ops_cuda_host_node *callback, void *context);

#endif
