/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI records other than work and calls: ranges and names of NVTX, the state of devices, memory pools.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "gpu/cupti_decoder.h"

/* --- NVTX ----------------------------------------------------------------------------------------------------------- */

static void open_marker(struct ops_cupti_decoder *decoder, const CUpti_ActivityMarker2 *record)
{
	uint32_t number = ops_intern_add(&decoder->marker_ids, &record->id, sizeof(record->id));
	struct ops_cupti_marker *marker = NULL;

	if (number < decoder->markers.count)
		marker = &decoder->markers.items[number];
	else if (number != OPS_INTERN_NONE)
		marker = OPS_ARRAY_PUSH(&decoder->markers);
	if (!marker) {
		decoder->activities->lost++;
		return;
	}
	*marker = (struct ops_cupti_marker){.start_ns = (int64_t)record->timestamp, .is_open = true};
	if (record->name)
		marker->name = ops_activities_text(decoder->activities, record->name, strlen(record->name));
	decoder->open_markers++;
}

static struct ops_cupti_marker *close_marker(struct ops_cupti_decoder *decoder, const CUpti_ActivityMarker2 *record)
{
	uint32_t number = ops_intern_find(&decoder->marker_ids, &record->id, sizeof(record->id));
	struct ops_cupti_marker *marker = number < decoder->markers.count ? &decoder->markers.items[number] : NULL;

	if (!marker || !marker->is_open)
		return NULL; /* the range began before the session */
	marker->is_open = false;
	decoder->open_markers--;
	return marker;
}

static uint32_t domain_details(struct ops_cupti_decoder *decoder, const char *domain)
{
	uint32_t details;

	if (ops_cupti_known(decoder, domain, strlen(domain), &details))
		return details;
	ops_buffer_append_text(&decoder->text, "\"nvtx domain\":");
	ops_json_string(&decoder->text, domain, strlen(domain));
	return ops_cupti_keep(decoder, domain, strlen(domain));
}

void ops_cupti_decode_marker(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivityMarker2 *record = bytes;
	const struct ops_cupti_marker *marker = NULL;

	(void)size;
	if (record->flags & CUPTI_ACTIVITY_FLAG_MARKER_START) {
		open_marker(decoder, record);
		return;
	}
	if ((record->flags & CUPTI_ACTIVITY_FLAG_MARKER_END) && !(marker = close_marker(decoder, record)))
		return;
	activity->kind = OPS_ACTIVITY_NVTX;
	activity->start_ns = marker ? marker->start_ns : (int64_t)record->timestamp;
	activity->end_ns = (int64_t)record->timestamp;
	if (record->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
		activity->thread = record->objectId.pt.threadId;
	if (marker)
		activity->name = marker->name;
	else if (record->name)
		activity->name = ops_activities_text(decoder->activities, record->name, strlen(record->name));
	if (record->domain)
		activity->details = domain_details(decoder, record->domain);
}

/* Tracks are those of streams; names of devices, contexts and threads are not stored. */
void ops_cupti_decode_name(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivityName *record = bytes;

	(void)size;
	(void)activity;
	if (decoder->kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_NVTX) && record->objectKind == CUPTI_ACTIVITY_OBJECT_STREAM && record->name)
		ops_activities_stream(decoder->activities, (uint16_t)record->objectId.dcs.deviceId,
		                      (int32_t)record->objectId.dcs.streamId,
		                      ops_activities_text(decoder->activities, record->name, strlen(record->name)));
}

/* --- counters ------------------------------------------------------------------------------------------------------- */

static void cupti_extras_add_counter(struct ops_cupti_decoder *decoder, struct ops_activity *activity, const char *name,
                                     double value)
{
	activity->name = ops_activities_text(decoder->activities, name, strlen(name));
	activity->value = value;
	if (decoder->kinds & OPS_ACTIVITY_BIT(activity->kind))
		ops_activities_add(decoder->activities, activity);
}

/* A record contains up to two counters, which are added here. */
void ops_cupti_decode_environment(struct ops_cupti_decoder *decoder, const void *bytes, size_t size,
                                  struct ops_activity *activity)
{
	const CUpti_ActivityEnvironment *record = bytes;
	struct ops_activity counter = {.kind = OPS_ACTIVITY_ENVIRONMENT, .device = (uint16_t)record->deviceId,
	                               .start_ns = (int64_t)record->timestamp, .end_ns = (int64_t)record->timestamp};

	(void)size;
	(void)activity;
	switch (record->environmentKind) {
	case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
		cupti_extras_add_counter(decoder, &counter, "SM Clock (MHz)", record->data.speed.smClock);
		cupti_extras_add_counter(decoder, &counter, "Memory Clock (MHz)", record->data.speed.memoryClock);
		break;
	case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
		cupti_extras_add_counter(decoder, &counter, "Temperature (C)", record->data.temperature.gpuTemperature);
		break;
	case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
		cupti_extras_add_counter(decoder, &counter, "Power (W)", record->data.power.power / 1000.0);
		break;
	case CUPTI_ACTIVITY_ENVIRONMENT_COOLING:
		cupti_extras_add_counter(decoder, &counter, "Fan Speed (%)", record->data.cooling.fanSpeed);
		break;
	default:
		break;
	}
}

/* Adds the size of a pool of this process; CUPTI does not report the size of pools shared by other processes. */
void ops_cupti_decode_pool(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivityMemoryPool2 *record = bytes;
	struct ops_activity counter = {.kind = OPS_ACTIVITY_MEMORY_POOL, .device = (uint16_t)record->deviceId,
	                               .start_ns = (int64_t)record->timestamp, .end_ns = (int64_t)record->timestamp};

	(void)size;
	(void)activity;
	if (record->memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL)
		return;
	cupti_extras_add_counter(decoder, &counter, "Memory Pool Size (B)", (double)record->size);
	cupti_extras_add_counter(decoder, &counter, "Memory Pool Used (B)", (double)record->utilizedSize);
}
