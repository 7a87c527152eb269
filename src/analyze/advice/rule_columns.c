/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples that are columns of a table in memory, so that a batch of them takes one element from each row.
 *
 *     [2000, 12000] ──index, 128 columns──▶ [2000, 128]      2000 · 128 cache lines for 4 bytes each
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define TABLE_BYTES_MIN (4 << 20) /* minimum size of the table; a smaller one stays in caches */
#define ROW_BYTES_MIN 4096        /* minimum distance of two elements of a column: a page of memory */
#define PART_MAX 0.125            /* maximum part of a row that is read: fewer than one element of each cache line */
#define ROWS_SAVE 0.75            /* gain: of each cache line, four bytes are read instead of all */

enum { INDEXES = 1, SELECTS_INDEX };

static int64_t new_bytes(const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	int64_t bytes = 0;

	for (uint32_t i = 0; i < flow->nodes[row].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[row].first_made + i];

		if (flow->memory.blocks.items[flow->memory.values.items[value].block].end_ns > advice->events->end_ns[row])
			bytes = ops_sum(bytes, flow->values[value].bytes);
	}
	return bytes;
}

/* Returns the number of columns that an operator picks from the rows of a table; 0: it picks something else. Recordings do not show
 * the indices of aten::index, but the size of the result. */
static int64_t columns_picked(const struct advice *advice, uint32_t row, bool shows_dimension)
{
	struct ops_input table, dimension;
	int64_t elements, columns, rows, picked, element_bytes;

	if (!advice_input(advice, row, 0, &table) || table.tag != OPS_INPUT_TENSOR || table.n != 2)
		return 0;
	element_bytes = (int64_t)advice_dtype_bytes(table.dtype);
	rows = ops_input_int(&table, 0);
	columns = ops_input_int(&table, 1);
	if (rows < 1 || columns < 1 || !element_bytes || ops_input_int(&table, 3) != 1 ||
	    ops_product(ops_input_int(&table, 2), element_bytes) < ROW_BYTES_MIN ||
	    ops_product(ops_product(rows, columns), element_bytes) < TABLE_BYTES_MIN)
		return 0;
	if (shows_dimension && (!advice_input(advice, row, 1, &dimension) || dimension.tag != OPS_INPUT_INT || ops_input_int(&dimension, 0) % 2 == 0))
		return 0; /* dimension 1 or -1 are columns */
	elements = new_bytes(advice, row) / element_bytes;
	picked = elements % rows ? 0 : elements / rows;
	if (!shows_dimension && elements % columns == 0) /* may be complete rows */
		return 0;
	return (double)picked <= PART_MAX * (double)columns ? picked : 0;
}

static void add_pick(struct advice_result *result, uint32_t row, int64_t *ret_most, struct ops_input *ret_table)
{
	const struct advice *advice = result->advice;
	uint8_t which = result->which[advice->events->name[row]];
	int64_t picked;

	if (!which || !advice->flow->nodes[row].made_count || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER)))
		return;
	picked = columns_picked(advice, row, which == SELECTS_INDEX);
	if (!picked)
		return;
	advice_add_share(result, row, ROWS_SAVE * advice_work_share(advice, row));
	if (picked > *ret_most) {
		*ret_most = picked;
		advice_input(advice, row, 0, ret_table);
	}
}

static bool rule_columns_find(const struct advice *advice, struct advice_result *result)
{
	struct ops_input table = {0};
	int64_t most = 0;

	for (uint32_t row = 0; row < advice->events->count; row++)
		add_pick(result, row, &most, &table);
	return !most ||
	       advice_report_costs(result, "%s columns from a table that is stored by rows: %lld of %s, in %s.",
	                           advice_events(result, "operator in each step picks", "operators in each step pick").text,
	                           (long long)most, advice_describe_tensor(&table).text, advice_cost(result).text);
}

const struct advice_rule advice_rule_columns = {
	.id = "columns-picked",
	.title = "Elements are picked from all rows of a table",
	.condition = "aten::index or index_select picks at most an eighth of the columns of a matrix of at least 4 MB whose rows are contiguous and 4 kB or "
		     "longer. For aten::index, the columns follow from the size of the result.",
	.gain = "three quarters of the time of these operators",
	.explanation = "Memory is read by cache lines of 64 bytes. Each element of a column is in another line, and often in another page.",
	.advice = "Store the table so that what is picked together is contiguous: table.T.contiguous() once, and table[chosen] in steps. To check: shorter "
		  "calls at the line.",
	.code = "samples = table.T.contiguous()  # once\n"
		"batch = samples[chosen]         # in place of table[:, chosen].T",
	.link = "https://docs.pytorch.org/docs/stable/tensor_view.html",
	.names = (const char *const[]){"aten::index", "aten::index_select", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.find = rule_columns_find,
};
