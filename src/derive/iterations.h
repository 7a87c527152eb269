/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations of servers of language models: passes of vLLM and SGLang through their model (docs/reference/definitions.md).
 *
 *     schedule   ├──────────── execute_model ───────────┤  sample_tokens   update
 *                ├─────────────── iteration ───────────────────────────┤
 */
#ifndef OPS_DERIVE_ITERATIONS_H
#define OPS_DERIVE_ITERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intervals.h"

enum ops_iteration_kind {
	OPS_ITERATION_NONE,    /* a step that is not an iteration */
	OPS_ITERATION_PREFILL, /* only prompts */
	OPS_ITERATION_DECODE,  /* only sequences whose prompts have been processed */
	OPS_ITERATION_MIXED,   /* both */
	OPS_ITERATION_IDLE,    /* no sequences: the pass only takes part in collectives */
	OPS_ITERATION_UNKNOWN, /* the trace does not show the kind */
	OPS_ITERATION_KIND_COUNT
};

struct ops_iteration {
	int64_t start_ns, end_ns;
	int64_t number; /* number in its process, from 0 */
	uint32_t track;
	uint8_t kind; /* enum ops_iteration_kind */
};

/* Zero-initialised is empty. */
struct ops_iterations {
	OPS_ARRAY(struct ops_iteration) list; /* in order of rows; those of one process in order of time */
};

/* Returns false if out of memory. The caller must release the iterations in any case. */
bool ops_iterations_find(struct ops_iterations *iterations, const struct ops_trace *trace);
/* Appends the times of functions in which a server warms up or captures graphs. Returns false if out of memory. */
bool ops_iterations_add_warm_ups(const struct ops_trace *trace, struct ops_intervals *times);
void ops_iterations_release(struct ops_iterations *iterations);

/* Returns "prefill", "decode", "mixed", "idle" or "unknown", "" for OPS_ITERATION_NONE; a static string. */
const char *ops_iteration_kind_name(enum ops_iteration_kind kind);

/* Returns the kind indicated by the name of a range; OPS_ITERATION_NONE if it does not belong to an iteration. For
 * tests. */
enum ops_iteration_kind ops_iteration_kind_of_name(struct ops_string name);

#endif
