/* SPDX-License-Identifier: Apache-2.0
 *
 * How events of a file are converted, and how slightly invalid files are handled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>
#include <opstrobe/read.h>

#include "compare.h"
#include "sample.h"

#define BASE INT64_C(1000000000000)

static struct ops_trace *read_bytes(const char *bytes, size_t size)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read_memory(bytes, size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static struct ops_trace *read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void assert_refused(const char *text, const char *why)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	assert_int_equal(ops_trace_read_memory(text, strlen(text), NULL, &trace, &error), OPS_CORRUPT);
	if (!strstr(error.text, why))
		fail_msg("'%s' where '%s' was expected", error.text, why);
	assert_null(trace);
}

static void assert_text(struct ops_string string, const char *text)
{
	assert_int_equal(string.size, strlen(text));
	assert_memory_equal(string.bytes, text, string.size);
}

/* The one note of the trace. */
static void assert_note(const struct ops_trace *trace, enum ops_note_kind kind, uint64_t count, uint64_t byte)
{
	size_t notes;
	const struct ops_note *note = ops_trace_notes(trace, &notes);

	assert_int_equal(notes, 1);
	if (note->kind != kind)
		fail_msg("%s", ops_note_text(note->kind));
	assert_int_equal(note->count, count);
	assert_int_equal(note->byte, byte);
}

/* --- one of everything ---------------------------------------------------------------------------------------------- */

static void kinds_and_times(void **state)
{
	struct ops_trace *trace = read_text(sample);
	const struct ops_events *e = ops_trace_events(trace);
	static const uint8_t kinds[] = {
		OPS_EVENT_TRACE, OPS_EVENT_USER_ANNOTATION, OPS_EVENT_CPU_OP, OPS_EVENT_RUNTIME, OPS_EVENT_KERNEL,
		OPS_EVENT_CPU_OP, OPS_EVENT_DRIVER, OPS_EVENT_PYTHON_FUNCTION, OPS_EVENT_USER_ANNOTATION,
		OPS_EVENT_USER_ANNOTATION, OPS_EVENT_CPU_INSTANT, OPS_EVENT_MARK, OPS_EVENT_OTHER,
	};
	size_t notes;

	(void)state;
	ops_trace_notes(trace, &notes);
	assert_int_equal(notes, 0);
	assert_int_equal(e->count, sizeof(kinds));
	for (size_t row = 0; row < e->count; row++)
		assert_int_equal(e->kind[row], kinds[row]);
	assert_int_equal(e->start_ns[2], BASE + 2001);
	assert_int_equal(e->end_ns[2], BASE + 12003);
	assert_int_equal(e->start_ns[4], BASE + 8250);
	assert_int_equal(e->end_ns[8], BASE + 45000);
	assert_int_equal(e->end_ns[9], BASE + 55000);
	assert_int_equal(e->flags[9], OPS_EVENT_ASYNC);
	assert_int_equal(e->flags[0], OPS_EVENT_HIDDEN);
	assert_int_equal(e->flags[11], OPS_EVENT_HIDDEN);
	assert_int_equal(e->parent[3], 2);
	assert_int_equal(e->parent[2], 1);
	assert_int_equal(e->parent[4], OPS_NONE);
	assert_int_equal(e->index[2], 5);
	assert_int_equal(ops_trace_info(trace)->start_ns, BASE);
	assert_int_equal(ops_trace_info(trace)->stop_ns, BASE + 100000);
	assert_int_equal(ops_trace_info(trace)->pid, 7);
	assert_string_equal(ops_trace_info(trace)->process_name, "python");
	assert_string_equal(ops_trace_info(trace)->host_name, "h\xc3\xb6st");
	ops_trace_unref(trace);
}

static void arguments(void **state)
{
	struct ops_trace *trace = read_text(sample);
	const struct ops_events *e = ops_trace_events(trace);
	struct ops_string json;

	(void)state;
	assert_int_equal(e->id[2], 2);
	assert_int_equal(e->id[4], 2);
	assert_int_equal(e->sequence_nr[2], 5);
	assert_int_equal(e->forward_thread[5], 1);
	assert_int_equal(e->correlation[3], 99);
	assert_int_equal(e->correlation[4], 99);
	assert_int_equal(e->correlation[2], -1);
	assert_int_equal(e->python_id[7], 4);
	assert_int_equal(e->python_module[7], 0);
	assert_null(e->python_parent);
	assert_text(ops_trace_string(trace, e->call_stack[2]), "a.py(1): f;b.py(2): g;");
	assert_text(ops_trace_string(trace, e->name[4]), "sgemm<\"a\\b\">");
	assert_text(ops_trace_string(trace, e->extra[2]), "\"Module Hierarchy\":\"A\"");
	assert_text(ops_trace_string(trace, e->extra[12]), "\"n\":{\"a\":[1]}");
	assert_true(ops_event_arg(trace, 4, "grid", &json));
	assert_text(json, "[1,2,3]");
	assert_true(ops_event_arg(trace, 4, "blocks per SM", &json));
	assert_text(json, "0.25");
	assert_false(ops_event_arg(trace, 4, "gri", &json));
	assert_false(ops_event_arg(trace, 1, "grid", &json));
	assert_text(ops_event_category(trace, 4), "kernel");
	assert_text(ops_event_category(trace, 6), "xpu_driver");
	assert_text(ops_event_category(trace, 11), "");
	assert_text(ops_event_category(trace, 12), "cuda_profiler_range");
	assert_int_not_equal(e->inputs[2], OPS_NONE);
	assert_int_equal(ops_inputs_count(ops_trace_inputs(trace, e->inputs[2]).bytes, 4), 2);
	ops_trace_unref(trace);
}

static void tracks_and_links(void **state)
{
	struct ops_trace *trace = read_text(sample);
	const struct ops_events *e = ops_trace_events(trace);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	const struct ops_link *links = ops_trace_links(trace, &count);
	const struct ops_process *processes;

	(void)state;
	assert_int_equal(count, 2);
	assert_int_equal(links[0].from, 2);
	assert_int_equal(links[0].to, 5);
	assert_int_equal(links[0].kind, OPS_LINK_FORWARD_BACKWARD);
	assert_int_equal(links[1].from, 3);
	assert_int_equal(links[1].to, 4);
	assert_int_equal(links[1].kind, OPS_LINK_LAUNCH);
	assert_int_equal(tracks[e->track[2]].number, 1);
	assert_int_equal(tracks[e->track[5]].number, 2);
	assert_int_equal(e->track[3], e->track[2]); /* "7" is 7 */
	assert_int_equal(tracks[e->track[4]].kind, OPS_TRACK_STREAM);
	assert_text(ops_trace_string(trace, tracks[e->track[2]].name), "main");
	assert_int_equal(tracks[e->track[0]].flags, OPS_TRACK_PID_TEXT | OPS_TRACK_TID_TEXT);
	assert_text(ops_trace_string(trace, (uint32_t)tracks[e->track[0]].pid), "Spans");
	processes = ops_trace_processes(trace, &count);
	assert_int_equal(count, 2);
	assert_text(ops_trace_string(trace, processes[1].labels), "GPU 0");
	assert_int_equal(processes[1].sort_index, 5000000);
	ops_trace_unref(trace);
}

static void records_and_metadata(void **state)
{
	struct ops_trace *trace = read_text(sample);
	size_t count;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &count);
	const struct ops_counter_record *counters;
	struct ops_string key, json;

	(void)state;
	assert_int_equal(count, 1);
	assert_int_equal(memory->time_ns, BASE + 2500);
	assert_int_equal(memory->bytes, 64);
	assert_int_equal(memory->address, 4096);
	assert_int_equal(memory->device_index, -1);
	assert_text(ops_trace_string(trace, *ops_trace_memory_stacks(trace)), "a.py(1): f;b.py(2): g;");
	counters = ops_trace_counters(trace, &count);
	assert_int_equal(count, 3);
	assert_true(counters[0].value == 12.5 && counters[1].value == -1e-3 && counters[2].value == 4);
	assert_text(ops_trace_string(trace, counters[1].series), "");
	assert_text(ops_trace_string(trace, counters[2].series), "scaled");
	assert_int_equal(ops_trace_metadata_count(trace), 3);
	ops_trace_metadata(trace, 2, &key, &json);
	assert_text(key, "distributedInfo");
	assert_text(json, "{\"rank\":0}");
	ops_trace_unref(trace);
}

/* What only traces of files have goes along when traces are packed and merged. */
static void goes_where_traces_go(void **state)
{
	struct ops_trace *trace = read_text(sample), *other;
	struct ops_trace_part part = {.trace = trace, .whole = true};
	char *bytes;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	assert_int_equal(ops_trace_unpack(bytes, size, &other, NULL), OPS_OK);
	assert_same_trace(trace, other);
	ops_trace_unref(other);
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(ops_trace_unpack(bytes, cut, &other, NULL), OPS_CORRUPT);
	ops_free(bytes);
	assert_int_equal(ops_trace_merge(&part, 1, NULL, &other, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(other, NULL), OPS_OK);
	assert_same_trace(trace, other);
	ops_trace_unref(other);
	ops_trace_unref(trace);
}

/* --- forms of files ------------------------------------------------------------------------------------------------- */

#define OP(name, ts, dur) "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":" name ",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur "}"

/* A place of zeros, behind another that was the first. */
static void stream_zero_of_device_zero(void **state)
{
	struct ops_trace *trace = read_text("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":1},"
	                                    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":0,\"tid\":0,\"ts\":2,\"dur\":1}]");
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	(void)state;
	assert_int_equal(count, 2);
	assert_int_equal(tracks[events->track[0]].pid, 1);
	assert_int_equal(tracks[events->track[1]].pid, 0);
	assert_int_equal(tracks[events->track[1]].tid, 0);
	ops_trace_unref(trace);
}

static void bare_array(void **state)
{
	struct ops_trace *trace = read_text(" [" OP("\"a\"", "5", "1") "," OP("\"b\"", "7", "1") "] ");

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 2);
	assert_int_equal(ops_trace_info(trace)->start_ns, 5000);
	assert_int_equal(ops_trace_info(trace)->stop_ns, 8000);
	ops_trace_unref(trace);
	trace = read_text("[]");
	assert_int_equal(ops_trace_events(trace)->count, 0);
	ops_trace_unref(trace);
	trace = read_text("\xef\xbb\xbf{\"traceEvents\":[]}");
	ops_trace_unref(trace);
}

static void numbers_of_all_sorts(void **state)
{
	static const struct {
		const char *ts;
		int64_t ns;
	} times[] = {
		{"0", 0},
		{"-1.5", -1500},
		{"1.0004", 1000},
		{"1.0005", 1001},
		{"1e3", 1000000},
		{"1.7894E+15", INT64_C(1789400000000000000)},
		{"1606911006433250", INT64_C(1606911006433250000)},
		{"1606911006433250.123", INT64_C(1606911006433250123)},
		{"1606911006433250.1234567890123456789", INT64_C(1606911006433250123)},
		{"123456789e-9", 123},
		{"0.000000000000000000000000000000000001e36", 1000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		char text[256];
		struct ops_trace *trace;

		snprintf(text, sizeof(text), "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%s,\"dur\":1}]",
		         times[i].ts);
		trace = read_text(text);
		assert_int_equal(ops_trace_events(trace)->count, 1);
		assert_int_equal(ops_trace_events(trace)->start_ns[0], times[i].ns);
		assert_int_equal(ops_trace_events(trace)->end_ns[0], times[i].ns + 1000);
		ops_trace_unref(trace);
	}
}

static void base_may_come_last(void **state)
{
	struct ops_trace *trace = read_text("{\"traceEvents\":[" OP("\"a\"", "5", "1") "],\"baseTimeNanoseconds\":1700000000000000000}");

	(void)state;
	assert_int_equal(ops_trace_events(trace)->start_ns[0], INT64_C(1700000000000005000));
	assert_int_equal(ops_trace_info(trace)->start_ns, INT64_C(1700000000000005000));
	ops_trace_unref(trace);
}

/* Words of 2020: shapes without strides, types of other names. They are kept as text, and the shapes understood. */
static void old_inputs(void **state)
{
	struct ops_trace *trace = read_text(
		"[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"x\":1,"
		"\"Input dims\":[[2, 3], [], [[1], [2]]],\"Input type\":[\"Float\",\"Int\",\"GenericList\"],\"external id\":0}}]");
	const struct ops_events *e = ops_trace_events(trace);
	struct ops_input_cursor cursor;
	struct ops_input item = {0}; /* gcc does not see that it is always filled */
	struct ops_string list;

	(void)state;
	assert_int_equal(e->kind[0], OPS_EVENT_CPU_OP);
	assert_text(ops_event_category(trace, 0), "Operator");
	assert_text(ops_trace_string(trace, e->extra[0]),
	            "\"Input dims\":[[2,3],[],[[1],[2]]],\"Input type\":[\"Float\",\"Int\",\"GenericList\"],\"x\":1");
	list = ops_trace_inputs(trace, e->inputs[0]);
	cursor = ops_inputs_open(list.bytes, list.size);
	assert_true(ops_inputs_next(&cursor, &item));
	assert_int_equal(item.tag, OPS_INPUT_TENSOR_PLAIN);
	assert_int_equal(ops_input_int(&item, 1), 3);
	assert_true(ops_inputs_next(&cursor, &item));
	assert_int_equal(item.tag, OPS_INPUT_NONE);
	assert_true(ops_inputs_next(&cursor, &item));
	assert_int_equal(item.tag, OPS_INPUT_TENSOR_LIST);
	assert_int_equal(item.n, 2);
	ops_trace_unref(trace);
}

/* The events of a file that is longer than the window lie across its edges in every way. */
static void longer_than_the_window(void **state)
{
	size_t capacity = 4u << 20, size = 1, events = 0;
	char *text = malloc(capacity);
	struct ops_trace *trace;

	(void)state;
	text[0] = '[';
	while (size + 4096 < capacity) {
		int padding = (int)(events * 7 % 1500);
		size += (size_t)snprintf(text + size, 4096,
		                         "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n%zu\",\"pid\":1,\"tid\":1,\"ts\":%zu,\"dur\":1,"
		                         "\"args\":{\"x\":\"%*s\"}}",
		                         events ? ",\n" : "", events % 10, events * 2, padding, "");
		events++;
	}
	text[size++] = ']';
	trace = read_bytes(text, size);
	assert_int_equal(ops_trace_events(trace)->count, events);
	for (size_t row = 0; row < events; row++) {
		struct ops_string json;

		assert_int_equal(ops_trace_events(trace)->start_ns[row], row * 2000);
		assert_true(ops_event_arg(trace, (uint32_t)row, "x", &json));
		assert_int_equal(json.size, row * 7 % 1500 + 2);
	}
	ops_trace_unref(trace);
	free(text);
}

/* --- repairs -------------------------------------------------------------------------------------------------------- */

static void superfluous_commas(void **state)
{
	struct ops_trace *trace = read_text("[" OP("\"a\"", "5", "1") ",,{\"ph\":\"X\",\"ts\":1,\"dur\":1,},]");
	size_t count;

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 2);
	assert_int_equal(ops_trace_notes(trace, &count)->count, 3);
	ops_trace_unref(trace);
	trace = read_text("{\"a\":1,\"traceEvents\":[],}");
	assert_note(trace, OPS_NOTE_COMMA, 1, 24);
	ops_trace_unref(trace);
}

/* Cut anywhere, a file gives the events that are whole. */
static void truncated(void **state)
{
	size_t last = 0;

	(void)state;
	for (size_t size = 0; size < sizeof(sample) - 2; size++) {
		struct ops_trace *trace = NULL;
		enum ops_code code = ops_trace_read_memory(sample, size, NULL, &trace, NULL);

		if (code) {
			assert_int_equal(code, OPS_CORRUPT);
			assert_int_equal(last, 0);
			continue;
		}
		assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
		assert_true(ops_trace_events(trace)->count >= last);
		last = ops_trace_events(trace)->count;
		ops_trace_unref(trace);
	}
	assert_int_equal(last, 13);
}

static void truncated_is_noted(void **state)
{
	struct ops_trace *trace = read_text("{\"traceEvents\":[" OP("\"a\"", "5", "1") ",{\"ph\":\"X");

	(void)state;
	assert_int_equal(ops_trace_events(trace)->count, 1);
	assert_note(trace, OPS_NOTE_TRUNCATED, 1, 92);
	ops_trace_unref(trace);
}

static void odd_characters(void **state)
{
	struct ops_trace *trace = read_text("[" OP("\"a\nb\\ud83d\\ude00\\ud800\\q\"", "5", "1") "]");

	(void)state;
	assert_text(ops_trace_string(trace, ops_trace_events(trace)->name[0]), "a\nb\xf0\x9f\x98\x80\xed\xa0\x80q");
	assert_note(trace, OPS_NOTE_CONTROL_CHARACTER, 1, 1);
	ops_trace_unref(trace);
	trace = read_text("[" OP("\"a\xff\"", "5", "1") "," OP("\"b\xc3\xa9\"", "6", "1") "]");
	assert_text(ops_trace_string(trace, ops_trace_events(trace)->name[0]), "a\xff");
	assert_note(trace, OPS_NOTE_NOT_UTF8, 1, 1);
	ops_trace_unref(trace);
	trace = read_text("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"k\":\"\xff\t\"}}]");
	assert_text(ops_trace_string(trace, ops_trace_events(trace)->extra[0]), "\"k\":\"\\\\xff\\t\"");
	ops_trace_unref(trace);
}

static void bare_words(void **state)
{
	struct ops_trace *trace = read_text("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":NaN,\"b\":[-Infinity,N/A],\"c\":true}}]");

	(void)state;
	assert_text(ops_trace_string(trace, ops_trace_events(trace)->extra[0]),
	            "\"a\":\"NaN\",\"b\":[\"-Infinity\",\"N/A\"],\"c\":true");
	assert_note(trace, OPS_NOTE_BARE_WORD, 1, 1);
	ops_trace_unref(trace);
	trace = read_text("[{\"ph\":\"X\",\"ts\":1,\"dur\":NaN}]");
	assert_note(trace, OPS_NOTE_BAD_DURATION, 1, 1);
	ops_trace_unref(trace);
	trace = read_text("[{\"ph\":\"X\",\"ts\":N/A,\"dur\":1}]");
	assert_note(trace, OPS_NOTE_BAD_TIME, 1, 1);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	ops_trace_unref(trace);
}

static void impossible_events(void **state)
{
	static const struct {
		const char *event;
		enum ops_note_kind note;
		size_t rows;
	} cases[] = {
		{OP("\"a\"", "1", "-5"), OPS_NOTE_BAD_DURATION, 1},
		{OP("\"a\"", "1e300", "5"), OPS_NOTE_BAD_TIME, 0},
		{OP("\"a\"", "1", "1e300"), OPS_NOTE_BAD_DURATION, 1},
		{OP("\"a\"", "\"1\"", "5"), OPS_NOTE_BAD_TIME, 0},
		{"{\"name\":\"a\"}", OPS_NOTE_NOT_AN_EVENT, 0},
		{"17", OPS_NOTE_NOT_AN_EVENT, 0},
		{"[[1]]", OPS_NOTE_NOT_AN_EVENT, 0},
		{"{\"ph\":\"?\",\"ts\":1}", OPS_NOTE_UNKNOWN_PHASE, 0},
		{"{\"ph\":\"E\",\"ts\":1}", OPS_NOTE_UNMATCHED_END, 0},
		{"{\"ph\":\"e\",\"ts\":1,\"id\":4}", OPS_NOTE_UNMATCHED_END, 0},
		{"{\"ph\":\"B\",\"ts\":1}", OPS_NOTE_UNMATCHED_BEGIN, 1},
		{"{\"ph\":\"b\",\"ts\":1,\"id\":4}", OPS_NOTE_UNMATCHED_BEGIN, 1},
		{"{\"ph\":\"s\",\"ts\":1,\"id\":4}", OPS_NOTE_UNMATCHED_ARROW, 0},
		{"{\"ph\":\"C\",\"ts\":1,\"args\":{\"value\":[]}}", OPS_NOTE_BAD_VALUE, 0},
		{"{\"ph\":\"M\",\"name\":\"nothing\"}", OPS_NOTE_BAD_METADATA, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct ops_trace *trace;
		size_t count;

		snprintf(text, sizeof(text), "[%s]", cases[i].event);
		trace = read_text(text);
		assert_int_equal(ops_trace_events(trace)->count, cases[i].rows);
		assert_int_equal(ops_trace_notes(trace, &count)->kind, cases[i].note);
		assert_int_equal(count, 1);
		ops_trace_unref(trace);
	}
}

/* --- refusals ------------------------------------------------------------------------------------------------------- */

static void refused(void **state)
{
	(void)state;
	assert_refused("", "byte 0: the file is empty");
	assert_refused("hello", "byte 0: not a trace: neither '{' nor '['");
	assert_refused("{}", "byte 2: not a trace: no traceEvents");
	assert_refused("{\"nodes\":[]}", "the file looks like an execution trace");
	assert_refused("[[-1, 1, 512, 7], [5, 2, 64, 0]]", "the file looks like a raw memory timeline");
	assert_refused("[{\"ph\":\"X\",\"cat\":\"devtools.timeline\",\"ts\":1,\"dur\":1}]", "the file looks like a performance profile");
	assert_refused("{\"a\":1", "byte 6: the text ends before the events");
	assert_refused("[{\"ph\":\"X\" \"ts\":1}]", "byte 11: ',' or '}' is expected");
	assert_refused("[{\"ph\";1}]", "byte 6: ':' is expected");
	assert_refused("[{ph:1}]", "byte 2: expected a name in quotes");
	assert_refused("[{\"ph\":=}]", "byte 7: a value is expected");
	assert_refused("[{\"ph\":\"X\"}{\"ph\":\"X\"}]", "byte 11: expected ',' or ']' after an event");
	assert_refused("{\"traceEvents\":[],\"a\":[1}", "byte 24: the bracket does not match");
	assert_refused("[{\"ph\":\"X\",\"ts\":1,\"args\":{\"a\":[1 2]}}]", "byte 1: ',' is expected");
}

static void deep_nesting(void **state)
{
	size_t depth = 1000000;
	char *text = calloc(1, 2 * depth + 100);
	size_t size = (size_t)sprintf(text, "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":");

	(void)state;
	assert_non_null(text);
	memset(text + size, '[', depth);
	memset(text + size + depth, ']', depth);
	strcpy(text + size + 2 * depth, "}}]");
	assert_refused(text, "byte 102: values are nested too deep");
	free(text);
}

static void no_such_file(void **state)
{
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_trace_read("/nowhere/x.json", NULL, &trace, &error), OPS_IO);
	assert_string_equal(error.text, "cannot read trace '/nowhere/x.json': cannot open: no such file or directory");
	assert_int_equal(ops_trace_read("/", NULL, &trace, &error), OPS_IO);
}

static int refuse_to_go_on(void *context, const struct ops_read_progress *progress)
{
	assert_int_equal(progress->bytes, progress->bytes_total);
	assert_int_equal(progress->events, 0);
	*(int *)context += 1;
	return 1;
}

static void can_be_cancelled(void **state)
{
	int calls = 0;
	struct ops_read_options options = {.size = sizeof(options), .progress = refuse_to_go_on, .progress_context = &calls};
	struct ops_trace *trace;

	(void)state;
	assert_int_equal(ops_trace_read_memory(sample, sizeof(sample) - 1, &options, &trace, NULL), OPS_STATE);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_and_times),
		cmocka_unit_test(arguments),
		cmocka_unit_test(tracks_and_links),
		cmocka_unit_test(records_and_metadata),
		cmocka_unit_test(goes_where_traces_go),
		cmocka_unit_test(stream_zero_of_device_zero),
		cmocka_unit_test(bare_array),
		cmocka_unit_test(numbers_of_all_sorts),
		cmocka_unit_test(base_may_come_last),
		cmocka_unit_test(old_inputs),
		cmocka_unit_test(longer_than_the_window),
		cmocka_unit_test(superfluous_commas),
		cmocka_unit_test(truncated),
		cmocka_unit_test(truncated_is_noted),
		cmocka_unit_test(odd_characters),
		cmocka_unit_test(bare_words),
		cmocka_unit_test(impossible_events),
		cmocka_unit_test(refused),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(no_such_file),
		cmocka_unit_test(can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
