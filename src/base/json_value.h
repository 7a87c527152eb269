/* SPDX-License-Identifier: Apache-2.0
 *
 * What JSON values mean, and what they should have looked like.
 */
#ifndef OPS_BASE_JSON_VALUE_H
#define OPS_BASE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Appends a raw string with its escapes decoded. A lone surrogate becomes its three-byte form; an unknown escape is copied. */
void ops_json_decode(struct ops_buffer *out, const char *raw, size_t size);

/* A decimal number as a whole number of 10^-scale, rounded; false when it is none or beyond ±limit. */
bool ops_json_decimal(const char *text, size_t size, int scale, int64_t limit, int64_t *ret_value);

/* Appends `size` bytes of JSON as it should be: one value, or (members) those of an object without the braces. White space
 * and commas too many go, bare words are quoted, strings become UTF-8. NULL, or what is wrong with it. The depth is
 * bounded. `ret_words`, if not NULL, is set when a bare word was met. */
const char *ops_json_clean(struct ops_buffer *out, const char *text, size_t size, bool members, bool *ret_words);

#endif
