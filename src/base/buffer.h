/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes for text in the making. Failure is sticky: after an allocation failed every append is ignored
 * and `failed` stays true, so that a caller checks once at the end.
 */
#ifndef OPS_BASE_BUFFER_H
#define OPS_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

struct ops_buffer {
	char *bytes;
	size_t size;
	size_t capacity;
	bool failed;
};

void ops_buffer_release(struct ops_buffer *buffer);
/* Room for `extra` more bytes at bytes + size; NULL when memory is out. The caller raises `size`. */
char *ops_buffer_room(struct ops_buffer *buffer, size_t extra);
/* What is in it, `size` bytes; "" while that is nothing. */
static inline const char *ops_buffer_text(const struct ops_buffer *buffer)
{
	return buffer->size ? buffer->bytes : "";
}
void ops_buffer_append(struct ops_buffer *buffer, const void *bytes, size_t size);
void ops_buffer_append_text(struct ops_buffer *buffer, const char *text);
void ops_buffer_append_int(struct ops_buffer *buffer, int64_t value);
__attribute__((format(printf, 2, 3))) void ops_buffer_printf(struct ops_buffer *buffer, const char *format, ...);

/* The end of a function that makes a text: hands what is in the buffer to the caller, with a NUL behind that `*ret_size` does
 * not count, to be freed with ops_free. With a `code` whose error is set already, or when the buffer failed (OPS_NO_MEMORY),
 * the buffer is released and what is returned says why. */
enum ops_code ops_buffer_give(struct ops_buffer *take_buffer, enum ops_code code, char **ret_text, size_t *ret_size,
                              struct ops_error *error);

#endif
