/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles of XLA (`*.xplane.pb` of JAX, TensorFlow and PyTorch/XLA; xplane.proto of OpenXLA): an XSpace has planes, a plane is a
 * host or a device, its lines are threads, streams or summaries of them, and a line has events. Names of events and of their
 * values (stats) are in tables of the plane, which come after its lines. So the complete file is read first, and then converted
 * to Chrome JSON line by line (transcode.h).
 *
 *     /device:GPU:0   Stream #14(Compute)   kernels, copies and fills
 *                     XLA Modules, Steps    annotations: they summarize the streams
 *     /device:TPU:0   XLA Ops               kernels; one that contains others, such as a loop, is an annotation
 *     /host:CPU       a line per thread     operators (events with hlo_op), calls of CUDA, Python functions, annotations
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "read/frame_text.h"
#include "read/transcode.h"

#define HOST_PID 1000000 /* of the first host plane without a process id; differs from all device numbers */

enum { SPACE_PLANE = 1, SPACE_HOST_NAME = 4 };
enum { PLANE_NAME = 2, PLANE_LINE = 3, PLANE_EVENT_NAME = 4, PLANE_STAT_NAME = 5, PLANE_STAT = 6 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 }; /* fields of a map entry */
enum { LINE_ID = 1, LINE_NAME = 2, LINE_START_NS = 3, LINE_EVENT = 4, LINE_DISPLAY_NAME = 11 };
enum { XEVENT_NAME = 1, XEVENT_OFFSET_PS = 2, XEVENT_DURATION_PS = 3, XEVENT_STAT = 4, XEVENT_OCCURRENCES = 5 };
enum { NAME_TEXT = 2, NAME_DISPLAY = 4, NAME_STAT = 5 }; /* fields of the metadata of an event or, for the first one only, a stat */
enum { STAT_NAME = 1, STAT_DOUBLE = 2, STAT_UINT = 3, STAT_INT = 4, STAT_TEXT = 5, STAT_BYTES = 6, STAT_REFERENCE = 7 };

struct xevent {
	int64_t start_ns;
	int64_t duration_ns;
	uint64_t name;
	struct ops_pb_message message;
	bool is_instant;
	bool has_inner; /* contains another event of its line */
};

struct plane {
	struct ops_string name;
	struct ops_pb_message lines; /* the remaining fields */
	struct ops_map event_names;  /* id → index in `messages` */
	struct ops_map stat_names;
	OPS_ARRAY(struct ops_pb_message) messages;
	int64_t pid;
	uint32_t line_count; /* number so far */
	bool is_device;
	bool has_streams;
};

struct line {
	struct ops_string name;
	int64_t tid;
	bool has_work; /* its events are device work, not a summary of it */
	OPS_ARRAY(struct xevent) events;
	size_t next;
};

struct xplane {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_reading *in;
	struct ops_buffer bytes; /* the file */
	struct ops_pb_message planes; /* the remaining fields */
	struct plane plane;
	struct line line;
	struct ops_buffer properties; /* deviceProperties */
	struct ops_string host_name;
	int64_t base_ns; /* origin of times relative to the profile's start */
	uint32_t hosts;
	uint32_t devices;
	bool has_rows;
	bool has_ended;
};

/* Facts about an event that are needed before its arguments are written. */
struct xevent_facts {
	const char *category;
	struct ops_string step; /* number of the step; "": not a step */
	bool is_operator;
	bool has_correlation;
};

static enum ops_code xplane_fault(const struct xplane *x, const char *at, const char *why)
{
	return ops_fault(x->in->error, OPS_CORRUPT, "byte %zu: %s", (size_t)(at - x->bytes.bytes), why);
}

/* --- stats ---------------------------------------------------------------------------------------------------------- */

struct stat {
	struct ops_string name;
	struct ops_pb_field value; /* number 0: none */
};

static struct ops_string text_in(struct ops_pb_message message, uint32_t number)
{
	struct ops_string found = {"", 0};
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field))
		if (field.number == number && field.type == OPS_PB_BYTES)
			found = field.bytes;
	return found;
}

/* Returns an entry of a table of names; an empty message if there is none. */
static struct ops_pb_message named(const struct plane *plane, const struct ops_map *names, uint64_t id)
{
	uint32_t place = ops_map_find(names, id);

	return place == OPS_NONE ? (struct ops_pb_message){0} : plane->messages.items[place];
}

static struct stat read_stat(const struct plane *plane, const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field);
	struct stat stat = {.name = {"", 0}};
	struct ops_pb_field part;

	while (ops_pb_next(&inside, &part)) {
		if (part.number == STAT_NAME)
			stat.name = text_in(named(plane, &plane->stat_names, part.value), NAME_TEXT);
		else if (part.number <= STAT_REFERENCE)
			stat.value = part;
	}
	if (stat.value.number == STAT_REFERENCE)
		stat.value.bytes = text_in(named(plane, &plane->stat_names, stat.value.value), NAME_TEXT);
	return stat;
}

static bool stat_is_text(const struct stat *stat)
{
	return (stat->value.number == STAT_TEXT && stat->value.type == OPS_PB_BYTES) || stat->value.number == STAT_REFERENCE;
}

static bool stat_is_integer(const struct stat *stat)
{
	return (stat->value.number == STAT_UINT || stat->value.number == STAT_INT) && stat->value.type == OPS_PB_VARINT;
}

/* Appends the value as JSON. */
static void put_stat_value(struct ops_buffer *out, const struct stat *stat)
{
	char number[40];

	if (stat_is_text(stat))
		ops_json_string(out, stat->value.bytes.bytes, stat->value.bytes.size);
	else if (stat->value.number == STAT_DOUBLE)
		ops_buffer_append(out, number, (size_t)(ops_json_double_to(number, ops_pb_double_of(&stat->value)) - number));
	else if (stat->value.number == STAT_INT)
		ops_buffer_append_int(out, (int64_t)stat->value.value);
	else
		ops_buffer_printf(out, "%" PRIu64, stat->value.value);
}

/* Parses the numbers after a word of a text such as "regs:32 grid:8,4,1". Returns their number. */
static int numbers_of(struct ops_string text, const char *word, uint64_t *ret_numbers, int most)
{
	const char *at = memmem(text.bytes, text.size, word, strlen(word)), *end = text.bytes + text.size;
	int count = 0;

	for (at = at ? at + strlen(word) : end; at < end && count < most && *at >= '0' && *at <= '9'; count++) {
		ret_numbers[count] = 0;
		for (; at < end && *at >= '0' && *at <= '9' && ret_numbers[count] < UINT32_MAX; at++)
			ret_numbers[count] = ret_numbers[count] * 10 + (uint64_t)(*at - '0');
		at += at < end && *at == ',';
	}
	return count;
}

/* Writes XLA's description of a launch, a single text, as Kineto's arguments. */
static void put_kernel_details(struct ops_buffer *out, struct ops_string text)
{
	static const struct {
		const char *word;
		const char *key;
	} sizes[] = {{"grid:", "grid"}, {"block:", "block"}};
	uint64_t n[3], dynamic = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (numbers_of(text, sizes[i].word, n, 3) == 3)
			ops_buffer_printf(out, ",\"%s\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", sizes[i].key, n[0], n[1], n[2]);
	if (numbers_of(text, "regs:", n, 1))
		ops_buffer_printf(out, ",\"registers per thread\":%" PRIu64, n[0]);
	if (numbers_of(text, "static_shared:", n, 1)) {
		numbers_of(text, "dynamic_shared:", &dynamic, 1);
		ops_buffer_printf(out, ",\"shared memory\":%" PRIu64, n[0] + dynamic);
	}
}

/* Names that begin with '_' are for XProf only. */
static void put_stat(struct ops_buffer *out, const struct stat *stat)
{
	uint64_t bytes;

	if (!stat->value.number || !stat->name.size || stat->name.bytes[0] == '_' ||
	    (stat->value.number == STAT_BYTES && stat->value.type == OPS_PB_BYTES))
		return;
	if (ops_string_is(stat->name, "kernel_details") && stat_is_text(stat)) {
		put_kernel_details(out, stat->value.bytes);
		return;
	}
	if (ops_string_is(stat->name, "memcpy_details") && stat_is_text(stat) && numbers_of(stat->value.bytes, "size:", &bytes, 1))
		ops_buffer_printf(out, ",\"bytes\":%" PRIu64, bytes);
	ops_buffer_append_text(out, ",");
	if (ops_string_is(stat->name, "correlation_id"))
		ops_buffer_append_text(out, "\"correlation\"");
	else
		ops_json_string(out, stat->name.bytes, stat->name.size);
	ops_buffer_append_text(out, ":");
	put_stat_value(out, stat);
}

/* --- events --------------------------------------------------------------------------------------------------------- */

static void xplane_begin_row(struct xplane *x, struct ops_buffer *out, const char *phase)
{
	ops_buffer_printf(out, "%s{\"ph\":\"%s\"", x->has_rows ? ",\n" : "{\"traceEvents\":[", phase);
	x->has_rows = true;
}

/* Appends the stats of a message as arguments. */
static void put_stats(const struct xplane *x, struct ops_buffer *out, struct ops_pb_message message, uint32_t number)
{
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field)) {
		struct stat stat;

		if (field.number != number || field.type != OPS_PB_BYTES)
			continue;
		stat = read_stat(&x->plane, &field);
		put_stat(out, &stat);
	}
}

static const char *device_category(struct ops_string name)
{
	if (ops_string_starts(name, "Memcpy") || ops_string_starts(name, "memcpy"))
		return "gpu_memcpy";
	return ops_string_starts(name, "Memset") || ops_string_starts(name, "memset") ? "gpu_memset" : "kernel";
}

static struct xevent_facts facts_of(const struct xplane *x, const struct xevent *event, struct ops_string name, char step[24])
{
	struct xevent_facts facts = {.category = "user_annotation", .step = {"", 0}};
	struct ops_pb_message message = event->message;
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field)) {
		struct stat stat;

		if (field.number != XEVENT_STAT || field.type != OPS_PB_BYTES)
			continue;
		stat = read_stat(&x->plane, &field);
		facts.is_operator |= ops_string_is(stat.name, "hlo_op") || ops_string_is(stat.name, "tf_op");
		facts.has_correlation |= ops_string_is(stat.name, "correlation_id");
		if (ops_string_is(stat.name, "step_num") && stat_is_integer(&stat) && stat.value.value <= INT64_MAX)
			facts.step = (struct ops_string){step, (size_t)snprintf(step, 24, "%" PRIu64, stat.value.value)};
	}
	if (x->plane.is_device)
		facts.category = x->line.has_work && !event->has_inner ? device_category(name) : "gpu_user_annotation";
	else if (ops_string_starts(name, "$"))
		facts.category = "python_function";
	else if (facts.is_operator)
		facts.category = "cpu_op";
	else if (facts.has_correlation && ops_string_starts(name, "cu"))
		facts.category = ops_string_starts(name, "cuda") ? "cuda_runtime" : "cuda_driver";
	return facts;
}

/* Converts "$train.py:12 step" of the Python tracer to the frame "train.py(12): step". */
static void put_python_name(struct ops_buffer *out, struct ops_string name)
{
	const char *start = name.bytes + 1, *end = name.bytes + name.size, *space = memchr(start, ' ', (size_t)(end - start)), *colon;
	struct ops_buffer frame = {0};
	uint64_t line = 0;

	colon = space ? memrchr(start, ':', (size_t)(space - start)) : NULL;
	if (colon && numbers_of((struct ops_string){colon, (size_t)(space - colon)}, ":", &line, 1) && line < INT32_MAX)
		ops_put_frame(&frame, (struct ops_string){start, (size_t)(colon - start)}, (uint32_t)line,
		              (struct ops_string){space + 1, (size_t)(end - space - 1)});
	else
		ops_put_frame(&frame, (struct ops_string){"", 0}, 0, (struct ops_string){start, (size_t)(end - start)});
	ops_put_text_member(out, "name", (struct ops_string){ops_buffer_text(&frame), frame.size});
	out->failed |= frame.failed;
	ops_buffer_release(&frame);
}

static void put_event_name(struct ops_buffer *out, const struct xevent_facts *facts, struct ops_string name)
{
	if (facts->step.size)
		ops_buffer_printf(out, ",\"name\":\"ProfilerStep#%s\"", facts->step.bytes);
	else if (strcmp(facts->category, "python_function") == 0)
		put_python_name(out, name);
	else
		ops_put_text_member(out, "name", name);
}

static void put_xevent(struct xplane *x, const struct xevent *event, struct ops_buffer *out)
{
	struct ops_pb_message about = named(&x->plane, &x->plane.event_names, event->name);
	struct ops_string name = text_in(about, NAME_TEXT), display = text_in(about, NAME_DISPLAY);
	struct ops_string shown = display.size ? display : name;
	char step[24];
	struct xevent_facts facts = facts_of(x, event, shown, step);

	xplane_begin_row(x, out, event->is_instant ? "i" : "X");
	put_event_name(out, &facts, shown);
	ops_buffer_printf(out, ",\"cat\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, facts.category, x->plane.pid, x->line.tid);
	ops_put_time_member(out, "ts", x->base_ns + event->start_ns);
	if (event->is_instant)
		ops_buffer_append_text(out, ",\"s\":\"t\"");
	else
		ops_put_time_member(out, "dur", event->duration_ns);
	ops_buffer_append_text(out, ",\"args\":{\"line\":");
	ops_json_string(out, x->line.name.bytes, x->line.name.size);
	if (x->plane.is_device)
		ops_buffer_printf(out, ",\"device\":%" PRId64 ",\"stream\":%" PRId64, x->plane.pid, x->line.tid);
	if (facts.step.size)
		ops_put_text_member(out, "annotation", shown);
	if (display.size && !ops_string_equals(display, name))
		ops_put_text_member(out, "long_name", name);
	put_stats(x, out, event->message, XEVENT_STAT);
	put_stats(x, out, about, NAME_STAT);
	ops_buffer_append_text(out, "}}");
	x->in->events++;
}

/* --- lines ---------------------------------------------------------------------------------------------------------- */

/* Reads an event of the line that begins at `start_ns`; adds a note if its time is not usable. */
static enum ops_code read_xevent(struct xplane *x, const struct ops_pb_field *field, int64_t start_ns)
{
	struct ops_pb_message message = ops_pb_inside(field);
	struct xevent event = {.message = message, .is_instant = true};
	struct ops_pb_field part;
	int64_t offset_ps = 0, duration_ps = 0;
	bool is_summary = false;

	while (ops_pb_next(&message, &part)) {
		if (part.number == XEVENT_NAME)
			event.name = part.value;
		else if (part.number == XEVENT_OFFSET_PS)
			offset_ps = (int64_t)part.value;
		else if (part.number == XEVENT_DURATION_PS)
			duration_ps = (int64_t)part.value;
		is_summary |= part.number == XEVENT_OCCURRENCES;
		event.is_instant &= part.number != XEVENT_DURATION_PS;
	}
	if (message.malformed)
		return xplane_fault(x, message.at, "malformed XEvent");
	event.is_instant &= !x->plane.is_device;
	event.duration_ns = duration_ps > 0 ? duration_ps / 1000 : 0;
	if (duration_ps < 0)
		ops_builder_notes(x->in->builder, OPS_NOTE_BAD_DURATION, 1, (uint64_t)(field->bytes.bytes - x->bytes.bytes));
	if (is_summary || __builtin_add_overflow(start_ns, offset_ps / 1000, &event.start_ns) || event.start_ns < 0 ||
	    event.start_ns > OPS_TIME_MAX_NS) {
		ops_builder_notes(x->in->builder, OPS_NOTE_BAD_TIME, 1, (uint64_t)(field->bytes.bytes - x->bytes.bytes));
		return OPS_OK;
	}
	return OPS_ARRAY_APPEND(&x->line.events, event) ? OPS_OK : ops_fault_memory(x->in->error);
}

static int compare_xevents(const void *a, const void *b)
{
	const struct xevent *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->duration_ns != right->duration_ns)
		return left->duration_ns > right->duration_ns ? -1 : 1;
	return left->message.at < right->message.at ? -1 : 1;
}

/* Parses the stream's number in "Stream #14(Compute)". Returns false for another name. */
static bool parse_stream(struct ops_string name, int64_t *ret_stream)
{
	uint64_t number;

	if (!ops_string_starts(name, "Stream #") || !numbers_of(name, "#", &number, 1))
		return false;
	*ret_stream = (int64_t)number;
	return true;
}

static void put_line_name(struct xplane *x, struct ops_buffer *out)
{
	xplane_begin_row(x, out, "M");
	ops_buffer_printf(out, ",\"name\":\"thread_name\",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"args\":{", x->plane.pid, x->line.tid);
	ops_put_text_member(out, "name", x->line.name);
	ops_buffer_append_text(out, "}}");
}

static enum ops_code read_line(struct xplane *x, const struct ops_pb_field *field, struct ops_buffer *out)
{
	struct ops_pb_message message = ops_pb_inside(field), events = message;
	struct ops_string name = text_in(message, LINE_NAME), display = text_in(message, LINE_DISPLAY_NAME);
	enum ops_code code = OPS_OK;
	struct ops_pb_field part;
	int64_t start_ns = 0, id = 0;

	x->line.events.count = x->line.next = 0;
	x->line.name = display.size ? display : name;
	x->plane.line_count++;
	while (ops_pb_next(&message, &part)) {
		if (part.number == LINE_START_NS)
			start_ns = (int64_t)part.value;
		else if (part.number == LINE_ID)
			id = (int64_t)part.value;
	}
	if (message.malformed)
		return xplane_fault(x, message.at, "malformed XLine");
	x->line.tid = id > 0 && id <= INT32_MAX ? id : x->plane.line_count; /* ids of threads are hashes */
	x->line.has_work = x->plane.is_device && parse_stream(name, &x->line.tid);
	x->line.has_work |= x->plane.is_device && !x->plane.has_streams && ops_string_is(name, "XLA Ops");
	while (!code && ops_pb_next(&events, &part))
		if (part.number == LINE_EVENT && part.type == OPS_PB_BYTES)
			code = read_xevent(x, &part, start_ns);
	if (code)
		return code;
	OPS_ARRAY_SORT(&x->line.events, compare_xevents);
	for (size_t i = 0; i + 1 < x->line.events.count; i++) {
		struct xevent *event = &x->line.events.items[i];

		event->has_inner = event[1].start_ns < event->start_ns + event->duration_ns;
	}
	put_line_name(x, out);
	return OPS_OK;
}

/* --- planes --------------------------------------------------------------------------------------------------------- */

static void release_plane(struct plane *plane)
{
	ops_map_release(&plane->event_names);
	ops_map_release(&plane->stat_names);
	OPS_ARRAY_RELEASE(&plane->messages);
	*plane = (struct plane){.name = {"", 0}};
}

/* Adds an entry of one of the tables of names, which are maps. */
static bool add_name(struct plane *plane, struct ops_map *names, const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field), value = {0};
	struct ops_pb_field part;
	uint64_t id = 0;

	while (ops_pb_next(&inside, &part)) {
		if (part.number == ENTRY_KEY)
			id = part.value;
		else if (part.number == ENTRY_VALUE && part.type == OPS_PB_BYTES)
			value = ops_pb_inside(&part);
	}
	return ops_map_add(names, id, (uint32_t)plane->messages.count) && OPS_ARRAY_APPEND(&plane->messages, value);
}

static bool is_stream_line(const struct ops_pb_field *field)
{
	int64_t stream;

	return parse_stream(text_in(ops_pb_inside(field), LINE_NAME), &stream);
}

/* Devices are numbered as in the names of their planes: "/device:GPU:3". */
static int64_t device_of(const struct xplane *x, struct ops_string name)
{
	const char *colon = memrchr(name.bytes, ':', name.size);
	uint64_t number;

	if (colon && numbers_of((struct ops_string){colon, (size_t)(name.bytes + name.size - colon)}, ":", &number, 1))
		return (int64_t)(number & INT16_MAX);
	return x->devices;
}

/* Reads everything of a plane except its lines. */
static enum ops_code open_plane(struct xplane *x, struct ops_pb_message message)
{
	struct ops_pb_field field;
	bool done = true;

	release_plane(&x->plane);
	x->plane.lines = message;
	while (done && ops_pb_next(&message, &field)) {
		if (field.type != OPS_PB_BYTES)
			continue;
		if (field.number == PLANE_NAME)
			x->plane.name = field.bytes;
		else if (field.number == PLANE_EVENT_NAME)
			done = add_name(&x->plane, &x->plane.event_names, &field);
		else if (field.number == PLANE_STAT_NAME)
			done = add_name(&x->plane, &x->plane.stat_names, &field);
		else if (field.number == PLANE_LINE)
			x->plane.has_streams |= is_stream_line(&field);
	}
	if (!done)
		return ops_fault_memory(x->in->error);
	return message.malformed ? xplane_fault(x, message.at, "malformed XPlane") : OPS_OK;
}

/* Finds a numeric stat of a plane. Returns false if there is none. */
static bool plane_number(const struct xplane *x, const char *name, int64_t *ret_value)
{
	struct ops_pb_message message = x->plane.lines;
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field)) {
		struct stat stat;

		if (field.number != PLANE_STAT || field.type != OPS_PB_BYTES)
			continue;
		stat = read_stat(&x->plane, &field);
		if (!ops_string_is(stat.name, name) || !stat_is_integer(&stat))
			continue;
		*ret_value = (int64_t)stat.value.value;
		return *ret_value >= 0 && *ret_value <= OPS_TIME_MAX_NS;
	}
	return false;
}

/* Writes what CUDA reports about a device under Kineto's names. */
static void put_device_properties(struct xplane *x)
{
	static const struct {
		const char *stat;
		const char *key;
	} known[] = {{"memory_size", "totalGlobalMem"}, {"compute_cap_major", "computeMajor"}, {"compute_cap_minor", "computeMinor"},
	             {"core_count", "numSms"}};
	int64_t number;

	ops_buffer_printf(&x->properties, "%s{\"id\":%" PRId64, x->properties.size ? "," : "", x->plane.pid);
	ops_put_text_member(&x->properties, "name", x->plane.name);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (plane_number(x, known[i].stat, &number))
			ops_buffer_printf(&x->properties, ",\"%s\":%" PRId64, known[i].key, number);
	ops_buffer_append_text(&x->properties, "}");
}

static void begin_plane(struct xplane *x, struct ops_buffer *out)
{
	x->plane.is_device = ops_string_starts(x->plane.name, "/device:") && !ops_string_starts(x->plane.name, "/device:CUSTOM");
	if (x->plane.is_device) {
		x->plane.pid = device_of(x, x->plane.name);
		x->devices++;
		put_device_properties(x);
	} else {
		if (!plane_number(x, "process_id", &x->plane.pid) || x->plane.pid > INT32_MAX)
			x->plane.pid = HOST_PID + x->hosts;
		x->hosts++;
	}
	xplane_begin_row(x, out, "M");
	ops_buffer_printf(out, ",\"name\":\"process_name\",\"pid\":%" PRId64 ",\"args\":{", x->plane.pid);
	ops_put_text_member(out, "name", x->plane.name);
	ops_buffer_append_text(out, "}}");
}

/* Returns whether the plane has any line; metadata planes have none. */
static bool has_lines(const struct plane *plane)
{
	struct ops_pb_message message = plane->lines;
	struct ops_pb_field field;

	while (ops_pb_next(&message, &field))
		if (field.number == PLANE_LINE && field.type == OPS_PB_BYTES)
			return true;
	return false;
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

/* Returns the start of the first line; INT64_MAX if there is none. */
static int64_t first_line_ns(const struct xplane *x)
{
	struct ops_pb_message plane = x->plane.lines;
	struct ops_pb_field field, part;
	int64_t first_ns = INT64_MAX;

	while (ops_pb_next(&plane, &field)) {
		struct ops_pb_message line = ops_pb_inside(&field);

		while (field.number == PLANE_LINE && ops_pb_next(&line, &part))
			if (part.number == LINE_START_NS && (int64_t)part.value < first_ns)
				first_ns = (int64_t)part.value;
	}
	return first_ns;
}

/* Reads all planes once to check whether the file is complete, and to find the origin of times. Times in profiles from before
 * 2022 are relative to 1970, in later ones to the start in the plane "Task Environment". */
static enum ops_code survey_planes(struct xplane *x)
{
	struct ops_pb_message space = {x->bytes.bytes, x->bytes.bytes + x->bytes.size, false};
	int64_t started_ns = 0, first_ns = INT64_MAX;
	enum ops_code code = OPS_OK;
	struct ops_pb_field field;
	const char *at = space.at;

	x->planes = space;
	for (; !code && ops_pb_next(&space, &field); at = space.at) {
		if (field.number == SPACE_HOST_NAME && field.type == OPS_PB_BYTES)
			x->host_name = field.bytes;
		if (field.number != SPACE_PLANE || field.type != OPS_PB_BYTES)
			continue;
		code = open_plane(x, ops_pb_inside(&field));
		if (!code && first_line_ns(x) < first_ns)
			first_ns = first_line_ns(x);
		if (!code)
			plane_number(x, "profile_start_time", &started_ns);
	}
	if (code)
		return code;
	x->base_ns = first_ns < started_ns ? started_ns : 0;
	x->planes.end = at; /* a truncated plane has no names, so it is left out */
	if (space.malformed && at == x->planes.at)
		return xplane_fault(x, x->bytes.bytes + x->bytes.size, "the file ends early, in its first plane");
	if (space.malformed)
		ops_builder_notes(x->in->builder, OPS_NOTE_TRUNCATED, 1, (uint64_t)(at - x->bytes.bytes));
	return OPS_OK;
}

static void put_document_end(struct xplane *x, struct ops_buffer *out)
{
	ops_buffer_append_text(out, x->has_rows ? "]" : "{\"traceEvents\":[]");
	if (x->host_name.size)
		ops_put_text_member(out, "host_name", x->host_name);
	ops_buffer_append_text(out, ",\"deviceProperties\":[");
	ops_buffer_append(out, ops_buffer_text(&x->properties), x->properties.size);
	ops_buffer_append_text(out, "]}");
	out->failed |= x->properties.failed;
	x->has_ended = true;
}

/* Converts one step: an event, the next line, or the next plane. */
static enum ops_code xplane_step(struct xplane *x, struct ops_buffer *out)
{
	struct ops_pb_field field;
	enum ops_code code = OPS_OK;

	if (x->line.next < x->line.events.count) {
		put_xevent(x, &x->line.events.items[x->line.next++], out);
	} else if (ops_pb_next(&x->plane.lines, &field)) {
		if (field.number == PLANE_LINE && field.type == OPS_PB_BYTES)
			code = read_line(x, &field, out);
	} else if (ops_pb_next(&x->planes, &field)) {
		if (field.number == SPACE_PLANE && field.type == OPS_PB_BYTES)
			code = open_plane(x, ops_pb_inside(&field));
		if (!code && field.number == SPACE_PLANE && has_lines(&x->plane))
			begin_plane(x, out);
	} else {
		put_document_end(x, out);
	}
	return code;
}

static enum ops_code xplane_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct xplane *x = (struct xplane *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && !x->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES)
		code = xplane_step(x, text);
	return code;
}

/* The first field is a plane, which begins with its name, perhaps after its id. */
bool ops_is_xplane(const char *head, size_t size)
{
	struct ops_pb_message message = {head, head + size, false};
	uint64_t length, ignored;

	if (!size || *message.at++ != (SPACE_PLANE << 3 | OPS_PB_BYTES) || !ops_pb_parse_varint(&message.at, message.end, &length))
		return false;
	if (message.at < message.end && *message.at == (1 << 3 | OPS_PB_VARINT)) {
		message.at++;
		if (!ops_pb_parse_varint(&message.at, message.end, &ignored))
			return false;
	}
	if (message.at == message.end || *message.at++ != (PLANE_NAME << 3 | OPS_PB_BYTES) ||
	    !ops_pb_parse_varint(&message.at, message.end, &length) || !length || length > (uint64_t)(message.end - message.at))
		return false;
	for (uint64_t i = 0; i < length; i++)
		if (message.at[i] < ' ')
			return false;
	return true;
}

enum ops_code ops_read_xplane(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct xplane x = {.transcoder = {xplane_next}, .in = reading, .host_name = {"", 0}};
	enum ops_code code = ops_reading_all(reading, &x.bytes);

	if (!code)
		code = survey_planes(&x);
	release_plane(&x.plane);
	if (!code)
		code = ops_read_transcoded(reading, &x.transcoder, ret_trace);
	release_plane(&x.plane);
	OPS_ARRAY_RELEASE(&x.line.events);
	ops_buffer_release(&x.properties);
	ops_buffer_release(&x.bytes);
	return code;
}
