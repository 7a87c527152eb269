/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in the raw views (torch's _TensorMetadata): sizes, strides, type, device and memory. Tensors with the same `id` share
 * their storage: it is the number of a block of the memory timeline.
 */
#include "raw_views.h"

#include <stdlib.h>
#include <string.h>

#include <opstrobe/inputs.h>

/* An input that shows a tensor: the row, and the index of the tensor in it. */
struct tensor_place {
	uint32_t row;
	uint32_t tensor;
};

/* Where and when a block begins. */
struct block_start {
	uint64_t address;
	int64_t start_ns;
	uint32_t block;
	uint8_t device_type;
};

/* --- blocks ------------------------------------------------------------------------------------------------------------- */

static int tensor_metadata_compare_starts(const void *a, const void *b)
{
	const struct block_start *x = a, *y = b;

	if (x->device_type != y->device_type)
		return x->device_type < y->device_type ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

bool ops_ext_tensor_blocks_init(struct tensor_blocks *blocks, struct ops_trace *trace)
{
	struct ops_error error;
	size_t count;

	ops_trace_memory(trace, &count);
	if (count == 0)
		return true;
	if (ops_memory_timeline_new(trace, &blocks->timeline, &error))
		return false;
	count = blocks->timeline->block_count;
	blocks->starts = PyMem_RawMalloc((count + 1) * sizeof(*blocks->starts));
	if (!blocks->starts)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct ops_memory_block *block = &blocks->timeline->blocks[i];

		blocks->starts[i] = (struct block_start){block->address, block->start_ns, (uint32_t)i, block->device_type};
	}
	qsort(blocks->starts, count, sizeof(*blocks->starts), tensor_metadata_compare_starts);
	return true;
}

void ops_ext_tensor_blocks_release(struct tensor_blocks *blocks)
{
	ops_memory_timeline_free(blocks->timeline);
	PyMem_RawFree(blocks->starts);
	PyMem_RawFree(blocks->described);
	*blocks = (struct tensor_blocks){0};
}

uint32_t ops_ext_tensor_block(const struct tensor_blocks *blocks, uint8_t device_type, uint64_t address, int64_t time_ns,
                              bool freed_at)
{
	const struct block_start sought = {address, time_ns, UINT32_MAX, device_type};
	size_t low = 0, high = blocks->timeline ? blocks->timeline->block_count : 0;

	while (low < high) { /* finds the first block after the key */
		size_t middle = low + (high - low) / 2;

		if (tensor_metadata_compare_starts(&blocks->starts[middle], &sought) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0; low--) {
		const struct block_start *start = &blocks->starts[low - 1];

		if (start->device_type != device_type || start->address != address)
			return OPS_NONE;
		if (!freed_at || blocks->timeline->blocks[start->block].end_ns == time_ns)
			return start->block;
	}
	return OPS_NONE;
}

/* --- torch's values ------------------------------------------------------------------------------------------------------- */

static PyObject *tensor_metadata_dtype_of(uint8_t dtype)
{
	const char *name = ops_dtype_python_name(dtype);

	return *name ? ops_ext_imported("torch", name) : Py_NewRef(Py_None);
}

PyObject *ops_ext_tensor_device(uint8_t device_type, int device_index)
{
	PyObject *type = ops_ext_imported("torch", "device");
	char name[OPS_MEMORY_DEVICE_ROOM];
	PyObject *device = NULL;

	ops_memory_device_name((struct ops_memory_device){device_type, (int16_t)device_index}, name);
	if (type != Py_None)
		device = PyObject_CallFunction(type, "s", name);
	Py_DECREF(type);
	if (!device && PyErr_Occurred())
		PyErr_Clear(); /* a device that this version of torch does not have */
	return device ? device : Py_NewRef(Py_None);
}

static PyObject *list_of_ints(const struct ops_input *item, size_t first, size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; list && i < count; i++) {
		PyObject *value = PyLong_FromLongLong(ops_input_int(item, first + i));

		if (value)
			PyList_SET_ITEM(list, (Py_ssize_t)i, value);
		else
			Py_CLEAR(list);
	}
	return list;
}

/* --- making tensors ----------------------------------------------------------------------------------------------------- */

/* The memory of a tensor. */
struct memory_of_tensor {
	bool known;
	uint64_t address;
	uint64_t id;
};

/* Returns a new _TensorMetadata; steals the references. If one is NULL, it has set an exception. */
static PyObject *make_tensor(const struct tensor_view *view, PyObject *sizes, PyObject *strides, PyObject *dtype,
                             PyObject *layout, PyObject *device, const struct memory_of_tensor *memory)
{
	Py_ssize_t dim = sizes ? PyList_GET_SIZE(sizes) : 0;
	PyObject *id = memory->known ? PyLong_FromUnsignedLongLong(memory->id) : Py_NewRef(Py_None);
	PyObject *address = memory->known ? PyLong_FromUnsignedLongLong(memory->address) : Py_NewRef(Py_None);

	/* Building with a NULL fails, and drops the others. */
	return ops_ext_raw_fields(view->state, "_TensorMetadata",
	                          Py_BuildValue("{sNsNsNsNsNsnsNsNsNsO}", "sizes", sizes, "strides", strides, "dtype", dtype,
	                                        "layout", layout, "device", device, "dim", dim, "id", id,
	                                        "allocation_id", Py_XNewRef(id), "storage_data_ptr", address, "impl_ptr",
	                                        Py_None));
}

/* The tensor for a Python number is made just before the operator is called: it is the last allocation of the number's size on
 * the thread. */
static uint32_t block_of_number(const struct tensor_view *view, uint32_t row, uint8_t dtype)
{
	const struct ops_trace *trace = view->trace->trace;
	const struct ops_events *events = ops_trace_events(trace);
	int64_t bytes = dtype == 11 ? 1 : dtype == 10 ? 16 : 8; /* bool, complex128; int64 and float64 */
	size_t count, low = 0, high, least;
	const struct ops_memory_record *records = ops_trace_memory(trace, &count);
	uint32_t outermost = row;

	while (events->parent[outermost] != OPS_NONE && events->kind[events->parent[outermost]] == OPS_EVENT_CPU_OP)
		outermost = events->parent[outermost];
	for (high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (records[middle].time_ns < events->start_ns[outermost])
			low = middle + 1;
		else
			high = middle;
	}
	for (least = low > 16 ? low - 16 : 0; low > least; low--) {
		const struct ops_memory_record *record = &records[low - 1];
		uint32_t block;

		if (record->track != events->track[row] || record->device_type != 0 || record->bytes != bytes)
			continue;
		block = ops_ext_tensor_block(view->blocks, 0, record->address, record->time_ns, false);
		return block != OPS_NONE && view->blocks->timeline->blocks[block].end_ns > events->start_ns[row] ? block : OPS_NONE;
	}
	return OPS_NONE;
}

/* Returns the memory of the tensor of a storage among a row's inputs. */
static struct memory_of_tensor memory_of_input(const struct tensor_view *view, uint32_t row, const struct ops_input *item,
                                               const struct ops_storage *storage)
{
	int64_t time_ns = ops_trace_events(view->trace->trace)->start_ns[row];
	uint32_t block;

	if (!storage || !view->blocks->timeline)
		return (struct memory_of_tensor){.known = false};
	if (storage->address == 0)
		block = block_of_number(view, row, item->dtype);
	else
		block = ops_ext_tensor_block(view->blocks, (uint8_t)storage->device_type, storage->address, time_ns, false);
	if (block != OPS_NONE)
		return (struct memory_of_tensor){true, view->blocks->timeline->blocks[block].address, block};
	/* An id without a block, because programs regard an input as a tensor only if it has an id. */
	return (struct memory_of_tensor){storage->address == 0, 0, view->blocks->timeline->block_count + (uint64_t)row};
}

/* `storage` is NULL if it was not recorded. */
static PyObject *tensor_of_input(const struct tensor_view *view, const struct ops_input *item,
                                 const struct ops_storage *storage, const struct memory_of_tensor *memory)
{
	bool strided = item->tag == OPS_INPUT_TENSOR;
	PyObject *device;

	if (storage && storage->address)
		device = ops_ext_tensor_device((uint8_t)storage->device_type, (int)storage->device_index - 1);
	else
		device = storage || view->on_cpu ? ops_ext_tensor_device(0, -1) : Py_NewRef(Py_None);
	return make_tensor(view, list_of_ints(item, 0, item->n), list_of_ints(item, item->n, strided ? item->n : 0),
	                   tensor_metadata_dtype_of(item->dtype), ops_ext_imported("torch", strided ? "strided" : "sparse_coo"),
	                   device, memory);
}

/* --- tensors of a row and their storages ----------------------------------------------------------------------------------- */

static bool tensor_metadata_is_tensor(const struct ops_input *item)
{
	return item->tag == OPS_INPUT_TENSOR || item->tag == OPS_INPUT_TENSOR_PLAIN;
}

static bool tensor_metadata_is_empty(const struct ops_input *item)
{
	for (size_t i = 0; i < item->n; i++)
		if (ops_input_int(item, i) == 0)
			return true;
	return false;
}

/* Matches storages to tensors. Tensors without memory have none in the list, so the others can be matched only if those are
 * exactly the empty ones, or if there are none. */
struct storage_walk {
	const struct ops_trace *trace;
	uint32_t row;
	uint32_t next;
	bool any;
	bool skip_empty;
	struct ops_storage storage;
};

static void count_tensors(struct ops_input_cursor cursor, size_t *tensors, size_t *empty)
{
	struct ops_input item;

	while (ops_inputs_next(&cursor, &item)) {
		if (item.tag == OPS_INPUT_TENSOR_LIST)
			count_tensors(ops_input_items(&item), tensors, empty);
		else if (tensor_metadata_is_tensor(&item))
			*tensors += 1, *empty += tensor_metadata_is_empty(&item);
	}
}

static struct ops_input_cursor open_inputs(const struct ops_trace *trace, uint32_t row)
{
	uint32_t id = ops_trace_events(trace)->inputs[row];
	struct ops_string list = id == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_inputs(trace, id);

	return ops_inputs_open(list.bytes, list.size);
}

static struct storage_walk walk_storages(const struct ops_trace *trace, uint32_t row)
{
	struct storage_walk walk = {.trace = trace, .row = row};
	size_t tensors = 0, empty = 0, storages = 0;

	while (ops_event_storage(trace, row, storages, &walk.storage))
		storages++;
	if (storages == 0)
		return walk;
	count_tensors(open_inputs(trace, row), &tensors, &empty);
	walk.skip_empty = tensors != storages;
	walk.any = tensors == storages || tensors - empty == storages;
	return walk;
}

/* Returns the storage of the next tensor; NULL: unknown. */
static const struct ops_storage *next_storage(struct storage_walk *walk, const struct ops_input *item)
{
	if (!walk->any || (walk->skip_empty && tensor_metadata_is_empty(item)))
		return NULL;
	return ops_event_storage(walk->trace, walk->row, walk->next++, &walk->storage) ? &walk->storage : NULL;
}

/* --- inputs --------------------------------------------------------------------------------------------------------------- */

static PyObject *input_list(const struct tensor_view *view, struct ops_input_cursor cursor, struct storage_walk *walk);

static PyObject *input_value(const struct tensor_view *view, const struct ops_input *item, struct storage_walk *walk)
{
	switch (item->tag) {
	case OPS_INPUT_TENSOR:
	case OPS_INPUT_TENSOR_PLAIN: {
		const struct ops_storage *storage = next_storage(walk, item);
		struct memory_of_tensor memory = memory_of_input(view, walk->row, item, storage);

		return tensor_of_input(view, item, storage, &memory);
	}
	case OPS_INPUT_TENSOR_LIST:
		return input_list(view, ops_input_items(item), walk);
	case OPS_INPUT_INT:
		return PyLong_FromLongLong(ops_input_int(item, 0));
	case OPS_INPUT_BOOL:
		return PyBool_FromLong(item->n);
	case OPS_INPUT_DOUBLE:
		return PyFloat_FromDouble(ops_input_double(item, 0));
	case OPS_INPUT_COMPLEX:
		return PyComplex_FromDoubles(ops_input_double(item, 0), ops_input_double(item, 1));
	default: /* includes lists of scalars, as in torch */
		Py_RETURN_NONE;
	}
}

static PyObject *input_list(const struct tensor_view *view, struct ops_input_cursor cursor, struct storage_walk *walk)
{
	PyObject *list = PyList_New(0);
	struct ops_input item;

	while (list && ops_inputs_next(&cursor, &item)) {
		PyObject *value = input_value(view, &item, walk);

		if (!value || PyList_Append(list, value) < 0)
			Py_CLEAR(list);
		Py_XDECREF(value);
	}
	return list;
}

PyObject *ops_ext_tensor_inputs(const struct tensor_view *view, uint32_t row)
{
	const struct ops_trace *trace = view->trace->trace;
	struct storage_walk walk = walk_storages(trace, row);

	return input_list(view, open_inputs(trace, row), &walk);
}

/* --- tensors of modules and optimizers ------------------------------------------------------------------------------------- */

/* Returns the block of that category that existed at an address at the end. */
static struct memory_of_tensor memory_at_end(const struct tensor_view *view, uint64_t address,
                                             enum ops_memory_category category)
{
	static const uint8_t kinds[] = {0, 1, 12, 13, 15, 19, 20}; /* CPU, CUDA, XPU, MPS, HPU, MTIA, PrivateUse1 */

	for (size_t i = 0; address && i < sizeof(kinds); i++) {
		uint32_t block = ops_ext_tensor_block(view->blocks, kinds[i], address, INT64_MAX, true);

		if (block != OPS_NONE && view->blocks->timeline->blocks[block].category == category)
			return (struct memory_of_tensor){true, address, block};
	}
	return (struct memory_of_tensor){.known = false};
}

PyObject *ops_ext_tensor_of_fields(const struct tensor_view *view, PyObject *fields, enum ops_memory_category category)
{
	PyObject *sizes, *strides, *dtype, *layout, *device;
	struct memory_of_tensor memory;
	unsigned long long address;

	if (!PyArg_ParseTuple(fields, "OOOOOK", &sizes, &strides, &dtype, &layout, &device, &address))
		return NULL;
	memory = memory_at_end(view, address, category);
	return make_tensor(view, PySequence_List(sizes), PySequence_List(strides), Py_NewRef(dtype), Py_NewRef(layout),
	                   Py_NewRef(device), &memory);
}

/* Records for each block the first input that shows it. Returns 0, or -1 with an exception set. */
static int describe_blocks(const struct tensor_view *view)
{
	const struct ops_trace *trace = view->trace->trace;
	const struct ops_events *events = ops_trace_events(trace);
	struct tensor_blocks *blocks = view->blocks;
	size_t count = blocks->timeline->block_count;

	if (blocks->described)
		return 0;
	blocks->described = PyMem_RawMalloc((count + 1) * sizeof(*blocks->described));
	if (!blocks->described)
		return PyErr_NoMemory(), -1;
	for (size_t i = 0; i < count; i++)
		blocks->described[i] = (struct tensor_place){OPS_NONE, 0};
	for (uint32_t row = 0; row < events->count; row++) {
		struct storage_walk walk = walk_storages(trace, row);
		struct ops_storage storage;

		for (uint32_t i = 0; walk.any && ops_event_storage(trace, row, i, &storage); i++) {
			uint32_t block = storage.address == 0 ? OPS_NONE
			                                      : ops_ext_tensor_block(blocks, (uint8_t)storage.device_type, storage.address,
			                                                             events->start_ns[row], false);
			if (block != OPS_NONE && blocks->described[block].row == OPS_NONE)
				blocks->described[block] = (struct tensor_place){row, i};
		}
	}
	return 0;
}

/* Finds the tensor with the storage `tensor` of a row. Returns false if there is none. */
static bool find_item(struct ops_input_cursor cursor, struct storage_walk *walk, uint32_t tensor, struct ops_input *ret_item)
{
	struct ops_input item;

	while (ops_inputs_next(&cursor, &item)) {
		if (item.tag == OPS_INPUT_TENSOR_LIST) {
			if (find_item(ops_input_items(&item), walk, tensor, ret_item))
				return true;
		} else if (tensor_metadata_is_tensor(&item) && next_storage(walk, &item) && walk->next == tensor + 1) {
			*ret_item = item;
			return true;
		}
	}
	return false;
}

PyObject *ops_ext_tensor_of_storage(const struct tensor_view *view, const struct ops_storage *storage,
                                    const struct ops_storage *like, int64_t time_ns)
{
	const struct ops_trace *trace = view->trace->trace;
	uint32_t block = ops_ext_tensor_block(view->blocks, (uint8_t)storage->device_type, storage->address, time_ns, false);
	uint32_t shown = ops_ext_tensor_block(view->blocks, (uint8_t)like->device_type, like->address, time_ns, false);
	struct memory_of_tensor memory = {block != OPS_NONE, storage->address, block};
	struct ops_input item;

	if (shown != OPS_NONE && describe_blocks(view) < 0)
		return NULL;
	if (shown != OPS_NONE && view->blocks->described[shown].row != OPS_NONE) {
		struct tensor_place place = view->blocks->described[shown];
		struct storage_walk walk = walk_storages(trace, place.row);

		if (find_item(open_inputs(trace, place.row), &walk, place.tensor, &item))
			return tensor_of_input(view, &item, storage, &memory);
	}
	/* No operator used it, so only its size is known. */
	return make_tensor(view, Py_BuildValue("[K]", (unsigned long long)storage->bytes), Py_BuildValue("[i]", 1),
	                   tensor_metadata_dtype_of(0), ops_ext_imported("torch", "strided"),
	                   ops_ext_tensor_device((uint8_t)storage->device_type, (int)storage->device_index - 1), &memory);
}
