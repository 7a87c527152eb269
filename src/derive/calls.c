/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls by name; see calls.h. Copies and fills have many variants, so they are matched by prefix. A copy that is not
 * asynchronous blocks.
 */
#include "derive/calls.h"

#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/text.h"
#include "trace/derived.h"

#define GRAPH (OPS_CALL_LAUNCH | OPS_CALL_GRAPH)

static const struct {
	const char *name;
	unsigned what;
} calls[] = {
	/* Sorted by strcmp. */
	{"cuCtxSynchronize", OPS_CALL_BLOCKS},
	{"cuEventSynchronize", OPS_CALL_BLOCKS},
	{"cuGraphLaunch", GRAPH},
	{"cuLaunch", OPS_CALL_LAUNCH},
	{"cuLaunchCooperativeKernel", OPS_CALL_LAUNCH},
	{"cuLaunchCooperativeKernelMultiDevice", OPS_CALL_LAUNCH},
	{"cuLaunchGrid", OPS_CALL_LAUNCH},
	{"cuLaunchGridAsync", OPS_CALL_LAUNCH},
	{"cuLaunchKernel", OPS_CALL_LAUNCH},
	{"cuLaunchKernelEx", OPS_CALL_LAUNCH},
	{"cuStreamBeginCapture", OPS_CALL_CAPTURE},
	{"cuStreamBeginCaptureToGraph", OPS_CALL_CAPTURE},
	{"cuStreamEndCapture", OPS_CALL_CAPTURED},
	{"cuStreamSynchronize", OPS_CALL_BLOCKS},
	{"cudaDeviceSynchronize", OPS_CALL_BLOCKS},
	{"cudaEventSynchronize", OPS_CALL_BLOCKS},
	{"cudaGraphLaunch", GRAPH},
	{"cudaLaunch", OPS_CALL_LAUNCH},
	{"cudaLaunchCooperativeKernel", OPS_CALL_LAUNCH},
	{"cudaLaunchCooperativeKernelMultiDevice", OPS_CALL_LAUNCH},
	{"cudaLaunchKernel", OPS_CALL_LAUNCH},
	{"cudaLaunchKernelExC", OPS_CALL_LAUNCH},
	{"cudaStreamBeginCapture", OPS_CALL_CAPTURE},
	{"cudaStreamBeginCaptureToGraph", OPS_CALL_CAPTURE},
	{"cudaStreamEndCapture", OPS_CALL_CAPTURED},
	{"cudaStreamSynchronize", OPS_CALL_BLOCKS},
	{"cudaThreadSynchronize", OPS_CALL_BLOCKS},
	{"hipCtxSynchronize", OPS_CALL_BLOCKS},
	{"hipDeviceSynchronize", OPS_CALL_BLOCKS},
	{"hipDrvLaunchKernelEx", OPS_CALL_LAUNCH},
	{"hipEventSynchronize", OPS_CALL_BLOCKS},
	{"hipExtLaunchKernel", OPS_CALL_LAUNCH},
	{"hipExtLaunchMultiKernelMultiDevice", OPS_CALL_LAUNCH},
	{"hipExtModuleLaunchKernel", OPS_CALL_LAUNCH},
	{"hipGraphLaunch", GRAPH},
	{"hipHccModuleLaunchKernel", OPS_CALL_LAUNCH},
	{"hipLaunchByPtr", OPS_CALL_LAUNCH},
	{"hipLaunchCooperativeKernel", OPS_CALL_LAUNCH},
	{"hipLaunchCooperativeKernelMultiDevice", OPS_CALL_LAUNCH},
	{"hipLaunchKernel", OPS_CALL_LAUNCH},
	{"hipLaunchKernelExC", OPS_CALL_LAUNCH},
	{"hipModuleLaunchCooperativeKernel", OPS_CALL_LAUNCH},
	{"hipModuleLaunchCooperativeKernelMultiDevice", OPS_CALL_LAUNCH},
	{"hipModuleLaunchKernel", OPS_CALL_LAUNCH},
	{"hipStreamBeginCapture", OPS_CALL_CAPTURE},
	{"hipStreamBeginCaptureToGraph", OPS_CALL_CAPTURE},
	{"hipStreamEndCapture", OPS_CALL_CAPTURED},
	{"hipStreamSynchronize", OPS_CALL_BLOCKS},
	{"runFunction - job_prep_and_submit_for_execution", OPS_CALL_LAUNCH}, /* MTIA */
	{"urCommandBufferEnqueueExp", GRAPH},
	{"urEnqueueCommandBufferExp", GRAPH},
	{"urEnqueueCooperativeKernelLaunchExp", OPS_CALL_LAUNCH},
	{"urEnqueueKernelLaunch", OPS_CALL_LAUNCH},
	{"urEnqueueKernelLaunchCustomExp", OPS_CALL_LAUNCH},
	{"urEnqueueMemBufferCopy", OPS_CALL_COPY},
	{"urEnqueueMemBufferFill", OPS_CALL_SET},
	{"urEnqueueMemBufferRead", OPS_CALL_COPY},
	{"urEnqueueMemBufferWrite", OPS_CALL_COPY},
	{"urEnqueueUSMFill", OPS_CALL_SET},
	{"urEnqueueUSMFill2D", OPS_CALL_SET},
	{"urEnqueueUSMMemcpy", OPS_CALL_COPY},
	{"urEnqueueUSMMemcpy2D", OPS_CALL_COPY},
	{"urEventWait", OPS_CALL_BLOCKS},
	{"urQueueFinish", OPS_CALL_BLOCKS},
	{"zeCommandListAppendLaunchCooperativeKernel", OPS_CALL_LAUNCH},
	{"zeCommandListAppendLaunchKernel", OPS_CALL_LAUNCH},
	{"zeCommandListAppendMemoryCopy", OPS_CALL_COPY},
	{"zeCommandListAppendMemoryFill", OPS_CALL_SET},
	{"zeCommandListHostSynchronize", OPS_CALL_BLOCKS},
	{"zeCommandQueueSynchronize", OPS_CALL_BLOCKS},
	{"zeEventHostSynchronize", OPS_CALL_BLOCKS},
	{"zeFenceHostSynchronize", OPS_CALL_BLOCKS},
};

/* Returns "cuMemcpyHtoDAsync" for "cuMemcpyHtoDAsync_v2_ptsz". */
static struct ops_string without_version(struct ops_string name)
{
	size_t digits = 0;

	if (ops_string_ends(name, "_ptsz") || ops_string_ends(name, "_ptds"))
		name.size -= 5;
	else if (ops_string_ends(name, "_spt"))
		name.size -= 4;
	while (digits < name.size && name.bytes[name.size - 1 - digits] >= '0' && name.bytes[name.size - 1 - digits] <= '9')
		digits++;
	if (digits && name.size > digits + 2 && memcmp(name.bytes + name.size - digits - 2, "_v", 2) == 0)
		name.size -= digits + 2;
	return name;
}

static unsigned memory_call(struct ops_string name)
{
	static const char *const copies[] = {"cudaMemcpy", "cuMemcpy", "hipMemcpy"};
	static const char *const fills[] = {"cudaMemset", "cuMemset", "hipMemset"};
	bool asynchronous = ops_string_contains(name, "Async");

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		if (ops_string_starts(name, copies[i]))
			return OPS_CALL_COPY | (asynchronous ? 0 : OPS_CALL_BLOCKS);
	for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++)
		if (ops_string_starts(name, fills[i]))
			return OPS_CALL_SET;
	return 0;
}

unsigned ops_call_of(struct ops_string name)
{
	struct ops_string base = without_version(name);
	const void *entry = ops_search_name(base, calls, sizeof(calls) / sizeof(calls[0]), sizeof(calls[0]));

	if (!entry)
		return memory_call(base);
	return calls[((const char *)entry - (const char *)calls) / sizeof(calls[0])].what;
}

#define KNOWN 128u /* above the bits of enum ops_call */

static void calls_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count = ops_trace_string_count(trace);
	uint8_t *by_name = ops_alloc_zeroed(count + 1, 1);

	for (size_t row = 0; by_name && row < events->count; row++) {
		uint32_t name = events->name[row];

		if (!by_name[name])
			by_name[name] = (uint8_t)(KNOWN | ops_call_of(ops_trace_string(trace, name)));
	}
	for (size_t i = 0; by_name && i < count; i++)
		by_name[i] &= (uint8_t)~KNOWN;
	*ret_made = (struct ops_derived_object){by_name, ops_free, count};
}

const uint8_t *ops_calls_by_name(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_CALLS, calls_derive);
}
