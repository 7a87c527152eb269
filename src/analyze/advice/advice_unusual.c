/* SPDX-License-Identifier: Apache-2.0
 *
 * Unusual tensors: results that nothing reads, contents that are known by construction, and layouts.
 */
#include <stdio.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_unusual.h"
#include "base/alloc.h"
#include "base/text.h"

#define READ_MAX 0.5   /* maximum part of a result that is read */
#define EMPTY_MIN 0.25 /* minimum share of zeros or copies */
#define GROWS_MIN 0.75 /* minimum share of a copy's input that it has read before */
#define CACHE_LINE 64

/* Operators that join tensors, and where they did so. */
struct unusual_joins {
	struct ops_map read_by; /* by value: the last place at which a copy read it */
	int64_t *joined_bytes;  /* by place, the last for calls without one: size of its last result */
	uint8_t *grown;
};

static enum unusual of_results(const struct advice *advice, uint32_t node, struct unusual_call *ret_call)
{
	const struct data_flow *flow = advice->flow;
	int64_t made = 0, read = 0, largest = 0;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];
		const struct memory_value *of = &flow->memory.values.items[value];
		const struct ops_memory_block *block = &flow->memory.blocks.items[of->block];
		struct data_uses uses = data_flow_uses_of(flow, value);

		if (data_flow_is_scratch(flow, node, value))
			continue;
		if (of->previous != OPS_NONE || !flow->values[value].complete || uses.updates ||
		    (uses.read_bytes && !data_flow_is_selected_from(flow, value)) ||
		    advice_may_read_block(advice, block))
			return USUAL;
		made = ops_sum(made, block->bytes);
		read = ops_sum(read, uses.read_bytes);
		ret_call->value = block->bytes > largest ? value : ret_call->value;
		largest = block->bytes > largest ? block->bytes : largest;
	}
	ret_call->part = made > 0 ? (double)read / (double)made : 0;
	return made < UNUSUAL_BYTES_MIN ? USUAL : !read ? NEVER_READ : (double)read <= READ_MAX * (double)made ? READ_IN_PART : USUAL;
}

/* Each window of a convolution or pooling contains other elements, even if many elements are copies. */
static bool has_windows(const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_CONVOLUTION || advice_kind(advice, row) == OPERATOR_POOLING;
}

static enum unusual of_inputs(const struct advice *advice, const uint8_t *grown, uint32_t node, struct unusual_call *ret_call)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		const struct data_content *content = &advice->contents[use->value];

		ret_call->value = use->value;
		ret_call->part = use->bytes > 0 ? (double)data_content_read(advice->contents, use) / (double)use->bytes : 1;
		if (use->kind == DATA_READS && use->bytes >= UNUSUAL_BYTES_MIN && grown[use->value])
			return GROWN;
		/* Rows that are selected by indices are there to be summed or compared. */
		if (use->kind == DATA_READS && use->bytes >= UNUSUAL_BYTES_MIN && content->kind && !content->gathered && content->bytes > 0 &&
		    (double)data_content_read(advice->contents, use) <= (1 - EMPTY_MIN) * (double)use->bytes)
			return content->kind != CONTENT_COPIES ? MOSTLY_ZEROS : has_windows(advice, node) ? USUAL : MOSTLY_COPIES;
	}
	return USUAL;
}

/* Marks the result of a copy if the copy has read most of its inputs at this line before, and the result is larger than
 * that of then. Returns false if out of memory. */
static bool mark_grown(struct unusual_joins *joins, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	int64_t before = 0, read = 0, made = data_flow_made_bytes(flow, node);
	int64_t *joined_bytes = &joins->joined_bytes[advice->site[node] == OPS_NONE ? advice->sites.count : advice->site[node]];
	bool grows = made > *joined_bytes;

	*joined_bytes = made;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		uint32_t *site;

		if (use->kind < DATA_SELECTS)
			continue;
		site = ops_map_slot(&joins->read_by, use->value + 1, OPS_NONE);
		if (!site)
			return false;
		read = ops_sum(read, use->bytes);
		before = ops_sum(before, *site == advice->site[node] && *site != OPS_NONE ? use->bytes : 0);
		*site = advice->site[node];
	}
	grows = grows && read >= UNUSUAL_BYTES_MIN && (double)before >= GROWS_MIN * (double)read;
	for (uint32_t i = 0; grows && i < flow->nodes[node].made_count; i++)
		joins->grown[flow->made.items[flow->nodes[node].first_made + i]] = 1;
	return true;
}

uint8_t *advice_unusual_grown(const struct advice *advice)
{
	static const char *const patterns[] = {"aten::cat", "aten::concat", "aten::stack", "aten::hstack", "aten::vstack", NULL};
	struct unusual_joins joins = {.grown = ops_alloc_zeroed(advice->flow->memory.values.count + 1, 1)};
	uint8_t *copies = advice_names(advice, patterns);
	bool done;

	joins.joined_bytes = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*joins.joined_bytes));
	done = joins.grown && joins.joined_bytes && copies;
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (copies[advice->events->name[row]] && advice->flow->nodes[row].made_count)
			done = mark_grown(&joins, advice, row);
	if (!done) {
		ops_free(joins.grown);
		joins.grown = NULL;
	}
	ops_map_release(&joins.read_by);
	ops_free(joins.joined_bytes);
	ops_free(copies);
	return joins.grown;
}

/* Returns true if a node selects elements that are not complete rows of its input, so that each is in another cache
 * line: their number is not a multiple of the size of a row. A mask reads all of its tensor, and calls nonzero. */
static bool selects_across_rows(const struct advice *advice, uint32_t node)
{
	const struct ops_events *events = advice->events;
	int64_t row_elements, selected;
	struct ops_input input;

	if (!advice_input(advice, node, 0, &input) || input.tag != OPS_INPUT_TENSOR || input.n < 2 || advice_input_elements(&input) <= 0)
		return false;
	row_elements = advice_input_elements(&input) / ops_input_int(&input, 0);
	selected = data_flow_made_bytes(advice->flow, node) / (int64_t)advice_dtype_bytes(input.dtype);
	for (uint32_t row = node + 1; row < events->count && events->parent[row] != OPS_NONE && events->parent[row] >= node; row++)
		if (ops_string_is(advice_name(advice, row), "aten::nonzero"))
			return false;
	return row_elements > 1 && selected % row_elements && ops_input_int(&input, (size_t)2 * input.n - 1) == 1 &&
	       ops_product(row_elements, (int64_t)advice_dtype_bytes(input.dtype)) >= CACHE_LINE;
}

bool advice_only_selects(const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	bool selects = false;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind == DATA_READS && use->bytes > data_flow_made_bytes(flow, node))
			return false;
		selects |= use->kind == DATA_SELECTS;
	}
	return selects;
}

/* Returns the dimension along which a tensor is contiguous in memory; -1 for small tensors, and for tensors with one
 * element in each dimension. */
static int dense_dimension(const struct ops_input *tensor, int64_t *ret_stride)
{
	int dense = -1;

	*ret_stride = 0;
	for (size_t i = 0; tensor->tag == OPS_INPUT_TENSOR && i < tensor->n; i++) {
		int64_t stride = ops_input_int(tensor, tensor->n + i);

		if (ops_input_int(tensor, i) < 2 || stride <= 0 || (dense >= 0 && stride >= *ret_stride))
			continue;
		dense = (int)i;
		*ret_stride = stride;
	}
	return dense;
}

/* Returns the bytes of a tensor in memory: an expanded tensor repeats its elements. */
static int64_t avoidable_stored_bytes(const struct ops_input *tensor)
{
	int64_t bytes = (int64_t)advice_dtype_bytes(tensor->dtype);

	for (size_t i = 0; i < tensor->n; i++)
		bytes = ops_product(bytes, ops_input_int(tensor, tensor->n + i) ? ops_input_int(tensor, i) : 1);
	return bytes;
}

#define READERS_MIN 3 /* minimum number of operators that read a tensor for which another layout pays: changing it takes as long as reading it
                       * against its order */

/* Returns true if a node reads a tensor whose layout can be changed once: several operators read it, or it was there before. */
static bool has_lasting_input(const struct data_flow *flow, uint32_t node)
{
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind == DATA_READS && use->bytes >= UNUSUAL_BYTES_MIN &&
		    (flow->values[use->value].node == OPS_NONE || data_flow_uses_of(flow, use->value).readers >= READERS_MIN))
			return true;
	}
	return false;
}

/* Matrix products rearrange their inputs themselves. */
static enum unusual of_layout(const struct advice *advice, uint32_t row, bool computes_much)
{
	struct ops_input input;
	int order = -1;
	uint16_t dimensions = 0;

	for (size_t i = 0; !computes_much && advice_input(advice, row, i, &input); i++) {
		int64_t stride;
		int dense = dense_dimension(&input, &stride);

		if (dense < 0 || avoidable_stored_bytes(&input) < UNUSUAL_BYTES_MIN)
			continue;
		if (ops_product(stride, (int64_t)advice_dtype_bytes(input.dtype)) >= CACHE_LINE)
			return SCATTERED;
		if (order >= 0 && input.n == dimensions && dense != order)
			return has_lasting_input(advice->flow, row) ? AGAINST_EACH_OTHER : USUAL;
		order = dense;
		dimensions = input.n;
	}
	return USUAL;
}

enum unusual advice_unusual_layout(const struct advice *advice, uint32_t node, bool computes_much)
{
	if (advice_only_selects(advice, node) && selects_across_rows(advice, node))
		return SCATTERED;
	return of_layout(advice, node, computes_much);
}

struct unusual_call advice_unusual_of(const struct advice *advice, const uint8_t *grown, uint32_t node)
{
	struct unusual_call found = {.value = OPS_NONE};

	found.kind = of_inputs(advice, grown, node, &found);
	if (!found.kind) {
		found.value = OPS_NONE;
		found.kind = of_results(advice, node, &found);
	}
	if (!found.kind)
		found.value = OPS_NONE;
	return found;
}

/* Formats the line of a node with what happens there: ", made at forward (train.py:45),"; "" if it is unknown. */
static void unusual_place(const struct advice *advice, uint32_t node, const char *verb, char *text, size_t size)
{
	char line[256];

	advice_format_line(advice, node, line, sizeof(line));
	*text = '\0';
	if (*line)
		snprintf(text, size, ", %s at %s,", verb, line);
}

static struct ops_figure unusual_bytes(const struct advice *advice, const struct unusual_call *call)
{
	return advice_bytes(call->value == OPS_NONE ? 0 : (double)advice->flow->values[call->value].bytes);
}

void advice_describe_unusual(const struct advice *advice, const struct unusual_call *call, uint32_t row, char *text, size_t size)
{
	const struct data_flow *flow = advice->flow;
	double part = call->part < 1 ? call->part : 1;
	struct ops_figure percent = ops_figure_of_percent(100 * part), rest = ops_figure_of_percent(100 * (1 - part));
	uint32_t reader = call->value == OPS_NONE ? OPS_NONE : data_flow_uses_of(flow, call->value).reader;
	char place[320];

	unusual_place(advice, call->value == OPS_NONE ? OPS_NONE : flow->values[call->value].node, "made", place, sizeof(place));
	switch (call->kind) {
	case NEVER_READ:
		snprintf(text, size, "It makes a result of %s, and no operator reads it.", unusual_bytes(advice, call).text);
		break;
	case READ_IN_PART:
		unusual_place(advice, reader, "first", place, sizeof(place));
		snprintf(text, size, "It makes a result of %s, and later operators%s read %s of it.", unusual_bytes(advice, call).text, place, percent.text);
		break;
	case MOSTLY_ZEROS:
		snprintf(text, size, "It reads a tensor of %s%s of which %s are zeros by construction.", unusual_bytes(advice, call).text, place, rest.text);
		break;
	case MOSTLY_COPIES:
		snprintf(text, size, "It reads a tensor of %s%s of which %s are copies of other elements.", unusual_bytes(advice, call).text, place, rest.text);
		break;
	case GROWN:
		snprintf(text, size, "It reads a tensor of %s%s most of which existed before and was copied to make it longer.", unusual_bytes(advice, call).text,
		         place);
		break;
	case SCATTERED:
		snprintf(text, size, "Each element that it reads is in another cache line, so it moves %d bytes for each.", CACHE_LINE);
		break;
	case AGAINST_EACH_OTHER:
		snprintf(text, size, "The tensors that it reads are laid out in different orders.");
		break;
	default:
		snprintf(text, size, "%s is one of several elementwise operators in a row, each of which reads from memory what the one before has written.",
		         advice_name(advice, row).bytes);
	}
}
