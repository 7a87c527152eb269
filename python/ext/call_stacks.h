/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the program calls operators, ranges and modules, without recording calls: each of them is recorded with the functions of the
 * program that are running, and their lines. This takes no time of the functions themselves.
 */
#ifndef OPS_EXT_CALL_STACKS_H
#define OPS_EXT_CALL_STACKS_H

#include "frames.h"

/* Starts it for the session in progress. `path_prefixes` is a tuple of str or NULL: what is removed from paths, the longest first.
 * Requires the GIL. Returns 0, or -1 with an exception set. */
int ops_call_stacks_start(PyObject *path_prefixes);
/* Ends it; does nothing if it was not started. */
void ops_call_stacks_stop(void);

#endif
