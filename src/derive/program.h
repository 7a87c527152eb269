/* SPDX-License-Identifier: Apache-2.0
 *
 * Which functions belong to the program, and which calls only forward to others.
 */
#ifndef OPS_DERIVE_PROGRAM_H
#define OPS_DERIVE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/program.h>
#include <opstrobe/trace.h>

/* Opstrobe's own package, as installed or in a checkout. */
bool ops_file_is_own(struct ops_string file);
/* Code that torch.compile generated. */
bool ops_file_is_generated(struct ops_string file);

/* Whether a function starts the program or a thread: runpy, torchrun, threading's bootstrap. */
bool ops_is_launcher(struct ops_string file, struct ops_string function);
/* Whether a function is torch's loop of a data loader's worker. */
bool ops_is_worker_loop(struct ops_string file, struct ops_string function);

/* Returns the package of a library's file: "lightning" for ".../site-packages/lightning/pytorch/loops/loop.py"; "" if
 * the path has none. */
struct ops_string ops_file_package(struct ops_string file);
/* Returns the path of a library's file from the package on: "lightning/pytorch/loops/loop.py"; "" if it has none. */
struct ops_string ops_file_in_package(struct ops_string file);

/* Calls of library functions that only forward to one other call, and the minor calls that they make next to it.
 *
 *     Net.forward                          Net.forward
 *      └ _wrapped_call_impl        wrapper  └ Linear
 *         └ _call_impl             wrapper
 *            ├ _get_tracing_state  inside
 *            └ Linear
 */
struct ops_wrappers {
	/* Launchers at the start of a thread lead to what they start, too. */
	uint32_t *into; /* by row: the call that a wrapper, or a minor call in it, leads to; OPS_NONE for all others */
	size_t count;   /* number of rows with an entry; `into` is NULL if there are none */
};

/* The result is kept with the trace. Returns NULL if out of memory. */
const struct ops_wrappers *ops_wrappers_of(const struct ops_trace *trace);

#endif
