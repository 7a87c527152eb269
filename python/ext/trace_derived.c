/* SPDX-License-Identifier: Apache-2.0
 *
 * Data that a Trace object derives from its C trace, each once, on first use. Everything that grows with the trace runs without
 * the GIL: it is computed separately, and stored only if no other thread was faster.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

int ops_ext_trace_need_refs(struct trace_object *self)
{
	struct ops_error error;
	enum ops_code code;
	uint32_t *refs = NULL;
	size_t count = 0;

	if (self->has_refs)
		return 0;
	OPS_EXT_WITHOUT_GIL(code = ops_function_events(self->trace, &refs, &count, &error));
	if (code) {
		ops_ext_raise(&error);
		return -1;
	}
	if (self->has_refs) {
		ops_free(refs);
		return 0;
	}
	self->refs = refs;
	self->ref_count = count;
	self->has_refs = true;
	return 0;
}

int ops_ext_trace_need_costs(struct trace_object *self)
{
	struct ops_event_costs costs;
	struct ops_error error;
	enum ops_code code;

	if (self->has_costs)
		return 0;
	OPS_EXT_WITHOUT_GIL(code = ops_event_costs_init(&costs, self->trace, false, &error));
	if (code) {
		ops_ext_raise(&error);
		return -1;
	}
	if (self->has_costs) {
		ops_event_costs_release(&costs);
		return 0;
	}
	self->costs = costs;
	self->has_costs = true;
	return 0;
}

struct ops_event_costs ops_ext_trace_costs(const struct trace_object *self, bool with_flops)
{
	struct ops_event_costs costs = self->costs;

	costs.with_flops = with_flops;
	return costs;
}

/* Returns whether the row is in the index, which includes rows that were folded into their parents. */
static bool is_owned(const struct ops_events *events, const uint32_t *owner, size_t row)
{
	return owner[row] != OPS_NONE && !(events->flags[row] & (OPS_EVENT_FOLDED | OPS_EVENT_HIDDEN));
}

/* A counting sort by owner; rows are in order of start, so those of an owner come out in order of start. */
static void sort_by_owner(const struct ops_events *events, const uint32_t *owner, uint32_t *start, uint32_t *rows)
{
	memset(start, 0, (events->count + 2) * sizeof(*start));
	for (size_t i = 0; i < events->count; i++) {
		if (is_owned(events, owner, i))
			start[owner[i] + 2]++;
	}
	for (size_t i = 2; i < events->count + 2; i++)
		start[i] += start[i - 1];
	for (size_t i = 0; i < events->count; i++) {
		if (is_owned(events, owner, i))
			rows[start[owner[i] + 1]++] = (uint32_t)i;
	}
}

/* Computes the rows that each row owns: those of row i are (*rows)[(*start)[i] … (*start)[i + 1]). Returns 0, or -1 with an
 * exception set. */
static int make_index(struct trace_object *self, const uint32_t *owner, uint32_t **start, uint32_t **rows)
{
	const struct ops_events *events = ops_trace_events(self->trace);
	uint32_t *new_start, *new_rows;

	if (*start)
		return 0;
	new_start = PyMem_RawMalloc((events->count + 2) * sizeof(*new_start));
	new_rows = PyMem_RawMalloc((events->count + 1) * sizeof(*new_rows));
	if (new_start && new_rows)
		OPS_EXT_WITHOUT_GIL(sort_by_owner(events, owner, new_start, new_rows));
	if (!new_start || !new_rows || *start) {
		PyMem_RawFree(new_start);
		PyMem_RawFree(new_rows);
		if (*start)
			return 0;
		PyErr_NoMemory();
		return -1;
	}
	*rows = new_rows;
	*start = new_start;
	return 0;
}

int ops_ext_trace_need_children(struct trace_object *self)
{
	return make_index(self, ops_trace_events(self->trace)->parent, &self->child_start, &self->child_rows);
}

int ops_ext_trace_need_work(struct trace_object *self)
{
	if (ops_ext_trace_need_costs(self) < 0)
		return -1;
	return self->costs.launcher ? make_index(self, self->costs.launcher, &self->work_start, &self->work_rows) : 0;
}

int ops_ext_trace_need_flows(struct trace_object *self)
{
	const struct ops_events *events = ops_trace_events(self->trace);
	size_t count;
	const struct ops_link *links = ops_trace_links(self->trace, &count);

	if (self->flows)
		return 0;
	self->flows = PyMem_RawCalloc(events->count + 1, sizeof(*self->flows));
	self->flow_numbers = PyMem_RawMalloc((count + 1) * sizeof(*self->flow_numbers));
	if (!self->flows || !self->flow_numbers || !ops_trace_number_links(self->trace, self->flow_numbers)) {
		PyMem_RawFree(self->flows);
		PyMem_RawFree(self->flow_numbers);
		self->flows = self->flow_numbers = NULL;
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		if (links[i].kind == OPS_LINK_DEPENDENCY)
			continue; /* torch's events have none */
		self->flows[links[i].from] = (uint32_t)i + 1;
		self->flows[links[i].to] = (uint32_t)i + 1;
	}
	return 0;
}

int ops_ext_trace_need_stacks(struct trace_object *self)
{
	struct ops_stacks *stacks;
	struct ops_error error;
	enum ops_code code;

	if (self->stacks)
		return 0;
	OPS_EXT_WITHOUT_GIL(code = ops_stacks_new(self->trace, &stacks, &error));
	if (code) {
		ops_ext_raise(&error);
		return -1;
	}
	if (self->stacks)
		ops_stacks_free(stacks);
	else
		self->stacks = stacks;
	return 0;
}

/* Returns a new reference to the str of a frame's name. */
static PyObject *frame_text(struct trace_object *self, uint32_t name)
{
	struct ops_string text;

	if (!self->frames[name]) {
		text = ops_stack_text(self->stacks, name);
		self->frames[name] = ops_ext_text(text.bytes, text.size);
	}
	return Py_XNewRef(self->frames[name]);
}

PyObject *ops_ext_trace_stack(struct trace_object *self, uint32_t ref, uint32_t most)
{
	const struct ops_frame *chains;
	size_t chain_count;
	PyObject *list;

	if (ops_ext_trace_need_stacks(self) < 0)
		return NULL;
	if (!self->frames) {
		self->frames = PyMem_Calloc(ops_stack_name_count(self->stacks), sizeof(*self->frames));
		if (!self->frames)
			return PyErr_NoMemory();
	}
	chains = ops_stack_frames(self->stacks, &chain_count);
	list = PyList_New(0);
	for (uint32_t chain = ops_stack_of(self->stacks, ref); list && chain != 0 && most > 0; most--) {
		PyObject *text = frame_text(self, chains[chain].name);

		if (!text || PyList_Append(list, text) < 0)
			Py_CLEAR(list);
		Py_XDECREF(text);
		chain = chains[chain].caller;
	}
	return list;
}

uint64_t ops_ext_trace_id_max(struct trace_object *self)
{
	const struct ops_events *events = ops_trace_events(self->trace);

	if (!events->id)
		return events->count;
	if (self->id_max == 0) {
		for (size_t i = 0; i < events->count; i++)
			self->id_max = events->id[i] > self->id_max ? events->id[i] : self->id_max;
	}
	return self->id_max;
}

PyObject *ops_ext_trace_name(struct trace_object *self, uint32_t id)
{
	struct ops_string text;

	if (!self->names) {
		self->names = PyMem_Calloc(ops_trace_string_count(self->trace), sizeof(*self->names));
		if (!self->names)
			return PyErr_NoMemory();
	}
	if (!self->names[id]) {
		text = ops_trace_string(self->trace, id);
		self->names[id] = ops_ext_text(text.bytes, text.size);
	}
	return Py_XNewRef(self->names[id]);
}
