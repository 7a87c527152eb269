/* SPDX-License-Identifier: Apache-2.0
 *
 * A window that moves along JSON text; see window.h.
 */
#include "base/window.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"

#define WINDOW_BYTES (512u << 10)

/* Inserts a decompressor, which runs in a separate thread, before a source of compressed data whose first bytes are in the window. */
static enum ops_code window_decompress(struct ops_window *window, struct ops_source **source, struct ops_error *error)
{
	struct ops_source *inner;
	bool compressed;
	enum ops_code code = ops_source_decompress(source, window->bytes, (size_t)(window->end - window->bytes), &compressed,
	                                           error);

	if (compressed) {
		window->end = window->bytes;
		inner = *source;
		*source = NULL;
		if (!code)
			code = ops_source_open_ahead(inner, source, error);
		window->source = *source;
	}
	return code;
}

enum ops_code ops_window_open(struct ops_window *window, struct ops_source **source, struct ops_error *error)
{
	enum ops_code code = OPS_OK;
	size_t size = 0, got = 1;

	*window = (struct ops_window){.source = *source, .capacity = WINDOW_BYTES};
	window->bytes = window->at = window->end = ops_alloc(WINDOW_BYTES + OPS_WINDOW_PADDING);
	if (!window->bytes)
		return ops_fault_memory(error);
	memset(window->bytes, 0, OPS_WINDOW_PADDING);
	while (!code && got && size < 4) {
		code = ops_source_read(*source, window->bytes + size, 4 - size, &got, error);
		size += got;
	}
	window->end += size;
	return code ? code : window_decompress(window, source, error);
}

void ops_window_release(struct ops_window *window)
{
	ops_free(window->bytes);
	*window = (struct ops_window){0};
}

/* Doubles the window if the remaining bytes fill more than half of it. */
static enum ops_code window_grow(struct ops_window *window, struct ops_error *error)
{
	size_t left = (size_t)(window->end - window->at);
	char *grown;

	if (left <= window->capacity / 2)
		return OPS_OK;
	if (window->capacity >= OPS_WINDOW_VALUE_MAX)
		return ops_fault(error, OPS_CORRUPT, "byte %llu: a value of more than %u MiB",
		                 (unsigned long long)ops_window_offset(window, window->at), OPS_WINDOW_VALUE_MAX >> 20);
	grown = ops_realloc_array(window->bytes, window->capacity * 2 + OPS_WINDOW_PADDING, 1);
	if (!grown)
		return ops_fault_memory(error);
	window->bytes = window->at = grown;
	window->end = grown + left;
	window->capacity *= 2;
	return OPS_OK;
}

enum ops_code ops_window_more(struct ops_window *window, struct ops_error *error)
{
	size_t left = (size_t)(window->end - window->at);
	enum ops_code code;
	size_t size = 1;

	window->offset += (uint64_t)(window->at - window->bytes);
	memmove(window->bytes, window->at, left);
	window->at = window->bytes;
	window->end = window->bytes + left;
	code = window_grow(window, error);
	while (!code && size && window->end < window->bytes + window->capacity) {
		code = ops_source_read(window->source, window->end,
		                       (size_t)(window->bytes + window->capacity - window->end), &size, error);
		if (!code)
			window->end += size;
	}
	if (!code) {
		window->last = size == 0;
		memset(window->end, 0, OPS_WINDOW_PADDING);
	}
	return code;
}
