/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy of kernels; see occupancy.h.
 */
#include "base/occupancy.h"

#define NO_LIMIT OPS_OCCUPANCY_NO_LIMIT

/* Properties that depend on the architecture, from this compute capability on. */
static const struct architecture {
	uint32_t capability; /* 10 * major + minor */
	uint32_t blocks_max; /* of a multiprocessor */
	uint32_t shared_unit;
} architectures[] = {
	{50, 32, 256}, /* Maxwell, Pascal, Volta */
	{75, 16, 256}, /* Turing */
	{80, 32, 128}, /* Ampere A100 */
	{86, 16, 128}, /* Ampere GA10x, Orin */
	{89, 24, 128}, /* Ada */
	{90, 32, 128}, /* Hopper, Blackwell B200 */
	{101, 24, 128}, /* Thor, as CUDA 12 numbers it */
	{103, 32, 128}, /* Blackwell B300 */
	{110, 24, 128}, /* Thor, Blackwell RTX */
};
#define REGISTER_UNIT 256u /* allocation unit of a warp's registers */
#define WARP_UNIT 4u       /* allocation unit of a block's warps for registers: one warp for each scheduler */

static const struct architecture *architecture_of(const struct ops_multiprocessor *device)
{
	uint32_t capability = 10 * device->compute_major + device->compute_minor;
	const struct architecture *found = &architectures[0];

	for (uint32_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
		if (architectures[i].capability <= capability)
			found = &architectures[i];
	return found;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint64_t product(const uint32_t sizes[3])
{
	return (uint64_t)sizes[0] * sizes[1] * sizes[2];
}

/* Registers limit the number of warps; a block needs registers for all its warps. */
static uint32_t blocks_by_registers(const struct ops_multiprocessor *device, uint64_t warps, uint64_t registers_a_warp)
{
	uint64_t warps_held;

	if (!registers_a_warp)
		return NO_LIMIT;
	warps_held = device->registers / registers_a_warp / WARP_UNIT * WARP_UNIT;
	return (uint32_t)(warps_held / warps);
}

static uint32_t lowest(const struct ops_occupancy *occupancy)
{
	uint32_t low = occupancy->by_warps;

	low = occupancy->by_registers < low ? occupancy->by_registers : low;
	low = occupancy->by_shared < low ? occupancy->by_shared : low;
	return occupancy->by_blocks < low ? occupancy->by_blocks : low;
}

struct ops_occupancy ops_occupancy_of(const struct ops_multiprocessor *device, const struct ops_kernel_shape *shape)
{
	const struct architecture *architecture = architecture_of(device);
	uint64_t threads = product(shape->block);
	uint64_t blocks = product(shape->grid);
	uint64_t warps, registers_a_warp, warps_max, shared;
	struct ops_occupancy result = {0};

	if (!device->count || !device->warp_size || !device->threads_max || !threads)
		return result;
	warps = (threads + device->warp_size - 1) / device->warp_size;
	warps_max = device->threads_max / device->warp_size;
	registers_a_warp = round_up((uint64_t)shape->registers * device->warp_size, REGISTER_UNIT);
	shared = round_up((uint64_t)shape->shared_bytes + device->shared_reserved_bytes, architecture->shared_unit);

	result.registers_a_block = (uint32_t)(registers_a_warp * warps);
	result.shared_a_block = (uint32_t)shared;
	result.by_warps = (uint32_t)(warps_max / warps);
	result.by_registers = blocks_by_registers(device, warps, registers_a_warp);
	result.by_shared = shared ? (uint32_t)(device->shared_bytes / shared) : NO_LIMIT;
	result.by_blocks = device->blocks_max ? device->blocks_max : architecture->blocks_max;
	result.active_blocks = lowest(&result);
	result.limits = (result.by_warps == result.active_blocks ? OPS_OCCUPANCY_WARPS : 0u) |
	                (result.by_registers == result.active_blocks ? OPS_OCCUPANCY_REGISTERS : 0u) |
	                (result.by_shared == result.active_blocks ? OPS_OCCUPANCY_SHARED : 0u) |
	                (result.by_blocks == result.active_blocks ? OPS_OCCUPANCY_BLOCKS : 0u);

	result.blocks_a_multiprocessor = (double)blocks / device->count;
	result.warps_a_multiprocessor = result.blocks_a_multiprocessor * (double)threads / device->warp_size; /* as Kineto computes it */
	/* A launch with fewer blocks than would fit does not occupy more than it has. */
	result.percent = 100.0 * (result.blocks_a_multiprocessor < result.active_blocks ? result.blocks_a_multiprocessor
	                                                                                 : result.active_blocks) *
	                 (double)warps / (double)warps_max;
	return result;
}
