/* SPDX-License-Identifier: Apache-2.0
 *
 * A file while it is read: the bytes that stream by, and the trace that is made of them. read.c opens it and chooses the reader
 * of its format; a reader is one function, a line in the table there.
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
	struct ops_source *source; /* of what is in the window */
	struct ops_window window;  /* decompressed */
	const char *path;          /* for what reads a file by itself; NULL: there is none */
	struct ops_builder *builder; /* NULL once it has become a trace */
	const struct ops_read_options *options;
	struct ops_error *error;
	uint64_t events; /* so far, for who watches progress */
};

/* Reads more bytes after the rest of the window, unless it has the last. OPS_STATE if the progress callback cancels. */
enum ops_code ops_reading_more(struct ops_reading *reading);
/* Makes sure that the window has `size` more bytes. OPS_CORRUPT when the file ends before. */
enum ops_code ops_reading_need(struct ops_reading *reading, size_t size);
/* Moves all that is left of the file into the buffer. OPS_CORRUPT when it is more than `most` bytes. */
enum ops_code ops_reading_all(struct ops_reading *reading, uint64_t most, struct ops_buffer *out);
/* The next line, without its end, in the window until the next call; its bytes are NULL at the end of the file. */
enum ops_code ops_reading_line(struct ops_reading *reading, struct ops_string *ret_line);
/* OPS_CORRUPT: what is at this place of the window is wrong, and why. */
enum ops_code ops_reading_fault(struct ops_reading *reading, const char *at, const char *why);
/* Makes the trace, whose rows and information are in the builder. */
enum ops_code ops_reading_finish(struct ops_reading *reading, struct ops_trace **ret_trace);

/* Whether a file that begins so has a format that is read, and is not JSON. */
bool ops_is_format_but_json(const char *head, size_t size);

/* Formats. The window has the first bytes of the file. */
enum ops_code ops_read_flight_recorder(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_folded(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_kineto(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_memory_snapshot(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_nsight_systems(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_perf_script(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_pftrace(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_pprof(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_speedscope(struct ops_reading *reading, struct ops_trace **ret_trace);
enum ops_code ops_read_xplane(struct ops_reading *reading, struct ops_trace **ret_trace);

/* Whether a file that begins so has a format; of those whose files do not begin with a mark. */
bool ops_is_folded(const char *head, size_t size);
bool ops_is_perf_script(const char *head, size_t size);
bool ops_is_pprof(const char *head, size_t size);
bool ops_is_speedscope(const char *head, size_t size);
bool ops_is_xplane(const char *head, size_t size);

#endif
