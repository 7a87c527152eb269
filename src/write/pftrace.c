/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's native format: a sequence of packets, each a protocol buffer, from one writer:
 *
 *     clock · tracks (process, threads, streams) · begin and end of each event, in order of its lane · memory ·
 *     counters · the span of the recording with the metadata
 *
 * An event is two packets on the track of its thread, and Perfetto nests them in order. So the end of an event is written when
 * the next event of its lane begins after it. An event that does not nest gets a track below its thread's. Names are interned:
 * they are written once, with the first packet that uses them.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/write.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/options.h"
#include "base/protobuf.h"
#include "base/sink.h"
#include "base/text.h"
#include "trace/pftrace_fields.h"
#include "write/overlap.h"
#include "write/pftrace.h"

/* Tracks are identified by numbers: one for the recording, then ranges of numbers. */
#define UUID_RECORDING 1u
#define UUID_PROCESS (UINT64_C(1) << 32)
#define UUID_LANE (UINT64_C(2) << 32)
#define UUID_COUNTER (UINT64_C(3) << 32)
#define UUID_ROW (UINT64_C(4) << 32) /* for rows that do not nest */

#define ROWS_BETWEEN_CHECKS 4096u
#define LEVEL_DEFAULT 4
#define SEQUENCE 1

struct writer {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_trace_info *info;
	const struct ops_pftrace_options *options; /* may be NULL */
	struct ops_sink *sink;
	struct ops_pf_args args;
	struct ops_buffer packet;
	struct ops_buffer event;   /* the TrackEvent or TrackDescriptor of the packet */
	struct ops_buffer inner;   /* a message in `event` */
	struct ops_buffer entry;
	struct ops_intern processes; /* {pid, flags, kind} */
	struct ops_intern threads;   /* {pid, tid, flags, kind}: the lanes */
	struct ops_intern counters;  /* {lane, name, series} */
	uint32_t *lanes;    /* by track */
	uint32_t *open;     /* by lane: the innermost row that has not ended, or OPS_NONE */
	uint32_t *below;    /* by row: the enclosing row on its lane */
	uint8_t *overlaps;  /* bits */
	uint8_t *interned;  /* bits: strings that were written */
	uint32_t *by_target; /* links in order of `to` */
	const struct ops_link *links;
	size_t link_count;
	size_t from_at; /* number of links written so far */
	size_t to_at;
	bool cancelled;
};

/* --- packets -------------------------------------------------------------------------------------------------------- */

static void end_packet(struct writer *writer)
{
	struct ops_buffer *head = &writer->entry;

	ops_pb_uint(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
	head->size = 0;
	ops_pb_varint(head, TRACE_PACKET << 3 | OPS_PB_BYTES);
	ops_pb_varint(head, writer->packet.size);
	ops_sink_write(writer->sink, head->bytes, head->size);
	ops_sink_write(writer->sink, writer->packet.bytes, writer->packet.size);
	writer->packet.size = 0;
	head->size = 0;
}

static bool failed(const struct writer *writer)
{
	return writer->packet.failed || writer->event.failed || writer->inner.failed || writer->entry.failed ||
	       writer->args.scratch.failed || writer->args.inputs.scratch.failed;
}

static void begin_event(struct writer *writer, int type, uint64_t track)
{
	ops_pb_uint(&writer->event, EVENT_TYPE, (uint64_t)type);
	ops_pb_uint(&writer->event, EVENT_TRACK, track);
}

static void end_event(struct writer *writer, int64_t time_ns)
{
	ops_pb_uint(&writer->packet, PACKET_TIMESTAMP, (uint64_t)time_ns);
	if (writer->inner.size)
		ops_pb_message(&writer->packet, PACKET_INTERNED, &writer->inner);
	ops_pb_uint(&writer->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	ops_pb_message(&writer->packet, PACKET_TRACK_EVENT, &writer->event);
	end_packet(writer);
}

/* Interned data are collected in `inner` and written with the packet. */
static void add_entry(struct writer *writer, uint32_t table, uint64_t id, struct ops_string text)
{
	ops_pb_uint(&writer->entry, ENTRY_ID, id);
	ops_pf_put_text(&writer->entry, ENTRY_NAME, text);
	ops_pb_message(&writer->inner, table, &writer->entry);
}

static void pftrace_put_name(struct writer *writer, uint32_t string)
{
	if (!ops_bit(writer->interned, string)) {
		ops_bit_set(writer->interned, string);
		add_entry(writer, INTERNED_NAMES, (uint64_t)string + 1, ops_trace_string(writer->trace, string));
	}
	ops_pb_uint(&writer->event, EVENT_NAME_ID, (uint64_t)string + 1);
}

/* --- tracks --------------------------------------------------------------------------------------------------------- */

static void begin_track(struct writer *writer, uint64_t uuid, uint64_t parent)
{
	ops_pb_uint(&writer->event, TRACK_UUID, uuid);
	if (parent)
		ops_pb_uint(&writer->event, TRACK_PARENT, parent);
}

static void end_track(struct writer *writer)
{
	ops_pb_message(&writer->packet, PACKET_TRACK_DESCRIPTOR, &writer->event);
	end_packet(writer);
}

static bool pftrace_is_number(int64_t id)
{
	return id >= 0 && id <= INT32_MAX;
}

/* Returns whether the track belongs to a process that Perfetto can represent; else it is identified by its names. */
static bool is_in_process(const struct ops_track *track)
{
	return track->kind == OPS_TRACK_THREAD && !(track->flags & (OPS_TRACK_PID_TEXT | OPS_TRACK_TID_TEXT)) &&
	       pftrace_is_number(track->pid) && pftrace_is_number(track->tid);
}

static bool is_thread(const struct ops_track *track)
{
	return is_in_process(track) && !(track->flags & OPS_TRACK_COROUTINE);
}

static void put_label(struct writer *writer, const char *word, int64_t id, bool is_text)
{
	char label[64];

	if (is_text) {
		ops_pf_put_text(&writer->event, TRACK_NAME, ops_trace_string(writer->trace, (uint32_t)id));
	} else {
		snprintf(label, sizeof(label), "%s %lld", word, (long long)id);
		ops_pb_text(&writer->event, TRACK_NAME, label);
	}
}

/* Returns the name that a file or `opstrobe merge` gives the process or device of a track; empty if unknown. */
static struct ops_string process_name(const struct writer *writer, const struct ops_track *track)
{
	uint32_t flags = track->flags & OPS_TRACK_PID_TEXT;
	size_t count;
	const struct ops_process *processes = ops_trace_processes(writer->trace, &count);
	const char *name = writer->info->process_name;

	for (size_t i = 0; i < count; i++)
		if (processes[i].pid == track->pid && processes[i].flags == flags && processes[i].name != OPS_NONE)
			return ops_trace_string(writer->trace, processes[i].name);
	if (is_in_process(track) && track->pid == writer->info->pid)
		return (struct ops_string){name, strlen(name)};
	return (struct ops_string){"", 0};
}

static void pftrace_put_device(struct writer *writer, int64_t device, struct ops_string name)
{
	struct ops_buffer label = {0};

	ops_buffer_printf(&label, "GPU %lld", (long long)device);
	if (name.size) {
		ops_buffer_append_text(&label, " (");
		ops_buffer_append(&label, name.bytes, name.size);
		ops_buffer_append_text(&label, ")");
	}
	if (!label.failed)
		ops_pf_put_text(&writer->event, TRACK_NAME, (struct ops_string){label.bytes, label.size});
	writer->event.failed |= label.failed;
	ops_buffer_release(&label);
}

static void pftrace_write_process(struct writer *writer, const struct ops_track *track, uint64_t uuid)
{
	struct ops_string name = process_name(writer, track);

	begin_track(writer, uuid, 0);
	if (is_in_process(track)) {
		ops_pb_uint(&writer->inner, PROCESS_PID, (uint64_t)track->pid);
		if (name.size)
			ops_pf_put_text(&writer->inner, PROCESS_NAME, name);
		ops_pb_text(&writer->inner, PROCESS_LABELS, "CPU");
		ops_pb_message(&writer->event, TRACK_PROCESS, &writer->inner);
	} else if (track->kind == OPS_TRACK_STREAM && !(track->flags & OPS_TRACK_PID_TEXT)) {
		pftrace_put_device(writer, track->pid, name);
	} else {
		put_label(writer, "process", track->pid, track->flags & OPS_TRACK_PID_TEXT);
	}
	end_track(writer);
}

static void write_lane(struct writer *writer, const struct ops_track *track, uint64_t uuid, uint64_t process)
{
	struct ops_string name = ops_trace_string(writer->trace, track->name);

	if (is_thread(track)) {
		begin_track(writer, uuid, 0);
		ops_pb_uint(&writer->inner, THREAD_PID, (uint64_t)track->pid);
		ops_pb_uint(&writer->inner, THREAD_TID, (uint64_t)track->tid);
		if (name.size)
			ops_pf_put_text(&writer->inner, THREAD_NAME, name);
		ops_pb_message(&writer->event, TRACK_THREAD, &writer->inner);
	} else if (track->flags & OPS_TRACK_COROUTINE) {
		begin_track(writer, uuid, process);
		ops_pf_put_text(&writer->event, TRACK_NAME, name);
	} else {
		begin_track(writer, uuid, process);
		put_label(writer, track->kind == OPS_TRACK_STREAM ? "stream" : "thread", track->tid, track->flags & OPS_TRACK_TID_TEXT);
	}
	end_track(writer);
}

/* Threads whose number was used again share a lane. Returns false if out of memory. */
static bool pftrace_write_tracks(struct writer *writer, const struct ops_track *tracks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ops_track *track = &tracks[i];
		int64_t process_key[3] = {track->pid, track->flags & OPS_TRACK_PID_TEXT, track->kind};
		int64_t lane_key[4] = {track->pid, track->tid, track->flags, track->kind};
		size_t processes = writer->processes.count, lanes = writer->threads.count;
		uint32_t process = ops_intern_add(&writer->processes, process_key, sizeof(process_key));

		writer->lanes[i] = ops_intern_add(&writer->threads, lane_key, sizeof(lane_key));
		if (process == OPS_INTERN_NONE || writer->lanes[i] == OPS_INTERN_NONE)
			return false;
		if (process >= processes)
			pftrace_write_process(writer, track, UUID_PROCESS + process);
		if (writer->lanes[i] >= lanes)
			write_lane(writer, track, UUID_LANE + writer->lanes[i], UUID_PROCESS + process);
	}
	return true;
}

/* --- events --------------------------------------------------------------------------------------------------------- */

static void pftrace_put_category(struct writer *writer, uint32_t row)
{
	const struct ops_events *events = writer->events;

	if (events->category && events->category[row] != OPS_NONE)
		ops_pf_put_text(&writer->event, EVENT_CATEGORY, ops_trace_string(writer->trace, events->category[row]));
	else
		ops_pb_uint(&writer->event, EVENT_CATEGORY_ID, (uint64_t)events->kind[row] + 1);
}

/* As in Kineto's files, the overload is appended to the name. */
static void put_row_name(struct writer *writer, uint32_t row)
{
	const struct ops_events *events = writer->events;
	struct ops_string name, overload = {0};
	struct ops_buffer both = {0};

	if (events->overload)
		overload = ops_trace_string(writer->trace, events->overload[row]);
	if (overload.size == 0) {
		pftrace_put_name(writer, events->name[row]);
		return;
	}
	name = ops_trace_string(writer->trace, events->name[row]);
	ops_buffer_append(&both, name.bytes, name.size);
	ops_buffer_append_text(&both, ".");
	ops_buffer_append(&both, overload.bytes, overload.size);
	if (!both.failed)
		ops_pf_put_text(&writer->event, EVENT_NAME, (struct ops_string){both.bytes, both.size});
	writer->event.failed |= both.failed;
	ops_buffer_release(&both);
}

/* Writes the flows that begin or end at the row. Rows and both lists are in the same order. */
static void put_flows(struct writer *writer, uint32_t row)
{
	for (; writer->from_at < writer->link_count && writer->links[writer->from_at].from == row; writer->from_at++)
		ops_pb_fixed64(&writer->event, EVENT_FLOW, writer->from_at + 1);
	for (; writer->to_at < writer->link_count && writer->links[writer->by_target[writer->to_at]].to == row; writer->to_at++)
		ops_pb_fixed64(&writer->event, EVENT_FLOW_END, (uint64_t)writer->by_target[writer->to_at] + 1);
}

static void write_end(struct writer *writer, uint64_t track, int64_t time_ns)
{
	begin_event(writer, TYPE_END, track);
	end_event(writer, time_ns);
}

/* Writes the ends of all events on the lane that end by `time_ns`. */
static void end_until(struct writer *writer, uint32_t lane, int64_t time_ns)
{
	while (writer->open[lane] != OPS_NONE && writer->events->end_ns[writer->open[lane]] <= time_ns) {
		write_end(writer, UUID_LANE + lane, writer->events->end_ns[writer->open[lane]]);
		writer->open[lane] = writer->below[writer->open[lane]];
	}
}

static bool stands_apart(const struct writer *writer, uint32_t row)
{
	return ops_bit(writer->overlaps, row) || (writer->args.was_read && writer->events->flags[row] & OPS_EVENT_ASYNC);
}

static void pftrace_write_row(struct writer *writer, uint32_t row)
{
	const struct ops_events *events = writer->events;
	uint32_t lane = writer->lanes[events->track[row]];
	bool instant = events->kind[row] == OPS_EVENT_CPU_INSTANT || events->kind[row] == OPS_EVENT_MARK;
	bool apart = !instant && stands_apart(writer, row);

	if (apart) {
		begin_track(writer, UUID_ROW + row, UUID_LANE + lane);
		ops_pf_put_text(&writer->event, TRACK_NAME, ops_trace_string(writer->trace, events->name[row]));
		end_track(writer);
	} else {
		end_until(writer, lane, events->start_ns[row]);
	}
	begin_event(writer, instant ? TYPE_INSTANT : TYPE_BEGIN, apart ? UUID_ROW + row : UUID_LANE + lane);
	pftrace_put_category(writer, row);
	put_row_name(writer, row);
	ops_pf_put_args(&writer->args, &writer->event, row);
	if (apart || events->flags[row] & OPS_EVENT_ASYNC)
		ops_pf_put_bool(&writer->event, &writer->args.scratch, "Async", events->flags[row] & OPS_EVENT_ASYNC);
	put_flows(writer, row);
	end_event(writer, events->start_ns[row]);
	if (apart) {
		write_end(writer, UUID_ROW + row, events->end_ns[row]);
	} else if (!instant) {
		writer->below[row] = writer->open[lane];
		writer->open[lane] = row;
	}
}

/* Returns whether to continue: false if memory or the disk is full, or if the caller cancelled. */
static bool pftrace_go_on(struct writer *writer, size_t row)
{
	if (row % ROWS_BETWEEN_CHECKS)
		return true;
	if (failed(writer) || ops_sink_failed(writer->sink))
		return false;
	if (writer->options->progress)
		writer->cancelled |= writer->options->progress(writer->options->progress_context, ops_sink_total(writer->sink)) != 0;
	return !writer->cancelled;
}

static void pftrace_write_rows(struct writer *writer)
{
	for (size_t row = 0; row < writer->events->count && pftrace_go_on(writer, row); row++)
		pftrace_write_row(writer, (uint32_t)row);
	for (size_t lane = 0; lane < writer->threads.count; lane++)
		end_until(writer, (uint32_t)lane, INT64_MAX);
}

/* --- memory and counters -------------------------------------------------------------------------------------------- */

/* Returns the track of a counter, which is described if it is new; 0 if out of memory. */
static uint64_t pftrace_counter_track(struct writer *writer, int64_t where, struct ops_string name, struct ops_string series,
                                      bool bytes)
{
	struct ops_buffer key = {0};
	size_t known = writer->counters.count;
	uint32_t id;

	ops_buffer_append(&key, &where, sizeof(where));
	ops_buffer_append(&key, name.bytes, name.size);
	if (series.size) {
		ops_buffer_append_text(&key, " ");
		ops_buffer_append(&key, series.bytes, series.size);
	}
	id = key.failed ? OPS_INTERN_NONE : ops_intern_add(&writer->counters, key.bytes, key.size);
	if (id != OPS_INTERN_NONE && id >= known) {
		begin_track(writer, UUID_COUNTER + id, where >= 0 ? UUID_LANE + (uint64_t)where : 0);
		ops_pf_put_text(&writer->event, TRACK_NAME,
		                (struct ops_string){key.bytes + sizeof(where), key.size - sizeof(where)});
		if (bytes)
			ops_pb_uint(&writer->inner, COUNTER_UNIT, COUNTER_UNIT_BYTES);
		ops_pb_message(&writer->event, TRACK_COUNTER, &writer->inner);
		end_track(writer);
	}
	ops_buffer_release(&key);
	writer->packet.failed |= id == OPS_INTERN_NONE;
	return id == OPS_INTERN_NONE ? 0 : UUID_COUNTER + id;
}

/* A report becomes an instant on its thread, and a value of its device's counter. */
static void write_report(struct writer *writer, const struct ops_memory_record *record, size_t index)
{
	static const char allocated[] = "Total Allocated", reserved[] = "Total Reserved";
	struct ops_buffer *event = &writer->event, *scratch = &writer->args.scratch;
	int64_t device = -2 - ((int64_t)record->device_type * 256 + record->device_index);

	begin_event(writer, TYPE_INSTANT, UUID_LANE + writer->lanes[record->track]);
	ops_pb_uint(event, EVENT_CATEGORY_ID, OPS_EVENT_CPU_INSTANT + 1);
	ops_pb_text(event, EVENT_NAME, record->out_of_memory ? "[OutOfMemory]" : "[memory]");
	if (!record->out_of_memory)
		ops_pf_put_int(event, scratch, "Addr", (int64_t)record->address);
	ops_pf_put_int(event, scratch, "Bytes", record->bytes);
	ops_pf_put_int(event, scratch, allocated, (int64_t)record->total_allocated);
	ops_pf_put_int(event, scratch, reserved, (int64_t)record->total_reserved);
	ops_pf_put_int(event, scratch, "Device Type", record->device_type);
	ops_pf_put_int(event, scratch, "Device Id", record->device_index);
	ops_pf_put_string_column(&writer->args, event, "Call stack", ops_trace_memory_stacks(writer->trace), index);
	end_event(writer, record->time_ns);
	if (record->out_of_memory)
		return;
	begin_event(writer, TYPE_COUNTER,
	            pftrace_counter_track(writer, device, (struct ops_string){allocated, sizeof(allocated) - 1},
	                                  (struct ops_string){0}, true));
	ops_pb_uint(event, EVENT_COUNTER, record->total_allocated);
	end_event(writer, record->time_ns);
}

static void write_counter(struct writer *writer, const struct ops_counter_record *record)
{
	uint64_t track = pftrace_counter_track(writer, writer->lanes[record->track],
	                                       ops_trace_string(writer->trace, record->name),
	                                       ops_trace_string(writer->trace, record->series), false);

	begin_event(writer, TYPE_COUNTER, track);
	ops_pb_double(&writer->event, EVENT_COUNTER_DOUBLE, record->value);
	end_event(writer, record->time_ns);
}

static void write_records(struct writer *writer)
{
	size_t count;
	const struct ops_memory_record *memory = ops_trace_memory(writer->trace, &count);
	const struct ops_counter_record *counters;

	for (size_t i = 0; i < count && pftrace_go_on(writer, i); i++)
		write_report(writer, &memory[i], i);
	counters = ops_trace_counters(writer->trace, &count);
	for (size_t i = 0; i < count && pftrace_go_on(writer, i); i++)
		write_counter(writer, &counters[i]);
}

/* --- document ------------------------------------------------------------------------------------------------------- */

/* Times are both realtime and Perfetto's own boottime, so that they are shown unchanged. */
static void write_clock(struct writer *writer)
{
	static const uint64_t clocks[] = {REALTIME, BOOTTIME};

	for (size_t i = 0; i < 2; i++) {
		ops_pb_uint(&writer->inner, CLOCK_ID, clocks[i]);
		ops_pb_uint(&writer->inner, CLOCK_TIMESTAMP, (uint64_t)writer->info->start_ns);
		ops_pb_message(&writer->event, SNAPSHOT_CLOCK, &writer->inner);
	}
	ops_pb_message(&writer->packet, PACKET_CLOCK_SNAPSHOT, &writer->event);
	end_packet(writer);
	/* The first packet with interned data has all categories, and the name of an annotation that identifies the writer. */
	for (int kind = 0; kind < OPS_EVENT_KIND_COUNT; kind++) {
		const char *category = ops_event_kind_category((enum ops_event_kind)kind);
		add_entry(writer, INTERNED_CATEGORIES, (uint64_t)kind + 1, (struct ops_string){category, strlen(category)});
	}
	add_entry(writer, INTERNED_ANNOTATION_NAMES, 1, (struct ops_string){PFTRACE_MARK, sizeof(PFTRACE_MARK) - 1});
	ops_pb_message(&writer->packet, PACKET_INTERNED, &writer->inner);
	ops_pb_uint(&writer->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE);
	end_packet(writer);
}

/* The span of the recording, with the metadata as arguments. */
static void pftrace_write_recording(struct writer *writer)
{
	const struct ops_trace_info *info = writer->info;

	begin_track(writer, UUID_RECORDING, 0);
	ops_pb_text(&writer->event, TRACK_NAME, "PyTorch Profiler");
	end_track(writer);
	begin_event(writer, TYPE_BEGIN, UUID_RECORDING);
	ops_pb_uint(&writer->event, EVENT_CATEGORY_ID, OPS_EVENT_TRACE + 1);
	ops_pb_text(&writer->event, EVENT_NAME, writer->args.was_read ? "Metadata" : "PyTorch Profiler (0)");
	for (size_t i = 0; i < ops_trace_metadata_count(writer->trace); i++) {
		struct ops_string key, json;
		ops_trace_metadata(writer->trace, i, &key, &json);
		ops_pf_put_json(&writer->event, &writer->args.scratch, key, json);
	}
	if (info->lost)
		ops_pf_put_int(&writer->event, &writer->args.scratch, "Records lost", (int64_t)info->lost);
	end_event(writer, info->start_ns);
	write_end(writer, UUID_RECORDING, info->stop_ns);
}

static int compare_targets(const void *a, const void *b, void *context)
{
	const struct ops_link *links = context;
	uint32_t left = links[*(const uint32_t *)a].to, right = links[*(const uint32_t *)b].to;

	return left < right ? -1 : left > right;
}

/* Returns false if out of memory. */
static bool pftrace_prepare(struct writer *writer, size_t track_count)
{
	size_t rows = writer->events->count;

	writer->links = ops_trace_links(writer->trace, &writer->link_count);
	writer->lanes = ops_alloc_zeroed(track_count + 1, sizeof(*writer->lanes));
	writer->open = ops_realloc_array(NULL, track_count + 1, sizeof(*writer->open));
	writer->below = ops_realloc_array(NULL, rows + 1, sizeof(*writer->below));
	writer->interned = ops_alloc_zeroed(ops_trace_string_count(writer->trace) / 8 + 1, 1);
	writer->by_target = ops_realloc_array(NULL, writer->link_count + 1, sizeof(*writer->by_target));
	if (!writer->lanes || !writer->open || !writer->below || !writer->interned || !writer->by_target ||
	    !ops_pf_args_init(&writer->args, writer->trace))
		return false;
	memset(writer->open, 0xff, (track_count + 1) * sizeof(*writer->open));
	for (size_t i = 0; i < writer->link_count; i++)
		writer->by_target[i] = (uint32_t)i;
	qsort_r(writer->by_target, writer->link_count, sizeof(*writer->by_target), compare_targets, (void *)writer->links);
	return true;
}

/* Returns false if out of memory. */
static bool pftrace_write_document(struct writer *writer)
{
	size_t track_count;
	const struct ops_track *tracks = ops_trace_tracks(writer->trace, &track_count);

	if (!pftrace_prepare(writer, track_count))
		return false;
	write_clock(writer);
	if (!pftrace_write_tracks(writer, tracks, track_count))
		return false;
	writer->overlaps = ops_overlap_marks(writer->trace, writer->lanes, writer->threads.count);
	if (!writer->overlaps)
		return false;
	pftrace_write_rows(writer);
	write_records(writer);
	pftrace_write_recording(writer);
	return !failed(writer);
}

static void pftrace_release(struct writer *writer)
{
	ops_pf_args_release(&writer->args);
	ops_buffer_release(&writer->packet);
	ops_buffer_release(&writer->event);
	ops_buffer_release(&writer->inner);
	ops_buffer_release(&writer->entry);
	ops_intern_release(&writer->processes);
	ops_intern_release(&writer->threads);
	ops_intern_release(&writer->counters);
	ops_free(writer->lanes);
	ops_free(writer->open);
	ops_free(writer->below);
	ops_free(writer->overlaps);
	ops_free(writer->interned);
	ops_free(writer->by_target);
}

enum ops_code ops_write_pftrace(const struct ops_trace *trace, const char *path, const struct ops_pftrace_options *options,
                                struct ops_error *error)
{
	struct ops_pftrace_options given;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);
	struct writer writer = {.trace = trace, .events = ops_trace_events(trace), .info = ops_trace_info(trace),
	                        .options = &given};
	int level = given.compression_level ? given.compression_level : LEVEL_DEFAULT;
	bool gzip = ops_ends_with(path, ".gz");

	if (code)
		return code;
	if (level < 0 || level > 9)
		return ops_fault(error, OPS_INVALID, "compression level %d is not between 1 and 9", level);
	code = ops_sink_open_gzip(path, gzip ? level : 0, given.compression_threads, &writer.sink, error);
	if (code)
		return code;
	if (!pftrace_write_document(&writer))
		code = ops_fault_memory(error);
	else if (writer.cancelled)
		code = ops_fault(error, OPS_STATE, "writing '%s' was cancelled", path);
	if (code)
		ops_sink_abandon(writer.sink);
	else
		code = ops_sink_close(writer.sink, error);
	pftrace_release(&writer);
	return code;
}
