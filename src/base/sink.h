/* SPDX-License-Identifier: Apache-2.0
 *
 * Where written bytes go: a file made whole or not at all, plain or gzip, or memory. Errors are sticky and told by close.
 */
#ifndef OPS_BASE_SINK_H
#define OPS_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"

struct ops_sink; /* stages 256 KiB, which fit a second-level cache */

/* A file at `path`, written to a fresh file beside it (same directory, unique name) and renamed by close. A symbolic link
 * keeps being one: its target is replaced. The mode is that of the old file, or 0666 less the umask. gzip when
 * `gzip_level` > 0. */
enum ops_code ops_sink_open_file(const char *path, int gzip_level, struct ops_sink **ret_sink, struct ops_error *error);
/* Appends to `buffer`, which outlives the sink. */
enum ops_code ops_sink_open_buffer(struct ops_buffer *buffer, struct ops_sink **ret_sink, struct ops_error *error);

/* Room for up to OPS_SINK_ROOM bytes, to be written and then counted with ops_sink_advance; never NULL (after an error
 * the bytes go nowhere). */
#define OPS_SINK_ROOM 65536u
char *ops_sink_room(struct ops_sink *sink);
void ops_sink_advance(struct ops_sink *sink, size_t bytes);
void ops_sink_write(struct ops_sink *sink, const void *bytes, size_t size);
uint64_t ops_sink_total(const struct ops_sink *sink); /* uncompressed bytes so far */
bool ops_sink_failed(const struct ops_sink *sink);    /* whether going on is in vain; close tells why */

/* Flushes, syncs nothing, renames. On error, also an earlier one, the old file is as it was and no file is left beside. */
enum ops_code ops_sink_close(struct ops_sink *sink, struct ops_error *error);
/* Gives up: as if never opened. NULL is allowed. */
void ops_sink_abandon(struct ops_sink *sink);

#endif
