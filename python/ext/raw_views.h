/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of the raw views of a recording: `kineto_results.events()` and `kineto_results.experimental_event_tree()`, for
 * programs that use torch's C++ classes. Objects are created on access.
 *
 *     _ProfilerResult (Python) ─┬─▶ list of _KinetoEvent ──▶ Trace, ref
 *                               └─▶ EventTree ──▶ list of _ProfilerEvent ──▶ RawFields
 */
#ifndef OPS_EXT_RAW_VIEWS_H
#define OPS_EXT_RAW_VIEWS_H

#include "views.h"

#include <opstrobe/internal/memory.h>

/* --- raw_fields.c: objects with attributes that pass for torch's ------------------------------------------------------ */

/* Returns an object with the attributes in `stolen_values` (a dict; NULL with an exception set is passed on), whose ownership it
 * takes. Its __class__ is the class `kind` of torch._C._profiler if torch is imported. `kind` is static. */
PyObject *ops_ext_raw_fields(struct ops_ext_state *state, const char *kind, PyObject *stolen_values);
/* Returns an attribute of an imported module, a new reference; None if the module is not imported or does not have it. */
PyObject *ops_ext_imported(const char *module, const char *name);
/* Returns torch's class of that name, else `default_type` (borrowed). For a getter of __class__. */
PyObject *ops_ext_torch_class(const char *module, const char *name, PyTypeObject *default_type);
/* Returns the member of torch's enumeration, or of the package's if torch is not imported. */
PyObject *ops_ext_raw_member(const char *enumeration, int value);

/* --- kineto_event.c --------------------------------------------------------------------------------------------------- */

/* Returns whether a row is an event of the raw views. */
bool ops_ext_raw_row(const struct ops_trace *trace, uint32_t row);
/* Returns torch's correlation id: an operator's id, that of the launch for device work, else 0. */
uint64_t ops_ext_raw_correlation(struct trace_object *trace, uint32_t ref);
/* Returns a row's name in torch's classes: Python functions without their class. */
PyObject *ops_ext_raw_name(struct trace_object *trace, uint32_t row);
/* Returns the size of the class prefix of a qualified name ("Optimizer.zero_grad"). */
size_t ops_ext_class_bytes(struct ops_string function);
/* Method of Trace: kineto_events(use_device, with_flops). */
PyObject *ops_ext_trace_kineto_events(PyObject *object, PyObject *args);

/* --- tensor_metadata.c: tensors in the raw views ------------------------------------------------------------------------ */

/* Finds the block of memory at an address and time. */
struct tensor_blocks {
	struct ops_memory_timeline *timeline; /* NULL if no memory was recorded */
	struct block_start *starts;           /* sorted by device type, address and time */
	struct tensor_place *described;       /* by block: an input that shows the tensor; NULL until needed */
};

/* Fills zeroed `blocks`. Needs no GIL. Returns false if out of memory. */
bool ops_ext_tensor_blocks_init(struct tensor_blocks *blocks, struct ops_trace *trace);
void ops_ext_tensor_blocks_release(struct tensor_blocks *blocks);
/* Returns the block at an address that was allocated at or before a time; OPS_NONE if there is none. `freed_at` finds the one
 * that ends at that time. */
uint32_t ops_ext_tensor_block(const struct tensor_blocks *blocks, uint8_t device_type, uint64_t address, int64_t time_ns,
                              bool freed_at);
/* Returns torch.device(…); None without torch. */
PyObject *ops_ext_tensor_device(uint8_t device_type, int device_index);

struct tensor_view {
	struct ops_ext_state *state;
	struct trace_object *trace;
	struct tensor_blocks *blocks;
	bool on_cpu; /* a tensor without a recorded device is on the CPU */
};
/* Returns a list of a row's inputs: tensors, lists of tensors, and scalars; None for all others. */
PyObject *ops_ext_tensor_inputs(const struct tensor_view *view, uint32_t row);
/* Returns a tensor for (sizes, strides, dtype, layout, device, address) at the end; its memory is known if a block of the
 * category existed then. */
PyObject *ops_ext_tensor_of_fields(const struct tensor_view *view, PyObject *fields, enum ops_memory_category category);
/* Returns the tensor of a storage at a time, with the sizes and the type with which an input shows the storage `like`. */
PyObject *ops_ext_tensor_of_storage(const struct tensor_view *view, const struct ops_storage *storage,
                                    const struct ops_storage *like, int64_t time_ns);

/* --- event_tree.c ------------------------------------------------------------------------------------------------------- */

struct event_tree_object {
	PyObject_HEAD
	struct trace_object *trace;
	PyObject *use_device;
	struct tensor_blocks blocks;
	uint32_t count;
	uint32_t *refs;        /* rows and memory records in order of time */
	uint32_t *parent;      /* OPS_NONE for roots */
	uint32_t *thread;      /* torch's number of the thread on which each started */
	uint32_t *child_start; /* children of node i: children[child_start[i] … child_start[i + 1]); of the roots: i = count */
	uint32_t *children;
};
/* Returns a list of a node's children; for `count`, of the roots. */
PyObject *ops_ext_tree_children(struct event_tree_object *tree, uint32_t node);

/* --- profiler_event.c ------------------------------------------------------------------------------------------------ */

PyObject *ops_ext_profiler_event_new(struct ops_ext_state *state, struct event_tree_object *tree, uint32_t node);
/* Returns the module or optimizer of a call (python_objects.c); None for calls of other functions. */
PyObject *ops_ext_module_info(const struct tensor_view *view, uint32_t row);
PyObject *ops_ext_optimizer_info(const struct tensor_view *view, uint32_t row);

#endif
