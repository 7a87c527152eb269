/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that end; see cupti_contexts.h.
 */
#include "gpu/cupti_contexts.h"

/* A runtime call makes driver calls; whether CUPTI reports those depends on the library. */
static const struct ops_cupti_callback ending[] = {
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDetach},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset},
	{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020},
	{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaThreadExit_v3020},
};
#define ENDING (sizeof(ending) / sizeof(ending[0]))

void ops_cupti_contexts_enable(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber)
{
	ops_cupti_enable_callbacks(library, subscriber, ending, ENDING);
}

/* Flushes when the call begins, while the context is intact, and when it ends, for what ran until then. The flush is not forced,
 * because that would lose unfinished work of other contexts. */
void ops_cupti_contexts_on_call(const struct ops_cupti *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback)
{
	if (ops_cupti_is_among(ending, ENDING, domain, callback))
		library->cuptiActivityFlushAll(0);
}
