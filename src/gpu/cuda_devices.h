/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA devices and graphs of this process, as reported by the driver (libcuda, loaded at run time).
 */
#ifndef OPS_GPU_CUDA_DEVICES_H
#define OPS_GPU_CUDA_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"
#include "base/occupancy.h"

/* Returns the number of devices. OPS_UNSUPPORTED, with the reason, if the driver is missing or not usable. In a process forked
 * after the first call CUDA does not work: returns the number from before the fork. */
enum ops_code ops_cuda_device_count(uint32_t *ret_count, struct ops_error *error);

/* Returns the CUDA version of the driver: 12040 is 12.4; 0 if unknown. */
uint32_t ops_cuda_driver_version(void);

/* Returns the CUDA version of the runtime that the process has loaded, in the same form. */
uint32_t ops_cuda_runtime_version(void);

/* Waits until all devices that this process uses have finished their work. OPS_STATE if one fails to, for example because it is
 * lost. */
enum ops_code ops_cuda_synchronize(struct ops_error *error);

/* Returns properties of device `ordinal`: the inputs of the occupancy (zero if the driver does not report them), and the JSON
 * object of "deviceProperties", appended to `json`. */
void ops_cuda_device(uint32_t ordinal, struct ops_multiprocessor *ret_device, struct ops_buffer *json);

/* The edges of a graph: to[i] waits for from[i]. */
struct ops_cuda_edges {
	void **from; /* CUgraphNode each */
	void **to;
	size_t count;
};
/* Returns false if the driver does not report them, or if out of memory; else the caller must release them. No other thread may
 * change the graph meanwhile. */
bool ops_cuda_graph_edges(void *graph, struct ops_cuda_edges *ret_edges);
void ops_cuda_edges_release(struct ops_cuda_edges *edges);

/* A node (CUgraphNode) that calls the function at an address of the host. */
typedef void ops_cuda_host_node(void *context, void *node, uint64_t function);
/* Calls `callback` for all such nodes of a graph that the driver reports. No other thread may change the graph meanwhile. */
void ops_cuda_graph_host_nodes(void *graph, ops_cuda_host_node *callback, void *context);

#endif
