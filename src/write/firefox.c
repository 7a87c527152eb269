/* SPDX-License-Identifier: Apache-2.0
 *
 * The processed profile format of the Firefox Profiler (profiler.firefox.com), version 48: for each thread, tables in columns whose entries
 * refer to each other by number.
 *
 *     samples ─▶ stackTable (its prefix is another stack) ─▶ frameTable ─▶ funcTable ─▶ stringArray
 *     markers ─▶ stringArray
 *
 * A sample begins where the stack of open events changes, and its weight is how long it stays so. Annotations, instants and events that
 * may overlap others are markers. Threads and streams are threads there, devices are processes.
 */
#include <opstrobe/write.h>

#include <inttypes.h>
#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/version.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"
#include "base/sink.h"
#include "base/text.h"
#include "trace/kinds.h"
#include "trace/track_rows.h"

#define FIREFOX_GZIP_LEVEL 4

/* A column of a table: the text of a JSON list, without its brackets. */
enum column {
	SAMPLE_STACK, SAMPLE_TIME, SAMPLE_WEIGHT,
	STACK_PREFIX, STACK_FRAME, STACK_CATEGORY,
	FUNCTION_NAME, FUNCTION_FILE, FUNCTION_LINE,
	MARKER_NAME, MARKER_START, MARKER_END, MARKER_PHASE, MARKER_CATEGORY,
	COLUMN_COUNT,
};

enum { CATEGORY_OTHER, CATEGORY_OPERATOR, CATEGORY_PYTHON, CATEGORY_ANNOTATION, CATEGORY_CALL, CATEGORY_DEVICE };
enum { PHASE_INSTANT = 0, PHASE_INTERVAL = 1 };

struct firefox_open {
	int64_t end_ns;
	uint32_t stack;
};

struct firefox {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct ops_sink *sink;
	struct ops_buffer out;
	int64_t base_ns; /* times count from it */
	/* Of the thread in hand: */
	struct ops_buffer columns[COLUMN_COUNT];
	size_t samples, markers;
	struct ops_intern strings;
	struct ops_map functions; /* name and category → function; frames have the same numbers */
	struct ops_map stacks;    /* prefix and function → stack */
	OPS_ARRAY(struct firefox_open) open;
	int64_t now_ns;
	bool failed;
};

/* --- columns -------------------------------------------------------------------------------------------------------- */

static void firefox_put_gap(struct ops_buffer *column)
{
	ops_buffer_append_text(column, column->size ? "," : "");
}

static void firefox_put_number(struct firefox *f, enum column column, uint32_t number)
{
	struct ops_buffer *out = &f->columns[column];

	firefox_put_gap(out);
	if (number == OPS_NONE)
		ops_buffer_append_text(out, "null");
	else
		ops_buffer_append_int(out, number);
}

/* In milliseconds, with all digits. */
static void put_ms(struct ops_buffer *out, int64_t ns)
{
	ops_buffer_printf(out, "%s%" PRId64 ".%06" PRId64, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000000, (ns < 0 ? -ns : ns) % 1000000);
}

static void firefox_put_time(struct firefox *f, enum column column, int64_t ns)
{
	firefox_put_gap(&f->columns[column]);
	put_ms(&f->columns[column], ns);
}

static uint32_t firefox_string(struct firefox *f, struct ops_string text)
{
	uint32_t id = ops_intern_add(&f->strings, text.bytes, text.size);

	f->failed |= id == OPS_INTERN_NONE;
	return id;
}

/* --- stacks --------------------------------------------------------------------------------------------------------- */

static uint32_t category_of_kind(uint8_t kind)
{
	switch (kind) {
	case OPS_EVENT_CPU_OP:
		return CATEGORY_OPERATOR;
	case OPS_EVENT_PYTHON_FUNCTION:
		return CATEGORY_PYTHON;
	case OPS_EVENT_USER_ANNOTATION:
	case OPS_EVENT_GPU_USER_ANNOTATION:
		return CATEGORY_ANNOTATION;
	default:
		return ops_kind_is_work(kind) ? CATEGORY_DEVICE : ops_kind_is_call(kind) ? CATEGORY_CALL : CATEGORY_OTHER;
	}
}

static uint32_t firefox_function(struct firefox *f, uint32_t row)
{
	uint32_t category = category_of_kind(f->events->kind[row]), count = (uint32_t)f->functions.count;
	struct ops_function_text function = {.name = ops_trace_string(f->trace, f->events->name[row])};
	uint32_t *slot = ops_map_slot(&f->functions, (uint64_t)category << 32 | f->events->name[row], count);

	if (!slot) {
		f->failed = true;
		return 0;
	}
	if (*slot != count || f->functions.count == count)
		return *slot;
	ops_event_function(f->trace, row, &function);
	firefox_put_number(f, FUNCTION_NAME, firefox_string(f, function.name));
	firefox_put_number(f, FUNCTION_FILE, function.file.size ? firefox_string(f, function.file) : OPS_NONE);
	firefox_put_number(f, FUNCTION_LINE, function.line ? function.line : OPS_NONE);
	return count;
}

static uint32_t firefox_stack(struct firefox *f, uint32_t row)
{
	uint32_t prefix = f->open.count ? f->open.items[f->open.count - 1].stack : OPS_NONE, function = firefox_function(f, row);
	uint32_t count = (uint32_t)f->stacks.count;
	uint32_t *slot = ops_map_slot(&f->stacks, (uint64_t)prefix << 32 | function, count);

	if (!slot) {
		f->failed = true;
		return 0;
	}
	if (*slot != count || f->stacks.count == count)
		return *slot;
	firefox_put_number(f, STACK_PREFIX, prefix);
	firefox_put_number(f, STACK_FRAME, function);
	firefox_put_number(f, STACK_CATEGORY, category_of_kind(f->events->kind[row]));
	return count;
}

/* From `now` to this time the open events stay as they are. */
static void advance(struct firefox *f, int64_t ns)
{
	if (ns > f->now_ns && (f->open.count || f->samples)) {
		firefox_put_number(f, SAMPLE_STACK, f->open.count ? f->open.items[f->open.count - 1].stack : OPS_NONE);
		firefox_put_time(f, SAMPLE_TIME, f->now_ns - f->base_ns);
		firefox_put_time(f, SAMPLE_WEIGHT, f->open.count ? ns - f->now_ns : 0);
		f->samples++;
	}
	f->now_ns = ns > f->now_ns ? ns : f->now_ns;
}

static void close_until(struct firefox *f, int64_t ns)
{
	while (f->open.count && f->open.items[f->open.count - 1].end_ns <= ns) {
		advance(f, f->open.items[f->open.count - 1].end_ns);
		f->open.count--;
	}
}

static void put_marker(struct firefox *f, uint32_t row)
{
	bool is_instant = f->events->start_ns[row] == f->events->end_ns[row];

	firefox_put_number(f, MARKER_NAME, firefox_string(f, ops_trace_string(f->trace, f->events->name[row])));
	firefox_put_time(f, MARKER_START, f->events->start_ns[row] - f->base_ns);
	if (is_instant)
		firefox_put_number(f, MARKER_END, OPS_NONE);
	else
		firefox_put_time(f, MARKER_END, f->events->end_ns[row] - f->base_ns);
	firefox_put_number(f, MARKER_PHASE, is_instant ? PHASE_INSTANT : PHASE_INTERVAL);
	firefox_put_number(f, MARKER_CATEGORY, category_of_kind(f->events->kind[row]));
	f->markers++;
}

/* An event that ends after the one around it, as on a stream, ends with it here. */
static void firefox_put_event(struct firefox *f, uint32_t row)
{
	int64_t start_ns = f->events->start_ns[row], end_ns = f->events->end_ns[row];
	uint16_t flags = f->events->flags[row];

	if (flags & OPS_EVENT_HIDDEN)
		return;
	if ((flags & OPS_EVENT_ASYNC) || start_ns == end_ns || category_of_kind(f->events->kind[row]) == CATEGORY_ANNOTATION)
		put_marker(f, row);
	if ((flags & OPS_EVENT_ASYNC) || start_ns == end_ns)
		return;
	close_until(f, start_ns);
	advance(f, start_ns);
	if (f->open.count && f->open.items[f->open.count - 1].end_ns < end_ns)
		end_ns = f->open.items[f->open.count - 1].end_ns;
	f->failed |= !OPS_ARRAY_APPEND(&f->open, (struct firefox_open){end_ns, firefox_stack(f, row)});
}

/* --- threads -------------------------------------------------------------------------------------------------------- */

static void firefox_flush(struct firefox *f)
{
	f->failed |= f->out.failed;
	ops_sink_write(f->sink, ops_buffer_text(&f->out), f->out.size);
	f->out.size = 0;
}

static void firefox_put_column(struct firefox *f, const char *key, enum column column)
{
	ops_buffer_printf(&f->out, ",\"%s\":[", key);
	ops_buffer_append(&f->out, ops_buffer_text(&f->columns[column]), f->columns[column].size);
	ops_buffer_append_text(&f->out, "]");
	f->failed |= f->columns[column].failed;
	firefox_flush(f);
}

/* A column whose entries are all the same. */
static void put_constant(struct firefox *f, const char *key, const char *value, size_t count)
{
	ops_buffer_printf(&f->out, ",\"%s\":[", key);
	for (size_t i = 0; i < count; i++) {
		ops_buffer_append_text(&f->out, i ? "," : "");
		ops_buffer_append_text(&f->out, value);
	}
	ops_buffer_append_text(&f->out, "]");
	firefox_flush(f);
}

static void put_frame_numbers(struct firefox *f, size_t count)
{
	ops_buffer_append_text(&f->out, ",\"func\":[");
	for (size_t i = 0; i < count; i++)
		ops_buffer_printf(&f->out, "%s%zu", i ? "," : "", i);
	ops_buffer_append_text(&f->out, "]");
}

static void put_tables(struct firefox *f)
{
	size_t stacks = f->stacks.count, functions = f->functions.count;

	ops_buffer_printf(&f->out, ",\n\"samples\":{\"length\":%zu,\"weightType\":\"tracing-ms\"", f->samples);
	firefox_put_column(f, "stack", SAMPLE_STACK);
	firefox_put_column(f, "time", SAMPLE_TIME);
	firefox_put_column(f, "weight", SAMPLE_WEIGHT);
	ops_buffer_printf(&f->out, "},\n\"stackTable\":{\"length\":%zu", stacks);
	firefox_put_column(f, "prefix", STACK_PREFIX);
	firefox_put_column(f, "frame", STACK_FRAME);
	firefox_put_column(f, "category", STACK_CATEGORY);
	put_constant(f, "subcategory", "0", stacks);
	ops_buffer_printf(&f->out, "},\n\"frameTable\":{\"length\":%zu", functions);
	put_frame_numbers(f, functions);
	firefox_put_column(f, "line", FUNCTION_LINE);
	put_constant(f, "address", "-1", functions);
	put_constant(f, "inlineDepth", "0", functions);
	for (size_t i = 0; i < 6; i++)
		put_constant(f, (const char *const[]){"category", "subcategory", "nativeSymbol", "innerWindowID", "implementation", "column"}[i],
		             "null", functions);
	ops_buffer_printf(&f->out, "},\n\"funcTable\":{\"length\":%zu", functions);
	firefox_put_column(f, "name", FUNCTION_NAME);
	firefox_put_column(f, "fileName", FUNCTION_FILE);
	firefox_put_column(f, "lineNumber", FUNCTION_LINE);
	put_constant(f, "columnNumber", "null", functions);
	put_constant(f, "resource", "-1", functions);
	put_constant(f, "isJS", "false", functions);
	put_constant(f, "relevantForJS", "false", functions);
	ops_buffer_printf(&f->out, "},\n\"markers\":{\"length\":%zu", f->markers);
	firefox_put_column(f, "name", MARKER_NAME);
	firefox_put_column(f, "startTime", MARKER_START);
	firefox_put_column(f, "endTime", MARKER_END);
	firefox_put_column(f, "phase", MARKER_PHASE);
	firefox_put_column(f, "category", MARKER_CATEGORY);
	put_constant(f, "data", "null", f->markers);
	ops_buffer_append_text(&f->out, "},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
	                                "\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]},\n\"stringArray\":[");
	for (uint32_t i = 0; i < f->strings.count; i++) {
		struct ops_string text = ops_intern_text(&f->strings, i);

		ops_buffer_append_text(&f->out, i ? "," : "");
		ops_json_string(&f->out, text.bytes, text.size);
	}
	ops_buffer_append_text(&f->out, "]}");
	firefox_flush(f);
}

/* A process, thread, device or stream: its number, or its name in the file. */
static void firefox_put_label(struct firefox *f, const char *word, int64_t number, bool is_text)
{
	struct ops_buffer text = {0};
	struct ops_string string;

	ops_buffer_printf(&text, "%s%" PRId64, word, number);
	string = is_text ? ops_trace_string(f->trace, (uint32_t)number) : (struct ops_string){ops_buffer_text(&text), text.size};
	ops_json_string(&f->out, string.bytes, string.size);
	f->failed |= text.failed;
	ops_buffer_release(&text);
}

static void firefox_put_thread(struct firefox *f, const struct ops_track *track)
{
	bool is_stream = track->kind == OPS_TRACK_STREAM;
	struct ops_string name = ops_trace_string(f->trace, track->name);

	ops_buffer_append_text(&f->out, "{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
	                                "\"unregisterTime\":null,\"pausedRanges\":[],\"name\":");
	if (name.size)
		ops_json_string(&f->out, name.bytes, name.size);
	else
		firefox_put_label(f, is_stream ? "stream " : "thread ", track->tid, track->flags & OPS_TRACK_TID_TEXT);
	ops_buffer_append_text(&f->out, ",\"processName\":");
	firefox_put_label(f, is_stream ? "GPU " : "process ", track->pid, track->flags & OPS_TRACK_PID_TEXT);
	ops_buffer_printf(&f->out, ",\"isMainThread\":%s,\"pid\":", !is_stream && track->pid == track->tid ? "true" : "false");
	firefox_put_label(f, is_stream ? "GPU " : "", track->pid, track->flags & OPS_TRACK_PID_TEXT);
	ops_buffer_append_text(&f->out, ",\"tid\":");
	firefox_put_label(f, "", track->tid, track->flags & OPS_TRACK_TID_TEXT);
	put_tables(f);
}

static void forget_thread(struct firefox *f)
{
	for (int i = 0; i < COLUMN_COUNT; i++)
		f->columns[i].size = 0;
	ops_intern_release(&f->strings);
	ops_map_release(&f->functions);
	ops_map_release(&f->stacks);
	f->strings = (struct ops_intern){0};
	f->functions = f->stacks = (struct ops_map){0};
	f->samples = f->markers = f->open.count = 0;
	f->now_ns = INT64_MIN;
}

/* --- the file ------------------------------------------------------------------------------------------------------- */

static void firefox_put_head(struct firefox *f)
{
	ops_buffer_append_text(&f->out, "{\"meta\":{\"version\":27,\"preprocessedProfileVersion\":48,\"product\":\"opstrobe " OPS_VERSION
	                                "\",\"processType\":0,\"stackwalk\":1,\"interval\":1,\"startTime\":");
	put_ms(&f->out, f->base_ns);
	ops_buffer_append_text(&f->out,
	                       ",\"symbolicated\":true,\"debug\":false,\"usesOnlyOneStackType\":true,\"doesNotUseFrameImplementation\":true,"
	                       "\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},\"markerSchema\":[],\n\"categories\":[");
	for (size_t i = 0; i < 6; i++) {
		static const char *const names[][2] = {{"Other", "grey"}, {"Operator", "blue"}, {"Python", "yellow"},
		                                       {"Annotation", "green"}, {"Device API", "orange"}, {"Device", "purple"}};

		ops_buffer_printf(&f->out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i ? "," : "", names[i][0], names[i][1]);
	}
	ops_buffer_append_text(&f->out, "]},\n\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\n\"threads\":[");
	firefox_flush(f);
}

static bool firefox_write_all(struct firefox *f)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(f->trace, &count);
	struct ops_track_rows rows;
	bool sorted = ops_track_rows_init(&rows, f->trace), more = false;

	firefox_put_head(f);
	for (size_t i = 0; sorted && i < count && !f->failed; i++) {
		forget_thread(f);
		for (size_t at = rows.first[i]; at < rows.first[i + 1]; at++)
			firefox_put_event(f, rows.rows[at]);
		close_until(f, INT64_MAX);
		advance(f, f->samples ? f->now_ns + 1 : f->now_ns); /* so that the last stack is seen to end */
		if (!f->samples && !f->markers)
			continue;
		ops_buffer_append_text(&f->out, more ? ",\n" : "\n");
		firefox_put_thread(f, &tracks[i]);
		more = true;
	}
	ops_buffer_append_text(&f->out, "]}\n");
	firefox_flush(f);
	ops_track_rows_release(&rows);
	return sorted && !f->failed;
}

enum ops_code ops_write_firefox(const struct ops_trace *trace, const char *path, struct ops_error *error)
{
	struct firefox f = {.trace = trace, .events = ops_trace_events(trace)};
	enum ops_code code = ops_sink_open_file(path, ops_ends_with(path, ".gz") ? FIREFOX_GZIP_LEVEL : 0, &f.sink, error);

	f.base_ns = f.events->count ? f.events->start_ns[0] : ops_trace_info(trace)->start_ns;
	if (!code && firefox_write_all(&f)) {
		code = ops_sink_close(f.sink, error);
	} else if (!code) {
		ops_sink_abandon(f.sink);
		code = ops_fault_memory(error);
	}
	forget_thread(&f);
	for (int i = 0; i < COLUMN_COUNT; i++)
		ops_buffer_release(&f.columns[i]);
	OPS_ARRAY_RELEASE(&f.open);
	ops_buffer_release(&f.out);
	return code ? ops_fault_context(error, code, "cannot write profile '%s'", path) : OPS_OK;
}
