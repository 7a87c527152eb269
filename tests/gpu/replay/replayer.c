/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays files of records; see replayer.h.
 */
#include "replayer.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "record/recording.h"

#define HOST_MAX_NS (INT64_MAX / 4)
#define THREADS_MAX 16 /* of a file's host; ranges of further ones are left out */

/* What cuptiGetCallbackName says, which takes no context. */
static const struct replayer *current;

static CUptiResult CUPTIAPI name_of_call(CUpti_CallbackDomain domain, uint32_t callback, const char **ret_name)
{
	struct records records;
	struct records_section section;
	uint32_t call[2], version;
	size_t size;

	records_open(&records, current->bytes, current->size, &version);
	while (records_next(&records, &section))
		if (section.kind == RECORDS_CALL && records_read(&section, call, sizeof(call), ret_name, &size) && size &&
		    call[0] == (uint32_t)domain && call[1] == callback && !(*ret_name)[size - 1])
			return CUPTI_SUCCESS;
	return CUPTI_ERROR_INVALID_PARAMETER;
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

static void find_clocks(struct replayer *replayer)
{
	struct records records;
	struct records_section section;
	struct records_clock clock;
	const char *rest;
	size_t size;

	records_open(&records, replayer->bytes, replayer->size, &replayer->version);
	while (records_next(&records, &section)) {
		if (section.kind != RECORDS_CLOCK || !records_read(&section, &clock, sizeof(clock), &rest, &size) ||
		    clock.host_ns < replayer->stop.host_ns || clock.host_ns > HOST_MAX_NS)
			continue;
		if (!replayer->has_clock)
			replayer->start = clock;
		replayer->has_clock = true;
		replayer->stop = clock;
	}
}

bool replayer_init(struct replayer *replayer, const void *bytes, size_t size)
{
	struct records records;

	*replayer = (struct replayer){.bytes = bytes, .size = size};
	if (!records_open(&records, bytes, size, &replayer->version))
		return false;
	replayer->library.cuptiGetCallbackName = name_of_call;
	replayer->library.version = replayer->version;
	find_clocks(replayer);
	current = replayer;
	return true;
}

void replayer_release(struct replayer *replayer)
{
	ops_intern_release(&replayer->text_numbers);
	ops_intern_release(&replayer->text_store);
	OPS_ARRAY_RELEASE(&replayer->texts);
}

/* --- the collector -------------------------------------------------------------------------------------------------- */

static void add_text(struct replayer *replayer, uint64_t number, const char *text, size_t size)
{
	uint32_t stored = ops_intern_add(&replayer->text_store, text, size);
	uint32_t place = ops_intern_add(&replayer->text_numbers, &number, sizeof(number));

	const char **added = place == replayer->texts.count && stored != OPS_INTERN_NONE ? OPS_ARRAY_PUSH(&replayer->texts) : NULL;

	if (added)
		*added = replayer->text_store.entries[stored].bytes;
}

static uint64_t point_to_text(void *context, uint64_t number)
{
	const struct replayer *replayer = context;
	uint32_t place = ops_intern_find(&replayer->text_numbers, &number, sizeof(number));

	return place < replayer->texts.count ? (uint64_t)(uintptr_t)replayer->texts.items[place] : 0;
}

/* From a copy no larger than the record, so that a sanitizer sees who reads behind it. */
static void add_record(struct replayer *replayer, const struct records_section *section)
{
	uint64_t *record = ops_alloc_zeroed(1, section->size + 1);

	if (!record)
		return;
	replayer->records++;
	memcpy(record, section->bytes, section->size);
	records_change_pointers(record, section->size, point_to_text, replayer);
	ops_cupti_decode(&replayer->decoder, (const CUpti_Activity *)record, section->size);
	ops_free(record);
}

static void add_device(struct replayer *replayer, const struct records_section *section, struct ops_activities *activities)
{
	struct records_device device;
	struct ops_multiprocessor *known;
	const char *json;
	size_t size;

	if (!records_read(section, &device, sizeof(device), &json, &size) ||
	    device.ordinal != replayer->decoder.devices.count ||
	    !ops_activities_device(activities, device.ordinal, json, size))
		return;
	known = OPS_ARRAY_PUSH(&replayer->decoder.devices);
	if (known)
		*known = (struct ops_multiprocessor){device.compute_major, device.compute_minor, device.multiprocessors,
		                                     device.warp_size, device.threads_max, device.registers,
		                                     device.shared_bytes, device.shared_reserved_bytes, device.blocks_max};
}

static void add_node(const struct records_section *section, uint32_t kinds, struct ops_activities *activities)
{
	struct records_node node;
	struct ops_activity activity = {
		.kind = section->kind == RECORDS_NODE ? OPS_ACTIVITY_GRAPH_NODE : OPS_ACTIVITY_GRAPH_DEPENDENCY};
	const char *rest;
	size_t size;

	if (!(kinds & OPS_ACTIVITY_BIT(activity.kind)) || !records_read(section, &node, sizeof(node), &rest, &size))
		return;
	activity.correlation = node.node;
	activity.bytes = node.other;
	activity.start_ns = activity.end_ns = node.device_ns;
	activity.thread = node.thread;
	ops_activities_add(activities, &activity);
}

static void add_function(const struct records_section *section, struct ops_activities *activities)
{
	struct records_function fixed;
	struct ops_host_function function;
	const char *name;
	size_t size;

	if (!records_read(section, &fixed, sizeof(fixed), &name, &size))
		return;
	function = (struct ops_host_function){fixed.node, fixed.address, ops_activities_text(activities, name, size)};
	ops_activities_host_function(activities, &function);
}

static enum ops_code start(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error)
{
	struct replayer *replayer = self;

	(void)error;
	ops_cupti_decoder_init(&replayer->decoder, &replayer->library, activities, kinds);
	return OPS_OK;
}

static enum ops_code stop(void *self, struct ops_activities *activities, struct ops_error *error)
{
	struct replayer *replayer = self;
	struct records records;
	struct records_section section;
	uint64_t number;
	const char *text;
	size_t size;

	(void)error;
	records_open(&records, replayer->bytes, replayer->size, &replayer->version);
	while (records_next(&records, &section)) {
		if (section.kind == RECORDS_TEXT && records_read(&section, &number, sizeof(number), &text, &size))
			add_text(replayer, number, text, size);
		else if (section.kind == RECORDS_RECORD)
			add_record(replayer, &section);
		else if (section.kind == RECORDS_DEVICE)
			add_device(replayer, &section, activities);
		else if (section.kind == RECORDS_NODE || section.kind == RECORDS_EDGE)
			add_node(&section, replayer->decoder.kinds, activities);
		else if (section.kind == RECORDS_FUNCTION)
			add_function(&section, activities);
		else if (section.kind == RECORDS_DROPPED && records_read(&section, &number, sizeof(number), &text, &size))
			activities->lost += number;
	}
	ops_cupti_decode_end(&replayer->decoder);
	ops_cupti_decoder_release(&replayer->decoder);
	return OPS_OK;
}

static int64_t clock_ns(void *self)
{
	return ((const struct replayer *)self)->start.device_ns;
}

struct ops_device_collector replayer_collector(struct replayer *replayer)
{
	return (struct ops_device_collector){"a file of records", replayer, start, stop, clock_ns, NULL};
}

/* --- the host ------------------------------------------------------------------------------------------------------- */

/* A thread of the file, played by one of ours. */
struct host_thread {
	const struct replayer *replayer;
	uint32_t thread;
	long played_by;
};

static void play_range(const struct records_range *range, const char *name, size_t size)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	if (!slot)
		return;
	*slot = (struct ops_slot){
		.start_ticks = (uint64_t)range->start_ns,
		.end_ticks = (uint64_t)range->end_ns,
		.sequence_nr = -1,
		.kind = range->is_operator ? OPS_SLOT_OP : OPS_SLOT_RANGE,
		.scope = range->is_operator ? 0 : 7,
		.name = collector->intern(thread, name, size, NULL, 0),
	};
	ops_publish(thread);
}

static void *play_thread(void *argument)
{
	struct host_thread *host = argument;
	struct records records;
	struct records_section section;
	struct records_range range;
	const char *name;
	int64_t last_ns = 0; /* threads record in order of time */
	uint32_t version;
	size_t size;

	host->played_by = syscall(SYS_gettid);
	records_open(&records, host->replayer->bytes, host->replayer->size, &version);
	while (records_next(&records, &section))
		if (section.kind == RECORDS_RANGE && records_read(&section, &range, sizeof(range), &name, &size) &&
		    range.thread == host->thread && range.start_ns >= last_ns && range.end_ns >= range.start_ns &&
		    range.end_ns <= HOST_MAX_NS) {
			play_range(&range, name, size);
			last_ns = range.start_ns;
		}
	return NULL;
}

static size_t find_threads(const struct replayer *replayer, struct host_thread *ret_threads)
{
	struct records records;
	struct records_section section;
	struct records_range range;
	const char *name;
	uint32_t version;
	size_t size, count = 0, i;

	records_open(&records, replayer->bytes, replayer->size, &version);
	while (records_next(&records, &section)) {
		if (section.kind != RECORDS_RANGE || !records_read(&section, &range, sizeof(range), &name, &size))
			continue;
		for (i = 0; i < count && ret_threads[i].thread != range.thread; i++)
			;
		if (i == count && count < THREADS_MAX)
			ret_threads[count++] = (struct host_thread){replayer, range.thread, 0};
	}
	return count;
}

/* Replaces our clocks and threads by the file's. */
static void set_host(const struct replayer *replayer, const struct host_thread *threads, size_t count,
                     struct ops_recording *recording)
{
	const struct records_clock *start = &replayer->start, *stop = &replayer->stop;

	recording->start = (struct ops_clock_pair){(uint64_t)start->host_ns, start->host_ns, start->host_ns, 1};
	recording->stop = (struct ops_clock_pair){(uint64_t)stop->host_ns, stop->host_ns, stop->host_ns, 1};
	recording->activities->start = (struct ops_activity_clock){start->device_ns, (uint64_t)start->host_ns, 0};
	recording->activities->stop = (struct ops_activity_clock){stop->device_ns, (uint64_t)stop->host_ns, 0};
	for (struct ops_share *share = recording->shares; share; share = share->next)
		for (size_t i = 0; i < count; i++)
			if (share->tid == threads[i].played_by) {
				share->tid = threads[i].thread;
				break;
			}
}

enum ops_code replayer_trace(struct replayer *replayer, uint32_t kinds, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_device_collector collector = replayer_collector(replayer);
	struct host_thread threads[THREADS_MAX];
	size_t count = find_threads(replayer, threads);
	struct ops_device_session *devices;
	struct ops_recording *recording = NULL;
	struct ops_session *session;
	enum ops_code code = ops_session_start(NULL, &session, error);

	if (code)
		return code;
	code = ops_device_start(&collector, kinds, &devices, error);
	if (code) {
		ops_session_stop(session, &recording, NULL);
		ops_recording_free(recording);
		return code;
	}
	for (size_t i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, play_thread, &threads[i]) == 0)
			pthread_join(thread, NULL);
	}
	ops_session_stop(session, &recording, NULL);
	code = ops_device_stop(devices, recording, error);
	if (code) {
		ops_recording_free(recording);
		return code;
	}
	set_host(replayer, threads, count, recording);
	code = ops_trace_from_recording(recording, ret_trace, error);
	if (code)
		ops_recording_free(recording);
	return code;
}
