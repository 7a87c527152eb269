/* SPDX-License-Identifier: Apache-2.0
 *
 * See frame_text.h.
 */
#include "read/frame_text.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/text.h"

/* Names in angle brackets belong to code without a file, such as "<frozen importlib._bootstrap>". */
static bool is_python_file(struct ops_string file)
{
	return ops_string_ends(file, ".py") || (ops_string_starts(file, "<") && ops_string_ends(file, ">"));
}

void ops_put_frame(struct ops_buffer *out, struct ops_string file, uint32_t line, struct ops_string name)
{
	bool is_python = is_python_file(file);
	size_t from = out->size;

	if (is_python) {
		ops_buffer_append(out, file.bytes, file.size);
		ops_buffer_printf(out, "(%" PRIu32 "): ", line);
	}
	ops_buffer_append(out, name.bytes, name.size);
	if (!is_python && file.size && line) {
		ops_buffer_append_text(out, " [");
		ops_buffer_append(out, file.bytes, file.size);
		ops_buffer_printf(out, ":%" PRIu32 "]", line);
	}
	for (size_t i = from; i < out->size; i++)
		out->bytes[i] = out->bytes[i] == ';' ? ',' : out->bytes[i];
}
