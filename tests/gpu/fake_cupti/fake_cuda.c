/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's driver without a GPU, as far as the collector asks it: one H100, or none with FAKE_CUDA_DEVICES=0.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#define SHOW __attribute__((visibility("default")))

SHOW CUresult CUDAAPI cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGetCount(int *count)
{
	const char *told = getenv("FAKE_CUDA_DEVICES");

	*count = told ? atoi(told) : 1;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

SHOW CUresult CUDAAPI cuDriverGetVersion(int *version)
{
	const char *told = getenv("FAKE_CUDA_VERSION");

	*version = told ? atoi(told) : CUDA_VERSION;
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
