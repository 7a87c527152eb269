/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes CUPTI's records; see cupti_records.h.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gpu/cupti_calls.h"
#include "gpu/cupti_decoder.h"

#define CALLS_MAX 4096 /* upper bound of callback ids */

/* abi::__cxa_demangle */
typedef char *demangle(const char *mangled, char *buffer, size_t *size, int *status);

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

void ops_cupti_decoder_init(struct ops_cupti_decoder *decoder, const struct ops_cupti *library,
                            struct ops_activities *activities, uint32_t kinds)
{
	*decoder = (struct ops_cupti_decoder){.library = library, .activities = activities, .kinds = kinds};
}

void ops_cupti_decoder_release(struct ops_cupti_decoder *decoder)
{
	OPS_ARRAY_RELEASE(&decoder->devices);
	ops_intern_release(&decoder->names);
	OPS_ARRAY_RELEASE(&decoder->name_texts);
	ops_intern_release(&decoder->shapes);
	OPS_ARRAY_RELEASE(&decoder->details);
	ops_intern_release(&decoder->contexts);
	OPS_ARRAY_RELEASE(&decoder->context_devices);
	OPS_ARRAY_RELEASE(&decoder->events);
	OPS_ARRAY_RELEASE(&decoder->syncs);
	OPS_ARRAY_RELEASE(&decoder->memories);
	ops_intern_release(&decoder->marker_ids);
	OPS_ARRAY_RELEASE(&decoder->markers);
	ops_free(decoder->runtime_calls);
	ops_free(decoder->driver_calls);
	ops_buffer_release(&decoder->text);
}

/* --- texts ---------------------------------------------------------------------------------------------------------- */

/* Finds the demangler of libstdc++, which every process with torch has. Without it, names remain mangled. */
static demangle *find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

	return library ? (demangle *)(uintptr_t)dlsym(library, "__cxa_demangle") : NULL;
}

static uint32_t add_kernel_name(struct ops_cupti_decoder *decoder, const char *mangled)
{
	demangle *demangler = strncmp(mangled, "_Z", 2) == 0 ? find_demangler() : NULL;
	uint32_t *text = OPS_ARRAY_PUSH(&decoder->name_texts);
	char *readable;
	int status;

	if (!text)
		return 0;
	readable = demangler ? demangler(mangled, NULL, NULL, &status) : NULL;
	*text = ops_activities_text(decoder->activities, readable ? readable : mangled, strlen(readable ? readable : mangled));
	free(readable);
	return *text;
}

uint32_t ops_cupti_kernel_name(struct ops_cupti_decoder *decoder, const char *mangled)
{
	size_t place = ((uintptr_t)mangled >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (OPS_CUPTI_RECENT_NAMES - 1);
	uint32_t number = decoder->recent[place].number;

	if (!mangled)
		return 0;
	/* Unloaded code may be replaced by other code at the same address, so the name itself is compared. */
	if (decoder->recent[place].mangled == mangled && strcmp(decoder->names.entries[number].bytes, mangled) == 0)
		return decoder->name_texts.items[number];
	number = ops_intern_add(&decoder->names, mangled, strlen(mangled));
	if (number == OPS_INTERN_NONE)
		return 0;
	if (number >= decoder->name_texts.count)
		return add_kernel_name(decoder, mangled);
	decoder->recent[place].mangled = mangled;
	decoder->recent[place].number = number;
	return decoder->name_texts.items[number];
}

uint32_t ops_cupti_text(struct ops_cupti_decoder *decoder)
{
	return decoder->text.failed ? 0 : ops_activities_text(decoder->activities, decoder->text.bytes, decoder->text.size);
}

/* Returns the name of a call, without the version that CUPTI appends: "cudaLaunchKernel_v7000". */
static uint32_t call_name(struct ops_cupti_decoder *decoder, CUpti_CallbackDomain domain, uint32_t callback)
{
	const char *name = NULL;
	const char *version;
	size_t size;

	if (callback >= CALLS_MAX || decoder->library->cuptiGetCallbackName(domain, callback, &name) != CUPTI_SUCCESS || !name)
		name = "INVALID";
	size = strlen(name);
	version = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? strstr(name, "_v") : NULL;
	while (version && version[2 + strspn(version + 2, "0123456789")])
		version = strstr(version + 2, "_v");
	if (version && version[2])
		size = (size_t)(version - name);
	return ops_activities_text(decoder->activities, name, size);
}

static struct ops_cupti_call make_call(struct ops_cupti_decoder *decoder, bool runtime, uint32_t callback)
{
	CUpti_CallbackDomain domain = runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
	struct ops_cupti_call call = {.name = call_name(decoder, domain, callback),
	                              .is_shown = ops_cupti_call_is_shown(domain, callback)};

	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "\"cbid\":%u", callback);
	call.details = ops_cupti_text(decoder);
	return call;
}

/* Returns the data shared by all calls of a function, computed once. */
static struct ops_cupti_call call_of(struct ops_cupti_decoder *decoder, bool runtime, uint32_t callback)
{
	struct ops_cupti_call **calls = runtime ? &decoder->runtime_calls : &decoder->driver_calls;

	if (!*calls)
		*calls = ops_alloc_zeroed(CALLS_MAX, sizeof(**calls));
	if (!*calls || callback >= CALLS_MAX)
		return make_call(decoder, runtime, callback);
	if (!(*calls)[callback].name)
		(*calls)[callback] = make_call(decoder, runtime, callback);
	return (*calls)[callback];
}

bool ops_cupti_known(struct ops_cupti_decoder *decoder, const void *key, size_t size, uint32_t *ret_text)
{
	uint32_t number = ops_intern_find(&decoder->shapes, key, size);

	if (number != OPS_INTERN_NONE)
		*ret_text = decoder->details.items[number];
	decoder->text.size = 0;
	return number != OPS_INTERN_NONE;
}

uint32_t ops_cupti_keep(struct ops_cupti_decoder *decoder, const void *key, size_t size)
{
	uint32_t *kept;
	uint32_t text;

	if (decoder->text.failed)
		return 0;
	text = ops_cupti_text(decoder);
	kept = OPS_ARRAY_PUSH(&decoder->details);
	if (kept && ops_intern_add(&decoder->shapes, key, size) == OPS_INTERN_NONE)
		decoder->details.count--;
	else if (kept)
		*kept = text;
	return text;
}

/* --- calls and other records ---------------------------------------------------------------------------------------- */

static void cupti_records_read_call(struct ops_cupti_decoder *decoder, const void *bytes, size_t size,
                                    struct ops_activity *activity)
{
	const CUpti_ActivityAPI *record = bytes;
	bool runtime = record->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
	struct ops_cupti_call call;

	(void)size;
	call = call_of(decoder, runtime, record->cbid);
	if (!call.is_shown)
		return;
	activity->kind = runtime ? OPS_ACTIVITY_RUNTIME : OPS_ACTIVITY_DRIVER;
	activity->start_ns = (int64_t)record->start;
	activity->end_ns = (int64_t)record->end;
	activity->thread = record->threadId;
	activity->correlation = record->correlationId;
	activity->name = call.name;
	activity->details = call.details;
}

static const char *overhead_name(uint32_t kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
		return "Driver Compiler";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
		return "Buffer Flush";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
		return "Instrumentation";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
		return "Resource";
	case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
		return "Runtime Triggered Module Loading";
	case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
		return "Lazy Function Loading";
	case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
		return "Command Buffer Full";
	case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
		return "Activity Buffer Request";
	case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT:
		return "UVM Activity Init";
	default:
		return "Unknown";
	}
}

static void read_overhead(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivityOverhead *record = bytes;
	const char *name = overhead_name(record->overheadKind);

	(void)size;
	activity->kind = OPS_ACTIVITY_OVERHEAD;
	activity->start_ns = (int64_t)record->start;
	activity->end_ns = (int64_t)record->end;
	if (record->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
		activity->thread = record->objectId.pt.threadId;
	activity->name = ops_activities_text(decoder->activities, name, strlen(name));
}

/* --- dispatch ------------------------------------------------------------------------------------------------------- */

static const struct {
	size_t size; /* minimum size of the record */
	ops_cupti_decode_function *take;
} takers[CUPTI_ACTIVITY_KIND_COUNT] = {
	[CUPTI_ACTIVITY_KIND_KERNEL] = {sizeof(cupti_kernel), ops_cupti_decode_kernel},
	[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = {sizeof(cupti_kernel), ops_cupti_decode_kernel},
	[CUPTI_ACTIVITY_KIND_MEMCPY] = {sizeof(cupti_copy), ops_cupti_decode_copy},
	[CUPTI_ACTIVITY_KIND_MEMCPY2] = {sizeof(cupti_peer_copy), ops_cupti_decode_peer_copy},
	[CUPTI_ACTIVITY_KIND_MEMSET] = {sizeof(cupti_set), ops_cupti_decode_set},
	[CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE] = {sizeof(CUpti_ActivityGraphHostNode), ops_cupti_decode_host_node},
	[CUPTI_ACTIVITY_KIND_RUNTIME] = {sizeof(CUpti_ActivityAPI), cupti_records_read_call},
	[CUPTI_ACTIVITY_KIND_DRIVER] = {sizeof(CUpti_ActivityAPI), cupti_records_read_call},
	[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = {sizeof(CUpti_ActivitySynchronization), ops_cupti_decode_sync},
	[CUPTI_ACTIVITY_KIND_CUDA_EVENT] = {sizeof(CUpti_ActivityCudaEvent), ops_cupti_decode_event},
	[CUPTI_ACTIVITY_KIND_OVERHEAD] = {sizeof(CUpti_ActivityOverhead), read_overhead},
	[CUPTI_ACTIVITY_KIND_MARKER] = {sizeof(CUpti_ActivityMarker2), ops_cupti_decode_marker},
	[CUPTI_ACTIVITY_KIND_NAME] = {sizeof(CUpti_ActivityName), ops_cupti_decode_name},
	[CUPTI_ACTIVITY_KIND_ENVIRONMENT] = {sizeof(CUpti_ActivityEnvironment), ops_cupti_decode_environment},
	[CUPTI_ACTIVITY_KIND_MEMORY2] = {sizeof(cupti_memory), ops_cupti_decode_memory},
	[CUPTI_ACTIVITY_KIND_MEMORY_POOL] = {sizeof(CUpti_ActivityMemoryPool2), ops_cupti_decode_pool},
};

void ops_cupti_decode(struct ops_cupti_decoder *decoder, const CUpti_Activity *record, size_t size)
{
	struct ops_activity activity = {.kind = OPS_ACTIVITY_KIND_COUNT};
	uint32_t kind = size >= sizeof(record->kind) ? (uint32_t)record->kind : 0;

	if (kind >= CUPTI_ACTIVITY_KIND_COUNT || !takers[kind].take)
		return;
	if (size < takers[kind].size) {
		decoder->activities->lost++;
		return;
	}
	takers[kind].take(decoder, record, size, &activity);
	if (activity.kind == OPS_ACTIVITY_KIND_COUNT || !(decoder->kinds & OPS_ACTIVITY_BIT(activity.kind)))
		return;
	if (activity.start_ns && activity.end_ns)
		ops_activities_add(decoder->activities, &activity);
	else
		decoder->activities->lost++; /* CUPTI reports unknown times as 0 */
}
