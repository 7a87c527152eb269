/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable byte buffers; see buffer.h.
 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"

#define CAPACITY_MIN 256u

void ops_buffer_release(struct ops_buffer *buffer)
{
	ops_free(buffer->bytes);
	*buffer = (struct ops_buffer){0};
}

char *ops_buffer_room(struct ops_buffer *buffer, size_t extra)
{
	size_t need;
	size_t capacity;
	char *bytes;

	if (buffer->failed)
		return NULL;
	if (buffer->bytes && extra <= buffer->capacity - buffer->size)
		return buffer->bytes + buffer->size;
	if (__builtin_add_overflow(buffer->size, extra, &need)) {
		buffer->failed = true;
		return NULL;
	}
	capacity = buffer->capacity <= SIZE_MAX / 2 ? buffer->capacity * 2 : need;
	if (capacity < need)
		capacity = need;
	if (capacity < CAPACITY_MIN)
		capacity = CAPACITY_MIN;
	bytes = ops_realloc_array(buffer->bytes, capacity, 1);
	if (!bytes) {
		buffer->failed = true;
		return NULL;
	}
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return bytes + buffer->size;
}

void ops_buffer_append(struct ops_buffer *buffer, const void *bytes, size_t size)
{
	char *room = ops_buffer_room(buffer, size);

	if (!room || size == 0)
		return;
	memcpy(room, bytes, size);
	buffer->size += size;
}

void ops_buffer_append_text(struct ops_buffer *buffer, const char *text)
{
	ops_buffer_append(buffer, text, strlen(text));
}

void ops_buffer_append_int(struct ops_buffer *buffer, int64_t value)
{
	char *room = ops_buffer_room(buffer, 20);

	if (room)
		buffer->size = (size_t)(ops_json_int_to(room, value) - buffer->bytes);
}

void ops_buffer_printf(struct ops_buffer *buffer, const char *format, ...)
{
	va_list arguments;
	va_list again;
	int length;
	char *room;

	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	room = length < 0 ? NULL : ops_buffer_room(buffer, (size_t)length + 1);
	if (room) {
		vsnprintf(room, (size_t)length + 1, format, again);
		buffer->size += (size_t)length;
	} else {
		buffer->failed = true;
	}
	va_end(again);
}

enum ops_code ops_buffer_detach(struct ops_buffer *buffer, enum ops_code code, char **ret_text, size_t *ret_size,
                              struct ops_error *error)
{
	ops_buffer_append(buffer, "", 1);
	if (!code && buffer->failed)
		code = ops_fault_memory(error);
	if (code) {
		ops_buffer_release(buffer);
		return code;
	}
	*ret_text = buffer->bytes;
	*ret_size = buffer->size - 1;
	*buffer = (struct ops_buffer){0};
	return OPS_OK;
}
