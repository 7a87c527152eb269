/* SPDX-License-Identifier: Apache-2.0
 *
 * Avoidable time without a known cause: the time of operators above their lower bound (analyze/roofline), at lines that
 * no other rule explains, if something about their tensors is unusual (analyze/flow).
 *
 *     train.py:40  aten::cat   20 ms, 2 ms at the roof   reads again what it read in the step before
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "analyze/roofline/roofline.h"
#include "base/alloc.h"
#include "base/text.h"

#define BYTES_MIN (64 << 10) /* minimum bytes of tensors that matter */
#define SHARE_MIN 0.04       /* minimum share of the steps at a line; a smaller difference between roof and steps is
                              * noise */
#define READ_MAX 0.5         /* maximum part of a result that is read */
#define EMPTY_MIN 0.25       /* minimum share of zeros or copies */
#define GROWS_MIN 0.75       /* minimum share of a copy's input that it has read before */
#define CLAIMED_MAX 0.01     /* maximum share of a line that rules with a cause claim */
#define CHAIN_CLAIMED_MAX 0.1 /* the same for chains, whose mechanism is known */
#define CACHE_LINE 64

#define CHAIN_MIN 4          /* minimum number of elementwise operators in a row */
#define CHAIN_BYTES_MIN (1 << 20) /* minimum size of their tensors; smaller ones stay in the caches of a processor */

enum unusual { USUAL, NEVER_READ, READ_IN_PART, MOSTLY_ZEROS, MOSTLY_COPIES, GROWN, SCATTERED, AGAINST_EACH_OTHER, IN_CHAIN, UNUSUAL_COUNT };

/* What is unusual about a call. */
struct unusual_call {
	enum unusual kind;
	uint32_t value; /* a value that it is about; OPS_NONE: none */
	double part;    /* the part of the value that is read, or that is neither zeros nor copies */
};

/* What to do about it, before the advice of the rule. */
static const char *const unusual_fixes[UNUSUAL_COUNT] = {
	[NEVER_READ] = "Leave out what nothing reads.",
	[READ_IN_PART] = "Compute only the part that is read: select before the operator.",
	[MOSTLY_ZEROS] = "Leave the zeros out: select what is filled by lengths or a mask, broadcast in place of a diagonal matrix, or use a sparse tensor.",
	[MOSTLY_COPIES] = "Compute with the elements before they are copied, and broadcast, repeat or select from the result.",
	[GROWN] = "Compute with the new part alone and keep the result for the rest, such as a running sum.",
	[SCATTERED] = "Store the tensor in the order in which it is read, for example by contiguous() once after a transposition.",
	[AGAINST_EACH_OTHER] = "Convert one of the tensors once, before the steps, so that both have the same layout.",
	[IN_CHAIN] = "Replace the operators in a row by one (nn.functional.layer_norm, torch.addcmul, torch.compile).",
};

/* Sums of a line. */
struct avoidable_line {
	int64_t ns, left_ns;   /* time of all calls with a bound, and the part that other rules leave */
	int64_t avoidable_ns;  /* avoidable time of unusual calls */
	int64_t joined_bytes;  /* size of the last result of operators that join tensors */
	int64_t longest_ns;
	uint32_t longest;      /* row of an unusual call */
	struct unusual_call unusual; /* what is unusual about that call */
};

struct avoidable {
	struct roofline roofline;
	struct ops_map read_by; /* by value: the last place at which a copy read it */
	uint8_t *grown;         /* by value: it was copied to extend it */
	struct avoidable_line *lines; /* by place; the last entry is for calls without one */
	uint8_t *copies;        /* by string: the operator joins tensors */
	uint8_t *elementwise;   /* by string */
	uint32_t *chain_site;   /* by node in a chain: the line in the function in which the chain begins */
	float *fused;           /* by node: part of its time that is saved if one operator does the work of a chain; 0: it is
	                         * in none */
};

/* Elementwise operators in a row that process equally many elements and use each other's results, also in functions that the function
 * of the first one calls. Reductions belong to chains, since their results are small. */
struct avoidable_chain {
	uint32_t first, last, length; /* nodes */
	uint32_t function; /* name of the function of the program */
	int64_t elements;
	int64_t ns, longest_ns;
};

static struct avoidable_line *avoidable_line_of(const struct avoidable *all, const struct advice *advice, uint32_t row)
{
	return &all->lines[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
}

/* --- unusual tensors ------------------------------------------------------------------------------------------------- */

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
		    advice_reads_pointers(advice, block->start_ns, block->end_ns))
			return USUAL;
		made = ops_sum(made, block->bytes);
		read = ops_sum(read, uses.read_bytes);
		ret_call->value = block->bytes > largest ? value : ret_call->value;
		largest = block->bytes > largest ? block->bytes : largest;
	}
	ret_call->part = made > 0 ? (double)read / (double)made : 0;
	return made < BYTES_MIN ? USUAL : !read ? NEVER_READ : (double)read <= READ_MAX * (double)made ? READ_IN_PART : USUAL;
}

/* Each window of a convolution or pooling contains other elements, even if many elements are copies. */
static bool has_windows(const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_CONVOLUTION || advice_kind(advice, row) == OPERATOR_POOLING;
}

static enum unusual of_inputs(const struct avoidable *all, const struct advice *advice, uint32_t node, struct unusual_call *ret_call)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		const struct data_content *content = &advice->contents[use->value];

		ret_call->value = use->value;
		ret_call->part = use->bytes > 0 ? (double)data_content_read(advice->contents, use) / (double)use->bytes : 1;
		if (use->kind == DATA_READS && use->bytes >= BYTES_MIN && all->grown[use->value])
			return GROWN;
		/* Rows that are selected by indices are there to be summed or compared. */
		if (use->kind == DATA_READS && use->bytes >= BYTES_MIN && content->kind && !content->gathered && content->bytes > 0 &&
		    (double)data_content_read(advice->contents, use) <= (1 - EMPTY_MIN) * (double)use->bytes)
			return content->kind != CONTENT_COPIES ? MOSTLY_ZEROS : has_windows(advice, node) ? USUAL : MOSTLY_COPIES;
	}
	return USUAL;
}

/* Marks the result of a copy if the copy has read most of its inputs at this line before, and the result is larger than
 * that of then. Returns false if out of memory. */
static bool mark_grown(struct avoidable *all, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	int64_t before = 0, read = 0, made = data_flow_made_bytes(flow, node);
	struct avoidable_line *line = avoidable_line_of(all, advice, node);
	bool grows = made > line->joined_bytes;

	line->joined_bytes = made;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		uint32_t *site;

		if (use->kind < DATA_SELECTS)
			continue;
		site = ops_map_slot(&all->read_by, use->value + 1, OPS_NONE);
		if (!site)
			return false;
		read = ops_sum(read, use->bytes);
		before = ops_sum(before, *site == advice->site[node] && *site != OPS_NONE ? use->bytes : 0);
		*site = advice->site[node];
	}
	grows = grows && read >= BYTES_MIN && (double)before >= GROWS_MIN * (double)read;
	for (uint32_t i = 0; grows && i < flow->nodes[node].made_count; i++)
		all->grown[flow->made.items[flow->nodes[node].first_made + i]] = 1;
	return true;
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

/* Returns true if a node reads only as much as it returns. */
static bool only_selects(const struct data_flow *flow, uint32_t node)
{
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

		if (use->kind == DATA_READS && use->bytes >= BYTES_MIN &&
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

		if (dense < 0 || avoidable_stored_bytes(&input) < BYTES_MIN)
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

static struct unusual_call unusual_of(const struct avoidable *all, const struct advice *advice, const struct roofline_call *call, uint32_t node)
{
	struct unusual_call found = {.value = OPS_NONE};
	enum unusual unusual = of_inputs(all, advice, node, &found);

	if (!unusual) {
		found.value = OPS_NONE;
		unusual = of_results(advice, node, &found);
	}
	if (!unusual)
		found.value = OPS_NONE;
	if (!unusual && call->row == node && only_selects(advice->flow, node) && selects_across_rows(advice, node))
		unusual = SCATTERED;
	if (!unusual && call->row == node) /* operators inside others and in backward passes have layouts that torch chooses */
		unusual = of_layout(advice, call->row, call->is_compute_bound);
	found.kind = unusual || all->fused[node] <= 0 ? unusual : IN_CHAIN;
	return found;
}

/* --- chains ----------------------------------------------------------------------------------------------------------- */

static uint32_t avoidable_function(const struct advice *advice, uint32_t node)
{
	uint32_t site = advice->site[node];

	return site == OPS_NONE ? OPS_NONE : advice->events->name[advice->sites.items[site].frame];
}

static bool is_elementwise(const struct avoidable *all, const struct advice *advice, uint32_t node)
{
	return advice->flow->memory.rows.node[node] == node && all->elementwise[advice->events->name[node]] &&
	       !(advice->zone[node] & (ADVICE_IN_OPTIMIZER | ADVICE_IN_BACKWARD)) && advice_counts(advice, node);
}

/* Returns the index of the line of a row in a function, or of the call in it that leads to the row; OPS_NONE if nothing does. The index after
 * the last is for rows without a line. */
static uint32_t line_in_function(const struct advice *advice, uint32_t row, uint32_t function)
{
	while (row != OPS_NONE && avoidable_function(advice, row) != function)
		row = advice->caller[row];
	return row == OPS_NONE ? OPS_NONE : advice->site[row] == OPS_NONE ? (uint32_t)advice->sites.count : advice->site[row];
}

static void end_chain_of(struct avoidable *all, const struct advice *advice, struct avoidable_chain *chain)
{
	for (uint32_t row = chain->first; chain->length >= CHAIN_MIN && row <= chain->last; row++) {
		if (!is_elementwise(all, advice, row))
			continue;
		all->chain_site[row] = line_in_function(advice, row, chain->function);
		if (all->chain_site[row] != OPS_NONE)
			all->fused[row] = (float)(1 - (double)chain->longest_ns / (double)chain->ns);
	}
	*chain = (struct avoidable_chain){.function = OPS_NONE};
}

/* Returns the number of elements of the largest tensor that a node reads or makes; -1 if it is small. */
static int64_t chain_elements(const struct avoidable *all, const struct advice *advice, uint32_t node)
{
	struct ops_input input;
	int64_t most = -1;

	for (size_t i = 0; advice_input(advice, node, i, &input); i++) {
		int64_t elements = advice_input_elements(&input);

		if (elements > most && ops_product(elements, (int64_t)advice_dtype_bytes(input.dtype)) >= CHAIN_BYTES_MIN)
			most = elements;
		if (!i && data_flow_made_bytes(advice->flow, node) >= CHAIN_BYTES_MIN && all->elementwise[advice->events->name[node]]) {
			elements = data_flow_made_bytes(advice->flow, node) / (int64_t)advice_dtype_bytes(input.dtype);
			most = elements > most ? elements : most;
		}
	}
	return most;
}

static bool uses_result_of(const struct advice *advice, uint32_t node, const struct avoidable_chain *chain)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		uint32_t maker = flow->values[flow->uses.items[flow->nodes[node].first + i].value].node;

		if (maker != OPS_NONE && maker >= chain->first && maker <= chain->last)
			return true;
	}
	return false;
}

/* Scratch memory of an operator may count as part of its result. */
static bool are_equally_many(int64_t elements, int64_t others)
{
	return elements >= 0 && llabs(elements - others) <= others / 64;
}

/* Views and operators on small tensors do not end a chain. */
static void add_to_chain(struct avoidable *all, const struct advice *advice, uint32_t node, struct avoidable_chain *chain)
{
	int64_t elements = chain_elements(all, advice, node), ns = advice_ns(advice, node);
	uint32_t function = avoidable_function(advice, node);
	bool continues = chain->length && line_in_function(advice, node, chain->function) != OPS_NONE;

	if (continues && (elements < 0 || !advice->flow->nodes[node].made_count))
		return;
	if (!continues || !is_elementwise(all, advice, node) || !are_equally_many(elements, chain->elements) || !uses_result_of(advice, node, chain))
		end_chain_of(all, advice, chain);
	if (elements < 0 || !is_elementwise(all, advice, node))
		return;
	if (!chain->length)
		*chain = (struct avoidable_chain){.first = node, .function = function, .elements = elements};
	chain->last = node;
	chain->length++;
	chain->ns = ops_sum(chain->ns, ns);
	chain->longest_ns = ns > chain->longest_ns ? ns : chain->longest_ns;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static double left_part(int64_t left_ns, int64_t ns)
{
	return ns > 0 ? (double)left_ns / (double)ns : 1;
}

/* Returns the time of a call that other rules leave. They claim outermost operators, and the backward pass with its
 * forward operator. */
static int64_t avoidable_left(const struct advice *advice, uint32_t row, uint32_t forward)
{
	uint32_t node = advice->flow->memory.rows.node[row];
	double part = left_part(advice_left_ns(advice, row), advice_ns(advice, row)), of_node;

	if (advice->claimed[row])
		return 0;
	of_node = node == OPS_NONE ? 1 : left_part(advice_left_ns(advice, node), advice_ns(advice, node));
	part = of_node < part ? of_node : part;
	if (forward != OPS_NONE)
		part *= left_part(advice_backward_left_ns(advice, forward), advice->backward_ns[forward]);
	return (int64_t)(part * (double)advice_ns(advice, row));
}

static double avoidable_part(const struct advice *advice, const struct roofline_call *call, int64_t left_ns)
{
	double ns = (double)advice_ns(advice, call->row);
	double bound = ns > 0 ? call->bound_ns / ns : 1;

	return bound < 1 ? (double)left_ns * (1 - bound) : 0;
}

static void sum_call(struct avoidable *all, const struct advice *advice, const struct roofline_call *call)
{
	uint32_t forward = advice_forward_of(advice, call->row), place = forward == OPS_NONE ? call->row : forward;
	uint32_t node = advice->flow->memory.rows.node[place];
	struct avoidable_line *line = avoidable_line_of(all, advice, place);
	int64_t left_ns, avoidable_ns;
	struct unusual_call unusual;

	if (!call->roof || call->roof->source == ROOF_UNKNOWN || call->bound_ns < call->roof->call_ns || !advice_counts(advice, call->row) ||
	    (advice->zone[call->row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) || node == OPS_NONE)
		return;
	left_ns = avoidable_left(advice, call->row, forward);
	line->ns = ops_sum(line->ns, advice_ns(advice, call->row));
	line->left_ns = ops_sum(line->left_ns, left_ns);
	unusual = unusual_of(all, advice, call, node);
	avoidable_ns = (int64_t)(unusual.kind == IN_CHAIN ? all->fused[node] * (double)left_ns : avoidable_part(advice, call, left_ns));
	if (!unusual.kind || !avoidable_ns)
		return;
	if (unusual.kind == IN_CHAIN)
		line = &all->lines[all->chain_site[node]];
	line->avoidable_ns = ops_sum(line->avoidable_ns, avoidable_ns);
	if (avoidable_ns > line->longest_ns) {
		line->longest_ns = avoidable_ns;
		line->longest = place;
		line->unusual = unusual;
	}
}

/* Formats the line of a node with what happens there: ", made at forward (train.py:45),"; "" if it is unknown. */
static void avoidable_place(const struct advice *advice, uint32_t node, const char *verb, char *text, size_t size)
{
	char line[256];

	advice_format_line(advice, node, line, sizeof(line));
	*text = '\0';
	if (*line)
		snprintf(text, size, ", %s at %s,", verb, line);
}

static struct advice_number megabytes(const struct advice *advice, const struct unusual_call *call)
{
	return advice_number(call->value == OPS_NONE ? 0 : (double)advice->flow->values[call->value].bytes / 1e6);
}

/* Describes what is unusual about a call, in a sentence. */
static void describe_unusual(const struct advice *advice, const struct unusual_call *call, uint32_t row, char *text, size_t size)
{
	const struct data_flow *flow = advice->flow;
	double part = call->part < 1 ? call->part : 1;
	struct advice_number percent = advice_number(100 * part), rest = advice_number(100 * (1 - part));
	uint32_t reader = call->value == OPS_NONE ? OPS_NONE : data_flow_uses_of(flow, call->value).reader;
	char place[320];

	avoidable_place(advice, call->value == OPS_NONE ? OPS_NONE : flow->values[call->value].node, "made", place, sizeof(place));
	switch (call->kind) {
	case NEVER_READ:
		snprintf(text, size, "It makes a result of %s MB, and no operator reads it.", megabytes(advice, call).text);
		break;
	case READ_IN_PART:
		avoidable_place(advice, reader, "first", place, sizeof(place));
		snprintf(text, size, "It makes a result of %s MB, and later operators%s read %s %% of it.", megabytes(advice, call).text, place, percent.text);
		break;
	case MOSTLY_ZEROS:
		snprintf(text, size, "It reads a tensor of %s MB%s of which %s %% are zeros by construction.", megabytes(advice, call).text, place, rest.text);
		break;
	case MOSTLY_COPIES:
		snprintf(text, size, "It reads a tensor of %s MB%s of which %s %% are copies of other elements.", megabytes(advice, call).text, place, rest.text);
		break;
	case GROWN:
		snprintf(text, size, "It reads a tensor of %s MB%s most of which existed before and was copied to make it longer.", megabytes(advice, call).text,
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

static bool report_lines(struct avoidable *all, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	const struct avoidable_line *most = NULL;
	struct ops_input tensor;
	char text[640];

	for (uint32_t site = 0; site <= advice->sites.count; site++) {
		const struct avoidable_line *line = &all->lines[site];

		double claimed_max = line->unusual.kind == IN_CHAIN ? CHAIN_CLAIMED_MAX : CLAIMED_MAX;

		if ((double)line->avoidable_ns < SHARE_MIN * (double)advice->steps_ns ||
		    (double)(line->ns - line->left_ns) > claimed_max * (double)line->ns)
			continue;
		advice_add_at(result, site < advice->sites.count ? site : OPS_NONE, line->longest, line->avoidable_ns);
		most = !most || line->avoidable_ns > most->avoidable_ns ? line : most;
	}
	if (!most)
		return true;
	tensor = advice_largest_input(advice, most->longest);
	describe_unusual(advice, &most->unusual, most->longest, text, sizeof(text));
	result->detail = unusual_fixes[most->unusual.kind];
	return advice_report_costs(result, "Each step takes %s above the lower bound of the FLOPs and bytes of operators at these lines. Most of it takes %s%s%s. %s",
	                           advice_cost(result).text,
	                           advice_name(advice, most->longest).bytes, tensor.tag ? " of " : "",
	                           tensor.tag ? advice_describe_tensor(&tensor).text : "", text);
}

/* Operators that only select have no demand by their arguments, because indices are not recorded. They read and write
 * what they return. */
static void sum_selections(struct avoidable *all, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct roofline_call call = {.row = row, .roof = &all->roofline.cpu};
		double bytes = 2 * (double)data_flow_made_bytes(advice->flow, row);

		if (!advice->flow->nodes[row].count || bytes < BYTES_MIN || !only_selects(advice->flow, row) ||
		    ops_string_is(advice_name(advice, row), "aten::embedding"))
			continue;
		call.bound_ns = roof_memory_ns(call.roof, bytes, (double)advice_ns(advice, row));
		if (!advice->views->device_events.count)
			sum_call(all, advice, &call);
	}
}

static void avoidable_sum_calls(struct avoidable *all, const struct advice *advice)
{
	struct avoidable_chain chain = {.function = OPS_NONE};

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->flow->memory.rows.node[row] == row && advice_is_operator(advice, row))
			add_to_chain(all, advice, row, &chain);
	end_chain_of(all, advice, &chain);
	for (size_t i = 0; i < all->roofline.calls.count; i++)
		sum_call(all, advice, &all->roofline.calls.items[i]);
	sum_selections(all, advice);
}

static bool rule_avoidable_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const patterns[] = {"aten::cat", "aten::concat", "aten::stack", "aten::hstack", "aten::vstack", NULL};
	static const char *const elementwise[] = {
		"aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::pow", "aten::square", "aten::sqrt", "aten::rsqrt",
		"aten::exp", "aten::log", "aten::neg", "aten::abs", "aten::tanh", "aten::sigmoid", "aten::erf", "aten::sin", "aten::cos",
		"aten::relu", "aten::silu", "aten::gelu", "aten::round", "aten::floor", "aten::fmod", "aten::remainder", "aten::reciprocal", "aten::log1p",
		"aten::expm1", "aten::atan2", "aten::atan", "aten::softplus", "aten::masked_fill", "aten::sign", "aten::clamp", "aten::where", "aten::maximum", "aten::minimum", "aten::lerp",
		"aten::addcmul", "aten::add_", "aten::sub_", "aten::mul_", "aten::div_", "aten::mean", "aten::sum", "aten::var", "aten::amax", NULL};
	struct avoidable all = {.lines = NULL};
	bool done;

	all.lines = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*all.lines));
	all.grown = ops_alloc_zeroed(advice->flow->memory.values.count + 1, 1);
	all.copies = advice_names(advice, patterns);
	all.elementwise = advice_names(advice, elementwise);
	all.chain_site = ops_alloc_none(advice->events->count + 1);
	all.fused = ops_alloc_zeroed(advice->events->count + 1, sizeof(*all.fused));
	done = all.lines && all.grown && all.copies && all.elementwise && all.fused && all.chain_site &&
	       roofline_init(&all.roofline, advice->trace, OPS_ROOFLINE_OPERATOR, NULL, NULL) == OPS_OK;
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (all.copies[advice->events->name[row]] && advice->flow->nodes[row].made_count)
			done = mark_grown(&all, advice, row);
	if (done)
		avoidable_sum_calls(&all, advice);
	done = done && report_lines(&all, result);
	roofline_release(&all.roofline);
	ops_map_release(&all.read_by);
	ops_free(all.lines);
	ops_free(all.grown);
	ops_free(all.copies);
	ops_free(all.elementwise);
	ops_free(all.chain_site);
	ops_free(all.fused);
	return done;
}

const struct advice_rule advice_rule_avoidable = {
	.id = "avoidable-time",
	.title = "Operators take much longer than their work requires",
	.condition = "Operators at a line take at least 4 % of a step above the lower bound that the roofline "
		     "gives them, no other rule explains more than 1 % of the line, and their tensors are unusual: results are never read or at most half, "
		     "inputs are zeros or copies by construction, copied again to grow, scattered in memory, or laid out in different orders while one of them lasts. Or four or "
		     "more elementwise operators and reductions of a function, and of those that it calls, pass one after another over tensors of 1 MiB or more.",
	.gain = "the time above the lower bound of the unusual operators; all but the longest of elementwise operators in a row",
	.explanation = "The lower bound is the time for the FLOPs and for the bytes of the tensors at the measured speed of the machine.",
	.advice = "At the other lines, also compare what operators read and make with what is needed. `opstrobe roofline --by line` lists the lower bounds "
		  "of all lines, `opstrobe analyze data_flow` what becomes of results. To check: less avoidable time at the line.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_ROOF,
	.stage = ADVICE_STAGE_REST,
	.severity_max = ADVICE_MEDIUM, /* it shows where time goes, but not why */
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.general = true,
	.find = rule_avoidable_find,
};
