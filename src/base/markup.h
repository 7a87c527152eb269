/* SPDX-License-Identifier: Apache-2.0
 *
 * Escapes text of traces in HTML and SVG.
 */
#ifndef OPS_BASE_MARKUP_H
#define OPS_BASE_MARKUP_H

#include "base/buffer.h"

/* Appends at most `letters` characters of a text that may contain any bytes, followed by ".." if there are more. For use between
 * tags and in quotes. Invalid UTF-8 and characters that XML does not allow are spelled out ("\x1b"). */
void ops_markup_append(struct ops_buffer *out, const char *bytes, size_t size, size_t letters);

#endif
