/* SPDX-License-Identifier: Apache-2.0
 *
 * Zeros and copies that follow from operators; see data_content.h.
 */
#include "analyze/flow/data_content.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "derive/operator_call.h"
#include "derive/traffic.h"
#include "trace/inputs.h"

enum maker_kind {
	MAKES_ANYTHING,
	MAKES_ZEROS,
	MAKES_EQUAL,     /* elements that are all equal */
	MAKES_IDENTITY,
	MAKES_TRIANGLE,  /* a half of its input; the other half becomes zeros */
	MAKES_DIAGONAL,
	MAKES_BLOCKS,    /* its inputs on the diagonal, and zeros */
	KEEPS_DIAGONAL,  /* factors a matrix: the factors of a diagonal one are diagonal */
	MAKES_ONE_HOT,
	MAKES_COPIES,    /* copies of its inputs' elements, and zeros */
	KEEPS_ZEROS,     /* changes each element separately, and keeps zeros */
	MAKES_GATHERED,  /* rows of its first input, each as often as the indices have it */
	KEEPS_POSITIONS, /* treats all positions alike: equal ones in its first input give equal ones in its result, except
	                  * next to others, by chance or by their number */
	KEEPS_ROWS,      /* treats each row separately: equal rows give equal rows */
	WRITES_INDEXED,  /* writes to its first input, at indices */
	MAKES_PADDED,    /* copies of its inputs, each padded to the size of the largest */
	LOOKS_UP,        /* rows of its first input, by indices in the second: equal indices give equal rows */
	ADDS,            /* adds elements, also of a smaller tensor to all positions */
};

static const struct {
	const char *name; /* without "aten::" */
	enum maker_kind kind;
} makers[] = {
	{"zeros", MAKES_ZEROS},
	{"zeros_like", MAKES_ZEROS},
	{"new_zeros", MAKES_ZEROS},
	{"zero_", MAKES_ZEROS},
	{"_foreach_zero_", MAKES_ZEROS},

	{"ones", MAKES_EQUAL},
	{"ones_like", MAKES_EQUAL},
	{"new_ones", MAKES_EQUAL},
	{"full", MAKES_EQUAL},
	{"full_like", MAKES_EQUAL},
	{"new_full", MAKES_EQUAL},

	{"eye", MAKES_IDENTITY},

	{"tril", MAKES_TRIANGLE},
	{"triu", MAKES_TRIANGLE},

	{"block_diag", MAKES_BLOCKS},

	{"diag", MAKES_DIAGONAL},
	{"diagflat", MAKES_DIAGONAL},
	{"diag_embed", MAKES_DIAGONAL},

	{"cholesky", KEEPS_DIAGONAL},
	{"inverse", KEEPS_DIAGONAL},
	{"linalg_cholesky", KEEPS_DIAGONAL},
	{"linalg_inv", KEEPS_DIAGONAL},

	{"one_hot", MAKES_ONE_HOT},

	{"cat", MAKES_COPIES},
	{"clone", MAKES_COPIES},
	{"concat", MAKES_COPIES},
	{"constant_pad_nd", MAKES_COPIES},
	{"contiguous", MAKES_COPIES},
	{"flatten", MAKES_COPIES},
	{"hstack", MAKES_COPIES},
	{"pad", MAKES_COPIES},
	{"pad_sequence", MAKES_PADDED},
	{"repeat", MAKES_COPIES},
	{"repeat_interleave", MAKES_COPIES},
	{"reshape", MAKES_COPIES},
	{"stack", MAKES_COPIES},
	{"tile", MAKES_COPIES},
	{"upsample_bicubic2d", MAKES_COPIES},
	{"upsample_bilinear2d", MAKES_COPIES},
	{"upsample_linear1d", MAKES_COPIES},
	{"upsample_nearest1d", MAKES_COPIES},
	{"upsample_nearest2d", MAKES_COPIES},
	{"upsample_nearest3d", MAKES_COPIES},
	{"upsample_trilinear3d", MAKES_COPIES},
	{"vstack", MAKES_COPIES},

	{"_to_copy", KEEPS_ZEROS},
	{"abs", KEEPS_ZEROS},
	{"copy_", KEEPS_ZEROS},
	{"div", KEEPS_ZEROS},
	{"div_", KEEPS_ZEROS},
	{"mul", KEEPS_ZEROS},
	{"mul_", KEEPS_ZEROS},
	{"neg", KEEPS_ZEROS},
	{"relu", KEEPS_ZEROS},
	{"to", KEEPS_ZEROS},
	{"type_as", KEEPS_ZEROS},

	{"add", ADDS},
	{"addmm", KEEPS_ROWS},
	{"batch_norm", KEEPS_POSITIONS},
	{"conv1d", KEEPS_POSITIONS},
	{"conv2d", KEEPS_POSITIONS},
	{"conv3d", KEEPS_POSITIONS},
	{"convolution", KEEPS_POSITIONS},
	{"dropout", KEEPS_POSITIONS},
	{"elu", KEEPS_ROWS},
	{"embedding", LOOKS_UP},
	{"gelu", KEEPS_ROWS},
	{"layer_norm", KEEPS_ROWS},
	{"leaky_relu", KEEPS_ROWS},
	{"linear", KEEPS_ROWS},
	{"relu_", KEEPS_ROWS},
	{"scaled_dot_product_attention", KEEPS_POSITIONS},
	{"sigmoid", KEEPS_ROWS},
	{"silu", KEEPS_ROWS},
	{"tanh", KEEPS_ROWS},

	{"index", MAKES_GATHERED},
	{"index_select", MAKES_GATHERED},

	{"fill_diagonal_", WRITES_INDEXED},
	{"index_put", WRITES_INDEXED},
	{"index_put_", WRITES_INDEXED},
	{"scatter", WRITES_INDEXED},
	{"scatter_", WRITES_INDEXED},
};

static enum maker_kind maker_kind_of(struct ops_string name)
{
	if (!ops_string_starts(name, "aten::"))
		return MAKES_ANYTHING;
	name = (struct ops_string){name.bytes + sizeof("aten::") - 1, name.size - (sizeof("aten::") - 1)};
	for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
		if (ops_string_is(name, makers[i].name))
			return makers[i].kind;
	return MAKES_ANYTHING;
}

/* The reads of a node, over all values. */
struct read {
	int64_t bytes, content_bytes; /* bytes read, and the part of them that is content */
	int64_t largest_bytes, others_bytes;
	int64_t missing_bytes; /* largest number of missing bytes of a single value */
	struct data_content main; /* content of the largest value */
	struct data_content lacking; /* content of the value with most missing bytes, and bytes read of it */
	int64_t lacking_bytes;
	int64_t dense_bytes; /* largest number of bytes of a single value without padding */
};

int64_t data_content_read(const struct data_content *contents, const struct data_use *use)
{
	return contents[use->value].bytes < use->bytes ? contents[use->value].bytes : use->bytes;
}

bool data_content_reads_diagonal(const struct data_flow *flow, const struct data_content *contents, uint32_t node, int64_t bytes_min)
{
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind == DATA_READS && use->bytes >= bytes_min && contents[use->value].diagonal)
			return true;
	}
	return false;
}

static struct read sum_reads(const struct data_flow *flow, const struct data_content *contents, uint32_t node)
{
	struct read read = {.main = {.origin = OPS_NONE}, .lacking = {.origin = OPS_NONE}};

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		int64_t content = data_content_read(contents, use);

		if (use->kind != DATA_READS && use->kind != DATA_SELECTS)
			continue;
		read.bytes = ops_sum(read.bytes, use->bytes);
		read.content_bytes = ops_sum(read.content_bytes, content);
		if (use->bytes > read.largest_bytes) {
			read.others_bytes = ops_sum(read.others_bytes, read.largest_bytes);
			read.largest_bytes = use->bytes;
			read.main = contents[use->value];
		} else {
			read.others_bytes = ops_sum(read.others_bytes, use->bytes);
		}
		if (use->bytes - content > read.missing_bytes) {
			read.missing_bytes = use->bytes - content;
			read.lacking = contents[use->value];
			read.lacking_bytes = use->bytes;
		}
		if (!contents[use->value].positional && use->bytes > read.dense_bytes)
			read.dense_bytes = use->bytes;
	}
	return read;
}

/* Finds the tensors of a call, including those in lists. */
static bool find_inputs(const struct data_flow *flow, uint32_t node, struct operator_call *ret_call)
{
	uint32_t inputs = flow->memory.events->inputs ? flow->memory.events->inputs[node] : OPS_NONE;
	struct ops_input_cursor cursor;
	struct ops_string list;

	ret_call->count = 0;
	if (inputs == OPS_NONE)
		return false;
	list = ops_trace_inputs(flow->memory.trace, inputs);
	cursor = ops_inputs_open(list.bytes, list.size);
	while (ret_call->count < OPERATOR_ARGUMENTS_MAX && ops_inputs_next(&cursor, &ret_call->arguments[ret_call->count]))
		if (operator_has_negative_size(&ret_call->arguments[ret_call->count++]))
			return false;
	return ret_call->count > 0;
}

/* Returns the number of elements that a call writes at its indices; -1: unknown. Lists with undefined tensors are not
 * recorded, but the operator reshapes each index. */
static int64_t indexed_elements(const struct data_flow *flow, uint32_t node)
{
	const struct ops_events *events = flow->memory.events;
	struct operator_call call, part;
	size_t indices = 0, dimensions;
	int64_t most = 1;

	if (!find_inputs(flow, node, &call) || !operator_is_tensor(&call, 0, false))
		return -1;
	if (ops_string_ends(ops_trace_string(flow->memory.trace, events->name[node]), "fill_diagonal_"))
		return call.arguments[0].n ? ops_input_int(&call.arguments[0], 0) : -1;
	if (call.count > 2 && call.arguments[1].tag == OPS_INPUT_INT) /* scatter has a dimension before the index */
		return operator_is_tensor(&call, 2, false) ? operator_elements(&call.arguments[2], 0, call.arguments[2].n) : -1;
	dimensions = call.arguments[0].n;
	for (uint32_t row = node + 1; row < events->count && events->start_ns[row] < events->end_ns[node]; row++) {
		int64_t elements;

		if (!ops_string_is(ops_trace_string(flow->memory.trace, events->name[row]), "aten::reshape") || !find_inputs(flow, row, &part) ||
		    !operator_is_tensor(&part, 0, false))
			continue;
		elements = operator_elements(&part.arguments[0], 0, part.arguments[0].n);
		most = elements > most ? elements : most;
		indices++;
	}
	return indices > 0 && indices <= dimensions
	               ? ops_product(most, operator_elements(&call.arguments[0], indices, dimensions))
	               : -1;
}

/* Returns the bytes of a diagonal: of as many elements as one dimension of the new value has. */
static int64_t diagonal_bytes(int64_t bytes, int64_t size)
{
	return size > 0 ? bytes / size : bytes;
}

/* Returns the size given by the arguments of eye. */
static int64_t identity_size(const struct operator_call *call)
{
	const struct ops_input *size = &call->arguments[0];

	return size->tag == OPS_INPUT_INT && ops_input_int(size, 0) > 0 ? ops_input_int(size, 0) : 0;
}

/* Returns the number of elements of all tensors passed to a call, including those in lists. `ret_distinct` counts
 * elements at distinct addresses. */
static int64_t given_elements(const struct operator_call *call, int64_t *ret_distinct)
{
	int64_t elements = 0;

	*ret_distinct = 0;
	for (size_t i = 0; i < call->count; i++) {
		bool single = operator_is_tensor(call, i, false);
		struct ops_input_cursor cursor = ops_input_items(&call->arguments[i]);
		struct ops_input item = call->arguments[i];

		while (single || (call->arguments[i].tag == OPS_INPUT_TENSOR_LIST && ops_inputs_next(&cursor, &item))) {
			int64_t own = operator_has_negative_size(&item) ? 0 : operator_elements(&item, 0, item.n);

			elements = ops_sum(elements, own);
			item.dtype = 0; /* count one byte per element, since files omit the types in lists */
			*ret_distinct = ops_sum(*ret_distinct, own ? traffic_tensor_bytes(&item) : 0);
			if (single)
				break;
		}
	}
	return elements;
}

/* Returns the content of a value made of copies of a call's tensors. Only the storages of some of them are recorded. */
static struct data_content content_of_copies(const struct data_flow *flow, uint32_t node, const struct read *read,
                                             const struct operator_call *call, int64_t bytes)
{
	bool is_joined = call->arguments[0].tag == OPS_INPUT_TENSOR_LIST;
	bool pads = ops_string_contains(ops_trace_string(flow->memory.trace, flow->memory.events->name[node]), "pad");
	struct data_content content = read->lacking;
	int64_t distinct, elements = given_elements(call, &distinct), given = 0;

	/* The result has at least as many elements as the arguments, all of one type. */
	if (elements > 0)
		given = is_joined ? (int64_t)((double)bytes * ((double)distinct / (double)elements)) : read->bytes;
	content.bytes = given - (read->bytes - read->content_bytes);
	if (given <= 0 || content.bytes <= 0 || content.bytes >= bytes)
		return (struct data_content){.bytes = bytes, .origin = OPS_NONE};
	content.gathered = false;
	if (given < bytes) {
		content.positional = pads && (!content.kind || content.positional);
		content.kind |= pads ? CONTENT_ZEROS : CONTENT_COPIES;
		content.origin = node;
	}
	content.constant = false;
	return content;
}

/* Returns the content of tensors that are padded to the size of the largest, each with its own number of elements. */
static struct data_content content_of_padded(const struct operator_call *call, int64_t bytes, uint32_t node)
{
	struct data_content content = {.bytes = bytes, .origin = OPS_NONE};
	struct ops_input_cursor cursor = ops_input_items(&call->arguments[0]);
	int64_t sum = 0, largest = 0, count = 0;
	struct ops_input item;

	if (call->arguments[0].tag != OPS_INPUT_TENSOR_LIST)
		return content;
	for (; ops_inputs_next(&cursor, &item); count++) {
		int64_t elements = operator_has_negative_size(&item) ? 0 : operator_elements(&item, 0, item.n);

		sum = ops_sum(sum, elements);
		largest = elements > largest ? elements : largest;
	}
	if (largest > 0 && sum < ops_product(largest, count))
		content = (struct data_content){.bytes = (int64_t)((double)bytes * ((double)sum / ((double)largest * (double)count))), .origin = node,
		                                .kind = CONTENT_ZEROS, .positional = true};
	return content;
}

/* Returns the content of a matrix that has the matrices of a list on its diagonal. */
static struct data_content content_of_blocks(const struct operator_call *call, int64_t bytes, uint32_t node)
{
	struct data_content content = {.bytes = bytes, .origin = OPS_NONE};
	struct ops_input_cursor cursor = ops_input_items(&call->arguments[0]);
	double elements = 0, rows = 0, columns = 0;
	struct ops_input item;

	if (call->arguments[0].tag != OPS_INPUT_TENSOR_LIST)
		return content;
	while (ops_inputs_next(&cursor, &item)) {
		if (operator_has_negative_size(&item) || item.n != 2)
			return content;
		rows += (double)ops_input_int(&item, 0);
		columns += (double)ops_input_int(&item, 1);
		elements += (double)ops_input_int(&item, 0) * (double)ops_input_int(&item, 1);
	}
	if (elements > 0 && elements < rows * columns)
		content = (struct data_content){.bytes = (int64_t)((double)bytes * (elements / rows / columns)), .origin = node, .kind = CONTENT_ZEROS};
	return content;
}

/* Returns whether padding stays padding in a sum: of a smaller tensor, or of padded sequences with any tensor, such as embeddings of the
 * types of tokens. There, nothing but the padding is at these positions; zeros that a program writes into may get values. */
static bool keeps_padding(const struct data_flow *flow, const struct read *read)
{
	uint32_t origin = read->lacking.origin;

	if (read->dense_bytes < read->lacking_bytes)
		return true;
	return read->dense_bytes == read->lacking_bytes && origin != OPS_NONE &&
	       maker_kind_of(ops_trace_string(flow->memory.trace, flow->memory.events->name[origin])) == MAKES_PADDED;
}

/* Returns the content of rows that a padded tensor of indices selects, or of a sum that keeps padding. */
static struct data_content content_of_padding(const struct read *read, int64_t bytes)
{
	struct data_content content = read->lacking;

	content.bytes = (int64_t)((double)bytes * (double)content.bytes / (double)read->lacking_bytes);
	content.kind = CONTENT_COPIES;
	content.constant = false;
	return content;
}

/* Returns the content of selected elements: there are at most as many different ones as in the first input. */
static struct data_content content_of_gathered(const struct operator_call *call, int64_t bytes, uint32_t node)
{
	struct data_content content = {.bytes = bytes, .origin = OPS_NONE};
	const struct ops_input *source = &call->arguments[0];
	int64_t given;

	if (source->tag != OPS_INPUT_TENSOR || source->n < 2)
		return content;
	given = ops_product(operator_elements(source, 0, source->n), (int64_t)ops_dtype_bytes(source->dtype));
	return given > 0 && given < bytes
	               ? (struct data_content){.bytes = given, .origin = node, .kind = CONTENT_COPIES, .gathered = true}
	               : content;
}

static struct data_content content_of_zeros(int64_t bytes, uint32_t node)
{
	return (struct data_content){.bytes = bytes, .origin = node, .kind = CONTENT_ZEROS};
}

/* Returns the content of a new value of `bytes` that a node creates. */
static struct data_content content_of_new(const struct data_flow *flow, uint32_t node, const struct read *read, enum maker_kind kind,
                                          int64_t bytes)
{
	struct data_content content = {.bytes = bytes, .origin = OPS_NONE};
	struct operator_call call;
	bool known = find_inputs(flow, node, &call);

	if (kind == MAKES_ZEROS) {
		content = (struct data_content){.origin = node, .kind = CONTENT_ZEROS, .constant = true};
	} else if (kind == MAKES_EQUAL) {
		content.constant = true;
	} else if (kind == MAKES_IDENTITY && known && identity_size(&call)) {
		content = content_of_zeros(diagonal_bytes(bytes, identity_size(&call)), node);
		content.diagonal = true;
	} else if (kind == MAKES_TRIANGLE && read->main.constant && bytes == read->largest_bytes) {
		content = content_of_zeros(bytes / 2, node);
		content.triangle = true;
	} else if (kind == MAKES_DIAGONAL && read->bytes > 0 && read->bytes < bytes) {
		content = content_of_zeros(read->bytes, node);
		content.diagonal = true;
	} else if (kind == MAKES_BLOCKS && known) {
		content = content_of_blocks(&call, bytes, node);
	} else if (kind == KEEPS_DIAGONAL && read->main.diagonal && bytes == read->largest_bytes) {
		content = read->main;
	} else if (kind == MAKES_ONE_HOT && read->bytes > 0 && read->bytes < bytes) {
		content = content_of_zeros(read->bytes, node); /* input and output are 64-bit integers */
	} else if (kind == WRITES_INDEXED && read->main.kind == CONTENT_ZEROS && indexed_elements(flow, node) >= 0 && known) {
		content = content_of_zeros(ops_sum(read->main.bytes, ops_product(indexed_elements(flow, node),
		                                                                 (int64_t)ops_dtype_bytes(call.arguments[0].dtype))), node);
	} else if (kind == MAKES_GATHERED && known) {
		content = content_of_gathered(&call, bytes, node);
	} else if (kind == MAKES_PADDED && known) {
		content = content_of_padded(&call, bytes, node);
	} else if (read->lacking.positional && (kind == LOOKS_UP || (kind == ADDS && keeps_padding(flow, read)))) {
		content = content_of_padding(read, bytes);
	} else if (kind == MAKES_COPIES && known) {
		content = content_of_copies(flow, node, read, &call, bytes);
	} else if (kind == KEEPS_ZEROS && read->main.kind == CONTENT_ZEROS && read->others_bytes < read->largest_bytes / 2) {
		content = read->main;
		content.bytes = (int64_t)((double)bytes * ((double)read->main.bytes / (double)read->largest_bytes));
		content.constant = false;
	} else if (read->main.gathered && ((kind == KEEPS_ZEROS && !read->others_bytes) ||
	                                   (kind == KEEPS_ROWS && read->others_bytes < read->largest_bytes))) {
		content = read->main;
		content.bytes = (int64_t)((double)bytes * ((double)read->main.bytes / (double)read->largest_bytes));
	} else if ((kind == KEEPS_ZEROS || kind == KEEPS_POSITIONS || kind == KEEPS_ROWS) && read->main.positional && read->others_bytes < read->largest_bytes) {
		content = read->main;
		content.bytes = (int64_t)((double)bytes * ((double)read->main.bytes / (double)read->largest_bytes));
		content.kind = CONTENT_COPIES;
	}
	if (content.bytes > bytes)
		content = (struct data_content){.bytes = bytes, .origin = OPS_NONE};
	return content;
}

/* Returns true if a copy writes to complete positions: all elements of the last dimension of the tensor that it is a part
 * of, as for samples that are padded, or elements of a row of indices. A block on a diagonal is not such a part. */
static bool copies_to_positions(const struct data_flow *flow, uint32_t node)
{
	struct operator_call call;
	const struct ops_input *part = &call.arguments[0];

	if (!find_inputs(flow, node, &call) || part->tag != OPS_INPUT_TENSOR)
		return false;
	if (part->n == 1) /* of a tensor of indices, each element is a position */
		return part->dtype == OPS_DTYPE_INT64 && ops_input_int(part, 1) == 1;
	return part->n >= 2 &&
	       ops_input_int(part, (size_t)2 * part->n - 1) == 1 &&
	       ops_input_int(part, (size_t)2 * part->n - 2) == ops_input_int(part, part->n - 1u);
}

/* Returns the content of the next version of a value. `use` is the part that the node changes. */
static struct data_content content_of_next(const struct data_flow *flow, uint32_t node, const struct data_content *before,
                                           int64_t bytes, const struct data_use *use, enum maker_kind kind)
{
	bool is_copied_into = ops_string_is(ops_trace_string(flow->memory.trace, flow->memory.events->name[node]), "aten::copy_");
	struct data_content content = *before;
	struct operator_call call;
	int64_t elements;

	if ((kind == KEEPS_POSITIONS || kind == KEEPS_ROWS) && before->positional) {
		content.kind = CONTENT_COPIES;
		return content;
	}
	if (kind == KEEPS_ROWS && before->gathered)
		return content;
	content.gathered = content.diagonal = false;
	if (is_copied_into && use->bytes < bytes) {
		content.bytes = ops_sum(content.bytes, use->bytes);
		content.positional = (before->constant || before->positional) && copies_to_positions(flow, node);
	} else if (kind == WRITES_INDEXED && (elements = indexed_elements(flow, node)) >= 0 && find_inputs(flow, node, &call)) {
		content.bytes = ops_sum(content.bytes, ops_product(elements, (int64_t)ops_dtype_bytes(call.arguments[0].dtype)));
		content.positional = false;
	} else if (kind != KEEPS_ZEROS || is_copied_into) {
		content.bytes = bytes;
	}
	content.constant = false;
	if (content.bytes >= bytes || (before->kind != CONTENT_ZEROS && !is_copied_into))
		content = (struct data_content){.bytes = bytes, .origin = OPS_NONE};
	return content;
}

static const struct data_use *use_of_value(const struct data_flow *flow, uint32_t node, uint32_t value)
{
	for (uint32_t i = 0; i < flow->nodes[node].count; i++)
		if (flow->uses.items[flow->nodes[node].first + i].value == value)
			return &flow->uses.items[flow->nodes[node].first + i];
	return NULL;
}

static void trace_content(const struct data_flow *flow, struct data_content *contents, uint32_t node)
{
	enum maker_kind kind = maker_kind_of(ops_trace_string(flow->memory.trace, flow->memory.events->name[node]));
	struct read read;

	if (kind == MAKES_ANYTHING)
		return;
	read = sum_reads(flow, contents, node);
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];
		uint32_t previous = flow->memory.values.items[value].previous;
		const struct data_use *use = previous == OPS_NONE ? NULL : use_of_value(flow, node, previous);

		if (!use || use->kind == DATA_OVERWRITES)
			contents[value] = content_of_new(flow, node, &read, kind, flow->values[value].bytes);
		else
			contents[value] = content_of_next(flow, node, &contents[previous], flow->values[value].bytes, use, kind);
	}
}

struct data_content *data_content_of(const struct data_flow *flow)
{
	size_t count = flow->memory.values.count;
	struct data_content *contents = ops_realloc_array(NULL, count + 1, sizeof(*contents));

	for (size_t i = 0; contents && i < count; i++)
		contents[i] = (struct data_content){.bytes = flow->values[i].bytes, .origin = OPS_NONE};
	for (uint32_t node = 0; contents && node < flow->memory.events->count; node++)
		if (flow->nodes[node].made_count)
			trace_content(flow, contents, node);
	return contents;
}
