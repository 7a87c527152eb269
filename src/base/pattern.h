/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions for untrusted texts and patterns. Patterns are POSIX extended regular expressions over
 * bytes, with the escapes \d \w \s \b (and \D \W \S \B), \t \n \r and groups "(?:…)". There are no back-references.
 *
 * A pattern is compiled to a program of at most OPS_PATTERN_STEPS_MAX instructions. A search follows all alternatives at once, so
 * its time is bounded by program size times text size, and its memory is fixed when the pattern is compiled. Engines that
 * backtrack or build automata during the search, such as regexec(), have neither bound.
 */
#ifndef OPS_BASE_PATTERN_H
#define OPS_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#define OPS_PATTERN_SIZE_MAX 1000  /* bytes in a pattern */
#define OPS_PATTERN_STEPS_MAX 1000 /* instructions in its program, with repetitions expanded */

struct ops_pattern;

/* OPS_INVALID, with a description, for an invalid pattern. */
enum ops_code ops_pattern_new(const char *bytes, size_t size, struct ops_pattern **ret_pattern, struct ops_error *error);
void ops_pattern_free(struct ops_pattern *pattern); /* NULL is allowed */

/* Returns whether the pattern matches anywhere in the text or, with `at_start`, at its beginning. Subtracts the work done from
 * `*steps_left`; if that reaches 0, the search ends without a match. A pattern contains scratch memory, so only one thread at a
 * time may use it. */
bool ops_pattern_find(struct ops_pattern *pattern, const char *bytes, size_t size, bool at_start, uint64_t *steps_left);

#endif
