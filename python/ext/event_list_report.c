/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports on all events of an EventList: averages, totals, the table, the trace file.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/internal/write.h>
#include <opstrobe/merge.h>

/* Rows of any list for the C functions, without a Python object for each row. Arrays that belong to the list are copied, so that
 * another thread may change the list while the GIL is released. */
struct row_source {
	struct trace_object *trace; /* owned; NULL for an empty list */
	struct ops_event_costs costs;
	const uint32_t *refs;     /* EVENTS: own_refs or the trace's; else NULL */
	uint32_t *own_refs;
	struct ops_average *rows; /* AVERAGES and ITEMS; owned */
	size_t count;
};

static void source_release(struct row_source *source)
{
	PyMem_Free(source->own_refs);
	PyMem_Free(source->rows);
	Py_CLEAR(source->trace);
}

static int source_init_events(struct row_source *source, struct event_list_object *self)
{
	if (!self->trace)
		return 0;
	if (ops_ext_trace_need_costs(self->trace) < 0)
		return -1;
	source->costs = ops_ext_trace_costs(self->trace, self->options.with_flops);
	source->refs = self->refs;
	if (self->own_refs) {
		source->own_refs = PyMem_New(uint32_t, self->count);
		if (!source->own_refs) {
			PyErr_NoMemory();
			return -1;
		}
		memcpy(source->own_refs, self->own_refs, self->count * sizeof(*self->own_refs));
		source->refs = source->own_refs;
	}
	return 0;
}

static int source_init_averages(struct row_source *source, struct event_list_object *self)
{
	source->rows = PyMem_New(struct ops_average, self->count);
	if (!source->rows) {
		PyErr_NoMemory();
		return -1;
	}
	memcpy(source->rows, self->rows, self->count * sizeof(*self->rows));
	return 0;
}

static int source_init(struct row_source *source, struct event_list_object *self)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);

	memset(source, 0, sizeof(*source));
	if (!state || ops_ext_event_list_compact(self) < 0)
		return -1;
	if (self->kind == LIST_ITEMS)
		return ops_ext_rows_of_items(state, self->items, &source->trace, &source->rows, &source->count);
	source->trace = (struct trace_object *)Py_XNewRef(self->trace);
	source->count = self->count;
	if ((self->kind == LIST_EVENTS ? source_init_events : source_init_averages)(source, self) == 0)
		return 0;
	source_release(source);
	return -1;
}

static void source_get(const void *context, size_t i, struct ops_average *ret_row)
{
	const struct row_source *source = context;

	if (source->rows)
		*ret_row = source->rows[i];
	else
		ops_average_of_event(source->trace->trace, &source->costs, source->refs[i], ret_row);
}

static bool source_has_parent(const void *context, size_t i)
{
	const struct row_source *source = context;
	uint32_t ref = source->rows ? source->rows[i].first : source->refs[i];

	if (ref & OPS_MEMORY_REF) /* OPS_NONE also has this bit */
		return false;
	return ops_trace_events(source->trace->trace)->parent[ref] != OPS_NONE &&
	       !ops_event_on_device(source->trace->trace, ref);
}

/* Returns whether a row may have a stack to show, to avoid searching a trace without any. */
static bool source_shows_stacks(const struct row_source *source)
{
	bool found = !source->rows;

	for (size_t i = 0; !found && i < source->count; i++)
		found = source->rows[i].stack_frames > 0;
	return found && ops_trace_has_stacks(source->trace->trace);
}

/* --- table ------------------------------------------------------------------------------------------------------- */

/* Raises the exceptions that torch raises for a key by which it cannot sort. */
static PyObject *raise_sort_error(const struct ops_error *error)
{
	PyObject *kind = error->code == OPS_UNSUPPORTED ? PyExc_AttributeError : PyExc_TypeError;

	if (error->code != OPS_UNSUPPORTED && error->code != OPS_INVALID)
		return ops_ext_raise(error);
	PyErr_SetString(kind, error->text);
	return NULL;
}

/* ops_table_text or ops_table_html. */
typedef enum ops_code make_table(const struct ops_trace *trace, const struct ops_rows *rows,
                                 const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);

static PyObject *list_as(struct event_list_object *self, make_table *make, struct ops_table_options *options)
{
	struct row_source source;
	struct ops_rows rows;
	struct ops_error error;
	enum ops_code code;
	PyObject *text = NULL;
	char *bytes;
	size_t size;

	if (source_init(&source, self) < 0)
		return NULL;
	options->profile_memory = self->options.profile_memory;
	options->with_flops = self->options.with_flops;
	if (source.trace && source_shows_stacks(&source) && ops_ext_trace_need_stacks(source.trace) < 0) {
		source_release(&source);
		return NULL;
	}
	options->stacks = source.trace ? source.trace->stacks : NULL;
	options->use_device = self->options.use_device == Py_None ? NULL : PyUnicode_AsUTF8(self->options.use_device);
	rows = (struct ops_rows){.count = source.count, .get = source_get, .has_parent = source_has_parent,
	                         .context = &source};
	if (source.count == 0) {
		text = PyUnicode_FromString("");
	} else if (!source.trace) {
		PyErr_SetString(PyExc_ValueError, "averages over no events make no table");
	} else if (options->use_device || self->options.use_device == Py_None) {
		OPS_EXT_WITHOUT_GIL(code = make(source.trace->trace, &rows, options, &bytes, &size, &error));
		if (code) {
			raise_sort_error(&error);
		} else {
			text = ops_ext_text(bytes, size);
			ops_free(bytes);
		}
	}
	source_release(&source);
	return text;
}

PyObject *ops_ext_event_list_text(struct event_list_object *self, struct ops_table_options *options)
{
	return list_as(self, ops_table_text, options);
}

PyObject *ops_ext_event_list__html(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"row_limit", NULL};
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	Py_ssize_t row_limit = 20;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:_html", names, &row_limit))
		return NULL;
	options.row_limit = row_limit;
	options.max_name_column_width = options.max_shapes_column_width = 60;
	if (self->is_unordered)
		options.sort_by = self->options.use_device == Py_None ? "self_cpu_time_total" : "self_device_time_total";
	return list_as(self, ops_table_html, &options);
}

/* Converts a limit or width: torch accepts any number, and floats work there too. */
static int convert_number(PyObject *object, void *result)
{
	double value;

	if (PyLong_Check(object)) {
		int overflow;
		long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
		*(int64_t *)result = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : number;
		return 1;
	}
	value = PyFloat_AsDouble(object);
	if (value == -1.0 && PyErr_Occurred())
		return 0;
	*(int64_t *)result = value >= 9e18 ? INT64_MAX : value <= -9e18 ? INT64_MIN : (int64_t)value;
	return 1;
}

/* Converts a width, or None: unlimited. */
static int convert_width(PyObject *object, void *result)
{
	if (object == Py_None) {
		*(int64_t *)result = INT64_MAX;
		return 1;
	}
	if (!convert_number(object, result))
		return 0;
	if (*(int64_t *)result < 0) {
		PyErr_SetString(PyExc_ValueError, "the width of a column must not be negative");
		return 0;
	}
	return 1;
}

/* Returns a copy of a list of events, sorted as torch sorts: descending by any attribute that events have. */
static PyObject *sorted_by_attribute(PyObject *list, const char *name)
{
	PyObject *operators = PyImport_ImportModule("operator");
	PyObject *getter = operators ? PyObject_CallMethod(operators, "attrgetter", "s", name) : NULL;
	PyObject *kwargs = getter ? Py_BuildValue("{s:O,s:O}", "key", getter, "reverse", Py_True) : NULL;
	PyObject *copy = kwargs ? PySequence_GetSlice(list, 0, PY_SSIZE_T_MAX) : NULL;
	PyObject *sort = copy ? PyObject_GetAttrString(copy, "sort") : NULL;
	PyObject *none = sort ? PyObject_VectorcallDict(sort, NULL, 0, kwargs) : NULL;

	if (!none)
		Py_CLEAR(copy);
	Py_XDECREF(none);
	Py_XDECREF(sort);
	Py_XDECREF(kwargs);
	Py_XDECREF(getter);
	Py_XDECREF(operators);
	return copy;
}

/* Renders the table. The C core sorts by members of rows; sorting by other attributes of events is done here. */
static PyObject *table_text(PyObject *list, struct ops_table_options *options)
{
	struct event_list_object *self = (struct event_list_object *)list;
	PyObject *text = ops_ext_event_list_text(self, options);
	PyObject *sorted;

	if (text || self->kind != LIST_EVENTS || !options->sort_by || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return text;
	PyErr_Clear();
	sorted = sorted_by_attribute(list, options->sort_by);
	if (!sorted)
		return NULL;
	options->sort_by = NULL;
	text = ops_ext_event_list_text((struct event_list_object *)sorted, options);
	Py_DECREF(sorted);
	return text;
}

PyObject *ops_ext_event_list_table(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"sort_by", "row_limit", "max_src_column_width", "max_name_column_width",
	                        "max_shapes_column_width", "header", "top_level_events_only", "time_unit", NULL};
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	PyObject *time_unit = NULL, *header = Py_None, *header_bytes = NULL, *text;
	int top_level = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zO&O&O&O&OpO:table", names, &options.sort_by, convert_number,
	                                 &options.row_limit, convert_width, &options.max_src_column_width, convert_width,
	                                 &options.max_name_column_width, convert_width,
	                                 &options.max_shapes_column_width, &header, &top_level, &time_unit))
		return NULL;
	if (header != Py_None) {
		if (!PyUnicode_Check(header))
			return PyErr_Format(PyExc_TypeError, "header must be a str, not %.200s", Py_TYPE(header)->tp_name);
		header_bytes = ops_ext_text_bytes(header);
		if (!header_bytes)
			return NULL;
		options.header = PyBytes_AS_STRING(header_bytes);
		options.header_size = (size_t)PyBytes_GET_SIZE(header_bytes);
	}
	options.top_level_events_only = top_level;
	if (time_unit && PyUnicode_Check(time_unit)) {
		options.time_unit = PyUnicode_AsUTF8(time_unit);
		PyErr_Clear(); /* units other than s, ms and us are ignored */
	}
	text = table_text(object, &options);
	Py_XDECREF(header_bytes);
	return text;
}

/* --- averages ---------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_event_list_key_averages(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"group_by_input_shapes", "group_by_stack_n", "group_by_overload_name", NULL};
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct ops_averages_options options;
	int by_shape = 0, by_overload = 0;
	int64_t stack_n = 0;
	struct ops_average *rows = NULL;
	struct row_source source;
	struct ops_error error;
	enum ops_code code = OPS_OK;
	size_t count = 0;
	PyObject *list = NULL;

	if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "|pO&p:key_averages", names, &by_shape, convert_number,
	                                           &stack_n, &by_overload))
		return NULL;
	if (source_init(&source, self) < 0)
		return NULL;
	options = (struct ops_averages_options){.by_input_shape = by_shape, .by_overload_name = by_overload};
	if (stack_n > 0 && source.trace) {
		if (ops_ext_trace_need_stacks(source.trace) < 0) {
			source_release(&source);
			return NULL;
		}
		options.by_stack_frames = stack_n < OPS_ALL_FRAMES ? (uint32_t)stack_n : OPS_ALL_FRAMES - 1;
		options.stacks = source.trace->stacks;
	}
	if (self->kind != LIST_EVENTS) {
		PyErr_SetString(PyExc_AssertionError, "key_averages needs a list of events, this one holds averages");
	} else if (!source.trace) {
		list = ops_ext_event_list_of_refs(state, NULL, &self->options, NULL, 0);
	} else {
		OPS_EXT_WITHOUT_GIL(code = ops_averages(source.trace->trace, &source.costs, source.refs, source.count,
		                                        &options, &rows, &count, &error));
		if (code)
			ops_ext_raise(&error);
		else
			list = ops_ext_event_list_of_rows(state, source.trace, &self->options, rows, count, by_shape,
			                                  by_overload);
	}
	source_release(&source);
	return list;
}

static void source_total(const struct row_source *source, struct ops_average *ret_total)
{
	struct ops_average total = {.key = OPS_KEY_TOTAL, .name = OPS_NONE, .first = OPS_NONE, .overload = OPS_NONE,
	                            .inputs = OPS_NONE};

	if (source->refs && source->trace) {
		ops_total_average(source->trace->trace, &source->costs, source->refs, source->count, ret_total);
		return;
	}
	for (size_t i = 0; i < source->count; i++)
		ops_ext_average_add(&total, &source->rows[i]);
	*ret_total = total;
}

PyObject *ops_ext_event_list_total_average(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {NULL};
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct ops_average total;
	struct row_source source;
	PyObject *average;

	if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, ":total_average", names) ||
	    source_init(&source, self) < 0)
		return NULL;
	OPS_EXT_WITHOUT_GIL(source_total(&source, &total));
	average = ops_ext_function_event_avg_new(state, source.trace, &total, self->options.use_device, false, false,
	                                         self->options.with_flops);
	source_release(&source);
	return average;
}

static int64_t sum_self_cpu_time(const struct row_source *source)
{
	struct ops_average row;
	int64_t sum = 0;

	for (size_t i = 0; i < source->count; i++) {
		source_get(source, i, &row);
		sum += row.self_cpu_time_total_ns;
	}
	return sum;
}

PyObject *ops_ext_event_list_self_cpu_time_total(PyObject *object, void *closure)
{
	struct row_source source;
	int64_t sum_ns;

	(void)closure;
	if (source_init(&source, (struct event_list_object *)object) < 0)
		return NULL;
	OPS_EXT_WITHOUT_GIL(sum_ns = sum_self_cpu_time(&source));
	source_release(&source);
	return PyFloat_FromDouble((double)sum_ns / 1000.0);
}

/* --- files --------------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_event_list_export_chrome_trace(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", NULL};
	struct row_source source;
	PyObject *path, *method, *result = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:export_chrome_trace", names, &path) ||
	    source_init(&source, (struct event_list_object *)object) < 0)
		return NULL;
	if (!source.trace) {
		PyErr_SetString(PyExc_RuntimeError, "an empty list of no trace cannot be exported");
	} else {
		method = PyUnicode_FromString("export_chrome_trace");
		if (method)
			result = PyObject_CallMethodObjArgs((PyObject *)source.trace, method, path, NULL);
		Py_XDECREF(method);
	}
	source_release(&source);
	return result;
}

static const char *const stack_metrics[] = {"self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                                            "self_privateuse1_time_total", NULL};

PyObject *ops_ext_event_list_supported_export_stacks_metrics(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {NULL};

	(void)object;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":supported_export_stacks_metrics", names))
		return NULL;
	return Py_BuildValue("[ssss]", stack_metrics[0], stack_metrics[1], stack_metrics[2], stack_metrics[3]);
}

/* Returns which of the metrics it is: the first is the CPU's, the others the device's; -1 with an exception set if it is neither. */
static int find_metric(PyObject *metric)
{
	for (int i = 0; PyUnicode_Check(metric) && stack_metrics[i]; i++)
		if (PyUnicode_CompareWithASCIIString(metric, stack_metrics[i]) == 0)
			return i;
	PyErr_Format(PyExc_ValueError, "metric should be one of: ['%s', '%s', '%s', '%s']", stack_metrics[0],
	             stack_metrics[1], stack_metrics[2], stack_metrics[3]);
	return -1;
}

/* An empty list may have no trace: it is written like that of an empty trace. */
static enum ops_code event_list_report_write_stacks(const struct row_source *source, const struct ops_flame_choices *choices,
                                                    const char *path, struct ops_flame_cut *ret_cut, struct ops_error *error)
{
	const struct ops_rows rows = {.count = source->count, .get = source_get, .context = source};
	struct ops_trace *empty = NULL;
	struct ops_flame *flame;
	enum ops_code code = source->trace ? OPS_OK : ops_trace_merge(NULL, 0, NULL, &empty, error);

	if (!code)
		code = ops_flame_new(empty ? empty : source->trace->trace, empty ? NULL : source->trace->stacks, &rows, choices,
		                     &flame, error);
	if (!code) {
		code = ops_flame_write(flame, path, ret_cut, error);
		ops_flame_free(flame);
	}
	ops_trace_unref(empty);
	return code;
}

PyObject *ops_ext_event_list_export_stacks(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", "metric", "fold_wrappers", NULL};
	PyObject *path, *metric, *path_bytes = NULL;
	struct ops_flame_choices choices = {0};
	struct row_source source;
	struct ops_error error;
	enum ops_code code = OPS_OK;
	struct ops_flame_cut cut = {0};
	int number, fold_wrappers = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$p:export_stacks", names, &path, &metric, &fold_wrappers))
		return NULL;
	number = find_metric(metric);
	choices.metric = number > 0 ? OPS_STACKS_SELF_DEVICE : OPS_STACKS_SELF_CPU;
	choices.keep_wrappers = !fold_wrappers;
	choices.keep_waits = true; /* as torch.profiler does */
	if (number < 0 || !PyUnicode_FSConverter(path, &path_bytes))
		return NULL;
	if (source_init(&source, (struct event_list_object *)object) < 0) {
		Py_DECREF(path_bytes);
		return NULL;
	}
	if (!source.trace || !source.rows || ops_ext_trace_need_stacks(source.trace) == 0)
		OPS_EXT_WITHOUT_GIL(code = event_list_report_write_stacks(&source, &choices, PyBytes_AS_STRING(path_bytes),
		                                                          &cut, &error));
	if (code)
		ops_ext_raise(&error);
	else if (cut.stacks)
		(void)PyErr_WarnFormat(PyExc_UserWarning, 1,
		                       "%zu stacks of more than %u frames are cut short at '[truncated]'; a path that ends in "
		                       "'.speedscope.json' has them whole", cut.stacks, cut.depth);
	source_release(&source);
	Py_DECREF(path_bytes);
	return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
