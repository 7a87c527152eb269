/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the device work of a recording to the calls that started it; see recording_devices.h. Calls and work are sorted by
 * correlation, in which they nearly are already, and walked together.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/order.h"
#include "read/recording_devices.h"

/* Where torch's viewers expect the processes of devices: after those of the host. */
#define DEVICE_SORT_INDEX 5000000

/* --- streams and annotations --------------------------------------------------------------------------------------- */

/* Returns the name that the program gave a stream: a string id, "" if none. */
static uint32_t stream_name(struct recording_devices *devices, const struct ops_activity *activity)
{
	const struct ops_activities *activities = devices->activities;

	for (size_t i = activities->streams.count; i-- > 0;)
		if (activities->streams.items[i].device == activity->device && activities->streams.items[i].stream == activity->stream)
			return devices->strings[activities->streams.items[i].name];
	return devices->strings[0];
}

/* Returns the stream of some work; NULL if out of memory. */
static struct recording_stream *device_work_stream(struct recording_devices *devices, const struct ops_activity *activity)
{
	const int64_t key[2] = {activity->device, activity->stream};
	uint32_t number = ops_intern_add(&devices->streams, key, sizeof(key));
	struct recording_stream *stream;

	if (number < devices->stream_list.count)
		return &devices->stream_list.items[number];
	stream = number == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&devices->stream_list);
	if (!stream)
		return NULL;
	*stream = (struct recording_stream){
		.track = ops_builder_track(devices->builder, &(struct ops_track){.kind = OPS_TRACK_STREAM,
	                                                                         .pid = activity->device,
	                                                                         .tid = activity->stream,
	                                                                         .name = stream_name(devices, activity)})};
	return stream->track == OPS_NONE ? NULL : stream;
}

/* Returns the span of an annotation that is to be extended over the work that is the latest of a stream; a new one if there is
 * none, or if other work interrupted it. Returns NULL if out of memory. */
static struct recording_span *device_work_span(struct recording_devices *devices, uint32_t annotation,
                                               const struct recording_stream *stream, const struct ops_new_event *event)
{
	const uint32_t key[2] = {annotation, stream->track};
	uint32_t number = ops_intern_add(&devices->span_keys, key, sizeof(key));
	bool is_known = number < devices->latest_spans.count;
	uint32_t *latest = number == OPS_INTERN_NONE ? NULL : OPS_ARRAY_AT(&devices->latest_spans, number);
	struct recording_span *span = latest && is_known ? &devices->spans.items[*latest] : NULL;

	if (span && (!devices->annotations.items[annotation].was_interrupted || span->last_work + 1 >= stream->work_count))
		return span;
	span = latest ? OPS_ARRAY_PUSH(&devices->spans) : NULL;
	if (!span)
		return NULL;
	*latest = (uint32_t)devices->spans.count - 1;
	*span = (struct recording_span){event->start_ns, event->end_ns, annotation, event->track, 0};
	return span;
}

/* Extends the annotations around a call over the work that it started, the latest of a stream. */
static bool cover(struct recording_devices *devices, uint32_t annotation, const struct recording_stream *stream,
                  const struct ops_new_event *event)
{
	for (; annotation != OPS_NONE; annotation = devices->annotations.items[annotation].outer) {
		struct recording_span *span =
			device_work_span(devices, devices->annotations.items[annotation].first, stream, event);

		if (!span)
			return false;
		span->start_ns = event->start_ns < span->start_ns ? event->start_ns : span->start_ns;
		span->end_ns = event->end_ns > span->end_ns ? event->end_ns : span->end_ns;
		span->last_work = stream->work_count;
	}
	return true;
}

/* Adds rows of the annotations over streams, each a nanosecond longer at both ends than the work that it covers. */
static void add_spans(struct recording_devices *devices)
{
	for (size_t i = 0; i < devices->spans.count; i++) {
		const struct recording_span *span = &devices->spans.items[i];
		const struct recording_annotation *annotation = &devices->annotations.items[span->annotation];
		struct ops_new_event event = {
			OPS_NEW_EVENT,
			.kind = OPS_EVENT_GPU_USER_ANNOTATION,
			.name = annotation->name,
			.id = annotation->id,
			.track = span->track,
			.start_ns = span->start_ns - 1,
			.end_ns = span->end_ns + 1,
		};

		ops_builder_event(devices->builder, &event);
	}
}

/* --- work ----------------------------------------------------------------------------------------------------------- */

/* Appends to the details of a copy what it moved and how fast. */
static uint32_t device_work_copy_details(struct recording_devices *devices, const struct ops_activity *activity)
{
	struct ops_buffer *text = &devices->text;
	const struct ops_intern_entry *details = &devices->activities->texts.entries[activity->details];
	char number[32];

	text->size = 0;
	ops_buffer_append(text, details->bytes, details->size);
	ops_buffer_append_text(text, details->size ? ",\"bytes\":" : "\"bytes\":");
	ops_buffer_append(text, number, (size_t)(ops_json_uint_to(number, activity->bytes) - number));
	if (activity->end_ns > activity->start_ns) {
		double rate = (double)activity->bytes / (double)(activity->end_ns - activity->start_ns);

		ops_buffer_append_text(text, ",\"memory bandwidth (GB/s)\":");
		ops_buffer_append(text, number, (size_t)(ops_json_double_to(number, rate) - number));
	}
	return text->failed ? OPS_NONE : ops_builder_string(devices->builder, text->bytes, text->size);
}

/* Returns the function that a graph node calls on the host; NULL if unknown. */
static const struct ops_host_function *device_work_function_of(const struct recording_devices *devices, uint32_t node)
{
	uint32_t function = node == OPS_NONE ? OPS_NONE : device_graphs_function(&devices->graphs, node);

	return function == OPS_NONE ? NULL : &devices->activities->host_functions.items[function];
}

static void put_function(struct ops_buffer *text, const struct ops_host_function *function, const struct ops_intern_entry *name)
{
	if (name->size) {
		ops_buffer_append_text(text, ",\"host fn\":");
		ops_json_string(text, name->bytes, name->size);
	}
	ops_buffer_printf(text, ",\"host fn addr\":\"0x%llx\"", (unsigned long long)function->address);
}

/* Appends to the details of a graph node what is known about it: the function that it calls on the host, and the operator from
 * which it was captured. */
static uint32_t device_work_node_details(struct recording_devices *devices, const struct ops_activity *activity, uint32_t node)
{
	const struct ops_intern_entry *texts = devices->activities->texts.entries;
	const struct ops_intern_entry *details = &texts[activity->details];
	const struct ops_host_function *function = device_work_function_of(devices, node);
	uint32_t captured = devices->graphs.nodes.items[node].operator_name;
	struct ops_buffer *text = &devices->text;

	text->size = 0;
	ops_buffer_append(text, details->bytes, details->size);
	if (activity->kind == OPS_ACTIVITY_HOST_NODE && function)
		put_function(text, function, &texts[function->name]);
	if (captured) {
		struct ops_string name = ops_builder_text(devices->builder, captured);

		ops_buffer_append_text(text, text->size ? ",\"captured from\":" : "\"captured from\":");
		ops_json_string(text, name.bytes, name.size);
	}
	return text->failed ? OPS_NONE : ops_builder_string(devices->builder, text->bytes, text->size);
}

/* A node that runs on the host has the name of its function. */
static uint32_t host_node_name(struct recording_devices *devices, const struct ops_activity *activity, uint32_t node)
{
	const struct ops_intern_entry *texts = devices->activities->texts.entries;
	const struct ops_host_function *function = device_work_function_of(devices, node);
	struct ops_buffer *text = &devices->text;

	if (!function || !texts[function->name].size)
		return devices->strings[activity->name];
	text->size = 0;
	ops_buffer_append(text, texts[activity->name].bytes, texts[activity->name].size);
	ops_buffer_append_text(text, ": ");
	ops_buffer_append(text, texts[function->name].bytes, texts[function->name].size);
	return text->failed ? OPS_NONE : ops_builder_string(devices->builder, text->bytes, text->size);
}

/* Appends to the details of a kernel the description of the collective that started it. */
static uint32_t collective_details(struct recording_devices *devices, uint32_t details, uint32_t collective)
{
	struct ops_buffer *text = &devices->text;
	struct ops_string members;

	if (details == OPS_NONE)
		return collective;
	text->size = 0;
	members = ops_builder_text(devices->builder, details);
	ops_buffer_append(text, members.bytes, members.size);
	ops_buffer_append_text(text, ",");
	members = ops_builder_text(devices->builder, collective);
	ops_buffer_append(text, members.bytes, members.size);
	return text->failed ? OPS_NONE : ops_builder_string(devices->builder, text->bytes, text->size);
}

/* Returns the category of activities whose kind has none, else NULL. */
static const char *device_work_category_of(const struct ops_activity *activity)
{
	if (activity->kind == OPS_ACTIVITY_HOST_NODE)
		return "graph_host_node";
	if (activity->kind == OPS_ACTIVITY_EVENT_NODE)
		return "graph_event_node";
	if (activity->kind == OPS_ACTIVITY_MEMORY)
		return "cuda_memory";
	return activity->is_event ? "cuda_event" : NULL;
}

/* Adds work on a stream; `call` started it, NULL if unknown. */
static bool read_work(struct recording_devices *devices, const struct ops_activity *activity, const struct recording_call *call)
{
	static const uint8_t kinds[] = {
		[OPS_ACTIVITY_KERNEL] = OPS_EVENT_KERNEL,
		[OPS_ACTIVITY_MEMCPY] = OPS_EVENT_GPU_MEMCPY,
		[OPS_ACTIVITY_MEMSET] = OPS_EVENT_GPU_MEMSET,
		[OPS_ACTIVITY_SYNC] = OPS_EVENT_SYNC,
		[OPS_ACTIVITY_MEMORY] = OPS_EVENT_OTHER,
		[OPS_ACTIVITY_HOST_NODE] = OPS_EVENT_OTHER,
		[OPS_ACTIVITY_EVENT_NODE] = OPS_EVENT_OTHER,
	};
	const char *category = device_work_category_of(activity);
	struct recording_stream *stream = device_work_stream(devices, activity);
	bool moves = activity->kind == OPS_ACTIVITY_MEMCPY || activity->kind == OPS_ACTIVITY_MEMSET;
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.kind = activity->is_event ? OPS_EVENT_OTHER : kinds[activity->kind],
		.name = devices->strings[activity->name],
		.track = stream ? stream->track : OPS_NONE,
		.id = call ? call->operator_id : 0,
	};
	uint32_t node = device_graphs_node_of(&devices->graphs, activity);
	uint32_t row;

	if (event.track == OPS_NONE)
		return false;
	if (activity->correlation)
		event.correlation = (int64_t)activity->correlation;
	if (category)
		event.category = ops_builder_string(devices->builder, category, strlen(category));
	if (activity->kind == OPS_ACTIVITY_HOST_NODE)
		event.name = host_node_name(devices, activity, node);
	recording_devices_times(devices, activity, &event);
	if (moves)
		event.extra = device_work_copy_details(devices, activity);
	else if (node != OPS_NONE && (activity->kind == OPS_ACTIVITY_HOST_NODE || devices->graphs.nodes.items[node].operator_name))
		event.extra = device_work_node_details(devices, activity, node);
	else if (activity->details)
		event.extra = devices->strings[activity->details];
	if (call && call->collective != OPS_NONE && activity->kind == OPS_ACTIVITY_KERNEL)
		event.extra = collective_details(devices, event.extra, call->collective);
	if (devices->text.failed)
		return false;
	row = ops_builder_event(devices->builder, &event);
	if (row == OPS_NONE || activity->kind == OPS_ACTIVITY_SYNC || activity->kind == OPS_ACTIVITY_MEMORY)
		return true;
	stream->work_count++;
	if (node != OPS_NONE && activity->correlation &&
	    !device_graphs_ran(&devices->graphs, node, activity->correlation, row, call ? call->row : OPS_NONE))
		return false;
	if (!call)
		return true;
	if (node == OPS_NONE)
		ops_builder_link(devices->builder, &(struct ops_link){call->row, row, OPS_LINK_LAUNCH, OPS_NONE});
	return cover(devices, call->annotation, stream, &event);
}

static bool correlates_before(const void *context, uint32_t a, uint32_t b)
{
	return ops_activity_at(context, a)->correlation < ops_activity_at(context, b)->correlation;
}

static bool met_before(const void *context, uint32_t a, uint32_t b)
{
	const struct recording_call *met = context;

	return met[a].correlation < met[b].correlation;
}

/* Returns the activities that are not calls, sorted by correlation. Returns NULL if out of memory. */
static uint32_t *order_work(const struct ops_activities *activities, size_t *ret_count)
{
	uint32_t *work = ops_realloc_array(NULL, activities->count + 1, sizeof(*work));
	size_t count = 0;

	for (size_t i = 0; work && i < activities->count; i++)
		if (!ops_activity_is_call(ops_activity_at(activities, i)) && !ops_activity_is_counter(ops_activity_at(activities, i)))
			work[count++] = (uint32_t)i;
	if (work && !ops_sort_rows(work, count, correlates_before, activities)) {
		ops_free(work);
		return NULL;
	}
	*ret_count = count;
	return work;
}

/* If several calls have the same correlation (a runtime call makes a driver call), the first one is used. */
static bool device_work_join(struct recording_devices *devices, const uint32_t *work, size_t count)
{
	const struct recording_call *met = devices->met.items;
	uint64_t launch = 0;
	size_t next = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ops_activity *activity = ops_activity_at(devices->activities, work[i]);

		if (activity->correlation != launch)
			device_graphs_launched(&devices->graphs, devices->builder);
		launch = activity->correlation;
		while (next < devices->met.count && met[next].correlation < activity->correlation)
			next++;
		if (!read_work(devices, activity,
		               next < devices->met.count && met[next].correlation == activity->correlation ? &met[next] : NULL))
			return false;
	}
	device_graphs_launched(&devices->graphs, devices->builder);
	return true;
}

/* --- devices -------------------------------------------------------------------------------------------------------- */

static void add_process(struct recording_devices *devices, int64_t pid, const char *labels, int64_t sort_index)
{
	ops_builder_process(devices->builder, &(struct ops_process){
						      .pid = pid,
						      .name = ops_builder_string(devices->builder,
	                                                                         program_invocation_short_name,
	                                                                         strlen(program_invocation_short_name)),
						      .labels = ops_builder_string(devices->builder, labels, strlen(labels)),
						      .has_sort_index = 1,
						      .sort_index = sort_index,
					      });
}

/* Adds the host and the devices as processes, as viewers expect. */
static bool add_processes(struct recording_devices *devices)
{
	const struct ops_activities *activities = devices->activities;

	add_process(devices, getpid(), "CPU", getpid());
	for (size_t i = 0; i < activities->devices.count; i++) {
		uint32_t ordinal = activities->devices.items[i].ordinal;

		devices->text.size = 0;
		ops_buffer_printf(&devices->text, "GPU %u", ordinal);
		ops_buffer_append(&devices->text, "", 1);
		if (devices->text.failed)
			return false;
		add_process(devices, ordinal, devices->text.bytes, DEVICE_SORT_INDEX + (int64_t)ordinal);
	}
	return true;
}

/* Saves what the collector states about the devices, for the top level of the trace: the recording is freed before the trace
 * exists. */
static bool list_metadata(struct recording_devices *devices)
{
	const struct ops_activities *activities = devices->activities;
	const struct ops_intern_entry *texts = activities->texts.entries;
	struct ops_buffer *json = &devices->metadata;

	ops_buffer_append_text(json, "{\"deviceProperties\":[");
	for (size_t i = 0; i < activities->devices.count; i++) {
		const struct ops_intern_entry *properties = &texts[activities->devices.items[i].properties];

		ops_buffer_append_text(json, i ? "," : "");
		ops_buffer_append(json, properties->bytes, properties->size);
	}
	ops_buffer_append_text(json, "]");
	for (size_t i = 0; i < activities->metadata.count; i++) {
		const struct ops_intern_entry *key = &texts[activities->metadata.items[i].key];
		const struct ops_intern_entry *value = &texts[activities->metadata.items[i].value];

		ops_buffer_append_text(json, ",");
		ops_json_string(json, key->bytes, key->size);
		ops_buffer_append_text(json, ":");
		ops_buffer_append(json, value->bytes, value->size);
	}
	ops_buffer_append_text(json, "}");
	return !json->failed;
}

/* Clears what a failed attempt has left. Its rows and tracks are gone with the rewound builder. */
static void clear_work(struct recording_devices *devices)
{
	ops_intern_release(&devices->streams);
	OPS_ARRAY_RELEASE(&devices->stream_list);
	ops_intern_release(&devices->span_keys);
	OPS_ARRAY_RELEASE(&devices->latest_spans);
	OPS_ARRAY_RELEASE(&devices->spans);
	ops_buffer_release(&devices->metadata);
	ops_buffer_release(&devices->text);
}

bool recording_devices_add_work(struct recording_devices *devices)
{
	size_t count;
	uint32_t *work;
	bool ok;

	clear_work(devices);
	work = order_work(devices->activities, &count);
	ok = work && OPS_ARRAY_SORT_STABLE(&devices->met, met_before) && device_work_join(devices, work, count) && add_processes(devices) &&
	     list_metadata(devices);

	ops_free(work);
	if (ok)
		add_spans(devices);
	return ok;
}

enum ops_code recording_devices_describe(const struct recording_devices *devices, struct ops_trace *trace,
                                         struct ops_error *error)
{
	struct ops_json_walk walk = ops_json_walk(devices->metadata.bytes, devices->metadata.size);
	struct ops_string key, value;
	enum ops_code code = OPS_OK;

	while (!code && ops_json_next_member(&walk, &key, &value))
		code = ops_trace_set_metadata(trace, key.bytes, key.size, value.bytes, value.size, error);
	return code;
}
