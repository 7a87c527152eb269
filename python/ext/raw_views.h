/* SPDX-License-Identifier: Apache-2.0
 *
 * What the raw views of a recording share: `kineto_results.events()` and `kineto_results.experimental_event_tree()`, as
 * programs read them that know torch's C++ classes. Nothing here exists until it is read.
 *
 *     _ProfilerResult (Python) ─┬─▶ list of _KinetoEvent ──▶ Trace, ref
 *                               └─▶ EventTree ──▶ list of _ProfilerEvent ──▶ RawFields
 */
#ifndef OPS_EXT_RAW_VIEWS_H
#define OPS_EXT_RAW_VIEWS_H

#include "views.h"

#include <opstrobe/internal/memory.h>

/* --- raw_fields.c: objects with attributes that pass for torch's own -------------------------------------------------- */

/* An object with the attributes in `stolen_values` (a dict; NULL with an exception set is passed on), which it owns from then on. Its __class__ is the class
 * `kind` of torch._C._profiler if torch is imported. `kind` is static. */
PyObject *ops_ext_raw_fields(struct ops_ext_state *state, const char *kind, PyObject *stolen_values);
/* An attribute of an imported module, a new reference; None when the module is not imported or does not have it. */
PyObject *ops_ext_imported(const char *module, const char *name);
/* torch's class of that name, else `default_type` (borrowed). For a getter of __class__. */
PyObject *ops_ext_torch_class(const char *module, const char *name, PyTypeObject *default_type);
/* The member of an enumeration of torch's, or of the package's own where torch is not imported. */
PyObject *ops_ext_raw_member(const char *enumeration, int value);

/* --- kineto_event.c --------------------------------------------------------------------------------------------------- */

/* Whether a row is an event of the raw views. */
bool ops_ext_raw_row(const struct ops_trace *trace, uint32_t row);
/* torch's correlation id: an operator's id, that of the launch for a device's work, 0 for the rest. */
uint64_t ops_ext_raw_correlation(struct trace_object *trace, uint32_t ref);
/* A row's name as torch's classes have it: Python functions without their class. */
PyObject *ops_ext_raw_name(struct trace_object *trace, uint32_t row);
/* How much of a qualified name ("Optimizer.zero_grad") is not the function's own. */
size_t ops_ext_class_bytes(struct ops_string function);
/* As a method of Trace: kineto_events(use_device, with_flops). */
PyObject *ops_ext_trace_kineto_events(PyObject *object, PyObject *args);

/* --- tensor_metadata.c: tensors as the raw views show them -------------------------------------------------------------- */

/* Which block of memory an address is at a time. */
struct tensor_blocks {
	struct ops_memory_timeline *timeline; /* NULL when no memory was recorded */
	struct block_start *starts;           /* by device type, address and time */
	struct tensor_place *described;       /* by block: an input that shows the tensor; NULL until it is needed */
};

/* Fills zeroed `blocks`. Needs no GIL. False when memory is out. */
bool ops_ext_tensor_blocks_init(struct tensor_blocks *blocks, struct ops_trace *trace);
void ops_ext_tensor_blocks_release(struct tensor_blocks *blocks);
/* The block at an address that was allocated at a time or before it, OPS_NONE if there is none. `freed_at` finds the one that ends
 * then. */
uint32_t ops_ext_tensor_block(const struct tensor_blocks *blocks, uint8_t device_type, uint64_t address, int64_t time_ns,
                              bool freed_at);
/* torch.device(…), None without torch. */
PyObject *ops_ext_tensor_device(uint8_t device_type, int device_index);

struct tensor_view {
	struct ops_ext_state *state;
	struct trace_object *trace;
	struct tensor_blocks *blocks;
	bool on_cpu; /* a tensor whose device was not recorded is on the CPU */
};
/* A list of what a row was called with: tensors, lists of them and scalars; None for all else. */
PyObject *ops_ext_tensor_inputs(const struct tensor_view *view, uint32_t row);
/* A tensor of (sizes, strides, dtype, layout, device, address) as they were at the end; its memory is known when a block of the
 * category was there then. */
PyObject *ops_ext_tensor_of_fields(const struct tensor_view *view, PyObject *fields, enum ops_memory_category category);
/* The tensor of a storage at a time, with the sizes and the type that an input shows the storage `like` with. */
PyObject *ops_ext_tensor_of_storage(const struct tensor_view *view, const struct ops_storage *storage,
                                    const struct ops_storage *like, int64_t time_ns);

/* --- event_tree.c ------------------------------------------------------------------------------------------------------- */

struct event_tree_object {
	PyObject_HEAD
	struct trace_object *trace;
	PyObject *use_device;
	struct tensor_blocks blocks;
	uint32_t count;
	uint32_t *refs;        /* rows and memory records, by time */
	uint32_t *parent;      /* OPS_NONE for roots */
	uint32_t *thread;      /* torch's number of the thread that each started on */
	uint32_t *child_start; /* children of node i: children[child_start[i] … child_start[i + 1]); of the roots: i = count */
	uint32_t *children;
};
/* A list of a node's children; of the roots for `count`. */
PyObject *ops_ext_tree_children(struct event_tree_object *tree, uint32_t node);

/* --- profiler_event.c ------------------------------------------------------------------------------------------------ */

PyObject *ops_ext_profiler_event_new(struct ops_ext_state *state, struct event_tree_object *tree, uint32_t node);
/* The module or the optimizer of a call (python_objects.c). None for calls of other functions. */
PyObject *ops_ext_module_info(const struct tensor_view *view, uint32_t row);
PyObject *ops_ext_optimizer_info(const struct tensor_view *view, uint32_t row);

#endif
