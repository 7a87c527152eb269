/* SPDX-License-Identifier: Apache-2.0
 *
 * Which functions are the program's, and which calls only pass on to others.
 */
#ifndef OPS_DERIVE_PROGRAM_H
#define OPS_DERIVE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/program.h>
#include <opstrobe/trace.h>

/* Code that torch.compile wrote. */
bool ops_file_is_generated(struct ops_string file);

/* Calls of library functions that only pass on to one other call, and what else they call.
 *
 *     Net.forward                          Net.forward
 *      └ _wrapped_call_impl        wrapper  └ Linear
 *         └ _call_impl             wrapper
 *            ├ _get_tracing_state  inside
 *            └ Linear
 */
struct ops_wrappers {
	uint32_t *into; /* by row: the call that a wrapper, or what it also calls, leads to; OPS_NONE for all others */
	size_t count;   /* rows that have one; `into` is NULL if there are none */
};

/* Kept with the trace; NULL when memory is out. */
const struct ops_wrappers *ops_wrappers_of(const struct ops_trace *trace);

#endif
