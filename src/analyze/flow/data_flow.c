/* SPDX-License-Identifier: Apache-2.0
 *
 * The data flow of a trace; see data_flow.h.
 */
#include "analyze/flow/data_flow.h"

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/text.h"

struct tracer {
	struct data_flow *flow;
	struct memory_edges edges;
	uint32_t *use_of; /* by value: its last use; only that of the present node counts */
	uint32_t *row_of; /* by value: the row of its last use */
	int64_t *row_bytes; /* by value: bytes that this row uses of it, summed over several tensors */
	int64_t new_bytes; /* that the present node allocates */
};

static struct ops_string data_flow_inputs(const struct memory_flow *memory, uint32_t row)
{
	uint32_t inputs = memory->events->inputs ? memory->events->inputs[row] : OPS_NONE;

	return inputs == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_inputs(memory->trace, inputs);
}

/* Returns true if the operator at the row writes to a storage of the edge without an update, as with `out=`. In-place
 * operators, whose names end in '_', do not have it. */
static bool is_out_argument(const struct memory_flow *memory, const struct memory_edge *edge)
{
	return edge->storage > 0 && !ops_string_ends(ops_trace_string(memory->trace, memory->events->name[edge->row]), "_");
}

/* --- parts of a tensor -------------------------------------------------------------------------------------------- */

static int64_t whole_at(const struct ops_input *input, int64_t default_value)
{
	return input->tag == OPS_INPUT_INT ? ops_input_int(input, 0) : default_value;
}

/* Returns how many of `size` elements the slice [start:end:step] selects, as in Python. */
static int64_t sliced(int64_t size, int64_t start, int64_t end, int64_t step)
{
	start = start < 0 ? ops_sum(start, size) : start;
	start = start < 0 ? 0 : start < size ? start : size;
	end = end < 0 ? ops_sum(end, size) : end;
	end = end < start ? start : end < size ? end : size;
	return step > 0 ? (end - start) / step + ((end - start) % step != 0) : 0;
}

/* Returns the elements of a diagonal of two dimensions, by default the first two, in all others. */
static int64_t diagonal_elements(const struct ops_input *tensor, const struct ops_input *arguments, size_t count)
{
	int64_t offset = count > 0 ? whole_at(&arguments[0], 0) : 0, left = 1;
	int64_t dimensions[2] = {count > 1 ? whole_at(&arguments[1], 0) : 0, count > 2 ? whole_at(&arguments[2], 1) : 1};
	int64_t sizes[2];

	for (int i = 0; i < 2; i++) {
		dimensions[i] += dimensions[i] < 0 ? tensor->n : 0;
		if (dimensions[i] < 0 || dimensions[i] >= tensor->n)
			return -1;
		sizes[i] = ops_input_int(tensor, (size_t)dimensions[i]);
	}
	sizes[0] += offset < 0 ? offset : 0;
	sizes[1] -= offset > 0 ? offset : 0;
	for (int64_t i = 0; i < tensor->n; i++)
		left = i == dimensions[0] || i == dimensions[1] ? left : ops_product(left, ops_input_int(tensor, (size_t)i));
	sizes[0] = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
	return ops_product(left, sizes[0] > 0 ? sizes[0] : 0);
}

int64_t data_flow_narrowed_elements(struct ops_string name, struct ops_string inputs)
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_input tensor, arguments[4];
	size_t count = 0;
	int64_t dimension, size, left;

	if (!ops_inputs_next(&cursor, &tensor) || !ops_input_is_tensor(tensor.tag) ||
	    operator_has_negative_size(&tensor))
		return -1;
	while (count < 4 && ops_inputs_next(&cursor, &arguments[count]))
		count++;
	if (ops_string_is(name, "aten::diagonal"))
		return diagonal_elements(&tensor, arguments, count);
	dimension = count ? whole_at(&arguments[0], INT64_MIN) : INT64_MIN;
	dimension += dimension < 0 ? tensor.n : 0;
	if (count < 2 || dimension < 0 || dimension >= tensor.n)
		return -1;
	size = ops_input_int(&tensor, (size_t)dimension);
	if (ops_string_is(name, "aten::select"))
		left = size > 0;
	else if (ops_string_is(name, "aten::slice"))
		left = sliced(size, whole_at(&arguments[1], 0), count > 2 ? whole_at(&arguments[2], INT64_MAX) : INT64_MAX,
		              count > 3 ? whole_at(&arguments[3], 1) : 1);
	else
		left = count > 2 ? whole_at(&arguments[2], size) : size;
	left = left < 0 ? 0 : left < size ? left : size;
	return ops_product(ops_product(operator_elements(&tensor, 0, (size_t)dimension), left),
	                   operator_elements(&tensor, (size_t)dimension + 1, tensor.n));
}

/* --- uses ---------------------------------------------------------------------------------------------------------- */

/* Derives the use of a value from an edge that reads it. `written`: the event's schema says that it writes to the
 * storage. */
static struct data_use use_of(struct tracer *tracer, const struct memory_edge *edge, bool written)
{
	const struct memory_flow *memory = &tracer->flow->memory;
	const struct ops_memory_block *block = &memory->blocks.items[memory->values.items[edge->value].block];
	struct ops_string inputs = data_flow_inputs(memory, edge->row);
	enum operator_kind kind = data_flow_kind(tracer->flow, edge->row);
	struct data_use use = {.value = edge->value, .node = edge->node, .next = OPS_NONE, .kind = DATA_READS, .bytes = block->bytes};
	struct ops_input tensor;
	bool known = ops_memory_find_tensor(inputs, edge->storage, &tensor) && ops_dtype_bytes(tensor.dtype) &&
	             !operator_has_negative_size(&tensor);

	if (known && traffic_tensor_bytes(&tensor) < use.bytes)
		use.bytes = traffic_tensor_bytes(&tensor);
	if (written) {
		bool overwrites = kind == OPERATOR_OVERWRITES || is_out_argument(memory, edge);

		use.kind = overwrites && use.bytes >= block->bytes ? DATA_OVERWRITES : DATA_UPDATES;
	} else if (kind == OPERATOR_VIEWS || (kind == OPERATOR_MAY_VIEW && !tracer->new_bytes)) {
		use.kind = DATA_VIEWS;
	} else if (kind == OPERATOR_NARROWS) {
		int64_t elements = data_flow_narrowed_elements(ops_trace_string(memory->trace, memory->events->name[edge->row]), inputs);

		use.kind = known && elements >= 0 ? DATA_NARROWS : DATA_VIEWS;
		elements = known && elements >= 0 ? ops_product(elements, (int64_t)ops_dtype_bytes(tensor.dtype)) : 0;
		use.bytes = elements < use.bytes ? elements : use.bytes;
		if (use.bytes == block->bytes) /* x[:] */
			use.kind = DATA_VIEWS;
	} else if (kind == OPERATOR_SELECTS && !edge->storage && edge->row == edge->node) {
		use.kind = DATA_SELECTS;
		use.bytes = tracer->new_bytes < use.bytes ? tracer->new_bytes : use.bytes;
	}
	return use;
}

/* Merges two uses by one node: the stronger one determines what the node does, of equally strong ones the larger. Rows
 * below a node that selects do not read more than the selection. */
static void merge_uses(struct data_use *use, const struct data_use *other)
{
	if (use->kind != DATA_SELECTS && (other->kind > use->kind || (other->kind == use->kind && other->bytes > use->bytes))) {
		use->bytes = other->bytes;
		use->kind = other->kind;
	}
}

/* Adds a use by a row. An operator may read several parts of a value, such as the query, the key and the value of one
 * projection, and a node may create several views, as chunk does. */
static bool add_use(struct tracer *tracer, const struct data_use *added, uint32_t row)
{
	struct data_flow *flow = tracer->flow;
	uint32_t number = (uint32_t)flow->uses.count, *before = &tracer->use_of[added->value];
	struct data_use one = *added, *use = &one;

	if (*before != OPS_NONE && flow->uses.items[*before].node == use->node) {
		struct data_use *earlier = &flow->uses.items[*before];

		if (earlier->kind == use->kind && use->kind == DATA_NARROWS)
			use->bytes = ops_sum(use->bytes, earlier->bytes);
		else if (tracer->row_of[use->value] == row)
			use->bytes = ops_sum(use->bytes, tracer->row_bytes[use->value]);
		if (use->bytes > flow->values[use->value].bytes)
			use->bytes = flow->values[use->value].bytes;
		tracer->row_of[use->value] = row;
		tracer->row_bytes[use->value] = use->bytes;
		merge_uses(earlier, use);
		return true;
	}
	tracer->row_of[use->value] = row;
	tracer->row_bytes[use->value] = use->bytes;
	*before = number;
	flow->nodes[use->node].count++;
	return OPS_ARRAY_APPEND(&flow->uses, *use);
}

static bool is_new(const struct memory_flow *memory, const struct memory_edge *edge)
{
	return edge->write && memory->values.items[edge->value].previous == OPS_NONE;
}

/* An edge that writes the next version of a value directly follows the edge that reads it. */
static bool is_written(const struct memory_flow *memory, const struct memory_edge *edge, const struct memory_edge *end)
{
	const struct memory_edge *next = edge + 1;

	return next < end && next->write && next->row == edge->row && next->storage == edge->storage &&
	       memory->values.items[next->value].previous == edge->value;
}

/* Returns true if the operator that creates a view of a part is within another that creates it, like aten::slice in
 * aten::narrow. */
static bool is_within_narrowing(const struct tracer *tracer, uint32_t row)
{
	uint32_t parent = tracer->flow->memory.events->parent[row];

	return parent != OPS_NONE && data_flow_kind(tracer->flow, parent) == OPERATOR_NARROWS;
}

static bool trace_node(struct tracer *tracer, uint32_t node)
{
	struct data_flow *flow = tracer->flow;
	size_t count;
	const struct memory_edge *edges = ops_memory_edges_of(&tracer->edges, node, &count);

	tracer->new_bytes = 0;
	flow->nodes[node].first = (uint32_t)flow->uses.count;
	flow->nodes[node].first_made = (uint32_t)flow->made.count;
	for (size_t i = 0; i < count; i++) {
		if (is_new(&flow->memory, &edges[i]))
			tracer->new_bytes = ops_sum(tracer->new_bytes, flow->values[edges[i].value].bytes);
		if (!edges[i].write)
			continue;
		flow->values[edges[i].value].node = node;
		flow->nodes[node].made_count++;
		if (!OPS_ARRAY_APPEND(&flow->made, edges[i].value))
			return false;
	}
	for (size_t i = 0; i < count; i++) {
		struct data_use use;

		if (edges[i].write || edges[i].row == OPS_NONE)
			continue;
		use = use_of(tracer, &edges[i], is_written(&flow->memory, &edges[i], edges + count));
		if (use.kind == DATA_NARROWS && is_within_narrowing(tracer, edges[i].row))
			continue;
		if (!add_use(tracer, &use, edges[i].row))
			return false;
	}
	return true;
}

/* Nodes are in order of their starts, so the uses of each value are too. */
static void link_uses(struct data_flow *flow)
{
	for (uint32_t i = 0; i < flow->uses.count; i++) {
		struct data_value *value = &flow->values[flow->uses.items[i].value];

		*(value->first == OPS_NONE ? &value->first : &flow->uses.items[value->last].next) = i;
		value->last = i;
	}
}

static bool data_flow_trace(struct tracer *tracer)
{
	struct data_flow *flow = tracer->flow;
	const struct memory_flow *memory = &flow->memory;

	for (size_t i = 0; i < memory->values.count; i++) {
		const struct ops_memory_block *block = &memory->blocks.items[memory->values.items[i].block];

		flow->values[i] = (struct data_value){
			.node = OPS_NONE, .first = OPS_NONE, .last = OPS_NONE, .bytes = block->bytes,
			.complete = memory->lives.items[memory->values.items[i].block].reported && block->start_ns != INT64_MIN &&
			            block->end_ns != INT64_MAX,
		};
	}
	for (size_t node = 0; node < memory->events->count; node++)
		if (!trace_node(tracer, (uint32_t)node))
			return false;
	link_uses(flow);
	return true;
}

bool data_flow_init(struct data_flow *flow, const struct ops_trace *trace)
{
	struct tracer tracer = {.flow = flow};
	bool done;

	*flow = (struct data_flow){.values = NULL};
	done = ops_memory_flow_init(&flow->memory, trace) && ops_memory_edges_init(&tracer.edges, &flow->memory) &&
	       flow->memory.edges.count < UINT32_MAX;
	if (done) {
		flow->values = ops_realloc_array(NULL, flow->memory.values.count + 1, sizeof(*flow->values));
		flow->nodes = ops_alloc_zeroed(flow->memory.events->count + 1, sizeof(*flow->nodes));
		flow->operators = ops_operators_of(trace);
		tracer.use_of = ops_alloc_none(flow->memory.values.count + 1);
		tracer.row_of = ops_alloc_none(flow->memory.values.count + 1);
		tracer.row_bytes = ops_alloc_zeroed(flow->memory.values.count + 1, sizeof(*tracer.row_bytes));
		done = flow->values && flow->nodes && flow->operators && tracer.use_of && tracer.row_of && tracer.row_bytes &&
		       data_flow_trace(&tracer);
	}
	ops_memory_edges_release(&tracer.edges);
	ops_free(tracer.use_of);
	ops_free(tracer.row_of);
	ops_free(tracer.row_bytes);
	return done;
}

void data_flow_release(struct data_flow *flow)
{
	ops_memory_flow_release(&flow->memory);
	ops_free(flow->values);
	ops_free(flow->nodes);
	OPS_ARRAY_RELEASE(&flow->uses);
	OPS_ARRAY_RELEASE(&flow->made);
}

/* Returns the bytes of the part that a use narrows further, as x[:, a:b, c:d] does with x[:, a:b]; 0: the complete value. */
static int64_t narrowed_before(const struct data_flow *flow, const struct data_use *use)
{
	struct ops_input tensor;
	int64_t bytes;

	if (!ops_memory_find_tensor(data_flow_inputs(&flow->memory, use->node), 0, &tensor) || operator_has_negative_size(&tensor))
		return 0;
	bytes = traffic_tensor_bytes(&tensor);
	return bytes < flow->values[use->value].bytes ? bytes : 0;
}

struct data_uses data_flow_uses_of(const struct data_flow *flow, uint32_t value)
{
	struct data_uses uses = {.reader = OPS_NONE};
	int64_t narrowed = 0, before = 0;

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];

		uses.updates |= use->kind == DATA_UPDATES;
		if (use->kind == DATA_NARROWS) {
			if (before > 0 && narrowed_before(flow, use) == before)
				narrowed -= before;
			narrowed = ops_sum(narrowed, use->bytes);
			before = use->bytes;
		}
		if (use->kind != DATA_READS && use->kind != DATA_SELECTS)
			continue;
		uses.read_bytes = ops_sum(uses.read_bytes, use->bytes);
		uses.reader = uses.readers++ ? uses.reader : use->node;
	}
	/* Bytes read of a part were counted with both. */
	uses.read_bytes = narrowed > uses.read_bytes ? narrowed : uses.read_bytes;
	if (uses.read_bytes > flow->values[value].bytes)
		uses.read_bytes = flow->values[value].bytes;
	return uses;
}

bool data_flow_is_selected_from(const struct data_flow *flow, uint32_t value)
{
	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next)
		if (flow->uses.items[i].kind == DATA_NARROWS || flow->uses.items[i].kind == DATA_SELECTS)
			return true;
	return false;
}

int64_t data_flow_made_bytes(const struct data_flow *flow, uint32_t node)
{
	const struct data_node *made = &flow->nodes[node];
	int64_t bytes = 0;

	for (uint32_t i = 0; i < made->made_count; i++)
		bytes = ops_sum(bytes, flow->values[flow->made.items[made->first_made + i]].bytes);
	return bytes;
}

int64_t data_flow_read_bytes(const struct data_flow *flow, uint32_t node)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind >= DATA_SELECTS)
			bytes = ops_sum(bytes, use->bytes);
	}
	return bytes;
}
