/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of all formats: opens them, identifies the format by the first bytes, and passes them to its reader.
 */
#include "read/reading.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/fault.h"
#include "base/options.h"
#include "base/protobuf.h"

#define BYTES_MAX (UINT64_C(2) << 30) /* of a file that is kept in memory */

/* Returns whether a pickle begins with the names of a memory snapshot of torch. */
static bool is_memory_snapshot(const char *head, size_t size)
{
	return size && head[0] == '\x80' && (memmem(head, size, "segments", 8) || memmem(head, size, "device_traces", 13));
}

/* Returns whether the file begins with two packets, each preceded by its length as a varint. JSON may also begin with a line feed. */
static bool is_perfetto(const char *head, size_t size)
{
	size_t at = 0;

	while (at < size && strchr(" \t\r\n", head[at]) && head[at])
		at++;
	if (at < size && (head[at] == '{' || head[at] == '['))
		return false;
	at = 0;
	for (int packet = 0; packet < 2; packet++) {
		const char *place = head + at + 1;
		uint64_t length;

		if (at >= size || head[at] != '\n' || !ops_pb_parse_varint(&place, head + size, &length))
			return false;
		at = (size_t)(place - head);
		if (length > size - at)
			return packet > 0;
		at += (size_t)length;
	}
	return true;
}

/* Returns whether a pickle has the names of a dump of torch's flight recorder. */
static bool is_flight_recorder(const char *head, size_t size)
{
	return size && head[0] == '\x80' && memmem(head, size, "profiling_name", 14);
}

static bool is_sqlite(const char *head, size_t size)
{
	return size > 15 && memcmp(head, "SQLite format 3", 15) == 0;
}

static bool is_anything(const char *head, size_t size)
{
	(void)head;
	(void)size;
	return true;
}

/* The first matching format is used. */
static const struct file_format {
	const char *name; /* of its reader */
	bool (*is_format)(const char *head, size_t size);
	enum ops_code (*read)(struct ops_reading *reading, struct ops_trace **ret_trace);
} formats[] = {
	{"recording", ops_is_recording, ops_read_recording},
	{"memory_snapshot", is_memory_snapshot, ops_read_memory_snapshot},
	{"flight_recorder", is_flight_recorder, ops_read_flight_recorder},
	{"xplane", ops_is_xplane, ops_read_xplane},
	{"pprof", ops_is_pprof, ops_read_pprof},
	{"chakra", ops_is_chakra, ops_read_chakra},
	{"pftrace", is_perfetto, ops_read_pftrace},
	{"nsight_systems", is_sqlite, ops_read_nsight_systems},
	{"execution_trace", ops_is_execution_trace, ops_read_execution_trace},
	{"rocprof", ops_is_rocprof, ops_read_rocprof},
	{"speedscope", ops_is_speedscope, ops_read_speedscope},
	{"perf_script", ops_is_perf_script, ops_read_perf_script},
	{"folded", ops_is_folded, ops_read_folded},
	{"kineto", is_anything, ops_read_kineto},
};

enum ops_code ops_reading_more(struct ops_reading *reading)
{
	const struct ops_read_options *options = reading->options;
	struct ops_read_progress progress;
	enum ops_code code;

	if (reading->window.last)
		return OPS_OK;
	code = ops_window_more(&reading->window, reading->error);
	if (code || !options->progress)
		return code;
	progress = (struct ops_read_progress){
		.bytes = __atomic_load_n(&reading->source->done, __ATOMIC_RELAXED),
		.bytes_total = reading->source->total,
		.events = reading->events,
		.notes = ops_builder_note_count(reading->builder),
	};
	return options->progress(options->progress_context, &progress) ? ops_fault(reading->error, OPS_STATE, "cancelled") : OPS_OK;
}

enum ops_code ops_reading_fault(struct ops_reading *reading, const char *at, const char *why)
{
	return ops_fault(reading->error, OPS_CORRUPT, "byte %" PRIu64 ": %s", ops_window_offset(&reading->window, at), why);
}

enum ops_code ops_reading_need(struct ops_reading *reading, size_t size)
{
	struct ops_window *window = &reading->window;
	enum ops_code code = OPS_OK;

	while (!code && (size_t)(window->end - window->at) < size) {
		if (window->last)
			return ops_reading_fault(reading, window->end, "the file ends early");
		code = ops_reading_more(reading);
	}
	return code;
}

enum ops_code ops_reading_all(struct ops_reading *reading, struct ops_buffer *out)
{
	struct ops_window *window = &reading->window;
	enum ops_code code = OPS_OK;

	for (;;) {
		ops_buffer_append(out, window->at, (size_t)(window->end - window->at));
		if (out->failed)
			return ops_fault_memory(reading->error);
		if (out->size > BYTES_MAX)
			return ops_fault(reading->error, OPS_CORRUPT, "byte %" PRIu64 ": more than %" PRIu64 " MiB, which a file of this format cannot have",
			                 BYTES_MAX, BYTES_MAX >> 20);
		window->at = window->end;
		if (window->last)
			return OPS_OK;
		code = ops_reading_more(reading);
		if (code)
			return code;
	}
}

enum ops_code ops_reading_line(struct ops_reading *reading, struct ops_string *ret_line)
{
	struct ops_window *window = &reading->window;
	const char *end;

	*ret_line = (struct ops_string){NULL, 0};
	while (!(end = window->at < window->end ? memchr(window->at, '\n', (size_t)(window->end - window->at)) : NULL) && !window->last) {
		enum ops_code code = ops_reading_more(reading);

		if (code)
			return code;
	}
	if (window->at == window->end)
		return OPS_OK;
	end = end ? end : window->end;
	*ret_line = (struct ops_string){window->at, (size_t)(end - window->at)};
	window->at = (char *)end + (end < window->end);
	if (ret_line->size && ret_line->bytes[ret_line->size - 1] == '\r')
		ret_line->size--;
	return OPS_OK;
}

enum ops_code ops_reading_finish(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct ops_builder *builder = reading->builder;
	uint64_t end = ops_window_offset(&reading->window, reading->window.end);

	if (reading->source->flags & OPS_SOURCE_TRUNCATED)
		ops_builder_notes(builder, OPS_NOTE_GZIP_TRUNCATED, 1, end);
	if (reading->source->flags & OPS_SOURCE_TRAILING)
		ops_builder_notes(builder, OPS_NOTE_GZIP_TRAILING, 1, end);
	reading->builder = NULL;
	return ops_builder_finish(builder, ret_trace, reading->error);
}

static const struct file_format *format_of(const char *head, size_t size)
{
	const struct file_format *format = formats;

	while (!format->is_format(head, size))
		format++;
	return format;
}

bool ops_is_format_but_json(const char *head, size_t size)
{
	return format_of(head, size)->read != ops_read_kineto;
}

const char *ops_format_name(const char *head, size_t size)
{
	return format_of(head, size)->name;
}

static enum ops_code read_with_format(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	const struct ops_window *window = &reading->window;

	return format_of(window->at, (size_t)(window->end - window->at))->read(reading, ret_trace);
}

/* `path` is NULL for data in memory. */
static enum ops_code read_source(struct ops_source *owned_source, const char *path, const struct ops_read_options *options,
                                 struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_reading reading = {.source = owned_source, .path = path, .options = options, .error = error, .builder = ops_builder_new()};
	enum ops_code code = reading.builder ? ops_window_open(&reading.window, &reading.source, error) : ops_fault_memory(error);

	if (!code)
		code = ops_reading_more(&reading);
	if (!code)
		code = read_with_format(&reading, ret_trace);
	ops_builder_free(reading.builder);
	ops_window_release(&reading.window);
	ops_source_close(reading.source);
	return code;
}

enum ops_code ops_trace_read(const char *path, const struct ops_read_options *options, struct ops_trace **ret_trace,
                             struct ops_error *error)
{
	struct ops_read_options given;
	struct ops_source *source;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);

	if (!code)
		code = ops_source_open_file(path, &source, error);
	if (!code)
		code = read_source(source, path, &given, ret_trace, error);
	return code ? ops_fault_context(error, code, "cannot read trace '%s'", path) : OPS_OK;
}

enum ops_code ops_trace_read_memory(const char *bytes, size_t size, const struct ops_read_options *options,
                                    struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_read_options given;
	struct ops_source *source;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);

	if (!code)
		code = ops_source_open_memory(bytes, size, &source, error);
	if (!code)
		code = read_source(source, NULL, &given, ret_trace, error);
	return code ? ops_fault_context(error, code, "cannot read trace") : OPS_OK;
}
