/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of the views of a trace: Trace, EventList, FunctionEvent, FunctionEventAvg. A trace object owns the C trace and
 * everything derived from it once (the function events, the costs, the children index, decoded names); lists and events are thin:
 * a reference to the trace object and row numbers.
 *
 *     EventList ──▶ Trace ──▶ struct ops_trace
 *        │            ▲
 *        └ item ─▶ FunctionEvent (trace, ref)
 */
#ifndef OPS_EXT_VIEWS_H
#define OPS_EXT_VIEWS_H

#include "ext.h"

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/trace.h>

struct trace_object {
	PyObject_HEAD
	struct ops_trace *trace;
	uint32_t *refs; /* all function events; NULL before first use, or if there are none */
	size_t ref_count;
	bool has_refs;
	bool has_costs;
	struct ops_event_costs costs; /* `with_flops` is set in copies, according to each list's option */
	uint32_t *child_start;        /* children of row i: child_rows[child_start[i] … child_start[i + 1]) */
	uint32_t *child_rows;
	uint32_t *work_start; /* like child_start, for device work launched by row i */
	uint32_t *work_rows;
	uint32_t *flows;   /* by event: 1 + index of its link to or from another event, 0: none; NULL before first use */
	uint32_t *flow_numbers; /* by link: see ops_trace_number_links; computed with `flows` */
	struct ops_stacks *stacks; /* NULL before first use */
	PyObject **frames;         /* one str for each name of a frame, created on demand */
	uint64_t id_max;   /* highest event id; 0 before first use */
	PyObject **names;  /* one str for each string id, created on demand */
	struct function_event_object *views; /* linked list of all views */
	PyObject *module_parameters; /* tuple: by module, the description by python_objects.c; NULL: none */
	PyObject *kept;    /* dict ref → FunctionEvent: events with attributes added by users; NULL: none */
};

/* The options that a list passes to its events and tables. */
struct view_options {
	PyObject *use_device; /* str or None, owned; NULL in an object that is not initialised yet */
	char profile_memory;
	char with_flops;
};

struct function_event_object {
	PyObject_HEAD
	struct trace_object *trace;
	PyObject *use_device;
	PyObject *dict; /* attributes added by users; NULL before the first */
	struct function_event_object *previous, *next; /* in trace->views */
	uint32_t ref;
	bool with_flops;
};

struct function_event_avg_object {
	PyObject_HEAD
	struct trace_object *trace; /* trace of the ids in `row`; NULL while empty */
	PyObject *use_device;
	PyObject *dict;
	struct ops_average row;
	bool empty; /* created by FunctionEventAvg(), and nothing has been added yet */
	bool by_input_shape;
	bool by_overload_name;
	bool with_flops;
};

/* The contents of a list. EVENTS and AVERAGES are C arrays without a Python object for each row; ITEMS is a Python list. A list
 * becomes ITEMS if it is changed, contains events of several traces, or returns one of its averages (averages are mutable, so the
 * same object must be returned each time). */
enum list_kind { LIST_EVENTS, LIST_AVERAGES, LIST_ITEMS };

struct event_list_object {
	PyObject_HEAD
	enum list_kind kind;
	struct trace_object *trace; /* NULL for ITEMS without a common trace */
	struct view_options options;
	const uint32_t *refs;     /* EVENTS; borrowed from the trace object unless own_refs */
	uint32_t *own_refs;
	struct ops_average *rows; /* AVERAGES; freed with ops_free */
	size_t count;
	PyObject *items;          /* ITEMS */
	bool by_input_shape;      /* how the averages were grouped */
	bool by_overload_name;
	bool is_unordered;        /* averages in the order of their computation, which has no meaning */
	char timed_out;           /* built with a time limit, which was reached */
};

/* --- trace.c ------------------------------------------------------------------------------------------------------ */

/* Like ops_ext_trace_new. */
PyObject *ops_ext_trace_make(struct ops_ext_state *state, struct ops_trace *take);
/* Methods of Trace in trace_views.c. */
PyObject *ops_ext_trace_arrow_schema(PyObject *object, PyObject *unused);
PyObject *ops_ext_trace_arrow_array(PyObject *object, PyObject *arguments, PyObject *keywords);
PyObject *ops_ext_trace_arrow_stream(PyObject *object, PyObject *arguments, PyObject *keywords);
PyObject *ops_ext_trace_table(PyObject *object, PyObject *arguments, PyObject *keywords);
PyObject *ops_ext_trace_columns(PyObject *object, PyObject *unused);
PyObject *ops_ext_trace_views_json(PyObject *object, PyObject *arguments);
PyObject *ops_ext_trace_advice_json(PyObject *object, PyObject *arguments);
PyObject *ops_ext_trace_advice_text(PyObject *object, PyObject *arguments);
PyObject *ops_ext_trace_diff_json(PyObject *object, PyObject *arguments);
PyObject *ops_ext_trace_query(PyObject *object, PyObject *arguments);
PyObject *ops_ext_trace_roofline(PyObject *object, PyObject *arguments);

/* --- trace_derived.c ---------------------------------------------------------------------------------------------- */

/* Returns the trace object's refs, costs and children, computed on first use with the GIL released. Return 0, or -1 with an
 * exception set. */
int ops_ext_trace_need_refs(struct trace_object *self);
int ops_ext_trace_need_costs(struct trace_object *self);
int ops_ext_trace_need_children(struct trace_object *self);
int ops_ext_trace_need_work(struct trace_object *self); /* computed with the costs */
int ops_ext_trace_need_flows(struct trace_object *self);
int ops_ext_trace_need_stacks(struct trace_object *self);
uint64_t ops_ext_trace_id_max(struct trace_object *self);
/* Returns the costs for one list or event; need_costs must have been called. */
struct ops_event_costs ops_ext_trace_costs(const struct trace_object *self, bool with_flops);
/* Returns a new list of the innermost frames of an event's stack, `most` of them. */
PyObject *ops_ext_trace_stack(struct trace_object *self, uint32_t ref, uint32_t most);
/* Returns a new reference to the str of a string id, decoded once. */
PyObject *ops_ext_trace_name(struct trace_object *self, uint32_t id);

/* --- function_event.c, function_event_avg.c, interval.c ------------------------------------------------------------ */

PyObject *ops_ext_function_event_new(struct ops_ext_state *state, struct trace_object *trace, uint32_t ref,
                                     PyObject *use_device, bool with_flops);
/* Makes the trace keep the event, so that its attributes are kept. Returns 0, or -1 with an exception set. */
int ops_ext_function_event_keep(struct function_event_object *self);
PyObject *ops_ext_function_event_avg_new(struct ops_ext_state *state, struct trace_object *trace,
                                         const struct ops_average *row, PyObject *use_device, bool by_input_shape,
                                         bool by_overload_name, bool with_flops);
/* Adds the sums of `row` to those of `total`. */
void ops_ext_average_add(struct ops_average *total, const struct ops_average *row);
PyObject *ops_ext_interval_new(struct ops_ext_state *state, double start_us, double end_us);

/* --- event_fields.c -------------------------------------------------------------------------------------------------- */

extern PyGetSetDef ops_ext_function_event_getsets[];
/* Computes the row of the event. Returns 0, or -1 with an exception set. */
int ops_ext_function_event_row(struct function_event_object *self, struct ops_average *ret_row);
/* Returns a c10::DeviceType as the package's enum. */
PyObject *ops_ext_device_type(struct ops_ext_state *state, uint8_t value);

/* --- device_fields.c ------------------------------------------------------------------------------------------------ */

bool ops_ext_event_on_device(const struct function_event_object *self);
/* Returns whether the event's id in the trace is that of the operator for which it ran. */
bool ops_ext_event_has_id_of_operator(const struct function_event_object *self);
PyObject *ops_ext_event_id(PyObject *object, void *closure);
PyObject *ops_ext_event_linked_id(PyObject *object, void *closure);
PyObject *ops_ext_event_kernels(PyObject *object, void *closure);

/* --- event_metadata.c ----------------------------------------------------------------------------------------------- */

PyObject *ops_ext_event_metadata(PyObject *object, void *closure);
/* Returns the same as the members of a JSON object, with torch's deprecation warning. */
PyObject *ops_ext_event_metadata_json(PyObject *object, void *closure);
PyObject *ops_ext_event_details(PyObject *object, void *closure);

/* --- attributes.c ---------------------------------------------------------------------------------------------------- */

/* Returns an attribute of any object. Unlike PyObject_GetAttrString, it creates no string that stays in the type's cache of names. */
PyObject *ops_ext_attribute(PyObject *self, const char *name);
/* Returns format.format(first, second). */
PyObject *ops_ext_format(const char *format, PyObject *first, PyObject *second);
/* Returns a dict of the named attributes of `self` and those in `extra` (may be NULL): the result of `vars(event)`. */
PyObject *ops_ext_attributes(PyObject *self, const char *const *names, PyObject *extra);
/* Sets all attributes in a dict: __setstate__ of events and averages. */
PyObject *ops_ext_set_attributes(PyObject *self, PyObject *dict);

/* --- event_list.c -------------------------------------------------------------------------------------------------- */

/* Returns a list over `take_refs` (from PyMem_New) or, if NULL, over all refs of the trace. */
PyObject *ops_ext_event_list_of_refs(struct ops_ext_state *state, struct trace_object *trace,
                                     const struct view_options *options, uint32_t *take_refs, size_t count);
PyObject *ops_ext_event_list_of_rows(struct ops_ext_state *state, struct trace_object *trace,
                                     const struct view_options *options, struct ops_average *take_rows, size_t count,
                                     bool by_input_shape, bool by_overload_name);
/* Returns a list over a Python list of FunctionEvents and FunctionEventAvgs, which it takes. */
PyObject *ops_ext_event_list_of_items(struct ops_ext_state *state, const struct view_options *options,
                                      PyObject *take_items);
/* Returns a list over the items of an iterable; NULL: no items. TypeError if one is not an event. */
PyObject *ops_ext_event_list_of(struct ops_ext_state *state, PyObject *iterable, const struct view_options *options);
/* Returns a new reference to element i, which must be in range. */
PyObject *ops_ext_event_list_item(struct event_list_object *self, size_t i);

/* --- event_list_items.c ---------------------------------------------------------------------------------------------- */

/* Returns whether an object may be in a list; -1 with an exception set. */
int ops_ext_is_event(struct ops_ext_state *state, PyObject *object);
/* Converts the list to ITEMS. */
int ops_ext_event_list_materialise(struct event_list_object *self);
/* Converts ITEMS that are all FunctionEvents (or none) to EVENTS over one trace: their common one, or one merged from theirs.
 * Other lists are unchanged. */
int ops_ext_event_list_compact(struct event_list_object *self);
int ops_ext_event_list_assign(PyObject *self, PyObject *key, PyObject *value);
PyObject *ops_ext_event_list_inplace_concat(PyObject *self, PyObject *other);
PyObject *ops_ext_event_list_concat(struct event_list_object *a, struct event_list_object *b);

/* Methods of list: each converts the list to ITEMS and calls the method. */
#define OPS_EXT_LIST_CHANGES(X) X(append) X(clear) X(extend) X(insert) X(pop) X(remove) X(reverse) X(sort)
#define OPS_EXT_LIST_METHOD(name) PyObject *ops_ext_event_list_##name(PyObject *self, PyObject *args, PyObject *kwargs);
OPS_EXT_LIST_CHANGES(OPS_EXT_LIST_METHOD)

/* --- event_list_report.c --------------------------------------------------------------------------------------------- */

#define OPS_EXT_LIST_REPORTS(X)                                                                    \
	X(key_averages) X(total_average) X(table) X(export_chrome_trace) X(export_stacks)          \
	X(supported_export_stacks_metrics)
OPS_EXT_LIST_REPORTS(OPS_EXT_LIST_METHOD)
OPS_EXT_LIST_METHOD(_html)
PyObject *ops_ext_event_list_self_cpu_time_total(PyObject *self, void *closure);
/* Returns the table; sets those options that belong to the list. */
PyObject *ops_ext_event_list_text(struct event_list_object *self, struct ops_table_options *options);

/* --- hand_made.c ---------------------------------------------------------------------------------------------------- */

#define OPS_EXT_LIST_TREE_STEPS(X)                                                                 \
	X(_build_tree) X(_populate_cpu_children) X(_remove_dup_nodes) X(_set_backward_stacktraces)
/* The methods as users call them, for lists that may contain synthetic events. */
#define OPS_EXT_ANY_LIST_METHOD(name) PyObject *ops_ext_any_list_##name(PyObject *self, PyObject *args, PyObject *kwargs);
OPS_EXT_LIST_REPORTS(OPS_EXT_ANY_LIST_METHOD)
OPS_EXT_ANY_LIST_METHOD(_repr_html_)
OPS_EXT_LIST_TREE_STEPS(OPS_EXT_ANY_LIST_METHOD)
PyObject *ops_ext_any_list_self_cpu_time_total(PyObject *self, void *closure);
PyObject *ops_ext_any_list_str(PyObject *self);
/* tp_new of FunctionEvent. */
PyObject *ops_ext_hand_made_event(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* Returns whether an object is torch's own event or average; -1 with an exception set. */
int ops_ext_is_hand_made(struct ops_ext_state *state, PyObject *object);
PyObject *ops_ext_hand_made_as_ours(PyObject *object);

/* --- merge_views.c -------------------------------------------------------------------------------------------------- */

/* A function event: its trace (borrowed; NULL: none) and its ref there. */
struct located {
	struct trace_object *trace;
	uint32_t ref;
};

/* Moves events to one trace: their own if it is the same, else one merged from theirs. Returns a new reference in `ret_trace`
 * (NULL if there are no events) and the refs there, freed with PyMem_Free. */
int ops_ext_merge_events(struct ops_ext_state *state, const struct located *views, size_t count,
                         struct trace_object **ret_trace, uint32_t **ret_refs);
/* Changes rows of averages, row i with its ids in traces[i] (NULL: no ids), to have them in one trace: their own if it is the
 * same, else one that only contains their first events and the parents of these. `apart` always creates one. */
int ops_ext_merge_rows(struct ops_ext_state *state, struct trace_object *const *traces, struct ops_average *rows,
                       size_t count, bool apart, struct trace_object **ret_trace);
/* Returns one row for each item of a list of FunctionEvents and FunctionEventAvgs, over one trace; freed with PyMem_Free. */
int ops_ext_rows_of_items(struct ops_ext_state *state, PyObject *items, struct trace_object **ret_trace,
                          struct ops_average **ret_rows, size_t *ret_count);

/* --- pickle_views.c ------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_trace_reduce(PyObject *self, PyObject *unused);
PyObject *ops_ext_trace_setstate(PyObject *self, PyObject *kept);
PyObject *ops_ext_trace_unpack(PyObject *type, PyObject *args);
PyObject *ops_ext_function_event_reduce(PyObject *self, PyObject *unused);
PyObject *ops_ext_function_event_rebuild(PyObject *type, PyObject *args);
PyObject *ops_ext_function_event_avg_reduce(PyObject *self, PyObject *unused);
PyObject *ops_ext_function_event_avg_rebuild(PyObject *type, PyObject *args);
PyObject *ops_ext_event_list_reduce(PyObject *self, PyObject *unused);
PyObject *ops_ext_event_list_rebuild(PyObject *type, PyObject *args);

/* --- event_inputs.c: inputs (inputs.h) as Python lists ----------------------------------------------------------------- */

enum inputs_view {
	INPUT_SHAPES,            /* sizes; [] for everything that is not a single tensor */
	INPUT_STRUCTURED_SHAPES, /* sizes; a list of sizes for a list of tensors */
	INPUT_STRUCTURED_STRIDES,
	INPUT_DTYPES,
	INPUT_CONCRETE,          /* scalars and lists of them; None for others */
};
PyObject *ops_ext_inputs(struct trace_object *trace, uint32_t inputs, enum inputs_view view);
/* Returns a dict of the named values that were recorded with an operator: those of counters, or all others. */
PyObject *ops_ext_named_values(struct trace_object *trace, uint32_t row, bool counters);

/* --- average_fields.c: attributes that events and averages share ------------------------------------------------------- */

enum average_field {
	FIELD_CPU_TIME_TOTAL,
	FIELD_SELF_CPU_TIME_TOTAL,
	FIELD_DEVICE_TIME_TOTAL,
	FIELD_SELF_DEVICE_TIME_TOTAL,
	FIELD_CPU_TIME,
	FIELD_DEVICE_TIME,
	FIELD_CPU_MEMORY,
	FIELD_DEVICE_MEMORY,
	FIELD_SELF_CPU_MEMORY,
	FIELD_SELF_DEVICE_MEMORY,
	FIELD_FLOPS,
	FIELD_COUNT,
	FIELD_SCOPE,
	FIELD_IS_ASYNC,
	FIELD_IS_LEGACY,
	FIELD_IS_USER_ANNOTATION,
	FIELD_AS_TEXT = 0x100, /* added to a time: "12.345us" */
};
PyObject *ops_ext_average_field(const struct ops_average *row, int field);

#define OPS_EXT_AVERAGE_GETSETS(get)                                                                              \
	{"cpu_time_total", get, NULL, "Time on the CPU, children included, in us.", (void *)FIELD_CPU_TIME_TOTAL},          \
	{"self_cpu_time_total", get, NULL, "Time on the CPU less that of the children, in us.",                             \
	 (void *)FIELD_SELF_CPU_TIME_TOTAL},                                                                                \
	{"device_time_total", get, NULL, "Time on the device, in us.", (void *)FIELD_DEVICE_TIME_TOTAL},                    \
	{"self_device_time_total", get, NULL, "Time on the device less that of the children, in us.",                       \
	 (void *)FIELD_SELF_DEVICE_TIME_TOTAL},                                                                             \
	{"cpu_time", get, NULL, "cpu_time_total / count.", (void *)FIELD_CPU_TIME},                                         \
	{"device_time", get, NULL, "device_time_total / count.", (void *)FIELD_DEVICE_TIME},                                \
	{"cpu_memory_usage", get, NULL, "Bytes allocated less bytes freed.", (void *)FIELD_CPU_MEMORY},                     \
	{"device_memory_usage", get, NULL, "The same on the device.", (void *)FIELD_DEVICE_MEMORY},                         \
	{"self_cpu_memory_usage", get, NULL, "cpu_memory_usage less that of the children.",                                 \
	 (void *)FIELD_SELF_CPU_MEMORY},                                                                                    \
	{"self_device_memory_usage", get, NULL, "device_memory_usage less that of the children.",                           \
	 (void *)FIELD_SELF_DEVICE_MEMORY},                                                                                 \
	{"flops", get, NULL, "Estimated floating-point operations, 0 when unknown.", (void *)FIELD_FLOPS},                  \
	{"count", get, NULL, "How many events this is.", (void *)FIELD_COUNT},                                              \
	{"is_async", get, NULL, "Ended on another thread than it began on.", (void *)FIELD_IS_ASYNC},                       \
	{"is_legacy", get, NULL, "Timed without a device tracer.", (void *)FIELD_IS_LEGACY},                                \
	{"cpu_time_total_str", get, NULL, NULL, (void *)(FIELD_CPU_TIME_TOTAL | FIELD_AS_TEXT)},                            \
	{"self_cpu_time_total_str", get, NULL, NULL, (void *)(FIELD_SELF_CPU_TIME_TOTAL | FIELD_AS_TEXT)},                  \
	{"device_time_total_str", get, NULL, NULL, (void *)(FIELD_DEVICE_TIME_TOTAL | FIELD_AS_TEXT)},                      \
	{"self_device_time_total_str", get, NULL, NULL, (void *)(FIELD_SELF_DEVICE_TIME_TOTAL | FIELD_AS_TEXT)},            \
	{"cpu_time_str", get, NULL, NULL, (void *)(FIELD_CPU_TIME | FIELD_AS_TEXT)},                                        \
	{"device_time_str", get, NULL, NULL, (void *)(FIELD_DEVICE_TIME | FIELD_AS_TEXT)}

/* --- event_names.c: names from other versions --------------------------------------------------------------------------- */

enum other_name_id {
	OTHER_CUDA_TIME,
	OTHER_CUDA_TIME_TOTAL,
	OTHER_SELF_CUDA_TIME_TOTAL,
	OTHER_SELF_CUDA_TIME,
	OTHER_CUDA_MEMORY_USAGE,
	OTHER_SELF_CUDA_MEMORY_USAGE,
	OTHER_SELF_CPU_TIME,
	OTHER_PARENT,
	OTHER_CHILDREN,
	OTHER_START,
	OTHER_END,
};
PyObject *ops_ext_other_name(PyObject *object, void *closure);

#define OPS_EXT_OTHER_NAMES                                                                                            \
	{"cuda_time", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_CUDA_TIME},                               \
	{"cuda_time_total", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_CUDA_TIME_TOTAL},                   \
	{"self_cuda_time_total", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_SELF_CUDA_TIME_TOTAL},         \
	{"self_cuda_time", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_SELF_CUDA_TIME},                     \
	{"cuda_memory_usage", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_CUDA_MEMORY_USAGE},               \
	{"self_cuda_memory_usage", ops_ext_other_name, NULL, "Deprecated.", (void *)OTHER_SELF_CUDA_MEMORY_USAGE},     \
	{"self_cpu_time", ops_ext_other_name, NULL, "Another name of self_cpu_time_total.", (void *)OTHER_SELF_CPU_TIME}, \
	{"parent", ops_ext_other_name, NULL, "Another name of cpu_parent.", (void *)OTHER_PARENT},                     \
	{"children", ops_ext_other_name, NULL, "Another name of cpu_children.", (void *)OTHER_CHILDREN}

/* Releases the GIL around `statement`, for C code whose time grows with the trace. */
#define OPS_EXT_WITHOUT_GIL(statement)                                                             \
	do {                                                                                       \
		Py_BEGIN_ALLOW_THREADS                                                             \
		statement;                                                                         \
		Py_END_ALLOW_THREADS                                                               \
	} while (0)

#endif
