/* SPDX-License-Identifier: Apache-2.0
 *
 * EventTree: events and allocator reports, nested by time as in torch. Unlike the tree of the tables it has memory reports,
 * operators that are folded into others, and device work below the call that launched it; and the events of a backward pass on
 * another thread are below the event that was open on the thread of the forward pass.
 */
#include "raw_views.h"

#include <string.h>

#define NO_THREAD UINT32_MAX

/* --- building, without the GIL -------------------------------------------------------------------------------------------- */

struct builder {
	struct event_tree_object *tree;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_memory_record *records;
	uint32_t *open;      /* by track: the innermost open node; OPS_NONE: none */
	uint32_t *launch;    /* by row: the row that launched it; OPS_NONE: none */
	uint32_t *node;      /* by row */
	uint32_t *track_of_node;
	size_t track_count;
};

static int64_t event_tree_end_of(const struct builder *builder, uint32_t node)
{
	uint32_t ref = builder->tree->refs[node];

	return ref & OPS_MEMORY_REF ? builder->records[ref & ~OPS_MEMORY_REF].time_ns : builder->events->end_ns[ref];
}

/* Closes the events on a track that ended before a time, with everything inside them. */
static void event_tree_close_until(struct builder *builder, uint32_t track, int64_t time_ns)
{
	uint32_t *parent = builder->tree->parent;

	for (uint32_t node = builder->open[track]; node != OPS_NONE && builder->track_of_node[node] == track; node = parent[node])
		if (event_tree_end_of(builder, node) < time_ns)
			builder->open[track] = parent[node];
	if (builder->open[track] != OPS_NONE && builder->track_of_node[builder->open[track]] != track)
		builder->open[track] = OPS_NONE;
}

static uint32_t track_of_thread(const struct builder *builder, uint32_t number)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(builder->trace, &count);

	for (uint32_t track = 0; track < count; track++)
		if (tracks[track].kind == OPS_TRACK_THREAD && tracks[track].number == number)
			return track;
	return OPS_NONE;
}

static uint32_t parent_on_track(struct builder *builder, uint32_t track, uint32_t forward_thread, int64_t time_ns)
{
	event_tree_close_until(builder, track, time_ns);
	if (builder->open[track] != OPS_NONE || forward_thread == 0)
		return builder->open[track];
	track = track_of_thread(builder, forward_thread);
	if (track == OPS_NONE)
		return OPS_NONE;
	event_tree_close_until(builder, track, time_ns);
	return builder->open[track];
}

static bool event_tree_on_device(const struct builder *builder, uint32_t row)
{
	const struct ops_track *tracks;
	size_t count;

	tracks = ops_trace_tracks(builder->trace, &count);
	return tracks[builder->events->track[row]].kind == OPS_TRACK_STREAM;
}

static void event_tree_add_row(struct builder *builder, uint32_t row)
{
	struct event_tree_object *tree = builder->tree;
	const struct ops_events *e = builder->events;
	uint32_t node = tree->count++, track = e->track[row];
	size_t count;

	tree->refs[node] = row;
	builder->node[row] = node;
	builder->track_of_node[node] = track;
	if (event_tree_on_device(builder, row)) {
		uint32_t launch = builder->launch[row];

		tree->parent[node] = launch == OPS_NONE ? OPS_NONE : builder->node[launch];
		tree->thread[node] = tree->parent[node] == OPS_NONE ? NO_THREAD : tree->thread[tree->parent[node]];
		return;
	}
	tree->thread[node] = ops_trace_tracks(builder->trace, &count)[track].number;
	tree->parent[node] = parent_on_track(builder, track, e->forward_thread[row], e->start_ns[row]);
	if (e->end_ns[row] > e->start_ns[row])
		builder->open[track] = node;
}

static void event_tree_add_record(struct builder *builder, uint32_t index)
{
	struct event_tree_object *tree = builder->tree;
	const struct ops_memory_record *record = &builder->records[index];
	uint32_t node = tree->count++;
	size_t count;

	tree->refs[node] = index | OPS_MEMORY_REF;
	builder->track_of_node[node] = record->track;
	tree->thread[node] = ops_trace_tracks(builder->trace, &count)[record->track].number;
	tree->parent[node] = parent_on_track(builder, record->track, 0, record->time_ns);
}

static void event_tree_find_launches(struct builder *builder)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(builder->trace, &count);

	memset(builder->launch, 0xff, builder->events->count * sizeof(*builder->launch));
	for (size_t i = 0; i < count; i++)
		if (links[i].kind == OPS_LINK_LAUNCH && links[i].from < links[i].to && ops_ext_raw_row(builder->trace, links[i].from))
			builder->launch[links[i].to] = links[i].from;
}

/* Adds the nodes in order of time, each below its parent. */
static void add_all(struct builder *builder, size_t record_count)
{
	const struct ops_events *e = builder->events;
	size_t at = 0;

	for (size_t row = 0; row <= e->count; row++) {
		int64_t until_ns = row < e->count ? e->start_ns[row] : INT64_MAX;

		for (; at < record_count && builder->records[at].time_ns < until_ns; at++)
			event_tree_add_record(builder, (uint32_t)at);
		if (row < e->count && ops_ext_raw_row(builder->trace, (uint32_t)row))
			event_tree_add_row(builder, (uint32_t)row);
	}
}

static void sort_children(struct event_tree_object *tree)
{
	uint32_t roots = tree->count, *start = tree->child_start;

	/* Counted one position ahead; each child then moves its parent's position to where the next one begins. */
	for (uint32_t i = 0; i < tree->count; i++)
		start[(tree->parent[i] == OPS_NONE ? roots : tree->parent[i]) + 2]++;
	for (uint32_t i = 2; i < roots + 3; i++)
		start[i] += start[i - 1];
	for (uint32_t i = 0; i < tree->count; i++)
		tree->children[start[(tree->parent[i] == OPS_NONE ? roots : tree->parent[i]) + 1]++] = i;
}

/* Returns false if out of memory. */
static bool build(struct event_tree_object *tree)
{
	size_t record_count;
	struct builder builder = {
		.tree = tree,
		.trace = tree->trace->trace,
		.events = ops_trace_events(tree->trace->trace),
		.records = ops_trace_memory(tree->trace->trace, &record_count),
	};
	size_t rows = builder.events->count, nodes = rows + record_count + 1;
	bool ok;

	ops_trace_tracks(builder.trace, &builder.track_count);
	builder.open = PyMem_RawMalloc((builder.track_count + 1) * sizeof(*builder.open));
	builder.launch = PyMem_RawMalloc((rows + 1) * sizeof(*builder.launch));
	builder.node = PyMem_RawMalloc((rows + 1) * sizeof(*builder.node));
	builder.track_of_node = PyMem_RawMalloc(nodes * sizeof(*builder.track_of_node));
	tree->refs = PyMem_RawMalloc(nodes * sizeof(*tree->refs));
	tree->parent = PyMem_RawMalloc(nodes * sizeof(*tree->parent));
	tree->thread = PyMem_RawMalloc(nodes * sizeof(*tree->thread));
	tree->child_start = PyMem_RawCalloc(nodes + 2, sizeof(*tree->child_start));
	tree->children = PyMem_RawMalloc(nodes * sizeof(*tree->children));
	ok = builder.open && builder.launch && builder.node && builder.track_of_node && tree->refs && tree->parent && tree->thread &&
	     tree->child_start && tree->children && ops_ext_tensor_blocks_init(&tree->blocks, tree->trace->trace);
	if (ok) {
		memset(builder.open, 0xff, builder.track_count * sizeof(*builder.open));
		event_tree_find_launches(&builder);
		add_all(&builder, record_count);
		sort_children(tree);
	}
	PyMem_RawFree(builder.open);
	PyMem_RawFree(builder.launch);
	PyMem_RawFree(builder.node);
	PyMem_RawFree(builder.track_of_node);
	return ok;
}

/* --- type ------------------------------------------------------------------------------------------------------------------- */

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"trace", "use_device", NULL};
	struct ops_ext_state *state = PyType_GetModuleState(type);
	struct event_tree_object *self;
	PyObject *trace, *use_device = Py_None;
	bool built;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O:EventTree", names, state->trace, &trace, &use_device))
		return NULL;
	self = (struct event_tree_object *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->trace = (struct trace_object *)Py_NewRef(trace);
	self->use_device = Py_NewRef(use_device);
	OPS_EXT_WITHOUT_GIL(built = build(self));
	if (!built) {
		Py_DECREF(self);
		return PyErr_NoMemory();
	}
	return (PyObject *)self;
}

static void tree_dealloc(PyObject *object)
{
	struct event_tree_object *self = (struct event_tree_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	ops_ext_tensor_blocks_release(&self->blocks);
	PyMem_RawFree(self->refs);
	PyMem_RawFree(self->parent);
	PyMem_RawFree(self->thread);
	PyMem_RawFree(self->child_start);
	PyMem_RawFree(self->children);
	Py_XDECREF(self->use_device);
	Py_XDECREF(self->trace);
	type->tp_free(object);
	Py_DECREF(type);
}

PyObject *ops_ext_tree_children(struct event_tree_object *tree, uint32_t node)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)tree);
	uint32_t first = tree->child_start[node], count = tree->child_start[node + 1] - first;
	PyObject *list = state ? PyList_New(count) : NULL;

	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *event = ops_ext_profiler_event_new(state, tree, tree->children[first + i]);

		if (event)
			PyList_SET_ITEM(list, i, event);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *tree_roots(PyObject *object, PyObject *unused)
{
	(void)unused;
	return ops_ext_tree_children((struct event_tree_object *)object, ((struct event_tree_object *)object)->count);
}

static PyMethodDef tree_methods[] = {
	{"roots", tree_roots, METH_NOARGS, "roots()\n--\n\nA list of the events that nothing encloses."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot tree_slots[] = {
	{Py_tp_doc, "EventTree(trace, use_device=None)\n--\n\nThe events of a trace, nested as torch's C++ nests them."},
	{Py_tp_new, tree_new},
	{Py_tp_dealloc, tree_dealloc},
	{Py_tp_methods, tree_methods},
	{0, NULL},
};

static PyType_Spec tree_spec = {
	.name = "opstrobe._core.EventTree",
	.basicsize = sizeof(struct event_tree_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = tree_slots,
};

int ops_ext_add_event_tree(PyObject *module)
{
	return ops_ext_add_type(module, &tree_spec, &ops_ext_state_of_module(module)->event_tree);
}
