/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the CUDA calls that get a row; see cupti_calls.h.
 */
#include "gpu/cupti_calls.h"

/* Torch queries the device many times for each operator, and launchers of compiled code query pointers. */
static const struct ops_cupti_callback quiet[] = {
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute},
};
#define QUIET (sizeof(quiet) / sizeof(quiet[0]))

static const struct ops_cupti_callback of_driver[] = {
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemCreate},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemMap},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemUnmap},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemRelease},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemExportToShareableHandle},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemImportFromShareableHandle},
};
#define OF_DRIVER (sizeof(of_driver) / sizeof(of_driver[0]))

bool ops_cupti_call_is_shown(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	return domain == CUPTI_CB_DOMAIN_DRIVER_API ? ops_cupti_is_among(of_driver, OF_DRIVER, domain, id)
	                                            : !ops_cupti_is_among(quiet, QUIET, domain, id);
}

void ops_cupti_calls_quieten(const struct ops_cupti *library, CUpti_ActivityKind kind)
{
	bool runtime = kind == CUPTI_ACTIVITY_KIND_RUNTIME;
	CUpti_CallbackDomain domain = runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
	__typeof__(&cuptiActivityEnableRuntimeApi) enable =
		runtime ? library->cuptiActivityEnableRuntimeApi : library->cuptiActivityEnableDriverApi;

	for (size_t i = 0; enable && i < QUIET; i++)
		if (quiet[i].domain == domain)
			enable(quiet[i].id, 0);
}
