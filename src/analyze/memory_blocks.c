/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows storages through time. Events, the allocator's reports and the program's notes are merged in order of
 * time; a table from addresses to the last block there gives the storage of an address at each moment.
 *
 * Not all memory is reported. Memory allocated before the recording appears when the program names it or an operator uses
 * it; memory of another library (NumPy, a loader's shared memory) appears when an operator uses it. Both are assumed to
 * live until their last use, unless the program still names them at the end. A new allocation at an address implies that the old
 * one was freed, with or without a report.
 */
#include "analyze/memory_flow.h"

#include <inttypes.h>
#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/inputs.h>

#include "analyze/device.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/sum.h"
#include "derive/memory_events.h"
#include "trace/inputs.h"

/* Types of one machine; other types in a file are ignored. */
#define TYPES_MAX 32
#define DEVICES_MAX 256

struct follower {
	struct memory_flow *flow;
	struct ops_map last; /* from address and device type to the last block there */
	int64_t first_ns;    /* when the program had named all existing tensors; INT64_MAX: never */
	int64_t last_ns;     /* when it last began to name all tensors; INT64_MAX: never */
	uint32_t detach;     /* names; OPS_NONE if the trace does not contain them */
	uint32_t add;
};

/* Addresses have at most 56 bits. */
static uint64_t place_key(uint64_t address, uint8_t device_type)
{
	return address ^ (uint64_t)device_type << 56;
}

static struct ops_memory_block *block_at(const struct follower *follower, uint64_t address, uint8_t device_type)
{
	uint32_t number = ops_map_find(&follower->last, place_key(address, device_type));

	return number == OPS_NONE ? NULL : &follower->flow->blocks.items[number];
}

static bool is_live(const struct ops_memory_block *block)
{
	return block->end_ns == INT64_MAX;
}

/* Gives a block a new value. Returns false if out of memory. */
static bool add_value(struct memory_flow *flow, uint32_t block, int64_t time_ns)
{
	struct memory_life *life = &flow->lives.items[block];
	struct memory_value *value = OPS_ARRAY_PUSH(&flow->values);

	if (!value)
		return false;
	*value = (struct memory_value){
		.time_ns = time_ns,
		.block = block,
		.previous = life->value,
		.number = life->value == OPS_NONE ? 0 : flow->values.items[life->value].number + 1,
		.category = OPS_MEMORY_UNKNOWN,
	};
	life->value = (uint32_t)flow->values.count - 1;
	return true;
}

static bool memory_blocks_add_edge(struct memory_flow *flow, struct memory_edge edge)
{
	return edge.node == OPS_NONE || OPS_ARRAY_APPEND(&flow->edges, edge);
}

static uint32_t memory_blocks_node_of(const struct memory_flow *flow, uint32_t row)
{
	return row == OPS_NONE ? OPS_NONE : flow->rows.node[row];
}

/* Ends a block that was freed without a report before a time. A block without any reports ends at its last use. */
static void end_untold(struct memory_flow *flow, uint32_t number, int64_t time_ns)
{
	struct ops_memory_block *block = &flow->blocks.items[number];
	const struct memory_life *life = &flow->lives.items[number];

	block->end_ns = time_ns - (time_ns > block->start_ns); /* must not overlap the block that replaces it */
	if (!life->reported && life->last_use_ns < block->end_ns)
		block->end_ns = life->last_use_ns;
}

/* Adds a block at an address, with the fields of `made`, and ends the previous block there. Returns NULL if out of
 * memory. */
static struct ops_memory_block *add_block(struct follower *follower, const struct ops_memory_block *made, bool reported)
{
	struct memory_flow *flow = follower->flow;
	struct ops_memory_block *block;
	struct memory_life *life;
	int64_t start_ns = made->start_ns;
	uint32_t *last, number = (uint32_t)flow->blocks.count;

	if (!OPS_ARRAY_RESERVE(&flow->blocks, 1) || number >= INT32_MAX)
		return NULL;
	last = ops_map_slot(&follower->last, place_key(made->address, made->device_type), number);
	if (!last)
		return NULL;
	if (*last != number && is_live(&flow->blocks.items[*last]))
		end_untold(flow, *last, start_ns);
	life = OPS_ARRAY_PUSH(&flow->lives);
	if (!life)
		return NULL;
	*life = (struct memory_life){start_ns, INT64_MIN, OPS_NONE, OPS_NONE, OPS_ROLE_NONE, reported};
	block = &flow->blocks.items[flow->blocks.count++];
	*block = *made;
	block->end_ns = INT64_MAX;
	*last = number;
	if (!add_value(flow, number, start_ns) ||
	    !memory_blocks_add_edge(flow, (struct memory_edge){memory_blocks_node_of(flow, made->row), life->value, made->row, OPS_NONE, true}))
		return NULL;
	life->written_by = memory_blocks_node_of(flow, made->row);
	return block;
}

/* --- reports of the allocator --------------------------------------------------------------------------------------- */

static bool memory_blocks_read_record(struct follower *follower, const struct ops_memory_record *record, uint32_t row,
                                      uint32_t stack)
{
	struct ops_memory_block *block = block_at(follower, record->address, record->device_type);
	const struct ops_memory_block made = {
		.start_ns = record->bytes < 0 ? INT64_MIN : record->time_ns,
		.address = record->address,
		.bytes = record->bytes < 0 ? (record->bytes == INT64_MIN ? INT64_MAX : -record->bytes) : record->bytes,
		.row = record->bytes < 0 ? OPS_NONE : row,
		.stack = record->bytes < 0 ? OPS_NONE : stack,
		.device_type = record->device_type,
		.device_index = record->device_index,
	};

	if (record->out_of_memory || record->bytes == 0)
		return true;
	if (record->bytes > 0)
		return add_block(follower, &made, true) != NULL;
	if (!block) /* the block is unknown, so it existed before the recording */
		block = add_block(follower, &made, true);
	if (!block)
		return false;
	if (is_live(block))
		block->end_ns = record->time_ns;
	return true;
}

/* --- storages of operators and of named tensors ----------------------------------------------------------------------- */

/* Returns the block of a storage at a time. An unreported block is new at that time or (`before`) has existed since
 * before the recording. Returns NULL if out of memory. */
static struct ops_memory_block *block_of(struct follower *follower, const struct ops_storage *storage, int64_t time_ns,
                                         bool before, uint32_t row)
{
	struct memory_flow *flow = follower->flow;
	struct ops_memory_block *block = block_at(follower, storage->address, storage->device_type);
	bool known = block != NULL;
	const struct ops_memory_block made = {
		.start_ns = before && !known ? INT64_MIN : time_ns,
		.address = storage->address,
		.bytes = (int64_t)storage->bytes,
		.row = before && !known ? OPS_NONE : row,
		.stack = OPS_NONE,
		.device_type = (uint8_t)storage->device_type,
		.device_index = (int16_t)((int)storage->device_index - 1),
	};

	/* A reported block is at least as large as its storage. If it is smaller, the storage is in another block, and
	 * the end of the reported one was not reported. */
	if (known && is_live(block) && flow->lives.items[block - flow->blocks.items].reported &&
	    (int64_t)storage->bytes > block->bytes)
		end_untold(flow, (uint32_t)(block - flow->blocks.items), time_ns);
	if (!known || !is_live(block))
		return add_block(follower, &made, false);
	if ((int64_t)storage->bytes > block->bytes)
		block->bytes = (int64_t)storage->bytes;
	return block;
}

static void memory_blocks_touch(struct memory_life *life, int64_t time_ns)
{
	if (time_ns > life->last_use_ns)
		life->last_use_ns = time_ns;
}

static uint8_t memory_blocks_rank_of(uint8_t role)
{
	static const uint8_t ranks[] = {
		[OPS_ROLE_TENSOR] = 1,   [OPS_ROLE_BUFFER] = 2,    [OPS_ROLE_GRADIENT] = 3,
		[OPS_ROLE_OPTIMIZER_STATE] = 4, [OPS_ROLE_PARAMETER] = 5,
	};

	return role < sizeof(ranks) ? ranks[role] : 0;
}

static void set_role(struct memory_flow *flow, uint32_t block, uint8_t role, uint32_t name)
{
	uint8_t *present = &flow->lives.items[block].role;

	if (memory_blocks_rank_of(role) > memory_blocks_rank_of(*present)) {
		*present = role;
		if (name != 0)
			flow->blocks.items[block].name = name;
	} else if (flow->blocks.items[block].name == 0 && role == *present) {
		flow->blocks.items[block].name = name;
	}
}

static bool memory_blocks_read_role(struct follower *follower, const struct ops_role_record *record)
{
	struct memory_flow *flow = follower->flow;
	struct ops_memory_block *block;
	uint32_t number;

	flow->has_roles = true;
	if (record->storage.address == 0) {
		*(record->storage.role == OPS_ROLE_TENSOR ? &follower->first_ns : &follower->last_ns) = record->time_ns;
		return true;
	}
	block = block_of(follower, &record->storage, record->time_ns, follower->first_ns == INT64_MAX, OPS_NONE);
	if (!block)
		return false;
	number = (uint32_t)(block - flow->blocks.items);
	set_role(flow, number, (uint8_t)record->storage.role, record->name);
	memory_blocks_touch(&flow->lives.items[number], record->time_ns);
	flow->lives.items[number].last_named_ns = record->time_ns;
	return true;
}

/* --- shapes of tensors ------------------------------------------------------------------------------------------------ */

static bool has_elements(const struct ops_input *tensor)
{
	for (uint16_t i = 0; i < tensor->n; i++)
		if (ops_input_int(tensor, i) == 0)
			return false;
	return true;
}

bool ops_memory_find_tensor(struct ops_string inputs, size_t nth, struct ops_input *ret_tensor)
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_input input;

	while (ops_inputs_next(&cursor, &input)) {
		struct ops_input_cursor inner = ops_input_items(&input);

		if (ops_input_is_tensor(input.tag) && has_elements(&input) && nth-- == 0) {
			*ret_tensor = input;
			return true;
		}
		while (input.tag == OPS_INPUT_TENSOR_LIST && ops_inputs_next(&inner, ret_tensor))
			if (has_elements(ret_tensor) && nth-- == 0) {
				ret_tensor->dtype = ret_tensor->dtype ? ret_tensor->dtype : UINT8_MAX;
				return true;
			}
	}
	return false;
}

/* Records the shape of a tensor that fills its storage. The shape of a part of the storage says less. Returns false if
 * out of memory. */
static bool note_shape(struct memory_flow *flow, struct ops_memory_block *block, const struct ops_storage *storage,
                       uint32_t row, size_t nth)
{
	uint32_t inputs = flow->events->inputs ? flow->events->inputs[row] : OPS_NONE;
	struct ops_buffer text = {0};
	struct ops_string list;
	struct ops_input tensor;

	if (block->shape || inputs == OPS_NONE || storage->bytes == 0)
		return true;
	list = ops_trace_inputs(flow->trace, inputs);
	if (!ops_memory_find_tensor(list, nth, &tensor) ||
	    ops_tensor_bytes(&tensor) != (int64_t)storage->bytes)
		return true;
	ops_buffer_append_text(&text, "[");
	for (uint16_t i = 0; i < tensor.n; i++)
		ops_buffer_printf(&text, "%s%" PRId64, i ? ", " : "", ops_input_int(&tensor, i));
	ops_buffer_printf(&text, "] %s", ops_dtype_python_name(tensor.dtype));
	if (!text.failed)
		block->shape = ops_intern_add(flow->shapes, text.bytes, text.size) + 1; /* OPS_INTERN_NONE becomes 0 */
	ops_buffer_release(&text);
	return block->shape != 0;
}

/* Processes a storage among an event's inputs. */
static bool read_use(struct follower *follower, uint32_t row, const struct ops_storage *storage, size_t nth)
{
	struct memory_flow *flow = follower->flow;
	const struct ops_events *e = flow->events;
	bool before = follower->first_ns == INT64_MAX || flow->rows.context[row] & MEMORY_IN_BACKWARD;
	struct ops_memory_block *block = block_of(follower, storage, e->start_ns[row], before, row);
	uint32_t node = flow->rows.node[row], number;
	struct memory_life *life;

	if (!block)
		return false;
	number = (uint32_t)(block - flow->blocks.items);
	life = &flow->lives.items[number];
	memory_blocks_touch(life, e->end_ns[row]);
	if (!note_shape(flow, block, storage, row, nth))
		return false;
	if (node == OPS_NONE || life->written_by == node)
		return true; /* no node, or one of the node's own storages */
	if (!memory_blocks_add_edge(flow, (struct memory_edge){node, life->value, row, (uint32_t)nth, false}))
		return false;
	if (!storage->written)
		return true;
	life->written_by = node;
	return add_value(flow, number, e->start_ns[node]) &&
	       memory_blocks_add_edge(flow, (struct memory_edge){node, life->value, row, (uint32_t)nth, true});
}

/* Autograd adopts a gradient by detaching it, or adds it to the existing one. */
static void note_gradient(struct follower *follower, uint32_t row, const struct ops_storage *first)
{
	const struct memory_flow *flow = follower->flow;
	const struct ops_events *e = flow->events;
	uint32_t parent = e->parent[row];

	if ((e->name[row] == follower->detach || e->name[row] == follower->add) && parent != OPS_NONE &&
	    flow->rows.context[parent] & MEMORY_IN_ACCUMULATE && flow->rows.region[parent] == parent)
		set_role(follower->flow, ops_map_find(&follower->last, place_key(first->address, (uint8_t)first->device_type)),
		         OPS_ROLE_GRADIENT, 0);
}

static bool memory_blocks_read_row(struct follower *follower, uint32_t row)
{
	const struct memory_flow *flow = follower->flow;
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(flow->trace, row, i, &storage); i++) {
		if (storage.address == 0)
			continue;
		if (!read_use(follower, row, &storage, i))
			return false;
		if (i == 0)
			note_gradient(follower, row, &storage);
	}
	return true;
}

/* --- memory from before the recording ----------------------------------------------------------------------------------- */

/* Returns the bytes on a device in blocks that are known to be older than the recording. */
static int64_t known_before(const struct memory_flow *flow, const struct ops_memory_record *of)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < flow->blocks.count; i++) {
		const struct ops_memory_block *block = &flow->blocks.items[i];

		if (block->start_ns == INT64_MIN && block->device_type == of->device_type && block->device_index == of->device_index)
			bytes = ops_sum(bytes, block->bytes);
	}
	return bytes;
}

/* Adds a block for the bytes that a device's allocator held at its first report and that are otherwise unknown. The
 * block lives to the end. */
static bool add_unknown(struct memory_flow *flow, const struct ops_memory_record *first)
{
	int64_t held = ops_difference((int64_t)first->total_allocated, first->bytes);
	int64_t bytes = ops_difference(held, known_before(flow, first));
	uint32_t number = (uint32_t)flow->blocks.count;
	struct ops_memory_block *block;
	struct memory_life *life;

	if (bytes <= 0)
		return true;
	if (number >= INT32_MAX || !OPS_ARRAY_RESERVE(&flow->blocks, 1) || !OPS_ARRAY_RESERVE(&flow->lives, 1))
		return false;
	block = &flow->blocks.items[flow->blocks.count++];
	*block = (struct ops_memory_block){.start_ns = INT64_MIN, .end_ns = INT64_MAX, .bytes = bytes, .row = OPS_NONE,
	                                   .stack = OPS_NONE, .device_type = first->device_type, .device_index = first->device_index};
	life = &flow->lives.items[flow->lives.count++];
	*life = (struct memory_life){INT64_MIN, INT64_MIN, OPS_NONE, OPS_NONE, OPS_ROLE_NONE, true};
	return add_value(flow, number, INT64_MIN);
}

/* Allocators of devices report their total with each record. The CPU's allocator counts only memory that a profiler
 * saw. */
static bool add_unknown_of_devices(struct memory_flow *flow)
{
	bool seen[TYPES_MAX][DEVICES_MAX] = {{false}};
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(flow->trace, &count);

	for (size_t i = 0; i < count; i++) {
		const struct ops_memory_record *record = &records[i];

		if (ops_device_is_host(record->device_type) || record->out_of_memory || record->total_allocated == 0 ||
		    record->total_allocated > INT64_MAX || record->device_type >= TYPES_MAX || record->device_index < -1 ||
		    record->device_index + 1 >= DEVICES_MAX || seen[record->device_type][record->device_index + 1])
			continue;
		seen[record->device_type][record->device_index + 1] = true;
		if (!add_unknown(flow, record))
			return false;
	}
	return true;
}

/* --- construction --------------------------------------------------------------------------------------------------- */

/* Unreported blocks that the program does not name at the end are gone after their last use. */
static void end_unreported(const struct follower *follower)
{
	struct memory_flow *flow = follower->flow;

	for (size_t i = 0; i < flow->blocks.count; i++) {
		struct ops_memory_block *block = &flow->blocks.items[i];
		const struct memory_life *life = &flow->lives.items[i];
		bool named = life->role > OPS_ROLE_NONE;

		if (follower->last_ns != INT64_MAX)
			named = life->last_named_ns >= follower->last_ns;
		if (!life->reported && is_live(block) && !named &&
		    (block->start_ns != INT64_MIN || follower->last_ns != INT64_MAX))
			block->end_ns = life->last_use_ns;
	}
}

/* `around`: ops_memory_events */
static bool memory_blocks_follow(struct follower *follower, const uint32_t *around)
{
	const struct memory_flow *flow = follower->flow;
	const struct ops_events *e = flow->events;
	size_t record_count, role_count, at = 0, role = 0;
	const struct ops_memory_record *records = ops_trace_memory(flow->trace, &record_count);
	const struct ops_role_record *roles = ops_trace_roles(flow->trace, &role_count);
	const uint32_t *stacks = ops_trace_memory_stacks(flow->trace);

	for (size_t row = 0; row <= e->count; row++) {
		int64_t until_ns = row < e->count ? e->start_ns[row] : INT64_MAX;

		while ((at < record_count && records[at].time_ns < until_ns) ||
		       (role < role_count && roles[role].time_ns < until_ns)) {
			bool report = at < record_count &&
			              (role == role_count || records[at].time_ns <= roles[role].time_ns);

			if (report ? !memory_blocks_read_record(follower, &records[at], around[at], stacks ? stacks[at] : OPS_NONE)
			           : !memory_blocks_read_role(follower, &roles[role]))
				return false;
			*(report ? &at : &role) += 1;
		}
		if (row < e->count && !memory_blocks_read_row(follower, (uint32_t)row))
			return false;
	}
	return true;
}

bool ops_memory_follow(struct memory_flow *flow)
{
	struct follower follower = {
		.flow = flow,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MAX,
		.detach = ops_trace_find_string(flow->trace, "aten::detach", strlen("aten::detach")),
		.add = ops_trace_find_string(flow->trace, "aten::add_", strlen("aten::add_")),
	};
	uint32_t *around = ops_memory_events(flow->trace);
	bool ok = around && memory_blocks_follow(&follower, around);

	if (ok)
		end_unreported(&follower);
	ok = ok && add_unknown_of_devices(flow);
	ops_free(around);
	ops_map_release(&follower.last);
	return ok;
}

bool ops_memory_flow_init(struct memory_flow *flow, const struct ops_trace *trace)
{
	*flow = (struct memory_flow){.trace = trace, .events = ops_trace_events(trace)};
	if (flow->events->storages)
		flow->shapes = ops_alloc_zeroed(1, sizeof(*flow->shapes));
	return (flow->shapes || !flow->events->storages) && ops_memory_rows_init(&flow->rows, trace) && ops_memory_follow(flow);
}

void ops_memory_flow_release(struct memory_flow *flow)
{
	OPS_ARRAY_RELEASE(&flow->blocks);
	OPS_ARRAY_RELEASE(&flow->lives);
	OPS_ARRAY_RELEASE(&flow->values);
	OPS_ARRAY_RELEASE(&flow->edges);
	ops_memory_rows_release(&flow->rows);
	if (flow->shapes)
		ops_intern_release(flow->shapes);
	ops_free(flow->shapes);
}
