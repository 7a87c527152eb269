/* SPDX-License-Identifier: Apache-2.0
 *
 * Short names; see short_name.h.
 */
#include "analyze/compare/short_name.h"

#include <string.h>

#include "analyze/events/event_table.h"
#include "base/text.h"

static bool is_template(struct ops_string name)
{
	static const char *const copies[] = {"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		if (ops_string_starts(name, copies[i]))
			return false;
	return ops_string_contains(name, "<") || ops_string_contains(name, "(");
}

/* A closing bracket removes everything back to its opening bracket, or everything if there is none. */
static void drop_brackets(struct ops_string name, struct ops_buffer *out)
{
	for (size_t i = 0; i < name.size; i++) {
		char c = name.bytes[i];

		if (c == '-' && i + 1 < name.size && name.bytes[i + 1] == '>')
			i++;
		else if (c == '>' || c == ')')
			while (out->size && out->bytes[--out->size] != (c == '>' ? '<' : '('))
				continue;
		else
			ops_buffer_append(out, &c, 1);
	}
}

void short_name(struct ops_string name, struct ops_buffer *out)
{
	const char *space;

	out->size = 0;
	if (!is_template(name)) {
		ops_buffer_append(out, name.bytes, name.size);
		return;
	}
	drop_brackets(name, out);
	space = out->size ? memrchr(out->bytes, ' ', out->size) : NULL;
	if (space) {
		size_t left = (size_t)(out->bytes + out->size - (space + 1));

		memmove(out->bytes, space + 1, left);
		out->size = left;
	}
}

void readable_name(struct ops_string name, struct ops_buffer *out)
{
	size_t left = 0;

	short_name(name, out);
	for (size_t i = 0; i < out->size; i++) {
		bool scope = out->size - i >= 2 && !memcmp(out->bytes + i, "::", 2);

		if (scope && (!left || (left >= 2 && !memcmp(out->bytes + left - 2, "::", 2))))
			i++;
		else
			out->bytes[left++] = out->bytes[i];
	}
	out->size = left;
}
