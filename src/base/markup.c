/* SPDX-License-Identifier: Apache-2.0
 *
 * Escapes text of traces in HTML and SVG; see markup.h.
 */
#include "base/markup.h"

#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "base/utf8.h"

static bool is_control(const char *at, size_t length)
{
	bool shows;

	ops_escape_next(at, at + length, &shows);
	return !shows || (length == 3 && memcmp(at, "\xef\xbf", 2) == 0 && (uint8_t)at[2] >= 0xbe);
}

static void markup_append_bytes(struct ops_buffer *out, const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		ops_buffer_printf(out, "\\x%02x", (uint8_t)at[i]);
}

void ops_markup_append(struct ops_buffer *out, const char *bytes, size_t size, size_t letters)
{
	const char *at = bytes, *end = ops_bytes_end(bytes, size);

	for (size_t n = 0; at < end && n < letters; n++) {
		size_t length = ops_utf8_length(at, end);

		if (length == 0 || is_control(at, length))
			markup_append_bytes(out, at, length ? length : 1);
		else if (*at == '<')
			ops_buffer_append_text(out, "&lt;");
		else if (*at == '>')
			ops_buffer_append_text(out, "&gt;");
		else if (*at == '&')
			ops_buffer_append_text(out, "&amp;");
		else if (*at == '"')
			ops_buffer_append_text(out, "&quot;");
		else if (*at == '\'')
			ops_buffer_append_text(out, "&#39;");
		else
			ops_buffer_append(out, at, length);
		at += length ? length : 1;
	}
	if (at < end)
		ops_buffer_append_text(out, "..");
}
