/* SPDX-License-Identifier: Apache-2.0
 *
 * The activities of devices during a session; see activities.h.
 */
#include "record/activities.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

struct ops_activities *ops_activities_new(void)
{
	struct ops_activities *activities = ops_alloc_zeroed(1, sizeof(*activities));

	if (activities && ops_intern_add(&activities->texts, "", 0) != 0) {
		ops_activities_free(activities);
		return NULL;
	}
	return activities;
}

void ops_activities_free(struct ops_activities *activities)
{
	if (!activities)
		return;
	for (size_t i = 0; i < activities->chunks.count; i++)
		ops_free(activities->chunks.items[i]);
	OPS_ARRAY_RELEASE(&activities->chunks);
	OPS_ARRAY_RELEASE(&activities->devices);
	OPS_ARRAY_RELEASE(&activities->metadata);
	OPS_ARRAY_RELEASE(&activities->nodes);
	OPS_ARRAY_RELEASE(&activities->host_functions);
	OPS_ARRAY_RELEASE(&activities->streams);
	ops_intern_release(&activities->texts);
	ops_free(activities);
}

uint32_t ops_activities_text(struct ops_activities *activities, const char *bytes, size_t size)
{
	uint32_t id = ops_intern_add(&activities->texts, bytes, size);

	return id == OPS_INTERN_NONE ? 0 : id;
}

static bool activities_add_chunk(struct ops_activities *activities)
{
	struct ops_activity *chunk;

	if (!OPS_ARRAY_RESERVE(&activities->chunks, 1))
		return false;
	chunk = ops_alloc(OPS_ACTIVITIES_A_CHUNK * sizeof(*chunk));
	if (chunk)
		activities->chunks.items[activities->chunks.count++] = chunk;
	return chunk != NULL;
}

void ops_activities_add(struct ops_activities *activities, const struct ops_activity *activity)
{
	size_t place = activities->count % OPS_ACTIVITIES_A_CHUNK;

	if (place == 0 && !activities_add_chunk(activities)) {
		activities->lost++;
		return;
	}
	activities->chunks.items[activities->chunks.count - 1][place] = *activity;
	activities->count++;
}

/* Returns the id of a text that is JSON; 0 if it is not JSON, or if out of memory. */
static uint32_t json_text(struct ops_activities *activities, const char *json, size_t size)
{
	return ops_json_validate(json, size, NULL) == OPS_OK ? ops_activities_text(activities, json, size) : 0;
}

void ops_activities_node(struct ops_activities *activities, uint32_t details, uint64_t node)
{
	struct ops_activity_node *added = OPS_ARRAY_PUSH(&activities->nodes);

	if (added)
		*added = (struct ops_activity_node){node, details};
	else
		activities->lost++;
}

void ops_activities_host_function(struct ops_activities *activities, const struct ops_host_function *function)
{
	struct ops_host_function *added = OPS_ARRAY_PUSH(&activities->host_functions);

	if (added)
		*added = *function;
	else
		activities->lost++;
}

void ops_activities_stream(struct ops_activities *activities, uint16_t device, int32_t stream, uint32_t name)
{
	struct ops_activity_stream *added = OPS_ARRAY_PUSH(&activities->streams);

	if (added)
		*added = (struct ops_activity_stream){stream, name, device};
	else
		activities->lost++;
}

bool ops_activities_device(struct ops_activities *activities, uint32_t ordinal, const char *properties, size_t size)
{
	uint32_t text = json_text(activities, properties, size);
	struct ops_device *added = text ? OPS_ARRAY_PUSH(&activities->devices) : NULL;

	if (added)
		*added = (struct ops_device){ordinal, text};
	return added != NULL;
}

bool ops_activities_metadata(struct ops_activities *activities, const char *key, const char *value, size_t size)
{
	struct ops_device_metadata metadata = {ops_activities_text(activities, key, strlen(key)),
	                                       json_text(activities, value, size)};
	struct ops_device_metadata *added =
		metadata.key && metadata.value ? OPS_ARRAY_PUSH(&activities->metadata) : NULL;

	if (added)
		*added = metadata;
	return added != NULL;
}
