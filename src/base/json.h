/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON text: escaping, numbers, and a validator. Any bytes of a string become JSON that every reader accepts, without loss:
 * control characters, quotes and backslashes are escaped; UTF-8 is copied. Bytes that JSON cannot represent are written as with
 * Python's "backslashreplace": an encoded surrogate (a Python string's lone surrogate) as the six characters \ud800, an invalid
 * UTF-8 byte as the four characters \xff. Escapes of lone surrogates would be valid syntax, but strict readers reject the text
 * because of one, and Perfetto hangs.
 */
#ifndef OPS_BASE_JSON_H
#define OPS_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"

/* Maximum number of bytes for one byte of a string. */
#define OPS_JSON_EXPANSION 6

/* Writes the string with its quotes to `out`, which has room for size * OPS_JSON_EXPANSION + 2; returns the end. */
char *ops_json_string_to(char *out, const char *bytes, size_t size);
void ops_json_string(struct ops_buffer *buffer, const char *bytes, size_t size);

/* Writes a decimal integer, at most 20 bytes. */
char *ops_json_int_to(char *out, int64_t value);
char *ops_json_uint_to(char *out, uint64_t value);
/* Writes nanoseconds as microseconds with exactly three decimals ("12.345", "-0.001"), at most 24 bytes. */
char *ops_json_us_to(char *out, int64_t ns);
/* Writes the shortest text that reads back as the same double; infinities and NaN, which JSON lacks, as null. At most 32 bytes. */
char *ops_json_double_to(char *out, double value);

/* Returns OPS_OK if the text is exactly one JSON value, with optional white space around it; else OPS_INVALID, naming the byte.
 * The depth is limited to 256. */
enum ops_code ops_json_validate(const char *text, size_t size, struct ops_error *error);

#endif
