/* SPDX-License-Identifier: Apache-2.0
 *
 * A file while it is read: the stream of bytes, and the trace that is built from them. read.c opens it and selects the reader of
 * its format. A reader is one function, with a line in the table there.
 */
#ifndef OPS_READ_READING_H
#define OPS_READ_READING_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/read.h>

#include "base/buffer.h"
#include "base/source.h"
#include "base/window.h"
#include "trace/builder.h"

struct ops_reading {
	struct ops_source *source; /* the source of the window */
	struct ops_window window;  /* decompressed */
	const char *path;          /* for readers that open the file themselves; NULL: none */
	struct ops_builder *builder; /* NULL once it has become a trace */
	const struct ops_read_options *options;
	struct ops_error *error;
	uint64_t events; /* number so far, for progress */
};

/* Reads more bytes into the window, unless it has the last ones. OPS_STATE if the progress callback cancels. */
enum ops_code ops_reading_more(struct ops_reading *reading);
/* Ensures that the window has `size` more bytes. OPS_CORRUPT if the file ends before. */
enum ops_code ops_reading_need(struct ops_reading *reading, size_t size);
/* Moves the rest of the file into the buffer. OPS_CORRUPT if it is more than 2 GiB, the maximum size of a protocol buffer. */
enum ops_code ops_reading_all(struct ops_reading *reading, struct ops_buffer *out);
/* Returns the next line, without its end, valid until the next call; its bytes are NULL at the end of the file. */
enum ops_code ops_reading_line(struct ops_reading *reading, struct ops_string *ret_line);
/* Returns OPS_CORRUPT, with this position of the window and the reason. */
enum ops_code ops_reading_fault(struct ops_reading *reading, const char *at, const char *why);
/* Builds the trace, whose rows and information are in the builder. */
enum ops_code ops_reading_finish(struct ops_reading *reading, struct ops_trace **ret_trace);

/* Returns whether a file with this beginning has a supported format other than JSON. */
bool ops_is_format_but_json(const char *head, size_t size);
/* Returns the name of the reader for a file with this beginning, such as "kineto"; never NULL. */
const char *ops_format_name(const char *head, size_t size);

/* Readers of formats. The window has the first bytes of the file. */
enum ops_code ops_read_chakra(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_execution_trace(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_flight_recorder(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_folded(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_kineto(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_memory_snapshot(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_nsight_systems(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_perf_script(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_pftrace(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_pprof(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_recording(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_rocprof(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_speedscope(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_xplane(struct ops_reading *reading, struct ops_trace **ret_trace);

/* Return whether a file with this beginning has a format; for formats whose files have no mark. */
bool ops_is_chakra(const char *head, size_t size);
bool ops_is_execution_trace(const char *head, size_t size);
bool ops_is_folded(const char *head, size_t size);
bool ops_is_perf_script(const char *head, size_t size);
bool ops_is_pprof(const char *head, size_t size);
bool ops_is_recording(const char *head, size_t size);
bool ops_is_rocprof(const char *head, size_t size);
bool ops_is_speedscope(const char *head, size_t size);
bool ops_is_xplane(const char *head, size_t size);

#endif
