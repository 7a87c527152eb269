/* SPDX-License-Identifier: Apache-2.0
 *
 * Destinations of written bytes: memory, or a file that is written completely or not at all. ops_sink_close() returns the first
 * error.
 */
#ifndef OPS_BASE_SINK_H
#define OPS_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"

struct ops_sink; /* buffers 256 KiB, which fit into a second-level cache */

/* Opens a file at `path`. Bytes go to a new file in the same directory with a unique name; close renames it. If `path` is a
 * symbolic link, its target is replaced. The mode is that of the old file, or 0666 minus the umask. gzip if
 * `gzip_level` > 0. */
enum ops_code ops_sink_open_file(const char *path, int gzip_level, struct ops_sink **ret_sink, struct ops_error *error);
/* The same; compresses on several threads if `threads` > 1. Then the caller's thread formats while others compress. */
enum ops_code ops_sink_open_gzip(const char *path, int gzip_level, unsigned threads, struct ops_sink **ret_sink,
                                 struct ops_error *error);
/* Opens a sink that appends to `buffer`, which must outlive the sink. */
enum ops_code ops_sink_open_buffer(struct ops_buffer *buffer, struct ops_sink **ret_sink, struct ops_error *error);

/* Returns room for up to OPS_SINK_ROOM bytes, which the caller writes and then counts with ops_sink_advance. Never NULL (after an
 * error the bytes are discarded). */
#define OPS_SINK_ROOM 65536u
char *ops_sink_room(struct ops_sink *sink);
void ops_sink_advance(struct ops_sink *sink, size_t bytes);
void ops_sink_write(struct ops_sink *sink, const void *bytes, size_t size);
/* Replaces bytes that were written before. The sink must be a regular file without compression. */
void ops_sink_rewrite(struct ops_sink *sink, uint64_t offset, const void *bytes, size_t size);
uint64_t ops_sink_total(const struct ops_sink *sink); /* uncompressed bytes so far */
bool ops_sink_failed(const struct ops_sink *sink);    /* whether an error has occurred, so that further writes are useless; close
                                                       * returns it */

/* Flushes to the disk and renames. On any error, including an earlier one, the old file is unchanged and no temporary file
 * remains. */
enum ops_code ops_sink_close(struct ops_sink *sink, struct ops_error *error);
/* Discards the sink and what was written. NULL is allowed. */
void ops_sink_abandon(struct ops_sink *sink);

#endif
