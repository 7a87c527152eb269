/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a file: numbers, times and strings.
 */
#include "read/kineto.h"

#include "base/text.h"
#include "base/utf8.h"

bool kineto_integer(const struct ops_json_member *value, int64_t *ret_value)
{
	const char *at = value->value, *end = ops_bytes_end(value->value, value->value_size);
	bool negative = at < end && *at == '-';
	uint64_t number = 0;

	at += negative;
	if (value->type != OPS_JSON_NUMBER || at == end || end - at > 18)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	*ret_value = negative ? -(int64_t)number : (int64_t)number;
	return true;
}

/* Most times have at most three decimals; others take the slow path. */
bool kineto_time(const struct ops_json_member *value, int64_t *ret_ns)
{
	static const uint16_t scales[] = {1000, 100, 10, 1};
	const char *at = value->value, *end = ops_bytes_end(value->value, value->value_size);
	const char *point;
	bool negative = at < end && *at == '-';
	uint64_t number = 0;

	at += negative;
	point = at;
	if (value->type != OPS_JSON_NUMBER)
		return false;
	if (at < end && end - at <= 19 && *at >= '0' && *at <= '9') {
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			number = number * 10 + (uint64_t)(*at - '0');
		point = at;
		if (at < end && *at == '.' && end - at <= 4)
			for (at++; at < end && *at >= '0' && *at <= '9'; at++)
				number = number * 10 + (uint64_t)(*at - '0');
		if (at == end && number <= (uint64_t)KINETO_TIME_MAX / 1000) {
			number *= scales[end > point ? end - point - 1 : 0];
			*ret_ns = negative ? -(int64_t)number : (int64_t)number;
			return true;
		}
	}
	return ops_json_decimal(value->value, value->value_size, 3, KINETO_TIME_MAX, ret_ns);
}

void kineto_note_text(struct kineto_reader *reader, const struct ops_json_member *value)
{
	if (value->flags & OPS_JSON_CONTROL)
		kineto_note(reader, OPS_NOTE_CONTROL_CHARACTER);
	if ((value->flags & OPS_JSON_HIGH) && !ops_utf8_valid(value->value, value->value_size))
		kineto_note(reader, OPS_NOTE_NOT_UTF8);
}

uint32_t kineto_string(struct kineto_reader *reader, const struct ops_json_member *value)
{
	if (!(value->flags & OPS_JSON_ESCAPED))
		return ops_builder_string(reader->builder, value->value, value->value_size);
	reader->scratch.size = 0;
	ops_json_decode(&reader->scratch, value->value, value->value_size);
	return ops_builder_string(reader->builder, reader->scratch.bytes, reader->scratch.size);
}
