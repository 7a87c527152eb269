/* SPDX-License-Identifier: Apache-2.0
 *
 * Telling UTF-8 from other bytes.
 */
#ifndef OPS_BASE_UTF8_H
#define OPS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length (1 to 4) of the well-formed sequence that starts at `at`, before `end`; 0 when none does: a stray or missing
 * continuation byte, an overlong form, a surrogate, a code point past U+10FFFF. */
size_t ops_utf8_length(const char *at, const char *end);

/* The bytes of what stands at `at`, before `end`, and counts as one character: a well-formed sequence, a surrogate that was
 * encoded like one, as Python can, or a byte of neither. */
size_t ops_utf8_step(const char *at, const char *end);

/* Whether the bytes are nothing but well-formed sequences. */
bool ops_utf8_valid(const char *bytes, size_t size);

#endif
