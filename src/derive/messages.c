/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of messages; see messages.h.
 */
#include "derive/messages.h"

#include <string.h>

#include "base/text.h"
#include "derive/arguments.h"

int64_t ops_type_bytes(struct ops_string name)
{
	static const struct {
		const char *name;
		int64_t bytes;
	} types[] = {{"Double", 8}, {"Long", 8},     {"ComplexFloat", 8}, {"ComplexDouble", 16}, {"ComplexHalf", 4}, {"Float", 4},
	             {"Int", 4},    {"Half", 2},     {"BFloat16", 2},     {"Short", 2},          {"Byte", 1},        {"Char", 1},
	             {"Bool", 1},   {"UInt16", 2},   {"UInt32", 4},       {"UInt64", 8}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (name.size == strlen(types[i].name) && memcmp(name.bytes, types[i].name, name.size) == 0)
			return types[i].bytes;
	return ops_string_starts(name, "Float8_") ? 1 : 0;
}

int64_t ops_message_bytes(const struct ops_trace *trace, uint32_t row)
{
	int64_t elements = ops_argument_integer(trace, row, "In msg nelems", 0), bytes = 0;
	struct ops_string type;

	if (elements <= 0)
		elements = ops_argument_integer(trace, row, "Out msg nelems", 0);
	if (elements <= 0 || !ops_event_arg(trace, row, "dtype", &type))
		return ops_argument_integer(trace, row, "comm_size", 0); /* Chakra's nodes have bytes */
	if (type.size > 2 && type.bytes[0] == '"')
		bytes = ops_type_bytes((struct ops_string){type.bytes + 1, type.size - 2});
	return __builtin_mul_overflow(elements, bytes ? bytes : 1, &bytes) ? 0 : bytes;
}
