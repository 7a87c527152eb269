/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's occupancy calculator, a header of CUDA, for comparison in test_occupancy.py.
 */
#include <algorithm>
#include <climits>

#include <cuda_occupancy.h>

struct device {
	int major, minor, threads_max, registers, shared, shared_optin, reserved;
};

struct result {
	int active, limits, by_warps, by_registers, by_shared, by_blocks, by_barriers, registers_a_block, shared_a_block;
};

#define SHARED_UNASKED (48 * 1024)

extern "C" result nvidia_occupancy(const device *of, int threads, int registers, int shared)
{
	cudaOccDeviceProp properties;
	cudaOccFuncAttributes function; /* of no barriers, as in Kineto */
	cudaOccDeviceState state;
	cudaOccResult found;

	properties.computeMajor = of->major;
	properties.computeMinor = of->minor;
	properties.maxThreadsPerBlock = 1024;
	properties.maxThreadsPerMultiprocessor = of->threads_max;
	properties.regsPerBlock = of->registers;
	properties.regsPerMultiprocessor = of->registers;
	properties.warpSize = 32;
	properties.sharedMemPerBlock = SHARED_UNASKED;
	properties.sharedMemPerMultiprocessor = of->shared;
	properties.sharedMemPerBlockOptin = of->shared_optin;
	properties.reservedSharedMemPerBlock = of->reserved;
	properties.numSms = 1;
	function.maxThreadsPerBlock = INT_MAX;
	function.numRegs = registers;
	function.sharedSizeBytes = std::min(shared, SHARED_UNASKED);
	function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
	function.maxDynamicSharedSizeBytes = of->shared_optin;
	state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
	if (cudaOccMaxActiveBlocksPerMultiprocessor(&found, &properties, &function, &state, threads,
	                                            shared - function.sharedSizeBytes) != CUDA_OCC_SUCCESS)
		return result{-1};
	return result{found.activeBlocksPerMultiprocessor, (int)found.limitingFactors, found.blockLimitWarps,
	              found.blockLimitRegs, found.blockLimitSharedMem, found.blockLimitBlocks, found.blockLimitBarriers,
	              found.allocatedRegistersPerBlock, (int)found.allocatedSharedMemPerBlock};
}
