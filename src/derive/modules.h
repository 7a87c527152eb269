/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows are calls of modules (docs/reference/definitions.md).
 */
#ifndef OPS_DERIVE_MODULES_H
#define OPS_DERIVE_MODULES_H

#include <stdbool.h>

#include <opstrobe/trace.h>

enum ops_module_source {
	OPS_MODULES_NONE,
	OPS_MODULES_PYTHON,    /* Python functions with the number of a module */
	OPS_MODULES_LIGHTNING, /* ranges that Lightning's profiler puts around modules */
};

/* Walks over the strings of the trace once. */
enum ops_module_source ops_module_source(const struct ops_trace *trace);
bool ops_is_module_call(const struct ops_trace *trace, enum ops_module_source source, size_t row);
/* The parts of a call's name. Path and class are "Linear_0" and "Linear" of "nn.Module: Linear_0", "net.0" and "Linear"
 * of "[pl][module]torch.nn.modules.linear.Linear: net.0". */
struct ops_string ops_module_path(struct ops_string name);
struct ops_string ops_module_class(struct ops_string name);
/* Returns whether the trace has the paths of modules in the program. */
bool ops_has_module_paths(const struct ops_trace *trace);
/* Returns the name of a call's module: its unique path in the program ("blocks.0.attn") if a recording knows it, else the path
 * in the call's name. */
struct ops_string ops_module_of_call(const struct ops_trace *trace, size_t row);
/* Returns what lists of all kinds of events show for a name, a string of the trace: the path of the module if calls have the name. */
struct ops_string ops_shown_name(const struct ops_trace *trace, uint32_t name);

#endif
