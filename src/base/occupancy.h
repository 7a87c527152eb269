/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy: how many blocks of a kernel a multiprocessor can hold at once, and what limits their number. The arithmetic is that
 * of NVIDIA's occupancy calculator: the limits are warps, registers, shared memory and a maximum number of blocks; registers are
 * allocated to warps, shared memory to blocks, in units that the architecture sets (CUDA C++ Programming Guide, table "Technical
 * Specifications per Compute Capability").
 */
#ifndef OPS_BASE_OCCUPANCY_H
#define OPS_BASE_OCCUPANCY_H

#include <stdint.h>

/* The resources of a multiprocessor; sizes in bytes and 32-bit registers. */
struct ops_multiprocessor {
	uint32_t compute_major;
	uint32_t compute_minor;
	uint32_t count; /* number of multiprocessors */
	uint32_t warp_size;
	uint32_t threads_max;
	uint32_t registers;
	uint32_t shared_bytes;
	uint32_t shared_reserved_bytes; /* reserved by the driver for each block */
	uint32_t blocks_max;            /* 0: taken from the table of architectures */
};

struct ops_kernel_shape {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t registers; /* per thread */
	uint32_t shared_bytes; /* per block, static and dynamic */
};

enum ops_occupancy_limit {
	OPS_OCCUPANCY_WARPS = 1,
	OPS_OCCUPANCY_REGISTERS = 2,
	OPS_OCCUPANCY_SHARED = 4,
	OPS_OCCUPANCY_BLOCKS = 8,
};

#define OPS_OCCUPANCY_NO_LIMIT ((uint32_t)INT32_MAX) /* the value that NVIDIA's calculator uses */

struct ops_occupancy {
	uint32_t active_blocks;  /* per multiprocessor; 0 if the kernel does not fit or the device is unknown */
	uint32_t limits;         /* set of the resources that limit active_blocks */
	uint32_t by_warps;       /* number of blocks that each resource allows; OPS_OCCUPANCY_NO_LIMIT if it is not used */
	uint32_t by_registers;
	uint32_t by_shared;
	uint32_t by_blocks;
	uint32_t registers_a_block; /* registers of all its warps, each rounded up to whole units */
	uint32_t shared_a_block;
	double blocks_a_multiprocessor; /* of this launch: blocks / multiprocessors */
	double warps_a_multiprocessor;
	double percent; /* estimate: warps of this launch that fit, as a share of the warps that a multiprocessor can hold */
};

/* If `device` is all zero, results that depend on it are 0. */
struct ops_occupancy ops_occupancy_of(const struct ops_multiprocessor *device, const struct ops_kernel_shape *shape);

#endif
