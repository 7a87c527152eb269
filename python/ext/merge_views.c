/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves views of several traces to one trace: the C functions take one trace, but a list may contain events of several (a profile
 * that accumulates its cycles; lists composed by users), and pickled averages only take along the part of their trace that they
 * need.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/merge.h>

/* The distinct traces of some views, and for each view the index of its trace. */
struct origins {
	struct trace_object **traces; /* borrowed */
	size_t trace_count;
	uint32_t *which; /* per view; OPS_NONE: no trace */
};

static void origins_release(struct origins *origins)
{
	PyMem_Free(origins->traces);
	PyMem_Free(origins->which);
}

static uint32_t trace_number(struct origins *origins, struct trace_object *trace, uint32_t guess)
{
	struct trace_object **grown;

	if (guess < origins->trace_count && origins->traces[guess] == trace)
		return guess;
	for (size_t i = 0; i < origins->trace_count; i++)
		if (origins->traces[i] == trace)
			return (uint32_t)i;
	grown = PyMem_Realloc(origins->traces, (origins->trace_count + 1) * sizeof(*grown));
	if (!grown) {
		PyErr_NoMemory();
		return OPS_NONE;
	}
	origins->traces = grown;
	origins->traces[origins->trace_count] = trace;
	return (uint32_t)origins->trace_count++;
}

/* Returns 0, or -1 with an exception set; must be released in either case. */
static int origins_init(struct origins *origins, const struct located *views, size_t count)
{
	uint32_t last = 0;

	*origins = (struct origins){.which = PyMem_New(uint32_t, count)};
	if (!origins->which) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		origins->which[i] = OPS_NONE;
		if (!views[i].trace)
			continue;
		origins->which[i] = last = trace_number(origins, views[i].trace, last);
		if (last == OPS_NONE)
			return -1;
	}
	return 0;
}

static int compare_refs(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sorts the refs of a part and removes duplicates: a duplicate event would be inside itself. */
static size_t sort_refs(uint32_t *refs, size_t count)
{
	size_t kept = 0;

	qsort(refs, count, sizeof(*refs), compare_refs);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || refs[i] != refs[i - 1])
			refs[kept++] = refs[i];
	return kept;
}

/* Merges the origins; `parts` take their refs from `views`, sorted by trace. On success views[i].ref is the ref in the new trace.
 * Returns a new reference, or NULL with an exception set. */
static struct trace_object *merge_views_merge(struct ops_ext_state *state, const struct origins *origins, struct located *views,
                                              size_t count, bool whole)
{
	struct ops_trace_part *parts = PyMem_Calloc(origins->trace_count, sizeof(*parts));
	uint32_t *refs = PyMem_New(uint32_t, count), *moved = PyMem_New(uint32_t, count);
	PyObject *object = NULL;
	struct ops_trace *trace;
	struct ops_error error;
	enum ops_code code;
	size_t n = 0;

	if (!parts || !refs || !moved) {
		PyErr_NoMemory();
		goto out;
	}
	for (size_t p = 0; p < origins->trace_count; p++) {
		size_t first = n;

		parts[p] = (struct ops_trace_part){.trace = origins->traces[p]->trace, .refs = refs + n, .whole = whole};
		for (size_t i = 0; i < count; i++)
			if (origins->which[i] == p)
				refs[n++] = views[i].ref;
		parts[p].ref_count = sort_refs(refs + first, n - first);
		n = first + parts[p].ref_count;
	}
	OPS_EXT_WITHOUT_GIL(code = ops_trace_merge(parts, origins->trace_count, moved, &trace, &error));
	if (code) {
		ops_ext_raise(&error);
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		const struct ops_trace_part *part = origins->which[i] == OPS_NONE ? NULL : &parts[origins->which[i]];

		if (part)
			views[i].ref = moved[(uint32_t *)bsearch(&views[i].ref, part->refs, part->ref_count, sizeof(*refs),
			                                         compare_refs) - refs];
	}
	object = ops_ext_trace_make(state, trace);
out:
	PyMem_Free(moved);
	PyMem_Free(refs);
	PyMem_Free(parts);
	return (struct trace_object *)object;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* Moves the users' attributes; `merged` are the same events in the new trace. */
static int move_attributes(struct ops_ext_state *state, const struct located *views, const struct located *merged,
                           struct trace_object *trace, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct function_event_object *old, *event;
		int failed = 0;

		if (!views[i].trace->kept)
			continue;
		old = (struct function_event_object *)ops_ext_function_event_new(state, views[i].trace, views[i].ref, Py_None,
		                                                                 false);
		event = old ? (struct function_event_object *)ops_ext_function_event_new(
				      state, trace, merged[i].ref, old->use_device, old->with_flops)
		            : NULL;
		if (event && old->dict && !event->dict) {
			event->dict = Py_NewRef(old->dict);
			failed = ops_ext_function_event_keep(event);
		}
		Py_XDECREF(old);
		Py_XDECREF(event);
		if (!event || failed)
			return -1;
	}
	return 0;
}

int ops_ext_merge_events(struct ops_ext_state *state, const struct located *views, size_t count,
                         struct trace_object **ret_trace, uint32_t **ret_refs)
{
	struct located *merged = PyMem_New(struct located, count);
	uint32_t *refs = PyMem_New(uint32_t, count);
	struct trace_object *trace = NULL;
	struct origins origins = {0};

	if (!merged || !refs) {
		PyErr_NoMemory();
		goto fail;
	}
	memcpy(merged, views, count * sizeof(*views));
	if (origins_init(&origins, views, count) < 0)
		goto fail;
	if (origins.trace_count > 1) {
		trace = merge_views_merge(state, &origins, merged, count, true);
		if (!trace || move_attributes(state, views, merged, trace, count) < 0)
			goto fail;
	} else if (origins.trace_count) {
		trace = (struct trace_object *)Py_NewRef(origins.traces[0]);
	}
	for (size_t i = 0; i < count; i++)
		refs[i] = merged[i].ref;
	origins_release(&origins);
	PyMem_Free(merged);
	*ret_trace = trace;
	*ret_refs = refs;
	return 0;
fail:
	Py_XDECREF(trace);
	origins_release(&origins);
	PyMem_Free(refs);
	PyMem_Free(merged);
	return -1;
}

/* --- averages ----------------------------------------------------------------------------------------------------- */

/* Lists each row's first event, followed by their parents: what a row needs of its trace in addition to the stack. */
static size_t list_needs(struct trace_object *const *traces, const struct ops_average *rows, size_t count,
                         struct located *ret_needs)
{
	size_t n = count;

	for (size_t i = 0; i < count; i++) {
		uint32_t first = rows[i].first;

		ret_needs[i] = (struct located){.trace = first == OPS_NONE ? NULL : traces[i], .ref = first};
		if (!ret_needs[i].trace || (first & OPS_MEMORY_REF))
			continue;
		first = ops_trace_events(traces[i]->trace)->parent[first];
		if (first != OPS_NONE)
			ret_needs[n++] = (struct located){.trace = traces[i], .ref = first};
	}
	return n;
}

/* Appends what the stacks of the rows of one trace need. Returns 0, or -1 with an exception set. */
static int add_stack_needs(struct trace_object *trace, struct trace_object *const *traces,
                           const struct ops_average *rows, size_t count, struct located **needs, size_t *need_count)
{
	uint32_t *firsts = PyMem_New(uint32_t, count), *needed = NULL;
	struct located *grown;
	struct ops_error error;
	size_t n = 0, needed_count;
	enum ops_code code = OPS_OK;

	if (!firsts) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		if (traces[i] == trace && rows[i].stack_frames > 0)
			firsts[n++] = rows[i].first;
	if (n > 0)
		OPS_EXT_WITHOUT_GIL(code = ops_stack_rows(trace->trace, firsts, n, &needed, &needed_count, &error));
	PyMem_Free(firsts);
	if (code) {
		ops_ext_raise(&error);
		return -1;
	}
	if (!needed)
		return 0;
	grown = PyMem_Realloc(*needs, (*need_count + needed_count + 1) * sizeof(*grown));
	if (grown) {
		*needs = grown;
		for (size_t i = 0; i < needed_count; i++)
			grown[(*need_count)++] = (struct located){trace, needed[i]};
	} else {
		PyErr_NoMemory();
	}
	ops_free(needed);
	return grown ? 0 : -1;
}

/* Adds to the needs of the rows, one trace after another, those of their stacks; the origins of the needs are known. */
static int need_stacks(const struct origins *origins, struct trace_object *const *traces, const struct ops_average *rows,
                       size_t count, struct located **needs, size_t *need_count)
{
	for (size_t p = 0; p < origins->trace_count; p++)
		if (add_stack_needs(origins->traces[p], traces, rows, count, needs, need_count) < 0)
			return -1;
	return 0;
}

/* Takes names and inputs of a row in its new trace from its first event. */
static void move_row(struct ops_average *row, const struct ops_trace *trace, uint32_t first)
{
	const struct ops_events *events = ops_trace_events(trace);

	row->first = first;
	if (first == OPS_NONE || (first & OPS_MEMORY_REF))
		return;
	if (row->name != OPS_NONE)
		row->name = events->name[first];
	if (row->inputs != OPS_NONE)
		row->inputs = events->inputs[first];
	if (row->overload != OPS_NONE)
		row->overload = events->overload ? events->overload[first] : OPS_NONE;
}

int ops_ext_merge_rows(struct ops_ext_state *state, struct trace_object *const *traces, struct ops_average *rows,
                       size_t count, bool apart, struct trace_object **ret_trace)
{
	struct located *needs = PyMem_New(struct located, 2 * count);
	struct origins origins = {0};
	struct trace_object *trace = NULL;
	size_t need_count;
	int failed = -1;

	if (!needs) {
		PyErr_NoMemory();
		return -1;
	}
	need_count = list_needs(traces, rows, count, needs);
	if (origins_init(&origins, needs, need_count) < 0)
		goto out;
	if (origins.trace_count > 1 || (origins.trace_count && apart)) {
		if (need_stacks(&origins, traces, rows, count, &needs, &need_count) < 0)
			goto out;
		origins_release(&origins);
		if (origins_init(&origins, needs, need_count) < 0)
			goto out;
		trace = merge_views_merge(state, &origins, needs, need_count, false);
		if (!trace)
			goto out;
		for (size_t i = 0; i < count; i++)
			move_row(&rows[i], trace->trace, needs[i].ref);
	} else if (origins.trace_count) {
		trace = (struct trace_object *)Py_NewRef(origins.traces[0]);
	}
	*ret_trace = trace;
	failed = 0;
out:
	origins_release(&origins);
	PyMem_Free(needs);
	return failed;
}

/* --- items -------------------------------------------------------------------------------------------------------- */

static int row_of_item(struct ops_ext_state *state, PyObject *item, struct ops_average *ret_row,
                       struct trace_object **ret_trace)
{
	struct function_event_avg_object *average;

	if (Py_TYPE(item) == state->function_event) {
		*ret_trace = ((struct function_event_object *)item)->trace;
		return ops_ext_function_event_row((struct function_event_object *)item, ret_row);
	}
	if (Py_TYPE(item) != state->function_event_avg) { /* a synthetic event that another thread has just inserted */
		PyErr_SetString(PyExc_RuntimeError, "the list was changed meanwhile");
		return -1;
	}
	average = (struct function_event_avg_object *)item;
	if (average->empty) {
		PyErr_SetString(PyExc_ValueError, "a FunctionEventAvg that nothing was added to has no row");
		return -1;
	}
	*ret_trace = average->trace;
	*ret_row = average->row;
	return 0;
}

int ops_ext_rows_of_items(struct ops_ext_state *state, PyObject *items, struct trace_object **ret_trace,
                          struct ops_average **ret_rows, size_t *ret_count)
{
	size_t count = (size_t)PyList_GET_SIZE(items);
	struct ops_average *rows = PyMem_New(struct ops_average, count);
	struct trace_object **traces = PyMem_New(struct trace_object *, count);
	PyObject *held = PyList_GetSlice(items, 0, (Py_ssize_t)count); /* other threads may change `items` meanwhile */
	int failed = 0;

	if (!rows || !traces || !held) {
		PyErr_NoMemory();
		failed = -1;
	}
	for (size_t i = 0; !failed && i < count; i++)
		failed = row_of_item(state, PyList_GET_ITEM(held, (Py_ssize_t)i), &rows[i], &traces[i]);
	if (!failed)
		failed = ops_ext_merge_rows(state, traces, rows, count, false, ret_trace);
	if (!failed) {
		*ret_rows = rows;
		*ret_count = count;
		rows = NULL;
	}
	Py_XDECREF(held);
	PyMem_Free(traces);
	PyMem_Free(rows);
	return failed;
}
