/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of traces in HTML and SVG.
 */
#ifndef OPS_BASE_MARKUP_H
#define OPS_BASE_MARKUP_H

#include "base/buffer.h"

/* At most `letters` characters of a text that may hold any bytes, with ".." behind when there are more: for between tags and
 * in quotes. What is no UTF-8, and what XML has no place for, is spelled out ("\x1b"). */
void ops_markup_append(struct ops_buffer *out, const char *bytes, size_t size, size_t letters);

#endif
