/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol buffers. To write a message, append its fields to a buffer; an embedded message is built in a separate buffer first,
 * since its size precedes it. To read a message, iterate over its fields:
 *
 *     struct ops_pb_message message = {bytes, bytes + size};
 *     struct ops_pb_field field;
 *     while (ops_pb_next(&message, &field)) …
 *     if (message.malformed) …
 */
#ifndef OPS_BASE_PROTOBUF_H
#define OPS_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <opstrobe/common.h>

#include "base/buffer.h"
#include "base/text.h"

enum { OPS_PB_VARINT = 0, OPS_PB_FIXED64 = 1, OPS_PB_BYTES = 2, OPS_PB_FIXED32 = 5 };

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

struct ops_pb_message {
	const char *at;
	const char *end;
	bool malformed;
};

struct ops_pb_field {
	uint32_t number;
	uint32_t type;           /* OPS_PB_* */
	uint64_t value;          /* of numbers; the bits of a double */
	struct ops_string bytes; /* for OPS_PB_BYTES, borrowed; else empty */
};

/* Returns false at the end, and if the varint does not end within ten bytes or within the message. */
static inline bool ops_pb_parse_varint(const char **at, const char *end, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
		uint8_t byte = (uint8_t)*(*at)++;

		*ret_value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static inline bool ops_pb_parse_fixed(struct ops_pb_message *message, size_t size, uint64_t *ret_value)
{
	*ret_value = 0;
	if ((size_t)(message->end - message->at) < size)
		return false;
	for (size_t i = 0; i < size; i++)
		*ret_value |= (uint64_t)(uint8_t)message->at[i] << 8 * i;
	message->at += size;
	return true;
}

/* Reads the next field. Returns false at the end, or if the message is malformed. */
static inline bool ops_pb_next(struct ops_pb_message *message, struct ops_pb_field *ret_field)
{
	uint64_t key, size;
	bool whole;

	if (message->at == message->end)
		return false;
	whole = ops_pb_parse_varint(&message->at, message->end, &key) && key >> 3 && key >> 3 <= UINT32_MAX;
	*ret_field = (struct ops_pb_field){.number = (uint32_t)(key >> 3), .type = key & 7, .bytes = {"", 0}};
	if (whole && ret_field->type == OPS_PB_VARINT) {
		whole = ops_pb_parse_varint(&message->at, message->end, &ret_field->value);
	} else if (whole && ret_field->type == OPS_PB_BYTES) {
		whole = ops_pb_parse_varint(&message->at, message->end, &size) && size <= (uint64_t)(message->end - message->at);
		ret_field->bytes = (struct ops_string){message->at, whole ? (size_t)size : 0};
		message->at += ret_field->bytes.size;
	} else if (whole) {
		whole = (ret_field->type == OPS_PB_FIXED64 && ops_pb_parse_fixed(message, 8, &ret_field->value)) ||
		        (ret_field->type == OPS_PB_FIXED32 && ops_pb_parse_fixed(message, 4, &ret_field->value));
	}
	message->malformed = !whole;
	return whole;
}

static inline struct ops_pb_message ops_pb_inside(const struct ops_pb_field *field)
{
	return (struct ops_pb_message){.at = field->bytes.bytes, .end = ops_string_end(field->bytes)};
}

static inline double ops_pb_double_of(const struct ops_pb_field *field)
{
	double value;

	memcpy(&value, &field->value, sizeof(value));
	return value;
}

#endif
