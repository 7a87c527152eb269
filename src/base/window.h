/* SPDX-License-Identifier: Apache-2.0
 *
 * A window that moves along a stream of JSON text.
 */
#ifndef OPS_BASE_WINDOW_H
#define OPS_BASE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/source.h"

/* Number of NULs after the text in the window. */
#define OPS_WINDOW_PADDING 64u
/* Maximum size of an event or a piece of metadata. */
#define OPS_WINDOW_VALUE_MAX (64u << 20)

struct ops_window {
	struct ops_source *source;
	char *bytes;
	char *at;        /* current position; everything before it has been processed */
	char *end;
	size_t capacity;
	uint64_t offset; /* position of `bytes` in the text */
	bool last;       /* nothing follows `end` */
};

/* Opens a window. If the source has gzip data, recognised by its first bytes, `*source` becomes the decompressed text, or NULL on
 * failure. */
enum ops_code ops_window_open(struct ops_window *window, struct ops_source **source, struct ops_error *error);
void ops_window_release(struct ops_window *window);
/* Moves the remaining text to the front and appends more, unless it was the last. */
enum ops_code ops_window_more(struct ops_window *window, struct ops_error *error);

static inline uint64_t ops_window_offset(const struct ops_window *window, const char *at)
{
	return window->offset + (uint64_t)(at - window->bytes);
}

#endif
