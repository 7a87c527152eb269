/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of rows that each iteration of a loop selects from the same table. The function of the selected rows is a selection of the
 * function of all rows, which one call computes.
 *
 *     for _ in range(500):                     kernel = gaussian(table, table)
 *         rows = table[torch.randperm(n)]      for _ in range(500):
 *         gaussian(rows, rows).mean()              order = torch.randperm(n)
 *                                                  kernel[order][:, order].mean()
 *
 * A value of the loop is fixed, has one row for each selected row, or one element for each pair of selected rows.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define ITERATIONS_MIN 16
#define ROWS_MIN 32               /* minimum number of rows of the table */
#define AGAIN_MIN 8               /* how often all rows, or all pairs, are computed at least */
#define PAIRS_MAX ((int64_t)1 << 26) /* maximum number of pairs of rows: more are not worth their memory */

enum selected_kind { SELECTED_UNKNOWN, SELECTED_FIXED, SELECTED_ROWS, SELECTED_PAIRS };

/* What is known about the results of a node. */
struct selected {
	uint8_t kind;       /* enum selected_kind */
	bool computed;      /* more than the selection itself */
	uint32_t table;     /* the value from which rows are selected */
	uint32_t selection; /* the node that selects them; of pairs: OPS_NONE */
	int64_t rows;       /* number of selected rows */
};

struct selected_total {
	double rows, pairs; /* computed in the loop */
	int64_t table_rows;
};

struct selected_search {
	uint8_t *random, *selects; /* by string */
	struct selected *of;       /* by row */
	uint8_t *counted;          /* by row of a selection: its rows are in the total */
	struct ops_map numbers;    /* digests of Python numbers by line, operator and argument */
	struct ops_map tables;
	OPS_ARRAY(struct selected_total) totals;
	uint64_t iterations;
	uint32_t selection;        /* one of those that found a claim; OPS_NONE: none */
};

/* Several inputs of a node, which depend on selected rows. */
struct selected_inputs {
	struct selected first, second;
	uint32_t first_block, second_block;
	uint32_t count;
	int64_t bytes_max;
	bool positional; /* they are of different selections, or pairs */
};

static struct selected_total *total_of(struct selected_search *search, uint32_t table)
{
	return OPS_ARRAY_AT(&search->totals, ops_map_number(&search->tables, table));
}

static struct selected selected_value(const struct selected_search *search, const struct advice *advice, const struct advice_loop *loop, uint32_t value)
{
	const struct data_flow *flow = advice->flow;
	uint32_t maker = flow->values[value].node;
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];

	if (maker == OPS_NONE)
		return (struct selected){.kind = block->start_ns < loop->start_ns ? SELECTED_FIXED : SELECTED_UNKNOWN};
	return maker < loop->begin ? (struct selected){.kind = SELECTED_FIXED} : search->of[maker];
}

/* Returns whether the Python numbers of a node are those of earlier calls at its line. Sets `*ret_failed` if out of memory. */
static bool has_same_numbers(struct selected_search *search, const struct advice *advice, uint32_t node, bool *ret_failed)
{
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(advice->trace, node, i, &storage); i++) {
		uint64_t key = ((uint64_t)advice->site[node] << 32 | advice->events->name[node]) * 0x9e3779b97f4a7c15u + i;
		uint32_t digest = (uint32_t)(storage.bytes ^ storage.bytes >> 32) & INT32_MAX, *before;

		if (storage.address)
			continue;
		before = ops_map_slot(&search->numbers, key, digest);
		*ret_failed |= !before;
		if (!before || *before != digest)
			return false;
	}
	return true;
}

/* Rows that a node selects from a table made before the loop. */
static struct selected selection_of(const struct selected_search *search, const struct advice *advice, const struct advice_loop *loop, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	struct ops_input table;
	int64_t rows, row_bytes;

	if (!advice_input(advice, node, 0, &table) || !ops_input_is_tensor(table.tag) || !table.n || ops_input_int(&table, 0) < ROWS_MIN)
		return (struct selected){.kind = SELECTED_UNKNOWN};
	row_bytes = advice_input_bytes(&table) / ops_input_int(&table, 0);
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind != DATA_SELECTS || row_bytes <= 0 || use->bytes % row_bytes || selected_value(search, advice, loop, use->value).kind != SELECTED_FIXED)
			continue;
		rows = use->bytes / row_bytes;
		return (struct selected){.kind = rows ? SELECTED_ROWS : SELECTED_UNKNOWN, .table = use->value, .selection = node, .rows = rows};
	}
	return (struct selected){.kind = SELECTED_UNKNOWN};
}

/* Collects what a node reads. Returns false if a part of it is unknown. */
static bool read_inputs(const struct selected_search *search, const struct advice *advice, const struct advice_loop *loop, uint32_t node,
                        struct selected_inputs *inputs, bool *ret_reads)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		struct selected read;

		if (use->kind < DATA_SELECTS)
			continue;
		read = selected_value(search, advice, loop, use->value);
		if (read.kind == SELECTED_UNKNOWN || (read.kind == SELECTED_FIXED && use->kind == DATA_UPDATES) ||
		    (read.kind > SELECTED_FIXED && inputs->count && read.table != inputs->first.table))
			return false;
		*ret_reads = true;
		if (read.kind == SELECTED_FIXED)
			continue;
		inputs->second = inputs->count ? read : inputs->second;
		inputs->second_block = inputs->count ? flow->memory.values.items[use->value].block : OPS_NONE;
		inputs->first_block = inputs->count ? inputs->first_block : flow->memory.values.items[use->value].block;
		inputs->first = inputs->count ? inputs->first : read;
		inputs->positional |= inputs->first.selection != read.selection;
		inputs->bytes_max = use->bytes > inputs->bytes_max ? use->bytes : inputs->bytes_max;
		inputs->count++;
	}
	return inputs->count <= 2;
}

/* The results of an elementwise operator. */
static struct selected selected_elementwise(const struct selected_inputs *inputs, int64_t made_bytes)
{
	struct selected result = inputs->first;

	if (inputs->first.kind == SELECTED_PAIRS || inputs->second.kind == SELECTED_PAIRS ||
	    (inputs->count == 2 && made_bytes > inputs->bytes_max)) { /* [rows, 1] and [rows] */
		result.kind = SELECTED_PAIRS;
		result.selection = OPS_NONE;
	} else if (inputs->positional) {
		result.kind = SELECTED_UNKNOWN; /* rows of two selections, side by side */
	}
	return result;
}

/* Returns whether a reduction of a node leaves the first dimension alone. */
static bool keeps_rows(const struct advice *advice, uint32_t node)
{
	struct ops_input input, dimensions;

	if (!advice_input(advice, node, 0, &input) || !advice_input(advice, node, 1, &dimensions) || input.n < 2 ||
	    (dimensions.tag != OPS_INPUT_INT_LIST && dimensions.tag != OPS_INPUT_INT) || (dimensions.tag == OPS_INPUT_INT_LIST && !dimensions.n))
		return false;
	for (size_t i = 0; i < (dimensions.tag == OPS_INPUT_INT ? 1 : dimensions.n); i++)
		if (ops_input_int(&dimensions, i) == 0 || ops_input_int(&dimensions, i) == -(int64_t)input.n)
			return false;
	return true;
}

/* The results of a product of matrices: rows by something fixed, or rows by rows. Products that add up rows are unknown. */
static struct selected selected_product(const struct advice *advice, const struct selected_inputs *inputs, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	size_t at = advice_operator(advice, node)->where[0];
	struct selected result = inputs->first, unknown = {.kind = SELECTED_UNKNOWN};
	int64_t outer[2], inner[2];
	uint32_t found = 0;

	if (inputs->first.kind != SELECTED_ROWS || (inputs->count == 2 && inputs->second.kind != SELECTED_ROWS))
		return unknown;
	for (size_t i = 0; i < 2; i++) {
		struct ops_input factor;

		if (!advice_input(advice, node, at + i, &factor) || !ops_input_is_tensor(factor.tag) || factor.n != 2)
			return unknown;
		outer[i] = ops_input_int(&factor, i);
		inner[i] = ops_input_int(&factor, 1 - i);
	}
	for (size_t i = 0; i < 2; i++) {
		struct ops_storage storage;
		uint64_t first = flow->memory.blocks.items[inputs->first_block].address;
		bool is_first, is_second;

		if (!ops_event_storage(advice->trace, node, at + i, &storage))
			return unknown;
		is_first = storage.address == first;
		is_second = inputs->count == 2 && storage.address == flow->memory.blocks.items[inputs->second_block].address;
		if (!is_first && !is_second)
			continue;
		if (outer[i] != (is_first ? inputs->first.rows : inputs->second.rows) || inner[i] == outer[i])
			return unknown;
		found++;
	}
	if (!found)
		return unknown;
	if (found == 2) {
		result.kind = SELECTED_PAIRS;
		result.selection = OPS_NONE;
	}
	return result;
}

static struct selected classify(struct selected_search *search, const struct advice *advice, const struct advice_loop *loop, uint32_t node, bool *ret_failed)
{
	struct selected_inputs inputs = {.first_block = OPS_NONE, .second_block = OPS_NONE};
	struct selected result = {.kind = SELECTED_UNKNOWN};
	bool reads = false;

	if (search->random[advice->events->name[node]] || advice->backward_ns[node] > 0 ||
	    (advice->zone[node] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)))
		return result;
	if (search->selects[advice->events->name[node]])
		return selection_of(search, advice, loop, node);
	if (!read_inputs(search, advice, loop, node, &inputs, &reads) || !has_same_numbers(search, advice, node, ret_failed))
		return result;
	if (!inputs.count) {
		result.kind = reads ? SELECTED_FIXED : SELECTED_UNKNOWN; /* numbers of Python may become a tensor */
		return result;
	}
	if (advice_operator(advice, node)->flags & OPERATOR_ELEMENTWISE)
		result = selected_elementwise(&inputs, data_flow_made_bytes(advice->flow, node));
	else if (advice_kind(advice, node) == OPERATOR_REDUCES && inputs.count == 1 && inputs.first.kind == SELECTED_ROWS && keeps_rows(advice, node))
		result = inputs.first;
	else if (advice_kind(advice, node) == OPERATOR_PRODUCT)
		result = selected_product(advice, &inputs, node);
	result.computed = result.kind > SELECTED_FIXED;
	if (result.kind == SELECTED_PAIRS && inputs.first.kind == SELECTED_ROWS && inputs.count && advice_kind(advice, node) == OPERATOR_PRODUCT) {
		struct selected_total *total = total_of(search, result.table);

		*ret_failed |= !total;
		if (total)
			total->pairs += (double)inputs.first.rows * (double)(inputs.count == 2 ? inputs.second.rows : inputs.first.rows);
	}
	return result;
}

/* Adds the rows of a selection to the total once an operator computes with them. */
static bool count_rows(struct selected_search *search, const struct selected *computed)
{
	struct selected_total *total;

	if (!computed->computed || computed->selection == OPS_NONE || search->counted[computed->selection])
		return true;
	search->counted[computed->selection] = 1;
	total = total_of(search, computed->table);
	if (total)
		total->rows += (double)computed->rows;
	return total != NULL;
}

/* Returns the share of the time of a node that computing once for the table saves; 0: none. */
static double selected_share(struct selected_search *search, const struct selected *computed)
{
	const struct selected_total *total = total_of(search, computed->table);
	int64_t rows = total ? total->table_rows : 0;
	double times;

	if (!computed->computed || rows <= 0 || (computed->kind == SELECTED_PAIRS && rows > PAIRS_MAX / rows))
		return 0;
	times = computed->kind == SELECTED_PAIRS ? total->pairs / ((double)rows * (double)rows) : total->rows / (double)rows;
	return times >= AGAIN_MIN ? 1 - 1 / times : 0;
}

static bool selected_is_node(const struct advice *advice, const struct advice_loop *loop, uint32_t row)
{
	return advice->events->track[row] == advice->events->track[loop->begin] && advice->flow->memory.rows.node[row] == row && advice_is_operator(advice, row);
}

static bool search_selected_loop(struct selected_search *search, struct advice_result *result, const struct advice_loop *loop)
{
	const struct advice *advice = result->advice;
	uint32_t end = loop->begin;
	uint64_t events = result->tally.events;
	bool failed = false;

	search->totals.count = 0;
	ops_map_release(&search->tables);
	ops_map_release(&search->numbers);
	for (; !failed && end < advice->events->count && advice->events->start_ns[end] < loop->end_ns; end++) {
		struct selected *of = &search->of[end];

		*of = (struct selected){.kind = SELECTED_UNKNOWN};
		search->counted[end] = 0;
		if (!selected_is_node(advice, loop, end))
			continue;
		*of = classify(search, advice, loop, end, &failed);
		if (of->kind == SELECTED_ROWS && of->selection == end) {
			struct selected_total *total = total_of(search, of->table);
			struct ops_input table;

			failed |= !total;
			if (total && advice_input(advice, end, 0, &table))
				total->table_rows = ops_input_int(&table, 0);
		}
		failed |= !count_rows(search, of);
	}
	for (uint32_t row = loop->begin; !failed && row < end; row++) {
		double share = search->of[row].computed && advice_counts(advice, row) && !advice_is_claimed(result, row)
		                       ? selected_share(search, &search->of[row])
		                       : 0;

		if (share > 0) {
			advice_add_share(result, row, share * advice_work_share(advice, row));
			result->claimed[row] = 1;
			search->selection = search->of[row].selection != OPS_NONE ? search->of[row].selection : search->selection;
		}
	}
	search->iterations += result->tally.events > events ? loop->iterations : 0;
	return !failed;
}

static bool rule_selected_rows_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const none[] = {NULL}, *const selects[] = {"aten::index", "aten::index_select", NULL};
	size_t count = advice->events->count + 1;
	struct selected_search search = {.random = advice_random_names(advice, none), .selects = advice_names(advice, selects),
	                                 .of = ops_alloc_zeroed(count, sizeof(*search.of)), .counted = ops_alloc_zeroed(count, 1), .selection = OPS_NONE};
	bool done = search.random && search.selects && search.of && search.counted;

	for (size_t i = 0; done && i < advice->loops.count; i++) {
		const struct advice_loop *loop = &advice->loops.items[i];

		if (loop->iterations >= ITERATIONS_MIN && advice_counts(advice, loop->begin))
			done = search_selected_loop(&search, result, loop);
	}
	if (search.selection != OPS_NONE) {
		result->also[0] = search.selection;
		result->also_count = 1;
	}
	done = done && advice_report_costs(result, "Loops of %s in each step compute the same functions of rows that they select from a table, which they do not change. "
	                                           "All rows, or all pairs of them, are computed %d times or more, in %s. Computing them once saves %s.",
	                                   advice_counted(advice, search.iterations, "iteration", "iterations").text, AGAIN_MIN,
	                                   advice_events(result, "operator", "operators").text, advice_cost(result).text);
	OPS_ARRAY_RELEASE(&search.totals);
	ops_map_release(&search.tables);
	ops_map_release(&search.numbers);
	ops_free(search.random);
	ops_free(search.selects);
	ops_free(search.of);
	ops_free(search.counted);
	return done;
}

const struct advice_rule advice_rule_selected_rows = {
	.id = "function-of-selected-rows",
	.title = "A loop computes a function again for rows of the same table",
	.condition = "In a loop of 16 iterations or more, index or index_select select rows of a tensor of 32 rows or more, made before the loop. Elementwise operators, reductions "
		     "of other dimensions, and products of matrices get only these rows, or a fixed tensor as well, so that each row, or each pair of rows, of their "
		     "results is that of the same function of the table. In all, the rows or pairs that are computed are eight times those of the table. Operators with a "
		     "backward pass, random numbers, or Python numbers that change are left out.",
	.gain = "the time of these operators, for all times but one",
	.explanation = "Selecting rows and computing a function of each gives the same as selecting from the function of all rows, which one call computes.",
	.advice = "Compute the function for the complete table before the loop, and select from the result. For pairs of rows, such as distances or kernels, select rows and "
		  "columns. A mean over selected pairs is a product with a vector of weights. To check: fewer operators at the line.",
	.code = "kernel = gaussian(pooled, pooled)  # before the loop\n"
		"order = torch.randperm(len(pooled))\n"
		"statistic = kernel[order[:n]][:, order[:n]].mean()  # in place of gaussian(pooled[order[:n]], pooled[order[:n]])",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.index_select.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_REPEATED,
	.confidence = ADVICE_LIKELY,
	.find = rule_selected_rows_find,
};
