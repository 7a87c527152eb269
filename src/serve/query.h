/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the target of an HTTP request ("/api/v1/traces/4f0c…/views?parts=steps"). The input may be any bytes;
 * the result is decoded, contains no NUL, and no segment is empty, "." or "..".
 */
#ifndef OPS_SERVE_QUERY_H
#define OPS_SERVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>

#define QUERY_TARGET_MAX 16384
#define QUERY_SEGMENTS_MAX 8
#define QUERY_PARAMETERS_MAX 16

struct query {
	char *text; /* contains all following texts, each followed by a NUL */
	struct ops_string segments[QUERY_SEGMENTS_MAX];
	size_t segment_count;
	struct {
		struct ops_string name;
		struct ops_string value;
	} parameters[QUERY_PARAMETERS_MAX];
	size_t parameter_count;
};

/* OPS_INVALID for an invalid target, OPS_NO_MEMORY. The query must be released even on failure. */
enum ops_code query_parse(struct query *query, const char *target, struct ops_error *error);
void query_release(struct query *query);

/* Returns a parameter's value; NULL if the parameter is absent. */
const struct ops_string *query_find(const struct query *query, const char *name);
/* Returns whether the segment equals that text. */
bool query_segment_is(const struct query *query, size_t segment, const char *text);

/* Parses a decimal number. `*ret_value` is unchanged if the parameter is absent; OPS_INVALID names it if it is not a number
 * from `least` to `most`. */
enum ops_code query_integer(const struct query *query, const char *name, int64_t least, int64_t most, int64_t *ret_value,
                            struct ops_error *error);
/* Parse a list of at most `room` numbers joined by commas; errors as in query_integer. */
enum ops_code query_numbers(const struct query *query, const char *name, uint32_t *ret_numbers, size_t room,
                            size_t *ret_count, struct ops_error *error);
/* Parses a number at the start of a text and moves past it. Returns false if there is none, or if it does not fit. */
bool query_parse_number(const char **at, uint64_t most, uint64_t *ret_number);

#endif
