/* SPDX-License-Identifier: Apache-2.0
 *
 * Distinguishes UTF-8 from other bytes.
 */
#ifndef OPS_BASE_UTF8_H
#define OPS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length (1 to 4) of the well-formed sequence that starts at `at`, before `end`. Returns 0 if there is none: a stray
 * or missing continuation byte, an overlong form, a surrogate, a code point past U+10FFFF. */
size_t ops_utf8_length(const char *at, const char *end);

/* Returns the size of the character at `at`, before `end`: a well-formed sequence, an encoded surrogate (which Python can
 * produce), or a single other byte. */
size_t ops_utf8_step(const char *at, const char *end);

/* Returns whether the bytes consist only of well-formed sequences. */
bool ops_utf8_valid(const char *bytes, size_t size);

#endif
