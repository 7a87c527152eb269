/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JSON values, and repairs almost valid ones.
 */
#ifndef OPS_BASE_JSON_VALUE_H
#define OPS_BASE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>

#include "base/buffer.h"

/* Appends a raw string with its escapes decoded. A lone surrogate becomes its three-byte form; an unknown escape is copied. */
void ops_json_decode(struct ops_buffer *out, const char *raw, size_t size);

/* Like ops_json_decode, for a value of a document (json_walk.h). Returns false, and appends nothing, if it is not a string. */
bool ops_json_decode_value(struct ops_buffer *out, struct ops_string value);

/* Parses a decimal number as an integer in units of 10^-scale, rounded. Returns false if it is not a number or is beyond ±limit. */
bool ops_json_decimal(const char *text, size_t size, int scale, int64_t limit, int64_t *ret_value);

/* Appends `size` bytes of JSON in valid form: one value or, with `members`, the members of an object without its braces. Removes
 * white space and superfluous commas, quotes bare words, and converts strings to UTF-8. Returns NULL, or what is wrong with the
 * value. The depth is bounded. `ret_words`, if not NULL, is set if there was a bare word. */
const char *ops_json_clean(struct ops_buffer *out, const char *text, size_t size, bool members, bool *ret_words);

#endif
