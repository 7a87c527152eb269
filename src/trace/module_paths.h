/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of modules that are unique in a trace with several models.
 */
#ifndef OPS_TRACE_MODULE_PATHS_H
#define OPS_TRACE_MODULE_PATHS_H

#include <stdbool.h>

struct ops_trace;

/* Sets the unique paths of all modules. Returns false if out of memory; it may be called again. */
bool ops_module_paths_find(struct ops_trace *trace);

#endif
