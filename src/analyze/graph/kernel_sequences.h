/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of the kernels that operators launched, and the operators of each pattern.
 */
#ifndef OPS_ANALYZE_KERNEL_SEQUENCES_H
#define OPS_ANALYZE_KERNEL_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "analyze/events/event_table.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/intern.h"

/* Operators of one name that launched the same sequence of kernels. */
struct kernel_pattern {
	const uint32_t *names; /* string ids: of the operator, then of the kernels */
	size_t length;
	uint64_t count;
	int64_t kernels_ns;
	int64_t operators_ns;
};

/* An operator or a kernel, with its pattern. */
struct kernel_member {
	uint32_t row;
	uint32_t pattern;
};

struct kernel_sequences {
	const struct event_table *table;
	OPS_ARRAY(struct kernel_pattern) patterns; /* most frequent first */
	OPS_ARRAY(struct kernel_member) members;
	struct ops_intern keys;
};

/* Finds the sequences of the operators whose name contains `part`, at the smallest depth where there are any, with at
 * least `min_kernels` kernels. Returns false if out of memory. The caller must release it in any case. Takes O(n log
 * n). */
bool kernel_sequences_init(struct kernel_sequences *sequences, const struct event_table *table, struct ops_string part,
                           uint64_t min_kernels);
void kernel_sequences_release(struct kernel_sequences *sequences);
/* Appends the names, separated by '|'. */
void kernel_pattern_text(const struct kernel_sequences *sequences, const struct kernel_pattern *pattern,
                         struct ops_buffer *out);

#endif
