/* SPDX-License-Identifier: Apache-2.0
 *
 * What a test sets in the stand-in for CUDA's driver.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

/* Gives a graph an edge: `to` waits for `from`. Nodes are their own ids. */
void fake_cuda_add_edge(uint64_t graph, uint64_t from, uint64_t to);
/* Gives a graph a node that calls a function of the host, or, where that is NULL, runs on a device. */
void fake_cuda_add_node(uint64_t graph, uint64_t node, void *function);
/* Makes asking for edges fail from now on with a CUresult; 0 lets it work again. */
void fake_cuda_fail_edges(int result);

#endif
