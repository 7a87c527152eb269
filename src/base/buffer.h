/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable sequence of bytes, for building text. Failure is sticky: after a failed allocation all appends are ignored and
 * `failed` stays true, so that a caller checks once at the end.
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
/* Returns room for `extra` more bytes at bytes + size, or NULL if out of memory. The caller increases `size`. */
char *ops_buffer_room(struct ops_buffer *buffer, size_t extra);
/* Returns the contents, `size` bytes; "" if empty. */
static inline const char *ops_buffer_text(const struct ops_buffer *buffer)
{
	return buffer->size ? buffer->bytes : "";
}
void ops_buffer_append(struct ops_buffer *buffer, const void *bytes, size_t size);
void ops_buffer_append_text(struct ops_buffer *buffer, const char *text);
void ops_buffer_append_int(struct ops_buffer *buffer, int64_t value);
__attribute__((format(printf, 2, 3))) void ops_buffer_printf(struct ops_buffer *buffer, const char *format, ...);

/* The end of a function that builds a text: transfers the contents to the caller, who frees them with ops_free. A NUL that
 * `*ret_size` does not count follows them. If `code` is an error, which `error` describes already, or if the buffer failed
 * (OPS_NO_MEMORY), releases the buffer and returns the error. */
enum ops_code ops_buffer_detach(struct ops_buffer *buffer, enum ops_code code, char **ret_text, size_t *ret_size,
                              struct ops_error *error);

#endif
