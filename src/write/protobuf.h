/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol buffers, as far as writing them goes: fields appended to a buffer. A message inside another is made in a buffer
 * of its own first, since its size stands before it.
 */
#ifndef OPS_WRITE_PROTOBUF_H
#define OPS_WRITE_PROTOBUF_H

#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

enum { OPS_PB_VARINT = 0, OPS_PB_FIXED64 = 1, OPS_PB_BYTES = 2 };

static inline void ops_pb_varint(struct ops_buffer *out, uint64_t value)
{
	char bytes[10];
	size_t size = 0;

	while (value >= 0x80) {
		bytes[size++] = (char)(value | 0x80);
		value >>= 7;
	}
	bytes[size++] = (char)value;
	ops_buffer_append(out, bytes, size);
}

static inline void ops_pb_uint(struct ops_buffer *out, uint32_t field, uint64_t value)
{
	ops_pb_varint(out, field << 3 | OPS_PB_VARINT);
	ops_pb_varint(out, value);
}

static inline void ops_pb_fixed64(struct ops_buffer *out, uint32_t field, uint64_t value)
{
	char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(value >> 8 * i);
	ops_pb_varint(out, field << 3 | OPS_PB_FIXED64);
	ops_buffer_append(out, bytes, sizeof(bytes));
}

static inline void ops_pb_double(struct ops_buffer *out, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	ops_pb_fixed64(out, field, bits);
}

static inline void ops_pb_bytes(struct ops_buffer *out, uint32_t field, const char *bytes, size_t size)
{
	ops_pb_varint(out, field << 3 | OPS_PB_BYTES);
	ops_pb_varint(out, size);
	ops_buffer_append(out, bytes, size);
}

static inline void ops_pb_text(struct ops_buffer *out, uint32_t field, const char *text)
{
	ops_pb_bytes(out, field, text, strlen(text));
}

/* Appends the message and empties its buffer. */
static inline void ops_pb_message(struct ops_buffer *out, uint32_t field, struct ops_buffer *message)
{
	ops_pb_bytes(out, field, message->bytes, message->size);
	out->failed |= message->failed;
	message->size = 0;
}

#endif
