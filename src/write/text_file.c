/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a text to a file.
 */
#include <opstrobe/internal/write.h>

#include "base/sink.h"

enum ops_code ops_write_text(const char *text, size_t size, const char *path, struct ops_error *error)
{
	struct ops_sink *sink;
	enum ops_code code = ops_sink_open_file(path, 0, &sink, error);

	if (code)
		return code;
	ops_sink_write(sink, text, size);
	return ops_sink_close(sink, error);
}
