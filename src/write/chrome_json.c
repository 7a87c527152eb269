/* SPDX-License-Identifier: Apache-2.0
 *
 * Chrome trace JSON in the conventions of Kineto, torch's own profiler library: what Perfetto, chrome://tracing and the
 * trace analysis tools around torch expect. One row a line:
 *
 *     {"schemaVersion":1, "deviceProperties":[], metadata …, "displayTimeUnit":"ms", "baseTimeNanoseconds":…, "traceEvents":[
 *     process and thread names · events · memory reports · counters · arrows · the span and its marks
 *     ],"traceName":"…"}
 *
 * A row of an event is put together from finished pieces: constant text, the escaped name, the thread, the projection of
 * the inputs, and numbers in between. The pieces come from fragments.h; nothing is formatted in the loop.
 */
#include <opstrobe/write.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/bits.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/utf8.h"
#include "trace/inputs.h"
#include "write/fragments.h"
#include "write/overlap.h"

/* Time stamps count from a grid of about three months, so that a double holds them to the nanosecond. Kineto's grid: files
 * of many processes, and files of both profilers, share it. */
#define BASE_GRID_NS (INT64_C(7889238) * 1000000000)
/* Where a reader's double arithmetic errs: from 2^42 µs on a double is off by up to 0.49 ns, and times a thousand it is
 * rounded to half nanoseconds below 2^52 ns. Between the two one in four times comes out a nanosecond late, and children
 * stick out of their parents. */
#define FUZZY_FROM_NS ((INT64_C(1) << 42) * 1000)
#define FUZZY_TO_NS (INT64_C(1) << 52)

#define LEVEL_DEFAULT 6
#define ROWS_BETWEEN_CHECKS 4096u
#define SPANS_SORT_INDEX 0x20000000

struct writer {
	const struct ops_trace *trace;
	const struct ops_trace_info *info;
	const struct ops_events *events;
	const struct ops_chrome_json_options *options;
	struct ops_sink *sink;
	char *row; /* the row in the making begins here, in the sink's room */
	int64_t base_ns;
	struct ops_fragments names;  /* string id → JSON text without the quotes */
	struct ops_fragments inputs; /* input list id → members of args, with a comma before */
	struct ops_string *tracks;   /* track → `","pid":1,"tid":2,"ts":`, with padding behind */
	struct ops_arena arena;      /* their texts */
	uint32_t *lanes;             /* track → its thread, by process and number */
	struct ops_intern threads;   /* the threads: {pid, tid} */
	uint8_t *overlaps;           /* rows that are written as a pair, see overlap.h */
	uint8_t *ill_formed;         /* strings that are no UTF-8; NULL when all are */
	struct ops_buffer text;      /* rows off the hot path are made here */
	bool cancelled;
};

/* --- putting a row together ---------------------------------------------------------------------------------------- */

#define PUT(at, literal) ((char *)memcpy(at, literal, sizeof(literal) - 1) + sizeof(literal) - 1)

/* A row fits the sink's room: constant text and numbers take less than 1 KiB, and of its few fragments the long ones go
 * around the room. */
static char *begin_row(struct writer *writer)
{
	return writer->row = ops_sink_room(writer->sink);
}

static void end_row(struct writer *writer, const char *at)
{
	ops_sink_advance(writer->sink, (size_t)(at - writer->row));
}

static char *put_fragment(struct writer *writer, char *at, struct ops_string fragment)
{
	if (fragment.size <= OPS_FRAGMENT_KEPT_MAX)
		return ops_fragment_put(at, fragment);
	end_row(writer, at);
	ops_sink_write(writer->sink, fragment.bytes, fragment.size);
	return begin_row(writer);
}

static char *put_name(struct writer *writer, char *at, uint32_t string)
{
	return put_fragment(writer, at, ops_fragments_get(&writer->names, string));
}

/* Closes the name's quotes; then process, thread and time. */
static char *put_place(struct writer *writer, char *at, uint32_t track, int64_t time_ns)
{
	at = ops_fragment_put(at, writer->tracks[track]);
	return ops_json_us_to(at, time_ns - writer->base_ns);
}

/* What was made as text, into the sink. */
static void write_text(struct writer *writer)
{
	ops_sink_write(writer->sink, writer->text.bytes, writer->text.size);
	writer->text.size = 0;
}

/* Whether to go on: not when memory or the disk is full, nor when the caller has had enough. */
static bool go_on(struct writer *writer, size_t row)
{
	const struct ops_chrome_json_options *options = writer->options;

	if (row % ROWS_BETWEEN_CHECKS)
		return true;
	if (writer->text.failed || writer->names.scratch.failed || writer->inputs.scratch.failed || ops_sink_failed(writer->sink))
		return false;
	if (options && options->progress)
		writer->cancelled |= options->progress(options->progress_context, ops_sink_total(writer->sink)) != 0;
	return !writer->cancelled;
}

/* --- events -------------------------------------------------------------------------------------------------------- */

#define HEAD_PHASE 9 /* where a head says "X" */
static const struct ops_string span_heads[] = {
#define HEAD(category) ",\n{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\""
#define SPAN_HEAD(name, category) {HEAD(category), sizeof(HEAD(category)) - 1},
	OPS_EVENT_KINDS(SPAN_HEAD)
#undef SPAN_HEAD
#undef HEAD
};

static bool has_overload(const struct writer *writer, size_t row)
{
	const uint32_t *overload = writer->events->overload;

	return overload && ops_trace_string(writer->trace, overload[row]).size;
}

/* Phase, category, name, place and time. As in Kineto's files an overload is appended to the name. */
static char *put_head(struct writer *writer, char *at, size_t row, char phase, int64_t time_ns)
{
	const struct ops_events *events = writer->events;
	struct ops_string head = span_heads[events->kind[row]];

	memcpy(at, head.bytes, head.size);
	at[HEAD_PHASE] = phase;
	at = put_name(writer, at + head.size, events->name[row]);
	if (has_overload(writer, row)) {
		*at++ = '.';
		at = put_name(writer, at, events->overload[row]);
	}
	return put_place(writer, at, events->track[row], time_ns);
}

/* Members of args that spans have and instants have not. */
static char *put_span_args(struct writer *writer, char *at, size_t row)
{
	const struct ops_events *events = writer->events;
	uint64_t id = events->id ? events->id[row] : row + 1;

	if (id) {
		at = PUT(at, "\"External id\":");
		at = ops_json_uint_to(at, id);
		*at++ = ',';
	}
	if (events->sequence_nr[row] >= 0) {
		at = PUT(at, "\"Sequence number\":");
		at = ops_json_int_to(at, events->sequence_nr[row]);
		at = PUT(at, ",\"Fwd thread id\":");
		at = ops_json_uint_to(at, events->forward_thread[row]);
		*at++ = ',';
	}
	at = PUT(at, "\"Record function id\":0,");
	if (has_overload(writer, row)) {
		at = PUT(at, "\"Overload Name\":\"");
		at = put_name(writer, at, events->overload[row]);
		at = PUT(at, "\",");
	}
	return at;
}

/* A name that is no UTF-8 reads as json.h spells it; here are its bytes, each as the character of that number. */
static char *put_raw_name(struct writer *writer, char *at, uint32_t string)
{
	struct ops_string name = ops_trace_string(writer->trace, string);
	struct ops_buffer characters = {0};

	for (size_t i = 0; i < name.size; i++) {
		uint8_t byte = (uint8_t)name.bytes[i];
		char wide[2] = {(char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f))};

		ops_buffer_append(&characters, byte < 0x80 ? &name.bytes[i] : wide, byte < 0x80 ? 1 : 2);
	}
	ops_buffer_append_text(&writer->text, "\"Raw name\":");
	ops_json_string(&writer->text, characters.bytes, characters.size);
	ops_buffer_append_text(&writer->text, ",");
	writer->text.failed |= characters.failed;
	ops_buffer_release(&characters);
	end_row(writer, at);
	write_text(writer);
	return begin_row(writer);
}

static char *put_args(struct writer *writer, char *at, size_t row)
{
	const struct ops_events *events = writer->events;

	at = PUT(at, ",\"args\":{");
	if (events->kind[row] != OPS_EVENT_CPU_INSTANT)
		at = put_span_args(writer, at, row);
	if (events->inputs[row] != OPS_NONE)
		at = put_fragment(writer, at, ops_fragments_get(&writer->inputs, events->inputs[row]));
	if (events->args && events->args[row] != OPS_NONE) {
		at = PUT(at, "\"Args\":\"");
		at = put_name(writer, at, events->args[row]);
		at = PUT(at, "\",");
	}
	if (writer->ill_formed && ops_bit(writer->ill_formed, events->name[row]))
		at = put_raw_name(writer, at, events->name[row]);
	if (events->flags[row] & OPS_EVENT_UNFINISHED)
		at = PUT(at, "\"finished\":false,");
	at = PUT(at, "\"Ev Idx\":");
	at = ops_json_uint_to(at, row);
	return PUT(at, "}}");
}

static void write_span(struct writer *writer, size_t row)
{
	const struct ops_events *events = writer->events;
	char *at = put_head(writer, begin_row(writer), row, 'X', events->start_ns[row]);

	at = PUT(at, ",\"dur\":");
	at = ops_json_us_to(at, events->end_ns[row] - events->start_ns[row]);
	end_row(writer, put_args(writer, at, row));
}

static void write_instant(struct writer *writer, size_t row)
{
	char *at = put_head(writer, begin_row(writer), row, 'i', writer->events->start_ns[row]);

	at = PUT(at, ",\"s\":\"t\"");
	end_row(writer, put_args(writer, at, row));
}

/* A span that would cut through the boxes of its thread: an asynchronous pair, which viewers show on a row of its own. */
static void write_pair(struct writer *writer, size_t row)
{
	const struct ops_events *events = writer->events;
	char *at = put_head(writer, begin_row(writer), row, 'b', events->start_ns[row]);

	at = PUT(at, ",\"id\":");
	at = ops_json_uint_to(at, row + 1);
	end_row(writer, put_args(writer, at, row));
	at = put_head(writer, begin_row(writer), row, 'e', events->end_ns[row]);
	at = PUT(at, ",\"id\":");
	at = ops_json_uint_to(at, row + 1);
	end_row(writer, PUT(at, "}"));
}

static void write_event(struct writer *writer, size_t row)
{
	if (writer->events->kind[row] == OPS_EVENT_CPU_INSTANT)
		write_instant(writer, row);
	else if (ops_bit(writer->overlaps, row))
		write_pair(writer, row);
	else
		write_span(writer, row);
}

static void write_events(struct writer *writer)
{
	for (size_t row = 0; row < writer->events->count && go_on(writer, row); row++)
		write_event(writer, row);
}

/* --- memory, counters, arrows -------------------------------------------------------------------------------------- */

static void write_memory_record(struct writer *writer, const struct ops_memory_record *record, size_t index)
{
	char *at = begin_row(writer);

	if (record->out_of_memory)
		at = PUT(at, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[OutOfMemory]");
	else
		at = PUT(at, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]");
	at = put_place(writer, at, record->track, record->time_ns);
	at = PUT(at, ",\"args\":{\"Total Reserved\":");
	at = ops_json_uint_to(at, record->total_reserved);
	at = PUT(at, ",\"Total Allocated\":");
	at = ops_json_uint_to(at, record->total_allocated);
	at = PUT(at, ",\"Bytes\":");
	at = ops_json_int_to(at, record->bytes);
	at = PUT(at, ",\"Device Id\":");
	at = ops_json_int_to(at, record->device_index);
	at = PUT(at, ",\"Device Type\":");
	at = ops_json_uint_to(at, record->device_type);
	if (!record->out_of_memory) {
		at = PUT(at, ",\"Addr\":");
		at = ops_json_uint_to(at, record->address);
	}
	at = PUT(at, ",\"Ev Idx\":");
	at = ops_json_uint_to(at, writer->events->count + index);
	end_row(writer, PUT(at, "}}"));
}

static void write_memory(struct writer *writer)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(writer->trace, &count);

	for (size_t i = 0; i < count && go_on(writer, i); i++)
		write_memory_record(writer, &records[i], i);
}

/* JSON has no word for these; as strings viewers and float() take them. */
static char *put_value(char *at, double value)
{
	if (isnan(value))
		return PUT(at, "\"NaN\"");
	if (isinf(value))
		return value < 0 ? PUT(at, "\"-Infinity\"") : PUT(at, "\"Infinity\"");
	return ops_json_double_to(at, value);
}

static void write_counters(struct writer *writer)
{
	size_t count;
	const struct ops_counter_record *records = ops_trace_counters(writer->trace, &count);

	for (size_t i = 0; i < count && go_on(writer, i); i++) {
		char *at = PUT(begin_row(writer), ",\n{\"ph\":\"C\",\"name\":\"");

		at = put_name(writer, at, records[i].name);
		at = put_place(writer, at, records[i].track, records[i].time_ns);
		at = PUT(at, ",\"args\":{\"value\":");
		at = put_value(at, records[i].value);
		end_row(writer, PUT(at, "}}"));
	}
}

static char *put_arrow_end(struct writer *writer, char *at, size_t id, uint32_t row)
{
	at = put_place(writer, at, writer->events->track[row], writer->events->start_ns[row]);
	at = PUT(at, ",\"id\":");
	return ops_json_uint_to(at, id);
}

/* From forward operators to their backward nodes. Both ends carry the start of their slice, which binds them to it. */
static void write_links(struct writer *writer)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(writer->trace, &count);

	for (size_t i = 0; i < count && go_on(writer, i); i++) {
		char *at = PUT(begin_row(writer), ",\n{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd");

		at = put_arrow_end(writer, at, i + 1, links[i].from);
		at = PUT(at, "},\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd");
		at = put_arrow_end(writer, at, i + 1, links[i].to);
		end_row(writer, PUT(at, "}"));
	}
}

/* --- what stands once in a file: made as text, then written --------------------------------------------------------- */

static void add_string(struct writer *writer, const char *text)
{
	ops_json_string(&writer->text, text, strlen(text));
}

static void add_time(struct writer *writer, int64_t time_ns)
{
	char digits[32];

	ops_buffer_append(&writer->text, digits, (size_t)(ops_json_us_to(digits, time_ns) - digits));
}

/* Metadata keys that are the file's own: a second one would make it say two things. */
static bool is_reserved(struct ops_string key)
{
	static const char *const reserved[] = {
		"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName", "opstrobe",
	};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strlen(reserved[i]) == key.size && memcmp(reserved[i], key.bytes, key.size) == 0)
			return true;
	return false;
}

/* The members before the events, and the opening of these. */
static void write_head(struct writer *writer)
{
	static const char devices[] = "deviceProperties";
	static const char host[] = "host_name";
	size_t count = ops_trace_metadata_count(writer->trace);
	bool has_devices = false;
	bool has_host = false;

	ops_buffer_append_text(&writer->text, "{\n\"schemaVersion\":1");
	for (size_t i = 0; i < count; i++) {
		struct ops_string key, json;

		ops_trace_metadata(writer->trace, i, &key, &json);
		if (is_reserved(key))
			continue;
		has_devices |= key.size == sizeof(devices) - 1 && memcmp(key.bytes, devices, key.size) == 0;
		has_host |= key.size == sizeof(host) - 1 && memcmp(key.bytes, host, key.size) == 0;
		ops_buffer_append_text(&writer->text, ",\n");
		ops_json_string(&writer->text, key.bytes, key.size);
		ops_buffer_append_text(&writer->text, ":");
		ops_buffer_append(&writer->text, json.bytes, json.size);
	}
	if (!has_devices)
		ops_buffer_append_text(&writer->text, ",\n\"deviceProperties\":[]");
	if (!has_host) {
		ops_buffer_append_text(&writer->text, ",\n\"host_name\":");
		add_string(writer, writer->info->host_name);
	}
	ops_buffer_printf(&writer->text,
	                  ",\n\"opstrobe\":{\"version\":\"" OPS_VERSION "\",\"lost\":%" PRIu64 "},\n"
	                  "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":%" PRId64 ",\n\"traceEvents\":[\n",
	                  writer->info->lost, writer->base_ns);
	write_text(writer);
}

/* A row {"ph":"M"}; `value` is JSON. */
static void add_meta_row(struct writer *writer, const char *name, int64_t pid, int64_t tid, const char *key)
{
	ops_buffer_printf(&writer->text, "{\"ph\":\"M\",\"name\":\"%s\",\"ts\":", name);
	add_time(writer, writer->info->start_ns - writer->base_ns);
	ops_buffer_printf(&writer->text, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"args\":{\"%s\":", pid, tid, key);
}

static void write_process_rows(struct writer *writer)
{
	int64_t pid = writer->info->pid;

	if (writer->info->process_name[0]) {
		add_meta_row(writer, "process_name", pid, 0, "name");
		add_string(writer, writer->info->process_name);
		ops_buffer_append_text(&writer->text, "}},\n");
	}
	add_meta_row(writer, "process_labels", pid, 0, "labels");
	ops_buffer_append_text(&writer->text, "\"CPU\"}},\n");
	add_meta_row(writer, "process_sort_index", pid, 0, "sort_index");
	ops_buffer_printf(&writer->text, "%" PRId64 "}}", pid);
	write_text(writer);
}

/* Kineto writes negative thread ids without their sign. */
static int64_t shown_tid(const struct ops_track *track)
{
	return track->tid < 0 && track->tid > INT64_MIN ? -track->tid : track->tid;
}

/* "thread 123 (worker)", or "stream 7 " as Kineto has it. */
static bool add_track_name(struct writer *writer, const struct ops_track *track)
{
	struct ops_string name = ops_trace_string(writer->trace, track->name);
	struct ops_buffer label = {0};
	bool made;

	if (track->kind == OPS_TRACK_STREAM)
		ops_buffer_printf(&label, "stream %" PRId64 " ", track->tid);
	else
		ops_buffer_printf(&label, "thread %" PRId64, shown_tid(track));
	if (name.size) {
		ops_buffer_append_text(&label, " (");
		ops_buffer_append(&label, name.bytes, name.size);
		ops_buffer_append_text(&label, ")");
	}
	made = !label.failed;
	if (made)
		ops_json_string(&writer->text, label.bytes, label.size);
	ops_buffer_release(&label);
	return made;
}

/* Two rows for every thread: the number of one that ended may come back as another's, and is then named once, by the
 * first. False when memory is out. */
static bool write_thread_rows(struct writer *writer)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(writer->trace, &count);
	size_t named = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t tid = shown_tid(&tracks[i]);

		if (writer->lanes[i] < named)
			continue;
		named++;
		ops_buffer_append_text(&writer->text, ",\n");
		add_meta_row(writer, "thread_name", tracks[i].pid, tid, "name");
		if (!add_track_name(writer, &tracks[i]))
			return false;
		ops_buffer_append_text(&writer->text, "}},\n");
		add_meta_row(writer, "thread_sort_index", tracks[i].pid, tid, "sort_index");
		ops_buffer_printf(&writer->text, "%" PRId64 "}}", tid);
		write_text(writer);
	}
	return true;
}

/* The span of the recording and the marks at its ends, and where records were lost, a mark that says so. */
static void write_marks(struct writer *writer)
{
	const struct ops_trace_info *info = writer->info;

	ops_buffer_append_text(&writer->text, ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\","
	                                      "\"tid\":\"PyTorch Profiler\",\"ts\":");
	add_time(writer, info->start_ns - writer->base_ns);
	ops_buffer_append_text(&writer->text, ",\"dur\":");
	add_time(writer, info->stop_ns - info->start_ns);
	ops_buffer_append_text(&writer->text, ",\"args\":{\"Op count\":0}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":");
	add_time(writer, info->start_ns - writer->base_ns);
	ops_buffer_printf(&writer->text, ",\"pid\":\"Spans\",\"tid\":0,\"args\":{\"sort_index\":%d}},\n", SPANS_SORT_INDEX);
	ops_buffer_append_text(&writer->text, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\","
	                                      "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\",\"ts\":");
	add_time(writer, info->start_ns - writer->base_ns);
	if (info->lost) {
		ops_buffer_printf(&writer->text,
		                  "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"%" PRIu64 " records lost\",\"pid\":%" PRId64
		                  ",\"tid\":%" PRId64 ",\"ts\":",
		                  info->lost, info->pid, info->pid);
		add_time(writer, info->stop_ns - writer->base_ns);
	}
	ops_buffer_append_text(&writer->text, "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":");
	add_time(writer, info->stop_ns - writer->base_ns);
	write_text(writer);
}

/* --- the document -------------------------------------------------------------------------------------------------- */

static void make_name(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id)
{
	struct ops_string name = ops_trace_string(trace, id);

	ops_json_string(out, name.bytes, name.size);
	if (out->failed)
		return;
	/* The quotes belong to the text around it. */
	out->size -= 2;
	memmove(out->bytes, out->bytes + 1, out->size);
}

static void make_inputs(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id)
{
	ops_inputs_json_args(out, ops_trace_inputs(trace, id));
	ops_buffer_append_text(out, ",");
}

/* False when memory is out. */
static bool prepare_track(struct writer *writer, size_t i, const struct ops_track *track)
{
	int64_t thread[2] = {track->pid, shown_tid(track)};
	char *start = ops_arena_alloc(&writer->arena, 80 + OPS_FRAGMENT_PADDING);
	char *at = start;

	writer->lanes[i] = ops_intern_add(&writer->threads, thread, sizeof(thread));
	if (!start || writer->lanes[i] == OPS_INTERN_NONE)
		return false;
	at = ops_json_int_to(PUT(at, "\",\"pid\":"), thread[0]);
	at = ops_json_int_to(PUT(at, ",\"tid\":"), thread[1]);
	at = PUT(at, ",\"ts\":");
	writer->tracks[i] = (struct ops_string){start, (size_t)(at - start)};
	return true;
}

/* The point of the grid before the start; for a recording in the 29 hours of each quarter that are fuzzy, half a grid
 * later. */
static int64_t choose_base(const struct ops_trace_info *info)
{
	int64_t base_ns = info->start_ns > 0 ? info->start_ns / BASE_GRID_NS * BASE_GRID_NS : 0;
	bool fuzzy = info->start_ns - base_ns < FUZZY_TO_NS && info->stop_ns - base_ns >= FUZZY_FROM_NS;

	return fuzzy && info->start_ns - base_ns >= BASE_GRID_NS / 2 ? base_ns + BASE_GRID_NS / 2 : base_ns;
}

/* False when memory is out. */
static bool find_ill_formed(struct writer *writer)
{
	size_t count = ops_trace_string_count(writer->trace);

	for (size_t i = 0; i < count; i++) {
		struct ops_string string = ops_trace_string(writer->trace, (uint32_t)i);

		if (ops_utf8_valid(string.bytes, string.size))
			continue;
		if (!writer->ill_formed)
			writer->ill_formed = ops_alloc_zeroed(count / 8 + 1, 1);
		if (!writer->ill_formed)
			return false;
		ops_bit_set(writer->ill_formed, i);
	}
	return true;
}

/* False when memory is out. */
static bool prepare(struct writer *writer)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(writer->trace, &count);

	writer->base_ns = choose_base(writer->info);
	writer->tracks = ops_alloc_zeroed(count, sizeof(*writer->tracks));
	writer->lanes = ops_alloc_zeroed(count, sizeof(*writer->lanes));
	if (!writer->tracks || !writer->lanes)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!prepare_track(writer, i, &tracks[i]))
			return false;
	writer->overlaps = ops_overlap_marks(writer->trace, writer->lanes, writer->threads.count);
	return writer->overlaps && find_ill_formed(writer) &&
	       ops_fragments_init(&writer->names, writer->trace, ops_trace_string_count(writer->trace), make_name) &&
	       ops_fragments_init(&writer->inputs, writer->trace, ops_trace_inputs_count(writer->trace), make_inputs);
}

static void release(struct writer *writer)
{
	ops_fragments_release(&writer->names);
	ops_fragments_release(&writer->inputs);
	ops_arena_release(&writer->arena);
	ops_intern_release(&writer->threads);
	ops_free(writer->tracks);
	ops_free(writer->lanes);
	ops_free(writer->overlaps);
	ops_free(writer->ill_formed);
	ops_buffer_release(&writer->text);
}

/* False when memory ran out. */
static bool write_document(struct writer *writer, const char *path)
{
	write_head(writer);
	write_process_rows(writer);
	if (!write_thread_rows(writer))
		return false;
	write_events(writer);
	write_memory(writer);
	write_counters(writer);
	write_links(writer);
	write_marks(writer);
	ops_buffer_append_text(&writer->text, "}\n],\n\"traceName\":");
	add_string(writer, path);
	ops_buffer_append_text(&writer->text, "\n}\n");
	write_text(writer);
	return !writer->text.failed && !writer->names.scratch.failed && !writer->inputs.scratch.failed;
}

static bool ends_in_gz(const char *path)
{
	size_t size = strlen(path);

	return size >= 3 && strcmp(path + size - 3, ".gz") == 0;
}

enum ops_code ops_write_chrome_json(const struct ops_trace *trace, const char *path,
                                    const struct ops_chrome_json_options *options, struct ops_error *error)
{
	struct writer writer = {
		.trace = trace,
		.info = ops_trace_info(trace),
		.events = ops_trace_events(trace),
		.options = options,
	};
	int level = options && options->compression_level ? options->compression_level : LEVEL_DEFAULT;
	enum ops_code code;

	if (level < 0 || level > 9)
		return ops_fault(error, OPS_INVALID, "compression level %d is not between 1 and 9", level);
	code = ops_sink_open_file(path, ends_in_gz(path) ? level : 0, &writer.sink, error);
	if (code)
		return code;
	if (!prepare(&writer) || !write_document(&writer, path))
		code = ops_fault_memory(error);
	else if (writer.cancelled)
		code = ops_fault(error, OPS_STATE, "writing '%s' was cancelled", path);
	if (code)
		ops_sink_abandon(writer.sink);
	else
		code = ops_sink_close(writer.sink, error);
	release(&writer);
	return code;
}
