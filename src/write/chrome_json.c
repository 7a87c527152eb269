/* SPDX-License-Identifier: Apache-2.0
 *
 * Chrome trace JSON in the conventions of Kineto, torch's own profiler library, as expected by Perfetto, chrome://tracing and
 * trace analysis tools for torch. Each row is a line:
 *
 *     {"schemaVersion":1, "deviceProperties":[], metadata …, "displayTimeUnit":"ms", "baseTimeNanoseconds":…, "traceEvents":[
 *     process and thread names · events · memory reports · counters · flows · the span and its marks
 *     ],"traceName":"…"}
 *
 * The rows of a trace that was read from a file repeat the contents of the file's rows. The member "opstrobe" has data without a
 * place in Kineto's conventions, so that a recording is read back unchanged (read/kineto.h).
 *
 * chrome_rows.c writes the rows of events to flows; this file writes what occurs once in a file.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/write.h>

#include <inttypes.h>
#include <string.h>

#include <opstrobe/version.h>

#include "analyze/frames.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/bits.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/options.h"
#include "base/sink.h"
#include "base/text.h"
#include "base/utf8.h"
#include "trace/diagnostics.h"
#include "trace/inputs.h"
#include "write/chrome_modules.h"
#include "write/chrome_rows.h"
#include "write/overlap.h"

/* Time stamps are relative to a grid of about three months, so that a double represents them to the nanosecond. The grid is
 * Kineto's, so that files of several processes, and of both profilers, share it. */
#define BASE_GRID_NS (INT64_C(7889238) * 1000000000)
/* From here on a reader's double arithmetic is inexact: from 2^42 µs on a double is off by up to 0.49 ns, and multiplied by a
 * thousand it is rounded to half nanoseconds below 2^52 ns. Between the two, one in four times is a nanosecond late, and children
 * exceed their parents. */
#define FUZZY_FROM_NS ((INT64_C(1) << 42) * 1000)
#define FUZZY_TO_NS (INT64_C(1) << 52)

/* For real traces, level 4 results in a tenth more bytes than zlib's default, 6, in half of the time. */
#define LEVEL_DEFAULT 4
#define SPANS_SORT_INDEX 0x20000000

struct writer {
	struct ops_chrome_rows rows;
	const struct ops_trace_info *info;
	struct ops_buffer text;    /* scratch: text before it is written */
	struct ops_string *tracks; /* those in `rows`, owned */
	struct ops_arena arena;    /* the texts of `tracks` */
	uint32_t *lanes;           /* track → its thread, by process and number */
	struct ops_intern threads; /* the threads: {pid, tid, flags} */
	size_t row_count;          /* rows for processes of the file */
	uint8_t *overlaps;         /* those in `rows`, owned */
	uint8_t *ill_formed;       /* those in `rows`, owned */
	uint32_t *callers;         /* those in `rows`, owned */
};

/* --- pieces of text ------------------------------------------------------------------------------------------------ */

static void chrome_json_write_text(struct writer *writer)
{
	ops_sink_write(writer->rows.sink, writer->text.bytes, writer->text.size);
	writer->text.size = 0;
}

static void add_string(struct writer *writer, const char *text)
{
	ops_json_string(&writer->text, text, strlen(text));
}

static void chrome_json_add_time(struct writer *writer, int64_t time_ns)
{
	char digits[32];

	ops_buffer_append(&writer->text, digits, (size_t)(ops_json_us_to(digits, time_ns) - digits));
}

/* Metadata keys that a file has anyway; a second one would be ambiguous. */
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

/* Kineto writes negative thread ids without their sign. */
static int64_t shown_tid(const struct writer *writer, const struct ops_track *track)
{
	return !writer->rows.was_read && track->tid < 0 && track->tid > INT64_MIN ? -track->tid : track->tid;
}

/* Appends the id of a process or thread: a number, or a text in quotes. */
static void chrome_json_add_id(struct writer *writer, int64_t id, bool is_text)
{
	struct ops_string text;

	if (is_text) {
		text = ops_trace_string(writer->rows.trace, (uint32_t)id);
		ops_json_string(&writer->text, text.bytes, text.size);
	} else {
		ops_buffer_append_int(&writer->text, id);
	}
}

/* Appends [name, path, first line] for each function. */
static void add_functions(struct writer *writer)
{
	size_t count;
	const struct ops_function *functions = ops_trace_functions(writer->rows.trace, &count);

	if (count == 0)
		return;
	ops_buffer_append_text(&writer->text, ",\"functions\":[");
	for (size_t i = 0; i < count; i++) {
		ops_buffer_append_text(&writer->text, i ? ",[" : "[");
		chrome_json_add_id(writer, functions[i].name, true);
		ops_buffer_append_text(&writer->text, ",");
		chrome_json_add_id(writer, functions[i].file, true);
		ops_buffer_printf(&writer->text, ",%" PRIu32 "]", functions[i].line);
	}
	ops_buffer_append_text(&writer->text, "]");
}

/* Appends [kind, count, byte in the file that was first read] for each note that changes figures. This file is well-formed, but
 * its figures are as wrong as those of the original. */
static void add_notes(struct writer *writer)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(writer->rows.trace, &count);
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const char *name = ops_note_name(notes[i].kind);

		if (!name)
			continue;
		ops_buffer_printf(&writer->text, "%s[\"%s\",%" PRIu64 ",%" PRIu64 "]", any ? "," : ",\"notes\":[", name,
		                  notes[i].count, notes[i].byte);
		any = true;
	}
	if (any)
		ops_buffer_append_text(&writer->text, "]");
}

/* Appends what Kineto's conventions have no place for: whether the trace is a recording, whose ids are its rows'. Times are in ns
 * from the base. A track is [kind, process, thread, thread as in rows, torch's number, name]; a coroutine's has kind 2. If
 * several tracks look the same in rows, the rows have their index in "track". Rows refer to their function by its index. */
static void add_own_member(struct writer *writer)
{
	const struct ops_trace_info *info = writer->info;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(writer->rows.trace, &count);

	ops_buffer_printf(&writer->text,
	                  ",\n\"opstrobe\":{\"version\":\"" OPS_VERSION "\",\"lost\":%" PRIu64 ",\"recorded\":%s,\"row_ids\":%s,\"pid\":%" PRId64
	                  ",\"start_ns\":%" PRId64 ",\"stop_ns\":%" PRId64 ",\"tracks\":[",
	                  info->lost, writer->rows.was_read ? "false" : "true",
	                  writer->rows.was_read || writer->rows.events->id ? "false" : "true", info->pid,
	                  info->start_ns - writer->rows.base_ns, info->stop_ns - writer->rows.base_ns);
	for (size_t i = 0; i < count; i++) {
		struct ops_string name = ops_trace_string(writer->rows.trace, tracks[i].name);

		ops_buffer_printf(&writer->text, "%s[%d,", i ? "," : "",
		                  tracks[i].flags & OPS_TRACK_COROUTINE ? OPS_OWN_KIND_COROUTINE : (int)tracks[i].kind);
		chrome_json_add_id(writer, tracks[i].pid, tracks[i].flags & OPS_TRACK_PID_TEXT);
		ops_buffer_append_text(&writer->text, ",");
		chrome_json_add_id(writer, tracks[i].tid, tracks[i].flags & OPS_TRACK_TID_TEXT);
		ops_buffer_append_text(&writer->text, ",");
		chrome_json_add_id(writer, shown_tid(writer, &tracks[i]), tracks[i].flags & OPS_TRACK_TID_TEXT);
		ops_buffer_printf(&writer->text, ",%" PRIu32 ",", tracks[i].number);
		ops_json_string(&writer->text, name.bytes, name.size);
		ops_buffer_append_text(&writer->text, "]");
	}
	ops_buffer_append_text(&writer->text, "]");
	add_notes(writer);
	add_functions(writer);
	ops_chrome_add_modules(&writer->text, writer->rows.trace);
	ops_chrome_add_storages(&writer->text, &writer->rows.storages, writer->rows.trace, writer->rows.base_ns);
	ops_buffer_append_text(&writer->text, "}");
}

/* Writes the members before the events, and opens the array of events. */
static void chrome_json_write_head(struct writer *writer)
{
	static const char devices[] = "deviceProperties";
	static const char host[] = "host_name";
	size_t count = ops_trace_metadata_count(writer->rows.trace);
	bool has_devices = false;
	bool has_host = false;

	ops_buffer_append_text(&writer->text, "{\n\"schemaVersion\":1");
	for (size_t i = 0; i < count; i++) {
		struct ops_string key, json;

		ops_trace_metadata(writer->rows.trace, i, &key, &json);
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
	add_own_member(writer);
	ops_buffer_printf(&writer->text,
	                  ",\n\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":%" PRId64 ",\n\"traceEvents\":[\n",
	                  writer->rows.base_ns);
	chrome_json_write_text(writer);
}

/* Appends a row {"ph":"M"}; `value` is JSON. */
static void add_meta_row(struct writer *writer, const char *name, int64_t pid, int64_t tid, const char *key)
{
	ops_buffer_printf(&writer->text, "{\"ph\":\"M\",\"name\":\"%s\",\"ts\":", name);
	chrome_json_add_time(writer, writer->info->start_ns - writer->rows.base_ns);
	ops_buffer_printf(&writer->text, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"args\":{\"%s\":", pid, tid, key);
}

/* Opens a row for a process of the file. */
static void add_process_row(struct writer *writer, const struct ops_process *process, const char *name, const char *key)
{
	ops_buffer_printf(&writer->text, "%s{\"ph\":\"M\",\"name\":\"%s\",\"ts\":", writer->row_count++ ? ",\n" : "", name);
	chrome_json_add_time(writer, writer->info->start_ns - writer->rows.base_ns);
	ops_buffer_append_text(&writer->text, ",\"pid\":");
	chrome_json_add_id(writer, process->pid, process->flags & OPS_TRACK_PID_TEXT);
	ops_buffer_printf(&writer->text, ",\"tid\":0,\"args\":{\"%s\":", key);
}

static void write_read_processes(struct writer *writer, const struct ops_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ops_process *process = &processes[i];

		if (process->name != OPS_NONE) {
			add_process_row(writer, process, "process_name", "name");
			chrome_json_add_id(writer, process->name, true);
			ops_buffer_append_text(&writer->text, "}}");
		}
		if (process->labels != OPS_NONE) {
			add_process_row(writer, process, "process_labels", "labels");
			chrome_json_add_id(writer, process->labels, true);
			ops_buffer_append_text(&writer->text, "}}");
		}
		if (process->has_sort_index) {
			add_process_row(writer, process, "process_sort_index", "sort_index");
			ops_buffer_printf(&writer->text, "%" PRId64 "}}", process->sort_index);
		}
		chrome_json_write_text(writer);
	}
}

static void write_process_rows(struct writer *writer)
{
	int64_t pid = writer->info->pid;
	size_t count;
	const struct ops_process *processes = ops_trace_processes(writer->rows.trace, &count);

	write_read_processes(writer, processes, count);
	if (writer->row_count)
		return;
	if (writer->info->process_name[0]) {
		add_meta_row(writer, "process_name", pid, 0, "name");
		add_string(writer, writer->info->process_name);
		ops_buffer_append_text(&writer->text, "}},\n");
	}
	add_meta_row(writer, "process_labels", pid, 0, "labels");
	ops_buffer_append_text(&writer->text, "\"CPU\"}},\n");
	add_meta_row(writer, "process_sort_index", pid, 0, "sort_index");
	ops_buffer_printf(&writer->text, "%" PRId64 "}}", pid);
	chrome_json_write_text(writer);
}

/* Appends "thread 123 (worker)", or "stream 7 " as Kineto writes it. A coroutine's track only has its name. */
static bool add_track_name(struct writer *writer, const struct ops_track *track)
{
	struct ops_string name = ops_trace_string(writer->rows.trace, track->name);
	struct ops_buffer label = {0};
	bool made;

	if (track->kind == OPS_TRACK_STREAM)
		ops_buffer_printf(&label, "stream %" PRId64 " ", track->tid);
	else
		ops_buffer_printf(&label, "thread %" PRId64, shown_tid(writer, track));
	if (track->flags & (OPS_TRACK_TID_TEXT | OPS_TRACK_COROUTINE)) {
		label.size = 0;
		ops_buffer_append(&label, name.bytes, name.size);
	} else if (name.size) {
		ops_buffer_append_text(&label, track->kind == OPS_TRACK_STREAM ? "(" : " ("); /* "stream 7 " ends with a space */
		ops_buffer_append(&label, name.bytes, name.size);
		ops_buffer_append_text(&label, ")");
	}
	made = !label.failed;
	if (made)
		ops_json_string(&writer->text, label.bytes, label.size);
	ops_buffer_release(&label);
	return made;
}

/* Opens a row for a thread. The common part of its events begins with the quote after the name and ends with the key of the time. */
static void add_thread_row(struct writer *writer, size_t i, const char *name, const char *key)
{
	struct ops_string place = writer->tracks[i];

	ops_buffer_printf(&writer->text, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"ts\":", name);
	chrome_json_add_time(writer, writer->info->start_ns - writer->rows.base_ns);
	ops_buffer_append(&writer->text, place.bytes + 1, place.size - 1 - strlen(",\"ts\":"));
	ops_buffer_printf(&writer->text, ",\"args\":{\"%s\":", key);
}

/* Writes two rows for every thread. If the number of an ended thread is used again, only the first thread is named. Returns false
 * if out of memory. */
static bool write_thread_rows(struct writer *writer)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(writer->rows.trace, &count);
	size_t named = 0;

	for (size_t i = 0; i < count; i++) {
		if (writer->lanes[i] < named)
			continue;
		named++;
		if ((tracks[i].flags & OPS_TRACK_TID_TEXT) && tracks[i].name == 0)
			continue;
		add_thread_row(writer, i, "thread_name", "name");
		if (!add_track_name(writer, &tracks[i]))
			return false;
		ops_buffer_append_text(&writer->text, "}}");
		if (!(tracks[i].flags & OPS_TRACK_TID_TEXT)) {
			add_thread_row(writer, i, "thread_sort_index", "sort_index");
			ops_buffer_printf(&writer->text, "%" PRId64 "}}", shown_tid(writer, &tracks[i]));
		}
		chrome_json_write_text(writer);
	}
	return true;
}

/* Writes the span of the recording and the marks at its ends and, if records were lost, a mark with their number. */
static void write_marks(struct writer *writer)
{
	const struct ops_trace_info *info = writer->info;

	ops_buffer_append_text(&writer->text, ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\","
	                                      "\"tid\":\"PyTorch Profiler\",\"ts\":");
	chrome_json_add_time(writer, info->start_ns - writer->rows.base_ns);
	ops_buffer_append_text(&writer->text, ",\"dur\":");
	chrome_json_add_time(writer, info->stop_ns - info->start_ns);
	ops_buffer_append_text(&writer->text, ",\"args\":{\"Op count\":0}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":");
	chrome_json_add_time(writer, info->start_ns - writer->rows.base_ns);
	ops_buffer_printf(&writer->text, ",\"pid\":\"Spans\",\"tid\":0,\"args\":{\"sort_index\":%d}},\n", SPANS_SORT_INDEX);
	ops_buffer_append_text(&writer->text, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\","
	                                      "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\",\"ts\":");
	chrome_json_add_time(writer, info->start_ns - writer->rows.base_ns);
	if (info->lost) {
		ops_buffer_printf(&writer->text,
		                  "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"%" PRIu64 " records lost\",\"pid\":%" PRId64
		                  ",\"tid\":%" PRId64 ",\"ts\":",
		                  info->lost, info->pid, info->pid);
		chrome_json_add_time(writer, info->stop_ns - writer->rows.base_ns);
	}
	ops_buffer_append_text(&writer->text, "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":");
	chrome_json_add_time(writer, info->stop_ns - writer->rows.base_ns);
	chrome_json_write_text(writer);
}

/* --- document ------------------------------------------------------------------------------------------------------ */

static void make_name(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id)
{
	struct ops_string name = ops_trace_string(trace, id);

	ops_json_string(out, name.bytes, name.size);
	if (out->failed)
		return;
	/* The quotes are part of the surrounding text. */
	out->size -= 2;
	memmove(out->bytes, out->bytes + 1, out->size);
}

static void chrome_json_make_inputs(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id)
{
	ops_inputs_json_args(out, ops_trace_inputs(trace, id));
	ops_buffer_append_text(out, ",");
}

/* Returns false if out of memory. */
static bool prepare_track(struct writer *writer, size_t i, const struct ops_track *track)
{
	int64_t thread[3] = {track->pid, shown_tid(writer, track), track->flags};
	size_t lanes = writer->threads.count;
	size_t size;
	char *copy;

	writer->lanes[i] = ops_intern_add(&writer->threads, thread, sizeof(thread));
	if (writer->lanes[i] == OPS_INTERN_NONE)
		return false;
	ops_buffer_append_text(&writer->text, "\"");
	if (writer->lanes[i] < lanes)
		ops_buffer_printf(&writer->text, ",\"track\":%zu", i);
	ops_buffer_append_text(&writer->text, ",\"pid\":");
	chrome_json_add_id(writer, thread[0], track->flags & OPS_TRACK_PID_TEXT);
	ops_buffer_append_text(&writer->text, ",\"tid\":");
	chrome_json_add_id(writer, thread[1], track->flags & OPS_TRACK_TID_TEXT);
	ops_buffer_append_text(&writer->text, ",\"ts\":");
	size = writer->text.size;
	copy = ops_arena_alloc(&writer->arena, size + OPS_FRAGMENT_PADDING);
	if (!copy || writer->text.failed)
		return false;
	memcpy(copy, writer->text.bytes, size);
	memset(copy + size, 0, OPS_FRAGMENT_PADDING);
	writer->text.size = 0;
	writer->tracks[i] = (struct ops_string){copy, size};
	return true;
}

/* Returns the grid point before the start. For a recording in the 29 hours of each quarter with inexact times, half a grid later. */
static int64_t choose_base(const struct ops_trace_info *info)
{
	int64_t base_ns = info->start_ns > 0 ? info->start_ns / BASE_GRID_NS * BASE_GRID_NS : 0;
	bool fuzzy = info->start_ns - base_ns < FUZZY_TO_NS && info->stop_ns - base_ns >= FUZZY_FROM_NS;

	return fuzzy && info->start_ns - base_ns >= BASE_GRID_NS / 2 ? base_ns + BASE_GRID_NS / 2 : base_ns;
}

/* Returns false if out of memory. */
static bool find_ill_formed(struct writer *writer)
{
	size_t count = ops_trace_string_count(writer->rows.trace);

	for (size_t i = 0; i < count; i++) {
		struct ops_string string = ops_trace_string(writer->rows.trace, (uint32_t)i);

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

/* Returns false if out of memory. */
static bool chrome_json_prepare(struct writer *writer)
{
	const struct ops_trace *trace = writer->rows.trace;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	writer->rows.base_ns = choose_base(writer->info);
	writer->tracks = ops_alloc_zeroed(count, sizeof(*writer->tracks));
	writer->lanes = ops_alloc_zeroed(count, sizeof(*writer->lanes));
	if (!writer->tracks || !writer->lanes)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!prepare_track(writer, i, &tracks[i]))
			return false;
	writer->overlaps = ops_overlap_marks(trace, writer->lanes, writer->threads.count);
	if (!writer->overlaps || !find_ill_formed(writer) || !ops_chrome_storages_collect(&writer->rows.storages, trace))
		return false;
	writer->rows.tracks = writer->tracks;
	writer->rows.overlaps = writer->overlaps;
	writer->rows.ill_formed = writer->ill_formed;
	if (writer->rows.options->call_stacks && !writer->rows.was_read) {
		writer->callers = ops_python_callers(trace);
		if (!writer->callers)
			return false;
		writer->rows.callers = writer->callers;
	}
	return ops_fragments_init(&writer->rows.names, trace, ops_trace_string_count(trace), make_name) &&
	       ops_fragments_init(&writer->rows.inputs, trace, ops_trace_inputs_count(trace), chrome_json_make_inputs);
}

static void chrome_json_release(struct writer *writer)
{
	ops_fragments_release(&writer->rows.names);
	ops_fragments_release(&writer->rows.inputs);
	ops_chrome_storages_release(&writer->rows.storages);
	ops_arena_release(&writer->arena);
	ops_intern_release(&writer->threads);
	ops_free(writer->tracks);
	ops_free(writer->lanes);
	ops_free(writer->overlaps);
	ops_free(writer->ill_formed);
	ops_free(writer->callers);
	ops_buffer_release(&writer->text);
}

/* Returns false if out of memory. */
static bool chrome_json_write_document(struct writer *writer, const char *path)
{
	chrome_json_write_head(writer);
	write_process_rows(writer);
	if (!write_thread_rows(writer))
		return false;
	ops_chrome_write_events(&writer->rows);
	ops_chrome_write_memory(&writer->rows);
	ops_chrome_write_counters(&writer->rows);
	ops_chrome_write_links(&writer->rows);
	if (!writer->rows.was_read)
		write_marks(writer);
	ops_buffer_append_text(&writer->text, writer->rows.was_read ? "\n],\n\"traceName\":" : "}\n],\n\"traceName\":");
	add_string(writer, path);
	ops_buffer_append_text(&writer->text, "\n}\n");
	chrome_json_write_text(writer);
	return !writer->text.failed && !ops_chrome_rows_failed(&writer->rows);
}

enum ops_code ops_write_chrome_json(const struct ops_trace *trace, const char *path,
                                    const struct ops_chrome_json_options *options, struct ops_error *error)
{
	struct ops_chrome_json_options given;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);
	struct writer writer = {
		.rows = {.trace = trace, .events = ops_trace_events(trace), .options = &given,
		         .was_read = ops_trace_events(trace)->index != NULL},
		.info = ops_trace_info(trace),
	};
	int level = given.compression_level ? given.compression_level : LEVEL_DEFAULT;

	if (code)
		return code;
	if (level < 0 || level > 9)
		return ops_fault(error, OPS_INVALID, "compression level %d is not between 1 and 9", level);
	code = ops_sink_open_gzip(path, ops_ends_with(path, ".gz") ? level : 0, given.compression_threads, &writer.rows.sink, error);
	if (code)
		return code;
	if (!chrome_json_prepare(&writer) || !chrome_json_write_document(&writer, path))
		code = ops_fault_memory(error);
	else if (writer.rows.cancelled)
		code = ops_fault(error, OPS_STATE, "writing '%s' was cancelled", path);
	if (code)
		ops_sink_abandon(writer.rows.sink);
	else
		code = ops_sink_close(writer.rows.sink, error);
	chrome_json_release(&writer);
	return code;
}
