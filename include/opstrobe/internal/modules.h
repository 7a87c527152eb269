/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/modules.h: the time, FLOPs and memory of a trace by torch.nn.Module.
 *
 *     struct ops_module_tree *tree;
 *     ops_module_tree_new(trace, &tree, &error);
 *     rows = ops_module_tree_rows(tree, &count);       // a row for each module, below the one that contains it
 *     rows = ops_module_tree_classes(tree, &count);    // a row for each class
 *     ops_module_tree_free(tree);
 *
 * Works on every trace with calls of modules: rows of PYTHON_FUNCTION that have a `python_module`. A recording also has paths,
 * parameters and the containing modules (ops_trace_modules). In files of other profilers a module is identified by the name and
 * number of its rows, and is placed below the module in whose call it was first called.
 *
 * A call includes everything that its thread did inside it; the backward nodes of the operators inside it, by the links from
 * forward to backward (OPS_LINK_FORWARD_BACKWARD), each with what autograd's engine runs around it; the accumulation of a
 * gradient, which has no link, together with the node before it; and the device work that any of these started (OPS_LINK_LAUNCH).
 * Calls inside a backward node (checkpointing) are ordinary calls and not part of that node.
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

/* Metrics, with their names in data. Times in ns; FLOPs as defined by ops_flops_of(). Memory is what the thread of the call
 * reported during it: all allocated bytes, and allocated minus freed bytes. */
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
	struct ops_string name;       /* name of its rows, "nn.Module: Linear_0"; "" for a class, or if it was not called */
	struct ops_string path;       /* see struct ops_module; if the trace has none, the name without "nn.Module: " */
	struct ops_string class_name; /* if the trace has none, the class in the name */
	uint32_t module;              /* index into ops_trace_modules; OPS_NONE: not there, or this is a class */
	uint32_t parent;              /* index of the parent's row; OPS_NONE: none */
	uint32_t depth;               /* 0 without a parent */
	uint32_t modules;             /* number of called modules: 0 or 1, more for a class */
	uint32_t first_call;          /* index of its first call, or of the first call of a module in it; or OPS_NONE */
	uint64_t calls;
	/* Sums over all calls. A call inside another call of the same module (or class) is added only to `self`. `self` excludes
	 * calls of other modules inside. A module that was not called has the totals of the modules that it contains. */
	int64_t total[OPS_MODULE_METRIC_COUNT];
	int64_t self[OPS_MODULE_METRIC_COUNT];
	/* Largest increase of the memory in use during a call. */
	int64_t cpu_peak_bytes;
	int64_t device_peak_bytes;
	/* Forward and backward time on the host: mean over the steps of the calls in them (NAN: the trace has no steps), and of those on the
	 * threads of the steps as a share of the time of the steps, of the complete trace if it has none (NAN: it takes no time). */
	double step_ns;
	double share;
	uint64_t parameter_count; /* see struct ops_module; 0 for classes */
	uint64_t parameter_bytes;
};

/* A call. */
struct ops_module_call {
	uint32_t event; /* row of ops_trace_events */
	uint32_t row;   /* index into ops_module_tree_rows */
	uint32_t outer; /* the enclosing call on the same thread, always lower; or OPS_NONE */
};

struct ops_module_tree;

/* OPS_NO_MEMORY. Without calls of modules the tree has no calls. Near linear in the size of the trace. */
enum ops_code ops_module_tree_new(const struct ops_trace *trace, struct ops_module_tree **ret_tree, struct ops_error *error);
void ops_module_tree_free(struct ops_module_tree *tree); /* NULL is allowed */

/* Returns the modules, each after its parent. */
const struct ops_module_row *ops_module_tree_rows(const struct ops_module_tree *tree, size_t *ret_count);
/* Returns the classes of modules that were called, in order of their first call. */
const struct ops_module_row *ops_module_tree_classes(const struct ops_module_tree *tree, size_t *ret_count);
/* Returns the calls in order of rows. */
const struct ops_module_call *ops_module_tree_calls(const struct ops_module_tree *tree, size_t *ret_count);

struct ops_module_text_options {
	const char *sort_by; /* name of a metric (with "self_" before it for self values), "calls", "parameters", "cpu_peak_bytes"
	                      * or "device_peak_bytes": sorts modules with the same parent, largest first. NULL: in order of
	                      * definition */
	uint32_t max_depth;  /* number of levels to show; 0: all */
	size_t rows_max;  /* number of lines to show, followed by the number of omitted ones; 0: all */
	bool by_class;
	unsigned columns; /* terminal width that the text should fit if possible; 0: nothing is omitted or truncated */
};

/* Why a result is empty. */
#define OPS_MODULES_EMPTY "no calls of modules were recorded: record with opstrobe run, or with with_modules=True"

/* Formats the table as text: one line for each module that was called or contains a called one, with the columns for which the
 * trace has data. The text ends with a NUL; free it with ops_free. OPS_INVALID for an unknown `sort_by`. `options` may be NULL. */
enum ops_code ops_module_text(const struct ops_module_tree *tree, const struct ops_module_text_options *options,
                              char **ret_text, size_t *ret_size, struct ops_error *error);
/* Returns all rows and classes as one JSON object (docs/openapi.yaml, Modules). Freed with ops_free. */
enum ops_code ops_module_json(const struct ops_module_tree *tree, char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
