/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the extension module `opstrobe._core`: one file for each type, each with a function
 * `ops_ext_add_…` that the module's exec slot calls. CPython 3.10 to 3.14, multi-phase initialisation, heap types, all state in
 * the module. The extension needs the GIL and declares so.
 */
#ifndef OPS_EXT_H
#define OPS_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#define OPS_EXT_DEVICE_TYPES 21 /* c10::DeviceType: CPU 0 … PrivateUse1 20 */

/* The module's state. A member belongs to the file in its comment; module.c visits and clears all of them. */
struct ops_ext_state {
	PyTypeObject *trace;              /* trace.c */
	PyTypeObject *event_list;         /* event_list.c */
	PyTypeObject *function_event;     /* function_event.c */
	PyTypeObject *function_event_avg; /* function_event_avg.c */
	PyTypeObject *interval;           /* interval.c */
	PyObject *kernel;                 /* interval.c: the named tuple */
	PyTypeObject *module_summary;     /* module_summary.c */
	PyTypeObject *session;            /* session.c */
	PyTypeObject *memory_timeline;    /* memory_view.c */
	PyTypeObject *record_function;    /* record_function.c */
	PyTypeObject *tensor_watch;       /* tensor_watch.c */
	PyTypeObject *step_marks;         /* step_marks.c */
	PyTypeObject *quick_step;         /* step_marks.c */
	PyTypeObject *raw_fields;         /* raw_fields.c */
	PyTypeObject *kineto_event;       /* kineto_event.c */
	PyTypeObject *event_tree;         /* event_tree.c */
	PyTypeObject *profiler_event;     /* profiler_event.c */
	PyObject *device_types[OPS_EXT_DEVICE_TYPES]; /* function_event.c: the package's enum members, fetched on demand */
};

/* Returns NULL with an exception set if `self` is not of a type of this module; never NULL for a method's own self. */
struct ops_ext_state *ops_ext_state_of(PyObject *self);
struct ops_ext_state *ops_ext_state_of_module(PyObject *module);

/* Creates a heap type from `spec`, adds it to the module under the last part of its name, and stores it in `*ret_type` (owned). */
int ops_ext_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type);

/* One function for each file: adds its types and functions. Returns 0, or -1 with an exception set. */
int ops_ext_add_trace(PyObject *module);
int ops_ext_add_read_trace(PyObject *module);
int ops_ext_add_devices(PyObject *module);
int ops_ext_add_event_list(PyObject *module);
int ops_ext_add_function_event(PyObject *module);
int ops_ext_add_function_event_avg(PyObject *module);
int ops_ext_add_interval(PyObject *module);
int ops_ext_add_fatal_signals(PyObject *module);
int ops_ext_add_archive_table(PyObject *module);
int ops_ext_add_figures(PyObject *module);
int ops_ext_add_live(PyObject *module);
int ops_ext_add_module_summary(PyObject *module);
int ops_ext_add_session(PyObject *module);
int ops_ext_add_stack_sampler(PyObject *module);
int ops_ext_add_step_marks(PyObject *module);
/* Returns the CPU time that sampling of stacks has taken in this process. Any thread. */
int64_t ops_ext_stack_sampler_spent_ns(void);
int ops_ext_add_bridge(PyObject *module);
int ops_ext_add_finding(PyObject *module);
int ops_ext_add_watch(PyObject *module);
int ops_ext_add_tensor_watch(PyObject *module);
/* Sets whether brief watches ignore steps of optimizers. */
void ops_ext_tensor_watch_pause(bool pause);
int ops_ext_add_thread_states(PyObject *module);
int ops_ext_add_memory_view(PyObject *module);
int ops_ext_add_execution_trace(PyObject *module);
int ops_ext_add_fast_range(PyObject *module);
int ops_ext_add_record_function(PyObject *module);
int ops_ext_add_raw_fields(PyObject *module);
int ops_ext_add_kineto_event(PyObject *module);
int ops_ext_add_event_tree(PyObject *module);
int ops_ext_add_profiler_event(PyObject *module);

/* Returns whether the current session, or the last one if there is none, records operators' inputs. Requires the GIL. */
bool ops_ext_records_shapes(void);

/* Returns a new `_core.Trace` that takes ownership of `take`, even on failure (NULL with an exception set). */
PyObject *ops_ext_trace_new(PyObject *module, struct ops_trace *take);

/* Sets the exception for an error and returns NULL: MemoryError; OSError(errno, text), and so its subclasses such as
 * FileNotFoundError; ValueError for INVALID and CORRUPT; NotImplementedError for UNSUPPORTED; else RuntimeError. */
PyObject *ops_ext_raise(const struct ops_error *error);

/* Converts any bytes to a str: UTF-8; if necessary with encoded lone surrogates; else undecodable bytes become U+DC80…U+DCFF
 * (surrogateescape). */
PyObject *ops_ext_text(const char *bytes, size_t size);
/* Converts a text that a function returned with a code, and frees it; raises the error if the code is one. */
PyObject *ops_ext_result_text(enum ops_code code, char *text, size_t size, const struct ops_error *error);
/* The inverse of ops_ext_text: the bytes of a str, including lone surrogates, as a new bytes object. */
PyObject *ops_ext_text_bytes(PyObject *text);

#endif
