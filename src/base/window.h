/* SPDX-License-Identifier: Apache-2.0
 *
 * A window that moves along JSON text as it streams by.
 */
#ifndef OPS_BASE_WINDOW_H
#define OPS_BASE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/source.h"

/* Behind the text in the window there are this many NULs. */
#define OPS_WINDOW_PADDING 64u
/* No event and no piece of metadata is longer than this. */
#define OPS_WINDOW_VALUE_MAX (64u << 20)

struct ops_window {
	struct ops_source *source;
	char *bytes;
	char *at;        /* what comes before is done with */
	char *end;
	size_t capacity;
	uint64_t offset; /* of `bytes` in the text */
	bool last;       /* nothing comes after `end` */
};

/* For gzip data, which is recognised by its first bytes and not by a name, `*source` becomes the text decompressed, or NULL on failure. */
enum ops_code ops_window_open(struct ops_window *window, struct ops_source **source, struct ops_error *error);
void ops_window_release(struct ops_window *window);
/* Moves the remaining text to the front and appends more, unless this was the last. */
enum ops_code ops_window_more(struct ops_window *window, struct ops_error *error);

static inline uint64_t ops_window_offset(const struct ops_window *window, const char *at)
{
	return window->offset + (uint64_t)(at - window->bytes);
}

#endif
