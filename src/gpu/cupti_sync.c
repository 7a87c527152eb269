/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits and synchronisations. CUPTI's records refer to contexts and events, rows to devices and streams; the relation is known
 * when all records have been seen.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "gpu/cupti_decoder.h"

#define VERSION_EVENT_TIMES 26u /* since this version (12.8) the device reports when an event was recorded */
#define VERSION_EVENT_NODES 130500u /* since this version CUPTI reports the graph node that recorded the event */

_Static_assert(offsetof(CUpti_ActivityCudaEvent, eventId) == offsetof(CUpti_ActivityCudaEvent2, eventId), "records of CUPTI");

/* The event lasts one nanosecond, as in Kineto. */
static void place_event(const CUpti_ActivityCudaEvent2 *record, struct ops_activity *activity)
{
	activity->start_ns = (int64_t)record->deviceTimestamp;
	activity->end_ns = (int64_t)(record->deviceTimestamp + 1);
	activity->device = (uint16_t)record->deviceId;
	activity->stream = (int32_t)record->streamId;
	activity->correlation = record->correlationId;
}

static void show_event(struct ops_cupti_decoder *decoder, const CUpti_ActivityCudaEvent2 *record, struct ops_activity *activity)
{
	static const char name[] = "cudaEvent";

	activity->kind = OPS_ACTIVITY_SYNC;
	activity->is_event = 1;
	activity->name = ops_activities_text(decoder->activities, name, sizeof(name) - 1);
	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "\"event_id\":%u,\"stream\":%d,\"device\":%u,\"context\":%u", record->eventId,
	                  activity->stream, record->deviceId, record->contextId);
	activity->details = ops_cupti_text(decoder);
}

/* Returns whether the event is to be a row as a graph node. */
static bool is_of_node(const struct ops_cupti_decoder *decoder, const CUpti_ActivityCudaEvent3 *record, size_t size)
{
	return decoder->kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_EVENT_NODE) && decoder->library->version >= VERSION_EVENT_NODES &&
	       size >= sizeof(*record) && record->graphNodeId;
}

void ops_cupti_decode_event(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivityCudaEvent *record = bytes;
	const CUpti_ActivityCudaEvent2 *timed = bytes;
	struct ops_cupti_event *event;

	if (decoder->library->version >= VERSION_EVENT_TIMES && size >= sizeof(*timed)) {
		place_event(timed, activity);
		if (is_of_node(decoder, bytes, size))
			ops_cupti_decode_event_node(decoder, bytes, size, activity);
		else if (timed->deviceTimestamp)
			show_event(decoder, timed, activity);
	}
	if (!(decoder->kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_SYNC)))
		return;
	event = OPS_ARRAY_PUSH(&decoder->events);
	if (event)
		*event = (struct ops_cupti_event){record->contextId, record->eventId, record->correlationId, record->streamId};
	else
		decoder->activities->lost++;
}

void ops_cupti_decode_sync(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const CUpti_ActivitySynchronization *record = bytes;
	struct ops_cupti_sync *sync;

	(void)size;
	(void)activity;
	if (!(decoder->kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_SYNC)))
		return;
	sync = OPS_ARRAY_PUSH(&decoder->syncs);
	if (!sync || !record->start || !record->end) {
		decoder->syncs.count -= sync != NULL;
		decoder->activities->lost++;
		return;
	}
	*sync = (struct ops_cupti_sync){
		.activity = {.kind = OPS_ACTIVITY_SYNC,
	                     .start_ns = (int64_t)record->start,
	                     .end_ns = (int64_t)record->end,
	                     .stream = (int32_t)record->streamId /* -1 is CUPTI_SYNCHRONIZATION_INVALID_VALUE */,
	                     .correlation = record->correlationId},
		.type = record->type,
		.context = record->contextId,
		.event = record->cudaEventId,
	};
}

/* --- at the end ----------------------------------------------------------------------------------------------------- */

static int cupti_sync_compare_events(const void *a, const void *b)
{
	const struct ops_cupti_event *x = a, *y = b;

	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* Returns the last recording of an event before it was waited for; NULL if unknown. */
static const struct ops_cupti_event *cupti_sync_find_event(const struct ops_cupti_decoder *decoder,
                                                           const struct ops_cupti_sync *sync)
{
	const struct ops_cupti_event wanted = {sync->context, sync->event, (uint32_t)sync->activity.correlation, 0};
	size_t low = 0;
	const struct ops_cupti_event *found;

	OPS_LOWER_BOUND(low, decoder->events.count, mid, cupti_sync_compare_events(&decoder->events.items[mid], &wanted) < 0);
	found = low ? &decoder->events.items[low - 1] : NULL;
	return found && found->context == sync->context && found->event == sync->event ? found : NULL;
}

static uint16_t cupti_sync_device_of(const struct ops_cupti_decoder *decoder, uint32_t context)
{
	uint32_t number = ops_intern_find(&decoder->contexts, &context, sizeof(context));

	return number < decoder->context_devices.count ? decoder->context_devices.items[number] : 0;
}

static void cupti_sync_put_event(struct ops_cupti_decoder *decoder, const struct ops_cupti_sync *sync)
{
	const struct ops_cupti_event *event = cupti_sync_find_event(decoder, sync);

	ops_buffer_printf(&decoder->text,
	                  ",\"wait_on_stream\":%lld,\"wait_on_cuda_event_record_corr_id\":%lld,\"wait_on_cuda_event_id\":%u",
	                  event ? (long long)event->stream : -1, event ? (long long)event->correlation : -1, sync->event);
}

static void cupti_sync_add_sync(struct ops_cupti_decoder *decoder, const struct ops_cupti_sync *sync)
{
	static const char *const names[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	uint32_t type = sync->type < sizeof(names) / sizeof(names[0]) ? sync->type : 0;
	struct ops_activity activity = sync->activity;

	activity.device = cupti_sync_device_of(decoder, sync->context);
	activity.name = ops_activities_text(decoder->activities, names[type], strlen(names[type]));
	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "\"cuda_sync_kind\":\"%s\",\"stream\":%d,\"device\":%u,\"context\":%u", names[type],
	                  activity.stream, activity.device, sync->context);
	if (type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE ||
	    type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT)
		cupti_sync_put_event(decoder, sync);
	activity.details = ops_cupti_text(decoder);
	ops_activities_add(decoder->activities, &activity);
}

void ops_cupti_decode_end(struct ops_cupti_decoder *decoder)
{
	if (decoder->events.count)
		qsort(decoder->events.items, decoder->events.count, sizeof(*decoder->events.items), cupti_sync_compare_events);
	for (size_t i = 0; i < decoder->syncs.count; i++)
		cupti_sync_add_sync(decoder, &decoder->syncs.items[i]);
	ops_cupti_memory_end(decoder);
	decoder->activities->lost += decoder->open_markers; /* ranges that were still open at the stop */
	decoder->syncs.count = decoder->events.count = decoder->open_markers = 0;
}
