/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/modules.h: where the time, the FLOPs and the memory of a trace went, by torch.nn.Module.
 *
 *     struct ops_module_tree *tree;
 *     ops_module_tree_new(trace, &tree, &error);
 *     rows = ops_module_tree_rows(tree, &count);       // a row a module, each below the one that holds it
 *     rows = ops_module_tree_classes(tree, &count);    // a row a class
 *     ops_module_tree_free(tree);
 *
 * Works on every trace with calls of modules: rows of PYTHON_FUNCTION that have a `python_module`. A recording also knows
 * paths and parameters and which module holds which (ops_trace_modules); in files of other profilers a module is known by
 * its rows' name and number, and stands below the module in whose call it was called first.
 *
 * What belongs to a call: all that its thread did inside it; the backward nodes of the operators inside it, by the links
 * from forward to backward (OPS_LINK_FORWARD_BACKWARD), each with what autograd's engine runs around it; the accumulation
 * of a gradient, which has no link, goes with the node before it; and the device work that any of these started
 * (OPS_LINK_LAUNCH). Calls that are made inside a backward node (checkpointing) are calls like others, and no part of
 * that node.
 *
 * A tree borrows its trace. It does not change, so several threads may read it.
 */
#ifndef OPSTROBE_INTERNAL_MODULES_H
#define OPSTROBE_INTERNAL_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is summed, with its name in data. Times in ns; FLOPs as ops_event_flops estimates them. Memory is what the thread
 * of the call reported while it ran: all that was allocated, and what of it was left, frees taken off. */
#define OPS_MODULE_METRICS(X)                                                                      \
	X(HOST, "host_ns")                                                                         \
	X(BACKWARD, "backward_ns")                                                                 \
	X(DEVICE, "device_ns")                                                                     \
	X(BACKWARD_DEVICE, "backward_device_ns")                                                   \
	X(FLOPS, "flops")                                                                          \
	X(BACKWARD_FLOPS, "backward_flops")                                                        \
	X(CPU_ALLOCATED, "cpu_allocated_bytes")                                                    \
	X(CPU_MEMORY, "cpu_memory_bytes")                                                          \
	X(DEVICE_ALLOCATED, "device_allocated_bytes")                                              \
	X(DEVICE_MEMORY, "device_memory_bytes")

enum ops_module_metric {
#define OPS_MODULE_METRIC_ENUM(name, text) OPS_MODULE_##name,
	OPS_MODULE_METRICS(OPS_MODULE_METRIC_ENUM)
#undef OPS_MODULE_METRIC_ENUM
	OPS_MODULE_METRIC_COUNT
};

/* A module, or a class of modules. */
struct ops_module_row {
	struct ops_string name;       /* of its rows, "nn.Module: Linear_0"; "" if it was not called, and of a class */
	struct ops_string path;       /* see struct ops_module; where the trace has none, the name without "nn.Module: " */
	struct ops_string class_name; /* where the trace has none, that in the name */
	uint32_t module;              /* index into ops_trace_modules; OPS_NONE: it is not there, or this is a class */
	uint32_t parent;              /* index of its row above, OPS_NONE none */
	uint32_t depth;               /* 0 without parent */
	uint32_t modules;             /* how many were called: 0 or 1, more for a class */
	uint32_t first_call;          /* index of its first call, or of the first in what it holds; OPS_NONE */
	uint64_t calls;
	/* Sums over all calls; of a call inside another one of the same module (or class) only `self` is added. `self` is what
	 * no other module's call inside accounts for. A module that was not called has the totals of those that it holds. */
	int64_t total[OPS_MODULE_METRIC_COUNT];
	int64_t self[OPS_MODULE_METRIC_COUNT];
	/* By how much the memory in use rose, at most, in a call. */
	int64_t cpu_peak_bytes;
	int64_t device_peak_bytes;
	uint64_t parameter_count; /* see struct ops_module; 0 for classes */
	uint64_t parameter_bytes;
};

/* A call. */
struct ops_module_call {
	uint32_t event; /* row of ops_trace_events */
	uint32_t row;   /* index into ops_module_tree_rows */
	uint32_t outer; /* the call in which it was made, on its thread; lower, or OPS_NONE */
};

struct ops_module_tree;

/* OPS_NO_MEMORY. A trace without calls of modules gives a tree without calls. Near linear in the trace. */
enum ops_code ops_module_tree_new(const struct ops_trace *trace, struct ops_module_tree **ret_tree, struct ops_error *error);
void ops_module_tree_free(struct ops_module_tree *tree); /* NULL is allowed */

/* The modules, each somewhere below its parent. */
const struct ops_module_row *ops_module_tree_rows(const struct ops_module_tree *tree, size_t *ret_count);
/* The classes of modules that were called, in order of their first. */
const struct ops_module_row *ops_module_tree_classes(const struct ops_module_tree *tree, size_t *ret_count);
/* The calls in order of rows. */
const struct ops_module_call *ops_module_tree_calls(const struct ops_module_tree *tree, size_t *ret_count);

struct ops_module_text_options {
	const char *sort_by; /* name of a metric, with "self_" before it for that, "calls", "parameters", "cpu_peak_bytes" or
	                      * "device_peak_bytes": largest first among those below one module. NULL: in order of definition */
	uint32_t max_depth;  /* levels shown; 0: all */
	size_t rows_max;  /* lines shown, then how many more there are; 0: all */
	bool by_class;
	unsigned columns; /* of the terminal that it is to fit, if it can; 0: nothing is left out or cut */
};

/* Formats the table as text: one line for each module that was called or contains one that was, with the columns that the trace
 * has data for. The text ends with a NUL; free it with ops_free. OPS_INVALID for an unknown `sort_by`. `options` may be NULL. */
enum ops_code ops_module_text(const struct ops_module_tree *tree, const struct ops_module_text_options *options,
                              char **ret_text, size_t *ret_size, struct ops_error *error);
/* All rows and classes as one JSON object (docs/openapi.yaml, Modules), likewise freed. */
enum ops_code ops_module_json(const struct ops_module_tree *tree, char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
