/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on the memory and the CPU time of one piece of work, such as the answer to a request. It applies to the thread that
 * does the work: beyond it every allocation (base/alloc.h) fails, and the work ends as if out of memory.
 *
 *     struct ops_limit limit = {.bytes_max = 1 << 30, .cpu_ns_max = 60000000000};
 *     ops_limit_begin(&limit);
 *     …
 *     ops_limit_end();
 *     if (limit.reached) …
 */
#ifndef OPS_BASE_LIMIT_H
#define OPS_BASE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ops_limit_kind { OPS_LIMIT_NONE, OPS_LIMIT_MEMORY, OPS_LIMIT_TIME };

struct ops_limit {
	uint64_t bytes_max;  /* limit of bytes allocated by the work and not freed */
	uint64_t cpu_ns_max;
	enum ops_limit_kind reached; /* never cleared once set */
	uint64_t bytes;      /* bytes that count against bytes_max */
	uint64_t start_ns;   /* CPU time of the thread at the start */
	unsigned unchecked;  /* iterations until the coarse clock is read again */
	uint64_t next_ns;    /* of that clock: when the CPU time is read again */
};

/* Applies a limit to the calling thread until ops_limit_end(). Limits do not nest. */
void ops_limit_begin(struct ops_limit *limit);
void ops_limit_end(void);

/* Returns whether the thread has a limit that is reached. For loops that do not allocate; most calls take about a nanosecond. */
bool ops_limit_reached(void);

/* For base/alloc.c: whether the thread may allocate that many more bytes, and notifications of allocated and freed bytes. */
bool ops_limit_allows(size_t bytes);
void ops_limit_add(size_t bytes);
void ops_limit_subtract(size_t bytes);

/* Whether any thread of the process has ever had a limit. */
extern bool ops_limits_in_use;

#endif
